"""Read the sizes and times of a store's files: they show changes, cheaply enough for ten checks a second."""

import os
from contextlib import suppress

from blake3 import blake3

from objstore.disk.fs.disk import is_absence
from objstore.disk.fs.reserved_names import AGENTS_NAME, EVENTS_NAME, LOG_NAME, SEEN_NAME, STORE_NAME

__all__ = ["store_folder_bytes", "store_version"]


def store_folder_bytes(root: str) -> int | None:
    """Return the size of all files in the store's folder: segments, index, caches, reserve. `root`: the workspace.

    None: some of it can't be read now. Equal histories may have folders of different sizes.
    """
    total = 0
    try:
        for place, _, names in os.walk(os.path.join(root, STORE_NAME), onerror=_raise_unless_gone):
            for name in names:
                with suppress(FileNotFoundError):  # another process may have removed it meanwhile
                    total += os.lstat(os.path.join(place, name)).st_size
    except OSError:
        return None
    return total


def _raise_unless_gone(error: OSError) -> None:
    if not is_absence(error):
        raise error


def store_version(root: str) -> str:
    """Return a text that changes with every record, mark of a seen change, and report of an agent's hook.

    `root`: the workspace. A store that can't be read has a version, too.
    """
    store = os.path.join(root, STORE_NAME)
    facts: list[tuple[str, int, int]] = []
    with suppress(OSError), os.scandir(os.path.join(store, LOG_NAME)) as entries:
        for entry in entries:
            with suppress(OSError):
                facts.append(_facts(f"{LOG_NAME}/{entry.name}", entry.stat(follow_symlinks=False)))
    for name in (f"{AGENTS_NAME}/{EVENTS_NAME}", SEEN_NAME):
        with suppress(OSError):
            facts.append(_facts(name, os.lstat(os.path.join(store, name))))
    return blake3(repr(sorted(facts)).encode("utf-8", "surrogateescape")).hexdigest(10)


def _facts(name: str, found: os.stat_result) -> tuple[str, int, int]:
    return name, found.st_size, found.st_mtime_ns
