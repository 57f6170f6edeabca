"""Bursts: word of what happens in a workspace, as it happens, and from nowhere that a link leads to."""

import errno
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from typing import Final, Protocol, Self, TypeAlias

__all__ = ["StopCondition", "change_batches"]

_ROUND: Final = 200
"""Milliseconds, at most, until a burst that goes quiet and the ending are heeded."""

_SELDOM: Final = 20
"""Times as long as the folders took to list, until they are listed anew: where folders come and come in a large tree,
most of the time stays for the rest."""

_BY_FOLDER: Final = sys.platform == "linux"
"""Whether folders are listened to one by one. Where the system tells of all that is below one, it follows no link."""

_Facts: TypeAlias = dict[str, tuple[int, ...]]
"""What is known of each name in a folder."""

_UNDECODABLE: Final = "Unable to decode path"
"""What watchfiles says of a name that is not UTF-8, instead of what happened."""

_REFUSED: Final = "Error creating recommended watcher: Too many open files"
"""What it says where as many programs listen already as the system lets one user have."""

_NONE_LEFT: Final = "nothing more can be watched: the system limit is reached (fs.inotify.max_user_instances)"
"""What is said then."""

_LIMITED: Final = "OS file watch limit reached"
"""What it says where the system lets nobody listen to so many folders."""


class StopCondition(Protocol):
    """What says when to end."""

    def is_set(self) -> bool:
        """Return whether it is time."""


def change_batches(
    root: str, passed: str, *, quiet: int, ending: StopCondition, left_out: Callable[[int], None]
) -> Iterator[bool]:
    """Yield every fifth of a second or sooner, until the ending, whether something has happened below `root`.

    From the first time on all is listened to that may be read; of the folder in it that is named `passed` nothing is
    told. `quiet`: milliseconds after which what has happened is told at once. `left_out` is called, once, with how many
    folders are more than the system allows for. Raises OSError where `root` can't be listened to.
    """
    limit = _Limit(left_out)
    while not ending.is_set():
        with _Tree(root, passed) as tree:
            began = time.monotonic()
            folders = tree.folders() if _BY_FOLDER else [root]
            rested = time.monotonic() + _SELDOM * (time.monotonic() - began)
            try:
                for has_happened, is_outdated in _rounds(tree, folders, limit.most, quiet=quiet, ending=ending):
                    limit.holds(len(folders))
                    yield has_happened
                    if is_outdated and time.monotonic() >= rested:
                        break
            except FileNotFoundError:
                if not _is_folder(root):
                    raise
                # Another folder, which went before it was listened to.
            except OSError as error:
                if not str(error).startswith(_LIMITED) or limit.most == 1:
                    raise
                limit.is_met(len(folders))
            except RuntimeError as error:
                if not str(error).startswith((_UNDECODABLE, _REFUSED)):
                    raise
                limit.retry_after(error)
                # A name that wasn't there before: from here on it says nothing else.
                yield str(error).startswith(_UNDECODABLE)
                while time.monotonic() < rested and not ending.is_set():
                    time.sleep(_ROUND / 1000)
                    yield False


