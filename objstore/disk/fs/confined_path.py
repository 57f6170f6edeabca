"""Resolve a path inside one folder, component by component, so that no link, `..` or race leads out of it.

The resolver opens each folder on the way relative to the one before without following links; it reads and follows links
itself, and counts them. The result is an open folder and a last name, so a swap made after the resolution can't
redirect the operation that follows. Source: openat(2), and the RESOLVE_BENEATH rule of openat2(2), which Python does
not offer.
"""

import errno
import os
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from objstore.disk.fs.disk import failure, is_absence, is_folder, is_same_file, read_all
from objstore.disk.fs.reserved_names import (
    LOG_NAME,
    STORE_NAME,
    is_case_insensitive,
    is_reserved,
    is_store,
    is_version_control,
    linked_in_store,
    name_on_disk,
    nearest_store,
    other_form,
)
from objstore.disk.fs.store_owner import refuse_others_store, require, user_by_sudo
from objstore.model.basic_types import recorded_mode
from objstore.values.errors import (
    CasError,
    FileChanged,
    FileExists,
    FileMissing,
    FileTooLarge,
    NotAWorkspace,
    PathInvalid,
    PathIsDirectory,
    PathIsSymlink,
    PathNotRegular,
    PathOutside,
    PathReserved,
    PermissionRefused,
    StoreReplaced,
)
from objstore.values.fastclass import value

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from objstore.model.views import DirectoryEntry

__all__ = [
    "MAX_FILE",
    "MAX_PATH",
    "FileOnDisk",
    "PathResolver",
    "ResolvedPath",
    "Tree",
    "find_root",
    "look_at",
    "missing_at",
    "open_file",
    "open_folder",
    "read_at",
    "read_link_at",
    "real_path",
    "require_not_reserved",
]

MAX_FILE: Final = 256 << 20
"""Size limit for files that are read into memory, in bytes."""

MAX_PATH: Final = 4096
"""Length limit for paths, in bytes."""

_LISTED_SECONDS: Final = 1.0
_NEVER: Final = float("-inf")
_MAX_LINKS: Final = 40
_MAX_NAME: Final = 255
_ATTEMPTS: Final = 5
_ROOT_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FOLDER_FLAGS: Final = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
_READ_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


@value
class ResolvedPath:
    """The location of a file: its open folder, its name there, and its canonical path."""

    folder: int  # an open descriptor; valid while the PathResolver is open
    name: str
    path: str  # relative to the root, components joined by "/", no links in it
    missing: tuple[str, ...]  # folders that don't exist yet, from the one in `folder` down; then `name` is in the last
    user: os.stat_result | None = None  # as of its Tree


@value
class FileOnDisk:
    """A regular file, or a symbolic link, as it was at one moment."""

    content: bytes  # of a large file: its placeholder; of a link: its text
    stat: os.stat_result

    @property
    def mode(self) -> int:
        """Return the mode as records have it."""
        return recorded_mode(self.stat.st_mode)


def real_path(path: str) -> str:
    """Return `path` with all links followed, as far as it exists.

    Raises ValueError for text that is no path, and FileChanged where links change faster than they can be followed.
    """
    if _is_real(path):
        return path
    for _ in range(_ATTEMPTS):
        try:
            return os.path.realpath(path)
        except OSError:  # a link was replaced or removed between lstat and readlink
            continue
    raise FileChanged(path)


def _is_real(path: str) -> bool:
    """Return whether an absolute path has no link in it. This check takes a third of the time of os.path.realpath."""
    if not path.startswith("/") or "//" in path or "/." in path or path.endswith("/"):
        return False
    end = 0
    while end >= 0:
        end = path.find("/", end + 1)
        try:
            if stat.S_ISLNK(os.lstat(path if end < 0 else path[:end]).st_mode):
                return False
        except (OSError, ValueError):
            return False
    return True


