"""Remember what was decided since the review began: a decided change is checked off in the queue, not gone from it.

A review begins when something new awaits it after nothing did, or with the server. Whoever decided, and through which
surface, the queue sees that a change is gone and how its hunks are decided. All of this is in memory only.
"""

import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, TypeAlias

from objstore import Status, Unit, value

__all__ = ["ListedChange", "ReviewProgress", "Statuses", "Stop", "in_order"]

_MOST_DECIDED: Final = 20_000

Stop = tuple[int, int]
"""A turn in the queue: its number and its session's. Edits without a turn have 0 as the number."""

Statuses: TypeAlias = Callable[[Collection[Unit]], Mapping[Unit, Status]]
"""Returns the status of each of some hunks, as far as they are there."""


@value
class ListedChange:
    """A change as the queue lists it."""

    stop: Stop  # the first turn that it is part of
    document: int
    path: str
    line: int  # in the current text
    added: int  # lines
    removed: int
    units: tuple[Unit, ...]


class ReviewProgress:
    """The changes that await review and those that were decided. Safe to use from several threads."""

    def __init__(self) -> None:
        """Begin with nothing pending and nothing decided."""
        self._lock: Final = threading.Lock()
        self._pending: dict[bytes, ListedChange] = {}
        self._decided: dict[bytes, tuple[ListedChange, Status]] = {}
        self._places: dict[bytes, int] = {}

    def update(
        self,
        pending: Mapping[bytes, ListedChange],
        unread: Collection[int],
        statuses: Statuses,
    ) -> dict[bytes, ListedChange]:
        """Take the pending changes as they are now, and return those that were last known of `unread`.

        `unread`: documents whose changes are not known now. `statuses`: returns those of hunks that are there.
        """
        with self._lock:
            back = {unit for change in pending.values() for unit in change.units}
            if pending and not self._pending and not any(back.intersection(units) for units in self._decided_units()):
                self._decided = {}  # what was decided and is undone is no new review
            kept = {key: change for key, change in self._pending.items() if change.document in unread}
            for key, change in self._pending.items():
                if key not in pending and key not in kept:
                    verdict = _verdict(change.units, statuses)
                    if verdict is not None:
                        self._decided[key] = change, verdict
            self._pending = {**kept, **pending}
            self._decided = {
                key: (change, verdict)
                for key, (change, verdict) in list(self._decided.items())[-_MOST_DECIDED:]
                if back.isdisjoint(change.units)
            }
            self._places = self._numbered()
            return kept

    @property
    def decided(self) -> int:
        """Return how many changes were decided."""
        return len(self._decided)

    def place(self, key: bytes) -> int:
        """Return the number of a change in the order of the review, from 1, decided ones counted; 0: not known."""
        return self._places.get(key, 0)

    def decisions(self) -> list[tuple[ListedChange, Status]]:
        """Return the changes that were decided, each with how."""
        with self._lock:
            return list(self._decided.values())

    def _decided_units(self) -> Iterable[tuple[Unit, ...]]:
        return (change.units for change, _ in self._decided.values())

    def _numbered(self) -> dict[bytes, int]:
        """Return the number of each change, by turn, path and line."""
        every = {key: change for key, (change, _) in self._decided.items()} | self._pending
        ordered = sorted(every, key=lambda key: (in_order(every[key].stop), every[key].path, every[key].line))
        return {key: number for number, key in enumerate(ordered, 1)}


def in_order(stop: Stop) -> tuple[bool, Stop]:
    """Return what turns are sorted by: those without a number come last."""
    return not stop[0], stop


def _verdict(units: Collection[Unit], statuses: Statuses) -> Status | None:
    """Return how a change is decided, given its hunks; None: it is not."""
    known = statuses(units)
    found = {known.get(unit) for unit in units}
    if not found or not found <= {Status.ACCEPTED, Status.REJECTED}:
        return None
    return Status.REJECTED if Status.REJECTED in found else Status.ACCEPTED
