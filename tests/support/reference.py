"""Learners, committees and methods again, dense and slow, with nothing clever: the fast ones are compared with these.

X has a row for each document and a column for each feature; y is 1 for relevant and 0 for not. Each learner returns the
last weight vector and the average of all, the first one included.
"""

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, pairwise, product
from math import exp, log, log2, sqrt

import numpy as np

from models.core.measures import Bools
from models.core.vectors import Reals

Both = tuple[Reals, Reals]


def wh(X: Reals, y: Reals, eta: float | None, bias: float) -> Both:
    X = np.hstack([X, np.full((len(X), 1), bias)])  # the constant feature is the last column
    w = [np.zeros(X.shape[1])]
    for i, (x, t) in enumerate(zip(X, y, strict=True)):
        longest = max(z @ z for z in X[: i + 1])
        rate = (1 / (4 * longest) if longest else 0) if eta is None else eta
        rate = min(rate, 1 / (x @ x)) if x @ x else 0
        w.append(w[-1] - 2 * rate * (w[-1] @ x - t) * x)
    return w[-1], np.mean(w, axis=0)


def eg(X: Reals, y: Reals, eta: float | None, target: float, low: float, d: int, start: Reals | None = None) -> Both:
    X = np.hstack([X, np.zeros((len(X), d - X.shape[1]))])
    w = [np.full(d, 1 / d) if start is None else start]
    for i, (x, t) in enumerate(zip(X, y, strict=True)):
        R = max(z.max() - z.min() for z in X[: i + 1])  # section 4: max_j x_ij − min_j x_ij ≤ R for all i
        rate = eta if eta is not None else 2 / (3 * R**2) if R else 0
        u = w[-1] * np.exp(-2 * rate * (w[-1] @ x - (target if t else low)) * x)
        w.append(u / u.sum())
    return w[-1], np.mean(w, axis=0)


def mistake(t: float, score: float, theta: float, margin: float) -> int:
    """1 for a mistake on a relevant document, −1 on an irrelevant one, 0 if the prediction is right (Dagan, Karov &
    Roth 1997, sections 3 and 4.2): it is 1 if the score exceeds θ; where there is a range, all of it is a mistake."""
    if t:
        return 0 if score > theta + margin else 1
    return 0 if score < theta - margin or (not margin and score == theta) else -1


def perceptron(
    X: Reals, y: Reals, alpha: float, theta: float, margin: float, first: float, discard: float = np.inf
) -> Both:
    w = [np.full(X.shape[1], first)]

    def counts(n: int) -> Reals:
        return np.where(np.abs(w[-1] - first) > alpha, 1.0, 0.0) if n >= discard else np.ones(X.shape[1])

    for n, (x, t) in enumerate(zip(X, y, strict=True), 1):
        score = (w[-1] * counts(n)) @ x
        w.append(w[-1] + alpha * x * mistake(t, score, theta, margin))
    return w[-1] * counts(len(X)), np.mean(w, axis=0) * counts(len(X))


def rocchio(X: Reals, y: Reals, q: Reals, alpha: float, beta: float, gamma: float) -> Reals:
    relevant = X[y > 0].mean(axis=0) if (y > 0).any() else 0 * q
    irrelevant = X[y == 0].mean(axis=0) if (y == 0).any() else 0 * q
    return np.maximum(alpha * q + beta * relevant - gamma * irrelevant, 0)


def passive(X: Reals, y: Reals, C: float, bias: float) -> Both:
    X = np.hstack([X, np.full((len(X), 1), bias)])
    w = [np.zeros(X.shape[1])]
    for x, t in zip(X, np.where(y > 0, 1, -1), strict=True):
        loss = max(0, 1 - t * (w[-1] @ x))
        w.append(w[-1] + (min(C, loss / (x @ x)) * t * x if x @ x else 0))
    return w[-1], np.mean(w, axis=0)


