"""Outcomes of decisions, made, previewed or refused, as text for a person: lines, as bytes to write.

The module is longer than 500 lines because the review in a terminal, the page and the commands share its words.
"""

import os
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from cli.app.error_hints import user_named
from cli.app.invocation import Invocation
from cli.render.status import shown_edits
from cli.screen.terminal import Screen, shown_name, visible
from cli.selection.unit_selection import UnitSelection
from objstore import (
    LINK_MODE,
    Action,
    ConflictKind,
    NoSuchName,
    OnExternal,
    Origin,
    Unit,
    counted_edits,
    is_either_binary,
)

if TYPE_CHECKING:
    from objstore import Conflict, Conflicted, Decided, EditView, ExternalChange, FileEffect, Seq

__all__ = [
    "BYTES_SHOWN",
    "MY_CHANGES",
    "Preview",
    "also_decided",
    "beginning",
    "conflict_text",
    "decided_text",
    "effect_line",
    "effect_text",
    "external_refusal",
    "is_of_binary",
    "resolution_commands",
    "shown_units",
    "undo_commands",
]

LINES_SHOWN: Final = 8
BYTES_SHOWN: Final = 500
"""Maximum bytes of each of these lines: a line of a minified file may have millions."""
NOTICES_SHOWN: Final = 5
CONFLICTS_SHOWN: Final = 50
NAMES_SHOWN: Final = 10
FILES_SHOWN: Final = 5
MOST_HUNKS: Final = 12
DONE: Final = {
    Action.ACCEPT: "Accepted",
    Action.REJECT: "Rejected",
    Action.RESET: "Made pending again:",
    Action.UNDO: "Undid the decision on",
    Action.REDO: "Redid the decision on",
    Action.GIT: "Followed git's change of",
    Action.CLAIM: "Claimed",
}
NOT_RECORDED: Final = "the folder does: owners, access control lists and extended attributes are not recorded"
WANTED: Final = {
    Action.ACCEPT: "accept",
    Action.REJECT: "reject",
    Action.RESET: "make pending again",
    Action.UNDO: "undo the decision on",
    Action.REDO: "redo the decision on",
    Action.GIT: "follow git's change of",
    Action.CLAIM: "claim",
}

Preview = Callable[["FileEffect"], tuple[bytes | None, bytes | None]]
"""Returns the bytes of a file before and after a decision; None: no file."""


# ---- done, or shown


def decided_text(
    outcome: "Decided",
    edit: Callable[["Seq"], "EditView"],
    screen: Screen,
    *,
    dry_run: bool,
    files: Sequence[str] = (),
    says_unchanged: bool = True,
) -> Iterator[bytes]:
    """Yield what a decision changed: the units, the files, and what was recorded on the way.

    `files`: the files of the edits, if the line should name them. `says_unchanged`: say so if no file changed.
    """
    unnamed = {*outcome.cascaded, *outcome.returned}
    outside = {edit.seq for edit in (*(view.edit for view in outcome.external), *outcome.unrecorded)}
    decided = [unit for unit, _ in outcome.verdicts if unit not in unnamed]
    named = [unit for unit in decided if unit.seq not in outside]
    discarded = {unit.seq for unit in decided if unit.seq in outside}
    if dry_run:
        yield screen.line("Dry run: nothing was changed.")
    of = shown_units(named, _parted(outcome, edit))
    yield screen.line(f"{_said(outcome, of, dry_run=dry_run)}{_of_files(files)}.")
    yield from _taken_back_text(outcome, edit, screen, dry_run=dry_run)
    if also := also_decided(outcome, edit):
        yield screen.line(_also_text(outcome.action, also, on=named, dry_run=dry_run))
    yield from _repeated_text(outcome, screen)
    yield from _taken_out_text(outcome, edit, screen)
    yield from _older_text(outcome, edit, screen)
    yield from _markers_text(outcome, screen, dry_run=dry_run)
    yield from _kept_text(outcome, screen, dry_run=dry_run)
    for change in outcome.unrecorded:
        if change.seq in discarded:
            yield screen.line(f"Would discard the change from outside to {shown_name(os.fsdecode(change.path))}.")
    for view in outcome.external:
        name = shown_name(os.fsdecode(view.edit.path))
        if view.seq in discarded:
            yield screen.line(f"Discarded the change from outside to {name}, recorded as edit {view.seq}.")
        else:
            yield screen.line(f"Recorded the change from outside to {name} as edit {view.seq}.")
    for effect in _shown_effects(outcome.files):
        yield screen.line(effect_line(effect, dry_run=dry_run))
    if not outcome.files and says_unchanged:
        yield screen.line("No file changes." if dry_run else "No file changed.")
    if outcome.given_to:
        owners = " and ".join(map(user_named, outcome.given_to))
        yield screen.line(f"Note: What was restored belongs to {owners}, as {NOT_RECORDED}.")
    for notice in outcome.notices[:NOTICES_SHOWN]:
        yield screen.line(f"Note: {visible(str(notice))}.")
    if len(outcome.notices) > NOTICES_SHOWN:
        yield screen.line(f"Note: and {len(outcome.notices) - NOTICES_SHOWN} more such notes (--json has them all).")


