"""Files that grow: reads what was appended since the last poll, in whole records, and follows a file that is rotated.

    position = the file's inode, how many bytes of it have been read, and a hash of the first HEAD_BYTES of these

* Renamed and begun again (as logrotate does): the rest of the old file is read first, as long as it is in the same
  directory; then the new one from its beginning.
* Truncated (`copytruncate`), which shows in its length or its beginning: it is read from its beginning. What was
  written between the last poll and the truncation is lost, as it is to everybody else.

A record is a line or, in an mbox, a message. One that has no end yet is left for the next poll: a line without a line
feed, a message that is not followed by a blank line or was touched just now.

Only regular files below the directory of SLUICE_SOURCES_FILES are read, wherever links lead.
"""

import os
import stat
import time
from contextlib import ExitStack
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO, Self

from service.schemas.sources import FileFormat
from service.sources.fetching import CannotRead

HEAD_BYTES = 256
QUIET_S = 2.0  # after which the last message of an mbox is taken to be complete
NO_FILE = "There is no such file below the directory of SLUICE_SOURCES_FILES."


@dataclass(frozen=True, slots=True)
class Position:
    inode: int
    at: int
    head: str

    @classmethod
    def from_text(cls, text: str) -> Self | None:
        if not text:
            return None
        inode, at, head = text.split(":")
        return cls(int(inode), int(at), head)

    def to_text(self) -> str:
        return f"{self.inode}:{self.at}:{self.head}"


@dataclass(frozen=True, slots=True)
class Piece:
    """Whole records, and where the next ones begin; `more`: there are more already."""

    content: bytes
    position: Position
    more: bool


def read(root: Path, path: str, format: FileFormat, position: Position | None, limit: int) -> Piece:
    """The next records of a file, at most `limit` bytes of them; CannotRead if it cannot be read."""
    try:
        resolved = (root / path).resolve(strict=True)
        if not resolved.is_relative_to(root.resolve(strict=True)):
            raise CannotRead(NO_FILE)
        with ExitStack() as stack:
            file = stack.enter_context(opened(resolved))
            if position is None or _is_same(file, position):
                return _next(file, format, position.at if position else 0, limit, ended=False)
            if old := _renamed(resolved.parent, position):
                rest = _next(stack.enter_context(old), format, position.at, limit, ended=True)
                if rest.content:
                    return Piece(rest.content, rest.position, more=True)
            return _next(file, format, 0, limit, ended=False)
    except (FileNotFoundError, NotADirectoryError):
        raise CannotRead(NO_FILE) from None
    except OSError as error:
        raise CannotRead(f"The file cannot be read: {error.strerror}.") from None


def _next(file: BinaryIO, format: FileFormat, at: int, limit: int, ended: bool) -> Piece:
    """The records from there on; all that is left if the file has `ended`. A record longer than the limit is cut."""
    found = os.fstat(file.fileno())
    file.seek(at)
    content = file.read(limit)
    at_end = at + len(content) >= found.st_size
    if not (ended and at_end):
        quiet = at_end and time.time() - found.st_mtime > QUIET_S
        whole = _whole(content, format, quiet)
        content = content[:whole] if whole or len(content) < limit else content
    position = Position(found.st_ino, at + len(content), _head(file, at + len(content)))
    return Piece(content, position, more=bool(content) and not at_end)


def _whole(content: bytes, format: FileFormat, quiet: bool) -> int:
    """How many bytes of it are whole records."""
    if format != "mbox":
        return content.rfind(b"\n") + 1
    if quiet and content.endswith(b"\n\n"):
        return len(content)
    return content.rfind(b"\n\nFrom ") + 2 if b"\n\nFrom " in content else 0


def _head(file: BinaryIO, at: int) -> str:
    file.seek(0)
    return blake2b(file.read(min(at, HEAD_BYTES)), digest_size=8).hexdigest()


def _is_same(file: BinaryIO, position: Position) -> bool:
    """Whether this is the file of that position, still as long as it was."""
    found = os.fstat(file.fileno())
    same = found.st_ino == position.inode and found.st_size >= position.at
    return same and _head(file, position.at) == position.head


def _renamed(directory: Path, position: Position) -> BinaryIO | None:
    """The file of that position, if it is still in the directory under another name."""
    with os.scandir(directory) as entries:
        names = [
            each.name for each in entries if each.inode() == position.inode and each.is_file(follow_symlinks=False)
        ]
    if not names:
        return None
    file = opened(directory / names[0])
    if _is_same(file, position):
        return file
    file.close()
    return None


def opened(path: Path) -> BinaryIO:
    """The file, opened without following a link or waiting for a pipe."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise CannotRead("This is not a regular file.")
    return open(path, "rb", opener=lambda *_: descriptor)
