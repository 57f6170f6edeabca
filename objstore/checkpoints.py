"""Checkpoints: changes of the index are brought from SQLite's log to their place while nobody waits for it.

SQLite by itself has it done inside the commit of whoever's change is one too many, with two syncs, and a third one in
the next commit, which begins that log anew: 2 ms as a rule, and 200 where the disk is busy, as it is while a sweep
writes segments anew. That may be an edit. So a thread does both here, and SQLite itself only where that can't keep up.
"""

from __future__ import annotations

import _sqlite3 as sqlite3  # `sqlite3` adds what turns dates into text, and `datetime` for that
import os

from objstore.annotations import TYPE_CHECKING, Final
from objstore.indexfile import address_of
from objstore.standard import closing, suppress

if TYPE_CHECKING:
    from threading import Thread

__all__ = ["CHECKPOINT_PAGES", "Checkpoints", "checkpoint"]

CHECKPOINT_PAGES: Final = 16_000
"""Pages in SQLite's log from which on it brings them to their place inside a commit after all."""

_PAGE: Final = 4096
_DUE_BYTES: Final = 1000 * _PAGE
"""Bytes by which that log may grow before a checkpoint is due: SQLite's own default."""


class Checkpoints:
    """Brings the changes of one index to their place, for one process."""

    def __init__(self, path: str) -> None:
        """Name the database, which need not be there yet."""
        self._path: Final = path
        self._begun_at = 0  # bytes of SQLite's log when a checkpoint was last begun
        self._thread: Thread | None = None  # that is at it, or has been

    def after_change(self) -> None:
        """Have the changes brought to their place if there are many. Call it after each commit; it waits for nothing.

        It has to be seen to that SQLite's log becomes short again when it is begun anew (`indexfile.prepare`).
        """
        try:
            size = os.stat(self._path + "-wal").st_size
        except OSError:
            return  # an index in memory, or one that somebody has removed
        self._begun_at = min(self._begun_at, size)
        is_busy = self._thread is not None and self._thread.is_alive()
        if size - self._begun_at >= _DUE_BYTES and not is_busy:
            from threading import Thread  # a status changes little and starts none

            self._begun_at = size
            self._thread = Thread(target=checkpoint, args=(self._path,), name="checkpoint")
            self._thread.start()

    def finish(self) -> None:
        """Wait until none is going on."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None


def checkpoint(path: str) -> None:
    """Bring the changes of the index at `path` to their place, as far as can be, and have SQLite's log begun anew."""
    # Nothing is lost where it can't be done: the changes stay in SQLite's log, and the next one who looks does it.
    # By a connection of its own, which makes no file where there is none: somebody may have removed the index.
    with (
        suppress(sqlite3.DatabaseError, UnicodeDecodeError),
        closing(sqlite3.connect(address_of(path, "mode=rw"), uri=True, isolation_level=None)) as db,
    ):
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute("PRAGMA journal_size_limit = 0")
        _, waiting, done = db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        if waiting == done:
            # Any change that is none: it is the first in the log that it begins.
            db.execute("UPDATE position SET segment = segment")
