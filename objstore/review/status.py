"""Report what is pending, and which files differ from their records, with as few reads as possible."""

from __future__ import annotations

import os
import time
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from objstore.disk.fs.reserved_names import AGENTS_NAME, EVENTS_NAME, OPEN_CALL_PREFIX, STORE_NAME
from objstore.model.basic_types import Action, CommentState, Status
from objstore.model.status_report import (
    Caution,
    CommitAcceptance,
    PendingGroup,
    PendingTurn,
    Reclaimable,
    RunningCall,
    StatusReport,
    UnresolvedMarkers,
    UnreviewedCommit,
)
from objstore.values.errors import CasError, DiskFailed, PathError, StoreDamaged
from objstore.worktree.dirty_files import changed_tips
from objstore.worktree.external_changes import found_changes
from objstore.worktree.mounts import absent_folders, is_absent

# What only the report needs is imported in it: net changes need no more than the external changes.
if TYPE_CHECKING:
    from collections.abc import Collection

    from objstore.model.basic_types import DocumentId
    from objstore.model.results import ExternalChange
    from objstore.storage.index.rows import PendingEdit
    from objstore.storage.log.segment_files import Place
    from objstore.storage.store.object_store import Store
    from objstore.storage.transaction.journal import Journal
    from objstore.worktree.changed_dirs import SharedLooks

__all__ = ["external_changes", "report", "running_calls", "unfollowed", "unresolved_markers"]

_WAIT_SECONDS: Final = 1.0
"""Total seconds to wait for writers after a change was found: one may be about to write or to record that file."""

_PAUSE_SECONDS: Final = 0.002
_MOST_GIT_EVENTS: Final = 20
"""Decisions among which the newest that is not git's own is searched."""

_NOT_MOUNTED: Final = "its file system is not mounted now; its files are neither compared nor recorded"
_UNFINISHED: Final = "its last recorded change may not be written yet"


def report(journal: Journal, shared: SharedLooks | None = None) -> StatusReport:
    """Return the status of a workspace: its edits, external changes, conflict markers and space.

    `shared`: gets what was seen of the files with edits.
    """
    external, unreadable = _stable_changes(journal, shared=shared)
    with journal.reading():
        return _status_report(journal, external, (*unreadable, *unfollowed(journal)))


def _status_report(journal: Journal, external: tuple[ExternalChange, ...], unreadable: tuple[str, ...]) -> StatusReport:
    from objstore.review.collisions import collisions
    from objstore.worktree.secret_files import secret_files

    index = journal.store.index
    counts = index.edits.counts()
    pending = index.edits.pending()
    turns = filter(None, map(index.turns.turn, sorted({edit.turn for edit in pending} - {0})))
    store_bytes, blobs = journal.store.log.files.total_bytes(), index.blobs.count()
    return StatusReport(
        root=journal.tree.root,
        edits=index.edits.count(),
        pending=counts[Status.PENDING],
        accepted=counts[Status.ACCEPTED],
        rejected=counts[Status.REJECTED],
        away=counts[Status.AWAY],
        conversations=index.edits.conversation_count(),
        sessions=index.sessions.count(),
        groups=_groups(pending),
        turns=tuple(
            PendingTurn(number=turn.number, session=turn.session, client=turn.client, prompt=turn.prompt)
            for turn in turns
        ),
        external=external,
        markers=unresolved_markers(journal),
        unreadable=unreadable,
        store_bytes=store_bytes,
        blobs=blobs,
        reclaimable=_reclaimable(journal),
        collisions=tuple(collisions(journal, pending)),
        comments=_comments(journal),
        policies=_changed_policies(journal),
        secrets=secret_files(journal),
        running=running_calls(journal),
        commits=_commits(journal) if pending else (),
        committed=_committed(journal),
        cautions=_cautions(journal),
    )


def running_calls(journal: Journal) -> tuple[RunningCall, ...]:
    """Return the calls of agents' own programs whose end was not reported, oldest first.

    The caller holds a read of the journal.
    """
    if not _has_open_calls(journal.tree.root):
        return ()
    from objstore.review.calls.open_calls import CallKind, OpenCalls

    calls = sorted(OpenCalls(journal).calls().values(), key=lambda call: call.began)
    return tuple(
        RunningCall(
            session=journal.store.index.sessions.number(call.conversation),
            conversation=call.conversation,
            client=call.notes.get("client", ""),
            tool=call.tool,
            paths=call.paths,
            began=call.began,
            is_asked=call.is_asked,
            is_behind=call.is_behind or call.is_left,
            is_abandoned=call.is_over,
        )
        for call in calls
        if call.kind in {CallKind.CALL, CallKind.PROCESS} and (not call.is_over or call.is_left)
    )


def _has_open_calls(root: str) -> bool:
    """Return whether any call is open: mostly none is, and a status must not wait for their module to load."""
    prefix, open_calls = OPEN_CALL_PREFIX.encode(), set[bytes]()
    with suppress(OSError), open(os.path.join(root, STORE_NAME, AGENTS_NAME, EVENTS_NAME), "rb") as file:
        for line in file.read().split(b"\n"):
            _, _, said = line.partition(b" " + prefix)  # behind the name is the value
            if said:
                name, _, value = said.partition(b" ")
                (open_calls.discard if value == b"null" else open_calls.add)(name)
    return bool(open_calls)


