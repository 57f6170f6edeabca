"""Rebasing: a change made to one version of a text, placed in a later version of it.

The later version is known by the steps that led to it, each as hunks. A hunk of the change moves with the lines that
it is about: what a step did above shifts it, what a step did below leaves it, and where both are about the same lines
nothing is guessed. The rules are the weave's (see `weave`): lines directly beside each other are independent, and an
insertion needs one of its two neighbours, with nothing put between them. What both made alike, byte for byte, is there
already, if no later step was about these lines.

A comparison can't say which of several equal lines came or went. A hunk that one found stands for every place to which
it slides over equal lines, and all these are lines that it is about.
"""

from collections.abc import Sequence
from enum import Enum, auto
from typing import Final

from objstore.diff import diff_lines
from objstore.hunks import Hunk, inserted_texts
from objstore.lines import closed, is_closed, split_lines
from objstore.values import replace, value

__all__ = ["Clash", "Passage", "Rebased", "compared", "rebased"]


_MISSING: Final = 1
_SAID: Final = 2  # by the change, so that no step says otherwise


@value
class Passage:
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
class Clash:
    """A hunk of the change and the later version are about the same lines."""

    hunk: int  # of the change, from 1
    read_start: int  # lines of the version that the change was made to, from 1
    read_count: int  # 0: it inserts above `read_start`
    start: int  # what stands there now: lines of the later version, from 1
    count: int  # 0: nothing; what was there is gone


class _Meeting(Enum):
    ABOVE = auto()
    BELOW = auto()
    SAME = auto()  # both made the same of the same lines
    CLASH = auto()


@value
class _Piece:
    """A hunk of the change on its way: the lines that give way, and the closed text that takes their place."""

    start: int
    count: int
    text: bytes
    above: bool = True  # of an insertion: whether its upper neighbour, or the beginning, is still what it was
    below: bool = True
    is_there: bool = False  # whether a step did the same: the lines are those that it left, and stay what they are

    @property
    def end(self) -> int:
        return self.start + self.count


@value
class _Theirs:
    """A hunk of a step, the closed text that it puts in, and the lines that it is about."""

    hunk: Hunk
    text: bytes
    start: int  # of the lines before the step
    end: int
    lines: tuple[bytes, ...] = ()  # these lines, where it slides over any

    def makes(self, start: int, end: int, text: bytes) -> bytes:
        """Return what these lines are with some of them replaced."""
        return b"".join([*self.lines[: start - self.start], text, *self.lines[end - self.start :]])


def compared(before: bytes, after: bytes) -> tuple[Passage, ...]:
    """Return the step between two versions of which nothing is known but their bytes; none where they are the same."""
    return () if before == after else (Passage(hunks=diff_lines(before, after), after=after, compared=True),)


class _Endings:
    """Of each line of a text on its way: whether it lacks its newline wherever it is the last one."""

    def __init__(self, base: bytes, made: bytes, hunks: Sequence[Hunk]) -> None:
        """Begin with `base`, of which the change makes `made`."""
        self._missing = _MISSING if not is_closed(made) else 0
        self._keeps = is_closed(base) is is_closed(made)
        self._lines = bytearray(closed(base).count(b"\n"))
        if not is_closed(base):
            self._lines[-1] = _MISSING
        last = len(self._lines) - 1  # of `made`, where it was there before
        self._puts_in_last = False
        if hunks and hunks[-1].old_end == len(self._lines):
            self._puts_in_last = hunks[-1].new_count > 0
            last = -1 if self._puts_in_last else hunks[-1].old_start - 1
        if last >= 0 and self._lines[last] != self._missing:
            self._lines[last] = _SAID | self._missing

    def step(self, theirs: Sequence[_Theirs], after: bytes) -> None:
        """Go on to the text behind a step."""
        for met in reversed(theirs):
            self._lines[met.start : met.start + met.hunk.old_count] = bytes(met.hunk.new_count)
        if self._lines and not self._lines[-1] & _SAID:
            self._lines[-1] = _MISSING if not is_closed(after) else 0

    def end(self, pieces: Sequence[_Piece]) -> bool:
        """Return whether the text ends in a newline once the change's pieces are in their places."""
        lines, missing, below = self._lines, self._missing, 0
        if self._puts_in_last:
            last = pieces[-1]
            below = len(lines) - last.end
            if self._keeps and last.count:
                missing = lines[last.end - 1]  # who writes the line anew and leaves its end leaves it as it is
        for piece in reversed(pieces):
            if not piece.is_there:
                lines[piece.start : piece.end] = bytes(piece.text.count(b"\n"))
        if self._puts_in_last:
            lines[-1 - below] = missing
        return not (lines and lines[-1] & _MISSING)


def rebased(base: bytes, made: bytes, hunks: Sequence[Hunk], passages: Sequence[Passage]) -> Rebased | Clash:
    """Return what the change from `base` to `made` is after `passages`, or the first of its hunks that does not fit.

    Raises ValueError unless `hunks` lead from `base` to `made` and the passages on from `base`, each from the text
    before it.
    """
    texts = inserted_texts(base, made, hunks)
    pieces = [
        _Piece(start=hunk.old_start, count=hunk.old_count, text=text) for hunk, text in zip(hunks, texts, strict=True)
    ]
    before = base
    endings = _Endings(base, made, hunks)
    for number, passage in enumerate(passages):
        theirs = _theirs(before, passage)
        endings.step(theirs, passage.after)
        for index, piece in enumerate(pieces):
            met = _carried(piece, theirs)
            if isinstance(met, Hunk):
                return _clash(index, hunks[index], met, passages[number + 1 :])
            pieces[index] = met
        before = passage.after
    kept = [piece for piece in pieces if not piece.is_there]
    content, found = _placed(before, kept, ends=endings.end(pieces))
    return Rebased(content=content, hunks=found)


