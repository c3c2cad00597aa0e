"""A live service with a little news, and a browser, both shared by the tests of a module."""

from collections.abc import Iterator
from itertools import count

import httpx
import pytest
from playwright.sync_api import Browser

from service.store.redis.embedded import Embedded
from tests.service.console.browser import chromium
from tests.support.live import Live, live

ENERGY = [
    ("OPEC meets", "OPEC agreed to cut crude oil output. Barrels of crude rose in price after the meeting in Vienna."),
    ("Pipeline closed", "A crude oil pipeline was closed; OPEC output falls and the price of barrels rises again."),
    ("Oil rigs strike", "Crews of oil rigs strike. Crude output falls, OPEC says, and the price of barrels goes up."),
    ("Tankers wait", "Tankers with barrels of crude oil wait at Rotterdam while OPEC talks about output and price."),
    ("Prices of crude", "Brent crude oil gained two dollars a barrel, a price that OPEC says reflects low output."),
]
TESTS = count()
HOSTILE = {
    "id": "evil/one two",
    "title": "<script>window.evil = 1</script> OPEC crude oil",
    "text": "<img src=https://evil.example/x onerror='window.evil = 1'> crude oil OPEC barrels {{ 7 * 7 }} \u202e",
    "source": "<b>bold</b>",
    "metadata": {"url": "javascript:window.evil=1"},
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def service(emptied: Embedded) -> Iterator[Live]:
    with live(emptied.url, sources_private=True) as service:
        yield service


class Service(httpx.Client):
    """The API of the live service, for what a test prepares and what it checks. Documents of other tests are
    remembered, so the documents of each test have ids of their own."""

    test = ""

    def id(self, n: int | str) -> str:
        return f"{self.test}-{n}"

    def topic(
        self, name: str = "Crude oil", query: str = "crude oil OPEC barrels output price", **fields: object
    ) -> str:
        answer = self.post("/topics", json={"name": name, "query": query, **fields})
        assert answer.is_success, answer.text
        return str(answer.json()["id"])

    def news(self, *others: object) -> None:
        named = [
            {
                "id": self.id(i),
                "title": title,
                "text": text,
                "source": "Wire",
                "published": f"2026-01-0{i + 1}T08:00:00Z",
                "metadata": {"url": f"https://news.example/{i}"},
            }
            for i, (title, text) in enumerate(ENERGY)
        ]
        answer = self.post("/classify", json={"documents": [*named, *others]})
        assert answer.is_success, answer.text

    def judgements(self, topic: str = "crude-oil") -> dict[str, bool]:
        items = self.get(f"/topics/{topic}/judgements").json()["items"]
        return {item["document"]: item["relevant"] for item in items}


@pytest.fixture
def api(service: Live) -> Iterator[Service]:
    """The live service, without any topic."""
    with Service(base_url=service.address, timeout=60) as client:
        client.test = f"test{next(TESTS)}"
        for topic in client.get("/topics").json()["items"]:
            client.delete(f"/topics/{topic['id']}")
        yield client
