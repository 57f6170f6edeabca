"""The journal as writers use it: one at a time, each finishing what a crashed one began.

Write order. A group is durable in the log before the first of its files changes; a small mark behind the log says
how far files have followed. The mark is written without a sync: after a mere crash of the process it is there; after
a power cut it may be old, and then the newest groups are looked at again, which costs a read and harms nothing.
"""

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from struct import Struct
from typing import Final

from objstore.disk import Disk, boot_id
from objstore.errors import CallAborted, CasError, NotAWorkspace, PathError
from objstore.files import Files
from objstore.frames import FrameKind
from objstore.index import index_errors
from objstore.paths import STORE_NAME, Tree, is_store
from objstore.records import Decision, Edit, Record, Void, decode_record
from objstore.segments import Group, Place
from objstore.store import Batch, Store, create_store, now
from objstore.terms import FileState, Origin
from objstore.transition import Step, Transition, disk_state
from objstore.writerlock import WriterLock

__all__ = ["Journal", "create_workspace"]

_MARK: Final = Struct("<QQ16s")
_POWER_CUT_WINDOW: Final = 600 * 1_000_000
"""Microseconds: what was written longer ago than this before the last record has long been written back."""

_POWER_CUT_RECORDS: Final = 10_000
"""How many records are looked at for it, at most."""


def create_workspace(root: str, disk: Disk) -> None:
    """Make the store's folder in `root`, whole or not at all. Does nothing where there is one."""
    final = os.path.join(root, STORE_NAME)
    if os.path.isdir(final):
        return
    making = os.path.join(root, f"{STORE_NAME}.{os.getpid()}")
    os.mkdir(making, 0o700)
    os.mkdir(os.path.join(making, "tmp"), 0o700)
    disk.create(os.path.join(making, ".gitignore"), b"*\n")
    disk.create(os.path.join(making, "lock"), b"")
    create_store(making, disk)
    try:
        os.rename(making, final)
    except OSError:
        if not os.path.isdir(final):
            raise
        # Another process was faster; its store is as good.
        for folder, _, names in os.walk(making, topdown=False):
            for name in names:
                os.unlink(os.path.join(folder, name))
            os.rmdir(folder)
    disk.sync_directory(root)


