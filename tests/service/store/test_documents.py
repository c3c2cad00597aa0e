"""A remembered document comes back whole, whatever its length."""

import zlib

from hypothesis import given
from hypothesis import strategies as st

from service.schemas import Document
from service.store.documents import MIN_COMPRESSED, pack, unpack

WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=50)


@given(WORDS, WORDS, st.integers(0, 1 << 45), st.booleans())
def test_it_comes_back_whole_with_the_time_when_it_came(title: str, text: str, now_ms: int, everywhere: bool) -> None:
    short, long = Document(title=title, text=text), Document(title=title, text=text + "long " * MIN_COMPRESSED)
    for one, blob in zip((short, long), pack(["a", "b"], [short, long], now_ms, everywhere).values(), strict=True):
        remembered = unpack(blob)
        assert (remembered.document.title, remembered.document.text) == (one.title, one.text)
        assert (remembered.came_ms, remembered.everywhere) == (now_ms, everywhere)
        assert len(blob) < 2 * MIN_COMPRESSED


def test_a_short_one_that_is_compressed_is_read_too() -> None:
    text = Document(id="d", text="oil").model_dump_json().encode()
    blob = (7).to_bytes(8) + zlib.compress(text, 1)
    assert unpack(blob).document == Document(id="d", text="oil")
