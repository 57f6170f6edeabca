"""The aftermath of a stop: whether what stands at a path is what a step of ours left there, or is to begin from.

A process that died leaves each file as before or as after. After a power cut a file has to show besides that it can be
what the cut left of ours, by its times and its size: docs/decisions/0030-power-cuts.md. All else is somebody else's.
"""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set as AbstractSet
from contextlib import suppress
from typing import Final

from objstore.errors import DiskFailed, FileChanged, FileUninspectable, PathError, PathInvalid, PathIsDirectory
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
"""Microseconds that it may take from a record's time until its files have been written, where nothing says when."""

_AT_ONCE: Final = 1_000_000
"""Microseconds within which a file is written after its record, if nothing is in the way, and by hand hardly ever."""

_TICK: Final = 20_000
"""Microseconds by which clocks of files are coarse, at the most, where their times are those of the machine."""

_SECTOR: Final = 512
"""Bytes: no disk has written more or less of a file than so many of them, but for its end."""


class StepTiming:
    """When a step was recorded, for what has changed before or after it on disk. All in microseconds."""

    def __init__(self, time: int, before: Iterable[int], ahead: int, followed: int) -> None:
        """`before`: the times of the records before it; `ahead`: by how much the clock of files is.

        `followed`: when files had last followed all that was recorded, by the clock of records.
        """
        self._time: Final = time + ahead
        # Records that come before it and have a later time: the clock was set back in between.
        self._set_back: Final = [earlier + ahead for earlier in before if earlier > time]
        latest = min(followed + _TICK, time + _STAGING) if followed >= time else time + _STAGING
        self.until: Final = latest + ahead
        """When the step had been carried out at the latest."""

    def is_behind(self, changed: int) -> bool:
        """Return whether what has the time `changed` had it when the step was recorded."""
        return changed <= self._time or any(abs(changed - earlier) <= _STAGING for earlier in self._set_back)

    def is_soon_after_record(self, changed: int) -> bool:
        """Return whether what has the time `changed` got it right after the step was recorded, or before."""
        return changed <= min(self.until, self._time + _AT_ONCE)

    def may_be_written_by_step(self, changed: int) -> bool:
        """Return whether what has the time `changed` was written by the step, or before it."""
        return changed <= self.until or self.is_behind(changed)


def step_timings(groups: Sequence[tuple[list[FileStep], int]], ahead: int, followed: int) -> dict[int, StepTiming]:
    """Return it for each group that has steps, by its time."""
    step_times: dict[int, StepTiming] = {}
    times: list[int] = []
    latest = 0
    for steps, time in groups:
        if steps and time not in step_times:
            step_times[time] = StepTiming(time, times if latest > time else (), ahead, followed)
        times.append(time)
        latest = max(latest, time)
    return step_times


def last_group_on_disk(
    tree: Tree, groups: Sequence[tuple[list[FileStep], int]], step_times: Mapping[int, StepTiming]
) -> int:
    """Return which group is the last of which a file reached the disk (0: perhaps none).

    Names reach it in the order in which they were made and removed, so no group before that is half there.
    """
    for number in reversed(range(len(groups))):
        steps, time = groups[number]
        for step in steps:
            with suppress(PathError):
                found = None if step.after is None else _seen(tree, step.path)
                if found is None or found[0] != step.after:
                    continue
                # What was found and recorded stood there before.
                if not step_times[time].is_behind(_changed(found[1].stat) + _TICK):
                    return number
    return 0


def _seen(tree: Tree, path: bytes) -> tuple[FileState, FileOnDisk] | None:
    """Return what `disk_state` does. Raises FileUnseen, and else as that."""
    try:
        return disk_state(tree, path)
    except DiskFailed as error:
        raise FileUninspectable(os.fsdecode(path), error.reason) from error


def _changed(found: os.stat_result) -> int:
    """Return when a file or folder was last changed, in microseconds since 1970-01-01 UTC.

    Moving it, copying it with its times or changing its mode leaves `st_mtime` as it is, and never `st_ctime`.
    """
    return max(found.st_mtime_ns, found.st_ctime_ns) // 1000


@value
class StepStatus:
    """Whether a step is still to be done, and from which state."""

    is_due: bool
    found: FileState | None = None  # what stands there; None: nothing


