"""What a refusal must look like, for the tests that are refused."""

import json
from typing import Any

import httpx

from tests.support.api import Api

JSON = {"content-type": "application/json"}
NDJSON = {"content-type": "application/x-ndjson"}
MARK = "Z" * 1_000_000  # sent in many places; must not come back
LONGEST_ANSWER = 3000


def refused(answer: httpx.Response, *statuses: int) -> Any:
    """The problem document, which must be one, with one of these statuses."""
    assert answer.status_code in statuses, (answer.status_code, answer.text[:500])
    assert answer.headers["content-type"] == "application/problem+json"
    assert len(answer.content) < LONGEST_ANSWER
    problem = well_formed(answer.json())
    assert problem["status"] == answer.status_code
    return problem


def well_formed(problem: Any) -> Any:
    """A problem document, as an answer or as a line, says what is wrong and does not repeat what was sent."""
    assert set(problem) - {"errors"} == {"type", "title", "status", "detail"}
    assert problem["detail"][0].isupper()
    assert problem["detail"].endswith(".")
    assert all(set(error) == {"pointer", "detail"} and error["detail"] for error in problem.get("errors", []))
    assert MARK[:100] not in json.dumps(problem)
    return problem


def pointers(problem: Any) -> list[str]:
    return [error["pointer"] for error in problem["errors"]]


async def send(api: Api, method: str, path: str, body: Any, **headers: str) -> httpx.Response:
    """Sends a value as JSON, or a text as it is."""
    content = body if isinstance(body, bytes | str) else json.dumps(body)
    return await api.request(method, path, content=content, headers=JSON | headers)
