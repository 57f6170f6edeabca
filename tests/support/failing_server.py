"""A server whose disk fails to sync while a certain file exists: `python -m tests.support.failing_server FILE DIR…`."""

import sys
from pathlib import Path
from typing import Final

from mcptools.server.command import main
from objstore import workspace
from objstore.errors import DiskFailed
from objstore.fs.disk import Disk

FLAG: Final = Path(sys.argv.pop(1))


class FailingDisk(Disk):
    """A disk whose sync fails while the file exists."""

    def sync(self, fd: int, name: str) -> None:
        if FLAG.exists():
            raise DiskFailed(name, "Input/output error")
        super().sync(fd, name)


if __name__ == "__main__":
    vars(workspace)["Disk"] = FailingDisk
    main()
