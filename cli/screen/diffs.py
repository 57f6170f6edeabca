"""Draw hunks, and the diff of two texts, as lines of a screen: unified, or side by side."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final

from cli.screen.syntax import PLAIN_SYNTAX, Mark, Syntax
from cli.screen.terminal import Screen
from objstore import (
    Hunk,
    form_of,
    git_mode,
    is_either_binary,
    numbered_hunks,
    quoted_name,
    shown_lines,
    split_lines,
    unified_diff,
)

__all__ = ["CONTEXT", "diff_name", "diff_text", "extended_header", "hunk_text", "shown_syntax"]

CONTEXT: Final = 3
"""Unchanged lines that are shown above a change, and below it."""

_NO_NEWLINE: Final = b"\\ No newline at end of file"
_MARK: Final = b"\xef\xbb\xbf"
_SIGN_COLOR: Final = {b"-": "red", b"+": "green", b"@": "cyan"}

# ---- hunks


def hunk_text(
    old: Sequence[bytes],
    new: Sequence[bytes],
    hunks: Sequence[Hunk],
    bounds: tuple[int, int],
    label: str,
    screen: Screen,
    syntax: Syntax = PLAIN_SYNTAX,
) -> Iterator[bytes]:
    """Yield hunks under one header, which ends with a label, with context above and below them.

    `old`, `new`: the lines of both sides; `bounds`: between which of the old ones context is shown. Where the bytes of
    the file are written as they are, the label also says what of a change can't be seen.
    """
    first, last = hunks[0], hunks[-1]
    lead, trail = min(CONTEXT, first.old_start - bounds[0]), min(CONTEXT, bounds[1] - last.old_end)
    if not screen.guarded:
        unseen = (
            word
            for hunk in hunks
            for word in _invisible(old[hunk.old_start : hunk.old_end], new[hunk.new_start : hunk.new_end])
        )
        label = ", ".join(dict.fromkeys(filter(None, (label, *unseen))))
    removed = _span(first.old_start - lead, lead + last.old_end - first.old_start + trail)
    added = _span(first.new_start - lead, lead + last.new_end - first.new_start + trail)
    yield screen.line(f"{screen.paint(f'@@ -{removed} +{added} @@', 'cyan')} {label}".rstrip())
    at = first.old_start - lead
    if screen.columns:
        from cli.screen.side_by_side import hunk_rows

        for hunk in hunks:
            yield from hunk_rows(old, new, hunk, hunk.old_start - at, trail if hunk is last else 0, screen, syntax)
            at = hunk.old_end
        return
    for hunk in hunks:
        yield from _side(b" ", old[at : hunk.old_start], screen, syntax.old[at : hunk.old_start])
        at = hunk.old_end
        old_lines, new_lines = slice(hunk.old_start, hunk.old_end), slice(hunk.new_start, hunk.new_end)
        own = Syntax(old=syntax.old[old_lines], new=syntax.new[new_lines])
        yield from _sides(old[old_lines], new[new_lines], screen, own)
    below = slice(last.old_end, last.old_end + trail)
    yield from _side(b" ", old[below], screen, syntax.old[below])


def shown_syntax(path_before: str, path: str, old: Sequence[bytes], new: Sequence[bytes], screen: Screen) -> Syntax:
    """Return the syntax of both sides of a change, for a coloured screen."""
    if not screen.color:
        return PLAIN_SYNTAX
    from cli.screen.side_by_side import TAB
    from cli.screen.syntax import syntax_of

    def shown(lines: Sequence[bytes]) -> list[str]:
        texts = [screen.content(line.removesuffix(b"\n")).decode() for line in lines]
        return [text.expandtabs(TAB) for text in texts] if screen.columns else texts

    return syntax_of(path_before, path, shown(old), shown(new))


def _invisible(removed: Sequence[bytes], added: Sequence[bytes]) -> list[str]:
    """Return in words which byte-order mark and line endings a change takes away or adds, of lines on both sides."""
    if not removed or not added:
        return []
    words = []
    for what, old, new in (
        ("byte-order mark", removed[0].startswith(_MARK), added[0].startswith(_MARK)),
        ("CR at the end of lines", any(map(_ends_in_cr, removed)), any(map(_ends_in_cr, added))),
    ):
        if old != new:
            words.append(f"{what} {'removed' if old else 'added'}")
    return words


def _ends_in_cr(line: bytes) -> bool:
    return line.endswith(b"\r\n")


def _span(start: int, count: int) -> str:
    # Lines are counted from 1; a span of none names the line before it.
    return f"{start + 1 if count else start},{count}"


def _sides(
    old: Sequence[bytes], new: Sequence[bytes], screen: Screen, syntax: Syntax = PLAIN_SYNTAX
) -> Iterator[bytes]:
    """Yield both sides of a change, coloured, with the words marked that differ within lines."""
    if not screen.color or not old or not new:
        yield from _side(b"-", old, screen, syntax.old)
        yield from _side(b"+", new, screen, syntax.new)
        return
    from cli.screen.word_diff import Span, emphasis, paired_lines

    old_shown, new_shown = ([screen.content(line.removesuffix(b"\n")).decode() for line in side] for side in (old, new))
    old_spans: dict[int, tuple[Span, ...]] = {}
    new_spans: dict[int, tuple[Span, ...]] = {}
    for i, j in paired_lines(old, new):
        found = emphasis(old_shown[i], new_shown[j])
        if found is not None:
            old_spans[i], new_spans[j] = found
    sides = (("-", old, old_shown, old_spans, syntax.old), ("+", new, new_shown, new_spans, syntax.new))
    for sign, lines, shown, spans, marks in sides:
        for at, (line, text) in enumerate(zip(lines, shown, strict=True)):
            marked = screen.emphasize(text, spans.get(at, ()), marks[at] if marks else ())
            yield screen.line(screen.paint(sign + marked, _SIGN_COLOR[sign.encode()]))
            if not line.endswith(b"\n"):
                yield _NO_NEWLINE + b"\n"


def _side(
    sign: bytes, lines: Iterable[bytes], screen: Screen, syntax: Sequence[Sequence[Mark]] = ()
) -> Iterator[bytes]:
    for at, line in enumerate(lines):
        yield _content_line(sign + line.removesuffix(b"\n"), screen, syntax[at] if syntax else ())
        if not line.endswith(b"\n"):
            yield _NO_NEWLINE + b"\n"


def _content_line(line: bytes, screen: Screen, marks: Sequence[Mark] = ()) -> bytes:
    shown = screen.content(line)
    color = _SIGN_COLOR.get(line[:1])
    if screen.color and (marks or color is not None):
        sign, text = line[:1].decode(), shown[1:].decode()
        if color is None:
            shown = f"{sign}{screen.highlight(text, marks)}".encode()
        else:
            shown = screen.paint(sign + screen.emphasize(text, (), marks), color).encode()
    return shown + b"\n"


# ---- diffs of two texts


def diff_text(
    before: bytes | None,
    after: bytes | None,
    path_before: str,
    path_after: str,
    screen: Screen,
    *,
    modes: tuple[int, int] | None = None,
    is_move: bool = True,
) -> Iterator[bytes]:
    """Yield the unified diff of a file, with git's extended header lines for what no hunk can express.

    None means no file. `modes` are the permission bits before and after. `is_move`: whether two paths are those of one
    file that was moved, and not of two files that are compared.
    """
    yield from extended_header(
        path_before,
        path_after,
        *(modes or (0o644, 0o644)),
        screen,
        is_new=before is None,
        is_gone=after is None,
        is_move=is_move,
    )
    if before is not None and after is not None and form_of(before) is not form_of(after):
        yield screen.line(screen.paint(f"encoding {form_of(before).words} -> {form_of(after).words}", bold=True))
    before, after = (None if side is None else shown_lines(side) for side in (before, after))
    if screen.columns and not is_either_binary(before or b"", after or b""):
        yield from _diff_columns(before or b"", after or b"", screen)
        return
    diff = unified_diff(
        before,
        after,
        path_before=f"a/{path_before}",
        path_after=f"b/{path_after}",
    )
    # Only b"\n" ends a line here; splitlines() would cut at CR too.
    rows = diff.removesuffix(b"\n").split(b"\n") if diff else []
    names = 2 if rows and rows[0].startswith(b"--- ") else 0
    for row in rows[:names]:
        yield screen.line(screen.paint(row.decode(), bold=True))
    yield from _diff_rows(rows[names:], screen)


def extended_header(
    path_before: str,
    path_after: str,
    mode_before: int,
    mode_after: int,
    screen: Screen,
    *,
    is_new: bool,
    is_gone: bool,
    is_move: bool = True,
) -> Iterator[bytes]:
    """Yield the lines above the names of a file in git's form. `is_move`: as for `diff_text`."""
    header = [f"diff --git {diff_name('a', path_before)} {diff_name('b', path_after)}"]
    if is_new:
        header.append(f"new file mode {git_mode(mode_after)}")
    elif is_gone:
        header.append(f"deleted file mode {git_mode(mode_before)}")
    elif mode_before != mode_after:
        header += [f"old mode {git_mode(mode_before)}", f"new mode {git_mode(mode_after)}"]
    if is_move and not is_new and not is_gone and path_before != path_after:
        header += [f"rename from {diff_name('', path_before)}", f"rename to {diff_name('', path_after)}"]
    for line in header:
        yield screen.line(screen.paint(line, bold=True))


