"""`/docs` tells the truth: every path is there, every example works, and every answer is as declared."""

import json
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator

from tests.support.api import Api, running_api

# In an order in which each finds what it needs.
CONTRACT = [
    ("get", "/"),
    ("get", "/healthz"),
    ("get", "/readyz"),
    ("get", "/metrics"),
    ("post", "/topics"),
    ("get", "/topics"),
    ("get", "/topics/{topic}"),
    ("patch", "/topics/{topic}"),
    ("post", "/classify"),
    ("post", "/feedback"),
    ("get", "/documents"),
    ("get", "/documents.atom"),
    ("get", "/documents.json"),
    ("get", "/topics/{topic}/feed.atom"),
    ("get", "/topics/{topic}/feed.json"),
    ("get", "/documents/{document}"),
    ("get", "/topics/{topic}/accepted"),
    ("get", "/topics/{topic}/ranked"),
    ("get", "/topics/{topic}/judgements"),
    ("get", "/topics/{topic}/review"),
    ("post", "/topics/{topic}/review/skip"),
    ("post", "/topics/{topic}/known"),
    ("get", "/topics/{topic}/known"),
    ("delete", "/topics/{topic}/known/{document}"),
    ("get", "/recall"),
    ("get", "/flow"),
    ("put", "/topics/{topic}/routes"),
    ("get", "/topics/{topic}/routes"),
    ("get", "/topics/{topic}/routes/{route}/dead"),
    ("post", "/topics/{topic}/routes/{route}/replay"),
    ("get", "/topics/{topic}/metrics"),
    ("get", "/metrics/overview"),
    ("get", "/topics/{topic}/curve"),
    ("get", "/topics/{topic}/tradeoff"),
    ("post", "/topics/{topic}/preview"),
    ("get", "/topics/{topic}/versions"),
    ("delete", "/topics/{topic}/judgements/{document}"),
    ("post", "/topics/{topic}/versions/{version}/restore"),
    ("get", "/topics/{topic}/model"),
    ("put", "/topics/{topic}/model"),
    ("post", "/jobs"),
    ("get", "/jobs"),
    ("get", "/jobs/{job}"),
    ("delete", "/jobs/{job}"),
    ("post", "/sources/try"),
    ("post", "/sources"),
    ("get", "/sources"),
    ("post", "/sources/opml"),
    ("get", "/sources/opml"),
    ("get", "/sources/{source}"),
    ("post", "/sources/{source}/poll"),
    ("patch", "/sources/{source}"),
    ("delete", "/sources/{source}"),
    ("get", "/topics/{topic}/export"),
    ("post", "/topics/import"),
    ("get", "/topics/{topic}/stream"),
    ("delete", "/topics/{topic}"),
    ("post", "/keys"),
    ("get", "/keys"),
    ("delete", "/keys/{key}"),
]
ENDLESS = "/topics/{topic}/stream"  # cannot be read to its end; flow/test_subscribers.py listens, through sockets
JSON, NDJSON, PROBLEM = "application/json", "application/x-ndjson", "application/problem+json"


@pytest.fixture
async def api(redis_url: str, tmp_path: Path) -> AsyncIterator[Api]:
    async with running_api(redis_url, sources_files=tmp_path, access="keys", admin_key="k" * 32) as api:
        yield api


@pytest.fixture
async def document(api: Api) -> Any:
    return await api.ok("GET", "/openapi.json")


def check(document: Any, schema: Any, value: Any) -> None:
    """The value is as the schema, which refers to others of the document, says."""
    validator = Draft202012Validator({**schema, "components": document["components"]})
    errors = [f"{list(error.absolute_path)}: {error.message}" for error in validator.iter_errors(value)]
    assert not errors, errors


def check_answer(document: Any, operation: Any, answer: httpx.Response) -> None:
    declared = operation["responses"][str(answer.status_code)]
    assert set(declared.get("headers", {})) <= {name.title().replace("Etag", "ETag") for name in answer.headers}
    if not answer.content:
        assert "content" not in declared
        return
    content = declared["content"][answer.headers["content-type"]]
    if answer.headers["content-type"].startswith("text/") or answer.headers["content-type"].endswith("+xml"):
        check(document, content["schema"], answer.text)
    elif "x-line" in content:
        for line in answer.text.splitlines():
            check(document, content["x-line"], json.loads(line))
    else:
        check(document, content["schema"], answer.json())


