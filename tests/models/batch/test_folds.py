"""Folds are shared out fairly among topics."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from models.batch.folds import stratified_folds
from tests.models.batch.test_registry import corpus


@given(seed=st.integers(0, 10**6), folds=st.integers(2, 5), m=st.integers(1, 4))
def test_folds_share_every_topic(seed: int, folds: int, m: int) -> None:
    _, labels = corpus(seed, 40, m)
    fold = stratified_folds(labels, folds, seed)
    assert set(fold.tolist()) == set(range(folds))
    rarest = int(np.argmin(labels.sum(axis=0)))
    counts = np.bincount(fold[labels[:, rarest]], minlength=folds)
    assert counts.max() - counts.min() <= 1
    for i in range(m):
        if labels[:, i].sum() >= 2 * folds:
            assert np.bincount(fold[labels[:, i]], minlength=folds).max() < labels[:, i].sum()
