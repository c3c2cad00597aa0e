"""The container files, without a container engine: they are well formed, and all that they name exists and works."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
from redis import Redis
from ruamel.yaml import YAML

from service.config import PREFIX, Config
from service.processes import WARM
from service.store.redis.embedded import find_server
from tests.support import ROOT
from tests.support.processes import ServeProcess
from tests.support.waiting import wait_until_sync

BIN = Path(sys.executable).parent
DOCKERFILE = (ROOT / "Dockerfile").read_text()
COMPOSE: dict[str, Any] = YAML(typ="safe", pure=True).load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]


def instructions(name: str) -> list[str]:
    joined = re.sub(r"\\\n\s*", " ", DOCKERFILE)
    return re.findall(rf"^{name} (.*)$", joined, re.MULTILINE)


def copied() -> list[str]:
    """Paths that are copied from this repository into the image."""
    lines = [shlex.split(line) for line in instructions("COPY") if "--from" not in line]
    return [path for line in lines for path in line[:-1]]


def in_context(path: str) -> bool:
    """Whether .dockerignore lets a path into the build: the last line that matches decides."""
    included = True
    for line in (ROOT / ".dockerignore").read_text().split():
        pattern = line.removeprefix("!").removeprefix("**/")
        if any(fnmatch(part, pattern) for part in (path, path.split("/")[0], path.split("/")[-1])):
            included = line.startswith("!")
    return included


def test_linters_accept_both_files() -> None:
    subprocess.run([BIN / "hadolint", "Dockerfile"], cwd=ROOT, check=True)
    schema = ["--builtin-schema", "vendor.compose-spec", "docker-compose.yml"]
    subprocess.run([BIN / "check-jsonschema", *schema], cwd=ROOT, check=True)


def test_what_is_copied_exists_and_nothing_else_is_sent() -> None:
    assert all((ROOT / path).exists() and in_context(path) for path in copied())
    assert {entry.name for entry in ROOT.iterdir() if in_context(entry.name)} == set(copied())
    assert not in_context("service/__pycache__")
    assert not in_context("data")


def test_the_image_installs_with_hashes_and_runs_as_a_user_without_rights() -> None:
    assert any("--require-hashes -r requirements.lock" in line for line in instructions("RUN"))
    (user,) = instructions("USER")
    assert int(user.split(":")[0]) > 0
    stages = instructions("FROM")
    assert len(stages) == 2
    assert all(re.match(r"python:3\.1[1-9]-slim", stage) for stage in stages)


def test_every_variable_is_a_setting_and_none_is_a_secret() -> None:
    named = [pair.split("=") for line in instructions("ENV") for pair in shlex.split(line)]
    for service in SERVICES.values():
        named += [[name, str(value)] for name, value in service.get("environment", {}).items()]
    # What ${NAME:-DEFAULT} of a compose file is where the variable is not set.
    ours = {name: re.sub(r"\${\w+:-(.*)}", r"\1", value) for name, value in named if name.startswith(PREFIX)}
    assert set(ours) == {"SLUICE_HOST", "SLUICE_DATA", "SLUICE_REDIS", "SLUICE_ACCESS", "SLUICE_ADMIN_KEY"}
    config = Config.from_env(**{name.removeprefix(PREFIX).lower(): value or None for name, value in ours.items()})
    config.check_access()
    assert not any(re.search(r"://[^/]*@|password|secret|token", value, re.IGNORECASE) for value in ours.values())


def test_only_the_api_is_published_and_only_to_this_machine() -> None:
    assert {name: service["ports"] for name, service in SERVICES.items() if "ports" in service} == {
        "api": ["127.0.0.1:8000:8000"]
    }
    assert instructions("EXPOSE") == [str(Config.model_fields["port"].default)]


def test_services_wait_for_a_healthy_store_that_keeps_its_data_in_a_volume() -> None:
    for name in ("api", "worker", "consumer"):
        assert SERVICES[name]["depends_on"]["redis"]["condition"] == "service_healthy"
    assert SERVICES["redis"]["healthcheck"]["test"]
    volume, _, place = SERVICES["redis"]["volumes"][0].partition(":")
    assert volume in COMPOSE["volumes"]
    assert place == "/data"


@pytest.mark.parametrize(
    "command", [json.loads(instructions("CMD")[-1]), *(SERVICES[n]["command"] for n in ("api", "worker", "consumer"))]
)
def test_the_commands_start(command: list[str]) -> None:
    subprocess.run([BIN / command[0], *command[1:], "--help"], check=True, capture_output=True)


def test_the_programs_run_while_building_exist() -> None:
    run = " ".join(instructions("RUN"))
    for module in re.findall(r"python -m (service[.\w]+)", run):
        assert (ROOT / f"{module.replace('.', '/')}.py").exists()
    assert WARM in run


def test_the_store_starts_with_the_options_given_and_is_durable(tmp_path: Path) -> None:
    program, *options = SERVICES["redis"]["command"]
    assert program == "valkey-server"
    here = ["--port", "0", "--unixsocket", str(tmp_path / "socket"), "--dir", str(tmp_path)]
    server = subprocess.Popen([find_server(), *options, *here], stdout=subprocess.DEVNULL)
    try:
        with Redis(unix_socket_path=str(tmp_path / "socket"), decode_responses=True) as client:
            settings = wait_until_sync(lambda: client.config_get("*"))
        assert settings["appendonly"] == "yes"
        assert settings["appendfsync"] == "always"
        assert settings["maxmemory-policy"] == "noeviction"
        assert settings["save"] == ""
    finally:
        server.terminate()
        server.wait()


@pytest.fixture
def sluice(tmp_path: Path) -> Iterator[ServeProcess]:
    running = ServeProcess(tmp_path)
    yield running
    running.end()


def healthy(test: list[str], **environment: str) -> bool:
    assert test[0] == "python"
    return (
        subprocess.run([sys.executable, *test[1:]], env=os.environ | environment, stderr=subprocess.DEVNULL).returncode
        == 0
    )


def test_the_image_is_healthy_exactly_while_the_api_is_ready(sluice: ServeProcess) -> None:
    check = json.loads(instructions("HEALTHCHECK")[0].partition(" CMD ")[2])
    address = sluice.address
    here = [part.replace("http://127.0.0.1:8000", address) for part in check]
    assert here != check
    assert healthy(here)
    sluice.end()
    assert not healthy(here)


@pytest.mark.parametrize("name", ["worker", "consumer"])
def test_what_has_no_port_is_healthy_exactly_while_its_store_answers(redis_url: str, name: str) -> None:
    form, *check = SERVICES[name]["healthcheck"]["test"]
    assert form == "CMD"
    assert healthy(check, SLUICE_REDIS=redis_url)
    assert not healthy(check, SLUICE_REDIS="unix:///nowhere/socket")
