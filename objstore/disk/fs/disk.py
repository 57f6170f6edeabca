"""Change files: one method for each operation, so that tests can check the order of writes and let each one fail.

A test's subclass that fails at the n-th call shows what a crash at that point leaves. Nothing else in the package
writes to the log or to the user's files, with these exceptions: SQLite writes the index; the lock and the applied
marker are created and opened where they are held; and an import, a salvage, and the settings create the folders that
they need.
"""

import errno
import fcntl
import os
import re
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from operator import attrgetter
from typing import Final, TypeAlias

from objstore.model.basic_types import settable_mode
from objstore.values.errors import CasError, DiskFailed, DiskFull, PathInvalid, PathUnreachable, PermissionRefused

__all__ = [
    "Disk",
    "MountId",
    "Pieces",
    "failure",
    "give_to_owner_of",
    "giving_away",
    "is_absence",
    "is_folder",
    "is_made",
    "is_same_file",
    "mount_of",
    "new_file_mode",
    "open_or_create",
    "reaching",
    "read_all",
    "syncing",
]

Pieces: TypeAlias = bytes | Iterable[bytes]
"""The content of a file: one bytes object, or several of them, so that it need not be in memory as a whole."""

MountId: TypeAlias = tuple[int, int]
"""The device of a mount, and its number; 0: the system doesn't say it."""

_MOUNT_ID: Final = rb"(?m)^mnt_id:\s*(\d+)"

_HOLE: Final = 1 << 16
"""Bytes of the shortest hole in a file that is written."""

_HOLE_BYTES: Final = bytes(_HOLE)

_NO_SPACE: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_NO_PERMISSION: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_ABSENT: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG})
_UNREACHABLE: Final = frozenset(
    {errno.EIO, errno.ENODEV, errno.ENXIO, errno.ESTALE, errno.ENOTCONN, errno.ETIMEDOUT, errno.EHOSTDOWN}
)
_NO_LINKS: Final = frozenset({errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS})
_NO_FLUSH: Final = frozenset({errno.ENOTSUP, errno.EINVAL, errno.ENOTTY})
_NO_SYNC: Final = frozenset({errno.EINVAL, errno.ENOTSUP, errno.ENOSYS, errno.EBADF})
"""Errors of file systems that can't sync a folder."""

_CHUNK: Final = 1 << 20
_SYNCED_AT_ONCE: Final = 1 << 20
"""Bytes of a long store file that are synced together. Another process that syncs a few bytes waits for all of them."""

_write_signature: Final = attrgetter("st_ino", "st_dev", "st_size", "st_mtime_ns", "st_ctime_ns")
"""The parts of a file's status that change when something is written to it or it is replaced."""

_ACCESS_LIST: Final = "system.posix_acl_access"
_DEFAULT_LIST: Final = "system.posix_acl_default"
"""The extended attributes with a file's access control list, and with the one that new files of a folder get."""

_CARRIED_PREFIXES: Final = ("user.", _ACCESS_LIST)
"""Prefixes of the extended attributes that a file keeps when its content is replaced."""

_GIVING_SECONDS: Final = 5.0
"""How long root waits for another process of root that creates a folder: its owner could hold the lock for ever."""

_INSPECT_FLAGS: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW
_TEMPORARY_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW


def mount_of(folder: int) -> MountId:
    """Return the mount of an open folder: a file can be renamed from one folder to another if both have the same.

    A folder that is bound to another place is on the same device there, and on another mount.
    """
    found = None
    with suppress(OSError), open(f"/proc/self/fdinfo/{folder}", "rb") as file:
        found = re.search(_MOUNT_ID, file.read())
    return os.fstat(folder).st_dev, int(found[1]) if found else 0


def failure(error: OSError, path: str) -> CasError:
    """Return the error of ours for an OSError about `path`: DiskFull, PermissionRefused or DiskFailed."""
    if error.errno in _NO_SPACE:
        return DiskFull(path)
    if error.errno in _NO_PERMISSION:
        return PermissionRefused(path)
    return DiskFailed(path, error.strerror or str(error))


def is_absence(error: OSError) -> bool:
    """Return whether an error means that nothing of the wanted name and kind exists.

    No other error allows that conclusion: the process may have too many open files, or the disk may fail.
    """
    return error.errno in _ABSENT


