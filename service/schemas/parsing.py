"""Parsing JSON from clients: bounded, strict, from the raw bytes. HTTP, streams and archives share it.

Errors never repeat what was sent, so that nobody can make the service print something of theirs, or get a megabyte back
for a megabyte sent.
"""

from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from models.text.json_shape import shape
from service import schemas
from service.config import Config
from service.errors import BadInput, BadRequest, FieldError, ServiceError, TooLarge
from service.schemas import fields, jobs
from service.schemas.fields import SHAPES
from service.sentences import describe

MAX_VALUES = 100_000  # numbers, strings, lists … in one JSON text: parsing that many takes about 50 ms
MAX_DEPTH = 100  # lists and objects inside one another
MAX_FIELD_ERRORS = 20  # in one answer

TAGS = (*fields.TAGS, *jobs.TAGS.values())  # of union members; left out of pointers
ADDED_TO_POINTERS = {jobs.UNKNOWN_KIND: ("kind",)}  # pydantic's location is that of the whole job
SYNTAX_ERRORS = {
    "Invalid JSON: ": "",
    " at line 1 column ": " at column ",
    "EOF while parsing a value": "it ends where a value is expected",
    "EOF while parsing": "it ends inside",
    "trailing comma": "there is a trailing comma",
    "trailing characters": "there is more after its end",
    "expected value": "expected a value",
    "expected ident": "expected true, false or null",
    "unexpected end of hex escape": "a \\u escape is not complete",
    "lone leading surrogate in hex escape": "half a surrogate pair in a \\u escape",
}

T = TypeVar("T")


def parse(adapter: TypeAdapter[T], raw: bytes, limits: Config) -> T:
    """The value of a body or of a line; raises a ServiceError that says what is wrong with it."""
    if not raw or raw.isspace():
        raise BadRequest("The body is empty; send JSON, at least {}.")
    if len(raw) > limits.max_body_bytes:
        raise TooLarge(f"This line is longer than {limits.max_body_bytes:,} bytes.")
    if raw.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        raise BadRequest("Send UTF-8 without a byte order mark.")
    # Validation cannot be interrupted, so anything that would take long is refused first.
    size = shape(raw)
    if size.depth > MAX_DEPTH:
        raise BadRequest(f"Lists and objects may be nested at most {MAX_DEPTH} levels deep.")
    if size.records > limits.max_documents:
        raise TooLarge(
            f"A request may have at most {limits.max_documents:,} documents or judgements; send the rest in another."
        )
    if size.values > MAX_VALUES:
        raise TooLarge(f"A request may have at most {MAX_VALUES:,} values; send the rest in another.")
    try:
        return adapter.validate_json(raw)
    except ValidationError as error:
        try:
            raw.decode()
        except UnicodeDecodeError as wrong:
            raise BadRequest(f"This is not valid UTF-8, from byte {wrong.start + 1} on.") from None
        raise from_validation(error) from None


def check_length(document: schemas.Document, max_chars: int) -> None:
    """Refuses a document that is longer than the configured limit."""
    if max(len(document.text), len(document.title)) > max_chars:
        raise TooLarge(f"A document may have at most {max_chars:,} characters of text.")


def from_validation(error: ValidationError) -> ServiceError:
    """Pydantic's error as one of ours: BadRequest if it is not JSON, BadInput if the JSON does not fit the type."""
    findings = error.errors(include_url=False, include_input=False)
    if findings[0]["type"] == "json_invalid":
        return BadRequest(f"This is not valid JSON: {_syntax_error(findings[0]['msg'])}.")
    return BadInput("Some fields are not valid.", _field_errors(findings))


def sentence(finding: Any) -> str:
    """A finding of pydantic, in our words."""
    shape = SHAPES.get(finding["ctx"]["pattern"]) if finding["type"] == "string_pattern_mismatch" else None
    return shape or describe(finding)


def _syntax_error(message: str) -> str:
    """The parser's message, in other words where those are the jargon of parsers."""
    for jargon, words in SYNTAX_ERRORS.items():
        message = message.replace(jargon, words)
    return message


def _field_errors(findings: Sequence[Any]) -> list[FieldError]:
    return [
        FieldError(pointer=_pointer((*e["loc"], *ADDED_TO_POINTERS.get(e["type"], ()))), detail=sentence(e))
        for e in findings[:MAX_FIELD_ERRORS]
    ]


def _pointer(location: Sequence[int | str]) -> str:
    """A JSON pointer (RFC 6901) without pydantic's tags. Long names are cut, because they come from the sender."""
    parts = [str(part)[:60] for part in location if part not in TAGS and part != "[key]"]
    return "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in parts)
