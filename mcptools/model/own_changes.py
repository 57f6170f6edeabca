"""Remember the states that a session's own calls gave to files, until another author changes these files."""

from collections import OrderedDict, deque
from typing import Final

from objstore import FileState

__all__ = ["OwnChanges"]

_MOST_FILES: Final = 10_000
_MOST_STATES: Final = 1_000
"""States that are remembered of one file. Of older ones it is not known any more that only the session changed them."""


class OwnChanges:
    """For each file the states that a session's own calls gave it one after the other, and the one before the first.

    A file is named by its workspace's root and its canonical path there. None is the state of a file that is not there.
    """

    def __init__(self) -> None:
        self._states: OrderedDict[tuple[str, str], deque[FileState | None]] = OrderedDict()

    def note(self, root: str, source: str, path: str, *, before: FileState | None, after: FileState | None) -> None:
        """Note that a call of the session changed a file. `source`: its path before; it moved if that is not `path`."""
        states = self._states.pop((root, source), None)
        if states is None or states[-1] != before:  # somebody else has changed it
            states = deque([before], _MOST_STATES)
        states.append(after)
        if source != path:
            self._keep((root, source), deque([before, None], _MOST_STATES))
        self._keep((root, path), states)

    def lead(self, file: tuple[str, str], origin: FileState, now: FileState) -> bool:
        """Return whether the session's own calls, and nothing else, led from one state of a file to the current one.

        So they did as well if the file was not there before them: then there was nothing that they could have replaced.
        """
        states = self._states.get(file)
        return states is not None and states[-1] == now and (origin in states or None in states)

    def _keep(self, file: tuple[str, str], states: deque[FileState | None]) -> None:
        self._states[file] = states
        self._states.move_to_end(file)
        if len(self._states) > _MOST_FILES:
            self._states.popitem(last=False)
