"""Look up edits, decisions, file states and blobs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from objstore.model.ids import HASH_SIZE
from objstore.values.errors import StoreReplaced
from objstore.workspace.role import Role, reads

# What only some methods need is imported in them: `cas status` must not wait for the review core to load.
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from objstore.history.blame import BlamedLines
    from objstore.history.completions import NameKind, NameSuggestion
    from objstore.history.patch_series import SeriesStep
    from objstore.history.verdicts import Verdicts
    from objstore.model.basic_types import FileState, Seq, Status, Unit
    from objstore.model.ids import BlobId
    from objstore.model.records import Edit
    from objstore.model.results import FileEffect
    from objstore.model.views import (
        DecisionView,
        EditFilter,
        EditView,
        GitEvent,
        HistoryEnd,
        State,
    )
    from objstore.upkeep.integrity.inspection import RecordView, SegmentView, StoreStats


__all__ = ["History"]


class History(Role):
    """Look up edits, decisions, file states and blobs."""

    @reads
    def edits(self, wanted: EditFilter | None = None) -> list[EditView]:
        """Return the edits that match the filter (None: all), in order."""
        from objstore.history import edit_queries
        from objstore.model.views import EditFilter

        return edit_queries.edits(self._journal, EditFilter() if wanted is None else wanted)

    @reads
    def edits_between(self, first: int, last: int) -> list[EditView]:
        """Return the edits from `first` to `last`, in order."""
        from objstore.history import edit_queries

        return edit_queries.edits_between(self._journal, first, last)

    @reads
    def unexpired(self) -> list[Seq]:
        """Return the numbers of all edits that have not expired, in order, without reading their records."""
        return self._store.index.edits.unexpired()

    @reads
    def edit(self, seq: int) -> EditView:
        """Return one edit. Raises NoSuchName."""
        from objstore.history import edit_queries

        return edit_queries.edit(self._journal, seq)

    def sides(self, edit: Edit) -> tuple[bytes | None, bytes | None]:
        """Return the texts before and after an edit, in whose lines its hunks count (None: no file).

        Raises what `text` raises.
        """
        from objstore.text.forms import lines_of

        before, after = (
            None if state is None else lines_of(self.text(state.blob), form)
            for state, form in zip((edit.before, edit.after), edit.forms, strict=True)
        )
        return before, after

    @reads
    def statuses(self, units: Iterable[Unit]) -> dict[Unit, Status]:
        """Return the status of each unit; those that don't exist are left out."""
        wanted = list(units)
        rows = self._store.index.edits.rows({unit.seq for unit in wanted})
        known = (unit for unit in wanted if unit.seq in rows and unit.hunk < len(rows[unit.seq].units))
        return {unit: rows[unit.seq].units[unit.hunk] for unit in known}

    @reads
    def find_units(self, spelling: str) -> tuple[EditView, tuple[Unit, ...]]:
        """Return the edit and the units that a user's text names. Raises NoSuchName, AmbiguousName."""
        from objstore.history import revspec

        seq, units = revspec.find_units(self._journal, spelling)
        return self.edit(seq), units

    @reads
    def named_units(self, *names: str) -> tuple[Unit, ...]:
        """Return the units that `find_units` finds for each name, reading no record. Raises as that does."""
        from objstore.history import revspec

        return tuple(unit for name in names for unit in revspec.find_units(self._journal, name)[1])

    @reads
    def find_conversation(self, spelling: str) -> str:
        """Return the conversation that a user's text names. Raises NoSuchName, AmbiguousName."""
        from objstore.history import revspec

        return revspec.find_conversation(self._journal, spelling)

    @reads
    def find_state(self, spelling: str) -> State:
        """Return the recorded state that a user's text names. Raises NoSuchName, AmbiguousName, EditExpired."""
        from objstore.history import revspec

        with self._store.index.still():
            return revspec.find_state(self._journal, spelling)

    @reads
    def last_state(self, path: str) -> State:
        """Return the last recorded state of the file at a path, whatever characters the path has. Raises NoSuchName."""
        from objstore.history import revspec

        return revspec.last_state(self._journal, path)

    @reads
    def names_with_prefix(self, kind: NameKind, spelling: str, limit: int) -> list[NameSuggestion]:
        """Return up to `limit` names that begin with `spelling`, the most likely ones first."""
        from objstore.history import completions

        return completions.names_with_prefix(self._store, kind, spelling, limit)

    @reads
    def names_similar_to(self, kind: NameKind, spelling: str, limit: int) -> list[str]:
        """Return up to `limit` names that resemble a mistyped `spelling`, the nearest first."""
        from objstore.history import completions

        return completions.names_similar_to(self._store, kind, spelling, limit)

    @reads
    def decisions(self) -> list[DecisionView]:
        """Return every decision, oldest first, including those that were undone."""
        from objstore.history import edit_queries

        return edit_queries.decisions(self._journal)

    def verdicts(self) -> Verdicts:
        """Return what finds by which decisions edits have their statuses; what it has read, it doesn't read again."""
        from objstore.history.verdicts import Verdicts

        return Verdicts(self._journal)

    @reads
    def git_events(self) -> list[GitEvent]:
        """Return what git did to the recorded files, newest first."""
        from objstore.history import git_events

        return git_events.git_events(self._journal)

    @reads
    def commits_of_edits(self) -> dict[Seq, str]:
        """Return the commit, in hex, that accepted each edit, for edits that a commit accepted."""
        from objstore.history import git_events

        return git_events.commits_of_edits(self._journal)

    @reads
    def find_commit(self, spelling: str) -> str:
        """Return the recorded commit, in hex, that a user's text names. Raises NoSuchName, AmbiguousName."""
        from objstore.history import git_events

        return git_events.find_commit(self._journal, spelling)

    @reads
    def end(self) -> HistoryEnd:
        """Return the newest numbers of the history; cheap enough to be called twice a second."""
        from objstore.history import edit_queries

        return edit_queries.history_end(self._journal)

    @reads
    def changed_since(self, end: HistoryEnd) -> list[EditView]:
        """Return the edits that were recorded or decided on since `end` was returned, in order."""
        from objstore.history import edit_queries

        return edit_queries.changed_since(self._journal, end)

    def next_edit(self) -> Seq:
        """Return the number that the next edit gets."""
        with self._journal.mutex, self._journal.translating_index_errors():
            return self._journal.store.next_seq()

    @reads
    def blob(self, blob: BlobId) -> bytes:
        """Return a blob's bytes, verified. Raises BlobMissing, BlobDamaged, BlobTooLarge."""
        return self._store.blob(blob)

    @reads
    def text(self, blob: BlobId) -> bytes:
        """Return the text that a diff shows for a blob: its bytes, or the placeholder line of a large one.

        Raises BlobMissing, BlobDamaged.
        """
        return self._store.text(blob)

    @reads
    def size(self, blob: BlobId) -> int:
        """Return the size of a blob in bytes. Raises BlobMissing."""
        return self._store.size(blob)

    def pieces(self, blob: BlobId) -> Iterator[bytes]:
        """Yield a blob's bytes, whatever their number; each piece is verified, and finally the whole.

        Raises BlobMissing, BlobDamaged, and StoreReplaced if the store was opened again meanwhile.
        """
        # The caller may be slow, or never ask for the next piece: no lock is held between two pieces.
        with self._journal.reading() as begun:
            pieces = begun.pieces(blob)
            piece = next(pieces, None)
        while piece is not None:
            yield piece
            with self._journal.reading() as store:
                if store is not begun:
                    raise StoreReplaced(self._journal.tree.root)  # with that, what was begun is closed
                piece = next(pieces, None)

    @reads
    def sha256(self, blob: BlobId) -> str:
        """Return the SHA-256 of a blob's bytes, in hex. Raises BlobMissing, BlobDamaged."""
        return self._store.sha256(blob).hex()

    @reads
    def blobs(self) -> list[BlobId]:
        """Return every blob's id, ascending."""
        return self._store.index.blobs.between(bytes(HASH_SIZE), b"\xff" * HASH_SIZE, -1)

    @reads
    def records(self) -> list[RecordView]:
        """Return every record in the order of the journal. Raises StoreDamaged."""
        from objstore.upkeep.integrity import inspection

        return list(inspection.records(self._journal))

    @reads
    def segments(self) -> list[SegmentView]:
        """Return every segment, in order. Raises StoreDamaged."""
        from objstore.upkeep.integrity import inspection

        return inspection.segments(self._journal)

    @reads
    def stats(self) -> StoreStats:
        """Return sizes and counts of the store. Raises StoreDamaged."""
        from objstore.upkeep.integrity import inspection

        return inspection.stats(self._journal)

    @reads
    def files_at(self, seq: int | None = None, *, before: bool = False) -> dict[str, FileState]:
        """Return every file that existed after edit `seq` (`before`: just before it; None: now), by path.

        Raises NoSuchName.
        """
        from objstore.history.files_at_edit import files_at

        return files_at(self._journal, seq, before=before)

    @reads
    def files_changed_since(self, seq: int, limit: int) -> list[FileEffect]:
        """Return up to `limit` files whose state after edit `seq` differs from their present recorded one.

        The state before is the one then, the state after the present one. Raises NoSuchName.
        """
        from objstore.history.files_at_edit import files_changed_since

        with self._store.index.still():
            return files_changed_since(self._journal, seq, limit)

    @reads
    def growth(self, count: int) -> list[tuple[int, int]]:
        """Return how many of the store's present bytes were there after each of up to `count` edits, oldest first.

        Each pair is a time, in microseconds since 1970-01-01 UTC, and bytes. What was compacted away is not counted.
        """
        from objstore.upkeep.integrity import inspection

        return inspection.growth(self._journal, count)

    @reads
    def is_mentioned(self, blob: BlobId) -> bool:
        """Return whether an edit that has not expired has the blob as its state before or after."""
        return bool(self._store.index.edits.mentioning(blob))

    @reads
    def files_at_moment(self, moment: int, below: str = "") -> dict[str, FileState]:
        """Return every file below a folder ("": anywhere) that existed at a moment, by path.

        `moment`: microseconds since 1970-01-01 UTC. Computed from edits, decisions and snapshots, as for `PATH@2h`.
        """
        from objstore.history.state_at import files_at_moment

        with self._store.index.still():
            found = files_at_moment(self._journal, moment, os.fsencode(below))
            return {os.fsdecode(path): state for path, state in found.items()}

    @reads
    def blame(self, path: str, at: tuple[Seq, bool] | None = None) -> tuple[bytes, list[BlamedLines]]:
        """Return the last recorded bytes of the file at `path`, and which hunk inserted each of its lines.

        `at`: use the bytes after this edit of the file, or (True) before it. Raises NoSuchName if no file was ever
        recorded at the path, EditExpired, and HistoryBroken.
        """
        from objstore.history.blame import blame

        return blame(self._journal, path, at)

    def series(self, seqs: Sequence[Seq]) -> Iterator[SeriesStep]:
        """Yield what each of the live edits among `seqs` adds to all other live ones, file by file.

        Sorted by the first edit of each, the steps are a series. Raises NoSuchName, EditExpired, HistoryBroken, and
        SeriesBroken if edits that are not chosen depend on chosen ones, which may be known only after the last step.
        """
        from objstore.history.patch_series import series

        with self._journal.reading() as store, store.index.still():
            yield from series(self._journal, seqs)

    @reads
    def cache_documents(self) -> None:
        """Store replayed documents, so that a review of files with long histories starts fast. Raises HistoryBroken."""
        from objstore.history.documents import loader

        loader.cache_documents(self._journal)
