"""Remember each client of a server, and which client the current request is from."""

import math
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final

from mcptools.model.read_versions import KeptBytes
from mcptools.model.session import Memory, Session, Turns
from mcptools.server.request_client import Identity

__all__ = ["Client", "Clients"]

_MOST: Final = 1000
"""Clients that are remembered at most. `Clients` says which one is forgotten for a new one."""

_LONG: Final = 30 * 60.0
"""Seconds without a message after which a client counts as inactive; the SDK ends a session after the same time."""


@dataclass(slots=True, eq=False)
class Client:
    """One client: its session, its roots as far as they are known, and its subscriptions."""

    session: Session
    roots: tuple[str, ...] | None = None  # addresses; None: the client must be asked
    scope: tuple[str, ...] | None = None
    """The roots last received, for messages that can't ask for them; (): it has none; None: unknown, so it is shown
    nothing."""
    places: dict[str, str] = field(default_factory=dict)
    """The real path of each root when it was first resolved, by address."""
    subscribed: set[str] = field(default_factory=set)
    streams: int = 0  # streams on which it gets notifications
    notify: Callable[[str | None], Awaitable[None]] | None = None
    """Notifies the client that a resource has changed (None: that the list has); None: it can't be notified yet."""
    pending_notifications: dict[str | None, None] = field(default_factory=dict)
    """The notifications that have not been sent yet, in order."""
    is_being_notified: bool = False
    last_seen_at: float = 0.0  # seconds, by the clock of `Clients`
    _changes: int = 0  # how often the roots have changed
    _asked_at: int = -1  # the value of `_changes` when they were last asked for

    @property
    def worth(self) -> int:
        """Return what would be lost if the client were forgotten, as Session.worth; 2 for a client that listens."""
        return max(self.session.worth, 2 * self.listens)

    @property
    def listens(self) -> bool:
        """Return whether the client gets notifications, on a stream or by a subscription."""
        return bool(self.subscribed or self.streams)

    def is_inactive(self, now: float) -> bool:
        """Return whether the client has sent nothing for long. `now`: by the clock of `last_seen_at`."""
        return now - self.last_seen_at >= _LONG

    def claim(self, now: float) -> int:
        """Return the priority of keeping the client; 0: it may be gone, 1: it has nothing to lose."""
        # A client that listens is connected, however silent: otherwise its session or stream would have ended.
        return 0 if self.is_inactive(now) and not self.listens else 1 + self.worth

    def asking_for_roots(self) -> None:
        """Note that the roots are being asked for."""
        self._asked_at = self._changes

    def learn_roots(self, roots: tuple[str, ...], *, lasting: bool) -> None:
        """Note the roots, unless they have changed since they were asked for.

        `lasting`: the client reports when they change, so they need not be asked for again.
        """
        if self._asked_at == self._changes:
            self.scope = roots
            if self.session.is_kept:
                self.places = {address: self.places[address] for address in roots if address in self.places}
            if lasting:
                self.roots = roots

    def forget_roots(self) -> None:
        """Note that the roots have changed."""
        self._changes += 1
        self.roots = self.scope = None


class Clients:
    """The clients of one server.

    A message without an identity is from a client of its own, which is not remembered: nothing says which earlier
    messages that client has sent. A client is forgotten when its session ends. If there are too many all the same,
    inactive clients are forgotten first, and then those with the least to lose, so that a program which uses a new
    address each time displaces no client that has done something, unless it does something too. Among equals, the one
    that was silent the longest goes.
    """

    def __init__(self, *, require_read: bool, clock: Callable[[], float] = time.monotonic, most: int = _MOST) -> None:
        """`clock`: returns seconds. `most`: how many clients are remembered."""
        self._most = most
        self._require_read = require_read
        self._clock = clock
        self._clients: OrderedDict[str, Client] = OrderedDict()
        self._kept: Final = KeptBytes()
        self._unidentified_turns: Final = Turns()
        self._unidentified_places: Final[dict[str, str]] = {}
        self._current: ContextVar[Client] = ContextVar("client")

    def note_request(self, identity: Identity | None) -> bool:
        """Note which client the current message is from (None: unknown). Return whether a client is new here."""
        if identity is None:
            self._current.set(self._unidentified())
            return False
        client = self._clients.get(identity.key)
        is_new = client is None
        if client is None:
            if len(self._clients) >= self._most:
                del self._clients[self._first_to_go()]
            memory = Memory.ALL if identity.is_beginning else Memory.SINCE_LATELY
            client = Client(Session(require_read=self._require_read, memory=memory, kept=self._kept))
            self._clients[identity.key] = client
        client.last_seen_at = self._clock()
        self._clients.move_to_end(identity.key)
        self._current.set(client)
        return is_new

    def _unidentified(self) -> Client:
        """Return a client for one message. With others it shares what depends on no client: turns, places of roots."""
        while len(self._unidentified_places) > self._most:
            self._unidentified_places.pop(next(iter(self._unidentified_places)), None)
        session = Session(require_read=self._require_read, memory=Memory.NOTHING, turns=self._unidentified_turns)
        return Client(session, places=self._unidentified_places, last_seen_at=self._clock())

    def _first_to_go(self) -> str:
        """Return the client with the lowest claim; among equals, the one that was silent the longest."""
        now, least, found = self._clock(), math.inf, ""
        for key, client in self._clients.items():  # in the order of their last messages
            claim = client.claim(now)
            if claim < least:
                least, found = claim, key
            if least <= (0 if client.is_inactive(now) else 1):
                break  # no later client can have a lower claim
        return found

    def ended(self, key: str) -> None:
        """Forget a client whose session has ended."""
        self._clients.pop(key, None)

    def subscribers(self) -> list[Client]:
        """Return the clients that have subscribed to an address."""
        return [client for client in self._clients.values() if client.subscribed]

    def current(self) -> Client:
        """Return the client that the current message is from."""
        return self._current.get()
