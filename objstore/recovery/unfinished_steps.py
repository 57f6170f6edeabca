"""Compute which file changes a dead writer recorded and did not apply.

Only the holder of the writer lock changes files, from appending to the log until writing the applied marker. So after a
crash of a process at most the groups after the marker are unfinished: a path that is still in its state before is
rolled forward, and one in any other state was changed by someone else and is left alone. After a power cut the marker
proves nothing, and all records are checked whose file changes may have been only in memory: `power_loss` decides for
each file.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, dropwhile
from typing import Final, TypeGuard

from objstore.errors import StoreDamaged
from objstore.fastclass import field, replace, value
from objstore.file_changes.apply import FileStep, respelled_paths
from objstore.fs.confined_path import Tree
from objstore.log.frames import FrameKind
from objstore.log.segment_files import Place
from objstore.log.segments import Group
from objstore.model.basic_types import Action, FileState, Origin
from objstore.model.record_codec import decode_record
from objstore.model.records import Decision, Edit, Record, Void, VoidedRecords
from objstore.recovery.power_loss import (
    DONE,
    OTHER,
    StepInspector,
    StepStatus,
    folder_of,
    folder_time,
    last_group_on_disk,
    step_timings,
)
from objstore.recovery.recovery_note import PendingSteps
from objstore.store.object_store import Store
from objstore.store.write_batch import now

__all__ = ["MachineStop", "pending_steps", "unapplied_groups", "void_record", "without"]

_UNSYNCED_WINDOW: Final = 600 * 1_000_000
"""Microseconds before the last record after which the system has long written a file back to disk."""

_PLANNING: Final = 5 * 1_000_000
"""Microseconds by which the times of a decision and of edits in the same group may differ."""

_POWER_CUT_RECORDS: Final = 10_000
"""Most records to check after a power cut."""


@value
class MachineStop:
    """The facts about the time before the machine stopped. Times in microseconds since 1970-01-01 UTC."""

    clock: Callable[[], int]  # returns the file system's current time, in nanoseconds
    files_matched_at: int = 0  # when files last matched all that was recorded, by the clock of records; 0: unknown
    arrived_at: int = 0  # when the store was created or copied here, by the clock of files; 0: unknown
    durable: tuple[int, int] = (0, 0)  # the last edit and decision within the durable horizon
    noted: PendingSteps = field(default_factory=dict)  # steps found pending since; some may be applied by now


def pending_steps(
    tree: Tree, store: Store, groups: list[list[Record]] | None, stop: MachineStop
) -> Iterator[list[FileStep]]:
    """Yield the steps that are still to be applied, group by group, the oldest first, each from the current state.

    `groups`: those whose files may not match yet, as `unapplied_groups` returns them; None: unknown, because the
    machine has stopped since. `stop` is used only then. Raises FileUninspectable if a file can't be read now, and
    DiskFailed.
    """
    after_power_cut = groups is None
    ahead = _clock_offset(stop.clock) if after_power_cut else 0
    suspects = _Suspects(
        _since_power_cut(store, stop, ahead) if groups is None else groups, with_external=after_power_cut
    )
    newest = suspects.newest()
    step_times = step_timings(newest, ahead, stop.files_matched_at) if after_power_cut else {}
    last = last_group_on_disk(tree, newest, step_times) if after_power_cut else 0
    # Read the times of folders now, because the first step that is applied in a folder changes its time.
    folders = {folder_of(step.path): 0 for steps, _ in newest for step in steps}
    folders = {folder: folder_time(tree, folder) for folder in folders}
    leaving: set[bytes] = set()  # paths of the files that the groups so far remove
    for number, (steps, time) in enumerate(newest):
        earlier = suspects.earlier if after_power_cut else {}
        vacated = {step.path for step in steps if step.after is None}
        may_be_partial = number >= last or suspects.may_be_one(time, newest[last][1])
        inspector = StepInspector(
            tree,
            store,
            earlier,
            folders,
            step_times.get(time),
            vacated,
            leaving,
            stop.noted,
            may_be_partial=may_be_partial,
        )
        inspector.note_arrivals(steps)
        inspected = _with_other_spellings(tree, [(step, inspector.step_status(step)) for step in steps])
        # Remove the old name of a move only if the new one exists or will. A name already gone counts as removed.
        is_new_name_safe = all(step_status is not OTHER for step, step_status in inspected if step.after is not None)
        due = [
            replace(step, before=step_status.found)
            for step, step_status in inspected
            if (step_status.is_due and (is_new_name_safe or step.after is not None))
            or (step_status is DONE and step.after is None)
        ]
        gone = {step.path: step.before for step in due if step.after is None and step.before is not None}
        leaving |= gone.keys()
        # Move the file itself where possible, so that it has one of its names at any moment.
        yield [step if _is_moved(step, gone) else replace(step, moved_from=None) for step in due]


def _with_other_spellings(
    tree: Tree, inspected: list[tuple[FileStep, StepStatus]]
) -> list[tuple[FileStep, StepStatus]]:
    """Return the steps and their status, where some give a file another spelling of its path.

    Both paths lead to the file then, whatever its spelling. If the old one is to go, the new one is still to come.
    """
    respelled = respelled_paths(tree, [step for step, _ in inspected])
    due = {step.path for step, status in inspected if status.is_due}
    return [
        (step, StepStatus(is_due=True) if respelled.get(step.path) in due else status) for step, status in inspected
    ]


def without(steps: Sequence[FileStep], refused: Collection[bytes]) -> list[FileStep]:
    """Return a group's steps without those for the refused paths, and without those that depend on them."""
    # If a file was moved and changed, its old name is no longer known.
    all_come = all(step.after is None or step.path not in refused for step in steps)
    kept = [step for step in steps if step.path not in refused and step.moved_from not in refused]
    moved = {step.moved_from for step in kept}
    return [step for step in kept if step.after is not None or step.before is None or all_come or step.path in moved]


