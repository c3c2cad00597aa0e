"""Text to features: words in any script are what a reader expects, and the kernel equals the plain version."""

import unicodedata
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.text.analysis import Analysis, Bags, bags, features_of, features_of_lines, occurrences, terms
from models.text.counting import count, count_table_for, drain, find_taken
from models.text.tokens import MAX_POINTS, buffer, tokenise_all
from models.text.unicode import PICTURE, SEVERAL, UNSPACED, WORD, alphabet, fold, kind

STEADY = settings(deadline=None, derandomize=True)  # the first call may compile a kernel

PLAIN = Analysis()
ANALYSES = [
    PLAIN,
    Analysis(title_weight=1.3),
    Analysis(stemmer="english"),
    Analysis(stop_words=frozenset({"the", "A", "é"}), bigrams=True),
    Analysis(title_weight=0.5, stemmer="german", bigrams=True),
]

# Any text, and text from characters that some rule treats specially: letters of all kinds, marks of several classes
# (also many of them, and in the wrong order), what grows or vanishes when folded, pictures, separators, surrogates.
CHARACTERS = (
    "aAzZ09 \n.'-_" + "éßİıΣςάЖйſﬁﷺ½²Ⅷ٣ⅲ" + "\u0301\u0323\u0345\u0308\u093f\u20e3\u3099" + "猫東京々ーかがｶﾞﾟゟไท한글ᄀ"
) + ("🚀❤👍🏽🇩🇪™€∑" + "\u00ad\u200b\u200c\u200d\ufeff\ufe0f\u034f" + "\ud800\udfff\ue000\U000e0101\U0010ffff")
strings = st.one_of(
    st.text(max_size=60),
    st.text(st.characters(exclude_categories=()), max_size=60),
    st.text(st.sampled_from(CHARACTERS), max_size=200),
    st.text(st.sampled_from("a猫\u0301\u0323\u0345"), min_size=30, max_size=150),
    st.lists(st.text(st.sampled_from("aZ9"), min_size=1, max_size=70), max_size=30).map(" ".join),
    st.lists(st.text(st.sampled_from("aaaaaaaaaZ9é"), max_size=12), max_size=60).map(" ".join),
)
documents = st.lists(st.tuples(strings, strings), max_size=4)


def words(text: str, analysis: Analysis = PLAIN) -> list[str]:
    return [unicodedata.normalize("NFC", term.canonical) for term, _ in occurrences("", text, analysis)]


def plainly(pairs: list[tuple[str, str]], analysis: Analysis) -> list[dict[int, float]]:
    """Counts by feature, by the plain version alone."""
    counted: list[dict[int, float]] = []
    for title, text in pairs:
        counts: dict[int, float] = {}
        for term, weight in occurrences(title, text, analysis):
            feature = plain_hash(term.canonical)
            counts[feature] = counts.get(feature, 0.0) + weight
        counted.append({feature: float(np.float32(count)) for feature, count in sorted(counts.items())})
    return counted


def plain_hash(term: str) -> int:
    """The formula at the head of tokens.py, in integers of any size."""
    modulus = 1 << 64
    h = 0x243F6A8885A308D3
    octets = term.encode()
    for i in range(0, len(octets), 8):
        h = ((h ^ int.from_bytes(octets[i : i + 8], "little")) * 0x9E3779B97F4A7C15) % modulus
        h ^= h >> 32
    h = ((h ^ (h >> 30)) * 0xBF58476D1CE4E5B9) % modulus
    h = ((h ^ (h >> 27)) * 0x94D049BB133111EB) % modulus
    return max(h ^ (h >> 31), 1)


