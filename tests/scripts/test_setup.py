"""Set-up on machines where programs are missing, with stubs for those they have; and lock files that agree."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import ROOT

LOCKS = ("requirements.lock", "requirements-dev.lock")
BARE_PYTHON = f"""#!/bin/sh
case "$*" in *ensurepip*) [ -e "$PROGRAMS/installed" ] || exit 1;; esac
exec {sys.executable} "$@"
"""


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs bash code after scripts/setup in a folder of its own, with stubs that hide programs of the system."""
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "setup", tmp_path / "scripts")

    def bash(script: str, **programs: str) -> subprocess.CompletedProcess[str]:
        folder = tmp_path / "programs"
        folder.mkdir(exist_ok=True)
        for name, text in programs.items():
            program = folder / name.replace("_", "-")
            program.write_text(text)
            program.chmod(0o755)
        environment = {"PATH": f"{folder}:/usr/bin:/bin", "PROGRAMS": str(folder), "HOME": str(tmp_path)}
        command = ["bash", "-euo", "pipefail", "-c", f"source {tmp_path}/scripts/setup; {script}"]
        return subprocess.run(command, env=environment, capture_output=True, text=True)

    return bash


def test_a_python_that_is_too_old_is_refused(run: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    result = run("PYTHON=python3; create_venv", python3="#!/bin/sh\nexit 1\n")
    assert result.returncode == 1
    assert (
        result.stderr
        == "sluice: Python 3.11 or newer is needed: install it, or give its path with PYTHON=/path/to/python3.\n"
    )


def test_debian_without_venv_is_told_the_command_or_given_the_package(
    run: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    package = f"python{sys.version_info.major}.{sys.version_info.minor}-venv"
    apt = '#!/bin/sh\necho "$@" >> "$PROGRAMS/asked"\ncase "$*" in *install*) touch "$PROGRAMS/installed";; esac\n'
    user = run("PYTHON=python3; create_venv", python3=BARE_PYTHON, apt_get=apt, id="#!/bin/sh\necho 1000\n")
    assert user.returncode == 1
    assert f"Run: sudo apt-get install -y --no-install-recommends {package}\n" in user.stderr
    assert not (tmp_path / "programs" / "asked").exists()

    root = run("PYTHON=python3; create_venv", python3=BARE_PYTHON, apt_get=apt, id="#!/bin/sh\necho 0\n")
    assert root.returncode == 0, root.stderr
    assert f"install -y --no-install-recommends {package} -qq" in (tmp_path / "programs" / "asked").read_text()
    assert os.access(tmp_path / ".venv" / "bin" / "pip", os.X_OK)


def test_chromium_is_installed_where_only_tests_run_and_missed_aloud_elsewhere(
    run: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    apt = '#!/bin/sh\necho "$@" >> "$PROGRAMS/asked"\n'
    absent = 'command() { [ "$2" != chromium ] && builtin command "$@"; }; '
    root = "#!/bin/sh\necho 0\n"
    elsewhere = run(f"{absent} install_chromium", apt_get=apt, id=root)
    assert "THERE IS NO CHROMIUM, SO NO PAGE OF THE CONSOLE IS TESTED" in elsewhere.stderr
    assert not (tmp_path / "programs" / "asked").exists()
    result = run(f"{absent} CI=true install_chromium", apt_get=apt, id=root)
    assert result.returncode == 0, result.stderr
    asked = (tmp_path / "programs" / "asked").read_text()
    assert asked == "update -qq\ninstall -y --no-install-recommends -qq chromium\n"
    (tmp_path / "programs" / "asked").unlink()
    assert not run("install_chromium", apt_get=apt, id=root, chromium="#!/bin/sh\n").stderr
    assert not (tmp_path / "programs" / "asked").exists()


def test_what_is_in_place_is_left_alone_and_what_changed_is_noticed(
    run: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "python").symlink_to(sys.executable)
    (tmp_path / "lock").write_text("a==1")
    check = 'current "$venv/stamp" "$root/lock" && echo same || echo changed'
    assert run(check).stdout == "changed\n"
    assert run(f'mark "$venv/stamp" "$root/lock"; {check}').stdout == "same\n"
    (tmp_path / "lock").write_text("a==2")
    assert run(check).stdout == "changed\n"


def test_bytecode_is_written_even_where_python_is_told_not_to(
    run: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    """Else every process would compile all that it imports, each time it starts."""
    (tmp_path / "models").mkdir()
    (tmp_path / "service" / "run").mkdir(parents=True)
    (tmp_path / "service" / "run" / "warm.py").touch()
    for name in ("python", "sluice"):
        program = tmp_path / ".venv" / "bin" / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text('#!/bin/sh\necho "${PYTHONDONTWRITEBYTECODE-unset} $*" >> "$PROGRAMS/ran"\n')
        program.chmod(0o755)
    assert run("export PYTHONDONTWRITEBYTECODE=1; compile_all; compile_all").returncode == 0
    assert (tmp_path / "programs" / "ran").read_text().splitlines() == [
        "unset -m service.run.warm",
        "unset -m compileall -q models service",
        "unset topics --help",
    ]


def pins(lock: str) -> dict[str, str]:
    matches = re.findall(
        r"^([\w.-]+)==(\S+)([^\n]*)((?:\n    --hash=sha256:[0-9a-f]{64}[ \\]*)+)",
        (ROOT / lock).read_text(),
        re.MULTILINE,
    )
    return {name: version for name, version, _, _ in matches}


def test_the_lock_files_agree_and_hash_everything() -> None:
    serve, develop = map(pins, LOCKS)
    assert serve.items() <= develop.items()
    for lock in LOCKS:
        text = (ROOT / lock).read_text()
        assert len(pins(lock)) == len(re.findall(r"^[^\s#]", text, re.MULTILINE))
        assert "://" not in text


def test_every_dependency_is_locked() -> None:
    project = (ROOT / "pyproject.toml").read_text()
    serve = re.findall(r'^  "([\w.-]+)>=', project.partition("dependencies = [")[2].partition("]")[0], re.MULTILINE)
    develop = re.findall(r'^  "([\w.-]+)>=', project.partition("dev = [")[2].partition("]")[0], re.MULTILINE)
    assert len(serve) > 10
    assert {name.lower() for name in serve} <= pins("requirements.lock").keys()
    assert {name.lower().replace(".", "-") for name in develop} <= pins("requirements-dev.lock").keys()
