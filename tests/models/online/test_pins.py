"""Pins and bans: a pinned term always speaks for its topic, a banned one is ignored, whatever is judged."""

from collections.abc import Sequence
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.batch import refit
from models.batch.refit import Dataset
from models.core.names import LEARNER_KINDS, View
from models.core.vectors import Bag, Linear, Sparse
from models.core.views import view
from models.learners.documents import Background
from models.online import pins
from models.online.committee import Committee, VotingRule
from models.online.model import Example, Model, Spec
from models.online.pins import PinnedTerms
from models.online.registry import AUTO, LEARNERS, parse_params
from models.online.run import LearnerRun
from models.online.trainer import Trainer, fold

STEADY = settings(deadline=None, derandomize=True, max_examples=20)
each = pytest.mark.parametrize("kind", LEARNER_KINDS)
every_setting = pytest.mark.parametrize(
    ("kind", "params"),
    [
        *((kind, {}) for kind in LEARNER_KINDS),
        ("eg", {"signed": True}),
        ("winnow", {"variant": "positive"}),
        ("winnow", {"variant": "balanced+", "discard": 4}),
        ("perceptron", {"d": 60.0}),
        ("rocchio", {"positive": False}),
        ("committee", {"combine": "mean", "k": 3}),
        ("committee", {"combine": "vote", "k": 3, "of": "eg"}),
        ("committee", {"k": None}),
    ],
)
PIN, BAN = 3, 5
BOTH = PinnedTerms((PIN,), (BAN,))
EMPTY = Background()


def bag(words: Sequence[int]) -> Bag:
    features, counts = np.unique(np.array(words, np.uint64), return_counts=True)
    return Bag(features, counts.astype(np.float32), np.ones(len(features), np.float32))


def without(document: Bag, feature: int) -> Bag:
    kept = document.features != feature
    return Bag(document.features[kept], document.counts[kept], document.idf[kept])


words = st.lists(st.integers(1, 9), min_size=1, max_size=8)
streams = st.lists(st.tuples(words, st.booleans()), max_size=24).map(
    lambda drawn: [Example(str(i), relevant, bag(text)) for i, (text, relevant) in enumerate(drawn)]
)
QUERY = bag([1, 2])
PASSED = Background([bag([n % 9 + 1, n % 7 + 1, n % 5 + 1]) for n in range(30)], [f"b{n}" for n in range(30)])


def forms(model: Model) -> list[Linear]:
    """Everything of a model that scores."""
    return [model.linear, *(model.committee.members if model.committee else ())]


def whole(linear: Linear, feature: int) -> float:
    return linear.rest + float(linear.weights[linear.features == feature].sum())


def same(model: Model, other: Model) -> None:
    for a, b in zip(forms(model), forms(other), strict=True):
        assert (a.view, a.bias, a.rest) == (b.view, b.bias, b.rest)
        assert a.features.tobytes() == b.features.tobytes()
        assert a.weights.tobytes() == b.weights.tobytes()
    assert (model.reject_below, model.accept_above) == (other.reject_below, other.accept_above)
    assert (model.figures, model.evidence, model.calibration) == (other.figures, other.evidence, other.calibration)


@every_setting
@given(stream=streams)
@STEADY
def test_a_banned_term_has_no_say(kind: str, params: dict[str, object], stream: list[Example]) -> None:
    model = fold(Spec(kind, params, bag([1, 2, BAN]), terms=PinnedTerms(ban=(BAN,))), stream, PASSED, weights=6)
    for linear in forms(model):
        assert whole(linear, BAN) == pytest.approx(0, abs=1e-9)  # of the mean of members not to the bit
        x = view(linear.view, bag([1, 2, 4, BAN]))
        less = Sparse(x.features[x.features != BAN], x.values[x.features != BAN])
        assert linear.score(x) == pytest.approx(linear.score(less), abs=1e-9)


@pytest.mark.parametrize("name", ["presence", "tf", "sqrt"])
@pytest.mark.parametrize("kind", LEARNERS)
@given(stream=streams)
@STEADY
def test_what_is_learned_and_chosen_is_the_same_as_if_no_document_held_it(
    kind: str, name: View, stream: list[Example]
) -> None:
    """In views where a document has no length: there the term can be taken out of the document itself."""
    spec = Spec(kind, {"view": name}, QUERY, terms=PinnedTerms(ban=(BAN,)))
    never = [replace(example, bag=without(example.bag, BAN)) for example in stream]
    banned, gone = fold(spec, stream, EMPTY), fold(replace(spec, terms=pins.NONE), never, EMPTY)
    for feature in range(1, 10):
        assert whole(banned.linear, feature) == pytest.approx(
            0 if feature == BAN else whole(gone.linear, feature), rel=1e-6, abs=1e-9
        )
    if not gone.linear.rest:  # which is rounded where terms are banned, and cuts lie between scores that may be equal
        cuts = gone.reject_below, gone.accept_above
        assert (banned.reject_below, banned.accept_above) == pytest.approx(cuts, rel=1e-6)
    assert banned.figures.sap == gone.figures.sap


