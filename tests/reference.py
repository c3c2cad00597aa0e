"""The learners again: dense, slow, nothing clever. What the fast ones are compared with.

X has a row for each document and a column for each feature; y is 1 for relevant and 0 for not. Each answers the last
weight vector and the average of all, the first one included.
"""

import numpy as np

from models.vectors import Reals

Both = tuple[Reals, Reals]


def wh(X: Reals, y: Reals, eta: float | None, bias: float) -> Both:
    X = np.hstack([X, np.full((len(X), 1), bias)])  # the constant feature is the last column
    w = [np.zeros(X.shape[1])]
    for i, (x, t) in enumerate(zip(X, y, strict=True)):
        rate = eta if eta is not None else 1 / (4 * max((z @ z for z in X[: i + 1]), default=1))
        rate = min(rate, 1 / (x @ x)) if x @ x else 0
        w.append(w[-1] - 2 * rate * (w[-1] @ x - t) * x)
    return w[-1], np.mean(w, axis=0)


def eg(X: Reals, y: Reals, eta: float | None, target: float, low: float, d: int, start: Reals | None = None) -> Both:
    X = np.hstack([X, np.zeros((len(X), d - X.shape[1]))])
    w = [np.full(d, 1 / d) if start is None else start]
    for i, (x, t) in enumerate(zip(X, y, strict=True)):
        rate = eta if eta is not None else 2 / (3 * max(0.1, np.abs(X[: i + 1]).max()) ** 2)
        u = w[-1] * np.exp(-2 * rate * (w[-1] @ x - (target if t else low)) * x)
        w.append(u / u.sum())
    return w[-1], np.mean(w, axis=0)


def perceptron(X: Reals, y: Reals, alpha: float, theta: float, margin: float, first: float) -> Both:
    w = [np.full(X.shape[1], first)]
    for x, t in zip(X, y, strict=True):
        promote, demote = t and w[-1] @ x <= theta + margin, not t and w[-1] @ x >= theta - margin
        w.append(w[-1] + alpha * x * (1 if promote else -1 if demote else 0))
    return w[-1], np.mean(w, axis=0)


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
        score = (p - m) @ x
        if t and score <= theta + margin:
            p, m = np.where(x > 0, alpha * p, p), np.where(x > 0, beta * m, m)
        elif not t and score >= theta - margin:
            p, m = np.where(x > 0, beta * p, p), np.where(x > 0, alpha * m, m)
        w.append(p - m)
    return w[-1], np.mean(w, axis=0)
