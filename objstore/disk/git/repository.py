"""Find the repository around a folder, and read its position without running git.

The position says whether git may have changed files since the last time: any command that does so moves HEAD or the
stash, begins a merge, adds a line to the log of HEAD, or writes the index. Reading it takes a few small files. Whatever
is there may be hostile: files are read up to a limit, and content that git would not have written counts as missing.

Source: gitrepository-layout(5), gitglossary(7).
"""

import os
import re
import stat
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from objstore.model.ids import blob_id
from objstore.values.fastclass import replace, value

__all__ = [
    "LFS_POINTER",
    "Position",
    "ReflogEntry",
    "Repository",
    "find_repository",
    "is_sparse",
    "moment_of",
    "position_of",
    "reflog_since",
    "repository_at",
    "repository_in",
]

LFS_POINTER: Final = b"version https://git-lfs.github.com/spec/v1"
"""The beginning of what Large File Storage keeps in the place of a content."""

_SECOND: Final = 1_000_000_000
_TIME_ERROR: Final = 1_100_000_000
"""Nanoseconds by which a time that git notes may differ from that of the file system: it has whole seconds, of a clock
that the system advances at each tick, and the ticks of a busy virtual machine come late."""

_MAX_SMALL_FILE: Final = 1 << 16
_MAX_PACKED_REFS: Final = 1 << 26
_MAX_REFLOG: Final = 1 << 20
"""Bytes of the newest part of the log of HEAD that are read."""

# Patterns are compiled where they are used: every command reads a position, and mostly nothing has moved.
_HEX_DIGITS: Final = frozenset("0123456789abcdef")
_HASH_LENGTHS: Final = (40, 64)  # of SHA-1 and SHA-256, in hexadecimal digits
_NOT_IN_REFS: Final = frozenset((*map(chr, range(0x21)), *"\x7f~^:?*[\\"))
_REFLOG_LINE: Final = (
    rb"(?P<old>[0-9a-f]{40,64}) (?P<new>[0-9a-f]{40,64}) .*> (?P<time>[0-9]{1,12}) [+-][0-9]{4}(?:\t(?P<message>.*))?"
)
_STASH: Final = "refs/stash"
_IN_REFTABLE: Final = "refs/heads/.invalid"
"""What HEAD names in a repository whose refs are in a reftable, so that no older git takes it for one of its own."""

_TABLES: Final = os.path.join("reftable", "tables.list")
_MAX_FOLDERS: Final = 1_000
"""Folders of branches and tags that are looked at."""


@value
class Repository:
    """A repository with files."""

    work_tree: str  # absolute path of the folder with the files
    git_dir: str  # with HEAD and its log; in a linked worktree, a folder of its own
    common_dir: str  # with branches and objects


@value
class Position:
    """The position of a repository: branch, commit, stash, merge in progress, and the time of its index."""

    branch: str  # "": HEAD is detached
    commit: str  # hexadecimal; "": no commit yet
    stash: str  # newest entry of the stash, hexadecimal; "": none
    merging: str  # commit that is being merged, while conflicts wait for a person; "": none
    log_size: int  # bytes in the log of HEAD; of refs in a reftable, its entries
    index: int  # when git last wrote its index (ns): also when it restores a file, or looks at one; 0: no index
    refs: int = 0  # when a branch, a tag or the HEAD of a linked worktree last moved (ns); 0: there is none
    is_staged_by_agent: bool = False  # whether an agent's call wrote what may still be in the index
    git_dir: str = ""  # where a repository that is remembered has its HEAD; "": not known
    tables: str = ""  # digest of the list of tables that its refs are in, which changes with them; "": they are files

    def moved_from(self, other: "Position") -> bool:
        """Return whether anything but the index and other refs differs."""
        mine, others = (
            replace(each, index=0, refs=0, is_staged_by_agent=False, git_dir="", tables="") for each in (self, other)
        )
        return mine != others


