"""Turns and sessions as rows of a list."""

from typing import TYPE_CHECKING, Final

from cli.render.edits import STATUS_COLOR, moment, short_moment
from cli.screen.terminal import Screen, shown_name, shown_width, width_of_terminal
from objstore import Status

if TYPE_CHECKING:
    from collections.abc import Iterable

    from objstore import SessionView, TurnView

__all__ = ["TurnRows", "decided_words", "first_line", "session_name"]

_LONGEST_PROMPT: Final = 72
"""Columns of a prompt that are shown where the output is no terminal."""

_NARROW: Final = 110
"""Width of a terminal below which rows are shortened, to leave more columns for the prompt."""

_LEAST_PROMPT: Final = 12
"""Columns of a prompt that are shown even on a narrow terminal."""


class TurnRows:
    """Turns and sessions as rows of a list."""

    def __init__(self, sessions: "Iterable[SessionView]", screen: Screen) -> None:
        """`sessions`: those of the turns."""
        self._sessions = {session.number: session for session in sessions}
        self._screen = screen
        self._width = width_of_terminal()
        self._is_narrow = 0 < self._width < _NARROW

    def of_turn(self, turn: "TurnView") -> bytes:
        """Return a turn: number, time, how it is decided, files, lines, session, prompt.

        A narrow terminal shows no number of files, no seconds, and one word for how it is decided.
        """
        session = self._sessions.get(turn.session)
        status = min(turn.counts, key=list(Status).index, default=None)
        lines = f"{f'+{turn.added} -{turn.removed}':>9}  "
        if self._is_narrow:
            time, decided, counts = short_moment(turn.time), f"{decided_word(turn):8}", f"  {lines}"
        else:
            files = f"{len(turn.paths):3} file{'s' if len(turn.paths) != 1 else ' '}"
            time, decided, counts = moment(turn.time), f"{decided_words(turn):22}", f"  {files}  {lines}"
        row = f"{turn.number:5}  {time}  "
        who = f"{turn.client or 'agent' if session is None else session_name(session)}"
        ahead = shown_width(f"{row}{decided}{counts}{shown_name(who)}")
        painted = decided if status is None else self._screen.paint(decided, STATUS_COLOR[status])
        return self._screen.line(f"{row}{painted}{counts}{shown_name(who)}{self._prompt(turn.prompt, ahead)}")

    def of_session(self, session: "SessionView") -> bytes:
        """Return a session: number, times, turns, edits, client, first prompt."""
        turns, edits = (
            f"{number:4} {word}{'s' if number != 1 else ' '}"
            for number, word in ((session.turns, "turn"), (session.edits, "edit"))
        )
        began, ended = map(short_moment if self._is_narrow else moment, (session.began, session.ended))
        row = f"{session.number:5}  {began}  {ended}  {turns}  {edits}  "
        row += shown_name(session.client or "agent")
        return self._screen.line(f"{row}{self._prompt(session.prompt, shown_width(row))}")

    def _prompt(self, prompt: str, used: int) -> str:
        """Return the first line of a prompt, in the columns that are left."""
        line = first_line(prompt)
        if not line:
            return ""
        said = shown_name(line)
        room = max(_LEAST_PROMPT, self._width - used - 4) if self._width else _LONGEST_PROMPT
        if shown_width(said) > room:
            said = f"{said[: room - 1]}…"
        return f"  {said}" if said.startswith('"') else f'  "{said}"'


def session_name(session: "SessionView") -> str:
    """Return what a session is called in lists: its client and number."""
    return f"{session.client or 'agent'} {session.number}"


def first_line(prompt: str) -> str:
    """Return the first line of a prompt that says something."""
    return next((line.strip() for line in prompt.splitlines() if line.strip()), "")


def decided_words(turn: "TurnView") -> str:
    """Return how the edits of a turn are decided: one status, or how many have each."""
    counts = [(status, turn.counts[status]) for status in Status if turn.counts.get(status)]
    if len(counts) <= 1:
        return counts[0][0].value if counts else "no edits"
    return ", ".join(f"{number} {status.value}" for status, number in counts)


def decided_word(turn: "TurnView") -> str:
    """Return how the edits of a turn are decided in one word."""
    words = decided_words(turn)
    return "partly" if "," in words else words
