"""Training: from text to a model that decides, the same however it is reached."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.core.names import LEARNER_KINDS, View
from models.core.vectors import Bag, Linear
from models.core.views import view
from models.learners.documents import Background
from models.online import committee, pocket
from models.online.model import Example, Model, Spec
from models.online.pocket import PocketParams
from models.online.trainer import Trainer, fold
from models.text.analysis import Analysis, bags
from models.text.idf import Frequencies

STEADY = settings(deadline=None, derandomize=True, max_examples=25)
each = pytest.mark.parametrize("kind", LEARNER_KINDS)
EMPTY = Background()


def read(text: str) -> Bag:
    """A text as the service reads it before it has seen a stream."""
    features, counts = bags([("", text)], Analysis())[0]
    return Bag(features, counts, Frequencies.prior().idf(features))


def decide(model: Model, text: str) -> str:
    x = view(model.linear.view, read(text))
    if model.committee and model.committee.rule:
        scores = [member.score(x) for member in model.committee.members]
        meta = committee.decide(scores, model.reject_below, model.accept_above, model.committee.rule)
        return {1: "accept", 0: "abstain", -1: "reject"}[meta]
    score = model.linear.score(x)
    return "reject" if score < model.reject_below else "accept" if score > model.accept_above else "abstain"


QUERY = read("crude oil OPEC barrels output price")
ABOUT = (
    "OPEC agreed to cut crude oil output by one million barrels a day, ministers said on Tuesday. The price of crude "
    "rose by two dollars a barrel in London after the meeting, and traders expect a further rise as winter comes."
)
NOT = (
    "The home side won the cup final after extra time in front of sixty thousand spectators. The captain scored twice "
    "in the second half, and the goalkeeper saved a penalty in the last minute of the match."
)


@each
def test_a_query_alone_accepts_what_is_plainly_about_it_and_rejects_what_is_not(kind: str) -> None:
    model = fold(Spec(kind, {}, QUERY), [], EMPTY)
    assert decide(model, ABOUT) == "accept"
    assert decide(model, NOT) == "reject"
    assert (model.figures.relevant, model.figures.irrelevant, model.figures.sap, model.figures.f1) == (0, 0, None, None)


@pytest.mark.parametrize("variant", ["positive", "balanced+"])
def test_the_papers_winnow_ranks_by_the_query_too(variant: str) -> None:
    model = fold(Spec("winnow", {"variant": variant}, QUERY), [], EMPTY)
    score = {text: model.linear.score(view(model.linear.view, read(text))) for text in (ABOUT, NOT)}
    assert score[ABOUT] > score[NOT]


@each
def test_ten_judgements_later_the_decisions_follow_them(kind: str) -> None:
    """The user turns out to care for oil spills, not for OPEC's prices."""
    spill = "The tanker ran aground and crude oil leaked into the bay; crews laid booms to shield the {} shore from it."
    price = "OPEC ministers met in Vienna and left crude oil at eighteen dollars a barrel, {} officials said."
    judged = []
    for place in ("northern", "southern", "eastern", "western", "rocky"):
        judged += [Example(f"spill {place}", True, read(spill.format(place)))]
        judged += [Example(f"price {place}", False, read(price.format(place)))]
    model = fold(Spec(kind, {}, QUERY), judged, EMPTY)
    assert decide(model, spill.format("sandy")) == "accept"
    assert decide(model, price.format("senior")) != "accept"
    assert decide(model, NOT) == "reject"


# -- however it is reached ---------------------------------------------------------------------------------------------

WORDS = 40


def bag(features: Sequence[int]) -> Bag:
    chosen = np.unique(np.array(features, np.uint64))
    return Bag(chosen, 1 + (chosen % 3).astype(np.float32), 1 + (chosen % 7).astype(np.float32))


bag_strategy = st.lists(st.integers(0, WORDS - 1), max_size=8).map(bag)
streams = st.lists(st.tuples(bag_strategy, st.booleans()), max_size=45).map(
    lambda rows: [Example(str(i), y, b) for i, (b, y) in enumerate(rows)]
)
backgrounds = st.lists(bag_strategy, max_size=12).map(lambda bags: Background(bags, [str(i) for i in range(len(bags))]))


