"""Record what git did to files as one event, instead of as edits that await review.

A file counts as changed by git if it now has exactly the bytes that a commit has for it, or is missing where the commit
lacks it, and the repository has moved since the last look. If the history of the file knows the state, its units get
the status that they had then: edits come back with their bytes, and those made since are away. Other bytes become an
edit of origin git, which needs no review.

Nothing that an agent may have written is taken for git's: bytes of commits that were made during an agent's call, at
any time, become unattributed edits that await review. Bytes of other commits that were made since the last look, and
bytes that only the stash or the index has, are recorded as changes like any other, unless the history knows them. Where
only the index was written, as by `git restore`, nothing shows whether git or an agent's call changed a file: during a
call it counts as the agent's, unless it is a sparse checkout, which loses nothing. So does what an agent's git took
away for good, as by `git reset --hard`.
"""

import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Final

from objstore.agents.git_evidence import (
    commits_of_agents,
    is_named,
    lost_paths,
    path_in_repository,
    stashes_of,
)
from objstore.agents.returned_lines import FileStatuses, ReviewedLines, unchanged_moves
from objstore.disk.git.contents import (
    CommittedChanges,
    TreeEntry,
    changes_of,
    entries_at,
    is_content_of,
    left_out_at,
    merge_base,
    merged_text,
    new_commits,
    staged_at,
    texts_of,
)
from objstore.disk.git.repository import Repository, is_sparse, moment_of
from objstore.history.documents.earlier_states import DocumentHistory, EarlierState
from objstore.model.basic_types import GIT_CONVERSATION, UNKNOWN_AGENT, DocumentId, FileState, Origin, Seq, Status
from objstore.model.large_file_placeholder import is_placeholder
from objstore.model.results import Attributor, CallInfo, Difference, owner_at
from objstore.model.views import EditView
from objstore.review.calls.edit_recorder import Recorder
from objstore.storage.store.write_batch import Batch
from objstore.storage.transaction.journal import Journal
from objstore.text.diff import diff_lines
from objstore.text.forms import is_either_binary, shown_lines
from objstore.values.fastclass import replace, value, variable
from objstore.weave.returning import Returning, idle_parts, is_telling, lacking, partial_text, returning
from objstore.worktree.git_positions import Movement

__all__ = ["GitChanges", "RemovedWorktree", "record_dropped_stash"]

_MAX_COMPARED: Final = 16
"""Earlier states of a file with which unknown bytes are compared."""

_NO_CHANGES: Final = CommittedChanges(blobs=frozenset(), deleted=frozenset())

_NOTHING: Final = Returning(verdicts={}, text=None, edits=())


@value
class _Trees:
    """The trees whose contents git may have put into the files of one repository."""

    repository: Repository
    head: Mapping[bytes, TreeEntry]  # by path in the repository, as in the following
    merging: Mapping[bytes, TreeEntry]
    kept: Mapping[bytes, TreeEntry]  # in the stash, or in the index if only that was written
    earlier: Collection[bytes]  # paths that existed in the commit before, or are in the stash now
    stashed_deletions: Collection[bytes]  # paths that the stash lacks and the commit below it has
    merged_deletions: Collection[bytes]  # paths that a merge deletes: the other side lacks them, and HEAD left them
    base: Mapping[bytes, TreeEntry]  # in the common ancestor of a merge with conflicts; empty: there is none
    authored: CommittedChanges  # changes of commits in which an agent's bytes may be
    by_agents: CommittedChanges  # changes of commits that were made during agents' calls
    left_out: Mapping[bytes, TreeEntry]  # what the index has of files that a sparse checkout leaves out


