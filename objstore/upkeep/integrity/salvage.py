"""Make a working store from what is left of a damaged one: plan first, then act.

The journal is a hash chain: each record names the one before it, so a record after a lost one can't be in a new
journal. The new journal is therefore the longest unbroken beginning of the old one, with every record under its old id.
Every blob that verifies is in the new store. For each record after the break, the file states that it led to are
written as files next to the store. docs/decisions/0007-salvage.md says why they are not recorded again.
"""

import errno
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import groupby, islice
from typing import Final, NamedTuple

from objstore.disk.fs.confined_path import require_not_reserved
from objstore.disk.fs.disk import Disk, make_folders
from objstore.disk.fs.reserved_names import STORE_NAME
from objstore.history.snapshot_check import unreadable_parts
from objstore.model.basic_types import DocumentId, FileState, Progress, Seq, ignore_progress
from objstore.model.ids import BlobId, RecordId
from objstore.model.ranges import Ranges, ranges_of
from objstore.model.record_codec import encode_record
from objstore.model.records import Decision, Edit, Expiry, Numbering, Pin, Record, Snapshot, VoidedRecords
from objstore.storage.index.refcounts import held_blobs, unexpired
from objstore.storage.log.applied_marker import read_applied_marker, reset_applied_marker
from objstore.storage.log.frames import FrameKind, StoreId
from objstore.storage.log.segment_files import Place, is_segment
from objstore.storage.log.segments import Log
from objstore.storage.store.create import (
    create_workspace,
    creation_folder_name,
    discard_creation_folder,
    discard_leftover,
    finish_creation,
    give_to_owner_above,
    is_creation_folder,
    move_created,
    owner_of_given,
)
from objstore.upkeep.integrity.blob_rescue import BlobRescue
from objstore.upkeep.integrity.segment_scan import MAX_LISTED_LOSSES, Damage, ScannedRecord, SegmentScan, segment_folder
from objstore.values.clock import now
from objstore.values.errors import DiskFailed, FileExists
from objstore.values.fastclass import replace, value

__all__ = ["LostBlob", "PathBreak", "RecoveredFile", "Salvage", "plan_salvage", "rebuild", "salvage_store"]

RECOVERED: Final = "recovered"
"""The folder next to the new store for the states of edits and decisions that are not in its journal."""

REPORT: Final = "salvage.json"
"""The file next to the new store that lists what was saved and lost."""

_NO_PLACE: Final = frozenset(
    {errno.ENAMETOOLONG, errno.ENOTDIR, errno.EEXIST, errno.EISDIR, errno.EINVAL, errno.EILSEQ}
)
"""The system's errors for a path at which no file can be created."""

_GROUP_BYTES: Final = 8 << 20


class LostBlob(NamedTuple):
    """A blob that is referred to and could not be read."""

    id: BlobId
    reason: str
    edits: tuple[Seq, ...]  # that refer to it, ascending
    decisions: tuple[int, ...]
    snapshots: tuple[
        int, ...
    ]  # that hold it, as far as their trees can be read; if it is a tree, everything below it is lost


class PathBreak(NamedTuple):
    """A gap in a file's history, where edits or decisions are lost: two records that should meet don't."""

    path: bytes
    document: DocumentId
    after: str  # the last record before the gap, as `edit 12` or `decision 3`; "": none
    before: str  # the first record after it


class RecoveredFile(NamedTuple):
    """A file state of a record after the break, to be written as a file."""

    name: str  # below RECOVERED
    state: FileState


@value
class Salvage:
    """The plan of a salvage: what can be saved of a store, and what is lost."""

    store: StoreId
    segments: tuple[str, ...]  # names of the files that were read
    strays: tuple[str, ...]  # those of them that a store ignores, because they are not named like segments
    missing_segments: tuple[int, ...]  # numbers
    is_cut_off: bool  # the log ends before the place in the applied marker
    damage: tuple[Damage, ...]
    blobs: tuple[BlobId, ...]  # every readable one: in the order of the log, then the recovered ones
    rescue: BlobRescue
    lost_blobs: tuple[LostBlob, ...]
    journal: tuple[ScannedRecord, ...]  # the unbroken beginning, in order
    unchained: tuple[ScannedRecord, ...]  # the readable records after a lost one
    lost_edits: tuple[Seq, ...]  # numbers without a record, below the last one with a record
    lost_decisions: tuple[int, ...]
    breaks: tuple[PathBreak, ...]
    recovered: tuple[RecoveredFile, ...]
    unwritten: tuple[RecoveredFile, ...] = ()  # those that could not be written, because their paths are too long there
    owner: int | None = None  # the user whose the new store and its files are, if root runs this

    @property
    def is_whole(self) -> bool:
        """Return whether nothing is known to be lost."""
        return not (self.missing_segments or self.is_cut_off or self.damage or self.lost_blobs or self.unchained)


