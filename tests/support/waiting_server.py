"""A server whose disk waits at a sync while a certain file exists: `python -m tests.support.waiting_server FILE DIR…`.

While a sync waits, it creates a file of the same name with the suffix `.reached`.
"""

import sys
import time
from pathlib import Path
from typing import Final

from mcptools.server.command import main
from objstore import workspace
from objstore.fs.disk import Disk

FLAG: Final = Path(sys.argv.pop(1))


class WaitingDisk(Disk):
    """A disk whose sync waits while the file exists."""

    def sync(self, fd: int, name: str) -> None:
        while FLAG.exists():
            FLAG.with_suffix(".reached").touch()
            time.sleep(0.01)
        super().sync(fd, name)


if __name__ == "__main__":
    vars(workspace)["Disk"] = WaitingDisk
    main()
