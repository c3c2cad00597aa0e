"""Every call of the API, once, for both clients (how: clients.py)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from pydantic import TypeAdapter

from service.client.calls import Call, nothing, reading
from service.client.errors import ClientError, Refused
from service.client.lines import NDJSON, Lines, plain
from service.client.sse import Listener
from service.client.transport import Listed
from service.schemas import (
    Document,
    Health,
    Judgement,
    Learned,
    LearnedAll,
    NewTopic,
    Page,
    PastJudgement,
    PooledRecall,
    Problem,
    Result,
    Results,
    Topic,
    TopicChange,
    Withdrawn,
)
from service.schemas.flow import DeadDelivery, Flow, Passed, Replayed, RouteList
from service.schemas.jobs import Job
from service.schemas.metrics import Metrics, Preview, PreviewRequest
from service.schemas.models import ModelFile, ModelInfo, Version
from service.schemas.review import KnownAdded, KnownItem, ReviewPage, Skipped

Fields = Mapping[str, Any]
RESULT: TypeAdapter[Result | Problem] = TypeAdapter(Result | Problem)
LEARNED: TypeAdapter[Learned | Problem] = TypeAdapter(Learned | Problem)


# -- topics ------------------------------------------------------------------------------------------------------------


def create(topic: NewTopic | Fields) -> Call[Topic]:
    """Makes a topic. If a try got no answer and the next finds the id taken, by a topic just like this one, then it
    was the first that made it. Without an id it is sent once."""
    wanted = plain(topic)
    if not wanted.get("id"):
        return Call("POST", "/topics", reading(Topic), repeatable=False, json=wanted)
    instead = Call("GET", _topic(wanted["id"]), _made_as(wanted))
    return Call("POST", "/topics", reading(Topic), json=wanted, done_if=409, instead=instead)


def topic(topic: str) -> Call[Topic]:
    return Call("GET", _topic(topic), reading(Topic))


def topics(limit: int = 100) -> Listed[Topic]:
    """All topics, by id."""
    return Listed("/topics", Page[Topic], limit)


def change(topic: str, change: TopicChange | Fields, if_match: str | None = None) -> Call[Topic]:
    """Changes some settings. With `if_match`, an ETag, it is sent once: by a second try it would be another's."""
    headers = {} if if_match is None else {"If-Match": if_match}
    return Call("PATCH", _topic(topic), reading(Topic), if_match is None, json=plain(change), headers=headers)


def delete(topic: str) -> Call[None]:
    return Call("DELETE", _topic(topic), nothing, done_if=404)


# -- documents ---------------------------------------------------------------------------------------------------------


def classify(
    documents: Sequence[Document | Fields],
    topics: Sequence[str] | None = None,
    *,
    explain: bool = False,
    store: bool = True,
    all: bool = False,
) -> Call[list[Result]]:
    """What every topic, or those named, make of some documents; `all`: rejections too."""
    asked: dict[str, Any] = {"documents": [plain(one) for one in documents], "explain": explain, "store": store}
    asked |= {"topics": list(topics)} if topics is not None else {}
    asked |= {"include": "all"} if all else {}
    return Call("POST", "/classify", lambda content: reading(Results)(content).results, json=asked)


