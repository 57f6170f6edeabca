"""Issue and check the one-time tickets with which the review in a client's window decides.

Only a person decides, and a model can call tools, so a tool call alone must not decide. A ticket is random and is used
once. It is valid in its session, for the changes that were shown with it, and for half a day. It is sent in the `_meta`
of a result, which clients give to the window and not to the model. Decision 40 says which attacks this prevents, and
which it doesn't.
"""

import hmac
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Final

from mcptools.model.failures import Failure, FailureKind

__all__ = ["Shown", "Tickets"]

_BYTES: Final = 32
"""Number of random bytes in a ticket."""

_SECONDS: Final = 12 * 3600.0
"""Seconds for which a ticket is valid."""

_HINT: Final = (
    "Only a person decides on edits: in the review that the client shows, or with `cas web`, `cas review`, "
    "`cas accept` or `cas reject`. In the window: ask the agent to show the review again."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The changes that a window shows, on which its ticket may decide."""

    root: str  # of the workspace
    path: str  # only changes of this file, or below this folder, named as in the workspace; "": of all
    turn: int  # only changes of this turn; 0: of all
    keys: frozenset[str] = frozenset()  # of the changes that are shown whole, in hex
    decisions: tuple[int, ...] = ()  # that were made in the window, oldest first
    asked: str = ""  # what the window asked last before a decision; "": nothing


class Tickets:
    """The ticket of one session. There is one at a time: a new one replaces it. Safe to use from several threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock`: returns seconds."""
        self._clock: Final = clock
        self._lock: Final = Lock()
        self._current: tuple[str, float, Shown] | None = None  # ticket, time, what it covers; None: no valid one

    def issue(self, shown: Shown) -> str:
        """Return a new ticket for what the window shows; it replaces the earlier one."""
        ticket = secrets.token_urlsafe(_BYTES)
        with self._lock:
            self._current = ticket, self._clock(), shown
        return ticket

    def redeem(self, ticket: str) -> Shown:
        """Use up a ticket, and return what was shown with it.

        Raises Failure for any other text; the session's valid ticket then stays valid.
        """
        if not ticket:
            raise _refusal("This call has no ticket of a review that a person sees; nothing was decided")
        with self._lock:
            if self._current is not None:
                valid, made_at, shown = self._current
                if hmac.compare_digest(ticket.encode(errors="backslashreplace"), valid.encode()):
                    self._current = None
                    if self._clock() - made_at < _SECONDS:
                        return shown
                    raise _refusal("This review was shown more than 12 hours ago; nothing was decided")
        raise _refusal("This review was replaced by a newer one, or its ticket is not valid; nothing was decided")


def _refusal(message: str) -> Failure:
    return Failure(FailureKind.NOT_APPROVED, message, hint=_HINT)