def _comments(journal: Journal) -> dict[str, int]:
    """Return how many comments are open, sent and answered, as CommentView.word says of each."""
    words: dict[int, str] = {}  # by the number of the comment: its own state, or that of the newest answer
    own: dict[int, CommentState] = {}
    if journal.store.index.numbers.next_comment() == 1:
        return {}
    for row in journal.store.index.comments.all():
        about = row.answers or row.number
        own.setdefault(about, row.state)
        if about == row.number or own[about] is CommentState.SENT:
            words[about] = "answered" if row.conversation else row.state.value
    counts = Counter(word for word in words.values() if word != CommentState.RESOLVED.value)
    return {word: counts[word] for word in ("open", "sent", "answered") if counts[word]}


def _groups(pending: list[PendingEdit]) -> tuple[PendingGroup, ...]:
    """Return the edits by turn and file, or by owner and file where they are of no turn, the oldest group first."""
    together: dict[tuple[str, str, int, DocumentId], list[PendingEdit]] = {}
    for edit in pending:
        _, document, _, conversation, owner, turn, *_ = edit  # of thousands of rows, unpacking is faster than names
        turn = turn if owner == conversation else 0
        together.setdefault((conversation, owner, turn, document), []).append(edit)
    return tuple(_group(edits, owner, turn) for (_, owner, turn, _), edits in together.items())


def _group(edits: list[PendingEdit], owner: str, turn: int) -> PendingGroup:
    """Return the group that edits of one turn in one file make."""
    seqs, _, paths, conversations, _, _, sessions, added, removed = zip(*edits, strict=True)
    return PendingGroup(
        conversation=conversations[0],
        owner=owner,
        turn=turn,
        path=os.fsdecode(paths[0]),
        seqs=seqs,
        added=sum(added),
        removed=sum(removed),
        session=0 if turn else sessions[0],
    )


def _commits(journal: Journal) -> tuple[UnreviewedCommit, ...]:
    if not journal.store.index.decisions.of_git():
        return ()
    from objstore.history.git_events import unreviewed_commits

    return tuple(unreviewed_commits(journal))


def unfollowed(journal: Journal) -> list[str]:
    """Return what can't be followed of git; without a repository there is nothing to ask, and no module to load."""
    root = journal.tree.root
    while not os.path.lexists(os.path.join(root, ".git")):
        above = os.path.dirname(root)
        if above == root:
            return []
        root = above
    from objstore.history.unfollowed_repositories import unfollowed_repositories

    return unfollowed_repositories(journal)


def _committed(journal: Journal) -> CommitAcceptance | None:
    """Return which edits a commit accepted, if no decision was made since, so that an undo takes that back."""
    newest = journal.store.index.numbers.next_decision() - 1
    of_git = {*journal.store.index.decisions.of_git()}
    for number in range(newest, max(newest - _MOST_GIT_EVENTS, 0), -1):
        place = journal.store.index.decisions.place(number)
        if place is None:
            continue
        if place not in of_git:
            break  # a person's, which may have a hundred thousand verdicts: it is not read
        from objstore.model.records import Decision

        decision, _ = journal.store.record(place)
        if isinstance(decision, Decision) and decision.action is not Action.GIT:
            if decision.action is not Action.ACCEPT or not decision.commit:
                break
            edits = tuple(sorted({unit.seq for unit, _ in decision.verdicts}))
            return CommitAcceptance(commit=decision.commit, edits=edits)
    return None


def _cautions(journal: Journal) -> tuple[Caution, ...]:
    from objstore.disk.witnesses.remarks import has_remarks

    if not journal.store.index.cautions.newest() and not has_remarks(journal.tree.root):
        return ()
    from objstore.review.cautions import ACKNOWLEDGED, cautions

    return cautions(journal, ACKNOWLEDGED).items


def _changed_policies(journal: Journal) -> tuple[str, ...]:
    from objstore.disk.config.setting_sources import settings_files

    is_written = os.path.lexists(settings_files(journal.tree.root)[0])
    if not is_written and not journal.store.index.settings.changes():
        return ()
    from objstore.review.calls import policies

    return tuple(policies.changed_outside(journal.tree.root, journal.store))


def unresolved_markers(journal: Journal) -> tuple[UnresolvedMarkers, ...]:
    """Return the conflict markers that decisions wrote and that are still in their files, ordered by edit."""
    marker_rows = [row for row in journal.store.index.edits.with_markers() if row.status.is_live]
    if not marker_rows:
        return ()
    from objstore.history.documents.marked_text import markers_still_in_file

    found = (markers_still_in_file(journal, row) for row in marker_rows)
    return tuple(markers for markers in found if markers is not None)


