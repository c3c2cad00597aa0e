"""Methods that are written once and belong to both clients.

Each says what it takes: a call, a list in pages, lines, a stream of events. Got from a client that blocks it is a
function, from one that awaits a coroutine function or an asynchronous iterator, of the same arguments and the same
answers; type checkers know which.
"""

from collections.abc import AsyncIterable, AsyncIterator, Callable, Coroutine, Iterable, Iterator
from functools import wraps
from types import MethodType
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

from service.client.calls import Call
from service.client.lines import Lines
from service.client.sse import Listener
from service.client.transport import Awaiting, Blocking, Item, Listed
from service.schemas import Problem

P = ParamSpec("P")
T = TypeVar("T")
B = TypeVar("B")

Either = Blocking | Awaiting


class _Method(Generic[P, B]):
    def __init__(self, build: Callable[Concatenate[Any, P], B]) -> None:
        self._build = build
        self.__doc__ = build.__doc__

    def _of(self, client: Either, do: Callable[[B], Any]) -> Callable[P, Any]:
        @wraps(self._build)  # so that help() and editors show what it takes
        def called(client: Either, *args: P.args, **kwargs: P.kwargs) -> Any:
            return do(self._build(client, *args, **kwargs))

        return MethodType(called, client)


class Operation(_Method[P, Call[T]], Generic[P, T]):
    """One call and its answer."""

    @overload
    def __get__(self, client: None, owner: type) -> Self: ...
    @overload
    def __get__(self, client: Blocking, owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, client: Awaiting, owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, client: Either | None, owner: type) -> Self | Callable[P, Any]:
        return self if client is None else self._of(client, client.send)


class Pages(_Method[P, Listed[T]], Generic[P, T]):
    """All items of a list, asked for page by page as they are needed."""

    @overload
    def __get__(self, client: None, owner: type) -> Self: ...
    @overload
    def __get__(self, client: Blocking, owner: type) -> Callable[P, Iterator[T]]: ...
    @overload
    def __get__(self, client: Awaiting, owner: type) -> Callable[P, AsyncIterator[T]]: ...
    def __get__(self, client: Either | None, owner: type) -> Self | Callable[P, Any]:
        return self if client is None else self._of(client, client.pages)


class Heard(_Method[P, Listener[T]], Generic[P, T]):
    """Events as they happen, for ever."""

    @overload
    def __get__(self, client: None, owner: type) -> Self: ...
    @overload
    def __get__(self, client: Blocking, owner: type) -> Callable[P, Iterator[T]]: ...
    @overload
    def __get__(self, client: Awaiting, owner: type) -> Callable[P, AsyncIterator[T]]: ...
    def __get__(self, client: Either | None, owner: type) -> Self | Callable[P, Any]:
        return self if client is None else self._of(client, client.listen)


class Streamed(_Method[P, Lines[T]], Generic[P, T]):
    """An answer, or the problem, for each line, in order. The lines are the first argument."""

    @overload
    def __get__(self, client: None, owner: type) -> Self: ...
    @overload
    def __get__(
        self, client: Blocking, owner: type
    ) -> Callable[Concatenate[Iterable[Item], P], Iterator[T | Problem]]: ...
    @overload
    def __get__(
        self, client: Awaiting, owner: type
    ) -> Callable[Concatenate[Iterable[Item] | AsyncIterable[Item], P], AsyncIterator[T | Problem]]: ...
    def __get__(self, client: Either | None, owner: type) -> Self | Callable[Concatenate[Any, P], Any]:
        if client is None:
            return self

        def called(items: Any, /, *args: P.args, **kwargs: P.kwargs) -> Any:
            return client.stream(items, self._build(client, *args, **kwargs))

        called.__doc__ = self.__doc__
        return called
