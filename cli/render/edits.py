"""Edits and diffs as text for a person: lines, as bytes to write."""

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from cli.screen.syntax import PLAIN_SYNTAX, Mark, Syntax
from cli.screen.terminal import Screen, shown_name, width_of_terminal
from objstore import (
    Hunk,
    Operation,
    Origin,
    Status,
    Unit,
    blob_id,
    date_of,
    is_either_binary,
    numbered_hunks,
    quoted_name,
    split_lines,
    touching_hunks,
    unified_diff,
)

if TYPE_CHECKING:
    from objstore import Edit, EditView, Expiration, FileState, Marks, SkippedPath, State, UnresolvedMarkers, Workspace

__all__ = [
    "CONTEXT",
    "SHORT_HASH",
    "STATUS_COLOR",
    "concerns",
    "diff_name",
    "diff_text",
    "edit_diff",
    "edit_header",
    "existence_changes",
    "extended_header",
    "hunk_body",
    "hunk_head",
    "line_counts",
    "moment",
    "not_looked_at",
    "short_moment",
    "shown_move",
    "shown_syntax",
    "states_diff",
    "status_word",
]

CONTEXT: Final = 3
"""Unchanged lines that are shown above a change, and below it."""

RECENT: Final = 250 * 86_400
"""Seconds for which a time is shown without its year, as in listings of files."""

FACT_AT: Final = 14
"""Width of the column with the names of facts about an edit."""

_FOR_PROGRAMS: Final = frozenset({"edit_places"})
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

EMPTY: Final = blob_id(b"")
NO_NEWLINE: Final = b"\\ No newline at end of file"
SIGN_COLOR: Final = {b"-": "red", b"+": "green", b"@": "cyan"}

# ---- one edit


def edit_header(
    view: "EditView", author: tuple[str, str], screen: Screen, unresolved: Sequence["UnresolvedMarkers"] = ()
) -> Iterator[bytes]:
    """Yield the facts about one edit.

    `author`: whose it is, as `Authors.fact`; `unresolved`: the conflict markers that are in the files.
    """
    edit = view.edit
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
        "reason": shown_name(view.reason) if view.reason else "",
        "expired": "" if view.expired is None else _shown_expiration(view.expired),
    } | {shown_name(key): shown_name(note) for key, note in sorted(edit.notes.items()) if key not in _FOR_PROGRAMS}
    for name, fact in facts.items():
        if fact:
            yield screen.line(f"{name:{FACT_AT - 2}}  {fact}")


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
    before = None if edit.before is None else workspace.history.text(edit.before.blob)
    after = None if edit.after is None else workspace.history.text(edit.after.blob)
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
        lead = min(CONTEXT, hunks[0].old_start - shown)
        trail = min(CONTEXT, following - hunks[-1].old_end)
        if not trail and later is not None and piece[-1][0]:
            trail = 1  # the unwanted hunk begins at the last line, and changes only its newline
        shown = hunks[-1].old_end
        if piece[0][0] in wanted:
            shown += trail
            label = ", ".join(_label(view, number, screen) for number, _ in piece)
            yield hunk_head(hunks, lead, trail, label, screen)
            yield from hunk_body(old, new, hunks, lead, trail, screen, syntax)
            for number, _ in piece:
                yield from remarks.get(Unit(view.seq, number), ())


def hunk_body(
    old: Sequence[bytes],
    new: Sequence[bytes],
    hunks: Sequence[Hunk],
    lead: int,
    trail: int,
    screen: Screen,
    syntax: Syntax = PLAIN_SYNTAX,
) -> Iterator[bytes]:
    """Yield hunks under one header, with `lead` lines above them and `trail` below."""
    first, last = hunks[0], hunks[-1]
    at = first.old_start - lead
    if screen.columns:
        from cli.screen.side_by_side import hunk_rows

        for hunk in hunks:
            yield from hunk_rows(old, new, hunk, hunk.old_start - at, trail if hunk is last else 0, screen, syntax)
            at = hunk.old_end
        return
    for hunk in hunks:
        yield from _side(b" ", old[at : hunk.old_start], screen, syntax.old[at : hunk.old_start])
        at = hunk.old_end
        old_lines, new_lines = slice(hunk.old_start, hunk.old_end), slice(hunk.new_start, hunk.new_end)
        own = Syntax(old=syntax.old[old_lines], new=syntax.new[new_lines])
        yield from _sides(old[old_lines], new[new_lines], screen, own)
    below = slice(last.old_end, last.old_end + trail)
    yield from _side(b" ", old[below], screen, syntax.old[below])


