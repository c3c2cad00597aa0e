"""What is known of a document beside a standing query, as a few numbers that a linear ranking can weigh.

    score       of the topic's model: all that was learned of the document's words
    title       Σ idf_q log₂(1 + tf) / Σ idf_q over the terms q of the query, tf counted in the title
    text        the same of the text
    proximity   m / ω:  m ≥ 2 of the query's terms occur in the text, and ω words are the shortest stretch that has
                all of these; 1 if they stand side by side, 0 if fewer than two occur
    length      log₂(1 + words of the text)
    age         log₂(1 + hours) from its arrival to when it was judged, or to when it is shown
    source      mean gain of the judged documents from the same source, drawn towards the mean of all by PRIOR more of
                these, less that mean

These are features as in Nallapati, "Discriminative models for information retrieval", SIGIR 2004: not words ("how would
you deal with query words not in your training data?") but scores of them, which are the same for each query; proximity
is ω of the lecture's example, the minimum query window. Words have been learned by the topic's model already, with far
more judgements than a ranking has. A query term that a document lacks is left out of its window, else hardly any would
have one.

A judged document's own source is known by those that were judged before it alone. By all others it would tell its own
grade: of documents from one source, the mean of the others is the lower, the higher the grade that is left out. (Tried:
held out, rankings were then right at .99 and no better on new documents.)

Positions are those of words between spaces, each read by the analysis that is in force; so the terms of "crude-oil"
stand at the same place, and a text in a script without spaces is a few long words.
"""

from collections.abc import Sequence
from math import log2
from typing import NamedTuple

import numpy as np

from models.core.vectors import Bag, Reals
from models.text.analysis import Analysis, bags

NAMES = ("score", "title", "text", "proximity", "length", "age", "source")
PRIOR = 4.0  # judged documents that a source has of the mean of all
HOUR_MS = 3_600_000


class Shown(NamedTuple):
    """A document of a ranking."""

    title: str
    text: str
    source: str
    score: float
    age_ms: int


class Zone(NamedTuple):
    """How often each term of a query occurs in a title or text, and where."""

    counts: Reals
    places: list[tuple[int, int]]  # word and term, in order
    words: int


def matrix(documents: Sequence[Shown], query: Bag | None, analysis: Analysis, sources: Reals) -> Reals:
    """A row for each document, with the numbers above; `sources` has the last one of each."""
    terms = query.features if query else np.empty(0, np.uint64)
    idf = query.idf.astype(float) if query else np.empty(0)
    zones = _read([zone for each in documents for zone in (each.title, each.text)], terms, analysis)
    rows = []
    for i, each in enumerate(documents):
        title, text = zones[2 * i], zones[2 * i + 1]
        overlaps = (_overlap(zone, idf) for zone in (title, text))
        age = log2(1 + max(0, each.age_ms) / HOUR_MS)
        rows.append([each.score, *overlaps, proximity(text.places), log2(1 + text.words), age, sources[i]])
    return np.array(rows, float).reshape(len(documents), len(NAMES))


def proximity(places: Sequence[tuple[int, int]]) -> float:
    """m / ω, from the words at which terms occur, in order."""
    wanted = len({term for _, term in places})
    if wanted < 2:
        return 0.0
    held: dict[int, int] = {}  # how many of each term the stretch holds
    shortest, first = places[-1][0] - places[0][0] + 1, 0
    for word, term in places:
        held[term] = held.get(term, 0) + 1
        while len(held) == wanted:
            start, leaving = places[first]
            shortest = min(shortest, word - start + 1)
            held[leaving] -= 1
            if not held[leaving]:
                del held[leaving]
            first += 1
    return min(1.0, wanted / shortest)  # terms may share a word


def source_gains(sources: Sequence[str], judged: Sequence[str], gains: Reals) -> Reals:
    """How much more than all others documents of each source gain, from documents that were judged."""
    known = _Sources()
    for source, gain in zip(judged, gains.tolist(), strict=True):
        known.add(source, gain)
    return np.array([known.more(source) for source in sources], float)


def earlier_source_gains(judged: Sequence[str], gains: Reals) -> Reals:
    """The same for each judged document, from those judged before it; they are in the order of judging."""
    known, more = _Sources(), []
    for source, gain in zip(judged, gains.tolist(), strict=True):
        more.append(known.more(source))
        known.add(source, gain)
    return np.array(more, float)


class _Sources:
    """Sums of gains by source, and of all."""

    def __init__(self) -> None:
        self._all = (0.0, 0)
        self._of: dict[str, tuple[float, int]] = {}

    def add(self, source: str, gain: float) -> None:
        self._all = self._all[0] + gain, self._all[1] + 1
        if source:  # documents without one have nothing in common
            total, n = self._of.get(source, (0.0, 0))
            self._of[source] = total + gain, n + 1

    def more(self, source: str) -> float:
        (total, n), (of_all, count) = self._of.get(source, (0.0, 0)), self._all
        mean = of_all / count if count else 0.0
        return (total + PRIOR * mean) / (n + PRIOR) - mean


def _overlap(zone: Zone, idf: Reals) -> float:
    return float(idf @ np.log2(1 + zone.counts) / idf.sum()) if idf.sum() > 0 else 0.0


def _read(zones: Sequence[str], terms: "np.ndarray[tuple[int], np.dtype[np.uint64]]", analysis: Analysis) -> list[Zone]:
    words = [zone.split() for zone in zones]
    counted = bags([("", word) for row in words for word in row], analysis)
    ends = np.cumsum([len(row) for row in words])
    hits = np.flatnonzero(np.isin(counted.features, terms))
    word_of = np.searchsorted(counted.indptr, hits, side="right") - 1
    term_of = np.searchsorted(terms, counted.features[hits])
    first = np.searchsorted(word_of, ends - [len(row) for row in words])
    last = np.searchsorted(word_of, ends)
    read = []
    for row, end, a, b in zip(words, ends.tolist(), first.tolist(), last.tolist(), strict=True):
        counts = np.bincount(term_of[a:b], weights=counted.counts[hits[a:b]], minlength=len(terms)).astype(float)
        places = [
            (word - end + len(row), term)
            for word, term in zip(word_of[a:b].tolist(), term_of[a:b].tolist(), strict=True)
        ]
        read.append(Zone(counts, places, len(row)))
    return read
