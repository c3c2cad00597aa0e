"""A committee in training: the same however it is reached, whatever its parts, rule and size; and what it serves."""

import json
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.core.names import MemberName
from models.core.vectors import Linear
from models.core.views import view
from models.goals.promises import Targets
from models.goals.thresholds import NEVER
from models.learners.documents import Background
from models.methods.registry import METHODS
from models.online import pocket
from models.online.committee import decide, mean_form
from models.online.committee_run import SEARCHED_SIZES
from models.online.model import Example, Model, Spec
from models.online.registry import LEARNERS, parse_committee, parse_params
from models.online.trainer import Trainer, fold
from tests.models.online.test_trainer import EMPTY, STEADY, backgrounds, bag, learn_one_by_one, same, streams

CASES: list[dict[str, object]] = [
    {},
    {"combine": "vote", "k": 3},
    {"combine": "weighted", "method": "resample_a", "k": 5, "seed": 9},
    {"combine": "mean", "method": "resample_b", "k": 2, "of": "pa"},
    {"combine": "mean", "k": None, "max_loss": 0.5},
    {"combine": "unanimous", "k": None, "estimator": "kl", "of": "perceptron"},
    {"combine": "mean", "of": "eg", "method": "resample_a", "params": {"eta": 5.0}},
    {"combine": "vote", "of": "winnow", "k": 1},
    {"k": 5, "accept_votes": 4, "reject_votes": 3, "member_loss": 0.2},
    {"combine": "mean", "of": "rocchio", "method": "resample_a"},
    {"of": "svm", "k": 2},
    {"of": "centroid", "k": 3, "combine": "weighted", "method": "resample_a", "params": {"by": "cosine"}},
    {"of": "bayes", "k": 2, "combine": "mean", "params": {"rho": 0.0}},
    {"of": "logistic", "k": 1, "combine": "vote", "method": "resample_b", "seed": 4},
    {"of": "boosting", "k": 2, "params": {"S": 5, "rho": 0.0}, "member_loss": 0.2},
    {"of": "centroid", "k": None, "max_loss": 0.5},
]
each = pytest.mark.parametrize("params", CASES, ids=json.dumps)
rng = np.random.default_rng(8)


def about(i: int, relevant: bool, noise: float = 0.0) -> Example:
    """Relevant documents have one of three features, irrelevant ones one of three others; noisy ones have the wrong."""
    mark = (4 if relevant != (rng.random() < noise) else 11) + i % 3
    return Example(str(i), relevant, bag([mark, *(20 + int(f) for f in rng.integers(0, 20, 4))]))


CLEAN = [about(i, i % 2 == 0) for i in range(80)]
NOISY = [about(i, i % 2 == 0, noise=0.15) for i in range(200)]


@each
@STEADY
@given(stream=streams, background=backgrounds, stops=st.sets(st.integers(0, 45)))
def test_one_by_one_with_looks_between_equals_folding_all_at_once(
    params: dict[str, object], stream: list[Example], background: Background, stops: set[int]
) -> None:
    learn_one_by_one(Spec("committee", params, bag([1, 2, 3])), stream, background, stops)


@each
def test_a_long_log_folds_to_the_same_through_every_check(params: dict[str, object]) -> None:
    trainer = Trainer(Spec("committee", params, bag([4])), weights=20)
    for i, example in enumerate(NOISY):
        trainer.learn(example)
        if i % 37 == 0:
            trainer.model(EMPTY)
    same(trainer.model(EMPTY), fold(Spec("committee", params, bag([4])), NOISY, EMPTY, weights=20))


@each
def test_what_can_be_separated_is_decided_right_or_left_open(params: dict[str, object]) -> None:
    model = fold(Spec("committee", params, bag([4])), CLEAN, EMPTY)
    assert model.committee is not None
    for i in range(3):
        assert decision(model, [4 + i, 21, 22]) >= 0
        assert decision(model, [11 + i, 21, 22]) <= 0
    assert 1 in {decision(model, [4 + i]) for i in range(3)}


def decision(model: Model, features: list[int]) -> int:
    x = view(model.linear.view, bag(features))
    if model.committee and model.committee.rule:
        scores = [member.score(x) for member in model.committee.members]
        return decide(scores, model.reject_below, model.accept_above, model.committee.rule)
    score = model.linear.score(x)
    return int(score > model.accept_above) - int(score < model.reject_below)


# -- what is served ----------------------------------------------------------------------------------------------------


def test_members_that_vote_cut_at_zero_and_their_mean_is_what_is_shown() -> None:
    model = fold(Spec("committee", {"k": 4}, bag([4])), CLEAN, EMPTY)
    assert model.committee is not None
    assert (model.reject_below, model.accept_above, len(model.committee.members)) == (0, 0, 4)
    x = view(model.linear.view, bag([4, 12, 21, 24]))
    assert model.linear.score(x) == pytest.approx(np.mean([m.score(x) for m in model.committee.members]), abs=1e-6)


