r"""Write unified diffs for people and patch tools, from two states and the hunks between them.

Source: POSIX diff -u, with GNU's `\ No newline at end of file` and git's quoting of unusual names.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Final

from objstore.text.forms import is_either_binary
from objstore.text.hunks import Hunk
from objstore.text.lines import is_closed, lines_end, split_lines

__all__ = [
    "numbered_diff",
    "numbered_hunks",
    "quoted_name",
    "touching_hunks",
    "unified_diff",
]

_NO_NEWLINE: Final = b"\n\\ No newline at end of file\n"
_SPARSE: Final = 4096
"""With more bytes of text than this per hunk, splitting only the lines near the hunks is faster than splitting all."""

_PRINTABLE: Final = range(0x20, 0x7F)
_ESCAPES: Final = {
    0x07: "a",
    0x08: "b",
    0x09: "t",
    0x0A: "n",
    0x0B: "v",
    0x0C: "f",
    0x0D: "r",
    0x22: '"',
    0x5C: "\\",
}


def unified_diff(
    before: bytes | None,
    after: bytes | None,
    *,
    path_before: str,
    path_after: str,
    hunks: Sequence[Hunk] | None = None,
    context: int = 3,
    binary_lines: bool = False,
) -> bytes:
    r"""Return the diff from one state to another (None: no file); b"" if no byte differs.

    Names follow `---` and `+++` as given (`/dev/null` for no file). They are quoted as git does if they hold quotes,
    backslashes, control characters or bytes that are not UTF-8. `hunks`: the recorded ones if known; else they are
    computed. `binary_lines`: write the lines of binary contents too, for programs; else one line says that they differ.
    """
    old, new = before or b"", after or b""
    if old == new:
        return b""
    names = (
        b"/dev/null" if before is None else quoted_name(path_before),
        b"/dev/null" if after is None else quoted_name(path_after),
    )
    if not binary_lines and is_either_binary(old, new):
        return b"Binary files %b and %b differ\n" % names
    if hunks is None:
        from objstore.text.diff import diff_lines

        hunks = diff_lines(old, new)
    old_lines, new_lines = (_Lines(text, at_once=len(hunks) > len(text) // _SPARSE) for text in (old, new))
    parts = [b"--- %b\n+++ %b\n" % names]
    for group in _grouped(_with_newlines(old_lines, new_lines, hunks), context):
        parts += _rendered(old_lines, new_lines, group, min(context, group[0].old_start), context)
    return b"".join(parts)


def numbered_diff(
    before: bytes,
    after: bytes,
    *,
    path_before: str,
    path_after: str,
    hunks: Sequence[Hunk],
    newline: bool,
    label: Callable[[int], str],
    context: int = 3,
) -> bytes:
    """Return the diff of one edit with each hunk under its own header, followed by a label.

    `newline`: as in `numbered_hunks`. `label`: returns the text after the header for a hunk's number. No line is shown
    twice as context, and hunks that touch share one header with a label for each, so that a program that reads diffs
    accepts this one too. Names are as in `unified_diff`.
    """
    old, new = _Lines(before, at_once=True), _Lines(after, at_once=True)
    lines = old.between(0, old.count)
    numbered = numbered_hunks(lines, new.between(0, new.count), hunks, newline=newline)
    parts = [b"--- %b\n+++ %b\n" % (quoted_name(path_before), quoted_name(path_after))]
    shown = 0
    runs = touching_hunks(numbered, len(lines))
    for run, following in zip(runs, [*(later[0][1].old_start for later in runs[1:]), len(lines)], strict=True):
        group = [hunk for _, hunk in run]
        lead, trail = min(context, group[0].old_start - shown), min(context, following - group[-1].old_end)
        labels = ", ".join(label(number) for number, _ in run)
        parts += _rendered(old, new, group, lead, trail, b" %b" % labels.encode())
        shown = group[-1].old_end + trail
    return b"".join(parts)


def numbered_hunks(
    old: Sequence[bytes], new: Sequence[bytes], hunks: Sequence[Hunk], *, newline: bool = False
) -> list[tuple[int, Hunk]]:
    """Return the hunks of an edit as they are shown, each with its number.

    `newline`: the last line, otherwise unchanged, lost or gained its newline; that is shown as hunk 0. Without
    `newline`, a last line that differs only in its newline is shown with the adjacent hunk.
    """
    if not newline:
        return list(enumerate(_with_last_line(old, new, hunks), 1))
    numbered = list(enumerate(hunks, 1))
    last = hunks[-1] if hunks else Hunk(0, 0, 0, 0)
    if last.old_end < len(old):
        return [*numbered, (0, Hunk(len(old) - 1, 1, len(new) - 1, 1))]
    # Hunk 0 goes above the hunk that changed the lines after it. If no line is left above, hunk 0 can't be shown.
    above = [(0, Hunk(last.old_start - 1, 1, last.new_start - 1, 1))] if last.old_start and last.new_start else []
    return [*numbered[:-1], *above, *numbered[-1:]]


def touching_hunks(numbered: Sequence[tuple[int, Hunk]], count: int) -> list[list[tuple[int, Hunk]]]:
    """Group the hunks of a text of `count` lines that share a header, because no line is between them.

    Only the change of the last line's newline is ever shown directly next to other hunks. git takes a hunk with no line
    below it as the end of the file and refuses it anywhere else; it takes a hunk without any line of the file as the
    beginning if it names the first line. So insertions around the only line of a text are grouped too.
    """
    runs: list[list[tuple[int, Hunk]]] = []
    for number, hunk in numbered:
        is_below_the_only = hunk.old_start == count == 1 and not hunk.old_count
        if runs and (runs[-1][-1][1].old_end == hunk.old_start or is_below_the_only):
            runs[-1].append((number, hunk))
        else:
            runs.append([(number, hunk)])
    return runs


def _with_last_line(old: Sequence[bytes], new: Sequence[bytes], hunks: Sequence[Hunk]) -> list[Hunk]:
    """Return the hunks with the last line added to one of them if only its newline differs."""
    found = list(hunks)
    last = found[-1] if found else Hunk(0, 0, 0, 0)
    if last.old_end < len(old):
        return found if old[-1] == new[-1] else [*found, Hunk(len(old) - 1, 1, len(new) - 1, 1)]
    if last.old_start and last.new_start and old[last.old_start - 1] != new[last.new_start - 1]:
        found[-1] = Hunk(last.old_start - 1, last.old_count + 1, last.new_start - 1, last.new_count + 1)
    return found


def quoted_name(name: str) -> bytes:
    """Return a file's name as a diff shows it: unchanged, or in quotes with escapes."""
    raw = name.encode("utf-8", "surrogateescape")
    try:
        plain = raw.decode("utf-8").isprintable()
    except UnicodeDecodeError:
        plain = False
    if plain and b'"' not in raw and b"\\" not in raw:
        return raw
    return b'"' + b"".join(map(_quoted_byte, raw)) + b'"'


