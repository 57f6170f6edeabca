"""Remove chosen blobs, or all that is stored of chosen paths, from the store for good, after planning what else goes.

Everything that mentions the blobs has to go, whatever its age. The edits before it in the same file go too, because the
rest of the file's history must begin where replay can; if a decision that mentions them named other edits, these go
with it. Snapshots are recorded again without the blobs.

No file is changed. A file at a chosen path counts as deleted from then on, and the settings exclude its path, so that
no later scan takes the bytes again. Any other file that contains the bytes now prevents the purge: a scan would.
"""

import os
import stat
from collections.abc import Callable, Iterator, Sequence, Set as AbstractSet
from contextlib import suppress
from itertools import chain, count
from typing import Final, Self

from objstore.disk.config.config_files import Configuration
from objstore.disk.config.path_patterns import escaped
from objstore.disk.fs.file_state import file_at
from objstore.disk.ignore_rules.scan_rules import rules_of_workspace
from objstore.history.documents.loader import delete_cached_documents
from objstore.history.past_states import all_states, past_states
from objstore.history.snapshot_check import naming_snapshot
from objstore.model.basic_types import EXTERNAL_CONVERSATION, Operation, Origin, Progress, Seq, Status
from objstore.model.ids import BlobId, blob_id
from objstore.model.large_file_placeholder import placeholder
from objstore.model.ranges import Range, ranges_of
from objstore.model.records import PURGED, Expiry, Pin, Snapshot
from objstore.model.relpath import is_within
from objstore.model.tree import ExcludedEntry, TreeEntry, decode_tree, encode_tree, names_of
from objstore.review.calls import policies
from objstore.review.calls.edit_recorder import Change, Recorder, Version, version_of
from objstore.storage.index.refcounts import held_blobs
from objstore.storage.index.rows import Tip
from objstore.storage.log.blob_codec import parse_blob_header
from objstore.storage.log.frames import FrameKind
from objstore.storage.store.object_store import Store
from objstore.storage.store.write_batch import Batch, now
from objstore.storage.transaction.index_repair import retry_with_rebuilt_index
from objstore.storage.transaction.journal import Journal
from objstore.storage.transaction.space_reserve import with_compaction_space
from objstore.upkeep.retention.compaction import CompactionResult, compact, plan_compaction
from objstore.upkeep.retention.expiry import dated_decisions, ordinal_of
from objstore.values.errors import CasError, DiskFull, IndexDamaged, PurgeUnfinished, StoreError, StoreLocked
from objstore.values.fastclass import replace, value
from objstore.values.request_errors import PurgeRefused
from objstore.worktree.external_changes import found_changes

__all__ = ["PurgePlan", "PurgeTarget", "past_blobs", "plan_purge", "purge", "stored_blobs"]

_TRIES = 5

_EXCLUDE: Final = "record.exclude"
"""The setting with what scans leave out from a purge on."""

_EMPTY: Final = blob_id(b"")


@value
class PurgeTarget:
    """The target of a purge."""

    blobs: frozenset[BlobId] = frozenset()
    paths: tuple[bytes, ...] = ()  # relative to the workspace: every state of what is or was at them and below them
    keeps_shared: bool = False  # whether to keep the blobs that other files contain now


@value
class PurgePlan:
    """The plan of a purge: everything that has to be removed with the blobs."""

    blobs: tuple[BlobId, ...]
    edits: tuple[Range, ...]  # that can no longer be shown or decided afterwards
    decisions: tuple[Range, ...]
    pending: tuple[Seq, ...]  # those of the edits that are pending
    snapshots: tuple[int, ...]  # that hold one of the blobs: each is replaced by one without them
    renewed: tuple[int, ...]  # the numbers of those, in the same order; 0: its whole tree goes, and none replaces it
    baseline: int | None  # the one of them that is the baseline; None: the baseline holds none of the blobs
    pins: tuple[int, ...]
    paths: tuple[str, ...]  # files at the target's paths whose present bytes go too
    excluded: tuple[str, ...]  # patterns that the settings exclude from now on
    shared: tuple[str, ...]  # other files that lose past states: they had the same bytes, or one decision rewrote both
    kept: tuple[str, ...]  # other files that contain some of the bytes, which are therefore kept
    files: tuple[str, ...]  # other files that contain one of the blobs now: while there are any, nothing is purged
    changed_outside: tuple[str, ...]  # that had one when last recorded and have changed since: as above

    @property
    def is_empty(self) -> bool:
        """Return whether there is nothing to remove."""
        return not self.blobs and not self.excluded

    @property
    def needs_force(self) -> bool:
        """Return whether something goes that a person has pinned, or has not reviewed yet."""
        return bool(self.pending or self.pins)


