"""Turn a request into a call of a plain function, and its result or exception into an answer.

Such a function takes the server's state (`ServerState`) and the request's fields (`Fields`), and runs on a thread of
its own. It opens the workspace itself, so that two tabs and the terminal never share a connection.
"""

import json
import sys
from collections.abc import Callable, Mapping
from traceback import print_exception
from typing import TYPE_CHECKING, Final, TypeAlias

import click
from anyio.to_thread import run_sync
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from cli.app.error_hints import message_with_advice
from cli.screen.terminal import visible
from cli.web.request_fields import BadRequest, Fields, NotThere, body_of
from cli.web.server_state import ServerState
from objstore import CasError, FileMissing, LineMissing, NoSuchName, NotAWorkspace, PathError

if TYPE_CHECKING:
    from cli.web.shared_answers import Asked, SharedAnswers

__all__ = ["Handler", "Json", "answered", "failed", "get", "post", "refusal"]

Json: TypeAlias = object
"""A value that `json` can write: dicts with texts as keys, lists, texts, numbers, booleans."""

Handler: TypeAlias = Callable[[ServerState, Fields], Json]
"""A function that answers a request. It may raise BadRequest, NotThere, CasError and OSError."""

_MOST_BYTES: Final = 4 << 20
"""Most bytes of a request's body: room for the keys of more than 100,000 changes."""


def get(path: str, handler: Handler, *known: str, is_shared: bool = False) -> Route:
    """Return a route for requests that change nothing. `known`: the allowed parameters of the address.

    `is_shared`: requests for the same at the same time are answered with one call.
    """

    async def endpoint(request: Request) -> Response:
        given = request.query_params
        if len(given.multi_items()) > len(given):
            return refusal(400, "A parameter is given twice.")
        asked: Asked | None = (path, tuple(sorted(given.items()))) if is_shared else None
        return await _called(request, handler, lambda: Fields(dict(given), known, are_texts=True), asked)

    return Route(path, endpoint, methods=["GET"])


def post(path: str, handler: Handler, *known: str) -> Route:
    """Return a route for requests with a JSON body. `known`: the allowed fields."""

    async def endpoint(request: Request) -> Response:
        kinds = request.headers.getlist("content-type")
        if len(kinds) != 1 or kinds[0].partition(";")[0].strip().lower() != "application/json":
            return refusal(415, "The body has to be application/json.")
        content = bytearray()
        async for piece in request.stream():
            content += piece
            if len(content) > _MOST_BYTES:
                return refusal(413, f"The body has more than {_MOST_BYTES} bytes.")
        return await _called(request, handler, lambda: Fields(body_of(bytes(content)), known))

    return Route(path, endpoint, methods=["POST"])


def answered(content: Json, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return an answer in JSON. A lone surrogate, which represents a byte of a name on disk, becomes an escape."""
    body = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")
    return Response(body, status, dict(headers or {}), media_type="application/json")


def refusal(status: int, words: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return the answer to a request that is refused."""
    return answered({"error": words}, status, headers)


async def failed(request: Request, error: Exception) -> Response:
    """Answer a request that has no route, or that its route refuses."""
    if not isinstance(error, HTTPException):
        raise error
    words = {404: f"There is nothing at {visible(request.url.path)}."}.get(error.status_code, error.detail)
    return refusal(error.status_code, words, error.headers)


async def _called(
    request: Request, handler: Handler, fields: Callable[[], Fields], asked: "Asked | None" = None
) -> Response:
    """Return the answer of a function. `asked`: identifies a request of which the answer is shared (None: it isn't)."""
    server: ServerState = request.app.state.server
    shared: SharedAnswers = request.app.state.shared

    def call() -> Response:
        with click.Context(server.context.command, parent=server.context):  # has the command's options, for rendering
            found = handler(server, fields())
            return found if isinstance(found, Response) else answered(found)

    try:
        return await (run_sync(call) if asked is None else shared.answer(asked, call))
    except ClientDisconnect:
        raise
    except Exception as error:  # noqa: BLE001 -- the outermost layer: each error gets a status, and the server goes on
        return _refused(error)


def _refused(error: Exception) -> Response:
    """Return the answer to a request whose function raised an error."""
    match error:
        case BadRequest():
            status = 400
        case NotThere() | NoSuchName() | FileMissing() | LineMissing():
            status = 404
        case NotAWorkspace():
            status = 410
        case PathError():
            status = 409
        case CasError() | OSError():
            status = 503
        case _:
            print_exception(error, file=sys.stderr)
            return refusal(500, f"Internal error: {type(error).__name__}. See the terminal of `cas web`.")
    return refusal(status, visible(message_with_advice(error)))
