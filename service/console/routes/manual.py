"""`/docs`: every call of the API, with forms to try them, drawn by the vendored Swagger UI."""

from fastapi import Request
from starlette.responses import Response

from service.console.pages import new_router, page

router = new_router()


@router.get("/docs", include_in_schema=False)
async def docs(request: Request) -> Response:
    """The page of all calls."""
    return page(request, "docs.html")
