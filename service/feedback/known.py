"""Known items: relevant documents that somebody found elsewhere, to test what a topic rejects. Never learned from.

    recall = kept / n        of n known items, those that are not rejected now, with the bounds of Clopper and Pearson

The estimate is honest as far as the documents were found independently of the filter and its query. So what was judged,
or resembles what was judged, does not count, and near-duplicates among the known items count once.

They stand beside the log and never influence the model. Kept are words and counts, not the text; they are weighed by
the present frequencies, as a document of the stream would be. So they are tested with the model alone, and the answer
says so where there are rules: to honour some of these (single words, without a field, where text is neither stemmed nor
rid of function words, and is not very long) would be worse than to honour none.
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
from service.schemas.review import KnownItem, KnownRecall
from service.store.documents import unpack
from service.store.known import KnownDocument
from service.store.topics import Store
from service.topics.background import Epoch, Epochs
from service.topics.features import log_features
from service.topics.learning import Learning
from service.topics.published import DIGITS, PublishedModel
from service.topics.state import TopicState, to_bag

BY_MODEL = "Tested with the model alone: of known items words are kept, not the text that the rules of this topic need."


class Known:
    def __init__(self, store: Store, learning: Learning, epochs: Epochs, analysis: Analysis, config: Config) -> None:
        self._store = store
        self._analysis = analysis
        self._max_chars = config.max_text_chars
        self._learning = learning
        self._epochs = epochs
        self._kept = config.known_kept

    async def add(self, published: PublishedModel, documents: Sequence[str | Document]) -> tuple[int, int]:
        """Keeps these items, all or none; how many there are now, and how many of them were not there before."""
        ids = [id_of(document) for document in documents]
        remembered = await self._store.documents.load(ids)
        found: dict[str, bytes] = {}
        epoch = self._epochs.current
        for i, (given, document, blob) in enumerate(zip(documents, ids, remembered, strict=True)):
            if isinstance(given, Document):
                check_length(given, self._max_chars)
                found[document] = await asyncio.to_thread(self._kept_form, given, epoch)
            elif blob:
                found[document] = await asyncio.to_thread(self._kept_form, unpack(blob).document, epoch)
            else:
                raise NotFound(UNKNOWN, [FieldError(pointer=f"/documents/{i}", detail="not known")])
        counts = await self._store.known.add(published.topic, published.born, found, self._kept)
        if counts is None:
            raise TooLarge(f"A topic may have {self._kept:,} known items (SLUICE_KNOWN_KEPT); delete some.")
        return counts

    async def remove(self, topic: str, document: str) -> None:
        if not await self._store.known.remove(topic, document):
            raise NotFound("This document is not among the known items of this topic.")

    async def read(self, published: PublishedModel) -> tuple[list[KnownItem], KnownRecall | None]:
        """All of them by id, with what the topic makes of each now, and the recall that they show together."""
        blobs = await self._store.known.load(published.topic)
        if not blobs:
            return [], None
        judged, signatures = await self._learning.read(published.topic, _judged)
        epoch = self._epochs.current
        return await asyncio.to_thread(_tested, published, sorted(blobs.items()), judged, signatures, epoch)

    def _kept_form(self, document: Document, epoch: Epoch) -> bytes:
        bag = log_features(document.title, document.text, self._analysis, epoch)
        return KnownDocument(document.title[:TITLE_CHARS], bag).to_bytes()


def _judged(state: TopicState) -> tuple[frozenset[str], NDArray[np.uint32]]:
    return frozenset(state.resolved.judged), state.signatures


def _tested(
    published: PublishedModel,
    blobs: Sequence[tuple[str, bytes]],
    judged: frozenset[str],
    signatures: NDArray[np.uint32],
    epoch: Epoch,
) -> tuple[list[KnownItem], KnownRecall | None]:
    told = SeenDocuments(signatures)
    items: list[KnownItem] = []
    for document, blob in blobs:
        found = KnownDocument.from_bytes(blob)
        bag = to_bag(found.bag)
        bag = Bag(bag.features, bag.counts, epoch.frequencies.idf(bag.features))
        decision, score = published.decide_bag(bag)
        counts = document not in judged and told.add_if_new(bag.features)
        items.append(
            KnownItem(
                document=document, title=found.title, score=round(score, DIGITS), decision=decision, counts=counts
            )
        )
    tried = [item for item in items if item.counts]
    share = intervals.interval(sum(item.decision != "reject" for item in tried), len(tried), BOUND_CONFIDENCE)
    return items, KnownRecall(**share._asdict(), confidence=BOUND_CONFIDENCE, known=len(tried)) if share else None
