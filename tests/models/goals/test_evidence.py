"""What counts as evidence, for what, and how far a goal is."""

from dataclasses import replace

import numpy as np
import pytest

from models.core.names import ORIGINS, Origin
from models.goals.evidence import Evidence, JudgedWindow, collect_evidence
from models.goals.promises import Targets, choose
from models.goals.thresholds import NEVER, Band
from tests.models.goals.judged import judged, ranking

USUAL = Band(0.2, 0.3, 0.8)
NO_STREAM = np.empty(0)


@pytest.mark.parametrize("origin", ["given", "found", "audit"])
def test_only_what_was_shown_is_evidence_of_precision(origin: Origin) -> None:
    sample = judged(*ranking([True] * 40), origin)
    assert choose(Targets(min_precision=0.9), sample, NO_STREAM, USUAL).accept_above == NEVER
    assert collect_evidence(0.9, sample, USUAL).accepted == 0


def test_evidence_counts_each_judgement_for_what_it_is() -> None:
    origin = np.array([ORIGINS.index(o) for o in ("given", "shown", "shown", "audit", "audit", "found")], np.int8)
    relevant = np.array([True, True, False, True, False, True])
    scores, every = np.array([9.0, 8.0, 7.0, 0.1, 0.1, 0.1]), np.ones(6, np.bool_)
    sample = JudgedWindow(scores, relevant, origin, every, every, np.full(6, 0.5), np.arange(6) == 2)
    counted = collect_evidence(None, sample, Band(1.0, 7.5))
    assert counted == Evidence(accepted=1, hits=1, delivered=1, shown=2, kept=1, audits=2, finds=1, lost=1)
    once = collect_evidence(None, replace(sample, unique=np.array([1, 1, 0, 1, 0, 0], np.bool_)), Band(1.0, 7.5))
    assert (once.shown, once.kept, once.audits, once.finds, once.lost) == (1, 1, 1, 1, 0)
    two = collect_evidence(None, replace(sample, chance=np.array([0, 0, 0, 0.5, 0.1, 0])), Band(1.0, 7.5))
    assert two.drawn == ((0.1, 1, 0), (0.5, 1, 1))


def test_a_topic_says_how_many_judgements_are_missing() -> None:
    goal, never = 0.9, Band(0.0, NEVER)
    assert collect_evidence(goal, judged(*ranking([True] * 10)), never).missing == 6
    half = collect_evidence(goal, judged(*ranking([True] * 10 + [False] * 10)), never)
    assert half.missing == 12  # twice as many, since only half of what is shown scores as high


def test_a_topic_that_cannot_get_there_says_so() -> None:
    random = np.random.default_rng(2)
    mixed = collect_evidence(0.9, judged(random.random(400), random.random(400) < 0.5), Band(0.0, NEVER))
    assert mixed.reach < 0.9
    assert not mixed.certified
    few = collect_evidence(0.9, judged(random.random(150), random.random(150) < 0.5), Band(0.0, NEVER))
    assert few.reach == 1.0  # a model of so few will rank the next ones differently


def test_a_cut_that_no_goal_moves_promises_only_what_its_judgements_bear_out() -> None:
    """Committees that vote accept from the start; six relevant documents of six were once called a precision of .9."""
    goal, fixed = 0.9, Band(0.0, 0.0)
    assert not collect_evidence(goal, judged(*ranking([])), fixed).certified
    assert not collect_evidence(goal, judged(*ranking([True] * 6)), fixed).certified
    assert collect_evidence(goal, judged(*ranking([True] * 30)), fixed).certified
    assert not collect_evidence(goal, judged(*ranking([True, False] * 30)), fixed).certified
