"""Replay one file's records into a document, and compute it under any set of verdicts.

A document consists of a weave for the text, and registers for path, permission bits and text form, each of which holds
what its last live writer wrote. Existence is part of the weave: creation inserts the file's bounds, and deletion
deletes them. A document is pure: bytes and records go in, states and conflicts come out.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Generic, NamedTuple, Self, TypeVar

from objstore.model.basic_types import ConflictKind, DocumentId, Seq, Status, Unit
from objstore.model.ids import BlobId
from objstore.model.large_file_placeholder import is_placeholder, mixes_placeholders
from objstore.model.records import Anchor, Edit
from objstore.model.replay_records import ReplayDecision, ReplayEdit
from objstore.model.results import Conflict, Notice
from objstore.text.forms import TextForm, encoded, expressed, is_binary, lines_of
from objstore.text.splice import Splice
from objstore.values.errors import HistoryBroken
from objstore.values.fastclass import replace, value
from objstore.weave.conflict_markers import Labels, MarkedText
from objstore.weave.dependents import Cascade, cascade
from objstore.weave.line_weave import BASE, UnitIndex, Weave, WeaveConflict
from objstore.weave.serialize import WeaveState

__all__ = ["Document", "DocumentState", "DocumentVersion", "replayed"]

Value = TypeVar("Value")

_LETTERS: Final = {Status.PENDING: b"p", Status.ACCEPTED: b"a", Status.REJECTED: b"r", Status.AWAY: b"w"}
_STATUSES: Final = {letter[0]: status for status, letter in _LETTERS.items()}
_LIVE: Final = frozenset(_LETTERS[status][0] for status in Status if status.is_live)
_OTHER: Final = re.compile(rb"[^\0]")
"""A byte in which two arrays differ, in their exclusive or."""

NO_EDIT: Final = Unit(Seq(0), 0)
"""The unit of text that no edit wrote: the text before the first edit."""

_OPPOSITE: Final = {ord("a"): ord("r"), ord("r"): ord("a")}
"""The opposite status; a unit that is pending or away has none."""


@value
class DocumentVersion:
    """The path, text and mode of a document under its current verdicts."""

    path: bytes  # where the file is, or would be if it existed
    mode: int
    content: bytes | None  # None: it does not exist
    form: TextForm = TextForm.PLAIN  # in which its lines are counted


class DocumentState(NamedTuple):
    """The state of a document apart from its weave, to be cached and loaded again."""

    document: int
    seqs: list[int]  # numbers of its edits
    firsts: list[int]  # the first weave unit of each edit
    statuses: bytes  # one letter for each unit of the weave
    path: bytes  # before the first edit
    paths: list[tuple[int, bytes]]  # edit, path that it wrote
    mode: int  # before the first edit
    modes: list[tuple[int, int]]  # edit, permission bits that it wrote
    amendments: list[tuple[int, int]]  # edit, the one that it amends
    is_large: bool  # whether any state of it is represented by a large-file placeholder
    form: int  # text form before the first edit
    forms: list[tuple[int, int]]  # edit, text form that it wrote


class _Register(Generic[Value]):
    """A value that edits overwrite: the last live writer's value counts."""

    def __init__(self, base: Value, written: Iterable[tuple[int, Value]] = ()) -> None:
        self._base = base
        self._written = [(Unit(Seq(seq), 0), value) for seq, value in written]

    def write(self, unit: Unit, value: Value) -> None:
        self._written.append((unit, value))

    def units(self) -> list[Unit]:
        """Return the units that wrote a value, live or not."""
        return [unit for unit, _ in self._written]

    def writers(self, live: Callable[[Unit], bool]) -> list[Unit]:
        """Return the live units that wrote a value, the last first."""
        return [unit for unit, _ in reversed(self._written) if live(unit)]

    def read(self, live: Callable[[Unit], bool]) -> tuple[Value, Unit | None]:
        """Return the value and the unit that wrote it (None: it is the initial value)."""
        for unit, written in reversed(self._written):
            if live(unit):
                return written, unit
        return self._base, None

    def written_by(self, unit: Unit) -> list[Value]:
        """Return the values that the unit wrote."""
        return [value for writer, value in self._written if writer == unit]

    def state(self) -> tuple[Value, list[tuple[int, Value]]]:
        """Return the initial value, and the values written since with their edits."""
        return self._base, [(unit.seq, value) for unit, value in self._written]


