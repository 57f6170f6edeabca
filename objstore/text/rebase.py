"""Rebase a change: carry it from the version of a text that it was made to over to a later version.

The later version is given by the steps that led to it, each as hunks. Each region of the change moves with the lines
that it concerns: a step's edit above shifts it, an edit below leaves it in place, and an edit of the same lines is a
conflict, never a guess. The rules are the weave's (see `line_weave`): adjacent lines are independent, and an insertion
needs one of its two neighbours, with nothing inserted between them. If a step made the same change, byte for byte, the
region counts as applied, provided that no later step concerns these lines.

A comparison can't say which of several equal lines were inserted or deleted. So a hunk found by comparison, in a step
or in the change, covers every position to which its lines slide over equal lines; all these lines together are its
region. One region of the change and one region of a step may then be the same change.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Final

from objstore.text.diff import diff_lines
from objstore.text.hunks import Hunk, inserted_texts
from objstore.text.lines import closed, is_closed, lines_end, split_lines
from objstore.values.fastclass import replace, value

__all__ = ["RebaseConflict", "Rebased", "TextStep", "compared", "rebased"]


_NO_NEWLINE: Final = 1  # the line lacks its newline wherever it is the last line
_BY_CHANGE: Final = 2  # the change decided that, so no step overrides it
_INSERTED: Final = 4  # a step inserted the line, or may have
_DELETED_ABOVE: Final = 8  # a step deleted lines directly above, or may have

_MOST_WORK: Final = 1 << 16
"""Budget of line comparisons when computing how far the parts of one hunk slide."""


@value
class TextStep:
    """A step from one version of a text to the next."""

    hunks: tuple[Hunk, ...]
    after: bytes
    compared: bool = False  # whether the hunks were found by comparison; else a tool named the lines


@value
class Rebased:
    """The change, applied to the later version."""

    content: bytes
    hunks: tuple[Hunk, ...]  # from the later version to `content`; () if it contains the change already


@value
class RebaseConflict:
    """A hunk of the change and a later step concern the same lines."""

    hunk: int  # number of the change's hunk, from 1
    read_start: int  # first line in the version that the change was made to, from 1
    read_count: int  # 0: it inserts above `read_start`
    start: int  # first line of the same place in the later version, from 1
    count: int  # lines at that place; 0: they were deleted


@value
class _ChangedRegion:
    """The lines that one or more hunks of one side concern, decided as a whole, and what they become."""

    start: int
    end: int
    first: int  # number of its first hunk, from 0
    hunks: tuple[Hunk, ...]
    texts: tuple[bytes, ...]  # closed: what each hunk inserts

    @property
    def deletes_lines(self) -> bool:
        return any(hunk.old_count for hunk in self.hunks)

    @property
    def is_exact(self) -> bool:
        """Return whether the region is exactly the lines of one hunk."""
        return len(self.hunks) == 1 and (self.start, self.end) == (self.hunks[0].old_start, self.hunks[0].old_end)

    @property
    def shift(self) -> int:
        """Return by how many lines the text below the region moves."""
        return self.hunks[-1].new_end - self.hunks[-1].old_end

    @property
    def grows(self) -> bool:
        return any(hunk.new_count > hunk.old_count for hunk in self.hunks)

    @property
    def growth(self) -> int:
        return sum(hunk.new_count - hunk.old_count for hunk in self.hunks)

    def over(self, lines: Sequence[bytes], above: int) -> bytes:
        """Return `lines` with the hunks applied; `lines` begin at line `above` of the text that the hunks refer to."""
        made = list(lines)
        for hunk, text in zip(reversed(self.hunks), reversed(self.texts), strict=True):
            made[hunk.old_start - above : hunk.old_end - above] = [text]
        return b"".join(made)


@value
class _Piece:
    """A region of the change while it is carried through the steps: which lines it concerns now."""

    region: _ChangedRegion
    start: int
    end: int
    above: bool = True  # of an insertion: whether its upper neighbour, or the start of the text, is unchanged
    below: bool = True  # likewise its lower neighbour
    is_applied: bool = False  # whether a step made the same change: `start` to `end` are the lines that it left
    is_guessed: bool = False  # once it is applied: whether that is known only from a comparison
    both_deleted: frozenset[bytes] = frozenset()  # once it is applied: the lines that both deleted

    @property
    def shift(self) -> int:
        """Return by how many lines the region has moved; meaningful until it is applied."""
        return self.start - self.region.start


def compared(before: bytes, after: bytes) -> tuple[TextStep, ...]:
    """Return the step between two versions known only by their bytes; empty if they are equal."""
    return () if before == after else (TextStep(hunks=diff_lines(before, after), after=after, compared=True),)


class _Lines:
    """The flags of each line of the text while it is carried through the steps: the bits above."""

    def __init__(self, base: bytes, made: bytes, hunks: Sequence[Hunk]) -> None:
        """Start with the lines of `base`, which the change turns into `made`."""
        self._missing = _NO_NEWLINE if not is_closed(made) else 0
        self._keeps = is_closed(base) is is_closed(made)
        count = closed(base).count(b"\n")
        self._marks = bytearray(count + 1)  # the last entry is for the end of the text
        if not is_closed(base):
            self._marks[count - 1] = _NO_NEWLINE
        last = count - 1  # the last line of `made`, if `base` had it too
        self._inserts_last = False
        if hunks and hunks[-1].old_end == count:
            self._inserts_last = hunks[-1].new_count > 0
            last = -1 if self._inserts_last else hunks[-1].old_start - 1
        if last >= 0 and self._marks[last] != self._missing:
            self._marks[last] = _BY_CHANGE | self._missing

    def may_be_inserted(self, start: int, end: int) -> bool:
        """Return whether a step inserted any of these lines, or may have."""
        return any(mark & _INSERTED for mark in self._marks[start:end])

    def may_be_inserted_at(self, start: int, end: int) -> bool:
        """Return whether a step may have deleted or changed lines between these, or directly above or below them."""
        around = self._marks[max(0, start - 1) : end + 1]
        return any(mark & (_INSERTED | _DELETED_ABOVE) for mark in around)

    def step(self, theirs: Sequence[_ChangedRegion], same: Mapping[int, _Piece], after: bytes) -> None:
        """Advance to the text after a step. `same`: the piece that the step also made, by position in `theirs`."""
        marks = self._marks
        for index in range(len(theirs) - 1, -1, -1):
            met, piece = theirs[index], same.get(index)
            start, end = met.start, met.end
            if piece is not None:
                start, end = min(start, piece.start), max(end, piece.end)
            is_inserted = any(met.texts) or self.may_be_inserted(start, end)
            if piece is not None:
                _mark(marks, piece.region, piece.shift)  # the change knows better which lines are kept
            else:
                # A sliding hunk is put at its uppermost position: so the kept line inherits the last line's mark.
                _mark(marks, met, 0 if met.is_exact or len(met.hunks) > 1 else met.start - met.hunks[0].old_start)
            end += met.growth
            for line in range(start, end):
                marks[line] |= _INSERTED * is_inserted
            for line in range(start, end + 1):
                marks[line] |= _DELETED_ABOVE * met.deletes_lines
        if len(marks) > 1 and not marks[-2] & _BY_CHANGE:
            marks[-2] = marks[-2] & ~_NO_NEWLINE | (0 if is_closed(after) else _NO_NEWLINE)

    def end(self, pieces: Sequence[_Piece]) -> bool:
        """Return whether the text ends in a newline once all pieces of the change are applied."""
        marks, missing, below = self._marks, self._missing, 0
        if self._inserts_last:
            last = pieces[-1]
            hunk = last.region.hunks[-1]
            end = last.end if last.is_applied else hunk.old_end + last.shift
            below = len(marks) - end
            if self._keeps and (last.is_applied or hunk.old_count):
                missing = marks[end - 1]  # rewriting the last line without changing its ending keeps the ending
        for piece in reversed(pieces):
            if not piece.is_applied:
                _mark(marks, piece.region, piece.shift)
        if self._inserts_last:
            marks[-1 - below] = missing
        return len(marks) == 1 or not marks[-2] & _NO_NEWLINE


def _mark(marks: bytearray, region: _ChangedRegion, shift: int) -> None:
    """Replace the marks of the lines that a region's hunks delete by marks of the lines that they insert."""
    for hunk in reversed(region.hunks):
        start = hunk.old_start + shift
        marks[start : start + hunk.old_count] = bytes([_INSERTED]) * hunk.new_count


