"""Show progress in one line on a terminal's standard error."""

import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Self

import click

if TYPE_CHECKING:
    from objstore import Workspace

__all__ = [
    "CHECKING",
    "DECIDING",
    "LOOKING",
    "REPLAYING",
    "SELECTING",
    "Progress",
    "progress_line",
    "showing_progress",
]

PATIENCE: Final = 1.0
"""Seconds until the first progress is shown."""

SHORTEST: Final = 0.05
"""Least number of seconds that count as silence."""

WIDTH: Final = 24

_NOTHING: Final = "Interrupted: nothing is half done. Run the command again to finish."

_RECORDED: Final = "Interrupted: what was recorded is kept, and the next command finishes its files. See `cas status`."
"""What is true whenever a decision or a scan ends: after its record, the files are written one after another."""

_INDEXING: Final = {"bytes of the log": "indexing"}
"""Progress words of a rebuild of the index, with which any command may begin."""

LOOKING: Final = {"files": "looking", "changes": "recording", "paths": "writing"}
"""Progress words of a scan and what follows it."""

SELECTING: Final = {"edits": "selecting"}
"""Progress words of finding what names mean."""

DECIDING: Final = {"files": "comparing", "documents": "replaying", "paths": "writing"}
"""Progress words of a decision."""

CHECKING: Final = {"blobs": "checking", "bytes of segments": "reading", "documents": "replaying", "paths": "writing"}
"""Progress words of a check, and of writing the files of a store that was checked."""

REPLAYING: Final = {"documents": "replaying"}
"""Progress words of net changes."""


class Progress:
    """A progress bar with the kind of work and the time left; invisible off a terminal, and for short work."""

    def __init__(self, words: Mapping[str, str], *, interrupted: str = _NOTHING) -> None:
        """`words`: the verb for each kind of work; other kinds are shown by their own name.

        `interrupted`: the sentence after Ctrl-C, which must be true at every moment.
        """
        self._terminal = sys.stderr is not None and sys.stderr.isatty()
        self._words = {**words, **_INDEXING}
        self._first = next(iter(words.values()), "working")
        self._interrupted: Final = interrupted
        self._stages: dict[str, float] = {}
        self._began = self._next = time.monotonic()
        self._next += PATIENCE
        self._line = ""  # the last progress
        self._shown = False
        self._drawing = threading.Lock()

    @property
    def is_visible(self) -> bool:
        """Return whether it is shown at all; if not, the caller needn't count."""
        return self._terminal

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """End the progress bar; after Ctrl-C, say in its place what that means."""
        was_shown = self._shown
        self.end()
        if was_shown and kind is not None and issubclass(kind, KeyboardInterrupt):
            click.echo(self._interrupted, err=True)

    def end(self) -> None:
        """Erase the line, for good."""
        with self._drawing:
            if self._shown:
                click.echo("\r\x1b[K", err=True, nl=False)
            self._terminal = self._shown = False

    def report(self, what: str, done: int, total: int) -> None:
        """Show that `done` of `total` of the work `what` is done."""
        now = time.monotonic()
        began = self._stages.setdefault(what, now)
        if not self._terminal or now < self._next or not total:
            return
        self._line = progress_line(self._words.get(what, what), what, done, total, now - began)
        self._draw(self._line, now + PATIENCE / 5)

    def show_elapsed_while_quiet(self, over: threading.Event) -> None:
        """Show the elapsed time whenever there is no progress for a while, as with one large file; until `over`."""
        silence = max(PATIENCE, SHORTEST)
        while not over.wait(silence):
            now = time.monotonic()
            if now > self._next + silence:
                line = self._line or self._first
                self._draw(f"{line}, {_shown_time(now - self._began)} so far", now)

    def _draw(self, line: str, following: float) -> None:
        with self._drawing:
            if self._terminal:
                self._next, self._shown = following, True
                click.echo(f"\r\x1b[K{_cut(line)}", err=True, nl=False)


@contextmanager
def showing_progress(workspace: "Workspace", words: Mapping[str, str]) -> Iterator[None]:
    """Show the progress of the workspace during the block. `words` as for Progress.

    A scan first shares work with a child process, and a process with threads has none: so for a scan, and for net
    changes, which begin with one, silence is only reported after the first progress.
    """
    with Progress(words, interrupted=_RECORDED if words in (LOOKING, DECIDING) else _NOTHING) as progress:
        if not progress.is_visible:
            yield
            return
        over = threading.Event()
        teller = threading.Thread(target=progress.show_elapsed_while_quiet, args=(over,), daemon=True)

        def report(what: str, done: int, total: int) -> None:
            if teller.ident is None:
                teller.start()
            progress.report(what, done, total)

        if words not in (LOOKING, REPLAYING):
            teller.start()
        try:
            with workspace.reporting_progress(report):
                yield
        finally:
            over.set()
            if teller.ident is not None:
                teller.join()


def progress_line(words: str, what: str, done: int, total: int, seconds: float) -> str:
    """Return a line with the progress, a bar and, once it can be estimated, the time left at the current pace."""
    filled = WIDTH * done // total
    bar = "#" * filled + "." * (WIDTH - filled)
    left = f", {_shown_time(seconds * (total - done) / done)} left" if done and seconds > 0 else ""
    return f"{words} [{bar}] {done:,} of {total:,} {what}{left}"


def _shown_time(seconds: float) -> str:
    minutes, rest = divmod(int(seconds + 1), 60)
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


def _cut(line: str) -> str:
    """Return the part of a line that fits the terminal: of a wrapped line, only the end could be erased."""
    from shutil import get_terminal_size

    return line[: max(1, get_terminal_size().columns - 1)]
