"""Traces: what a file held that nobody kept, by taking back what mcpdiff says was made of it since.

Nothing is believed: each step back counts only if its SHA-256 is the recorded one.
"""

from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import Final

from objstore.mcpdiff import Entry, origins_of

__all__ = ["Traces"]


class Traces:
    """The diffs of a history, by the states from which they lead."""

    def __init__(
        self,
        entries: Iterable[Entry],
        held: Callable[[str | None], bytes | None],
        diff: Callable[[Entry], bytes | None],
    ) -> None:
        """`held`: the bytes that have a SHA-256, where they are kept; `diff`: the diff of an entry, where it is."""
        self._held: Final = held
        self._diff: Final = diff
        self._led_on: Final[dict[str | None, list[Entry]]] = {}
        self._nowhere: Final[set[str | None]] = set()  # states since which none is held
        for entry in entries:
            if None not in {entry.before, entry.after}:
                self._led_on.setdefault(entry.before, []).append(entry)

    def content(self, digest: str) -> bytes | None:
        """Return the bytes that have a SHA-256, told by what was made of them; None: no diffs lead back to them."""
        while (way := self._way_from(digest)) is not None:
            held, steps = way
            for entry in steps:
                before = self._before(entry, held)
                if before is None:
                    self._led_on[entry.before].remove(entry)  # and there may be another way
                    break
                held = before
            else:
                return held
        return None

    def _way_from(self, digest: str) -> tuple[bytes, list[Entry]] | None:
        """Return the nearest state that is held of those since, and the entries that led there, the last one first."""
        came: dict[str | None, Entry] = {}  # by the state that it led to
        ahead: list[str | None] = [] if digest in self._nowhere else [digest]
        for state in ahead:  # which grows
            held = self._held(state)
            if held is not None:
                return held, _steps(digest, state, came)
            for entry in self._led_on.get(state, ()):
                if entry.after != digest and entry.after not in came and entry.after not in self._nowhere:
                    came[entry.after] = entry
                    ahead.append(entry.after)
        self._nowhere.update(ahead)
        return None

    def _before(self, entry: Entry, after: bytes) -> bytes | None:
        """Return what a file held before an entry that made it `after`; None: its diff does not say."""
        diff = self._diff(entry)
        origins = () if diff is None else origins_of(after, diff)
        return next((made for made in origins if sha256(made).hexdigest() == entry.before), None)


def _steps(first: str, last: str | None, came: dict[str | None, Entry]) -> list[Entry]:
    """Return the entries that led from one state to another, the last one first."""
    steps: list[Entry] = []
    while last != first:
        steps.append(came[last])
        last = came[last].before
    return steps
