"""Whether Sluice keeps its promises: a labelled stream, simulated readers, and a goal for every topic."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from models.goals.promises import Targets
from models.goals.report import pooled
from scripts.common.corpus import Corpus, read, read_queries
from scripts.common.report import tracked
from scripts.evaluation.stream import Stream
from scripts.simulation import remote, report
from scripts.simulation.attainment import passed, pooled_covers
from scripts.simulation.plant_duplicates import kinds, with_duplicates
from scripts.simulation.reader import Plan, SimulatedReader, drifting
from scripts.simulation.topic import TopicSpec, measure, run

app = typer.Typer(add_completion=False, help=__doc__, pretty_exceptions_enable=False)


@app.command()
def simulate(
    path: Annotated[Path, typer.Argument(help="JSON lines, gzipped or not; see scripts/common/corpus.py")],
    topics: Annotated[str, typer.Option(help="patterns with commas between; !pattern leaves out")] = "*",
    least: Annotated[int, typer.Option(help="relevant documents that a topic has in the stream, at least")] = 30,
    most: Annotated[int, typer.Option(help="topics at most, the largest")] = 10**6,
    min_precision: Annotated[float | None, typer.Option(min=0, max=1)] = 0.9,
    min_recall: Annotated[float | None, typer.Option(min=0, max=1)] = 0.9,
    max_abstain: Annotated[float | None, typer.Option(min=0, max=1)] = 0.15,
    max_error: Annotated[float | None, typer.Option(min=0, max=1)] = None,
    everything: Annotated[bool, typer.Option(help="judge rejected documents, too")] = False,
    part: Annotated[float, typer.Option(min=0, max=1, help="share of what is shown that is judged")] = 1.0,
    delay: Annotated[int, typer.Option(min=0, help="documents between the showing and the judgement")] = 0,
    noise: Annotated[float, typer.Option(min=0, max=1, help="share of the labels that are wrong")] = 0.0,
    audit: Annotated[float, typer.Option(min=0, max=1, help="chance of a rejected document to be judged")] = 0.01,
    seeds: Annotated[int, typer.Option(min=0, help="relevant documents given at the start")] = 3,
    drift: Annotated[bool, typer.Option(help="half-way, the reader turns to another topic")] = False,
    duplicates: Annotated[float, typer.Option(min=0, max=1, help="share of documents that come four times")] = 0.0,
    stream: Annotated[int, typer.Option(help="training documents at most, the last")] = 15_000,
    following: Annotated[int, typer.Option(help="documents that measure at most, the first")] = 5_000,
    learner: Annotated[str, typer.Option(help="which learner")] = "wh",
    queries: Annotated[Path | None, typer.Option(help="JSON, topic: query; a topic's name without it")] = None,
    holdout: Annotated[bool, typer.Option(help="measure on the last quarter of training, not on test")] = False,
    at: Annotated[
        float, typer.Option(min=0, max=1, help="share of training that passes before, with --holdout")
    ] = 0.75,
    seed: Annotated[int, typer.Option(help="of audits, and of what the reader does by chance")] = 0,
    http: Annotated[str | None, typer.Option(help="address of a running service to go through")] = None,
    each: Annotated[bool, typer.Option(help="also a table of all topics")] = False,
    out: Annotated[Path | None, typer.Option(help="JSON of everything")] = None,
) -> None:
    """Every topic promises what it can; then what came is compared with what was promised."""
    corpus = read(path)
    corpus = _cut(corpus.held_out(at) if holdout else corpus, stream, following)
    names = corpus.largest(least, 3, topics.split(","))[:most]  # copies do not make a topic large
    corpus = with_duplicates(corpus, duplicates, seed) if duplicates else corpus
    if not names:
        raise typer.BadParameter("no topic has enough documents in training and in test", param_hint="topics")
    asked = read_queries(queries)
    reader = SimulatedReader(everything, part, delay, noise, audit, seeds)
    goal = Targets(max_error, min_precision, min_recall, max_abstain)
    wanted = {name: corpus.relevant(name) for name in names}
    if drift:
        turned = {name: names[(i + 1) % len(names)] for i, name in enumerate(names)}
        wanted = {name: drifting(wanted[name], wanted[turned[name]], corpus.train // 2) for name in names}
    plans = {name: Plan.of(reader, wanted[name], name, seed) for name in names}
    title = f"{corpus.name}, {len(names)} topics, {corpus.train} documents pass, {len(corpus.documents)} in all"
    counted = kinds(corpus)
    if http:
        results = remote.simulate(http, corpus, wanted, asked, goal, plans, counted)
        report.summary(title, goal, results)
    else:
        passing = Stream(replace(corpus, train=len(corpus.documents)))
        results, promised = [], []
        for name in tracked(names, "topics"):
            wish = TopicSpec(name, asked.get(name, name), goal, learner)
            course, whole = run(passing, wanted[name], wish, plans[name], corpus.train)
            results.append(measure(passing, wanted[name], wish, course, whole, counted))
            promised.append((course, wanted[name][corpus.train - len(course.decisions) : corpus.train]))
        together = pooled((course.model.evidence, passed(course.decisions)) for course, _ in promised)
        covers = pooled_covers(together, [(course.decisions, relevant) for course, relevant in promised])
        report.summary(title, goal, results, together, covers)
    if each:
        report.topics(results)
    if out:
        report.write_json(out, {"corpus": corpus.name, "title": title}, results)


def _cut(corpus: Corpus, stream: int, following: int) -> Corpus:
    first, last = max(0, corpus.train - stream), min(len(corpus.documents), corpus.train + following)
    return Corpus(corpus.name, corpus.documents[first:last], corpus.topics[first:last], corpus.train - first)


if __name__ == "__main__":
    app()
