"""The command `cas blame`."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import click

from cli.app.invocation import Invocation, Number, command, json_option
from cli.screen.terminal import listed, padded, shown_name, shown_width, write, write_json
from cli.search.candidates import named, takes_turns
from cli.selection.selectors import looks_like_state, recorded_named, state_parts
from cli.selection.turn_selection import TurnSelection
from objstore import NoSuchName

if TYPE_CHECKING:
    from cli.render.authors import Authors
    from objstore import BlamedLines, Seq, Workspace


__all__ = ["blame"]


@command("blame", takes_others=True)
@click.argument("path", metavar="PATH|PATH@EDIT", type=named("path"))
@takes_turns("Only lines")
@json_option
def blame(*, path: str, by: TurnSelection, as_json: bool) -> None:
    """Show which hunk wrote each line of PATH as last recorded: with its time and turn, or its tool and session.

    PATH@12 is the file after edit 12, PATH@12^ before it. With --json, one object for each run of lines; lines are
    counted from zero.
    """
    invocation = Invocation.current()
    with invocation.reviewed_workspace() as workspace:
        own = {view.seq for view in workspace.review.edits(by.group)} if by.is_given else set()
        name, at = _past(workspace, path)
        commits = workspace.history.commits_of_edits()
        try:
            content, blamed = workspace.history.blame(recorded_named(workspace, name), at)
        except NoSuchName:
            raise NoSuchName(path, "recorded file" if at is None else "state") from None  # as it was typed
        if by.is_given:
            blamed = [part for part in blamed if part.view is not None and part.view.seq in own]
            if not blamed:
                click.echo(f"No line of {shown_name(path)} is of {' '.join(map(shown_name, by.words))}.", err=True)
        if as_json:
            from cli.json_shapes.store import blame_shape

            verdicts = workspace.history.verdicts()
            write_json(blame_shape(part, commits, verdicts) for part in blamed)
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
    seq: int = Number(min=0)(number, None, click.get_current_context())
    return parts[0], (Seq(seq), number != parts[1])


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
