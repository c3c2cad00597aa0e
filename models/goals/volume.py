"""Whether a topic has fallen silent, or is flooding its reader: what passes lately against what passed before.

    silent    nothing is accepted or abstained from, although before it was so often that chance would explain this
              once in a hundred times at most:  (1 − low(kept, documents))ⁿ ≤ UNLIKELY
    flooded   more is accepted than UNLIKELY lets chance explain from the share before, and at least TWICE as much;
              or more than HALF of everything

Both are told from counts alone, so before anybody judges. `low` and `high` are Clopper & Pearson's.
"""

from collections.abc import Sequence
from typing import NamedTuple

from scipy.special import bdtrc

from models.core import intervals
from models.goals.report import StreamCounts

UNLIKELY, SURE = 0.01, 0.95
ENOUGH = 200  # documents lately
TWICE, HALF = 2.0, 0.5


class VolumeAlert(NamedTuple):
    silent: bool = False
    flooded: bool = False
    detail: str = ""


def check_volume(buckets: Sequence[StreamCounts]) -> VolumeAlert:
    """From counts of consecutive stretches of the stream, of which the last is `lately`."""
    if not buckets or buckets[-1].documents < ENOUGH:
        return VolumeAlert()
    lately, before = buckets[-1], sum(buckets[:-1], StreamCounts())
    n, kept = before.documents, before.accepted + before.abstained
    if not lately.accepted + lately.abstained:
        if (1 - intervals.low(kept, n, SURE)) ** lately.documents <= UNLIKELY:
            said = f"Nothing of the last {lately.documents} documents was shown; of {n} before, {kept} were."
            return VolumeAlert(silent=True, detail=said)
        return VolumeAlert()
    share = lately.accepted / lately.documents
    if share > HALF:
        return VolumeAlert(
            flooded=True, detail=f"Of the last {lately.documents} documents {lately.accepted} were accepted."
        )
    usual = intervals.high(before.accepted, n, SURE)
    if n and share >= TWICE * before.accepted / n:
        chance = bdtrc(lately.accepted - 1, lately.documents, usual) if lately.accepted else 1.0
        if chance <= UNLIKELY:
            said = (
                f"Of the last {lately.documents} documents {lately.accepted} were accepted, "
                f"of {n} before them {before.accepted}."
            )
            return VolumeAlert(flooded=True, detail=said)
    return VolumeAlert()
