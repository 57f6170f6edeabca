"""A head start: a child looks at the recorded files while a command still imports what it needs for a status.

It is an ordinary glance, of the folders that the index says were as recorded, begun before there is a workspace to ask.
So nothing of it is believed before the workspace is found to be in the same place and to know the same folders.
"""

from __future__ import annotations

import _sqlite3 as sqlite3  # as in `indexfile`
import os

from objstore.annotations import TYPE_CHECKING, Final, Self
from objstore.glance import WORTH_TWO, GlanceBegun, Known
from objstore.names import INDEX_NAME, STORE_NAME, nearest_store
from objstore.sqliteaddress import address_of
from objstore.statlookups import all_stood, digest, glimpse_of
from objstore.twofold import may_fork

if TYPE_CHECKING:
    from objstore.statlookups import AllStood

__all__ = ["HeadStart"]

_ROW_BYTES: Final = 400
"""Bytes that an index has for each recorded file, at the very least."""

_FOLDER: Final = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)


class HeadStart:
    """A glance at the recorded files of a workspace that may have been begun already; for one status."""

    def __init__(self, start: str) -> None:
        """Begin with the workspace at or above `start`, where there is one of so many files that it is worth it.

        This process has no other thread, and starts none before the head start ends.
        """
        self._begun = _begun(start) if may_fork() else None

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the child, whether or not what it does was needed."""
        if self._begun is not None:
            self._begun.__exit__()
            self._begun = None

    def finish(self, root: int, stood: AllStood) -> list[bytes] | None:
        """Return those of the folders, below the open folder `root`, whose files no longer look as they stood.

        In any order; None where nothing was begun, or it was finished.
        """
        if self._begun is None:
            return None
        try:
            return self._begun.finish(root, _known(root, stood))
        finally:
            self.__exit__()


def _begun(start: str) -> GlanceBegun | None:
    root = nearest_store(start)
    if root is None:
        return None
    index = os.path.join(root, STORE_NAME, INDEX_NAME)
    try:
        # SQLite would follow a link, and so must nobody: who opens the store refuses it.
        if os.lstat(index).st_size < WORTH_TWO * _ROW_BYTES or os.path.islink(os.path.dirname(index)):
            return None
        folder = os.open(root, _FOLDER)
    except OSError:
        return None  # what that means is found by who needs it
    try:
        return GlanceBegun(folder, lambda: _known(folder, _stood(index)), digest)
    except OSError:
        return None  # no process can be made
    finally:
        os.close(folder)


def _stood(index: str) -> AllStood:
    """Return what the last status has kept. Raises LookupError where there was none, and what SQLite raises."""
    stood = all_stood(sqlite3.connect(address_of(index, "mode=ro"), uri=True))
    if stood is None:
        raise LookupError(index)
    return stood


def _known(root: int, stood: AllStood) -> Known:
    """Return what is known of an open folder."""
    place = os.fstat(root)
    return Known(b"%d %d " % (place.st_dev, place.st_ino) + stood.mark, [glimpse_of(each) for each in stood.folders])
