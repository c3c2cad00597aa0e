"""The embedded store under the accidents it is built for: kills, freezes, twins, damage, full disks, long paths."""

import ctypes.util
import importlib.util
import os
import re
import shlex
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from redis import Redis

import service.store.redis.embedded
from service.config import StartError
from service.store.redis.embedded import Embedded, allocator, find_server, running, socket_path
from tests.support.processes import has_ended
from tests.support.waiting import PATIENCE_S, wait_until_sync

OWNER = """
import sys, time
from pathlib import Path
from service.config import StartError
from service.store.redis.embedded import Embedded
try:
    with Embedded(Path(sys.argv[1])) as store:
        print("owner", store.server.pid, flush=True)
        sys.stdin.read()
except StartError as error:
    print("refused", error, flush=True)
"""


class Owner:
    """Another process that owns a store, until its standard input is closed or it is killed."""

    def __init__(self, directory: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", OWNER, str(directory)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def says(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def server(self) -> int:
        return int(self.says().split()[1])

    def end(self, kill: bool = False) -> None:
        if kill:
            self.process.kill()
        self.process.communicate()


def value(store: Embedded, key: str) -> object:
    with Redis.from_url(store.url) as client:
        return client.get(key)


def write(store: Embedded, key: str, text: str) -> None:
    with Redis.from_url(store.url) as client:
        client.set(key, text)


def config(store: Embedded, name: str) -> str:
    with Redis.from_url(store.url, decode_responses=True) as client:
        return str(client.config_get(name)[name])


def test_it_is_durable_private_and_has_no_tcp_port(tmp_path: Path) -> None:
    with Embedded(tmp_path / "data") as store:
        assert config(store, "port") == "0"
        assert config(store, "appendonly") == "yes"
        assert config(store, "appendfsync") == "always"
        assert config(store, "save") == ""
        assert config(store, "maxmemory-policy") == "noeviction"
        assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700
        assert stat.S_IMODE(store.socket.stat().st_mode) == 0o600


def test_jemalloc_is_used_where_the_system_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether this one has it or not, the server starts."""
    with Embedded(tmp_path) as store:
        assert store.server
        maps = Path(f"/proc/{store.server.pid}/maps")
        loaded = maps.read_text() if maps.exists() else ""
    assert ("libjemalloc" in loaded) == bool(allocator())
    monkeypatch.setattr(ctypes.util, "find_library", lambda name: f"lib{name}.so.2")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    assert allocator.__wrapped__() == {"LD_PRELOAD": "libjemalloc.so.2"}
    monkeypatch.setenv("LD_PRELOAD", "libmine.so")
    assert allocator.__wrapped__() == {}


def test_what_was_acknowledged_survives_a_killed_server_at_the_same_address(tmp_path: Path) -> None:
    with Embedded(tmp_path / "data") as store:
        for round in range(5):
            write(store, f"key{round}", "kept")
            assert store.server is not None
            store.server.kill()
            store.server.wait()
            store.start()
            assert [value(store, f"key{earlier}") for earlier in range(round + 1)] == [b"kept"] * (round + 1)


def test_a_second_owner_is_refused_and_the_first_not_disturbed(tmp_path: Path) -> None:
    with Embedded(tmp_path / "data") as store:
        write(store, "key", "kept")
        with pytest.raises(StartError, match=f"in use by another Sluice \\(process {os.getpid()}\\)"):
            Embedded(tmp_path / "data").start()
        assert value(store, "key") == b"kept"
    with Embedded(tmp_path / "data") as store:
        assert value(store, "key") == b"kept"


def test_six_owners_at_once_make_one_server(tmp_path: Path) -> None:
    owners = [Owner(tmp_path / "data") for _ in range(6)]
    answers = sorted(owner.says().split()[0] for owner in owners)
    for owner in owners:
        owner.end()
    assert answers == ["owner"] + ["refused"] * 5


def test_a_killed_owner_takes_its_server_along_and_the_next_one_finds_everything(tmp_path: Path) -> None:
    owner = Owner(tmp_path / "data")
    server = owner.server()
    with Redis.from_url(f"unix://{socket_path(tmp_path / 'data')}") as client:
        client.set("key", "kept")
    owner.end(kill=True)
    with Embedded(tmp_path / "data") as store:  # at once: it waits for the old server to be gone
        assert has_ended(server)
        assert value(store, "key") == b"kept"


def abandoned(directory: Path, monkeypatch: pytest.MonkeyPatch) -> "subprocess.Popen[bytes]":
    """A server whose owner was killed, where a process cannot be tethered to its parent."""
    monkeypatch.setattr(service.store.redis.embedded, "tethered", lambda *command: list(command))
    store = Embedded(directory)
    store.start()
    write(store, "key", "kept")
    assert store._owner_lock is not None
    os.close(store._owner_lock)  # what the kernel does for an owner that is killed
    assert store.server is not None
    return store.server


def test_a_server_left_behind_is_asked_to_stop_and_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = abandoned(tmp_path / "data", monkeypatch)
    with Embedded(tmp_path / "data") as store:
        assert left.wait(PATIENCE_S) == 0
        assert store.server is not None
        assert store.server.pid != left.pid
        assert value(store, "key") == b"kept"


def test_a_frozen_server_makes_the_next_start_refuse_not_double(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = abandoned(tmp_path / "data", monkeypatch)
    left.send_signal(signal.SIGSTOP)
    with monkeypatch.context() as hasty:
        hasty.setattr(service.store.redis.embedded, "RELEASE_TIMEOUT_S", 0.5)
        hasty.setattr(service.store.redis.embedded, "TIMEOUT_S", 0.2)
        with pytest.raises(StartError, match=f"kill -CONT {left.pid}"):
            Embedded(tmp_path / "data").start()
    assert left.poll() is None
    left.send_signal(signal.SIGCONT)
    with Embedded(tmp_path / "data") as store:
        assert left.wait(PATIENCE_S) == 0
        assert value(store, "key") == b"kept"


def append_only_file(directory: Path) -> Path:
    return next((directory / "appendonlydir").glob("*.incr.aof"))


def test_a_truncated_last_write_is_dropped_and_the_rest_kept(tmp_path: Path) -> None:
    with Embedded(tmp_path / "data") as store:
        write(store, "first", "kept")
        write(store, "last", "lost")
    file = append_only_file(tmp_path / "data")
    file.write_bytes(file.read_bytes()[:-3])
    with Embedded(tmp_path / "data") as store:
        assert value(store, "first") == b"kept"
        assert value(store, "last") is None


def test_damage_is_never_repaired_silently_and_the_named_command_repairs_it(tmp_path: Path) -> None:
    directory = tmp_path / "a directory"
    with Embedded(directory) as store:
        for n in range(100):
            write(store, f"key{n}", "kept")
    file = append_only_file(directory)
    damaged = bytearray(file.read_bytes())
    damaged[len(damaged) // 2 : len(damaged) // 2 + 20] = b"\xff" * 20
    file.write_bytes(damaged)

    with pytest.raises(StartError, match="valkey-check-aof") as refused:
        Embedded(directory).start()
    assert file.read_bytes() == damaged

    command = re.search(r"repair it with (bash -c .*) \(which", str(refused.value))
    assert command is not None
    subprocess.run(shlex.split(command[1]), input="y\n", text=True, check=True, capture_output=True)
    with Embedded(directory) as store:
        assert value(store, "key0") == b"kept"
        assert value(store, "key99") is None


def test_a_damaged_base_file_is_refused_too(tmp_path: Path) -> None:
    with Embedded(tmp_path / "data") as store:
        write(store, "key", "kept" * 100)
        with Redis.from_url(store.url) as client:
            client.bgrewriteaof()
            wait_until_sync(lambda: not client.info("persistence")["aof_rewrite_in_progress"])
    base = next((tmp_path / "data" / "appendonlydir").glob("*.base.rdb"))
    base.write_bytes(base.read_bytes()[:40] + b"\xff" * 20)
    with pytest.raises(StartError, match="damaged"):
        Embedded(tmp_path / "data").start()


def test_too_little_room_on_the_disk_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(StartError, match="Make room"):
        Embedded(tmp_path / "data", min_free_bytes=1 << 60).start()
    assert not (tmp_path / "data" / "appendonlydir").exists()


def test_a_path_too_long_for_a_socket_works_all_the_same(tmp_path: Path) -> None:
    directory = tmp_path / ("long" * 20) / ("longer" * 20)
    with Embedded(directory) as store:
        write(store, "key", "kept")
        assert len(os.fsencode(store.socket)) <= 100
        assert stat.S_IMODE(store.socket.parent.stat().st_mode) == 0o700
    assert append_only_file(directory).exists()


def test_a_directory_of_other_things_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    mode = tmp_path.stat().st_mode
    with pytest.raises(StartError, match="other files"):
        Embedded(tmp_path).start()
    assert tmp_path.stat().st_mode == mode
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.tex"]


def test_without_the_wheel_a_new_enough_server_on_the_path_is_used_and_else_an_address_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setenv("PATH", str(tmp_path))

    def offer(name: str, version: str) -> None:
        (tmp_path / name).write_text(f"#!/bin/sh\necho 'Redis server v={version} sha=00000000:0 bits=64'\n")
        (tmp_path / name).chmod(0o755)

    with pytest.raises(StartError, match="--redis URL"):
        find_server()
    offer("redis-server", "5.0.14")
    with pytest.raises(StartError, match="--redis URL"):
        find_server()
    offer("redis-server", "6.2.14")
    assert find_server() == str(tmp_path / "redis-server")


def test_others_learn_where_a_running_store_is(tmp_path: Path) -> None:
    assert running(tmp_path / "data") is None
    with Embedded(tmp_path / "data") as store:
        assert running(tmp_path / "data") == store.url
    assert running(tmp_path / "data") is None
