"""Select edits by the turn or the session that made them."""

from typing import TYPE_CHECKING

from objstore import value

if TYPE_CHECKING:
    from objstore import EditView, Unit, Workspace

__all__ = ["ANY_TURN", "TurnSelection", "is_of_agent", "is_of_turn"]


@value
class TurnSelection:
    """The turns and the session that a command line names. Both conditions must hold."""

    turns: tuple[int, ...] = ()  # numbers; (): any
    session: str = ""  # number, name or beginning of a name; "": any

    @property
    def is_given(self) -> bool:
        """Return whether a turn or a session is named."""
        return bool(self.turns or self.session)

    @property
    def words(self) -> list[str]:
        """Return the options that select the same."""
        named = [word for turn in self.turns for word in ("--turn", str(turn))]
        return [*named, "--session", self.session] if self.session else named

    def check(self, workspace: "Workspace") -> None:
        """Raise NoSuchName or AmbiguousName if there is no such turn or session."""
        for turn in self.turns:
            workspace.sessions.turn(turn)
        if self.session:
            workspace.sessions.find_session(self.session)

    def pending_units(self, workspace: "Workspace") -> "frozenset[Unit]":
        """Return the pending units of the edits that are selected. Raises NoSuchName, AmbiguousName."""
        from objstore import EditFilter, Status, Unit

        self.check(workspace)
        views = [
            view
            for turn in self.turns or (0,)
            for view in workspace.history.edits(EditFilter(status=Status.PENDING, turn=turn, session=self.session))
        ]
        return frozenset(
            Unit(view.seq, hunk) for view in views for hunk, status in enumerate(view.units) if status is Status.PENDING
        )

    def made(self, workspace: "Workspace", view: "EditView") -> bool:
        """Return whether the edit is of one of the turns, and of the session."""
        if self.turns and not any(is_of_turn(view, turn) for turn in self.turns):
            return False
        if not self.session:
            return True
        session = workspace.sessions.find_session(self.session).number
        return workspace.sessions.of_edits([view.seq]).get(view.seq) == session


ANY_TURN = TurnSelection()


def is_of_turn(view: "EditView", turn: int) -> bool:
    """Return whether an edit is of a turn, and was not claimed for somebody else since."""
    return view.edit.turn == turn and view.owner == view.edit.conversation


def is_of_agent(view: "EditView") -> bool:
    """Return whether an agent made an edit, or may have made it. A claim settles that."""
    if view.owner != view.edit.conversation:
        return bool(view.owner)
    return view.edit.origin.needs_review
