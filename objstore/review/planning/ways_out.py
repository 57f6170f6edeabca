"""Find the further verdicts that would make a refused decision possible.

Conflicts name hunks, but deciding only on these can lead to further conflicts. So each answer is tried on the loaded
documents before it is given, and their statuses are restored afterwards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from objstore.history.documents.marked_text import markers_removed_by
from objstore.model.basic_types import ConflictKind, Status
from objstore.review.planning.marker_removal import without_markers
from objstore.review.planning.path_conflicts import find_path_conflicts, path_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from objstore.model.basic_types import DocumentId, Seq, Unit
    from objstore.model.results import Conflict
    from objstore.review.planning.marker_removal import WithoutMarkers
    from objstore.storage.transaction.journal import Journal
    from objstore.weave.document import Document

__all__ = ["WaysOut"]


class WaysOut:
    """The search for further verdicts, for one refused decision."""

    def __init__(
        self,
        journal: Journal,
        load: Callable[[DocumentId], Document],
        document_of: Callable[[Unit], DocumentId | None],
        *,
        before: Seq,
        is_new: bool,
    ) -> None:
        """`load`: returns a document of the decision. `document_of`: that of a unit; None: its edit has expired.

        `before`, `is_new`: as for `without_markers`.
        """
        self._journal: Final = journal
        self._load: Final = load
        self._document_of: Final = document_of
        self._before: Final = before
        self._is_new: Final = is_new

    def find(
        self,
        conflicts: Iterable[Conflict],
        before: Mapping[DocumentId, bytes],
        given: Mapping[DocumentId, Mapping[Unit, Status]],
    ) -> tuple[list[Unit], list[Unit]]:
        """Return the units to accept and the units to reject that would make the decision possible (none: impossible).

        If the decision makes anything live, the reviewer rejects these units first, so rejecting them must also be
        possible as a decision of its own. Both are tried.
        """
        statuses, wanted = dict(before), {document: dict(share) for document, share in given.items()}
        rejections: dict[DocumentId, dict[Unit, Status]] = {}
        path_conflicts = [conflict for conflict in conflicts if conflict.kind is ConflictKind.PATH_TAKEN]
        for unit in (unit for conflict in path_conflicts for unit in conflict.needs):
            document = self._document_of(unit)
            if document is None:  # the edit has expired
                return [], []
            if unit not in wanted.setdefault(document, {}):
                statuses.setdefault(document, self._load(document).statuses())
                rejections.setdefault(document, {})[unit] = wanted[document][unit] = Status.REJECTED
        makes_live = any(status.is_live for share in given.values() for status in share.values())
        for document, current in statuses.items():
            share, rejected = wanted.setdefault(document, {}), rejections.setdefault(document, {})
            if not self._complete(self._load(document), current, share, rejected, reject_first=makes_live):
                return [], []
        tries = [wanted, rejections] if makes_live else [wanted]
        if not all(self._is_possible(statuses, shares) for shares in tries):
            return [], []
        verdicts = {unit: status for document in statuses for unit, status in wanted[document].items()}
        live = {unit for unit, status in verdicts.items() if status.is_live}
        return [*live.difference(*given.values())], [unit for document in statuses for unit in rejections[document]]

    def _complete(
        self,
        loaded: Document,
        statuses: bytes,
        wanted: dict[Unit, Status],
        rejections: dict[Unit, Status],
        *,
        reject_first: bool,
    ) -> bool:
        """Add the further verdicts needed to `wanted`, and the rejections among them to `rejections`.

        `reject_first`: the rejections must be possible as a decision of their own. Returns False if nothing helps.
        """
        while True:
            more = self._ways_out(loaded, statuses, wanted)
            if more is None:
                return False
            wanted |= more
            rejections |= {unit: status for unit, status in more.items() if status is Status.REJECTED}
            more = self._ways_out(loaded, statuses, rejections) if reject_first and rejections else {}
            if more is None:
                return False
            rejections |= more
            missing = {unit: status for unit, status in more.items() if unit not in wanted}
            wanted |= missing
            if not missing:
                return True

    def _is_possible(
        self, statuses: Mapping[DocumentId, bytes], shares: Mapping[DocumentId, Mapping[Unit, Status]]
    ) -> bool:
        """Return whether these verdicts would be possible with the documents at `statuses`."""
        paths: dict[DocumentId, bytes | None] = {}
        found = False
        for document, before in statuses.items():
            loaded = self._load(document)
            loaded.restore_statuses(before)
            if shares.get(document):
                loaded.set_statuses(self._without_markers(loaded, shares[document]).verdicts)
            found = found or bool(loaded.conflicts())
            paths[document] = path_of(loaded)
        found = found or bool(find_path_conflicts(self._journal.store.index, self._load, paths, ()))
        for document, before in statuses.items():
            self._load(document).restore_statuses(before)
        return not found

    def _ways_out(self, loaded: Document, statuses: bytes, given: Mapping[Unit, Status]) -> dict[Unit, Status] | None:
        """Return the further verdicts that `given` needs, with the document at `statuses` (None: nothing helps)."""
        further: dict[Unit, Status] = {}
        while True:
            loaded.restore_statuses(statuses)
            rest = self._without_markers(loaded, {**given, **further})
            ways = loaded.preview_cascade(rest.verdicts)
            if ways.blocked and not ways.accept_first:
                return None
            further |= dict.fromkeys(loaded.units_at(ways.accept_first), Status.ACCEPTED)
            further |= dict.fromkeys(loaded.units_at(ways.rejected), Status.REJECTED)
            # A decision that also names these units may remove more markers.
            if not self._is_new:
                return further
            gone, _ = markers_removed_by(self._journal, loaded.id, {**given, **further})
            if gone == rest.unmarked:
                return further

    def _without_markers(self, loaded: Document, named: Mapping[Unit, Status]) -> WithoutMarkers:
        return without_markers(self._journal, loaded, named, before=self._before, is_new=self._is_new)
