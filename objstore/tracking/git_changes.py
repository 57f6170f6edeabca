"""Record what git did to files as one event, instead of as edits that await review.

A file counts as changed by git if it now has exactly the bytes that a commit has for it, or is missing where the commit
lacks it, and the repository has moved since the last look. If the history of the file knows the state, its units get
the status that they had then: edits come back with their bytes, and those made since are away. Other bytes become an
edit of origin git, which needs no review.

Nothing that an agent may have written is taken for git's: bytes of commits that were made during an agent's call, at
any time, become unattributed edits that await review. Bytes of other commits that were made since the last look, and
bytes that only the stash or the index has, are recorded as changes like any other, unless the history knows them. Where
only the index was written, as by `git restore`, nothing shows whether git or an agent's call changed a file: during a
call it counts as the agent's. So does what an agent's git took away for good, as by `git reset --hard`.
"""

import os
from collections import Counter, deque
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from objstore.calls.attribution import CANDIDATES
from objstore.calls.edit_recorder import Change, Recorder, Version
from objstore.documents.earlier_states import DocumentHistory, EarlierState
from objstore.documents.loader import load_document
from objstore.errors import HistoryBroken
from objstore.fastclass import field, value, variable
from objstore.git.contents import (
    CommittedChanges,
    TreeEntry,
    changes_of,
    entries_at,
    is_content_of,
    merge_base,
    merged_text,
    staged_at,
    texts_of,
)
from objstore.git.repository import Repository
from objstore.history.git_events import GIT_EVENT_NOTE, decisions_of_git
from objstore.model.basic_types import (
    EXTERNAL_CONVERSATION,
    GIT_CONVERSATION,
    UNKNOWN_AGENT,
    Action,
    DocumentId,
    FileState,
    Operation,
    Origin,
    Status,
    Unit,
)
from objstore.model.large_file_placeholder import is_placeholder
from objstore.model.records import Decision, WrittenFile
from objstore.model.results import Attributor, CallInfo
from objstore.model.views import EditView
from objstore.store.write_batch import Batch, now
from objstore.text.diff import diff_lines
from objstore.text.unified_diff import is_either_binary
from objstore.tracking.detect import Difference
from objstore.tracking.git_losses import lost_paths
from objstore.tracking.git_positions import Movement
from objstore.transaction.journal import Journal
from objstore.weave.document import Document

__all__ = ["GitChanges", "owner_at", "path_in_repository"]

_MAX_COMPARED: Final = 16
"""Earlier states of a file with which unknown bytes are compared."""

_NO_CHANGES: Final = CommittedChanges(blobs=frozenset(), deleted=frozenset())

_RETURNED: Final = "returned"
"""What happened where files got bytes back that git had taken away, but not by git."""

_NOTE: Final = "git"
"""The note of an edit of origin git: what git did."""


@value
class _Trees:
    """The trees whose contents git may have put into the files of one repository."""

    repository: Repository
    head: Mapping[bytes, TreeEntry]  # by path in the repository, as in the following
    merging: Mapping[bytes, TreeEntry]
    kept: Mapping[bytes, TreeEntry]  # in the stash, or in the index if only that was written
    earlier: Collection[bytes]  # paths that existed in the commit before, or are in the stash now
    base: Mapping[bytes, TreeEntry]  # in the common ancestor of a merge with conflicts; empty: there is none
    authored: CommittedChanges  # changes of commits in which an agent's bytes may be
    by_agents: CommittedChanges  # changes of commits that were made during agents' calls


@variable
class _Found:
    """The changes to record for one event of git."""

    verdicts: dict[Unit, Status] = field(default_factory=dict)
    written: list[WrittenFile] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    first: Difference | None = None  # None: git changed nothing