def _said(outcome: "Decided", units: str, *, dry_run: bool) -> str:
    """Return what was decided on some units, without a full stop."""
    if outcome.act is None:
        return f"{f'Would {WANTED[outcome.action]}' if dry_run else DONE[outcome.action]} {units}"
    verb = "undo" if outcome.action is Action.UNDO else "redo"
    done = f"Would {verb}" if dry_run else {"undo": "Undid", "redo": "Redid"}[verb]
    of = f" ({units})" if outcome.act.paths else f" of {units}"
    return f"{done} the {shown_name(outcome.act.words)}{of}"


def _taken_back_text(
    outcome: "Decided", edit: Callable[["Seq"], "EditView"], screen: Screen, *, dry_run: bool
) -> Iterator[bytes]:
    """Yield how many of the edits that a rejection takes out were accepted, and which."""
    if not outcome.taken_back:
        return
    known = outcome.decided
    if len({unit.seq for unit in known}) == 1:
        yield screen.line("It is accepted." if dry_run else "It was accepted.")
        return
    taken = set(outcome.taken_back)
    edits = {unit.seq for unit in taken}
    named = [unit for unit in known if unit in taken or (unit.hunk == 0 and unit.seq in edits)]
    yield screen.line(f"{counted_edits(known, taken)}: {shown_units(named, _parted(outcome, edit))}.")


def also_decided(outcome: "Decided", edit: Callable[["Seq"], "EditView"]) -> list[Unit]:
    """Return the units that a decision takes along because they depend on named ones, as far as they do anything."""
    named = {unit.seq for unit, _ in outcome.verdicts if unit not in outcome.cascaded and unit not in outcome.returned}
    aside = {unit for markers in outcome.markers for unit in markers.aside}
    aside |= {unit for kept in outcome.kept for unit in kept.units}
    return list(_worth_naming((unit for unit in outcome.cascaded if unit not in aside), named, edit))


def _shown_effects(effects: Sequence["FileEffect"]) -> list["FileEffect"]:
    """Return the effects without removals of what makes way for a link or file at the very path."""
    restored = {effect.path_after for effect in effects if effect.path_before is None}
    return [effect for effect in effects if effect.path_after is not None or effect.path_before not in restored]


def _repeated_text(outcome: "Decided", screen: Screen) -> Iterator[bytes]:
    """Yield which units an undo or redo left rejected, because another edit makes their change."""
    by_edit: dict[int, list[Unit]] = {}
    for unit, other in outcome.repeated:
        by_edit.setdefault(other.seq, []).append(unit)
    for seq, units in by_edit.items():
        names = shown_units(units)
        verb = "stays" if names.count(" ") == 1 else "stay"
        yield screen.line(f"{names[0].upper()}{names[1:]} {verb} rejected: edit {seq} makes the same change.")


