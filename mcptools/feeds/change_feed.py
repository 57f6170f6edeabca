"""Find the edits that were recorded or decided since the last poll, by this process or another."""

import logging
from collections.abc import Iterable
from threading import Lock
from typing import Final, TypeAlias

from mcptools.files.workspaces import Directories
from objstore import CasError, EditView, HistoryEnd, Workspace

__all__ = ["ChangeFeed", "Changed", "addresses"]

Changed: TypeAlias = tuple[Workspace, EditView]
"""A workspace and an edit of it that is new or has another status."""

_log: Final = logging.getLogger(__name__)


class ChangeFeed:
    """The changes in the stores of the served directories. Safe to use from several threads."""

    def __init__(self, directories: Directories) -> None:
        self._directories = directories
        self._ends: dict[str, HistoryEnd] = {}  # by root; a store that is created later has no entry
        self._unread: set[str] = set()  # roots of the stores that can't be read, for which a warning was logged
        self._lock = Lock()

    def begin(self) -> None:
        """Note where each history ends; only what comes after that is reported."""
        with self._lock:
            self._ends = {}
            for workspace in self._stores():
                self._look(workspace)

    def since(self) -> list[Changed]:
        """Return the edits that have changed since the last call of this method, or since `begin`."""
        changed: list[Changed] = []
        with self._lock:
            for workspace in self._stores():
                before = self._ends.get(workspace.root, HistoryEnd())
                changed += [(workspace, view) for view in self._look(workspace, before)]
        return changed

    def _look(self, workspace: Workspace, before: HistoryEnd | None = None) -> list[EditView]:
        """Note where a history ends, and return what has changed in it since `before` (None: don't compare)."""
        try:
            now = workspace.history.end()
            changed = [] if before is None or before == now else workspace.history.changed_since(before)
        except (CasError, OSError) as error:
            if workspace.root not in self._unread:
                self._unread.add(workspace.root)
                _log.warning("Clients get no notifications of changes in %s: %s", workspace.root, error)
            return []
        self._unread.discard(workspace.root)
        self._ends[workspace.root] = now
        return changed

    def _stores(self) -> list[Workspace]:
        self._directories.recorded()  # opens them; a call that needs a store that can't be opened reports it
        return self._directories.opened()


def addresses(changed: Iterable[Changed], allowed: Directories) -> list[str]:
    """Return the addresses of the resources that these edits change, for edits of files in the allowed directories."""
    found: dict[str, None] = {}
    for workspace, view in changed:
        if allowed.shows(workspace, view):
            names = (f"edit/{view.seq}", f"edit/{view.id.hex()}", f"conversation/{view.edit.conversation}")
            found |= dict.fromkeys(f"cas://{name}" for name in names)
    return list(found)
