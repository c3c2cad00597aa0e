"""Every call of the API: functions that return what to send. `clients.py` makes methods of them.

A call is retried unless it is `repeatable=False` (see `calls.py`); docstrings say why some are not.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal
from urllib.parse import quote

from pydantic import TypeAdapter

from service.client.calls import Call, no_result, parse_as
from service.client.errors import ClientError, Refused
from service.client.lines import NDJSON, Lines, to_json
from service.client.sse import Listener
from service.client.transport import PagedList
from service.schemas import (
    About,
    Decision,
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
from service.schemas.access import IssuedKey, Key, NewKey
from service.schemas.flow import DeadDelivery, Flow, Passed, Ranked, RankedPage, Replayed, RouteList
from service.schemas.jobs import Job
from service.schemas.metrics import Curve, Metrics, Overview, Preview, PreviewRequest, Tradeoff
from service.schemas.models import ModelFile, ModelInfo, Version
from service.schemas.remembered import Found, FoundPage, RememberedDocument
from service.schemas.review import KnownAdded, KnownItem, ReviewPage, Skipped
from service.schemas.sources import (
    ImportedFeeds,
    NewFile,
    NewFolder,
    NewSource,
    Polled,
    Source,
    SourceChange,
    SourceState,
    Tried,
    TrySource,
)

Fields = Mapping[str, Any]
RESULT: TypeAdapter[Result | Problem] = TypeAdapter(Result | Problem)
LEARNED: TypeAdapter[Learned | Problem] = TypeAdapter(Learned | Problem)


# -- topics ------------------------------------------------------------------------------------------------------------


def create(topic: NewTopic | Fields) -> Call[Topic]:
    """Creates a topic. If an attempt gets no reply and the next one finds the id taken by just such a topic, then the
    first attempt created it. Without an id the call is not retried."""
    fields = to_json(topic)
    if not fields.get("id"):
        return Call("POST", "/topics", parse_as(Topic), repeatable=False, json=fields)
    instead = Call("GET", _topic(fields["id"]), _parse_if_created_with(fields))
    return Call("POST", "/topics", parse_as(Topic), json=fields, done_if=409, instead=instead)


def topic(topic: str) -> Call[Topic]:
    return Call("GET", _topic(topic), parse_as(Topic))


def topics(limit: int = 100) -> PagedList[Topic]:
    """Lists all topics, sorted by id."""
    return PagedList("/topics", Page[Topic], limit)


def change(topic: str, change: TopicChange | Fields, if_match: str | None = None) -> Call[Topic]:
    """Changes some of a topic's settings. With `if_match`, an ETag, it is not retried: if the first attempt was
    applied, the ETag would no longer match."""
    headers = {} if if_match is None else {"If-Match": if_match}
    return Call("PATCH", _topic(topic), parse_as(Topic), if_match is None, json=to_json(change), headers=headers)


def delete(topic: str) -> Call[None]:
    """Deletes a topic and everything about it."""
    return Call("DELETE", _topic(topic), no_result, done_if=404)


# -- documents ---------------------------------------------------------------------------------------------------------


def classify(
    documents: Sequence[Document | Fields],
    topics: Sequence[str] | None = None,
    *,
    explain: bool = False,
    store: bool = True,
    all: bool = False,
) -> Call[list[Result]]:
    """Decides on documents, for all topics or those given. `all` includes rejections."""
    body: dict[str, Any] = {"documents": list(map(to_json, documents)), "explain": explain, "store": store}
    body |= {"topics": list(topics)} if topics is not None else {}
    body |= {"include": "all"} if all else {}
    return Call("POST", "/classify", lambda content: parse_as(Results)(content).results, json=body)


def classify_all(
    topics: Sequence[str] | None = None,
    *,
    explain: bool = False,
    store: bool = True,
    all: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Lines[Result]:
    """Decides on any number of documents, in bounded memory. Yields a result or a problem for each, in order."""
    params = {"explain": explain, "store": store, "topics": topics, "include": "all" if all else None}
    return Lines("/classify", RESULT, params, progress)


def feedback(
    topic: str, document: str | Document | Fields, relevant: bool | int, by: str | None = None
) -> Call[Learned]:
    """Judges a document, given by its id or with its text: whether it is relevant, or with a grade from 0 to 3."""
    judgement = {"topic": topic, "document": _id_or_json(document), "relevant": relevant} | ({"by": by} if by else {})
    return Call("POST", "/feedback", parse_as(Learned), json=judgement)


def feedback_on(judgements: Sequence[Judgement | Fields]) -> Call[list[Learned | Problem]]:
    """Gives several judgements in one request. Returns a result or a problem for each, in order."""
    body = {"judgements": list(map(to_json, judgements))}
    return Call("POST", "/feedback", lambda content: parse_as(LearnedAll)(content).results, json=body)


def feedback_all(progress: Callable[[int], None] | None = None) -> Lines[Learned]:
    """Gives any number of judgements, in bounded memory. Yields a result or a problem for each, in order."""
    return Lines("/feedback", LEARNED, {}, progress)


def judgements(topic: str, limit: int = 100) -> PagedList[PastJudgement]:
    """Lists the judgements in force, newest first."""
    return PagedList(f"{_topic(topic)}/judgements", Page[PastJudgement], limit)


def withdraw(topic: str, document: str) -> Call[Withdrawn]:
    """Withdraws a judgement: the model becomes what it would have been without it."""

    def parse(content: bytes) -> Withdrawn:
        version = parse_as(Topic)(content).status.version
        return Withdrawn(topic=topic, document=document, version=version)

    path = f"{_topic(topic)}/judgements/{_quote(document)}"
    return Call("DELETE", path, parse_as(Withdrawn), done_if=404, instead=Call("GET", _topic(topic), parse))


def document(
    document: str,
    topics: Sequence[str] | None = None,
    *,
    now: bool = False,
    explain: bool = False,
    all: bool = False,
) -> Call[RememberedDocument]:
    """Returns a remembered document with the decisions on it and its judgements. With `now` it is decided again; `all`
    includes rejections."""
    params = {"topics": topics, "now": now, "explain": explain, "include": "all" if all else None}
    return Call("GET", f"/documents/{_quote(document)}", parse_as(RememberedDocument), params=params)


def search(
    q: str = "",
    *,
    topic: str | None = None,
    decision: Decision | None = None,
    source: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    sort: Literal["newest", "best"] = "newest",
    limit: int = 100,
) -> PagedList[Found]:
    """Searches the documents that are remembered, for words, "phrases", -words and prefix*; with a topic only what it
    did not reject, or what it decided as `decision` says. Times without a zone are in UTC."""
    times = {"since": since and since.isoformat(), "until": until and until.isoformat()}
    params = {"q": q or None, "topic": topic, "decision": decision, "source": source, "sort": sort}
    return PagedList("/documents", FoundPage, limit, params | times)


def search_feed(
    q: str = "",
    form: Literal["atom", "json"] = "atom",
    *,
    topic: str | None = None,
    decision: Decision | None = None,
    source: str | None = None,
    limit: int = 50,
) -> Call[bytes]:
    """Returns what such a search finds now as a feed, Atom or JSON Feed."""
    params = {"q": q or None, "topic": topic, "decision": decision, "source": source, "limit": limit}
    return Call("GET", f"/documents.{form}", bytes, params=params)


# -- review, metrics ---------------------------------------------------------------------------------------------------


def review(topic: str, limit: int = 20) -> Call[ReviewPage]:
    """Offers documents worth judging, the most useful first."""
    return Call("GET", f"{_topic(topic)}/review", parse_as(ReviewPage), params={"limit": limit})


def skip(topic: str, document: str) -> Call[Skipped]:
    """Leaves a document out of the topic's reviews."""
    return Call("POST", f"{_topic(topic)}/review/skip", parse_as(Skipped), json={"document": document})


