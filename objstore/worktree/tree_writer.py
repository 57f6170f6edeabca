"""Keeping: what a survey reads goes into the store, a piece at a time, and what it found is told as trees."""

from contextlib import nullcontext
from typing import Final, NamedTuple

from objstore.model.ids import BlobId, blob_id
from objstore.model.relpath import folders_above, joined
from objstore.model.tree import FOLDER, ExcludedEntry, TreeEntry, encode_tree
from objstore.store.write_batch import Batch
from objstore.transaction.journal import Journal
from objstore.worktree.stat_cache import UNKNOWN, CachedFolder
from objstore.worktree.walk import ReadFile, TreeWalk

__all__ = ["ContentWriter", "TreeBuilder"]

_PIECE: Final = 2 << 20
"""Bytes that are stored at once: encoding them takes a few milliseconds, in which the writer lock is held."""

_PIECE_FILES: Final = 256
_EMPTY: Final = blob_id(encode_tree(()))


class ContentWriter:
    """Stores what a survey reads, a piece at a time, so that no other writer waits long and memory stays bounded."""

    def __init__(self, journal: Journal, *, is_locked: bool = False, store_large: bool = True) -> None:
        """Begin with none. `is_locked`: the caller holds the writer lock whenever it gives something.

        `is_patient`: whether large files are then stored too; else they are only named.
        """
        self._store_large = store_large
        self._journal: Final = journal
        self._is_locked = is_locked
        self._waiting: list[ReadFile] = []
        self._size = 0
        self.large: Final[list[bytes]] = []  # large files that were not stored

    def use_callers_lock(self) -> None:
        """From now on the caller holds the writer lock, and large files are only named: others wait."""
        self._is_locked, self._store_large = True, False

    def keep(self, read: ReadFile) -> None:
        """Take a file that was read. Raises what `flush` raises, and FileChanged where it is not what was read.

        A large one is stored at once: later it may be another one, and whatever is stored with it would be held up.
        """
        if read.source is not None and not self._is_locked:
            from objstore.transaction.prestore import prestore_blob

            prestore_blob(self._journal, read.blob, read.source, read.base)
        elif read.source is not None and not self._journal.store.has(read.blob):
            if not self._store_large:
                self.large.append(read.path)
                return
            from objstore.store.large_blob_writer import append_chunks, store_large_blob

            store = self._journal.store
            append_chunks(store, *store_large_blob(store, read.blob, read.source, read.base))
        self._waiting.append(read)
        self._size += len(read.text)
        if self._size >= _PIECE or len(self._waiting) >= _PIECE_FILES:
            self.flush()

    def flush(self) -> None:
        """Store what is waiting. Raises what Journal.commit raises."""
        if not self._waiting:
            return
        with nullcontext(Batch(self._journal.store)) if self._is_locked else self._journal.writing() as batch:
            self.put(batch)
            if batch:
                self._journal.commit(batch, ())

    def put(self, batch: Batch) -> None:
        """Add what is waiting to a batch of the caller's."""
        for read in self._waiting:
            batch.state(read.text, read.base, name=read.blob, source=read.source)
        self._waiting.clear()
        self._size = 0


class _NewTree(NamedTuple):
    """A folder's tree that was just worked out."""

    id: BlobId
    encoded: bytes
    files: list[BlobId]  # blobs of files and links that it names
    folders: list[BlobId]  # trees that it names


class TreeBuilder:
    """The trees of what a survey found: those that are stored already, and those that are new."""

    def __init__(self, survey: TreeWalk, scope: bytes = b"", before: "TreeBuilder | None" = None) -> None:
        """Work out the tree of every folder that changed; the others keep theirs.

        `before`: those that were worked out of the same survey before it looked again, and are not stored.
        """
        self._stat_cache: Final = survey.stat_cache
        self._unreadable: Final = survey.unreadable
        self.worked_out: Final[dict[bytes, _NewTree]] = {}  # by folder
        stale = set(survey.stat_cache.without_tree(scope)) | survey.unreadable
        for path in list(stale):
            stale.update(folders_above(path))
        # Folders that lie in others come first.
        for path in sorted(stale & set(survey.stat_cache.paths(scope)), reverse=True):
            look = survey.stat_cache.get(path)
            if look is not None:
                self._work_out(look)
        for path, tree in {} if before is None else before.worked_out.items():
            look = survey.stat_cache.get(path)
            if look is not None and look.tree == tree.id:
                self.worked_out[path] = tree
        top = survey.stat_cache.get(scope)
        self.root: Final = BlobId(b"" if top is None else top.tree)
        new = self.worked_out.values()
        self.new: Final = {tree.id: tree.encoded for tree in new}  # trees that may not be stored yet
        self.files: Final = {blob for tree in new for blob in tree.files}  # of files and links that they name
        named = {folder for tree in new for folder in tree.folders} | {self.root}
        self.kept: Final = named - self.new.keys()  # trees named by them, or the root, that were worked out before

    def _work_out(self, row: CachedFolder) -> None:
        entries: list[TreeEntry | ExcludedEntry] = [ExcludedEntry(name) for name in row.left_out]
        files, folders = list[BlobId](), list[BlobId]()
        for name, (facts, blob) in row.files().items():
            if blob == UNKNOWN:
                entries.append(ExcludedEntry(name))
            else:
                entries.append(TreeEntry(name, facts.tree_mode, blob))
                files.append(blob)
        for name in row.folders:
            path = joined(row.path, name)
            inner = self._stat_cache.get(path)
            if inner is None:
                if path in self._unreadable:  # else it went while the survey was under way
                    entries.append(ExcludedEntry(name))
            elif inner.is_incomplete:
                entries.append(ExcludedEntry(name))
            elif inner.tree != _EMPTY:
                entries.append(TreeEntry(name, FOLDER, BlobId(inner.tree)))
                folders.append(BlobId(inner.tree))
        encoded = encode_tree(entries)
        row.tree = tree = blob_id(encoded)
        self.worked_out[row.path] = _NewTree(tree, encoded, files, folders)
