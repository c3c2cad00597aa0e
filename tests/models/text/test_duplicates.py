"""Among the last documents of a stream, the one that a new one repeats is found, and no other."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from models.text.analysis import Analysis, bags
from models.text.duplicates import MAX_COMPARED, MIN_AGREEING, RecentDocuments, Repeats
from models.text.minhash import HASHES, Signature, Signatures, signature, signatures
from tests.models.text.test_minhash import features, resembling

STEADY = settings(derandomize=True, max_examples=100, deadline=None)


def added(recent: RecentDocuments, rows: Signatures, batch_size: int = 1, start: int = 0) -> list[str]:
    """What each document repeats, when each has its number for a name."""
    found: list[str] = []
    for first in range(0, len(rows), batch_size):
        part = rows[first : first + batch_size]
        names = [str(start + first + i) for i in range(len(part))]
        found += recent.add(names, part, start + first + len(part))
    return found


def slowly(rows: Signatures, window: int) -> list[set[str]]:
    """For each the names that may be reported, by comparing it with all firsts of the block before, then of its own."""
    size = max(1, window // 2)
    firsts: dict[int, list[int]] = {-1: []}
    found = []
    for i in range(len(rows)):
        block, alike = i // size, [int(np.sum(row == rows[i])) >= MIN_AGREEING for row in rows[:i]]
        here = firsts.setdefault(block, [])
        before, current = ([j for j in candidates if alike[j]] for candidates in (firsts[block - 1], here))
        if not current:
            here.append(i)
        found.append({str(j) for j in before or current} or {str(i)})
    return found


@st.composite
def streams(draw: st.DrawFn) -> Signatures:
    """A few documents, and copies in which some hashes differ: too few to touch every band, or far too many."""
    random = np.random.default_rng(draw(st.integers(0, 1 << 32)))
    base = random.integers(0, 1 << 32, (draw(st.integers(1, 6)), HASHES), dtype=np.uint32)
    rows: list[Signature] = []
    for _ in range(draw(st.integers(1, 40))):
        row = base[draw(st.integers(0, len(base) - 1))].copy()
        changed = random.choice(HASHES, draw(st.sampled_from((0, 1, 3, 20))), replace=False)
        row[changed] = random.integers(0, 1 << 32, len(changed), dtype=np.uint32)
        rows.append(row)
    return np.array(rows)


@STEADY
@given(streams(), st.integers(1, 50), st.integers(1, 9))
def test_as_when_each_is_compared_with_all(rows: Signatures, window: int, batch_size: int) -> None:
    reported = added(RecentDocuments(window), rows, batch_size)
    for name, allowed in zip(reported, slowly(rows, window), strict=True):
        assert name in allowed


def test_how_many_come_together_changes_nothing() -> None:
    documents = [features(60) for _ in range(40)]
    copies = [resembling(document, 0.9) for document in documents]
    rows = np.array([signature(document) for document in (*documents, *copies)])
    one_by_one, by_seven, together = (added(RecentDocuments(100), rows, size) for size in (1, 7, 80))
    assert one_by_one == by_seven == together


def test_what_left_the_window_is_forgotten() -> None:
    rows = np.array([signature(features(50)) for _ in range(10)])
    recent = RecentDocuments(10)
    assert added(recent, rows) == [str(i) for i in range(10)]
    assert added(recent, rows[5:6], start=10) == ["5"]
    assert added(recent, rows[:1], start=11) == ["11"]


@STEADY
@given(streams(), st.integers(1, 30), st.integers(0, 40))
def test_whoever_reads_the_end_of_a_stream_knows_as_much(rows: Signatures, window: int, start: int) -> None:
    whole, part = RecentDocuments(window), RecentDocuments(window)
    last = min(start, len(rows) - 1)  # the document that is asked about
    read = whole.oldest(last + 1) - 1
    assert read >= last - window
    assert added(whole, rows)[last] == added(part, rows[read:], start=read)[last - read]


def test_documents_without_words_repeat_nobody() -> None:
    empty = signatures(bags([("", ""), ("", "..."), ("", "")], Analysis()))
    assert added(RecentDocuments(10), empty) == ["0", "1", "2"]


def test_many_that_share_a_band_are_not_all_looked_at_and_the_newest_is_found() -> None:
    rows = np.random.default_rng(1).integers(0, 1 << 32, (4 * MAX_COMPARED, HASHES), dtype=np.uint32)
    rows[:, :8] = 7  # two bands are the same in all
    again = np.concatenate((rows, rows[-1:]))
    assert added(RecentDocuments(1000), again)[-1] == str(4 * MAX_COMPARED - 1)


def test_nearly_all_copies_with_a_twentieth_of_the_words_changed_are_found() -> None:
    documents = [features(100) for _ in range(500)]
    copies = [resembling(document, 0.9) for document in documents]
    found = added(RecentDocuments(2000), np.array([signature(document) for document in (*documents, *copies)]))
    pairs = zip(documents, copies, strict=True)
    agree = [int(np.sum(signature(a) == signature(b))) >= MIN_AGREEING for a, b in pairs]
    assert sum(name == str(i) for i, name in enumerate(found[500:])) >= 0.97 * sum(agree) > 440
    assert found[:500] == [str(i) for i in range(500)]


@STEADY
@given(streams())
def test_what_a_document_would_repeat_is_known_before_it_is_taken(rows: Signatures) -> None:
    recent = RecentDocuments(2 * len(rows))  # all in one block
    for i, row in enumerate(rows):
        (found,) = recent.find(row[None])
        assert [found or str(i)] == added(recent, row[None], start=i)


def test_a_first_that_comes_again_with_another_text_leaves_its_copies_to_each_other() -> None:
    """They all resembled a document that was no longer stored, so each was counted as new."""
    old, new = signature(features(50)), signature(features(50))
    for window in (100, 6):  # of one block, and of several
        recent = RecentDocuments(window)
        assert recent.add(["a", "b"], np.array([old, old]), 2) == ["a", "a"]
        assert recent.add(["a"], np.array([new]), 3) == ["a"]
        assert recent.add(["c", "d"], np.array([old, old]), 5) == ["c", "c"]
        assert recent.add(["e"], np.array([new]), 6) == ["a"]
    together = RecentDocuments(100)
    assert together.add(list("abacde"), np.array([old, old, new, old, old, new]), 6) == ["a", "a", "a", "c", "c", "a"]
    assert together.add(["a", "c"], np.array([new, old]), 8) == ["a", "c"]


def test_what_a_document_repeats_can_be_looked_up_later_and_is_forgotten_in_the_end() -> None:
    first, other = (np.full((1, HASHES), n, np.uint32) for n in (1, 2))
    repeats = Repeats(2)
    repeats.add(["a", "b", "c"], np.concatenate([first, first, other]), 3)
    assert [repeats.first(name) for name in "abcd"] == ["a", "a", "c", "d"]
    assert repeats.among(["a", "b", "c"]) == {"b": "a"}
    repeats.add(["b"], other, 4)  # sent again with another text
    assert repeats.first("b") == "c"
    for n in range(3):
        repeats.add([f"copy{n}"], other, 5 + n)
    assert repeats.first("b") == "b"
