"""The search index: a SQLite file with full-text search (FTS5), derived from the documents that the store remembers.

It can be deleted at any moment and is built again. What it holds is a fold of the store's log of changes
(store/stream/documents.py): the documents, and for each partition of the log the place up to which it was read, written
in one transaction. So a process may die anywhere, and the next one goes on where it stopped.

The text stands in the index once more, since SQLite needs it to delete a document and to show where its words are.
Rejected: an index without it (only SQLite 3.43 and later can delete from such a one); search in Redis (not in every
Redis, and not in the embedded one); an inverted index of our own.

Each machine has one file, which one process writes while any others read (SQLite's write-ahead log allows that). Text
is split as Unicode says, and neither case nor accents matter.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple

from service.documents.words import Wanted
from service.errors import SearchUnavailable
from service.schemas import ORIGIN
from service.store.stream.documents import Remembered

FORMAT = "1"  # raised when the schema changes: an index of another format is built again
FILE = "index.sqlite"
MAGIC = b"SQLite format 3\0"  # at the beginning of every such file
NOT_YET = "The search index is being built; try again."
BUSY_S = 5.0  # to wait for another process that opens the file
TITLE_WEIGHT = 4.0  # of a word in the title, in the rank
SNIPPET_WORDS = 40
BEGINNING_CHARS = 300  # of the text, where no word was looked for
START, END, CUT = "\x02", "\x03", "…"  # around what was found; the first two are removed from the texts
MARKS = str.maketrans({START: " ", END: " "})

SCHEMA = f"""
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE places (partition INTEGER PRIMARY KEY, place TEXT NOT NULL);
CREATE TABLE documents (
  number INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL, partition INTEGER NOT NULL, came_ms INTEGER NOT NULL,
  everywhere INTEGER NOT NULL, {", ".join(ORIGIN)}
);
CREATE INDEX by_time ON documents (came_ms, number);
CREATE INDEX by_partition ON documents (partition);
CREATE VIRTUAL TABLE words USING fts5 (title, text, tokenize = "unicode61 remove_diacritics 2");
"""

INSERT = "INSERT INTO documents VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?)"

Sort = Literal["newest", "best"]
Below = tuple[float, int]  # the score and the number of a hit: those after it are lower
Span = tuple[int, int]  # of characters: the first, and the one after the last


class Query(NamedTuple):
    wanted: Wanted | None  # None: any words
    source: str | None
    since_ms: int
    until_ms: int
    sort: Sort


class Hit(NamedTuple):
    score: float  # the higher, the earlier it is listed
    number: int
    id: str
    came_ms: int
    everywhere: bool  # as in `Remembered`


class Texts(NamedTuple):
    """What people see of a hit, and where in it the words are that were looked for."""

    title: str
    in_title: list[Span]
    snippet: str
    in_snippet: list[Span]
    origin: dict[str, str | None]


class Reader:
    """Reads the file; for one thread at a time."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def places(self) -> dict[int, str]:
        """By partition, the place in the store's log up to which it is indexed."""
        return _places(self._db)

    def hits(self, query: Query, below: Below | None, limit: int) -> list[Hit]:
        """The highest hits below that score and number."""
        all_of, none_of = query.wanted or Wanted("", "")
        conditions, parameters = ["came_ms >= ?", "came_ms < ?"], list[Any]([query.since_ms, query.until_ms])
        if all_of:
            conditions.append("words MATCH ?")
            parameters.append(all_of)
        if none_of:
            conditions.append("number NOT IN (SELECT rowid FROM words WHERE words MATCH ?)")
            parameters.append(none_of)
        if query.source is not None:
            conditions.append("source = ?")
            parameters.append(query.source)
        score = f"-bm25(words, {TITLE_WEIGHT}, 1.0)" if all_of and query.sort == "best" else "came_ms"
        tables = "words JOIN documents ON number = words.rowid" if all_of else "documents"
        after, place = (" WHERE (score, number) < (?, ?)", below) if below is not None else ("", ())
        statement = (
            f"SELECT * FROM (SELECT {score} AS score, number, id, came_ms, everywhere "
            f"FROM {tables} WHERE {' AND '.join(conditions)}){after} ORDER BY score DESC, number DESC LIMIT ?"
        )
        rows = self._db.execute(statement, [*parameters, *place, limit])
        return [Hit(score, number, id, came_ms, bool(everywhere)) for score, number, id, came_ms, everywhere in rows]

    def texts(self, hit: Hit, wanted: Wanted | None) -> Texts | None:
        """None if the document was changed or forgotten a moment ago."""
        if wanted and wanted.all_of:
            texts = f"highlight(words, 0, ?, ?), snippet(words, 1, ?, ?, ?, {SNIPPET_WORDS})"
            condition, parameters = "words MATCH ? AND", [START, END, START, END, CUT, wanted.all_of]
        else:
            texts = f"title, substr(text, 1, {BEGINNING_CHARS}) || substr(?, 1, length(text) > {BEGINNING_CHARS})"
            condition, parameters = "", [CUT]
        tables = "words JOIN documents ON number = words.rowid"
        statement = f"SELECT {texts}, {', '.join(ORIGIN)} FROM {tables} WHERE {condition} words.rowid = ?"
        row = self._db.execute(statement, [*parameters, hit.number]).fetchone()
        if row is None:
            return None
        title, snippet, *origin = row
        return Texts(*_spans(title), *_spans(snippet), dict(zip(ORIGIN, origin, strict=True)))


