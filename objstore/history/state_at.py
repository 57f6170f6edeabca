"""Find the state of a path at a moment, as edits, decisions and snapshots record it.

The order of the journal counts, not the clock: a moment is after the last record that is not later than it. Only
records imported from elsewhere are older than their place in the journal suggests. Expired edits count as before: their
records are kept, and missing bytes are reported. The baseline counts only for paths that no record mentions: whatever
changed since has a record, and a baseline that replaces another holds what existed long before it was made.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Final, NamedTuple, TypeGuard

from objstore.history.expired import refuse_expired
from objstore.history.snapshot_check import naming_snapshot
from objstore.model.basic_types import MAX_INT, DocumentId, FileState
from objstore.model.records import LEFT_OUT_NOTE, MCPDIFF_SOURCE, Decision, Edit, Record, Snapshot, WrittenFile
from objstore.model.relpath import beginning, folders_of
from objstore.model.tree import ExcludedEntry, TreeEntry, entry_at, tree_files
from objstore.model.views import State
from objstore.storage.log.segment_files import Place
from objstore.storage.transaction.journal import Journal

__all__ = ["PastFiles", "files_at_moment", "past_files", "state_at_moment"]

_BEFORE_FIRST_RECORD: Final = Place(0, 0)
"""The place of states that existed before anything was recorded."""


class _Event(NamedTuple):
    """A document's new state."""

    since: Place  # the last record by then; _BEFORE_FIRST_RECORD: so from the beginning
    path: bytes
    state: FileState | None  # None: it does not exist
    document: DocumentId
    recorded_at: Place  # the record that says so
    may_be_older: bool = False  # whether the file came into sight by that record, and may have been there before


class PastFiles(NamedTuple):
    """The files of a moment."""

    states: dict[bytes, FileState]  # by path
    unseen: list[bytes]  # paths of those that no look had seen by then, and that may have been there


class _SnapshotPlace(NamedTuple):
    """A snapshot that has not been deleted."""

    place: Place  # of its record; for a snapshot that replaced another, of the replaced one's
    record: Snapshot

    @property
    def scope(self) -> bytes:
        """Return the prefix of every path that it covers."""
        return beginning(self.record.path or b"")

    @property
    def is_baseline(self) -> bool:
        """Return whether it is the baseline, which counts only for paths that no record mentions."""
        return not self.record.who and self.record.path is None


def state_at_moment(journal: Journal, path: bytes, moment: int) -> State | None:
    """Return what was at `path` at a moment, in microseconds since 1970-01-01 UTC (None: unknown).

    Before the first record that mentions a file, its state is what that record found. Raises SnapshotUnreadable, and
    EditExpired if the bytes are gone because the edit expired.
    """
    # In one state of the index: places of different generations of a segment can't be compared.
    with journal.store.index.still():
        return _state_at_moment(journal, path, moment)


def _state_at_moment(journal: Journal, path: bytes, moment: int) -> State | None:
    past = _Past(journal, moment)
    event = past.last_event(path)
    for taken in reversed(past.snapshots):
        if event is not None and (taken.is_baseline or taken.place <= event.since):
            break
        if path.startswith(taken.scope):
            with naming_snapshot(journal.store, (taken.record.number, taken.record.root)):
                entry = entry_at(taken.record.root, path[len(taken.scope) :], journal.store.blob)
            if _is_file(entry) or (entry is None and not (event is not None and event.may_be_older)):
                return _named(path, _state(entry))
    if event is None:
        return None
    past.refuse_expired_state(event)
    return _named(path, event.state)


def files_at_moment(journal: Journal, moment: int, below: bytes = b"") -> dict[bytes, FileState]:
    """Return every file below a folder (b"": anywhere) that `state_at_moment` finds, by path.

    Files whose bytes are gone are included with their recorded state. Raises SnapshotUnreadable.
    """
    return past_files(journal, moment, below).states


