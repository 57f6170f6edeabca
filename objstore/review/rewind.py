"""Find what a session of an agent did from a turn on, so that it can be rejected as one decision."""

from objstore.history.edit_queries import edits
from objstore.history.session_queries import turn
from objstore.model.basic_types import Status, Unit
from objstore.model.views import EditFilter, EditView, TurnView
from objstore.transaction.journal import Journal

__all__ = ["units_since"]


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
