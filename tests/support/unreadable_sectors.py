"""A disk with sectors that can't be read: what pread(2) says of files on it."""

import errno
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

__all__ = ["SECTOR", "unreadable"]

SECTOR: Final = 4096


@contextmanager
def unreadable(path: Path, sectors: Collection[int]) -> Iterator[None]:
    """Let no sector of these be read of the file, by anybody in this process."""
    inode, pread = path.stat().st_ino, os.pread

    def failing(fd: int, size: int, offset: int) -> bytes:
        asked = range(offset // SECTOR, (offset + max(size, 1) - 1) // SECTOR + 1)
        if os.fstat(fd).st_ino == inode and any(sector in asked for sector in sectors):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return pread(fd, size, offset)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "pread", failing)
        yield
