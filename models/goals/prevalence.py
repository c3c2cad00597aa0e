"""How common a topic is now: the probability that each unjudged document of the stream is relevant.

    P(relevant | f) = 1 / (1 + exp(A f + B))         by logistic regression (sigmoid.py)
    π = mean of P(relevant | f) over a sample of the stream

Unjudged documents are unlabelled, not irrelevant. Whether a document is judged depends on its score (it was shown), or
on chance (it was drawn for audit), so among documents with the same score judged ones are relevant as often as
unjudged ones: the regression on the former holds for the latter. What users brought along was chosen for being
relevant, and does not count. As in Elkan & Noto, "Learning classifiers from only positive and unlabeled data", KDD
2008, an unlabelled document then counts as a relevant one with weight P and as an irrelevant one with weight 1 − P.

A judgement weighs half as much once HALF_LIFE later ones have come, so that π follows a stream whose mix shifts. Most
topics are rare, so the stream counts as PRIOR_IRRELEVANT irrelevant judgements at its scores: then, until some dozen
documents were shown, only what scores higher than nearly all of it is likely to be relevant.

Rejected: re-estimating π on the sample by expectation-maximisation (Saerens, Latinne & Decaestecker, "Adjusting the
outputs of a classifier to new a priori probabilities", Neural Computation 2002). It takes for granted that judged
documents of each kind score like unjudged ones of that kind, but people are shown those that score highest; π fell to
nearly 0. docs/experiments.md has the figures.
"""

import numpy as np

from models.core.measures import Bools
from models.core.vectors import Reals
from models.goals import sigmoid
from models.goals.sigmoid import Calibration

HALF_LIFE = 80  # judgements
NEWEST = 5 * HALF_LIFE  # judgements; older ones would weigh less than 1/32
PRIOR_IRRELEVANT = 20.0  # judgements
PRIOR_SIZE = 200  # documents of the stream that stand for all of it there: time is spent at every judgement
MIN_STREAM = 50  # unjudged documents, before anything is estimated


def estimate(held_out: Reals, relevant: Bools, sampled: Bools, unjudged: Reals) -> Calibration | None:
    """The sigmoid of a topic, from held-out scores of its judged documents in the order of their judgements, of which
    those that were shown or drawn for audit are `sampled`, and scores of unjudged ones. None while the stream is not
    known, or nothing sampled is relevant."""
    newest = np.flatnonzero(sampled)[-NEWEST:]
    if len(unjudged) < MIN_STREAM or not relevant[newest].any():
        return None
    stream = unjudged[:: -(-len(unjudged) // PRIOR_SIZE)]
    age = np.arange(len(newest))[::-1]
    return sigmoid.fit(
        np.concatenate((held_out[newest], stream)),
        np.concatenate((relevant[newest], np.zeros(len(stream), np.bool_))),
        np.concatenate((0.5 ** (age / HALF_LIFE), np.full(len(stream), PRIOR_IRRELEVANT / len(stream)))),
    )


def share(estimated: Calibration | None, unjudged: Reals) -> float:
    """π: the share of the unjudged documents that is relevant; 0 while there is no estimate."""
    return float(estimated.probabilities(unjudged).mean()) if estimated else 0.0