def _rounds(
    tree: "_Tree", folders: list[str], most: int, *, quiet: int, ending: StopCondition
) -> Iterator[tuple[bool, bool]]:
    """Yield whether something has happened in the first `most` folders, and whether there are others by now.

    The first time something has: what came while nobody listened to these folders. Raises as `bursts`, OSError where
    they are more than the system allows for, and RuntimeError when something happens to a file whose name is not UTF-8.
    """
    from watchfiles import Change, watch

    def is_news(change: Change, path: str) -> bool:
        # One that is known and came is another one by that name.
        return (change is Change.added or path not in known) and tree.holds(path) and _is_folder(path)

    known, is_first, is_outdated = set(folders), True, False
    told = watch(
        *[folder for folder in folders if folder not in tree.odd][:most],
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
            has_changed = tree.has_changed()
            if _BY_FOLDER and not is_outdated:
                is_outdated = has_changed or any(is_news(*each) for each in burst)
            if _BY_FOLDER and is_first and not is_outdated:
                # They may have come before the folder above was listened to.
                is_outdated = not known.issuperset(tree.folders())
            yield is_first or has_changed or any(tree.holds(path) for _, path in burst), is_outdated
            is_first = False


class _Limit:
    """How many folders may be listened to, as far as that has shown."""

    def __init__(self, left_out: Callable[[int], None]) -> None:
        self.most = sys.maxsize
        self._stood = False  # whether they ever could
        self._left_out: Final = left_out
        self._is_said = False
        self._was_met = False

    def holds(self, folders: int) -> None:
        """Note that so many are listened to, or as many of them as may be."""
        self._was_met, self._stood = False, True
        if self.most < folders and not self._is_said:
            self._left_out(folders - self.most)
            self._is_said = True

    def is_met(self, folders: int) -> None:
        """Note that these were too many."""
        if self._was_met:
            self.most = max(1, min(self.most, folders) * 3 // 4)
        else:  # those of before may count still: they are let go a moment after they are given back
            time.sleep(_ROUND / 1000)
        self._was_met = True

    def retry_after(self, error: RuntimeError) -> None:
        """Wait a moment if it is said that too many listen. Raises OSError where nobody ever could."""
        if str(error).startswith(_REFUSED):
            if not self._stood:
                raise OSError(errno.EMFILE, _NONE_LEFT) from error
            time.sleep(_ROUND / 1000)  # what was listened with may count still, too


class _Tree:
    """A folder and what is in it, but for one, with paths in UTF-8: others are refused by who tells of what happens.

    To a folder whose name is not, a descriptor leads that stays open until the tree is let go. Nobody can listen to the
    folder in which such a name stands, file or folder: whenever it is so much as opened, nothing else is told any more.
    So these folders are looked at.
    """

    def __init__(self, root: str, passed: str) -> None:
        self._descriptors: Final[dict[str, int]] = {}
        self._root: Final = root
        self._passed: Final = f"{self._spelt(root)}{os.sep}{passed}"
        self.odd: dict[str, _Facts] = {}  # the folders in which such names stand, when they were last looked at

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for descriptor in self._descriptors.values():
            os.close(descriptor)

    def holds(self, path: str) -> bool:
        """Return whether what lies there is not of the folder that is passed over."""
        return path != self._passed and not path.startswith(self._passed + os.sep)

    def folders(self) -> list[str]:
        """Return the folder and all below it that may be read, as they are spelt, from the top.

        Raises OSError where the folder itself may not.
        """
        found, ahead = [], [self._root]
        for path in ahead:  # which grows meanwhile
            try:
                folder = self._spelt(path)
                with os.scandir(folder) as entries:
                    held = list(entries)
                inner = [each.path for each in held if each.is_dir(follow_symlinks=False)]
            except OSError:
                if path == self._root:
                    raise
                continue  # a look says which it may not read; others have gone
            found.append(folder)
            if not all(_is_plain(each.name) for each in held) and folder not in self.odd:
                self.odd[folder] = self._facts(folder)
            ahead += filter(self.holds, inner)
        return found

    def has_changed(self) -> bool:
        """Return whether something has happened, since this was asked last, where nobody can listen."""
        before, self.odd = self.odd, {folder: self._facts(folder) for folder in self.odd}
        return before != self.odd

    def _facts(self, folder: str) -> _Facts:
        with suppress(OSError), os.scandir(folder) as entries:
            found = ((each.name, each.stat(follow_symlinks=False)) for each in entries if self.holds(each.path))
            return {name: (it.st_ino, it.st_mode, it.st_size, it.st_mtime_ns, it.st_ctime_ns) for name, it in found}
        return {}

    def _spelt(self, path: str) -> str:
        if _is_plain(path):
            return path
        if path not in self._descriptors:
            self._descriptors[path] = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        return f"/proc/self/fd/{self._descriptors[path]}"


def _is_plain(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_folder(path: str) -> bool:
    with suppress(OSError):
        return stat.S_ISDIR(os.lstat(path).st_mode)
    return False
