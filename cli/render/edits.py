"""Edits as text for a person: lines, as bytes to write."""

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from cli.screen.diffs import CONTEXT, diff_name, diff_text, hunk_text, shown_syntax
from cli.screen.terminal import Screen, shown_name, visible, width_of_terminal
from objstore import (
    Operation,
    Origin,
    Status,
    Unit,
    blob_id,
    counted,
    date_of,
    few,
    is_either_binary,
    numbered_hunks,
    split_lines,
    touching_hunks,
)

if TYPE_CHECKING:
    from objstore import (
        Edit,
        EditView,
        Expiration,
        FileState,
        Marks,
        RemoteVerdict,
        State,
        UnresolvedMarkers,
        Verdict,
        Workspace,
    )

__all__ = [
    "SHORT_HASH",
    "STATUS_COLOR",
    "concerns",
    "edit_diff",
    "edit_header",
    "existence_changes",
    "line_counts",
    "moment",
    "short_moment",
    "shown_decider",
    "shown_move",
    "states_diff",
    "status_word",
]

RECENT: Final = 250 * 86_400
"""Seconds for which a time is shown without its year, as in listings of files."""

FACT_AT: Final = 14
"""Width of the column with the names of facts about an edit."""

_FOR_PROGRAMS: Final = frozenset({"edit_places", "made"})
"""Notes of an edit that say nothing to a person; `--json` has them."""

SHORT_HASH: Final = 16
"""Digits of a shortened hash, which still name the blob."""

STATUS_COLOR: Final = {
    Status.PENDING: "yellow",
    Status.ACCEPTED: "green",
    Status.REJECTED: "red",
    Status.AWAY: "cyan",
}
"""Colour of each status."""

_COMMIT: Final = 7
"""Digits of a git commit."""

_UNITS: Final = 10
"""Units that a decision lists by name; an edit may have thousands."""

EMPTY: Final = blob_id(b"")

# ---- one edit


def edit_header(
    view: "EditView",
    author: tuple[str, str],
    verdicts: "Iterable[Verdict]",
    screen: Screen,
    unresolved: Sequence["UnresolvedMarkers"] = (),
    awaited: "Mapping[Unit, RemoteVerdict]" = MappingProxyType({}),
) -> Iterator[bytes]:
    """Yield the facts about one edit.

    `author`: whose it is, as `Authors.fact`; `verdicts`: the decisions on it; `unresolved`: the conflict markers that
    are in the files; `awaited`: as of Workspace.
    """
    edit = view.edit
    elsewhere = awaited_words(awaited, view.telling_units)
    name = shown_move(edit.source, edit.path)
    title = f"edit {edit.seq}  {edit.operation.value}  {name}  {line_counts(edit)}"
    yield screen.line(
        screen.paint(title, bold=True) + "  " + screen.paint(status_word(view), STATUS_COLOR[view.status])
    )
    facts = {
        "id": _shown_hash(view.id.hex(), ""),
        author[0]: shown_name(author[1]),
        "call": str(edit.call),
        "tool": shown_name(edit.tool),
        "origin": "" if edit.origin is Origin.AGENT else edit.origin.value,
        "amends": "" if edit.amends is None else f"edit {edit.amends}",
        "markers": "" if edit.marks is None else _own_markers(edit, edit.marks, unresolved),
        "between": "; ".join(_shown_places(markers) for markers in unresolved if concerns(markers, edit)),
        "time": moment(edit.time, zone=True),
        "before": _shown_state(edit.before),
        "after": _shown_state(edit.after),
        "decided": "; ".join([*(_shown_verdict(verdict, view) for verdict in verdicts), *elsewhere]),
        "reason": shown_name(view.reason) if view.reason else "",
        "expired": "" if view.expired is None else _shown_expiration(view.expired),
    }
    notes = {
        f"note {key}" if key in facts else shown_name(key): shown_name(note)
        for key, note in sorted(edit.notes.items())
        if key not in _FOR_PROGRAMS
    }
    for name, fact in (facts | notes).items():
        if fact:
            yield screen.line(f"{name:{FACT_AT - 2}}  {fact}")
    for at, line in enumerate(view.check.splitlines()):
        yield screen.line(f"{'' if at else 'check':{FACT_AT - 2}}  {visible(line)}")


def line_counts(edit: "Edit") -> str:
    """Return how many lines an edit adds and removes, or that it changes a binary file."""
    states = {state.blob for state in (edit.before, edit.after) if state is not None} - {EMPTY}
    is_binary = (
        not (edit.added or edit.removed) and len(states) > 0 and (edit.hunks or None in {edit.before, edit.after})
    )
    return "binary" if is_binary else f"+{edit.added} -{edit.removed}"


