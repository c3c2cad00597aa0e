"""The two clients. A call is described once, by a function in `operations.py`; one line in each client says how it is
carried out, and makes it a method with the same name, arguments and docstring.

    topic = method(operations.topic, BlockingSender.send)       Client.topic(id) -> Topic
    topic = method(operations.topic, AsyncSender.send)          AsyncClient.topic(id) -> Coroutine[…, Topic]

Type checkers infer both: the arguments are those of the function, and the result is what `send`, `pages`, `listen` or
`stream` makes of the function's result.

Rejected: writing every method out in both classes, with its arguments three times; generating one class from the other,
which takes a generator, a generated file, and a check that they agree.
"""

import inspect
from collections.abc import Callable
from functools import update_wrapper
from typing import Any, Concatenate, ParamSpec, TypeVar

from service.client import operations
from service.client.transport import AsyncSender, BlockingSender

P = ParamSpec("P")
ClientT = TypeVar("ClientT")
ItemsT = TypeVar("ItemsT")
RequestT = TypeVar("RequestT")
ResultT = TypeVar("ResultT")


def method(
    operation: Callable[P, RequestT], run: Callable[[ClientT, RequestT], ResultT]
) -> Callable[Concatenate[ClientT, P], ResultT]:
    """Makes a method that describes a request with `operation` and carries it out with `run`."""

    def called(client: ClientT, /, *args: P.args, **kwargs: P.kwargs) -> ResultT:
        return run(client, operation(*args, **kwargs))

    _document(called, operation, "self")
    return called


def stream_method(
    operation: Callable[P, RequestT], run: Callable[[ClientT, ItemsT, RequestT], ResultT]
) -> Callable[Concatenate[ClientT, ItemsT, P], ResultT]:
    """Does the same for a request that sends a stream of items, which are the first argument of the method."""

    def called(client: ClientT, items: ItemsT, /, *args: P.args, **kwargs: P.kwargs) -> ResultT:
        return run(client, items, operation(*args, **kwargs))

    _document(called, operation, "self", "items")
    return called


def _document(called: Callable[..., Any], operation: Callable[..., Any], *first: str) -> None:
    """Gives a method the name, docstring and arguments of its operation, for help() and editors."""
    update_wrapper(called, operation)
    leading = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in first]
    arguments = [*leading, *inspect.signature(operation).parameters.values()]
    vars(called)["__signature__"] = inspect.Signature(arguments)


class Client(BlockingSender):
    """A client whose methods block until the service replies."""

    about = method(operations.about, BlockingSender.send)
    create = method(operations.create, BlockingSender.send)
    topic = method(operations.topic, BlockingSender.send)
    topics = method(operations.topics, BlockingSender.pages)
    change = method(operations.change, BlockingSender.send)
    delete = method(operations.delete, BlockingSender.send)
    classify = method(operations.classify, BlockingSender.send)
    classify_all = stream_method(operations.classify_all, BlockingSender.stream)
    feedback = method(operations.feedback, BlockingSender.send)
    feedback_on = method(operations.feedback_on, BlockingSender.send)
    feedback_all = stream_method(operations.feedback_all, BlockingSender.stream)
    judgements = method(operations.judgements, BlockingSender.pages)
    withdraw = method(operations.withdraw, BlockingSender.send)
    document = method(operations.document, BlockingSender.send)
    search = method(operations.search, BlockingSender.pages)
    search_feed = method(operations.search_feed, BlockingSender.send)
    review = method(operations.review, BlockingSender.send)
    skip = method(operations.skip, BlockingSender.send)
    add_known = method(operations.add_known, BlockingSender.send)
    known = method(operations.known, BlockingSender.pages)
    delete_known = method(operations.delete_known, BlockingSender.send)
    recall = method(operations.recall, BlockingSender.send)
    metrics = method(operations.metrics, BlockingSender.send)
    overview = method(operations.overview, BlockingSender.send)
    curve = method(operations.curve, BlockingSender.send)
    tradeoff = method(operations.tradeoff, BlockingSender.send)
    preview = method(operations.preview, BlockingSender.send)
    tail = method(operations.tail, BlockingSender.listen)
    accepted = method(operations.accepted, BlockingSender.pages)
    ranked = method(operations.ranked, BlockingSender.pages)
    feed = method(operations.feed, BlockingSender.send)
    routes = method(operations.routes, BlockingSender.send)
    replace_routes = method(operations.replace_routes, BlockingSender.send)
    dead = method(operations.dead, BlockingSender.pages)
    replay = method(operations.replay, BlockingSender.send)
    flow = method(operations.flow, BlockingSender.send)
    versions = method(operations.versions, BlockingSender.pages)
    restore = method(operations.restore, BlockingSender.send)
    model = method(operations.model, BlockingSender.send)
    model_file = method(operations.model_file, BlockingSender.send)
    replace_model = method(operations.replace_model, BlockingSender.send)
    export_topic = method(operations.export_topic, BlockingSender.send)
    import_topic = method(operations.import_topic, BlockingSender.send)
    submit = method(operations.submit, BlockingSender.send)
    job = method(operations.job, BlockingSender.send)
    jobs = method(operations.jobs, BlockingSender.pages)
    cancel = method(operations.cancel, BlockingSender.send)
    issue_key = method(operations.issue_key, BlockingSender.send)
    list_keys = method(operations.list_keys, BlockingSender.pages)
    revoke_key = method(operations.revoke_key, BlockingSender.send)
    create_source = method(operations.create_source, BlockingSender.send)
    source = method(operations.source, BlockingSender.send)
    sources = method(operations.sources, BlockingSender.pages)
    change_source = method(operations.change_source, BlockingSender.send)
    delete_source = method(operations.delete_source, BlockingSender.send)
    poll_source = method(operations.poll_source, BlockingSender.send)
    try_source = method(operations.try_source, BlockingSender.send)
    import_sources = method(operations.import_sources, BlockingSender.send)
    export_sources = method(operations.export_sources, BlockingSender.send)
    ready = method(operations.ready, BlockingSender.send)


