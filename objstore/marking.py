"""Marking: conflict markers in files, from the decision that wrote them to the one that takes them out again.

A decision that would be refused can be taken all the same: what can't stand with it is set aside, which is to say
rejected, and an edit of its own, on the reviewer's word, puts both side by side into the text. So the journal holds
nothing but a decision and an edit, and the text stays a function of what is live. The edit says which decision it
belongs to. Whoever decides anew on anything of that decision takes it up where it was: the markers go, and what was
set aside has its old status again.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from objstore.errors import BlobDamaged, BlobMissing, NoSuchName, PathError
from objstore.markers import Labels, labels_in, regions_in
from objstore.ondisk import file_at
from objstore.outcomes import MarkersWritten
from objstore.records import Decision, Edit, Marks, Written
from objstore.standins import MAX_BLOB
from objstore.terms import DocumentId, FileState, Operation, Origin, Seq, Status, Unit
from objstore.unified import is_binary
from objstore.values import replace, variable
from objstore.views import StandingMarkers

# A decision that finds nothing on disk and marks nothing records no edit.
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from objstore.batch import Batch
    from objstore.changes import Recorder
    from objstore.document import Document
    from objstore.hunks import Hunk
    from objstore.indexrows import EditRow
    from objstore.journal import Journal
    from objstore.store import Store

__all__ = ["MarkedFile", "Marker", "put_back", "resolved", "set_aside", "still_there", "taken_up", "written_by"]

_LABEL: Final = 120
"""Characters of a label; the name of a conversation can be of any length."""

_TOOL: Final = "markers"


@variable
class MarkedFile:
    """A file that gets markers."""

    document: DocumentId
    path: bytes
    before: FileState  # without the markers
    content: bytes
    after: FileState
    hunks: tuple[Hunk, ...]
    regions: int
    against: tuple[Unit, ...]
    aside: Mapping[Unit, Status]  # with what they were before

    def report(self, seq: int) -> MarkersWritten:
        """Return what surfaces are told; `seq`: the edit that wrote the markers, 0 in a dry run."""
        return MarkersWritten(edit=Seq(seq), path=os.fsdecode(self.path), regions=self.regions, aside=tuple(self.aside))


class Marker:
    """Puts markers into the documents of one decision."""

    def __init__(self, journal: Journal, batch: Batch, found: Iterable[Edit]) -> None:
        """Begin with none. `found`: edits that the batch holds already, and the index does not."""
        self._journal = journal
        self._batch = batch
        self._found = {edit.seq: edit for edit in found}
        self.files: list[MarkedFile] = []

    def give(self, loaded: Document, verdicts: Mapping[Unit, Status]) -> tuple[Unit, ...]:
        """Give the verdicts with markers where they are in conflict; return what is set aside.

        Where markers can't help, the document is left in conflict.
        """
        was = loaded.standing()
        if was.content is None or is_binary(was.content):
            loaded.give(verdicts)
            return ()
        statuses = loaded.statuses()
        against: set[Unit] = set()

        def labelled(decided: Mapping[Unit, Status], aside: Collection[Unit]) -> Labels:
            against.update(decided)
            return self._labels(decided, aside)

        done = loaded.give_with_markers(verdicts, labelled)
        if done is None:
            return ()
        text, aside = done
        now = loaded.standing()
        if now.content is None or is_binary(text.content) or max(len(now.content), len(text.content)) > MAX_BLOB:
            loaded.give_back(statuses)
            loaded.give(verdicts)
            return ()
        before = FileState(blob=self._batch.blob(now.content), mode=now.mode)
        after = FileState(blob=self._batch.blob(text.content, before.blob), mode=now.mode)
        self.files.append(
            MarkedFile(
                document=loaded.id,
                path=now.path,
                before=before,
                content=text.content,
                after=after,
                hunks=text.hunks,
                regions=text.regions,
                against=tuple(sorted(against)),
                aside=aside,
            )
        )
        return tuple(aside)

    def over(self, written: Iterable[Written]) -> tuple[Written, ...]:
        """Return what a decision writes, markers included."""
        marked = {file.document: file for file in self.files}
        found = []
        for each in written:
            file = marked.pop(each.document, None)
            found.append(each if file is None else replace(each, after=file.after))
        found += [
            Written(
                document=file.document,
                path_before=file.path,
                before=file.before,
                path_after=file.path,
                after=file.after,
            )
            for file in marked.values()
        ]
        return tuple(found)

    def record(self, recorder: Recorder, decision: Decision, who: str) -> tuple[MarkersWritten, ...]:
        """Record an edit for each file, behind the decision."""
        from objstore.changes import Change, Version

        reports = []
        for file in self.files:
            conversation = self._edit(min(unit.seq for unit in file.aside)).conversation
            view = recorder.record(
                Change(
                    document=file.document,
                    operation=Operation.EDIT,
                    path=file.path,
                    source=None,
                    before=Version(content=self._batch.content(file.before.blob), state=file.before),
                    after=Version(content=file.content, state=file.after),
                    hunks=file.hunks,
                    origin=Origin.PERSON,
                    marks=Marks(
                        decision=decision.number, against=file.against, aside=tuple(sorted(file.aside.items()))
                    ),
                ),
                document=file.document,
                conversation=conversation,
                call=self._journal.store.next_call(conversation),
                ordinal=0,
                tool=_TOOL,
                notes={"who": who} if who else {},
            )
            reports.append(file.report(view.seq))
        return tuple(reports)

    def _labels(self, decided: Mapping[Unit, Status], aside: Collection[Unit]) -> Labels:
        """Return what the markers of a place say in which these units have a part."""
        gone = [unit for unit, status in decided.items() if status is Status.REJECTED]
        come = [unit for unit, status in decided.items() if status is not Status.REJECTED]
        ours = [*(["without " + self._named(gone)] if gone else []), *([self._named(come)] if come else [])]
        return Labels(
            ours=_label(" and ".join(ours) or "as decided"),
            base=_label(self._named(gone) if gone else "without both"),
            theirs=_label(self._named(aside) or "as it was"),
        )

    def _named(self, units: Collection[Unit]) -> str:
        """Return edits, or hunks of them, each with its conversation."""
        by_edit: dict[Seq, list[int]] = {}
        for unit in sorted(units):
            by_edit.setdefault(unit.seq, []).append(unit.hunk)
        said = []
        for seq, hunks in by_edit.items():
            edit = self._edit(seq)
            is_whole = len(set(hunks) - {0}) == len(edit.hunks)
            name = f"edit {seq}" if is_whole else "hunk " + " ".join(f"{seq}:{hunk}" for hunk in hunks)
            said.append(f"{name} ({edit.conversation})")
        return ", ".join(said)

    def _edit(self, seq: Seq) -> Edit:
        return self._found.get(seq) or _edit(self._journal, seq)


def taken_up(
    journal: Journal, document: DocumentId, verdicts: Collection[Unit]
) -> tuple[list[Seq], dict[Unit, Status]]:
    """Return which markers in the document go because of a decision on `verdicts`, and which statuses come back.

    What `verdicts` names itself does not come back.
    """
    gone: list[Seq] = []
    back: dict[Unit, Status] = {}
    for row in journal.store.index.markers(document):
        marks = _edit(journal, row.seq).marks
        if row.status is Status.REJECTED or marks is None:
            continue
        between = {*marks.against, *(unit for unit, _ in marks.aside)}
        if not between.isdisjoint(verdicts):
            gone.append(row.seq)
            back |= {unit: status for unit, status in marks.aside if unit not in verdicts}
    return gone, back


def set_aside(journal: Journal) -> set[Unit]:
    """Return what is set aside for markers that nobody has taken out: it is rejected, and not yet decided on."""
    found: set[Unit] = set()
    for row in journal.store.index.markers():
        marks = _edit(journal, row.seq).marks
        if row.status is not Status.REJECTED and marks is not None:
            found.update(unit for unit, _ in marks.aside)
    return found


def put_back(
    journal: Journal, document: DocumentId, verdicts: Mapping[Unit, Status]
) -> tuple[list[Seq], dict[Unit, Status]]:
    """Return the same for a step back: the markers that `verdicts` itself takes out; nothing else comes back."""
    gone: list[Seq] = []
    for row in journal.store.index.markers(document):
        left = [verdicts.get(Unit(row.seq, hunk), status) for hunk, status in enumerate(row.units)]
        if set(left) == {Status.REJECTED} and set(row.units) != {Status.REJECTED}:
            gone.append(row.seq)
    return gone, {}


def still_there(journal: Journal, row: EditRow) -> StandingMarkers | None:
    """Return the markers that an edit wrote, as far as they stand in its file (None: they are gone)."""
    edit = _edit(journal, row.seq)
    tip = journal.store.index.tip(edit.document)
    if edit.marks is None or edit.after is None or tip.state is None:
        return None
    try:
        found = file_at(journal.tree, tip.path)
        openings, closings = labels_in(journal.store.blob(edit.after.blob), edit.hunks)
    except (PathError, BlobMissing, BlobDamaged):
        return None  # a file that can't be read is reported as such, and what the store has lost by a check of it
    places = [] if found is None else regions_in(found[1].content, openings, closings)
    if not places:
        return None
    return StandingMarkers(
        edit=edit.seq,
        decision=edit.marks.decision,
        path=os.fsdecode(tip.path),
        lines=tuple(place.start + 1 for place in places),
        decided=edit.marks.against,
        aside=tuple(unit for unit, _ in edit.marks.aside),
    )


def resolved(store: Store, document: DocumentId, before: bytes, hunks: Collection[Hunk]) -> Seq | None:
    """Return the edit between whose markers all of a change lies (None: it changes something else, or no markers).

    `before` is the text that `hunks` changed.
    """
    for row in store.index.markers(document):
        edit, _ = store.record(row.place)
        if row.status is Status.REJECTED or not isinstance(edit, Edit) or edit.after is None:
            continue
        places = regions_in(before, *labels_in(store.blob(edit.after.blob), edit.hunks))
        if hunks and all(any(_lies_in(hunk, place) for place in places) for hunk in hunks):
            return edit.seq
    return None


def _lies_in(hunk: Hunk, place: range) -> bool:
    first = hunk.old_start if hunk.old_count else hunk.old_start - 1  # what is put in directly above is no part of it
    return place.start <= first and hunk.old_end <= place.stop and hunk.old_start < place.stop


def written_by(journal: Journal, decision: int) -> list[Unit]:
    """Return the units of the edits that wrote the markers of a decision, as far as they are live."""
    found = []
    for row in journal.store.index.markers():
        marks = _edit(journal, row.seq).marks
        if marks is not None and marks.decision == decision:
            found += [Unit(row.seq, hunk) for hunk, is_now in enumerate(row.units) if is_now is not Status.REJECTED]
    return found


def _edit(journal: Journal, seq: int) -> Edit:
    row = journal.store.index.edit(seq)
    if row is None:
        raise NoSuchName(str(seq), "edit")
    record, _ = journal.store.record(row.place)
    if not isinstance(record, Edit):
        raise NoSuchName(str(seq), "edit")
    return record


def _label(text: str) -> bytes:
    """Return a label as one line that shows what it says."""
    shown = "".join(letter if letter.isprintable() else "?" for letter in text)
    if len(shown) > _LABEL:
        shown = shown[: _LABEL - 3] + "..."
    return shown.encode(errors="replace")
