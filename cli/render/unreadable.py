"""Word what could not be read, and collect read errors, so that a command shows the rest and fails at the end."""

from typing import TYPE_CHECKING

from cli.screen.terminal import shown_name

if TYPE_CHECKING:
    from objstore import SkippedPath, StoreError

__all__ = ["ReadErrors", "not_looked_at"]


class ReadErrors:
    """The first read error; one is enough to report that something is wrong, and where to look."""

    def __init__(self) -> None:
        self.first: StoreError | None = None  # None: nothing is lost so far

    def note(self, error: "StoreError") -> None:
        """Keep the error, if it is the first."""
        if self.first is None:
            self.first = error

    def raise_first(self) -> None:
        """Raise the noted error: the command ends with it, after all its output."""
        if self.first is not None:
            raise self.first


def not_looked_at(place: "SkippedPath") -> str:
    """Return the message about a path that a scan could not read."""
    where = f"{shown_name(place.path)}: " if place.path else ""
    return f"cas: skipped: {where}{shown_name(place.reason)}"
