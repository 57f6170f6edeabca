"""Mistyped names: what a name that nothing has may have been meant for."""

import os
from typing import TYPE_CHECKING, Final

from cli.terminal import shown_name

if TYPE_CHECKING:
    from objstore import NoSuchName

__all__ = ["meant"]

MOST: Final = 2


def meant(error: "NoSuchName", start: str) -> str:
    """Return a sentence on what the name may have been meant for; "" where nothing is near to it.

    `start`: at or above which folder the workspace is.
    """
    from objstore import CasError, NameKind, Workspace

    spelling = error.spelling.partition("@")[0]
    found: list[str] = []
    try:
        with Workspace.find(start) as workspace:
            if "conversation" in error.kind:
                found += workspace.names_near(NameKind.CONVERSATION, spelling, MOST)
            if "file" in error.kind or "state" in error.kind:
                found += workspace.names_near(NameKind.PATH, os.path.relpath(spelling), MOST)
            newest = workspace.names_like(NameKind.EDIT, "", 1)
    except CasError:
        return ""  # what is wrong was said already; this would only have helped
    if found and spelling not in found:
        return f"Did you mean {' or '.join(map(shown_name, found[:MOST]))}?"
    if newest and (spelling.isdigit() or "@" in error.spelling):
        return f"The newest edit is {newest[0].name}."
    return ""
