"""Search the history from the newest edit back, within the time limit of a request."""

import os
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from cli.render.unreadable import ReadErrors
from cli.screen.progress import Progress
from cli.search.pickaxe import Pickaxe
from cli.web.diff_rows.net_rows import line_row, utf16
from cli.web.shapes import Edits
from objstore import UNREADABLE, EditFilter, is_either_binary, split_lines

if TYPE_CHECKING:
    from objstore import EditView, Workspace

__all__ = ["search_hits"]

Shape = dict[str, Any]

_SECONDS: Final = 1.5
"""How long one request searches; the next one goes on from there."""

_PAGE: Final = 100
_MOST_HITS: Final = 50
_MOST_ROWS: Final = 12


def search_hits(workspace: "Workspace", text: str, kind: str, before: int) -> Shape:
    """Return the newest edits that match, and from which edit to go on.

    `kind`: "text" finds edits after which the text occurs more or less often than before, "path" those of files whose
    names contain it, "prompt" those of turns whose prompts contain it. Only "text" is case-sensitive. `before`: only
    edits with lower numbers (0: all).
    """
    edits = Edits(workspace)
    fits = _condition(workspace, text, kind, edits)
    hits: list[Shape] = []
    ends = time.monotonic() + _SECONDS
    last = before
    for view in _newest_first(workspace, before):
        if last != before and (len(hits) >= _MOST_HITS or time.monotonic() > ends):
            return {"hits": hits, "more": True, "before": last}
        last = view.seq
        if fits(view):
            rows = _rows(workspace, view, os.fsencode(text)) if kind == "text" else []
            hits.append({"edit": edits.summary(view), "rows": rows})
    return {"hits": hits, "more": False, "before": 0}


def _newest_first(workspace: "Workspace", before: int) -> "Iterator[EditView]":
    """Yield the edits from the newest on, read in small pages so that a search ends in time."""
    while True:
        views = workspace.history.edits(EditFilter(before=before, newest_first=True, limit=_PAGE))
        yield from views
        if len(views) < _PAGE:
            return
        before = views[-1].seq


def _condition(workspace: "Workspace", text: str, kind: str, edits: Edits) -> "Callable[[EditView], bool]":
    folded = text.casefold()

    def has_path(view: "EditView") -> bool:
        paths = (view.edit.path, view.edit.source or b"")
        return any(folded in os.fsdecode(path).casefold() for path in paths)

    def has_prompt(view: "EditView") -> bool:
        return folded in edits.prompt(view).casefold()

    if kind == "path":
        return has_path
    if kind == "prompt":
        return has_prompt
    unseen = Progress({})
    unseen.end()
    return Pickaxe(workspace, os.fsencode(text), unseen, ReadErrors()).changes_occurrences


def _rows(workspace: "Workspace", view: "EditView", text: bytes) -> list[Shape]:
    """Return the changed lines of an edit that contain the text, or its first changed lines if none does."""
    try:
        before, after = (side or b"" for side in workspace.history.sides(view.edit))
    except UNREADABLE:
        return []
    if is_either_binary(before, after):
        return []
    rows = list(_changed_lines(view, before, after))
    found = [(sign, line, at) for sign, line, at in rows if text in line]
    return [_row(sign, line, at, text) for sign, line, at in (found or rows)[:_MOST_ROWS]]


def _changed_lines(view: "EditView", before: bytes, after: bytes) -> Iterator[tuple[str, bytes, int]]:
    """Yield the lines that an edit removed and inserted: the sign, the line and its zero-based number."""
    old, new = split_lines(before), split_lines(after)
    if view.edit.before is None or view.edit.after is None:
        yield from (("-", line, at) for at, line in enumerate(old))
        yield from (("+", line, at) for at, line in enumerate(new))
    for hunk in view.edit.hunks:
        yield from (("-", old[at], at) for at in range(hunk.old_start, hunk.old_end))
        yield from (("+", new[at], at) for at in range(hunk.new_start, hunk.new_end))


def _row(sign: str, line: bytes, at: int, text: bytes) -> Shape:
    row = line_row(sign, line, old=at) if sign == "-" else line_row(sign, line, new=at)
    shown, wanted = row["t"], text.decode("utf-8", "surrogateescape")
    spans, start = [], shown.find(wanted)
    while start >= 0:
        spans.append((start, start + len(wanted)))
        start = shown.find(wanted, start + len(wanted))
    if spans:
        row["w"] = utf16(shown, spans)
    return row
