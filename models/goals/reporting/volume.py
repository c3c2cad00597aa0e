"""How many documents a topic lets through, and whether it has fallen silent or floods its reader.

    silent    nothing is accepted or abstained from lately, although before it was so often that chance explains this
              once in a hundred times at most:  (1 − low(kept, documents))ⁿ ≤ MAX_CHANCE
    flooded   more is accepted lately than the share before explains with a chance of MAX_CHANCE, and at least
              FLOOD_RATIO times as much; or more than FLOOD_SHARE of everything

Both need counts alone, so they are known before anybody judges. `low` and `high` are Clopper & Pearson's.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from scipy.special import bdtrc

from models.core import intervals

MAX_CHANCE, CONFIDENCE = 0.01, 0.95
MIN_DOCUMENTS = 200  # lately
FLOOD_RATIO, FLOOD_SHARE = 2.0, 0.5


@dataclass(frozen=True, slots=True)
class StreamCounts:
    """How documents were decided as they passed."""

    documents: int = 0
    accepted: int = 0
    abstained: int = 0

    @property
    def rejected(self) -> int:
        return self.documents - self.accepted - self.abstained

    def __add__(self, other: "StreamCounts") -> "StreamCounts":
        return StreamCounts(
            self.documents + other.documents, self.accepted + other.accepted, self.abstained + other.abstained
        )


class VolumeAlert(NamedTuple):
    silent: bool = False
    flooded: bool = False
    detail: str = ""


def check_volume(buckets: Sequence[StreamCounts]) -> VolumeAlert:
    """Compares the last of consecutive stretches of the stream with all before it."""
    if not buckets or buckets[-1].documents < MIN_DOCUMENTS:
        return VolumeAlert()
    lately, before = buckets[-1], sum(buckets[:-1], StreamCounts())
    n, kept = before.documents, before.accepted + before.abstained
    if not lately.accepted + lately.abstained:
        if (1 - intervals.low(kept, n, CONFIDENCE)) ** lately.documents <= MAX_CHANCE:
            detail = f"None of the last {lately.documents} documents was shown; of the {n} before them, {kept} were."
            return VolumeAlert(silent=True, detail=detail)
        return VolumeAlert()
    share = lately.accepted / lately.documents
    accepted = f"{lately.accepted} of the last {lately.documents} documents were accepted"
    if share > FLOOD_SHARE:
        return VolumeAlert(flooded=True, detail=f"{accepted}.")
    usual = intervals.high(before.accepted, n, CONFIDENCE)
    if n and share >= FLOOD_RATIO * before.accepted / n:
        chance = bdtrc(lately.accepted - 1, lately.documents, usual) if lately.accepted else 1.0
        if chance <= MAX_CHANCE:
            return VolumeAlert(flooded=True, detail=f"{accepted}; of the {n} before them, {before.accepted} were.")
    return VolumeAlert()