def as_counts(read: Bags) -> list[dict[int, float]]:
    rows = [read[i] for i in range(len(read))]
    return [dict(zip(features.tolist(), counts.tolist(), strict=True)) for features, counts in rows]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Crude OIL, crude-oil", "crude oil crude oil"),
        ("state-of-the-art", "state of the art"),
        ("Iran's don't l’eau", "iran s don t l eau"),
        ("U.S. 3.5 1,000", "u s 3 5 1 000"),
        ("mp3 COVID19 2nd", "mp3 covid19 2nd"),
        ("C++ #oil a_b x@y.org", "c oil a b x y org"),
        ("STRASSE Straße ﬁne Ａｂｃ km² Ⅷ", "strasse strasse fine abc km2 viii"),
        ("café cafe\u0301 CAFÉ cafe", "café café café cafe"),
        ("ΟΔΟΣ οδός МОСКВА Москва", "οδοσ οδόσ москва москва"),
        ("٣٤ ३४ ３４", "34 34 34"),
        ("東京都のラーメン", "東京 京都 都の のラ ラー ーメ メン"),
        ("猫 ｶﾞｷﾞ ガギ", "猫 ガギ ガギ"),
        ("서울에서 서울", "서울에서 서울"),
        ("iPhone発売2024年", "iphone 発売 2024 年"),
        ("สวัสดี", "สวั วัส สดี"),
        ("हिन्दी भाषा", "हिन्दी भाषा"),
        ("می‌خواهم inter\u00adnational zero\u200bwidth", "میخواهم international zero width"),
        ("🚀🚀❤️go 👍🏽 👨‍👩‍👧 🇩🇪", "🚀 🚀 ❤ go 👍 👨 👩 👧 🇩🇪"),
        ("Acme™ €5 a→b ½", "acme 5 a b 1 2"),
        ("\ud800lone\udfff\x00nul", "lone nul"),
        ("", ""),
        (" .\n\t-—…", ""),
    ],
)
def test_words_are_what_a_reader_expects(text: str, expected: str) -> None:
    assert words(text) == expected.split()
    assert as_counts(bags([("", text)], PLAIN)) == plainly([("", text)], PLAIN)


@given(pairs=documents, weight=st.sampled_from([1.0, 2.0, 1.3, 0.1]))
@settings(STEADY, max_examples=500)
def test_the_kernel_counts_what_the_plain_twin_counts(pairs: list[tuple[str, str]], weight: float) -> None:
    analysis = Analysis(title_weight=weight)
    assert as_counts(bags(pairs, analysis)) == plainly(pairs, analysis)


@given(pairs=documents, analysis=st.sampled_from(ANALYSES))
@STEADY
def test_canonical_terms_hash_to_the_features_of_the_document(pairs: list[tuple[str, str]], analysis: Analysis) -> None:
    read = bags(pairs, analysis)
    assert as_counts(read) == plainly(pairs, analysis)
    for i, (title, text) in enumerate(pairs):
        by_feature = terms(title, text, analysis)
        canonical = [term.canonical for term in by_feature.values()]
        assert sorted(features_of(canonical).tolist()) == sorted(by_feature) == read[i][0].tolist()
        assert not any("\n" in term or not term for term in canonical)


@given(pairs=documents, analysis=st.sampled_from(ANALYSES))
@STEADY
def test_features_ascend_and_counts_are_positive(pairs: list[tuple[str, str]], analysis: Analysis) -> None:
    read = bags(pairs, analysis)
    assert len(read) == len(pairs)
    assert [a.dtype.name for a in (read.indptr, read.features, read.counts)] == ["int64", "uint64", "float32"]
    for i in range(len(read)):
        features, counts = read[i]
        assert bool(np.all(features[1:] > features[:-1]))
        assert bool(np.all(counts > 0))


@given(text=st.text(max_size=40))
@STEADY
def test_composed_and_decomposed_text_are_the_same(text: str) -> None:
    assert words(unicodedata.normalize("NFC", text)) == words(unicodedata.normalize("NFD", text))


@given(title=strings, text=strings)
@STEADY
def test_surfaces_stand_in_the_text(title: str, text: str) -> None:
    for term in terms(title, text, PLAIN).values():
        assert 0 < len(term.surface) <= MAX_POINTS
        assert term.surface in title or term.surface in text


