"""The timeline of a path: what stood there at a moment, as far as edits, decisions and snapshots tell.

The journal's order counts, and not the clock's: a moment is behind the last record that is not later than it.
"""

import os
import stat
from collections.abc import Iterator
from typing import NamedTuple

from objstore.journal import Journal
from objstore.records import Decision, Edit, Snapshot
from objstore.terms import DocumentId, FileState
from objstore.trees import TreeEntry, decode_tree
from objstore.views import State

__all__ = ["state_at_moment"]


class _Event(NamedTuple):
    """What became of one document."""

    time: int  # microseconds since 1970-01-01 UTC
    path: bytes
    state: FileState | None  # None: it does not exist


def state_at_moment(journal: Journal, path: bytes, moment: int) -> State | None:
    """Return what stood at `path` at a moment, in microseconds since 1970-01-01 UTC (None: nothing tells).

    Before the first record that tells of a file, it is what that record found.
    """
    found = [
        event
        for document in journal.store.index.documents_at(path)
        if (event := _at(list(_events(journal, document)), path, moment)) is not None
    ]
    latest = max(found, key=lambda event: (event.time, event.state is not None), default=None)
    seen = _seen(journal, path, moment, since=0 if latest is None else latest.time)
    event = latest if seen is None else seen
    if event is None:
        return None
    blob, mode = (None, 0) if event.state is None else (event.state.blob, event.state.mode)
    return State(path=os.fsdecode(path), blob=blob, mode=mode)


def _at(events: list[_Event], path: bytes, moment: int) -> _Event | None:
    """Return what one document says of a path at a moment (None: nothing)."""
    past = max((i for i, event in enumerate(events) if event.time <= moment), default=None)
    if past is None:
        return None
    if events[past].path == path:
        return events[past]
    has_left = any(event.path == path and event.state is not None for event in events[:past])
    return _Event(events[past].time, path, None) if has_left else None


def _events(journal: Journal, document: DocumentId) -> Iterator[_Event]:
    """Yield what became of a document, in order, from what its first record found; that has no time."""
    for place in journal.store.index.history(document):
        record, _ = journal.store.record(place)
        match record:
            case Edit():
                if int(record.seq) == int(document):
                    yield _Event(0, record.source or record.path, record.before)
                yield _Event(record.time, record.path, record.after)
            case Decision():
                for written in record.written:
                    if written.document == document:
                        path = written.path_after if written.path_after is not None else written.path_before
                        yield _Event(record.time, path or b"", written.after)
            case _:
                pass


def _seen(journal: Journal, path: bytes, moment: int, *, since: int) -> _Event | None:
    """Return what the newest snapshot between two moments holds of a path (None: none covers it)."""
    for row in reversed(journal.store.index.snapshots()):
        record, _ = journal.store.record(row.place)
        if row.expired or not isinstance(record, Snapshot) or record.time > moment:
            continue
        if record.time <= since:
            return None
        scope = b"" if record.path is None else record.path + b"/"
        if not path.startswith(scope):
            continue
        entries = {entry.name: entry for entry in decode_tree(journal.store.blob(record.root))}
        *folders, name = path[len(scope) :].split(b"/")
        for folder in folders:
            inner = entries.get(folder)
            if not isinstance(inner, TreeEntry) or not inner.is_folder:
                break  # left out, or nothing
            entries = {entry.name: entry for entry in decode_tree(journal.store.blob(inner.blob))}
        else:
            inner = entries.get(name)
        if isinstance(inner, TreeEntry) and inner.is_file:
            return _Event(record.time, path, FileState(blob=inner.blob, mode=stat.S_IMODE(inner.mode)))
        if inner is None:
            return _Event(record.time, path, None)
    return None
