"""Progress: one line on a terminal's standard error while something takes its time."""

import sys
import threading
import time
from collections.abc import Mapping
from typing import Final, Self

import click

__all__ = ["Progress", "Waiting", "progress_line"]

PATIENCE: Final = 1.0
"""Seconds after which a person at a terminal is told how far the work is."""

WIDTH: Final = 24


class Progress:
    """A bar with what is worked on and the time that is left; nothing off a terminal, or where all is done at once."""

    def __init__(self, words: Mapping[str, str]) -> None:
        """`words`: what is said of each kind of work; others are named as they are told."""
        self._terminal = sys.stderr is not None and sys.stderr.isatty()
        self._words = words
        self._stages: dict[str, float] = {}
        self._began = self._next = time.monotonic()
        self._next += PATIENCE
        self._shown = False

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Wipe the line."""
        if self._shown:
            click.echo("\r\x1b[K", err=True, nl=False)

    def tell(self, what: str, done: int, total: int) -> None:
        """Show that so much of `total` is done of the work `what`."""
        now = time.monotonic()
        began = self._stages.setdefault(what, now)
        if not self._terminal or now < self._next or not total:
            return
        self._next = now + PATIENCE / 5
        self._shown = True
        line = progress_line(self._words.get(what, what), what, done, total, now - began)
        click.echo(f"\r\x1b[K{line}", err=True, nl=False)


class Waiting:
    """A line that says what is waited for, where nobody can tell how much of it there is: a walk through files."""

    def __init__(self, words: str) -> None:
        """`words`: what is being done."""
        self._words = words
        self._over = threading.Event()
        self._teller: threading.Thread | None = None  # None: there is nobody to tell

    def __enter__(self) -> Self:
        """Begin to wait."""
        if sys.stderr is not None and sys.stderr.isatty():
            self._teller = threading.Thread(target=self._tell, args=(time.monotonic(),), daemon=True)
            self._teller.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Wipe the line."""
        self._over.set()
        if self._teller is not None:
            self._teller.join()

    def _tell(self, began: float) -> None:
        shown = False
        while not self._over.wait(PATIENCE):
            shown = True
            so_far = _shown_time(time.monotonic() - began)
            click.echo(f"\r\x1b[K{self._words}, {so_far} so far", err=True, nl=False)
        if shown:
            click.echo("\r\x1b[K", err=True, nl=False)


def progress_line(words: str, what: str, done: int, total: int, seconds: float) -> str:
    """Return how far some work is, with a bar and, once that can be told, the time left at the pace so far."""
    filled = WIDTH * done // total
    bar = "#" * filled + "." * (WIDTH - filled)
    left = f", {_shown_time(seconds * (total - done) / done)} left" if done and seconds > 0 else ""
    return f"{words} [{bar}] {done:,} of {total:,} {what}{left}"


def _shown_time(seconds: float) -> str:
    minutes, rest = divmod(int(seconds + 1), 60)
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
