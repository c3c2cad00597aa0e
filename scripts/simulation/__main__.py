"""Whether Sluice keeps its promises: a labelled stream, simulated readers, and a goal for every topic."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import typer

from models.core.intervals import Interval
from models.core.measures import Bools
from models.core.names import GoalMode
from models.goals.promises import Targets
from models.goals.reporting.report import pooled_recall
from scripts.common.corpus import Corpus, read, read_queries
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
from scripts.loop.reader import Plan, SimulatedReader, drifting
from scripts.loop.stream import Stream
from scripts.loop.topic import TopicSpec
from scripts.simulation import remote, report
from scripts.simulation.attainment import Attainment, FollowUp, pooled_covers
from scripts.simulation.hindsight import in_hindsight
from scripts.simulation.plant_duplicates import unrepeated, with_duplicates
from scripts.simulation.topic import measure, run

MIN_TEST = 3  # relevant documents of a topic that follow the stream

app = typer.Typer(add_completion=False, help=__doc__, pretty_exceptions_enable=False)


@dataclass(frozen=True, slots=True)
class Options:
    path: CorpusPath
    topics: TopicPatterns = "*"
    groups: Groups = ""
    least: Annotated[int, typer.Option(help="Relevant documents that a topic has in the stream, at least.")] = 30
    most: MaxTopics = 10**6
    # the goal of every topic
    min_precision: Annotated[float | None, typer.Option(min=0, max=1, help="Precision of what is accepted.")] = 0.9
    min_recall: Annotated[float | None, typer.Option(min=0, max=1, help="Recall of what is not rejected.")] = 0.9
    max_abstain: Annotated[float | None, typer.Option(min=0, max=1, help="Share of documents abstained on.")] = 0.15
    max_error: Annotated[float | None, typer.Option(min=0, max=1, help="Share of decisions that are wrong.")] = None
    mode: Annotated[
        GoalMode, typer.Option(help="Until a goal is certain: accept by the best estimate, or nothing (strict).")
    ] = "best"
    # the reader
    everything: Annotated[bool, typer.Option(help="Judge rejected documents, too.")] = False
    part: Annotated[float, typer.Option(min=0, max=1, help="Share of the shown documents that is judged.")] = 1.0
    delay: Delay = 0
    batch: BatchSize = 1
    noise: Annotated[float, typer.Option(min=0, max=1, help="Share of the judgements that are wrong.")] = 0.0
    audit: Annotated[float, typer.Option(min=0, max=1, help="Chance that a rejected document is judged.")] = 0.01
    seeds: Seeds = 3
    early: EarlySeeds = False
    drift: Annotated[bool, typer.Option(help="Halfway through, the reader turns to another topic.")] = False
    # the stream
    duplicates: Annotated[float, typer.Option(min=0, max=1, help="Share of documents that come four times.")] = 0.0
    stream: Annotated[int, typer.Option(help="Training documents, at most; the last are taken.")] = 15_000
    following: Annotated[int, typer.Option(help="Documents to measure on, at most; the first are taken.")] = 5_000
    learner: Annotated[str, typer.Option(help="The learner of every topic.")] = "wh"
    queries: Queries = None
    holdout: Holdout = False
    at: Annotated[
        float, typer.Option(min=0, max=1, help="With --holdout: share of the training documents in the stream.")
    ] = 0.75
    seed: Annotated[int, typer.Option(help="The seed of audits, and of the reader's random choices.")] = 0
    http: Annotated[str | None, typer.Option(help="Address of a running service; best with SLUICE_EPOCH_S=0.")] = None
    each: EachTopic = False
    out: Output = None

    @property
    def goal(self) -> Targets:
        return Targets(self.max_error, self.min_precision, self.min_recall, self.max_abstain, self.mode)

    @property
    def reader(self) -> SimulatedReader:
        return SimulatedReader(
            self.everything, self.part, self.delay, self.noise, self.audit, seeds=self.seeds, early=self.early
        )


@app.command()
@with_options(Options)
def simulate(options: Options) -> None:
    """Lets every topic promise what it can, then compares what came with what was promised."""
    corpus = grouped(read(options.path), options.groups)
    corpus = _cut(corpus.held_out(options.at) if options.holdout else corpus, options.stream, options.following)
    names = corpus.largest(options.least, MIN_TEST, options.topics.split(","))[: options.most]
    if not names:
        raise typer.BadParameter("no topic has enough documents in training and in test", param_hint="topics")
    if options.duplicates:  # only now: copies do not make a topic large
        corpus = with_duplicates(corpus, options.duplicates, options.seed)
    relevant = {name: corpus.relevant(name) for name in names}
    relevant = _drifting(relevant, corpus.train // 2) if options.drift else relevant
    plans = {name: Plan.of(options.reader, relevant[name], name, options.seed) for name in names}
    title = f"{corpus.name}, {len(names)} topics, {corpus.train} documents pass, {len(corpus.documents)} in all"
    queries = read_queries(options.queries)
    specs = {
        name: TopicSpec(name, queries.get(name, name), options.goal, options.learner, audit=options.audit)
        for name in names
    }
    if options.http:
        results = remote.simulate(options.http, corpus, relevant, specs, plans, unrepeated(corpus), options.batch)
        report.summary(title, options.goal, results)
    else:
        results, bounds, covers, ceiling = _simulate(corpus, options.batch, relevant, specs, plans, options.goal)
        report.summary(title, options.goal, results, bounds, covers, ceiling)
    if options.each:
        report.topics(results)
    if options.out:
        report.write_json(options.out, {"corpus": corpus.name, "title": title}, results)


def _simulate(
    corpus: Corpus,
    batch: int,
    relevant: Mapping[str, Bools],
    specs: Mapping[str, TopicSpec],
    plans: Mapping[str, Plan],
    goal: Targets,
) -> tuple[list[Attainment], Interval | None, bool, list[FollowUp]]:
    """The topics one by one in this process; then bounds of recall over all of them, and whether they hold; and what an
    SVM with all labels, cut in hindsight, makes of each."""
    stream, counted = Stream(corpus, batch, whole=True), unrepeated(corpus)
    runs = {name: run(stream, relevant[name], specs[name], plans[name]) for name in tracked(list(specs), "topics")}
    results = [measure(of_topic, stream, relevant[name], name, counted) for name, of_topic in runs.items()]
    bounds = pooled_recall((of_topic.model.evidence, of_topic.ever) for of_topic in runs.values())
    decided = [(of_topic.stream, relevant[name][of_topic.start : corpus.train]) for name, of_topic in runs.items()]
    ceiling = in_hindsight(stream, relevant, goal, counted) if goal.min_precision is not None else []
    return results, bounds, pooled_covers(bounds, decided), ceiling


def _cut(corpus: Corpus, stream: int, following: int) -> Corpus:
    first, last = max(0, corpus.train - stream), min(len(corpus.documents), corpus.train + following)
    return Corpus(corpus.name, corpus.documents[first:last], corpus.topics[first:last], corpus.train - first)


def _drifting(relevant: Mapping[str, Bools], at: int) -> dict[str, Bools]:
    """Relevance to readers who turn to the next topic at this position."""
    labels = list(relevant.values())
    following = [*labels[1:], labels[0]]
    return {name: drifting(relevant[name], after, at) for name, after in zip(relevant, following, strict=True)}


if __name__ == "__main__":
    app()
