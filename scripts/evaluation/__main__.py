"""How well Sluice decides, measured on a corpus of your own or on a well-known one."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from models.online.registry import parse_params
from scripts.common.corpus import Corpus, matches, read, read_queries
from scripts.common.options import (
    BatchSize,
    CorpusPath,
    Delay,
    EachTopic,
    EarlySeeds,
    Groups,
    Holdout,
    MaxTopics,
    Output,
    Queries,
    Seeds,
    TopicPatterns,
    grouped,
    with_options,
)
from scripts.common.report import tracked
from scripts.evaluation import abstain_report, published, report
from scripts.evaluation.abstain import BASES, PairResult
from scripts.evaluation.abstain import measure as measure_pair
from scripts.evaluation.batch import TopicResult, VectorCorpus, figures, measure
from scripts.evaluation.duels import LEARNERS, PAIRS, by_topic, duel
from scripts.evaluation.duplicates import LEFT_OUT, compare, doubled, find, firsts
from scripts.evaluation.joint import Joint, JointRuns
from scripts.evaluation.online import OnlineRun, OnlineSettings, run
from scripts.evaluation.pairs import GroupedCorpus
from scripts.evaluation.peers import Peers
from scripts.evaluation.published import BatchRow
from scripts.loop.reader import SimulatedReader
from scripts.loop.stream import Stream
from service.schemas import Pocket

ALL = 10**6  # topics

app = typer.Typer(add_completion=False, help=__doc__, pretty_exceptions_enable=False)


class Feedback(StrEnum):
    realistic = "realistic"
    all = "all"


class Pockets(StrEnum):
    on = "on"
    held_out = "held_out"
    learned = "learned"
    off = "off"
    both = "both"

    @property
    def setting(self) -> Pocket:
        """The topics' setting; of `both`, that which is compared with none."""
        match self:
            case Pockets.off:
                return Pocket(every=None)
            case Pockets.held_out:
                return Pocket(by="held_out")
            case Pockets.learned:
                return Pocket(by="learned")
        return Pocket()


@app.callback()
def sections() -> None:
    """Makes each measurement a command of its own."""


@dataclass(frozen=True, slots=True)
class OnlineOptions:
    path: CorpusPath
    topics: TopicPatterns = "*"
    groups: Groups = ""
    feedback: Annotated[
        Feedback, typer.Option(help="Judge every document (faster with a larger --batch), or what a person would see.")
    ] = Feedback.realistic
    seeds: Seeds = 3
    early: EarlySeeds = False
    audit: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Chance that a rejected document is offered for audit and judged."),
    ] = None
    delay: Delay = 0
    batch: BatchSize = 1
    learner: Annotated[
        str, typer.Option(help='Learners, separated by commas, with parameters as JSON: wh{"average":false}.')
    ] = "wh"
    queries: Queries = None
    pocket: Annotated[
        Pockets,
        typer.Option(
            help="Whether to keep the best vector in a pocket; by held-out or learned scores alone; `both` compares it "
            "with none."
        ),
    ] = Pockets.on
    peers: Annotated[
        bool, typer.Option(help="Also fit an SVM to as many random labels, to the same judgements, and to all labels.")
    ] = False
    holdout: Holdout = False
    most: MaxTopics = ALL
    each: EachTopic = False
    picture: Annotated[Path | None, typer.Option(help="A PNG or SVG file to draw the curve in.")] = None
    out: Output = None

    @property
    def reader(self) -> SimulatedReader:
        everything = self.feedback is Feedback.all
        return SimulatedReader(everything, delay=self.delay, audit=self.audit, seeds=self.seeds, early=self.early)


