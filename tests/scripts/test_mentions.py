"""Comments and docstrings name only files that exist."""

import re
import subprocess
from pathlib import Path

from tests.support import ROOT

MENTION = re.compile(r"(?<![\w./*{-])(?:\w+/)*\w+\.py\b")
WRITTEN_BY_TESTS = {"guide.py"}


def tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [Path(line) for line in listed.stdout.splitlines() if (ROOT / line).exists()]


def exists(mention: str, paths: list[Path]) -> bool:
    """Whether a file has this name, in the folders that are given."""
    parts = Path(mention).parts
    return any(path.parts[-len(parts) :] == parts for path in paths)


def test_every_file_that_the_code_mentions_is_there() -> None:
    paths = tracked()
    missing = {
        f"{path}: {mention}"
        for path in paths
        for mention in MENTION.findall((ROOT / path).read_text())
        if mention not in WRITTEN_BY_TESTS and not exists(mention, paths)
    }
    assert missing == set()
    assert sum(len(MENTION.findall((ROOT / path).read_text())) for path in paths) > 50
