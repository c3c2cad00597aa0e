"""Lines in, lines out, over real sockets: in order, in bounded memory, and without anybody waiting for ever."""

import http.client
import json
import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from threading import Thread
from typing import Any

import httpx
import pytest

from service.store.redis.embedded import Embedded
from tests.support.api import OIL, QUERY
from tests.support.live import Live, live
from tests.support.refusals import NDJSON, well_formed
from tests.support.waiting import PATIENCE_S

LINE = json.dumps(OIL).encode()
HEAD = b"POST /classify?store=false%s HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-ndjson\r\n"
GROWTH_BYTES = 30_000_000  # measured: 9 MB, after 80,000 lines as after 200,000


@pytest.fixture(scope="module")
def server(emptied: Embedded) -> Iterator[Live]:
    with live(emptied.url) as server:
        made = httpx.post(f"{server.address}/topics", json={"id": "crude", "query": QUERY}, timeout=PATIENCE_S)
        assert made.status_code == 201
        yield server


def lines(content: bytes | str) -> list[Any]:
    return [json.loads(line) for line in content.splitlines()]


def numbered(count: int) -> bytes:
    return b"\n".join(b'{"id":"d%d","text":"crude oil and what is written about it"}' % i for i in range(count))


def post(server: Live, content: bytes, path: str = "/classify?store=false") -> list[Any]:
    answer = httpx.post(server.address + path, content=content, headers=NDJSON, timeout=PATIENCE_S)
    assert answer.status_code == 200, answer.text[:500]
    assert answer.headers["content-type"] == "application/x-ndjson"
    return lines(answer.content)


def connect(server: Live) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S)


def read_chunk(reader: Any) -> bytes:
    """One chunk of an answer."""
    size = int(reader.readline(), 16)
    chunk: bytes = reader.read(size + 2)
    return chunk[:-2]


# -- what stands on a line ---------------------------------------------------------------------------------------------


def test_answers_come_in_order_and_problems_stand_on_their_line(server: Live) -> None:
    sent = numbered(3000).split(b"\n")
    bad = {0: b"{", 7: b"[]", 300: b"null", 301: b'"text"', 302: b"7", 2000: b'{"text": ""}', 2999: b'{"txt": "x"}'}
    for place, line in bad.items():
        sent[place] = line
    answers = post(server, b"\n".join(sent))
    assert [answer.get("document") for answer in answers] == [
        None if place in bad else f"d{place}" for place in range(3000)
    ]
    assert [well_formed(answers[place])["status"] for place in bad] == [400, *[422] * 6]


@pytest.mark.parametrize(
    "content",
    [
        LINE + b"\n" + LINE,
        LINE + b"\n" + LINE + b"\n",
        LINE + b"\r\n" + LINE + b"\r\n",
        b"\n\n \r\n" + LINE + b"\n\t\n\n" + LINE + b"\n\n",
    ],
)
def test_blank_lines_carriage_returns_and_a_missing_last_newline_do_not_matter(server: Live, content: bytes) -> None:
    assert [answer["document"] for answer in post(server, content)] == [answers_to_line(server)] * 2


def answers_to_line(server: Live) -> str:
    answer = httpx.post(f"{server.address}/classify", json={"documents": [OIL], "store": False}, timeout=PATIENCE_S)
    return str(answer.json()["results"][0]["document"])


def test_nothing_but_blank_lines_is_answered_by_nothing(server: Live) -> None:
    assert post(server, b"") == post(server, b"\n\n") == post(server, b" ") == []


def test_a_line_that_is_too_long_fails_alone(server: Live) -> None:
    long = b'{"text": "' + b"x" * 10_000_000 + b'"}'
    answers = post(server, LINE + b"\n" + long + b"\n" + LINE + b"\n" + long)
    assert [answer.get("status") for answer in answers] == [None, 413, None, 413]
    assert "10,000,000" in answers[1]["detail"]


def test_options_stand_in_the_address(server: Live) -> None:
    (answer,) = post(server, b'{"text": "wheat"}', "/classify?store=false&include=all&explain=true")
    assert [(d["topic"], d["decision"], bool(d["explanation"])) for d in answer["decisions"]] == [
        ("crude", "reject", True)
    ]
    (answer,) = post(server, b'{"text": "wheat"}', "/classify?store=false&topics=crude")
    assert "explanation" not in answer["decisions"][0]


