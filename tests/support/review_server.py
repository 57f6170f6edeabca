"""`cas web` as a process, and a client with its cookie: requests, decisions, events."""

import re
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx2

from tests.support.command_runner import PATIENCE, PROGRAM, environment
from tests.support.fork_server import forked_program
from tests.support.plain_http import NO_CERTIFICATES

__all__ = ["SECRET", "WHOLE", "ReviewServer", "cookie_of", "review_server"]

WHOLE: Final = [[0, 1_000_000_000]]
"""The rows of a change of which every row was on the screen."""

_ADDRESS: Final = re.compile(r"http://127\.0\.0\.1:(\d+)/\?token=(\S+)")


class ReviewServer:
    """A running server, and a client with its cookie."""

    def __init__(self, process: "subprocess.Popen[str]", port: int, token: str) -> None:
        self.process: Final = process
        self.port: Final = port
        self.token: Final = token
        self.origin: Final = f"http://127.0.0.1:{port}"
        self._clients: Final[list[httpx2.Client]] = []
        self.client: Final = self.browser()

    def browser(self) -> httpx2.Client:
        """Return another client with a cookie, like a second browser."""
        headers = {"Origin": self.origin}
        client = httpx2.Client(base_url=self.origin, headers=headers, verify=NO_CERTIFICATES, timeout=PATIENCE)
        self._clients.append(client)
        answer = client.get("/", params={"token": self.token})
        assert answer.status_code == 303
        client.headers[SECRET] = answer.headers["location"].removeprefix("/#secret=")
        return client

    # ---- asking

    def get(self, path: str, /, **parameters: object) -> Any:  # noqa: ANN401 -- whatever the document holds
        """Return the answer to a request, which must succeed."""
        answer = self.client.get(path, params={name: str(value) for name, value in parameters.items()})
        assert answer.status_code == 200, answer.text
        return answer.json()

    def post(self, path: str, /, **fields: object) -> Any:  # noqa: ANN401 -- as above
        """Return the answer to a request with a body, which must succeed."""
        answer = self.client.post(path, json=fields)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def queue(self) -> Any:  # noqa: ANN401 -- as above
        """Return the queue."""
        return self.get("/api/queue")

    def file(self, name: str, /, **parameters: object) -> Any:  # noqa: ANN401 -- as above
        """Return the changes of the file with this displayed name."""
        files = self.queue()["files"]
        (document,) = (file["document"] for file in files if file["name"] == name)
        return self.get("/api/file", document=document, **parameters)

    def keys(self, name: str) -> list[str]:
        """Return the keys of a file's changes."""
        return [change["key"] for change in self.file(name)["all"]]

    def decide(self, action: str, **fields: Any) -> Any:  # noqa: ANN401 -- as above
        """Return the outcome of a decision, for which everything was on the screen if `on_screen` is not given."""
        screen = dict.fromkeys((*fields.get("keys", ()), *fields.get("units", ())), WHOLE)
        return self.post("/api/decide", action=action, **{"on_screen": screen | self.of_turn(**fields), **fields})

    def of_turn(self, turn: int = 0, **_: object) -> dict[str, list[list[int]]]:
        """Return what a page that shows all changes of a turn has on the screen; {} for turn 0."""
        turns = [found for found in self.queue()["turns"] if found["turn"] == turn] if turn else []
        files = [(file["document"], found["turn"]) for found in turns for file in found["files"] if file["changes"]]
        shown = [self.get("/api/file", document=document, turn=number)["all"] for document, number in files]
        return {change["key"]: WHOLE for changes in shown for change in changes}

    @staticmethod
    def changed(outcome: dict[str, Any], *, cascaded: bool | None = None) -> list[str]:
        """Return the hunks that an outcome changed. `cascaded`: only those that went along, or that did not."""
        return [each["name"] for each in outcome["changed"] if cascaded in {None, each["cascaded"]}]

    @contextmanager
    def events(self) -> Iterator[Iterator[tuple[str, str]]]:
        """Yield an iterator over the events: their names and data."""
        with self.client.stream("GET", "/api/events") as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            yield _events(answer.iter_lines())

    # ---- ending

    def end(self, number: int = signal.SIGTERM, *, within: float = PATIENCE) -> tuple[int, str]:
        """End the server, and return its exit status and its stderr. It may take so many seconds."""
        self.process.send_signal(number)
        _, said = self.process.communicate(timeout=within)
        return self.process.returncode, said

    def close(self) -> None:
        """End the server if it is running, and close all clients."""
        for client in self._clients:
            client.close()
        _close(self.process)


@contextmanager
def review_server(
    root: Path,
    *options: str,
    settings: Mapping[str, str] | None = None,
    is_cold: bool = False,
    begun_by: tuple[str, ...] = (),
    program: tuple[str, ...] = (),
) -> Iterator[ReviewServer]:
    """Run `cas web` in a workspace until the end of the block, or until the test ends it.

    `is_cold`: start it cold instead of forked, so that the process can be killed. `begun_by`: as for `forked_program`.
    `program`: another that is `cas`; (): none.
    """
    started = program or (PROGRAM if is_cold else forked_program("cli", begun_by).command)
    process = subprocess.Popen(
        [*started, "web", "--no-browser", *options],
        cwd=root,
        env=environment(dict(settings or {})),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    server: ReviewServer | None = None
    try:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(3)]
        found = _ADDRESS.fullmatch(lines[1].strip())
        assert found is not None, (lines, process.communicate(timeout=PATIENCE))
        server = ReviewServer(process, int(found[1]), found[2])
        yield server
    finally:
        if server is None:
            _close(process)
        else:
            server.close()


SECRET: Final = "X-Editledger-Secret"  # noqa: S105 -- the header's name
"""The header with the page's own secret."""


def cookie_of(client: httpx2.Client) -> str:
    """Return the cookie of a client as a header."""
    return "; ".join(f"{cookie.name}={cookie.value}" for cookie in client.cookies.jar)


def _events(lines: Iterator[str]) -> Iterator[tuple[str, str]]:
    name, until = "", time.monotonic() + PATIENCE
    for line in lines:
        assert time.monotonic() < until, "what is waited for does not come"  # lines show that the stream is alive
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, line.removeprefix("data: ")


def _close(process: "subprocess.Popen[str]") -> None:
    if process.poll() is None:
        process.terminate()  # one that is forked is ended through the one that waits for it
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()
    process.wait()
