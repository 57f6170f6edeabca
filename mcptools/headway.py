"""Headway: a call's work begins when its line was read, not when the SDK has come from the line to the tool.

Before a tool gets its arguments, the SDK looks at the message around them several times, which takes a fifth as long as
an edit. Of a call that differs from one which it has let through in its number and arguments only, it can say nothing
new. So the work of such a call begins at once. The SDK gets the message with it, when it is over or when something else
comes in, and so the tool gets work that was begun.

No message goes ahead of another: after one that is no call, the next call of each kind goes the SDK's way, for the
message may have changed what a call means, and while the SDK has a call in hand, so does every other.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from mcptools.carrying import Begun

__all__ = ["Again", "Coming", "Headway"]

Again: TypeAlias = Callable[[int | str, Mapping[str, Any]], Begun[Any] | None]
"""Begins another call of the same kind, with that number and those arguments. None: it has to go the SDK's way."""

_Kind: TypeAlias = tuple[str, str]

_CALL: Final = "tools/call"
_PARTS: Final = frozenset({"name", "arguments", "_meta"})
_MOST: Final = 100
"""Kinds of calls that are known at once: a client may say something else around each."""


class Coming:
    """A call on its way to its tool. It rides on the message: a number may be used twice, and 1 beside "1"."""

    def __init__(self, number: int | str, kind: _Kind | None, begun: Begun[Any] | None) -> None:
        """Say what is known of it. `kind`: None: others like it are the SDK's. `begun`: its work; None: not yet."""
        self.number: Final = number
        self.kind = kind
        self.begun: Final = begun


class Headway:
    """Which calls of one client need not wait for the SDK. Of one event loop."""

    def __init__(self) -> None:
        self._known: Final[dict[_Kind, Again]] = {}  # kinds that the SDK has let through
        self._in_hand: Final[set[Coming]] = set()  # calls that it has, and that have not begun
        self._ahead: Final[set[Coming]] = set()  # calls that have begun, and that it has not let through yet

    @property
    def is_ahead(self) -> bool:
        """Return whether there is work of a call whose tool does not know of it yet."""
        return bool(self._ahead)

    def came(self, method: str, params: Mapping[str, Any] | None, number: int | str | None) -> Coming | None:
        """Note a message from the client, which the SDK is to get, with what this returns; None: it is no call.

        `method`: "" of an answer. `number`: None of what is no request.
        """
        params = params or {}
        if method != _CALL or number is None:
            self._known.clear()
            for call in self._in_hand:
                call.kind = None
            return None
        kind, begun = _kind(params), None
        if kind in self._known and not self._in_hand:
            begun = self._known[kind](number, params.get("arguments", {}))
        call = Coming(number, kind, begun)
        (self._in_hand if begun is None else self._ahead).add(call)
        return call

    def let_through(self, call: Coming | None, again: Again | None = None) -> None:
        """Note that the SDK has let a call through to its tool; None: it did not come on standard streams.

        `again`: None: its work had begun, or the SDK is to look at others like it.
        """
        if call in self._in_hand and call.kind is not None and again is not None:
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known[call.kind] = again
        self._drop(lambda other: other is call)

    def over(self, number: int | str | None) -> None:
        """Note that the SDK is done with a call, whether or not it has let it through."""
        self._drop(lambda call: call.number == number)

    def _drop(self, is_done: Callable[[Coming], bool]) -> None:
        for calls in (self._in_hand, self._ahead):
            calls.difference_update([call for call in calls if is_done(call)])


def _kind(params: Mapping[str, Any]) -> _Kind | None:
    """Return what the SDK looks at of a call but its number and arguments; None: there is something unusual in it."""
    name, meta = params.get("name"), params.get("_meta", {})
    if not _PARTS.issuperset(params) or not isinstance(name, str) or not isinstance(meta, dict):
        return None
    if not isinstance(params.get("arguments", {}), dict) or "progressToken" in meta:
        return None
    return name, repr(meta)  # 1, 1.0 and True are equal, and are not the same to the SDK
