"""What people see of the demonstration: a table that changes while it runs, and a summary at the end."""

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from service.demo.play import RECENT_STORIES, Play, TopicScore

BARS = "▁▂▃▄▅▆▇█"
WINDOWS = 24
COLOURS = {"accept": "green", "abstain": "yellow"}
MARKS = {"accept": "✓", "abstain": "?"}


def live(play: Play) -> RenderableType:
    """The recent scores of every topic, and the newest stories."""
    table = Table(title=f"The last {RECENT_STORIES} stories", title_justify="left", box=None, padding=(0, 2, 0, 0))
    for column in ("topic", "precision", "recall", "recall over time", "unsure", "judged", "goal"):
        table.add_column(column, justify="right" if column in ("precision", "recall", "unsure", "judged") else "left")
    for score in play.recent_scores():
        recalls = play.recalls(score.topic, WINDOWS)
        curve = "".join(BARS[min(int(recall * len(BARS)), len(BARS) - 1)] for recall in recalls).ljust(WINDOWS)
        counts = (str(score.abstained), str(score.judgements))
        table.add_row(score.name, _share(score.precision), _share(score.recall), curve, *counts, _goal(score.goal))
    bar = Table.grid(padding=(0, 1))
    bar.add_row(ProgressBar(play.length, play.done, width=40), f"{play.done:,} of {play.length:,} stories")
    return Group(bar, "", table, "", *(_story(play, title, decisions) for title, decisions in play.latest))


def summary(play: Play) -> RenderableType:
    """Recall from the query alone, at its worst, and at the end, with a conclusion."""
    table = Table(title="Summary", title_justify="left", box=None, padding=(0, 2, 0, 0))
    for column in ("topic", "recall at first", "at worst", "at the end", "precision overall", "judgements"):
        table.add_column(column, justify="left" if column == "topic" else "right")
    first_scores, recent, overall = play.scores(0, RECENT_STORIES), play.recent_scores(), play.scores(0, play.done)
    for first, last, total in zip(first_scores, recent, overall, strict=True):
        worst = _share(min(play.recalls(total.topic, WINDOWS), default=None))
        shares = (_share(first.recall), worst, _share(last.recall), _share(total.precision))
        table.add_row(total.name, *shares, str(total.judgements))
    return Group(table, "", Text(_conclusion(overall, recent)))


def _conclusion(overall: list[TopicScore], recent: list[TopicScore]) -> str:
    judgements, stories = sum(score.judgements for score in overall), overall[0].stories
    decisions = stories * len(overall)
    good = sum((score.recall or 0) >= 0.9 and (score.precision or 0) >= 0.9 for score in recent)
    return (
        f"{stories:,} stories passed; readers judged {judgements:,} of {decisions:,} decisions. Each new chapter of "
        f"the news brings new words, and recall falls until readers have judged some of its stories. Over the last "
        f"{RECENT_STORIES} stories, {good} of {len(overall)} topics have precision and recall of at least 90 %."
    )


def _story(play: Play, title: str, decisions: dict[str, str]) -> Text:
    names = {topic: reader.interest.name for topic, reader in play.readers.items()}
    passed = [(topic, decision) for topic, decision in decisions.items() if decision != "reject"]
    marks = "  ".join(f"[{COLOURS[d]}]{MARKS[d]} {names[t]}[/]" for t, d in passed) or "[dim]rejected by all[/]"
    return Text.from_markup(f"  {escape(title):<46} {marks}", overflow="ellipsis")


def _share(share: float | None) -> str:
    return "–" if share is None else f"{share:.2f}"


def _goal(state: str) -> str:
    colours = {"met": "green", "at_risk": "red", "unreachable": "red"}
    return f"[{colours.get(state, 'dim')}]{state.replace('_', ' ')}[/]"
