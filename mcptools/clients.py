"""Clients: what a server remembers of each one that it serves, and which of them a request is from."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final

from mcptools.session import Session

__all__ = ["Client", "Clients"]

_MOST: Final = 1000
"""Clients that are remembered: of those with the least to lose, those that were heard last."""


@dataclass(slots=True, eq=False)
class Client:
    """One client: its session, its roots as far as they are known, and which addresses it wants to hear of."""

    session: Session
    roots: tuple[str, ...] | None = None  # addresses; None: to be asked for
    scope: tuple[str, ...] | None = None
    """The roots as last told, for what can't ask for them; (): it has none; None: not known: it is shown none."""
    subscribed: set[str] = field(default_factory=set)
    tell: Callable[[str | None], Awaitable[None]] | None = None
    """Tells it of what it has subscribed to (None: that there is something new); None: it never subscribed."""
    _changes: int = 0  # how often the roots have changed
    _asked_at: int = -1  # how often they had when they were last asked for

    @property
    def worth(self) -> int:
        """Return how much would be lost if it were forgotten."""
        return max(self.session.worth, 2 * bool(self.subscribed))

    def asking_for_roots(self) -> None:
        """Note that the roots are being asked for."""
        self._asked_at = self._changes

    def learn_roots(self, roots: tuple[str, ...], *, lasting: bool) -> None:
        """Note the answer, unless the roots have changed meanwhile. `lasting`: the client says when they change."""
        if self._asked_at == self._changes:
            self.scope = roots
            if lasting:
                self.roots = roots

    def forget_roots(self) -> None:
        """Note that the roots have changed."""
        self._changes += 1
        self.roots = self.scope = None


class Clients:
    """The clients of one server."""

    def __init__(self, *, require_read: bool) -> None:
        self._require_read = require_read
        self._clients: OrderedDict[str, Client] = OrderedDict()
        self._current: ContextVar[Client] = ContextVar("client")

    def heard(self, key: str) -> None:
        """Note whom the message is from that is being answered."""
        client = self._clients.get(key)
        if client is None:
            if len(self._clients) >= _MOST:
                # Whoever calls itself something else each time takes no place from those who have done anything.
                del self._clients[min(self._clients, key=lambda other: self._clients[other].worth)]
            client = self._clients[key] = Client(Session(require_read=self._require_read))
        self._clients.move_to_end(key)
        self._current.set(client)

    def subscribers(self) -> list[Client]:
        """Return those who have subscribed to something."""
        return [client for client in self._clients.values() if client.subscribed]

    def current(self) -> Client:
        """Return whom the message is from that is being answered."""
        return self._current.get()
