"""Read which names scans leave out, from the settings, the ignore files of folders, and what git says.

A name that looks like a secret, or that the settings exclude, is left out whatever else applies. A name that git
ignores is left out unless git's index has it.
"""

import errno
import os
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from objstore.disk.fs.confined_path import ResolvedPath, Tree, read_at
from objstore.disk.fs.store_owner import may
from objstore.disk.ignore_rules.git_worktree import GitWorktree, enclosing_worktree, read_start, worktree_at
from objstore.disk.ignore_rules.gitignore import GIT_IGNORE_FILE, IGNORE_FILE, Rules, Verdict
from objstore.disk.ignore_rules.ignore_texts import NO_TEXTS, IgnoreTexts
from objstore.disk.ignore_rules.scan_rules import ScanRules, rules_of_workspace
from objstore.model.ids import BlobId, blob_id
from objstore.model.relpath import folders_above, joined
from objstore.values.errors import CasError, FileMissing, PathIsSymlink

__all__ = [
    "ABOVE",
    "RULE_FILES",
    "IgnoreReader",
    "RepositoryIndex",
    "files_left_out",
    "folder_at",
    "nearest_repository",
]

RULE_FILES: Final = frozenset({IGNORE_FILE, GIT_IGNORE_FILE})

ABOVE: Final = b"/"
"""The key, in place of a path, of a repository whose top folder is above the workspace."""

_READING: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class RepositoryIndex:
    """The index of a repository, by paths of the workspace."""

    def __init__(self, repository: GitWorktree, path: bytes, above: bytes) -> None:
        """Take a repository with its top folder at `path`, or (ABOVE) so far above that `above` leads to the root."""
        self.repository: Final = repository
        self.path: Final = path
        self._start: Final = 0 if path in {ABOVE, b""} else len(path) + 1
        self._above: Final = above

    @property
    def key(self) -> tuple[BlobId, BlobId]:
        """Return two values: the same as long as git's ignore files are, and as long as the index is."""
        found = self.repository
        return blob_id(repr((found.user, found.exclude, found.ignores_case)).encode()), found.index_key

    def has(self, path: bytes, *, is_folder: bool) -> bool:
        """Return whether the index has a file, or a file below a folder. `path`: relative to the workspace."""
        return self.repository.has(self._above + path[self._start :], is_folder=is_folder)


