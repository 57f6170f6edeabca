"""Keep the stores of the served directories within their retention limits, and fast to open, while the server runs.

The work is done in a child process. On a thread of the server it would hold the interpreter, and edits would wait for
it; a process only holds the writers' lock, and only for moments.
"""

import logging
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Any, Final, Self

from mcptools.files.workspaces import Directories
from objstore import CasError, Configuration, StoreReplaced, Workspace

__all__ = ["BackgroundGc", "main"]

_TICK: Final = 1.0
"""Seconds between two checks of the clock."""

_FIRST_CHECK: Final = 15.0
"""Seconds until a store is first checked, so that the first calls come before it."""

_AGAIN: Final = 3600.0
"""Seconds after which a store is checked for expired edits whatever its size, and a failed attempt is repeated."""

_MANY_EDITS: Final = 256
"""New edits after which the documents are cached, so that a reviewer need not wait for their replay."""

_REST: Final = 10.0
"""Seconds between two runs of that, at least."""

_CHILD: Final = (
    "import sys; sys.path.append(sys.argv.pop(1)); import editledger; editledger.isolate(); "
    "from mcptools.server.background_gc import main; sys.exit(main())"
)
"""Run with -P: Python must not import from the server's current folder, in which the agent may write."""

_LIMITS: Final = "limits"
_DOCUMENTS: Final = "documents"
"""The tasks of the child process."""

_log: Final = logging.getLogger(__name__)


@dataclass(slots=True)
class _Watched:
    """The schedule of one store."""

    check_at: float  # by the monotonic clock
    collected_at: float | None = None  # by the monotonic clock; None: not yet
    size: int = -1  # bytes of the store after that


class BackgroundGc:
    """Maintains the stores that a server has opened, while this context is entered."""

    def __init__(self, directories: Directories) -> None:
        self._directories = directories
        self._watched: dict[str, _Watched] = {}
        self._cached: dict[str, tuple[int, float]] = {}  # by root: next edit and time when documents were last cached
        self._stopping = Event()
        self._thread = Thread(target=self._run, name="upkeep", daemon=True)

    def __enter__(self) -> Self:
        """Start the thread."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the thread and a running child, which leaves the store intact."""
        self._stopping.set()
        self._thread.join()

    # ---- inside

    def _run(self) -> None:
        while not self._stopping.wait(_TICK):
            for workspace in filter(lambda opened: opened.is_there, self._directories.opened()):
                try:
                    workspace.retention.close_superseded_files()
                    self._cache_documents(workspace)
                    self._check(workspace)
                except StoreReplaced:
                    continue  # a person moved or replaced the store; the next call opens the new one
                except (CasError, OSError) as error:
                    # The server continues; the warning and `cas status` report the error.
                    _log.warning("Can't check the limits of %s: %s", workspace.root, error)
                    self._watched[workspace.root] = _Watched(time.monotonic() + _AGAIN)

    def _cache_documents(self, workspace: Workspace) -> None:
        """Cache documents with long histories as weaves if there are many new edits."""
        edit, moment = workspace.history.next_edit(), time.monotonic()
        cached_edit, cached_at = self._cached.setdefault(workspace.root, (edit, moment - _REST))
        if edit - cached_edit >= _MANY_EDITS and moment - cached_at >= _REST:
            self._cached[workspace.root] = edit, moment
            self._run_child(workspace.root, _DOCUMENTS)

    def _check(self, workspace: Workspace) -> None:
        """Check a store against its limits if it is due, and run the child if it exceeds one."""
        watched = self._watched.get(workspace.root)
        if watched is not None and time.monotonic() < watched.check_at:
            return
        settings: dict[str, Any] = {given.setting.name: given.value for given in Configuration(workspace.root).all()}
        every = settings["gc.every"]
        if not settings["gc.background"] or not isinstance(every, int):
            self._watched[workspace.root] = _Watched(time.monotonic() + _AGAIN)
            return
        pause = max(_TICK, every)
        if watched is None:
            self._watched[workspace.root] = _Watched(time.monotonic() + min(_FIRST_CHECK, pause))
            return
        size, limit = workspace.retention.stored_bytes(), settings["retention.max_size"]
        is_over = isinstance(limit, int) and size > limit and size != watched.size
        is_due = watched.collected_at is None or time.monotonic() - watched.collected_at >= _AGAIN
        if is_over or (is_due and settings["retention.older_than"] is not None):
            self._run_child(workspace.root, _LIMITS)
            watched.collected_at, watched.size = time.monotonic(), workspace.retention.stored_bytes()
        watched.check_at = time.monotonic() + pause

    def _run_child(self, root: str, task: str) -> None:
        command = [sys.executable, "-P", "-c", _CHILD, str(Path(__file__).parents[2]), root, task]
        # Standard input and output are the protocol's.
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:  # noqa: S603 - ours
            while process.poll() is None:
                if self._stopping.wait(_TICK / 10):
                    process.terminate()


def main(argv: Sequence[str] | None = None) -> int:
    """Do one task for the store of one directory; return 0, or 1 if it failed."""
    root, task = sys.argv[1:] if argv is None else argv
    try:
        with Workspace.open(root, is_real=True) as workspace:
            if task == _DOCUMENTS:
                workspace.history.cache_documents()
            else:
                done = workspace.retention.collect(workspace.retention.limits())
                if done.index_damage:
                    _tell(f"the index of {root} was damaged and was rebuilt from the log: {done.index_damage}")
    except CasError as error:
        _tell(f"can't maintain the {task} of {root}: {error}")
        return 1
    return 0


def _tell(message: str) -> None:
    print(f"editledger: {message}", file=sys.stderr)  # noqa: T201 - the server's log