@value
class ReflogEntry:
    """One movement of HEAD."""

    old: str  # commit, hexadecimal; zeros: none
    new: str
    time: int  # seconds since 1970-01-01 UTC
    message: str  # such as "checkout: moving from main to feature"

    @property
    def made_commit(self) -> bool:
        """Return whether a new commit was made of what someone put into files; git's own merges and picks are not."""
        return self.message.startswith(("commit", "am:")) or "(continue)" in self.message


def find_repository(folder: str) -> Repository | None:
    """Return the repository whose files include those in `folder`, an absolute path (None: there is none)."""
    while True:
        found = repository_at(folder)
        if found is not None:
            return found
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above


def repository_at(folder: str) -> Repository | None:
    """Return the repository whose `.git` is in this folder (None: there is none).

    In a linked worktree and a submodule, `.git` is a file that names the folder.
    """
    path = os.path.join(folder, ".git")
    try:
        is_folder = stat.S_ISDIR(os.stat(path).st_mode)
    except (OSError, ValueError):
        return None
    git_dir = path
    if not is_folder:
        link = (_read(path) or b"").decode("utf-8", "surrogateescape").rstrip("\n")
        if not link.startswith("gitdir: ") or "\0" in link:
            return None
        git_dir = os.path.normpath(os.path.join(folder, link.removeprefix("gitdir: ")))
    return repository_in(git_dir, folder)


def repository_in(git_dir: str, work_tree: str) -> Repository | None:
    """Return the repository that has its HEAD in a folder (None: there is none)."""
    if _read(os.path.join(git_dir, "HEAD")) is None:
        return None
    common = (_read(os.path.join(git_dir, "commondir")) or b"").decode("utf-8", "surrogateescape").rstrip("\n")
    common_dir = os.path.normpath(os.path.join(git_dir, common)) if common and "\0" not in common else git_dir
    return Repository(work_tree=work_tree, git_dir=git_dir, common_dir=common_dir)


def is_sparse(repository: Repository) -> bool:
    """Return whether git may leave files of the index out of the work tree, now or until it last wrote the index."""
    return os.path.exists(os.path.join(repository.git_dir, "info", "sparse-checkout"))


def position_of(repository: Repository) -> Position | None:
    """Return where a repository is; None if its files can't be read, or say nothing that git would write.

    Refs in a reftable are unknown here: then branch and commit are "", and `tables` shows that they may have moved.
    """
    head = _read(os.path.join(repository.git_dir, "HEAD"))
    if head is None:
        return None
    text = head.decode("utf-8", "surrogateescape").rstrip("\n")
    ref = text.removeprefix("ref: ")
    if ref == text:
        if not _is_commit(text):
            return None
        branch, commit = "", text
    elif _is_ref(ref):
        is_known = ref != _IN_REFTABLE
        branch, commit = (
            (_printable(ref.removeprefix("refs/heads/")), _resolved(repository, ref)) if is_known else ("", "")
        )
    else:
        return None
    return Position(
        branch=branch,
        commit=commit,
        stash=_resolved(repository, _STASH),
        merging=_resolved(repository, "MERGE_HEAD"),
        log_size=_stat(_log_path(repository), lambda found: found.st_size),
        index=_stat(os.path.join(repository.git_dir, "index"), lambda found: found.st_mtime_ns),
        refs=_refs_moved(repository),
        tables=_tables(repository),
    )


def moment_of(repository: Repository, commit: str, said: int) -> tuple[int, int]:
    """Return when git wrote the object of a commit, and the possible error of that time (ns).

    `said`: the time that the commit, or a log of git, has for it, in seconds since 1970-01-01 UTC. It can be any, as
    with GIT_COMMITTER_DATE, so it counts only if the object is in a pack, as after a fetch or a cleaning up.
    """
    written = _mtime(os.path.join(repository.common_dir, "objects", commit[:2], commit[2:]))
    return (written, 0) if written else (said * _SECOND, _TIME_ERROR)