def is_folder(path: str) -> bool:
    """Return whether a folder is at `path`, as far as that may be seen. Raises DiskFailed where the disk can't say."""
    try:
        return stat.S_ISDIR(os.stat(path).st_mode)
    except ValueError:
        return False  # no name has a NUL byte
    except OSError as error:
        if is_absence(error) or error.errno in _NO_PERMISSION:
            return False
        raise failure(error, path) from error


def syncing(sync: Callable[[int], None], flush: int | None) -> Callable[[int], None]:
    """Return the function that makes an open file's bytes survive a power cut.

    That is `sync`, unless the system has a stronger fcntl(2) command, `flush`: on macOS, fsync(2) hands the bytes to
    the drive, which may keep them in its cache, and F_FULLFSYNC empties that cache. SQLite and git use it, too.
    """
    if flush is None:
        return sync

    def flushed(fd: int) -> None:
        try:
            fcntl.fcntl(fd, flush)
        except OSError as error:
            # Shared folders don't support it. Any other error is a failed sync, and a second sync would prove nothing.
            if error.errno not in _NO_FLUSH:
                raise
            sync(fd)

    return flushed


_FLUSH: Final[int | None] = getattr(fcntl, "F_FULLFSYNC", None)
_sync_data: Final = syncing(getattr(os, "fdatasync", os.fsync), _FLUSH)
_sync_names: Final = syncing(os.fsync, _FLUSH)


