"""The modules that are processes: each can be imported, and loads no more than it needs, counted in modules."""

import re
import subprocess
import sys

import pytest

from service import processes
from tests.support import ROOT

NUMERIC = {"numba", "numpy", "scipy", "sklearn"}
WEB = {"fastapi", "starlette", "uvicorn"}
CONSUMER_AT_WORK = f"{processes.CONSUMER}, service.flow.consumer, service.sluice"  # what it imports when documents come


def loaded(modules: str) -> set[str]:
    """All modules that a Python process has loaded after importing these."""
    program = f"import {modules}, sys; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(ran.stdout.split())


@pytest.mark.parametrize("module", processes.MODULES)
def test_every_process_can_be_imported(module: str) -> None:
    assert module in loaded(module)


@pytest.mark.parametrize("module", [processes.JOB_QUEUE, processes.CONSUMER])
def test_a_process_that_waits_for_work_loads_no_models(module: str) -> None:
    """Of the models only the module of their names, which imports nothing."""
    modules = loaded(module)
    assert not modules & (NUMERIC | WEB)
    assert {name for name in modules if name.split(".")[0] == "models"} <= {
        "models",
        "models.core",
        "models.core.names",
    }
    assert len(modules) < 700


@pytest.mark.parametrize("modules", [processes.JOB_CHILD, CONSUMER_AT_WORK, processes.HOUSEKEEPING])
def test_a_process_that_serves_no_requests_loads_no_web_framework(modules: str) -> None:
    assert not loaded(modules) & WEB


def test_what_the_consumer_imports_late_is_what_is_checked() -> None:
    late = re.findall(r"^ +from (service\S+) import", (ROOT / "service" / "run" / "consumer.py").read_text(), re.M)
    assert late == CONSUMER_AT_WORK.split(", ")[1:]


@pytest.mark.parametrize("file", ["Dockerfile", "scripts/setup", "scripts/replay"])
def test_scripts_start_modules_that_are_processes(file: str) -> None:
    started = re.findall(r"-m (service\.[\w.]+)", (ROOT / file).read_text())
    assert started
    assert set(started) <= set(processes.MODULES)
