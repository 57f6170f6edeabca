"""Report batches of file events in a workspace, without following links."""

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
"""Milliseconds, at most, until a batch that goes quiet or a stop request is noticed."""

_SELDOM: Final = 20
"""Multiple of the time that listing the folders took, to wait until they are listed again.

In a large tree where folders keep appearing, most of the time is then left for other work.
"""

_BY_FOLDER: Final = sys.platform == "linux"
"""Whether each folder is watched on its own. Systems that report everything below a folder follow no links."""

_Facts: TypeAlias = dict[str, tuple[int, ...]]
"""What is known of each name in a folder."""

_UNDECODABLE: Final = "Unable to decode path"
"""watchfiles' message for a name that is not UTF-8, given instead of the event."""

_REFUSED: Final = "Error creating recommended watcher: Too many open files"
"""Its message if as many programs watch already as the system allows one user."""

_NONE_LEFT: Final = "nothing more can be watched: the system limit is reached (fs.inotify.max_user_instances)"
"""Our message in that case."""

_LIMITED: Final = "OS file watch limit reached"
"""Its message if the system doesn't allow so many folders to be watched."""


class StopCondition(Protocol):
    """Says when to stop."""

    def is_set(self) -> bool:
        """Return whether it is time to stop."""


def change_batches(
    root: str, passed: str, *, quiet: int, ending: StopCondition, left_out: Callable[[int], None]
) -> Iterator[bool]:
    """Yield at least every fifth of a second, until asked to stop, whether something has changed below `root`.

    From the first result on, every readable folder is watched, except the one named `passed` in `root`. `quiet`:
    milliseconds after which changes are reported at once. `left_out` is called, once, with the number of folders above
    the system limit. Raises OSError if `root` can't be watched.
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
                # Another folder, which was removed before it was watched.
            except OSError as error:
                if not str(error).startswith(_LIMITED) or limit.most == 1:
                    raise
                limit.is_met(len(folders))
            except RuntimeError as error:
                if not str(error).startswith((_UNDECODABLE, _REFUSED)):
                    raise
                limit.retry_after(error)
                # A name that wasn't there before: from now on, watchfiles reports nothing else.
                yield str(error).startswith(_UNDECODABLE)
                while time.monotonic() < rested and not ending.is_set():
                    time.sleep(_ROUND / 1000)
                    yield False


def _rounds(
    tree: "_Tree", folders: list[str], most: int, *, quiet: int, ending: StopCondition
) -> Iterator[tuple[bool, bool]]:
    """Yield whether something has changed in the first `most` folders, and whether there are new folders.

    The first result is always a change: events that came before these folders were watched were missed. Raises as
    `change_batches`, OSError if the folders exceed the system limit, and RuntimeError when something happens to a file
    whose name is not UTF-8.
    """
    from watchfiles import Change, watch

    def is_news(change: Change, path: str) -> bool:
        # A known folder that was created again is a different folder with that name.
        return (change is Change.added or path not in known) and tree.holds(path) and _is_folder(path)

    known, is_first, is_outdated = set(folders), True, False
    events = watch(
        *[folder for folder in folders if folder not in tree.odd][:most],
        watch_filter=None,  # otherwise the constant changes in the store alone would delay other events
        recursive=not _BY_FOLDER,  # recursive watching would follow links, and give up at the first unreadable folder
        step=min(quiet, _ROUND),
        debounce=_ROUND,
        stop_event=ending,
        rust_timeout=_ROUND,
        yield_on_timeout=True,
    )
    with closing(events):
        for batch in events:
            has_changed = tree.has_changed()
            if _BY_FOLDER and not is_outdated:
                is_outdated = has_changed or any(is_news(*each) for each in batch)
            if _BY_FOLDER and is_first and not is_outdated:
                # They may have been created before the folder above was watched.
                is_outdated = not known.issuperset(tree.folders())
            yield is_first or has_changed or any(tree.holds(path) for _, path in batch), is_outdated
            is_first = False


class _Limit:
    """The number of folders that may be watched, as far as is known."""

    def __init__(self, left_out: Callable[[int], None]) -> None:
        self.most = sys.maxsize
        self._stood = False  # whether they could be watched before
        self._left_out: Final = left_out
        self._is_said = False
        self._was_met = False

    def holds(self, folders: int) -> None:
        """Note that so many folders are watched, or as many of them as allowed."""
        self._was_met, self._stood = False, True
        if self.most < folders and not self._is_said:
            self._left_out(folders - self.most)
            self._is_said = True

    def is_met(self, folders: int) -> None:
        """Note that this number was too large."""
        if self._was_met:
            self.most = max(1, min(self.most, folders) * 3 // 4)
        self._was_met = True
        # The watches of this attempt still count for a moment: the system releases them after they are closed.
        time.sleep(_ROUND / 1000)

    def retry_after(self, error: RuntimeError) -> None:
        """Wait a moment if the error says that too many watch. Raises OSError if watching never worked."""
        if str(error).startswith(_REFUSED):
            if not self._stood:
                raise OSError(errno.EMFILE, _NONE_LEFT) from error
            time.sleep(_ROUND / 1000)  # the closed watches may still count, too


class _Tree:
    """A folder and everything below it except one, with paths in UTF-8: watchfiles refuses others.

    A folder whose own name is not UTF-8 is watched through a descriptor, which stays open until the tree is closed. A
    folder that contains such a name, file or folder, can't be watched: after it is merely opened, watchfiles reports
    nothing else. These folders are polled instead.
    """

    def __init__(self, root: str, passed: str) -> None:
        self._descriptors: Final[dict[str, int]] = {}
        self._root: Final = root
        self._passed: Final = f"{self._watchable(root)}{os.sep}{passed}"
        self.odd: dict[str, _Facts] = {}  # folders that contain such names, as last polled

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for descriptor in self._descriptors.values():
            os.close(descriptor)

    def holds(self, path: str) -> bool:
        """Return whether a path is outside the folder that is passed over."""
        return path != self._passed and not path.startswith(self._passed + os.sep)

    def folders(self) -> list[str]:
        """Return the folder and all readable ones below it, as paths, from the top.

        Raises OSError if the folder itself can't be read.
        """
        found, ahead = [], [self._root]
        for path in ahead:  # which grows meanwhile
            try:
                folder = self._watchable(path)
                with os.scandir(folder) as entries:
                    held = list(entries)
                inner = [each.path for each in held if each.is_dir(follow_symlinks=False)]
            except OSError:
                if path == self._root:
                    raise
                continue  # scans report unreadable folders; others were removed
            found.append(folder)
            if not all(_is_plain(each.name) for each in held) and folder not in self.odd:
                self.odd[folder] = self._facts(folder)
            ahead += filter(self.holds, inner)
        return found

    def has_changed(self) -> bool:
        """Return whether something has changed since the last call in the folders that can't be watched."""
        before, self.odd = self.odd, {folder: self._facts(folder) for folder in self.odd}
        return before != self.odd

    def _facts(self, folder: str) -> _Facts:
        with suppress(OSError), os.scandir(folder) as entries:
            found = ((each.name, each.stat(follow_symlinks=False)) for each in entries if self.holds(each.path))
            return {name: (it.st_ino, it.st_mode, it.st_size, it.st_mtime_ns, it.st_ctime_ns) for name, it in found}
        return {}

    def _watchable(self, path: str) -> str:
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