class Disk:
    """The operations of one process on the real file system.

    Every method raises DiskFull, PermissionRefused or DiskFailed in place of OSError, except FileNotFoundError and
    FileExistsError, which report what was found rather than a failure of the disk.
    """

    # ---- the store's own files

    def append(self, fd: int, content: bytes, name: str) -> None:
        """Write all of `content` at the end of the file that `fd` has open for appending."""
        with _Translated(name):
            _write_all(fd, content)

    def overwrite(self, fd: int, content: bytes, offset: int, name: str) -> None:
        """Write all of `content` at `offset`, in bytes."""
        with _Translated(name):
            written = 0
            while written < len(content):
                written += os.pwrite(fd, content[written:], offset + written)

    def sync(self, fd: int, name: str) -> None:
        """Make what was written to `fd` survive a power cut."""
        with _Translated(name):
            _sync_data(fd)

    def truncate(self, fd: int, size: int, name: str) -> None:
        """Cut the file to `size` bytes."""
        with _Translated(name):
            os.ftruncate(fd, size)

    def create(self, path: str, content: Pieces, mode: int = 0o600) -> None:
        """Create a file with `content`: whole and durable together with its name, or not at all.

        Raises FileExistsError if the name is taken.
        """
        temporary = f"{path}.{os.urandom(8).hex()}"
        with _Translated(path):
            fd = os.open(temporary, _TEMPORARY_FLAGS, settable_mode(mode))
            try:
                give_to_owner_of(fd, os.path.dirname(path) or ".")
                _write_pieces(fd, content, sync_every=_SYNCED_AT_ONCE)
                _sync_data(fd)
            except BaseException:
                with suppress(OSError):
                    os.unlink(temporary)
                raise
            finally:
                os.close(fd)
            folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                _rename_new(folder, os.path.basename(temporary), folder, os.path.basename(path))
            except BaseException:
                with suppress(OSError):
                    os.unlink(temporary)
                raise
            finally:
                os.close(folder)
            self.sync_directory(os.path.dirname(path) or ".")

    def reserve(self, path: str, size: int) -> None:
        """Create a file of `size` bytes that only takes up the space. Raises FileExistsError as `create`."""
        with _Translated(path):
            fd = os.open(path, _TEMPORARY_FLAGS, 0o600)
            try:
                give_to_owner_of(fd, os.path.dirname(path) or ".")
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(fd, 0, size)
                else:
                    _write_all(fd, bytes(size))
            except BaseException:
                with suppress(OSError):
                    os.unlink(path)
                raise
            finally:
                os.close(fd)

    def free_bytes(self, folder: str | int, name: str) -> int:
        """Return how many bytes this user may still write to a folder's file system.

        `folder`: a path or a descriptor.
        """
        with _Translated(name):
            found = os.statvfs(folder)
            return found.f_bavail * found.f_frsize

    def set_times(self, folder: int, name: str, accessed: int, modified: int) -> None:
        """Set a file's times, in nanoseconds since 1970-01-01 UTC; never through a link."""
        with _Translated(name):
            os.utime(name, ns=(accessed, modified), dir_fd=folder, follow_symlinks=False)

    def make_creation_folder(self, path: str, within: int | None = None) -> None:
        """Create a folder that only this user may enter. `within`: the open folder to create it in (None: by its path).

        Raises FileExistsError if the name is taken.
        """
        with _Translated(path):
            os.mkdir(path if within is None else os.path.basename(path), 0o700, dir_fd=within)

    def make_store_folder(self, path: str) -> None:
        """Create a folder of the store, for the store's owner. Raises FileExistsError if the name is taken."""
        with _Translated(path):
            os.mkdir(path, 0o700)
            if os.geteuid() == 0:
                _give_new_folder(path, None, os.stat(os.path.dirname(path) or "."))

    def give(self, folder: int, like: os.stat_result, *, with_itself: bool) -> None:
        """Give what is in an open folder to the owner of `like`; `with_itself`: the folder too.

        Only this user may be able to enter the folder before: otherwise another one could put other files there.
        """
        with _Translated("."):
            for _, folders, names, fd in os.fwalk(".", topdown=False, follow_symlinks=False, dir_fd=folder):
                for name in (*folders, *names):
                    os.chown(name, like.st_uid, like.st_gid, dir_fd=fd, follow_symlinks=False)
            if with_itself:
                os.fchown(folder, like.st_uid, like.st_gid)

    def move_store_folder(self, source: str, path: str) -> None:
        """Rename a folder of the store. Raises FileExistsError if a folder with entries has the new name."""
        with _Translated(path), _tolerate_nonempty_folder(path):
            os.rename(source, path)

    def remove_store_file(self, path: str) -> None:
        """Remove a file of the store. Raises FileNotFoundError if it is already gone."""
        with _Translated(path):
            os.unlink(path)

    def remove_store_folder(self, path: str) -> None:
        """Remove an empty folder of the store.

        Raises FileNotFoundError if it is already gone, and FileExistsError if it has entries.
        """
        with _Translated(path), _tolerate_nonempty_folder(path):
            os.rmdir(path)

    def sync_directory(self, path: str) -> None:
        """Make the names in the folder survive a power cut."""
        with _Translated(path):
            fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                _sync_names(fd)
            finally:
                os.close(fd)

    # ---- the user's files; `directory` is an open folder, so that no link on the way can lead elsewhere

    def stage(self, directory: int, content: Pieces, like: os.stat_result | None, mode: int, name: str) -> str:
        """Write `content` to a new file in `directory` and return its name there.

        The file gets `mode`, if the file system keeps modes, without setuid and setgid, and, where this process may set
        them, owner and group of `like`: the file that it will replace, or the folder that it is made for (None: this
        process's own; root's is the folder's that it is staged in). The system begins to write the bytes out;
        `sync_staged` waits for them.
        """
        with _staged(directory, name) as (fd, temporary):
            _write_with_holes(fd, content)
            _own(fd, like, directory)
            _set_mode(fd, settable_mode(mode))
            if hasattr(os, "posix_fadvise"):
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)  # begins to write, and drops nothing unwritten
            if not mode & stat.S_IRUSR:
                _sync_names(fd)  # it can't be opened again to be synced
        return temporary

    def stage_derived(self, directory: int, content: bytes, name: str) -> str:
        """Write `content` to a new file in `directory` for `replace_derived`, and return its name there.

        The system writes the bytes out when it likes, or never if another file replaces this one before.
        """
        with _staged(directory, name) as (fd, temporary):
            _write_all(fd, content)
            _own(fd, None, directory)
            _set_mode(fd, 0o600)
        return temporary

    def sync_staged(self, directory: int, staged: str, name: str) -> None:
        """Make a staged file, its mode included, survive a power cut."""
        with _Translated(name):
            try:
                fd = os.open(staged, _INSPECT_FLAGS, dir_fd=directory)
            except PermissionError:
                return  # one that no one may read was synced when it was staged
            try:
                _sync_names(fd)
            finally:
                os.close(fd)

    def sync_folder(self, directory: int, name: str) -> None:
        """Make the names in an open folder survive a power cut, as far as its file system can."""
        with _Translated(name):
            try:
                fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory)
            except PermissionError:
                return  # a folder that may not be listed can't be opened for a sync
            try:
                _sync_names(fd)
            except OSError as error:
                if error.errno not in _NO_SYNC:
                    raise
            finally:
                os.close(fd)

    def stage_link(self, directory: int, text: bytes, like: os.stat_result | None, name: str) -> str:
        """Create a symbolic link with `text` in `directory` and return its name there. `like`: as of `stage`.

        Raises PathInvalid if no link can have the text.
        """
        if not text or b"\0" in text:
            raise PathInvalid(name, "no symbolic link can have its text")
        temporary = f".cas-{os.urandom(8).hex()}"
        with _Translated(name):
            os.symlink(text, os.fsencode(temporary), dir_fd=directory)
            if like is not None and os.geteuid() == 0:
                with suppress(OSError):
                    os.chown(temporary, like.st_uid, like.st_gid, dir_fd=directory, follow_symlinks=False)
        return temporary

    def carry_attributes(self, source_directory: int, source: str, directory: int, staged: str, mode: int) -> None:
        """Copy extended attributes of the file that will be replaced to the staged file, and leave that with `mode`.

        These are the access control list, without which the mode would mean something else, and the user's own
        attributes. An attribute is left out if the system doesn't support it or refuses it. Others, such as
        capabilities, the system clears itself when a file is written.
        """
        if not hasattr(os, "listxattr"):
            return
        # The xattr calls accept no dir_fd; this path names a file in an open folder.
        old, new = f"/proc/self/fd/{source_directory}/{source}", f"/proc/self/fd/{directory}/{staged}"
        with suppress(OSError):
            carried = [name for name in os.listxattr(old, follow_symlinks=False) if name.startswith(_CARRIED_PREFIXES)]
            if not carried:
                return
            os.chmod(staged, 0o600, dir_fd=directory)  # attributes can't be set on a file that is read-only
            for name in carried:
                with suppress(OSError):
                    os.setxattr(new, name, os.getxattr(old, name, follow_symlinks=False), follow_symlinks=False)
            os.chmod(staged, settable_mode(mode), dir_fd=directory)

    def inherit_access_list(self, folder: int, directory: int, staged: str, mode: int) -> None:
        """Give a staged file the access control list of new files in the open `folder`, and leave it with `mode`.

        None is given where the folder has no default list, or the system doesn't support or refuses it.
        """
        if not hasattr(os, "getxattr"):
            return
        with suppress(OSError):
            listed = os.getxattr(f"/proc/self/fd/{folder}", _DEFAULT_LIST)
            os.setxattr(f"/proc/self/fd/{directory}/{staged}", _ACCESS_LIST, listed, follow_symlinks=False)
            os.chmod(staged, settable_mode(mode), dir_fd=directory)

    def return_mode(self, directory: int, name: str, was: os.stat_result) -> None:
        """Give a file, durably, the mode that it had: setuid and setgid if it also has the owner and group of then."""
        with _Translated(name):
            fd = os.open(name, _INSPECT_FLAGS, dir_fd=directory)
            try:
                now = os.fstat(fd)
                is_whose_it_was = (now.st_uid, now.st_gid) == (was.st_uid, was.st_gid)
                mode = stat.S_IMODE(was.st_mode)
                os.fchmod(fd, mode if is_whose_it_was else settable_mode(mode))
                _sync_names(fd)
            finally:
                os.close(fd)

    def replace(self, source_directory: int, source: str, directory: int, name: str) -> None:
        """Rename the file `source` to `name`, replacing any file of that name."""
        with _Translated(name):
            os.rename(source, name, src_dir_fd=source_directory, dst_dir_fd=directory)

    def exchange(self, source_directory: int, source: str, directory: int, name: str) -> bool:
        """Swap the names of two files atomically; return False where the system can't.

        The replaced file is kept, so it can still be inspected. Also, on ext4 a swap takes 0.02 ms and renaming over a
        file takes over 1 ms, because a swap doesn't first write out the new file's bytes, which are already durable in
        the log.
        """
        with _Translated(name):
            return _exchange()(source_directory, source, directory, name)

    def replace_derived(self, source_directory: int, source: str, directory: int, name: str) -> None:
        """Rename the file `source` to `name` and remove the replaced file; only for files that can be derived again.

        Where what swaps names is loaded, as in a scan of a large tree, a swap is faster, and a power cut may leave the
        file empty: ext4 writes the bytes out when a file is renamed over another one, and the next process to replace
        it waits for that (4 ms for 1 MB, at least 1). Loading it takes 2 ms.

        Raises FileNotFoundError if the source is gone.
        """
        try:
            with _Translated(name):
                os.stat(name, dir_fd=directory, follow_symlinks=False)
            is_swapped = "ctypes" in sys.modules and self.exchange(source_directory, source, directory, name)
        except FileNotFoundError:
            is_swapped = False  # nothing has the name
        if is_swapped:
            with suppress(FileNotFoundError):  # another process has already removed it
                self.unlink(source_directory, source)
        else:
            self.replace(source_directory, source, directory, name)

    def rename_new(self, source_directory: int, source: str, directory: int, name: str) -> None:
        """Rename the file `source` to `name`. Raises FileExistsError if the name is taken."""
        with _Translated(name):
            _rename_new(source_directory, source, directory, name)

    def link_new(self, source_directory: int, source: str, directory: int, name: str) -> bool:
        """Give the file `source` a second name; return False where the file system has none.

        Raises FileExistsError if the name is taken.
        """
        with _Translated(name):
            try:
                os.link(source, name, src_dir_fd=source_directory, dst_dir_fd=directory, follow_symlinks=False)
            except OSError as error:
                if error.errno not in {*_NO_LINKS, errno.EXDEV}:
                    raise
                return False
            return True

    def respell(self, directory: int, name: str, new: str) -> None:
        """Give a file or folder another spelling of its name, on a file system for which both are one name."""
        with _Translated(new):
            os.rename(name, new, src_dir_fd=directory, dst_dir_fd=directory)
            listed = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory)
            try:
                is_unchanged = name in os.listdir(listed)
            finally:
                os.close(listed)
            if is_unchanged:  # the system took it for no change
                between = f".cas-{os.urandom(8).hex()}"
                os.rename(name, between, src_dir_fd=directory, dst_dir_fd=directory)
                os.rename(between, new, src_dir_fd=directory, dst_dir_fd=directory)

    def rewrite(self, directory: int, name: str, content: Pieces) -> None:
        """Write `content` into the existing file in place, durably, for files that have more than one name."""
        with _Translated(name):
            fd = os.open(name, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=directory)
            try:
                os.ftruncate(fd, _write_pieces(fd, content))
                _sync_names(fd)
            finally:
                os.close(fd)

    def chmod(self, directory: int, name: str, mode: int) -> None:
        """Set the permission bits of a regular file, durably. Setuid and setgid are only kept or removed."""
        with _Translated(name):
            fd = os.open(name, _INSPECT_FLAGS, dir_fd=directory)
            try:
                os.fchmod(fd, settable_mode(mode, os.fstat(fd).st_mode))
                _sync_names(fd)
            finally:
                os.close(fd)

    def unlink(self, directory: int, name: str) -> None:
        """Remove a name. Raises FileNotFoundError if it is already gone."""
        with _Translated(name):
            os.unlink(name, dir_fd=directory)

    def clock(self, directory: int, name: str) -> int:
        """Return the time, in nanoseconds, that the file system of an open folder gives to a change made now.

        This time may differ from the machine's, and has the resolution of file times.
        """
        with _Translated(name):
            os.utime(directory)
            return os.fstat(directory).st_ctime_ns

    def new_file_mode(self, directory: int, name: str) -> int:
        """Return the permission bits that a new file gets in an open folder.

        They are this process's default, unless the file system keeps no modes: there all files have the same mode (FAT,
        NTFS, some network file systems).
        """
        temporary = f".cas-{os.urandom(8).hex()}"
        with _Translated(name):
            fd = os.open(temporary, _TEMPORARY_FLAGS, 0o600, dir_fd=directory)
            try:
                _set_mode(fd, new_file_mode())
                return stat.S_IMODE(os.fstat(fd).st_mode)
            finally:
                os.close(fd)
                os.unlink(temporary, dir_fd=directory)

    def make_directory(self, directory: int, name: str, like: os.stat_result | None = None) -> None:
        """Create a folder with the process's default permissions. Raises FileExistsError if the name is taken.

        `like`: the folder or file whose owner and group it gets, as far as this process may set them.
        """
        with _Translated(name):
            os.mkdir(name, dir_fd=directory)
            if like is not None and os.geteuid() == 0:
                _give_new_folder(name, directory, like)

    def remove_directory(self, directory: int, name: str) -> bool:
        """Remove a folder if it is empty; return whether it is gone."""
        try:
            os.rmdir(name, dir_fd=directory)
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return True


