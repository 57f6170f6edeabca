"""Remember which versions of files a session has read or written, so that changes to them can be carried over.

A version is named by its blob, and its bytes come from the store if they are recorded there. The bytes of the latest
versions that are in no store are kept here, up to a total size for all sessions of a server. Of older ones only the
name is left, and the model has to read the file again.
"""

from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock
from typing import Final

from objstore import BlobId

__all__ = ["KeptBytes", "ReadVersions"]

_MOST_BYTES: Final = 64 << 20
_MOST_FILES: Final = 10_000
_VERSIONS: Final = 8
"""Versions that are remembered of one file."""


class KeptBytes:
    """The bytes of versions that may be in no store, for all sessions of a server, which share equal versions.

    Safe to use from several threads.
    """

    def __init__(self, most: int = _MOST_BYTES) -> None:
        """Keep nothing yet. `most`: bytes that are kept."""
        self._bytes: OrderedDict[tuple[str, BlobId], bytes] = OrderedDict()  # by root: each has a store of its own
        self._most = most
        self._size = 0
        self._lock = Lock()

    def keep(self, root: str, version: BlobId, content: bytes) -> None:
        """Keep the bytes of a version. The oldest bytes are dropped if there are too many."""
        with self._lock:
            self._drop(root, version)
            if len(content) > self._most:
                return
            self._bytes[root, version] = content
            self._size += len(content)
            while self._size > self._most:
                _, dropped = self._bytes.popitem(last=False)
                self._size -= len(dropped)

    def drop(self, root: str, version: BlobId) -> None:
        """Drop the bytes of a version, which are in its store."""
        with self._lock:
            self._drop(root, version)

    def get(self, root: str, version: BlobId) -> bytes | None:
        """Return the bytes of a version, or None if they are not kept here."""
        with self._lock:
            return self._bytes.get((root, version))

    def _drop(self, root: str, version: BlobId) -> None:
        self._size -= len(self._bytes.pop((root, version), b""))


class ReadVersions:
    """The last versions of each file that one session has read or written."""

    def __init__(self, kept: KeptBytes) -> None:
        """`kept`: has the bytes of those that are in no store."""
        self._versions: OrderedDict[tuple[str, str], list[BlobId]] = OrderedDict()
        self._kept = kept

    def note(self, file: tuple[str, str], version: BlobId) -> None:
        """Remember that the session has read or written this version of the file."""
        own = self._versions.setdefault(file, [])
        if version in own:
            own.remove(version)
        own.append(version)
        del own[:-_VERSIONS]
        self._versions.move_to_end(file)
        if len(self._versions) > _MOST_FILES:
            self._versions.popitem(last=False)

    def move(self, source: tuple[str, str], destination: tuple[str, str]) -> None:
        """Move the versions of a file to the path that it was moved to."""
        self._versions.pop(destination, None)
        own = self._versions.pop(source, None)
        if own is not None:
            self._versions[destination] = own

    def versions(self, file: tuple[str, str]) -> Sequence[BlobId]:
        """Return the versions of the file that the session has read or written, the latest first."""
        return self._versions.get(file, [])[::-1]

    def keep(self, file: tuple[str, str], version: BlobId, content: bytes) -> None:
        """Keep the bytes of a version of the file, which may not be in its store."""
        self._kept.keep(file[0], version, content)

    def drop(self, file: tuple[str, str], version: BlobId) -> None:
        """Drop the bytes of a version of the file, which are in its store."""
        self._kept.drop(file[0], version)

    def content(self, file: tuple[str, str], version: BlobId) -> bytes | None:
        """Return the bytes of a version of the file, or None if they are not kept here."""
        return self._kept.get(file[0], version)
