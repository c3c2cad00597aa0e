"""A terminal, for tests of what people see and of the keys they press."""

import os
import pty
import select
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.support.waiting import PATIENCE_S


class Terminal:
    """A program in a terminal of its own; `shown` is what it has printed since the last key."""

    def __init__(
        self, command: Sequence[str], directory: Path | None = None, out: Path | None = None, **environment: str
    ) -> None:
        self._here, there = pty.openpty()
        env = os.environ | {"COLUMNS": "100", "LINES": "40", "TERM": "xterm"} | environment
        to = os.open(out, os.O_WRONLY | os.O_CREAT) if out else os.dup(there)
        self.process = subprocess.Popen(command, stdin=there, stdout=to, stderr=there, env=env, cwd=directory)
        os.close(there)
        os.close(to)
        self.shown = ""

    def wait_for(self, text: str, within_s: float = PATIENCE_S) -> None:
        """Reads until this text has been shown."""
        while text not in self.shown:
            assert select.select([self._here], [], [], within_s)[0], self.shown
            more = self._read()
            assert more, self.shown  # it has ended
            self.shown += more

    def press(self, key: str) -> None:
        self.shown = ""
        os.write(self._here, key.encode())

    def end(self) -> int:
        """Reads until the program ends, and returns its exit code."""
        while more := self._read():
            self.shown += more
        os.close(self._here)
        return self.process.wait(PATIENCE_S)

    def _read(self) -> str:
        try:
            return os.read(self._here, 65536).decode(errors="replace")
        except OSError:  # the program has closed its side
            return ""
