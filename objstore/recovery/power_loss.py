"""Decide whether a file has the result of a recorded step, or the state from which that step starts.

A process that died leaves each file in its state before or after. After a power cut, a file must also show by its times
and its size that the cut may have left it so: docs/decisions/0030-power-cuts.md. Everything else is someone else's.
"""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set as AbstractSet
from contextlib import suppress
from typing import Final

from objstore.errors import (
    DiskFailed,
    FileChanged,
    FileUninspectable,
    PathError,
    PathInvalid,
    PathIsDirectory,
    PathOutside,
)
from objstore.fastclass import value
from objstore.file_changes.apply import FileStep
from objstore.fs.confined_path import FileOnDisk, Tree
from objstore.fs.content_source import FileSource
from objstore.fs.file_state import disk_state
from objstore.model.basic_types import FileState
from objstore.model.ids import BlobId
from objstore.model.large_file_placeholder import MAX_BLOB, is_placeholder
from objstore.model.relpath import folders_of
from objstore.recovery.recovery_note import PendingSteps
from objstore.store.object_store import Store
from objstore.text.lines import shared_head

__all__ = [
    "DONE",
    "OTHER",
    "StepInspector",
    "StepStatus",
    "StepTiming",
    "folder_of",
    "folder_time",
    "last_group_on_disk",
    "step_timings",
]

_STAGING: Final = 60 * 1_000_000
"""Most time, in microseconds, from a record until its files have been written, if the marker's time is unknown."""

_PROMPT: Final = 1_000_000
"""Microseconds after its record within which an unblocked step writes its file, and a person hardly ever does."""

_TICK: Final = 20_000
"""Resolution of file times, in microseconds, at worst, where they use the machine's clock."""

_SECTOR: Final = 512
"""Bytes of a sector: a disk writes a file in multiples of it, except at the end."""


class StepTiming:
    """The time when a step was recorded, to order changes on disk before or after it. All times in microseconds."""

    def __init__(self, time: int, before: Iterable[int], ahead: int, files_matched_at: int) -> None:
        """Set the times.

        `before`: the times of the records before it. `ahead`: by how much the clock of files is ahead of that of
        records. `files_matched_at`: when files last matched all that was recorded, by the clock of records.
        """
        self._time: Final = time + ahead
        # Earlier records with a later time: the clock was set back in between.
        self._set_back: Final = [earlier + ahead for earlier in before if earlier > time]
        latest = min(files_matched_at + _TICK, time + _STAGING) if files_matched_at >= time else time + _STAGING
        self.until: Final = latest + ahead
        """The latest time at which the step was applied."""

    def predates_record(self, changed: int) -> bool:
        """Return whether a file with the time `changed` had that time already when the step was recorded."""
        return changed <= self._time or any(abs(changed - earlier) <= _STAGING for earlier in self._set_back)

    def is_soon_after_record(self, changed: int) -> bool:
        """Return whether a file with the time `changed` got it right after the step was recorded, or before."""
        return changed <= min(self.until, self._time + _PROMPT)

    def may_be_written_by_step(self, changed: int) -> bool:
        """Return whether a file with the time `changed` was written by the step, or before it."""
        return changed <= self.until or self.predates_record(changed)


def step_timings(
    groups: Sequence[tuple[list[FileStep], int]], ahead: int, files_matched_at: int
) -> dict[int, StepTiming]:
    """Return the timing of each group that has steps, by the group's time."""
    step_times: dict[int, StepTiming] = {}
    times: list[int] = []
    latest = 0
    for steps, time in groups:
        if steps and time not in step_times:
            step_times[time] = StepTiming(time, times if latest > time else (), ahead, files_matched_at)
        times.append(time)
        latest = max(latest, time)
    return step_times


