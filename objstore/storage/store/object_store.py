"""Provide one store: the log, its index, and blobs by name, without knowing the user's files.

The modules that decode blobs and records are imported where they are used, because a status reads neither.
"""

from __future__ import annotations

import math
import os
import time
from collections import OrderedDict
from contextlib import closing, contextmanager, suppress
from sqlite3 import DatabaseError
from typing import TYPE_CHECKING, Final

from objstore.disk.fs.disk import failure, is_folder
from objstore.disk.fs.reserved_names import INDEX_NAME, LOG_NAME
from objstore.model.basic_types import Progress, ignore_progress
from objstore.model.ids import BlobId, RecordId, record_id
from objstore.model.large_file_placeholder import MAX_BLOB, placeholder, text_of_state
from objstore.storage.index.database import SQLITE_ERRORS, is_broken, is_unwritable
from objstore.storage.index.index_file import IndexFile
from objstore.storage.index.log_index import Index
from objstore.storage.log.segments import Group, Log, create_log
from objstore.values.errors import (
    BlobDamaged,
    BlobMissing,
    BlobTooLarge,
    CasError,
    IndexUnusable,
    NotAWorkspace,
    RecordInvalid,
    StoreDamaged,
    StoreReplaced,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from typing import TypeVar

    T = TypeVar("T")

    from objstore.disk.fs.disk import Disk
    from objstore.model.basic_types import Seq
    from objstore.model.records import Record
    from objstore.model.replay_records import ReplayDecision
    from objstore.storage.index.rows import Baseline, BlobPlace, ChainedRecord, Tip
    from objstore.storage.log.chunking import Chunk
    from objstore.storage.log.frames import FrameKind
    from objstore.storage.log.segment_files import Place

__all__ = ["Store", "create_store"]

_CACHE_BYTES: Final = 32 << 20
_FEW_BYTES: Final = 1 << 15
"""Bytes of the log that may be read under the writer lock: a few milliseconds."""

_LARGE_DECISION: Final = 64
"""Number of units from which a decision is kept in memory."""

_DECISION_BYTES: Final = 32 << 20
"""Memory that these may take together, besides the largest one: a bulk replay needs it again for each of its files."""

_IN_MEMORY_SECONDS: Final = 5.0
"""How long the index stays in memory after its disk was full, until its file is tried again."""


def create_store(folder: str, disk: Disk) -> None:
    """Create an empty store in the existing, empty `folder`."""
    from objstore.storage.log.applied_marker import reset_applied_marker
    from objstore.storage.log.frames import SEGMENT_HEADER_SIZE
    from objstore.storage.log.segment_files import Place

    segments = os.path.join(folder, LOG_NAME)
    with suppress(FileExistsError):
        disk.make_store_folder(segments)
    create_log(segments, disk)
    reset_applied_marker(folder, Place(1, SEGMENT_HEADER_SIZE), disk)
    disk.sync_directory(folder)


class Store:
    """The log, its index, and recently read blobs. One thread at a time may use it.

    While it follows the log, another index may replace the open one, as when a person has deleted the file. Readers of
    the replaced index can go on using it until `close_replaced_indexes`.
    """

    def __init__(
        self, folder: str, disk: Disk, *, releases_index: bool = False, progress: Progress = ignore_progress
    ) -> None:
        """Open the store in `folder`; `releases_index`: as if `release_index` had been called.

        `progress`: of a rebuild of the index now.

        Raises NotAWorkspace, StoreDamaged, StoreReplaced, DiskFailed, FormatTooNew or FormatTooOld.
        """
        if not is_folder(os.path.join(folder, LOG_NAME)):
            raise NotAWorkspace(os.path.dirname(folder))
        self._log_path: Final = os.path.join(folder, LOG_NAME)
        self._disk: Final = disk
        self._is_doubted = False  # whether the index was found to be damaged
        # By the monotonic clock; None: the index is in its file.
        self._in_memory_until: float | None = math.inf if releases_index else None
        self._replaced: list[Index] = []  # replaced indexes that readers may still use
        self.log: Final = Log(self._log_path, disk)
        try:
            self._index_file: Final = _index_file(folder, self.log)
        except BaseException:
            self.log.close()
            raise
        try:
            self._index = Index(None if releases_index else self._index_file, self.log, progress)
        except BaseException:
            self._index_file.close()
            self.log.close()
            raise
        self._appended: Place | None = None  # the end of the last group that this process has appended
        # The end and the last record of a group that it has appended and the index could not ingest (None: no such
        # group). The index reads it from the log before its next use.
        self._not_ingested: tuple[Place, RecordId | None] | None = None
        self._cache: OrderedDict[BlobId, bytes] = OrderedDict()
        self._cached = 0
        # By id; the replay of each of their files needs them.
        self.large_decisions: Final[dict[RecordId, ReplayDecision]] = {}
        self._largest_decision: ReplayDecision | None = None
        self._decision_bytes = 0  # of the others

    def close(self) -> None:
        """Close the index and the log."""
        self.close_replaced_indexes()
        self._index.close()
        self._index_file.close()
        self.log.close()

    # ---- following the log

    @property
    def index(self) -> Index:
        """Return the index, with everything that this process has appended."""
        if self._not_ingested is not None:
            self._ingest_from_log()
        return self._index

    @property
    def end(self) -> Place:
        """Return the end of the last known group."""
        return self._index.end if self._not_ingested is None else self._not_ingested[0]

    @property
    def last_record(self) -> RecordId | None:
        """Return the last known record (None: no record yet)."""
        return self._index.last_record if self._not_ingested is None else self._not_ingested[1]

    def catch_up(self, *, to_write: bool = False) -> bool:
        """Read what other processes have appended; return whether the log ends there, without an unfinished group.

        `to_write`: also check that the last known record is the log's last, before another one is appended to it.
        Raises StoreDamaged, and StoreReplaced if another store has this log's path, before its index is used.
        """
        try:
            return self._catch_up(to_write=to_write)
        except DatabaseError as error:
            self._go_on_in_memory(error)
            return self._catch_up(to_write=to_write)

    def _ingest_from_log(self) -> None:
        try:
            if self._is_doubted:
                self._open_index()
            else:
                self._index.catch_up()
        except DatabaseError as error:
            self._go_on_in_memory(error)
        self._not_ingested = None

    def _go_on_in_memory(self, error: DatabaseError) -> None:
        """Open the index again after its disk was full, with an index in memory for a while.

        Raises the error if it has another cause. Readers of the replaced index can go on using it.
        """
        if not is_unwritable(error):
            raise error
        self._open_index()
        self._in_memory_until = time.monotonic() + _IN_MEMORY_SECONDS

    @property
    def index_is_released(self) -> bool:
        """Return whether the index is in memory because its disk space was needed."""
        return self._in_memory_until == math.inf

    def release_index(self) -> None:
        """Remove the index files to free disk space, and follow the log in memory until `restore_index` is called."""
        with suppress(OSError):
            self._index_file.remove()
        self._replaced.append(self._index)
        self._index, self._not_ingested = Index(None, self.log), None
        self._is_doubted = False
        self._in_memory_until = math.inf

    def restore_index(self) -> None:
        """Return an index in memory to its file when the log is next followed: the disk may have space again."""
        if self._in_memory_until is not None:
            self._in_memory_until = 0.0

    def doubt_index(self) -> None:
        """Rebuild the index before its next use, because it was found to be damaged or no index at all.

        Also delete the file, as is allowed at any time: otherwise the next process would read the same damaged page.
        """
        self._is_doubted = True
        if self._index.is_there:  # don't delete a file that another process has rebuilt since
            with suppress(OSError):  # the store may be read-only
                self._index_file.remove()

    def _open_index(self) -> None:
        opened = Index(self._index_file, self.log)
        self._replaced.append(self._index)
        self._index, self._not_ingested = opened, None
        self._is_doubted = False

    def close_replaced_indexes(self) -> None:
        """Close the replaced indexes. Call it when no reader uses one of them any more."""
        while self._replaced:
            self._replaced.pop().close()

    def _catch_up(self, *, to_write: bool) -> bool:
        self.log.files.refresh()
        is_over = self._in_memory_until is not None and time.monotonic() > self._in_memory_until
        if is_over or self._is_doubted or not self._index.is_there:
            self._open_index()
            self._in_memory_until = None
        if not self._index.knows_generations:
            self._index.follow_generations()
            self.forget()  # blobs that were removed from the store may have been purged
        if to_write:
            self._index.verify_position()
        else:
            self._index.look()
        if not self.log.ends_at(self._index.end):
            self._index.catch_up()
        self._not_ingested = None  # only now: if the index is busy, the next group must still go after that one
        return self.log.ends_at(self.end)

    @property
    def appended(self) -> Place | None:
        """Return the end of the last group that this process has appended (None: it has appended nothing)."""
        return self._appended

    def is_rewritten_since(self, generations: Mapping[int, int]) -> bool:
        """Return whether a segment was rewritten since these were the generations, as the log's files returned them."""
        self.log.files.refresh(force=True)
        return self.log.files.generations() is not generations

    @property
    def is_unchanged_since_append(self) -> bool:
        """Return whether no one has written to the log since this process appended to it.

        Then its end is durable, and no one cuts it off.
        """
        end = self.end
        if end != self._appended or self._not_ingested is not None or self._is_doubted:
            return False
        with suppress(StoreDamaged):
            # Keep this order: is_as_appended lists the folder, and so updates the generations.
            return self.log.is_as_appended(end) and self._index.knows_generations and self._index.is_there
        return False  # the generation that the log ended in is gone

    @property
    def is_far_behind(self) -> bool:
        """Return whether so much was appended since that no caller should wait until it is read."""
        with suppress(StoreDamaged):
            return self.log.bytes_behind(self.end) > _FEW_BYTES or self.log.files.exists(self.end.segment + 1)
        return True  # the generation that the known log ended in is gone

    @contextmanager
    def second_index(self) -> Iterator[Index | None]:
        """Yield a second index, in memory, of the log as it is now, for `Index.recreate` (None: it can't be built).

        Needs no lock, and other threads may use the store meanwhile.
        """
        from contextlib import ExitStack

        with ExitStack() as opened:
            second = None
            # The caller then rebuilds the index without this one, which reports the same error.
            with suppress(CasError):
                log = opened.enter_context(closing(Log(self._log_path, self._disk)))
                second = opened.enter_context(closing(Index(None, log)))
            yield second

    def _ingest(self, group: Group, records: Sequence[ChainedRecord]) -> None:
        """Let the index ingest the group that was just appended.

        The group is durable in the log, whatever happens. If the index is damaged, or busy for long because another
        process rebuilds it, it reads the group from there before its next use.
        """
        after, is_behind = self.end, self._not_ingested is not None
        self._not_ingested = group.end, records[-1].id if records else self.last_record
        if is_behind:
            return
        try:
            self._index.take(group, records, after)
            self._not_ingested = None
        except SQLITE_ERRORS as error:
            if is_broken(error):
                self.doubt_index()
        except CasError as error:
            if isinstance(error, IndexUnusable | RecordInvalid | StoreDamaged):
                self.doubt_index()  # what this process appended is sound, so the index is not

    # ---- what a writer asks the index

    def _ask_index(self, ask: Callable[[Index], T]) -> T:
        """Return the answer of the index; if the index proves damaged, that of one rebuilt from the log.

        It is for answers that a record depends on: the call continues. Raises what a rebuilt index raises.
        """
        try:
            return ask(self.index)
        except IndexUnusable:
            pass
        except SQLITE_ERRORS as error:
            if not is_broken(error):
                raise
        self.doubt_index()
        self._open_index()
        return ask(self._index)

    def blob_place(self, name: BlobId) -> BlobPlace | None:
        """Return the blob's place (None: not in this store)."""
        return self._ask_index(lambda index: index.blobs.place(name))

    def tip_at(self, path: bytes) -> Tip | None:
        """Return the tip of the document at `path`, or else of the last one deleted there (None: neither)."""
        return self._ask_index(lambda index: index.documents.tip_at(path))

    def tips_in_the_way(self, path: bytes, folders: Sequence[bytes]) -> list[Tip]:
        """Return the tips of all documents that exist at `path`, at one of its folders, or below it as a folder."""
        return self._ask_index(lambda index: index.documents.tips_in_the_way(path, folders))

    def ever_at(self, path: bytes) -> bool:
        """Return whether a document ever had `path`."""
        return self._ask_index(lambda index: index.documents.ever_at(path))

    def paths_below(self, folder: bytes) -> list[bytes]:
        """Return every path below a folder (b"": anywhere) that a document ever had, ascending."""
        return self._ask_index(lambda index: index.documents.paths_below(folder))

    def baseline(self) -> Baseline | None:
        """Return the snapshot that the first scan took by itself (None: it doesn't exist, or was deleted)."""
        return self._ask_index(lambda index: index.holders.baseline())

    def next_seq(self) -> Seq:
        """Return the number of the next edit."""
        return self._ask_index(lambda index: index.numbers.next_seq())

    def next_call(self, conversation: str) -> int:
        """Return the number of the conversation's next call."""
        return self._ask_index(lambda index: index.edits.next_call(conversation))

    def next_turn(self) -> int:
        """Return the number of the next turn."""
        return self._ask_index(lambda index: index.numbers.next_turn())

    def turn_at(self, session: str, conversation: str, time: int) -> int:
        """Return the number of the newest turn of a session and conversation if it began at `time`; 0 otherwise."""
        newest = self._ask_index(lambda index: index.turns.newest_of(session, conversation))
        return newest.number if newest is not None and newest.time == time else 0

    def may_collide(self, session: str) -> bool:
        """Return whether a session other than this one may have pending edits; edits without a turn count as such."""
        # If the index has none of its turns, its number is 0.
        return self._ask_index(lambda index: index.edits.others_are_pending(index.sessions.number(session)))

    # ---- reading

    def has(self, name: BlobId) -> bool:
        """Return whether the blob is stored; a large one, whether all its chunks are.

        A chunk list that nothing holds doesn't hold its chunks, so compaction may have removed them.
        """
        found = self.blob_place(name)
        if found is None or found.size <= MAX_BLOB:
            return found is not None
        try:
            return all(self.blob_place(chunk.id) is not None for chunk in self.chunks(name))
        except (BlobDamaged, StoreDamaged):
            return True  # like any other stored blob that is damaged

    def lacking(self, names: Collection[BlobId]) -> set[BlobId]:
        """Return those of the blobs that are not stored, as `has` says."""
        found = self._ask_index(lambda index: index.blobs.sizes([*names]))
        return {name for name in names if name not in found or (found[name] > MAX_BLOB and not self.has(name))}

    def is_depth_consistent(self, name: BlobId) -> bool:
        """Return whether the blob's depth is reliable: it is greater than its base's."""
        return self._ask_index(lambda index: index.blobs.is_depth_consistent(name))

    def has_row_for(self, name: BlobId) -> bool:
        """Return whether the blob is or was stored: the index keeps the row of a blob that anything mentions."""
        return name in self._cache or self._ask_index(lambda index: index.blobs.has_row(name))

    def blob(self, name: BlobId) -> bytes:
        """Return the blob's bytes, verified.

        Raises BlobMissing, BlobDamaged, StoreDamaged, and BlobTooLarge for a blob that only `pieces` may read.
        """
        cached = self._in_cache(name)
        if cached is not None:
            return cached
        found = self._stored_at(name)
        if found.size > MAX_BLOB:
            raise BlobTooLarge(name, found.size, MAX_BLOB)
        return self._read(name, found.place)

    def size(self, name: BlobId) -> int:
        """Return the blob's size in bytes. Raises BlobMissing."""
        return self._stored_at(name).size

    def _in_cache(self, name: BlobId) -> bytes | None:
        """Return a blob's bytes if they are cached, and keep them for longer."""
        found = self._cache.get(name)
        if found is not None:
            self._cache.move_to_end(name)
        return found

    def _stored_at(self, name: BlobId) -> BlobPlace:
        found = self.blob_place(name)
        if found is None:
            raise BlobMissing(name)
        return found

    def _read(self, name: BlobId, place: Place) -> bytes:
        """Return and cache the bytes of a blob that is not large and not cached, whose place is known."""
        content = self.read_once(name, place)
        self.remember(name, content)
        return content

    def text(self, name: BlobId) -> bytes:
        """Return the text of the blob's state in a weave or diff: its bytes, or its large-file placeholder.

        Raises BlobMissing, BlobDamaged, StoreDamaged.
        """
        content = self._in_cache(name)
        if content is None:
            found = self._stored_at(name)
            if found.size > MAX_BLOB:
                return placeholder(name)
            content = self._read(name, found.place)
        return text_of_state(content, name)

    def pieces(self, name: BlobId) -> Iterator[bytes]:
        """Yield the blob's bytes, whatever its size, each piece verified.

        Raises BlobMissing, BlobDamaged and StoreDamaged; after the last piece, if together they are not the blob.
        """
        content = self._in_cache(name)
        if content is None:
            found = self._stored_at(name)
            content = self._read(name, found.place) if found.size <= MAX_BLOB else None
        if content is not None:
            yield content
            return
        from objstore.storage.log.blob_reader import joined_chunks

        yield from joined_chunks(name, self.chunks(name), self.read_once)

    def chunks(self, name: BlobId) -> tuple[Chunk, ...]:
        """Return the chunks of a large blob. Raises BlobMissing, BlobDamaged, StoreDamaged."""
        from objstore.storage.log.blob_reader import read_chunks

        return read_chunks(name, self.log, self._place_of)

    def read_once(self, name: BlobId, place: Place | None = None) -> bytes:
        """Return the bytes of a blob that is not large, as `blob` does, without caching them.

        `place`: where it is stored, if the caller knows.
        """
        from objstore.storage.log.blob_reader import read_chain

        def place_of(wanted: BlobId) -> Place | None:
            return place if wanted == name and place is not None else self._place_of(wanted)

        with suppress(BlobMissing, BlobDamaged, StoreDamaged):
            return read_chain(name, self.log, place_of, self._cache.get)
        # A compaction may have come between: a frame of the old generation can have a base that is gone by now.
        with self.index.still():
            self.log.files.refresh(force=True)
            return read_chain(name, self.log, self._place_of, self._cache.get)

    def _place_of(self, name: BlobId) -> Place | None:
        found = self.blob_place(name)
        return None if found is None else found.place

    def sha256(self, name: BlobId) -> bytes:
        """Return the SHA-256 of a blob (32 bytes), which is computed once and then stored in the index."""
        known = self.index.blobs.sha256(name)
        if known is None:
            import hashlib

            hasher = hashlib.sha256()
            for piece in self.pieces(name):
                hasher.update(piece)
            known = hasher.digest()
            self.index.remember_sha256([(name, known)])
        return known

    def record(self, place: Place) -> tuple[Record, RecordId]:
        """Return the record at `place` and its id. Raises StoreDamaged."""
        from objstore.model.record_codec import decode_record

        encoded = bytes(self.log.read(place).payload)
        try:
            return decode_record(encoded)[0], record_id(encoded)
        except RecordInvalid as error:
            raise place.damaged(str(error)) from error

    # ---- writing, only under the writer lock

    def append(self, payloads: Sequence[tuple[FrameKind, bytes]], records: Sequence[ChainedRecord] = ()) -> Group:
        """Append a group at the end of the log, durably, and return it. `records`: those in the group, in order."""
        group = self.log.append(self.end, payloads)
        self._ingest(group, records)
        self._appended = group.end
        return group

    def seal(self) -> Place:
        """End the last segment, so that it can be rewritten, and return the start of the next one."""
        end = self.log.seal(self.end)
        self.index.begin_segment(end)
        return end

    def short_decision(self, name: RecordId, place: Place) -> ReplayDecision:
        """Return the part of a decision that a replay needs, which is kept if it is large. Raises StoreDamaged."""
        known = self.large_decisions.get(name)
        if known is not None:
            return known
        from objstore.model.replay_records import replay_decision, replay_fields

        encoded = bytes(self.log.read(place).payload)
        if record_id(encoded) != name:
            raise place.damaged("another record is where the index says")
        decision = replay_decision(replay_fields(encoded))
        self.keep_decision(name, decision)
        return decision

    def keep_decision(self, name: RecordId, decision: ReplayDecision) -> None:
        """Cache a decision if it is so large that the replay of its other files will need it."""
        if decision.size < _LARGE_DECISION:
            return
        self.large_decisions[name] = decision
        largest = self._largest_decision
        if largest is None or largest.bytes_kept < decision.bytes_kept:
            self._largest_decision = decision
            self._decision_bytes += 0 if largest is None else largest.bytes_kept
        else:
            self._decision_bytes += decision.bytes_kept
        while self._decision_bytes > _DECISION_BYTES:
            kept = self.large_decisions.items()
            oldest = next(name for name, each in kept if each is not self._largest_decision)
            self._decision_bytes -= self.large_decisions.pop(oldest).bytes_kept

    def forget(self) -> None:
        """Drop all cached bytes."""
        self._cache.clear()
        self._cached = 0

    def evict(self, name: BlobId) -> None:
        """Drop a blob's cached bytes, which are unlikely to be needed again."""
        self._cached -= len(self._cache.pop(name, b""))

    def cached_bytes(self, name: BlobId) -> bytes | None:
        """Return a blob's bytes if they are cached."""
        return self._cache.get(name)

    def remember(self, name: BlobId, content: bytes) -> None:
        """Cache a blob's bytes for a while."""
        if name in self._cache or len(content) > _CACHE_BYTES // 4:
            return
        self._cache[name] = content
        self._cached += len(content)
        while self._cached > _CACHE_BYTES:
            _, dropped = self._cache.popitem(last=False)
            self._cached -= len(dropped)


def _index_file(folder: str, log: Log) -> IndexFile:
    """Return the file of the index. Raises DiskFailed, and StoreReplaced if the log is not in this folder."""
    try:
        file = IndexFile(os.path.join(folder, INDEX_NAME))
    except OSError as error:
        raise failure(error, folder) from error
    if log.files.is_in(file.folder):
        return file
    file.close()
    raise StoreReplaced(folder)
