"""Documents about oil and about grain, as many as wanted, no two alike, for tests that send a stream of them."""

import random
from collections.abc import Sequence
from typing import Any

from tests.support.api import Api
from tests.support.readers import GRAIN_WORDS, OIL_WORDS, SHARED_WORDS

_ENDINGS = (
    "ban",
    "dor",
    "fil",
    "gam",
    "hul",
    "jex",
    "kiv",
    "lum",
    "nep",
    "qot",
    "rys",
    "suv",
    "tym",
    "vax",
    "wol",
    "zed",
)
OTHER_WORDS = [start + end for start in ("ka", "lo", "mi", "nu", "pe", "ra", "so", "ti") for end in _ENDINGS]


def document(id: str, vocabulary: Sequence[str], seed: int = 20) -> dict[str, Any]:
    rng = random.Random(f"{id} {seed}")
    words = [*rng.sample(list(vocabulary), 5), *rng.sample(SHARED_WORDS, 2), *rng.sample(OTHER_WORDS, 12)]
    rng.shuffle(words)
    return {"id": id, "title": f"Report {id}", "text": " ".join(words)}


def oil(n: int, prefix: str = "o") -> list[dict[str, Any]]:
    return [document(f"{prefix}{i}", OIL_WORDS) for i in range(n)]


def grain(n: int, prefix: str = "g") -> list[dict[str, Any]]:
    return [document(f"{prefix}{i}", GRAIN_WORDS) for i in range(n)]


async def classify(api: Api, documents: Sequence[dict[str, Any]], **options: Any) -> Any:
    """Results of classifying the documents, which are stored unless the options say otherwise."""
    return (await api.ok("POST", "/classify", {"documents": list(documents)} | options))["results"]


async def status(api: Api, topic: str = "crude") -> Any:
    return (await api.ok("GET", f"/topics/{topic}"))["status"]
