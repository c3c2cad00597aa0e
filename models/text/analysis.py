"""Text to terms to features.

A term is a longest run of letters and digits, folded as in text/unicode.py; everything else separates. A query, a
document and its log entry all go through this, so simple rules that hold everywhere are worth more than clever ones
(joining 3.5, don't or U.S. into one term moves mean AP on Reuters by up to .01, up on one split and down on another).

    text                        terms
    Crude OIL, crude-oil        crude oil crude oil           case and hyphens do not matter
    state-of-the-art            state of the art
    Iran's, don't, l'eau        iran s, don t, l eau          so that Iran's matches Iran
    U.S., 3.5, 1,000            u s, 3 5, 1 000
    mp3, COVID19, 2nd           mp3, covid19, 2nd             letters and digits stay together
    C++, #oil, a_b, x@y.org     c, oil, a b, x y org
    STRASSE, Straße             strasse strasse               ﬁ = fi, Ａ = a, ² = 2, Greek and Cyrillic likewise
    café                        café                          one code point or two alike; but not cafe
    東京都, ラーメン             東京 京都, ラー ーメ メン       scripts without spaces: pairs of characters
    猫                          猫                            a character alone
    서울에서                     서울에서                       Hangul has spaces: words
    iPhone発売                   iphone 発売                   a change between the two separates
    🚀🚀❤️ 🇩🇪                    🚀 🚀 ❤ 🇩🇪                    each picture is a term; flags are pairs of letters

A term is cut after 64 code points (`MAX_POINTS`), so that a megabyte without a space is one short term. A *canonical*
term (what is hashed, and what the log keeps) has letters and their marks as separate code points; `surface` is the word
as it stands in the text, for people. Canonical terms contain no newline and, except for pairs of words, no space.

Terms of the title count `title_weight` times. Stop words, stemming and pairs of words are off by default: they gain
nothing on news (a stemmer may in languages with more inflection). They go through the plain Python of this file, which
is a hundred times slower, and is also the oracle for the fast path in text/tokens.py.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np

from models.core.vectors import Features, Singles
from models.text.tokens import MAX_POINTS, MAX_UNIT_POINTS, Offsets, buffer_of, hash_lines, tokenise_all
from models.text.unicode import alphabet, fold, kind

Document = tuple[str, str]  # title, text


@dataclass(frozen=True, slots=True)
class Analysis:
    """How a deployment reads text. `stemmer` is a PyStemmer language; `stop_words` are compared before stemming."""

    title_weight: float = 2.0
    stemmer: str | None = None
    stop_words: frozenset[str] = frozenset()
    bigrams: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.title_weight < 1e6:
            raise ValueError("title_weight must lie between 0 and a million")
        if self.stemmer is not None:
            _stemmer(self.stemmer)  # raises for an unknown language now rather than at the first document

    @property
    def plain(self) -> bool:
        """Whether the kernel can read the text on its own."""
        return self.stemmer is None and not self.stop_words and not self.bigrams


class Term(NamedTuple):
    canonical: str
    surface: str


@dataclass(frozen=True, slots=True, eq=False)
class Bags:
    """Document i has features[indptr[i]:indptr[i + 1]], ascending and distinct, with their counts."""

    indptr: Offsets
    features: Features
    counts: Singles

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def __getitem__(self, i: int) -> tuple[Features, Singles]:
        row = slice(self.indptr[i], self.indptr[i + 1])
        return self.features[row], self.counts[row]

    def take(self, places: Sequence[int]) -> "Bags":
        """The bags at these places, copied."""
        starts, lengths = self.indptr[:-1][places], np.diff(self.indptr)[places]
        indptr = np.concatenate(([0], np.cumsum(lengths)))
        taken = np.arange(indptr[-1]) + np.repeat(starts - indptr[:-1], lengths)
        return Bags(indptr, self.features[taken], self.counts[taken])


def bags(documents: Sequence[Document], analysis: Analysis) -> Bags:
    """The features of each document and how often each occurs."""
    if not analysis.plain:
        return _bags_of_terms([occurrences(title, text, analysis) for title, text in documents])
    zones = list(chain.from_iterable(documents))
    return Bags(*tokenise_all(buffer_of(zones), analysis.title_weight, alphabet()))


def terms(title: str, text: str, analysis: Analysis) -> dict[int, Term]:
    """The words behind the features of a document, each as it first occurs."""
    distinct = dict.fromkeys(term for term, _ in occurrences(title, text, analysis))
    first: dict[int, Term] = {}
    for feature, term in zip(features_of([term.canonical for term in distinct]).tolist(), distinct, strict=True):
        first.setdefault(feature, term)
    return first


@lru_cache(maxsize=8)
def canonical_words(words: frozenset[str]) -> frozenset[str]:
    """The canonical terms that these words give."""
    return frozenset(term.canonical for word in words for term, _ in _read(word))


def features_of(canonical: Sequence[str]) -> Features:
    """The features of canonical terms."""
    return features_of_lines("\n".join(canonical).encode())


def features_of_lines(canonical: bytes) -> Features:
    """The features of canonical terms in UTF-8, separated by newlines."""
    if not canonical:
        return np.empty(0, dtype=np.uint64)
    return hash_lines(np.frombuffer(canonical, dtype=np.uint8), canonical.count(b"\n") + 1)


def occurrences(title: str, text: str, analysis: Analysis) -> Iterator[tuple[Term, float]]:
    """Every term of a document in reading order, with its weight: in plain Python what text/tokens.py does fast."""
    stop_words = canonical_words(analysis.stop_words)
    stem = _stemmer(analysis.stemmer) if analysis.stemmer else None
    for zone, weight in ((title, analysis.title_weight), (text, 1.0)):
        previous: Term | None = None
        for term, is_word in _read(zone):
            if is_word and term.canonical in stop_words:
                continue
            if is_word and stem:
                term = Term(stem(term.canonical), term.surface)
            yield term, weight
            if analysis.bigrams and is_word and previous:
                yield Term(f"{previous.canonical} {term.canonical}", f"{previous.surface} {term.surface}"), weight
            previous = term if is_word else None


# Each kind of code point as a letter, in the order of their numbers, so that a regular expression can find terms.
_KIND_LETTERS = "swmup"
_TERMS = re.compile("(w[wm]*)|(?:um*)+|p")
_UNITS = re.compile("um*")


class _Folded(dict[int, str]):
    """For str.translate: `fold`, cached for each character."""

    def __missing__(self, point: int) -> str:
        return self.setdefault(point, fold(chr(point)))


class _Kinds(dict[int, str]):
    """For str.translate: the letter of each character's `kind`, cached."""

    def __missing__(self, point: int) -> str:
        return self.setdefault(point, _KIND_LETTERS[kind(chr(point))])


