"""Find every state that a file ever had, including those that its history omits.

A document's history omits calls that were rolled back and edits that expired, although their bytes may still be stored,
and snapshots hold states that no edit recorded. So the whole journal is read, and each snapshot is searched at the
paths where the file was at that time.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from objstore.errors import BlobMissing, CasError
from objstore.fs.file_state import file_at
from objstore.history.snapshot_check import naming_snapshot
from objstore.index.ingest import decoded
from objstore.index.refcounts import held_blobs, written_blobs
from objstore.model.ids import BlobId
from objstore.model.records import Decision, Edit, Record, Snapshot, Void
from objstore.model.relpath import beginning
from objstore.model.tree import TreeEntry, entry_at
from objstore.transaction.journal import Journal

if TYPE_CHECKING:
    from objstore.model.basic_types import DocumentId, Seq

__all__ = ["past_states"]


def past_states(journal: Journal, path: bytes) -> list[BlobId]:
    """Return every stored state of the files that were ever at the path, their present ones included.

    A state that only snapshots name is left out while it is on disk: it is not past yet. Raises SnapshotUnreadable,
    BlobDamaged, StoreDamaged and TreeInvalid.
    """
    reading = _Reading(journal, path)
    for group in journal.store.log.groups(journal.store.log.first):
        for chained in decoded(group):
            reading.take(chained.record)
    return [blob for blob in reading.states() if journal.store.has(blob)]


class _Reading:
    """What the journal says about some files, read in order."""

    def __init__(self, journal: Journal, path: bytes) -> None:
        index = journal.store.index
        self._journal = journal
        self._path = path
        self._documents = set(index.documents.at(path))
        self._expired_snapshots = frozenset(row.number for row in index.holders.snapshots() if row.expired)
        self._recorded: dict[BlobId, None] = {}
        self._kept: dict[tuple[bytes, BlobId], None] = {}  # (path, blob) that snapshots hold
        self._paths_now: dict[DocumentId, bytes | None] = {}  # where the files are at this point of the journal
        # The state before, for the edits and the decision that a void in the next group may roll back.
        self._before_edits: dict[Seq, tuple[DocumentId, bytes | None]] = {}
        self._before_decision: tuple[int, dict[DocumentId, bytes | None]] = (0, {})

    def states(self) -> list[BlobId]:
        """Return what was found, each once: recorded states come first."""
        now: dict[bytes, BlobId] = {}
        for path in {path for path, _ in self._kept}:
            with suppress(CasError):  # an unreadable file excludes nothing
                found = file_at(self._journal.tree, path)
                if found is not None:
                    now[path] = found[0].blob
        kept = [blob for path, blob in self._kept if now.get(path) != blob]
        return list(self._recorded | dict.fromkeys(kept))

    def take(self, record: Record) -> None:
        """Process the next record."""
        match record:
            case Edit() if record.document in self._documents or self._path in (record.path, record.source):
                self._documents.add(record.document)  # the index does not know documents of voided edits
                self._recorded |= dict.fromkeys(held_blobs(record))
                self._before_edits[record.seq] = record.document, self._paths_now.get(record.document)
                self._paths_now[record.document] = record.path
            case Decision():
                self._take_decision(record)
            case Void():
                self._roll_back(record)
            case Snapshot():
                self._take_snapshot(record)
            case _:
                pass

    def _take_decision(self, decision: Decision) -> None:
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
        paths_then = {self._path} | {path for path in self._paths_now.values() if path is not None}
        for path in sorted(paths_then):
            # Garbage collection may have removed the trees of an expired snapshot, which holds nothing any more.
            is_expired = snapshot.number in self._expired_snapshots
            here = (snapshot.number, snapshot.root)
            with suppress(BlobMissing) if is_expired else naming_snapshot(self._journal.store, here):
                self._kept |= dict.fromkeys((path, blob) for blob in self._held_at(snapshot, path))

    def _held_at(self, snapshot: Snapshot, path: bytes) -> Iterator[BlobId]:
        scope = beginning(snapshot.path or b"")
        if not path.startswith(scope):
            return
        found = entry_at(snapshot.root, path[len(scope) :], self._journal.store.blob)
        if isinstance(found, TreeEntry) and found.is_file:
            yield found.blob
