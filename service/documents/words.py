"""What people type into a search box, as an expression of SQLite's full-text search.

    crude oil           both words
    "crude oil"         the phrase
    refiner*            words that begin so
    -football           without the word; also -"a phrase" and -prefix*

All of it is quoted on its way into the expression, so nothing that is typed can have a meaning of its own there. A word
that SQLite splits, such as e-mail, is found as a phrase. What has no letter or digit is ignored.
"""

import re
from typing import NamedTuple

from service.errors import BadInput, FieldError

MAX_TERMS = 50
TERM = re.compile(r'(-?)(?:"([^"]*)"|([^\s"]+))')


class Wanted(NamedTuple):
    """What a document must contain, and what it must not: expressions, empty if there is nothing."""

    all_of: str
    none_of: str


def parse(text: str) -> Wanted:
    """Raises BadInput if there is nothing to look for."""
    if text.count('"') % 2:
        raise _refused("A quotation mark is not closed.")
    wanted: list[str] = []
    unwanted: list[str] = []
    for minus, phrase, word in TERM.findall(text):
        if term := _term(phrase or word, word.endswith("*")):
            (unwanted if minus else wanted).append(term)
    if not wanted and not unwanted:
        raise _refused("There is no word to look for.")
    if len(wanted) + len(unwanted) > MAX_TERMS:
        raise _refused(f"A search has at most {MAX_TERMS} words and phrases.")
    return Wanted(" AND ".join(wanted), " OR ".join(unwanted))


def _term(text: str, prefix: bool) -> str:
    if not any(map(str.isalnum, text)):
        return ""
    return f'"{text.rstrip("*")}" *' if prefix else f'"{text}"'


def _refused(sentence: str) -> BadInput:
    return BadInput("The search cannot be understood.", [FieldError(pointer="?q", detail=sentence)])
