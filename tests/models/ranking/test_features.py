"""A document beside a query: overlaps by zone, the shortest window, and the mean gain of its source."""

from math import log2

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.core.vectors import Bag
from models.ranking.features import (
    HOUR_MS,
    NAMES,
    PRIOR,
    Shown,
    earlier_source_gains,
    matrix,
    proximity,
    source_gains,
)
from models.text.analysis import Analysis, features_of
from tests.support import reference

QUERY = ["crude", "oil", "opec"]
PLAIN = Analysis()


def query(*terms: str) -> Bag:
    features = np.sort(features_of(list(terms)))
    return Bag(features, np.ones(len(terms), np.float32), np.full(len(terms), 2.0, np.float32))


def row(title: str, text: str, score: float = 0.0, age_ms: int = 0, terms: Bag | None = None) -> dict[str, float]:
    psi = matrix([Shown(title, text, "", score, age_ms)], terms or query(*QUERY), PLAIN, np.zeros(1))
    return dict(zip(NAMES, psi[0].tolist(), strict=True))


def test_a_worked_example() -> None:
    """Of three query terms one is in the title; two are in the text, one of them twice, and six words have both."""
    found = row("Oil news", "Oil prices rose and then OPEC met. OPEC cut.", 0.7, 3 * HOUR_MS)
    assert found == pytest.approx(
        {
            "score": 0.7,
            "title": log2(2) / 3,
            "text": (log2(1 + 1) + log2(1 + 2)) / 3,
            "proximity": 2 / 6,
            "length": log2(1 + 9),
            "age": log2(1 + 3),
            "source": 0.0,
        }
    )


def test_words_are_read_as_everywhere_else() -> None:
    assert row("", "CRUDE-Oil!")["proximity"] == 1.0
    assert row("", "The (crude) \u201coil\u201d")["proximity"] == 1.0
    assert row("", "crude")["proximity"] == 0.0
    assert row("", "", terms=query())["text"] == 0.0


def test_terms_weigh_by_idf() -> None:
    features = features_of(QUERY)
    order = np.argsort(features)
    idf = np.array([1, 2, 5], np.float32)[order]
    weighted = Bag(features[order], np.ones(3, np.float32), idf)
    assert row("opec", "crude oil", terms=weighted)["title"] == pytest.approx(5 / 8)
    assert row("opec", "crude oil", terms=weighted)["text"] == pytest.approx(3 / 8)


@given(st.lists(st.sampled_from([*QUERY, "a", "b"]), max_size=14))
def test_the_window_is_the_shortest_of_all_stretches(words: list[str]) -> None:
    places = [(i, QUERY.index(word)) for i, word in enumerate(words) if word in QUERY]
    assert proximity(places) == pytest.approx(reference.window(words, QUERY))
    assert row("", " ".join(words))["proximity"] == pytest.approx(reference.window(words, QUERY))


@given(st.lists(st.tuples(st.text(max_size=40), st.text(max_size=80)), max_size=5))
def test_many_documents_are_read_as_each_alone(documents: list[tuple[str, str]]) -> None:
    shown = [Shown(title, text, "", 0.5, 7) for title, text in documents]
    together = matrix(shown, query(*QUERY), PLAIN, np.zeros(len(shown)))
    assert together.shape == (len(shown), len(NAMES))
    for each, psi in zip(shown, together, strict=True):
        assert psi.tolist() == matrix([each], query(*QUERY), PLAIN, np.zeros(1))[0].tolist()


def test_a_source_is_known_by_how_much_more_its_documents_gain() -> None:
    judged, gains = ["wire", "wire", "blog", ""], np.array([7.0, 3.0, 0.0, 1.0])
    mean = 11 / 4
    assert source_gains(["wire", "blog", "new", ""], judged, gains).tolist() == pytest.approx(
        [(10 + PRIOR * mean) / (2 + PRIOR) - mean, (0 + PRIOR * mean) / (1 + PRIOR) - mean, 0, 0]
    )
    assert earlier_source_gains(judged, gains).tolist() == pytest.approx([0, 0, 0, 0])
    assert earlier_source_gains(["a", "b", "a"], np.array([3.0, 1.0, 7.0]))[2] == pytest.approx(
        (3 + PRIOR * 2) / (1 + PRIOR) - 2
    )


@given(
    st.lists(st.tuples(st.sampled_from(["a", "b", ""]), st.integers(0, 3)), min_size=1, max_size=12), st.integers(0, 3)
)
def test_a_source_does_not_tell_the_grade_of_its_own_document(rows: list[tuple[str, int]], grade: int) -> None:
    sources, gains = [source for source, _ in rows], np.array([float(g) for _, g in rows])
    changed = gains.copy()
    changed[-1] = grade
    assert earlier_source_gains(sources, gains)[-1] == earlier_source_gains(sources, changed)[-1]
    assert earlier_source_gains(["one"] * len(rows), gains).tolist() == pytest.approx([0.0] * len(rows))
