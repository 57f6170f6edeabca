"""Salvage: a working store from what is left of a damaged one.

The journal is a hash chain, so what follows a lost record can't follow anything in a new store: each record names the
one before it. The new journal is therefore the longest unbroken beginning of the old one, with every record under its
old id; every blob that verifies is in the new store; and of each record behind the break the file states that it led to
are written out beside it. docs/decisions/0007-salvage.md says why it is not recorded anew. Plan first, then act.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from typing import Final, NamedTuple

from objstore.disk import Disk
from objstore.errors import BlobDamaged, BlobMissing, FileExists
from objstore.frames import FrameKind, StoreId
from objstore.ids import BlobId, RecordId
from objstore.intake import held_blobs
from objstore.journal import create_workspace, forget_followed
from objstore.paths import STORE_NAME
from objstore.records import Decision, Edit, Record, Void
from objstore.remains import Damage, FoundRecord, Remains, segment_folder
from objstore.segments import Log
from objstore.terms import DocumentId, FileState, Seq

__all__ = ["LostBlob", "PathBreak", "RecoveredFile", "Salvage", "plan_salvage", "rebuild", "salvage_store"]

RECOVERED: Final = "recovered"
"""The folder beside the new store for the states of edits and decisions that are not in its journal."""

_GROUP_BYTES: Final = 8 << 20


class LostBlob(NamedTuple):
    """A blob that something needs and that could not be read."""

    id: BlobId
    reason: str
    edits: tuple[Seq, ...]  # that name it, ascending
    decisions: tuple[int, ...]


class PathBreak(NamedTuple):
    """A file of which edits or decisions are lost: two records that should meet don't."""

    path: bytes
    document: DocumentId
    after: str  # the last record before the gap, as `edit 12` or `decision 3`; "": none
    before: str  # the first one behind it


class RecoveredFile(NamedTuple):
    """A file state behind the break, to be written out."""

    name: str  # below RECOVERED
    state: FileState


@dataclass(frozen=True, slots=True, kw_only=True)
class Salvage:
    """What can be saved of a store, and what can't."""

    store: StoreId
    segments: tuple[str, ...]  # names of the files that were read
    missing_segments: tuple[int, ...]  # numbers
    damage: tuple[Damage, ...]
    blobs: tuple[BlobId, ...]  # every one that verifies, in the order of the log
    lost_blobs: tuple[LostBlob, ...]
    journal: tuple[FoundRecord, ...]  # the unbroken beginning, in order
    beyond: tuple[FoundRecord, ...]  # what decodes behind a lost record
    lost_edits: tuple[Seq, ...]  # numbers that no record has, below the last that one has
    lost_decisions: tuple[int, ...]
    breaks: tuple[PathBreak, ...]
    recovered: tuple[RecoveredFile, ...]

    @property
    def is_whole(self) -> bool:
        """Return whether nothing is lost, as far as can be seen from segments alone."""
        return not (self.missing_segments or self.damage or self.lost_blobs or self.beyond)


def salvage_store(place: str, directory: str | None, store: bytes | None = None) -> Salvage:
    """Save what can be saved of the store at `place`, into a new one in `directory` (None: only say what could be).

    `place` is a folder of segment files, a `.cas/` or a copy of one, or a workspace. `store`: the damaged store's id,
    16 bytes, where no header tells it. What is at `place` is left as it is.
    Raises FileMissing, StoreUnknown, FileExists, and what the disk raises.
    """
    with Remains(segment_folder(place), None if store is None else StoreId(store)) as remains:
        salvage = plan_salvage(remains)
        if directory is not None:
            rebuild(salvage, remains, directory, Disk())
        return salvage


def plan_salvage(remains: Remains) -> Salvage:
    """Return what can be saved. Changes nothing."""
    saved, lost = _verified(remains)
    journal, beyond = _chain(remains.records)
    known = [found.record for found in (*journal, *beyond)]
    edits = {record.seq for record in known if isinstance(record, Edit)}
    decisions = {record.number for record in known if isinstance(record, Decision)}
    return Salvage(
        store=remains.store,
        segments=tuple(os.path.basename(segment.path) for segment in remains.segments),
        missing_segments=tuple(remains.missing_segments()),
        damage=tuple(remains.damage),
        blobs=tuple(saved),
        lost_blobs=tuple(_lost_blobs(known, saved, lost)),
        journal=tuple(journal),
        beyond=tuple(beyond),
        lost_edits=tuple(Seq(n) for n in range(1, max(edits, default=0)) if n not in edits),
        lost_decisions=tuple(n for n in range(1, max(decisions, default=0)) if n not in decisions),
        breaks=tuple(_breaks(known)),
        recovered=tuple(file for found in beyond for file in _states(found.record) if file.state.blob in saved),
    )


