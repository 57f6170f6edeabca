"""The store: the log, its index, and blobs by name. It knows nothing of the user's files.

What decodes blobs and records is imported where they are read: a status reads neither.
"""

from __future__ import annotations

import math
import os
import time
from collections import OrderedDict
from contextlib import closing, contextmanager, suppress
from sqlite3 import DatabaseError
from typing import TYPE_CHECKING, Final

from objstore.errors import (
    BlobDamaged,
    BlobMissing,
    BlobTooLarge,
    CasError,
    IndexUnusable,
    NotAWorkspace,
    RecordInvalid,
    StoreDamaged,
)
from objstore.fs.disk import is_folder
from objstore.fs.reserved_names import INDEX_NAME, LOG_NAME
from objstore.index.database import SQLITE_ERRORS, is_broken, is_unwritable, remove_index
from objstore.index.log_index import NAMELESS, Index
from objstore.log.segments import Group, Log, create_log
from objstore.model.ids import BlobHasher, BlobId, RecordId, record_id
from objstore.model.large_file_placeholder import MAX_BLOB, placeholder, text_of_state
from objstore.store.unindexed import UnindexedGroups

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import TypeVar

    T = TypeVar("T")

    from objstore.fs.disk import Disk
    from objstore.index.rows import Baseline, BlobPlace, ChainedRecord, Tip
    from objstore.log.blob_codec import BlobHeader
    from objstore.log.chunking import Chunk
    from objstore.log.frames import FrameKind
    from objstore.log.segment_files import Place
    from objstore.model.basic_types import Seq
    from objstore.model.records import Record
    from objstore.model.replay_records import ReplayDecision

__all__ = ["Store", "create_store"]

_CACHE_BYTES: Final = 32 << 20
_FEW_BYTES: Final = 1 << 15
"""Bytes of the log that may be read under the writer lock: a few milliseconds."""

_LARGE_DECISION: Final = 64
"""Verdicts from which on a decision is kept at hand."""

_DECISIONS_KEPT: Final = 8

_IN_MEMORY_SECONDS: Final = 5.0
"""How long the index stays in memory when its disk was full, until it is tried again."""


def create_store(folder: str, disk: Disk) -> None:
    """Make an empty store in the existing, empty `folder`."""
    segments = os.path.join(folder, LOG_NAME)
    with suppress(FileExistsError):
        disk.make_store_folder(segments)
    create_log(segments, disk)
    disk.sync_directory(folder)


