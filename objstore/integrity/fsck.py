"""Check: whether a store is what was written, and what it means for which files where it isn't.

Read from the ground up: frames, blobs through their chains, the hash chain of records, and only where those stand the
index, the reference counts, each document's replay and the files. Nothing is changed but what `repair` is told to.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from enum import StrEnum
from functools import partial
from itertools import zip_longest
from typing import Final

from objstore.errors import (
    UNREADABLE,
    BlobDamaged,
    CasError,
    DiskFailed,
    DiskFull,
    FileMissing,
    StoreDamaged,
    StoreError,
    StoreUnknown,
    TreeInvalid,
)
from objstore.fastclass import replace, value
from objstore.file_changes.cross_device_staging import leftover_staging_paths
from objstore.fs.confined_path import find_root
from objstore.fs.disk import Disk
from objstore.fs.nofollow import refuse_links
from objstore.fs.reserved_names import INDEX_NAME, STORE_NAME
from objstore.history.document_loader import (
    cached_document_differs,
    decisions_differing_on_replay,
    delete_cached_document,
)
from objstore.history.snapshot_check import UnreadablePart, unreadable_parts
from objstore.index.database import COMPARED, remove_index
from objstore.index.log_index import Index
from objstore.index.refcounts import held_blobs, recount, unexpired
from objstore.index.rows import Tip
from objstore.integrity.segment_scan import MAX_LISTED_LOSSES, FrameSpan, ScannedRecord, SegmentScan
from objstore.log.frames import SEGMENT_HEADER_SIZE
from objstore.log.segment_files import Place
from objstore.model.basic_types import Progress, ignore_progress
from objstore.model.ids import BlobId
from objstore.model.records import Decision, Edit, Numbering, Snapshot
from objstore.model.tree import decode_tree
from objstore.recovery.applied_marker import read_applied_marker
from objstore.review.status import external_changes
from objstore.store.object_store import Store
from objstore.transaction.journal import Journal

__all__ = ["CheckReport", "Fault", "StorePart", "check_store", "repair_store"]

_NUMBERS_SHOWN: Final = 20
_NAMES_SHOWN: Final = 3
_HASH_SHOWN: Final = 12
_TRIES: Final = 5


class StorePart(StrEnum):
    """What of a store a fault is in."""

    SEGMENTS = "segments"
    BLOBS = "blobs"
    RECORDS = "records"
    INDEX = "index"
    REFCOUNTS = "refcounts"
    DOCUMENTS = "documents"
    WEAVES = "weaves"
    MARK = "mark"


_OF_THE_LOG: Final = frozenset({StorePart.SEGMENTS, StorePart.RECORDS})


@value
class Fault:
    """One thing that is wrong."""

    part: StorePart
    what: str
    meaning: str  # for the person whose files these are
    paths: tuple[str, ...] = ()  # of files whose history it concerns
    edits: tuple[int, ...] = ()  # that it concerns
    repairable: bool = False  # it is derived, so it can be made anew


@value
class CheckReport:
    """What was looked at, and what was found."""

    root: str
    segments: int
    blobs: int
    records: int
    documents: int  # that were replayed
    faults: tuple[Fault, ...]
    leftovers: int  # files in .cas/tmp, or on other disks, of writes that were cut off or are going on
    notes: tuple[str, ...]  # worth knowing, and nothing wrong

    @property
    def is_log_sound(self) -> bool:
        """Return whether all that is derived can be rebuilt from the log."""
        return not any(fault.part in _OF_THE_LOG for fault in self.faults)


def check_store(start: str, *, quick: bool = False, progress: Progress | None = None) -> CheckReport:
    """Check the store of the workspace at or above `start`.

    `quick`: neither decode the blobs nor replay the documents; a frame's checksum vouches for its bytes all the same.
    Raises NotAWorkspace, StoreLinked and FormatTooNew, and DiskFull where there is no room to look.
    """
    checking = _Checking(find_root(start), quick=quick, progress=progress or ignore_progress)
    checking.run()
    return checking.report


def repair_store(report: CheckReport) -> CheckReport:
    """Rebuild what is derived, clear leftovers away, and return what a new check finds.

    The index always, where the log is sound: a check can't prove that nothing of it is wrong. All else where it was
    found wrong. Raises StoreLocked, PermissionRefused and what else a write raises.
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
    """Return the journal, without the index that there is where that alone keeps it from being opened."""
    try:
        return Journal(root, Disk())
    except (StoreDamaged, DiskFailed):
        if not is_index_faulty:
            raise
    remove_index(os.path.join(root, STORE_NAME, INDEX_NAME))
    return Journal(root, Disk())


