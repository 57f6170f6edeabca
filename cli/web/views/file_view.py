"""Compute the view of one file: its changes, and rows of its diff."""

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from cli.render.comments import comments_by_change, waiting_by_change
from cli.render.edits import awaited_words
from cli.screen.terminal import shown_name
from cli.selection.elsewhere import decided_by, verdict_of
from cli.web.diff_rows.net_rows import CONTEXT, DiffRows, is_whitespace_only
from cli.web.request_fields import NotThere
from cli.web.server_state import ServerState, ShownChange
from cli.web.shapes import at_path, file_shape, shown as escaped
from cli.web.views.change_authors import FileAuthors, rejection_of, rejection_shape
from objstore import (
    DocumentId,
    NoSuchName,
    PathError,
    Selection,
    TextForm,
    blob_id,
    change_shape,
    change_words,
    comment_shape,
    encoded,
    is_placeholder,
    net_file_facts,
    value,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from objstore import NetChange, NetFile, RemoteVerdict, Status, StoreError, Unit, Workspace

__all__ = ["ShownFile", "blobs_of", "file_view", "rejected_change", "shown_file"]

Shape = dict[str, Any]

_LINE: Final = 48
"""Bytes that a line takes besides its text."""

_CHANGE: Final = 1_500
"""Bytes that a change takes besides its text: its hunks, and who wrote which of its lines."""


@value
class ShownFile:
    """A file with pending changes as it is shown: all its changes, or those of one turn."""

    file: "NetFile"
    keys: tuple[bytes, ...]  # of its changes
    rows: DiffRows
    longest: int  # characters of its longest row
    authors: str  # JSON, which takes a tenth of the memory: the fields about authors of the file, then of each change

    @property
    def size(self) -> int:
        """Return about how many bytes of memory it takes."""
        texts = len(self.file.before or b"") + len(self.file.after or b"")
        lines = len(self.rows.old) + len(self.rows.new)
        return 2 * texts + _LINE * lines + _CHANGE * len(self.keys) + len(self.authors)

    def line(self, row: int, key: bytes = b"") -> bytes | None:
        """Return the line of a row (None: there is no such row, or it is a gap).

        `key`: of the change in which the row is counted (b"": it is counted in the whole diff).
        """
        if not key:
            return self.rows.line(row)
        places = dict(zip(self.keys, self.rows.places, strict=True))
        first, count = places.get(key, (0, 0))
        return self.rows.line(first + row) if row < count else None


def shown_file(
    server: ServerState, workspace: "Workspace", document: int, turn: int = 0, context: int = CONTEXT
) -> ShownFile:
    """Return a file with pending changes. `turn`: only its changes, and those decided with them (0: all).

    Raises NotThere if nothing is pending, and what Review.changes raises.
    """
    # Another file's edits, which are what mostly comes while one reads, leave this one as it is.
    position = workspace.review.position(DocumentId(document))
    units = workspace.review.pending_units(Selection(turns=(turn,))) if turn else None
    asked = (document, units, context)
    known: tuple[object, ShownFile] | None = server.files.get(asked)
    if known is None or position is None or known[0] != position:
        known = position, _laid_out(workspace, _found(server, workspace, document, units), context)
        if position is not None:
            server.files.put(asked, known)
        return known[1]
    with suppress(NoSuchName, PathError):
        state = workspace.history.last_state(known[1].file.path)
        if state.blob is not None:
            workspace.history.text(state.blob)  # raises if the bytes were lost since the diff was computed
    return known[1]


def file_view(server: ServerState, workspace: "Workspace", shown: ShownFile, first: int, count: int) -> Shape:
    """Return a file's changes, and rows of its diff."""
    file, keys, rows, root = shown.file, shown.keys, shown.rows, workspace.root
    authors, *writers = json.loads(shown.authors)
    turns = {turn for change in file.changes for turn in change.turns}
    is_unrecorded = server.is_unrecorded(file.document, otherwise=file.is_unrecorded)
    seen = workspace.review.seen_changes()
    comments = comments_by_change(workspace, file)
    waiting = waiting_by_change(file, workspace.awaited_comments())
    paths = (file.path, file.path_before)
    awaited = workspace.awaited()
    decided = decided_by(awaited)
    groups = [frozenset(keys[at] for at in (place, *change.shares_with)) for place, change in enumerate(file.changes)]
    for key, change, group, (_, height) in zip(keys, file.changes, groups, rows.places, strict=True):
        server.changes.put(key, ShownChange(units=change.units, together=group, paths=paths, rows=height))
    return {
        **file_shape(file, seen, turns, is_unrecorded=is_unrecorded),
        **net_file_facts(file),
        **blobs_of(file),
        "all": [
            {
                **change_shape(root, change, seen, ()),
                "comments": [at_path(comment_shape(root, view), view.path) for view in comments.get(at, ())],
                "waiting": [
                    escaped({"who": each.who, "text": each.text, "state": each.words}) for each in waiting.get(at, ())
                ],
                "key": key.hex(),
                "words": change_words(file, change, shown_name, "→"),
                "whitespace_only": is_whitespace_only(change),
                "row": rows.places[at][0],
                "rows": rows.places[at][1],
                "place": server.progress.place(key),
                **writers[at],
                **_decided_elsewhere(change, decided, awaited),
            }
            for at, (key, change) in enumerate(zip(keys, file.changes, strict=True))
        ],
        **authors,
        "rows": rows.rows(first, count),
        "first": first,
        "total": rows.total,
        "longest": shown.longest,
    }


def rejected_change(server: "ServerState", workspace: "Workspace", shown: ShownFile, key: bytes) -> Shape:
    """Return what a rejection of a change of a file would do. Raises NotThere if the file has no such change."""
    if key not in shown.keys:
        raise NotThere("This change is not as shown any more.")
    if server.elsewhere is not None:
        title = server.elsewhere.title
        return rejection_of(workspace, f"{title} carries it out, and says then what went along or why it could not.")
    change = shown.file.changes[shown.keys.index(key)]
    return rejection_shape(workspace, change, [shown.file.changes[at] for at in change.shares_with])


# ---- inside


def _laid_out(workspace: "Workspace", file: "NetFile", context: int) -> ShownFile:
    rows, found = DiffRows(file, context), FileAuthors(workspace, file)
    writers = [{"writers": found.writers(change), "before": found.before(change)} for change in file.changes]
    authors = {"authors": found.shapes, "edits": found.summaries()}
    return ShownFile(
        file=file,
        keys=tuple(change.key for change in file.changes),
        rows=rows,
        longest=rows.longest,
        authors=json.dumps([authors, *writers]),
    )


def _found(server: ServerState, workspace: "Workspace", document: int, units: "frozenset[Unit] | None") -> "NetFile":
    """Return a file with its pending changes. `units`: as for Review.changes.

    Raises NotThere, and StoreError if nothing is found but the changes of some file can't be read.
    """
    paths = server.places.get(document)
    if paths:
        for file in workspace.review.changes(paths, units):
            if file.document == document:
                return file
    unreadable: list[StoreError] = []
    files = workspace.review.change_summaries(unreadable=unreadable.append)
    server.note_places(files)
    for summary in files:
        if summary.document == document:
            for file in workspace.review.changes({summary.path, summary.path_before}, units):
                if file.document == document:
                    return file
    if unreadable and all(summary.document != document for summary in files):
        raise unreadable[0]  # perhaps this file's: the damage hides that it has pending changes
    what = "in this file" if units is None else "of this turn in this file"
    raise NotThere(f"Nothing is pending {what} any more.")


def _decided_elsewhere(
    change: "NetChange", decided: "Mapping[Unit, Status]", awaited: "Mapping[Unit, RemoteVerdict]"
) -> Shape:
    """Return the verdict on a change of another store that is not carried out yet, if there is one, and whose it is."""
    verdict = verdict_of(change.units, decided)
    return {"verdict": verdict, "awaited": "; ".join(awaited_words(awaited, change.units))} if verdict else {}


def blobs_of(file: "NetFile") -> Shape:
    """Return the hashes of both states, by which the page requests images; "": no file."""

    def name(text: bytes | None, form: TextForm) -> str:
        return "" if text is None or is_placeholder(text) else blob_id(encoded(text, form)).hex()

    return {"blob_before": name(file.before, file.forms[0]), "blob_after": name(file.after, file.forms[1])}
