"""Slow, broken and greedy clients, over real sockets, against one API process with its deadlines shortened.

On a busy machine a deadline may pass late, but never early, and a client that ought to be refused is in the end.
"""

import json
import socket
import threading
import time
from collections.abc import Iterator

import pytest

import service.run.api
from service.config import Config
from tests.support.stub_app import arrived, create_app, flooded, let_go
from tests.support.waiting import PATIENCE_S

HEADERS_S = 1.0  # long enough for a client that is in no hurry
BODY_S = 1.5


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    monkeypatch.setattr(service.run.api, "HEADERS_S", HEADERS_S)
    monkeypatch.setattr(service.run.api, "BODY_S", BODY_S)
    monkeypatch.setattr(service.run.api, "LINGER_S", 0.3)
    monkeypatch.setattr(service.run.api, "READ_S", 0.5)
    monkeypatch.setattr(service.run.api, "TICK_S", 0.05)
    listener = socket.create_server(("127.0.0.1", 0))
    server = service.run.api.server(create_app, Config(max_requests=2))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    let_go.clear()
    yield listener.getsockname()[1]
    let_go.set()
    server.should_exit = True
    thread.join(PATIENCE_S)
    assert not thread.is_alive()


class RawClient(socket.socket):
    def __init__(self, port: int) -> None:
        super().__init__()
        self.settimeout(PATIENCE_S)
        self.connect(("127.0.0.1", port))

    def answer(self) -> bytes:
        """All bytes up to the end of the connection or of a whole response."""
        received = b""
        while True:
            head, blank, body = received.partition(b"\r\n\r\n")
            if blank and len(body) >= int(head.lower().partition(b"content-length: ")[2].split()[0]):
                return received
            try:
                more = self.recv(65536)
            except ConnectionResetError:
                return received
            if not more:
                return received
            received += more

    def dripping(self, drop: bytes) -> bytes:
        """The response that comes while it sends the same few bytes again and again."""
        self.settimeout(0.05)
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            try:
                self.sendall(drop)
                return self.recv(1000)
            except TimeoutError:
                continue
        return b""

    def closed_while_sending(self) -> bool:
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            try:
                self.sendall(b"x" * 1000)
            except (BrokenPipeError, ConnectionResetError):
                return True
            time.sleep(0.02)
        return False


def problem(answer: bytes) -> dict[str, object]:
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"content-type: application/problem+json" in head
    document: dict[str, object] = json.loads(body)
    assert set(document) == {"type", "title", "status", "detail"}
    assert f" {document['status']} ".encode() in head.split(b"\r\n")[0]
    return document


def post(path: str, length: int) -> bytes:
    return f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n".encode()


@pytest.mark.parametrize(
    "sent", [b"", b"G", b"\r\n", b"GET / HTTP/1.1\r\nhost:", b"GET / HTTP/1.1\r\nhost: x\r\nx-drip: "]
)
def test_headers_that_do_not_end_are_refused_in_time(port: int, sent: bytes) -> None:
    begun = time.monotonic()
    with RawClient(port) as client:
        client.sendall(sent)
        assert problem(client.answer())["status"] == 408
        assert time.monotonic() - begun > HEADERS_S * 0.9


def test_dripping_does_not_win_more_time_for_headers(port: int) -> None:
    with RawClient(port) as client:
        client.sendall(b"GET / HTTP/1.1\r\n")
        assert problem(client.dripping(b"x-a: b\r\n"))["status"] == 408


def test_the_deadline_holds_for_every_request_of_a_connection(port: int) -> None:
    with RawClient(port) as client:
        for _ in range(2):
            client.sendall(post("/length", 4) + b"four")
            assert client.answer().endswith(b"\r\n4")
        client.sendall(post("/length", 4)[:20])
        assert problem(client.answer())["status"] == 408


def test_empty_lines_between_requests_do_not_keep_a_connection_open(port: int) -> None:
    with RawClient(port) as client:
        client.sendall(post("/length", 4) + b"four")
        client.answer()
        assert problem(client.dripping(b"\r\n"))["status"] == 408


