"""Progress: one line on a terminal's standard error while something takes its time."""

import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Self

import click

if TYPE_CHECKING:
    from objstore import Workspace

__all__ = ["DECIDING", "LOOKING", "Progress", "progress_line", "showing_progress"]

PATIENCE: Final = 1.0
"""Seconds after which a person at a terminal is told how far the work is."""

SHORTEST: Final = 0.05
"""Seconds that count as silence, however impatient the person is."""

WIDTH: Final = 24

LOOKING: Final = {"files": "looking", "changes": "recording", "paths": "writing"}
"""What is said of a look, and of what comes of it."""

DECIDING: Final = {"files": "comparing", "documents": "replaying", "paths": "writing"}
"""What is said of a decision."""


class Progress:
    """A bar with what is worked on and the time that is left; nothing off a terminal, or where all is done at once."""

    def __init__(self, words: Mapping[str, str]) -> None:
        """`words`: what is said of each kind of work; others are named as they are told."""
        self._terminal = sys.stderr is not None and sys.stderr.isatty()
        self._words = words
        self._stages: dict[str, float] = {}
        self._began = self._next = time.monotonic()
        self._next += PATIENCE
        self._line = ""  # what was told last
        self._shown = False
        self._drawing = threading.Lock()

    @property
    def is_visible(self) -> bool:
        """Return whether anybody sees it. Who has to count for it need not, if nobody does."""
        return self._terminal

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self.end()

    def end(self) -> None:
        """Wipe the line, for good."""
        with self._drawing:
            if self._shown:
                click.echo("\r\x1b[K", err=True, nl=False)
            self._terminal = self._shown = False

    def tell(self, what: str, done: int, total: int) -> None:
        """Show that so much of `total` is done of the work `what`."""
        now = time.monotonic()
        began = self._stages.setdefault(what, now)
        if not self._terminal or now < self._next or not total:
            return
        self._line = progress_line(self._words.get(what, what), what, done, total, now - began)
        self._draw(self._line, now + PATIENCE / 5)

    def show_elapsed_while_quiet(self, over: threading.Event) -> None:
        """Show for how long it has taken, whenever nothing is told for a while: one large file, say; until `over`."""
        silence = max(PATIENCE, SHORTEST)
        while not over.wait(silence):
            now = time.monotonic()
            if now > self._next + silence:
                line = self._line or next(iter(self._words.values()), "working")
                self._draw(f"{line}, {_shown_time(now - self._began)} so far", now)

    def _draw(self, line: str, following: float) -> None:
        with self._drawing:
            if self._terminal:
                self._next, self._shown = following, True
                click.echo(f"\r\x1b[K{_cut(line)}", err=True, nl=False)


@contextmanager
def showing_progress(workspace: "Workspace", words: Mapping[str, str]) -> Iterator[None]:
    """Show how far the workspace is with what it is asked to do meanwhile. `words` as for Progress.

    A look begins with what it shares with a child, and no process with threads has one: so of a look, silence is told
    only from the first word on.
    """
    with Progress(words) as progress:
        if not progress.is_visible:
            yield
            return
        over = threading.Event()
        teller = threading.Thread(target=progress.show_elapsed_while_quiet, args=(over,), daemon=True)

        def tell(what: str, done: int, total: int) -> None:
            if teller.ident is None:
                teller.start()
            progress.tell(what, done, total)

        if words is not LOOKING:
            teller.start()
        try:
            with workspace.reporting_progress(tell):
                yield
        finally:
            over.set()
            if teller.ident is not None:
                teller.join()


def progress_line(words: str, what: str, done: int, total: int, seconds: float) -> str:
    """Return how far some work is, with a bar and, once that can be told, the time left at the pace so far."""
    filled = WIDTH * done // total
    bar = "#" * filled + "." * (WIDTH - filled)
    left = f", {_shown_time(seconds * (total - done) / done)} left" if done and seconds > 0 else ""
    return f"{words} [{bar}] {done:,} of {total:,} {what}{left}"


def _shown_time(seconds: float) -> str:
    minutes, rest = divmod(int(seconds + 1), 60)
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


def _cut(line: str) -> str:
    """Return what of a line fits into one line of the terminal: of one that wraps, only the end could be wiped."""
    from shutil import get_terminal_size

    return line[: max(1, get_terminal_size().columns - 1)]
