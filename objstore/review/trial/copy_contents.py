"""List the files of a workspace that scans cover, and copy them elsewhere with the changes that a decision would make.

A copy shares no inode with the workspace: its files are clones of their blocks where the file system has that, and
written bytes elsewhere. A hard link would let the command that runs in the copy change the person's own file.
"""

import fcntl
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final

from objstore.disk.config.path_patterns import PathPatterns
from objstore.disk.fs.disk import failure
from objstore.disk.fs.stat_signature import StatSignature
from objstore.disk.ignore_rules.rule_files import folder_at
from objstore.model.ids import BlobHasher, BlobId
from objstore.model.relpath import folders_above, joined
from objstore.storage.transaction.journal import Journal
from objstore.values.errors import DiskFull
from objstore.values.fastclass import NamedTuple, value
from objstore.worktree.scan import WorktreeScan, discard_content
from objstore.worktree.walk import SkippedPath

__all__ = ["CoveredFile", "CoveredTree", "FileResult", "copied", "covered_tree", "tree_key"]

_CLONE: Final = 0x40049409
"""FICLONE, of Linux: share the blocks of a file until one of the two is written."""

_PIECE: Final = 1 << 20
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NEVER_LINKED: Final = frozenset({b".git", b".cas"})


class CoveredFile(NamedTuple):
    """A file or symlink that scans cover."""

    signature: StatSignature
    blob: BlobId


class FileResult(NamedTuple):
    """What a decision would leave at a path."""

    mode: int
    blob: BlobId
    pieces: Iterable[bytes]  # the bytes of `blob`


@value
class CoveredTree:
    """What scans cover of a workspace at one moment."""

    files: Mapping[bytes, CoveredFile]  # by path
    folders: tuple[bytes, ...]  # ascending, without the root
    ignored: tuple[bytes, ...]  # paths that rules leave out, ascending
    skipped: tuple[SkippedPath, ...]  # what could not be read

    def changed_since(self, earlier: "CoveredTree") -> list[bytes]:
        """Return the paths that were written, removed or added since, ascending."""
        paths = self.files.keys() | earlier.files.keys()
        return sorted(path for path in paths if self.files.get(path) != earlier.files.get(path))


def covered_tree(journal: Journal) -> CoveredTree:
    """Scan the workspace and return what is covered. Nothing is recorded. Raises what a walk raises."""
    scan = WorktreeScan(journal)
    walk = scan.walk(discard_content)
    walk.run()
    cache = scan.stat_cache
    files: dict[bytes, CoveredFile] = {}
    for cached in cache:
        for name, (signature, blob) in cached.files().items():
            files[joined(cached.path, name)] = CoveredFile(signature, blob)
    left_out = [joined(folder, name) for folder, names, _ in cache.ignored_names() for name in names]
    return CoveredTree(
        files=files,
        folders=tuple(sorted(path for path in cache.paths(b"") if path)),
        ignored=tuple(sorted(left_out)),
        skipped=tuple(dict.fromkeys(walk.skipped)),
    )


def tree_key(covered: CoveredTree, results: Mapping[bytes, FileResult | None]) -> str:
    """Return a name of the files that a copy with these results has: the same if and only if they are the same."""
    states = {path: (file.signature.tree_mode, file.blob) for path, file in covered.files.items()}
    for path, result in results.items():
        states.pop(path, None)
        if result is not None:
            states[path] = (result.mode, result.blob)
    hasher = BlobHasher()
    for path, (mode, blob) in sorted(states.items()):
        kind = b"l" if stat.S_ISLNK(mode) else b"x" if mode & stat.S_IXUSR else b"f"
        hasher.update(b"%d %s %s%s" % (len(path), path, kind, blob))
    return hasher.blob_id().hex()


def copied(
    journal: Journal,
    covered: CoveredTree,
    results: Mapping[bytes, FileResult | None],
    place: str,
    target: int,
    links: PathPatterns,
) -> list[SkippedPath]:
    """Copy what is covered into the folder `place`, open as `target`, as it will be with `results` (None: no file).

    A link to a full path in the workspace leads into the copy. `links`: ignored names that the copy links to, in the
    workspace. Returns what is missing in the copy: what could not be read, or changed meanwhile. Raises DiskFull, and
    what writing raises.
    """
    moved = _Moved(os.fsencode(journal.tree.root), os.fsencode(place))
    skipped = list(covered.skipped)
    put = {path for path, result in results.items() if result is not None}
    for folder in covered.folders:
        if put.isdisjoint((folder, *folders_above(folder))):  # else a file takes the folder's place
            os.mkdir(folder, 0o755, dir_fd=target)
    by_folder: dict[bytes, list[bytes]] = {}
    for path, file in covered.files.items():
        if path not in results or _has_bytes_of(file, results[path]):
            folder, _, name = path.rpartition(b"/")
            by_folder.setdefault(folder, []).append(name)
    for folder, names in sorted(by_folder.items()):
        skipped += _copied_folder(journal, folder, names, target, moved)
    for path, result in results.items():
        is_copied = _has_bytes_of(covered.files.get(path), result) and _is_there(path, target)
        _put(path, result, target, moved, is_copied=is_copied)
    for path in covered.ignored:
        if path.rpartition(b"/")[2] not in _NEVER_LINKED and _is_linked(links, path):
            with suppress(FileExistsError):
                os.symlink(os.path.join(os.fsencode(journal.tree.root), path), path, dir_fd=target)
    return skipped


