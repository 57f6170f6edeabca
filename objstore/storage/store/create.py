"""Create a workspace's store next to its final path and move it there, so that it exists whole or not at all."""

import os
import stat
from contextlib import suppress
from typing import Final

from objstore.disk.fs.confined_path import require_not_reserved
from objstore.disk.fs.disk import Disk, failure, is_absence
from objstore.disk.fs.nofollow import open_store_folder, read_store_file
from objstore.disk.fs.reserved_names import IGNORE_NAME, LOG_NAME, STORE_NAME
from objstore.disk.fs.store_owner import owner_by_sudo
from objstore.storage.log.segment_files import is_segment
from objstore.storage.store.object_store import create_store
from objstore.values.errors import FileExists, StoreLinked, StoreNotRegular, StorePlaceTaken

__all__ = [
    "PROOF",
    "create_workspace",
    "creation_folder_name",
    "discard_creation_folder",
    "discard_leftover",
    "finish_creation",
    "give_to_owner_above",
    "is_creation_folder",
    "move_created",
    "owner_of_given",
    "write_creation_proof",
]

_CREATION_PREFIX: Final = f"{STORE_NAME}."
"""Prefix of the name of a folder in which a store is being created; random digits follow."""

_CREATION_DIGITS: Final = 16
_HEX: Final = "0123456789abcdef"

PROOF: Final = "making"
"""Name of the file that proves that a folder is a creation folder: it holds the folder's name."""

_LONGEST_PROOF: Final = 256
_OWN_MODE: Final = 0o700

_EVERYTHING: Final = b"*\n"
_LOCKS: Final = frozenset({"lock", "lock.queue"})
"""Empty files that a process which waits for the lock creates again, with their folder, when the store is removed."""


def create_workspace(root: str, disk: Disk, within: int | None = None) -> None:
    """Create the store's folder in `root`, whole or not at all. Do nothing if there is a store, damaged or not.

    An existing folder named `.cas` is replaced if it holds no more than `rm -rf .cas/*` leaves of a store, and what a
    process that waits for the lock creates there. Any other folder is kept: it may be someone's, or a store whose
    segments were moved away. `within` is a descriptor of `root`, so that the creation starts in that very folder, even
    if another one has taken its path.

    Raises PathReserved within a store or a folder of version control, StorePlaceTaken, StoreLinked, PermissionRefused,
    DiskFailed.
    """
    final = os.path.join(root, STORE_NAME)
    if _holds_store(final):
        return
    require_not_reserved(root)
    making = os.path.join(root, creation_folder_name())
    try:
        _require_vacant(final)
        disk.make_creation_folder(making, within)  # its name is unguessable, so the paths below lead here or nowhere
        write_creation_proof(making, making, disk)  # first, so that what a crash leaves is known
        disk.make_store_folder(os.path.join(making, "tmp"))
        disk.create(os.path.join(making, IGNORE_NAME), _EVERYTHING)
        disk.create(os.path.join(making, "lock"), b"")
        create_store(making, disk)
        _require_vacant(final, clearing=disk)
        owner = owner_by_sudo(root)
        with open_store_folder(making) as made:
            if owner is not None:
                disk.give(made, owner, with_itself=False)
            disk.move_store_folder(making, final)
            if owner is not None:
                disk.give(made, owner, with_itself=True)
        if not is_creation_folder(os.path.basename(root)):
            finish_creation(root, disk)
    except (FileExistsError, FileNotFoundError, StorePlaceTaken):
        if not _holds_store(final):
            _require_vacant(final)
            raise
        # Another process was faster and removed this one's folder; its store is as good.
    finally:
        discard_creation_folder(making, disk)
    for name in filter(is_creation_folder, os.listdir(root)):
        discard_leftover(os.path.join(root, name), disk)
    disk.sync_directory(root)


def give_to_owner_above(making: str, disk: Disk) -> None:
    """Give what root has made in a creation folder to the owner of the folder that it will be moved to."""
    above = os.stat(os.path.dirname(making))
    if os.geteuid() == 0 and above.st_uid != 0:
        with open_store_folder(making) as made:
            disk.give(made, above, with_itself=False)


def owner_of_given(root: str) -> int | None:
    """Return the user whose what root makes in a folder is; None: this process isn't root's."""
    return os.stat(root).st_uid if os.geteuid() == 0 else None


def move_created(source: str, target: str, name: str, disk: Disk) -> None:
    """Move a file or a folder from one folder to another. Raises FileExists if the name is taken there."""
    path = os.path.join(source, name)
    try:
        if os.path.isdir(path):
            disk.move_store_folder(path, os.path.join(target, name))
            return
        folders = [os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC) for folder in (source, target)]
        try:
            disk.rename_new(folders[0], name, folders[1], name)
        finally:
            for folder in folders:
                os.close(folder)
    except FileExistsError as error:
        raise FileExists(os.path.join(target, name)) from error