def last_group_on_disk(
    tree: Tree, groups: Sequence[tuple[list[FileStep], int]], step_times: Mapping[int, StepTiming]
) -> int:
    """Return the index of the last group of which a file reached the disk (0: perhaps none did).

    Names reach the disk in the order in which they were created and removed, so every group before that one is
    complete.
    """
    for number in reversed(range(len(groups))):
        steps, time = groups[number]
        for step in steps:
            with suppress(PathError):
                found = None if step.after is None else _disk_state(tree, step.path)
                if found is None or found[0] != step.after:
                    continue
                # A state that an external edit recorded was on disk before its record.
                if not step_times[time].predates_record(_change_time(found[1].stat) + _TICK):
                    return number
    return 0


def _disk_state(tree: Tree, path: bytes) -> tuple[FileState, FileOnDisk] | None:
    """Return the same as `disk_state`. Raises FileUninspectable in place of DiskFailed, and else as disk_state."""
    try:
        return disk_state(tree, path)
    except DiskFailed as error:
        raise FileUninspectable(os.fsdecode(path), error.reason) from error


def _change_time(found: os.stat_result) -> int:
    """Return when a file or folder was last changed, in microseconds since 1970-01-01 UTC.

    Moving a file, copying it with its times, or changing its mode keeps `st_mtime`, but never `st_ctime`.
    """
    return max(found.st_mtime_ns, found.st_ctime_ns) // 1000


@value
class StepStatus:
    """The status of a step: whether it is still to be done, and from which state."""

    is_due: bool
    found: FileState | None = None  # the current state; None: no file


DONE: Final = StepStatus(is_due=False)
OTHER: Final = StepStatus(is_due=False)  # neither before nor after: someone else's change


