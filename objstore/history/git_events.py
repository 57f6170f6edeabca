"""Look up what git did to the recorded files, and which commits accepted edits."""

import os
import re
from collections.abc import Container
from contextlib import suppress
from typing import Final

from objstore.disk.git.command import run_git
from objstore.disk.git.repository import Repository, find_repository, repository_at
from objstore.history.session_queries import had_agents
from objstore.model.basic_types import Action, DocumentId, Seq, Status
from objstore.model.records import Decision, Edit
from objstore.model.status_report import UnreviewedCommit
from objstore.model.views import GitEvent
from objstore.storage.transaction.journal import Journal
from objstore.values.request_errors import AmbiguousName, NoSuchName
from objstore.worktree.git_positions import watched_work_trees

__all__ = [
    "GIT_EVENT_NOTE",
    "commits_of_edits",
    "decisions_of_git",
    "find_commit",
    "git_events",
    "unfollowed_repositories",
    "unreviewed_commits",
]

GIT_EVENT_NOTE: Final = "decision"
"""The note of an edit of origin git: the number of the decision that records what git did."""

_IGNORED: Final = "a linked worktree that is ignored; what agents do there is not recorded"
_LONGEST_PATH: Final = 1 << 12
_HEX: Final = "[0-9a-f]{4,64}"
_KIND: Final = "commit"


def git_events(journal: Journal) -> list[GitEvent]:
    """Return what git did, newest first."""
    made = [decision for decision in decisions_of_git(journal) if decision.action is Action.GIT]
    unreviewed = {each.commit for each in unreviewed_commits(journal)}
    return [_event(journal, decision, unreviewed) for decision in reversed(made)]


def decisions_of_git(journal: Journal) -> list[Decision]:
    """Return the decisions that record what git did, or that a commit made, oldest first."""
    found = (journal.store.record(place)[0] for place in journal.store.index.decisions.of_git())
    return [record for record in found if isinstance(record, Decision)]


def commits_of_edits(journal: Journal) -> dict[Seq, str]:
    """Return the commit, in hex, that accepted each edit, for edits that a commit accepted."""
    return {
        unit.seq: decision.commit
        for decision in decisions_of_git(journal)
        if decision.action is Action.ACCEPT
        for unit, _ in decision.verdicts
    }


def unreviewed_commits(journal: Journal) -> list[UnreviewedCommit]:
    """Return the commits that agents made and that contain edits which are still pending, newest first."""
    found: list[UnreviewedCommit] = []
    for decision in reversed(decisions_of_git(journal)):
        if decision.action is not Action.GIT or not (decision.commit and decision.conversation):
            continue
        named = {unit.seq for unit, status in decision.verdicts if status is Status.PENDING}
        rows = filter(None, map(journal.store.index.edits.get, sorted(named if not decision.written else ())))
        pending = tuple(row.seq for row in rows if row.status is Status.PENDING and not row.expired)
        if pending:
            found.append(UnreviewedCommit(commit=decision.commit, conversation=decision.conversation, edits=pending))
    return found


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


def find_commit(journal: Journal, spelling: str) -> str:
    """Return the recorded commit that a user's text names: a beginning of its id, or a name that git knows.

    Raises NoSuchName, AmbiguousName.
    """
    known = {decision.commit for decision in decisions_of_git(journal) if decision.commit}
    found = sorted(commit for commit in known if commit.startswith(spelling)) if re.fullmatch(_HEX, spelling) else []
    if len(found) > 1:
        raise AmbiguousName(spelling, _KIND, found)
    if found:
        return found[0]
    repository = find_repository(journal.tree.root)
    # A name that begins with "-" would be an option of git's.
    if repository is not None and not spelling.startswith("-") and "\0" not in spelling:
        printed = run_git(repository, "rev-parse", "--verify", "--quiet", f"{spelling}^{{commit}}")
        commit = (printed or b"").decode("ascii", "replace").strip()
        if commit in known:
            return commit
    raise NoSuchName(spelling, _KIND)


def _why_not_followed(repository: Repository) -> str:
    """Return why the movements of a repository can't be noticed; "": they can."""
    is_in_reftable = os.path.lexists(os.path.join(repository.common_dir, "reftable", "tables.list"))
    if is_in_reftable:
        from objstore.disk.git.reftable import can_read_refs  # few repositories have one, and agents wait for each hook

        if not can_read_refs(repository):
            return "its refs are in a reftable, which the git here can't read (version 2.45 can)"
    if _is_of_other(repository.git_dir) and run_git(repository, "rev-parse", "--git-dir") is None:
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
    if not inside or not had_agents(journal):
        return []
    from objstore.disk.ignore_rules.rule_files import files_left_out

    left_out = files_left_out(journal.tree, [(os.path.join(path, b"file"), False) for path in inside])
    return sorted(path for path in inside if os.path.join(path, b"file") in left_out)


def _event(journal: Journal, decision: Decision, unreviewed: Container[str]) -> GitEvent:
    after = journal.store.index.history.newest_edit_before(decision.number)
    documents = {written.document for written in decision.changed_files}
    documents.update(_documents_of_edits(journal, decision, after))
    return GitEvent(
        decision=decision.number,
        time=decision.time,
        words=decision.reason,
        commit=decision.commit,
        conversation=decision.conversation,
        files=len(documents),
        is_reviewed=bool(decision.verdicts) and decision.commit not in unreviewed,
        after=after,
    )


def _documents_of_edits(journal: Journal, decision: Decision, after: Seq) -> list[DocumentId]:
    """Return the documents of the event's own edits, which follow its decision directly."""
    documents: list[DocumentId] = []
    seq = after
    while (row := journal.store.index.edits.get(seq + 1)) is not None:
        record = journal.store.record(row.place)[0]
        if not (isinstance(record, Edit) and record.notes.get(GIT_EVENT_NOTE) == str(decision.number)):
            break
        documents.append(record.document)
        seq = Seq(seq + 1)
    return documents
