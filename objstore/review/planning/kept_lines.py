"""Keep what others wrote in a file whose creation is rejected.

Rejecting a creation removes the file, and with it the accepted lines that others added. At the reviewer's request
these lines stay: the hunks that depend on the creation are rejected with it, and an edit of the reviewer's own creates
the file again, with their lines alone. So the journal has just a decision and an edit, and the text remains a function
of the live edits. The edit notes the number of its decision, and an undo of the decision takes it out.
"""

from __future__ import annotations

import os
from itertools import islice
from typing import TYPE_CHECKING, Final

from objstore.model.basic_types import LINK_MODE, DocumentId, FileState, Operation, Origin, Seq, Status, Unit
from objstore.model.results import LinesKept
from objstore.review.calls.edit_recorder import Change, Version, new_conversation
from objstore.text.forms import expressed, is_binary, shown_lines
from objstore.text.lines import split_lines
from objstore.values.errors import FileExists
from objstore.values.fastclass import replace, variable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from objstore.model.records import Decision, WrittenFile
    from objstore.review.calls.edit_recorder import Recorder
    from objstore.storage.store.write_batch import Batch
    from objstore.storage.transaction.journal import Journal
    from objstore.weave.document import Document

__all__ = ["LineKeeper"]

_TOOL: Final = "keep-lines"
_DECISION: Final = "decision"
"""The note that holds the number of the decision, as in the edits of an exact rewind."""


@variable
class _KeptFile:
    """A file that stays, with the lines of others."""

    document: DocumentId
    path: bytes
    content: bytes
    state: FileState
    units: tuple[Unit, ...]  # hunks that inserted the lines

    def report(self, seq: int) -> LinesKept:
        lines = len(split_lines(shown_lines(self.content)))
        return LinesKept(edit=Seq(seq), path=os.fsdecode(self.path), lines=lines, units=self.units)


class LineKeeper:
    """The files that one decision keeps for the lines of others in them."""

    def __init__(self, journal: Journal, batch: Batch, origin: Callable[[Seq], Origin]) -> None:
        """Begin with no files. `origin`: returns the origin of an edit, which may be in the batch only."""
        self._journal: Final = journal
        self._batch: Final = batch
        self._origin: Final = origin
        self.files: list[_KeptFile] = []

    def set_statuses(self, loaded: Document, verdicts: Mapping[Unit, Status]) -> tuple[Unit, ...]:
        """Set the statuses in a document; return what is rejected besides, because its lines are kept by an edit.

        If the file would not be removed, or lines that depend on the rejected ones are still to be decided on, nothing
        is kept: then the document may be left in conflict.
        """
        was, statuses, blame = loaded.version(), loaded.statuses(), loaded.blame()
        undecided = set(loaded.pending())
        lines = loaded.lines_text()
        if lines is None or was.mode == LINK_MODE or is_binary(lines) or loaded.is_large:
            loaded.set_statuses(verdicts)
            return ()
        gone = loaded.set_with_dependents(verdicts)
        units = {unit for unit in gone if self._origin(unit.seq) is not Origin.FORMATTER}
        kept_text = _lines_of(lines, blame, units)
        content = expressed(kept_text, was.form) if kept_text else None
        if loaded.text() is not None or content is None or not units.isdisjoint(undecided):
            loaded.restore_statuses(statuses)
            loaded.set_statuses(verdicts)
            return ()
        state = FileState(blob=self._batch.blob(content), mode=was.mode)
        kept = tuple(sorted({unit for unit, _ in blame if unit in units}))
        self.files.append(
            _KeptFile(document=loaded.id, path=was.path, content=content, state=state, units=kept),
        )
        return gone

    def add_to(self, written: Iterable[WrittenFile]) -> tuple[WrittenFile, ...]:
        """Return the files that a decision writes, with those that stay. Raises FileExists if another takes a path."""
        kept = {file.document: file for file in self.files}
        found = []
        for each in written:
            file = kept.get(each.document)
            found.append(each if file is None else replace(each, path_after=file.path, after=file.state))
        paths = {file.path for file in self.files}
        for each in found:
            if each.document not in kept and each.path_after in paths:
                raise FileExists(os.fsdecode(each.path_after))
        return tuple(found)

    def record(self, recorder: Recorder, decision: Decision, who: str) -> tuple[LinesKept, ...]:
        """Record an edit for each file, after the decision."""
        reports = []
        for file in self.files:
            conversation = new_conversation()
            view = recorder.record(
                Change(
                    document=file.document,
                    operation=Operation.CREATE,
                    path=file.path,
                    source=None,
                    before=None,
                    after=Version(content=file.content, state=file.state),
                    hunks=None,
                    origin=Origin.PERSON,
                ),
                document=file.document,
                conversation=conversation,
                call=self._journal.store.next_call(conversation),
                ordinal=0,
                tool=_TOOL,
                notes={_DECISION: str(decision.number)} | ({"who": who} if who else {}),
            )
            reports.append(file.report(view.seq))
        return tuple(reports)


def _lines_of(content: bytes, blame: Sequence[tuple[Unit | None, int]], units: Collection[Unit]) -> bytes:
    """Return the lines of a text that the units inserted. `blame`: who inserted its lines, from the top."""
    lines = iter(split_lines(content))
    return b"".join(line for unit, count in blame for line in islice(lines, count) if unit in units)