def shown_syntax(path_before: str, path: str, old: Sequence[bytes], new: Sequence[bytes], screen: Screen) -> Syntax:
    """Return the syntax of both sides of a change, for a coloured screen."""
    if not screen.color:
        return PLAIN_SYNTAX
    from cli.screen.side_by_side import TAB
    from cli.screen.syntax import syntax_of

    def shown(lines: Sequence[bytes]) -> list[str]:
        texts = [screen.content(line.removesuffix(b"\n")).decode() for line in lines]
        return [text.expandtabs(TAB) for text in texts] if screen.columns else texts

    return syntax_of(path_before, path, shown(old), shown(new))


def shown_move(source: bytes | None, path: bytes) -> str:
    """Return a file's name, with its previous name if it was moved."""
    name = shown_name(os.fsdecode(path))
    return name if source is None else f"{shown_name(os.fsdecode(source))} -> {name}"


def _shown_expiration(expired: "Expiration") -> str:
    return f"{moment(expired.time, zone=True)}, {shown_name(expired.reason)}: its content is no longer kept"


def _shown_size(workspace: "Workspace", state: "FileState") -> str:
    size = workspace.history.size(state.blob)
    return f"{size} byte{'' if size == 1 else 's'}"


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
    if edit.newline:
        yield "final newline added or removed"


def hunk_head(hunks: Sequence[Hunk], lead: int, trail: int, label: str, screen: Screen) -> bytes:
    """Return the header of hunks with `lead` lines above them and `trail` below, followed by a label."""
    first, last = hunks[0], hunks[-1]
    old = _span(first.old_start - lead, lead + last.old_end - first.old_start + trail)
    new = _span(first.new_start - lead, lead + last.new_end - first.new_start + trail)
    return screen.line(f"{screen.paint(f'@@ -{old} +{new} @@', 'cyan')} {label}".rstrip())


def _span(start: int, count: int) -> str:
    # Lines are counted from 1; a span of none names the line before it.
    return f"{start + 1 if count else start},{count}"


def _sides(
    old: Sequence[bytes], new: Sequence[bytes], screen: Screen, syntax: Syntax = PLAIN_SYNTAX
) -> Iterator[bytes]:
    """Yield both sides of a change, coloured, with the words marked that differ within lines."""
    if not screen.color or not old or not new:
        yield from _side(b"-", old, screen, syntax.old)
        yield from _side(b"+", new, screen, syntax.new)
        return
    from cli.screen.word_diff import Span, emphasis, paired_lines

    old_shown, new_shown = ([screen.content(line.removesuffix(b"\n")).decode() for line in side] for side in (old, new))
    old_spans: dict[int, tuple[Span, ...]] = {}
    new_spans: dict[int, tuple[Span, ...]] = {}
    for i, j in paired_lines(old, new):
        found = emphasis(old_shown[i], new_shown[j])
        if found is not None:
            old_spans[i], new_spans[j] = found
    sides = (("-", old, old_shown, old_spans, syntax.old), ("+", new, new_shown, new_spans, syntax.new))
    for sign, lines, shown, spans, marks in sides:
        for at, (line, text) in enumerate(zip(lines, shown, strict=True)):
            marked = screen.emphasize(text, spans.get(at, ()), marks[at] if marks else ())
            yield screen.line(screen.paint(sign + marked, SIGN_COLOR[sign.encode()]))
            if not line.endswith(b"\n"):
                yield NO_NEWLINE + b"\n"


def _side(
    sign: bytes, lines: Iterable[bytes], screen: Screen, syntax: Sequence[Sequence[Mark]] = ()
) -> Iterator[bytes]:
    for at, line in enumerate(lines):
        yield _content_line(sign + line.removesuffix(b"\n"), screen, syntax[at] if syntax else ())
        if not line.endswith(b"\n"):
            yield NO_NEWLINE + b"\n"


def _content_line(line: bytes, screen: Screen, marks: Sequence[Mark] = ()) -> bytes:
    shown = screen.content(line)
    color = SIGN_COLOR.get(line[:1])
    if screen.color and (marks or color is not None):
        sign, text = line[:1].decode(), shown[1:].decode()
        if color is None:
            shown = f"{sign}{screen.highlight(text, marks)}".encode()
        else:
            shown = screen.paint(sign + screen.emphasize(text, (), marks), color).encode()
    return shown + b"\n"


