"""Update the baseline snapshot when an ignored or unreadable file becomes visible, or is gone.

So at most one change goes unrecorded of a file that was ignored or unreadable, and none of a file that replaces it.
"""

import os
import stat
from collections.abc import Iterable, Mapping
from typing import Final

from objstore.disk.fs.confined_path import look_at
from objstore.disk.fs.reserved_names import is_reserved
from objstore.model.basic_types import FileState
from objstore.model.ids import blob_id
from objstore.model.records import Expiry, Snapshot
from objstore.model.relpath import folders_above, folders_of, joined
from objstore.model.tree import EMPTY_TREE, FOLDER, ExcludedEntry, TreeEntry, encode_tree
from objstore.storage.store.write_batch import Batch, now
from objstore.storage.transaction.journal import Journal
from objstore.values.errors import CasError
from objstore.worktree.baseline import KnownStates
from objstore.worktree.stat_cache import CachedFolder, StatCache

__all__ = ["BaselineUpdate"]


class BaselineUpdate:
    """The changes that one scan makes to the baseline."""

    def __init__(self, journal: Journal, known: KnownStates, stat_cache: StatCache | None) -> None:
        """Begin with no changes. `stat_cache`: what a scan saw of folders (None: folders are listed)."""
        self._journal: Final = journal
        self._known: Final = known
        self._stat_cache: Final = stat_cache
        self._changed: dict[bytes, dict[bytes, TreeEntry | ExcludedEntry]] = {}  # entries of changed folders

    def add_file(self, path: bytes, state: FileState | None) -> None:
        """Add the state of a file that the baseline left out; if there is none and no file exists, remove the entry."""
        folder, _, name = path.rpartition(b"/")
        entries = self._expanded(folder)
        if entries is None or not isinstance(entries.get(name), ExcludedEntry):
            return
        if state is not None:
            self._change(folder)[name] = _entry(name, state)
        elif self._kind(path) is None:
            del self._change(folder)[name]

    def add_folder(self, row: CachedFolder, states: Mapping[bytes, FileState]) -> None:
        """Update a scanned folder's entries that the baseline left out. `states`: of newly visible files, by path."""
        if row.is_incomplete or not (row.path in self._changed or self._known.may_leave_out(row.path)):
            return
        excluded = [
            name for name, entry in (self._expanded(row.path) or {}).items() if isinstance(entry, ExcludedEntry)
        ]
        files = row.files() if excluded else {}
        for name in excluded:
            path = joined(row.path, name)
            if path in states:
                self._change(row.path)[name] = _entry(name, states[path])
            # The entries of a folder are updated with that folder.
            elif name not in files and name not in row.left_out and name not in row.folders:
                del self._change(row.path)[name]

    def put(self, batch: Batch) -> bool:
        """Add the new baseline to the batch, and the expiry of the old one; return False if nothing changes."""
        old = self._journal.store.baseline()
        if not self._changed or old is None or old != self._journal.store.index.holders.baseline(newest=True):
            return False  # of two baselines, the older one is being replaced
        root = old.root
        for folder in sorted(self._changed, reverse=True):  # inner ones first
            encoded = encode_tree(self._changed[folder].values())
            above, _, name = folder.rpartition(b"/")
            if folder and blob_id(encoded) == EMPTY_TREE:
                self._changed[above].pop(name, None)
                continue
            tree = batch.blob(encoded)
            if folder:
                self._changed[above][name] = TreeEntry(name, FOLDER, tree)
            else:
                root = tree
        from objstore.history.snapshots.catalog import find  # an agent waits for what each hook imports

        number = self._journal.store.index.numbers.next_snapshot()
        since = find(self._journal, old.number).time  # its states are from that time
        batch.record(Snapshot(number=number, time=since, root=root, path=None, who="", title="baseline"))
        batch.record(Expiry(time=now(), snapshots=(old.number,), reason="baseline brought up to date", who=""))
        return True

    # ---- inside

    def _current(self, folder: bytes) -> Mapping[bytes, TreeEntry | ExcludedEntry]:
        return self._changed[folder] if folder in self._changed else self._known.entries(folder)

    def _change(self, folder: bytes) -> dict[bytes, TreeEntry | ExcludedEntry]:
        """Return a folder's entries, for the caller to change in place."""
        for each in (folder, *folders_above(folder)):
            if each not in self._changed:
                self._changed[each] = dict(self._known.entries(each))
        return self._changed[folder]

    def _expanded(self, folder: bytes) -> Mapping[bytes, TreeEntry | ExcludedEntry] | None:
        """Return the entries of a folder (None: its names are not known).

        If the baseline left it out as a whole, replace that by one excluded entry for each name in it.
        """
        for path in (*folders_of(folder), folder) if folder else ():
            above, _, name = path.rpartition(b"/")
            entry = self._current(above).get(name)
            if isinstance(entry, ExcludedEntry):
                kind = self._kind(path)
                if kind is None:
                    del self._change(above)[name]
                names = self._names(path) if kind == stat.S_IFDIR else None
                if names is None:
                    return None
                self._change(above)[name] = TreeEntry(name, FOLDER, EMPTY_TREE)
                self._changed[path] = {each: ExcludedEntry(each) for each in names}
        return self._current(folder)

    def _kind(self, path: bytes) -> int | None:
        """Return the file type at a path, as S_IFMT gives it (None: nothing exists there; 0: not known)."""
        try:
            with self._journal.tree.locate(os.fsdecode(path), changing=True, as_on_disk=False) as resolved:
                found = look_at(resolved) if os.fsencode(resolved.path) == path else None
        except CasError:
            return 0
        return None if found is None else stat.S_IFMT(found.st_mode)

    def _names(self, folder: bytes) -> Iterable[bytes] | None:
        """Return the names in a folder (None: it can't be listed)."""
        row = None if self._stat_cache is None else self._stat_cache.get(folder)
        if row is not None and not row.is_incomplete:
            return [*row.names, *row.folders, *row.left_out]
        try:
            found = self._journal.tree.entries(os.fsdecode(folder))
        except CasError:
            return None
        return [os.fsencode(entry.name) for entry in found if not is_reserved(entry.name)]


def _entry(name: bytes, state: FileState) -> TreeEntry:
    return TreeEntry.of(name, state)
