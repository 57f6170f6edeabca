"""Names: which of them are not the user's to use, and which are one to a file system that goes by more than bytes.

Some file systems fold case, compose letters, or pass over characters that show nothing (macOS, FAT, folders made so).
"""

import os
from contextlib import suppress
from typing import Final

from objstore.fs.disk import is_folder

__all__ = [
    "APPLIED_MARKER_NAME",
    "BESIDE",
    "IGNORE_NAME",
    "INDEX_NAME",
    "LOG_NAME",
    "STAT_CACHE_NAME",
    "STORE_NAME",
    "is_case_insensitive",
    "is_reserved",
    "is_store",
    "is_version_control",
    "linked_in_store",
    "nearest_store",
    "other_form",
    "spelling",
]

STORE_NAME: Final = ".cas"
LOG_NAME: Final = "segments"
IGNORE_NAME: Final = ".gitignore"
"""The file in a store that makes git ignore all of it."""
INDEX_NAME: Final = "index.sqlite"
STAT_CACHE_NAME: Final = "cache/looks"
APPLIED_MARKER_NAME: Final = "applied"
"""Of a workspace's store, its log, its index, what the last look has kept, and how far files have followed the log."""

_SCRATCH_NAME: Final = "tmp"

BESIDE: Final = "beside-"
"""How the name of a note in there begins that says where else files are being written (`beside.py`)."""

_VERSION_CONTROL: Final = frozenset({".git", ".hg", ".svn", ".jj"})


def is_store(name: str) -> bool:
    """Return whether a file system could take `name` for the store's folder."""
    return _folded(name) == STORE_NAME


def nearest_store(start: str) -> str | None:
    """Return the nearest folder at or above `start` that holds a store, or what may be one (None: there is none).

    Raises DiskFailed where the disk can't say what is there.
    """
    folder = os.path.realpath(start)
    while True:
        store = os.path.join(folder, STORE_NAME)
        if is_folder(os.path.join(store, LOG_NAME)) or (is_folder(store) and not os.access(store, os.X_OK)):
            return folder
        parent = os.path.dirname(folder)
        if parent == folder or is_store(os.path.basename(folder)):
            return None
        folder = parent


def linked_in_store(root: str) -> frozenset[tuple[int, int]]:
    """Return device and inode of each file of the store in a folder that has another name, in it or anywhere.

    What lies in its scratch folder is the user's, or will be. What can't be looked at is none.
    """
    found, folders = set(), [os.path.join(root, STORE_NAME)]
    for folder in folders:
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders += [entry.path] if entry.name != _SCRATCH_NAME else []
                    continue
                with suppress(FileNotFoundError):
                    seen = entry.stat(follow_symlinks=False)
                    if seen.st_nlink > 1:
                        found.add((seen.st_dev, seen.st_ino))
    return frozenset(found)


def is_version_control(name: str) -> bool:
    """Return whether a file system could take `name` for a folder of version control."""
    return _folded(name) in _VERSION_CONTROL


def is_reserved(name: str) -> bool:
    """Return whether a file system could take `name` for the store's folder or for one of version control."""
    return is_store(name) or is_version_control(name)


def is_case_insensitive(root: int) -> bool:
    """Return whether the store in an open folder is found by another spelling of its name (False: there is none)."""
    other = STORE_NAME.upper()
    return _is_found(root, other) and other not in _names_in(root)


def spelling(folder: int, name: str) -> str:
    """Return how the name is spelt of what an open folder has for `name`; `name` where it has nothing."""
    names = _names_in(folder)
    if name in names or not _is_found(folder, name):
        return name
    from unicodedata import normalize

    def folded(name: str) -> str:
        return normalize("NFC", name).casefold()

    # It is one of these. Each file system has rules of its own; where ours are not enough to tell, none is chosen.
    wanted = folded(name)
    alike = [found for found in names if folded(found) == wanted]
    return alike[0] if len(alike) == 1 else name


def other_form(folder: int, name: str) -> str:
    """Return the name in an open folder that is `name` but for its Unicode form; "" where there is none."""
    if name.isascii():
        return ""
    from unicodedata import normalize

    wanted = normalize("NFC", name)
    names = [found for found in _names_in(folder) if found != name and not found.isascii()]
    return next((found for found in names if normalize("NFC", found) == wanted), "")


def _names_in(folder: int) -> list[str]:
    """Return the names in an open folder; none where it can't be read."""
    try:
        # What is open may be no more than a name for the folder.
        fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return []
    try:
        return os.listdir(fd)
    finally:
        os.close(fd)


def _is_found(folder: int, name: str) -> bool:
    """Return whether there is anything in an open folder for a name."""
    try:
        os.lstat(name, dir_fd=folder)
    except OSError:
        return False
    return True


def _folded(name: str) -> str:
    if name.isascii():
        return name.lower()
    from unicodedata import category, normalize

    shown = "".join(c for c in name if category(c) != "Cf")
    return normalize("NFKC", shown).casefold()
