"""Choose the hunks that a review shows, and their order."""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from objstore import Status, Unit

if TYPE_CHECKING:
    from cli.review_ui.skipped import SkippedHunks
    from objstore import EditView, PendingGroup, Workspace

__all__ = ["ReviewQueue", "real_units"]


class ReviewQueue:
    """The edits to review, by conversation and file as `cas status` lists them. Hunks skipped earlier come last.

    The queue is not saved: the next review starts from what is pending then.
    """

    def __init__(
        self,
        workspace: "Workspace",
        skipped_hunks: "SkippedHunks",
        wanted: Callable[["PendingGroup", int], bool],
        units: Collection[Unit] | None = None,
    ) -> None:
        """Find the pending edits that are `wanted`, given a group of edits and the number of one of them.

        `units`: only these hunks of them; None: all.
        """
        self._only: Final = units
        self._workspace = workspace
        self._skipped_hunks = skipped_hunks
        self._wanted = wanted
        self._seqs: list[int] = []
        self._at = (0, -1)  # index of the edit, and hunk
        self._again = False  # whether hunks skipped in an earlier review are being shown
        self._passed: list[Unit] = []  # hunks shown before, oldest first
        self._put_off: Final[set[Unit]] = set()  # in this review
        self._take_in()

    def __len__(self) -> int:
        """Return the number of edits."""
        return len(self._seqs)

    def position(self, unit: Unit) -> int:
        """Return the edit's position among all of them, from 1."""
        return self._seqs.index(unit.seq) + 1

    def next(self) -> Unit | None:
        """Go to the next pending hunk and return it (None: there is none left)."""
        while True:
            for at, view in self._views(self._at[0]):
                for unit in self._pending(view):
                    if (at, unit.hunk) > self._at and self._is_due(view, unit):
                        self._at = (at, unit.hunk)
                        return unit
            # Agents continue meanwhile; hunks that were skipped in an earlier review come after all others.
            if self._take_in():
                continue
            if self._again:
                return None
            self._again, self._at = True, (0, -1)

    def leave(self, unit: Unit) -> None:
        """Note that a hunk was shown."""
        self._passed.append(unit)

    def put_off(self, unit: Unit) -> None:
        """Note that a hunk is not to be shown again in this review."""
        self._put_off.add(unit)

    def back(self) -> Unit | None:
        """Go back to the hunk that was shown last (None: there is none)."""
        if not self._passed:
            return None
        return self.go(self._passed.pop())

    def go(self, unit: Unit) -> Unit:
        """Go to a hunk and return it."""
        self._at = (self._seqs.index(unit.seq), unit.hunk)
        self._put_off.discard(unit)
        return unit

    def find(self, fits: Callable[["EditView", Unit], bool], after: Unit) -> tuple[Unit, bool] | None:
        """Return the next pending hunk after `after` that fits, from the top again after the last (None: none).

        And whether the search continued from the top.
        """
        start = (self._seqs.index(after.seq), after.hunk)
        behind: list[tuple[EditView, Unit]] = []
        before: list[tuple[EditView, Unit]] = []
        for at, view in self._views(0):
            for unit in self._pending(view):
                (behind if (at, unit.hunk) > start else before).append((view, unit))
        found = ((unit, at >= len(behind)) for at, (view, unit) in enumerate([*behind, *before]) if fits(view, unit))
        return next(found, None)

    def alike(self, view: "EditView", *, same_file: bool) -> list[Unit]:
        """Return the pending units of the edit's file in its conversation, or of the whole conversation."""
        groups = [
            group for group in self._workspace.review.status().groups if group.conversation == view.edit.conversation
        ]
        if same_file:
            groups = [group for group in groups if view.seq in group.seqs]
        seqs = [seq for group in groups for seq in group.seqs if self._wanted(group, seq)]
        return [unit for seq in seqs for unit in self._pending(self._workspace.history.edit(seq))]

    def counts(self) -> tuple[int, int]:
        """Return how many edits are pending, in whole or in part: of the wanted ones, and of the others."""
        wanted = [self._wanted(group, seq) for group in self._workspace.review.status().groups for seq in group.seqs]
        return sum(wanted), len(wanted) - sum(wanted)

    # ---- inside

    def _views(self, start: int) -> Iterator[tuple[int, "EditView"]]:
        for at in range(start, len(self._seqs)):
            yield at, self._workspace.history.edit(self._seqs[at])

    def _pending(self, view: "EditView") -> Sequence[Unit]:
        pending = [unit for unit in real_units(view) if view.units[unit.hunk] is Status.PENDING]
        return pending if self._only is None else [unit for unit in pending if unit in self._only]

    def _is_due(self, view: "EditView", unit: Unit) -> bool:
        return unit not in self._put_off and self._skipped_hunks.is_skipped(view.id, unit.hunk) is self._again

    def _take_in(self) -> bool:
        known = set(self._seqs)
        new = [
            int(seq)
            for group in _together(self._workspace.review.status().groups)
            for seq in group.seqs
            if seq not in known and self._wanted(group, seq)
        ]
        self._seqs += new
        return bool(new)


def real_units(view: "EditView") -> list[Unit]:
    """Return the units of an edit that change anything."""
    return [Unit(view.seq, hunk) for hunk in range(len(view.units)) if hunk or view.whole]


def _together(groups: Sequence["PendingGroup"]) -> list["PendingGroup"]:
    """Return the groups conversation by conversation, in order of the first edit of each."""
    first = {group.conversation: at for at, group in reversed(list(enumerate(groups)))}
    return sorted(groups, key=lambda group: first[group.conversation])
