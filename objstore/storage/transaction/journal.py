"""Let writers change the journal and the files one at a time, each after completing what a crashed one began.

Write order. A group *must* be durable in the log before the first of its files changes, and the files *must* be durable
before the applied marker, a small file next to the log, records that they match it.
"""

from __future__ import annotations

import os
import time
from _thread import RLock, _local as thread_local, allocate_lock, get_ident  # `threading` takes 1 ms of a hook
from contextlib import closing, contextmanager, nullcontext, suppress
from functools import cache
from typing import TYPE_CHECKING, Final

from objstore.disk.fs.disk import is_folder
from objstore.disk.fs.nofollow import open_store_folder, refuse_links
from objstore.disk.fs.reserved_names import INDEX_NAME, STAGING_NOTE_PREFIX, STORE_NAME
from objstore.disk.fs.store_owner import refuse_others_store
from objstore.disk.fs.tree_files import Files
from objstore.disk.fs.writer_lock import GAP_SECONDS, WAIT_SECONDS, WriterLock
from objstore.model.basic_types import Decider, Progress, ignore_progress
from objstore.storage.index.database import IndexErrors
from objstore.storage.log.applied_marker import AppliedMarker
from objstore.storage.store.object_store import Store
from objstore.values.errors import (
    CallAborted,
    DiskFailed,
    DiskFull,
    NotAWorkspace,
    PathReserved,
    PermissionRefused,
    StoreLocked,
    StoreReplaced,
    Unacknowledged,
)

# What only writers need is imported when they begin, because a status takes no lock and changes no file.
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from objstore.disk.file_changes.apply import Blobs, FileStep, Transition
    from objstore.disk.fs.confined_path import Tree
    from objstore.disk.fs.disk import Disk
    from objstore.model.results import Attributor, Difference
    from objstore.storage.log.segment_files import Place
    from objstore.storage.log.segments import Group
    from objstore.storage.recovery.roll_forward import RollForward
    from objstore.storage.store.write_batch import Batch

__all__ = ["Evidence", "Journal"]

_BRIEF_SECONDS: Final = 0.2
"""Seconds that a reader waits for a writer, which may be completing what another one left."""

_CLOSE_SECONDS: Final = 5.0
"""How long `close` waits for a thread that uses the store; otherwise the files close with the process."""

_CATCH_UPS: Final = 3
"""How often a writer releases the lock to read what others appended while it waited."""

_POLL_WAITING_SECONDS: Final = 0.1
"""Interval, in seconds, at which a thread that waits behind another one calls `waiting`."""


# Repeating an import takes 2.5 µs, 0.5 % of a write, so these cache it.


@cache
def _batch_type() -> type[Batch]:
    from objstore.storage.store.write_batch import Batch

    return Batch


@cache
def _transition_type() -> type[Transition]:
    from objstore.disk.file_changes.apply import Transition

    return Transition


class Evidence:
    """What is known of whose changes are: whoever records changes that were found asks it. Here, nothing is known."""

    def attributor(self, *, is_kept: bool = False) -> Attributor:
        """Return what says whose changes are that are found now. `is_kept`: a person's decision records them."""
        del is_kept
        from objstore.model.results import Attributor

        return Attributor()

    def record_returned(self, batch: Batch, found: Sequence[Difference]) -> bool:
        """Record which lines of edits changes bring back, as a group of its own; return whether they bring any back.

        Then the batch, which has the bytes of the files, is spent; the caller, who holds the writer lock, looks at the
        records again.
        """
        del batch, found
        return False


