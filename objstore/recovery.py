"""Recovery: what a writer that died had put into the log and not yet done to the user's files.

Only the holder of the writer lock changes files, and it holds the lock from the log to the mark. So after a crash of a
process at most the groups behind the mark are unfinished: a path that is still as it was before is rolled forward, and
one that is neither as before nor as after was changed by somebody else and is left. After a power cut the mark tells
nothing, and each file has to show besides that it can be what a power cut leaves of ours, by its times and its size:
docs/decisions/0030-power-cuts.md. All else is somebody else's.
"""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set as AbstractSet
from contextlib import suppress
from itertools import chain, dropwhile
from typing import Final, TypeGuard

from objstore.batch import now
from objstore.due import Due
from objstore.errors import FileChanged, PathError, PathInvalid, PathIsDirectory, StoreDamaged
from objstore.frames import FrameKind
from objstore.generations import Place
from objstore.ids import BlobId
from objstore.lines import shared_head
from objstore.ondisk import disk_state
from objstore.paths import Found, Tree
from objstore.recordcodec import decode_record
from objstore.recordedpaths import folders_of
from objstore.records import Decision, Edit, Record, TakenBack, Void
from objstore.segments import Group
from objstore.sources import FileSource
from objstore.standins import MAX_BLOB, is_stand_in
from objstore.store import Store
from objstore.terms import FileState, Origin
from objstore.transition import Step
from objstore.values import field, replace, value

__all__ = ["Stop", "due_steps", "groups_since", "void_of", "without"]

_POWER_CUT_WINDOW: Final = 600 * 1_000_000
"""Microseconds: what was written longer ago than this before the last record has long been written back."""

_STAGING: Final = 60 * 1_000_000
"""Microseconds that it may take from a record's time until its files have been written, where nothing says when."""

_AT_ONCE: Final = 1_000_000
"""Microseconds within which a file is written after its record, if nothing is in the way, and by hand hardly ever."""

_TICK: Final = 20_000
"""Microseconds by which clocks of files are coarse, at the most, where their times are those of the machine."""

_PLANNING: Final = 5 * 1_000_000
"""Microseconds by which the times of a decision and of the edits that came into the log with it may differ."""

_SECTOR: Final = 512
"""Bytes: no disk has written more or less of a file than so many of them, but for its end."""

_POWER_CUT_RECORDS: Final = 10_000
"""How many records are looked at for it, at most."""


@value
class Stop:
    """What is known of the time before the machine stopped. Times in microseconds since 1970-01-01 UTC."""

    clock: Callable[[], int]  # gives the time that the file system gives to what changes now, in nanoseconds
    followed: int = 0  # when files had last followed all that was recorded, by the clock of records; 0: nothing says
    came: int = 0  # when the store came to its place, by the clock of files; 0: nothing says that
    settled: tuple[int, int] = (0, 0)  # the last edit and decision whose files can't have been lost
    noted: Due = field(default_factory=dict)  # what was found due since, of which some may have been done by now


def due_steps(tree: Tree, store: Store, groups: list[list[Record]] | None, stop: Stop) -> Iterator[list[Step]]:
    """Yield what is still to be done, group by group, the oldest first. Each step starts from what stands there now.

    `groups`: those whose files may not have followed, as `groups_since` returns them; None: nobody can tell, the
    machine has stopped since. `stop` counts only then.
    Raises DiskFailed where a file can't be looked at now.
    """
    after_power_cut = groups is None
    ahead = _ahead_by(stop.clock) if after_power_cut else 0
    suspects = _Suspects(_since_power_cut(store, stop, ahead) if groups is None else groups, with_found=after_power_cut)
    newest = suspects.newest()
    sinces = _sinces(newest, ahead, stop.followed) if after_power_cut else {}
    last = _last_on_disk(tree, newest, sinces) if after_power_cut else 0
    # As they stand now: the first step that is carried out in a folder changes its time.
    folders = {_folder(step.path): 0 for steps, _ in newest for step in steps}
    folders = {folder: _folder_time(tree, folder) for folder in folders}
    leaving: set[bytes] = set()  # where files of the groups so far go
    for number, (steps, time) in enumerate(newest):
        earlier = suspects.earlier if after_power_cut else {}
        vacated = {step.path for step in steps if step.after is None}
        may_be_half = number >= last or suspects.may_be_one(time, newest[last][1])
        judge = _Judge(
            tree, store, earlier, folders, sinces.get(time), vacated, leaving, stop.noted, may_be_half=may_be_half
        )
        judge.note_arrived(steps)
        judged = [(step, judge.verdict(step)) for step in steps]
        # The old name of a move goes only if the new one is there, or will be. What is gone already is said to go.
        holds = all(verdict is not _OTHER for step, verdict in judged if step.after is not None)
        due = [
            replace(step, before=verdict.found)
            for step, verdict in judged
            if (verdict.is_due and (holds or step.after is not None)) or (verdict is _DONE and step.after is None)
        ]
        gone = {step.path: step.before for step in due if step.after is None and step.before is not None}
        leaving |= gone.keys()
        # The very file is moved, so that it has one of its names at any moment.
        yield [step if _is_moved(step, gone) else replace(step, moved_from=None) for step in due]


