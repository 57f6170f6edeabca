"""Find the recorded files as they were after some edit, and those that differ from then."""

import os
from collections.abc import Iterable, Iterator
from itertools import islice

from objstore.model.basic_types import DocumentId, FileState
from objstore.model.records import Decision, Edit, Record, VoidedRecords
from objstore.model.results import FileEffect
from objstore.storage.index.ingest import decoded
from objstore.storage.transaction.journal import Journal
from objstore.values.request_errors import NoSuchName

__all__ = ["files_at", "files_changed_since"]


def files_at(journal: Journal, seq: int | None = None, *, before: bool = False) -> dict[str, FileState]:
    """Return every recorded file that existed after edit `seq` (`before`: just before it; None: now), by path.

    Raises NoSuchName.
    """
    if seq is None:
        return {
            os.fsdecode(tip.path): tip.state for tip in journal.store.index.documents.tips() if tip.state is not None
        }
    if journal.store.index.edits.get(seq) is None:
        raise NoSuchName(str(seq), "edit")
    log = journal.store.log
    journalled = [chained.record for group in log.groups(log.first) for chained in decoded(group)]
    voided = VoidedRecords(journalled)
    journalled = [record for record in journalled if record not in voided]
    # The state that a file's first edit found existed before, unless another recorded file had the path meanwhile.
    found = _states_before_first_edits(journalled)
    existing: dict[DocumentId, tuple[bytes, FileState]] = {}
    used: set[bytes] = set()  # paths of recorded files until then
    for record in journalled:
        if isinstance(record, Edit) and record.document in found:
            existing[record.document] = found.pop(record.document)
        if isinstance(record, Decision):
            for written in record.written:
                _set_state(existing, written.document, written.path_after, written.after)
                used.add(written.path_after or b"")
        if not isinstance(record, Edit):
            continue
        if before and record.seq == seq:
            break
        _set_state(existing, record.document, record.path, record.after)
        used |= {record.path, record.source or record.path}
        if record.seq == seq:
            break
    unedited = {path: state for path, state in reversed(found.values()) if path not in used}
    return {os.fsdecode(path): state for path, state in sorted((unedited | dict(existing.values())).items())}


def files_changed_since(journal: Journal, seq: int, limit: int) -> list[FileEffect]:
    """Return up to `limit` files that differ between the moment after edit `seq` and now, by document.

    What was then is the state before, what is now the state after. Only documents with later records are looked at, and
    of each one record is read: the last one up to that edit. Raises NoSuchName.
    """
    index = journal.store.index
    if index.edits.get(seq) is None:
        raise NoSuchName(str(seq), "edit")
    decision = index.history.newest_decision_before(seq)
    documents = index.documents.changed_after(seq, decision)
    return list(islice(_differing(journal, documents, seq, decision), limit))


def _differing(journal: Journal, documents: list[DocumentId], seq: int, decision: int) -> Iterator[FileEffect]:
    for document in documents:
        then = _state_at(journal, document, seq, decision)
        tip = journal.store.index.documents.tip(document)
        now = None if tip.state is None else (tip.path, tip.state)
        if then != now:
            yield _effect(document, then, now)


def _effect(
    document: DocumentId, then: tuple[bytes, FileState] | None, now: tuple[bytes, FileState] | None
) -> FileEffect:
    return FileEffect(
        document=document,
        path_before=None if then is None else os.fsdecode(then[0]),
        before=None if then is None else then[1].blob,
        mode_before=0 if then is None else then[1].mode,
        path_after=None if now is None else os.fsdecode(now[0]),
        after=None if now is None else now[1].blob,
        mode_after=0 if now is None else now[1].mode,
    )


def _state_at(journal: Journal, document: DocumentId, seq: int, decision: int) -> tuple[bytes, FileState] | None:
    """Return path and state of a document after an edit and the decisions before it (None: it did not exist)."""
    for place in journal.store.index.history.last_records(document, seq, decision):
        match journal.store.record(place)[0]:
            case Edit() as edit if edit.document == document:
                return _existing(edit.path, edit.after)
            case Decision() as decided:
                written = next((each for each in decided.written if each.document == document), None)
                if written is not None:
                    return _existing(written.path_after, written.after)
            case _:
                raise place.damaged(f"it has no record of document {document}, as the index says")
    # Nothing was recorded of it yet: its first edit, whose number it has, says what was there.
    row = journal.store.index.edits.get(int(document))
    first = None if row is None else journal.store.record(row.place)[0]
    return _existing(first.source or first.path, first.before) if isinstance(first, Edit) else None


def _existing(path: bytes | None, state: FileState | None) -> tuple[bytes, FileState] | None:
    return None if path is None or state is None else (path, state)


def _states_before_first_edits(journalled: Iterable[Record]) -> dict[DocumentId, tuple[bytes, FileState]]:
    """Return the path and state that the first edit of each file found, if it found one; the earliest edit first."""
    found: dict[DocumentId, tuple[bytes, FileState]] = {}
    for record in journalled:
        if isinstance(record, Edit) and int(record.seq) == int(record.document):
            _set_state(found, record.document, record.source or record.path, record.before)
    return found


def _set_state(
    states: dict[DocumentId, tuple[bytes, FileState]],
    document: DocumentId,
    path: bytes | None,
    state: FileState | None,
) -> None:
    if path is None or state is None:
        states.pop(document, None)
    else:
        states[document] = (path, state)
