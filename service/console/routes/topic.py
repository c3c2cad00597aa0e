"""One topic: how it does, what it goes by, and everything that can be changed about it."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Annotated, Any

from fastapi import Path, Request
from pydantic import ValidationError
from starlette.responses import Response

from service import schemas
from service.api import present
from service.api.deps import ReadySluice, caller_of
from service.api.routes.flow import RoutePath, find_route, route_list
from service.api.routes.versions import load_versions
from service.console import charts
from service.console.forms import Form
from service.console.pages import is_fragment, new_router, page, see_other
from service.errors import BadInput
from service.feedback.curves import scored_evidence, tradeoff_of
from service.feedback.metrics import evidence, metrics
from service.schemas import Goal, Pins, Rules, TopicChange
from service.schemas.fields import TopicId
from service.schemas.jobs import Backfill, Job, Retrain
from service.schemas.metrics import PreviewRequest
from service.schemas.parsing import from_validation
from service.sluice import Sluice
from service.topics.state import TopicState

LISTED = 20  # versions, judgements and jobs that are shown
TARGETS = ("min_precision", "min_recall", "max_abstain", "max_error")
JOBS: dict[str, Any] = {"backfill": Backfill, "retrain": Retrain}
METHODS = ("svm", "rocchio", "logistic")

Topic = Annotated[TopicId, Path()]

router = new_router()


@router.get("/console/topics/{topic}", include_in_schema=False)
async def show(request: Request, sluice: ReadySluice, topic: Topic) -> Response:
    """The page of a topic."""
    published = await sluice.topics.find(topic)
    (counts,) = await sluice.counters.load([topic])
    versions, _ = await load_versions(sluice, topic, 0, LISTED)
    judgements, more = await sluice.judge.page(topic, None, LISTED)
    model = present.model_info(published, await sluice.learning.read(topic, TopicState.terms))
    caller = caller_of(request)
    may_see_routes = caller is None or caller.may("manage")  # as in the API
    return page(
        request,
        "topic.html",
        topic=present.topic(published, counts, sluice.config),
        model=model,
        versions=versions,
        judgements=judgements,
        more_judgements=more,
        routes=(await route_list(sluice, await sluice.routes.load(topic))).items if may_see_routes else None,
        jobs=await _jobs(sluice, topic),
        methods=METHODS,
    )


@router.get("/console/topics/{topic}/charts", include_in_schema=False)
async def show_charts(request: Request, sluice: ReadySluice, topic: Topic) -> Response:
    """How it has done, drawn and as tables."""
    published = await sluice.topics.find(topic)
    judged = await sluice.learning.read(topic, evidence)
    scored = await sluice.learning.read(topic, scored_evidence)
    (counts,) = await sluice.counters.load([topic])
    measured = await sluice.pool.run(metrics, published, judged, counts)
    curve = await sluice.pool.run(tradeoff_of, published, scored, counts)
    shown = present.topic(published, counts, sluice.config)
    histogram = charts.histogram(await sluice.newest.scores(published), shown.status)
    return page(
        request,
        "charts.html",
        topic=shown,
        metrics=measured,
        quality=charts.quality(measured),
        measures=charts.MEASURES,
        histogram=histogram,
        tradeoff=charts.tradeoff(curve),
        curve=curve,
    )


@router.get("/console/topics/{topic}/jobs", include_in_schema=False)
async def show_jobs(request: Request, sluice: ReadySluice, topic: Topic) -> Response:
    """Its jobs, as they are at this moment."""
    return page(request, "jobs.html", jobs=await _jobs(sluice, topic), where=f"/console/topics/{topic}/jobs")


@router.post("/console/topics/{topic}/preview", include_in_schema=False)
async def preview(request: Request, sluice: ReadySluice, topic: Topic) -> Response:
    """What the settings in the form would change."""
    published = await sluice.topics.find(topic)
    form = await Form.read(request, sluice.config)
    asked = _settings(form, published.settings.goal)
    with_effect = {name: value for name, value in asked.items() if name in PreviewRequest.model_fields}
    outcome = await sluice.previews.preview(topic, PreviewRequest(**with_effect, limit=8))
    return page(request, "preview.html", preview=present.preview(outcome, sluice.config))


@router.post("/console/topics/{topic}/settings", include_in_schema=False)
async def change(request: Request, sluice: ReadySluice, topic: Topic) -> Response:
    """Change its name, its query, its goal and its rules."""
    published = await sluice.topics.find(topic)
    form = await Form.read(request, sluice.config)
    await sluice.topics.change(topic, TopicChange(**_settings(form, published.settings.goal)), None)
    return see_other(f"/console/topics/{topic}")


@router.post("/console/topics/{topic}/terms", include_in_schema=False)
async def change_terms(request: Request, sluice: ReadySluice, topic: Topic) -> Response:
    """Pin a word, ban it, or do neither any more."""
    published = await sluice.topics.find(topic)
    form = await Form.read(request, sluice.config)
    term, how = form.one("term").strip(), form.one("how")
    terms = {
        name: [each for each in getattr(published.settings.terms, name) if each != term] for name in ("pin", "ban")
    }
    if how in terms:
        terms[how].append(term)
    elif how != "free":
        raise BadInput("A word is pinned, banned, or free.")
    with _in_words():
        pins = Pins(**terms)
    await sluice.topics.change(topic, TopicChange(terms=pins), None)
    return see_other(f"/console/topics/{topic}#words")


@router.post("/console/topics/{topic}/restore", include_in_schema=False)
async def restore(request: Request, sluice: ReadySluice, topic: Topic) -> Response:
    """Serve an earlier version again."""
    version = (await Form.read(request, sluice.config)).one("version")
    if not version.isdecimal() or not 0 < int(version) < 2**53:
        raise BadInput("A version is a whole number above 0.")
    await sluice.topics.restore(topic, int(version))
    return see_other(f"/console/topics/{topic}#versions")


@router.post("/console/topics/{topic}/withdraw", include_in_schema=False)
async def withdraw(request: Request, sluice: ReadySluice, topic: Topic) -> Response:
    """Take one of its judgements back."""
    await sluice.judge.withdraw(topic, (await Form.read(request, sluice.config)).one("document"))
    return see_other(f"/console/topics/{topic}#judgements")


@router.post("/console/topics/{topic}/jobs", include_in_schema=False)
async def start_job(request: Request, sluice: ReadySluice, topic: Topic) -> Response:
    """Start a job for this topic alone."""
    await sluice.topics.find(topic)
    form = await Form.read(request, sluice.config)
    kind = form.one("kind")
    if kind not in JOBS:
        raise BadInput("A job is retrain or backfill.")
    fields = {"method": form.one("method")} if kind == "retrain" else {}
    with _in_words():
        job = JOBS[kind](kind=kind, topics=[topic], **fields)
    await sluice.jobs.submit(job)
    if is_fragment(request):
        return page(request, "jobs.html", jobs=await _jobs(sluice, topic), where=f"/console/topics/{topic}/jobs")
    return see_other(f"/console/topics/{topic}#jobs")


@router.post("/console/topics/{topic}/routes/{route}/replay", include_in_schema=False)
async def replay(request: Request, sluice: ReadySluice, topic: Topic, route: RoutePath) -> Response:
    """Deliver again what was given up."""
    stored = await find_route(sluice, topic, route)
    await sluice.routes.replay(stored, None, sluice.config.retry_s)
    return see_other(f"/console/topics/{topic}#routes")


@router.post("/console/topics/{topic}/delete", include_in_schema=False)
async def delete(request: Request, sluice: ReadySluice, topic: Topic) -> Response:
    """Delete the topic and everything about it, if its id was typed."""
    typed = (await Form.read(request, sluice.config)).one("id").strip()
    if typed != topic:
        raise BadInput(f"To delete this topic for good, type its id: {topic}.")
    await sluice.topics.delete(topic)
    return see_other("/console/topics")


async def _jobs(sluice: Sluice, topic: str) -> list[Job]:
    """The newest jobs that name this topic, or all."""

    def wanted(job: Job) -> bool:
        topics = job.request.get("topics") or [job.request.get("topic")]
        return topic in topics or topics == [None]

    jobs, _ = await sluice.jobs.page("", LISTED, wanted)
    return jobs


def _settings(form: Form, goal: Goal) -> dict[str, Any]:
    """The settings in the form; what it does not name stays as it is."""
    settings: dict[str, Any] = {}
    with _in_words():
        if (name := form.get("name")) is not None:
            settings["name"] = schemas.NewTopic(name=name.strip() or "topic").name
        if (query := form.get("query")) is not None:
            settings["query"] = schemas.NewTopic(name="topic", query=query.strip()).query
        if form.get("accept_if") is not None:
            rules = {rule: (form.get(rule) or "").strip() or None for rule in ("accept_if", "reject_if")}
            settings["rules"] = Rules(**rules)
        if form.get("mode") is not None:
            targets = {target: _percent(form.get(target) or "", target) for target in TARGETS}
            kept = goal.model_dump(exclude={*TARGETS, "mode"})
            settings["goal"] = Goal.model_validate(kept | targets | {"mode": form.one("mode")})
    return settings


def _percent(text: str, name: str) -> float | None:
    """A share that was written in percent; None if nothing was."""
    if not text.strip():
        return None
    with suppress(ValueError):
        if 0 <= (percent := float(text.strip().rstrip("%").replace(",", "."))) <= 100:
            return round(percent / 100, 6)
    raise BadInput(f"The goal {name.replace('_', ' ')} is a number of percent from 0 to 100.")


@contextmanager
def _in_words() -> Iterator[None]:
    """Raises what pydantic finds wrong as one of our errors."""
    try:
        yield
    except ValidationError as error:
        raise from_validation(error) from None