def _open_real(path: str) -> int:
    """Return a descriptor of the folder at a real path, opened name by name so that no link is followed.

    Raises OSError; NotADirectoryError for a link as for anything else that is no folder.
    """
    fd = os.open("/", _FOLDER_FLAGS)
    for name, flags in [*((name, _FOLDER_FLAGS) for name in path.split("/") if name), (".", _ROOT_FLAGS)]:
        above = fd
        try:
            fd = os.open(name, flags, dir_fd=above)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise NotADirectoryError(*error.args) from error
            raise
        finally:
            os.close(above)
    return fd


def require_not_reserved(path: str) -> None:
    """Raise PathReserved if `path` leads into any user's store, or into a folder of version control.

    For output files that a person names: the next reader of that store would report such a file as damage.
    """
    reserved = next(filter(is_reserved, real_path(path).split("/")), None)
    if reserved is not None:
        raise PathReserved(path, "the store" if is_store(reserved) else "version control")


class Tree:
    """A folder and everything below it; no other file can be reached through it."""

    def __init__(self, root: str | os.PathLike[str], *, is_real: bool = False) -> None:
        """Open the folder.

        `is_real`: `root` was resolved before, and links that were made on the way since then are not followed.

        Raises FileMissing, PermissionRefused, FileChanged, DiskFailed, and PathIsSymlink for such a link.
        """
        self.parts: tuple[str, ...] = ()  # canonical paths of the parts that may be reached; (): the whole folder
        self.denies: Callable[[str], bool] = _nothing  # whether the file at a canonical path may not be changed
        self._given = os.path.abspath(os.fspath(root))
        self.root: Final = self._given if is_real else real_path(self._given)
        try:
            self.fd: Final = _open_real(self.root) if is_real else os.open(self.root, _ROOT_FLAGS)
        except (FileNotFoundError, NotADirectoryError) as error:
            if is_real and os.path.isdir(self.root):
                raise PathIsSymlink(self.root) from error
            raise FileMissing(self._given) from error
        except OSError as error:
            raise failure(error, self._given) from error
        self.user: Final = user_by_sudo(self.root)  # the user for whom root acts; None: this process acts for itself
        self.is_case_insensitive: Final = is_case_insensitive(self.fd)
        self._found: Final = os.fstat(self.fd)
        self._listed: tuple[float, Container[tuple[int, int]]] = _NEVER, ()  # when; the store's hard-linked files

    def close(self) -> None:
        """Close the folder."""
        os.close(self.fd)

    @property
    def is_in_place(self) -> bool:
        """Return whether the folder's path still leads to it: the folder may be moved and another one take its path."""
        try:
            return os.path.samestat(os.lstat(self.root), self._found)
        except OSError:
            return False

    def require_in_place(self) -> None:
        """Raise StoreReplaced if the folder's path no longer leads to it."""
        if not self.is_in_place:
            raise StoreReplaced(self.root)

    def confined(self, parts: "Iterable[str]", denies: Callable[[str], bool] | None = None) -> "Tree":
        """Return the same folder restricted to these canonical paths below it; it is closed with this one.

        `denies`: returns whether the file at a canonical path may not be changed; None: as here.
        """
        parts = tuple(parts)
        if parts == self.parts and denies is None:
            return self
        from copy import copy

        confined = copy(self)
        confined.parts = parts
        confined.denies = denies or self.denies
        return confined

    def reaches(self, path: str) -> bool:
        """Return whether a canonical path is within the parts that may be reached."""
        return not self.parts or any(path == part or path.startswith(f"{part}/") for part in self.parts)

    def require_users_file(self, found: os.stat_result, path: str, *, since: float | None = None) -> None:
        """Raise PathReserved if the inspected file is one of the store's, reached by a second name outside the store.

        `since`: reuse the list of the store's files if it was read at or after this monotonic time; None: if it is
        recent.
        """
        if found.st_nlink == 1 or not stat.S_ISREG(found.st_mode):
            return
        if self._listed[0] < (time.monotonic() - _LISTED_SECONDS if since is None else since):
            self._listed = time.monotonic(), linked_in_store(self.root)
        if (found.st_dev, found.st_ino) in self._listed[1]:
            raise PathReserved(path, "the store (it is a hard link to a file of the store)")

    def within(self, path: str) -> str:
        """Return the part of `path` below the root, unresolved. Raises PathInvalid, PathOutside, FileChanged."""
        if not path or "\0" in path:
            raise PathInvalid(path, "empty" if not path else "holds a NUL byte")
        try:
            length = _size(path)
        except UnicodeEncodeError as error:
            raise PathInvalid(path, "can't be encoded in the file system's encoding") from error
        if length > MAX_PATH:
            raise PathInvalid(path, f"longer than {MAX_PATH} bytes")
        if not path.startswith("/"):
            return path
        for root in (self.root, self._given):
            if path == root or path.startswith(root.rstrip("/") + "/"):
                return path[len(root) :].strip("/") or "."
        # The path may contain a link above the root, as /tmp is on some systems.
        parent, name = os.path.split(path.rstrip("/") or "/")
        real = os.path.join(real_path(parent), name)
        if real == self.root or real.startswith(self.root.rstrip("/") + "/"):
            return real[len(self.root) :].strip("/") or "."
        # The path may itself be a link to the root, or to one of the parts that may be reached.
        real = real_path(path)
        for part in (".", *self.parts):
            if real == os.path.normpath(os.path.join(self.root, part)):
                return part
        raise PathOutside(path)

    def locate(
        self,
        path: str,
        *,
        follow: bool = False,
        changing: bool = False,
        gone: bool = False,
        as_on_disk: bool = True,
        will_be_vacated: Callable[[bytes], bool] = lambda _: False,
    ) -> "PathResolver":
        """Return a resolver of `path`, which holds the folder of the last name open.

        The resolver follows links in folders as long as they stay inside, and the last name only with `follow`. With
        `changing`, folders may be missing, and denied paths and names reserved for version control are refused; with
        `gone`, folders may be missing, and those names are allowed.

        On a file system that ignores case, the resolved path has the names as they are on disk; without `as_on_disk`
        (for recorded paths) it keeps the given names. `will_be_vacated` returns whether the file at a path is about to
        be removed, so that it counts as missing where a folder is needed.

        Raises PathInvalid, PathOutside, PathReserved, FileMissing, FileChanged, PermissionRefused, DiskFailed.
        """
        matches_disk = as_on_disk and self.is_case_insensitive
        return PathResolver(
            self,
            path,
            follow=follow,
            changing=changing,
            gone=gone,
            matches_disk=matches_disk,
            will_be_vacated=will_be_vacated,
        )

    def has_spelling(self, path: bytes) -> bool:
        """Return whether what is at a recorded path has exactly this path, and not one of another case."""
        if not self.is_case_insensitive:
            return True
        name = os.fsdecode(path)
        with self.locate(name, gone=True) as resolved:
            return resolved.path == name

    def read(self, path: str, *, limit: int = MAX_FILE, follow: bool = True) -> tuple[str, FileOnDisk]:
        """Return the canonical path of a regular file, and the file.

        Raises FileMissing, PathIsDirectory, PathNotRegular, PathIsSymlink (without `follow`), FileTooLarge, FileChanged
        (the file keeps changing while it is read), and what `locate` and `require_users_file` raise.
        """
        with self.locate(path, follow=follow) as resolved:
            try:
                found = read_at(resolved, limit=limit)
            except FileMissing as error:
                raise missing_at(resolved) from error
            self.require_users_file(found.stat, resolved.path)
            return resolved.path, found

    def entries(self, path: str) -> "list[DirectoryEntry]":
        """Return the entries of a folder, sorted by name, without the store.

        Raises FileMissing, PathInvalid (`path` is no folder), PermissionRefused, DiskFailed and what `locate` raises.
        """
        with self.locate(path, follow=True) as resolved:
            try:
                fd = os.open(
                    resolved.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=resolved.folder
                )
            except FileNotFoundError as error:
                raise FileMissing(path, missing_at(resolved).other) from error
            except OSError as error:
                if is_absence(error):
                    raise PathInvalid(path, "not a directory") from error
                raise failure(error, path) from error
        try:
            if self.user is not None:
                require(self.user, os.fstat(fd), os.R_OK | os.X_OK, path)
            with os.scandir(fd) as names:
                found = [_entry(item) for item in names if not is_store(item.name)]
        except OSError as error:
            raise failure(error, path) from error
        finally:
            os.close(fd)
        return sorted((entry for entry in found if entry is not None), key=lambda entry: entry.name)


