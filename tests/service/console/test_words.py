"""What people read: ages, links, passages."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.console import words

NOW = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "age"),
    [
        (-5, "just now"),
        (59, "just now"),
        (60, "1 min"),
        (7200, "2 h"),
        (3 * 86_400, "3 d"),
        (40 * 86_400, "2026-01-20"),
    ],
)
def test_an_age_has_one_unit(seconds: int, age: str) -> None:
    assert words.age(NOW - timedelta(seconds=seconds), NOW) == age


@pytest.mark.parametrize(
    "address",
    ["javascript:alert(1)", "data:text/html,x", "//evil.example", "https://", "https://user@host/", "http://[", 7, None,
     "https://a.example/\nb", "JAVASCRIPT:x", "file:///etc/passwd", "https://a.example/ b"],
)  # fmt: skip
def test_only_addresses_of_the_web_are_links(address: object) -> None:
    assert words.link(address) is None
    assert words.link(address, "https://a.example/b?c=d") == "https://a.example/b?c=d"


def test_words_are_marked_where_they_stand_alone() -> None:
    assert words.marked("Oil, oils & OIL <b>", ["oil"]) == "<mark>Oil</mark>, oils &amp; <mark>OIL</mark> &lt;b&gt;"


@given(st.text(max_size=2000), st.lists(st.text(max_size=8), max_size=4))
def test_what_is_shown_is_the_text_and_never_markup(text: str, terms: list[str]) -> None:
    assert words.marked(text, terms).striptags() == words.marked(text, []).striptags()
    shown = words.snippet(text, terms)
    assert "<" not in shown.replace("<mark>", "").replace("</mark>", "")
    assert len(shown.unescape()) <= len("<mark></mark>") * (len(text) + 1) + words.SNIPPET_CHARS + 4


def test_a_snippet_begins_near_the_first_word_that_counts() -> None:
    text = "nothing of note " * 100 + "then OPEC met " + "and more " * 100
    shown = words.snippet(text, ["OPEC"])
    assert shown.startswith("… ")
    assert shown.endswith(" …")
    assert "<mark>OPEC</mark>" in shown
    assert words.snippet("short", []) == "short"


def test_a_document_without_a_title_is_called_by_its_beginning() -> None:
    assert words.title_of(" ", "one two") == "one two"
    assert words.title_of("Title", "text") == "Title"
    assert words.title_of("", "word " * 100).endswith("word …")


def test_times_of_publication_are_read_if_they_are_written_as_usual() -> None:
    assert words.time_in("2026-01-01T08:00:00Z") == datetime(2026, 1, 1, 8, tzinfo=UTC)
    assert words.time_in("2026-01-01") == datetime(2026, 1, 1, tzinfo=UTC)
    assert words.time_in("last week") is None
    assert words.time_in(None) is None
