"""Founding: a workspace's store is made beside its place and moved there, so that it is there whole or not at all."""

import os
import stat
from contextlib import suppress
from typing import Final

from objstore.errors import StoreLinked, StoreNotRegular, StorePlaceTaken
from objstore.fs.confined_path import require_not_reserved
from objstore.fs.disk import Disk, failure, is_absence
from objstore.fs.nofollow import open_store_folder, read_store_file
from objstore.fs.reserved_names import IGNORE_NAME, LOG_NAME, STORE_NAME
from objstore.log.segment_files import is_segment
from objstore.store.object_store import create_store

__all__ = [
    "create_workspace",
    "creation_folder_name",
    "discard_creation_folder",
    "discard_leftover",
    "finish_creation",
    "is_creation_folder",
    "write_creation_proof",
]

_MAKING: Final = f"{STORE_NAME}."
"""How the name of a folder begins in which a store is being made; random digits follow."""

_MAKING_DIGITS: Final = 16
_HEX: Final = "0123456789abcdef"

_PROOF: Final = "making"
"""The name of the file that proves a folder to be one in which a store was made: it holds the folder's name."""

_LONGEST_PROOF: Final = 256
_OWN_MODE: Final = 0o700

_EVERYTHING: Final = b"*\n"


def create_workspace(root: str, disk: Disk, within: int | None = None) -> None:
    """Make the store's folder in `root`, whole or not at all. Does nothing where there is one, sound or not.

    A folder of that name gives way if it holds no more than `rm -rf .cas/*` leaves of a store. Anything else stays: it
    may be somebody's, or a store from which the segments were moved away.
    `within`: a descriptor of `root`, so that it is begun nowhere else, whatever has come in its place.
    Raises PathReserved within a store or a folder of version control, StorePlaceTaken, StoreLinked, PermissionRefused.
    """
    final = os.path.join(root, STORE_NAME)
    if _holds_store(final):
        return
    require_not_reserved(root)
    making = os.path.join(root, creation_folder_name())
    try:
        _require_vacant(final)
        disk.make_store_folder(making, within)  # nobody guesses its name, so the rest is made in it or nowhere
        write_creation_proof(making, making, disk)  # first, so that what a crash leaves is known
        disk.make_store_folder(os.path.join(making, "tmp"))
        disk.create(os.path.join(making, IGNORE_NAME), _EVERYTHING)
        disk.create(os.path.join(making, "lock"), b"")
        create_store(making, disk)
        _require_vacant(final, clearing=disk)
        disk.move_store_folder(making, final)
        if not is_creation_folder(os.path.basename(root)):
            finish_creation(root, disk)
    except (FileExistsError, FileNotFoundError, StorePlaceTaken):
        if not _holds_store(final):
            _require_vacant(final)
            raise
        # Another process was faster, and has cleared this one's away; its store is as good.
    finally:
        discard_creation_folder(making, disk)
    for name in filter(is_creation_folder, os.listdir(root)):
        discard_leftover(os.path.join(root, name), disk)
    disk.sync_directory(root)


def finish_creation(root: str, disk: Disk) -> None:
    """Remove the proof that the store in `root` came out of a folder in which it was made."""
    with suppress(FileNotFoundError):
        disk.remove_store_file(os.path.join(root, STORE_NAME, _PROOF))


def creation_folder_name() -> str:
    """Return a new name for a folder in which a store is made; what is left of one is cleared away by and by."""
    return _MAKING + os.urandom(_MAKING_DIGITS // 2).hex()


def is_creation_folder(name: str) -> bool:
    """Return whether a folder of this name is one in which a store is, or was, made."""
    digits = name.removeprefix(_MAKING)
    return name.startswith(_MAKING) and len(digits) == _MAKING_DIGITS and not set(digits) - set(_HEX)


def discard_leftover(path: str, disk: Disk) -> bool:
    """Remove what a process that was killed has left, with what is in it, and return whether it was that.

    A folder with such a name may be a person's own: only one that is proven to be left over is removed, which is one of
    this user that holds the proof written when it was made, a part of that and nothing else, or nothing yet.
    """
    try:
        is_left = _is_left(path)
    except OSError:
        return False  # it can't be looked into, or another process has cleared it away
    if is_left:
        discard_creation_folder(path, disk)
    return is_left


def _is_left(path: str) -> bool:
    found = os.lstat(path)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        return False
    names = os.listdir(path)
    if not names:
        return stat.S_IMODE(found.st_mode) == _OWN_MODE
    if os.path.basename(path) == STORE_NAME:
        return False
    name = os.path.basename(path).encode()
    for store in (path, os.path.join(path, STORE_NAME)):
        with suppress(OSError, StoreLinked, StoreNotRegular):
            if name in read_store_file(os.path.join(store, _PROOF), _LONGEST_PROOF).splitlines():
                return True
        with suppress(OSError, StoreLinked, StoreNotRegular):
            # A proof that is being written has its name with digits behind it, and nothing else is there yet.
            inner = os.listdir(store)
            if len(names) == len(inner) == 1 and inner[0].startswith(f"{_PROOF}."):
                part = read_store_file(os.path.join(store, inner[0]), _LONGEST_PROOF)
                if name.startswith(part) or part.startswith(name + b"\n"):
                    return True
    # Of an import or a salvage, in which the store itself was still being made.
    return all(
        (is_creation_folder(inner) or inner == STORE_NAME) and _is_left(os.path.join(path, inner)) for inner in names
    )


def write_creation_proof(store: str, making: str, disk: Disk) -> None:
    """Write into the folder of a store what proves that `making`, and a folder that this is in, were made for it."""
    names = [os.path.basename(path) for path in (making, os.path.dirname(making))]
    disk.create(
        os.path.join(store, _PROOF), "".join(f"{name}\n" for name in filter(is_creation_folder, names)).encode()
    )


def discard_creation_folder(path: str, disk: Disk) -> None:
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


def _holds_store(final: str) -> bool:
    """Return whether a folder holds a store, or may: what is wrong with one is said by who opens it."""
    if os.path.islink(final):
        return False
    try:
        return any(map(is_segment, os.listdir(os.path.join(final, LOG_NAME))))
    except OSError as error:
        return not is_absence(error)


def _require_vacant(final: str, clearing: Disk | None = None) -> None:
    """See that in a store's place is nothing, or a folder with nothing in it that anybody would miss.

    `clearing`: the disk to remove that with, so that a store can be moved over the folder. It is looked at and removed
    through the open folder: what is found at its path by then may be of a store that another process has made.
    Raises StorePlaceTaken, StoreLinked, PermissionRefused.
    """
    try:
        with open_store_folder(final) as folder:
            names = os.listdir(folder)
            if names and not (names == [IGNORE_NAME] and _ignores_everything(folder)):
                raise StorePlaceTaken(final)
            if clearing is not None:
                for name in names:
                    clearing.unlink(folder, name)
    except FileNotFoundError:
        return  # nothing is there, or another process has cleared it
    except NotADirectoryError as error:
        raise StorePlaceTaken(final, is_folder=False) from error
    except OSError as error:
        raise failure(error, final) from error


def _ignores_everything(folder: int) -> bool:
    """Return whether the ignore file in an open folder is the one that each store has."""
    try:
        fd = os.open(IGNORE_NAME, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return False
    try:
        found = os.fstat(fd)
        return stat.S_ISREG(found.st_mode) and os.read(fd, len(_EVERYTHING) + 1) == _EVERYTHING
    finally:
        os.close(fd)
