"""The files that pages load: ours, and vendored ones, whose SHA-256 a test checks. There is no other host to ask."""

from functools import cache
from hashlib import sha256
from pathlib import Path

from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

FOLDER = Path(__file__).parent / "static"
PATH = "/static"


class Files(StaticFiles):
    """Files that a browser may keep for good, because an address with another `?v=` names other content."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        forever = scope.get("query_string", b"").startswith(b"v=")
        response.headers["Cache-Control"] = "public, max-age=31536000, immutable" if forever else "no-cache"
        response.headers["X-Content-Type-Options"] = "nosniff"
        return response


def files() -> Files:
    return Files(directory=FOLDER)


@cache
def address(name: str) -> str:
    """Where a page finds the file; the address changes with the content."""
    return f"{PATH}/{name}?v={sha256((FOLDER / name).read_bytes()).hexdigest()[:12]}"
