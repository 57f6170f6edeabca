"""Convert the store of a workspace: write a new one next to it, check that whole, and swap the two in one step.

Write order. The new store *must* be whole, durable and checked before the swap; the swap is one rename, so that at any
moment `.cas` is the earlier store or the new one. After the swap the earlier store is moved into the new one, where it
stays until a person removes it. A conversion that was stopped before the swap has changed nothing, and the next one
begins again; one that was stopped after it is finished by the next.
"""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from typing import Final

from objstore.disk.fs.confined_path import find_root
from objstore.disk.fs.disk import Disk
from objstore.disk.fs.nofollow import open_store_folder, read_store_file, refuse_links
from objstore.disk.fs.reserved_names import AGENTS_NAME, HOOK_LOG_NAME, LOG_NAME, STAGING_NOTE_PREFIX, STORE_NAME
from objstore.disk.fs.writer_lock import WriterLock
from objstore.disk.witnesses.history_witness import forget_newest
from objstore.history.documents.state_reader import StateReader, records_of
from objstore.model.basic_types import DocumentId, FileState, Progress, ignore_progress
from objstore.model.ids import RecordId
from objstore.model.large_file_placeholder import blob_of_text
from objstore.model.replay_records import ReplayDecision
from objstore.storage.log.applied_marker import read_applied_marker, reset_applied_marker
from objstore.storage.log.frames import SEGMENT_HEADER_SIZE, encode_frame, frame_key
from objstore.storage.log.segment_files import Place, segment_name
from objstore.storage.store.create import (
    PROOF,
    creation_folder_name,
    discard_creation_folder,
    discard_leftover,
    finish_creation,
    give_to_owner_above,
    is_creation_folder,
)
from objstore.storage.store.object_store import Store
from objstore.upkeep.convert.rewriting import Chain, Correction, Insertion, Rewriting, Upgrade, mapped_units
from objstore.upkeep.convert.segment_groups import Segment, is_earlier, segments
from objstore.upkeep.transfer.import_export import checked_store
from objstore.values.errors import ConversionRefused, DiskFull, StoreDamaged
from objstore.values.fastclass import replace, value
from objstore.values.request_errors import BundleRefused
from objstore.weave.document import Document

__all__ = ["KEPT", "Converted", "convert_store"]

KEPT: Final = "before-conversion"
"""The folder in the new store that has the earlier one."""

_BESIDE: Final = f"{STORE_NAME}.{KEPT}"
"""The name next to the store that the new one has before the swap, and the earlier one after it."""

_SPARE: Final = 16 << 20
"""Bytes that stay free on the disk besides the new log: its index is built, too."""

_DROPPED: Final = frozenset({"changes", "looks", "names", "secrets", "secrets-recorded"})
"""Files in `cache/` that are derived from the journal again, or name records by ids that they don't have any more."""

_SHOWN: Final = "told-"
"""Prefix of the files that say which units a conversation was shown."""

_KNOWN_CAUTIONS: Final = "cautions-"
"""Prefix of the files that name the last record that a person was cautioned of."""


@value
class Converted:
    """The result of a conversion."""

    root: str
    kept: str  # the folder with the earlier store
    records: int
    blobs: int
    inserted: tuple[int, ...] = ()  # numbers of edits that record what decisions of version 1 wrote
    remotes: tuple[str, ...] = ()  # names of the remotes to which the whole store is pushed next time


def convert_store(start: str, progress: Progress = ignore_progress, disk: Disk | None = None) -> Converted | None:
    """Convert the store of the workspace at or above `start`; None: it has format 1, and nothing was left to do.

    Raises ConversionRefused, StoreDamaged, StoreLocked, DiskFull and what else the disk raises, with nothing changed.
    """
    disk, root = disk or Disk(), find_root(start)
    store, beside = os.path.join(root, STORE_NAME), os.path.join(root, _BESIDE)
    refuse_links(store)
    with _locked(store):
        for name in filter(is_creation_folder, os.listdir(root)):
            discard_leftover(os.path.join(root, name), disk)
        if not is_earlier(os.path.join(store, LOG_NAME)):
            if os.path.isdir(beside):  # a conversion was stopped after the swap
                _put_away(root, disk)
            finish_creation(root, disk)
            return None
        _clear(beside, disk)
        _require_space(root, disk)
        making = os.path.join(root, creation_folder_name())
        disk.make_creation_folder(making)
        try:
            done = _converted(root, making, progress, disk)
            give_to_owner_above(making, disk)
            forget_newest(root)
            disk.move_store_folder(os.path.join(making, STORE_NAME), beside)
            disk.sync_directory(root)
            _swap(root, disk)
        finally:
            discard_creation_folder(making, disk)
        _put_away(root, disk)
        finish_creation(root, disk)
    return done