def rebased(
    base: bytes, made: bytes, hunks: Sequence[Hunk], text_steps: Sequence[TextStep], *, is_compared: bool = False
) -> Rebased | RebaseConflict:
    """Return the change from `base` to `made` applied after `text_steps`, or the first of its hunks that conflicts.

    `is_compared`: whether the hunks were found by comparison. Raises ValueError unless the hunks lead from `base` to
    `made`, and the steps on from `base`, each from the text before it.
    """
    regions = _regions(base, made, hunks, is_compared=is_compared)
    pieces = [_Piece(region=region, start=region.start, end=region.end) for region in regions]
    lines = _Lines(base, made, hunks)
    before = base
    for number, text_step in enumerate(text_steps):
        theirs = _regions(before, text_step.after, text_step.hunks, is_compared=text_step.compared)
        step = _Step(before=before, theirs=theirs, lines=lines, is_guessed=is_compared or text_step.compared)
        carried = step.carried(pieces)
        if isinstance(carried, _Overlap):
            return _rebase_conflict(carried, text_steps[number + 1 :])
        pieces, same = carried
        lines.step(theirs, same, text_step.after)
        before = text_step.after
    content, found = _apply_pieces(before, pieces, ends=lines.end(pieces))
    return Rebased(content=content, hunks=found)


