"""Steps, which a connection runs: commands, and calls of Lua scripts.

Each script stands beside the code that calls it, in the module whose keys it touches. It runs alone inside Redis, on
keys of one slot. What writes to a topic first compares `born`, the token of this incarnation of it, so that a process
which still holds a deleted topic cannot write into its successor. `seq` counts the topic's events and is the version of
the model that has folded them all.

A write whose reply got lost may have been applied. So each script is harmless when it runs again: a judgement that is
already in force is `known`, a save of an old version is ignored, and the others first compare `seq`, or a number like
it. (Only COUNT then counts some documents twice, in a stream of thousands.)

Scripts are sent whole (EVAL): Redis keeps them compiled by digest anyway, and a restarted store needs no reloading.
Redis notifies waiting clients after each command, so calls of one script in a row are merged into one command (EACH).
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple, cast

from redis.crc import key_slot

from service.store.redis.keys import topic_key

# Calls one script with the keys and arguments of several calls. A call that fails does not stop the others. Arguments:
# for each call, how many keys and arguments it has, and its arguments.
EACH = """
local function each(KEYS, ARGV)
%s
end
local answers, key, at = {}, 0, 1
while at <= #ARGV do
  local keys, args, last = {}, {}, at + 1 + tonumber(ARGV[at + 1])
  for n = 1, tonumber(ARGV[at]) do keys[n] = KEYS[key + n] end
  for n = at + 2, last do args[n - at - 1] = ARGV[n] end
  key, at = key + #keys, last + 1
  local done, answer = pcall(each, keys, args)
  if not done and type(answer) ~= 'table' then answer = redis.error_reply(answer) end
  if answer == nil then answer = false end
  answers[#answers + 1] = answer
end
return answers
"""

# For scripts: the store's time in milliseconds, the same for all machines.
NOW = """
local time = redis.call('TIME')
local now = 1000 * tonumber(time[1]) + math.floor(tonumber(time[2]) / 1000)
"""

BATCH_SIZE = 1000  # entries or topics per command, so that a long read or write never holds Redis up

Arg = bytes | str | int | float
Command = tuple[Arg, ...]


class Script(NamedTuple):
    """A call of a script: its text, the keys it may touch (all of one slot), and its arguments."""

    text: str
    keys: Sequence[str]
    args: Sequence[Arg]


Step = Command | Script


def topic_script(text: str, topic: str, parts: Sequence[str], *args: Arg) -> Script:
    """A call of a script on parts of a topic."""
    return Script(text, [topic_key(topic, part) for part in parts], args)


def flat(fields: Mapping[str, Arg]) -> list[Arg]:
    """Names and values in a row, as commands take them."""
    return [part for pair in fields.items() for part in pair]


def entry_number(id: bytes) -> int:
    """The first half of a stream entry's id."""
    return int(id.partition(b"-")[0])


def entry_fields(row: Sequence[bytes]) -> dict[bytes, bytes]:
    """The fields of a stream entry in a script's reply, which has names and values in a row."""
    return dict(zip(row[::2], row[1::2], strict=True))


def key_of(step: Step) -> str:
    """Any of the keys that a step touches, all of which are of one slot."""
    if isinstance(step, Script):
        return step.keys[0]
    return str(step[2] if step[0] == "XGROUP" else step[1])


def to_commands(steps: Sequence[Step], cluster: bool) -> Iterator[tuple[Command, bool]]:
    """The commands to send for these steps, each with whether its reply is a list of the replies of several steps.

    Calls of one script in a row are merged; on a cluster only those on one slot.
    """

    def same_script(step: Step) -> tuple[str, int] | None:
        return (step.text, key_slot(key_of(step).encode()) if cluster else 0) if isinstance(step, Script) else None

    for script, group in groupby(steps, same_script):
        if script is None:
            yield from ((command, False) for command in cast(Iterator[Command], group))
            continue
        calls = cast(list[Script], list(group))
        text, keys = script[0], [key for call in calls for key in call.keys]
        if len(calls) == 1:
            yield ("EVAL", text, len(keys), *keys, *calls[0].args), False
        else:
            counted = [part for call in calls for part in (len(call.keys), len(call.args), *call.args)]
            yield ("EVAL", EACH % text, len(keys), *keys, *counted), True
