"""Tables for people (Markdown, so that they can stand in a README as they are), JSON, and the curve as a picture."""

import json
import platform
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from rich.box import MARKDOWN
from rich.console import Console
from rich.table import Table

from scripts.evaluation.batch import Figures, spread
from scripts.evaluation.duels import PAIRS, Duel
from scripts.evaluation.duplicates import DECIDED_WITHOUT, DecidedPairs, Detection
from scripts.evaluation.online import POINTS, OnlineRun, means
from scripts.evaluation.published import FIRST_ONLINE, BatchRow

SHOWN = (10, 100, 500)
LARGEST = 10
console = Console(width=160)
progress = Console(stderr=True)


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> None:
    shown = Table(*columns, box=MARKDOWN)
    for row in rows:
        shown.add_row(*row)
    if title:
        console.print(f"\n{title}\n", highlight=False, markup=False)
    console.print(shown)


def figure(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")


def online(results: Mapping[str, Sequence[OnlineRun]], feedback: str, title: str) -> None:
    """AP, F1 and T11SU by judgements; beside them AP (F1) of the first experiments."""
    rows = []
    for name, runs in results.items():
        first = FIRST_ONLINE.get((feedback, name), {})
        for label, at in [*((str(n), n) for n in SHOWN), ("end", None)]:
            worths = [run.end if at is None else run.curve[at] for run in runs]
            judged = f"{sum(run.judged for run in runs) / len(runs):.0f}" if at is None else label
            rows.append([name, label, judged, *map(figure, means(worths)), first.get(label, "")])
        ten = means([run.end for run in runs[:LARGEST]])
        rows.append([name, f"end, {LARGEST} largest", "", *map(figure, ten), ""])
    table(["learner", "judgements", "mean", "AP", "F1", "T11SU", "prototype"], rows, title)


def pocketing(
    without: Mapping[str, Sequence[OnlineRun]], with_: Mapping[str, Sequence[OnlineRun]], first: Mapping[str, str]
) -> None:
    rows = []
    for name in without:
        a, b = means([run.end for run in without[name]]), means([run.end for run in with_[name]])
        rows.append(
            [name, figure(a[0]), figure(b[0]), f"{b[0] - a[0]:+.3f}", figure(a[1]), figure(b[1]), first.get(name, "")]
        )
    columns = ["learner", "AP without", "AP with pocket", "gain", "F1 without", "F1 with", "prototype, AP"]
    table(columns, rows, "Pocketing: at the end of the stream")


def batch(rows: Mapping[str, tuple[BatchRow, Sequence[Figures]]], title: str, beside: bool) -> None:
    """Mean ± standard deviation over orders."""
    shown = []
    for name, (published, orders) in rows.items():
        middle, deviation = spread(orders)
        several = len(orders) > 1  # one order has no deviation to show
        ours = [figure(m) + f" ± {figure(d)}" * several for m, d in zip(middle, deviation, strict=True)]
        shown.append([name, *ours, *((published.prototype, published.paper) if beside else ())])
    columns = ["learner", "micro-F1", "macro-F1", "break-even", "SAP", *(("prototype", "paper") if beside else ())]
    table(columns, shown, title)


def duels(results: Sequence[Duel], title: str) -> None:
    """As table 4 of Lewis 96 shows them; beside them what stands there."""

    def signs(a: float, b: float, show: Callable[[float], str]) -> str:
        return f"{show(a)} {'>' if a > b else '<' if a < b else '='} {show(b)}"

    rows = []
    for (one, other, paper), found in zip(PAIRS, results, strict=True):
        doubt = "" if found.significant else " ?"
        rows.append([one, other, signs(found.wins, found.losses, str) + doubt, signs(*found.means, show=figure), paper])
    table(["learner", "against", "wins", "mean F1", "paper"], rows, title)


def duplicates(found: Sequence[Detection], alike: Sequence[DecidedPairs], name: str) -> None:
    columns = ("words left out", "planted", "found", "others that repeat")
    rows = [(f"{one.left_out:.0%}", str(one.planted), figure(one.found), figure(one.others)) for one in found]
    table(columns, rows, f"{name}, near-duplicates planted")
    pairs, apart, opposite, unknown = (sum(getattr(one, part) for one in alike) for part in DecidedPairs.__slots__)
    said = (str(pairs), figure(apart / pairs), figure((opposite + unknown) / pairs), figure(opposite / pairs))
    columns = (
        "pairs not rejected",
        "decided otherwise, each by itself",
        "together",
        "of that accepted against rejected",
    )
    table(columns, [said], f"{name}, {len(alike)} topics, {DECIDED_WITHOUT:.0%} of the words left out")


def topics(runs: Sequence[OnlineRun]) -> None:
    rows = [[r.topic, str(r.judged), figure(r.end.ap), figure(r.end.f1), *map(figure, _pr(r))] for r in runs]
    table(["topic", "judged", "AP", "F1", "precision", "recall"], rows, "Each topic, at the end")


def write_json(path: Path, setting: Mapping[str, object], results: Mapping[str, Sequence[OnlineRun]]) -> None:
    curves = {
        name: {
            "topics": len(runs),
            "judged": sum(r.judged for r in runs) / len(runs),
            "points": {str(n): means([r.curve[n] for r in runs]) for n in (0, *POINTS)},
            "end": means([r.end for r in runs]),
            "end_by_topic": {r.topic: [r.judged, r.end.ap, r.end.f1] for r in runs},
        }
        for name, runs in results.items()
    }
    machine = {"machine": platform.machine(), "python": platform.python_version()}
    path.write_text(json.dumps({**setting, **machine, "results": curves}, indent=1), encoding="utf-8")


def picture(path: Path, results: Mapping[str, Sequence[OnlineRun]], title: str) -> None:
    """Against the number of judgements, a line for each learner. A topic that had fewer keeps what it reached."""
    import matplotlib as mpl  # from the extra `bench`; tables do without

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 3, figsize=(13, 4), sharex=True, layout="constrained")
    for name, runs in results.items():
        most = max(run.judged for run in runs)
        points = [n for n in POINTS if n <= most]
        values = [means([run.curve[n] for run in runs]) for n in points]
        for k, axis in enumerate(axes):
            axis.plot(points, [v[k] for v in values], marker=".", label=name)
    for axis, label in zip(axes, ("AP", "F1", "T11SU"), strict=True):
        axis.set(xscale="log", xlabel="judgements", title=label)
        axis.grid(alpha=0.3)
    axes[0].legend()
    figure.suptitle(title)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def _pr(run: OnlineRun) -> tuple[float, float]:
    return run.end.table.precision, run.end.table.recall
