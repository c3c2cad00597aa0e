"""A ranker: from judged documents to an order of others.

    standardise ψ over the judged documents, so that weights compare      (ψ − mean) / deviation; 0 where it is constant
    w₀ = (1, 0, …, 0)                                                     the ranking by score alone
    w by the ranking SVM                                                  svm.py

What lies beyond all judged documents in a feature counts as the most extreme of them, except in the score: if all were
judged within a minute, how much an age of a day weighs was not learned.

Its own scores of the documents that it was fitted to say little. `held_out` gives each the score of a ranker that was
fitted without its fold; `gain` is how much higher their NDCG is than that of the scores, with the delete-a-group
jackknife of batch/comparison.py, the groups being the folds' size: both orders lose the same documents.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.batch.comparison import Difference, jackknife
from models.batch.folds import stratified_folds
from models.core import measures
from models.core.vectors import Reals
from models.ranking.features import NAMES
from models.ranking.pairs import Label, pairs
from models.ranking.svm import fit

SCORE = NAMES.index("score")
MIN_OF_EACH = 5  # judged documents that are better, and worse, than another
FOLDS = 5
CONFIDENCE = 0.9


@dataclass(frozen=True, slots=True, eq=False)
class Ranker:
    mean: Reals
    deviation: Reals
    low: Reals  # of the judged documents
    high: Reals
    w: Reals

    def scores(self, psi: Reals) -> Reals:
        known = np.clip(psi, self.low, self.high)
        known[:, SCORE] = psi[:, SCORE]
        scores: Reals = (known - self.mean) / self.deviation @ self.w
        return scores


class Comparison(NamedTuple):
    """Scores of judged documents by rankers that did not see them, and the gain in NDCG over the first feature."""

    held_out: Reals
    gain: Difference


def enough(labels: Sequence[Label]) -> bool:
    """Whether so many documents belong before another, and so many behind one."""
    known = pairs(labels)
    return min(len(np.unique(known.better)), len(np.unique(known.worse))) >= MIN_OF_EACH


def learn(psi: Reals, labels: Sequence[Label], C: float) -> Ranker:
    """The ranker for these judged documents, a row each."""
    mean, spread = psi.mean(axis=0), psi.std(axis=0)
    constant = spread <= 1e-9 * (1 + np.abs(mean))
    deviation = np.where(constant, np.inf, spread)
    start = np.zeros(psi.shape[1])
    start[SCORE] = 1.0
    return Ranker(
        mean, deviation, psi.min(axis=0), psi.max(axis=0), fit((psi - mean) / deviation, pairs(labels), C, start)
    )


def held_out(psi: Reals, labels: Sequence[Label], C: float, seed: int = 0) -> Reals:
    """The score of each document by a ranker that was fitted to the other folds."""
    fold = _folds(labels, FOLDS, seed)
    scores = np.empty(len(psi))
    for k in range(FOLDS):
        others = np.flatnonzero(fold != k)
        scores[fold == k] = learn(psi[others], [labels[i] for i in others.tolist()], C).scores(psi[fold == k])
    return scores


def compare(psi: Reals, labels: Sequence[Label], C: float, seed: int = 0) -> Comparison:
    """The ranker against the ranking by score, on documents that neither has learned from."""
    scores, gains = held_out(psi, labels, C, seed), np.array([label.gain for label in labels], float)

    def difference(kept: NDArray[np.bool_]) -> float:
        ours, theirs = (measures.ndcg(each[kept], gains[kept]) for each in (scores, psi[:, SCORE]))
        return ours - theirs

    return Comparison(scores, jackknife(difference, gains > 0, None, seed))


def _folds(labels: Sequence[Label], folds: int, seed: int) -> NDArray[np.int64]:
    """Stratified by gain, so that each fold has documents of every grade."""
    gains = np.array([label.gain for label in labels])
    return stratified_folds(gains[:, None] == np.unique(gains)[None, :], folds, seed)
