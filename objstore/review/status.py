"""Status: what is pending, and which files are not what the journal says, found with as few reads as can be."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from objstore.config.settings import RetentionLimits, is_anything_set
from objstore.errors import CasError, DiskFailed, PathError, StoreDamaged
from objstore.model.basic_types import Origin, Status
from objstore.model.views import ExternalChange, PendingGroup, Reclaimable, StatusReport, UnresolvedMarkers
from objstore.worktree.dirty_files import changed_tips
from objstore.worktree.external_changes import found_changes

if TYPE_CHECKING:
    from objstore.log.segment_files import Place
    from objstore.store.object_store import Store
    from objstore.transaction.journal import Journal

__all__ = ["external_changes", "report", "unresolved_markers"]

_WAIT_SECONDS: Final = 1.0
"""How long who found a change waits for writers, in all: one may be about to write the file, or to tell whose it is."""

_PAUSE_SECONDS: Final = 0.002
_UNFINISHED: Final = "what was last recorded of it may not be written yet"


def report(journal: Journal) -> StatusReport:
    """Return the workspace at a glance."""
    external, unreadable = _looked(journal)
    with journal.reading():
        return _told(journal, external, unreadable)


def _told(journal: Journal, external: tuple[ExternalChange, ...], unreadable: tuple[str, ...]) -> StatusReport:
    index = journal.store.index
    counts = index.edits.counts()
    store_bytes, blobs = journal.store.log.total_bytes(), index.blobs.count()
    return StatusReport(
        root=journal.tree.root,
        edits=index.edits.count(),
        pending=counts[Status.PENDING],
        accepted=counts[Status.ACCEPTED],
        rejected=counts[Status.REJECTED],
        conversations=index.edits.conversation_count(),
        groups=tuple(
            PendingGroup(
                conversation=conversation,
                path=os.fsdecode(path),
                seqs=tuple(seqs),
                added=added,
                removed=removed,
            )
            for conversation, path, seqs, added, removed in index.edits.pending_groups()
        ),
        external=external,
        markers=unresolved_markers(journal),
        unreadable=unreadable,
        store_bytes=store_bytes,
        blobs=blobs,
        reclaimable=_reclaimable(journal),
    )


def unresolved_markers(journal: Journal) -> tuple[UnresolvedMarkers, ...]:
    """Return the conflict markers that decisions wrote and that still stand in their files, by edit."""
    wrote = [row for row in journal.store.index.edits.with_markers() if row.status is not Status.REJECTED]
    if not wrote:
        return ()
    from objstore.history.marked_text import markers_still_in_file

    found = (markers_still_in_file(journal, row) for row in wrote)
    return tuple(markers for markers in found if markers is not None)


def _reclaimable(journal: Journal) -> Reclaimable:
    """Return what a collection could free: a few numbers that the index has at hand."""
    index = journal.store.index
    unheld, free_bytes = index.blobs.unheld()
    limits, unreadable, old_edits = RetentionLimits(), "", 0
    if is_anything_set(journal.tree.root):
        from objstore.config.config_files import limits_of

        try:
            limits = limits_of(journal.tree.root)
        except CasError as error:
            limits, unreadable = RetentionLimits(None, None), str(error)
    if limits.older_than is not None:
        old_edits = index.edits.decided_before(time.time_ns() // 1000 - limits.older_than * 1_000_000)
    return Reclaimable(
        free_blobs=unheld,
        free_bytes=free_bytes,
        older_than=limits.older_than,
        old_edits=old_edits,
        max_size=limits.max_size,
        unreadable=unreadable,
    )


def external_changes(journal: Journal) -> tuple[ExternalChange, ...]:
    """Return every recorded file that is not what the journal says.

    Those are left out that can't be read, or may just be being written.
    """
    return _looked(journal)[0]


def _looked(journal: Journal) -> tuple[tuple[ExternalChange, ...], tuple[str, ...]]:
    """Return the files that are not what the journal says, and those that can't be read.

    Only files whose times changed are read. No lock is taken, so a writer may be between the log and its files, and
    those would look as if a stranger had changed them. What is found counts if the files had followed the log before
    the look, and the log was the same after it, with nobody writing; otherwise the look is taken again, but not for
    long: a writer may be stopped. Then nobody can tell of a file that is just written whose it is.
    """
    until: float | None = None
    while True:
        with journal.reading() as store:
            had_followed, end = not journal.unfinished(), store.end
            marked, is_of_this_boot = journal.followed()
            found, unreadable = _look(journal)
        if not found:
            return found, unreadable
        until = time.monotonic() + _WAIT_SECONDS if until is None else until
        is_free = journal.await_writer(until)  # a look may be under way that tells whose it is
        with journal.reading() as store:
            is_over = time.monotonic() >= until
            if store.end == end and had_followed:
                return found, unreadable
            # Where nobody writes, what is unfinished stays so until somebody does.
            if is_over or (store.end == end and is_free and journal.unfinished()):
                # Who finishes what was lost with the machine's last start may be at any file.
                written = _written(store, marked or end) if is_free or is_of_this_boot else None
                return _without(found, unreadable, written)
        time.sleep(_PAUSE_SECONDS)


def _written(store: Store, since: Place) -> set[str]:
    """Return the paths that what was recorded behind a place says were to be written."""
    from objstore.index.ingest import decoded
    from objstore.model.records import Decision, Edit

    paths: set[bytes | None] = set()
    with suppress(StoreDamaged):  # that is no place any more
        for group in store.log.groups(since):
            for record in (chained.record for chained in decoded(group)):
                match record:
                    case Edit(origin=origin) if origin is not Origin.EXTERNAL:
                        paths |= {record.path, record.source}
                    case Decision():
                        paths.update(path for each in record.written for path in (each.path_before, each.path_after))
                    case _:
                        pass
    return {os.fsdecode(path) for path in paths if path is not None}


def _without(
    found: tuple[ExternalChange, ...], unreadable: tuple[str, ...], written: set[str] | None
) -> tuple[tuple[ExternalChange, ...], tuple[str, ...]]:
    """Return the changes of files that are not being written, and the others with what can't be read.

    `written`: paths of files that may be (None: any may).
    """
    sure = tuple(change for change in found if written is not None and change.path not in written)
    unfinished = [f"{change.path}: {_UNFINISHED}" for change in found if change not in sure]
    return sure, (*unreadable, *unfinished)


def _look(journal: Journal) -> tuple[tuple[ExternalChange, ...], tuple[str, ...]]:
    suspects = changed_tips(journal)
    # What was deleted matters only where nothing else has the path since, and something stands there again.
    suspects += [tip for tip in journal.store.index.documents.deleted() if _stands(journal, tip.path)]
    found: list[ExternalChange] = []
    unreadable: list[str] = []
    for tip in suspects:
        try:
            found += found_changes(journal, [tip])
        except (PathError, DiskFailed) as error:
            unreadable.append(f"{os.fsdecode(tip.path)}: {error}")
    return tuple(found), tuple(unreadable)


def _stands(journal: Journal, path: bytes) -> bool:
    try:
        os.lstat(path, dir_fd=journal.tree.fd)
    except OSError:
        return False
    return True
