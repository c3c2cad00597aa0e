"""Folders that fill: files that are there since the last poll, or have changed.

    maildir   the messages in `new` and `cur`; one that moves between them, or is flagged, stays the same
    text      regular files, each a document whose title is the file's name; one that changes is an update

Names are remembered as the items of feeds are (see seen.py), with the size and the time of the last change as the
print; a message in a Maildir never changes. A file that was touched just now may not be complete, and waits.
"""

import os
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from service.schemas.sources import FolderFormat
from service.sources.fetching import CannotRead
from service.sources.files import NO_FILE, QUIET_S, opened
from service.sources.items import KEY_BYTES, Item, Keyed
from service.sources.seen import Fresh

MAX_FILES = 20_000  # in a folder: all their names are remembered
MAX_TAKEN = 200  # in a poll
SEPARATOR = b"From maildir\n"


@dataclass(frozen=True, slots=True)
class Found:
    """A file, and what identifies it and shows that it has changed."""

    path: Path
    size: int
    keyed: Keyed


def list_files(root: Path, path: str, format: FolderFormat) -> list[Found]:
    """The files of a folder that may be read now, oldest first; CannotRead if it cannot be listed."""
    try:
        names = ("new", "cur") if format == "maildir" else (".",)
        parts = [(root / path / name).resolve(strict=True) for name in names]
        if not all(part.is_relative_to(root.resolve(strict=True)) for part in parts):
            raise CannotRead(NO_FILE)
        found = sorted(entry for part in parts for entry in _files(part, format))
    except (FileNotFoundError, NotADirectoryError):
        raise CannotRead(NO_FILE) from None
    except OSError as error:
        raise CannotRead(f"The folder cannot be read: {error.strerror}.") from None
    if len(found) > MAX_FILES:
        raise CannotRead(f"The folder has more than {MAX_FILES:,} files; move those that were read.")
    return [each for _, _, each in found]


def take(fresh: Sequence[Fresh], files: Mapping[str, Found], limit: int) -> list[Fresh]:
    """As many as a poll takes: MAX_TAKEN, or about `limit` bytes of them, but at least one."""
    taken, size = 0, 0
    for each in fresh[:MAX_TAKEN]:
        size += files[each.offered.key].size
        if taken and size > limit:
            break
        taken += 1
    return list(fresh[:taken])


def mailbox(files: Sequence[Path], limit: int) -> bytes:
    """These messages as an mbox, each as far as the limit."""
    messages = (content(path, limit) for path in files)
    return b"".join(SEPARATOR + each.replace(b"\nFrom ", b"\n>From ") + b"\n\n" for each in messages if each)


def content(path: Path, limit: int) -> bytes:
    """The content of a file, as far as the limit; nothing if it was moved or deleted meanwhile."""
    try:
        with opened(path) as file:
            return file.read(limit)
    except FileNotFoundError:
        return b""


def _files(folder: Path, format: FolderFormat) -> Iterator[tuple[int, str, Found]]:
    latest_ns = time.time_ns() - int(QUIET_S * 1e9)
    with os.scandir(folder) as entries:
        for entry in entries:
            found = entry.stat(follow_symlinks=False)
            if entry.name.startswith(".") or not stat.S_ISREG(found.st_mode) or found.st_mtime_ns > latest_ns:
                continue
            name = entry.name.partition(":")[0] if format == "maildir" else entry.name
            key = blake2b(os.fsencode(name), digest_size=KEY_BYTES).hexdigest()
            print = "mail" if format == "maildir" else f"{found.st_size}-{found.st_mtime_ns}"
            path = Path(entry.path)
            yield found.st_mtime_ns, name, Found(path, found.st_size, Keyed(key, print, Item(title=_readable(name))))


def _readable(name: str) -> str:
    return os.fsencode(name).decode(errors="replace")
