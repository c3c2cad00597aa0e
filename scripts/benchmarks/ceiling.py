"""What the framework itself can do with lines: an application that reads each as JSON and answers it, and nothing else.

It runs on our own server (`python -m service.run.api`) with the same settings, so that the difference between its rate
and that of the service is the service's own work.
"""

from fastapi import FastAPI, Request
from pydantic_core import from_json, to_json
from starlette.responses import Response

APPLICATION = "scripts.benchmarks.ceiling:create_app"


def create_app() -> FastAPI:
    app = FastAPI(openapi_url=None)

    @app.get("/readyz")
    async def readyz() -> None:
        return None

    @app.post("/classify")
    async def classify(request: Request) -> Response:
        answers: list[bytes] = []
        left = b""
        async for piece in request.stream():
            *lines, left = (left + piece).split(b"\n")
            answers += [to_json({"document": from_json(line)["id"], "decisions": []}) for line in lines]
        return Response(b"".join(answer + b"\n" for answer in answers), media_type="application/x-ndjson")

    return app
