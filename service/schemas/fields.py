"""The fields of requests and answers: what a text, an id or a number may be.

Requests are validated from the raw bytes in strict mode: no coercion, no unknown field, no NaN or infinity, no lone
surrogate (the parser refuses it), no NUL.
"""

import math
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, WithJsonSchema

TOPIC_ID = r"^[a-z0-9][a-z0-9._-]{0,127}$"
CANONICAL = r"^[^\n\x00]{1,400}$"  # a term in canonical form
PLACE = r"^[0-9]{1,19}(-[0-9]{1,19})?$"  # an entry's id in a Redis stream
RANK = r"^-?[0-9]{1,40}([.][0-9]{1,40})?(e[+-]?[0-9]{1,3})?(_[0-9]{1,19}-[0-9]{1,19}){1,3}$"  # a score, and places
HIT = r"^-?[0-9]{1,40}([.][0-9]{1,40})?(e[+-]?[0-9]{1,3})?_[0-9]{1,18}$"  # a score, and a number of the search index
JOB_ID = r"^[0-9a-f]{20}$"
KEY_ID = r"^[0-9a-f]{16}$"
FEATURE = r"^[0-9a-f]{16}$"  # the hash of a term
NUMBER = r"^[1-9][0-9]{0,14}$"  # as a cursor
LANGUAGE = r"^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8}){0,7}$"  # a tag as in BCP 47
SHAPES = {  # patterns in words, for errors
    TOPIC_ID: "An id has 1 to 128 characters out of a-z, 0-9, dot, _ and -, and begins with a letter or digit.",
    CANONICAL: "A term has 1 to 400 characters, on one line.",
    PLACE: "A place in a stream is a number, or two numbers joined by a hyphen.",
    RANK: "A cursor of a ranking is the `next` of an earlier page.",
    HIT: "A cursor of a search is the `next` of an earlier page.",
    JOB_ID: "A job's id has 20 characters out of 0-9 and a-f.",
    FEATURE: "A feature has 16 characters out of 0-9 and a-f.",
    NUMBER: "This must be a whole number above 0.",
    LANGUAGE: "A language is a tag such as en or pt-BR.",
}
# Tags of the members of unions. Pydantic puts them into the location of an error, though they are not in the request.
SINGLE, BATCH, BY_ID, WHOLE, PLAIN, NESTED = "<single>", "<batch>", "<id>", "<document>", "<plain>", "<nested>"
WEBHOOK, STREAM = "<webhook>", "<stream>"
FEED, FILE, FOLDER = "<feed>", "<file>", "<folder>"
TAGS = (SINGLE, BATCH, BY_ID, WHOLE, PLAIN, NESTED, WEBHOOK, STREAM, FEED, FILE, FOLDER)

DOCUMENT_ID_CHARS = 256
URL_CHARS = 2000
NOT_IN_URLS = frozenset('<>"\\')  # what RFC 3986 excludes and pages and mails would have to escape
MAX_METADATA_VALUES, MAX_METADATA_CHARS = 1000, 100_000  # of one document, with which they are kept
MAX_THRESHOLD = 3.4028234663852886e38  # the largest float32: no score is above it, as in a topic without a query
MAX_MS = 253_402_300_799_999  # the end of the year 9999
MAX_NUMBER = 1e15  # in an imported model: no learner reaches it, and sums of such numbers still fit


def no_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("This contains a NUL character.")
    return text


def _addressable(text: str) -> str:
    """Refuses ids that cannot be used in logs, headers and paths; clients drop dot segments from paths."""
    if not text.isprintable():
        raise ValueError("This contains control characters.")
    if any(segment in (".", "..") for segment in text.split("/")):
        raise ValueError("This contains a path segment `.` or `..`, which clients remove.")
    return text


def link(url: str) -> str:
    """Refuses what no reader must be led to: another scheme, such as javascript:, or a host that only looks right."""
    if not url.isprintable() or " " in url or NOT_IN_URLS.intersection(url):
        raise ValueError("This URL must not have spaces, control characters, quotes, backslashes, < or >.")
    try:
        parts = urlsplit(url)
        host = parts.hostname if parts.port != 0 else None
    except ValueError:
        raise ValueError("This URL does not have a valid host name and port.") from None
    if parts.scheme not in ("http", "https") or not host:
        raise ValueError("This must be a URL that begins with https:// or http://.")
    if parts.username is not None or parts.password is not None:
        raise ValueError("This URL must not have a user or a password.")
    return url


def _scalar(value: JsonValue) -> JsonValue:
    if isinstance(value, list | dict):
        raise ValueError("This must be a number, a string, true, false or null.")
    return _plain(value)


def _plain(value: JsonValue) -> JsonValue:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("This contains a number that is not finite.")
    return no_nul(value) if isinstance(value, str) else value


def bounded(metadata: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Refuses metadata with too many values or characters; keys count as characters only."""
    values, chars = -1, 0  # the outermost object is not counted
    waiting: list[JsonValue] = [metadata]
    while waiting:
        value = _plain(waiting.pop())
        values += 1
        if isinstance(value, dict):
            waiting += [*value, *value.values()]
            values -= len(value)
        elif isinstance(value, list):
            waiting += value
        elif isinstance(value, str):
            chars += len(value)
        if values > MAX_METADATA_VALUES or chars > MAX_METADATA_CHARS:
            raise ValueError(
                f"This contains more than {MAX_METADATA_VALUES:,} values or {MAX_METADATA_CHARS:,} characters."
            )
    return metadata


TopicId = Annotated[str, Field(pattern=TOPIC_ID, examples=["crude"])]
Canonical = Annotated[str, Field(pattern=CANONICAL)]
Place = Annotated[str, Field(pattern=PLACE, examples=["1795000000000-0"])]
DocumentId = Annotated[str, Field(min_length=1, max_length=DOCUMENT_ID_CHARS), AfterValidator(_addressable)]
MaybeDocumentId = Annotated[str, Field(max_length=DOCUMENT_ID_CHARS), AfterValidator(_addressable)]  # empty: none
Text = Annotated[str, AfterValidator(no_nul)]
Line = Annotated[str, Field(max_length=1000), AfterValidator(no_nul)]
Url = Annotated[str, Field(max_length=URL_CHARS, examples=["https://example.org/opec"]), AfterValidator(link)]
Language = Annotated[str, Field(pattern=LANGUAGE, max_length=35, examples=["en"])]
Rule = Annotated[str, Field(max_length=10_000), AfterValidator(no_nul)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Number = Annotated[float, Field(ge=-MAX_NUMBER, le=MAX_NUMBER, allow_inf_nan=False)]
Threshold = Annotated[float, Field(ge=-MAX_THRESHOLD, le=MAX_THRESHOLD, allow_inf_nan=False)]
Grade = Annotated[int, Field(ge=0, le=3)]
Millis = Annotated[int, Field(ge=0, le=MAX_MS)]
Scalar = Annotated[
    JsonValue, AfterValidator(_scalar), WithJsonSchema({"type": ["boolean", "number", "string", "null"]})
]


class Request(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


class Answer(BaseModel):
    model_config = ConfigDict(frozen=True)
