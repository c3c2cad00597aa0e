"""Where to cut a ranking: from scores that the model did not learn from, to `reject_below` and `accept_above`.

A cut accepts every score above it. Between two neighbouring scores any cut accepts the same documents; we take the
middle. Equal scores are never separated.

`best_cut` is the cut that is best by a measure (objectives.py): F_β, a utility, or the break-even point.

`choose` sets the band of a topic that promises nothing: the best cut, by F_1 unless its goal maximises something else,
over the judged documents and a sample of unjudged ones, each of which counts as relevant with the probability P that
prevalence.py gives it, and as irrelevant with 1 − P. (While nothing that people were shown is known to be relevant,
unjudged documents count as irrelevant, with a weight.)

    F_1 at a cut = 2·tp / (accepted + all relevant)      each a sum over judged documents, and of P or 1 over unjudged

What is shown follows how common the topic is: below the cut people see ABSTAIN_SHARE of the stream, or BAND_SHARE of π
(of 1 − π if that is less), the share of the stream that is relevant. A common topic that is shown only the little that
scores highest judges more of the same, and never learns where it ends.

While judgements are few, the cut leans on a prior. On a scale where an unrelated document is 0 and a document of
nothing but what the topic looks for is 1, relevant documents lie at .08 to .3, and the best single cut is .1. (Reuters,
training documents, 59 topics, the topic's name as query: F_1 .515 at .1 against .429 at 0 and .339 at .2.)

Where no stream is known, the few judged documents are all there is. Then each judged document stays on its side of the
cut, if one cut can do that. (Once a stream is known this costs: a topic that rejects what is near its first irrelevant
documents is shown less, and learns less; on the same training documents F_1 at the end falls from .763 to .748.)

And if all of these are relevant, which is how most people begin, nothing is known of other documents: they, too, have
the words that every document has. Then a document must be more typical than nearly all relevant ones to be accepted.
(Ten relevant documents and no query let through 49 % of Reuters, and 46 % of 20 Newsgroups; now .2 and 2 %.)

docs/experiments.md has the measurements behind ABSTAIN_SHARE and BAND_SHARE, and what else was tried.
"""

from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from models.core.kernel import kernel
from models.core.measures import Bools
from models.core.vectors import Reals
from models.goals import prevalence
from models.goals.objectives import F1, MIN_F, FBeta, Objective

NEVER = float(np.finfo(np.float32).max)  # a cut that accepts nothing; finite, so that JSON can express it
MIN_SAMPLE = 200  # documents before a share of the stream is estimated from them

# The prior, in heights on the scale.
PRIOR_ACCEPT, PRIOR_REJECT = 0.10, 0.05
MAX_PRIOR_SHARE = 0.05  # of the stream, accepted by the prior cut: a query of common words must not accept all of it,
MAX_COMMON_SHARE = 0.9  # unless the topic is known to be more common than that
PRIOR_WEIGHT = 3.0  # relevant judgements that count as much as the prior cut
RELEVANT_AT, RELEVANT_WEIGHT = (0.08, 0.12, 0.16, 0.2, 0.3), 2.0  # imagined relevant documents, and their total weight
UNRELATED_AT, UNRELATED_WEIGHT = (0.0, 0.02, 0.04, 0.06, 0.08), 20.0  # likewise; a real background takes their place
_IMAGINED_AT = np.array([*RELEVANT_AT, *UNRELATED_AT])
_IMAGINED_RELEVANT = np.arange(len(_IMAGINED_AT)) < len(RELEVANT_AT)

UNJUDGED_WEIGHT = 0.25  # of an unjudged document, as an irrelevant one, while there are no probabilities
# Lower probabilities count as 0: a sigmoid has long tails, and most of a stream is there. (For a measure that accepts
# unlikely documents, probabilities below IGNORED of those that it may accept.)
MIN_P, IGNORED = 0.1, 0.2
ABSTAIN_SHARE = 0.015  # of the stream, in the band and offered for a judgement
BAND_SHARE = 0.4  # of what is relevant, or of what is not: the same for a topic that is common