def examples(operation: Any) -> Iterator[tuple[str | None, bytes | None]]:
    """Every body that the document shows for an operation, with its media type."""
    for media_type, content in operation.get("requestBody", {}).get("content", {}).items():
        for example in content.get("examples", {}).values():
            yield media_type, json.dumps(example["value"]).encode()
        if "example" in content:
            yield media_type, content["example"].encode()
    if "requestBody" not in operation:
        yield None, None


def address(path: str, operation: Any, made: dict[str, str]) -> str:
    """The path with the example of each parameter in its place, or with what Sluice has named itself."""
    shown = {p["name"]: p["schema"]["examples"][0] for p in operation.get("parameters", []) if p["in"] == "path"} | made
    return re.sub(r"{(\w+)}", lambda name: str(shown[name[1]]), path)


async def test_the_contract_and_the_document_have_the_same_operations(document: Any) -> None:
    assert {(method, path) for path, methods in document["paths"].items() for method in methods} == set(CONTRACT)
    names = [operation["operationId"] for path in document["paths"].values() for operation in path.values()]
    assert len(set(names)) == len(names)
    assert all(operation["description"] for path in document["paths"].values() for operation in path.values())


async def test_every_schema_that_is_named_is_there_and_is_one(document: Any) -> None:
    for name in re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(document)):
        Draft202012Validator.check_schema(document["components"]["schemas"][name])


async def test_every_example_works_and_every_answer_is_as_declared(api: Api, document: Any) -> None:
    made: dict[str, str] = {}
    for method, path in CONTRACT:
        if path == ENDLESS:
            continue
        operation = document["paths"][path][method]
        sent = list(examples(operation))
        assert sent, f"{method} {path} shows no example"
        for media_type, body in sent:
            headers = {"content-type": media_type} if media_type else {}
            if media_type == JSON:
                check(document, operation["requestBody"]["content"][JSON]["schema"], json.loads(body or b""))
            answer = await api.request(method, address(path, operation, made), content=body, headers=headers)
            assert answer.is_success, (method, path, body, answer.text)
            check_answer(document, operation, answer)
            if path == "/jobs" and method == "post":
                made["job"] = answer.json()["id"]
            if path == "/keys" and method == "post":
                made["key"] = answer.json()["id"]


async def test_an_exported_model_is_as_declared_for_the_way_out_and_for_the_way_back(api: Api, document: Any) -> None:
    await api.topic()
    operations = document["paths"]["/topics/{topic}/model"]
    answer = await api.get("/topics/crude/model?format=export")
    check_answer(document, operations["get"], answer)
    check(document, operations["put"]["requestBody"]["content"][JSON]["schema"], answer.json())


async def test_every_refusal_is_as_declared(api: Api, document: Any) -> None:
    await api.topic("there")
    for method, path in CONTRACT:
        operation = document["paths"][path][method]
        missing = path.replace("{topic}", "nowhere").replace("{version}", "1").replace("{document}", "d1")
        missing = missing.replace("{job}", "0" * 20).replace("{route}", "0" * 16).replace("{key}", "0" * 16)
        refusals = [await api.request(method, missing, params={"no_such": "1"})]
        if "{topic}" in path:
            body = b"{}" if method == "patch" else next(examples(operation))[1]
            refusals.append(await api.request(method, missing, content=body, headers={"content-type": JSON}))
        if "requestBody" in operation:
            there = missing.replace("nowhere", "there")
            for body, media_type in ((b"{", JSON), (b'{"no_such": 1}', JSON), (b" " * 10_000_001, JSON), (b"{}", "")):
                answer = await api.request(method, there, content=body, headers={"content-type": media_type})
                refusals.append(answer)
        for answer in refusals:
            assert answer.headers["content-type"] == PROBLEM, (method, path, answer.text)
            check_answer(document, operation, answer)
