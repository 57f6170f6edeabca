"""Losses: what can't be read of the edits that are shown. The others are shown all the same; it is said at the end."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from objstore import StoreError

__all__ = ["ReadErrors"]


class ReadErrors:
    """The first loss that was met; one is enough to say that something is wrong, and where to look."""

    def __init__(self) -> None:
        self.first: StoreError | None = None  # None: nothing was lost so far

    def note(self, error: "StoreError") -> None:
        """Keep the error, if it is the first."""
        if self.first is None:
            self.first = error

    def tell(self) -> None:
        """Raise what was noted: so the command ends with it, behind all that it printed."""
        if self.first is not None:
            raise self.first
