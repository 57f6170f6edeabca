"""Review: what a decision would do, worked out without touching anything, and then done as one tracked change.

The text of a file is a function of the set of live edits. A decision names units and their new statuses; every
document it concerns is replayed under them. If that leaves no conflict and no two files at one path, what the
documents then are is written; otherwise the conflicts are returned, and nothing changes.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from objstore.errors import FileChanged, FileTooLarge, NoSuchName
from objstore.fastclass import field, replace, value, variable
from objstore.file_changes.apply import FileStep
from objstore.fs.file_state import file_at
from objstore.history.document_loader import load_document
from objstore.history.marked_text import markers_removed_by, markers_removed_by_step_back
from objstore.index.rows import Tip
from objstore.model.basic_types import Action, ConflictKind, DocumentId, FileState, OnExternal, Seq, Status, Unit
from objstore.model.large_file_placeholder import MAX_BLOB
from objstore.model.records import Decision, Edit, WrittenFile
from objstore.model.relpath import folders_of
from objstore.model.results import Conflict, Conflicted, FileEffect, MarkersWritten, Notice
from objstore.model.views import ExternalChange
from objstore.review.marker_files import MarkerWriter
from objstore.review.replay_check import merge_replay
from objstore.store.write_batch import Batch, now
from objstore.text.lines import closed
from objstore.worktree.external_changes import concerns_disk, external_view, found_changes

# What records edits is imported where a decision finds some on disk, or writes markers.
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from objstore.review.edit_recorder import Change, Recorder
    from objstore.transaction.journal import Journal
    from objstore.weave.document import Document

__all__ = ["Plan", "Planner"]


@variable
class Plan:
    """A decision worked out and not yet made."""

    verdicts: dict[Unit, Status]  # what changes; what is decided anew on what markers are about, or taken back
    cascaded: tuple[Unit, ...]
    written: tuple[WrittenFile, ...]
    external: list[Edit]
    looked: dict[bytes, os.stat_result]
    notices: tuple[Notice, ...]
    left: tuple[bytes, ...]  # folders that edits made and whose file is gone, maybe from before
    marked: MarkerWriter
    unmarked: tuple[Seq, ...]  # edits whose markers go
    returned: tuple[Unit, ...]  # units whose status changes only because of that

    def effects(self) -> tuple[FileEffect, ...]:
        """Return what the decision does to each file, as far as it does anything."""
        return tuple(map(_effect, self.marked.over(self.written)))

    def steps(self) -> list[FileStep]:
        """Return what is to be done on disk, path by path."""
        files = self.marked.over(self.written)
        before = {w.path_before: w.before for w in files if w.path_before is not None}
        after = {w.path_after: w.after for w in files if w.path_after is not None}
        moves = {
            w.path_after: w.path_before
            for w in files
            if w.path_before != w.path_after and w.before == w.after and w.path_after not in before
        }
        return [
            FileStep(
                path=path,
                before=before.get(path),
                after=after.get(path),
                moved_from=self._source(path, moves, after),
                is_decided=True,
            )
            for path in sorted({*before, *after})
        ]

    @staticmethod
    def _source(
        path: bytes, moves: Mapping[bytes | None, bytes | None], after: Mapping[bytes, FileState | None]
    ) -> bytes | None:
        source = moves.get(path)
        return None if source is None or source in after else source


@value
class _WithoutMarkers:
    """What is left of a decision on one document once the markers are out that it is about."""

    verdicts: Mapping[Unit, Status]  # those that were named, and the amendments that go with them
    unmarked: Sequence[Seq]  # edits whose markers are out
    returned: Sequence[Unit]  # theirs, and what was set aside and is as it was before
    amendments: Sequence[Unit]  # that go with the markers, or with what was named


@variable
class Planner:
    """Works out one decision, with the writer lock held (or, for a dry run, as if)."""

    journal: Journal
    batch: Batch
    before: Seq = Seq(0)  # of a step back: the newest edit before the decision that it takes back; 0: there is none
    _documents: dict[DocumentId, Document] = field(default_factory=dict)
    _before: dict[DocumentId, bytes] = field(default_factory=dict)  # what was said of their units
    _tips: dict[DocumentId, Tip] = field(default_factory=dict)  # what the files are, external edits included
    _looked: dict[bytes, os.stat_result] = field(default_factory=dict)
    _external: list[Edit] = field(default_factory=list)
    _lineages: dict[Seq, DocumentId] = field(default_factory=dict)  # of the edits named, and of external ones
    _recorder: Recorder | None = None  # knows the numbers that it has given; None: it has given none

    def external_changes(self, units: Iterable[Unit]) -> tuple[ExternalChange, ...]:
        """Return what stands on disk otherwise than recorded, among the files that the units concern."""
        tips = [self._tip(document) for document in self._documents_of(units)]
        return found_changes(self.journal, self._counted(tips))

    def _counted(self, tips: Sequence[Tip]) -> Iterator[Tip]:
        """Yield the tips, and tell how many of them have been compared with the disk."""
        for done, tip in enumerate(tips):
            self.journal.progress("files", done, len(tips))
            yield tip

    def plan(
        self,
        verdicts: Mapping[Unit, Status],
        *,
        cascade: bool,
        markers: bool,
        on_external: OnExternal,
        expected: Sequence[ExternalChange],
        is_new: bool = True,
    ) -> Plan | Conflicted:
        """Work out what the verdicts lead to. Changes found on disk are recorded first, and kept or discarded.

        `is_new`: whether somebody thought again, so that markers about the same go; an undo puts back what was.
        `cascade`: what can't stand with them is rejected; `markers`: it is set aside, and shown in the text.
        Raises FileChanged when the disk is not as `expected`, where that is given, FileTooLarge where a text that comes
        of them is over MAX_BLOB, and HistoryBroken.
        """
        documents = self._documents_of(verdicts)
        discarded = self._take_in_external(documents, on_external, expected)
        said = self._without_effect(self._by_document(verdicts))
        documents = [document for document in documents if document not in said]
        before: dict[DocumentId, bytes] = {}
        for document in documents:
            self.journal.progress("documents", len(before), len(documents))
            self._document(document)
            before[document] = self._before[document]
        cascaded: list[Unit] = []
        marker = MarkerWriter(self.journal, self.batch, self._external)
        unmarked: list[Seq] = []
        anew: dict[Unit, Status] = {}
        returned: list[Unit] = []
        given = self._by_document(dict(verdicts) | dict.fromkeys(discarded, Status.REJECTED))
        for loaded in map(self._document, documents):
            named = {unit: status for unit, status in given.get(loaded.id, {}).items() if loaded.knows(unit)}
            given[loaded.id] = named
            settled = self._settle(loaded, named, is_new=is_new)
            unmarked += settled.unmarked
            anew |= named if settled.unmarked or not is_new else {}
            returned += settled.returned
            cascaded += settled.amendments
            if cascade:
                cascaded += loaded.set_with_dependents(settled.verdicts)
            elif markers:
                cascaded += marker.set_statuses(loaded, settled.verdicts)
            else:
                loaded.set_statuses(settled.verdicts)
        conflicts = [conflict for document in documents for conflict in self._document(document).conflicts()]
        conflicts += self._taken_paths(documents, {unit for share in given.values() for unit in share})
        # What is taken back was there before, so it is in no doubt.
        for document in documents if is_new and not conflicts else ():
            doubt = self._doubt(self._document(document), before[document])
            while doubt is not None and cascade:
                cascaded += self._reject_with_dependents(self._document(document), doubt)
                doubt = self._doubt(self._document(document), before[document])
            conflicts += [] if doubt is None else [doubt]
        if conflicts:
            return self._refused(conflicts, before, given, is_new=is_new)
        changes = {document: self._document(document).changed_since(before[document]) for document in documents}
        changed = {unit: status for share in (said | changes).values() for unit, status in share.items()}
        return Plan(
            verdicts=anew | changed,
            cascaded=tuple(unit for unit in cascaded if unit in changed),
            written=tuple(self._written(documents)),
            external=self._external,
            looked=self._looked,
            notices=tuple(self._notices(changes)),
            left=tuple(self._left(documents)),
            marked=marker,
            unmarked=tuple(unmarked),
            returned=tuple(unit for unit in returned if unit in changed),
        )

    def record(
        self, plan: Plan, action: Action, *, who: str, reason: str, takes_back: int
    ) -> tuple[Decision, tuple[MarkersWritten, ...]]:
        """Add the decision to the batch, and the edits that write its markers; return both."""
        decision = Decision(
            number=self.journal.store.index.numbers.next_decision(),
            time=now(),
            action=action,
            verdicts=tuple(sorted(plan.verdicts.items())),
            written=plan.written,
            who=who,
            reason=reason,
            takes_back=takes_back,
        )
        self.batch.record(decision)
        return decision, plan.marked.record(self._recording(), decision, who) if plan.marked.files else ()

    def _recording(self) -> Recorder:
        if self._recorder is None:
            from objstore.review.edit_recorder import Recorder

            self._recorder = Recorder(self.journal, self.batch)
        return self._recorder

    # ---- inside

    def _documents_of(self, units: Iterable[Unit]) -> list[DocumentId]:
        found: dict[DocumentId, None] = {}
        for seq in {unit.seq: None for unit in units}:
            document = self._lineages.get(seq)
            if document is None:
                document = self.journal.store.index.edits.document_of(seq)
                if document is None:
                    raise NoSuchName(str(seq), "edit")
                self._lineages[seq] = document
            found[document] = None
        return list(found)

    def _without_effect(
        self, shares: Mapping[DocumentId, Mapping[Unit, Status]]
    ) -> dict[DocumentId, dict[Unit, Status]]:
        """Return those of the shares, with what changes, that say something and do nothing: no need to replay for them.

        They are of documents of which all is live and stays so, with nothing found on disk and without markers.
        """
        index = self.journal.store.index
        found: dict[DocumentId, dict[Unit, Status]] = {}
        for document, share in shares.items():
            if document in self._documents or Status.REJECTED in share.values():
                continue
            if index.edits.has_rejected(document) or index.edits.with_markers(document):
                continue
            units = {
                seq: row.units for seq in {unit.seq for unit in share} if (row := index.edits.get(seq)) is not None
            }
            found[document] = {
                unit: status for unit, status in share.items() if units[unit.seq][unit.hunk] is not status
            }
        return found

    def _by_document(self, verdicts: Mapping[Unit, Status]) -> dict[DocumentId, dict[Unit, Status]]:
        shares: dict[DocumentId, dict[Unit, Status]] = {}
        for unit, status in verdicts.items():
            shares.setdefault(self._lineages[unit.seq], {})[unit] = status
        return shares

    def _left(self, documents: Iterable[DocumentId]) -> Iterator[bytes]:
        """Yield the folders that edits of the documents made, where none of those is a file any more."""
        for document in documents:
            if self._document(document).text() is None:
                yield from self.journal.store.index.folders.made_for(document)

    def _document(self, document: DocumentId) -> Document:
        loaded = self._documents.get(document)
        if loaded is None:
            loaded = self._documents[document] = load_document(self.journal, document)
            self._before[document] = loaded.statuses()
        return loaded

    def _tip(self, document: DocumentId) -> Tip:
        tip = self._tips.get(document)
        if tip is None:
            tip = self._tips[document] = self.journal.store.index.documents.tip(document)
        return tip

    def _take_in_external(
        self, documents: Sequence[DocumentId], on_external: OnExternal, expected: Sequence[ExternalChange]
    ) -> list[Unit]:
        """Record what stands on disk otherwise than recorded; return the units to be rejected with the decision."""
        changes = list["Change"]()
        seen = list[ExternalChange]()
        for document in documents:
            tip = self._tip(document)
            if not concerns_disk(self.journal, tip):
                continue
            found = file_at(self.journal.tree, tip.path)
            if found is not None:
                self._looked[tip.path] = found[1].stat
            if (None if found is None else found[0]) != tip.state:
                from objstore.review.edit_recorder import external_change, version_of

                change = external_change(
                    tip.path,
                    tip.document,
                    tip.state,
                    version_of(found, self.journal.tree, tip.path),
                    self.batch.text,
                )
                changes += [] if change is None else [change]
                seen.append(external_view(tip, found))
        if expected and set(expected) != set(seen):
            raise FileChanged(min(change.path for change in set(expected) ^ set(seen)))
        if not changes:
            return []
        self._external = [view.edit for view in self._recording().external(changes)]
        discarded: list[Unit] = []
        for edit in self._external:
            self._lineages[edit.seq] = edit.document
            loaded = self._document(edit.document)
            loaded.add(edit, None if edit.after is None else self.batch.text(edit.after.blob))
            self._tips[edit.document] = Tip(edit.document, edit.path, edit.after)
            if on_external is OnExternal.DISCARD:
                discarded += loaded.units(edit.seq)
        return discarded

    def _settle(self, loaded: Document, named: Mapping[Unit, Status], *, is_new: bool) -> _WithoutMarkers:
        """Take the markers out of a document that verdicts are about, and return what that leaves of the decision.

        Before anything else: what the decision makes of the text is not to be told from the markers.
        """
        look = markers_removed_by if is_new else markers_removed_by_step_back
        gone, back = look(self.journal, loaded.id, named)
        wrote = [unit for seq in gone for unit in loaded.units(seq)]
        rejected = dict.fromkeys((unit for unit in wrote if unit not in named), Status.REJECTED)
        resolved = loaded.amendments(rejected)
        back = {unit: status for unit, status in back.items() if loaded.knows(unit)}
        loaded.set_statuses(back | rejected | dict.fromkeys(resolved, Status.REJECTED))
        # What amended an edit before the decision that is taken back stood as it does now, with that edit or without.
        amendments = loaded.amendments(named, self.before)
        return _WithoutMarkers(
            verdicts={**named, **dict.fromkeys(amendments, Status.REJECTED)},
            unmarked=gone,
            returned=[*wrote, *back],
            amendments=[*resolved, *amendments],
        )

    def _doubt(self, loaded: Document, before: bytes) -> Conflict | None:
        """Return why the text of a document is in doubt (None: it isn't). `before`: its statuses before the decision.

        It is where plain replay of the live edits is clean and gives another text. Then the newest edit that was
        recorded by comparison is named without which that is not so, or else the newest of them all.
        """
        flipped = [
            unit
            for unit, status in loaded.changed_since(before).items()
            if loaded.was_live(unit, before) is (status is Status.REJECTED)
        ]
        compared = self._otherwise(loaded) if flipped else ()
        if not compared:
            return None
        statuses, named = loaded.statuses(), compared[-1]
        loaded.restore_statuses(before)
        was_in_doubt = bool(self._otherwise(loaded))
        loaded.restore_statuses(statuses)
        if was_in_doubt:
            return None  # an earlier decision wrote what replay contradicts; this one does not
        for seq in reversed(compared):
            loaded.set_statuses(dict.fromkeys(self._live_units(loaded, seq), Status.REJECTED))
            is_way_out = not loaded.conflicts() and not self._otherwise(loaded)
            loaded.restore_statuses(statuses)
            if is_way_out:
                named = seq
                break
        unit = self._live_units(loaded, named)[-1]
        about = sorted(other for other in flipped if other.seq != named)
        return loaded.doubt(unit, tuple([other for other in about if other.hunk] or about))

    def _otherwise(self, loaded: Document) -> tuple[Seq, ...]:
        """Return the live edits in question where plain replay of a document gives another text (none: no doubt)."""
        external = [edit for edit in self._external if edit.document == loaded.id]
        opinion = merge_replay(self.journal.store, loaded, external, self.batch.text)
        text = loaded.text()
        # How the last line ends has rules of its own, which no merge of lines knows.
        is_same = opinion is None or (text is not None and closed(opinion.text) == closed(text))
        return () if opinion is None or is_same else opinion.suspect_edits()

    @staticmethod
    def _live_units(loaded: Document, seq: Seq) -> list[Unit]:
        return [unit for unit in loaded.units(seq) if not loaded.is_rejected(unit)]

    def _reject_with_dependents(self, loaded: Document, doubt: Conflict) -> list[Unit]:
        """Reject the edit that a doubt is about, and what can't stand without it; return what was rejected."""
        units = self._live_units(loaded, doubt.unit.seq)
        return [*units, *loaded.set_with_dependents(dict.fromkeys(units, Status.REJECTED))]

    def _taken_paths(self, documents: Sequence[DocumentId], decided: Collection[Unit]) -> list[Conflict]:
        """Return a conflict for each document that now stands where another file does, or a folder for one.

        `decided`: what the decision is about. Of the two, what it says nothing of is in the way.
        """
        standing: dict[bytes, DocumentId] = {}
        inside: dict[bytes, list[DocumentId]] = {}  # by folder
        chosen = set(documents)
        found = []
        for document in documents:
            now_is = self._document(document).standing()
            if now_is.content is None:
                continue
            folders = folders_of(now_is.path)
            in_the_way = self.journal.store.index.documents.tips_in_the_way(now_is.path, folders)
            others = [tip.document for tip in in_the_way if tip.document not in chosen]
            others += [standing[path] for path in (*folders, now_is.path) if path in standing]
            others += inside.get(now_is.path, [])
            standing[now_is.path] = document
            for folder in folders:
                inside.setdefault(folder, []).append(document)
            found += [self._taken(document, other, decided) for other in others]
        return found

    def _taken(self, document: DocumentId, other: DocumentId, decided: Collection[Unit]) -> Conflict:
        gone = self._rejected_unit_restoring_path(document, decided)
        if gone is None:
            gone = self._rejected_unit_restoring_path(other, decided)
            # What is back is told of, and what stands there is in its way, whichever was named first.
            document, other = (document, other) if gone is None else (other, document)
        loaded = self._document(document)
        unit = loaded.path_writer() or gone or Unit(Seq(document), 0)
        needs = self._document(other).path_writer() or Unit(Seq(other), 0)
        if needs in decided and unit not in decided:
            unit, needs = needs, unit
        return Conflict(
            kind=ConflictKind.PATH_TAKEN,
            unit=unit,
            needs=(needs,),
            path=os.fsdecode(loaded.standing().path),
            line=0,
            removed=b"",
            inserted=b"",
            is_without=unit == gone,
        )

    def _rejected_unit_restoring_path(self, document: DocumentId, decided: Collection[Unit]) -> Unit | None:
        """Return without which of what is decided a file is back where it stood from the beginning.

        None: it is not, for a live edit put it where it is, or nothing of it is decided.
        """
        loaded = self._document(document)
        if loaded.path_writer() is not None:
            return None
        return min((unit for unit in decided if not unit.hunk and loaded.is_rejected(unit)), default=None)

    def _refused(
        self,
        conflicts: Iterable[Conflict],
        before: Mapping[DocumentId, bytes],
        given: Mapping[DocumentId, Mapping[Unit, Status]],
        *,
        is_new: bool,
    ) -> Conflicted:
        """Return the conflicts with their lines counted in the text as it stands, and what else would have to go."""
        accept_first, reject_first = self._advice(conflicts, before, given, is_new=is_new)
        doubted = (conflict.unit for conflict in conflicts if conflict.kind is ConflictKind.IN_DOUBT)
        reject_first += [other for unit in doubted for other in self._live_units(self._owner(unit), unit.seq)]
        for document, statuses in before.items():
            self._document(document).restore_statuses(statuses)
        return Conflicted(
            conflicts=tuple([self._as_it_stands(conflict) for conflict in conflicts]),
            accept_first=tuple(sorted(accept_first)),
            reject_first=tuple(sorted(reject_first)),
            outside=tuple(edit.seq for edit in self._external),
        )

    def _advice(
        self,
        conflicts: Iterable[Conflict],
        before: Mapping[DocumentId, bytes],
        given: Mapping[DocumentId, Mapping[Unit, Status]],
        *,
        is_new: bool,
    ) -> tuple[list[Unit], list[Unit]]:
        """Return what would have to be accepted with the decision, and what rejected (nothing, where nothing helps).

        Where something is to be live, what is to be rejected comes before it, so that has to do alone. Both are tried.
        """
        statuses, wanted = dict(before), {document: dict(share) for document, share in given.items()}
        room: dict[DocumentId, dict[Unit, Status]] = {}
        taken = [conflict for conflict in conflicts if conflict.kind is ConflictKind.PATH_TAKEN]
        for unit in (unit for conflict in taken for unit in conflict.needs):
            document = self._lineage(unit)
            if document is None:  # whose it was has expired
                return [], []
            if unit not in wanted.setdefault(document, {}):
                statuses.setdefault(document, self._document(document).statuses())
                room.setdefault(document, {})[unit] = wanted[document][unit] = Status.REJECTED
        is_apart = any(status is not Status.REJECTED for share in given.values() for status in share.values())
        for document, now_is in statuses.items():
            share, alone = wanted.setdefault(document, {}), room.setdefault(document, {})
            if not self._complete(self._document(document), now_is, share, alone, is_apart=is_apart, is_new=is_new):
                return [], []
        tries = [wanted, room] if is_apart else [wanted]
        if not all(self._is_possible(statuses, shares, is_new=is_new) for shares in tries):
            return [], []
        more = {unit: is_ for document in statuses for unit, is_ in wanted[document].items()}
        live = {unit for unit, status in more.items() if status is not Status.REJECTED}
        return [*live.difference(*given.values())], [unit for document in statuses for unit in room[document]]

    def _complete(
        self,
        loaded: Document,
        statuses: bytes,
        wanted: dict[Unit, Status],
        room: dict[Unit, Status],
        *,
        is_apart: bool,
        is_new: bool,
    ) -> bool:
        """Add to `wanted` what else it takes, and what of it is rejected to `room`; return whether anything helps.

        `is_apart`: whether `room` is to be rejected alone.
        """
        while True:
            more = self._ways_out(loaded, statuses, wanted, is_new=is_new)
            if more is None:
                return False
            wanted |= more
            room |= {unit: status for unit, status in more.items() if status is Status.REJECTED}
            more = self._ways_out(loaded, statuses, room, is_new=is_new) if is_apart and room else {}
            if more is None:
                return False
            room |= more
            left = {unit: status for unit, status in more.items() if unit not in wanted}
            wanted |= left
            if not left:
                return True

    def _lineage(self, unit: Unit) -> DocumentId | None:
        """Return the document of a unit that is in the way (None: its edit has expired)."""
        document = self._lineages.get(unit.seq) or self.journal.store.index.edits.document_of(unit.seq)
        return document if document is not None and self._document(document).knows(unit) else None

    def _is_possible(
        self,
        statuses: Mapping[DocumentId, bytes],
        shares: Mapping[DocumentId, Mapping[Unit, Status]],
        *,
        is_new: bool,
    ) -> bool:
        """Return whether these verdicts would be carried out as things were at the time of `statuses`."""
        for document, before in statuses.items():
            loaded = self._document(document)
            loaded.restore_statuses(before)
            if shares.get(document):
                loaded.set_statuses(self._settle(loaded, shares[document], is_new=is_new).verdicts)
        found = any(self._document(name).conflicts() for name in statuses) or self._taken_paths(list(statuses), ())
        for document, before in statuses.items():
            self._document(document).restore_statuses(before)
        return not found

    def _ways_out(
        self, loaded: Document, statuses: bytes, given: Mapping[Unit, Status], *, is_new: bool
    ) -> dict[Unit, Status] | None:
        """Return what else would have to be decided, and how, where `statuses` is what is so (None: nothing helps)."""
        besides: dict[Unit, Status] = {}
        while True:
            loaded.restore_statuses(statuses)
            settled = self._settle(loaded, {**given, **besides}, is_new=is_new)
            ways = loaded.preview_cascade(settled.verdicts)
            if ways.blocked and not ways.accept_first:
                return None
            besides |= dict.fromkeys(loaded.named(ways.accept_first), Status.ACCEPTED)
            besides |= dict.fromkeys(loaded.named(ways.rejected), Status.REJECTED)
            # Whoever names these, too, decides anew on the markers that they are about.
            if not is_new or markers_removed_by(self.journal, loaded.id, {**given, **besides})[0] == settled.unmarked:
                return besides

    def _as_it_stands(self, conflict: Conflict) -> Conflict:
        line = conflict.line
        if line:  # what is about a path alone may name an edit that has expired, which no document knows
            line = self._owner(conflict.unit).line(conflict.unit)
        named = {conflict.unit.seq, *(unit.seq for unit in conflict.needs)}
        return replace(conflict, line=line, outside=tuple(edit.seq for edit in self._external if edit.seq in named))

    def _owner(self, unit: Unit) -> Document:
        return next(document for document in self._documents.values() if document.knows(unit))

    def _notices(self, changes: Mapping[DocumentId, Iterable[Unit]]) -> Iterable[Notice]:
        for document, changed in changes.items():
            loaded = self._document(document)
            # Markers stand beside what they mark, and that is no news.
            wrote = {row.seq for row in self.journal.store.index.edits.with_markers(loaded.id)}
            decided = (unit for unit in changed if unit.seq not in wrote)
            for notice in loaded.notices(decided):
                beside = tuple(unit for unit in notice.beside if unit.seq not in wrote)
                if beside:
                    yield replace(notice, beside=beside)

    def _written(self, documents: Iterable[DocumentId]) -> Iterable[WrittenFile]:
        for document in documents:
            tip = self._tip(document)
            stands = self._document(document).standing()
            after: FileState | None = None
            if stands.content is not None:
                if len(stands.content) > MAX_BLOB:  # no weave could take it up again
                    raise FileTooLarge(os.fsdecode(stands.path), len(stands.content), MAX_BLOB)
                base = None if tip.state is None else tip.state.blob
                after = FileState(blob=self.batch.state(stands.content, base), mode=stands.mode)
            if after == tip.state and (after is None or stands.path == tip.path):
                continue
            yield WrittenFile(
                document=document,
                path_before=None if tip.state is None else tip.path,
                before=tip.state,
                path_after=None if after is None else stands.path,
                after=after,
            )


def _effect(written: WrittenFile) -> FileEffect:
    return FileEffect(
        document=written.document,
        path_before=None if written.path_before is None else os.fsdecode(written.path_before),
        before=None if written.before is None else written.before.blob,
        mode_before=0 if written.before is None else written.before.mode,
        path_after=None if written.path_after is None else os.fsdecode(written.path_after),
        after=None if written.after is None else written.after.blob,
        mode_after=0 if written.after is None else written.after.mode,
    )
