"""How well Sluice decides, measured on a corpus of your own or on a well-known one."""

import json
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import track

from models.online.registry import parse_params
from scripts.common.corpus import matches, read, read_queries
from scripts.evaluation import abstain_report, published, report
from scripts.evaluation.abstain import BASES, PairResult
from scripts.evaluation.abstain import measure as measure_pair
from scripts.evaluation.batch import TopicResult, VectorCorpus, figures, measure
from scripts.evaluation.duels import CONTENDERS, PAIRS, by_topic, duel
from scripts.evaluation.duplicates import LEFT_OUT, compare, doubled, find, firsts
from scripts.evaluation.joint import Joint, JointRuns
from scripts.evaluation.online import OnlineRun, OnlineSettings, run
from scripts.evaluation.pairs import GroupedCorpus
from scripts.evaluation.stream import Stream

app = typer.Typer(add_completion=False, help=__doc__, pretty_exceptions_enable=False)


class Feedback(StrEnum):
    realistic = "realistic"
    all = "all"


class Pocket(StrEnum):
    on = "on"
    off = "off"
    both = "both"


@app.callback()
def sections() -> None:
    """Makes each measurement a command of its own."""


@app.command()
def online(
    path: Annotated[Path, typer.Argument(help="JSON lines, gzipped or not; see scripts/common/corpus.py")],
    topics: Annotated[str, typer.Option(help="patterns with commas between; !pattern leaves out")] = "*",
    feedback: Annotated[Feedback, typer.Option(help="judge everything, or what is accepted or abstained from")] = (
        Feedback.realistic
    ),
    seeds: Annotated[int, typer.Option(min=0, help="relevant documents shown at the start")] = 3,
    learner: Annotated[str, typer.Option(help='with commas between; parameters as JSON: wh{"average":false}')] = "wh",
    queries: Annotated[Path | None, typer.Option(help="JSON, topic: query; a topic's name without it")] = None,
    pocket: Annotated[Pocket, typer.Option(help="both compares")] = Pocket.on,
    holdout: Annotated[bool, typer.Option(help="measure on the last quarter of training, not on test")] = False,
    most: Annotated[int, typer.Option(help="topics at most, the largest")] = 10**6,
    each: Annotated[bool, typer.Option(help="also a table of all topics")] = False,
    picture: Annotated[Path | None, typer.Option(help="PNG or SVG of the curve")] = None,
    out: Annotated[Path | None, typer.Option(help="JSON of everything")] = None,
) -> None:
    """Date order, one pass, from a query and a few relevant documents."""
    corpus = read(path)
    corpus = corpus.holdout if holdout else corpus
    names = corpus.largest(patterns=topics.split(","))[:most]
    if not names:
        raise typer.BadParameter("no topic has enough documents in training and in test", param_hint="topics")
    stream, asked = Stream(corpus), read_queries(queries)
    protocols = {
        name: OnlineSettings(kind, params, seeds, feedback is Feedback.all, pocket is not Pocket.off)
        for name, (kind, params) in learners(learner).items()
    }
    results = {name: runs(stream, names, asked, protocol, name) for name, protocol in protocols.items()}
    measured = "held-out training" if holdout else "test"
    title = (
        f"{corpus.name}, {len(names)} topics, feedback on {feedback.value}, from a query and {seeds} relevant; "
        f"{stream.train} documents pass, {stream.size - stream.train} {measured} documents measure"
    )
    known = corpus.name.startswith("reuters") and not holdout and seeds == 3
    report.online(results, feedback.value if known else "", title)
    if each:
        for runs_ in results.values():
            report.topics(runs_)
    if pocket is Pocket.both:
        without = {
            name: runs(
                stream, names, asked, OnlineSettings(p.kind, p.params, seeds, p.everything, False), name + " newest"
            )
            for name, p in protocols.items()
        }
        report.pocketing(without, results, published.FIRST_POCKET if known else {})
    if picture:
        report.picture(picture, results, title)
    if out:
        report.write_json(out, {"corpus": corpus.name, "title": title}, results)


@app.command()
def batch(
    path: Annotated[Path, typer.Argument(help="JSON lines, gzipped or not; see scripts/common/corpus.py")],
    topics: Annotated[str, typer.Option(help="patterns with commas between; !pattern leaves out")] = "*",
    orders: Annotated[int, typer.Option(min=1, help="random orders of the training documents")] = 3,
    only: Annotated[str, typer.Option(help="patterns for the rows of the table")] = "*",
    routing: Annotated[bool, typer.Option(help="100,000 draws and a pocket instead of passes; an hour")] = False,
    boosting: Annotated[
        bool, typer.Option(help="the settings of the tables of AdaBoost.MH^KR's paper instead")
    ] = False,
    duels: Annotated[bool, typer.Option(help="who wins how many topics against Rocchio, instead")] = False,
    holdout: Annotated[bool, typer.Option(help="measure on the last quarter of training, not on test")] = False,
    most: Annotated[int, typer.Option(help="topics at most, the largest")] = 10**6,
) -> None:
    """All training documents at once, several orders, every learner."""
    corpus = read(path)
    corpus = corpus.holdout if holdout else corpus
    names = corpus.largest(1, 1, topics.split(","))[:most]
    library = VectorCorpus(corpus)
    known = published.batch(library.mean_features)
    known = published.routing() if routing else published.boosting() if boosting else known
    rows, runs = {}, JointRuns(library, names)
    title = f"{corpus.name}, {len(names)} topics, {corpus.train} training documents, {orders} orders"
    if duels:
        f1 = {
            name: by_topic(_measured(library, runs, names, name, published.BatchRow(setting), orders))
            for name, setting in CONTENDERS.items()
        }
        report.duels([duel(f1[one], f1[other]) for one, other, _ in PAIRS], title)
        return
    for name, row in known.items():
        if matches(name, only.split(",")):
            rows[name] = (row, [figures(results) for results in _measured(library, runs, names, name, row, orders)])
    report.batch(rows, title, corpus.name.startswith("reuters") and not holdout)


