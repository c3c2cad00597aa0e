"""Streams in which some words mean the same: what a projection can learn, and words alone cannot."""

import random
from collections.abc import Sequence
from typing import Any

from models.text.analysis import Analysis, bags
from service.sluice import Sluice
from service.topics.background import Epochs

LETTERS = "bcdfghklmnprstvz"
WORDS, LENGTH = 60, 24  # of each vocabulary; of a document


def _vocabulary(stem: str) -> list[str]:
    return [f"{stem}{LETTERS[n // len(LETTERS)]}a{LETTERS[n % len(LETTERS)]}" for n in range(WORDS)]


# Each subject has two vocabularies, and documents use words of one or of both.
SUBJECTS = {name: (_vocabulary(name), _vocabulary(f"{name}o")) for name in ("oil", "grain", "metal", "money")}
SHARED = _vocabulary("e")


def document(name: str, subject: str, seed: int, sides: Sequence[int] = (0, 1)) -> dict[str, Any]:
    """A document of a subject, in words of these of its two vocabularies."""
    rng = random.Random(f"{name} {subject} {seed}")
    own = [word for side in sides for word in SUBJECTS[subject][side]]
    words = rng.choices(own, k=LENGTH) + rng.choices(SHARED, k=LENGTH // 3)
    rng.shuffle(words)
    return {"id": f"{name}-{subject}-{seed}", "text": " ".join(words)}


def stream(name: str, n: int) -> list[dict[str, Any]]:
    return [document(name, list(SUBJECTS)[i % len(SUBJECTS)], i) for i in range(n)]


def count(epochs: Epochs, documents: Sequence[dict[str, Any]]) -> None:
    """Counts documents as if they had passed."""
    ids = [each["id"] for each in documents]
    epochs.count(ids, bags([("", each["text"]) for each in documents], Analysis()), ids)


async def count_stream(sluice: Sluice, name: str, n: int) -> None:
    """Publishes an epoch of so many more documents."""
    count(sluice.epochs, stream(name, n))
    await sluice.epochs.publish()
