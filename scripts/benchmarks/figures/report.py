"""The figures as tables on standard error, and what the machine was."""

import platform
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numba
import numpy as np
from rich.table import Table

from scripts.benchmarks.figures.requirements import Report, number, reached
from scripts.common.report import STDERR


def machine() -> Report:
    """The machine on which this runs."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line.partition(":")[2].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        model = f"{names[0]}, {len(names)} cores" if names else model
    return {
        "processor": model,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
    }


def show(report: Report) -> None:
    """Prints a table, or several, for each section that the report has."""
    title = ", ".join(f"{name} {value}" for name, value in report["machine"].items())
    STDERR.print(f"[bold]{report['corpus']}[/bold]; {title}")
    for section, tables in SECTIONS.items():
        if section in report:
            STDERR.print(*tables(report[section]))
    if any(reached(report)):
        STDERR.print(_requirements(report))


def _deciding(rows: list[Report]) -> list[Table]:
    table = _table("Raw text to decisions, one core", *(f"{row['topics']:,} topics" for row in rows))
    for name in rows[0]["docs"]:
        for clock in ("per_s", "per_cpu_s"):
            label = f"{name}, documents/{clock[4:].replace('_', ' ')}"
            table.add_row(label, *(_cell(row["docs"].get(name, {}), clock) for row in rows))
        if name != "sluice":
            table.add_row(f"times {name} (CPU)", *(_cell(row["times_faster"].get(name, {}), "cpu") for row in rows))
    for group in ("one_document", "put"):
        for quantile in ("p50_ms", "p99_ms", "p99_cpu_ms"):
            label = f"{group.replace('_', ' ')}, {quantile.replace('_', ' ')}"
            table.add_row(label, *(_cell(row[group], quantile) for row in rows))
    _add_rows(table, ("hits_per_document", "bytes_per_weight", "dense_mb", "peak_mb", "load_s", "merge_s"), rows)
    return [table]


def _judging(section: Report) -> list[Table]:
    by_name, rows = section["one"], section["by_length"]
    title = f"One judgement: update, pocket, thresholds on {section['background']:,} unjudged documents"
    table = _table(title, *by_name)
    _add_rows(table, ("p50_ms", "p99_ms", "p50_cpu_ms", "p99_cpu_ms", "mean_cpu_ms"), by_name.values())
    table.add_row("times slower (CPU)", *(_cell(section["times_faster"][name], "cpu") for name in by_name))
    lengths = _table("As the log grows", *(f"{row['judgements']:,} judgements" for row in rows))
    _add_rows(lengths, ("one_ms", "one_cpu_ms", "refold_ms", "refold_cpu_ms"), rows)
    return [table, lengths]


def _boosting(rows: list[Report]) -> list[Table]:
    tables = []
    for row in rows:
        title = (
            f"{row['rounds']} rounds of boosting, {row['documents']:,} documents, {row['terms']:,} terms "
            f"(ρ = {row['rho']}), {row['topics']} topics; the same result: {row['same']}"
        )
        table = _table(title, *row["by"])
        _add_rows(table, next(iter(row["by"].values())), row["by"].values())
        tables.append(table)
    return tables


def _starting(section: Report) -> list[Table]:
    return [_plain("Cold start", section.items())]


def _enduring(section: Report) -> list[Table]:
    table = _table("Durability, a second", "appendfsync always", "everysec", "times")
    for what, rates in section.items():
        table.add_row(what, *map(number, rates.values()))
    return [table]


def _waiting(section: Report) -> list[Table]:
    beside = _table("Small requests while batches of 1,000 documents are decided, ms", *section["beside"])
    _add_rows(beside, ("requests", "p50_ms", "p99_ms", "max_ms", "batch_ms"), section["beside"].values())
    rows = [(f"{part}, {n}", v) for part in ("frozen", "served", "long_log") for n, v in section[part].items()]
    return [beside, _plain("Waiting", [*rows, ("rules_ms", section["rules_ms"])])]


def _retraining(rows: list[Report]) -> list[Table]:
    title = f"{rows[0]['topics']} topics retrained while documents are decided and judged; served → candidate"
    table = _table(title, "s", "SAP", "F1", "surely better", "classify p99 ms", "feedback p99 ms")
    for row in rows:
        moves = (f"{row[f'{name}_served']:.3f} → {row[f'{name}_candidate']:.3f}" for name in ("sap", "f1"))
        waits = (_cell(row, f"{what}_p99_ms") for what in ("classify", "feedback"))
        table.add_row(row["method"], _cell(row, "seconds"), *moves, _cell(row, "surely_better"), *waits)
    return [table]


def _flowing(section: Report) -> list[Table]:
    table = _table("The whole way, documents", "a second", "a CPU second", "µs of the store, each")
    for what in ("ceiling", "scored", "stored", "feedback", "consumers_1", "consumers_2", "one_core"):
        row = (_cell(section[what], name) for name in ("per_s", "per_cpu_s", "store_us"))
        table.add_row(what.replace("_", " "), *row)
    shares = (section["scored"][clock] / section["ceiling"][clock] for clock in ("per_s", "per_cpu_s"))
    table.add_row("scored, of the ceiling", *map(number, shares))
    table.add_row("two consumers, times one", number(section["two_over_one"]))
    table.add_row("… times one on one core", number(section["two_cores_over_one"]))
    return [table, _memory(section["memory"])]


def _memory(section: Report) -> Table:
    lines = section["plain"]["lines"]
    headings = (f"{lines // 10:,} lines", f"{lines:,}", "growth", "lines a second")
    table = _table("Memory over one request, peak MB", *headings)
    for mode, row in section.items():
        table.add_row(mode, *(_cell(row, name) for name in ("tenth_mb", "all_mb", "growth_mb", "per_s")))
    return table


def _requirements(report: Report) -> Table:
    title = "To be reached (by CPU time, but for p99, the cold start, waiting and consumers)"
    table = _table(title, "measured", "wanted", "")
    for requirement, figure, met in reached(report):
        measured = f"{number(figure)}{requirement.unit}"
        table.add_row(requirement.what, measured, requirement.wanted, "yes" if met else "[red]no[/red]")
    return table


SECTIONS: Mapping[str, Callable[[Any], list[Table]]] = {
    "deciding": _deciding,
    "judging": _judging,
    "boosting": _boosting,
    "starting": _starting,
    "enduring": _enduring,
    "waiting": _waiting,
    "retraining": _retraining,
    "flowing": _flowing,
}


def _table(title: str, *headings: str) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column("")
    for heading in headings:
        table.add_column(heading, justify="right")
    return table


def _plain(title: str, rows: Iterable[tuple[str, float]]) -> Table:
    table = _table(title, "")
    for name, value in rows:
        table.add_row(name.replace("_", " "), number(value))
    return table


def _add_rows(table: Table, names: Iterable[str], columns: Iterable[Report]) -> None:
    """Adds a row for each name, with its figure from each of these reports."""
    reports = list(columns)
    for name in names:
        table.add_row(name.replace("_", " "), *(_cell(report, name) for report in reports))


def _cell(row: Report, name: str) -> str:
    return number(row[name]) if name in row else ""