def read_at(resolved: ResolvedPath, *, limit: int = MAX_FILE) -> FileOnDisk:
    """Return the regular file at `resolved`, read whole during a time without writes to it. Raises as Tree.read."""
    if resolved.missing:
        raise FileMissing(resolved.path)
    for _ in range(_ATTEMPTS):
        fd = open_file(resolved)
        try:
            before = os.fstat(fd)
            if stat.S_ISDIR(before.st_mode):
                raise PathIsDirectory(resolved.path)
            if not stat.S_ISREG(before.st_mode):
                raise PathNotRegular(resolved.path)
            if before.st_size > limit:
                raise FileTooLarge(resolved.path, before.st_size, limit)
            content = read_all(fd, before.st_size)
            after = os.fstat(fd)
        except OSError as error:
            raise failure(error, resolved.path) from error
        finally:
            os.close(fd)
        if len(content) == after.st_size and is_same_file(before, after):
            return FileOnDisk(content=content, stat=after)
    raise FileChanged(resolved.path)


def read_link_at(resolved: ResolvedPath) -> FileOnDisk:
    """Return the symbolic link at `resolved`, not followed.

    Raises FileMissing, FileChanged for what is no link, PermissionRefused, DiskFailed.
    """
    if resolved.missing:
        raise FileMissing(resolved.path)
    for _ in range(_ATTEMPTS):
        try:
            before = os.lstat(resolved.name, dir_fd=resolved.folder)
            text = os.fsencode(os.readlink(resolved.name, dir_fd=resolved.folder))
            after = os.lstat(resolved.name, dir_fd=resolved.folder)
        except FileNotFoundError as error:
            raise FileMissing(resolved.path) from error
        except OSError as error:
            is_other = error.errno == errno.EINVAL
            raise FileChanged(resolved.path) if is_other else failure(error, resolved.path) from error
        if is_same_file(before, after):
            return FileOnDisk(content=text, stat=after)
    raise FileChanged(resolved.path)


