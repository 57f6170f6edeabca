"""The plan of a decision: what it changes in the journal and on disk."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from objstore.disk.file_changes.apply import FileStep
from objstore.model.results import FileEffect
from objstore.values.fastclass import field, variable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from objstore.model.basic_types import DocumentId, FileState, Seq, Status, Unit
    from objstore.model.records import Edit, WrittenFile
    from objstore.model.results import Notice
    from objstore.review.planning.kept_lines import LineKeeper
    from objstore.review.planning.marker_files import MarkerWriter

__all__ = ["DecidedUnits", "Plan"]


@variable
class DecidedUnits:
    """What a decision does to units, gathered document by document. A unit may be in several of these."""

    named: dict[DocumentId, dict[Unit, Status]]  # what was asked for; then, of that, what can be done
    added: list[Unit] = field(default_factory=list)  # decided in addition: dependents, amendments, formatting
    unchanged: dict[Unit, Unit] = field(default_factory=dict)  # keeps its status: the unit because of which it does
    restated: dict[Unit, Status] = field(default_factory=dict)  # recorded even where the status stays the same
    unmarked: list[Seq] = field(default_factory=list)  # edits whose conflict markers are removed
    returned: list[Unit] = field(default_factory=list)  # decided only because these markers are removed


@variable
class Plan:
    """A decision that is computed and not yet recorded."""

    verdicts: dict[Unit, Status]  # changed statuses, and all of a decision that removes markers or takes another back
    cascaded: tuple[Unit, ...]  # units decided in addition to those that were named
    written: tuple[
        WrittenFile, ...
    ]  # the files of all decided documents, before markers and kept lines; some stay unchanged
    external: list[Edit]  # external edits in the batch, recorded before the decision
    disk_stats: dict[bytes, os.stat_result]  # stat results of the files that were compared with their tips, by path
    notices: tuple[Notice, ...]
    emptied: tuple[bytes, ...]  # folders that edits created for files that no longer exist, maybe since earlier
    marked: MarkerWriter
    kept: LineKeeper
    unmarked: tuple[Seq, ...]  # edits whose markers the decision removes
    returned: tuple[Unit, ...]  # units whose status changes only because of that
    taken_out: tuple[tuple[Unit, Unit], ...]  # units that stay pending, each with the one that took its change out
    repeated: tuple[tuple[Unit, Unit], ...]  # units that stay rejected, each with one that makes its change
    older: tuple[Seq, ...]  # creations that are not rejected, because the files may be older
    modes_lost: dict[DocumentId, int]  # setuid and setgid of recorded modes, which their files don't get

    def effects(self) -> tuple[FileEffect, ...]:
        """Return what the decision does to each file that it changes."""
        return tuple(_effect(written, self.modes_lost.get(written.document, 0)) for written in self._changed_files())

    def steps(self) -> list[FileStep]:
        """Return the changes on disk, ordered by path."""
        files = self._changed_files()
        before = {w.path_before: w.before for w in files if w.path_before is not None}
        after = {w.path_after: w.after for w in files if w.path_after is not None}
        moves = {
            w.path_after: w.path_before
            for w in files
            if w.path_before != w.path_after and w.before == w.after and w.path_after not in before
        }
        return [
            FileStep(
                path=path,
                before=before.get(path),
                after=after.get(path),
                moved_from=self._source(path, moves, after),
                is_decided=True,
            )
            for path in sorted({*before, *after})
        ]

    def _changed_files(self) -> list[WrittenFile]:
        """Return the files that change, with the markers and the kept lines in them."""
        written = self.kept.add_to(self.marked.add_to(self.written))
        return [each for each in written if each.is_changed]

    @staticmethod
    def _source(
        path: bytes, moves: Mapping[bytes | None, bytes | None], after: Mapping[bytes, FileState | None]
    ) -> bytes | None:
        source = moves.get(path)
        return None if source is None or source in after else source


def _effect(written: WrittenFile, mode_lost: int) -> FileEffect:
    return FileEffect(
        document=written.document,
        path_before=None if written.path_before is None else os.fsdecode(written.path_before),
        before=None if written.before is None else written.before.blob,
        mode_before=0 if written.before is None else written.before.mode,
        path_after=None if written.path_after is None else os.fsdecode(written.path_after),
        after=None if written.after is None else written.after.blob,
        mode_after=0 if written.after is None else written.after.mode,
        mode_lost=mode_lost,
    )
