"""Ask git's objects about lines under review: which ones git lost, and which ones agents committed.

A commit that an agent's call made has lines that the workspace may never have seen: on a branch, in a linked worktree,
in the stash. When they come into a file, whoever brings them, they await review.

A branch that is left keeps its files, and a stash keeps what it put away. `git reset --hard`, `git checkout -f` and a
stash that is dropped keep nothing: what was in a file and in no commit is gone, and so is a commit that no branch, tag
or stash names any more. If an agent's call ran such a command, that is the call's change, which a person can reject.

"""

import os
from collections.abc import Collection, Iterator, Mapping, Set as AbstractSet
from functools import cached_property
from typing import Final

from objstore.disk.git.command import run_git
from objstore.disk.git.contents import (
    AddedText,
    TreeEntry,
    entries_at,
    is_any_of,
    is_content_of,
    merge_base,
    staged_at,
    text_added,
    texts_of,
)
from objstore.disk.git.repository import Repository, find_repository
from objstore.history.git_events import decisions_of_git
from objstore.model.basic_types import UNKNOWN_AGENT, Action
from objstore.model.large_file_placeholder import is_placeholder
from objstore.model.results import Difference
from objstore.storage.store.write_batch import Batch
from objstore.storage.transaction.journal import Journal
from objstore.text.diff import diff_lines
from objstore.text.forms import is_either_binary, shown_lines
from objstore.text.lines import split_lines
from objstore.worktree.git_positions import Movement

__all__ = ["COMMIT", "AgentsLines", "commits_of_agents", "is_named", "lost_paths", "path_in_repository", "stashes_of"]

COMMIT: Final = "commit"
"""The reason of the record that an agent's call made a commit."""

_MOST_AGENTS_COMMITS: Final = 200
"""Commits of agents whose lines are looked up; of more, the newest."""

_MOST_COMMITS: Final = 20
"""Commits of one movement, and entries of the stash, that are looked up; of more, the newest."""


def lost_paths(movement: Movement, found: Mapping[bytes, Difference], batch: Batch) -> set[bytes]:
    """Return the paths of the files that lost lines which nothing in the repository keeps.

    `found`: by path in the repository, files that existed before. Nothing is asked of git if there are none.
    """
    if not found:
        return set()
    repository = movement.repository
    versions = list(_kept_versions(movement, found.keys()))
    names = {entry.id for version in versions for path, entry in version.items() if path in found}
    texts = texts_of(repository, names) or {}
    lost = set()
    for path, here in found.items():
        entries = [version[path] for version in versions if path in version]
        if not _is_kept(here, entries, texts, batch):
            lost.add(path)
    return lost


def commits_of_agents(journal: Journal) -> dict[str, str]:
    """Return the commits that were made during agents' calls, each with the conversation."""
    return {
        decision.commit: decision.conversation
        for decision in decisions_of_git(journal)
        if decision.action is Action.GIT and decision.conversation and decision.reason == COMMIT
    }


class AgentsLines:
    """The lines that agents committed, as far as the repositories still have the commits."""

    def __init__(self, journal: Journal) -> None:
        """Ask nothing of git yet."""
        self._journal: Final = journal
        self._added: dict[str, AddedText] = {}  # by work tree

    @cached_property
    def _commits(self) -> dict[str, str]:
        return commits_of_agents(self._journal)

    @property
    def sessions(self) -> str:
        """The conversations that committed, as the note of an unattributed edit has them."""
        return "\n".join(sorted({*self._commits.values()} - {UNKNOWN_AGENT}))

    def of(self, path: bytes) -> AbstractSet[bytes]:
        """Return the lines that agents committed to the file at a path of the workspace, without endings.

        Those that they committed to a file that is gone count too: git follows a file that was renamed.
        """
        repository, inside = self._place(path)
        if repository is None:
            return frozenset()
        added = self._added_in(repository).lines
        top = os.fsencode(repository.work_tree)
        gone = (lines for other, lines in added.items() if not os.path.lexists(os.path.join(top, other)))
        return frozenset(added.get(inside, frozenset())).union(*gone)

    def have_committed(self, path: bytes, text: bytes) -> bool:
        """Return whether agents committed exactly this text, at any path of the repository that has this one."""
        repository, _ = self._place(path)
        return repository is not None and is_any_of(self._added_in(repository).blobs, text)

    # ---- inside

    def _place(self, path: bytes) -> tuple[Repository | None, bytes]:
        """Return the repository with a path of the workspace, and the path in it; None: no agent committed there."""
        if not self._commits:
            return None, b""
        folder = os.path.dirname(os.path.join(os.path.realpath(self._journal.tree.root), os.fsdecode(path)))
        repository = find_repository(folder)
        inside = None if repository is None else path_in_repository(self._journal, repository, path)
        return (None, b"") if inside is None else (repository, inside)

    def _added_in(self, repository: Repository) -> AddedText:
        if repository.work_tree not in self._added:
            newest = list(self._commits)[-_MOST_AGENTS_COMMITS:]
            self._added[repository.work_tree] = text_added(repository, newest)
        return self._added[repository.work_tree]


