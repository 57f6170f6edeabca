"""Accept the pending edits that a person's commit contains, and note commits that agents make.

Who commits a file has decided on its text. So edits whose text is in the commit as a whole are accepted by a decision,
which can be undone like any other. What the person rejected or overwrote is not in it. A commit made during an agent's
call accepts nothing, because the agent may have made it: it is recorded, so that a status can show what was committed
without a review.
"""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from operator import attrgetter
from typing import Final

from objstore.agents.git_evidence import COMMIT, commits_of_agents, path_in_repository
from objstore.agents.returned_lines import ReviewedLines, bare_lines
from objstore.disk.config.config_files import Configuration
from objstore.disk.git.contents import (
    TreeEntry,
    committed_blobs,
    entries_at,
    is_content_of,
    new_commits,
    texts_of,
)
from objstore.disk.git.repository import ReflogEntry, moment_of
from objstore.history.documents.loader import load_document
from objstore.model.basic_types import UNKNOWN_AGENT, Action, FileState, OnExternal, Origin, Status, Unit
from objstore.model.large_file_placeholder import blob_of_text, is_placeholder
from objstore.model.records import Decision
from objstore.model.results import Attributor, CallInfo, owner_at
from objstore.review.calls.policies import Policies
from objstore.review.decisions import DecisionRequest, decide
from objstore.storage.index.rows import Tip
from objstore.storage.store.write_batch import now
from objstore.storage.transaction.journal import Journal
from objstore.text.diff import diff_lines
from objstore.text.forms import is_either_binary, shown_lines
from objstore.text.hunks import Hunk
from objstore.values.errors import UNREADABLE, HistoryBroken
from objstore.values.fastclass import value
from objstore.values.request_errors import EditTakenOut
from objstore.weave.document import Document
from objstore.worktree.baseline import known_state_of
from objstore.worktree.external_changes import found_changes
from objstore.worktree.git_positions import Movement

__all__ = ["record_commits"]

_SHORT: Final = 7


@value
class _PendingFile:
    """A file with pending edits."""

    tip: Tip
    path: bytes  # relative to the repository


def record_commits(journal: Journal, movement: Movement, whose: CallInfo | Attributor) -> None:
    """Record what the commits of a movement decide: a person's accept what they contain, an agent's accept nothing.

    `whose`: says whose a commit at a moment is. Raises what `decide` and Journal.commit raise.
    """
    made = [entry for entry in movement.entries if entry.made_commit]
    _note_other_commits(journal, movement, whose, {entry.new for entry in made})
    by_person: list[ReflogEntry] = []
    for entry in made:
        owner = owner_at(whose, b"", *moment_of(movement.repository, entry.new, entry.time))
        owner = owner if owner.origin.needs_review else _unread_author(journal, movement, entry, whose) or owner
        if owner.origin.needs_review:
            _note_unreviewed(journal, movement, entry, owner)
        else:
            by_person.append(entry)
    if by_person and Configuration(journal.tree.root).get("git.commit").value == "accept":
        for entry in by_person:
            _accept(journal, movement, entry)


def is_staged_by_agent(movement: Movement, whose: CallInfo | Attributor) -> bool:
    """Return whether an agent's call may have written the index, and with it what `git restore` puts into files."""
    is_written = movement.new.index != movement.old.index
    return is_written and owner_at(whose, b"", movement.new.index, 0).origin.needs_review


# ---- inside


