"""Known items: relevant documents that somebody found elsewhere, to test what a topic rejects. Never learned from.

    recall = kept / n        of n known items, those that are not rejected now, with the bounds of Clopper and Pearson

The estimate is honest as far as the documents were found independently of the filter and its query. So a document that
was judged, or resembles one that was, does not count, and near-duplicates among the known items count once.

Known items are stored beside the log and never influence the model. Their words and counts are kept, not the text; they
are weighted by the current frequencies, as a new document would be. So they are tested with the model alone, and the
answer says so if the topic has rules. Rejected: to apply those rules that words alone can satisfy (single words,
without a field, where text is neither stemmed nor stripped of function words, and not very long); half of the rules is
worse than none.
"""

import asyncio
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from models.core import intervals
from models.core.vectors import Bag
from models.goals.evidence import BOUND_CONFIDENCE
from models.text.analysis import Analysis
from models.text.minhash import SeenDocuments
from service.config import Config
from service.errors import FieldError, NotFound, TooLarge
from service.feedback.judge import TITLE_CHARS, UNKNOWN, id_of
from service.schemas import Document
from service.schemas.parsing import check_length
from service.schemas.review import KnownItem, KnownPage, KnownRecall
from service.store.known import KnownDocument
from service.store.stream.documents import unpack
from service.store.topics import Store
from service.topics.background import Epoch, Epochs
from service.topics.decisions.rules import compile_rules
from service.topics.features import log_features
from service.topics.learning import Learning
from service.topics.published import DIGITS, PublishedModel
from service.topics.state import TopicState, to_bag

MODEL_ONLY = "Tested with the model alone: this topic's rules need the text, and known items are kept as words."


class Known:
    def __init__(self, store: Store, learning: Learning, epochs: Epochs, analysis: Analysis, config: Config) -> None:
        self._store = store
        self._analysis = analysis
        self._max_chars = config.max_text_chars
        self._learning = learning
        self._epochs = epochs
        self._max_items = config.known_kept

    async def add(self, published: PublishedModel, documents: Sequence[str | Document]) -> tuple[int, int]:
        """Saves these items, all or none. Returns how many there are now, and how many of them are new."""
        ids = [id_of(document) for document in documents]
        remembered = await self._store.documents.load(ids)
        blobs: dict[str, bytes] = {}
        epoch = self._epochs.current
        for i, (given, document, blob) in enumerate(zip(documents, ids, remembered, strict=True)):
            if isinstance(given, Document):
                check_length(given, self._max_chars)
                blobs[document] = await asyncio.to_thread(self._pack, given, epoch)
            elif blob:
                blobs[document] = await asyncio.to_thread(self._pack, unpack(blob).document, epoch)
            else:
                raise NotFound(UNKNOWN, [FieldError(pointer=f"/documents/{i}", detail="It is not remembered.")])
        counts = await self._store.known.add(published.topic, published.born, blobs, self._max_items)
        if counts is None:
            raise TooLarge(
                f"A topic may have at most {self._max_items:,} known items (SLUICE_KNOWN_KEPT); delete some."
            )
        return counts

    async def remove(self, topic: str, document: str) -> None:
        if not await self._store.known.remove(topic, document):
            raise NotFound("This document is not among the known items of this topic.")

    async def page(self, published: PublishedModel, after: str | None, limit: int) -> KnownPage:
        """Items by id, those after the given one, with the topic's decision about each, and the recall of them all."""
        items, recall = await self._test(published)
        rest = [item for item in items if after is None or item.document > after]
        following = rest[limit - 1].document if rest[limit:] else None
        detail = MODEL_ONLY if compile_rules(published.settings.rules) else None
        return KnownPage(items=rest[:limit], next=following, recall=recall, detail=detail)

    async def _test(self, published: PublishedModel) -> tuple[list[KnownItem], KnownRecall | None]:
        blobs = await self._store.known.load(published.topic)
        if not blobs:
            return [], None
        judged, signatures = await self._learning.read(published.topic, _judged)
        epoch = self._epochs.current
        return await asyncio.to_thread(_test_items, published, sorted(blobs.items()), judged, signatures, epoch)

    def _pack(self, document: Document, epoch: Epoch) -> bytes:
        bag = log_features(document.title, document.text, self._analysis, epoch)
        return KnownDocument(document.title[:TITLE_CHARS], bag).to_bytes()


def _judged(state: TopicState) -> tuple[frozenset[str], NDArray[np.uint32]]:
    return frozenset(state.resolved.judged), state.signatures


def _test_items(
    published: PublishedModel,
    blobs: Sequence[tuple[str, bytes]],
    judged: frozenset[str],
    signatures: NDArray[np.uint32],
    epoch: Epoch,
) -> tuple[list[KnownItem], KnownRecall | None]:
    seen = SeenDocuments(signatures)
    items: list[KnownItem] = []
    for document, blob in blobs:
        known = KnownDocument.from_bytes(blob)
        bag = to_bag(known.bag)
        bag = Bag(bag.features, bag.counts, epoch.frequencies.idf(bag.features))
        decision, score = published.decide_bag(bag)
        counts = document not in judged and seen.add_if_new(bag.features)
        items.append(
            KnownItem(
                document=document, title=known.title, score=round(score, DIGITS), decision=decision, counts=counts
            )
        )
    counted = [item for item in items if item.counts]
    share = intervals.interval(sum(item.decision != "reject" for item in counted), len(counted), BOUND_CONFIDENCE)
    return items, KnownRecall(**share._asdict(), confidence=BOUND_CONFIDENCE, known=len(counted)) if share else None