class Journal:
    """One workspace's store and files, for one process."""

    def __init__(self, root: str, disk: Disk) -> None:
        """Open it. Raises NotAWorkspace, StoreDamaged, FormatTooNew."""
        self.disk: Final = disk
        self.files: Final = Files(root, disk)
        self.tree: Final[Tree] = self.files.tree
        self._folder: Final = os.path.join(self.tree.root, STORE_NAME)
        if not os.path.isdir(self._folder) or os.path.islink(self._folder):
            self.tree.close()
            raise NotAWorkspace(self.tree.root)
        self.store: Final = Store(self._folder, disk)
        self.mutex: Final = threading.RLock()
        self._lock: Final = WriterLock(os.path.join(self._folder, "lock"))
        self._scratch: int | None = None
        self._mark: int | None = None
        self._boot: Final = boot_id()
        self._settled = False  # whether this process has looked once for what others left unfinished

    def close(self) -> None:
        """Close everything."""
        for fd in (self._scratch, self._mark):
            if fd is not None:
                os.close(fd)
        self._scratch = self._mark = None
        self._lock.close()
        self.store.close()
        self.tree.close()

    # ---- reading

    @contextmanager
    def reading(self) -> Iterator[Store]:
        """Hold the store still for this thread, up to date with the log."""
        with self.mutex, index_errors(self._folder):
            self.store.catch_up()
            yield self.store

    def unfinished(self) -> bool:
        """Return whether files may not have followed the log, as far as the mark tells."""
        with self.mutex:
            return self.store.last_record is not None and self._read_mark() != (self.store.end, self._boot)

    # ---- writing

    @contextmanager
    def writing(self) -> Iterator[Batch]:
        """Hold the writer lock; give a batch to fill for `commit`. What a crashed writer left is finished first.

        Raises StoreLocked, StoreRefuses, StoreDamaged.
        """
        with self.mutex, self._locked(), index_errors(self._folder):
            self.store.catch_up()
            self.store.log.repair_tail(self.store.end)
            self._settle()
            yield Batch(self.store)

    def commit(
        self,
        batch: Batch,
        steps: Iterable[Step],
        looked: Mapping[bytes, os.stat_result] | None = None,
        *,
        prune: bool = False,
    ) -> None:
        """Append the batch durably, then carry out the steps; both, or neither.

        `prune`: folders that recorded edits made go when they become empty.

        Raises what Transition.prepare and Log.append raise, with nothing changed, or CallAborted with everything
        taken back.
        """
        prunable = self.store.index.made_folder if prune else None
        with self._transition(steps, batch.content, looked, prunable) as transition:
            transition.prepare()
            group = batch.commit()
            try:
                transition.run()
            except CallAborted as error:
                self._void(group, str(error))
                raise
        self._write_mark(self.store.end)

    # ---- inside

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self._lock.acquire()
        try:
            yield
        finally:
            self._lock.release()

    def _transition(
        self,
        steps: Iterable[Step],
        content: Callable[..., bytes],
        looked: Mapping[bytes, os.stat_result] | None = None,
        prunable: Callable[[bytes], bool] | None = None,
    ) -> Transition:
        if self._scratch is None:
            path = os.path.join(self._folder, "tmp")
            with suppress(FileExistsError):
                os.mkdir(path, 0o700)
            self._scratch = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        return Transition(self.tree, self.disk, steps, content, scratch=self._scratch, looked=looked, prunable=prunable)

    def _void(self, group: Group, reason: str) -> None:
        """Record that the group was taken back."""
        records = list(_records(group))
        edits = tuple(edit.seq for edit in records if isinstance(edit, Edit) and edit.origin is not Origin.EXTERNAL)
        decision = next((record.number for record in records if isinstance(record, Decision)), 0)
        batch = Batch(self.store)
        batch.record(Void(time=now(), edits=edits, decision=decision, reason=reason))
        batch.commit()
        self._write_mark(self.store.end)

    def _settle(self) -> None:
        """Finish what a writer that died had recorded but not carried out."""
        marked, boot = self._read_mark()
        end = self.store.end
        if marked == end and boot == self._boot:
            return
        same_boot = marked is not None and boot == self._boot
        self._clear_scratch()
        for steps, time in self._since_mark(marked) if same_boot and marked is not None else self._since_power_cut():
            due = [step for step in steps if self._is_due(step, None if same_boot else time)]
            # A path that can't be finished stays as it is, and shows as a change from outside.
            with self._transition(due, self.store.blob) as transition, suppress(PathError, CallAborted):
                transition.prepare()
                transition.run()
        self._write_mark(end)

    def _since_mark(self, marked: Place) -> list[tuple[list[Step], int]]:
        """Return the steps and the time of each group whose files may not have followed, oldest first."""
        groups = [list(_records(group)) for group in self.store.log.groups(marked)]
        void_edits = {
            seq for records in groups for record in records if isinstance(record, Void) for seq in record.edits
        }
        void_decisions = {record.decision for records in groups for record in records if isinstance(record, Void)}
        valid = [
            [
                record
                for record in records
                if not (isinstance(record, Edit) and record.seq in void_edits)
                and not (isinstance(record, Decision) and record.number in void_decisions)
            ]
            for records in groups
        ]
        return _newest_of_each_path(valid)

    def _since_power_cut(self) -> list[tuple[list[Step], int]]:
        """Return the same for what may have been in memory only when the machine stopped."""
        recent: list[list[Record]] = []
        for place in self.store.index.newest_places(_POWER_CUT_RECORDS):
            record, _ = self.store.record(place)
            if recent and record.time < recent[0][0].time - _POWER_CUT_WINDOW:
                break
            recent.append([record])
        return _newest_of_each_path(recent[::-1])

    def _is_due(self, step: Step, since: int | None) -> bool:
        """Return whether the path is still as it was before the step (`since`: the step's time, after a power cut)."""
        try:
            found = disk_state(self.tree, step.path)
        except CasError:
            return False
        if found is None:
            return step.before is None and step.after is not None and since is None
        state, file = found
        if since is None:
            return state == step.before
        # After a power cut, a name may be older than its file's bytes, or newer than any of them: then it is empty.
        if step.after is not None and not file.content and state.blob != step.after.blob:
            return True
        return state == step.before and file.stat.st_mtime_ns // 1000 <= since

    def _clear_scratch(self) -> None:
        folder = os.path.join(self._folder, "tmp")
        with suppress(FileNotFoundError):
            for name in os.listdir(folder):
                os.unlink(os.path.join(folder, name))

    # ---- the mark

    def _mark_fd(self) -> int:
        if self._mark is None:
            path = os.path.join(self._folder, "applied")
            self._mark = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        return self._mark

    def _read_mark(self) -> tuple[Place | None, bytes]:
        try:
            stored = os.pread(self._mark_fd(), _MARK.size, 0)
        except OSError:
            return None, b""
        if len(stored) != _MARK.size:
            return None, b""
        segment, offset, boot = _MARK.unpack(stored)
        return Place(segment, offset), boot

    def _write_mark(self, end: Place) -> None:
        self.disk.overwrite(self._mark_fd(), _MARK.pack(end.segment, end.offset, self._boot), 0, "applied")


