"""Build the ASGI application from the routes and the guard."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import Route

from cli.web import events, static_files
from cli.web.endpoints import failed
from cli.web.events import Watcher
from cli.web.guard import Guard
from cli.web.routes import comments, decisions, documents, history, review, store
from cli.web.server_state import ServerState

__all__ = ["ROUTES", "application"]

ROUTES: Final[list[Route]] = [
    *static_files.ROUTES,
    *events.ROUTES,
    *review.ROUTES,
    *decisions.ROUTES,
    *comments.ROUTES,
    *history.ROUTES,
    *store.ROUTES,
    *documents.ROUTES,
]
"""Every route, in the order in which they are tried."""


def application(server: ServerState, watcher: Watcher, port: int, token: str) -> Guard:
    """Return the application for a port of this machine. `token`: the secret in the printed address."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        task = asyncio.create_task(watcher.run())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    app = Starlette(routes=ROUTES, lifespan=lifespan, exception_handlers={HTTPException: failed})
    app.router.redirect_slashes = False
    app.state.server, app.state.watcher = server, watcher
    return Guard(app, port, token)
