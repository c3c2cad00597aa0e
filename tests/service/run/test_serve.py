"""`sluice serve` as its user meets it: it starts, restarts what dies, refuses what cannot work, and ends."""

import os
import re
import select
import signal
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from redis import Redis

from service.processes import APPLICATION
from service.store.redis.embedded import socket_path
from tests.support.processes import ServeProcess, children, has_ended
from tests.support.waiting import PATIENCE_S, wait_until_sync


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., ServeProcess]]:
    running: list[ServeProcess] = []

    def start(*options: str, **more: Any) -> ServeProcess:
        running.append(ServeProcess(tmp_path, *options, **more))
        return running[-1]

    yield start
    for each in running:
        if each.process.poll() is None:
            each.process.kill()
            each.process.wait()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_says_when_it_is_ready_and_a_signal_ends_everything(serve: Callable[..., ServeProcess], number: int) -> None:
    sluice = serve("--workers", "2")
    processes = [sluice.api_pid(), sluice.housekeeper_pid(), sluice.store_pid()]
    assert sluice.end(number) == 0
    assert all(has_ended(pid) for pid in processes)
    assert sluice.output.read_text().count("Sluice is ready on http://127.0.0.1:") == 1
    assert sluice.errors.read_text() == ""
    assert not socket_path(sluice.data).exists()


def test_a_signal_while_it_is_still_starting_ends_everything_too(serve: Callable[..., ServeProcess]) -> None:
    sluice = serve(application="tests.support.stub_app:never_ready")
    store = wait_until_sync(lambda: socket_path(sluice.data).exists() and sluice.store_pid())
    assert sluice.end(signal.SIGINT) == 0
    assert has_ended(store)
    assert "Traceback" not in sluice.errors.read_text()


def test_whatever_dies_is_started_again_and_the_address_stays(serve: Callable[..., ServeProcess]) -> None:
    sluice = serve()
    api, housekeeper, store = sluice.api_pid(), sluice.housekeeper_pid(), sluice.store_pid()
    with Redis(unix_socket_path=str(socket_path(sluice.data))) as client:
        client.set("key", "kept")
    for pid in (api, housekeeper, store):
        os.kill(pid, signal.SIGKILL)
    assert wait_until_sync(lambda: sluice.api_pid() != api)
    assert wait_until_sync(lambda: sluice.housekeeper_pid() != housekeeper)
    assert wait_until_sync(lambda: sluice.store_pid() != store)
    with Redis(unix_socket_path=str(socket_path(sluice.data))) as client:
        assert client.get("key") == b"kept"
    assert sluice.end() == 0


def test_a_killed_supervisor_takes_everything_along_and_the_next_one_starts(serve: Callable[..., ServeProcess]) -> None:
    sluice = serve("--workers", "2")
    port = httpx.URL(sluice.address).port
    processes = [sluice.api_pid(), sluice.housekeeper_pid(), sluice.store_pid()]
    sluice.process.kill()
    again = serve("--workers", "2", "--port", str(port))
    assert again.api_pid() not in processes
    assert wait_until_sync(lambda: all(has_ended(pid) for pid in processes))
    assert again.end() == 0


def test_a_second_one_on_the_same_data_is_refused_with_a_sentence(serve: Callable[..., ServeProcess]) -> None:
    sluice = serve()
    store = sluice.address and sluice.store_pid()
    refusal = serve().refusal()
    assert refusal.startswith("sluice: The data directory")
    assert refusal.count("\n") == 1
    assert sluice.store_pid() == store


