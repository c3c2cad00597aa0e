"""One process's connections to Redis: a bounded number, and a refusal in time rather than a long wait.

A command that gets no answer in time raises StoreUnavailable; it may have been applied all the same, which the scripts
are written for.

The store is one server, or a Redis Cluster (see redis_url.py). Of a cluster it takes the whole to answer: nearly
everything that is asked concerns several nodes, so while one is away and has no successor yet, everybody is refused.
"""

import asyncio
import re
import time
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import redis.asyncio as aredis
import structlog
from redis import exceptions
from redis.asyncio.client import PubSub
from redis.asyncio.cluster import ClusterNode, RedisCluster
from redis.asyncio.connection import URL_QUERY_ARGUMENT_PARSERS
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.connection import HiredisRespSerializer

from service.errors import GroupGone, StoreUnavailable
from service.redis_url import is_cluster, nodes
from service.store.scripts import Step, key_of, to_commands

CONNECTIONS = 32  # a process, to each server; whoever finds none free waits
SPARE = 8  # beyond these: one listens, and others may just be closing
LOOK_S = 0.25  # that anybody waits to see whether the store has come back
PAUSE_S = 0.5  # between two looks at a store that keeps silent

AT_ONCE = 500  # commands and calls of scripts, so that the first answers come in time
LONGEST_BLOCK_S = 0.5  # that a reader waits for something new before it asks again

FULL = "The store is full: raise its memory limit or delete topics."
SILENT = "The store did not answer in time; try again."

log = structlog.get_logger("sluice.store")


class Packing:
    """Packs commands in C, as redis-py does for its other clients: a tenth less of a consumer's time."""

    _serializer = HiredisRespSerializer()

    def pack_command(self, *args: Any) -> list[bytes]:
        packed: list[bytes] = self._serializer.pack(*args)
        return packed


