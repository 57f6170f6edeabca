"""The disk: every operation that changes a file, one method each, so that order and failure can be tested.

A subclass that fails at the n-th call shows what a crash there would leave. Nothing else in the package writes to the
log or to the user's files. SQLite writes the index; locks and the mark are opened, and made, where they are held; and
who begins anew (an import, a salvage, settings) makes the folders for it.
"""

import errno
import fcntl
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from operator import attrgetter
from typing import Final, TypeAlias

from objstore.errors import CasError, DiskFailed, DiskFull, PathUnreachable, PermissionRefused
from objstore.fs.boot_id import boot_id

__all__ = [
    "Disk",
    "Pieces",
    "failure",
    "is_absence",
    "is_folder",
    "is_same_file",
    "new_file_mode",
    "reaching",
    "read_all",
    "syncing",
]

Pieces: TypeAlias = bytes | Iterable[bytes]
"""The content of a file: in one piece, or in several, so that not all of it need be in memory."""

_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_NO_PERMISSION: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_ABSENT: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG})
_AWAY: Final = frozenset(
    {errno.EIO, errno.ENODEV, errno.ENXIO, errno.ESTALE, errno.ENOTCONN, errno.ETIMEDOUT, errno.EHOSTDOWN}
)
_NO_LINKS: Final = frozenset({errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS})
_NO_FLUSH: Final = frozenset({errno.ENOTSUP, errno.EINVAL, errno.ENOTTY})
_CHUNK: Final = 1 << 20
_SYNCED_AT_ONCE: Final = 1 << 20
"""Bytes of a long file of the store's own that are synced together: who syncs a few beside it waits for all of them."""

_WRITTEN: Final = attrgetter("st_ino", "st_dev", "st_size", "st_mtime_ns", "st_ctime_ns")
"""What the system says of a file, and says otherwise when something was written to it, or it is another one."""

_CARRIED: Final = ("user.", "system.posix_acl_access")
"""How names of extended attributes begin that a file's next state has too."""

_TEMPORARY_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW


def failure(error: OSError, path: str) -> CasError:
    """Return what an error of the system is here: DiskFull, PermissionRefused or DiskFailed, about `path`."""
    if error.errno in _NO_ROOM:
        return DiskFull(path)
    if error.errno in _NO_PERMISSION:
        return PermissionRefused(path)
    return DiskFailed(path, error.strerror or str(error))


