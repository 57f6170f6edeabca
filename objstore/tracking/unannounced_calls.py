"""Make changes unattributed that were made during agents' calls whose beginning no hook reported.

While such a call runs, nothing says that an agent works, so that scans take its changes for a person's.

It is a module of its own because `hook_sessions`, which uses it, is long, and only sees that a report is missing.
"""

from collections.abc import Mapping
from typing import Final

from objstore.calls.open_calls import FORGOTTEN_AFTER, AgentCall, OpenCalls, sanitized_text
from objstore.clock import now
from objstore.transaction.journal import Journal

__all__ = ["UnannouncedCalls", "starts_of"]


class UnannouncedCalls:
    """The calls of one workspace of which the first report is that they ended or run on."""

    def __init__(self, journal: Journal, open_calls: OpenCalls) -> None:
        """Take the files of the open calls. The caller holds their lock."""
        self._journal: Final = journal
        self._open: Final = open_calls

    def earliest_beginning(self, call: AgentCall, ended: int = 0) -> int:
        """Return when a call can have begun at the earliest, if nothing reported its beginning (microseconds).

        A call of the main agent began after the newest prompt or start of the session, one of a subagent after that
        began, and none before the time after which calls are forgotten. `ended`: when an end was last reported in the
        same words, if the call has no id: a client may report an end twice.
        """
        kept = self._open.session(call.conversation)
        known = starts_of(kept).get(call.agent) if call.agent else kept.get("prompted")
        return max(now() - FORGOTTEN_AFTER, known if isinstance(known, int) else 0, 0 if call.is_named else ended)

    def note(self, name: str, call: AgentCall, since: int) -> None:
        """Leave open whose the changes are that were taken for a person's since a time. Raises as `Journal.commit`.

        Until its own changes are recorded, the call is open: another scan may find them in the meantime.
        """
        from objstore.review.claim import leave_unattributed

        self._open.put(name, call)
        reason = f"the beginning of a tool of session {call.conversation} was not reported"
        leave_unattributed(self._journal, since, "hook", sanitized_text(reason))


def starts_of(kept: Mapping[str, object]) -> dict[str, object]:
    """Return when each subagent began, from what is kept of a conversation."""
    starts = kept.get("starts")
    return starts if isinstance(starts, dict) else {}