# ---- diffs between two states


def diff_text(
    before: bytes | None,
    after: bytes | None,
    path_before: str,
    path_after: str,
    screen: Screen,
    *,
    modes: tuple[int, int] | None = None,
    is_move: bool = True,
) -> Iterator[bytes]:
    """Yield the unified diff of a file, with git's extended header lines for what no hunk can express.

    None means no file. `modes` are the permission bits before and after. `is_move`: whether two paths are those of one
    file that was moved, and not of two files that are compared.
    """
    yield from extended_header(
        path_before,
        path_after,
        *(modes or (0o644, 0o644)),
        screen,
        is_new=before is None,
        is_gone=after is None,
        is_move=is_move,
    )
    if screen.columns and not is_either_binary(before or b"", after or b""):
        yield from _diff_columns(before or b"", after or b"", screen)
        return
    diff = unified_diff(
        before,
        after,
        path_before=f"a/{path_before}",
        path_after=f"b/{path_after}",
    )
    # Only b"\n" ends a line here; splitlines() would cut at CR too.
    rows = diff.removesuffix(b"\n").split(b"\n") if diff else []
    names = 2 if rows and rows[0].startswith(b"--- ") else 0
    for row in rows[:names]:
        yield screen.line(screen.paint(row.decode(), bold=True))
    yield from _diff_rows(rows[names:], screen)


def extended_header(
    path_before: str,
    path_after: str,
    mode_before: int,
    mode_after: int,
    screen: Screen,
    *,
    is_new: bool,
    is_gone: bool,
    is_move: bool = True,
) -> Iterator[bytes]:
    """Yield the lines above the names of a file in git's form. `is_move`: as for `diff_text`."""
    header = [f"diff --git {diff_name('a', path_before)} {diff_name('b', path_after)}"]
    if is_new:
        header.append(f"new file mode 100{mode_after:03o}")
    elif is_gone:
        header.append(f"deleted file mode 100{mode_before:03o}")
    elif mode_before != mode_after:
        header += [f"old mode 100{mode_before:03o}", f"new mode 100{mode_after:03o}"]
    if is_move and not is_new and not is_gone and path_before != path_after:
        header += [f"rename from {diff_name('', path_before)}", f"rename to {diff_name('', path_after)}"]
    for line in header:
        yield screen.line(screen.paint(line, bold=True))


def _diff_columns(before: bytes, after: bytes, screen: Screen) -> Iterator[bytes]:
    from objstore import diff_lines

    old, new = split_lines(before), split_lines(after)
    hunks = [hunk for _, hunk in numbered_hunks(old, new, diff_lines(before, after))]
    if not hunks:
        return  # an empty file was created or deleted, or only a name or mode differs
    shown = 0
    for hunk, following in zip(hunks, [*(later.old_start for later in hunks[1:]), len(old)], strict=True):
        lead, trail = min(CONTEXT, hunk.old_start - shown), min(CONTEXT, following - hunk.old_end)
        yield hunk_head([hunk], lead, trail, "", screen)
        yield from hunk_body(old, new, [hunk], lead, trail, screen)
        shown = hunk.old_end + trail


def _diff_rows(rows: Sequence[bytes], screen: Screen) -> Iterator[bytes]:
    """Yield the lines of hunks, each change as one piece."""
    if not screen.color:
        yield from (_content_line(row, screen) for row in rows)
        return
    at = 0
    while at < len(rows):
        change, old, new = at, list[bytes](), list[bytes]()
        # A remark about a missing newline belongs to the line before it.
        for side, sign in ((old, b"-"), (new, b"+")):
            while at < len(rows) and (rows[at][:1] == sign or (side and rows[at] == NO_NEWLINE)):
                if rows[at] == NO_NEWLINE:
                    side[-1] = side[-1].removesuffix(b"\n")
                else:
                    side.append(rows[at][1:] + b"\n")
                at += 1
        if at > change:
            yield from _sides(old, new, screen)
        else:
            yield _content_line(rows[at], screen)
            at += 1


def diff_name(side: str, path: str) -> str:
    """Return a file's name as a header of a diff shows it."""
    # In the form of `unified_diff`, so that one parser understands both.
    return quoted_name(f"{side}/{path}" if side else path).decode()


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


def not_looked_at(place: "SkippedPath") -> str:
    """Return the message about a path that a scan could not read."""
    where = f"{shown_name(place.path)}: " if place.path else ""
    return f"cas: skipped: {where}{shown_name(place.reason)}"