def is_absence(error: OSError) -> bool:
    """Return whether an error tells that nothing of the name and kind is there.

    Any other says nothing of what is there: a process may have too many files open, or a disk fail.
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
    """Return what has an open file survive a power cut.

    That is `sync`, unless the system has a command of fcntl(2), `flush`, that does more: on macOS fsync(2) hands the
    bytes to the drive, which may keep them in its cache, and F_FULLFSYNC has it empty that. SQLite and git use it, too.
    """
    if flush is None:
        return sync

    def flushed(fd: int) -> None:
        try:
            fcntl.fcntl(fd, flush)
        except OSError as error:
            # Shared folders don't know it. Any other error is a sync that failed, and a second one would say nothing.
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
    FileExistsError, which say what was found rather than that the disk failed.
    """

    def boot_id(self) -> bytes:
        """Return what tells this start of the machine from others, 16 bytes; zeros where the system doesn't say."""
        return boot_id()

    # ---- the store's own files

    def append(self, fd: int, content: bytes, name: str) -> None:
        """Write all of `content` at the end of the file that `fd` has open for appending."""
        with _Translated(name):
            _write_all(fd, content)

    def overwrite(self, fd: int, content: bytes, offset: int, name: str) -> None:
        """Write all of `content` at `offset`."""
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
        """Make a new file with `content`, whole and durable with its name, or not at all.

        FileExistsError where something has the name.
        """
        temporary = f"{path}.{os.urandom(8).hex()}"
        with _Translated(path):
            fd = os.open(temporary, _TEMPORARY_FLAGS, mode)
            try:
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
        """Make a new file of `size` bytes that holds nothing and takes its room, or none. FileExistsError as above."""
        with _Translated(path):
            fd = os.open(path, _TEMPORARY_FLAGS, 0o600)
            try:
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
        """Return how many bytes whoever asks may still write where a folder lies, which is named or open."""
        with _Translated(name):
            found = os.statvfs(folder)
            return found.f_bavail * found.f_frsize

    def set_times(self, folder: int, name: str, accessed: int, modified: int) -> None:
        """Give a file its times, in nanoseconds since 1970-01-01 UTC; never through a link."""
        with _Translated(name):
            os.utime(name, ns=(accessed, modified), dir_fd=folder, follow_symlinks=False)

    def set_time(self, fd: int, modified: int, name: str) -> None:
        """Let an open file have been modified at that time, in nanoseconds since 1970-01-01 UTC."""
        with _Translated(name):
            os.utime(fd, ns=(modified, modified))

    def make_store_folder(self, path: str, within: int | None = None) -> None:
        """Make a folder that is the store's own. `within`: the open folder that it is to be in (None: by its path).

        FileExistsError where something has the name.
        """
        with _Translated(path):
            os.mkdir(path if within is None else os.path.basename(path), 0o700, dir_fd=within)

    def move_store_folder(self, source: str, path: str) -> None:
        """Give a folder another name. FileExistsError where a folder with something in it has that name."""
        with _Translated(path), _tolerate_nonempty_folder(path):
            os.rename(source, path)

    def remove_store_file(self, path: str) -> None:
        """Remove a file that is the store's own. FileNotFoundError where it is gone already."""
        with _Translated(path):
            os.unlink(path)

    def remove_store_folder(self, path: str) -> None:
        """Remove a folder that is the store's own.

        FileNotFoundError where it is gone already, FileExistsError where something is in it.
        """
        with _Translated(path), _tolerate_nonempty_folder(path):
            os.rmdir(path)

    def sync_directory(self, path: str) -> None:
        """Make the names in the directory survive a power cut."""
        with _Translated(path):
            fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                _sync_names(fd)
            finally:
                os.close(fd)

    # ---- the user's files; `directory` is an open folder, so that no link on the way can lead elsewhere

    def stage(self, directory: int, content: Pieces, like: os.stat_result | None, mode: int, name: str) -> str:
        """Write `content` to a new file in `directory` and return its name there.

        It gets `mode`, if the file system keeps any, and where we may, owner and group of the file that it will replace
        (`like`; None: it replaces none).
        """
        temporary = f".cas-{os.urandom(8).hex()}"
        with _Translated(name):
            fd = os.open(temporary, _TEMPORARY_FLAGS, 0o600, dir_fd=directory)
            try:
                _write_pieces(fd, content)
                if like is not None:
                    _set_owner(fd, like)
                _set_mode(fd, mode)
            except BaseException:
                with suppress(OSError):
                    os.unlink(temporary, dir_fd=directory)
                raise
            finally:
                os.close(fd)
        return temporary

    def carry_attributes(self, source_directory: int, source: str, directory: int, staged: str, mode: int) -> None:
        """Give a staged file what the file that it will replace has besides its mode, which is `mode` in the end.

        An access control list, without which the mode would say something else, and what users have noted. As far as
        the system keeps any, and lets us; what else there is, as capabilities, it takes itself from who writes.
        """
        if not hasattr(os, "listxattr"):
            return
        # There is no such call for a name in an open folder but by this path to it.
        old, new = f"/proc/self/fd/{source_directory}/{source}", f"/proc/self/fd/{directory}/{staged}"
        with suppress(OSError):
            carried = [name for name in os.listxattr(old, follow_symlinks=False) if name.startswith(_CARRIED)]
            if not carried:
                return
            os.chmod(staged, 0o600, dir_fd=directory)  # of a file that may not be written nothing can be noted either
            for name in carried:
                with suppress(OSError):
                    os.setxattr(new, name, os.getxattr(old, name, follow_symlinks=False), follow_symlinks=False)
            os.chmod(staged, mode, dir_fd=directory)

    def replace(self, source_directory: int, source: str, directory: int, name: str) -> None:
        """Give the file `source` the name `name`, in place of what has it."""
        with _Translated(name):
            os.rename(source, name, src_dir_fd=source_directory, dst_dir_fd=directory)

    def exchange(self, source_directory: int, source: str, directory: int, name: str) -> bool:
        """Let two files trade names in one step; return False where the system can't.

        What had the name is kept, so it can still be looked at. And on ext4 this takes 0.02 ms where renaming over a
        file takes over 1 ms, because the new file's bytes, already durable in the log, need not be written out first.
        """
        with _Translated(name):
            return _exchange()(source_directory, source, directory, name)

    def replace_derived(self, source_directory: int, source: str, directory: int, name: str) -> None:
        """Give the file `source` the name `name`, in place of what has it, and remove that: for what is only derived.

        As `replace`, but a power cut may leave a file of that name without its bytes: ext4 writes them out when a file
        is renamed over another one, and keeps whoever replaces it next waiting for that (4 ms for 1 MB, at least 1).
        FileNotFoundError where the source is gone.
        """
        try:
            with _Translated(name):
                os.stat(name, dir_fd=directory, follow_symlinks=False)
            is_traded = self.exchange(source_directory, source, directory, name)
        except FileNotFoundError:
            is_traded = False  # nothing has the name
        if is_traded:
            with suppress(FileNotFoundError):  # somebody has cleared it away already
                self.unlink(source_directory, source)
        else:
            self.replace(source_directory, source, directory, name)

    def rename_new(self, source_directory: int, source: str, directory: int, name: str) -> None:
        """Give the file `source` the name `name`. FileExistsError where something has it already."""
        with _Translated(name):
            _rename_new(source_directory, source, directory, name)

    def rewrite(self, directory: int, name: str, content: Pieces) -> None:
        """Write `content` into the existing file itself, for files that have more than one name."""
        with _Translated(name):
            fd = os.open(name, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=directory)
            try:
                os.ftruncate(fd, _write_pieces(fd, content))
            finally:
                os.close(fd)

    def chmod(self, directory: int, name: str, mode: int) -> None:
        """Set the permission bits of a regular file."""
        with _Translated(name):
            fd = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=directory)
            try:
                os.fchmod(fd, mode)
            finally:
                os.close(fd)

    def unlink(self, directory: int, name: str) -> None:
        """Remove a name. FileNotFoundError where it is gone already."""
        with _Translated(name):
            os.unlink(name, dir_fd=directory)

    def clock(self, directory: int, name: str) -> int:
        """Return the time, in nanoseconds, that the file system of an open folder gives to what changes now.

        It may differ from that of the machine, and is as coarse as the times of files are.
        """
        with _Translated(name):
            os.utime(directory)
            return os.fstat(directory).st_ctime_ns

    def new_file_mode(self, directory: int, name: str) -> int:
        """Return the permission bits that a new file has in an open folder.

        They are those that this process gives to new files, unless the file system keeps none: there all files have the
        same (FAT, NTFS, some of a network).
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

    def make_directory(self, directory: int, name: str) -> None:
        """Make a folder with the process's default permissions. FileExistsError where something is there."""
        with _Translated(name):
            os.mkdir(name, dir_fd=directory)

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
    """Raise PathUnreachable where a look at `path` fails because the file system there does, and not this process."""
    try:
        yield
    except DiskFailed as error:
        if isinstance(error.__cause__, OSError) and error.__cause__.errno in _AWAY:
            raise PathUnreachable(path, str(error)) from error
        raise