def rebuild(salvage: Salvage, remains: Remains, directory: str, disk: Disk) -> None:
    """Make the new store in `directory`, and write the states behind the break beside it.

    Raises FileExists where there is a store already, and what the disk raises. The store appears whole or not at all.
    """
    final = os.path.join(directory, STORE_NAME)
    if os.path.lexists(final):
        raise FileExists(final)
    os.makedirs(directory, exist_ok=True)
    making = os.path.join(directory, f"{STORE_NAME}.salvage")
    os.mkdir(making, 0o700)
    create_workspace(making, disk)
    _fill(salvage, remains, os.path.join(making, STORE_NAME), disk)
    for file in salvage.recovered:
        path = os.path.join(directory, RECOVERED, file.name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with suppress(FileExistsError):
            disk.create(path, remains.blob(file.state.blob), file.state.mode | 0o400)
    os.rename(os.path.join(making, STORE_NAME), final)
    os.rmdir(making)
    disk.sync_directory(directory)


# ---- planning


def _verified(remains: Remains) -> tuple[dict[BlobId, None], dict[BlobId, str]]:
    """Return the blobs that verify, in order, and why each of the others doesn't."""
    saved: dict[BlobId, None] = {}
    lost: dict[BlobId, str] = {}
    for name in remains.blobs:
        try:
            remains.blob(name)
        except BlobMissing as error:
            lost[name] = f"its base {error.blob.hex()} is lost"
        except BlobDamaged as error:
            lost[name] = error.reason
        else:
            saved[name] = None
    return saved, lost


def _chain(records: Sequence[FoundRecord]) -> tuple[list[FoundRecord], list[FoundRecord]]:
    """Return the longest unbroken beginning of the journal, and the other records in the order of the log."""
    following: dict[RecordId | None, FoundRecord] = {}
    for found in records:
        following.setdefault(found.previous, found)
    journal: list[FoundRecord] = []
    last: RecordId | None = None
    while last in following:
        journal.append(following[last])
        last = journal[-1].id
    in_journal = {found.id for found in journal}
    beyond = {found.id: found for found in records if found.id not in in_journal}
    return journal, list(beyond.values())


def _lost_blobs(known: Iterable[Record], saved: dict[BlobId, None], lost: dict[BlobId, str]) -> Iterator[LostBlob]:
    edits: dict[BlobId, dict[Seq, None]] = {name: {} for name in lost}
    decisions: dict[BlobId, dict[int, None]] = {name: {} for name in lost}
    for record in known:
        for name in held_blobs(record):
            if name not in saved:
                if isinstance(record, Edit):
                    edits.setdefault(name, {})[record.seq] = None
                elif isinstance(record, Decision):
                    decisions.setdefault(name, {})[record.number] = None
    for name in {**edits, **decisions}:
        reason = lost.get(name, "no frame of it can be read")
        yield LostBlob(name, reason, tuple(edits.get(name, ())), tuple(decisions.get(name, ())))


def _breaks(known: Iterable[Record]) -> Iterator[PathBreak]:
    """Yield where a file's next record does not start from what the one before it led to."""
    known = list(known)
    void_edits = {seq for record in known if isinstance(record, Void) for seq in record.edits}
    void_decisions = {record.decision for record in known if isinstance(record, Void)}
    last: dict[DocumentId, tuple[FileState | None, str]] = {}
    for record in known:
        if (isinstance(record, Edit) and record.seq in void_edits) or (
            isinstance(record, Decision) and record.number in void_decisions
        ):
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
            path = written.path_after if written.path_after is not None else written.path_before
            yield written.document, path or b"", written.before, written.after


def _first_seq(record: Record) -> int:
    return int(record.seq) if isinstance(record, Edit) else 0


def _name(record: Record) -> str:
    return f"edit {record.seq}" if isinstance(record, Edit) else f"decision {getattr(record, 'number', 0)}"


def _states(record: Record) -> Iterator[RecoveredFile]:
    """Yield the states that a record led to, each under a name that nothing else can have."""
    folder = _name(record).replace(" ", "-")
    for _, path, _, after in _transitions(record):
        if after is not None:
            yield RecoveredFile(os.path.join(folder, os.fsdecode(path)), after)


# ---- acting


def _fill(salvage: Salvage, remains: Remains, folder: str, disk: Disk) -> None:
    log = Log(os.path.join(folder, "segments"), disk)
    try:
        end = log.first
        for payloads in _groups(salvage, remains):
            end = log.append(end, payloads).end
        forget_followed(folder, end, disk)
    finally:
        log.close()


def _groups(salvage: Salvage, remains: Remains) -> Iterator[list[tuple[FrameKind, bytes]]]:
    """Yield what is to be appended: blobs first, as they were spelt, then records, call by call."""
    blobs: list[tuple[FrameKind, bytes]] = []
    size = 0
    for name in salvage.blobs:
        payload = remains.payload(remains.spot(name))
        blobs.append((FrameKind.BLOB, payload))
        size += len(payload)
        if size >= _GROUP_BYTES:
            yield blobs
            blobs, size = [], 0
    if blobs:
        yield blobs
    for _, call in groupby(salvage.journal, key=lambda found: found.group):
        yield [(FrameKind.RECORD, remains.payload(found.spot)) for found in call]