def salvage_store(
    place: str,
    directory: str | None,
    store: bytes | None = None,
    progress: Progress | None = None,
    report: Callable[[Salvage], bytes] | None = None,
) -> Salvage:
    """Save what can be saved of the store at `place` into a new one in `directory` (None: only report what could be).

    `place` is a folder of segment files, a `.cas/` or a copy of one, or a workspace; it is not changed. `store`: the
    damaged store's id, 16 bytes, if no header gives it. `progress` is called as blobs are verified. `report` returns
    the bytes of the file with the report (None: there is no such file).
    Raises FileMissing, StoreUnknown, FileExists, PathReserved, and what the disk raises.
    """
    if directory is not None:
        require_not_reserved(directory)
    folder = segment_folder(place)
    marked = read_applied_marker(os.path.dirname(folder))
    known = None if store is None else StoreId(store)
    with SegmentScan(folder, known, any_names=True, progress=progress or ignore_progress) as scan:
        salvage = plan_salvage(scan, marked, progress)
        if directory is not None:
            return rebuild(salvage, scan, directory, Disk(), report)
        return salvage


def plan_salvage(scan: SegmentScan, marked: Place | None, progress: Progress | None = None) -> Salvage:
    """Return what can be saved, and change nothing. `marked`: the place in the applied marker, if there is one."""
    saved, lost = _verified(scan, progress)
    rescue = BlobRescue(scan, lost)
    for name in rescue.blobs:
        saved[name] = None
        del lost[name]
    journal, unchained = _chain(scan.records)
    known = [found.record for found in (*journal, *unchained)]
    edits = {record.seq for record in known if isinstance(record, Edit)}
    decisions = {record.number for record in known if isinstance(record, Decision)}
    names = tuple(os.path.basename(segment.path) for segment in scan.segments)
    strays = tuple(name for name in names if not is_segment(name))
    # A copy in the same folder as its segment may be older, and says nothing about where the log ends.
    named = [at for at, name in enumerate(names) if name not in strays] or range(len(names))
    end = max(map(scan.reach, named))  # frames after its last complete group are saved as well
    return Salvage(
        store=scan.store,
        segments=names,
        missing_segments=tuple(scan.missing_segments()),
        strays=strays,
        is_cut_off=marked is not None and end < marked,
        damage=tuple(scan.damage),
        blobs=tuple(saved),
        rescue=rescue,
        lost_blobs=tuple(_lost_blobs(known, saved, lost, scan)),
        journal=tuple(journal),
        unchained=tuple(unchained),
        lost_edits=tuple(map(Seq, _gaps(edits))),
        lost_decisions=tuple(_gaps(decisions)),
        breaks=tuple(_breaks(known)),
        recovered=tuple(file for file in _states(unchained) if file.state.blob in saved),
    )


def rebuild(
    salvage: Salvage, scan: SegmentScan, directory: str, disk: Disk, report: Callable[[Salvage], bytes] | None = None
) -> Salvage:
    """Make the new store in `directory`, and the recovered states and the report next to it; return what was done.

    Either everything appears, the store last, or nothing. Raises FileExists if there is already a store, a folder of
    recovered files or a report, and what the disk raises.
    """
    for taken in (STORE_NAME, RECOVERED, *([REPORT] if report is not None else [])):
        if os.path.lexists(os.path.join(directory, taken)):
            raise FileExists(os.path.join(directory, taken))
    is_new = not os.path.lexists(directory)
    make_folders(os.path.abspath(directory))
    try:
        done = _rebuilt(salvage, scan, directory, disk, report)
    finally:
        if is_new:
            with suppress(OSError):  # it stays if the new store is in it
                os.rmdir(directory)
    disk.sync_directory(directory)
    disk.sync_directory(os.path.dirname(os.path.realpath(directory)))  # which may have been created above
    return done


def _rebuilt(
    salvage: Salvage, scan: SegmentScan, directory: str, disk: Disk, report: Callable[[Salvage], bytes] | None
) -> Salvage:
    for name in filter(is_creation_folder, os.listdir(directory)):
        discard_leftover(os.path.join(directory, name), disk)  # left by a salvage or an `init` that was killed
    making = os.path.join(directory, creation_folder_name())
    disk.make_creation_folder(making)
    try:
        create_workspace(making, disk)
        _fill(salvage, scan, os.path.join(making, STORE_NAME), disk)
        unwritten = _write_recovered(salvage, scan, os.path.join(making, RECOVERED), disk)
        written = tuple(file for file in salvage.recovered if file not in unwritten)
        done = replace(salvage, recovered=written, unwritten=unwritten, owner=owner_of_given(directory))
        if report is not None:
            disk.create(os.path.join(making, REPORT), report(done), 0o644)
        give_to_owner_above(making, disk)
        _move_in(making, directory, disk)
        finish_creation(directory, disk)
    finally:
        discard_creation_folder(making, disk)
    return done


