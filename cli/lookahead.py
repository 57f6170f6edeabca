"""A look at all files, begun before click is imported, which it need not wait for."""

from __future__ import annotations

import os
from contextlib import nullcontext
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from objstore import HeadStart

__all__ = ["look_ahead"]


def look_ahead(arguments: list[str]) -> AbstractContextManager[HeadStart | None]:
    """Begin with the look that a command takes, if these are its arguments."""
    start = os.environ.get("CAS_WORKSPACE") or os.curdir
    if arguments[:1] == ["-C"]:
        start, arguments = "".join(arguments[1:2]), arguments[2:]
    match arguments:
        case ["record"] | ["snapshot"] | ["record" | "snapshot", "-m" | "--message" | "--json" | "create", *_]:
            from objstore import HeadStart

            return HeadStart.of_look(start)
        case _:
            return nullcontext()