def test_stored_documents_are_answered_in_order_and_all_of_them_remembered(server: Live) -> None:
    """Batches overlap; a line that is wrong is where it was."""
    rows = [b'{"id":"s%d","text":"a%d b%d c%d crude oil"}' % (i, i, i, i) for i in range(2000)]
    rows[700] = b"{"
    answers = post(server, b"\n".join(rows), "/classify")
    expected = [f"s{i}" for i in range(2000)]
    assert [one.get("document") for one in answers] == [*expected[:700], None, *expected[701:]]
    for i in (0, 699, 701, 1999):
        judged = {"topic": "crude", "document": f"s{i}", "relevant": True}
        assert httpx.post(f"{server.address}/feedback", json=judged, timeout=PATIENCE_S).status_code == 200


def test_judgements_and_documents_can_be_sent_as_lines_one_after_the_other(server: Live) -> None:
    documents = [json.dumps({"id": f"j{i}", "text": f"{'crude oil' if i % 2 else 'wheat'} {i}"}) for i in range(20)]
    post(server, "\n".join(documents).encode(), "/classify")
    judgements = [json.dumps({"topic": "crude", "document": f"j{i}", "relevant": i % 2 == 1}) for i in range(21)]
    answers = post(server, "\n".join(judgements).encode(), "/feedback")
    assert [answer["status"] for answer in answers] == ["learned"] * 20 + [404]
    assert [answer.get("document") for answer in answers[:20]] == [f"j{i}" for i in range(20)]


# -- who waits for whom ------------------------------------------------------------------------------------------------


def with_httpx(server: Live, content: bytes) -> bytes:
    return httpx.post(
        f"{server.address}/classify?store=false", content=content, headers=NDJSON, timeout=PATIENCE_S
    ).content


def with_http_client(server: Live, content: bytes) -> bytes:
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)) as connection:
        connection.request("POST", "/classify?store=false", content, NDJSON)
        return connection.getresponse().read()


@pytest.mark.parametrize("client", [with_httpx, with_http_client])
def test_a_client_that_sends_everything_before_it_reads_gets_everything_and_memory_stays_flat(
    server: Live, client: Callable[[Live, bytes], bytes]
) -> None:
    """An endpoint that answers while it reads stops at some 64,000 lines: both sides wait for the other to read."""
    count = 80_000
    client(server, numbered(1000))
    before = server.resident_bytes
    answered = client(server, numbered(count)).split(b"\n")
    assert len(answered) == count + 1
    for place in (0, 12_345, count - 1):
        assert json.loads(answered[place])["document"] == f"d{place}"
    assert server.resident_bytes - before < GROWTH_BYTES


def test_memory_stays_flat_for_a_client_that_reads_while_it_writes(server: Live) -> None:
    def exchange(count: int) -> int:
        """How many lines come back."""
        content = numbered(count)
        with connect(server) as connection, connection.makefile("rb") as reader:
            connection.sendall(HEAD % b"&duplex=true" + b"content-length: %d\r\n\r\n" % len(content))
            writing = Thread(target=connection.sendall, args=(content,))
            writing.start()
            while reader.readline() != b"\r\n":
                pass
            answered = 0
            while piece := read_chunk(reader):
                answered += piece.count(b"\n")
            writing.join()
        return answered

    exchange(1000)
    before = server.resident_bytes
    assert exchange(80_000) == 80_000
    assert server.resident_bytes - before < GROWTH_BYTES


def test_a_client_that_reads_while_it_writes_is_answered_while_it_writes(server: Live) -> None:
    with connect(server) as connection, connection.makefile("rb") as reader:
        connection.sendall(HEAD % b"&duplex=true" + b"transfer-encoding: chunked\r\n\r\n")
        for i in range(5):
            line = b'{"id":"%d","text":"oil"}\n' % i
            connection.sendall(b"%x\r\n%s\r\n" % (len(line), line))
            if i == 0:
                assert reader.readline() == b"HTTP/1.1 200 OK\r\n"
                while reader.readline() != b"\r\n":
                    pass
            assert json.loads(read_chunk(reader))["document"] == str(i)
        connection.sendall(b"0\r\n\r\n")
        assert read_chunk(reader) == b""


def test_without_duplex_nothing_is_answered_before_the_end(server: Live) -> None:
    with connect(server) as connection:
        connection.sendall(
            HEAD % b"" + b"transfer-encoding: chunked\r\n\r\n" + b"%x\r\n%s\n\r\n" % (len(LINE) + 1, LINE)
        )
        connection.settimeout(0.5)
        with pytest.raises(TimeoutError):
            connection.recv(1)
        connection.settimeout(PATIENCE_S)
        connection.sendall(b"0\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 OK\r\n")