def learn_one_by_one(spec: Spec, stream: list[Example], background: Background, stops: set[int]) -> None:
    """Each model, at the stops and in the end, must be that of a fold of all examples until there."""
    trainer = Trainer(spec, weights=10)
    for i, example in enumerate(stream):
        trainer.learn(example)
        if i in stops:
            same(trainer.model(background), fold(spec, stream[: i + 1], background, weights=10))
    same(trainer.model(background), fold(spec, stream, background, weights=10))


def same(model: Model, other: Model) -> None:
    """Bit for bit."""
    for name in ("features", "weights"):
        assert getattr(model.linear, name).tobytes() == getattr(other.linear, name).tobytes()
    assert (model.linear.view, model.linear.bias, model.linear.rest) == (
        other.linear.view,
        other.linear.bias,
        other.linear.rest,
    )
    assert (model.reject_below, model.accept_above) == (other.reject_below, other.accept_above)
    assert model.figures == other.figures
    assert model.evidence == other.evidence
    assert (model.committee is None) == (other.committee is None)
    if model.committee and other.committee:
        got, wanted = model.committee, other.committee
        assert (got.k, got.rule, got.estimates) == (wanted.k, wanted.rule, wanted.estimates)
        for a, b in zip(got.members, wanted.members, strict=True):
            assert (a.features.tobytes(), a.weights.tobytes(), a.bias, a.rest) == (
                b.features.tobytes(),
                b.weights.tobytes(),
                b.bias,
                b.rest,
            )


@each
@STEADY
@given(stream=streams, background=backgrounds, stops=st.sets(st.integers(0, 45)))
def test_one_by_one_with_looks_between_equals_folding_all_at_once(
    kind: str, stream: list[Example], background: Background, stops: set[int]
) -> None:
    learn_one_by_one(Spec(kind, {}, bag([1, 2, 3])), stream, background, stops)


@each
@STEADY
@given(stream=streams, background=backgrounds)
def test_a_model_is_finite_ordered_and_bounded(kind: str, stream: list[Example], background: Background) -> None:
    for query in (None, bag([]), bag([5])):
        model = fold(Spec(kind, {}, query), stream, background, weights=7)
        for linear in (model.committee.members if model.committee else ()) or (model.linear,):
            assert len(linear.features) <= 7
        assert all(a < b for a, b in pairwise(model.linear.features.tolist()))
        assert np.isfinite(model.linear.weights).all()
        assert np.isfinite([model.linear.bias, model.linear.rest, model.reject_below, model.accept_above]).all()
        assert model.reject_below <= model.accept_above
        assert model.figures.relevant == sum(example.relevant for example in stream)
        assert model.figures.irrelevant == len(stream) - model.figures.relevant


def test_the_strongest_weights_are_served_as_the_linear_form_would_choose_them() -> None:
    random = np.random.default_rng(1)
    stream = [Example(str(i), i % 3 == 0, bag(random.integers(0, WORDS, 6).tolist())) for i in range(30)]
    whole = fold(Spec("wh", {}, bag([1])), stream, EMPTY)
    few = fold(Spec("wh", {}, bag([1])), stream, EMPTY, weights=5)
    assert few.linear.features.tolist() == whole.linear.strongest(5).features.tolist()
    assert few.linear.weights.tolist() == whole.linear.strongest(5).weights.tolist()


def test_a_judged_document_does_not_count_as_background_too() -> None:
    about, other = bag([1, 2, 3]), bag([7, 8, 9])
    stream = [Example("a", True, about), Example("b", True, about), Example("c", False, other)]
    counted_twice = Background([about, about] + [other] * 300, ["x", "y", *(f"o{i}" for i in range(300))])
    once = Background([about, about] + [other] * 300, ["a", "b", *(f"o{i}" for i in range(300))])
    spec = Spec("wh", {}, bag([1]))
    better, worse = fold(spec, stream, once).figures.f1, fold(spec, stream, counted_twice).figures.f1
    assert better is not None
    assert worse is not None
    assert better > worse


def test_a_trainer_says_how_much_memory_it_holds() -> None:
    trainer = Trainer(Spec("wh", {}, bag([1])))
    before = trainer.nbytes
    for i in range(200):
        trainer.learn(Example(str(i), i % 2 == 0, bag(range(i, i + 30))))
    assert before < trainer.nbytes < 1_000_000


