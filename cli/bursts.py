"""Bursts: word of what happens in a workspace, as it happens, and from nowhere that a link leads to."""

import os
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Final, Protocol

__all__ = ["Ending", "bursts"]

_ROUND: Final = 200
"""Milliseconds, at most, until a burst that goes quiet and the ending are heeded."""

_SELDOM: Final = 20
"""Times as long as the folders took to list, until they are listed anew: where folders come and come in a large tree,
most of the time stays for the rest."""

_BY_FOLDER: Final = sys.platform == "linux"
"""Whether folders are listened to one by one. Where the system tells of all that is below one, it follows no link."""


class Ending(Protocol):
    """What says when to end."""

    def is_set(self) -> bool:
        """Return whether it is time."""


def bursts(root: str, store: str, *, quiet: int, ending: Ending) -> Iterator[bool]:
    """Yield every fifth of a second or sooner, until the ending, whether something has happened below `root`.

    From the first time on all is listened to that may be read; of the folder `store` nothing is told. `quiet`:
    milliseconds after which what has happened is told at once. Raises OSError where `root` can't be listened to, or has
    more folders than the system allows for.
    """
    while not ending.is_set():
        began = time.monotonic()
        folders = _folders(root, store) if _BY_FOLDER else [root]
        rested = time.monotonic() + _SELDOM * (time.monotonic() - began)
        try:
            for has_happened, is_outdated in _rounds(folders, root, store, quiet=quiet, ending=ending):
                yield has_happened
                if is_outdated and time.monotonic() >= rested:
                    break
        except FileNotFoundError:
            if not _is_folder(root):
                raise
            # Another folder, which went before it was listened to.


def _rounds(folders: list[str], root: str, store: str, *, quiet: int, ending: Ending) -> Iterator[tuple[bool, bool]]:
    """Yield whether something has happened in the folders, and whether there are others by now. Raises as `bursts`.

    The first time something has: what came while nobody listened to these folders.
    """
    from watchfiles import Change, watch

    def is_users(path: str) -> bool:
        return path != store and not path.startswith(store + os.sep)

    def is_news(change: Change, path: str) -> bool:
        # One that is known and came is another one by that name.
        return (change is Change.added or path not in known) and is_users(path) and _is_folder(path)

    known, is_first, is_outdated = set(folders), True, False
    told = watch(
        *folders,
        watch_filter=None,  # else what happens in the store alone, again and again, would keep this from its turn
        recursive=not _BY_FOLDER,  # it would follow links there, and give up at the first folder that may not be read
        step=min(quiet, _ROUND),
        debounce=_ROUND,
        stop_event=ending,
        rust_timeout=_ROUND,
        yield_on_timeout=True,
    )
    with closing(told):
        for burst in told:
            if _BY_FOLDER and not is_outdated:
                is_outdated = any(is_news(*each) for each in burst)
            if _BY_FOLDER and is_first and not is_outdated:
                # They may have come before the folder above was listened to.
                is_outdated = not known.issuperset(_folders(root, store))
            yield is_first or any(is_users(path) for _, path in burst), is_outdated
            is_first = False


def _folders(root: str, store: str) -> list[str]:
    """Return the folder and all below it that may be read, but the store's. Raises OSError for `root`."""
    found, ahead = [], [root]
    while ahead:
        folder = ahead.pop()
        try:
            with os.scandir(folder) as entries:
                inner = [each.path for each in entries if each.is_dir(follow_symlinks=False)]
        except OSError:
            if folder == root:
                raise
            continue  # a look says which it may not read; others have gone
        found.append(folder)
        ahead += [path for path in inner if path != store]
    return found


def _is_folder(path: str) -> bool:
    with suppress(OSError):
        return stat.S_ISDIR(os.lstat(path).st_mode)
    return False