def _theirs(before: bytes, passage: Passage) -> list[_Theirs]:
    """Return the hunks of a step. Raises ValueError as `inserted_texts` does."""
    hunks = passage.hunks
    texts = inserted_texts(before, passage.after, hunks)
    theirs = [
        _Theirs(hunk=hunk, text=text, start=hunk.old_start, end=hunk.old_end)
        for hunk, text in zip(hunks, texts, strict=True)
    ]
    if passage.compared and not all(hunk.old_count and hunk.new_count for hunk in hunks):
        lines = split_lines(closed(before))
        lows = [0, *(hunk.old_end for hunk in hunks)]
        highs = [*(hunk.old_start for hunk in hunks[1:]), len(lines)]
        return [_slid(met, lines, low, high) for met, low, high in zip(theirs, lows, highs, strict=False)]
    return theirs


def _slid(met: _Theirs, lines: Sequence[bytes], low: int, high: int) -> _Theirs:
    """Return an insertion or deletion with all the lines, `low` to `high` at most, over which it slides."""
    start, end = met.start, met.end
    if start < end and met.text:
        return met
    moving = split_lines(met.text) or lines[start:end]
    up = down = 0
    while low < start - up and lines[start - up - 1] == moving[-1 - up % len(moving)]:
        up += 1
    while end + down < high and lines[end + down] == moving[down % len(moving)]:
        down += 1
    start, end = start - up, end + down
    return replace(met, start=start, end=end, lines=tuple(lines[start:end]))


def _carried(piece: _Piece, theirs: Sequence[_Theirs]) -> _Piece | Hunk:
    """Return the piece behind a step, or the hunk of the step that it clashes with."""
    shift = 0
    for met in theirs:
        hunk = met.hunk
        match _meeting(piece, met):
            case _Meeting.SAME:
                return replace(piece, start=hunk.new_start, count=hunk.new_count, is_there=True)
            case _Meeting.CLASH:
                return hunk
            case _Meeting.ABOVE:
                shift += hunk.new_count - hunk.old_count
                if hunk.old_end == piece.start:
                    piece = replace(piece, above=False)
            case _Meeting.BELOW:
                if hunk.old_start == piece.end:
                    piece = replace(piece, below=False)
        if not (piece.count or piece.above or piece.below or piece.is_there):
            return hunk  # both neighbours of an insertion are gone
    return replace(piece, start=piece.start + shift)


def _meeting(piece: _Piece, met: _Theirs) -> _Meeting:
    hunk = met.hunk
    if piece.is_there:
        # More lines than before, where the step deleted some, may be these.
        if not piece.count and hunk.new_count > hunk.old_count and met.start <= piece.start <= met.end:
            return _Meeting.CLASH
    elif _made_alike(piece, met):
        return _Meeting.SAME
    if not piece.count and not hunk.old_count:
        # Where both insert, nothing says in which order.
        clash = met.start <= piece.start <= met.end
    else:
        clash = met.start < piece.end and piece.start < met.end
    if clash:
        return _Meeting.CLASH
    return _Meeting.ABOVE if hunk.old_end <= piece.start else _Meeting.BELOW


def _made_alike(piece: _Piece, met: _Theirs) -> bool:
    hunk = met.hunk
    if (hunk.old_start, hunk.old_count) == (piece.start, piece.count):
        return met.text == piece.text
    if not met.lines or piece.start < met.start or met.end < piece.end:
        return False
    there = met.makes(hunk.old_start, hunk.old_end, met.text)
    return there == met.makes(piece.start, piece.end, piece.text)


def _clash(index: int, wanted: Hunk, met: Hunk, rest: Sequence[Passage]) -> Clash:
    start, end = met.new_start, met.new_end
    for passage in rest:
        start, end = _followed(start, passage.hunks, end=False), _followed(end, passage.hunks, end=True)
    return Clash(
        hunk=index + 1,
        read_start=wanted.old_start + 1,
        read_count=wanted.old_count,
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
    """Return `text` with the pieces in their places, and the hunks that lead there; pieces that touch are one."""
    lines = split_lines(closed(text))
    made: list[bytes] = []
    hunks: list[Hunk] = []
    at = new_at = 0
    for piece in pieces:
        made += lines[at : piece.start]
        made.append(piece.text)
        new_at += piece.start - at
        hunk = Hunk(piece.start, piece.count, new_at, piece.text.count(b"\n"))
        if hunks and hunks[-1].old_end == hunk.old_start:
            last = hunks.pop()
            old_count, new_count = last.old_count + hunk.old_count, last.new_count + hunk.new_count
            hunk = Hunk(last.old_start, old_count, last.new_start, new_count)
        hunks.append(hunk)
        at, new_at = piece.end, hunk.new_end
    content = b"".join([*made, *lines[at:]])
    return content if ends else content.removesuffix(b"\n"), tuple(hunks)