class Connection:
    def __init__(self, url: str, timeout_s: float) -> None:
        self.cluster = is_cluster(url)
        # Any: redis-py types each answer as the union of all clients and encodings, which says nothing.
        self.redis: Any = _to_cluster(url, timeout_s) if self.cluster else _to_server(url, timeout_s)
        # A blocking read must be answered well before the connection gives up, or it would seem to be broken.
        self.block_ms = max(1, int(1000 * min(LONGEST_BLOCK_S, timeout_s / 2)))
        self._timeout_s = timeout_s
        self._free = asyncio.Semaphore(CONNECTIONS)
        self._silent = False
        self._look_again_s = 0.0
        self._looking: asyncio.Task[None] | None = None

    async def close(self) -> None:
        if self._looking:
            await self._looking
        await self.redis.aclose()

    @asynccontextmanager
    async def asking(self) -> AsyncGenerator[None, None]:
        """A turn with the store, when one of the connections is free."""
        if self._silent and time.monotonic() >= self._look_again_s:
            await self._look()
        self._refuse_if_silent()
        try:
            async with asyncio.timeout(self._timeout_s / 2):
                await self._free.acquire()
        except TimeoutError:
            raise StoreUnavailable("Too many requests wait for the store; try again.") from None
        try:
            self._refuse_if_silent()
            with translated_errors():
                yield
        except StoreUnavailable as error:
            # A pipeline that found a node of a cluster gone does not look where its slots are now; a look does.
            if self.cluster or isinstance(error, _Silent):
                await self._look()
            raise
        finally:
            self._free.release()

    async def run(self, steps: Sequence[Step]) -> list[Any]:
        """Commands and scripts, one after the other, in as few round trips as it takes; their answers.

        Redis reads 16 KB at a time and writes what they did to disk before it reads on, unless they are a transaction,
        which is written once: half the time for a batch of documents. It says of each command that it has read it, and
        wakes who waits for the end; so a script that is called several times in a row is sent as one command.

        A Redis Cluster has neither over several slots. There, nodes work side by side, and what concerns one slot is
        done in this order. It answers before its replicas have heard of anything, so that a node which dies may take
        along what was acknowledged; hence the last command to each node, which waits for a replica.
        """
        answers: list[Any] = []
        if not steps:
            return answers
        async with self.asking():
            for start in range(0, len(steps), AT_ONCE):
                some = steps[start : start + AT_ONCE]
                commands, primaries = list(to_commands(some, self.cluster)), await self.with_replicas(some)
                pipe = self.redis.pipeline(transaction=len(commands) > 1 and not self.cluster)
                for command, _ in commands:
                    pipe.execute_command(*command)
                for primary in primaries:
                    pipe.execute_command("WAIT", 1, self.block_ms, target_nodes=[primary])
                found = await pipe.execute(raise_on_error=False)  # it would add the whole command to what is said
                found, followed = found[: len(commands)], found[len(commands) :]
                for answer, (_, several) in zip(found, commands, strict=True):
                    answers += answer if several and isinstance(answer, list) else [answer]
                alone = [answer for answer in followed if not answer or isinstance(answer, exceptions.ResponseError)]
                for answer in (*answers[start:], *followed):
                    if isinstance(answer, Exception) and answer not in alone:
                        raise answer
                if alone:
                    await self._unfollowed()
        return answers

    async def with_replicas(self, steps: Sequence[Step]) -> list[ClusterNode]:
        """The nodes that these steps concern, as far as they have replicas; none where there is one server."""
        if not self.cluster:
            return []
        await self.redis.initialize()  # which does nothing if it is known where the slots are
        keys = [key_of(step) for step in steps]
        return list({self.redis.get_node_from_key(key) for key in keys if self.redis.get_node_from_key(key, True)})

    async def _unfollowed(self) -> None:
        """A replica did not answer in time, or its primary has none any more, being one itself since a failover. Nobody
        shall wait for it again: like Redis itself we go on without (`min-replicas-to-write` has it refuse instead)."""
        log.warning("what was written to a node of the cluster is not known to have reached a replica")
        await self.redis.nodes_manager.initialize()

    async def ping(self) -> None:
        """The store answers; of a cluster every node that has slots."""
        await self.redis.ping(**self._everywhere)

    async def info(self, section: str) -> list[dict[str, Any]]:
        """What the server says of itself, or each node of a cluster that has slots."""
        async with self.asking():
            said = await self.redis.info(section, **self._everywhere)
        return list(said.values()) if self.cluster else [said]

    async def ensure_room(self) -> None:
        """Raises if a node of a cluster is full. (A single server that is refuses what is to be written.)"""
        if self.cluster and any(0 < one["maxmemory"] <= one["used_memory"] for one in await self.info("memory")):
            raise StoreUnavailable(FULL)

    @property
    def _everywhere(self) -> dict[str, str]:
        return {"target_nodes": RedisCluster.PRIMARIES} if self.cluster else {}

    @asynccontextmanager
    async def subscribed(self, channel: str) -> AsyncGenerator[PubSub, None]:
        """Hears what is published, on whichever node of a cluster."""
        with translated_errors():
            if self.cluster:
                await self.redis.initialize()  # a listener does not ask by itself where the nodes are
            async with self.redis.pubsub() as listener:
                await listener.subscribe(channel)
                yield listener

    def _refuse_if_silent(self) -> None:
        """Those who stand in a line, for a connection or for a topic's turn, would else wait one after the other, each
        for as long as the first. So after one command without an answer nobody asks any more, until a look has one."""
        if self._silent:
            raise StoreUnavailable(SILENT)

    async def _look(self) -> None:
        """Sees whether the store answers now: it may have been this process that had no time to listen, for want of a
        core. One look serves all who want to know, and has as long as any command; nobody waits for its end."""
        if self._looking is None or self._looking.done():
            self._look_again_s = time.monotonic() + self._timeout_s + PAUSE_S
            self._looking = asyncio.create_task(self._ping())
        await asyncio.wait({self._looking}, timeout=LOOK_S)
        if not self._looking.done():
            self._silent = True

    async def _ping(self) -> None:
        try:
            with translated_errors():
                await self.ping()
            self._silent = False
        except StoreUnavailable as error:
            self._silent = isinstance(error, _Silent)  # one that says no at once keeps nobody waiting