def _taken_out_text(outcome: "Decided", edit: Callable[["Seq"], "EditView"], screen: Screen) -> Iterator[bytes]:
    """Yield which units stay pending, because what they did is not in the files any more."""
    if not outcome.taken_out:
        return
    units = [unit for unit, _ in outcome.taken_out]
    outside = {edit.seq: edit.origin for edit in outcome.unrecorded}
    origins = {outside.get(taker.seq) or edit(taker.seq).edit.origin for _, taker in outcome.taken_out}
    who = "you" if origins <= {Origin.EXTERNAL, Origin.PERSON} else "later accepted edits"
    names = shown_units(units)
    is_one = names.count(" ") == 1
    what = "its change is" if is_one else "their changes are"
    it = "it" if is_one else "them"
    yield screen.line(
        f"{names[0].upper()}{names[1:]} {'stays' if is_one else 'stay'} pending: {what} not in the "
        f"file{'' if is_one else 's'} any more, because {who} took {it} out."
    )
    yield screen.line(f"To reject {it}:  {Invocation.current().program} reject {_unit_words(units, edit)}")


def _older_text(outcome: "Decided", edit: Callable[["Seq"], "EditView"], screen: Screen) -> Iterator[bytes]:
    """Yield which creations stay as they were, because their files may be older."""
    for seq in outcome.older:
        path = shown_name(os.fsdecode(edit(seq).edit.path))
        yield screen.line(
            f"Edit {seq} is not rejected: {path} was left out until this edit, so the file may be older. "
            "If it should go, delete it yourself."
        )


def _also_text(action: Action, units: Sequence[Unit], *, on: Sequence[Unit], dry_run: bool) -> str:
    """Return the line about units that were decided because they depend on named ones."""
    names = shown_units(units)
    verb = "depends" if names.count(" ") == 1 else "depend"
    did = f"Would also {WANTED[action]}" if dry_run else f"Also {DONE[action][0].lower()}{DONE[action][1:]}"
    named = "it" if len({unit.seq for unit in on}) == 1 else "them"
    return f"{did} {names.removeprefix('hunk ')}, which {verb} on {named}."


def _worth_naming(units: Iterable[Unit], named: Container[int], edit: Callable[["Seq"], "EditView"]) -> Iterator[Unit]:
    """Yield the units, except whole-file units without effect of edits that are `named` already."""
    for unit in units:
        if unit.hunk or unit.seq not in named or edit(unit.seq).whole:
            yield unit


def _of_files(files: Sequence[str]) -> str:
    if not files:
        return ""
    more = f" and {len(files) - FILES_SHOWN} more" if len(files) > FILES_SHOWN else ""
    return f", of {len(files)} files: {', '.join(map(shown_name, files[:FILES_SHOWN]))}{more}"


def _markers_text(outcome: "Decided", screen: Screen, *, dry_run: bool) -> Iterator[bytes]:
    """Yield which conflict markers are added and removed."""
    for markers in outcome.markers:
        places = "a place" if markers.regions == 1 else f"{markers.regions} places"
        yield screen.line(
            f"{'Would set' if dry_run else 'Set'} aside {shown_units(markers.aside)}: "
            f"between conflict markers, at {places} in {shown_name(markers.path)}"
            + ("." if dry_run else f" (edit {markers.edit}).")
        )
    if outcome.unmarked:
        said = (
            f"the conflict markers of edit{'' if len(outcome.unmarked) == 1 else 's'} {shown_edits(outcome.unmarked)}"
        )
        is_back = any(status.is_live for _, status in outcome.verdicts)
        yield screen.line(
            f"Would remove {said}."
            if dry_run
            else f"Removed {said}" + ("; what was set aside for them is restored." if is_back else ".")
        )


def _kept_text(outcome: "Decided", screen: Screen, *, dry_run: bool) -> Iterator[bytes]:
    """Yield which files stay although their creation is rejected, and whose lines they have."""
    for kept in outcome.kept:
        lines = f"{kept.lines} line{'' if kept.lines == 1 else 's'} of {shown_units(kept.units)}"
        name = shown_name(kept.path)
        yield screen.line(
            f"Would keep {name} with {lines}." if dry_run else f"Kept {name} with {lines}, as edit {kept.edit}."
        )


def effect_text(files: Iterable["FileEffect"], preview: Preview, screen: Screen) -> Iterator[bytes]:
    """Yield, as a diff, exactly what a decision changes on disk."""
    from cli.screen.diffs import diff_text

    for effect in files:
        before, after = preview(effect)
        yield from diff_text(
            before,
            after,
            effect.path_before or effect.path_after or "",
            effect.path_after or effect.path_before or "",
            screen,
            modes=(effect.mode_before, effect.mode_after),
        )