@contextmanager
def reaching(path: str) -> Iterator[None]:
    """Raise PathUnreachable if access to `path` fails because its file system is away, as after a lost connection."""
    try:
        yield
    except DiskFailed as error:
        if isinstance(error.__cause__, OSError) and error.__cause__.errno in _UNREACHABLE:
            raise PathUnreachable(path, str(error)) from error
        raise


def read_all(fd: int, size_hint: int) -> bytes:
    """Return the bytes of an open file from its position to its end, which `size_hint` predicts."""
    first = os.read(fd, size_hint + 1)
    if len(first) == size_hint:
        return first  # one byte more was requested, and the file had none
    parts = [first]
    while parts[-1]:
        parts.append(os.read(fd, _CHUNK))
    return b"".join(parts)


@cache
def new_file_mode() -> int:
    """Return the permission bits that this process gives to new files, on a file system that keeps modes."""
    # The mask can only be read by setting it, so read it once, before other threads exist that could observe that.
    mask = os.umask(0o077)
    os.umask(mask)
    return 0o666 & ~mask


def is_same_file(a: os.stat_result, b: os.stat_result) -> bool:
    """Return whether a regular file is the same and unwritten between two reads of its status."""
    return bool(_write_signature(a) == _write_signature(b)) and stat.S_IFMT(a.st_mode) == stat.S_IFMT(b.st_mode)


