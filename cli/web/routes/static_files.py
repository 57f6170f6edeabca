"""Serve the page's own files, by a fixed list, so that no path leads elsewhere."""

from hashlib import blake2b
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from cli.web.endpoints import refusal

__all__ = ["ROUTES"]

_FOLDER: Final = Path(__file__).parents[1] / "static"
_KINDS: Final = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}
_FILES: Final = {
    f"/static/{path.relative_to(_FOLDER).as_posix()}": path
    for path in _FOLDER.rglob("*")
    if path.suffix in _KINDS and path.is_file()
}
"""Every file that is served, by its address."""


async def static(request: Request) -> Response:
    """Answer with a file of the page."""
    address = request.scope["path"]
    path = _FILES.get("/static/index.html" if address == "/" else address)
    if path is None:
        return refusal(404, "There is no such file.")
    content = path.read_bytes()
    tag = f'"{blake2b(content, digest_size=12).hexdigest()}"'
    headers = {"etag": tag, "cache-control": "no-cache"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(content, headers={**headers, "content-type": _KINDS[path.suffix]})


ROUTES: Final[list[Route]] = [
    Route("/", static, methods=["GET"]),
    Route("/static/{path:path}", static, methods=["GET"]),
]
