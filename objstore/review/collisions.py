"""Find the files that several sessions have changed while neither is reviewed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from objstore.calls.open_calls import OpenCalls
from objstore.index.rows import EditConditions
from objstore.model.views import Collision

if TYPE_CHECKING:
    from objstore.model.basic_types import Seq
    from objstore.transaction.journal import Journal

__all__ = ["collisions"]


def collisions(journal: Journal) -> list[Collision]:
    """Return the files in which several sessions have pending edits, by path.

    An agent with hooks may also use our server, which is another session: both count as the one with hooks.
    """
    rows = journal.store.index.edits.colliding()
    if not rows:
        return []
    owners = _owners(journal, {number for _, number, _ in rows})
    found: dict[str, dict[int, tuple[Seq, ...]]] = {}
    for path, number, seqs in rows:
        edits = found.setdefault(os.fsdecode(path), {})
        owner = owners.get(number, number)
        edits[owner] = tuple(sorted((*edits.get(owner, ()), *seqs)))
    return [Collision(path=path, edits=edits) for path, edits in found.items() if len(edits) > 1]


def _owners(journal: Journal, numbers: set[int]) -> dict[int, int]:
    """Return the session with hooks of each session of our server that it has joined."""
    index, calls = journal.store.index, OpenCalls(journal)
    owners: dict[int, int] = {}
    if not calls.has_joined():  # and so no session has to be looked up
        return owners
    for number in sorted(numbers):
        row = index.sessions.get(number)
        for joined in calls.reported_rejections(row.name)[1] if row is not None else ():
            first = index.edits.matching(EditConditions(conversation=joined), limit=1)
            for session in index.sessions.of_edits(edit.seq for edit in first).values():
                owners[session] = number
    return owners
