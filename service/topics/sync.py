"""Sync: how a process learns what the others have published, and finishes what one that died has left.

Every publication is announced on a channel, and the listener loads and serves it within milliseconds. Messages are lost
only while the listener is not connected, so it checks all topics whenever it connects. A slow sweep checks a part of
the topics every `sweep_s` seconds; it also finds logs that are ahead of their model, because a process died between
appending and publishing, and folds them.
"""

import asyncio
from collections.abc import Sequence

import structlog

from service.errors import NotFound, StoreUnavailable
from service.store.codec import Corrupt
from service.store.topics import Store
from service.store.versions import Saved
from service.topics.background import Epochs
from service.topics.decisions.registry import Registry
from service.topics.learning import Learning
from service.topics.projections import Projections
from service.topics.published import PublishedModel

log = structlog.get_logger("sluice.topics")

CHUNK_SIZE = 1000  # topics checked together
RETRY_S = 0.2  # before listening again after an error


class Sync:
    def __init__(self, store: Store, registry: Registry, learning: Learning, epochs: Epochs, sweep_s: float) -> None:
        self._store = store
        self._registry = registry
        self._learning = learning
        self._epochs = epochs
        self._sweep_s = sweep_s
        self._behind: set[str] = set()  # topics whose model was behind their log when they were last checked
        self.ready = asyncio.Event()

    async def listen(self) -> None:
        """Serves what other processes publish, forever. After each (re)connection, all topics are checked."""
        while True:
            try:
                async for change in self._store.versions.changes():
                    if change is None:
                        await self._start()
                    elif change.version == 0:
                        await self.check([change.topic])
                    elif not self._serves(change.topic, change.born, change.version):
                        await self._load_model(change.topic)
            except StoreUnavailable as error:
                log.warning("lost the store", detail=error.detail)
            except Exception:
                # A bug, and loud; but a process that keeps deciding must not miss what the others learn.
                log.exception("listening failed and is started again")
            await asyncio.sleep(RETRY_S)

    async def sweep(self) -> None:
        """Checks a part of the topics at a time, in alphabetical order, forever."""
        start = ""
        while True:
            await asyncio.sleep(self._sweep_s)
            try:
                await self._epochs.follow()
                topics = await self._store.topics(start, CHUNK_SIZE)
                await self.check(topics)
                end = topics[-1] if len(topics) == CHUNK_SIZE else ""
                # Topics in this part of the alphabet that are served but not listed: deleted, or missing in the list.
                served = [topic for topic in list(self._registry.topics) if start < topic and (not end or topic <= end)]
                unlisted = list(set(served).difference(topics))
                await self.check(unlisted)
                for topic in self._registry.topics.keys() & unlisted:
                    await self._store.enlist(topic)
                start = end
                if self._registry.wants_merging:
                    await asyncio.to_thread(self._registry.merge)
            except StoreUnavailable as error:
                log.warning("lost the store", detail=error.detail)
            except Exception:
                log.exception("a sweep failed; the next one starts where it did")

    async def check(self, topics: Sequence[str]) -> None:
        """Compares what is served with what is published, and what is published with the log; catches up with both."""
        behind: set[str] = set()
        for start in range(0, len(topics), CHUNK_SIZE):
            chunk = topics[start : start + CHUNK_SIZE]
            # In this order, what is read later can only be ahead of what was read before.
            models = [self._registry.topics.get(topic) for topic in chunk]
            versions = await self._store.versions.published(chunk)
            heads = await self._store.heads(chunk)
            for topic, model, version, head in zip(chunk, models, versions, heads, strict=True):
                if head is None:
                    self._registry.delete(topic)
                elif model and model.born == head.born and model.version > head.seq:
                    log.error("the store has lost the end of a log", topic=topic, had=model.version, has=head.seq)
                    self._registry.remove(topic)
                    await self._catch_up(topic)
                elif version is None or version < head.seq:
                    # The process that appended is most likely folding it now. If it is still behind the next time,
                    # that process has died.
                    behind.add(topic)
                    if topic in self._behind or topic not in self._registry.topics:
                        await self._catch_up(topic)
                elif not self._serves(topic, head.born, version):
                    await self._load_model(topic)
        self._behind = behind | (self._behind - set(topics))

    async def _start(self) -> None:
        """On the first connection loads all topics, after a break drops what may be out of date; then checks all."""
        if self.ready.is_set():
            self._learning.clear_cache()
            await self._epochs.reload()
        else:
            await self._load_all()
        await self.check(list({*await self._store.topics(), *list(self._registry.topics)}))

    async def _load_all(self) -> None:
        """Serves every topic's published model; folds the logs of those that have none."""
        await self._epochs.follow()
        topics = await self._store.topics()
        saved = await self._store.versions.load(topics)
        models = [await self._decode(topic, stored) for topic, stored in zip(topics, saved, strict=True)]
        self._registry.load([model for model in models if model])
        for topic, model in zip(topics, models, strict=True):
            if model is None:
                await self._refold(topic)
        self.ready.set()

    def _serves(self, topic: str, born: str, version: int) -> bool:
        model = self._registry.topics.get(topic)
        return model is not None and model.born == born and model.version >= version

    async def _load_model(self, topic: str) -> None:
        """Serves the topic's published model."""
        (saved,) = await self._store.versions.load([topic])
        model = await self._decode(topic, saved)
        if model:
            await self._epochs.follow_to(model.epoch)
            await asyncio.to_thread(self._registry.put, model)
        else:
            await self._refold(topic)

    async def _decode(self, topic: str, saved: Saved | None) -> PublishedModel | None:
        """The published model; None if there is none, or none that this version of Sluice can read."""
        if saved is None:
            return None
        try:
            return await load_model(saved, self._epochs.projections)
        except Corrupt as error:
            log.warning("published model cannot be read; folding its log", topic=topic, detail=str(error))
            return None

    async def _refold(self, topic: str) -> None:
        """Folds the log of a topic whose published model is missing or cannot be read."""
        await self._store.versions.forget(topic)
        await self._catch_up(topic)

    async def _catch_up(self, topic: str) -> None:
        try:
            await self._learning.catch_up(topic, republish=True)
        except NotFound:
            self._registry.delete(topic)
        except (ArithmeticError, ValueError, LookupError) as error:
            # One broken topic must not keep the others from being served: it is logged and left out.
            log.error("topic cannot be folded", topic=topic, exc_info=error)


async def load_model(saved: Saved, projections: Projections) -> PublishedModel:
    """A published model with its projection, if it has one; raises `Corrupt` if one of them cannot be read."""
    model = PublishedModel.from_bytes(saved.blob, saved.born)
    if not model.projected:
        return model
    numbered = await projections.load(model.projected)
    if numbered is None:
        raise Corrupt("its projection is lost")
    return model.under(numbered)
