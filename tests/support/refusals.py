"""Checks that every refusal is a problem document as the contract promises it."""

import json
from typing import Any

import httpx

from tests.support.api import Api

JSON = {"content-type": "application/json"}
NDJSON = {"content-type": "application/x-ndjson"}
MARK = "Z" * 1_000_000  # sent in many places; must not come back
MAX_BYTES = 3000


def refused(response: httpx.Response, *statuses: int) -> Any:
    """The problem document of a response, which must have one of these statuses."""
    assert response.status_code in statuses, (response.status_code, response.text[:500])
    assert response.headers["content-type"] == "application/problem+json"
    assert len(response.content) < MAX_BYTES
    problem = well_formed(response.json())
    assert problem["status"] == response.status_code
    return problem


def well_formed(problem: Any) -> Any:
    """A problem document, of a response or a line, which must say what is wrong and not repeat what was sent."""
    assert set(problem) - {"errors"} == {"type", "title", "status", "detail"}
    assert problem["detail"][0].isupper()
    assert problem["detail"].endswith(".")
    assert all(set(error) == {"pointer", "detail"} and error["detail"] for error in problem.get("errors", []))
    assert MARK[:100] not in json.dumps(problem)
    return problem


def pointers(problem: Any) -> list[str]:
    return [error["pointer"] for error in problem["errors"]]


async def send(api: Api, method: str, path: str, body: Any, **headers: str) -> httpx.Response:
    """Sends a value as JSON, or a string as it is."""
    content = body if isinstance(body, bytes | str) else json.dumps(body)
    return await api.request(method, path, content=content, headers=JSON | headers)
