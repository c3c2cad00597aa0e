"""The documentation is true: its commands run, its answers are as printed, its tables are complete."""

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from models.core.names import LEARNER_KINDS
from service.api.app import create_app
from service.config import PREFIX, Config
from service.processes import APPLICATION
from tests.support import ROOT
from tests.support.processes import ServeProcess
from tests.support.terminal import Terminal
from tests.support.waiting import PATIENCE_S

FILES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES = {path.relative_to(ROOT).as_posix(): path.read_text() for path in FILES}
README = PAGES["README.md"]
TOURS = ("README.md", "docs/tour.md")
AT_TERMINALS = ("README.md", "docs/clients.md")
TIMED_OUT = 28  # exit code of curl
EXACT = ("decision", "status", "cause", "kind", "term", "document")  # fields whose values are as printed
ROUNDED = ("score", "contribution")  # fields whose values are as printed, but for rounding


@pytest.fixture
def sluice(tmp_path: Path) -> Iterator[ServeProcess]:
    """An empty service: every page has its own."""
    sluice = ServeProcess(tmp_path, application=APPLICATION)
    try:
        yield sluice
    finally:
        sluice.end()


def exchanges(page: str) -> list[tuple[str, str]]:
    return re.findall(r"```sh\n(curl .*?)```\n```json\n(.*?)```", PAGES[page], flags=re.S)


def blocks(kind: str, page: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGES[page], flags=re.S | re.M)


def settings_table() -> str:
    rows = ["| variable | default | meaning |", "|---|---|---|"]
    for name, field in Config.model_fields.items():
        default = "" if field.default is None else f"`{field.default}`"
        rows.append(f"| `{PREFIX}{name.upper()}` | {default} | {field.description} |")
    return "\n".join(rows)


def test_the_settings_table_is_complete_and_true() -> None:
    assert settings_table() in PAGES["docs/operating.md"], f"the table should be:\n{settings_table()}"


def test_every_path_and_every_learner_is_in_the_readme() -> None:
    app = create_app(Config(redis="redis://unused"))
    assert app.openapi()["paths"]
    for path, methods in app.openapi()["paths"].items():
        assert path in README, path
        assert all(re.search(f"`{method.upper()}[ `]", README) for method in methods), path
    for kind in LEARNER_KINDS:
        assert f"`{kind}`" in README, kind
        assert f"\n| `{kind}` |" in PAGES["docs/guide.md"], kind


def test_the_readme_names_every_page() -> None:
    for page in PAGES:
        assert page == "README.md" or f"]({page})" in README, page


def unfenced(page: str) -> str:
    return re.sub(r"^```.*?^```$", "", PAGES[page], flags=re.S | re.M)


def anchors(page: str) -> set[str]:
    """Anchors as GitHub derives them from headings: lower case, no punctuation, hyphens for spaces."""
    seen: Counter[str] = Counter()
    slugs = set()
    for heading in re.findall(r"^#+ (.+)$", unfenced(page), flags=re.M):
        slug = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        slugs.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return slugs


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_somewhere(page: str) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", unfenced(page)):
        if re.match(r"https?://", target):
            continue
        path, _, anchor = target.partition("#")
        linked = ((ROOT / page).parent / path).resolve() if path else ROOT / page
        assert linked.is_relative_to(ROOT.resolve()), target
        assert linked.is_file(), target
        assert not anchor or anchor in anchors(linked.relative_to(ROOT.resolve()).as_posix()), target


@pytest.mark.parametrize("page", PAGES)
def test_every_file_that_is_named_is_there(page: str) -> None:
    for name in re.findall(r"(?:models|service|scripts|tests|docs)/[\w/]*\w(?:\.\w+)?", PAGES[page]):
        assert (ROOT / name).exists(), name


def test_no_answer_is_printed_that_is_not_tried() -> None:
    for page in PAGES:
        assert len(blocks("json", page)) == len(exchanges(page)), page
        assert bool(exchanges(page)) == (page in TOURS), page
        assert bool(blocks("console", page)) == (page in AT_TERMINALS), page


