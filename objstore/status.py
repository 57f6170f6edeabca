"""Status: what is pending, and which files are not what the journal says, found with as few reads as can be."""

from __future__ import annotations

import os
import time

from objstore.annotations import TYPE_CHECKING, Final
from objstore.asrecorded import changed_tips
from objstore.errors import CasError, DiskFailed, PathError
from objstore.external import found_changes
from objstore.limits import RetentionLimits, is_anything_set
from objstore.reports import ExternalChange, PendingGroup, Reclaimable, StandingMarkers, StatusReport
from objstore.terms import Status

if TYPE_CHECKING:
    from objstore.headstart import HeadStart
    from objstore.journal import Journal

__all__ = ["external_changes", "report", "standing_markers"]

_LOOKS: Final = 100
_PAUSE_SECONDS: Final = 0.002


def report(journal: Journal, ahead: HeadStart | None = None) -> StatusReport:
    """Return the workspace at a glance; `ahead`: one that may have been begun already."""
    external, unreadable = _looked(journal, ahead)
    index = journal.store.index
    counts = index.counts()
    store_bytes, blobs = journal.store.log.total_bytes(), index.blob_count()
    return StatusReport(
        root=journal.tree.root,
        edits=index.edit_count(),
        pending=counts[Status.PENDING],
        accepted=counts[Status.ACCEPTED],
        rejected=counts[Status.REJECTED],
        conversations=index.conversation_count(),
        groups=tuple(
            PendingGroup(
                conversation=conversation,
                path=os.fsdecode(path),
                seqs=tuple(seqs),
                added=added,
                removed=removed,
            )
            for conversation, path, seqs, added, removed in index.pending_groups()
        ),
        external=external,
        markers=standing_markers(journal),
        unreadable=unreadable,
        store_bytes=store_bytes,
        blobs=blobs,
        reclaimable=_reclaimable(journal),
    )


def standing_markers(journal: Journal) -> tuple[StandingMarkers, ...]:
    """Return the conflict markers that decisions wrote and that still stand in their files, by edit."""
    wrote = [row for row in journal.store.index.markers() if row.status is not Status.REJECTED]
    if not wrote:
        return ()
    from objstore.marking import still_there

    found = (still_there(journal, row) for row in wrote)
    return tuple(markers for markers in found if markers is not None)


def _reclaimable(journal: Journal) -> Reclaimable:
    """Return what a collection could free: a few numbers that the index has at hand."""
    index = journal.store.index
    unheld, free_bytes = index.unheld()
    limits, unreadable, old_edits = RetentionLimits(), "", 0
    if is_anything_set(journal.tree.root):
        from objstore.configuration import limits_of

        try:
            limits = limits_of(journal.tree.root)
        except CasError as error:
            limits, unreadable = RetentionLimits(None, None), str(error)
    if limits.older_than is not None:
        old_edits = index.decided_before(time.time_ns() // 1000 - limits.older_than * 1_000_000)
    return Reclaimable(
        free_blobs=unheld,
        free_bytes=free_bytes,
        older_than=limits.older_than,
        old_edits=old_edits,
        max_size=limits.max_size,
        unreadable=unreadable,
    )


def external_changes(journal: Journal) -> tuple[ExternalChange, ...]:
    """Return every recorded file that is not what the journal says; those that can't be read are left out."""
    return _looked(journal)[0]


def _looked(journal: Journal, ahead: HeadStart | None = None) -> tuple[tuple[ExternalChange, ...], tuple[str, ...]]:
    """Return the files that are not what the journal says, and those that can't be read.

    Only files whose times changed are read. No lock is taken, so a writer may be between the log and its files, and
    those would look as if a stranger had changed them. What is found counts if the files had followed the log before
    the look, and the log was the same after it, with nobody writing; otherwise the look is taken again, for as long as
    writers may need.
    """
    for _ in range(_LOOKS):
        had_followed, end = not journal.unfinished(), journal.store.end
        found = _look(journal, ahead)
        if found[0]:
            journal.await_writer()  # a look may be under way that tells whose it is
        journal.store.catch_up()
        if not found[0] or (had_followed and journal.store.end == end):
            return found
        time.sleep(_PAUSE_SECONDS)
    return _look(journal)


def _look(journal: Journal, ahead: HeadStart | None = None) -> tuple[tuple[ExternalChange, ...], tuple[str, ...]]:
    suspects = changed_tips(journal, ahead)
    # What was deleted matters only where nothing else has the path since, and something stands there again.
    suspects += [tip for tip in journal.store.index.gone() if _stands(journal, tip.path)]
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