# Where no stream is known.
MAX_SEPARATED = 20  # judged documents that are kept on their sides of the cut ...
MIN_MARGIN = 0.25  # ... with at least this share of the gap between both kinds on either side of it
CERTAIN_SHARE = 0.9  # of the relevant documents, which what is accepted surpasses if no others are known
BAND_HEIGHT = 0.5  # of the band, as a share of the cut's height on the scale


@dataclass(frozen=True, slots=True)
class Cut:
    """A cut, and what the measure it was chosen by estimates for it."""

    threshold: float
    value: float


@dataclass(frozen=True, slots=True)
class Band:
    """Reject below, accept above, abstain between. `f1` is the estimate there, None without judgements; `value` that of
    what the goal maximises, if it does. `certified` says whether the precision that a goal asks for can be promised;
    None if it asks for none."""

    reject_below: float
    accept_above: float
    f1: float | None = None
    certified: bool | None = None
    value: float | None = None


@dataclass(frozen=True, slots=True)
class HandCuts:
    """Cuts that a user has set, and that stay: two scores, or a distance to either side of where the topic would cut
    by itself, which moves as it learns (of a support vector machine, the "don't know" band along its hyperplane)."""

    reject_below: float = 0.0
    accept_above: float = 0.0
    band: float | None = None

    def of(self, usual: Band) -> Band:
        """The band, in place of the usual one. Around a cut that accepts nothing there is none."""
        low, high = self.reject_below, self.accept_above
        if self.band is not None:
            if usual.accept_above >= NEVER:
                return usual
            low, high = usual.accept_above - self.band, min(usual.accept_above + self.band, NEVER)
        return replace(usual, reject_below=low, accept_above=high, certified=None)


@dataclass(frozen=True, slots=True)
class Scale:
    zero: float  # the score of an unrelated document
    one: float  # the score of a document of nothing but what the topic looks for

    def at(self, height: float) -> float:
        """The score at this height."""
        return self.zero + height * (self.one - self.zero)


def choose(
    held_out: Reals,
    relevant: Bools,
    background: Reals,
    unjudged: Bools,
    scale: Scale,
    scores: Reals | None = None,
    sampled: Bools | None = None,
    wide: bool = False,
    objective: Objective | None = None,
) -> Band:
    """Chooses the band of a topic that promises nothing. `held_out` are scores of the judged documents by models that
    did not learn from them, `scores` those by the model that is served; `sampled` are those of them that were shown or
    drawn for audit; `unjudged` marks the unjudged documents of the background. A wide band shows people twice as much,
    so that the topic learns what has changed. The objective is what the goal maximises, if it does."""
    if not scale.one > scale.zero:  # neither query nor judgements: all scores are equal
        return Band(NEVER, NEVER)
    n, ranked, unseen = int(np.count_nonzero(relevant)), np.sort(background), background[unjudged]
    sampled = np.zeros(len(relevant), np.bool_) if sampled is None else sampled
    estimated = prevalence.estimate(held_out, relevant, sampled, unseen)
    P = estimated.probabilities(unseen) if estimated else None
    share = 0.0 if P is None else float(P.mean())
    prior = scale.at(PRIOR_ACCEPT)
    if len(ranked) >= MIN_SAMPLE:
        prior = max(prior, _quantile(ranked, 1 - min(max(share, MAX_PRIOR_SHARE), MAX_COMMON_SHARE)))
    if not n:
        return Band(min(scale.at(PRIOR_REJECT), prior), prior)
    counts = _judged_counts(held_out, relevant, sampled, unseen)
    cut, value = _regularised_cut(held_out, relevant, counts, unseen, P, scale, objective)
    if cut.threshold == NEVER:
        return Band(min(scale.at(PRIOR_REJECT), prior), NEVER, cut.value, value=value)
    accept = (n * cut.threshold + PRIOR_WEIGHT * prior) / (n + PRIOR_WEIGHT)
    if len(background) < MIN_SAMPLE and 0 < n < len(relevant) <= MAX_SEPARATED:
        band = _separating_band(accept, held_out if scores is None else scores, relevant, ranked, scale, cut.value)
        return replace(band, value=value)
    if len(background) < MIN_SAMPLE and 1 < n == len(relevant) and not sampled.any():
        return replace(_band_without_contrast(accept, held_out, cut.value), value=value)
    abstain = max(ABSTAIN_SHARE, BAND_SHARE * min(share, 1 - share))
    low = _reject_below(accept, ranked, scale, 2 * abstain if wide else abstain)
    return Band(low, accept, cut.value, value=value)


