"""One of several topics: never two accept, two that are near abstain, and the order of the topics means nothing."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.goals.one_of import Candidate, Decided, decide
from tests.support import reference

PROBABILITIES = st.none() | st.sampled_from([0.0, 0.2, 0.25, 0.5, 0.55, 0.9, 1.0]) | st.floats(0, 1)
DECISIONS: st.SearchStrategy[Decided] = st.sampled_from(["accept", "abstain", "reject"])
MARGINS = st.sampled_from([0.0, 0.1, 0.3, 1.0])


@st.composite
def candidates(draw: st.DrawFn) -> list[Candidate]:
    rows = []
    for name in "abcdef"[: draw(st.integers(0, 6))]:
        decision: Decided = draw(DECISIONS)
        by_rule = decision != "abstain" and draw(st.integers(0, 5)) == 0
        rows.append(Candidate(name, decision, None if by_rule else draw(PROBABILITIES), by_rule))
    return rows


def of(decision: Decided, probability: float | None, by_rule: bool = False) -> tuple[Decided, float | None, bool]:
    return decision, probability, by_rule


@pytest.mark.parametrize(
    ("rows", "exactly", "expected"),
    [
        # the likeliest accepts, or two that are near abstain
        ([of("accept", 0.9), of("accept", 0.6), of("reject", 0.1)], False, "accept reject reject"),
        ([of("accept", 0.9), of("accept", 0.85), of("accept", 0.1)], False, "abstain abstain reject"),
        ([of("accept", 0.9), of("abstain", 0.85)], False, "abstain abstain"),
        # nobody has to accept, unless one must
        ([of("abstain", 0.5), of("reject", 0.1)], False, "abstain reject"),
        ([of("reject", 0.4), of("reject", 0.1)], False, "reject reject"),
        ([of("reject", 0.4), of("reject", 0.1)], True, "accept reject"),
        ([of("reject", 0.05), of("reject", 0.01)], True, "abstain abstain"),
        ([of("abstain", 0.5), of("reject", 0.45), of("reject", 0.1)], True, "abstain abstain reject"),
        # the best candidate is not sure
        ([of("abstain", 0.8), of("accept", 0.6)], False, "abstain abstain"),
        # without a probability nothing compares
        ([of("accept", None), of("reject", 0.9)], False, "accept reject"),
        ([of("accept", None), of("abstain", 0.9)], False, "abstain abstain"),
        ([of("reject", None), of("reject", 0.9)], True, "reject reject"),
        # rules stand
        ([of("accept", None, True), of("accept", 0.99)], False, "accept reject"),
        ([of("accept", None, True), of("accept", None, True), of("accept", 0.9)], True, "abstain abstain reject"),
        ([of("reject", None, True), of("reject", 0.2)], True, "reject accept"),
        ([of("reject", None, True)], True, "reject"),
    ],
)
def test_worked_examples(rows: list[tuple[Decided, float | None, bool]], exactly: bool, expected: str) -> None:
    named = [Candidate(str(n), *row) for n, row in enumerate(rows)]
    assert list(decide(named, exactly, 0.1).values()) == expected.split()


@given(candidates(), st.booleans(), MARGINS)
def test_it_is_what_the_definition_says(rows: list[Candidate], exactly: bool, margin: float) -> None:
    expected = reference.one_of([row[1:] for row in rows], exactly, margin)
    assert decide(rows, exactly, margin) == dict(zip((row.topic for row in rows), expected, strict=True))


@given(candidates(), st.booleans(), MARGINS)
def test_at_most_one_accepts_and_the_others_then_reject(rows: list[Candidate], exactly: bool, margin: float) -> None:
    decided = list(decide(rows, exactly, margin).values())
    assert decided.count("accept") <= 1
    assert not ("accept" in decided and "abstain" in decided)


@given(candidates(), MARGINS)
def test_exactly_one_accepts_or_several_abstain(rows: list[Candidate], margin: float) -> None:
    """Once all have a probability, and unless their rules reject it everywhere."""
    known = [row if row.probability is not None or row.by_rule else row._replace(probability=0.5) for row in rows]
    decided = list(decide(known, True, margin).values())
    if any(row.decision != "reject" or not row.by_rule for row in known):
        assert (decided.count("accept") == 1) != (decided.count("abstain") >= 2)


@given(candidates(), st.booleans(), MARGINS, st.randoms(use_true_random=False))
def test_the_order_of_the_topics_means_nothing(
    rows: list[Candidate], exactly: bool, margin: float, rng: random.Random
) -> None:
    shuffled = rng.sample(rows, len(rows))
    assert decide(shuffled, exactly, margin) == decide(rows, exactly, margin)


@given(candidates(), st.booleans(), MARGINS)
def test_a_wider_margin_never_makes_one_accept(rows: list[Candidate], exactly: bool, margin: float) -> None:
    narrow, wide = decide(rows, exactly, margin), decide(rows, exactly, margin + 0.2)
    assert all(narrow[topic] == "accept" for topic, decision in wide.items() if decision == "accept")