def add_known(topic: str, documents: Sequence[str | Document | Fields]) -> Call[KnownAdded]:
    """Adds relevant documents that were found elsewhere, to test the topic with."""
    body = {"documents": list(map(_id_or_json, documents))}
    return Call("POST", f"{_topic(topic)}/known", parse_as(KnownAdded), json=body)


def known(topic: str, limit: int = 100) -> PagedList[KnownItem]:
    """Lists the known items of a topic."""
    return PagedList(f"{_topic(topic)}/known", Page[KnownItem], limit)


def delete_known(topic: str, document: str) -> Call[None]:
    """Removes a known item."""
    return Call("DELETE", f"{_topic(topic)}/known/{_quote(document)}", no_result, done_if=404)


def recall() -> Call[PooledRecall]:
    """Estimates recall over all topics whose audits are asked for or judged."""
    return Call("GET", "/recall", parse_as(PooledRecall))


def metrics(topic: str) -> Call[Metrics]:
    """Reports how the topic has done, with intervals."""
    return Call("GET", f"{_topic(topic)}/metrics", parse_as(Metrics))


def overview() -> Call[Overview]:
    """Reports how all topics have done, as micro and macro averages."""
    return Call("GET", "/metrics/overview", parse_as(Overview))


def curve(topic: str) -> Call[Curve]:
    """Reports precision and recall at every cut."""
    return Call("GET", f"{_topic(topic)}/curve", parse_as(Curve))


def tradeoff(topic: str) -> Call[Tradeoff]:
    """Reports the least error for each share that is left undecided."""
    return Call("GET", f"{_topic(topic)}/tradeoff", parse_as(Tradeoff))


