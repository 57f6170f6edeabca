"""The diffstat: how many lines changed in each file, as a table with a bar for each."""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from cli.screen.terminal import Screen, end_of, padded, shown_name, shown_width
from objstore import Operation, counted, value

if TYPE_CHECKING:
    from objstore import BlobId, EditView, FileSummary, Hunk, Unit

__all__ = [
    "FileChange",
    "diffstat",
    "edit_change",
    "file_change",
    "net_change",
    "net_remarks",
    "summed",
]

LONGEST_NAME: Final = 60
LONGEST_BAR: Final = 40
LONGEST_LINE: Final = 80


@value
class FileChange:
    """Counts of the changes in one file."""

    name: str
    added: int  # lines
    removed: int
    binary: tuple[int | None, int | None] | None = None  # bytes before and after, None of a large state; None: text


def file_change(
    name: str, before: bytes | None, after: bytes | None, hunks: "Sequence[Hunk] | None" = None
) -> FileChange:
    """Return how much changed between two states of a file (None: no file). `hunks`: between them, if known."""
    from objstore import diff_lines, is_either_binary, shown_lines

    old, new = before or b"", after or b""
    if hunks is None:
        old, new = shown_lines(old), shown_lines(new)
    if is_either_binary(old, new):
        return FileChange(name=name, added=0, removed=0, binary=(_size(before or b""), _size(after or b"")))
    hunks = diff_lines(old, new) if hunks is None else hunks
    return FileChange(name=name, added=sum(h.new_count for h in hunks), removed=sum(h.old_count for h in hunks))


def edit_change(view: "EditView", blobs: "Callable[[BlobId], bytes]") -> FileChange:
    """Return how much an edit changed, according to its record.

    If the record names no hunks, or one that is the whole file, as for binary content, the bytes are read.
    """
    edit = view.edit
    name = os.fsdecode(edit.path)
    is_whole = len(edit.hunks) == 1 and edit.hunks[0].old_start == edit.hunks[0].new_start == 0
    if (edit.hunks and not is_whole) or view.expired is not None:
        return FileChange(name=name, added=edit.added, removed=edit.removed)
    from objstore import is_either_binary, lines_of

    before, after = (None if state is None else blobs(state.blob) for state in (edit.before, edit.after))
    if before != after and is_either_binary(*map(lines_of, (before or b"", after or b""), edit.forms)):
        return file_change(name, before, after)
    return FileChange(name=name, added=edit.added, removed=edit.removed)


def net_change(file: "FileSummary") -> FileChange:
    """Return how much pending edits change in a file."""
    name = f"{file.path_before} -> {file.path}" if file.operation is Operation.MOVE else file.path
    sizes = (file.size_before, file.size) if file.is_binary else None
    return FileChange(name=name, added=file.added, removed=file.removed, binary=sizes)


def net_remarks(
    files: "Sequence[FileSummary]", screen: Screen, program: str, awaited: "Collection[Unit]" = ()
) -> Iterator[bytes]:
    """Yield what a table of net changes doesn't show: edits without a net effect, and files that changed outside.

    Also how many changes of another store are decided, and not carried out. `awaited`: as of Workspace.
    """
    decided = sum(any(unit in awaited for unit in change.units) for file in files for change in file.changes)
    if decided:
        yield screen.line(f" {counted(decided, 'change')} decided, not carried out yet")
    edits = {unit.seq for file in files for unit in file.cancelled}
    if edits:
        yield screen.line(f" {counted(len(edits), 'edit')} cancel{'s' * (len(edits) == 1)} out")
    unrecorded = sum(file.is_unrecorded for file in files)
    if unrecorded:
        changed = f"{counted(unrecorded, 'file')} changed again since recorded"
        yield screen.line(f" {changed} (see `{program} diff --unrecorded`)")


def summed(changes: Iterable[FileChange], *, newest_first: bool = False) -> list[FileChange]:
    """Return the changes with those of one file added up, in order of the first of each."""
    found: dict[str, FileChange] = {}
    for change in changes:
        known = found.get(change.name)
        if known is None:
            found[change.name] = change
        else:
            older, newer = (change, known) if newest_first else (known, change)
            binary = (older.binary[0], newer.binary[1]) if older.binary and newer.binary else None
            found[change.name] = FileChange(
                name=change.name,
                added=known.added + change.added,
                removed=known.removed + change.removed,
                binary=binary,
            )
    return list(found.values())


def diffstat(changes: Iterable[FileChange], screen: Screen, *, newest_first: bool = False) -> Iterator[bytes]:
    """Yield the table, and the sum below it. `newest_first`: the changes of each file are in that order."""
    changes = summed(changes, newest_first=newest_first)
    names = [end_of(shown_name(change.name), LONGEST_NAME) for change in changes]
    width = max(map(shown_width, names), default=0)
    most = max((change.added + change.removed for change in changes), default=0)
    digits = len(str(most))
    room = min(LONGEST_BAR, LONGEST_LINE - width - digits - len("  |  "))
    for change, name in zip(changes, names, strict=True):
        head = padded(name, width)
        if change.binary is not None:
            sizes = "" if None in change.binary else f" {change.binary[0]} -> {change.binary[1]} bytes"
            yield screen.line(f" {head} | Bin{sizes}")
            continue
        bar = screen.paint("+" * _scaled(change.added, most, room), "green")
        bar += screen.paint("-" * _scaled(change.removed, most, room), "red")
        yield screen.line(f" {head} | {change.added + change.removed:>{digits}} {bar}".rstrip())
    added, removed = sum(change.added for change in changes), sum(change.removed for change in changes)
    yield screen.line(
        f" {counted(len(changes), 'file')} changed, {counted(added, 'insertion')}(+), {counted(removed, 'deletion')}(-)"
    )


# ---- inside


def _size(text: bytes) -> int | None:
    """Return the number of bytes of a state; None for one that is too large to be loaded."""
    from objstore import is_placeholder

    return None if is_placeholder(text) else len(text)


def _scaled(lines: int, most: int, room: int) -> int:
    if most <= room:
        return lines
    return max(1, lines * room // most) if lines else 0
