"""Clients: what a server remembers of each one that it serves, and which of them a request is from."""

import math
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final

from mcptools.model.session import Session

__all__ = ["Client", "Clients"]

_MOST: Final = 1000
"""Clients that are remembered; who is forgotten for another says `Clients`."""

_LONG: Final = 30 * 60.0
"""Seconds without a word after which a client may be gone: where it has a session, the SDK ends that then."""


@dataclass(slots=True, eq=False)
class Client:
    """One client: its session, its roots as far as they are known, and which addresses it wants to hear of."""

    session: Session
    roots: tuple[str, ...] | None = None  # addresses; None: to be asked for
    scope: tuple[str, ...] | None = None
    """The roots as last told, for what can't ask for them; (): it has none; None: not known: it is shown none."""
    places: dict[str, str] = field(default_factory=dict)
    """Where the roots were when they were first looked for, by address."""
    subscribed: set[str] = field(default_factory=set)
    streams: int = 0  # on which it hears what is recorded
    tell: Callable[[str | None], Awaitable[None]] | None = None
    """Tells it that an address reads anew (None: that there is something new); None: there was nothing to tell yet."""
    pending_notifications: dict[str | None, None] = field(default_factory=dict)
    """What it is still to be told, in this order."""
    is_being_told: bool = False
    last_seen_at: float = 0.0  # in seconds of a clock
    _changes: int = 0  # how often the roots have changed
    _asked_at: int = -1  # how often they had when they were last asked for

    @property
    def worth(self) -> int:
        """Return how much would be lost if it were forgotten."""
        return max(self.session.worth, 2 * self.listens)

    @property
    def listens(self) -> bool:
        """Return whether it wants to hear of what is recorded."""
        return bool(self.subscribed or self.streams)

    def is_inactive(self, now: float) -> bool:
        """Return whether it was not heard for long. `now`: by the clock by which it was heard."""
        return now - self.last_seen_at >= _LONG

    def claim(self, now: float) -> int:
        """Return how good its claim to a place is; 0: it may be gone, 1: it has nothing to lose."""
        # Who listens is there, however silent: otherwise its session, or the stream, would have ended.
        return 0 if self.is_inactive(now) and not self.listens else 1 + self.worth

    def asking_for_roots(self) -> None:
        """Note that the roots are being asked for."""
        self._asked_at = self._changes

    def learn_roots(self, roots: tuple[str, ...], *, lasting: bool) -> None:
        """Note the answer, unless the roots have changed meanwhile. `lasting`: the client says when they change."""
        if self._asked_at == self._changes:
            self.scope = roots
            self.places = {address: self.places[address] for address in roots if address in self.places}
            if lasting:
                self.roots = roots

    def forget_roots(self) -> None:
        """Note that the roots have changed."""
        self._changes += 1
        self.roots = self.scope = None


class Clients:
    """The clients of one server.

    Whose session ends is forgotten. Where there are too many all the same, whoever was not heard for long makes room
    first, and then who has the least to lose: whoever calls itself something else each time takes no place from those
    who have done anything, unless it does so too. Of equals that is who was not heard the longest.
    """

    def __init__(self, *, require_read: bool, clock: Callable[[], float] = time.monotonic, most: int = _MOST) -> None:
        """`clock`: counts seconds. `most`: how many are remembered."""
        self._most = most
        self._require_read = require_read
        self._clock = clock
        self._clients: OrderedDict[str, Client] = OrderedDict()
        self._current: ContextVar[Client] = ContextVar("client")

    def note_request(self, key: str) -> bool:
        """Note whom the message is from that is being answered. Return whether it was not known."""
        client = self._clients.get(key)
        is_new = client is None
        if client is None:
            if len(self._clients) >= self._most:
                del self._clients[self._first_to_go()]
            client = self._clients[key] = Client(Session(require_read=self._require_read))
        client.last_seen_at = self._clock()
        self._clients.move_to_end(key)
        self._current.set(client)
        return is_new

    def _first_to_go(self) -> str:
        """Return whose claim to a place is the least; of equals, who was not heard the longest."""
        now, least, found = self._clock(), math.inf, ""
        for key, client in self._clients.items():  # in the order in which they were last heard
            claim = client.claim(now)
            if claim < least:
                least, found = claim, key
            if least <= (0 if client.is_inactive(now) else 1):
                break  # nobody behind has less
        return found

    def ended(self, key: str) -> None:
        """Forget a client, whose session is over."""
        self._clients.pop(key, None)

    def subscribers(self) -> list[Client]:
        """Return those who have subscribed to something."""
        return [client for client in self._clients.values() if client.subscribed]

    def current(self) -> Client:
        """Return whom the message is from that is being answered."""
        return self._current.get()
