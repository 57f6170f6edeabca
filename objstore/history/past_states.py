"""Find every state that a file ever had, including those that its history omits.

A document's history omits calls that were rolled back and edits that expired, although their bytes may still be stored,
and snapshots hold states that no edit recorded. So the whole journal is read, and each snapshot is searched at the
paths where the file was at that time.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from objstore.disk.fs.file_state import file_at
from objstore.history.snapshot_check import naming_snapshot
from objstore.model.basic_types import DocumentId, FileState, Seq
from objstore.model.ids import BlobId
from objstore.model.records import Decision, Edit, Record, Snapshot, Void
from objstore.model.relpath import beginning, is_within
from objstore.model.tree import TreeEntry, entry_at, tree_files
from objstore.storage.index.ingest import decoded
from objstore.storage.index.refcounts import held_blobs, written_blobs
from objstore.storage.log.segments import Log
from objstore.storage.transaction.journal import Journal
from objstore.values.errors import BlobMissing, CasError

__all__ = ["all_states", "past_states"]


def past_states(journal: Journal, searched: Sequence[Sequence[bytes]]) -> list[list[BlobId]]:
    """Return, for each of some lists of paths, every stored state of the files that were ever at one of its paths.

    Their present states are included. A state that only snapshots name is left out while it is on disk: it is not past
    yet. The journal is read once. Raises SnapshotUnreadable, BlobDamaged, StoreDamaged and TreeInvalid.
    """
    at = journal.store.index.documents.at
    documents = [{document for path in paths for document in at(path)} for paths in searched]
    each = zip(searched, documents, strict=True)
    return _read_for([_Reading(journal, paths, own, only_past=True) for paths, own in each])


def all_states(
    journal: Journal, searched: Sequence[tuple[Iterable[bytes], Iterable[DocumentId]]]
) -> list[list[BlobId]]:
    """Return, for each of some paths with documents, every stored state that was at one of the paths or below it.

    Also every state of the documents, what snapshots hold at these paths, and at the paths that the documents had when
    they were taken. The journal is read once. Raises as `past_states`.
    """
    return _read_for([_Reading(journal, paths, own, only_past=False) for paths, own in searched])


def _read_for(readings: "Sequence[_Reading]") -> list[list[BlobId]]:
    """Read the journal, and return the states that each reading found."""
    if not readings:
        return []
    log = readings[0].log
    for group in log.groups(log.first):
        for chained in decoded(group):
            for reading in readings:
                reading.take(chained.record)
    return [reading.stored_states() for reading in readings]


class _Reading:
    """The state of a reading of the journal about some files, in order."""

    def __init__(
        self, journal: Journal, paths: Iterable[bytes], documents: Iterable[DocumentId], *, only_past: bool
    ) -> None:
        """Read about files at or below the paths, and about the documents.

        `only_past`: a document that was ever at a path counts with all its states, and what snapshots hold counts only
        if it is no longer on disk. Otherwise another document counts with the states that it had there.
        """
        index = journal.store.index
        self._journal = journal
        self._paths = list(paths)
        self._only_past = only_past
        self._documents = set(documents)
        self._expired_snapshots = frozenset(row.number for row in index.holders.snapshots() if row.expired)
        self._recorded: dict[BlobId, None] = {}
        self._kept: dict[tuple[bytes, BlobId], None] = {}  # (path, blob) that snapshots hold
        self._paths_now: dict[DocumentId, bytes | None] = {}  # where the files are at this point of the journal
        # The state before, for the edits and the decision that a void in the next group may roll back.
        self._before_edits: dict[Seq, tuple[DocumentId, bytes | None]] = {}
        self._before_decision: tuple[int, dict[DocumentId, bytes | None]] = (0, {})

    @property
    def log(self) -> Log:
        """Return the log that is read."""
        return self._journal.store.log

    def stored_states(self) -> list[BlobId]:
        """Return the states that were found and are stored, each once: recorded states come first."""
        return [blob for blob in self._states() if self._journal.store.has(blob)]

    def _states(self) -> list[BlobId]:
        now: dict[bytes, BlobId] = {}
        for path in {path for path, _ in self._kept} if self._only_past else ():
            with suppress(CasError):  # an unreadable file excludes nothing
                found = file_at(self._journal.tree, path)
                if found is not None:
                    now[path] = found[0].blob
        kept = [blob for path, blob in self._kept if now.get(path) != blob]
        return list(self._recorded | dict.fromkeys(kept))

    def take(self, record: Record) -> None:
        """Process the next record."""
        match record:
            case Edit():
                self._take_edit(record)
            case Decision():
                self._take_decision(record)
            case Void():
                self._roll_back(record)
            case Snapshot():
                self._take_snapshot(record)
            case _:
                pass

    def _is_wanted(self, path: bytes | None) -> bool:
        if path is None:
            return False
        return path in self._paths if self._only_past else any(is_within(path, wanted) for wanted in self._paths)

    def _take_edit(self, edit: Edit) -> None:
        if self._only_past and (self._is_wanted(edit.path) or self._is_wanted(edit.source)):
            self._documents.add(edit.document)  # the index does not know documents of voided edits
        if edit.document in self._documents:
            self._recorded |= dict.fromkeys(held_blobs(edit))
            self._before_edits[edit.seq] = edit.document, self._paths_now.get(edit.document)
            self._paths_now[edit.document] = edit.path
        else:
            self._take_states_here((edit.source or edit.path, edit.before), (edit.path, edit.after))

    def _take_states_here(self, *states: tuple[bytes | None, FileState | None]) -> None:
        """Take the states that a file of another document had at one of the paths."""
        found = [state.blob for path, state in states if state is not None and self._is_wanted(path)]
        self._recorded |= dict.fromkeys(found)

    def _take_decision(self, decision: Decision) -> None:
        for one in decision.written:
            if one.document not in self._documents:
                self._take_states_here((one.path_before, one.before), (one.path_after, one.after))
        written = [one for one in decision.written if one.document in self._documents]
        self._recorded |= dict.fromkeys(written_blobs(written))
        self._before_decision = decision.number, {one.document: self._paths_now.get(one.document) for one in written}
        self._paths_now |= {one.document: one.path for one in written}

    def _roll_back(self, void: Void) -> None:
        for seq in reversed(void.edits):
            if seq in self._before_edits:
                document, path = self._before_edits[seq]
                self._paths_now[document] = path
        number, before = self._before_decision
        if void.decision and void.decision == number:
            self._paths_now |= before

    def _take_snapshot(self, snapshot: Snapshot) -> None:
        paths_then = {*self._paths} | {path for path in self._paths_now.values() if path is not None}
        for path in sorted(paths_then):
            # Garbage collection may have removed the trees of an expired snapshot, which holds nothing any more.
            is_expired = snapshot.number in self._expired_snapshots
            here = (snapshot.number, snapshot.root)
            with suppress(BlobMissing) if is_expired else naming_snapshot(self._journal.store, here):
                self._kept |= dict.fromkeys((path, blob) for blob in self._held_at(snapshot, path))

    def _held_at(self, snapshot: Snapshot, path: bytes) -> Iterator[BlobId]:
        load, folder = self._journal.store.blob, snapshot.path or b""
        if not self._only_past and is_within(folder, path):
            root: BlobId | None = snapshot.root  # all of it is below the path
        elif not path.startswith(beginning(folder)):
            return
        else:
            found = entry_at(snapshot.root, path[len(beginning(folder)) :], load)
            if isinstance(found, TreeEntry) and not found.is_folder:
                yield found.blob
            is_folder = not self._only_past and isinstance(found, TreeEntry) and found.is_folder
            root = found.blob if is_folder and isinstance(found, TreeEntry) else None
        if root is not None:
            for _, entry in tree_files(root, load):
                if isinstance(entry, TreeEntry):
                    yield entry.blob
