"""Make the folder of a scratch copy, outside the workspace, and remove it; sweep what killed processes left.

Each user has one folder for copies. A living copy is locked (`flock` on its folder) by the process that made it and by
the command that runs in it, so a folder that is not locked is left over from a process that died.
"""

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from objstore.disk.fs.disk import failure
from objstore.values.errors import PermissionRefused
from objstore.values.request_errors import NoPlaceForCopy

__all__ = ["Scratch", "scratch_folder"]

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Scratch:
    """The folder of one copy."""

    def __init__(self, path: str, fd: int) -> None:
        """Take the path of the folder, and the folder, open and locked."""
        self.path: Final = path
        self.fd: Final = fd


@contextmanager
def scratch_folder(root: str) -> Iterator[Scratch]:
    """Make an empty folder outside the workspace at `root`, and remove it with all that is in it.

    It is on the workspace's file system where one of the usual places is, so that blocks can be shared. First removes
    what processes that died have left. Raises NoPlaceForCopy, PermissionRefused, and what the disk raises.
    """
    from tempfile import mkdtemp

    place = _place(root)
    try:
        with _locked(place):
            _sweep(place)
            path = mkdtemp(prefix="copy-", dir=place)
            fd = os.open(path, _FOLDER)
            fcntl.flock(fd, fcntl.LOCK_EX)
    except OSError as error:
        raise failure(error, place) from error
    inner = os.path.join(path, os.path.basename(root) or "root")
    try:
        os.mkdir(inner, 0o755)
        inside = os.open(inner, _FOLDER)
        try:
            yield Scratch(inner, inside)
        finally:
            os.close(inside)
    finally:
        _remove(path)
        os.close(fd)


# ---- inside


def _place(root: str) -> str:
    """Return the user's folder for copies. It exists, is theirs, and others can't read it."""
    temporary = os.environ.get("TMPDIR") or "/tmp"  # noqa: S108 - the folder below is ours alone, and checked
    caches = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    real = os.path.realpath(root)
    candidates = [
        place
        for place in map(os.path.realpath, (temporary, caches))
        if os.path.isdir(place) and os.access(place, os.W_OK | os.X_OK) and os.path.commonpath([place, real]) != real
    ]
    if not candidates:
        raise NoPlaceForCopy(root)
    device = os.stat(root).st_dev
    base = next((place for place in candidates if os.stat(place).st_dev == device), candidates[0])
    place = os.path.join(base, f"editledger-copies-{os.geteuid()}")
    with suppress(FileExistsError):
        os.mkdir(place, 0o700)
    found = os.lstat(place)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise PermissionRefused(place)
    os.chmod(place, 0o700)
    return place


@contextmanager
def _locked(place: str) -> Iterator[None]:
    fd = os.open(place, _FOLDER)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _sweep(place: str) -> None:
    for entry in os.scandir(place):
        if not entry.name.startswith("copy-") or not entry.is_dir(follow_symlinks=False):
            continue
        with suppress(OSError):
            fd = os.open(entry.path, _FOLDER)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(entry.path)
            finally:
                os.close(fd)


def _remove(path: str) -> None:
    """Remove a folder and all in it, without following a link, even where a command took away its own permissions."""
    from shutil import rmtree

    # Twice: what a command still writes while it is being killed may appear after its folder was listed.
    for _ in range(2):
        for folder, names, _ in os.walk(path):
            for name in names:
                inner = os.path.join(folder, name)
                if not os.path.islink(inner) and not os.access(inner, os.R_OK | os.W_OK | os.X_OK):
                    with suppress(OSError):
                        os.chmod(inner, 0o700)
        rmtree(path, ignore_errors=True)
        if not os.path.lexists(path):
            return
