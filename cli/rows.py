"""Rows: edits as lines of a list, which at a terminal are no longer than it is wide."""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from cli.rendering import STATUS_COLOR, moment, shown_move, status_word
from cli.terminal import Screen, end_of, shown_name, shown_width, width_of_terminal
from objstore import AmbiguousName, Origin, date_of

if TYPE_CHECKING:
    from objstore import EditView, Workspace

__all__ = ["Rows", "short_moment"]

SHORTEST_CONVERSATION: Final = 8
"""Characters that stay of a conversation's name, even where fewer would name it."""

SHORTEST_NAME: Final = 8
"""Columns below which a file's name is not cut."""

NARROW: Final = 100
"""Columns below which a terminal has no room for times to the second."""

RECENT: Final = 250 * 86_400
"""Seconds for which the year of a time goes without saying, as in listings of files."""


class Rows:
    """Edits as lines of a list. What is too long for the terminal is cut as it can still be typed, if that helps."""

    def __init__(self, workspace: "Workspace", screen: Screen) -> None:
        self._workspace = workspace
        self._screen = screen
        self._width = width_of_terminal()
        self._is_narrow = 0 < self._width < NARROW
        self._short: dict[str, str] = {}  # what names each conversation here

    def of(self, view: "EditView") -> Iterator[bytes]:
        """Yield one edit, and on a second line the reason of the decision on it."""
        edit = view.edit
        counts = f"+{edit.added} -{edit.removed}"
        name, conversation, origin = shown_move(edit.source, edit.path), edit.conversation, _origin(view)
        ahead = f"{edit.seq:5}  {short_moment(edit.time) if self._is_narrow else moment(edit.time)}  "
        behind = f"  {edit.operation.value:7}  {counts:>9}  "
        if self._width:
            room = self._width - len(ahead) - 9 - len(behind) - len("  ") - len(origin)
            if shown_width(name) + shown_width(shown_name(conversation)) > room:
                conversation = self._shortest(conversation)
            left = room - shown_width(shown_name(conversation))
            if SHORTEST_NAME <= left < shown_width(name):
                name = end_of(name, left)
        status = self._screen.paint(f"{status_word(view):9}", STATUS_COLOR[view.status])
        yield self._screen.line(f"{ahead}{status}{behind}{name}  {shown_name(conversation)}{origin}")
        if view.reason:
            yield self._screen.line(f"{'':7}reason: {shown_name(view.reason)}")

    def _shortest(self, conversation: str) -> str:
        """Return the shortest beginning of a conversation's name that names no other one."""
        found = self._short.get(conversation)
        if found is None:
            lengths = range(SHORTEST_CONVERSATION, len(conversation))
            found = next((conversation[:length] for length in lengths if self._names_one(conversation[:length])), "")
            self._short[conversation] = found = found or conversation
        return found

    def _names_one(self, beginning: str) -> bool:
        try:
            self._workspace.find_conversation(beginning)
        except AmbiguousName:
            return False
        return True


def short_moment(microseconds: int) -> str:
    """Return a time in eleven columns: of what is long ago, or still to come, the date."""
    when = date_of(microseconds).astimezone()
    is_recent = 0 <= time.time() - microseconds / 1e6 < RECENT
    return when.strftime("%m-%d %H:%M" if is_recent else "%Y-%m-%d ")


def _origin(view: "EditView") -> str:
    """Return what is said behind an edit that is not just an agent's."""
    edit = view.edit
    origin = "" if edit.origin is Origin.AGENT else f"  ({edit.origin.value})"
    if edit.amends is not None:
        origin = f"  (amends {edit.amends})"
    if edit.marks is not None:
        origin = f"  (markers of decision {edit.marks.decision})"
    return f"{origin}  (expired)" if view.expired is not None else origin