# ---- planning


def _verified(scan: SegmentScan, progress: Progress | None) -> tuple[dict[BlobId, None], dict[BlobId, str]]:
    """Return the blobs that verify, in order, and why each of the others doesn't."""
    found = dict(scan.unreadable(progress or ignore_progress))
    lost = {name: found[name] for name in scan.blobs if name in found}
    return {name: None for name in scan.blobs if name not in found}, lost


def _chain(records: Sequence[ScannedRecord]) -> tuple[list[ScannedRecord], list[ScannedRecord]]:
    """Return the longest unbroken beginning of the journal, and the other records in the order of the log."""
    following: dict[RecordId | None, dict[RecordId, ScannedRecord]] = {}
    for found in records:
        following.setdefault(found.previous, {}).setdefault(found.id, found)
    # Two records may follow the same one, if a writer did not know of the first. The one with more successors counts.
    reached: list[RecordId | None] = [None]
    for last in reached:
        reached += following.get(last, ())
    longest: dict[RecordId | None, int] = {}
    for last in reversed(reached):
        longest[last] = max((longest[name] + 1 for name in following.get(last, ())), default=0)
    journal: list[ScannedRecord] = []
    last = None
    numbering = Numbering()
    while last in following:
        branches = following[last]
        last = max(branches, key=longest.__getitem__)
        if numbering.take(branches[last].record):
            break  # no store accepts it, nor any record after it
        journal.append(branches[last])
    in_journal = {found.id for found in journal}
    unchained = {found.id: found for found in records if found.id not in in_journal}
    return journal, list(unchained.values())


def _gaps(numbers: Collection[int]) -> Iterator[int]:
    """Yield the numbers that are missing below the highest, at most MAX_LISTED_LOSSES."""
    return islice((number for number in range(1, max(numbers, default=0)) if number not in numbers), MAX_LISTED_LOSSES)


def _lost_blobs(
    known: Sequence[Record], saved: dict[BlobId, None], lost: dict[BlobId, str], scan: SegmentScan
) -> Iterator[LostBlob]:
    edits: dict[BlobId, dict[Seq, None]] = {name: {} for name in lost}
    decisions: dict[BlobId, dict[int, None]] = {name: {} for name in lost}
    for record in unexpired(known):
        for name in held_blobs(record):
            if name not in saved:
                if isinstance(record, Edit):
                    edits.setdefault(name, {})[record.seq] = None
                elif isinstance(record, Decision):
                    decisions.setdefault(name, {})[record.number] = None
                elif isinstance(record, Pin):
                    decisions.setdefault(name, {})
    parts = unreadable_parts(known, saved, lambda name: scan.blob(name) if name in saved else None)
    for name in {**edits, **decisions, **parts}:
        yield LostBlob(
            name,
            lost.get(name, "no frame of it can be read"),
            edits=tuple(edits.get(name, ())),
            decisions=tuple(decisions.get(name, ())),
            snapshots=parts[name].snapshots if name in parts else (),
        )


def _breaks(known: Iterable[Record]) -> Iterator[PathBreak]:
    """Yield where a record of a file does not start from the state that the file's previous record led to."""
    known = list(known)
    voided = VoidedRecords(known)
    last: dict[DocumentId, tuple[FileState | None, str]] = {}
    for record in known:
        if record in voided:
            continue
        for document, path, before, after in _transitions(record):
            name = _name(record)
            state, earlier = last.get(document, (before if int(document) == _first_seq(record) else None, ""))
            if state != before:
                yield PathBreak(path, document, earlier, name)
            last[document] = (after, name)


def _transitions(record: Record) -> Iterator[tuple[DocumentId, bytes, FileState | None, FileState | None]]:
    if isinstance(record, Edit):
        yield record.document, record.path, record.before, record.after
    elif isinstance(record, Decision):
        for written in record.written:
            yield written.document, written.path, written.before, written.after


def _first_seq(record: Record) -> int:
    return int(record.seq) if isinstance(record, Edit) else 0


def _name(record: Record) -> str:
    return f"edit {record.seq}" if isinstance(record, Edit) else f"decision {getattr(record, 'number', 0)}"