def _unread_author(
    journal: Journal, movement: Movement, entry: ReflogEntry, whose: CallInfo | Attributor
) -> CallInfo | None:
    """Return who may have written what a person committed and no look has read, if an agent may have.

    That is text of a file that is gone since, or that an agent's call had staged: a checkout may bring it as git's.
    """
    if isinstance(whose, CallInfo):
        return None
    root = os.path.relpath(movement.repository.work_tree, os.path.realpath(journal.tree.root))
    moment = moment_of(movement.repository, entry.new, entry.time)
    staged = CallInfo(tool="", origin=Origin.UNATTRIBUTED) if movement.old.is_staged_by_agent else None
    possible: dict[bytes, tuple[bytes, CallInfo]] = {}  # by path in the repository: that in the workspace, and who
    for path in committed_blobs(movement.repository, entry.new):
        place = os.path.normpath(os.path.join(os.fsencode(root), path))
        if place.startswith(b".."):
            continue
        is_here = os.path.lexists(os.path.join(os.fsencode(journal.tree.root), place))
        owner = None if is_here else owner_at(whose, place, *moment)
        owner = owner if owner is not None and owner.origin.needs_review else staged
        if owner is not None:
            possible[path] = place, owner
    if not possible:
        return None
    entries = entries_at(movement.repository, entry.new, possible.keys()) or {}
    texts = texts_of(movement.repository, [each.id for each in entries.values()]) or {}
    with journal.reading():
        return next(
            (
                owner
                for path, (place, owner) in possible.items()
                if path in entries and not _is_read(journal, place, entries[path], texts.get(entries[path].id))
            ),
            None,
        )


def _is_read(journal: Journal, path: bytes, entry: TreeEntry, text: bytes | None) -> bool:
    """Return whether a look has read what a commit has for a path, or each line of it at some time."""
    if text is None:
        return False
    if journal.store.index.blobs.place(blob_of_text(text)) is not None:
        return True
    tip = journal.store.tip_at(path)
    try:
        state = known_state_of(journal, path) if tip is None else tip.state
        known = journal.store.text(state.blob) if isinstance(state, FileState) else b""
    except UNREADABLE:
        return False
    if is_content_of(entry, known):
        return True
    reviewed = None if tip is None else ReviewedLines(journal).of_document(tip.document)
    lines = set(bare_lines(shown_lines(known))) if reviewed is None else reviewed.lines
    return lines >= set(bare_lines(shown_lines(text)))


def _note_other_commits(
    journal: Journal, movement: Movement, whose: CallInfo | Attributor, noted: Collection[str]
) -> None:
    """Record the commits that an agent's call made elsewhere: on another branch, in a linked worktree, in the stash."""
    moved = max(movement.new.refs, movement.old.refs + 1)
    if movement.new.refs <= movement.old.refs or not owner_at(whose, b"", moved, 0).origin.needs_review:
        return
    known = {*noted, *commits_of_agents(journal)}
    for commit, time, parents in new_commits(movement.repository, movement.old.commit):
        owner = owner_at(whose, b"", *moment_of(movement.repository, commit, time))
        if commit not in known and owner.origin.needs_review:
            old = parents.partition(" ")[0] or "0" * len(commit)
            entry = ReflogEntry(old=old, new=commit, time=time, message="commit")
            _note_unreviewed(journal, movement, entry, owner)


def _note_unreviewed(journal: Journal, movement: Movement, entry: ReflogEntry, owner: CallInfo) -> None:
    """Record an agent's commit, with the pending edits that it contains as a whole: they stay pending."""
    with journal.reading():
        units = set(_units_in_commit(journal, movement, entry, by_agent=True))
    with journal.writing() as batch:
        edits = journal.store.index.edits
        rows = {seq: row for seq in {unit.seq for unit in units} if (row := edits.get(seq)) is not None}
        batch.record(
            Decision(
                number=journal.store.index.numbers.next_decision(),
                time=now(),
                action=Action.GIT,
                verdicts=tuple(
                    (unit, Status.PENDING)
                    for unit in sorted(units)
                    if rows[unit.seq].units[unit.hunk] is Status.PENDING
                ),
                written=(),
                who="git",
                reason=COMMIT,
                commit=entry.new,
                conversation=owner.conversation or UNKNOWN_AGENT,
            )
        )
        journal.commit(batch, ())


