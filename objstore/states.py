"""States: one document's records and what its file was after each, read in bulk for a replay.

Records are read as the index has them: it took them in when they were checked in full, under ids that are compared
here. A state is told from the one before it, as its frame tells it, and not hashed: whoever replays a history compares
the last state of it, and every frame on the way carries its own checksum.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from objstore.codec import expand_blob, parse_blob_header
from objstore.errors import BlobDamaged, StoreDamaged
from objstore.ids import BlobId, RecordId, record_id
from objstore.lines import NOTHING_SHARED, Affixes
from objstore.records import Edit, Record, read_record
from objstore.standins import MAX_BLOB, is_stand_in
from objstore.store import Store
from objstore.terms import DocumentId

if TYPE_CHECKING:
    from objstore.indexrows import BlobPlace

__all__ = ["States", "records_of"]


def records_of(
    store: Store, document: DocumentId, *, after_edit: int = 0, after_decision: int = 0
) -> Iterator[tuple[Record, RecordId]]:
    """Yield the document's edits and the decisions on them with higher numbers, in order. Raises StoreDamaged."""
    for place, name in store.index.recorded(document, after_edit=after_edit, after_decision=after_decision):
        encoded = bytes(store.log.read(place).payload)
        if record_id(encoded) != name:
            raise StoreDamaged(*place, "another record lies where the index says")
        yield read_record(encoded), name


class States:
    """What a file was after each of some edits, asked for in their order."""

    def __init__(self, store: Store, edits: Iterable[Edit]) -> None:
        self._store = store
        wanted = [edit.after.blob for edit in edits if edit.after is not None]
        self._places: dict[BlobId, BlobPlace] = store.index.blob_places(wanted)

    def after(self, edit: Edit, before: bytes | None) -> tuple[bytes | None, Affixes]:
        """Return the text after the edit (None: no file), and how much it is known to share with the one before.

        `before`: the text before the edit, which is believed. Raises what Store.text raises.
        """
        if edit.after is None:
            return None, NOTHING_SHARED
        told = None if before is None or edit.before is None else self._told(edit.before.blob, edit.after.blob, before)
        return told or (self._store.text(edit.after.blob), NOTHING_SHARED)

    def _told(self, base: BlobId, name: BlobId, before: bytes) -> tuple[bytes, Affixes] | None:
        """Return the text as its frame tells it from `before` (None: it tells it otherwise)."""
        found = self._places.get(name)
        if found is None or found.size > MAX_BLOB or not found.depth or is_stand_in(before):
            return None
        payload = self._store.log.read(found.place).payload
        header = parse_blob_header(payload)
        if header.id != name or header.base != base:
            return None
        try:
            content = expand_blob(header, payload, before)
        except BlobDamaged:
            return None  # whoever reads it with its hash says what is wrong
        return None if is_stand_in(content) else (content, Affixes(header.prefix, header.suffix))
