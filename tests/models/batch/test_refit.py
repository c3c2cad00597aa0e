"""Refitting a topic: every method, held out, beside what is served."""

from dataclasses import replace

import numpy as np
import pytest

from models.batch import refit, registry
from models.batch.refit import Dataset
from models.core.latent import count_words
from models.core.measures import sap
from models.core.names import METHOD_KINDS
from models.core.vectors import Bag
from models.core.views import view
from models.learners.documents import Background
from models.methods.matrix import Examples
from models.online.model import Example, Model, Spec
from models.online.pins import PinnedTerms
from models.online.trainer import Trainer
from models.text.projection import fit

RNG = np.random.default_rng(7)
WEIGHTS = 200


def bag_of_words(words: list[int]) -> Bag:
    numbers, counts = np.unique(words, return_counts=True)
    features = (numbers.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)  # spread out, as hashes are
    order = np.argsort(features)
    idf = np.log1p(3000 / (1 + numbers))
    return Bag(features[order], counts[order].astype(np.float32), idf[order].astype(np.float32))


def document(relevant: bool) -> Bag:
    """A document of forty words, some of which are about the topic."""
    words = (3000 * RNG.random(40) ** 2).astype(int) + 100
    topical = RNG.integers(0, 30, 8 if relevant else 1)
    return bag_of_words([*words.tolist(), *topical.tolist()])


JUDGED = [Example(f"d{i}", i % 4 == 0, document(i % 4 == 0), origin="shown") for i in range(120)]
UNJUDGED = {f"b{i}": document(False) for i in range(80)}
DATA = Dataset.of(JUDGED, UNJUDGED)


def test_near_duplicates_stand_in_one_fold_and_folds_share_the_relevant_documents() -> None:
    twice = [*JUDGED, *(Example(f"again {e.document}", e.relevant, e.bag) for e in JUDGED)]
    data = Dataset.of(twice, {})
    assert data.fold[: len(JUDGED)].tolist() == data.fold[len(JUDGED) :].tolist()
    shares = np.bincount(DATA.fold[DATA.relevant], minlength=refit.FOLDS)
    assert shares.max() - shares.min() <= 1


@pytest.mark.parametrize("kind", METHOD_KINDS)
def test_every_method_gives_a_model_on_the_learners_scale_and_scores_without_each_document(kind: str) -> None:
    done: list[float] = []
    refitted = refit.refit(kind, {}, DATA, WEIGHTS, progress=done.append)
    assert len(refitted.linear.features) <= WEIGHTS
    assert 0.3 < refitted.held_out[DATA.relevant].mean() < 1 + 1e-9
    assert refitted.held_out[~DATA.relevant].mean() == pytest.approx(0.0, abs=1e-9)
    assert sap(refitted.held_out, DATA.relevant) > 0.2  # by chance: .15
    assert done == sorted(done)
    assert done[-1] == pytest.approx(1.0)


@pytest.mark.parametrize("kind", ["svm", "boosting", "bayes"])
def test_a_held_out_score_is_that_of_a_model_fitted_without_the_fold(kind: str) -> None:
    refitted, p = refit.refit(kind, {}, DATA, WEIGHTS), registry.parse(kind, {})
    out = DATA.fold == 2
    rest = Examples.of(DATA.bags, p.view).rows(~out)
    linear = registry.fit(p, rest, DATA.relevant[~out][:, None]).linear(0).strongest(WEIGHTS)
    expected = np.array([linear.score(view(linear.view, DATA.bags[i])) for i in np.flatnonzero(out).tolist()])
    slope, shift = np.polyfit(expected, refitted.held_out[out], 1)
    assert refitted.held_out[out] == pytest.approx(expected * slope + shift, abs=1e-5)


def test_what_is_served_is_asked_without_the_judgements_of_the_fold() -> None:
    spec = Spec("wh", {}, bag_of_words([1, 2, 3]))
    scores = refit.served_scores(DATA, spec, [], JUDGED, WEIGHTS)
    trainer = Trainer(spec, weights=WEIGHTS)
    for example, k in zip(JUDGED, DATA.fold.tolist(), strict=False):
        if k != 3:
            trainer.learn(example)
    linear = trainer.model(Background()).linear
    for i in np.flatnonzero(DATA.fold == 3).tolist():
        assert scores[i] == pytest.approx(linear.score(view("tfidf", DATA.bags[i])))


