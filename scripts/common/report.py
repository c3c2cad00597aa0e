"""Tables for people, JSON for programs, and pictures.

Tables are Markdown on standard output, so that they can be pasted into a page as they are; progress bars go to standard
error. Pictures need matplotlib, which comes with the extra `bench` and is imported only when one is drawn.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from rich.box import MARKDOWN
from rich.console import Console
from rich.progress import track
from rich.table import Table

T = TypeVar("T")

STDOUT = Console(width=160)
STDERR = Console(stderr=True)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]], title: str = "") -> None:
    table = Table(*columns, box=MARKDOWN)
    for row in rows:
        table.add_row(*row)
    if title:
        STDOUT.print(f"\n{title}\n", highlight=False, markup=False)
    STDOUT.print(table)


def decimals(value: float) -> str:
    """A share with three digits, as the papers print it: .805."""
    return f"{value:.3f}".removeprefix("0")


def tracked(items: Sequence[T], label: str) -> Iterable[T]:
    """The items, with a progress bar while they are worked through."""
    return track(items, label, console=STDERR, transient=True)


def write_json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=1), encoding="utf-8")


def panels(count: int, size: tuple[float, float], **shared: bool) -> tuple[Any, list[Any]]:
    """A matplotlib figure of this size in inches, and its axes side by side."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    return figure, list(figure.subplots(1, count, squeeze=False, **shared)[0])


def save_picture(figure: Any, path: Path) -> None:
    """Writes a PNG or SVG, by the suffix of its name; the same figure gives the same file."""
    from matplotlib import rc_context

    undated = {"metadata": {"Date": None}} if path.suffix == ".svg" else {}
    with rc_context({"svg.hashsalt": "sluice"}):
        figure.savefig(path, dpi=120, **undated)
