"""Find the files that several sessions have changed while neither is reviewed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from objstore.disk.fs.reserved_names import AGENTS_NAME, JOINED_NAME, STORE_NAME
from objstore.model.status_report import Collision
from objstore.storage.index.rows import EditConditions, PendingEdit

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from objstore.model.basic_types import DocumentId, Seq
    from objstore.storage.transaction.journal import Journal

__all__ = ["collisions"]


def collisions(journal: Journal, pending: Collection[PendingEdit]) -> list[Collision]:
    """Return the files in which several sessions have pending edits, by path.

    `pending`: the pending edits, oldest first; those of files in which only one session has some may be missing. An
    agent with hooks may also use our server, which is another session: both count as the one with hooks.
    """
    sessions: dict[tuple[DocumentId, bytes], dict[int, list[Seq]]] = {}
    for seq, document, path, _, _, _, session, _, _ in pending:
        if session:
            sessions.setdefault((document, path), {}).setdefault(session, []).append(seq)
    shared = [(path, edits) for (_, path), edits in sessions.items() if len(edits) > 1]
    if not shared:
        return []
    owners = _owners(journal, {number for _, edits in shared for number in edits})
    found: dict[bytes, dict[int, list[Seq]]] = {}
    for path, edits in shared:
        for number, seqs in edits.items():
            found.setdefault(path, {}).setdefault(owners.get(number, number), []).extend(seqs)
    return [
        Collision(path=os.fsdecode(path), edits={number: tuple(sorted(seqs)) for number, seqs in sorted(edits.items())})
        for path, edits in sorted(found.items())
        if len(edits) > 1
    ]


def _owners(journal: Journal, numbers: Iterable[int]) -> dict[int, int]:
    """Return the session with hooks of each session of our server that it has joined."""
    if not os.path.lexists(os.path.join(journal.tree.root, STORE_NAME, AGENTS_NAME, JOINED_NAME)):
        return {}
    # Imported only now: a status would wait for it, and mostly no conversation has joined another one.
    from objstore.review.calls.open_calls import OpenCalls

    index, calls = journal.store.index, OpenCalls(journal)
    owners: dict[int, int] = {}
    for number in sorted(numbers):
        row = index.sessions.get(number)
        for joined in calls.reported_rejections(row.name)[1] if row is not None else ():
            first = index.edits.matching(EditConditions(conversation=joined), limit=1)
            for session in index.sessions.of_edits(edit.seq for edit in first).values():
                owners[session] = number
    return owners
