"""Find who decided on an edit, and through what: its status alone doesn't say it."""

from collections.abc import Iterable, Iterator
from typing import Final

from objstore.model.basic_types import Action, DocumentId, Status, Unit
from objstore.model.records import Decision
from objstore.model.views import EditView, Verdict
from objstore.storage.transaction.journal import Journal
from objstore.values.fastclass import replace

__all__ = ["Verdicts"]

_NO_VERDICTS: Final = frozenset({Action.GIT, Action.CLAIM})
"""Decisions that keep what was decided: what git does to files, and whose an edit is."""

_MOST_DOCUMENTS: Final = 256
"""Documents whose decisions are remembered: neighbouring edits of a list are mostly of few files."""


class Verdicts:
    """The newest decisions on units of edits; those of a document are read once, and no further than needed."""

    def __init__(self, journal: Journal) -> None:
        """Read nothing yet."""
        self._journal: Final = journal
        self._documents: dict[DocumentId, _Decided] = {}

    def of(self, view: EditView) -> tuple[Verdict, ...]:
        """Return by which decisions the edit's units have their statuses, in the order of the units.

        None for units with the status that they were recorded with, as a person's own change, and for those that git
        took away.
        """
        units = [Unit(view.seq, hunk) for hunk in view.telling if view.units[hunk] is not Status.AWAY]
        if not units:
            return ()
        if len(self._documents) > _MOST_DOCUMENTS:
            self._documents.clear()
        document = view.edit.document
        if document not in self._documents:
            self._documents[document] = _Decided(self._decisions(document))
        found = self._documents[document].verdicts(units)
        return tuple(verdict for verdict in found if not view.edit.is_made_by(verdict.decision))

    def _decisions(self, document: DocumentId) -> Iterator[Decision]:
        """Yield the decisions on a document, newest first."""
        for place in self._journal.store.index.decisions.on(document):
            with self._journal.reading() as store:
                record, _ = store.record(place)
            if isinstance(record, Decision) and record.action not in _NO_VERDICTS:
                yield record


class _Decided:
    """The newest verdict on each unit of one document, as far as its decisions were read."""

    def __init__(self, decisions: Iterator[Decision]) -> None:
        self._unread: Final = decisions
        self._newest: dict[Unit, Verdict] = {}

    def verdicts(self, units: Iterable[Unit]) -> tuple[Verdict, ...]:
        """Return the verdicts on some units, each with those of them that it is about."""
        wanted = list(units)
        while not all(unit in self._newest for unit in wanted) and self._read_one():
            pass
        about: dict[int, list[Unit]] = {}
        found: dict[int, Verdict] = {}
        for unit in wanted:
            verdict = self._newest.get(unit)
            if verdict is not None:
                found[verdict.decision] = verdict
                about.setdefault(verdict.decision, []).append(unit)
        return tuple(replace(verdict, units=tuple(about[number])) for number, verdict in found.items())

    def _read_one(self) -> bool:
        """Read the next older decision; return whether there was one."""
        decision = next(self._unread, None)
        if decision is None:
            return False
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
            self._newest.setdefault(unit, verdict)
        return True
