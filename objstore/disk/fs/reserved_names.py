"""Recognize names that belong to the store or to version control, and names that a file system treats as equal.

Some file systems ignore case, compose letters, or skip invisible characters (macOS, FAT, ext4 folders made so).
"""

import os
from contextlib import suppress
from typing import Final

from objstore.disk.fs.disk import is_folder

__all__ = [
    "AGENTS_NAME",
    "APPLIED_MARKER_NAME",
    "EVENTS_NAME",
    "FAILED_NAME",
    "HOOK_LOG_NAME",
    "IGNORE_NAME",
    "INDEX_NAME",
    "JOINED_NAME",
    "LOG_NAME",
    "MOUNTS_NAME",
    "NAMES_NAME",
    "NET_CACHE_NAME",
    "OPEN_CALL_PREFIX",
    "RUNS_NAME",
    "SEEN_NAME",
    "STAGING_NOTE_PREFIX",
    "STAT_CACHE_NAME",
    "STORE_NAME",
    "folded_name",
    "is_case_insensitive",
    "is_reserved",
    "is_store",
    "is_version_control",
    "linked_in_store",
    "name_on_disk",
    "nearest_store",
    "other_form",
]

STORE_NAME: Final = ".cas"
LOG_NAME: Final = "segments"
IGNORE_NAME: Final = ".gitignore"
"""The file in a store that makes git ignore the whole store."""
INDEX_NAME: Final = "index.sqlite"
STAT_CACHE_NAME: Final = "cache/looks"
"""What the last scan saw of each folder."""
MOUNTS_NAME: Final = "cache/mounts"
"""Which folders of the workspace were other file systems at the last scans."""
NET_CACHE_NAME: Final = "cache/changes"
"""How much pending edits change in each file."""
NAMES_NAME: Final = "cache/names"
"""Which names each Python source defines, uses and imports."""
RUNS_NAME: Final = "cache/runs"
"""How commands ended on which files."""
FAILED_NAME: Final = "cache/checks"
"""Which checks of decisions failed, and on which files."""
SEEN_NAME: Final = "cache/seen"
"""Which changes a reviewer has looked at."""
APPLIED_MARKER_NAME: Final = "applied"
"""The place in the log up to which the user's files have been changed to match."""

AGENTS_NAME: Final = "agents"
"""The folder with the files about agents."""
HOOK_LOG_NAME: Final = "hook.log"
"""The file in a store that says which hooks have failed."""
EVENTS_NAME: Final = "events"
"""The file in that folder with what hooks have reported."""
OPEN_CALL_PREFIX: Final = "open-"
"""Prefix of the names in that file that mean open calls."""
JOINED_NAME: Final = "joined"
"""The file in that folder that says which conversation has joined which other one."""

_SCRATCH_NAME: Final = "tmp"

STAGING_NOTE_PREFIX: Final = "beside-"
"""Prefix of notes in the scratch folder that name the folders of staged files elsewhere (`cross_device_staging`)."""

_VERSION_CONTROL: Final = frozenset({".git", ".hg", ".svn", ".jj"})


def is_store(name: str) -> bool:
    """Return whether a file system could treat `name` as the store's folder."""
    return _folded(name) == STORE_NAME


def nearest_store(start: str) -> str | None:
    """Return the nearest folder at or above `start` with a store, or with one that can't be read (None: none found).

    Raises DiskFailed if the disk can't tell.
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
    """Return device and inode of every file of the store in `root` that has a second name, in the store or elsewhere.

    Files in the scratch folder are left out: they are the user's, or will be. Folders that can't be read are skipped.
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
    """Return whether a file system could treat `name` as a folder of version control."""
    return _folded(name) in _VERSION_CONTROL


def is_reserved(name: str) -> bool:
    """Return whether a file system could treat `name` as the store's folder or as one of version control."""
    return is_store(name) or is_version_control(name)


def is_case_insensitive(root: int) -> bool:
    """Return whether the file system finds the store in an open folder by its name in capitals (False: no store)."""
    other = STORE_NAME.upper()
    return _is_found(root, other) and other not in _names_in(root)


def name_on_disk(folder: int, name: str) -> str:
    """Return the name on disk of the entry that an open folder has for `name`; `name` if it has none."""
    names = _names_in(folder)
    if name in names or not _is_found(folder, name):
        return name
    # One of these is the entry. Each file system has its own rules; where ours leave a doubt, choose none.
    wanted = folded_name(name)
    alike = [found for found in names if folded_name(found) == wanted]
    return alike[0] if len(alike) == 1 else name


def folded_name(name: str) -> str:
    """Return what the spellings of a name have in common that differ only in case or Unicode form."""
    if name.isascii():
        return name.casefold()
    from unicodedata import normalize

    return normalize("NFC", name).casefold()


def other_form(folder: int, name: str) -> str:
    """Return the name in an open folder that differs from `name` only in its Unicode form; "" if there is none."""
    if name.isascii():
        return ""
    from unicodedata import normalize

    wanted = normalize("NFC", name)
    names = [found for found in _names_in(folder) if found != name and not found.isascii()]
    return next((found for found in names if normalize("NFC", found) == wanted), "")


def _names_in(folder: int) -> list[str]:
    """Return the names in an open folder; none if it can't be read."""
    try:
        # The descriptor may be an O_PATH one, which can't be listed.
        fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return []
    try:
        return os.listdir(fd)
    finally:
        os.close(fd)


def _is_found(folder: int, name: str) -> bool:
    """Return whether an open folder has an entry for a name."""
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
