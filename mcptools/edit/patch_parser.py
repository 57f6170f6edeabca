r"""Parse unified diffs strictly, and report what is wrong with an invalid patch, and where.

`unidiff` parses; this module refuses what it accepts silently: hunk headers without numbers, lines outside of any hunk,
and lines of which it keeps only a part. Sources: POSIX `diff -u`, "Unified Format"; GNU diff for the marker
`\ No newline at end of file`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise, repeat
from typing import Final, TypeVar

from unidiff import Hunk as ParsedHunk, PatchedFile, PatchSet, UnidiffParseError

from mcptools.edit.hunk_counts import (
    BETWEEN_FILES,
    HUNK_HEADER,
    NO_NEWLINE,
    OF_OTHER_FILES,
    corrected,
    with_english_marks,
)
from mcptools.edit.patch_headers import NOWHERE, Section, ends_patch, is_epoch, sections, unquoted
from mcptools.edit.unified_diff import FilePatch, InvalidPatch, PatchHunk, PatchLine

__all__ = ["InvalidPatch", "joined_parts", "parse_patch", "parse_patches"]

ItemT = TypeVar("ItemT")

_NO_MARK: Final = "a line that is neither context, removed nor added"
_BEYOND: Final = "a line beyond the counts in its hunk's @@ header"
_UNNUMBERED: Final = "a hunk header without line numbers"

_UNIFIED: Final = "Send a unified diff: --- FILE, +++ FILE, and above each hunk @@ -START,COUNT +START,COUNT @@."
_OTHERS: Final = (
    ("*** Begin Patch", "it is in the format of *** Begin Patch", _UNIFIED),
    ("<<<<<<< SEARCH", "it is in the format of <<<<<<< SEARCH", _UNIFIED),
    ("```", "it is inside a code fence", "Send the diff alone, without the lines of ```."),
    ("\ufeff", "it begins with a byte-order mark", "Send the diff without the mark."),
)
"""Beginnings of patch formats of other programs, the reason to refuse each, and what to send instead."""

_MANY: Final = 1000
"""Lines of a patch that are parsed in a few milliseconds."""


def parse_patch(patch: str, *, correct: bool = False, between: Callable[[], object] = lambda: None) -> FilePatch:
    """Return the part of a patch of exactly one file. Arguments and errors as of `parse_patches`."""
    parts = parse_patches(patch, correct=correct, between=between)
    if not parts:
        raise InvalidPatch("the patch is empty")
    if len(parts) > 1:
        raise InvalidPatch("more than one file; send a patch for each")
    part = parts[0]
    if part.more is not None:
        raise part.more
    if not part.hunks and part.source is not None is not part.target:
        raise InvalidPatch("no hunks")
    return part


def parse_patches(
    patch: str, *, correct: bool = False, likely: bool = False, between: Callable[[], object] = lambda: None
) -> tuple[FilePatch, ...]:
    """Return a patch's part for each file, in order; () if it is blank. Raises InvalidPatch.

    A part that asks for more than changed lines, such as a rename, says so in `more`. The last line may lack its
    newline. A file's headers may come without hunks. `correct`: where the counts in hunk headers are wrong, correct
    them if their lines leave no doubt; `likely`: also if they leave some, for a reader that changes no file. `between`:
    called every thousand lines. Raises what it raises.
    """
    if not patch.isascii():
        try:
            patch.encode()
        except UnicodeEncodeError as error:
            raise InvalidPatch("a character that UTF-8 can't encode") from error
    if not patch.strip():
        return ()
    text = patch if patch.endswith("\n") else f"{patch}\n"
    try:
        return _parsed(text, between)
    except InvalidPatch as refusal:
        if (correct or likely) and (parts := _corrected(text, refusal, between, likely=likely)):
            return parts
        if (other := _of_another_format(patch)) is not None:
            raise other from None
        raise


def joined_parts(parts: Sequence[FilePatch]) -> list[FilePatch]:
    """Return the parts of a patch, those of one file that only change its lines as one."""
    found: dict[object, FilePatch] = {}
    for at, part in enumerate(parts):
        changes_lines = part.more is None and part.source is not None and part.target is not None and not part.is_copy
        key = part.names if changes_lines else at
        prior = found.get(key)
        found[key] = part if prior is None else prior.joined(part)
    return list(found.values())


# ---- parsing


def _parsed(patch: str, between: Callable[[], object]) -> tuple[FilePatch, ...]:
    lines = with_english_marks(patch.split("\n"))
    parts = [part for section in sections(lines, between) for part in _parts(section, between)]
    if not parts:
        raise InvalidPatch("missing --- header", 1)
    return tuple(parts)


def _parts(section: Section, between: Callable[[], object]) -> Iterator[FilePatch]:
    """Yield the parts of a section: that of its header, and those of further `---` lines."""
    alone = section.without_lines()
    if alone is not None:
        yield alone
    try:
        files = PatchSet(_said(section, between))
    except UnidiffParseError as error:
        raise _misread(str(error), section) from error
    _check_all_was_read(files, section, between)
    for index, file in enumerate(files):
        is_headed = alone is None and index == 0
        more = section.more() if is_headed else None
        made = _file_patch(file, section, between)
        yield replace(made, more=more, is_copy=section.is_copy, is_rename=section.is_rename) if is_headed else made


def _corrected(
    patch: str, refusal: InvalidPatch, between: Callable[[], object], *, likely: bool
) -> tuple[FilePatch, ...]:
    """Return the parts of a patch with right counts in its hunk headers, or () if it is not certain what is right."""
    right = corrected(patch.split("\n"), between, likely=likely)
    if right is None:
        return ()
    try:
        parts = _parsed("\n".join(right.lines), between)
    except InvalidPatch:
        return ()
    number = min(right.counted)
    refusal.hint = _right_header(number, "@@".join(right.lines[number - 1].split("@@", 2)[:2]) + "@@")
    made = []
    for part in parts:
        hunks = [replace(hunk, counted=right.counted.get(hunk.lines[0].number - 1)) for hunk in part.hunks]
        doubt = refusal if any(hunk.counted for hunk in hunks) else None
        made.append(replace(part, hunks=tuple(hunks), doubt=doubt))
    return tuple(made)


def _watched(items: Iterable[ItemT], between: Callable[[], object]) -> Iterator[ItemT]:
    """Yield the items, and call `between` before the first and before every thousandth after it."""
    for number, item in enumerate(items):
        if not number % _MANY:
            between()
        yield item


def _said(section: Section, between: Callable[[], object]) -> Iterator[str]:
    """Yield the lines of a section with their endings, with header lines replaced that only `Section` reads."""
    for number, line in enumerate(_watched(section.plain(), between), 1):
        if line.startswith("@@ -") and not HUNK_HEADER.fullmatch(line.removesuffix("\n")):
            raise _not_a_header(line, section, number)
        yield line


def _file_patch(file: PatchedFile, section: Section, between: Callable[[], object]) -> FilePatch:
    is_crlf = all(line.endswith("\r") for line in section.lines[:-1])
    hunks = tuple(_hunk(parsed, section, between) for parsed in file)
    if is_crlf:  # the mark for a missing newline is a line of its own, so the line above it got CRLF, too
        hunks = tuple(replace(hunk, lines=tuple(map(_without_cr_at_end, hunk.lines))) for hunk in hunks)
    source, target = unquoted(file.source_file.removesuffix("\r")), unquoted(file.target_file.removesuffix("\r"))
    # A file may have that time: it means that there is none only where the patch has no line of it either.
    comes = source == NOWHERE or (is_epoch(file.source_timestamp) and not any(hunk.old for hunk in hunks))
    goes = target == NOWHERE or (is_epoch(file.target_timestamp) and not any(hunk.new for hunk in hunks))
    return FilePatch(
        source=None if comes else source,
        target=None if goes else target,
        hunks=hunks,
        bridges=not any(line.text.endswith(b"\r\n") for hunk in hunks for line in hunk.lines),
        is_crlf=is_crlf,
    )


def _without_cr_at_end(line: PatchLine) -> PatchLine:
    return line if line.text.endswith(b"\n") else replace(line, text=line.text.removesuffix(b"\r"))


def _check_all_was_read(files: PatchSet, section: Section, between: Callable[[], object]) -> None:
    """Refuse a section with a line that unidiff ignored or kept only partly."""
    lines = section.lines
    read = {
        line.diff_line_no: line for file in files for hunk in file for line in hunk if line.diff_line_no is not None
    }
    in_hunks = in_mail = False
    last_file = max((number for number, raw in enumerate(lines, 1) if raw.startswith("--- ")), default=0)
    for number, raw in enumerate(_watched(lines[:-1], between), 1):
        text = raw.removesuffix("\r")
        line = read.get(number)
        if line is not None:
            if f"{raw}\n" not in {line.line_type + line.value, line.value}:
                raise section.invalid(_NO_MARK, number)
            continue
        if HUNK_HEADER.fullmatch(text):
            in_hunks, in_mail = True, False
            continue
        if raw.startswith("@@"):
            raise _not_a_header(raw, section, number)
        if ends_patch(lines, number - 1):
            in_hunks, in_mail = False, True
        if raw.startswith(OF_OTHER_FILES) or (raw.startswith(BETWEEN_FILES) and number <= last_file):
            in_hunks = False
        if in_hunks and text not in {"", NO_NEWLINE}:
            raise section.invalid(_BEYOND, number, hint=_recounted(section, until=number))
        if raw.startswith("--- ") and not in_mail and not lines[number].startswith("+++ "):
            raise section.invalid("missing +++ header")


def _hunk(parsed: ParsedHunk, section: Section, between: Callable[[], object]) -> PatchHunk:
    lines: list[PatchLine] = []
    for part in _watched(parsed, between):
        if part.line_type in {" ", "-", "+"}:
            text = part.value.encode()
            lines.append(PatchLine(mark=part.line_type, text=text, number=(part.diff_line_no or 0) + section.above))
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


# ---- wording


def _of_another_format(patch: str) -> InvalidPatch | None:
    """Return the refusal of a patch in another known format, or None."""
    text = patch.lstrip()
    line = patch.count("\n", 0, len(patch) - len(text)) + 1
    found = (InvalidPatch(reason, line, hint=hint) for begins, reason, hint in _OTHERS if text.startswith(begins))
    return next(found, None)


def _not_a_header(line: str, section: Section, number: int) -> InvalidPatch:
    """Return the refusal of a line that only begins like a hunk header."""
    if line.startswith("@@@"):
        hint = "Send a diff against one parent, such as `git diff MERGE^ MERGE`."
        return section.invalid("it is the combined diff of a merge", number, hint=hint)
    return section.invalid(_UNNUMBERED, number)


def _misread(reason: str, section: Section) -> InvalidPatch:
    """Return unidiff's refusal, reworded so that it says what to correct."""
    lines = section.lines
    if reason.startswith("Unexpected hunk found"):
        if any(above.startswith("--- ") and not line.startswith("+++ ") for above, line in pairwise(lines)):
            return InvalidPatch("missing +++ header")
        return _without_headers(section)
    if reason.startswith("Target without source"):
        return section.invalid("missing --- header", _line_of(reason, lines))
    if reason.startswith("Hunk is"):
        return InvalidPatch(
            f"a {reason[0].lower()}{reason[1:]} by the counts in its @@ header", hint=_recounted(section)
        )
    if reason.startswith("Hunk diff line expected"):
        text = reason.partition(": ")[2].rstrip("\r\n")
        if text.startswith(("@@ ", *BETWEEN_FILES)):
            return InvalidPatch(
                "a hunk is shorter than expected by the counts in its @@ header", hint=_recounted(section)
            )
        return section.invalid(
            _NO_MARK,
            _line_of(reason, lines),
            hint="Each line of a hunk begins with -, +, or, as context, with a blank.",
        )
    return InvalidPatch(reason.strip())