def test_endless_headers_are_refused(port: int) -> None:
    with RawClient(port) as client:
        client.sendall(b"GET / HTTP/1.1\r\n")
        for n in range(4000):
            try:
                client.sendall(b"x-%d: " % n + b"y" * 100 + b"\r\n")
            except (BrokenPipeError, ConnectionResetError):
                break
        else:
            assert problem(client.answer())["status"] == 431


def test_a_body_that_stalls_or_drips_is_refused_and_the_application_told(port: int) -> None:
    begun = time.monotonic()
    with RawClient(port) as stalling, RawClient(port) as dripping:
        stalling.sendall(post("/length", 10_000) + b"half")
        dripping.sendall(post("/length", 10_000))
        assert problem(dripping.dripping(b"x"))["status"] == 408
        assert problem(stalling.answer())["status"] == 408
        assert time.monotonic() - begun > BODY_S * 0.9
    with RawClient(port) as client:  # both places are free again
        client.sendall(post("/length", 4) + b"four")
        assert client.answer().endswith(b"\r\n4")


def test_a_body_that_flows_may_take_longer_than_the_deadline(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pieces = 40
    monkeypatch.setattr(service.run.api, "BODY_BYTES_PER_S", 1)  # each piece fills the budget
    with RawClient(port) as client:
        begun = time.monotonic()
        client.sendall(post("/length", pieces * 1000))
        for _ in range(pieces):
            client.sendall(b"x" * 1000)
            time.sleep(0.06)
        assert client.answer().endswith(b"\r\n40000")
        assert time.monotonic() - begun > BODY_S + 0.5


def test_a_client_does_not_pay_for_an_application_that_reads_slowly(port: int) -> None:
    with RawClient(port) as client:
        client.sendall(post("/ponder", 4_000_000) + b"x" * 4_000_000)
        assert client.answer().startswith(b"HTTP/1.1 200")


def test_an_early_answer_is_not_destroyed_by_the_body_that_follows_and_the_rest_is_not_awaited_long(port: int) -> None:
    with RawClient(port) as client:
        client.sendall(post("/refuse", 5_000_000) + b"x" * 3_000_000)
        assert client.answer().endswith(b"too much")
        assert client.closed_while_sending()


def test_a_client_that_does_not_read_its_answer_is_dropped(port: int) -> None:
    with RawClient(port) as client:
        client.sendall(post("/flood", 0))
        assert flooded.wait(PATIENCE_S)  # and nothing was read yet
        received = 0
        try:
            while more := client.recv(1 << 20):
                received += len(more)
        except ConnectionResetError:
            pass
        assert received < 100_000_000


@pytest.mark.parametrize("sent", [b"HELO x\r\n\r\n", b"GET / HTTP/9\r\n\r\n", b"GET /\xff HTTP/1.1\r\nhost: x\r\n\r\n"])
def test_what_is_not_http_gets_a_problem_document(port: int, sent: bytes) -> None:
    with RawClient(port) as client:
        client.sendall(sent)
        assert problem(client.answer())["status"] == 400


def test_requests_beyond_the_limit_are_told_to_come_back(port: int) -> None:
    holding = [RawClient(port) for _ in range(2)]
    for client in holding:
        client.sendall(post("/hold", 0))
        assert arrived.acquire(timeout=PATIENCE_S)
    with RawClient(port) as client:
        client.sendall(post("/length", 0))
        answer = client.answer()
        assert problem(answer)["status"] == 503
        assert b"\r\nretry-after: 1\r\n" in answer
    let_go.set()
    for client in holding:
        assert client.answer().startswith(b"HTTP/1.1 200")
        client.close()


def test_a_stray_line_does_not_end_an_answer_in_progress(port: int) -> None:
    with RawClient(port) as client:
        client.sendall(post("/hold", 0) + b"\r\n")
        assert arrived.acquire(timeout=PATIENCE_S)
        time.sleep(2 * HEADERS_S)
        let_go.set()
        assert client.answer().startswith(b"HTTP/1.1 200")


def test_answers_do_not_name_the_server(port: int) -> None:
    with RawClient(port) as client:
        client.sendall(post("/length", 0))
        assert b"\r\nserver:" not in client.answer().lower()
