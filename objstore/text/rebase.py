"""Rebasing: a change made to one version of a text, placed in a later version of it.

The later version is known by the steps that led to it, each as hunks. A part of the change moves with the lines that
it is about: what a step did above shifts it, what a step did below leaves it, and where both are about the same lines
nothing is guessed. The rules are the weave's (see `weave`): lines directly beside each other are independent, and an
insertion needs one of its two neighbours, with nothing put between them. What both made alike, byte for byte, is there
already, if no later step was about these lines.

A comparison can't say which of several equal lines came or went. A hunk that one found, of a step or of the change,
stands for every place to which what it takes out or puts in slides over equal lines: all these are lines that it is
about, as one stretch. So there are stretches of the change and stretches of a step, and one of each may be the same.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Final

from objstore.fastclass import replace, value
from objstore.text.diff import diff_lines
from objstore.text.hunks import Hunk, inserted_texts
from objstore.text.lines import closed, is_closed, lines_end, split_lines

__all__ = ["RebaseConflict", "Rebased", "TextStep", "compared", "rebased"]


_MISSING: Final = 1  # the line lacks its newline wherever it is the last one
_SAID: Final = 2  # that is by the change, so that no step says otherwise
_PUT_IN: Final = 4  # a step put it in, or perhaps
_GONE: Final = 8  # a step took lines out directly above, or perhaps

_MOST_WORK: Final = 1 << 16
"""Lines that are compared to see how far the parts of one hunk slide."""


@value
class TextStep:
    """A step from one version of a text to the next."""

    hunks: tuple[Hunk, ...]
    after: bytes
    compared: bool = False  # whether the hunks were found by comparison; else they are the lines that were meant


@value
class Rebased:
    """What the change makes of the later version."""

    content: bytes
    hunks: tuple[Hunk, ...]  # from the later version to `content`; () where it holds the change already


@value
class RebaseConflict:
    """A hunk of the change and the later version are about the same lines."""

    hunk: int  # of the change, from 1
    read_start: int  # lines of the version that the change was made to, from 1
    read_count: int  # 0: it inserts above `read_start`
    start: int  # what stands there now: lines of the later version, from 1
    count: int  # 0: nothing; what was there is gone


@value
class _ChangedRegion:
    """Lines that one side is about, as a whole, and what it makes of them."""

    start: int
    end: int
    first: int  # of its hunks, from 0
    hunks: tuple[Hunk, ...]
    texts: tuple[bytes, ...]  # closed: what each puts in

    @property
    def takes_out(self) -> bool:
        return any(hunk.old_count for hunk in self.hunks)

    @property
    def is_exact(self) -> bool:
        """Return whether these are the lines of one hunk, and no others."""
        return len(self.hunks) == 1 and (self.start, self.end) == (self.hunks[0].old_start, self.hunks[0].old_end)

    @property
    def shift(self) -> int:
        """Return how far what is below the stretch moves."""
        return self.hunks[-1].new_end - self.hunks[-1].old_end

    @property
    def grows(self) -> bool:
        return any(hunk.new_count > hunk.old_count for hunk in self.hunks)

    @property
    def growth(self) -> int:
        return sum(hunk.new_count - hunk.old_count for hunk in self.hunks)

    def over(self, lines: Sequence[bytes], above: int) -> bytes:
        """Return what becomes of `lines`, which begin `above` lines further up than the text its hunks are about."""
        made = list(lines)
        for hunk, text in zip(reversed(self.hunks), reversed(self.texts), strict=True):
            made[hunk.old_start - above : hunk.old_end - above] = [text]
        return b"".join(made)


@value
class _Piece:
    """A stretch of the change on its way: which lines it is about now."""

    stretch: _ChangedRegion
    start: int
    end: int
    above: bool = True  # of an insertion: whether its upper neighbour, or the beginning, is still what it was
    below: bool = True
    is_there: bool = False  # whether a step did the same: the lines are those that it left, and stay what they are
    is_guessed: bool = False  # once it is there: whether a comparison says so
    taken: frozenset[bytes] = frozenset()  # and the lines that both took out

    @property
    def shift(self) -> int:
        """Return how far it has come, while it is not there."""
        return self.start - self.stretch.start


def compared(before: bytes, after: bytes) -> tuple[TextStep, ...]:
    """Return the step between two versions of which nothing is known but their bytes; none where they are the same."""
    return () if before == after else (TextStep(hunks=diff_lines(before, after), after=after, compared=True),)


class _Lines:
    """What is known of each line of a text on its way."""

    def __init__(self, base: bytes, made: bytes, hunks: Sequence[Hunk]) -> None:
        """Begin with `base`, of which the change makes `made`."""
        self._missing = _MISSING if not is_closed(made) else 0
        self._keeps = is_closed(base) is is_closed(made)
        count = closed(base).count(b"\n")
        self._marks = bytearray(count + 1)  # the last one is for the end of the text
        if not is_closed(base):
            self._marks[count - 1] = _MISSING
        last = count - 1  # of `made`, where it was there before
        self._puts_in_last = False
        if hunks and hunks[-1].old_end == count:
            self._puts_in_last = hunks[-1].new_count > 0
            last = -1 if self._puts_in_last else hunks[-1].old_start - 1
        if last >= 0 and self._marks[last] != self._missing:
            self._marks[last] = _SAID | self._missing

    def may_be_inserted(self, start: int, end: int) -> bool:
        """Return whether a step may have put in any of these lines."""
        return any(mark & _PUT_IN for mark in self._marks[start:end])

    def may_be_inserted_at(self, start: int, end: int) -> bool:
        """Return whether a step may have taken out or changed what stood between, above or below these lines."""
        around = self._marks[max(0, start - 1) : end + 1]
        return any(mark & (_PUT_IN | _GONE) for mark in around)

    def step(self, theirs: Sequence[_ChangedRegion], same: Mapping[int, _Piece], after: bytes) -> None:
        """Go on to the text behind a step. `same`: by place in `theirs`, the piece that is made alike."""
        marks = self._marks
        for index in range(len(theirs) - 1, -1, -1):
            met, piece = theirs[index], same.get(index)
            start, end = met.start, met.end
            if piece is not None:
                start, end = min(start, piece.start), max(end, piece.end)
            is_put_in = any(met.texts) or self.may_be_inserted(start, end)
            if piece is not None:
                _mark(marks, piece.stretch, piece.shift)  # which lines stay is known better to the change
            else:
                # What slides is taken for the uppermost: what is said of the last line holds for the one that stays.
                _mark(marks, met, 0 if met.is_exact or len(met.hunks) > 1 else met.start - met.hunks[0].old_start)
            end += met.growth
            for line in range(start, end):
                marks[line] |= _PUT_IN * is_put_in
            for line in range(start, end + 1):
                marks[line] |= _GONE * met.takes_out
        if len(marks) > 1 and not marks[-2] & _SAID:
            marks[-2] = marks[-2] & ~_MISSING | (0 if is_closed(after) else _MISSING)

    def end(self, pieces: Sequence[_Piece]) -> bool:
        """Return whether the text ends in a newline once the change's pieces are in their places."""
        marks, missing, below = self._marks, self._missing, 0
        if self._puts_in_last:
            last = pieces[-1]
            hunk = last.stretch.hunks[-1]
            end = last.end if last.is_there else hunk.old_end + last.shift
            below = len(marks) - end
            if self._keeps and (last.is_there or hunk.old_count):
                missing = marks[end - 1]  # who writes the line anew and leaves its end leaves it as it is
        for piece in reversed(pieces):
            if not piece.is_there:
                _mark(marks, piece.stretch, piece.shift)
        if self._puts_in_last:
            marks[-1 - below] = missing
        return len(marks) == 1 or not marks[-2] & _MISSING


