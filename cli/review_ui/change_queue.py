"""Choose the changes that a review shows, and their order."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from objstore import Unit, value

if TYPE_CHECKING:
    from objstore import DocumentId, NetChange, NetFile

__all__ = ["ChangeQueue", "Stop", "stops_of"]

MOST_MISSES: Final = 2
"""Number of files that turn out to be decided, as after a decision on many, before all are compared at once."""


@value
class Stop:
    """One step of a review: changes of a file that are decided together, its hunks without a net effect, or a hunk."""

    file: "NetFile"  # with all its changes
    changes: "tuple[NetChange, ...]"  # (): the stop is about the file's pending hunks without a net effect
    is_last: bool  # whether the file has no other stop: then hunks without a net effect are decided with this one
    unit: Unit | None = None  # the only hunk of these changes that is shown and decided; None: all

    @property
    def whole(self) -> tuple[Unit, ...]:
        """Return the units of its changes, ascending."""
        shown = {unit for change in self.changes for unit in change.units}
        return tuple(sorted(shown or {*self.file.cancelled, *self.file.kept_on}))

    @property
    def hunks(self) -> tuple[Unit, ...]:
        """Return the units that it decides on when it is shown hunk by hunk, ascending."""
        return tuple(sorted({*self.whole, *self.file.cancelled})) if self.is_last else self.whole

    @property
    def key(self) -> tuple[Unit, ...]:
        """Return the units that make it this stop, ascending."""
        return self.whole if self.unit is None else (self.unit,)

    @property
    def units(self) -> tuple[Unit, ...]:
        """Return the units that a decision on it concerns, ascending."""
        return self.hunks if self.unit is None else (self.unit,)

    @property
    def marks(self) -> frozenset[object]:
        """Return what identifies the text that it shows: the keys of its changes, or its units."""
        if self.unit is None and self.changes:
            return frozenset(change.key for change in self.changes)
        return frozenset(self.key)

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
    """The changes to review, file by file.

    Each file is compared again before it is shown, since decisions and agents change what is pending.
    """

    def __init__(self, select: "Callable[[Collection[str]], list[NetFile]]", *, is_each: bool = False) -> None:
        """Take the function that returns the files to review, of all paths or at some. `first` calls it first.

        `is_each`: stop at each hunk of a change instead of at the change.
        """
        self._select: Final = select
        self.is_each = is_each
        self._singled: frozenset[Unit] = frozenset()  # hunks of the change that is shown hunk by hunk
        self._files: list[NetFile] = []
        self._stops: list[list[Stop]] = []  # of each file
        self._at = 0  # index of the current file; the number of files: behind the last one
        self._place: tuple[str, DocumentId] | None = None  # of the current file
        self._current: tuple[Unit, ...] = ()  # key of the current stop
        self._passed: frozenset[Unit] = frozenset()  # of the current file: the hunks of its stops up to the current one

    def position(self) -> tuple[int, int]:
        """Return the current file's position, from 1, and the number of files."""
        return self._at + 1, len(self._files)

    def place(self, stop: Stop, decided: frozenset[Unit]) -> tuple[int, int]:
        """Return how many changes are before a stop, and in all, as last compared, without those `decided` since."""
        before = total = 0
        for at, stops in enumerate(self._stops):
            for each in stops:
                if at == self._at and each.whole == stop.whole:
                    before = total
                if not decided.issuperset(each.whole):
                    total += len(each.changes)
        return before, total

    def first(self, fits: Callable[[Stop], bool] = lambda _: True) -> Stop | None:
        """Go to the first stop that fits and return it (None: none does)."""
        self._reload()
        for at in range(len(self._files)):
            for stop in self._shown_stops(at):
                if fits(stop):
                    return self._entered(at, stop)
        return None

    def next(self) -> Stop | None:
        """Go to the next stop after the current one and return it (None: there is none, up to the end)."""
        stop = self._next(is_fresh=False)
        if stop is None:
            self._reload()  # agents continue meanwhile
            stop = self._next(is_fresh=True)
        return stop

    def previous(self) -> Stop | None:
        """Go back to the stop before the current one and return it (None: there is none)."""
        for at in range(min(self._at, len(self._files) - 1), -1, -1):
            self._refresh(at)
            stops = self._shown_stops(at)
            if at == self._at:
                stops = [each for each in stops if self._passed.issuperset(each.key) and each.key != self._current]
            if stops:
                return self._entered(at, stops[-1])
        return None

    def neighbour(self, step: int) -> Stop | None:
        """Go to the first stop of the next file (`step`: 1) or of the one before (-1), and return it (None: none)."""
        at = self._at + step
        while 0 <= at < len(self._files):
            self._refresh(at)
            stops = self._shown_stops(at)
            if stops:
                return self._entered(at, stops[0])
            at += step
        return None

    def go(self, units: Collection[Unit]) -> Stop | None:
        """Go to the first stop that is made of any of the units, and return it (None: there is none)."""
        return self._go(units, is_fresh=False)

    def go_after_undo(self, units: Collection[Unit]) -> Stop | None:
        """Go as `go` does, after a decision was undone: it may have been on any file."""
        self._reload()
        return self._go(units, is_fresh=True)

    def single_out(self, stop: Stop | None) -> None:
        """Stop at each hunk of the changes of a stop (None: at changes as a whole again)."""
        self._singled = frozenset(() if stop is None else stop.units)
        self.is_each = self.is_each and stop is not None

    def find(self, fits: Callable[[Stop], bool], after: Stop) -> tuple[Stop, bool] | None:
        """Return the next stop after `after` that fits, from the top again after the last (None: none).

        And whether the search continued from the top.
        """
        self._reload()
        stops = [stop for at in range(len(self._files)) for stop in self._shown_stops(at)]
        keys = [stop.key for stop in stops]
        start = keys.index(after.key) + 1 if after.key in keys else 0
        found = (
            (stop, at >= len(stops) - start) for at, stop in enumerate(stops[start:] + stops[:start]) if fits(stop)
        )
        return next(found, None)

    def all(self) -> list[Stop]:
        """Return every stop at changes that is left, as last compared."""
        return [stop for stops in self._stops for stop in stops]

    def counts(self) -> tuple[int, int]:
        """Return how many changes are left, and in how many files; what has no net effect in a file is one more."""
        self._reload()
        return sum(len(stop.changes) or 1 for stop in self.all()), len(self._files)

    # ---- inside

    def _shown_stops(self, at: int) -> list[Stop]:
        """Return the stops of a file, hunk by hunk where that is wanted."""
        return [single for stop in self._stops[at] for single in self._singles(stop)]

    def _singles(self, stop: Stop) -> Iterator[Stop]:
        if self.is_each or not self._singled.isdisjoint(stop.key):
            yield from (replace(stop, unit=unit) for unit in stop.units)
        else:
            yield stop

    def _entered(self, at: int, stop: Stop) -> Stop:
        """Make a stop the current one and return it."""
        passed: set[Unit] = set()
        for each in self._shown_stops(at):
            passed.update(each.key)
            if each.key == stop.key:
                break
        self._at, self._place = at, _place(stop.file)
        self._current, self._passed = stop.key, frozenset(passed)
        return stop

    def _go(self, units: Collection[Unit], *, is_fresh: bool) -> Stop | None:
        wanted = set(units)
        for at in (*range(self._at, len(self._files)), *range(self._at)):
            if at == self._at or not wanted.isdisjoint(_units(self._files[at])):
                if not is_fresh:
                    self._refresh(at)
                for stop in self._shown_stops(at):
                    if not wanted.isdisjoint(stop.key):
                        return self._entered(at, stop)
        return None

    def _next(self, *, is_fresh: bool) -> Stop | None:
        misses = 0
        for at in range(self._at, len(self._files)):
            if not self._stops[at]:
                continue
            if not is_fresh:
                self._refresh(at)
            passed = self._passed if at == self._at else frozenset()
            for stop in self._shown_stops(at):
                if not passed.issuperset(stop.key):
                    return self._entered(at, stop)
            misses += 1
            if misses > MOST_MISSES and not is_fresh:
                return None
        return None

    def _refresh(self, at: int) -> None:
        """Compare one file again. It keeps its position when nothing is left of it."""
        old = self._files[at]
        found = (file for file in self._select({old.path, old.path_before}) if file.document == old.document)
        self._files[at] = next(found, replace(old, changes=(), cancelled=(), taken_out=(), kept_on=()))
        self._stops[at] = stops_of(self._files[at])

    def _reload(self) -> None:
        """Compare all files again, and stay at the current one or where it would be."""
        self._files = self._select(())
        self._stops = [stops_of(file) for file in self._files]
        here = self._place
        if here is not None:
            behind = (at for at, file in enumerate(self._files) if _place(file) >= here)
            self._at = next(behind, len(self._files))
            if self._at == len(self._files) or _place(self._files[self._at]) != here:
                self._passed = frozenset()


def stops_of(file: "NetFile") -> list[Stop]:
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


def _place(file: "NetFile") -> "tuple[str, DocumentId]":
    return file.path, file.document


def _units(file: "NetFile") -> set[Unit]:
    return {*file.units, *file.kept_on}
