"""News: which edits read otherwise since that was last asked, whoever has recorded or decided something."""

import logging
from collections.abc import Iterable
from threading import Lock
from typing import Final, TypeAlias

from mcptools.files.workspaces import Directories
from objstore import CasError, EditView, Seen, Workspace

__all__ = ["ChangeFeed", "Changed", "addresses"]

Changed: TypeAlias = tuple[Workspace, EditView]
"""An edit that reads otherwise, and where it is recorded."""

_log: Final = logging.getLogger(__name__)


class ChangeFeed:
    """Follows the stores of the served directories. Safe to use from several threads."""

    def __init__(self, directories: Directories) -> None:
        self._directories = directories
        self._seen: dict[str, Seen] = {}  # by root; of a store that is made later nothing was seen
        self._unread: set[str] = set()  # roots of the stores that can't be followed, as was told
        self._lock = Lock()

    def begin(self) -> None:
        """Take note of how far each history goes: all that is no news."""
        with self._lock:
            self._seen = {}
            for workspace in self._stores():
                self._look(workspace)

    def since(self) -> list[Changed]:
        """Return the edits that read otherwise since this was last asked, or since the beginning."""
        changed: list[Changed] = []
        with self._lock:
            for workspace in self._stores():
                before = self._seen.get(workspace.root, Seen())
                changed += [(workspace, view) for view in self._look(workspace, before)]
        return changed

    def _look(self, workspace: Workspace, before: Seen | None = None) -> list[EditView]:
        """Note how far a history goes, and return what has changed in it since `before`; None: nobody asks."""
        try:
            now = workspace.history.seen()
            changed = [] if before is None or before == now else workspace.history.changed_since(before)
        except (CasError, OSError) as error:
            if workspace.root not in self._unread:
                self._unread.add(workspace.root)
                _log.warning("Nobody is told of what changes in %s: %s", workspace.root, error)
            return []
        self._unread.discard(workspace.root)
        self._seen[workspace.root] = now
        return changed

    def _stores(self) -> list[Workspace]:
        self._directories.recorded()  # who needs a store that can't be opened is told by what needs it
        return self._directories.opened()


def addresses(changed: Iterable[Changed], allowed: Directories) -> list[str]:
    """Return the addresses that read otherwise with these edits, of those that are of files in these directories."""
    found: dict[str, None] = {}
    for workspace, view in changed:
        if allowed.shows(workspace, view):
            names = (f"edit/{view.seq}", f"edit/{view.id.hex()}", f"conversation/{view.edit.conversation}")
            found |= dict.fromkeys(f"cas://{name}" for name in names)
    return list(found)
