"""A topic's log, and what stands after reading it.

The log is a Redis stream of events; an event's number (`seq`) is also the version of the model that has folded it.

    created    the topic's settings for the first time; `edited` later; `refreshed` under a newer background. Another
               query or learner has all judgements folded from the beginning: a base that was made before is let go of
    judged     a document is relevant or not: its features, and what had been decided before
    withdrawn  a judgement is taken back
    restored   the topic is again what it was at an earlier version
    published  a model made elsewhere (an import, a retraining) is the new base; learning goes on from it, with what has
               come since the version that it was made from
    compacted  the oldest judgements are forgotten, to keep the log bounded

`resolve` reads events into a `Lineage`: the settings, the base, and the judgements that stand, each at the place of
its *first* mention. So a corrected label is folded where the wrong one had been, a withdrawn judgement never was, and
a model is a function of its lineage alone:

    model = fold(learn, base or query, judgements after the base)

A correction cannot reach into a published base: what the base rests on and is corrected is learned after it, with the
new label, until the base is fitted again (see feedback/judge.py).

To forget is an event too, so that every version before it stays what it was; what only older versions need leaves the
log when no version that can still be restored needs it.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, NamedTuple, get_args, get_type_hints

from models.core.names import Origin

Kind = Literal["created", "edited", "refreshed", "judged", "withdrawn", "restored", "published", "compacted"]
KINDS: dict[str, Kind] = {kind: kind for kind in get_args(Kind)}


def _stored_as(name: str, *kinds: Kind) -> dict[str, Any]:
    """Metadata of an attribute that is stored under another name; of these kinds only, where several share the name."""
    return {"name": name, "kinds": kinds or None}


@dataclass(frozen=True, slots=True)
class Event:
    """One entry of the log; only the attributes that its kind needs are set, and only those are stored."""

    kind: Kind
    at_ms: int
    epoch: int  # the background in force
    seq: int = 0
    document: str = ""
    relevant: bool = False
    features: bytes = field(default=b"", metadata=_stored_as("bag"))  # of the judged document, or of the query
    words: bytes = field(default=b"", metadata=_stored_as("bag", "published"))  # of the published model
    title: str = ""
    judge: str = field(default="", metadata=_stored_as("by"))
    job: str = field(default="", metadata=_stored_as("by", "published"))  # that published the model
    decision: str = ""  # before the judgement
    delivered: str = ""  # the decision when the document passed, where that was another
    rule: str = ""  # that decided, of those in force before the judgement
    score: float = 0.0
    probability: float | None = None
    passed: bool = False  # the document had come with the stream, not with the judgement
    came_ms: int = 0  # when it had; 0 if it had not
    chance: float = 0.0  # with which a rejected document was drawn for audit, if this one was
    after: int = 0  # how many documents the topic had accepted when this one was first judged; set by the store
    settings: str = ""  # of the topic, JSON
    refold: bool = field(default=False, metadata=_stored_as("anew"))  # all judgements, from the start: no base any more
    model: bytes = b""
    cause: str = ""
    restores: int = field(default=0, metadata=_stored_as("version", "restored"))  # the version
    made_from: int = field(default=0, metadata=_stored_as("version", "published"))  # the version, of a retrained model
    floor: int = field(default=0, metadata=_stored_as("version", "compacted"))  # the oldest version to restore
    kept: int = 0  # judgements in force after a compaction, at most

    def stored(self) -> dict[str, Any]:
        """The values that are stored, by the names under which they are."""
        values = {}
        for attribute, name, default in _STORED:
            if (value := getattr(self, attribute)) != default:
                values[name] = value
        return values

    @classmethod
    def from_stored(cls, seq: int, values: Mapping[str, Any]) -> "Event":
        """The event with these values; those that its kind does not have are ignored."""
        known = _KNOWN[values["kind"].encode()]
        attributes = {known[name.encode()].name: value for name, value in values.items() if name.encode() in known}
        return cls(**{"epoch": 0, "seq": seq} | attributes)

    def to_fields(self) -> dict[str, bytes]:
        return {name: value if type(value) is bytes else str(value).encode() for name, value in self.stored().items()}

    @classmethod
    def from_fields(cls, seq: int, fields: Mapping[bytes, bytes]) -> "Event":
        known = _KNOWN[fields[b"kind"]]
        attributes: dict[str, Any] = {"epoch": 0, "seq": seq}
        for name in fields.keys() & known.keys():
            attribute, decode = known[name]
            attributes[attribute] = decode(fields[name])
        return cls(**attributes)


# Attribute, stored name and default; the value is not stored if it is the default.
_STORED: list[tuple[str, str, Any]] = [
    (f.name, f.metadata.get("name", f.name), 0 if f.name == "epoch" else f.default)
    for f in fields(Event)
    if f.name != "seq"
]
_DECODERS: dict[Any, Callable[[bytes], Any]] = {
    Kind: lambda value: KINDS[value.decode()],
    str: bytes.decode,
    bytes: bytes,
    int: int,
    float: float,
    float | None: float,
    bool: lambda _: True,  # False is not stored
}


class _Attribute(NamedTuple):
    name: str
    decode: Callable[[bytes], Any]


def _known(kind: str) -> dict[bytes, _Attribute]:
    """The attributes of events of this kind, by stored name."""
    types, own = get_type_hints(Event), [f for f in fields(Event) if kind in (f.metadata.get("kinds") or KINDS)]
    # An attribute of this very kind comes after one of all kinds, in whose place it is stored.
    own.sort(key=lambda f: bool(f.metadata.get("kinds")))
    names = {f.name: f.metadata.get("name", f.name).encode() for f in own if f.name != "seq"}
    return {name: _Attribute(attribute, _DECODERS[types[attribute]]) for attribute, name in names.items()}


_KNOWN = {kind.encode(): _known(kind) for kind in KINDS}


@dataclass(frozen=True, slots=True)
class Head:
    """Where a topic's log stands."""

    born: str
    seq: int
    floor: int


