"""The events of a topic's log, and how they are stored.

The log is a Redis stream of events; an event's number (`seq`) is also the version of the model that has folded it.

    created    the topic's settings for the first time; `edited` later; `refreshed` under a newer background. After
               another query or learner all judgements are folded from the start, and an earlier base is dropped
    judged     a document is relevant or not, or how much: its features, and the decision before
    withdrawn  a judgement is taken back
    restored   the topic is again what it was at an earlier version
    published  a model made elsewhere (an import, a retraining) is the new base; learning goes on from it, with what has
               come since the version that it was made from
    compacted  the oldest judgements are forgotten, to keep the log bounded

Each attribute has one meaning. Some of the stored names are older and have several, depending on the kind.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, NamedTuple, get_args, get_type_hints

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
    grade: int | None = None  # how relevant the document is, 0 to 3, if a grade was given
    regrades: bool = False  # another grade is all that this judgement says about its document; set by the store
    after: int = 0  # how many documents the topic had accepted when this one was first judged; set by the store
    settings: str = ""  # of the topic, JSON
    refold: bool = field(default=False, metadata=_stored_as("anew"))  # all judgements, from the start: no base any more
    model: bytes = b""
    cause: str = ""
    restores: int = field(default=0, metadata=_stored_as("version", "restored"))  # the version
    made_from: int = field(default=0, metadata=_stored_as("version", "published"))  # the version, of a retrained model
    floor: int = field(default=0, metadata=_stored_as("version", "compacted"))  # the oldest version to restore
    kept: int = 0  # judgements in force after a compaction, at most

    @property
    def label(self) -> str:
        """A form of a judgement in which two compare. Without a grade it is "0" or "1"; grade 0 is "0", too."""
        return str(int(self.relevant)) + (f":{self.grade}" if self.relevant and self.grade else "")

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
    int | None: int,
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