def read_all(fd: int, size_hint: int) -> bytes:
    """Return the bytes of an open file from its current position to its end, which is `size_hint` on if it is right."""
    first = os.read(fd, size_hint + 1)
    if len(first) == size_hint:
        return first  # asked for one more, the system had none
    parts = [first]
    while parts[-1]:
        parts.append(os.read(fd, _CHUNK))
    return b"".join(parts)


@cache
def new_file_mode() -> int:
    """Return the permission bits that this process gives to new files, where the file system keeps them."""
    # The mask can only be read by setting it, so it is read once, before there are other threads to see that.
    mask = os.umask(0o077)
    os.umask(mask)
    return 0o666 & ~mask


def is_same_file(a: os.stat_result, b: os.stat_result) -> bool:
    """Return whether nothing was written to a regular file between two looks at it."""
    return bool(_WRITTEN(a) == _WRITTEN(b)) and stat.S_IFMT(a.st_mode) == stat.S_IFMT(b.st_mode)


@cache
def _exchange() -> Callable[[int, str, int, str], bool]:
    """Return what has two names trade places, imported once, and only where a file is replaced."""
    from objstore.fs.atomic_swap import rename_exchange

    return rename_exchange


def _write_all(fd: int, content: bytes) -> None:
    written = os.write(fd, content)
    while written < len(content):
        written += os.write(fd, memoryview(content)[written:])


def _write_pieces(fd: int, content: Pieces, sync_every: int = 0) -> int:
    """Write all of `content` and return how many bytes that were. `sync_every`: and sync after so many (0: never)."""
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


def _set_owner(fd: int, like: os.stat_result) -> None:
    """Give an open file the owner and the group that another one has, or the group alone, or neither, as we may."""
    own = os.fstat(fd)
    # Only root may give a file away, and others only to a group that they are of; the bytes matter more.
    if own.st_uid != like.st_uid:
        with suppress(PermissionError):
            os.fchown(fd, like.st_uid, like.st_gid)
            return
    if own.st_gid != like.st_gid:
        with suppress(PermissionError):
            os.fchown(fd, -1, like.st_gid)


def _set_mode(fd: int, mode: int) -> None:
    """Give a file that was just made these permission bits, if its file system keeps any."""
    # For a file of one's own, FAT refuses those that it can't keep. Others say nothing then.
    with suppress(PermissionError):
        os.fchmod(fd, mode)


def _rename_new(source_directory: int, source: str, directory: int, name: str) -> None:
    try:
        os.link(source, name, src_dir_fd=source_directory, dst_dir_fd=directory, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        # No hard links here: look, then rename, which is as near as such a file system allows.
        with suppress(FileNotFoundError):
            os.lstat(name, dir_fd=directory)
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name) from error
        os.rename(source, name, src_dir_fd=source_directory, dst_dir_fd=directory)
        return
    os.unlink(source, dir_fd=source_directory)


@contextmanager
def _tolerate_nonempty_folder(path: str) -> Iterator[None]:
    """Let a folder with something in it count as found where it should not be."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.ENOTEMPTY:
            raise
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path) from error


class _Translated:
    """Turns OSError into our own errors; a class, because a generator would cost a write more than the work inside."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if not isinstance(error, OSError) or isinstance(error, FileNotFoundError | FileExistsError):
            return
        raise failure(error, self._name) from error
