"""A topic in the service: decided, judged, learned, served, refreshed and reviewed by the service's code.

There is no store: the log is the list of events of its state, and what the store replies (the next number, the count of
accepted documents, what was decided when a document passed) is known here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from models.core.measures import Bools
from models.goals.promises import Targets
from models.online.trainer import Trainer
from scripts.loop.reader import ABSTAIN, ACCEPT, REJECT, Decisions
from scripts.loop.stream import Stream
from scripts.loop.tally import Tally
from service.feedback.goals import audit_chance, may_be_drawn, report
from service.feedback.judge import with_decisions
from service.feedback.review import AUDIT_EVERY, MAX_QUEUED, ReviewCandidate, choose, past_of
from service.schemas import TARGETS, Decision, Document, Goal, Learner, Pocket
from service.schemas.review import Offer
from service.store.events import Event, Head, Kind
from service.store.stream.documents import partition_of
from service.topics.background import max_epochs_behind, place_of
from service.topics.counts import TopicCounts
from service.topics.decisions.deciding import TopicVerdict, verdicts_of_bags
from service.topics.decisions.registry import Registry
from service.topics.decisions.repeats import as_original, counts_in
from service.topics.features import log_features
from service.topics.published import PublishedModel
from service.topics.settings import TopicSettings, audit_rate
from service.topics.state import TopicState

CODES: Mapping[str, int] = {"reject": REJECT, "abstain": ABSTAIN, "accept": ACCEPT}
NAMES: Mapping[int, Decision] = {REJECT: "reject", ABSTAIN: "abstain", ACCEPT: "accept"}


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """What the topic is created with."""

    topic: str
    query: str
    goal: Targets = field(default_factory=Targets)
    kind: str = "wh"
    params: Mapping[str, object] = field(default_factory=dict)
    audit: float | None = None
    pocket: Pocket = field(default_factory=Pocket)

    def fields(self) -> dict[str, object]:
        """The same as a request has it."""
        goal = {name: value for name, value in self.goal_fields().items() if value is not None}
        learner = {"kind": self.kind, "params": dict(self.params)}
        fields = {"name": self.topic, "query": self.query, "goal": goal, "learner": learner, "audit": self.audit}
        return {**fields, "pocket": self.pocket.model_dump()}

    def goal_fields(self) -> dict[str, Any]:
        """The goal as a topic's settings have it; experiments ask for no measure to maximise, and set no cuts."""
        return {name: getattr(self.goal, name) for name in (*TARGETS, "mode")}


