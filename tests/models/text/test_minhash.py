"""Near-duplicates are found, other documents are not, and resemblance is estimated without bias."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.core.vectors import Features
from models.text.analysis import Analysis, bags
from models.text.minhash import HASHES, Groups, SeenDocuments, signature, without_group

STEADY = settings(derandomize=True, max_examples=50, deadline=None)
RANDOM = np.random.default_rng(5)


def features(n: int) -> Features:
    return np.unique(RANDOM.integers(1, 1 << 63, n, dtype=np.uint64))


def resembling(document: Features, resemblance: float) -> Features:
    """A document of the same size, with |A ∩ B| / |A ∪ B| as asked."""
    n = len(document)
    common = round(2 * n * resemblance / (1 + resemblance))
    return np.concatenate((document[:common], features(n - common)))


def test_the_share_of_equal_minima_is_the_resemblance() -> None:
    for resemblance in (0.2, 0.5, 0.8):
        shares = []
        for _ in range(300):
            document = features(120)
            shares.append(np.mean(signature(document) == signature(resembling(document, resemblance))))
        assert abs(np.mean(shares) - resemblance) < 0.02


def test_a_story_sent_again_with_a_few_words_changed_is_the_same_story() -> None:
    story = [f"word{i}" for i in range(150)]
    texts = [
        " ".join(story),
        " ".join([*story[:60], "corrected", *story[62:]]),
        " ".join(f"other{i}" for i in range(150)),
    ]
    groups = Groups()
    read = bags([("", text) for text in texts], Analysis())
    for i in range(3):
        groups.add(read[i][0])
    assert groups.group.tolist() == [0, 0, 2]


def test_documents_of_one_subject_are_not_duplicates() -> None:
    found = 0
    for _ in range(200):
        groups, document = Groups(), features(120)
        groups.add(document)
        groups.add(resembling(document, 0.4))
        found += groups.group[1] == 0
    assert found <= 2


def test_most_that_share_nine_features_of_ten_are_found() -> None:
    found = 0
    for _ in range(200):
        groups, document = Groups(), features(120)
        groups.add(document)
        groups.add(resembling(document, 0.85))
        found += groups.group[1] == 0
    assert found >= 185


@STEADY
@given(st.lists(st.sets(st.integers(1, 2**64 - 1), max_size=8), max_size=40))
def test_a_group_is_named_by_its_first_document(documents: list[set[int]]) -> None:
    groups = Groups()
    for document in documents:
        groups.add(np.array(sorted(document), np.uint64))
    group = groups.group
    assert len(group) == len(documents)
    for i, first in enumerate(group):
        assert first <= i
        assert group[first] == first
        same = [k for k in range(i) if documents[k] == documents[i]]
        assert not same or first <= same[0]


def test_an_empty_document_has_a_signature() -> None:
    assert len(signature(np.empty(0, np.uint64))) == HASHES


def test_a_document_is_scored_without_what_its_copies_taught() -> None:
    """Each of three copies added .2 to a score of .1; the fourth document stands alone."""
    scores, held_out = np.array([0.7, 0.7, 0.7, 0.5]), np.array([0.5, 0.5, 0.5, 0.4])
    assert without_group(held_out, scores, np.array([0, 0, 0, 3])).tolist() == pytest.approx([0.1, 0.1, 0.1, 0.4])


def test_what_was_told_is_no_news_and_neither_is_its_near_duplicate() -> None:
    rng = np.random.default_rng(3)
    documents = [np.unique(rng.integers(1 << 62, size=60, dtype=np.uint64)) for _ in range(40)]
    seen = SeenDocuments(np.stack([signature(document) for document in documents[:5]]))
    assert [seen.add_if_new(document) for document in documents] == [False] * 5 + [True] * 35
    assert not any(seen.add_if_new(document[3:]) for document in documents)