def winnow(
    X: Reals, y: Reals, alpha: float, beta: float, theta: float, margin: float, plus: float, minus: float
) -> Both:
    p, m = np.full(X.shape[1], plus), np.full(X.shape[1], minus)
    w = [p - m]
    for x, t in zip(X, y, strict=True):
        mistaken = mistake(t, (p - m) @ x, theta, margin)
        if mistaken > 0:
            p, m = np.where(x > 0, alpha * p, p), np.where(x > 0, beta * m, m)
        elif mistaken < 0:
            p, m = np.where(x > 0, beta * p, p), np.where(x > 0, alpha * m, m)
        w.append(p - m)
    return w[-1], np.mean(w, axis=0)


# -- what is served, and where it is cut -------------------------------------------------------------------------------


def strongest(size: list[float], room: int, features: list[int]) -> list[bool]:
    """All that are not zero if there is room for them; otherwise the largest, of equal ones those of lower features."""
    if sum(s != 0 for s in size) <= room:
        return [True] * len(size)
    kept = sorted(range(len(size)), key=lambda i: (-size[i], features[i]))[:room]
    return [i in kept for i in range(len(size))]


# -- committees (Siersdorfer, Sizov & Weikum 2004) ---------------------------------------------------------------------


def voted_twice(
    rows: list[list[int]], weights: Sequence[float], t1: float, t2: float, low: float, high: float
) -> list[int]:
    """+1 if a vote about being above `high` is won, −1 if one about being below `low` is."""
    decided = []
    for row in rows:
        above = sum(w for w, s in zip(weights, row, strict=True) if s > high)
        below = sum(w for w, s in zip(weights, row, strict=True) if s < low)
        decided.append(int(2 * above - 1 > t1 + 1e-9) - int(1 - 2 * below < t2 - 1e-9))
    return decided


def votes_counted(cast: list[list[int]], accept_votes: int, reject_votes: int) -> list[int]:
    """So many of the members accept, or reject; one that does neither is half a vote for each."""
    decided = []
    for row in cast:
        undecided = Fraction(row.count(0), 2)
        decided.append(int(row.count(1) + undecided >= accept_votes) - int(row.count(-1) + undecided >= reject_votes))
    return decided


def meta(cast: list[list[int]], weights: list[Fraction], unanimous: bool) -> list[int]:
    """Equation (1), in fractions, so that ties are ties."""
    decided = []
    for row in cast:
        total = sum((w * r for w, r in zip(weights, row, strict=True)), Fraction(0))
        agreed = all(r == row[0] for r in row)
        decided.append(0 if total == 0 or (unanimous and not agreed) else 1 if total > 0 else -1)
    return decided


def unanimous(p: list[float], cov: float) -> tuple[float, float]:
    """Loss and error of a committee whose members form a chain, by going through every outcome."""
    all_right = all_wrong = total = 0.0
    for outcome in product((True, False), repeat=len(p)):
        chance = p[0] if outcome[0] else 1 - p[0]
        for i in range(1, len(p)):
            both = p[i - 1] * p[i] + cov
            table = {
                (True, True): both,
                (True, False): p[i - 1] - both,
                (False, True): p[i] - both,
                (False, False): 1 - p[i - 1] - p[i] + both,
            }
            before = p[i - 1] if outcome[i - 1] else 1 - p[i - 1]
            chance *= table[outcome[i - 1], outcome[i]] / before
        total += chance
        all_right += chance * all(outcome)
        all_wrong += chance * (not any(outcome))
    return total - all_right - all_wrong, all_wrong / (all_right + all_wrong)


def divergence(part: list[set[int]], whole: list[set[int]]) -> float:
    """KL of two lists of documents, each the set of its features."""
    total = 0.0
    for feature in set().union(*part):
        f, f0 = (sum(feature in document for document in documents) / len(documents) for documents in (part, whole))
        total += f * log2(f / f0)
    return total


