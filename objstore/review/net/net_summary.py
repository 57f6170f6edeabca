"""Summarize the net changes of files without their texts, from a cache as far as it is valid."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Final

from objstore.model.net_file import ChangeSummary, FileSummary
from objstore.review.net.net_cache import NetCache
from objstore.review.net.net_selection import pending_documents, selected
from objstore.review.net.seen_changes import seen_changes
from objstore.review.status import external_changes
from objstore.values.errors import StoreError

# What computes summaries is imported only if the cache lacks one.
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from objstore.model.basic_types import DocumentId, Unit
    from objstore.model.net_file import NetFile
    from objstore.storage.transaction.journal import Journal

__all__ = ["seen_counts", "summaries"]

_MOST_SECONDS: Final = 1.0
"""Seconds of computing after which the rest is put off, if the caller wants that."""


def summaries(
    journal: Journal,
    paths: Collection[str] = (),
    units: Collection[Unit] | None = None,
    unreadable: Callable[[StoreError], object] | None = None,
    put_off: Callable[[DocumentId, str], object] | None = None,
) -> list[FileSummary]:
    """Return what `net_files` does without texts: of documents without new records it is read from a cache.

    `put_off`: called with each document, and its path, that is left out because others took a second to be computed;
    the next call computes more. None: all are computed.
    """
    unrecorded = {change.document for change in external_changes(journal)}
    return selected(_summaries(journal, unrecorded, paths, units, unreadable, put_off), paths, units)


def seen_counts(journal: Journal) -> tuple[int, int] | None:
    """Return how many changes are pending, and how many of them are not seen; None: none was ever seen.

    Files with unreadable histories have none. No file on disk is compared.
    """
    seen = seen_changes(journal)
    if not seen:
        return None
    found = _summaries(journal, set(), (), None, lambda _: None)
    keys = [change.key for file in found for change in file.changes]
    return len(keys), sum(key not in seen for key in keys)


def _summaries(
    journal: Journal,
    unrecorded: Collection[DocumentId | None],
    paths: Collection[str],
    units: Collection[Unit] | None,
    unreadable: Callable[[StoreError], object] | None,
    put_off: Callable[[DocumentId, str], object] | None = None,
) -> list[FileSummary]:
    until: float | None = None  # when the documents that are still to be computed are put off
    with journal.reading() as store, store.index.still():
        cache = NetCache(journal)
        found: list[FileSummary] = []
        pending = list(pending_documents(store, paths, units))
        for done, position in enumerate(pending):
            journal.progress("documents", done, len(pending))
            is_unrecorded = position.document in unrecorded
            summary = cache.get(position, is_unrecorded=is_unrecorded)
            if summary is None:
                if put_off is not None and until is not None and time.monotonic() > until:
                    put_off(position.document, os.fsdecode(store.index.documents.tip(position.document).path))
                    continue
                until = time.monotonic() + _MOST_SECONDS if until is None else until  # one is always computed
                from objstore.review.net.net_view import net_file

                try:
                    summary = _summary(net_file(journal, position.document, is_unrecorded=is_unrecorded))
                except StoreError as error:
                    if unreadable is None:
                        raise
                    unreadable(error)
                    continue
                cache.put(position, summary)
            found.append(summary)
        if cache.is_changed:
            cache.save(position.document for position in store.index.edits.pending_documents())
    return found


def _summary(file: NetFile) -> FileSummary:
    changes = [
        ChangeSummary(
            change.kind,
            change.line_before,
            change.line_after,
            change.removed_lines,
            change.inserted_lines,
            change.units,
            change.shares_with,
            change.key,
        )
        for change in file.changes
    ]
    facts = {name: getattr(file, name) for name in FileSummary._fields if name != "changes"}
    return FileSummary(changes=tuple(changes), **facts)
