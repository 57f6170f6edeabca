"""Find the files whose recorded state after some edit differs from their present one.

Only documents with later records are looked at, and of each one record is read: the last one up to that edit.
"""

import os
from collections.abc import Iterator
from itertools import islice

from objstore.model.basic_types import DocumentId, FileState
from objstore.model.records import Decision, Edit
from objstore.model.results import FileEffect
from objstore.storage.transaction.journal import Journal
from objstore.values.request_errors import NoSuchName

__all__ = ["files_changed_since"]


def files_changed_since(journal: Journal, seq: int, limit: int) -> list[FileEffect]:
    """Return up to `limit` files that differ between the moment after edit `seq` and now, by document.

    What was then is the state before, what is now the state after. Raises NoSuchName.
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