def past_blobs(journal: Journal, searched: Sequence[Sequence[bytes]]) -> list[list[BlobId]]:
    """Return, for each of some lists of paths, every past state of the files that were ever at one of them.

    Their present states are left out, and so is the empty file's: it has no content to remove. Raises what
    `past_states` and `file_at` raise.
    """
    index = journal.store.index
    all_tips = index.documents.tips()
    found: list[list[BlobId]] = []
    for paths, past in zip(searched, past_states(journal, searched), strict=True):
        own = {document for path in paths for document in index.documents.at(path)}
        tips = [tip for tip in all_tips if tip.document in own and not _is_changed_outside(journal, tip)]
        held = {tip.state.blob for tip in tips if tip.state is not None}
        found.append([blob for blob in past if blob not in held and blob != _EMPTY])
    return found


def stored_blobs(journal: Journal, searched: Sequence[Sequence[bytes]]) -> list[list[BlobId]]:
    """Return, for each of some lists of paths, the blobs that a purge of the paths would remove.

    Raises what `all_states` raises.
    """
    tips = journal.store.index.documents.tips()
    found = all_states(
        journal,
        [
            (paths, {tip.document for tip in tips if any(is_within(tip.path, own) for own in paths)})
            for paths in searched
        ],
    )
    return [[blob for blob in blobs if blob != _EMPTY] for blobs in found]


def plan_purge(journal: Journal, target: PurgeTarget) -> PurgePlan:
    """Return what has to go with the target, and change nothing.

    Raises SnapshotUnreadable, because the contents of such a snapshot are unknown, StoreDamaged, BlobDamaged, and what
    `file_at` raises.
    """
    return _plan(journal, _Holding.of(journal, target))


def purge(
    journal: Journal, target: PurgeTarget, *, force: bool, who: str, progress: Progress | None = None
) -> PurgePlan:
    """Remove the target from the store, with everything that mentions it, and return what that was.

    Raises PurgeRefused, with nothing changed, while another file contains one of the blobs, and without `force` also if
    an edit that mentions one is pending or pinned; StoreLocked, with nothing changed, while a compaction is running;
    PurgeUnfinished; and what Journal.commit, Configuration.set and `compact` raise.
    """

    def compact_once() -> CompactionResult:
        outcome = compact(journal, plan_compaction(journal, all_segments=True), progress)
        if outcome.is_done:
            _require_gone(journal, wanted)
        return outcome

    with journal.reading():
        holding = _Holding.of(journal, target)
    wanted = holding.trees.blobs
    # Planned once before writers have to wait: the trees of many snapshots take long to read, and never change. What
    # can't be read is reported under the lock, unless the snapshot is deleted by then.
    with suppress(StoreError), journal.reading():
        _plan(journal, holding)
    with journal.compacting():
        pass  # nothing expires while another compaction would keep the bytes from being removed
    with journal.writing(may_use_reserve=True) as batch:
        plan = _plan(journal, holding)
        if plan.files or plan.changed_outside or (plan.needs_force and not force):
            raise PurgeRefused(plan.files, plan.changed_outside, plan.pending, plan.pins)
        # Before the expiry, so that no scan takes the bytes again. On a full disk, after the space has become free.
        is_excluded = _exclude(journal, plan)
        # Before the expiry, or a crash would leave the text in a cached weave that nothing refers to any more. All of
        # them, because documents whose edits had all expired before may still be cached.
        delete_cached_documents(journal)
        edits = plan.edits + _end_documents(journal, batch, holding)
        if edits or plan.decisions or plan.snapshots or plan.pins:
            _renew_snapshots(journal, batch, holding, plan)
            expiry = Expiry(
                time=now(),
                edits=ranges_of(seq for first, last in edits for seq in range(first, last + 1)),
                decisions=plan.decisions,
                snapshots=plan.snapshots,
                pins=plan.pins,
                reason=PURGED,
                who=who,
                via=journal.decider.via,
                agent=journal.decider.agent,
            )
            batch.record(expiry)
            journal.commit(batch, ())
    for _ in range(_TRIES if wanted else 0):
        try:
            if with_compaction_space(journal, lambda: retry_with_rebuilt_index(journal, compact_once))[0].is_done:
                break
        except StoreLocked as error:
            raise PurgeUnfinished from error
    if not is_excluded:
        _exclude(journal, plan, is_last_try=True)
    if plan.excluded:
        policies.record_as_written(journal, _EXCLUDE, who=who)
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


