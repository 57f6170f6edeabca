"""The writer lock: one writer per store, among all processes and threads.

It is filelock's lock: an flock(2) on one file. A free lock is taken by that one call, without filelock's bookkeeping
(1 µs against 100 µs, and no import), and so is one that comes free within a moment; only who has to wait longer hands
over to filelock. Both lock the same file the same way, so they exclude each other.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from objstore.errors import StoreLocked
from objstore.fs.disk import failure

if TYPE_CHECKING:
    from filelock import BaseFileLock

__all__ = ["BRIEF_WAIT_SECONDS", "GAP_SECONDS", "POLL_SECONDS", "WAIT_SECONDS", "WriterLock"]

WAIT_SECONDS: Final = 30.0
POLL_SECONDS: Final = 0.001
BRIEF_WAIT_SECONDS: Final = 0.25
"""How long a lock may be waited for without filelock: to import it alone takes as long as ten edits."""

GAP_SECONDS: Final = 0.000_2
"""Who waits looks as often as that: a writer who never pauses leaves the lock free for about so long."""


class WriterLock:
    """The lock of one store, for one process. Not for use by two threads at once: its owner sees to that."""

    def __init__(self, path: str) -> None:
        """Name the file to lock; it is made if it is missing."""
        self._path: Final = path
        self._fd: int | None = None
        self._locked: os.stat_result | None = None  # what the system says of that file
        self._waited: BaseFileLock | None = None

    @contextmanager
    def held(self, seconds: float | None = None) -> Iterator[None]:
        """Hold the lock, which is waited for up to so long (None: 30 s). Raises StoreLocked."""
        self.acquire(seconds)
        try:
            yield
        finally:
            self.release()

    def acquire(self, seconds: float | None = None) -> None:
        """Take the lock, waiting for it up to so long (None: 30 s). Raises StoreLocked."""
        within = WAIT_SECONDS if seconds is None else seconds
        soon = min(within, BRIEF_WAIT_SECONDS)
        if not self._take_free() and not self._take_soon(soon):
            self._wait(within - soon, within)

    def acquire_now(self) -> bool:
        """Take the lock if it is free; return whether it was."""
        return self._take_free()

    def release(self) -> None:
        """Give the lock back."""
        if self._waited is not None:
            self._waited.release()
            self._waited = None
        elif self._fd is not None:
            fcntl.flock(self._fd, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close the file."""
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
            if self._is_there():
                return True
            self.close()  # somebody removed or moved the file: a lock on it excludes nobody

    def _is_there(self) -> bool:
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
            return os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise failure(error, self._path) from error

    def _wait(self, seconds: float, within: float) -> None:
        from filelock import FileLock, Timeout

        # The file is the same, so the descriptor must go, lest its lock and filelock's exclude each other.
        self.close()
        lock = FileLock(self._path, timeout=seconds, thread_local=False)
        try:
            lock.acquire(poll_interval=POLL_SECONDS)
        except Timeout as error:
            raise StoreLocked(os.path.dirname(os.path.dirname(self._path)), within) from error
        self._waited = lock
