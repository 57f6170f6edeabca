"""Compute what a decision would do, without changing anything, and record it.

The text of a file is a function of the set of live edits. A decision gives units new statuses, and the planner replays
every document of these units with them. If there is no conflict, and no two files have one path, the plan writes the
resulting documents; otherwise the planner returns the conflicts.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from objstore.history.edit_queries import edit as edit_numbered, may_continue
from objstore.model.basic_types import (
    Action,
    ConflictKind,
    Decider,
    DocumentId,
    FileState,
    OnExternal,
    Origin,
    Seq,
    Status,
    Unit,
    settable_state,
)
from objstore.model.large_file_placeholder import MAX_BLOB, is_placeholder
from objstore.model.records import LEFT_OUT_NOTE, Decision, Edit, WrittenFile
from objstore.model.results import Conflict, Conflicted, LinesKept, MarkersWritten, Notice
from objstore.review.planning.kept_lines import LineKeeper
from objstore.review.planning.marker_files import MarkerWriter
from objstore.review.planning.marker_removal import without_markers
from objstore.review.planning.path_conflicts import find_path_conflicts, path_of
from objstore.review.planning.plan import DecidedUnits, Plan
from objstore.review.planning.planned_documents import PlannedDocuments
from objstore.review.planning.replay_check import find_doubt, live_units
from objstore.review.planning.ways_out import WaysOut
from objstore.storage.index.rows import Tip
from objstore.storage.store.write_batch import Batch, now
from objstore.values.errors import UNREADABLE, FileChanged, FileTooLarge, HistoryBroken
from objstore.values.fastclass import field, replace, variable
from objstore.values.request_errors import EditTakenOut, FileMayBeOlder, NoSuchName
from objstore.worktree.external_changes import concerns_disk, external_view, found_at
from objstore.worktree.mounts import absent_folders, is_absent, require_mounted

# `edit_recorder` is imported only if a decision finds external edits, or writes markers.
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from objstore.model.results import ExternalChange
    from objstore.review.calls.edit_recorder import Change, Recorder
    from objstore.storage.transaction.journal import Journal
    from objstore.weave.document import Document

__all__ = ["Planner", "require_expected"]


def require_expected(expected: Sequence[ExternalChange], found: Sequence[ExternalChange]) -> None:
    """Raise FileChanged if other external changes are found than those that the reviewer was shown, if any were."""
    if expected and set(expected) != set(found):
        raise FileChanged(min(change.path for change in set(expected) ^ set(found)))


@variable
class Planner:
    """The computation of one decision. The caller holds the writer lock, except in a dry run."""

    journal: Journal
    batch: Batch
    before: Seq = Seq(0)  # for an undo or redo: the newest edit before the decision that it takes back; 0: none
    _loaded: PlannedDocuments | None = None  # None: none yet
    _tips: dict[DocumentId, Tip] = field(default_factory=dict)  # their tips, external edits included
    _disk_stats: dict[bytes, os.stat_result] = field(default_factory=dict)
    _as_recorded: set[DocumentId] = field(default_factory=set)  # whose files were seen to be as recorded
    _external: list[Edit] = field(default_factory=list)
    _lineages: dict[int, DocumentId] = field(default_factory=dict)  # documents of named and external edits
    _modes_lost: dict[DocumentId, int] = field(default_factory=dict)
    _older: set[Seq] = field(default_factory=set)  # creations that stay pending: their files may be older
    _recorder: Recorder | None = None  # None: nothing is recorded yet

    def absent(self, units: Iterable[Unit]) -> dict[Unit, str]:
        """Return the units of files that are on file systems not mounted now, each with its file's path."""
        absent = absent_folders(self.journal)
        found: dict[Unit, str] = {}
        for unit in units if absent else ():
            (document,) = self._documents_of([unit])
            path = self._tip(document).path
            if is_absent(path, absent):
                found[unit] = os.fsdecode(path)
        return found

    def external_changes(self, units: Iterable[Unit]) -> tuple[ExternalChange, ...]:
        """Return the external changes of the files that the units belong to. Raises NotMounted."""
        documents = self._documents_of(units)
        self._tips |= {tip.document: tip for tip in self.journal.store.index.documents.tips_of(documents)}
        tips = [self._tip(document) for document in documents]
        require_mounted(self.journal, (tip.path for tip in tips))
        changes: list[ExternalChange] = []
        with self.journal.store.index.still():
            for done, tip in enumerate(tips):
                self.journal.progress("files", done, len(tips))
                if not concerns_disk(self.journal, tip):
                    continue
                found = found_at(self.journal, tip)
                if (None if found is None else found[0]) != tip.state:
                    changes.append(external_view(self.journal.tree, tip, found))
                    continue
                self._as_recorded.add(tip.document)
                if found is not None:
                    self._disk_stats[tip.path] = found[1].stat
        return tuple(changes)

    def record_returned(self, units: Iterable[Unit]) -> bool:
        """Record which lines of edits are back in the files that the units belong to; return whether any is.

        If so, the planner and its batch are spent: another one plans the decision.
        """
        from objstore.review.calls.formatting import differences

        changes = [change for _, change in self._found(self._documents_of(units)) if change is not None]
        found = differences(self.batch, changes, self._disk_stats)
        return bool(found) and self.journal.evidence.record_returned(self.batch, found)

    def plan(
        self,
        verdicts: Mapping[Unit, Status],
        *,
        cascade: bool,
        markers: bool,
        keeps_lines: bool,
        on_external: OnExternal,
        expected: Sequence[ExternalChange],
        is_new: bool = True,
    ) -> Plan | Conflicted:
        """Compute what the verdicts lead to. External changes are recorded first, and then kept or discarded.

        `is_new`: false for an undo or redo, which restores earlier statuses instead of removing markers.
        `cascade`: conflicting hunks are rejected; `markers`: they are set aside, and shown in the text; `keeps_lines`:
        they are rejected, and what they inserted into a file whose creation is rejected stays.
        Raises FileChanged if the external changes are not the `expected` ones, when any are given, FileTooLarge if a
        resulting text is over MAX_BLOB, and HistoryBroken.
        """
        documents = self._documents_of(verdicts)
        discarded = self._record_external(documents, on_external, expected)
        statuses_only = self._without_effect(self._by_document(verdicts))
        documents = [document for document in documents if document not in statuses_only]
        decided = DecidedUnits(named=self._by_document(dict(verdicts) | dict.fromkeys(discarded, Status.REJECTED)))
        marker = MarkerWriter(self.journal, self.batch, self._external)
        keeper = LineKeeper(self.journal, self.batch, self._origin)
        before: dict[DocumentId, bytes] = {}
        paths: dict[DocumentId, bytes | None] = {}
        conflicts: list[Conflict] = []
        for document in documents:
            self.journal.progress("documents", len(before), len(documents))
            before[document] = self._documents.before(document)
            loaded = self._documents.get(document)
            left = self._without_markers(loaded, decided, is_new=is_new)
            if cascade:
                decided.added += loaded.set_with_dependents(left)
            elif markers:
                decided.added += marker.set_statuses(loaded, left)
            elif keeps_lines:
                decided.added += keeper.set_statuses(loaded, left)
            else:
                loaded.set_statuses(left)
                decided.added += self._reject_formatting(loaded, left) if is_new else ()
            conflicts += loaded.conflicts()
            paths[document] = path_of(loaded)
        if not (statuses_only or any(decided.named.values())):
            self._refuse_to_leave_all(decided.unchanged)
        conflicts += self._path_conflicts(paths, {unit for named in decided.named.values() for unit in named})
        changed = {unit: status for each in statuses_only.values() for unit, status in each.items()}
        written: list[WrittenFile] = []
        notices: list[Notice] = []
        emptied: list[bytes] = []
        for document in () if conflicts else documents:
            loaded = self._documents.get(document)
            # An undo or redo leads back to an earlier text, which is not in doubt.
            doubt = self._doubt(loaded, before[document]) if is_new else None
            while doubt is not None and cascade:
                decided.added += self._reject_with_dependents(loaded, doubt)
                doubt = self._doubt(loaded, before[document])
            conflicts += [] if doubt is None else [doubt]
            if conflicts:
                continue
            of_document = loaded.changed_since(before[document])
            changed |= of_document
            written += self._written(loaded)
            notices += self._notices(loaded, of_document)
            if loaded.text() is None:
                emptied += self.journal.store.index.folders.made_for(document)
        if conflicts:
            return self._refused(conflicts, before, decided.named, is_new=is_new)
        unchanged = tuple(decided.unchanged.items())
        return Plan(
            verdicts=decided.restated | changed,
            cascaded=tuple(unit for unit in decided.added if unit in changed),
            written=(*written, *self._unchanged(statuses_only)),
            external=self._external,
            disk_stats=self._disk_stats,
            notices=tuple(notices),
            emptied=tuple(emptied),
            marked=marker,
            kept=keeper,
            unmarked=tuple(decided.unmarked),
            returned=tuple(unit for unit in decided.returned if unit in changed),
            repeated=() if is_new else unchanged,
            taken_out=unchanged if is_new else (),
            older=tuple(sorted(self._older)),
            modes_lost=self._modes_lost,
        )

    def record(
        self, plan: Plan, action: Action, *, who: str, reason: str, takes_back: int, commit: str = ""
    ) -> tuple[Decision, tuple[MarkersWritten, ...], tuple[LinesKept, ...]]:
        """Add the decision to the batch, and the edits that write its markers and keep lines; return all."""
        decider = Decider() if commit else self.journal.decider
        decision = Decision(
            number=self.journal.store.index.numbers.next_decision(),
            time=now(),
            action=action,
            verdicts=tuple(sorted(plan.verdicts.items())),
            written=plan.written,
            who=who,
            reason=reason,
            takes_back=takes_back,
            commit=commit,
            via=decider.via,
            agent=decider.agent,
        )
        self.batch.record(decision)
        marked = plan.marked.record(self._recording(), decision, who) if plan.marked.files else ()
        kept = plan.kept.record(self._recording(), decision, who) if plan.kept.files else ()
        return decision, marked, kept

    def _recording(self) -> Recorder:
        if self._recorder is None:
            from objstore.review.calls.edit_recorder import Recorder

            self._recorder = Recorder(self.journal, self.batch)
        return self._recorder

    # ---- inside

    @property
    def _documents(self) -> PlannedDocuments:
        if self._loaded is None:
            self._loaded = PlannedDocuments(self.journal, self.batch.text)
        return self._loaded

    def _documents_of(self, units: Iterable[Unit]) -> list[DocumentId]:
        seqs = {unit.seq: None for unit in units}
        self._lineages |= self.journal.store.index.edits.documents_of(seqs.keys() - self._lineages.keys())
        found: dict[DocumentId, None] = {}
        for seq in seqs:
            if seq not in self._lineages:
                raise NoSuchName(str(seq), "edit")
            found[self._lineages[seq]] = None
        return list(found)

    def _without_effect(
        self, shares: Mapping[DocumentId, Mapping[Unit, Status]]
    ) -> dict[DocumentId, dict[Unit, Status]]:
        """Return the changed statuses of the documents that need no replay, because their text can't change.

        All their units are live and stay so, they have no external changes and no markers, and no later accepted edit
        took out what is accepted.
        """
        index = self.journal.store.index
        found: dict[DocumentId, dict[Unit, Status]] = {}
        for document, share in shares.items():
            if document in self._documents or Status.REJECTED in share.values():
                continue
            if index.history.edits_with(document, [Status.REJECTED, Status.AWAY]) or index.history.marked(document):
                continue
            if self._may_be_taken_out(document, share):
                continue
            units = {seq: row.units for seq, row in index.edits.rows({unit.seq for unit in share}).items()}
            found[document] = {
                unit: status for unit, status in share.items() if units[unit.seq][unit.hunk] is not status
            }
        return found

    def _may_be_taken_out(self, document: DocumentId, share: Mapping[Unit, Status]) -> bool:
        """Return whether an accept names units that later edits took out; False if the history can't be replayed."""
        accepted = [unit for unit, status in share.items() if status is Status.ACCEPTED]
        done = self.journal.store.index.history.edits_with(document, [Status.ACCEPTED]) if accepted else []
        if not any(seq > min(accepted).seq for seq, _ in done):
            return False
        with suppress(HistoryBroken, *UNREADABLE):  # no text changes, so a decision is possible all the same
            return bool(self._documents.get(document).taken_out(accepted))
        return False

    def _without_left_units(
        self, loaded: Document, verdicts: Mapping[Unit, Status], *, is_new: bool
    ) -> tuple[dict[Unit, Status], dict[Unit, Unit]]:
        """Return as the function of this name, and note creations that must not be rejected."""
        if is_new:
            older = self._creations_of_older_files(loaded, verdicts)
            self._older |= older
            verdicts = {unit: status for unit, status in verdicts.items() if unit.seq not in older}
        return _without_left_units(loaded, verdicts, is_new=is_new)

    def _without_markers(self, loaded: Document, decided: DecidedUnits, *, is_new: bool) -> Mapping[Unit, Status]:
        """Remove the markers that verdicts are about from a document, and return the verdicts that are left to set.

        What is known of the units then is added to `decided`.
        """
        named = decided.named.get(loaded.id, {})
        known = {unit: status for unit, status in named.items() if loaded.knows(unit)}
        named, unchanged = self._without_left_units(loaded, known, is_new=is_new)
        rest = without_markers(self.journal, loaded, named, before=self.before, is_new=is_new)
        decided.named[loaded.id] = named
        decided.unchanged |= unchanged
        decided.restated |= named if rest.unmarked or not is_new else {}
        decided.unmarked += rest.unmarked
        decided.returned += rest.returned
        decided.added += rest.amendments
        return rest.verdicts

    def _refuse_to_leave_all(self, unchanged: Mapping[Unit, Unit]) -> None:
        """Raise the error that nothing is left to decide, if anything was left out."""
        if unchanged:
            raise _refusal_of_taken_out(self.journal, self._owner(min(unchanged)), unchanged, self._external)
        if self._older:
            path = self._tip(self._lineages[min(self._older)]).path
            raise FileMayBeOlder(sorted(self._older), os.fsdecode(path))

    def _creations_of_older_files(self, loaded: Document, verdicts: Mapping[Unit, Status]) -> set[Seq]:
        """Return the creations that must not be rejected: the file is there, and may be older than its edit."""
        index = self.journal.store.index
        wholes = [unit.seq for unit, status in verdicts.items() if status is Status.REJECTED and not unit.hunk]
        if not wholes or loaded.text() is None:
            return set()
        found = set()
        for seq in wholes:
            row = None if loaded.is_rejected(Unit(seq, 0)) or seq != loaded.first else index.edits.get(seq)
            record = None if row is None else self.journal.store.record(row.place)[0]
            if isinstance(record, Edit) and record.before is None and LEFT_OUT_NOTE in record.notes:
                found.add(seq)
        return found

    def _by_document(self, verdicts: Mapping[Unit, Status]) -> dict[DocumentId, dict[Unit, Status]]:
        shares: dict[DocumentId, dict[Unit, Status]] = {}
        for unit, status in verdicts.items():
            shares.setdefault(self._lineages[unit.seq], {})[unit] = status
        return shares

    def _tip(self, document: DocumentId) -> Tip:
        tip = self._tips.get(document)
        if tip is None:
            tip = self._tips[document] = self.journal.store.index.documents.tip(document)
        return tip

    def _record_external(
        self, documents: Sequence[DocumentId], on_external: OnExternal, expected: Sequence[ExternalChange]
    ) -> list[Unit]:
        """Record the external changes of the documents; return the units to reject with the decision."""
        found = self._found(documents)
        require_expected(expected, [view for view, _ in found])
        changes = [change for _, change in found if change is not None]
        if not changes:
            return []
        from objstore.review.calls.formatting import attributed

        whose = self.journal.evidence.attributor(is_kept=True)
        found_changes = attributed(self.journal, changes, whose, self._disk_stats)
        self._external = [view.edit for view in self._recording().record_found(found_changes)]
        discarded: list[Unit] = []
        for edit in self._external:
            self._lineages[edit.seq] = edit.document
            loaded = self._documents.add(edit)
            self._tips[edit.document] = Tip(edit.document, edit.path, edit.after)
            if on_external is OnExternal.DISCARD:
                discarded += loaded.units(edit.seq)
        return discarded

    def _found(self, documents: Sequence[DocumentId]) -> list[tuple[ExternalChange, Change | None]]:
        """Return how the files of documents differ from their records, for people, and as changes to record."""
        seen: list[tuple[ExternalChange, Change | None]] = []
        for document in documents:
            tip = self._tip(document)
            if document in self._as_recorded or not concerns_disk(self.journal, tip):
                continue
            found = found_at(self.journal, tip)
            if found is not None and tip.state is None and not may_continue(self.journal, tip.document, found[0]):
                found = None
            if found is not None:
                self._disk_stats[tip.path] = found[1].stat
            if (None if found is None else found[0]) != tip.state:
                from objstore.review.calls.edit_recorder import external_change, version_of

                version = version_of(found, self.journal.tree, tip.path)
                change = external_change(tip.path, tip.document, tip.state, version, self.batch.text)
                seen.append((external_view(self.journal.tree, tip, found), change))
        return seen

    def _reject_formatting(self, loaded: Document, verdicts: Mapping[Unit, Status]) -> Sequence[Unit]:
        """Reject what formatters made of the lines that a decision takes out; return these units.

        Nothing else that depends on a rejected unit goes along: that is a conflict, and an acceptance takes nothing.
        """
        gone = {unit for unit, status in verdicts.items() if not status.is_live}
        taken: list[Unit] = []
        while gone:
            conflicts = [each for each in loaded.conflicts() if gone.intersection(each.needs)]
            found = {each.unit: None for each in conflicts if self._origin(each.unit.seq) is Origin.FORMATTER}
            taken += found
            loaded.set_statuses(dict.fromkeys(found, Status.REJECTED))
            gone = set(found)
        return taken

    def _origin(self, seq: Seq) -> Origin:
        """Return the origin of an edit, which may have been found by this decision."""
        found = next((each for each in self._external if each.seq == seq), None)
        return edit_numbered(self.journal, seq).edit.origin if found is None else found.origin

    def _doubt(self, loaded: Document, before: bytes) -> Conflict | None:
        """Return why the text of a document is in doubt (None: it isn't). `before`: its earlier statuses."""
        external = [edit for edit in self._external if edit.document == loaded.id]
        return find_doubt(self.journal.store, loaded, before, external, self.batch.text)

    @staticmethod
    def _reject_with_dependents(loaded: Document, doubt: Conflict) -> list[Unit]:
        """Reject the edit that a doubt names, and the hunks that depend on it; return what was rejected."""
        units = live_units(loaded, doubt.unit.seq)
        return [*units, *loaded.set_with_dependents(dict.fromkeys(units, Status.REJECTED))]

    def _path_conflicts(self, paths: Mapping[DocumentId, bytes | None], decided: Collection[Unit]) -> list[Conflict]:
        return find_path_conflicts(self.journal.store.index, self._documents.get, paths, decided)

    def _refused(
        self,
        conflicts: Iterable[Conflict],
        before: Mapping[DocumentId, bytes],
        named: Mapping[DocumentId, Mapping[Unit, Status]],
        *,
        is_new: bool,
    ) -> Conflicted:
        """Return the refusal: the conflicts, with lines of the current text, and what else would have to be decided."""
        ways_out = WaysOut(self.journal, self._documents.get, self._lineage, before=self.before, is_new=is_new)
        accept_first, reject_first = ways_out.find(conflicts, before, named)
        doubted = (conflict.unit for conflict in conflicts if conflict.kind is ConflictKind.IN_DOUBT)
        reject_first += [other for unit in doubted for other in live_units(self._owner(unit), unit.seq)]
        can_keep_lines = is_new and self._can_keep_lines(before, named)
        for document, statuses in before.items():
            self._documents.get(document).restore_statuses(statuses)
        return Conflicted(
            conflicts=tuple([self._in_current_text(conflict) for conflict in conflicts]),
            accept_first=tuple(sorted(accept_first)),
            reject_first=tuple(sorted(reject_first)),
            outside=tuple(edit.seq for edit in self._external),
            can_keep_lines=can_keep_lines,
        )

    def _can_keep_lines(
        self, before: Mapping[DocumentId, bytes], named: Mapping[DocumentId, Mapping[Unit, Status]]
    ) -> bool:
        """Return whether keeping others' lines would make a refused decision possible. Leaves statuses changed."""
        keeper = LineKeeper(self.journal, self.batch, self._origin)
        paths: dict[DocumentId, bytes | None] = {}
        for document, statuses in before.items():
            loaded = self._documents.get(document)
            loaded.restore_statuses(statuses)
            rest = without_markers(self.journal, loaded, named[document], before=self.before, is_new=True)
            keeper.set_statuses(loaded, rest.verdicts)
            if loaded.conflicts():
                return False
            paths[document] = path_of(loaded)
        return bool(keeper.files) and not self._path_conflicts(paths, ())

    def _in_current_text(self, conflict: Conflict) -> Conflict:
        """Return the conflict with its line in the current text, and the external edits that it names."""
        line = conflict.line
        if line:  # a conflict about a path has none, and may name an expired edit, which no document knows
            line = self._owner(conflict.unit).line(conflict.unit)
        named = {conflict.unit.seq, *(unit.seq for unit in conflict.needs)}
        return replace(conflict, line=line, outside=tuple(edit.seq for edit in self._external if edit.seq in named))

    def _lineage(self, unit: Unit) -> DocumentId | None:
        """Return the document of a unit (None: its edit has expired)."""
        document = self._lineages.get(unit.seq) or self.journal.store.index.edits.document_of(unit.seq)
        return document if document is not None and self._documents.get(document).knows(unit) else None

    def _owner(self, unit: Unit) -> Document:
        (document,) = self._documents_of([unit])
        return self._documents.get(document)

    def _notices(self, loaded: Document, changed: Iterable[Unit]) -> Iterable[Notice]:
        # Markers are always next to the lines that they mark, so that is no notice.
        marker_edits = {row.seq for row in self.journal.store.index.history.marked(loaded.id)}
        decided = (unit for unit in changed if unit.seq not in marker_edits)
        for notice in loaded.notices(decided):
            adjacent = tuple(unit for unit in notice.adjacent if unit.seq not in marker_edits)
            if adjacent:
                yield replace(notice, adjacent=adjacent)

    def _written(self, loaded: Document) -> Iterable[WrittenFile]:
        """Yield the file of a document, unless there is none before and after the decision."""
        tip, version = self._tip(loaded.id), loaded.version()
        after: FileState | None = None
        if version.content is not None:
            if len(version.content) > MAX_BLOB:  # a weave could not load it again
                raise FileTooLarge(os.fsdecode(version.path), len(version.content), MAX_BLOB)
            base = None if tip.state is None else tip.state.blob
            state = FileState(blob=self.batch.state(version.content, base), mode=version.mode)
            if not is_placeholder(version.content):
                self.journal.store.remember(state.blob, version.content)  # it is written to the file next
            after = settable_state(state, tip.state)
            self._modes_lost[loaded.id] = state.mode & ~after.mode
        if after is not None or tip.state is not None:
            yield WrittenFile(
                document=loaded.id,
                path_before=None if tip.state is None else tip.path,
                before=tip.state,
                path_after=None if after is None else version.path,
                after=after,
            )

    def _unchanged(self, documents: Iterable[DocumentId]) -> Iterator[WrittenFile]:
        """Yield the files of documents of which a decision changes nothing but statuses."""
        for tip in map(self._tip, documents):
            if tip.state is not None:
                yield WrittenFile(
                    document=tip.document,
                    path_before=tip.path,
                    before=tip.state,
                    path_after=tip.path,
                    after=tip.state,
                )