class Store:
    """The log, its index, and what was read lately. One thread may ask it at a time.

    When it follows the log, another index may come in the place of the one that was open, as where somebody has deleted
    that. Whoever was asking it goes on with it, until `close_left`.
    """

    def __init__(self, folder: str, disk: Disk, *, releases_index: bool = False) -> None:
        """Open the store in `folder`; `releases_index`: as if `release_index` had been called.

        Raises NotAWorkspace, StoreDamaged or FormatTooNew.
        """
        if not is_folder(os.path.join(folder, LOG_NAME)):
            raise NotAWorkspace(os.path.dirname(folder))
        self._log_path: Final = os.path.join(folder, LOG_NAME)
        self._disk: Final = disk
        self.log: Final = Log(self._log_path, disk)
        self._ahead = UnindexedGroups()
        self._is_doubted = False  # whether the index was found to be none
        # By the monotonic clock; None: the index is in its file.
        self._in_memory_until: float | None = math.inf if releases_index else None
        self._left: list[Index] = []  # indexes in whose place came others, while somebody may still ask them
        try:
            self._index_path: Final = os.path.join(folder, INDEX_NAME)
            self._index = Index(NAMELESS if releases_index else self._index_path, self.log)
        except BaseException:
            self.log.close()
            raise
        self._appended: Place | None = None  # the end of the last group that this process has appended
        self._cache: OrderedDict[BlobId, bytes] = OrderedDict()
        self._cached = 0
        # By id; each of their files is replayed with them.
        self.large_decisions: Final[dict[RecordId, ReplayDecision]] = {}

    def close(self) -> None:
        """Close the index and the log."""
        with suppress(CasError):  # the index of a store that took the place of this one is not for what this one has
            self._see_log()
            self._put_in_if_possible()
        self.close_left()
        self._index.close()
        self.log.close()

    # ---- following the log

    @property
    def index(self) -> Index:
        """Return the index, with everything in it that this process has appended."""
        self.flush()
        return self._index

    @property
    def end(self) -> Place:
        """Return the end of the last group that is known."""
        return self._ahead.end or self._index.end

    @property
    def last_record(self) -> RecordId | None:
        """Return the last record that is known (None: there is none yet)."""
        return self._ahead.last_record or self._index.last_record

    def catch_up(self, *, to_write: bool = False) -> bool:
        """Read what other processes have appended; return whether the log ends there, with nothing unfinished behind.

        `to_write`: see besides that the last record that is known is that of the log, before another is put behind it.
        Raises StoreDamaged, and StoreReplaced before the index of another store is taken for the one of this log.
        """
        try:
            return self._caught_up(to_write=to_write)
        except DatabaseError as error:
            self._go_on_in_memory(error)
            return self._caught_up(to_write=to_write)

    def _go_on_in_memory(self, error: DatabaseError) -> None:
        """Open the index again where there is no room for what it takes in: then it is kept in memory for a while.

        Raises the error if it is another one. Whoever asks the index that was open may go on with that.
        """
        if not is_unwritable(error):
            raise error
        self._open_index()
        self._in_memory_until = time.monotonic() + _IN_MEMORY_SECONDS

    @property
    def index_is_released(self) -> bool:
        """Return whether the index is kept in memory because its room was needed."""
        return self._in_memory_until == math.inf

    def release_index(self) -> None:
        """Remove the index files to make room, and follow the log in memory until `restore_index` is called."""
        with suppress(OSError):
            remove_index(self._index_path)
        self._left.append(self._index)
        self._index, self._ahead = Index(NAMELESS, self.log), UnindexedGroups()  # all of it is in the log
        self._is_doubted = False
        self._in_memory_until = math.inf

    def restore_index(self) -> None:
        """Let an index that is kept in memory go back to its file at the next look: the disk may have room again."""
        if self._in_memory_until is not None:
            self._in_memory_until = 0.0

    def doubt_index(self) -> None:
        """Have the index made anew before it is asked the next time: it was found to be damaged, or none.

        The file goes, as it may at any moment: else the next process would come to the same page.
        """
        self._is_doubted = True
        if self._index.is_there:  # and not one that another process has made since
            with suppress(OSError):  # a store that may only be read
                remove_index(self._index_path)

    def _open_index(self) -> None:
        opened = Index(self._index_path, self.log)
        self._left.append(self._index)
        self._index, self._ahead = opened, UnindexedGroups()  # all of it is in the log
        self._is_doubted = False

    def close_left(self) -> None:
        """Close the indexes in whose place came others. Call it when nobody asks one of them any more."""
        while self._left:
            self._left.pop().close()

    def _caught_up(self, *, to_write: bool) -> bool:
        self._see_log()
        is_over = self._in_memory_until is not None and time.monotonic() > self._in_memory_until
        if is_over or self._is_doubted or not self._index.is_there:
            self._open_index()
            self._in_memory_until = None
        if not self._index.knows_generations:
            self.index.follow_generations()
            self.forget()  # what went from the store may have been meant to go for good
        if to_write:
            self._index.verify_position(self._appended)
        else:
            self._index.look()
        if self.log.ends_at(self.end):
            return True
        self.index.catch_up()
        return self.log.ends_at(self.end)

    def _see_log(self) -> None:
        """Look at the log, and forget what is ahead of the index if that is not in it. Raises StoreReplaced."""
        self.log.refresh()
        if self._ahead.groups and not self.log.has(self._ahead.groups[-1][0]):
            self._ahead, self._appended = UnindexedGroups(), None  # an older log was put into the same file

    @property
    def is_as_left(self) -> bool:
        """Return whether nobody has written to the log since this process appended to it.

        Then its end is durable, and nobody cuts it off.
        """
        end = self.end
        if end != self._appended or self._is_doubted:
            return False
        with suppress(StoreDamaged):
            # Asking where the log ends looks at the folder, and so at the generations.
            return self.log.is_as_appended(end) and self._index.knows_generations and self._index.is_there
        return False  # it ended in a generation that has gone

    @property
    def is_far_behind(self) -> bool:
        """Return whether so much was appended since that nobody should have to wait until it is read."""
        with suppress(StoreDamaged):
            return self.log.bytes_behind(self.end) > _FEW_BYTES or self.log.exists(self.end.segment + 1)
        return True  # it is of a generation that has gone

    @contextmanager
    def index_beside(self) -> Iterator[Index | None]:
        """Give an index of its own of what the log says now, for `Index.make_anew` (None: it is not to be had).

        No lock is needed, and other threads may use the store meanwhile.
        """
        from contextlib import ExitStack

        with ExitStack() as opened:
            beside = None
            # Whatever is wrong shows again to who makes the index anew without this one.
            with suppress(CasError):
                log = opened.enter_context(closing(Log(self._log_path, self._disk)))
                beside = opened.enter_context(closing(Index(NAMELESS, log)))
            yield beside

    def flush(self) -> None:
        """Put into the index what this process has appended since it last did; into one in memory if it has no room."""
        if self._is_doubted and self._ahead.groups:
            self._open_index()  # which reads them from the log
        try:
            self._put_in()
        except DatabaseError as error:
            self._go_on_in_memory(error)

    def _put_in(self, within: float | None = None) -> None:
        """Do as `flush`, as far as there is room.

        `within`: how many seconds to wait where somebody else is changing the index (None: as long as is usual).
        """
        if self._ahead.groups:
            self._index.take(self._ahead.groups, within=within)
            self._ahead = UnindexedGroups()

    def _put_in_if_possible(self, within: float | None = None) -> None:
        # What is durable in the log is done, whatever becomes of the index: who next needs that, reads the log on.
        try:
            self._put_in(within)
        except SQLITE_ERRORS as error:
            if is_broken(error):
                self.doubt_index()
        except CasError as error:
            if isinstance(error, IndexUnusable | RecordInvalid | StoreDamaged):
                self.doubt_index()  # for what this process has appended is sound; all else shows again

    # ---- what a write asks for; where all that is ahead is plain edits, the index need not be up to date

    def _sound(self, ask: Callable[[Index], T]) -> T:
        """Return what the index says; where that shows it to be damaged, what one says that is rebuilt from the log.

        For what goes into a record: the call goes on. Raises what a rebuilt index raises.
        """
        try:
            return ask(self._index)
        except IndexUnusable:
            pass
        except SQLITE_ERRORS as error:
            if not is_broken(error):
                raise
        self.doubt_index()
        self._open_index()
        return ask(self._index)

    def blob_place(self, name: BlobId) -> BlobPlace | None:
        """Return where the blob lies (None: not in this store)."""
        return self._ahead.blobs.get(name) or self._sound(lambda index: index.blobs.place(name))

    def tip_at(self, path: bytes) -> Tip | None:
        """Return the document that stands at `path`, or else the one that was last deleted there (None: neither)."""
        return self._answerable_unindexed.tips.get(path) or self._sound(lambda index: index.documents.tip_at(path))

    def tips_in_the_way(self, path: bytes, folders: Sequence[bytes]) -> list[Tip]:
        """Return every existing document at `path`, at one of its folders, or below it as if it were a folder."""
        ahead = self._answerable_unindexed.tips
        found = {tip.path: tip for tip in self._sound(lambda index: index.documents.tips_in_the_way(path, folders))}
        places = {path, *folders}
        found |= {at: tip for at, tip in ahead.items() if at in places or at.startswith(path + b"/")}
        return [tip for tip in found.values() if tip.state is not None]

    def ever_at(self, path: bytes) -> bool:
        """Return whether a document ever stood at `path`."""
        return path in self._answerable_unindexed.tips or self._sound(lambda index: index.documents.ever_at(path))

    def paths_below(self, folder: bytes) -> list[bytes]:
        """Return every path below a folder (b"": anywhere) where a document ever stood, ascending."""
        self.flush()
        return self._sound(lambda index: index.documents.paths_below(folder))

    def baseline(self) -> Baseline | None:
        """Return the snapshot that the first look took by itself (None: there is none, or none any more)."""
        if not self._ahead.is_plain:
            self.flush()  # a snapshot may be among it
        return self._sound(lambda index: index.holders.baseline())

    def next_seq(self) -> Seq:
        """Return the number of the next edit."""
        return self._answerable_unindexed.seq or self._sound(lambda index: index.numbers.next_seq())

    def next_call(self, conversation: str) -> int:
        """Return the position that the conversation's next call has."""
        known = self._answerable_unindexed.calls.get(conversation)
        return self._sound(lambda index: index.edits.next_call(conversation)) if known is None else known

    @property
    def _answerable_unindexed(self) -> UnindexedGroups:
        """Return what is ahead of the index, if that can answer for it; else the index has to take it in.

        That may have failed when it was appended. A number that is given twice would make the log unreadable.
        """
        if not self._ahead.is_plain:
            self.flush()
        return self._ahead

    # ---- reading

    def has(self, name: BlobId) -> bool:
        """Return whether the blob is stored; a large one, with all its chunks.

        Nobody holds those for a list of them that nothing holds, and so a sweep may have taken them.
        """
        found = self.blob_place(name)
        if found is None or found.size <= MAX_BLOB:
            return found is not None
        try:
            return all(self.blob_place(chunk.id) is not None for chunk in self.chunks(name))
        except (BlobDamaged, StoreDamaged):
            return True  # as any other that is stored and damaged

    def is_depth_consistent(self, name: BlobId) -> bool:
        """Return whether what is told of a blob's depth can be relied on: it lies deeper than its base."""
        return name in self._ahead.blobs or self._sound(lambda index: index.blobs.is_depth_consistent(name))

    def has_row_for(self, name: BlobId) -> bool:
        """Return whether the blob is stored, or was: whatever mentions it keeps its row."""
        return name in self._cache or name in self._ahead.blobs or self._sound(lambda index: index.blobs.has_row(name))

    def blob(self, name: BlobId) -> bytes:
        """Return the blob's bytes, verified.

        Raises BlobMissing, BlobDamaged, StoreDamaged, and BlobTooLarge for one that is only to be read by `pieces`.
        """
        cached = self._cache.get(name)
        if cached is not None:
            self._cache.move_to_end(name)
            return cached
        if self.size(name) > MAX_BLOB:
            raise BlobTooLarge(name, self.size(name), MAX_BLOB)
        content = self.read_once(name)
        self.remember(name, content)
        return content

    def size(self, name: BlobId) -> int:
        """Return how many bytes the blob has. Raises BlobMissing."""
        found = self.blob_place(name)
        if found is None:
            raise BlobMissing(name)
        return found.size

    def text(self, name: BlobId) -> bytes:
        """Return what stands for the blob's state in a weave and in a diff: its bytes, or its stand-in.

        Raises BlobMissing, BlobDamaged, StoreDamaged.
        """
        return placeholder(name) if self.size(name) > MAX_BLOB else text_of_state(self.blob(name), name)

    def pieces(self, name: BlobId) -> Iterator[bytes]:
        """Yield the blob's bytes, whatever their number, each piece verified.

        Raises BlobMissing, BlobDamaged and StoreDamaged; after the last piece, if together they are not the blob.
        """
        if self.size(name) <= MAX_BLOB:
            yield self.blob(name)
            return
        hasher = BlobHasher()
        for chunk in self.chunks(name):
            content = self.read_once(chunk.id)
            if len(content) != chunk.size:
                raise BlobDamaged(name, "a chunk has another size than it says")
            hasher.update(content)
            yield content
        if hasher.blob_id() != name:
            raise BlobDamaged(name, "its bytes do not hash to its name")

    def chunks(self, name: BlobId) -> tuple[Chunk, ...]:
        """Return the chunks that a large blob consists of. Raises BlobMissing, BlobDamaged, StoreDamaged."""
        from objstore.log.blob_reader import read_chunks

        return read_chunks(name, self.log, self._place_of)

    def read_once(self, name: BlobId) -> bytes:
        """Return the bytes of a blob that is not large, as `blob` does, without keeping them at hand."""
        from objstore.log.blob_reader import read_chain

        return read_chain(name, self.log, self._place_of, self._cache.get)

    def _place_of(self, name: BlobId) -> Place | None:
        found = self.blob_place(name)
        return None if found is None else found.place

    def sha256(self, name: BlobId) -> bytes:
        """Return the SHA-256 of a blob (32 bytes), worked out once."""
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

    def append(
        self, payloads: Sequence[tuple[FrameKind, bytes]], blobs: Sequence[BlobHeader], records: Sequence[ChainedRecord]
    ) -> Group:
        """Append a group at the end of the log, durably, and return it. `blobs`, `records`: those in it, in order."""
        group = self.log.append(self.end, payloads)
        self._ahead.note(group, blobs, records)
        self._appended = group.end
        if self._ahead.is_full:
            self._put_in_if_possible(0.0 if self._ahead.may_defer_indexing else None)
        return group

    def seal(self) -> Place:
        """End the last segment, so that it can be written anew, and return where the next one begins."""
        end = self.log.seal(self.end)
        self.index.begin_segment(end)
        return end

    def keep_decision(self, name: RecordId, decision: ReplayDecision) -> None:
        """Keep a decision at hand if it is on so many edits that its other files will ask for it."""
        if decision.size >= _LARGE_DECISION:
            while len(self.large_decisions) >= _DECISIONS_KEPT:
                del self.large_decisions[next(iter(self.large_decisions))]
            self.large_decisions[name] = decision

    def forget(self) -> None:
        """Drop the bytes that are kept at hand."""
        self._cache.clear()
        self._cached = 0

    def let_go(self, name: BlobId) -> None:
        """Drop a blob's bytes: they are not likely to be asked for again."""
        self._cached -= len(self._cache.pop(name, b""))

    def cached_bytes(self, name: BlobId) -> bytes | None:
        """Return a blob's bytes if they are kept at hand."""
        return self._cache.get(name)

    def remember(self, name: BlobId, content: bytes) -> None:
        """Keep a blob's bytes at hand for a while."""
        if name in self._cache or len(content) > _CACHE_BYTES // 4:
            return
        self._cache[name] = content
        self._cached += len(content)
        while self._cached > _CACHE_BYTES:
            _, dropped = self._cache.popitem(last=False)
            self._cached -= len(dropped)
