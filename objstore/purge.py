"""Purge: bytes taken out of history for good, and said before what that breaks.

What mentions the bytes has to go, whatever its age. Of a file, the edits before it go too, because the rest of its
history must begin where replaying can; and where a decision that mentions them named other edits, these go with it.
A file that holds the bytes now is not touched: then nothing is purged.
"""

import os
from collections.abc import Iterable, Iterator

from objstore.batch import now
from objstore.codec import parse_blob_header
from objstore.errors import IndexDamaged, PurgeRefused, PurgeUnfinished
from objstore.frames import FrameKind
from objstore.ids import BlobId
from objstore.journal import Journal
from objstore.mending import with_sound_index
from objstore.paststates import past_states
from objstore.ranges import Range, ranges_of
from objstore.records import Expiry, Pin, Snapshot
from objstore.refcounts import held_blobs
from objstore.replay import forget_kept
from objstore.retention import ordinal_of, touches
from objstore.sweep import SweepOutcome, plan_sweep, sweep
from objstore.terms import DocumentId, Progress, Seq, Status
from objstore.trees import named_blobs, trees_below
from objstore.values import value

__all__ = ["PurgePlan", "blobs_of_path", "plan_purge", "purge"]

_TRIES = 5


@value
class PurgePlan:
    """What goes when some blobs do."""

    blobs: tuple[BlobId, ...]
    edits: tuple[Range, ...]  # that can no longer be shown or decided
    decisions: tuple[Range, ...]
    pending: tuple[Seq, ...]  # those of the edits that nobody has decided yet
    snapshots: tuple[int, ...]  # that hold one of the blobs
    pins: tuple[int, ...]
    files: tuple[str, ...]  # that hold one of the blobs now: while there are any, nothing is purged
    documents: tuple[DocumentId, ...]

    @property
    def needs_force(self) -> bool:
        """Return whether something goes that a person has kept, or has not looked at yet."""
        return bool(self.pending or self.snapshots or self.pins)


def blobs_of_path(journal: Journal, path: bytes) -> list[BlobId]:
    """Return every state that the files had which ever stood at the path, but for those that some file holds now.

    Raises what `past_states` raises.
    """
    held = {tip.state.blob for tip in journal.store.index.tips() if tip.state is not None}
    return [blob for blob in past_states(journal, path) if blob not in held]


def plan_purge(journal: Journal, blobs: Iterable[BlobId]) -> PurgePlan:
    """Return what goes when the blobs do. Nothing is changed. Raises StoreDamaged, BlobDamaged."""
    with journal.store.index.still():
        return _Closure(journal, frozenset(blobs)).plan()


def purge(
    journal: Journal, blobs: Iterable[BlobId], *, force: bool, who: str, progress: Progress | None = None
) -> PurgePlan:
    """Take the blobs out of the store, with all that mentions them, and return what that was.

    Raises PurgeRefused, with nothing changed, while a file holds one of them, and unless `force` where something is
    pending, or a snapshot or a pin holds them; PurgeUnfinished; and what Journal.commit and sweep raise.
    """

    def swept() -> SweepOutcome:
        outcome = sweep(journal, plan_sweep(journal, all_segments=True), progress)
        if outcome.is_done:
            _see_gone(journal, wanted)
        return outcome

    wanted = frozenset(blobs)
    with journal.writing(makes_room=True) as batch:
        plan = plan_purge(journal, wanted)
        if plan.files or (plan.needs_force and not force):
            raise PurgeRefused(plan.files, plan.pending, plan.snapshots, plan.pins)
        if plan.edits or plan.decisions or plan.snapshots or plan.pins:
            expiry = Expiry(
                time=now(),
                edits=plan.edits,
                decisions=plan.decisions,
                snapshots=plan.snapshots,
                pins=plan.pins,
                reason="purged",
                who=who,
            )
            batch.record(expiry)
            # Before, or a crash would leave the text in a weave that nothing names any more; and after, because whoever
            # has replayed the file meanwhile may have kept it again.
            _forget(journal, plan)
            journal.commit(batch, ())
        _forget(journal, plan)
    for _ in range(_TRIES):
        if with_sound_index(journal, swept)[0].is_done:
            break
    journal.store.log.sync_names()  # or a power cut could bring the old files back
    with journal.reading() as store:
        store.forget()
        if any(map(store.has, wanted)):
            raise PurgeUnfinished
    return plan


