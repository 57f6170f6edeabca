"""Load a document: replay it from the journal, starting from its cached state if that is valid.

A replay reads every state that a file ever had. So documents are cached from time to time in `.cas/cache/`, as they
were after a certain edit and a certain decision. Cached states are derived and may be deleted at any time. One is
trusted only if it is intact, if the journal still holds the very records that it is based on, and if the replay on top
of it ends in the recorded state. A record's id covers all records before it, so two ids pin the past.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from struct import error as StructError  # noqa: N812 - as classes are named
from typing import TYPE_CHECKING, Final, NamedTuple

from objstore.disk.fs.nofollow import open_store_folder, read_store_file, write_derived_file
from objstore.disk.fs.reserved_names import FAILED_NAME, NET_CACHE_NAME, SEEN_NAME, STORE_NAME
from objstore.history.documents.state_reader import StateReader, records_of
from objstore.model.basic_types import DocumentId, FileState, Seq, settable_state
from objstore.model.ids import HASH_SIZE, RecordId, blob_id
from objstore.model.large_file_placeholder import blob_of_text, is_placeholder
from objstore.model.records import Expiry
from objstore.model.replay_records import ReplayDecision, ReplayEdit
from objstore.storage.transaction.journal import Journal
from objstore.text.forms import TextForm, form_of
from objstore.values.errors import CasError, HistoryBroken, StoreDamaged, StoreLinked, StoreNotRegular
from objstore.values.garbage import count_text, without_collecting
from objstore.weave.document import Document, DocumentState, DocumentVersion, replayed
from objstore.weave.line_weave import Weave
from objstore.weave.serialize import WeaveState

if TYPE_CHECKING:
    from objstore.storage.log.segment_files import Place

__all__ = [
    "cache_documents",
    "cached_document_differs",
    "delete_cached_document",
    "delete_cached_documents",
    "load_document",
    "load_past",
    "loaded_from_cache",
]

_MAGIC: Final = b"casweavC"
"""The start of a cached state; its last letter changes with the format, and with what a replay links."""

_FILE_PREFIX: Final = "weave-"
"""The start of the file name of a cached state."""

_CACHE_AFTER: Final = 64
"""Records replayed on top of the cached state after which the document is cached again."""

_MOST_TEXT: Final = 64 << 20
"""Bytes of text in a weave up to which a document is cached; larger ones are always replayed."""


_MAX_CACHED: Final = 1 << 30
"""Bytes of a decompressed cached state; no more memory is allocated for one."""

_MEANINGLESS: Final = (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError, StructError)
"""What decoding raises for a cached state that is malformed although its hash is right."""

_POSITIONS: Final = ([int, bytes, int, bytes], [int, bytes, int, type(None)])
"""The types of a position's fields."""


class _Position(NamedTuple):
    """The place in the journal up to which a document was replayed."""

    seq: int  # its last edit
    edit: RecordId
    number: int  # the last decision on it; 0: none
    decision: RecordId | None  # None: there is no decision


def load_document(journal: Journal, document: DocumentId, *, ignore_cache: bool = False) -> Document:
    """Return the document, replayed from the journal and checked against its tip. Raises HistoryBroken.

    `ignore_cache`: replay from the first edit that has not expired, and cache nothing.
    """
    # One read transaction: otherwise records that another process adds meanwhile would be in the tip only.
    with without_collecting(), journal.store.index.still():
        loaded = _loaded(journal, document, ignore_cache=ignore_cache)
        count_text(loaded.text_bytes)
        return loaded


def _loaded(journal: Journal, document: DocumentId, *, ignore_cache: bool) -> Document:
    cached = None if ignore_cache else _cached(journal, document)
    if cached is not None:
        # A cached state that doesn't fit is not a fault of the history.
        with suppress(HistoryBroken, *_MEANINGLESS):
            return _replayed_since(journal, document, *cached, is_hashed=False)
    beginning = _Position(0, RecordId(b""), 0, None)
    # If the unhashed states don't end in the recorded one, the next attempt finds the wrong one by its hash.
    with suppress(HistoryBroken):
        return _replayed_since(journal, document, None, beginning, is_hashed=False, keep=not ignore_cache)
    return _replayed_since(journal, document, None, beginning, is_hashed=True, keep=not ignore_cache)


