"""Folders that fill: every file once, again when it has changed, and no message twice because it moves."""

import os
import time
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from service.sources.fetching import CannotRead
from service.sources.folders import list_files
from tests.support.api import Api, running_api
from tests.support.consuming import consuming, output_documents, wait_until_consumed

MAIL = "From: Ann <ann@example.org>\nSubject: {subject}\nMessage-ID: <{id}@example.org>\n\nCrude oil.\n\nFrom now on.\n"


def write(file: Path, content: str, age_s: float = 60) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content)
    os.utime(file, (time.time() - age_s, time.time() - age_s))


async def add(api: Api, format: str) -> None:
    await api.ok("POST", "/sources", {"id": "in", "kind": "folder", "path": "in", "format": format})


async def poll(api: Api) -> Any:
    return await api.ok("POST", "/sources/in/poll")


async def test_a_maildir_is_read_as_it_fills(redis_url: str, store: "Redis", tmp_path: Path) -> None:
    for part in ("new", "cur", "tmp"):
        (tmp_path / "in" / part).mkdir(parents=True)
    write(tmp_path / "in/new/1.host", MAIL.format(subject="OPEC meets", id=1))
    write(tmp_path / "in/tmp/9.host", MAIL.format(subject="on its way", id=9))
    async with running_api(redis_url, sources_files=tmp_path) as api:
        await api.topic(rules={"accept_if": "crude"})
        await add(api, "maildir")
        (message,) = (await poll(api))["documents"]
        assert (message["title"], message["snippet"]) == ("OPEC meets", "Crude oil.\nFrom now on.")
        (tmp_path / "in/new/1.host").rename(tmp_path / "in/cur/1.host:2,S")  # it was read, by a mail program
        assert (await poll(api))["new"] == 0
        write(tmp_path / "in/new/2.host", MAIL.format(subject="OPEC met", id=2))
        write(tmp_path / "in/new/3.host", MAIL.format(subject="written just now", id=3), age_s=0)
        assert [each["title"] for each in (await poll(api))["documents"]] == ["OPEC met"]
        async with consuming(api):
            await wait_until_consumed(store)
        assert len(output_documents(store)) == 2
        assert (await api.ok("GET", "/sources/in"))["kind"] == "folder"


async def test_a_folder_of_texts_is_read_and_what_changes_is_an_update(redis_url: str, tmp_path: Path) -> None:
    write(tmp_path / "in/opec.txt", "OPEC meets\n\nin Vienna")
    write(tmp_path / "in/.hidden", "no")
    write(tmp_path / "in/empty", "")
    (tmp_path / "in/deeper").mkdir()
    async with running_api(redis_url, sources_files=tmp_path) as api:
        await add(api, "text")
        (first,) = (await poll(api))["documents"]
        assert (first["title"], first["snippet"], first["update"]) == ("opec.txt", "OPEC meets\nin Vienna", False)
        write(tmp_path / "in/opec.txt", "OPEC has met", age_s=30)
        (second,) = (await poll(api))["documents"]
        assert (second["document"], second["snippet"], second["update"]) == (first["document"], "OPEC has met", True)
        (tmp_path / "in/opec.txt").unlink()
        assert (await poll(api))["new"] == 0


async def test_a_full_folder_is_read_some_files_at_a_time(redis_url: str, tmp_path: Path) -> None:
    for n in range(30):
        write(tmp_path / f"in/{n}.txt", f"story {n} " * 20)
    async with running_api(redis_url, sources_files=tmp_path, sources_max_bytes=1000) as api:
        await add(api, "text")
        polls = []
        while new := (await poll(api))["new"]:
            polls.append(new)
        assert sum(polls) == 30
        assert 2 <= max(polls) <= 10


async def test_no_folder_outside_of_the_directory_is_read(tmp_path: Path) -> None:
    root = tmp_path / "root"
    write(tmp_path / "outside/secret", "x")
    write(root / "in/file", "open")
    (root / "link").symlink_to(tmp_path / "outside")
    (root / "in/away").symlink_to(tmp_path / "outside/secret")
    (root / "in/pipe").parent.mkdir(exist_ok=True)
    os.mkfifo(root / "in/pipe")
    for path in ("link", "../outside", "none", "in/file"):
        with pytest.raises(CannotRead, match="no such file"):
            list_files(root, path, "text")
    (root / "mail/cur").mkdir(parents=True)
    (root / "mail/new").symlink_to(tmp_path / "outside")
    with pytest.raises(CannotRead, match="no such file"):
        list_files(root, "mail", "maildir")
    assert [each.path.name for each in list_files(root, "in", "text")] == ["file"]


def test_a_folder_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.sources.folders.MAX_FILES", 1)
    write(tmp_path / "a", "x")
    write(tmp_path / "b", "x")
    with pytest.raises(CannotRead, match="more than 1 files"):
        list_files(tmp_path, ".", "text")
