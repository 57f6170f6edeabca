"""Past states: every state that a file ever had, also where its history doesn't tell of it.

That passes over what was taken back and what has expired, whose bytes may be stored all the same; and a snapshot holds
what nobody recorded. So the whole journal is read, and each snapshot is asked for the paths where the file stood then.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from objstore.errors import BlobMissing, CasError
from objstore.fs.file_state import file_at
from objstore.history.snapshot_check import naming
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
    """Return every stored state of the files which ever stood at the path, those that they have now included.

    But for one that no record of an edit or a decision names, as long as it stands on disk: it is not past yet.
    Raises SnapshotUnreadable, BlobDamaged, StoreDamaged and TreeInvalid.
    """
    reading = _Reading(journal, path)
    for group in journal.store.log.groups(journal.store.log.first):
        for chained in decoded(group):
            reading.take(chained.record)
    return [blob for blob in reading.states() if journal.store.has(blob)]


class _Reading:
    """What the journal tells of some files, in its order."""

    def __init__(self, journal: Journal, path: bytes) -> None:
        index = journal.store.index
        self._journal = journal
        self._path = path
        self._documents = set(index.documents.at(path))
        self._given_up = frozenset(row.number for row in index.holders.snapshots() if row.expired)
        self._recorded: dict[BlobId, None] = {}
        self._kept: dict[tuple[bytes, BlobId], None] = {}  # that snapshots hold, with the path
        self._standing: dict[DocumentId, bytes | None] = {}  # where the files stand at this place of the journal
        # What a void takes back stood before in the group before it.
        self._before_edits: dict[Seq, tuple[DocumentId, bytes | None]] = {}
        self._before_decision: tuple[int, dict[DocumentId, bytes | None]] = (0, {})

    def states(self) -> list[BlobId]:
        """Return what was found, each once: what is recorded comes first."""
        now: dict[bytes, BlobId] = {}
        for path in {path for path, _ in self._kept}:
            with suppress(CasError):  # what can't be read tells nothing
                stands = file_at(self._journal.tree, path)
                if stands is not None:
                    now[path] = stands[0].blob
        kept = [blob for path, blob in self._kept if now.get(path) != blob]
        return list(self._recorded | dict.fromkeys(kept))

    def take(self, record: Record) -> None:
        """Go on by one record."""
        match record:
            case Edit() if record.document in self._documents or self._path in (record.path, record.source):
                self._documents.add(record.document)  # of one that was taken back the index knows nothing
                self._recorded |= dict.fromkeys(held_blobs(record))
                self._before_edits[record.seq] = record.document, self._standing.get(record.document)
                self._standing[record.document] = record.path
            case Decision():
                self._take_decision(record)
            case Void():
                self._take_back(record)
            case Snapshot():
                self._take_snapshot(record)
            case _:
                pass

    def _take_decision(self, decision: Decision) -> None:
        written = [one for one in decision.written if one.document in self._documents]
        self._recorded |= dict.fromkeys(written_blobs(written))
        self._before_decision = decision.number, {one.document: self._standing.get(one.document) for one in written}
        self._standing |= {one.document: one.path for one in written}

    def _take_back(self, void: Void) -> None:
        for seq in reversed(void.edits):
            if seq in self._before_edits:
                document, path = self._before_edits[seq]
                self._standing[document] = path
        number, before = self._before_decision
        if void.decision and void.decision == number:
            self._standing |= before

    def _take_snapshot(self, snapshot: Snapshot) -> None:
        stood = {self._path} | {path for path in self._standing.values() if path is not None}
        for path in sorted(stood):
            # Of a snapshot that was given up, a collection may have taken the trees, and none of them holds anything.
            is_given_up = snapshot.number in self._given_up
            here = (snapshot.number, snapshot.root)
            with suppress(BlobMissing) if is_given_up else naming(self._journal.store, here):
                self._kept |= dict.fromkeys((path, blob) for blob in self._held_at(snapshot, path))

    def _held_at(self, snapshot: Snapshot, path: bytes) -> Iterator[BlobId]:
        scope = beginning(snapshot.path or b"")
        if not path.startswith(scope):
            return
        found = entry_at(snapshot.root, path[len(scope) :], self._journal.store.blob)
        if isinstance(found, TreeEntry) and found.is_file:
            yield found.blob
