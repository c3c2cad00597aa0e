"""Document frequencies: counted exactly, added in any order, and sensible before anything has been counted."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.core.vectors import Bag
from models.core.views import view
from models.text.analysis import Analysis, Bags, bags, features_of
from models.text.function_words import ENGLISH, FRENCH, GERMAN, SHARES, SPANISH
from models.text.idf import BUCKETS, PSEUDO_DOCUMENTS, RARE_DF, Counter, Frequencies, bucket

STEADY = settings(deadline=None, derandomize=True, max_examples=40)  # each fills tables of a million
PLAIN = Analysis()

vocabulary = [f"word{i}" for i in range(30)]
streams = st.lists(st.lists(st.sampled_from(vocabulary), max_size=12), max_size=20)


def stream_of(texts: list[list[str]]) -> Bags:
    return bags([("", " ".join(words)) for words in texts], PLAIN)


def counted(stream: Bags) -> Counter:
    counter = Counter()
    counter.add_all(stream)
    return counter


def idf_of(frequencies: Frequencies, *words: str) -> list[float]:
    return [float(idf) for idf in frequencies.idf(features_of(words))]


@given(texts=streams)
@STEADY
def test_idf_is_its_formula(texts: list[list[str]]) -> None:
    frequencies = Frequencies.prior().plus(counted(stream_of(texts)))
    df = np.array([sum(word in text for text in texts) for word in vocabulary])
    expected = np.log((len(texts) + PSEUDO_DOCUMENTS) / (df + RARE_DF))
    np.testing.assert_allclose(idf_of(frequencies, *vocabulary), expected, rtol=1e-6)


@given(texts=streams, cut=st.integers(0, 20))
@STEADY
def test_one_by_one_or_all_at_once_or_in_two_parts_is_the_same(texts: list[list[str]], cut: int) -> None:
    stream = stream_of(texts)
    one_by_one = Counter()
    for i in range(len(stream)):
        one_by_one.add(stream[i][0])
    whole = Frequencies.prior().plus(counted(stream))
    first, second = counted(stream_of(texts[:cut])), counted(stream_of(texts[cut:]))
    for other in (
        Frequencies.prior().plus(one_by_one),
        Frequencies.prior().plus(first).plus(second),
        Frequencies.prior().plus(second).plus(first),
        Frequencies.of(whole.documents, *whole.nonzero()),
    ):
        assert other.documents == whole.documents == len(texts)
        assert np.array_equal(other.df, whole.df)


def test_two_words_of_a_document_in_one_bucket_count_once() -> None:
    features = np.array([5 << 44, (5 << 44) + 1, 6 << 44], dtype=np.uint64)
    one = Counter()
    one.add(features)
    many = counted(Bags(np.array([0, 3]), features, np.ones(3, dtype=np.float32)))
    for counter in (one, many):
        assert [array.tolist() for array in counter.nonzero()] == [[5, 6], [1, 1]]
    assert [bucket(feature) for feature in features] == [5, 5, 6]


@given(texts=streams, copies=st.integers(1, 100))
@STEADY
def test_idf_is_never_negative_however_common_a_word(texts: list[list[str]], copies: int) -> None:
    counter = Counter()
    for _ in range(copies):
        counter.add(features_of(["the", "everywhere"]))
    counter.add_all(stream_of(texts))
    assert float(Frequencies.prior().plus(counter).table.min()) >= 0


def test_frequencies_do_not_change_when_something_is_added_to_them() -> None:
    before = Frequencies.prior()
    after = before.plus(counted(stream_of([["word1"]])))
    assert (before.documents, int(before.df.sum())) == (0, 0)
    assert (after.documents, int(after.df.sum())) == (1, 1)


def test_past_their_age_counts_are_halved_until_they_fit() -> None:
    frequencies = Frequencies.prior().plus(counted(stream_of([["word1"]] * 7 + [["word2"]] * 2)), age=3)
    assert frequencies.documents == 2
    assert frequencies.nonzero()[1].tolist().count(1) == 1  # word1: 7 → 3 → 1; word2: 2 → 1 → 0
    assert Frequencies.prior().plus(counted(stream_of([["word1"]] * 4)), age=4).documents == 4


@pytest.mark.parametrize("language", [ENGLISH, GERMAN, FRENCH, SPANISH])
def test_before_any_document_function_words_weigh_little(language: frozenset[str]) -> None:
    weights = idf_of(Frequencies.prior(), *sorted(word for word in language if word.isascii()))
    assert max(weights) < idf_of(Frequencies.prior(), "petroleum")[0] / 2


def test_accented_function_words_are_found_as_the_text_has_them() -> None:
    found = bags([("", "für être también")], PLAIN)
    assert float(Frequencies.prior().idf(found.features).max()) < 4
    assert 0 < min(SHARES.values()) <= max(SHARES.values()) < 1


def test_a_query_alone_does_not_match_on_the_and_and() -> None:
    documents = bags(
        [
            ("", "the price of crude oil and the output of the cartel"),
            ("", "the history of the theatre and of the actors who played in it and about it"),
            ("", "crude petroleum"),
        ],
        PLAIN,
    )
    query = bags([("", "the news about crude oil and petroleum")], PLAIN)
    idf = Frequencies.prior().idf
    q = view("tfidf", Bag(*query[0], idf(query.features)))
    weights = dict(zip(q.features.tolist(), q.values.tolist(), strict=True))
    scores = []
    for i in range(len(documents)):
        features, counts = documents[i]
        x = view("tfidf", Bag(features, counts, idf(features)))
        scores.append(sum(weights.get(f, 0.0) * v for f, v in zip(x.features.tolist(), x.values.tolist(), strict=True)))
    assert scores[1] < 0.05 < 0.25 < min(scores[0], scores[2])


def test_the_prior_fades_as_the_stream_grows() -> None:
    """A stream about oil and without articles: oil becomes the common word, and "the" the rare one."""
    counter = Counter()
    for i in range(20_000):
        counter.add(features_of(["oil", f"n{i}"]))
    early, late = Frequencies.prior(), Frequencies.prior().plus(counter)
    assert idf_of(early, "oil") > idf_of(early, "the")
    assert idf_of(late, "oil") < idf_of(late, "the")


def test_the_table_has_an_idf_for_every_feature() -> None:
    features = np.array([0, 1, 2**63, 2**64 - 1], dtype=np.uint64)
    frequencies = Frequencies.prior()
    assert frequencies.idf(features).dtype == np.float32
    assert len(frequencies.idf(features[:0])) == 0
    assert frequencies.table.shape == (BUCKETS,)
