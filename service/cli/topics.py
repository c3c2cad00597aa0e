"""`sluice topics`: creates, lists, changes and deletes topics, and shows their judgements, versions and metrics."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from service.cli.terminal import (
    LOCALHOST,
    AsJson,
    Misused,
    Output,
    Url,
    connected,
    has_no_command,
    judged_as,
    literal,
    table,
)
from service.cli.topic_options import TopicOptions, with_topic_options

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

    from service.schemas import PastJudgement, Topic
    from service.schemas.metrics import Curve, Metrics, Overview, Preview, Tradeoff
    from service.schemas.models import Version

app = typer.Typer(rich_markup_mode=None)

Id = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic's id.")]


@app.callback(invoke_without_command=True)
def topics(context: typer.Context, url: Url = LOCALHOST, as_json: AsJson = False) -> None:
    """Manage topics; without a command, list them."""
    if has_no_command(context):
        list_topics(url, as_json)


@app.command("list")
def list_topics(url: Url = LOCALHOST, as_json: AsJson = False) -> None:
    """List all topics, sorted by id."""
    columns = ("topic", "name", "[version]", "[relevant]", "[irrelevant]", "[passed]", "[accepted]", "goal")
    with connected(url) as sluice:
        Output(as_json).put_all(sluice.topics(), columns, _row)


@app.command()
def show(topic: Id, url: Url = LOCALHOST, as_json: AsJson = False) -> None:
    """Show a topic's settings and status."""
    with connected(url) as sluice:
        _put(sluice.topic(topic), as_json)


@app.command()
@with_topic_options
def create(topic: Id, options: TopicOptions, url: Url = LOCALHOST, as_json: AsJson = False) -> None:
    """Create a topic; with a query, it can decide at once."""
    with connected(url) as sluice:
        _put(sluice.create({"id": topic} | options.settings()), as_json)


@app.command()
@with_topic_options
def change(
    topic: Id,
    options: TopicOptions,
    preview: Annotated[bool, typer.Option("--preview", help="Change nothing; show what would change.")] = False,
    url: Url = LOCALHOST,
    as_json: AsJson = False,
) -> None:
    """Change some of a topic's settings.

    Settings that are not given stay as they are. --goal and --maximise replace the whole goal, --pin and --ban all
    pins or bans; '' removes them.
    """
    settings = options.settings()
    if not settings:
        raise Misused("Give at least one setting to change.")
    with connected(url) as sluice:
        nested = settings.keys() & {"rules", "terms"}
        current = sluice.topic(topic).model_dump(include=nested) if nested else {}
        settings |= {name: current[name] | settings[name] for name in nested}
        if preview:
            settings.pop("name", None)
            Output(as_json).put(sluice.preview(topic, settings), _comparison)
        else:
            _put(sluice.change(topic, settings), as_json)


@app.command()
def delete(topic: Id, url: Url = LOCALHOST) -> None:
    """Delete a topic and everything about it."""
    with connected(url) as sluice:
        sluice.delete(topic)


@app.command()
def judgements(topic: Id, url: Url = LOCALHOST, as_json: AsJson = False) -> None:
    """List the judgements in force, newest first."""

    def row(judgement: "PastJudgement") -> tuple[object, ...]:
        relevant, at = judged_as(judgement, ("yes", "no")), f"{judgement.at:%Y-%m-%d %H:%M:%S}"
        return judgement.document, relevant, judgement.by or "", at, judgement.before.decision, judgement.title

    with connected(url) as sluice:
        columns = ("document", "relevant", "by", "at", "was", "title")
        Output(as_json).put_all(sluice.judgements(topic), columns, row)


@app.command()
def withdraw(
    topic: Id,
    document: Annotated[str, typer.Argument(metavar="DOCUMENT", help="The document's id.")],
    url: Url = LOCALHOST,
    as_json: AsJson = False,
) -> None:
    """Withdraw a judgement.

    The model becomes what it would have been without it.
    """
    with connected(url) as sluice:
        Output(as_json).put(
            sluice.withdraw(topic, document),
            lambda done: f"withdrawn  {done.topic}  {literal(done.document)}  version {done.version}",
        )


@app.command()
def versions(topic: Id, url: Url = LOCALHOST, as_json: AsJson = False) -> None:
    """List the published versions, newest first."""

    def row(version: "Version") -> tuple[object, ...]:
        created = f"{version.created:%Y-%m-%d %H:%M:%S}"
        return version.version, created, version.cause, version.learner, version.digest

    with connected(url) as sluice:
        columns = ("[version]", "created", "cause", "learner", "digest")
        Output(as_json).put_all(sluice.versions(topic), columns, row)


@app.command()
def restore(
    topic: Id,
    version: Annotated[int, typer.Argument(metavar="VERSION", help="The number of the version.")],
    url: Url = LOCALHOST,
    as_json: AsJson = False,
) -> None:
    """Serve an old version again, under a new number."""
    with connected(url) as sluice:
        _put(sluice.restore(topic, version), as_json)


@app.command()
def metrics(topic: Id, url: Url = LOCALHOST, as_json: AsJson = False) -> None:
    """Show how well a topic does, with intervals."""
    with connected(url) as sluice:
        Output(as_json).put(sluice.metrics(topic), _estimates)


@app.command()
def overview(url: Url = LOCALHOST, as_json: AsJson = False) -> None:
    """Show how well all topics do, on average."""
    with connected(url) as sluice:
        Output(as_json).put(sluice.overview(), _averages)


