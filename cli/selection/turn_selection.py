"""Select edits by the turn, the session or the subagent that made them."""

from typing import TYPE_CHECKING

from objstore import value

if TYPE_CHECKING:
    from objstore import Selection, Workspace

__all__ = ["ANY_TURN", "TurnSelection"]


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
            if not any(self.agent in view.agents for view in of_session):
                raise NoSuchName(self.agent, "agent of a session")

    @property
    def group(self) -> "Selection":
        """Return what the core selects by it."""
        from objstore import Selection

        return Selection(turns=self.turns, session=self.session, agent=self.agent)


ANY_TURN = TurnSelection()
