"""Options of the command lines: those that several commands share, and commands that take theirs as one dataclass."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, ParamSpec, TypeVar

import typer

from scripts.common.corpus import Corpus, parse_groups

P = ParamSpec("P")
T = TypeVar("T")

CorpusPath = Annotated[
    Path, typer.Argument(help="A corpus: JSON lines, gzipped or not. scripts/common/corpus.py describes the fields.")
]
TopicPatterns = Annotated[
    str, typer.Option(help="Patterns of topics, separated by commas; !PATTERN leaves topics out.")
]
Groups = Annotated[
    str,
    typer.Option(
        help="Groups of topics in their place, such as comp=comp.*,rest=alt.*|soc.*; a topic is in the first that fits."
    ),
]
MaxTopics = Annotated[int, typer.Option(help="The number of topics, at most; the largest are taken.")]
Queries = Annotated[
    Path | None, typer.Option(help="A JSON object of queries by topic. By default, a topic's name is its query.")
]
Holdout = Annotated[
    bool, typer.Option(help="Measure on the last quarter of the training documents, not on test documents.")
]
Seeds = Annotated[int, typer.Option(min=0, help="Relevant documents that a topic is given at the start.")]
EarlySeeds = Annotated[
    bool,
    typer.Option(help="Give them before the first document of the stream comes; else the topic begins after them."),
]
Delay = Annotated[int, typer.Option(min=0, help="Documents between showing one and its judgement.")]
BatchSize = Annotated[int, typer.Option(min=1, help="Documents a request; readers judge after each.")]
EachTopic = Annotated[bool, typer.Option(help="Also print a table of all topics.")]
Output = Annotated[Path | None, typer.Option(help="A file to write everything to, as JSON.")]


def grouped(corpus: Corpus, groups: str) -> Corpus:
    """The corpus with these groups in place of its topics, if there are any."""
    try:
        return corpus.grouped(parse_groups(groups)) if groups else corpus
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="groups") from None


def with_options(options: Callable[P, T]) -> Callable[[Callable[[T], None]], Callable[P, None]]:
    """Gives a command that takes a dataclass the dataclass's fields as its command line."""

    def decorate(command: Callable[[T], None]) -> Callable[P, None]:
        @wraps(options, assigned=("__annotations__",), updated=())
        def run(*args: P.args, **kwargs: P.kwargs) -> None:
            command(options(*args, **kwargs))

        run.__doc__ = command.__doc__
        return run

    return decorate