def _quoted_byte(byte: int) -> bytes:
    if byte in _ESCAPES:
        return b"\\" + _ESCAPES[byte].encode()
    return bytes([byte]) if byte in _PRINTABLE else b"\\%03o" % byte


class _Lines:
    """The lines of a text, split at once, or on demand if they are asked for in ascending order."""

    def __init__(self, text: bytes, *, at_once: bool) -> None:
        self._text = text
        self._lines = split_lines(text) if at_once else None  # None: not split
        self._line = self._offset = 0  # the last line asked for, and its offset
        self.is_closed = is_closed(text)

    @cached_property
    def count(self) -> int:
        """The number of lines; the first access scans the whole text."""
        return self._text.count(b"\n") + (not self.is_closed)

    def between(self, start: int, end: int) -> list[bytes]:
        """Return the lines from `start` up to `end`. Raises ValueError beyond the last line."""
        if self._lines is not None:
            return self._lines[start:end]
        first = self._reach(start)
        return split_lines(self._text[first : self._reach(end)])

    def after(self, start: int, most: int) -> list[bytes]:
        """Return up to `most` lines from `start` on. Raises ValueError beyond the last line."""
        if self._lines is not None:
            return self._lines[start : start + most]
        first = end = self._reach(start)
        for _ in range(most):
            end = self._text.find(b"\n", end) + 1 or len(self._text)
        return split_lines(self._text[first:end])

    def _reach(self, line: int) -> int:
        """Return the offset of `line`, which is no earlier than the last line asked for."""
        ends = not self.is_closed and line == self.count
        self._offset = len(self._text) if ends else lines_end(self._text, self._offset, line - self._line)
        self._line = line
        return self._offset


