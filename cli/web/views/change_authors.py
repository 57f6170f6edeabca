"""Say who wrote the lines of changes and at which prompt, what was there before, and what a rejection would do."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from cli.app.invocation import reviewer
from cli.screen.terminal import visible
from cli.web.shapes import Edits, origin_of, shown
from objstore import Action, CasError, Conflicted, Decided, Status, Unit, counted, counted_edits, time_shape

if TYPE_CHECKING:
    from objstore import EditView, NetChange, NetFile, Workspace

__all__ = ["FileAuthors", "rejection_of", "rejection_shape"]

Shape = dict[str, Any]

_MOST_EDITS: Final = 200
"""Edits that are summarized of what a rejection takes along; they are all counted."""


class FileAuthors:
    """The authors of a file's changes, as a list that the changes refer to by position."""

    def __init__(self, workspace: "Workspace", file: "NetFile") -> None:
        """Look up the edits of all changes of a file."""
        self._edits: Final = Edits(workspace)
        seqs = {unit.seq for change in file.changes for unit in (*change.units, *change.earlier)}
        self._views: Final[dict[int, EditView]] = {seq: workspace.history.edit(seq) for seq in sorted(seqs)}
        self._sessions: Final = workspace.sessions.of_edits(sorted(seqs))
        self._known: Final[dict[int, int]] = {}  # by the number of an edit
        self._places: Final[dict[tuple[int, int, str], int]] = {}
        self._summarized: Final[set[int]] = set()
        self.shapes: Final[list[Shape]] = []

    def writers(self, change: "NetChange") -> list[Shape]:
        """Return for each author of a change the edits, the hunks and the rows of the change that are the author's."""
        units: dict[int, list[Unit]] = {}
        for unit in change.units:
            units.setdefault(self._author(unit), []).append(unit)
        rows: dict[int, list[list[int]]] = {}
        at = 0
        for writers in change.writers:
            for author in dict.fromkeys(map(self._author, writers.units)):
                own = rows.setdefault(author, [])
                if own and own[-1][1] == at:
                    own[-1][1] = at + writers.lines
                else:
                    own.append([at, at + writers.lines])
            at += writers.lines
        return [
            {
                "author": author,
                "edits": sorted({unit.seq for unit in own}),
                "hunks": list(map(str, own)),
                "rows": rows.get(author, []),
            }
            for author, own in sorted(units.items())
        ]

    def before(self, change: "NetChange") -> list[int]:
        """Return the edits that made what a change removes, and those that make it, the newest first."""
        seqs = sorted({unit.seq for unit in (*change.units, *change.earlier)}, reverse=True)
        self._summarized.update(seqs)
        return list(seqs)

    def summaries(self) -> dict[str, Shape]:
        """Return the summaries of the edits that `before` has named, by number."""
        return {str(seq): self._edits.summary(self._views[seq]) for seq in sorted(self._summarized)}

    def _author(self, unit: Unit) -> int:
        """Return the position of the author of a hunk."""
        if unit.seq not in self._known:
            self._known[unit.seq] = self._author_of(self._views[unit.seq])
        return self._known[unit.seq]

    def _author_of(self, view: "EditView") -> int:
        turn = view.edit.turn if view.is_of_turn(view.edit.turn) else 0
        key = (turn, self._sessions.get(view.seq, 0), self._edits.author(view))
        if key not in self._places:
            self._places[key] = len(self.shapes)
            self.shapes.append(self._shape(view, *key))
        return self._places[key]

    def _shape(self, view: "EditView", number: int, session: int, who: str) -> Shape:
        turn = self._edits.authors.turn(number)
        return {
            "turn": number,
            "session": session,
            "who": visible(who),
            "client": visible("" if turn is None else turn.client),
            "model": visible("" if turn is None else turn.model),
            "prompt": shown(self._edits.prompt(view)),
            "timestamp": time_shape(view.edit.time if turn is None else turn.time),
            "origin": origin_of(view),
        }


def rejection_shape(workspace: "Workspace", change: "NetChange", together: "Sequence[NetChange]") -> Shape:
    """Return what a rejection of a change, and of those decided with it, would do; nothing is changed.

    `words`: in a sentence. `goes_along`: hunks of other edits that go with it; `needed_by`: those that need it, so that
    it is refused without them. `accepted`: those of both that are accepted now.
    """
    own = {unit for each in (change, *together) for unit in each.units}
    try:
        outcome = workspace.decide(Action.REJECT, sorted(own), who=reviewer(), dry_run=True)
    except (CasError, OSError) as error:
        return rejection_of(workspace, visible(str(error)))
    match outcome:
        case Decided():
            others = tuple(unit for unit, _ in outcome.verdicts if unit not in own)
            words = f"{counted_edits(others, _accepted(workspace, others))} would go along." if others else ""
            return rejection_of(workspace, words or "Nothing else goes along.", goes_along=others)
        case Conflicted():
            others = outcome.recorded_to_reject
            words = f"{counted_edits(others, _accepted(workspace, others))} would have to go too: built on this."
            if not others:
                words = f"{counted(len(outcome.conflicts), 'conflict')} would be in the way."
            return rejection_of(workspace, words, needed_by=others)
        case _:
            return rejection_of(workspace, "The file differs from its recorded state; the page would ask first.")


def rejection_of(
    workspace: "Workspace", words: str, *, goes_along: Iterable[Unit] = (), needed_by: Iterable[Unit] = ()
) -> Shape:
    """Return what a rejection would do, in the page's shape. `words`: in a sentence."""
    units = [*goes_along, *needed_by]
    seqs = list(dict.fromkeys(unit.seq for unit in units))[:_MOST_EDITS]
    return {
        "words": words,
        "goes_along": list(map(str, goes_along)),
        "needed_by": list(map(str, needed_by)),
        "accepted": list(map(str, _accepted(workspace, units))),
        "edits": Edits(workspace).of(seqs),
    }


def _accepted(workspace: "Workspace", units: Iterable[Unit]) -> list[Unit]:
    return [unit for unit, status in workspace.history.statuses(units).items() if status is Status.ACCEPTED]
