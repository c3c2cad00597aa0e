"""Server-sent events over HTTP: a response that lasts until the client disconnects or the server stops.

An error after the response has started is sent as its last event, named `problem`, with a problem document.

To notice that the client has left we watch for the disconnect message; the request has no body that this could swallow.
The server announces that it stops (`stopping`, in the scope's state), so that no response has to be cut off.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager

from pydantic_core import to_json
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from service.api.openapi import EVENTS
from service.api.problems import problem
from service.errors import ServiceError
from service.tasks import cancel_all


class Events(Response):
    def __init__(self, subscription: AbstractAsyncContextManager[AsyncIterator[bytes]]) -> None:
        super().__init__(media_type=EVENTS, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._subscription = subscription

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._subscription as events:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            sending = asyncio.ensure_future(_send_all(events, send))
            watching = [asyncio.ensure_future(_disconnected(receive)), asyncio.ensure_future(_stopping(scope))]
            try:
                await asyncio.wait([sending, *watching], return_when=asyncio.FIRST_COMPLETED)
                if sending.done():
                    sending.result()
            finally:
                await cancel_all([sending, *watching])
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _send_all(events: AsyncIterator[bytes], send: Send) -> None:
    try:
        async for event in events:
            await send({"type": "http.response.body", "body": event, "more_body": True})
    except ServiceError as error:
        event = b"event: problem\ndata: " + to_json(problem(error)) + b"\n\n"
        await send({"type": "http.response.body", "body": event, "more_body": True})


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _stopping(scope: Scope) -> None:
    stopping = scope.get("state", {}).get("stopping") or asyncio.Event()
    await stopping.wait()