# ---- the steps around


@contextmanager
def _locked(store: str) -> Iterator[None]:
    """Keep writers, compactions and hooks out of a store. Raises StoreLocked."""
    agents = os.path.join(store, AGENTS_NAME)
    paths = [os.path.join(store, name) for name in ("lock", "sweep.lock")]
    paths += [os.path.join(agents, name) for name in ("lock", "sessions")] if os.path.isdir(agents) else []
    with ExitStack() as held:
        for path in paths:
            lock = held.enter_context(closing(WriterLock(path)))
            held.enter_context(lock.held())
        yield


def _clear(beside: str, disk: Disk) -> None:
    """Remove what a conversion left that was stopped before the swap. Raises ConversionRefused for anything else."""
    if not os.path.lexists(beside):
        return
    try:
        is_own = os.path.exists(os.path.join(beside, PROOF)) and not is_earlier(os.path.join(beside, LOG_NAME))
    except (OSError, StoreDamaged):
        is_own = False
    if not is_own:
        raise ConversionRefused(f"{beside} is in the way. Move it away (mv), and try again")
    discard_creation_folder(beside, disk)


def _require_space(root: str, disk: Disk) -> None:
    folder = os.path.join(root, STORE_NAME, LOG_NAME)
    needed = sum(os.stat(os.path.join(folder, name)).st_size for name in os.listdir(folder)) + _SPARE
    free = disk.free_bytes(root, root)
    if needed > free:
        raise DiskFull(root, f"the new store takes about {needed} bytes next to the earlier one, and {free} are free")


def _swap(root: str, disk: Disk) -> None:
    with open_store_folder(root) as folder:
        if not disk.exchange(folder, _BESIDE, folder, STORE_NAME):
            discard_creation_folder(os.path.join(root, _BESIDE), disk)
            raise ConversionRefused(
                f"the file system of {root} can't swap two folders in one step. Copy {STORE_NAME} into an empty folder "
                "on another file system, convert it there, and put it back"
            )
    disk.sync_directory(root)


def _put_away(root: str, disk: Disk) -> None:
    """Move the earlier store into the new one, where no scan sees it, and end the creation of the new one."""
    store = os.path.join(root, STORE_NAME)
    name, number = KEPT, 1
    while os.path.lexists(os.path.join(store, name)):
        number += 1
        name = f"{KEPT}-{number}"
    disk.move_store_folder(os.path.join(root, _BESIDE), os.path.join(store, name))
    disk.sync_directory(store)
    disk.sync_directory(root)


# ---- the new store


def _converted(root: str, making: str, progress: Progress, disk: Disk) -> Converted:
    """Make the new store in the creation folder `making`, and check it."""
    earlier, made = os.path.join(root, STORE_NAME), os.path.join(making, STORE_NAME)
    rewritten = _Rewritten(earlier, disk)
    try:
        records, blobs, _ = checked_store(
            lambda folder, _: rewritten.fill(folder), making, disk, files=False, progress=progress
        )
    except BundleRefused as error:
        raise ConversionRefused(f"what it would become is wrong: {error.reason}") from error
    _require_same_files(made, rewritten, disk)
    if rewritten.marked is not None:
        reset_applied_marker(made, rewritten.marked, disk)  # what was unfinished is carried out by the next writer
    _carry_agents(earlier, made, rewritten, disk)
    for folder, names in (("cache", _kept_caches(earlier, rewritten)), ("tmp", _notes(earlier))):
        _copy(earlier, made, folder, names, disk)
    _copy(earlier, made, "", [HOOK_LOG_NAME, "config.toml"], disk)
    remotes = _carry_remotes(root, making, disk)
    disk.sync_directory(made)
    return Converted(
        root=root,
        kept=os.path.join(earlier, KEPT),
        records=records,
        blobs=blobs,
        inserted=tuple(map(int, rewritten.inserted)),
        remotes=remotes,
    )


