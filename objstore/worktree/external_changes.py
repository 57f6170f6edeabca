"""Describe files whose state on disk differs from the tip of their document."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from objstore.disk.fs.file_state import file_at, taken_by
from objstore.model.basic_types import is_other_kind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from objstore.disk.fs.confined_path import FileOnDisk, Tree
    from objstore.model.basic_types import FileState
    from objstore.model.results import ExternalChange
    from objstore.storage.index.rows import Tip
    from objstore.storage.transaction.journal import Journal

__all__ = ["concerns_disk", "external_view", "found_at", "found_changes"]


def found_changes(journal: Journal, tips: Iterable[Tip]) -> tuple[ExternalChange, ...]:
    """Return the external changes among the files of these tips, in the order of the tips."""
    found = []
    for tip in tips:
        if not concerns_disk(journal, tip):
            continue
        on_disk = found_at(journal, tip)
        if (None if on_disk is None else on_disk[0]) != tip.state:
            found.append(external_view(journal.tree, tip, on_disk))
    return tuple(found)


def found_at(journal: Journal, tip: Tip) -> tuple[FileState, FileOnDisk] | None:
    """Return what is at a tip's path now, as a state of its document (None: nothing is).

    A link at the path of a file, or a file at that of a link, means that it is gone; a scan records what is there.
    """
    found = file_at(journal.tree, tip.path)
    if found is None or is_other_kind(found[0], tip.state):
        return None
    # At the path of a deleted file, another spelling of the name may lead to a file that is not its own.
    is_other = tip.state is None and (found[0].is_link or not journal.tree.has_spelling(tip.path))
    return None if is_other else found


def concerns_disk(journal: Journal, tip: Tip) -> bool:
    """Return whether the tip's path is its document's: another document may have taken the path of a deleted one.

    The files of a mirror are on no disk here.
    """
    if journal.is_mirror:
        return False
    at_path = journal.store.index.documents.tip_at(tip.path)
    return at_path is not None and at_path.document == tip.document


def external_view(tree: Tree, tip: Tip, found: tuple[FileState, FileOnDisk] | None) -> ExternalChange:
    """Return the view of a change, from what was found at the tip's path (None: nothing)."""
    from objstore.model.results import ExternalChange  # most statuses find no change, and don't wait for it

    return ExternalChange(
        document=tip.document,
        path=os.fsdecode(tip.path),
        recorded=None if tip.state is None else tip.state.blob,
        recorded_mode=0 if tip.state is None else tip.state.mode,
        found=None if found is None else found[0].blob,
        found_mode=0 if found is None else found[0].mode,
        taken_by=taken_by(tree, tip.path) if found is None and tip.state is not None else "",
    )
