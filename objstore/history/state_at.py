"""The timeline of paths: what stood there at a moment, as far as edits, decisions and snapshots tell.

The journal's order counts, and not the clock's: a moment is behind the last record that is not later than it. Only what
was taken over from elsewhere is older than its place in the journal says. What has expired tells as it did before: its
record is kept, and where the bytes are not, that is said. The baseline tells only of what no record does: whatever
became otherwise than it has a record, and one that takes the place of another holds what stood long before it was made.
"""

import os
import stat
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Final, NamedTuple, TypeGuard

from objstore.history.expired import refuse_expired
from objstore.history.snapshot_check import naming
from objstore.log.segment_files import Place
from objstore.model.basic_types import MAX_INT, DocumentId, FileState
from objstore.model.records import MCPDIFF_SOURCE, Decision, Edit, Record, Snapshot, WrittenFile
from objstore.model.relpath import beginning, folders_of
from objstore.model.tree import ExcludedEntry, TreeEntry, entry_at, tree_files
from objstore.model.views import State
from objstore.transaction.journal import Journal

__all__ = ["files_at_moment", "state_at_moment"]

_BEFORE_FIRST_RECORD: Final = Place(0, 0)
"""In place of a record's: since before anything was recorded."""


class _Event(NamedTuple):
    """What became of one document."""

    since: Place  # of the last record by then; _BEFORE_ALL: it was so before any
    path: bytes
    state: FileState | None  # None: it does not exist
    document: DocumentId
    told: Place  # of the record that says so


class _Taken(NamedTuple):
    """A snapshot that has not been deleted."""

    place: Place  # of its record; of a baseline that took another's place, of that one's
    record: Snapshot

    @property
    def scope(self) -> bytes:
        """Return how every path that it covers begins."""
        return beginning(self.record.path or b"")

    @property
    def is_baseline(self) -> bool:
        """Return whether it tells only of what no record does."""
        return not self.record.who and self.record.path is None


def state_at_moment(journal: Journal, path: bytes, moment: int) -> State | None:
    """Return what stood at `path` at a moment, in microseconds since 1970-01-01 UTC (None: nothing tells).

    Before the first record that tells of a file, it is what that record found. Raises SnapshotUnreadable, and
    EditExpired where the bytes are gone with what had expired.
    """
    past = _Past(journal, moment)
    event = past.told(path)
    for taken in reversed(past.snapshots):
        if event is not None and (taken.is_baseline or taken.place <= event.since):
            break
        if path.startswith(taken.scope):
            with naming(journal.store, (taken.record.number, taken.record.root)):
                entry = entry_at(taken.record.root, path[len(taken.scope) :], journal.store.blob)
            if entry is None or _is_file(entry):
                return _named(path, _state(entry))
    if event is None:
        return None
    past.refuse_expired_state(event)
    return _named(path, event.state)


def files_at_moment(journal: Journal, moment: int, below: bytes = b"") -> dict[bytes, FileState]:
    """Return every file below a folder (b"": anywhere) for which `state_at_moment` tells of one, by path.

    Also those whose bytes are gone, with what they were. Raises SnapshotUnreadable.
    """
    past = _Past(journal, moment)
    recorded = {path: event for path in journal.store.index.documents.paths_below(below) if (event := past.told(path))}
    told = {path: event.state for path, event in recorded.items()}
    for taken in past.snapshots:
        if taken.is_baseline:
            told |= {path: event.state for path, event in recorded.items() if event.since < taken.place}
        held: dict[bytes, TreeEntry | ExcludedEntry | None] = {}
        with naming(journal.store, (taken.record.number, taken.record.root)):
            held.update(tree_files(taken.record.root, journal.store.blob, taken.scope))
        left_out = {path for path, entry in held.items() if isinstance(entry, ExcludedEntry)}
        for path in [path for path in told if path.startswith(taken.scope) and path not in held]:
            if not any(folder in left_out for folder in folders_of(path)):
                held[path] = None
        for path, entry in held.items():
            is_later = path not in recorded or (recorded[path].since < taken.place and not taken.is_baseline)
            if is_later and (entry is None or _is_file(entry)):
                told[path] = _state(entry)
    within = beginning(below)
    return {path: state for path, state in sorted(told.items()) if state is not None and path.startswith(within)}


