"""The command `cas amend`: fix an edit in an editor."""

import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cli.app.invocation import Invocation, command, json_option, reviewer
from cli.screen.terminal import can_ask, shown_name, write, write_json
from cli.search.candidates import files, named

if TYPE_CHECKING:
    from objstore import Content

__all__ = ["amend"]


@command("amend")
@click.argument("name", metavar="EDIT", type=named("edit"))
@click.option(
    "--from",
    "source",
    metavar="FILE",
    shell_complete=files,
    help="Read the file's new content from FILE (- for standard input).",
)
@json_option
def amend(*, name: str, source: str | None, as_json: bool) -> None:
    """Fix an edit in your editor: it opens the current file, and what you change belongs to the edit.

    Rejecting the edit also rejects its amendments. Rejecting an amendment restores the edit's own result.
    """
    invocation = Invocation.current()
    with invocation.reviewed_workspace() as workspace:
        seq = workspace.history.find_units(name)[0].seq
        file = workspace.review.amendable(seq)
        if source is None:
            with _typed(file) as content:
                outcome = workspace.review.amend(seq, content, version=file.blob, base=file.bytes, who=reviewer())
        else:
            outcome = workspace.review.amend(seq, _read(source), version=file.blob, who=reviewer())
        if as_json:
            from objstore import edit_shape

            write_json(edit_shape(workspace, view) for view in outcome.edits)
            return
        screen = invocation.screen()
        if not outcome.edits:
            write([screen.line(f"Nothing to do: {shown_name(file.path)} already has this content.")])
        for view in outcome.external:
            said = f"Recorded the change from outside to {shown_name(file.path)} as edit {view.seq}."
            write([screen.line(said)])
        for view in outcome.edits:
            write([screen.line(f"Recorded edit {view.seq}, which amends edit {seq}.")])
            if view.edit.before is not None and view.edit.before.blob != file.blob:
                write(
                    [
                        screen.line(
                            f"{shown_name(file.path)} changed meanwhile: your text was carried over to the new version."
                        )
                    ]
                )


def _read(source: str) -> bytes:
    return sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()


def _typed(file: "Content") -> AbstractContextManager[bytes]:
    if not can_ask():
        raise click.UsageError("An editor needs a terminal. Without one, pass the new content with --from FILE.")
    from cli.screen.editor import edited

    return edited(file)