def open_file(resolved: ResolvedPath) -> int:
    """Return a descriptor for reading the file at `resolved`, without following a link or waiting for a FIFO.

    Raises FileMissing, PathIsSymlink, PermissionRefused, PathNotRegular, DiskFailed.
    """
    try:
        fd = os.open(resolved.name, _READ_FLAGS, dir_fd=resolved.folder)
    except FileNotFoundError as error:
        raise FileMissing(resolved.path) from error
    except OSError as error:
        raise _unreadable(resolved, error) from error
    if resolved.user is not None:
        try:
            require(resolved.user, os.fstat(fd), os.R_OK, resolved.path)
        except BaseException:
            os.close(fd)
            raise
    return fd


def missing_at(resolved: ResolvedPath) -> FileMissing:
    """Return the error for a missing file at `resolved`, with a similar name that differs only in its Unicode form."""
    return FileMissing(
        resolved.path, other_form(resolved.folder, resolved.missing[0] if resolved.missing else resolved.name)
    )


def open_folder(parent: int, name: str, path: str) -> int:
    """Return a descriptor of the folder `name` in the open folder `parent`.

    Raises FileExists if `name` is no folder or doesn't exist; PermissionRefused, DiskFailed.
    """
    try:
        return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    except OSError as error:
        if is_absence(error):
            raise FileExists(path) from error
        raise failure(error, path) from error


def look_at(resolved: ResolvedPath) -> os.stat_result | None:
    """Return the status of `resolved`, not following a link (None: missing). Raises PermissionRefused, DiskFailed."""
    if resolved.missing:
        return None
    try:
        return os.lstat(resolved.name, dir_fd=resolved.folder)
    except OSError as error:
        if is_absence(error):
            return None
        raise failure(error, resolved.path) from error


