"""Memory of an API process over one request of very many lines: after a tenth of them, and after all.

The client writes in a thread and reads meanwhile: `?duplex=true` needs that, and a plain request allows it. The figures
are peaks (VmHWM), reset when the process has warmed up; each mode has a process of its own.
"""

from collections.abc import Callable
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from threading import Thread
from time import perf_counter

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from scripts.common.live import HOST, ApiProcess, api_process
from scripts.common.report import STDERR

MODES = {"plain": "store=false", "duplex": "store=false&duplex=true"}
WARM_UP = 20_000
CHUNK_SIZE = 1000  # lines
TIMEOUT_S = 3600.0


def measure(store: str, lines: int) -> dict[str, dict[str, float]]:
    """Both modes, with this many lines."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=STDERR, transient=True) as progress:
        figures: dict[str, dict[str, float]] = {}
        for mode, options in MODES.items():
            task = progress.add_task(f"lines sent, {mode}", total=lines + lines // 10)
            with api_process(store) as api:
                figures[mode] = _growth(api, lines, options, partial(progress.advance, task))
    return figures


def _growth(api: ApiProcess, lines: int, options: str, sent: Callable[[int], None]) -> dict[str, float]:
    exchange(api, WARM_UP, options, lambda n: None)
    _reset_peak(api.pid)
    exchange(api, lines // 10, options, sent)
    tenth = _peak_mb(api.pid)
    began = perf_counter()
    exchange(api, lines, options, sent)
    took, whole = perf_counter() - began, _peak_mb(api.pid)
    return {"lines": lines, "tenth_mb": tenth, "all_mb": whole, "growth_mb": whole - tenth, "per_s": lines / took}


def exchange(api: ApiProcess, lines: int, options: str, sent: Callable[[int], None]) -> None:
    """Sends short documents in one request, each of which must be answered."""
    connection = HTTPConnection(HOST, api.port, timeout=TIMEOUT_S)
    connection.putrequest("POST", f"/classify?{options}")
    connection.putheader("Content-Type", "application/x-ndjson")
    connection.putheader("Transfer-Encoding", "chunked")
    connection.endheaders()
    writing = Thread(target=_write, args=(connection, lines, sent), daemon=True)
    writing.start()
    response = connection.getresponse()
    answered = 0
    while piece := response.read(1 << 16):
        answered += piece.count(b"\n")
    writing.join()
    connection.close()
    if answered != lines:
        raise RuntimeError(f"{lines} documents, {answered} answers")


def _write(connection: HTTPConnection, lines: int, sent: Callable[[int], None]) -> None:
    for start in range(0, lines, CHUNK_SIZE):
        numbers = range(start, min(lines, start + CHUNK_SIZE))
        chunk = b"".join(b'{"id":"d%d","text":"crude oil, report %d"}\n' % (n, n) for n in numbers)
        connection.send(b"%x\r\n%s\r\n" % (len(chunk), chunk))
        sent(len(numbers))
    connection.send(b"0\r\n\r\n")


def _peak_mb(process: int) -> float:
    """The peak memory of a process."""
    status = Path(f"/proc/{process}/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1000


def _reset_peak(process: int) -> None:
    Path(f"/proc/{process}/clear_refs").write_text("5")
