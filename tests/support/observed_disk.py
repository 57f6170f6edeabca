"""A disk with methods that are called before and after every change of the user's files."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from objstore.disk.fs.disk import Disk, Pieces

__all__ = ["ObservedDisk"]


def content_at(folder: int, name: str) -> bytes | None:
    """Return the bytes of a file in an open folder, None if there is none."""
    try:
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=folder)
    except FileNotFoundError:
        return None
    with os.fdopen(fd, "rb") as file:
        return file.read()


class ObservedDisk(Disk):
    """Calls `before_change` and `after_change` around each operation on the user's files."""

    def __init__(self, root: Path) -> None:
        self.scratch = root / ".cas" / "tmp"
        self.operations = 0
        self.kinds: set[str] = set()

    def before_change(self, before: bytes | None, after: bytes | None) -> None:
        """Handle the announcement of a change of a file."""

    def after_change(self, folder: int, name: str) -> None:
        """Handle the end of a change of a file."""

    def _is_users(self, folder: int) -> bool:
        return not os.path.samestat(os.fstat(folder), self.scratch.stat())

    @contextmanager
    def _around(self, kind: str, folder: int, name: str, after: bytes | None) -> Iterator[None]:
        if self._is_users(folder):
            self.operations += 1
            self.kinds.add(kind)
            self.before_change(content_at(folder, name), after)
        yield
        if self._is_users(folder):
            self.after_change(folder, name)

    def replace(self, source_directory: int, source: str, directory: int, name: str) -> None:
        with self._around("replace", directory, name, content_at(source_directory, source)):
            super().replace(source_directory, source, directory, name)

    def exchange(self, source_directory: int, source: str, directory: int, name: str) -> bool:
        with self._around("exchange", directory, name, content_at(source_directory, source)):
            return super().exchange(source_directory, source, directory, name)

    def rename_new(self, source_directory: int, source: str, directory: int, name: str) -> None:
        with self._around("rename_new", directory, name, content_at(source_directory, source)):
            super().rename_new(source_directory, source, directory, name)

    def rewrite(self, directory: int, name: str, content: Pieces) -> None:
        content = content if isinstance(content, bytes) else b"".join(content)
        with self._around("rewrite", directory, name, content):
            super().rewrite(directory, name, content)

    def unlink(self, directory: int, name: str) -> None:
        with self._around("unlink", directory, name, None):
            super().unlink(directory, name)