def past_files(journal: Journal, moment: int, below: bytes = b"") -> PastFiles:
    """Return what `files_at_moment` finds, and which of these files no look had seen by then."""
    with journal.store.index.still():
        return _past_files(journal, moment, below)


def _past_files(journal: Journal, moment: int, below: bytes) -> PastFiles:
    past = _Past(journal, moment)
    recorded = {
        path: event for path in journal.store.index.documents.paths_below(below) if (event := past.last_event(path))
    }
    states = {path: event.state for path, event in recorded.items()}
    unseen = {path for path, event in recorded.items() if event.may_be_older}
    for taken in past.snapshots:
        if taken.is_baseline:
            states |= {path: event.state for path, event in recorded.items() if event.since < taken.place}
        held: dict[bytes, TreeEntry | ExcludedEntry | None] = {}
        with naming_snapshot(journal.store, (taken.record.number, taken.record.root)):
            held.update(tree_files(taken.record.root, journal.store.blob, taken.scope))
        left_out = {path for path, entry in held.items() if isinstance(entry, ExcludedEntry)}
        for path in [path for path in states.keys() - unseen if path.startswith(taken.scope) and path not in held]:
            if not any(folder in left_out for folder in folders_of(path)):
                held[path] = None
        for path, entry in held.items():
            is_later = path not in recorded or (recorded[path].since < taken.place and not taken.is_baseline)
            if is_later and (entry is None or _is_file(entry)):
                states[path] = _state(entry)
                unseen.discard(path)
    within = beginning(below)
    found = {path: state for path, state in sorted(states.items()) if state is not None and path.startswith(within)}
    return PastFiles(found, [path for path in found if path in unseen])


