"""Where topics send what they let through, and how the deliveries stand.

    sluice:routes          hash     topic -> its routes, in JSON, secrets and all
    sluice:route:ID        hash     delivered, failed; when and why last
    sluice:deliveries      hash     delivered, failed, given_up: over all routes, ever, also those that are gone
    {sluice:route:ID}:dead stream   place in the topic's stream, document and reason of what was given up; bounded

A route is a consumer group on its topic's stream (`sluice:out:…`): what it has delivered is settled there, what it has
not is pending, and how often an entry was tried is how often it was given. So any process may deliver, and none has
anything to lose. A route that is put again with the same target stays the same one, and goes on where it was.

Routes stand beside the log: they are no part of the model, and a secret must not be in anything that is exported.
"""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Literal, NamedTuple

from pydantic import TypeAdapter

from service.addresses import may_be_public
from service.errors import BadInput, FieldError
from service.schemas.fields import Answer
from service.schemas.flow import Route, ToWebhook
from service.store import outbox
from service.store.connection import Connection
from service.store.consumer_group import Arrived, Group
from service.store.keys import DELIVERIES, ROUTES, out_key, route_dead_key, route_key
from service.store.scripts import BATCH_SIZE, Script, Step

READER = "-"  # in the name of nobody who delivers
DEAD_KEPT = 1000  # of a route; the oldest are forgotten
LOOKED = 1000  # routes that are looked at for an overview
State = Literal["waiting", "delivering", "failing"]

# Adds to a stream, which may be none. Arguments: most entries kept, then fields.
ADD = """
local added = redis.pcall('XADD', KEYS[1], 'MAXLEN', '~', ARGV[1], '*', unpack(ARGV, 2))
return type(added) == 'table' and added.err or ''
"""

# How many entries were taken and are not settled; none where there is no stream. Arguments: group.
PENDING = """
local found = redis.pcall('XPENDING', KEYS[1], ARGV[1])
return type(found[1]) == 'number' and found[1] or 0
"""


class StoredRoute(Answer):
    """A route of a topic as it is stored."""

    topic: str
    route: Route

    @property
    def id(self) -> str:
        """The same whenever the topic has a route with this target."""
        target = self.route.url if isinstance(self.route, ToWebhook) else self.route.key
        return blake2b(f"{self.topic} {self.route.to} {target}".encode(), digest_size=8).hexdigest()


DESTINATIONS = TypeAdapter(list[StoredRoute])


class DeliveryStatus(NamedTuple):
    """How the deliveries of a route stand."""

    delivered: int
    failed: int
    pending: int
    dead: int
    failing: bool
    last_error: Mapping[str, str] | None  # document, reason, at_ms

    @property
    def state(self) -> State:
        return "failing" if self.failing else "delivering" if self.delivered else "waiting"


class Overall(NamedTuple):
    """How all deliveries stand; what follows the first is None and 0 where there are too many routes to look at."""

    deliveries: Mapping[str, int]  # delivered, failed, given_up: ever
    states: Mapping[State, int] | None
    pending: int = 0
    dead: int = 0


class GivenUp(NamedTuple):
    place: str  # in the topic's stream
    document: str
    reason: str


