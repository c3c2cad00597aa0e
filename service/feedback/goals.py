"""What is promised: a topic's goal, the evidence of its judgements and the counts of the stream, brought together.

The mathematics is in `models/goals/report.py`; which rejected documents are drawn for audit, in
`models/goals/audit.py`.

A document is drawn at the rate that was in force when it came. If another rate reached back, some documents would speak
for others that have spoken for themselves: of a hundred that came while one in a hundred was drawn, nine more could be
drawn later at one in ten, and the ten together would stand for 190. (Where none was drawn before, a rate does reach
back: nobody has spoken for them.)
"""

from collections.abc import Sequence
from itertools import compress

import numpy as np

from models.goals import report as assurance
from models.goals.audit import drawn, hashes
from models.goals.evidence import BOUND_CONFIDENCE
from models.goals.promises import Targets
from models.goals.report import Report
from service.config import Config
from service.schemas import PooledRecall
from service.store.signatures import SignatureLog
from service.topics.counts import TopicCounters, TopicCounts
from service.topics.published import PublishedModel
from service.topics.registry import Registry
from service.topics.settings import audit_rate


class Goals:
    def __init__(self, counters: TopicCounters, registry: Registry, signatures: SignatureLog, config: Config) -> None:
        self._counters = counters
        self._registry = registry
        self._signatures = signatures
        self._usual = config.audit_rate

    def rate(self, published: PublishedModel) -> float:
        """The share of rejected documents that the topic draws for audit."""
        return audit_rate(published.settings, self._usual)

    async def hear(self) -> None:
        """Before anything is drawn: which documents repeat others, for they have one lot together."""
        await self._signatures.catch_up()

    def chance(self, published: PublishedModel, document: str, came_ms: int) -> float:
        """The chance with which the document was drawn for audit, 0 if it was not."""
        rate = self.rate(published)
        if rate:
            rate = next((then.rate for then in published.settings.drawn if came_ms < then.until_ms), rate)
        return rate if rate and drawn(published.topic, [self._signatures.first(document)], rate)[0] else 0.0

    def drawn(self, published: PublishedModel, documents: Sequence[str]) -> list[str]:
        """Those that may be drawn, whenever they came, in an order that says nothing about them and is the same for
        everybody."""
        firsts = [self._signatures.first(document) for document in documents]
        rate = max(self.rate(published), *(then.rate for then in published.settings.drawn), 0.0)
        mine = drawn(published.topic, firsts, rate).tolist()
        picked, of_them = list(compress(documents, mine)), list(compress(firsts, mine))
        return [picked[i] for i in np.argsort(hashes(published.topic, of_them), kind="stable").tolist()]

    async def report(self, published: PublishedModel) -> Report | None:
        """How the goal stands; None without one."""
        (counts,) = await self._counters.load([published.topic])
        return report(published, counts)

    async def pooled(self) -> PooledRecall:
        """Recall over all topics that audit."""
        auditing = [published for published in list(self._registry.topics.values()) if self.rate(published)]
        counts = await self._counters.load([published.topic for published in auditing])
        every = [(one.model.evidence, of_topic.ever) for one, of_topic in zip(auditing, counts, strict=True)]
        share = assurance.pooled_recall(every)
        audits = sum(evidence.audits for evidence, _ in every)
        return PooledRecall(
            topics=len(auditing),
            estimate=share.estimate if share else None,
            low=share.low if share else None,
            high=share.high if share else None,
            confidence=BOUND_CONFIDENCE,
            audits=audits,
            detail=_said(len(auditing), audits, share.low if share else None),
        )


def report(published: PublishedModel, counts: TopicCounts) -> Report | None:
    goal = Targets(**published.settings.goal.model_dump())
    return assurance.report(goal, published.model.evidence, counts.ever, counts.as_now)


def _said(topics: int, audits: int, low: float | None) -> str:
    if not topics:
        return "No topic audits: give some a goal with `min_recall` or `max_error`, or a share to `audit`."
    if low is None:
        return "No relevant document is known yet, so recall cannot be estimated."
    if not audits:
        return "No audit has been judged yet: all that is rejected may have been missed."
    where = f"{audits:,} audit{'s' * (audits > 1)} in {topics:,} topic{'s' * (topics > 1)}"
    return f"At least {100 * low:.3g} % of what is relevant is not rejected, by {where}."