@every_setting
@given(stream=streams)
@STEADY
def test_a_pinned_term_never_weighs_less_than_the_floor(
    kind: str, params: dict[str, object], stream: list[Example]
) -> None:
    model = fold(Spec(kind, params, QUERY, terms=BOTH), stream, PASSED, weights=4)
    assert all(whole(linear, PIN) >= floor(kind, params) * (1 - 1e-6) for linear in forms(model))


def parameters(name: str) -> set[str]:
    return {field.name for field in fields(LEARNERS[name].Params)}


def floor(kind: str, params: dict[str, object]) -> float:
    """What the word would weigh as the only word of a query, under the weakest of the learners."""
    names = {"auto": AUTO, "committee": (str(params.get("of", "wh")),)}.get(kind, (kind,))
    given = {} if kind == "committee" else params
    alone = bag([PIN])
    return min(
        max(
            whole(fold(Spec(name, given | average, alone), [], EMPTY).linear, PIN)
            for average in ([{"average": True}, {"average": False}] if "average" in parameters(name) else [{}])
        )
        for name in names
    )


@each
def test_however_often_a_pinned_term_stands_in_irrelevant_documents_it_speaks_for_the_topic(kind: str) -> None:
    stream = [Example(str(n), n % 3 == 0, bag([1, 2, 4] if n % 3 == 0 else [PIN, 6 + n % 4])) for n in range(30)]
    plain, pinned = (fold(Spec(kind, {}, QUERY, terms=terms), stream, PASSED) for terms in (pins.NONE, BOTH))
    assert whole(pinned.linear, PIN) > max(whole(plain.linear, PIN), 0)
    x = view(pinned.linear.view, bag([PIN]))
    assert pinned.linear.score(x) > pinned.linear.score(view(pinned.linear.view, bag([20])))


@pytest.mark.parametrize("kind", ["wh", "winnow", "perceptron", "rocchio", "pa", "committee"])  # without a `rest`
@given(stream=streams)
@STEADY
def test_to_ban_what_no_document_holds_changes_nothing(kind: str, stream: list[Example]) -> None:
    plain, banned = (
        fold(Spec(kind, {}, QUERY, terms=terms), stream, PASSED) for terms in (pins.NONE, PinnedTerms(ban=(99,)))
    )
    same(plain, banned)


@each
def test_pins_are_enough_to_work_from_the_start(kind: str) -> None:
    model = fold(Spec(kind, {}, terms=PinnedTerms((PIN, 4))), [], EMPTY)
    (about, other), linear = (view(model.linear.view, bag(text)) for text in ([PIN, 1, 2], [1, 2, 6])), model.linear
    if model.committee and model.committee.members:
        linear = model.committee.members[0]
    assert linear.score(other) < model.reject_below <= model.accept_above < linear.score(about)


@every_setting
@given(stream=streams, stop=st.integers(0, 24))
@STEADY
def test_stopping_anywhere_equals_not_stopping(
    kind: str, params: dict[str, object], stream: list[Example], stop: int
) -> None:
    spec = Spec(kind, params, QUERY, terms=BOTH)
    trainer = Trainer(spec, weights=5)
    for n, example in enumerate(stream):
        if n == stop:
            trainer.model(PASSED)
            trainer.held_out()
        trainer.learn(example)
    same(trainer.model(PASSED), fold(spec, stream, PASSED, weights=5))


@pytest.mark.parametrize("kind", LEARNERS)
@given(stream=streams)
@STEADY
def test_a_held_out_score_has_the_imposed_weight_and_of_the_rest_what_the_learner_says_without_the_term(
    kind: str, stream: list[Example]
) -> None:
    """The learner scores documents from which the term is taken out."""
    if not stream:
        return
    trainer = Trainer(Spec(kind, {}, QUERY, terms=PinnedTerms((PIN,))))
    for example in stream:
        trainer.learn(example)
    run, v = trainer._served_vector()
    window = trainer._judged.window(run.view)
    held_out = trainer._without_own(run, v, window)
    if v.imposed is None:
        return
    (slot,) = v.imposed
    values = np.where(window.slots == slot, np.float32(0), window.values)
    stripped = run.held_out(replace(v, imposed=None), replace(window, values=values))
    for i, example in enumerate(stream):
        x = dict(zip(example.bag.features.tolist(), view(run.view, example.bag).values.tolist(), strict=True))
        assert held_out[i] == pytest.approx(stripped[i] + (v.w[slot] + v.rest) * x.get(PIN, 0.0), abs=1e-5)


