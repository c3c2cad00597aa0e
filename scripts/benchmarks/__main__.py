"""How fast Sluice is, beside its peers: tables on standard error, JSON on standard output, and pictures.

    scripts/bench all --corpus reuters21578.jsonl.gz --topics 90,1000,10000,100000 --plots pictures > bench.json

A corpus is JSON lines, gzipped or not, with "title", "text" and "topics"; without one, text is generated. Everything
but the service itself is pinned to one core. On a busy machine, trust CPU time and ratios.
"""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from models.core.names import METHOD_KINDS
from scripts.benchmarks import boost, decide, endure, flow, learn, retrain, start, wait
from scripts.benchmarks.figures import plots, report
from scripts.common.options import TopicPatterns

app = typer.Typer(add_completion=False, no_args_is_help=True, help=__doc__, pretty_exceptions_enable=False)

CorpusFile = Annotated[Path | None, typer.Option(help="A corpus; without it, text is generated.", exists=True)]
Generated = Annotated[int, typer.Option(help="The number of documents to generate if no corpus is given.")]
Topics = Annotated[str, typer.Option(help="Numbers of topics, separated by commas; 100000 takes several minutes.")]
PeersUpTo = Annotated[int, typer.Option(help="The number of topics up to which peers are measured; 0 for no peers.")]
Weights = Annotated[int, typer.Option(help="The number of weights of each topic.")]
TurnS = Annotated[float, typer.Option(help="The length of a turn, in seconds.")]
Turns = Annotated[int, typer.Option(help="The number of turns of each contestant.")]
Judgements = Annotated[int, typer.Option(help="The number of judgements to learn, one after the other.")]
Lengths = Annotated[str, typer.Option(help="Lengths of a log at which to measure, separated by commas.")]
Peers = Annotated[bool, typer.Option(help="Also measure River and scikit-learn.")]
Stored = Annotated[int, typer.Option(help="The number of topics in the store at a cold start.")]
Plots = Annotated[Path | None, typer.Option(help="A folder to draw pictures in.")]