class StepInspector:
    """Inspects the file at a step's path, and decides whether the step is still to be done."""

    def __init__(  # noqa: PLR0913 - each is a fact that only all groups together show
        self,
        tree: Tree,
        store: Store,
        earlier: Mapping[bytes, Collection[FileState | None]],
        folders: Mapping[bytes, int],
        since: StepTiming | None,
        vacated: AbstractSet[bytes],
        leaving: AbstractSet[bytes],
        noted: PendingSteps,
        *,
        may_be_partial: bool,
    ) -> None:
        self._tree = tree
        self._store = store
        self._earlier = earlier  # after a power cut: the states of a path before each of its steps
        self._folders = folders  # when a name was last added or removed in each folder
        self._vacated = vacated  # paths of the files that the group removes
        self._leaving = leaving  # paths of the files that earlier groups remove
        self._noted = noted  # after a power cut: steps found pending before the first of them was applied
        self._since = since  # after a power cut: timing of the step; None: the machine has not stopped
        self._may_be_partial = may_be_partial  # whether the power may have failed between two files of the group
        self._created_stats: list[os.stat_result] = []  # status of the files at the paths that the group creates

    def note_arrivals(self, steps: Iterable[FileStep]) -> None:
        """Note the status of the files at the paths that the group's steps create, if other steps remove files."""
        for step in steps:
            if self._vacated and step.after is not None:
                with suppress(OSError):
                    self._created_stats.append(os.lstat(step.path, dir_fd=self._tree.fd))

    def step_status(self, step: FileStep) -> StepStatus:
        """Return the status of a step.

        Raises FileUninspectable if the file can't be read now, which proves nothing about it.
        """
        if step.after is not None and not self._store.has(step.after.blob):
            return OTHER  # the blob expired, so a later record determines the file's state
        try:
            found = _disk_state(self._tree, step.path)
        except PathIsDirectory:
            # An empty folder gives way to the file.
            return self._status_for_missing_file(step) if self._may_be_replaced(step) else OTHER
        except (PathInvalid, PathOutside, FileChanged):  # a file, or a link to somewhere, has the path of its folder
            is_blocked = not (self._vacated | self._leaving).isdisjoint(folders_of(step.path))
            return self._status_for_missing_file(step) if is_blocked else OTHER
        except PathError:
            return OTHER
        if found is None:
            return self._status_for_missing_file(step)
        state, file = found
        if state == step.after:
            return DONE
        is_due = (
            self._is_noted(step, state)
            or self._is_older(step, state, file)
            or self._is_unfinished(step, state, file)
            or self._is_truncated(step, file)
        )
        return StepStatus(is_due=True, found=state) if is_due else OTHER

    def _is_noted(self, step: FileStep, state: FileState | None) -> bool:
        """Return whether the recovery note has the step as pending from this very state."""
        return self._noted.get(step.path) == (state, step.after)

    def _may_be_replaced(self, step: FileStep) -> bool:
        """Return whether a file may replace a folder.

        It may if edits created the folder, the group empties it, or a decision restores the file.
        """
        folder = step.path
        is_emptied = any(folder in folders_of(path) for path in self._vacated)
        return step.is_decided or is_emptied or self._store.index.folders.was_created_by_edit(folder)

    def _status_for_missing_file(self, step: FileStep) -> StepStatus:
        if step.after is None:
            return DONE
        untouched = self._since is None or self._is_folder_untouched(self._folders[folder_of(step.path)], self._since)
        # After a power cut a name may be missing that an earlier record created and this one only found.
        was_nothing = step.before is None or None in self._earlier.get(step.path, ())
        return StepStatus(is_due=True) if (was_nothing and untouched) or self._is_noted(step, None) else OTHER

    def _is_folder_untouched(self, folder_changed: int, since: StepTiming) -> bool:
        """Return whether only we can have removed a file from a folder since the step was recorded."""
        return since.predates_record(folder_changed) or (
            self._may_be_partial and since.may_be_written_by_step(folder_changed)
        )

    def _is_older(self, step: FileStep, state: FileState, file: FileOnDisk) -> bool:
        """Return whether the file is in a state that it had before the step."""
        if self._since is None:
            return state == step.before
        if state not in self._earlier[step.path]:
            return False
        # After a power cut the state may be an older one; a file that someone restored later has a later time. So does
        # a file that has both its old and its new name.
        changed = _change_time(file.stat)
        is_both = self._may_be_partial and any(os.path.samestat(file.stat, other) for other in self._created_stats)
        # A file written in place may have its new times on disk before its bytes; no person is that fast.
        is_in_place = step.after is not None and file.stat.st_nlink > 1 and self._since.is_soon_after_record(changed)
        return (
            self._since.predates_record(changed)
            or is_in_place
            or (is_both and self._since.may_be_written_by_step(changed))
        )

    def _is_unfinished(self, step: FileStep, state: FileState, file: FileOnDisk) -> bool:
        """Return whether the file holds a part of its state after, and otherwise only bytes of its state before."""
        if step.after is None or not self._may_be_ours(step, file):
            return False
        if state.is_link or step.after.is_link:
            return False  # a link is there as a whole or not at all
        # A file with several names is written in place: new bytes first, followed by the rest of the old ones.
        before = None if file.stat.st_nlink == 1 or step.before is None else step.before
        if state.blob == step.after.blob:
            # Such a file gets its mode last. Any other gets its mode before its name, so someone else changed it.
            return before is not None and state.mode == before.mode
        is_in_place = before is not None and state.blob != before.blob and self._store.has(before.blob)
        old = before.blob if before is not None and is_in_place else None
        if is_placeholder(file.content) or self._store.size(step.after.blob) > MAX_BLOB:
            return self._is_partly_written_large_file(step, step.after.blob, old, file)
        wanted, content = self._store.blob(step.after.blob), file.content
        if self._since is not None and _is_torn_prefix(content, wanted):
            return True  # the file's name reached the disk, but not all of its bytes
        written = shared_head(content, wanted)
        return old is not None and content[written:] == self._store.blob(old)[written:]

    def _may_be_ours(self, step: FileStep, file: FileOnDisk) -> bool:
        """Return whether the file may be the one that the step wrote: no one has changed it later.

        A step that was applied after the power cut, and then interrupted again, can't be judged by its time.
        """
        is_noted = step.path in self._noted and self._noted[step.path][1] == step.after
        return self._since is None or is_noted or self._since.may_be_written_by_step(_change_time(file.stat))

    def _is_truncated(self, step: FileStep, file: FileOnDisk) -> bool:
        """Return whether the file holds the beginning of an earlier state, followed by nothing or by zeros."""
        if self._since is None or not self._since.predates_record(_change_time(file.stat)):
            return False
        is_large = is_placeholder(file.content)
        for state in self._earlier[step.path]:
            place = None if state is None or state.is_link else self._store.blob_place(state.blob)
            if state is None or place is None or file.stat.st_size > place.size:
                continue
            if place.size > MAX_BLOB or is_large:
                is_beginning = self._is_prefix_of_large_file(step, state, file)
            else:
                is_beginning = _is_torn_prefix(file.content, self._store.blob(state.blob))
            if is_beginning:
                return True
        return False

    def _is_prefix_of_large_file(self, step: FileStep, state: FileState, file: FileOnDisk) -> bool:
        """Return whether the file is the beginning of a large state, followed by nothing or by zeros."""
        source = FileSource(self._tree, step.path, file.stat)
        try:
            written = _common_length(source.pieces(), self._store.pieces(state.blob))
            size = file.stat.st_size
            return _is_cut(size, self._store.size(state.blob), written) and _is_zero(source.pieces(), written)
        except FileChanged:
            return False  # someone is writing to the file

    def _is_partly_written_large_file(
        self, step: FileStep, after: BlobId, old: BlobId | None, file: FileOnDisk
    ) -> bool:
        """Return the same as `_is_unfinished` for a file that doesn't fit in memory.

        `old`: the blob overwritten in place.
        """
        size = file.stat.st_size
        source = FileSource(self._tree, step.path, file.stat)
        try:
            written = _common_length(source.pieces(), self._store.pieces(after))
            is_cut = self._since is not None and _is_cut(size, self._store.size(after), written)
            if is_cut and _is_zero(source.pieces(), written):
                return True
            if old is None:
                return False
            before = self._store.size(old)
            if written == size or before != size:
                return written == size and before <= size
            return _common_length(source.pieces(), self._store.pieces(old), skip=written) == size
        except FileChanged:
            return False  # someone is writing to the file


