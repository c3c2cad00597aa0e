"""Documents of two kinds, any number, no two alike, for tests that let a stream pass."""

import random
from collections.abc import Sequence
from typing import Any

from tests.support.api import Api
from tests.support.readers import GRAIN_WORDS, OIL_WORDS, SHARED_WORDS

_ENDS = ("ban", "dor", "fil", "gam", "hul", "jex", "kiv", "lum", "nep", "qot", "rys", "suv", "tym", "vax", "wol", "zed")
OTHER = [a + b for a in ("ka", "lo", "mi", "nu", "pe", "ra", "so", "ti") for b in _ENDS]


def document(id: str, kind: Sequence[str], seed: int = 20) -> dict[str, Any]:
    chance = random.Random(f"{id} {seed}")
    words = [*chance.sample(list(kind), 5), *chance.sample(SHARED_WORDS, 2), *chance.sample(OTHER, 12)]
    chance.shuffle(words)
    return {"id": id, "title": f"Report {id}", "text": " ".join(words)}


def oil(n: int, prefix: str = "o") -> list[dict[str, Any]]:
    return [document(f"{prefix}{i}", OIL_WORDS) for i in range(n)]


def grain(n: int, prefix: str = "g") -> list[dict[str, Any]]:
    return [document(f"{prefix}{i}", GRAIN_WORDS) for i in range(n)]


async def classify(api: Api, documents: Sequence[dict[str, Any]], **options: Any) -> Any:
    """The results of documents that pass and are remembered."""
    return (await api.ok("POST", "/classify", {"documents": list(documents)} | options))["results"]


async def status(api: Api, topic: str = "crude") -> Any:
    return (await api.ok("GET", f"/topics/{topic}"))["status"]
