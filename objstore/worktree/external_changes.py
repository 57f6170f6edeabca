"""Changes from outside: files that are not what the journal says."""

import os
from collections.abc import Iterable
from typing import Final

from objstore.fs.confined_path import FileOnDisk
from objstore.fs.file_state import file_at
from objstore.index.rows import Tip
from objstore.model.basic_types import FileState
from objstore.model.views import ExternalChange
from objstore.transaction.journal import Journal

__all__ = ["EXTERNAL_CONVERSATION", "concerns_disk", "external_view", "found_changes"]

EXTERNAL_CONVERSATION: Final = "external"
"""The conversation of edits that nobody recorded when they were made."""


def found_changes(journal: Journal, tips: Iterable[Tip]) -> tuple[ExternalChange, ...]:
    """Return what stands on disk otherwise than the tips say, in their order."""
    found = []
    for tip in tips:
        if not concerns_disk(journal, tip):
            continue
        stands = file_at(journal.tree, tip.path)
        if (None if stands is None else stands[0]) != tip.state:
            found.append(external_view(tip, stands))
    return tuple(found)


def concerns_disk(journal: Journal, tip: Tip) -> bool:
    """Return whether what stands at the tip's path is this document's: a deleted one's path may be another's by now."""
    at_path = journal.store.index.documents.tip_at(tip.path)
    return at_path is not None and at_path.document == tip.document


def external_view(tip: Tip, found: tuple[FileState, FileOnDisk] | None) -> ExternalChange:
    """Return as a view what was found at the tip's path (None: nothing)."""
    return ExternalChange(
        document=tip.document,
        path=os.fsdecode(tip.path),
        recorded=None if tip.state is None else tip.state.blob,
        recorded_mode=0 if tip.state is None else tip.state.mode,
        found=None if found is None else found[0].blob,
        found_mode=0 if found is None else found[0].mode,
    )
