"""The workspace: one folder with its store, and everything that surfaces may do with it."""

from __future__ import annotations

import os
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Final, Self

from objstore.errors import ConversationReserved, FileChanged, StoreReplaced
from objstore.fastclass import replace
from objstore.fs.confined_path import MAX_FILE, Tree, find_root
from objstore.fs.disk import Disk, new_file_mode
from objstore.fs.reserved_names import LOG_NAME, STORE_NAME
from objstore.model.basic_types import Action, FileState, OnExternal, Origin, Status, ignore_progress
from objstore.model.ids import HASH_SIZE
from objstore.model.large_file_placeholder import MAX_BLOB
from objstore.transaction.journal import Journal
from objstore.worktree.external_changes import EXTERNAL_CONVERSATION

# What only some methods need is imported in them: `cas status` must not wait for the review core to load.
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from objstore.config.settings import RetentionLimits
    from objstore.fs.tree_files import Files
    from objstore.history.completions import NameKind, NameSuggestion
    from objstore.history.patch_series import SeriesStep
    from objstore.integrity.inspection import BlamedLines, RecordView, SegmentView, StoreStats
    from objstore.model.basic_types import Progress, Seq, Unit
    from objstore.model.ids import BlobId
    from objstore.model.results import CallInfo, CallOutcome, Conflicted, DecisionOutcome, FileEffect
    from objstore.model.views import (
        Content,
        DecisionView,
        EditFilter,
        EditView,
        ExternalChange,
        Seen,
        State,
        StatusReport,
        UnresolvedMarkers,
    )
    from objstore.packing.repack import Repacked, RepackPlan
    from objstore.retention.garbage_collection import GcPlan, GcResult
    from objstore.retention.pins import PinView
    from objstore.retention.purge import PurgePlan
    from objstore.review.decisions import DecisionRequest
    from objstore.review.tracked_call import Call
    from objstore.text.hunks import Hunk
    from objstore.tracking.hook_sessions import HookSessions
    from objstore.tracking.record import Recorded
    from objstore.tracking.snapshot_create import SnapshotResult
    from objstore.tracking.snapshot_diff import SnapshotChange
    from objstore.tracking.snapshot_list import PathState, SnapshotView
    from objstore.tracking.snapshot_restore import RestoreResult
    from objstore.transfer.mcpdiff_import import McpdiffImport
    from objstore.worktree.walk import ScanLimits, SkippedPath

__all__ = ["Workspace"]

_STATUS_OF: Final = {Action.ACCEPT: Status.ACCEPTED, Action.REJECT: Status.REJECTED, Action.RESET: Status.PENDING}


@cache
def _call_type() -> type[Call]:
    """Return `Call`, imported once: an import that was done already takes 2.5 µs, a two-hundredth of a write."""
    from objstore.review.tracked_call import Call

    return Call