class Document:
    """One file's lineage. Edits are added in the order of the journal, with the verdicts between them."""

    def __init__(self, state: DocumentState, weave: Weave) -> None:
        """Load a cached state; use `before_edit` for a new document."""
        self.id: DocumentId = DocumentId(state.document)
        self._weave = weave
        self._seqs = [Seq(seq) for seq in state.seqs]
        self._firsts = list(state.firsts)
        self._statuses = bytearray(state.statuses)
        self._paths = _Register(state.path, state.paths)
        self._modes = _Register(state.mode, state.modes)
        self._amendments = [(Seq(seq), Seq(amended)) for seq, amended in state.amendments]
        self._is_large = state.is_large
        self._forms = _Register(TextForm(state.form), [(seq, TextForm(form)) for seq, form in state.forms])

    @classmethod
    def before_edit(cls, first: Edit | ReplayEdit, before: bytes | None) -> Self:
        """Return a document with the state before the `first` edit, which is not yet added."""
        path = first.path if first.source is None else first.source
        mode = 0 if first.before is None else first.before.mode
        try:
            return cls.without_edits(
                first.document, DocumentVersion(path=path, mode=mode, content=before, form=first.forms[0])
            )
        except ValueError as error:
            raise HistoryBroken(path.decode("utf-8", "surrogateescape"), first.seq, str(error)) from error

    @classmethod
    def without_edits(cls, document: DocumentId, version: DocumentVersion) -> Self:
        """Return a document of which only the present state is known: it has no edits, or none any more.

        Raises ValueError if the content does not have the form.
        """
        content = version.content
        state = DocumentState(
            document=document,
            seqs=[],
            firsts=[],
            statuses=_LETTERS[Status.ACCEPTED],
            path=version.path,
            paths=[],
            mode=version.mode,
            modes=[],
            amendments=[],
            is_large=content is not None and is_placeholder(content),
            form=version.form,
            forms=[],
        )
        return cls(state, Weave(None if content is None else lines_of(content, version.form)))

    @property
    def is_clean(self) -> bool:
        """Return whether its weave has no conflicts, so that it may be cached."""
        return self._weave.is_clean

    @property
    def text_bytes(self) -> int:
        """Return how many bytes its lines have, those that are not shown included."""
        return sum(len(run.text) for run in self._weave.runs())

    def state(self) -> tuple[DocumentState, WeaveState]:
        """Return the complete state of the document. Raises ValueError while there are conflicts."""
        path, paths = self._paths.state()
        mode, modes = self._modes.state()
        form, forms = self._forms.state()
        state = DocumentState(
            document=self.id,
            seqs=list(self._seqs),
            firsts=list(self._firsts),
            statuses=bytes(self._statuses),
            path=path,
            paths=paths,
            mode=mode,
            modes=modes,
            amendments=list(self._amendments),
            is_large=self._is_large,
            form=int(form),
            forms=[(seq, int(written)) for seq, written in forms],
        )
        return state, self._weave.state()

    # ---- replay

    def add(self, edit: Edit | ReplayEdit, after: bytes | Splice | None) -> None:
        """Add the next edit, which led from the present state to `after`. Raises HistoryBroken.

        A splice gives the change to the present text; neither that text nor the result is a placeholder, and both are
        plain.
        """
        exists, status = self._weave.has_file(), edit.status
        expected = edit.path if edit.source is None else edit.source
        if exists is (edit.before is None) or (exists and self._paths.read(self._is_live)[0] != expected):
            raise HistoryBroken(self._name(), edit.seq, "it starts from another state than the earlier edits lead to")
        try:
            if isinstance(after, Splice):
                indexes = self._weave.record_splice(after, edit.hunks, needs_file=edit.changes_whole)
            else:
                text = None if after is None else lines_of(after, edit.forms[1])
                indexes = self._weave.record(text, edit.hunks, needs_file=edit.changes_whole)
                self._is_large = self._is_large or (after is not None and is_placeholder(after))
        except ValueError as error:
            raise HistoryBroken(self._name(), edit.seq, str(error)) from error
        self._seqs.append(edit.seq)
        self._firsts.append(indexes[0])
        self._statuses += _LETTERS[status] * len(indexes)
        if edit.source is not None or edit.before is None:
            self._paths.write(Unit(edit.seq, 0), edit.path)
        if edit.after is not None and (edit.before is None or edit.before.mode != edit.after.mode):
            self._modes.write(Unit(edit.seq, 0), edit.after.mode)
        if edit.after is not None and edit.forms[1] is not self._forms.read(self._is_live)[0]:
            self._forms.write(Unit(edit.seq, 0), edit.forms[1])
        if edit.amends is not None:
            self._amendments.append((edit.seq, edit.amends))
        if not status.is_live:
            self._weave.flip(dict.fromkeys(indexes, False))

    def replay(self, decision: ReplayDecision) -> None:
        """Apply the verdicts of a decision, as far as they concern this document."""
        verdicts = decision.of_edits(self._seqs)
        self.set_statuses({unit: status for unit, status in verdicts.items() if self.knows(unit)})

    # ---- verdicts

    @property
    def last(self) -> Seq:
        """Return the newest edit (0: it has none)."""
        return self._seqs[-1] if self._seqs else Seq(0)

    def units(self, seq: Seq) -> list[Unit]:
        """Return every unit of the edit."""
        at = bisect_left(self._seqs, seq)
        return [Unit(seq, hunk) for hunk in range(self._end(at) - self._firsts[at])]

    def knows(self, unit: Unit) -> bool:
        """Return whether the unit is one of this document's."""
        if not self._has(unit.seq):
            return False
        at = bisect_left(self._seqs, unit.seq)
        return 0 <= unit.hunk < self._end(at) - self._firsts[at]

    def has(self, seq: Seq) -> bool:
        """Return whether the edit is one of this document's."""
        return self._has(seq)

    def first_ever_rejected(self) -> Seq | None:
        """Return the first edit of which anything is not live, or ever was not; None if there is none."""
        index = self._weave.first_ever_rejected()
        return None if index is None else self._unit(index).seq

    def count_since(self, seq: Seq) -> int:
        """Return the number of edits from `seq` on."""
        return len(self._seqs) - bisect_left(self._seqs, seq)

    def is_rejected(self, unit: Unit) -> bool:
        """Return whether the unit is one of this document's and not live: rejected, or away."""
        return self.knows(unit) and not self._is_live(unit)

    def statuses(self) -> bytes:
        """Return the status of every unit, for `changed_since` and `restore_statuses`."""
        return bytes(self._statuses)

    def changed_since(self, statuses: bytes) -> dict[Unit, Status]:
        """Return the units that had another status at the time of `statuses`, with their present status.

        Units recorded since then were accepted when they were recorded: they are external edits.
        """
        changed = _differing(statuses.ljust(len(self._statuses), _LETTERS[Status.ACCEPTED]), self._statuses)
        return {self._unit(index): _STATUSES[self._statuses[index]] for index in changed}

    def set_statuses(self, verdicts: Mapping[Unit, Status]) -> None:
        """Set new statuses of units. The result may be in conflict: see `conflicts`."""
        self._weave.flip(self._flips(verdicts))
        self._set_status(verdicts)

    def restore_statuses(self, statuses: bytes) -> None:
        """Restore every unit's status at the time of `statuses`; units recorded since keep theirs."""
        changed = map(UnitIndex, _differing(statuses, self._statuses[: len(statuses)]))
        lives = ((index, statuses[index] in _LIVE) for index in changed)
        self._weave.flip({index: live for index, live in lives if live is not self._live(index)})
        self._statuses[: len(statuses)] = statuses

    def set_with_dependents(self, verdicts: Mapping[Unit, Status]) -> tuple[Unit, ...]:
        """Reject the units of `verdicts`, and return what had to be rejected with them, in that order."""
        gone = tuple(map(self._unit, self._cascaded(verdicts).rejected))
        self._set_status({**verdicts, **dict.fromkeys(gone, Status.REJECTED)})
        return gone

    def set_with_markers(
        self, verdicts: Mapping[Unit, Status], labels: Callable[[Mapping[Unit, Status], list[Unit]], Labels]
    ) -> tuple[MarkedText, dict[Unit, Status]] | None:
        """Set new statuses of units, set conflicting ones aside, and return the text with markers and those set aside.

        Units set aside are rejected; they are returned with the status that they had. `labels`: called for each region
        with the decided units that have a part in it, and the units set aside there. None if nothing had to be set
        aside, or markers can't show the conflict: then `conflicts` describes it.
        """
        flips = self._flips(verdicts)
        conflicting_units = self._weave.conflicting_units().values()
        # Units that an earlier conflict lacks are shown on the side that lacks them.
        lacking = {unit: True for needs in conflicting_units for unit in needs if not self._weave.is_live(unit)}
        theirs = self._visibility_with(lacking)
        done = self._cascaded(verdicts)
        if done.blocked:
            self.set_statuses(verdicts)
            return None
        self._set_status(verdicts)
        if not done.rejected:
            return None
        base = self._visibility_with(lacking | {index: not live for index, live in flips.items()})
        decided = {**verdicts, **{self._unit(index): Status.REJECTED for index in lacking if index not in flips}}
        gone = {unit: self._status(unit) for unit in map(self._unit, done.rejected)}

        def labelled(units: set[UnitIndex]) -> Labels:
            here = {self._unit(index) for index in units if index != BASE}
            return labels(
                {unit: status for unit, status in decided.items() if unit in here},
                [unit for unit in gone if unit in here],
            )

        found = self._weave.marked(base, theirs, labelled)
        if found is None:
            self._weave.flip(dict.fromkeys(done.rejected, True))
            return None
        self._set_status(dict.fromkeys(gone, Status.REJECTED))
        return found, gone

    def _visibility_with(self, changes: Mapping[UnitIndex, bool]) -> bytes:
        """Return which runs would be shown after `changes`; nothing is changed."""
        before = {index: self._weave.is_live(index) for index in changes}
        self._weave.flip(changes)
        found = self._weave.visibility()
        self._weave.flip(before)
        return found

    def amendments(self, verdicts: Mapping[Unit, Status], after: int = 0) -> list[Unit]:
        """Return the live units that `verdicts` reject as well, because they amend an edit with no live unit left.

        Units that `verdicts` name themselves are not among them, nor those of edits up to `after`.
        """
        given = dict(verdicts)
        for seq, amended in self._amendments:  # ascending, so that amendments of amendments go too
            if seq <= after:
                continue
            units = self._units_with_effect(amended)
            goes = not any(given.get(unit, self._status(unit)).is_live for unit in units)
            if goes and any(map(self._is_live, units)):
                given |= {
                    unit: Status.REJECTED for unit in self.units(seq) if unit not in given and self._is_live(unit)
                }
        return [unit for unit in given if unit not in verdicts]

    def repeated(self, verdicts: Mapping[Unit, Status]) -> dict[Unit, Unit]:
        """Return the units that `verdicts` make live though another live unit makes their change, each with that one.

        A whole-file part without an effect goes with the hunks of its edit.
        """
        found: dict[Unit, Unit] = {}
        for unit, status in verdicts.items():
            again = self._weave.with_same_change(self._index(unit)) if status.is_live else None
            if again is None:
                continue
            other = self._unit(again)
            is_kept = verdicts.get(other, Status.PENDING).is_live
            registers: tuple[_Register[Any], ...] = (self._paths, self._modes, self._forms)
            if is_kept and all(each.written_by(unit) == each.written_by(other) for each in registers):
                found[unit] = other
        return found | {unit: Unit(other.seq, 0) for unit, other in self._idle_parts(verdicts, found).items()}

    def taken_out(self, units: Iterable[Unit], rejected: Iterable[Unit] = ()) -> dict[Unit, Unit]:
        """Return those of pending `units` whose whole effect accepted units took out, each with one of these.

        Without such a unit, the document would be the same. A whole-file part without an effect goes with the hunks of
        its edit. `rejected`: units that are rejected together with this, and so take nothing out.
        """
        statuses = self.statuses()
        self.set_statuses(dict.fromkeys(rejected, Status.REJECTED))
        given = [unit for unit in units if self._status(unit) is Status.PENDING]
        takers = {unit: taker for unit in given if (taker := self._taker(unit)) is not None}
        before, now = self.statuses(), self.version()
        found: dict[Unit, Unit] = {}
        for unit, taker in takers.items():
            self.set_statuses({unit: Status.REJECTED})
            same = self.version()
            if not self.conflicts() and (same == now or same.content is now.content is None):
                found[unit] = taker
            self.restore_statuses(before)
        found |= self._idle_parts(given, found)
        self.restore_statuses(statuses)
        return found

    def overwritten(self, units: Iterable[Unit]) -> set[Unit]:
        """Return those of some live units of which the text shows nothing, because others than these changed it all."""
        found: set[Unit] = set()
        given: set[UnitIndex] = set()
        for unit in sorted(units, reverse=True):  # what changed a unit is newer
            takers = self._weave.takers(self._index(unit))
            if takers and all(takers) and not all(map(given.intersection, takers)):
                found.add(unit)
            else:
                given.add(self._index(unit))
        return found

    def _taker(self, unit: Unit) -> Unit | None:
        """Return an accepted unit that took out all that `unit` did; None if not all of it is taken out."""
        takers = list(map(self._accepted, self._weave.takers(self._index(unit))))
        registers: tuple[_Register[Any], ...] = (self._paths, self._modes, self._forms)
        for register in registers if self._weave.has_file() else ():
            if register.written_by(unit):
                last = register.read(self._is_live)[1]
                takers.append(None if last is None or last <= unit else self._accepted([self._index(last)]))
        return None if None in takers else next(iter(takers), None)

    def _accepted(self, indexes: Iterable[UnitIndex]) -> Unit | None:
        accepted = (index for index in indexes if self._statuses[index] == _LETTERS[Status.ACCEPTED][0])
        return next(map(self._unit, accepted), None)

    def _idle_parts(self, units: Iterable[Unit], found: Mapping[Unit, Unit]) -> dict[Unit, Unit]:
        """Return those whole-file parts without an effect of which all hunks among `units` are `found`.

        Each has the unit with which one of these hunks is found.
        """
        rest = {unit.seq for unit in units if unit.hunk and unit not in found}
        others = {unit.seq: other for unit, other in found.items() if unit.hunk}
        idle = (Unit(seq, 0) for seq in others.keys() - rest)
        given = set(units)
        return {unit: others[unit.seq] for unit in idle if unit in given and not self.has_effect(unit)}

    def is_accepted(self, index: UnitIndex) -> bool:
        """Return whether a unit of the weave is accepted, as is the text before the first edit."""
        return index == BASE or self._statuses[index] == _LETTERS[Status.ACCEPTED][0]

    def amended_by(self, seq: Seq) -> Seq | None:
        """Return the edit that an edit amends; None: it is not an amendment."""
        return dict(self._amendments).get(seq)

    def pending(self) -> list[Unit]:
        """Return the pending units that have an effect, ascending."""
        return self._units_in(Status.PENDING)

    def has_effect(self, unit: Unit) -> bool:
        """Return whether a unit changes anything: the whole-file part of an edit of lines does not."""
        return not self._weave.has_no_effect(self._index(unit))

    def away(self) -> list[Unit]:
        """Return the units that are away and would have an effect, ascending."""
        return self._units_in(Status.AWAY)

    def _units_in(self, wanted: Status) -> list[Unit]:
        letter = _LETTERS[wanted][0]
        found = (UnitIndex(index) for index, status in enumerate(self._statuses) if status == letter)
        return [self._unit(index) for index in found if not self._weave.has_no_effect(index)]

    def preview_cascade(self, verdicts: Mapping[Unit, Status]) -> Cascade:
        """Return the result that a cascade of `verdicts` would have; nothing is changed."""
        done = self._cascaded(verdicts)
        if not done.blocked:
            self._take_back({*self._wanted(verdicts), *done.rejected})
        return done

    def _cascaded(self, verdicts: Mapping[Unit, Status]) -> Cascade:
        """Apply `cascade`, and repeat until no amendment of a rejected edit and no mixed binary state is left."""
        wanted = self._wanted(verdicts)
        done = cascade(self._weave, wanted)
        kept = {index: live for index, live in wanted.items() if live}
        stay = set(self.amendments(verdicts))  # the caller left these out on purpose
        while not done.blocked:
            went = dict.fromkeys(map(self._unit, done.rejected), Status.REJECTED)
            goes = [self._index(unit) for unit in self.amendments({**verdicts, **went}) if unit not in stay]
            mixed = None if goes else self._mixed_placeholder_conflict()
            if mixed is not None:
                around = (unit for unit in {mixed.unit, *mixed.needs} if unit != BASE)
                goes = [unit for unit in sorted(around, reverse=True) if self._weave.is_live(unit) and unit not in kept]
                goes = goes[:1]
            elif not goes:
                break
            further = cascade(self._weave, {**kept, **dict.fromkeys(goes, False)})
            if further.blocked or not goes:
                self._take_back({*wanted, *done.rejected})
                blocked = further.blocked if mixed is None else (mixed,)
                return Cascade(rejected=(), accept_first=(), blocked=blocked)
            done = Cascade(rejected=(*done.rejected, *goes, *further.rejected), accept_first=(), blocked=())
        return done

    def _take_back(self, indexes: Iterable[UnitIndex]) -> None:
        """Make units live or dead according to their statuses."""
        self._weave.flip({index: self._live(index) for index in indexes})

    def units_at(self, indexes: Iterable[UnitIndex]) -> list[Unit]:
        """Return units of the weave as edit and hunk."""
        return [self._unit(index) for index in indexes]

    def indexes_of(self, units: Iterable[Unit]) -> list[UnitIndex]:
        """Return units of this document as units of the weave."""
        return list(map(self._index, units))

    # ---- what it is now

    def version(self) -> DocumentVersion:
        """Return path, permission bits and bytes under the present verdicts."""
        return DocumentVersion(
            path=self._paths.read(self._is_live)[0],
            mode=self._modes.read(self._is_live)[0],
            content=self.text(),
            form=self.form,
        )

    def text(self) -> bytes | None:
        """Return the bytes under the present verdicts (None: it does not exist)."""
        lines = self._weave.text()
        return None if lines is None else encoded(lines, self.form)

    def lines_text(self) -> bytes | None:
        """Return the text in whose lines the document counts: `lines_of` what `text` returns."""
        return self._weave.text()

    @property
    def form(self) -> TextForm:
        """Return the text form under the present verdicts; if it can't express the lines, they are plain."""
        form, lines = self._forms.read(self._is_live)[0], self._weave.text()
        return TextForm.PLAIN if lines is None or expressed(lines, form) is None else form

    def has_forms(self) -> bool:
        """Return whether its text is not plain, or ever was not."""
        form, written = self._forms.state()
        return bool(form or written)

    @property
    def weave(self) -> Weave:
        """Return the weave, to read parts of the text."""
        return self._weave

    @property
    def is_large(self) -> bool:
        """Return whether any state of it is represented by a large-file placeholder."""
        return self._is_large

    def blame(self) -> list[tuple[Unit | None, int]]:
        """Return which hunk inserted the lines of the text: (hunk, number of consecutive lines), from the top.

        None represents lines that existed before the first edit.
        """
        return [(None if index == BASE else self._unit(index), n) for index, n in self._weave.blame()]

    def path_writer(self) -> Unit | None:
        """Return the unit that put the file at its path (None: it was there from the beginning)."""
        return self._paths.read(self._is_live)[1]

    def path_writers(self) -> list[Unit]:
        """Return the live units that gave the file a path, the last first."""
        return self._paths.writers(self._is_live)

    def mode_writers(self) -> list[Unit]:
        """Return the live units that gave the file permission bits, the last first."""
        return self._modes.writers(self._is_live)

    def form_writers(self) -> list[Unit]:
        """Return the live units that gave the file its text form, the last first."""
        return self._forms.writers(self._is_live)

    def conflicts(self) -> tuple[Conflict, ...]:
        """Return, in order, a conflict for every hunk that can't be live together with the other live ones."""
        found = self._weave.conflicts()
        mixed = None if found else self._mixed_placeholder_conflict()
        return tuple(self._conflict(conflict) for conflict in found or ([] if mixed is None else [mixed]))

    def doubt(self, unit: Unit, needs: tuple[Unit, ...]) -> Conflict:
        """Return the conflict that a hunk's lines can't be distinguished from equal ones, and the units concerned."""
        found = self._weave.described(self._index(unit), ConflictKind.IN_DOUBT)
        return replace(self._conflict(found), needs=needs)

    def was_live(self, unit: Unit, statuses: bytes) -> bool:
        """Return whether a unit was live at the time of `statuses`; one recorded since then was live when recorded."""
        index = self._index(unit)
        return index >= len(statuses) or statuses[index] in _LIVE

    def _mixed_placeholder_conflict(self) -> WeaveConflict | None:
        """Return a conflict if the text mixes binary or large states, or forms, into one that was never a file."""
        text = self._weave.text()
        if text is None:
            return None
        is_mixed = self._is_large and mixes_placeholders(text)
        is_in_form = expressed(text, self._forms.read(self._is_live)[0]) is not None
        if is_in_form and not (is_binary(text) or is_mixed):
            return None
        found = self._weave.unseen()
        if found is None and not is_in_form:
            found = self._needed_form()
        return None if found is None else replace(found, line=0, removed=b"", inserted=b"")

    def _needed_form(self) -> WeaveConflict | None:
        """Return the conflict that the newest lines need another text form, which a dead unit gave the file."""
        dead = [self._index(unit) for unit in self._forms.units() if not self._is_live(unit)]
        newest = max((index for index, _ in self._weave.blame() if index != BASE), default=None)
        if newest is None or not dead:
            return None
        return replace(self._weave.described(newest, ConflictKind.TEXT_RETURNED), needs=tuple(sorted(dead)))

    def line(self, unit: Unit) -> int:
        """Return the 1-based line at which the text shows the unit, or would if it were live."""
        return self._weave.line_at(self._index(unit))

    def lines(self, unit: Unit) -> tuple[int, int] | None:
        """Return where the text shows the unit: its first line, from 1, and how many lines there are up to its last.

        For a pure deletion the count is 0, and the line is the one before which text is missing. None: it isn't shown.
        """
        return self._weave.unit_lines(self._index(unit))

    def anchor(self, line: int) -> Anchor:
        """Return what identifies line `line` of the text, from 1.

        Raises ValueError if the text has fewer lines.
        """
        index, offset = self._weave.origin(line)
        if index == BASE:
            return Anchor(0, 0, offset)
        unit = self._unit(index)
        return Anchor(unit.seq, unit.hunk, offset)

    def line_of(self, anchor: Anchor) -> tuple[int, bool] | None:
        """Return the number, from 1, of the line that `anchor` identifies, and whether the text shows it.

        If the text does not show it, the number is that of the line in its place. None: the document has no such line.
        """
        if anchor.seq == 0:
            return self._weave.line_of(BASE, anchor.offset)
        unit = Unit(Seq(anchor.seq), anchor.hunk)
        return self._weave.line_of(self._index(unit), anchor.offset) if self.knows(unit) else None

    def inserted_lines(self, unit: Unit) -> int:
        """Return how many lines the unit inserted, shown or not."""
        return self._weave.inserted_lines(self._index(unit))

    @property
    def first(self) -> Seq:
        """Return the oldest edit that it has (0: it has none)."""
        return self._seqs[0] if self._seqs else Seq(0)

    def notices(self, units: Iterable[Unit]) -> Iterator[Notice]:
        """Yield a notice for each of `units` with a neighbour that was decided the other way."""
        for unit in units:
            index = self._index(unit)
            opposite = _OPPOSITE.get(self._statuses[index])
            if opposite is None or opposite not in self._statuses[1:]:
                continue
            adjacent = [i for i in self._weave.neighbours(index) if self._statuses[i] == opposite]
            if adjacent:
                yield Notice(
                    unit=unit,
                    status=_STATUSES[self._statuses[index]],
                    adjacent=tuple(map(self._unit, adjacent)),
                    path=self._name(),
                    line=self.line(unit),
                )

    # ---- inside

    def _has(self, seq: Seq) -> bool:
        at = bisect_left(self._seqs, seq)
        return at < len(self._seqs) and self._seqs[at] == seq

    def _units_with_effect(self, seq: Seq) -> list[Unit]:
        """Return the units of an edit that change anything, live or dead."""
        units = self.units(seq) if self._has(seq) else []
        return [unit for unit in units if unit.hunk or self.has_effect(unit)]

    def _status(self, unit: Unit) -> Status:
        return _STATUSES[self._statuses[self._index(unit)]]

    def _index(self, unit: Unit) -> UnitIndex:
        return UnitIndex(self._firsts[bisect_left(self._seqs, unit.seq)] + unit.hunk)

    def _unit(self, index: int) -> Unit:
        at = bisect_right(self._firsts, index) - 1
        if at < 0:
            return NO_EDIT
        return Unit(self._seqs[at], index - self._firsts[at])

    def _end(self, at: int) -> int:
        """Return the unit after the last one of the edit at position `at`."""
        return self._firsts[at + 1] if at + 1 < len(self._firsts) else len(self._statuses)

    def _live(self, index: UnitIndex) -> bool:
        return self._statuses[index] in _LIVE

    def _is_live(self, unit: Unit) -> bool:
        return self._live(self._index(unit))

    def _flips(self, verdicts: Mapping[Unit, Status]) -> dict[UnitIndex, bool]:
        return {index: live for index, live in self._wanted(verdicts).items() if live is not self._live(index)}

    def _wanted(self, verdicts: Mapping[Unit, Status]) -> dict[UnitIndex, bool]:
        return {self._index(unit): status.is_live for unit, status in verdicts.items()}

    def _set_status(self, verdicts: Mapping[Unit, Status]) -> None:
        for unit, status in verdicts.items():
            self._statuses[self._index(unit)] = _LETTERS[status][0]

    def _conflict(self, found: WeaveConflict) -> Conflict:
        if is_placeholder(found.removed) or is_placeholder(found.inserted):  # placeholders are not lines of the file
            found = replace(found, line=0, removed=b"", inserted=b"")
        return Conflict(
            kind=found.kind,
            unit=self._unit(found.unit),
            needs=tuple(map(self._unit, found.needs)),
            path=self._name(),
            line=found.line,
            removed=found.removed,
            inserted=found.inserted,
        )

    def _name(self) -> str:
        return self._paths.read(self._is_live)[0].decode("utf-8", "surrogateescape")


def _differing(before: bytes | bytearray, now: bytes | bytearray) -> list[int]:
    """Return the places in which statuses of the same units differ: few, of the many of a file with a long history."""
    both = int.from_bytes(before, "big") ^ int.from_bytes(now, "big")
    return [found.start() for found in _OTHER.finditer(both.to_bytes(len(now), "big"))]


def replayed(
    records: Iterable[ReplayEdit | ReplayDecision],
    document: DocumentId,
    blob: Callable[[BlobId], bytes],
    after: Callable[[ReplayEdit, Document], bytes | Splice | None],
    since: Document | None = None,
) -> Document:
    """Return the document that results from `records`, in the order of the journal, applied to `since` (None: nothing).

    `blob`: returns the text of a state. `after`: returns the text after an edit (None: no file), or its change to the
    text before, which the document has. Raises HistoryBroken.
    """
    built = since
    for record in records:
        if isinstance(record, ReplayDecision):
            if built is not None:
                built.replay(record)
            continue
        if built is None:
            built = Document.before_edit(record, None if record.before is None else blob(record.before.blob))
        built.add(record, after(record, built))
    if built is None:
        raise HistoryBroken(str(document), 0, "no edit belongs to it")
    return built