def _is_torn_prefix(content: bytes, whole: bytes) -> bool:
    """Return whether a power cut can have left `content` of `whole`: its beginning, followed by nothing or by zeros."""
    written = content.rstrip(b"\0")
    return _is_cut(len(content), len(whole), len(written)) and whole.startswith(written)


def _is_cut(size: int, whole: int, written: int) -> bool:
    """Return whether a power cut can leave `size` of `whole` bytes: whole sectors, or all with zeros at the end.

    `written`: the number of bytes that are right.
    """
    return size == whole or (size < whole and (size % _SECTOR == 0 or written < size))


def _common_length(pieces: Iterator[bytes], others: Iterator[bytes], *, skip: int = 0) -> int:
    """Return the length of the common beginning of two contents; their first `skip` bytes count as equal."""
    at, mine, other = 0, b"", b""
    while True:
        mine = mine or next(pieces, b"")
        other = other or next(others, b"")
        size = min(len(mine), len(other))
        if not size:
            return at
        if mine[:size] != other[:size] and at + size > skip:
            start = max(0, skip - at)
            head = shared_head(mine[start:size], other[start:size])
            if start + head < size:
                return at + start + head
        at, mine, other = at + size, mine[size:], other[size:]


def _is_zero(pieces: Iterator[bytes], start: int) -> bool:
    """Return whether all bytes from `start` on are zero."""
    at = 0
    for piece in pieces:
        if at + len(piece) > start and piece[max(0, start - at) :].strip(b"\0"):
            return False
        at += len(piece)
    return True


def folder_of(path: bytes) -> bytes:
    """Return the folder that a path is in."""
    return path.rpartition(b"/")[0]


def folder_time(tree: Tree, folder: bytes) -> int:
    """Return when a name was last added or removed in the folder, in microseconds since 1970-01-01 UTC.

    If the folder doesn't exist, return that of the nearest folder above it that does.
    """
    try:
        return _change_time(os.lstat(folder or b".", dir_fd=tree.fd))
    except OSError:
        return folder_time(tree, folder_of(folder)) if folder else 0
