"""Report what a tool changes to the workspaces around its own, whose scans find these files too.

Hooks of an agent's program do that themselves. Without them, an outer workspace would take the tool's change for a
person's, and accept it.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mcptools.model.session import Session
from objstore import AgentCall, HookSessions, Workspace, note_hook_failure, workspaces_around

__all__ = ["reported_around"]


@contextmanager
def reported_around(workspace: Workspace, session: Session, tool: str, paths: Iterable[str]) -> Iterator[None]:
    """Report a call to the workspaces around one: its beginning, and after the block its end. Never raises itself.

    `paths`: the files that the call changes, relative to the workspace.
    """
    around = workspaces_around(workspace.root)
    if not around:
        yield
        return
    named = tuple(str(Path(workspace.root, path)) for path in paths)
    call = AgentCall(
        conversation=session.name, id=os.urandom(8).hex(), tool=tool, paths=named, notes=dict(session.client)
    )
    _report(around, call, lambda hooks: hooks.begin(call))
    try:
        yield
    except BaseException:
        _report(around, call, lambda hooks: hooks.mark_not_run(call, may_have_run=True))
        raise
    _report(around, call, lambda hooks: hooks.end(call))


def _report(roots: Iterable[str], call: AgentCall, event: Callable[[HookSessions], object]) -> None:
    """Report to workspaces in which the tool does not work, and which must not stop it."""
    for root in roots:
        try:
            with Workspace.open(root) as outer:
                event(outer.hooks)
        except Exception as error:  # noqa: BLE001 - what is wrong with another store is no reason to fail the tool
            with suppress(Exception):
                note_hook_failure(root, call.notes.get("client", "mcp"), type(error).__name__)