def _reclaimable(journal: Journal) -> Reclaimable:
    """Return what garbage collection could free, from numbers that the index keeps."""
    from objstore.disk.config.setting_sources import RetentionLimits, is_anything_set

    index = journal.store.index
    unheld, free_bytes = index.blobs.unheld()
    limits, unreadable, old_edits = RetentionLimits(), "", 0
    if is_anything_set(journal.tree.root):
        from objstore.disk.config.config_files import limits_of

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


def external_changes(journal: Journal, naming: Collection[str] = ()) -> tuple[ExternalChange, ...]:
    """Return the external change of every recorded file that differs from its record.

    Files that can't be read, or that a writer may be writing, are left out; and so are files that scans leave out,
    except those that `naming` has.
    """
    return _stable_changes(journal, naming)[0]


def _stable_changes(
    journal: Journal, naming: Collection[str] = (), shared: SharedLooks | None = None
) -> tuple[tuple[ExternalChange, ...], tuple[str, ...]]:
    """Return the external changes of recorded files, and a message for each file that can't be read.

    Only files whose times changed are read. This takes no lock, so a writer may have written the log and not its files
    yet, and those files would look as if they had been changed from outside. The result is valid if all files matched
    the log before the check, and the log was the same afterwards. Otherwise the check is repeated, but not for long,
    because a writer may be suspended: then the files that it may be writing are reported as unfinished.
    """
    if journal.is_mirror:
        return (), ()  # its files are elsewhere
    until: float | None = None
    while True:
        with journal.reading() as store:
            was_finished, end = not journal.unfinished(), store.end
            marked = journal.applied_until()
            if shared is not None:
                shared.clear()  # each check looks at the files once more
            found, unreadable = _changes_now(journal, naming, shared)
        if not found:
            return found, unreadable
        until = time.monotonic() + _WAIT_SECONDS if until is None else until
        is_free = journal.await_writer(until)  # a scan that attributes the change may be running
        with journal.reading() as store:
            is_over = time.monotonic() >= until
            if store.end == end and was_finished:
                return found, unreadable
            # Without a writer, unfinished changes stay unfinished.
            if is_over or (store.end == end and is_free and journal.unfinished()):
                return _without(found, unreadable, _written(store, marked or end))
        time.sleep(_PAUSE_SECONDS)


def _written(store: Store, since: Place) -> set[str]:
    """Return the paths that records after a place in the log have changed, except external edits."""
    from objstore.model.records import Decision, Edit
    from objstore.storage.index.ingest import decoded

    paths: set[bytes | None] = set()
    with suppress(StoreDamaged):  # the place no longer exists
        for group in store.log.groups(since):
            for record in (chained.record for chained in decoded(group)):
                match record:
                    case Edit(origin=origin) if not origin.is_found:
                        paths |= {record.path, record.source}
                    case Decision():
                        paths.update(path for w in record.changed_files for path in (w.path_before, w.path_after))
                    case _:
                        pass
    return {os.fsdecode(path) for path in paths if path is not None}


def _without(
    found: tuple[ExternalChange, ...], unreadable: tuple[str, ...], written: set[str]
) -> tuple[tuple[ExternalChange, ...], tuple[str, ...]]:
    """Move the changes of files that may be being written from `found` to messages in `unreadable`; return both."""
    certain = tuple(change for change in found if change.path not in written)
    unfinished = [f"{change.path}: {_UNFINISHED}" for change in found if change.path in written]
    return certain, (*unreadable, *unfinished)


def _changes_now(
    journal: Journal, naming: Collection[str], shared: SharedLooks | None
) -> tuple[tuple[ExternalChange, ...], tuple[str, ...]]:
    suspects = changed_tips(journal, shared)
    # A deleted document matters only if no other has its path since, and a file exists there again.
    suspects += [tip for tip in journal.store.index.documents.deleted() if _exists(journal, tip.path)]
    found: list[ExternalChange] = []
    absent = absent_folders(journal)
    unreadable = [f"{os.fsdecode(folder)}: {_NOT_MOUNTED}" for folder in absent]
    for tip in suspects:
        if is_absent(tip.path, absent):
            continue
        try:
            found += found_changes(journal, [tip])
        except (PathError, DiskFailed) as error:
            unreadable.append(f"{os.fsdecode(tip.path)}: {error}")
    return tuple(_scanned(journal, found, naming)), tuple(unreadable)


def _scanned(journal: Journal, found: list[ExternalChange], naming: Collection[str]) -> list[ExternalChange]:
    """Return the changes without those of files that scans leave out: no scan would ever record them."""
    unnamed = [change for change in found if change.path not in naming]
    if not unnamed:
        return found
    from objstore.disk.ignore_rules.rule_files import files_left_out

    left_out = files_left_out(journal.tree, [(os.fsencode(change.path), change.found is None) for change in unnamed])
    return [change for change in found if change.path in naming or os.fsencode(change.path) not in left_out]


def _exists(journal: Journal, path: bytes) -> bool:
    try:
        os.lstat(path, dir_fd=journal.tree.fd)
    except OSError:
        return False
    return True