class Routes:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._redis = connection.redis

    async def all(self) -> list[StoredRoute]:
        async with self._connection.asking():
            rows = await self._redis.hvals(ROUTES)
        return [one for row in rows for one in DESTINATIONS.validate_json(row)]

    async def of(self, topic: str) -> list[StoredRoute]:
        async with self._connection.asking():
            row = await self._redis.hget(ROUTES, topic)
        return DESTINATIONS.validate_json(row) if row else []

    async def put(self, topic: str, wanted: Sequence[Route], private: bool) -> list[StoredRoute]:
        """These are the topic's routes now; new ones deliver what comes from now on. Addresses that are not public are
        refused unless `private` ones are allowed; names are looked up when something is delivered."""
        standing = {one.id: one for one in await self.of(topic)}
        made = [StoredRoute(topic=topic, route=route) for route in wanted]
        kept = [_kept(one, standing.get(one.id)) for one in made]
        if wrong := [error for i, one in enumerate(kept) for error in _wrong(i, one, kept[:i], private)]:
            raise BadInput("Some routes cannot be.", wrong)
        for one in kept:
            await self.group(one, READER).open("$")
        await self._connection.run([("HSET", ROUTES, topic, DESTINATIONS.dump_json(kept))])
        ids = {one.id for one in kept}
        await self._forget([one for one in standing.values() if one.id not in ids])
        return kept

    async def forget(self, topic: str) -> None:
        """The topic is gone, and its stream with all groups on it."""
        gone = await self.of(topic)
        await self._connection.run([("HDEL", ROUTES, topic)])
        await self._connection.run([("DEL", name) for one in gone for name in _keys(one.id)])

    async def standing(self, one: StoredRoute) -> DeliveryStatus:
        (found,) = await self._standing([one])
        return found

    async def look(self) -> Overall:
        """How all routes stand, together."""
        (said,) = await self._connection.run([("HGETALL", DELIVERIES)])
        deliveries = {name: int(said.get(name.encode(), 0)) for name in ("delivered", "failed", "given_up")}
        routes = await self.all()
        if len(routes) > LOOKED:
            return Overall(deliveries, None)
        found = await self._standing(routes)
        states: dict[State, int] = {"waiting": 0, "delivering": 0, "failing": 0}
        for one in found:
            states[one.state] += 1
        return Overall(deliveries, states, sum(one.pending for one in found), sum(one.dead for one in found))

    async def _standing(self, routes: Sequence[StoredRoute]) -> list[DeliveryStatus]:
        commands: list[Step] = []
        for one in routes:
            figures, dead = _keys(one.id)
            commands += [("HGETALL", figures), ("XLEN", dead)]
        groups = [self.group(one, READER) for one in routes]
        pending = [Script(PENDING, [group.stream], [group.group]) for group in groups]
        found = await self._connection.run([*commands, *pending])
        rows = zip(found[: len(commands) : 2], found[1 : len(commands) : 2], found[len(commands) :], strict=True)
        return [_standing(said, int(given_up), int(pending)) for said, given_up, pending in rows]

    async def dead(self, one: StoredRoute, before: str | None, limit: int) -> list[tuple[str, GivenUp]]:
        """What was given up before that place, newest first, each with its own place among the dead."""
        if before and outbox.order(before) == outbox.order(outbox.START):
            return []
        async with self._connection.asking():
            last = f"({before}" if before else "+"
            rows = await self._redis.xrevrange(_keys(one.id)[1], last, "-", count=limit)
        return [
            (place.decode(), GivenUp(*(fields[name.encode()].decode() for name in GivenUp._fields)))
            for place, fields in rows
        ]

    async def replay(self, one: StoredRoute, after: str | None, due_s: float) -> int:
        """What is dead, or everything after that place, is delivered once more; how many these are."""
        if after is None:
            dead = await self.dead(one, None, DEAD_KEPT)
            places = [given_up.place for _, given_up in dead]
            done: list[Step] = [("XDEL", _keys(one.id)[1], *(place for place, _ in dead))] if dead else []
        else:
            places, done = await self._places(one.topic, after), []
        group = self.group(one, READER)
        # In this order: should the store fail half-way, some are delivered twice rather than never.
        answers = await self._connection.run([*(group.requeue_cmd(place, due_s) for place in places), *done])
        return sum(answers[: len(places)])

    async def _places(self, topic: str, after: str) -> list[str]:
        found: list[str] = []
        while True:
            async with self._connection.asking():
                at = found[-1] if found else after
                rows = await self._redis.xrange(out_key(topic), f"({at}", "+", count=BATCH_SIZE)
            found += [place.decode() for place, _ in rows]
            if len(rows) < BATCH_SIZE:
                return found

    # -- for those who deliver -----------------------------------------------------------------------------------------

    def group(self, one: StoredRoute, consumer: str) -> Group:
        return Group(self._connection, out_key(one.topic), f"route:{one.id}", consumer)

    async def add(self, key: str, topic: str, arrived: Arrived, kept: int) -> str:
        """The entry is in another stream, with the topic that let it through; else, why it is not."""
        fields = [part for pair in arrived.fields.items() for part in pair]
        (refused,) = await self._connection.run([Script(ADD, [key], [kept, "topic", topic, *fields])])
        return str(refused.decode())

    async def delivered(self, one: StoredRoute, group: Group, arrived: Arrived, now_ms: int) -> None:
        figures, _ = _keys(one.id)
        steps: list[Step] = [
            group.settled(arrived.place),
            ("HINCRBY", figures, "delivered", 1),
            ("HSET", figures, "delivered_ms", now_ms),
            ("HINCRBY", DELIVERIES, "delivered", 1),
        ]
        await self._connection.run(steps)

    async def retire(self, group: Group, silent_s: float) -> None:
        """Whoever has been silent for so long and holds nothing is forgotten."""
        await self._connection.run([group.drop_idle_cmd(silent_s)])

    async def passed_over(self, group: Group, arrived: Arrived) -> None:
        """The route does not want it."""
        await self._connection.run([group.settled(arrived.place)])

    async def failed(
        self, one: StoredRoute, group: Group, arrived: Arrived, reason: str, now_ms: int, silent_s: float | None
    ) -> None:
        """It is tried again when it has been silent for long enough; or never, where that is None."""
        figures, dead = _keys(one.id)
        document = arrived.fields[b"document"]
        steps: list[Step] = [
            ("HINCRBY", figures, "failed", 1),
            ("HSET", figures, "document", document, "reason", reason, "at_ms", now_ms),
            ("HINCRBY", DELIVERIES, "failed", 1),
        ]
        if silent_s is not None:
            steps.append(group.postpone_cmd(arrived.place, silent_s))
        else:
            given_up = ("place", arrived.place, "document", document, "reason", reason)
            steps += [("XADD", dead, "MAXLEN", "~", DEAD_KEPT, "*", *given_up), group.settled(arrived.place)]
            steps += [("HINCRBY", DELIVERIES, "given_up", 1)]
        await self._connection.run(steps)

    async def _forget(self, gone: Sequence[StoredRoute]) -> None:
        for one in gone:
            group = self.group(one, READER)
            keys: list[Step] = [("DEL", name) for name in _keys(one.id)]
            await self._connection.run([*keys, ("XGROUP", "DESTROY", group.stream, group.group)])


