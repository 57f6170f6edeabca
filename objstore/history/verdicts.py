"""Find who decided on an edit, and through what: its status alone doesn't say it."""

from collections.abc import Sequence
from typing import Final

from objstore.model.basic_types import Action, DocumentId, Status, Unit
from objstore.model.records import Decision
from objstore.model.views import EditView, Verdict
from objstore.storage.log.segment_files import Place
from objstore.storage.transaction.journal import Journal
from objstore.values.fastclass import replace

__all__ = ["Verdicts"]

_NO_VERDICTS: Final = frozenset({Action.GIT, Action.CLAIM})
"""Decisions that keep what was decided: what git does to files, and whose an edit is."""


class Verdicts:
    """The newest decisions on units of edits; each decision is read once, however many documents it is about.

    What was read is kept as long as this object, which is for one list.
    """

    def __init__(self, journal: Journal) -> None:
        """Read nothing yet."""
        self._journal: Final = journal
        self._on: dict[DocumentId, list[tuple[int, Place]]] = {}
        self._read: set[int] = set()
        self._newest: dict[Unit, Verdict] = {}

    def of(self, view: EditView) -> tuple[Verdict, ...]:
        """Return by which decisions the edit's units have their statuses, in the order of the units.

        None for units with the status that they were recorded with, as a person's own change, and for those that git
        took away.
        """
        units = [unit for unit in view.telling_units if view.units[unit.hunk] is not Status.AWAY]
        if units:
            self._read_decisions(view.edit.document, units)
        about: dict[int, list[Unit]] = {}
        found: dict[int, Verdict] = {}
        for unit in units:
            verdict = self._newest.get(unit)
            if verdict is not None and not view.edit.is_made_by(verdict.decision):
                found[verdict.decision] = verdict
                about.setdefault(verdict.decision, []).append(unit)
        return tuple(replace(verdict, units=tuple(about[number])) for number, verdict in found.items())

    def _read_decisions(self, document: DocumentId, units: Sequence[Unit]) -> None:
        """Read the decisions on a document, newest first, until no older one can be a unit's newest."""
        if document not in self._on:
            self._on[document] = self._journal.store.index.decisions.on(document)
        for number, place in self._on[document]:
            if all(unit in self._newest and self._newest[unit].decision >= number for unit in units):
                return
            if number not in self._read:
                self._read.add(number)
                self._read_one(place)

    def _read_one(self, place: Place) -> None:
        with self._journal.reading() as store:
            decision, _ = store.record(place)
        if not isinstance(decision, Decision) or decision.action in _NO_VERDICTS:
            return
        verdict = Verdict(
            units=(),
            decision=decision.number,
            action=decision.action,
            time=decision.time,
            who=decision.who,
            via=decision.via,
            agent=decision.agent,
            commit=decision.commit,
        )
        for unit, _ in decision.verdicts:
            # One that another document led to may be older than what is known.
            known = self._newest.get(unit)
            if known is None or known.decision < decision.number:
                self._newest[unit] = verdict
