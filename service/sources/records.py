"""Records of a file, as documents.

    ndjson   a document on each line, as for `POST /classify`; without a `source`, it gets that of the file
    text     a document on each line, without a title
    mbox     a message is a document: subject, plain text, sender, date; its Message-ID makes its id

A document without an id gets one of its content, so what is read twice after a crash is the same document. A line that
is no document is passed on as it is: the consumer that cannot read it keeps it as a dead letter, with the reason.
"""

import email
import email.policy
import re
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import parsedate_to_datetime

from pydantic import TypeAdapter, ValidationError

from service.schemas import Document
from service.sources.items import Feed, Item
from service.sources.text import html_to_text, tidy

DOCUMENT = TypeAdapter(Document)


def from_ndjson(content: bytes, source: str) -> list[Document | bytes]:
    """A document for each line, or the line if it is none."""
    return [_from_json(line, source) for line in content.split(b"\n") if line.strip()]


def from_text(content: bytes, source: str, max_chars: int) -> list[Document | bytes]:
    """A document for each line that is not blank."""
    lines = (tidy(line) for line in content.decode(errors="replace").split("\n"))
    return [Document(text=line[:max_chars], source=source) for line in lines if line]


def from_mbox(content: bytes) -> Feed:
    """The messages of an mbox. Only the child process calls this, as what people send can be as hostile as a feed."""
    parts = re.split(rb"(?:\A|\n\n)From [^\n]*\n", content)
    return Feed(items=tuple(_message(part) for part in parts if part.strip()))


def _from_json(line: bytes, source: str) -> Document | bytes:
    try:
        document = DOCUMENT.validate_json(line)
    except ValidationError:
        return line
    return document if document.source else document.model_copy(update={"source": source})


def _message(content: bytes) -> Item:
    message = email.message_from_bytes(content.replace(b"\n>From ", b"\nFrom "), policy=email.policy.default)
    return Item(
        guid=_header(message, "message-id"),
        title=_header(message, "subject"),
        text=_body(message),
        author=_header(message, "from"),
        published=_date(message),
    )


def _header(message: EmailMessage, name: str) -> str:
    return " ".join(str(message.get(name, "")).encode(errors="replace").decode().split())


def _body(message: EmailMessage) -> str:
    part = message.get_body(preferencelist=("plain", "html"))
    if part is None:
        return ""
    content = part.get_payload(decode=True)
    charset = part.get_content_charset("utf-8")
    try:
        text = content.decode(charset, "replace") if isinstance(content, bytes) else str(content)
    except LookupError:  # there is no such encoding
        text = content.decode("utf-8", "replace") if isinstance(content, bytes) else ""
    text = text.encode(errors="replace").decode()
    return html_to_text(text) if part.get_content_type() == "text/html" else tidy(text)


def _date(message: EmailMessage) -> datetime | None:
    try:
        date = parsedate_to_datetime(str(message.get("date", "")))
    except (ValueError, OverflowError):
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)
