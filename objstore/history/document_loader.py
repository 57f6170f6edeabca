"""Replay: a document as the journal makes it, from its last kept state on where that fits.

Replaying reads every state that a file ever had. So the document is kept now and then, in `.cas/cache/`, as it stood
after a certain edit and a certain decision. Kept states are derived: they may be deleted at any moment, and one is
believed only if it is whole, if the journal still holds the very records that it stands behind, and if what is
replayed on top of it ends in the recorded state. A record's id covers all records before it, so two ids pin the past.
"""

import gc
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from struct import error as StructError  # noqa: N812 - as classes are named
from typing import TYPE_CHECKING, Final, NamedTuple

from objstore.errors import CasError, HistoryBroken, StoreLinked, StoreNotRegular
from objstore.fs.nofollow import open_store_folder, read_store_file, write_derived_file
from objstore.fs.reserved_names import STORE_NAME
from objstore.history.state_reader import StateReader, records_of
from objstore.model.basic_types import DocumentId, FileState, Seq, Unit
from objstore.model.ids import HASH_SIZE, RecordId, blob_id
from objstore.model.large_file_placeholder import blob_of_text
from objstore.model.records import Expiry
from objstore.model.replay_records import ReplayDecision, ReplayEdit
from objstore.text.diff import diff_lines
from objstore.text.unified_diff import is_either_binary
from objstore.transaction.journal import Journal
from objstore.weave.document import Document, DocumentState, DocumentVersion, replayed
from objstore.weave.line_weave import Weave
from objstore.weave.serialize import WeaveState

if TYPE_CHECKING:
    from objstore.log.segment_files import Place

__all__ = [
    "cache_documents",
    "cached_document_differs",
    "decisions_differing_on_replay",
    "delete_cached_document",
    "delete_cached_documents",
    "load_document",
    "load_past",
    "loaded_from_cache",
]

_FEW_OBJECTS: Final = 2_000
"""Objects that the garbage collector looks through in a moment."""

_MOST_OLD: Final = 200_000
"""Objects that may have been made in replays, some 30 MB, until those of no use any more are looked for."""

_objects_since_collection = 0
"""Objects that were made in replays since."""

_MAGIC: Final = b"casweav9"
"""Begins a kept state; the digit counts versions of its form."""

_KEPT: Final = "weave-"
"""Begins the name of a kept state's file."""

_CACHE_AFTER: Final = 64
"""Records replayed on top of the last kept state before the document is kept anew."""

_MOST_TEXT: Final = 64 << 20
"""Bytes of text in a weave that is kept; a larger one is replayed."""


_MAX_CACHED: Final = 1 << 30
"""Bytes of a kept state, unpacked; no more memory is taken for one."""

_MEANINGLESS: Final = (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError, StructError)
"""What comes of a kept state that is none, though its hash is right."""

_POSITIONS: Final = ([int, bytes, int, bytes], [int, bytes, int, type(None)])
"""The types of a position."""


class _Position(NamedTuple):
    """How far a document has followed the journal."""

    seq: int  # its last edit
    edit: RecordId
    number: int  # the last decision on it; 0: none
    decision: RecordId | None  # None: there is no decision


def load_document(journal: Journal, document: DocumentId, *, anew: bool = False) -> Document:
    """Return the document, replayed from the journal and checked against its tip. Raises HistoryBroken.

    `anew`: from its first edit on, whatever is kept.
    """
    # Of one moment: else what another process records meanwhile would be in the tip and not in the records.
    with _without_collecting(), journal.store.index.still():
        return _loaded(journal, document, anew=anew)


def _loaded(journal: Journal, document: DocumentId, *, anew: bool) -> Document:
    kept = None if anew else _taken_up(journal, document)
    if kept is not None:
        # A kept state that doesn't fit is no fault of the history.
        with suppress(HistoryBroken, *_MEANINGLESS):
            return _followed(journal, document, *kept, is_hashed=False)
    beginning = _Position(0, RecordId(b""), 0, None)
    if not anew:
        # If states that nobody hashed don't end in the recorded one, their hashes say which is wrong.
        with suppress(HistoryBroken):
            return _followed(journal, document, None, beginning, is_hashed=False)
    return _followed(journal, document, None, beginning, is_hashed=True)


def load_past(journal: Journal, document: DocumentId, seq: Seq, *, before: bool) -> Document:
    """Return the document as it was when its edit `seq` had been recorded, or right `before` that.

    The edit has not expired. Raises HistoryBroken.
    """
    with _without_collecting(), journal.store.index.still():
        past: list[ReplayEdit | ReplayDecision] = []
        for record, _, _ in records_of(journal.store, document):
            past.append(record)
            if isinstance(record, ReplayEdit) and record.seq == seq:
                break
        last = past.pop() if before else past[-1]
        since = None
        if before and not any(isinstance(record, ReplayEdit) for record in past) and isinstance(last, ReplayEdit):
            since = Document.begun(last, None if last.before is None else journal.store.text(last.before.blob))
        # States that are compared with their hashes: here, no recorded state tells whether the last one is right.
        return replayed(past, document, journal.store.text, StateReader(journal.store, {}).after, since)