class Journal:
    """One workspace's store and files, for one process."""

    def __init__(self, root: str, disk: Disk, *, is_real: bool = False, progress: Progress = ignore_progress) -> None:
        """Open the workspace. `is_real`: as of a Tree. `progress`: is called with the progress of long work.

        Raises NotAWorkspace, PermissionRefused, StoreLinked, StoreDamaged, FormatTooNew, FormatTooOld, StoreReplaced,
        and as Tree.
        """
        refuse_others_store(root)
        self.disk: Final = disk
        self.files: Final = Files(root, disk, is_real=is_real)
        self.tree: Final[Tree] = self.files.tree
        self._folder: Final = os.path.join(self.tree.root, STORE_NAME)
        self._index: Final = os.path.join(self._folder, INDEX_NAME)
        self.is_mirror: Final = STORE_NAME in self.tree.root.split(os.sep)  # of another store: it has no files
        self.progress = progress
        try:
            self.store = self._open_store(progress=progress)
        except BaseException:
            self.tree.close()
            raise
        self.mutex: Final = RLock()
        self._holder = 0  # the thread that uses the store now; 0: none
        self._polling: Final = allocate_lock()  # held by the one thread that polls the file's lock; others wait for it
        self._users = 0  # nesting depth of the uses of the store
        self.kept: Final[dict[str, object]] = {}  # what packages above read once for all who use this journal
        self._deciders: Final = thread_local()
        self.evidence: Evidence = Evidence()  # the workspace hands its own in
        self.has_committed = False  # whether this process has recorded anything
        self._lock: Final = WriterLock(os.path.join(self._folder, "lock"))
        self._scratch: int | None = None
        self._new_file_mode: int | None = None
        self._mark: Final = AppliedMarker(self._folder, disk)
        self._roll_forwarder: RollForward | None = None  # None: nothing was left to complete so far
        self._has_recovered = False  # whether this process has once completed what others left
        self._is_behind = False  # whether files don't match the log yet, because the disk is full
        self._is_writing = False  # whether the writer lock is held

    @property
    def decider(self) -> Decider:
        """Through what this thread decides; a server's threads may serve several people and programs."""
        found = getattr(self._deciders, "now", None)
        return found if isinstance(found, Decider) else Decider()

    @decider.setter
    def decider(self, decider: Decider) -> None:
        self._deciders.now = decider

    def close(self) -> None:
        """Close everything, once no thread uses it; nothing if one still does after 5 s, as on a disk that hangs."""
        if self.mutex.acquire(timeout=_CLOSE_SECONDS):
            try:
                self.evidence = Evidence()  # the workspace's holds this journal
                self._close_store(self.store)
                self.tree.close()
            finally:
                self.mutex.release()

    # ---- reading

    @contextmanager
    def reading(self) -> Iterator[Store]:
        """Lock the store for this thread and yield it, up to date with the log.

        If another store has its path by now, yield that one. Raises NotAWorkspace if none has.
        """
        with self.mutex, self.translating_index_errors(), self._using():
            self.store.catch_up()
            yield self.store

    @contextmanager
    def second_store(self) -> Iterator[Store]:
        """Yield a second store for this thread alone, for long work that should not block users of the shared one.

        The shared store may be used only inside `reading` and `writing`: outside, another thread may close what it has
        open. The second one is up to date with the log when it is yielded. Raises as opening the journal does.
        """
        with (
            closing(self._open_store(releases_index=self.store.index_is_released)) as store,
            IndexErrors(self._index, store.doubt_index),
        ):
            yield store

    def translating_index_errors(self) -> AbstractContextManager[None]:
        """Return a context manager that translates errors of the index into ours, as `reading` and `writing` do.

        A damaged index is rebuilt before its next use.
        """
        return IndexErrors(self._index, self._doubt_index)

    def unfinished(self) -> bool:
        """Return whether some files may not match the log yet, according to the applied marker."""
        with self.mutex:
            return self.store.last_record is not None and self._mark.read() != self.store.end

    def applied_until(self) -> Place | None:
        """Return the place up to which files match the log, according to the applied marker (None: not known)."""
        with self.mutex:
            return self._mark.read()

    # ---- writing

    def finish(self) -> None:
        """Complete what a crashed writer left, if there is anything and it can be done now.

        Raises StoreDamaged.
        """
        if not self.unfinished():
            return
        # A reader that may not or can't write now continues without; a current writer completes it anyway.
        with suppress(PermissionRefused, StoreLocked, DiskFailed, Unacknowledged), self.writing(within=_BRIEF_SECONDS):
            pass

    def reopen(self) -> None:
        """Open the store again if it refuses to write after a failed write. Raises as opening it does."""
        if self.store.log.refuses:  # rare, so test it first without waiting for a writer
            with self.mutex:
                if self.store.log.refuses:
                    self._open_again()
            self.finish()

    @contextmanager
    def writing(
        self, *, within: float | None = None, may_use_reserve: bool = False, waiting: Callable[[], object] | None = None
    ) -> Iterator[Batch]:
        """Hold the writer lock; yield a batch to fill for `commit`. What a crashed writer left is completed first.

        `within`: how many seconds to wait for the lock (None: 30). `may_use_reserve`: for callers that change no file
        of the user's; completing what a crashed writer left may then be deferred until there is disk space for it.
        `waiting` is called now and then while another process writes; an exception from it ends the wait.

        Raises PathReserved in a mirror, StoreLocked, StoreRefuses, StoreDamaged, DiskFull if that can't be completed,
        NotAWorkspace, and StoreReplaced if another folder has the workspace's path by now.
        """
        if self.is_mirror:
            raise PathReserved(self.tree.root, "mirrors of other stores, in which nothing is decided")
        catch_ups = _CATCH_UPS
        with closing(self._turns(within, waiting)) as turns:
            for waited in turns:
                with self.mutex, self.translating_index_errors(), self._using(), self._if_free(waited) as is_ours:
                    if not is_ours:
                        continue
                    is_unchanged_since_append = self.store.is_unchanged_since_append
                    if catch_ups and not is_unchanged_since_append and self.store.is_far_behind:
                        self._lock.release()  # let other writers go first while this one reads the log
                        self.store.catch_up()
                        catch_ups -= 1
                        continue
                    turns.close()  # lets the next thread poll the lock
                    batch = self._begin_writing(
                        is_unchanged_since_append=is_unchanged_since_append, may_use_reserve=may_use_reserve
                    )
                    self._is_writing = True
                    try:
                        yield batch
                    finally:
                        self._is_writing = False
                    return

    @contextmanager
    def session(self, *, dry_run: bool, waiting: Callable[[], object] | None = None) -> Iterator[tuple[Batch, bool]]:
        """Yield a batch to plan a change in, and whether the change may be committed; a dry run only needs to read.

        In a mirror, a dry run plans what the store with the files would do. `waiting`: as of `writing`; also raises the
        errors of `writing`.
        """
        from contextlib import ExitStack

        with ExitStack() as stack:
            is_writing = True
            try:
                # A dry run takes the lock too: otherwise a running writer's changes would look like external edits.
                batch = stack.enter_context(self.writing(waiting=waiting))
            except (PermissionRefused, PathReserved):
                if not dry_run:
                    raise
                batch = _batch_type()(stack.enter_context(self.reading()))
                is_writing = False
            yield batch, is_writing

    def _turns(self, within: float | None, waiting: Callable[[], object] | None) -> Generator[float, None, None]:
        """Yield whenever the lock may have become free. Raises StoreLocked when the time is over.

        What is yielded is for how many seconds this thread has polled. Waiting for another process blocks no reader of
        this one, and only one of its waiting threads polls the lock.
        """
        seconds = WAIT_SECONDS if within is None else within
        is_polling = False
        try:
            yield 0.0
            until = time.monotonic() + seconds
            is_inside = self._holder == get_ident()  # then the thread that polls waits for this one: don't wait for it
            interval = min(_POLL_WAITING_SECONDS, seconds)
            while not is_inside and not (is_polling := self._polling.acquire(timeout=interval)):
                if waiting is not None:
                    waiting()
                if time.monotonic() >= until:
                    raise StoreLocked(self.tree.root, seconds)
            began = time.monotonic()
            while (now := time.monotonic()) < until:
                if waiting is not None:
                    waiting()
                time.sleep(self._lock.pause(now - began))
                yield now - began
        finally:
            if is_polling:
                self._polling.release()
            self._leave_queue()
        raise StoreLocked(self.tree.root, seconds)

    def commit(
        self,
        batch: Batch,
        steps: Iterable[FileStep],
        seen: Mapping[bytes, os.stat_result] | None = None,
        *,
        possibly_empty: Iterable[bytes] | None = None,
    ) -> None:
        """Append the batch durably, then apply the steps; both, or neither.

        `possibly_empty`: for a decision, folders that may be empty before it is applied (None: no folder is removed).

        Raises what Transition.prepare and Log.append raise, with nothing changed, or CallAborted after everything was
        restored.
        """
        steps = tuple(steps)
        if not steps and possibly_empty is None:  # as of what hooks record: no file changes
            batch.commit()
            self.has_committed = True
            self._update_marker()
            return
        with self._transition(steps, batch, seen, possibly_empty) as transition:
            transition.prepare()
            group = batch.commit()
            self.has_committed = True
            try:
                transition.run()
            except CallAborted as error:
                try:
                    self._void(group, str(error))
                except DiskFailed as failure:
                    # Without the void record the group is valid, and the next writer rolls it forward.
                    reason = f"{error.path} could not be replaced ({error.reason})"
                    reason += f"; and the rollback could not be recorded: {failure}"
                    raise Unacknowledged(reason, is_recorded=True) from failure
                raise
        self._update_marker()

    def check_commit(self, batch: Batch, steps: Iterable[FileStep], seen: Mapping[bytes, os.stat_result]) -> None:
        """Raise what `commit` would raise for the current files; change nothing. The caller is `writing`."""
        with self._transition(steps, batch, seen) as transition:
            transition.check()

    def carry_out(self, steps: Iterable[FileStep]) -> None:
        """Change files to match what the log already records, without recording anything. The caller is `writing`.

        Raises what Transition.prepare raises, with nothing changed, or CallAborted after everything was restored.
        """
        with self._transition(steps, self.store) as transition:
            transition.prepare()
            transition.run()

    def seal(self) -> None:
        """End the log's last segment, so that it can be rewritten. The caller is `writing`."""
        self.store.seal()
        self._update_marker()

    @contextmanager
    def try_brief_lock(self) -> Iterator[bool]:
        """Hold the writer lock briefly, unless another process has it; yield whether it is held.

        It is for derived files: nothing is completed or brought up to date. Raises PermissionRefused, DiskFailed.
        """
        with self.mutex, nullcontext(True) if self._is_writing else self._if_free() as is_ours:  # noqa: FBT003 - its value
            self._leave_queue()
            yield is_ours

    def await_writer(self, until: float) -> bool:
        """Wait for the current writer, but not beyond `until`, by the monotonic clock.

        Return whether no one is writing, as far as can be determined. Other threads can use the store meanwhile.
        """
        while True:
            with self.mutex:
                try:
                    if self._lock.acquire_now():
                        self._lock.release()
                        return True
                except (PermissionRefused, DiskFailed):
                    return True  # without access to the lock file, waiting is impossible
            if time.monotonic() >= until:
                return False
            time.sleep(GAP_SECONDS)

    @contextmanager
    def compacting(self) -> Iterator[None]:
        """Hold the compaction lock. Raises StoreLocked at once if another process compacts."""
        lock = WriterLock(os.path.join(self._folder, "sweep.lock"))
        if not lock.acquire_now():
            lock.close()
            raise StoreLocked(self._folder, 0)
        try:
            yield
        finally:
            lock.release()
            lock.close()

    def new_file_mode(self) -> int:
        """Return the permission bits that a new file gets here. Raises DiskFull, DiskFailed, PermissionRefused."""
        if self._new_file_mode is None:
            self._new_file_mode = self.disk.new_file_mode(self._staging_fd(), "tmp")
        return self._new_file_mode

    def remove_superseded(self, path: str) -> None:
        """Remove an older generation of a segment and free its disk space.

        Call it while no writer waits for the lock.
        """
        self.disk.remove_store_file(path)
        self.close_superseded()

    def close_superseded(self) -> None:
        """Close segment files that others have replaced, unless a place in them may be read: they take disk space.

        Raises StoreReplaced.
        """
        with self.mutex:
            self.store.log.files.refresh()
            if not self._users:
                self.store.log.files.close_superseded()

    def recreate(self, *, index: bool, mark: bool) -> None:
        """Rebuild what is derived: the index from the log; the applied marker as if all files matched the log.

        What interrupted writes left in `.cas/tmp` is removed in any case. Most of the log is read before the lock is
        taken, and only what was appended meanwhile under it. Raises StoreLocked, StoreDamaged.
        """
        reading = self.store.second_index() if index else nullcontext()
        with reading as second, self.mutex, self._lock.held(), IndexErrors(self._index):
            if index:
                self.store.index.recreate(second)
            self.store.catch_up()
            self._clear_staging()
            if mark:
                self.store.log.secure(self.store.log.first)
                self._mark.write(self.store.end)

    # ---- inside

    def _doubt_index(self) -> None:
        self.store.doubt_index()  # a method, because another store may be open by then

    @contextmanager
    def _using(self) -> Iterator[None]:
        """Use the store that is at its path now: open it again if another one is.

        A nested use keeps the same store, because the outer one holds objects of it.
        """
        if not self._users:
            try:
                self.store.log.files.refresh()
            except StoreReplaced:
                self._open_again()
        self._users += 1
        before, self._holder = self._holder, get_ident()
        try:
            yield
        finally:
            self._holder = before
            self._users -= 1
            if not self._users:
                self.store.close_replaced_indexes()
                self.store.log.files.close_superseded()

    def _open_store(self, *, releases_index: bool = False, progress: Progress = ignore_progress) -> Store:
        if not is_folder(self._folder) or os.path.islink(self._folder):
            raise NotAWorkspace(self.tree.root)
        if not os.access(self._folder, os.X_OK):
            raise PermissionRefused(self._folder)
        self.tree.require_in_place()  # because the store is opened by its path
        refuse_links(self._folder)
        opened = Store(self._folder, self.disk, releases_index=releases_index, progress=progress)
        if not self.tree.is_in_place:
            opened.close()
            raise StoreReplaced(self.tree.root)
        return opened

    def _open_again(self) -> None:
        opened = self._open_store()
        replaced, self.store = self.store, opened
        self._close_store(replaced)
        self._has_recovered = self._is_behind = False

    def _close_store(self, store: Store) -> None:
        """Close what was opened in the store's folder."""
        if self._scratch is not None:
            os.close(self._scratch)
        self._scratch = None
        self._mark.close()
        self._lock.close()
        store.close()

    @contextmanager
    def _if_free(self, waited: float = 0.0) -> Iterator[bool]:
        """Hold the writer lock if it is free and no other process is next; yield whether it is held.

        If not, this process may be next: leave the queue of the lock in the end. `waited`: as of the lock.
        """
        is_ours = self._lock.acquire_in_turn(waited)
        try:
            yield is_ours
        finally:
            if is_ours:
                self._lock.release()

    def _leave_queue(self) -> None:
        """Leave the queue of the lock, unless another thread polls."""
        if not self._polling.locked():
            with self.mutex:
                self._lock.leave_queue()

    def _begin_writing(self, *, is_unchanged_since_append: bool, may_use_reserve: bool) -> Batch:
        """Return a batch for the holder of the lock. `is_unchanged_since_append`: as of the store."""
        self.tree.require_in_place()
        is_whole = is_unchanged_since_append or self.store.catch_up(to_write=True)
        marked = self._mark.read()
        if marked is not None:
            if self.store.end < marked:
                # The log lost acknowledged groups; that is damage, not an unfinished write.
                raise self.store.end.damaged("acknowledged groups are missing (or .cas/applied is another store's)")
            marked = self.store.log.files.current(marked)
        if not is_whole:
            self.store.log.repair_tail(self.store.end)
        self._roll_forward_if_needed(marked, may_defer=may_use_reserve)
        return _batch_type()(self.store)

    def _transition(
        self,
        steps: Iterable[FileStep],
        blobs: Blobs,
        seen: Mapping[bytes, os.stat_result] | None = None,
        possibly_empty: Iterable[bytes] | None = None,
    ) -> Transition:
        return _transition_type()(
            self.tree,
            self.disk,
            steps,
            blobs,
            scratch=self._staging_fd(),
            seen=seen,
            was_created=self._was_created,
            was_file=self._was_file,
            was_emptied=self._was_emptied,
            possibly_empty=possibly_empty,
            progress=self.progress,
        )

    def _staging_fd(self) -> int:
        if self._scratch is None:
            path = os.path.join(self._folder, "tmp")
            if not os.path.isdir(path):
                with suppress(FileExistsError):
                    self.disk.make_store_folder(path)
            with open_store_folder(path) as fd:
                self._scratch = os.dup(fd)
        return self._scratch

    def _was_created(self, folder: bytes) -> bool:
        """Return whether a recorded edit created the folder; asking brings the index up to date."""
        return self.store.index.folders.was_created_by_edit(folder)

    def _was_emptied(self, folder: bytes) -> bool:
        """Return whether a recorded decision leaves the folder empty; as `_was_created`."""
        return self.store.index.folders.was_emptied_by_decision(folder)

    def _was_file(self, path: bytes) -> bool:
        """Return whether a recorded file ever had the path; as `_was_created`."""
        return self.store.index.documents.ever_at(path)

    def _void(self, group: Group, reason: str) -> None:
        """Record that the group was rolled back."""
        from objstore.storage.recovery.roll_forward import void_record

        batch = _batch_type()(self.store)
        batch.record(void_record(group, reason))
        batch.commit()
        self._update_marker()

    def _roll_forward_if_needed(self, marked: Place | None, *, may_defer: bool) -> None:
        """Roll forward what a dead writer recorded and did not apply, according to the marker.

        Without a marker nothing says that a file was not changed as recorded, so none is changed.

        `may_defer`: put that off if there is no disk space for it, as this process has seen before or sees now.
        """
        is_applied = marked == self.store.end
        was_behind, self._is_behind = self._is_behind, False
        if self._has_recovered and is_applied:
            return
        self._clear_staging()  # remove the staged files of writers that died before appending to the log
        self._has_recovered = True
        if is_applied:
            return
        # As in any write, the log must be durable before a file changes, and before the marker says that all have.
        self.store.log.secure(marked)
        if marked is None:
            self._mark.renew(self.store.end)
            return
        self._is_behind = may_defer and was_behind
        if self._is_behind:
            return
        try:
            self._get_roll_forward().carry_out(self.store, marked)
        except DiskFull:
            if not may_defer:
                raise
            self._is_behind = True
        self._update_marker()

    def _get_roll_forward(self) -> RollForward:
        if self._roll_forwarder is None:
            from objstore.storage.recovery.roll_forward import RollForward

            self._roll_forwarder = RollForward(self.tree, self._transition)
        return self._roll_forwarder

    def _update_marker(self) -> None:
        """Set the applied marker to the end of the log, unless some files wait for disk space."""
        if not self._is_behind:
            self._mark.write(self.store.end)

    def _clear_staging(self) -> None:
        with suppress(FileNotFoundError), open_store_folder(os.path.join(self._folder, "tmp")) as folder:
            for name in os.listdir(folder):
                if name.startswith(STAGING_NOTE_PREFIX) and not self._clear_noted_folder(folder, name):
                    continue
                try:
                    with suppress(FileNotFoundError):  # writers of derived files hold no lock
                        self.disk.unlink(folder, name)
                except (DiskFailed, PermissionRefused):
                    # Something else, such as a folder that no one needs: whatever it is, it must not block a write.
                    self.disk.remove_directory(folder, name)

    def _clear_noted_folder(self, scratch: int, note: str) -> bool:
        """Clear the folder on another file system that a note names; return whether the note may be removed."""
        from objstore.disk.file_changes.cross_device_staging import clear_staging_folder

        return clear_staging_folder(self.tree, self.disk, scratch, note)
