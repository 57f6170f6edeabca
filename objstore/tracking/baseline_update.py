"""Comings: what the baseline left out becomes known when it comes into view, and its name is free once it is gone.

So one change at most goes untold of a file that was ignored or could not be read, and none of what comes in its place.
"""

import os
import stat
from collections.abc import Iterable, Mapping
from typing import Final

from objstore.errors import CasError
from objstore.fs.confined_path import look_at
from objstore.fs.reserved_names import is_reserved
from objstore.model.basic_types import FileState
from objstore.model.ids import BlobId, blob_id
from objstore.model.records import Expiry, Snapshot
from objstore.model.relpath import folders_above, folders_of, joined
from objstore.model.tree import FOLDER, ExcludedEntry, TreeEntry, encode_tree
from objstore.store.write_batch import Batch, now
from objstore.tracking.snapshot_list import find
from objstore.transaction.journal import Journal
from objstore.worktree.baseline import KnownStates
from objstore.worktree.stat_cache import UNKNOWN, CachedFolder, StatCache

__all__ = ["BaselineUpdate"]

_EMPTY: Final = BlobId(blob_id(encode_tree(())))


class BaselineUpdate:
    """The baseline as it is to be after one look."""

    def __init__(self, journal: Journal, known: KnownStates, stat_cache: StatCache | None) -> None:
        """Begin with the one that there is. `looks`: what was seen of folders (None: they are listed)."""
        self._journal: Final = journal
        self._known: Final = known
        self._stat_cache: Final = stat_cache
        self._anew: dict[bytes, dict[bytes, TreeEntry | ExcludedEntry]] = {}  # folders that become otherwise

    def name(self, path: bytes, state: FileState | None) -> None:
        """Take in a file that was named and that the baseline left out (None: there is none)."""
        folder, _, name = path.rpartition(b"/")
        entries = self._reached(folder)
        if entries is None or not isinstance(entries.get(name), ExcludedEntry):
            return
        if state is not None:
            self._change(folder)[name] = _entry(name, state)
        elif self._kind(path) is None:
            del self._change(folder)[name]

    def see(self, row: CachedFolder, states: Mapping[bytes, FileState]) -> None:
        """Take in what a look found in a folder of what the baseline left out. `states`: of such files, by path."""
        if row.is_incomplete:
            return
        left = [name for name, entry in (self._reached(row.path) or {}).items() if isinstance(entry, ExcludedEntry)]
        files = row.files() if left else {}
        for name in left:
            path = joined(row.path, name)
            if path in states:
                self._change(row.path)[name] = _entry(name, states[path])
            elif name in files:
                facts, blob = files[name]
                if stat.S_ISLNK(facts.mode) and blob != UNKNOWN:
                    del self._change(row.path)[name]  # links are not compared
            elif name not in row.left_out and name not in row.folders:  # what a folder holds, its own look says
                del self._change(row.path)[name]

    def put(self, batch: Batch) -> bool:
        """Add the baseline that takes the place of the one there is, if it is another; return whether it is."""
        old = self._journal.store.baseline()
        if not self._anew or old is None or old != self._journal.store.index.holders.baseline(newest=True):
            return False  # where there are two, the older one is being given up
        root = old.root
        for folder in sorted(self._anew, reverse=True):  # inner ones first
            encoded = encode_tree(self._anew[folder].values())
            above, _, name = folder.rpartition(b"/")
            if folder and blob_id(encoded) == _EMPTY:
                self._anew[above].pop(name, None)
                continue
            tree = batch.blob(encoded)
            if folder:
                self._anew[above][name] = TreeEntry(name, FOLDER, tree)
            else:
                root = tree
        number = self._journal.store.index.numbers.next_snapshot()
        since = find(self._journal, old.number).time  # what it holds stood there then
        batch.record(Snapshot(number=number, time=since, root=root, path=None, who="", title="baseline"))
        batch.record(Expiry(time=now(), snapshots=(old.number,), reason="baseline brought up to date", who=""))
        return True

    # ---- inside

    def _now(self, folder: bytes) -> Mapping[bytes, TreeEntry | ExcludedEntry]:
        return self._anew[folder] if folder in self._anew else self._known.entries(folder)

    def _change(self, folder: bytes) -> dict[bytes, TreeEntry | ExcludedEntry]:
        """Return a folder's entries, to be changed in place."""
        for each in (folder, *folders_above(folder)):
            if each not in self._anew:
                self._anew[each] = dict(self._known.entries(each))
        return self._anew[folder]

    def _reached(self, folder: bytes) -> Mapping[bytes, TreeEntry | ExcludedEntry] | None:
        """Return what is said of a folder (None: not all that is in it can be told).

        Where it was left out as a whole, all in it is left out from here on, one by one.
        """
        for path in (*folders_of(folder), folder) if folder else ():
            above, _, name = path.rpartition(b"/")
            entry = self._now(above).get(name)
            if isinstance(entry, ExcludedEntry):
                kind = self._kind(path)
                if kind is None:
                    del self._change(above)[name]
                names = self._names(path) if kind == stat.S_IFDIR else None
                if names is None:
                    return None
                self._change(above)[name] = TreeEntry(name, FOLDER, _EMPTY)
                self._anew[path] = {each: ExcludedEntry(each) for each in names}
        return self._now(folder)

    def _kind(self, path: bytes) -> int | None:
        """Return the kind of what stands at a path (None: nothing does; 0: it can't be told)."""
        try:
            with self._journal.tree.locate(os.fsdecode(path), changing=True, as_spelt=False) as resolved:
                found = look_at(resolved) if os.fsencode(resolved.path) == path else None
        except CasError:
            return 0
        return None if found is None else stat.S_IFMT(found.st_mode)

    def _names(self, folder: bytes) -> Iterable[bytes] | None:
        """Return the names in a folder (None: they can't be told)."""
        row = None if self._stat_cache is None else self._stat_cache.get(folder)
        if row is not None and not row.is_incomplete:
            return [*row.names, *row.folders, *row.left_out]
        try:
            found = self._journal.tree.entries(os.fsdecode(folder))
        except CasError:
            return None
        return [os.fsencode(entry.name) for entry in found if not is_reserved(entry.name)]


def _entry(name: bytes, state: FileState) -> TreeEntry:
    return TreeEntry(name, stat.S_IFREG | state.mode, state.blob)
