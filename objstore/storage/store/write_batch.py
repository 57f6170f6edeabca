"""Collect blobs and records and append them to the log together or not at all.

The chunks of large blobs are appended before, in groups of their own, because all of them would take too much memory.
Nothing names them until the list of chunks is appended; if it never is, they are garbage, or save the next attempt
work.
"""

from collections.abc import Collection, Iterator

from objstore.disk.fs.content_source import Source
from objstore.model.basic_types import FileState
from objstore.model.ids import BlobId, RecordId, blob_id, record_id
from objstore.model.large_file_placeholder import MAX_BLOB, blob_of_placeholder, is_placeholder, placeholder
from objstore.model.record_codec import encode_record
from objstore.model.records import Decision, Edit, Record
from objstore.storage.index.database import malformed
from objstore.storage.index.rows import ChainedRecord
from objstore.storage.log.blob_codec import MAX_DEPTH, WORTH_AT_ONCE, Base, encode_blob
from objstore.storage.log.frames import FrameKind
from objstore.storage.log.segments import Group
from objstore.storage.store.object_store import Store
from objstore.text.lines import Affixes
from objstore.values.clock import now
from objstore.values.errors import UNREADABLE, BlobMissing

__all__ = ["Batch", "now"]


class Batch:
    """Blobs and records that are appended to the log together or not at all."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._payloads: list[tuple[FrameKind, bytes]] = []
        self._blobs: dict[BlobId, Base] = {}
        self._records: list[ChainedRecord] = []
        self._large: dict[BlobId, tuple[Source, BlobId | None]] = {}  # large blobs, each with one it may resemble
        self._lacking: set[BlobId] = set()  # blobs that the store was found to lack
        self._previous = store.last_record

    def __bool__(self) -> bool:
        """Return whether there is anything to append."""
        return bool(self._payloads or self._large)

    @property
    def has_records(self) -> bool:
        """Return whether any record is to be appended."""
        return bool(self._records)

    def blob(
        self,
        content: bytes,
        base: BlobId | None = None,
        *,
        name: BlobId | None = None,
        affixes: Affixes | None = None,
    ) -> BlobId:
        """Add a blob of at most MAX_BLOB bytes, unless the store has it, and return its id.

        `base`: a blob that it may resemble. `name`: its id, and `affixes`: the lengths that it shares with the base, if
        the caller has computed them from these very bytes.
        """
        name = blob_id(content) if name is None else name
        if name in self._blobs or (name not in self._lacking and self._store.has(name)):
            return name
        header, payload = encode_blob(content, self._base(base), name=name, affixes=affixes, worth=WORTH_AT_ONCE)
        self._payloads.append((FrameKind.BLOB, payload))
        self._blobs[name] = Base(id=name, content=content, depth=header.depth)
        return name

    def look_up(self, names: Collection[BlobId]) -> None:
        """Look up at once which of many blobs the store has; adding each then takes less time."""
        self._lacking |= self._store.lacking(names)

    def state(
        self,
        text: bytes,
        base: BlobId | None = None,
        *,
        name: BlobId | None = None,
        affixes: Affixes | None = None,
        source: Source | None = None,
    ) -> BlobId:
        """Add the blob of the state that has this text, as `blob` does, and return its id.

        `source`: for a placeholder, where to read the bytes when the batch is committed. Raises BlobMissing for a
        placeholder without a source whose blob is not stored.
        """
        if not is_placeholder(text):
            return self.blob(text, base, name=name, affixes=affixes)
        name = blob_of_placeholder(text)
        if name in self._blobs or name in self._large or self._store.has(name):
            return name
        if source is None:
            raise BlobMissing(name)
        self._large[name] = source, base
        return name

    def record(self, record: Record) -> RecordId:
        """Add a record after the last one, and return its id.

        The blobs that the record's files held before must be in this batch or have a row in the index, if only as lost
        ones. Otherwise the index reports a state that never was, and this raises the error that SQLite raises for a
        damaged file.
        """
        for state in _states_before_record(record):
            blob = state.blob
            if blob not in self._blobs and blob not in self._large and not self._store.has_row_for(blob):
                raise malformed(f"a file's state before is blob {blob.hex()}, which the index doesn't have")
        encoded = encode_record(record, self._previous)
        name = record_id(encoded)
        self._payloads.append((FrameKind.RECORD, encoded))
        self._records.append(ChainedRecord(record, name, self._previous))
        self._previous = name
        return name

    def content(self, name: BlobId) -> bytes:
        """Return the bytes of a blob of this batch or of the store. Raises what Store.blob raises."""
        base = self._blobs.get(name)
        return self._store.blob(name) if base is None else base.content

    def text(self, name: BlobId) -> bytes:
        """Return the text of a state of this batch or of the store. Raises what Store.text raises."""
        if name in self._large:
            return placeholder(name)
        base = self._blobs.get(name)
        return self._store.text(name) if base is None else base.content

    def pieces(self, name: BlobId) -> Iterator[bytes]:
        """Yield the bytes of a blob of this batch or of the store. Raises what Source.pieces and Store.pieces raise."""
        if name in self._large:
            yield from self._large[name][0].pieces()
        elif name in self._blobs:
            yield self._blobs[name].content
        else:
            yield from self._store.pieces(name)

    def cached_bytes(self, name: BlobId) -> bytes | None:
        """Return the bytes of a blob of this batch or of the store, if they are in memory."""
        base = self._blobs.get(name)
        return self._store.cached_bytes(name) if base is None else base.content

    def commit(self) -> Group:
        """Append everything durably and return it as a group.

        Raises what Log.append raises, and FileChanged if a large file has changed.
        """
        for name, (source, base) in self._large.items():
            self._store_large(name, source, base)
        group = self._store.append(self._payloads, self._records)
        for name, known in self._blobs.items():
            self._store.remember(name, known.content)
        return group

    def _store_large(self, name: BlobId, source: Source, base: BlobId | None) -> None:
        from objstore.storage.store.large_blob_writer import store_large_blob

        _, payloads = store_large_blob(self._store, name, source, base)
        self._payloads[:0] = [(FrameKind.BLOB, payload) for payload in payloads]

    def _base(self, name: BlobId | None) -> Base | None:
        if name is None:
            return None
        if name in self._blobs:
            return self._blobs[name]
        found = self._store.blob_place(name)
        if (
            found is None
            or found.depth >= MAX_DEPTH
            or found.size > MAX_BLOB
            or not self._store.is_depth_consistent(name)
        ):
            return None
        try:
            return Base(id=name, content=self._store.blob(name), depth=found.depth)
        except UNREADABLE:
            return None  # a base only saves space


def _states_before_record(record: Record) -> list[FileState]:
    """Return the states that the record's files had before it, according to the index."""
    match record:
        case Edit():
            states = [record.before]
        case Decision():
            states = [written.before for written in record.written]
        case _:
            states = []
    return [state for state in states if state is not None]
