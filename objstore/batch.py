"""A batch: blobs and records on their way into the log, together or not at all."""

import time

from objstore.codec import MAX_DEPTH, Base, BlobHeader, encode_blob
from objstore.frames import FrameKind
from objstore.ids import BlobId, RecordId, blob_id, record_id
from objstore.index import Chained
from objstore.lines import Affixes
from objstore.records import Record, encode_record
from objstore.segments import Group
from objstore.store import Store

__all__ = ["Batch", "now"]


def now() -> int:
    """Return the time in microseconds since 1970-01-01 UTC."""
    return time.time_ns() // 1000


class Batch:
    """Blobs and records that go into the log together, or not at all."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._payloads: list[tuple[FrameKind, bytes]] = []
        self._blobs: dict[BlobId, Base] = {}
        self._headers: list[BlobHeader] = []
        self._records: list[Chained] = []
        self._previous = store.last_record

    def __bool__(self) -> bool:
        """Return whether there is anything to append."""
        return bool(self._payloads)

    def blob(
        self,
        content: bytes,
        base: BlobId | None = None,
        *,
        name: BlobId | None = None,
        affixes: Affixes | None = None,
    ) -> BlobId:
        """Add a blob, unless the store has it, and return its id.

        `base`: a blob that it may resemble. `name`: its id, and `affixes`: what it shares with the base, where the
        caller has worked them out from these very bytes.
        """
        name = blob_id(content) if name is None else name
        if name in self._blobs or self._store.has(name):
            return name
        header, payload = encode_blob(content, self._base(base), name=name, affixes=affixes)
        self._payloads.append((FrameKind.BLOB, payload))
        self._headers.append(header)
        self._blobs[name] = Base(id=name, content=content, depth=header.depth)
        return name

    def record(self, record: Record) -> RecordId:
        """Add a record behind the last one, and return its id."""
        encoded = encode_record(record, self._previous)
        name = record_id(encoded)
        self._payloads.append((FrameKind.RECORD, encoded))
        self._records.append(Chained(record, name, self._previous))
        self._previous = name
        return name

    def content(self, name: BlobId) -> bytes:
        """Return the bytes of a blob, of this batch or of the store. Raises what Store.blob raises."""
        base = self._blobs.get(name)
        return self._store.blob(name) if base is None else base.content

    def commit(self) -> Group:
        """Append everything durably and return it as a group. Raises what Log.append raises."""
        group = self._store.append(self._payloads, self._headers, self._records)
        for name, base in self._blobs.items():
            self._store.remember(name, base.content)
        return group

    def _base(self, name: BlobId | None) -> Base | None:
        if name is None:
            return None
        if name in self._blobs:
            return self._blobs[name]
        found = self._store.blob_place(name)
        if found is None or found.depth >= MAX_DEPTH:
            return None
        return Base(id=name, content=self._store.blob(name), depth=found.depth)
