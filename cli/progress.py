"""Progress: one line on a terminal's standard error while something takes its time."""

import sys
import time
from collections.abc import Mapping
from typing import Final, Self

import click

__all__ = ["Progress"]

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
        words = self._words.get(what, what)
        filled = WIDTH * done // total
        left = f", {_shown_time((now - began) * (total - done) / done)} left" if done and now > began else ""
        bar = "#" * filled + "." * (WIDTH - filled)
        click.echo(f"\r\x1b[K{words} [{bar}] {done:,} of {total:,} {what}{left}", err=True, nl=False)


def _shown_time(seconds: float) -> str:
    minutes, rest = divmod(int(seconds + 1), 60)
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