def _mark(marks: bytearray, stretch: _ChangedRegion, shift: int) -> None:
    """Put marks of their own in the place of those of the lines that a stretch's hunks take out."""
    for hunk in reversed(stretch.hunks):
        start = hunk.old_start + shift
        marks[start : start + hunk.old_count] = bytes([_PUT_IN]) * hunk.new_count


def rebased(
    base: bytes, made: bytes, hunks: Sequence[Hunk], text_steps: Sequence[TextStep], *, is_compared: bool = False
) -> Rebased | RebaseConflict:
    """Return what the change from `base` to `made` is after `passages`, or the first of its hunks that does not fit.

    `is_compared`: whether its hunks were found by comparison. Raises ValueError unless they lead from `base` to `made`
    and the passages on from `base`, each from the text before it.
    """
    stretches = _stretches(base, made, hunks, is_compared=is_compared)
    pieces = [_Piece(stretch=stretch, start=stretch.start, end=stretch.end) for stretch in stretches]
    lines = _Lines(base, made, hunks)
    before = base
    for number, text_step in enumerate(text_steps):
        theirs = _stretches(before, text_step.after, text_step.hunks, is_compared=text_step.compared)
        step = _Step(before=before, theirs=theirs, lines=lines, is_guessed=is_compared or text_step.compared)
        carried = step.carried(pieces)
        if isinstance(carried, _Overlap):
            return _rebase_conflict(carried, text_steps[number + 1 :])
        pieces, same = carried
        lines.step(theirs, same, text_step.after)
        before = text_step.after
    content, found = _placed(before, pieces, ends=lines.end(pieces))
    return Rebased(content=content, hunks=found)