def cached_document_differs(journal: Journal, document: DocumentId) -> bool:
    """Return whether what is kept of a document makes another one of it than a replay of all its records does.

    What is not kept, or does not fit and so is never believed, does not differ. Raises HistoryBroken.
    """
    kept = _taken_up(journal, document)
    replayed_anew = load_document(journal, document, anew=True)
    if kept is None:
        return False
    try:
        followed = _followed(journal, document, *kept, is_hashed=False)
    except (HistoryBroken, *_MEANINGLESS):
        return True
    return (followed.statuses(), followed.blame()) != (replayed_anew.statuses(), replayed_anew.blame())


def decisions_differing_on_replay(journal: Journal, document: DocumentId) -> tuple[int, ...]:
    """Return the numbers of the decisions on a document that wrote another text than they would write now.

    Older versions could take lines that read alike with a rejection. Here every change that was recorded by comparison
    is compared again, as it would be today, and each decision is taken again. Raises HistoryBroken.
    """
    store, built = journal.store, None
    records = [record for record, _, _ in records_of(store, document)]
    if not any(isinstance(record, ReplayDecision) and document in record.written for record in records):
        return ()
    regrouped: dict[Seq, int] = {}  # edits that have another number of hunks now, and their units
    for record in records:
        if isinstance(record, ReplayEdit):
            before, after = (
                None if state is None else store.text(state.blob) for state in (record.before, record.after)
            )
            edit = record
            if before is not None and after is not None and not (record.is_meant or is_either_binary(before, after)):
                edit = record._replace(hunks=diff_lines(before, after))
            if len(edit.hunks) != len(record.hunks):
                regrouped[record.seq] = 1 + len(edit.hunks)
            built = built or Document.begun(record, before)
            built.add(edit, after)
        elif built is not None:
            verdicts = dict(record.verdicts)
            for seq in regrouped.keys() & verdicts.keys():
                said = set(verdicts[seq].values())
                if len(said) > 1:
                    return built.corrected  # hunks were decided one by one, and they are others now
                verdicts[seq] = {Unit(seq, hunk): status for status in said for hunk in range(regrouped[seq])}
            built.replay(record._replace(verdicts=verdicts))
            built.override_text(record, store.text)
    return () if built is None else built.corrected


def cache_documents(journal: Journal) -> None:
    """Keep every document of which so much would else be replayed the next time. Raises HistoryBroken."""
    for document in journal.store.index.edits.long_documents(_CACHE_AFTER):
        load_document(journal, document)


def _followed(
    journal: Journal, document: DocumentId, since: Document | None, position: _Position, *, is_hashed: bool
) -> Document:
    """Return the document after everything that the journal says behind `position`, where it was `since`.

    `is_hashed`: whether each state is compared with its hash, and not only the last, and what each decision wrote with
    the text under its verdicts.
    """
    store = journal.store
    records: list[ReplayEdit | ReplayDecision] = []
    places: dict[Seq, Place] = {}
    edit, decision = (position.seq, position.edit), (position.number, position.decision)
    for record, name, blob in records_of(store, document, after_edit=edit[0], after_decision=decision[0]):
        match record:
            case ReplayEdit():
                edit = record.seq, name
                if blob is not None:
                    places[record.seq] = blob
            case ReplayDecision():
                decision = record.number, name
        records.append(record)
    if since is None and store.index.history.oldest_edit(document) is None:
        since = _without_history(journal, document)
    states = StateReader(store, {} if is_hashed else places)
    loaded = replayed(records, document, store.text, states.after, since, is_checked=is_hashed)
    _check(journal, loaded)
    if sum(map(_weight, records)) >= _CACHE_AFTER:
        _keep(journal, loaded, _Position(*edit, *decision))
    return loaded


