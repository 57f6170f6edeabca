"""Remember which versions of files a session has seen, so that a change made to one of them can be carried over.

A version is named by its blob, and its bytes come from the store if they are recorded there. The bytes of the latest
versions that are in no store are kept here, up to a total size; of older ones only the name is left, and the model has
to read the file again.

It is a module of its own because keeping bytes within bounds needs to know nothing of a session.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from objstore import BlobId

__all__ = ["SeenVersions"]

_MOST_BYTES: Final = 64 << 20
_MOST_FILES: Final = 10_000
_VERSIONS: Final = 8
"""Versions that are remembered of one file."""


class SeenVersions:
    """The last versions of each file, and the bytes of those that are in no store."""

    def __init__(self) -> None:
        self._versions: OrderedDict[tuple[str, str], list[BlobId]] = OrderedDict()
        self._bytes: OrderedDict[tuple[str, BlobId], bytes] = OrderedDict()  # by root: each has a store of its own
        self._size = 0

    def note(self, file: tuple[str, str], version: BlobId) -> None:
        """Remember that the session has seen this version of the file."""
        seen = self._versions.setdefault(file, [])
        if version in seen:
            seen.remove(version)
        seen.append(version)
        del seen[:-_VERSIONS]
        self._versions.move_to_end(file)
        if len(self._versions) > _MOST_FILES:
            self._versions.popitem(last=False)

    def move(self, source: tuple[str, str], destination: tuple[str, str]) -> None:
        """Move the versions of a file to the path that it was moved to."""
        self._versions.pop(destination, None)
        seen = self._versions.pop(source, None)
        if seen is not None:
            self._versions[destination] = seen

    def versions(self, file: tuple[str, str]) -> Sequence[BlobId]:
        """Return the versions of the file that the session has seen, the latest first."""
        return self._versions.get(file, [])[::-1]

    def keep(self, file: tuple[str, str], version: BlobId, content: bytes) -> None:
        """Keep the bytes of a version of the file, which may not be in its store."""
        self.drop(file, version)
        if len(content) > _MOST_BYTES:
            return
        self._bytes[file[0], version] = content
        self._size += len(content)
        while self._size > _MOST_BYTES:
            _, dropped = self._bytes.popitem(last=False)
            self._size -= len(dropped)

    def drop(self, file: tuple[str, str], version: BlobId) -> None:
        """Drop the bytes of a version of the file, which are in its store."""
        self._size -= len(self._bytes.pop((file[0], version), b""))

    def content(self, file: tuple[str, str], version: BlobId) -> bytes | None:
        """Return the bytes of a version of the file, or None if they are not kept here."""
        return self._bytes.get((file[0], version))
