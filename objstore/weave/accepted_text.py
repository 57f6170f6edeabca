"""Compute the accepted text of a document, and the net changes that lead from it to the current text.

The accepted text is the text with every pending unit rejected, as a decision would reject them: amendments go with the
edits that they amend, and pending units stay if live units could not do without them.
"""

from __future__ import annotations

from bisect import bisect_right
from operator import itemgetter
from typing import TYPE_CHECKING

from objstore.model.basic_types import Status, Unit
from objstore.model.net_file import ChangeKind, LineWriters
from objstore.text.forms import is_either_binary
from objstore.text.hunks import Hunk
from objstore.text.lines import is_closed, split_lines
from objstore.values.fastclass import value, variable
from objstore.weave.document import NO_EDIT
from objstore.weave.net_changes import NetRuns, Piece, net_pieces

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence, Set as AbstractSet

    from objstore.weave.document import Document, DocumentVersion
    from objstore.weave.runs import Run, UnitIndex, WeaveUnit

__all__ = ["DocumentChange", "NetDocument", "net_document"]


@value
class DocumentChange:
    """One net change of a document."""

    kind: ChangeKind
    hunk: Hunk | None  # in lines of both texts; None: it concerns no line
    removed: bytes  # exact lines of the accepted text
    inserted: bytes  # exact lines of the current text
    units: frozenset[Unit]
    writers: tuple[LineWriters, ...] = ()  # of its removed lines, then of its inserted ones
    earlier: tuple[Unit, ...] = ()  # units that had inserted the removed lines, ascending; none for a baseline's


@value
class NetDocument:
    """A document with and without its pending units."""

    accepted: DocumentVersion
    current: DocumentVersion
    lines_before: bytes | None  # the accepted text in whose lines changes count; None: no file
    lines_after: bytes | None  # the same of the current text
    changes: tuple[DocumentChange, ...]  # facts about the file first, then lines in their order
    cancelled: tuple[Unit, ...]  # pending units without a net effect, ascending
    taken_out: tuple[Unit, ...]  # those of them that accepted units took out, so that they can't be accepted
    kept_on: tuple[Unit, ...]  # pending units that the accepted text keeps, ascending
    is_binary: bool


@variable
class _Sides:
    """The two states of a document and what is needed to compare them."""

    accepted: DocumentVersion
    current: DocumentVersion
    lines: tuple[bytes | None, bytes | None]  # in which changes count
    units: Sequence[Unit]  # live in the current state, rejected in the accepted one; those with an effect, ascending
    visibility: bytes  # of the accepted text
    path_writers: tuple[Sequence[Unit], Sequence[Unit]]  # in the accepted state, and in the current one
    mode_writers: tuple[Sequence[Unit], Sequence[Unit]]
    form_writers: tuple[Sequence[Unit], Sequence[Unit]]


def net_document(document: Document) -> NetDocument:
    """Return the net changes of a document. Its statuses are changed and restored."""
    now = document.statuses()
    pending = document.pending()
    off = _reject_pending(document, pending, now)
    accepted, before = document.version(), document.lines_text()
    visibility = document.weave.visibility()
    writers = document.path_writers(), document.mode_writers(), document.form_writers()
    document.restore_statuses(now)
    sides = _Sides(
        accepted=accepted,
        current=document.version(),
        lines=(before, document.lines_text()),
        units=[unit for unit in sorted(off) if document.has_effect(unit)],
        visibility=visibility,
        path_writers=(writers[0], document.path_writers()),
        mode_writers=(writers[1], document.mode_writers()),
        form_writers=(writers[2], document.form_writers()),
    )
    before, after = sides.lines
    is_binary = is_either_binary(before or b"", after or b"")
    changes = tuple(_changes(document, sides, is_binary=is_binary))
    changed = {unit for change in changes for unit in change.units}
    cancelled = tuple(unit for unit in sides.units if unit not in changed)
    return NetDocument(
        accepted=accepted,
        current=sides.current,
        lines_before=before,
        lines_after=after,
        changes=changes,
        cancelled=cancelled,
        taken_out=tuple(sorted(document.taken_out(cancelled))),
        kept_on=tuple(unit for unit in pending if unit not in off),
        is_binary=is_binary,
    )


