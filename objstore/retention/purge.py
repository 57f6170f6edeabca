"""Remove chosen blobs from history for good, after planning what else has to go.

Everything that mentions the blobs has to go, whatever its age. The edits before it in the same file go too, because the
rest of the file's history must begin where replay can; if a decision that mentions them named other edits, these go
with it. A file that contains the bytes now is not changed: nothing is purged until a person has changed it.
"""

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Final

from objstore.errors import CasError, IndexDamaged, PurgeRefused, PurgeUnfinished, StoreError, StoreLocked
from objstore.fastclass import value
from objstore.fs.file_state import file_at
from objstore.history.document_loader import delete_cached_documents
from objstore.history.past_states import past_states
from objstore.history.snapshot_check import naming_snapshot
from objstore.index.refcounts import held_blobs
from objstore.index.rows import Tip
from objstore.log.blob_codec import parse_blob_header
from objstore.log.frames import FrameKind
from objstore.model.basic_types import Progress, Seq, Status
from objstore.model.ids import BlobId, blob_id
from objstore.model.ranges import Range, ranges_of
from objstore.model.records import Expiry, Pin, Snapshot
from objstore.model.tree import ExcludedEntry, TreeEntry, decode_tree, encode_tree, names_of
from objstore.retention.compaction import CompactionResult, compact, plan_compaction
from objstore.retention.expiry import dated_decisions, ordinal_of
from objstore.review.edit_recorder import version_of
from objstore.store.object_store import Store
from objstore.store.write_batch import Batch, now
from objstore.tracking.snapshot_list import find
from objstore.transaction.index_repair import retry_with_rebuilt_index
from objstore.transaction.journal import Journal
from objstore.transaction.space_reserve import with_compaction_space
from objstore.worktree.external_changes import found_changes

__all__ = ["PurgePlan", "blobs_of_paths", "plan_purge", "purge"]

_TRIES = 5

_EMPTY: Final = blob_id(b"")


@value
class PurgePlan:
    """What has to go with some blobs."""

    blobs: tuple[BlobId, ...]
    edits: tuple[Range, ...]  # that can no longer be shown or decided afterwards
    decisions: tuple[Range, ...]
    pending: tuple[Seq, ...]  # those of the edits that are pending
    snapshots: tuple[int, ...]  # that hold one of the blobs
    baseline: int | None  # the one that is replaced by one without the blobs; None: the baseline holds none of them
    pins: tuple[int, ...]
    files: tuple[str, ...]  # that contain one of the blobs now: while there are any, nothing is purged
    changed_outside: tuple[str, ...]  # that had one when last recorded and have changed since: as above

    @property
    def needs_force(self) -> bool:
        """Return whether something goes that a person has kept, or has not reviewed yet."""
        return bool(self.pending or self.snapshots or self.pins)


def blobs_of_paths(journal: Journal, paths: Iterable[bytes]) -> list[BlobId]:
    """Return every past state of the files that were ever at one of the paths, except their present states.

    The empty file's state is left out too: it has no content to remove. Raises what `past_states` and `file_at` raise.
    """
    index = journal.store.index
    own = {document for path in paths for document in index.documents.at(path)}
    tips = [tip for tip in index.documents.tips() if tip.document in own and not _is_changed_outside(journal, tip)]
    held = {tip.state.blob for tip in tips if tip.state is not None}
    past = dict.fromkeys(blob for path in paths for blob in past_states(journal, path))
    return [blob for blob in past if blob not in held and blob != _EMPTY]


def plan_purge(journal: Journal, blobs: Iterable[BlobId]) -> PurgePlan:
    """Return what has to go with the blobs, and change nothing.

    Raises SnapshotUnreadable, because the contents of such a snapshot are unknown, StoreDamaged, BlobDamaged, and what
    `file_at` raises.
    """
    return _plan(journal, _TreesHolding(journal.store, frozenset(blobs)))


