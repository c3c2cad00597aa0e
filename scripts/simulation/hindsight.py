"""What could be reached with all labels: a linear SVM, cut in hindsight.

It is fitted to the labels of all documents up to the pause, with the idf of that moment, and ranks the documents that
follow. Its cut is the lowest one whose precision on these very documents is the goal's, which nobody can know
beforehand; below it, as many documents are undecided as the goal allows. So it is no peer but a ceiling. It is that of
models/methods/svm.py.
"""

from collections.abc import Mapping

import numpy as np

from models.bank.seen import view_batch
from models.core.measures import Bools
from models.core.vectors import Reals
from models.goals.promises import Targets
from models.methods import svm
from models.methods.matrix import Examples
from scripts.loop.reader import ABSTAIN, ACCEPT, REJECT, Decisions
from scripts.loop.stream import Stream
from scripts.simulation.attainment import FollowUp


def in_hindsight(stream: Stream, relevant: Mapping[str, Bools], goal: Targets, counted: Bools) -> list[FollowUp]:
    """For each topic, how the SVM decides the documents that follow and are counted."""
    features, columns = np.unique(stream.bags.features, return_inverse=True)
    idf = stream.epochs[stream.epoch(stream.train)].frequencies.idf(stream.bags.features)
    values = view_batch("tfidf", stream.bags, idf).values.astype(np.float64)
    x = Examples("tfidf", features, stream.bags.indptr, columns.astype(np.int32), values)
    passed, labels = np.arange(stream.size) < stream.train, np.stack(list(relevant.values()), axis=1)
    following = ~passed
    following[stream.train :] &= counted
    planes = svm.fit(svm.Params(), x.rows(passed), labels[passed])
    scores, truth = planes.scores(x.rows(following)), labels[following]
    return [FollowUp.of(decide(scores[:, i], truth[:, i], goal), truth[:, i]) for i in range(len(relevant))]


def decide(scores: Reals, relevant: Bools, goal: Targets) -> Decisions:
    """The decisions by the best cuts, knowing what is relevant."""
    order = np.argsort(-scores, kind="stable")
    precise = np.cumsum(relevant[order]) / np.arange(1, len(order) + 1) >= (goal.min_precision or 0.0)
    accepted = int(np.flatnonzero(precise)[-1]) + 1 if precise.any() else 0
    undecided = int((goal.max_abstain or 0.0) * len(order))
    decisions = np.full(len(order), REJECT, np.int8)
    decisions[order[accepted : accepted + undecided]] = ABSTAIN
    decisions[order[:accepted]] = ACCEPT
    return decisions
