"""Where topics send what they let through, and the status of the deliveries.

A route is a consumer group on its topic's stream: entries are acknowledged once they are delivered and pending until
then, and Redis's delivery count is the number of attempts. So any process may deliver, and nothing is lost with a
process that dies. If routes are replaced, one with the same target as before continues where it was.

Routes are stored beside the log: they are not part of the model, and an exported topic must not contain secrets.
"""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Literal, NamedTuple

from pydantic import TypeAdapter

from service.addresses import may_be_public
from service.errors import BadInput, FieldError
from service.schemas.fields import Answer
from service.schemas.flow import Route, ToWebhook
from service.store.redis.connection import Connection
from service.store.redis.consumer_group import Arrived, ConsumerGroup
from service.store.redis.keys import DELIVERIES, ROUTES, out_key, route_dead_key, route_key
from service.store.redis.scripts import BATCH_SIZE, Script, Step
from service.store.stream import outbox

READER = "-"  # name of the consumer in processes that do not deliver
DEAD_KEPT = 1000  # entries of a route; the oldest are deleted
MAX_LISTED = 1000  # routes whose status is loaded for an overview
State = Literal["waiting", "delivering", "failing"]

# Adds an entry to a stream; replies with the error if the key is not a stream. Arguments: maximum length of the stream,
# then fields.
ADD = """
local added = redis.pcall('XADD', KEYS[1], 'MAXLEN', '~', ARGV[1], '*', unpack(ARGV, 2))
return type(added) == 'table' and added.err or ''
"""

# The number of pending entries; 0 if there is no stream. Arguments: group.
PENDING = """
local summary = redis.pcall('XPENDING', KEYS[1], ARGV[1])
return type(summary[1]) == 'number' and summary[1] or 0
"""


class StoredRoute(Answer):
    """A route of a topic as it is stored."""

    topic: str
    route: Route

    @property
    def id(self) -> str:
        """An id that depends only on the topic and the target."""
        target = self.route.url if isinstance(self.route, ToWebhook) else self.route.key
        return blake2b(f"{self.topic} {self.route.to} {target}".encode(), digest_size=8).hexdigest()


STORED_ROUTES = TypeAdapter(list[StoredRoute])


class DeliveryStatus(NamedTuple):
    """The deliveries of a route."""

    delivered: int
    failed: int
    pending: int
    dead: int
    failing: bool
    last_error: Mapping[str, str] | None  # document, reason, at_ms

    @property
    def state(self) -> State:
        return "failing" if self.failing else "delivering" if self.delivered else "waiting"


class DeliveryTotals(NamedTuple):
    """The deliveries of all routes; if there are more than MAX_LISTED, only `deliveries` is counted."""

    deliveries: Mapping[str, int]  # delivered, failed, given_up: ever
    states: Mapping[State, int] | None
    pending: int = 0
    dead: int = 0


class GivenUp(NamedTuple):
    place: str  # in the topic's stream
    document: str
    reason: str