class Workspace:
    """One folder with its store. Safe to use from several threads; several processes may have it open."""

    def __init__(self, journal: Journal) -> None:
        """Wrap an open journal; use `open`, `init` or `find`."""
        self._journal = journal
        self._preview: Callable[[BlobId], bytes] | None = None  # None: nothing but what is stored was planned
        self.root: Final = journal.tree.root
        new_file_mode()

    @classmethod
    def init(cls, root: str | os.PathLike[str], disk: Disk | None = None, *, is_real: bool = False) -> Workspace:
        """Make a store in `root` if there is none, and open it. `is_real`: as of `open`.

        Raises FileMissing, PathReserved, StorePlaceTaken, PermissionRefused, and as `open`.
        """
        from objstore.store.create import create_workspace
        from objstore.transaction.space_reserve import reserve_space

        disk = disk or Disk()
        tree = Tree(root, is_real=is_real)
        try:
            create_workspace(tree.root, disk, tree.fd)
            tree.require_in_place()
            reserve_space(tree.root, disk)
        finally:
            tree.close()
        return cls.open(tree.root, disk, is_real=is_real)

    @classmethod
    def open(cls, root: str | os.PathLike[str], disk: Disk | None = None, *, is_real: bool = False) -> Workspace:
        """Open the store in `root`, and finish what a crashed writer left, unless another process is at it.

        `is_real`: `root` is where the folder was found to be; a link put on the way since is not followed.
        Raises NotAWorkspace, StoreDamaged, StoreReplaced, and PathIsSymlink for such a link.
        """
        journal = Journal(os.fspath(root), disk or Disk(), is_real=is_real)
        try:
            journal.finish()
        except BaseException:
            journal.close()
            raise
        return cls(journal)

    @classmethod
    def find(cls, start: str | os.PathLike[str]) -> Workspace:
        """Open the nearest workspace at or above `start`. Raises NotAWorkspace, StoreDamaged."""
        return cls.open(find_root(os.fspath(start)))

    def reopen(self) -> None:
        """Open the store again if it refuses to write because a write has failed. Raises as `open` does."""
        self._journal.reopen()

    @property
    def is_there(self) -> bool:
        """Return whether its folder is still the one of that path, and a store in it."""
        return self._journal.tree.is_there and os.path.isdir(os.path.join(self.root, STORE_NAME, LOG_NAME))

    def close(self) -> None:
        """Close every file."""
        self._journal.close()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    @contextmanager
    def reporting_progress(self, progress: Progress) -> Iterator[None]:
        """Have `progress` told how far long work is, in the thread that does it: looks, calls, decisions, series."""
        self._journal.progress = progress
        try:
            yield
        finally:
            self._journal.progress = ignore_progress

    # ---- files as they stand

    @property
    def files(self) -> Files:
        """Return the folder's files as they stand; looking at them records nothing."""
        return self._journal.files

    def relative(self, path: str, held_by: Sequence[int] = ()) -> str:
        """Return the canonical path below the root, also of what has gone, or whose folder is a link by now.

        `held_by`: snapshots; what one of them has at the path as it is spelt comes first.
        Raises what Files.relative raises, and NoSuchName and SnapshotUnreadable of a snapshot.
        """
        if held_by:
            from objstore.tracking import snapshot_restore

            with self._journal.reading():
                spelt = snapshot_restore.as_spelt(self._journal, path, held_by)
            if spelt is not None:
                return spelt
        found = self.files.relative(path, gone=True)
        if self._journal.tree.within(path) == found:
            return found
        from objstore.history import revspec

        with self._journal.reading():
            return os.fsdecode(revspec.as_spelt(self._journal, path, os.fsencode(found)))

    def recorded(self, path: str) -> str:
        """Return the path as `relative`, but as it is spelt where a link by now hides what was recorded there.

        What asks for history by it is told of both. Raises what Files.relative raises.
        """
        from objstore.history import revspec

        with self._journal.reading():
            hidden = revspec.hidden_path(self._journal, path)
        return self.relative(path) if hidden is None else os.fsdecode(hidden)

    def spelt(self, path: str) -> str:
        """Return the path as it is spelt, where it, or a folder of it, is a link by now, and else as `relative` does.

        Snapshots may tell of it where nothing was recorded. Raises what Files.relative raises.
        """
        from objstore.history import revspec

        found = revspec.linked_spelling(self._journal, path)
        return self.relative(path) if found is None else found

    def read(self, path: str, *, limit: int = MAX_FILE) -> Content:
        """Return the file as it stands on disk. Raises what Files.read raises."""
        return self.files.read(path, limit=limit)

    # ---- changing files

    @contextmanager
    def call(
        self,
        info: CallInfo,
        paths: Sequence[str] = (),
        before_storing: Callable[[], object] = lambda: None,
        *,
        waiting: Callable[[], object] | None = None,
        dry_run: bool = False,
    ) -> Iterator[Call]:
        """Hold the writer lock for one tracked call. Leaving without `commit` changes nothing.

        `paths`: of files that it will touch. Large ones are stored before the lock is taken, so that nobody waits.
        `before_storing`: called before that, if there are any, by who may still refuse the call. Raises what it raises.
        `waiting`: is called now and then while another process writes; what it raises ends the call.
        `dry_run`: it is left without `commit`, and the store need not be one that may be written.

        Raises StoreLocked, and ConversationReserved for the conversation of edits that nobody recorded.
        """
        if info.conversation == EXTERNAL_CONVERSATION:
            raise ConversationReserved(info.conversation)
        large = []
        if paths:
            from objstore.fs.file_state import large_files

            large = large_files(self._journal.tree.confined(info.within), paths)
        if large:
            from objstore.transaction.prestore import prestore_large_files

            before_storing()
            prestore_large_files(self._journal, large)
        if dry_run:
            with self._journal.session(dry_run=True, waiting=waiting) as (batch, _):
                yield _call_type()(self._journal, batch, info)
            return
        with self._journal.writing(waiting=waiting) as batch:
            yield _call_type()(self._journal, batch, info)

    # ---- history

    def edits(self, wanted: EditFilter | None = None) -> list[EditView]:
        """Return the edits that fit (None: all), in order."""
        from objstore.history import edit_queries
        from objstore.model.views import EditFilter

        with self._journal.reading():
            return edit_queries.edits(self._journal, EditFilter() if wanted is None else wanted)

    def edit(self, seq: int) -> EditView:
        """Return one edit. Raises NoSuchName."""
        from objstore.history import edit_queries

        with self._journal.reading():
            return edit_queries.edit(self._journal, seq)

    def find_units(self, spelling: str) -> tuple[EditView, tuple[Unit, ...]]:
        """Return the edit and the units that a spelling names. Raises NoSuchName, AmbiguousName."""
        from objstore.history import revspec

        with self._journal.reading():
            seq, units = revspec.find_units(self._journal, spelling)
            return self.edit(seq), units

    def find_conversation(self, spelling: str) -> str:
        """Return the conversation that a spelling names. Raises NoSuchName, AmbiguousName."""
        from objstore.history import revspec

        with self._journal.reading():
            return revspec.find_conversation(self._journal, spelling)

    def names_with_prefix(self, kind: NameKind, spelling: str, limit: int) -> list[NameSuggestion]:
        """Return up to `limit` names that begin with `spelling`, those most likely to be meant first."""
        from objstore.history import completions

        with self._journal.reading() as store:
            return completions.names_with_prefix(store, kind, spelling, limit)

    def names_similar_to(self, kind: NameKind, spelling: str, limit: int) -> list[str]:
        """Return up to `limit` names that a mistyped `spelling` may have been meant for, the nearest first."""
        from objstore.history import completions

        with self._journal.reading() as store:
            return completions.names_similar_to(store, kind, spelling, limit)

    def find_state(self, spelling: str) -> State:
        """Return the recorded state that a spelling names. Raises NoSuchName, AmbiguousName, EditExpired."""
        from objstore.history import revspec

        with self._journal.reading() as store, store.index.still():
            return revspec.find_state(self._journal, spelling)

    def last_state(self, path: str) -> State:
        """Return the state in which the file at a path was last recorded, whatever its name. Raises NoSuchName."""
        from objstore.history import revspec

        with self._journal.reading():
            return revspec.last_state(self._journal, path)

    def blob(self, blob: BlobId) -> bytes:
        """Return a blob's bytes, verified. Raises BlobMissing, BlobDamaged, BlobTooLarge."""
        with self._journal.reading() as store:
            return store.blob(blob)

    def text(self, blob: BlobId) -> bytes:
        """Return what stands for a blob in a diff: its bytes, or of a large one a line that no diff takes for text.

        Raises BlobMissing, BlobDamaged.
        """
        with self._journal.reading() as store:
            return store.text(blob)

    def size(self, blob: BlobId) -> int:
        """Return how many bytes a blob has. Raises BlobMissing."""
        with self._journal.reading() as store:
            return store.size(blob)

    def pieces(self, blob: BlobId) -> Iterator[bytes]:
        """Yield a blob's bytes, whatever their number; each piece is verified, and at the end the whole.

        Raises BlobMissing, BlobDamaged, and StoreReplaced where the store was opened again meanwhile.
        """
        # Who takes them may take its time, or never come back: nobody is kept out between two.
        with self._journal.reading() as begun:
            pieces = begun.pieces(blob)
            piece = next(pieces, None)
        while piece is not None:
            yield piece
            with self._journal.reading() as store:
                if store is not begun:
                    raise StoreReplaced(self.root)  # with that, what was begun is closed
                piece = next(pieces, None)

    def sha256(self, blob: BlobId) -> str:
        """Return the SHA-256 of a blob's bytes, in hex. Raises BlobMissing, BlobDamaged."""
        with self._journal.reading() as store:
            return store.sha256(blob).hex()

    def decisions(self) -> list[DecisionView]:
        """Return every decision, oldest first, those taken back included."""
        from objstore.history import edit_queries

        with self._journal.reading():
            return edit_queries.decisions(self._journal)

    def seen(self) -> Seen:
        """Return how far the history goes now: cheap enough to be asked twice a second."""
        from objstore.history import edit_queries

        with self._journal.reading():
            return edit_queries.seen(self._journal)

    def changed_since(self, seen: Seen) -> list[EditView]:
        """Return the edits that anybody has recorded or decided since the history went as far as `seen`, in order."""
        from objstore.history import edit_queries

        with self._journal.reading():
            return edit_queries.changed_since(self._journal, seen)

    def status(self) -> StatusReport:
        """Return the workspace at a glance."""
        from objstore.review import status

        with self._journal.translating_index_errors():
            return status.report(self._journal)

    def external_changes(self) -> tuple[ExternalChange, ...]:
        """Return every recorded file that is not what the journal says."""
        from objstore.review import status

        with self._journal.translating_index_errors():
            return status.external_changes(self._journal)

    def markers(self) -> tuple[UnresolvedMarkers, ...]:
        """Return the conflict markers that decisions wrote and that still stand in their files, by edit."""
        from objstore.review import status

        with self._journal.reading():
            return status.unresolved_markers(self._journal)

    # ---- what the store holds

    def records(self) -> list[RecordView]:
        """Return every record in the order of the journal. Raises StoreDamaged."""
        from objstore.integrity import inspection

        with self._journal.reading():
            return list(inspection.records(self._journal))

    def segments(self) -> list[SegmentView]:
        """Return every segment, in order. Raises StoreDamaged."""
        from objstore.integrity import inspection

        with self._journal.reading():
            return inspection.segments(self._journal)

    def stats(self) -> StoreStats:
        """Return the store in numbers. Raises StoreDamaged."""
        from objstore.integrity import inspection

        with self._journal.reading():
            return inspection.stats(self._journal)

    def blobs(self) -> list[BlobId]:
        """Return every blob's id, ascending."""
        with self._journal.reading() as store:
            return store.index.blobs_between(bytes(HASH_SIZE), b"\xff" * HASH_SIZE, -1)

    def files_at(self, seq: int | None = None, *, before: bool = False) -> dict[str, FileState]:
        """Return every file that existed after edit `seq` (`before`: just before it; None: now), by path.

        Raises NoSuchName.
        """
        from objstore.integrity import inspection

        with self._journal.reading():
            return inspection.files_at(self._journal, seq, before=before)

    def files_at_moment(self, moment: int, below: str = "") -> dict[str, FileState]:
        """Return every file below a folder ("": anywhere) that existed at a moment, by path.

        `moment`: microseconds since 1970-01-01 UTC. As for `PATH@2h`, edits, decisions and snapshots tell.
        """
        from objstore.history.state_at import files_at_moment

        with self._journal.reading() as store, store.index.still():
            found = files_at_moment(self._journal, moment, os.fsencode(below))
            return {os.fsdecode(path): state for path, state in found.items()}

    def blame(self, path: str, at: tuple[Seq, bool] | None = None) -> tuple[bytes, list[BlamedLines]]:
        """Return the last recorded bytes of the file at `path`, and which hunk put each of its lines there.

        `at`: the bytes are those after this edit of the file, or (True) before it. Raises NoSuchName where no file is
        recorded to have stood there, EditExpired, and HistoryBroken.
        """
        from objstore.integrity import inspection

        with self._journal.reading():
            return inspection.blame(self._journal, path, at)

    def restore(self, state: State, *, dry_run: bool = False) -> CallOutcome:
        """Bring a recorded state back as a tracked edit of a person. `dry_run`: only return what it would be.

        Raises FileChanged where a folder of its path is a link by now, and what Call.write and Call.commit raise.
        """
        from objstore.file_changes.open_dirs import first_symlink_on
        from objstore.model.results import CallInfo

        link = first_symlink_on(self._journal.tree, os.fsencode(state.path))
        if link:
            raise FileChanged(state.path, link)
        with self.call(CallInfo(tool="restore", origin=Origin.PERSON)) as call:
            if state.blob is not None:
                call.restore(state.path, FileState(blob=state.blob, mode=state.mode))
            elif call.exists(state.path):
                call.delete(state.path)
            self._preview = call.text if dry_run else None
            return call.commit(dry_run=dry_run)

    # ---- what happened while nobody watched, and snapshots

    def record_changes(
        self,
        info: CallInfo,
        paths: Sequence[str] | None = None,
        *,
        ignored: bool = False,
        limits: ScanLimits | None = None,
    ) -> Recorded:
        """Record each file that is not in its known state as an edit of one call, and return what was found.

        `info` says whose call it was: an agent's, a person's, or (origin external) nobody's, as before a command.
        `paths`: only these files, and what lies below these folders; for files the tree is not walked.
        `ignored`: without `paths`, also those recorded files that ignore rules leave out by now.
        The first look takes a baseline: what stands then is known from there on, and is no edit.
        Raises ConversationReserved, SnapshotIncomplete (at the first look), and what paths and Call.commit raise.
        """
        if info.conversation == EXTERNAL_CONVERSATION and info.origin is not Origin.EXTERNAL:
            raise ConversationReserved(info.conversation)
        from objstore.tracking import record
        from objstore.transaction import index_repair

        def recorded() -> Recorded:
            with self._journal.translating_index_errors():
                return record.record_changes(self._journal, info, paths, ignored=ignored, limits=limits)

        return index_repair.rebuild_index_and_retry(self._journal, recorded)

    def agent_calls(self) -> HookSessions:
        """Return what is known of the calls that agents' own programs carry out in the workspace."""
        from objstore.tracking.hook_sessions import HookSessions

        return HookSessions(self._journal)

    def take_snapshot(
        self, path: str = "", *, who: str, title: str = "", limits: ScanLimits | None = None
    ) -> SnapshotResult:
        """Record what stands in a folder ("": the workspace). `who`: who asked for it; not empty.

        Raises SnapshotIncomplete, FileMissing, and what paths and Call.commit raise.
        """
        from objstore.tracking import snapshot_create
        from objstore.transaction import index_repair

        def taken() -> SnapshotResult:
            with self._journal.translating_index_errors():
                return snapshot_create.create(self._journal, path, title=title, who=who, limits=limits)[0]

        return index_repair.rebuild_index_and_retry(self._journal, taken)

    def snapshots(self) -> list[SnapshotView]:
        """Return every snapshot that has not been deleted, oldest first."""
        from objstore.tracking import snapshot_list

        with self._journal.reading():
            return snapshot_list.listed(self._journal)

    def snapshot(self, number: int) -> SnapshotView:
        """Return one snapshot. Raises NoSuchName."""
        from objstore.tracking import snapshot_list

        with self._journal.reading():
            return snapshot_list.find(self._journal, number)

    def snapshot_files(self, number: int) -> list[tuple[str, PathState]]:
        """Return every path that a snapshot has, folders apart, with what stood there. Raises NoSuchName."""
        from objstore.tracking import snapshot_list

        with self._journal.reading():
            return list(snapshot_list.listing(self._journal, number))

    def snapshot_changes(
        self, number: int, other: int | None = None, *, paths: Sequence[str] = (), limits: ScanLimits | None = None
    ) -> tuple[list[SnapshotChange], tuple[SkippedPath, ...]]:
        """Return what differs between a snapshot and another (None: what stands there now), and what was passed over.

        With `paths`, at and below these. Raises NoSuchName, NotInSnapshot, SnapshotsApart, SnapshotIncomplete.
        """
        from objstore.tracking import snapshot_diff

        with self._journal.reading():
            return snapshot_diff.changes(self._journal, number, other, paths=paths, limits=limits)

    def restore_snapshot(
        self,
        number: int,
        paths: Sequence[str] = (),
        *,
        dry_run: bool = False,
        limits: ScanLimits | None = None,
    ) -> RestoreResult:
        """Bring back what a snapshot holds, or what it holds at and below `paths`, as one call of a person.

        Only what differs is written; files that came since are deleted, and what it does not cover is left alone.
        Raises NoSuchName, SnapshotIncomplete, FileChanged, and what Call.commit raises.
        """
        from objstore.model.results import CallInfo
        from objstore.tracking import snapshot_restore

        with self._journal.reading():
            plan = snapshot_restore.plan_restore(self._journal, number, paths, limits=limits)
        if dry_run or not plan.changes:
            return plan
        info = CallInfo(tool="snapshot restore", origin=Origin.PERSON, notes={"snapshot": str(number)})
        with self.call(info) as call:
            return replace(
                plan, outcome=snapshot_restore.carry_out(plan, call, self._journal.tree, self._journal.progress)
            )

    def delete_snapshots(self, numbers: Sequence[int], *, who: str) -> list[SnapshotView]:
        """Give snapshots up and return them; gc may then take what only they held.

        Of a baseline, what changed against it is recorded before, as nobody's edits, and another one is taken. Raises
        NoSuchName, and then what `record_changes` raises.
        """
        from objstore.tracking import snapshot_delete

        with self._journal.translating_index_errors():
            return snapshot_delete.delete(self._journal, numbers, who=who)

    # ---- elsewhere

    def export_bundle(self, path: str, progress: Progress | None = None) -> int:
        """Write all that is recorded into a new file, for `import_bundle` elsewhere; return its size in bytes.

        Raises FileExists, PathReserved, NotBundled, StoreDamaged and what the disk raises.
        """
        from objstore.transfer.import_export import export_bundle

        with self._journal.translating_index_errors():
            return export_bundle(self._journal, path, progress)

    def send_bundle(self, take: Callable[[bytes], None], progress: Progress | None = None) -> None:
        """Hand all that is recorded to `take`, piece by piece, as `export_bundle` writes it.

        Raises NotBundled and StoreDamaged.
        """
        from objstore.transfer.import_export import send_bundle

        with self._journal.translating_index_errors():
            send_bundle(self._journal, take, progress)

    def import_mcpdiff_history(
        self, history: str, *, origin: str | None = None, partly: bool = False, dry_run: bool = False
    ) -> McpdiffImport:
        """Record what mcpdiff's history in the folder `history` tells of this workspace's files; none is written.

        `origin`: where the workspace stood when that was written; None: where it stands. `partly`: also where not
        everything can be taken over. Raises FileMissing, HistoryBroken, and what Call.commit raises.
        """
        from objstore.transfer.mcpdiff_import import import_mcpdiff_history

        return import_mcpdiff_history(self._journal, history, origin=origin, partly=partly, dry_run=dry_run)

    def series(self, seqs: Sequence[Seq]) -> list[SeriesStep]:
        """Return what each of the edits that is live adds to all other live ones, in order.

        Raises NoSuchName, EditExpired, HistoryBroken, and SeriesBroken where others need what is chosen.
        """
        from objstore.history.patch_series import series

        with self._journal.reading() as store, store.index.still():
            return list(series(self._journal, seqs))

    # ---- review

    def decide(  # noqa: PLR0913 - each is one thing that a reviewer may say
        self,
        action: Action,
        units: Sequence[Unit],
        *,
        reason: str = "",
        who: str = "",
        cascade: bool = False,
        markers: bool = False,
        on_external: OnExternal = OnExternal.ABORT,
        expected: Sequence[ExternalChange] = (),
        shown: Mapping[Unit, Status] | None = None,
        told: Conflicted | None = None,
        dry_run: bool = False,
    ) -> DecisionOutcome:
        """Accept, reject or reset units: on disk and in the journal, or, where that can't be, not at all.

        `cascade`: reject also what can't be live without what is rejected. `markers`: set aside what can't be live
        with the decision, and put both into the text, between conflict markers; a new decision on any of it takes
        them out again. `expected`: the external changes that a person was shown; if the disk has moved on, FileChanged
        is raised. `shown`: the statuses that they saw, also of what is to go with a cascade; where a unit is neither so
        nor as it shall be, DecidedMeanwhile is raised. `told`: the conflict that they were shown before they said to
        cascade; if there is another one by now, that is the outcome. `dry_run`: only say what would happen.
        Raises NoSuchName, HistoryBroken and what Call.commit raises.
        """
        from objstore.review.decisions import DecisionRequest

        request = DecisionRequest(
            action=action,
            verdicts=dict.fromkeys(units, _STATUS_OF[action]),
            reason=reason,
            who=who,
            cascade=cascade and action is Action.REJECT,
            markers=markers,
            on_external=on_external,
            expected=tuple(expected),
            shown=shown or {},
            refusal=told,
            dry_run=dry_run,
        )
        return self._outcome(request)

    def undo(
        self,
        number: int = 0,
        *,
        past: Iterable[int] = (),
        who: str = "",
        on_external: OnExternal = OnExternal.ABORT,
        expected: Sequence[ExternalChange] = (),
        seen: Seen | None = None,
        dry_run: bool = False,
    ) -> DecisionOutcome:
        """Take back the newest decision that was not taken back yet: every unit gets the status it had before it.

        `number`: of the decision that is meant, so that no other one goes: where it is not the newest that stands,
        there is nothing to do. 0: whichever that is. `past`: decisions that may have been made since, and stay, as long
        as they are of other units. `seen`: how far the history went when a person looked; if anything was decided
        since, DecidedMeanwhile is raised.
        """
        from objstore.review.decisions import DecisionRequest

        request = DecisionRequest(
            action=Action.UNDO,
            who=who,
            on_external=on_external,
            expected=tuple(expected),
            seen=seen,
            dry_run=dry_run,
            takes_back=number,
            past=frozenset(past),
        )
        return self._outcome(request)

    def redo(
        self,
        *,
        who: str = "",
        on_external: OnExternal = OnExternal.ABORT,
        expected: Sequence[ExternalChange] = (),
        seen: Seen | None = None,
        dry_run: bool = False,
    ) -> DecisionOutcome:
        """Make the decision again that the last undo took back, unless something else was decided since.

        `seen`: as of `undo`.
        """
        from objstore.review.decisions import DecisionRequest

        request = DecisionRequest(
            action=Action.REDO,
            who=who,
            on_external=on_external,
            expected=tuple(expected),
            seen=seen,
            dry_run=dry_run,
        )
        return self._outcome(request)

    def amendable(self, seq: int) -> Content:
        """Return the file that an edit changed, as it stands on disk. Raises NoSuchName, NotAmendable, FileMissing."""
        from objstore.review.amend import amendable_path

        with self._journal.reading():
            path = amendable_path(self._journal, seq)
        return self.read(path, limit=MAX_BLOB)

    def amend(
        self,
        seq: int,
        content: bytes,
        *,
        seen: BlobId,
        base: bytes | None = None,
        hunks: Sequence[Hunk] | None = None,
        who: str = "",
    ) -> CallOutcome:
        """Give the file that an edit changed new bytes, recorded as an amendment of the edit, by a person.

        Whoever rejects the whole edit rejects its amendments with it; an amendment rejected gives back the edit's own
        result. `seen`: what the file held when the reviewer began, and `base` its bytes. If that has changed, it raises
        FileChanged, unless `base` is given and the change can be carried over to the text that stands there now.
        `hunks`: the lines that were really changed, where that is known: of equal lines no comparison can tell. Raises
        NoSuchName, NotAmendable, FileMissing and what Call.commit raises.
        """
        from objstore.review.amend import amend

        return amend(self._journal, seq, content, who=who, seen=seen, base=base, hunks=hunks)

    def preview(self, effect: FileEffect) -> tuple[bytes | None, bytes | None]:
        """Return a file before and after an effect, as `text` does (None: no file); also of the last dry run's."""
        with self._journal.reading() as store:
            content = store.text if self._preview is None else self._preview
            return (
                None if effect.before is None else content(effect.before),
                None if effect.after is None else content(effect.after),
            )

    # ---- retention

    def pins(self) -> list[PinView]:
        """Return every pin that holds, oldest first."""
        from objstore.retention import pins

        with self._journal.reading():
            return pins.pins(self._journal)

    def pin(self, edits: Iterable[Seq], blobs: Iterable[BlobId] = (), *, title: str = "", who: str = "") -> PinView:
        """Keep edits, and with each what came after it in its file, and blobs, until the pin is taken out.

        Raises NoSuchName, EditExpired, BlobMissing, and what Call.commit raises.
        """
        from objstore.retention import pins
        from objstore.transaction import index_repair

        wanted = tuple(edits), tuple(blobs)
        return index_repair.rebuild_index_and_retry(
            self._journal, lambda: pins.pin(self._journal, *wanted, title=title, who=who)
        )

    def unpin(self, numbers: Iterable[int], *, who: str = "") -> list[PinView]:
        """Take pins out and return them. Raises NoSuchName, with none taken out, and what Call.commit raises."""
        from objstore.retention import pins
        from objstore.transaction import index_repair

        wanted = tuple(numbers)
        return index_repair.rebuild_index_and_retry(self._journal, lambda: pins.unpin(self._journal, wanted, who=who))

    def retention_limits(self) -> RetentionLimits:
        """Return the limits that settings give this workspace. Raises what Configuration.all raises."""
        from objstore.config.config_files import limits_of

        return limits_of(self.root)

    def plan_gc(self, limits: RetentionLimits) -> GcPlan:
        """Return what `collect` would do now. Raises StoreDamaged."""
        from objstore.retention import garbage_collection

        with self._journal.reading():
            return garbage_collection.plan_gc(self._journal, limits)

    def collect(
        self, limits: RetentionLimits, *, who: str = "", thorough: bool = False, progress: Progress | None = None
    ) -> GcResult:
        """Let go what the limits let go, and take the bytes that nothing holds out of the store.

        `thorough`: all of them; else a segment is written anew only when enough of it is of no use. Readers and writers
        go on meanwhile. An index that is found to be wrong is made anew from the log before anything goes. Raises
        StoreLocked where another collection is going on, and what Call.commit raises.
        """
        from objstore.retention import garbage_collection

        with self._journal.translating_index_errors():
            return garbage_collection.collect(self._journal, limits, who=who, thorough=thorough, progress=progress)

    def plan_repack(self, progress: Progress | None = None) -> RepackPlan:
        """Return what `repack` would come to now; it takes as long. Raises StoreDamaged, BlobDamaged, BlobMissing."""
        from objstore.packing import repack

        with self._journal.translating_index_errors():
            return repack.plan_repack(self._journal, progress)

    def repack(self, progress: Progress | None = None) -> Repacked:
        """Write the store anew in fewer bytes, every blob checked by its hash. Readers and writers go on meanwhile.

        An index that is found to be wrong is made anew from the log first.
        Raises StoreLocked where a collection or another repack is going on, and StoreDamaged, BlobDamaged, BlobMissing,
        DiskFull, PermissionRefused: what was not yet written anew is then as it was.
        """
        from objstore.packing import repack
        from objstore.transaction import index_repair

        with self._journal.translating_index_errors():
            return index_repair.retry_with_rebuilt_index(self._journal, lambda: repack.repack(self._journal, progress))[
                0
            ]

    def expire(self, limits: RetentionLimits, *, who: str = "", moment: int | None = None) -> bool:
        """Let go what the limits let go, and leave the bytes where they are; return whether that was all.

        Where somebody decides or pins something meanwhile, the rest stays. `moment`: microseconds since 1970-01-01 UTC;
        None: now. Raises what Call.commit raises.
        """
        from objstore.retention import expiry

        with self._journal.reading():
            plan = expiry.plan_expiry(self._journal, limits, moment=moment)
        with self._journal.translating_index_errors():
            return expiry.expire(self._journal, plan, who=who) == plan.edit_count

    def cache_documents(self) -> None:
        """Keep what reviews would else replay: files with long histories then open quickly. Raises HistoryBroken."""
        from objstore.history import document_loader

        with self._journal.reading():
            document_loader.cache_documents(self._journal)

    def next_edit(self) -> Seq:
        """Return the number that the next edit gets."""
        with self._journal.mutex, self._journal.translating_index_errors():
            return self._journal.store.next_seq()

    def plan_purge(self, *, blobs: Iterable[BlobId] = (), path: str = "") -> PurgePlan:
        """Return what would go with some blobs, or with every state of the file at `path` but what that holds now.

        Where a link leads elsewhere by now, those of what stood at the path as it is spelt are among them.
        Raises what paths raise, and StoreDamaged.
        """
        from objstore.history import revspec
        from objstore.retention import purge

        with self._journal.reading():
            wanted = list(blobs)
            if path:
                wanted += purge.blobs_of_paths(self._journal, revspec.told_paths(self._journal, path))
            return purge.plan_purge(self._journal, wanted)

    def purge(
        self, blobs: Iterable[BlobId], *, force: bool = False, who: str = "", progress: Progress | None = None
    ) -> PurgePlan:
        """Take blobs out of the store for good, with all that mentions them, and return what that was.

        Raises PurgeRefused, with nothing changed, while a file holds one of them, and unless `force` where something is
        pending, or a snapshot or a pin holds them; StoreLocked, with nothing changed, while a collection is going on;
        PurgeUnfinished where others kept it from its end, and it is to be asked again; and what Call.commit raises.
        """
        from objstore.retention import purge

        with self._journal.translating_index_errors():
            return purge.purge(self._journal, blobs, force=force, who=who, progress=progress)

    def close_superseded_files(self) -> None:
        """See which of the store's files others have superseded: as long as one is open, its room is not free."""
        with self._journal.mutex:
            self._journal.store.log.refresh()

    def stored_bytes(self) -> int:
        """Return how large the store is: the bytes of its segments."""
        with self._journal.mutex:
            return self._journal.store.log.total_bytes()

    # ---- inside

    def _outcome(self, request: DecisionRequest) -> DecisionOutcome:
        from objstore.review.decisions import decide
        from objstore.transaction import index_repair

        outcome, self._preview = index_repair.rebuild_index_and_retry(
            self._journal, lambda: decide(self._journal, request)
        )
        return outcome
