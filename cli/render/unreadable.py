"""Collect read errors of edits in a list: the readable ones are shown, and the command fails at the end."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from objstore import StoreError

__all__ = ["ReadErrors"]


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
