"""Resolve names on the command line: files, folders, edits, hunks and recorded states."""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

import click

from cli.screen.terminal import shown_name
from cli.selection.turn_selection import ANY_TURN, TurnSelection
from objstore import (
    EditFilter,
    NamedPlace,
    NoSuchName,
    PathError,
    PathOutside,
    Status,
    Unit,
    real_path,
    replace,
)

if TYPE_CHECKING:
    from objstore import EditView, NetChange, PathSelection, State, Workspace

__all__ = [
    "covers",
    "edit_filter",
    "edits_at_lines",
    "edits_in_range",
    "edits_named",
    "from_here",
    "is_edit_or_hunk",
    "is_on_disk",
    "is_place",
    "is_recorded",
    "lines_named",
    "looks_like_state",
    "newest_first",
    "path_named",
    "paths_named",
    "place_named",
    "places_named",
    "range_named",
    "recorded_named",
    "say_what_goes_along",
    "state_named",
    "state_parts",
    "units_named",
    "was_recorded",
]

NUMBERED: Final = r"[0-9]{1,18}(:[0-9]{1,9})?"
EDIT: Final = r"[0-9]+\^?"
HUNK: Final = r"[0-9]+:[0-9]+"
LINES: Final = r"(.+):([0-9]{1,9})(?:-([0-9]{1,9}))?"
BLOB: Final = r"[0-9a-fA-F]{4,64}"
FIRST_READ: Final = 24
MOST_READ: Final = 4_096
"""Number of edits read at once: at first a screenful, for a user who wants no more, then four times as many."""

FoundT = TypeVar("FoundT")


# ---- files


def path_named(workspace: "Workspace", spelling: str, held_by: "Sequence[int]" = ()) -> str:
    """Return the path, relative to the workspace, of a file named from the current folder.

    From outside the workspace (CAS_WORKSPACE), a relative path begins at its root, unless that leads out of it. A path
    may leave the workspace and come back. `held_by`: snapshots, as of Workspace.relative. Raises PathError.
    """
    return from_here(workspace, spelling, lambda path: workspace.relative(path, held_by))


def recorded_named(workspace: "Workspace", spelling: str) -> str:
    """Return the path, as `path_named`, of a file whose history is wanted, by Workspace.recorded."""
    return from_here(workspace, spelling, workspace.recorded)


def paths_named(workspace: "Workspace", spelling: str, *, unrecorded: bool = False) -> list[str]:
    """Return the path to which links lead; if one hides what was recorded there, also the hidden path, or only that.

    `unrecorded`: also if nothing was recorded there, for the content of snapshots.
    """
    hidden = from_here(workspace, spelling, workspace.literal_path if unrecorded else workspace.recorded)
    try:
        return list(dict.fromkeys([from_here(workspace, spelling, workspace.followed), hidden]))
    except PathError:
        return [hidden]


def from_here(workspace: "Workspace", spelling: str, found: Callable[[str], FoundT]) -> "FoundT":
    """Return the result of `found` for a path that a user names from the current folder; it may raise PathError."""
    from pathlib import Path

    here = Path.cwd()
    # Joined as text: the core decides what `..` after a link means.
    joined = str(here / spelling)
    try:
        return found(joined if here.is_relative_to(workspace.root) else spelling)
    except PathOutside:
        head, tail = os.path.split(joined.rstrip("/"))
        if tail in {"", os.curdir, os.pardir}:
            head, tail = joined, ""
        # As the system resolves it, and not as text: after a link, `..` is the folder above the link's target.
        led = os.path.join(real_path(head), tail)  # noqa: PTH118 -- as text, `.` and `..` included
        try:
            return found(led)
        except PathOutside:
            raise PathOutside(spelling) from None


def covers(wanted: str, path: str) -> bool:
    """Return whether a path, relative to the workspace, is at or below a wanted one ("." is the workspace)."""
    return wanted in {".", path} or path.startswith(f"{wanted}/")


# ---- edits and hunks


def edit_filter(
    workspace: "Workspace", *, conversation: str, status: Status | None, by: TurnSelection = ANY_TURN
) -> EditFilter:
    """Return the filter for the conditions given ("" and None: not given). Raises NoSuchName, AmbiguousName.

    A filter has one turn and no subagent: several turns, or a subagent, have to be asked for too.
    """
    by.check(workspace)
    return EditFilter(
        conversation=workspace.history.find_conversation(conversation) if conversation else "",
        status=status,
        turn=by.turns[0] if len(by.turns) == 1 else 0,
        session=by.session,
    )


