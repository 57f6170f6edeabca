"""Write diff3-style conflict markers around hunks that can't be live together, and find them again.

A decision leaves three texts to compare: what it makes of the file once the conflicting hunks are set aside (ours), the
file without the set-aside hunks before (the base), and the file with them (theirs). In a weave all three consist of the
same lines in the same order, some shown and some not, so nothing has to be matched. Where setting hunks aside makes no
difference, ours is written as it is; everywhere else the three are written one below the other.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Final

from objstore.text.hunks import Hunk
from objstore.text.lines import split_lines
from objstore.values.fastclass import value, variable
from objstore.weave.runs import text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from objstore.weave.runs import Run, UnitIndex, WeaveUnit

__all__ = ["Labels", "MarkedText", "labels_in", "marked", "regions_in"]

_WIDTH: Final = 7
"""Signs in a marker; more are used if the text has lines that look like a marker."""

_SIGNS: Final = (b"<", b"|", b"=", b">")


@value
class Labels:
    """The labels after the markers of one region."""

    ours: bytes
    base: bytes
    theirs: bytes


@value
class MarkedText:
    """A text with markers in it."""

    content: bytes
    hunks: tuple[Hunk, ...]  # from ours to `content`; all are insertions
    regions: int


@variable
class _Region:
    """Consecutive runs that the three texts do not all show or all hide."""

    runs: list[Run]
    ours: bytes = b""
    base: bytes = b""
    theirs: bytes = b""


def marked(
    runs: Sequence[Run],
    shown: Sequence[tuple[int, int, int]],
    labels: Callable[[set[UnitIndex]], Labels],
    *,
    is_open: bool,
) -> MarkedText | None:
    """Return ours with the three texts written one below the other wherever base and theirs differ.

    `shown`: for each run, whether ours, base and theirs show it. `is_open`: whether the last line of ours lacks its
    newline. `labels`: called with the units that inserted or deleted any line of a region, returns the texts of its
    markers. None if one of the three has no file, or no region differs; markers can't show these cases.
    """
    pieces = list(_pieces(runs, shown))
    places = [piece for piece in pieces if isinstance(piece, _Region)]
    if not places or any(not run.lines for region in places for run in region.runs):
        return None
    width = _width(text for region in places for text in (region.ours, region.base, region.theirs))
    written: list[bytes] = []
    hunks: list[Hunk] = []
    old_line = new_line = 0
    for piece in pieces:
        if isinstance(piece, bytes):
            written.append(piece)
            old_line, new_line = old_line + piece.count(b"\n"), new_line + piece.count(b"\n")
            continue
        above, below = _written(piece, labels(_units(piece.runs)), width)
        for text in (above + below,) if not piece.ours else (above, piece.ours, below):
            written.append(text)
            lines = text.count(b"\n")
            if text is piece.ours:
                old_line += lines
            else:
                hunks.append(Hunk(old_line, 0, new_line, lines))
            new_line += lines
    content = b"".join(written)
    if is_open and isinstance(pieces[-1], bytes):
        content = content[:-1]
    return MarkedText(content=content, hunks=tuple(hunks), regions=len(places))


def _pieces(runs: Sequence[Run], shown: Sequence[tuple[int, int, int]]) -> Iterator[bytes | _Region]:
    """Yield the text in order: joined bytes where no markers are needed, and the regions that need them."""
    clean: list[bytes] = []
    differing: list[tuple[Run, tuple[int, int, int]]] = []

    def region() -> Iterator[bytes | _Region]:
        found = _Region(runs=[run for run, *_ in differing])
        found.ours = text_of(run for run, (ours, _, _) in differing if ours)
        found.base = text_of(run for run, (_, base, _) in differing if base)
        found.theirs = text_of(run for run, (_, _, theirs) in differing if theirs)
        if found.theirs in {found.base, found.ours}:
            clean.append(found.ours)
            return
        if text := b"".join(clean):
            yield text
        clean.clear()
        yield found

    for run, seen in zip(runs, shown, strict=True):
        if seen[0] == seen[1] == seen[2]:
            if not seen[0]:
                continue
            if differing:
                yield from region()
                differing = []
            clean.append(run.text)
        else:
            differing.append((run, seen))
    if differing:
        yield from region()
    if text := b"".join(clean):
        yield text


def _units(runs: Iterable[Run]) -> set[UnitIndex]:
    units: set[WeaveUnit] = set()
    for run in runs:
        units.add(run.inserter)
        units.update(run.deleters)
    return {unit.index for unit in units}


def _width(texts: Iterable[bytes]) -> int:
    """Return how many signs a marker needs so that no line of the texts begins with exactly as many."""
    lines = [line for text in texts for line in text.split(b"\n") if line[:1] in _SIGNS]
    taken = {len(line) - len(line.lstrip(line[:1])) for line in lines}
    return next(width for width in count(_WIDTH) if width not in taken)


def _written(region: _Region, labels: Labels, width: int) -> tuple[bytes, bytes]:
    """Return what is written above and below ours."""
    ends_in_cr = any(text.split(b"\n", 1)[0].endswith(b"\r") for text in (region.ours, region.base, region.theirs))
    end = b"\r\n" if ends_in_cr else b"\n"
    above = b"<" * width + b" " + labels.ours + end
    below = [
        b"|" * width + b" " + labels.base + end,
        region.base,
        b"=" * width + end,
        region.theirs,
        b">" * width + b" " + labels.theirs + end,
    ]
    return above, b"".join(below)


# ---- finding them again


def labels_in(after: bytes, hunks: Iterable[Hunk]) -> tuple[list[bytes], list[bytes]]:
    """Return the lines that open and the lines that close the regions which `hunks` wrote into `after`, in order."""
    lines = split_lines(after)
    openings: list[bytes] = []
    closings: list[bytes] = []
    for hunk in hunks:
        first, last = lines[hunk.new_start], lines[hunk.new_end - 1]
        if first.startswith(b"<" * _WIDTH):
            openings.append(first.rstrip(b"\r\n"))
        if last.startswith(b">" * _WIDTH):
            closings.append(last.rstrip(b"\r\n"))
    return openings, closings


def regions_in(content: bytes, openings: Iterable[bytes], closings: Iterable[bytes]) -> list[range]:
    """Return the lines, from 0, of each region of which `content` still has the opening or the closing line.

    If a region has lost one of the two, only the other one counts.
    """
    opens, closes = set(openings), set(closings)
    found: list[range] = []
    begun: int | None = None
    for number, line in enumerate(content.split(b"\n")):
        stripped = line.rstrip(b"\r")
        if stripped in opens:
            if begun is not None:
                found.append(range(begun, begun + 1))
            begun = number
        elif stripped in closes:
            found.append(range(number if begun is None else begun, number + 1))
            begun = None
    if begun is not None:
        found.append(range(begun, begun + 1))
    return found
