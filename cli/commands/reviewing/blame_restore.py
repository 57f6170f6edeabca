"""The commands `cas blame` and `cas restore`: where each line comes from, and restoring a recorded state."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import click

from cli.app.invocation import Invocation, command, json_option, reviewer
from cli.screen.terminal import listed, padded, shown_name, shown_width, write
from cli.search.candidates import names, takes_turns
from cli.selection.selectors import looks_like_state, recorded_named, state_named, state_parts
from cli.selection.turn_selection import TurnSelection
from objstore import NoSuchName

if TYPE_CHECKING:
    from cli.render.authors import Authors
    from objstore import BlamedLines, CallOutcome, Seq, State, Workspace

__all__ = ["blame", "restore"]


@command("blame")
@click.argument("path", metavar="PATH|PATH@EDIT", shell_complete=names("path"))
@takes_turns("Only lines")
@json_option
def blame(*, path: str, by: TurnSelection, as_json: bool) -> None:
    """Show which hunk wrote each line of PATH as last recorded: with its time and turn, or its tool and session.

    PATH@12 is the file after edit 12, PATH@12^ before it. With --json, one object for each run of lines; lines are
    counted from zero.
    """
    invocation = Invocation.current()
    with invocation.reviewed_workspace() as workspace:
        by.check(workspace)
        name, at = _past(workspace, path)
        commits = workspace.history.commits_of_edits()
        try:
            content, blamed = workspace.history.blame(recorded_named(workspace, name), at)
        except NoSuchName:
            raise NoSuchName(path, "recorded file" if at is None else "state") from None  # as it was typed
        if by.is_given:
            blamed = [part for part in blamed if part.view is not None and by.made(workspace, part.view)]
            if not blamed:
                click.echo(f"No line of {shown_name(path)} is of {' '.join(map(shown_name, by.words))}.", err=True)
        if as_json:
            from cli.json_shapes.store import blame_shape
            from cli.json_shapes.values import json_line

            verdicts = workspace.history.verdicts()
            write(json_line(blame_shape(part, commits, verdicts)) for part in blamed)
        else:
            write(_blame_text(workspace, content, blamed, commits), paged=True)


def _past(workspace: "Workspace", spelling: str) -> "tuple[str, tuple[Seq, bool] | None]":
    """Return the file that is named, and which past state of it (None: the last recorded one)."""
    from objstore import Seq

    parts = state_parts(spelling) if looks_like_state(workspace, spelling) else None
    if parts is None:
        return spelling, None
    number = parts[1].removesuffix("^")
    if not number.isdecimal():
        lists = f"`{Invocation.current().program} log PATH` lists them"
        raise click.UsageError(f"Name a past state by its edit, as in PATH@12; {lists}.")
    return parts[0], (Seq(int(number)), number != parts[1])


@command("restore")
@click.argument("name", metavar="PATH@EDIT", shell_complete=names("path"))
@click.option("-n", "--dry-run", is_flag=True, help="Show exactly what would change on disk; change nothing.")
@json_option
def restore(*, name: str, dry_run: bool, as_json: bool) -> None:
    """Restore a file to a recorded state.

    PATH@12 is the file after edit 12, PATH@12^ before it, PATH@2h two hours ago, PATH@2026-11-20 at the start of that
    day, PATH as last recorded.

    This is an edit of yours, and `cas undo` takes it back. Unrecorded changes to the file are recorded first.
    """
    invocation = Invocation.current()
    with invocation.reviewed_workspace() as workspace:
        try:
            state = state_named(workspace, name)
        except NoSuchName:
            from cli.search.did_you_mean import last_held

            held = last_held(workspace, recorded_named(workspace, name))
            if not held:
                raise
            advice = f"`{invocation.program} restore {held}` restores its last content"
            raise click.ClickException(f"{shown_name(name)} no longer exists: {advice}.") from None
        if not state.path:
            raise click.UsageError("A hash doesn't say which file to restore. Name the state as PATH@EDIT.")
        outcome = workspace.review.restore(state, who=reviewer(), dry_run=dry_run)
        if as_json:
            from cli.json_shapes.decisions import restored_shape
            from cli.json_shapes.values import json_line

            write([json_line(restored_shape(workspace, outcome, dry_run=dry_run))])
        else:
            text = _restored_text(workspace, state, outcome, invocation, dry_run=dry_run)
            write(text, paged=dry_run)


def _restored_text(
    workspace: "Workspace", state: "State", outcome: "CallOutcome", invocation: Invocation, *, dry_run: bool
) -> Iterator[bytes]:
    name, screen = shown_name(state.path), invocation.screen()
    if dry_run:
        yield screen.line("Dry run: nothing was changed.")
    for view in outcome.external:
        yield screen.line(
            f"Would record the change from outside to {name}."
            if dry_run
            else f"Recorded the change from outside to {name} as edit {view.seq}."
        )
    if not outcome.edits:
        yield screen.line(f"No file {'changes' if dry_run else 'changed'}: {name} already is in this state.")
        if state.blob is None:
            from cli.search.did_you_mean import last_held

            if held := last_held(workspace, state.path):
                restores = f"`{invocation.program} restore {held}` restores its last content."
                yield screen.line(f"In this state there is no such file. {restores}")
    elif dry_run:
        from cli.render.outcomes import effect_line, effect_text

        yield from (screen.line(effect_line(effect, dry_run=True)) for effect in outcome.files)
        yield from effect_text(outcome.files, workspace.review.preview, screen)
    else:
        done = "Removed" if state.blob is None else "Restored"
        seq = outcome.edits[-1].seq
        yield screen.line(f"{done} {name} as edit {seq}; `{invocation.program} undo` takes it back.")


def _decided_by(authors: "Authors", part: "BlamedLines") -> str:
    """Return who accepted or rejected some lines ("": no one, or a commit, which has a column of its own)."""
    if part.view is None or part.unit is None:
        return ""
    deciders = authors.deciders(part.view, hunk=part.unit.hunk, with_commits=False)
    return f"  by {deciders}" if deciders else ""


def _blame_text(
    workspace: "Workspace", content: bytes, blamed: "list[BlamedLines]", commits: "Mapping[Seq, str]"
) -> Iterator[bytes]:
    from cli.render.authors import Authors
    from cli.render.edits import moment
    from cli.render.rows import SHORT_COMMIT

    lines = content.split(b"\n")
    authors = Authors(workspace)
    heads = []
    for part in blamed:
        if part.view is None:
            heads.append(f"(before the first {'edit that is kept' if part.is_expired else 'recorded edit'})")
        else:
            edit = part.view.edit
            heads.append(
                f"{part.unit}  {moment(edit.time)}  {authors.behind_line(part.view)}"
                + (f"  {commits[edit.seq][:SHORT_COMMIT]}" if edit.seq in commits else "")
                + _decided_by(authors, part)
            )
    width = max(map(shown_width, heads), default=0)
    for part, head in zip(blamed, heads, strict=True):
        for number in range(part.start, part.start + part.count):
            yield f"{padded(head, width)}  {number + 1:5}  ".encode("utf-8", "backslashreplace")
            yield listed(lines[number]) + b"\n"
