"""Pages without a browser: what they answer to whom, who may change something, and which files they load."""

import hashlib
import re
from collections.abc import AsyncIterator
from urllib.parse import urlencode

import pytest

from service.api.app import CONSOLE
from service.api.deps import Route
from service.api.scopes import PAGES
from service.console.pages import POLICY
from service.console.static import FOLDER
from tests.support import ROOT
from tests.support.api import OIL, Api, running_api

HTML = {"Accept": "text/html"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
ADMIN_KEY = "an administrator's key, 32 characters"
VENDORED = {  # as the npm registry has them: htmx.org 2.0.11, uplot 1.6.32, swagger-ui-dist 5.35.0, axe-core 4.14.0
    "htmx.LICENSE": "d3d2456f76414f2456104660ebd65aff1c04cd7966b942bdabd63f3cdb316a38",
    "htmx.min.js": "d6fdc75f204e6bdefa99b69bf1e6d4ac69b8a364f77929f45c13476b4000f717",
    "swagger-ui-bundle.js": "e6a898692f2d768e807c3ba4626068a69a2c5dd960dd6c76f3e4d3a3de180af2",
    "swagger-ui-bundle.js.LICENSE.txt": "37eb6e7e59aed57b2c1acf076574b818ea07b74265717e0bd67b59e0baf9abbb",
    "swagger-ui.LICENSE": "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30",
    "swagger-ui.NOTICE": "0d20d1adef18aee3f40dd258172155521ce702ac445cb5f7b7d60ed32dad2fb2",
    "swagger-ui.css": "5ed08757e53da3e026d6cbecc61fe5d43585c9560b302d534ad56692519a273d",
    "uPlot.LICENSE": "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd",
    "uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
    "uPlot.min.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
    "axe.LICENSE": "af175b9d96ee93c21a036152e1b905b0b95304d4ae8c2c921c7609100ba8df7e",
    "axe.min.js": "20c09fe157a8a34a30e241aaa1fcdade657734f08ab379ecfbeb7d45cc46e878",
}


@pytest.fixture
async def api(redis_url: str) -> AsyncIterator[Api]:
    async with running_api(redis_url) as api:
        yield api


def test_vendored_files_are_those_that_were_published() -> None:
    folders = [FOLDER / "vendor", ROOT / "tests" / "service" / "console" / "axe"]
    found = {path.name: path.read_bytes() for folder in folders for path in folder.iterdir()}
    assert {name: hashlib.sha256(content).hexdigest() for name, content in found.items()} == VENDORED


async def test_the_first_address_is_a_page_or_says_where_to_go_on(api: Api) -> None:
    about = await api.ok("GET", "/", headers={"Accept": "application/json"})
    assert (about["name"], about["links"]["docs"]) == ("Sluice", "/docs")
    assert about["version"] == api.app.version
    for accept in ("*/*", "text/html,application/xhtml+xml,application/json;q=0.9"):
        page = await api.get("/", headers={"Accept": accept})
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        assert page.text.startswith("<!doctype html>")


async def test_every_page_forbids_what_it_does_not_need(api: Api) -> None:
    await api.topic()
    for path in ("/", "/console/inbox", "/?topic=nowhere"):
        page = await api.get(path, headers=HTML)
        assert page.headers["content-security-policy"] == POLICY
        assert "unsafe" not in POLICY
        assert "<style" not in page.text
        assert " style=" not in page.text
        assert not re.search(r"<script(?! src=)", page.text)
        for loaded in re.findall(r'(?:src|href)="(/static/[^"]+)"', page.text):
            answer = await api.get(loaded)
            assert answer.is_success, loaded
            assert "immutable" in answer.headers["cache-control"]


async def test_errors_are_pages_fragments_or_problems(api: Api) -> None:
    page = await api.get("/?topic=nowhere", headers=HTML)
    assert page.status_code == 404
    assert "There is no topic &#39;nowhere&#39;." in page.text
    fragment = await api.get("/?topic=nowhere", headers=HTML | {"HX-Request": "true"})
    assert fragment.text.strip() == "There is no topic &#39;nowhere&#39;."
    assert (await api.get("/?topic=a b", headers=HTML)).status_code == 422
    assert (await api.get("/?nonsense=1", headers=HTML)).status_code == 422
    problem = await api.get("/?nonsense=1", headers={"Accept": "application/json"})
    assert problem.headers["content-type"] == "application/problem+json"


async def test_a_page_of_another_origin_judges_nothing(api: Api) -> None:
    await api.topic()
    await api.ok("POST", "/classify", {"documents": [OIL | {"id": "d1"}]})
    body = "verdict=yes&item=crude%2Fd1"
    for path in ("/console/judgements", "/console/judgements/withdraw", "/console/name"):
        for headers in ({"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Origin": "null"}):
            refused = await api.post(path, content=body, headers=FORM | HTML | headers)
            assert refused.status_code == 403, path
    assert not (await api.ok("GET", "/topics/crude/judgements"))["items"]
    taken = await api.post("/console/judgements", content=body, headers=FORM | HTML | {"Origin": "http://sluice"})
    assert (taken.status_code, taken.headers["location"]) == (303, "/")  # a browser without scripts
    assert len((await api.ok("GET", "/topics/crude/judgements"))["items"]) == 1
    taken = await api.post("/console/judgements/withdraw", content="item=crude%2Fd1", headers=FORM | HTML)
    assert taken.status_code == 303
    assert not (await api.ok("GET", "/topics/crude/judgements"))["items"]


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("item=crude%2Fd1", "The form lacks the field verdict."),
        ("verdict=maybe&item=crude%2Fd1", "A verdict is yes, no or skip."),
        ("verdict=yes", "Nothing is selected: choose documents with x, or with their boxes."),
        ("verdict=yes&item=crude", "An item is a topic and a document, joined by a slash."),
        ("verdict=yes&item=A+B%2Fd1", "A topic or a document that is named here cannot exist."),
        ("verdict=yes&item=crude%2Fnone", "This document is not remembered (any more); send it with its text in place"),
        ("verdict=%ff", "This form cannot be read: it is not UTF-8, or has too many fields."),
    ],
)
async def test_a_form_that_makes_no_sense_is_refused_in_a_sentence(api: Api, body: str, sentence: str) -> None:
    await api.topic()
    answer = await api.post("/console/judgements", content=body, headers=FORM | {"HX-Request": "true"})
    assert answer.is_client_error
    assert sentence in answer.text