@cache
def _exchange() -> Callable[[int, str, int, str], bool]:
    """Return the function that swaps two names. It is imported only when a file is replaced."""
    from objstore.disk.fs.atomic_swap import rename_exchange

    return rename_exchange


def give_to_owner_of(fd: int, folder: str | int) -> None:
    """Give a file that this process has just created, if it is root, to the owner of the folder that it is in."""
    if os.geteuid() == 0:
        _set_owner(fd, os.stat(folder))


def give_written(path: str, content: bytes) -> None:
    """Give the file that this process, as root, has just created with these bytes to the owner of its folder.

    Not a file with other bytes: the folder's owner may have moved any file there meanwhile.
    """
    if os.geteuid() == 0:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with open(fd, "rb") as file:
            if os.fstat(fd).st_uid == 0 and os.fstat(fd).st_nlink == 1 and file.read(len(content) + 1) == content:
                _set_owner(fd, os.stat(os.path.dirname(path)))


def make_folders(path: str, mode: int = 0o777) -> None:
    """Create a folder and the missing ones above it; what root creates belongs to the owner of the folder above.

    `path` is absolute. Raises OSError.
    """
    above = os.path.dirname(path)
    if above != path and not is_made(above):  # nothing is above the root of the system
        make_folders(above, mode)
    with suppress(FileExistsError), giving_away(above):
        os.mkdir(path, mode)
        if os.geteuid() == 0:
            _give_new_folder(path, None, os.stat(above))


