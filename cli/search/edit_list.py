"""Filter the recorded edits by the given conditions, newest first, as they are read."""

import os
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from cli.selection.selectors import newest_first
from objstore import EditFilter, NoSuchName, replace, value

if TYPE_CHECKING:
    from cli.search.pickaxe import Pickaxe
    from objstore import EditView, PathSelection, Seq, Workspace

__all__ = [
    "EditConditions",
    "accepted_by",
    "lineage_at",
    "matching",
    "tool_named",
]


@value
class EditConditions:
    """Conditions on an edit beyond what the store can look up."""

    tool: str = ""  # "": any
    since: int | None = None  # microseconds since the epoch; None: from the beginning
    until: int | None = None
    document: int | None = None  # the file's lineage; None: any
    places: "PathSelection | None" = None  # where it happened; None: anywhere
    turns: frozenset[int] = frozenset()  # made in one of these; empty: in any, or in none
    agent: str = ""  # id or kind of the subagent that made it; "": any
    seqs: "frozenset[Seq] | None" = None  # only these edits; None: any
    pickaxe: "Pickaxe | None" = None  # finds what added or removed a text; None: any

    @property
    def is_empty_condition(self) -> bool:
        """Return whether there is no condition."""
        return replace(self, places=None) == EditConditions() and (self.places is None or self.places.is_filter)

    @property
    def concern_only_times(self) -> bool:
        """Return whether there is no condition but when an edit was made."""
        return replace(self, since=None, until=None).is_empty_condition

    def matches_edit(self, view: "EditView") -> bool:
        """Return whether the edit meets the conditions."""
        edit = view.edit
        return (
            self.tool in {"", edit.tool}
            and (self.since is None or edit.time >= self.since)
            and (self.until is None or edit.time <= self.until)
            and self.document in {None, edit.document}
            and (not self.turns or any(map(view.is_of_turn, self.turns)))
            and (not self.agent or self.agent in view.agents)
            and (self.seqs is None or edit.seq in self.seqs)
            and (self.places is None or self.places.hold(edit))
            and (self.pickaxe is None or self.pickaxe.changes_occurrences(view))
        )


def matching(
    workspace: "Workspace", wanted: EditFilter, terms: EditConditions, number: int | None
) -> Iterator["EditView"]:
    """Yield the edits that match, newest first, at most `number` (None: all).

    What was decided on another store, and is not carried out yet, counts for the status.
    """
    awaited = {} if wanted.status is None else workspace.awaited()
    if not awaited:
        views = newest_first(workspace, wanted, number if terms.is_empty_condition else None)
        return islice(filter(terms.matches_edit, views), number)
    from cli.selection.elsewhere import status_with, statuses

    decided = statuses(awaited)
    views = newest_first(workspace, replace(wanted, status=None), None)  # the mirror's index has the statuses of before
    of_status = (view for view in views if status_with(view, decided) is wanted.status)
    return islice(filter(terms.matches_edit, of_status), number)


def accepted_by(workspace: "Workspace", spelling: str) -> "frozenset[Seq]":
    """Return the edits that a git commit accepted. `spelling`: a beginning of its id, or a name that git knows.

    Raises NoSuchName, AmbiguousName.
    """
    commit = workspace.history.find_commit(spelling)
    return frozenset(seq for seq, of in workspace.history.commits_of_edits().items() if of == commit)


def lineage_at(workspace: "Workspace", path: str) -> int:
    """Return the lineage of the file that is at `path`, or was there last. Raises NoSuchName."""
    for view in newest_first(workspace, EditFilter(path=path), None):
        if view.edit.path == os.fsencode(path):
            return view.edit.document
    raise NoSuchName(path, "recorded file")


def tool_named(workspace: "Workspace", spelling: str) -> str:
    """Return the name of a tool that has made an edit. Raises NoSuchName."""
    if all(view.edit.tool != spelling for view in newest_first(workspace, EditFilter(), None)):
        raise NoSuchName(spelling, "tool")
    return spelling