def path_in_repository(journal: Journal, repository: Repository, path: bytes) -> bytes | None:
    """Return a path of the workspace relative to the repository's files; None if it is outside them."""
    root = os.fsencode(os.path.realpath(journal.tree.root))
    below = os.path.relpath(os.path.join(root, path), os.fsencode(repository.work_tree))
    return None if below == b".." or below.startswith(b"../") else below


def stashes_of(repository: Repository) -> list[str]:
    """Return the newest entries of the stash."""
    listed = run_git(repository, "rev-list", "-g", f"--max-count={_MOST_COMMITS}", "refs/stash", "--") or b""
    return listed.decode("ascii", "replace").split()


def is_named(repository: Repository, commit: str, head: str) -> bool:
    """Return whether a commit can be reached from HEAD or from a ref."""
    if head and run_git(repository, "merge-base", "--is-ancestor", commit, head) is not None:
        return True
    return bool(run_git(repository, "for-each-ref", "--count=1", f"--contains={commit}"))


# ---- inside


def _is_kept(here: Difference, entries: Collection[TreeEntry], texts: Mapping[str, bytes], batch: Batch) -> bool:
    """Return whether every line that a file lost is in one of the versions of it that git keeps."""
    if here.known is None:
        return True
    before = batch.text(here.known.blob)
    if any(is_content_of(entry, before) for entry in entries):
        return True
    after = b"" if here.now is None else shown_lines(batch.text(here.now.blob))
    before = shown_lines(before)
    if is_placeholder(before) or is_placeholder(after) or is_either_binary(before, after):
        return False
    kept = {line.rstrip() for entry in entries for line in shown_lines(texts.get(entry.id, b"")).split(b"\n")}
    lines = split_lines(before)
    removed = (line for hunk in diff_lines(before, after) for line in lines[hunk.old_start : hunk.old_end])
    return all(not line.strip() or line.rstrip() in kept for line in removed)


def _kept_versions(movement: Movement, paths: Collection[bytes]) -> Iterator[Mapping[bytes, TreeEntry]]:
    """Yield what git keeps of some files: in commits that a ref leads to, in the stash, and in the index."""
    repository, new = movement.repository, movement.new
    left = [movement.old.commit, *(each for entry in movement.entries for each in (entry.old, entry.new))]
    left = list(dict.fromkeys(commit for commit in reversed(left) if commit.strip("0") and commit != new.commit))
    for commit in left[:_MOST_COMMITS]:
        if is_named(repository, commit, new.commit):
            yield entries_at(repository, commit, paths) or {}
        else:  # what it has in common with the new commit is kept
            base = merge_base(repository, commit, new.commit) if new.commit else ""
            yield (entries_at(repository, base, paths) or {}) if base else {}
    for stash in stashes_of(repository):
        for each in (stash, f"{stash}^3"):  # its third parent has the files that git did not track
            yield entries_at(repository, each, paths) or {}
    for each in filter(None, (new.commit, new.merging)):
        yield entries_at(repository, each, paths) or {}
    yield staged_at(repository, paths)