def _parted(outcome: "Decided", edit: Callable[["Seq"], "EditView"]) -> set["Seq"]:
    """Return the edits whose whole-file unit was decided and of which some hunks have another status."""
    verdicts = dict(outcome.verdicts)
    wholes = {unit.seq: status for unit, status in verdicts.items() if not unit.hunk}
    if len(wholes) > MOST_HUNKS:
        return set()
    found = set()
    for seq, status in wholes.items():
        try:
            units = enumerate(edit(seq).units)
        except NoSuchName:
            continue  # a dry run would first record it, from outside: it is decided whole
        if any(is_now is not status and Unit(seq, hunk) not in verdicts for hunk, is_now in units):
            found.add(seq)
    return found


def shown_units(units: Sequence[Unit], parted: Container[int] = ()) -> str:
    """Return units in words: whole edits by number, else hunk by hunk, as for edits in `parted`."""
    by_edit: dict[int, list[int]] = {}
    for unit in sorted(units):
        by_edit.setdefault(unit.seq, []).append(unit.hunk)
    whole = [seq for seq, hunks in by_edit.items() if 0 in hunks and seq not in parted]
    parts = [f"{seq}:{hunk}" for seq, hunks in by_edit.items() if seq not in whole for hunk in hunks]
    said = []
    if whole:
        said.append(f"edit{'s' if len(whole) > 1 else ''} {shown_edits(whole)}")
    if parts:
        said.append(f"hunk{'s' if len(parts) > 1 else ''} {_shown_hunks(parts)}")
    return " and ".join(said) or "nothing"


def _shown_hunks(names: Sequence[str]) -> str:
    """Return the names of some hunks, shortened like numbers of edits."""
    if len(names) <= MOST_HUNKS:
        return " ".join(names)
    return f"{' '.join(names[: MOST_HUNKS - 2])} ... {names[-1]} ({len(names)} hunks)"


def effect_line(effect: "FileEffect", *, dry_run: bool) -> str:
    """Return one line about what happens to a file, or would."""
    is_link = (effect.mode_before if effect.path_after is None else effect.mode_after) == LINK_MODE
    kind = "the link " if is_link else ""
    match effect.path_before, effect.path_after:
        case str(gone), None:
            done, wanted, rest = "Removed", "Would remove", kind + shown_name(gone)
        case None, str(made):
            done, wanted, rest = "Restored", "Would restore", kind + shown_name(made)
        case str(old), str(new) if old != new:
            done, wanted, rest = "Moved", "Would move", f"{shown_name(old)} -> {shown_name(new)}"
            if effect.before != effect.after:
                rest += " and rewrite it" if dry_run else " and rewrote it"
        case _:
            done, wanted, rest = "Rewrote", "Would rewrite", kind + shown_name(effect.path_after or "")
            if effect.before == effect.after:
                done, wanted = "Changed the mode of", "Would change the mode of"
    modes = f" (mode {effect.mode_before:04o} -> {effect.mode_after:04o})"
    rest += " without setuid and setgid, which no file gets back" if effect.mode_lost else ""
    both = effect.path_before is not None and effect.path_after is not None
    return f"{wanted if dry_run else done} {rest}" + (modes if both and effect.mode_before != effect.mode_after else "")


# ---- refused


def conflict_text(outcome: "Conflicted", advice: Sequence[str], screen: Screen) -> Iterator[bytes]:
    """Yield which edit needs which, on which lines, the lines themselves, and what can be done."""
    conflicts = list({str(conflict): conflict for conflict in outcome.conflicts}.values())  # each said once
    number = len(conflicts)
    yield screen.line(f"cas: refused, nothing was changed: {number} conflict{'' if number == 1 else 's'}.")
    quoted: tuple[Unit, bytes, bytes] | None = None
    for conflict in conflicts[:CONFLICTS_SHOWN]:
        yield screen.line(f"  {visible(str(conflict))}")
        lines = (conflict.unit, conflict.removed, conflict.inserted)
        if lines != quoted:  # a hunk may need several others: its lines are quoted once
            yield from _quoted_both(conflict, screen)
        quoted = lines
    if number > CONFLICTS_SHOWN:
        yield screen.line(f"  and {number - CONFLICTS_SHOWN} more (--json has them all)")
    for line in advice:
        yield screen.line(line)


