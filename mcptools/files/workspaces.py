"""Find the allowed directory that a path belongs to, and the workspace of that directory."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from copy import copy
from functools import cache, partial
from pathlib import Path, PurePath
from threading import Lock
from typing import Final

from mcptools.edit.display import UNDECODABLE_MARK, one_line, shown
from mcptools.model.failures import Failure, FailureKind, failure_of
from mcptools.model.roots import intersected
from objstore import CasError, EditView, FileChanged, Files, NotAWorkspace, Workspace, denied_paths, real_path

__all__ = ["Directories", "denied_in", "not_absolute", "of_directory"]

_open: Final = partial(Workspace.open, is_real=True)
_create: Final = partial(Workspace.init, is_real=True)


class Directories:
    """The allowed directories. Each becomes a workspace when a file in it is first changed.

    This class decides which directory a path belongs to: by the real path of its parent, or by its own real path if
    that is an allowed directory. The workspace decides whether the path may be reached there: it resolves each path
    itself, and does not rely on any earlier check.
    """

    def __init__(self, roots: Sequence[str], opening: Callable[[str], Workspace] = _create) -> None:
        """Allow these directories; without any, those that the client names as its roots (see `within`).

        A path that is no directory is left out, and listed in `missing`. `opening`: opens or creates the workspace of
        a directory. Raises NotADirectoryError if none of the paths is a directory, because without any directory the
        client would choose.
        """
        self.missing: Final = tuple(root for root in roots if not Path(root).is_dir())
        """The paths that were given and are no directories."""
        if roots and len(self.missing) == len(roots):
            raise NotADirectoryError(self.missing[0])
        self._given: Final = tuple({os.path.realpath(root): None for root in roots if root not in self.missing})
        self._opening: Final = opening
        self._opened: Final = _Opened()
        self.homes: Mapping[str, str] = {root: root for root in self._given}
        """The root of the workspace that each allowed directory is in."""

    @property
    def roots(self) -> tuple[str, ...]:
        """Return the allowed directories, the longest path first, so that a nested one is found before its parent."""
        return tuple(sorted(self.homes, key=lambda root: (-len(root), root)))

    def within(self, roots: Sequence[str]) -> "Directories":
        """Return the allowed directories narrowed to `roots`, which are the client's.

        If the server was started without directories, the roots are allowed. Open workspaces are shared.
        """
        narrowed = copy(self)
        narrowed.homes = intersected(self._given, roots) if self._given else {root: root for root in roots}
        return narrowed

    def close(self) -> None:
        """Close every workspace."""
        self._opened.close()

    def files_of(self, path: str) -> Files:
        """Return read access to the directory that `path` belongs to, without creating a store.

        A relative path belongs to the only allowed directory. Raises Failure.
        """
        root = self.root_of(path)
        try:
            files = self._opened.files(self.homes[root])
        except (CasError, OSError) as error:
            raise failure_of(error, path) from error
        files = files.confined(self._parts(root), denied_in(self.homes[root]))
        if UNDECODABLE_MARK in path:
            _refuse_shown(files, path)
        return files

    def refuse_shown(self, path: str) -> None:
        r"""Refuse a path that is the displayed form of a name that is not UTF-8 (\udcNN). Raises as files_of."""
        if UNDECODABLE_MARK in path:
            self.files_of(path)

    def changing(self, path: str, precheck: Callable[[], object]) -> tuple[Workspace, tuple[str, ...]]:
        """Return the workspace that `path` belongs to, and the canonical paths below which a call may change files.

        () means everywhere in the workspace. Creates the store if there is none; `precheck` runs before that and
        raises if the call is going to be refused, because a refusal must not create a store.
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
        """Return the workspace at this root, which has a store. Raises as Workspace.open."""
        return self._opened.workspace(root, _open)

    def allows(self, workspace: Files | Workspace, path: str) -> bool:
        """Return whether a canonical path of a workspace is in an allowed directory."""
        place = PurePath(workspace.root, path)
        return any(home == workspace.root and place.is_relative_to(root) for root, home in self.homes.items())

    def shows(self, workspace: Workspace, view: EditView) -> bool:
        """Return whether all paths of an edit are in the allowed directories."""
        places = (view.edit.path, view.edit.source or view.edit.path)
        return all(self.allows(workspace, os.fsdecode(place)) for place in places)

    def covers(self, workspace: Workspace) -> bool:
        """Return whether all of a workspace is allowed."""
        return workspace.root in self.homes

    def opened(self) -> list[Workspace]:
        """Return every workspace that has been opened so far."""
        return self._opened.workspaces()

    def recorded_of(self, path: str) -> Workspace | None:
        """Return the workspace that `path` belongs to, or None if it has no store. Raises as files_of."""
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
            named = real_path(path)  # the path may be a link to an allowed directory
        except FileChanged as error:
            raise failure_of(error, path) from error
        except ValueError as error:  # a NUL, or half a surrogate pair
            raise Failure(FailureKind.INVALID_REQUEST, f"Not a usable path: {shown(path)!r}", path=path) from error
        if named in self.homes:
            return named
        raise Failure(
            FailureKind.PERMISSION_DENIED,
            f"Permission denied: {shown(path)}",
            hint=f"It is outside the allowed directories: {self.listed()}{self._not_served(place)}",
            path=path,
        )

    def _not_served(self, place: str) -> str:
        """Return what to add of a path in a directory that was given and was none at the start; "": it is in none."""
        for root in self.missing:
            if PurePath(place).is_relative_to(Path(root).resolve()):
                where = one_line(shown(root))
                return f". There was no directory {where} when the server started: start it again once there is one."
        return ""

    def listed(self) -> str:
        """Return the allowed directories as one text, for a hint."""
        return ", ".join(one_line(shown(root)) for root in self.roots)

    def recorded(self) -> tuple[list[Workspace], list[CasError | OSError]]:
        """Return every workspace that has a store, and the errors of those that can't be opened."""
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
        """Return the allowed canonical paths of a directory's workspace; (): all of it."""
        home = self.homes[root]
        mine = [other for other in self.roots if self.homes[other] == home]
        return () if home in mine else tuple(str(PurePath(other).relative_to(home)) for other in mine)


