"""The report as pictures: how speed falls with topics, and how time grows with the log."""

from pathlib import Path
from typing import Any

COLOURS = {"sluice": "#0b6e99", "vw words": "#c2571a", "vw counts": "#e0a878", "scikit-learn": "#6b8e23"}
LABELS = {"sluice": "Sluice (raw text)", "vw words": "Vowpal Wabbit (given words)"} | {
    "vw counts": "Vowpal Wabbit (given counts)",
    "scikit-learn": "scikit-learn (raw text)",
}


def draw(report: dict[str, Any], folder: Path) -> list[Path]:
    """The pictures that this report has the figures for."""
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    if "deciding" in report:
        made.append(_topics(report, folder / "topics.svg"))
    if "judging" in report:
        made.append(_log(report, folder / "log.svg"))
    return made


def _topics(report: dict[str, Any], path: Path) -> Path:
    figure, axes = _axes("topics", "documents a second (CPU)")
    rows = report["deciding"]
    for name in COLOURS:
        points = [(row["topics"], row["docs"][name]["per_cpu_s"]) for row in rows if name in row["docs"]]
        if points:
            axes.plot(*zip(*points, strict=True), "o-", color=COLOURS[name], label=LABELS[name])
    axes.set_title(f"Raw text to decisions, one core ({report['corpus']})")
    return _saved(figure, axes, path)


def _log(report: dict[str, Any], path: Path) -> Path:
    figure, axes = _axes("judgements in the log", "milliseconds (CPU)")
    rows = report["judging"]["by_length"]
    lengths = [row["judgements"] for row in rows]
    axes.plot(lengths, [row["one_cpu_ms"] for row in rows], "o-", color=COLOURS["sluice"], label="one more judgement")
    axes.plot(
        lengths, [row["refold_cpu_ms"] for row in rows], "o-", color=COLOURS["vw words"], label="the whole log folded"
    )
    axes.set_title(f"Learning ({report['corpus']})")
    return _saved(figure, axes, path)


def _axes(x: str, y: str) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    axes.set(xlabel=x, ylabel=y, xscale="log", yscale="log")
    axes.grid(True, which="major", color="#dddddd")
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _saved(figure: Any, axes: Any, path: Path) -> Path:
    from matplotlib import rc_context
    from matplotlib.ticker import FuncFormatter

    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axes.legend(frameon=False)
    with rc_context({"svg.hashsalt": "sluice"}):  # the same figures give the same file
        figure.savefig(path, metadata={"Date": None})
    return path