MY_CHANGES: Final = {
    OnExternal.KEEP: "--my-changes keep",
    OnExternal.DISCARD: "--my-changes drop",
    OnExternal.ABORT: "--on-external abort",
}
"""The option that gives an answer about changes that were not recorded."""


def resolution_commands(
    action: Action,
    selection: UnitSelection,
    outcome: "Conflicted",
    edit: Callable[[int], "EditView"],
    *,
    newest: int,
    on_external: OnExternal | None = None,
    can_mark: bool = False,
    program: str = "cas",
) -> list[str]:
    """Return what the user can do about a refused decision, as commands to type.

    `selection` is what was named; `edit` returns an edit by its number, and `newest` is the number of the newest.
    `on_external` is the answer about changes from outside, which each command must repeat; `can_mark`: whether
    --markers would take the decision; `program`: how each command begins, because the numbers mean other edits in
    another workspace.
    """
    dead, live, is_dropped = _in_the_way(outcome, edit)
    settled = _answer(on_external, is_dropped=is_dropped)
    said = _about_outside(settled, can_mark=can_mark) if is_dropped else []
    command = selection.command or "reject"
    cascade = f"To reject what depends on it too:  {program} {command} --cascade {_words(selection)}{settled}"
    keep = []
    if outcome.can_keep_lines:
        kept = _answer(OnExternal.KEEP if outcome.outside else on_external, is_dropped=False)
        words = f"--keep-lines {_words(selection)}{kept}"
        keep = [f"To keep the file with the lines of others:  {program} {command} {words}"]
    if _are_many(dead, live):
        # A cascade finds those that go.
        return said + _listed(dead, live) + keep + ([cascade] if action is Action.REJECT and live else [])
    # With --all, the same edits, for where it can't be combined with others.
    named = f"1..{newest}" if selection.everything else _words(selection)
    match action:
        case Action.REJECT:
            together = f"Or name them together:  {program} reject {named} {live}{settled}"
            # What has taken a path doesn't depend on the rejected edits, so no cascade helps, nor for dropped changes.
            is_path = any(conflict.kind is ConflictKind.PATH_TAKEN for conflict in outcome.conflicts)
            if is_path:
                together = f"To reject them together:  {program} reject {named} {live}{settled}"
            said += keep
            said += [] if is_path or (is_dropped and not live) else [cascade]
            said += [together] if live and command == "reject" else []
        case _:
            said += [f"To make room first:  {program} reject {live}{settled}"] if live else []
            verb = "reopen" if action is Action.RESET else action.value
            together = f"To {verb} them together:  {program} {verb} {named} {dead}{settled}"
            said += [together] if dead else []
    return said


def undo_commands(
    outcome: "Conflicted",
    edit: Callable[[int], "EditView"],
    *,
    number: int,
    on_external: OnExternal | None = None,
    program: str = "cas",
) -> list[str]:
    """Return what the user can do about a refused undo of decision `number`; the rest as in `resolution_commands`."""
    dead, live, is_dropped = _in_the_way(outcome, edit)
    settled = _answer(on_external, is_dropped=is_dropped)
    said = _about_outside(settled, can_mark=False) if is_dropped else []
    if _are_many(dead, live):
        return said + _listed(dead, live)
    undo = f"{program} undo --decision {number}{settled}"
    if live and not dead:
        said.append(f"To undo it all the same:  {program} reject {live}{settled} && {undo}")
    elif dead:
        others = " ".join(filter(None, (dead, live)))
        said.append(f"Decide on {others} first (`{program} show EDIT`), then run:  {undo}")
    return said


def _in_the_way(outcome: "Conflicted", edit: Callable[[int], "EditView"]) -> tuple[str, str, bool]:
    """Return the names of the edits to accept and to reject first, and whether a change from outside has to go too.

    Such a change has no number yet to name it by.
    """
    outside = set(outcome.outside)
    dead = _unit_words(outcome.accept_first, edit)
    live = _unit_words((unit for unit in outcome.reject_first if unit.seq not in outside), edit)
    return dead, live, any(unit.seq in outside for unit in outcome.reject_first)