@app.command("online")
@with_options(OnlineOptions)
def run_online(options: OnlineOptions) -> None:
    """One pass in date order, from a query and a few relevant documents."""
    corpus = _corpus(options.path, options.holdout, options.groups)
    names = corpus.largest(patterns=options.topics.split(","))[: options.most]
    if not names:
        raise typer.BadParameter("no topic has enough documents in training and in test", param_hint="topics")
    stream, queries = Stream(corpus, options.batch), read_queries(options.queries)
    settings = {
        name: OnlineSettings(kind, params, options.reader, options.pocket.setting)
        for name, (kind, params) in learners(options.learner).items()
    }
    peers = Peers(stream) if options.peers else None
    results = {name: runs(stream, names, queries, chosen, name, peers) for name, chosen in settings.items()}
    title = (
        f"{corpus.name}, {len(names)} topics, feedback on {options.feedback.value}, from a query and {options.seeds} "
        f"relevant; {stream.train} documents pass, {stream.size - stream.train} "
        f"{'held-out training' if options.holdout else 'test'} documents measure"
    )
    comparable = _comparable(corpus, options.holdout) and options.seeds == 3
    report.online(results, options.feedback.value if comparable else "", title)
    for name, of_learner in results.items() if peers else ():
        report.peers(of_learner, name)
    if options.each:
        for of_learner in results.values():
            report.topics(of_learner)
    if options.pocket is Pockets.both:
        without = {
            name: runs(stream, names, queries, replace(chosen, pocket=Pockets.off.setting), f"{name} newest")
            for name, chosen in settings.items()
        }
        report.pocketing(without, results, published.pocket_prototype() if comparable else {})
    if options.picture:
        report.picture(options.picture, results, title)
    if options.out:
        report.write_json(options.out, {"corpus": corpus.name, "title": title}, results)


@dataclass(frozen=True, slots=True)
class BatchOptions:
    path: CorpusPath
    topics: TopicPatterns = "*"
    orders: Annotated[int, typer.Option(min=1, help="The number of random orders of the training documents.")] = 3
    only: Annotated[str, typer.Option(help="Patterns of rows of the table, separated by commas.")] = "*"
    routing: Annotated[
        bool, typer.Option(help="Train by 100,000 draws and a pocket instead of passes; takes an hour.")
    ] = False
    boosting: Annotated[
        bool, typer.Option(help="Use the settings in the tables of the paper on AdaBoost.MH^KR instead.")
    ] = False
    duels: Annotated[bool, typer.Option(help="Count the topics that each learner wins against Rocchio instead.")] = (
        False
    )
    holdout: Holdout = False
    most: MaxTopics = ALL


@app.command("batch")
@with_options(BatchOptions)
def run_batch(options: BatchOptions) -> None:
    """All training documents at once, in several orders, with every learner."""
    corpus = _corpus(options.path, options.holdout)
    names = corpus.largest(1, 1, options.topics.split(","))[: options.most]
    vectors = VectorCorpus(corpus)
    joint = JointRuns(vectors, names)
    title = f"{corpus.name}, {len(names)} topics, {corpus.train} training documents, {options.orders} orders"

    def measured(name: str, setting: BatchRow) -> list[list[TopicResult]]:
        return _measure(vectors, joint, names, name, setting, options.orders)

    if options.duels:
        f1 = {name: by_topic(measured(name, BatchRow(setting))) for name, setting in LEARNERS.items()}
        report.duels([duel(f1[learner], f1[rival]) for learner, rival, _ in PAIRS], title)
        return
    if options.routing:
        rows = published.routing()
    elif options.boosting:
        rows = published.boosting()
    else:
        rows = published.batch(vectors.mean_features)
    results = {
        name: (row, [figures(results) for results in measured(name, row)])
        for name, row in rows.items()
        if matches(name, options.only.split(","))
    }
    report.batch(results, title, _comparable(corpus, options.holdout))


@dataclass(frozen=True, slots=True)
class AbstainOptions:
    path: Annotated[
        Path, typer.Argument(help="A corpus: JSON lines, gzipped or not, in which every document has one topic.")
    ]
    pairs: Annotated[
        int, typer.Option(min=1, help="The number of pairs to draw from the topics with more than 900 documents.")
    ] = 100
    train: Annotated[str, typer.Option(help="Numbers of training documents, separated by commas.")] = "250,500"
    text: Annotated[
        str, typer.Option(help="`full`, `plain` (no subject, quotes or signature), or both with a comma.")
    ] = "full,plain"
    only: Annotated[str, typer.Option(help="Patterns of classifiers, separated by commas.")] = "*"
    seed: Annotated[int, typer.Option(min=0, help="The seed of everything that is random.")] = 0
    holdout: Annotated[bool, typer.Option(help="Measure on a quarter of the training documents.")] = False
    picture: Annotated[Path | None, typer.Option(help="A PNG or SVG file to draw error against loss in.")] = None
    out: Annotated[Path | None, typer.Option(help="A file to write the curves and committees to, as JSON.")] = None


