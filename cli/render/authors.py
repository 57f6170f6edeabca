"""Name the author of an edit for people, by turn or session and not by id; and who decided on it, and through what."""

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from cli.render.edits import shown_decider
from cli.render.prompts import first_line
from cli.render.status import LONGEST_NAME
from cli.render.turns import session_name
from cli.screen.terminal import beginning_of, shown_name
from objstore import UNKNOWN_AGENT, NoSuchName, Status

if TYPE_CHECKING:
    from objstore import EditView, SessionView, TurnPrompt, Verdict, Workspace

__all__ = ["Authors"]

_PROMPT: Final = 32
"""Columns of a prompt that are shown in front of each line of a file."""


class Authors:
    """Names of turns and sessions in one workspace, each looked up once."""

    def __init__(self, workspace: "Workspace") -> None:
        """Look up nothing yet."""
        self._workspace = workspace
        self._verdicts = workspace.history.verdicts()
        self._turns: dict[int, TurnPrompt | None] = {}
        self._sessions: dict[int, SessionView | None] = {}

    def turn(self, number: int) -> "TurnPrompt | None":
        """Return a turn (None: it is not known)."""
        if number not in self._turns:
            self._turns[number] = None
            with suppress(NoSuchName):
                self._turns[number] = self._workspace.sessions.turn_prompt(number) if number else None
        return self._turns[number]

    def session(self, number: int) -> "SessionView | None":
        """Return a session (None: it is not known)."""
        if number not in self._sessions:
            self._sessions[number] = None
            with suppress(NoSuchName):
                self._sessions[number] = self._workspace.sessions.session(number) if number else None
        return self._sessions[number]

    def session_of(self, view: "EditView") -> int:
        """Return the number of an edit's session; 0: it has none."""
        return self._workspace.sessions.of_edits([view.seq]).get(view.seq, 0)

    def short(self, view: "EditView") -> str:
        """Return whose an edit is in few words: a turn, a session, a conversation, or the person who claimed it."""
        if view.is_of_turn(view.edit.turn) and view.edit.turn:
            return f"turn {view.edit.turn}"
        if not view.owner:
            return "claimed by you"
        if view.is_unattributed:
            return UNKNOWN_AGENT
        if view.owner != view.edit.conversation or len(view.edit.conversation) > LONGEST_NAME:
            number = self.session_of(view)
            if number:
                return f"session {number}"
        return view.edit.conversation

    def fact(self, view: "EditView") -> tuple[str, str]:
        """Return whose an edit is as a fact with a name: turn, session, conversation, or claimed by."""
        short, number = self.short(view), self.session_of(view)
        if short.startswith("turn ") and number:
            return "turn", f"{view.edit.turn}, {self._session(number)}"
        if not view.owner:
            return "claimed by", "you"
        if short != view.edit.conversation and number:
            return "session", self._session(number)
        return "conversation", short

    def with_session(self, view: "EditView") -> str:
        """Return whose an edit is, with the client and number of its session, for a heading."""
        name, value = self.fact(view)
        return value if name in {"session", "conversation"} else f"{name} {value}"

    def behind_line(self, view: "EditView") -> str:
        """Return the turn and the first line of its prompt; if none is known, the tool and the session."""
        if self.short(view).startswith("turn "):
            return self._turn(view.edit.turn)
        names = view.edit.tool or view.edit.origin.value, self.with_session(view)
        return "  ".join(map(shown_name, dict.fromkeys(names)))

    def verdicts(self, view: "EditView") -> "tuple[Verdict, ...]":
        """Return by which decisions the edit's units have their statuses."""
        return self._verdicts.of(view)

    def deciders(self, view: "EditView", *, hunk: int | None = None, with_commits: bool = True) -> str:
        """Return who accepted or rejected an edit, or one of its units, and through what ("": no one)."""
        decided = {
            shown_decider(verdict.who, verdict.via, verdict.agent, verdict.commit): None
            for verdict in self._verdicts.of(view)
            for unit in verdict.units
            if view.units[unit.hunk] is not Status.PENDING and hunk in {None, unit.hunk}
            if with_commits or not verdict.commit
        }
        return ", ".join(decided)

    # ---- inside

    def _session(self, number: int) -> str:
        found = self.session(number)
        return str(number) if found is None else session_name(found)

    def _turn(self, number: int) -> str:
        found = self.turn(number)
        prompt = beginning_of("" if found is None else first_line(found.prompt), _PROMPT)
        return f"turn {number}{' · ' * bool(prompt)}{prompt}"