def finish_creation(root: str, disk: Disk) -> None:
    """Remove the proof that the store in `root` was created in a creation folder."""
    with suppress(FileNotFoundError):
        disk.remove_store_file(os.path.join(root, STORE_NAME, PROOF))


def creation_folder_name() -> str:
    """Return a new name for a creation folder. Later creations remove what is left of it."""
    return _CREATION_PREFIX + os.urandom(_CREATION_DIGITS // 2).hex()


def is_creation_folder(name: str) -> bool:
    """Return whether a folder's name is that of a creation folder."""
    digits = name.removeprefix(_CREATION_PREFIX)
    return name.startswith(_CREATION_PREFIX) and len(digits) == _CREATION_DIGITS and not set(digits) - set(_HEX)


def discard_leftover(path: str, disk: Disk) -> bool:
    """Remove a creation folder that a killed process left, with its content; return whether it is such a leftover.

    A person's own folder may have such a name. So only a proven leftover is removed: a folder of this user that holds
    the proof written when it was created, or a part of the proof and nothing else, or nothing yet.
    """
    try:
        is_leftover = _is_leftover(path)
    except OSError:
        return False  # the folder is unreadable, or another process has removed it
    if is_leftover:
        discard_creation_folder(path, disk)
    return is_leftover


def _is_leftover(path: str) -> bool:
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
            if name in read_store_file(os.path.join(store, PROOF), _LONGEST_PROOF).splitlines():
                return True
        with suppress(OSError, StoreLinked, StoreNotRegular):
            # An unfinished proof has digits after its name, and is the only file.
            inner = os.listdir(store)
            if len(names) == len(inner) == 1 and inner[0].startswith(f"{PROOF}."):
                part = read_store_file(os.path.join(store, inner[0]), _LONGEST_PROOF)
                if name.startswith(part) or part.startswith(name + b"\n"):
                    return True
    # The folder of an import or a salvage, in which the store itself was still being created.
    return all(
        (is_creation_folder(inner) or inner == STORE_NAME) and _is_leftover(os.path.join(path, inner))
        for inner in names
    )


def write_creation_proof(store: str, making: str, disk: Disk) -> None:
    """Write the file that proves that `making`, and a creation folder around it, were made for the store in `store`."""
    names = [os.path.basename(path) for path in (making, os.path.dirname(making))]
    disk.create(os.path.join(store, PROOF), "".join(f"{name}\n" for name in filter(is_creation_folder, names)).encode())


def discard_creation_folder(path: str, disk: Disk) -> None:
    """Remove a creation folder with its content; if it is a link, remove only the link."""
    if os.path.islink(path):
        with suppress(FileNotFoundError):
            disk.remove_store_file(path)
        return
    for folder, _, names in os.walk(path, topdown=False):
        for name in names:
            with suppress(FileNotFoundError):
                disk.remove_store_file(os.path.join(folder, name))
        # A process that still creates a store here adds files, and removes them when it finds itself too late.
        with suppress(FileNotFoundError, FileExistsError):
            disk.remove_store_folder(folder)


def _holds_store(final: str) -> bool:
    """Return whether a folder holds a store, damaged or not. Raises PermissionRefused, DiskFailed."""
    if os.path.islink(final):
        return False
    log = os.path.join(final, LOG_NAME)
    try:
        return any(map(is_segment, os.listdir(log)))
    except OSError as error:
        if is_absence(error):
            return False
        raise failure(error, log) from error


def _require_vacant(final: str, clearing: Disk | None = None) -> None:
    """Check that nothing has the store's path, or a folder without anything that a person would miss.

    `clearing`: the disk to empty that folder with, so that a store can be moved over it. The folder is inspected and
    emptied through its descriptor, because by then its path may lead to a store that another process has created.
    Raises StorePlaceTaken, StoreLinked, PermissionRefused.
    """
    try:
        with open_store_folder(final) as folder:
            names = os.listdir(folder)
            if not all(_is_left_of_store(folder, name) for name in names):
                raise StorePlaceTaken(final)
            if clearing is not None:
                for name in names:
                    clearing.unlink(folder, name)
    except FileNotFoundError:
        return  # the path is free, or another process has just freed it
    except NotADirectoryError as error:
        raise StorePlaceTaken(final, is_folder=False) from error
    except OSError as error:
        raise failure(error, final) from error


def _is_left_of_store(folder: int, name: str) -> bool:
    """Return whether a file in an open folder is one that is left, or created again, when a store is removed."""
    if name == IGNORE_NAME:
        return _ignores_everything(folder)
    if name not in _LOCKS:
        return False
    found = os.lstat(name, dir_fd=folder)
    return stat.S_ISREG(found.st_mode) and not found.st_size


def _ignores_everything(folder: int) -> bool:
    """Return whether the ignore file in an open folder is the one that every store has."""
    try:
        fd = os.open(IGNORE_NAME, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return False
    try:
        found = os.fstat(fd)
        return stat.S_ISREG(found.st_mode) and os.read(fd, len(_EVERYTHING) + 1) == _EVERYTHING
    finally:
        os.close(fd)
