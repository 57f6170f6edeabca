r"""Unified diffs: read strictly, and applied to a file's bytes only where every line says the truth.

Every context line and every removed line of a hunk must be in the file, byte for byte; a hunk that has
neither fits an empty file only. Hunks apply at the lines they state if all of them fit there; otherwise
each must occur exactly once in the file, in order. Nothing is ever applied nearly. One difference is
bridged, because models send LF whatever they read: where the patch has no CRLF at all, its line matches a
file's line that differs from it only by ending in CRLF, and what such a hunk inserts takes the ending of
the line that it replaces or stands beside; of a last line without one, that of the line above.

`unidiff` parses; what it passes over in silence is refused here: hunk headers without numbers, lines that
belong to no hunk, lines of which it keeps a part. Sources: POSIX `diff -u`, "Unified Format"; GNU diff for
the mark `\ No newline at end of file`.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, groupby, pairwise, repeat
from typing import Final, TypeAlias, TypeVar

from unidiff import Hunk as ParsedHunk, PatchedFile, PatchSet, UnidiffParseError

from mcptools.exact import Span
from mcptools.patchfaults import (
    BETWEEN_FILES,
    BEYOND,
    HUNK_HEADER,
    NO_MARK,
    NO_NEWLINE,
    SIGNED,
    UNNUMBERED,
    InvalidPatch,
    misread,
    of_another_format,
    recounted,
)

__all__ = [
    "AmbiguousContext",
    "Applied",
    "ContextMismatch",
    "DiffOutcome",
    "FilePatch",
    "InvalidPatch",
    "PatchHunk",
    "PatchLine",
    "apply_patch",
    "parse_patch",
    "parse_patches",
]

ItemT = TypeVar("ItemT")

_GIT_HEADER: Final = ("diff --git ", "new file mode ", "deleted file mode ")
_NOT_LINES: Final = (
    "rename from ",
    "rename to ",
    "copy from ",
    "copy to ",
    "old mode ",
    "new mode ",
    "new file mode ",
    "deleted file mode ",
    "Binary file ",
    "Binary files ",
    "GIT binary patch",
)
"""Beginnings of header lines that ask for more than a change of lines."""

_NOWHERE: Final = "/dev/null"
_COMES_OR_GOES: Final = (("new file mode ", f"--- {_NOWHERE}"), ("deleted file mode ", f"+++ {_NOWHERE}"))
"""What git says of a file besides, and the header that says it too."""

_QUOTED: Final = re.compile(r'"((?:[^"\\]|\\(?:["\\abtnvfr]|[0-3][0-7]{2}))*)"')
"""A name in quotes, as git and GNU diff spell one that has unusual bytes."""

_ESCAPE: Final = re.compile(rb"\\([0-3][0-7]{2}|.)")
_ESCAPED: Final = {b"a": b"\a", b"b": b"\b", b"t": b"\t", b"n": b"\n", b"v": b"\v", b"f": b"\f", b"r": b"\r"}

_REVERSED: Final = {" ": " ", "-": "+", "+": "-"}
_MAX_PLACES: Final = 20
"""Places that are told of a hunk that fits more than once."""

_MANY: Final = 1000
"""Lines of a patch that are read in some milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchLine:
    """One line of a hunk's body."""

    mark: str  # " " context, "-" removed, "+" added
    text: bytes  # with its ending; the last of a file may have none
    number: int  # in the patch, from 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchHunk:
    """One hunk: where it says it belongs, and its lines."""

    start: int  # zero-based line of the old text
    lines: tuple[PatchLine, ...]

    @property
    def old(self) -> list[PatchLine]:
        """Return the lines that the file must have."""
        return [line for line in self.lines if line.mark != "+"]

    @property
    def new(self) -> list[PatchLine]:
        """Return the lines that the file will have."""
        return [line for line in self.lines if line.mark != "-"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePatch:
    """A unified diff of one file."""

    source: str | None  # as the header names it; None: the patch creates the file
    target: str | None  # None: the patch deletes the file
    hunks: tuple[PatchHunk, ...]  # (): headers alone, which change nothing
    bridges: bool  # whether its LF may stand for the file's CRLF: it has no CRLF of its own

    @property
    def names(self) -> tuple[str, str]:
        """Return the names of source and target without git's prefixes, `/dev/null` for no file."""
        source, target = self.source or _NOWHERE, self.target or _NOWHERE
        if (self.source is None or source.startswith("a/")) and (self.target is None or target.startswith("b/")):
            return source.removeprefix("a/"), target.removeprefix("b/")
        return source, target

    @property
    def reverse(self) -> "FilePatch":
        """Return the patch that takes this one back, where this one was applied at its stated lines."""
        hunks: list[PatchHunk] = []
        shift = 0
        for hunk in self.hunks:
            lines = tuple(replace(line, mark=_REVERSED[line.mark]) for line in hunk.lines)
            hunks.append(PatchHunk(start=hunk.start + shift, lines=lines))
            shift += len(hunk.new) - len(hunk.old)
        return replace(self, source=self.target, target=self.source, hunks=tuple(hunks))

    def at(self, moved: Sequence[int]) -> "FilePatch":
        """Return the patch with each hunk so many lines further down."""
        hunks = zip(self.hunks, moved, strict=True)
        return replace(self, hunks=tuple(replace(hunk, start=hunk.start + lines) for hunk, lines in hunks))

    @property
    def added(self) -> int:
        """Return how many lines it puts in."""
        return sum(line.mark == "+" for hunk in self.hunks for line in hunk.lines)

    @property
    def removed(self) -> int:
        """Return how many lines it takes out."""
        return sum(line.mark == "-" for hunk in self.hunks for line in hunk.lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """Every hunk applied."""

    content: bytes
    spans: tuple[Span, ...]  # ascending; one for each run of changed lines
    moved: tuple[int, ...]  # for each hunk, how many lines below the stated place it was applied


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextMismatch:
    """A hunk fits neither where it says nor anywhere else; nothing was applied."""

    hunk: int  # from 1
    patch_line: int  # from 1: the first line of the hunk that the file does not have at the stated place
    line: int  # from 1: the line of the file where it should be
    expected: bytes  # what the patch says of it
    found: bytes | None  # what the file has; None: the file ends before


@dataclass(frozen=True, slots=True, kw_only=True)
class AmbiguousContext:
    """A hunk does not fit where it says, and fits more than once elsewhere; nothing was applied."""

    hunk: int  # from 1
    places: tuple[int, ...]  # lines of the file, from 1; (): it has no context to be found by


DiffOutcome: TypeAlias = Applied | ContextMismatch | AmbiguousContext


def parse_patch(patch: str, *, between: Callable[[], object] = lambda: None) -> FilePatch:
    """Return what `patch` says of the one file that it is about. Raises InvalidPatch, and what `between` raises."""
    parts = parse_patches(patch, between=between)
    if not parts:
        raise InvalidPatch("the patch is empty")
    if len(parts) > 1:
        raise InvalidPatch("more than one file; send a patch for each")
    if not parts[0].hunks:
        raise InvalidPatch("no hunks")
    return parts[0]


def parse_patches(patch: str, *, between: Callable[[], object] = lambda: None) -> tuple[FilePatch, ...]:
    """Return what `patch` says of each file, in its order; () where it is blank. Raises InvalidPatch.

    The last line may lack an ending. A file's headers may stand without hunks. `between`: called every so many lines.
    Raises what it raises.
    """
    if not patch.isascii():
        try:
            patch.encode()
        except UnicodeEncodeError as error:
            raise InvalidPatch("a character that UTF-8 can't encode") from error
    if not patch.strip():
        return ()
    try:
        return _parsed(patch if patch.endswith("\n") else f"{patch}\n", between)
    except InvalidPatch:
        if (other := of_another_format(patch)) is not None:
            raise other from None
        raise


def apply_patch(
    content: bytes, patch: FilePatch, *, believed: bool = True, between: Callable[[], object] = lambda: None
) -> DiffOutcome:
    """Return `content` with every hunk of `patch` applied, or the first hunk that does not fit.

    `believed`: whether the line numbers, where all are right, say which of several places is meant. `between`: called
    before each search for a hunk, which goes through the whole file. Raises what it raises.
    """
    file = _File(content, bridges=patch.bridges)
    stated = [hunk.start for hunk in patch.hunks]
    if believed and all(file.fits(hunk, at) for hunk, at in zip(patch.hunks, stated, strict=True)):
        return _applied(file, patch.hunks, stated)
    # Where some line number is wrong, none is believed.
    places: list[int] = []
    end = 0
    for number, hunk in enumerate(patch.hunks, 1):
        between()
        found = file.places(hunk) if hunk.old else [at for at in (hunk.start,) if file.fits(hunk, at)]
        if len(found) > 1 or not (found or hunk.old):
            return AmbiguousContext(hunk=number, places=tuple(at + 1 for at in found))
        if not found or found[0] < end:
            return _mismatch(file, hunk, number)
        places.append(found[0])
        end = found[0] + len(hunk.old)
    return _applied(file, patch.hunks, places)


# ---- reading


def _parsed(patch: str, between: Callable[[], object]) -> tuple[FilePatch, ...]:
    lines = patch.split("\n")
    _check_only_lines_change(lines, between)
    try:
        files = PatchSet(_said(lines, between))
    except UnidiffParseError as error:
        raise misread(str(error), patch) from error
    _check_all_was_read(files, lines, between)
    if not files:
        raise InvalidPatch("missing --- header", 1)
    return tuple(_file_patch(file, between) for file in files)


def _watched(items: Iterable[ItemT], between: Callable[[], object]) -> Iterator[ItemT]:
    """Yield the items, with a call of `between` before the first and every so many of them."""
    for number, item in enumerate(items):
        if not number % _MANY:
            between()
        yield item


def _said(lines: Sequence[str], between: Callable[[], object]) -> Iterator[str]:
    """Yield the lines of a patch with their endings, without what git says in lines of its own."""
    for number, line in enumerate(_watched(lines[:-1], between), 1):
        if line.startswith("@@ -") and not HUNK_HEADER.fullmatch(line):
            raise InvalidPatch(UNNUMBERED, number)
        # Only the headers that every unified diff has say which file is meant; git's own lines would overrule them.
        yield "diff\n" if line.startswith(_GIT_HEADER) else f"{line}\n"


def _file_patch(file: PatchedFile, between: Callable[[], object]) -> FilePatch:
    hunks = tuple(_hunk(parsed, between) for parsed in file)
    _check_order(hunks)
    source, target = _name(file.source_file.removesuffix("\r")), _name(file.target_file.removesuffix("\r"))
    return FilePatch(
        source=None if source == _NOWHERE else source,
        target=None if target == _NOWHERE else target,
        hunks=hunks,
        bridges=not any(line.text.endswith(b"\r\n") for hunk in hunks for line in hunk.lines),
    )


def _name(spelt: str) -> str:
    """Return the name that a header spells, in quotes or as it is."""
    quoted = _QUOTED.fullmatch(spelt)
    if quoted is None:
        return spelt
    raw = quoted[1].encode("utf-8", "surrogatepass")
    return _ESCAPE.sub(lambda found: _byte(found[1]), raw).decode("utf-8", "surrogateescape")


def _byte(escape: bytes) -> bytes:
    return bytes([int(escape, 8)]) if escape.isdigit() else _ESCAPED.get(escape, escape)


def _check_all_was_read(files: PatchSet, lines: Sequence[str], between: Callable[[], object]) -> None:
    """Refuse a patch with a line that unidiff ignored, or of which it kept only a part."""
    read = {
        line.diff_line_no: line for file in files for hunk in file for line in hunk if line.diff_line_no is not None
    }
    in_hunks = False
    last_file = max((number for number, raw in enumerate(lines, 1) if raw.startswith("--- ")), default=0)
    for number, raw in enumerate(_watched(lines[:-1], between), 1):
        text = raw.removesuffix("\r")
        line = read.get(number)
        if line is not None:
            if f"{raw}\n" not in {line.line_type + line.value, line.value}:
                raise InvalidPatch(NO_MARK, number)
            continue
        if HUNK_HEADER.fullmatch(text):
            in_hunks = True
            continue
        if raw.startswith("@@"):
            raise InvalidPatch(UNNUMBERED, number)
        if raw.startswith(BETWEEN_FILES) and number <= last_file:
            in_hunks = False
        if in_hunks and text not in {"", NO_NEWLINE}:
            hint = SIGNED if text == "-- " else recounted(lines, until=number)
            raise InvalidPatch(BEYOND, number, hint=hint)
        if raw.startswith("--- ") and not lines[number].startswith("+++ "):
            raise InvalidPatch("missing +++ header")


def _check_only_lines_change(lines: Sequence[str], between: Callable[[], object]) -> None:
    """Refuse a patch that says more of a file than its --- and +++ headers say: that it comes, or goes."""
    headers: tuple[str, ...] = ()  # of the file that a line is about: the next ones below it
    first = 0
    for at in _watched(range(len(lines) - 2, -1, -1), between):
        raw = lines[at]
        if raw.startswith("--- "):
            headers = (raw.removesuffix("\r"), lines[at + 1].removesuffix("\r"))
        elif raw.startswith("diff "):
            headers = ()
        elif raw.startswith(_NOT_LINES) and not any(
            raw.startswith(begins) and header in headers for begins, header in _COMES_OR_GOES
        ):
            first = at + 1
    if first:
        text = lines[first - 1].removesuffix("\r")
        raise InvalidPatch(f"only changes to lines can be applied, not {text!r}", first)


def _hunk(parsed: ParsedHunk, between: Callable[[], object]) -> PatchHunk:
    lines: list[PatchLine] = []
    for part in _watched(parsed, between):
        if part.line_type in {" ", "-", "+"}:
            text = part.value.encode()
            lines.append(PatchLine(mark=part.line_type, text=text, number=part.diff_line_no or 0))
        elif part.line_type == "\\":
            if not lines or not lines[-1].text.endswith(b"\n"):
                raise InvalidPatch("a mark for a missing newline without a line before it")
            last = lines.pop()
            lines.append(PatchLine(mark=last.mark, text=last.text[:-1], number=last.number))
    start = parsed.source_start - (1 if parsed.source_length else 0)
    hunk = PatchHunk(start=start, lines=tuple(lines))
    first = lines[0].number if lines else 0
    for side in (hunk.old, hunk.new):
        for line in side[:-1]:
            if not line.text.endswith(b"\n"):
                raise InvalidPatch("a mark for a missing newline above the last line", line.number)
    if all(line.mark == " " for line in lines):
        raise InvalidPatch("a hunk that changes nothing", first)
    if start < 0:
        raise InvalidPatch("a hunk with lines that starts at line 0", first)
    return hunk


def _check_order(hunks: Sequence[PatchHunk]) -> None:
    for number, (hunk, after) in enumerate(pairwise(hunks), 2):
        if after.start < hunk.start + len(hunk.old):
            raise InvalidPatch(f"hunk {number} begins before hunk {number - 1} ends")
        if not all(line.text.endswith(b"\n") for line in hunk.lines):
            raise InvalidPatch("a mark for a missing newline above the last hunk", hunk.lines[-1].number)


# ---- fitting


class _File:
    """A file's lines, and where a hunk fits among them."""

    def __init__(self, content: bytes, *, bridges: bool) -> None:
        self.content = content
        self.bridges = bridges
        self.starts = [0, *(found.end() for found in re.finditer(b"\n", content))]
        if self.starts[-1] != len(content):
            self.starts.append(len(content))

    def __len__(self) -> int:
        return len(self.starts) - 1

    def line(self, index: int) -> bytes:
        """Return line `index` (from 0) with its ending."""
        return self.content[self.starts[index] : self.starts[index + 1]]

    def ends_in_crlf(self, index: int) -> bool:
        """Return whether line `index` (from 0) ends in CRLF; a last line that has no ending, as the one above it."""
        line = self.line(index)
        return (line if line.endswith(b"\n") or not index else self.line(index - 1)).endswith(b"\r\n")

    def has(self, index: int, text: bytes) -> bool:
        """Return whether line `index` (from 0) is what a patch calls `text`."""
        if index >= len(self):
            return False
        line = self.line(index)
        return line == text or (self.bridges and line == _with_crlf(text))

    def fits(self, hunk: PatchHunk, at: int) -> bool:
        """Return whether the old lines of `hunk` stand at line `at`, and its new ones can replace them."""
        old, new = hunk.old, hunk.new
        end = at + len(old)
        if not old:
            return at == len(self) == 0
        if end > len(self) or not all(self.has(at + i, line.text) for i, line in enumerate(old)):
            return False
        # Nothing may follow a line that lacks its newline.
        return end == len(self) or not new or new[-1].text.endswith(b"\n")

    def places(self, hunk: PatchHunk) -> list[int]:
        """Return the lines (from 0) at which `hunk` fits, up to as many as are told."""
        if not all(side[-1].text.endswith(b"\n") for side in (hunk.old, hunk.new) if side):
            at = len(self) - len(hunk.old)  # nothing may follow it
            return [at] if at >= 0 and self.fits(hunk, at) else []
        # Lines that have their newlines are there wherever their bytes are behind one.
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
        """The content as hunks are looked for in it, behind the newline that each line stands behind."""
        return b"\n" + (self.content.replace(b"\r\n", b"\n") if self.bridges else self.content)


def _with_crlf(text: bytes) -> bytes:
    """Return a line of a patch that has no CRLF as a file has it where it does."""
    return text[:-1] + b"\r\n" if text.endswith(b"\n") else text


def _mismatch(file: _File, hunk: PatchHunk, number: int) -> ContextMismatch:
    """Return how `hunk` differs from what is at the place it states."""
    for index, line in enumerate(hunk.old, hunk.start):
        if not file.has(index, line.text):
            found = file.line(index) if index < len(file) else None
            return ContextMismatch(hunk=number, patch_line=line.number, line=index + 1, expected=line.text, found=found)
    # Its old lines are there: its new last line has no newline while the file goes on, or it is out of order.
    end = hunk.start + len(hunk.old)
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
    for hunk, place in zip(hunks, places, strict=True):
        for start, end, added in _runs(file, hunk, place):
            old_start, old_end = file.starts[start], file.starts[end]
            parts += (file.content[old_at:old_start], added)
            new_start = new_at + old_start - old_at
            old_at, new_at = old_end, new_start + len(added)
            spans.append((old_start, old_end, new_start, new_at))
    parts.append(file.content[old_at:])
    moved = tuple(place - hunk.start for hunk, place in zip(hunks, places, strict=True))
    return Applied(content=b"".join(parts), spans=tuple(spans), moved=moved)


def _runs(file: _File, hunk: PatchHunk, place: int) -> Iterator[tuple[int, int, bytes]]:
    """Yield each run of changed lines: the lines it takes out (from 0, up to) and the text it puts in."""
    old = hunk.old
    bridged = any(file.line(place + i) != line.text for i, line in enumerate(old))
    if file.bridges and len(old) == 1 and not old[0].text.endswith(b"\n"):
        bridged = True  # it shows no ending of the file's
    start = place
    for changing, group in groupby(hunk.lines, key=lambda line: line.mark != " "):
        lines = list(group)
        end = start + sum(line.mark != "+" for line in lines)
        if changing:
            added = [line.text for line in lines if line.mark == "+"]
            if bridged:
                # Lines whose endings the added ones take: those they replace, else the one above, else below.
                above = start - 1 if start > place else start
                models = range(start, end) or range(above, above + 1)
                added = [
                    _with_crlf(text) if file.ends_in_crlf(model) else text
                    for text, model in zip(added, chain(models, repeat(models[-1])), strict=False)
                ]
            yield start, end, b"".join(added)
        start = end