@app.command("all")
def run_all(
    corpus: CorpusFile = None,
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
    """Everything below, except retrain and boost."""
    peers = peers_up_to > 0
    sections = {
        "deciding": _decide(decide.Sizes(corpus, generated, weights, turn_s, turns, peers_up_to), topics),
        "judging": learn.measure(learn.Sizes(corpus, generated, judgements, _numbers(lengths), peers)),
        "starting": start.measure(start.Sizes(corpus, generated, stored, repeats=turns)),
        "enduring": endure.measure(endure.Sizes(corpus, generated, turn_s, turns)),
        "waiting": wait.measure(wait.Sizes(corpus, generated, turns=turns)),
        "flowing": flow.measure(flow.Sizes(corpus, generated)),
    }
    _publish(corpus, sections, plots)


@app.command("decide")
def run_decide(
    corpus: CorpusFile = None,
    generated: Generated = 8000,
    topics: Topics = "90,1000,10000",
    peers_up_to: PeersUpTo = 1000,
    weights: Weights = 300,
    turn_s: TurnS = 1.0,
    turns: Turns = 5,
    plots: Plots = None,
) -> None:
    """Raw text to decisions by many topics; one document alone; memory."""
    sizes = decide.Sizes(corpus, generated, weights, turn_s, turns, peers_up_to)
    _publish(corpus, {"deciding": _decide(sizes, topics)}, plots)


@app.command("learn")
def run_learn(
    corpus: CorpusFile = None,
    generated: Generated = 8000,
    judgements: Judgements = 300,
    lengths: Lengths = "10,30,100,300,1000,3000,5000",
    peers: Peers = True,
    plots: Plots = None,
) -> None:
    """One judgement, and a whole log folded again."""
    sizes = learn.Sizes(corpus, generated, judgements, _numbers(lengths), peers)
    _publish(corpus, {"judging": learn.measure(sizes)}, plots)


@app.command("start")
def run_start(
    corpus: CorpusFile = None,
    generated: Generated = 8000,
    stored: Stored = 10_000,
    weights: Weights = 500,
    turns: Turns = 3,
) -> None:
    """The start of a process that finds many topics in the store."""
    sizes = start.Sizes(corpus, generated, stored, weights, turns)
    _publish(corpus, {"starting": start.measure(sizes)})


@app.command("endure")
def run_endure(corpus: CorpusFile = None, generated: Generated = 8000, turn_s: TurnS = 2.0, turns: Turns = 5) -> None:
    """What it costs that every acknowledged judgement is on disk."""
    _publish(corpus, {"enduring": endure.measure(endure.Sizes(corpus, generated, turn_s, turns))})


@app.command("wait")
def run_wait(
    corpus: CorpusFile = None,
    generated: Generated = 8000,
    turn_s: TurnS = 3.0,
    turns: Turns = 3,
    log: Annotated[int, typer.Option(help="The number of judgements in the long log.")] = 5000,
    processes: Annotated[int, typer.Option(help="The number of API processes on one store.")] = 4,
) -> None:
    """How long clients wait: for a frozen store, beside large requests, for other processes, in a long log."""
    sizes = wait.Sizes(corpus, generated, turn_s, turns, log, processes)
    _publish(corpus, {"waiting": wait.measure(sizes)})


@app.command("retrain")
def run_retrain(
    corpus: CorpusFile = None,
    generated: Generated = 8000,
    topics: Annotated[int, typer.Option(help="The number of topics to retrain; the largest are taken.")] = 20,
    judgements: Annotated[int, typer.Option(help="The number of judgements of each topic.")] = 500,
    methods: Annotated[str, typer.Option(help="Methods to retrain with, separated by commas.")] = ",".join(
        METHOD_KINDS
    ),
) -> None:
    """Topics retrained by each method while documents are decided and judged: what it gains, and who waits."""
    sizes = retrain.Sizes(corpus, generated, topics, judgements, tuple(methods.split(",")))
    _publish(corpus, {"retraining": retrain.measure(sizes)})


@app.command("boost")
def run_boost(
    corpus: CorpusFile = None,
    generated: Generated = 8000,
    topics: TopicPatterns = "*",
    whole: Annotated[bool, typer.Option(help="Learn from the test documents, too.")] = False,
    rounds: Annotated[int, typer.Option(help="The number of rounds, S.")] = 200,
    rho: Annotated[str, typer.Option(help="Shares of the terms to leave out, ρ, separated by commas.")] = "0.9,0",
    turns: Turns = 3,
    dask: Annotated[bool, typer.Option(help="Also measure workers of a Dask cluster on this machine.")] = True,
) -> None:
    """Boosting on one core, by two processes, and by two workers of a Dask cluster; takes minutes a turn."""
    sizes = boost.Sizes(corpus, generated, tuple(topics.split(",")), whole, rounds, turns, dask)
    _publish(corpus, {"boosting": [boost.measure(sizes, float(share)) for share in rho.split(",")]})


@app.command("flow")
def run_flow(
    corpus: CorpusFile = None,
    generated: Generated = 8000,
    documents: Annotated[int, typer.Option(help="The number of documents to send.")] = 50_000,
    topics: Annotated[int, typer.Option(help="The number of topics that decide them.")] = 90,
    lines: Annotated[int, typer.Option(help="The number of lines in the request that tests memory.")] = 1_000_000,
    heats: Annotated[int, typer.Option(help="The number of runs of each team of consumers.")] = 2,
) -> None:
    """Documents from end to end: lines over HTTP, beside what the framework can do at best, and memory over very many
    lines; and documents from a Redis stream, by one consumer and by two."""
    sizes = flow.Sizes(corpus, generated, documents, topics, lines=lines, heats=heats)
    _publish(corpus, {"flowing": flow.measure(sizes)})


@app.command("draw")
def run_draw(
    measured: Annotated[Path, typer.Argument(help="JSON that `all` has printed.")],
    folder: Annotated[Path, typer.Argument(help="The folder to draw in.")],
) -> None:
    """The pictures again, from figures that were measured before."""
    plots.draw(json.loads(measured.read_text()), folder)


def _decide(sizes: decide.Sizes, topics: str) -> list[dict[str, Any]]:
    return [decide.measure(sizes, n) for n in _numbers(topics)]


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


def _publish(corpus: Path | None, sections: dict[str, Any], folder: Path | None = None) -> None:
    whole = {"corpus": corpus.name if corpus else "generated", "machine": report.machine(), **sections}
    report.show(whole)
    if folder:
        plots.draw(whole, folder)
    print(json.dumps(whole, indent=1))


if __name__ == "__main__":
    app()
