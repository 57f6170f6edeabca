"""Read what git says of the files in a worktree, from git's own files and without running git.

That is what its ignore files outside the worktree say, and which files are in its index: git doesn't ignore these,
whatever the patterns say. Only the index is large, and it is read only if a pattern matches a name that exists. What is
not read: `includeIf` in git's configuration, and settings in the environment except where git looks for configuration.
"""

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from objstore.disk.fs.disk import read_all
from objstore.disk.fs.stat_signature import read_signature_fields
from objstore.disk.git import repository
from objstore.disk.git.index_file import has_path, index_paths, may_be_split
from objstore.disk.ignore_rules.gitignore import MOST_TEXT
from objstore.model.ids import BlobId, blob_id

__all__ = ["GitWorktree", "enclosing_worktree", "read_start", "worktree_at"]

_MOST_TEXT: Final = 1 << 20
_MOST_INDEX: Final = 1 << 29
_FEW: Final = 6
"""Paths that are looked up one by one; for more, a list of all takes less time."""

_MOST_INCLUDES: Final = 10
_SECTION: Final = r'\s*\[\s*([\w.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\](.*)'
_VALUE: Final = r"\s*([A-Za-z][\w-]*)\s*(?:=\s*(.*))?"
_PIECE: Final = r'\\(.)|(")|([#;])|([^\\"#;]+)'
_BY_WORKTREE: Final = "extensions.worktreeconfig"
_RELEVANT: Final = (b"excludesfile", b"ignorecase", b"objectformat", b"include", b"worktreeconfig")
"""What a configuration file has somewhere if a setting in it matters here. Few have."""

_SHA1: Final = 20
_SHA256: Final = 32


class GitWorktree:
    """A git worktree at `top`: its repository's ignore files and index."""

    def __init__(self, top: str, folder: str, shared: str) -> None:
        """Read the configuration and the ignore files outside the worktree.

        `folder`: the repository's own folder; `shared`: that of all its worktrees.
        """
        self.top: Final = top
        self._folder: Final = folder
        values = _configuration(os.path.join(shared, "config"), os.path.join(folder, "config.worktree"))
        self._hash_size: Final = _SHA256 if values.get("extensions.objectformat", "").lower() == "sha256" else _SHA1
        self.ignores_case: Final = _is_true(values.get("core.ignorecase", ""))
        self.user: Final = read_start(_user_excludes(top, values))
        """The user's ignore file."""
        self.exclude: Final = read_start(os.path.join(shared, "info", "exclude"))
        """The ignore file of the repository, which overrides that of the user."""
        self.index_key: Final = self._index_key()
        """The same as long as git's index has not changed."""
        self._content: bytes | None = None  # of the index; None: not read yet
        self._lookups = 0
        self._index: tuple[set[bytes], set[bytes]] | None = None  # files and folders in it; None: not listed yet

    def has(self, path: bytes, *, is_folder: bool) -> bool:
        """Return whether the index has a file, or a file below a folder. `path`: relative to the top folder."""
        self._lookups += 1
        if self._index is None and self._lookups <= _FEW and not self.ignores_case:
            if self._content is None:
                content = read_text(os.path.join(self._folder, "index"), _MOST_INDEX)
                self._content = b"" if may_be_split(content) else content
            found = has_path(self._content, path, self._hash_size, is_folder=is_folder)
            if found is not None:
                return found
        if self._index is None:
            self._content = None
            self._index = self._read_index()
        files, folders = self._index
        path = self._folded(path)
        return path in files or (is_folder and path in folders)

    def _folded(self, path: bytes) -> bytes:
        return path.lower() if self.ignores_case else path

    def _index_key(self) -> BlobId:
        try:
            facts = read_signature_fields(os.stat(os.path.join(self._folder, "index")))
        except OSError:
            return blob_id(b"")
        return blob_id(repr(tuple(facts)).encode())

    def _read_index(self) -> tuple[set[bytes], set[bytes]]:
        """Return the files in the index, and the folders that they are in. An index that can't be read has none."""
        files: set[bytes] = set()
        folders: set[bytes] = set()
        name = "index"
        while name:
            try:
                paths, shared = index_paths(read_text(os.path.join(self._folder, name), _MOST_INDEX), self._hash_size)
            except ValueError:
                break
            paths = [*map(self._folded, paths)]
            files.update(paths)
            last = b""
            for path in paths:  # in order, so most are in the folder of the one before
                folder = path.rpartition(b"/")[0]
                if folder != last:
                    last = folder
                    while folder and folder not in folders:
                        folders.add(folder)
                        folder = folder.rpartition(b"/")[0]
            # Only the index itself names another, and entries that it no longer has count as well.
            name = f"sharedindex.{shared.hex()}" if shared and name == "index" else ""
        return files, folders


