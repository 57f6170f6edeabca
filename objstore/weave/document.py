"""A document: one file's lineage, replayed from its records, and what it is under any set of verdicts.

Text is a weave. Beside it stand registers for path and permission bits: each holds what the last live writer wrote.
Existence is part of the weave, where creation puts in the first and the last line and deletion takes them out.
A pure value: bytes and records in, states and conflicts out.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, Generic, NamedTuple, Self, TypeVar

from objstore.errors import HistoryBroken
from objstore.fastclass import replace, value
from objstore.model.basic_types import ConflictKind, DocumentId, Seq, Status, Unit
from objstore.model.ids import BlobId
from objstore.model.large_file_placeholder import is_placeholder, mixes_placeholders
from objstore.model.records import Edit
from objstore.model.replay_records import ReplayDecision, ReplayEdit
from objstore.model.results import Conflict, Notice
from objstore.text.diff import diff_lines
from objstore.text.splice import Splice
from objstore.text.unified_diff import is_binary
from objstore.weave.conflict_markers import Labels, MarkedText
from objstore.weave.dependents import Cascade, cascade
from objstore.weave.line_weave import UnitIndex, Weave, WeaveConflict
from objstore.weave.serialize import WeaveState

__all__ = ["Document", "DocumentState", "DocumentVersion", "replayed"]

Value = TypeVar("Value")

_LETTERS: Final = {Status.PENDING: b"p", Status.ACCEPTED: b"a", Status.REJECTED: b"r"}
_STATUSES: Final = {letter[0]: status for status, letter in _LETTERS.items()}
NO_EDIT: Final = Unit(Seq(0), 0)
"""Stands for what is the work of no edit: what an older version wrote by a decision, beside what it meant."""

_OPPOSITE: Final = {ord("a"): ord("r"), ord("r"): ord("a")}
"""What is the other way; a pending unit was decided neither way."""


@value
class DocumentVersion:
    """What a document is under its present verdicts."""

    path: bytes  # where it stands, or would stand if it existed
    mode: int
    content: bytes | None  # None: it does not exist


class DocumentState(NamedTuple):
    """What a document knows beside its weave, to be kept and taken up again."""

    document: int
    seqs: list[int]  # of its edits
    firsts: list[int]  # where each edit's units begin in the weave
    statuses: bytes  # one letter for each unit of the weave
    path: bytes  # before the first edit
    paths: list[tuple[int, bytes]]  # edit, path that it wrote
    mode: int  # before the first edit
    modes: list[tuple[int, int]]  # edit, permission bits that it wrote
    amendments: list[tuple[int, int]]  # edit, the one that it amends
    corrections: list[tuple[int, int]]  # place among the edits, number of the decision that wrote something else
    is_large: bool  # whether any state of it is too large for the weave, and stood in for


class _Register(Generic[Value]):
    """A value that edits overwrite: the last live writer's counts."""

    def __init__(self, base: Value, written: Iterable[tuple[int, Value]] = ()) -> None:
        self._base = base
        self._written = [(Unit(Seq(seq), 0), value) for seq, value in written]

    def write(self, unit: Unit, value: Value) -> None:
        self._written.append((unit, value))

    def read(self, live: Callable[[Unit], bool]) -> tuple[Value, Unit | None]:
        """Return the value and who wrote it (None: it was so from the beginning)."""
        for unit, written in reversed(self._written):
            if live(unit):
                return written, unit
        return self._base, None

    def state(self) -> tuple[Value, list[tuple[int, Value]]]:
        """Return the value before the first edit, and who wrote which value since."""
        return self._base, [(unit.seq, value) for unit, value in self._written]