def diff_name(side: str, path: str) -> str:
    """Return a file's name as a header of a diff shows it."""
    # In the form of `unified_diff`, so that one parser understands both.
    return quoted_name(f"{side}/{path}" if side else path).decode()


def _diff_columns(before: bytes, after: bytes, screen: Screen) -> Iterator[bytes]:
    from objstore import diff_lines

    old, new = split_lines(before), split_lines(after)
    hunks = [hunk for _, hunk in numbered_hunks(old, new, diff_lines(before, after))]
    if not hunks:
        return  # an empty file was created or deleted, or only a name or mode differs
    shown = 0
    for hunk, following in zip(hunks, [*(later.old_start for later in hunks[1:]), len(old)], strict=True):
        yield from hunk_text(old, new, [hunk], (shown, following), "", screen)
        shown = min(hunk.old_end + CONTEXT, following)


def _labelled(rows: Sequence[bytes]) -> Iterator[bytes]:
    """Yield the lines of hunks, and in their headers what of a change can't be seen."""
    heads = [at for at, row in enumerate(rows) if row.startswith(b"@@ ")]
    yield from rows[: next(iter(heads), len(rows))]
    for at, end in pairwise((*heads, len(rows))):
        removed, added = ([row[1:] + b"\n" for row in rows[at:end] if row.startswith(sign)] for sign in (b"-", b"+"))
        words = ", ".join(_invisible(removed, added))
        yield rows[at] + (f" {words}".encode() if words else b"")
        yield from rows[at + 1 : end]


def _diff_rows(rows: Sequence[bytes], screen: Screen) -> Iterator[bytes]:
    """Yield the lines of hunks, each change as one piece."""
    if not screen.color:
        yield from (_content_line(row, screen) for row in (rows if screen.guarded else _labelled(rows)))
        return
    at = 0
    while at < len(rows):
        change, old, new = at, list[bytes](), list[bytes]()
        # A remark about a missing newline belongs to the line before it.
        for side, sign in ((old, b"-"), (new, b"+")):
            while at < len(rows) and (rows[at][:1] == sign or (side and rows[at] == _NO_NEWLINE)):
                if rows[at] == _NO_NEWLINE:
                    side[-1] = side[-1].removesuffix(b"\n")
                else:
                    side.append(rows[at][1:] + b"\n")
                at += 1
        if at > change:
            yield from _sides(old, new, screen)
        else:
            yield _content_line(rows[at], screen)
            at += 1
