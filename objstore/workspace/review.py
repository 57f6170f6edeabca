"""Report what awaits review, and make and undo decisions."""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from objstore.disk.fs.reserved_names import SEEN_NAME, STORE_NAME
from objstore.model.basic_types import BECOMES, Action, FileState, OnExternal, Origin, Status
from objstore.model.large_file_placeholder import MAX_BLOB
from objstore.values.errors import CasError, FileChanged, StoreError
from objstore.values.fastclass import replace
from objstore.workspace.role import Role, decides, reads, uses_index

# What only some methods need is imported in them: `cas status` must not wait for the review core to load.
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from objstore.model.basic_types import DocumentId, Seq, Unit
    from objstore.model.ids import BlobId
    from objstore.model.net_file import ChangesAtLine, FileSummary, NetFile
    from objstore.model.records import SettingChange
    from objstore.model.results import (
        CallOutcome,
        Conflicted,
        Decided,
        DecisionOutcome,
        ExternalChange,
        ExternalChanges,
        FileEffect,
        NothingToDo,
    )
    from objstore.model.status_report import Cautions, StatusReport, UnresolvedMarkers
    from objstore.model.views import Act, Content, DecisionInForce, EditView, HistoryEnd, State
    from objstore.review.calls.policies import Policies
    from objstore.review.decisions import DecisionRequest
    from objstore.review.selection.places import NamedPlace, PathSelection
    from objstore.review.selection.units import Selected, Selection
    from objstore.storage.index.rows import DocumentPosition
    from objstore.storage.transaction.journal import Journal
    from objstore.text.hunks import Hunk
    from objstore.worktree.changed_dirs import SharedLooks


__all__ = ["Review"]

FileView = TypeVar("FileView", "NetFile", "FileSummary")

_ATTRIBUTED: Final = 10
"""Broken names of which a decision that is made says whose lines they are: as many as its reason names."""


