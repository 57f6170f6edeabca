"""Net changes as text for a person: a unified diff of each file, with the hunks that each change is made of."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from cli.render.diffstat import cancel_out
from cli.render.edits import CONTEXT, STATUS_COLOR, diff_name, extended_header, hunk_body, hunk_head
from cli.render.status import counted
from cli.screen.quoting import typed
from cli.screen.terminal import Screen, shown_name
from objstore import ChangeKind, Hunk, Status, split_lines, touching_hunks

if TYPE_CHECKING:
    from objstore import NetChange, NetFile, Unit

__all__ = ["named_units", "net_diff"]

MOST_UNITS: Final = 8
"""Number of hunks that are named; the others are counted."""


def net_diff(files: "Iterable[NetFile]", screen: Screen, program: str) -> Iterator[bytes]:
    """Yield the diff of each file from its accepted text to its current text.

    Each change has a header of its own, which names its hunks where a diff allows a remark.
    """
    for file in files:
        for remark in _remarks(file, program):
            yield screen.line(f"# {shown_name(file.path)}: {remark}")  # no name looks like a part of a diff
        if file.changes:
            yield from _file_diff(file, screen)


def named_units(units: "Sequence[Unit]", most: int = MOST_UNITS) -> str:
    """Return the names of hunks, in brackets; of more than `most`, the first ones."""
    more = len(units) - most
    names = " ".join(map(str, units[:most]))
    return f"[{names} and {more} more]" if more > 0 else f"[{names}]"


# ---- inside


def _remarks(file: "NetFile", program: str) -> Iterator[str]:
    """Yield what no hunk can express: facts about the file, each with its hunks, and what has no net effect."""
    for change in file.changes:
        units = named_units(change.units)
        match change.kind:
            case ChangeKind.MOVE:
                yield f"moved from {shown_name(file.path_before)} {units}"
            case ChangeKind.MODE:
                yield f"mode {file.mode_before:04o} -> {file.mode:04o} {units}"
            case ChangeKind.CREATE if not change.inserted:
                yield f"new file, {counted(file.size, 'byte')} {units}"
            case ChangeKind.DELETE if not change.removed:
                yield f"file of {counted(file.size_before, 'byte')} deleted {units}"
            case ChangeKind.CONTENT:
                yield f"{counted(file.size_before, 'byte')} -> {counted(file.size, 'byte')} {units}"
            case _:
                pass
    taken_out = set(file.taken_out)
    cancelled = [unit for unit in file.cancelled if unit not in taken_out]
    if cancelled:
        yield f"{cancel_out(len({unit.seq for unit in cancelled}))} {named_units(cancelled)}"
    if taken_out:
        edits = len({unit.seq for unit in taken_out})
        verb = "was" if edits == 1 else "were"
        yield f"{counted(edits, 'edit')} {verb} taken out by later accepted changes {named_units(file.taken_out)}"
    if file.kept_on:
        yield f"accepted edits need pending hunks, which are not shown {named_units(file.kept_on)}"
    if file.is_unrecorded:
        yield f"changed since it was recorded; `{program} diff --unrecorded {typed(file.path)}` shows how"


def _file_diff(file: "NetFile", screen: Screen) -> Iterator[bytes]:
    is_new, is_gone = file.before is None, file.after is None
    yield from extended_header(
        file.path_before,
        file.path,
        file.mode_before or file.mode,
        file.mode or file.mode_before,
        screen,
        is_new=is_new,
        is_gone=is_gone,
    )
    sides = (
        "/dev/null" if is_new else diff_name("a", file.path_before),
        "/dev/null" if is_gone else diff_name("b", file.path),
    )
    if file.is_binary and file.before != file.after:
        yield screen.line(f"Binary files {sides[0]} and {sides[1]} differ")
    changes = [change for change in file.changes if change.removed or change.inserted]
    if not changes:
        return
    yield screen.line(screen.paint(f"--- {sides[0]}", bold=True))
    yield screen.line(screen.paint(f"+++ {sides[1]}", bold=True))
    old, new = split_lines(file.before or b""), split_lines(file.after or b"")
    numbered = [(at, _hunk(change)) for at, change in enumerate(changes)]
    hidden = [_hunk(change) for change in file.left_out if change.removed or change.inserted]
    ordered = sorted([*(hunk for _, hunk in numbered), *hidden])
    places = {hunk: place for place, hunk in enumerate(ordered)}
    shown = 0
    for group in touching_hunks(numbered, len(old)):
        hunks = [hunk for _, hunk in group]
        first, last = places[hunks[0]], places[hunks[-1]]
        # No line is shown twice as context, and none that another change takes out.
        above = max(shown, ordered[first - 1].old_end if first else 0)
        below = ordered[last + 1].old_start if last + 1 < len(ordered) else len(old)
        lead, trail = min(CONTEXT, hunks[0].old_start - above), min(CONTEXT, below - hunks[-1].old_end)
        labels = dict.fromkeys(_label(file, changes[at], screen) for at, _ in group)
        yield hunk_head(hunks, lead, trail, ", ".join(labels), screen)
        yield from hunk_body(old, new, hunks, lead, trail, screen)
        shown = hunks[-1].old_end + trail


def _hunk(change: "NetChange") -> Hunk:
    old, new = change.removed_lines, change.inserted_lines
    return Hunk(change.line_before - 1, old, change.line_after - 1, new)


def _label(file: "NetFile", change: "NetChange", screen: Screen) -> str:
    label = screen.paint(named_units(change.units), STATUS_COLOR[Status.PENDING])
    others = [file.changes[at] for at in change.shares_with]
    lines = [str(other.line_after) for other in others if other.line_after]
    facts = [other.kind.value for other in others if not other.line_after]
    if lines:
        facts.append(f"line{'s' * (len(lines) > 1)} {', '.join(lines)}")
    return f"{label} with {' and '.join(facts)}" if facts else label