def _separating_band(accept: float, scores: Reals, relevant: Bools, ranked: Reals, scale: Scale, f1: float) -> Band:
    """The band, moved between the relevant and the irrelevant judged documents if there is a gap between them."""
    low, high = float(scores[~relevant].max()), float(scores[relevant].min())
    if low >= high:
        return Band(_reject_below(accept, ranked, scale), accept, f1)
    margin = MIN_MARGIN * (high - low)
    accept = min(max(accept, low + margin), high - margin)
    return Band(max(_reject_below(accept, ranked, scale), low + margin / 2), accept, f1)


def _band_without_contrast(accept: float, held_out: Reals, f1: float) -> Band:
    """The band of a topic that was given relevant documents only, two or more: it accepts what scores higher than
    CERTAIN_SHARE of relevant documents, by the prediction bound mean + t·s·√(1 + 1/n), and abstains above the mean."""
    n, mean = len(held_out), float(held_out.mean())
    deviation = float(held_out.std(ddof=1)) * sqrt(1 + 1 / n)
    accept = max(accept, mean + float(stdtrit(n - 1, CERTAIN_SHARE)) * deviation)
    return Band(min(mean, accept), accept, f1)


def best_cut(
    objective: Objective,
    scores: Reals,
    relevant: Bools,
    weights: Reals | None = None,
) -> Cut:
    """The cut that is best by this measure; NEVER if nothing should be accepted."""
    cuts, tp, accepted, total = all_cuts(scores, relevant, weights)
    best = objective.best(tp, accepted, total)
    return Cut(float(cuts[best]), float(objective.values(tp, accepted, total)[best])) if best >= 0 else Cut(NEVER, 0.0)


def f_beta_cut(
    scores: Reals, relevant: Bools, weights: Reals | None = None, beta: float = 1.0, guard: float = MIN_F
) -> Cut:
    """The cut with the highest F_β; NEVER if even that is below the guard."""
    return best_cut(FBeta(beta, guard), scores, relevant, weights)


def _regularised_cut(
    held_out: Reals,
    relevant: Bools,
    counts: Reals,
    unjudged: Reals,
    P: Reals | None,
    scale: Scale,
    objective: Objective | None,
) -> tuple[Cut, float | None]:
    """The best cut over judged, imagined and unjudged documents, with its F_1; and its value by the objective, if there
    is one. The first have these weights, the last are relevant with probability P."""
    measure = objective or F1
    P, weight = _counted(P, len(unjudged), measure)
    unrelated = UNRELATED_WEIGHT * max(0.0, 1 - len(unjudged) / MIN_SAMPLE)
    imagined = np.where(_IMAGINED_RELEVANT, RELEVANT_WEIGHT / len(RELEVANT_AT), unrelated / len(UNRELATED_AT))
    scores = np.concatenate((held_out, scale.zero + _IMAGINED_AT * (scale.one - scale.zero), unjudged))
    gains = np.concatenate((relevant * counts, imagined * _IMAGINED_RELEVANT, P))
    weights = np.concatenate((counts, imagined, np.full(len(unjudged), weight)))
    cuts, tp, accepted = _runs(scores, gains, weights, np.argsort(-scores))
    total = float(gains.sum())
    best = measure.best(tp, accepted, total)
    if best < 0:
        return Cut(NEVER, 0.0), 0.0 if objective else None
    value = float(objective.values(tp, accepted, total)[best]) if objective else None
    return Cut(float(cuts[best]), float(F1.values(tp, accepted, total)[best])), value


