"""Readers that judge at the same time and remember what they were told, for tests that break something meanwhile."""

import asyncio
import random
from collections.abc import Iterable, Sequence
from typing import Any

import httpx

Label = bool | None  # None: no judgement stands

OIL = ["oil", "crude", "opec", "barrel", "output", "refinery", "tanker", "pipeline", "gulf", "quota", "supply"]
GRAIN = ["wheat", "maize", "harvest", "drought", "farmer", "acre", "grain", "soy", "rain", "crop", "silo", "season"]
BOTH = ["price", "export", "minister", "market", "demand", "tariff"]


class Reader:
    """A client that judges documents of its own, one request at a time, in topics that it shares with others.

    `told` is what the service acknowledged. A request that failed may have been applied or not: its documents are in
    `doubtful`, with the labels they may have, and are left alone until the list of judgements is `compared`.
    """

    def __init__(self, name: str, topics: Sequence[str], seed: int) -> None:
        self.told: dict[tuple[str, str], Label] = {}
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
        """One request: new judgements mostly, then corrections, repetitions, withdrawals, documents without judging."""
        topic = self._random.choice(self._topics)
        known = [key for key, label in self.told.items() if key[0] == topic and label is not None]
        known = [key for key in known if key not in self.doubtful]
        act = self._random.random()
        if act < 0.5 or not known:
            judged = [(self.document(), self._random.random() < 0.4) for _ in range(self._random.choice((1, 1, 1, 4)))]
            await self._judge(client, topic, judged)
        elif act < 0.6:  # by the id of a document that was classified before
            document = self.document()
            if await self._sent(client, "POST", "/classify", {"documents": [document]}):
                await self._judge(client, topic, [(document["id"], True)])
        else:
            key = self._random.choice(known)
            if act < 0.8:
                await self._judge(client, topic, [(key[1], not self.told[key])])
            elif act < 0.85:
                await self._judge(client, topic, [(key[1], bool(self.told[key]))])
            else:
                self.doubtful[key] = {self.told[key], None}
                if await self._sent(client, "DELETE", f"/topics/{topic}/judgements/{key[1]}"):
                    self.told[key] = None
                    del self.doubtful[key]

    def document(self) -> dict[str, str]:
        self._made += 1
        words = self._random.choices(self._random.choice((OIL, GRAIN)) + BOTH, k=12)
        return {"id": f"{self._name}-{self._made}", "text": " ".join(words)}

    async def _judge(
        self, client: httpx.AsyncClient, topic: str, judged: Sequence[tuple[dict[str, str] | str, bool]]
    ) -> None:
        keys = [(topic, d if isinstance(d, str) else d["id"]) for d, _ in judged]
        labels = [label for _, label in judged]
        for key, label in zip(keys, labels, strict=True):
            self.doubtful[key] = {self.told.get(key), label}
        judgements = [{"topic": topic, "document": d, "relevant": label} for d, label in judged]
        body = judgements[0] if len(judgements) == 1 else {"judgements": judgements}
        answer = await self._sent(client, "POST", "/feedback", body)
        for key, label, result in zip(keys, labels, _results(answer), strict=False):
            if result["status"] in ("learned", "corrected", "known"):
                self.told[key] = label
                del self.doubtful[key]
                self.acknowledged += 1
            else:
                assert result["status"] == 503, result

    async def _sent(self, client: httpx.AsyncClient, method: str, path: str, body: Any = None) -> Any:
        answer = await sent(client, method, path, body)
        self.failed += answer is None
        return answer and answer.json()

    def compare(self, topic: str, listed: dict[str, bool]) -> None:
        """What stands in the service is what we were told; where we were not told, it is one of the two."""
        for key, label in self.told.items():
            if key[0] == topic and key not in self.doubtful:
                assert listed.get(key[1]) is label, f"acknowledged {key} as {label}, listed as {listed.get(key[1])}"
        for key, labels in list(self.doubtful.items()):
            if key[0] == topic:
                assert listed.get(key[1]) in labels, f"{key} can be {labels}, is {listed.get(key[1])}"
                self.told[key] = listed.get(key[1])
                del self.doubtful[key]

    def knows(self, topic: str) -> set[str]:
        """The documents it has ever judged there."""
        return {key[1] for key in self.told.keys() | self.doubtful.keys() if key[0] == topic}


class Maker:
    """A client that makes topics and deletes every third again; `told` is which of them are there, to its knowledge.

    Where a request failed it never knows: a process may list a topic for a moment that another has deleted.
    """

    def __init__(self) -> None:
        self.told: dict[str, bool] = {}
        self.made = 0

    async def work(self, client: httpx.AsyncClient, stopping: asyncio.Event, pause_s: float = 0.1) -> None:
        while not stopping.is_set():
            self.made += 1
            topic, stays = f"made-{self.made}", self.made % 3 > 0
            made = await sent(client, "POST", "/topics", {"id": topic, "query": " ".join(BOTH)})
            if made and (stays or await sent(client, "DELETE", f"/topics/{topic}")):
                self.told[topic] = stays
            await asyncio.sleep(pause_s)

    def compare(self, listed: set[str]) -> None:
        for topic, there in self.told.items():
            assert (topic in listed) is there, f"{topic} was {'made' if there else 'deleted'}"


async def sent(client: httpx.AsyncClient, method: str, path: str, body: Any = None) -> httpx.Response | None:
    """The answer if it was a success; None if the service was not there."""
    try:
        answer = await client.request(method, path, json=body)
    except httpx.TransportError:
        return None
    if answer.status_code == 503:
        return None
    assert answer.is_success, f"{answer.status_code} {answer.text}"
    return answer


async def judgements(client: httpx.AsyncClient, topic: str) -> dict[str, bool]:
    """Every judgement that stands in a topic, document by document."""
    return {item["document"]: item["relevant"] for item in await everything(client, f"/topics/{topic}/judgements")}


async def everything(client: httpx.AsyncClient, path: str) -> list[Any]:
    """All items of a list, page by page."""
    items: list[Any] = []
    params = {"limit": "1000"}
    while True:
        page = (await client.get(path, params=params)).raise_for_status().json()
        items += page["items"]
        if page["next"] is None:
            return items
        params["cursor"] = page["next"]


def compare(readers: Iterable[Reader], topic: str, listed: dict[str, bool]) -> None:
    """Nothing acknowledged is missing, and nothing is there that nobody sent."""
    readers = list(readers)
    for reader in readers:
        reader.compare(topic, listed)
    assert set(listed) <= set[str]().union(*(reader.knows(topic) for reader in readers))


def _results(answer: Any) -> list[Any]:
    if answer is None:
        return []
    return list(answer["results"]) if "results" in answer else [answer]