def _regions(before: bytes, after: bytes, hunks: Sequence[Hunk], *, is_compared: bool) -> list[_ChangedRegion]:
    """Return the disjoint regions that one side concerns, in order. Raises ValueError as `inserted_texts` does."""
    texts = inserted_texts(before, after, hunks)
    lines = split_lines(closed(before)) if is_compared and hunks else []
    found: list[_ChangedRegion] = []
    for number, (hunk, text) in enumerate(zip(hunks, texts, strict=True)):
        start, end = hunk.old_start, hunk.old_end
        if is_compared:
            low = hunks[number - 1].old_end if number else 0
            high = hunks[number + 1].old_start if number + 1 < len(hunks) else len(lines)
            slides = [_slides(lines, hunk, moving, low, high) for moving in (lines[start:end], split_lines(text))]
            start, end = start - max(up for up, _ in slides), end + max(down for _, down in slides)
        region = _ChangedRegion(start=start, end=end, first=number, hunks=(hunk,), texts=(text,))
        if found and start < found[-1].end:
            last = found.pop()
            both = (*last.hunks, hunk), (*last.texts, text)
            region = replace(last, end=end, hunks=both[0], texts=both[1])
        found.append(region)
    return found


def _slides(lines: Sequence[bytes], hunk: Hunk, moving: Sequence[bytes], low: int, high: int) -> tuple[int, int]:
    """Return how far the lines that a hunk deletes or inserts slide up and down between lines `low` and `high`.

    If a hunk replaces lines, its first lines may slide up without the others, and its last lines down: a comparison
    that puts those there is as short. If this takes too long to compute, the lines count as sliding all the way.
    """
    whole = len(moving)
    fewest = 1 if hunk.old_count and hunk.new_count else whole
    above, below, back = lines[low : hunk.old_start][::-1], lines[hunk.old_end : high], moving[::-1]
    up = down = 0
    work = _MOST_WORK
    for count in range(fewest, whole + 1) if whole else ():
        up = max(up, _repeats(above, back, count, work))
        down = max(down, _repeats(below, moving, count, work))
        work -= up + down
        if work < 0:
            return len(above), len(below)
    return up, down