def estimated_cut(objective: Objective, held_out: Reals, relevant: Bools, sampled: Bools, unjudged: Reals) -> Cut:
    """The best cut over judged and unjudged documents alone, without a prior."""
    estimated = prevalence.estimate(held_out, relevant, sampled, unjudged)
    P, weight = _counted(estimated.probabilities(unjudged) if estimated else None, len(unjudged), objective)
    counts = _judged_counts(held_out, relevant, sampled, unjudged)
    scores, gains = np.concatenate((held_out, unjudged)), np.concatenate((relevant * counts, P))
    weights = np.concatenate((counts, np.full(len(unjudged), weight)))
    cuts, tp, accepted = _runs(scores, gains, weights, np.argsort(-scores))
    best = objective.best(tp, accepted, float(gains.sum()))
    if best < 0:
        return Cut(NEVER, 0.0)
    return Cut(float(cuts[best]), float(objective.values(tp, accepted, float(gains.sum()))[best]))


def _judged_counts(held_out: Reals, relevant: Bools, sampled: Bools, unjudged: Reals) -> Reals:
    """As how many documents each judged one counts: relevant ones as fewer, once the topic has become rarer."""
    counts: Reals = np.where(relevant, np.exp(prevalence.fall(held_out, relevant, sampled, unjudged)), 1.0)
    return counts


def _counted(P: Reals | None, unjudged: int, objective: Objective) -> tuple[Reals, float]:
    """As how relevant each unjudged document counts, and with which weight."""
    if P is None:
        return np.zeros(unjudged), UNJUDGED_WEIGHT
    return np.where(min(MIN_P, IGNORED * objective.least_probability) > P, 0.0, P), 1.0


def _quantile(ranked: Reals, q: float) -> float:
    """The q-quantile of ascending scores. numpy's takes seven times as long: it sorts again, and checks more."""
    at = q * (len(ranked) - 1)
    low = int(at)
    return float(ranked[low] + (at - low) * (ranked[min(low + 1, len(ranked) - 1)] - ranked[low]))


def _reject_below(accept: float, ranked: Reals, scale: Scale, abstain: float = ABSTAIN_SHARE) -> float:
    """The score with this share of the background, given in ascending order, between it and `accept`."""
    if len(ranked) < MIN_SAMPLE:
        return min(accept, accept - BAND_HEIGHT * (accept - scale.zero))
    below = int(np.searchsorted(ranked, accept, side="right"))
    wanted = min(below, round(abstain * len(ranked)))
    return float(ranked[below - wanted]) if wanted else accept


def all_cuts(scores: Reals, relevant: Bools, weights: Reals | None = None) -> tuple[Reals, Reals, Reals, float]:
    """Every cut, strictest first; the weight of the relevant documents that each accepts, and of all that it accepts;
    the weight of all relevant documents. Without a relevant document there is no cut."""
    weights = np.ones(len(scores)) if weights is None else weights
    total = float(weights[relevant].sum())
    if not total:
        return np.empty(0), np.empty(0), np.empty(0), 0.0
    return *_runs(scores, weights * relevant, weights, np.argsort(-scores)), total


@kernel
def _runs(scores: Reals, gains: Reals, weights: Reals, order: NDArray[np.int64]) -> tuple[Reals, Reals, Reals]:
    """Every cut, strictest first, with the sums of gains and of weights above it: a cut lies at the end of each run of
    equal scores."""
    cuts, tp, accepted = np.empty(len(order)), np.empty(len(order)), np.empty(len(order))
    lowest = scores[order[-1]]
    under = lowest - max(1e-9, scores[order[0]] - lowest)  # so that the lowest cut accepts everything
    n, hits, total = 0, 0.0, 0.0
    for i in range(len(order)):
        score = scores[order[i]]
        hits += gains[order[i]]
        total += weights[order[i]]
        below = scores[order[i + 1]] if i + 1 < len(order) else under
        if below < score or i + 1 == len(order):
            cuts[n], tp[n], accepted[n] = (score + below) / 2, hits, total
            n += 1
    return cuts[:n], tp[:n], accepted[:n]