class Review(Role):
    """Report what awaits review, and make and undo decisions."""

    def __init__(self, journal: Journal) -> None:
        """Wrap an open journal."""
        super().__init__(journal)
        self._preview: Callable[[BlobId], bytes] | None = None  # None: no dry run needs unstored blobs

    @uses_index
    def status(self) -> StatusReport:
        """Return a summary of the workspace. Every file that scans cover is compared, up to a limit that it names."""
        from objstore.agents.unrecorded_files import unrecorded_files
        from objstore.model.status_report import Caution
        from objstore.review import status

        seen: SharedLooks = {}  # of the files with edits, which are not looked at again with the others
        report = status.report(self._journal, seen)
        others = unrecorded_files(self._journal, shared=seen)
        skipped = (f"{each.path}: {each.reason}" for each in others.skipped)
        now = time.time_ns() // 1000
        left_out = (Caution(time=now, path=path) for path in others.newly_left_out)
        return replace(
            report,
            external=(*report.external, *others.changes),
            cautions=(*report.cautions, *left_out),
            unreadable=tuple(dict.fromkeys((*report.unreadable, *skipped))),  # a file with edits is in both
            compared=others.compared,
        )

    @reads
    def unfollowed(self) -> list[str]:
        """Return what the status says of git repositories and worktrees that can't be followed."""
        from objstore.review import status

        return status.unfollowed(self._journal)

    @reads
    def pending_counts(self) -> tuple[int, int]:
        """Return how many edits are pending, and how many of them are unattributed; no file is compared."""
        edits = self._store.index.edits
        return edits.counts()[Status.PENDING], edits.pending_unattributed()

    @reads
    def policies(self) -> Policies:
        """Return what the settings say about reviews."""
        from objstore.review.calls.policies import Policies

        return Policies(self._journal.tree.root, self._store)

    @reads
    def policy_changes(self, name: str = "") -> list[SettingChange]:
        """Return the recorded changes of a policy ("": of all), oldest first."""
        from objstore.review.calls import policies

        return policies.changes(self._store, name)

    @decides
    def record_policy(self, name: str, before: str, after: str, *, who: str = "") -> None:
        """Record that a person changed a policy. Texts: "" means not set. Raises as Call.commit."""
        from objstore.review.calls import policies

        policies.record_change(self._journal, name, before, after, who=who)

    @reads
    def cautions(self, *, unsaid: bool = False) -> Cautions:
        """Return what narrowed the record, or was decided inside an agent's shell, and no person has acknowledged yet.

        `unsaid`: what no client has shown yet.
        """
        from objstore.review import cautions

        return cautions.cautions(self._journal, cautions.SAID if unsaid else cautions.ACKNOWLEDGED)

    def note_said(self, cautions: Cautions) -> None:
        """Note that a client shows a person these cautions. If that can't be written, they are shown again."""
        from objstore.review.cautions import SAID, note

        note(self._journal, SAID, cautions)

    @decides
    def acknowledge(self, cautions: Cautions) -> None:
        """Note that a person knows these cautions; later ones are shown. Raises AgentDecides."""
        from objstore.review.cautions import ACKNOWLEDGED, note

        note(self._journal, ACKNOWLEDGED, cautions)

    @uses_index
    def external_changes(self, naming: Collection[str] = ()) -> tuple[ExternalChange, ...]:
        """Return every file whose current state on disk differs from the journal, or from the baseline without edits.

        Files that scans leave out, because git ignores them or they look like secrets, are returned only if `naming`
        has their paths.
        """
        from objstore.agents.unrecorded_files import unrecorded_files
        from objstore.review import status

        return *status.external_changes(self._journal, naming), *unrecorded_files(self._journal).changes

    @uses_index
    def changes(
        self,
        paths: Collection[str] = (),
        units: Collection[Unit] | None = None,
        unreadable: Callable[[StoreError], object] | None = None,
    ) -> list[NetFile]:
        """Return the files with pending units, by path, each with its net changes.

        `paths`: only files that are, or were in their accepted state, at or below one of these; (): all. `units`: only
        changes that have any of these units, and those that are decided with them; None: all. `unreadable`: called with
        why a file is left out; None: the error is raised, which is HistoryBroken or what Store.text raises.
        """
        from objstore.review.net.net_view import net_files

        return net_files(self._journal, paths, units, unreadable)

    @uses_index
    def change_summaries(
        self,
        paths: Collection[str] = (),
        units: Collection[Unit] | None = None,
        unreadable: Callable[[StoreError], object] | None = None,
        put_off: Callable[[DocumentId, str], object] | None = None,
    ) -> list[FileSummary]:
        """Return what `changes` does without texts, and much faster: it reads only documents with new records.

        `put_off`: called with each document, and its path, that is left out because others took a second to be read;
        the next call reads more. None: all are read.
        """
        from objstore.review.net.net_summary import summaries

        return summaries(self._journal, paths, units, unreadable, put_off)

    @reads
    def position(self, document: DocumentId) -> DocumentPosition | None:
        """Return what changes with every edit of, and decision on, a document; None: nothing of it is pending."""
        return next(iter(self._store.index.edits.pending_documents(document)), None)

    def seen_changes(self) -> frozenset[bytes]:
        """Return the keys of the seen changes."""
        from objstore.review.net.seen_changes import seen_changes

        return seen_changes(self._journal)

    @decides
    def mark_seen(self, keys: Collection[bytes]) -> None:
        """Mark changes as seen by a reviewer, given their keys. Raises what the disk raises."""
        from objstore.review.net.seen_changes import mark_seen

        mark_seen(self._journal, keys)

    def seen_counts(self) -> tuple[int, int] | None:
        """Return how many changes are pending, and how many of them are not seen.

        None: no change was ever looked at. Histories that can't be read are left out.
        """
        # Mostly no change is marked, and a status must not wait for the modules that know of marks.
        seen = os.path.join(self._journal.tree.root, STORE_NAME, SEEN_NAME)
        if not os.path.lexists(seen) or not self.seen_changes():
            return None
        from objstore.review.net.net_summary import seen_counts

        with self._journal.translating_index_errors():
            return seen_counts(self._journal)

    def unseen(self, files: Iterable[FileView], seen: Collection[bytes] | None = None) -> list[FileView]:
        """Return the files with only the changes that are not seen, and those decided with them.

        `seen`: the keys of those that were looked at; None: as `seen_changes` returns them.
        """
        from objstore.review.net.net_selection import unseen

        return unseen(files, self.seen_changes() if seen is None else seen)

    @uses_index
    def change_at(self, path: str, line: int, last: int = 0) -> ChangesAtLine:
        """Return the changes at a line, from 1, of the file on disk at a path, or at those up to `last`.

        A change that only removes lines is at the line above the gap and at the one below. Raises NoChangeAtLine if
        there is none, and what `changes` raises.
        """
        from objstore.review.net.net_view import changes_at

        return changes_at(self._journal, path, line, max(line, last))

    @reads
    def select(self, action: Action, selection: Selection) -> Selected:
        """Return the units that a selection names for an action: the same for every surface.

        Raises NoSuchName, AmbiguousName, EditExpired, PathError, NoChangeAtLine, ChangesGone and NothingSelected.
        """
        from objstore.review.selection.units import select

        return select(self._journal, action, selection)

    @reads
    def edits(self, selection: Selection) -> list[EditView]:
        """Return the edits that the group of a selection names, oldest first. Raises as `select`."""
        from objstore.review.selection.units import edits_of_group

        return edits_of_group(self._journal, selection)

    @reads
    def pending_units(self, selection: Selection) -> frozenset[Unit]:
        """Return the pending units of the edits that a group of a selection names. Raises as `select`."""
        from objstore.review.selection.units import pending_units

        return pending_units(self._journal, selection)

    @reads
    def places(self, named: Sequence[NamedPlace]) -> PathSelection:
        """Return the places that paths name: all files that were ever there, and folders.

        Raises NoSuchName, PathError.
        """
        from objstore.review.selection.places import places

        return places(self._journal, named)

    @reads
    def markers(self) -> tuple[UnresolvedMarkers, ...]:
        """Return the conflict markers that decisions wrote and that are still in their files, by edit."""
        # Every edit that is shown asks this, and mostly there are none: the status isn't imported then.
        if not self._store.index.edits.with_markers():
            return ()
        from objstore.review import status

        return status.unresolved_markers(self._journal)

    @decides
    def decide(  # noqa: PLR0913 - each is one thing that a reviewer may say
        self,
        action: Action,
        units: Sequence[Unit],
        *,
        reason: str = "",
        who: str = "",
        cascade: bool = False,
        markers: bool = False,
        keeps_lines: bool = False,
        on_external: OnExternal = OnExternal.ABORT,
        expected: Sequence[ExternalChange] = (),
        shown: Mapping[Unit, Status] | None = None,
        refused: Conflicted | None = None,
        checked: Sequence[FileEffect] | None = None,
        with_names: bool = True,
        stops_at_broken: bool = False,
        stops_at_unshown: bool = False,
        dry_run: bool = False,
    ) -> DecisionOutcome:
        """Accept, reject or reset units, on disk and in the journal, or change neither.

        `cascade`: reject also the units that depend on the rejected ones. `markers`: set the units aside that can't be
        live with the decision, and write both into the text between conflict markers; a new decision on any of them
        removes the markers. `keeps_lines`: where the creation of a file is rejected, the lines that others inserted
        stay, in an edit of the reviewer's own that creates the file again. `expected`: the external changes that the
        reviewer was shown; if the disk has changed since, FileChanged is raised. `shown`: the statuses that the
        reviewer saw, including those of cascading units; if a unit has neither this status nor the wanted one,
        DecidedMeanwhile is raised. `refused`: the conflict that the reviewer was shown before choosing to cascade or
        to keep lines; if there is a different conflict by now, that is the outcome.
        `checked`: what a dry run would have done to files, if a command was run on a copy of that; if it would be
        something else by now, CheckedElse is raised. `with_names`: say what it breaks in sources, if it is a rejection
        also in the reason, for agents. `stops_at_broken`: if it breaks any, be a dry run; the outcome's number is 0
        then. `stops_at_unshown`: be one too if it takes along what is not in `shown`, such as formatting; `unshown` of
        the outcome lists that. `dry_run`: only report what would happen. Raises AgentDecides, NoSuchName, EditAway,
        EditTakenOut, HistoryBroken, and as Call.commit does.
        """
        from objstore.review.decisions import DecisionRequest

        request = DecisionRequest(
            action=action,
            verdicts=dict.fromkeys(units, BECOMES[action]),
            reason=reason,
            who=who,
            cascade=cascade and action is Action.REJECT,
            markers=markers,
            keeps_lines=keeps_lines and action is Action.REJECT,
            on_external=on_external,
            expected=tuple(expected),
            shown=shown or {},
            refusal=refused,
            checked=None if checked is None else tuple(checked),
            stops_at_broken=stops_at_broken,
            stops_at_unshown=stops_at_unshown,
            dry_run=dry_run,
        )
        return self._outcome(request, with_names=with_names)

    @reads
    def in_force(self) -> list[DecisionInForce]:
        """Return the decisions that `undo` can take back, the newest first."""
        from objstore.review import decisions

        return decisions.in_force(self._journal)

    @reads
    def act(self, number: int) -> Act:
        """Return what a decision was: one that is in force, or was undone last. Raises NoSuchName."""
        from objstore.review import decisions

        return decisions.act_numbered(self._journal, number)

    @decides
    def undo(  # noqa: PLR0913 - as of `decide`
        self,
        number: int = 0,
        *,
        past: Collection[int] = (),
        who: str = "",
        on_external: OnExternal = OnExternal.ABORT,
        expected: Sequence[ExternalChange] = (),
        end: HistoryEnd | None = None,
        shown: Mapping[Unit, Status] | None = None,
        stops_at_broken: bool = False,
        stops_at_unshown: bool = False,
        dry_run: bool = False,
    ) -> DecisionOutcome:
        """Take back the newest act that is still in force: a decision, or a person's own change of files.

        Every unit gets back the status that it had before; a restore, a rewind and an amendment are taken out.
        `number`: the decision that is meant (0: the newest), so that no other one is taken back: if it is not the
        newest in force, the outcome is NothingToDo. `past`: decisions that may have been made since and stay in force,
        as long as they are on other units. `end`: how far the history went when the reviewer looked; if anything was
        decided since, DecidedMeanwhile is raised. `shown`: what goes along and was listed before; the rest is as for
        `decide`.
        """
        from objstore.review.decisions import DecisionRequest

        request = DecisionRequest(
            action=Action.UNDO,
            who=who,
            on_external=on_external,
            expected=tuple(expected),
            end=end,
            shown=shown or {},
            stops_at_broken=stops_at_broken,
            stops_at_unshown=stops_at_unshown,
            dry_run=dry_run,
            takes_back=number,
            past=frozenset(past),
        )
        return self._outcome(request)

    @decides
    def redo(
        self,
        *,
        who: str = "",
        on_external: OnExternal = OnExternal.ABORT,
        expected: Sequence[ExternalChange] = (),
        end: HistoryEnd | None = None,
        shown: Mapping[Unit, Status] | None = None,
        stops_at_broken: bool = False,
        stops_at_unshown: bool = False,
        dry_run: bool = False,
    ) -> DecisionOutcome:
        """Make the decision again that the last undo took back, unless something else was decided since.

        The rest is as for `undo`.
        """
        from objstore.review.decisions import DecisionRequest

        request = DecisionRequest(
            action=Action.REDO,
            who=who,
            on_external=on_external,
            expected=tuple(expected),
            end=end,
            shown=shown or {},
            stops_at_broken=stops_at_broken,
            stops_at_unshown=stops_at_unshown,
            dry_run=dry_run,
        )
        return self._outcome(request)

    @decides
    def claim(
        self, seqs: Collection[Seq], *, session: int | None = None, who: str = "", dry_run: bool = False
    ) -> Decided | NothingToDo:
        """Attribute edits that were found on disk to the session with this number (None: to the person).

        A person's are accepted, a session's await review; no file changes, and `undo` takes it back. Raises NoSuchName,
        NotClaimable, EditExpired.
        """
        from objstore.review.claim import Claim, claim

        return claim(self._journal, Claim(seqs=tuple(seqs), session=session, who=who, dry_run=dry_run))

    @reads
    def units_since_turn(self, turn: int) -> dict[Unit, Status]:
        """Return the live units of what a turn's session did from that turn on, with their statuses.

        Raises NoSuchName.
        """
        from objstore.review.rewind import units_since

        return units_since(self._journal, turn)

    @decides
    def rewind_exactly(
        self, turn: int, *, who: str = "", on_external: OnExternal = OnExternal.ABORT, dry_run: bool = False
    ) -> CallOutcome | ExternalChanges:
        """Restore every recorded file to its state when a turn began, as edits of a person's that `undo` takes out.

        Changes of these files that were not recorded stop it, or are recorded first (`on_external`). Raises NoSuchName,
        FileChanged if a folder of a path is now a symlink, and what Call.restore and Call.commit raise.
        """
        from objstore.agents.unrecorded_files import unrecorded_files
        from objstore.review import rewind
        from objstore.review.calls.tracked_call import Call
        from objstore.worktree.walk import ScanLimits

        with self._journal.session(dry_run=dry_run) as (batch, _):
            without_edit = unrecorded_files(self._journal, ScanLimits()).changes
            found = rewind.unrecorded(self._journal, turn, without_edit)
            if found.changes and on_external is OnExternal.ABORT:
                return found
            call = Call(self._journal, batch, rewind.exact_info(turn, who=who))
            self._preview = call.text if dry_run else None
            return rewind.rewind_exactly(self._journal, call, turn, found.changes, who=who, dry_run=dry_run)

    def amendable(self, seq: int) -> Content:
        """Return the current file on disk that an edit changed. Raises NoSuchName, NotAmendable, FileMissing."""
        from objstore.review.amend import amendable_path

        with self._journal.reading():
            path = amendable_path(self._journal, seq)
        return self._journal.files.read(path, limit=MAX_BLOB)

    @decides
    def amend(
        self,
        seq: int,
        content: bytes,
        *,
        version: BlobId,
        base: bytes | None = None,
        hunks: Sequence[Hunk] | None = None,
        who: str = "",
    ) -> CallOutcome:
        """Write new bytes to the file that an edit changed, recorded as a person's amendment of the edit.

        Rejecting the whole edit rejects its amendments with it; rejecting an amendment brings back the edit's own
        result. `version`: the blob of the file when the reviewer began, and `base` its bytes. If the file has changed
        since, FileChanged is raised, unless `base` is given and the change can be rebased onto the current text.
        `hunks`: the lines that were really changed, if known: a comparison can't distinguish equal lines. Raises
        NoSuchName, NotAmendable, FileMissing and what Call.commit raises.
        """
        from objstore.review.amend import amend

        return amend(self._journal, seq, content, who=who, version=version, base=base, hunks=hunks)

    @decides
    def restore(self, state: State, *, who: str = "", dry_run: bool = False) -> CallOutcome:
        """Restore a recorded state as a person's own edit, which `undo` takes out. `dry_run`: only return the outcome.

        Raises FileChanged if a folder of its path is now a symlink, and what Call.write and Call.commit raise.
        """
        from objstore.disk.file_changes.open_dirs import first_symlink_on
        from objstore.model.results import CallInfo
        from objstore.review.acts import commit_act
        from objstore.review.calls.deciders import marks
        from objstore.review.calls.tracked_call import open_call

        link = first_symlink_on(self._journal.tree, os.fsencode(state.path))
        if link:
            raise FileChanged(state.path, link)
        info = CallInfo(tool="restore", origin=Origin.PERSON, notes=marks(self._journal))
        with open_call(self._journal, info) as call:
            if state.blob is not None:
                call.restore(state.path, FileState(blob=state.blob, mode=state.mode))
            elif call.exists(state.path):
                call.delete(state.path)
            self._preview = call.text if dry_run else None
            return commit_act(self._journal, call, who=who, dry_run=dry_run)

    @reads
    def preview(self, effect: FileEffect) -> tuple[bytes | None, bytes | None]:
        """Return a file's text before and after an effect (None: no file), including effects of the last dry run."""
        content = self._store.text if self._preview is None else self._preview
        return (
            None if effect.before is None else content(effect.before),
            None if effect.after is None else content(effect.after),
        )

    def _outcome(self, request: DecisionRequest, *, with_names: bool = True) -> DecisionOutcome:
        from objstore.review.decisions import decide

        if with_names and self._asks_for_names():
            request = self._asking_for_names(request)
        if request.action is Action.REJECT and not request.dry_run:
            request = self._telling_of_checks(request)
        outcome, self._preview = decide(self._journal, request)
        return outcome

    def _telling_of_checks(self, request: DecisionRequest) -> DecisionRequest:
        """Return a request that has in its reason which checks failed on the files before it, or after it."""
        from objstore.review.trial.failed_checks import failed_checks

        checks = failed_checks(self._journal)
        with suppress(CasError, OSError):  # the decision is what matters
            if checks:
                from objstore.workspace.trials import Trials

                trials = Trials(self._journal)
                return replace(request, find_failed=trials.failed_on(checks, trials.covered()))
        return request

    def _asks_for_names(self) -> bool:
        from objstore.disk.config.config_files import Configuration

        try:
            return Configuration(self._journal.tree.root).get("review.names").value is not False
        except (CasError, OSError):
            return False  # the decision is what matters

    def _asking_for_names(self, request: DecisionRequest) -> DecisionRequest:
        """Return a request that also looks for names that it breaks.

        Before the store is locked, all sources are read if that may take long, or is likely to be needed. Most
        decisions on one file change no names, and need no other source.
        """
        from objstore.workspace.broken import Breakage

        breakage = Breakage(self._journal)
        sources = self._named_sources(request)
        if len(sources) > 1 or (sources and breakage.names.is_missing):
            with suppress(CasError, OSError):
                _ = breakage.sources
        attributed = sys.maxsize if request.dry_run else _ATTRIBUTED
        return replace(request, find_broken=partial(breakage.of, attributed=attributed))

    @reads
    def _named_sources(self, request: DecisionRequest) -> list[str]:
        """Return the paths of the files of which a request names edits, and that are sources now."""
        from objstore.text.needs.source_kinds import concerns_sources

        index = self._store.index
        documents = {*index.edits.documents_of({unit.seq for unit in request.verdicts}).values()}
        paths = [os.fsdecode(tip.path) for tip in index.documents.tips_of(documents)]
        return [path for path in paths if concerns_sources([path])]