def test_the_mean_of_scores_is_one_linear_form_with_thresholds_of_its_own() -> None:
    model = fold(Spec("committee", {"k": 4, "combine": "mean"}, bag([4])), CLEAN, EMPTY, weights=6)
    assert model.committee is not None
    assert (model.committee.k, model.committee.members, model.committee.rule) == (4, (), None)
    assert len(model.linear.features) <= 6
    assert model.reject_below <= model.accept_above


def test_the_mean_form_is_the_mean_of_the_forms() -> None:
    first = Linear("tfidf", np.array([1, 3], np.uint64), np.array([1.0, 2.0], np.float32), 0.5, 0.1)
    second = Linear("tfidf", np.array([2, 3], np.uint64), np.array([4.0, 4.0], np.float32), -0.5, 0.3)
    mean = mean_form([first, second])
    assert mean.features.tolist() == [1, 2, 3]
    assert mean.weights.tolist() == [0.5, 2.0, 3.0]
    assert mean.bias == 0.0
    assert mean.rest == pytest.approx(0.2)


def test_a_member_learns_only_its_own_part() -> None:
    """Four members and four relevant documents, each with a word of its own: every member knows one of the words."""
    stream = [Example(str(i), True, bag([20 + i])) for i in range(4)]
    model = fold(Spec("committee", {"k": 4}), stream, EMPTY)
    assert model.committee is not None
    assert sorted(m.features.tolist() for m in model.committee.members) == [[20], [21], [22], [23]]


def test_unanimity_abstains_more_and_errs_less_than_the_vote() -> None:
    """On documents like those it learned from, of which some contradict the others."""
    fresh = [about(i, i % 2 == 0, noise=0.1) for i in range(400)]
    wrong, left = {}, {}
    for combine in ("unanimous", "vote"):
        model = fold(Spec("committee", {"k": 5, "combine": combine}), NOISY, EMPTY)
        decisions = [decision(model, e.bag.features.tolist()) for e in fresh]
        wrong[combine] = sum(d == (-1 if e.relevant else 1) for d, e in zip(decisions, fresh, strict=True))
        left[combine] = decisions.count(0)
    assert left["unanimous"] > left["vote"]
    assert wrong["unanimous"] < wrong["vote"]


# -- the size ----------------------------------------------------------------------------------------------------------


def test_a_committee_whose_size_is_to_be_found_starts_as_one_and_reports_every_estimator() -> None:
    spec = Spec("committee", {"k": None, "max_loss": 0.9}, bag([4]))
    before = fold(spec, NOISY[: pocket.CHECK_EVERY - 1], EMPTY).committee
    after = fold(spec, NOISY, EMPTY).committee
    assert before is not None
    assert after is not None
    assert (before.k, before.estimates) == (1, {})
    assert after.k > 1
    assert set(after.estimates) == {"beta", "cv", "kl"}
    assert len(after.members) == after.k


def test_a_tighter_bound_never_takes_more_members() -> None:
    sizes = []
    for max_loss in (0.001, 0.05, 0.2, 1.0):
        model = fold(Spec("committee", {"k": None, "max_loss": max_loss}, bag([4])), NOISY, EMPTY)
        assert model.committee is not None
        assert model.committee.k == 1 or model.committee.estimates["beta"].loss <= max_loss
        sizes.append(model.committee.k)
    assert sizes == sorted(sizes)
    assert set(sizes) <= set(SEARCHED_SIZES)