def _answer(on_external: OnExternal | None, *, is_dropped: bool) -> str:
    if is_dropped:
        on_external = OnExternal.DISCARD
    return "" if on_external is None else f" {MY_CHANGES[on_external]}"


def _about_outside(settled: str, *, can_mark: bool) -> list[str]:
    end = "," if can_mark else "."
    said = f"The change from outside is in conflict: pass{settled} to drop it (it can still be restored){end}"
    return [said, "or --markers to keep both in the file."] if can_mark else [said]


def _are_many(dead: str, live: str) -> bool:
    """Return whether names are too many to type; programs read the list."""
    return max(dead.count(" "), live.count(" ")) >= NAMES_SHOWN


def _listed(dead: str, live: str) -> list[str]:
    named = ((dead, "accepted"), (live, "rejected"))
    return [f"Would have to be {verb} too: {_first_of(words)} (--json lists all)." for words, verb in named if words]


def _first_of(words: str) -> str:
    """Return the first few of some names, and the number of further ones."""
    names = words.split(" ")
    more = len(names) - NAMES_SHOWN
    return " ".join(names[:NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _words(selection: UnitSelection) -> str:
    from cli.screen.quoting import typed

    words = list(selection.names)
    if selection.conversation:
        words += ["--conversation", selection.conversation]
    words += selection.by.words
    if selection.file:
        words += ["--file", selection.file]
    if selection.everything:
        words.append("--all")
    return " ".join(map(typed, words))


def _unit_words(units: Iterable[Unit], edit: Callable[["Seq"], "EditView"]) -> str:
    by_edit: dict[Seq, list[int]] = {}
    for unit in units:
        by_edit.setdefault(unit.seq, []).append(unit.hunk)
    words = []
    for seq, hunks in by_edit.items():
        view = edit(seq)
        if view.expired is not None:
            continue  # it keeps its status
        # An edit of which all hunks are named is named as a whole.
        if 0 in hunks or (not view.whole and len(hunks) == len(view.units) - 1):
            words.append(str(seq))
        else:
            words += [f"{seq}:{hunk}" for hunk in hunks]
    return " ".join(words)


def _quoted_both(conflict: "Conflict", screen: Screen) -> Iterator[bytes]:
    if is_of_binary(conflict):
        yield screen.line("    Binary files differ")
        return
    yield from _quoted(b"-", conflict.removed, screen)
    yield from _quoted(b"+", conflict.inserted, screen)


def _quoted(sign: bytes, text: bytes, screen: Screen) -> Iterator[bytes]:
    lines = text.removesuffix(b"\n").split(b"\n") if text else []
    for line in lines[:LINES_SHOWN]:
        shown = beginning(line, BYTES_SHOWN)
        yield b"    " + sign + b" " + screen.content(shown) + b"\n"
        if shown != line:
            more = len(line) - len(shown)
            yield screen.line(f"      and {more} more byte{'' if more == 1 else 's'}")
    if len(lines) > LINES_SHOWN:
        yield screen.line(f"      and {len(lines) - LINES_SHOWN} more lines")


def is_of_binary(conflict: "Conflict") -> bool:
    """Return whether the conflict is in a file that is not text."""
    return is_either_binary(conflict.removed, conflict.inserted)


def beginning(text: bytes, most: int) -> bytes:
    """Return at most the first `most` bytes of a text, without an incomplete character at the end."""
    end = most
    while len(text) > most and end > most - 3 and text[end] & 0xC0 == 0x80:  # noqa: PLR2004 - as UTF-8 goes on
        end -= 1
    return text[:end]


def external_refusal(changes: Sequence["ExternalChange"], program: str = "cas") -> str:
    """Return why a decision was refused: files changed outside. `program`: as in `resolution_commands`."""
    names = ", ".join(shown_name(change.path) for change in changes[:3])
    more = f" and {len(changes) - 3} more" if len(changes) > 3 else ""  # noqa: PLR2004 -- three names fit a line
    return (
        f"refused, nothing was changed: {names}{more} changed outside since the last recorded state.\n"
        f"See `{program} diff --unrecorded`. "
        "Pass --my-changes keep to record it and continue, or --my-changes drop to drop it."
    )
