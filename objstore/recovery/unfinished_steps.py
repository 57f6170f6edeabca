"""Recovery: what a writer that died had put into the log and not yet done to the user's files.

Only the holder of the writer lock changes files, and it holds the lock from the log to the mark. So after a crash of a
process at most the groups behind the mark are unfinished: a path that is still as it was before is rolled forward, and
one that is neither as before nor as after was changed by somebody else and is left. After a power cut the mark tells
nothing, and all that may have been in memory only is looked at: `aftermath` says what each file shows.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, dropwhile
from typing import Final, TypeGuard

from objstore.errors import StoreDamaged
from objstore.fastclass import field, replace, value
from objstore.file_changes.apply import FileStep
from objstore.fs.confined_path import Tree
from objstore.log.frames import FrameKind
from objstore.log.segment_files import Place
from objstore.log.segments import Group
from objstore.model.basic_types import FileState, Origin
from objstore.model.record_codec import decode_record
from objstore.model.records import Decision, Edit, Record, Void, VoidedRecords
from objstore.recovery.power_loss import (
    DONE,
    OTHER,
    StepInspector,
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
"""Microseconds: what was written longer ago than this before the last record has long been written back."""

_PLANNING: Final = 5 * 1_000_000
"""Microseconds by which the times of a decision and of the edits that came into the log with it may differ."""

_POWER_CUT_RECORDS: Final = 10_000
"""How many records are looked at for it, at most."""


@value
class MachineStop:
    """What is known of the time before the machine stopped. Times in microseconds since 1970-01-01 UTC."""

    clock: Callable[[], int]  # gives the time that the file system gives to what changes now, in nanoseconds
    followed: int = 0  # when files had last followed all that was recorded, by the clock of records; 0: nothing says
    came: int = 0  # when the store came to its place, by the clock of files; 0: nothing says that
    settled: tuple[int, int] = (0, 0)  # the last edit and decision whose files can't have been lost
    noted: PendingSteps = field(
        default_factory=dict
    )  # what was found due since, of which some may have been done by now


def pending_steps(
    tree: Tree, store: Store, groups: list[list[Record]] | None, stop: MachineStop
) -> Iterator[list[FileStep]]:
    """Yield what is still to be done, group by group, the oldest first. Each step starts from what stands there now.

    `groups`: those whose files may not have followed, as `groups_since` returns them; None: nobody can tell, the
    machine has stopped since. `stop` counts only then.
    Raises FileUnseen where a file can't be looked at now, and DiskFailed.
    """
    after_power_cut = groups is None
    ahead = _clock_offset(stop.clock) if after_power_cut else 0
    suspects = _Suspects(_since_power_cut(store, stop, ahead) if groups is None else groups, with_found=after_power_cut)
    newest = suspects.newest()
    step_times = step_timings(newest, ahead, stop.followed) if after_power_cut else {}
    last = last_group_on_disk(tree, newest, step_times) if after_power_cut else 0
    # As they stand now: the first step that is carried out in a folder changes its time.
    folders = {folder_of(step.path): 0 for steps, _ in newest for step in steps}
    folders = {folder: folder_time(tree, folder) for folder in folders}
    leaving: set[bytes] = set()  # where files of the groups so far go
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
        judged = [(step, inspector.step_status(step)) for step in steps]
        # The old name of a move goes only if the new one is there, or will be. What is gone already is said to go.
        holds = all(step_status is not OTHER for step, step_status in judged if step.after is not None)
        due = [
            replace(step, before=step_status.found)
            for step, step_status in judged
            if (step_status.is_due and (holds or step.after is not None))
            or (step_status is DONE and step.after is None)
        ]
        gone = {step.path: step.before for step in due if step.after is None and step.before is not None}
        leaving |= gone.keys()
        # The very file is moved, so that it has one of its names at any moment.
        yield [step if _is_moved(step, gone) else replace(step, moved_from=None) for step in due]


def without(steps: Sequence[FileStep], refused: Collection[bytes]) -> list[FileStep]:
    """Return the steps of a group but for those of some paths, and for those that may not be done without them."""
    # Where a file was moved and changed, nothing says any more which name was its old one.
    all_come = all(step.after is None or step.path not in refused for step in steps)
    left = [step for step in steps if step.path not in refused and step.moved_from not in refused]
    moved = {step.moved_from for step in left}
    return [step for step in left if step.after is not None or step.before is None or all_come or step.path in moved]


def _is_moved(step: FileStep, gone: Mapping[bytes, FileState]) -> bool:
    """Return whether the file that comes is the one that goes where the step says, as it is."""
    is_new = step.before is None and step.after is not None
    return is_new and step.moved_from is not None and gone.get(step.moved_from) == step.after


def _clock_offset(clock: Callable[[], int]) -> int:
    """Return by how many microseconds the clock of files is ahead of that of records, as that of a share may be."""
    asked = now()
    return max(0, clock() // 1000 - asked)


def void_record(group: Group, reason: str) -> Void:
    """Return the record that the group was taken back."""
    records = list(_records(group))
    edits = tuple(record.seq for record in records if isinstance(record, Edit) and record.origin is not Origin.EXTERNAL)
    decision = next((record.number for record in records if isinstance(record, Decision)), 0)
    return Void(time=now(), edits=edits, decision=decision, reason=reason)


def unapplied_groups(store: Store, marked: Place) -> list[list[Record]] | None:
    """Return the records of each group whose files may not have followed, oldest first.

    None: the mark is not the end of a group, so it tells nothing.
    """
    try:
        groups = [list(_records(group)) for group in store.log.groups(marked)]
    except StoreDamaged:
        return None
    taken_back = VoidedRecords(chain.from_iterable(groups))
    return [[record for record in records if record not in taken_back] for records in groups]


def _since_power_cut(store: Store, stop: MachineStop, ahead: int) -> list[list[Record]]:
    """Return the same for what may have been in memory only when the machine stopped.

    What has expired since is among it: its files stand as ever.
    """
    recent: list[Record] = []
    newest, present = None, now()
    for place in store.index.history.newest(_POWER_CUT_RECORDS):
        record, _ = store.record(place)
        if newest is not None and record.time < newest - _UNSYNCED_WINDOW:
            break
        if newest is None and record.time <= present:
            newest = record.time  # of one that is still to come, the clock was wrong
        recent.append(record)
    # What is older than the store is in its place has come with it. Behind one that is not, the clock was set back.
    here = dropwhile(lambda record: record.time + ahead < stop.came, reversed(recent))
    return [[record] for record in here if not _is_settled(record, stop.settled)]


def _is_settled(record: Record, settled: tuple[int, int]) -> bool:
    edit, decision = settled
    match record:
        case Edit():
            return record.seq <= edit
        case Decision():
            return record.number <= decision
        case _:
            return False


def _steps_of(records: Sequence[Record], *, with_found: bool) -> list[FileStep]:
    """Return what the records of one group do to the user's files, path by path.

    Edits that were found on disk need nothing done: they say how things stood before the others, or stand behind them.
    `with_found`: unless a power cut has taken what was found.
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
            case Edit(origin=Origin.EXTERNAL) if not with_found:
                # It says what was found; behind what the group itself says of the file, that is what stands there.
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
                moved |= {w.path_after: w.path_before for w in record.written if w.path_after and w.path_before}
            case Void():
                pass
    return [
        FileStep(path=path, before=first[path], after=last[path], moved_from=moved.get(path), is_decided=is_decided)
        for path in first
    ]