class RouteStore:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._redis = connection.redis

    async def load_all(self) -> list[StoredRoute]:
        async with self._connection.acquire():
            rows = await self._redis.hvals(ROUTES)
        return [route for row in rows for route in STORED_ROUTES.validate_json(row)]

    async def load(self, topic: str) -> list[StoredRoute]:
        async with self._connection.acquire():
            row = await self._redis.hget(ROUTES, topic)
        return STORED_ROUTES.validate_json(row) if row else []

    async def put(self, topic: str, wanted: Sequence[Route], private: bool) -> list[StoredRoute]:
        """Replaces the topic's routes; new ones deliver what comes from now on. Addresses that are not public are
        refused unless `private` ones are allowed; names are resolved when something is delivered."""
        previous = {route.id: route for route in await self.load(topic)}
        requested = [StoredRoute(topic=topic, route=route) for route in wanted]
        routes = [_with_secret(route, previous.get(route.id)) for route in requested]
        if errors := [error for i, route in enumerate(routes) for error in _errors(i, route, routes[:i], private)]:
            raise BadInput("Some routes are invalid.", errors)
        for route in routes:
            await self.group(route, READER).open("$")
        await self._connection.run([("HSET", ROUTES, topic, STORED_ROUTES.dump_json(routes))])
        ids = {route.id for route in routes}
        await self._delete([route for route in previous.values() if route.id not in ids])
        return routes

    async def forget(self, topic: str) -> None:
        """Deletes the routes of a topic whose stream, with all its consumer groups, is gone."""
        routes = await self.load(topic)
        await self._connection.run([("HDEL", ROUTES, topic)])
        await self._connection.run([("DEL", key) for route in routes for key in _keys(route)])

    async def load_status(self, route: StoredRoute) -> DeliveryStatus:
        (status,) = await self._load_statuses([route])
        return status

    async def load_totals(self) -> DeliveryTotals:
        (stored,) = await self._connection.run([("HGETALL", DELIVERIES)])
        deliveries = {name: int(stored.get(name.encode(), 0)) for name in ("delivered", "failed", "given_up")}
        routes = await self.load_all()
        if len(routes) > MAX_LISTED:
            return DeliveryTotals(deliveries, None)
        statuses = await self._load_statuses(routes)
        states: dict[State, int] = {"waiting": 0, "delivering": 0, "failing": 0}
        for status in statuses:
            states[status.state] += 1
        pending, dead = sum(status.pending for status in statuses), sum(status.dead for status in statuses)
        return DeliveryTotals(deliveries, states, pending, dead)

    async def _load_statuses(self, routes: Sequence[StoredRoute]) -> list[DeliveryStatus]:
        commands: list[Step] = []
        for route in routes:
            stats, dead = _keys(route)
            commands += [("HGETALL", stats), ("XLEN", dead)]
        groups = [self.group(route, READER) for route in routes]
        pending = [Script(PENDING, [group.stream], [group.group]) for group in groups]
        replies = await self._connection.run([*commands, *pending])
        end = len(commands)
        rows = zip(replies[:end:2], replies[1:end:2], replies[end:], strict=True)
        return [_status(stored, int(dead), int(pending)) for stored, dead, pending in rows]

    async def load_dead(self, route: StoredRoute, before: str | None, limit: int) -> list[tuple[str, GivenUp]]:
        """Entries that were given up, newest first, each with its place among the dead letters; those before
        `before`."""
        if before and outbox.order(before) == outbox.order(outbox.START):
            return []
        async with self._connection.acquire():
            last = f"({before}" if before else "+"
            rows = await self._redis.xrevrange(route_dead_key(route.id), last, "-", count=limit)
        return [
            (place.decode(), GivenUp(*(fields[name.encode()].decode() for name in GivenUp._fields)))
            for place, fields in rows
        ]

    async def replay(self, route: StoredRoute, after: str | None, idle_s: float) -> int:
        """Requeues the dead entries, or all entries after that place, and returns how many there are."""
        if after is None:
            dead = await self.load_dead(route, None, DEAD_KEPT)
            places = [given_up.place for _, given_up in dead]
            delete: list[Step] = [("XDEL", route_dead_key(route.id), *(place for place, _ in dead))] if dead else []
        else:
            places, delete = await self._places(route.topic, after), []
        group = self.group(route, READER)
        # In this order: if Redis fails halfway, some are delivered twice rather than never.
        replies = await self._connection.run([*(group.requeue_cmd(place, idle_s) for place in places), *delete])
        return sum(replies[: len(places)])

    async def _places(self, topic: str, after: str) -> list[str]:
        places: list[str] = []
        while True:
            async with self._connection.acquire():
                last = places[-1] if places else after
                rows = await self._redis.xrange(out_key(topic), f"({last}", "+", count=BATCH_SIZE)
            places += [place.decode() for place, _ in rows]
            if len(rows) < BATCH_SIZE:
                return places

    # -- for deliveries ------------------------------------------------------------------------------------------------

    def group(self, route: StoredRoute, consumer: str) -> ConsumerGroup:
        return ConsumerGroup(self._connection, out_key(route.topic), f"route:{route.id}", consumer)

    async def add(self, key: str, topic: str, arrived: Arrived, kept: int) -> str:
        """Adds the entry to another stream, with its topic. Returns the error if that fails, or ""."""
        fields = [part for pair in arrived.fields.items() for part in pair]
        (error,) = await self._connection.run([Script(ADD, [key], [kept, "topic", topic, *fields])])
        return str(error.decode())

    async def drop_idle(self, group: ConsumerGroup, idle_s: float) -> None:
        """Deletes consumers that have been idle for that long and have nothing pending."""
        await self._connection.run([group.drop_idle_cmd(idle_s)])

    async def skip(self, group: ConsumerGroup, arrived: Arrived) -> None:
        """Acknowledges an entry that the route does not want."""
        await self._connection.run([group.ack_cmd(arrived.place)])

    async def delivered(self, route: StoredRoute, group: ConsumerGroup, arrived: Arrived, now_ms: int) -> None:
        """Acknowledges an entry that was delivered."""
        stats, _ = _keys(route)
        steps: list[Step] = [
            group.ack_cmd(arrived.place),
            ("HINCRBY", stats, "delivered", 1),
            ("HSET", stats, "delivered_ms", now_ms),
            ("HINCRBY", DELIVERIES, "delivered", 1),
        ]
        await self._connection.run(steps)

    async def failed(
        self, route: StoredRoute, group: ConsumerGroup, arrived: Arrived, reason: str, now_ms: int, idle_s: float | None
    ) -> None:
        """Postpones an entry, as if it had been idle for `idle_s`; gives it up if that is None."""
        stats, dead = _keys(route)
        document = arrived.fields[b"document"]
        steps: list[Step] = [
            ("HINCRBY", stats, "failed", 1),
            ("HSET", stats, "document", document, "reason", reason, "at_ms", now_ms),
            ("HINCRBY", DELIVERIES, "failed", 1),
        ]
        if idle_s is not None:
            steps.append(group.postpone_cmd(arrived.place, idle_s))
        else:
            given_up = ("place", arrived.place, "document", document, "reason", reason)
            steps += [("XADD", dead, "MAXLEN", "~", DEAD_KEPT, "*", *given_up), group.ack_cmd(arrived.place)]
            steps += [("HINCRBY", DELIVERIES, "given_up", 1)]
        await self._connection.run(steps)

    async def _delete(self, routes: Sequence[StoredRoute]) -> None:
        for route in routes:
            group = self.group(route, READER)
            keys: list[Step] = [("DEL", key) for key in _keys(route)]
            await self._connection.run([*keys, ("XGROUP", "DESTROY", group.stream, group.group)])


