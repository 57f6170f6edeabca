"""Say in sentences what a decision did or would do, or why it was refused.

Every surface shows these sentences, with what it hides in a text escaped. `Name` is how it shows the name of a file.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, TypeAlias

from objstore.model.basic_types import LINK_MODE, Action, Origin, Status, Unit, counted, few, shown_edits
from objstore.model.results import Conflicted, Decided, ExternalChanges, NothingToDo, counted_edits
from objstore.values.fastclass import value
from objstore.values.request_errors import NoSuchName

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from objstore.model.basic_types import Seq
    from objstore.model.net_file import NetChange, NetFile
    from objstore.model.results import Conflict, DecisionOutcome, FileEffect
    from objstore.model.views import EditView

    Name: TypeAlias = Callable[[str], str]
    Edit: TypeAlias = Callable[[int], EditView]

__all__ = [
    "MODE_LOST",
    "OutcomeWords",
    "broken_words",
    "change_words",
    "changes_counted",
    "decided_words",
    "distinct_conflicts",
    "edits_and_hunks",
    "effect_words",
    "file_remarks",
    "files_counted",
    "outcome_words",
    "question_words",
    "refusal",
    "shown_units",
    "step_question",
]

_NOTICES: Final = 5
_MOST_ABSENT: Final = 5
_FILES: Final = 5
_HUNKS: Final = 12
_LOOKED_AT: Final = 12  # of more edits, those with unit 0 count as whole: thousands may be decided
_REFUSED_FILES: Final = 3
_DONE: Final = {
    Action.ACCEPT: "Accepted",
    Action.REJECT: "Rejected",
    Action.RESET: "Made pending again:",
    Action.UNDO: "Undid the decision on",
    Action.REDO: "Redid the decision on",
    Action.GIT: "Followed git's change of",
    Action.CLAIM: "Claimed",
}
_WANTED: Final = {
    Action.ACCEPT: "accept",
    Action.REJECT: "reject",
    Action.RESET: "make pending again",
    Action.UNDO: "undo the decision on",
    Action.REDO: "redo the decision on",
    Action.GIT: "follow git's change of",
    Action.CLAIM: "claim",
}
_DOES: Final = {Action.ACCEPT: "accepts", Action.REJECT: "rejects", Action.RESET: "makes pending again"}
NOTHING: Final = "nothing"
"""What units are called that change nothing."""

MODE_LOST: Final = " without setuid and setgid, which no file gets back"


@value
class OutcomeWords:
    """What a decision did, or would do, in sentences."""

    done: str  # such as: Rejected edit 3.
    along: tuple[str, ...] = ()  # what went along and what stays, such as: 2 edits, 1 of them accepted: edit 1.
    files: tuple[str, ...] = ()  # what happened to each file, such as: Rewrote a
    notes: tuple[str, ...] = ()

    @property
    def sentences(self) -> tuple[str, ...]:
        """Return all of it, in the order in which a person reads it."""
        return (self.done, *self.along, *self.files, *self.notes)


def outcome_words(
    outcome: DecisionOutcome,
    edit: Edit,
    name: Name,
    *,
    dry_run: bool = False,
    files: Sequence[str] = (),
    subject: str = "",
) -> OutcomeWords:
    """Return an outcome in sentences. `edit`: returns an edit by its number. `files`: those to name with the edits.

    `subject`: what was decided on, such as `3 changes in a.py`, in place of the names of edits and hunks ("": these).
    """
    match outcome:
        case Decided():
            return _Worded(outcome, edit, name, dry_run=dry_run, subject=subject).words(files)
        case NothingToDo():
            return OutcomeWords(done="Nothing to do: this is already decided that way.")
        case Conflicted():
            along = tuple(_sentence(str(conflict)) for conflict in distinct_conflicts(outcome))
            return OutcomeWords(done=refusal(outcome, name), along=along)
        case ExternalChanges():
            return OutcomeWords(done=refusal(outcome, name))


def decided_words(action: Action, subject: str) -> str:
    """Return what was decided on, without a full stop, such as `Rejected 3 changes in a.py`."""
    return f"{_DONE[action]} {subject}"


def question_words(action: Action, named: Mapping[Unit, Status], along: Mapping[Unit, Status], edit: Edit) -> str:
    """Return what a decision is on, to be asked before it: how many edits, which are accepted, what goes along.

    `named`: what it names, each unit with its status; `along`: what goes along, which may be among these.
    """
    units = {**named, **along}
    taken = [unit for unit, status in units.items() if status is Status.ACCEPTED] if action is Action.REJECT else []
    which = f": {shown_units(taken, edit)}" if taken else ""
    said = f"This {_DOES[action]} {counted_edits(units, taken)}{which}."
    if not along:
        return said
    others = {unit.seq for unit in units if unit not in along}
    return f"{said} {_depending(f'Would also {_WANTED[action]}', shown_units(along, edit), others)}"


def step_question(planned: Decided, edit: Edit, name: Name) -> str:
    """Return what an undo or redo would do, to be asked before it takes along more than it takes back or repeats."""
    words = outcome_words(planned, edit, name, dry_run=True)
    return " ".join((words.done, *words.along))


def changes_counted(changes: int, files: Sequence[str], *, turn: int = 0) -> str:
    """Return what a decision is on, as a person counts: `3 changes in a.py`, `in 2 files`, `of turn 4`; "": on none.

    `files`: the names of those with the changes, as a surface shows them. `turn`: the whole of it (0: of none).
    """
    if not changes:
        return ""
    where = f"of turn {turn}" if turn else f"in {files[0]}" if len(files) == 1 else f"in {len(files)} files"
    return f"{counted(changes, 'change')} {where}"


def refusal(outcome: Conflicted | ExternalChanges, name: Name) -> str:
    """Return why a decision was refused, in a sentence."""
    if isinstance(outcome, Conflicted):
        number = len(distinct_conflicts(outcome))
        return f"Refused, nothing was changed: {counted(number, 'conflict')}."
    named = few([change.path for change in outcome.changes], _REFUSED_FILES, ", ", name)
    there = [
        f" A {change.taken_by} is now at {name(change.path)}."
        for change in outcome.changes[:_REFUSED_FILES]
        if change.taken_by
    ]
    return f"Refused, nothing was changed: {named} changed outside since the last recorded state.{''.join(there)}"


def distinct_conflicts(outcome: Conflicted) -> list[Conflict]:
    """Return the conflicts, each that reads the same only once."""
    return list({str(conflict): conflict for conflict in outcome.conflicts}.values())


def shown_units(units: Iterable[Unit], edit: Edit) -> str:
    """Return units in words: by its number each edit of which all are there that change anything, else hunk by hunk."""
    whole, parts = edits_and_hunks(units, edit)
    said = []
    if whole:
        said.append(f"edit{'s' if len(whole) > 1 else ''} {shown_edits(whole)}")
    if parts:
        said.append(f"hunk{'s' if len(parts) > 1 else ''} {_shown_hunks(parts)}")
    return " and ".join(said) or NOTHING


def edits_and_hunks(units: Iterable[Unit], edit: Edit) -> tuple[list[Seq], list[str]]:
    """Return the edits of which all units that change anything are among these, and the names of other hunks."""
    by_edit: dict[Seq, list[int]] = {}
    for unit in sorted(units):
        by_edit.setdefault(unit.seq, []).append(unit.hunk)
    are_many = len(by_edit) > _LOOKED_AT
    whole: list[Seq] = []
    parts: list[str] = []
    for seq, hunks in by_edit.items():
        told = frozenset[int]() if are_many and 0 in hunks else _telling(seq, edit)
        if told.issubset(hunks):
            whole.append(seq)
        else:
            parts += [f"{seq}:{hunk}" for hunk in hunks if hunk in told]
    return whole, parts


def _telling(seq: Seq, edit: Edit) -> frozenset[int]:
    """Return the numbers of the units of an edit that change anything."""
    try:
        return frozenset(edit(seq).telling)
    except NoSuchName:  # a dry run would first record it, from outside: it is decided whole
        return frozenset()


def _shown_hunks(names: Sequence[str]) -> str:
    """Return the names of some hunks, shortened like numbers of edits."""
    if len(names) <= _HUNKS:
        return " ".join(names)
    return f"{' '.join(names[: _HUNKS - 2])} ... {names[-1]} ({len(names)} hunks)"


def files_counted(files: Sequence[str], name: Name) -> str:
    """Return how many files there are and their first names, to go after the names of edits; "": there are none."""
    if not files:
        return ""
    if len(files) == 1:
        return f", of {name(files[0])}"
    return f", of {len(files)} files: {few(files, _FILES, ', ', name)}"


def effect_words(effect: FileEffect, name: Name, *, dry_run: bool) -> str:
    """Return one line about what happens to a file, or would."""
    is_link = (effect.mode_before if effect.path_after is None else effect.mode_after) == LINK_MODE
    kind = "the link " if is_link else ""
    match effect.path_before, effect.path_after:
        case str(gone), None:
            done, wanted, rest = "Removed", "Would remove", kind + name(gone)
        case None, str(made):
            done, wanted, rest = "Restored", "Would restore", kind + name(made)
        case str(old), str(new) if old != new:
            done, wanted, rest = "Moved", "Would move", f"{name(old)} -> {name(new)}"
            if effect.before != effect.after:
                rest += " and rewrite it" if dry_run else " and rewrote it"
        case _:
            done, wanted, rest = "Rewrote", "Would rewrite", kind + name(effect.path_after or "")
            if effect.before == effect.after:
                done, wanted = "Changed the mode of", "Would change the mode of"
    modes = f" (mode {effect.mode_before:04o} -> {effect.mode_after:04o})"
    rest += MODE_LOST if effect.mode_lost else ""
    both = effect.path_before is not None and effect.path_after is not None
    return f"{wanted if dry_run else done} {rest}" + (modes if both and effect.mode_before != effect.mode_after else "")


def broken_words(outcome: Decided, edit: Edit, subject: str = "") -> Iterator[str]:
    """Yield what a decision breaks in sources, or would. `subject`: as for `outcome_words`."""
    unnamed = {*outcome.cascaded, *outcome.returned}
    named = [unit for unit in outcome.decided if unit not in unnamed]
    verb = _VERBS.get(outcome.action, "")
    makes = (
        f"{verb} {subject or shown_units(named, edit)}"
        if verb and (subject or len(named) <= _NAMED_BRIEFLY)
        else "This"
    )
    for each in outcome.broken[:_NOTICES]:
        yield f"Note: {makes} {each}."
    if len(outcome.broken) > _NOTICES:
        yield f"Note: and it breaks {len(outcome.broken) - _NOTICES} more names."


def change_words(file: NetFile, change: NetChange, name: Name, arrow: str = "->") -> str:
    """Return what a change does to its file as a whole; "": it only changes lines. `arrow`: goes before what is now."""
    match change.kind:
        case "move":
            return f"moved from {name(file.path_before)}"
        case "mode":
            return f"mode {file.mode_before:04o} {arrow} {file.mode:04o}"
        case "encoding":
            return f"encoding {file.forms[0].words} {arrow} {file.forms[1].words}"
        case "create":
            return "new link" if file.mode == LINK_MODE else f"new file, {_bytes(file.size)}"
        case "delete":
            return "link deleted" if file.mode_before == LINK_MODE else f"file of {_bytes(file.size_before)} deleted"
        case "content":
            return f"{_bytes(file.size_before)} {arrow} {_bytes(file.size)}"
        case "newline":
            verb = "lost" if change.removed.endswith(b"\n") else "gained"
            return f"the last line has {verb} its newline"
    return ""


def file_remarks(file: NetFile) -> Iterator[tuple[str, Sequence[Unit]]]:
    """Yield what no change of a file shows, in words, and the units that it is about."""
    taken_out = set(file.taken_out)
    cancelled = [unit for unit in file.cancelled if unit not in taken_out]
    if cancelled:
        edits = len({unit.seq for unit in cancelled})
        yield ("1 edit cancels out" if edits == 1 else f"{edits} edits cancel out"), cancelled
    if taken_out:
        edits = len({unit.seq for unit in taken_out})
        words = "1 edit was" if edits == 1 else f"{edits} edits were"
        yield f"{words} taken out by later accepted changes", file.taken_out
    if file.kept_on:
        yield "accepted edits need pending hunks, which are not shown", file.kept_on


# ---- inside

_VERBS: Final = {Action.ACCEPT: "Accepting", Action.REJECT: "Rejecting", Action.RESET: "Reopening"}
_NAMED_BRIEFLY: Final = 3
"""Units that the subject of a sentence names."""


class _Worded:
    """A decision that was made, or previewed, while it is put into words."""

    def __init__(self, outcome: Decided, edit: Edit, name: Name, *, dry_run: bool, subject: str) -> None:
        self._outcome: Final = outcome
        self._edit: Final = edit
        self._name: Final = name
        self._dry_run: Final = dry_run
        self._subject: Final = subject
        unnamed = {*outcome.cascaded, *outcome.returned}
        outside = {made.seq for made in (*(view.edit for view in outcome.external), *outcome.unrecorded)}
        decided = [unit for unit, _ in outcome.verdicts if unit not in unnamed]
        self._named: Final = [unit for unit in decided if unit.seq not in outside]
        self._discarded: Final = {unit.seq for unit in decided if unit.seq in outside}

    def words(self, files: Sequence[str]) -> OutcomeWords:
        outcome, dry_run = self._outcome, self._dry_run
        taken_back, is_undo = tuple(self._taken_back()), outcome.action is Action.UNDO
        along = (
            *(() if is_undo else taken_back),
            *self._also(),
            *(taken_back if is_undo else ()),
            *self._repeated(),
            *self._taken_out(),
            *self._older(),
            *self._absent(),
            *self._markers(),
            *self._kept(),
            *self._outside(),
            *broken_words(outcome, self._edit, self._subject),
        )
        return OutcomeWords(
            done=f"{self._done()}{files_counted(files, self._name)}.",
            along=along,
            files=tuple(effect_words(effect, self._name, dry_run=dry_run) for effect in _shown(outcome.files)),
            notes=tuple(self._notes()),
        )

    def _done(self) -> str:
        """Return what was decided, without a full stop."""
        outcome, units = self._outcome, self._subject or self._in_words(self._named)
        if outcome.act is None:
            return f"Would {_WANTED[outcome.action]} {units}" if self._dry_run else decided_words(outcome.action, units)
        undone = outcome.action is Action.UNDO
        done = f"Would {'undo' if undone else 'redo'}" if self._dry_run else "Undid" if undone else "Redid"
        of = f" ({units})" if outcome.act.paths else f" of {units}"
        return f"{done} the {outcome.act.words(self._name)}{of}"

    def _taken_back(self) -> Iterator[str]:
        """Yield how many of the edits that a rejection takes out were accepted, and which."""
        outcome = self._outcome
        taken, known = outcome.taken_back, outcome.decided
        if outcome.action is Action.UNDO:  # what it is about says that it was accepted
            taken, known = (tuple(unit for unit in each if unit in outcome.cascaded) for each in (taken, known))
        if not taken:
            return
        if len({unit.seq for unit in known}) == 1:
            yield "It is accepted." if self._dry_run else "It was accepted."
            return
        yield f"{counted_edits(known, taken)}: {self._in_words(taken)}."

    def _also(self) -> Iterator[str]:
        """Yield which units were decided because they depend on named ones, as far as they do anything."""
        outcome = self._outcome
        seqs = {unit.seq for unit in self._named}
        aside = {unit for markers in outcome.markers for unit in markers.aside}
        aside.update(unit for kept in outcome.kept for unit in kept.units)
        names = self._in_words(
            unit for unit in outcome.cascaded if unit not in aside and unit.seq not in self._discarded
        )
        if names != NOTHING:
            action = outcome.action if outcome.act is None else Action.REJECT  # an undo or redo only rejects others
            done = _DONE[action]
            did = f"Would also {_WANTED[action]}" if self._dry_run else f"Also {done[0].lower()}{done[1:]}"
            yield _depending(did, names, seqs)

    def _repeated(self) -> Iterator[str]:
        """Yield which units an undo or redo left rejected, because another edit makes their change."""
        by_edit: dict[int, list[Unit]] = {}
        for unit, other in self._outcome.repeated:
            by_edit.setdefault(other.seq, []).append(unit)
        for seq, units in by_edit.items():
            names = self._in_words(units)
            verb = "stays" if names.count(" ") == 1 else "stay"
            yield f"{_capitalized(names)} {verb} rejected: edit {seq} makes the same change."

    def _taken_out(self) -> Iterator[str]:
        """Yield which units stay pending, because what they did is not in the files any more."""
        outcome = self._outcome
        if not outcome.taken_out:
            return
        outside = {made.seq: made.origin for made in outcome.unrecorded}
        origins = {outside.get(taker.seq) or self._edit(taker.seq).edit.origin for _, taker in outcome.taken_out}
        who = "you" if origins <= {Origin.EXTERNAL, Origin.PERSON} else "later accepted edits"
        names = self._in_words(unit for unit, _ in outcome.taken_out)
        is_one = names.count(" ") == 1
        what = "its change is" if is_one else "their changes are"
        yield (
            f"{_capitalized(names)} {'stays' if is_one else 'stay'} pending: {what} not in the "
            f"file{'' if is_one else 's'} any more, because {who} took {'it' if is_one else 'them'} out."
        )

    def _older(self) -> Iterator[str]:
        """Yield which creations stay as they were, because their files may be older."""
        for seq in self._outcome.older:
            path = self._name(os.fsdecode(self._edit(seq).edit.path))
            yield (
                f"Edit {seq} is not rejected: {path} only came into sight with it, so the file may be older. "
                "If it should go, delete it yourself."
            )

    def _absent(self) -> Iterator[str]:
        """Yield which files stay as they were, because they are not there now."""
        absent = self._outcome.absent
        if not absent:
            return
        names = few(absent, _MOST_ABSENT, ", ", self._name)
        is_one = len(absent) == 1
        yield (
            f"{names} {'is' if is_one else 'are'} not decided on: {'its disk is' if is_one else 'their disks are'} not "
            "mounted now. Mount it, then repeat the command."
        )

    def _markers(self) -> Iterator[str]:
        """Yield which conflict markers are added and removed."""
        outcome, dry_run = self._outcome, self._dry_run
        for markers in outcome.markers:
            places = "a place" if markers.regions == 1 else f"{markers.regions} places"
            yield (
                f"{'Would set' if dry_run else 'Set'} aside {self._in_words(markers.aside)}: "
                f"between conflict markers, at {places} in {self._name(markers.path)}"
                + ("." if dry_run else f" (edit {markers.edit}).")
            )
        if outcome.unmarked:
            plural = "" if len(outcome.unmarked) == 1 else "s"
            said = f"the conflict markers of edit{plural} {shown_edits(outcome.unmarked)}"
            is_back = any(status.is_live for _, status in outcome.verdicts)
            back = "; what was set aside for them is restored." if is_back else "."
            yield f"Would remove {said}." if dry_run else f"Removed {said}{back}"

    def _kept(self) -> Iterator[str]:
        """Yield which files stay although their creation is rejected, and whose lines they have."""
        for kept in self._outcome.kept:
            lines = f"{counted(kept.lines, 'line')} of {self._in_words(kept.units)}"
            name = self._name(kept.path)
            yield (
                f"Would keep {name} with {lines}."
                if self._dry_run
                else f"Kept {name} with {lines}, as edit {kept.edit}."
            )

    def _outside(self) -> Iterator[str]:
        """Yield what was recorded on the way, because it changed outside."""
        for change in self._outcome.unrecorded:
            if change.seq in self._discarded:
                yield f"Would drop the change from outside to {self._name(os.fsdecode(change.path))}."
        for view in self._outcome.external:
            name = self._name(os.fsdecode(view.edit.path))
            if view.seq in self._discarded:
                yield f"Dropped the change from outside to {name}, recorded as edit {view.seq}."
            else:
                yield f"Recorded the change from outside to {name} as edit {view.seq}."

    def _in_words(self, units: Iterable[Unit]) -> str:
        return shown_units(units, self._edit)

    def _notes(self) -> Iterator[str]:
        outcome = self._outcome
        if outcome.given_to:
            yield given_words("What was restored", outcome.given_to)
        for notice in outcome.notices[:_NOTICES]:
            yield f"Note: {notice}."
        if len(outcome.notices) > _NOTICES:
            yield f"Note: and {len(outcome.notices) - _NOTICES} more such notes."


def _depending(did: str, names: str, edits: set[Seq]) -> str:
    """Return that units were decided, as `did` says, because they depend on these edits. `names`: of the units."""
    verb = "depends" if names.count(" ") == 1 else "depend"
    return f"{did} {names.removeprefix('hunk ')}, which {verb} on {'it' if len(edits) == 1 else 'them'}."


def _shown(effects: Sequence[FileEffect]) -> list[FileEffect]:
    """Return the effects without removals of what makes way for a link or file at the very path."""
    restored = {effect.path_after for effect in effects if effect.path_before is None}
    return [effect for effect in effects if effect.path_after is not None or effect.path_before not in restored]


def _bytes(size: int) -> str:
    return f"{size:,} byte{'' if size == 1 else 's'}"


def _capitalized(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def _sentence(text: str) -> str:
    return text if text.endswith(".") else f"{text}."


def given_words(what: str, owners: Sequence[int]) -> str:
    """Return the note of whose the files are that root made, and of what no file gets back."""
    named = " and ".join(map(_user, owners))
    lost = "owners, access control lists and extended attributes are not recorded"
    return f"Note: {what} belongs to {named}, as the folder does: {lost}."


def _user(number: int) -> str:
    """Return the name of a user, or its number if it has none."""
    from pwd import getpwuid

    try:
        return getpwuid(number).pw_name
    except KeyError:
        return str(number)
