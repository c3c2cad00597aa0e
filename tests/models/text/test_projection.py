"""The semantic projection: against its formula in plain numpy, and properties of any documents."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from models.core.latent import FIRST_LATENT, count_words, tag_of
from models.core.vectors import Bag, Reals
from models.core.views import view
from models.text import projection as module
from models.text.analysis import Analysis, Bags, bags, features_of
from models.text.idf import Frequencies
from models.text.projection import Projection, fit

STEADY = settings(deadline=None, derandomize=True, max_examples=40)
SHIP, CORN = ["ship", "port", "crew", "harbour", "tanker"], ["corn", "wheat", "grain", "crop", "harvest"]
OTHERS = [f"word{i}" for i in range(20)]
IDF = Frequencies.prior()

texts = st.lists(st.sampled_from([*SHIP, *CORN, *OTHERS]), max_size=15)
streams = st.lists(texts, max_size=12)


def bags_of(words: list[list[str]]) -> tuple[Bags, list[Bag]]:
    stream = bags([("", " ".join(document)) for document in words], Analysis())
    alone = [Bag(*stream[i], IDF.idf(stream[i][0])) for i in range(len(stream))]
    return stream, alone


def sampled(seed: int, size: int = 60) -> list[Bag]:
    """Documents about ships or about corn, with other words between."""
    rng = np.random.default_rng(seed)
    about = [SHIP if rng.random() < 0.5 else CORN for _ in range(size)]
    return bags_of([[*rng.choice(words, 3), *rng.choice(OTHERS, 3)] for words in about])[1]


def fitted(seed: int = 0, columns: int = 6) -> Projection:
    projection = fit(None, sampled(seed), columns)
    assert projection is not None
    return projection


def dense(documents: list[Bag], features: NDArray[np.uint64]) -> Reals:
    x = np.zeros((len(documents), len(features)))
    for row, bag in zip(x, documents, strict=True):
        for feature, value in zip(bag.features, view("tfidf", bag).values, strict=True):
            row[features == feature] = value
    return x


def plainly(p: Projection, bag: Bag) -> Reals:
    x = dense([bag], p.features)[0]
    y = x @ (p.rows * p.scales.astype(np.float64)[:, None]) - p.centre / 2**28
    return p.alpha * y / np.linalg.norm(y) if np.isin(bag.features, p.features).any() else np.zeros(p.columns)


@given(words=texts, seed=st.integers(0, 3))
@STEADY
def test_a_projected_document_is_its_formula(words: list[str], seed: int) -> None:
    p, bag = fitted(seed), bags_of([words])[1][0]
    np.testing.assert_allclose(p.latent(bag), plainly(p, bag), atol=1e-5)


@given(words=streams)
@STEADY
def test_a_batch_is_the_same_to_the_last_bit_as_each_document_alone(words: list[list[str]]) -> None:
    p, (stream, alone) = fitted(), bags_of(words)
    together = p.latent_batch(stream, IDF.idf(stream.features))
    assert together.shape == (len(words), p.columns)
    for z, bag in zip(together, alone, strict=True):
        assert np.array_equal(z, p.latent(bag))


@given(words=texts, seed=st.integers(0, 2**32 - 1))
@STEADY
def test_the_order_of_terms_is_irrelevant_to_the_last_bit(words: list[str], seed: int) -> None:
    """Values are computed first: the length of a tf-idf vector is a sum of doubles, which has an order."""
    p, bag = fitted(), bags_of([words])[1][0]
    order = np.random.default_rng(seed).permutation(len(bag.features))
    mixed = Bag(bag.features[order], np.ones(len(order), np.float32), np.ones(len(order), np.float32))
    sorted_ = Bag(bag.features, mixed.counts, mixed.idf)
    assert np.array_equal(p.latent(mixed), p.latent(sorted_))


@given(words=texts, seed=st.integers(0, 2**32 - 1))
@STEADY
def test_the_shares_of_words_and_of_the_centre_add_up(words: list[str], seed: int) -> None:
    p, bag = fitted(), bags_of([words])[1][0]
    u = np.random.default_rng(seed).standard_normal(p.columns)
    shares, centre = p.share(bag, u)
    assert len(shares) == len(bag.features)
    assert shares.sum() + centre == pytest.approx(float(p.latent(bag) @ u), abs=1e-5)
    assert not shares[~np.isin(bag.features, p.features)].any()


@given(words=texts)
@STEADY
def test_an_extended_bag_has_its_words_and_then_its_place(words: list[str]) -> None:
    p, bag = fitted(), bags_of([words])[1][0]
    extended = p.extend(bag)
    n = count_words(extended.features)
    assert np.array_equal(extended.features[:n], bag.features)
    assert np.array_equal(extended.counts[n:], p.latent(bag))
    assert np.array_equal(extended.features[n:], p.latent_features)
    assert bool(np.all(np.diff(extended.features.astype(object)) > 0))
    assert tag_of(extended.features) == p.tag
    assert tag_of(bag.features) is None


def test_a_word_in_the_range_of_latent_features_is_left_out() -> None:
    p, strange = fitted(), np.array([5, int(FIRST_LATENT) + 7], np.uint64)
    bag = Bag(strange, np.ones(2, np.float32), np.ones(2, np.float32))
    assert np.array_equal(p.extend(bag).features, np.concatenate([strange[:1], p.latent_features]))


def test_documents_without_a_known_term_are_nowhere() -> None:
    p = fitted()
    for words in ([], ["unheard"]):
        bag = bags_of([words])[1][0]
        assert not p.latent(bag).any()
        assert p.share(bag, np.ones(p.columns))[1] == 0


def test_documents_that_share_no_word_but_their_subject_lie_together() -> None:
    p = fitted(columns=2)
    ship, tanker, corn = (p.latent(bag).astype(float) for bag in bags_of([SHIP[:2], SHIP[2:], CORN[:2]])[1])
    assert np.linalg.norm(ship) == pytest.approx(p.alpha)
    assert ship @ tanker > 0.5 * p.alpha**2
    assert ship @ corn < 0


def test_singular_values_and_the_space_are_those_of_the_dense_decomposition() -> None:
    documents, p = sampled(1), fitted(1, columns=4)
    x = dense(documents, p.features)
    _, singular, V = np.linalg.svd(x, full_matrices=False)
    np.testing.assert_allclose(p.singular, singular[:4], rtol=1e-3)
    own = p.rows * p.scales[:, None]
    np.testing.assert_allclose(np.linalg.norm(V[:4] @ own, axis=0), 1, atol=0.01)
    np.testing.assert_allclose(p.centre / 2**28, x.mean(axis=0) @ own, atol=1e-6)


def test_going_on_from_a_projection_is_nearly_as_good_as_all_documents_at_once() -> None:
    first, second = sampled(2, 200), sampled(3, 200)
    whole, in_steps = fit(None, first + second, 12), fit(fit(None, first, 12), second, 12)
    assert whole is not None
    assert in_steps is not None
    x = dense(first + second, whole.features)

    def kept(p: Projection) -> float:
        own = np.zeros((len(whole.features), p.columns))
        own[np.searchsorted(whole.features, p.features)] = p.rows * p.scales[:, None]
        return float(np.square(x @ own).sum() / np.square(x).sum())

    assert kept(in_steps) > 0.95 * kept(whole)


def test_the_same_documents_give_the_same_projection_and_others_another() -> None:
    assert fitted(4).tag == fitted(4).tag
    assert fitted(4).tag != fitted(5).tag
    assert replace(fitted(4), alpha=0.5).tag != fitted(4).tag


def test_terms_of_one_document_are_left_out_and_only_the_strongest_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    documents = bags_of([["ship", "port"], ["ship", "crew"], ["ship", "port", "once"]])[1]
    p = fit(None, documents)
    assert p is not None
    assert set(p.features) == set(features_of(["ship", "port"]))
    assert p.columns <= 2
    monkeypatch.setattr(module, "MAX_TERMS", 1)
    strongest = fit(None, documents)
    assert strongest is not None
    assert list(strongest.features) == list(features_of(["ship"]))  # which all three have


def test_without_a_shared_term_there_is_no_projection_and_an_old_one_goes_on() -> None:
    assert fit(None, []) is None
    assert fit(None, bags_of([["ship"], ["corn"]])[1]) is None
    p = fitted()
    again = fit(p, [])
    assert again is not None
    np.testing.assert_allclose(again.singular, p.singular, rtol=0.02)


def test_stored_and_read_again_it_is_the_same() -> None:
    p = fitted()
    read = Projection.of({name: np.frombuffer(a.tobytes(), a.dtype).reshape(a.shape) for name, a in p.arrays().items()})
    assert read.tag == p.tag
    bag = sampled(9, 1)[0]
    assert np.array_equal(read.latent(bag), p.latent(bag))


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("features", lambda a: a[::-1]),
        ("features", lambda a: a[:-1]),
        ("rows", lambda a: a[:, :-1]),
        ("rows", lambda a: a.astype(np.int16)),
        ("scales", lambda a: a * np.float32(np.nan)),
        ("scales", lambda a: a * np.float32(100)),
        ("scales", lambda a: -a),
        ("centre", lambda a: a + np.int32(2**31 - 1 - a.max())),
        ("singular", lambda a: a * np.float32(np.inf)),
        ("alpha", lambda a: a * np.nan),
        ("alpha", lambda a: a[:0]),
    ],
)
def test_what_is_no_projection_is_refused(part: str, value: object) -> None:
    arrays = fitted().arrays()
    assert callable(value)
    with pytest.raises(ValueError, match=r"projection|centre"):
        Projection.of({**arrays, part: value(arrays[part])})
    with pytest.raises(ValueError, match="a projection has"):
        Projection.of({name: array for name, array in arrays.items() if name != part})
