"""What is in force after reading a topic's log.

`resolve` reads events into a `Resolved`: the settings, the base, and the judgements in force, each at the place of its
*first* mention. So a corrected label is folded where the wrong one had been, a withdrawn judgement never was, and a
model is a function of these alone:

    model = fold(learn, base or query, judgements after the base)

Models learn whether a document is relevant, not how much. So another grade of what stays relevant is noted beside the
judgement, and no model changes.

A correction cannot change a published base: if a judgement that the base was fitted to is corrected, it is learned
after the base, with the new label, until the base is fitted again (see feedback/judge.py).

Forgetting is an event, too, so that every version before it stays what it was. An event leaves the log when no version
that can still be restored needs it.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Literal

from models.core.names import Origin
from service.store.events import Event

Change = Literal["one more", "another grade", "anything"]

_RELEVANT = attrgetter("latest.relevant")


@dataclass(frozen=True, slots=True)
class StandingJudgement:
    """A judgement in force: the event that first brought the document, the newest that said whether it is relevant, and
    the newest since that only gave another grade."""

    first: Event
    latest: Event
    regraded: Event | None = None

    @property
    def relevant(self) -> bool:
        return self.latest.relevant

    @property
    def newest(self) -> Event:
        return self.regraded or self.latest

    @property
    def grade(self) -> int | None:
        """How relevant the document is, 0 to 3, if a grade was given."""
        return self.newest.grade

    @property
    def label(self) -> str:
        return self.newest.label

    @property
    def delivered(self) -> str:
        """The decision when the document passed; if it never did, or that is not known any more, the one before the
        judgement."""
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
    """The state after the events so far. `judged` is in the order of first mention."""

    version: int
    epoch: int
    settings: Event
    base: Event | None = None
    judged: dict[str, StandingJudgement] = field(default_factory=dict)

    def take(self, event: Event) -> Change:
        """Applies one more event (never `restored`). Returns what a fold has to know: whether all it does is add a
        judgement at the end, or give another grade."""
        self.version, self.epoch = event.seq, event.epoch
        if event.kind == "judged":
            standing = self.judged.get(event.document)
            if standing is None:
                self.judged[event.document] = StandingJudgement(event, event)
                return "one more"
            if event.regrades and event.relevant == standing.relevant:
                self.judged[event.document] = replace(standing, regraded=event)
                return "another grade"
            self.judged[event.document] = StandingJudgement(standing.first, event)
        elif event.kind == "withdrawn":
            self.judged.pop(event.document, None)
        elif event.kind == "compacted":
            for document in list(self.judged)[: -event.kept]:
                del self.judged[document]
        elif event.kind == "published":
            self.base = event
        elif event.kind in ("created", "edited", "refreshed"):
            self.set(event)
        return "anything"

    def set(self, event: Event) -> None:
        if event.refold:
            self.base = None
        self.settings = event

    def follow(self, events: Sequence[Event], after: int, upto: int) -> None:
        """Applies the events after one version and up to another; none of them is `restored`."""
        for event in events[bisect_right(events, after, key=_seq) : bisect_right(events, upto, key=_seq)]:
            self.take(event)

    def rests_on(self, standing: StandingJudgement) -> bool:
        """Whether the base was made from this judgement, so that the fold does not learn it again."""
        return self.base is not None and standing.latest.seq <= (self.base.made_from or self.base.seq)

    def is_stale_for(self, document: str) -> bool:
        """Whether the base was made from another judgement of the document than the one in force."""
        standing = self.judged.get(document)
        if self.base is None or standing is None:
            return self.base is not None  # withdrawn
        return standing.first.seq <= (self.base.made_from or self.base.seq) < standing.latest.seq

    def to_fold(self) -> list[StandingJudgement]:
        return [standing for standing in self.judged.values() if not self.rests_on(standing)]

    def base_judgements(self) -> list[StandingJudgement]:
        """The judgements in force that the base was made from."""
        return [standing for standing in self.judged.values() if self.rests_on(standing)]

    def counts(self) -> tuple[int, int]:
        """Relevant and irrelevant judgements in force."""
        relevant = sum(map(_RELEVANT, self.judged.values()))  # after every judgement, so it must be fast
        return relevant, len(self.judged) - relevant


def resolve(events: Sequence[Event], upto: int | None = None) -> Resolved:
    """The state after all events, or after those up to version `upto`."""
    # Backwards from the end: a restored version replaces everything before the event that restored it, so only the last
    # such event counts. (Resolving forwards would take twice as long for each restored version that restores another.)
    end = events[-1].seq if upto is None else upto
    stretches: list[tuple[Event, int]] = []
    for event in reversed(events):
        if event.kind == "restored" and event.seq <= end:
            stretches.append((event, end))
            end = event.restores
    # A compaction may leave judgements from before the settings in force, so begin with the first settings in the log.
    begin = next(event for event in events if event.settings)
    resolved = Resolved(begin.seq, begin.epoch, begin)
    resolved.follow(events, 0, end)
    for restored, end in reversed(stretches):
        resolved.version, resolved.epoch, resolved.settings = restored.seq, restored.epoch, restored
        resolved.follow(events, restored.seq, end)
    return resolved


def obsolete(events: Sequence[Event], floor: int) -> list[int]:
    """The events that no version from `floor` on needs. Without them those versions stay the same, to the bit.

    Empty while a later event still restores a version from before the floor.
    """
    if any(event.kind == "restored" and event.restores < floor < event.seq for event in events):
        return []
    then = resolve(events, floor)
    needed = {floor, then.settings.seq} | ({then.base.seq} if then.base else set())
    for standing in then.judged.values():
        needed |= {standing.first.seq, standing.latest.seq, standing.newest.seq}
    return [event.seq for event in events if event.seq <= floor and event.seq not in needed]


def without(events: Iterable[Event], gone: Iterable[int]) -> list[Event]:
    forgotten = set(gone)
    return [event for event in events if event.seq not in forgotten]


def _seq(event: Event) -> int:
    return event.seq