def _repeats(lines: Sequence[bytes], text: Sequence[bytes], count: int, most: int) -> int:
    """Return how many of the first lines repeat the last `count` lines of `text` cyclically; all if beyond `most`."""
    first = len(text) - count
    for at, line in enumerate(islice(lines, most)):
        if line != text[first + at % count]:
            return at
    return len(lines)


@value
class _Overlap:
    """A piece of the change and a region of a step that concern the same lines with different results."""

    piece: _Piece
    met: _ChangedRegion


@value
class _Step:
    """One step that the pieces are about to be carried through."""

    before: bytes
    theirs: Sequence[_ChangedRegion]
    lines: _Lines
    is_guessed: bool  # whether either side's hunks were found by comparison

    def carried(self, pieces: Sequence[_Piece]) -> tuple[list[_Piece], dict[int, _Piece]] | _Overlap:
        """Return the pieces after the step, and those that the step made too, by position in `theirs`."""
        ends = [met.end for met in self.theirs]
        moved: list[_Piece] = []
        same: dict[int, _Piece] = {}
        cut_above = -1  # the line below the last line that the change deletes
        for piece in pieces:
            index = bisect_left(ends, piece.start)
            shift = self.theirs[index - 1].shift if index else 0
            above, below, same_region = piece.above, piece.below, None
            deletes_lines = piece.region.deletes_lines and not piece.is_applied
            while index < len(ends) and self.theirs[index].start <= piece.end:
                met = self.theirs[index]
                if _concern_same_lines(piece, met):
                    if same_region is not None or index in same or not self._is_same(piece, met):
                        return _Overlap(piece=piece, met=met)
                    same[index], same_region = piece, met
                elif met.end <= piece.start:
                    shift, above = met.shift, False
                    if deletes_lines and met.start == met.end == cut_above:
                        return _Overlap(piece=piece, met=met)  # both neighbours of the step's insertion are deleted
                else:
                    below = False
                if piece.start == piece.end and not (deletes_lines or above or below or piece.is_applied):
                    return _Overlap(piece=piece, met=met)  # both neighbours of an insertion are gone
                index += 1
            cut_above = piece.end if deletes_lines else -1
            if same_region is not None:
                moved.append(self._applied(piece, same_region))
            else:
                moved.append(replace(piece, start=piece.start + shift, end=piece.end + shift, above=above, below=below))
        return self._conflict_next_to(same) or (moved, same)

    def _conflict_next_to(self, same: Mapping[int, _Piece]) -> _Overlap | None:
        """Return the first piece that the step made too while it changed the same place further.

        Split into two steps, that would be a conflict, and the result must not depend on how a change is split into
        steps.
        """
        ends = [met.end for met in self.theirs] if same else []
        for index, piece in same.items():
            made = self._covering(piece, self.theirs[index])
            other = bisect_left(ends, made.start)
            while other < len(ends) and (met := self.theirs[other]).start <= made.end:
                if other not in same and _concern_same_lines(made, met):
                    return _Overlap(piece=piece, met=met)
                other += 1
        return None

    def _is_same(self, piece: _Piece, met: _ChangedRegion) -> bool:
        """Return whether both sides certainly make the same change of the same lines."""
        if piece.is_applied:
            return False  # any later change here may revert it
        start, end = min(piece.start, met.start), max(piece.end, met.end)
        if any(piece.region.texts) and self.lines.may_be_inserted_at(start, end):
            return False  # the piece may insert what a step deleted here
        if not self.is_guessed:
            return (met.start, met.end, met.texts) == (piece.start, piece.end, piece.region.texts)
        if self.lines.may_be_inserted(start, end):
            return False  # the piece may delete what a step inserted here
        lines = _lines_between(self.before, start, end)
        return met.over(lines, start) == piece.region.over(lines, start - piece.shift)

    def _applied(self, piece: _Piece, met: _ChangedRegion) -> _Piece:
        """Return the piece, marked as applied, after the step that made it too."""
        made = self._covering(piece, met)
        first = met.hunks[0].new_start - met.hunks[0].old_start
        return replace(made, start=made.start + first, end=made.end + met.shift)

    def _covering(self, piece: _Piece, met: _ChangedRegion) -> _Piece:
        """Return the piece, marked as applied, before the step; it covers the lines of both sides."""
        start, end = min(piece.start, met.start), max(piece.end, met.end)
        hunks, shift = piece.region.hunks, piece.shift
        spans = [(hunk.old_start + shift, hunk.old_end + shift) for hunk in hunks]
        deleted = frozenset(line for span in spans for line in _lines_between(self.before, *span))
        return replace(piece, start=start, end=end, is_applied=True, is_guessed=self.is_guessed, both_deleted=deleted)


