"""A topic on a stream, judged by a simulated reader. Documents come in order; only judgements let the topic know what
is relevant.

Batches in which nothing happens (nothing is shown or due, no epoch makes the topic stale, no audit is looked at) are
decided together, in windows that grow: a model decides many documents as fast as one.
"""

from collections.abc import Callable

from models.core.measures import Bools
from models.online.trainer import Trainer
from scripts.loop.reader import Decisions, Plan, ReaderProgress
from scripts.loop.stream import Stream
from scripts.loop.topic import LoopTopic, TopicSpec

MIN_WINDOW, MAX_WINDOW = 16, 512  # documents decided together
AUDITS = 100  # offers that a reader looks at


class Loop:
    def __init__(
        self,
        stream: Stream,
        relevant: Bools,
        spec: TopicSpec,
        plan: Plan,
        *,
        new_trainer: type[Trainer] = Trainer,
        watch: Callable[["Loop"], None] = lambda loop: None,
    ) -> None:
        """Creates the topic as soon as its reader has met the documents that it is given. `watch` is called then, and
        whenever there is a new model."""
        self.stream, self.plan, self._watch = stream, plan, watch
        self.reading = ReaderProgress(plan, relevant[: stream.train])
        self.start = self.position = stream.batch_end(self.reading.begins)
        self.topic = LoopTopic(stream, spec, self.start, new_trainer)
        self.topic.judge(dict.fromkeys(self.reading.given, True), self.start)
        self.met_at: int | None = None  # judgements after which precision was promised, and stayed so
        self._learned()

    def advance(self, n: int) -> None:
        """Lets documents pass up to the n-th, and judges all that are pending by then."""
        length = MIN_WINDOW
        while self.position < n:
            before, version = self.position, self.topic.published.version
            self._pass(min(n, self._quiet_until(), self.stream.batch_end(min(n, self.position + length))))
            if self.topic.is_stale(self.position):
                self.topic.refresh(self.position)
                self._watch(self)
            self._judge(self.reading.take_due(self.position, self.position >= n))
            if self.reading.looks_for_audits(before, self.position) or self.position >= n:
                self._audit()
            length = MIN_WINDOW if self.topic.published.version != version else min(2 * length, MAX_WINDOW)

    @property
    def decisions(self) -> Decisions:
        """What was decided about the documents that have passed since the topic was created."""
        return self.topic.decisions[self.start : self.position].copy()

    def _quiet_until(self) -> int:
        """The end of the first batch after which something is to be done, whatever is decided until then."""
        every = self.plan.reader.audit_every
        ends = [self.stream.batch_end(min((self.position // every + 1) * every, self.stream.passing))]
        stale = self.stream.begins(self.topic.stale_at)
        ends += [stale] if stale > self.position else []
        if (due := self.reading.next_due) is not None:
            ends.append(self.stream.batch_end(min(max(due, self.position + 1), self.stream.passing)))
        return min(ends)

    def _pass(self, until: int) -> None:
        """Lets documents pass, up to the end of the first batch of which something is judged at once."""
        first = self.position
        decisions, counted = self.topic.decide(first, until)
        noticed = self.reading.noticed(first, decisions)
        if len(noticed):
            due = min(int(noticed[0]) + self.plan.reader.delay + 1, self.stream.passing)
            until = min(until, self.stream.batch_end(due))
        size = until - first
        self.topic.take(first, decisions[:size], counted[:size])
        self.reading.show(first, decisions[:size])
        self.position = until

    def _judge(self, labels: dict[int, bool]) -> None:
        if labels:
            self.topic.judge(labels, self.position)
            self._learned()

    def _audit(self) -> None:
        if self.topic.audits(self.position):
            offered = [i for i, offer in self.topic.offers(self.position, AUDITS) if offer.reason == "audit"]
            self._judge(self.reading.take_audits(offered))

    def _learned(self) -> None:
        judged = len(self.reading.judged) - len(self.reading.given)
        self.met_at = (self.met_at or judged) if self.topic.published.model.evidence.certified else None
        self._watch(self)
