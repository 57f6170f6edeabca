"""The directories that a server may work in: which of them a path belongs to, and the workspace there."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from copy import copy
from functools import partial
from pathlib import Path, PurePath
from threading import Lock
from typing import Final

from mcptools.edit.display import SPELT_OUT, one_line, shown
from mcptools.model.failures import Failure, FailureKind, failure_of
from mcptools.model.roots import intersected
from objstore import CasError, EditView, FileChanged, Files, NotAWorkspace, Workspace, real_path

__all__ = ["Directories", "not_absolute", "of_directory"]

_open: Final = partial(Workspace.open, is_real=True)
_found: Final = partial(Workspace.init, is_real=True)


class Directories:
    """The allowed directories. Each becomes a workspace when a file in it is first changed.

    Which directory a path belongs to is decided here, by where its parent really is, or by where it leads itself if
    that is such a directory; whether it may be reached there is decided by the workspace, which follows each path
    itself and trusts nothing that was said before.
    """

    def __init__(self, roots: Sequence[str], opening: Callable[[str], Workspace] = _found) -> None:
        """Take the directories, and how a workspace is opened. Raises NotADirectoryError for one that is none.

        Where none is given, it is for the client's roots to say (see `within`).
        """
        for root in roots:
            if not Path(root).is_dir():
                raise NotADirectoryError(root)
        self._given: Final = tuple({os.path.realpath(root): None for root in roots})
        self._opening: Final = opening
        self._opened: Final = _Opened()
        self.homes: Mapping[str, str] = {root: root for root in self._given}
        """Of each allowed directory, the workspace that it lies in."""

    @property
    def roots(self) -> tuple[str, ...]:
        """Return the allowed directories: the innermost first, so that one inside another is one of its own."""
        return tuple(sorted(self.homes, key=lambda root: (-len(root), root)))

    def within(self, roots: Sequence[str]) -> "Directories":
        """Return the same directories as far as they lie within these, which are the client's.

        Where none was given, these are the directories. What is open is shared.
        """
        narrowed = copy(self)
        narrowed.homes = intersected(self._given, roots) if self._given else {root: root for root in roots}
        return narrowed

    def close(self) -> None:
        """Close every workspace."""
        self._opened.close()

    def files_of(self, path: str) -> Files:
        """Return the directory that `path` belongs to, to look at; that makes no store.

        A relative path belongs to the only one. Raises Failure.
        """
        root = self.root_of(path)
        try:
            files = self._opened.files(self.homes[root])
        except (CasError, OSError) as error:
            raise failure_of(error, path) from error
        files = files.confined(parts) if (parts := self._parts(root)) else files
        if SPELT_OUT in path:
            _refuse_shown(files, path)
        return files

    def refuse_shown(self, path: str) -> None:
        """Refuse a path that is only how one is shown which no client can give. Raises as files_of."""
        if SPELT_OUT in path:
            self.files_of(path)

    def changing(self, path: str, precheck: Callable[[], object]) -> tuple[Workspace, tuple[str, ...]]:
        """Return the workspace that `path` belongs to, and below which canonical paths of it a call on it may reach.

        (): everywhere in it. Its store is made if there is none. `foresee`: refuses what it can before that, because a
        refusal is to leave it unmade.
        Raises as files_of, and what Workspace.init raises.
        """
        root = self.root_of(path)
        workspace = self._opened.recorded(self.homes[root])
        if workspace is None:
            precheck()
            return self._opened.workspace(self.homes[root], self._opening), self._parts(root)
        workspace.reopen()
        return workspace, self._parts(root)

    def home(self, root: str) -> Workspace:
        """Return the workspace in this directory, which a call has changed before. Raises as Workspace.open."""
        return self._opened.workspace(root, _open)

    def allows(self, workspace: Files | Workspace, path: str) -> bool:
        """Return whether a canonical path of a workspace lies in an allowed directory."""
        place = PurePath(workspace.root, path)
        return any(home == workspace.root and place.is_relative_to(root) for root, home in self.homes.items())

    def shows(self, workspace: Workspace, view: EditView) -> bool:
        """Return whether an edit is of files in the allowed directories."""
        places = (view.edit.path, view.edit.source or view.edit.path)
        return all(self.allows(workspace, os.fsdecode(place)) for place in places)

    def covers(self, workspace: Workspace) -> bool:
        """Return whether all of a workspace is allowed."""
        return workspace.root in self.homes

    def opened(self) -> list[Workspace]:
        """Return every workspace that was asked for so far."""
        return self._opened.workspaces()

    def recorded_of(self, path: str) -> Workspace | None:
        """Return the workspace that `path` belongs to, or None where no store is. Raises as files_of."""
        return self._opened.recorded(self.homes[self.root_of(path)])

    def root_of(self, path: str) -> str:
        """Return the allowed directory that `path` belongs to. Raises as files_of."""
        if not self.roots:
            raise _nowhere(path, given=bool(self._given))
        if not path.startswith("/"):
            if len(self.roots) > 1 or self._parts(self.roots[0]) or _elsewhere(path):
                raise not_absolute(path)
            return self.roots[0]
        try:
            place = _place(path)
            for root in self.roots:
                if place == root or place.startswith(f"{root.rstrip('/')}/"):
                    return root
            named = real_path(path)  # a directory may have been named by a link to it
        except FileChanged as error:
            raise failure_of(error, path) from error
        except ValueError as error:  # a NUL, or half a character
            raise Failure(FailureKind.INVALID_REQUEST, f"Not a usable path: {shown(path)!r}", path=path) from error
        if named in self.homes:
            return named
        raise Failure(
            FailureKind.PERMISSION_DENIED,
            f"Permission denied: {shown(path)}",
            hint=f"It is outside the allowed directories: {self.listed()}",
            path=path,
        )

    def listed(self) -> str:
        """Return their names as a hint has them."""
        return ", ".join(one_line(shown(root)) for root in self.roots)

    def recorded(self) -> tuple[list[Workspace], list[CasError | OSError]]:
        """Return every workspace that has a store, and why others can't be opened: a directory may be away."""
        found, refusals = [], list[CasError | OSError]()
        for home in dict.fromkeys(self.homes[root] for root in self.roots):
            try:
                workspace = self._opened.recorded(home)
            except (CasError, OSError) as error:
                refusals.append(error)
            else:
                found += [] if workspace is None else [workspace]
        return found, refusals

    def _parts(self, root: str) -> tuple[str, ...]:
        """Return which parts of a directory's workspace are allowed; (): all of it."""
        home = self.homes[root]
        mine = [other for other in self.roots if self.homes[other] == home]
        return () if home in mine else tuple(str(PurePath(other).relative_to(home)) for other in mine)