def is_made(folder: str) -> bool:
    """Return whether a folder is there, and isn't one that another process of root may be about to give away."""
    try:
        found = os.stat(folder)
    except OSError:
        return False
    if not stat.S_ISDIR(found.st_mode):
        return False
    return os.geteuid() != 0 or found.st_uid != 0 or os.stat(os.path.dirname(folder) or ".").st_uid == 0


@contextmanager
def giving_away(folder: str) -> Iterator[None]:
    """Exclude other processes and threads of root that create a folder in a user's `folder` and give it away.

    Otherwise another one could put a file there before it is given away; a folder that isn't empty stays root's.
    """
    if os.geteuid() != 0 or os.stat(folder).st_uid == 0:
        yield
        return
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        until = time.monotonic() + _GIVING_SECONDS
        with suppress(OSError):  # the file system has no locks
            while time.monotonic() < until:
                with suppress(BlockingIOError):
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                time.sleep(0.001)
        yield
    finally:
        os.close(fd)


def open_or_create(path: str, flags: int) -> int:
    """Return a descriptor of a store's file, which is created if it is missing. Raises OSError as os.open does.

    What root creates belongs to the owner of its folder. A file that was there is not given away: the folder's owner
    may have moved any file there.
    """
    if os.geteuid() != 0:
        return os.open(path, flags | os.O_CREAT, 0o600)
    while True:
        with suppress(FileExistsError):
            fd = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o600)
            give_to_owner_of(fd, os.path.dirname(path))
            return fd
        with suppress(FileNotFoundError):
            return os.open(path, flags)