def test_the_tour_goes_on_from_the_short_one() -> None:
    _opening, *short = exchanges("README.md")
    assert len(short) > 4
    assert short == exchanges("docs/tour.md")[: len(short)]


@pytest.mark.parametrize("page", TOURS)
def test_the_tour_works_as_printed(page: str, sluice: ServeProcess) -> None:
    """The opening request of the README needs the topic that its tour creates first."""
    tour = exchanges(page)
    if page == "README.md":
        opening, creation, *rest = tour
        tour = [creation, opening, *rest]
    for command, printed in tour:
        ran = subprocess.run(
            ["bash", "-c", command.replace("localhost:8000", sluice.address)],
            capture_output=True,
            check=True,
            timeout=PATIENCE_S,
        )
        assert_alike(json.loads(ran.stdout), json.loads(printed), command)


def test_calls_that_are_printed_without_an_answer_are_taken(sluice: ServeProcess) -> None:
    """With the topic of the tour, and before any document: nothing is delivered to the receivers they name."""
    creation, *_ = exchanges("docs/tour.md")
    bare = [
        command
        for page in PAGES
        for block in blocks("sh", page)
        for command in re.findall(r"^curl .*", block, flags=re.S)
        if command not in dict(exchanges(page))
    ]
    assert len(bare) == 5
    for command in (creation[0], *bare):
        endless = "curl -sN" in command  # a stream, which is read until the timeout
        options = f"--fail --max-time {2 if endless else PATIENCE_S}"
        adapted = command.replace("localhost:8000", sluice.address).replace("curl", f"curl {options}", 1)
        ran = subprocess.run(["bash", "-c", adapted], capture_output=True, timeout=PATIENCE_S)
        assert ran.returncode == (TIMED_OUT if endless else 0), command


@pytest.mark.parametrize("page", AT_TERMINALS)
def test_the_command_line_works_as_printed(page: str, sluice: ServeProcess, tmp_path: Path) -> None:
    """The commands run at a terminal; figures may differ, words may not."""
    (printed,) = blocks("console", page)
    commands = f"export SLUICE_URL={sluice.address} PATH={Path(sys.executable).parent}:$PATH COLUMNS=120; "
    for command, *lines in (block.splitlines() for block in printed.split("$ ")[1:]):
        terminal = Terminal(["bash", "-c", commands + command], directory=tmp_path)
        assert terminal.end() == 0, terminal.shown
        assert words(terminal.shown) == words("\n".join(lines)), command


def words(text: str) -> list[str]:
    return re.findall(r"(?<![\w.])[A-Za-z]+(?![\w.])", re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text))


def test_the_client_works_as_printed(sluice: ServeProcess) -> None:
    """The same code wherever it is printed."""
    printings = [
        re.findall(r"```python\n(from service.client .*?)```\n```\n(.*?)```", PAGES[page], flags=re.S)
        for page in ("README.md", "docs/clients.md")
    ]
    ((code, printed),) = printings[0]
    assert printings[1:] == printings[:1]
    adapted = code.replace("http://127.0.0.1:8000", sluice.address)
    ran = subprocess.run([sys.executable, "-c", adapted], capture_output=True, text=True, check=True, timeout=60)
    assert ran.stdout == printed


def assert_alike(answer: Any, printed: Any, where: str) -> None:
    """The same keys and types everywhere, and the same values of fields that the reader can compare."""
    assert type(answer) is type(printed), where
    if isinstance(printed, dict):
        assert answer.keys() == printed.keys(), where
        for key, value in printed.items():
            assert_alike(answer[key], value, f"{where} … {key}")
            assert key not in EXACT or isinstance(value, dict) or answer[key] == value, f"{where} … {key}"
            assert key not in ROUNDED or answer[key] == pytest.approx(value, rel=1e-3, abs=1e-5), f"{where} … {key}"
    elif isinstance(printed, list):
        assert len(answer) == len(printed), where
        for item, expected in zip(answer, printed, strict=True):
            assert_alike(item, expected, where)
