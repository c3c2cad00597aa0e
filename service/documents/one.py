"""One remembered document: what was sent, what each topic decided when it passed, and who judged it.

    the document  →  the decision of each topic that existed  →  the entries of those that let it through  →  judgements

What was decided is looked up where it was delivered: the sets beside a topic's output stream know the decision for
thousands of documents (store/stream/outbox.py), the stream itself the score and the version. An entry is appended
within moments of the document being remembered, so only the next entries after that are looked through, not all of the
stream. So a decision may be known whose score is not any more.
"""

from collections.abc import Sequence

from service.clock import time_of
from service.errors import NotFound
from service.schemas import ClassifyOptions, Decision, Document, Verdict, origin
from service.schemas.remembered import Delivered, DocumentJudgement, EarlierJudgement, RememberedDocument
from service.store.resolve import StandingJudgement
from service.store.stream.documents import Remembered, unpack
from service.store.stream.outbox import Placed, order
from service.store.stream.signatures import SignatureLog
from service.store.topics import Store
from service.tasks import Pool
from service.topics.background import Epochs
from service.topics.crud import Topics
from service.topics.decisions.registry import Registry
from service.topics.decisions.results import classify
from service.topics.learning import Learning

FORGOTTEN = "This document is not remembered (any more)."
SKEW_MS = 1000  # by which the store's clock may be behind ours
NEVER_MS = -1


class Documents:
    def __init__(
        self,
        store: Store,
        topics: Topics,
        registry: Registry,
        learning: Learning,
        epochs: Epochs,
        signatures: SignatureLog,
        pool: Pool,
    ) -> None:
        self._store = store
        self._topics = topics
        self._registry = registry
        self._learning = learning
        self._epochs = epochs
        self._signatures = signatures
        self._pool = pool

    async def find(self, id: str, options: ClassifyOptions, now: bool) -> RememberedDocument:
        """The document, with the decisions on it that the options ask for: as delivered and, with `now`, as it would be
        decided now. NotFound if it is not remembered."""
        for topic in dict.fromkeys(options.topics or ()):
            await self._topics.find(topic)
        (blob,) = await self._store.documents.load([id])
        if blob is None:
            raise NotFound(FORGOTTEN)
        remembered = await self._pool.run(unpack, blob)
        document = remembered.document
        await self._signatures.catch_up()
        first = self._signatures.first(id)
        return RememberedDocument(
            document=id,
            title=document.title,
            text=document.text,
            **origin(document),
            metadata=document.metadata,
            at=time_of(remembered.came_ms),
            duplicate_of=first if first != id else None,
            decisions=await self._delivered(id, remembered, options),
            now=await self._pool.run(self._decide, document, options) if now else None,
            judgements=await self._judgements(id, options.topics),
        )

    async def _delivered(self, id: str, remembered: Remembered, options: ClassifyOptions) -> list[Delivered]:
        """By topic, what was decided when the document passed, as far as it is still known."""
        came_ms = remembered.came_ms
        topics = sorted(set(self._registry.topics if options.topics is None else options.topics))
        passed = [topic for topic in topics if remembered.passed(self._registry.get(topic).settings.created_ms)]
        # A document that is not in the topic's stream was rejected, if it was put to all topics.
        rejected_ms = came_ms if remembered.everywhere else NEVER_MS
        known = await self._store.outbox.decisions({topic: {id: rejected_ms} for topic in passed}, latest=True)
        decisions = {topic: decision for (topic, _), decision in known.items()}
        kept = [topic for topic in topics if decisions.get(topic, "reject") != "reject"]
        entries = await self._store.outbox.find(id, kept, came_ms - SKEW_MS)
        show_all = options.topics is not None or options.include == "all"
        return [
            _delivered(topic, decisions[topic], entries.get(topic))
            for topic in topics
            if topic in decisions and (show_all or decisions[topic] != "reject")
        ]

    def _decide(self, document: Document, options: ClassifyOptions) -> list[Verdict]:
        (result,) = classify(self._registry, [document], options, self._epochs.current)
        return [Verdict.model_validate(decision) for decision in result.to_dict()["decisions"]]

    async def _judgements(self, id: str, topics: Sequence[str] | None) -> list[DocumentJudgement]:
        names = sorted(set(self._registry.topics if topics is None else topics))
        judged: list[DocumentJudgement] = []
        for topic in await self._store.logs.judged(id, names):
            standing = await self._learning.read(topic, lambda state: state.resolved.judged.get(id))
            if standing:
                judged.append(_judgement(topic, standing))
        return judged


def _delivered(topic: str, decision: Decision, placed: Placed | None) -> Delivered:
    if placed is None:
        return Delivered(topic=topic, decision=decision, score=None, version=None, certain=None, at=None)
    passed = placed.passed(topic)
    return Delivered(
        topic=topic,
        decision=passed.decision,
        score=passed.score,
        version=passed.version,
        certain=passed.certain,
        at=time_of(order(placed.place)[0]),
    )


def _judgement(topic: str, standing: StandingJudgement) -> DocumentJudgement:
    first, newest = standing.first, standing.newest
    corrects = None
    if first.seq != newest.seq:
        earlier = {"relevant": first.relevant, "grade": first.grade, "by": first.judge or None}
        corrects = EarlierJudgement.model_validate(earlier | {"at": time_of(first.at_ms)})
    return DocumentJudgement(
        topic=topic,
        relevant=standing.relevant,
        grade=standing.grade,
        by=newest.judge or None,
        at=time_of(newest.at_ms),
        version=newest.seq,
        corrects=corrects,
    )
