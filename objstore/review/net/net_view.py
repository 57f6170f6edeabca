"""Show what awaits review as net changes: how each file's accepted text differs from its current text."""

from __future__ import annotations

import os
from itertools import repeat
from typing import TYPE_CHECKING

from objstore.disk.fs.file_state import file_at
from objstore.history.documents.loader import load_document
from objstore.model.basic_types import Operation
from objstore.model.large_file_placeholder import blob_of_placeholder, is_placeholder
from objstore.model.net_file import ChangeKind, ChangesAtLine, NetChange, NetFile
from objstore.review.net.net_selection import pending_documents, selected, shared_units
from objstore.review.status import external_changes
from objstore.text.diff import diff_lines
from objstore.text.forms import shown_lines
from objstore.text.lines import split_lines
from objstore.values.errors import StoreError
from objstore.values.request_errors import NoChangeAtLine
from objstore.weave.accepted_text import net_document

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from objstore.model.basic_types import DocumentId, Seq, Unit
    from objstore.storage.transaction.journal import Journal
    from objstore.weave.accepted_text import DocumentChange

__all__ = ["changes_at", "net_file", "net_files"]

_OPERATIONS = {
    ChangeKind.CREATE: Operation.CREATE,
    ChangeKind.DELETE: Operation.DELETE,
    ChangeKind.MOVE: Operation.MOVE,
}


def net_files(
    journal: Journal,
    paths: Collection[str] = (),
    units: Collection[Unit] | None = None,
    unreadable: Callable[[StoreError], object] | None = None,
) -> list[NetFile]:
    """Return the files with pending units, by path, each with its net changes.

    `paths`: only files at or below these, now or in their accepted state; (): all. `units`: only changes that have any
    of these, and those that are decided with them; None: all. `unreadable`: called with why a file is left out; None:
    the error is raised, which is HistoryBroken or what Store.text raises.
    """
    unrecorded = {change.document for change in external_changes(journal)}
    found: list[NetFile] = []
    with journal.reading() as store:
        pending = list(pending_documents(store, paths, units))
        for done, position in enumerate(pending):
            journal.progress("documents", done, len(pending))
            try:
                is_unrecorded = position.document in unrecorded
                found.append(net_file(journal, position.document, is_unrecorded=is_unrecorded))
            except StoreError as error:
                if unreadable is None:
                    raise
                unreadable(error)
    return selected(found, paths, units)


def changes_at(journal: Journal, path: str, first: int, last: int) -> ChangesAtLine:
    """Return the changes at lines `first` to `last`, from 1, of the file on disk at a path.

    A change that only removes lines is at the line above the gap and at the one below. Lines that changed since the
    file was recorded are in no change. Raises NoChangeAtLine if there is none, and what `net_files` raises.
    """
    files = [file for file in net_files(journal, [path]) if file.path == path]
    file = min(files, key=lambda file: file.after is None, default=None)  # rather the file that exists
    if file is None:
        raise NoChangeAtLine(path, first, "is in no pending change: nothing is pending in this file")
    if file.after is None:
        found = [change for change in file.changes if change.kind is ChangeKind.DELETE]
    elif file.is_binary:
        raise NoChangeAtLine(path, first, "is in no change of lines: the file is binary or too large")
    else:
        lines = range(1, len(split_lines(file.after)) + 1)
        now = _recorded_lines(journal, file, file.after) if file.is_unrecorded else lines or (1,)
        if not 1 <= first <= len(now):
            raise NoChangeAtLine(path, first, f"is no line of the file, which has {len(lines and now)}")
        wanted = set(now[first - 1 : last]) - {0}
        if not wanted:
            raise NoChangeAtLine(path, first, "changed outside and is not recorded yet")
        found = [change for change in file.changes if not wanted.isdisjoint(_places(change))]
        if not found:
            changed = {line for change in file.changes for line in _places(change)}
            near = [line for line, recorded in enumerate(now, 1) if recorded in changed]
            raise NoChangeAtLine(
                path, first, "is in no pending change", sorted(near, key=lambda line: abs(line - first))
            )
    others = {at for change in found for at in change.shares_with}
    together = tuple(file.changes[at] for at in sorted(others) if file.changes[at] not in found)
    return ChangesAtLine(file=file, changes=tuple(found), together=together)


def _recorded_lines(journal: Journal, file: NetFile, recorded: bytes) -> list[int]:
    """Return for each line of the file on disk its number in the recorded text, from 1; 0: it is not recorded."""
    found = file_at(journal.tree, os.fsencode(file.path))
    content = b"" if found is None else shown_lines(found[1].content)
    lines: list[int] = []
    at = 0
    for hunk in diff_lines(recorded, content):
        lines += range(at + 1, hunk.old_start + 1)
        lines += [0] * hunk.new_count
        at = hunk.old_end
    return [*lines, *range(at + 1, len(split_lines(recorded)) + 1)]


def _places(change: NetChange) -> range:
    """Return the lines of the current text, from 1, at which a change is."""
    start = change.line_after
    return range(start, start + change.inserted_lines) if change.inserted or not start else range(start - 1, start + 1)


def net_file(journal: Journal, document: DocumentId, *, is_unrecorded: bool) -> NetFile:
    """Return the net changes of a document. Raises HistoryBroken and what Store.text raises."""
    net = net_document(load_document(journal, document))
    before, after = net.accepted, net.current
    path = os.fsdecode(after.path)
    kinds = [change.kind for change in net.changes]
    shared = shared_units([tuple(change.units) for change in net.changes])
    turns = journal.store.index.turns.of_document(document)
    return NetFile(
        path=path,
        path_before=os.fsdecode(before.path),
        document=document,
        operation=next((_OPERATIONS[kind] for kind in kinds if kind in _OPERATIONS), Operation.EDIT),
        mode_before=0 if before.content is None else before.mode,
        mode=0 if after.content is None else after.mode,
        before=net.lines_before,
        after=net.lines_after,
        changes=tuple(map(_net_change, net.changes, shared, repeat(path), repeat(document), repeat(turns))),
        cancelled=net.cancelled,
        taken_out=net.taken_out,
        kept_on=net.kept_on,
        is_binary=net.is_binary,
        size_before=_size(journal, before.content),
        size=_size(journal, after.content),
        is_unrecorded=is_unrecorded,
        forms=(before.form, after.form),
    )


def _net_change(
    change: DocumentChange, shares_with: tuple[int, ...], path: str, document: DocumentId, turns: dict[Seq, int]
) -> NetChange:
    return NetChange(
        path=path,
        document=document,
        kind=change.kind,
        line_before=0 if change.hunk is None else change.hunk.old_start + 1,
        line_after=0 if change.hunk is None else change.hunk.new_start + 1,
        removed=change.removed,
        inserted=change.inserted,
        units=tuple(sorted(change.units)),
        shares_with=shares_with,
        turns=tuple(sorted({turns[unit.seq] for unit in change.units if unit.seq in turns})),
        writers=change.writers,
        earlier=change.earlier,
    )


def _size(journal: Journal, text: bytes | None) -> int:
    if text is None:
        return 0
    return journal.store.size(blob_of_placeholder(text)) if is_placeholder(text) else len(text)