def concerns(markers: "UnresolvedMarkers", edit: "Edit") -> bool:
    """Return whether one of the edit's hunks is between the markers."""
    return any(unit.seq == edit.seq for unit in (*markers.decided, *markers.aside))


def _own_markers(edit: "Edit", marks: "Marks", unresolved: Sequence["UnresolvedMarkers"]) -> str:
    where = next((_shown_places(markers) for markers in unresolved if markers.edit == edit.seq), "resolved")
    aside = " ".join(str(unit) for unit, _ in marks.aside)
    return f"of decision {marks.decision}, which set aside {aside}: {where}"


def _shown_places(markers: "UnresolvedMarkers") -> str:
    return f"conflict markers at {shown_name(markers.path)}:{','.join(map(str, markers.lines))} (edit {markers.edit})"


def edit_diff(
    view: "EditView",
    workspace: "Workspace",
    screen: Screen,
    units: Iterable[Unit] | None = None,
    remarks: Mapping[Unit, Iterable[bytes]] = MappingProxyType({}),
) -> Iterator[bytes]:
    """Yield the diff of one edit, each hunk under its own name and status (`12:1 pending`).

    With `units`, only those hunks. The result is a unified diff: the names are where a diff allows a remark. `remarks`:
    lines to show below some hunks; with any, the result is for reading only. Raises EditExpired.
    """
    view.refuse_if_expired()
    edit = view.edit
    wanted = set(range(len(view.units))) if units is None else {unit.hunk for unit in units}
    before, after = workspace.history.sides(edit)
    old_name, new_name = os.fsdecode(edit.source or edit.path), os.fsdecode(edit.path)
    if 0 in wanted and view.whole:
        label = _label(view, 0, screen)
        for change in _whole_changes(edit):
            yield screen.line(f"{label}  {change}")
    has_parts = edit.hunks or edit.newline
    if not has_parts or before is None or after is None or is_either_binary(before, after):
        # The bytes are the edit's only hunk, or part of its whole-file unit if they came or went with the file.
        concerned = [hunk for hunk in sorted(wanted) if hunk or not edit.hunks]
        if concerned and before != after:
            if is_either_binary(before or b"", after or b""):
                sizes = [_shown_size(workspace, state) for state in (edit.before, edit.after) if state is not None]
                yield screen.line(f"{_label(view, concerned[0], screen)}  {' -> '.join(sizes)}")
            yield from diff_text(before, after, old_name, new_name, screen)
        for hunk in sorted(wanted):
            yield from remarks.get(Unit(view.seq, hunk), ())
        return
    old, new = split_lines(before), split_lines(after)
    numbered = numbered_hunks(old, new, edit.hunks, newline=edit.newline)
    if wanted.isdisjoint(number for number, _ in numbered):
        return
    yield screen.line(screen.paint(f"--- {diff_name('a', old_name)}", bold=True))
    yield screen.line(screen.paint(f"+++ {diff_name('b', new_name)}", bold=True))
    syntax = shown_syntax(old_name, new_name, old, new, screen)
    runs = touching_hunks(numbered, len(old))
    pieces = [list(piece) for run in runs for _, piece in groupby(run, lambda named: named[0] in wanted)]
    shown = 0
    for piece, later in zip(pieces, [*pieces[1:], None], strict=True):
        hunks = [hunk for _, hunk in piece]
        following = len(old) if later is None else later[0][1].old_start
        if later is not None and piece[-1][0]:  # an unwanted hunk right below changes only the last line's newline
            following = max(following, hunks[-1].old_end + 1)
        above, shown = shown, hunks[-1].old_end
        if piece[0][0] in wanted:
            shown = min(shown + CONTEXT, following)
            label = ", ".join(_label(view, number, screen) for number, _ in piece)
            yield from hunk_text(old, new, hunks, (above, following), label, screen, syntax)
            for number, _ in piece:
                yield from remarks.get(Unit(view.seq, number), ())


def shown_move(source: bytes | None, path: bytes) -> str:
    """Return a file's name, with its previous name if it was moved."""
    name = shown_name(os.fsdecode(path))
    return name if source is None else f"{shown_name(os.fsdecode(source))} -> {name}"


def _shown_verdict(verdict: "Verdict", view: "EditView") -> str:
    """Return what was decided, by whom, through what and when, behind its units if these are not all of the edit's."""
    by = shown_decider(verdict.who, verdict.via, verdict.agent, verdict.commit)
    named = "" if len(verdict.units) == len(view.telling) else f"{few(verdict.units, _UNITS)}: "
    return f"{named}{verdict.action.value} by {by}, {moment(verdict.time)}, decision {verdict.decision}"


