"""Remember where the repositories of a workspace were at the last look, and find those that git has moved since.

The positions are in a derived file: if it is lost, a repository counts as unmoved, and what git did in the meantime is
found as changes of files like any other.
"""

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Final

from msgpack import UnpackException, packb, unpackb

from objstore.disk.fs.nofollow import read_store_file, write_derived_file
from objstore.disk.fs.reserved_names import STORE_NAME
from objstore.disk.git.repository import (
    Position,
    ReflogEntry,
    Repository,
    find_repository,
    position_of,
    reflog_since,
    repository_at,
    repository_in,
)
from objstore.storage.transaction.journal import Journal
from objstore.values.errors import CasError, StoreLinked, StoreNotRegular
from objstore.values.fastclass import replace, value

__all__ = ["GitPositions", "Movement", "watch_repositories", "watched_work_trees"]

_FOLDER: Final = "cache"
_NAME: Final = "git"
_LONGEST_FILE: Final = 1 << 20
_MAX_REPOSITORIES: Final = 200


@value
class Movement:
    """The movement of one repository between two looks."""

    repository: Repository
    old: Position
    new: Position
    entries: tuple[ReflogEntry, ...]  # movements of HEAD, oldest first; (): only the stash moved, or no log is kept
    first_seen: str = ""  # what a repository is that was not there at the last look, as "worktree w1"; "": it was
    removed: str = ""  # what a repository was that is gone and was at `old`: "worktree", "submodule"; "": it is there

    @property
    def is_of_index(self) -> bool:
        """Return whether only the index was written, as by `git restore`, `git add`, and sometimes `git status`."""
        return not (self.first_seen or self.removed) and not self.new.moved_from(self.old)

    @property
    def is_of_other_refs(self) -> bool:
        """Return whether only other branches, tags or linked worktrees moved, which changes no file here."""
        return self.is_of_index and self.new.index == self.old.index

    @property
    def is_explained(self) -> bool:
        """Return whether the log of HEAD accounts for the way from the old commit to the new one."""
        if not self.entries:
            return self.old.commit == self.new.commit
        steps = zip(self.entries, self.entries[1:], strict=False)
        is_chain = all(before.new == after.old for before, after in steps)
        first, last = self.entries[0].old, self.entries[-1].new
        return is_chain and first == (self.old.commit or "0" * len(first)) and last == self.new.commit

    @property
    def words(self) -> str:
        """Return what git did, in a few words: `main → feature`, `merge feature`, `stash`."""
        if self.removed:
            return f"{self.removed} at {self.old.commit[:_SHORT]} removed"
        if self.first_seen:
            return f"{self.first_seen} at {self.new.commit[:_SHORT]}"
        if self.is_of_index:
            return "restore"
        if self.old.branch != self.new.branch or (self.entries and self.entries[-1].message.startswith("checkout: ")):
            return f"{_name(self.old)} → {_name(self.new)}"
        if self.old.stash != self.new.stash:
            return "stash" if self.entries else "stash pop"  # only putting changes away resets the files
        if self.new.merging and self.new.merging != self.old.merging:
            return f"merge {self.new.merging[:_SHORT]}"
        if self.entries and (said := self.entries[-1].message.partition(": ")[0].partition(" (")[0]):
            return said
        return f"{self.old.commit[:_SHORT]} → {self.new.commit[:_SHORT]}"


_SHORT: Final = 7

_NOWHERE: Final = Position(branch="", commit="", stash="", merging="", log_size=0, index=0)
"""The position of a repository before it was there."""


def _name(position: Position) -> str:
    return position.branch or position.commit[:_SHORT] or "no commit"


