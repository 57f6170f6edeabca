"""Lock a store so that one process or thread at a time writes to it.

The lock is filelock's: an flock(2) on one file. A lock that is free, or becomes free within a moment, is taken by that
one call without filelock's bookkeeping (1 µs against 100 µs, and no import); only a longer wait uses filelock. Both
lock the same file in the same way, so they exclude each other.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from objstore.disk.fs.disk import failure, open_or_create
from objstore.values.errors import StoreLocked

if TYPE_CHECKING:
    from filelock import BaseFileLock

__all__ = ["BRIEF_WAIT_SECONDS", "GAP_SECONDS", "POLL_SECONDS", "TURN_SECONDS", "WAIT_SECONDS", "WriterLock"]

WAIT_SECONDS: Final = 30.0
POLL_SECONDS: Final = 0.001
BRIEF_WAIT_SECONDS: Final = 0.25
"""How long to wait for the lock without filelock, whose import alone takes as long as ten edits."""

GAP_SECONDS: Final = 0.000_2
"""Interval between attempts in the brief wait: a writer that never pauses leaves the lock free for about so long."""

TURN_SECONDS: Final = 3 * POLL_SECONDS
"""How long a process that takes the lock again and again leaves it free: then every writer that waits has tried."""


class WriterLock:
    """The lock of one store, for one process. Its owner must not use it from two threads at once."""

    def __init__(self, path: str) -> None:
        """Set the path of the lock file; it is created if it is missing."""
        self._path: Final = path
        self._fd: int | None = None
        self._locked: os.stat_result | None = None  # the lock file's status when it was opened
        self._filelock: BaseFileLock | None = None

    @contextmanager
    def held(self, seconds: float | None = None) -> Iterator[None]:
        """Hold the lock, after waiting for it at most `seconds` (None: 30 s). Raises StoreLocked."""
        self.acquire(seconds)
        try:
            yield
        finally:
            self.release()

    def acquire(self, seconds: float | None = None) -> None:
        """Take the lock, after waiting for it at most `seconds` (None: 30 s). Raises StoreLocked."""
        within = WAIT_SECONDS if seconds is None else seconds
        soon = min(within, BRIEF_WAIT_SECONDS)
        if not self._take_free() and not self._take_soon(soon):
            self._wait(within - soon, within)

    def acquire_now(self) -> bool:
        """Take the lock if it is free; return whether it was."""
        return self._take_free()

    def release(self) -> None:
        """Release the lock."""
        if self._filelock is not None:
            self._filelock.release()
            self._filelock = None
        elif self._fd is not None:
            fcntl.flock(self._fd, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close the lock file."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _take_free(self) -> bool:
        while True:
            if self._fd is None:
                self._fd = self._opened()
                self._locked = os.fstat(self._fd)
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            if self._is_in_place():
                return True
            self.close()  # the file was removed or moved, so a lock on it excludes no other process

    def _is_in_place(self) -> bool:
        try:
            return self._locked is not None and os.path.samestat(os.stat(self._path), self._locked)
        except FileNotFoundError:
            return False

    def _take_soon(self, seconds: float) -> bool:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            time.sleep(GAP_SECONDS)
            if self._take_free():
                return True
        return False

    def _opened(self) -> int:
        try:
            return open_or_create(self._path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError as error:
            raise failure(error, self._path) from error

    def _wait(self, seconds: float, within: float) -> None:
        from filelock import FileLock, Timeout

        # Close the descriptor: filelock locks the same file, and a lock on this one would exclude it.
        self.close()
        lock = FileLock(self._path, timeout=seconds, thread_local=False)
        try:
            lock.acquire(poll_interval=POLL_SECONDS)
        except Timeout as error:
            raise StoreLocked(os.path.dirname(os.path.dirname(self._path)), within) from error
        self._filelock = lock
