"""Word the note that another session has changed files that this one has changed too."""

from contextlib import suppress
from typing import Final

from mcptools.edit.display import one_line
from mcptools.tools.context import ToolContext, absolute
from objstore import CasError

__all__ = ["collision_notes"]

_COLLIDED: Final = (
    "Another agent has changed files that you have changed too, and neither is reviewed yet. "
    "Read them again before you edit them:"
)
_MOST_NAMED: Final = 20


def collision_notes(context: ToolContext) -> tuple[str, ...]:
    """Return a note about each file that other sessions have changed, once; of files that the client may see."""
    found: list[str] = []
    for workspace in context.directories.opened() if context.session.has_turns() else ():
        # What the tool did is done: if this can't be determined or remembered, the answer is without it.
        with suppress(CasError, OSError):
            collisions = [
                collision
                for collision in workspace.messages.collisions(context.session.name)
                if context.directories.allows(workspace, collision.path)
            ]
            if collisions:
                workspace.messages.mark_collisions_reported(context.session.name, collisions)
                found += [f"- {one_line(absolute(workspace, collision.path))}" for collision in collisions]
    more = [f"- and {len(found) - _MOST_NAMED} more"] if len(found) > _MOST_NAMED else []
    return (_COLLIDED, *found[:_MOST_NAMED], *more) if found else ()
