"""How much of the abstention that is allowed is spent, where recall is asked for: how many documents are undecided.

    least    max(MIN_SPENT, SPENT_SHARE − SPENT_LESS·a) of what is allowed
    most     max(least, MOST_SPENT − SPENT_LESS·a)
    spent    the smallest share, from least to most, with which the recall seems to reach the goal:
             Σ P of the documents accepted or undecided ≥ min_recall · Σ P,  P as in prevalence.py, 0 below UNLIKELY

`a` is the share of recent documents that are accepted. What is not spent is a reserve: shares are estimated from a
thousand documents, and streams change. Of a common topic the model has learned so many of these documents that more of
the next ones are undecided than planned: .01 more where .03 of the stream is accepted, .04 more where .17 is.

At first, until the precision that is asked for is promised or LEARNING_JUDGED documents that were shown have been
judged, at most LEARNING_SHARE is spent, so that people judge what is near `accept_above` and decides about the promise:
else Reuters topics take 368 judgements until then, not 147, and only .02 more of the relevant documents are not
rejected. A topic without a promise after LEARNING_JUDGED will hardly get one soon, and what it rejects is lost.

A sigmoid has long tails, and most of a stream is there: with UNLIKELY, .88 of the relevant documents of 20 Newsgroups
seem not to be rejected where .94 are, and .80 on arXiv where .87 are; without it .76 and .72. Spending MOST_SPENT
wherever recall is asked for left 7 of 16 groups of held-out 20 Newsgroups above what is allowed, and .97 of the
relevant documents were not rejected; with the least it is .95. docs/experiments.md has the tables.
"""

import numpy as np

from models.core.measures import Bools
from models.core.vectors import Reals
from models.goals import prevalence
from models.goals.evidence import JudgedWindow

SPENT_SHARE, SPENT_LESS, MIN_SPENT = 0.6, 1.3, 0.25  # of the abstention that is allowed
MOST_SPENT = 0.8  # of it, where recall seems to be below its goal
UNLIKELY = 0.02  # to be relevant
LEARNING_SHARE = 0.35  # of it, at most, until the precision asked for is promised ...
LEARNING_JUDGED = 500  # ... or so many of the documents that were shown are judged


def undecided(
    judged: JudgedWindow,
    background: Reals,
    accepted: Bools,
    abstain: float,
    min_recall: float | None = None,
    learning: bool = False,
) -> int:
    """How many documents of the background are undecided, if so great a share of them may be. `accepted` marks those
    that are accepted; `learning` says that a precision is asked for and not promised yet."""
    share = float(np.mean(accepted))
    least = max(MIN_SPENT, SPENT_SHARE - SPENT_LESS * share)
    if learning and np.count_nonzero(judged.has_origin("shown")) < LEARNING_JUDGED:
        return int(min(least, LEARNING_SHARE) * abstain * len(background))
    most = max(least, MOST_SPENT - SPENT_LESS * share)
    fewest, highest = (int(part * abstain * len(background)) for part in (least, most))
    wanted = fewest if min_recall is None else _for_recall(judged, background, accepted, min_recall)
    return min(max(wanted, fewest), highest)


def _for_recall(judged: JudgedWindow, background: Reals, accepted: Bools, min_recall: float) -> int:
    """The least number of undecided documents with which the recall seems to reach this; 0 while it is unknown."""
    sampled = judged.unique & (judged.has_origin("shown") | judged.has_origin("audit"))
    estimated = prevalence.estimate(judged.held_out, judged.relevant, sampled, background)
    if estimated is None:
        return 0
    P = estimated.probabilities(background)
    P = np.where(P < UNLIKELY, 0.0, P)
    missing = min_recall * float(P.sum()) - float(P[accepted].sum())
    found = np.cumsum(np.sort(P[~accepted])[::-1])
    return 0 if missing <= 0 else min(len(found), int(np.searchsorted(found, missing)) + 1)