def _stretches(before: bytes, after: bytes, hunks: Sequence[Hunk], *, is_compared: bool) -> list[_ChangedRegion]:
    """Return what a side is about, in order, nothing twice. Raises ValueError as `inserted_texts` does."""
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
        stretch = _ChangedRegion(start=start, end=end, first=number, hunks=(hunk,), texts=(text,))
        if found and start < found[-1].end:
            last = found.pop()
            both = (*last.hunks, hunk), (*last.texts, text)
            stretch = replace(last, end=end, hunks=both[0], texts=both[1])
        found.append(stretch)
    return found


def _slides(lines: Sequence[bytes], hunk: Hunk, moving: Sequence[bytes], low: int, high: int) -> tuple[int, int]:
    """Return how far what a hunk takes out, or what it puts in, slides up and down between two lines.

    Where a hunk replaces lines, its first ones may slide up without the others, and its last ones down: a comparison
    that takes those out or puts them in there is as short. If that takes long to find out, they slide all the way.
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
    """Return how many of the first lines repeat the last `count` of a text over and over; all, if it is over `most`."""
    first = len(text) - count
    for at, line in enumerate(islice(lines, most)):
        if line != text[first + at % count]:
            return at
    return len(lines)


@value
class _Overlap:
    """A piece of the change and a stretch of a step that are not the same, about the same lines."""

    piece: _Piece
    met: _ChangedRegion


@value
class _Step:
    """A step, about to be taken."""

    before: bytes
    theirs: Sequence[_ChangedRegion]
    lines: _Lines
    is_guessed: bool  # whether either side's hunks were found by comparison

    def carried(self, pieces: Sequence[_Piece]) -> tuple[list[_Piece], dict[int, _Piece]] | _Overlap:
        """Return the pieces behind the step, and by place in `theirs` those that it made alike."""
        ends = [met.end for met in self.theirs]
        moved: list[_Piece] = []
        same: dict[int, _Piece] = {}
        cut_above = -1  # the line below one that the change takes out
        for piece in pieces:
            index = bisect_left(ends, piece.start)
            shift = self.theirs[index - 1].shift if index else 0
            above, below, alike = piece.above, piece.below, None
            takes_out = piece.stretch.takes_out and not piece.is_there
            while index < len(ends) and self.theirs[index].start <= piece.end:
                met = self.theirs[index]
                if _meet(piece, met):
                    if alike is not None or index in same or not self._is_same(piece, met):
                        return _Overlap(piece=piece, met=met)
                    same[index], alike = piece, met
                elif met.end <= piece.start:
                    shift, above = met.shift, False
                    if takes_out and met.start == met.end == cut_above:
                        return _Overlap(piece=piece, met=met)  # both neighbours of what it puts in go
                else:
                    below = False
                if piece.start == piece.end and not (takes_out or above or below or piece.is_there):
                    return _Overlap(piece=piece, met=met)  # both neighbours of an insertion are gone
                index += 1
            cut_above = piece.end if takes_out else -1
            if alike is not None:
                moved.append(self._there(piece, alike))
            else:
                moved.append(replace(piece, start=piece.start + shift, end=piece.end + shift, above=above, below=below))
        return self._collision_beside(same) or (moved, same)

    def _collision_beside(self, same: Mapping[int, _Piece]) -> _Overlap | None:
        """Return the first piece that the step made alike and did more to, in the same place.

        As two steps that would be a clash, and it must not depend on how many steps there were.
        """
        ends = [met.end for met in self.theirs] if same else []
        for index, piece in same.items():
            made = self._made(piece, self.theirs[index])
            other = bisect_left(ends, made.start)
            while other < len(ends) and (met := self.theirs[other]).start <= made.end:
                if other not in same and _meet(made, met):
                    return _Overlap(piece=piece, met=met)
                other += 1
        return None

    def _is_same(self, piece: _Piece, met: _ChangedRegion) -> bool:
        """Return whether both make the same of the same lines, as far as that can be known."""
        if piece.is_there:
            return False  # whatever is done there may take it back
        start, end = min(piece.start, met.start), max(piece.end, met.end)
        if any(piece.stretch.texts) and self.lines.may_be_inserted_at(start, end):
            return False  # what it puts in may be what was taken out there
        if not self.is_guessed:
            return (met.start, met.end, met.texts) == (piece.start, piece.end, piece.stretch.texts)
        if self.lines.may_be_inserted(start, end):
            return False  # what it takes out may be what was put in there
        lines = _cut(self.before, start, end)
        return met.over(lines, start) == piece.stretch.over(lines, start - piece.shift)

    def _there(self, piece: _Piece, met: _ChangedRegion) -> _Piece:
        """Return the piece behind the step that made it alike."""
        made = self._made(piece, met)
        first = met.hunks[0].new_start - met.hunks[0].old_start
        return replace(made, start=made.start + first, end=made.end + met.shift)

    def _made(self, piece: _Piece, met: _ChangedRegion) -> _Piece:
        """Return the piece that the step makes alike, before the step: it stands for all that either was about."""
        start, end = min(piece.start, met.start), max(piece.end, met.end)
        hunks, shift = piece.stretch.hunks, piece.shift
        taken = [line for hunk in hunks for line in _cut(self.before, hunk.old_start + shift, hunk.old_end + shift)]
        return replace(piece, start=start, end=end, is_there=True, is_guessed=self.is_guessed, taken=frozenset(taken))


def _cut(text: bytes, start: int, end: int) -> list[bytes]:
    """Return some lines of the closed text."""
    whole = closed(text)
    at = lines_end(whole, 0, start)
    return split_lines(whole[at : lines_end(whole, at, end - start)])


def _meet(piece: _Piece, met: _ChangedRegion) -> bool:
    """Return whether a piece and a stretch are about the same lines, or the same place between two."""
    if piece.is_there:
        # Lines put in directly beside, where some were taken out, may be these.
        touches = any(hunk.new_count < hunk.old_count for hunk in piece.stretch.hunks) and met.grows
        # And those taken out, where a comparison says which were put in.
        touches = touches or (piece.is_guessed and piece.stretch.grows and met.takes_out)
        touches = touches or any(not piece.taken.isdisjoint(split_lines(text)) for text in met.texts)
    else:
        touches = not (piece.stretch.takes_out or met.takes_out)  # nothing says in which order both put in
    if touches:
        return met.start <= piece.end and piece.start <= met.end
    return met.start < piece.end and piece.start < met.end


def _rebase_conflict(found: _Overlap, rest: Sequence[TextStep]) -> RebaseConflict:
    stretch = found.piece.stretch
    start, end = found.met.hunks[0].new_start, found.met.hunks[-1].new_end
    for text_step in rest:
        start, end = _followed(start, text_step.hunks, end=False), _followed(end, text_step.hunks, end=True)
    return RebaseConflict(
        hunk=stretch.first + 1,
        read_start=stretch.hunks[0].old_start + 1,
        read_count=stretch.hunks[-1].old_end - stretch.hunks[0].old_start,
        start=start + 1,
        count=max(0, end - start),
    )


def _followed(line: int, hunks: Sequence[Hunk], *, end: bool) -> int:
    """Return where the upper (`end`: the lower) bound of some lines is after a step, what it took in included."""
    shift = 0
    for hunk in hunks:
        if hunk.old_end < line or (hunk.old_end == line and not end):
            shift = hunk.new_end - hunk.old_end
        elif hunk.old_start < line:
            return hunk.new_end if end else hunk.new_start
    return line + shift


def _placed(text: bytes, pieces: Sequence[_Piece], *, ends: bool) -> tuple[bytes, tuple[Hunk, ...]]:
    """Return `text` with the pieces in their places, and the hunks that lead there; what touches is one hunk."""
    lines = split_lines(closed(text))
    made: list[bytes] = []
    hunks: list[Hunk] = []
    at = new_at = 0
    for piece in pieces:
        if piece.is_there:
            continue
        for wanted, put_in in zip(piece.stretch.hunks, piece.stretch.texts, strict=True):
            start = wanted.old_start + piece.shift
            made += lines[at:start]
            made.append(put_in)
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
