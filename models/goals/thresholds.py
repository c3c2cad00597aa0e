"""Where to cut a ranking: from scores that the model did not learn from, to `reject_below` and `accept_above`.

A cut accepts every score above it. Between two neighbouring scores any cut accepts the same documents; we take the
middle. Equal scores are never separated.

    F_β         (1+β²)·tp / ((1+β²)·tp + fp + β²·fn), guarded: a best value below .1 means that the ranking is too bad
                to trust, and such a cut would accept thousands; then nothing is accepted
    utility     2·tp − fp, the T11U of the TREC filtering track (T11SU is a stretched form with the same best cut)
    break-even  as many accepted as are relevant, so that precision equals recall

`choose` is what a topic without a goal uses: guarded F_1 over judged documents and, as irrelevant ones, a sample of
unjudged documents (at ten judgements the background lifted F_1 from .28 to .51 on Reuters). These weigh less than
judged ones, because they are not all irrelevant: after fifty or a hundred judgements, more than half of those above the
cut are relevant (.56 to .82 on three corpora), and came before the topic could know. While judgements are few it leans
on what is known before any: on a scale where an unrelated document is 0 and one that is nothing but what the topic
looks for is 1, relevant documents lie at .08 to .3, and the best single cut is .1. (Reuters, training documents, 59
topics, the topic's name as query: F_1 .515 at .1 against .429 at 0 and .339 at .2.)

Where no stream is known, the few documents that were judged are all there is. Then a judged document stays on its side
if one cut can do that. (Once a stream is known this costs: a topic that rejects what is near its first irrelevant
documents is shown less, and learns less; on the same training documents F_1 at the end falls from .763 to .748.)
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.core.kernel import kernel
from models.core.measures import Bools
from models.core.vectors import Reals

GUARD = 0.1
NEVER = float(np.finfo(np.float32).max)  # accepts nothing; finite, so that JSON can say it

ACCEPT, REJECT = 0.10, 0.05  # on the scale, before any judgement
MOST = 0.05  # of the stream, before any judgement: a query of common words must not accept all of it
RELEVANT_AT, RELEVANT = (0.08, 0.12, 0.16, 0.2, 0.3), 2.0  # imagined relevant documents, and their weight together
UNRELATED_AT, UNRELATED = (0.0, 0.02, 0.04, 0.06, 0.08), 20.0  # imagined background, fading as a real one of ...
MIN_SAMPLE = 200  # ... so many documents comes
# The weight of an unjudged document, as an irrelevant one. By how much F1 changes against a weight of 1, from the same
# judgements, on two quarters of the training documents each (standard errors .001 to .03, at the end up to .004):
#
#                             10 judged      50             100            the end
#     Reuters          .5     .003  .014     .002  .002     .002  .003     .001  .001
#                      .25    .003  .013     .000  .002     .002  .004     .001  .003
#                      .1    −.023 −.012     .003  .007     .004  .007     .001  .003
#     20 Newsgroups    .25    .077  .068     .051  .040     .017  .011     .000  .004
#     arXiv            .25    .037  .041     .017  .017     .008  .015     .000  .005
#
# On a stream of its own a topic accepts more, so it is shown 4 to 6 % more documents; then F1 at the end changes by
# .010 ± .003 and .003 ± .005 on Reuters, .001 ± .005 and .011 ± .007 on 20 Newsgroups, −.004 ± .005 and .008 ± .004 on
# a quarter of arXiv, AP by .000 to .007 (two starts each). In a band of .014, with about as many judgements as before,
# it is .010 and .004, −.005 and .008, −.008 and .002 (± .004 to .008); with a weight of .5, −.008 to .005. Of other
# learners EG has −.010 to .011, Winnow −.026 ± .011 and −.009 ± .005 on arXiv and −.012 to .035 elsewhere. A weight of
# 4 costs up to .04 with a hundred judgements.
#
# Tried, from the same judgements, at the end: the mean of all cuts weighed by exp(F1/τ), or of the best ones of twenty
# bootstraps; F1 of blurred scores; newer judgements weighed more; a cut where relevance, by isotonic regression, falls
# below half the best F1. F1 changes by −.024 to .007, and by none for the better on all. A logistic curve through the
# scores: −.031 to −.003. To count unjudged documents as relevant by the share of judged ones that score like them:
# with ten judgements −.17 to −.14 on Reuters, .07 to .12 on 20 Newsgroups.
UNJUDGED = 0.25
_IMAGINED_AT = np.array([*RELEVANT_AT, *UNRELATED_AT])
_IMAGINED_RELEVANT = np.arange(len(_IMAGINED_AT)) < len(RELEVANT_AT)
TRUST = 3.0  # relevant judgements at which the chosen cut counts as much as the one before any judgement
# The share of the stream that lies in the band and is offered for a judgement. On held-out training documents, with the
# weights that are served now (online/truncation.py) and topics' names as queries, AP and F1 (judgements a topic):
#
#                          .0125              .015               .0175              .02
#     Reuters              .810 .747 (239)    .819 .759 (271)    .816 .755 (294)    .819 (317)
#     20 Newsgroups        .843 .778 (385)    .866 .808 (452)    .867 .808 (507)    .867 (540)
#     a quarter of arXiv   .389 .352 (234)    .407 .361 (272)
#
# A share that falls as judgements grow many, or is tied to what is accepted (half of it), trades no better. Nor does it
# to count judged documents there as if they had not been learned from, which makes a band of .02 about as wide as this:
# AP changes by −.004 to −.017, and a model takes half as long again.
ABSTAIN = 0.015
FEW = 20  # judgements that are kept on their sides where no stream is known ...
MARGIN = 0.25  # ... by a cut with at least this share of the gap between them on either side
NARROW = 0.5  # the band as a share of the cut's height over 0 on the scale, where no stream is known


@dataclass(frozen=True, slots=True)
class Cut:
    threshold: float
    value: float  # of the measure that was optimised


@dataclass(frozen=True, slots=True)
class Band:
    """Reject below, accept above, abstain between; f1 is the estimate that led to it, None without judgements."""

    reject_below: float
    accept_above: float
    f1: float | None = None


@dataclass(frozen=True, slots=True)
class Scale:
    zero: float  # the score of an unrelated document
    one: float  # of one that is nothing but what the topic looks for

    def at(self, height: float) -> float:
        return self.zero + height * (self.one - self.zero)


def choose(
    held_out: Reals,
    relevant: Bools,
    background: Reals,
    unjudged: Bools,
    scale: Scale,
    scores: Reals | None = None,
    wide: bool = False,
) -> Band:
    """The band from judged documents (held out: as if they had not been learned from; their scores as they are) and
    the background, of which a part is unjudged. A wide one shows people twice as much, to learn what has changed."""
    prior = scale.at(ACCEPT)
    ranked = np.sort(background)
    if len(ranked) >= MIN_SAMPLE:
        prior = max(prior, _quantile(ranked, 1 - MOST))
    n = int(np.count_nonzero(relevant))
    if not scale.one > scale.zero:  # no query and no judgement has said anything: all scores are alike
        return Band(NEVER, NEVER)
    if not n:
        return Band(min(scale.at(REJECT), prior), prior)
    cut = _regularised(held_out, relevant, background[unjudged], scale)
    if cut.threshold == NEVER:
        return Band(min(scale.at(REJECT), prior), NEVER, cut.value)
    accept = (n * cut.threshold + TRUST * prior) / (n + TRUST)
    if len(background) < MIN_SAMPLE and 0 < n < len(relevant) <= FEW:
        return _apart(accept, held_out if scores is None else scores, relevant, ranked, scale, cut.value)
    return Band(_low(accept, ranked, scale, 2 * ABSTAIN if wide else ABSTAIN), accept, cut.value)


def _apart(accept: float, scores: Reals, relevant: Bools, ranked: Reals, scale: Scale, f1: float) -> Band:
    """The band moved, if need be, between the judged documents of both kinds, if there is room between them."""
    low, high = float(scores[~relevant].max()), float(scores[relevant].min())
    if low >= high:
        return Band(_low(accept, ranked, scale), accept, f1)
    margin = MARGIN * (high - low)
    accept = min(max(accept, low + margin), high - margin)
    return Band(max(_low(accept, ranked, scale), low + margin / 2), accept, f1)


def f_beta_cut(
    scores: Reals, relevant: Bools, weights: Reals | None = None, beta: float = 1.0, guard: float = GUARD
) -> Cut:
    cuts, tp, accepted, found = cuts_of(scores, relevant, weights)
    b2 = beta * beta
    return _best(cuts, (1 + b2) * tp / (accepted + b2 * found), guard)


def utility_cut(scores: Reals, relevant: Bools, weights: Reals | None = None) -> Cut:
    """The cut with the highest 2·tp − fp; accepting nothing, which gives 0, if no cut gives more."""
    cuts, tp, accepted, _ = cuts_of(scores, relevant, weights)
    return _best(cuts, 3 * tp - accepted, np.finfo(float).tiny)


def break_even_cut(scores: Reals, relevant: Bools, weights: Reals | None = None) -> Cut:
    """The cut that accepts as many as are relevant, or comes nearest to it between equal scores; its precision."""
    cuts, tp, accepted, found = cuts_of(scores, relevant, weights)
    if not len(cuts):
        return Cut(NEVER, 0.0)
    nearest = int(np.argmin(np.abs(accepted - found)))
    return Cut(float(cuts[nearest]), float(tp[nearest] / accepted[nearest]))


def _regularised(held_out: Reals, relevant: Bools, unjudged: Reals, scale: Scale) -> Cut:
    """The best F1 with the imagined documents. A cut below all that is relevant is never the best, so of the background
    that lies there one is enough, the highest: a cut may fall half-way to it."""
    unrelated = UNRELATED * max(0.0, 1 - len(unjudged) / MIN_SAMPLE)
    low = unjudged < min(float(held_out[relevant].min()), scale.at(RELEVANT_AT[0]))
    above, under = unjudged[~low], unjudged[low]
    imagined = scale.zero + _IMAGINED_AT * (scale.one - scale.zero)
    scores = np.concatenate([held_out, imagined, above, [under.max()] if len(under) else []])
    judged, all_but_background = len(held_out), len(held_out) + len(imagined)
    labels = np.zeros(len(scores), np.bool_)
    labels[:judged] = relevant
    labels[judged:all_but_background] = _IMAGINED_RELEVANT
    weights = np.ones(len(scores))
    weights[all_but_background:] = UNJUDGED
    weights[judged:all_but_background] = np.where(
        _IMAGINED_RELEVANT, RELEVANT / len(RELEVANT_AT), unrelated / len(UNRELATED_AT)
    )
    return f_beta_cut(scores, labels, weights)


def _quantile(ranked: Reals, q: float) -> float:
    """numpy's own takes seven times as long, since it sorts once more and asks many questions first."""
    at = q * (len(ranked) - 1)
    low = int(at)
    return float(ranked[low] + (at - low) * (ranked[min(low + 1, len(ranked) - 1)] - ranked[low]))


