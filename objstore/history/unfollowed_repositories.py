"""Find the git repositories of a workspace that can't be followed, and the linked worktrees that are not recorded."""

import os
from contextlib import suppress
from typing import Final

from objstore.disk.git.repository import Repository, find_repository, repository_at
from objstore.storage.transaction.journal import Journal
from objstore.worktree.git_positions import watched_work_trees

__all__ = ["unfollowed_repositories"]

_IGNORED: Final = "a linked worktree that is ignored; what agents do there is not recorded"
_LONGEST_PATH: Final = 1 << 12


def unfollowed_repositories(journal: Journal) -> list[str]:
    """Return a message for each repository of the workspace whose movements can't be noticed, or are not recorded.

    git is asked only about one that it may refuse: of another owner, or with refs in another format.
    """
    root = os.path.realpath(journal.tree.root)
    around = find_repository(root)
    inside = filter(None, map(repository_at, watched_work_trees(journal)))
    repositories = {each.git_dir: each for each in (around, *inside) if each is not None}
    said = [
        f"{each.git_dir}: {reason}; what git does to files is recorded like changes of yours"
        for each in repositories.values()
        if (reason := _why_not_followed(each))
    ]
    ignored = [] if around is None else _ignored_worktrees(journal, around, root)
    return said + [f"{os.fsdecode(path)}: {_IGNORED}" for path in ignored]


def _why_not_followed(repository: Repository) -> str:
    """Return why the movements of a repository can't be noticed; "": they can."""
    is_in_reftable = os.path.lexists(os.path.join(repository.common_dir, "reftable", "tables.list"))
    if is_in_reftable:
        from objstore.disk.git.reftable import can_read_refs  # few repositories have one, and agents wait for each hook

        if not can_read_refs(repository):
            return "its refs are in a reftable, which the git here can't read (version 2.45 can)"
    if _is_of_other(repository.git_dir):
        from objstore.disk.git.command import run_git  # few repositories need it, and a status waits for imports

        if run_git(repository, "rev-parse", "--git-dir") is None:
            return "it belongs to another user"
    return ""


def _is_of_other(path: str) -> bool:
    try:
        return os.stat(path).st_uid != os.geteuid()
    except OSError:
        return False


def _ignored_worktrees(journal: Journal, repository: Repository, root: str) -> list[bytes]:
    """Return the linked worktrees in the workspace that scans leave out, if an agent has worked in the workspace."""
    inside: list[bytes] = []
    with suppress(OSError):
        for name in os.listdir(os.path.join(repository.common_dir, "worktrees")):
            with suppress(OSError, ValueError):
                with open(os.path.join(repository.common_dir, "worktrees", name, "gitdir"), "rb") as file:
                    path = os.path.dirname(os.path.normpath(file.read(_LONGEST_PATH).rstrip(b"\n")))
                below = os.path.relpath(path, os.fsencode(root))
                if os.path.isdir(path) and below != b"." and not below.startswith(b".."):
                    inside.append(below)
    if not inside:
        return []
    from objstore.disk.ignore_rules.rule_files import files_left_out
    from objstore.history.session_queries import had_agents  # as above

    if not had_agents(journal):
        return []
    left_out = files_left_out(journal.tree, [(os.path.join(path, b"file"), False) for path in inside])
    return sorted(path for path in inside if os.path.join(path, b"file") in left_out)
