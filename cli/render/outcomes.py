"""Outcomes of decisions, made, previewed or refused, as lines for a terminal, with the commands that help."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from cli.app.invocation import Invocation
from cli.screen.terminal import Screen, shown_name, visible
from cli.selection.unit_selection import UnitSelection
from objstore import (
    Action,
    ConflictKind,
    ExternalChanges,
    OnExternal,
    beginning,
    distinct_conflicts,
    edits_and_hunks,
    effect_words,
    few,
    is_either_binary,
    outcome_words,
    refusal,
    shown_units,
)

if TYPE_CHECKING:
    from objstore import Conflict, Conflicted, Decided, EditView, ExternalChange, FileEffect, Unit

__all__ = [
    "BYTES_SHOWN",
    "MY_CHANGES",
    "Preview",
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
CONFLICTS_SHOWN: Final = 50
NAMES_SHOWN: Final = 10

Preview = Callable[["FileEffect"], tuple[bytes | None, bytes | None]]
"""Returns the bytes of a file before and after a decision; None: no file."""


# ---- done, or shown


def decided_text(
    outcome: "Decided",
    edit: Callable[[int], "EditView"],
    screen: Screen,
    *,
    dry_run: bool,
    files: Sequence[str] = (),
    says_unchanged: bool = True,
    subject: str = "",
) -> Iterator[bytes]:
    """Yield what a decision changed: the units, the files, and what was recorded on the way.

    `files`: the files of the edits, if the line should name them. `says_unchanged`: say so if no file changed.
    `subject`: what was decided on, in place of the names of edits and hunks ("": these).
    """
    words = outcome_words(outcome, edit, shown_name, dry_run=dry_run, files=files, subject=subject)
    if dry_run:
        yield screen.line("Dry run: nothing was changed.")
    for sentence in (words.done, *words.along):
        yield screen.line(visible(sentence))
    if outcome.taken_out:
        units = [unit for unit, _ in outcome.taken_out]
        it = "it" if shown_units(units, edit).count(" ") == 1 else "them"
        yield screen.line(f"To reject {it}:  {Invocation.current().program} reject {_unit_words(units, edit)}")
    for sentence in words.files:
        yield screen.line(sentence)
    if not outcome.files and says_unchanged:
        yield screen.line("No file changes." if dry_run else "No file changed.")
    for sentence in words.notes:
        yield screen.line(visible(sentence))


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


def effect_line(effect: "FileEffect", *, dry_run: bool) -> str:
    """Return one line about what happens to a file, or would."""
    return effect_words(effect, shown_name, dry_run=dry_run)


# ---- refused


def conflict_text(outcome: "Conflicted", advice: Sequence[str], screen: Screen) -> Iterator[bytes]:
    """Yield which edit needs which, on which lines, the lines themselves, and what can be done."""
    conflicts = distinct_conflicts(outcome)
    number = len(conflicts)
    yield screen.line(_refusal(outcome))
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
    live = _unit_words([unit for unit in outcome.reject_first if unit.seq not in outside], edit)
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
    return [
        f"Would have to be {verb} too: {few(words.split(), NAMES_SHOWN)} (--json lists all)."
        for words, verb in named
        if words
    ]


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


def _unit_words(units: Collection["Unit"], edit: Callable[[int], "EditView"]) -> str:
    """Return the names of units as they are typed, without those that have expired: these keep their statuses."""
    views: dict[int, EditView] = {seq: edit(seq) for seq in {unit.seq for unit in units}}
    kept = (unit for unit in units if views[unit.seq].expired is None)
    whole, parts = edits_and_hunks(kept, views.__getitem__)
    return " ".join([*map(str, whole), *parts])


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


def external_refusal(changes: Sequence["ExternalChange"], program: str = "cas") -> str:
    """Return why a decision was refused: files changed outside. `program`: as in `resolution_commands`."""
    said = refusal(ExternalChanges(changes=tuple(changes)), shown_name)
    return (
        f"{said[0].lower()}{said[1:]}\n"
        f"See `{program} diff --unrecorded`. "
        "Pass --my-changes keep to record it and continue, or --my-changes drop to drop it."
    )


def _refusal(outcome: "Conflicted") -> str:
    """Return the first line of a refused decision, as errors begin on the command line."""
    said = refusal(outcome, shown_name)
    return f"cas: {said[0].lower()}{said[1:]}"