DONE: Final = StepStatus(is_due=False)
OTHER: Final = StepStatus(is_due=False)  # neither as before nor as after: somebody else's


class StepInspector:
    """Looks at what stands at a step's path, and says whether the step is still to be done."""

    def __init__(  # noqa: PLR0913 - each is one thing that only the whole of the groups shows
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
        self._earlier = earlier  # after a power cut: what stood at a path before each of its steps
        self._folders = folders  # when a name last came or went in each
        self._vacated = vacated  # paths of the group's files that go
        self._leaving = leaving  # and of those that go with groups before it
        self._noted = noted  # after a power cut: what was found due before the first of it was carried out
        self._since = since  # when the step was recorded, after a power cut; None: the machine has run on
        self._may_be_half = may_be_partial  # whether the power may have failed between two files of the group
        self._arrived: list[os.stat_result] = []  # what stands where the group's files come

    def note_arrivals(self, steps: Iterable[FileStep]) -> None:
        """Look at what stands where the steps of a group make files, if others of them go."""
        for step in steps:
            if self._vacated and step.after is not None:
                with suppress(OSError):
                    self._arrived.append(os.lstat(step.path, dir_fd=self._tree.fd))

    def step_status(self, step: FileStep) -> StepStatus:
        """Return it. Raises FileUnseen where that can't be seen now: what failed says nothing of what stands there."""
        if step.after is not None and not self._store.has(step.after.blob):
            return OTHER  # a later record says what stands there, and nothing holds this any more
        try:
            found = _seen(self._tree, step.path)
        except PathIsDirectory:
            # It gives way to the file if it is empty.
            return self._verdict_for_missing_file(step) if self._may_be_replaced(step) else OTHER
        except PathInvalid:
            is_blocked = not (self._vacated | self._leaving).isdisjoint(folders_of(step.path))
            return self._verdict_for_missing_file(step) if is_blocked else OTHER
        except PathError:
            return OTHER
        if found is None:
            return self._verdict_for_missing_file(step)
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
        """Return whether the step was found due from this very state."""
        return self._noted.get(step.path) == (state, step.after)

    def _may_be_replaced(self, step: FileStep) -> bool:
        """Return whether a file may take a folder's name: edits made it, the group empties it, or it was the file's."""
        folder = step.path
        is_emptied = any(folder in folders_of(path) for path in self._vacated)
        return step.is_decided or is_emptied or self._store.index.folders.was_created_by_edit(folder)

    def _verdict_for_missing_file(self, step: FileStep) -> StepStatus:
        if step.after is None:
            return DONE
        untouched = self._since is None or self._is_as_left(self._folders[folder_of(step.path)], self._since)
        # After a power cut the name may be gone that an earlier record gave, and that this one only found.
        was_nothing = step.before is None or None in self._earlier.get(step.path, ())
        return StepStatus(is_due=True) if (was_nothing and untouched) or self._is_noted(step, None) else OTHER

    def _is_as_left(self, folder_changed: int, since: StepTiming) -> bool:
        """Return whether nobody but ourselves can have taken a file out of a folder since the step was recorded."""
        return since.is_behind(folder_changed) or (self._may_be_half and since.may_be_written_by_step(folder_changed))

    def _is_older(self, step: FileStep, state: FileState, file: FileOnDisk) -> bool:
        """Return whether the file is one that stood there before the step."""
        if self._since is None:
            return state == step.before
        if state not in self._earlier[step.path]:
            return False
        # After a power cut it may be older than that; what somebody put back later has a later time. So has a file
        # under its old name that has got its new one as well.
        changed = _changed(file.stat)
        is_both = self._may_be_half and any(os.path.samestat(file.stat, other) for other in self._arrived)
        # What is written in place has its new times on the disk before its bytes; no hand is as fast as that.
        is_in_place = step.after is not None and file.stat.st_nlink > 1 and self._since.is_soon_after_record(changed)
        return (
            self._since.is_behind(changed) or is_in_place or (is_both and self._since.may_be_written_by_step(changed))
        )

    def _is_unfinished(self, step: FileStep, state: FileState, file: FileOnDisk) -> bool:
        """Return whether the file holds a part of what it should, and of nothing else than what it did."""
        if step.after is None or not self._may_be_ours(step, file):
            return False
        # A file with several names is written in place: first the new bytes, then what is left of the old ones.
        before = None if file.stat.st_nlink == 1 or step.before is None else step.before
        if state.blob == step.after.blob:
            # Its mode comes last there. Any other has its mode before its name, so somebody else has given it another.
            return before is not None and state.mode == before.mode
        is_in_place = before is not None and state.blob != before.blob and self._store.has(before.blob)
        old = before.blob if before is not None and is_in_place else None
        if is_placeholder(file.content) or self._store.size(step.after.blob) > MAX_BLOB:
            return self._is_partly_written_large_file(step, step.after.blob, old, file)
        wanted, content = self._store.blob(step.after.blob), file.content
        if self._since is not None and _is_torn_prefix(content, wanted):
            return True  # its name reached the disk, and not all of its bytes
        written = shared_head(content, wanted)
        return old is not None and content[written:] == self._store.blob(old)[written:]

    def _may_be_ours(self, step: FileStep, file: FileOnDisk) -> bool:
        """Return whether the file can be the one that the step wrote: nobody has changed it later.

        Where it was carried out only after the power cut, and then cut off again, no time tells that.
        """
        is_noted = step.path in self._noted and self._noted[step.path][1] == step.after
        return self._since is None or is_noted or self._since.may_be_written_by_step(_changed(file.stat))

    def _is_truncated(self, step: FileStep, file: FileOnDisk) -> bool:
        """Return whether the file holds the beginning of what once stood there, and nothing or zeros behind it."""
        if self._since is None or not self._since.is_behind(_changed(file.stat)):
            return False
        is_large = is_placeholder(file.content)
        for state in self._earlier[step.path]:
            place = None if state is None else self._store.blob_place(state.blob)
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
        """Return whether the file is the beginning of a state, with nothing but zeros behind it, or no more at all."""
        source = FileSource(self._tree, step.path, file.stat)
        try:
            written = _shared(source.pieces(), self._store.pieces(state.blob))
            size = file.stat.st_size
            return _is_cut(size, self._store.size(state.blob), written) and _is_zero(source.pieces(), written)
        except FileChanged:
            return False  # somebody is writing to it

    def _is_partly_written_large_file(
        self, step: FileStep, after: BlobId, old: BlobId | None, file: FileOnDisk
    ) -> bool:
        """Return the same, where not all of it can be held in memory at once. `old`: what is overwritten in place."""
        size = file.stat.st_size
        source = FileSource(self._tree, step.path, file.stat)
        try:
            written = _shared(source.pieces(), self._store.pieces(after))
            is_cut = self._since is not None and _is_cut(size, self._store.size(after), written)
            if is_cut and _is_zero(source.pieces(), written):
                return True
            if old is None:
                return False
            before = self._store.size(old)
            if written == size or before != size:
                return written == size and before <= size
            return _shared(source.pieces(), self._store.pieces(old), skip=written) == size
        except FileChanged:
            return False  # somebody is writing to it


def _is_torn_prefix(content: bytes, whole: bytes) -> bool:
    """Return whether a power cut can have left `content` of `whole`: its beginning, and nothing or zeros behind it."""
    written = content.rstrip(b"\0")
    return _is_cut(len(content), len(whole), len(written)) and whole.startswith(written)


def _is_cut(size: int, whole: int, written: int) -> bool:
    """Return whether of `whole` bytes a power cut leaves `size`: whole sectors, or all with zeros from somewhere on."""
    return size == whole or (size < whole and (size % _SECTOR == 0 or written < size))


def _shared(pieces: Iterator[bytes], others: Iterator[bytes], *, skip: int = 0) -> int:
    """Return up to which byte two contents are equal, of which the first `skip` bytes count as such."""
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
    """Return whether nothing but zeros stands from byte `start` on."""
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
    """Return when a name last came or went in the folder, in microseconds since 1970-01-01 UTC.

    Where it is gone, or never came, that is asked of the one that it would be in.
    """
    try:
        return _changed(os.lstat(folder or b".", dir_fd=tree.fd))
    except OSError:
        return folder_time(tree, folder_of(folder)) if folder else 0
