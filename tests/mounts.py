"""File systems of a test's own, where the machine lets one be mounted."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import which

__all__ = ["may_mount", "mounted_again", "small_disk"]


@contextmanager
def small_disk(place: Path) -> Iterator[None]:
    """Mount a file system of 1 MiB. Raises CalledProcessError where that is not permitted."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)], check=True, capture_output=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


@contextmanager
def mounted_again(folder: Path, place: Path) -> Iterator[None]:
    """Mount a folder at another place too. Raises CalledProcessError where that is not permitted."""
    subprocess.run(["mount", "--bind", str(folder), str(place)], check=True, capture_output=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def may_mount(place: Path) -> bool:
    if which("mount") is None or os.geteuid() != 0:
        return False
    try:
        with small_disk(place):
            return True
    except subprocess.CalledProcessError:
        return False