def _accept(journal: Journal, movement: Movement, commit: ReflogEntry) -> None:
    """Accept the pending edits that a commit contains as a whole."""
    with journal.reading():
        units = dict.fromkeys(_units_in_commit(journal, movement, commit), Status.ACCEPTED)
    if not units:
        return
    request = DecisionRequest(
        action=Action.ACCEPT,
        verdicts=units,
        who="git",
        reason=f"committed in {commit.new[:_SHORT]}",
        commit=commit.new,
        on_external=OnExternal.ABORT,
        expected=(),
        dry_run=False,
    )
    with suppress(EditTakenOut):  # the commit has none of it
        decide(journal, request)


def _units_in_commit(
    journal: Journal, movement: Movement, commit: ReflogEntry, *, by_agent: bool = False
) -> Iterator[Unit]:
    """Yield the pending units that are in a commit as a whole, of files that the commit changed."""
    pending = list(_pending_files(journal, movement, by_agent=by_agent))
    paths = [file.path for file in pending]
    before = entries_at(movement.repository, commit.old, paths) if commit.old.strip("0") else {}
    after = entries_at(movement.repository, commit.new, paths)
    if not pending or before is None or after is None:
        return
    committed = [file for file in pending if before.get(file.path) != after.get(file.path)]
    texts = texts_of(movement.repository, [after[file.path].id for file in committed if file.path in after]) or {}
    for file in committed:
        yield from _units_in(journal, file, after.get(file.path), texts)


def _pending_files(journal: Journal, movement: Movement, *, by_agent: bool) -> Iterator[_PendingFile]:
    """Yield the files of the repository that have pending edits and are on disk as recorded.

    Those that a policy always wants reviewed are left out, unless the commit is an agent's: it accepts nothing anyway.
    """
    index = journal.store.index
    tips = [
        index.documents.tip(document) for document in dict.fromkeys(edit.document for edit in index.edits.pending())
    ]
    changed = {change.document for change in found_changes(journal, tips)}
    policies = Policies(journal.tree.root, journal.store)
    for tip in tips:
        path = path_in_repository(journal, movement.repository, tip.path)
        is_reviewed = not by_agent and policies.needs_review(os.fsdecode(tip.path))
        if path is not None and tip.document not in changed and not is_reviewed:
            yield _PendingFile(tip=tip, path=path)


def _units_in(
    journal: Journal, file: _PendingFile, entry: TreeEntry | None, texts: Mapping[str, bytes]
) -> Iterator[Unit]:
    """Yield the pending units of a file's edits that are in a commit as a whole, where the commit has `entry`."""
    try:
        document = load_document(journal, file.tip.document)
    except HistoryBroken:
        return
    state = file.tip.state
    if state is None or entry is None:
        if state is None and entry is None:
            yield from document.pending()
        return
    if entry.is_executable is not bool(state.mode & 0o111):
        return
    text = journal.store.text(state.blob)
    if is_placeholder(text):
        return
    different: Sequence[Hunk] = ()
    if not is_content_of(entry, text, is_link=state.is_link):
        if state.is_link:
            return
        committed = texts.get(entry.id)
        lines = document.lines_text() or b""
        if committed is None or is_either_binary(lines, shown_lines(committed)):
            return
        different = diff_lines(lines, shown_lines(committed))
    units = document.pending()
    if different:
        edits = [[*of] for _, of in groupby(units, attrgetter("seq"))]
        units = [unit for of in edits if _is_untouched(document, of, different) for unit in of]
    overwritten = document.overwritten(units)
    yield from (unit for unit in units if unit not in overwritten)


def _is_untouched(document: Document, units: Iterable[Unit], different: Sequence[Hunk]) -> bool:
    """Return whether the text shows some of these units, and none of that next to a line that differs in the commit."""
    shown = [lines for unit in units if (lines := document.lines(unit)) is not None]
    return bool(shown) and not any(
        first - 1 <= hunk.old_end and hunk.old_start <= first - 1 + count
        for first, count in shown
        for hunk in different
    )
