"""What was measured, as JSON and as tables, and whether it is what was to be reached."""

import platform
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
from rich.console import Console
from rich.table import Table

Report = dict[str, Any]


class Requirement(NamedTuple):
    """A figure, where in the report it stands, and what it should be."""

    what: str
    figure: Callable[[Report], float]
    at_least: float = -np.inf
    at_most: float = np.inf
    unit: str = ""

    @property
    def wanted(self) -> str:
        least = self.at_least > -np.inf
        return f"{'≥' if least else '≤'} {_number(self.at_least if least else self.at_most)}{self.unit}"


def _topics(report: Report, n: int) -> Report:
    found: Report = next(row for row in report["deciding"] if row["topics"] == n)
    return found


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
    found: Report = next(row for row in [report["waiting"]["long_log"]] if row["judgements"] == judgements)
    return found


def _boosted(corpus: str, contender: str, figure: str) -> Callable[[Report], float]:
    def at_the_default(report: Report) -> float:
        row = next(row for row in report["boosting"] if row["rho"] == 0.9 and report["corpus"].startswith(corpus))
        return float(row["by"][contender][figure])

    return at_the_default


# By the processes' own time, which on a quiet machine is that of the clock, and on a busy one is still theirs.
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


def machine() -> Report:
    """Where this was measured."""
    model = platform.processor() or platform.machine()
    described = Path("/proc/cpuinfo")
    if described.exists():
        names = [line.partition(":")[2].strip() for line in described.read_text().splitlines() if "model name" in line]
        model = f"{names[0]}, {len(names)} cores" if names else model
    return {
        "processor": model,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
    }


def show(report: Report) -> None:
    console = Console(stderr=True)
    title = ", ".join(f"{name} {value}" for name, value in report["machine"].items())
    console.print(f"[bold]{report['corpus']}[/bold]; {title}")
    if "deciding" in report:
        console.print(_deciding(report["deciding"]))
    if "judging" in report:
        console.print(_judging(report["judging"]), _lengths(report["judging"]["by_length"]))
    if "boosting" in report:
        console.print(*map(_boosting, report["boosting"]))
    if "starting" in report:
        console.print(_plain("Cold start", report["starting"].items()))
    if "enduring" in report:
        console.print(_enduring(report["enduring"]))
    if "waiting" in report:
        console.print(_beside_table(report["waiting"]), _plain("Waiting", _waits(report["waiting"])))
    if "retraining" in report:
        console.print(_retraining(report["retraining"]))
    if "flowing" in report:
        console.print(_flowing(report["flowing"]), _lasting(report["flowing"]["memory"]))
    if any(reached(report)):
        console.print(_goals(report))


def reached(report: Report) -> Iterable[tuple[Requirement, float, bool]]:
    """Each goal of which the report has the figure, the figure, and whether it was reached."""
    for goal in REQUIREMENTS:
        try:
            figure = goal.figure(report)
        except (KeyError, StopIteration):
            continue  # was not measured
        yield goal, figure, bool(goal.at_least <= figure <= goal.at_most)


def _deciding(rows: list[Report]) -> Table:
    table = _table("Raw text to decisions, one core", *(f"{row['topics']:,} topics" for row in rows))
    for name in rows[0]["docs"]:
        for clock in ("per_s", "per_cpu_s"):
            said = f"{name}, documents/{clock[4:].replace('_', ' ')}"
            table.add_row(said, *(_found(row["docs"].get(name, {}), clock) for row in rows))
        if name != "sluice":
            table.add_row(f"times {name} (CPU)", *(_found(row["times_faster"].get(name, {}), "cpu") for row in rows))
    for group in ("one_document", "put"):
        for quantile in ("p50_ms", "p99_ms", "p99_cpu_ms"):
            said = f"{group.replace('_', ' ')}, {quantile.replace('_', ' ')}"
            table.add_row(said, *(_found(row[group], quantile) for row in rows))
    for name in ("hits_per_document", "bytes_per_weight", "dense_mb", "peak_mb", "load_s", "merge_s"):
        table.add_row(name.replace("_", " "), *(_found(row, name) for row in rows))
    return table


def _judging(section: Report) -> Table:
    title = f"One judgement: update, pocket, thresholds on {section['background']:,} unjudged documents"
    table = _table(title, *section["one"])
    for name in ("p50_ms", "p99_ms", "p50_cpu_ms", "p99_cpu_ms", "mean_cpu_ms"):
        table.add_row(name.replace("_", " "), *(_found(one, name) for one in section["one"].values()))
    faster = [_found(section["times_faster"][name], "cpu") for name in section["one"]]
    table.add_row("times slower (CPU)", *faster)
    return table


