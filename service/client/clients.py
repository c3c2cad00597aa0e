"""The two clients: which method sends what. A call is described once, by a function of operations.py; each client says
with one line how it carries it out, and so gets a method of the same name, arguments and docstring.

    topic = method(operations.topic, Blocking.send)         Client.topic(id) -> Topic
    topic = method(operations.topic, Awaiting.send)         AsyncClient.topic(id) -> Coroutine[..., Topic]

Type checkers follow this without help: the arguments are those of the function, the result is what `send`, `pages`,
`listen` or `stream` makes of what it returns.

Rejected: to write each method out in both classes, with its arguments three times; to generate one class from the
other, which needs a generator, a generated file, and a check that they agree.
"""

import inspect
from collections.abc import Callable
from functools import update_wrapper
from typing import Any, Concatenate, ParamSpec, TypeVar

from service.client import operations
from service.client.transport import Awaiting, Blocking

P = ParamSpec("P")
ClientT = TypeVar("ClientT")
ItemsT = TypeVar("ItemsT")
RequestT = TypeVar("RequestT")
ResultT = TypeVar("ResultT")


def method(
    operation: Callable[P, RequestT], run: Callable[[ClientT, RequestT], ResultT]
) -> Callable[Concatenate[ClientT, P], ResultT]:
    """Makes a method that carries out what `operation` describes for its arguments."""

    def called(client: ClientT, /, *args: P.args, **kwargs: P.kwargs) -> ResultT:
        return run(client, operation(*args, **kwargs))

    _document(called, operation, "self")
    return called


def stream_method(
    operation: Callable[P, RequestT], run: Callable[[ClientT, ItemsT, RequestT], ResultT]
) -> Callable[Concatenate[ClientT, ItemsT, P], ResultT]:
    """The same for a method whose first argument are the items that it sends."""

    def called(client: ClientT, items: ItemsT, /, *args: P.args, **kwargs: P.kwargs) -> ResultT:
        return run(client, items, operation(*args, **kwargs))

    _document(called, operation, "self", "items")
    return called


def _document(called: Callable[..., Any], operation: Callable[..., Any], *first: str) -> None:
    """Gives a method the name, docstring and arguments that help() and editors show."""
    update_wrapper(called, operation)
    leading = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in first]
    arguments = [*leading, *inspect.signature(operation).parameters.values()]
    vars(called)["__signature__"] = inspect.Signature(arguments)


class Client(Blocking):
    """A client whose methods block until the service has replied."""

    create = method(operations.create, Blocking.send)
    topic = method(operations.topic, Blocking.send)
    topics = method(operations.topics, Blocking.pages)
    change = method(operations.change, Blocking.send)
    delete = method(operations.delete, Blocking.send)
    classify = method(operations.classify, Blocking.send)
    classify_all = stream_method(operations.classify_all, Blocking.stream)
    feedback = method(operations.feedback, Blocking.send)
    feedback_on = method(operations.feedback_on, Blocking.send)
    feedback_all = stream_method(operations.feedback_all, Blocking.stream)
    judgements = method(operations.judgements, Blocking.pages)
    withdraw = method(operations.withdraw, Blocking.send)
    review = method(operations.review, Blocking.send)
    skip = method(operations.skip, Blocking.send)
    add_known = method(operations.add_known, Blocking.send)
    known = method(operations.known, Blocking.pages)
    delete_known = method(operations.delete_known, Blocking.send)
    recall = method(operations.recall, Blocking.send)
    metrics = method(operations.metrics, Blocking.send)
    preview = method(operations.preview, Blocking.send)
    tail = method(operations.tail, Blocking.listen)
    accepted = method(operations.accepted, Blocking.pages)
    routes = method(operations.routes, Blocking.send)
    replace_routes = method(operations.replace_routes, Blocking.send)
    dead = method(operations.dead, Blocking.pages)
    replay = method(operations.replay, Blocking.send)
    flow = method(operations.flow, Blocking.send)
    versions = method(operations.versions, Blocking.pages)
    restore = method(operations.restore, Blocking.send)
    model = method(operations.model, Blocking.send)
    model_file = method(operations.model_file, Blocking.send)
    replace_model = method(operations.replace_model, Blocking.send)
    export_topic = method(operations.export_topic, Blocking.send)
    import_topic = method(operations.import_topic, Blocking.send)
    submit = method(operations.submit, Blocking.send)
    job = method(operations.job, Blocking.send)
    jobs = method(operations.jobs, Blocking.pages)
    cancel = method(operations.cancel, Blocking.send)
    ready = method(operations.ready, Blocking.send)


class AsyncClient(Awaiting):
    """A client with the same methods, to be awaited or iterated with `async for`."""

    create = method(operations.create, Awaiting.send)
    topic = method(operations.topic, Awaiting.send)
    topics = method(operations.topics, Awaiting.pages)
    change = method(operations.change, Awaiting.send)
    delete = method(operations.delete, Awaiting.send)
    classify = method(operations.classify, Awaiting.send)
    classify_all = stream_method(operations.classify_all, Awaiting.stream)
    feedback = method(operations.feedback, Awaiting.send)
    feedback_on = method(operations.feedback_on, Awaiting.send)
    feedback_all = stream_method(operations.feedback_all, Awaiting.stream)
    judgements = method(operations.judgements, Awaiting.pages)
    withdraw = method(operations.withdraw, Awaiting.send)
    review = method(operations.review, Awaiting.send)
    skip = method(operations.skip, Awaiting.send)
    add_known = method(operations.add_known, Awaiting.send)
    known = method(operations.known, Awaiting.pages)
    delete_known = method(operations.delete_known, Awaiting.send)
    recall = method(operations.recall, Awaiting.send)
    metrics = method(operations.metrics, Awaiting.send)
    preview = method(operations.preview, Awaiting.send)
    tail = method(operations.tail, Awaiting.listen)
    accepted = method(operations.accepted, Awaiting.pages)
    routes = method(operations.routes, Awaiting.send)
    replace_routes = method(operations.replace_routes, Awaiting.send)
    dead = method(operations.dead, Awaiting.pages)
    replay = method(operations.replay, Awaiting.send)
    flow = method(operations.flow, Awaiting.send)
    versions = method(operations.versions, Awaiting.pages)
    restore = method(operations.restore, Awaiting.send)
    model = method(operations.model, Awaiting.send)
    model_file = method(operations.model_file, Awaiting.send)
    replace_model = method(operations.replace_model, Awaiting.send)
    export_topic = method(operations.export_topic, Awaiting.send)
    import_topic = method(operations.import_topic, Awaiting.send)
    submit = method(operations.submit, Awaiting.send)
    job = method(operations.job, Awaiting.send)
    jobs = method(operations.jobs, Awaiting.pages)
    cancel = method(operations.cancel, Awaiting.send)
    ready = method(operations.ready, Awaiting.send)
