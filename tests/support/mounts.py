"""File systems mounted for a test, if the machine permits that."""

import ctypes
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import which

__all__ = ["bind_mount", "can_mount", "can_mount_unreachable", "read_only", "small_disk", "unreachable_mount"]


@contextmanager
def small_disk(place: Path, mebibytes: int = 1) -> Iterator[None]:
    """Mount a file system of some MiB. Raises CalledProcessError where that is not permitted."""
    options = ["-o", f"size={mebibytes}m", "tmpfs", str(place)]
    subprocess.run(["mount", "-t", "tmpfs", *options], check=True, capture_output=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


@contextmanager
def bind_mount(folder: Path, place: Path) -> Iterator[None]:
    """Mount a folder at a second path. Raises CalledProcessError where that is not permitted."""
    subprocess.run(["mount", "--bind", str(folder), str(place)], check=True, capture_output=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Make a folder read-only, for root too. Raises CalledProcessError where that is not permitted."""
    with bind_mount(folder, folder):
        subprocess.run(["mount", "-o", "remount,ro,bind", str(folder)], check=True, capture_output=True)
        yield


@contextmanager
def unreachable_mount(place: Path) -> Iterator[None]:
    """Mount a file system whose server has ended: every access fails with ENOTCONN.

    Raises OSError where that is not permitted, or there is no FUSE.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    server = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    try:
        options = f"fd={server},rootmode=40000,user_id={os.geteuid()},group_id={os.getegid()}"
        if libc.mount(b"gone", os.fsencode(place), b"fuse", 0, options.encode()):
            raise OSError(ctypes.get_errno(), "mount")
    finally:
        os.close(server)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def can_mount_unreachable(place: Path) -> bool:
    """Return whether such a file system can be mounted here."""
    try:
        with unreachable_mount(place):
            return True
    except (AttributeError, OSError):
        return False


def can_mount(place: Path) -> bool:
    if which("mount") is None or os.geteuid() != 0:
        return False
    try:
        with small_disk(place):
            return True
    except subprocess.CalledProcessError:
        return False
