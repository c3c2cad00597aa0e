"""Documents as the store remembers them: when each first came, in milliseconds (eight bytes), then the whole of it as
JSON, compressed if it is long. The time tells which topics it has passed: those that were there already.

A document of 900 bytes would shrink to 500, and that would take as long as all topics take to decide about it.
"""

import zlib
from collections.abc import Sequence
from typing import NamedTuple

from service.schemas import Document

STAMP = 8  # bytes
LONG = 4000  # bytes of JSON


class Remembered(NamedTuple):
    document: Document
    came_ms: int

    def passed(self, created_ms: int) -> bool:
        """Whether a topic that was made then has seen it come."""
        return self.came_ms >= created_ms


def packed(ids: Sequence[str], documents: Sequence[Document], now_ms: int) -> dict[str, bytes]:
    stamp, pairs = now_ms.to_bytes(STAMP), zip(ids, documents, strict=True)
    whole = {name: d.model_copy(update={"id": name}).model_dump_json().encode() for name, d in pairs}
    return {name: stamp + (zlib.compress(text, 1) if len(text) > LONG else text) for name, text in whole.items()}


def unpacked(blob: bytes) -> Remembered:
    # A stamp begins with a zero byte for many years to come; compressed text, which earlier versions kept bare, never.
    stamp, text = (blob[:STAMP], blob[STAMP:]) if blob[0] == 0 else (b"", blob)
    whole = text if text.startswith(b"{") else zlib.decompress(text)
    return Remembered(Document.model_validate_json(whole), int.from_bytes(stamp))