@app.command()
def curve(topic: Id, url: Url = LOCALHOST, as_json: AsJson = False) -> None:
    """Show precision and recall at every cut."""
    with connected(url) as sluice:
        Output(as_json).put(sluice.curve(topic), _curve)


@app.command()
def tradeoff(topic: Id, url: Url = LOCALHOST, as_json: AsJson = False) -> None:
    """Show the least error for each share that is left undecided."""
    with connected(url) as sluice:
        Output(as_json).put(sluice.tradeoff(topic), _tradeoff)


def _put(topic: "Topic", as_json: bool) -> None:
    Output(as_json).put(topic, _table)


def _row(topic: "Topic") -> tuple[object, ...]:
    status, passed = topic.status, topic.status.passed
    counts = (passed.documents, passed.accepted) if passed else ("", "")
    judged = status.judged
    goal = status.goal.state if status.goal else ""
    return topic.id, topic.name, status.version, judged.relevant, judged.irrelevant, *counts, goal


def _table(topic: "Topic") -> "Table":
    status = topic.status
    rows: list[tuple[str, object]] = [("topic", topic.id), ("name", topic.name), ("query", topic.query)]
    rows += [("learner", topic.learner.kind), ("version", status.version)]
    rows += [(rule, text) for rule, text in topic.rules.model_dump().items() if text]
    rows += [(kind, ", ".join(terms)) for kind, terms in topic.terms.model_dump().items() if terms]
    rows.append(("judged", f"{status.judged.relevant} relevant, {status.judged.irrelevant} not"))
    if status.passed:
        counts = status.passed
        detail = f"{counts.documents:,}: {counts.accepted:,} accepted, {counts.abstained:,} abstained on"
        rows.append(("passed", detail))
    if status.goal:
        rows.append(("goal", f"{status.goal.state}. {status.goal.detail}"))
        for part in ("precision", "recall", "error", "abstain"):
            if estimate := getattr(status.goal, part):
                rows.append((f"  {part}", f"{estimate.state}: {_interval(estimate)}"))
        if (best := status.goal.maximise) and best.estimate is not None:
            rows.append(("  maximise", f"{best.state}: about {best.estimate:.3g}"))
    rows += [("warning", warning) for warning in topic.warnings]
    return table("", "", rows=rows)


def _comparison(preview: "Preview") -> "Group":
    from rich.console import Group

    columns = ("", "[of]", "[accept]", "[abstain]", "[reject]", "[precision]", "[recall]", "[error]")
    rows: list[tuple[object, ...]] = []
    for name, compared in (("judged", preview.judged), ("unjudged", preview.unjudged)):
        for when, counts in (("now", compared.before), ("then", compared.after)):
            decisions = (counts.accepted, counts.abstained, counts.rejected)
            shares = (counts.precision, counts.recall, counts.error)
            texts = ("" if share is None else f"{share:.2f}" for share in shares)
            rows.append((f"{name}, {when}", compared.documents, *decisions, *texts))
    statuses = (("goal, now", preview.before), ("goal, then", preview.after))
    goals = [(when, f"{status.goal.state}. {status.goal.detail}") for when, status in statuses if status.goal]
    changed = [(f"{example.before} → {example.after}", example.document, example.title) for example in preview.examples]
    return Group(table(*columns, rows=rows), table("", "", rows=goals), table("", "", "", rows=changed))


def _estimates(metrics: "Metrics") -> "Table":
    from service.schemas.metrics import MetricFigures

    rows: list[tuple[str, object]] = [(name, _interval(getattr(metrics, name))) for name in MetricFigures.model_fields]
    rows += [("judgements", metrics.judgements), ("drift", metrics.drift.detail)]
    return table("", "", rows=rows + ([("flow", metrics.flow.detail)] if metrics.flow.detail else []))


def _averages(overview: "Overview") -> "Table":
    micro, macro = overview.micro, overview.macro
    rows = [
        (name, _interval(getattr(micro, name)) if hasattr(micro, name) else "", _interval(getattr(macro, name)))
        for name in type(macro).model_fields
    ]
    return table(f"{overview.judged} of {overview.topics} topics judged", "micro", "macro", rows=rows)


def _curve(curve: "Curve") -> "Group":
    from rich.console import Group

    points = [("", point) for point in curve.points] + ([("now", curve.now)] if curve.now else [])
    rows = [(when, f"{p.accept_above:.4g}", _interval(p.precision), _interval(p.recall)) for when, p in points]
    columns = ("", "[accept above]", "precision", "recall")
    return Group(table(*columns, rows=rows), literal(curve.detail))


def _tradeoff(tradeoff: "Tradeoff") -> "Group":
    from rich.console import Group

    points = [("", point) for point in tradeoff.points] + ([("now", tradeoff.now)] if tradeoff.now else [])
    rows = [
        (
            when,
            f"{p.loss:.3f}",
            f"{p.error:.3f}  ({p.low:.3f} to {p.high:.3f})",
            f"{p.reject_below:.4g}",
            f"{p.accept_above:.4g}",
        )
        for when, p in points
    ]
    columns = ("", "[undecided]", "error", "[reject below]", "[accept above]")
    return Group(table(*columns, rows=rows), literal(tradeoff.detail))


def _interval(estimate: Any) -> str:
    if estimate is None or estimate.low is None:
        return "nothing known yet"
    value = "?" if estimate.estimate is None else f"{estimate.estimate:.3f}"
    return f"{value}  ({estimate.low:.3f} to {estimate.high:.3f})"
