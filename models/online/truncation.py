"""Only the strongest weights of a vector are served: which they are, and how many.

How many matters more than which. AP (judgements a topic) of Widrow-Hoff on the last quarter of the training documents,
topics' names as queries, where nothing else was changed:

    weights           500           1,000         2,000         all
    Reuters           .816 (288)    .824 (304)    .819 (317)    .819 (327)
    20 Newsgroups     .842 (474)    .859 (507)    .867 (540)    .888 (617)
    arXiv, a quarter  .418 (311)    .428 (339)    .437 (361)    .445 (385)

All of this in a band of .02 of the stream; with 2,000 and .015 (goals/thresholds.py) fewer are judged than with 500 and
.02, for a better AP on each: .819 (271), .866 (452) and, on another quarter of arXiv, .407 (272) instead of .395 (285).
F1 is .759, .808 and .361 instead of .745, .776 and .363.

Tried instead, with 500: to keep what says most of judged documents, |w| times (Σ x²)^½, (Σ x²)^¼, √df, df^¼ or
(Σ |x|)^½. AP changes by .003 to .009 on Reuters, −.017 to .003 on 20 Newsgroups and −.003 to .003 on arXiv.

The least weight that is kept is found by counting digits, not by comparing: numbers that are not negative are ordered
as their bits are. Each model asks for it, of thousands of weights, and this takes a quarter of the time of
numpy.partition, which guesses wrong at every other comparison.
"""

import numpy as np

from models.core.kernel import kernel
from models.core.measures import Bools
from models.core.vectors import Features, Reals, Singles
from models.learners.vocabulary import Slots

# A digit has eleven bits: the first are all eight of the exponent and three of the fraction, which part weights of one
# topic well. A bit that two digits share is the same in all numbers that are left.
_DIGITS, _LAST = (20, 10, 0), 2047


@kernel
def strongest(size: Singles, room: int, ascending: Slots) -> Bools:
    """Which of the slots are kept: all, if no more than `room` have a size; otherwise the largest, and of equal ones
    those that come first in this order."""
    kept = np.ones(len(size), np.bool_)
    if np.count_nonzero(size) <= room:
        return kept
    least, spare = _nth_largest(size, room), -room
    for slot in range(len(size)):
        kept[slot] = size[slot] >= least
        spare += kept[slot]
    for slot in ascending[::-1]:
        if spare <= 0:
            break
        if slot < len(size) and size[slot] == least:
            kept[slot] = False
            spare -= 1
    return kept


@kernel
def weighing(w: Reals, features: Features, ascending: Slots) -> tuple[Features, Singles]:
    """The features of the slots that have a weight, in this order, and the weights."""
    some, weights, n = np.empty(len(ascending), np.uint64), np.empty(len(ascending), np.float32), 0
    for slot in ascending:
        if slot < len(w):
            # Written in any case, and written over by the next if it was zero: that no processor can foresee.
            some[n], weights[n] = features[slot], w[slot]
            n += w[slot] != 0
    return some[:n].copy(), weights[:n].copy()


@kernel
def _nth_largest(size: Singles, n: int) -> np.float32:
    left = size.view(np.uint32)
    for shift in _DIGITS:
        counts = np.zeros(_LAST + 1, np.int64)
        for bits in left:
            counts[(bits >> shift) & _LAST] += 1
        digit = _LAST
        while n > counts[digit]:
            n -= counts[digit]
            digit -= 1
        left = left[((left >> shift) & _LAST) == digit]
    nth: np.float32 = left.view(np.float32)[0]
    return nth
