"""Remember which changes a review has shown, by their keys.

The file `.cas/cache/seen` has one key a line, in hex, the newest last. Reviewers append to it without a lock: a line is
written at once, and what is no key is passed over. Losing a mark only means that its change counts as new once more,
and a forged one decides nothing: a change that was seen is as pending as any other.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from objstore.disk.fs.nofollow import open_store_file, open_store_folder, read_store_file, write_derived_file
from objstore.disk.fs.reserved_names import SEEN_NAME, STORE_NAME
from objstore.model.net_file import KEY_SIZE
from objstore.values.errors import CasError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from objstore.storage.transaction.journal import Journal

__all__ = ["mark_seen", "seen_changes"]

_LINE: Final = 2 * KEY_SIZE + 1
_MOST_BYTES: Final = 1 << 20
"""Size of the file, of about 32,000 keys, above which only its newer half is kept."""


def seen_changes(journal: Journal) -> frozenset[bytes]:
    """Return the keys of the seen changes; a missing or damaged file gives none, or fewer."""
    return frozenset(_keys(_path(journal)))


def mark_seen(journal: Journal, keys: Iterable[bytes]) -> None:
    """Mark changes as seen. Raises what the disk raises, and StoreLinked."""
    path = _path(journal)
    known = _keys(path)
    new = [key for key in dict.fromkeys(keys) if key not in known]
    if not new:
        return
    store, folder = os.path.dirname(os.path.dirname(path)), os.path.dirname(path)
    if not _can_grow(path):
        kept = [*known, *new][-(_MOST_BYTES // _LINE // 2) :]
        write_derived_file(journal.disk, store, *os.path.split(SEEN_NAME), _lines(kept))
        return
    with suppress(FileExistsError):
        journal.disk.make_store_folder(folder)
    with open_store_folder(folder):  # it is no link
        fd = open_store_file(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            journal.disk.append(fd, _lines(new), path)
        finally:
            os.close(fd)


def _keys(path: str) -> dict[bytes, None]:
    """Return the keys in the file, in their order."""
    try:
        lines = read_store_file(path, 2 * _MOST_BYTES).splitlines()
    except (OSError, CasError):
        return {}
    found: dict[bytes, None] = {}
    for line in lines:
        if len(line) == _LINE - 1:
            try:
                found[bytes.fromhex(line.decode("ascii"))] = None
            except ValueError:
                continue
    return found


def _can_grow(path: str) -> bool:
    """Return whether a line can be appended; else the file is too large, or something else has its name."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return True
    return stat.S_ISREG(found.st_mode) and found.st_nlink == 1 and found.st_size < _MOST_BYTES


def _lines(keys: Iterable[bytes]) -> bytes:
    return b"".join(key.hex().encode() + b"\n" for key in keys)


def _path(journal: Journal) -> str:
    return os.path.join(journal.tree.root, STORE_NAME, SEEN_NAME)