def _without_left_units(
    document: Document, verdicts: Mapping[Unit, Status], *, is_new: bool
) -> tuple[dict[Unit, Status], dict[Unit, Unit]]:
    """Return the verdicts to apply, and the units that are left, each with the unit because of which it is.

    An accept leaves a unit pending that has no effect in the file any more, because accepted changes took it out: it
    covers only what a person can see. An undo or redo (`is_new` is false) leaves a unit rejected where a live one makes
    the same change: else its lines would be there twice. It states all its verdicts, so also that these stay rejected.
    """
    if is_new:
        accepted, rejected = (
            [unit for unit, given in verdicts.items() if given is status]
            for status in (Status.ACCEPTED, Status.REJECTED)
        )
        left = document.taken_out(accepted, rejected)
        return {unit: status for unit, status in verdicts.items() if unit not in left}, left
    left = document.repeated(verdicts)
    return {**verdicts, **dict.fromkeys(left, Status.REJECTED)}, left


def _refusal_of_taken_out(
    journal: Journal, document: Document, left: Mapping[Unit, Unit], found: Iterable[Edit]
) -> EditTakenOut:
    """Return the error that nothing is left to accept. `found`: edits that are not recorded yet."""
    origins = {each.seq: each.origin for each in found}
    takers = {origins.get(unit.seq) or edit_numbered(journal, unit.seq).edit.origin for unit in left.values()}
    # The whole-file part of an edit is not named where its hunks are.
    named = [unit for unit in sorted(left) if unit.hunk or Unit(unit.seq, 1) not in left]
    path = os.fsdecode(document.version().path)
    return EditTakenOut(
        list(map(str, named)),
        path,
        by_person=takers <= {Origin.EXTERNAL, Origin.PERSON},
        is_recorded=not origins,
    )
