"""Lock a store so that one process or thread at a time writes to it, and each that waits gets its turn.

The lock is an flock(2) on one file. A lock that becomes free goes to whoever tries next, and that is nearly always the
writer that has just released it, not one that sleeps between two attempts. Therefore a second file is the queue: a
writer locks it before it tries to lock the first one, and holds it until it has that. Every other writer, also the
former one, waits for the queue meanwhile, and there all try equally often. The process that is next may be stopped, so
who has waited for a second does without the queue.

A lock that becomes free within a moment is taken without filelock, whose import takes as long as ten edits; `acquire`
uses it for a longer wait in the queue. Both lock the same file in the same way, so they exclude each other.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from objstore.disk.fs.disk import failure, open_or_create
from objstore.values.errors import StoreLocked

__all__ = ["GAP_SECONDS", "WAIT_SECONDS", "WriterLock"]

WAIT_SECONDS: Final = 30.0
GAP_SECONDS: Final = 0.000_2
"""Interval between attempts of a process that is alone in trying."""

_POLL_SECONDS: Final = 0.001
_BRIEF_WAIT_SECONDS: Final = 0.25
"""How long attempts are frequent, and how long `acquire` waits in the queue without filelock."""

_QUEUE_SECONDS: Final = 1.0
"""How long to wait for the queue; then try to lock the store without."""


class WriterLock:
    """The lock of one store, for one process. Its owner must not use it from two threads at once."""

    def __init__(self, path: str) -> None:
        """Set the path of the lock file. It and the file of the queue, PATH.queue, are created if they are missing."""
        self._path: Final = path
        self._queue_path: Final = path + ".queue"
        self._fd: int | None = None
        self._locked: os.stat_result | None = None  # the lock file's status when it was opened
        self._queue_fd: int | None = None
        self._is_next = False  # whether this process holds the queue

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
        began, passed = time.monotonic(), 0.0
        try:
            while not self.acquire_in_turn(passed):
                if (passed := time.monotonic() - began) >= within:
                    raise self._locked_too_long(within)
                if passed >= _BRIEF_WAIT_SECONDS and self._queue_fd is not None and not self._is_next:
                    return self._acquire_late(began + within, within)
                time.sleep(self.pause(passed))
        finally:
            self.leave_queue()

    def acquire_now(self) -> bool:
        """Take the lock if it is free, even if others wait for it; return whether it was."""
        while True:
            if self._fd is None:
                self._fd = _opened(self._path)
                self._locked = os.fstat(self._fd)
            if not _is_locked_now(self._fd):
                return False
            if self._is_in_place():
                return True
            self.close()  # the file was removed or moved, so a lock on it excludes no other process

    def acquire_in_turn(self, waited: float = 0.0) -> bool:
        """Take the lock if it is free and no other process is next; return whether it was taken.

        Otherwise try again after `pause`, and call `leave_queue` when there will be no further attempt. `waited`: for
        how many seconds so far; after a second, it does not matter who is next.
        """
        if not self._join_queue() and waited < _QUEUE_SECONDS:
            return False
        is_waiting = False
        try:
            is_waiting = not self.acquire_now()
        finally:
            if not is_waiting:
                self.leave_queue()
        return not is_waiting

    def pause(self, waited: float) -> float:
        """Return how many seconds to sleep until the next attempt of a process that has `waited` for so many."""
        return GAP_SECONDS if self._is_next and waited < _BRIEF_WAIT_SECONDS else _POLL_SECONDS

    def leave_queue(self) -> None:
        """Let another process be next, if this one is."""
        if self._is_next and self._queue_fd is not None:
            fcntl.flock(self._queue_fd, fcntl.LOCK_UN)
        self._is_next = False

    def release(self) -> None:
        """Release the lock."""
        if self._fd is not None:
            fcntl.flock(self._fd, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close the files of the lock and of the queue."""
        for fd in (self._fd, self._queue_fd):
            if fd is not None:
                os.close(fd)
        self._fd = self._queue_fd = None
        self._is_next = False

    def _is_in_place(self) -> bool:
        try:
            return self._locked is not None and os.path.samestat(os.stat(self._path), self._locked)
        except FileNotFoundError:
            return False

    def _join_queue(self) -> bool:
        """Return whether this process is next, now or already."""
        if self._queue_fd is None:
            try:
                self._queue_fd = open_or_create(self._queue_path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            except OSError:
                return True  # as on a full disk; without the queue, writers exclude each other as well
        self._is_next = self._is_next or _is_locked_now(self._queue_fd)
        return self._is_next

    def _acquire_late(self, until: float, within: float) -> None:
        """Take the lock before a moment of the monotonic clock, with filelock's lock on the queue if it gets that."""
        from filelock import FileLock, Timeout

        queue = FileLock(self._queue_path, thread_local=False)
        patience = min(_QUEUE_SECONDS, max(0.0, until - time.monotonic()))
        try:
            with suppress(Timeout):
                queue.acquire(patience, poll_interval=_POLL_SECONDS)
            while not self.acquire_now():
                if time.monotonic() >= until:
                    raise self._locked_too_long(within)
                time.sleep(_POLL_SECONDS)
        finally:
            queue.release()

    def _locked_too_long(self, seconds: float) -> StoreLocked:
        return StoreLocked(os.path.dirname(os.path.dirname(self._path)), seconds)


def _opened(path: str) -> int:
    """Return a descriptor of a lock file. Raises PermissionRefused, DiskFull, DiskFailed."""
    try:
        return open_or_create(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError as error:
        raise failure(error, path) from error


def _is_locked_now(fd: int) -> bool:
    """Lock a file if no other process has it locked; return whether this one has."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