def awaited_words(awaited: "Mapping[Unit, RemoteVerdict]", units: Sequence[Unit]) -> list[str]:
    """Return each decision on hunks of another store that its mirror doesn't show yet, behind its hunks if not all.

    `awaited`: as of Workspace.
    """
    found: dict[int, list[Unit]] = {}
    for unit in units if awaited else ():
        if unit in awaited:
            found.setdefault(awaited[unit].number, []).append(unit)
    words = []
    for decided in found.values():
        names = f"{few(decided, _UNITS)} " if len(decided) < len(units) else ""
        words.append(f"{names}{shown_name(awaited[decided[0]].words)}")
    return words


def shown_decider(who: str, via: str, agent: str, commit: str = "") -> str:
    """Return who decided, and through what: `ada (terminal)`. Texts may be empty: not known."""
    through = via
    if commit:
        through = f"commit {commit[:_COMMIT]}"
    elif agent:
        through = f"{via or 'somewhere'} in {agent}'s shell"
    return f"{shown_name(who) or 'a person'}{f' ({shown_name(through)})' if through else ''}"


def _shown_expiration(expired: "Expiration") -> str:
    return f"{moment(expired.time, zone=True)}, {shown_name(expired.reason)}: its content is no longer kept"


def _shown_size(workspace: "Workspace", state: "FileState") -> str:
    return counted(workspace.history.size(state.blob), "byte")


def status_word(view: "EditView") -> str:
    """Return the edit's status in a word."""
    return "partly" if view.partly else view.status.value


def _label(view: "EditView", hunk: int, screen: Screen) -> str:
    status = view.units[hunk]
    return f"{view.seq}:{hunk} {screen.paint(status.value, STATUS_COLOR[status])}"


def _shown_state(state: "FileState | None") -> str:
    return "(no file)" if state is None else _shown_hash(state.blob.hex(), f"  mode {state.mode:04o}")


def _shown_hash(digits: str, behind: str) -> str:
    """Return a hash and the text after it; shortened if the terminal is too narrow."""
    room = width_of_terminal()
    is_cut = 0 < room < FACT_AT + len(digits) + len(behind)
    return (digits[:SHORT_HASH] if is_cut else digits) + behind


def _whole_changes(edit: "Edit") -> Iterator[str]:
    if edit.operation is Operation.MOVE:
        yield f"move {shown_move(edit.source, edit.path)}"
    yield from existence_changes(edit)


def existence_changes(edit: "Edit") -> Iterator[str]:
    """Yield in words what an edit does to its file as a whole, except for a move."""
    if edit.before is None and edit.after is not None:
        yield f"new file, mode {edit.after.mode:04o}"
    elif edit.before is not None and edit.after is None:
        yield "file deleted"
    elif edit.before is not None and edit.after is not None and edit.before.mode != edit.after.mode:
        yield f"mode {edit.before.mode:04o} -> {edit.after.mode:04o}"
    if edit.before is not None and edit.after is not None and edit.forms[0] is not edit.forms[1]:
        yield f"encoding {edit.forms[0].words} -> {edit.forms[1].words}"
    if edit.newline:
        yield "final newline added or removed"


# ---- two states


def states_diff(workspace: "Workspace", before: "State", after: "State", screen: Screen) -> Iterator[bytes]:
    """Yield the diff between two recorded states; nothing if they are the same."""
    if (before.blob, before.mode, before.path) == (after.blob, after.mode, after.path):
        return
    yield from diff_text(
        None if before.blob is None else workspace.history.text(before.blob),
        None if after.blob is None else workspace.history.text(after.blob),
        before.path or after.path or "before",
        after.path or before.path or "after",
        screen,
        modes=(before.mode or after.mode, after.mode or before.mode),
        is_move=False,
    )


# ---- words


def moment(microseconds: int, *, zone: bool = False) -> str:
    """Return a time as a person reads it, in the person's own time zone."""
    when = date_of(microseconds).astimezone()
    return when.strftime("%Y-%m-%d %H:%M:%S %z" if zone else "%Y-%m-%d %H:%M:%S")


def short_moment(microseconds: int) -> str:
    """Return a time in eleven columns; only the date if it is long ago or in the future."""
    when = date_of(microseconds).astimezone()
    is_recent = 0 <= time.time() - microseconds / 1e6 < RECENT
    return when.strftime("%m-%d %H:%M" if is_recent else "%Y-%m-%d ")
