"""The journal as writers use it: one at a time, each finishing what a crashed one began.

Write order. A group is durable in the log before the first of its files changes; a small mark behind the log says
how far files have followed.
"""

from __future__ import annotations

import os
import time
from contextlib import closing, contextmanager, nullcontext, suppress
from functools import cache
from threading import Lock, RLock, get_ident
from typing import TYPE_CHECKING, Final

from objstore.errors import (
    CallAborted,
    DiskFailed,
    DiskFull,
    NotAWorkspace,
    PermissionRefused,
    StoreLocked,
    StoreReplaced,
    Unacknowledged,
)
from objstore.fs.disk import is_folder
from objstore.fs.nofollow import open_store_folder, refuse_links
from objstore.fs.reserved_names import BESIDE, INDEX_NAME, STORE_NAME
from objstore.fs.store_owner import refuse_others_store
from objstore.fs.tree_files import Files
from objstore.fs.writer_lock import BRIEF_WAIT_SECONDS, GAP_SECONDS, POLL_SECONDS, WAIT_SECONDS, WriterLock
from objstore.index.database import IndexErrors
from objstore.model.basic_types import Progress, ignore_progress
from objstore.recovery.applied_marker import AppliedMarker
from objstore.store.object_store import Store

# What only writers need is imported where they begin: a status takes no lock and changes no file.
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
    from contextlib import AbstractContextManager

    from objstore.file_changes.apply import Blobs, FileStep, Transition
    from objstore.fs.confined_path import Tree
    from objstore.fs.disk import Disk
    from objstore.log.segment_files import Place
    from objstore.log.segments import Group
    from objstore.recovery.roll_forward import RollForward
    from objstore.store.write_batch import Batch

__all__ = ["Journal"]

_AT_ONCE: Final = 0.2
"""Seconds that a reader waits for a writer who may be finishing what another one left."""

_LAST_SECONDS: Final = 5.0
"""How long who closes everything waits for a thread that is at it: what stays open closes with the process."""

_CATCH_UPS: Final = 3
"""Times that a writer gives the lock back to read what others appended while it waited."""

_LOOK_AGAIN: Final = 0.1
"""Seconds after which who waits behind another thread looks whether it still wants to."""


# An import that was done already takes 2.5 µs, a two-hundredth of a write, so it is done once.


@cache
def _batch_type() -> type[Batch]:
    from objstore.store.write_batch import Batch

    return Batch


@cache
def _transition_type() -> type[Transition]:
    from objstore.file_changes.apply import Transition

    return Transition


