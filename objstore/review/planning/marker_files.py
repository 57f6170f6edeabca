"""Write conflict markers into the files of a decision that would otherwise be refused.

At the reviewer's request such a decision is made all the same: the hunks that conflict with it are set aside, which
means rejected, and an edit of its own writes both versions into the text. So the journal has just a decision and an
edit, and the text remains a function of the live edits. The marker edit names its decision. A new decision on any of
the same units first restores the earlier state: the markers go, and what was set aside gets its old status back.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from objstore.history.documents.marked_text import recorded_edit
from objstore.model.basic_types import LINK_MODE, DocumentId, FileState, Operation, Origin, Seq, Status, Unit
from objstore.model.large_file_placeholder import MAX_BLOB
from objstore.model.records import Decision, Edit, Marks, WrittenFile
from objstore.model.results import MarkersWritten
from objstore.review.calls.edit_recorder import Change, Recorder, Version
from objstore.text.forms import expressed, is_binary
from objstore.values.fastclass import replace, variable
from objstore.weave.conflict_markers import Labels

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from objstore.storage.store.write_batch import Batch
    from objstore.storage.transaction.journal import Journal
    from objstore.text.hunks import Hunk
    from objstore.weave.document import Document

__all__ = ["FileWithMarkers", "MarkerWriter"]

_LABEL: Final = 120
"""Characters of a label; a conversation's name can have any length."""

_TOOL: Final = "markers"


@variable
class FileWithMarkers:
    """A file that gets conflict markers."""

    document: DocumentId
    path: bytes
    before: FileState  # without the markers
    content: bytes
    after: FileState
    hunks: tuple[Hunk, ...]
    regions: int
    against: tuple[Unit, ...]
    aside: Mapping[Unit, Status]  # units set aside, with their status before

    def report(self, seq: int) -> MarkersWritten:
        """Return the result for callers. `seq`: the edit that wrote the markers, 0 in a dry run."""
        return MarkersWritten(edit=Seq(seq), path=os.fsdecode(self.path), regions=self.regions, aside=tuple(self.aside))


class MarkerWriter:
    """The conflict markers that one decision writes."""

    def __init__(self, journal: Journal, batch: Batch, external: Iterable[Edit]) -> None:
        """Begin with no files. `external`: edits that are in the batch already, and not in the index."""
        self._journal = journal
        self._batch = batch
        self._external = {edit.seq: edit for edit in external}
        self.files: list[FileWithMarkers] = []

    def set_statuses(self, loaded: Document, verdicts: Mapping[Unit, Status]) -> tuple[Unit, ...]:
        """Set the statuses in a document, with markers where they conflict; return the units that are set aside.

        If markers can't solve the conflict, the document is left in conflict.
        """
        was = loaded.version()
        lines = loaded.lines_text()
        if lines is None or was.mode == LINK_MODE or is_binary(lines):
            loaded.set_statuses(verdicts)
            return ()
        statuses = loaded.statuses()
        against: set[Unit] = set()

        def labelled(decided: Mapping[Unit, Status], aside: Collection[Unit]) -> Labels:
            against.update(decided)
            return self._labels(decided, aside)

        done = loaded.set_with_markers(verdicts, labelled)
        if done is None:
            return ()
        text, aside = done
        now = loaded.version()
        content = None if is_binary(text.content) else expressed(text.content, now.form)
        if now.content is None or content is None or max(len(now.content), len(content)) > MAX_BLOB:
            loaded.restore_statuses(statuses)
            loaded.set_statuses(verdicts)
            return ()
        before = FileState(blob=self._batch.blob(now.content), mode=now.mode)
        after = FileState(blob=self._batch.blob(content, before.blob), mode=now.mode)
        self.files.append(
            FileWithMarkers(
                document=loaded.id,
                path=now.path,
                before=before,
                content=content,
                after=after,
                hunks=text.hunks,
                regions=text.regions,
                against=tuple(sorted(against)),
                aside=aside,
            )
        )
        return tuple(aside)

    def add_to(self, written: Iterable[WrittenFile]) -> tuple[WrittenFile, ...]:
        """Return the files that a decision writes, with the markers in them."""
        marked = {file.document: file for file in self.files}
        found = []
        for each in written:
            file = marked.pop(each.document, None)
            found.append(each if file is None else replace(each, after=file.after))
        found += [
            WrittenFile(
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
        """Record an edit for each file, after the decision."""
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
        """Return the labels of the markers around one conflict between these units."""
        rejected = [unit for unit, status in decided.items() if not status.is_live]
        live = [unit for unit, status in decided.items() if status.is_live]
        ours = [*(["without " + self._named(rejected)] if rejected else []), *([self._named(live)] if live else [])]
        return Labels(
            ours=_label(" and ".join(ours) or "as decided"),
            base=_label(self._named(rejected) if rejected else "without both"),
            theirs=_label(self._named(aside) or "as it was"),
        )

    def _named(self, units: Collection[Unit]) -> str:
        """Return a text that names the edits or hunks, each with its conversation."""
        by_edit: dict[Seq, list[int]] = {}
        for unit in sorted(units):
            by_edit.setdefault(unit.seq, []).append(unit.hunk)
        names = []
        for seq, hunks in by_edit.items():
            edit = self._edit(seq)
            is_whole = len(set(hunks) - {0}) == len(edit.hunks)
            name = f"edit {seq}" if is_whole else "hunk " + " ".join(f"{seq}:{hunk}" for hunk in hunks)
            names.append(f"{name} ({edit.conversation})")
        return ", ".join(names)

    def _edit(self, seq: Seq) -> Edit:
        return self._external.get(seq) or recorded_edit(self._journal, seq)


def _label(text: str) -> bytes:
    """Return a label as one line of printable characters, not too long."""
    shown = "".join(letter if letter.isprintable() else "?" for letter in text)
    if len(shown) > _LABEL:
        shown = shown[: _LABEL - 3] + "..."
    return shown.encode(errors="replace")
