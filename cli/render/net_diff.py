"""Net changes as text for a person: a unified diff of each file, with the hunks that each change is made of."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

from cli.render.edits import STATUS_COLOR, awaited_words
from cli.screen.diffs import CONTEXT, diff_name, extended_header, hunk_text, shown_syntax
from cli.screen.quoting import typed
from cli.screen.terminal import Screen, shown_name
from objstore import Status, change_words, few, file_remarks, split_lines, touching_hunks

if TYPE_CHECKING:
    from objstore import NetChange, NetFile, RemoteVerdict, Unit

__all__ = ["named_units", "net_diff"]

Comments: TypeAlias = "Mapping[int, Sequence[bytes]]"
"""Lines of the comments on a file's changes, by position of the change."""

Awaited: TypeAlias = "Mapping[Unit, RemoteVerdict]"

_NONE: Final[Comments] = MappingProxyType({})
_NO_VERDICT: Final[Awaited] = MappingProxyType({})

MOST_UNITS: Final = 8
"""Number of hunks that are named; the others are counted."""

MOST_TURNS: Final = 4
"""Number of turns that are named with a change; the others are counted."""


def net_diff(
    files: "Iterable[NetFile]",
    screen: Screen,
    program: str,
    comments_of: "Callable[[NetFile], Comments]" = lambda _: _NONE,
    seen: Collection[bytes] = (),
    awaited: Awaited = _NO_VERDICT,
) -> Iterator[bytes]:
    """Yield the diff of each file from its accepted text to its current text.

    Each change has a header of its own, which names its hunks where a diff allows a remark. `comments_of`: returns the
    lines of the comments on the changes of a file. For a person, each is below its change; a program can take the diff
    only if nothing comes between its hunks, so all of a file's are above it. `seen`: keys of changes that are marked
    so. `awaited`: as of Workspace.
    """
    for file in files:
        for remark in _remarks(file, program, seen, awaited):
            yield screen.line(f"# {shown_name(file.path)}: {remark}")  # no name looks like a part of a diff
        comments = comments_of(file)
        below = {at for at, change in enumerate(file.changes) if change.has_lines} if screen.guarded else set()
        for at, lines in comments.items():
            if at not in below:
                yield from (b"# " + line for line in lines)
        if file.changes:
            yield from _file_diff(file, screen, {at: comments[at] for at in below & comments.keys()}, seen, awaited)


def named_units(units: "Sequence[Unit]", most: int = MOST_UNITS) -> str:
    """Return the names of hunks, in brackets; of more than `most`, the first ones."""
    return f"[{few(units, most)}]"


# ---- inside


def _remarks(file: "NetFile", program: str, seen: Collection[bytes], awaited: Awaited) -> Iterator[str]:
    """Yield what no hunk can express: facts about the file, each with its hunks, and what has no net effect."""
    for change in file.changes:
        if not change.has_lines:
            yield f"{change_words(file, change, shown_name)} {_named(change)}{_marks(change, seen, awaited)}"
    yield from (f"{words} {named_units(units)}" for words, units in file_remarks(file))
    if file.is_unrecorded:
        yield f"changed since it was recorded; `{program} diff --unrecorded {typed(file.path)}` shows how"


def _file_diff(
    file: "NetFile", screen: Screen, comments: Comments, seen: Collection[bytes], awaited: Awaited
) -> Iterator[bytes]:
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
    numbered = [(at, change.hunk) for at, change in enumerate(file.changes) if change.has_lines]
    if not numbered:
        return
    yield screen.line(screen.paint(f"--- {sides[0]}", bold=True))
    yield screen.line(screen.paint(f"+++ {sides[1]}", bold=True))
    old, new = split_lines(file.before or b""), split_lines(file.after or b"")
    syntax = shown_syntax(file.path_before, file.path, old, new, screen)
    hidden = [change.hunk for change in file.left_out if change.has_lines]
    ordered = sorted([*(hunk for _, hunk in numbered), *hidden])
    places = {hunk: place for place, hunk in enumerate(ordered)}
    shown = 0
    for group in touching_hunks(numbered, len(old)):
        hunks = [hunk for _, hunk in group]
        first, last = places[hunks[0]], places[hunks[-1]]
        # No line is shown twice as context, and none that another change takes out.
        above = max(shown, ordered[first - 1].old_end if first else 0)
        below = ordered[last + 1].old_start if last + 1 < len(ordered) else len(old)
        labels = dict.fromkeys(_label(file, file.changes[at], screen, seen, awaited) for at, _ in group)
        yield from hunk_text(old, new, hunks, (above, below), ", ".join(labels), screen, syntax)
        for at, _ in group:
            yield from comments.get(at, ())
        shown = min(hunks[-1].old_end + CONTEXT, below)


def _marks(change: "NetChange", seen: Collection[bytes], awaited: Awaited) -> str:
    is_seen = " seen" if seen and change.key in seen else ""
    return "".join([is_seen, *(f" {words}" for words in awaited_words(awaited, change.units))])


def _named(change: "NetChange") -> str:
    """Return the names of a change's hunks, and the numbers of the turns that they are of."""
    units, turns = named_units(change.units), change.turns
    if not turns:
        return units
    return f"{units} turn{'s' * (len(turns) > 1)} {few(turns, MOST_TURNS)}"


def _label(file: "NetFile", change: "NetChange", screen: Screen, seen: Collection[bytes], awaited: Awaited) -> str:
    label = screen.paint(_named(change), STATUS_COLOR[Status.PENDING]) + _marks(change, seen, awaited)
    others = [file.changes[at] for at in change.shares_with]
    lines = [str(other.line_after) for other in others if other.line_after]
    facts = [other.kind.value for other in others if not other.line_after]
    if lines:
        facts.append(f"line{'s' * (len(lines) > 1)} {', '.join(lines)}")
    return f"{label} with {' and '.join(facts)}" if facts else label
