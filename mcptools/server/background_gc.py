"""Upkeep: keeps the stores of the served directories within their limits, and quick to open, while the server works.

The work is done by a process of its own. On a thread of the server it would hold the interpreter, and edits would wait
for it; a process only ever holds the writer lock, and that for moments.
"""

import logging
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Final, Self

from mcptools.files.workspaces import Directories
from objstore import CasError, Configuration, StoreReplaced, Workspace

__all__ = ["BackgroundGc", "main"]

_TICK: Final = 1.0
"""Seconds between two looks at the clock."""

_FIRST_LOOK: Final = 15.0
"""Seconds until a store is first looked at: what people wait for comes first."""

_AGAIN: Final = 3600.0
"""Seconds after which age alone is a reason to look what may go, and what could not go is tried again."""

_MANY_EDITS: Final = 256
"""New edits after which the documents are kept, so that a reviewer need not wait for their replay."""

_REST: Final = 10.0
"""Seconds between two times that they are, at least."""

_NICENESS: Final = 5
"""Behind what people wait for, and not so far behind that a busy machine would let it sleep with the lock held."""

_CHILD: Final = (
    "import sys; sys.path.append(sys.argv.pop(1)); from mcptools.server.background_gc import main; sys.exit(main())"
)
"""With -P: Python must not import from the folder that the server stands in, where the agent may write."""

_LIMITS: Final = "limits"
_DOCUMENTS: Final = "documents"
"""The tasks of that process."""

_log: Final = logging.getLogger(__name__)


@dataclass(slots=True)
class _Watched:
    """A store, and when what is to be done about it."""

    look_at: float  # of the monotonic clock
    kept_at: float | None = None  # of the monotonic clock; None: it was not gone through yet
    size: int = -1  # bytes that it had afterwards


class BackgroundGc:
    """Looks after the stores that a server has opened, for as long as it is entered."""

    def __init__(self, directories: Directories) -> None:
        self._directories = directories
        self._watched: dict[str, _Watched] = {}
        self._kept: dict[str, tuple[int, float]] = {}  # by root: next edit and monotonic clock when documents were kept
        self._stopping = Event()
        self._thread = Thread(target=self._run, name="upkeep", daemon=True)

    def __enter__(self) -> Self:
        """Begin."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop, and with it what runs; that leaves the store as good as it is."""
        self._stopping.set()
        self._thread.join()

    # ---- inside

    def _run(self) -> None:
        while not self._stopping.wait(_TICK):
            for workspace in filter(lambda opened: opened.is_there, self._directories.opened()):
                try:
                    workspace.retention.close_superseded_files()
                    self._keep_documents(workspace)
                    self._look(workspace)
                except StoreReplaced:
                    continue  # a person put it aside, or another in its place, which the next call opens
                except (CasError, OSError) as error:
                    # The server goes on serving, and a person is told here and by `cas status`.
                    _log.warning("The limits of %s were not looked at: %s", workspace.root, error)
                    self._watched[workspace.root] = _Watched(time.monotonic() + _AGAIN)

    def _keep_documents(self, workspace: Workspace) -> None:
        """Have long histories kept as weaves, where many edits have come since."""
        edit, moment = workspace.history.next_edit(), time.monotonic()
        kept_edit, kept_at = self._kept.setdefault(workspace.root, (edit, moment - _REST))
        if edit - kept_edit >= _MANY_EDITS and moment - kept_at >= _REST:
            self._kept[workspace.root] = edit, moment
            self._run_apart(workspace.root, _DOCUMENTS)

    def _look(self, workspace: Workspace) -> None:
        """Look whether a store is over a limit, where it is time for that, and have it brought back."""
        watched = self._watched.get(workspace.root)
        if watched is not None and time.monotonic() < watched.look_at:
            return
        settings = {given.setting.name: given.value for given in Configuration(workspace.root).all()}
        every = settings["gc.every"]
        if not settings["gc.background"] or every is None:
            self._watched[workspace.root] = _Watched(time.monotonic() + _AGAIN)
            return
        pause = max(_TICK, every)
        if watched is None:
            self._watched[workspace.root] = _Watched(time.monotonic() + min(_FIRST_LOOK, pause))
            return
        size, limit = workspace.retention.stored_bytes(), settings["retention.max_size"]
        is_over = limit is not None and size > limit and size != watched.size
        is_later = watched.kept_at is None or time.monotonic() - watched.kept_at >= _AGAIN
        if is_over or (is_later and settings["retention.older_than"] is not None):
            self._run_apart(workspace.root, _LIMITS)
            watched.kept_at, watched.size = time.monotonic(), workspace.retention.stored_bytes()
        watched.look_at = time.monotonic() + pause

    def _run_apart(self, root: str, task: str) -> None:
        words = [sys.executable, "-P", "-c", _CHILD, str(Path(__file__).parents[2]), root, task]
        # Standard input and output are the protocol's.
        with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:  # noqa: S603 - ours
            while process.poll() is None:
                if self._stopping.wait(_TICK / 10):
                    process.terminate()


def main(argv: Sequence[str] | None = None) -> int:
    """Do one task for the store of one directory; return 1 where that was not to be."""
    root, task = sys.argv[1:] if argv is None else argv
    os.nice(_NICENESS)
    try:
        with Workspace.open(root, is_real=True) as workspace:
            if task == _DOCUMENTS:
                workspace.history.cache_documents()
            else:
                done = workspace.retention.collect(workspace.retention.limits())
                if done.index_damage:
                    _tell(f"the index of {root} was wrong and was made anew from the log: {done.index_damage}")
    except CasError as error:
        _tell(f"the {task} of {root} were not looked after: {error}")
        return 1
    return 0


def _tell(what: str) -> None:
    print(f"editledger: {what}", file=sys.stderr)  # noqa: T201 - its log