LINEAR = Linear("tfidf", np.array([1, PIN, BAN], np.uint64), np.array([0.5, -2.0, 1.0], np.float32), 0.1)
BASE = Model(LINEAR, 0.2, 0.3)


@each
def test_a_model_from_elsewhere_is_served_under_them_at_its_own_cuts(kind: str) -> None:
    model = Trainer(Spec(kind, {}, QUERY, terms=BOTH), base=BASE).model(EMPTY)
    assert whole(model.linear, PIN) == pytest.approx(np.sqrt((0.5**2 + 2.0**2) / 2))
    assert (whole(model.linear, 1), whole(model.linear, BAN)) == (0.5, 0)
    assert (model.reject_below, model.accept_above) == (0.2, 0.3)


def test_members_that_came_from_elsewhere_are_under_them_too() -> None:
    rest = replace(LINEAR, rest=0.25)
    together = Committee(2, (LINEAR, rest), VotingRule((0.5, 0.5), 0.5, -0.5))
    model = Trainer(Spec("committee", {}, None, terms=BOTH), base=replace(BASE, committee=together)).model(EMPTY)
    assert all(abs(whole(member, BAN)) < 1e-9 and whole(member, PIN) > 0 for member in forms(model))


@pytest.mark.parametrize("name", ["tfidf", "sqrt"])  # one that the first learner goes on from, one that it cannot
@each
@given(stream=streams)
@STEADY
def test_what_goes_on_from_a_base_is_under_them(kind: str, name: View, stream: list[Example]) -> None:
    base = replace(BASE, linear=replace(LINEAR, view=name, rest=0.01))
    model = fold(Spec(kind, {}, QUERY, terms=BOTH), stream, PASSED, base=base)
    assert all(abs(whole(linear, BAN)) < 1e-9 and whole(linear, PIN) > 0 for linear in forms(model))


def test_pins_are_served_however_few_weights_are() -> None:
    stream = [Example(str(n), n % 2 == 0, bag([n % 2 + 1, n % 5 + 4, n % 7 + 4])) for n in range(40)]
    model = fold(Spec("wh", {}, QUERY, terms=PinnedTerms((PIN, 50, 51))), stream, EMPTY, weights=2)
    assert {PIN, 50, 51} == set(model.linear.features.tolist())


def test_weights_that_silence_banned_terms_are_among_those_served() -> None:
    stream = [Example(str(n), n % 2 == 0, bag([n % 2 + 1, n % 5 + 4, n % 7 + 4])) for n in range(40)]
    model = fold(Spec("eg", {}, QUERY, terms=PinnedTerms(ban=(BAN, 60))), stream, EMPTY, weights=6)
    assert len(model.linear.features) == 6
    assert {BAN, 60} < set(model.linear.features.tolist())


def test_a_run_without_pins_asks_the_learner_alone() -> None:
    run = LearnerRun(LEARNERS["wh"], parse_params("wh", {}))
    run.start(None)
    assert all(v.imposed is None for v in run.vectors())


def test_a_fitted_model_competes_with_the_pins_that_would_be_over_it_and_does_not_keep_them() -> None:
    judged = [Example(str(n), n % 2 == 0, bag([2 if n % 2 else 1, PIN, 20 + n % 11, 40 + n])) for n in range(60)]
    data, terms = Dataset.of(judged, {}), PinnedTerms((PIN, 99))
    plain, pinned = refit.refit("svm", {}, data, 100), refit.refit("svm", {}, data, 100, terms)
    assert plain.linear.weights.tobytes() == pinned.linear.weights.tobytes()
    assert plain.held_out.tobytes() == plain.pinned.tobytes() == pinned.held_out.tobytes()
    assert (pinned.pinned > pinned.held_out).all()


@pytest.mark.parametrize("method", ["svm", "centroid", "bayes", "boosting"])
def test_nothing_is_fitted_to_a_banned_term(method: str) -> None:
    judged = [
        Example(str(n), n % 2 == 0, bag([2 if n % 2 else BAN, 10 + n % 9, 20 + n % 11, 40 + n])) for n in range(60)
    ]
    data = Dataset.of(judged, {})
    plain, banned = (refit.refit(method, {}, data, 100, terms=terms) for terms in (pins.NONE, PinnedTerms(ban=(BAN,))))
    assert BAN in plain.linear.features
    assert BAN not in banned.linear.features
