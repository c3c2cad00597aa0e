"""`sluice topics`: standing queries, made, listed, read, changed, deleted; their judgements, versions and figures."""

import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from service.cli.terminal import (
    HERE,
    AsJson,
    Output,
    Params,
    Url,
    connected,
    literal,
    own_options,
    params_of,
    table,
)

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
Query = Annotated[str | None, typer.Option(help="What it is about, in a few words.")]
Name = Annotated[str | None, typer.Option(help="For people.")]
Learner = Annotated[str | None, typer.Option(help="Such as wh, eg, winnow or auto.")]
Goal = Annotated[list[str] | None, typer.Option(metavar="NAME=SHARE", help="Such as min_precision=.9; any number.")]
AcceptIf = Annotated[str | None, typer.Option(help="A rule that accepts, whatever the model thinks.")]
RejectIf = Annotated[str | None, typer.Option(help="A rule that rejects, whatever the model thinks.")]
Pin = Annotated[list[str] | None, typer.Option(metavar="TERM", help="A term that speaks for it; any number.")]
Ban = Annotated[list[str] | None, typer.Option(metavar="TERM", help="A term that has no say; any number.")]
Audit = Annotated[float | None, typer.Option(help="Share of rejected documents drawn for audit.")]


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
def create(
    topic: Id,
    query: Query = None,
    name: Name = None,
    learner: Learner = None,
    param: Params = None,
    goal: Goal = None,
    accept_if: AcceptIf = None,
    reject_if: RejectIf = None,
    pin: Pin = None,
    ban: Ban = None,
    audit: Audit = None,
    url: Url = HERE,
    as_json: AsJson = False,
) -> None:
    """Make a topic. A query is enough: it works at once."""
    fields = _fields(query, name, _learner(learner, param), goal, audit)
    fields |= _rules(accept_if, reject_if) | _terms(pin, ban)
    with connected(url) as sluice:
        _put(sluice.create({"id": topic} | fields), as_json)


@app.command()
def change(
    topic: Id,
    query: Query = None,
    name: Name = None,
    learner: Learner = None,
    param: Params = None,
    goal: Goal = None,
    accept_if: AcceptIf = None,
    reject_if: RejectIf = None,
    pin: Pin = None,
    ban: Ban = None,
    audit: Audit = None,
    preview: Annotated[bool, typer.Option("--preview", help="Change nothing; show what would change.")] = False,
    url: Url = HERE,
    as_json: AsJson = False,
) -> None:
    """Change some of a topic's settings. Of goals, of pins, and of bans, all that shall be are named; '' takes them
    back."""
    fields = _fields(query, name, _learner(learner, param), goal, audit)
    with connected(url) as sluice:
        rules = _rules(accept_if, reject_if)
        if rules:  # those that are not named stay
            rules = {"rules": sluice.topic(topic).rules.model_dump() | rules["rules"]}
        terms = _terms(pin, ban)
        if terms:
            terms = {"terms": sluice.topic(topic).terms.model_dump() | terms["terms"]}
        if not fields and not rules and not terms:
            raise typer.BadParameter("name what shall be changed")
        if preview:
            asked = {field: value for field, value in (fields | rules | terms).items() if field != "name"}
            Output(as_json).put(sluice.preview(topic, asked), _previewed)
        else:
            _put(sluice.change(topic, fields | rules | terms), as_json)


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


def _learner(kind: str | None, params: list[str] | None) -> dict[str, Any] | None:
    if params and not kind:
        raise typer.BadParameter("--param goes with --learner")
    return {"kind": kind, "params": params_of(params)} if kind else None


def _fields(
    query: str | None, name: str | None, learner: dict[str, Any] | None, goal: list[str] | None, audit: float | None
) -> dict[str, Any]:
    if audit is not None and not math.isfinite(audit):
        raise typer.BadParameter("--audit takes a share, such as .01")
    given: dict[str, Any] = {"query": query, "name": name, "learner": learner, "audit": audit}
    given["goal"] = dict(map(_part_of_goal, filter(None, goal))) if goal else None
    return {field: value for field, value in given.items() if value is not None}


def _part_of_goal(text: str) -> tuple[str, float]:
    name, _, share = text.partition("=")
    try:
        value = float(share)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise typer.BadParameter(f"{text!r} is not like min_precision=.9")
    return name, value


def _rules(accept_if: str | None, reject_if: str | None) -> dict[str, Any]:
    given = {name: rule for name, rule in (("accept_if", accept_if), ("reject_if", reject_if)) if rule is not None}
    return {"rules": given} if given else {}


def _terms(pin: list[str] | None, ban: list[str] | None) -> dict[str, Any]:
    given = {name: [one for one in terms if one] for name, terms in (("pin", pin), ("ban", ban)) if terms}
    return {"terms": given} if given else {}


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