def purge(
    journal: Journal, blobs: Iterable[BlobId], *, force: bool, who: str, progress: Progress | None = None
) -> PurgePlan:
    """Remove the blobs from the store, with everything that mentions them, and return what that was.

    If the baseline holds one of them, a new baseline with the rest replaces it.
    Raises PurgeRefused, with nothing changed, while a file contains one of them, and without `force` also if a pending
    edit, a snapshot or a pin holds them; StoreLocked, with nothing changed, while a compaction is running;
    PurgeUnfinished; and what Journal.commit and `compact` raise.
    """

    def compact_once() -> CompactionResult:
        outcome = compact(journal, plan_compaction(journal, all_segments=True), progress)
        if outcome.is_done:
            _require_gone(journal, wanted)
        return outcome

    with journal.reading() as store:
        holding = _TreesHolding(store, frozenset(blobs))
    wanted = holding.blobs
    # Planned once before writers have to wait: the trees of many snapshots take long to read, and never change. What
    # can't be read is reported under the lock, unless the snapshot is deleted by then.
    with suppress(StoreError), journal.reading():
        _plan(journal, holding)
    with journal.compacting():
        pass  # nothing expires while another compaction would keep the bytes from being removed
    with journal.writing(may_use_reserve=True) as batch:
        plan = _plan(journal, holding)
        if plan.files or plan.changed_outside or (plan.needs_force and not force):
            raise PurgeRefused(plan.files, plan.changed_outside, plan.pending, plan.snapshots, plan.pins)
        # Before the expiry, or a crash would leave the text in a cached weave that nothing refers to any more. All of
        # them, because documents whose edits had all expired before may still be cached.
        delete_cached_documents(journal)
        if plan.edits or plan.decisions or plan.snapshots or plan.pins:
            if plan.baseline is not None:
                _renew_baseline(journal, batch, holding)
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
            journal.commit(batch, ())
    for _ in range(_TRIES):
        try:
            if with_compaction_space(journal, lambda: retry_with_rebuilt_index(journal, compact_once))[0].is_done:
                break
        except StoreLocked as error:
            raise PurgeUnfinished from error
    journal.store.log.files.sync_names()  # otherwise a power cut could bring the old files back
    with journal.reading() as store:
        store.forget()
        if any(store.blob_place(name) is not None for name in wanted):
            raise PurgeUnfinished
    return plan


def _is_changed_outside(journal: Journal, tip: Tip) -> bool:
    """Return whether a file differs from its last recorded state, and its present state is not recorded."""
    found = found_changes(journal, [tip])
    return bool(found) and found[0].found != found[0].recorded


def _plan(journal: Journal, holding: "_TreesHolding") -> PurgePlan:
    with journal.store.index.still():
        return _Closure(journal, holding).plan()


def _renew_baseline(journal: Journal, batch: Batch, holding: "_TreesHolding") -> None:
    """Record a baseline with the states of the old one, and with the present files where that held one of the blobs.

    Without a baseline, changes of files that were never recorded could no longer be detected.
    """
    baseline = journal.store.index.holders.baseline()
    if baseline is None or baseline.root in holding.blobs:
        return

    def present_entry(path: bytes) -> TreeEntry | ExcludedEntry | None:
        name = path.rpartition(b"/")[2]
        if journal.store.ever_at(path):
            return ExcludedEntry(name)  # the file has edits, which say what it was
        try:
            found = version_of(file_at(journal.tree, path), journal.tree, path)
        except CasError:
            return ExcludedEntry(name)
        if found is None:
            return None
        if found.state.blob in holding.blobs:
            return ExcludedEntry(name)
        batch.state(found.content, name=found.state.blob, source=found.source)
        return TreeEntry(name, stat.S_IFREG | found.state.mode, found.state.blob)

    trees = holding.rewrite_trees_without(baseline.root, present_entry)
    for encoded in trees.values():
        batch.blob(encoded)
    root = blob_id(trees[b""])
    number = journal.store.index.numbers.next_snapshot()
    since = find(journal, baseline.number).time  # the states are of that time
    batch.record(Snapshot(number=number, time=since, root=root, path=None, who="", title="baseline"))