def steps_of(records: Iterable[Record]) -> list[Step]:
    """Return what the records of one group do to the user's files, path by path.

    Edits that were found on disk need nothing done: they say how things stood before the others.
    """
    first: dict[bytes, FileState | None] = {}
    last: dict[bytes, FileState | None] = {}

    def note(path: bytes, before: FileState | None, after: FileState | None) -> None:
        first.setdefault(path, before)
        last[path] = after

    for record in records:
        match record:
            case Edit(origin=Origin.EXTERNAL):
                pass
            case Edit(source=None):
                note(record.path, record.before, record.after)
            case Edit():
                note(record.source or b"", record.before, None)
                note(record.path, None, record.after)
            case Decision():
                _note_decision(record, note)
            case Void():
                pass
    return [Step(path=path, before=first[path], after=last[path]) for path in first]


def _note_decision(decision: Decision, note: Callable[[bytes, FileState | None, FileState | None], None]) -> None:
    # Files may trade places: each path's state before comes from the one that leaves it, after from the one that comes.
    before = {w.path_before: w.before for w in decision.written if w.path_before is not None}
    after = {w.path_after: w.after for w in decision.written if w.path_after is not None}
    for path in sorted({*before, *after}):
        note(path, before.get(path), after.get(path))


def _newest_of_each_path(groups: list[list[Record]]) -> list[tuple[list[Step], int]]:
    """Return each group's steps and time, without those on paths that a later group changed again."""
    found = [(steps_of(records), max(record.time for record in records)) for records in groups if records]
    newest = {step.path: i for i, (steps, _) in enumerate(found) for step in steps}
    return [([step for step in steps if newest[step.path] == i], time) for i, (steps, time) in enumerate(found)]


def _records(group: Group) -> Iterator[Record]:
    for frame in group.frames:
        if frame.kind is FrameKind.RECORD:
            yield decode_record(bytes(frame.payload))[0]


def find_root(start: str) -> str:
    """Return the nearest folder at or above `start` that holds a store. Raises NotAWorkspace."""
    folder = os.path.realpath(start)
    while True:
        if os.path.isdir(os.path.join(folder, STORE_NAME, "segments")):
            return folder
        parent = os.path.dirname(folder)
        if parent == folder or is_store(os.path.basename(folder)):
            raise NotAWorkspace(start)
        folder = parent