# -- a base ------------------------------------------------------------------------------------------------------------

BASE = Model(Linear("tfidf", np.array([1, 2], np.uint64), np.array([0.5, -0.25], np.float32), 0.1), 0.2, 0.3)


@each
def test_a_base_is_served_exactly_until_judgements_arrive(kind: str) -> None:
    assert Trainer(Spec(kind, {}, bag([9])), base=BASE).model(EMPTY) is BASE


def test_learning_goes_on_from_a_base_of_the_same_view() -> None:
    model = fold(Spec("wh", {}, bag([9])), [Example("a", False, bag([30]))], EMPTY, base=BASE)
    weights = dict(zip(model.linear.features.tolist(), model.linear.weights.tolist(), strict=True))
    assert weights[1] == pytest.approx(0.5)
    assert weights[2] == pytest.approx(-0.25)


def test_a_base_that_learning_made_worse_is_served_again() -> None:
    """Subtracting too much leaves no weight at all; the base ranks these documents perfectly."""
    stream = [Example(str(i), i % 2 == 0, bag([1] if i % 2 == 0 else [1, 2])) for i in range(pocket.CHECK_EVERY)]
    spec = Spec("rocchio", {"beta": 0, "gamma": 1000}, bag([9]))
    assert not len(fold(spec, stream[:-1], EMPTY, base=BASE).linear.features)
    assert fold(spec, stream, EMPTY, base=BASE).linear.features.tolist() == [1, 2]


@pytest.mark.parametrize("name", ["tfidf", "presence"])
def test_every_learner_of_auto_starts_from_the_base_or_from_the_query(name: View) -> None:
    base = replace(BASE, linear=replace(BASE.linear, view=name))
    stream = [Example(str(i), i % 2 == 0, bag([1 if i % 2 else 2, 20 + i])) for i in range(pocket.CHECK_EVERY * 3)]
    assert Trainer(Spec("auto", {}, bag([9])), base=base).model(EMPTY) is base
    for n in range(1, len(stream)):
        assert np.isfinite(fold(Spec("auto", {}, bag([9])), stream[:n], EMPTY, base=base).linear.weights).all()


def test_a_base_of_another_view_is_served_until_it_is_beaten() -> None:
    base = replace(BASE, linear=replace(BASE.linear, view="presence"))
    stream = [Example(str(i), i % 2 == 0, bag([1 if i % 2 else 2, 20 + i])) for i in range(pocket.CHECK_EVERY)]
    spec = Spec("wh", {}, bag([9]))
    assert fold(spec, stream[:-1], EMPTY, base=base).linear.view == "presence"
    assert fold(spec, stream, EMPTY, base=base).linear.view == "tfidf"  # the base has it the wrong way round


MARK = {True: 1, False: 2}
STREAM = [Example(str(i), i % 3 == 0, bag([MARK[i % 3 == 0], 20 + i % 7, 30 + i])) for i in range(60)]
FITTED = {example.document: (0.8 if example.relevant else 0.1) - i / 1000 for i, example in enumerate(STREAM)}


def trainer_on_base(
    kind: str, *, base: Model = BASE, also: int = 0, params: Mapping[str, object] | None = None
) -> Trainer:
    trainer = Trainer(Spec(kind, params or {}, bag([9])), base=base, fitted=FITTED)
    for example in STREAM[:40]:
        trainer.add_fitted(example)
    for example in STREAM[40 : 40 + also]:
        trainer.learn(example)
    return trainer


@each
def test_what_a_base_was_fitted_on_keeps_the_score_of_a_model_without_it(kind: str) -> None:
    held_out = trainer_on_base(kind, params={"combine": "mean"} if kind == "committee" else {}).held_out()
    assert held_out == pytest.approx({example.document: FITTED[example.document] for example in STREAM[:40]}, abs=1e-6)


def test_a_recalled_document_follows_what_others_teach_and_is_not_learned_again() -> None:
    before, after = trainer_on_base("wh"), trainer_on_base("wh", also=1)
    assert before.model(EMPTY).linear.weights.tolist() == BASE.linear.weights.tolist()
    old, new = before.model(EMPTY).linear, after.model(EMPTY).linear
    moved = {e.document: new.score(view("tfidf", e.bag)) - old.score(view("tfidf", e.bag)) for e in STREAM[:40]}
    held_out = after.held_out()
    assert max(map(abs, moved.values())) > 0.01
    for document, by in moved.items():
        assert held_out[document] == pytest.approx(FITTED[document] + by, abs=1e-5)


