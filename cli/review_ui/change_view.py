"""Show a change in a review, with the turns that made it, or one of its single edits."""

import os
from collections.abc import Collection, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

from cli.app.invocation import Invocation
from cli.render.comments import remarks_by_change
from cli.render.edits import edit_diff, shown_move
from cli.render.net_diff import net_diff
from cli.render.status import conversation_name, turn_heading
from cli.render.zoom import zoom
from cli.screen.terminal import EXACT, Screen
from objstore import counted, shown_edits

if TYPE_CHECKING:
    from cli.review_ui.change_queue import Stop
    from objstore import NetFile, PendingGroup, StatusReport, Workspace

__all__ = ["ChangeView"]

TURNS_SHOWN: Final = 3
"""Number of turns that are named above a change; the others are counted."""


class ChangeView:
    """The text of changes, each with a heading; lines are whole."""

    def __init__(self, workspace: "Workspace", screen: Screen) -> None:
        """Read who made what is pending."""
        self._workspace = workspace
        self._screen = screen
        self._report = workspace.review.status()

    def refreshed(self) -> "StatusReport":
        """Read again who made what is pending, and return it."""
        self._report = self._workspace.review.status()
        return self._report

    def groups(self) -> "dict[int, PendingGroup]":
        """Return the group of each pending edit, as last read."""
        return {int(seq): group for group in self._report.groups for seq in group.seqs}

    def text(self, stop: "Stop", position: tuple[int, int], seen: Collection[bytes]) -> Iterator[bytes]:
        """Yield the heading and the diff of a stop. `position`: of its file, and the number of files.

        `seen`: keys of changes that are marked so.
        """
        if stop.unit is None:
            yield from map(self._screen.line, self._heading(stop, position))
            yield from self.diff(stop.shown, seen)
        else:
            place = f"(single edit {stop.hunks.index(stop.unit) + 1} of {len(stop.hunks)})"
            yield from zoom(
                self._workspace.history.edit(stop.unit.seq), stop.unit, place, self._workspace, self._screen
            )

    def diff(self, file: "NetFile", seen: Collection[bytes]) -> Iterator[bytes]:
        """Yield the net changes of a file with the comments on them."""
        comments = partial(remarks_by_change, self._workspace, self._screen, self._workspace.awaited_comments())
        return net_diff([file], self._screen, Invocation.current().program, comments, seen)

    def exact(self, stop: "Stop") -> Iterator[bytes]:
        """Yield the diff of a stop byte by byte, to be searched."""
        if stop.unit is None:
            return net_diff([stop.shown], EXACT, "")
        return edit_diff(self._workspace.history.edit(stop.unit.seq), self._workspace, EXACT, [stop.unit])

    # ---- inside

    def _heading(self, stop: "Stop", position: tuple[int, int]) -> Iterator[str]:
        file = stop.file
        moved = os.fsencode(file.path_before) if file.path_before != file.path else None
        title = self._screen.paint(shown_move(moved, os.fsencode(file.path)), bold=True)
        changes = counted(len(file.changes), "change") if file.changes else "no net change"
        place = f"(file {position[0]} of {position[1]}, {changes} left in it)"
        yield f"{title}  +{file.added} -{file.removed}  {place}"
        yield from self._turns(stop)
        if len(stop.changes) > 1:
            yield f"These {len(stop.changes)} changes share hunks and are decided together; e shows the hunks."
        if stop.changes and stop.is_last and len(file.cancelled) > len(file.taken_out):
            yield "Hunks that cancel out are decided with it."

    def _turns(self, stop: "Stop") -> Iterator[str]:
        """Yield a line for each turn, or session without turns, that made the change, with its edits."""
        seqs = sorted({unit.seq for unit in stop.key})
        groups = self.groups()
        if not groups.keys() >= set(seqs):
            self.refreshed()  # an agent continued
            groups = self.groups()
        turns = {turn.number: turn for turn in self._report.turns}
        made: dict[tuple[int, str], list[int]] = {}
        for seq in seqs:
            if seq in groups:
                group = groups[seq]
                made.setdefault((group.turn, "" if group.turn else conversation_name(group)), []).append(seq)
        for (turn, conversation), edits in list(made.items())[:TURNS_SHOWN]:
            named = f"  edit{'s' * (len(edits) > 1)} {shown_edits(edits)}"
            yield turn_heading(turns.get(turn), conversation, self._screen, used=len(named)) + named
        if len(made) > TURNS_SHOWN:
            yield f"and {counted(len(made) - TURNS_SHOWN, 'turn')} more"
