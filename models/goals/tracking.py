"""The cut for a precision, steered by what was delivered: held-out scores say where to cut, deliveries how far to trust
them.

    level   λ₁ = goal + AIM·ε                                          ε = 1 − goal,  γ = GAIN·ε
            λ ← max(goal, λ + γ (miss − ε))     for a document that was accepted and then judged; miss is 1 or 0
            λ ← λ + FADE (λ₁ − λ)               for one that was shown, not accepted, and judged
    cut     the lowest one with  (n − m)/(n + 1) ≥ λ  and, of the e = min(n, EDGE) documents nearest above it, at most
            (1 − λ + SLACK·ε) e irrelevant;  n documents lie above the cut, m of them irrelevant
    promise the lowest of these cuts with m ≤ a(n, PROMISE_CONFIDENCE) (core/intervals.py) and no irrelevant document
            among the e is preferred, and promised

Held-out scores flatter: the lowest of many cuts that seem to hold is chosen for seeming to, and streams move on. Every
miss that is delivered raises the level that a cut has to reach, every hit lowers it a little (Gibbs & Candès, "Adaptive
conformal inference under distribution shift", 2021; for other risks Feldman, Ringel, Bates & Romano, "Achieving risk
control in online learning settings", 2022). No cut reaches a level of 1, so that nothing is accepted there, and nothing
would ever be again if λ did not fade.

What is guaranteed, whatever the stream and the scores are: of D documents delivered and judged, each before the next is
decided, and U others shown and judged, the number of misses is

    M ≤ ε D + K (1 + FADE·U),    K = (1 − AIM)/GAIN + goal < 5

because λ < 1 before a delivery, so λ < 1 + γ·goal always, and the sum of all steps is  λ_T − λ₁ ≥ γ (M − ε D) −
FADE·U·(1 + γ·goal − λ₁);  divide by γ. (A document that waits for its judgement may add a miss.)

With fewer than MIN_RELEVANT relevant documents there is no estimate, and the cut is the one that the topic would have
without a goal; if no cut reaches the level, it is the one with the highest (n − m)/(n + 1), unless even the bound
high(n − m, n) there is below the goal. Neither is promised, and both end at a level of 1: a goal is not kept by
silence, nor missed for long.

The last term is the price of not falling silent for good: where many more are judged undecided than are delivered, it
allows a precision well below the goal. (Where a cut either delivers .8 right, or a fifth of the documents all right,
.84 of what is delivered is right.) On held-out training documents 1.4 to 2 times as many of the relevant documents are
accepted as by the certified cut of promises.py. docs/experiments.md has what the constants were chosen from.
"""

import math

import numpy as np

from models.core import intervals
from models.core.intervals import Counts
from models.core.kernel import kernel
from models.core.measures import Bools
from models.core.vectors import Reals
from models.goals.evidence import BOUND_CONFIDENCE, MIN_RELEVANT, PROMISE_CONFIDENCE, JudgedWindow
from models.goals.thresholds import NEVER, all_cuts

AIM = 0.2  # of what is allowed to be wrong, kept in reserve
GAIN = 0.2
FADE = 0.02
EDGE = 20  # documents nearest above the cut
SLACK = 1.5


def tracked_cut(judged: JudgedWindow, goal: float, usual: float, shown: float = -math.inf) -> tuple[float, bool]:
    """The cut, not below `shown`, and whether the goal is promised there. `usual` is the one without a goal."""
    counted = judged.has_origin("shown") & judged.current
    scores, relevant = judged.held_out[counted], judged.relevant[counted]
    reached = level(relevant, judged.accepted[counted], goal)
    if reached >= 1:
        return NEVER, False
    if np.count_nonzero(relevant) < MIN_RELEVANT:
        return usual, False
    cuts, hits, accepted, _ = all_cuts(scores, relevant)
    allowed = intervals.allowed_misses(goal, PROMISE_CONFIDENCE, 1 << len(scores).bit_length())
    promised, served, best = _lowest(cuts, hits, accepted, allowed, reached, reached - SLACK * (1 - goal), shown)
    if promised >= 0 or served >= 0:
        return float(cuts[promised if promised >= 0 else served]), promised >= 0
    if best < 0:
        return usual, False
    high = intervals.high(int(hits[best]), int(accepted[best]), BOUND_CONFIDENCE)
    return float(cuts[best]) if high >= goal else NEVER, False


def level(relevant: Bools, accepted: Bools, goal: float) -> float:
    """λ after these judgements of shown documents, in their order; `accepted` are those that were delivered."""
    return _level(relevant, accepted, goal, GAIN, AIM, FADE)


@kernel
def _level(relevant: Bools, accepted: Bools, goal: float, gain: float, aim: float, fade: float) -> float:
    allowed = 1 - goal
    first = goal + aim * allowed
    now = first
    for i in range(len(relevant)):
        if accepted[i]:
            miss = 0.0 if relevant[i] else 1.0
            now = max(goal, now + gain * allowed * (miss - allowed))
        else:
            now += fade * (first - now)
    return now


@kernel
def _lowest(
    cuts: Reals, hits: Reals, accepted: Reals, allowed: Counts, level: float, at_edge: float, shown: float
) -> tuple[int, int, int]:
    """The places of the lowest cut that is promised, of the lowest that reaches the level, and of that with the highest
    estimate; each −1 if there is none. Where equal scores lie across the end of the edge, all of them belong to it."""
    promised, served, best, highest = -1, -1, -1, -1.0
    far = -1  # the lowest cut that leaves a whole edge above the present one
    for i in range(len(cuts)):
        if cuts[i] < shown:
            break
        while accepted[far + 1] <= accepted[i] - EDGE:
            far += 1
        n, misses = accepted[i], accepted[i] - hits[i]
        if n < MIN_RELEVANT:
            continue
        estimate = hits[i] / (n + 1)
        if estimate > highest:
            best, highest = i, estimate
        e = n - (accepted[far] if far >= 0 else 0.0)
        wrong = misses - (accepted[far] - hits[far] if far >= 0 else 0.0)
        if estimate >= level and wrong <= (1 - at_edge) * e:
            served = i
            if wrong == 0 and misses <= allowed[int(n)]:
                promised = i
    return promised, served, best
