"""What is worth a judgement: documents offered to people, best first, none twice.

    likely      accepted. Queued as they pass (topics/counts.py); the newest are kept
    uncertain   abstained on. Queued likewise
    audit       rejected, and drawn by chance (models/goals/audit.py). Not queued: which documents are drawn can be
                computed, so the newest in the memory are checked, and those taken that were rejected when they passed

Likely and uncertain documents are decided again with the current model, so one may have changed its kind since it
passed, or be rejected now. The order depends on what a judgement is worth:

1. While fewer than MIN_RELEVANT relevant documents are known: likely ones by descending score, then uncertain ones.
   Without relevant documents nothing can be promised, and little be learned.
2. Later: those nearest to one of the thresholds, of both kinds. There a judgement changes most.
3. If no accepted document has been judged for long, which puts a goal at risk: likely ones first, in random order, so
   that they are a fair sample of what is accepted.
4. If the topic audits: every AUDIT_EVERY-th is an audit. They seldom teach, but only they show what is missed.

Never offered: documents that were judged or skipped; those that resemble one that was judged, skipped lately or is
already on the list; those that a rule decides (except audits: what a rule rejects may be relevant, too); and those that
the memory has forgotten.
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
from models.goals.reporting.report import Report
from models.text.minhash import SeenDocuments
from service.clock import now_ms, time_of
from service.config import Config
from service.errors import NotFound
from service.feedback.goals import Goals
from service.schemas import Document, origin
from service.schemas.review import Offer, Reason, ReviewPage
from service.store.stream.documents import unpack
from service.store.topics import Store
from service.topics.background import Epochs
from service.topics.decisions.deciding import TopicVerdict, verdicts_of
from service.topics.decisions.registry import Registry
from service.topics.learning import Learning
from service.topics.published import DIGITS, PublishedModel
from service.topics.state import TopicState

AUDIT_EVERY = 4
MAX_QUEUED = 200  # of each queue, the newest that are considered
MAX_SKIPPED = 100  # skipped documents, the newest, whose near-duplicates are not offered either
MEMORY_PAGE, MEMORY_PAGES = 10_000, 10  # documents of the memory that are checked for audits at a time; how many times
SCORE_BATCH = 50  # drawn documents that are scored at a time
MIN_AGREED = 30  # judgements in agreement after which more would hardly help ...
MIN_ACCEPTED = 8  # ... if this many were of accepted documents: rejecting rightly is easy where little is relevant
SNIPPET_CHARS = 300


class ReviewCandidate(NamedTuple):
    document: Document
    features: Features
    verdict: TopicVerdict
    came_ms: int
    everywhere: bool  # it was put to all topics

    @property
    def id(self) -> str:
        return str(self.document.id)


@dataclass(frozen=True, slots=True)
class Past:
    """The judgements so far."""

    documents: frozenset[str]
    relevant: int
    agreed: tuple[bool, ...]  # whether the newest judgements agreed, where the model had decided
    accepted: int  # how many of these were about accepted documents
    rule_agreed: tuple[bool, ...]  # whether the newest judgements agreed, where a rule had decided
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
        """The best documents to judge next, and whether more judgements would still help."""
        topic = published.topic
        likely, uncertain, skipped = await self._store.review.queued(topic, published.born)
        past = await self._learning.read(topic, past_of)
        done = past.documents.union(skipped)
        waiting = [[document for document in ids if document not in done] for ids in (likely, uncertain)]
        queued = await self._load(published, [document for ids in waiting for document in ids[:MAX_QUEUED]])
        audits: list[ReviewCandidate] = []
        if self._goals.audit_rate(published):
            audits = await self._load_audits(published, done, -(-limit // AUDIT_EVERY))
        recently_skipped = await self._load(published, skipped[:MAX_SKIPPED])
        unwatched = bool(report and report.unwatched)
        items = await asyncio.to_thread(choose, published, past, queued, audits, recently_skipped, unwatched, limit)
        enough, detail = _worth(past, report)
        detail = detail if items else f"There is nothing to judge right now. {detail}"
        return ReviewPage(items=items, next=None, enough=enough, detail=detail)

    async def skip(self, published: PublishedModel, document: str) -> None:
        if not any(await self._store.documents.load([document])):
            raise NotFound("This document is not remembered (any more), so it would not be offered anyway.")
        await self._store.review.skip(
            published.topic, published.born, document, at_ms=now_ms(), kept=self._skipped_kept
        )

    async def skipped(self, published: PublishedModel) -> list[str]:
        """The documents that are not to be offered again, the latest first."""
        return (await self._store.review.queued(published.topic, published.born)).skipped

    async def _load(
        self, published: PublishedModel, documents: Sequence[str], since_ms: int = 0
    ) -> list[ReviewCandidate]:
        """Those of the documents that are remembered and came since then, as the topic decides them now."""
        blobs = [blob for blob in await self._store.documents.load(documents) if blob] if documents else []

        def decide() -> list[ReviewCandidate]:
            remembered = [each for each in map(unpack, blobs) if each.passed(since_ms)]
            bags, verdicts = verdicts_of(
                self._registry, published.topic, [each.document for each in remembered], self._epochs.current
            )
            return [
                ReviewCandidate(document, bags[i][0], verdicts[i], came_ms, everywhere)
                for i, (document, came_ms, everywhere) in enumerate(remembered)
            ]

        return await asyncio.to_thread(decide) if blobs else []

    async def _load_audits(self, published: PublishedModel, done: frozenset[str], wanted: int) -> list[ReviewCandidate]:
        """Drawn documents that were rejected when they passed, the newest that the memory has."""
        audits: list[ReviewCandidate] = []
        checked: set[str] = set(done)
        await self._goals.sync_signatures()
        for start in range(0, MEMORY_PAGE * MEMORY_PAGES, MEMORY_PAGE):
            ids = await self._store.documents.newest(start, start + MEMORY_PAGE)
            if not ids:
                break
            rest = [document for document in ids if document not in checked]
            checked.update(rest)
            drawn = await asyncio.to_thread(self._goals.drawn, published, rest)
            for first in range(0, len(drawn), SCORE_BATCH):
                # A document that came before the topic was not rejected by it, so it says nothing about what is missed.
                batch = await self._load(published, drawn[first : first + SCORE_BATCH], published.settings.created_ms)
                batch = [each for each in batch if self._goals.chance(published, each.id, each.came_ms)]
                came = {each.id: each.came_ms for each in batch if each.everywhere}
                passed = await self._store.outbox.decisions({published.topic: came})
                for candidate in batch:
                    key = published.topic, candidate.id
                    if passed.get(key, candidate.verdict.decision) == "reject":
                        audits.append(candidate)
                if len(audits) >= 2 * wanted:  # near-duplicates will be dropped
                    return audits
        return audits


def choose(
    published: PublishedModel,
    past: Past,
    queued: Sequence[ReviewCandidate],
    audits: Sequence[ReviewCandidate],
    skipped: Sequence[ReviewCandidate],
    unwatched: bool,
    limit: int,
) -> list[Offer]:
    """The best of the queued documents and of the audits, best first; see above."""
    seen = SeenDocuments(past.signatures)
    for candidate in skipped:
        seen.add_if_new(candidate.features)
    return list(_mixed(_ranked(published, queued, past.relevant, unwatched), audits, seen, limit))


def past_of(state: TopicState) -> Past:
    judged = state.resolved.judged
    newest = sorted(judged.values(), key=lambda standing: -standing.latest.seq)
    rules = [standing for standing in newest if standing.first.rule][:MIN_AGREED]
    rule_agreed = tuple(standing.relevant == (standing.first.rule == "accept_if") for standing in rules)
    by_model = (each for each in newest if not each.first.rule and each.first.decision in ("accept", "reject"))
    decided = list(islice(by_model, MIN_AGREED))
    accepted = [standing.first.decision == "accept" for standing in decided]
    agreed = tuple(standing.relevant == accept for standing, accept in zip(decided, accepted, strict=True))
    return Past(frozenset(judged), state.resolved.counts()[0], agreed, sum(accepted), rule_agreed, state.signatures)


def _ranked(
    published: PublishedModel, queued: Sequence[ReviewCandidate], relevant: int, unwatched: bool
) -> list[tuple[Reason, ReviewCandidate]]:
    low, high = published.model.reject_below, published.model.accept_above
    reasons: dict[str, Reason] = {"accept": "likely", "abstain": "uncertain"}
    ids = [candidate.id for candidate in queued]
    random_place = dict(zip(ids, hashes(published.topic, ids).tolist(), strict=True))

    def rank(candidate: ReviewCandidate) -> tuple[float, float]:
        score, decision = candidate.verdict.score, candidate.verdict.decision
        if unwatched and decision == "accept":
            return -1.0, random_place[candidate.id]
        if relevant < MIN_RELEVANT:
            return float(decision != "accept"), -score
        return min(abs(score - low), abs(score - high)), -score

    kept = [each for each in queued if each.verdict.decision in reasons and not each.verdict.rule]
    return [(reasons[candidate.verdict.decision], candidate) for candidate in sorted(kept, key=rank)]


def _mixed(
    ranked: Sequence[tuple[Reason, ReviewCandidate]], audits: Sequence[ReviewCandidate], seen: SeenDocuments, limit: int
) -> Iterator[Offer]:
    """Ranked documents, with an audit in every AUDIT_EVERY-th place, and none that resembles one seen before."""
    shown = (_offer(candidate, reason) for reason, candidate in ranked if seen.add_if_new(candidate.features))
    audit = (_offer(candidate, "audit") for candidate in audits if seen.add_if_new(candidate.features))
    for place in range(1, limit + 1):
        first, second = (audit, shown) if place % AUDIT_EVERY == 0 else (shown, audit)
        offer = next(first, None) or next(second, None)
        if offer is None:
            return
        yield offer


def _offer(candidate: ReviewCandidate, reason: Reason) -> Offer:
    document, verdict = candidate.document, candidate.verdict
    text = document.text
    return Offer(
        document=candidate.id,
        title=document.title,
        snippet=text if len(text) <= SNIPPET_CHARS else text[:SNIPPET_CHARS] + "…",
        score=round(verdict.score, DIGITS),
        decision=verdict.decision,
        reason=reason,
        at=time_of(candidate.came_ms),
        **origin(document),
    )


def _worth(past: Past, report: Report | None) -> tuple[bool, str]:
    """Whether more judgements would hardly help, and a sentence about it. They do not help where a rule decides."""
    enough, detail = _agreement(past, report)
    if wrong := past.rule_agreed.count(False):
        n = len(past.rule_agreed)
        detail += f" {wrong} of the newest {n} judgements where a rule decided disagree with it; change the rules."
    return enough, detail


def _agreement(past: Past, report: Report | None) -> tuple[bool, str]:
    n, wrong = len(past.agreed), past.agreed.count(False)
    if report and report.state != "met":
        return False, report.detail
    if n < MIN_AGREED:
        return False, f"{n} decisions have been judged so far; more judgements help."
    if wrong:
        return False, f"{wrong} of the newest {n} judgements disagree with the decision; more judgements help."
    agree = f"The newest {n} judgements all agree with the decisions"
    if past.accepted < MIN_ACCEPTED:
        few = f"but only {past.accepted} are about accepted documents"
        return False, f"{agree}, {few}; judge some that are likely or uncertain."
    met = " and the goal is met" if report else ""
    return True, f"{agree}{met}; more would hardly help."