def preview(topic: str, settings: PreviewRequest | Fields) -> Call[Preview]:
    """Shows what other settings would change."""
    return Call("POST", f"{_topic(topic)}/preview", parse_as(Preview), json=to_json(settings))


# -- output and routes -------------------------------------------------------------------------------------------------


def tail(topic: str, after: str | None = None) -> Listener[Passed]:
    """Follows what the topic accepts or abstains on. `after` is the id of an event to resume behind, or "0" to begin
    with the oldest that is kept."""
    return Listener(f"{_topic(topic)}/stream", parse_as(Passed), after)


def accepted(topic: str, limit: int = 100) -> PagedList[Passed]:
    """Lists what the topic has accepted or abstained on, newest first."""
    return PagedList(f"{_topic(topic)}/accepted", Page[Passed], limit)


def ranked(
    topic: str, since: datetime | None = None, judged: Literal["include", "exclude"] = "include", limit: int = 100
) -> PagedList[Ranked]:
    """Lists what the topic has accepted or abstained on, highest score first, or as learned from feedback; with
    `judged="exclude"` only what has no judgement yet. A `since` without a time zone is in UTC."""
    params = {"since": since.isoformat() if since else None, "judged": judged}
    return PagedList(f"{_topic(topic)}/ranked", RankedPage, limit, params)


def feed(topic: str, form: Literal["atom", "json"] = "atom", *, unsure: bool = False, limit: int = 50) -> Call[bytes]:
    """Returns what the topic accepted lately as a feed, Atom or JSON Feed; with `unsure` also what it abstained on."""
    return Call("GET", f"{_topic(topic)}/feed.{form}", bytes, params={"unsure": unsure, "limit": limit})


def routes(topic: str) -> Call[RouteList]:
    """Lists where the topic's decisions are delivered, with the status of deliveries."""
    return Call("GET", f"{_topic(topic)}/routes", parse_as(RouteList))


def replace_routes(topic: str, routes: Sequence[Fields]) -> Call[RouteList]:
    """Sets where the topic's decisions are delivered from now on."""
    return Call("PUT", f"{_topic(topic)}/routes", parse_as(RouteList), json={"routes": list(routes)})


def dead(topic: str, route: str, limit: int = 100) -> PagedList[DeadDelivery]:
    """Lists failed deliveries, newest first."""
    return PagedList(f"{_topic(topic)}/routes/{_quote(route)}/dead", Page[DeadDelivery], limit)


def replay(topic: str, route: str, after: str | None = None) -> Call[Replayed]:
    """Delivers again what failed, or everything after an event. Not retried: each call delivers once more."""
    path, body = f"{_topic(topic)}/routes/{_quote(route)}/replay", {} if after is None else {"after": after}
    return Call("POST", path, parse_as(Replayed), repeatable=False, json=body)


def flow() -> Call[Flow]:
    """Returns the state of the stream of documents to decide."""
    return Call("GET", "/flow", parse_as(Flow))


# -- versions, models, files -------------------------------------------------------------------------------------------


def versions(topic: str, limit: int = 100) -> PagedList[Version]:
    """Lists published versions, newest first."""
    return PagedList(f"{_topic(topic)}/versions", Page[Version], limit)


def restore(topic: str, version: int) -> Call[Topic]:
    """Serves an old version again. Not retried: each call makes a new version."""
    return Call("POST", f"{_topic(topic)}/versions/{version}/restore", parse_as(Topic), repeatable=False)


def model(topic: str) -> Call[ModelInfo]:
    """Describes the model that is served."""
    return Call("GET", f"{_topic(topic)}/model", parse_as(ModelInfo))


def model_file(topic: str) -> Call[ModelFile]:
    """Returns the model in a form that `replace_model` takes."""
    return Call("GET", f"{_topic(topic)}/model", parse_as(ModelFile), params={"format": "export"})


def replace_model(topic: str, file: ModelFile) -> Call[Topic]:
    """Serves a model from elsewhere. Not retried: a retry could undo what was learned since the first attempt."""
    body = file.model_dump(mode="json")
    return Call("PUT", f"{_topic(topic)}/model", parse_as(Topic), repeatable=False, json=body)


def export_topic(topic: str) -> Call[bytes]:
    """Returns the topic with its log, as the content of a file."""
    return Call("GET", f"{_topic(topic)}/export", bytes)


def import_topic(file: bytes, id: str | None = None, replace: bool = False) -> Call[Topic]:
    """Creates a topic from an exported file; importing the same file again changes nothing. With `replace` it is not
    retried: a retry could undo what was learned since the first attempt."""
    params = {"id": id, "replace": replace or None}
    return Call(
        "POST",
        "/topics/import",
        parse_as(Topic),
        repeatable=not replace,
        params=params,
        content=file,
        headers=NDJSON,
    )


# -- jobs --------------------------------------------------------------------------------------------------------------


