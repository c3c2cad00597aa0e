"""Keeping up: how a process hears of what the others did.

Every publication is announced on a channel, and the listener loads and serves it within milliseconds. A message can get
lost only while the listener is not connected, so it looks at everything when it begins to listen; and a slow sweep
looks again at some topics every SWEEP seconds, which also finds logs that are ahead of their model because a process
died between the two, and folds them.
"""

import asyncio
from collections.abc import Sequence

import structlog

from service.errors import NotFound, StoreUnavailable
from service.store.codec import Corrupt
from service.store.topics import Store
from service.store.versions import Saved
from service.topics.background import Epochs
from service.topics.learning import Learning
from service.topics.published import PublishedModel
from service.topics.registry import Registry

log = structlog.get_logger("sluice.topics")

CHUNK_SIZE = 1000  # topics that are looked at together
RETRY_S = 0.2  # before listening again after the connection broke


class Sync:
    def __init__(self, store: Store, registry: Registry, learning: Learning, epochs: Epochs, sweep_s: float) -> None:
        self._store = store
        self._registry = registry
        self._learning = learning
        self._epochs = epochs
        self._sweep_s = sweep_s
        self._lagging: set[str] = set()
        self.ready = asyncio.Event()

    async def listen(self) -> None:
        """Serves what others publish, for ever. After a break everything is looked at again."""
        while True:
            try:
                async for change in self._store.versions.changes():
                    if change is None:
                        await self._begin()
                    elif change.version == 0:
                        await self.check([change.topic])
                    elif not self._serves(change.topic, change.born, change.version):
                        await self._take(change.topic)
            except StoreUnavailable as error:
                log.warning("lost the store", detail=error.detail)
            except Exception:
                # A bug, and loud; but a process that goes on deciding must not stop hearing of what the others learn.
                log.exception("listening failed and begins again")
            await asyncio.sleep(RETRY_S)

    async def sweep(self) -> None:
        """Looks again at some topics, now and then, for ever."""
        at = ""
        while True:
            await asyncio.sleep(self._sweep_s)
            try:
                await self._epochs.follow()
                topics = await self._store.topics(at, CHUNK_SIZE)
                await self.check(topics)
                end = topics[-1] if len(topics) == CHUNK_SIZE else ""
                # What is served and not listed, of the same part of the alphabet: it is gone, or its listing is.
                between = [one for one in list(self._registry.topics) if at < one and (not end or one <= end)]
                unlisted = list(set(between).difference(topics))
                await self.check(unlisted)
                for topic in self._registry.topics.keys() & unlisted:
                    await self._store.enlist(topic)
                at = end
                if self._registry.wants_merging:
                    await asyncio.to_thread(self._registry.merge)
            except StoreUnavailable as error:
                log.warning("lost the store", detail=error.detail)
            except Exception:
                log.exception("a sweep failed; the next one begins again")

    async def check(self, topics: Sequence[str]) -> None:
        """Compares what is served with what is published, and what is published with the log."""
        lagging: set[str] = set()
        for start in range(0, len(topics), CHUNK_SIZE):
            some = topics[start : start + CHUNK_SIZE]
            # In this order, what is read later can only be ahead of what was read before.
            serving = [self._registry.topics.get(topic) for topic in some]
            published = await self._store.versions.published(some)
            heads = await self._store.heads(some)
            for topic, served, version, head in zip(some, serving, published, heads, strict=True):
                if head is None:
                    self._registry.delete(topic)
                elif served and served.born == head.born and served.version > head.seq:
                    log.error("the store has lost the end of a log", topic=topic, had=served.version, has=head.seq)
                    self._registry.remove(topic)
                    await self._fold(topic)
                elif version is None or version < head.seq:
                    # Being folded at this moment by whoever appended, most likely; if it still is next time, it is not.
                    lagging.add(topic)
                    if topic in self._lagging or topic not in self._registry.topics:
                        await self._fold(topic)
                elif not self._serves(topic, head.born, version):
                    await self._take(topic)
        self._lagging = lagging | (self._lagging - set(topics))

    async def _begin(self) -> None:
        if self.ready.is_set():
            self._learning.clear_cache()
            await self._epochs.reload()
        else:
            await self._load()
        await self.check(list({*await self._store.topics(), *list(self._registry.topics)}))

    async def _load(self) -> None:
        """Serves every topic's published model; folds those that have none."""
        await self._epochs.follow()
        topics = await self._store.topics()
        saved = await self._store.versions.load(topics)
        found = [_decoded(topic, one) for topic, one in zip(topics, saved, strict=True)]
        self._registry.load([served for served in found if served])
        for topic, served in zip(topics, found, strict=True):
            if served is None:
                await self._refold(topic)
        self.ready.set()

    def _serves(self, topic: str, born: str, version: int) -> bool:
        served = self._registry.topics.get(topic)
        return served is not None and served.born == born and served.version >= version

    async def _take(self, topic: str) -> None:
        (saved,) = await self._store.versions.load([topic])
        served = _decoded(topic, saved)
        if served:
            await asyncio.to_thread(self._registry.put, served)
        else:
            await self._refold(topic)

    async def _refold(self, topic: str) -> None:
        """Folds a topic whose published model is missing or cannot be read."""
        await self._store.versions.forget(topic)
        await self._fold(topic)

    async def _fold(self, topic: str) -> None:
        try:
            await self._learning.catch_up(topic, republish=True)
        except NotFound:
            self._registry.delete(topic)
        except (ArithmeticError, ValueError, LookupError) as error:
            # One broken topic must not keep the others from being served; it is reported, and left out.
            log.error("topic cannot be folded", topic=topic, exc_info=error)


def _decoded(topic: str, saved: Saved | None) -> PublishedModel | None:
    """The published model, or None if there is none that this version of Sluice can read: the log has it all."""
    if saved is None:
        return None
    try:
        return PublishedModel.from_bytes(saved.blob, saved.born)
    except Corrupt as error:
        log.warning("published model cannot be read and is folded again", topic=topic, detail=str(error))
        return None
