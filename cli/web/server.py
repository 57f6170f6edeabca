"""Run the server of one workspace: build the application, bind the port, open the browser, serve until a signal."""

import asyncio
import logging
import os
import secrets
import signal
import socket
import sys
import tempfile
import threading
import time
import webbrowser
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Final

import click
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import Route

from cli.screen.terminal import flush, shown_name, write
from cli.selection.elsewhere import Elsewhere
from cli.web import events
from cli.web.connections import Strangers
from cli.web.decisions.waiting_rejections import waiting_words
from cli.web.endpoints import failed
from cli.web.events import Watcher
from cli.web.guard import Guard
from cli.web.memory import leave_program_out
from cli.web.routes import comments, decisions, documents, history, review, static_files, store
from cli.web.server_state import ServerState
from cli.web.shared_answers import SharedAnswers

__all__ = ["serve"]

_ROUTES: Final[list[Route]] = [
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

HOST: Final = "127.0.0.1"

_ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_GRACE: Final = 1
"""Seconds that running requests get when the server ends."""

_LAST_GRACE: Final = 0.3
"""Seconds that the threads of requests get after that."""

_MOST_CONNECTIONS: Final = 200

_FORWARD: Final = (
    "<!doctype html><html lang=en><meta charset=utf-8><title>editledger</title>"
    '<meta name=referrer content=no-referrer><meta http-equiv=refresh content="0;url={0}">'
    '<p><a href="{0}">Open the review</a></p></html>'
)


def serve(
    root: str, context: click.Context, *, port: int, opens_browser: bool, elsewhere: Elsewhere | None = None
) -> None:
    """Serve the workspace at `root` until a signal ends the process.

    `port`: 0 chooses a free one. `elsewhere`: the other store whose mirror is at `root`. Raises
    ClickException if the port is taken.
    """
    with _listening(port) as listener:
        bound: int = listener.getsockname()[1]
        token = secrets.token_urlsafe(32)
        address = f"http://{HOST}:{bound}/?token={token}"
        server = ServerState(root, context, elsewhere)
        try:
            leave_program_out()
            asyncio.run(_served(server, listener, token, address, opens_browser=opens_browser))
        finally:
            server.close()
    for words in waiting_words(server):
        click.echo(f"cas: {words}", err=True)
    _end_threads()


def _end_threads() -> None:
    """End the process if a request's thread has not ended by now: it waits for another writer's lock, for example.

    What such a thread has begun to write is recovered as after a kill: all of it, or nothing.
    """
    until = time.monotonic() + _LAST_GRACE
    for thread in threading.enumerate():
        if not thread.daemon and thread is not threading.main_thread():
            thread.join(max(0.0, until - time.monotonic()))
            if thread.is_alive():
                flush()
                sys.stderr.flush()
                os._exit(0)


async def _served(
    server: ServerState, listener: socket.socket, token: str, address: str, *, opens_browser: bool
) -> None:
    shared = SharedAnswers(server.version)
    watcher = Watcher(server, shared.is_busy)
    strangers = Strangers()
    guarded = _application(server, watcher, shared, strangers, listener.getsockname()[1], token)
    config = uvicorn.Config(
        guarded,
        http=strangers.protocol(),
        ws="none",
        log_level="error",
        access_log=False,
        server_header=False,
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_graceful_shutdown=_GRACE,
    )
    web = _Web(config, server, watcher, f"{_title(server)} is at\n{address}")
    with _forward_page(address) if opens_browser else nullcontext("") as page:
        web.browser = page
        await web.serve(sockets=[listener])


def _title(server: ServerState) -> str:
    return shown_name(server.root) if server.elsewhere is None else server.elsewhere.title


def _application(
    server: ServerState, watcher: Watcher, shared: SharedAnswers, strangers: Strangers, port: int, token: str
) -> Guard:
    """Return the ASGI application for a port of this machine. `token`: the secret in the printed address."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        task = asyncio.create_task(watcher.run())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    app = Starlette(routes=_ROUTES, lifespan=lifespan, exception_handlers={HTTPException: failed})
    app.router.redirect_slashes = False
    app.state.server, app.state.watcher, app.state.shared = server, watcher, shared
    return Guard(app, port, token, strangers.forget)


class _Web(uvicorn.Server):
    """A uvicorn server that prints the address when it is ready, and ends its event streams when it ends."""

    def __init__(self, config: uvicorn.Config, server: ServerState, watcher: Watcher, words: str) -> None:
        super().__init__(config)
        self.browser = ""
        """The address of the page to open; "": none."""
        self._server: Final = server
        self._watcher: Final = watcher
        self._words: Final = words

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to accept connections, then print the address."""
        await super().startup(sockets)
        advice = "Keep the address secret: whoever has it can review. Ctrl-C ends the server."
        for line in (*self._words.split("\n"), advice):
            write([f"{line}\n".encode()])
        flush()
        if self.browser:
            threading.Thread(target=_open, args=(self.browser,), daemon=True).start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the server; running requests get the grace period to finish."""
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        self._watcher.end()
        for check in self._server.checks():
            check.stopped.set()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Shut down at the first signal, at once at the second; uvicorn would let the signal kill the process."""
        loop = asyncio.get_running_loop()

        def end() -> None:
            self.force_exit = self.should_exit
            self.should_exit = True

        # Signals that were ignored, as under nohup, stay ignored.
        held = [number for number in _ENDING if signal.getsignal(number) is not signal.SIG_IGN]
        for number in held:
            loop.add_signal_handler(number, end)
        try:
            yield
        finally:
            for number in held:
                loop.remove_signal_handler(number)
                signal.signal(number, signal.SIG_IGN)  # the rest is quick, and has to clean up


@contextmanager
def _listening(port: int) -> Iterator[socket.socket]:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    with listener:
        # Lets a new server use the port of one that has just ended.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, port))
        except OSError as error:
            raise click.ClickException(
                f"Port {port} can't be used: {error.strerror}. Leave --port out to use a free one."
            ) from error
        yield listener


@contextmanager
def _forward_page(address: str) -> Iterator[str]:
    """Write a file that forwards to the address, and yield the file's address.

    The browser gets the file, because every user of the machine can read the browser's command line.
    """
    with tempfile.TemporaryDirectory(prefix="cas-web-") as folder:
        page = Path(folder, "review.html")
        fd = os.open(page, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(fd, "w", encoding="utf-8") as file:  # noqa: PTH123 -- it is open already
            file.write(_FORWARD.format(address))
        yield page.as_uri()


def _open(address: str) -> None:
    """Open an address in the user's browser, unless that browser runs in the terminal."""
    with suppress(webbrowser.Error, OSError):
        browser = webbrowser.get()
        takes_terminal = type(browser) is webbrowser.GenericBrowser and "BROWSER" not in os.environ
        if not takes_terminal:
            browser.open(address)