class _Opened:
    """What is open, by its root: shared by every view of the directories.

    The order of locks: a root's in `_turns`, then its workspace's own, which a held call keeps while it waits for
    another process, then `_lock`. So under `_lock` nothing is waited for but a folder that is opened, and who holds a
    call may look up whatever is open already.

    A root may be moved, and another folder take its place: then that is opened. A link in its place, or on the way, is
    not followed. What was open before stays so until the end, for calls may still be at it.
    """

    def __init__(self) -> None:
        self._open: dict[str, Workspace] = {}
        self._looked_at: dict[str, Files] = {}
        self._turns: dict[str, Lock] = {}  # each held while the workspace there is opened, so that it is opened once
        self._lock = Lock()
        self._closing = ExitStack()

    def close(self) -> None:
        self._closing.close()

    def files(self, root: str) -> Files:
        with self._lock:
            files = self._looked_at.get(root)
            if files is None or not files.is_in_place:
                files = self._looked_at[root] = self._closing.enter_context(Files(root, is_real=True))
            return files

    def workspace(self, root: str, opening: Callable[[str], Workspace]) -> Workspace:
        workspace = self._opened(root, opening)
        workspace.reopen()  # where a write has failed: the server outlasts a disk that was full
        return workspace

    def workspaces(self) -> list[Workspace]:
        with self._lock:
            return list(self._open.values())

    def recorded(self, root: str) -> Workspace | None:
        try:
            return self._opened(root, _open)
        except NotAWorkspace:
            return None

    def _opened(self, root: str, opening: Callable[[str], Workspace]) -> Workspace:
        with self._lock:
            found = self._open.get(root)
            turn = self._turns.setdefault(root, Lock())
        if found is not None and found.is_there:
            return found
        with turn:
            found = self._open.get(root)
            if found is not None and found.is_there:
                return found
            workspace = opening(root)
            with self._lock:
                self._open[root] = self._closing.enter_context(workspace)
            return workspace


def _nowhere(path: str, *, given: bool) -> Failure:
    hint = (
        "The client's roots lie outside the directories that the server was started with: change the one or the other."
        if given
        else "Start the server with a directory, as in `editledger DIR`, or let the client name its roots."
    )
    message = f"No directory is allowed to work in: {shown(path)}"
    return Failure(FailureKind.PERMISSION_DENIED, message, hint=hint, path=path)


def not_absolute(path: str) -> Failure:
    """Return the refusal of a path that does not say which directory it is in."""
    message = f"Path must be absolute: {shown(path)}"
    return Failure(FailureKind.INVALID_REQUEST, message, hint=_elsewhere(path), path=path)


def of_directory(path: str) -> Failure | None:
    """Return the refusal of a path where a file is to be changed, if it can only be a directory's."""
    if not path.endswith(("/", "/.")):
        return None
    message = f"Not the path of a file, for it ends as a directory's: {shown(path)}"
    hint = "Leave the slash out if a file is meant; create_directory makes a directory."
    return Failure(FailureKind.INVALID_REQUEST, message, hint=hint, path=path)


def _refuse_shown(files: Files, path: str) -> None:
    """Refuse a path if it is not that of what is there, and what is there is shown so. Raises Failure.

    Else what was listed would not be found, and a file that is written in its place would be another beside it.
    """
    names = path.split("/")
    for number, name in enumerate(names):
        if SPELT_OUT not in name:
            continue
        folder = "/".join(names[:number]) or ("/" if path.startswith("/") else ".")
        try:
            there = {entry.name for entry in files.list_directory(folder)}
        except (CasError, OSError):
            return  # so says whoever goes there
        if name not in there and name in map(shown, there):
            hint = "What is shown so has a name that is not UTF-8, and no tool can be given it: a person can rename it."
            raise Failure(FailureKind.INVALID_REQUEST, f"Not a usable path: {path}", hint=hint, path=path)


def _elsewhere(path: str) -> str:
    """Return what has to be said of a path that other programs take for one somewhere else ("": none do)."""
    if path == "~" or path.startswith("~/"):
        return "~ stands for nobody's home here. Where a name begins so, write ./~"
    if path.startswith("file:/"):
        return "Give the path itself, without file://"
    return ""


def _place(path: str) -> str:
    """Return where `path` really is, its last name not followed: a link in a directory is that directory's own.

    Raises as `real_path`.
    """
    parent, name = os.path.split(path.rstrip("/"))
    while name == ".":
        parent, name = os.path.split(parent.rstrip("/"))
    if name in {"", ".."}:
        return real_path(path)
    return f"{real_path(parent).rstrip('/')}/{name}"
