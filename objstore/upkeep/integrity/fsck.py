"""Check a store for damage, say what each fault means for which files, and rebuild what is derived.

The check goes from the bottom up: frames, blobs through their chains, the hash chain of records; only if these are
intact, also the index, the reference counts, each document's replay, and the files. Only `repair_store` changes
anything.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from enum import Enum, StrEnum, auto
from functools import partial
from itertools import zip_longest
from typing import Final, NamedTuple

from objstore.disk.file_changes.cross_device_staging import leftover_staging_paths
from objstore.disk.fs.confined_path import find_root
from objstore.disk.fs.disk import Disk
from objstore.disk.fs.nofollow import refuse_links
from objstore.disk.fs.reserved_names import INDEX_NAME, LOG_NAME, STORE_NAME
from objstore.history.documents.loader import (
    cached_document_differs,
    delete_cached_document,
)
from objstore.history.snapshot_check import UnreadablePart, unreadable_parts
from objstore.model.basic_types import DocumentId, Progress, ignore_progress
from objstore.model.ids import BlobId
from objstore.model.records import Decision, Edit, Expiry, Numbering, Snapshot, Void
from objstore.model.tree import decode_tree
from objstore.review.status import external_changes
from objstore.storage.index.database import COMPARED
from objstore.storage.index.index_file import IndexFile
from objstore.storage.index.ingest import decoded
from objstore.storage.index.log_index import Index
from objstore.storage.index.refcounts import held_blobs, recount, unexpired
from objstore.storage.index.rows import Tip
from objstore.storage.log.applied_marker import read_applied_marker
from objstore.storage.log.frames import SEGMENT_HEADER_SIZE
from objstore.storage.log.segment_files import Place, is_conflict_copy
from objstore.storage.log.segments import Log
from objstore.storage.store.object_store import Store
from objstore.storage.transaction.journal import Journal
from objstore.upkeep.integrity.segment_scan import MAX_LISTED_LOSSES, FrameSpan, ScannedRecord, SegmentScan
from objstore.values.errors import (
    UNREADABLE,
    CasError,
    DiskFailed,
    DiskFull,
    FileMissing,
    StoreDamaged,
    StoreError,
    StoreUnknown,
    TreeInvalid,
)
from objstore.values.fastclass import replace, value

__all__ = ["Advice", "CheckReport", "Fault", "Note", "StorePart", "check_store", "repair_store"]

_NUMBERS_SHOWN: Final = 20
_NAMES_SHOWN: Final = 3
_HASH_SHOWN: Final = 12
_TRIES: Final = 5
_INDEX_UNREADABLE: Final = "Nothing can be looked up until the index is rebuilt."
_CLOSED: Final = "The store can't be opened."


class StorePart(StrEnum):
    """The part of a store that has a fault."""

    SEGMENTS = "segments"
    BLOBS = "blobs"
    RECORDS = "records"
    INDEX = "index"
    REFCOUNTS = "refcounts"
    DOCUMENTS = "documents"
    WEAVES = "weaves"
    MARK = "mark"


_OF_THE_LOG: Final = frozenset({StorePart.SEGMENTS, StorePart.RECORDS})


class Advice(Enum):
    """What a user can do about a finding. Surfaces name the command."""

    NOTHING = auto()
    REPAIR = auto()  # the part is derived, so it can be rebuilt
    SALVAGE = auto()  # make a new store from what is left
    ACCEPT_ID = auto()  # salvage with the id that the segments have
    NEW_STORE = auto()
    SEE_CHANGES = auto()  # files that differ from their recorded states


@value
class Fault:
    """One thing that is wrong."""

    part: StorePart
    what: str  # the fault itself
    meaning: str  # what it means for the user
    advice: Advice = Advice.NOTHING
    paths: tuple[str, ...] = ()  # of files whose history it affects
    edits: tuple[int, ...] = ()  # that it affects
    snapshots: tuple[int, ...] = ()  # that have to be deleted because of it
    baseline: int = 0  # the baseline that it affects, which the next scan replaces

    @property
    def repairable(self) -> bool:
        """Return whether the part is derived, so that it can be rebuilt."""
        return self.advice is Advice.REPAIR


@value
class Note:
    """What is worth knowing about a store, and not a fault."""

    what: str
    advice: Advice = Advice.NOTHING


@value
class CheckReport:
    """The result of a check: counts of what was checked, and the faults."""

    root: str
    segments: int
    blobs: int
    records: int
    documents: int  # that were replayed
    faults: tuple[Fault, ...]
    leftovers: int  # files in .cas/tmp, or on other disks, of interrupted or running writes
    notes: tuple[Note, ...]

    @property
    def is_log_sound(self) -> bool:
        """Return whether everything derived can be rebuilt from the log."""
        return not any(fault.part in _OF_THE_LOG for fault in self.faults)


def check_store(
    start: str, *, quick: bool = False, since: Place | None = None, progress: Progress | None = None
) -> CheckReport:
    """Check the store of the workspace at or above `start`.

    `quick`: don't decode blobs or replay documents; the checksums of frames are verified all the same. `since`: where a
    group ends, up to which the log was checked before, and so is not read again; of the documents, those are replayed
    of which something follows (None: everything is checked). What is counted follows that, too.
    Raises NotAWorkspace, StoreLinked, FormatTooNew, FormatTooOld, and DiskFull if the check needs space that the disk
    has not.
    """
    checking = _Checking(find_root(start), quick=quick, since=since, progress=progress or ignore_progress)
    checking.run()
    return checking.report


def repair_store(report: CheckReport) -> CheckReport:
    """Rebuild what is derived, remove leftovers, and return the report of a new check.

    If the log is sound, the index is always rebuilt, because a check can't prove that nothing in it is wrong.
    Everything else is rebuilt if it has a fault. Raises StoreLocked, PermissionRefused and what else a write raises.
    """
    parts = {fault.part for fault in report.faults if fault.repairable}
    if parts or report.leftovers or report.is_log_sound:
        with closing(_openable(report.root, is_index_faulty=StorePart.INDEX in parts)) as journal:
            journal.recreate(index=report.is_log_sound, mark=StorePart.MARK in parts)
            if StorePart.WEAVES in parts:
                for tip in journal.store.index.documents.tips():
                    delete_cached_document(journal, tip.document)
    return check_store(report.root)


def _openable(root: str, *, is_index_faulty: bool) -> Journal:
    """Open the journal, after deleting the index if that alone prevents it."""
    try:
        return Journal(root, Disk())
    except (StoreDamaged, DiskFailed):
        if not is_index_faulty:
            raise
    with closing(IndexFile(os.path.join(root, STORE_NAME, INDEX_NAME))) as file:
        file.remove()
    return Journal(root, Disk())


def _place_in(index: Index, name: BlobId) -> Place | None:
    """Return where an index has a blob (None: nowhere)."""
    found = index.blobs.place(name)
    return None if found is None else found.place


def _read_or_none(read: Callable[[BlobId], bytes], blob: BlobId) -> bytes | None:
    """Return a blob's bytes (None: they can't be read, which is reported elsewhere)."""
    try:
        return read(blob)
    except UNREADABLE:
        return None


def _tree_or_none(scan: SegmentScan, invalid: dict[BlobId, str], name: BlobId) -> bytes | None:
    """Return the bytes of a snapshot's tree (None: it can't be read, or it is no tree and is added to `invalid`)."""
    content = _read_or_none(scan.blob, name)
    try:
        if content is not None:
            decode_tree(content)
    except TreeInvalid as error:
        invalid[name] = error.reason
        return None
    return content


def _meaning_for_snapshots(part: UnreadablePart) -> str:
    """Return what the loss of a part of snapshots means."""
    named = f"snapshot{'' if len(part.snapshots) == 1 else 's'} {_cut(part.snapshots)}"
    if not part.is_tree:
        return f"A file of {named} can't be shown or restored."
    return f"{named.capitalize()} can't be compared or restored, and garbage collection deletes nothing."


class _Built(NamedTuple):
    """An index that a check has built from the log."""

    fresh: Index
    journal: Journal | None  # whose index it is (None: it is not the store's, which is compared with it)


class _Checking:
    """One check in progress."""

    def __init__(self, root: str, *, quick: bool, since: Place | None, progress: Progress) -> None:
        self._folder = os.path.join(root, STORE_NAME)
        self._quick = quick
        self._since = since
        self._progress = progress
        self._faults: list[Fault] = []
        self._notes: list[Note] = []
        self._are_all_blobs_read = False
        self._edits_of: dict[BlobId, list[Edit]] = {}  # by the blobs that they refer to
        self.report = CheckReport(
            root=root, segments=0, blobs=0, records=0, documents=0, faults=(), leftovers=0, notes=()
        )

    def run(self) -> None:
        refuse_links(self._folder)
        # Read before the log, because a writer moves the marker after appending.
        marked = read_applied_marker(self._folder)
        try:
            with ExitStack() as opened:
                built = self._built_index(opened, marked)
                if built is None or not self._are_all_blobs_read:
                    self._faults.clear()
                    self._notes.clear()
                    self._explain(marked)
                if any(fault.part in _OF_THE_LOG for fault in self._faults):
                    self._note(
                        "The log is damaged, so the index, reference counts, documents and files were not checked."
                    )
                else:
                    self._check_derived(built)
        except FileMissing:
            lost = "Everything recorded is lost, unless the segments were moved away."
            self._fault(StorePart.SEGMENTS, "there is no segment", lost, Advice.NEW_STORE)
        except StoreUnknown as error:
            self._fault(StorePart.SEGMENTS, str(error), "Nothing can be read without the id.", Advice.ACCEPT_ID)
        self._name_conflict_copies()
        leftovers = self._leftovers()
        if leftovers:
            self._note(f"Files in .cas/tmp of interrupted or running writes: {leftovers}.")
        elsewhere = leftover_staging_paths(self.report.root) if leftovers else []
        for path in elsewhere:
            self._note(f"{path} belongs to an interrupted or running write on another disk.")
        leftovers += len(elsewhere)
        self.report = replace(self.report, faults=tuple(self._faults), leftovers=leftovers, notes=tuple(self._notes))

    def _name_conflict_copies(self) -> None:
        """Note the segments that a program which synchronizes folders has set aside: no reader reads them."""
        with suppress(FileNotFoundError):
            for name in sorted(filter(is_conflict_copy, os.listdir(os.path.join(self._folder, LOG_NAME)))):
                self._note(
                    f"{STORE_NAME}/{LOG_NAME}/{name} is a synced folder's second copy of a segment, and is not read. "
                    "What another machine recorded may be in it alone: keep it.",
                    Advice.SALVAGE,
                )

    def _leftovers(self) -> int:
        try:
            return len(os.listdir(os.path.join(self._folder, "tmp")))
        except FileNotFoundError:
            return 0

    # ---- the log: first without its records in memory, and if anything is wrong with it, again with them

    def _built_index(self, opened: ExitStack, marked: Place | None) -> _Built | None:
        """Check the log, each record decoded once, as the index is built from it; return that index.

        None: the log is damaged, or changes too much meanwhile. `opened`: is to close the index.
        """
        folder = os.path.join(self._folder, LOG_NAME)
        built: _Built | None = None
        try:
            # One that came with a log that was checked before goes on with what is new; where there is none, the log is
            # checked before one is written. This one is built first, as the scan's list of blobs takes memory, too.
            if self._since is None and os.path.exists(os.path.join(self._folder, INDEX_NAME)):
                log = opened.enter_context(closing(Log(folder, Disk())))
                built = _Built(opened.enter_context(closing(Index(None, log, self._progress))), None)
            with SegmentScan(folder, decodes_records=False, since=self._since, progress=self._progress) as scan:
                self._check_segments(scan, marked)
                if any(fault.part in _OF_THE_LOG for fault in self._faults):
                    return None
                if built is None:
                    journal = Journal(self.report.root, Disk(), progress=self._progress)
                    opened.enter_context(closing(journal))
                    built = _Built(journal.store.index, journal)
                self._are_all_blobs_read = self._is_each_blob_read(scan, built.fresh)
                self.report = replace(
                    self.report, segments=len(scan.segments), blobs=len(scan.blobs), records=scan.record_count
                )
        except DiskFull:
            raise  # it says nothing about the log
        except CasError:
            return None
        return built

    def _is_each_blob_read(self, scan: SegmentScan, built: Index) -> bool:
        """Return whether every stored blob can be read, and no held blob is missing."""
        if self._since is not None:
            scan.earlier = partial(_place_in, built)
        if next(scan.unreadable(self._progress, quick=self._quick), None) is not None:
            return False
        return not built.blobs.lost() and built.blobs.uncounted() is None

    def _explain(self, marked: Place | None) -> None:
        """Report what is wrong with the log, and what it means for which edits and snapshots."""
        with SegmentScan(os.path.join(self._folder, LOG_NAME), progress=self._progress) as scan:
            self._check_segments(scan, marked)
            tail = scan.ends[-1].whole
            records = [found for found in scan.records if not self._is_in(scan, found.span, tail)]
            for found in records:
                if isinstance(found.record, Edit):
                    for blob in held_blobs(found.record):
                        self._edits_of.setdefault(blob, []).append(found.record)
            self._check_chain(records, scan)
            is_log_sound = not any(fault.part in _OF_THE_LOG for fault in self._faults)
            self._check_blobs(scan, records, is_log_sound=is_log_sound)
            self.report = replace(self.report, segments=len(scan.segments), blobs=len(scan.blobs), records=len(records))

    def _check_segments(self, scan: SegmentScan, marked: Place | None) -> None:
        """Report damage of the segment files, and an applied marker beyond their end."""
        for number in scan.missing_segments():
            self._fault(
                StorePart.SEGMENTS, f"segment {number} is missing", "What was recorded in it is lost; see below."
            )
        last = scan.segments[-1]
        tail, _, size = scan.ends[-1]
        end = scan.end(len(scan.segments) - 1)
        is_acknowledged = marked is not None and end < marked
        if tail < size and not is_acknowledged:
            unfinished = "1 byte" if size - tail == 1 else f"{size - tail} bytes"
            self._note(f"{unfinished} of an unfinished write at the end of the log; the next write removes them.")
        for damage in scan.damage:
            # The header is never left unfinished: a segment is given its name only when it has one.
            is_in_last = damage.segment == os.path.basename(last.path)
            in_tail = is_in_last and damage.offset >= max(tail, SEGMENT_HEADER_SIZE)
            if not in_tail or is_acknowledged:
                is_header = damage.offset < SEGMENT_HEADER_SIZE
                more = f" {_CLOSED}" if is_header else ""
                self._fault(
                    StorePart.SEGMENTS,
                    f"{damage.segment}, bytes {damage.offset} to {damage.end}: {damage.reason}",
                    f"The blobs or records there are lost; see below.{more}",
                    Advice.SALVAGE if is_header else Advice.NOTHING,
                )
        if is_acknowledged:
            ends = "ends at"
            meaning = (
                "The newest edits are lost, or .cas/applied is another store's. Nothing is written before a repair."
            )
            if tail < size:
                # If the index knows the newest edits, and their last record is intact, writes go on after them.
                ends = "is whole up to"
                meaning = "Acknowledged edits after that are damaged. Writes may be refused, or go on after the damage."
            self._fault(
                StorePart.MARK,
                f"the log {ends} byte {end.position} of segment {end.segment}, but files have later edits already",
                meaning,
                Advice.REPAIR if tail == size else Advice.SALVAGE,
            )

    @staticmethod
    def _is_in(scan: SegmentScan, span: FrameSpan, tail: int) -> bool:
        return span.file == len(scan.segments) - 1 and span.offset >= tail

    def _check_chain(self, records: list[ScannedRecord], scan: SegmentScan) -> None:
        last = None
        last_seq = 0
        numbering: Numbering | None = Numbering()  # None: unknown after a gap
        for at, found in enumerate(records):
            if found.previous != last:
                name = os.path.basename(scan.segments[found.span.file].path)
                lost = tuple(range(last_seq + 1, _edits_before(records[at:]) + 1)[:MAX_LISTED_LOSSES])
                numbering = None
                self._fault(
                    StorePart.RECORDS,
                    f"{name}, byte {found.span.offset}: the record does not follow the one before it",
                    "Records between them are lost" + (f", including {_listed(lost)}" if lost else "") + ".",
                    Advice.SALVAGE,
                    edits=lost,
                )
            wrong = numbering.take(found.record) if numbering is not None else ""
            if wrong:
                self._fault(
                    StorePart.RECORDS,
                    f"{os.path.basename(scan.segments[found.span.file].path)}, byte {found.span.offset}: {wrong}",
                    "Nothing can be looked up.",
                    Advice.SALVAGE,
                )
                numbering = None
            last = found.id
            last_seq = int(found.record.seq) if isinstance(found.record, Edit) else last_seq

    def _check_blobs(self, scan: SegmentScan, records: list[ScannedRecord], *, is_log_sound: bool) -> None:
        found = dict(scan.unreadable(self._progress, quick=self._quick))
        lost = {name: found[name] for name in scan.blobs if name in found}
        # Expired records hold nothing: their blobs may be gone.
        invalid: dict[BlobId, str] = {}
        read = partial(_tree_or_none, scan, invalid)
        journal = [found.record for found in records]
        counted = recount(journal, read, scan.chunks)
        lost |= {name: "no frame of it can be read" for name in counted if name not in scan.blobs}
        if not lost and not invalid:
            return
        parts = unreadable_parts(journal, scan.blobs.keys() - lost.keys() - invalid.keys(), read)
        kept = [record for record in unexpired(journal) if isinstance(record, Snapshot)]
        baseline = next((record.number for record in kept if not record.who and record.path is None), 0)
        for name, reason in (invalid | lost).items():
            what = f"{'tree' if name in invalid else 'blob'} {name.hex()}: {reason}"
            self._lost_blob(name, what, parts.get(name), baseline, is_log_sound=is_log_sound)

    def _lost_blob(
        self, name: BlobId, what: str, part: UnreadablePart | None, baseline: int, *, is_log_sound: bool
    ) -> None:
        """Report bytes that are lost. `part`: which snapshots they are part of. `baseline`: its number (0: none)."""
        edits = self._edits_of.get(name, [])
        paths = tuple(dict.fromkeys(os.fsdecode(edit.path) for edit in edits))
        numbers = tuple(dict.fromkeys(int(edit.seq) for edit in edits))
        meaning = []
        if edits:
            meaning.append(
                f"No diff of {_listed(numbers)} can be shown, and no edit of {', '.join(paths)} can be decided."
            )
        replaced = baseline if part is not None and part.is_tree and baseline in part.snapshots else 0
        if part is not None:
            meaning.append(_meaning_for_snapshots(part))
        self._fault(
            StorePart.BLOBS,
            what,
            " ".join(meaning) or "No edit and no snapshot refers to it.",
            Advice.NOTHING if part is None or is_log_sound else Advice.SALVAGE,
            paths=paths,
            edits=numbers,
            snapshots=() if part is None else tuple(number for number in part.snapshots if number != replaced),
            baseline=replaced,
        )

    # ---- what is derived

    def _check_derived(self, built: _Built | None) -> None:
        """Check what is derived from the log. `built`: the index that was built from it (None: none was yet)."""
        journal = None if built is None else built.journal
        with ExitStack() as opened:
            if journal is None:
                try:
                    journal = opened.enter_context(closing(Journal(self.report.root, Disk())))
                except DiskFull:
                    raise  # it says nothing about the index
                except CasError as error:
                    self._fault(StorePart.INDEX, str(error), _INDEX_UNREADABLE, Advice.REPAIR)
                    return
            try:
                with journal.reading() as store:
                    if built is None or built.journal is None:
                        self._check_index(store, None if built is None else built.fresh)
                    if any(fault.part is StorePart.INDEX for fault in self._faults):
                        self._note("The index is damaged, so documents and files were not checked.")
                        return
                    if not self._quick:
                        self._check_documents(journal)
                    self._check_files(journal)
            except DiskFull:
                raise
            except DiskFailed as error:
                # SQLite finds some damage only when it reads there.
                self._fault(StorePart.INDEX, str(error), _INDEX_UNREADABLE, Advice.REPAIR)
            except StoreDamaged as error:
                self._fault(StorePart.SEGMENTS, str(error), _CLOSED, Advice.SALVAGE)

    def _check_index(self, store: Store, built: Index | None) -> None:
        """Compare the index with one that was built from the log (None: it is built here)."""
        differing: list[str] = []
        damaged_tables: list[str] = []
        damage: StoreDamaged | None = None
        wrong_counts = 0
        with ExitStack() as opened:
            for _ in range(_TRIES):  # a compaction that begins or ends meanwhile also makes a difference
                try:
                    built = built or opened.enter_context(closing(Index(None, store.log, self._progress)))
                    built.follow_generations()
                    built.catch_up()
                    # The store, and not only its index: the segment at whose place the index ends may have been
                    # rewritten since.
                    store.catch_up()
                    kept = store.index
                    # Before its rows are read: in a damaged file, any page may lead to a wrong one.
                    error_text = kept.checks.sqlite_integrity_error()
                    if error_text:
                        self._wrong_index(f"SQLite finds the index damaged: {error_text}")
                        return
                    with kept.still():
                        built.catch_up(kept.end)
                        differing = list(_differing(kept, built))
                        wrong_counts = _wrong_counts(kept, built) if "blobs" in differing else 0
                        damaged_tables = kept.checks.damaged_tables()
                except StoreDamaged as error:
                    damage = error
                    continue
                damage = None
                if not differing:
                    break
            if damage is not None:
                raise damage
        for table in differing:
            self._wrong_index(f"the index's table {table} differs from the log")
        for table in damaged_tables:
            self._wrong_index(f"the index's table {table} differs from what was written to it")
        if wrong_counts:
            self._fault(
                StorePart.REFCOUNTS,
                f"blobs whose reference count differs from the records: {wrong_counts}",
                "Blobs may be kept too long or deleted too early.",
                Advice.REPAIR,
            )

    def _wrong_index(self, what: str) -> None:
        meaning = "Commands may show wrong results; files and history are intact."
        self._fault(StorePart.INDEX, what, meaning, Advice.REPAIR)

    def _check_documents(self, journal: Journal) -> None:
        # All documents in one state of the index: another process may record an edit between two reads.
        with journal.store.index.still():
            tips = self._checked_tips(journal.store)
            for done, tip in enumerate(tips):
                self._progress("documents", done, len(tips))
                try:
                    if cached_document_differs(journal, tip.document):
                        self._wrong_cache(os.fsdecode(tip.path))
                except StoreError as error:
                    path = os.fsdecode(tip.path)
                    self._fault(
                        StorePart.DOCUMENTS,
                        f"{path}: {error}",
                        f"No edit of {path} can be decided on. Its recorded states can still be read.",
                        paths=(path,),
                    )
        self.report = replace(self.report, documents=len(tips))

    def _checked_tips(self, store: Store) -> list[Tip]:
        """Return the tips of the documents to replay: of all, or of those of which records follow `since`."""
        documents = store.index.documents
        if self._since is None:
            return documents.tips()
        changed: set[DocumentId] = set()
        for group in store.log.groups(self._since):
            for chained in decoded(group):
                match chained.record:
                    case Edit() as edit:
                        changed.add(edit.document)
                    case Decision() as decision:
                        changed.update(written.document for written in decision.written)
                        edits = {unit.seq for unit, _ in decision.verdicts}
                        changed.update(*(documents.edited_by(seq, seq) for seq in edits))
                    case Void() as void:
                        changed.update(*(documents.edited_by(seq, seq) for seq in void.edits))
                        changed.update(documents.decided_by(void.decision, void.decision))
                    case Expiry() as expiry:
                        changed.update(*(documents.edited_by(*each) for each in expiry.edits))
                        changed.update(*(documents.decided_by(*each) for each in expiry.decisions))
                    case _:
                        pass  # no replay reads it
        return documents.tips_of(changed)

    def _wrong_cache(self, path: str) -> None:
        self._fault(
            StorePart.WEAVES,
            f"{path}: its copy in .cas/cache differs from its records",
            "Decisions on it may be refused or wrong.",
            Advice.REPAIR,
            paths=(path,),
        )

    def _check_files(self, journal: Journal) -> None:
        changed = [change.path for change in external_changes(journal)]
        if changed:
            more = len(changed) - _NAMES_SHOWN
            names = ", ".join(changed[:_NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")
            self._note(f"Files that differ from their last recorded state: {names}.", Advice.SEE_CHANGES)

    def _fault(
        self,
        part: StorePart,
        what: str,
        meaning: str,
        advice: Advice = Advice.NOTHING,
        *,
        paths: tuple[str, ...] = (),
        edits: tuple[int, ...] = (),
        snapshots: tuple[int, ...] = (),
        baseline: int = 0,
    ) -> None:
        self._faults.append(
            Fault(
                part=part,
                what=what,
                meaning=meaning,
                advice=advice,
                paths=paths,
                edits=edits,
                snapshots=snapshots,
                baseline=baseline,
            )
        )

    def _note(self, what: str, advice: Advice = Advice.NOTHING) -> None:
        self._notes.append(Note(what=what, advice=advice))


def _edits_before(records: list[ScannedRecord]) -> int:
    """Return the number of the newest edit that must have existed before the records, as far as they show."""
    for found in records:
        match found.record:
            case Edit():
                return found.record.seq - 1
            case Decision():
                return max((unit.seq for unit, _ in found.record.verdicts), default=0)
            case _:
                continue
    return 0


def _differing(kept: Index, fresh: Index) -> Iterator[str]:
    if kept.checks.schema() != fresh.checks.schema():
        yield "sqlite_master"
        return
    for table in COMPARED:
        # Cursors are closed before the index is, even if a row can't be read: an open one would raise later.
        with closing(kept.checks.rows(table)) as kept_rows, closing(fresh.checks.rows(table)) as fresh_rows:
            is_differing = any(a != b for a, b in zip_longest(kept_rows, fresh_rows))
        if is_differing:
            yield table
    # A second frame may have gone since it was noted, but everything that is noted must be in the log.
    if not fresh.checks.duplicated_blobs() <= kept.checks.duplicated_blobs() or kept.checks.has_stray_duplicates():
        yield "duplicates"


def _wrong_counts(kept: Index, built: Index) -> int:
    """Return the number of blobs that the two indexes count differently."""
    with closing(kept.blobs.all_refs()) as kept_rows, closing(built.blobs.all_refs()) as built_rows:
        return len({*kept_rows} ^ {*built_rows})


def _listed(numbers: tuple[int, ...]) -> str:
    """Return some edits as text, shortened if there are many."""
    return f"{'edit' if len(numbers) == 1 else 'edits'} {_cut(numbers)}"


def _cut(numbers: tuple[int, ...]) -> str:
    shown = " ".join(map(str, numbers[:_NUMBERS_SHOWN]))
    return shown + (f" and {len(numbers) - _NUMBERS_SHOWN} more" if len(numbers) > _NUMBERS_SHOWN else "")