class GitPositions:
    """The remembered positions of one workspace."""

    def __init__(self, journal: Journal) -> None:
        """Read them, and where the repositories are now. No lock is needed."""
        self._journal: Final = journal
        self._root: Final = os.path.realpath(journal.tree.root)
        self._known: dict[str, Position] = self._read()
        own = find_repository(self._root)
        self._repositories: Final = {} if own is None else {own.work_tree: own}
        for work_tree in self._known:
            if work_tree not in self._repositories:
                found = find_repository(work_tree)
                if found is not None and found.work_tree == work_tree:
                    self._repositories[work_tree] = found
        positions = {name: _placed(each, self._known.get(name)) for name, each in self._repositories.items()}
        self._now: dict[str, Position] = {
            name: _carried(self._repositories[name], self._known.get(name), found)
            for name, found in positions.items()
            if found is not None
        }

    def removed(self) -> list[tuple[bytes, Movement]]:
        """Return the folders of the workspace from which a linked worktree or a submodule was removed.

        Each with the movement of the repository that keeps its commits: a clone keeps its own, and takes them along.
        """
        return [
            (os.fsencode(os.path.relpath(work_tree, self._root)), movement)
            for work_tree, old in self._known.items()
            if work_tree not in self._repositories
            and old.commit
            and work_tree != self._root
            and _is_within(work_tree, self._root)
            and not os.path.lexists(os.path.join(work_tree, ".git"))
            and (movement := _removal(old)) is not None
        ]

    def movements(self) -> list[Movement]:
        """Return what moved since the last look, without repositories that are seen for the first time."""
        return [
            Movement(
                repository=self._repositories[work_tree],
                old=self._known[work_tree],
                new=now,
                entries=_entries(self._repositories[work_tree], now, self._known[work_tree].log_size),
            )
            for work_tree, now in self._now.items()
            if work_tree in self._known and self._known[work_tree] != now
        ]

    def first_seen(self, folders: Iterable[bytes]) -> list[tuple[bytes, Movement]]:
        """Return those of some folders of the workspace in which a repository is that was not watched, and watch it."""
        found: list[tuple[bytes, Movement]] = []
        for folder in folders:
            repository = repository_at(os.path.normpath(os.path.join(self._root, os.fsdecode(folder))))
            if not folder or repository is None or repository.work_tree in self._known:
                continue
            position = _placed(repository, None)
            if position is not None and position.commit:
                kind = _kind(position.git_dir)
                movement = Movement(
                    repository=repository,
                    old=_NOWHERE,
                    new=position,
                    entries=_entries(repository, position, 0),
                    first_seen=f"{kind} {os.fsdecode(folder)}".encode("utf-8", "replace").decode(),
                )
                found.append((folder, movement))
        self.watch(folder for folder, _ in found)
        watched = self._read() if found else {}  # what can't be remembered would be found again and again
        return [(folder, movement) for folder, movement in found if movement.repository.work_tree in watched]

    def watch(self, folders: Iterable[bytes]) -> None:
        """Remember also where the repositories at some folders of the workspace are, if there is room. Never raises."""
        added: dict[str, Position] = {}
        for folder in folders:
            found = find_repository(os.path.normpath(os.path.join(self._root, os.fsdecode(folder))))
            if found is None or found.work_tree in self._repositories or len(self._now) >= _MAX_REPOSITORIES:
                continue
            position = _placed(found, None)
            if position is not None:
                self._repositories[found.work_tree] = found
                self._now[found.work_tree] = added[found.work_tree] = position
        if added:
            self._write({**self._read(), **added})

    def note_staged(self, movement: Movement) -> None:
        """Note that an agent's call wrote the index of a repository."""
        work_tree = movement.repository.work_tree
        self._now[work_tree] = replace(self._now[work_tree], is_staged_by_agent=True)

    def save(self) -> None:
        """Remember the present positions, unless they are the remembered ones. Never raises: they are derived."""
        if self._now != self._known:
            # Others may have begun to watch a repository that they found.
            others = {name: position for name, position in self._read().items() if name not in self._known}
            self._write({**others, **self._now})

    def _write(self, positions: Mapping[str, Position]) -> None:
        content = packb({os.fsencode(name): _fields(position) for name, position in positions.items()})
        with suppress(OSError, CasError):
            write_derived_file(self._journal.disk, self._store, _FOLDER, _NAME, content)
            self._known = dict(positions)

    @property
    def _store(self) -> str:
        return os.path.join(self._journal.tree.root, STORE_NAME)

    def _read(self) -> dict[str, Position]:
        return _remembered(self._store)


