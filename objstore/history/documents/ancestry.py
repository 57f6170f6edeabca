"""Find the recorded steps that lead from one version of a file to its current version."""

from collections.abc import Callable

from objstore.model.basic_types import DocumentId, FileState
from objstore.model.ids import BlobId
from objstore.model.records import Decision, Edit
from objstore.storage.index.rows import Tip
from objstore.storage.transaction.journal import Journal
from objstore.text.diff import diff_lines
from objstore.text.rebase import TextStep, compared
from objstore.values.errors import BlobMissing

__all__ = ["steps_since"]

_MOST_STEPS = 1000
"""Recorded steps that are followed back; beyond that the two versions are compared."""


def steps_since(journal: Journal, tip: Tip | None, base: bytes, name: BlobId, now: bytes) -> list[TextStep]:
    """Return the steps from the version `base`, whose blob is `name`, to `now`.

    They are the journal's steps if the file, at `tip`, once had that version; otherwise one step, the difference. A
    change made since the file was last recorded is a step of its own.
    """
    if tip is not None and tip.state is not None:
        recorded = _recorded(journal, tip.document, tip.state.blob, name)
        if recorded is not None:
            latest = recorded[-1].after if recorded else base
            return [*recorded, *compared(latest, now)]
    return list(compared(base, now))


def _recorded(journal: Journal, document: DocumentId, newest: BlobId, base: BlobId) -> list[TextStep] | None:
    """Return the steps from one state of a document to its newest; None if the journal has no such chain."""
    steps: list[Edit | Decision] = []
    wanted = newest
    places = journal.store.index.history.of(document)
    while wanted != base:
        if not places or len(steps) == _MOST_STEPS:
            return None
        record, _ = journal.store.record(places.pop())
        if not isinstance(record, Edit | Decision):
            continue
        states = _states(record, document)
        if states is None:
            continue  # a decision that changed statuses but not the file
        before, after = states
        if before is None or after is None or after.blob != wanted:
            return None
        steps.append(record)
        wanted = before.blob
    try:
        return [_text_step(step, document, journal.store.text) for step in reversed(steps)]
    except BlobMissing:
        return None  # expired states can't be followed


def _states(record: Edit | Decision, document: DocumentId) -> tuple[FileState | None, FileState | None] | None:
    """Return a file's states before and after a record; None if the record did not change it."""
    if isinstance(record, Edit):
        return record.before, record.after
    return next(((file.before, file.after) for file in record.changed_files if file.document == document), None)


def _text_step(step: Edit | Decision, document: DocumentId, text: Callable[[BlobId], bytes]) -> TextStep:
    before, after = _states(step, document) or (None, None)
    if before is None or after is None:
        raise AssertionError("a step leads from one version to another")
    content = text(after.blob)
    if not isinstance(step, Edit) or any(step.forms):  # hunks of other forms don't count the lines of the bytes
        return TextStep(hunks=diff_lines(text(before.blob), content), after=content, compared=True)
    return TextStep(hunks=step.hunks, after=content, compared=not step.is_meant)