def _to_server(url: str, timeout_s: float) -> "aredis.Redis":
    pool: aredis.ConnectionPool = aredis.ConnectionPool.from_url(
        url,
        max_connections=CONNECTIONS + SPARE,
        socket_timeout=timeout_s,
        socket_connect_timeout=timeout_s,
        retry=_once(),
    )
    pool.connection_class = type("Packing", (Packing, pool.connection_class), {})
    return aredis.Redis.from_pool(pool)


def _to_cluster(url: str, timeout_s: float) -> RedisCluster:
    places, options = nodes(url)
    return RedisCluster(
        startup_nodes=[ClusterNode(host, port) for host, port in places],
        max_connections=CONNECTIONS + SPARE,
        socket_timeout=timeout_s,
        socket_connect_timeout=timeout_s,
        retry=_once(),
        **_typed(options),
    )


def _typed(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options with those typed that only redis-py knows."""
    types = {name: URL_QUERY_ARGUMENT_PARSERS.get(name) for name, value in options.items() if isinstance(value, str)}
    return {**options, **{name: typed(options[name]) for name, typed in types.items() if typed}}


def _once() -> Retry:
    """Never a second try: it could apply a write twice, and a frozen store must give 503 within two timeouts. A
    connection that broke while it lay idle, say because the store was restarted, is noticed when it is taken. (What a
    node of a cluster sends elsewhere, because a slot has moved, it has not applied.)"""
    return Retry(NoBackoff(), 0)


class _Silent(StoreUnavailable):
    """The store kept somebody waiting in vain."""


@contextmanager
def translated_errors() -> Iterator[None]:
    """Redis in trouble becomes one of our errors, with a sentence; anything else is a bug and stays loud."""
    try:
        yield
    except exceptions.OutOfMemoryError as error:
        raise StoreUnavailable(FULL) from error
    except (exceptions.TimeoutError, exceptions.ConnectionError, exceptions.ReadOnlyError, OSError) as error:
        # A timeout while connecting comes as a ConnectionError.
        if isinstance(error, exceptions.TimeoutError) or isinstance(error.__cause__, exceptions.TimeoutError):
            raise _Silent(SILENT) from error
        raise StoreUnavailable("The store cannot be reached; try again.") from error
    except exceptions.RedisClusterException as error:
        if "not enabled" in str(error):
            raise StoreUnavailable("This is no node of a Redis Cluster: its address begins with redis://.") from error
        if error.__cause__ is None and "covered" not in str(error):
            raise  # keys of several slots in one command: a bug
        raise StoreUnavailable("The cluster cannot be reached; try again.") from error
    except (exceptions.ClusterError, exceptions.TryAgainError) as error:
        raise StoreUnavailable("A part of the cluster is away, or just being moved; try again.") from error
    except exceptions.AskError as error:
        raise StoreUnavailable("This is a node of a Redis Cluster: write redis+cluster:// in its address.") from error
    except exceptions.ResponseError as error:
        code = _code(error)
        if code in {"OOM", "MISCONF", "LOADING", "BUSY", "TRYAGAIN", "CLUSTERDOWN", "READONLY"}:
            raise StoreUnavailable(FULL if code == "OOM" else "The store cannot write now; try again.") from error
        if code in {"NOGROUP", "UNBLOCKED"}:
            raise GroupGone("The stream was deleted; it is made anew.") from error
        raise


def _code(error: exceptions.ResponseError) -> str:
    """The word that says what is wrong: the first. Redis 6.2 repeats what a command in a script said, after the place
    where it did, and with a dash if it was not let to do anything."""
    found = re.search(r"(?:^|@user_script: ?\d+: -?)([A-Z]+) ", str(error))
    return found[1] if found else ""