def _require_gone(journal: Journal, blobs: frozenset[BlobId]) -> None:
    """Raise IndexDamaged if the log has one of the blobs although the index does not."""
    with journal.reading() as store:
        for group in store.log.groups(store.log.first):
            for frame in group.frames:
                if frame.kind is FrameKind.BLOB:
                    name = parse_blob_header(frame.payload).id
                    if name in blobs and store.blob_place(name) is None:
                        raise IndexDamaged(f"blob {name.hex()} is in the log but not in the index")


class _Closure:
    """Computation of what has to go with some blobs."""

    def __init__(self, journal: Journal, holding: "_TreesHolding") -> None:
        self._journal = journal
        self._store = journal.store
        self._index = journal.store.index
        self._holding = holding
        self._blobs = holding.blobs
        self._flipped: dict[int, int] = {}  # the place of the last decision that changed the text of each edit
        self._edits: set[int] = set()
        self._pending: set[Seq] = set()

    def plan(self) -> PurgePlan:
        named: dict[int, list[int]] = {}
        for decision in dated_decisions(self._store):
            named[decision.number] = list(decision.edits)
            for seq in decision.flipped:
                self._flipped[seq] = max(self._flipped.get(seq, 0), decision.place)
        for blob in self._blobs:
            for seq in self._index.edits.mentioning(blob):
                self._take(seq)
        gone = set()
        for number, place in self._index.decisions.unexpired_places():
            record, _ = self._store.record(place)
            if self._blobs.intersection(held_blobs(record)):
                gone.add(number)
                for seq in named.get(number, ()):
                    self._take(seq)
        kept = {seq for numbers in named.values() for seq in numbers if self._index.edits.document_of(seq) is not None}
        kept -= self._edits
        gone |= {number for number, numbers in named.items() if kept.isdisjoint(numbers)}
        tips = [tip for tip in self._index.documents.tips() if tip.state is not None and tip.state.blob in self._blobs]
        changed = [tip.path for tip in tips if _is_changed_outside(self._journal, tip)]
        snapshots, baseline = tuple(self._snapshots()), self._index.holders.baseline()
        files = [tip.path for tip in tips if tip.path not in changed]
        if baseline is not None and baseline.number in snapshots and baseline.root not in self._blobs:
            files += self._unrecorded(baseline.root)
        return PurgePlan(
            blobs=tuple(sorted(self._blobs)),
            edits=ranges_of(self._edits),
            decisions=ranges_of(gone),
            pending=tuple(sorted(self._pending)),
            snapshots=snapshots,
            baseline=None if baseline is None or baseline.number not in snapshots else baseline.number,
            pins=tuple(self._pins()),
            files=tuple(map(os.fsdecode, files)),
            changed_outside=tuple(map(os.fsdecode, changed)),
        )

    def _take(self, seq: int) -> None:
        """Add an edit, with those before it in its file, and as many after it as a late decision binds to it."""
        if seq in self._edits:
            return
        document = self._index.edits.document_of(seq)
        if document is None:
            return  # it was voided, or has expired
        touched = 0
        for own, place, status in self._index.history.lineage(document):
            if own > seq and touched < ordinal_of(place):
                break
            self._edits.add(own)
            touched = max(touched, self._flipped.get(own, 0))
            if status is Status.PENDING:
                self._pending.add(own)

    def _unrecorded(self, baseline: BlobId) -> list[bytes]:
        """Return the files without an edit that contained one of the blobs at the baseline, and still do."""
        paths: list[bytes] = []
        self._holding.rewrite_trees_without(baseline, paths.append)
        return [path for path in paths if not self._store.ever_at(path) and self._still_holds(path)]

    def _still_holds(self, path: bytes) -> bool:
        with suppress(CasError):  # an unreadable file says nothing
            found = file_at(self._journal.tree, path)
            return found is not None and found[0].blob in self._blobs
        return False

    def _snapshots(self) -> Iterator[int]:
        for row in self._index.holders.snapshots():
            record, _ = self._store.record(row.place)
            if not row.expired and isinstance(record, Snapshot):
                with naming_snapshot(self._store, (record.number, record.root)):
                    is_holding = self._holding.holds(record.root)
                if is_holding:
                    yield row.number

    def _pins(self) -> Iterator[int]:
        for row in self._index.holders.pins():
            record, _ = self._store.record(row.place)
            if row.expired or not isinstance(record, Pin):
                continue
            if self._blobs.intersection(record.blobs) or self._edits.intersection(map(int, record.edits)):
                yield row.number