@dataclass(frozen=True, slots=True)
class StandingJudgement:
    """A judgement in force: the event that first brought the document, and the newest that labelled it."""

    first: Event
    latest: Event

    @property
    def relevant(self) -> bool:
        return self.latest.relevant

    @property
    def delivered(self) -> str:
        """What was decided when the document passed; if it did not, or nobody knows any more, before the judgement."""
        return self.first.delivered or self.first.decision

    @property
    def origin(self) -> Origin:
        """How the document came to be judged: what the judgement is evidence of (see models/goals/evidence.py)."""
        if not self.first.passed:
            return "given"
        if self.delivered != "reject":
            return "shown"
        return "audit" if self.first.chance else "found"


@dataclass(slots=True)
class Resolved:
    """What stands after the events so far. `judged` is in the order of first mention."""

    version: int
    epoch: int
    settings: Event
    base: Event | None = None
    judged: dict[str, StandingJudgement] = field(default_factory=dict)

    def take(self, event: Event) -> bool:
        """Follows one more event (never `restored`); True if all it does is add a judgement at the end."""
        self.version, self.epoch = event.seq, event.epoch
        if event.kind == "judged":
            standing = self.judged.get(event.document)
            self.judged[event.document] = StandingJudgement(standing.first if standing else event, event)
            return standing is None
        if event.kind == "withdrawn":
            self.judged.pop(event.document, None)
        elif event.kind == "compacted":
            for document in list(self.judged)[: -event.kept]:
                del self.judged[document]
        elif event.kind == "published":
            self.base = event
        elif event.kind in ("created", "edited", "refreshed"):
            self.set(event)
        return False

    def set(self, event: Event) -> None:
        """Other settings."""
        if event.refold:
            self.base = None
        self.settings = event

    def follow(self, events: Sequence[Event], after: int, upto: int) -> None:
        """Follows those of the events that lie between these versions; none of them is `restored`."""
        for event in events[bisect_right(events, after, key=_seq) : bisect_right(events, upto, key=_seq)]:
            self.take(event)

    def rests_on(self, standing: StandingJudgement) -> bool:
        """Whether the base was made from this judgement, so that the fold does not learn it again."""
        return self.base is not None and standing.latest.seq <= (self.base.made_from or self.base.seq)

    def is_stale_for(self, document: str) -> bool:
        """Whether the base was made from another judgement of the document than the one that stands."""
        standing = self.judged.get(document)
        if self.base is None or standing is None:
            return self.base is not None  # withdrawn
        return standing.first.seq <= (self.base.made_from or self.base.seq) < standing.latest.seq

    def to_fold(self) -> list[StandingJudgement]:
        return [standing for standing in self.judged.values() if not self.rests_on(standing)]

    def to_recall(self) -> list[StandingJudgement]:
        """What the base rests on and still stands."""
        return [standing for standing in self.judged.values() if self.rests_on(standing)]

    def counts(self) -> tuple[int, int]:
        """Relevant and irrelevant judgements in force."""
        relevant = sum(standing.relevant for standing in self.judged.values())
        return relevant, len(self.judged) - relevant


def resolve(events: Sequence[Event], upto: int | None = None) -> Resolved:
    """What stands after all events, or after those up to version `upto`."""
    # From the end back: a restored version stands in place of all that came before the restoring, so only the last one
    # of each stretch counts. (To follow every one on the way would take twice as long for each that restores another.)
    end = events[-1].seq if upto is None else upto
    stretches: list[tuple[Event, int]] = []
    for event in reversed(events):
        if event.kind == "restored" and event.seq <= end:
            stretches.append((event, end))
            end = event.restores
    # A compaction may leave judgements before the settings in force, so begin with the first settings there are.
    begin = next(event for event in events if event.settings)
    resolved = Resolved(begin.seq, begin.epoch, begin)
    resolved.follow(events, 0, end)
    for restored, end in reversed(stretches):
        resolved.version, resolved.epoch, resolved.settings = restored.seq, restored.epoch, restored
        resolved.follow(events, restored.seq, end)
    return resolved


def obsolete(events: Sequence[Event], floor: int) -> list[int]:
    """The events that no version from `floor` on needs. Those versions stay, to the bit, what they were.

    None while some later event still restores a version from before the floor.
    """
    if any(event.kind == "restored" and event.restores < floor < event.seq for event in events):
        return []
    then = resolve(events, floor)
    needed = {floor, then.settings.seq} | ({then.base.seq} if then.base else set())
    for standing in then.judged.values():
        needed |= {standing.first.seq, standing.latest.seq}
    return [event.seq for event in events if event.seq <= floor and event.seq not in needed]


def without(events: Iterable[Event], gone: Iterable[int]) -> list[Event]:
    forgotten = set(gone)
    return [event for event in events if event.seq not in forgotten]


def _seq(event: Event) -> int:
    return event.seq