def best_expected_f1(rows: list[tuple[float, float, float]]) -> tuple[float, list[float]]:
    """The highest 2·tp / (accepted + relevant) of all cuts, over documents (score, chance to be relevant, weight); and
    each cut, between two scores or below all, that has it."""
    relevant = sum(w * p for _, p, w in rows)
    scores = sorted({f for f, _, _ in rows}, reverse=True)
    lowest = scores[-1] - max(1e-9, scores[0] - scores[-1])
    values = []
    for f, below in zip(scores, [*scores[1:], lowest], strict=True):
        above = [(p, w) for g, p, w in rows if g >= f]
        values.append((2 * sum(w * p for p, w in above) / (sum(w for _, w in above) + relevant), (f + below) / 2))
    best = max(value for value, _ in values)
    return best, [cut for value, cut in values if value > best - 1e-9]


def loss_and_error(
    docs: list[tuple[float, float, float]], reject_below: float, accept_above: float
) -> tuple[float, float]:
    """Of documents (score to accept by, score to reject by, chance to be relevant): the share that is not decided, and
    the expected share of wrong decisions among the others."""
    wrong, decided = 0.0, 0
    for accepting, rejecting, p in docs:
        if accepting > accept_above:
            wrong, decided = wrong + 1 - p, decided + 1
        elif rejecting < reject_below:
            wrong, decided = wrong + p, decided + 1
    return 1 - decided / len(docs), wrong / decided if decided else 0.0


def pairs_of_cuts(docs: list[tuple[float, float, float]]) -> list[tuple[float, float]]:
    """Loss and error of every pair of cuts that decides anything."""
    scores = sorted({score for document in docs for score in document[:2]})
    cuts = [scores[0] - 1, *((a + b) / 2 for a, b in pairwise(scores)), scores[-1] + 1]
    every = [loss_and_error(docs, low, high) for high in cuts for low in cuts if low <= high]
    return [(loss, error) for loss, error in every if loss < 1]


def measured(name: str, numbers: Sequence[float], rows: list[tuple[float, float, float]], cut: float) -> float:
    """What accepting above the cut gives, over documents (score, chance to be relevant, weight): F_β from precision P
    and recall R, (1 + β²)PR / (β²P + R); a utility, as gains and costs of every document; or the precision."""
    tp = sum(w * p for f, p, w in rows if f > cut)
    fp = sum(w * (1 - p) for f, p, w in rows if f > cut)
    fn = sum(w * p for f, p, w in rows if f <= cut)
    if name == "utility":
        hit, false_alarm, miss = numbers
        return hit * tp - false_alarm * fp - miss * fn
    if not tp:
        return 0.0
    P, R = tp / (tp + fp), tp / (tp + fn)
    if name == "break_even":
        return P
    b2 = numbers[0] ** 2
    return (1 + b2) * P * R / (b2 * P + R)


def prevalence(
    judged: list[tuple[float, bool]], stream: list[float], half_life: float, irrelevant: float
) -> tuple[float, float]:
    """A and B from judgements, oldest first, and a stream that counts as so many irrelevant ones."""
    fading = [0.5 ** (age / half_life) for age in reversed(range(len(judged)))]
    f, relevant = [f for f, _ in judged] + stream, [y for _, y in judged] + [False] * len(stream)
    return platt(f, relevant, fading + [irrelevant / len(stream)] * len(stream))


def fall(
    judged: list[tuple[float, bool]], stream: list[float], half_life: float, irrelevant: float, deviation: float
) -> float:
    """δ of the most likelihood, by trying values in ever smaller steps, less its deviation; at most 0."""
    a, b = platt(
        [f for f, _ in judged] + stream,
        [y for _, y in judged] + [False] * len(stream),
        [1.0] * len(judged) + [irrelevant / len(stream)] * len(stream),
    )

    def loss(delta: float) -> float:
        total = (delta / deviation) ** 2 / 2
        for age, (f, y) in enumerate(reversed(judged)):
            odds = delta - (min(a, 0.0) * f + b)
            total += 0.5 ** (age / half_life) * log(1 + exp(-odds if y else odds))
        return total

    delta, step = 0.0, 1.0
    while step > 1e-7:
        best = min((delta - step, delta, delta + step), key=loss)
        delta, step = (best, step) if best != delta else (delta, step / 2)
    h = 1e-3
    curvature = (loss(delta + h) - 2 * loss(delta) + loss(delta - h)) / h**2
    return min(0.0, delta + 1 / sqrt(curvature))


