"""A folder that must not be left, and files around it that must stay out of reach."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from objstore.disk.fs.confined_path import Tree
from objstore.disk.fs.reserved_names import STORE_NAME

__all__ = ["SECRET", "PathSandbox", "as_unprivileged_user"]

SECRET = b"what lies outside\n"


class PathSandbox:
    """A folder `ws` with files, next to others that must stay out of reach."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.ws = base / "ws"
        (self.ws / "folder" / "deep").mkdir(parents=True)
        (self.ws / "a.txt").write_bytes(b"a\n")
        (self.ws / "folder" / "b.txt").write_bytes(b"b\n")
        (self.ws / STORE_NAME).mkdir()
        (self.ws / STORE_NAME / "secret").write_bytes(SECRET)
        for outside in ("ws-evil", "wsx", "elsewhere"):
            (base / outside).mkdir()
            (base / outside / "a.txt").write_bytes(SECRET)
        (base / "a.txt").write_bytes(SECRET)
        self.tree = Tree(self.ws)

    def link(self, name: str, target: str | Path) -> None:
        (self.ws / name).symlink_to(target)

    def read(self, path: str | Path, *, follow: bool = True) -> bytes:
        return self.tree.read(str(path), follow=follow)[1].content

    def resolved(self, path: str | Path, *, changing: bool = True) -> str:
        """Return the canonical path to which a writer would write."""
        with self.tree.locate(str(path), changing=changing) as resolved:
            return resolved.path


@contextmanager
def as_unprivileged_user() -> Iterator[None]:
    """Run without the rights of the superuser, who ignores permissions."""
    if os.geteuid() != 0:
        yield
        return
    os.setresuid(65534, 65534, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)