def _note_decision(decision: Decision, note: Callable[[bytes, FileState | None, FileState | None], None]) -> None:
    # Files may trade places: each path's state before comes from the one that leaves it, after from the one that comes.
    before = {w.path_before: w.before for w in decision.written if w.path_before is not None}
    after = {w.path_after: w.after for w in decision.written if w.path_after is not None}
    for path in sorted({*before, *after}):
        note(path, before.get(path), after.get(path))


def _is_external_removal(record: Record) -> TypeGuard[Edit]:
    """Return whether the record says that somebody else had removed a file."""
    return isinstance(record, Edit) and record.origin is Origin.EXTERNAL and record.after is None


class _Suspects:
    """Groups whose files may not have followed the log, the oldest first."""

    def __init__(self, groups: Iterable[Sequence[Record]], *, with_found: bool) -> None:
        known = [records for records in groups if records]
        self._groups = [
            (_steps_of(records, with_found=with_found), max(record.time for record in records)) for records in known
        ]
        # Nobody but a person takes away again what they had removed, and what is there again.
        self._removed = [
            {record.path for record in records if _is_external_removal(record)} if with_found else set()
            for records in known
        ]
        # By path: what stood there before the newest of its steps (None: nothing).
        self.earlier: dict[bytes, set[FileState | None]] = {}
        for steps, _ in self._groups:
            for step in steps:
                self.earlier.setdefault(step.path, set()).add(step.before)

        self._decided = {record.time for records in known for record in records if isinstance(record, Decision)}

    def may_be_one(self, time: int, other: int) -> bool:
        """Return whether records of these times may have come into the log together; edits of one call have one."""
        with_decision = (time in self._decided) != (other in self._decided)
        return time == other or (with_decision and abs(time - other) <= _PLANNING)

    def newest(self) -> list[tuple[list[FileStep], int]]:
        """Return each group's steps and time, without those on paths that a later group changed again."""
        newest = {step.path: i for i, (steps, _) in enumerate(self._groups) for step in steps}
        return [
            ([step for step in steps if newest[step.path] == i and step.path not in self._removed[i]], time)
            for i, (steps, time) in enumerate(self._groups)
        ]


def _records(group: Group) -> Iterator[Record]:
    for frame in group.frames:
        if frame.kind is FrameKind.RECORD:
            yield decode_record(bytes(frame.payload))[0]