def _line_of(reason: str, lines: Sequence[str]) -> int:
    """Return the number of the line that unidiff's refusal quotes; 0: it has no such line."""
    quoted = reason.partition(": ")[2].rstrip("\r\n")
    return next((number for number, line in enumerate(lines, 1) if line.rstrip("\r") == quoted), 0)


def _without_headers(section: Section) -> InvalidPatch:
    """Return the refusal of a hunk without headers, or with other lines between it and its headers."""
    lines = section.lines
    number = _beyond(lines)
    if number and lines[number - 1][0] in " -+":
        return section.invalid(_BEYOND, number, hint=_recounted(section, until=number))
    if number:
        return section.invalid("text between two hunks", number)
    number = next(number for number, line in enumerate(lines, 1) if line.startswith("@@"))
    return section.invalid(
        "missing --- header", number, hint="A file's first hunk needs --- FILE and +++ FILE above it."
    )


def _recounted(section: Section, *, until: int | None = None) -> str:
    """Return the hint with the corrected form of the first hunk header whose counts are wrong; "": none is.

    `until`: the line, from 1, that is one too many: then the header above it is the wrong one.
    """
    lines = section.lines
    headers = [(at, found) for at, line in enumerate(lines) if (found := HUNK_HEADER.fullmatch(line.rstrip("\r")))]
    if until is not None:
        headers = [(at, found) for at, found in headers if at < until][-1:]
    for at, found in headers:
        body = list(_body(lines, at + 1))
        old, new = sum(line[:1] != "+" for line in body), sum(line[:1] != "-" for line in body)
        start, said_old, new_start, said_new = found.groups("1")
        if (old, new) != (int(said_old), int(said_new)):
            return _right_header(at + 1 + section.above, f"@@ -{start},{old} +{new_start},{new} @@")
    return ""


