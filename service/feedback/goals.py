"""How goals stand: a topic's goal, the evidence of its judgements and the counts of the stream, brought together.

The mathematics is in `models/goals/reporting/report.py`; which rejected documents are drawn for audit, in
`models/goals/audit.py`.

A document is drawn at the rate that was in force when it came. If a later rate applied to it, documents would be
counted twice: of a hundred that came while one in a hundred was drawn, nine more could be drawn later at one in ten,
and the ten together would stand for 190. (Where none was drawn before, a rate does apply to earlier documents: nothing
stands for them yet.)

A goal that changes its state is announced in the topic's output stream (store/stream/outbox.py): after judgements by
the process that learned them, and every minute by housekeeping, since the state also follows from what passes, and a
process may have died before it looked.
"""

import asyncio
from collections.abc import Sequence
from itertools import compress

import numpy as np
import structlog

from models.goals.audit import drawn, hashes
from models.goals.evidence import BOUND_CONFIDENCE, Evidence
from models.goals.reporting import report as assurance
from models.goals.reporting.report import Report
from models.goals.reporting.volume import StreamCounts
from service.config import Config
from service.errors import StoreUnavailable
from service.schemas import PooledRecall
from service.sentences import number_of
from service.store.stream.outbox import announce_cmd
from service.store.stream.signatures import SignatureLog
from service.store.topics import Store
from service.topics.counts import TopicCounters, TopicCounts
from service.topics.decisions.registry import Registry
from service.topics.published import PublishedModel
from service.topics.settings import audit_rate, targets_of

log = structlog.get_logger("sluice.feedback")


class Goals:
    def __init__(
        self, store: Store, counters: TopicCounters, registry: Registry, signatures: SignatureLog, config: Config
    ) -> None:
        self._store = store
        self._out_kept = config.out_kept
        self._counters = counters
        self._registry = registry
        self._signatures = signatures
        self._default_rate = config.audit_rate

    def audit_rate(self, published: PublishedModel) -> float:
        """The share of rejected documents that the topic draws for audit."""
        return audit_rate(published.settings, self._default_rate)

    async def sync_signatures(self) -> None:
        """Loads which documents repeat others, because they are drawn together. To be called before any drawing."""
        await self._signatures.catch_up()

    def chance(self, published: PublishedModel, document: str, came_ms: int) -> float:
        """The probability with which the document was drawn for audit; 0 if it was not drawn."""
        return audit_chance(published, self._signatures.first(document), came_ms, self._default_rate)

    def drawn(self, published: PublishedModel, documents: Sequence[str]) -> list[str]:
        """The documents that may have been drawn, whenever they came, in an order that is random but the same in every
        process."""
        firsts = [self._signatures.first(document) for document in documents]
        return may_be_drawn(published, documents, firsts, self._default_rate)

    async def report(self, published: PublishedModel) -> Report | None:
        """How the topic's goal stands; None if it has none."""
        (counts,) = await self._counters.load([published.topic])
        return report(published, counts, self._default_rate)

    async def announce(self, topics: Sequence[PublishedModel]) -> list[Report | None]:
        """Announces each goal whose state has changed in its topic's stream, once, even if other
        processes look at the same time. Returns how the goals stand."""
        counts = await self._counters.load([published.topic for published in topics])
        reports = await asyncio.to_thread(self._reports, topics, counts)
        commands = [
            announce_cmd(
                published.topic,
                published.born,
                goal.state if goal else "",
                published.version,
                count.ever.documents,
                goal.detail if goal else "",
                self._out_kept,
            )
            for published, count, goal in zip(topics, counts, reports, strict=True)
        ]
        await self._store.run(commands)
        return reports

    async def announce_after(self, topic: str) -> None:
        """Does the same for a topic that has just learned. What cannot be announced now is, later, by housekeeping."""
        published = self._registry.topics.get(topic)
        if published and published.settings.goal.asks:
            try:
                await self.announce([published])
            except StoreUnavailable as error:
                log.warning("the state of a goal is announced later", topic=topic, detail=error.detail)

    def _reports(self, topics: Sequence[PublishedModel], counts: Sequence[TopicCounts]) -> list[Report | None]:
        pairs = zip(topics, counts, strict=True)
        return [report(published, count, self._default_rate) for published, count in pairs]

    async def pooled(self) -> PooledRecall:
        """Recall over all topics whose audits are asked for, or judged."""
        topics = list(self._registry.topics.values())
        auditing = [topic for topic in topics if self.audit_rate(topic) and _measures_recall(topic)]
        counts = await self._counters.load([published.topic for published in auditing])
        every = [(topic.model.evidence, of_topic.ever) for topic, of_topic in zip(auditing, counts, strict=True)]
        share = assurance.pooled_recall(every)
        evidence, passed = sum((e for e, _ in every), Evidence()), sum((c for _, c in every), StreamCounts())
        return PooledRecall(
            topics=len(auditing),
            estimate=share.estimate if share and assurance.can_estimate_recall(evidence, passed) else None,
            low=share.low if share else None,
            high=share.high if share else None,
            confidence=BOUND_CONFIDENCE,
            audits=evidence.audits,
            detail=_detail(len(auditing), evidence.audits, passed.rejected, share.low if share else None),
        )


def audit_chance(published: PublishedModel, first: str, came_ms: int, default_rate: float) -> float:
    """The probability with which a document was drawn for audit that came then, or repeats this first one; 0 if it was
    not drawn."""
    rate = audit_rate(published.settings, default_rate)
    if rate:
        rate = next((past.rate for past in published.settings.drawn if came_ms < past.until_ms), rate)
    return rate if rate and drawn(published.topic, [first], rate)[0] else 0.0


def may_be_drawn(
    published: PublishedModel, documents: Sequence[str], firsts: Sequence[str], default_rate: float
) -> list[str]:
    """The documents that may have been drawn, in the order of their hashes; `firsts` are those that they repeat, or
    themselves."""
    rate = max(audit_rate(published.settings, default_rate), *(past.rate for past in published.settings.drawn), 0.0)
    mask = drawn(published.topic, firsts, rate).tolist()
    picked, picked_firsts = list(compress(documents, mask)), list(compress(firsts, mask))
    return [picked[i] for i in np.argsort(hashes(published.topic, picked_firsts), kind="stable").tolist()]


def report(published: PublishedModel, counts: TopicCounts, default_rate: float) -> Report | None:
    """How a goal stands; `default_rate` is the deployment's rate of audits."""
    goal = targets_of(published.settings)
    audits = audit_rate(published.settings, default_rate) > 0
    return assurance.report(goal, published.model.evidence, counts.ever, counts.as_now, audits)


def _measures_recall(published: PublishedModel) -> bool:
    """Whether a topic that audits counts in the recall of all: its user asked for audits, or judges them. Of the others
    nothing is known, and all that they rejected would count as missed."""
    settings = published.settings
    asked = (settings.audit, settings.goal.min_recall, settings.goal.max_error)
    return published.model.evidence.audits > 0 or any(each is not None for each in asked)


def _detail(topics: int, audits: int, rejected: int, low: float | None) -> str:
    if not topics:
        return "No audit has been judged yet: judge those that review offers, or set a higher `audit`."
    if low is None:
        return "No relevant document is known yet, so recall cannot be estimated."
    if not rejected:
        return "Nothing has been rejected yet, so nothing has been missed."
    bound = f"At least {100 * low:.3g} % of the relevant documents are not rejected"
    if not audits:
        return f"{bound}. No audit has been judged yet, so more than that is not known."
    return f"{bound}, judging by {number_of(audits, 'audit')} in {number_of(topics, 'topic')}."
