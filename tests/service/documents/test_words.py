"""What is typed into the search box finds what plain reading of it says, whatever is typed."""

import re
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.documents.index import Query, Writer, reading
from service.documents.words import MAX_TERMS, Wanted, parse
from service.errors import BadInput
from service.schemas import Document
from service.schemas.fields import MAX_MS
from service.store.stream.documents import Remembered

WORDS = ["oil", "oily", "crude", "wheat", "Öl", "e-mail", "mail", "NOT", "AND"]
TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
TERMS = st.one_of(
    st.sampled_from(WORDS),
    st.sampled_from(WORDS).map(lambda word: word[:2] + "*"),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(lambda words: f'"{" ".join(words)}"'),
)
SEARCHES = st.lists(st.tuples(st.sampled_from(["", "-"]), TERMS).map("".join), min_size=1, max_size=4).map(" ".join)


def found(directory: Path, search: str) -> set[str]:
    with reading(directory, "test") as reader:
        return {hit.id for hit in reader.hits(Query(parse(search), None, 0, MAX_MS, "best"), None, 1000)}


def indexed(directory: Path, texts: list[str]) -> None:
    writer = Writer(directory, "test")
    writer.clear(0)
    writer.apply(0, [Remembered(Document(id=str(n), text=text), n, True) for n, text in enumerate(texts)])
    writer.close()


def words_of(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower().replace("ö", "o"))


def reads(text: str, search: str) -> bool:
    """Word by word, as the documentation says."""
    words = words_of(text)
    for minus, phrase, word in re.findall(r'(-?)(?:"([^"]*)"|(\S+))', search):
        wanted = words_of(phrase or word)
        runs = [words[i : i + len(wanted)] for i in range(len(words) - len(wanted) + 1)]
        if word.endswith("*"):
            is_there = any(run[:-1] == wanted[:-1] and run[-1].startswith(wanted[-1]) for run in runs)
        else:
            is_there = wanted in runs
        if is_there == bool(minus):
            return False
    return True


@given(texts=st.lists(TEXTS, min_size=1, max_size=5), search=SEARCHES)
def test_it_finds_what_reading_would_find(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], search: str
) -> None:
    directory = tmp_path_factory.getbasetemp()
    indexed(directory, texts)
    assert found(directory, search) == {str(n) for n, text in enumerate(texts) if reads(text, search)}


@given(search=st.text(st.sampled_from("ab \"'*-^:(){}+.,;\\/%_?!AND ORNEAR\u0301é\n"), max_size=30))
def test_nothing_that_is_typed_is_taken_for_an_expression(
    tmp_path_factory: pytest.TempPathFactory, search: str
) -> None:
    directory = tmp_path_factory.getbasetemp()
    indexed(directory, ["a b", "b"])
    with suppress(BadInput):
        found(directory, search)


def test_each_part_is_quoted() -> None:
    assert parse('crude "oil price" -foot* e-mail') == Wanted('"crude" AND "oil price" AND "e-mail"', '"foot" *')
    assert parse("R&D & co") == Wanted('"R&D" AND "co"', "")


@pytest.mark.parametrize(
    ("search", "sentence"),
    [
        ('"crude', "A quotation mark is not closed."),
        ("& - *", "There is no word to look for."),
        ("a " * (MAX_TERMS + 1), f"A search has at most {MAX_TERMS} words and phrases."),
    ],
)
def test_what_cannot_be_understood_is_refused_with_a_sentence(search: str, sentence: str) -> None:
    with pytest.raises(BadInput) as refused:
        parse(search)
    assert refused.value.errors == [{"pointer": "?q", "detail": sentence}]
