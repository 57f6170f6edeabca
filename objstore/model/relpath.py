"""Join and split recorded paths: bytes relative to the workspace root, with `/` between names.

The root itself is b"". Nothing here reads a disk, and all arguments are canonical already.
"""

from collections.abc import Iterator

__all__ = ["beginning", "folders_above", "folders_of", "is_within", "joined"]


def joined(folder: bytes, name: bytes) -> bytes:
    """Return the path of the entry `name` of a folder."""
    return folder + b"/" + name if folder else name


def beginning(folder: bytes) -> bytes:
    """Return the prefix of every path below a folder."""
    return folder + b"/" if folder else b""


def is_within(path: bytes, folder: bytes) -> bool:
    """Return whether `path` is the folder itself or below it."""
    return not folder or path == folder or path.startswith(folder + b"/")


def folders_of(path: bytes) -> list[bytes]:
    """Return the folders that contain `path` without the root, outermost first."""
    parts = path.split(b"/")
    return [b"/".join(parts[:depth]) for depth in range(1, len(parts))]


def folders_above(path: bytes) -> Iterator[bytes]:
    """Yield the folders that contain `path`, innermost first and the root last."""
    while path:
        path = path.rpartition(b"/")[0]
        yield path