_FOLDED = _Folded()
_KINDS = _Kinds()


def _read(zone: str) -> Iterator[tuple[Term, bool]]:
    """The terms of a title or a text; True for words, False for pictures and pairs of characters."""
    folded = zone.translate(_FOLDED)
    kinds = folded.translate(_KINDS)
    # source[i] is the place in the text of folded[i]: i itself, unless a character before it grew or vanished.
    source = range(len(zone)) if zone.isascii() else [i for i, c in enumerate(zone) for _ in _FOLDED[ord(c)]]

    def canonical(start: int, end: int, longest: int) -> str:
        # The characters are decomposed already; NFD brings their marks into canonical order.
        return unicodedata.normalize("NFD", folded[start:end][:longest])

    def surface(start: int, end: int) -> str:
        return zone[source[start] : source[end - 1] + 1][:MAX_POINTS]

    for match in _TERMS.finditer(kinds):
        start, end = match.span()
        if match[1]:
            yield Term(canonical(start, end, MAX_POINTS), surface(start, end)), True
            continue
        units = [unit.span() for unit in _UNITS.finditer(kinds, start, end)]
        if len(units) < 2:
            yield Term(canonical(start, end, MAX_UNIT_POINTS), surface(start, end)), False
        for first, second in pairwise(units):
            pair = canonical(*first, MAX_UNIT_POINTS) + canonical(*second, MAX_UNIT_POINTS)
            yield Term(pair, surface(first[0], second[1])), False


def _stemmer(language: str) -> Callable[[str], str]:
    """A new stemmer, since PyStemmer's are not thread-safe. Snowball expects letters composed with their marks."""
    import Stemmer  # an optional dependency

    if language not in Stemmer.algorithms():
        raise ValueError(f"no stemmer for {language!r}; there are: {', '.join(Stemmer.algorithms())}")
    stem = Stemmer.Stemmer(language).stemWord
    return lambda word: unicodedata.normalize("NFKD", stem(unicodedata.normalize("NFC", word)))


def _bags_of_terms(documents: Sequence[Iterator[tuple[Term, float]]]) -> Bags:
    rows = [_counted(list(document)) for document in documents]
    indptr = np.cumsum([0] + [len(features) for features, _ in rows], dtype=np.int64)
    features = np.concatenate([np.empty(0, dtype=np.uint64), *(features for features, _ in rows)])
    counts = np.concatenate([np.empty(0, dtype=np.float32), *(counts for _, counts in rows)])
    return Bags(indptr, features, counts)


def _counted(weighted: list[tuple[Term, float]]) -> tuple[Features, Singles]:
    features, which = np.unique(features_of([term.canonical for term, _ in weighted]), return_inverse=True)
    weights = np.array([weight for _, weight in weighted])
    return features, np.bincount(which, weights=weights, minlength=len(features)).astype(np.float32)