def platt(f: list[float], relevant: list[bool], weights: list[float]) -> tuple[float, float]:
    """A and B of the sigmoid, by walking downhill on a grid, in ever smaller steps."""
    positive = sum(w for w, r in zip(weights, relevant, strict=True) if r)
    negative = sum(weights) - positive

    def loss(a: float, b: float) -> float:
        total = 0.0
        for x, r, w in zip(f, relevant, weights, strict=True):
            t = (positive + 1) / (positive + 2) if r else 1 / (negative + 2)
            p = 1 / (1 + exp(a * x + b))
            total -= w * (t * log(p) + (1 - t) * log(1 - p))
        return total

    a, b, step = 0.0, 0.0, 1.0
    while step > 1e-7:
        around = [(a + i * step, b + j * step) for i in (-1, 0, 1) for j in (-1, 0, 1)]
        best = min(around, key=lambda at: loss(*at))
        if loss(*best) < loss(a, b):
            a, b = best
        else:
            step /= 2
    return a, b


def since(errors: list[bool], came: list[int], delta: float) -> int:
    """Where the newest regime of errors begins; of equally strong cuts the first; what came together is not cut."""
    best, strength = 0, 0.0
    for cut in range(1, len(errors)):
        if came[cut] == came[cut - 1]:
            continue
        old, new = errors[:cut], errors[cut:]
        m = 1 / (1 / len(old) + 1 / len(new))
        rise = sum(new) / len(new) - sum(old) / len(old)
        bound = sqrt(log(len(errors) / delta) / (2 * m))
        if rise >= bound and rise * sqrt(m) > strength * (1 + 1e-12):
            best, strength = cut, rise * sqrt(m)
    return best + since(errors[best:], came[best:], delta) if best else 0


def ndcg(ranked: Sequence[int]) -> float:
    """Of the grades of the documents in the order of the ranking (Burges et al. 2005)."""

    def dcg(grades: Sequence[int]) -> float:
        return sum((2.0**grade - 1) / log2(1 + rank) for rank, grade in enumerate(grades, 1))

    return dcg(ranked) / dcg(sorted(ranked, reverse=True))


def preferred(labels: Sequence[bool | int]) -> dict[tuple[int, int], int]:
    """The pairs (i, k) of which i belongs before k, and the difference of their gains. True: relevant, without a
    grade; so it is better than what is irrelevant, and not to be compared with other relevant documents."""

    def worth(label: bool | int) -> int:
        return 1 if label is True else 2 ** int(label) - 1

    known = {}
    for i, better in enumerate(labels):
        for k, worse in enumerate(labels):
            irrelevant = worse is False or (worse == 0 and worse is not True)
            if better is True or worse is True:
                known_better = better is not False and bool(better) and irrelevant
            else:
                known_better = better > worse
            if known_better:
                known[i, k] = worth(better) - worth(worse)
    return known


def ranking_svm(psi: Reals, labels: Sequence[bool | int], C: float, start: Reals) -> Reals:
    """min ½‖w − w₀‖² + C n Σ a max(0, 1 − w·(ψ_i − ψ_k))² / Σ a, by a general minimiser."""
    from scipy.optimize import minimize

    known = preferred(labels)

    def objective(w: Reals) -> float:
        loss = sum(a * max(0.0, 1 - float(w @ (psi[i] - psi[k]))) ** 2 for (i, k), a in known.items())
        return 0.5 * float(((w - start) ** 2).sum()) + C * len(psi) * loss / sum(known.values())

    if not known:
        return start
    w: Reals = minimize(objective, start, method="BFGS", options={"gtol": 1e-9}).x
    return w


