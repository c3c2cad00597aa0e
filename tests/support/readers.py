"""Readers who judge at the same time and remember what was acknowledged, for tests that break something meanwhile."""

import asyncio
import random
from collections.abc import Iterable, Sequence
from typing import Any

import httpx

Label = bool | None  # None: no judgement stands

OIL_WORDS = ["oil", "crude", "opec", "barrel", "output", "refinery", "tanker", "pipeline", "gulf", "quota", "supply"]
GRAIN_WORDS = [
    "wheat",
    "maize",
    "harvest",
    "drought",
    "farmer",
    "acre",
    "grain",
    "soy",
    "rain",
    "crop",
    "silo",
    "season",
]
SHARED_WORDS = ["price", "export", "minister", "market", "demand", "tariff"]


class JudgingClient:
    """A client that judges documents of its own, one request at a time, in topics that it shares with others.

    `labels` is what the service acknowledged. A request that failed may have been applied or not: its documents are in
    `doubtful`, with the labels they may have, and are left alone until `compare` has seen the list of judgements.
    """

    def __init__(self, name: str, topics: Sequence[str], seed: int) -> None:
        self.labels: dict[tuple[str, str], Label] = {}
        self.doubtful: dict[tuple[str, str], set[Label]] = {}
        self.acknowledged = self.failed = 0
        self._name = name
        self._topics = topics
        self._random = random.Random(f"{name} {seed}")
        self._made = 0

    async def work(self, client: httpx.AsyncClient, stopping: asyncio.Event, pause_s: float = 0.01) -> None:
        while not stopping.is_set():
            await self.step(client)
            await asyncio.sleep(self._random.uniform(0, pause_s))

    async def step(self, client: httpx.AsyncClient) -> None:
        """Sends a request: mostly new judgements, also corrections, repetitions, withdrawals, documents to classify."""
        topic = self._random.choice(self._topics)
        known = [key for key, label in self.labels.items() if key[0] == topic and label is not None]
        known = [key for key in known if key not in self.doubtful]
        act = self._random.random()
        if act < 0.5 or not known:
            judged = [(self.document(), self._random.random() < 0.4) for _ in range(self._random.choice((1, 1, 1, 4)))]
            await self._judge(client, topic, judged)
        elif act < 0.6:  # by the id of a document that was classified before
            document = self.document()
            if await self._send(client, "POST", "/classify", {"documents": [document]}):
                await self._judge(client, topic, [(document["id"], True)])
        else:
            key = self._random.choice(known)
            if act < 0.8:
                await self._judge(client, topic, [(key[1], not self.labels[key])])
            elif act < 0.85:
                await self._judge(client, topic, [(key[1], bool(self.labels[key]))])
            else:
                self.doubtful[key] = {self.labels[key], None}
                if await self._send(client, "DELETE", f"/topics/{topic}/judgements/{key[1]}"):
                    self.labels[key] = None
                    del self.doubtful[key]

    def document(self) -> dict[str, str]:
        """A new document."""
        self._made += 1
        words = self._random.choices(self._random.choice((OIL_WORDS, GRAIN_WORDS)) + SHARED_WORDS, k=12)
        return {"id": f"{self._name}-{self._made}", "text": " ".join(words)}

    async def _judge(
        self, client: httpx.AsyncClient, topic: str, judged: Sequence[tuple[dict[str, str] | str, bool]]
    ) -> None:
        keys = [(topic, d if isinstance(d, str) else d["id"]) for d, _ in judged]
        labels = [label for _, label in judged]
        for key, label in zip(keys, labels, strict=True):
            self.doubtful[key] = {self.labels.get(key), label}
        judgements = [{"topic": topic, "document": d, "relevant": label} for d, label in judged]
        body = judgements[0] if len(judgements) == 1 else {"judgements": judgements}
        reply = await self._send(client, "POST", "/feedback", body)
        for key, label, result in zip(keys, labels, _results(reply), strict=False):
            if result["status"] in ("learned", "corrected", "known"):
                self.labels[key] = label
                del self.doubtful[key]
                self.acknowledged += 1
            else:
                assert result["status"] == 503, result

    async def _send(self, client: httpx.AsyncClient, method: str, path: str, body: Any = None) -> Any:
        response = await send(client, method, path, body)
        self.failed += response is None
        return response and response.json()

    def compare(self, topic: str, listed: dict[str, bool]) -> None:
        """Each judgement stands as it was acknowledged; a doubtful one has the label of before or after."""
        for key, label in self.labels.items():
            if key[0] == topic and key not in self.doubtful:
                assert listed.get(key[1]) is label, f"acknowledged {key} as {label}, listed as {listed.get(key[1])}"
        for key, labels in list(self.doubtful.items()):
            if key[0] == topic:
                assert listed.get(key[1]) in labels, f"{key} can be {labels}, is {listed.get(key[1])}"
                self.labels[key] = listed.get(key[1])
                del self.doubtful[key]

    def judged(self, topic: str) -> set[str]:
        """The documents it has ever judged there."""
        return {key[1] for key in self.labels.keys() | self.doubtful.keys() if key[0] == topic}


class TopicChurn:
    """A client that creates topics and deletes every third again; `exists` says of each whether it must be there.

    A topic for which a request failed is left out: a process may list a topic for a moment that another has deleted.
    """

    def __init__(self) -> None:
        self.exists: dict[str, bool] = {}
        self.made = 0

    async def work(self, client: httpx.AsyncClient, stopping: asyncio.Event, pause_s: float = 0.1) -> None:
        while not stopping.is_set():
            self.made += 1
            topic, stays = f"made-{self.made}", self.made % 3 > 0
            created = await send(client, "POST", "/topics", {"id": topic, "query": " ".join(SHARED_WORDS)})
            if created and (stays or await send(client, "DELETE", f"/topics/{topic}")):
                self.exists[topic] = stays
            await asyncio.sleep(pause_s)

    def compare(self, listed: set[str]) -> None:
        for topic, exists in self.exists.items():
            assert (topic in listed) is exists, f"{topic} was {'created' if exists else 'deleted'}"


async def send(client: httpx.AsyncClient, method: str, path: str, body: Any = None) -> httpx.Response | None:
    """The response, which must be a success; None if the service was not there."""
    try:
        response = await client.request(method, path, json=body)
    except httpx.TransportError:
        return None
    if response.status_code == 503:
        return None
    assert response.is_success, f"{response.status_code} {response.text}"
    return response


async def judgements(client: httpx.AsyncClient, topic: str) -> dict[str, bool]:
    """By document, every judgement that stands in a topic."""
    return {item["document"]: item["relevant"] for item in await list_all(client, f"/topics/{topic}/judgements")}


async def list_all(client: httpx.AsyncClient, path: str) -> list[Any]:
    """All items of a list, page by page."""
    items: list[Any] = []
    params = {"limit": "1000"}
    while True:
        page = (await client.get(path, params=params)).raise_for_status().json()
        items += page["items"]
        if page["next"] is None:
            return items
        params["cursor"] = page["next"]


def compare(readers: Iterable[JudgingClient], topic: str, listed: dict[str, bool]) -> None:
    """Nothing acknowledged is missing, and nothing is there that nobody sent."""
    readers = list(readers)
    for reader in readers:
        reader.compare(topic, listed)
    assert set(listed) <= set[str]().union(*(reader.judged(topic) for reader in readers))


def _results(reply: Any) -> list[Any]:
    if reply is None:
        return []
    return list(reply["results"]) if "results" in reply else [reply]