def reflog_since(repository: Repository, size: int) -> tuple[ReflogEntry, ...]:
    """Return the movements of HEAD noted after the first `size` bytes of its log, oldest first.

    At most the newest MiB of the log is read. If it is shorter than `size`, it was rewritten, and nothing is returned.
    """
    entries: list[ReflogEntry] = []
    for line in _tail(_log_path(repository), size).split(b"\n"):
        found = re.fullmatch(_REFLOG_LINE, line)
        if found is not None:
            entries.append(
                ReflogEntry(
                    old=found["old"].decode(),
                    new=found["new"].decode(),
                    time=int(found["time"]),
                    message=(found["message"] or b"").decode("utf-8", "replace"),
                )
            )
    return tuple(entries)


# ---- inside


def _printable(name: str) -> str:
    """Return a branch's name as a text that records can hold: it may have bytes that are not UTF-8."""
    return name.encode("utf-8", "replace").decode()


def _is_ref(name: str) -> bool:
    is_below = name.startswith("refs/") and not any(part in {"", ".", ".."} for part in name.split("/"))
    return is_below and _NOT_IN_REFS.isdisjoint(name)


def _is_commit(text: str) -> bool:
    return len(text) in _HASH_LENGTHS and _HEX_DIGITS.issuperset(text)


def _resolved(repository: Repository, ref: str) -> str:
    """Return the commit that a ref names ("": none)."""
    for folder in dict.fromkeys([repository.git_dir, repository.common_dir]):
        text = (_read(os.path.join(folder, ref)) or b"").decode("ascii", "replace").rstrip("\n")
        if _is_commit(text):
            return text
    packed = _read(os.path.join(repository.common_dir, "packed-refs"), _MAX_PACKED_REFS)
    if not packed:
        return ""
    found = re.search(rb"^([0-9a-f]{40,64}) " + re.escape(os.fsencode(ref)) + rb"$", packed, re.MULTILINE)
    return "" if found is None else found[1].decode()


def _refs_moved(repository: Repository) -> int:
    """Return when a branch, a tag, the stash or the HEAD of a worktree last moved (ns), as its file's time says."""
    common = repository.common_dir
    moments = [_mtime(os.path.join(common, name)) for name in ("packed-refs", _STASH, _TABLES)]
    waiting = [os.path.join(common, "refs", kind) for kind in ("heads", "tags")]
    for _ in range(_MAX_FOLDERS):
        if not waiting:
            break
        with suppress(OSError), os.scandir(waiting.pop()) as found:
            for entry in found:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                else:
                    moments.append(entry.stat(follow_symlinks=False).st_mtime_ns)
    with suppress(OSError), os.scandir(os.path.join(common, "worktrees")) as found:
        moments += [_mtime(os.path.join(entry.path, "logs", "HEAD")) for entry in found]
    return max(moments)


def _tables(repository: Repository) -> str:
    """Return the digest of the lists of tables of a repository ("": its refs are files)."""
    folders = dict.fromkeys([repository.common_dir, repository.git_dir])
    lists = [_read(os.path.join(folder, _TABLES)) for folder in folders]
    return "" if lists[0] is None else blob_id(b"\0".join(content or b"" for content in lists)).hex()


def _mtime(path: str) -> int:
    return _stat(path, lambda found: found.st_mtime_ns)


def _log_path(repository: Repository) -> str:
    return os.path.join(repository.git_dir, "logs", "HEAD")


def _stat(path: str, field: Callable[[os.stat_result], int]) -> int:
    """Return a field of a file's stat result; 0: there is no file."""
    try:
        return field(os.stat(path))
    except OSError:
        return 0


def _read(path: str, longest: int = _MAX_SMALL_FILE) -> bytes | None:
    """Return the content of a regular file; None if there is none, or it is longer than `longest` bytes."""
    with suppress(OSError, ValueError):
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(fd, "rb") as file:
            if stat.S_ISREG(os.fstat(fd).st_mode):
                content = file.read(longest + 1)
                return content if len(content) <= longest else None
    return None


def _tail(path: str, start: int) -> bytes:
    """Return the bytes of a regular file from `start` on, but no more than the limit for the log of HEAD."""
    with suppress(OSError, ValueError):
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(fd, "rb") as file:
            found = os.fstat(fd)
            if stat.S_ISREG(found.st_mode) and found.st_size > start:
                file.seek(max(start, found.st_size - _MAX_REFLOG))
                return file.read(_MAX_REFLOG)
    return b""
