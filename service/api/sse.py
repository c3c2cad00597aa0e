"""Server-sent events through HTTP: an answer that goes on until the client leaves, or we do.

What goes wrong after the answer has begun is its last event, named `problem`, with a problem document.

A client that leaves is noticed, because the request is watched for it (it has no body that this could swallow). The
server tells those that listen when it stops (`stopping`, in the scope's state), so that nothing has to be cut off.
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
    def __init__(self, joined: AbstractAsyncContextManager[AsyncIterator[bytes]]) -> None:
        super().__init__(media_type=EVENTS, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._joined = joined

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._joined as events:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            sending = asyncio.ensure_future(_send_all(events, send))
            watching = [asyncio.ensure_future(_left(receive)), asyncio.ensure_future(_stopping(scope))]
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
        last = b"event: problem\ndata: " + to_json(problem(error)) + b"\n\n"
        await send({"type": "http.response.body", "body": last, "more_body": True})


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _stopping(scope: Scope) -> None:
    stopping = scope.get("state", {}).get("stopping") or asyncio.Event()
    await stopping.wait()
