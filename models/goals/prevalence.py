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

A topic may also become rarer while its judgements stay. Their mix is corrected for that: relevant ones weigh e^δ̂,

    δ  = argmax ℓ,   ℓ(δ) = Σ_i 2^(−age_i/HALF_LIFE) ln P(y_i | logit = −(A₀ f_i + B₀) + δ) − δ² / 2D²
    δ̂ = min(0, δ + s),   s = (−ℓ″(δ))^(−½)

where A₀, B₀ is the sigmoid through all judgements alike. If documents of each kind score as before and only their
shares change, the log-odds of relevance change by the same amount at every score, and so do those of the shares: δ is
seen where documents are shown, and holds everywhere. D is the deviation of a normal prior, s that of δ afterwards: only
a fall that is sure counts, or a rare topic would be cut by chance. One that becomes more common is not corrected.

Rejected: re-estimating π on the sample by expectation-maximisation (Saerens, Latinne & Decaestecker, "Adjusting the
outputs of a classifier to new a priori probabilities", Neural Computation 2002). It takes for granted that judged
documents of each kind score like unjudged ones of that kind, but people are shown those that score highest; π fell to
nearly 0. docs/experiments.md has the figures.
"""

from math import sqrt

import numpy as np

from models.core.measures import Bools
from models.core.vectors import Reals
from models.goals import sigmoid
from models.goals.sigmoid import Calibration

HALF_LIFE = 80  # judgements
NEWEST = 5 * HALF_LIFE  # judgements; older ones would weigh less than 1/32
PRIOR_IRRELEVANT = 20.0  # judgements
PRIOR_SIZE = 200  # documents of the stream that stand for all of it there: time is spent at every judgement
MAX_ALIKE = 1000  # judgements that stand for all of them in the sigmoid through all, for the same reason
DEVIATION = 2.0  # D, of log-odds
SHIFT_STEPS, SHIFT_TOLERANCE = 20, 1e-9  # of Newton's method
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


def fall(held_out: Reals, relevant: Bools, sampled: Bools, unjudged: Reals) -> float:
    """δ̂: by how much the log-odds of relevance are lower now than over all judgements, as a number that is not above 0.
    Takes the same as `estimate`; 0 where that gives none."""
    places = np.flatnonzero(sampled)
    newest = places[-NEWEST:]
    if len(newest) < 2 or len(unjudged) < MIN_STREAM or not relevant[newest].any():
        return 0.0
    stream = unjudged[:: -(-len(unjudged) // PRIOR_SIZE)]
    alike = places[::-1][:: -(-len(places) // MAX_ALIKE)]
    usual = sigmoid.fit(
        np.concatenate((held_out[alike], stream)),
        np.concatenate((relevant[alike], np.zeros(len(stream), np.bool_))),
        np.concatenate((np.ones(len(alike)), np.full(len(stream), PRIOR_IRRELEVANT / len(stream)))),
    )
    weights = 0.5 ** (np.arange(len(newest))[::-1] / HALF_LIFE)
    delta, deviation = _shift(usual, held_out[newest], relevant[newest], weights)
    return min(0.0, delta + deviation)


def _shift(usual: Calibration, f: Reals, relevant: Bools, weights: Reals) -> tuple[float, float]:
    """δ and s. No step is longer than 1: so Newton's method converges on this convex loss."""
    delta, curvature = 0.0, 1.0
    for _ in range(SHIFT_STEPS):
        p = Calibration(usual.A, usual.B - delta).probabilities(f)
        curvature = float((weights * p * (1 - p)).sum()) + DEVIATION**-2
        step = (float((weights * (relevant - p)).sum()) - delta * DEVIATION**-2) / curvature
        delta += max(-1.0, min(1.0, step))
        if abs(step) < SHIFT_TOLERANCE:
            break
    return delta, 1 / sqrt(curvature)


def share(estimated: Calibration | None, unjudged: Reals) -> float:
    """π: the share of the unjudged documents that is relevant; 0 while there is no estimate."""
    return float(estimated.probabilities(unjudged).mean()) if estimated else 0.0
