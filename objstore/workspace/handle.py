"""Open one folder with its store, and hand out everything that the surfaces may do with it."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any, Final, Self

from objstore.disk.fs.confined_path import MAX_FILE, Tree, find_root
from objstore.disk.fs.disk import Disk, new_file_mode
from objstore.disk.fs.reserved_names import LOG_NAME, STORE_NAME
from objstore.model.basic_types import RESERVED_CONVERSATIONS, Action, Decider, Origin, ignore_progress
from objstore.storage.transaction.journal import Evidence, Journal
from objstore.values.errors import CasError, ConversationReserved

# What only some methods need is imported in them: `cas status` must not wait for the review core to load.
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from objstore.agents.agent_messages import AgentMessages
    from objstore.agents.hook_sessions import HookSessions
    from objstore.agents.record import Recorded
    from objstore.disk.fs.tree_files import Files
    from objstore.disk.witnesses.history_witness import HistorySize, LostHistory
    from objstore.model.basic_types import Progress, Surface, Unit
    from objstore.model.results import Attributor, CallInfo, DecisionOutcome, Difference
    from objstore.model.views import (
        Content,
        EditView,
    )
    from objstore.review.calls.tracked_call import Call
    from objstore.storage.store.write_batch import Batch
    from objstore.workspace.comments import Comments
    from objstore.workspace.history import History
    from objstore.workspace.remote_decisions import RemoteDecisions, RemoteVerdict, WaitingComment
    from objstore.workspace.remotes import Remotes
    from objstore.workspace.retention import Retention
    from objstore.workspace.review import Review
    from objstore.workspace.sessions import Sessions
    from objstore.workspace.snapshots import Snapshots
    from objstore.workspace.transfer import Transfer
    from objstore.workspace.trials import Check, Copy, Trials
    from objstore.worktree.walk import ScanLimits

__all__ = ["Workspace"]


@cache
def _call_opener() -> Callable[..., AbstractContextManager[Call]]:
    """Return `open_call`, imported once: another import statement takes 2.5 µs, a two-hundredth of a write."""
    from objstore.review.calls.tracked_call import open_call

    return open_call


class Workspace:
    """One folder with its store. Safe to use from several threads; several processes may have it open."""

    def __init__(self, journal: Journal) -> None:
        """Wrap an open journal; use `open`, `init` or `find` instead."""
        self._journal = journal
        journal.evidence = _Evidence(journal)
        self.root: Final = journal.tree.root
        new_file_mode()

    @classmethod
    def init(cls, root: str | os.PathLike[str], disk: Disk | None = None, *, is_real: bool = False) -> Workspace:
        """Create a store in `root` if there is none, and open it. `is_real`: as for `open`.

        Raises FileMissing, PathReserved, StorePlaceTaken, PermissionRefused, and what `open` raises.
        """
        from objstore.storage.store.create import create_workspace
        from objstore.storage.transaction.space_reserve import reserve_space

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
    def open(
        cls,
        root: str | os.PathLike[str],
        disk: Disk | None = None,
        *,
        is_real: bool = False,
        progress: Progress = ignore_progress,
    ) -> Workspace:
        """Open the store in `root`, and finish what a crashed writer left, unless another process is writing.

        `is_real`: `root` is already a resolved path; a symlink that was put into it since is not followed. `progress`:
        of a rebuild of the index, which takes long. Raises NotAWorkspace, StoreDamaged, StoreReplaced, and
        PathIsSymlink for such a link.
        """
        journal = Journal(os.fspath(root), disk or Disk(), is_real=is_real, progress=progress)
        try:
            journal.finish()
            journal.progress = ignore_progress
        except BaseException:
            journal.close()
            raise
        return cls(journal)

    @classmethod
    def find(cls, start: str | os.PathLike[str], *, progress: Progress = ignore_progress) -> Workspace:
        """Open the nearest workspace at or above `start`, as `open` does. Raises NotAWorkspace, StoreDamaged."""
        return cls.open(find_root(os.fspath(start)), progress=progress)

    def reopen(self) -> None:
        """Open the store again if it refuses to write because a write has failed. Raises what `open` raises."""
        self._journal.reopen()

    @property
    def is_there(self) -> bool:
        """Return whether the folder is still the one at its path and contains a store."""
        return self._journal.tree.is_in_place and os.path.isdir(os.path.join(self.root, STORE_NAME, LOG_NAME))

    def close(self) -> None:
        """Close every file. If anything was recorded, a witness outside the store says how much there is now."""
        if self._journal.has_committed:
            from objstore.disk.witnesses.history_witness import note_history

            with suppress(CasError, OSError):
                note_history(self.root, self._history_size)
        self._journal.close()

    def _history_size(self) -> HistorySize:
        """Return how many edits, and how many edits and decisions, have been recorded."""
        from objstore.disk.witnesses.history_witness import HistorySize

        def id_of(seq: int) -> str:
            with self._journal.reading() as store:
                row = store.index.edits.get(seq)
                return "" if row is None else row.id.hex()

        with self._journal.translating_index_errors(), self._journal.reading() as store:
            edits = store.next_seq() - 1
            return HistorySize(edits, edits + store.index.numbers.next_decision() - 1, id_of)

    def lost_histories(self) -> list[LostHistory]:
        """Return what this workspace had recorded and has no more, as a witness outside the store says.

        The witness learns what there is now.
        """
        from objstore.disk.witnesses.history_witness import note_history

        return note_history(self.root, self._history_size)

    def acknowledge_loss(self) -> None:
        """Forget what this workspace has lost: a person knows it. Raises AgentDecides."""
        from objstore.disk.witnesses.history_witness import acknowledge_loss

        self.review.require_person()
        acknowledge_loss(self.root, self._history_size)

    def __enter__(self) -> Self:
        """Return the workspace itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the workspace."""
        self.close()

    @contextmanager
    def reporting_progress(self, progress: Progress) -> Iterator[None]:
        """Report the progress of scans, calls, decisions and series to `progress`, in the thread that works on them."""
        self._journal.progress = progress
        try:
            yield
        finally:
            self._journal.progress = ignore_progress

    def decide_through(self, surface: Surface | None) -> None:
        """Say through what this thread decides from now on (None: no person does); records say it.

        Through some surfaces, what only a person may do is refused inside an agent's shell.
        """
        self._journal.decider = Decider(via="" if surface is None else surface.value)

    # ---- current files

    @property
    def files(self) -> Files:
        """Return the folder's current files; reading them records nothing."""
        return self._journal.files

    def relative(self, path: str, held_by: Sequence[int] = ()) -> str:
        """Return the canonical path below the root, even if the file is gone or its folder is now a symlink.

        A link of which edits are recorded is itself what its path names, as git has it; any other one is followed.
        `held_by`: snapshot numbers; the path as the user wrote it takes precedence if one of them has it. Raises what
        Files.relative raises, and NoSuchName and SnapshotUnreadable for a snapshot.
        """
        if held_by:
            from objstore.review import snapshot_restore as restore

            with self._journal.reading():
                written = restore.held_literal_path(self._journal, path, held_by)
            if written is not None:
                return written
        link = None
        if os.path.islink(os.path.join(self.root, self._journal.tree.within(path))):
            from objstore.history import revspec

            with self._journal.reading():
                link = revspec.recorded_link(self._journal, path)
        return self.followed(path) if link is None else link

    def followed(self, path: str) -> str:
        """Return the path as `relative` does, but that of its target for a link. Raises what Files.relative raises."""
        found = self.files.relative(path, gone=True)
        if self._journal.tree.within(path) == found:
            return found
        from objstore.history import revspec

        with self._journal.reading():
            return os.fsdecode(revspec.resolved_or_literal(self._journal, path, os.fsencode(found)))

    def recorded(self, path: str) -> str:
        """Return the path as `relative` does, but as the user wrote it if a symlink now hides what was recorded there.

        A lookup of history by that path then finds both files. Raises what Files.relative raises.
        """
        from objstore.history import revspec

        with self._journal.reading():
            hidden = revspec.hidden_path(self._journal, path)
        return self.relative(path) if hidden is None else os.fsdecode(hidden)

    def literal_path(self, path: str) -> str:
        """Return the path as the user wrote it if it or one of its folders is now a symlink, else as `relative`.

        Snapshots may have a file there even if no edit was recorded. Raises what Files.relative raises.
        """
        from objstore.history import revspec

        found = revspec.literal_path_if_symlink(self._journal, path)
        return self.relative(path) if found is None else found

    def read(self, path: str, *, limit: int = MAX_FILE) -> Content:
        """Return the current file on disk. Raises what Files.read raises."""
        return self.files.read(path, limit=limit)

    # ---- changing files

    def call(
        self,
        info: CallInfo,
        paths: Sequence[str] = (),
        before_storing: Callable[[], object] = lambda: None,
        *,
        waiting: Callable[[], object] | None = None,
        dry_run: bool = False,
    ) -> AbstractContextManager[Call]:
        """Hold the writer lock for one tracked call; parameters as for `open_call` of the calls."""
        return _call_opener()(self._journal, info, paths, before_storing, waiting=waiting, dry_run=dry_run)

    def record_changes(
        self,
        info: CallInfo,
        paths: Sequence[str] | None = None,
        *,
        limits: ScanLimits | None = None,
    ) -> Recorded:
        """Record each file that is not in its known state as an edit of one call, and return what was found.

        `info` says whose call it was: an agent's, a person's, or (origin external) unknown, as before a command; then
        what an agent may have changed is recorded as such.
        `paths`: only these files and everything below these folders; for files, the tree is not walked, and no ignore
        rule applies. The first scan takes a baseline: files that exist then are known from there on, and are not edits.
        Raises ConversationReserved, SnapshotIncomplete (at the first scan), and what paths and Call.commit raise.
        """
        if info.conversation in RESERVED_CONVERSATIONS and info.origin is not Origin.EXTERNAL:
            raise ConversationReserved(info.conversation)
        from objstore.agents import record
        from objstore.storage.transaction import index_repair

        def whose() -> CallInfo | Attributor:
            if info.origin is not Origin.EXTERNAL:
                return info
            return self._journal.evidence.attributor()

        def recorded() -> Recorded:
            with self._journal.translating_index_errors(), record.recording_git(self._journal, whose(), limits):
                return record.record_changes(self._journal, whose(), paths, limits=limits)

        return index_repair.rebuild_index_and_retry(self._journal, recorded)

    def note_git(self) -> None:
        """Record what git did to the files since the last look, if a repository has moved, and which edits are back.

        Where none has, this reads a few small files. Raises what `record_changes` raises.
        """
        from objstore.worktree.git_positions import GitPositions

        with self._journal.mutex:
            positions = GitPositions(self._journal)
            if not positions.movements():
                positions.save()
                with self._journal.translating_index_errors():
                    if not self._has_returned_files():
                        return
        self.hooks.notice_git()

    def _has_returned_files(self) -> bool:
        """Return whether a file with edits that are away differs, or may differ, from its record."""
        with self._journal.reading() as store:
            if not store.index.edits.documents_away():
                return False
        # Imported only now: every status asks this, and mostly no edit is away.
        from objstore.agents.record import returned_files

        return bool(returned_files(self._journal))

    # ---- roles

    @cached_property
    def review(self) -> Review:
        """Report what awaits review, and make and undo decisions."""
        from objstore.workspace.review import Review

        return Review(self._journal)

    @cached_property
    def history(self) -> History:
        """Look up edits, decisions, file states and blobs."""
        from objstore.workspace.history import History

        return History(self._journal)

    @cached_property
    def sessions(self) -> Sessions:
        """Look up the sessions and turns of agents."""
        from objstore.workspace.sessions import Sessions

        return Sessions(self._journal)

    @cached_property
    def comments(self) -> Comments:
        """Comment on lines and hunks, and track the state of each comment."""
        from objstore.workspace.comments import Comments

        return Comments(self._journal)

    @cached_property
    def trials(self) -> Trials:
        """Try commands on scratch copies."""
        from objstore.workspace.trials import Trials

        return Trials(self._journal)

    @cached_property
    def snapshots(self) -> Snapshots:
        """Create, list, compare, restore and delete snapshots."""
        from objstore.workspace.snapshots import Snapshots

        return Snapshots(self._journal)

    @cached_property
    def retention(self) -> Retention:
        """Expire history, pin it, and free space."""
        from objstore.workspace.retention import Retention

        return Retention(self._journal)

    @cached_property
    def transfer(self) -> Transfer:
        """Export the store, and import the history of another tool."""
        from objstore.workspace.transfer import Transfer

        return Transfer(self._journal)

    @cached_property
    def remotes(self) -> Remotes:
        """Share the store through buckets."""
        from objstore.workspace.remotes import Remotes

        return Remotes(self._journal)

    @property
    def has_remotes(self) -> bool:
        """Return whether a remote may have been added; nothing is imported for that."""
        return os.path.isdir(os.path.join(self.root, STORE_NAME, "remotes"))

    @cached_property
    def remote_decisions(self) -> RemoteDecisions:
        """Decide on what other stores have, and carry out what others have decided."""
        from objstore.workspace.remote_decisions import RemoteDecisions

        return RemoteDecisions(self._journal, self.remotes, self.review, self.trials)

    def awaited(self) -> Mapping[Unit, RemoteVerdict]:
        """Return what others decided on this store, a mirror, and it doesn't show yet; nothing if it is no mirror."""
        return self.remote_decisions.awaited() if self._journal.is_mirror else {}

    def awaited_comments(self) -> Mapping[Unit, Sequence[WaitingComment]]:
        """Return others' comments on units of this store, a mirror, that it doesn't show; nothing if it is none."""
        return self.remote_decisions.awaited_comments() if self._journal.is_mirror else {}

    @cached_property
    def messages(self) -> AgentMessages:
        """Decide what agents are sent about their edits."""
        from objstore.agents.agent_messages import AgentMessages

        return AgentMessages(self._journal)

    @cached_property
    def hooks(self) -> HookSessions:
        """Record what the hooks of agent programs report."""
        from objstore.agents.hook_sessions import HookSessions

        return HookSessions(self._journal)

    def find_units(self, spelling: str) -> tuple[EditView, tuple[Unit, ...]]:
        """Call `history.find_units`."""
        return self.history.find_units(spelling)

    def decide(
        self,
        action: Action,
        units: Sequence[Unit],
        *,
        check: Check | None = None,
        copied: Callable[[Copy], object] = lambda _: None,
        stopped: Callable[[], bool] = lambda: False,
        reason: str = "",
        stops_at_broken: bool = False,
        **options: Any,  # noqa: ANN401 - `review.decide` names and checks them
    ) -> DecisionOutcome:
        """Call `review.decide`. `check`: what has to succeed first (None: nothing); the rest is as of `Trials.checked`.

        Raises also what `Trials.checked` raises.
        """
        decide = partial(self.review.decide, action, units, **options)
        if check is None:
            return decide(reason=reason, stops_at_broken=stops_at_broken)
        run = partial(self.trials.checked, check, decide, self.review.preview, copied=copied, stopped=stopped)
        return run(reason=reason, stops_at_broken=stops_at_broken)


class _Evidence(Evidence):
    """What is known in a workspace of whose changes are, for whatever records some that it finds."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def attributor(self, *, is_kept: bool = False) -> Attributor:
        """Return what says whose changes are that are found now. `is_kept`: a person's decision records them."""
        from objstore.review.calls.attribution import Attribution
        from objstore.review.calls.open_calls import OpenCalls

        return Attribution(OpenCalls(self._journal), is_kept=is_kept)

    def record_returned(self, batch: Batch, found: Sequence[Difference]) -> bool:
        """Record which lines of edits changes bring back, as a group of its own; return whether they bring any back."""
        from objstore.agents.returned_lines import ReturnedLines

        returned = ReturnedLines(self._journal, self.attributor())
        returned.record(batch, returned.with_lines(batch, found))
        if not batch.has_records:
            return False
        self._journal.commit(batch, ())
        return True
