"""The report as pictures: how speed falls with the number of topics, and how time grows with the log."""

from pathlib import Path
from typing import Any

from scripts.common.report import panels, save_picture

COLOURS = {"sluice": "#0b6e99", "vw words": "#c2571a", "vw counts": "#e0a878", "scikit-learn": "#6b8e23"}
LABELS = {
    "sluice": "Sluice (raw text)",
    "vw words": "Vowpal Wabbit (given words)",
    "vw counts": "Vowpal Wabbit (given counts)",
    "scikit-learn": "scikit-learn (raw text)",
}


def draw(report: dict[str, Any], folder: Path) -> None:
    """Draws the pictures for which the report has figures."""
    folder.mkdir(parents=True, exist_ok=True)
    if "deciding" in report:
        _draw_topics(report, folder / "topics.svg")
    if "judging" in report:
        _draw_log(report, folder / "log.svg")


def _draw_topics(report: dict[str, Any], path: Path) -> None:
    figure, axes = _axes("topics", "documents a second (CPU)")
    for name in COLOURS:
        points = [(row["topics"], row["docs"][name]["per_cpu_s"]) for row in report["deciding"] if name in row["docs"]]
        if points:
            axes.plot(*zip(*points, strict=True), "o-", color=COLOURS[name], label=LABELS[name])
    axes.set_title(f"Raw text to decisions, one core ({report['corpus']})")
    _save(figure, axes, path)


def _draw_log(report: dict[str, Any], path: Path) -> None:
    figure, axes = _axes("judgements in the log", "milliseconds (CPU)")
    rows = report["judging"]["by_length"]
    lengths = [row["judgements"] for row in rows]
    for name, color, label in (
        ("one_cpu_ms", "sluice", "one more judgement"),
        ("refold_cpu_ms", "vw words", "the whole log folded"),
    ):
        axes.plot(lengths, [row[name] for row in rows], "o-", color=COLOURS[color], label=label)
    axes.set_title(f"Learning ({report['corpus']})")
    _save(figure, axes, path)


def _axes(x: str, y: str) -> tuple[Any, Any]:
    figure, (axes,) = panels(1, (7, 4))
    axes.set(xlabel=x, ylabel=y, xscale="log", yscale="log")
    axes.grid(True, which="major", color="#dddddd")
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _save(figure: Any, axes: Any, path: Path) -> None:
    from matplotlib.ticker import FuncFormatter

    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axes.legend(frameon=False)
    save_picture(figure, path)
