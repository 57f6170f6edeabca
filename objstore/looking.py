"""Looking: a survey of a workspace that knows its last look, stores what it reads, and tells folders as trees."""

import os
import time
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from typing import Final

from objstore.batch import Batch
from objstore.configuration import Configuration
from objstore.errors import CasError, DiskFailed, PermissionRefused
from objstore.ids import BlobId, blob_id
from objstore.journal import Journal
from objstore.looks import UNKNOWN, FolderLook, Looks
from objstore.paths import STORE_NAME
from objstore.records import Snapshot
from objstore.survey import Keep, Limits, ReadFile, Survey
from objstore.trees import FOLDER, LeftOut, TreeEntry, encode_tree

__all__ = ["Looking", "Pieces", "Trees", "baseline", "nothing_kept"]

_PIECE: Final = 2 << 20
"""Bytes that are stored at once: encoding them takes a few milliseconds, in which the writer lock is held."""

_PIECE_FILES: Final = 256
_FILE: Final = "looks"
_EMPTY: Final = blob_id(encode_tree(()))


def baseline(journal: Journal) -> Snapshot | None:
    """Return the snapshot that the first look made by itself, with which later ones compare (None: there is none)."""
    for row in journal.store.index.snapshots():
        if not row.expired:
            record, _ = journal.store.record(row.place)
            if isinstance(record, Snapshot) and not record.who and record.path is None:
                return record
    return None


def nothing_kept(_: ReadFile) -> None:
    """Keep nothing of what a survey reads."""


class Looking:
    """One look at a workspace, from what the last one left to what the next one will find."""

    def __init__(self, journal: Journal) -> None:
        """Take up the last look. What the survey will find is compared with the baseline that there is now."""
        self._journal: Final = journal
        self._folder: Final = os.path.join(journal.tree.root, STORE_NAME)
        self.baseline = baseline(journal)
        self.looks: Final = self._loaded()

    def survey(self, keep: Keep, limits: Limits | None = None) -> Survey:
        """Return a survey that is still to be run; what it reads is given to `keep`."""
        gitignored = Configuration(self._journal.tree.root).get("snapshot.gitignored").value
        return Survey(
            self._journal.tree,
            self.looks,
            clock=self._clock(),
            keep=keep,
            gitignored=gitignored is not False,
            limits=limits,
        )

    def distrust(self, blobs: set[BlobId]) -> None:
        """Have files read again that were these blobs: the store has them no longer."""
        for row in self.looks:
            found = [row.blob(at) for at in range(len(row.names))]
            if blobs.isdisjoint(found):
                continue
            row.blobs = b"".join(UNKNOWN if blob in blobs else blob for blob in found)
            row.is_unsure = True
            for path in (row.path, *_above(row.path)):
                holder = self.looks.get(path)
                if holder is not None:
                    holder.tree = b""

    def save(self) -> None:
        """Keep what is known now for the next look. Whatever goes wrong costs that one time, and nothing else."""
        encoded = self.looks.encoded(self._journal.store.log.store, self._number)
        with suppress(CasError, OSError):
            shelf = os.path.join(self._folder, "cache")
            with suppress(FileExistsError):
                os.mkdir(shelf, 0o700)
            folders = [os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC) for path in (shelf, self._scratch)]
            try:
                name = self._journal.disk.stage(folders[1], encoded, None, 0o600, shelf)
                self._journal.disk.replace(folders[1], name, folders[0], _FILE)
            finally:
                for fd in folders:
                    os.close(fd)

    # ---- inside

    @property
    def _scratch(self) -> str:
        return os.path.join(self._folder, "tmp")

    @property
    def _number(self) -> int:
        return 0 if self.baseline is None else self.baseline.number

    def _loaded(self) -> Looks:
        try:
            with open(os.path.join(self._folder, "cache", _FILE), "rb") as file:
                stored = file.read()
        except OSError:
            return Looks()
        return Looks.decoded(stored, self._journal.store.log.store, self._number)

    def _clock(self) -> int:
        try:
            fd = os.open(self._scratch, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                return self._journal.disk.clock(fd, self._scratch)
            finally:
                os.close(fd)
        except (OSError, PermissionRefused, DiskFailed):
            # The machine's own clock may be ahead of the file system's, and is finer.
            return time.time_ns() - 2_000_000_000


class Pieces:
    """Stores what a survey reads, a piece at a time, so that no other writer waits long and memory stays bounded."""

    def __init__(self, journal: Journal, *, is_locked: bool = False) -> None:
        """Begin with none. `is_locked`: the caller holds the writer lock whenever it gives something."""
        self._journal: Final = journal
        self._is_locked: Final = is_locked
        self._waiting: list[ReadFile] = []
        self._size = 0

    def keep(self, read: ReadFile) -> None:
        """Take a file that was read. Raises what `flush` raises."""
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


class Trees:
    """The trees of what a survey found: those that are stored already, and those that are new."""

    def __init__(self, survey: Survey, scope: bytes = b"") -> None:
        """Work out the tree of every folder that changed; the others keep theirs."""
        self._looks: Final = survey.looks
        self._unreadable: Final = survey.unreadable
        self.new: dict[BlobId, bytes] = {}  # by id: trees that may not be stored yet
        self.files: set[BlobId] = set()  # blobs of files and links that they name
        self.kept: set[BlobId] = set()  # trees named by them, or the root, that were worked out before
        stale = set(survey.looks.without_tree(scope)) | survey.unreadable
        for path in list(stale):
            stale.update(_above(path))
        # Folders that lie in others come first.
        for path in sorted(stale & set(survey.looks.paths(scope)), reverse=True):
            look = survey.looks.get(path)
            if look is not None:
                self._work_out(look)
        top = survey.looks.get(scope)
        self.root: Final = BlobId(b"" if top is None else top.tree)
        if self.root not in self.new:
            self.kept.add(self.root)
        self.kept -= self.new.keys()

    def _work_out(self, row: FolderLook) -> None:
        entries: list[TreeEntry | LeftOut] = [LeftOut(name) for name in row.left_out]
        for name, (facts, blob) in row.files().items():
            if blob == UNKNOWN:
                entries.append(LeftOut(name))
            else:
                entries.append(TreeEntry(name, facts.tree_mode, blob))
                self.files.add(blob)
        for name in row.folders:
            path = row.path + b"/" + name if row.path else name
            inner = self._looks.get(path)
            if inner is None:
                if path in self._unreadable:  # else it went while the survey was under way
                    entries.append(LeftOut(name))
            elif inner.is_cut:
                entries.append(LeftOut(name))
            elif inner.tree != _EMPTY:
                entries.append(TreeEntry(name, FOLDER, BlobId(inner.tree)))
                self.kept.add(BlobId(inner.tree))
        encoded = encode_tree(entries)
        row.tree = blob_id(encoded)
        self.new[BlobId(row.tree)] = encoded


def _above(path: bytes) -> Iterator[bytes]:
    """Yield the folders that a path lies in, the innermost first."""
    while path:
        path = path.rpartition(b"/")[0]
        yield path