def find_root(start: str) -> str:
    """Return the nearest folder at or above `start` that holds a store.

    Raises NotAWorkspace, StoreNotOwned, PermissionRefused for a store that this process may not read, and DiskFailed.
    """
    root = nearest_store(start)
    if root is None:
        raise NotAWorkspace(start)
    store = os.path.join(root, STORE_NAME)
    if os.path.islink(store):
        raise NotAWorkspace(root)  # the link leads to another folder's store
    refuse_others_store(root)
    if not is_folder(os.path.join(store, LOG_NAME)):
        raise PermissionRefused(store)
    return root


def workspaces_around(root: str) -> list[str]:
    """Return the workspaces around a workspace, the innermost first; one that is not this user's ends them."""
    found: list[str] = []
    with suppress(CasError):
        while (above := os.path.dirname(root)) != root:
            root = find_root(above)
            found.append(root)
    return found


def _size(name: str) -> int:
    """Return the length of the name on disk in bytes. Raises UnicodeEncodeError."""
    return len(name) if name.isascii() else len(os.fsencode(name))


def _unreadable(resolved: ResolvedPath, error: OSError) -> Exception:
    """Return the error for a file that could not be opened: by its kind if that explains the failure."""
    if error.errno == errno.ELOOP:
        return PathIsSymlink(resolved.path)
    try:
        found = os.lstat(resolved.name, dir_fd=resolved.folder)
    except OSError as gone:
        return FileChanged(resolved.path) if is_absence(gone) else failure(gone, resolved.path)
    if stat.S_ISLNK(found.st_mode):
        return PathIsSymlink(resolved.path)
    failed = failure(error, resolved.path)
    is_explained = isinstance(failed, PermissionRefused) or stat.S_ISREG(found.st_mode)
    return failed if is_explained else PathNotRegular(resolved.path)


def _entry(item: "os.DirEntry[str]") -> "DirectoryEntry | None":
    """Return the description of a folder's entry (None: it was removed meanwhile). Raises OSError."""
    from objstore.model.views import DirectoryEntry

    if item.is_symlink():
        return DirectoryEntry(name=item.name, kind="symlink", size=0)
    if item.is_dir(follow_symlinks=False):
        return DirectoryEntry(name=item.name, kind="directory", size=0)
    if item.is_file(follow_symlinks=False):
        try:
            return DirectoryEntry(name=item.name, kind="file", size=item.stat(follow_symlinks=False).st_size)
        except FileNotFoundError:
            return None
    return DirectoryEntry(name=item.name, kind="other", size=0)