def _kept(made: StoredRoute, standing: StoredRoute | None) -> StoredRoute:
    """The route with the secret that it had, unless another is given."""
    route, was = made.route, standing.route if standing else None
    if isinstance(route, ToWebhook) and isinstance(was, ToWebhook) and route.secret is None:
        return made.model_copy(update={"route": route.model_copy(update={"secret": was.secret})})
    return made


def _standing(said: Mapping[bytes, bytes], dead: int, pending: int) -> DeliveryStatus:
    found = {name.decode(): value.decode() for name, value in said.items()}
    error = {name: found[name] for name in ("document", "reason", "at_ms")} if "reason" in found else None
    failing = int(found.get("at_ms", 0)) > int(found.get("delivered_ms", 0))
    delivered, failed = int(found.get("delivered", 0)), int(found.get("failed", 0))
    return DeliveryStatus(delivered, failed, pending, dead, failing, error)


def _wrong(i: int, one: StoredRoute, others: Sequence[StoredRoute], private: bool) -> Iterator[FieldError]:
    if one.id in [other.id for other in others]:
        yield FieldError(pointer=f"/routes/{i}", detail="There is another with the same target.")
    if isinstance(one.route, ToWebhook):
        if one.route.secret is None:
            yield FieldError(pointer=f"/routes/{i}/secret", detail="A new webhook needs a secret.")
        if not private and not may_be_public(one.route.url):
            detail = "This is not a public address; SLUICE_WEBHOOKS_PRIVATE allows others."
            yield FieldError(pointer=f"/routes/{i}/url", detail=detail)


def _keys(route: str) -> tuple[str, str]:
    return route_key(route), route_dead_key(route)