class _Past:
    """The records up to a moment."""

    def __init__(self, journal: Journal, moment: int) -> None:
        self._journal: Final = journal
        self._store: Final = journal.store
        self._moment: Final = moment
        self._written: Final[
            dict[Place, dict[DocumentId, WrittenFile]]
        ] = {}  # cached per decision: one may concern many files
        self._taken: Final = _snapshots(journal)
        until = self._last_until(moment)
        # Imported records after the last record with its own time count as imported before the moment.
        self._until: Final = journal.store.end if until == self._last_until(MAX_INT) else until
        self.snapshots: Final = [taken for taken in self._taken if taken.place <= self._until]

    def last_event(self, path: bytes) -> _Event | None:
        """Return the last event of edits and decisions at a path (None: none)."""
        histories = {
            document: self._store.index.history.dated(document) for document in self._store.index.documents.at(path)
        }
        # Imported records may be older than the moment although they come after later records.
        not_later = [place for history in histories.values() for place, time in history if time <= self._moment]
        until = max([self._until, *not_later])
        places = {document: [place for place, _ in history] for document, history in histories.items()}
        events = [
            self._last(document, [each for each in own if each <= until], path) for document, own in places.items()
        ]
        last = [self._with_journal_place(event) for event in events if event is not None]
        if last:
            return max(last, key=lambda event: (event.since, event.recorded_at, event.state is not None))
        return self._found(places, path)

    def refuse_expired_state(self, event: _Event) -> None:
        """Raise EditExpired if the bytes of a state are gone because the edit that led to it expired."""
        if event.state is None or self._store.has(event.state.blob):
            return
        # A decision expires with the edits that it names, so the newest edit up to it is reported.
        places = [place for place, _ in self._store.index.history.dated(event.document) if place <= event.recorded_at]
        for place in reversed(places):
            record, _ = self._store.record(place)
            row = self._store.index.edits.get(record.seq) if isinstance(record, Edit) else None
            if row is not None:
                refuse_expired(self._journal, row)

    # ---- inside

    def _last_until(self, moment: int) -> Place:
        """Return the place of the last record not later than a moment (_BEFORE_FIRST_RECORD: there is none)."""
        index = self._store.index
        found = [taken.place for taken in self._taken if taken.record.time <= moment]
        for places in (index.edits.until(moment), index.decisions.until(moment)):
            made_here = (place for place in places if not _is_imported(self._store.record(place)[0]))
            found += islice(made_here, 1)
        return max(found, default=_BEFORE_FIRST_RECORD)

    def _with_journal_place(self, event: _Event) -> _Event:
        """Return the event with the place at which the journal was when it happened."""
        if event.since <= self._until:
            return event
        return event._replace(since=self._last_until(self._store.record(event.since)[0].time))

    def _last(self, document: DocumentId, places: Sequence[Place], path: bytes) -> _Event | None:
        """Return what the first records of a document, at `places`, say last about a path (None: nothing)."""
        later: _Event | None = None  # the event by which the document left the path
        for event in chain(self._states_after(document, reversed(places)), self._state_before(document, places)):
            if event.path == path:
                # After it left, another document may have taken the path.
                return event if later is None or event.state is None else later._replace(path=path, state=None)
            later = event
        return None

    def _found(self, histories: Mapping[DocumentId, Sequence[Place]], path: bytes) -> _Event | None:
        """Return what the first record that mentions a path found there (None: it brought a file from elsewhere)."""
        met = {
            each[0]: event for each in histories.items() for event in self._state_before(*each) if event.path == path
        }
        came = [
            next((event for event in self._states_after(*each) if event.path == path), None)
            for each in histories.items()
            if each[0] not in met
        ]
        events = [*met.values(), *(event for event in came if event is not None)]
        first = min(events, key=lambda event: event.recorded_at, default=None)
        return None if first is None else met.get(first.document)

    def _state_before(self, document: DocumentId, places: Sequence[Place]) -> Iterator[_Event]:
        """Yield the state of a document before the first of its records, if any are given."""
        for place in places[:1]:
            record, _ = self._store.record(place)
            if isinstance(record, Edit):
                # A file that only came into sight is not new: it counts as it was when it did.
                may_be_older = record.before is None and LEFT_OUT_NOTE in record.notes
                found = record.after if may_be_older else record.before
                path = record.source or record.path
                yield _Event(_BEFORE_FIRST_RECORD, path, found, document, place, may_be_older)

    def _states_after(self, document: DocumentId, places: Iterable[Place]) -> Iterator[_Event]:
        """Yield the states that records gave a document, in the order of `places`."""
        for place in places:
            record = None if place in self._written else self._store.record(place)[0]
            if isinstance(record, Edit):
                yield _Event(place, record.path, record.after, document, place)
                continue
            if isinstance(record, Decision):
                self._written[place] = {written.document: written for written in record.written}
            written = self._written.get(place, {}).get(document)
            if written is not None:
                yield _Event(place, written.path, written.after, document, place)


def _snapshots(journal: Journal) -> list[_SnapshotPlace]:
    """Return the snapshots that have not been deleted, in the order of the journal."""
    taken: list[_SnapshotPlace] = []
    firsts: dict[tuple[bool, int], Place] = {}  # of the snapshots of one time: one that replaces another keeps its time
    for place, is_baseline, is_expired in journal.store.index.holders.snapshot_places():
        record = journal.store.record(place)[0]
        if isinstance(record, Snapshot):
            first = firsts.setdefault((is_baseline, record.time), place)
            if not is_expired:
                taken.append(_SnapshotPlace(first, record))
    return sorted(taken, key=lambda one: (one.place, one.record.number))


def _is_imported(record: Record) -> bool:
    """Return whether a record was imported, with the time that it had elsewhere."""
    if isinstance(record, Edit):
        return MCPDIFF_SOURCE in record.notes
    return isinstance(record, Decision) and record.who == MCPDIFF_SOURCE


def _is_file(entry: TreeEntry | ExcludedEntry | None) -> TypeGuard[TreeEntry]:
    return isinstance(entry, TreeEntry) and not entry.is_folder


def _named(path: bytes, state: FileState | None) -> State:
    blob, mode = (None, 0) if state is None else (state.blob, state.mode)
    return State(path=os.fsdecode(path), blob=blob, mode=mode)


def _state(entry: TreeEntry | None) -> FileState | None:
    return None if entry is None else entry.state