# ---- inside


def _has_bytes_of(file: CoveredFile | None, result: FileResult | None) -> bool:
    """Return whether a copy of a file has the bytes of a result, and is a symlink if that is one."""
    if file is None or result is None:
        return False
    return file.blob == result.blob and stat.S_ISLNK(file.signature.tree_mode) == stat.S_ISLNK(result.mode)


class _Moved(NamedTuple):
    """The workspace's folder, and that of a copy."""

    root: bytes
    place: bytes

    def link(self, leads_to: bytes) -> bytes:
        """Return where a symlink leads in the copy."""
        inside = leads_to == self.root or leads_to.startswith(self.root + b"/")
        return self.place + leads_to[len(self.root) :] if inside else leads_to


def _copied_folder(
    journal: Journal, folder: bytes, names: list[bytes], target: int, moved: _Moved
) -> Iterator[SkippedPath]:
    """Copy some names of one folder; yield what is not there any more, or can't be read."""
    try:
        with folder_at(journal.tree, folder) as source:
            for name in names:
                path = joined(folder, name)
                try:
                    _copy(source, name, target, path, moved)
                except OSError as error:
                    yield _missing(path, error, moved)
    except OSError as error:
        yield _missing(folder, error, moved)


def _missing(path: bytes, error: OSError, moved: _Moved) -> SkippedPath:
    """Return why a path is not in the copy. Raises DiskFull if there was no space for it."""
    name = os.fsdecode(path)
    found = failure(error, os.path.join(os.fsdecode(moved.place), name))
    if isinstance(found, DiskFull):
        raise found from error
    return SkippedPath(path=name, reason=error.strerror or str(error))


def _copy(source: int, name: bytes, target: int, path: bytes, moved: _Moved) -> None:
    found = os.lstat(name, dir_fd=source)
    if stat.S_ISLNK(found.st_mode):
        os.symlink(moved.link(os.readlink(name, dir_fd=source)), path, dir_fd=target)
        return
    read = os.open(name, _READ, dir_fd=source)
    try:
        found = os.fstat(read)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(None, "not a regular file any more")
        with _created(path, target, stat.S_IMODE(found.st_mode)) as written:
            try:
                fcntl.ioctl(written, _CLONE, read)
            except OSError:
                while piece := os.read(read, _PIECE):
                    _write(written, piece)
            os.utime(written, ns=(found.st_atime_ns, found.st_mtime_ns))
    finally:
        os.close(read)


@contextmanager
def _created(path: bytes, target: int, mode: int) -> Iterator[int]:
    fd = os.open(path, _WRITE, 0o600, dir_fd=target)
    try:
        yield fd
        os.fchmod(fd, mode & 0o777)
    finally:
        os.close(fd)


def _write(fd: int, piece: bytes) -> None:
    view = memoryview(piece)
    while view:
        view = view[os.write(fd, view) :]


def _put(path: bytes, result: FileResult | None, target: int, moved: _Moved, *, is_copied: bool) -> None:
    try:
        if result is None:
            return
        if is_copied:
            if not stat.S_ISLNK(result.mode):
                os.chmod(path, result.mode & 0o777, dir_fd=target)
            return
        for folder in reversed([above for above in folders_above(path) if above]):
            with suppress(FileExistsError):
                os.mkdir(folder, 0o755, dir_fd=target)
        if stat.S_ISLNK(result.mode):
            os.symlink(moved.link(b"".join(result.pieces)), path, dir_fd=target)
            return
        with _created(path, target, result.mode) as written:
            for piece in result.pieces:
                _write(written, piece)
    except OSError as error:
        raise failure(error, os.fsdecode(os.path.join(moved.place, path))) from error


def _is_there(path: bytes, target: int) -> bool:
    try:
        os.lstat(path, dir_fd=target)
    except OSError:
        return False
    return True


def _is_linked(links: PathPatterns, path: bytes) -> bool:
    folder, _, name = os.fsdecode(path).rpartition("/")
    return links.leaves_out(name, folder) or links.leaves_out(name, folder, is_folder=True)
