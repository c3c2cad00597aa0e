"""Tables of each command but `abstain` (see abstain_report.py), and JSON and a picture of the online runs."""

import platform
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from models.core.measures import macro
from scripts.common.report import decimals, panels, print_table, save_picture
from scripts.common.report import write_json as write
from scripts.evaluation.batch import Figures, spread
from scripts.evaluation.duels import PAIRS, Duel
from scripts.evaluation.duplicates import COMPARED_LEFT_OUT, DecidedPairs, Detection
from scripts.evaluation.effectiveness import Compared, means
from scripts.evaluation.online import POINTS, OnlineRun
from scripts.evaluation.peers import POINTS as PEER_POINTS
from scripts.evaluation.published import BatchRow, online_prototype

SHOWN = (10, 50, 100, 250, 500, 1000)  # judgements
LARGEST = 10  # topics that have a row of their own


def online(results: Mapping[str, Sequence[OnlineRun]], feedback: str, title: str) -> None:
    """AP, F1 and T11SU by the number of judgements, beside AP (F1) of the prototype."""
    rows = []
    for name, runs in results.items():
        prototype = online_prototype(feedback, name)
        for label, at in [*((str(n), n) for n in SHOWN), ("end", None)]:
            measured = [run.end if at is None else run.curve[at] for run in runs]
            judged = f"{sum(run.judged for run in runs) / len(runs):.0f}" if at is None else label
            rows.append([name, label, judged, *map(decimals, means(measured)), prototype.get(label, "")])
        largest = means([run.end for run in runs[:LARGEST]])
        rows.append([name, f"end, {LARGEST} largest", "", *map(decimals, largest), ""])
    print_table(["learner", "judgements", "mean", "AP", "F1", "T11SU", "prototype"], rows, title)


def peers(runs: Sequence[OnlineRun], learner: str) -> None:
    """The topics beside SVMs, at several numbers of judgements, each over the topics that had so many."""
    rows = []
    for point in (*PEER_POINTS, None):
        compared = [run.peers[point] for run in runs if point in run.peers]
        if compared:
            columns = [[getattr(each, name) for each in compared] for name in Compared._fields]
            figures = [decimals(macro([quality[k] for quality in column])) for column in columns for k in (0, 1)]
            rows.append(["end" if point is None else str(point), str(len(compared)), *figures])
    names = [f"{name} {part}" for name in (learner, "random", "same", "all") for part in ("AP", "F1")]
    title = "Beside an SVM on as many random labels, on the same judgements, on all labels so far; it accepts above 0"
    print_table(["judgements", "topics", *names], rows, title)


def pocketing(
    without: Mapping[str, Sequence[OnlineRun]],
    with_pocket: Mapping[str, Sequence[OnlineRun]],
    prototype: Mapping[str, str],
) -> None:
    rows = []
    for name in without:
        ap, f1, _ = means([run.end for run in without[name]])
        pocket_ap, pocket_f1, _ = means([run.end for run in with_pocket[name]])
        gain = f"{pocket_ap - ap:+.3f}"
        figures = [decimals(ap), decimals(pocket_ap), gain, decimals(f1), decimals(pocket_f1)]
        rows.append([name, *figures, prototype.get(name, "")])
    columns = ["learner", "AP without", "AP with pocket", "gain", "F1 without", "F1 with", "prototype, AP"]
    print_table(columns, rows, "Pocketing: at the end of the stream")


def topics(runs: Sequence[OnlineRun]) -> None:
    rows = []
    for run in runs:
        table = run.end.table
        figures = map(decimals, (run.end.ap, run.end.f1, table.precision, table.recall))
        rows.append([run.topic, str(run.judged), *figures])
    print_table(["topic", "judged", "AP", "F1", "precision", "recall"], rows, "Each topic, at the end")


def batch(rows: Mapping[str, tuple[BatchRow, Sequence[Figures]]], title: str, comparable: bool) -> None:
    """Means over the orders ± their standard deviation; on a comparable corpus, beside figures of others."""
    shown = []
    for name, (row, orders) in rows.items():
        mean, deviation = spread(orders)
        several = len(orders) > 1  # one order has no deviation to show
        ours = [decimals(m) + f" ± {decimals(d)}" * several for m, d in zip(mean, deviation, strict=True)]
        shown.append([name, *ours, *((row.prototype, row.paper) if comparable else ())])
    columns = ["learner", "micro-F1", "macro-F1", "break-even", "SAP", *(("prototype", "paper") if comparable else ())]
    print_table(columns, shown, title)


def duels(results: Sequence[Duel], title: str) -> None:
    """In the form of table 4 of Lewis 96, beside what it prints."""

    def compared(a: float, b: float, show: Callable[[float], str]) -> str:
        return f"{show(a)} {'>' if a > b else '<' if a < b else '='} {show(b)}"

    rows = []
    for (learner, rival, paper), duel in zip(PAIRS, results, strict=True):
        wins = compared(duel.wins, duel.losses, str) + ("" if duel.significant else " ?")
        rows.append([learner, rival, wins, compared(*duel.means, show=decimals), paper])
    print_table(["learner", "against", "wins", "mean F1", "paper"], rows, title)


def duplicates(detections: Sequence[Detection], topics: Sequence[DecidedPairs], name: str) -> None:
    rows = [(f"{d.left_out:.0%}", str(d.planted), decimals(d.found), decimals(d.others)) for d in detections]
    columns = ["words left out", "planted", "found", "others that repeat"]
    print_table(columns, rows, f"{name}, near-duplicates planted")
    pairs, different, opposite, missed = (sum(getattr(t, part) for t in topics) for part in DecidedPairs.__slots__)
    shares = [decimals(count / pairs) for count in (different, opposite + missed, opposite)]
    columns = [
        "pairs not rejected",
        "decided differently, each by itself",
        "together",
        "of these, accepted against rejected",
    ]
    title = f"{name}, {len(topics)} topics, {COMPARED_LEFT_OUT:.0%} of the words left out"
    print_table(columns, [[str(pairs), *shares]], title)


def write_json(path: Path, setting: Mapping[str, object], results: Mapping[str, Sequence[OnlineRun]]) -> None:
    curves = {
        name: {
            "topics": len(runs),
            "judged": sum(run.judged for run in runs) / len(runs),
            "points": {str(n): means([run.curve[n] for run in runs]) for n in (0, *POINTS)},
            "end": means([run.end for run in runs]),
            "peers": {
                run.topic: {str(point or "end"): compared._asdict() for point, compared in run.peers.items()}
                for run in runs
                if run.peers
            },
            "end_by_topic": {run.topic: [run.judged, run.end.ap, run.end.f1] for run in runs},
        }
        for name, runs in results.items()
    }
    machine = {"machine": platform.machine(), "python": platform.python_version()}
    write(path, {**setting, **machine, "results": curves})


def picture(path: Path, results: Mapping[str, Sequence[OnlineRun]], title: str) -> None:
    """A line for each learner by the number of judgements; a topic that had fewer keeps what it reached."""
    figure, axes = panels(3, (13, 4), sharex=True)
    for name, runs in results.items():
        longest = max(run.judged for run in runs)
        points = [n for n in POINTS if n <= longest]
        values = [means([run.curve[n] for run in runs]) for n in points]
        for k, axis in enumerate(axes):
            axis.plot(points, [v[k] for v in values], marker=".", label=name)
    for axis, label in zip(axes, ("AP", "F1", "T11SU"), strict=True):
        axis.set(xscale="log", xlabel="judgements", title=label)
        axis.grid(alpha=0.3)
    axes[0].legend()
    figure.suptitle(title)
    save_picture(figure, path)
