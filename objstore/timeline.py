"""The timeline of paths: what stood there at a moment, as far as edits, decisions and snapshots tell.

The journal's order counts, and not the clock's: a moment is behind the last record that is not later than it. What
has expired tells as it did before: its record is kept, and where the bytes are not, that is said. The baseline tells
only of what no record does: whatever became otherwise than it has a record, and one that takes the place of another
holds what stood long before it was made.
"""

import os
import stat
from collections.abc import Iterator
from typing import NamedTuple, TypeGuard

from objstore.expired import refuse_expired
from objstore.generations import Place
from objstore.journal import Journal
from objstore.legibility import naming
from objstore.recordedpaths import beginning, folders_of
from objstore.records import Decision, Edit, Snapshot
from objstore.terms import DocumentId, FileState
from objstore.trees import LeftOut, TreeEntry, entry_at, tree_files
from objstore.views import State

__all__ = ["files_at_moment", "state_at_moment"]


class _Event(NamedTuple):
    """What became of one document."""

    time: int  # microseconds since 1970-01-01 UTC
    path: bytes
    state: FileState | None  # None: it does not exist
    document: DocumentId
    told: Place  # of the record that says so


def state_at_moment(journal: Journal, path: bytes, moment: int) -> State | None:
    """Return what stood at `path` at a moment, in microseconds since 1970-01-01 UTC (None: nothing tells).

    Before the first record that tells of a file, it is what that record found. Raises SnapshotUnreadable, and
    EditExpired where the bytes are gone with what had expired.
    """
    event = _latest(journal, path, moment)
    since = 0 if event is None else event.time
    for snapshot in reversed(_snapshots(journal, moment)):
        if snapshot.time <= since or (event is not None and _is_baseline(snapshot)):
            break
        if path.startswith(_scope(snapshot)):
            with naming(journal.store, (snapshot.number, snapshot.root)):
                entry = entry_at(snapshot.root, path[len(_scope(snapshot)) :], journal.store.blob)
            if entry is None or _is_file(entry):
                return _named(path, _state(entry))
    if event is None:
        return None
    _refuse_gone(journal, event)
    return _named(path, event.state)


def files_at_moment(journal: Journal, moment: int, below: bytes = b"") -> dict[bytes, FileState]:
    """Return every file below a folder (b"": anywhere) for which `state_at_moment` tells of one, by path.

    Also those whose bytes are gone, with what they were. Raises SnapshotUnreadable.
    """
    index = journal.store.index
    recorded = {path: event for path in index.paths_below(below) if (event := _latest(journal, path, moment))}
    told = {path: event.state for path, event in recorded.items()}
    for snapshot in _snapshots(journal, moment):
        if _is_baseline(snapshot):
            told |= {path: event.state for path, event in recorded.items() if event.time < snapshot.time}
        scope = _scope(snapshot)
        held: dict[bytes, TreeEntry | LeftOut | None] = {}
        with naming(journal.store, (snapshot.number, snapshot.root)):
            held.update(tree_files(snapshot.root, journal.store.blob, scope))
        left_out = {path for path, entry in held.items() if isinstance(entry, LeftOut)}
        for path in [path for path in told if path.startswith(scope) and path not in held]:
            if not any(folder in left_out for folder in folders_of(path)):
                held[path] = None
        for path, entry in held.items():
            is_later = path not in recorded or (recorded[path].time < snapshot.time and not _is_baseline(snapshot))
            if is_later and (entry is None or _is_file(entry)):
                told[path] = _state(entry)
    within = beginning(below)
    return {path: state for path, state in sorted(told.items()) if state is not None and path.startswith(within)}


def _latest(journal: Journal, path: bytes, moment: int) -> _Event | None:
    """Return what edits and decisions say last of a path until a moment (None: nothing)."""
    found = [
        event
        for document in journal.store.index.documents_at(path)
        if (event := _at(list(_events(journal, document)), path, moment)) is not None
    ]
    return max(found, key=lambda event: (event.time, event.state is not None), default=None)


def _at(events: list[_Event], path: bytes, moment: int) -> _Event | None:
    """Return what one document says of a path at a moment (None: nothing)."""
    past = max((i for i, event in enumerate(events) if event.time <= moment), default=-1)
    there = max((i for i, event in enumerate(events[: past + 1]) if event.path == path), default=-1)
    if there < 0:
        return None
    if there == past or events[there].state is None:
        return events[there]
    return events[there + 1]._replace(path=path, state=None)  # since it left, another may have come there


def _events(journal: Journal, document: DocumentId) -> Iterator[_Event]:
    """Yield what became of a document, in order, from what its first record found; that has no time."""
    places = journal.store.index.whole_history(document)
    for place in places:
        record, _ = journal.store.record(place)
        match record:
            case Edit():
                if place == places[0]:
                    yield _Event(0, record.source or record.path, record.before, document, place)
                yield _Event(record.time, record.path, record.after, document, place)
            case Decision():
                for written in record.written:
                    if written.document == document:
                        yield _Event(record.time, written.path, written.after, document, place)
            case _:
                pass


def _refuse_gone(journal: Journal, event: _Event) -> None:
    """Raise EditExpired where the bytes of a state are gone because what led to it has expired."""
    store = journal.store
    if event.state is None or store.has(event.state.blob):
        return
    # A decision expires with the edits that it names: of these, or what took them along, the newest is named.
    until = [place for place in store.index.whole_history(event.document) if place <= event.told]
    for place in reversed(until):
        record, _ = store.record(place)
        row = store.index.edit(record.seq) if isinstance(record, Edit) else None
        if row is not None:
            refuse_expired(journal, row)


def _snapshots(journal: Journal, moment: int) -> list[Snapshot]:
    """Return the snapshots that were taken until a moment and have not been deleted, oldest first."""
    records = [journal.store.record(row.place)[0] for row in journal.store.index.snapshots() if not row.expired]
    taken = [record for record in records if isinstance(record, Snapshot) and record.time <= moment]
    return sorted(taken, key=lambda snapshot: snapshot.time)  # one that took another's place has that one's time


def _scope(snapshot: Snapshot) -> bytes:
    """Return how every path that a snapshot covers begins."""
    return beginning(snapshot.path or b"")


def _is_baseline(snapshot: Snapshot) -> bool:
    return not snapshot.who and snapshot.path is None


def _is_file(entry: TreeEntry | LeftOut) -> TypeGuard[TreeEntry]:
    return isinstance(entry, TreeEntry) and entry.is_file


def _named(path: bytes, state: FileState | None) -> State:
    blob, mode = (None, 0) if state is None else (state.blob, state.mode)
    return State(path=os.fsdecode(path), blob=blob, mode=mode)


def _state(entry: TreeEntry | None) -> FileState | None:
    return None if entry is None else FileState(blob=entry.blob, mode=stat.S_IMODE(entry.mode))