def _remembered(store: str) -> dict[str, Position]:
    """Return the positions that were written last, by work tree."""
    try:
        held = unpackb(read_store_file(os.path.join(store, _FOLDER, _NAME), _LONGEST_FILE))
    except (OSError, StoreLinked, StoreNotRegular, ValueError, UnpackException):
        return {}
    pairs = held.items() if isinstance(held, dict) else ()
    found = {os.fsdecode(name): _position(fields) for name, fields in pairs if isinstance(name, bytes)}
    return {name: position for name, position in found.items() if position is not None}


def watched_work_trees(journal: Journal) -> list[str]:
    """Return the folders with the files of the repositories that are watched, sorted."""
    return sorted(_remembered(os.path.join(journal.tree.root, STORE_NAME)))


def watch_repositories(journal: Journal, folders: Iterable[bytes]) -> None:
    """Watch the repositories at some folders of the workspace from now on: what moves them is noticed."""
    root = os.fsencode(journal.tree.root)
    found = [folder for folder in folders if os.path.lexists(os.path.join(root, folder, b".git"))]
    if found:
        GitPositions(journal).watch(found)


def _placed(repository: Repository, known: Position | None) -> Position | None:
    """Return the position of a repository, with the folder that has its HEAD: a removed submodule is kept there."""
    position = position_of(repository)
    if position is not None and position.tables:
        from objstore.disk.git.reftable import asked  # few repositories have one, and each hook looks at a position

        position = asked(repository, position, known)
    git_dir = repository.git_dir.encode("utf-8", "replace").decode()
    return None if position is None else replace(position, git_dir=git_dir)


def _entries(repository: Repository, now: Position, size: int) -> tuple[ReflogEntry, ...]:
    """Return the movements of HEAD up to now, after the first `size` bytes or entries of its log."""
    if not now.tables:
        return reflog_since(repository, size)
    from objstore.disk.git.reftable import reflog

    return reflog(repository)[size : now.log_size]  # what moved since then is found by the next look


def _kind(git_dir: str) -> str:
    """Return what a repository is, by the folder that has its HEAD."""
    above = os.path.dirname(git_dir)
    if os.path.basename(above) == "worktrees":
        return "worktree"
    return "repository" if os.path.basename(git_dir) == ".git" else "submodule"


def _removal(old: Position) -> Movement | None:
    """Return the movement of the repository that keeps the commits of one whose files are gone (None: none does)."""
    kind = _kind(old.git_dir)
    git_dir = os.path.dirname(os.path.dirname(old.git_dir)) if kind == "worktree" else old.git_dir
    repository = repository_in(git_dir, git_dir) if old.git_dir else None
    now = None if repository is None else _placed(repository, None)
    if repository is None or now is None:
        return None
    return Movement(repository=repository, old=old, new=now, entries=(), removed=kind)


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + os.sep)


def _carried(repository: Repository, known: Position | None, found: Position) -> Position:
    """Return a position that was found, with what is remembered of its index, which HEAD may have left as it was."""
    if known is None or not known.is_staged_by_agent:
        return found
    if found.moved_from(known):
        from objstore.disk.git.contents import is_any_staged  # an agent waits for what each hook imports

        if not is_any_staged(repository):
            return found
    return replace(found, is_staged_by_agent=True)


def _fields(position: Position) -> tuple[str, str, str, str, int, int, int, bool, str, str]:
    return (
        position.branch,
        position.commit,
        position.stash,
        position.merging,
        position.log_size,
        position.index,
        position.refs,
        position.is_staged_by_agent,
        position.git_dir,
        position.tables,
    )


def _position(fields: object) -> Position | None:
    match fields:
        case [
            str(branch), str(commit), str(stash), str(merging), int(log_size), int(index), int(refs), bool(is_staged),
            str(git_dir), str(tables),
        ] if log_size >= 0:  # fmt: skip
            return Position(
                branch=branch,
                commit=commit,
                stash=stash,
                merging=merging,
                log_size=log_size,
                index=index,
                refs=refs,
                is_staged_by_agent=is_staged,
                git_dir=git_dir,
                tables=tables,
            )
    return None