def _read_or_none(read: Callable[[BlobId], bytes], blob: BlobId) -> bytes | None:
    """Return a blob's bytes (None: they can't be read, and that is told elsewhere)."""
    try:
        return read(blob)
    except UNREADABLE:
        return None


def _tree_or_none(remains: SegmentScan, invalid: dict[BlobId, str], name: BlobId) -> bytes | None:
    """Return the bytes of a tree that a snapshot holds (None: it can't be read, or is none, and is put with those)."""
    content = _read_or_none(remains.blob, name)
    try:
        if content is not None:
            decode_tree(content)
    except TreeInvalid as error:
        invalid[name] = error.reason
        return None
    return content


def _of_snapshots(part: UnreadablePart, baseline: int, *, log_stands: bool) -> str:
    """Return what it means that a part of snapshots is lost, and what to do. `baseline`: its number (0: none)."""
    given_up = tuple(number for number in part.snapshots if number != baseline or not part.is_tree)
    ways = []
    if given_up:
        ways.append(f"`cas snapshot delete {_cut(given_up)}` gives {'it' if len(given_up) == 1 else 'them'} up")
    if len(given_up) < len(part.snapshots):
        found = f"snapshot {baseline} is what the first look found"
        ways.append(f"{found}, and the next one (`cas record`) takes another in its place")
    way = ("" if log_stands else "once `cas salvage` has made a store of the rest, ") + "; ".join(ways)
    named = f"snapshot{'' if len(part.snapshots) == 1 else 's'} {_cut(part.snapshots)}"
    if not part.is_tree:
        return f"A file of {named} can't be shown or brought back. {_sentence(way)}"
    return f"{_sentence(named)[:-1]} can't be compared or brought back, and nothing is collected. {_sentence(way)}"


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."


