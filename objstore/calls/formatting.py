"""Recognize what a formatter made of an agent's edit.

An agent's program, or a hook of it, may format a file right after a tool changed it. The change is found by the next
scan: an edit of the same call, with an origin of its own, and pending like any other edit of an agent.

The rule guesses wrong if a person formats the agent's lines within that time. Nothing is lost then: the edit is
pending, `cas claim` makes it the person's, and a rejection that takes it along names it.
"""

from typing import Final

from objstore.calls.edit_recorder import Change
from objstore.errors import UNREADABLE, CasError
from objstore.fastclass import replace
from objstore.history.edit_queries import edit
from objstore.model.basic_types import Operation, Origin
from objstore.model.large_file_placeholder import is_placeholder
from objstore.text.formatting import is_reformatted
from objstore.text.forms import shown_lines
from objstore.transaction.journal import Journal

__all__ = ["as_formatting"]

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
    if before.state.is_link or before.state.mode != after.state.mode:
        return change
    if is_placeholder(before.content) or is_placeholder(after.content):
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
    if (
        is_right_after
        and is_its_text
        and is_reformatted(shown_lines(before.content), shown_lines(after.content), change.path)
    ):
        return replace(change, formats=made.edit)
    return change
