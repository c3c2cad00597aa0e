"""Training with a projection: learners that can see latent features beside the words, and all else stays as it is."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.core.latent import count_words, latent_features
from models.core.names import LEARNER_KINDS
from models.core.vectors import Bag, Linear, Reals
from models.core.views import view
from models.learners.base import DocumentVector, Vector
from models.learners.documents import Background
from models.online.model import Example, Model, Spec
from models.online.pins import PinnedTerms
from models.online.registry import LEARNERS
from models.online.scored import scale_of
from models.online.trainer import Trainer, fold
from models.text.projection import Projection, fit
from tests.models.online.test_trainer import bag, bag_strategy, same, streams

STEADY = settings(deadline=None, derandomize=True, max_examples=25)
WORDS, COLUMNS = 40, 5
SIGNED: list[tuple[str, dict[str, object]]] = [
    ("wh", {}),
    ("pa", {}),
    ("perceptron", {}),
    ("rocchio", {"positive": False}),
]
each = pytest.mark.parametrize("kind", LEARNER_KINDS)
each_signed = pytest.mark.parametrize(("kind", "params"), SIGNED, ids=str)
EMPTY = Background()
QUERY = bag([1, 2, 3])


def fitted(seed: int) -> Projection:
    rng = np.random.default_rng(seed)
    projection = fit(None, [bag(rng.integers(0, WORDS, 6).tolist()) for _ in range(50)], COLUMNS)
    assert projection is not None
    return projection


P, OTHER = fitted(0), fitted(1)
backgrounds = st.lists(bag_strategy, max_size=12).map(lambda bags: Background(bags, [str(i) for i in range(len(bags))]))


def score(linear: Linear, document: Bag, projection: Projection = P) -> float:
    return linear.score(view(linear.view, projection.extend(document) if linear.view == "semantic" else document))


def dense(documents: Sequence[Bag]) -> Reals:
    """[tf-idf ; z], a row a document."""
    X = np.zeros((len(documents), WORDS + COLUMNS))
    for row, document in zip(X, documents, strict=True):
        row[document.features.astype(int)] = view("tfidf", document).values
        row[WORDS:] = P.latent(document)
    return X


def whole(linear: Linear) -> Reals:
    """The weights of a model by word and latent column."""
    w = np.zeros(WORDS + COLUMNS)
    words = count_words(linear.features)
    w[linear.features[:words].astype(int)] = linear.weights[:words]
    w[WORDS + np.searchsorted(P.latent_features, linear.features[words:])] = linear.weights[words:]
    return w


@each
@STEADY
@given(stream=streams, background=backgrounds, stops=st.sets(st.integers(0, 45)))
def test_one_by_one_with_looks_between_equals_folding_all_at_once(
    kind: str, stream: list[Example], background: Background, stops: set[int]
) -> None:
    spec = Spec(kind, {}, QUERY)
    trainer = Trainer(spec, projection=P, weights=10)
    for i, example in enumerate(stream):
        trainer.learn(example)
        if i in stops:
            same(trainer.model(background), fold(spec, stream[: i + 1], background, projection=P, weights=10))
    same(trainer.model(background), fold(spec, stream, background, projection=P, weights=10))


@STEADY
@given(stream=streams.map(lambda stream: stream[:9]))  # before the pocket may choose another vector
def test_widrow_hoff_and_its_held_out_scores_are_those_of_the_formula_on_words_and_place(stream: list[Example]) -> None:
    eta, bias = 0.35, 0.2
    X = np.hstack([dense([QUERY, *(e.bag for e in stream)]), np.full((len(stream) + 1, 1), bias)])
    y = [True, *(e.relevant for e in stream)]
    w, vectors, steps = np.zeros(X.shape[1]), [np.zeros(X.shape[1])], []
    for x, label in zip(X, y, strict=True):
        steps.append(-2 * min(eta, 1 / (x @ x)) * (w @ x - label))
        w = w + steps[-1] * x
        vectors.append(w)
    mean, n = np.mean(vectors, axis=0), len(y)
    trainer = Trainer(Spec("wh", {}, QUERY), projection=P)
    for example in stream:
        trainer.learn(example)
    linear = trainer.model(EMPTY).linear
    np.testing.assert_allclose(whole(linear), mean[:-1], atol=1e-6)
    assert linear.bias == pytest.approx(mean[-1] * bias)
    shares = [1 - t / (n + 1) for t in range(1, n + 1)]
    held_out = trainer.held_out()
    for i, example in enumerate(stream, 1):
        if not trainer.unique.all():
            break  # what near-duplicates taught is taken out, too
        expected = mean @ X[i] - steps[i] * shares[i] * (X[i] @ X[i])
        assert held_out[example.document] == pytest.approx(expected, abs=1e-5)


@each_signed
@STEADY
@given(stream=streams.map(lambda stream: stream[:9]))
def test_learners_that_can_see_the_place_of_a_document_do(
    kind: str, params: dict[str, object], stream: list[Example]
) -> None:
    """Learning by feature from bags that were extended by hand is the same."""
    model = fold(Spec(kind, params, QUERY), stream, EMPTY, projection=P)
    assert model.linear.view == "semantic"
    by_hand = LEARNERS[kind]
    p = by_hand.Params(**params)
    slots = np.arange(WORDS + COLUMNS, dtype=np.int32)
    s = by_hand.start(p, DocumentVector(slots, dense([QUERY])[0]))
    for x, example in zip(dense([e.bag for e in stream]), stream, strict=True):
        by_hand.update(p, s, DocumentVector(slots, x), example.relevant)
    np.testing.assert_allclose(whole(model.linear), by_hand.vectors(p, s)[0].w[: WORDS + COLUMNS], atol=1e-6)


@pytest.mark.parametrize(
    ("kind", "params"),
    [("eg", {}), ("winnow", {}), ("rocchio", {}), ("perceptron", {"d": 60}), ("wh", {"view": "sqrt"})],
)
def test_learners_that_cannot_keep_to_words(kind: str, params: dict[str, object]) -> None:
    stream = [Example(str(i), i % 2 == 0, bag([i % 2 + 1, 10 + i])) for i in range(8)]
    with_, without = (fold(Spec(kind, params, QUERY), stream, EMPTY, projection=p).linear for p in (P, None))
    assert with_.view == without.view
    assert np.array_equal(with_.features, without.features)
    np.testing.assert_allclose(with_.weights, without.weights, rtol=1e-6)


@STEADY
@given(stream=streams, documents=st.lists(bag_strategy, max_size=8), rest=st.sampled_from([0.0, 0.25]))
def test_the_background_scores_like_the_linear_form(stream: list[Example], documents: list[Bag], rest: float) -> None:
    linear = replace(fold(Spec("wh", {}, QUERY), stream, EMPTY, projection=P).linear, rest=rest)
    background = Background(documents, [str(i) for i in range(len(documents))])
    got = background.under(P).scores(linear)
    np.testing.assert_allclose(got, [score(linear, document) for document in documents], atol=1e-6)
    assert background.under(P) is background.under(P)
    assert background.under(None) is background
    of_words = replace(linear, view="tfidf", features=linear.features[:0], weights=linear.weights[:0])
    assert np.array_equal(background.under(P).scores(of_words), background.scores(of_words))


def test_truncation_keeps_every_latent_weight_and_counts_words_only() -> None:
    rng = np.random.default_rng(1)
    stream = [Example(str(i), i % 3 == 0, bag(rng.integers(0, WORDS, 6).tolist())) for i in range(9)]
    whole, few = (
        fold(Spec("wh", {}, QUERY), stream, EMPTY, projection=P, weights=weights).linear for weights in (2000, 4)
    )
    assert count_words(few.features) == 4
    assert np.array_equal(few.features[4:], P.latent_features)
    assert few.features.tolist() == whole.strongest(4).features.tolist()
    assert few.weights.tolist() == whole.strongest(4).weights.tolist()


def test_a_topic_that_bans_terms_keeps_to_words() -> None:
    stream = [Example("a", True, bag([1, 2])), Example("b", False, bag([7, 9]))]
    spec = Spec("wh", {}, QUERY, terms=PinnedTerms(ban=(7,)))
    same(fold(spec, stream, EMPTY, projection=P), fold(spec, stream, EMPTY))


# -- a base ------------------------------------------------------------------------------------------------------------


def base(linear: Linear) -> Model:
    return Model(linear, 0.2, 0.3)


WORDY = Linear("tfidf", np.array([1, 2], np.uint64), np.array([0.5, -0.25], np.float32), 0.1, 0.125)
SEMANTIC = Linear(
    "semantic",
    np.concatenate([WORDY.features, P.latent_features]),
    np.concatenate([WORDY.weights, np.linspace(-1, 1, COLUMNS, dtype=np.float32)]),
    0.1,
)
DOCUMENTS = [bag([1, 5]), bag([2, 3, 9]), bag([20, 21])]
FITTED = {str(i): i / 10 for i in range(len(DOCUMENTS))}


@each
@pytest.mark.parametrize("linear", [WORDY, SEMANTIC], ids=["words", "semantic"])
def test_a_base_is_served_as_it_is_until_judgements_arrive(kind: str, linear: Linear) -> None:
    start = base(linear)
    same(Trainer(Spec(kind, {}, QUERY), projection=P, base=start).model(EMPTY), start)


@pytest.mark.parametrize("linear", [WORDY, SEMANTIC], ids=["words", "semantic"])
def test_what_a_base_was_fitted_on_is_scored_as_if_it_had_not_been(linear: Linear) -> None:
    trainer = Trainer(Spec("wh", {}, QUERY), projection=P, base=base(linear), fitted=FITTED)
    for i, document in enumerate(DOCUMENTS):
        trainer.add_fitted(Example(str(i), i == 0, document))
    assert trainer.held_out() == pytest.approx(FITTED, abs=1e-6)
    model = trainer.model(EMPTY)
    assert model.linear.view == "semantic"
    for document in DOCUMENTS:
        assert score(model.linear, document) == pytest.approx(score(linear, document), abs=1e-6)
    unseen = trainer.score_unseen(model, dict(zip(FITTED, DOCUMENTS, strict=True)))
    np.testing.assert_allclose(unseen, list(FITTED.values()), atol=1e-6)


@each
@pytest.mark.parametrize("projection", [OTHER, None], ids=["another", "none"])
def test_latent_weights_of_another_projection_are_dropped(kind: str, projection: Projection | None) -> None:
    foreign = {*P.latent_features.tolist()}
    trainer = Trainer(Spec(kind, {}, QUERY), projection=projection, base=base(SEMANTIC))
    for i, document in enumerate(DOCUMENTS):
        assert not foreign & {*trainer.model(EMPTY).linear.features.tolist()}
        trainer.learn(Example(str(i), i == 0, document))
    same(
        trainer.model(EMPTY),
        fold(
            Spec(kind, {}, QUERY),
            [Example(str(i), i == 0, document) for i, document in enumerate(DOCUMENTS)],
            EMPTY,
            projection=projection,
            base=base(SEMANTIC),
        ),
    )


def test_latent_features_are_never_those_of_another_projection() -> None:
    assert not {*latent_features(1, 256).tolist()} & {*latent_features(2, 256).tolist()}
    assert P.tag != OTHER.tag


# -- thresholds --------------------------------------------------------------------------------------------------------


def test_an_unrelated_document_is_taken_to_be_in_the_neighbourhood_and_one_like_the_topic_to_be_as_long_as_all() -> (
    None
):
    v = Vector(np.array([3.0, 4.0]), bias=0.5)
    words, semantic = scale_of(v, "tfidf"), scale_of(v, "semantic")
    assert (words.zero, words.one) == (0.5, 5.5)
    whole = 5 * np.sqrt(1 + P.alpha**2)
    assert semantic.one == pytest.approx(0.5 + whole)
    assert semantic.zero == pytest.approx(0.5 + whole * 0.5 * P.alpha**2 / (1 + P.alpha**2))


def test_a_query_alone_does_not_accept_what_only_lies_near_it() -> None:
    """A document of other words that the projection puts exactly where the query is."""
    model = fold(Spec("wh", {}, QUERY), [], EMPTY, projection=P)
    words = count_words(model.linear.features)
    near = model.linear.bias + float(model.linear.weights[words:] @ P.latent(QUERY)) / 2
    assert near < model.accept_above
    assert score(model.linear, QUERY) > model.accept_above