def _is_moved(step: FileStep, gone: Mapping[bytes, FileState]) -> bool:
    """Return whether the step's new file is, unchanged, the one that is removed at its old path."""
    is_new = step.before is None and step.after is not None
    return is_new and step.moved_from is not None and gone.get(step.moved_from) == step.after


def _clock_offset(clock: Callable[[], int]) -> int:
    """Return by how many microseconds the clock of files is ahead of that of records, as on a network share."""
    asked = now()
    return max(0, clock() // 1000 - asked)


def void_record(group: Group, reason: str) -> Void:
    """Return the record that the group was rolled back. Edits that record what was found on disk remain valid."""
    records = list(_records(group))
    edits = tuple(record.seq for record in records if isinstance(record, Edit) and not record.origin.is_found)
    decision = next((record.number for record in records if isinstance(record, Decision)), 0)
    return Void(time=now(), edits=edits, decision=decision, reason=reason)


def unapplied_groups(store: Store, marked: Place) -> list[list[Record]] | None:
    """Return the records of each group whose files may not match yet, oldest first.

    None: the marker is not the end of a group, so it proves nothing.
    """
    try:
        groups = [list(_records(group)) for group in store.log.groups(marked)]
    except StoreDamaged:
        return None
    taken_back = VoidedRecords(chain.from_iterable(groups))
    return [[record for record in records if record not in taken_back] for records in groups]


def _since_power_cut(store: Store, stop: MachineStop, ahead: int) -> list[list[Record]]:
    """Return the same for records whose file changes may have been only in memory when the machine stopped.

    Records that have expired since are among them: their files are the same as ever.
    """
    recent: list[Record] = []
    newest, present = None, now()
    for place in store.index.history.newest(_POWER_CUT_RECORDS):
        record, _ = store.record(place)
        if newest is not None and record.time < newest - _UNSYNCED_WINDOW:
            break
        if newest is None and record.time <= present:
            newest = record.time  # skip times in the future, which a wrong clock gave
        recent.append(record)
    # Records older than this copy of the store came with it; after the first newer one, only a clock set back is older.
    here = dropwhile(lambda record: record.time + ahead < stop.arrived_at, reversed(recent))
    return [[record] for record in here if not _is_durable(record, stop.durable)]


def _is_durable(record: Record, durable: tuple[int, int]) -> bool:
    edit, decision = durable
    match record:
        case Edit():
            return record.seq <= edit
        case Decision():
            return record.number <= decision
        case _:
            return False


def _steps_of(records: Sequence[Record], *, with_external: bool) -> list[FileStep]:
    """Return the steps of one group's records, path by path.

    Edits that record what was found on disk need no step: those states existed before the group's other records, or
    result from them. `with_external`: include them, because a power cut may have lost what they found.
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
            case Edit(origin=origin) if origin.is_found and origin is not Origin.GIT and not with_external:
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
                _note_decision(record, note)
                moved |= {w.path_after: w.path_before for w in record.changed_files if w.path_after and w.path_before}
            case _:
                pass
    return [
        FileStep(path=path, before=first[path], after=last[path], moved_from=moved.get(path), is_decided=is_decided)
        for path in first
    ]


def _note_decision(decision: Decision, note: Callable[[bytes, FileState | None, FileState | None], None]) -> None:
    # Files may swap paths: a path's state before is that of the file that leaves, its state after that of the new one.
    before = {w.path_before: w.before for w in decision.changed_files if w.path_before is not None}
    after = {w.path_after: w.after for w in decision.changed_files if w.path_after is not None}
    for path in sorted({*before, *after}):
        note(path, before.get(path), after.get(path))


def _is_found_removal(record: Record) -> TypeGuard[Edit]:
    """Return whether the record says that someone else removed a file."""
    return isinstance(record, Edit) and record.origin.is_found and record.after is None


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


class _Suspects:
    """Groups whose files may not match the log yet, the oldest first."""

    def __init__(self, groups: Iterable[Sequence[Record]], *, with_external: bool) -> None:
        known = [records for records in groups if records]
        self._groups = [
            (_steps_of(records, with_external=with_external), max(record.time for record in records))
            for records in known
        ]
        # If a file that a person removed exists again, only that person may remove it again. What git wrote is never
        # written for it, but no earlier group's step on these paths may be applied after it either.
        self._left_alone = [
            {path for record in records for path in _paths_of_git(record)}
            | ({record.path for record in records if _is_found_removal(record)} if with_external else set())
            for records in known
        ]
        # By path: its states before each of its steps (None: no file).
        self.earlier: dict[bytes, set[FileState | None]] = {}
        for steps, _ in self._groups:
            for step in steps:
                self.earlier.setdefault(step.path, set()).add(step.before)

        self._decided = {record.time for records in known for record in records if isinstance(record, Decision)}

    def may_be_one(self, time: int, other: int) -> bool:
        """Return whether records with these times may be of one group; all edits of one call have the same time."""
        with_decision = (time in self._decided) != (other in self._decided)
        return time == other or (with_decision and abs(time - other) <= _PLANNING)

    def newest(self) -> list[tuple[list[FileStep], int]]:
        """Return each group's steps and time, without those on paths that a later group changed again."""
        newest = {step.path: i for i, (steps, _) in enumerate(self._groups) for step in steps}
        return [
            ([step for step in steps if newest[step.path] == i and step.path not in self._left_alone[i]], time)
            for i, (steps, time) in enumerate(self._groups)
        ]


def _records(group: Group) -> Iterator[Record]:
    for frame in group.frames:
        if frame.kind is FrameKind.RECORD:
            yield decode_record(bytes(frame.payload))[0]
