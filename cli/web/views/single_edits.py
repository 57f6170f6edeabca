"""Show the single edits that make a change, and take lines out of a hunk."""

import os
from collections.abc import Collection, Iterable, Iterator
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final

from cli.app.invocation import reviewer
from cli.render.edits import existence_changes
from cli.review_ui.hunk_place import located_hunk
from cli.review_ui.split_hunk import Part, Split, parts
from cli.screen.terminal import shown_name, visible
from cli.web.decisions.outcomes import done_shape, named_effects, nothing_to_do, overtaken
from cli.web.diff_rows.net_rows import MOST_CHARACTERS, Row, line_row
from cli.web.on_screen import edit_sides, is_told_by_lines
from cli.web.shapes import Edits
from objstore import (
    Hunk,
    Operation,
    Status,
    Unit,
    blob_id,
    diff_lines,
)

if TYPE_CHECKING:
    from objstore import Edit, EditView, Workspace

__all__ = ["edits_shape", "lines_taken_out"]

Shape = dict[str, Any]

_MOST_ROWS: Final = 2_000
"""Most rows of one hunk that are sent with others; asked for alone, it is sent whole."""

_MOST_TEXT: Final = 20_000_000
"""Most bytes of a hunk that is sent whole."""

_MOST_PARTS: Final = 200
_SPLITTABLE: Final = 400
"""Most lines of a hunk that is split into parts."""


def edits_shape(workspace: "Workspace", units: Iterable[Unit]) -> list[Shape]:
    """Return the edits that some hunks belong to, each with the diff of these hunks alone. Raises NoSuchName."""
    wanted: dict[int, list[int]] = {}
    for unit in sorted(set(units)):
        wanted.setdefault(unit.seq, []).append(unit.hunk)
    is_whole = sum(map(len, wanted.values())) == 1
    summaries = Edits(workspace)
    found: list[Shape] = []
    for seq, hunks in wanted.items():
        view = workspace.history.edit(seq)
        sides = edit_sides(workspace, view)
        chosen = [hunk for hunk in hunks if hunk in view.telling]
        found.append(
            {
                **summaries.summary(view),
                "hunks": [_hunk_shape(view, hunk, sides, is_whole=is_whole) for hunk in chosen],
            },
        )
    return found


def lines_taken_out(workspace: "Workspace", unit: Unit, rows: Collection[int], status: Status) -> Shape:
    """Take lines out of a hunk by an amendment of its edit, and return the outcome. Raises CasError and OSError.

    `rows`: their positions among the rows that `edits_shape` sent; removed lines come back, inserted ones go. `status`:
    the status of the hunk as shown.
    """
    view = workspace.history.edit(unit.seq)
    if unit.hunk >= len(view.units) or view.units[unit.hunk] is not status:
        return overtaken(f"{unit} was decided elsewhere meanwhile.")
    split = located_hunk(workspace, unit)
    if isinstance(split, str):
        return {"outcome": "failed", "message": visible(f"Can't split {unit}: {split}.")}
    if not rows or max(rows) >= len(split.old) + len(split.new):
        return overtaken(f"{unit} has no such lines any more.")
    chosen, hunks = _without(split, _parts(Part(old=split.old, new=split.new)), rows)
    if not hunks:
        return nothing_to_do("split", "Nothing to do: without these lines, the text is the same.")
    version = blob_id(split.text([split.new]))
    outcome = workspace.review.amend(unit.seq, split.text(chosen), version=version, hunks=hunks, who=reviewer())
    made = [edit.seq for edit in outcome.edits]
    words = f"Recorded edit {made[0]}, which amends edit {unit.seq}." if made else "Nothing was changed."
    message = f"Took that out. {words} {unit} itself is still {status.value}."
    return done_shape("split", outcome.decision, message, files=named_effects(workspace.root, outcome.files))


# ---- inside


