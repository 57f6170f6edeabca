"""Claims: whose a change may be that is found while calls of agents are open.

Whoever named a file made its change. Of other changes it is known who made them only while calls of a single
conversation are open that may touch any file; in all other cases they count as external.

A call that a person was asked about may be waiting, or may never run, or run already: nobody tells which until it is
over. Until then nothing is its doing, what it alone has named is left to its end, and what else is found beside it may
be its doing, so it is no other conversation's.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from objstore.opencalls import AgentCall
from objstore.outcomes import NOBODY, CallInfo

__all__ = ["Claims"]


class Claims:
    """What some open calls may have done."""

    def __init__(self, standing: Iterable[AgentCall]) -> None:
        """Sort them out."""
        calls = list(standing)
        self._anywhere: Final = [call for call in calls if call.paths is None]
        self._named: Final[dict[str, list[AgentCall]]] = {}
        for call in calls:
            for path in call.paths or ():
                self._named.setdefault(path, []).append(call)

    @property
    def named(self) -> list[str]:
        """Return every path that a call has named."""
        return list(self._named)

    def is_waited_for(self, path: str) -> bool:
        """Return whether nobody has named the path but calls of which it isn't known that they run."""
        return not any(call.may_claim for call in self._named.get(path, ()))

    def of(self, path: str, moment: int, tick: int = 0) -> CallInfo:
        """Return whose a change of the file is that was made at a moment (as `AgentCall.ran_at` has it)."""
        callers = [call for call in self._named.get(path, ()) if call.ran_at(moment, tick)]
        return _only(callers) if callers else self.of_others(NOBODY, moment, tick)

    def of_others(self, otherwise: CallInfo, moment: int, tick: int = 0) -> CallInfo:
        """Return whose a change is of a file that nobody has named; `otherwise`: where no call may have made it."""
        callers = [call for call in self._anywhere if call.ran_at(moment, tick)]
        return _only(callers) if callers else otherwise


def _only(callers: Sequence[AgentCall]) -> CallInfo:
    """Return whose a change is that any of the calls may have made: the newest's that runs, if all are of one agent."""
    running = [call for call in callers if call.may_claim]
    if not running or len({call.conversation for call in callers}) != 1:
        return NOBODY
    return max(running, key=lambda call: call.began).info