class AsyncClient(AsyncSender):
    """A client with the same methods, to be awaited or iterated with `async for`."""

    about = method(operations.about, AsyncSender.send)
    create = method(operations.create, AsyncSender.send)
    topic = method(operations.topic, AsyncSender.send)
    topics = method(operations.topics, AsyncSender.pages)
    change = method(operations.change, AsyncSender.send)
    delete = method(operations.delete, AsyncSender.send)
    classify = method(operations.classify, AsyncSender.send)
    classify_all = stream_method(operations.classify_all, AsyncSender.stream)
    feedback = method(operations.feedback, AsyncSender.send)
    feedback_on = method(operations.feedback_on, AsyncSender.send)
    feedback_all = stream_method(operations.feedback_all, AsyncSender.stream)
    judgements = method(operations.judgements, AsyncSender.pages)
    withdraw = method(operations.withdraw, AsyncSender.send)
    document = method(operations.document, AsyncSender.send)
    search = method(operations.search, AsyncSender.pages)
    search_feed = method(operations.search_feed, AsyncSender.send)
    review = method(operations.review, AsyncSender.send)
    skip = method(operations.skip, AsyncSender.send)
    add_known = method(operations.add_known, AsyncSender.send)
    known = method(operations.known, AsyncSender.pages)
    delete_known = method(operations.delete_known, AsyncSender.send)
    recall = method(operations.recall, AsyncSender.send)
    metrics = method(operations.metrics, AsyncSender.send)
    overview = method(operations.overview, AsyncSender.send)
    curve = method(operations.curve, AsyncSender.send)
    tradeoff = method(operations.tradeoff, AsyncSender.send)
    preview = method(operations.preview, AsyncSender.send)
    tail = method(operations.tail, AsyncSender.listen)
    accepted = method(operations.accepted, AsyncSender.pages)
    ranked = method(operations.ranked, AsyncSender.pages)
    feed = method(operations.feed, AsyncSender.send)
    routes = method(operations.routes, AsyncSender.send)
    replace_routes = method(operations.replace_routes, AsyncSender.send)
    dead = method(operations.dead, AsyncSender.pages)
    replay = method(operations.replay, AsyncSender.send)
    flow = method(operations.flow, AsyncSender.send)
    versions = method(operations.versions, AsyncSender.pages)
    restore = method(operations.restore, AsyncSender.send)
    model = method(operations.model, AsyncSender.send)
    model_file = method(operations.model_file, AsyncSender.send)
    replace_model = method(operations.replace_model, AsyncSender.send)
    export_topic = method(operations.export_topic, AsyncSender.send)
    import_topic = method(operations.import_topic, AsyncSender.send)
    submit = method(operations.submit, AsyncSender.send)
    job = method(operations.job, AsyncSender.send)
    jobs = method(operations.jobs, AsyncSender.pages)
    cancel = method(operations.cancel, AsyncSender.send)
    issue_key = method(operations.issue_key, AsyncSender.send)
    list_keys = method(operations.list_keys, AsyncSender.pages)
    revoke_key = method(operations.revoke_key, AsyncSender.send)
    create_source = method(operations.create_source, AsyncSender.send)
    source = method(operations.source, AsyncSender.send)
    sources = method(operations.sources, AsyncSender.pages)
    change_source = method(operations.change_source, AsyncSender.send)
    delete_source = method(operations.delete_source, AsyncSender.send)
    poll_source = method(operations.poll_source, AsyncSender.send)
    try_source = method(operations.try_source, AsyncSender.send)
    import_sources = method(operations.import_sources, AsyncSender.send)
    export_sources = method(operations.export_sources, AsyncSender.send)
    ready = method(operations.ready, AsyncSender.send)
