"""Sentences about invalid input: what pydantic and other exceptions report, as a colleague would say it.

Pydantic's own messages ("Input should be a valid integer, unable to parse …") are never shown. Every type of error that
our types can cause has a sentence here, and each begins with "This", the value in question. A validator of ours raises
a ValueError with such a sentence.
"""

from collections.abc import Mapping
from typing import Any

MAX_CHARS = 500  # of a message that is passed on
SENTENCES: Mapping[str, str] = {
    "missing": "This field is required.",
    "extra_forbidden": "There is no such field.",
    **dict.fromkeys(("int_type", "int_parsing", "int_parsing_size", "int_from_float"), "This must be a whole number."),
    **dict.fromkeys(("float_type", "float_parsing"), "This must be a number."),
    "finite_number": "This must be a finite number.",
    **dict.fromkeys(("bool_type", "bool_parsing"), "This must be true or false."),
    "string_type": "This must be a string.",
    "string_unicode": "This must be valid UTF-8.",
    **dict.fromkeys(("list_type", "tuple_type"), "This must be a list."),
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), "This must be an object."),
    **dict.fromkeys(("path_type", "path_parsing"), "This must be a path."),
    **dict.fromkeys(
        ("datetime_type", "datetime_parsing", "datetime_from_date_parsing", "datetime_object_invalid"),
        "This must be a time such as 2026-03-01T12:00:00Z.",
    ),
    "none_required": "This must be null.",
    "greater_than": "This must be above {gt}.",
    "greater_than_equal": "This must be at least {ge}.",
    "less_than": "This must be below {lt}.",
    "less_than_equal": "This must be at most {le}.",
    "literal_error": "This must be {expected}.",
    "union_tag_not_found": "This has none of the forms allowed here; see /docs.",
    "union_tag_invalid": "This has none of the forms allowed here; see /docs.",
    "string_pattern_mismatch": "This does not have the right form; see /docs.",
}
LENGTHS: Mapping[str, tuple[str, str, str]] = {  # the limit's name, the sentence before it, what is counted
    "string_too_short": ("min_length", "This must have at least", "character"),
    "string_too_long": ("max_length", "This may have at most", "character"),
    "too_short": ("min_length", "This must have at least", "item"),
    "too_long": ("max_length", "This may have at most", "item"),
}


def describe(finding: Mapping[str, Any]) -> str:
    """A finding of pydantic in a sentence."""
    kind, context = finding["type"], finding.get("ctx", {})
    if kind in LENGTHS:
        limit, begin, counted = LENGTHS[kind]
        if (limit, context[limit]) == ("min_length", 1):
            return "This must not be empty."
        return f"{begin} {number_of(context[limit], counted)}."
    if kind in SENTENCES:
        return SENTENCES[kind].format(**{name: _written(value) for name, value in context.items()})
    return as_sentence(str(finding["msg"]).removeprefix("Value error, "))


def as_sentence(message: object) -> str:
    """A message, or that of an exception, with a capital at the beginning and a full stop at the end."""
    text = str(message)[:MAX_CHARS].rstrip(". ")
    return f"{text[:1].upper()}{text[1:]}."


def number_of(count: int, noun: str) -> str:
    """The count with its noun, in the singular for 1."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


def _written(value: object) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
