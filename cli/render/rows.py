"""Lists of edits, one row each, which on a terminal fit its width."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from cli.render.authors import Authors
from cli.render.edits import (
    SHORT_HASH,
    STATUS_COLOR,
    awaited_words,
    line_counts,
    moment,
    short_moment,
    shown_move,
    status_word,
)
from cli.screen.terminal import Screen, end_of, shown_name, shown_width, width_of_terminal
from objstore import AmbiguousName, NoSuchName, Origin

if TYPE_CHECKING:
    from objstore import EditView, GitEvent, Workspace

__all__ = ["SHORT_COMMIT", "Rows"]

SHORTEST_CONVERSATION: Final = 8
"""Characters that are kept of a conversation's name, even if fewer would identify it."""

SHORTEST_ID: Final = 8
"""Digits of an edit's id on a narrow terminal."""

SHORTEST_NAME: Final = 8
"""Columns below which a file's name is not cut."""

WITH_OPERATION: Final = 69
"""Width of a terminal below which the kind of edit is left out."""

WITH_TIME: Final = 60
"""Width of a terminal below which times are left out too."""

NARROW: Final = 100
"""Width of a terminal below which times have no seconds."""

SHORT_COMMIT: Final = 7
"""Digits of a git commit that are shown."""


class Rows:
    """Edits as rows of a list. Names too long for the terminal are cut so that they can still be typed."""

    def __init__(self, workspace: "Workspace", screen: Screen, *, with_id: bool = False) -> None:
        """`with_id`: begin with the edit's id instead of counting its lines."""
        self._workspace = workspace
        self._with_id = with_id
        self._screen = screen
        self._width = width_of_terminal()
        self._is_narrow = 0 < self._width < NARROW
        self._authors = Authors(workspace)
        self._awaited = workspace.awaited()
        self._short: dict[str, str] = {}  # the shortened name of each conversation

    def of(self, view: "EditView") -> Iterator[bytes]:
        """Yield one edit, and below it what others decided on it and the reason of the decision on it."""
        edit = view.edit
        operation, counts = f"  {edit.operation.value:7}", f"  {line_counts(edit):>9}"
        if self._with_id:
            digits = SHORTEST_ID if self._is_narrow else SHORT_HASH
            ahead, behind = f"{edit.seq:5}  {view.id.hex()[:digits]}  {self._time(edit.time)}", f"{operation}  "
        else:
            is_with_operation = not 0 < self._width < WITH_OPERATION
            ahead, behind = f"{edit.seq:5}  {self._time(edit.time)}", f"{operation * is_with_operation}{counts}  "
        name, last = self._fitted(view, len(ahead) + 9 + len(behind))
        status = self._screen.paint(f"{status_word(view):9}", STATUS_COLOR[view.status])
        yield self._screen.line(f"{ahead}{status}{behind}{name}{last}")
        for words in awaited_words(self._awaited, view.telling_units):
            yield self._screen.line(f"{'':7}{words}")
        if view.reason:
            yield self._screen.line(f"{'':7}reason: {shown_name(view.reason)}")
        if view.check:
            yield self._screen.line(f"{'':7}{shown_name(view.check.splitlines()[0].rstrip(':.'))}")

    def of_event(self, event: "GitEvent") -> bytes:
        """Return the line of what git did, and to how many files; earlier text may return in other ways, too."""
        if event.files:
            did = "earlier text returned" if event.is_return else f"git: {event.words}"
            said = f"{did}, {event.files} file{'' if event.files == 1 else 's'}"
        else:
            unreviewed = "" if event.is_reviewed else ", not reviewed"
            said = f"git: {event.words} {event.commit[:SHORT_COMMIT]} by an agent{unreviewed}"
        return self._screen.line(f"{'':5}  {self._time(event.time)}{shown_name(said)}")

    def _time(self, microseconds: int) -> str:
        if not self._is_narrow:
            return f"{moment(microseconds)}  "
        return "" if self._width < WITH_TIME else f"{short_moment(microseconds)}  "

    def _fitted(self, view: "EditView", used: int) -> tuple[str, str]:
        """Return the file's name and the text after it, cut to the columns that are left."""
        name, conversation = shown_move(view.edit.source, view.edit.path), self._authors.short(view)
        origin = self._origin(view)
        # Of a change from outside, and of an unattributed one, the origin is named already.
        origin = origin.removeprefix(f"  ({conversation})").replace(f"  ({conversation}: ", "  (", 1)
        last = f"  {shown_name(conversation)}{origin}"
        deciders = self._authors.deciders(view)
        by = f"  by {deciders}" if deciders else ""
        room = self._width - used
        if not self._width or shown_width(name + last + by) <= room:
            return name, last + by
        if shown_width(name + last) <= room:
            return name, last
        # Shorten the text after it step by step, until enough of the name can be read.
        needed = min(SHORTEST_NAME, shown_width(name))
        shortest = self._shortest(conversation) if conversation == view.edit.conversation else conversation
        shorter = (f"  {shown_name(shortest)}{origin}", origin, "")
        last = next((last for last in shorter if room - shown_width(last) >= needed), "")
        return end_of(name, max(room - shown_width(last), needed)), last

    def _origin(self, view: "EditView") -> str:
        """Return the remark after an edit that is not simply an agent's."""
        edit = view.edit
        made = Origin.UNATTRIBUTED if view.is_unattributed else edit.origin
        origin = "" if made is Origin.AGENT else f"  ({made.value}{self._candidates(view)})"
        if edit.amends is not None:
            origin = f"  (amends {edit.amends})"
        if edit.marks is not None:
            origin = f"  (markers of decision {edit.marks.decision})"
        return f"{origin}  (expired)" if view.expired is not None else origin

    def _candidates(self, view: "EditView") -> str:
        """Return the sessions that may have made an unattributed edit."""
        names = view.edit.notes.get("candidates", "").split("\n") if view.owner == view.edit.conversation else []
        found = []
        for name in filter(None, names):
            try:
                found.append(str(self._workspace.sessions.find_session(name).number))
            except (NoSuchName, AmbiguousName):
                continue  # a session without a recorded edit has no number
        return f": session {' or '.join(found)}?" if found else ""

    def _shortest(self, conversation: str) -> str:
        """Return the shortest prefix of a conversation's name that is unique."""
        found = self._short.get(conversation)
        if found is None:
            lengths = range(SHORTEST_CONVERSATION, len(conversation))
            found = next((conversation[:length] for length in lengths if self._names_one(conversation[:length])), "")
            self._short[conversation] = found = found or conversation
        return found

    def _names_one(self, beginning: str) -> bool:
        try:
            self._workspace.history.find_conversation(beginning)
        except AmbiguousName:
            return False
        return True