@app.command("abstain")
@with_options(AbstainOptions)
def run_abstain(options: AbstainOptions) -> None:
    """Error against loss: restrictive classifiers and committees, one topic against another."""
    corpus = read(options.path)
    results: dict[tuple[str, int, str], list[PairResult]] = {}
    for text in options.text.split(","):
        groups = GroupedCorpus(corpus, plain=text == "plain")
        pairs = groups.pairs(options.pairs, options.seed)
        if not pairs:
            raise typer.BadParameter("fewer than two topics have more than 900 documents", param_hint="path")
        for size in map(int, options.train.split(",")):
            for names in tracked(pairs, f"{text}, {size} training documents"):
                pair = groups.pair(names, size, options.seed, options.holdout)
                for name, fit in BASES.items():
                    if matches(name, options.only.split(",")):
                        results.setdefault((text, size, name), []).append(measure_pair(pair, fit, options.seed))
    measured = "held-out training documents" if options.holdout else "all other documents"
    about = (
        f"{corpus.name}, {len(pairs)} pairs of {len(groups.names)} groups, seed {options.seed}; measured on {measured}"
    )
    abstain_report.show(results, about)
    if options.picture:
        abstain_report.picture(options.picture, results, about)
    if options.out:
        abstain_report.write_json(options.out, results, about)


@app.command("duplicates")
def run_duplicates(
    path: CorpusPath,
    topics: TopicPatterns = "*",
    most: MaxTopics = 20,
    seed: Annotated[int, typer.Option(min=0, help="The seed of everything that is random.")] = 0,
) -> None:
    """Planted near-duplicates: how many are found, what else is, and whether they are decided alike."""
    corpus = read(path)
    detections = [find(corpus.documents, share, seed) for share in tracked(LEFT_OUT, "finding duplicates")]
    twice = doubled(corpus, seed)
    stream, first = Stream(twice), firsts(twice.documents[twice.train :])
    names = corpus.largest(patterns=topics.split(","))[:most]
    report.duplicates(detections, [compare(stream, name, first) for name in tracked(names, "deciding")], corpus.name)


def _corpus(path: Path, holdout: bool, groups: str = "") -> Corpus:
    corpus = grouped(read(path), groups)
    return corpus.holdout if holdout else corpus


def _comparable(corpus: Corpus, holdout: bool) -> bool:
    """Whether there are figures of others for what is measured."""
    return corpus.name.startswith("reuters") and not holdout


def _measure(
    vectors: VectorCorpus, joint: JointRuns, names: Sequence[str], label: str, row: BatchRow, orders: int
) -> list[list[TopicResult]]:
    """The results of all topics, for each order; for one order where there is nothing that it could change."""
    setting = row.setting
    if isinstance(setting, Joint):
        return [joint.measure(setting, o) for o in tracked(range(orders if setting.cut != "zero" else 1), label)]
    pairs = [(topic, order) for order in range(orders) for topic in names]
    results = [measure(vectors, topic, setting, order) for topic, order in tracked(pairs, label)]
    return [results[i * len(names) : (i + 1) * len(names)] for i in range(orders)]


def learners(text: str) -> Mapping[str, tuple[str, Mapping[str, object]]]:
    """Kinds and parameters by their names in a table: `wh,wh{"average":false}` names wh with its defaults, and wh
    without averaging."""
    named: dict[str, tuple[str, Mapping[str, object]]] = {}
    for part in _split(text):
        kind, brace, rest = part.partition("{")
        params = json.loads(brace + rest) if brace else {}
        parse_params(kind, params)
        named[part] = (kind, params)
    return named


def runs(
    stream: Stream,
    names: Sequence[str],
    queries: Mapping[str, str],
    settings: OnlineSettings,
    label: str,
    peers: Peers | None = None,
) -> list[OnlineRun]:
    return [run(stream, name, queries.get(name, name), settings, peers) for name in tracked(names, label)]


def _split(text: str) -> list[str]:
    """Splits at commas, but not inside braces."""
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
