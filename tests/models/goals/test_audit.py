"""Drawing for audit is random, and every process draws the same documents."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.goals.audit import drawn, hashes
from tests.support.waiting import PATIENCE_S

IDS = [f"document {i}" for i in range(20_000)]


@given(st.text(max_size=20), st.lists(st.text(max_size=20)), st.floats(0, 1), st.floats(0, 1))
def test_a_larger_share_draws_the_same_documents_and_more(topic: str, ids: list[str], p: float, q: float) -> None:
    assert (drawn(topic, ids, min(p, q)) <= drawn(topic, ids, max(p, q))).all()


@given(st.text(max_size=20), st.lists(st.text(max_size=20), min_size=1), st.floats(0, 1))
def test_a_document_is_drawn_whatever_comes_with_it(topic: str, ids: list[str], p: float) -> None:
    assert drawn(topic, ids, p).tolist() == [bool(drawn(topic, [id], p)[0]) for id in ids]


def test_nothing_and_everything_are_shares_too() -> None:
    assert not drawn("crude", IDS, 0.0).any()
    assert drawn("crude", IDS, 1.0).all()


@pytest.mark.parametrize("p", [0.01, 0.1, 0.5])
def test_the_share_that_is_asked_for_is_drawn(p: float) -> None:
    """Within four standard errors."""
    share = drawn("crude", IDS, p).mean()
    assert abs(share - p) < 4 * np.sqrt(p * (1 - p) / len(IDS))


def test_topics_draw_independently_of_each_other() -> None:
    crude, grain = drawn("crude", IDS, 0.5), drawn("grain", IDS, 0.5)
    assert abs((crude & grain).mean() - 0.25) < 4 * np.sqrt(0.25 * 0.75 / len(IDS))


def test_lots_fall_evenly() -> None:
    counts = np.bincount((hashes("crude", IDS) >> np.uint64(60)).astype(np.int64), minlength=16)
    expected = len(IDS) / 16
    assert ((counts - expected) ** 2 / expected).sum() < 37.7  # χ² of 15 degrees of freedom, p = .001


def test_another_process_draws_alike() -> None:
    """Python's own hash would not: it differs from process to process."""
    program = "from models.goals.audit import hashes; print(hashes('crude', ['a', 'b', 'ö']).tolist())"
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, text=True, timeout=PATIENCE_S
    )
    assert ran.stdout.strip() == str(hashes("crude", ["a", "b", "ö"]).tolist())
