"""Recorded paths: bytes from the workspace's root down, names with `/` between them, put together and taken apart.

The root itself is b"". Nothing here looks at a disk, and what is given is canonical already.
"""

from collections.abc import Iterator

__all__ = ["beginning", "folders_above", "folders_of", "is_within", "joined"]


def joined(folder: bytes, name: bytes) -> bytes:
    """Return the path of what has this name in a folder."""
    return folder + b"/" + name if folder else name


def beginning(folder: bytes) -> bytes:
    """Return what every path below a folder begins with."""
    return folder + b"/" if folder else b""


def is_within(path: bytes, folder: bytes) -> bool:
    """Return whether a path is a folder's own, or lies below it."""
    return not folder or path == folder or path.startswith(folder + b"/")


def folders_of(path: bytes) -> list[bytes]:
    """Return the folders that a path lies in but for the root, the outermost first."""
    parts = path.split(b"/")
    return [b"/".join(parts[:depth]) for depth in range(1, len(parts))]


def folders_above(path: bytes) -> Iterator[bytes]:
    """Yield the folders that a path lies in, the innermost first and the root last."""
    while path:
        path = path.rpartition(b"/")[0]
        yield path