def _states(unchained: Iterable[ScannedRecord]) -> Iterator[RecoveredFile]:
    """Yield the states that records led to, each under a unique name."""
    named: set[str] = set()
    for found in unchained:
        folder = _name(found.record).replace(" ", "-")
        if folder in named:
            # Two records with one number: one of them was never acknowledged, and it is not known which.
            folder = f"{folder}-{found.id.hex()}"
        named.add(folder)
        for _, path, _, after in _transitions(found.record):
            if after is not None:
                yield RecoveredFile(os.path.join(folder, os.fsdecode(path)), after)


# ---- acting


def _write_recovered(salvage: Salvage, scan: SegmentScan, folder: str, disk: Disk) -> tuple[RecoveredFile, ...]:
    """Write the states after the break; return those whose paths can't be created there, such as too long ones."""
    unwritten = []
    for file in salvage.recovered:
        path = os.path.join(folder, file.name)
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            disk.create(path, scan.pieces(file.state.blob), file.state.mode | 0o400)
        except (DiskFailed, OSError) as error:
            cause = error if isinstance(error, OSError) else error.__cause__
            if not isinstance(cause, OSError) or cause.errno not in _NO_PLACE:
                raise
            unwritten.append(file)
    return tuple(unwritten)


def _move_in(making: str, directory: str, disk: Disk) -> None:
    """Move the result to its place: the store last, so that a process that finds it finds the rest."""
    for folder, _, _ in os.walk(os.path.join(making, RECOVERED)):
        disk.sync_directory(folder)  # `create` has synced the folder of each file, but not the folders above
    names = [name for name in (RECOVERED, REPORT) if os.path.lexists(os.path.join(making, name))]
    moved: list[str] = []
    try:
        for name in names:
            move_created(making, directory, name, disk)
            moved.append(name)
        disk.move_store_folder(os.path.join(making, STORE_NAME), os.path.join(directory, STORE_NAME))
    except BaseException:
        for name in reversed(moved):
            move_created(directory, making, name, disk)
        raise


class _LateDisk(Disk):
    """A disk whose appends are synced together at the end: no one sees the store before that."""

    def sync(self, fd: int, name: str) -> None:
        pass


def _fill(salvage: Salvage, scan: SegmentScan, folder: str, disk: Disk) -> None:
    segments = os.path.join(folder, "segments")
    log = Log(segments, _LateDisk())
    try:
        end = log.first
        for payloads in _groups(salvage, scan):
            end = log.append(end, payloads).end
    finally:
        log.close()
    for name in os.listdir(segments):
        fd = os.open(os.path.join(segments, name), os.O_RDONLY | os.O_CLOEXEC)
        try:
            disk.sync(fd, name)
        finally:
            os.close(fd)
    reset_applied_marker(folder, end, disk)


def _groups(salvage: Salvage, scan: SegmentScan) -> Iterator[list[tuple[FrameKind, bytes]]]:
    """Yield the groups to append: blobs first, if possible with unchanged encodings, then records, call by call."""
    blobs: list[tuple[FrameKind, bytes]] = []
    size = 0
    for name in salvage.blobs:
        payload = salvage.rescue.payload(name)
        blobs.append((FrameKind.BLOB, payload))
        size += len(payload)
        if size >= _GROUP_BYTES:
            yield blobs
            blobs, size = [], 0
    if blobs:
        yield blobs
    for _, call in groupby(salvage.journal, key=lambda found: found.group):
        yield [(FrameKind.RECORD, scan.payload(found.span)) for found in call]
    expiry = _expired_by_unchained(salvage)
    if expiry is not None:
        yield [(FrameKind.RECORD, encode_record(expiry, salvage.journal[-1].id))]


def _expired_by_unchained(salvage: Salvage) -> Expiry | None:
    """Return an expiry of those saved records that had expired by a record after a lost one (None: there are none).

    Their blobs were removed by rule; without this record in the new store, they would count as lost.
    """
    expiries = [found.record for found in salvage.unchained if isinstance(found.record, Expiry)]
    saved = [found.record for found in salvage.journal]
    edits = Ranges(one for expiry in expiries for one in expiry.edits)
    decisions = Ranges(one for expiry in expiries for one in expiry.decisions)
    snapshots = {number for expiry in expiries for number in expiry.snapshots}
    pins = {number for expiry in expiries for number in expiry.pins}
    expiry = Expiry(
        time=now(),
        edits=ranges_of(record.seq for record in saved if isinstance(record, Edit) and record.seq in edits),
        decisions=ranges_of(
            record.number for record in saved if isinstance(record, Decision) and record.number in decisions
        ),
        snapshots=tuple(r.number for r in saved if isinstance(r, Snapshot) and r.number in snapshots),
        pins=tuple(r.number for r in saved if isinstance(r, Pin) and r.number in pins),
        reason="expired before the salvage",
        who="salvage",
    )
    return expiry if expiry.edits or expiry.decisions or expiry.snapshots or expiry.pins else None