def load_past(journal: Journal, document: DocumentId, seq: Seq, *, before: bool) -> Document:
    """Return the document as it was when its edit `seq` had been recorded, or directly `before` that.

    The edit must not have expired. Raises HistoryBroken.
    """
    with without_collecting(), journal.store.index.still():
        past: list[ReplayEdit | ReplayDecision] = []
        for record, _, _ in records_of(journal.store, document):
            past.append(record)
            if isinstance(record, ReplayEdit) and record.seq == seq:
                break
        last = past.pop() if before else past[-1]
        since = None
        if before and not any(isinstance(record, ReplayEdit) for record in past) and isinstance(last, ReplayEdit):
            since = Document.before_edit(last, None if last.before is None else journal.store.text(last.before.blob))
        # States are checked against their hashes, because there is no recorded state to compare the last one with.
        loaded = replayed(past, document, journal.store.text, StateReader(journal.store, {}).after, since)
        count_text(loaded.text_bytes)
        return loaded


def cached_document_differs(journal: Journal, document: DocumentId) -> bool:
    """Return whether the cached state of a document leads to another result than a replay of all its records.

    False if nothing is cached, or if the cached state does not fit and so is never trusted. Raises HistoryBroken.
    """
    cached = _cached(journal, document)
    replayed_again = load_document(journal, document, ignore_cache=True)
    if cached is None:
        return False
    try:
        followed = _replayed_since(journal, document, *cached, is_hashed=False)
    except (HistoryBroken, *_MEANINGLESS):
        return True
    return (followed.statuses(), followed.blame()) != (replayed_again.statuses(), replayed_again.blame())


def cache_documents(journal: Journal) -> None:
    """Cache every document of which many records would otherwise be replayed the next time. Raises HistoryBroken."""
    for document in journal.store.index.edits.long_documents(_CACHE_AFTER):
        load_document(journal, document)


def _replayed_since(
    journal: Journal,
    document: DocumentId,
    since: Document | None,
    position: _Position,
    *,
    is_hashed: bool,
    keep: bool = True,
) -> Document:
    """Return the document after all records since `position`, where it was `since`.

    `is_hashed`: whether each state, not only the last one, is checked against its hash. `keep`: whether to cache it.
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
        since = _without_edits(journal, document)
    states = StateReader(store, {} if is_hashed else places)
    loaded = replayed(records, document, store.text, states.after, since)
    _check(journal, loaded)
    if keep and sum(map(_weight, records)) >= _CACHE_AFTER:
        _cache(journal, loaded, _Position(*edit, *decision))
    return loaded


def _weight(record: ReplayEdit | ReplayDecision) -> int:
    """Return the cost of replaying the record, in edits of one hunk."""
    return max(1, record.size // _CACHE_AFTER if isinstance(record, ReplayDecision) else len(record.hunks) // 2)


def _without_edits(journal: Journal, document: DocumentId) -> Document:
    """Return a document whose edits have all expired: its present state is fixed and can't be rejected."""
    tip = journal.store.index.documents.tip(document)
    content = None if tip.state is None else journal.store.text(tip.state.blob)
    mode = 0 if tip.state is None else tip.state.mode
    form = TextForm.PLAIN if content is None or (tip.state and tip.state.is_link) else form_of(content)
    return Document.without_edits(document, DocumentVersion(path=tip.path, mode=mode, content=content, form=form))


def _check(journal: Journal, loaded: Document) -> None:
    tip, version = journal.store.index.documents.tip(loaded.id), loaded.version()
    state = None if version.content is None else FileState(blob=blob_of_text(version.content), mode=version.mode)
    # A file that came back lacks setuid and setgid.
    is_recorded = state == tip.state or (state is not None and settable_state(state, None) == tip.state)
    if not is_recorded or (state is not None and version.path != tip.path):
        raise HistoryBroken(os.fsdecode(tip.path), loaded.last, "replaying it does not give the recorded state")
    if state is not None and version.content is not None and not is_placeholder(version.content):
        journal.store.remember(state.blob, version.content)  # a decision shows and changes what was loaded


