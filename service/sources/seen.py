"""Which items of a source are new: those whose key it has not had, and those whose title or text has changed.

    seen[key] = print, and when it was offered last

Items are forgotten oldest first once there are more than KEPT, but never one that the source still offers: it would
come again as new. When an item was offered last is written again only after REFRESH_MS, so that a poll that finds
nothing new writes next to nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from service.sources.items import Keyed

KEPT = 2000
REFRESH_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Fresh:
    """An item to pass on; `update`: the source has offered it before, with other words."""

    offered: Keyed
    update: bool


@dataclass(frozen=True, slots=True)
class Change:
    """What is new, and what to write about it when that has been passed on."""

    fresh: Sequence[Fresh]
    put: Mapping[str, str]
    drop: Sequence[str]


def compare(seen: Mapping[str, str], offered: Sequence[Keyed], now_ms: int, kept: int = KEPT) -> Change:
    """Compares what a source offers with what it has offered before."""
    fresh: list[Fresh] = []
    put: dict[str, str] = {}
    for each in offered:
        known, last_ms = _read(seen.get(each.key))
        if known != each.print:
            fresh.append(Fresh(each, update=bool(known)))
        if known != each.print or now_ms - last_ms > REFRESH_MS:
            put[each.key] = f"{each.print}:{now_ms}"
    offered_now = {each.key for each in offered}
    absent = sorted((_read(value)[1], key) for key, value in seen.items() if key not in offered_now)
    surplus = max(0, len(absent) + len(offered_now) - kept)
    return Change(fresh, put, [key for _, key in absent[:surplus]])


def _read(value: str | None) -> tuple[str, int]:
    """The print and the time; of an item that has not been seen, an empty print and 0."""
    known, _, last_ms = (value or ":0").partition(":")
    return known, int(last_ms)