def _give_new_folder(path: str, within: int | None, like: os.stat_result) -> None:
    """Give a folder that this process, as root, has just created to the owner of `like`."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=within)
    try:
        # Whoever owns the folder above may have put another one there meanwhile. One without anything in it is no loss.
        if os.fstat(fd).st_uid == 0 and not os.listdir(fd):
            _set_owner(fd, like)
    finally:
        os.close(fd)


def _write_all(fd: int, content: bytes) -> None:
    written = os.write(fd, content)
    while written < len(content):
        written += os.write(fd, memoryview(content)[written:])


def _write_pieces(fd: int, content: Pieces, sync_every: int = 0) -> int:
    """Write all of `content` and return the number of bytes. `sync_every`: sync after so many bytes (0: never)."""
    if isinstance(content, bytes):
        _write_all(fd, content)
        return len(content)
    size = synced = 0
    for piece in content:
        _write_all(fd, piece)
        size += len(piece)
        if sync_every and size - synced >= sync_every:
            _sync_data(fd)
            synced = size
    return size


@contextmanager
def _staged(directory: int, name: str) -> Iterator[tuple[int, str]]:
    """Open a new file in a folder, and remove it again if the block fails; yield the descriptor and its name."""
    temporary = f".cas-{os.urandom(8).hex()}"
    with _Translated(name):
        fd = os.open(temporary, _TEMPORARY_FLAGS, 0o600, dir_fd=directory)
        try:
            if hasattr(os, "removexattr"):
                with suppress(OSError):  # `directory` has a default list for new files, the file's folder another
                    os.removexattr(fd, _ACCESS_LIST)
            yield fd, temporary
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=directory)
            raise
        finally:
            os.close(fd)


def _write_with_holes(fd: int, content: Pieces) -> None:
    """Write all of `content` into an empty file. Long stretches of zeros become holes, so sparse files stay sparse."""
    size = 0
    for piece in [content] if isinstance(content, bytes) else content:
        size += len(piece)
        step = _HOLE if _HOLE_BYTES in piece else max(1, len(piece))
        for start in range(0, len(piece), step):
            block = piece[start : start + step]
            if block == _HOLE_BYTES:
                os.lseek(fd, len(block), os.SEEK_CUR)
            else:
                _write_all(fd, block)
    os.ftruncate(fd, size)


def _own(fd: int, like: os.stat_result | None, directory: int) -> None:
    """Give a new file the owner and group of `like` (None: this process's own; if that is root's, the folder's)."""
    if like is None and os.geteuid() == 0:
        like = os.fstat(directory)
    if like is not None:
        _set_owner(fd, like)


def _set_owner(fd: int, like: os.stat_result) -> None:
    """Give an open file the owner and group of `like`, or the group alone, or neither, as this process may."""
    own = os.fstat(fd)
    # Only root may change the owner, and in a container only to some; others may only set a group that they belong to.
    # The bytes matter more than both.
    if own.st_uid != like.st_uid:
        with suppress(OSError):
            os.fchown(fd, like.st_uid, like.st_gid)
            return
    if own.st_gid != like.st_gid:
        with suppress(OSError):
            os.fchown(fd, -1, like.st_gid)


def _set_mode(fd: int, mode: int) -> None:
    """Set the permission bits of a new file, if its file system keeps modes."""
    # FAT refuses modes that it can't keep, even for one's own file. Other file systems ignore them silently.
    with suppress(PermissionError):
        os.fchmod(fd, mode)


def _rename_new(source_directory: int, source: str, directory: int, name: str) -> None:
    try:
        os.link(source, name, src_dir_fd=source_directory, dst_dir_fd=directory, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        # Without hard links, test and then rename: such a file system allows nothing closer to atomic.
        with suppress(FileNotFoundError):
            os.lstat(name, dir_fd=directory)
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name) from error
        os.rename(source, name, src_dir_fd=source_directory, dst_dir_fd=directory)
        return
    os.unlink(source, dir_fd=source_directory)


@contextmanager
def _tolerate_nonempty_folder(path: str) -> Iterator[None]:
    """Raise FileExistsError in place of the error about a folder that is not empty."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.ENOTEMPTY:
            raise
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path) from error


class _Translated:
    """Translate OSError into our own errors. A class, because a generator would cost more than the write inside it."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if not isinstance(error, OSError) or isinstance(error, FileNotFoundError | FileExistsError):
            return
        raise failure(error, self._name) from error