def _reject_pending(document: Document, pending: Sequence[Unit], now: bytes) -> Mapping[Unit, Status]:
    """Reject the pending units and their amendments, except those that live units need; return what was rejected."""
    wanted = dict.fromkeys(pending, Status.REJECTED)
    while wanted:
        off = wanted | dict.fromkeys(document.amendments(wanted), Status.REJECTED)
        document.set_statuses(off)
        conflicts = document.conflicts()
        if not conflicts:
            return off
        document.restore_statuses(now)
        # If no conflict names a unit that was rejected here, the newest is as likely as any to prevent it.
        named = {unit for conflict in conflicts for unit in conflict.needs if unit in off}
        while amendments := named - wanted.keys():
            # An amendment stays if its edit does.
            amended = {document.amended_by(unit.seq) for unit in amendments}
            named = named - amendments | {unit for unit in off if unit.seq in amended}
        for unit in named or {max(unit for unit in off if unit in wanted)}:
            del wanted[unit]
    return {}


def _changes(document: Document, sides: _Sides, *, is_binary: bool) -> list[DocumentChange]:
    before, after = sides.lines
    if before is None or after is None:
        # Nothing about a file can be decided without the file.
        is_gone = before is None and after is None
        return [] if is_gone else [_existence(document, sides, before, after, is_binary=is_binary)]
    between = document.weave.units(document.indexes_of(sides.units))
    pieces, groups = net_pieces(NetRuns(document.weave.runs(), sides.visibility, document.weave.visibility(), between))

    def whole(units: Iterable[UnitIndex]) -> frozenset[Unit]:
        chosen = document.weave.units(units) & between
        return frozenset(document.units_at(groups.whole(chosen or between)))

    def fact(kind: ChangeKind, writers: AbstractSet[WeaveUnit]) -> DocumentChange:
        units = whole(unit.index for unit in writers)
        return DocumentChange(kind=kind, hunk=None, removed=b"", inserted=b"", units=units)

    # Which of the units that wrote the same fact is in force depends on all of them.
    writers = sides.path_writers, sides.mode_writers, sides.form_writers
    movers, modes, formers = (_newer(document, *each) & between for each in writers)
    for facts in (movers, modes, formers):
        groups.link(facts)
    enders = {unit for unit in between if unit.sets_final_newline}
    if len({not is_closed(before), *(unit.ending[1] for unit in enders)}) > 1:
        is_at_end = bool(pieces) and pieces[-1].hunk.old_end == before.count(b"\n") + (not is_closed(before))
        groups.link(enders | document.weave.units(pieces[-1].units if is_at_end else ()))
    found: list[DocumentChange] = []
    if sides.accepted.path != sides.current.path:
        found.append(fact(ChangeKind.MOVE, movers))
    if sides.accepted.mode != sides.current.mode:
        found.append(fact(ChangeKind.MODE, modes))
    if sides.accepted.form is not sides.current.form:
        found.append(fact(ChangeKind.ENCODING, formers))
    if before == after:
        return found
    newline = set() if is_closed(before) is is_closed(after) else {unit.index for unit in enders}
    if is_binary:
        concerned = {*newline, *(index for piece in pieces for index in piece.units)}
        return [
            *found,
            DocumentChange(kind=ChangeKind.CONTENT, hunk=None, removed=b"", inserted=b"", units=whole(concerned)),
        ]
    old, new = split_lines(before), split_lines(after)
    lines = _LineHistory(document, sides)
    for kind, hunk, indexes in _with_last_line(pieces, old, new, newline):
        change = DocumentChange(
            kind=kind,
            hunk=hunk,
            removed=b"".join(old[hunk.old_start : hunk.old_end]),
            inserted=b"".join(new[hunk.new_start : hunk.new_end]),
            units=whole(indexes),
            writers=lines.writers(hunk),
            earlier=lines.earlier(hunk),
        )
        found.append(change)
    return found