def worktree_at(top: str) -> GitWorktree | None:
    """Return the git worktree at `top` (None: there is none)."""
    found = repository.repository_at(top)
    return None if found is None else GitWorktree(top, found.git_dir, found.common_dir)


def enclosing_worktree(folder: str) -> GitWorktree | None:
    """Return the nearest git worktree above a folder (None: there is none that git would use there).

    As git does, this refuses a worktree of somebody else: in a shared folder, anyone could place one.
    """
    owner, above = os.lstat(folder).st_uid, os.path.dirname(folder)
    while above != folder:
        folder, above = above, os.path.dirname(above)
        with suppress(OSError):
            if os.lstat(os.path.join(folder, ".git")).st_uid in {owner, os.geteuid()}:
                found = worktree_at(folder)
                if found is not None:
                    return found
    return None


# ---- git's configuration


def _user_excludes(top: str, values: dict[str, str]) -> str:
    """Return the path of the user's ignore file."""
    path = values.get("core.excludesfile")
    if path is None:
        return os.path.join(_settings_folder(), "git", "ignore")
    return os.path.join(top, os.path.expanduser(path)) if path else ""


def _settings_folder() -> str:
    return os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")


def _configuration(own: str, of_worktree: str) -> dict[str, str]:
    """Return git's settings for the repository whose configuration file is `own`; the names are in lower case.

    `of_worktree`: the file that overrides it for one of its worktrees, which git reads if a setting says so.
    """
    values: dict[str, str] = {}
    settings = os.environ
    files = [] if settings.get("GIT_CONFIG_NOSYSTEM") else [settings.get("GIT_CONFIG_SYSTEM", "/etc/gitconfig")]
    of_user = [os.path.join(_settings_folder(), "git", "config"), os.path.expanduser("~/.gitconfig")]
    files += [settings["GIT_CONFIG_GLOBAL"]] if "GIT_CONFIG_GLOBAL" in settings else of_user
    for path in (*files, own):
        values |= _settings_in(path, _MOST_INCLUDES)
    return values | _settings_in(of_worktree, _MOST_INCLUDES) if _is_true(values.get(_BY_WORKTREE, "")) else values


def _settings_in(path: str, includes: int) -> dict[str, str]:
    """Return the settings in a configuration file and in those that it includes. `includes`: how deep."""
    values: dict[str, str] = {}
    section = ""
    content = read_text(path)
    if not any(map(content.lower().__contains__, _RELEVANT)):
        return values
    text = content.decode("utf-8", "surrogateescape").replace("\\\n", "")
    for whole in text.split("\n"):
        header = re.match(_SECTION, whole, re.ASCII)
        line = whole
        if header is not None:
            section = header[1].lower() + (f".{header[2]}" if header[2] is not None else "")
            line = header[3]
        found = re.fullmatch(_VALUE, line, re.ASCII)
        if found is None:
            continue
        name = f"{section}.{found[1].lower()}"
        value = "true" if found[2] is None else "".join(_value(found[2]))
        if name == "include.path" and includes:
            inner = os.path.join(os.path.dirname(path), os.path.expanduser(value))
            values |= _settings_in(inner, includes - 1)
        values[name] = value
    return values


def _is_true(value: str) -> bool:
    """Return what a value of git's configuration means as a truth value."""
    number = re.fullmatch(r"[+-]?(\d+)[kmg]?", value, re.ASCII | re.IGNORECASE)
    return value.lower() in {"true", "yes", "on"} if number is None else int(number[1]) != 0


def _value(text: str) -> Iterator[str]:
    """Yield the pieces of a value, without its quotes, its comment and the space before that."""
    is_quoted = False
    waiting = ""  # space that belongs to the value only if more follows
    for found in re.finditer(_PIECE, text):
        escape, quote, comment, plain = found.groups()
        if quote:
            is_quoted = not is_quoted
            continue
        if comment and not is_quoted:
            return
        piece = {"n": "\n", "t": "\t", "b": "\b"}.get(escape, escape) if escape else comment or plain
        yield waiting
        waiting = ""
        if not is_quoted and plain:
            bare = plain.rstrip()
            waiting = plain[len(bare) :]
            piece = bare
        yield piece


def read_text(path: str, most: int = _MOST_TEXT) -> bytes:
    """Return the content of a regular file (b"": there is none that can be read, or it is longer than `most`)."""
    content = read_start(path, most)
    return content if len(content) <= most else b""


def read_start(path: str, most: int = MOST_TEXT, flags: int = 0) -> bytes:
    """Return the content of a regular file, of one that is longer than `most` the first bytes: one more than `most`.

    Empty if there is none that can be read. `flags`: for opening it, in addition.
    """
    if not path:
        return b""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | flags)
    except (OSError, ValueError):
        return b""
    try:
        found = os.fstat(fd)
        return read_all(fd, min(found.st_size, most + 1)) if stat.S_ISREG(found.st_mode) else b""
    except OSError:
        return b""
    finally:
        os.close(fd)