@pytest.mark.parametrize("duplex", [b"", b"&duplex=true"])
def test_clients_that_go_away_in_the_middle_leave_the_server_well(server: Live, duplex: bytes) -> None:
    for sent in (0, 10, 100_000):
        for _ in range(5):
            with connect(server) as connection:
                content = numbered(50_000)
                connection.sendall(HEAD % duplex + b"content-length: %d\r\n\r\n" % len(content) + content[:sent])
    with connect(server) as connection:  # and one that does not read its answer
        content = numbered(5000)
        connection.sendall(HEAD % duplex + b"content-length: %d\r\n\r\n" % len(content) + content)
    assert len(post(server, numbered(300))) == 300
    assert httpx.get(f"{server.address}/readyz", timeout=PATIENCE_S).is_success


# -- HTTP itself -------------------------------------------------------------------------------------------------------


def whole(reader: Any) -> tuple[int, dict[str, str], bytes]:
    """An answer with a content-length."""
    status = int(reader.readline().split()[1])
    headers: dict[str, str] = {}
    while line := reader.readline().strip():
        name, _, value = line.decode().partition(": ")
        headers[name.lower()] = value
    return status, headers, reader.read(int(headers.get("content-length", "0")))


def request(body: bytes, more: str = "", method: str = "POST", path: str = "/classify") -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n{more}content-length: {len(body)}"
    return head.encode() + b"\r\n\r\n" + body


BODY = json.dumps({"documents": [OIL], "store": False}).encode()


def test_pipelined_requests_are_answered_in_order(server: Live) -> None:
    with connect(server) as connection, connection.makefile("rb") as reader:
        requests = [request(BODY), request(b"{"), request(b"", method="GET", path="/healthz"), request(BODY)]
        connection.sendall(b"".join(requests * 5))
        assert [whole(reader)[0] for _ in range(20)] == [200, 400, 200, 200] * 5


def test_a_client_may_wait_to_be_told_to_go_on(server: Live) -> None:
    with connect(server) as connection, connection.makefile("rb") as reader:
        connection.sendall(request(BODY, "expect: 100-continue\r\n")[: -len(BODY)])
        assert reader.readline() == b"HTTP/1.1 100 Continue\r\n"
        assert reader.readline() == b"\r\n"
        connection.sendall(BODY)
        assert whole(reader)[0] == 200


def test_a_client_that_waits_is_not_told_to_send_what_will_be_refused(server: Live) -> None:
    with connect(server) as connection, connection.makefile("rb") as reader:
        connection.sendall(b"POST /classify HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n")
        connection.sendall(b"expect: 100-continue\r\ncontent-length: 99999999\r\n\r\n")
        assert whole(reader)[0] == 413


def test_chunked_bodies_are_read(server: Live) -> None:
    with connect(server) as connection, connection.makefile("rb") as reader:
        head = request(b"").replace(b"content-length: 0", b"transfer-encoding: chunked")
        chunks = [BODY[start : start + 7] for start in range(0, len(BODY), 7)]
        connection.sendall(head + b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n")
        assert whole(reader)[0] == 200


def test_head_has_the_length_of_the_body_that_it_leaves_out(server: Live) -> None:
    with connect(server) as connection, connection.makefile("rb") as reader:
        connection.sendall(b"HEAD /healthz HTTP/1.1\r\nhost: x\r\n\r\nGET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
        head = [reader.readline() for _ in range(4)]
        assert head[0] == b"HTTP/1.1 200 OK\r\n"
        while head[-1] != b"\r\n":
            head.append(reader.readline())
        status, headers, body = whole(reader)
        assert (status, headers["content-length"]) == (200, str(len(body)))
        assert f"content-length: {len(body)}\r\n".encode() in head


@pytest.mark.parametrize(
    "bad",
    [
        b"POST /classify HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n",
        b"POST /classify HTTP/1.1\r\nhost: x\r\ncontent-length: 9x\r\n\r\n",
        b"POST /classify HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999999999999999999\r\n\r\n",
        b"POST /classify HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /classify HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"GET /topics/\x00 HTTP/1.1\r\nhost: x\r\n\r\n",
    ],
)
def test_requests_that_are_not_http_are_refused_at_once(server: Live, bad: bytes) -> None:
    with connect(server) as connection, connection.makefile("rb") as reader:
        connection.sendall(bad)
        status, headers, body = whole(reader)
        assert status in (400, 415)
        assert headers["content-type"] == "application/problem+json"
        well_formed(json.loads(body))
