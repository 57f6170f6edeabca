"""Look up what git did to the recorded files, and which commits accepted edits."""

import re
from collections.abc import Container
from typing import Final

from objstore.disk.git.command import run_git
from objstore.disk.git.repository import find_repository
from objstore.model.basic_types import Action, DocumentId, Seq, Status
from objstore.model.records import Decision, Edit
from objstore.model.status_report import UnreviewedCommit
from objstore.model.views import GitEvent
from objstore.storage.transaction.journal import Journal
from objstore.values.request_errors import AmbiguousName, NoSuchName

__all__ = [
    "GIT_EVENT_NOTE",
    "commits_of_edits",
    "decisions_of_git",
    "find_commit",
    "git_events",
    "unreviewed_commits",
]

GIT_EVENT_NOTE: Final = "decision"
"""The note of an edit of origin git: the number of the decision that records what git did."""

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
