"""Read one document's records, and what its file was after each, in bulk for a replay.

Records are read as the index lists them: it checked them in full at ingest, under ids that are compared here. A state
is read as its difference from the state before it, as its frame encodes it, without building or hashing it: a replay
compares the last state, and every frame on the way has its own checksum.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from objstore.model.basic_types import DocumentId, FileState, Seq
from objstore.model.ids import RecordId, record_id
from objstore.model.large_file_placeholder import MAX_BLOB, PREFIX, is_placeholder
from objstore.model.replay_records import ReplayDecision, ReplayEdit, replay_decision, replay_edit, replay_fields
from objstore.storage.log.blob_codec import (
    BlobHeader,
    Encoding,
    dictionary_span,
    expand_middle,
    expand_part,
    parse_blob_header,
)
from objstore.storage.log.frames import FrameKind
from objstore.storage.log.segment_files import Place
from objstore.storage.log.segments import ReadAhead
from objstore.storage.store.object_store import Store
from objstore.text.hunks import Hunk
from objstore.text.splice import Splice
from objstore.values.errors import BlobDamaged, StoreDamaged
from objstore.weave.document import Document
from objstore.weave.line_weave import Weave

__all__ = ["DocumentRecord", "StateReader", "records_of"]


class DocumentRecord(NamedTuple):
    """A record, and for an edit the place of the blob that it led to (None: not an edit, or the file was deleted)."""

    record: ReplayEdit | ReplayDecision
    id: RecordId
    blob: Place | None


def records_of(
    store: Store, document: DocumentId, *, after_edit: int = 0, after_decision: int = 0
) -> Iterator[DocumentRecord]:
    """Yield the document's edits and the decisions on them with higher numbers, in order. Raises StoreDamaged."""
    ahead = ReadAhead(store.log)
    state: FileState | None = None  # the state after the last edit, which is usually the state before the next
    for place, name, blob in store.index.history.recorded(
        document, after_edit=after_edit, after_decision=after_decision
    ):
        known = store.large_decisions.get(name)
        if known is not None:
            yield DocumentRecord(known, name, blob)
            continue
        encoded = ahead.payload(place, FrameKind.RECORD)
        if record_id(encoded) != name:
            raise place.damaged("another record is where the index says")
        fields = replay_fields(encoded)
        match fields.get("kind"):
            case "edit":
                edit = replay_edit(fields, state)
                state = edit.after
                yield DocumentRecord(edit, name, blob)
            case "decision":
                decision = replay_decision(fields)
                store.keep_decision(name, decision)
                yield DocumentRecord(decision, name, blob)
            case _:
                raise place.damaged("no edit and no decision is where the index says")


class StateReader:
    """Reads the state of a file after each of some edits, requested in order."""

    def __init__(self, store: Store, places: Mapping[Seq, Place]) -> None:
        """Take the places of the blobs that edits led to; a state without a place is read and checked by its hash."""
        self._store = store
        self._places = places
        self._ahead = ReadAhead(store.log)

    def after(self, edit: ReplayEdit, before: Document) -> bytes | Splice | None:
        """Return the text after the edit (None: no file), or the edit's change to the text before, unchecked.

        Raises what Store.text raises.
        """
        if edit.after is None:
            return None
        return self._from_frame(edit, before) or self._store.text(edit.after.blob)

    def _from_frame(self, edit: ReplayEdit, before: Document) -> bytes | Splice | None:
        """Return what the frame of a state says about it; None if the state must be read and checked by its hash."""
        place = self._places.get(edit.seq)
        if place is None or edit.before is None or edit.after is None or before.is_large or before.has_forms():
            return None
        if any(edit.forms):
            return None
        if edit.before.blob == edit.after.blob:
            return before.text()
        try:
            payload = self._ahead.payload(place, FrameKind.BLOB)
            header = parse_blob_header(payload)
            if header.id != edit.after.blob or header.size > MAX_BLOB:
                return None
            if header.base is None:
                # Reading only what the hunks insert would miss that the last line lost its newline.
                splice = None if edit.changes_whole else _from_keyframe(header, payload, edit.hunks, before.weave)
            elif header.base == edit.before.blob:
                splice = _from_delta(header, payload, before.weave)
            else:
                splice = None
        except (BlobDamaged, StoreDamaged, ValueError):
            return None
        return None if splice is None or _makes_placeholder(splice, before.weave) else splice


def _from_delta(header: BlobHeader, payload: bytes, before: Weave) -> Splice | None:
    size = before.byte_count()
    if header.prefix + header.suffix > size:
        return None
    dictionary = b""
    if header.encoding is Encoding.DELTA_ZSTD:
        dictionary = before.between(*dictionary_span(header, size))
    return Splice(header.prefix, size - header.suffix, expand_middle(header, payload, dictionary))


def _from_keyframe(header: BlobHeader, payload: bytes, hunks: Sequence[Hunk], before: Weave) -> Splice | None:
    """Return the change of the hunks' lines; the part of the keyframe after them is not even read."""
    if not hunks or before.has_endings:
        return None
    low, old = before.passage(hunks[0].old_start, hunks[-1].old_end - hunks[0].old_start)
    high = low + len(old)
    behind = before.byte_count() - high
    if header.size < low + behind:
        return None
    return Splice(low, high, expand_part(header, payload, low, header.size - behind))


def _makes_placeholder(splice: Splice, before: Weave) -> bool:
    """Return whether the text would be taken for a placeholder."""
    if splice.start >= len(PREFIX):
        return False  # it begins like the text before, which is not a placeholder
    start = before.between(0, splice.start) + splice.middle[: len(PREFIX)]
    return is_placeholder(start + before.between(splice.end, splice.end + len(PREFIX)))
