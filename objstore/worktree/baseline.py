"""The known state of every file: the tip of its document; of a file that has none, what the baseline holds of it."""

import stat
from functools import partial
from typing import TYPE_CHECKING, Final

from objstore.model.basic_types import DocumentId, FileState
from objstore.model.relpath import beginning, joined
from objstore.model.tree import ExcludedEntry, TreeEntry, decode_tree, entry_at
from objstore.transaction.journal import Journal

if TYPE_CHECKING:
    from objstore.worktree.walk import SkippedPath

__all__ = ["KnownStates", "known_state_of"]


def known_state_of(journal: Journal, path: bytes) -> FileState | ExcludedEntry | None:
    """Return what is known of a file that has no document (None: no file), or that the baseline holds nothing of it.

    For one file this is faster than `Known`. Raises what reading blobs raises, and TreeInvalid.
    """
    baseline = journal.store.baseline()
    if baseline is None:
        return ExcludedEntry(path)
    found = None if journal.store.ever_at(path) else entry_at(baseline.root, path, journal.store.blob)
    return _state(found) if isinstance(found, TreeEntry) else found


class KnownStates:
    """What the journal says of each file, or else the baseline."""

    def __init__(self, journal: Journal) -> None:
        """Read nothing yet but which snapshot the baseline is."""
        self._store: Final = journal.store
        standing = journal.store.baseline()
        self._folders: dict[bytes, dict[bytes, TreeEntry | ExcludedEntry]] = {}
        self._root: Final = None if standing is None else standing.root
        self.passed: list[SkippedPath] = []
        self.came: dict[bytes, FileState] = {}  # what stands now where the baseline left something out

    def state(self, path: bytes) -> tuple[DocumentId | None, FileState | None]:
        """Return the document at a path (None: it has none yet) and the state that is known (None: no file)."""
        tip = self._store.tip_at(path)
        if tip is not None:
            return tip.document, tip.state
        folder, _, name = path.rpartition(b"/")
        entry = self.entries(folder).get(name)
        if not isinstance(entry, TreeEntry) or self._store.ever_at(path):
            return None, None
        return None, _state(entry)

    def is_excluded_from_baseline(self, path: bytes) -> bool:
        """Return whether something stood at a path, or above it, that the baseline does not hold."""
        if self._store.ever_at(path):
            return False
        while path:
            path, _, name = path.rpartition(b"/")
            if isinstance(self.entries(path).get(name), ExcludedEntry):
                return True
        return False

    def entries(self, folder: bytes) -> dict[bytes, TreeEntry | ExcludedEntry]:
        """Return what the baseline holds of a folder, by name."""
        # From the folder up to the first that was read, then down again: by steps, however deep it lies.
        unread = []
        above = folder
        while above not in self._folders:
            unread.append(above)
            above = above.rpartition(b"/")[0]
            if not unread[-1]:
                break
        for path in reversed(unread):
            self._folders[path] = {entry.name: entry for entry in self._read(path)}
        return self._folders[folder]

    def below(self, folder: bytes) -> set[bytes]:
        """Return every path below a folder where a file is known, or was."""
        found = set(self._store.paths_below(folder))
        waiting = [folder] if self._may_hold(folder) else []
        while waiting:
            above = waiting.pop()
            prefix = beginning(above)
            for name, entry in self.entries(above).items():
                if isinstance(entry, TreeEntry) and entry.is_folder:
                    waiting.append(prefix + name)
                elif isinstance(entry, TreeEntry):
                    found.add(prefix + name)
        return found

    def names(self, folder: bytes) -> tuple[set[bytes], set[bytes]]:
        """Return the names of files and of folders in a folder that are known, or were."""
        start = len(folder) + 1 if folder else 0
        rest = [path[start:].split(b"/") for path in self._store.paths_below(folder)]
        held = [entry for entry in self.entries(folder).values() if isinstance(entry, TreeEntry)]
        return (
            {entry.name for entry in held if not entry.is_folder} | {parts[0] for parts in rest if len(parts) == 1},
            {entry.name for entry in held if entry.is_folder} | {parts[0] for parts in rest if len(parts) > 1},
        )

    def new_folders(self, path: bytes) -> int:
        """Return how many of a path's folders, from the innermost, hold nothing that is known."""
        count = 0
        folder = path.rpartition(b"/")[0]
        while folder and self._is_new(folder):
            count += 1
            folder = folder.rpartition(b"/")[0]
        return count

    def _is_new(self, folder: bytes) -> bool:
        """Return whether a folder that stands holds nothing that is known, or only what has gone with it before."""
        index, names = self._store.index, self.entries(folder)
        if not index.folders.was_emptied_by_decision(folder):
            return not names and not self._store.paths_below(folder)
        return all(
            self._store.ever_at(path) or index.folders.was_emptied_by_decision(path)
            for path in map(partial(joined, folder), names)
        )

    def _may_hold(self, folder: bytes) -> bool:
        """Return whether the baseline may hold anything of a folder. For one this is faster than reading all above."""
        if not folder or folder.rpartition(b"/")[0] in self._folders:
            return True  # what was read tells it as fast
        entry = entry_at(self._root, folder, self._store.blob)
        return isinstance(entry, TreeEntry) and entry.is_folder

    def _read(self, folder: bytes) -> tuple[TreeEntry | ExcludedEntry, ...]:
        root = self._root
        if folder:
            above, _, name = folder.rpartition(b"/")
            entry = self._folders[above].get(name)
            root = entry.blob if isinstance(entry, TreeEntry) and entry.is_folder else None
        return () if root is None else decode_tree(self._store.blob(root))


def _state(entry: TreeEntry) -> FileState | None:
    """Return the state of a file in a tree (None: it is a folder or a link)."""
    return FileState(blob=entry.blob, mode=stat.S_IMODE(entry.mode)) if entry.is_file else None
