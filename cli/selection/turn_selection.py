"""Select edits by the turn, the session or the subagent that made them."""

from typing import TYPE_CHECKING

from objstore import value

if TYPE_CHECKING:
    from objstore import EditView, Unit, Workspace

__all__ = ["ANY_TURN", "TurnSelection", "agent_names", "is_of_agent", "is_of_subagent", "is_of_turn"]


@value
class TurnSelection:
    """The turns, the session and the subagent that a command line names. All conditions must hold."""

    turns: tuple[int, ...] = ()  # numbers; (): any
    session: str = ""  # number, name or beginning of a name; "": any
    agent: str = ""  # a subagent's id, or its kind; "": any

    @property
    def is_given(self) -> bool:
        """Return whether a turn, a session or a subagent is named."""
        return bool(self.turns or self.session or self.agent)

    @property
    def words(self) -> list[str]:
        """Return the options that select the same."""
        named = [word for turn in self.turns for word in ("--turn", str(turn))]
        named += ["--session", self.session] if self.session else []
        return [*named, "--agent", self.agent] if self.agent else named

    def check(self, workspace: "Workspace") -> None:
        """Raise NoSuchName or AmbiguousName if there is no such turn, session or subagent."""
        for turn in self.turns:
            workspace.sessions.turn(turn)
        if self.session:
            workspace.sessions.find_session(self.session)
        if self.agent:
            from objstore import EditFilter, NoSuchName

            of_session = workspace.history.edits(EditFilter(session=self.session))
            if not any(is_of_subagent(view, self.agent) for view in of_session):
                raise NoSuchName(self.agent, "agent of a session")

    def pending_units(self, workspace: "Workspace") -> "frozenset[Unit]":
        """Return the pending units of the edits that are selected. Raises NoSuchName, AmbiguousName."""
        from objstore import EditFilter, Status, Unit

        self.check(workspace)
        views = [
            view
            for turn in self.turns or (0,)
            for view in workspace.history.edits(EditFilter(status=Status.PENDING, turn=turn, session=self.session))
            if not self.agent or is_of_subagent(view, self.agent)
        ]
        return frozenset(
            Unit(view.seq, hunk) for view in views for hunk, status in enumerate(view.units) if status is Status.PENDING
        )

    def made(self, workspace: "Workspace", view: "EditView") -> bool:
        """Return whether the edit is of one of the turns, of the session and of the subagent."""
        if self.agent and not is_of_subagent(view, self.agent):
            return False
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


def is_of_subagent(view: "EditView", name: str) -> bool:
    """Return whether a subagent with this id, or an agent of this kind, made an edit; a claim takes it from them."""
    return name in agent_names(view)


def agent_names(view: "EditView") -> list[str]:
    """Return the kind of the agent that made an edit, and its id if it is a subagent, as far as they were reported."""
    from objstore import AGENT_NOTES

    is_own = view.owner == view.edit.conversation
    return [view.edit.notes[note] for note in AGENT_NOTES if is_own and view.edit.notes.get(note)]


def is_of_agent(view: "EditView") -> bool:
    """Return whether an agent made an edit, or may have made it. A claim settles that."""
    if view.owner != view.edit.conversation:
        return bool(view.owner)
    return view.edit.origin.needs_review