def _plan(journal: Journal, holding: "_Holding") -> PurgePlan:
    with journal.store.index.still():
        return _Closure(journal, holding).plan()


@value
class _Holding:
    """The blobs of a target, and what holds them."""

    target: PurgeTarget
    trees: "_TreesHolding"
    kept: tuple[bytes, ...]  # other files that contain some of the target's bytes, which are therefore kept

    @classmethod
    def of(cls, journal: Journal, target: PurgeTarget) -> Self:
        """Find the blobs of a target. Raises what `all_states` raises."""
        blobs = target.blobs
        if target.paths:
            blobs = blobs.union(*stored_blobs(journal, [target.paths])) - {_EMPTY}
        holding = cls(target=target, trees=_TreesHolding(journal.store, blobs), kept=())
        if not target.keeps_shared:
            return holding
        with journal.store.index.still():
            shared = _Closure(journal, holding).shared()
        trees = _TreesHolding(journal.store, blobs - shared.keys())
        return cls(target=target, trees=trees, kept=tuple(sorted({path for each in shared.values() for path in each})))

    def is_own(self, path: bytes) -> bool:
        """Return whether a path is one of the target's, or below one."""
        return any(is_within(path, own) for own in self.target.paths)


def _end_documents(journal: Journal, batch: Batch, holding: _Holding) -> tuple[Range, ...]:
    """Record that the files at the target's paths are gone, so that no document holds their bytes; return the edits.

    Their files stay. Nothing that recovers from a crash removes a file because of such an edit: it says what happened
    outside, and not what to do.
    """
    recorder = Recorder(journal, batch)
    seqs: list[Seq] = []
    for tip in journal.store.index.documents.tips():
        if tip.state is not None and tip.state.blob in holding.trees.blobs and holding.is_own(tip.path):
            change = Change(
                document=tip.document,
                operation=Operation.DELETE,
                path=tip.path,
                source=None,
                before=Version(content=placeholder(tip.state.blob), state=tip.state),
                after=None,
                hunks=None,
                origin=Origin.EXTERNAL,
            )
            view = recorder.record(
                change,
                document=tip.document,
                conversation=EXTERNAL_CONVERSATION,
                call=journal.store.next_call(EXTERNAL_CONVERSATION),
                ordinal=len(seqs),
                tool="purge",
                notes={},
            )
            seqs.append(view.edit.seq)
    return ranges_of(seqs)


def _exclude(journal: Journal, plan: PurgePlan, *, is_last_try: bool = False) -> bool:
    """Add the plan's patterns to the settings; return False if the disk is full, unless it is the last try."""
    if not plan.excluded:
        return True
    try:
        Configuration(journal.tree.root).add(_EXCLUDE, plan.excluded)
    except DiskFull:
        if is_last_try:
            raise
        return False
    return True