class LoopTopic:
    def __init__(self, stream: Stream, spec: TopicSpec, position: int, new_trainer: type[Trainer] = Trainer) -> None:
        """Creates the topic when so many documents have come."""
        self._stream, self._name = stream, spec.topic
        self._registry = Registry(stream.analysis)
        now_ms = stream.now_ms(position)
        settings = TopicSettings(
            name=spec.topic,
            query=spec.query,
            learner=Learner.model_validate({"kind": spec.kind, "params": spec.params}),
            goal=Goal(**spec.goal_fields()),
            audit=spec.audit,
            pocket=spec.pocket,
            created_ms=now_ms,
        )
        self._query = spec.query
        self._created_ms = now_ms
        epoch = stream.epoch(position)
        created = Event("created", now_ms, stream.epochs[epoch].number, 1, settings=settings.model_dump_json())
        created = replace(created, features=self._query_features(epoch))
        self._state = TopicState(
            spec.topic, Head("", 1, 0), [created], stream.config.served_weights, new_trainer=new_trainer
        )
        self._tally = Tally(stream.counted(position), stream.config.review_kept)
        self.decisions = np.zeros(stream.size, np.int8)  # of documents that have passed since
        self._publish()
        self._drawn = self._drawn_documents()

    # -- deciding ------------------------------------------------------------------------------------------------------

    def decide(self, start: int, end: int) -> tuple[Decisions, Bools]:
        """What is decided about these documents when they come, and which of those that repeat others count here."""
        verdicts = verdicts_of_bags(self._registry, self._name, *self._stream.part(start, end))
        decisions = np.fromiter((CODES[verdict.decision] for verdict in verdicts), np.int8, end - start)
        counted = np.zeros(end - start, np.bool_)
        first = self._stream.first[start:end]
        copies = start + np.flatnonzero(first != np.arange(start, end))
        if len(copies):
            originals = verdicts_of_bags(self._registry, self._name, *self._stream.originals(copies))
            for i, original in zip(copies.tolist(), originals, strict=True):
                merged, alike = as_original([verdicts[i - start]], [original])
                decision = merged[0].decision if merged else "reject"
                decisions[i - start] = CODES[decision]
                kept = [self._name] if decision != "reject" else []
                younger = self._stream.came_ms(int(first[i - start])) < self._created_ms
                counted[i - start] = bool(counts_in(kept, alike, frozenset([self._name] if younger else [])))
        return decisions, counted

    def take(self, start: int, decisions: Decisions, counted: Bools) -> None:
        """Notes documents that have passed from `start` on: decides nothing, counts and queues."""
        stream, end = self._stream, start + len(decisions)
        self.decisions[start:end] = decisions
        is_copy = stream.first[start:end] != np.arange(start, end)
        here = (~is_copy & (decisions != REJECT)) | counted
        while here.any():  # by batch
            batch_end = stream.batch_end(start + int(np.argmax(here)) + 1)
            size = batch_end - start
            of_batch = np.flatnonzero(here[:size])
            accepted = (start + of_batch[decisions[of_batch] == ACCEPT]).tolist()
            abstained = (start + of_batch[decisions[of_batch] == ABSTAIN]).tolist()
            self._tally.add(stream.counted(batch_end), int(np.count_nonzero(counted[:size])), accepted, abstained)
            start, decisions, counted, here = batch_end, decisions[size:], counted[size:], here[size:]

    def verdicts(self, position: int) -> list[TopicVerdict]:
        """The verdicts on the documents for testing, when so many documents have come."""
        return verdicts_of_bags(self._registry, self._name, *self._stream.as_of(position))

    # -- learning ------------------------------------------------------------------------------------------------------

    def judge(self, labels: Mapping[int, bool], position: int) -> None:
        """Learns judgements of documents that were not judged before, all in one request, when so many have come."""
        if not labels:
            return
        stream, place = self._stream, self._stream.epoch(position)
        events = [self._judged(i, relevant, place, position) for i, relevant in labels.items()]
        seq = self._state.head.seq
        events = [replace(event, seq=seq + n, after=self._tally.accepted) for n, event in enumerate(events, 1)]
        self._advance(events)
        self._publish()
        kept = stream.config.judgements_kept
        if compaction := self._state.compaction(kept, stream.config.versions_kept):
            floor, gone = compaction
            event = self._event("compacted", position, floor=floor, kept=kept)
            self._advance([event], gone, floor)
            self._publish()

    def is_stale(self, position: int) -> bool:
        """Whether the topic is too far behind the epoch that is current when so many documents have come."""
        return self._stream.epoch(position) >= self.stale_at

    def refresh(self, position: int) -> None:
        """Moves the topic to that epoch."""
        settings, features = self._state.resolved.settings.settings, self._query_features(self._stream.epoch(position))
        self._advance([self._event("refreshed", position, settings=settings, features=features)])
        self._publish()

    @property
    def stale_at(self) -> int:
        """The place of the first epoch for which the topic is too far behind, or under an old projection."""
        place = place_of(self.published.epoch)
        too_far = place + max_epochs_behind(place, self.published.settings.goal.max_abstain) + 1
        return min(too_far, self._stream.next_projection(place))

    # -- looking -------------------------------------------------------------------------------------------------------

    def offers(self, position: int, limit: int) -> list[tuple[int, Offer]]:
        """What is offered for review when so many documents have come."""
        past = past_of(self._state)
        queues = (reversed(self._tally.likely), reversed(self._tally.uncertain))
        waiting = ([i for i in queue if self._stream.ids[i] not in past.documents] for queue in queues)
        queued = self._candidates([i for queue in waiting for i in queue[:MAX_QUEUED]], position)
        audits = self._candidates(self.audits(position)[: 2 * -(-limit // AUDIT_EVERY)], position)
        goal = report(self.published, self.counts(position), self._stream.config.audit_rate)
        offers = choose(self.published, past, queued, audits, [], bool(goal and goal.unwatched), limit)
        return [(self._stream.place[offer.document], offer) for offer in offers]

    def audits(self, position: int) -> list[int]:
        """The documents that were drawn for audit, rejected, and not judged since."""
        judged = self._state.resolved.judged
        return [
            i for i in self._drawn if i < position and self.decisions[i] == REJECT and self._stream.ids[i] not in judged
        ]

    def counts(self, position: int) -> TopicCounts:
        return self._tally.counts(self._stream.counted(position))

    # -- steps ---------------------------------------------------------------------------------------------------------

    def _judged(self, document: int, relevant: bool, epoch: int, position: int) -> Event:
        stream, passed, came_ms = self._stream, self._has_passed(document, position), 0
        chance, delivered = 0.0, None
        if passed:
            came_ms, delivered = stream.came_ms(document), NAMES[int(self.decisions[document])]
            chance = self._chance(document)
        event = Event(
            "judged",
            stream.now_ms(position),
            stream.epochs[epoch].number,
            document=stream.ids[document],
            relevant=relevant,
            features=stream.features(document, epoch),
            passed=passed,
            came_ms=came_ms,
            chance=chance,
        )
        return with_decisions(event, self.published, delivered)

    def _has_passed(self, document: int, position: int) -> bool:
        return document < position and self._stream.came_ms(document) >= self._created_ms

    def _event(self, kind: Kind, position: int, **attributes: Any) -> Event:
        epoch = self._stream.epochs[self._stream.epoch(position)]
        return Event(kind, self._stream.now_ms(position), epoch.number, self._state.head.seq + 1, **attributes)

    def _advance(self, events: Sequence[Event], gone: Sequence[int] = (), floor: int | None = None) -> None:
        head = self._state.head
        head = replace(head, seq=events[-1].seq, floor=head.floor if floor is None else floor)
        self._state.advance(head, events, gone)

    def _publish(self) -> None:
        """Builds the model as of the last event, and serves it."""
        epoch = self._stream.epochs[place_of(self._state.resolved.epoch)]
        self.published: PublishedModel = self._state.build_model(epoch)
        self._registry.put(self.published)

    def _query_features(self, epoch: int) -> bytes:
        return log_features("", self._query, self._stream.analysis, self._stream.epochs[epoch])

    def _chance(self, document: int) -> float:
        first = self._stream.ids[int(self._stream.first[document])]
        return audit_chance(self.published, first, self._stream.came_ms(document), self._stream.config.audit_rate)

    def _drawn_documents(self) -> list[int]:
        """The documents of the stream that may be drawn, in the order in which they are offered."""
        stream, rate = self._stream, self._stream.config.audit_rate
        if not audit_rate(self.published.settings, rate):
            return []
        passing = [i for i in range(stream.passing) if stream.came_ms(i) >= self._created_ms]
        passing.sort(key=lambda i: (partition_of(stream.ids[i]), -i))  # as the memory lists them
        firsts = [stream.ids[int(stream.first[i])] for i in passing]
        drawn = may_be_drawn(self.published, [stream.ids[i] for i in passing], firsts, rate)
        return [stream.place[document] for document in drawn]

    def _candidates(self, documents: Sequence[int], position: int) -> list[ReviewCandidate]:
        """Documents as the topic decides them now."""
        if not documents:
            return []
        stream, places = self._stream, np.array(documents, np.int64)
        counted, idf = stream.as_of(position, places)
        verdicts = verdicts_of_bags(self._registry, self._name, counted, idf)
        return [
            ReviewCandidate(self._document(i), counted[n][0], verdicts[n], stream.came_ms(i), True)
            for n, i in enumerate(documents)
        ]

    def _document(self, i: int) -> Document:
        title, text = self._stream.documents[i]
        return Document.model_construct(id=self._stream.ids[i], title=title, text=text)  # unchecked: some are empty
