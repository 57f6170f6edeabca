"""The command `cas record`: what happened to files since the last look becomes edits, once, now."""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from cli.app.invocation import Invocation, command, json_option, recorded_text, reviewer
from cli.screen.progress import LOOKING, showing_progress
from cli.screen.terminal import Screen, write
from cli.search.candidates import names

if TYPE_CHECKING:
    from objstore import Recorded, Workspace

__all__ = ["record"]


@command("record")
@click.argument("paths", nargs=-1, metavar="[PATH]...", shell_complete=names("path"))
@click.option(
    "--conversation",
    callback=recorded_text,
    default="",
    metavar="ID",
    shell_complete=names("conversation"),
    help="Which conversation the edits belong to.",
)
@click.option("--note", callback=recorded_text, default="", metavar="TEXT", help="What they are about.")
@click.option(
    "--agent",
    callback=recorded_text,
    default="",
    metavar="NAME",
    help="An agent made them, so they are to be reviewed.",
)
@json_option
def record(*, paths: tuple[str, ...], conversation: str, note: str, agent: str, as_json: bool) -> None:
    """Look at the files once, now, and record each that changed since the last look as an edit of yours.

    What a tool of an agent may have done that a hook has told of and that runs still is the agent's, unless you say
    whose it is. With PATH, only these files and what lies below these folders. The first look of a workspace records
    nothing of files that no tool has edited: it only keeps what they hold, so that the next one can tell.
    """
    from cli.render.edits import not_looked_at
    from cli.selection.selectors import path_named, places_named
    from objstore import CallInfo, Origin

    invocation = Invocation.current()
    notes = {
        key: text for key, text in {"agent": agent, "note": note, "who": "" if agent else reviewer()}.items() if text
    }
    info = CallInfo(
        tool="record", conversation=conversation, origin=Origin.AGENT if agent else Origin.PERSON, notes=notes
    )
    with invocation.workspace() as workspace:
        named = [path_named(workspace, path) for path in paths] or None
        with showing_progress(workspace, LOOKING):
            # Who says whose it is, knows; of the rest, agents at work may have done some.
            is_said = bool(agent or conversation)
            found = (workspace.record_changes if is_said else workspace.agent_calls().notice)(info, named, ignored=True)
        if as_json:
            from cli.render.json_snapshots import recorded_shape
            from cli.render.json_store import json_line

            write([json_line(recorded_shape(workspace, found))])
        else:
            write(_text(workspace, found, invocation.screen()))
            for place in found.skipped:
                click.echo(not_looked_at(place), err=True)
        # Of what neither stands there nor ever did, that nothing changed would be no answer.
        gone = [name for name, at in zip(paths, named or (), strict=True) if not _stands(workspace, at)]
        places_named(workspace, gone, exactly=True)


def _stands(workspace: "Workspace", path: str) -> bool:
    from pathlib import Path

    return os.path.lexists(Path(workspace.root, path))


def _text(workspace: "Workspace", found: "Recorded", screen: Screen) -> Iterator[bytes]:
    from cli.render.rows import Rows

    if found.baseline is not None:
        yield screen.line(
            "This was the first look: what stands now is known, and what changes from here on is recorded."
        )
    rows = Rows(workspace, screen)
    for view in found.edits:
        yield from rows.of(view)
    if not found.edits:
        yield screen.line("Nothing changed." if found.baseline is None else "Nothing that was recorded before changed.")
