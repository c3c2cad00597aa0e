"""An app in this process, on a real store, and a client that sends it requests."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
from fastapi import FastAPI

from service.api.app import create_app
from service.config import Config
from service.sluice import Sluice

OIL = {"title": "OPEC meets", "text": "OPEC agreed to cut crude oil output; barrels of crude rose in price."}
GRAIN = {"title": "Harvest", "text": "Farmers in Kansas expect a smaller wheat and maize harvest after the drought."}
QUERY = "crude oil OPEC barrels output price"


class Api(httpx.AsyncClient):
    """A client with shorthands for the requests that most tests send."""

    app: FastAPI
    sluice: Sluice

    async def ok(self, method: str, path: str, body: Any = None, **kwargs: Any) -> Any:
        """The JSON of the response, which must be a success."""
        response = await self.request(method, path, json=body, **kwargs)
        assert response.is_success, response.text
        return response.json() if response.content else None

    async def topic(self, id: str = "crude", **fields: Any) -> Any:
        return await self.ok("POST", "/topics", {"id": id, "query": QUERY} | fields)

    async def judge(self, document: Any, relevant: bool | int, topic: str = "crude") -> Any:
        return await self.ok("POST", "/feedback", {"topic": topic, "document": document, "relevant": relevant})

    async def decide(self, document: dict[str, Any], topic: str = "crude", **options: Any) -> Any:
        body = {"documents": [document], "topics": [topic], "store": False} | options
        return (await self.ok("POST", "/classify", body))["results"][0]["decisions"][0]


@asynccontextmanager
async def running_api(redis_url: str, **settings: Any) -> AsyncIterator[Api]:
    """A client of an app that serves all topics of the store already. It shows the administrator's key, if there is
    one."""
    headers = {"Authorization": f"Bearer {settings['admin_key']}"} if "admin_key" in settings else {}
    with TemporaryDirectory() as directory:
        app = create_app(Config(redis=redis_url, **({"search": Path(directory)} | settings)))
        async with app.router.lifespan_context(app):
            await app.state.sluice.sync.ready.wait()
            async with Api(transport=httpx.ASGITransport(app), base_url="http://sluice", headers=headers) as api:
                api.app, api.sluice = app, app.state.sluice
                yield api