def denied_in(root: str) -> Callable[[str], bool]:
    """Return a function that says whether the file at a canonical path of a workspace is one that no tool may change.

    It reads the settings when it is first called, and raises what `denied_paths` raises.
    """
    patterns = cache(partial(denied_paths, root))
    return lambda path: patterns().names_file(path)


class _Opened:
    """The open workspaces and folders by root, shared by every narrowed view of the directories.

    Lock order: the root's lock in `_turns`, then the workspace's own lock, which a held call keeps while it waits for
    another process, then `_lock`. So a thread that holds `_lock` waits at most for a folder to be opened, and a thread
    that holds a call can look up everything that is open.

    A root may be moved and another folder take its place: then that folder is opened. A link at its path, or above it,
    is not followed. What was open before stays open until the end, because calls may still use it.
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
        workspace.reopen()  # after a failed write, so that the server recovers from a full disk
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
    """Return the refusal of a relative path where an absolute one is needed."""
    message = f"Path must be absolute: {shown(path)}"
    return Failure(FailureKind.INVALID_REQUEST, message, hint=_elsewhere(path), path=path)


def of_directory(path: str) -> Failure | None:
    """Return the refusal of a file path that can only be a directory's, because it ends in a slash; None: it can be."""
    if not path.endswith(("/", "/.")):
        return None
    message = f"Not the path of a file, for it ends as a directory's: {shown(path)}"
    hint = "Leave the slash out if a file is meant; create_directory makes a directory."
    return Failure(FailureKind.INVALID_REQUEST, message, hint=hint, path=path)


def _refuse_shown(files: Files, path: str) -> None:
    """Refuse a path that does not exist but is the displayed form of a name that does. Raises Failure.

    Otherwise a listed file would be reported as missing, and a write would create a second file next to it.
    """
    names = path.split("/")
    for number, name in enumerate(names):
        if UNDECODABLE_MARK not in name:
            continue
        folder = "/".join(names[:number]) or ("/" if path.startswith("/") else ".")
        try:
            there = {entry.name for entry in files.list_directory(folder)}
        except (CasError, OSError):
            return  # the caller reports that when it uses the path
        if name not in there and name in map(shown, there):
            hint = "The name shown so is not UTF-8, and no tool can use it: a person can rename it."
            raise Failure(FailureKind.INVALID_REQUEST, f"Not a usable path: {path}", hint=hint, path=path)


def _elsewhere(path: str) -> str:
    """Return the hint for a path that other programs would expand or decode, such as ~ or a file URI; "": none."""
    if path == "~" or path.startswith("~/"):
        return "~ is not expanded here. For a name that begins with ~, write ./~"
    if path.startswith("file:/"):
        return "Give the path itself, without file://"
    return ""


def _place(path: str) -> str:
    """Return the real path of `path`'s parent with its last name, which may be a link and is not followed.

    Raises as `real_path`.
    """
    parent, name = os.path.split(path.rstrip("/"))
    while name == ".":
        parent, name = os.path.split(parent.rstrip("/"))
    if name in {"", ".."}:
        return real_path(path)
    return f"{real_path(parent).rstrip('/')}/{name}"
