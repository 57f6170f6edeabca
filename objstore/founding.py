"""Founding: a workspace's store is made beside its place and moved there, so that it is there whole or not at all."""

import os
from contextlib import suppress

from objstore.annotations import Final
from objstore.disk import Disk
from objstore.names import STORE_NAME
from objstore.paths import see_free
from objstore.store import create_store

__all__ = ["create_workspace", "discard_making", "is_making", "making_name"]

_MAKING: Final = f"{STORE_NAME}."
"""How the name of a folder begins in which a store is being made; random digits follow."""

_MAKING_DIGITS: Final = 16
_HEX: Final = "0123456789abcdef"


def create_workspace(root: str, disk: Disk, within: int | None = None) -> None:
    """Make the store's folder in `root`, whole or not at all. Does nothing where there is one.

    `within`: a descriptor of `root`, so that it is begun nowhere else, whatever has come in its place.
    Raises PathReserved within a store or a folder of version control.
    """
    final = os.path.join(root, STORE_NAME)
    if os.path.isdir(final):
        return
    see_free(root)
    making = os.path.join(root, making_name())
    try:
        disk.make_store_folder(making, within)  # nobody guesses its name, so the rest is made in it or nowhere
        disk.make_store_folder(os.path.join(making, "tmp"))
        disk.create(os.path.join(making, ".gitignore"), b"*\n")
        disk.create(os.path.join(making, "lock"), b"")
        create_store(making, disk)
        disk.move_store_folder(making, final)
    except (FileExistsError, FileNotFoundError):
        if not os.path.isdir(final):
            raise
        # Another process was faster, and has cleared this one's away; its store is as good.
    finally:
        discard_making(making, disk)
    for name in filter(is_making, os.listdir(root)):
        discard_making(os.path.join(root, name), disk)
    disk.sync_directory(root)


def making_name() -> str:
    """Return a new name for a folder in which a store is made; what is left of one is cleared away by and by."""
    return _MAKING + os.urandom(_MAKING_DIGITS // 2).hex()


def is_making(name: str) -> bool:
    """Return whether a folder of this name is one in which a store is, or was, made."""
    digits = name.removeprefix(_MAKING)
    return name.startswith(_MAKING) and len(digits) == _MAKING_DIGITS and not set(digits) - set(_HEX)


def discard_making(path: str, disk: Disk) -> None:
    """Remove a folder in which a store was made, with what is in it; of a link of such a name, the link alone."""
    if os.path.islink(path):
        with suppress(FileNotFoundError):
            disk.remove_store_file(path)
        return
    for folder, _, names in os.walk(path, topdown=False):
        for name in names:
            with suppress(FileNotFoundError):
                disk.remove_store_file(os.path.join(folder, name))
        # Who is still at it puts something in again, and clears it away when it comes too late.
        with suppress(FileNotFoundError, FileExistsError):
            disk.remove_store_folder(folder)
