"""What each Unicode code point means for splitting words, and what it folds to.

`fold` and `kind` give it for a character; `alphabet` has it for all of them in one table, for kernels.

Folding is Unicode's compatibility caseless matching (The Unicode Standard, definition D146)

    fold(c) = NFKD(casefold(NFKD(casefold(NFD(c)))))

so Ａ = a, ß = ss, ﬁ = fi, Σ = σ = ς, and é is the same whether it is encoded as one code point or as two: all text is
decomposed into letters and marks. Three exceptions, each in favour of what a reader sees over what is encoded:

* a decimal digit of any script is the ASCII digit (٣ = 3);
* invisible characters vanish (soft hyphen, joiners, direction marks, variation selectors), except the zero-width
  space, which exists to separate words;
* symbols and punctuation are not decomposed, else "Acme™" would read "acmetm".

Accents are kept, é is not e: in many languages they distinguish words (German schon and schön, Russian мои and мой).

Characters newer than this Python's `unicodedata` are separators, so two machines may differ there, and only there.
"""

import unicodedata
from functools import cache
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

SEPARATOR, WORD, MARK, UNSPACED, PICTURE = range(5)  # kinds of a code point
SEVERAL = 5  # in the table only: folds to several code points, or to none

Points = NDArray[np.int32]
Blocks = tuple[range, ...]

_LETTERS = ("Lu", "Ll", "Lt", "Lm", "Lo", "Nd", "Nl", "No")
_KINDS = dict.fromkeys(_LETTERS, WORD) | {"Mn": MARK, "Mc": MARK, "Me": MARK}

_HAN = (range(0x3400, 0x4DC0), range(0x4E00, 0xA000), range(0x20000, 0x2F800), range(0x2FA20, 0x3FFFE))
_HANGUL = range(0xAC00, 0xD7A4)
_SPACELESS = (  # letters of scripts written without spaces between words, besides _HAN
    *(range(0x0E00, 0x0F00), range(0x1000, 0x10A0), range(0x1780, 0x1800)),  # Thai and Lao, Myanmar, Khmer
    *(range(0x2E80, 0x3130), range(0x31A0, 0x31C0), range(0x31F0, 0x3200)),  # kana, bopomofo, 々 and 〇
    *(range(0xAA60, 0xAA80), range(0x1B000, 0x1B300)),  # Myanmar and kana, extended
)
_FLAGS = (range(0x1F1E6, 0x1F200),)  # regional indicators, pairs of which are flags
_PICTURES = (range(0x231A, 0x2400), range(0x2600, 0x27C0), range(0x2B00, 0x2C00), range(0x1F000, 0x1FB00))
_INVISIBLE = frozenset(  # besides category Cf: the grapheme joiner, Hangul fillers, variation selectors
    chain(
        (0x034F, 0x115F, 0x1160, 0x3164, 0xFFA0), range(0x180B, 0x1810), range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0)
    )
)
# Code points outside these, _HAN and _HANGUL are surrogates, private use or unassigned: separators.
_IRREGULAR = (
    *(range(0x0000, 0x3400), range(0x4DC0, 0x4E00), range(0xA000, 0xAC00), range(0xD7A4, 0xD800)),
    *(range(0xF900, 0x1FC00), range(0x2F800, 0x2FA20), range(0xE0000, 0xE0200)),
)


class Alphabet(NamedTuple):
    """`entries[c]` = kind | ccc « 3 | point « 11: what c folds to, and its canonical combining class if it is a mark.

    Where the kind is SEVERAL, the middle bits are a length and the upper ones an index into `expansions`, which has
    that many entries there, for the code points that c folds to. 31 bits are enough for all but the two planes for
    private use, which are separators: zero.
    """

    entries: Points
    expansions: Points


def fold(character: str) -> str:
    """The character decomposed and without case, as all its variants fold; empty if it is invisible."""
    category = unicodedata.category(character)
    if category == "Cf" or ord(character) in _INVISIBLE:
        return character if character == "\u200b" else ""
    if category == "Nd":
        return str(unicodedata.digit(character))
    return _caseless(character) if category in _KINDS else character


