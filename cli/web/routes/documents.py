"""Routes that serve rendered Markdown and notebooks, and images."""

from typing import Final

from starlette.responses import Response
from starlette.routing import Route

from cli.screen.terminal import shown_name
from cli.web.endpoints import Json, get
from cli.web.rendering.rendered_page import POLICY
from cli.web.request_fields import BadRequest, Fields, NotThere
from cli.web.server_state import ServerState
from cli.web.shapes import kind_of
from cli.web.views.file_view import shown_file
from objstore import UNREADABLE, BlobId, blob_id, is_placeholder

__all__ = ["ROUTES"]

_MOST_IMAGE: Final = 20_000_000
"""Most bytes of an image that is sent."""

_HASH: Final = len(blob_id(b""))
_BEGINNINGS: Final = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}
"""First bytes of each type of image; WebP has a length in between."""

_NOTHING: Final = {"content-security-policy": "default-src 'none'; sandbox"}


def rendered_document(server: ServerState, fields: Fields) -> Json:
    """Answer with a page of a file rendered before and after its pending changes."""
    document, turn = fields.number("document"), fields.number("turn", 0)
    with server.workspace() as workspace:
        file = shown_file(server, workspace, document, turn).file
    kind = kind_of(file.path, is_binary=file.is_binary)
    if kind not in {"markdown", "notebook"}:
        raise NotThere(f"{shown_name(file.path)} is neither Markdown nor a notebook.")
    before, after = (None if text is None or is_placeholder(text) else text for text in (file.before, file.after))
    page = server.renderer.rendered(shown_name(file.path), kind, before, after)
    return Response(page, media_type="text/html", headers={"content-security-policy": POLICY})


def image(server: ServerState, fields: Fields) -> Json:
    """Answer with a recorded state of a file that is an image."""
    blob = _blob(fields)
    with server.workspace() as workspace:
        try:
            is_image = workspace.history.is_mentioned(blob) and workspace.history.size(blob) <= _MOST_IMAGE
            content = b"".join(workspace.history.pieces(blob)) if is_image else b""
        except UNREADABLE:
            raise NotThere("This state is no longer kept.") from None
    kind = _kind(content)
    if not kind:
        raise NotThere("There is no image with this hash of at most 20 MB that is shown.")
    return Response(content, media_type=kind, headers=_NOTHING)


# ---- inside


def _blob(fields: Fields) -> BlobId:
    spelled = fields.text("blob", most=2 * _HASH)
    try:
        content = bytes.fromhex(spelled)
    except ValueError:
        content = b""
    if len(content) != _HASH or content.hex() != spelled:
        raise BadRequest(f"blob has to be a hash of {2 * _HASH} hexadecimal digits.")
    return BlobId(content)


def _kind(content: bytes) -> str:
    """Return the type of an image by its first bytes; "" for other content."""
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for beginning, kind in _BEGINNINGS.items() if content.startswith(beginning)), "")


ROUTES: Final[list[Route]] = [
    get("/rendered", rendered_document, "document", "turn"),
    get("/image", image, "blob"),
]
