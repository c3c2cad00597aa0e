"""Views: the values x_f that a model multiplies, from a bag's n_f, how often f occurs, and idf_f.

    presence   x_f = 1
    tf         x_f = n_f
    sqrt       x_f = √n_f
    strength   x_f = √n_f / Σ_g √n_g                                sums to one
    tfidf      x_f = u_f / √(Σ_g u_g²),   u_f = log(1 + n_f)·idf_f   of length one
    semantic   `tfidf` of the words; latent features (text/projection.py) have their counts as values

`presence`, `tf` and `sqrt` are the three strengths s(f, d) of Dagan, Karov & Roth, "Mistake-driven learning in text
categorization" (1997), section 4.3; `strength` is the normalised one of section 4.1, which PositiveWinnow needs, over
the best of the three. `tfidf` is the default: which function damps n_f hardly matters, and log(1 + n), unlike
1 + log n, is right for any n, also for n < 1, which a small title weight gives.

Tried: some fifty other forms of `tfidf`, with Widrow-Hoff on Reuters, 20 Newsgroups and arXiv (other damping, powers
and priors of idf, pivoted length, other weights of titles, numbers and rare words, bigrams, stems). In the mean over
topics none gains more than .002 AP, which chance gives the best of so many.

Rejected: INQUERY's belief, which needs the average length of a document frozen into every version beside idf.

A document without features, or with values that are all zero, keeps values of zero: nothing is divided by zero.
"""

import numpy as np

from models.core.kernel import kernel
from models.core.latent import count_words
from models.core.names import VIEWS, View
from models.core.vectors import Bag, Reals, Singles, Sparse

_PRESENCE, _TF, _SQRT, _STRENGTH, _TFIDF, _SEMANTIC = range(len(VIEWS))

_LOGS = np.log1p(np.arange(32.0))  # nearly all counts are small integers, and a logarithm is slow


def view(name: View, bag: Bag) -> Sparse:
    """The bag seen through a view."""
    if name == "semantic":
        words = count_words(bag.features)
        x = view("tfidf", Bag(bag.features[:words], bag.counts[:words], bag.idf[:words])).values
        return Sparse(bag.features, np.concatenate([x, bag.counts[words:].astype(np.float64)]))
    values = np.empty(len(bag.features))
    # Always contiguous, writable doubles, so that the kernel is compiled for one kind of array only.
    values_into(VIEWS.index(name), bag.counts.astype(np.float64), bag.idf.astype(np.float64), values)
    return Sparse(bag.features, values)


@kernel
def values_into(code: int, counts: Reals | Singles, idf: Reals | Singles, out: Reals | Singles) -> float:
    """Write the values of a document to `out`, and return their sum. Callable from other kernels, with slices.
    Through "semantic" it takes the words only."""
    if code == _SEMANTIC:
        code = _TFIDF
    total, squares = 0.0, 0.0
    for k in range(len(counts)):
        n = np.float64(counts[k])
        if code == _PRESENCE:
            x = 1.0
        elif code == _TF:
            x = n
        elif code == _TFIDF:
            x = (_LOGS[int(n)] if n < 32.0 and n == int(n) else np.log1p(n)) * idf[k]
        else:
            x = np.sqrt(n)
        out[k] = x
        total += x
        squares += x * x
    norm = total if code == _STRENGTH else np.sqrt(squares) if code == _TFIDF else 1.0
    if norm <= 0.0:
        return total
    for k in range(len(counts)):
        out[k] /= norm
    return total / norm
