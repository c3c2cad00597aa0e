"""What the documentation says is so: its commands run, its answers look as printed, its tables are complete."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from models.learners import KINDS
from service.app import create_app
from service.config import PREFIX, Settings
from service.supervisor import APPLICATION
from tests.processes import Serve
from tests.terminal import Terminal
from tests.waiting import PATIENCE_S

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()
EXCHANGES = re.findall(r"```sh\n(curl .*?)```\n```json\n(.*?)```", README, flags=re.S)
SAID = ("decision", "status", "cause", "kind", "term", "document")  # values that the reader is told to expect


def settings_table() -> str:
    rows = ["| variable | default | meaning |", "|---|---|---|"]
    for name, field in Settings.model_fields.items():
        default = "" if field.default is None else f"`{field.default}`"
        rows.append(f"| `{PREFIX}{name.upper()}` | {default} | {field.description} |")
    return "\n".join(rows)


def test_the_settings_table_is_complete_and_true() -> None:
    assert settings_table() in README, f"README's table should be:\n{settings_table()}"


def test_every_path_and_every_learner_is_in_the_readme() -> None:
    app = create_app(Settings(redis="redis://unused"))
    assert app.openapi()["paths"]
    for path, methods in app.openapi()["paths"].items():
        assert path in README, path
        assert all(re.search(f"`{method.upper()}[ `]", README) for method in methods), path
    for kind in KINDS:
        assert f"`{kind}`" in README, kind


def test_the_tour_of_the_files_names_every_module() -> None:
    for directory in ("models", "service"):
        for module in sorted((ROOT / directory).rglob("*.py")):
            name = module.relative_to(ROOT).as_posix()
            assert module.name == "__init__.py" or f"`{name}`" in CONTRIBUTING, name


def test_the_tour_works_as_printed(tmp_path: Path) -> None:
    """The opening request needs the topic that the tour makes first."""
    opening, making, *rest = EXCHANGES
    sluice = Serve(tmp_path, application=APPLICATION)
    try:
        for command, printed in (making, opening, *rest):
            ran = subprocess.run(
                ["bash", "-c", command.replace("localhost:8000", sluice.address)],
                capture_output=True,
                check=True,
                timeout=PATIENCE_S,
            )
            assert_alike(json.loads(ran.stdout), json.loads(printed), command)
    finally:
        sluice.end()


def test_the_command_line_works_as_printed(tmp_path: Path) -> None:
    """At a terminal; figures may differ, words may not."""
    (printed,) = re.findall(r"```console\n(.*?)```", README, flags=re.S)
    exchanges = [(one.splitlines()[0], one.splitlines()[1:]) for one in printed.split("$ ")[1:]]
    sluice = Serve(tmp_path, application=APPLICATION)
    commands = f"export SLUICE_URL={sluice.address} PATH={Path(sys.executable).parent}:$PATH COLUMNS=120; "
    try:
        for command, lines in exchanges:
            terminal = Terminal(["bash", "-c", commands + command], directory=tmp_path)
            assert terminal.end() == 0, terminal.shown
            assert words(terminal.shown) == words("\n".join(lines)), command
    finally:
        sluice.end()


def words(text: str) -> list[str]:
    return re.findall(r"(?<![\w.])[A-Za-z]+(?![\w.])", re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text))


def test_the_client_works_as_printed(tmp_path: Path) -> None:
    ((code, printed),) = re.findall(r"```python\n(from service.client .*?)```\n```\n(.*?)```", README, flags=re.S)
    sluice = Serve(tmp_path, application=APPLICATION)
    try:
        told = code.replace("http://127.0.0.1:8000", sluice.address)
        ran = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True, timeout=60)
        assert ran.stdout == printed
    finally:
        sluice.end()


def assert_alike(answer: Any, printed: Any, where: str) -> None:
    """The same keys and types all through, and the same words where the reader was told what to expect."""
    assert type(answer) is type(printed), where
    if isinstance(printed, dict):
        assert answer.keys() == printed.keys(), where
        for key, value in printed.items():
            assert_alike(answer[key], value, f"{where} … {key}")
            assert key not in SAID or isinstance(value, dict) or answer[key] == value, f"{where} … {key}"
    elif isinstance(printed, list):
        assert len(answer) == len(printed), where
        for one, other in zip(answer, printed, strict=True):
            assert_alike(one, other, where)
