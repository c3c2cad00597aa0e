"""The connections of one process to Redis: a bounded number, and an error in time rather than a long wait.

A command that gets no reply in time raises StoreUnavailable; it may have been applied all the same, which the scripts
are written for.

The store is one server, or a Redis Cluster (see redis_url.py). A cluster must be whole: nearly every request concerns
several nodes, so while one is down and no replica has replaced it, all requests are refused.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
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

from service.errors import StoreUnavailable
from service.redis_url import is_cluster, nodes
from service.store.redis.errors import FULL, TIMED_OUT, TimedOut, translated_errors
from service.store.redis.scripts import Step, key_of, to_commands

MAX_CONNECTIONS = 32  # of a process, to each server; further requests wait
SPARE_CONNECTIONS = 8  # beyond these: one is subscribed, and others may just be closing
PROBE_WAIT_S = 0.25  # for which a request waits to see whether Redis is back
PROBE_PAUSE_S = 0.5  # between two probes of a server that does not answer

MAX_STEPS = 500  # a round trip, so that the first replies come in time
MAX_BLOCK_S = 0.5  # of a blocking read, before it is repeated

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
        # Any: redis-py types each reply as the union of all clients and encodings, which says nothing.
        self.redis: Any = _to_cluster(url, timeout_s) if self.cluster else _to_server(url, timeout_s)
        # A blocking read must be answered well before the socket times out, or the connection would seem broken.
        self.block_ms = max(1, int(1000 * min(MAX_BLOCK_S, timeout_s / 2)))
        self._timeout_s = timeout_s
        self._free = asyncio.Semaphore(MAX_CONNECTIONS)
        self._timed_out = False
        self._next_probe_s = 0.0
        self._probing: asyncio.Task[None] | None = None

    async def close(self) -> None:
        if self._probing:
            await self._probing
        await self.redis.aclose()

    @asynccontextmanager
    async def acquire(self) -> AsyncGenerator[None, None]:
        """Waits until a connection is free, and translates the errors of what is done with it."""
        if self._timed_out and time.monotonic() >= self._next_probe_s:
            await self._probe()
        self._refuse_if_timed_out()
        try:
            async with asyncio.timeout(self._timeout_s / 2):
                await self._free.acquire()
        except TimeoutError:
            raise StoreUnavailable("Too many requests wait for the store; try again.") from None
        try:
            self._refuse_if_timed_out()
            with translated_errors():
                yield
        except StoreUnavailable as error:
            # After a pipeline found a node of a cluster gone, it does not ask where its slots are now; a probe does.
            if self.cluster or isinstance(error, TimedOut):
                await self._probe()
            raise
        finally:
            self._free.release()

    async def run(self, steps: Sequence[Step]) -> list[Any]:
        """Replies to commands and scripts, one after the other, in as few round trips as it takes.

        Redis reads 16 KB at a time and syncs the append-only file before it reads on, unless the commands are a
        transaction, which is synced once: half the time for a batch of documents.

        A Redis Cluster has no transactions over several slots. There, nodes work side by side, and what concerns one
        slot is done in this order. A node replies before its replicas have the write, so if it dies it may take along
        what was acknowledged; hence the last command to each node, which waits for a replica.
        """
        replies: list[Any] = []
        if not steps:
            return replies
        async with self.acquire():
            for start in range(0, len(steps), MAX_STEPS):
                batch = steps[start : start + MAX_STEPS]
                commands, primaries = list(to_commands(batch, self.cluster)), await self.primaries_with_replicas(batch)
                pipe = self.redis.pipeline(transaction=len(commands) > 1 and not self.cluster)
                for command, _ in commands:
                    pipe.execute_command(*command)
                for primary in primaries:
                    pipe.execute_command("WAIT", 1, self.block_ms, target_nodes=[primary])
                rows = await pipe.execute(raise_on_error=False)  # it would add the whole command to the message
                rows, waited = rows[: len(commands)], rows[len(commands) :]
                for row, (_, merged) in zip(rows, commands, strict=True):
                    replies += row if merged and isinstance(row, list) else [row]
                without = [reply for reply in waited if not reply or isinstance(reply, exceptions.ResponseError)]
                for reply in (*replies[start:], *waited):
                    if isinstance(reply, Exception) and reply not in without:
                        raise reply
                if without:
                    await self._not_replicated()
        return replies

    async def primaries_with_replicas(self, steps: Sequence[Step]) -> list[ClusterNode]:
        """The nodes of a cluster that these steps concern and that have replicas; none where there is one server."""
        if not self.cluster:
            return []
        await self.redis.initialize()  # which does nothing if it is known where the slots are
        keys = [key_of(step) for step in steps]
        return list({self.redis.get_node_from_key(key) for key in keys if self.redis.get_node_from_key(key, True)})

    async def _not_replicated(self) -> None:
        """Goes on without a replica that did not answer in time, or that its primary does not have any more since a
        failover, and asks where the slots are now, so that no request waits for it again. Redis does the same
        (`min-replicas-to-write` has it refuse instead)."""
        log.warning("what was written to a node of the cluster is not known to have reached a replica")
        await self.redis.nodes_manager.initialize()

    async def ping(self) -> None:
        """Raises unless Redis answers; of a cluster every node that has slots."""
        await self.redis.ping(**self._primaries)

    async def info(self, section: str) -> list[dict[str, Any]]:
        """A section of INFO, from the server or from each node of a cluster that has slots."""
        async with self.acquire():
            info = await self.redis.info(section, **self._primaries)
        return list(info.values()) if self.cluster else [info]

    async def ensure_room(self) -> None:
        """Raises if a node of a cluster is full. (A single server that is full refuses the write itself.)"""
        if self.cluster and any(0 < node["maxmemory"] <= node["used_memory"] for node in await self.info("memory")):
            raise StoreUnavailable(FULL)

    @property
    def _primaries(self) -> dict[str, str]:
        return {"target_nodes": RedisCluster.PRIMARIES} if self.cluster else {}

    @asynccontextmanager
    async def subscribed(self, channel: str) -> AsyncGenerator[PubSub, None]:
        """A subscription to what is published, on any node of a cluster."""
        with translated_errors():
            if self.cluster:
                await self.redis.initialize()  # a subscription does not ask by itself where the nodes are
            async with self.redis.pubsub() as subscription:
                await subscription.subscribe(channel)
                yield subscription

    def _refuse_if_timed_out(self) -> None:
        """Raises after a timeout, until a probe has been answered. Otherwise requests that wait for a connection, or
        for their turn at a topic, would time out one after the other."""
        if self._timed_out:
            raise StoreUnavailable(TIMED_OUT)

    async def _probe(self) -> None:
        """Finds out whether Redis answers now: it may have been this process that had no time to read, for want of a
        core. One probe serves all requests and may take as long as any command; none waits for its end."""
        if self._probing is None or self._probing.done():
            self._next_probe_s = time.monotonic() + self._timeout_s + PROBE_PAUSE_S
            self._probing = asyncio.create_task(self._ping())
        await asyncio.wait({self._probing}, timeout=PROBE_WAIT_S)
        if not self._probing.done():
            self._timed_out = True

    async def _ping(self) -> None:
        try:
            with translated_errors():
                await self.ping()
            self._timed_out = False
        except StoreUnavailable as error:
            self._timed_out = isinstance(error, TimedOut)  # a server that refuses at once keeps nobody waiting


def _to_server(url: str, timeout_s: float) -> "aredis.Redis":
    pool: aredis.ConnectionPool = aredis.ConnectionPool.from_url(
        url,
        max_connections=MAX_CONNECTIONS + SPARE_CONNECTIONS,
        socket_timeout=timeout_s,
        socket_connect_timeout=timeout_s,
        retry=_no_retry(),
    )
    pool.connection_class = type("Packing", (Packing, pool.connection_class), {})
    return aredis.Redis.from_pool(pool)


def _to_cluster(url: str, timeout_s: float) -> RedisCluster:
    places, options = nodes(url)
    return RedisCluster(
        startup_nodes=[ClusterNode(host, port) for host, port in places],
        max_connections=MAX_CONNECTIONS + SPARE_CONNECTIONS,
        socket_timeout=timeout_s,
        socket_connect_timeout=timeout_s,
        retry=_no_retry(),
        **_typed(options),
    )


def _typed(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options with those typed that only redis-py knows."""
    types = {name: URL_QUERY_ARGUMENT_PARSERS.get(name) for name, value in options.items() if isinstance(value, str)}
    return {**options, **{name: typed(options[name]) for name, typed in types.items() if typed}}


def _no_retry() -> Retry:
    """No retries: one could apply a write twice, and a frozen server must give 503 within two timeouts. A connection
    that broke while it was idle, say because the server was restarted, is noticed when it is acquired. (A command that
    a node of a cluster redirects, because a slot has moved, was not applied.)"""
    return Retry(NoBackoff(), 0)