def range_named(spelling: str) -> tuple[int, int] | None:
    """Return the first and the last edit that `3..7` names; None if it is no range."""
    bounds = re.fullmatch(r"([0-9]{1,18})\.\.([0-9]{1,18})", spelling)
    return None if bounds is None else (int(bounds[1]), int(bounds[2]))


def edits_in_range(workspace: "Workspace", spelling: str) -> list["EditView"]:
    """Return the edits that `3..7` names; nothing if it is no range or there are none."""
    bounds = range_named(spelling)
    return [] if bounds is None else workspace.history.edits_between(*bounds)


def is_edit_or_hunk(spelling: str) -> bool:
    """Return whether a name has the form of an edit's or a hunk's number: it names no file; `./12` does."""
    return re.fullmatch(NUMBERED, spelling) is not None


def units_named(workspace: "Workspace", names: "Sequence[str]") -> tuple[Unit, ...]:
    """Return the units that edits and hunks name, where a name could also have been that of a file.

    Raises NoSuchName, which says so of a name without the form of an edit's or of a range, and AmbiguousName.
    """
    if all(map(is_edit_or_hunk, names)):
        return workspace.history.named_units(*names)
    return tuple(unit for name in names for unit in _units_of(workspace, name))


def _units_of(workspace: "Workspace", name: str) -> tuple[Unit, ...]:
    try:
        return workspace.history.named_units(name)
    except NoSuchName:
        if is_edit_or_hunk(name) or range_named(name) is not None:
            raise
        raise NoSuchName(name, "edit or file") from None


def edits_named(workspace: "Workspace", spelling: str) -> list[tuple["EditView", tuple[Unit, ...]]]:
    """Return the edits that an edit, a hunk, lines of a file or a conversation names, each with the selected units.

    Raises NoSuchName, AmbiguousName or NoChangeAtLine.
    """
    at_lines = edits_at_lines(workspace, spelling)
    if at_lines:
        return at_lines
    views = edits_in_range(workspace, spelling)
    if views:
        return [(view, view.all_units) for view in views]
    try:
        return [workspace.history.find_units(spelling)]
    except NoSuchName:
        pass
    try:
        conversation = workspace.history.find_conversation(spelling)
    except NoSuchName:
        raise NoSuchName(spelling, "edit, hunk or conversation") from None
    views = workspace.history.edits(EditFilter(conversation=conversation))
    return [(view, view.all_units) for view in views]


def edits_at_lines(workspace: "Workspace", spelling: str) -> list[tuple["EditView", tuple[Unit, ...]]]:
    """Return the edits of the changes that PATH:LINE or PATH:A-B names, each with the units of these; else nothing.

    The path is that of a file that exists or was recorded. Raises NoChangeAtLine.
    """
    lines = lines_named(workspace, spelling)
    if lines is None:
        return []
    found = workspace.review.change_at(*lines)
    say_what_goes_along(lines[0], found.together)
    views = [workspace.history.edit(seq) for seq in dict.fromkeys(unit.seq for unit in found.units)]
    return [
        (view, view.whole_if_complete([unit.hunk for unit in found.units if unit.seq == view.seq])) for view in views
    ]


def lines_named(workspace: "Workspace", spelling: str) -> tuple[str, int, int] | None:
    """Return the path, the first and the last line that PATH:LINE or PATH:A-B names; None if it has another form.

    The path is that of a file that exists or was recorded. `12:2` is a hunk even if there is a file named 12; `./12:2`
    is a line of it. Raises click.UsageError if the last line is above the first.
    """
    found = re.fullmatch(LINES, spelling, re.DOTALL)
    if found is None or re.fullmatch(HUNK, spelling):
        return None
    path, first, last = found[1], int(found[2]), int(found[3] or found[2])
    if not (is_on_disk(workspace, path) or was_recorded(workspace, path)):
        return None
    if last < first:
        raise click.UsageError(f"Name the upper line first, as in {path}:{last}-{first}.")
    return path_named(workspace, path), first, last


def say_what_goes_along(path: str, together: "Sequence[NetChange]") -> None:
    """Say which other changes of a file share hunks with those at the named lines."""
    numbers = [str(change.line_after) for change in together if change.line_after]
    if numbers:
        which = f"line {numbers[0]}" if len(numbers) == 1 else f"lines {', '.join(numbers)}"
        click.echo(
            f"The change at {which} of {shown_name(path)} shares hunks with this one and goes with it.", err=True
        )


# ---- states


def state_parts(spelling: str) -> tuple[str, str] | None:
    """Return path and version of a name such as `PATH@12`, `PATH@12^` or `PATH@2h` (None: it has another form)."""
    from objstore import is_moment

    path, _, version = spelling.rpartition("@")
    is_state = path and (re.fullmatch(EDIT, version) or is_moment(version))
    return (path, version) if is_state else None