def _large_blobs_containing(store: Store, blobs: frozenset[BlobId]) -> Iterator[BlobId]:
    """Yield the large blobs of which one of the blobs is a chunk. Raises what Store.chunks raises."""
    for name in store.index.blobs.held_lists():
        if any(chunk.id in blobs for chunk in store.chunks(name)):
            yield name


class _TreesHolding:
    """The trees that hold one of some blobs, directly or below. Each tree is read once, however many snapshots have it.

    Every large blob that has one of the blobs as a chunk counts as one of them.
    """

    def __init__(self, store: Store, blobs: frozenset[BlobId]) -> None:
        self._store = store
        self.blobs = blobs.union(_large_blobs_containing(store, blobs))
        self._found: dict[BlobId, bool] = {}

    def holds(self, root: BlobId) -> bool:
        """Return whether a tree is one of the blobs, or holds one. Raises TreeInvalid, and what Store.blob raises."""
        # Without recursion, however deep a folder is: `names` has the entries of trees that wait for trees below them.
        waiting = [root]
        names: dict[BlobId, list[tuple[BlobId, bool]]] = {}
        while waiting:
            tree = waiting[-1]
            if tree not in names and tree not in self._found:
                names[tree] = names_of(self._store.blob(tree))
                waiting += [blob for blob, is_tree in names[tree] if is_tree and blob not in self._found]
                continue
            waiting.pop()
            if tree not in self._found:
                self._found[tree] = tree in self.blobs or any(
                    self._found[blob] if is_tree else blob in self.blobs for blob, is_tree in names.pop(tree)
                )
        return self._found[root]

    def rewrite_trees_without(
        self, root: BlobId, instead: Callable[[bytes], TreeEntry | ExcludedEntry | None]
    ) -> dict[bytes, bytes]:
        """Return the encoded trees without the blobs, by path: of `root`, and of those below that hold one of them.

        `instead`: gives the entry in place of one of the blobs, by its path (None: no entry). Raises as `holds` does.
        """
        rewritten: dict[bytes, bytes] = {}
        waiting = [(b"", root)]
        while waiting:
            folder, tree = waiting[-1]
            prefix = folder + b"/" if folder else b""
            entries = decode_tree(self._store.blob(tree))
            inner = [
                (prefix + entry.name, entry.blob)
                for entry in entries
                if isinstance(entry, TreeEntry)
                and entry.is_folder
                and entry.blob not in self.blobs
                and prefix + entry.name not in rewritten
                and self.holds(entry.blob)
            ]
            if inner:
                waiting += inner
                continue
            waiting.pop()
            kept = []
            for entry in entries:
                if isinstance(entry, TreeEntry) and entry.blob in self.blobs:
                    found = ExcludedEntry(entry.name) if entry.is_folder else instead(prefix + entry.name)
                    kept += [] if found is None else [found]
                elif isinstance(entry, TreeEntry) and prefix + entry.name in rewritten:
                    kept.append(entry._replace(blob=blob_id(rewritten[prefix + entry.name])))
                else:
                    kept.append(entry)
            rewritten[folder] = encode_tree(kept)
        return rewritten
