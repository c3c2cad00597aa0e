"""What is promised: a topic's goal, the evidence of its judgements and the counts of the stream, brought together.

The mathematics is in `models/assurance.py`; which rejected documents are drawn for audit, in `models/draws.py`.
"""

from models import assurance
from models.assurance import Report
from models.draws import drawn
from models.goals import SURE, Goal
from service.config import Settings as Config
from service.schemas import PooledRecall
from service.served import Served
from service.serving import Serving
from service.tallies import Tallies, Tally


class Promises:
    def __init__(self, tallies: Tallies, serving: Serving, config: Config) -> None:
        self._tallies = tallies
        self._serving = serving
        self._usual = config.audit_rate

    def rate(self, served: Served) -> float:
        """The share of rejected documents that the topic draws for audit."""
        goal, own = served.settings.goal, served.settings.audit
        if own is not None:
            return own
        return self._usual if goal.min_recall is not None or goal.max_error is not None else 0.0

    def chance(self, served: Served, document: str) -> float:
        """The chance with which the document was drawn for audit, 0 if it was not."""
        rate = self.rate(served)
        return rate if rate and drawn(served.topic, [document], rate)[0] else 0.0

    async def report(self, served: Served) -> Report | None:
        """How the goal stands; None without one."""
        (tally,) = await self._tallies.read([served.topic])
        return report(served, tally)

    async def pooled(self) -> PooledRecall:
        """Recall over all topics that audit."""
        auditing = [served for served in list(self._serving.topics.values()) if self.rate(served)]
        tallies = await self._tallies.read([served.topic for served in auditing])
        every = [(one.model.evidence, tally.ever) for one, tally in zip(auditing, tallies, strict=True)]
        share = assurance.pooled(every)
        audits = sum(evidence.audits for evidence, _ in every)
        return PooledRecall(
            topics=len(auditing),
            estimate=share.estimate if share else None,
            low=share.low if share else None,
            high=share.high if share else None,
            confidence=SURE,
            audits=audits,
            detail=_said(len(auditing), audits, share.low if share else None),
        )


def report(served: Served, tally: Tally) -> Report | None:
    goal = Goal(**served.settings.goal.model_dump())
    return assurance.report(goal, served.model.evidence, tally.ever, tally.as_now)


def _said(topics: int, audits: int, low: float | None) -> str:
    if not topics:
        return "No topic audits: give some a goal with `min_recall` or `max_error`, or a share to `audit`."
    if low is None:
        return "No relevant document is known yet, so nothing is known of recall."
    if not audits:
        return "No audit has been judged yet: all that is rejected may have been missed."
    where = f"{audits:,} audit{'s' * (audits > 1)} in {topics:,} topic{'s' * (topics > 1)}"
    return f"At least {100 * low:.3g} % of what is relevant is not rejected, by {where}."
