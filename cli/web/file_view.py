"""Compute what a page shows of one file: its changes, and rows of its diff."""

from typing import TYPE_CHECKING, Any, Final

from cli.render.comments import comments_by_change
from cli.web.asked import NotThere
from cli.web.desk import Desk, ShownChange
from cli.web.net_rows import DiffRows, is_whitespace_only
from cli.web.review_queue import file_shape, turn_units, turns_of_edits
from cli.web.shapes import change_words, comment_shape, unit_names
from objstore import ChangeKind

if TYPE_CHECKING:
    from objstore import FileSummary, NetFile, Workspace

__all__ = ["changed_file", "file_view"]

Shape = dict[str, Any]

_NOTHING: Final = "Nothing is pending in this file any more."


def changed_file(workspace: "Workspace", document: int, turn: int = 0) -> "tuple[FileSummary, NetFile, dict[Any, int]]":
    """Return a file with pending changes, as a summary and with its texts, and the turn of each pending edit.

    `turn`: only its changes, and those that are decided with them (0: all). Raises NotThere if nothing is pending.
    """
    report = workspace.review.status()
    turns = turns_of_edits(report)
    summaries = workspace.review.change_summaries(unreadable=lambda _: None)
    summary = next((file for file in summaries if file.document == document), None)
    if summary is None:
        raise NotThere(_NOTHING)
    units = None
    if turn:
        places = turn_units(summary, {seq for seq, number in turns.items() if number == turn})
        chosen = {unit for at in places for unit in summary.changes[at].units}
        own = {unit for unit in (*summary.cancelled, *summary.kept_on) if turns.get(unit.seq) == turn}
        units = chosen | own
    paths = {summary.path, summary.path_before}
    found = [file for file in workspace.review.changes(paths, units) if file.document == document]
    if not found:
        raise NotThere(_NOTHING)
    return summary, found[0], turns


def file_view(
    desk: Desk, workspace: "Workspace", document: int, turn: int, *, first: int, count: int, context: int
) -> Shape:
    """Return a file's changes, and rows of its diff. Raises NotThere, and what Review.changes raises."""
    version = desk.version()
    summary, file, turns = changed_file(workspace, document, turn)
    seen = workspace.review.seen_changes()
    rows = DiffRows(file, context)
    comments = comments_by_change(workspace, file)
    keys = [change.key for change in file.changes]
    groups = [frozenset(keys[at] for at in (place, *change.shares_with)) for place, change in enumerate(file.changes)]
    desk.note_shown(
        [
            (key, ShownChange(units=change.units, together=group))
            for key, change, group in zip(keys, file.changes, groups, strict=True)
        ]
    )
    shape = file_shape(summary, turns, seen)
    shape["added"], shape["removed"] = file.added, file.removed
    shape["changes"], shape["unseen"] = len(keys), sum(key not in seen for key in keys)
    return {
        "version": version,
        **shape,
        "mode_before": file.mode_before,
        "mode": file.mode,
        "size_before": file.size_before,
        "size": file.size,
        **_blobs(file),
        "all": [
            {
                "key": key.hex(),
                "kind": "lines" if change.kind is ChangeKind.NEWLINE else change.kind.value,
                "words": change_words(file, change),
                "line_before": change.line_before,
                "line_after": change.line_after,
                "removed": change.removed_lines,
                "inserted": change.inserted_lines,
                "units": unit_names(change.units),
                "turns": list(change.turns),
                "shares_with": list(change.shares_with),
                "seen": key in seen,
                "whitespace_only": is_whitespace_only(change),
                "comments": [comment_shape(view) for view in comments.get(at, ())],
                "row": rows.places[at][0],
                "rows": rows.places[at][1],
            }
            for at, (key, change) in enumerate(zip(keys, file.changes, strict=True))
        ],
        "cancelled": unit_names(file.cancelled),
        "taken_out": unit_names(file.taken_out),
        "kept_on": unit_names(file.kept_on),
        "rows": rows.rows(first, count),
        "first": first,
        "total": rows.total,
        "longest": rows.longest,
    }


def _blobs(file: "NetFile") -> Shape:
    """Return the hashes of both states, from which a page asks for images; "": no file."""
    from objstore import blob_id, is_placeholder

    def name(text: bytes | None) -> str:
        return "" if text is None or is_placeholder(text) else blob_id(text).hex()

    return {"blob_before": name(file.before), "blob": name(file.after)}