def _lengths(rows: list[Report]) -> Table:
    table = _table("As the log grows", *(f"{row['judgements']:,} judgements" for row in rows))
    for name in ("one_ms", "one_cpu_ms", "refold_ms", "refold_cpu_ms"):
        table.add_row(name.replace("_", " "), *(_found(row, name) for row in rows))
    return table


def _boosting(row: Report) -> Table:
    title = (
        f"{row['rounds']} rounds of boosting, {row['documents']:,} documents, {row['terms']:,} terms (ρ = {row['rho']})"
    )
    table = _table(f"{title}, {row['topics']} topics; the same result: {row['same']}", *row["by"])
    for name in next(iter(row["by"].values())):
        table.add_row(name.replace("_", " "), *(_number(by[name]) for by in row["by"].values()))
    return table


def _enduring(section: Report) -> Table:
    table = _table("Durability, a second", "appendfsync always", "everysec", "times")
    for what, rates in section.items():
        table.add_row(what, *map(_number, rates.values()))
    return table


def _flowing(section: Report) -> Table:
    table = _table("The whole way, documents", "a second", "a CPU second", "µs of the store, each")
    for what in ("ceiling", "scored", "stored", "feedback", "consumers_1", "consumers_2", "one_core"):
        row = (_found(section[what], name) for name in ("per_s", "per_cpu_s", "store_us"))
        table.add_row(what.replace("_", " "), *row)
    shares = (section["scored"][clock] / section["ceiling"][clock] for clock in ("per_s", "per_cpu_s"))
    table.add_row("scored, of the ceiling", *map(_number, shares))
    table.add_row("two consumers, times one", _number(section["two_over_one"]))
    table.add_row("… times one on one core", _number(section["two_cores_over_one"]))
    return table


def _lasting(section: Report) -> Table:
    lines = section["plain"]["lines"]
    table = _table(
        "Memory over one request, peak MB", f"{lines // 10:,} lines", f"{lines:,}", "growth", "lines a second"
    )
    for way, row in section.items():
        table.add_row(way, *(_found(row, name) for name in ("tenth_mb", "all_mb", "growth_mb", "per_s")))
    return table


def _beside_table(section: Report) -> Table:
    table = _table("Small requests while batches of 1,000 documents are decided, ms", *section["beside"])
    for name in ("requests", "p50_ms", "p99_ms", "max_ms", "batch_ms"):
        table.add_row(name.replace("_", " "), *(_found(row, name) for row in section["beside"].values()))
    return table


def _retraining(section: list[Report]) -> Table:
    title = f"{section[0]['topics']} topics retrained while documents are decided and judged; served → candidate"
    table = _table(title, "s", "SAP", "F1", "surely better", "classify p99 ms", "feedback p99 ms")
    for row in section:
        moves = (f"{row[f'{name}_served']:.3f} → {row[f'{name}_candidate']:.3f}" for name in ("sap", "f1"))
        waits = (_found(row, f"{what}_p99_ms") for what in ("classify", "feedback"))
        table.add_row(row["method"], _found(row, "seconds"), *moves, _found(row, "surely_better"), *waits)
    return table


def _waits(section: Report) -> Iterable[tuple[str, float]]:
    for part in ("frozen", "served", "long_log"):
        for name, value in section[part].items():
            yield f"{part}, {name}", value
    yield "rules_ms", section["rules_ms"]


def _goals(report: Report) -> Table:
    table = _table(
        "To be reached (by CPU time, but for p99, the cold start, waiting and consumers)", "measured", "wanted", ""
    )
    for goal, figure, good in reached(report):
        table.add_row(goal.what, f"{_number(figure)}{goal.unit}", goal.wanted, "yes" if good else "[red]no[/red]")
    return table


def _plain(title: str, rows: Iterable[tuple[str, float]]) -> Table:
    table = _table(title, "")
    for name, value in rows:
        table.add_row(name.replace("_", " "), _number(value))
    return table


def _table(title: str, *headings: str) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column("")
    for heading in headings:
        table.add_column(heading, justify="right")
    return table


def _found(row: Report, name: str) -> str:
    return _number(row[name]) if name in row else ""


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"