class _LineHistory:
    """Which units took the lines of the accepted text out, and which put those of the current text in."""

    def __init__(self, document: Document, sides: _Sides) -> None:
        """Read the runs of both texts. Must be called while the document is in the current state."""
        self._document = document
        weave = document.weave
        self._old: list[tuple[int, Run, bool]] = []  # where each run ends, and whether it is in the other text too
        self._new: list[tuple[int, Run, bool]] = []
        old = new = 0
        for run, is_old, is_new in zip(weave.runs(), sides.visibility, weave.visibility(), strict=True):
            if is_old:
                old += run.lines
                self._old.append((old, run, bool(is_new)))
            if is_new:
                new += run.lines
                self._new.append((new, run, bool(is_old)))

    def writers(self, hunk: Hunk) -> tuple[LineWriters, ...]:
        """Return who took out the first text's lines of a hunk, then who put in those of the second text."""
        removed = [
            LineWriters(count, () if is_kept else self._units(run.live_deleters))
            for count, run, is_kept in _slice(self._old, hunk.old_start, hunk.old_end)
        ]
        inserted = [
            LineWriters(count, () if is_kept else self._units([run.inserter]))
            for count, run, is_kept in _slice(self._new, hunk.new_start, hunk.new_end)
        ]
        return (*removed, *inserted)

    def earlier(self, hunk: Hunk) -> tuple[Unit, ...]:
        """Return the units that had inserted the removed lines of a hunk, ascending."""
        runs = [run for _, run, is_kept in _slice(self._old, hunk.old_start, hunk.old_end) if not is_kept]
        return self._units([run.inserter for run in runs])

    def _units(self, units: Iterable[WeaveUnit]) -> tuple[Unit, ...]:
        return tuple(sorted(unit for unit in self._document.units_at({each.index for each in units}) if unit.seq))


def _slice(runs: Sequence[tuple[int, Run, bool]], start: int, end: int) -> Iterator[tuple[int, Run, bool]]:
    """Yield the runs with lines from `start` up to `end`, each with the number of these lines."""
    at = bisect_right(runs, start, key=itemgetter(0))
    while start < end:
        run_end, run, is_kept = runs[at]
        count = min(run_end, end) - start
        if count:
            yield count, run, is_kept
        start, at = start + count, at + 1


def _newer(document: Document, before: Sequence[Unit], after: Sequence[Unit]) -> AbstractSet[WeaveUnit]:
    """Return the writers of a fact that are newer than its last writer in the accepted state."""
    last = before[0] if before else NO_EDIT
    return document.weave.units(document.indexes_of(unit for unit in after if unit > last))


def _existence(
    document: Document, sides: _Sides, before: bytes | None, after: bytes | None, *, is_binary: bool
) -> DocumentChange:
    """Return the change that creates or deletes a file, with all its lines."""
    removed, inserted = (b"" if is_binary or text is None else text for text in (before, after))
    hunk = Hunk(0, len(split_lines(removed)), 0, len(split_lines(inserted)))
    lines = _LineHistory(document, sides)
    return DocumentChange(
        kind=ChangeKind.CREATE if before is None else ChangeKind.DELETE,
        hunk=hunk,
        removed=removed,
        inserted=inserted,
        units=frozenset(sides.units),
        writers=lines.writers(hunk),
        earlier=lines.earlier(hunk),
    )


def _with_last_line(
    pieces: Sequence[Piece], old: Sequence[bytes], new: Sequence[bytes], enders: AbstractSet[UnitIndex]
) -> Iterator[tuple[ChangeKind, Hunk, AbstractSet[UnitIndex]]]:
    """Yield the differences of lines, and that of the final newline, each with its units.

    `enders`: the units that added or removed the final newline.
    """
    for piece in pieces:
        hunk = piece.hunk
        above = (old[hunk.old_start - 1], new[hunk.new_start - 1]) if hunk.old_start and hunk.new_start else (b"", b"")
        if hunk.old_end == len(old) and above[0] != above[1]:
            # A line that is the last one of only one text has a newline in the other.
            hunk = Hunk(hunk.old_start - 1, hunk.old_count + 1, hunk.new_start - 1, hunk.new_count + 1)
        yield ChangeKind.LINES, hunk, piece.units
    if not (pieces and pieces[-1].hunk.old_end == len(old)) and old[-1] != new[-1]:
        yield ChangeKind.NEWLINE, Hunk(len(old) - 1, 1, len(new) - 1, 1), enders
