"""List the states that one document was in, and the status that each unit had in each of them.

Git may bring the bytes of an earlier state back. Then the units that had their effect in that state have it again, and
later ones do not.
"""

from collections.abc import Iterator, Mapping, Sequence

from objstore.model.basic_types import DocumentId, FileState, Status, Unit
from objstore.model.records import Decision, Edit
from objstore.storage.transaction.journal import Journal
from objstore.values.fastclass import value

__all__ = ["DocumentHistory", "EarlierState", "Stay"]


@value
class EarlierState:
    """A state that a document was in."""

    position: int  # how many of the document's records came before it
    path: bytes  # where the file was, or would have been
    state: FileState | None  # None: there was no file

    def is_at(self, path: bytes, state: FileState | None) -> bool:
        """Return whether a file in this state is what was found at a path (None: nothing was found)."""
        return self.state == state and (state is None or self.path == path)


@value
class Stay:
    """The last state of a file at a path, from which it was then found to be gone."""

    state: EarlierState
    until: int  # when it was found to be gone (ns since 1970-01-01 UTC)
    has_rejected: bool  # whether an edit that had its effect then is rejected now


class DocumentHistory:
    """The edits of one document and the decisions on them, as far as they have not expired."""

    def __init__(self, journal: Journal, document: DocumentId) -> None:
        """Read the records. Raises StoreDamaged."""
        store = journal.store
        records = (store.record(place)[0] for place in store.index.history.of(document))
        self.document = document
        self._records: Sequence[Edit | Decision] = [each for each in records if isinstance(each, Edit | Decision)]

    def states(self) -> list[EarlierState]:
        """Return the states, newest first: the present one, and that before the first edit if it is known."""
        found: list[EarlierState] = []
        for position, record in enumerate(self._records):
            if isinstance(record, Edit):
                if not position and record.document == DocumentId(record.seq):
                    path = record.path if record.source is None else record.source
                    found.append(EarlierState(position=0, path=path, state=record.before))
                found.append(EarlierState(position=position + 1, path=record.path, state=record.after))
                continue
            found += [
                EarlierState(position=position + 1, path=written.path, state=written.after)
                for written in record.written
                if written.document == self.document
            ]
        return found[::-1]

    def stays_at(self, path: bytes) -> Iterator[Stay]:
        """Return the stays of the file at a path, newest first; none if it is there still."""
        newer: EarlierState | None = None
        now = self.statuses()
        for state in self.states():
            if state.state is not None and state.path == path:
                if newer is None:
                    return
                if newer.state is None or newer.path != path:
                    live = [unit for unit, status in self.statuses(state.position).items() if status.is_live]
                    yield Stay(
                        state=state,
                        until=self._records[newer.position - 1].time * 1_000,
                        has_rejected=any(now[unit] is Status.REJECTED for unit in live),
                    )
            newer = state

    def statuses(self, position: int | None = None) -> dict[Unit, Status]:
        """Return the status that every unit had after that many records (None: all of them)."""
        statuses: dict[Unit, Status] = {}
        for record in self._records[:position]:
            if isinstance(record, Edit):
                statuses |= {Unit(record.seq, hunk): record.status for hunk in range(len(record.hunks) + 1)}
            else:
                statuses |= {unit: status for unit, status in record.verdicts if unit in statuses}
        return statuses

    def before_away(self) -> dict[Unit, Status]:
        """Return the status that each unit which is away had before, if it was live then."""
        last: dict[Unit, Status] = {}
        now: dict[Unit, Status] = {}
        for record in self._records:
            if isinstance(record, Edit):
                given = [(Unit(record.seq, hunk), record.status) for hunk in range(len(record.hunks) + 1)]
            else:
                given = [(unit, status) for unit, status in record.verdicts if unit in now]
            now |= given
            last |= {unit: status for unit, status in given if status is not Status.AWAY}
        return {unit: last[unit] for unit, status in now.items() if status is Status.AWAY and last[unit].is_live}

    def verdicts_for(self, state: EarlierState) -> Mapping[Unit, Status]:
        """Return the units whose status has to change so that only what was live in `state` is, with the new status.

        A rejected unit stays rejected, unless it was live in `state`: it has no effect either way, as a person decided.
        What was live then and is live now keeps its status, and what is away gets that which it had last: a person may
        have decided since.
        """
        now, then, last = self.statuses(), self.statuses(state.position), self.before_away()
        verdicts: dict[Unit, Status] = {}
        for unit, status in now.items():
            to = then.get(unit, Status.AWAY)
            if to.is_live and not status.is_live:
                verdicts[unit] = last.get(unit, to)
            elif not to.is_live and status not in {Status.REJECTED, to}:
                verdicts[unit] = to
        return verdicts

    def brings_back(self, state: EarlierState) -> bool:
        """Return whether `state` has anything that is away now."""
        now = self.statuses()
        return any(now[unit] is Status.AWAY and to.is_live for unit, to in self.verdicts_for(state).items())