def looks_like_state(workspace: "Workspace", spelling: str) -> bool:
    """Return whether `spelling` names a state (`PATH@12`, `PATH@12^`, `PATH@2h`, a blob's hash) and no file.

    A file on disk takes precedence, and over a blob any file that was ever recorded.
    """
    is_hash = re.fullmatch(BLOB, spelling) is not None
    if not is_hash and state_parts(spelling) is None:
        return False
    return not (is_on_disk(workspace, spelling) or (is_hash and was_recorded(workspace, spelling)))


def is_on_disk(workspace: "Workspace", spelling: str) -> bool:
    """Return whether anything exists at the path that is named."""
    try:
        return os.path.lexists(os.path.join(workspace.root, path_named(workspace, spelling)))  # noqa: PTH118 -- no link is followed
    except PathError:
        return False


def was_recorded(workspace: "Workspace", spelling: str) -> bool:
    """Return whether a file has ever been recorded at the path that is named."""
    try:
        path = recorded_named(workspace, spelling)
    except PathError:
        return False
    return bool(workspace.history.edits(EditFilter(path=path, limit=1)))


def is_place(workspace: "Workspace", spelling: str) -> bool:
    """Return whether a path names what is on disk, a file that was ever recorded, or a folder of such files."""
    try:
        path = path_named(workspace, spelling)
    except PathError:
        return False
    return is_on_disk(workspace, spelling) or is_recorded(workspace, path)


def is_recorded(workspace: "Workspace", path: str) -> bool:
    """Return whether a file has ever been recorded at a path of the workspace, or is recorded now below it."""
    from objstore import NameKind  # with the completions, which edits named by number don't need

    return bool(
        workspace.history.edits(EditFilter(path=path, limit=1))
        or workspace.history.names_with_prefix(NameKind.PATH, f"{path}/", 1)
    )


def state_named(workspace: "Workspace", spelling: str) -> "State":
    """Return the state that `spelling` names; a path alone is its last recorded state.

    Raises NoSuchName, AmbiguousName or PathError.
    """
    try:
        if not looks_like_state(workspace, spelling):
            return workspace.history.last_state(recorded_named(workspace, spelling))
        parts = state_parts(spelling)
        if parts is None:
            return workspace.history.find_state(spelling)
        path, version = parts
        # The core follows links in it, because it knows what they hide.
        return from_here(workspace, path, lambda one: workspace.history.find_state(f"{one}@{version}"))
    except NoSuchName as error:
        raise NoSuchName(spelling, error.kind) from None  # as it was typed


def places_named(
    workspace: "Workspace", spellings: Sequence[str], *, exactly: bool = False, hidden: bool = False
) -> "PathSelection":
    """Return the places that paths name: all files that were ever there, and folders. Raises NoSuchName, PathError.

    With `hidden`, also those that a link hides by now. That is for viewing: a decision on a file must not fail because
    of places that can't be written.

    Unless `exactly`, a path with `*`, `?` or `[` that was never a file's is a pattern, in which a star also matches
    slashes.
    """
    named = [
        NamedPlace(path=path, spelling=spelling, pattern="" if exactly else _pattern(workspace, spelling, path))
        for spelling in spellings
        for path in (paths_named(workspace, spelling) if hidden else [path_named(workspace, spelling)])
    ]
    return workspace.review.places(named)


def _pattern(workspace: "Workspace", spelling: str, path: str) -> str:
    """Return the pattern that a path is, relative to the workspace; "" if it is none."""
    from glob import escape, has_magic

    if not has_magic(spelling):
        return ""
    # The current folder itself is not a pattern, whatever its name.
    here = path_named(workspace, ".")
    inside = path.startswith(f"{here}/")
    return escape(here) + path[len(here) :] if inside else path


def place_named(workspace: "Workspace", spelling: str) -> NamedPlace:
    """Return the place that a path names, which may be a pattern. Raises PathError."""
    path = path_named(workspace, spelling)
    return NamedPlace(path=path, spelling=spelling, pattern=_pattern(workspace, spelling, path))


def newest_first(workspace: "Workspace", wanted: EditFilter, number: int | None) -> Iterator["EditView"]:
    """Yield the edits that match, newest first, at most `number` (None: all)."""
    before, size = 0, number or FIRST_READ
    while True:
        size = min(size, MOST_READ)
        views = workspace.history.edits(replace(wanted, before=before, newest_first=True, limit=size))
        yield from views
        if len(views) < size:
            return
        before, size = views[-1].seq, size * 4
