"""Correct whose changes are once it is known that a report of a call is missing, or has come after all.

While a call runs whose beginning no hook reported, nothing says that an agent works, so that scans take its changes for
a person's. And while a call is open whose end is lost, scans take a person's changes for the call's.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from objstore.calls.attribution import CANDIDATES, WHY
from objstore.calls.open_calls import END_AWAITED, FORGOTTEN_AFTER, AgentCall, CallSpan, OpenCalls
from objstore.clock import now
from objstore.model.basic_types import MAX_INT, UNKNOWN_AGENT, Origin
from objstore.model.views import EditView
from objstore.tracking.attributed_scan import Looks

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

    def note_late_end(self, call: AgentCall, until: int) -> None:
        """Give a call what was left open because it was not known that it still ran. Raises as `Journal.commit`.

        That is what was found in the files that it named, which no other session's call had; or, if it may touch any
        file, what only its conversation may have changed, until another such call of the conversation began of which it
        is not known either. `until`: when that was; what was found later may be that one's.
        """

        def is_its_own(view: EditView) -> bool:
            candidates = view.edit.notes.get(CANDIDATES, "").split("\n")
            if call.paths is None:
                return candidates == [call.conversation] and view.edit.time < until
            is_possible = call.conversation in candidates if call.is_announced else candidates == [call.conversation]
            return is_possible and os.fsdecode(view.edit.path) in call.paths

        self._give(call, is_its_own, f"the end of a tool of session {call.conversation} was reported")

    def note_not_run(self, call: AgentCall, open_calls: Iterable[AgentCall]) -> None:
        """Give to a conversation what was left open because of a call that did not run. Raises as `Journal.commit`.

        That is what was found while another call of the conversation ran for certain, as is known by now.
        """
        others = [other for other in open_calls if other.conversation == call.conversation and other.is_known_to_run]
        ran = [CallSpan(other.began * 1000, MAX_INT, 0, other.paths) for other in others if not other.is_over]
        ran += self._open.spans(call.conversation)

        def is_of_another(view: EditView) -> bool:
            path, found = os.fsdecode(view.edit.path), view.edit.time * 1000
            is_alone = view.edit.notes.get(CANDIDATES, "") == call.conversation
            return is_alone and any(span.has_run(path, found) for span in ran)

        self._give(call, is_of_another, f"a tool of session {call.conversation} did not run")

    def _give(self, call: AgentCall, is_meant: Callable[[EditView], bool], reason: str) -> None:
        """Give to the conversation of a call what is meant of that which was left open because of its awaited end."""
        if call.doubt != END_AWAITED:
            return

        def was_left_open(view: EditView) -> bool:
            is_open = view.edit.origin is Origin.UNATTRIBUTED and view.is_unattributed
            return is_open and view.edit.notes.get(WHY) == END_AWAITED and is_meant(view)

        since = call.began if call.is_announced else self.earliest_beginning(call)
        self._scan.reattribute(since, was_left_open, call.conversation, reason)


def starts_of(kept: Mapping[str, object]) -> dict[str, object]:
    """Return when each subagent began, from what is kept of a conversation."""
    starts = kept.get("starts")
    return starts if isinstance(starts, dict) else {}