class Document:
    """One file's lineage. Edits are added in the order of the journal, with the verdicts that came between."""

    def __init__(self, state: DocumentState, weave: Weave) -> None:
        """Take up what was kept; use `begun` for a new one."""
        self.id: DocumentId = DocumentId(state.document)
        self._weave = weave
        self._seqs = [Seq(seq) for seq in state.seqs]
        self._firsts = list(state.firsts)
        self._statuses = bytearray(state.statuses)
        self._paths = _Register(state.path, state.paths)
        self._modes = _Register(state.mode, state.modes)
        self._amendments = [(Seq(seq), Seq(amended)) for seq, amended in state.amendments]
        self._corrections = dict(state.corrections)
        self._is_large = state.is_large

    @classmethod
    def begun(cls, first: Edit | ReplayEdit, before: bytes | None) -> Self:
        """Return a document with what stood before the `first` edit, which is not yet added."""
        path = first.path if first.source is None else first.source
        mode = 0 if first.before is None else first.before.mode
        return cls.found(first.document, DocumentVersion(path=path, mode=mode, content=before))

    @classmethod
    def found(cls, document: DocumentId, stands: DocumentVersion) -> Self:
        """Return a document of which no more is known than what it is: no edit of it, or none any more."""
        state = DocumentState(
            document=document,
            seqs=[],
            firsts=[],
            statuses=_LETTERS[Status.ACCEPTED],
            path=stands.path,
            paths=[],
            mode=stands.mode,
            modes=[],
            amendments=[],
            corrections=[],
            is_large=stands.content is not None and is_placeholder(stands.content),
        )
        return cls(state, Weave(stands.content))

    @property
    def is_clean(self) -> bool:
        """Return whether its weave has no conflicts, so that it may be kept."""
        return self._weave.is_clean

    def state(self) -> tuple[DocumentState, WeaveState]:
        """Return everything that the document knows. Raises ValueError while there are conflicts."""
        path, paths = self._paths.state()
        mode, modes = self._modes.state()
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
            corrections=[*self._corrections.items()],
            is_large=self._is_large,
        )
        return state, self._weave.state()

    # ---- replay

    def add(self, edit: Edit | ReplayEdit, after: bytes | Splice | None) -> None:
        """Add the next edit, which led from the present state to `after`. Raises HistoryBroken.

        A splice tells what became of the present text; neither it nor that is a stand-in.
        """
        exists, status = self._weave.has_file(), edit.status
        expected = edit.path if edit.source is None else edit.source
        if exists is (edit.before is None) or (exists and self._paths.read(self._is_live)[0] != expected):
            raise HistoryBroken(self._name(), edit.seq, "it starts from another state than the earlier edits lead to")
        try:
            if isinstance(after, Splice):
                indexes = self._weave.follow(after, edit.hunks, needs_file=edit.changes_whole)
            else:
                indexes = self._weave.record(after, edit.hunks, needs_file=edit.changes_whole)
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
        if edit.amends is not None:
            self._amendments.append((edit.seq, edit.amends))
        if status is Status.REJECTED:
            self._weave.flip(dict.fromkeys(indexes, False))

    def replay(self, decision: ReplayDecision) -> None:
        """Give the verdicts of a decision, as far as they concern this document."""
        shared = self._seqs if len(self._seqs) < len(decision.verdicts) else decision.verdicts
        shares = (decision.verdicts.get(seq, {}) for seq in shared)
        self.set_statuses({unit: status for share in shares for unit, status in share.items() if self.knows(unit)})

    def override_text(self, decision: ReplayDecision, blob: Callable[[BlobId], bytes]) -> None:
        """Go on from what a decision wrote, where that is not the text under its verdicts.

        Older versions made other texts of some verdicts. What they wrote is what later edits began from, so the
        difference stays, and no decision takes it out. `blob`: the text of a state. Raises HistoryBroken.
        """
        if self.id not in decision.written:
            return
        name, before = decision.written[self.id], self._weave.text()
        content = None if name is None else blob(name)
        if content == before:
            return
        hunks = () if before is None or content is None else diff_lines(before, content)
        try:
            indexes = self._weave.record(content, hunks)
        except ValueError as error:
            raise HistoryBroken(self._name(), self.last, str(error)) from error
        self._weave.fix(indexes)
        self._corrections[len(self._seqs)] = decision.number
        self._seqs.append(self.last)
        self._firsts.append(indexes[0])
        self._statuses += _LETTERS[Status.ACCEPTED] * len(indexes)

    @property
    def corrected(self) -> tuple[int, ...]:
        """Return the numbers of the decisions that wrote something else than the text under their verdicts."""
        return tuple(self._corrections.values())

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
        """Return the first edit of which anything is rejected, or ever was (None: there is none)."""
        index = self._weave.first_ever_rejected()
        return None if index is None else self._unit(index).seq

    def count_since(self, seq: Seq) -> int:
        """Return how many edits there are from `seq` on."""
        return len(self._seqs) - bisect_left(self._seqs, seq)

    def is_rejected(self, unit: Unit) -> bool:
        """Return whether the unit is one of this document's, and not live."""
        return self.knows(unit) and not self._is_live(unit)

    def statuses(self) -> bytes:
        """Return what was last said of every unit, to be compared with `changed_since`, or to be given back."""
        return bytes(self._statuses)

    def changed_since(self, statuses: bytes) -> dict[Unit, Status]:
        """Return the units of which something else was said at the time of `statuses`.

        Units recorded since were accepted when they were recorded: they are changes that were found on disk.
        """
        before = statuses.ljust(len(self._statuses), _LETTERS[Status.ACCEPTED])
        if before == self._statuses:
            return {}
        changed = (index for index, (old, new) in enumerate(zip(before, self._statuses, strict=True)) if old != new)
        return {self._unit(index): _STATUSES[self._statuses[index]] for index in changed}

    def set_statuses(self, verdicts: Mapping[Unit, Status]) -> None:
        """Give units new statuses. What results may be in conflict: ask `conflicts`."""
        self._weave.flip(self._flips(verdicts))
        self._note(verdicts)

    def restore_statuses(self, statuses: bytes) -> None:
        """Say again of every unit what was said at the time of `statuses`; units recorded since stay as they are."""
        rejected = _LETTERS[Status.REJECTED][0]
        pairs = enumerate(zip(statuses, self._statuses, strict=False))
        self._weave.flip(
            {UnitIndex(i): old != rejected for i, (old, new) in pairs if (old == rejected) is not (new == rejected)}
        )
        self._statuses[: len(statuses)] = statuses

    def set_with_dependents(self, verdicts: Mapping[Unit, Status]) -> tuple[Unit, ...]:
        """Reject the units of `verdicts`, and return what had to be rejected with them, in that order."""
        gone = tuple(map(self._unit, self._cascaded(verdicts).rejected))
        self._note({**verdicts, **dict.fromkeys(gone, Status.REJECTED)})
        return gone

    def set_with_markers(
        self, verdicts: Mapping[Unit, Status], labels: Callable[[Mapping[Unit, Status], list[Unit]], Labels]
    ) -> tuple[MarkedText, dict[Unit, Status]] | None:
        """Give units new statuses and reject what can't stand with them; return the text with both in it, and what.

        What was rejected comes with the status that it had. `labels` is given, of each place, what was decided that has
        a part in it, and what went besides. None where nothing had to go besides, or where markers can't show it: then
        `conflicts` says what is so.
        """
        flips = self._flips(verdicts)
        conflicting_units = self._weave.conflicting_units().values()
        # What a conflict from before lacks is shown with the side that lacks it.
        lacking = {unit: True for needs in conflicting_units for unit in needs if not self._weave.is_live(unit)}
        theirs = self._visibility_with(lacking)
        done = self._cascaded(verdicts)
        if done.blocked:
            self.set_statuses(verdicts)
            return None
        self._note(verdicts)
        if not done.rejected:
            return None
        base = self._visibility_with(lacking | {index: not live for index, live in flips.items()})
        decided = {**verdicts, **{self._unit(index): Status.REJECTED for index in lacking if index not in flips}}
        gone = {unit: self._status(unit) for unit in map(self._unit, done.rejected)}

        def labelled(units: set[UnitIndex]) -> Labels:
            here = {self._unit(index) for index in units if not self._weave.is_fixed(index)}
            return labels(
                {unit: status for unit, status in decided.items() if unit in here},
                [unit for unit in gone if unit in here],
            )

        found = self._weave.marked(base, theirs, labelled)
        if found is None:
            self._weave.flip(dict.fromkeys(done.rejected, True))
            return None
        self._note(dict.fromkeys(gone, Status.REJECTED))
        return found, gone

    def _visibility_with(self, changes: Mapping[UnitIndex, bool]) -> bytes:
        """Return what of the text would be shown after `changes`; nothing is changed."""
        before = {index: self._weave.is_live(index) for index in changes}
        self._weave.flip(changes)
        found = self._weave.visibility()
        self._weave.flip(before)
        return found

    def amendments(self, verdicts: Mapping[Unit, Status], after: int = 0) -> list[Unit]:
        """Return the live units that go with `verdicts` because they amend an edit of which nothing stays live.

        Those of which `verdicts` says something itself are not among them, nor those of edits up to `after`.
        """
        given = dict(verdicts)
        for seq, amended in self._amendments:  # ascending, so that amendments of amendments go too
            if seq <= after:
                continue
            units = self._units_with_effect(amended)
            goes = all(given.get(unit, self._status(unit)) is Status.REJECTED for unit in units)
            if goes and any(map(self._is_live, units)):
                given |= {
                    unit: Status.REJECTED for unit in self.units(seq) if unit not in given and self._is_live(unit)
                }
        return [unit for unit in given if unit not in verdicts]

    def preview_cascade(self, verdicts: Mapping[Unit, Status]) -> Cascade:
        """Return what a cascade of `verdicts` would come to; nothing is changed."""
        done = self._cascaded(verdicts)
        if not done.blocked:
            self._take_back({*self._wanted(verdicts), *done.rejected})
        return done

    def _cascaded(self, verdicts: Mapping[Unit, Status]) -> Cascade:
        """Do what `cascade` does, and go on until no amendment is left of what went, nor a mixture that is no text."""
        wanted = self._wanted(verdicts)
        done = cascade(self._weave, wanted)
        kept = {index: live for index, live in wanted.items() if live}
        stay = set(self.amendments(verdicts))  # whoever left them out knows why
        while not done.blocked:
            went = dict.fromkeys(map(self._unit, done.rejected), Status.REJECTED)
            goes = [self._index(unit) for unit in self.amendments({**verdicts, **went}) if unit not in stay]
            mixed = None if goes else self._mixed_placeholder_conflict()
            if mixed is not None:
                around = (unit for unit in {mixed.unit, *mixed.needs} if not self._weave.is_fixed(unit))
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
        """Let units be live or dead again as their statuses say."""
        self._weave.flip({index: self._live(index) for index in indexes})

    def named(self, indexes: Iterable[UnitIndex]) -> list[Unit]:
        """Return units of the weave by edit and hunk."""
        return [self._unit(index) for index in indexes]

    # ---- what it is now

    def standing(self) -> DocumentVersion:
        """Return path, permission bits and bytes under the present verdicts."""
        return DocumentVersion(
            path=self._paths.read(self._is_live)[0],
            mode=self._modes.read(self._is_live)[0],
            content=self._weave.text(),
        )

    def text(self) -> bytes | None:
        """Return the bytes under the present verdicts (None: it does not exist)."""
        return self._weave.text()

    @property
    def weave(self) -> Weave:
        """Return the weave, to be asked for parts of the text."""
        return self._weave

    @property
    def is_large(self) -> bool:
        """Return whether any state of it is too large for the weave, and stood in for."""
        return self._is_large

    def blame(self) -> list[tuple[Unit | None, int]]:
        """Return which hunk put in the lines of the text: (hunk, number of consecutive lines), from the top.

        None stands for lines that were there before the first edit.
        """
        return [(None if self._weave.is_fixed(index) else self._unit(index), n) for index, n in self._weave.blame()]

    def path_writer(self) -> Unit | None:
        """Return the unit that put the file where it stands (None: it stood there from the beginning)."""
        return self._paths.read(self._is_live)[1]

    def conflicts(self) -> tuple[Conflict, ...]:
        """Return every hunk that can't be live together with what else is, in order."""
        found = self._weave.conflicts()
        mixed = None if found else self._mixed_placeholder_conflict()
        return tuple(self._conflict(conflict) for conflict in found or ([] if mixed is None else [mixed]))

    def doubt(self, unit: Unit, needs: tuple[Unit, ...]) -> Conflict:
        """Return the conflict that a hunk's lines can't be told from others that read alike, and what it is about."""
        found = self._weave.described(self._index(unit), ConflictKind.IN_DOUBT)
        return replace(self._conflict(found), needs=needs)

    def was_live(self, unit: Unit, statuses: bytes) -> bool:
        """Return whether a unit was live at the time of `statuses`; one that has come since is live when it comes."""
        index = self._index(unit)
        return index >= len(statuses) or statuses[index] != _LETTERS[Status.REJECTED][0]

    def _mixed_placeholder_conflict(self) -> WeaveConflict | None:
        """Return a conflict where states are told as one that are no text, and that nobody ever had together."""
        text = self._weave.text()
        if text is None or not (is_binary(text) or (self._is_large and mixes_placeholders(text))):
            return None
        found = self._weave.unseen()
        return None if found is None else replace(found, line=0, removed=b"", inserted=b"")

    def line(self, unit: Unit) -> int:
        """Return the 1-based line at which the text shows the unit, or would if it were live."""
        return self._weave.line_at(self._index(unit))

    def notices(self, units: Iterable[Unit]) -> Iterator[Notice]:
        """Yield a notice for each of `units` with a neighbour that was decided the other way."""
        for unit in units:
            index = self._index(unit)
            opposite = _OPPOSITE.get(self._statuses[index])
            if opposite is None or opposite not in self._statuses[1:]:
                continue
            beside = [i for i in self._weave.neighbours(index) if self._statuses[i] == opposite]
            if beside:
                yield Notice(
                    unit=unit,
                    status=_STATUSES[self._statuses[index]],
                    beside=tuple(map(self._unit, beside)),
                    path=self._name(),
                    line=self.line(unit),
                )

    # ---- inside

    def _has(self, seq: Seq) -> bool:
        at = bisect_left(self._seqs, seq)
        return at < len(self._seqs) and self._seqs[at] == seq

    def _units_with_effect(self, seq: Seq) -> list[Unit]:
        """Return the units of an edit from which anything follows, live or dead."""
        units = self.units(seq) if self._has(seq) else []
        return [unit for unit in units if unit.hunk or not self._weave.has_no_effect(self._index(unit))]

    def _status(self, unit: Unit) -> Status:
        return _STATUSES[self._statuses[self._index(unit)]]

    def _index(self, unit: Unit) -> UnitIndex:
        return UnitIndex(self._firsts[bisect_left(self._seqs, unit.seq)] + unit.hunk)

    def _unit(self, index: int) -> Unit:
        at = bisect_right(self._firsts, index) - 1
        if at in self._corrections:
            return NO_EDIT
        return Unit(self._seqs[at], index - self._firsts[at])

    def _end(self, at: int) -> int:
        """Return the unit after the last one of the edit at place `at`."""
        return self._firsts[at + 1] if at + 1 < len(self._firsts) else len(self._statuses)

    def _live(self, index: UnitIndex) -> bool:
        return self._statuses[index] != _LETTERS[Status.REJECTED][0]

    def _is_live(self, unit: Unit) -> bool:
        return self._live(self._index(unit))

    def _flips(self, verdicts: Mapping[Unit, Status]) -> dict[UnitIndex, bool]:
        return {index: live for index, live in self._wanted(verdicts).items() if live is not self._live(index)}

    def _wanted(self, verdicts: Mapping[Unit, Status]) -> dict[UnitIndex, bool]:
        return {self._index(unit): status is not Status.REJECTED for unit, status in verdicts.items()}

    def _note(self, verdicts: Mapping[Unit, Status]) -> None:
        for unit, status in verdicts.items():
            self._statuses[self._index(unit)] = _LETTERS[status][0]

    def _conflict(self, found: WeaveConflict) -> Conflict:
        if is_placeholder(found.removed) or is_placeholder(found.inserted):  # no lines that a file ever had
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


def replayed(
    records: Iterable[ReplayEdit | ReplayDecision],
    document: DocumentId,
    blob: Callable[[BlobId], bytes],
    after: Callable[[ReplayEdit, Document], bytes | Splice | None],
    since: Document | None = None,
    *,
    is_checked: bool = False,
) -> Document:
    """Return the document that `records`, in the order of the journal, make of what it was `since` (None: nothing).

    `blob`: the text of a state. `after`: the text after an edit (None: no file), or what that did to the one before,
    which the document has. `is_checked`: whether the text is compared with what each decision wrote, and corrected.
    Raises HistoryBroken.
    """
    built = since
    for record in records:
        if isinstance(record, ReplayDecision):
            if built is not None:
                built.replay(record)
                if is_checked and built.last:  # of edits that have expired, what came of a decision is known no more
                    built.override_text(record, blob)
            continue
        if built is None:
            built = Document.begun(record, None if record.before is None else blob(record.before.blob))
        built.add(record, after(record, built))
    if built is None:
        raise HistoryBroken(str(document), 0, "no edit belongs to it")
    return built
