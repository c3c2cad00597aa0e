"""Files that grow: every record once, in order, however the file is rotated; and no file that may not be read."""

import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis import Redis

from service.schemas.sources import FileFormat
from service.sources.fetching import CannotRead
from service.sources.files import Position, read
from service.sources.records import from_mbox, from_ndjson
from tests.support.api import Api, running_api
from tests.support.consuming import consuming, dead_letters, output_documents, wait_until_consumed

LIMIT = 1_000_000
MAIL = (
    "From ann@example.org Wed Nov 18 12:00:00 2026\nFrom: Ann <ann@example.org>\nSubject: =?utf-8?q?Crude_=C3=B6l?=\n"
    "Message-ID: <{id}@example.org>\nDate: Wed, 18 Nov 2026 12:00:00 +0000\n\nOPEC cuts.\n>From now on.\n\n"
)


def lines_of(root: Path, path: str, position: Position | None, limit: int) -> tuple[list[str], Position | None]:
    """Everything that can be read by now; positions are kept as the store keeps them."""
    found: list[str] = []
    while True:
        piece = read(root, path, "text", position, limit)
        position = Position.from_text(piece.position.to_text())
        found += piece.content.decode().splitlines()
        if not piece.more:
            return found, position


steps = st.lists(st.sampled_from(["line", "part", "rotate", "read", "read"]), max_size=30)


@given(steps, st.integers(20, 60))
def test_every_line_is_read_once_whatever_is_rotated(steps: list[str], limit: int) -> None:
    """At most one rotation between two reads: an older file is not looked for."""
    with TemporaryDirectory() as directory:
        root, written, found = Path(directory), 0, []
        file, rotated = root / "log", False
        file.touch()
        _, position = lines_of(root, "log", None, limit)
        for n, step in enumerate(steps):
            if step == "line":
                with file.open("a") as out:
                    out.write(f"line {written}\n")
                written += 1
            elif step == "part":
                with file.open("a") as out:
                    out.write(f"line {written}")
                lines, position = lines_of(root, "log", position, limit)
                found += lines
                rotated = False
                with file.open("a") as out:
                    out.write("\n")
                written += 1
            elif step == "rotate" and not rotated:
                file.rename(root / f"log.{n}")
                file.touch()
                rotated = True
            elif step == "read":
                lines, position = lines_of(root, "log", position, limit)
                found += lines
                rotated = False
        lines, position = lines_of(root, "log", position, limit)
        assert found + lines == [f"line {n}" for n in range(written)]


