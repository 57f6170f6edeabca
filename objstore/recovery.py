"""Recovery: what a writer that died had put into the log and not yet done to the user's files.

Only the holder of the writer lock changes files, and it holds the lock from the log to the mark. So after a crash of a
process at most the groups behind the mark are unfinished: a path that is still as it was before is rolled forward, and
one that is neither as before nor as after was changed by somebody else and is left. After a power cut the mark tells
nothing, and times are asked besides: what was changed later than its record is somebody else's.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from objstore.batch import now
from objstore.errors import CasError, StoreDamaged
from objstore.frames import FrameKind
from objstore.ondisk import disk_state
from objstore.paths import Tree
from objstore.records import Decision, Edit, Record, Void, decode_record
from objstore.segments import Group, Place
from objstore.store import Store
from objstore.terms import FileState, Origin
from objstore.transition import Step

__all__ = ["due_steps", "void_of"]

_POWER_CUT_WINDOW: Final = 600 * 1_000_000
"""Microseconds: what was written longer ago than this before the last record has long been written back."""

_POWER_CUT_RECORDS: Final = 10_000
"""How many records are looked at for it, at most."""


def due_steps(tree: Tree, store: Store, marked: Place | None) -> Iterator[list[Step]]:
    """Yield what is still to be done, group by group, the oldest first.

    `marked`: how far files have followed the log; None: nobody can tell, the machine has stopped since.
    """
    groups = None if marked is None else _since_mark(store, marked)
    for steps, time in _since_power_cut(store) if groups is None else groups:
        since = time if groups is None else None
        yield [step for step in steps if _is_due(tree, step, since)]


def void_of(group: Group, reason: str) -> Void:
    """Return the record that the group was taken back."""
    records = list(_records(group))
    edits = tuple(record.seq for record in records if isinstance(record, Edit) and record.origin is not Origin.EXTERNAL)
    decision = next((record.number for record in records if isinstance(record, Decision)), 0)
    return Void(time=now(), edits=edits, decision=decision, reason=reason)


def _since_mark(store: Store, marked: Place) -> list[tuple[list[Step], int]] | None:
    """Return the steps and the time of each group whose files may not have followed, oldest first.

    None: the mark is not the end of a group, so it tells nothing.
    """
    try:
        groups = [list(_records(group)) for group in store.log.groups(marked)]
    except StoreDamaged:
        return None
    void_edits = {seq for records in groups for record in records if isinstance(record, Void) for seq in record.edits}
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


def _since_power_cut(store: Store) -> list[tuple[list[Step], int]]:
    """Return the same for what may have been in memory only when the machine stopped."""
    recent: list[list[Record]] = []
    for place in store.index.newest_places(_POWER_CUT_RECORDS):
        record, _ = store.record(place)
        if recent and record.time < recent[0][0].time - _POWER_CUT_WINDOW:
            break
        recent.append([record])
    return _newest_of_each_path(recent[::-1])


def _is_due(tree: Tree, step: Step, since: int | None) -> bool:
    """Return whether the path is still as it was before the step (`since`: the step's time, after a power cut)."""
    try:
        found = disk_state(tree, step.path)
    except CasError:
        return False
    if found is None:
        return step.before is None and (since is None or _folder_time(tree, step.path) <= since)
    state, file = found
    if since is None:
        return state == step.before
    # After a power cut, a name may be older than its file's bytes, or newer than any of them: then it is empty.
    if step.after is not None and not file.content and state.blob != step.after.blob:
        return True
    return state == step.before and file.stat.st_mtime_ns // 1000 <= since


def _folder_time(tree: Tree, path: bytes) -> int:
    """Return when a name last came or went in the path's folder, in microseconds since 1970-01-01 UTC."""
    try:
        return os.lstat(path.rpartition(b"/")[0] or b".", dir_fd=tree.fd).st_mtime_ns // 1000
    except OSError:
        return 0  # the folder itself is gone, or never came


def _steps_of(records: Iterable[Record]) -> list[Step]:
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
    found = [(_steps_of(records), max(record.time for record in records)) for records in groups if records]
    newest = {step.path: i for i, (steps, _) in enumerate(found) for step in steps}
    return [([step for step in steps if newest[step.path] == i], time) for i, (steps, time) in enumerate(found)]


def _records(group: Group) -> Iterator[Record]:
    for frame in group.frames:
        if frame.kind is FrameKind.RECORD:
            yield decode_record(bytes(frame.payload))[0]