class _Rewritten:
    """The log of a store as format 1 has it, and what became of the places and names in the earlier one."""

    def __init__(self, earlier: str, disk: Disk) -> None:
        self.disk: Final = disk
        self._log: Final = os.path.join(earlier, LOG_NAME)
        self.marked = read_applied_marker(earlier)  # None: not known, so no file is to be changed
        self.insertions: Final[list[Insertion]] = []
        self.upgrade: Final = Upgrade()
        self._id_now: dict[RecordId, RecordId] = {name: name for name in _cautioned(earlier)}

    @property
    def inserted(self) -> list[int]:
        """Return the numbers of the edits that were inserted, as they are in the end."""
        found: list[int] = []
        for insertion in self.insertions:
            found = [*map(insertion.seq, found), *insertion.made]
        return sorted(found)

    def fill(self, folder: str) -> None:
        """Write the segments into the empty folder of a new store."""
        self._rewrite(self._log, folder, self.upgrade)
        store = os.path.dirname(folder)
        while self.upgrade.decided_by_version_1 and (found := _corrections(store, self.disk)):
            # Each pass finds the first decision of each document that wrote another text: few stores have any.
            insertion = Insertion(found)
            source = f"{folder}.before"
            self.disk.move_store_folder(folder, source)
            self.disk.make_store_folder(folder)
            self._rewrite(source, folder, insertion)
            self.insertions.append(insertion)
            for name in os.listdir(source):
                self.disk.remove_store_file(os.path.join(source, name))
            self.disk.remove_store_folder(source)
        self.disk.sync_directory(folder)

    def new_id(self, name: RecordId) -> RecordId | None:
        """Return the id that a watched record has now (None: there is no such record)."""
        return self._id_now.get(name)

    def _rewrite(self, source: str, folder: str, rewriting: Rewriting) -> None:
        chain = Chain(rewriting, [*self._id_now.values()])
        marked, found, last = self.marked, None, (0, 0)
        for segment in segments(source):
            wanted = None if marked is None or marked.segment != segment.header.number else marked
            if wanted is not None and wanted.generation != segment.start.generation:
                wanted = segment.start  # as every reader takes a marker in an older generation
            ends = _Ends(wanted)
            path = os.path.join(folder, segment_name(segment.header.number, 0))
            self.disk.create(path, _pieces(segment, chain, ends))
            found = found or ends.found
            last = segment.header.number, ends.last
        if marked is not None and last < (marked.segment, marked.position):
            raise ConversionRefused("its log ends before what was acknowledged, so it is damaged")
        self.marked = found
        self._id_now = {name: now for name, last in self._id_now.items() if (now := chain.ids.get(last)) is not None}


class _Ends:
    """Where the group that ends at a wanted place ends now."""

    def __init__(self, wanted: Place | None) -> None:
        self._wanted: Final = wanted
        self.found: Place | None = None
        self.last = 0  # the position of the last noted end, in the file

    def note(self, end: Place, now: Place) -> None:
        self.last = end.position
        if end == self._wanted:
            self.found = now


def _pieces(segment: Segment, chain: Chain, ends: _Ends) -> Iterator[bytes]:
    """Yield the bytes of a rewritten segment."""
    key, number = frame_key(segment.header.store), segment.header.number
    position = SEGMENT_HEADER_SIZE
    yield segment.header.encode()
    ends.note(segment.start, Place(number, position))
    for frames, end in segment.groups():
        payloads = chain.group(frames, earlier=segment.earlier)
        last = len(payloads) - 1
        for at, (kind, payload) in enumerate(payloads):
            frame = encode_frame(key, kind, payload, begins=at == 0, commits=at == last)
            position += len(frame)
            yield frame
        ends.note(end, Place(number, position))


def _corrections(store: str, disk: Disk) -> list[Correction]:
    """Return, for each document, the first decision that wrote another text than its verdicts make of the edits."""
    with closing(Store(store, disk, releases_index=True)) as opened:
        documents = [tip.document for tip in opened.index.documents.tips()]
        found = (_first_correction(opened, document) for document in documents)
        return [each for each in found if each is not None]


def _first_correction(store: Store, document: DocumentId) -> Correction | None:
    built: Document | None = None
    states = StateReader(store, {})
    for record, _, _ in records_of(store, document):
        if not isinstance(record, ReplayDecision):
            before = record.before
            built = built or Document.before_edit(record, None if before is None else store.text(before.blob))
            built.add(record, states.after(record, built))
        elif built is not None:
            built.replay(record)
            if document in record.written:
                correction = _correction(store, built, record)
                if correction is not None:
                    return correction
    return None


