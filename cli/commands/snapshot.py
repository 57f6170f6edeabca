"""The command `cas snapshot`: save the files of the workspace, compare with them, and restore them."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cli.app.invocation import Invocation, Number, command_group, json_option, recorded_text, reviewer
from cli.render.unreadable import ReadErrors
from cli.screen.progress import LOOKING, showing_progress
from cli.screen.terminal import Screen, shown_name, write, write_json
from cli.search.candidates import folders, named, names

if TYPE_CHECKING:
    from objstore import PathState, RestoreResult, SkippedPath, SnapshotChange, SnapshotResult, SnapshotView, Workspace

__all__ = ["snapshot"]


@command_group("snapshot", otherwise="create")
def snapshot() -> None:
    """Save the files of the workspace or of a folder, compare with them, and restore them.

    A snapshot is named by its number.
    """


@snapshot.command("create")
@click.argument("folder", metavar="[FOLDER]", shell_complete=folders, default="")
@click.option(
    "-m", "--message", "title", callback=recorded_text, default="", metavar="TEXT", help="Title of the snapshot."
)
@json_option
def create(*, folder: str, title: str, as_json: bool) -> None:
    """Save the files in FOLDER, or in the whole workspace."""
    invocation = Invocation.current()
    with invocation.workspace() as workspace:
        path = _folder(workspace, folder)
        with showing_progress(workspace, LOOKING):
            taken = workspace.snapshots.take(path, who=reviewer(), title=title)
    if as_json:
        from cli.json_shapes.snapshots import taken_shape

        write_json([taken_shape(taken)])
    else:
        write(_taken_text(taken, invocation.screen()))


@snapshot.command("list")
@json_option
def listing(*, as_json: bool) -> None:
    """List every snapshot, the newest last. With --json, one object a line."""
    invocation = Invocation.current()
    with invocation.workspace() as workspace:
        views = workspace.snapshots.all()
    if as_json:
        from cli.json_shapes.snapshots import view_shape

        write_json(view_shape(view) for view in views)
    else:
        write((_view_line(view, invocation.screen()) for view in views), paged=True)
        if not views:
            click.echo(f"There are no snapshots. `{invocation.program} snapshot` takes one.", err=True)


@snapshot.command("show")
@click.argument("number", type=Number(min=1), shell_complete=names("snapshot"))
@json_option
def show(*, number: int, as_json: bool) -> None:
    """List the content of a snapshot: mode, blob and path. `cas cat` prints a blob."""
    invocation = Invocation.current()
    with invocation.workspace() as workspace:
        view, found = workspace.snapshots.get(number), workspace.snapshots.files(number)
    if as_json:
        from cli.json_shapes.snapshots import shown_shape

        write_json([shown_shape(view, found)])
    else:
        screen = invocation.screen()
        rows = (screen.line(f"{_state_text(state)}  {shown_name(path)}") for path, state in found)
        write([_view_line(view, screen), *rows], paged=True)


@snapshot.command("diff")
@click.argument("number", type=Number(min=1), shell_complete=names("snapshot"))
@click.argument("other", required=False, type=named("snapshot"))
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=named("path"))
@click.option("-p", "--patch", is_flag=True, help="Show the diff of each file.")
@json_option
def diff(*, number: int, other: str | None, paths: tuple[str, ...], patch: bool, as_json: bool) -> None:
    """List what changed between snapshot NUMBER and now, or snapshot OTHER; with PATH, only at and below each PATH.

    Write a file whose name is a number as ./2.
    """
    invocation = Invocation.current()
    until = None
    if other is not None and other.isdecimal():
        until = Number(min=1)(other, None, click.get_current_context())
    elif other is not None:
        paths = (other, *paths)
    with invocation.workspace() as workspace:
        held_by = (number,) if until is None else (number, until)
        named = {_folder(workspace, path, held_by): path for path in paths}
        with showing_progress(workspace, LOOKING), _as_typed(named):
            found, passed = workspace.snapshots.changes(number, until, paths=[*named])
        if as_json:
            from cli.json_shapes.snapshots import changes_shape

            write_json([changes_shape(found, passed)])
            return
        _report_skipped(passed)
        screen, read_errors = invocation.screen(), ReadErrors()
        if patch:
            write(_patches(workspace, found, screen, read_errors, until_now=until is None), paged=True)
        else:
            write(_change_lines(found, screen), paged=True)
    read_errors.raise_first()


@snapshot.command("restore")
@click.argument("number", type=Number(min=1), shell_complete=names("snapshot"))
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=named("path"))
@click.option("-n", "--dry-run", is_flag=True, help="Show what would change; change nothing.")
@json_option
def restore(*, number: int, paths: tuple[str, ...], dry_run: bool, as_json: bool) -> None:
    """Restore the content of snapshot NUMBER, or only at and below each PATH.

    Files that differ are written, and files created since are deleted; ignored files are left alone. These are ordinary
    edits of yours, and `cas undo` takes all of them back.
    """
    invocation = Invocation.current()
    with invocation.workspace() as workspace:
        named = {_folder(workspace, path, (number,)): path for path in paths}
        with showing_progress(workspace, LOOKING), _as_typed(named):
            done = workspace.snapshots.restore(number, [*named], who=reviewer(), dry_run=dry_run)
        if as_json:
            from cli.json_shapes.snapshots import restored_shape

            write_json([restored_shape(workspace, done)])
    if not as_json:
        write(_restored_text(done, invocation, dry_run=dry_run))
        _report_skipped(done.skipped)
    _raise_loss(done)


@snapshot.command("delete")
@click.argument(
    "numbers", nargs=-1, required=True, type=Number(min=1), metavar="NUMBER...", shell_complete=names("snapshot")
)
@json_option
def delete(*, numbers: tuple[int, ...], as_json: bool) -> None:
    """Delete snapshots. What only they held is freed by the next `cas gc`.

    If one of them is the baseline, changes since then are recorded first and a new baseline is taken.
    """
    invocation = Invocation.current()
    with invocation.workspace() as workspace:
        before = workspace.history.next_edit()
        with showing_progress(workspace, LOOKING):
            gone = workspace.snapshots.delete(numbers, who=reviewer())
        renewed = any(not view.who for view in gone)
        recorded = workspace.history.next_edit() - before if renewed else 0
    if as_json:
        from cli.json_shapes.snapshots import view_shape

        write_json(view_shape(view) for view in gone)
    else:
        screen = invocation.screen()
        write(screen.line(f"Deleted snapshot {view.number}.") for view in gone)
        if renewed:
            write(_renewed_text(recorded, screen))


# ---- names


def _folder(workspace: "Workspace", spelling: str, held_by: "Sequence[int]" = ()) -> str:
    from cli.selection.selectors import path_named

    path = path_named(workspace, spelling, held_by) if spelling else ""
    return "" if path == "." else path


@contextmanager
def _as_typed(named: "dict[str, str]") -> "Iterator[None]":
    """Make an error about one of the given paths show it as it was typed."""
    from objstore import NotInSnapshot

    try:
        yield
    except NotInSnapshot as error:
        raise NotInSnapshot(named[error.spelling], error.number, error.near) from None


# ---- words


def _report_skipped(passed: "Sequence[SkippedPath]") -> None:
    """Report on stderr the paths that could not be read."""
    for place in passed:
        named = f"{shown_name(place.path)}: " if place.path else ""
        click.echo(f"cas: not included: {named}{shown_name(place.reason)}", err=True)


def _raise_loss(done: "RestoreResult") -> None:
    """Raise BlobMissing if a file was skipped because its bytes are lost: the command ends with that error."""
    from objstore import BlobMissing

    for change in done.left:
        if change.path in done.lost and change.after is not None and change.after.blob is not None:
            raise BlobMissing(change.after.blob)


def _renewed_text(recorded: int, screen: Screen) -> Iterator[bytes]:
    from objstore import counted

    if recorded:
        yield screen.line(f"Recorded what had changed since it was taken first, as {counted(recorded, 'edit')}.")
    yield screen.line("Took a new baseline snapshot: files without an edit are now compared with that one.")


def _taken_text(taken: "SnapshotResult", screen: Screen) -> Iterator[bytes]:
    from objstore import counted

    view = taken.view
    where = shown_name(view.path) if view.path else "the workspace"
    same = ", unchanged since the last one" if taken.is_same else ""
    _report_skipped(taken.skipped)
    yield screen.line(f"Snapshot {view.number} of {where}: {counted(taken.files, 'file')}{same}.")


def _view_line(view: "SnapshotView", screen: Screen) -> bytes:
    from cli.render.edits import moment

    number = screen.paint(f"{view.number:5}", "yellow")
    where = shown_name(view.path) if view.path else "."
    title = shown_name(view.title) if view.title else ""
    return screen.line(f"{number}  {moment(view.time)}  {where}  {title}".rstrip())


def _state_text(state: "PathState") -> str:
    from objstore import LINK_MODE, git_mode

    match state.kind:
        case "file" | "symlink":
            mode = LINK_MODE if state.kind == "symlink" else state.mode
            return f"{git_mode(mode)}  {'' if state.blob is None else state.blob.hex()}"
        case _:
            return f"{'------'}  {'(not held)':64}"


def _change_lines(found: "Sequence[SnapshotChange]", screen: Screen) -> Iterator[bytes]:
    for change in found:
        letter, color = _letter(change)
        yield screen.line(f"{screen.paint(letter, color)}  {shown_name(change.path)}")


def _letter(change: "SnapshotChange") -> tuple[str, str]:
    if change.before is None:
        return "A", "green"
    if change.after is None:
        return "D", "red"
    if "left-out" in {change.before.kind, change.after.kind}:
        return "?", "yellow"
    return ("T" if change.before.kind != change.after.kind else "M"), "yellow"


def _patches(
    workspace: "Workspace",
    found: "Sequence[SnapshotChange]",
    screen: Screen,
    read_errors: ReadErrors,
    *,
    until_now: bool,
) -> Iterator[bytes]:
    """Yield the diff of each file, or the reason why there is none; `read_errors` collects lost bytes.

    `until_now`: whether the second side is the current files, and not a snapshot.
    """
    from cli.screen.diffs import diff_text
    from objstore import LINK_MODE, UNREADABLE, PathError

    for change in found:
        path, before, after = change.path, change.before, change.after
        if any(side is not None and side.kind == "left-out" for side in (before, after)):
            yield from _change_lines([change], screen)
            continue
        try:
            old = None if before is None else _bytes(workspace, path, before, is_now=False)
            new = None if after is None else _bytes(workspace, path, after, is_now=until_now)
        except UNREADABLE as error:
            read_errors.note(error)
            yield screen.line(f"No diff of {shown_name(path)}: {error}")
            continue
        except PathError as error:
            yield screen.line(f"No diff of {shown_name(path)}: {shown_name(str(error))}")
            continue
        old_mode, new_mode = (
            0o644 if side is None else LINK_MODE if side.kind == "symlink" else side.mode for side in (before, after)
        )
        if before is not None and after is not None and before.kind != after.kind:
            yield from diff_text(old, None, path, path, screen, modes=(old_mode, old_mode))
            yield from diff_text(None, new, path, path, screen, modes=(new_mode, new_mode))
            continue
        yield from diff_text(old, new, path, path, screen, modes=(old_mode, new_mode))


def _bytes(workspace: "Workspace", path: str, state: "PathState", *, is_now: bool) -> bytes:
    """Return a file's bytes or a link's text for a diff: from the store, or from disk if the store doesn't have them.

    Raises what Workspace.text raises, and PathError if the file on disk has changed meanwhile.
    """
    from objstore import MAX_BLOB, UNREADABLE, FileChanged, FileTooLarge, blob_id, placeholder

    if state.blob is None:
        return b""
    try:
        return workspace.history.text(state.blob)
    except UNREADABLE:
        if not is_now:
            raise
    if state.kind == "symlink":
        text = b""
        with suppress(OSError):  # it is no link any more
            text = os.fsencode(Path(workspace.root, path).readlink())
        if blob_id(text) != state.blob:
            raise FileChanged(path)
        return text
    try:
        content = workspace.read(path, limit=MAX_BLOB)
    except FileTooLarge:
        return placeholder(state.blob)
    if content.blob != state.blob:
        raise FileChanged(path)
    return content.bytes


def _restored_text(done: "RestoreResult", invocation: Invocation, *, dry_run: bool) -> Iterator[bytes]:
    from objstore import MODE_LOST

    screen = invocation.screen()
    words = ("Would delete", "Would write") if dry_run else ("Deleted", "Wrote")
    for change in done.changes:
        lost = MODE_LOST if change.path in done.modes_lost else ""
        yield screen.line(f"{words[change.after is not None]} {shown_name(change.path)}{lost}")
    for change in done.left:
        yield screen.line(f"Left alone {shown_name(change.path)}: {_why_left(change, done)}")
    if done.outcome is not None:
        outcome = done.outcome
        for view in outcome.external:
            path = shown_name(os.fsdecode(view.edit.path))
            yield screen.line(f"Recorded the change from outside to {path} as edit {view.seq}.")
        count = len(outcome.edits)
        edits = f"edit {outcome.edits[0].seq}" if count == 1 else f"{count} edits"
        back = f"`{invocation.program} undo` takes {'it' if count == 1 else 'them'} back."
        yield screen.line(f"{edits} in {outcome.conversation}; {back}")
        if outcome.given_to:
            from objstore import given_words

            yield screen.line(given_words("What was restored", outcome.given_to))
    elif not done.changes and not done.left:
        yield screen.line("No file differs.")


def _why_left(change: "SnapshotChange", done: "RestoreResult") -> str:
    if change.path in done.lost:
        return "the store no longer has its content"
    if change.path in done.modes_lost and change.before == change.after:
        return "setuid and setgid, which no file gets back, are all that differs"
    above = [other for other in (*done.left, *done.above) if change.path.startswith(f"{other.path}/")]
    kinds = {side.kind for each in (change, *above) for side in (each.before, each.after) if side is not None}
    if "left-out" in kinds:
        return "the snapshot does not hold it, or it is ignored"
    other = "link" if "symlink" in kinds else "file"
    return f"a folder and a {other} have the same name"