class GitChanges:
    """The changes of files that git made in one movement of a repository, or that bring back what it took away."""

    def __init__(self, journal: Journal, movement: Movement | None, whose: CallInfo | Attributor) -> None:
        """Take a movement of which nothing is recorded yet. `whose`: says whose a change of a file is.

        None: files whose edits are away may have been given their bytes back in another way, as by an editor.
        """
        self._journal: Final = journal
        self._movement: Final = movement
        self._whose: Final = whose

    def record(self, batch: Batch, found: Sequence[Difference]) -> tuple[list[EditView], set[bytes]]:
        """Add the event to the batch; return its edits, and the paths that are explained by it.

        Nothing is added if git changed none of the files. Raises StoreDamaged, and what Batch.record raises.
        """
        of_agents = {here.path for here in found if self._owner(here).origin.needs_review}
        if self._movement is None or self._movement.is_of_index:
            found = [here for here in found if here.path not in of_agents]
        if self._movement is None:
            inside, trees = [(here.path, here) for here in found], None
        else:
            repository = self._movement.repository
            paths = [(path_in_repository(self._journal, repository, here.path), here) for here in found]
            inside = [(path, here) for path, here in paths if path is not None]
            trees = self._trees(self._movement, [path for path, _ in inside]) if inside else None
            if trees is None:
                return [], set()
            by_calls = {path: here for path, here in inside if here.path in of_agents and here.known is not None}
            lost = lost_paths(self._movement, by_calls, batch)
            inside = [(path, here) for path, here in inside if path not in lost]
        event = _Found()
        taken: set[bytes] = set()
        for path, here in inside:
            if self._explain(batch, trees, path, here, event):
                taken.add(here.path)
                event.first = event.first or here
        if event.first is None:
            return [], set()
        # A call that names files, as tools that write do, does not run git.
        owner = owner_at(self._whose, b"", event.first.changed, event.first.tick)
        decision = Decision(
            number=self._journal.store.index.numbers.next_decision(),
            time=now(),
            action=Action.GIT,
            verdicts=tuple(sorted(event.verdicts.items())),
            written=tuple(event.written),
            who="git",
            reason=_RETURNED if self._movement is None else self._movement.words,
            commit="" if self._movement is None else self._movement.new.commit,
            conversation=owner.conversation or (UNKNOWN_AGENT if owner.origin.needs_review else ""),
        )
        batch.record(decision)
        return self._record_edits(batch, event.changes, decision), taken

    # ---- inside

    def _owner(self, here: Difference) -> CallInfo:
        return owner_at(self._whose, here.path, here.changed, here.tick)

    def _trees(self, movement: Movement, paths: Sequence[bytes]) -> _Trees | None:
        """Return what git may have put at these paths; None if it can't say, or nothing explains the movement."""
        repository = movement.repository
        if not movement.is_explained:
            return None
        entries = _Entries(repository=repository, paths=paths)
        head = entries.at(movement.new.commit)
        if head is None:
            return None
        stashes = dict.fromkeys([movement.old.stash, movement.new.stash])
        untracked = [f"{stash}^3" for stash in stashes if stash]  # where git keeps untracked files of a stash
        kept = entries.any_of([*stashes, *untracked])
        if movement.is_of_index:
            kept |= staged_at(repository, paths)
        merging = entries.any_of([movement.new.merging])
        base = merge_base(repository, movement.new.commit, movement.new.merging) if merging else ""
        made = [entry.new for entry in movement.entries if entry.made_commit]
        of_agents = self._commits_of_agents()
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
            base=entries.any_of([base]),
            authored=authored,
            by_agents=by_agents,
        )

    def _commits_of_agents(self) -> dict[str, str]:
        """Return the commits that were made during agents' calls, each with the conversation."""
        made = decisions_of_git(self._journal)
        return {
            decision.commit: decision.conversation
            for decision in made
            if decision.action is Action.GIT and decision.conversation and decision.commit
        }

    def _explain(self, batch: Batch, trees: _Trees | None, path: bytes, here: Difference, event: _Found) -> bool:
        """Add what git did to one file to the event; return False if it was not git."""
        is_put, is_safe = (True, False) if trees is None else _is_put_by_git(trees, path, here.now, batch)
        if trees is not None and not is_put and here.now is not None:
            is_put = _is_merged(trees, path, here.now, batch)
            is_safe = is_put and trees.merging[path].id not in trees.authored.blobs
        if not is_put:
            return False
        history = None if here.document is None else DocumentHistory(self._journal, here.document)
        if history is not None:
            for state in history.states()[1:]:
                is_wanted = state.is_at(here.path, here.now) and (trees is not None or history.brings_back(state))
                if is_wanted and self._go_to(history, state, event):
                    return True
        if trees is not None and not is_safe and _is_by_agent(trees, path, here.now):
            return self._change(batch, here, here.known, event, Origin.UNATTRIBUTED)
        if not is_safe:
            return False
        before = here.known if history is None else self._state_below(batch, history, here, event)
        return before == here.now or self._change(batch, here, before, event)

    def _state_below(self, batch: Batch, history: DocumentHistory, here: Difference, event: _Found) -> FileState | None:
        """Return the state that git's bytes, which the history doesn't know, are an edit of.

        That is the nearest earlier state, without the pending units that git's bytes lack: these are away, and what
        git put there needs none of them. The verdicts that lead to it are added to the event.
        """
        nearest = None if here.now is None else self._nearest(batch, history, here, here.now)
        new = None if here.now is None else batch.text(here.now.blob)
        for state in dict.fromkeys([nearest, None]):
            verdicts = {} if state is None else dict(history.verdicts_for(state))
            loaded = self._loaded(history.document, verdicts)
            if loaded is None:
                continue
            missing = _missing_units(loaded, new, None if here.now is None else here.now.mode)
            statuses = {**history.statuses(), **verdicts}
            missing |= {unit for unit in _idle_parts(loaded, missing) if statuses.get(unit) is Status.PENDING}
            without = self._loaded(history.document, verdicts | dict.fromkeys(missing, Status.AWAY))
            if without is not None and missing:
                loaded, verdicts = without, verdicts | dict.fromkeys(missing, Status.AWAY)
            version = loaded.version()
            if not verdicts or version.path != here.path:
                continue
            content = version.content
            below = None if content is None else FileState(blob=batch.state(content), mode=version.mode)
            self._put_back(history.document, verdicts, version.path, below, event)
            return below
        return here.known

    def _go_to(self, history: DocumentHistory, state: EarlierState, event: _Found) -> bool:
        """Add the verdicts that lead to an earlier state of the file; return False if they don't."""
        verdicts = history.verdicts_for(state)
        if not self._leads_to(history.document, verdicts, state):
            return False
        self._put_back(history.document, verdicts, state.path, state.state, event)
        return True

    def _put_back(
        self,
        document: DocumentId,
        verdicts: Mapping[Unit, Status],
        path: bytes,
        state: FileState | None,
        event: _Found,
    ) -> None:
        """Add the verdicts that lead to a state of a file to the event."""
        tip = self._journal.store.index.documents.tip(document)
        event.verdicts |= verdicts
        event.written.append(
            WrittenFile(
                document=document,
                path_before=None if tip.state is None else tip.path,
                before=tip.state,
                path_after=None if state is None else path,
                after=state,
            )
        )

    def _loaded(self, document: DocumentId, verdicts: Mapping[Unit, Status]) -> Document | None:
        """Return the document under these verdicts; None if it can't be in that state."""
        try:
            loaded = load_document(self._journal, document)
        except HistoryBroken:
            return None
        loaded.set_statuses({unit: status for unit, status in verdicts.items() if loaded.knows(unit)})
        return None if loaded.conflicts() else loaded

    def _leads_to(self, document: DocumentId, verdicts: Mapping[Unit, Status], state: EarlierState) -> bool:
        """Return whether the document is in this state under the verdicts."""
        loaded = self._loaded(document, verdicts)
        if loaded is None:
            return False
        version = loaded.version()
        if version.content is None or state.state is None:
            return version.content is None and state.state is None
        text = self._journal.store.text(state.state.blob)
        return (version.path, version.mode, version.content) == (state.path, state.state.mode, text)

    def _nearest(self, batch: Batch, history: DocumentHistory, here: Difference, now: FileState) -> EarlierState | None:
        """Return the earlier state at the same path with the fewest changed lines; None: the present one is as near."""
        new = batch.text(now.blob)
        candidates: dict[FileState, EarlierState] = {}
        for state in history.states():
            if state.state is not None and state.path == here.path:
                candidates.setdefault(state.state, state)
        best: tuple[int, EarlierState] | None = None
        for found, at in list(candidates.items())[:_MAX_COMPARED]:
            text = self._journal.store.text(found.blob)
            if is_placeholder(text) or is_placeholder(new) or is_either_binary(text, new):
                return None
            distance = sum(hunk.old_count + hunk.new_count for hunk in diff_lines(text, new))
            if best is None or distance < best[0]:
                best = distance, at
        return None if best is None or best[1].state == here.known else best[1]

    def _change(
        self, batch: Batch, here: Difference, before: FileState | None, event: _Found, origin: Origin = Origin.GIT
    ) -> bool:
        """Add the edit that leads from a state to what was found; return True."""

        def version(state: FileState | None) -> Version | None:
            return None if state is None else Version(content=batch.text(state.blob), state=state)

        event.changes.append(
            Change(
                document=here.document,
                operation=Operation.CREATE
                if before is None
                else Operation.DELETE
                if here.now is None
                else Operation.EDIT,
                path=here.path,
                source=None,
                before=version(before),
                after=version(here.now),
                hunks=None,
                origin=origin,
            )
        )
        return True

    def _record_edits(self, batch: Batch, changes: Sequence[Change], decision: Decision) -> list[EditView]:
        recorder = Recorder(self._journal, batch)
        notes = {_NOTE: decision.reason, GIT_EVENT_NOTE: str(decision.number)}
        edits: list[EditView] = []
        for origin, conversation in ((Origin.GIT, GIT_CONVERSATION), (Origin.UNATTRIBUTED, EXTERNAL_CONVERSATION)):
            call = self._journal.store.next_call(conversation)
            if origin is Origin.UNATTRIBUTED:
                sessions = sorted({*self._commits_of_agents().values()} - {UNKNOWN_AGENT})
                notes |= {CANDIDATES: "\n".join(sessions)}
            edits += [
                recorder.record(
                    change,
                    document=change.document,
                    conversation=conversation,
                    call=call,
                    ordinal=ordinal,
                    tool="git" if origin is Origin.GIT else "",
                    notes=notes,
                )
                for ordinal, change in enumerate(change for change in changes if change.origin is origin)
            ]
        return edits


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