def test_a_model_that_was_refitted_before_is_not_asked_about_what_it_was_fitted_on() -> None:
    """As the base of what is served it knows every document by heart; its scores must not show that."""
    refitted = refit.refit("svm", {"C": 100.0}, DATA, WEIGHTS)
    fitted = dict(zip(DATA.documents, refitted.held_out.tolist(), strict=True))
    base = Model(refitted.linear, 0.4, 0.6)
    scores = refit.served_scores(DATA, Spec("wh"), JUDGED, [], WEIGHTS, base, fitted)
    assert scores == pytest.approx(refitted.held_out, abs=1e-5)


def test_a_method_that_tells_nothing_apart_keeps_scores_of_ordinary_size() -> None:
    shuffled = [replace(e, relevant=bool(y)) for e, y in zip(JUDGED, RNG.permutation(DATA.relevant), strict=False)]
    assert np.abs(refit.refit("svm", {}, Dataset.of(shuffled, UNJUDGED), WEIGHTS).held_out).max() < 6


def test_cuts_are_chosen_on_other_folds() -> None:
    refitted = refit.refit("svm", {}, DATA, WEIGHTS)
    assert 0.5 < refit.held_out_f1(refitted.held_out, DATA) <= 1.0
    assert refit.held_out_f1(RNG.normal(size=len(DATA.bags)), DATA) < 0.6


# -- with a projection -------------------------------------------------------------------------------------------------

PROJECTION = fit(None, DATA.bags, columns=8)
SEMANTIC = ("centroid", "svm", "logistic", "wh", "perceptron", "pa")


@pytest.mark.parametrize("kind", METHOD_KINDS)
def test_methods_that_can_see_latent_features_do_and_the_others_are_as_before(kind: str) -> None:
    refitted = refit.refit(kind, {}, DATA, WEIGHTS, projection=PROJECTION)
    assert (refitted.linear.view == "semantic") == (kind in SEMANTIC)
    assert count_words(refitted.linear.features) <= WEIGHTS
    assert sap(refitted.held_out, DATA.relevant) > 0.2
    if kind not in SEMANTIC:
        without = refit.refit(kind, {}, DATA, WEIGHTS)
        assert refitted.held_out.tolist() == without.held_out.tolist()
        assert refitted.linear.weights.tolist() == without.linear.weights.tolist()


@pytest.mark.parametrize("kind", ["svm", "wh"])
def test_a_semantic_held_out_score_is_that_of_a_model_fitted_without_the_fold(kind: str) -> None:
    assert PROJECTION is not None
    refitted, p = refit.refit(kind, {}, DATA, WEIGHTS, projection=PROJECTION), registry.parse(kind, {})
    extended, out = [PROJECTION.extend(bag) for bag in DATA.bags], DATA.fold == 2
    rest = Examples.of(extended, "semantic").rows(~out)
    linear = registry.fit(p, rest, DATA.relevant[~out][:, None]).linear(0).strongest(WEIGHTS)
    expected = np.array([linear.score(view("semantic", extended[i])) for i in np.flatnonzero(out).tolist()])
    slope, shift = np.polyfit(expected, refitted.held_out[out], 1)
    assert refitted.held_out[out] == pytest.approx(expected * slope + shift, abs=1e-5)


def test_learning_goes_on_from_a_semantic_model_that_does_not_know_its_documents_by_heart() -> None:
    refitted = refit.refit("svm", {"C": 100.0}, DATA, WEIGHTS, projection=PROJECTION)
    fitted = dict(zip(DATA.documents, refitted.held_out.tolist(), strict=True))
    base = Model(refitted.linear, 0.4, 0.6)
    scores = refit.served_scores(DATA, Spec("wh"), JUDGED, [], WEIGHTS, base, fitted, PROJECTION)
    assert scores == pytest.approx(refitted.held_out, abs=1e-5)


def test_where_terms_are_banned_a_method_keeps_to_words() -> None:
    terms = PinnedTerms(ban=(int(DATA.bags[0].features[0]),))
    assert refit.refit("svm", {}, DATA, WEIGHTS, terms, projection=PROJECTION).linear.view == "tfidf"
