"""Roll forward: find the file changes that a dead writer recorded and did not apply, and apply them.

Only the holder of the writer lock changes files: from appending a group to the log until moving the applied marker, and
the files are durable before the marker moves. Each writer first completes what the one before it left. So whatever
stopped a writer, a kill or a power cut, at most the last group after the marker that changes files is unfinished. A
path that is still in its state before is rolled forward; one in any other state was changed by someone else, and stays.

The guess: after a power cut the marker may be some seconds old, since it is not synced. Who brings back, in these
seconds, the very bytes and the mode that a file had before the last call, finds it changed as by the call.
"""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set as AbstractSet
from itertools import chain, zip_longest
from typing import Final

from objstore.disk.file_changes.apply import Blobs, FileStep, Transition, respelled_paths
from objstore.disk.fs.confined_path import FileOnDisk, Tree
from objstore.disk.fs.content_source import FileSource
from objstore.disk.fs.disk import Pieces
from objstore.disk.fs.file_state import disk_state
from objstore.model.basic_types import Action, FileState, Origin
from objstore.model.record_codec import decode_record
from objstore.model.records import Decision, Edit, Record, Void, VoidedRecords
from objstore.model.relpath import folders_of
from objstore.storage.log.frames import FrameKind
from objstore.storage.log.segment_files import Place
from objstore.storage.log.segments import Group
from objstore.storage.store.object_store import Store
from objstore.storage.store.write_batch import now
from objstore.values.errors import (
    CallAborted,
    DiskFailed,
    DiskFull,
    FileChanged,
    FileUninspectable,
    PathError,
    PathInvalid,
    PathIsDirectory,
    PathOutside,
    StoreDamaged,
)
from objstore.values.fastclass import replace, value

__all__ = ["RollForward", "void_record"]

_BLOCK: Final = 1 << 16
"""Bytes of a file that are compared at a time."""


class RollForward:
    """The recovery of one process, and its earlier attempts."""

    def __init__(self, tree: Tree, transition: Callable[[Iterable[FileStep], Blobs], Transition]) -> None:
        """Set up without reading anything."""
        self._tree: Final = tree
        self._transition: Final = transition
        self._failed: set[bytes] = set()  # files for which this process's last attempt failed

    def carry_out(self, store: Store, marked: Place) -> None:
        """Apply the steps pending after the marker, which says `marked`.

        A file that can't be changed stays as it is, and is reported as an external edit. If the disk fails for it, that
        happens only at the second attempt: the first failure may have been temporary, and no file may block writers for
        ever. Raises DiskFull, and DiskFailed the first time.
        """
        steps = _pending_steps(self._tree, store, _unfinished_steps(store, marked))
        while steps:
            paths = {step.path for step in steps}
            with self._transition(steps, store) as transition:
                try:
                    refused = transition.refused()
                    if not refused:
                        transition.prepare()
                        transition.run()
                        return
                except PathError as error:
                    refused = {os.fsencode(error.path)}
                except CallAborted as error:
                    cause = error.__cause__
                    is_first = self._failed.isdisjoint(paths)
                    refused = {os.fsencode(cause.path if isinstance(cause, PathError) else error.path)}
                    if isinstance(cause, DiskFull) or (isinstance(cause, DiskFailed) and is_first):
                        self._failed |= refused
                        raise cause from error  # the next attempt may succeed
            if refused.isdisjoint(paths):
                return  # the error doesn't name one of the group's files
            steps = _without(steps, refused)


def void_record(group: Group, reason: str) -> Void:
    """Return the record that the group was rolled back. Edits that record what was found on disk remain valid."""
    records = list(_records(group))
    edits = tuple(record.seq for record in records if isinstance(record, Edit) and not record.origin.is_found)
    decision = next((record.number for record in records if isinstance(record, Decision)), 0)
    return Void(time=now(), edits=edits, decision=decision, reason=reason)


# ---- what is pending


def _unfinished_steps(store: Store, marked: Place) -> list[FileStep]:
    """Return the steps of the last group after the marker that changes files; none if the marker is no group's end."""
    try:
        groups = [list(_records(group)) for group in store.log.groups(marked)]
    except StoreDamaged:
        return []
    voided = VoidedRecords(chain.from_iterable(groups))
    steps = (_steps_of([record for record in records if record not in voided]) for records in reversed(groups))
    return next(filter(None, steps), [])


