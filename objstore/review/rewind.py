"""Rewind to before a turn of an agent's session, by rejecting edits or by restoring files.

Rejecting what the session did from the turn on keeps what others did. Restoring the files does not: it is recorded as
edits of the person's own, together with a decision on them, so that an undo can take them out in one step.
"""

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress

from objstore.disk.file_changes.open_dirs import first_symlink_on
from objstore.disk.fs.reserved_names import folded_name
from objstore.history.edit_queries import edits
from objstore.history.session_queries import turn
from objstore.history.state_at import PastFiles, past_files
from objstore.model.basic_types import FileState, Origin, Status, Unit
from objstore.model.records import HEIR_NOTE, MADE_NOTE, Edit
from objstore.model.results import CallInfo, CallOutcome, ExternalChange, ExternalChanges
from objstore.model.views import EditFilter, EditView, TurnView
from objstore.review.acts import commit_act
from objstore.review.calls.tracked_call import Call
from objstore.storage.transaction.journal import Journal
from objstore.values.errors import FileChanged
from objstore.values.fastclass import replace
from objstore.worktree.external_changes import found_changes
from objstore.worktree.mounts import require_mounted

__all__ = ["exact_info", "rewind_exactly", "units_since", "unrecorded"]


def units_since(journal: Journal, number: int) -> dict[Unit, Status]:
    """Return the live units of the edits that a session made from its turn `number` on, with their statuses.

    Edits that were claimed for the session, or that belong to no known turn, count by their time. Units that are away
    have no effect on the files now, and expired edits can't be decided: both are left out. Raises NoSuchName.
    """
    start = turn(journal, number)
    found: dict[Unit, Status] = {}
    for view in edits(journal, EditFilter(session=str(start.session))):
        if view.expired is None and _is_since(view, start):
            live = [hunk for hunk in view.telling if view.units[hunk].is_live]
            # An edit of which all is live is decided as a whole, with a whole-file part that changes nothing.
            hunks = range(len(view.units)) if live == list(view.telling) else live
            found |= {Unit(view.seq, hunk): view.units[hunk] for hunk in hunks}
    return found


def _is_since(view: EditView, start: TurnView) -> bool:
    if view.edit.turn and view.owner == view.edit.conversation:
        return view.edit.turn >= start.number
    return view.edit.time >= start.time


def rewind_exactly(
    journal: Journal, call: Call, number: int, changes: Iterable[ExternalChange], *, who: str, dry_run: bool
) -> CallOutcome:
    """Restore every recorded file to its state when turn `number` began, and commit the call.

    The call has the information of `exact_info`. `changes`: those that `unrecorded` returns. Raises NoSuchName,
    FileChanged if a folder of a path is now a symlink, SnapshotUnreadable, BlobMissing and what Call.commit raises.
    """
    then = _files_then(journal, number)
    differing = _differing(journal, then)
    changed = map(os.fsencode, [change.path for change in changes])
    differing |= {path: then.states.get(path) for path in changed if path not in differing}
    moment = turn(journal, number).time
    restored = [path for path, state in differing.items() if state is not None]
    kept = [
        path
        for path, state in differing.items()
        if state is None and not _was_made_since(journal, path, moment) and not _is_spelling(journal, path, restored)
    ]
    for path in kept:
        del differing[path]
    for path, state in sorted(differing.items(), key=lambda each: (each[1] is not None, each[0])):  # make room first
        link = first_symlink_on(journal.tree, path)
        if link and differing.get(os.fsencode(link), link) is not None:  # the rewind doesn't remove it
            raise FileChanged(os.fsdecode(path), link)
        name = os.fsdecode(path)
        if state is not None:
            call.restore(name, state)
        elif call.exists(name):
            call.delete(name)

    outcome = commit_act(journal, call, who=who, reason=f"files as before turn {number}", dry_run=dry_run)
    return replace(outcome, older=tuple(map(os.fsdecode, [*then.unseen, *kept])))


def exact_info(number: int, *, who: str) -> CallInfo:
    """Return the call information of an exact rewind."""
    return CallInfo(tool="rewind", origin=Origin.PERSON, notes={"turn": str(number)} | ({"who": who} if who else {}))


def unrecorded(journal: Journal, number: int, without_edit: Iterable[ExternalChange]) -> ExternalChanges:
    """Return the unrecorded changes of files that existed when turn `number` began, or that a rewind would remove.

    `without_edit`: those of files that have no edit. Raises NoSuchName and NotMounted.
    """
    then = _files_then(journal, number)
    differing = _differing(journal, then)
    tips = {path: tip for path in {**differing, **then.states} if (tip := journal.store.tip_at(path)) is not None}
    require_mounted(journal, [tips[path].path for path in differing if path in tips])
    others = [change for change in without_edit if os.fsencode(change.path) in then.states]
    return ExternalChanges(changes=(*found_changes(journal, tips.values()), *others))


def _files_then(journal: Journal, number: int) -> PastFiles:
    return past_files(journal, turn(journal, number).time - 1)


def _was_made_since(journal: Journal, path: bytes, moment: int) -> bool:
    """Return whether the file at a path is known to have been made since a moment (µs), and to hold nothing older.

    A tool that created it is evidence, and the time that the file system gives. A file that was recorded before the
    moment, and comes back to where it was then, only has another name since.
    """
    tip = journal.store.tip_at(path)
    places = [] if tip is None else journal.store.index.history.dated(tip.document)
    records = (journal.store.record(place)[0] for place, _ in reversed(places))
    creation = next((record for record in records if isinstance(record, Edit) and record.before is None), None)
    if creation is None or creation.time < moment:
        return True
    made = creation.notes.get(MADE_NOTE)
    return HEIR_NOTE not in creation.notes and (made is None or (made.isdecimal() and int(made) >= moment))


def _is_spelling(journal: Journal, path: bytes, others: Sequence[bytes]) -> bool:
    """Return whether a path is another spelling of one of the others: then its file is that one's, and is restored."""
    folded = folded_name(os.fsdecode(path))
    for other in others:
        if folded_name(os.fsdecode(other)) == folded:
            with suppress(OSError):
                found = [os.lstat(each, dir_fd=journal.tree.fd) for each in (path, other)]
                if os.path.samestat(*found):
                    return True
    return False


def _differing(journal: Journal, then: PastFiles) -> dict[bytes, FileState | None]:
    """Return the state at a moment of each file whose recorded state now is another (None: no file)."""
    found: dict[bytes, FileState | None] = {}
    for path in journal.store.index.documents.paths_below(b""):
        tip = journal.store.tip_at(path)
        recorded = None if tip is None or tip.path != path else tip.state
        if recorded != then.states.get(path):
            found[path] = then.states.get(path)
    return found