def _without(split: Split, found: list[Part], rows: Collection[int]) -> tuple[list[list[bytes]], list[Hunk]]:
    """Return the lines of a hunk's parts without the chosen rows, and the hunks that take these out of the file."""
    chosen: list[list[bytes]] = []
    hunks: list[Hunk] = []
    nothing: list[bytes] = []
    old, new = 0, len(split.old)  # the rows at which the part's sides begin
    before = after = split.above.count(b"\n")
    for part in found:
        back = ([line] if at in rows else [] for at, line in enumerate(part.old, old))
        kept = ([] if at in rows else [line] for at, line in enumerate(part.new, new))
        sides = zip_longest(back, kept, fillvalue=nothing)  # each removed line is where the one is that replaced it
        lines = [line for side in sides for each in side for line in each] if part.changes else list(part.new)
        hunks += [
            Hunk(before + each.old_start, each.old_count, after + each.new_start, each.new_count)
            for each in diff_lines(b"".join(part.new), b"".join(lines))
        ]
        chosen.append(lines)
        old, new = old + len(part.old), new + len(part.new)
        before, after = before + len(part.new), after + len(lines)
    return chosen, hunks


def _hunk_shape(view: "EditView", hunk: int, sides: tuple[list[bytes], list[bytes]] | str, *, is_whole: bool) -> Shape:
    edit, words = view.edit, "" if isinstance(sides, tuple) else sides
    rows: list[Row] = []
    splits: list[list[Row]] = []
    if not hunk:
        words = ", ".join([*_whole_words(edit), *([words] if words else [])])
    if isinstance(sides, tuple):
        old, new = sides
        if hunk:
            place = edit.hunks[hunk - 1]
            removed, inserted = old[place.old_start : place.old_end], new[place.new_start : place.new_end]
            rows = _rows(removed, inserted, place.old_start, place.new_start, is_whole=is_whole)
            if len(removed) + len(inserted) <= _SPLITTABLE and view.units[hunk] is not Status.REJECTED:
                splits = list(_split_rows(removed, inserted, place.old_start, place.new_start))
        elif is_told_by_lines(edit):
            rows = _rows(old, new, 0, 0, is_whole=is_whole)
    return {
        "name": str(Unit(view.seq, hunk)),
        "status": view.units[hunk].value,
        "words": words,
        "rows": rows if is_whole else rows[:_MOST_ROWS],
        "splits": splits if len(splits) > 1 else [],
    }


def _rows(removed: list[bytes], inserted: list[bytes], old: int, new: int, *, is_whole: bool = False) -> list[Row]:
    if is_whole and sum(map(len, removed)) + sum(map(len, inserted)) <= _MOST_TEXT:
        rows, characters = len(removed) + len(inserted), _MOST_TEXT
    else:
        rows, characters = _MOST_ROWS, MOST_CHARACTERS
    return [
        *(line_row("-", line, old=old + at, most=characters) for at, line in enumerate(removed[:rows])),
        *(line_row("+", line, new=new + at, most=characters) for at, line in enumerate(inserted[:rows])),
    ]


def _split_rows(removed: list[bytes], inserted: list[bytes], old: int, new: int) -> Iterator[list[Row]]:
    """Yield the rows of each part of a hunk that changes something."""
    for part in _parts(Part(old=tuple(removed), new=tuple(inserted))):
        if part.changes:
            yield _rows(list(part.old), list(part.new), old, new)
        old, new = old + len(part.old), new + len(part.new)


def _parts(whole: Part) -> list[Part]:
    found = parts(whole)
    return found if len(found) <= _MOST_PARTS else [whole]


def _whole_words(edit: "Edit") -> Iterator[str]:
    """Yield words for what an edit does to the file as a whole."""
    if edit.operation is Operation.MOVE and edit.source is not None:
        yield f"moved from {shown_name(os.fsdecode(edit.source))}"
    yield from existence_changes(edit)
