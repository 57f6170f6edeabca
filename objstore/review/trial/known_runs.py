"""Keep how commands ended on which files, so that no search runs one twice, and a broken-off search goes on.

The file is derived data: it can be deleted at any time. A line is added after each run, in one write, so searches that
run at once don't lose each other's lines, and a process that dies loses at most the run that it was in.
"""

import os
from contextlib import suppress
from typing import Final

from objstore.disk.fs.nofollow import open_store_folder
from objstore.disk.fs.reserved_names import RUNS_NAME, STORE_NAME
from objstore.model.ids import blob_id
from objstore.storage.transaction.journal import Journal

__all__ = ["KnownRuns"]

_MOST: Final = 1 << 20
"""Bytes of the file above which it is begun again."""

_FIELDS: Final = 2


class KnownRuns:
    """The runs of one command."""

    def __init__(self, journal: Journal, command: str) -> None:
        """Read the file. `command`: the command with all that its result depends on, besides the files."""
        folder, self._name = os.path.split(RUNS_NAME)
        self._folder: Final = os.path.join(journal.tree.root, STORE_NAME, folder)
        self._command: Final = command.encode("utf-8", "surrogateescape")
        self._statuses: dict[str, int] = {}
        with suppress(OSError), open_store_folder(self._folder) as place:
            fd = os.open(self._name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=place)
            with os.fdopen(fd, "rb") as file:
                # What follows the last line end is the part of a line that was written, or read.
                for line in file.read(_MOST).split(b"\n")[:-1]:
                    fields = line.decode("ascii", "replace").split()
                    if len(fields) == _FIELDS and fields[1].isdecimal():
                        self._statuses[fields[0]] = int(fields[1])

    def status(self, files: str) -> int | None:
        """Return how the command ended on the files with this key (None: it did not run on them)."""
        return self._statuses.get(self._key(files))

    def note(self, files: str, status: int) -> None:
        """Keep how the command ended on the files with this key. If that fails, it may run again."""
        key = self._key(files)
        self._statuses[key] = status
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with suppress(FileExistsError, FileNotFoundError, PermissionError):
            os.mkdir(self._folder, 0o700)
        with suppress(OSError), open_store_folder(self._folder) as place:
            fd = os.open(self._name, flags, 0o600, dir_fd=place)
            try:
                if os.fstat(fd).st_size > _MOST:
                    os.ftruncate(fd, 0)
                os.write(fd, f"{key} {status}\n".encode())
            finally:
                os.close(fd)

    def _key(self, files: str) -> str:
        return blob_id(files.encode() + b"\0" + self._command).hex()