def _renew_snapshots(journal: Journal, batch: Batch, holding: _Holding, plan: PurgePlan) -> None:
    """Record each snapshot of the plan again, without the blobs and with the time that it had.

    In the baseline, the present state of a file takes the place of one of the blobs. Without a baseline, changes of
    files that were never recorded could no longer be detected.
    """

    def present_entry(path: bytes) -> TreeEntry | ExcludedEntry | None:
        name = path.rpartition(b"/")[2]
        if journal.store.ever_at(path) or holding.is_own(path):
            return ExcludedEntry(name)  # a file with edits: they say what it was
        try:
            found = version_of(file_at(journal.tree, path), journal.tree, path)
        except CasError:
            return ExcludedEntry(name)
        if found is None:
            return None
        if found.state.blob in holding.trees.blobs:
            return ExcludedEntry(name)
        batch.state(found.content, name=found.state.blob, source=found.source)
        return TreeEntry.of(name, found.state)

    def no_entry(path: bytes) -> ExcludedEntry:
        return ExcludedEntry(path.rpartition(b"/")[2])

    renewed = dict(zip(plan.snapshots, plan.renewed, strict=True))
    for row in journal.store.index.holders.snapshots():
        number = renewed.get(row.number, 0)
        record = journal.store.record(row.place)[0] if number else None
        if not isinstance(record, Snapshot):
            continue
        instead = present_entry if row.number == plan.baseline else no_entry
        trees = holding.trees.rewrite_trees_without(record.root, instead)
        for encoded in trees.values():
            batch.blob(encoded)
        batch.record(replace(record, number=number, root=blob_id(trees[b""])))


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

    def __init__(self, journal: Journal, holding: _Holding) -> None:
        self._journal = journal
        self._store = journal.store
        self._index = journal.store.index
        self._holding = holding
        self._blobs = holding.trees.blobs
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
        kept = self._index.edits.documents_of({*chain.from_iterable(named.values())}).keys() - self._edits
        gone |= {number for number, numbers in named.items() if kept.isdisjoint(numbers)}
        snapshots, baseline = [*self._snapshots()], self._index.holders.baseline()
        next_number = count(self._index.numbers.next_snapshot())
        now, changed = self._other_files()
        return PurgePlan(
            blobs=tuple(sorted(self._blobs)),
            edits=ranges_of(self._edits),
            decisions=ranges_of(gone),
            pending=tuple(sorted(self._pending)),
            snapshots=tuple(number for number, _ in snapshots),
            renewed=tuple(0 if root in self._blobs else next(next_number) for _, root in snapshots),
            baseline=next((number for number, _ in snapshots if baseline and number == baseline.number), None),
            pins=tuple(self._pins()),
            paths=tuple(os.fsdecode(path) for path in self._own_files()),
            excluded=tuple(self._excluded()),
            shared=tuple(map(os.fsdecode, self._losing_states(now.keys() | changed.keys()))),
            kept=tuple(map(os.fsdecode, self._holding.kept)),
            files=tuple(map(os.fsdecode, now)),
            changed_outside=tuple(map(os.fsdecode, changed)),
        )

    def shared(self) -> dict[BlobId, list[bytes]]:
        """Return the blobs that files outside the target contain, or had when last recorded, with these files."""
        found: dict[BlobId, list[bytes]] = {}
        for files in self._other_files():
            for path, blob in files.items():
                found.setdefault(blob, []).append(path)
        return found

    def _other_files(self) -> tuple[dict[bytes, BlobId], dict[bytes, BlobId]]:
        """Return the files outside the target that contain one of the blobs, with the blob.

        And those that had one when last recorded, and have changed since without a record.
        """
        now: dict[bytes, BlobId] = {}
        changed: dict[bytes, BlobId] = {}
        for tip in self._index.documents.tips():
            if tip.state is not None and tip.state.blob in self._blobs and not self._holding.is_own(tip.path):
                (changed if _is_changed_outside(self._journal, tip) else now)[tip.path] = tip.state.blob
        baseline = self._index.holders.baseline()
        if baseline is not None and baseline.root not in self._blobs and self._holding.trees.holds(baseline.root):
            now |= self._unrecorded(baseline.root)
        return now, changed

    def _own_files(self) -> list[bytes]:
        """Return the files at the target's paths whose present state is one of the blobs."""
        return [
            tip.path
            for tip in self._index.documents.tips()
            if tip.state is not None and tip.state.blob in self._blobs and self._holding.is_own(tip.path)
        ]

    def _losing_states(self, present: AbstractSet[bytes]) -> list[bytes]:
        """Return the files outside the target, besides `present`, some of whose edits go."""
        documents = {*self._index.edits.documents_of(self._edits).values()}
        paths = {tip.path for tip in self._index.documents.tips_of(documents)}
        return sorted(path for path in paths - present if self._holding.target.paths and not self._holding.is_own(path))

    def _excluded(self) -> Iterator[str]:
        """Yield a pattern for each of the target's paths that exists and that scans take."""
        rules = rules_of_workspace(self._journal.tree.root)
        for path in map(os.fsdecode, self._holding.target.paths):
            with suppress(OSError):
                is_folder = stat.S_ISDIR(os.lstat(path, dir_fd=self._journal.tree.fd).st_mode)
                if not rules.is_never_taken(path, is_folder=is_folder):
                    yield escaped(path) + ("/" if is_folder else "")

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

    def _unrecorded(self, baseline: BlobId) -> dict[bytes, BlobId]:
        """Return the files without an edit that contained one of the blobs at the baseline, and still do."""
        paths: list[bytes] = []
        self._holding.trees.rewrite_trees_without(baseline, paths.append)
        found: dict[bytes, BlobId] = {}
        for path in paths:
            with suppress(CasError):  # an unreadable file says nothing
                unrecorded = not self._store.ever_at(path) and not self._holding.is_own(path)
                state = file_at(self._journal.tree, path) if unrecorded else None
                if state is not None and state[0].blob in self._blobs:
                    found[path] = state[0].blob
        return found

    def _snapshots(self) -> Iterator[tuple[int, BlobId]]:
        """Yield the number and the root of each snapshot that holds one of the blobs."""
        for row in self._index.holders.snapshots():
            record, _ = self._store.record(row.place)
            if not row.expired and isinstance(record, Snapshot):
                with naming_snapshot(self._store, (record.number, record.root)):
                    is_holding = self._holding.trees.holds(record.root)
                if is_holding:
                    yield row.number, record.root

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