def _with_newlines(old: _Lines, new: _Lines, hunks: Sequence[Hunk]) -> list[Hunk]:
    """Return the hunks with the last line added to one of them if only its newline differs."""
    if old.is_closed and new.is_closed:
        return list(hunks)
    found: list[Hunk] = []
    old_at = new_at = 0
    for hunk in [*hunks, Hunk(old.count, 0, new.count, 0)]:
        # Of the unchanged lines, only the last can lack its newline in one text and have it in the other.
        lacks_in_old = not old.is_closed and hunk.old_start == old.count
        lacks_in_new = not new.is_closed and hunk.new_start == new.count
        if hunk.old_start > old_at and lacks_in_old is not lacks_in_new:
            _join(found, Hunk(hunk.old_start - 1, 1, hunk.new_start - 1, 1))
        if hunk.old_count or hunk.new_count:
            _join(found, hunk)
        old_at, new_at = hunk.old_end, hunk.new_end
    assert (old_at, new_at) == (old.count, new.count)  # noqa: S101 - the last hunk above ends both
    return found


def _join(hunks: list[Hunk], hunk: Hunk) -> None:
    if hunks and hunks[-1].old_end == hunk.old_start and hunks[-1].new_end == hunk.new_start:
        last = hunks.pop()
        hunk = Hunk(last.old_start, hunk.old_end - last.old_start, last.new_start, hunk.new_end - last.new_start)
    hunks.append(hunk)


def _grouped(hunks: Sequence[Hunk], context: int) -> Iterator[list[Hunk]]:
    group: list[Hunk] = []
    for hunk in hunks:
        if group and hunk.old_start - group[-1].old_end > 2 * context:
            yield group
            group = []
        group.append(hunk)
    if group:
        yield group


def _rendered(
    old: _Lines, new: _Lines, group: list[Hunk], lead: int, trail: int, label: bytes = b""
) -> Iterator[bytes]:
    """Yield hunks under one header, with `lead` lines of context before them and at most `trail` after."""
    first, last = group[0], group[-1]
    at = first.old_start - lead
    lines: list[bytes] = []
    for hunk in group:
        lines += map(_kept, old.between(at, hunk.old_start))
        lines += (_line(b"-", line) for line in old.between(hunk.old_start, hunk.old_end))
        lines += (_line(b"+", line) for line in new.between(hunk.new_start, hunk.new_end))
        at = hunk.old_end
    tail = old.after(at, trail)
    yield b"@@ -%b +%b @@%b\n" % (
        _range(first.old_start - lead, lead + last.old_end - first.old_start + len(tail)),
        _range(first.new_start - lead, lead + last.new_end - first.new_start + len(tail)),
        label,
    )
    yield from lines
    yield from map(_kept, tail)


def _kept(line: bytes) -> bytes:
    return _line(b" ", line)


def _line(sign: bytes, line: bytes) -> bytes:
    return sign + line if line.endswith(b"\n") else sign + line + _NO_NEWLINE


def _range(start: int, count: int) -> bytes:
    # The start of an empty range is the number of the line before it.
    if count == 1:
        return b"%d" % (start + 1)
    return b"%d,%d" % (start + 1 if count else start, count)
