"""What is written to the log, and what is left out."""

import json
import subprocess
import sys

from tests.support.waiting import PATIENCE_S

FAILS = """
import structlog
from service import logs

logs.configure("info")

def failing(document):
    raise ArithmeticError("no such number")

try:
    failing("a text that " + "somebody sent")
except ArithmeticError as error:
    structlog.get_logger().error("request failed", exc_info=error)
"""


def test_a_failure_is_logged_with_its_traceback_but_without_what_was_sent() -> None:
    """structlog shows local variables by default: the log would have documents, and the store's password."""
    ran = subprocess.run([sys.executable, "-c", FAILS], capture_output=True, check=True, text=True, timeout=PATIENCE_S)
    (line,) = ran.stderr.splitlines()
    (failure,) = json.loads(line)["exception"]
    assert (failure["exc_type"], failure["exc_value"]) == ("ArithmeticError", "no such number")
    assert [frame["name"] for frame in failure["frames"]] == ["<module>", "failing"]
    assert "somebody" not in line


REPEATS = """
import structlog
from service import logs

logs.configure("info")
for detail in ("silent", "silent", "full", "silent"):
    structlog.get_logger().warning("lost the store", detail=detail)
    structlog.get_logger().error("a failure", detail=detail)
"""


def test_the_same_warning_again_is_not_written_and_every_error_is() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", REPEATS], capture_output=True, check=True, text=True, timeout=PATIENCE_S
    )
    lines = [json.loads(line) for line in ran.stderr.splitlines()]
    assert [line["detail"] for line in lines if line["level"] == "warning"] == ["silent", "full"]
    assert sum(line["level"] == "error" for line in lines) == 4