def _lines_between(text: bytes, start: int, end: int) -> list[bytes]:
    """Return the lines from `start` to `end` of the closed text."""
    whole = closed(text)
    at = lines_end(whole, 0, start)
    return split_lines(whole[at : lines_end(whole, at, end - start)])


def _concern_same_lines(piece: _Piece, met: _ChangedRegion) -> bool:
    """Return whether a piece and a region of a step concern the same lines, or the same place between two lines."""
    if piece.is_applied:
        # Lines inserted next to a deletion may be the deleted ones.
        touches = any(hunk.new_count < hunk.old_count for hunk in piece.region.hunks) and met.grows
        # Lines deleted next to an insertion found by comparison may be the inserted ones.
        touches = touches or (piece.is_guessed and piece.region.grows and met.deletes_lines)
        touches = touches or any(not piece.both_deleted.isdisjoint(split_lines(text)) for text in met.texts)
    else:
        # The order of two insertions at one place is unknown.
        touches = not (piece.region.deletes_lines or met.deletes_lines)
    if touches:
        return met.start <= piece.end and piece.start <= met.end
    return met.start < piece.end and piece.start < met.end


def _rebase_conflict(found: _Overlap, rest: Sequence[TextStep]) -> RebaseConflict:
    region = found.piece.region
    start, end = found.met.hunks[0].new_start, found.met.hunks[-1].new_end
    for text_step in rest:
        start, end = _moved_line(start, text_step.hunks, end=False), _moved_line(end, text_step.hunks, end=True)
    return RebaseConflict(
        hunk=region.first + 1,
        read_start=region.hunks[0].old_start + 1,
        read_count=region.hunks[-1].old_end - region.hunks[0].old_start,
        start=start + 1,
        count=max(0, end - start),
    )


def _moved_line(line: int, hunks: Sequence[Hunk], *, end: bool) -> int:
    """Return where the upper (`end`: lower) bound of some lines is after a step, including lines inserted there."""
    shift = 0
    for hunk in hunks:
        if hunk.old_end < line or (hunk.old_end == line and not end):
            shift = hunk.new_end - hunk.old_end
        elif hunk.old_start < line:
            return hunk.new_end if end else hunk.new_start
    return line + shift


def _apply_pieces(text: bytes, pieces: Sequence[_Piece], *, ends: bool) -> tuple[bytes, tuple[Hunk, ...]]:
    """Return `text` with the pieces applied, and the hunks that lead there; hunks that touch become one."""
    lines = split_lines(closed(text))
    made: list[bytes] = []
    hunks: list[Hunk] = []
    at = new_at = 0
    for piece in pieces:
        if piece.is_applied:
            continue
        for wanted, inserted in zip(piece.region.hunks, piece.region.texts, strict=True):
            start = wanted.old_start + piece.shift
            made += lines[at:start]
            made.append(inserted)
            new_at += start - at
            hunk = Hunk(start, wanted.old_count, new_at, wanted.new_count)
            at, new_at = hunk.old_end, hunk.new_end
            if hunks and hunks[-1].old_end == hunk.old_start:
                last = hunks.pop()
                old_count, new_count = last.old_count + hunk.old_count, last.new_count + hunk.new_count
                hunk = Hunk(last.old_start, old_count, last.new_start, new_count)
            hunks.append(hunk)
    content = b"".join([*made, *lines[at:]])
    return content if ends else content.removesuffix(b"\n"), tuple(hunks)