def _weight(record: ReplayEdit | ReplayDecision) -> int:
    """Return what replaying the record costs, in edits of one hunk."""
    return max(1, record.size // _CACHE_AFTER if isinstance(record, ReplayDecision) else len(record.hunks) // 2)


def _without_history(journal: Journal, document: DocumentId) -> Document:
    """Return a document whose edits have all expired: it is what it is, and nobody can take anything of that away."""
    tip = journal.store.index.documents.tip(document)
    content = None if tip.state is None else journal.store.text(tip.state.blob)
    mode = 0 if tip.state is None else tip.state.mode
    return Document.found(document, DocumentVersion(path=tip.path, mode=mode, content=content))


def _check(journal: Journal, loaded: Document) -> None:
    tip, stands = journal.store.index.documents.tip(loaded.id), loaded.standing()
    state = None if stands.content is None else FileState(blob=blob_of_text(stands.content), mode=stands.mode)
    if state != tip.state or (state is not None and stands.path != tip.path):
        raise HistoryBroken(os.fsdecode(tip.path), loaded.last, "replaying it does not give the recorded state")


# ---- kept states


def _taken_up(journal: Journal, document: DocumentId) -> tuple[Document, _Position] | None:
    """Return the document as it was last kept, and behind which records that was (None: nothing that fits is kept)."""
    try:
        stored = read_store_file(os.path.join(_folder(journal), _name(document)))
    except (OSError, StoreLinked, StoreNotRegular):
        return None
    header, packed = stored[: len(_MAGIC) + HASH_SIZE], stored[len(_MAGIC) + HASH_SIZE :]
    if header != _MAGIC + blob_id(packed):
        return None
    return loaded_from_cache(
        packed, lambda kept, behind: kept.document == document and _still_holds(journal, kept, behind)
    )


def loaded_from_cache(
    packed: bytes, is_fitting: Callable[[DocumentState, _Position], bool]
) -> tuple[Document, _Position] | None:
    """Return what the bytes keep of a document, if it is fitting (None: it is not, or they make no sense).

    They are not trusted, though their hash is right: it has no key, so it tells damage, and not who wrote them.
    """
    from msgpack import unpackb
    from zstandard import ZstdDecompressor, ZstdError, frame_content_size

    try:
        if not 0 <= frame_content_size(packed) <= _MAX_CACHED:
            return None
        position, state, columns = unpackb(ZstdDecompressor().decompress(packed))
        behind = _Position._make(position)
        if [*map(type, behind)] not in _POSITIONS:
            return None
        kept = DocumentState._make(state)
        if not is_fitting(kept, behind):
            return None
        return Document(kept, Weave.from_state(WeaveState._make(columns))), behind
    except (ZstdError, *_MEANINGLESS):
        return None


def _still_holds(journal: Journal, kept: DocumentState, position: _Position) -> bool:
    """Return whether the journal holds the records of `position`, not taken back, and no edit has expired since."""
    if kept.seqs[:1] != [journal.store.index.history.oldest_edit(DocumentId(kept.document))]:
        return False
    edit = journal.store.index.edits.get(position.seq)
    decision = journal.store.index.decisions.id(position.number)
    return edit is not None and edit.id == position.edit and decision == position.decision


def _keep(journal: Journal, loaded: Document, position: _Position) -> None:
    from msgpack import packb
    from zstandard import ZstdCompressor

    if not loaded.is_clean:
        return  # keeping it only saves time: the next load replays it again
    state, weave = loaded.state()
    if len(weave.text) > _MOST_TEXT:
        return
    packed = ZstdCompressor(level=1).compress(packb((position, state, weave)))
    # Nobody needs it: a full disk or a folder that can't be written costs the next one time, and nothing else.
    # Whoever lets history go removes what is kept of it while they hold the lock: it must not come back behind them.
    with suppress(CasError, OSError), journal.try_brief_lock() as is_ours:
        if is_ours and not _may_have_expired(journal):
            kept = _MAGIC + blob_id(packed) + packed
            write_derived_file(journal.disk, *os.path.split(_folder(journal)), _name(loaded.id), kept)


def _may_have_expired(journal: Journal) -> bool:
    """Return whether anything was let go that the index, as it is asked now, may not know of yet."""
    from objstore.recovery.unfinished_steps import unapplied_groups

    groups = unapplied_groups(journal.store, journal.store.end)
    return groups is None or any(isinstance(record, Expiry) for records in groups for record in records)


def delete_cached_document(journal: Journal, document: DocumentId) -> None:
    """Remove what is kept of a document, with all the text that is in it, durably."""
    with suppress(FileNotFoundError), open_store_folder(_folder(journal)) as shelf:
        journal.disk.unlink(shelf, _name(document))
        journal.disk.sync_directory(_folder(journal))


def delete_cached_documents(journal: Journal) -> None:
    """Remove what is kept of every document, and of any that there may once have been, durably."""
    with suppress(FileNotFoundError), open_store_folder(_folder(journal)) as shelf:
        for name in os.listdir(shelf):
            if name.startswith(_KEPT):
                journal.disk.unlink(shelf, name)
        journal.disk.sync_directory(_folder(journal))


def _folder(journal: Journal) -> str:
    return os.path.join(journal.tree.root, STORE_NAME, "cache")


def _name(document: DocumentId) -> str:
    return f"{_KEPT}{document}"


@contextmanager
def _without_collecting() -> Iterator[None]:
    """Keep the garbage collector from looking through tens of thousands of new objects, all of them in use."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            _freeze_or_collect()
            gc.enable()


def _freeze_or_collect() -> None:
    """Have the collector take what was made for old: otherwise the next object made would start a collection.

    The units and runs of a weave refer to each other, so it is the collector who frees them, and it does not look for
    what is old as long as this goes on. So it is told to from time to time.
    """
    global _objects_since_collection  # noqa: PLW0603 - there is one collector in a process
    made = gc.get_count()[0]
    if made < _FEW_OBJECTS or gc.get_freeze_count():
        return
    _objects_since_collection += made
    if _objects_since_collection > _MOST_OLD:
        _objects_since_collection = 0
        gc.collect()
    else:
        gc.freeze()
        gc.unfreeze()
