"""Abstention as tables in the form of the paper's Figures 3, 4 and 6, ours beside theirs, as JSON, and as a picture.

Siersdorfer, Sizov & Weikum 2004. Their newsgroups are the same, but not their pairs, stemming, words or Centroid; their
Figure 6 is about films, and its estimates are shown there for one pair, so ours have only our first experiment beside
them: k-split of SVM, 500 documents.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from models.online.committee import Method
from scripts.evaluation.abstain import GOALS, KS, LOSSES, ErrorCounts, PairResult, total
from scripts.evaluation.committees import METHODS
from scripts.evaluation.report import table

Results = Mapping[tuple[str, int, str], Sequence[PairResult]]  # by text, number of training documents, and classifier
OfText = Mapping[tuple[int, str], Sequence[PairResult]]
FULL = "full"  # the text that the paper and the first experiment used
SHOWN = (0.0, 0.1, 0.3, 0.5)

# Figure 3, newsgroups: error and loss of a k-split, of resampling A and of B, for k = 2, 4, 8, 16
FIGURE_3: Mapping[tuple[str, int], Mapping[Method, Sequence[tuple[float, float]]]] = {
    ("SVM", 250): {
        "split": [(0.03, 0.052), (0.018, 0.131), (0.008, 0.26), (0.003, 0.456)],
        "resample_a": [(0.036, 0.038), (0.023, 0.101), (0.013, 0.2), (0.005, 0.368)],
        "resample_b": [(0.037, 0.024), (0.024, 0.09), (0.013, 0.188), (0.005, 0.351)],
    },
    ("SVM", 500): {
        "split": [(0.024, 0.04), (0.016, 0.097), (0.008, 0.187), (0.004, 0.331)],
        "resample_a": [(0.027, 0.03), (0.019, 0.076), (0.011, 0.15), (0.006, 0.262)],
        "resample_b": [(0.029, 0.02), (0.02, 0.066), (0.013, 0.141), (0.006, 0.256)],
    },
    ("Centroid", 250): {
        "split": [(0.057, 0.05), (0.038, 0.135), (0.023, 0.314), (0.014, 0.59)],
        "resample_a": [(0.062, 0.04), (0.045, 0.111), (0.029, 0.248), (0.017, 0.49)],
        "resample_b": [(0.067, 0.02), (0.049, 0.084), (0.03, 0.206), (0.017, 0.445)],
    },
    ("Centroid", 500): {
        "split": [(0.057, 0.032), (0.041, 0.09), (0.025, 0.194), (0.014, 0.397)],
        "resample_a": [(0.059, 0.03), (0.048, 0.073), (0.031, 0.153), (0.019, 0.296)],
        "resample_b": [(0.062, 0.016), (0.048, 0.058), (0.033, 0.132), (0.019, 0.276)],
    },
}
# Figure 4, newsgroups: error of the tuned k-split, and of the single classifier, for losses .1, .3, .5, .7, .9
FIGURE_4: Mapping[tuple[str, int], tuple[Sequence[float], Sequence[float]]] = {
    ("SVM", 250): ((0.033, 0.017, 0.011, 0.007, 0.004), (0.021, 0.009, 0.005, 0.003, 0.002)),
    ("SVM", 500): ((0.024, 0.013, 0.009, 0.006, 0.005), (0.014, 0.005, 0.003, 0.002, 0.001)),
    ("Centroid", 250): ((0.059, 0.0403, 0.027, 0.017, 0.014), (0.074, 0.045, 0.018, 0.01, 0.006)),
    ("Centroid", 500): ((0.052, 0.032, 0.021, 0.016, 0.015), (0.068, 0.039, 0.015, 0.008, 0.005)),
}
# Error at loss 0, .1, .3, .5 in our first experiment, 500 documents, with subject and quotes
FIRST = {
    "SVM": ".0185 .0045 .0015 .0008",
    "Centroid": ".0240 .0065 .0021 .0009",
    "WH, 5 passes": ".0173 .0043 .0014 .0008",
}
FIRST_ESTIMATES = {2: ".015, .040", 4: ".029, .10", 8: ".080, .15"}  # of CV and of KL


def show(results: Results, about: str) -> None:
    """Every table; those of committees for each text."""
    curves(results, about)
    for text in dict.fromkeys(text for text, _, _ in results):
        mine = {(train, name): rs for (t, train, name), rs in results.items() if t == text}
        for show_one in (committees, rules, tuning, estimates):
            show_one(mine, text)


def curves(results: Results, about: str) -> None:
    rows = []
    for (text, train, name), rs in results.items():
        at = [digits(total(r.curve[loss] for r in rs).error) for loss in SHOWN]
        first = FIRST.get(name, "") if (text, train) == (FULL, 500) else ""
        paper = FIGURE_4.get((name, train)) if text == FULL else None
        theirs = " ".join(brief(e) for e in paper[1][:3]) if paper else ""
        rows.append([text, str(train), name, *at, first, theirs])
    table(
        ["text", "training", "classifier", *(f"loss {brief(loss)}" for loss in SHOWN), "prototype", "paper, .1 .3 .5"],
        rows,
        f"Error of single classifiers by the share of documents left out. {about}",
    )


def committees(results: OfText, text: str) -> None:
    rows = []
    for (train, name), rs in results.items():
        paper = FIGURE_3.get((name, train)) if text == FULL else None
        for i, k in enumerate(KS):
            cells = []
            for method in METHODS:
                theirs = " ({} @ {})".format(*map(brief, paper[method][i])) if paper else ""
                cells.append(point(total(r.committees[method, k, "unanimous"] for r in rs)) + theirs)
            rows.append([str(train), name, str(k), *cells])
    table(
        ["training", "classifier", "k", "k-split", "resampling A", "resampling B"],
        rows,
        f"Unanimous committees: error @ loss (in brackets the paper's Figure 3). Text: {text}",
    )


def rules(results: OfText, text: str) -> None:
    names = ("unanimous", "mean", "vote", "weighted")
    rows = []
    for (train, name), rs in results.items():
        for k in KS:
            cells = [point(total(r.committees["split", k, by] for r in rs)) for by in names]
            rows.append([str(train), name, str(k), *cells])
    table(
        ["training", "classifier", "k", *names],
        rows,
        f"k-split by rule: error @ loss; the mean loses what unanimity loses. Text: {text}",
    )


def tuning(results: OfText, text: str) -> None:
    rows = []
    for (train, name), rs in results.items():
        paper = FIGURE_4.get((name, train))
        for i, goal in enumerate(GOALS):
            cells = [point(total(r.tuned[goal].distance for r in rs))]
            cells += [point(total(r.tuned[goal].split[by] for r in rs)) for by in rs[0].tuned[goal].split]
            if paper and text == FULL:
                cells = [f"{cells[0]} ({brief(paper[1][i])})", f"{cells[1]} ({brief(paper[0][i])})", *cells[2:]]
            rows.append([str(train), name, brief(goal), *cells])
    by = next(iter(results.values()))[0].tuned[GOALS[0]].split
    table(
        ["training", "classifier", "loss asked", "by distance", *(f"k-split, {e}" for e in by)],
        rows,
        f"Tuned on training documents: error @ loss (in brackets the error in the paper's Figure 4). Text: {text}",
    )


def estimates(results: OfText, text: str) -> None:
    rows = []
    for (train, name), rs in results.items():
        for k in KS:
            found = [r.estimated[k] for r in rs]
            cells = []
            for field in ("loss", "error"):
                for by in found[0].by:
                    off = [getattr(one.by[by], field) - getattr(one.measured, field) for one in found]
                    cells.append(digits(float(np.mean(np.abs(off)))))
            first = FIRST_ESTIMATES.get(k, "") if (name, train) == ("SVM", 500) and text == FULL else ""
            rows.append([str(train), name, str(k), *cells, first])
    by_name = list(next(iter(results.values()))[0].estimated[KS[0]].by)
    columns = [f"{field}, {by}" for field in ("loss", "error") for by in by_name]
    table(
        ["training", "classifier", "k", *columns, "prototype, loss"],
        rows,
        f"Estimates for a k-split, unanimous (Figure 6): mean absolute error over pairs. Text: {text}",
    )


def write_json(path: Path, results: Results, about: str) -> None:
    said = [
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
    path.write_text(json.dumps({"about": about, "results": said}, indent=1), encoding="utf-8")


def picture(path: Path, results: Results, about: str) -> None:
    """A panel for each text and number of training documents: lines for single classifiers, marks for committees."""
    import matplotlib as mpl  # from the extra `bench`; tables do without

    mpl.use("Agg")
    from matplotlib import pyplot

    panels = list(dict.fromkeys((text, train) for text, train, _ in results))
    figure, axes = pyplot.subplots(
        1, len(panels), figsize=(1 + 5 * len(panels), 5), squeeze=False, sharey=True, layout="constrained"
    )
    for axis, (text, train) in zip(axes[0], panels, strict=True):
        for color, (name, rs) in enumerate(
            (n, rs) for (t, size, n), rs in results.items() if (t, size) == (text, train)
        ):
            line = [total(r.curve[loss] for r in rs).error for loss in LOSSES]
            axis.plot(LOSSES, line, color=f"C{color}", label=name)
            for marker, by in (("o", "unanimous"), ("x", "mean")):
                spots = [total(r.committees["split", k, by] for r in rs) for k in KS]
                where = [s.loss for s in spots], [s.error for s in spots]
                axis.scatter(*where, color=f"C{color}", marker=marker, label=f"{name}: k-split, {by}")
        axis.set(xlabel="loss", title=f"{train} training documents, {text} text")
        axis.set_yscale("symlog", linthresh=1e-3)
        axis.grid(alpha=0.3)
    axes[0][0].set_ylabel("error")
    axes[0][-1].legend(fontsize="small")
    figure.suptitle(about)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def point(tally: ErrorCounts) -> str:
    return f"{digits(tally.error)} @ {brief(tally.loss)}"


def digits(value: float) -> str:
    return f"{value:.4f}".removeprefix("0")


def brief(value: float) -> str:
    return f"{value:.3f}".rstrip("0").rstrip(".").removeprefix("0") or "0"


def _pair(tally: ErrorCounts) -> tuple[float, float]:
    return tally.error, tally.loss