def without(steps: Sequence[Step], refused: Collection[bytes]) -> list[Step]:
    """Return the steps of a group but for those of some paths, and for those that may not be done without them."""
    # Where a file was moved and changed, nothing says any more which name was its old one.
    all_come = all(step.after is None or step.path not in refused for step in steps)
    left = [step for step in steps if step.path not in refused and step.moved_from not in refused]
    moved = {step.moved_from for step in left}
    return [step for step in left if step.after is not None or step.before is None or all_come or step.path in moved]


def _is_moved(step: Step, gone: Mapping[bytes, FileState]) -> bool:
    """Return whether the file that comes is the one that goes where the step says, as it is."""
    is_new = step.before is None and step.after is not None
    return is_new and step.moved_from is not None and gone.get(step.moved_from) == step.after


def _ahead_by(clock: Callable[[], int]) -> int:
    """Return by how many microseconds the clock of files is ahead of that of records, as that of a share may be."""
    asked = now()
    return max(0, clock() // 1000 - asked)


def void_of(group: Group, reason: str) -> Void:
    """Return the record that the group was taken back."""
    records = list(_records(group))
    edits = tuple(record.seq for record in records if isinstance(record, Edit) and record.origin is not Origin.EXTERNAL)
    decision = next((record.number for record in records if isinstance(record, Decision)), 0)
    return Void(time=now(), edits=edits, decision=decision, reason=reason)


def groups_since(store: Store, marked: Place) -> list[list[Record]] | None:
    """Return the records of each group whose files may not have followed, oldest first.

    None: the mark is not the end of a group, so it tells nothing.
    """
    try:
        groups = [list(_records(group)) for group in store.log.groups(marked)]
    except StoreDamaged:
        return None
    taken_back = TakenBack(chain.from_iterable(groups))
    return [[record for record in records if record not in taken_back] for records in groups]


def _since_power_cut(store: Store, stop: Stop, ahead: int) -> list[list[Record]]:
    """Return the same for what may have been in memory only when the machine stopped.

    What has expired since is among it: its files stand as ever.
    """
    recent: list[Record] = []
    newest, present = None, now()
    for place in store.index.newest_places(_POWER_CUT_RECORDS):
        record, _ = store.record(place)
        if newest is not None and record.time < newest - _POWER_CUT_WINDOW:
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


class _Since:
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

    def is_at_once(self, changed: int) -> bool:
        """Return whether what has the time `changed` got it right after the step was recorded, or before."""
        return changed <= min(self.until, self._time + _AT_ONCE)

    def may_have_written(self, changed: int) -> bool:
        """Return whether what has the time `changed` was written by the step, or before it."""
        return changed <= self.until or self.is_behind(changed)


def _sinces(groups: Sequence[tuple[list[Step], int]], ahead: int, followed: int) -> dict[int, _Since]:
    """Return it for each group that has steps, by its time."""
    sinces: dict[int, _Since] = {}
    times: list[int] = []
    latest = 0
    for steps, time in groups:
        if steps and time not in sinces:
            sinces[time] = _Since(time, times if latest > time else (), ahead, followed)
        times.append(time)
        latest = max(latest, time)
    return sinces


def _last_on_disk(tree: Tree, groups: Sequence[tuple[list[Step], int]], sinces: Mapping[int, _Since]) -> int:
    """Return which group is the last of which a file reached the disk (0: perhaps none).

    Names reach it in the order in which they were made and removed, so no group before that is half there.
    """
    for number in reversed(range(len(groups))):
        steps, time = groups[number]
        for step in steps:
            with suppress(PathError):
                found = None if step.after is None else disk_state(tree, step.path)
                if found is None or found[0] != step.after:
                    continue
                # What was found and recorded stood there before.
                if not sinces[time].is_behind(_changed(found[1].stat) + _TICK):
                    return number
    return 0


def _changed(found: os.stat_result) -> int:
    """Return when a file or folder was last changed, in microseconds since 1970-01-01 UTC.

    Moving it, copying it with its times or changing its mode leaves `st_mtime` as it is, and never `st_ctime`.
    """
    return max(found.st_mtime_ns, found.st_ctime_ns) // 1000


@value
class _Verdict:
    """Whether a step is still to be done, and from which state."""

    is_due: bool
    found: FileState | None = None  # what stands there; None: nothing


_DONE: Final = _Verdict(is_due=False)
_OTHER: Final = _Verdict(is_due=False)  # neither as before nor as after: somebody else's


class _Judge:
    """Looks at what stands at a step's path, and says whether the step is still to be done."""

    def __init__(  # noqa: PLR0913 - each is one thing that only the whole of the groups shows
        self,
        tree: Tree,
        store: Store,
        earlier: Mapping[bytes, Collection[FileState | None]],
        folders: Mapping[bytes, int],
        since: _Since | None,
        vacated: AbstractSet[bytes],
        leaving: AbstractSet[bytes],
        noted: Due,
        *,
        may_be_half: bool,
    ) -> None:
        self._tree = tree
        self._store = store
        self._earlier = earlier  # after a power cut: what stood at a path before each of its steps
        self._folders = folders  # when a name last came or went in each
        self._vacated = vacated  # paths of the group's files that go
        self._leaving = leaving  # and of those that go with groups before it
        self._noted = noted  # after a power cut: what was found due before the first of it was carried out
        self._since = since  # when the step was recorded, after a power cut; None: the machine has run on
        self._may_be_half = may_be_half  # whether the power may have failed between two files of the group
        self._arrived: list[os.stat_result] = []  # what stands where the group's files come

    def note_arrived(self, steps: Iterable[Step]) -> None:
        """Look at what stands where the steps of a group make files, if others of them go."""
        for step in steps:
            if self._vacated and step.after is not None:
                with suppress(OSError):
                    self._arrived.append(os.lstat(step.path, dir_fd=self._tree.fd))

    def verdict(self, step: Step) -> _Verdict:
        """Return it. Raises DiskFailed where that can't be seen now: what failed says nothing of what stands there."""
        if step.after is not None and not self._store.has(step.after.blob):
            return _OTHER  # a later record says what stands there, and nothing holds this any more
        try:
            found = disk_state(self._tree, step.path)
        except PathIsDirectory:
            # It gives way to the file if it is empty.
            return self._verdict_of_nothing(step) if self._gives_way(step.path) else _OTHER
        except PathInvalid:
            is_blocked = not (self._vacated | self._leaving).isdisjoint(folders_of(step.path))
            return self._verdict_of_nothing(step) if is_blocked else _OTHER
        except PathError:
            return _OTHER
        if found is None:
            return self._verdict_of_nothing(step)
        state, file = found
        if state == step.after:
            return _DONE
        is_due = (
            self._is_noted(step, state)
            or self._is_older(step, state, file)
            or self._is_unfinished(step, state, file)
            or self._is_cut_short(step, file)
        )
        return _Verdict(is_due=True, found=state) if is_due else _OTHER

    def _is_noted(self, step: Step, state: FileState | None) -> bool:
        """Return whether the step was found due from this very state."""
        return self._noted.get(step.path) == (state, step.after)

    def _gives_way(self, folder: bytes) -> bool:
        """Return whether edits made a folder, or files of the group go from it."""
        return self._store.index.made_folder(folder) or any(folder in folders_of(path) for path in self._vacated)

    def _verdict_of_nothing(self, step: Step) -> _Verdict:
        if step.after is None:
            return _DONE
        untouched = self._since is None or self._is_as_left(self._folders[_folder(step.path)], self._since)
        # After a power cut the name may be gone that an earlier record gave, and that this one only found.
        was_nothing = step.before is None or None in self._earlier.get(step.path, ())
        return _Verdict(is_due=True) if (was_nothing and untouched) or self._is_noted(step, None) else _OTHER

    def _is_as_left(self, folder_changed: int, since: _Since) -> bool:
        """Return whether nobody but ourselves can have taken a file out of a folder since the step was recorded."""
        return since.is_behind(folder_changed) or (self._may_be_half and since.may_have_written(folder_changed))

    def _is_older(self, step: Step, state: FileState, file: Found) -> bool:
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
        is_in_place = step.after is not None and file.stat.st_nlink > 1 and self._since.is_at_once(changed)
        return self._since.is_behind(changed) or is_in_place or (is_both and self._since.may_have_written(changed))

    def _is_unfinished(self, step: Step, state: FileState, file: Found) -> bool:
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
        if is_stand_in(file.content) or self._store.size(step.after.blob) > MAX_BLOB:
            return self._is_unfinished_large(step, step.after.blob, old, file)
        wanted, content = self._store.blob(step.after.blob), file.content
        if self._since is not None and _is_cut_off(content, wanted):
            return True  # its name reached the disk, and not all of its bytes
        written = shared_head(content, wanted)
        return old is not None and content[written:] == self._store.blob(old)[written:]

    def _may_be_ours(self, step: Step, file: Found) -> bool:
        """Return whether the file can be the one that the step wrote: nobody has changed it later.

        Where it was carried out only after the power cut, and then cut off again, no time tells that.
        """
        is_noted = step.path in self._noted and self._noted[step.path][1] == step.after
        return self._since is None or is_noted or self._since.may_have_written(_changed(file.stat))

    def _is_cut_short(self, step: Step, file: Found) -> bool:
        """Return whether the file holds the beginning of what once stood there, and nothing or zeros behind it."""
        if self._since is None or not self._since.is_behind(_changed(file.stat)):
            return False
        is_large = is_stand_in(file.content)
        for state in self._earlier[step.path]:
            place = None if state is None else self._store.blob_place(state.blob)
            if state is None or place is None or file.stat.st_size > place.size:
                continue
            if place.size > MAX_BLOB or is_large:
                is_beginning = self._is_beginning_of_large(step, state, file)
            else:
                is_beginning = _is_cut_off(file.content, self._store.blob(state.blob))
            if is_beginning:
                return True
        return False

    def _is_beginning_of_large(self, step: Step, state: FileState, file: Found) -> bool:
        """Return whether the file is the beginning of a state, with nothing but zeros behind it, or no more at all."""
        source = FileSource(self._tree, step.path, file.stat)
        try:
            written = _shared(source.pieces(), self._store.pieces(state.blob))
            size = file.stat.st_size
            return _is_cut(size, self._store.size(state.blob), written) and _is_zero(source.pieces(), written)
        except FileChanged:
            return False  # somebody is writing to it

    def _is_unfinished_large(self, step: Step, after: BlobId, old: BlobId | None, file: Found) -> bool:
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


def _is_cut_off(content: bytes, whole: bytes) -> bool:
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


def _folder(path: bytes) -> bytes:
    return path.rpartition(b"/")[0]


def _folder_time(tree: Tree, folder: bytes) -> int:
    """Return when a name last came or went in the folder, in microseconds since 1970-01-01 UTC.

    Where it is gone, or never came, that is asked of the one that it would be in.
    """
    try:
        return _changed(os.lstat(folder or b".", dir_fd=tree.fd))
    except OSError:
        return _folder_time(tree, _folder(folder)) if folder else 0


def _steps_of(records: Iterable[Record], *, with_found: bool) -> list[Step]:
    """Return what the records of one group do to the user's files, path by path.

    Edits that were found on disk need nothing done: they say how things stood before the others, or stand behind them.
    `with_found`: unless a power cut has taken what was found.
    """
    first: dict[bytes, FileState | None] = {}
    last: dict[bytes, FileState | None] = {}
    moved: dict[bytes, bytes] = {}  # by its path, where a file was before the group

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
    return [Step(path=path, before=first[path], after=last[path], moved_from=moved.get(path)) for path in first]


def _note_decision(decision: Decision, note: Callable[[bytes, FileState | None, FileState | None], None]) -> None:
    # Files may trade places: each path's state before comes from the one that leaves it, after from the one that comes.
    before = {w.path_before: w.before for w in decision.written if w.path_before is not None}
    after = {w.path_after: w.after for w in decision.written if w.path_after is not None}
    for path in sorted({*before, *after}):
        note(path, before.get(path), after.get(path))


def _is_removal_found(record: Record) -> TypeGuard[Edit]:
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
            {record.path for record in records if _is_removal_found(record)} if with_found else set()
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

    def newest(self) -> list[tuple[list[Step], int]]:
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