class _Past:
    """What is recorded, as far as it was at a moment."""

    def __init__(self, journal: Journal, moment: int) -> None:
        self._journal: Final = journal
        self._store: Final = journal.store
        self._moment: Final = moment
        self._written: Final[dict[Place, dict[DocumentId, WrittenFile]]] = {}  # by decisions: one may be on many files
        self._taken: Final = _snapshots(journal)
        until = self._last_until(moment)
        # Who took over what lies behind all that has its own time did so before the moment, as far as can be told.
        self._until: Final = journal.store.end if until == self._last_until(MAX_INT) else until
        self.snapshots: Final = [taken for taken in self._taken if taken.place <= self._until]

    def told(self, path: bytes) -> _Event | None:
        """Return what edits and decisions say last of a path (None: nothing)."""
        histories = {
            document: self._store.index.history.dated(document) for document in self._store.index.documents.at(path)
        }
        # Of what was taken over, some may be of the moment's past and lie behind what is later.
        not_later = [place for history in histories.values() for place, time in history if time <= self._moment]
        until = max([self._until, *not_later])
        places = {document: [place for place, _ in history] for document, history in histories.items()}
        events = [
            self._last(document, [each for each in own if each <= until], path) for document, own in places.items()
        ]
        last = [self._placed(event) for event in events if event is not None]
        if last:
            return max(last, key=lambda event: (event.since, event.told, event.state is not None))
        return self._found(places, path)

    def refuse_expired_state(self, event: _Event) -> None:
        """Raise EditExpired where the bytes of a state are gone because what led to it has expired."""
        if event.state is None or self._store.has(event.state.blob):
            return
        # A decision expires with the edits that it names: of these, or what took them along, the newest is named.
        places = [place for place, _ in self._store.index.history.dated(event.document) if place <= event.told]
        for place in reversed(places):
            record, _ = self._store.record(place)
            row = self._store.index.edits.get(record.seq) if isinstance(record, Edit) else None
            if row is not None:
                refuse_expired(self._journal, row)

    # ---- inside

    def _last_until(self, moment: int) -> Place:
        """Return where the last record lies that is not later than a moment (_BEFORE_ALL: there is none)."""
        index = self._store.index
        found = [taken.place for taken in self._taken if taken.record.time <= moment]
        for places in (index.edits.until(moment), index.decisions.until(moment)):
            made_here = (place for place in places if not _is_taken_over(self._store.record(place)[0]))
            found += islice(made_here, 1)
        return max(found, default=_BEFORE_FIRST_RECORD)

    def _placed(self, event: _Event) -> _Event:
        """Return an event from the place on at which the journal was when it came about."""
        if event.since <= self._until:
            return event
        return event._replace(since=self._last_until(self._store.record(event.since)[0].time))

    def _last(self, document: DocumentId, places: Sequence[Place], path: bytes) -> _Event | None:
        """Return what the records at some places, a document's first ones, say last of a path (None: nothing)."""
        later: _Event | None = None  # by which the document stands elsewhere
        for event in chain(self._made(document, reversed(places)), self._met(document, places)):
            if event.path == path:
                # Since it left, another may have come there.
                return event if later is None or event.state is None else later._replace(path=path, state=None)
            later = event
        return None

    def _found(self, histories: Mapping[DocumentId, Sequence[Place]], path: bytes) -> _Event | None:
        """Return what the first record that tells of a path found there (None: it brought a file from elsewhere)."""
        met = {each[0]: event for each in histories.items() for event in self._met(*each) if event.path == path}
        came = [
            next((event for event in self._made(*each) if event.path == path), None)
            for each in histories.items()
            if each[0] not in met
        ]
        events = [*met.values(), *(event for event in came if event is not None)]
        first = min(events, key=lambda event: event.told, default=None)
        return None if first is None else met.get(first.document)

    def _met(self, document: DocumentId, places: Sequence[Place]) -> Iterator[_Event]:
        """Yield what a document was before the first of its records, if any are given."""
        for place in places[:1]:
            record, _ = self._store.record(place)
            if isinstance(record, Edit):
                yield _Event(_BEFORE_FIRST_RECORD, record.source or record.path, record.before, document, place)

    def _made(self, document: DocumentId, places: Iterable[Place]) -> Iterator[_Event]:
        """Yield what records made of a document, one after the other."""
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


def _snapshots(journal: Journal) -> list[_Taken]:
    """Return the snapshots that have not been deleted, in the order of the journal."""
    places = journal.store.index.holders.snapshot_places()
    baselines = [place for place, is_baseline, _ in places if is_baseline]
    taken: list[_Taken] = []
    for place, is_baseline, is_expired in places:
        record = None if is_expired else journal.store.record(place)[0]
        if isinstance(record, Snapshot):
            before = baselines[: baselines.index(place)] if is_baseline else []
            taken.append(_Taken(_first_at(journal, before, record.time) or place, record))
    return sorted(taken, key=lambda one: (one.place, one.record.number))


def _first_at(journal: Journal, baselines: Sequence[Place], time: int) -> Place | None:
    """Return the baseline whose place others took, up to the one that is of a time (None: it took nobody's).

    `baselines`: those before it. One that takes another's place has the time of that one.
    """
    first = bisect_left(baselines, 1, key=lambda place: int(journal.store.record(place)[0].time == time))
    return baselines[first] if first < len(baselines) else None


def _is_taken_over(record: Record) -> bool:
    """Return whether a record has the time that it had elsewhere."""
    if isinstance(record, Edit):
        return MCPDIFF_SOURCE in record.notes
    return isinstance(record, Decision) and record.who == MCPDIFF_SOURCE


def _is_file(entry: TreeEntry | ExcludedEntry) -> TypeGuard[TreeEntry]:
    return isinstance(entry, TreeEntry) and entry.is_file


def _named(path: bytes, state: FileState | None) -> State:
    blob, mode = (None, 0) if state is None else (state.blob, state.mode)
    return State(path=os.fsdecode(path), blob=blob, mode=mode)


def _state(entry: TreeEntry | None) -> FileState | None:
    return None if entry is None else FileState(blob=entry.blob, mode=stat.S_IMODE(entry.mode))