def test_the_surface_is_the_first_occurrence() -> None:
    found = terms("OPEC meets", "Opec and opec. Die Straße, STRASSE", PLAIN)
    surface = {term.canonical: term.surface for term in found.values()}
    assert surface["opec"] == "OPEC"
    assert surface["strasse"] == "Straße"


@given(data=st.binary(max_size=300), cuts=st.lists(st.integers(0, 300), min_size=2, max_size=6))
@STEADY
def test_bytes_that_are_no_utf8_do_no_harm(data: bytes, cuts: list[int]) -> None:
    cuts = sorted(min(cut, len(data)) for cut in cuts)
    cuts = cuts if len(cuts) % 2 else cuts[:-1]
    zones = buffer([data[start:stop] for start, stop in pairwise(cuts)])
    indptr, features, counts = tokenise_all(zones, 2.0, alphabet())
    assert int(indptr[-1]) == len(features) == len(counts)
    assert bool(np.all(counts > 0))


def test_a_document_larger_than_the_others_finds_room() -> None:
    pairs = [("", "a b"), ("", " ".join(f"w{i}" for i in range(5000))), ("t", "c")]
    assert as_counts(bags(pairs, PLAIN)) == plainly(pairs, PLAIN)


def test_more_documents_than_are_read_at_once_are_all_counted() -> None:
    pairs = [(f"t{i % 7}", f"w{i} w{i % 3}") for i in range(5000)]
    assert as_counts(bags(pairs, PLAIN)) == plainly(pairs, PLAIN)


def test_features_whose_slots_run_past_the_end_of_the_table_still_ascend() -> None:
    terms_read = [2**64 - 1, 7, 2**64 - 3, 2**63, 2**64 - 2, 2**64 - 3]
    table, features, counts = count_table_for(6), np.zeros(7, np.uint64), np.zeros(7, np.float32)
    count(np.array(terms_read, np.uint64), 0, 6, 1.0, *table[:3], 6)
    n = find_taken(table.taken, 6, table.places)
    end = drain(table.slots, table.weights, table.places, n, features, counts, 1)
    assert features[1:end].tolist() == sorted(set(terms_read))
    assert counts[1:end].tolist() == [1, 1, 2, 1, 1]
    for array in table[:3]:
        assert not array.any()


@given(st.sets(st.integers(0, 255)))
@STEADY
def test_taken_slots_are_found_in_order_and_set_free(chosen: set[int]) -> None:
    table = count_table_for(8)
    for place in chosen:
        table.taken[place >> 6] |= np.uint64(1 << (place & 63))
    n = int(find_taken(table.taken, 8, table.places))
    assert table.places[:n].tolist() == sorted(chosen)
    assert not table.taken.any()


def test_a_megabyte_without_a_space_is_one_short_term() -> None:
    found = terms("", "x" * 1_000_000, PLAIN)
    assert [(len(term.canonical), len(term.surface)) for term in found.values()] == [(MAX_POINTS, MAX_POINTS)]
    assert bags([("", "x" * 1_000_000 + " y")], PLAIN).counts.tolist() == [1.0, 1.0]


def test_the_table_says_of_every_code_point_what_fold_and_kind_say() -> None:
    entries, expansions = alphabet()
    checked = [*range(0x20000), *range(0x2F7F0, 0x2FA30), *range(0x3FFF0, 0x40010), *range(0xDFFF0, 0xE0210), 0x10FFFF]
    for point in checked:
        entry = int(entries[point])
        parts = [entry]
        if entry & 7 == SEVERAL:
            parts = expansions[entry >> 11 : (entry >> 11) + (entry >> 3 & 255)].tolist()
        folded = fold(chr(point))
        assert [part & 7 for part in parts] == [kind(c) for c in folded], hex(point)
        seen = [(part >> 3 & 255, part >> 11) for part in parts if part & 7]
        assert seen == [(unicodedata.combining(c), ord(c)) for c in folded if kind(c)], hex(point)


