"""A server whose disk fails while a certain file exists, which is its first argument.

An empty file makes every sync fail; one with a number n, the n-th change of a user's file from then on.
"""

import sys
from pathlib import Path
from typing import Final

from mcptools.server import command
from objstore.disk.fs.disk import Disk
from objstore.values.errors import DiskFailed
from objstore.workspace import handle

FLAG: Final = Path(sys.argv.pop(1))


class FailingDisk(Disk):
    """A disk that fails while the file exists."""

    def sync(self, fd: int, name: str) -> None:
        if FLAG.exists() and not FLAG.read_text():
            raise DiskFailed(name, "Input/output error")
        super().sync(fd, name)

    def exchange(self, source_directory: int, source: str, directory: int, relative_name: str) -> bool:
        step(relative_name)
        return super().exchange(source_directory, source, directory, relative_name)

    def rename_new(self, source_directory: int, source: str, directory: int, relative_name: str) -> None:
        step(relative_name)
        super().rename_new(source_directory, source, directory, relative_name)

    def unlink(self, directory: int, relative_name: str) -> None:
        step(relative_name)
        super().unlink(directory, relative_name)


def step(relative_name: str) -> None:
    """Count a change of a user's file, and fail if it is the one that the file names."""
    if FLAG.exists() and (number := FLAG.read_text()):
        FLAG.write_text(str(int(number) - 1))
        if number == "1":
            raise DiskFailed(relative_name, "Input/output error")


def main() -> None:
    """Run the server."""
    vars(handle)["Disk"] = FailingDisk
    command.main()
