"""How fast Sluice is, beside its peers: tables for people (standard error), JSON (standard output), pictures.

    scripts/bench all --corpus reuters21578.jsonl.gz --topics 90,1000,10000,100000 --plots pictures > bench.json

A corpus is JSON lines, gzipped or not, with "title", "text" and "topics"; without one, text is generated. Everything
but the service itself is held to one core. On a busy machine look at CPU time, and at ratios.
"""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from models.core.names import METHOD_KINDS
from scripts.benchmarks import (
    boost,
    decide,
    endure,
    flow,
    learn,
    plots,
    report,
    retrain,
    start,
    wait,
)

app = typer.Typer(add_completion=False, no_args_is_help=True, help=__doc__, pretty_exceptions_enable=False)

Corpus = Annotated[Path | None, typer.Option(help="JSON lines; without it, text is generated.", exists=True)]
Generated = Annotated[int, typer.Option(help="Documents to generate where no corpus is given.")]
Topics = Annotated[str, typer.Option(help="How many topics to decide; 100000 takes some minutes.")]
PeersUpTo = Annotated[int, typer.Option(help="Most topics that peers are given; 0 leaves them out.")]
Weights = Annotated[int, typer.Option(help="Served weights a topic.")]
TurnS = Annotated[float, typer.Option(help="Seconds that a contender works before it is another's turn.")]
Turns = Annotated[int, typer.Option(help="Turns of each contender.")]
Judgements = Annotated[int, typer.Option(help="Judgements to learn, one after the other.")]
Lengths = Annotated[str, typer.Option(help="Lengths of a log at which to look.")]
Peers = Annotated[bool, typer.Option(help="Whether River and scikit-learn learn beside us.")]
Stored = Annotated[int, typer.Option(help="Topics in the store of the cold start.")]
Patterns = Annotated[str, typer.Option(help="Patterns with commas between; !pattern leaves out.")]
Whole = Annotated[bool, typer.Option(help="Learn from the test documents too.")]
Rounds = Annotated[int, typer.Option(help="S.")]
Rho = Annotated[str, typer.Option(help="Shares of the terms that are left out first.")]
Dask = Annotated[bool, typer.Option(help="Whether workers of a Dask cluster on this machine do it too.")]
Plots = Annotated[Path | None, typer.Option(help="Folder for pictures.")]


@app.command("all")
def run_all(
    corpus: Corpus = None,
    generated: Generated = 8000,
    topics: Topics = "90,1000,10000",
    peers_up_to: PeersUpTo = 1000,
    weights: Weights = 300,
    turn_s: TurnS = 1.0,
    turns: Turns = 5,
    judgements: Judgements = 300,
    lengths: Lengths = "10,30,100,300,1000,3000,5000",
    stored: Stored = 10_000,
    plots: Plots = None,
) -> None:
    """Everything below, but for retrain and boost."""
    peers = peers_up_to > 0
    found = {
        "deciding": _decide(decide.Sizes(corpus, generated, weights, turn_s, turns, peers_up_to), topics),
        "judging": learn.measure(learn.Sizes(corpus, generated, judgements, _numbers(lengths), peers)),
        "starting": start.measure(start.Sizes(corpus, generated, stored, repeats=turns)),
        "enduring": endure.measure(endure.Sizes(corpus, generated, turn_s, turns)),
        "waiting": wait.measure(wait.Sizes(corpus, generated, turns=turns)),
        "flowing": flow.measure(flow.Sizes(corpus, generated)),
    }
    _publish(corpus, found, plots)


@app.command("decide")
def run_decide(
    corpus: Corpus = None,
    generated: Generated = 8000,
    topics: Topics = "90,1000,10000",
    peers_up_to: PeersUpTo = 1000,
    weights: Weights = 300,
    turn_s: TurnS = 1.0,
    turns: Turns = 5,
    plots: Plots = None,
) -> None:
    """Raw text to decisions against many topics; one document alone; memory."""
    sizes = decide.Sizes(corpus, generated, weights, turn_s, turns, peers_up_to)
    _publish(corpus, {"deciding": _decide(sizes, topics)}, plots)


@app.command("learn")
def run_learn(
    corpus: Corpus = None,
    generated: Generated = 8000,
    judgements: Judgements = 300,
    lengths: Lengths = "10,30,100,300,1000,3000,5000",
    peers: Peers = True,
    plots: Plots = None,
) -> None:
    """One judgement, and a log folded again."""
    sizes = learn.Sizes(corpus, generated, judgements, _numbers(lengths), peers)
    _publish(corpus, {"judging": learn.measure(sizes)}, plots)


