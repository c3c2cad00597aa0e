"""Several topics fitted at once: one distribution, a part for each, the same by any number of workers."""

import numpy as np
import pytest

from models.batch import refit
from models.batch.refit import Dataset
from models.batch.together import JointDataset, refit_together
from models.core.measures import sap
from models.core.vectors import Bag
from models.core.views import view
from models.methods import boosting
from models.methods.feature_selection import reduced
from models.methods.matrix import Examples
from models.online.model import Example
from models.online.pins import NONE
from service.jobs.farm.local import Processes
from tests.support import reference

TOPICS, DOCUMENTS, WEIGHTS = 3, 90, 200
PARAMS = {"S": 15, "rho": 0.5}


def bag(words: list[int]) -> Bag:
    features = np.unique(np.array(words, np.uint64)) + np.uint64(1)
    return Bag(features, np.ones(len(features), np.float32), np.ones(len(features), np.float32))


RNG = np.random.default_rng(1)
LABELS = RNG.random((DOCUMENTS, TOPICS)) < 0.4
BAGS = [
    bag([*RNG.integers(20, 60, 8).tolist(), *(5 * i + int(RNG.integers(3)) for i in np.flatnonzero(row).tolist())])
    for row in LABELS
]


def part(i: int) -> Dataset:
    """A topic judged two thirds of the documents, each another two thirds."""
    judged = [j for j in range(DOCUMENTS) if j % TOPICS != i]
    return Dataset.of([Example(f"d{j}", bool(LABELS[j, i]), BAGS[j]) for j in judged], {})


PARTS = [part(i) for i in range(TOPICS)]
EVEN = [lambda bag: int(bag.features.sum()) % 2 == 0] * TOPICS  # a topic would reject these
DATA = JointDataset.of(PARTS, EVEN)


def test_a_pair_is_known_if_it_was_judged_or_would_be_rejected() -> None:
    assert len(DATA.bags) == DOCUMENTS
    for i, (own, at) in enumerate(zip(DATA.parts, DATA.places, strict=True)):
        assert [DATA.bags[j] for j in at.tolist()] == own.bags
        assert DATA.labels[at, i].tolist() == own.relevant.tolist()
        judged = set(at.tolist())
        for j, one in enumerate(DATA.bags):
            assert DATA.known[j, i] == (j in judged or EVEN[i](one))
            assert j in judged or not DATA.labels[j, i]
        assert own.fold.tolist() == DATA.fold[at].tolist()


def test_each_part_is_the_plane_of_adaboost_mh_over_all_pairs() -> None:
    """Against the slow form, over the same terms."""
    refits = refit_together(PARAMS, DATA, WEIGHTS, [NONE] * TOPICS)
    p, x = boosting.Params(S=15, rho=0.5), Examples.of(DATA.bags, "presence")
    kept = reduced(x, DATA.labels, "chi2", 0.5, DATA.known)
    X = np.zeros((kept.size, len(kept.features)))
    X[np.repeat(np.arange(kept.size), np.diff(kept.indptr)), kept.columns] = 1
    phi, _, _ = reference.boost(X, DATA.labels, p.S, p.C, p.N, "R", 1 / DATA.known.sum(), DATA.known)
    for i, one in enumerate(refits):
        scores = np.array([one.linear.score(view("presence", each)) for each in DATA.bags])
        slope, shift = np.polyfit(phi[:, i], scores, 1)
        assert scores == pytest.approx(phi[:, i] * slope + shift, abs=1e-4)


def test_held_out_scores_are_of_fits_without_the_fold_and_on_the_learners_scale() -> None:
    refits = refit_together(PARAMS, DATA, WEIGHTS, [NONE] * TOPICS)
    out = DATA.fold == 1
    x = Examples.of(DATA.bags, "presence")
    planes = boosting.fit(
        boosting.Params(S=15, rho=0.5), x.rows(~out), DATA.labels[~out], known=np.ascontiguousarray(DATA.known[~out])
    )
    for i, (one, own) in enumerate(zip(refits, DATA.parts, strict=True)):
        assert one.held_out[~own.relevant].mean() == pytest.approx(0, abs=1e-9)
        assert sap(one.held_out, own.relevant) > own.relevant.mean() + 0.2
        linear, mine = planes.linear(i), own.fold == 1
        expected = np.array([linear.score(view("presence", own.bags[j])) for j in np.flatnonzero(mine).tolist()])
        slope, shift = np.polyfit(expected, one.held_out[mine], 1)
        assert one.held_out[mine] == pytest.approx(expected * slope + shift, abs=1e-5)


def test_any_number_of_workers_gives_the_same_bit_for_bit() -> None:
    done: list[float] = []
    alone = refit_together(PARAMS, DATA, WEIGHTS, [NONE] * TOPICS, done.append)
    assert done == sorted(done)
    assert done[-1] == 1.0
    for workers in (1, 2, 3):
        with Processes(workers) as crew:
            together = refit_together(PARAMS, DATA, WEIGHTS, [NONE] * TOPICS, crew=crew)
            by_crew = refit.refit("boosting", PARAMS, PARTS[0], WEIGHTS, crew=crew)
        for one, other in zip(alone, together, strict=True):
            assert one.held_out.tobytes() == other.held_out.tobytes()
            assert one.linear.features.tobytes() == other.linear.features.tobytes()
            assert one.linear.weights.tobytes() == other.linear.weights.tobytes()
        own = refit.refit("boosting", PARAMS, PARTS[0], WEIGHTS)
        assert own.linear.weights.tobytes() == by_crew.linear.weights.tobytes()
