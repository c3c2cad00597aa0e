"""What is drawn, as data: the script draws it with uPlot, in the colours of the page. Beside each chart is a table.

    quality      precision, recall and F1 over windows of judgements, each with its interval, by time or by judgements
    histogram    the scores of the newest documents, with the two cuts
    tradeoff     the error that is left for each share of documents that is left undecided, with its interval
    sparkline    how much passed over time: a few bars, drawn here

An interval is what makes a figure honest, so no line is drawn without its own.
"""

import json
from collections.abc import Sequence
from datetime import datetime
from itertools import accumulate
from typing import Any

import numpy as np
from markupsafe import Markup

from service.schemas.fields import MAX_THRESHOLD
from service.schemas.metrics import Metrics, Tradeoff
from service.schemas.topics import Status

MEASURES = {"precision": "Precision", "recall": "Recall", "f1": "F1"}
BINS = 40
BARS, WIDTH, HEIGHT = 24, 120, 24


def quality(metrics: Metrics) -> dict[str, str]:
    """A chart for each measure that has a figure, by its name."""
    points = metrics.series
    x = {"time": [p.at.timestamp() for p in points], "judgements": list(accumulate(p.judgements for p in points))}
    charts = {}
    for measure in MEASURES:
        figures = [getattr(point, measure) for point in points]
        if any(figure is not None and figure.estimate is not None for figure in figures):
            lines = [[getattr(f, name) if f else None for f in figures] for name in ("estimate", "low", "high")]
            charts[measure] = _data(kind="quality", name=MEASURES[measure], x=x, y=lines)
    return charts


def histogram(scores: Sequence[float], status: Status) -> str | None:
    """How many of the documents have which score; None if there are none."""
    if not scores:
        return None
    cuts = [cut for cut in (status.reject_below, status.accept_above) if abs(cut) < MAX_THRESHOLD]
    low, high = min([*scores, *cuts]), max([*scores, *cuts])
    margin = (high - low or 1.0) * 0.02
    counts, edges = np.histogram(scores, BINS, (low - margin, high + margin))
    middles = (edges[:-1] + edges[1:]) / 2
    return _data(kind="histogram", x=middles.tolist(), y=counts.tolist(), cuts=cuts)


def tradeoff(answer: Tradeoff) -> str | None:
    """The curve; None while there is none."""
    if not answer.points:
        return None
    names = ("error", "low", "high")
    lines = [[getattr(point, name) for point in answer.points] for name in names]
    now = [answer.now.loss, answer.now.error] if answer.now else None
    return _data(kind="tradeoff", x=[point.loss for point in answer.points], y=lines, now=now)


def sparkline(times: Sequence[datetime], now: datetime) -> Markup:
    """Bars: how many of these times fall into each part of the span from the first of them until now."""
    if not times:
        return Markup("")
    first = min(times).timestamp()
    span = max(now.timestamp() - first, 1.0)
    counts = np.bincount([min(BARS - 1, int((at.timestamp() - first) / span * BARS)) for at in times], minlength=BARS)
    step, most = WIDTH / BARS, counts.max()
    bars = Markup("").join(
        Markup('<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"/>').format(
            i * step, HEIGHT - HEIGHT * n / most, step - 1, HEIGHT * n / most
        )
        for i, n in enumerate(counts.tolist())
        if n
    )
    return Markup('<svg class="spark" viewBox="0 0 {} {}" aria-hidden="true">{}</svg>').format(WIDTH, HEIGHT, bars)


def _data(**values: Any) -> str:
    return json.dumps(values, allow_nan=False)