class Writer:
    """Writes the file, which it makes if there is none or one of another format or store; one thread at a time, and one
    process (see following.py)."""

    def __init__(self, directory: Path, store: str) -> None:
        self.store = store
        self._path = directory / FILE
        about = {"format": FORMAT, "store": store}
        self._db = _opened(self._path)
        try:
            usable = _about(self._db) == about
        except sqlite3.DatabaseError:  # an empty file, or none of SQLite's
            usable = False
        if not usable:
            self._db.close()
            delete(directory)
            self._db = _opened(self._path)
            self._db.executescript(f"BEGIN; {SCHEMA} COMMIT;")
            with self._db:
                self._db.executemany("INSERT INTO about VALUES (?, ?)", about.items())
        self._inode = self._path.stat().st_ino

    def close(self) -> None:
        self._db.close()

    @property
    def is_current(self) -> bool:
        """Whether the file is still the one that was opened: nobody has deleted or overwritten it."""
        if not self._path.exists() or self._path.stat().st_ino != self._inode:
            return False
        with self._path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC

    def places(self) -> dict[int, str]:
        return _places(self._db)

    def clear(self, partition: int) -> None:
        """Forgets a partition, to read it from the start."""
        with self._db:
            self._db.execute(
                "DELETE FROM words WHERE rowid IN (SELECT number FROM documents WHERE partition = ?)", [partition]
            )
            self._db.execute("DELETE FROM documents WHERE partition = ?", [partition])
            self._db.execute("DELETE FROM places WHERE partition = ?", [partition])

    def apply(
        self, partition: int, documents: Sequence[Remembered], gone: Iterable[str] = (), place: str | None = None
    ) -> None:
        """Puts documents into the index, in place of earlier ones with the same ids, removes those that are gone, and
        notes the place up to which the partition has been read; all or nothing."""
        with self._db:
            for id in (*gone, *(str(remembered.document.id) for remembered in documents)):
                self._db.execute("DELETE FROM words WHERE rowid = (SELECT number FROM documents WHERE id = ?)", [id])
                self._db.execute("DELETE FROM documents WHERE id = ?", [id])
            for document, came_ms, everywhere in documents:
                values = [document.id, partition, came_ms, everywhere, *(getattr(document, name) for name in ORIGIN)]
                number = self._db.execute(INSERT, values).lastrowid
                texts = document.title.translate(MARKS), document.text.translate(MARKS)
                self._db.execute("INSERT INTO words (rowid, title, text) VALUES (?, ?, ?)", [number, *texts])
            if place is not None:
                self._db.execute("INSERT OR REPLACE INTO places VALUES (?, ?)", [partition, place])


@contextmanager
def reading(directory: Path, store: str) -> Iterator[Reader]:
    """SearchUnavailable if there is no index of this store, or it cannot be read."""
    address = f"{(directory / FILE).absolute().as_uri()}?mode=ro"
    try:
        with closing(sqlite3.connect(address, uri=True, timeout=BUSY_S, check_same_thread=False)) as db:
            if _about(db) != {"format": FORMAT, "store": store}:
                raise SearchUnavailable(NOT_YET)
            yield Reader(db)
    except sqlite3.Error:
        raise SearchUnavailable(NOT_YET) from None


def exists(directory: Path) -> bool:
    return (directory / FILE).exists()


def delete(directory: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        (directory / f"{FILE}{suffix}").unlink(missing_ok=True)


def _opened(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=BUSY_S, check_same_thread=False)
    with suppress(sqlite3.DatabaseError):  # it is none of SQLite's, and will be deleted
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")  # enough where everything can be derived again
    return db


def _about(db: sqlite3.Connection) -> dict[str, str]:
    return dict(db.execute("SELECT name, value FROM about"))


def _places(db: sqlite3.Connection) -> dict[int, str]:
    return dict(db.execute("SELECT partition, place FROM places"))


def _spans(marked: str) -> tuple[str, list[Span]]:
    """A text without its marks, and what was between them."""
    text, spans = "", []
    for n, part in enumerate(marked.split(START)):
        found, _, rest = part.partition(END) if n else ("", "", part)
        if found:
            spans.append((len(text), len(text) + len(found)))
        text += found + rest
    return text, spans
