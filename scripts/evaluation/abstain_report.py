"""Abstention as tables in the form of the paper's Figures 3, 4 and 6, ours beside theirs, as JSON, and as a picture.

Siersdorfer, Sizov & Weikum 2004. Their newsgroups are the same, but not their pairs, stemming, words or Centroid; their
Figure 6 is about films, and it shows estimates for one pair, so that only our prototype stands beside ours: k-split of
SVM, 500 documents.

figures/abstention.json has, for newsgroups with full text,

    figure_3             [error, loss] for k = 2, 4, 8, 16, by classifier and number of training documents, then method
    figure_4             errors for a loss of .1, .3, .5, .7, .9: of the single classifier, and of the tuned k-split
    prototype            errors at a loss of 0, .1, .3, .5 with 500 documents
    prototype_estimates  the mean errors of CV and of KL in estimating the loss, by k
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from scripts.common.report import panels, print_table, save_picture
from scripts.common.report import write_json as write
from scripts.evaluation.abstain import GOALS, KS, LOSSES, ErrorCounts, PairResult, total
from scripts.evaluation.committees import METHODS
from scripts.evaluation.published import figures

Results = Mapping[tuple[str, int, str], Sequence[PairResult]]  # by text, number of training documents, and classifier
ResultsOfText = Mapping[tuple[int, str], Sequence[PairResult]]
FULL = "full"  # the text that the paper and the prototype used
SHOWN = (0.0, 0.1, 0.3, 0.5)  # losses


def show(results: Results, about: str) -> None:
    """Every table; those of committees for each text."""
    curves(results, about)
    for text in dict.fromkeys(text for text, _, _ in results):
        of_text = {(train, name): rs for (t, train, name), rs in results.items() if t == text}
        for show_table in (committees, rules, tuning, estimates):
            show_table(of_text, text)


def curves(results: Results, about: str) -> None:
    rows = []
    for (text, train, name), rs in results.items():
        errors = [digits(total(r.curve[loss] for r in rs).error) for loss in SHOWN]
        prototype = _published("prototype", text).get(name, "") if train == 500 else ""
        paper = _published("figure_4", text).get(f"{name}, {train}")
        theirs = " ".join(brief(e) for e in paper["single"][:3]) if paper else ""
        rows.append([text, str(train), name, *errors, prototype, theirs])
    print_table(
        ["text", "training", "classifier", *(f"loss {brief(loss)}" for loss in SHOWN), "prototype", "paper, .1 .3 .5"],
        rows,
        f"Error of single classifiers by the share of documents left out. {about}",
    )


def committees(results: ResultsOfText, text: str) -> None:
    rows = []
    for (train, name), rs in results.items():
        paper = _published("figure_3", text).get(f"{name}, {train}")
        for i, k in enumerate(KS):
            cells = []
            for method in METHODS:
                theirs = " ({} @ {})".format(*map(brief, paper[method][i])) if paper else ""
                cells.append(point(total(r.committees[method, k, "unanimous"] for r in rs)) + theirs)
            rows.append([str(train), name, str(k), *cells])
    print_table(
        ["training", "classifier", "k", "k-split", "resampling A", "resampling B"],
        rows,
        f"Unanimous committees: error @ loss (in brackets the paper's Figure 3). Text: {text}",
    )


def rules(results: ResultsOfText, text: str) -> None:
    names = ("unanimous", "mean", "vote", "weighted")
    rows = []
    for (train, name), rs in results.items():
        for k in KS:
            cells = [point(total(r.committees["split", k, by] for r in rs)) for by in names]
            rows.append([str(train), name, str(k), *cells])
    print_table(
        ["training", "classifier", "k", *names],
        rows,
        f"k-split by rule: error @ loss; the mean loses what unanimity loses. Text: {text}",
    )


def tuning(results: ResultsOfText, text: str) -> None:
    rows = []
    for (train, name), rs in results.items():
        paper = _published("figure_4", text).get(f"{name}, {train}")
        for i, goal in enumerate(GOALS):
            cells = [point(total(r.tuned[goal].distance for r in rs))]
            cells += [point(total(r.tuned[goal].split[by] for r in rs)) for by in rs[0].tuned[goal].split]
            if paper:
                cells[0] += f" ({brief(paper['single'][i])})"
                cells[1] += f" ({brief(paper['split'][i])})"
            rows.append([str(train), name, brief(goal), *cells])
    estimators = next(iter(results.values()))[0].tuned[GOALS[0]].split
    print_table(
        ["training", "classifier", "loss asked", "by distance", *(f"k-split, {name}" for name in estimators)],
        rows,
        f"Tuned on training documents: error @ loss (in brackets the error in the paper's Figure 4). Text: {text}",
    )


def estimates(results: ResultsOfText, text: str) -> None:
    rows = []
    for (train, name), rs in results.items():
        prototype = _published("prototype_estimates", text) if (name, train) == ("SVM", 500) else {}
        for k in KS:
            of_pairs = [r.estimated[k] for r in rs]
            cells = []
            for field in ("loss", "error"):
                for by in of_pairs[0].by:
                    off = [getattr(e.by[by], field) - getattr(e.measured, field) for e in of_pairs]
                    cells.append(digits(float(np.mean(np.abs(off)))))
            rows.append([str(train), name, str(k), *cells, prototype.get(str(k), "")])
    estimators = next(iter(results.values()))[0].estimated[KS[0]].by
    columns = [f"{field}, {name}" for field in ("loss", "error") for name in estimators]
    print_table(
        ["training", "classifier", "k", *columns, "prototype, loss"],
        rows,
        f"Estimates for a k-split, unanimous (Figure 6): mean absolute error over pairs. Text: {text}",
    )


def write_json(path: Path, results: Results, about: str) -> None:
    rows = [
        {
            "text": text,
            "train": train,
            "classifier": name,
            "curve": {str(loss): _pair(total(r.curve[loss] for r in rs)) for loss in LOSSES},
            "committees": {
                f"{method}, k={k}, {by}": _pair(total(r.committees[method, k, by] for r in rs))
                for method, k, by in rs[0].committees
            },
        }
        for (text, train, name), rs in results.items()
    ]
    write(path, {"about": about, "results": rows})


def picture(path: Path, results: Results, about: str) -> None:
    """A panel for each text and number of training documents: lines for single classifiers, marks for committees."""
    shown = list(dict.fromkeys((text, train) for text, train, _ in results))
    figure, axes = panels(len(shown), (1 + 5 * len(shown), 5), sharey=True)
    for axis, (text, train) in zip(axes, shown, strict=True):
        of_panel = {name: rs for (t, size, name), rs in results.items() if (t, size) == (text, train)}
        for color, (name, rs) in enumerate(of_panel.items()):
            _draw(axis, name, rs, f"C{color}")
        axis.set(xlabel="loss", title=f"{train} training documents, {text} text")
        axis.set_yscale("symlog", linthresh=1e-3)
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("error")
    axes[-1].legend(fontsize="small")
    figure.suptitle(about)
    save_picture(figure, path)


def _draw(axis: Any, name: str, results: Sequence[PairResult], color: str) -> None:
    axis.plot(LOSSES, [total(r.curve[loss] for r in results).error for loss in LOSSES], color=color, label=name)
    for marker, by in (("o", "unanimous"), ("x", "mean")):
        spots = [total(r.committees["split", k, by] for r in results) for k in KS]
        where = [s.loss for s in spots], [s.error for s in spots]
        axis.scatter(*where, color=color, marker=marker, label=f"{name}: k-split, {by}")


def point(counts: ErrorCounts) -> str:
    return f"{digits(counts.error)} @ {brief(counts.loss)}"


def digits(value: float) -> str:
    return f"{value:.4f}".removeprefix("0")


def brief(value: float) -> str:
    return f"{value:.3f}".rstrip("0").rstrip(".").removeprefix("0") or "0"


def _pair(counts: ErrorCounts) -> tuple[float, float]:
    return counts.error, counts.loss


def _published(part: str, text: str) -> Mapping[str, Any]:
    """Figures to print beside ours, if they are about this text."""
    content: Mapping[str, Any] = figures("abstention")[part] if text == FULL else {}
    return content