def _right_header(number: int, header: str) -> str:
    """Return the hint that says what the hunk header at a line, from 1, has to be."""
    return f"By its lines, the header at line {number} of the patch is {header}; context counts as old and new."


def _beyond(lines: Sequence[str]) -> int:
    """Return the first line, from 1, that follows a complete hunk but can't follow a hunk; 0: there is none."""
    old = new = 0  # lines that the current hunk still needs
    in_hunks = False
    for number, raw in enumerate(lines, 1):
        line = raw.rstrip("\r")
        if old > 0 or new > 0:
            if line != NO_NEWLINE:
                old -= line[:1] != "+"
                new -= line[:1] != "-"
        elif (found := HUNK_HEADER.fullmatch(line)) is not None:
            _, said_old, _, said_new = found.groups("1")
            old, new, in_hunks = int(said_old), int(said_new), True
        elif line.startswith((*BETWEEN_FILES, *OF_OTHER_FILES)) or (in_hunks and ends_patch(lines, number - 1)):
            in_hunks = False
        elif in_hunks and line not in {"", NO_NEWLINE}:
            return number
    return 0


def _body(lines: Sequence[str], at: int) -> Iterator[str]:
    """Yield the lines of a hunk from `at` on, up to the first that has no mark.

    An empty line counts as context that lost its blank, if a marked line follows.
    """
    blank = 0
    for number in range(at, len(lines)):
        line = lines[number]
        if line.startswith("--- ") and lines[number + 1 : number + 2] and lines[number + 1].startswith("+++ "):
            return
        if line.rstrip("\r") == "":
            blank += 1
        elif line[0] in " +-":
            yield from repeat("", blank)
            blank = 0
            yield line
        elif line[0] != "\\":
            return
