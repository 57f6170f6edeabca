"""Show what an import or a clone made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cli.screen.terminal import shown_name
from objstore import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cli.screen.terminal import Screen
    from objstore import Imported, Json

__all__ = ["imported_lines", "imported_shape", "not_empty"]

_NAMED = 3
"""Files that are named; others are counted."""


def not_empty(path: str, directory: str) -> str:
    """Return the sentence about a folder that can't become a workspace, because of what is at a path in it."""
    return f"{shown_name(directory)} is not empty ({shown_name(path)})."


def imported_shape(made: Imported) -> dict[str, Json]:
    """Return what was made, as JSON."""
    from objstore import text_shape

    return {
        "workspace": text_shape(made.root),
        "records": made.records,
        "blobs": made.blobs,
        "files": made.files,
        "modes_lost": [text_shape(path) for path in made.modes_lost],
        "given_to": [] if made.owner is None else [made.owner],
    }


def imported_lines(screen: Screen, made: Imported) -> Iterator[bytes]:
    """Yield the lines that say what was made."""
    records, blobs, files = counted(made.records, "record"), counted(made.blobs, "blob"), counted(made.files, "file")
    yield screen.line(f"Verified {records} and {blobs}: nothing is wrong.")
    yield screen.line(f"{shown_name(made.root)} is a workspace with the same history; {files} written.")
    if made.modes_lost:
        names = ", ".join(map(shown_name, made.modes_lost[:_NAMED]))
        more = len(made.modes_lost) - _NAMED
        names += f" and {counted(more, 'other file')}" if more > 0 else ""
        yield screen.line(f"Note: Without setuid and setgid, which no file gets back: {names}.")
    if made.owner is not None and made.files:
        from objstore import given_words

        yield screen.line(given_words("What was written", [made.owner]))
