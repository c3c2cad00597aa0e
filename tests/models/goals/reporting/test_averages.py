"""One figure for many topics: micro is what all decisions in one table give, macro the mean."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.core import measures
from models.core.measures import Contingency, f_beta
from models.goals.reporting.averages import average, macro, micro
from models.goals.reporting.prequential import Confusion, Part, Quality, confusion, quality
from models.goals.reporting.samples import Bounded
from models.goals.reporting.volume import StreamCounts
from tests.models.goals.judged import trial

COUNTS = st.lists(st.tuples(*[st.integers(1, 20)] * 4), min_size=1, max_size=4)


def topic_of(tp: int, fp: int, fn: int, tn: int) -> tuple[Quality, Confusion]:
    """A topic of which everything was judged."""
    trials = [trial("accept", True)] * tp + [trial("accept", False)] * fp
    trials += [trial("reject", True, "audit", 1.0)] * fn + [trial("reject", False, "audit", 1.0)] * tn
    counts = StreamCounts(documents=tp + fp + fn + tn, accepted=tp + fp)
    return quality(trials, counts), confusion(trials, counts)


@settings(derandomize=True, max_examples=40, deadline=None)
@given(counts=COUNTS)
def test_averages_are_those_of_tables(counts: list[tuple[int, int, int, int]]) -> None:
    qualities, tables = zip(*(topic_of(*each) for each in counts), strict=True)
    truth = [Contingency(tp, fp, fn) for tp, fp, fn, _ in counts]
    pooled = measures.micro(truth)
    wrong, decided = pooled.fp + pooled.fn, sum(map(sum, counts))
    for name, one, value in (
        ("precision", [c.precision for c in truth], pooled.precision),
        ("recall", [c.recall for c in truth], pooled.recall),
        ("f1", [f_beta(c) for c in truth], f_beta(pooled)),
        ("error", [(fp + fn) / (tp + fp + fn + tn) for tp, fp, fn, tn in counts], wrong / decided),
    ):
        small, large = macro(qualities, name), micro(qualities, tables, name)
        assert small
        assert large
        assert small.figure.estimate == pytest.approx(measures.macro(one)), name
        assert large.figure.estimate == pytest.approx(value), name
        for figure, topics in (small, large):
            assert topics == len(counts)
            assert figure.low <= (figure.estimate or 0) <= figure.high


def test_the_lecture_s_example() -> None:
    topics = [topic_of(10, 10, 10, 970), topic_of(90, 10, 10, 890)]
    qualities, tables = [quality for quality, _ in topics], [table for _, table in topics]
    small, large = macro(qualities, "precision"), micro(qualities, tables, "precision")
    assert small
    assert large
    assert small.figure.estimate == pytest.approx(0.7)
    assert large.figure.estimate == pytest.approx(100 / 120)


def test_what_has_no_estimate_is_left_out() -> None:
    known = Bounded(0.5, 0.25, 0.75)
    assert average([known, None, Bounded(None, 0.0, 1.0), known], [1.0, 1.0, 1.0, 0.0]) == (known, 1)
    assert average([None], [1.0]) is None
    nothing = Part.of(0, Bounded(0.0, 0.0, 0.0))
    assert micro([Quality()], [Confusion(nothing, nothing, nothing)], "precision") is None
