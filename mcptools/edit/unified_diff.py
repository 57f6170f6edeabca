"""Apply unified diffs to a file's bytes, only where every line of the diff matches the file.

Every context line and every removed line of a hunk must be in the file, byte for byte; a hunk that has neither only
fits an empty file. Hunks apply at the lines that they state if all of them fit there; otherwise each is placed by its
lines alone, which must occur exactly once in the file, in any order, and no two hunks may need the same line. There is
no fuzzy matching.

The end of the file is context too. A hunk that adds lines below its last line of context was made at the end of a
file, as `git apply` and GNU patch take it: it fits only there, so that it is not applied a second time where the file
has grown since. Likewise one that adds lines above its first line of context, and says that it begins at line 1, fits
only there. Where a hunk replaces lines instead, these say well enough where it belongs: the example of `revert_patch`
in its document is such a hunk, of the middle of a file.

One difference is allowed, because models send LF whatever they read: if the patch has no CRLF at all, its lines also
match lines of the file that differ only by ending in CRLF. The lines that such a hunk inserts get the ending of the
line that they replace or are inserted next to, or, if that is a last line without an ending, of the line above it. A
hunk whose header counted its lines wrong must occur exactly once, even at its stated line.

A patch that got CRLF on its way, in all lines and those of its header too, means LF in a file without CRLF (`in_lf`).
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import accumulate, chain, groupby, pairwise, repeat
from typing import Final, TypeAlias

from mcptools.edit.exact import Span
from objstore import split_lines

__all__ = [
    "AmbiguousContext",
    "Applied",
    "ContextMismatch",
    "DiffOutcome",
    "FilePatch",
    "HunksOverlap",
    "InvalidPatch",
    "PatchHunk",
    "PatchLine",
    "apply_patch",
]

_NOWHERE: Final = "/dev/null"
_REVERSED: Final = {" ": " ", "-": "+", "+": "-"}
_MAX_PLACES: Final = 20
"""Places that are reported of a hunk that fits more than once."""


class InvalidPatch(Exception):
    """The text is not a valid and unambiguous unified diff."""

    def __init__(self, reason: str, line: int = 0, *, hint: str = "") -> None:
        self.line = line  # of the patch, from 1; 0: the patch as a whole
        self.hint = hint  # a sentence that helps to correct the patch; "": the reason is enough
        super().__init__(f"Invalid patch format: {reason}" + (f" at line {line}" if line else ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchLine:
    """One line of a hunk's body."""

    mark: str  # " " context, "-" removed, "+" added
    text: bytes  # with its ending; a file's last line may have none
    number: int  # in the patch, from 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchHunk:
    """One hunk: the line that it states, and its lines."""

    start: int  # zero-based line of the old text
    lines: tuple[PatchLine, ...]
    counted: tuple[int, int] | None = None  # the wrong counts of old and new lines in its header; None: they are right

    @property
    def old(self) -> list[PatchLine]:
        """Return the lines that the file must have."""
        return [line for line in self.lines if line.mark != "+"]

    @property
    def new(self) -> list[PatchLine]:
        """Return the lines that the file will have."""
        return [line for line in self.lines if line.mark != "-"]

    @property
    def appends(self) -> bool:
        """Return whether its last lines are added below a line of context, and no line is below them."""
        above = next((line.mark for line in reversed(self.lines) if line.mark != "+"), "")
        return self.lines[-1].mark == "+" and above == " "

    @property
    def prepends(self) -> bool:
        """Return whether it says that it begins at line 1, and its first lines are added above a line of context."""
        below = next((line.mark for line in self.lines if line.mark != "+"), "")
        return self.lines[0].mark == "+" and below == " " and self.start == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePatch:
    """A unified diff of one file."""

    source: str | None  # as the header names it; None: the patch creates the file
    target: str | None  # None: the patch deletes the file
    hunks: tuple[PatchHunk, ...]  # (): only headers, which change nothing
    bridges: bool  # its LF may match the file's CRLF, because it has no CRLF of its own
    is_crlf: bool = False  # all its lines end in CRLF, those of its header too
    doubt: InvalidPatch | None = None  # the refusal if hunks with wrong counts don't apply; None: all counts are right
    more: InvalidPatch | None = None  # the refusal of a part that asks for more than changed lines; None: it doesn't
    is_copy: bool = False  # it leaves its source as it is
    is_rename: bool = False  # besides changed lines it asks for a rename only
    is_reverse: bool = False  # made by `reverse`: its hunks may lack context below them anywhere in the file
    later: tuple[int, ...] = ()  # at which hunks (from 0) further parts of the patch for the same file begin

    @property
    def names(self) -> tuple[str, str]:
        """Return the names of source and target without git's prefixes, `/dev/null` for no file."""
        source, target = self.source or _NOWHERE, self.target or _NOWHERE
        if (self.source is None or source.startswith("a/")) and (self.target is None or target.startswith("b/")):
            return source.removeprefix("a/"), target.removeprefix("b/")
        return source, target

    @property
    def parts(self) -> "list[FilePatch]":
        """Return the patch's parts for the file, in order."""
        bounds = pairwise((0, *self.later, len(self.hunks)))
        return [replace(self, hunks=self.hunks[start:end], later=()) for start, end in bounds]

    def joined(self, further: "FilePatch") -> "FilePatch":
        """Return the patch with a further part for the same file."""
        return replace(
            self,
            hunks=self.hunks + further.hunks,
            bridges=self.bridges and further.bridges,
            doubt=self.doubt or further.doubt,
            later=(*self.later, len(self.hunks), *(len(self.hunks) + at for at in further.later)),
        )

    @property
    def reverse(self) -> "FilePatch":
        """Return the patch that reverts this one, if this one was applied at its stated lines."""
        if self.later:
            last, *others = (part.reverse for part in reversed(self.parts))
            return reduce(FilePatch.joined, others, last)
        order = sorted(range(len(self.hunks)), key=lambda index: self.hunks[index].start)
        grown = (len(self.hunks[index].new) - len(self.hunks[index].old) for index in order)
        shifts = dict(zip(order, accumulate(grown, initial=0), strict=False))
        hunks = tuple(
            replace(
                hunk,
                start=hunk.start + shifts[index],
                lines=tuple(replace(line, mark=_REVERSED[line.mark]) for line in hunk.lines),
            )
            for index, hunk in enumerate(self.hunks)
        )
        return replace(self, source=self.target, target=self.source, hunks=hunks, is_reverse=not self.is_reverse)

    @property
    def split_at_cr(self) -> "FilePatch":
        """Return the patch for a file in which CR alone ends the lines, wherever it was made.

        Lines that a program counted by LF are as many as end in CR, and CR before LF is what a model added.
        """
        return replace(self, hunks=tuple(replace(hunk, lines=tuple(_split_at_cr(hunk.lines))) for hunk in self.hunks))

    @property
    def in_lf(self) -> "FilePatch":
        """Return the patch with LF for CRLF."""
        return replace(self, hunks=tuple(replace(hunk, lines=tuple(map(_in_lf, hunk.lines))) for hunk in self.hunks))

    def at(self, moved: Sequence[int]) -> "FilePatch":
        """Return the patch with each hunk moved down by the given number of lines."""
        hunks = zip(self.hunks, moved, strict=True)
        return replace(self, hunks=tuple(replace(hunk, start=hunk.start + lines) for hunk, lines in hunks))

    @property
    def added(self) -> int:
        """Return how many lines the patch adds."""
        return sum(line.mark == "+" for hunk in self.hunks for line in hunk.lines)

    @property
    def removed(self) -> int:
        """Return how many lines the patch removes."""
        return sum(line.mark == "-" for hunk in self.hunks for line in hunk.lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """Every hunk applied."""

    content: bytes
    spans: tuple[Span, ...]  # ascending; one for each run of changed lines
    moved: tuple[int, ...]  # for each hunk, how many lines below the stated line it was applied
    in_turn: bool = False  # whether each part was applied to what the parts before it left


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextMismatch:
    """A hunk fits nowhere, or not at the end of the file, where it belongs; nothing was applied."""

    hunk: int  # from 1
    patch_line: int  # from 1: the first line of the hunk that does not match the file at the stated place
    line: int  # from 1: the line of the file where it should be
    expected: bytes  # that line in the patch
    found: bytes | None  # that line in the file; None: the file ends before it


@dataclass(frozen=True, slots=True, kw_only=True)
class AmbiguousContext:
    """A hunk fits more than once, and line numbers or counts of the patch are wrong; nothing was applied."""

    hunk: int  # from 1
    places: tuple[int, ...]  # lines of the file, from 1; (): the hunk has no line to search for


@dataclass(frozen=True, slots=True, kw_only=True)
class HunksOverlap:
    """Two hunks fit, but both need the same line of the file; nothing was applied."""

    hunk: int  # from 1
    prior: int  # from 1: the other hunk, which begins above it or at the same line
    line: int  # from 1: the first line that both need


DiffOutcome: TypeAlias = Applied | ContextMismatch | AmbiguousContext | HunksOverlap


def apply_patch(
    content: bytes, patch: FilePatch, *, believed: bool = True, between: Callable[[], object] = lambda: None
) -> DiffOutcome:
    """Return `content` with every hunk of `patch` applied, or the first hunk that does not fit.

    `believed`: trust the stated line numbers if all hunks fit there, even if a hunk would fit elsewhere too. `between`:
    called before each search for a hunk, which goes through the whole file. Raises what it raises.

    Several parts of a patch for the file may all be made of the file as it is, or each of what the parts before it
    leave, as programs apply them. Both are tried: where both apply, they must give the same.
    """
    at_once = _at_once(content, patch, believed=believed, between=between)
    in_turn = _in_turn(content, patch, believed=believed, between=between) if patch.later else None
    if not isinstance(in_turn, Applied):
        return at_once
    if not isinstance(at_once, Applied):
        return in_turn
    if at_once.content != in_turn.content:
        return _two_places(patch, at_once, in_turn)
    return min(at_once, in_turn, key=lambda made: sum(map(bool, made.moved)))


def _in_turn(content: bytes, patch: FilePatch, *, believed: bool, between: Callable[[], object]) -> Applied | None:
    """Return `content` with each part applied to what the parts before it left; None: one doesn't fit, or repeats one.

    What is sent twice was meant once, even where it would fit again.
    """
    made = Applied(content=content, spans=(), moved=(), in_turn=True)
    seen: list[list[tuple[int, list[tuple[str, bytes]]]]] = []
    for part in patch.parts:
        said = [(hunk.start, [(line.mark, line.text) for line in hunk.lines]) for hunk in part.hunks]
        outcome = None if said in seen else _at_once(made.content, part, believed=believed, between=between)
        if not isinstance(outcome, Applied):
            return None
        seen.append(said)
        made = replace(
            made,
            content=outcome.content,
            spans=_spans_through(made.spans, outcome.spans),
            moved=made.moved + outcome.moved,
        )
    return made


def _two_places(patch: FilePatch, at_once: Applied, in_turn: Applied) -> AmbiguousContext:
    """Return the first hunk that two ways to apply the parts of a patch place differently, and its places.

    Both are lines of the text that the parts before the hunk's leave.
    """
    begins = (0, *patch.later)

    def places(index: int) -> tuple[int, int]:
        start = patch.hunks[index].start
        at = start + at_once.moved[index]
        above = zip(patch.hunks[: max(first for first in begins if first <= index)], at_once.moved, strict=False)
        grown = sum(len(hunk.new) - len(hunk.old) for hunk, moved in above if hunk.start + moved <= at)
        return at + grown + 1, start + in_turn.moved[index] + 1

    found = ((index, places(index)) for index in range(len(patch.hunks)))
    index, other = next((each for each in found if len({*each[1]}) > 1), (patch.later[0], places(patch.later[0])))
    return AmbiguousContext(hunk=index + 1, places=other)


def _spans_through(first: Sequence[Span], second: Sequence[Span]) -> tuple[Span, ...]:
    """Return the spans of two changes, one after the other, as those of one change; spans that touch become one."""
    through = list(first)
    for old_start, old_end, new_start, new_end in reversed(second):
        grown = new_end - new_start - (old_end - old_start)
        above = [span for span in through if span[3] < old_start]
        below = [span for span in through if span[2] > old_end]
        met = through[len(above) : len(through) - len(below)]
        shift = above[-1][3] - above[-1][1] if above else 0  # how much lower a place of the middle text is than before
        start, end = old_start, old_end
        if met:
            start, end = min(start, met[0][2]), max(end, met[-1][3])
            shift_below = met[-1][3] - met[-1][1]
        else:
            shift_below = shift
        span = (start - shift, end - shift_below, start, end + grown)
        through = [*above, span, *((a, b, c + grown, d + grown) for a, b, c, d in below)]
    return tuple(through)


def _at_once(content: bytes, patch: FilePatch, *, believed: bool, between: Callable[[], object]) -> DiffOutcome:
    """Return `content` with all hunks applied to it as it is, or the first hunk that does not fit."""
    file = _File(content, bridges=patch.bridges, ties=not patch.is_reverse)
    for number, hunk in enumerate(patch.hunks, 1):
        if hunk.counted is not None:
            between()
            found = file.places(hunk)
            if len(found) > 1:
                return AmbiguousContext(hunk=number, places=tuple(at + 1 for at in found))
            if not found:
                return _mismatch(file, hunk, number)
    stated = [hunk.start for hunk in patch.hunks]
    fit = believed and all(file.fits(hunk, at) for hunk, at in zip(patch.hunks, stated, strict=True))
    if fit and _overlap(patch.hunks, stated) is None:
        return _applied(file, patch.hunks, stated)
    # If one line number is wrong, none is trusted.
    places: list[int] = []
    for number, hunk in enumerate(patch.hunks, 1):
        between()
        found = file.places(hunk) if hunk.old else [at for at in (hunk.start,) if file.fits(hunk, at)]
        if len(found) > 1 or not (found or hunk.old):
            return AmbiguousContext(hunk=number, places=tuple(at + 1 for at in found))
        if not found:
            return _mismatch(file, hunk, number)
        places.append(found[0])
    return _overlap(patch.hunks, places) or _applied(file, patch.hunks, places)


def _by_place(places: Sequence[int]) -> list[int]:
    """Return the indexes of hunks in the order of their places."""
    return sorted(range(len(places)), key=places.__getitem__)


def _overlap(hunks: Sequence[PatchHunk], places: Sequence[int]) -> HunksOverlap | None:
    """Return the first two hunks that need the same line at these places, or None."""
    for prior, after in pairwise(_by_place(places)):
        if places[after] < places[prior] + len(hunks[prior].old):
            return HunksOverlap(hunk=after + 1, prior=prior + 1, line=places[after] + 1)
    return None


def _split_at_cr(lines: Sequence[PatchLine]) -> Iterator[PatchLine]:
    for line in lines:
        text = line.text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        yield from (replace(line, text=part) for part in split_lines(text))


def _in_lf(line: PatchLine) -> PatchLine:
    return replace(line, text=line.text[:-2] + b"\n") if line.text.endswith(b"\r\n") else line


# ---- fitting


class _File:
    """A file's lines, and where a hunk fits among them."""

    def __init__(self, content: bytes, *, bridges: bool, ties: bool) -> None:
        self.content = content
        self.bridges = bridges
        self.ties = ties
        self.starts = [0, *(found.end() for found in re.finditer(b"\n", content))]
        if self.starts[-1] != len(content):
            self.starts.append(len(content))

    def __len__(self) -> int:
        return len(self.starts) - 1

    def line(self, index: int) -> bytes:
        """Return line `index` (from 0) with its ending."""
        return self.content[self.starts[index] : self.starts[index + 1]]

    def ends_in_crlf(self, index: int) -> bool:
        """Return whether line `index` (from 0) ends in CRLF; for a last line without an ending, the line above it."""
        line = self.line(index)
        return (line if line.endswith(b"\n") or not index else self.line(index - 1)).endswith(b"\r\n")

    def has(self, index: int, text: bytes) -> bool:
        """Return whether line `index` (from 0) matches a patch's line `text`."""
        if index >= len(self):
            return False
        line = self.line(index)
        return line == text or (self.bridges and line == _with_crlf(text))

    def fits(self, hunk: PatchHunk, at: int) -> bool:
        """Return whether the old lines of `hunk` are at line `at`, and its new ones can replace them."""
        old, new = hunk.old, hunk.new
        end = at + len(old)
        if not old:
            return at == len(self) == 0
        if at and self.ties and hunk.prepends:
            return False
        if end > len(self) or not all(self.has(at + i, line.text) for i, line in enumerate(old)):
            return False
        # A line without its newline can only be the last one, and lines without context below them come after it.
        return end == len(self) or not (self._appends(hunk) or (new and not new[-1].text.endswith(b"\n")))

    def places(self, hunk: PatchHunk) -> list[int]:
        """Return the lines (from 0) at which `hunk` fits, up to the number that is reported."""
        if self._appends(hunk) or not all(side[-1].text.endswith(b"\n") for side in (hunk.old, hunk.new) if side):
            at = len(self) - len(hunk.old)  # it can only be at the end
            return [at] if at >= 0 and self.fits(hunk, at) else []
        if self.ties and hunk.prepends:
            return [0] if self.fits(hunk, 0) else []
        return self.occurrences(hunk)

    def _appends(self, hunk: PatchHunk) -> bool:
        return self.ties and hunk.appends

    def occurrences(self, hunk: PatchHunk) -> list[int]:
        """Return the lines (from 0) at which the old lines of `hunk` are, all with newlines, up to those reported."""
        # Lines with newlines occur wherever their bytes follow a newline.
        needle = b"\n" + b"".join(line.text for line in hunk.old)
        places: list[int] = []
        at = self._searched.find(needle)
        line, counted = 0, 0
        while at >= 0 and len(places) < _MAX_PLACES:
            line += self._searched.count(b"\n", counted, at)
            counted = at
            places.append(line)
            at = self._searched.find(needle, at + 1)
        return places

    @cached_property
    def _searched(self) -> bytes:
        """The content that hunks are searched in, with a newline before it, so that each line follows one."""
        return b"\n" + (self.content.replace(b"\r\n", b"\n") if self.bridges else self.content)


def _with_crlf(text: bytes) -> bytes:
    """Return a line with its LF replaced by CRLF."""
    return text[:-1] + b"\r\n" if text.endswith(b"\n") else text


def _mismatch(file: _File, hunk: PatchHunk, number: int) -> ContextMismatch:
    """Return how `hunk` differs from the file at its stated line, or where its lines are if it belongs at the end."""
    elsewhere = file.occurrences(hunk)[-1:] if file.ties and hunk.appends else []
    start = elsewhere[0] if elsewhere else hunk.start
    for index, line in enumerate(hunk.old, start):
        if not file.has(index, line.text):
            found = file.line(index) if index < len(file) else None
            return ContextMismatch(hunk=number, patch_line=line.number, line=index + 1, expected=line.text, found=found)
    # Its old lines match, and the file goes on below them, although the hunk ends it.
    end = start + len(hunk.old)
    return ContextMismatch(
        hunk=number,
        patch_line=hunk.lines[-1].number,
        line=end + 1,
        expected=b"",
        found=file.line(end) if end < len(file) else None,
    )


# ---- applying


def _applied(file: _File, hunks: Sequence[PatchHunk], places: Sequence[int]) -> Applied:
    parts: list[bytes] = []
    spans: list[Span] = []
    old_at = new_at = 0
    for index in _by_place(places):
        for start, end, added in _runs(file, hunks[index], places[index]):
            old_start, old_end = file.starts[start], file.starts[end]
            parts += (file.content[old_at:old_start], added)
            new_start = new_at + old_start - old_at
            old_at, new_at = old_end, new_start + len(added)
            spans.append((old_start, old_end, new_start, new_at))
    parts.append(file.content[old_at:])
    moved = tuple(place - hunk.start for hunk, place in zip(hunks, places, strict=True))
    return Applied(content=b"".join(parts), spans=tuple(spans), moved=moved)


def _runs(file: _File, hunk: PatchHunk, place: int) -> Iterator[tuple[int, int, bytes]]:
    """Yield each run of changed lines: the range of lines that it removes (from 0, end exclusive) and the new text."""
    old = hunk.old
    bridged = any(file.line(place + i) != line.text for i, line in enumerate(old))
    if file.bridges and len(old) == 1 and not old[0].text.endswith(b"\n"):
        bridged = True  # its only line does not show which ending the file uses
    start = place
    for changing, group in groupby(hunk.lines, key=lambda line: line.mark != " "):
        lines = list(group)
        end = start + sum(line.mark != "+" for line in lines)
        if changing:
            added = [line.text for line in lines if line.mark == "+"]
            if bridged:
                # The added lines get the endings of the lines that they replace, else of the one above, else below.
                above = start - 1 if start > place else start
                models = range(start, end) or range(above, above + 1)
                added = [
                    _with_crlf(text) if file.ends_in_crlf(model) else text
                    for text, model in zip(added, chain(models, repeat(models[-1])), strict=False)
                ]
            yield start, end, b"".join(added)
        start = end