def window(words: Sequence[str], query: Sequence[str]) -> float:
    """m / ω by trying every stretch of the text."""
    there = {word for word in words if word in query}
    if len(there) < 2:
        return 0.0
    stretches = [(j - i, words[i:j]) for i in range(len(words)) for j in range(i + 1, len(words) + 1)]
    return len(there) / min(size for size, stretch in stretches if there <= set(stretch))


def one_of(rows: list[tuple[str, float | None, bool]], exactly: bool, margin: float) -> list[str]:
    """Of topics with their own decision, probability, and whether a rule decided: case by case, by definition."""
    out = [by_rule and own == "reject" for own, _, by_rule in rows]
    forced = [by_rule and own == "accept" for own, _, by_rule in rows]
    if any(forced):
        return [("accept" if sum(forced) == 1 else "abstain") if f else "reject" for f in forced]
    p = [probability for _, probability, _ in rows]

    def near(i: int, among: list[int]) -> bool:
        return all((p[j] or 0) - (p[i] or 0) <= margin for j in among)

    everyone = [i for i in range(len(rows)) if not out[i]]
    if exactly and all(p[i] is not None for i in everyone):
        close = [i for i in everyone if near(i, everyone)]
    else:
        running = [i for i in everyone if rows[i][0] != "reject"]
        if not any(rows[i][0] == "accept" for i in running):
            return [own for own, _, _ in rows]
        unknown = any(p[i] is None for i in running)
        close = running if unknown else [i for i in running if near(i, running)]
        if len(close) == 1 and rows[close[0]][0] == "abstain":
            close = running
    return [("accept" if len(close) == 1 else "abstain") if i in close else "reject" for i in range(len(rows))]


# -- methods that see all documents at once: Y has a column for each topic ---------------------------------------------