class Journal:
    """One workspace's store and files, for one process."""

    def __init__(self, root: str, disk: Disk, *, is_real: bool = False) -> None:
        """Open it. `is_real`: as of a Tree.

        Raises NotAWorkspace, PermissionRefused, StoreLinked, StoreDamaged, FormatTooNew, StoreReplaced, and as Tree.
        """
        refuse_others_store(root)
        self.disk: Final = disk
        self.files: Final = Files(root, disk, is_real=is_real)
        self.tree: Final[Tree] = self.files.tree
        self._folder: Final = os.path.join(self.tree.root, STORE_NAME)
        self._index: Final = os.path.join(self._folder, INDEX_NAME)
        try:
            self.store = self._opened()
        except BaseException:
            self.tree.close()
            raise
        self.mutex: Final = RLock()
        self._holder = 0  # the thread that uses the store at this moment; 0: none
        self._queue: Final = Lock()  # of threads that wait for another process
        self._users = 0  # who use the store at this moment, one within the other
        self.progress: Progress = ignore_progress  # is told how far long work is, whatever asked for it
        self._lock: Final = WriterLock(os.path.join(self._folder, "lock"))
        self._scratch: int | None = None
        self._new_file_mode: int | None = None
        self._mark: Final = AppliedMarker(self._folder, disk)
        self._roll_forwarder: RollForward | None = None  # until there was something to finish
        self._settled = False  # whether this process has looked once for what others left unfinished
        self._is_behind = False  # whether files could not follow the log yet, because the disk is full
        self._is_writing = False  # whether the writer lock is held

    def close(self) -> None:
        """Close everything, as soon as no thread is at it; nothing where one stays so, as on a disk that hangs."""
        if self.mutex.acquire(timeout=_LAST_SECONDS):
            try:
                self._close_store(self.store)
                self.tree.close()
            finally:
                self.mutex.release()

    # ---- reading

    @contextmanager
    def reading(self) -> Iterator[Store]:
        """Hold the store still for this thread, up to date with the log.

        Where another one lies at its path by now, it is that. Raises NotAWorkspace where none does.
        """
        with self.mutex, self.translating_index_errors(), self._using():
            self.store.catch_up()
            yield self.store

    @contextmanager
    def beside(self) -> Iterator[Store]:
        """Give a store of this thread's own, for what takes long and keeps nobody from the one that all share.

        That one is asked inside `reading` and `writing` alone: outside, another thread may close what it has open. This
        one is up to date with the log when it is given. Raises as opening the journal does.
        """
        with (
            closing(self._opened(releases_index=self.store.index_is_released)) as store,
            IndexErrors(self._index, store.doubt_index),
        ):
            yield store

    def translating_index_errors(self) -> AbstractContextManager[None]:
        """Return what says it as an error of ours where the index can't be asked, as `reading` and `writing` do.

        If it is damaged, it is made anew before it is asked again.
        """
        return IndexErrors(self._index, self._doubt_index)

    def unfinished(self) -> bool:
        """Return whether files may not have followed the log, as far as the mark tells."""
        with self.mutex:
            marked, is_of_this_boot = self.followed()
            return self.store.last_record is not None and not (marked == self.store.end and is_of_this_boot)

    def followed(self) -> tuple[Place | None, bool]:
        """Return how far files have followed the log, as far as the mark tells (None: not at all).

        And whether that was in this start of the machine: before it, files were made that may have been lost.
        """
        with self.mutex:
            marked, boot = self._mark.read()
            return marked, self._mark.is_of_this_boot(boot)

    # ---- writing

    def finish(self) -> None:
        """Finish what a crashed writer left, if there is anything and that can be done now.

        Raises StoreDamaged.
        """
        if not self.unfinished():
            return
        # Whoever reads goes on without: who may not write, or can't at this moment. Who is writing finishes it anyway.
        with suppress(PermissionRefused, StoreLocked, DiskFailed, Unacknowledged), self.writing(within=_AT_ONCE):
            pass

    def reopen(self) -> None:
        """Open the store again if it refuses to write because a write has failed. Raises as opening it does."""
        if self.store.log.refuses:  # hardly ever, which is found out without waiting for who is writing
            with self.mutex:
                if self.store.log.refuses:
                    self._open_again()
            self.finish()

    @contextmanager
    def writing(
        self, *, within: float | None = None, may_use_reserve: bool = False, waiting: Callable[[], object] | None = None
    ) -> Iterator[Batch]:
        """Hold the writer lock; give a batch to fill for `commit`. What a crashed writer left is finished first.

        `within`: how many seconds to wait for the lock (None: 30). `makes_room`: for who changes no file of the user's;
        what a crashed writer left may then wait until there is room for it. `waiting`: is called now and then while
        another process writes; what it raises ends that. Raises StoreLocked, StoreRefuses, StoreDamaged, DiskFull where
        that is not to be finished for want of room, NotAWorkspace, and StoreReplaced where the folder is another one by
        now.
        """
        left = _CATCH_UPS
        with closing(self._turns(within, waiting)) as turns:
            for _ in turns:
                with self.mutex, self.translating_index_errors(), self._using(), self._if_free() as is_ours:
                    if not is_ours:
                        continue
                    is_as_left = self.store.is_as_left
                    if left and not is_as_left and self.store.is_far_behind:
                        self._lock.release()  # others wait meanwhile
                        self.store.catch_up()
                        left -= 1
                        continue
                    turns.close()  # others may see whether they are next
                    batch = self._begun(is_as_left=is_as_left, may_use_reserve=may_use_reserve)
                    self._is_writing = True
                    try:
                        yield batch
                    finally:
                        self._is_writing = False
                    return

    @contextmanager
    def session(self, *, dry_run: bool, waiting: Callable[[], object] | None = None) -> Iterator[tuple[Batch, bool]]:
        """Give what a change is put together in, and whether it could be made; a dry run needs no more than to read.

        `waiting`: as of `writing`, whose errors are raised, too.
        """
        from contextlib import ExitStack

        with ExitStack() as stack:
            is_writing = True
            try:
                # A dry run takes the lock too: what a writer is about to change would look changed by a stranger.
                batch = stack.enter_context(self.writing(waiting=waiting))
            except PermissionRefused:
                if not dry_run:
                    raise
                batch = _batch_type()(stack.enter_context(self.reading()))
                is_writing = False
            yield batch, is_writing

    def _turns(self, within: float | None, waiting: Callable[[], object] | None) -> Generator[None, None, None]:
        """Yield whenever the lock may have come free. Raises StoreLocked when the time is over.

        Who waits for another process keeps none of this one from reading, and of several one looks.
        """
        yield
        seconds = WAIT_SECONDS if within is None else within
        began = time.monotonic()
        is_inside = self._holder == get_ident()  # so that whoever is at the head of the queue waits for this one
        while not is_inside and not self._queue.acquire(timeout=min(_LOOK_AGAIN, seconds)):
            if waiting is not None:
                waiting()
            if time.monotonic() - began >= seconds:
                raise StoreLocked(self.tree.root, seconds)
        try:
            while (passed := time.monotonic() - began) < seconds:
                if waiting is not None:
                    waiting()
                time.sleep(GAP_SECONDS if passed < BRIEF_WAIT_SECONDS else POLL_SECONDS)
                yield
        finally:
            if not is_inside:
                self._queue.release()
        raise StoreLocked(self.tree.root, seconds)

    def commit(
        self,
        batch: Batch,
        steps: Iterable[FileStep],
        looked: Mapping[bytes, os.stat_result] | None = None,
        *,
        left: Iterable[bytes] | None = None,
    ) -> None:
        """Append the batch durably, then carry out the steps; both, or neither.

        `left`: of a decision, folders that may be empty before it is carried out (None: no folder goes).

        Raises what Transition.prepare and Log.append raise, with nothing changed, or CallAborted with everything
        taken back.
        """
        with self._transition(steps, batch, looked, left) as transition:
            transition.prepare()
            group = batch.commit()
            try:
                transition.run()
            except CallAborted as error:
                try:
                    self._void(group, str(error))
                except DiskFailed as failure:
                    # Without the void the group holds, and the next writer carries it out after all.
                    raise Unacknowledged(str(error)) from failure
                raise
        self._note_followed()

    def check_commit(self, batch: Batch, steps: Iterable[FileStep], looked: Mapping[bytes, os.stat_result]) -> None:
        """Raise what `commit` would for what stands on disk now; nothing is changed. Call it while `writing`."""
        with self._transition(steps, batch, looked) as transition:
            transition.check()

    def carry_out(self, steps: Iterable[FileStep]) -> None:
        """Make files what the log says of them already. Call it while `writing`; nothing is recorded.

        Raises what Transition.prepare raises, with nothing changed, or CallAborted with everything taken back.
        """
        with self._transition(steps, self.store) as transition:
            transition.prepare()
            transition.run()

    def seal(self) -> None:
        """End the log's last segment, so that it can be written anew. Call it while `writing`."""
        self.store.seal()
        self._note_followed()

    def relocate_applied_marker(self, segment: int) -> None:
        """Let the mark name the place it did, where the segment was written anew. Call it while `writing`.

        It lies in one that is only while files wait for room to follow. If the process dies before this, the mark names
        nothing, and the newest records are looked at.
        """
        marked, boot = self._mark.read()
        place = None if marked is None or marked.segment != segment else self.store.log.start_after_rewrite(marked)
        if place is not None and place != marked and self._mark.is_of_this_boot(boot):
            self._mark.write(place)

    @contextmanager
    def try_brief_lock(self) -> Iterator[bool]:
        """Hold the writer lock for a moment, unless another process has it; give whether that is so.

        Nothing is finished or brought up to date: it is for what is derived. Raises PermissionRefused, DiskFailed.
        """
        with self.mutex, nullcontext(True) if self._is_writing else self._if_free() as is_ours:  # noqa: FBT003 - its value
            yield is_ours

    def await_writer(self, until: float) -> bool:
        """Wait for who is writing at this moment, but not beyond `until`, by the monotonic clock.

        Return whether nobody is, as far as can be told. Other threads go on meanwhile.
        """
        while True:
            with self.mutex:
                try:
                    if self._lock.acquire_now():
                        self._lock.release()
                        return True
                except (PermissionRefused, DiskFailed):
                    return True  # who may not even open the lock's file can't wait for it
            if time.monotonic() >= until:
                return False
            time.sleep(GAP_SECONDS)

    @contextmanager
    def compacting(self) -> Iterator[None]:
        """Be the only one that sweeps. Raises StoreLocked at once if another one is at it."""
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
        """Return the permission bits that a new file has here. Raises DiskFull, DiskFailed, PermissionRefused."""
        if self._new_file_mode is None:
            self._new_file_mode = self.disk.new_file_mode(self._staging_fd(), "tmp")
        return self._new_file_mode

    def remove_superseded(self, path: str) -> None:
        """Remove an older generation of a segment, and give its room back. Call it while nobody waits for the lock."""
        self.disk.remove_store_file(path)
        with self.mutex:
            self.store.log.release_superseded()

    def finish_moves(self) -> None:
        """Have the index follow what a sweep moved. Only who is `sweeping` calls it. Raises StoreDamaged."""
        with self.mutex, self.translating_index_errors():
            index, log = self.store.index, self.store.log
            segments = index.places.moving()
            if segments:
                from objstore.index.relocate import relocate

                # Who moved it may have died since this process last looked which generations there are.
                log.refresh(anew=True)
                relocate(index, log)
        for segment in segments:
            log.delete_frame_moves(segment)

    def recreate(self, *, index: bool, mark: bool) -> None:
        """Make anew what is derived: the index from the log; the mark, as if files had followed the log to its end.

        What writes that were cut off left in `.cas/tmp` goes in any case. The log is read before the lock is taken, and
        under it what was appended meanwhile.

        Raises StoreLocked, StoreDamaged.
        """
        reading = self.store.index_beside() if index else nullcontext()
        with reading as beside, self.mutex, self._lock.held(), IndexErrors(self._index):
            if index:
                self.store.index.recreate(beside)
            self.store.catch_up()
            self._clear_staging()
            if mark:
                self.store.log.secure(self.store.log.first)
                self._mark.write(self.store.end)

    # ---- inside

    def _doubt_index(self) -> None:
        self.store.doubt_index()  # of the store that is open by then

    @contextmanager
    def _using(self) -> Iterator[None]:
        """Use the store that lies at its path now: it is opened again where that is another one.

        For who uses it already it stays the same: what they hold is of that one.
        """
        if not self._users:
            try:
                self.store.log.refresh()
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
                self.store.close_left()

    def _opened(self, *, releases_index: bool = False) -> Store:
        if not is_folder(self._folder) or os.path.islink(self._folder):
            raise NotAWorkspace(self.tree.root)
        if not os.access(self._folder, os.X_OK):
            raise PermissionRefused(self._folder)
        self.tree.require_in_place()  # the store is opened by its name
        refuse_links(self._folder)
        opened = Store(self._folder, self.disk, releases_index=releases_index)
        if not self.tree.is_there:
            opened.close()
            raise StoreReplaced(self.tree.root)
        return opened

    def _open_again(self) -> None:
        opened = self._opened()
        left, self.store = self.store, opened
        self._close_store(left)
        self._settled = self._is_behind = False

    def _close_store(self, store: Store) -> None:
        """Close what was opened in the store's folder."""
        if self._scratch is not None:
            os.close(self._scratch)
        self._scratch = None
        self._mark.close()
        self._lock.close()
        store.close()

    @contextmanager
    def _if_free(self) -> Iterator[bool]:
        """Hold the writer lock if it is free; give whether that is so."""
        is_ours = self._lock.acquire_now()
        try:
            yield is_ours
        finally:
            if is_ours:
                self._lock.release()

    def _begun(self, *, is_as_left: bool, may_use_reserve: bool) -> Batch:
        """Return a batch for who holds the lock. `is_as_left`: nobody has written since this process did."""
        self.tree.require_in_place()
        is_whole = is_as_left or self.store.catch_up(to_write=True)
        marked, boot = self._mark.read()
        if marked is not None and self.store.end < marked:
            # That is no unfinished write to cut off.
            raise self.store.end.damaged("what was acknowledged is not there (or .cas/applied is another store's)")
        if not is_whole:
            self.store.log.repair_tail(self.store.end)
        self._settle(marked, boot, may_defer_indexing=may_use_reserve)
        return _batch_type()(self.store)

    def _transition(
        self,
        steps: Iterable[FileStep],
        blobs: Blobs,
        looked: Mapping[bytes, os.stat_result] | None = None,
        left: Iterable[bytes] | None = None,
    ) -> Transition:
        return _transition_type()(
            self.tree,
            self.disk,
            steps,
            blobs,
            scratch=self._staging_fd(),
            looked=looked,
            is_made=self._is_made,
            was_file=self._was_file,
            is_emptied=self._is_emptied,
            left=left,
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

    def _is_made(self, folder: bytes) -> bool:
        """Return whether a recorded edit made the folder; only whoever asks has the index brought up to date."""
        return self.store.index.folders.was_created_by_edit(folder)

    def _is_emptied(self, folder: bytes) -> bool:
        """Return whether a recorded decision leaves the folder empty; as `_is_made`."""
        return self.store.index.folders.was_emptied_by_decision(folder)

    def _was_file(self, path: bytes) -> bool:
        """Return whether a recorded file ever stood at a path; as `_is_made`."""
        return self.store.index.documents.ever_at(path)

    def _void(self, group: Group, reason: str) -> None:
        """Record that the group was taken back."""
        from objstore.recovery.unfinished_steps import void_record

        batch = _batch_type()(self.store)
        batch.record(void_record(group, reason))
        batch.commit()
        self._note_followed()

    def _settle(self, marked: Place | None, boot: bytes, *, may_defer_indexing: bool) -> None:
        """Finish what a writer that died had recorded but not carried out, as far as the mark tells.

        `may_wait`: unless there is no room for it, as this process has seen already or sees now.
        """
        end = self.store.end
        since = marked if self._mark.is_of_this_boot(boot) else None
        is_settled = marked == end and self._mark.is_of_this_boot(boot)
        was_behind, self._is_behind = self._is_behind, False
        if self._settled and is_settled:
            return
        self._clear_staging()  # of what writers left that died before they came to the log
        if not self._settled and self.store.index.places.moving():
            # Of a sweep that was cut off, unless it goes on at this moment.
            with suppress(StoreLocked), self.compacting():
                self.finish_moves()
        self._settled = True
        if is_settled:
            return
        if self.store.last_record is not None:
            # As in any write: durable before a file changes.
            self.store.log.secure(since)
        self._is_behind = may_defer_indexing and was_behind
        if self._is_behind:
            return
        finishing = self._roll_forward()
        try:
            finishing.carry_out(self.store, marked, boot)
        except DiskFull:
            if not may_defer_indexing:
                raise
            self._is_behind = True
        self._note_followed()
        if not self._is_behind:
            finishing.remove_recovery_note()

    def _roll_forward(self) -> RollForward:
        if self._roll_forwarder is None:
            from objstore.recovery.roll_forward import RollForward

            self._roll_forwarder = RollForward(
                self._folder,
                self.tree,
                self.disk,
                self._mark,
                scratch=self._staging_fd,
                transition=self._transition,
            )
        return self._roll_forwarder

    def _note_followed(self) -> None:
        """Note that files have followed the log to its end, unless some wait for room to do so."""
        if not self._is_behind:
            self._mark.write(self.store.end)

    def _clear_staging(self) -> None:
        with suppress(FileNotFoundError), open_store_folder(os.path.join(self._folder, "tmp")) as folder:
            for name in os.listdir(folder):
                if name.startswith(BESIDE) and not self._is_cleared(folder, name):
                    continue
                try:
                    with suppress(FileNotFoundError):  # who puts something derived in its place holds no lock
                        self.disk.unlink(folder, name)
                except (DiskFailed, PermissionRefused):
                    # A folder, say, which is nobody's work: whatever it is, no write is held up by it.
                    self.disk.remove_directory(folder, name)

    def _is_cleared(self, scratch: int, note: str) -> bool:
        """Clear the folder on another file system that a note names; return whether the note may go."""
        from objstore.file_changes.cross_device_staging import clear_staging_folder

        return clear_staging_folder(self.tree, self.disk, scratch, note)
