"""A document: one file's lineage, replayed from its records, and what it is under any set of verdicts.

Text is a weave. Beside it stand registers for path and permission bits: each holds what the last live writer wrote.
Existence is part of the weave, where creation puts in the first and the last line and deletion takes them out.
A pure value: bytes and records in, states and conflicts out.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from objstore.errors import HistoryBroken
from objstore.ids import BlobId
from objstore.outcomes import Conflict
from objstore.records import Decision, Edit
from objstore.terms import DocumentId, Operation, Seq, Status, Unit
from objstore.weave import UnitIndex, Weave, WeaveConflict

__all__ = ["Document", "Standing"]

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What a document is under its present verdicts."""

    path: bytes  # where it stands, or would stand if it existed
    mode: int
    content: bytes | None  # None: it does not exist


class _Register(Generic[Value]):
    """A value that edits overwrite: the last live writer's counts."""

    def __init__(self, base: Value) -> None:
        self._base = base
        self._written: list[tuple[Unit, Value]] = []

    def write(self, unit: Unit, value: Value) -> None:
        self._written.append((unit, value))

    def read(self, live: Callable[[Unit], bool]) -> tuple[Value, Unit | None]:
        """Return the value and who wrote it (None: it was so from the beginning)."""
        for unit, value in reversed(self._written):
            if live(unit):
                return value, unit
        return self._base, None


class Document:
    """One file's lineage. Edits are added in the order of the journal, with the verdicts that came between."""

    def __init__(self, first: Edit, before: bytes | None) -> None:
        """Begin with what stood before the `first` edit, which is not yet added."""
        self.id: DocumentId = first.document
        self.edits: dict[Seq, Edit] = {}
        self._weave = Weave(before)
        self._units: list[Unit] = [Unit(Seq(0), 0)]  # by weave index
        self._indexes: dict[Unit, UnitIndex] = {}
        self._statuses: dict[Unit, Status] = {}
        self._paths = _Register(first.path if first.source is None else first.source)
        self._modes = _Register(0 if first.before is None else first.before.mode)

    # ---- replay

    def add(self, edit: Edit, after: bytes | None) -> None:
        """Add the next edit, which led from the present state to `after`. Raises HistoryBroken."""
        now = self.standing()
        expected = edit.path if edit.source is None else edit.source
        if (now.content is None) is not (edit.before is None) or (now.content is not None and now.path != expected):
            raise HistoryBroken(self._name(), edit.seq, "it starts from another state than the edits before it lead to")
        try:
            indexes = self._weave.record(after, edit.hunks)
        except ValueError as error:
            raise HistoryBroken(self._name(), edit.seq, str(error)) from error
        self.edits[edit.seq] = edit
        for hunk, index in enumerate(indexes):
            unit = Unit(edit.seq, hunk)
            self._units.append(unit)
            self._indexes[unit] = index
            self._statuses[unit] = edit.status
        whole = Unit(edit.seq, 0)
        if edit.operation in {Operation.MOVE, Operation.CREATE}:
            self._paths.write(whole, edit.path)
        if edit.after is not None and (edit.before is None or edit.before.mode != edit.after.mode):
            self._modes.write(whole, edit.after.mode)
        if edit.status is Status.REJECTED:
            self.give(dict.fromkeys(self.units(edit.seq), Status.REJECTED))

    def replay(self, decision: Decision) -> None:
        """Give the verdicts of a decision, as far as they concern this document."""
        self.give({unit: status for unit, status in decision.verdicts if unit in self._statuses})

    # ---- verdicts

    def units(self, seq: Seq) -> list[Unit]:
        """Return every unit of the edit."""
        return [Unit(seq, hunk) for hunk in range(1 + len(self.edits[seq].hunks))]

    def status(self, unit: Unit) -> Status:
        """Return what was last said of the unit."""
        return self._statuses[unit]

    def knows(self, unit: Unit) -> bool:
        """Return whether the unit is one of this document's."""
        return unit in self._statuses

    def give(self, verdicts: Mapping[Unit, Status]) -> None:
        """Give units new statuses. What results may be in conflict: ask `conflicts`."""
        flips = {}
        for unit, status in verdicts.items():
            live = status is not Status.REJECTED
            if live is not self._live(unit):
                flips[self._indexes[unit]] = live
            self._statuses[unit] = status
        if flips:
            self._weave.set_live(flips)

    def statuses(self, units: Iterable[Unit]) -> dict[Unit, Status]:
        """Return the present status of each of `units`."""
        return {unit: self._statuses[unit] for unit in units}

    # ---- what it is now

    def standing(self) -> Standing:
        """Return path, permission bits and bytes under the present verdicts."""
        return Standing(
            path=self._paths.read(self._live)[0],
            mode=self._modes.read(self._live)[0],
            content=self._weave.text(),
        )

    def path_writer(self) -> Unit | None:
        """Return the unit that put the file where it stands (None: it stood there from the beginning)."""
        return self._paths.read(self._live)[1]

    def conflicts(self) -> tuple[Conflict, ...]:
        """Return every hunk that can't be live together with what else is, in order."""
        found = self._weave.conflicts()
        return tuple(self._conflict(conflict) for conflict in found) if found else ()

    def line(self, unit: Unit) -> int | None:
        """Return the 1-based line at which the text shows the unit (None: it doesn't)."""
        shown = self._weave.unit_lines(self._indexes[unit])
        return None if shown is None else shown[0]

    # ---- inside

    def _live(self, unit: Unit) -> bool:
        return self._statuses[unit] is not Status.REJECTED

    def _conflict(self, found: WeaveConflict) -> Conflict:
        return Conflict(
            kind=found.kind.value,
            unit=self._units[found.unit],
            needs=tuple(self._units[index] for index in found.needs),
            path=self._name(),
            line=found.line,
            removed=found.removed,
            inserted=found.inserted,
        )

    def _name(self) -> str:
        return self._paths.read(self._live)[0].decode("utf-8", "surrogateescape")


def replayed(records: Iterable[Edit | Decision], document: DocumentId, blob: Callable[[BlobId], bytes]) -> Document:
    """Return the document that `records`, in the order of the journal, make. Raises HistoryBroken."""
    built: Document | None = None
    for record in records:
        if isinstance(record, Decision):
            if built is not None:
                built.replay(record)
            continue
        if built is None:
            built = Document(record, None if record.before is None else blob(record.before.blob))
        built.add(record, None if record.after is None else blob(record.after.blob))
    if built is None:
        raise HistoryBroken(str(document), 0, "no edit belongs to it")
    return built
