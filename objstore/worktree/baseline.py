"""Look up the known state of a file: the tip of its document, or its entry in the baseline if it has no document."""

from functools import partial
from typing import TYPE_CHECKING, Final

from objstore.model.basic_types import DocumentId, FileState
from objstore.model.ids import BlobId
from objstore.model.relpath import beginning, joined
from objstore.model.tree import EMPTY_TREE, ExcludedEntry, TreeEntry, TreeFolder, encode_tree, entry_at
from objstore.storage.transaction.journal import Journal

if TYPE_CHECKING:
    from objstore.worktree.walk import SkippedPath

__all__ = ["KnownStates", "known_state_of"]


_NONE: Final = TreeFolder(encode_tree(()))


def known_state_of(journal: Journal, path: bytes) -> FileState | ExcludedEntry | None:
    """Return the known state of a file that has no document.

    None: no file is known at the path. ExcludedEntry: the baseline leaves the path out, or there is no baseline.
    For one file this is faster than `KnownStates`. Raises what reading blobs raises, and TreeInvalid.
    """
    baseline = journal.store.baseline()
    if baseline is None:
        return ExcludedEntry(path)
    found = None if journal.store.ever_at(path) else entry_at(baseline.root, path, journal.store.blob)
    return found.state if isinstance(found, TreeEntry) else found


class KnownStates:
    """The known states of files. Each folder of the baseline is read once, when it is first asked for."""

    def __init__(self, journal: Journal) -> None:
        """Read which snapshot is the baseline, and nothing else yet."""
        self.journal: Final = journal
        self._store: Final = journal.store
        baseline = journal.store.baseline()
        self._folders: dict[bytes, TreeFolder] = {}
        self._root: Final = None if baseline is None else baseline.root
        self.skipped: list[SkippedPath] = []
        self.joining: dict[bytes, FileState] = {}  # states of files that the baseline left out, and takes now
        self.newly_visible: set[bytes] = set()  # files that the baseline left out, and that become edits now

    def state(self, path: bytes) -> tuple[DocumentId | None, FileState | None]:
        """Return the document at a path (None: none yet) and the known state (None: no file)."""
        tip = self._store.tip_at(path)
        if tip is not None:
            return tip.document, tip.state
        folder, _, name = path.rpartition(b"/")
        entry = self.entries(folder).get(name)
        if not isinstance(entry, TreeEntry) or self._store.ever_at(path):
            return None, None
        return None, entry.state

    def baseline_state(self, path: bytes) -> FileState | ExcludedEntry | None:
        """Return the known state of a file that has no document, as `known_state_of` does."""
        if self._root is None:
            return ExcludedEntry(path)
        if self._store.ever_at(path):
            return None
        folder, entry = b"", None
        for name in path.split(b"/"):
            entry = self.entries(folder).get(name)
            if not isinstance(entry, TreeEntry):
                return entry  # the baseline has nothing there, or leaves the path or a folder above it out
            folder = joined(folder, name)
        return entry.state if isinstance(entry, TreeEntry) else None

    def is_excluded_from_baseline(self, path: bytes) -> bool:
        """Return whether the baseline leaves out a path, or a folder above it, that existed when it was taken."""
        if self._store.ever_at(path):
            return False
        while path:
            path, _, name = path.rpartition(b"/")
            if isinstance(self.entries(path).get(name), ExcludedEntry):
                return True
        return False

    def may_leave_out(self, folder: bytes) -> bool:
        """Return whether the baseline may leave out names in a folder."""
        return self._tree(folder) is None or self.entries(folder).leaves_names_out()

    def entries(self, folder: bytes) -> TreeFolder:
        """Return the baseline's entries for a folder, by name."""
        # Go up to the first folder that was read, then down again. A loop, because a path may be very deep.
        unread = []
        above = folder
        while above not in self._folders:
            unread.append(above)
            above = above.rpartition(b"/")[0]
            if not unread[-1]:
                break
        for path in reversed(unread):
            root = self._tree(path)
            self._folders[path] = _NONE if root is None else TreeFolder(self._store.blob(root))
        return self._folders[folder]

    def below(self, folder: bytes) -> set[bytes]:
        """Return every path below a folder at which a file is known, or was known once."""
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
        """Return the names of the files and the names of the folders in a folder that are known, or were known once."""
        start = len(folder) + 1 if folder else 0
        rest = [path[start:].split(b"/") for path in self._store.paths_below(folder)]
        held = [entry for entry in self.entries(folder).values() if isinstance(entry, TreeEntry)]
        return (
            {entry.name for entry in held if not entry.is_folder} | {parts[0] for parts in rest if len(parts) == 1},
            {entry.name for entry in held if entry.is_folder} | {parts[0] for parts in rest if len(parts) > 1},
        )

    def new_folders(self, path: bytes) -> int:
        """Return how many of a path's folders, counted from the innermost, hold nothing that is known."""
        count = 0
        folder = path.rpartition(b"/")[0]
        while folder and self._is_new(folder):
            count += 1
            folder = folder.rpartition(b"/")[0]
        return count

    def _is_new(self, folder: bytes) -> bool:
        """Return whether an existing folder holds no known file, or only ones that a decision deleted with it."""
        index = self._store.index
        if not index.folders.was_emptied_by_decision(folder):
            return self._tree(folder) in {None, EMPTY_TREE} and not self._store.paths_below(folder)
        return all(
            self._store.ever_at(path) or index.folders.was_emptied_by_decision(path)
            for path in map(partial(joined, folder), self.entries(folder))
        )

    def _may_hold(self, folder: bytes) -> bool:
        """Return whether the baseline may have entries for a folder, without reading all folders above it."""
        if not folder or folder.rpartition(b"/")[0] in self._folders:
            return True  # the folder above is read already, so `entries` answers as fast
        entry = entry_at(self._root, folder, self._store.blob)
        return isinstance(entry, TreeEntry) and entry.is_folder

    def _tree(self, folder: bytes) -> BlobId | None:
        """Return the name of the baseline's tree of a folder (None: it has none)."""
        if not folder:
            return self._root
        above, _, name = folder.rpartition(b"/")
        entry = self.entries(above).get(name)
        return entry.blob if isinstance(entry, TreeEntry) and entry.is_folder else None
