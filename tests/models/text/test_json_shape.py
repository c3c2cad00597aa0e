"""The shape of a JSON text equals that of the parsed value."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from models.text.json_shape import shape

awkward = st.text('a"\\[{,]}é', max_size=5)
values = st.recursive(
    st.none() | st.integers() | awkward,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(awkward, inner, max_size=4),
    max_leaves=20,
)


@given(values)
def test_the_shape_of_a_json_text_is_that_of_the_parsed_value(value: Any) -> None:
    def inside(value: Any) -> list[Any]:
        return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []

    def counted(value: Any) -> int:
        return 1 + sum(map(counted, inside(value))) + (value in ([], {}))

    def deep(value: Any) -> int:
        return isinstance(value, list | dict) + max(map(deep, inside(value)), default=0)

    text = json.dumps({"a": value}, ensure_ascii=False).encode()
    records = sum(isinstance(each, dict) for each in inside(value))
    assert shape(text) == (1 + counted(value), 1 + deep(value), records)


def test_what_is_not_json_has_a_shape_too() -> None:
    """The parser says what is wrong with it; here nothing may be read beyond the end."""
    assert [shape(text).depth for text in (b"", b"[" * 1000, b"]]]]{", b'"\\', b"\\")] == [0, 1000, 0, 0, 0]
