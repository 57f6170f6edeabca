"""Find the files whose recorded state after some edit differs from their present one.

Only documents with later records are looked at, and of each one record is read: the last one up to that edit.
"""

import os
from collections.abc import Iterator
from itertools import islice

from objstore.errors import NoSuchName
from objstore.log.segment_files import Place
from objstore.model.basic_types import DocumentId, FileState
from objstore.model.records import Decision, Edit
from objstore.model.results import FileEffect
from objstore.transaction.journal import Journal

__all__ = ["files_changed_since"]


def files_changed_since(journal: Journal, seq: int, limit: int) -> list[FileEffect]:
    """Return up to `limit` files that differ between the moment after edit `seq` and now, by document.

    What was then is the state before, what is now the state after. Raises NoSuchName.
    """
    index = journal.store.index
    row = index.edits.get(seq)
    if row is None:
        raise NoSuchName(str(seq), "edit")
    places = index.history.current([row.place, *(place for _, place in index.decisions.places())])
    until = places[0]
    # Decisions that were rolled back have numbers too, so this may be too low: then more documents are compared.
    decision = sum(place < until for place in places[1:])
    documents = index.documents.changed_after(seq, decision)
    return list(islice(_differing(journal, documents, until), limit))


def _differing(journal: Journal, documents: list[DocumentId], until: Place) -> Iterator[FileEffect]:
    for document in documents:
        then = _state_at(journal, document, until)
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


def _state_at(journal: Journal, document: DocumentId, until: Place) -> tuple[bytes, FileState] | None:
    """Return path and state of a document after the record at `until` (None: it did not exist)."""
    places = [place for place, _ in journal.store.index.history.dated(document)]
    for place in reversed([place for place in places if place <= until]):
        match journal.store.record(place)[0]:
            case Edit() as edit:
                return _existing(edit.path, edit.after)
            case Decision() as decision:
                written = next((each for each in decision.written if each.document == document), None)
                if written is not None:
                    return _existing(written.path_after, written.after)
            case _:
                continue
    first = journal.store.record(places[0])[0] if places else None
    if isinstance(first, Edit) and int(first.seq) == int(document):
        return _existing(first.source or first.path, first.before)
    return None


def _existing(path: bytes | None, state: FileState | None) -> tuple[bytes, FileState] | None:
    return None if path is None or state is None else (path, state)