def _correction(store: Store, built: Document, decision: ReplayDecision) -> Correction | None:
    name, version = decision.written[built.id], built.version()
    made = None if version.content is None else blob_of_text(version.content)
    if name == made:
        return None
    return Correction(
        decision=decision.number,
        document=built.id,
        path=version.path,
        form=version.form,
        made=version.content,
        state_made=None if made is None else FileState(blob=made, mode=version.mode),
        written=None if name is None else store.text(name),
    )


def _require_same_files(made: str, rewritten: _Rewritten, disk: Disk) -> None:
    """Raise ConversionRefused unless the new store ends with the same files as the earlier one."""
    was = {path: state for path, state in rewritten.upgrade.tips.values() if state is not None}
    with closing(Store(made, disk)) as store:
        tips = store.index.documents.tips()
    if {tip.path: tip.state for tip in tips if tip.state is not None} != was:
        raise ConversionRefused("its files would have other states afterwards")


# ---- what is not in the log


def _copy(earlier: str, made: str, folder: str, names: Sequence[str], disk: Disk) -> None:
    """Copy files of a store, as far as they exist, into the same folder of another one."""
    for name in names:
        with suppress(FileNotFoundError):
            _write(made, folder, name, read_store_file(os.path.join(earlier, folder, name)), disk)


def _write(made: str, folder: str, name: str, content: bytes, disk: Disk) -> None:
    if folder:
        with suppress(FileExistsError):
            disk.make_store_folder(os.path.join(made, folder))
    disk.create(os.path.join(made, folder, name), content)


def _names(folder: str) -> list[str]:
    """Return the names of the files in a folder, ascending; none if there is no such folder."""
    try:
        return sorted(name for name in os.listdir(folder) if os.path.isfile(os.path.join(folder, name)))
    except FileNotFoundError:
        return []


def _carry_agents(earlier: str, made: str, rewritten: _Rewritten, disk: Disk) -> None:
    """Copy what is known of agents: no evidence is lost. What names units or records does so by their new names."""
    for name in _names(os.path.join(earlier, AGENTS_NAME)):
        content = read_store_file(os.path.join(earlier, AGENTS_NAME, name))
        if name.startswith((_SHOWN, _KNOWN_CAUTIONS)):
            with suppress(ValueError):
                held = json.loads(content)
                match held:
                    case {"units": list(units)}:
                        for insertion in rewritten.insertions:
                            units = mapped_units(units, insertion)
                        content = json.dumps({**held, "units": units}).encode()
                    case [int(), str(record), int()] if (now := rewritten.new_id(_id_in(record))) is not None:
                        content = json.dumps([held[0], now.hex(), held[2]]).encode()
        _write(made, AGENTS_NAME, name, content, disk)


def _cautioned(earlier: str) -> list[RecordId]:
    """Return the ids of the records that a person was cautioned of last."""
    found = []
    for name in _names(os.path.join(earlier, AGENTS_NAME)):
        if name.startswith(_KNOWN_CAUTIONS):
            with suppress(ValueError, TypeError, LookupError):
                found.append(_id_in(json.loads(read_store_file(os.path.join(earlier, AGENTS_NAME, name)))[1]))
    return found


def _id_in(text: str) -> RecordId:
    return RecordId(bytes.fromhex(text))


def _kept_caches(earlier: str, rewritten: _Rewritten) -> list[str]:
    """Return which caches are copied: what they say can't be derived again, and is still right."""
    named = [name for name in _names(os.path.join(earlier, "cache")) if name not in _DROPPED]
    return [
        name
        for name in named
        # A weave names records; the keys of seen changes are made of numbers of edits.
        if not name.startswith("weave-") and not (name == "seen" and rewritten.insertions)
    ]


def _notes(earlier: str) -> list[str]:
    """Return the notes of staged files on other file systems, so that these are removed."""
    return [name for name in _names(os.path.join(earlier, "tmp")) if name.startswith(STAGING_NOTE_PREFIX)]


def _carry_remotes(root: str, making: str, disk: Disk) -> tuple[str, ...]:
    """Take the remotes over, each with a lane of its own: what was pushed is of the earlier format."""
    from objstore.upkeep.remote.keys import new_lane, store_of
    from objstore.upkeep.remote.remotes import Remotes

    known, now = Remotes(root, disk), Remotes(making, disk)
    for remote in known.all():
        now.put(replace(remote, lane=new_lane(store_of(remote.lane), os.urandom(4))))
        disk.sync_directory(os.path.dirname(now.folder(remote.name)))
    return tuple(known.names())
