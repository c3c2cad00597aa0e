"""`sluice topics`: standing queries, made, listed, read, changed, deleted; their judgements, versions and figures."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from service.cli.terminal import (
    HERE,
    AsJson,
    Output,
    Url,
    connected,
    literal,
    own_options,
    table,
)
from service.cli.topic_options import TopicOptions, with_topic_options

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

    from service.schemas import PastJudgement, Status, Topic
    from service.schemas.metrics import Metrics, Preview
    from service.schemas.models import Version

app = typer.Typer(
    help="Standing queries: list, show, create, change, delete, judgements, withdraw, versions, restore, metrics.",
    rich_markup_mode=None,
)

Id = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic's id.")]


@app.callback(invoke_without_command=True)
def topics(context: typer.Context, url: Url = HERE, as_json: AsJson = False) -> None:
    """Standing queries; without a command: list them."""
    if own_options(context):
        list_topics(url, as_json)


@app.command("list")
def list_topics(url: Url = HERE, as_json: AsJson = False) -> None:
    """All topics, by id."""
    columns = ("topic", "name", "[version]", "[relevant]", "[irrelevant]", "[passed]", "[accepted]", "goal")
    with connected(url) as sluice:
        Output(as_json).put_all(sluice.topics(), columns, _row)


@app.command()
def show(topic: Id, url: Url = HERE, as_json: AsJson = False) -> None:
    """A topic: its settings, and how it stands."""
    with connected(url) as sluice:
        _put(sluice.topic(topic), as_json)


@app.command()
@with_topic_options
def create(topic: Id, options: TopicOptions, url: Url = HERE, as_json: AsJson = False) -> None:
    """Create a topic. A query is enough for it to decide at once."""
    with connected(url) as sluice:
        _put(sluice.create({"id": topic} | options.settings()), as_json)


@app.command()
@with_topic_options
def change(
    topic: Id,
    options: TopicOptions,
    preview: Annotated[bool, typer.Option("--preview", help="Change nothing; show what would change.")] = False,
    url: Url = HERE,
    as_json: AsJson = False,
) -> None:
    """Change some of a topic's settings.

    What is not given stays. --goal, --pin and --ban replace all goals, pins or bans that there were; '' removes them.
    """
    settings = options.settings()
    if not settings:
        raise typer.BadParameter("give at least one setting to change")
    with connected(url) as sluice:
        nested = settings.keys() & {"rules", "terms"}
        current = sluice.topic(topic).model_dump(include=nested) if nested else {}
        settings |= {name: current[name] | settings[name] for name in nested}
        if preview:
            settings.pop("name", None)
            Output(as_json).put(sluice.preview(topic, settings), _previewed)
        else:
            _put(sluice.change(topic, settings), as_json)


@app.command()
def delete(topic: Id, url: Url = HERE) -> None:
    """Delete a topic and everything about it."""
    with connected(url) as sluice:
        sluice.delete(topic)


@app.command()
def judgements(topic: Id, url: Url = HERE, as_json: AsJson = False) -> None:
    """The judgements that stand, newest first."""

    def row(one: "PastJudgement") -> tuple[object, ...]:
        relevant = "yes" if one.relevant else "no"
        return one.document, relevant, one.by or "", f"{one.at:%Y-%m-%d %H:%M:%S}", one.before.decision, one.title

    with connected(url) as sluice:
        columns = ("document", "relevant", "by", "at", "was", "title")
        Output(as_json).put_all(sluice.judgements(topic), columns, row)


@app.command()
def withdraw(
    topic: Id,
    document: Annotated[str, typer.Argument(help="The document's id.")],
    url: Url = HERE,
    as_json: AsJson = False,
) -> None:
    """Take a judgement back: the model becomes what it would have been without it."""
    with connected(url) as sluice:
        done = sluice.withdraw(topic, document)
        Output(as_json).put(
            done, lambda said: f"withdrawn  {said.topic}  {literal(said.document)}  version {said.version}"
        )


@app.command()
def versions(topic: Id, url: Url = HERE, as_json: AsJson = False) -> None:
    """Every published model, newest first."""

    def row(one: "Version") -> tuple[object, ...]:
        return one.version, f"{one.created:%Y-%m-%d %H:%M:%S}", one.cause, one.learner, one.digest

    with connected(url) as sluice:
        columns = ("[version]", "created", "cause", "learner", "digest")
        Output(as_json).put_all(sluice.versions(topic), columns, row)


@app.command()
def restore(
    topic: Id, version: Annotated[int, typer.Argument(help="Which one.")], url: Url = HERE, as_json: AsJson = False
) -> None:
    """Serve an old version again, as a new one."""
    with connected(url) as sluice:
        _put(sluice.restore(topic, version), as_json)


@app.command()
def metrics(topic: Id, url: Url = HERE, as_json: AsJson = False) -> None:
    """How a topic has done, each figure with an interval."""
    with connected(url) as sluice:
        Output(as_json).put(sluice.metrics(topic), _figures)


def _put(topic: "Topic", as_json: bool) -> None:
    Output(as_json).put(topic, _shown)


def _row(topic: "Topic") -> tuple[object, ...]:
    status, passed = topic.status, topic.status.passed
    seen = (passed.documents, passed.accepted) if passed else ("", "")
    judged = status.judged
    goal = status.goal.state if status.goal else ""
    return topic.id, topic.name, status.version, judged.relevant, judged.irrelevant, *seen, goal


def _shown(topic: "Topic") -> "Table":
    status = topic.status
    rows: list[tuple[str, object]] = [("topic", topic.id), ("name", topic.name), ("query", topic.query)]
    rows += [("learner", topic.learner.kind), ("version", status.version)]
    rows += [(rule, text) for rule, text in topic.rules.model_dump().items() if text]
    rows += [(said, ", ".join(terms)) for said, terms in topic.terms.model_dump().items() if terms]
    rows.append(("judged", f"{status.judged.relevant} relevant, {status.judged.irrelevant} not"))
    if status.passed:
        counts = status.passed
        said = f"{counts.documents:,}: {counts.accepted:,} accepted, {counts.abstained:,} abstained from"
        rows.append(("passed", said))
    if status.goal:
        rows.append(("goal", f"{status.goal.state}. {status.goal.detail}"))
        for part in ("precision", "recall", "error", "abstain"):
            if estimate := getattr(status.goal, part):
                rows.append((f"  {part}", f"{estimate.state}: {_interval(estimate)}"))
    return table("", "", rows=rows)


def _previewed(found: "Preview") -> "Group":
    from rich.console import Group

    columns = ("", "[of]", "[accept]", "[abstain]", "[reject]", "[precision]", "[recall]", "[error]")
    rows: list[tuple[object, ...]] = []
    for name, compared in (("judged", found.judged), ("unjudged", found.unjudged)):
        for when, one in (("now", compared.before), ("then", compared.after)):
            shares = ("" if share is None else f"{share:.2f}" for share in (one.precision, one.recall, one.error))
            rows.append((f"{name}, {when}", compared.documents, one.accepted, one.abstained, one.rejected, *shares))
    moved = [(f"{one.before} → {one.after}", one.document, one.title) for one in found.examples]
    goals = [(when, f"{one.goal.state}. {one.goal.detail}") for when, one in _both(found) if one.goal]
    return Group(table(*columns, rows=rows), table("", "", rows=goals), table("", "", "", rows=moved))


def _both(found: "Preview") -> "list[tuple[str, Status]]":
    return [("goal, now", found.before), ("goal, then", found.after)]


def _figures(found: "Metrics") -> "Table":
    names = ("precision", "recall", "f1", "error", "abstain", "sap", "t11su")
    rows: list[tuple[str, object]] = [(name, _interval(getattr(found, name))) for name in names]
    rows += [("judgements", found.judgements), ("drift", found.drift.detail)]
    return table("", "", rows=rows + ([("flow", found.flow.detail)] if found.flow.detail else []))


def _interval(figure: Any) -> str:
    if figure is None or figure.low is None:
        return "nothing is known yet"
    estimate = "?" if figure.estimate is None else f"{figure.estimate:.3f}"
    return f"{estimate}  ({figure.low:.3f} to {figure.high:.3f})"
