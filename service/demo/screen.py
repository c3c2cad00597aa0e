"""What the demonstration shows: a table that lives while it plays, and what is to be said in the end."""

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from service.demo.play import LATELY, Play, TopicScore

BARS = "▁▂▃▄▅▆▇█"
WINDOWS = 24
COLOURS = {"accept": "green", "abstain": "yellow"}
MARKS = {"accept": "✓", "abstain": "?"}


def live(play: Play) -> RenderableType:
    """How every topic stands now, and the newest stories."""
    table = Table(title=f"The last {LATELY} stories", title_justify="left", box=None, padding=(0, 2, 0, 0))
    for column in ("topic", "precision", "recall", "recall over time", "unsure", "judged", "goal"):
        table.add_column(column, justify="right" if column in ("precision", "recall", "unsure", "judged") else "left")
    for one in play.lately():
        curve = "".join(BARS[min(int(share * len(BARS)), len(BARS) - 1)] for share in play.recalls(one.topic, WINDOWS))
        shares = (_share(one.precision), _share(one.recall))
        table.add_row(one.name, *shares, curve.ljust(WINDOWS), str(one.abstained), str(one.judgements), _goal(one.goal))
    bar = Table.grid(padding=(0, 1))
    bar.add_row(ProgressBar(play.length, play.done, width=40), f"{play.done:,} of {play.length:,} stories")
    return Group(bar, "", table, "", *(_heard(play, title, decided) for title, decided in play.heard))


def summary(play: Play) -> RenderableType:
    """From a query alone, when the words had changed, and in the end."""
    table = Table(title="What came of it", title_justify="left", box=None, padding=(0, 2, 0, 0))
    for column in ("topic", "recall, at first", "at worst", "in the end", "precision, all the time", "judgements"):
        table.add_column(column, justify="left" if column == "topic" else "right")
    ends = play.standings(0, LATELY), play.standings(play.done - LATELY, play.done), play.standings(0, play.done)
    for first, last, ever in zip(*ends, strict=True):
        worst = _share(min(play.recalls(ever.topic, WINDOWS), default=None))
        shares = (_share(first.recall), worst, _share(last.recall), _share(ever.precision))
        table.add_row(ever.name, *shares, str(ever.judgements))
    return Group(table, "", Text(_words(ends[2], ends[1])))


def _words(ever: list[TopicScore], last: list[TopicScore]) -> str:
    judged, stories = sum(one.judgements for one in ever), ever[0].stories
    asked = stories * len(ever)
    good = sum((one.recall or 0) >= 0.9 and (one.precision or 0) >= 0.9 for one in last)
    return (
        f"{stories:,} stories passed; readers judged {judged:,} of {asked:,} decisions. With each new chapter of the "
        f"news words change, and recall falls until readers have judged some of it. Over the last {LATELY} stories, "
        f"{good} of {len(ever)} topics have precision and recall of at least 90 %."
    )


def _heard(play: Play, title: str, decided: dict[str, str]) -> Text:
    names = {topic: reader.interest.name for topic, reader in play.readers.items()}
    marks = [(topic, decision) for topic, decision in decided.items() if decision != "reject"]
    said = "  ".join(f"[{COLOURS[d]}]{MARKS[d]} {names[t]}[/]" for t, d in marks) or "[dim]nobody's[/]"
    return Text.from_markup(f"  {escape(title):<46} {said}", overflow="ellipsis")


def _share(share: float | None) -> str:
    return "–" if share is None else f"{share:.2f}"


def _goal(state: str) -> str:
    colours = {"met": "green", "at_risk": "red", "unreachable": "red"}
    return f"[{colours.get(state, 'dim')}]{state.replace('_', ' ')}[/]"
