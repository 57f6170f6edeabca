"""Correct whose changes are once it is known that a report of a call is missing, or has come after all.

While a call runs whose beginning no hook reported, nothing says that an agent works, so that scans take its changes for
a person's. And while a call is open whose end is lost, scans take a person's changes for the call's.
"""

import os
from collections.abc import Mapping
from typing import Final

from objstore.agents.attributed_scan import Looks
from objstore.model.basic_types import UNKNOWN_AGENT
from objstore.model.views import EditView
from objstore.review.calls.attribution import CANDIDATES, WHY
from objstore.review.calls.open_calls import END_AWAITED, FORGOTTEN_AFTER, AgentCall, OpenCalls
from objstore.values.clock import now

__all__ = ["MissingReports", "starts_of"]


class MissingReports:
    """The calls of one workspace of which a report is missing."""

    def __init__(self, open_calls: OpenCalls, scan: Looks) -> None:
        """Take the open calls, whose lock the caller holds, and what corrects edits."""
        self._open: Final = open_calls
        self._scan: Final = scan

    def earliest_beginning(self, call: AgentCall, ended: int = 0) -> int:
        """Return when a call can have begun at the earliest, if nothing reported its beginning (microseconds).

        A call of the main agent began after the newest prompt or start of the session, one of a subagent after that
        began, and none before the time after which calls are forgotten. `ended`: when an end was last reported in the
        same words, if the call has no id: a client may report an end twice.
        """
        kept = self._open.session(call.conversation)
        known = starts_of(kept).get(call.agent) if call.agent else kept.get("prompted")
        return max(now() - FORGOTTEN_AFTER, known if isinstance(known, int) else 0, 0 if call.is_named else ended)

    def note_unannounced(self, name: str, call: AgentCall, since: int) -> None:
        """Leave open whose the changes are that were taken for a person's since a time. Raises as `Journal.commit`.

        Until its own changes are recorded, the call is open: another scan may find them in the meantime.
        """
        self._open.put(name, call)
        reason = f"the beginning of a tool of session {call.conversation} was not reported"
        self._scan.leave_unattributed(since, reason, call.paths)

    def note_lost_end(self, call: AgentCall) -> None:
        """Leave open whose the changes are that were taken for a call's while its end was awaited in vain.

        Raises as `Journal.commit`.
        """
        made = call.info

        def is_its_own(view: EditView) -> bool:
            said = (view.edit.conversation, view.edit.tool, view.edit.notes, view.owner)
            return said == (made.conversation, made.tool, made.notes, made.conversation)

        reason = f"the end of a tool of session {call.conversation} was not reported"
        self._scan.reattribute(call.began, is_its_own, UNKNOWN_AGENT, reason)

    def note_late_end(self, call: AgentCall) -> None:
        """Give a call what was left open because it was not known that it still ran. Raises as `Journal.commit`.

        That is what was found in the files that it named, which no other session's call had; or, if it may touch any
        file, what only its conversation may have changed.
        """
        if call.doubt != END_AWAITED:
            return

        def is_its_own(view: EditView) -> bool:
            is_named = os.fsdecode(view.edit.path) in (call.paths or ())
            is_possible = view.is_unattributed and (is_named or call.paths is None)
            if view.edit.notes.get(WHY) != END_AWAITED or not is_possible:
                return False
            candidates = view.edit.notes.get(CANDIDATES, "").split("\n")
            return candidates == [call.conversation] or (
                is_named and call.is_announced and call.conversation in candidates
            )

        reason = f"the end of a tool of session {call.conversation} was reported"
        since = call.began if call.is_announced else self.earliest_beginning(call)
        self._scan.reattribute(since, is_its_own, call.conversation, reason)


def starts_of(kept: Mapping[str, object]) -> dict[str, object]:
    """Return when each subagent began, from what is kept of a conversation."""
    starts = kept.get("starts")
    return starts if isinstance(starts, dict) else {}