def _low(accept: float, ranked: Reals, scale: Scale, abstain: float = ABSTAIN) -> float:
    """`reject_below`: this share of the background, which is ascending, lies between it and `accept_above`."""
    if len(ranked) < MIN_SAMPLE:
        return min(accept, accept - NARROW * (accept - scale.zero))
    below = int(np.searchsorted(ranked, accept, side="right"))
    wanted = min(below, round(abstain * len(ranked)))
    return float(ranked[below - wanted]) if wanted else accept


def cuts_of(scores: Reals, relevant: Bools, weights: Reals | None = None) -> tuple[Reals, Reals, Reals, float]:
    """Every cut, strictest first; the weight of the relevant and of all documents that each accepts; the weight of all
    relevant ones, without which there is no cut."""
    weights = np.ones(len(scores)) if weights is None else weights
    found = float(weights[relevant].sum())
    if not found:
        return np.empty(0), np.empty(0), np.empty(0), 0.0
    return *_runs(scores, relevant, weights, np.argsort(-scores)), found


@kernel
def _runs(scores: Reals, relevant: Bools, weights: Reals, order: NDArray[np.int64]) -> tuple[Reals, Reals, Reals]:
    """The first three of `cuts_of`, which lie at the end of each run of equal scores."""
    cuts, tp, accepted = np.empty(len(order)), np.empty(len(order)), np.empty(len(order))
    lowest = scores[order[-1]]
    under = lowest - max(1e-9, scores[order[0]] - lowest)  # a cut that accepts everything needs a score to be above
    n, hits, total = 0, 0.0, 0.0
    for i in range(len(order)):
        score, weight = scores[order[i]], weights[order[i]]
        total += weight
        if relevant[order[i]]:
            hits += weight
        below = scores[order[i + 1]] if i + 1 < len(order) else under
        if below < score or i + 1 == len(order):
            cuts[n], tp[n], accepted[n] = (score + below) / 2, hits, total
            n += 1
    return cuts[:n], tp[:n], accepted[:n]


def _best(cuts: Reals, values: Reals, least: float) -> Cut:
    best = int(np.argmax(values)) if len(cuts) else None
    if best is None or not values[best] >= least:
        return Cut(NEVER, 0.0)
    return Cut(float(cuts[best]), float(values[best]))