def classify_all(
    topics: Sequence[str] | None = None,
    *,
    explain: bool = False,
    store: bool = True,
    all: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Lines[Result]:
    """The same of any number of documents, in memory that does not grow."""
    params = {"explain": explain, "store": store, "topics": topics, "include": "all" if all else None}
    return Lines("/classify", RESULT, params, progress)


def feedback(topic: str, document: str | Document | Fields, relevant: bool, by: str | None = None) -> Call[Learned]:
    """Judges a document, by its id or with its text."""
    about = document if isinstance(document, str) else plain(document)
    said = {"topic": topic, "document": about, "relevant": relevant} | ({"by": by} if by else {})
    return Call("POST", "/feedback", reading(Learned), json=said)


def feedback_on(judgements: Sequence[Judgement | Fields]) -> Call[list[Learned | Problem]]:
    """Several judgements at once; each learned, or what is wrong with it."""
    asked = {"judgements": [plain(one) for one in judgements]}
    return Call("POST", "/feedback", lambda content: reading(LearnedAll)(content).results, json=asked)


def feedback_all(progress: Callable[[int], None] | None = None) -> Lines[Learned]:
    """Any number of judgements."""
    return Lines("/feedback", LEARNED, {}, progress)


def judgements(topic: str, limit: int = 100) -> Listed[PastJudgement]:
    """Those that stand, newest first."""
    return Listed(f"{_topic(topic)}/judgements", Page[PastJudgement], limit)


def withdraw(topic: str, document: str) -> Call[Withdrawn]:
    def gone(content: bytes) -> Withdrawn:
        version = reading(Topic)(content).status.version
        return Withdrawn(topic=topic, document=document, version=version)

    path = f"{_topic(topic)}/judgements/{_part(document)}"
    return Call("DELETE", path, reading(Withdrawn), done_if=404, instead=Call("GET", _topic(topic), gone))


# -- review, measures --------------------------------------------------------------------------------------------------


def review(topic: str, limit: int = 20) -> Call[ReviewPage]:
    """Documents worth a judgement, best first."""
    return Call("GET", f"{_topic(topic)}/review", reading(ReviewPage), params={"limit": limit})


def skip(topic: str, document: str) -> Call[Skipped]:
    return Call("POST", f"{_topic(topic)}/review/skip", reading(Skipped), json={"document": document})


def add_known(topic: str, documents: Sequence[str | Document | Fields]) -> Call[KnownAdded]:
    """Tests the topic with relevant documents that were found elsewhere."""
    asked = {"documents": [one if isinstance(one, str) else plain(one) for one in documents]}
    return Call("POST", f"{_topic(topic)}/known", reading(KnownAdded), json=asked)


def known(topic: str, limit: int = 100) -> Listed[KnownItem]:
    return Listed(f"{_topic(topic)}/known", Page[KnownItem], limit)


def delete_known(topic: str, document: str) -> Call[None]:
    return Call("DELETE", f"{_topic(topic)}/known/{_part(document)}", nothing, done_if=404)


def recall() -> Call[PooledRecall]:
    """Recall over all topics that audit."""
    return Call("GET", "/recall", reading(PooledRecall))


def metrics(topic: str) -> Call[Metrics]:
    return Call("GET", f"{_topic(topic)}/metrics", reading(Metrics))


def preview(topic: str, settings: PreviewRequest | Fields) -> Call[Preview]:
    """What other settings would change."""
    return Call("POST", f"{_topic(topic)}/preview", reading(Preview), json=plain(settings))


# -- what flows through ------------------------------------------------------------------------------------------------


def tail(topic: str, after: str | None = None) -> Listener[Passed]:
    """What the topic lets through, as it happens; after an event, or "0", first what has come since."""
    return Listener(f"{_topic(topic)}/stream", reading(Passed), after)


def accepted(topic: str, limit: int = 100) -> Listed[Passed]:
    """What the topic has let through, newest first."""
    return Listed(f"{_topic(topic)}/accepted", Page[Passed], limit)


def routes(topic: str) -> Call[RouteList]:
    """Where the topic's decisions go, and how the deliveries stand."""
    return Call("GET", f"{_topic(topic)}/routes", reading(RouteList))


def replace_routes(topic: str, routes: Sequence[Fields]) -> Call[RouteList]:
    """Says where the topic's decisions go from now on."""
    return Call("PUT", f"{_topic(topic)}/routes", reading(RouteList), json={"routes": list(routes)})


def dead(topic: str, route: str, limit: int = 100) -> Listed[DeadDelivery]:
    """Deliveries that were given up, newest first."""
    return Listed(f"{_topic(topic)}/routes/{_part(route)}/dead", Page[DeadDelivery], limit)


def replay(topic: str, route: str, after: str | None = None) -> Call[Replayed]:
    """Delivers again what was given up, or what came after an event. Sent once: each time delivers once more."""
    path, what = f"{_topic(topic)}/routes/{_part(route)}/replay", {} if after is None else {"after": after}
    return Call("POST", path, reading(Replayed), repeatable=False, json=what)


def flow() -> Call[Flow]:
    """How the stream of documents to decide stands."""
    return Call("GET", "/flow", reading(Flow))


# -- versions, models, files -------------------------------------------------------------------------------------------


def versions(topic: str, limit: int = 100) -> Listed[Version]:
    """Newest first."""
    return Listed(f"{_topic(topic)}/versions", Page[Version], limit)


def restore(topic: str, version: int) -> Call[Topic]:
    """Serves an old version again. Sent once: each time makes a new version."""
    return Call("POST", f"{_topic(topic)}/versions/{version}/restore", reading(Topic), repeatable=False)


def model(topic: str) -> Call[ModelInfo]:
    return Call("GET", f"{_topic(topic)}/model", reading(ModelInfo))


def model_file(topic: str) -> Call[ModelFile]:
    return Call("GET", f"{_topic(topic)}/model", reading(ModelFile), params={"format": "export"})


def replace_model(topic: str, file: ModelFile) -> Call[Topic]:
    """Serves a model from elsewhere. Sent once: a second try could undo what was learned since the first."""
    said = file.model_dump(mode="json")
    return Call("PUT", f"{_topic(topic)}/model", reading(Topic), repeatable=False, json=said)


def export_topic(topic: str) -> Call[bytes]:
    """The topic with its log, as a file."""
    return Call("GET", f"{_topic(topic)}/export", bytes)


def import_topic(file: bytes, id: str | None = None, replace: bool = False) -> Call[Topic]:
    """Makes a topic of a file; the same one again changes nothing. To replace another is tried once: a second try
    could undo what was learned since the first."""
    params = {"id": id, "replace": replace or None}
    return Call(
        "POST",
        "/topics/import",
        reading(Topic),
        repeatable=not replace,
        params=params,
        content=file,
        headers=NDJSON,
    )


# -- jobs --------------------------------------------------------------------------------------------------------------


def submit(job: Fields) -> Call[Job]:
    """Begins background work. Sent once: a second try would begin it again."""
    return Call("POST", "/jobs", reading(Job), repeatable=False, json=job)


def job(job: str) -> Call[Job]:
    return Call("GET", f"/jobs/{_part(job)}", reading(Job))


def jobs(limit: int = 100) -> Listed[Job]:
    """Newest first."""
    return Listed("/jobs", Page[Job], limit)


def cancel(job: str) -> Call[Job]:
    return Call("DELETE", f"/jobs/{_part(job)}", reading(Job))


# -- health ------------------------------------------------------------------------------------------------------------


def ready() -> Call[Health]:
    """The store answers and all topics are loaded."""
    return Call("GET", "/readyz", reading(Health))


def _topic(topic: str) -> str:
    return f"/topics/{_part(topic)}"


def _part(id: str) -> str:
    """An id as a part of a path. Dots alone would lead to another path: to the topic, from one of its documents."""
    if any(segment in (".", "..") for segment in id.split("/")):
        raise ClientError("No id has a path segment of dots.")
    return quote(id, safe="")


def _made_as(fields: Fields) -> Callable[[bytes], Topic]:
    """The topic that is there, if it is as it was wanted."""

    def read(content: bytes) -> Topic:
        there = reading(Topic)(content)
        wanted = NewTopic.model_validate(fields)
        given = wanted.model_dump(include=wanted.model_fields_set - {"id"})
        if there.model_dump(include=set(given)) != given or there.status.version != 1:
            detail = f"There is a topic {there.id!r} already, and it is another one."
            raise Refused(Problem(title="Conflict", status=409, detail=detail))
        return there

    return read