@app.command("start")
def run_start(
    corpus: Corpus = None,
    generated: Generated = 8000,
    stored: Stored = 10_000,
    weights: Weights = 500,
    turns: Turns = 3,
) -> None:
    """A process that finds many topics in the store."""
    sizes = start.Sizes(corpus, generated, stored, weights, turns)
    _publish(corpus, {"starting": start.measure(sizes)}, None)


@app.command("endure")
def run_endure(corpus: Corpus = None, generated: Generated = 8000, turn_s: TurnS = 2.0, turns: Turns = 5) -> None:
    """What it costs that an acknowledged judgement is on disk."""
    _publish(corpus, {"enduring": endure.measure(endure.Sizes(corpus, generated, turn_s, turns))}, None)


@app.command("wait")
def run_wait(
    corpus: Corpus = None,
    generated: Generated = 8000,
    turn_s: TurnS = 3.0,
    turns: Turns = 3,
    log: Annotated[int, typer.Option(help="Judgements of the long log.")] = 5000,
    processes: Annotated[int, typer.Option(help="API processes on one store.")] = 4,
) -> None:
    """How long anybody waits: for a frozen store, beside large requests, for other processes, in a long log."""
    _publish(corpus, {"waiting": wait.measure(wait.Sizes(corpus, generated, turn_s, turns, log, processes))}, None)


@app.command("retrain")
def run_retrain(
    corpus: Corpus = None,
    generated: Generated = 8000,
    topics: Annotated[int, typer.Option(help="Topics that are retrained, the largest.")] = 20,
    judgements: Annotated[int, typer.Option(help="Judgements of each.")] = 500,
    methods: Annotated[str, typer.Option(help="By which, one after the other.")] = ",".join(METHOD_KINDS),
) -> None:
    """Topics retrained by each method while documents are decided and judged: who waits, and what it gains."""
    sizes = retrain.Sizes(corpus, generated, topics, judgements, tuple(methods.split(",")))
    _publish(corpus, {"retraining": retrain.measure(sizes)}, None)


@app.command("boost")
def run_boost(
    corpus: Corpus = None,
    generated: Generated = 8000,
    topics: Patterns = "*",
    whole: Whole = False,
    rounds: Rounds = 200,
    rho: Rho = "0.9,0",
    turns: Turns = 3,
    dask: Dask = True,
) -> None:
    """Boosting on one core, by two processes, and by two workers of a Dask cluster; some minutes a turn."""
    sizes = boost.Sizes(corpus, generated, tuple(topics.split(",")), whole, rounds, turns, dask)
    _publish(corpus, {"boosting": [boost.measure(sizes, float(share)) for share in rho.split(",")]}, None)


@app.command("flow")
def run_flow(
    corpus: Corpus = None,
    generated: Generated = 8000,
    documents: Annotated[int, typer.Option(help="Documents that flow through.")] = 50_000,
    topics: Annotated[int, typer.Option(help="Topics that decide them.")] = 90,
    lines: Annotated[int, typer.Option(help="Lines of one request, over which memory is watched.")] = 1_000_000,
    heats: Annotated[int, typer.Option(help="Of each team of consumers, in turns.")] = 2,
) -> None:
    """The whole way of a document: lines through HTTP, beside what the framework can do at best, and memory over very
    many; and from a Redis stream by one consumer and by two."""
    sizes = flow.Sizes(corpus, generated, documents, topics, lines=lines, heats=heats)
    _publish(corpus, {"flowing": flow.measure(sizes)}, None)


@app.command("draw")
def run_draw(measured: Annotated[Path, typer.Argument(help="What `all` printed.")], folder: Path) -> None:
    """The pictures again, from figures that were measured before."""
    plots.draw(json.loads(measured.read_text()), folder)


def _decide(sizes: decide.Sizes, topics: str) -> list[dict[str, Any]]:
    return [decide.measure(sizes, n) for n in _numbers(topics)]


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


def _publish(corpus: Path | None, found: dict[str, Any], folder: Path | None) -> None:
    whole = {"corpus": corpus.name if corpus else "generated", "machine": report.machine(), **found}
    report.show(whole)
    if folder:
        plots.draw(whole, folder)
    print(json.dumps(whole, indent=1))


if __name__ == "__main__":
    app()
