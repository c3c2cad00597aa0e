"""The client and the command line load what they need and no more, counted in modules and never in seconds."""

import ssl
import subprocess
import sys
from typing import Any

import pytest

from service.client import AsyncClient, Client
from service.config import Config

HEAVY = {"fastapi", "numba", "numpy", "redis", "scipy", "sklearn", "starlette", "uvicorn"}
SLUICE = """
import sys
from service.cli import main
sys.argv = ["sluice", *sys.argv[1:]]
try:
    main.main()
except SystemExit as end:
    code = end.code
print(code, *sys.modules, file=sys.stderr)
"""


def loaded(code: str, *arguments: str) -> list[str]:
    """The last line that this program writes to stderr, as words."""
    ran = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=60)
    return ran.stderr.splitlines()[-1].split()


def test_the_client_loads_nothing_of_the_server() -> None:
    modules = loaded("import sys, service.client; print(*sys.modules, file=sys.stderr)")
    assert "service.client.transport" in modules
    assert not HEAVY & set(modules)
    assert len(modules) < 550


@pytest.mark.parametrize("client", [Client, AsyncClient])
def test_certificates_are_loaded_only_for_an_address_that_needs_them(
    client: type[Client | AsyncClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    load, contexts = ssl.SSLContext.load_verify_locations, list[ssl.SSLContext]()

    def counted(context: ssl.SSLContext, *args: Any, **kwargs: Any) -> None:
        contexts.append(context)
        load(context, *args, **kwargs)

    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", counted)
    client("http://sluice")
    assert not contexts
    client("https://sluice")
    assert contexts
    assert all(context.verify_mode == ssl.CERT_REQUIRED and context.check_hostname for context in contexts)


@pytest.mark.parametrize(
    ("arguments", "code", "limit"),
    [
        (["--help"], "0", 200),
        (["--no-such"], "2", 200),
        (["topics", "change", "--help"], "0", 350),  # typer reads the types of options with pydantic
        (["serve", "--help"], "0", 350),
    ],
)
def test_the_help_does_not_wait_for_what_it_does_not_need(arguments: list[str], code: str, limit: int) -> None:
    ended, *modules = loaded(SLUICE, *arguments)
    assert ended == code
    unneeded = HEAVY | {"httpx", "pydantic_settings", "rich", "service.config", "service.schemas", "structlog"}
    assert not unneeded & set(modules)
    assert len(modules) < limit


def test_a_command_loads_the_client_and_nothing_to_draw_with() -> None:
    code, *modules = loaded(SLUICE, "topics", "--url", "http://127.0.0.1:9")
    assert code == "1"
    assert "service.client" in modules
    unneeded = HEAVY | {"click", "pydantic_settings", "pygments", "rich", "structlog"}
    assert not unneeded & set(modules)
    assert len(modules) < 450


def test_the_help_shows_the_defaults_of_the_configuration() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "service.cli.main", "serve", "--help"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    for name in ("host", "port", "data", "workers"):
        assert f"[default: ({Config.model_fields[name].default})]" in ran.stdout