class PathResolver:
    """One resolution from the root to a last name. It keeps every folder on the way open, so that `..` is exact.

    Use it as a context manager, or close it.
    """

    def __init__(
        self,
        tree: Tree,
        path: str,
        *,
        follow: bool,
        changing: bool,
        gone: bool,
        matches_disk: bool,
        will_be_vacated: Callable[[bytes], bool],
    ) -> None:
        self._tree = tree
        self._given = path
        self._follows = follow
        self._changing = changing
        self._gone = gone
        self._matches_disk = matches_disk
        self._will_be_vacated = will_be_vacated
        self._remaining = _parts(tree.within(path))
        self._folders: list[int] = []  # open folders below the root
        self._names: list[str] = []  # their names
        self._links = 0

    def __enter__(self) -> ResolvedPath:
        """Resolve the path and return the result, as `arrive`."""
        return self.arrive()

    def __exit__(self, *_: object) -> None:
        """Close every folder on the way."""
        self.close()

    def arrive(self) -> ResolvedPath:
        """Resolve the path and return the result. Raises as `Tree.locate`, with every folder closed."""
        try:
            return self._require_reachable(self._run())
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close every folder on the way."""
        for fd in self._folders:
            os.close(fd)
        self._folders.clear()

    @property
    def _folder(self) -> int:
        return self._folders[-1] if self._folders else self._tree.fd

    def _run(self) -> ResolvedPath:
        while self._remaining:
            part = self._remaining.pop()
            if part == "..":
                if not self._folders:
                    raise PathOutside(self._given)
                os.close(self._folders.pop())
                self._names.pop()
                continue
            self._check(part)
            if self._matches_disk:
                part = name_on_disk(self._folder, part)
                self._check(part)
            last = not self._remaining
            if last and not (self._follows and self._is_link(part)):
                return self._resolved(part)
            if last:
                self._follow_link(part)
            elif not self._enter(part):
                if not self._changing and not self._gone:
                    raise FileMissing(self._given, other_form(self._folder, part))
                return self._resolved_missing(part)
        # The path ends in the root, or in a folder that ".." led back to.
        if not self._folders:
            return ResolvedPath(folder=self._tree.fd, name=".", path=".", missing=(), user=self._tree.user)
        name = self._names.pop()
        os.close(self._folders.pop())
        return self._resolved(name)

    def _require_reachable(self, resolved: ResolvedPath) -> ResolvedPath:
        if not self._tree.reaches(resolved.path):
            raise PathOutside(self._given)
        if self._changing and self._tree.denies(resolved.path):
            raise PathReserved(self._given, "a person, by the setting tools.denied")
        return resolved

    def _resolved(self, name: str) -> ResolvedPath:
        return ResolvedPath(
            folder=self._folder, name=name, path="/".join([*self._names, name]), missing=(), user=self._tree.user
        )

    def _resolved_missing(self, part: str) -> ResolvedPath:
        """Return the location of a file whose folders, from `part` on, don't exist yet."""
        rest = self._remaining[::-1]
        if ".." in rest:
            raise FileMissing(self._given)
        for name in rest:
            self._check(name)
        missing = (part, *rest[:-1])
        path = "/".join([*self._names, part, *rest])
        return ResolvedPath(folder=self._folder, name=rest[-1], path=path, missing=missing, user=self._tree.user)

    def _check(self, part: str) -> None:
        if _size(part) > _MAX_NAME:
            raise PathInvalid(self._given, f"a name in it is longer than {_MAX_NAME} bytes")
        if is_store(part):
            raise PathReserved(self._given, "the store")
        if self._changing and is_version_control(part):
            raise PathReserved(self._given, "version control")

    def _is_link(self, part: str) -> bool:
        try:
            return stat.S_ISLNK(os.lstat(part, dir_fd=self._folder).st_mode)
        except OSError as error:
            if is_absence(error):
                return False
            raise failure(error, self._given) from error

    def _enter(self, part: str) -> bool:
        """Open the folder `part`, or follow it if it is a link; return False if it doesn't exist."""
        try:
            self._folders.append(os.open(part, _FOLDER_FLAGS, dir_fd=self._folder))
        except FileNotFoundError:
            return False
        except OSError as error:
            if not is_absence(error):
                raise failure(error, self._given) from error
            if self._will_be_vacated(os.fsencode("/".join([*self._names, part]))):
                return False
            if self._is_link(part):
                self._follow_link(part)
                return True
            raise PathInvalid(self._given, f"{part!r} is not a directory") from error
        if self._tree.user is not None:
            require(self._tree.user, os.fstat(self._folder), os.X_OK, self._given)
        self._names.append(part)
        return True

    def _follow_link(self, part: str) -> None:
        self._links += 1
        if self._links > _MAX_LINKS:
            raise PathInvalid(self._given, "too many links")
        try:
            target = os.readlink(part, dir_fd=self._folder)
        except OSError as error:
            is_other = is_absence(error) or error.errno == errno.EINVAL  # it was a link a moment ago
            raise FileChanged(self._given) if is_other else failure(error, self._given) from error
        if target.startswith("/"):
            try:
                target = self._tree.within(target)
            except PathOutside:
                raise PathOutside(self._given) from None
            self.close()
            self._names.clear()
        self._remaining += _parts(target)


def _nothing(_: str) -> bool:
    return False


def _parts(path: str) -> list[str]:
    """Return the components of a path, the last one first."""
    return [name for name in reversed(path.split("/")) if name not in {"", "."}]
