"""The listing: the recorded edits that fit what a person asks for, read as they are shown."""

import os
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Final

from objstore import EditFilter, NoSuchName, value

if TYPE_CHECKING:
    from cli.pickaxe import Pickaxe
    from objstore import EditView, Workspace

__all__ = ["Terms", "followed", "matching"]

FIRST_READ: Final = 64
MOST_READ: Final = 4_096
"""Edits that are read at once: few for who leaves the pager early, many for who wants them all."""


@value
class Terms:
    """What has to hold of an edit beyond what the store can look up."""

    tool: str = ""  # "": any
    since: int | None = None  # microseconds since the epoch; None: from the beginning
    until: int | None = None
    document: int | None = None  # the file's lineage; None: any
    pickaxe: "Pickaxe | None" = None  # finds what added or removed a text; None: any

    @property
    def are_met_by_all(self) -> bool:
        """Return whether nothing is asked for."""
        return self == Terms()

    def met_by(self, view: "EditView") -> bool:
        """Return whether the edit is asked for."""
        edit = view.edit
        return (
            self.tool in {"", edit.tool}
            and (self.since is None or edit.time >= self.since)
            and (self.until is None or edit.time <= self.until)
            and self.document in {None, edit.document}
            and (self.pickaxe is None or self.pickaxe.strikes(view))
        )


def matching(workspace: "Workspace", wanted: EditFilter, terms: Terms, number: int | None) -> Iterator["EditView"]:
    """Yield the edits that fit, newest first, at most `number` (None: all)."""
    views = _newest_first(workspace, wanted, number if terms.are_met_by_all else None)
    return islice(filter(terms.met_by, views), number)


def followed(workspace: "Workspace", path: str) -> int:
    """Return the lineage of the file that stands at `path`, or stood there last. Raises NoSuchName."""
    for view in _newest_first(workspace, EditFilter(path=path), None):
        if view.edit.path == os.fsencode(path):
            return view.edit.document
    raise NoSuchName(path, "recorded file")


def _newest_first(workspace: "Workspace", wanted: EditFilter, number: int | None) -> Iterator["EditView"]:
    before, size = 0, number or FIRST_READ
    while True:
        size = min(size, MOST_READ)
        views = workspace.edits(replace(wanted, before=before, newest_first=True, limit=size))
        yield from views
        if len(views) < size:
            return
        before, size = views[-1].seq, size * 4
