"""The workspace: one folder with its store, and everything that surfaces may do with it."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, Self

from objstore.disk import Disk, new_file_mode
from objstore.errors import ConversationReserved, PermissionRefused
from objstore.external import EXTERNAL_CONVERSATION
from objstore.ids import HASH_SIZE
from objstore.journal import Journal, create_workspace, find_root
from objstore.paths import MAX_FILE, Tree
from objstore.terms import Action, OnExternal, Origin, Status

# What only some methods need is imported in them: `cas status` must not wait for the review core to load.
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from objstore.capture import Call
    from objstore.decisions import Request
    from objstore.files import Files
    from objstore.ids import BlobId
    from objstore.inspection import BlamedLines, RecordView, SegmentView, StoreStats
    from objstore.outcomes import CallInfo, CallOutcome, DecisionOutcome, FileEffect
    from objstore.reports import ExternalChange, StatusReport
    from objstore.terms import FileState, Unit
    from objstore.views import Content, DecisionView, EditFilter, EditView, State

__all__ = ["Workspace"]

_STATUS_OF: Final = {Action.ACCEPT: Status.ACCEPTED, Action.REJECT: Status.REJECTED, Action.RESET: Status.PENDING}


class Workspace:
    """One folder with its store. Safe to use from several threads; several processes may have it open."""

    def __init__(self, journal: Journal) -> None:
        """Wrap an open journal; use `open`, `init` or `find`."""
        self._journal = journal
        self._preview: Callable[[BlobId], bytes] | None = None  # None: nothing but what is stored was planned
        self.root: Final = journal.tree.root
        new_file_mode()

    @classmethod
    def init(cls, root: str | os.PathLike[str], disk: Disk | None = None) -> Workspace:
        """Make a store in `root` if there is none, and open it. Raises FileMissing, PermissionRefused."""
        disk = disk or Disk()
        tree = Tree(root)
        tree.close()
        create_workspace(tree.root, disk)
        return cls.open(tree.root, disk)

    @classmethod
    def open(cls, root: str | os.PathLike[str], disk: Disk | None = None) -> Workspace:
        """Open the store in `root`, and finish what a crashed writer left. Raises NotAWorkspace, StoreDamaged."""
        workspace = cls(Journal(os.fspath(root), disk or Disk()))
        if workspace._journal.unfinished():
            # Taking the lock is what finishes it. Who may not write can still read.
            with suppress(PermissionRefused), workspace._journal.writing():
                pass
        return workspace

    @classmethod
    def find(cls, start: str | os.PathLike[str]) -> Workspace:
        """Open the nearest workspace at or above `start`. Raises NotAWorkspace, StoreDamaged."""
        return cls.open(find_root(os.fspath(start)))

    def close(self) -> None:
        """Close every file."""
        self._journal.close()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    # ---- files as they stand

    @property
    def files(self) -> Files:
        """Return the folder's files as they stand; looking at them records nothing."""
        return self._journal.files

    def relative(self, path: str) -> str:
        """Return the canonical path below the root. Raises what Files.relative raises."""
        return self.files.relative(path)

    def read(self, path: str, *, limit: int = MAX_FILE) -> Content:
        """Return the file as it stands on disk. Raises what Files.read raises."""
        return self.files.read(path, limit=limit)

    # ---- changing files

    @contextmanager
    def call(self, info: CallInfo) -> Iterator[Call]:
        """Hold the writer lock for one tracked call. Leaving without `commit` changes nothing.

        Raises StoreLocked, and ConversationReserved for the conversation of edits that nobody recorded.
        """
        if info.conversation == EXTERNAL_CONVERSATION:
            raise ConversationReserved(info.conversation)
        from objstore.capture import Call

        with self._journal.writing() as batch:
            yield Call(self._journal, batch, info)

    # ---- history

    def edits(self, wanted: EditFilter | None = None) -> list[EditView]:
        """Return the edits that fit (None: all), in order."""
        from objstore import history
        from objstore.views import EditFilter

        with self._journal.reading():
            return history.edits(self._journal, EditFilter() if wanted is None else wanted)

    def edit(self, seq: int) -> EditView:
        """Return one edit. Raises NoSuchName."""
        from objstore import history

        with self._journal.reading():
            return history.edit(self._journal, seq)

    def find_units(self, spelling: str) -> tuple[EditView, tuple[Unit, ...]]:
        """Return the edit and the units that a spelling names. Raises NoSuchName, AmbiguousName."""
        from objstore import naming

        with self._journal.reading():
            seq, units = naming.find_units(self._journal, spelling)
            return self.edit(seq), units

    def find_conversation(self, spelling: str) -> str:
        """Return the conversation that a spelling names. Raises NoSuchName, AmbiguousName."""
        from objstore import naming

        with self._journal.reading():
            return naming.find_conversation(self._journal, spelling)

    def find_state(self, spelling: str) -> State:
        """Return the recorded state that a spelling names. Raises NoSuchName, AmbiguousName."""
        from objstore import naming

        with self._journal.reading():
            return naming.find_state(self._journal, spelling)

    def blob(self, blob: BlobId) -> bytes:
        """Return a blob's bytes, verified. Raises BlobMissing, BlobDamaged."""
        with self._journal.reading() as store:
            return store.blob(blob)

    def sha256(self, blob: BlobId) -> str:
        """Return the SHA-256 of a blob's bytes, in hex. Raises BlobMissing, BlobDamaged."""
        with self._journal.reading() as store:
            return store.sha256(blob).hex()

    def decisions(self) -> list[DecisionView]:
        """Return every decision, oldest first, those taken back included."""
        from objstore import history

        with self._journal.reading():
            return history.decisions(self._journal)

    def status(self) -> StatusReport:
        """Return the workspace at a glance."""
        from objstore import status

        with self._journal.reading():
            return status.report(self._journal)

    def external_changes(self) -> tuple[ExternalChange, ...]:
        """Return every recorded file that is not what the journal says."""
        from objstore import status

        with self._journal.reading():
            return status.external_changes(self._journal)

    # ---- what the store holds

    def records(self) -> list[RecordView]:
        """Return every record in the order of the journal. Raises StoreDamaged."""
        from objstore import inspection

        with self._journal.reading():
            return list(inspection.records(self._journal))

    def segments(self) -> list[SegmentView]:
        """Return every segment, in order. Raises StoreDamaged."""
        from objstore import inspection

        with self._journal.reading():
            return inspection.segments(self._journal)

    def stats(self) -> StoreStats:
        """Return the store in numbers. Raises StoreDamaged."""
        from objstore import inspection

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
        from objstore import inspection

        with self._journal.reading():
            return inspection.files_at(self._journal, seq, before=before)

    def blame(self, path: str) -> tuple[bytes, list[BlamedLines]]:
        """Return the last recorded bytes of the file at `path`, and which hunk put each of its lines there.

        Raises NoSuchName where no recorded file stands, and HistoryBroken.
        """
        from objstore import inspection

        with self._journal.reading():
            return inspection.blame(self._journal, path)

    def restore(self, state: State) -> CallOutcome:
        """Bring a recorded state back as a tracked edit of a person. Raises what Call.write and Call.commit raise."""
        from objstore.outcomes import CallInfo

        content = None if state.blob is None else self.blob(state.blob)
        with self.call(CallInfo(tool="restore", origin=Origin.PERSON)) as call:
            if content is not None:
                call.write(state.path, content, mode=state.mode)
            elif call.exists(state.path):
                call.delete(state.path)
            return call.commit()

    # ---- review

    def decide(
        self,
        action: Action,
        units: Sequence[Unit],
        *,
        reason: str = "",
        who: str = "",
        cascade: bool = False,
        on_external: OnExternal = OnExternal.ABORT,
        expected: Sequence[ExternalChange] = (),
        dry_run: bool = False,
    ) -> DecisionOutcome:
        """Accept, reject or reset units: on disk and in the journal, or, where that can't be, not at all.

        `cascade`: reject also what can't be live without what is rejected. `expected`: the external changes that a
        person was shown; if the disk has moved on, FileChanged is raised. `dry_run`: only say what would happen.
        Raises NoSuchName, HistoryBroken and what Call.commit raises.
        """
        from objstore.decisions import Request

        request = Request(
            action=action,
            verdicts=dict.fromkeys(units, _STATUS_OF[action]),
            reason=reason,
            who=who,
            cascade=cascade and action is Action.REJECT,
            on_external=on_external,
            expected=tuple(expected),
            dry_run=dry_run,
        )
        return self._outcome(request)

    def undo(
        self,
        *,
        who: str = "",
        on_external: OnExternal = OnExternal.ABORT,
        expected: Sequence[ExternalChange] = (),
        dry_run: bool = False,
    ) -> DecisionOutcome:
        """Take back the newest decision that was not taken back yet: every unit gets the status it had before it."""
        from objstore.decisions import Request

        request = Request(
            action=Action.UNDO, who=who, on_external=on_external, expected=tuple(expected), dry_run=dry_run
        )
        return self._outcome(request)

    def redo(
        self,
        *,
        who: str = "",
        on_external: OnExternal = OnExternal.ABORT,
        expected: Sequence[ExternalChange] = (),
        dry_run: bool = False,
    ) -> DecisionOutcome:
        """Make the decision again that the last undo took back, unless something else was decided since."""
        from objstore.decisions import Request

        request = Request(
            action=Action.REDO, who=who, on_external=on_external, expected=tuple(expected), dry_run=dry_run
        )
        return self._outcome(request)

    def amendable(self, seq: int) -> Content:
        """Return the file that an edit changed, as it stands on disk. Raises NoSuchName, NotAmendable, FileMissing."""
        from objstore.amend import amendable_path

        with self._journal.reading():
            path = amendable_path(self._journal, seq)
        return self.read(path)

    def amend(self, seq: int, content: bytes, *, seen: BlobId, who: str = "") -> CallOutcome:
        """Give the file that an edit changed new bytes, recorded as an amendment of the edit, by a person.

        Whoever rejects the whole edit rejects its amendments with it; an amendment rejected gives back the edit's own
        result. `seen`: what the file held when the reviewer began; FileChanged is raised if it has moved on. Raises
        NoSuchName, NotAmendable, FileMissing and what Call.commit raises.
        """
        from objstore.amend import amend

        return amend(self._journal, seq, content, who=who, seen=seen)

    def preview(self, effect: FileEffect) -> tuple[bytes | None, bytes | None]:
        """Return a file's bytes before and after an effect (None: no file); also of the last dry run's effects."""
        with self._journal.reading() as store:
            content = store.blob if self._preview is None else self._preview
            return (
                None if effect.before is None else content(effect.before),
                None if effect.after is None else content(effect.after),
            )

    # ---- inside

    def _outcome(self, request: Request) -> DecisionOutcome:
        from objstore.decisions import decide

        outcome, self._preview = decide(self._journal, request)
        return outcome