def boost(
    X: Reals, Y: Bools, S: int, C: int, N: int, variant: str, epsilon: float, known: Bools | None = None
) -> tuple[Reals, Reals, list[Reals]]:
    """Φ of every document and topic after S rounds of AdaBoost.MH, each Z_s, and D before each round and at the end.
    Pairs that are not known weigh nothing from the start."""
    y = np.where(Y, 1.0, -1.0)
    D = [np.full(Y.shape, 1 / Y.size) if known is None else known / known.sum()]
    phi, Z = np.zeros(Y.shape), []
    for s in range(1, S + 1):
        tried = []
        for k in range(X.shape[1]):
            c, W = np.zeros((2, Y.shape[1])), np.zeros((2, 2, Y.shape[1]))
            for x in (0, 1):
                for b in (0, 1):
                    W[b, x] = (D[-1] * (X[:, [k]] == x) * (y == 2 * b - 1)).sum(axis=0)
            if variant == "D":
                r = np.abs(W[1] - W[0]).sum()
                loss = sqrt(max(1 - r * r, 0))
                c = np.where(W[1] > W[0] + 1e-12, 1.0, -1.0) * 0.5 * log((1 + r + epsilon) / (1 - min(r, 1) + epsilon))
            else:
                c = 0.5 * np.log((W[1] + epsilon) / (W[0] + epsilon))
                loss = 2 * np.sqrt(W[0] * W[1]).sum()
                if variant == "RA":
                    c[0] = 0
                    loss = W[:, 0].sum() + 2 * np.sqrt(W[0, 1] * W[1, 1]).sum()
            tried.append((loss, k, np.where(X[:, [k]] == 1, c[1], c[0])))
        chosen: list[Reals] = []
        K = min(1 + C * ((s - 1) // N), len(tried))
        while len(chosen) < K:
            lowest = min(loss for loss, _, _ in tried)
            best = next(stump for stump in tried if stump[0] <= lowest + 1e-12)
            tried = [stump for stump in tried if stump[1] != best[1]]
            chosen.append(best[2])
        weak = sum(chosen, np.zeros(Y.shape)) / K
        phi = phi + weak
        after = D[-1] * np.exp(-y * weak)
        Z.append(after.sum())
        D.append(after / after.sum())
    return phi, np.array(Z), D


def chi2_max(X: Reals, Y: Bools) -> Reals:
    """Equation (9), in probabilities."""
    g = len(X)
    values = np.zeros(X.shape[1])
    for k in range(X.shape[1]):
        for i in range(Y.shape[1]):
            t, c = X[:, k] > 0, Y[:, i]
            parts = t.mean() * (1 - t.mean()) * c.mean() * (1 - c.mean())
            difference = (t & c).mean() * (~t & ~c).mean() - (t & ~c).mean() * (~t & c).mean()
            values[k] = max(values[k], g * difference**2 / parts if parts else 0)
    return values


def mutual_max(X: Reals, Y: Bools) -> Reals:
    values = np.zeros(X.shape[1])
    for k in range(X.shape[1]):
        for i in range(Y.shape[1]):
            pairs = [(X[:, k] > 0) == t for t in (True, False)], [Y[:, i] == c for c in (True, False)]
            total = 0.0
            for a, b in product(*pairs):
                if (a & b).any():
                    total += (a & b).mean() * log((a & b).mean() / (a.mean() * b.mean()))
            values[k] = max(values[k], total)
    return values


def multinomial(X: Reals, y: Reals, alpha: float, pi: float, x: Reals) -> float:
    """ln P(c|x) − ln P(c̄|x), by multiplying probabilities, one occurrence after another."""
    log_likelihoods = []
    for kind in (1, 0):
        of = X[y == kind]
        p = (alpha + of.sum(axis=0)) / (alpha * X.shape[1] + of.sum())
        prior = (pi + len(of)) / (2 * pi + len(X))
        log_likelihoods.append(log(prior) + float(sum(n * log(p[f]) for f, n in enumerate(x))))
    return log_likelihoods[0] - log_likelihoods[1]


def bernoulli(X: Reals, y: Reals, alpha: float, pi: float, x: Reals) -> float:
    log_likelihoods = []
    for kind in (1, 0):
        of = X[y == kind]
        p = (alpha + of.sum(axis=0)) / (2 * alpha + len(of))
        prior = (pi + len(of)) / (2 * pi + len(X))
        log_likelihoods.append(log(prior) + sum(log(p[f] if present else 1 - p[f]) for f, present in enumerate(x)))
    return log_likelihoods[0] - log_likelihoods[1]


def soft_margin(X: Reals, y: Reals, C: float) -> Reals:
    """α of the dual problem for soft margin classification (y = ±1): Σ α_j y_j stays 0 if α_i grows by y_i t and α_j by
    −y_j t, so the best t is taken for every pair, again and again."""
    alpha, K = np.zeros(len(y)), X @ X.T
    for _ in range(300):
        for i, j in combinations(range(len(y)), 2):
            f = K @ (alpha * y)
            curve = K[i, i] + K[j, j] - 2 * K[i, j]
            t = ((y[i] - f[i]) - (y[j] - f[j])) / curve if curve > 1e-12 else 0.0
            room = [sorted(((0 - a) / d, (C - a) / d)) for a, d in ((alpha[i], y[i]), (alpha[j], -y[j]))]
            t = min(max(t, room[0][0], room[1][0]), room[0][1], room[1][1])
            alpha[i], alpha[j] = alpha[i] + y[i] * t, alpha[j] - y[j] * t
    return alpha


def centroid(X: Reals, y: Reals, x: Reals) -> float:
    """How much nearer x is to the mean relevant document than to the mean irrelevant one, in squares, halved."""
    means = [X[y == kind].mean(axis=0) if (y == kind).any() else np.zeros(X.shape[1]) for kind in (1, 0)]
    return float(((x - means[1]) ** 2).sum() - ((x - means[0]) ** 2).sum()) / 2
