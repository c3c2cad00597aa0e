"""Paths, methods, parameters and headers: what is not ours is refused with a sentence, and what is allowed is named."""

import json
from urllib.parse import unquote

import pytest

from tests.support.api import OIL, Api
from tests.support.refusals import MARK, NDJSON, pointers, refused, send

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/topics", {"GET", "HEAD", "POST"}),
        ("/topics/crude", {"GET", "HEAD", "PATCH", "DELETE"}),
        ("/topics/crude/judgements", {"GET", "HEAD"}),
        ("/topics/crude/judgements/d1", {"DELETE"}),
        ("/topics/crude/versions", {"GET", "HEAD"}),
        ("/topics/crude/versions/1/restore", {"POST"}),
        ("/topics/crude/model", {"GET", "HEAD", "PUT"}),
        ("/classify", {"POST"}),
        ("/feedback", {"POST"}),
        ("/healthz", {"GET", "HEAD"}),
        ("/readyz", {"GET", "HEAD"}),
    ],
)
async def test_every_other_method_is_refused_with_those_that_are_allowed(
    shared: Api, path: str, allowed: set[str]
) -> None:
    for method in {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"} - allowed:
        answer = await shared.request(method, path)
        assert answer.status_code == 405
        assert set(answer.headers["allow"].split(", ")) == allowed, method
        if method != "HEAD":
            refused(answer, 405)


async def test_head_is_get_without_the_body(shared: Api) -> None:
    for path in ("/topics", "/topics/crude", "/healthz", "/readyz", "/topics/crude/model", "/topics/nowhere"):
        asked, head = await shared.get(path), await shared.head(path)
        assert (head.status_code, head.headers) == (asked.status_code, asked.headers)


@pytest.mark.parametrize(
    "path", ["/nope", "/topics/", "/topics/crude/", "/topics/crude/no", "/classify/", "/topics/a%2Fb", "/%00"]
)
async def test_other_paths_are_not_found_and_nobody_is_sent_elsewhere(shared: Api, path: str) -> None:
    for method in ("GET", "POST", "DELETE"):
        refused(await shared.request(method, path), 404)
    assert (await shared.get("/topics/crude")).is_success


async def test_a_megabyte_in_an_address_or_a_header_is_not_echoed(shared: Api) -> None:
    for path in (f"/topics/{MARK[:60_000]}", f"/{MARK[:60_000]}", f"/topics/crude/versions/{MARK[:60_000]}"):
        refused(await shared.get(path), 404, 422)
    for query in (
        f"limit={MARK[:60_000]}",
        f"cursor={MARK[:60_000]}",
        f"{MARK[:60_000]}=1",
        "&".join(map(str, range(9000))),
    ):
        refused(await shared.get(f"/topics?{query}"), 422)
    refused(await shared.delete(f"/topics/crude/judgements/{MARK[:60_000]}"), 404)
    refused(await send(shared, "PATCH", "/topics/crude", {"name": "x"}, **{"if-match": MARK}), 412)


@pytest.mark.parametrize("name", ["%00", "%0D%0A", "UPPER", "%FF", "a%20b", "-", "x" * 129])
async def test_a_topic_in_a_path_has_the_syntax_of_its_id(shared: Api, name: str) -> None:
    problem = refused(await shared.get(f"/topics/{name}"), 404)
    assert problem["detail"] == f"There is no topic {unquote(name)[:60]!r}."
    assert "errors" not in problem


@pytest.mark.parametrize(
    ("query", "pointer"),
    [
        ("limit=0", "?limit"),
        ("limit=1001", "?limit"),
        ("limit=-1", "?limit"),
        ("limit=abc", "?limit"),
        ("limit=", "?limit"),
        ("limit=1e3", "?limit"),
        ("limit=99999999999999999999999", "?limit"),
        ("limits=1", "?limits"),
        ("cursor=" + "x" * 201, "?cursor"),
    ],
)
async def test_parameters_of_pages_are_checked(shared: Api, query: str, pointer: str) -> None:
    for path in ("/topics", "/topics/crude/judgements", "/topics/crude/versions"):
        assert pointers(refused(await shared.get(f"{path}?{query}"), 422)) == [pointer]


@pytest.mark.parametrize("cursor", ["", "abc", "-1", "0", "1.5", "٣x", "9" * 30, "%00"])
async def test_a_cursor_that_is_not_ours_is_refused(shared: Api, cursor: str) -> None:
    for path in ("/topics/crude/judgements", "/topics/crude/versions"):
        assert pointers(refused(await shared.get(f"{path}?cursor={cursor}"), 422)) == ["?cursor"]


@pytest.mark.parametrize("version", ["0", "-1", "abc", "1.5", "9" * 30, "1e3", "%00"])
async def test_versions_are_whole_numbers(shared: Api, version: str) -> None:
    problem = refused(await shared.post(f"/topics/crude/versions/{version}/restore"), 404)
    assert problem["detail"] == f"There is no version {unquote(version)!r}."
    assert "errors" not in problem


async def test_a_version_that_never_was_is_not_found(shared: Api) -> None:
    for version in (2**40, 2**53 - 1):
        refused(await shared.post(f"/topics/crude/versions/{version}/restore"), 404)


@pytest.mark.parametrize("tag", ["garbage", '"x"', 'W/"x"', ",,,", "", '"a", "b"', "\xff"])
async def test_a_precondition_that_does_not_hold(shared: Api, tag: str) -> None:
    headers = [(b"if-match", tag.encode("latin-1"))]
    refused(await shared.request("PATCH", "/topics/crude", json={"name": "x"}, headers=headers), 412)


async def test_a_precondition_holds_for_any_or_for_the_tag_itself_but_not_for_a_weak_one(shared: Api) -> None:
    tag = (await shared.get("/topics/crude")).headers["etag"]
    refused(await shared.patch("/topics/crude", json={"name": "x"}, headers={"if-match": f"W/{tag}"}), 412)
    for holds in ("*", tag, f'"x", {tag}'):
        assert (await shared.patch("/topics/crude", json={}, headers={"if-match": holds})).is_success


async def test_options_stand_in_the_body_or_with_lines_in_the_address(shared: Api) -> None:
    refused(await shared.post("/classify?explain=true", json={"documents": [OIL]}), 422)
    line = json.dumps(OIL)
    for query in ("topics=BAD", "topics=", "include=some", "store=7", "explain=perhaps", "duplex=2", "topic=crude"):
        answer = await shared.post(f"/classify?{query}", content=line, headers=NDJSON)
        assert pointers(refused(answer, 422)) == ["?" + query.partition("=")[0]]
    refused(await shared.post("/classify?topics=nowhere", content=line, headers=NDJSON), 404)


async def test_a_body_where_none_is_asked_for_is_ignored(shared: Api) -> None:
    assert (await shared.request("GET", "/topics/crude", content=b"x" * 1000)).is_success
    await shared.topic("fleeting")
    assert (await shared.request("DELETE", "/topics/fleeting", content=b"{")).is_success
