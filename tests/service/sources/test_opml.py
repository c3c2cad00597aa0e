"""Subscriptions of other feed readers come in, and go out again; a file that attacks is refused."""

from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.errors import BadRequest, TooLarge
from service.sources.opml import MAX_DEPTH, MAX_OUTLINES, NOT_IN_XML, Outline, read, write
from service.sources.text import tidy
from tests.support.api import Api, running_api

READER = """<?xml version="1.0" encoding="utf-8"?>
<opml version="1.0"><head><title>Subscriptions</title></head><body>
  <outline text="Energy"><outline type="rss" text="Oil &amp; gas" title="Oil &amp; gas"
    xmlUrl="https://oil.example/rss?a=1&amp;b=2" htmlUrl="https://oil.example/"/></outline>
  <outline text="Grain" xmlURL=" https://grain.example/atom "/><outline text="no feed"/>
  <outline text="Again" xmlUrl="https://grain.example/atom"/>
</body></opml>"""


@pytest.fixture
async def api(redis_url: str) -> AsyncIterator[Api]:
    async with running_api(redis_url) as api:
        yield api


def test_the_feeds_of_all_folders_are_read() -> None:
    assert read(READER.encode()) == [
        Outline("Oil & gas", "https://oil.example/rss?a=1&b=2"),
        Outline("Grain", "https://grain.example/atom"),
    ]
    assert read(READER.replace("utf-8", "utf-16").encode("utf-16")) == read(READER.encode())


@given(st.dictionaries(st.text(st.characters(codec="utf-8"), min_size=1), st.text(st.characters(codec="utf-8"))))
def test_what_is_written_is_read_again(feeds: dict[str, str]) -> None:
    outlines = [Outline(title, f"https://example.org/{n}") for n, title in enumerate(feeds)]
    again = read(write(outlines).encode())
    assert [each.url for each in again] == [each.url for each in outlines]
    titles = [tidy(NOT_IN_XML.sub("", each.title)).replace("\n", " ") for each in outlines]
    assert [each.title for each in again] == [title or each.url for title, each in zip(titles, outlines, strict=True)]


@pytest.mark.parametrize(
    "declared",
    [
        '<!DOCTYPE opml [<!ENTITY a "lol"><!ENTITY b "&a;&a;&a;&a;">]>',
        '<!DOCTYPE opml [<!ENTITY a SYSTEM "file:///etc/passwd">]>',
        '<!DOCTYPE opml SYSTEM "http://127.0.0.1:1/opml.dtd">',
    ],
)
def test_xml_that_attacks_is_refused(declared: str) -> None:
    with pytest.raises(BadRequest, match="attacks"):
        read(READER.replace("?>", f"?>{declared}", 1).encode())


@pytest.mark.parametrize(
    "content", [b"", b"hello", b"<opml><body>", b"\xff\xff", b'<?xml version="1.0" encoding="x"?><opml/>']
)
def test_what_is_not_well_formed_is_refused(content: bytes) -> None:
    with pytest.raises(BadRequest, match="well formed"):
        read(content)


def test_what_is_something_else_is_refused() -> None:
    with pytest.raises(BadRequest, match="not OPML"):
        read(b"<rss/>")


def test_files_have_limits() -> None:
    deep = "<outline>" * MAX_DEPTH + "</outline>" * MAX_DEPTH
    with pytest.raises(TooLarge, match="levels deep"):
        read(f"<opml>{deep}</opml>".encode())
    many = "".join(f'<outline xmlUrl="https://example.org/{n}"/>' for n in range(MAX_OUTLINES + 1))
    with pytest.raises(TooLarge, match="at most 10,000 feeds"):
        read(f"<opml>{many}</opml>".encode())


async def test_subscriptions_are_added_once_and_come_out_again(api: Api) -> None:
    headers = {"Content-Type": "text/x-opml"}
    hostile = '<outline xmlUrl="http://127.0.0.1/"/><outline xmlUrl="javascript:alert(1)"/></body>'
    file = READER.replace("</body>", hostile)
    imported = (await api.post("/sources/opml", content=file, headers=headers)).json()
    assert [feed["status"] for feed in imported["feeds"]] == ["added", "added", "refused", "refused"]
    assert (imported["added"], imported["known"], imported["refused"]) == (2, 0, 2)
    sources = (await api.ok("GET", "/sources"))["items"]
    assert {(each["url"], each["status"]["title"]) for each in sources} == {
        ("https://oil.example/rss?a=1&b=2", "Oil & gas"),
        ("https://grain.example/atom", "Grain"),
    }
    exported = (await api.get("/sources/opml")).text
    again = (await api.post("/sources/opml", content=exported, headers=headers)).json()
    assert (again["added"], again["known"], again["refused"]) == (0, 2, 0)


async def test_many_feeds_of_one_host_all_get_an_id(api: Api) -> None:
    file = write(Outline("", f"https://video.example/feed?channel={n}") for n in range(40))
    answer = await api.post("/sources/opml", content=file, headers={"Content-Type": "application/xml"})
    assert answer.json()["added"] == 40


async def test_the_names_of_calls_are_no_ids(api: Api) -> None:
    for id in ("try", "opml"):
        answer = await api.post("/sources", json={"id": id, "kind": "feed", "url": "https://example.org/"})
        assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/id")
