"""Detect changes of a store by the sizes and times of its files, cheaply enough for ten checks a second."""

import os
from contextlib import suppress
from hashlib import blake2b

from objstore.fs.reserved_names import AGENTS_NAME, LOG_NAME, OPEN_CALL_PREFIX, SEEN_NAME, STORE_NAME

__all__ = ["store_version"]


def store_version(root: str) -> str:
    """Return a text that changes with every record, mark of a seen change, and begin or end of an agent's call.

    `root`: the workspace. A store that can't be read has a version, too.
    """
    store = os.path.join(root, STORE_NAME)
    facts: list[tuple[str, int, int]] = []
    for folder, prefix in ((LOG_NAME, ""), (AGENTS_NAME, OPEN_CALL_PREFIX)):
        with suppress(OSError), os.scandir(os.path.join(store, folder)) as entries:
            for entry in entries:
                if entry.name.startswith(prefix):
                    with suppress(OSError):
                        facts.append(_facts(f"{folder}/{entry.name}", entry.stat(follow_symlinks=False)))
    with suppress(OSError):
        facts.append(_facts(SEEN_NAME, os.lstat(os.path.join(store, SEEN_NAME))))
    return blake2b(repr(sorted(facts)).encode("utf-8", "surrogateescape"), digest_size=10).hexdigest()


def _facts(name: str, found: os.stat_result) -> tuple[str, int, int]:
    return name, found.st_size, found.st_mtime_ns