def _missing_units(document: Document, new: bytes | None, mode: int | None) -> set[Unit]:
    """Return the pending units whose effect a file with this text and mode lacks (None: there is no file).

    That is a unit of which fewer than half of the lines are left. Of binary bytes that differ, nothing is left.
    """
    pending = document.pending()
    text = document.text()
    if text is None or new is None or is_placeholder(text) or is_placeholder(new) or is_either_binary(text, new):
        return set() if text == new else set(pending)
    inserted: Counter[Unit | None] = Counter()
    removed: Counter[Unit | None] = Counter()
    hunks = deque((hunk.old_start, hunk.old_end) for hunk in diff_lines(text, new))
    line = 0
    for unit, count in document.blame():
        inserted[unit] += count
        end = line + count
        while hunks and hunks[0][0] < end:
            removed[unit] += max(min(hunks[0][1], end) - max(hunks[0][0], line), 0)
            if hunks[0][1] > end:
                break
            hunks.popleft()
        line = end
    missing = {unit for unit in pending if 2 * removed[unit] > inserted[unit]}
    return (
        missing
        if document.version().mode == mode
        else missing.union(set(pending).intersection(document.mode_writers()))
    )


def _idle_parts(document: Document, units: Collection[Unit]) -> set[Unit]:
    """Return the whole-file parts of the edits of which no other pending unit is left without these units."""
    left = {unit.seq for unit in document.pending() if unit.hunk and unit not in units}
    return {Unit(unit.seq, 0) for unit in units if unit.seq not in left}


def _is_put_by_git(trees: _Trees, path: bytes, now: FileState | None, batch: Batch) -> tuple[bool, bool]:
    """Return whether git may have put this state at a path, and whether no agent may have written what it put there."""
    if now is None:
        is_gone = path not in trees.head and path in trees.earlier
        return is_gone, is_gone and path not in trees.authored.deleted
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


def path_in_repository(journal: Journal, repository: Repository, path: bytes) -> bytes | None:
    """Return a path of the workspace relative to the repository's files; None if it is outside them."""
    root = os.fsencode(os.path.realpath(journal.tree.root))
    below = os.path.relpath(os.path.join(root, path), os.fsencode(repository.work_tree))
    return None if below == b".." or below.startswith(b"../") else below


def owner_at(whose: CallInfo | Attributor, path: bytes, moment: int, tick: int) -> CallInfo:
    """Return the call that a change of a file at a moment is attributed to. Units as for `Whose`."""
    return whose if isinstance(whose, CallInfo) else whose(os.fsdecode(path), moment, tick)
