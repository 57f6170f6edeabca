"""A session: which version of each file its model knows, and who the model's client is."""

from enum import Enum, auto
from threading import Lock
from typing import TypeAlias

from objstore import BlobId

__all__ = ["FileKey", "Knowledge", "Session"]

FileKey: TypeAlias = tuple[str, str]
"""A workspace's root and a canonical path in it."""


class Knowledge(Enum):
    """How what a session knows of a file stands to what the file is."""

    NONE = auto()  # it never read or wrote the file
    CURRENT = auto()
    STALE = auto()  # the file has changed since


class Session:
    """The memory of one server process, which serves one client. Safe to use from several threads.

    A version is known from a read, or from a write of a file that was known or new to the session. An edit that
    goes ahead in a file which has changed since leaves the session's knowledge as it is: the model has still not
    seen those changes, and must not bury them by writing the whole file.
    """

    def __init__(self) -> None:
        self.client: dict[str, str] = {}  # its name and version, as recorded with each call; {}: not yet known
        self._known: dict[FileKey, BlobId | None] = {}  # None: the file was gone
        self._lock = Lock()

    def knows(self, file: FileKey, now: BlobId | None) -> Knowledge:
        """Return what the session knows of a file that is `now` such (None: it does not exist)."""
        with self._lock:
            if file not in self._known:
                return Knowledge.NONE
            return Knowledge.CURRENT if self._known[file] == now else Knowledge.STALE

    def saw(self, file: FileKey, version: BlobId | None) -> None:
        """Note that the model has read the file, or made it what it is (None: deleted it)."""
        with self._lock:
            self._known[file] = version

    def moved(self, source: FileKey, destination: FileKey) -> None:
        """Note that the model has moved the file; what was known of it is known of it there."""
        with self._lock:
            if source in self._known:
                self._known[destination] = self._known[source]
            self._known[source] = None