def test_thresholds_rest_on_what_the_base_was_fitted_on() -> None:
    model = trainer_on_base("wh").model(EMPTY)
    assert model.figures.relevant == 14
    assert 0.1 < model.accept_above < 0.75
    assert fold(Spec("wh", {}, bag([9])), [], EMPTY, base=BASE).figures.relevant == 0


def test_the_background_that_a_base_was_fitted_on_counts_with_the_scores_of_a_model_without_it() -> None:
    """A base rejects the irrelevant documents that it was fitted on; others like them it may well accept."""
    fitted = {**FITTED, **{f"b{i}": 2.0 for i in range(300)}}
    background = Background([bag([60 + i % 50]) for i in range(300)], [f"b{i}" for i in range(300)])
    corrected = Trainer(Spec("wh", {}, bag([9])), base=BASE, fitted=fitted)
    uncorrected = Trainer(Spec("wh", {}, bag([9])), base=BASE, fitted=FITTED)
    for example in STREAM[:40]:
        corrected.add_fitted(example)
        uncorrected.add_fitted(example)
    assert corrected.model(background).accept_above > uncorrected.model(background).accept_above


@pytest.mark.parametrize("name", ["tfidf", "presence"])
@each
def test_stopping_after_a_base_and_going_on_equals_one_run(kind: str, name: View) -> None:
    base = replace(BASE, linear=replace(BASE.linear, view=name))
    stopped = trainer_on_base(kind, base=base)
    for example in STREAM[40:]:
        stopped.model(EMPTY)
        stopped.learn(example)
    same(stopped.model(EMPTY), trainer_on_base(kind, base=base, also=20).model(EMPTY))


def test_a_learner_of_another_view_is_taught_what_the_base_was_fitted_on_and_wins_when_it_ranks_better() -> None:
    wrong = replace(BASE, linear=replace(BASE.linear, view="presence"))
    poor = {document: -score for document, score in FITTED.items()}
    trainer = Trainer(Spec("wh", {}, bag([9])), base=wrong, fitted=poor)
    for example in STREAM[:40]:
        trainer.add_fitted(example)
    assert trainer.model(EMPTY).linear.view == "presence"
    for example in STREAM[40 : 40 + pocket.check_interval(40)]:
        trainer.learn(example)
    assert trainer.model(EMPTY).linear.view == "tfidf"
    good = trainer_on_base("wh", base=wrong, also=pocket.check_interval(40))
    assert good.model(EMPTY).linear.view == "presence"


@pytest.mark.parametrize("combine", ["mean", "vote"])
def test_a_committee_goes_on_from_a_base_too(combine: str) -> None:
    trainer = trainer_on_base("committee", also=15, params={"combine": combine})
    assert np.isfinite(trainer.model(EMPTY).linear.weights).all()
    assert set(trainer.held_out()) == {example.document for example in STREAM[:55]}


# -- auto --------------------------------------------------------------------------------------------------------------


def test_auto_serves_the_first_learner_until_the_pocket_has_chosen() -> None:
    stream = [Example(str(i), i % 2 == 0, bag([i % 7, 10 + i])) for i in range(pocket.CHECK_EVERY - 1)]
    for n in range(pocket.CHECK_EVERY - 1):
        same(fold(Spec("auto", {}, bag([1])), stream[:n], EMPTY), fold(Spec("wh", {}, bag([1])), stream[:n], EMPTY))


# -- the pocket --------------------------------------------------------------------------------------------------------


def test_checks_grow_rarer_so_that_a_replay_stays_cheap() -> None:
    n, checks = pocket.CHECK_EVERY, 0
    while n <= 5000:
        n, checks = n + pocket.check_interval(n), checks + 1
    assert checks < 200


def test_current_vectors_are_compared_by_what_they_did_not_learn_too_and_with_the_pocketed_one_by_all() -> None:
    assert pocket.choose("both", [0.5, 0.7], [1.0, 0.9], None) == (1, 0.7)
    assert pocket.choose("both", [0.5, 0.7], [1.0, 0.9], 0.95) == (None, 0.95)
    assert pocket.choose("held_out", [0.5, 0.6], [1.0, 0.8], 0.8) == (1, 0.6)
    assert pocket.choose("learned", [0.5, 0.9], [1.0, 0.9], 1.0) == (0, 1.0)