def _see_gone(journal: Journal, blobs: frozenset[BlobId]) -> None:
    """See that the log has none of the blobs that the index has not. Raises IndexDamaged."""
    with journal.reading() as store:
        for group in store.log.groups(store.log.first):
            for frame in group.frames:
                if frame.kind is FrameKind.BLOB:
                    name = parse_blob_header(frame.payload).id
                    if name in blobs and not store.has(name):
                        raise IndexDamaged(f"blob {name.hex()} is in the log and not in it")


def _forget(journal: Journal, plan: PurgePlan) -> None:
    for document in plan.documents:
        forget_kept(journal, document)


class _Closure:
    """What has to go with some blobs."""

    def __init__(self, journal: Journal, blobs: frozenset[BlobId]) -> None:
        self._store = journal.store
        self._index = journal.store.index
        self._blobs = blobs
        self._flipped: dict[int, int] = {}  # where the last decision lies that flipped an edit
        self._edits: set[int] = set()
        self._documents: set[DocumentId] = set()
        self._pending: set[Seq] = set()

    def plan(self) -> PurgePlan:
        named: dict[int, list[int]] = {}
        for touch in touches(self._store):
            named[touch.number] = list(touch.edits)
            for seq in touch.flipped:
                self._flipped[seq] = max(self._flipped.get(seq, 0), touch.place)
        for blob in self._blobs:
            for seq in self._index.mentioning_edits(blob):
                self._take(seq)
        gone = set()
        for number, place in self._index.all_decision_places():
            record, _ = self._store.record(place)
            if self._blobs.intersection(held_blobs(record)):
                gone.add(number)
                for seq in named.get(number, ()):
                    self._take(seq)
        kept = {seq for numbers in named.values() for seq in numbers if self._index.document_of(seq) is not None}
        kept -= self._edits
        gone |= {number for number, numbers in named.items() if kept.isdisjoint(numbers)}
        tips = (tip for tip in self._index.tips() if tip.state is not None and tip.state.blob in self._blobs)
        return PurgePlan(
            blobs=tuple(sorted(self._blobs)),
            edits=ranges_of(self._edits),
            decisions=ranges_of(gone),
            pending=tuple(sorted(self._pending)),
            snapshots=tuple(self._snapshots()),
            pins=tuple(self._pins()),
            files=tuple(os.fsdecode(tip.path) for tip in tips),
            documents=tuple(sorted(self._documents)),
        )

    def _take(self, seq: int) -> None:
        """Let an edit go, with those before it in its file, and as many after it as a late decision binds to it."""
        if seq in self._edits:
            return
        document = self._index.document_of(seq)
        if document is None:
            return  # it was taken back, or has expired
        self._documents.add(document)
        touched = 0
        for own, place, status in self._index.lineage(document):
            if own > seq and touched < ordinal_of(place):
                break
            self._edits.add(own)
            touched = max(touched, self._flipped.get(own, 0))
            if status is Status.PENDING:
                self._pending.add(own)

    def _snapshots(self) -> Iterator[int]:
        for row in self._index.snapshots():
            record, _ = self._store.record(row.place)
            if not row.expired and isinstance(record, Snapshot) and self._holds(record.root):
                yield row.number

    def _holds(self, root: BlobId) -> bool:
        if root in self._blobs:
            return True
        trees = trees_below(root, self._store.blob, set())
        return any(blob in self._blobs for tree in trees for blob, _ in named_blobs(tree))

    def _pins(self) -> Iterator[int]:
        for row in self._index.pins():
            record, _ = self._store.record(row.place)
            if row.expired or not isinstance(record, Pin):
                continue
            if self._blobs.intersection(record.blobs) or self._edits.intersection(map(int, record.edits)):
                yield row.number
