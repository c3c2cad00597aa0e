"""What the figures should be, and whether they are."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

Report = dict[str, Any]


class Requirement(NamedTuple):
    """What is measured, where its figure is in the report, and what it should be."""

    what: str
    figure: Callable[[Report], float]
    at_least: float = -np.inf
    at_most: float = np.inf
    unit: str = ""

    @property
    def wanted(self) -> str:
        sign, bound = ("≥", self.at_least) if self.at_least > -np.inf else ("≤", self.at_most)
        return f"{sign} {number(bound)}{self.unit}"


def _topics(report: Report, n: int) -> Report:
    row: Report = next(row for row in report["deciding"] if row["topics"] == n)
    return row


def _faster(n: int, peer: str) -> Callable[[Report], float]:
    return lambda report: float(_topics(report, n)["times_faster"][peer]["cpu"])


def _docs(n: int) -> Callable[[Report], float]:
    return lambda report: float(_topics(report, n)["docs"]["sluice"]["per_cpu_s"])


def _after(judgements: int) -> Callable[[Report], float]:
    def one_more(report: Report) -> float:
        rows = report["judging"]["by_length"]
        return next(float(row["one_cpu_ms"]) for row in rows if row["judgements"] == judgements)

    return one_more


def _beside(quantile: str) -> Callable[[Report], float]:
    return lambda report: max(float(row[quantile]) for row in report["waiting"]["beside"].values())


def _long_log(report: Report, judgements: int) -> Report:
    row: Report = next(row for row in [report["waiting"]["long_log"]] if row["judgements"] == judgements)
    return row


def _boosted(corpus: str, contender: str, figure: str) -> Callable[[Report], float]:
    def at_the_default(report: Report) -> float:
        row = next(row for row in report["boosting"] if row["rho"] == 0.9 and report["corpus"].startswith(corpus))
        return float(row["by"][contender][figure])

    return at_the_default


# In CPU time, where that is measured: on a quiet machine it is wall-clock time, and on a busy one it stays the same.
REQUIREMENTS = (
    Requirement("90 topics: times Vowpal Wabbit, given words", _faster(90, "vw words"), at_least=6),
    Requirement("90 topics: times Vowpal Wabbit, given counts", _faster(90, "vw counts"), at_least=6),
    Requirement("90 topics: times scikit-learn", _faster(90, "scikit-learn"), at_least=15),
    Requirement("1,000 topics: times Vowpal Wabbit, given words", _faster(1000, "vw words"), at_least=20),
    Requirement("1,000 topics: times Vowpal Wabbit, given counts", _faster(1000, "vw counts"), at_least=20),
    Requirement("1,000 topics: documents", _docs(1000), at_least=25_000, unit="/s"),
    Requirement("10,000 topics: documents", _docs(10_000), at_least=8_000, unit="/s"),
    Requirement("100,000 topics: documents", _docs(100_000), at_least=800, unit="/s"),
    Requirement(
        "10,000 topics: one document, p99",
        lambda r: _topics(r, 10_000)["one_document"]["p99_ms"],
        at_most=1,
        unit=" ms",
    ),
    Requirement("90 topics: bytes a weight", lambda r: _topics(r, 90)["bytes_per_weight"], at_most=10),
    Requirement("1,000 topics: bytes a weight", lambda r: _topics(r, 1000)["bytes_per_weight"], at_most=10),
    Requirement("10,000 topics: bytes a weight", lambda r: _topics(r, 10_000)["bytes_per_weight"], at_most=10),
    Requirement("100,000 topics: bytes a weight", lambda r: _topics(r, 100_000)["bytes_per_weight"], at_most=10),
    Requirement(
        "100,000 topics: memory of the process", lambda r: _topics(r, 100_000)["peak_mb"], at_most=1500, unit=" MB"
    ),
    Requirement("a judgement, mean", lambda r: r["judging"]["one"]["sluice"]["mean_cpu_ms"], at_most=1, unit=" ms"),
    Requirement("a judgement after 1,000 others", _after(1000), at_most=1, unit=" ms"),
    Requirement("a judgement: times River", lambda r: r["judging"]["times_faster"]["river"]["cpu"], at_least=10),
    Requirement("ModApte, boosting: one core", _boosted("reuters", "one core", "cpu_s"), at_most=3, unit=" s"),
    Requirement("ModApte, boosting: memory", _boosted("reuters", "one core", "peak_mb"), at_most=1000, unit=" MB"),
    Requirement("arXiv, boosting: one core", _boosted("arxiv", "one core", "cpu_s"), at_most=300, unit=" s"),
    Requirement("arXiv, boosting: memory", _boosted("arxiv", "one core", "peak_mb"), at_most=4000, unit=" MB"),
    Requirement(
        "ModApte, boosting: times faster by two", _boosted("reuters", "two processes", "times_faster"), at_least=1
    ),
    Requirement("arXiv, boosting: times faster by two", _boosted("arxiv", "two processes", "times_faster"), at_least=1),
    Requirement(
        "lines through HTTP, 90 topics", lambda r: r["flowing"]["scored"]["per_cpu_s"], at_least=30_000, unit="/s"
    ),
    Requirement("… stored and let through", lambda r: r["flowing"]["stored"]["per_cpu_s"], at_least=5_000, unit="/s"),
    Requirement(
        "memory over a million lines, growth",
        lambda r: max(way["growth_mb"] for way in r["flowing"]["memory"].values()),
        at_most=10,
        unit=" MB",
    ),
    Requirement("two consumers, times one", lambda r: r["flowing"]["two_over_one"], at_least=1.7),
    Requirement("10,000 topics from the store", lambda r: r["starting"]["load_s"], at_most=5, unit=" s"),
    Requirement("503 from a frozen store, longest", lambda r: r["waiting"]["frozen"]["max_s"], at_most=2, unit=" s"),
    Requirement("a small request beside a large one, p99", _beside("p99_ms"), at_most=50, unit=" ms"),
    Requirement(
        "a judgement served by all processes, p99", lambda r: r["waiting"]["served"]["p99_ms"], at_most=250, unit=" ms"
    ),
    Requirement(
        "a correction among 5,000 judgements",
        lambda r: _long_log(r, 5000)["correction_ms"],
        at_most=1000,
        unit=" ms",
    ),
)


def reached(report: Report) -> Iterable[tuple[Requirement, float, bool]]:
    """Each requirement whose figure is in the report, the figure, and whether it is what it should be."""
    for requirement in REQUIREMENTS:
        try:
            figure = requirement.figure(report)
        except (KeyError, StopIteration):
            continue  # not measured
        yield requirement, figure, bool(requirement.at_least <= figure <= requirement.at_most)


def number(value: float) -> str:
    """Three digits, or all of a large number."""
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"