def test_a_truncated_file_is_read_from_its_beginning(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("one\ntwo\n")
    _, position = lines_of(tmp_path, "log", None, LIMIT)
    os.truncate(tmp_path / "log", 0)
    with (tmp_path / "log").open("a") as out:
        out.write("three\n")
    assert lines_of(tmp_path, "log", position, LIMIT)[0] == ["three"]
    _, position = lines_of(tmp_path, "log", None, LIMIT)
    with (tmp_path / "log").open("r+") as out:  # and longer than before, so that only its beginning shows it
        out.truncate()
        out.write("four\nfive\nsix\n")
    assert lines_of(tmp_path, "log", position, LIMIT)[0] == ["four", "five", "six"]


def test_a_line_longer_than_the_limit_does_not_stop_the_file(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("x" * 100 + "\nafter\n")
    found, _ = lines_of(tmp_path, "log", None, 64)
    assert "".join(found) == "x" * 100 + "after"
    assert found[-1] == "after"


def test_messages_are_whole(tmp_path: Path) -> None:
    file = tmp_path / "inbox"
    file.write_text(MAIL.format(id=1) + MAIL.format(id=2)[:-1])
    os.utime(file, (0, 0))
    first = read(tmp_path, "inbox", "mbox", None, LIMIT)
    assert first.content.decode() == MAIL.format(id=1)
    with file.open("a") as out:
        out.write("\n")
    assert read(tmp_path, "inbox", "mbox", first.position, LIMIT).content == b""  # it was touched just now
    os.utime(file, (0, 0))
    second = read(tmp_path, "inbox", "mbox", first.position, LIMIT)
    assert second.content.decode() == MAIL.format(id=2)
    (message,) = from_mbox(second.content).items
    assert (message.title, message.guid, message.author) == ("Crude öl", "<2@example.org>", "Ann <ann@example.org>")
    assert message.text == "OPEC cuts.\nFrom now on."
    assert len(from_mbox(first.content + second.content).items) == 2


@pytest.mark.parametrize(
    "mail",
    [
        b"From x\n",
        b"From x\nSubject: \xff\xfe\nContent-Type: text/plain; charset=none\n\n\xff\n\n",
        b"From x\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/html\n\n<script>b</script>\n",
        b"From x\nDate: yesterday\nContent-Transfer-Encoding: base64\n\n!!!!\n\n",
    ],
)
def test_mail_that_is_broken_does_no_harm(mail: bytes) -> None:
    assert "script" not in from_mbox(mail).model_dump_json()


def test_a_line_that_is_no_document_stays_as_it_is() -> None:
    good, source, bad = from_ndjson(b'{"text": "a"}\n{"text": "b", "source": "x"}\n\n{"txt": 1}\n', "wire")
    assert not isinstance(good, bytes)
    assert not isinstance(source, bytes)
    assert (good.source, source.source, bad) == ("wire", "x", b'{"txt": 1}')


def test_no_file_outside_of_the_directory_is_read(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "secret").write_text("secret\n")
    (root / "link").symlink_to(tmp_path / "secret")
    (root / "away").symlink_to(tmp_path)
    (root / "inside").symlink_to(root / "file")
    (root / "file").write_text("open\n")
    os.mkfifo(root / "pipe")
    for path in ("link", "away/secret", "../secret", str(tmp_path / "secret"), "none", "file/none"):
        with pytest.raises(CannotRead, match="no such file"):
            read(root, path, "text", None, LIMIT)
    for path in ("pipe", "."):
        with pytest.raises(CannotRead):
            read(root, path, "text", None, LIMIT)
    assert read(root, "inside", "text", None, LIMIT).content == b"open\n"


@asynccontextmanager
async def reading(redis_url: str, root: Path, **settings: Any) -> AsyncIterator[Api]:
    async with running_api(redis_url, sources_files=root, **settings) as api:
        yield api


async def add(api: Api, path: str, format: FileFormat) -> Any:
    return await api.ok("POST", "/sources", {"id": "wire", "kind": "file", "path": path, "format": format})


async def test_a_file_is_decided_as_it_grows(redis_url: str, store: "Redis", tmp_path: Path) -> None:
    file = tmp_path / "news.ndjson"
    file.write_text('{"id": "a", "title": "Crude oil"}\n{"no": "document"}\n{"id": "b", "title"')
    async with reading(redis_url, tmp_path) as api:
        await api.topic(rules={"accept_if": "crude"})
        made = await add(api, "news.ndjson", "ndjson")
        assert (made["kind"], made["path"], made["format"], made["url"]) == ("file", "news.ndjson", "ndjson", None)
        polled = await api.ok("POST", "/sources/wire/poll")
        assert (polled["found"], polled["new"]) == (2, 1)
        with file.open("a") as out:
            out.write(': "More crude"}\n')
        polled = await api.ok("POST", "/sources/wire/poll")
        assert [each["document"] for each in polled["documents"]] == ["b"]
        assert (await api.ok("POST", "/sources/wire/poll"))["found"] == 0
        async with consuming(api):
            await wait_until_consumed(store)
        assert output_documents(store) == ["a", "b"]
        (dead,) = dead_letters(store)
        assert "There is no such field." in dead["reason"]
        assert (await api.get("/sources/opml")).text.count("<outline") == 0


@pytest.mark.parametrize("format", ["ndjson", "text"])
async def test_what_is_read_again_after_a_crash_is_the_same_document(
    redis_url: str, store: "Redis", tmp_path: Path, format: FileFormat
) -> None:
    """The process died after the records were appended, and before the position was."""
    (tmp_path / "log").write_text('{"title": "crude", "text": "one"}\n{"title": "crude", "text": "two"}\n')
    async with reading(redis_url, tmp_path) as api:
        await api.topic(rules={"accept_if": "crude"})
        await add(api, "log", format)
        assert (await api.ok("POST", "/sources/wire/poll"))["new"] == 2
        await api.sluice.store.sources.change("wire", None, {"position": ""})
        assert (await api.ok("POST", "/sources/wire/poll"))["new"] == 2
        async with consuming(api):
            await wait_until_consumed(store)
        assert len(output_documents(store)) == 2


async def test_a_large_file_is_read_in_pieces_and_at_once(redis_url: str, store: "Redis", tmp_path: Path) -> None:
    (tmp_path / "log").write_text("".join(f"line number {n} of many\n" for n in range(200)))
    async with reading(redis_url, tmp_path, sources_max_bytes=1000) as api:
        await add(api, "log", "text")
        total = 0
        while found := (await api.ok("POST", "/sources/wire/poll"))["found"]:
            total += found
        assert total == 200
        assert (await api.ok("GET", "/sources/wire"))["status"]["documents"] == 200


async def test_mail_becomes_documents(redis_url: str, tmp_path: Path) -> None:
    file = tmp_path / "inbox"
    file.write_text(MAIL.format(id=1))
    os.utime(file, (0, time.time() - 60))
    async with reading(redis_url, tmp_path) as api:
        await add(api, "inbox", "mbox")
        (message,) = (await api.ok("POST", "/sources/wire/poll"))["documents"]
        assert (message["title"], message["snippet"]) == ("Crude öl", "OPEC cuts.\nFrom now on.")
        assert message["published"] == "2026-11-18T12:00:00Z"


async def test_files_wait_while_consumers_are_behind(
    redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.sources.polling.MAX_WAITING", 1)
    (tmp_path / "log").write_text("one\ntwo\n")
    async with reading(redis_url, tmp_path) as api:
        await add(api, "log", "text")
        assert (await api.ok("POST", "/sources/wire/poll"))["new"] == 2
        with (tmp_path / "log").open("a") as out:
            out.write("three\n")
        assert (await api.ok("POST", "/sources/wire/poll"))["new"] == 0
        assert (await api.ok("GET", "/sources/wire"))["status"]["state"] == "ok"


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../../x", "a\nb", ""])
async def test_a_path_that_leads_away_is_refused(redis_url: str, tmp_path: Path, path: str) -> None:
    async with reading(redis_url, tmp_path) as api:
        answer = await api.post("/sources", json={"kind": "file", "path": path, "format": "text"})
        assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/path")


async def test_no_files_are_read_unless_a_directory_is_named(redis_url: str) -> None:
    async with running_api(redis_url) as api:
        answer = await api.post("/sources", json={"kind": "file", "path": "x", "format": "text"})
        assert (answer.status_code, "SLUICE_SOURCES_FILES" in answer.text) == (422, True)
        answer = await api.post("/sources", json={"kind": "fax"})
        assert answer.json()["errors"] == [{"pointer": "/kind", "detail": "This must be feed, file or folder."}]
