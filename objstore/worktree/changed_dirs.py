"""Find which of many cached folders have changed, by the times, sizes and modes of the files in them.

No file is read, and no object is made for a file: with tens of thousands of files, every scan and status costs at
least this.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

from objstore.disk.fs.stat_signature import FolderKey, FolderSignature, pack_signatures, read_signature_fields

if TYPE_CHECKING:
    from objstore.worktree.batch_stat import StatTable

__all__ = ["SharedLooks", "changed_folders", "key_of"]

StatNames = Callable[[int, Sequence[bytes]], bytes]
"""Return the packed stat signatures of the files with these names in an open folder. Raises OSError."""

Summarize = Callable[[bytes], bytes]
"""Return what the cache keeps of packed stat signatures: a digest is shorter, and so faster to read."""

SharedLooks = dict[tuple[bytes, bytes], bytes]
"""What comparisons of one command saw: packed stat signatures, by a folder's path and its files' joined names."""

_FOLDER: Final = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)

_WORTH_TABLE: Final = 3_000
"""Files. For fewer, importing ctypes takes longer than the table saves."""


def changed_folders(
    root: int,
    known: Sequence[FolderSignature],
    summarize: Summarize = bytes,
    seen: dict[bytes, bytes] | None = None,
    shared: SharedLooks | None = None,
) -> list[bytes]:
    """Return the folders below the open folder `root` whose names or files differ from what is known of them.

    They are in no particular order. `summarize`: what `known` holds of packed stat signatures (default: all of them).
    `seen`: gets the packed stat signatures of the known names of each folder whose files differ. `shared`: has what
    counts as seen just now, so that no file is looked at twice, and gets what is seen here (None: nothing).
    """
    new = known if not shared else [each for each in known if (each[0], each[2]) not in shared]
    with _stat_names(_table(root) if _file_count(new) >= _WORTH_TABLE else None) as stat_names:
        return _changed(root, stat_names, known, summarize, {} if seen is None else seen, shared)


def key_of(seen: os.stat_result) -> FolderKey:
    """Return the part of a folder's stat result that is compared."""
    return FolderKey(seen.st_dev, seen.st_ino, seen.st_mtime_ns, seen.st_ctime_ns)


def _is_as_known(seen: os.stat_result, key: FolderKey) -> bool:
    """Return whether `key_of(seen)` equals `key`, which may be a decoded list, without making a FolderKey."""
    return [seen.st_ino, seen.st_mtime_ns, seen.st_ctime_ns, seen.st_dev] == [key[1], key[2], key[3], key[0]]


def _changed(
    root: int,
    stat_names: StatNames,
    known: Sequence[FolderSignature],
    summarize: Summarize,
    seen: dict[bytes, bytes],
    shared: SharedLooks | None,
) -> list[bytes]:
    found = []
    for path, key, joined, signatures in known:
        try:
            fd = os.open(path or b".", _FOLDER, dir_fd=root)
        except OSError:
            found.append(path)  # deleted, or no longer a folder
            continue
        try:
            # A folder whose own times are the same holds the same names.
            if key is not None and not _is_as_known(os.fstat(fd), key):
                found.append(path)
                continue
            now = None if shared is None else shared.get((path, joined))
            if now is None:
                # Split here and not for all folders first: the names are then still in the processor's caches.
                now = stat_names(fd, joined.split(b"\0") if joined else [])
                if shared is not None:
                    shared[path, joined] = now
            if summarize(now) != signatures:
                found.append(path)
                seen[path] = now
        except OSError:
            found.append(path)
        finally:
            os.close(fd)
    return found


def _file_count(known: Sequence[FolderSignature]) -> int:
    return sum([names.count(b"\0") + 1 for _, _, names, _ in known if names])


def _table(root: int) -> StatTable | None:
    from objstore.worktree.batch_stat import open_stat_table

    return open_stat_table(root)


@contextmanager
def _stat_names(table: StatTable | None) -> Iterator[StatNames]:
    if table is None:
        yield _one_by_one
    else:
        with table.inside():
            yield table.signatures


def _one_by_one(folder: int, names: Sequence[bytes]) -> bytes:
    return pack_signatures(list(map(read_signature_fields, map(partial(os.lstat, dir_fd=folder), names))))