def record_dropped_stash(journal: Journal, movement: Movement, whose: CallInfo | Attributor) -> None:
    """Record what was lost if an agent's call dropped a stash: its text is taken out by an edit that awaits review.

    Until then it was away, and git kept it. Raises StoreDamaged, and what Journal.commit raises.
    """
    repository, stash = movement.repository, movement.old.stash
    if not stash or stash == movement.new.stash:
        return
    with suppress(OSError):
        moment = os.stat(os.path.join(repository.common_dir, "refs")).st_mtime_ns
        owner = owner_at(whose, b"", max(moment, movement.new.refs), 0)
        if owner.origin.needs_review and stash not in stashes_of(repository):
            with journal.writing() as batch:
                event = FileStatuses(journal=journal)
                for document in sorted(journal.store.index.edits.documents_away()):
                    _add_dropped(journal, batch, movement, document, event, owner.conversation)
                if not event.is_empty:
                    event.record(batch, Recorder(journal, batch), "stash drop", conversation=owner.conversation)
                    journal.commit(batch, ())


def _add_dropped(
    journal: Journal, batch: Batch, movement: Movement, document: DocumentId, event: FileStatuses, session: str
) -> None:
    """Add the loss of one file's text to the event, if a dropped stash had it and no commit has."""
    tip = journal.store.index.documents.tip(document)
    path = path_in_repository(journal, movement.repository, tip.path)
    if path is None:
        return
    stash = movement.old.stash
    stashed, untracked, head = (
        (entries_at(movement.repository, commit, [path]) or {}).get(path)
        for commit in (stash, f"{stash}^3", movement.new.commit)
    )
    entry = untracked or stashed
    history = DocumentHistory(journal, document)
    for state in () if entry is None or entry == head else history.states()[1:]:
        if state.state is None or state.path != tip.path or not history.brings_back(state) or entry is None:
            continue
        if is_content_of(entry, journal.store.text(state.state.blob)) and event.go_to(history, state):
            here = Difference(path=tip.path, document=document, known=state.state, now=tip.state, changed=0, tick=0)
            event.add(batch, here, state.state, tip.state, Origin.UNATTRIBUTED, session)
            return


class RemovedWorktree:
    """The files that went with a linked worktree, as far as a commit that a ref leads to keeps them."""

    def __init__(self, journal: Journal, folder: bytes, movement: Movement, whose: CallInfo | Attributor) -> None:
        """Take the folder that is gone, relative to the workspace, and where the worktree was."""
        self._journal: Final = journal
        self._folder: Final = folder + b"/"
        self._movement: Final = movement
        self._whose: Final = whose

    def record(self, batch: Batch, found: Sequence[Difference]) -> tuple[list[EditView], set[bytes]]:
        """Add the event to the batch; return its edits, and the paths that are explained by it."""
        repository, commit = self._movement.repository, self._movement.old.commit
        gone = {
            here.path.removeprefix(self._folder): here
            for here in found
            if here.now is None and here.known is not None and here.path.startswith(self._folder)
        }
        is_kept = bool(gone) and is_named(repository, commit, self._movement.new.commit)
        entries = (entries_at(repository, commit, gone.keys()) or {}) if is_kept else {}
        event = FileStatuses(journal=self._journal)
        explained = {here.path for path, here in gone.items() if self._explain(batch, entries.get(path), here, event)}
        if not explained:
            return [], set()
        first = next(here for here in gone.values() if here.path in explained)
        owner = owner_at(self._whose, b"", first.changed, first.tick)
        conversation = owner.conversation or (UNKNOWN_AGENT if owner.origin.needs_review else "")
        recorder = Recorder(self._journal, batch)
        return event.record(batch, recorder, self._movement.words, conversation=conversation), explained

    def _explain(self, batch: Batch, entry: TreeEntry | None, here: Difference, event: FileStatuses) -> bool:
        """Add the deletion of a file to the event; return False if its last text is not kept."""
        if entry is None or here.known is None or not is_content_of(entry, batch.text(here.known.blob)):
            return False
        history = None if here.document is None else DocumentHistory(self._journal, here.document)
        for state in () if history is None else history.states()[1:]:
            if history is not None and state.state is None and event.go_to(history, state):
                return True
        event.add(batch, here, here.known, None, Origin.GIT)
        return True


