"""A server whose disk waits at a sync while a certain file exists: its first argument.

While a sync waits, it creates a file of the same name with the suffix `.reached`.
"""

import sys
import time
from pathlib import Path

from mcptools.server import command
from objstore.disk.fs.disk import Disk
from objstore.workspace import handle

__all__ = ["main"]


def main() -> None:
    """Run the server."""
    flag = Path(sys.argv.pop(1))

    class WaitingDisk(Disk):
        """A disk whose sync waits while the file exists."""

        def sync(self, fd: int, name: str) -> None:
            while flag.exists():
                flag.with_suffix(".reached").touch()
                time.sleep(0.01)
            super().sync(fd, name)

    vars(handle)["Disk"] = WaitingDisk
    command.main()