def _with_secret(requested: StoredRoute, previous: StoredRoute | None) -> StoredRoute:
    """The route with the secret that it had, unless another is given."""
    route, before = requested.route, previous.route if previous else None
    if isinstance(route, ToWebhook) and isinstance(before, ToWebhook) and route.secret is None:
        return requested.model_copy(update={"route": route.model_copy(update={"secret": before.secret})})
    return requested


def _status(stored: Mapping[bytes, bytes], dead: int, pending: int) -> DeliveryStatus:
    stats = {name.decode(): value.decode() for name, value in stored.items()}
    error = {name: stats[name] for name in ("document", "reason", "at_ms")} if "reason" in stats else None
    failing = int(stats.get("at_ms", 0)) > int(stats.get("delivered_ms", 0))
    delivered, failed = int(stats.get("delivered", 0)), int(stats.get("failed", 0))
    return DeliveryStatus(delivered, failed, pending, dead, failing, error)


def _errors(i: int, route: StoredRoute, others: Sequence[StoredRoute], private: bool) -> Iterator[FieldError]:
    if route.id in [other.id for other in others]:
        yield FieldError(pointer=f"/routes/{i}", detail="Another route has the same target.")
    if isinstance(route.route, ToWebhook):
        if route.route.secret is None and route.route.format == "sluice":
            yield FieldError(pointer=f"/routes/{i}/secret", detail="A new webhook needs a secret.")
        if not private and not may_be_public(route.route.url):
            detail = "This is not a public address; SLUICE_WEBHOOKS_PRIVATE allows others."
            yield FieldError(pointer=f"/routes/{i}/url", detail=detail)


def _keys(route: StoredRoute) -> tuple[str, str]:
    """The keys of its statistics and of its dead entries."""
    return route_key(route.id), route_dead_key(route.id)