def kind(character: str) -> int:
    """The kind of a folded character: part of a word, a mark on what precedes it, a unit by itself, or a separator."""
    point, category = ord(character), unicodedata.category(character)
    if _within(_HAN, point) or _within(_FLAGS, point):
        return UNSPACED
    if category == "So" and _within(_PICTURES, point):
        return PICTURE
    if category in _LETTERS and _within(_SPACELESS, point):
        return UNSPACED
    return _KINDS.get(category, SEPARATOR)


@cache
def alphabet() -> Alphabet:
    """The table of all code points, built in some 50 ms; calling `fold` and `kind` for each would take a second."""
    entries = np.zeros(0x110000, dtype=np.int32)  # pages that are never written to are never resident
    for block in _HAN:
        entries[block.start : block.stop] = UNSPACED | np.arange(block.start, block.stop, dtype=np.int32) << 11
    assigned = [(c, category) for c in map(chr, chain(*_IRREGULAR)) if (category := unicodedata.category(c)) != "Cn"]
    points = np.array([ord(c) for c, _ in assigned], dtype=np.int32)
    combining = np.array([unicodedata.combining(c) for c, _ in assigned], dtype=np.int32)
    entries[points] = _kinds(points, [category for _, category in assigned]) | combining << 3 | points << 11
    # So far as if each folded to itself; now those that do not.
    changed = [(c, fold(c)) for c, category in assigned if _may_change(c, category)]
    expansions = entries[[ord(point) for _, folded in changed for point in folded]]
    lengths = np.array([len(folded) for _, folded in changed], dtype=np.int32)
    starts = np.cumsum(lengths, dtype=np.int32) - lengths
    several = SEVERAL | lengths << 3 | starts << 11
    several[lengths == 1] = expansions[starts[lengths == 1]]
    entries[[ord(c) for c, _ in changed]] = several
    return Alphabet(entries, np.concatenate((expansions, _hangul(entries, len(expansions)))))


def _kinds(points: Points, categories: list[str]) -> Points:
    """`kind` of many characters."""
    kinds = np.array([_KINDS.get(category, SEPARATOR) for category in categories], dtype=np.int32)
    kinds[(kinds == WORD) & _inside(_SPACELESS, points)] = UNSPACED
    kinds[np.array([category == "So" for category in categories]) & _inside(_PICTURES, points)] = PICTURE
    kinds[_inside(_FLAGS, points)] = UNSPACED
    return kinds


def _may_change(character: str, category: str) -> bool:
    """False only if the character folds to itself."""
    if category in _KINDS:
        return (
            category == "Nd"
            or character.casefold() != character
            or unicodedata.decomposition(character) != ""
            or ord(character) in _INVISIBLE
        )
    return category == "Cf"


def _hangul(entries: Points, offset: int) -> Points:
    """Write the entries of Hangul syllables: each folds to two or three letters, computed from its place in the block
    (The Unicode Standard, 3.12). Returns their expansions, which begin at `offset`."""
    index = np.arange(len(_HANGUL), dtype=np.int32)
    letters = np.stack((0x1100 + index // 588, 0x1161 + index % 588 // 28, 0x11A7 + index % 28), axis=1)
    present = letters != 0x11A7  # the place of a final consonant, if there is one
    lengths = present.sum(axis=1, dtype=np.int32)
    starts = offset + np.cumsum(lengths, dtype=np.int32) - lengths
    entries[_HANGUL.start : _HANGUL.stop] = SEVERAL | lengths << 3 | starts << 11
    folded: Points = WORD | letters[present] << 11
    return folded


def _caseless(character: str) -> str:
    nfd = unicodedata.normalize("NFD", character)
    once = unicodedata.normalize("NFKD", nfd.casefold())
    return unicodedata.normalize("NFKD", once.casefold())


def _within(blocks: Blocks, point: int) -> bool:
    return any(point in block for block in blocks)


def _inside(blocks: Blocks, points: Points) -> NDArray[np.bool_]:
    inside: NDArray[np.bool_] = np.zeros(len(points), dtype=np.bool_)
    for block in blocks:
        inside |= (block.start <= points) & (points < block.stop)
    return inside