# ---- cached states


def _cached(journal: Journal, document: DocumentId) -> tuple[Document, _Position] | None:
    """Return the cached document and the records that it is based on; None if no cached state is valid."""
    try:
        stored = read_store_file(os.path.join(_folder(journal), _name(document)))
    except (OSError, StoreLinked, StoreNotRegular):
        return None
    header, packed = stored[: len(_MAGIC) + HASH_SIZE], stored[len(_MAGIC) + HASH_SIZE :]
    if header != _MAGIC + blob_id(packed):
        return None
    return loaded_from_cache(
        packed, lambda cached, behind: cached.document == document and _still_holds(journal, cached, behind)
    )


def loaded_from_cache(
    packed: bytes, is_fitting: Callable[[DocumentState, _Position], bool]
) -> tuple[Document, _Position] | None:
    """Return the document in `packed` if `is_fitting` accepts it; None if it does not, or the bytes are malformed.

    The bytes are not trusted although their hash is right: it has no key, so it shows damage, not who wrote them.
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
        cached = DocumentState._make(state)
        if not is_fitting(cached, behind):
            return None
        return Document(cached, Weave.from_state(WeaveState._make(columns))), behind
    except (ZstdError, *_MEANINGLESS):
        return None


def _still_holds(journal: Journal, cached: DocumentState, position: _Position) -> bool:
    """Return whether the journal holds the records of `position`, not voided, and no edit has expired since."""
    if not cached.seqs:
        return False
    rows = journal.store.index.edits.rows({cached.seqs[0], position.seq})
    first, edit = rows.get(cached.seqs[0]), rows.get(position.seq)
    if first is None or first.expired or edit is None or edit.id != position.edit:
        return False
    return journal.store.index.decisions.id(position.number) == position.decision


def _cache(journal: Journal, loaded: Document, position: _Position) -> None:
    from msgpack import packb
    from zstandard import ZstdCompressor

    if not loaded.is_clean:
        return  # caching only saves time: the next load replays it again
    state, weave = loaded.state()
    if len(weave.text) > _MOST_TEXT:
        return
    packed = ZstdCompressor(level=1).compress(packb((position, state, weave)))
    # The cache is optional: a full disk or a read-only folder only costs the next load time.
    # An expiry or purge deletes cached states while it holds the lock: a cached state must not reappear after that.
    with suppress(CasError, OSError), journal.try_brief_lock() as is_ours:
        if is_ours and not _may_have_expired(journal):
            cached = _MAGIC + blob_id(packed) + packed
            write_derived_file(journal.disk, *os.path.split(_folder(journal)), _name(loaded.id), cached)


def _may_have_expired(journal: Journal) -> bool:
    """Return whether anything may have expired that the index does not know of yet."""
    from objstore.storage.index.ingest import decoded

    groups = journal.store.log.groups(journal.store.end)
    try:
        return any(isinstance(chained.record, Expiry) for group in groups for chained in decoded(group))
    except StoreDamaged:
        return True


def delete_cached_document(journal: Journal, document: DocumentId) -> None:
    """Delete the cached state of a document, with all the text in it, durably."""
    with suppress(FileNotFoundError), open_store_folder(_folder(journal)) as folder_fd:
        journal.disk.unlink(folder_fd, _name(document))
        journal.disk.sync_directory(_folder(journal))


def delete_cached_documents(journal: Journal) -> None:
    """Delete what is cached of all documents, and of any that may have existed once, durably."""
    derived = {os.path.basename(name) for name in (NET_CACHE_NAME, SEEN_NAME, FAILED_NAME)}
    with suppress(FileNotFoundError), open_store_folder(_folder(journal)) as folder_fd:
        for name in os.listdir(folder_fd):
            if name.startswith(_FILE_PREFIX) or name in derived:
                journal.disk.unlink(folder_fd, name)
        journal.disk.sync_directory(_folder(journal))


def _folder(journal: Journal) -> str:
    return os.path.join(journal.tree.root, STORE_NAME, "cache")


def _name(document: DocumentId) -> str:
    return f"{_FILE_PREFIX}{document}"
