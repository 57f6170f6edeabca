"""Recognize what a formatter made of an agent's edit.

An agent's program, or a hook of it, may format a file right after a tool changed it. The change is found by the next
scan: an edit of the same call, with an origin of its own, and pending like any other edit of an agent.

It counts between the beginning of the call and the next event of its session, as hooks report them; after a stop, it is
a person's formatting. The rule guesses wrong if a person formats the agent's lines within that time. Nothing is lost
then: the edit is pending, `cas claim` makes it the person's, and a rejection that takes it along names it.
"""

import os
from collections.abc import Collection, Iterable, Mapping

from objstore.history.edit_queries import edit
from objstore.model.basic_types import Operation, Origin
from objstore.model.large_file_placeholder import is_placeholder
from objstore.model.results import Attributor, CallInfo, Difference
from objstore.review.calls.attribution import UNKNOWN_TIME
from objstore.review.calls.edit_recorder import Change
from objstore.review.calls.returned_files import ReturnedFiles
from objstore.storage.store.write_batch import Batch
from objstore.storage.transaction.journal import Journal
from objstore.text.forms import shown_lines
from objstore.values.errors import UNREADABLE, CasError
from objstore.values.fastclass import replace

__all__ = ["as_formatting", "attributed", "differences"]

_MADE_BY_CALL = frozenset({Origin.AGENT, Origin.FORMATTER})


def attributed(
    journal: Journal,
    changes: Iterable[Change],
    whose: Attributor,
    seen: Mapping[bytes, os.stat_result],
    unseen: Collection[bytes] = (),
) -> list[tuple[Change, CallInfo]]:
    """Return changes that were found on disk, each with whose it is, and as formatting where it is that.

    `seen`: what the system said of the files that were found, by path; a file that isn't there is gone at some time.
    `unseen`: those that no look had read.
    """
    found: list[tuple[Change, CallInfo]] = []
    returned = ReturnedFiles(journal)
    for change in changes:
        moment, tick = _changed(change.path, seen)
        is_unseen = change.path in unseen or _is_unseen(returned, change)
        info = whose(os.fsdecode(change.path), moment, tick, is_unseen=is_unseen)
        found.append((as_formatting(journal, change, whose, moment, tick), info))
    return found


def differences(batch: Batch, changes: Iterable[Change], seen: Mapping[bytes, os.stat_result]) -> list[Difference]:
    """Return changes that were found on disk as a scan finds them; their bytes are in the store or the batch then."""
    found: list[Difference] = []
    for change in changes:
        after = change.after
        if after is not None:
            batch.state(after.content, name=after.state.blob, source=after.source)
        moment, tick = _changed(change.path, seen)
        found.append(
            Difference(
                path=change.path,
                document=change.document,
                known=None if change.before is None else change.before.state,
                now=None if after is None else after.state,
                changed=moment,
                tick=tick,
                folders=change.folders,
            )
        )
    return found


def _is_unseen(returned: ReturnedFiles, change: Change) -> bool:
    """Return whether a change is a file that is back and may hold what no look has read."""
    return change.before is None and change.after is not None and returned.is_unseen(change.path, change.after.state)


def _changed(path: bytes, seen: Mapping[bytes, os.stat_result]) -> tuple[int, int]:
    """Return the latest time at which a file changed, and the possible error of that time (ns)."""
    stat = seen.get(path)
    return (0, UNKNOWN_TIME) if stat is None else (stat.st_ctime_ns, 0)


def as_formatting(journal: Journal, change: Change, whose: Attributor | None, moment: int, tick: int) -> Change:
    """Return a change found on disk, with the edit whose result a formatter changed by it, if that is the case.

    `moment`: the latest time at which the file can have changed (ns of the file system, within `tick` ns). `whose`:
    knows when formatters may have run (None: whenever the file changed).
    """
    before, after = change.before, change.after
    if change.document is None or change.operation is not Operation.EDIT or before is None or after is None:
        return change
    is_large = any(is_placeholder(side.content) for side in (before, after))
    if is_large or before.state.is_link or before.state.mode != after.state.mode:
        return change
    newest = journal.store.index.history.newest_edit(change.document)
    if newest is None:
        return change
    try:
        made = edit(journal, newest)
    except (*UNREADABLE, CasError):
        return change
    is_its_text = made.edit.after == before.state and made.edit.origin in _MADE_BY_CALL and made.status.is_live
    if not is_its_text:
        return change
    if whose is not None:
        sessions = journal.store.index.sessions
        session = sessions.get(sessions.of_edits([newest]).get(newest, 0))
        at = os.fsdecode(made.edit.path)
        if session is None or not whose.may_be_formatted(session.name, at, made.edit.time, moment, tick):
            return change
    from objstore.text.formatting import is_reformatted  # an agent waits for what each hook imports

    is_formatting = is_reformatted(shown_lines(before.content), shown_lines(after.content), change.path)
    return replace(change, formats=made.edit) if is_formatting else change
