"""Attribute changes that were found on disk to the open calls of agents: the one place that knows the rule.

A change of a file that an open call has named is attributed to that call. Other changes are attributed only while all
open calls that may touch any file are of one conversation. A change that some call may have made, but no call is known
to have made, is unattributed: it needs a review, because it may be an agent's. Only what no call can have made is
external, and the person's.

A call that a person was asked about may be waiting, refused or running: that is unknown until it ends. Until then it
may have made a change, but none is attributed to it, and changes of files that only it has named wait for its end. The
same holds of a call that runs on in the background after its turn.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Final

from objstore.calls.open_calls import AgentCall, OpenCalls
from objstore.model.basic_types import MAX_INT, Origin
from objstore.model.results import EXTERNAL_CALL, Attributor, CallInfo
from objstore.transaction.journal import Journal

__all__ = ["CANDIDATES", "UNKNOWN_TIME", "CallAttribution", "whose_if_found"]

CANDIDATES: Final = "candidates"
"""The note of an unattributed edit: the sessions that may have made it, one in a line."""

UNKNOWN_TIME: Final = MAX_INT
"""A tolerance that makes every moment possible: of a deletion whose time nothing shows."""

_MOST_CANDIDATES: Final = 100
"""Sessions that are named for an unattributed edit."""


class CallAttribution:
    """The open calls to which a change can be attributed."""

    def __init__(self, open_calls: Iterable[AgentCall]) -> None:
        """Take the open calls."""
        calls = list(open_calls)
        self._anywhere: Final = [call for call in calls if call.paths is None]
        self._named: Final[dict[str, list[AgentCall]]] = {}
        for call in calls:
            for path in call.paths or ():
                self._named.setdefault(path, []).append(call)

    @property
    def named(self) -> list[str]:
        """The paths that calls have named."""
        return list(self._named)

    def has_no_confirmed_call(self, path: str) -> bool:
        """Return whether every call that named the path may still be refused by a person."""
        return not any(call.is_known_to_run for call in self._named.get(path, ()))

    def of(self, path: str, moment: int, tick: int = 0) -> CallInfo:
        """Return the call that a change of this file at a moment is attributed to. Units as in `AgentCall.ran_at`."""
        callers = [call for call in self._named.get(path, ()) if call.ran_at(moment, tick)]
        if not callers:
            late = [call for call in self._named.get(path, ()) if call.may_have_run_at(moment, tick)]
            return self.of_others(_unattributed(late) if late else EXTERNAL_CALL, moment, tick)
        return _only(callers) or _unattributed([*callers, *self._others(moment, tick)])

    def of_others(self, otherwise: CallInfo, moment: int, tick: int = 0) -> CallInfo:
        """Return the call that a change of an unnamed file is attributed to (`otherwise`: no call can have made it)."""
        callers = self._others(moment, tick)
        if callers:
            return _only(callers) or _unattributed(callers)
        late = [call for call in self._anywhere if call.may_have_run_at(moment, tick)]
        return _unattributed(late) if late else otherwise

    def outside(self, path: str, moment: int, tick: int = 0) -> CallInfo:
        """Return whose a change is that is recorded together with a decision: no call's, but perhaps an agent's."""
        callers = [*self._named.get(path, ()), *self._anywhere]
        callers = [call for call in callers if call.may_have_run_at(moment, tick)]
        return _unattributed(callers) if callers else EXTERNAL_CALL

    def _others(self, moment: int, tick: int) -> list[AgentCall]:
        return [call for call in self._anywhere if call.ran_at(moment, tick)]


def _only(callers: Sequence[AgentCall]) -> CallInfo | None:
    """Return the newest running call, if all calls are of one conversation; else None.

    `callers`: every call that may have made the change.
    """
    running = [call for call in callers if call.is_known_to_run]
    if not running or len({call.conversation for call in callers}) != 1:
        return None
    return max(running, key=lambda call: call.began).info


def _unattributed(callers: Iterable[AgentCall]) -> CallInfo:
    """Return the attribution of a change that one of these calls may have made."""
    sessions = sorted({call.conversation for call in callers})
    return CallInfo(tool="", origin=Origin.UNATTRIBUTED, notes={CANDIDATES: "\n".join(sessions[:_MOST_CANDIDATES])})


def whose_if_found(journal: Journal) -> Attributor:
    """Return whose a change is that a scan finds which is no tool's own.

    The open calls are read at the first change. The caller holds the writer lock then and has read the files: a call
    that began later can't have made what was found, and one that ends meanwhile waits for the lock.
    """
    attribution = cache(lambda: CallAttribution(OpenCalls(journal).calls().values()))
    return lambda path, moment, tick: attribution().of(path, moment, tick)