def submit(job: Fields) -> Call[Job]:
    """Submits a background job. Not retried: each call submits another."""
    return Call("POST", "/jobs", parse_as(Job), repeatable=False, json=job)


def job(job: str) -> Call[Job]:
    return Call("GET", f"/jobs/{_quote(job)}", parse_as(Job))


def jobs(limit: int = 100) -> PagedList[Job]:
    """Lists jobs, newest first."""
    return PagedList("/jobs", Page[Job], limit)


def cancel(job: str) -> Call[Job]:
    """Cancels a job; one that is over stays as it is."""
    return Call("DELETE", f"/jobs/{_quote(job)}", parse_as(Job))


# -- keys --------------------------------------------------------------------------------------------------------------


def issue_key(key: NewKey | Fields) -> Call[IssuedKey]:
    """Makes a key, which is in this reply only. Not retried: each call makes another."""
    return Call("POST", "/keys", parse_as(IssuedKey), repeatable=False, json=to_json(key))


def list_keys(limit: int = 100) -> PagedList[Key]:
    """Lists keys, oldest first."""
    return PagedList("/keys", Page[Key], limit)


def revoke_key(key: str) -> Call[None]:
    """Revokes a key, by its id."""
    return Call("DELETE", f"/keys/{_quote(key)}", no_result, done_if=404)


# -- sources -----------------------------------------------------------------------------------------------------------


def create_source(source: NewSource | NewFile | NewFolder | Fields) -> Call[Source]:
    """Adds a source of documents. Not retried: the second attempt would be told that the first has taken its id."""
    return Call("POST", "/sources", parse_as(Source), repeatable=False, json=to_json(source))


def source(source: str) -> Call[Source]:
    return Call("GET", _source(source), parse_as(Source))


def sources(state: SourceState | None = None, limit: int = 100) -> PagedList[Source]:
    """Lists all sources, or those in a state, sorted by id."""
    return PagedList("/sources", Page[Source], limit, {"state": state})


def change_source(source: str, change: SourceChange | Fields) -> Call[Source]:
    """Pauses a source, resumes it, or changes its pace."""
    return Call("PATCH", _source(source), parse_as(Source), json=to_json(change))


def delete_source(source: str) -> Call[None]:
    """Deletes a source; the documents that it has given stay."""
    return Call("DELETE", _source(source), no_result, done_if=404)


def poll_source(source: str) -> Call[Polled]:
    """Polls a source now. Not retried: what was new at the first attempt would not be new any more."""
    return Call("POST", f"{_source(source)}/poll", parse_as(Polled), repeatable=False)


def try_source(source: TrySource | Fields) -> Call[Tried]:
    """Fetches a source and shows what it offers, without storing anything."""
    return Call("POST", "/sources/try", parse_as(Tried), json=to_json(source))


def import_sources(opml: bytes) -> Call[ImportedFeeds]:
    """Adds the feeds of an OPML file, but for those that are there already."""
    return Call("POST", "/sources/opml", parse_as(ImportedFeeds), content=opml, headers={"Content-Type": "text/x-opml"})


def export_sources() -> Call[bytes]:
    """Returns all sources, as the content of an OPML file."""
    return Call("GET", "/sources/opml", bytes)


# -- health ------------------------------------------------------------------------------------------------------------


def about() -> Call[About]:
    """Fetches the service's name and version, and where to go on."""
    return Call("GET", "/", parse_as(About), headers={"Accept": "application/json"})


def ready() -> Call[Health]:
    """Succeeds if the store replies and all topics are loaded."""
    return Call("GET", "/readyz", parse_as(Health))


def _topic(topic: str) -> str:
    return f"/topics/{_quote(topic)}"


def _source(source: str) -> str:
    return f"/sources/{_quote(source)}"


def _quote(id: str) -> str:
    """The id as one segment of a path. Segments of dots are removed from paths on their way, so with such an id a call
    about a document would become one about its topic."""
    if any(segment in (".", "..") for segment in id.split("/")):
        raise ClientError("An id cannot have a path segment of dots.")
    return quote(id, safe="")


def _id_or_json(document: str | Document | Fields) -> str | Fields:
    return document if isinstance(document, str) else to_json(document)


def _parse_if_created_with(fields: Fields) -> Callable[[bytes], Topic]:
    """Parser of an existing topic; refuses it unless it is version 1 and has these settings."""

    def parse(content: bytes) -> Topic:
        existing = parse_as(Topic)(content)
        wanted = NewTopic.model_validate(fields)
        settings = wanted.model_dump(include=wanted.model_fields_set - {"id"})
        if existing.model_dump(include=set(settings)) != settings or existing.status.version != 1:
            detail = f"There is already a different topic {existing.id!r}."
            raise Refused(Problem(title="Conflict", status=409, detail=detail))
        return existing

    return parse
