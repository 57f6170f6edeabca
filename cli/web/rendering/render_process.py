"""Render two texts in a separate process, which is ended if it takes too long.

The library takes a second for some texts of 100 kB and can't be interrupted; the server goes on meanwhile.
"""

import json
import resource
import subprocess
import sys
import threading
from typing import Final

from cli.web.rendering.rendered_page import note_page, rendered_page

__all__ = ["MOST_BYTES", "MOST_SECONDS", "Renderer", "main"]

MOST_BYTES: Final = 1_000_000
"""Most bytes of a text that is rendered."""

MOST_SECONDS: Final = 10
_MOST_PAGE: Final = 10_000_000
"""Most bytes of a page that is sent: enough for two texts of the largest size, with plain paragraphs."""

_AT_ONCE: Final = 2
"""Most pages that are rendered at the same time; others wait."""

_DEEPEST_CALLS: Final = 5_000

_CHILD: Final = f"import editledger; editledger.isolate(); from {__name__} import main; main()"


class Renderer:
    """Renders texts in processes of their own. Safe to use from several threads."""

    def __init__(self) -> None:
        """Begin without a process."""
        self._at_once: Final = threading.Semaphore(_AT_ONCE)
        self._lock: Final = threading.Lock()
        self._processes: Final[set[subprocess.Popen[bytes]]] = set()
        self._is_closed = False

    def rendered(
        self, name: str, kind: str, before: bytes | None, after: bytes | None, *, seconds: float = MOST_SECONDS
    ) -> str:
        """Return a page with both texts rendered (None: no file), or one that says why they are not.

        `kind`: markdown or notebook. `seconds`: time limit.
        """
        if max(len(before or b""), len(after or b"")) > MOST_BYTES:
            most = f"A text of more than {MOST_BYTES // 1_000_000} MB is not rendered."
            return note_page(name, f"{most} Look at its lines.")
        texts = [None if text is None else text.decode("utf-8", "replace") for text in (before, after)]
        with self._at_once:
            ran = self._ran(json.dumps([name, kind, *texts]).encode(), seconds)
        if ran is None:
            return note_page(name, f"Rendering took more than {seconds:g} seconds and was ended. Look at its lines.")
        status, page, said = ran
        if status:
            if not self._is_closed:
                sys.stderr.write(said.decode("utf-8", "replace"))
            return note_page(name, "Rendering failed; the terminal of `cas web` shows why. Look at its lines.")
        if len(page) > _MOST_PAGE:
            return note_page(name, f"Rendered, this has more than {_MOST_PAGE // 1_000_000} MB. Look at its lines.")
        return page.decode()

    def close(self) -> None:
        """End all processes, and start no other."""
        with self._lock:
            self._is_closed = True
            for process in self._processes:
                process.kill()

    def _ran(self, asked: bytes, seconds: float) -> tuple[int, bytes, bytes] | None:
        """Run the process; return its exit status, its output and its errors. None: it took too long."""
        # A module of that name in the current folder or on PYTHONPATH, where agents write, must not be run.
        command = [sys.executable, "-P", "-c", _CHILD]
        pipe = subprocess.PIPE
        with self._lock:
            if self._is_closed:
                return 1, b"", b""
            process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe)  # noqa: S603 -- this very module
            self._processes.add(process)
        try:
            with process:
                try:
                    page, said = process.communicate(asked, seconds)
                except subprocess.TimeoutExpired:
                    process.kill()
                    return None
            return process.returncode, page, said
        finally:
            with self._lock:
                self._processes.discard(process)


def main() -> None:
    """Render what standard input asks for, in a process of its own."""
    # Ends this process if the server ended first and can no longer do it.
    resource.setrlimit(resource.RLIMIT_CPU, (2 * MOST_SECONDS, 2 * MOST_SECONDS))
    sys.setrecursionlimit(_DEEPEST_CALLS)
    page = rendered_page(*json.loads(sys.stdin.buffer.read()))
    sys.stdout.buffer.write(page.encode("utf-8", "backslashreplace"))
