"""Recognize what a formatter made of an agent's edit, and decide on it together with that edit.

An agent's program, or a hook of it, may format a file right after a tool changed it. The change is found by the next
scan: an edit of the same call, with an origin of its own, that amends the agent's edit.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from objstore.calls.edit_recorder import Change
from objstore.errors import UNREADABLE, CasError
from objstore.fastclass import replace
from objstore.history.edit_queries import edit
from objstore.model.basic_types import Operation, Origin, Seq, Status, Unit
from objstore.model.large_file_placeholder import is_placeholder
from objstore.model.records import Edit
from objstore.text.formatting import is_reformatted
from objstore.transaction.journal import Journal

__all__ = ["as_formatting", "with_formatting"]

_SECONDS: Final = 5
"""How long after an agent's edit a formatter may change the file."""

_NS_PER_US: Final = 1000
_NS: Final = 1_000_000_000
_MADE_BY_CALL: Final = frozenset({Origin.AGENT, Origin.FORMATTER})


def as_formatting(journal: Journal, change: Change, moment: int, tick: int) -> Change:
    """Return a change found on disk, with the edit whose result a formatter changed by it, if that is the case.

    `moment`: the latest time at which the file can have changed (ns of the file system, within `tick` ns).
    """
    before, after = change.before, change.after
    if change.document is None or change.operation is not Operation.EDIT or before is None or after is None:
        return change
    if before.state.mode != after.state.mode or is_placeholder(before.content) or is_placeholder(after.content):
        return change
    newest = journal.store.index.edits.newest_of(change.document)
    if newest is None:
        return change
    try:
        made = edit(journal, newest)
    except (*UNREADABLE, CasError):
        return change
    passed = moment - made.edit.time * _NS_PER_US
    is_right_after = -_NS - tick <= passed <= _SECONDS * _NS + tick
    is_its_text = made.edit.after == before.state and made.edit.origin in _MADE_BY_CALL and made.status.is_live
    if is_right_after and is_its_text and is_reformatted(before.content, after.content):
        return replace(change, formats=made.edit)
    return change


def with_formatting(journal: Journal, verdicts: Mapping[Unit, Status], found: Sequence[Edit]) -> dict[Unit, Status]:
    """Return the verdicts, and those on what formatters made of the decided units.

    A hunk of a formatter is rejected with any of the hunks whose lines it changes, and accepted with all of them; if it
    changes lines of none, it goes along with the whole edit. `found`: edits that are recorded with this decision.
    """
    given = dict(verdicts)
    waiting = sorted({unit.seq for unit in verdicts})
    while waiting:
        seq = waiting.pop(0)
        formatted = _formatting_of(journal, seq, found)
        row = journal.store.index.edits.get(seq)
        if formatted is None or row is None:
            continue
        own = edit(journal, seq).edit
        statuses = [given.get(Unit(seq, number), status) for number, status in enumerate(row.units)]
        later = journal.store.index.edits.get(formatted.seq)
        for number in range(1 + len(formatted.hunks)):
            unit = Unit(formatted.seq, number)
            if unit in given or (later is not None and later.units[number] is Status.AWAY):
                continue
            near = _hunks_near(own, formatted, number)
            of = [statuses[at] for at in near or range(0 if own.changes_whole else 1, len(statuses))]
            given[unit] = _together(of, is_any=bool(near))
        waiting.append(formatted.seq)
    return given


def _formatting_of(journal: Journal, seq: Seq, found: Sequence[Edit]) -> Edit | None:
    """Return the edit by which a formatter changed the result of an edit (None: none did, or it has expired)."""
    for each in found:
        if each.amends == seq and each.origin is Origin.FORMATTER:
            return each
    later = journal.store.index.edits.next_of_call(seq)
    view = None if later is None else edit(journal, later)
    if view is None or view.expired is not None:
        return None
    return view.edit if view.edit.amends == seq and view.edit.origin is Origin.FORMATTER else None


def _hunks_near(own: Edit, formatted: Edit, number: int) -> list[int]:
    """Return the units of an edit whose lines are changed by, or next to, a formatter's hunk."""
    if not number or own.after != formatted.before:
        return []
    hunk = formatted.hunks[number - 1]
    return [
        at
        for at, made in enumerate(own.hunks, start=1)
        if made.new_start <= hunk.old_end and hunk.old_start <= made.new_end
    ]


def _together(statuses: Sequence[Status], *, is_any: bool) -> Status:
    """Return the combined status of some units. `is_any`: one rejected unit makes it rejected."""
    rejected = [status for status in statuses if not status.is_live]
    if rejected and (is_any or len(rejected) == len(statuses)):
        return Status.REJECTED
    return Status.PENDING if Status.PENDING in statuses else Status.ACCEPTED