def test_the_kl_estimate_of_a_size_does_not_depend_on_how_its_own_members_did(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where all members of eight are made to be wrong, only the estimates that are asked about eight may see it, and
    of these not KL: it goes by the line through two and four."""
    trainer = Trainer(Spec("committee", {"k": None, "of": "svm"}, bag([4])))
    for example in NOISY:
        trainer.learn(example)
    run = trainer._committee
    assert run is not None
    window, relevant = trainer._judged.window(run.runs[0].view), trainer._judged.relevant
    before = run._estimators(window, relevant)
    for member in run._of_size[8]:
        monkeypatch.setattr(member, "held_out", lambda v, window: rng.random(window.size))
    after = run._estimators(window, relevant)
    assert after["kl"](8).error == pytest.approx(before["kl"](8).error)
    assert after["cv"](8).error != pytest.approx(before["cv"](8).error)
    assert after["kl"](4).error != pytest.approx(before["kl"](4).error)


def test_the_number_of_svm_members_follows_the_loss_that_is_asked_for() -> None:
    noisy = [about(i, i % 2 == 0, noise=0.05) for i in range(300)]
    sizes = []
    for max_loss in (0.02, 0.6):
        model = fold(Spec("committee", {"k": None, "of": "svm", "max_loss": max_loss}, bag([4])), noisy, EMPTY)
        assert model.committee is not None
        sizes.append(model.committee.k)
    assert sizes[0] < sizes[1]


def test_a_given_size_is_estimated_too_where_it_can_be() -> None:
    for k, names in ((1, {"cv"}), (2, set()), (4, {"beta", "cv"})):
        model = fold(Spec("committee", {"k": k}, bag([4])), NOISY, EMPTY)
        assert model.committee is not None
        assert set(model.committee.estimates) == names


# -- goals and bases ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("combine", ["mean", "unanimous", "vote", "weighted"])
def test_a_goal_accepts_what_keeps_it_and_leaves_open_what_does_not(combine: str) -> None:
    """Of documents with feature 4 all are relevant, of those with 5 every second, of those with 11 none."""
    random = np.random.default_rng(9)

    def words(i: int) -> list[int]:
        return [(4, 5, 11)[i % 3], *(20 + int(f) for f in random.integers(0, 500, 3))]

    likely = (1.0, 0.5, 0.0)
    stream = [
        Example(str(i), bool(random.random() < likely[i % 3]), bag(words(i)), "shown", arrived=1000 + i)
        for i in range(400)
    ]
    params = {"combine": combine, "k": 3}
    steered, free = (
        fold(Spec("committee", params, None, g), stream, EMPTY) for g in (Targets(min_precision=0.9), Targets())
    )
    probes = [words(i) for i in range(60)]
    decisions = ([decision(model, probe) for probe in probes] for model in (steered, free))
    accepted, without_goal = ([sum(d > 0 for d in made[kind::3]) for kind in range(3)] for made in decisions)
    assert without_goal[1] >= 10
    assert accepted[0] >= 10
    assert accepted[1] + accepted[2] <= 1
    assert steered.evidence.certified
    assert steered.evidence.hits >= 0.9 * steered.evidence.accepted > 0


def test_a_vote_that_cannot_keep_the_goal_accepts_nothing_and_one_without_a_goal_does() -> None:
    stream = [Example(e.document, e.relevant, e.bag, "shown") for e in NOISY]
    vote, alone = (
        fold(Spec("committee", {"combine": "vote"}, None, g), stream, EMPTY)
        for g in (Targets(min_precision=0.99), Targets())
    )
    assert (vote.accept_above, vote.evidence.accepted) == (NEVER, 0)
    assert (alone.reject_below, alone.accept_above) == (0, 0)
    assert 0 < alone.evidence.hits <= alone.evidence.accepted < len(stream)


@each
def test_a_base_is_served_until_judgements_arrive_and_then_learned_from(params: dict[str, object]) -> None:
    base = fold(Spec("committee", params, bag([4])), CLEAN, EMPTY)
    assert Trainer(Spec("committee", params), base=base).model(EMPTY) is base
    after = fold(Spec("committee", params), [about(1, True)], EMPTY, base=base)
    assert after.committee is not None
    assert np.isfinite(after.linear.weights).all()


def test_a_base_of_another_view_gives_way_to_members_that_begin_with_the_query() -> None:
    base = Model(Linear("presence", np.array([1], np.uint64), np.array([1.0], np.float32), 0.0), 0.2, 0.3)
    model = fold(Spec("committee", {}, bag([2])), [about(1, True)], EMPTY, base=base)
    assert model.linear.view == "tfidf"


@each
def test_held_out_scores_of_judged_documents_are_on_the_side_of_the_decision(params: dict[str, object]) -> None:
    """Nearly all of them: without its own step a document may, and should, be decided differently."""
    trainer = Trainer(Spec("committee", params, bag([4])))
    for example in CLEAN:
        trainer.learn(example)
    held_out = trainer.held_out()
    model = trainer.model(EMPTY)
    scores = [held_out[example.document] for example in CLEAN]
    sides = [int(score > model.accept_above) - int(score < model.reject_below) for score in scores]
    decided = [decision(model, example.bag.features.tolist()) for example in CLEAN]
    assert sum(a * b >= 0 for a, b in zip(sides, decided, strict=True)) > 70
    assert trainer.held_out() == held_out


# -- parameters --------------------------------------------------------------------------------------------------------


def test_every_learner_and_every_batch_method_can_be_a_member() -> None:
    names = {name for part in get_args(MemberName) for name in (get_args(part) or [part])}
    assert names == {*LEARNERS, *METHODS}


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"of": "committee"}, "the parameter of must be one of wh"),
        ({"k": 2.5}, "the parameter k must be a whole number or null"),
        ({"k": 99}, "1 to 16"),
        ({"params": 3}, "the parameter params must be an object"),
        ({"params": {"eta": "x"}}, "the parameter eta must be"),
        ({"of": "pa", "params": {"eta": 1}}, "there is no parameter 'eta'; pa has "),
        ({"of": "svm", "params": {"eta": 1}}, "there is no parameter 'eta'; svm has C, loss, view"),
        ({"of": "svm", "params": {"C": 0}}, "the parameter C must be a number above 0"),
        ({"combine": "loudest"}, "the parameter combine must be one of unanimous"),
        ({"size": 3}, "there is no parameter 'size'; committee has of"),
    ],
)
def test_parameters_that_make_no_committee_are_refused_with_a_sentence(params: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_params("committee", params)


def test_parameters_have_defaults() -> None:
    assert parse_committee({}).k == 4
    assert parse_params("committee", {}) == parse_params("wh", {})