def _pending_steps(tree: Tree, store: Store, steps: Sequence[FileStep]) -> list[FileStep]:
    """Return those of a group's steps that are still to be applied, each from the current state.

    Raises FileUninspectable if a file can't be read now, and DiskFailed.
    """
    inspector = _Inspector(tree, store, {step.path for step in steps if step.after is None})
    inspected = _with_other_spellings(tree, [(step, inspector.status(step)) for step in steps])
    # Remove the old name of a move only if the new one exists or will. A name already gone counts as removed.
    is_new_name_safe = all(status is not _OTHER for step, status in inspected if step.after is not None)
    due = [
        replace(step, before=status.found)
        for step, status in inspected
        if (status.is_due and (is_new_name_safe or step.after is not None)) or (status is _DONE and step.after is None)
    ]
    gone = {step.path: step.before for step in due if step.after is None and step.before is not None}
    # Move the file itself where possible, so that it has one of its names at any moment.
    return [step if _is_moved(step, gone) else replace(step, moved_from=None) for step in due]


def _without(steps: Sequence[FileStep], refused: Collection[bytes]) -> list[FileStep]:
    """Return a group's steps without those for the refused paths, and without those that depend on them."""
    # If a file was moved and changed, its old name is no longer known.
    all_come = all(step.after is None or step.path not in refused for step in steps)
    kept = [step for step in steps if step.path not in refused and step.moved_from not in refused]
    moved = {step.moved_from for step in kept}
    return [step for step in kept if step.after is not None or step.before is None or all_come or step.path in moved]


# ---- the steps of a group


def _steps_of(records: Sequence[Record]) -> list[FileStep]:
    """Return the steps of one group's records, path by path.

    Edits that record what was found on disk need no step: those states existed before the group's other records, or
    result from them. What git wrote is never written for it.
    """
    first: dict[bytes, FileState | None] = {}
    last: dict[bytes, FileState | None] = {}
    moved: dict[bytes, bytes] = {}  # by its path, where a file was before the group
    is_decided = any(isinstance(record, Decision) for record in records)

    def note(path: bytes, before: FileState | None, after: FileState | None) -> None:
        first.setdefault(path, before)
        last[path] = after

    for record in records:
        match record:
            case Edit(origin=origin) if origin.is_found:
                # If the group itself wrote the file before, the state that was found is the current one.
                if record.path in last:
                    last[record.path] = record.after
            case Edit(source=None):
                note(record.path, record.before, record.after)
            case Edit(source=bytes(source)):
                note(source, record.before, None)
                note(record.path, None, record.after)
                moved[record.path] = moved.pop(source, source)
            case Decision():
                # Files may swap paths: a path's state before is that of the file that leaves, its state after that of
                # the new one.
                before = {w.path_before: w.before for w in record.changed_files if w.path_before is not None}
                after = {w.path_after: w.after for w in record.changed_files if w.path_after is not None}
                for path in sorted({*before, *after}):
                    note(path, before.get(path), after.get(path))
                moved |= {w.path_after: w.path_before for w in record.changed_files if w.path_after and w.path_before}
            case _:
                pass
    left_alone = {path for record in records for path in _paths_of_git(record)}
    return [
        FileStep(path=path, before=first[path], after=last[path], moved_from=moved.get(path), is_decided=is_decided)
        for path in first
        if path not in left_alone
    ]


def _paths_of_git(record: Record) -> set[bytes]:
    """Return the paths of the files that the record says git changed; git itself is responsible for their bytes."""
    match record:
        case Edit(origin=Origin.GIT):
            paths = {record.path, record.source}
        case Decision(action=Action.GIT):
            paths = {path for w in record.changed_files for path in (w.path_before, w.path_after)}
        case _:
            paths = set()
    return {path for path in paths if path is not None}


def _records(group: Group) -> Iterator[Record]:
    for frame in group.frames:
        if frame.kind is FrameKind.RECORD:
            yield decode_record(bytes(frame.payload))[0]


def _is_moved(step: FileStep, gone: Mapping[bytes, FileState]) -> bool:
    """Return whether the step's new file is, unchanged, the one that is removed at its old path."""
    is_new = step.before is None and step.after is not None
    return is_new and step.moved_from is not None and gone.get(step.moved_from) == step.after


# ---- what is on disk


@value
class _Status:
    """The status of a step: whether it is still to be done, and from which state."""

    is_due: bool
    found: FileState | None = None  # the current state; None: no file


_DONE: Final = _Status(is_due=False)
_OTHER: Final = _Status(is_due=False)  # neither before nor after: someone else's change