class _Checking:
    """One check in progress."""

    def __init__(self, root: str, *, quick: bool, progress: Progress) -> None:
        self._folder = os.path.join(root, STORE_NAME)
        self._quick = quick
        self._progress = progress
        self._faults: list[Fault] = []
        self._notes: list[str] = []
        self._edits_of: dict[BlobId, list[Edit]] = {}  # that name a blob
        self._counted: Mapping[BlobId, int] = {}  # how often records hold each blob
        self.report = CheckReport(
            root=root, segments=0, blobs=0, records=0, documents=0, faults=(), leftovers=0, notes=()
        )

    def run(self) -> None:
        refuse_links(self._folder)
        # Before the log: a writer moves the mark after it.
        marked = read_applied_marker(self._folder)
        try:
            with SegmentScan(os.path.join(self._folder, "segments")) as remains:
                records = self._check_segments(remains, marked)
                for found in records:
                    if isinstance(found.record, Edit):
                        for blob in held_blobs(found.record):
                            self._edits_of.setdefault(blob, []).append(found.record)
                self._check_chain(records, remains)
                log_stands = not any(fault.part in _OF_THE_LOG for fault in self._faults)
                self._check_blobs(remains, records, log_stands=log_stands)
                self.report = replace(
                    self.report, segments=len(remains.segments), blobs=len(remains.blobs), records=len(records)
                )
            if log_stands:
                self._check_derived(records)
            else:
                self._notes.append(
                    "The log is damaged, so index, reference counts, documents and files were not looked at."
                )
        except FileMissing:
            instead = "Put them back; or put .cas aside (mv), and `cas init` makes a new store."
            lost = f"All that was recorded is lost, unless the segments were moved away. {instead}"
            self._fault(StorePart.SEGMENTS, "there is no segment", lost)
        except StoreUnknown as error:
            self._fault(StorePart.SEGMENTS, str(error), "Nothing can be read. `cas salvage` takes the store's id.")
        leftovers = self._leftovers()
        if leftovers:
            self._notes.append(f"{leftovers} files in .cas/tmp, of writes that were cut off or are going on.")
        beside = leftover_staging_paths(self.report.root) if leftovers else []
        for path in beside:
            self._notes.append(f"{path} is of a write on another disk that was cut off or is going on.")
        leftovers += len(beside)
        self.report = replace(self.report, faults=tuple(self._faults), leftovers=leftovers, notes=tuple(self._notes))

    def _leftovers(self) -> int:
        try:
            return len(os.listdir(os.path.join(self._folder, "tmp")))
        except FileNotFoundError:
            return 0

    # ---- the log

    def _check_segments(self, remains: SegmentScan, marked: Place | None) -> list[ScannedRecord]:
        """Find damage; return the records that are in the journal."""
        for number in remains.missing_segments():
            self._fault(
                StorePart.SEGMENTS, f"segment {number} is missing", "What was recorded in it is lost; see below."
            )
        last = remains.segments[-1]
        tail, _, size = remains.ends[-1]
        end = remains.end(len(remains.segments) - 1)
        is_acknowledged = marked is not None and end < marked
        if tail < size and not is_acknowledged:
            unfinished = "1 byte" if size - tail == 1 else f"{size - tail} bytes"
            self._notes.append(f"{unfinished} of an unfinished write at the end; the next one cuts it off.")
        for damage in remains.damage:
            # Not the header, which no write leaves unfinished: who begins a segment gives it its name with that.
            is_in_last = damage.segment == os.path.basename(last.path)
            in_tail = is_in_last and damage.offset >= max(tail, SEGMENT_HEADER_SIZE)
            if not in_tail or is_acknowledged:
                is_header = damage.offset < SEGMENT_HEADER_SIZE
                advice = " The store can't be opened; `cas salvage` makes one of the rest." if is_header else ""
                self._fault(
                    StorePart.SEGMENTS,
                    f"{damage.segment}, bytes {damage.offset} to {damage.end}: {damage.reason}",
                    f"Blobs or records that lay there are lost; see below.{advice}",
                )
        if is_acknowledged:
            ends = "ends at"
            meaning = "The newest edits are lost, or .cas/applied is another store's; no write is taken until repaired."
            if tail < size:
                # Where the index knows the newest edits, and their last record is whole, writes go on behind them.
                ends = "is whole up to"
                meaning = (
                    "What was acknowledged behind that is damaged. Writes may be refused, or go on behind the damage; "
                    "`cas salvage` makes a store of what is left."
                )
            self._fault(
                StorePart.MARK,
                f"the log {ends} byte {end.position} of segment {end.segment}, and files had followed it further",
                meaning,
                repairable=tail == size,
            )
        return [found for found in remains.records if not self._is_in(remains, found.span, tail)]

    @staticmethod
    def _is_in(remains: SegmentScan, span: FrameSpan, tail: int) -> bool:
        return span.file == len(remains.segments) - 1 and span.offset >= tail

    def _check_chain(self, records: list[ScannedRecord], remains: SegmentScan) -> None:
        last = None
        last_seq = 0
        numbering: Numbering | None = Numbering()  # None: it is known no more
        for at, found in enumerate(records):
            if found.previous != last:
                name = os.path.basename(remains.segments[found.span.file].path)
                lost = tuple(range(last_seq + 1, _edits_before(records[at:]) + 1)[:MAX_LISTED_LOSSES])
                numbering = None
                self._fault(
                    StorePart.RECORDS,
                    f"{name}, byte {found.span.offset}: the record does not follow the one before it",
                    "Records between them are lost"
                    + (f", {_listed(lost)} among them" if lost else "")
                    + ". `cas salvage` makes a store of the rest.",
                    edits=lost,
                )
            wrong = numbering.take(found.record) if numbering is not None else ""
            if wrong:
                self._fault(
                    StorePart.RECORDS,
                    f"{os.path.basename(remains.segments[found.span.file].path)}, byte {found.span.offset}: {wrong}",
                    "Nothing can be looked up. `cas salvage` makes a store of what was recorded before it.",
                )
                numbering = None
            last = found.id
            last_seq = int(found.record.seq) if isinstance(found.record, Edit) else last_seq

    def _check_blobs(self, remains: SegmentScan, records: list[ScannedRecord], *, log_stands: bool) -> None:
        lost: dict[BlobId, str] = {}
        total = len(remains.blobs)
        for done, name in enumerate(remains.blobs):
            self._progress("blobs", done, total)
            try:
                if self._quick:
                    remains.verify_needs(name)
                else:
                    remains.verify(name)
            except BlobDamaged as error:
                lost[name] = error.reason
        # What has expired holds nothing: that its blobs are gone is in order.
        invalid: dict[BlobId, str] = {}
        read = partial(_tree_or_none, remains, invalid)
        journal = [found.record for found in records]
        self._counted = recount(journal, read, remains.chunks)
        lost |= {name: "no frame of it can be read" for name in self._counted if name not in remains.blobs}
        if not lost and not invalid:
            return
        parts = unreadable_parts(journal, remains.blobs.keys() - lost.keys() - invalid.keys(), read)
        kept = [record for record in unexpired(journal) if isinstance(record, Snapshot)]
        baseline = next((record.number for record in kept if not record.who and record.path is None), 0)
        told = {name: _of_snapshots(part, baseline, log_stands=log_stands) for name, part in parts.items()}
        for name, reason in invalid.items():
            self._fault(StorePart.BLOBS, f"tree {name.hex()}: {reason}", told[name])
        for name, reason in lost.items():
            self._lost_blob(name, reason, told.get(name, ""))

    def _lost_blob(self, name: BlobId, reason: str, of_snapshots: str) -> None:
        edits = self._edits_of.get(name, [])
        paths = tuple(dict.fromkeys(os.fsdecode(edit.path) for edit in edits))
        numbers = tuple(dict.fromkeys(int(edit.seq) for edit in edits))
        meaning = []
        if edits:
            meaning.append(f"No diff of {_listed(numbers)} can be shown, and no edit of {', '.join(paths)} decided on.")
        if of_snapshots:
            meaning.append(of_snapshots)
        said = " ".join(meaning) or "No edit names it, and no snapshot."
        self._fault(StorePart.BLOBS, f"blob {name.hex()}: {reason}", said, paths=paths, edits=numbers)

    # ---- what is derived

    def _check_derived(self, records: list[ScannedRecord]) -> None:
        try:
            journal = Journal(self.report.root, Disk())
        except DiskFull:
            raise  # it says nothing of the index
        except CasError as error:
            self._fault(StorePart.INDEX, str(error), "Nothing can be looked up until it is made anew.", repairable=True)
            return
        with closing(journal):
            try:
                with journal.reading() as store:
                    self._check_index(store)
                    self._check_refs(store, records)
                    if any(fault.part is StorePart.INDEX for fault in self._faults):
                        self._notes.append("The index is damaged, so documents and files were not looked at.")
                        return
                    if not self._quick:
                        self._check_documents(journal)
                    self._check_files(journal)
            except DiskFull:
                raise
            except DiskFailed as error:
                # SQLite finds some damage only where it reads.
                meaning = "Nothing can be looked up until it is made anew."
                self._fault(StorePart.INDEX, str(error), meaning, repairable=True)
            except StoreDamaged as error:
                meaning = "The store can't be opened. `cas salvage` makes one of the rest."
                self._fault(StorePart.SEGMENTS, str(error), meaning)

    def _check_index(self, store: Store) -> None:
        differing: list[str] = []
        damaged_tables: list[str] = []
        damage: StoreDamaged | None = None
        fresh: Index | None = None
        with ExitStack() as opened:
            for _ in range(_TRIES):  # a collection may have begun or ended meanwhile; then it is no wonder
                try:
                    fresh = fresh or opened.enter_context(closing(Index(":memory:", store.log)))
                    fresh.follow_generations()
                    fresh.catch_up()
                    # Not the index alone: where it stands may have been written anew since.
                    store.catch_up()
                    kept = store.index
                    # Before its rows are read: it may lead to others from each place.
                    said = kept.checks.sqlite_integrity_error()
                    if said:
                        self._wrong_index(f"SQLite finds the index damaged: {said}")
                        return
                    if kept.places.moving():
                        self._notes.append("The index was not compared: a collection is going on, or was cut off.")
                        return
                    with kept.still():
                        fresh.catch_up(kept.end)
                        differing = list(_differing(kept, fresh))
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
            self._wrong_index(f"the index's table {table} is not what the log says")
        for table in damaged_tables:
            self._wrong_index(f"the index's table {table} does not hold what was put into it")

    def _wrong_index(self, what: str) -> None:
        meaning = "What commands show may be wrong; no file and no history is. `cas fsck --repair` rebuilds it."
        self._fault(StorePart.INDEX, what, meaning, repairable=True)

    def _check_refs(self, store: Store, records: list[ScannedRecord]) -> None:
        index, last = store.index, records[-1].id if records else None
        if index.last_record != last:
            return  # a writer has gone on since the log was read
        with index.still():
            if index.last_record != last:
                return  # or has since then
            # Closed before the index is, as where tables are compared.
            with closing(index.blobs.all_refs()) as counted:
                wrong = sum(refs != self._counted.get(name, 0) for name, refs in counted)
        if wrong:
            self._fault(
                StorePart.REFCOUNTS,
                f"{wrong} blobs have another reference count than records give them",
                "Space may be kept too long, or taken too early. `cas fsck --repair` counts anew.",
                repairable=True,
            )

    def _check_documents(self, journal: Journal) -> None:
        # One moment for all: between two looks, another process may record an edit.
        with journal.store.index.still():
            tips = journal.store.index.documents.tips()
            for done, tip in enumerate(tips):
                self._progress("documents", done, len(tips))
                try:
                    if cached_document_differs(journal, tip.document):
                        self._wrongly_kept(os.fsdecode(tip.path))
                    self._note_decided_otherwise(journal, tip)
                except StoreError as error:
                    path = os.fsdecode(tip.path)
                    self._fault(
                        StorePart.DOCUMENTS,
                        f"{path}: {error}",
                        f"No edit of {path} can be decided on. Its recorded states can still be read.",
                        paths=(path,),
                    )
        self.report = replace(self.report, documents=len(tips))

    def _note_decided_otherwise(self, journal: Journal, tip: Tip) -> None:
        """Name the decisions that an older version carried out otherwise than this one would."""
        for number in decisions_differing_on_replay(journal, tip.document):
            place = journal.store.index.decisions.place(number)
            record = None if place is None else journal.store.record(place)[0]
            if not isinstance(record, Decision):
                continue
            edits = _listed(tuple(sorted({int(unit.seq) for unit, _ in record.verdicts})))
            written = next(written for written in record.written if written.document == tip.document)
            states = [state.blob.hex()[:_HASH_SHOWN] for state in (written.before, written.after) if state is not None]
            self._notes.append(
                f"{os.fsdecode(tip.path)}: decision {number} ({record.action.value} of {edits}) wrote another text "
                "than this version would. Older versions could take alike lines along, or lose a change of the final "
                f"newline. See what it did: cas {'diff' if len(states) > 1 else 'cat'} {' '.join(states)}"
            )

    def _wrongly_kept(self, path: str) -> None:
        self._fault(
            StorePart.WEAVES,
            f"{path}: what .cas/cache keeps of it is not what its records make",
            "Decisions on it may be refused or wrong. `cas fsck --repair` makes it anew.",
            paths=(path,),
            repairable=True,
        )

    def _check_files(self, journal: Journal) -> None:
        changed = [change.path for change in external_changes(journal)]
        if changed:
            more = len(changed) - _NAMES_SHOWN
            names = ", ".join(changed[:_NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")
            self._notes.append(f"Files that are not as last recorded (see `cas diff`): {names}.")

    def _fault(
        self,
        part: StorePart,
        what: str,
        meaning: str,
        *,
        paths: tuple[str, ...] = (),
        edits: tuple[int, ...] = (),
        repairable: bool = False,
    ) -> None:
        self._faults.append(
            Fault(part=part, what=what, meaning=meaning, paths=paths, edits=edits, repairable=repairable)
        )


def _edits_before(records: list[ScannedRecord]) -> int:
    """Return the number of the newest edit that must have been there before the records, as far as they tell."""
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
        # Closed before the index is, also where a row can't be read: an open cursor would complain of that later.
        with closing(kept.checks.rows(table)) as kept_rows, closing(fresh.checks.rows(table)) as fresh_rows:
            is_differing = any(a != b for a, b in zip_longest(kept_rows, fresh_rows))
        if is_differing:
            yield table
    # A second frame may have gone since it was noted, but nothing is noted that is not in the log.
    if not fresh.checks.duplicated_blobs() <= kept.checks.duplicated_blobs() or kept.checks.has_stray_duplicates():
        yield "doubled"


def _listed(numbers: tuple[int, ...]) -> str:
    """Return some edits as a person names them, cut short where there are many."""
    return f"{'edit' if len(numbers) == 1 else 'edits'} {_cut(numbers)}"


def _cut(numbers: tuple[int, ...]) -> str:
    shown = " ".join(map(str, numbers[:_NUMBERS_SHOWN]))
    return shown + (f" and {len(numbers) - _NUMBERS_SHOWN} more" if len(numbers) > _NUMBERS_SHOWN else "")
