"""The command `cas record`: record once what changed in the files since the last scan."""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from cli.app.invocation import Invocation, agent_option, command, json_option, recorded_text, reviewer
from cli.screen.progress import LOOKING, showing_progress
from cli.screen.terminal import Screen, write, write_json
from cli.search.candidates import conversation_option, named

if TYPE_CHECKING:
    from objstore import Recorded, Workspace

__all__ = ["record"]


@command("record")
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=named("path"))
@conversation_option("Conversation to record the edits under.", callback=recorded_text)
@click.option("--note", callback=recorded_text, default="", metavar="TEXT", help="Note to record with the edits.")
@agent_option
@json_option
def record(*, paths: tuple[str, ...], conversation: str, note: str, agent: str, as_json: bool) -> None:
    """Scan the files once and record each change since the last scan as an edit of yours.

    While a hook reports that an agent's tool is running, changes that it may have made are recorded as the agent's,
    unless --agent says whose they are. With PATH, only these files and everything below these folders are scanned. The
    first scan of a workspace saves a baseline and records nothing for files that no tool has edited. Files that git
    ignores, or that look like secrets, are recorded only if PATH names them.
    """
    from cli.render.unreadable import not_looked_at
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
        first = workspace.history.end().next_decision
        with showing_progress(workspace, LOOKING):
            # A user who names the agent knows; otherwise agents at work may have made some of the changes.
            found = (workspace.record_changes if agent else workspace.hooks.notice)(info, named)
        if as_json:
            from cli.json_shapes.snapshots import recorded_shape

            write_json([recorded_shape(workspace, found)])
        else:
            write(_text(workspace, found, first, invocation.screen()))
            for place in found.skipped:
                click.echo(not_looked_at(place), err=True)
        # For a path that doesn't exist and never did, "nothing changed" would be no answer.
        gone = [name for name, at in zip(paths, named or (), strict=True) if not _exists(workspace, at)]
        places_named(workspace, gone, exactly=True)


def _exists(workspace: "Workspace", path: str) -> bool:
    from pathlib import Path

    return os.path.lexists(Path(workspace.root, path))


def _text(workspace: "Workspace", found: "Recorded", first: int, screen: Screen) -> Iterator[bytes]:
    """Yield the lines of what a scan recorded. `first`: the number of the first decision made since it began."""
    from cli.render.rows import Rows
    from cli.render.status import commit_words
    from objstore import counted

    if found.baseline is not None:
        files = counted(workspace.snapshots.file_count(found.baseline.number), "file")
        yield screen.line(f"Saved a baseline of {files}. From now on, changes are recorded.")
    rows = Rows(workspace, screen)
    for view in found.edits:
        yield from rows.of(view)
    events = [event for event in workspace.history.git_events() if event.decision >= first]
    for event in reversed(events):
        yield rows.of_event(event)
    if found.edits or events:
        return
    committed = workspace.review.status().committed if workspace.history.end().next_decision > first else None
    if committed is not None:
        yield screen.line(commit_words(committed))
    else:
        yield screen.line("Nothing changed." if found.baseline is None else "No recorded file changed.")