class _Inspector:
    """Decides for the file at a step's path whether the step is still to be done."""

    def __init__(self, tree: Tree, store: Store, vacated: AbstractSet[bytes]) -> None:
        """Inspect the files of one group. `vacated`: paths of the files that it removes."""
        self._tree: Final = tree
        self._store: Final = store
        self._vacated: Final = vacated

    def status(self, step: FileStep) -> _Status:
        """Return the status of a step.

        Raises FileUninspectable if the file can't be read now, which proves nothing about it.
        """
        if step.after is not None and not self._store.has(step.after.blob):
            return _OTHER  # the blob expired, so a later record determines the file's state
        try:
            found = disk_state(self._tree, step.path)
        except DiskFailed as error:
            raise FileUninspectable(os.fsdecode(step.path), error.reason) from error
        except PathIsDirectory:
            # An empty folder gives way to the file.
            return self._status_of_missing_file(step) if self._may_be_replaced(step) else _OTHER
        except (PathInvalid, PathOutside, FileChanged):  # a file, or a link to somewhere, has the path of its folder
            is_blocked = not self._vacated.isdisjoint(folders_of(step.path))
            return self._status_of_missing_file(step) if is_blocked else _OTHER
        except PathError:
            return _OTHER
        if found is None:
            return self._status_of_missing_file(step)
        state, file = found
        if state == step.after:
            return _DONE
        is_due = state == step.before or self._is_half_written(step, state, file)
        return _Status(is_due=True, found=state) if is_due else _OTHER

    def _may_be_replaced(self, step: FileStep) -> bool:
        """Return whether a file may replace a folder.

        It may if edits created the folder, the group empties it, or a decision restores the file.
        """
        folder = step.path
        is_emptied = any(folder in folders_of(path) for path in self._vacated)
        return step.is_decided or is_emptied or self._store.index.folders.was_created_by_edit(folder)

    def _status_of_missing_file(self, step: FileStep) -> _Status:
        if step.after is None:
            return _DONE
        return _Status(is_due=True) if step.before is None else _OTHER

    def _is_half_written(self, step: FileStep, state: FileState, file: FileOnDisk) -> bool:
        """Return whether a file is on its way to its state after: only one with several names is written in place.

        Its sectors reach the disk in any order, and it gets its mode last. This guesses wrong for a person who gives
        such a file, after the crash, a content of which each byte is in one of the two states at the same place.
        """
        before, after = step.before, step.after
        if before is None or after is None or file.stat.st_nlink == 1 or state.is_link or after.is_link:
            return False
        if state.blob == after.blob:
            return state.mode == before.mode
        old, new = before.blob, after.blob
        if not self._store.has(old):
            return False
        sizes = sorted((self._store.size(old), self._store.size(new)))
        source = FileSource(self._tree, step.path, file.stat)
        try:
            is_within = sizes[0] <= file.stat.st_size <= sizes[1]
            return is_within and _is_mixture(source.pieces(), self._store.pieces(old), self._store.pieces(new))
        except FileChanged:
            return False  # someone is writing to the file


def _with_other_spellings(tree: Tree, inspected: list[tuple[FileStep, _Status]]) -> list[tuple[FileStep, _Status]]:
    """Return the steps and their status, where some give a file another spelling of its path.

    Both paths lead to the file then, whatever its spelling. If the old one is to go, the new one is still to come.
    """
    respelled = respelled_paths(tree, [step for step, _ in inspected])
    due = {step.path for step, status in inspected if status.is_due}
    return [(step, _Status(is_due=True) if respelled.get(step.path) in due else status) for step, status in inspected]


def _is_mixture(found: Pieces, old: Pieces, new: Pieces) -> bool:
    """Return whether each byte is the old or the new one at its place; where the old content ends, zeros are old."""
    both = zip_longest(_blocks(old), _blocks(new), fillvalue=b"")
    for block, (before, after) in zip(_blocks(found), both, strict=False):
        size = len(block)
        was = before[:size].ljust(size, b"\0")
        wanted = after[:size] + was[len(after) :]
        if block not in (was, wanted) and any(
            byte not in (one, other) for byte, one, other in zip(block, was, wanted, strict=True)
        ):
            return False
    return True


def _blocks(pieces: Pieces) -> Iterator[bytes]:
    """Yield a content in blocks of one size; the last may be shorter."""
    held = b""
    for piece in [pieces] if isinstance(pieces, bytes) else pieces:
        held += piece
        whole = len(held) // _BLOCK * _BLOCK
        for start in range(0, whole, _BLOCK):
            yield held[start : start + _BLOCK]
        held = held[whole:]
    if held:
        yield held
