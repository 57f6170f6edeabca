"""Store the file contents that a walk reads, and build the trees of the folders that it found."""

from contextlib import nullcontext
from typing import Final

from objstore.disk.fs.stat_signature import tree_modes
from objstore.model.ids import BlobId, blob_id
from objstore.model.relpath import folders_above, joined
from objstore.model.tree import EMPTY_TREE, FOLDER, ExcludedEntry, TreeEntry, encode_tree
from objstore.storage.store.write_batch import Batch
from objstore.storage.transaction.journal import Journal
from objstore.values.fastclass import NamedTuple
from objstore.worktree.stat_cache import UNKNOWN, CachedFolder
from objstore.worktree.walk import ReadFile, TreeWalk

__all__ = ["ContentWriter", "TreeBuilder"]

_PIECE: Final = 2 << 20
"""Bytes that are stored at once: encoding them holds the writer lock for a few milliseconds."""

_PIECE_FILES: Final = 256


class ContentWriter:
    """A buffer that stores what a walk reads in pieces, so that no writer waits long and memory stays bounded."""

    def __init__(self, journal: Journal, *, is_locked: bool = False, store_large: bool = True) -> None:
        """Begin with an empty buffer.

        `is_locked`: the caller holds the writer lock whenever it calls `keep` or `flush`. `store_large`: if false, a
        writer with that lock lists large files in `large` instead of storing them.
        """
        self._store_large = store_large
        self._journal: Final = journal
        self._is_locked = is_locked
        self._waiting: list[ReadFile] = []
        self._size = 0
        self.large: Final[list[bytes]] = []  # paths of large files that were not stored

    def use_callers_lock(self) -> None:
        """Use the caller's writer lock. From now on, large files are only listed, because storing them takes long."""
        self._is_locked, self._store_large = True, False

    def keep(self, read: ReadFile) -> None:
        """Take a file that was read. Raises what `flush` raises, and FileChanged if a large file has changed since.

        A large file is stored at once: later it may have changed, and the other files of its piece would wait for it.
        """
        if read.source is not None and not self._is_locked:
            from objstore.storage.transaction.prestore import prestore_blob

            prestore_blob(self._journal, read.blob, read.source, read.base)
        elif read.source is not None and not self._journal.store.has(read.blob):
            if not self._store_large:
                self.large.append(read.path)
                return
            from objstore.storage.store.large_blob_writer import append_chunks, store_large_blob

            store = self._journal.store
            append_chunks(store, *store_large_blob(store, read.blob, read.source, read.base))
        self._waiting.append(read)
        self._size += len(read.text)
        if self._size >= _PIECE or len(self._waiting) >= _PIECE_FILES:
            self.flush()

    def flush(self) -> None:
        """Store the buffered files. Raises what Journal.commit raises."""
        if not self._waiting:
            return
        with nullcontext(Batch(self._journal.store)) if self._is_locked else self._journal.writing() as batch:
            self.put(batch)
            if batch:
                self._journal.commit(batch, ())

    def put(self, batch: Batch) -> None:
        """Add the buffered files to the caller's batch."""
        batch.look_up({read.blob for read in self._waiting})
        for read in self._waiting:
            batch.state(read.text, read.base, name=read.blob, source=read.source)
        self._waiting.clear()
        self._size = 0


class _NewTree(NamedTuple):
    """A folder's tree that was just computed."""

    id: BlobId
    encoded: bytes
    files: list[BlobId]  # blobs of its files and symlinks
    folders: list[BlobId]  # trees of its folders


class TreeBuilder:
    """The trees of the folders that a walk found: the ones that are stored already, and the new ones."""

    def __init__(self, walk: TreeWalk, scope: bytes = b"", before: "TreeBuilder | None" = None) -> None:
        """Compute the tree of every folder that changed; the other folders keep theirs.

        `before`: the trees that were computed for the same walk before a rescan, and are not stored yet.
        """
        self._stat_cache: Final = walk.stat_cache
        self._unreadable: Final = walk.unreadable
        self.computed: Final[dict[bytes, _NewTree]] = {}  # by folder
        stale = set(walk.stat_cache.without_tree(scope)) | walk.unreadable
        for path in list(stale):
            stale.update(folders_above(path))
        # Inner folders first.
        for path in sorted(stale & set(walk.stat_cache.paths(scope)), reverse=True):
            folder = walk.stat_cache.get(path)
            if folder is not None:
                self._compute(folder)
        for path, tree in {} if before is None else before.computed.items():
            folder = walk.stat_cache.get(path)
            if folder is not None and folder.tree == tree.id:
                self.computed[path] = tree
        top = walk.stat_cache.get(scope)
        self.root: Final = BlobId(b"" if top is None else top.tree)
        new = self.computed.values()
        self.new: Final = {tree.id: tree.encoded for tree in new}  # trees that may not be stored yet
        self.files: Final = {blob for tree in new for blob in tree.files}  # of the files and symlinks in them
        referenced = {folder for tree in new for folder in tree.folders} | {self.root}
        self.kept: Final = (
            referenced - self.new.keys()
        )  # trees in them, or the root, that were computed by an earlier scan

    def _compute(self, cached: CachedFolder) -> None:
        entries: list[TreeEntry | ExcludedEntry] = [ExcludedEntry(name) for name in cached.left_out]
        files, folders = list[BlobId](), list[BlobId]()
        for at, (name, mode) in enumerate(zip(cached.names, tree_modes(cached.facts), strict=True)):
            blob = cached.blob(at)
            if blob == UNKNOWN:
                entries.append(ExcludedEntry(name))
            else:
                entries.append(TreeEntry(name, mode, blob))
                files.append(blob)
        for name in cached.folders:
            path = joined(cached.path, name)
            inner = self._stat_cache.get(path)
            if inner is None:
                if path in self._unreadable:  # otherwise it was deleted during the walk
                    entries.append(ExcludedEntry(name))
            elif inner.is_incomplete:
                entries.append(ExcludedEntry(name))
            elif inner.tree != EMPTY_TREE:
                entries.append(TreeEntry(name, FOLDER, BlobId(inner.tree)))
                folders.append(BlobId(inner.tree))
        encoded = encode_tree(entries)
        cached.tree = tree = blob_id(encoded)
        self.computed[cached.path] = _NewTree(tree, encoded, files, folders)