async def test_of_several_those_that_can_be_judged_are(api: Api) -> None:
    await api.topic()
    await api.ok("POST", "/classify", {"documents": [OIL | {"id": "d1"}]})
    body = "verdict=yes&item=crude%2Fd1&item=crude%2Fnone"
    answer = await api.post("/console/judgements", content=body, headers=FORM | {"HX-Request": "true"})
    assert answer.is_success
    assert "1 document could not be judged: This document is not remembered" in answer.text
    assert len((await api.ok("GET", "/topics/crude/judgements"))["items"]) == 1


def test_every_page_has_a_scope_and_takes_a_key_from_its_cookie() -> None:
    routes = [route for page in CONSOLE for route in page.router.routes if isinstance(route, Route)]
    assert {route.name for route in routes if route.path != "/"} == set(PAGES)
    assert all(route.key_cookie for route in routes)


async def test_where_keys_are_needed_a_browser_is_asked_for_one_and_keeps_it(redis_url: str) -> None:
    async with running_api(redis_url, access="keys", admin_key=ADMIN_KEY) as api:
        admin = {"Authorization": f"Bearer {ADMIN_KEY}"}
        await api.ok("POST", "/topics", {"id": "crude", "query": "oil"}, headers=admin)
        issued = await api.ok("POST", "/keys", {"name": "Ann Ö", "scopes": ["read", "judge"]}, headers=admin)
        await api.ok("POST", "/classify", {"documents": [OIL | {"id": "d1"}]}, headers=admin)
        chat = {"to": "webhook", "url": "https://chat.example.org/secret", "format": "slack"}
        await api.ok("PUT", "/topics/crude/routes", {"routes": [chat]}, headers=admin)
        assert "chat.example.org" in (await api.get("/console/topics/crude", headers=HTML | admin)).text
        del api.headers["Authorization"]
        asked = await api.get("/", headers=HTML)
        assert asked.status_code == 401
        assert "Your key" in asked.text
        assert "crude" not in asked.text
        refused = await api.post("/console/key", content="key=wrong", headers=FORM | HTML)
        assert refused.status_code == 401
        assert "set-cookie" not in refused.headers
        taken = await api.post("/console/key", content=urlencode({"key": issued["key"]}), headers=FORM | HTML)
        assert taken.status_code == 303
        assert "HttpOnly" in taken.headers["set-cookie"]
        assert "SameSite=strict" in taken.headers["set-cookie"]
        assert "crude" in (await api.get("/", headers=HTML)).text
        assert (await api.get("/topics")).status_code == 401  # the API takes no cookie
        assert "chat.example.org" not in (await api.get("/console/topics/crude", headers=HTML)).text
        body = "verdict=yes&item=crude%2Fd1"
        assert (await api.post("/console/judgements", content=body, headers=FORM | HTML)).status_code == 303
        (judged,) = (await api.ok("GET", "/topics/crude/judgements", headers=admin))["items"]
        assert judged["by"] == "Ann Ö"
        made = await api.post("/console/topics", content="query=grain", headers=FORM | HTML)
        assert made.status_code == 403
        await api.post("/console/leave", content="", headers=FORM)
        assert (await api.get("/", headers=HTML)).status_code == 401
