"""Bytes come back as what they were, and bytes that are not ours are refused."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from service.store import codec

WORDS = st.lists(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), min_size=1), max_size=20)


@given(WORDS, st.data())
def test_a_bag_comes_back(words: list[str], data: st.DataObject) -> None:
    numbers = st.lists(st.floats(0, 1000, width=32), min_size=len(words), max_size=len(words))
    counts = np.array(data.draw(numbers), np.float32)
    idf = np.array(data.draw(numbers), np.float32)
    lines, counts_again, idf_again = codec.unpack_bag(codec.pack_bag(words, counts, idf))
    assert lines.decode() == "\n".join(words)
    np.testing.assert_array_equal(counts_again, counts)
    np.testing.assert_array_equal(idf_again, idf)


@given(st.dictionaries(st.text(max_size=5), st.integers(0, 9) | st.text(max_size=9), max_size=4))
def test_a_header_and_its_arrays_come_back(meta: dict[str, object]) -> None:
    arrays: dict[str, NDArray[Any]] = {
        "a": np.arange(5, dtype=np.uint64),
        "b": np.linspace(0, 1, 3, dtype=np.float32),
        "c": np.empty(0),
    }
    meta_again, arrays_again = codec.unpack(codec.MODEL, codec.pack(codec.MODEL, meta, arrays))
    assert meta_again == meta
    for name, array in arrays.items():
        np.testing.assert_array_equal(arrays_again[name], array)


@given(st.integers(0, 80))
def test_a_cut_blob_is_refused(length: int) -> None:
    blob = codec.pack(codec.MODEL, {"n": 1}, {"a": np.arange(5, dtype=np.uint64)})
    with pytest.raises(codec.Corrupt):
        codec.unpack(codec.MODEL, blob[: min(length, len(blob) - 1)])


def test_what_another_version_wrote_is_refused_by_name() -> None:
    blob = b"SLM9" + codec.pack(codec.MODEL, {}, {})[4:]
    with pytest.raises(codec.Corrupt, match="another version"):
        codec.unpack(codec.MODEL, blob)


def test_a_number_that_is_not_finite_is_not_written() -> None:
    with pytest.raises(ValueError, match="JSON"):
        codec.pack(codec.MODEL, {"bias": float("nan")}, {})
