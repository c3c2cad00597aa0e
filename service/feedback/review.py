"""What is worth a judgement: documents offered to people, best first, none twice.

    likely      accepted; `uncertain`: abstained from. Queued as they pass (topics/counts.py), the newest of each kept
    audit       rejected and drawn by chance (models/goals/audit.py). Nothing is queued: who is drawn can be computed,
    so the
                newest documents in the memory are asked, and those taken that were rejected as they passed

Others are decided with the model as it is now, so one may have become another kind since it passed, or none. What is
offered depends on what a judgement is worth:

1. While fewer than MIN_RELEVANT relevant documents are known, likely ones by descending score, then uncertain ones:
   nothing can be promised, nor much be learned, without relevant documents.
2. Later those nearest to one of the thresholds, of both kinds: there a judgement moves most.
3. Where nobody has looked at what is accepted for long, and so a promise is at risk, likely ones before all others,
   in an order that says nothing about them: they are to speak for all that is accepted.
4. Where the topic audits, every AUDITED-th is an audit. They seldom teach, but only they say what is missed.

Never offered: what was judged or skipped, what resembles a document that was judged, skipped lately or is already on
the list, what a rule decides (but for audits: what a rule rejects may be relevant, too), and what is forgotten.
"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.core.vectors import Features
from models.goals.audit import hashes
from models.goals.evidence import MIN_RELEVANT
from models.goals.report import Report
from models.text.minhash import SeenDocuments
from service.clock import now_ms
from service.config import Config
from service.errors import NotFound
from service.feedback.goals import Goals
from service.schemas.review import Offer, Reason, ReviewPage
from service.store.documents import unpack
from service.store.topics import Store
from service.topics.background import Epochs
from service.topics.deciding import TopicVerdict, verdicts_of
from service.topics.learning import Learning
from service.topics.published import DIGITS, PublishedModel
from service.topics.registry import Registry
from service.topics.state import TopicState

AUDITED = 4
CONSIDERED = 200  # of each queue, the newest
REMINDED = 100  # skipped documents, the newest, whose near-duplicates are not offered either
ASKED, ASKINGS = 10_000, 10  # documents of the memory that are asked at a time for audits, and how many times
TRIED = 50  # drawn documents that are scored at a time
ENOUGH = 30  # judgements in agreement after which more would hardly help ...
SOME = 8  # ... if so many of them were of accepted documents: to reject rightly is easy where little is relevant
SNIPPET = 300


class ReviewCandidate(NamedTuple):
    document: str
    title: str
    text: str
    features: Features
    verdict: TopicVerdict
    came_ms: int
    everywhere: bool  # it was put to all topics


@dataclass(frozen=True, slots=True)
class Past:
    """What was judged before."""

    documents: frozenset[str]
    relevant: int
    agreed: tuple[bool, ...]  # the newest judgements of documents that the model decided: whether they agreed
    accepted: int  # how many of these were of accepted ones
    ruled: tuple[bool, ...]  # the same of those that a rule decided
    signatures: NDArray[np.uint32]


class Review:
    def __init__(
        self,
        store: Store,
        registry: Registry,
        learning: Learning,
        epochs: Epochs,
        goals: Goals,
        config: Config,
    ) -> None:
        self._store = store
        self._goals = goals
        self._registry = registry
        self._learning = learning
        self._epochs = epochs
        self._skipped_kept = config.skipped_kept

    async def offers(self, published: PublishedModel, report: Report | None, limit: int) -> ReviewPage:
        topic = published.topic
        likely, uncertain, skipped = await self._store.review.queued(topic, published.born)
        past = await self._learning.read(topic, _past)
        gone = past.documents.union(skipped)
        waiting = [[document for document in ids if document not in gone] for ids in (likely, uncertain)]
        found = await self._look(published, [document for ids in waiting for document in ids[:CONSIDERED]])
        audits = await self._audits(published, gone, -(-limit // AUDITED)) if self._goals.audit_rate(published) else []
        reminded = await self._look(published, skipped[:REMINDED])

        def chosen() -> list[Offer]:
            told = SeenDocuments(past.signatures)
            for candidate in reminded:
                told.add_if_new(candidate.features)
            ranked = _ranked(published, found, past.relevant, bool(report and report.unwatched))
            return list(_mixed(ranked, audits, told, limit))

        items = await asyncio.to_thread(chosen)
        enough, said = _worth(past, report)
        detail = said if items else f"Nothing waits for a judgement now. {said}"
        return ReviewPage(items=items, next=None, enough=enough, detail=detail)

    async def skip(self, published: PublishedModel, document: str) -> None:
        if not any(await self._store.documents.load([document])):
            raise NotFound("This document is not known (any more), and so is not offered.")
        await self._store.review.skip(
            published.topic, published.born, document, at_ms=now_ms(), kept=self._skipped_kept
        )

    async def _look(
        self, published: PublishedModel, documents: Sequence[str], since_ms: int = 0
    ) -> list[ReviewCandidate]:
        """Those of the documents that are remembered and came since then, with what the topic makes of them now."""
        blobs = [blob for blob in await self._store.documents.load(documents) if blob] if documents else []

        def look() -> list[ReviewCandidate]:
            known = [one for one in map(unpack, blobs) if one.passed(since_ms)]
            bags, verdicts = verdicts_of(
                self._registry, published.topic, [one.document for one in known], self._epochs.current
            )
            return [
                ReviewCandidate(d.id or "", d.title, d.text, bags[i][0], verdicts[i], came_ms, everywhere)
                for i, (d, came_ms, everywhere) in enumerate(known)
            ]

        return await asyncio.to_thread(look) if blobs else []

    async def _audits(self, published: PublishedModel, gone: frozenset[str], wanted: int) -> list[ReviewCandidate]:
        """Drawn documents that were rejected as they passed, from the newest part of the memory with enough of them."""
        found: list[ReviewCandidate] = []
        asked: set[str] = set(gone)
        await self._goals.sync_signatures()
        for start in range(0, ASKED * ASKINGS, ASKED):
            ids = await self._store.documents.newest(start, start + ASKED)
            if not ids:
                break
            rest = [document for document in ids if document not in asked]
            asked.update(rest)
            picked = await asyncio.to_thread(self._goals.drawn, published, rest)
            for first in range(0, len(picked), TRIED):
                # What came before the topic was not rejected by it: it says nothing of what the topic misses.
                seen = await self._look(published, picked[first : first + TRIED], published.settings.created_ms)
                seen = [one for one in seen if self._goals.chance(published, one.document, one.came_ms)]
                came = {one.document: one.came_ms for one in seen if one.everywhere}
                passed = await self._store.outbox.decisions({published.topic: came})
                found += [
                    one for one in seen if passed.get((published.topic, one.document), one.verdict.decision) == "reject"
                ]
                if len(found) >= 2 * wanted:  # near-duplicates will fall out
                    return found
        return found


def _past(state: TopicState) -> Past:
    judged = state.resolved.judged
    newest = sorted(judged.values(), key=lambda standing: -standing.latest.seq)
    rules = [standing for standing in newest if standing.first.rule][:ENOUGH]
    ruled = tuple(one.relevant == (one.first.rule == "accept_if") for one in rules)
    by_model = (one for one in newest if not one.first.rule and one.first.decision in ("accept", "reject"))
    decided = list(islice(by_model, ENOUGH))
    accepted = [standing.first.decision == "accept" for standing in decided]
    agreed = tuple(one.relevant == accept for one, accept in zip(decided, accepted, strict=True))
    return Past(frozenset(judged), state.resolved.counts()[0], agreed, sum(accepted), ruled, state.signatures)


def _ranked(
    published: PublishedModel, found: Sequence[ReviewCandidate], relevant: int, unwatched: bool
) -> list[tuple[Reason, ReviewCandidate]]:
    low, high = published.model.reject_below, published.model.accept_above
    reasons: dict[str, Reason] = {"accept": "likely", "abstain": "uncertain"}
    ids = [one.document for one in found]
    lot = dict(zip(ids, hashes(published.topic, ids).tolist(), strict=True))

    def rank(one: ReviewCandidate) -> tuple[float, float]:
        score, decision = one.verdict.score, one.verdict.decision
        if unwatched and decision == "accept":
            return -1.0, lot[one.document]
        if relevant < MIN_RELEVANT:
            return float(decision != "accept"), -score
        return min(abs(score - low), abs(score - high)), -score

    kept = [one for one in found if one.verdict.decision in reasons and not one.verdict.rule]
    return [(reasons[one.verdict.decision], one) for one in sorted(kept, key=rank)]


def _mixed(
    ranked: Sequence[tuple[Reason, ReviewCandidate]], audits: Sequence[ReviewCandidate], told: SeenDocuments, limit: int
) -> Iterator[Offer]:
    shown = (_offer(one, reason) for reason, one in ranked if told.add_if_new(one.features))
    audit = (_offer(one, "audit") for one in audits if told.add_if_new(one.features))
    for place in range(1, limit + 1):
        first, second = (audit, shown) if place % AUDITED == 0 else (shown, audit)
        offer = next(first, None) or next(second, None)
        if offer is None:
            return
        yield offer


def _offer(one: ReviewCandidate, reason: Reason) -> Offer:
    snippet = one.text if len(one.text) <= SNIPPET else one.text[:SNIPPET] + "…"
    decision, score = one.verdict.decision, round(one.verdict.score, DIGITS)
    return Offer(document=one.document, title=one.title, snippet=snippet, score=score, decision=decision, reason=reason)


def _worth(past: Past, report: Report | None) -> tuple[bool, str]:
    """Whether more judgements would hardly help, and a sentence about it. They do not help where a rule decides."""
    enough, said = _agreement(past, report)
    if wrong := past.ruled.count(False):
        n = len(past.ruled)
        said += f" Of the newest {n} judgements where a rule decides {wrong} disagree: there other rules would help."
    return enough, said


def _agreement(past: Past, report: Report | None) -> tuple[bool, str]:
    n, wrong = len(past.agreed), past.agreed.count(False)
    if report and report.state != "met":
        return False, report.detail
    if n == ENOUGH and not wrong and past.accepted < SOME:
        said = (
            f"The newest {n} judgements of decided documents all agree, but only {past.accepted} were of accepted ones"
        )
        return False, f"{said}: judge more of what is likely or uncertain."
    if n == ENOUGH and not wrong:
        met = " and the goal is met" if report else ""
        return True, f"The newest {n} judgements of decided documents all agree{met}: more would hardly help."
    if n < ENOUGH:
        return False, f"Decisions have been judged {n} times; more judgements help."
    return False, f"Of the newest {n} judgements of decided documents {wrong} disagree: more judgements help."
