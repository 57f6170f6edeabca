"""Render two texts in a separate process, which is ended if it takes too long.

The library takes a second for some texts of 100 kB and can't be interrupted; the server goes on meanwhile.

It is a module of its own because it is also the program that this process runs.
"""

import json
import resource
import subprocess
import sys
import threading
from typing import Final

from cli.web.rendering.rendered_page import note_page, rendered_page

__all__ = ["MOST_BYTES", "MOST_SECONDS", "main", "rendered"]

MOST_BYTES: Final = 1_000_000
"""Most bytes of a text that is rendered."""

MOST_SECONDS: Final = 10
_MOST_PAGE: Final = 10_000_000
"""Most bytes of a page that is sent: enough for two texts of the largest size, with plain paragraphs."""

_AT_ONCE: Final = threading.Semaphore(2)
"""Most pages that are rendered at the same time; others wait."""

_DEEPEST_CALLS: Final = 5_000

_CHILD: Final = f"import editledger; editledger.isolate(); from {__name__} import main; main()"


def rendered(name: str, kind: str, before: bytes | None, after: bytes | None, *, seconds: float = MOST_SECONDS) -> str:
    """Return a page with both texts rendered (None: no file), or one that says why they are not.

    `kind`: markdown or notebook. `seconds`: time limit.
    """
    if max(len(before or b""), len(after or b"")) > MOST_BYTES:
        return note_page(name, f"A text of more than {MOST_BYTES // 1_000_000} MB is not rendered. Look at its lines.")
    texts = [None if text is None else text.decode("utf-8", "replace") for text in (before, after)]
    asked = json.dumps([name, kind, *texts]).encode()
    # A module of that name in the current folder or on PYTHONPATH, where agents write, must not be run.
    command = [sys.executable, "-P", "-c", _CHILD]
    try:
        with _AT_ONCE:
            ran = subprocess.run(command, input=asked, capture_output=True, timeout=seconds, check=False)  # noqa: S603 -- this very module
    except subprocess.TimeoutExpired:
        return note_page(name, f"Rendering took more than {seconds:g} seconds and was ended. Look at its lines.")
    if ran.returncode:
        sys.stderr.write(ran.stderr.decode("utf-8", "replace"))
        return note_page(name, "Rendering failed; the terminal of `cas web` shows why. Look at its lines.")
    if len(ran.stdout) > _MOST_PAGE:
        return note_page(name, f"Rendered, this has more than {_MOST_PAGE // 1_000_000} MB. Look at its lines.")
    return ran.stdout.decode()


def main() -> None:
    """Render what standard input asks for, in a process of its own."""
    # Ends this process if the server ended first and can no longer do it.
    resource.setrlimit(resource.RLIMIT_CPU, (2 * MOST_SECONDS, 2 * MOST_SECONDS))
    sys.setrecursionlimit(_DEEPEST_CALLS)
    page = rendered_page(*json.loads(sys.stdin.buffer.read()))
    sys.stdout.buffer.write(page.encode("utf-8", "backslashreplace"))
