"""Choose the changes that a review shows, and their order."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from objstore import Unit, value

if TYPE_CHECKING:
    from objstore import DocumentId, NetChange, NetFile

__all__ = ["ChangeQueue", "Stop"]

MOST_MISSES: Final = 2
"""Number of files that turn out to be decided, as after a decision on many, before all are compared at once."""


@value
class Stop:
    """One step of a review: changes of a file that are decided together, or its hunks without a net effect."""

    file: "NetFile"  # with all its changes
    changes: "tuple[NetChange, ...]"  # (): the stop is about the file's pending hunks without a net effect
    is_last: bool  # whether the file has no other stop: then hunks without a net effect are decided with this one

    @property
    def key(self) -> tuple[Unit, ...]:
        """Return the units that make it this stop, ascending."""
        shown = {unit for change in self.changes for unit in change.units}
        return tuple(sorted(shown or {*self.file.cancelled, *self.file.kept_on}))

    @property
    def units(self) -> tuple[Unit, ...]:
        """Return the units that a decision on it concerns, ascending."""
        return tuple(sorted({*self.key, *self.file.cancelled})) if self.is_last else self.key

    @property
    def shown(self) -> "NetFile":
        """Return the file with only what is decided here."""
        changes = tuple(
            replace(change, shares_with=tuple(other for other in range(len(self.changes)) if other != at))
            for at, change in enumerate(self.changes)
        )
        others = tuple(change for change in self.file.changes if change not in self.changes)
        rest = (self.file.cancelled, self.file.taken_out) if self.is_last else ((), ())
        left_out = (*self.file.left_out, *others)
        return replace(self.file, changes=changes, left_out=left_out, cancelled=rest[0], taken_out=rest[1])


class ChangeQueue:
    """The changes to review, file by file. Those skipped in an earlier review come last.

    Each file is compared again before it is shown, since decisions and agents change what is pending.
    """

    def __init__(
        self, select: "Callable[[Collection[str]], list[NetFile]]", is_skipped: Callable[[Unit], bool]
    ) -> None:
        """Take the function that returns the files to review, of all paths or at some, and one for skipped units."""
        self._select: Final = select
        self._is_skipped: Final = is_skipped
        self._files: list[NetFile] = select(())
        self._at = 0  # index of the current file
        self._again = False  # whether changes skipped in an earlier review are being shown
        self._passed: list[tuple[Unit, ...]] = []  # keys of what was shown before, oldest first
        self._put_off: Final[set[Unit]] = set()  # in this review

    def position(self) -> tuple[int, int]:
        """Return the current file's position, from 1, and the number of files."""
        return self._at + 1, len(self._files)

    def next(self) -> Stop | None:
        """Go to the next change and return it (None: there is none left)."""
        is_fresh = False  # whether all files were compared again
        while True:
            stop = self._next(is_fresh=is_fresh)
            if stop is not None:
                return stop
            # Agents continue meanwhile; what was skipped in an earlier review comes after all else.
            if not is_fresh:
                self._reload()
                is_fresh = True
            elif self._again:
                return None
            else:
                self._again = True

    def leave(self, stop: Stop) -> None:
        """Note that a change was shown."""
        self._passed.append(stop.key)

    def put_off(self, units: Collection[Unit]) -> None:
        """Note that changes are not to be shown again in this review."""
        self._put_off.update(units)

    def back(self) -> Stop | None:
        """Go back to the change that was shown last and is still pending (None: there is none)."""
        while self._passed:
            stop = self.go(self._passed.pop())
            if stop is not None:
                return stop
        return None

    def go(self, units: Collection[Unit]) -> Stop | None:
        """Go to the first change that is made of any of the units, and return it (None: there is none)."""
        wanted = set(units)
        for at in self._from_here():
            if at == self._at or not wanted.isdisjoint(_units(self._files[at])):
                self._refresh(at)
                for stop in _stops(self._files[at]):
                    if not wanted.isdisjoint(stop.key):
                        self._at = at
                        self._put_off.difference_update(stop.key)
                        return stop
        return None

    def go_after_undo(self, units: Collection[Unit]) -> Stop | None:
        """Go as `go` does, after a decision was undone: it may have been on any file."""
        self._reload()
        return self.go(units)

    def find(self, fits: Callable[[Stop], bool], after: Stop) -> tuple[Stop, bool] | None:
        """Return the next change after `after` that fits, from the top again after the last (None: none).

        And whether the search continued from the top.
        """
        self._reload()
        stops = list(self._stops())
        keys = [stop.key for stop in stops]
        start = keys.index(after.key) + 1 if after.key in keys else 0
        found = (
            (stop, at >= len(stops) - start) for at, stop in enumerate(stops[start:] + stops[:start]) if fits(stop)
        )
        return next(found, None)

    def units(self, wanted: Callable[[Unit], bool]) -> list[Unit]:
        """Return the wanted units of all changes, and of those without a net effect."""
        self._reload()
        return [unit for file in self._files for unit in file.units if wanted(unit)]

    def all(self) -> list[Stop]:
        """Return everything that is left, as last compared."""
        return list(self._stops())

    def counts(self) -> tuple[int, int]:
        """Return how many changes are left, and in how many files; what has no net effect in a file is one more."""
        self._reload()
        return sum(len(stop.changes) or 1 for stop in self._stops()), len(self._files)

    # ---- inside

    def _stops(self) -> Iterator[Stop]:
        for file in self._files:
            yield from _stops(file)

    def _next(self, *, is_fresh: bool) -> Stop | None:
        misses = 0
        for at in self._from_here():
            if any(map(self._is_due, _stops(self._files[at]))):
                if not is_fresh:
                    self._refresh(at)
                stop = next(filter(self._is_due, _stops(self._files[at])), None)
                if stop is not None:
                    self._at = at
                    return stop
                misses += 1
                if misses > MOST_MISSES:
                    return None
        return None

    def _from_here(self) -> Iterator[int]:
        yield from range(self._at, len(self._files))
        yield from range(self._at)

    def _is_due(self, stop: Stop) -> bool:
        key = stop.key
        return not self._put_off.issuperset(key) and (self._again or not all(map(self._is_skipped, key)))

    def _refresh(self, at: int) -> None:
        """Compare one file again. It keeps its position when nothing is left of it."""
        old = self._files[at]
        found = (file for file in self._select({old.path, old.path_before}) if file.document == old.document)
        self._files[at] = next(found, replace(old, changes=(), cancelled=(), taken_out=(), kept_on=()))

    def _reload(self) -> None:
        """Compare all files again, and stay at the current one or where it would be."""
        current: tuple[str, DocumentId] | None = None
        if self._files:
            current = self._files[self._at].path, self._files[self._at].document
        self._files = self._select(())
        places = [(file.path, file.document) for file in self._files]
        behind = (at for at, place in enumerate(places) if current is not None and place >= current)
        self._at = next(behind, 0)


def _units(file: "NetFile") -> set[Unit]:
    return {*file.units, *file.kept_on}


def _stops(file: "NetFile") -> list[Stop]:
    """Return the changes of a file that are decided together, in their order; without any, what has no net effect."""
    groups: list[tuple[NetChange, ...]] = []
    taken: set[int] = set()
    for at, change in enumerate(file.changes):
        if at not in taken:
            places = sorted({at, *change.shares_with})
            taken.update(places)
            groups.append(tuple(file.changes[place] for place in places))
    if not groups:
        return [Stop(file=file, changes=(), is_last=True)] if file.cancelled or file.kept_on else []
    is_last = len(groups) == 1 and not file.left_out
    return [Stop(file=file, changes=group, is_last=is_last) for group in groups]