def test_on_a_tie_the_preferred_vector_wins_and_current_ones_before_the_pocketed() -> None:
    assert pocket.choose("both", [0.5, 0.5], [1.0, 1.0], 1.0) == (0, 0.5)
    assert pocket.choose("learned", [1.0, 1.0], [1.0, 1.0], 1.0) == (0, 1.0)


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=6), st.none() | st.floats(0, 1))
def test_by_learned_scores_alone_it_is_the_pocket_of_the_paper(
    pairs: list[tuple[float, float]], pocketed: float | None
) -> None:
    """All vectors, the pocketed one last, and the highest SAP on the training documents wins."""
    held_out, learned = ([pair[i] for pair in pairs] for i in (0, 1))
    every = [*learned, *([] if pocketed is None else [pocketed])]
    place = every.index(max(every))
    expected = None if place == len(learned) else place
    assert pocket.choose("learned", held_out, learned, pocketed) == (expected, max(every))


def test_without_a_pocket_the_newest_vector_of_the_first_learner_is_served() -> None:
    """Also where the pocket would keep the vector of before a burst of wrong judgements."""
    right = [Example(str(i), i % 2 == 0, bag([1 if i % 2 == 0 else 2, 10 + i % 20])) for i in range(30)]
    wrong = [Example(f"w{i}", i % 2 == 1, bag([1 if i % 2 == 0 else 2, 10 + i])) for i in range(10)]
    params = {"average": False, "alpha": 5.0}
    with_, without = (
        fold(Spec("perceptron", params, bag([1]), pocket=p), right + wrong, EMPTY)
        for p in (PocketParams(), PocketParams(every=None))
    )
    assert without.figures.sap is None
    assert with_.figures.sap is not None
    assert weight_of(with_, 1) > weight_of(without, 1)


def weight_of(model: Model, feature: int) -> float:
    weights = dict(zip(model.linear.features.tolist(), model.linear.weights.tolist(), strict=True))
    return float(weights.get(feature, 0.0))


@pytest.mark.parametrize("every", [1, 5, 25])
def test_checks_come_as_often_as_is_asked(every: int, monkeypatch: pytest.MonkeyPatch) -> None:
    checks = []
    monkeypatch.setattr(Trainer, "_check", lambda trainer: checks.append(trainer._judged.size))
    trainer = Trainer(Spec("wh", {}, bag([1]), pocket=PocketParams(every)))
    for example in STREAM[:50]:
        trainer.learn(example)
    assert checks == list(range(every, 51, every))


def test_documents_learned_by_heart_do_not_choose_among_learners() -> None:
    """Every document has a word of its own, so all learners rank what they have learned perfectly; only held-out scores
    tell that they know different things."""
    served = set()
    for seed in range(6):
        random = np.random.default_rng(seed)
        stream = [
            Example(
                str(i),
                i % 3 == 0,
                bag([100 + i, *(int(f) for f in random.integers(1, 12, 4)), *([1] if i % 3 == 0 else [])]),
            )
            for i in range(60)
        ]
        trainer = Trainer(Spec("auto", {}, bag([1])))
        for example in stream:
            trainer.learn(example)
        served.add(trainer._served[0])
    assert len(served) > 1


def test_the_pocket_saves_a_topic_from_a_burst_of_wrong_judgements() -> None:
    """Thirty good judgements, then ten that contradict all of them: the vector of before is served."""
    right = [Example(str(i), i % 2 == 0, bag([1 if i % 2 == 0 else 2, 10 + i % 20])) for i in range(30)]
    wrong = [Example(f"w{i}", i % 2 == 1, bag([1 if i % 2 == 0 else 2, 10 + i])) for i in range(10)]
    spec = Spec("perceptron", {"average": False, "alpha": 5.0}, bag([1]))
    model = fold(spec, right + wrong, EMPTY)
    weights = dict(zip(model.linear.features.tolist(), model.linear.weights.tolist(), strict=True))
    assert weights[1] > weights.get(2, 0.0)