@app.command()
def abstain(
    path: Annotated[Path, typer.Argument(help="JSON lines, gzipped or not; one topic a document")],
    pairs: Annotated[int, typer.Option(min=1, help="of topics with more than 900 documents, by chance")] = 100,
    train: Annotated[str, typer.Option(help="training documents, with commas between")] = "250,500",
    text: Annotated[str, typer.Option(help="full, plain (no subject, quotes, signature), or both")] = "full,plain",
    only: Annotated[str, typer.Option(help="patterns for the classifiers")] = "*",
    seed: Annotated[int, typer.Option(min=0)] = 0,
    holdout: Annotated[bool, typer.Option(help="measure on a quarter of the training documents")] = False,
    picture: Annotated[Path | None, typer.Option(help="PNG or SVG of error against loss")] = None,
    out: Annotated[Path | None, typer.Option(help="JSON of the curves and committees")] = None,
) -> None:
    """Error against loss: restrictive classifiers and committees, one topic against another."""
    corpus = read(path)
    results: dict[tuple[str, int, str], list[PairResult]] = {}
    for one in text.split(","):
        groups = GroupedCorpus(corpus, plain=one == "plain")
        drawn = groups.pairs(pairs, seed)
        if not drawn:
            raise typer.BadParameter("fewer than two topics have more than 900 documents", param_hint="path")
        for size in map(int, train.split(",")):
            watched: Iterable[tuple[str, str]] = track(
                drawn, f"{one}, {size} training documents", console=report.progress, transient=True
            )
            for names in watched:
                pair = groups.pair(names, size, seed, holdout)
                for name, fit in BASES.items():
                    if matches(name, only.split(",")):
                        results.setdefault((one, size, name), []).append(measure_pair(pair, fit, seed))
    measured = "held-out training documents" if holdout else "all other documents"
    about = f"{corpus.name}, {len(drawn)} pairs of {len(groups.names)} groups, seed {seed}; measured on {measured}"
    abstain_report.show(results, about)
    if picture:
        abstain_report.picture(picture, results, about)
    if out:
        abstain_report.write_json(out, results, about)


@app.command()
def duplicates(
    path: Annotated[Path, typer.Argument(help="JSON lines, gzipped or not; see scripts/common/corpus.py")],
    topics: Annotated[str, typer.Option(help="patterns with commas between; !pattern leaves out")] = "*",
    most: Annotated[int, typer.Option(help="topics at most, the largest")] = 20,
    seed: Annotated[int, typer.Option(min=0)] = 0,
) -> None:
    """Near-duplicates that were planted: how many are found, what else is, and whether they are decided alike."""
    corpus = read(path)
    shares: Iterable[float] = track(LEFT_OUT, "looking for them", console=report.progress, transient=True)
    found = [find(corpus.documents, share, seed) for share in shares]
    twice = doubled(corpus, seed)
    stream, first = Stream(twice), firsts(twice.documents[twice.train :])
    names = corpus.largest(patterns=topics.split(","))[:most]
    watched: Iterable[str] = track(names, "deciding", console=report.progress, transient=True)
    report.duplicates(found, [compare(stream, name, first) for name in watched], corpus.name)


def _measured(
    library: VectorCorpus, runs: JointRuns, names: Sequence[str], label: str, row: published.BatchRow, orders: int
) -> list[list[TopicResult]]:
    """The results of all topics, for each order; one where there is nothing that an order could change."""
    setting = row.setting
    if isinstance(setting, Joint):
        several: Iterable[int] = range(orders if setting.cut != "zero" else 1)
        return [
            runs.measure(setting, order) for order in track(several, label, console=report.progress, transient=True)
        ]
    pairs = [(topic, order) for order in range(orders) for topic in names]
    watched: Iterable[tuple[str, int]] = track(pairs, label, console=report.progress, transient=True)
    results = [measure(library, topic, setting, order) for topic, order in watched]
    return [results[i * len(names) : (i + 1) * len(names)] for i in range(orders)]


def learners(text: str) -> Mapping[str, tuple[str, Mapping[str, object]]]:
    """By what they are called in a table: `wh,wh{"average":false}` gives wh with its defaults, and without average."""
    found: dict[str, tuple[str, Mapping[str, object]]] = {}
    for part in _split(text):
        kind, brace, rest = part.partition("{")
        params = json.loads(brace + rest) if brace else {}
        parse_params(kind, params)
        found[part] = (kind, params)
    return found


def runs(
    stream: Stream, names: Sequence[str], asked: Mapping[str, str], protocol: OnlineSettings, label: str
) -> list[OnlineRun]:
    watched: Iterable[str] = track(names, label, console=report.progress, transient=True)
    return [run(stream, name, asked.get(name, name), protocol) for name in watched]


def _split(text: str) -> list[str]:
    """At commas, but not inside braces."""
    parts, depth = [""], 0
    for c in text:
        depth += (c == "{") - (c == "}")
        if c == "," and not depth:
            parts.append("")
        else:
            parts[-1] += c
    return parts


if __name__ == "__main__":
    app()