def test_a_taken_port_is_refused_with_a_sentence(serve: Callable[..., ServeProcess]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        refusal = serve("--port", str(port)).refusal()
    assert refusal == (
        f"sluice: Port {port} of 127.0.0.1 is taken. Stop what uses it, or choose another with --port.\n"
    )


def test_a_bad_setting_is_refused_with_a_sentence(
    serve: Callable[..., ServeProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLUICE_WORKERS", "many")
    refusal = serve().refusal()
    assert refusal == "sluice: SLUICE_WORKERS must be a whole number. It is 'many'.\n"


def test_an_address_that_others_can_reach_is_refused_until_it_is_said_who_may_call(
    serve: Callable[..., ServeProcess],
) -> None:
    sluice = serve("--host", "0.0.0.0")  # noqa: S104 - refused before anything listens on it
    assert "SLUICE_ACCESS=keys" in sluice.refusal()
    assert not socket_path(sluice.data).exists()


def test_the_first_start_with_keys_prints_one_that_works_and_later_starts_print_none(
    serve: Callable[..., ServeProcess],
) -> None:
    first = serve("--workers", "2", application=APPLICATION, access="keys")
    wait_until_sync(lambda: re.search(r"sluice_\S+\n", first.output.read_text()))
    (key,) = re.findall(r"sluice_\S+", first.output.read_text())
    headers = {"Authorization": f"Bearer {key}"}
    assert httpx.get(f"{first.address}/topics").status_code == 401
    assert httpx.get(f"{first.address}/topics", headers=headers).status_code == 200
    assert key not in first.errors.read_text()
    first.end()
    second = serve(application=APPLICATION, access="keys")
    assert httpx.get(f"{second.address}/topics", headers=headers).status_code == 200
    assert "sluice_" not in second.output.read_text()


def test_an_application_that_cannot_start_ends_the_start(serve: Callable[..., ServeProcess]) -> None:
    sluice = serve(application="tests.support.stub_app:no_such_application")
    store = wait_until_sync(lambda: socket_path(sluice.data).exists() and sluice.store_pid())
    assert "The API ended while it was starting" in sluice.refusal()
    assert has_ended(store)


def test_the_processes_read_the_settings_that_the_command_line_gave(
    serve: Callable[..., ServeProcess], redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLUICE_MAX_TOPICS", "7")
    sluice = serve("--redis", redis_url)
    environment = httpx.get(f"{sluice.address}/environment", timeout=PATIENCE_S).text
    assert f"SLUICE_REDIS={redis_url}" in environment
    assert "SLUICE_MAX_TOPICS=7" in environment
    assert not sluice.data.exists()
    assert sluice.end() == 0


def test_several_processes_share_the_port_evenly_and_with_nobody_else(serve: Callable[..., ServeProcess]) -> None:
    sluice = serve("--workers", "3")
    url = httpx.URL(sluice.address)
    place = (url.host, url.port or 80)

    def answered(clients: int) -> Counter[bytes]:
        holding = [socket.create_connection(place, timeout=PATIENCE_S) for _ in range(clients)]
        for connection in holding:
            connection.sendall(b"GET /pid HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        counts: Counter[bytes] = Counter()
        for connection in holding:
            with connection, connection.makefile("rb") as answer:
                counts[answer.read().split()[-1]] += 1
        return counts

    counts = answered(300)
    assert len(counts) == 3
    assert min(counts.values()) > 50  # 100 each on average; dealt out by a hash, a deviation of 8 is usual
    assert f"Port {place[1]} of 127.0.0.1 is taken" in serve("--port", str(place[1]), "--workers", "3").refusal()
    assert sluice.end() == 0


def test_a_process_that_died_keeps_nobody_waiting_while_another_serves(serve: Callable[..., ServeProcess]) -> None:
    """Its connections go to the other one, not into a queue until it has started again, which may take seconds."""
    sluice = serve("--workers", "2")
    address, victim = sluice.address, sluice.api_pid()
    before = children(sluice.process.pid)
    os.kill(victim, signal.SIGKILL)
    (next_one,) = wait_until_sync(lambda: children(sluice.process.pid).keys() - before.keys())
    os.kill(next_one, signal.SIGSTOP)  # it starts very slowly
    answering = {int(httpx.get(f"{address}/pid", timeout=PATIENCE_S).text) for _ in range(20)}
    assert len(answering) == 1
    assert not answering & {victim, next_one}
    os.kill(next_one, signal.SIGCONT)
    assert wait_until_sync(lambda: sluice.api_pid() == next_one)
    assert sluice.end() == 0


def test_a_process_that_dies_while_it_starts_leaves_a_socket_that_works(serve: Callable[..., ServeProcess]) -> None:
    sluice = serve("--workers", "2")
    address = sluice.address

    def replaced(victim: int) -> int:
        before = children(sluice.process.pid)
        os.kill(victim, signal.SIGKILL)
        (next_one,) = wait_until_sync(lambda: children(sluice.process.pid).keys() - before.keys())
        return int(next_one)

    young = replaced(sluice.api_pid())
    os.kill(young, signal.SIGSTOP)  # before it can listen
    replaced(young)

    def answering() -> bool:
        return len({httpx.get(f"{address}/pid", timeout=PATIENCE_S).text for _ in range(30)}) == 2

    assert wait_until_sync(answering)
    url = httpx.URL(address)
    waiting = [socket.create_connection((url.host, url.port or 80), timeout=PATIENCE_S) for _ in range(20)]
    assert select.select(waiting, [], [], 0.5)[0] == []  # none is closed before it has sent a request
    for connection in waiting:
        connection.close()
    assert sluice.end() == 0