class GitChanges:
    """The changes of files that git made in one movement of a repository."""

    def __init__(self, journal: Journal, movement: Movement, whose: CallInfo | Attributor) -> None:
        """Take a movement of which nothing is recorded yet. `whose`: says whose a change of a file is."""
        self._journal: Final = journal
        self._movement: Final = movement
        self._whose: Final = whose
        self._lines = ReviewedLines(journal, is_git=True)

    def record(self, batch: Batch, found: Sequence[Difference]) -> tuple[list[EditView], set[bytes]]:
        """Add the event to the batch; return its edits, and the paths that are explained by it.

        Nothing is added if git changed none of the files. Raises StoreDamaged, and what Batch.record raises.
        """
        movement = self._movement
        self._lines = ReviewedLines(self._journal, is_git=True)  # none that an earlier attempt read
        of_agents = {here.path for here in found if self._owner(here).origin.needs_review}
        paths = [
            (path, here)
            for here in found
            if (path := path_in_repository(self._journal, movement.repository, here.path)) is not None
            and not (movement.is_of_index and here.path in of_agents and not self._may_be_sparse(here))
        ]
        trees = self._trees([path for path, _ in paths]) if paths else None
        if trees is None:
            return [], set()
        if movement.is_of_index:
            paths = [
                (path, here)
                for path, here in paths
                if here.path not in of_agents or self._is_sparse(path, here, trees, batch)
            ]
        lost = lost_paths(
            movement, {path: here for path, here in paths if here.path in of_agents and here.known}, batch
        )
        event = FileStatuses(journal=self._journal)
        left = {path: here for path, here in paths if path not in lost}
        moved = dict.fromkeys(self._explain_moves(batch, trees, left, event), True)
        others = {path: here for path, here in left.items() if path not in moved}
        moved |= self._explain_renames(batch, trees, others, event)
        explained = [
            here
            for path, here in left.items()
            if (moved[path] if path in moved else self._explain(batch, trees, path, here, event))
        ]
        if not explained:
            return [], set()
        # A call that names files, as tools that write do, does not run git.
        owner = owner_at(self._whose, b"", explained[0].changed, explained[0].tick)
        edits = event.record(
            batch,
            Recorder(self._journal, batch),
            self._words(explained),
            commit=movement.new.commit,
            conversation=owner.conversation or (UNKNOWN_AGENT if owner.origin.needs_review else ""),
        )
        return edits, {here.path for here in explained}

    # ---- inside

    def _owner(self, here: Difference) -> CallInfo:
        return owner_at(self._whose, here.path, here.changed, here.tick)

    def _may_be_sparse(self, here: Difference) -> bool:
        """Return whether a file is gone or new, and a sparse checkout may be why."""
        return (here.now is None or here.known is None) and is_sparse(self._movement.repository)

    def _is_sparse(self, path: bytes, here: Difference, trees: _Trees, batch: Batch) -> bool:
        """Return whether a sparse checkout took a file which git keeps, or brought one which nothing but git has."""
        if here.now is None:
            return _is_left_out(trees, path, here, batch)
        is_put, is_safe = _is_put_by_git(trees, path, here, batch)
        if here.known is not None or not is_put:
            return False
        if here.document is None:
            return is_safe
        statuses = DocumentHistory(self._journal, here.document).statuses()
        row = self._journal.store.index.edits.get(
            max((each.seq for each, is_in in statuses.items() if is_in.is_live), default=Seq(0))
        )
        return row is None or row.owner == GIT_CONVERSATION

    def _words(self, explained: Sequence[Difference]) -> str:
        is_of_sparse = self._movement.is_of_index and any(map(self._may_be_sparse, explained))
        return "sparse checkout" if is_of_sparse else self._movement.words

    def _trees(self, paths: Sequence[bytes]) -> _Trees | None:
        """Return what git may have put at these paths; None if it can't say, or nothing explains the movement."""
        movement, repository = self._movement, self._movement.repository
        if not (movement.is_explained or movement.first_seen):
            return None
        entries = _Entries(repository=repository, paths=paths)
        head = entries.at(movement.new.commit)
        if head is None:
            return None
        stashes = [stash for stash in dict.fromkeys([movement.old.stash, movement.new.stash]) if stash]
        untracked = [f"{stash}^3" for stash in stashes]  # where git keeps untracked files of a stash
        kept = entries.any_of([*stashes, *untracked])
        if movement.is_of_index:
            kept |= staged_at(repository, paths)
        merging = entries.any_of([movement.new.merging])
        base = merge_base(repository, movement.new.commit, movement.new.merging) if merging else ""
        of_base = entries.any_of([base])
        deleted = entries.missing(movement.new.merging, base)
        made = self._made()
        of_agents = commits_of_agents(self._journal)
        authored = changes_of(repository, dict.fromkeys([*made, *of_agents]))
        by_agents = changes_of(repository, of_agents) if of_agents else _NO_CHANGES
        if authored is None or by_agents is None:
            return None
        return _Trees(
            repository=repository,
            head=head,
            merging=merging,
            kept=kept,
            earlier={*entries.any_of([movement.old.commit]), *kept},
            stashed_deletions={path for stash in stashes for path in entries.missing(stash, f"{stash}^1")},
            base=of_base,
            merged_deletions={path for path in deleted if head.get(path) == of_base[path]},
            authored=authored,
            by_agents=by_agents,
            left_out=left_out_at(repository, paths) if is_sparse(repository) else {},
        )

    def _made(self) -> list[str]:
        """Return the commits in which bytes may be that no one has reviewed: of a new repository, an agent's alone."""
        movement = self._movement
        if not movement.first_seen:
            return [entry.new for entry in movement.entries if entry.made_commit]
        made: list[str] = []
        for commit, time, _ in new_commits(movement.repository, ""):
            owner = owner_at(self._whose, b"", *moment_of(movement.repository, commit, time))
            made += [commit] if owner.origin.needs_review else []
        return made

    def _explain_moves(
        self, batch: Batch, trees: _Trees, found: Mapping[bytes, Difference], event: FileStatuses
    ) -> set[bytes]:
        """Add the files to the event that git took from a path and put where they were earlier; return both paths."""
        new = {here.path: path for path, here in found.items() if here.document is None and here.now is not None}
        moved: set[bytes] = set()
        for path, here in found.items() if new else ():
            if here.document is None or here.now is not None or not _is_put_by_git(trees, path, here, batch)[0]:
                continue
            history = DocumentHistory(self._journal, here.document)
            for state in history.states()[1:]:
                there = new.get(state.path)
                if there is None or found[there].now != state.state:
                    continue
                if _is_put_by_git(trees, there, found[there], batch)[0] and event.go_to(history, state):
                    moved |= {path, new.pop(state.path)}
                    break
        return moved

    def _explain_renames(
        self, batch: Batch, trees: _Trees, found: Mapping[bytes, Difference], event: FileStatuses
    ) -> dict[bytes, bool]:
        """Add the files under review that git moved as they were; return both paths of each.

        True: git moved it. False: a person may have, and committed that. What an agent's commit moved is left out.
        """
        moved: dict[bytes, bool] = {}
        paths = {here.path: path for path, here in found.items()}
        for name, there in unchanged_moves(found.values()).items():
            old, new = paths[name], paths[there.path]
            here = found[old]
            if old in trees.by_agents.deleted or here.document is None or not self._is_under_review(here.document):
                continue
            if _is_put_by_git(trees, old, here, batch)[0] and _is_put_by_git(trees, new, there, batch)[0]:
                is_gits = old not in trees.authored.deleted
                moved |= {old: is_gits, new: is_gits}
                if is_gits:
                    event.move(batch, here, there)
        return moved

    def _is_under_review(self, document: DocumentId) -> bool:
        return bool(self._journal.store.index.history.edits_with(document, [Status.PENDING, Status.AWAY]))

    def _explain(self, batch: Batch, trees: _Trees, path: bytes, here: Difference, event: FileStatuses) -> bool:
        """Add what git did to one file to the event; return False if it was not git."""
        is_put, is_safe = _is_put_by_git(trees, path, here, batch)
        if not is_put and here.now is not None:
            is_put = _is_merged(trees, path, here.now, batch)
            is_safe = is_put and trees.merging[path].id not in trees.authored.blobs
        if not is_put:
            return False
        history = None if here.document is None else DocumentHistory(self._journal, here.document)
        if history is not None:
            for state in history.states()[1:]:
                if state.is_at(here.path, here.now) and event.go_to(history, state):
                    return True
        if not is_safe and _is_by_agent(trees, path, here.now):
            event.add(batch, here, here.known, here.now, Origin.UNATTRIBUTED, self._lines.agents.sessions)
            return True
        if not is_safe:
            is_staged = self._movement.is_of_index and self._movement.old.is_staged_by_agent
            return is_staged and self._add_staged(batch, here, event)
        before = here.known if history is None else self._state_below(batch, history, here, event)
        before = event.add_reviewed_lines(batch, replace(here, known=before), self._lines)
        if before != here.now:
            event.add(batch, here, before, here.now, Origin.GIT)
        return True

    def _add_staged(self, batch: Batch, here: Difference, event: FileStatuses) -> bool:
        """Add the lines that the index put into a file, which an agent's call wrote; return whether there are any."""
        if here.now is None or here.known is None:
            return False
        if partial_text(batch.text(here.known.blob), batch.text(here.now.blob), is_telling) is None:
            return False
        event.add(batch, here, here.known, here.now, Origin.UNATTRIBUTED)
        return True

    def _state_below(
        self, batch: Batch, history: DocumentHistory, here: Difference, event: FileStatuses
    ) -> FileState | None:
        """Return the state that git's bytes, which the history doesn't know, are an edit of.

        That is the nearest earlier state, without the pending units that git's bytes lack: these are away, and what
        git put there needs none of them. What git's bytes bring back is in it. The verdicts that lead to it are added
        to the event.
        """
        nearest = None if here.now is None else self._nearest(batch, history, here, here.now)
        new = None if here.now is None else batch.text(here.now.blob)
        statuses = history.statuses()
        for state in dict.fromkeys([nearest, None]):
            verdicts = {} if state is None else dict(history.verdicts_for(state))
            loaded = event.loaded(history.document, verdicts)
            if loaded is None:
                continue
            missing = lacking(loaded, loaded.pending(), new, None if here.now is None else here.now.mode)
            missing |= {
                unit for unit in idle_parts(loaded, missing) if {**statuses, **verdicts}.get(unit) is Status.PENDING
            }
            without = event.loaded(history.document, verdicts | dict.fromkeys(missing, Status.AWAY))
            if without is not None and missing:
                loaded, verdicts = without, verdicts | dict.fromkeys(missing, Status.AWAY)
            if loaded.version().path != here.path:
                continue
            if new is None:
                return event.bring_back(batch, here, loaded, _NOTHING, verdicts)
            left = {unit for unit, status in verdicts.items() if status is Status.AWAY and statuses[unit].is_live}
            earlier = history.before_away() | {unit: statuses[unit] for unit in left}
            back = returning(loaded, earlier, new, path=here.path, may_be_agents=False)
            return event.bring_back(batch, here, loaded, back, verdicts)
        return here.known

    def _nearest(self, batch: Batch, history: DocumentHistory, here: Difference, now: FileState) -> EarlierState | None:
        """Return the earlier state at the same path with the fewest changed lines; None: the present one is as near."""
        new = shown_lines(batch.text(now.blob))
        candidates: dict[FileState, EarlierState] = {}
        for state in history.states():
            if state.state is not None and state.path == here.path:
                candidates.setdefault(state.state, state)
        best: tuple[int, EarlierState] | None = None
        for found, at in list(candidates.items())[:_MAX_COMPARED]:
            text = shown_lines(self._journal.store.text(found.blob))
            if is_placeholder(text) or is_placeholder(new) or is_either_binary(text, new):
                return None
            distance = sum(hunk.old_count + hunk.new_count for hunk in diff_lines(text, new))
            if best is None or distance < best[0]:
                best = distance, at
        return None if best is None or best[1].state == here.known else best[1]


