"""Upkeep: keeps the stores of the served directories within their limits while the server works.

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
from threading import Event, Thread
from typing import Final

from mcptools.directories import Directories
from objstore import CasError, Configuration, Workspace

__all__ = ["Upkeep", "main"]

_FIRST_LOOK: Final = 15.0
"""Seconds after the start; nothing is so urgent that it should stand in the way of that."""

_AGAIN: Final = 3600.0
"""Seconds after which age alone is a reason to look what may go, and what could not go is tried again."""

_NICENESS: Final = 5
"""Behind what people wait for, and not so far behind that a busy machine would let it sleep with the lock held."""

_log: Final = logging.getLogger(__name__)


@dataclass(slots=True)
class _Kept:
    """When a store was last gone through, and what it came to."""

    moment: float  # of the monotonic clock
    size: int  # bytes of the store, afterwards


class Upkeep:
    """Looks after the stores that a server has opened, from its start to its end."""

    def __init__(self, directories: Directories) -> None:
        self._directories = directories
        self._kept: dict[str, _Kept] = {}
        self._stopping = Event()
        self._thread = Thread(target=self._run, name="upkeep", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """Stop, and with it what runs; that leaves the store as good as before."""
        self._stopping.set()
        self._thread.join()

    # ---- inside

    def _run(self) -> None:
        pause = _FIRST_LOOK
        while not self._stopping.wait(pause):
            pauses = []
            for workspace in self._directories.opened():
                try:
                    pauses.append(self._look(workspace))
                except (CasError, OSError) as error:
                    # The server goes on serving; a person is told by `cas status`, and here.
                    _log.warning("The limits of %s were not looked at: %s", workspace.root, error)
            pause = min(pauses, default=_FIRST_LOOK)

    def _look(self, workspace: Workspace) -> float:
        """Look whether a store is over a limit, and have it brought back; return when to look again, in seconds."""
        settings = {given.setting.name: given.value for given in Configuration(workspace.root).all()}
        every = settings["gc.every"]
        if not settings["gc.background"] or every is None:
            return _AGAIN
        size, limit = workspace.stored_bytes(), settings["retention.max_size"]
        kept = self._kept.get(workspace.root)
        is_later = kept is None or time.monotonic() - kept.moment >= _AGAIN
        over = limit is not None and size > limit and (kept is None or size != kept.size)
        if over or (is_later and settings["retention.older_than"] is not None):
            self._keep(workspace.root)
            self._kept[workspace.root] = _Kept(time.monotonic(), workspace.stored_bytes())
        return float(every)

    def _keep(self, root: str) -> None:
        # -P: Python must not import from the folder that the server stands in, where the agent writes. Standard input
        # and output are the protocol's.
        words = [sys.executable, "-P", "-m", __name__, root]
        with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:  # noqa: S603 - ours
            while process.poll() is None:
                if self._stopping.wait(0.1):
                    process.terminate()


def main(argv: Sequence[str] | None = None) -> int:
    """Bring the store of one directory back within its limits; return 1 where that was not to be."""
    (root,) = sys.argv[1:] if argv is None else argv
    os.nice(_NICENESS)
    try:
        with Workspace.open(root) as workspace:
            workspace.collect(workspace.retention_limits())
    except CasError as error:
        print(f"editledger: {root} was not brought back within its limits: {error}", file=sys.stderr)  # noqa: T201 - its log
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
