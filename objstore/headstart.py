"""A head start: a child looks at the files while a command still imports what it needs for a status, or for a look.

It is an ordinary glance, of the folders that the index says were as recorded, or of those that the last look has kept,
begun before there is a workspace to ask. So nothing of it is believed before the workspace is found to be in the same
place and to know the same folders.
"""

from __future__ import annotations

import _sqlite3 as sqlite3  # as in `indexfile`
import os

from objstore.annotations import TYPE_CHECKING, Final, Self
from objstore.errors import StoreLinked, StoreNotRegular
from objstore.facts import FACTS_SIZE
from objstore.glance import WORTH_TWO, GlanceBegun, Known
from objstore.indexfile import address_of
from objstore.names import INDEX_NAME, LOOKS_NAME, MARK_NAME, STORE_NAME, nearest_store
from objstore.premises import own_bytes
from objstore.standard import suppress
from objstore.statlookups import all_stood, digest, glimpse_of
from objstore.twofold import may_fork

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from objstore.facts import Glimpse
    from objstore.glance import StandFor
    from objstore.statlookups import AllStood

    _Kept = tuple[bytes, Sequence[Glimpse]]  # what stands for all that was kept, and what of it is compared

__all__ = ["HeadStart"]

_ROW_BYTES: Final = 400
"""Bytes that an index has for each recorded file, at the very least."""

_FOLDER: Final = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)


class HeadStart:
    """A glance at the files of a workspace that may have been begun already; for one status, or one look.

    This process has no other thread, and starts none before the head start ends.
    """

    def __init__(self, begun: GlanceBegun | None, mark: bytes = b"") -> None:
        """Hold what was begun (None: nothing). `mark`: what said before how far files had followed the log."""
        self._begun = begun
        self.mark: Final = mark

    @classmethod
    def of_status(cls, start: str) -> Self:
        """Begin with the recorded files of the workspace at or above `start`, where there are so many that it helps."""
        return cls(_begun(_found(start), INDEX_NAME, _ROW_BYTES, lambda path: _of_status(_stood(path)), digest))

    @classmethod
    def of_look(cls, start: str) -> Self:
        """Begin with all files of the workspace at or above `start`, where there are so many that it helps."""
        from objstore.looks import Looks  # once for both

        def kept(path: str) -> _Kept:
            looks = Looks.decoded(own_bytes(path))
            return looks.kept, looks.glimpses(b"")[0]

        root, mark = _found(start), b""
        if root is not None:
            with suppress(OSError, StoreLinked, StoreNotRegular):
                mark = own_bytes(os.path.join(root, STORE_NAME, MARK_NAME))
        return cls(_begun(root, LOOKS_NAME, FACTS_SIZE, kept, bytes), mark)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self.end()

    def end(self) -> None:
        """End the child, whether or not what it does was needed."""
        if self._begun is not None:
            self._begun.__exit__()
            self._begun = None

    def finish_status(self, root: int, stood: AllStood) -> list[bytes] | None:
        """Return those of the folders, below the open folder `root`, whose files no longer look as they stood.

        In any order; None where nothing was begun, or it was finished.
        """
        return self._finish(root, lambda: _of_status(stood))

    def finish_look(self, root: int, kept: bytes, known: Sequence[Glimpse]) -> list[bytes] | None:
        """As `finish_status`, for what is known of the folders of a look that was `kept`."""
        return self._finish(root, lambda: (kept, known))

    def _finish(self, root: int, known: Callable[[], _Kept]) -> list[bytes] | None:
        if self._begun is None:
            return None
        try:
            return self._begun.finish(root, _known(root, *known()))
        finally:
            self.end()


def _found(start: str) -> str | None:
    """Return the folder of the workspace at or above `start` (None: there is none, or no process can be made)."""
    if not may_fork():
        return None
    try:
        return nearest_store(start)
    except OSError:
        return None  # what that means is found by who needs it


def _begun(
    root: str | None, name: str, least: int, kept: Callable[[str], _Kept], stand_for: StandFor
) -> GlanceBegun | None:
    """Begin with what `kept` returns of the file of that name in the store, if it has so many bytes for each file."""
    if root is None:
        return None
    try:
        path = os.path.join(root, STORE_NAME, name)
        # SQLite would follow a link, and so must nobody: who opens the store refuses it.
        if os.lstat(path).st_size < WORTH_TWO * least or os.path.islink(os.path.join(root, STORE_NAME)):
            return None
        folder = os.open(root, _FOLDER)
    except OSError:
        return None  # what that means is found by who needs it
    try:
        return GlanceBegun(folder, lambda: _known(folder, *kept(path)), stand_for)
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


def _of_status(stood: AllStood) -> _Kept:
    return stood.mark, list(map(glimpse_of, stood.folders))


def _known(root: int, mark: bytes, glimpses: Sequence[Glimpse]) -> Known:
    """Return what is known of an open folder."""
    place = os.fstat(root)
    return Known(b"%d %d " % (place.st_dev, place.st_ino) + mark, glimpses)
