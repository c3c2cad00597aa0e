"""What comments and docstrings say of other files: a path that is named leads to a file."""

import re
import subprocess
from pathlib import Path

from tests.support import ROOT

MENTION = re.compile(r"(?<![\w./*{-])(?:\w+/)*\w+\.py\b")
MADE_BY_TESTS = {"guide.py"}


def tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [Path(line) for line in listed.stdout.splitlines() if (ROOT / line).exists()]


def led_to(mention: str, paths: list[Path]) -> bool:
    """Whether a file is named so, with as many of its folders as are given."""
    parts = Path(mention).parts
    return any(path.parts[-len(parts) :] == parts for path in paths)


def test_every_file_that_the_code_mentions_is_there() -> None:
    paths = tracked()
    lost = {
        f"{path}: {mention}"
        for path in paths
        for mention in MENTION.findall((ROOT / path).read_text())
        if mention not in MADE_BY_TESTS and not led_to(mention, paths)
    }
    assert lost == set()
    assert sum(len(MENTION.findall((ROOT / path).read_text())) for path in paths) > 50
