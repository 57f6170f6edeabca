"""The command `cas watch`: records what happens to files as it happens, for editors and agents that tell of nothing."""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import click

from cli.invocation import Invocation, command, recorded_text, reviewer
from cli.terminal import Screen, flush, shown_name, write

if TYPE_CHECKING:
    from objstore import CallInfo, Workspace

__all__ = ["watch"]

_ROUND: Final = 500
"""Milliseconds after which the watcher says so if nothing happened: the first time tells that it watches."""

_STORE: Final = os.sep + ".cas"


@command("watch")
@click.option(
    "--agent",
    callback=recorded_text,
    default="",
    metavar="NAME",
    help="An agent makes the edits, so they are to be reviewed.",
)
@click.option(
    "--conversation", callback=recorded_text, default="", metavar="ID", help="Which conversation they belong to."
)
@click.option(
    "--quiet-for",
    type=click.IntRange(50, 60_000),
    default=400,
    show_default=True,
    metavar="MS",
    help="How long nothing must happen until what happened before is one call.",
)
def watch(*, agent: str, conversation: str, quiet_for: int) -> None:
    """Record edits as they happen, until interrupted: those that come in one burst as one call.

    They are yours, and so accepted, unless --agent says otherwise or the hook of an agent has told that one of its
    tools is running. Where hooks or our server tell of each tool, nothing need be watched.
    """
    from watchfiles import watch as bursts

    from objstore import CallInfo, Origin

    invocation = Invocation.current()
    screen = invocation.screen()
    notes = {"agent": agent} if agent else {"who": reviewer()}
    info = CallInfo(
        tool="watch", conversation=conversation, origin=Origin.AGENT if agent else Origin.PERSON, notes=notes
    )
    with invocation.workspace() as workspace:
        root = os.path.realpath(workspace.root)

        def is_ours(_: object, path: str) -> bool:
            return not (path + os.sep).startswith(root + _STORE)

        watches = False
        for burst in bursts(
            root,
            watch_filter=is_ours,
            step=quiet_for,
            debounce=10 * quiet_for,
            rust_timeout=_ROUND,
            yield_on_timeout=True,
            raise_interrupt=True,
        ):
            if not watches:
                # What changed before anybody watched belongs to nobody.
                workspace.agent_calls().notice(CallInfo(tool="", origin=Origin.EXTERNAL))
                write([screen.line(f"Watching {shown_name(root)}; Ctrl-C ends it.")])
                flush()
                watches = True
            elif burst:
                write(_recorded(workspace, info, screen))
                flush()


def _recorded(workspace: "Workspace", info: "CallInfo", screen: Screen) -> Iterator[bytes]:
    """Look once, and yield a line for each edit."""
    from cli.rows import Rows

    rows = Rows(workspace, screen)
    for view in workspace.agent_calls().notice(info).edits:
        yield from rows.of(view)