def test_no_code_point_gives_two_terms_a_byte() -> None:
    """Or the terms of a document would not fit into the scratch space, which has room for two a byte."""
    letters = {c: fold(c) for c in map(chr, range(0x110000)) if not 0xD800 <= ord(c) < 0xE000 and len(fold(c)) > 1}
    for character, folded in letters.items():
        starts = [kind(c) for c in folded]
        most = sum(now in (UNSPACED, PICTURE) or (now == WORD != before) for before, now in pairwise([0, *starts]))
        assert most < 2 * len(character.encode())


def test_features_are_the_same_on_every_machine() -> None:
    """No log keeps them, but an exported model may: a change here is a new format."""
    terms_ = ["crude", "oil", "東京", "cafe\u0301"]
    assert features_of(terms_).tolist() == [plain_hash(term) for term in terms_]
    assert plain_hash("crude") == 0xCA72CBFEC5C80FC2


def test_features_spread_evenly_over_leading_and_trailing_bits() -> None:
    short = [a + b + c for a in "abcdefghijklmnopqrst" for b in "abcdefghijklmnopqrst" for c in "0123456789"]
    features = features_of(short)
    assert len(np.unique(features)) == len(short)
    for bits in (features >> np.uint64(58), features & np.uint64(63)):
        expected = len(short) / 64
        chi2 = float((((np.bincount(bits.astype(np.int64), minlength=64) - expected) ** 2) / expected).sum())
        assert 30 < chi2 < 110  # 63 degrees of freedom: mean 63, standard deviation 11


def test_many_lists_of_terms_are_hashed_at_once() -> None:
    assert features_of([]).tolist() == features_of_lines(b"").tolist() == []
    lists = [["a", "crude oil"], ["é"], ["b"]]
    blob = "\n".join("\n".join(terms) for terms in lists).encode()
    assert features_of_lines(blob).tolist() == [f for terms in lists for f in features_of(terms).tolist()]


def test_stemming_joins_forms_also_under_accents() -> None:
    assert words("connections connected", Analysis(stemmer="english")) == ["connect", "connect"]
    assert words("Häuser hause", Analysis(stemmer="german")) == ["haus", "haus"]


def test_stop_words_go_and_pairs_stay_within_words() -> None:
    analysis = Analysis(stop_words=frozenset({"THE", "of"}), bigrams=True)
    assert words("The Bank of England 東京 rate 🚀 cut", analysis) == [
        *("bank", "england", "bank england", "東京", "rate", "🚀", "cut"),
    ]
    found = {term.canonical: term.surface for term in terms("", "Crude OIL", Analysis(bigrams=True)).values()}
    assert found["crude oil"] == "Crude OIL"


@pytest.mark.parametrize("wrong", [{"title_weight": 0.0}, {"title_weight": float("nan")}, {"stemmer": "klingon"}])
def test_an_analysis_that_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"title_weight|stemmer"):
        Analysis(**wrong)


def test_threads_do_not_share_scratch() -> None:
    pairs = [("title here", f"document {i} of many words {i * i}") for i in range(500)]
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: as_counts(bags(pairs, PLAIN)), range(8)))
    assert all(result == results[0] for result in results)


@given(pairs=documents, data=st.data())
@STEADY
def test_some_of_the_bags_are_the_bags_of_some(pairs: list[tuple[str, str]], data: st.DataObject) -> None:
    whole = bags(pairs, Analysis())
    places = data.draw(st.lists(st.integers(0, len(pairs) - 1), max_size=8)) if pairs else []
    taken = whole.take(places)
    assert len(taken) == len(places)
    for k, i in enumerate(places):
        (features, counts), (wanted, how_often) = taken[k], whole[i]
        assert (features.tolist(), counts.tolist()) == (wanted.tolist(), how_often.tolist())
        assert (features.dtype, counts.dtype) == (wanted.dtype, how_often.dtype)