class IgnoreReader:
    """The rules of one scan: each folder's ignore files, and the repositories that it meets."""

    def __init__(
        self,
        tree: Tree,
        rules: ScanRules,
        repositories: dict[bytes, RepositoryIndex | None] | None = None,
    ) -> None:
        """Take the workspace's folder and what the settings say.

        `repositories`: by path, those that another reader of the same scan has opened, to which this one adds (None at
        a path: none is there).
        """
        self._tree: Final = tree
        self.rules: Final = rules
        self.report: Callable[[bytes, str], None] = lambda _, __: None  # gets a path that can't be read, and why
        self._repositories: Final = {} if repositories is None else repositories
        self._from_disk: Final[dict[bytes, Rules]] = {}  # of folders that were read for `leaves_out`
        self._root_name = b""
        self.base: Final = self._rules_above_root()
        """The rules of the folder above the workspace's root."""

    def name_of(self, path: bytes) -> bytes:
        """Return the name that a folder has in the rules."""
        return path.rpartition(b"/")[2] if path else self._root_name

    def repository(self, path: bytes) -> RepositoryIndex | None:
        """Return the index of the repository with its top folder at a path (None: none is there)."""
        if path not in self._repositories:
            found = worktree_at(os.path.join(self._tree.root, os.fsdecode(path))) if path != ABOVE else None
            self._repositories[path] = None if found is None else RepositoryIndex(found, path, b"")
        return self._repositories[path]

    def repositories(self) -> dict[bytes, RepositoryIndex]:
        """Return the repositories that were found so far, by path."""
        return {path: found for path, found in self._repositories.items() if found is not None}

    def texts(self, fd: int, path: bytes, names: Container[bytes], repository: RepositoryIndex | None) -> IgnoreTexts:
        """Return the ignore files of an open folder. `names`: of its files. `repository`: if it is the top of one."""
        own = self.text(fd, path, IGNORE_FILE) if IGNORE_FILE in names else b""
        if not self.rules.uses_git:
            return IgnoreTexts(b"", own) if own else NO_TEXTS
        git = self.text(fd, path, GIT_IGNORE_FILE) if GIT_IGNORE_FILE in names else b""
        if repository is not None:
            return IgnoreTexts(git, own, repository.repository.exclude, repository.repository.user)
        return IgnoreTexts(git, own) if git or own else NO_TEXTS

    def rules_in(self, path: bytes, above: Rules, texts: IgnoreTexts, *, is_ignored: bool, is_top: bool) -> Rules:
        """Return the rules of a folder. `is_ignored`: git ignores it; `is_top`: it is the top of a repository."""
        index = self.repository(path) if is_top else None
        ignores_case = index is not None and index.repository.ignores_case
        return Rules(above, self.name_of(path), texts, index=index, is_ignored=is_ignored, ignores_case=ignores_case)

    def read_rules(self, fd: int, path: bytes, above: Rules, *, is_ignored: bool = False) -> Rules:
        """Return the rules of an open folder whose names are not known."""
        names = {name for name in (*RULE_FILES, b".git") if _exists(fd, name)}
        repository = self.repository(path) if self.rules.uses_git and b".git" in names else None
        texts = self.texts(fd, path, names, repository)
        return self.rules_in(path, above, texts, is_ignored=is_ignored, is_top=repository is not None)

    def leaves_out(self, path: bytes, *, is_gone: bool = False) -> bool:
        """Return whether a scan of the workspace leaves out a file. `is_gone`: only a folder above it can be left out.

        Folders that a tag file marks as rebuilt don't count.
        """
        parts = path.split(b"/")
        rules: Rules | None = None
        folder = b""
        for name in parts[: -1 if is_gone else None]:
            is_folder = len(folder) + len(name) + 1 < len(path)
            rules = self._from_disk.get(folder)
            try:
                if rules is None:
                    above = self._from_disk[folder.rpartition(b"/")[0]] if folder else self.base
                    with folder_at(self._tree, folder) as fd:
                        rules = self._from_disk[folder] = self.read_rules(fd, folder, above)
            except OSError:
                return False
            inner = joined(folder, name)
            if self.rules.is_never_taken(os.fsdecode(inner)):
                return True
            verdict = rules.verdict(name, is_folder=is_folder)
            if verdict is Verdict.LEFT_OUT or (verdict is Verdict.IGNORED_BY_GIT and not _has(rules, path)):
                return True
            folder = inner
        return False

    def text(self, fd: int, path: bytes, name: bytes) -> bytes:
        """Return the content of a file in an open folder (b"": there is none that can be read, which is reported)."""
        resolved = ResolvedPath(folder=fd, name=os.fsdecode(name), path=os.fsdecode(joined(path, name)), missing=())
        try:
            return read_at(resolved).content
        except FileMissing:
            return b""
        except PathIsSymlink:
            self.report(joined(path, name), "it is a symbolic link, whose target is not read")
            return b""
        except CasError as error:
            self.report(joined(path, name), str(error))
            return b""

    # ---- inside

    def _rules_above_root(self) -> Rules:
        """Return the rules that the folders above the workspace give, if it is inside a repository."""
        rules = Rules(kind=self.rules.fingerprint)
        root = self._tree.root
        if not self.rules.uses_git or os.path.lexists(os.path.join(root, ".git")):
            return rules
        above = self._repositories.get(ABOVE)
        repository = enclosing_worktree(root) if above is None else above.repository
        if repository is None:
            return rules
        *folders, name = os.fsencode(os.path.relpath(root, repository.top)).split(b"/")
        self._root_name = name
        index = above or RepositoryIndex(repository, ABOVE, b"/".join([*folders, name, b""]))
        self._repositories[ABOVE] = index
        of_top = read_start(os.path.join(repository.top, ".gitignore"), flags=os.O_NOFOLLOW)
        texts = IgnoreTexts(of_top, b"", repository.exclude, repository.user)
        rules = Rules(rules, b"", texts, index=index, ignores_case=repository.ignores_case)
        for at, folder in enumerate(folders, 1):
            path = os.path.join(os.fsencode(repository.top), *folders[:at], GIT_IGNORE_FILE)
            rules = Rules(rules, folder, IgnoreTexts(read_start(os.fsdecode(path), flags=os.O_NOFOLLOW), b""))
        return rules


def files_left_out(tree: Tree, files: Iterable[tuple[bytes, bool]]) -> set[bytes]:
    """Return the files that scans leave out; none if the settings can't be read. Each is given with whether it is gone.

    Only a folder above it can leave out a file that is gone.
    """
    try:
        reader = IgnoreReader(tree, rules_of_workspace(tree.root))
    except CasError:
        return set()
    return {path for path, is_gone in files if reader.leaves_out(path, is_gone=is_gone)}


@contextmanager
def folder_at(tree: Tree, path: bytes) -> Iterator[int]:
    """Open a folder, name by name and following no symlink. Raises OSError."""
    fd = tree.fd
    try:
        for name in path.split(b"/") if path else [b"."]:
            inner = os.open(name, _READING, dir_fd=fd)
            if fd != tree.fd:
                os.close(fd)
            fd = inner
            if tree.user is not None and not may(tree.user, os.fstat(fd), os.R_OK | os.X_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), os.fsdecode(path))
    except OSError:
        if fd != tree.fd:
            os.close(fd)
        raise
    try:
        yield fd
    finally:
        os.close(fd)


def nearest_repository(path: bytes, known: Container[bytes]) -> bytes | None:
    """Return which of the known repositories a path is in (None: in none)."""
    found = next((folder for folder in (path, *folders_above(path)) if folder in known), None)
    return ABOVE if found is None and ABOVE in known else found


def _exists(fd: int, name: bytes) -> bool:
    with suppress(OSError):
        os.lstat(name, dir_fd=fd)
        return True
    return False


def _has(rules: Rules, path: bytes) -> bool:
    """Return whether git's index has a file."""
    return rules.index is not None and rules.index.has(path, is_folder=False)
