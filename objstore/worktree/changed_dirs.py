"""A glance: which of many known folders are not as they were, by the times, sizes and modes of what is in them.

Nothing is read, and no object is kept for a file: of tens of thousands, this is what every look costs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

from objstore.fs.stat_signature import FolderKey, FolderSignature, pack_signatures, read_signature_fields

if TYPE_CHECKING:
    from objstore.worktree.batch_stat import Lstats

__all__ = ["changed_folders", "key_of"]

Ask = Callable[[int, Sequence[bytes]], bytes]
"""Asks for the files of some names in an open folder; returns their facts, packed. Raises OSError."""

StandFor = Callable[[bytes], bytes]
"""Makes what stands for packed facts: what is shorter is read sooner."""

_FOLDER: Final = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)

_WORTH_TABLE: Final = 3_000
"""Files: for fewer, loading what calls it takes longer than it saves."""


def changed_folders(root: int, known: Sequence[FolderSignature], stand_for: StandFor = bytes) -> list[bytes]:
    """Return those of the folders, below the open folder `root`, whose names or files are not as they were known.

    In any order. `stand_for`: of what is packed, what each glimpse has.
    """
    with _asking(_table(root) if _count(known) >= _WORTH_TABLE else None) as ask:
        return _changed(root, ask, known, stand_for)


def key_of(seen: os.stat_result) -> FolderKey:
    """Return what is asked of a folder."""
    return FolderKey(seen.st_dev, seen.st_ino, seen.st_mtime_ns, seen.st_ctime_ns)


def _is_as_known(seen: os.stat_result, key: FolderKey) -> bool:
    """Return whether `key_of(seen)` is `key`, which as it was kept is a list; without making one of each."""
    return [seen.st_ino, seen.st_mtime_ns, seen.st_ctime_ns, seen.st_dev] == [key[1], key[2], key[3], key[0]]


def _changed(root: int, ask: Ask, known: Sequence[FolderSignature], stand_for: StandFor) -> list[bytes]:
    found = []
    for path, key, joined, facts in known:
        # Not before: what was just made is in the processor's caches, and of tens of thousands not all would be.
        names = joined.split(b"\0") if joined else []
        try:
            fd = os.open(path or b".", _FOLDER, dir_fd=root)
        except OSError:
            found.append(path)  # gone, or no folder any more
            continue
        try:
            # A folder whose own times are the same holds the same names.
            if (key is not None and not _is_as_known(os.fstat(fd), key)) or stand_for(ask(fd, names)) != facts:
                found.append(path)
        except OSError:
            found.append(path)
        finally:
            os.close(fd)
    return found


def _count(known: Sequence[FolderSignature]) -> int:
    """Return how many files there are."""
    return sum([names.count(b"\0") + 1 for _, _, names, _ in known if names])


def _table(root: int) -> Lstats | None:
    from objstore.worktree.batch_stat import lstats_from

    return lstats_from(root)


@contextmanager
def _asking(table: Lstats | None) -> Iterator[Ask]:
    if table is None:
        yield _one_by_one
    else:
        with table.inside():
            yield table.facts


def _one_by_one(folder: int, names: Sequence[bytes]) -> bytes:
    return pack_signatures(list(map(read_signature_fields, map(partial(os.lstat, dir_fd=folder), names))))