@variable
class _Entries:
    """The entries of commits at some paths."""

    repository: Repository
    paths: Sequence[bytes]

    def at(self, commit: str) -> dict[bytes, TreeEntry] | None:
        """Return what a commit holds; None if git can't say."""
        return entries_at(self.repository, commit, self.paths) if commit else {}

    def any_of(self, commits: Sequence[str]) -> dict[bytes, TreeEntry]:
        """Return what the first of some commits holds that has the path; a commit that git lacks holds nothing."""
        found: dict[bytes, TreeEntry] = {}
        for commit in commits:
            found = {**(self.at(commit) or {}), **found}
        return found

    def missing(self, commit: str, below: str) -> set[bytes]:
        """Return the paths that a commit lacks and the one below it has; none if git can't say."""
        found = self.at(commit)
        return set() if found is None else {*(self.at(below) or {})} - {*found}


def _is_left_out(trees: _Trees, path: bytes, here: Difference, batch: Batch) -> bool:
    """Return whether a sparse checkout leaves out a file that was as the index has it."""
    entry = trees.left_out.get(path)
    return entry is not None and here.known is not None and is_content_of(entry, batch.text(here.known.blob))


def _is_put_by_git(trees: _Trees, path: bytes, here: Difference, batch: Batch) -> tuple[bool, bool]:
    """Return whether git may have put a state at a path, and whether no agent may have written what it put there."""
    now = here.now
    if now is None and _is_left_out(trees, path, here, batch):
        return True, True
    if now is None:
        is_gone = path not in trees.head and path in trees.earlier
        is_put = is_gone or path in trees.merged_deletions
        return is_put or path in trees.stashed_deletions, is_put and path not in trees.authored.deleted
    content = batch.text(now.blob)

    def is_from(entries: Mapping[bytes, TreeEntry]) -> bool:
        entry = entries.get(path)
        is_like = entry is not None and entry.is_executable is bool(now.mode & 0o111)
        return is_like and entry is not None and is_content_of(entry, content, is_link=now.is_link)

    def is_safe_from(entries: Mapping[bytes, TreeEntry]) -> bool:
        return is_from(entries) and entries[path].id not in trees.authored.blobs

    is_safe = is_safe_from(trees.head) or is_safe_from(trees.merging)
    return is_safe or any(map(is_from, (trees.head, trees.merging, trees.kept))), is_safe


def _is_by_agent(trees: _Trees, path: bytes, now: FileState | None) -> bool:
    """Return whether git put what an agent committed at a path."""
    if now is None:
        return path in trees.by_agents.deleted
    entries = (each.get(path) for each in (trees.head, trees.merging))
    return any(entry is not None and entry.id in trees.by_agents.blobs for entry in entries)


def _is_merged(trees: _Trees, path: bytes, now: FileState, batch: Batch) -> bool:
    """Return whether git combined these bytes from both sides of a merge that has conflicts in other files."""
    sides = [entries.get(path) for entries in (trees.head, trees.base, trees.merging)]
    names = [entry.id for entry in sides if entry is not None]
    if len(set(names)) < len(sides):
        return False
    texts = texts_of(trees.repository, names) or {}
    if len(texts) < len(sides):
        return False
    merged = merged_text(trees.repository, *(texts[name] for name in names))
    return merged is not None and batch.text(now.blob) == merged
