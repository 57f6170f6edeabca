"""Split a patch into sections, one for each header of git or Bazaar, and read what a header asks for.

A unified diff names its file by `---` and `+++` lines. Programs write more above these: git and Mercurial a `diff
--git` line, Bazaar a `===` line, and below it renames, copies, modes and binary content, for which there may be no
`---` line at all. Sources: `git diff`, "Generating patch text with -p"; git's apply.c for times that mean no file.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from mcptools.edit.unified_diff import FilePatch, InvalidPatch

__all__ = ["NOWHERE", "Section", "ends_patch", "is_epoch", "sections", "unquoted"]

NOWHERE: Final = "/dev/null"

_GIT: Final = "diff --git "
_BAZAAR: Final = re.compile(
    r"=== (?:modified|added|removed|renamed) (?:file|directory|symlink) '(.*?)'(?: => '(.*)')?.*"
)
_BINARY: Final = ("Binary file ", "Binary files ")
_NOT_LINES: Final = (
    "rename from ",
    "rename to ",
    "copy from ",
    "copy to ",
    "old mode ",
    "new mode ",
    "new file mode ",
    "deleted file mode ",
    "GIT binary patch",
    *_BINARY,
)
"""Beginnings of header lines that ask for more than a change of lines."""

_HEADER: Final = (*_NOT_LINES, "similarity index ", "dissimilarity index ", "index ")
"""Beginnings of the lines of git's header."""

_SPECIAL: Final = re.compile(r"(?:new file mode|deleted file mode|old mode|index [0-9a-f]+\.\.[0-9a-f]+) (12|16)0000")
"""A line of git's header that says that its part is no file's, but a symbolic link's or a submodule's."""

_RENAMES: Final = ("rename from ", "rename to ", "=== renamed ")
"""Beginnings of header lines that ask for a rename."""

_COMES_OR_GOES: Final = (("new file mode ", f"--- {NOWHERE}"), ("deleted file mode ", f"+++ {NOWHERE}"))
"""Git's header lines for a created or deleted file, and the unified diff's header that means the same."""

_QUOTED: Final = re.compile(r'"((?:[^"\\]|\\(?:["\\abtnvfr]|[0-3][0-7]{2}))*)"')
"""A name in quotes, as git and GNU diff write one with unusual bytes."""

_ESCAPE: Final = re.compile(rb"\\([0-3][0-7]{2}|.)")
_ESCAPED: Final = {b"a": b"\a", b"b": b"\b", b"t": b"\t", b"n": b"\n", b"v": b"\v", b"f": b"\f", b"r": b"\r"}

_MAIL: Final = re.compile(r"From [0-9a-f]{40} .*|# HG changeset patch")
"""The first line of a mail of `git format-patch`, or of a change that `hg export` wrote."""

_PROPERTIES: Final = "Property changes on: "
_UNDERLINE: Final = "_" * 60
"""How Subversion begins what it says of a file's properties."""

_TIME: Final = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?:\.0+)? ([-+]\d\d):?(\d\d)")

_LONGEST: Final = 3000
"""Characters of two names in one header that are separated; each possible cut between them is tried."""

_MANY: Final = 1000
"""Lines that are read in a few milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """The lines of a patch from one header to the next."""

    lines: Sequence[str]  # without their newlines; the last one is empty, after the last newline
    above: int  # lines of the patch above it

    @property
    def is_headed(self) -> bool:
        """Return whether it begins with a header of git or Bazaar."""
        return _is_header(self.lines[0])

    def invalid(self, reason: str, number: int = 0, *, hint: str = "") -> InvalidPatch:
        """Return the refusal of a line of this section, counted from 1; 0: of no line."""
        return InvalidPatch(reason, number + self.above if number else 0, hint=hint)

    def plain(self) -> Iterator[str]:
        """Yield its lines with their newlines, and with `diff ` for those that only its header understands."""
        for line in self.lines[:-1]:
            yield "diff \n" if line.startswith((_GIT, *_NOT_LINES)) else f"{line}\n"

    def more(self) -> InvalidPatch | None:
        """Return the refusal of the first thing that its header asks for besides changed lines, or None.

        A created or deleted file is no such thing. Raises InvalidPatch for a header that contradicts the `---` and
        `+++` lines.
        """
        names = self._names_of_lines()
        for number, line in enumerate(self._header(), 1):
            if (special := _SPECIAL.fullmatch(line)) is not None:
                what = "a symbolic link" if special[1] == "12" else "a submodule"
                return self.invalid(f"only changes to lines of files can be applied, not to {what}", number)
            asks = line.startswith((*_NOT_LINES, "=== renamed ")) or (_is_header(line) and line.endswith(")"))
            refusal = self.invalid(f"only changes to lines can be applied, not {line!r}", number)
            agreed = next((header for begins, header in _COMES_OR_GOES if line.startswith(begins)), None)
            if agreed is not None and names and not any(name.startswith(agreed) for name in names):
                raise refusal
            if asks and (agreed is None or not (names or self.is_headed)):
                return refusal
        return None

    def without_lines(self) -> FilePatch | None:
        """Return the part that its header alone makes, which changes no line; None: the section has no such part.

        Raises InvalidPatch as `more`.
        """
        header = [line for line in self._header() if line.startswith(_NOT_LINES) or _asks_of_bazaar(line)]
        if not header or (self.is_headed and self._names_of_lines()) or not self._is_certain(header):
            return None
        source, target = self._names(header)
        if any(line.startswith("new file mode ") for line in header):
            source = NOWHERE
        if any(line.startswith("deleted file mode ") for line in header):
            target = NOWHERE
        return FilePatch(
            source=None if source == NOWHERE else source,
            target=None if target == NOWHERE else target,
            hunks=(),
            bridges=True,
            more=self.more(),
            is_copy=self.is_copy,
            is_rename=self.is_rename,
        )

    @property
    def is_copy(self) -> bool:
        """Return whether its header says that a file is copied."""
        return any(line.startswith("copy from ") for line in self._header())

    @property
    def is_rename(self) -> bool:
        """Return whether its header says that a file is renamed, and asks for nothing else besides changed lines."""
        asks = [line for line in self._header() if line.startswith(_NOT_LINES) or _asks_of_bazaar(line)]
        return bool(asks) and all(line.startswith(_RENAMES) and not line.endswith(")") for line in asks)

    def _is_certain(self, header: Sequence[str]) -> bool:
        """Return whether these lines are a header, and not words above a patch that begin like one."""
        return self.is_headed or header[0].startswith(_BINARY)

    def _header(self) -> Iterator[str]:
        """Yield the lines of the header: up to the first `---` line or hunk, or in git's to the first other line."""
        for number, raw in enumerate(self.lines[:-1]):
            line = raw.removesuffix("\r")
            if line.startswith(("--- ", "@@")) or (
                number and self.lines[0].startswith(_GIT) and not line.startswith(_HEADER)
            ):
                return
            yield line
            if line.startswith(_BINARY) and not self.is_headed:
                return

    def _names_of_lines(self) -> tuple[str, ...]:
        """Return the first `---` and `+++` lines, or () if there are none."""
        for at, line in enumerate(self.lines[:-1]):
            if line.startswith("@@"):
                break
            if line.startswith("--- ") and self.lines[at + 1].startswith("+++ "):
                return line.removesuffix("\r"), self.lines[at + 1].removesuffix("\r")
        return ()

    def _names(self, header: Sequence[str]) -> tuple[str, str]:
        """Return the names of source and target, with git's prefixes."""
        first = self.lines[0].removesuffix("\r")
        if first.startswith(_GIT):
            said = dict[str, str]()
            for line in header:
                verb, _, name = line.removeprefix("rename ").removeprefix("copy ").partition(" ")
                if line.startswith(("rename ", "copy ")):
                    said[verb] = unquoted(name)
            if len(said) > 1:
                return f"a/{said['from']}", f"b/{said['to']}"
            return _halves(first.removeprefix(_GIT))
        bazaar = _BAZAAR.fullmatch(first)
        if bazaar is not None:
            source, target = bazaar[1], bazaar[2] or bazaar[1]
            return (
                NOWHERE if first.startswith("=== added ") else source,
                NOWHERE if first.startswith("=== removed ") else target,
            )
        names = header[0].partition(" ")[2].removeprefix("file ").removeprefix("files ")
        names = names.removesuffix(" has changed").removesuffix(" differ")
        return _halves(names, " and ")


def sections(lines: Sequence[str], between: Callable[[], object]) -> Iterator[Section]:
    """Yield the sections of a patch, whose last line is empty. `between`: called every thousand lines."""
    start, has_names = 0, False
    for at, line in enumerate(lines):
        if not at % _MANY:
            between()
        has_names = has_names or line.startswith("--- ")
        is_first = _is_header(line)
        if line.startswith(_BINARY):
            is_first = has_names or not _is_header(lines[start])
        if is_first and at > start:
            yield Section(lines=[*lines[start:at], ""], above=start)
            start, has_names = at, False
    yield Section(lines=lines[start:], above=start)


def ends_patch(lines: Sequence[str], at: int) -> bool:
    """Return whether at line `at`, just below a complete hunk, words begin that are no lines of a file.

    These are a mail's signature, a line `-- ` above one that can't be a line of a hunk; the next mail; and what
    Subversion says of a file's properties, which are not in the file.
    """
    line, below = lines[at].removesuffix("\r"), lines[at + 1 : at + 2]
    is_signed = line == "-- " and bool(below) and below[0].removesuffix("\r")[:1] not in {"", *" -+\\@"}
    has_properties = line.startswith(_PROPERTIES) and bool(below) and below[0].startswith(_UNDERLINE)
    return is_signed or has_properties or _MAIL.fullmatch(line) is not None


def is_epoch(time: str | None) -> bool:
    """Return whether a time next to a name is the beginning of 1970, by which programs say that there is no file."""
    found = None if time is None else _TIME.fullmatch(time.strip())
    if found is None:
        return False
    try:
        return datetime.fromisoformat(f"{found[1]}{found[2]}:{found[3]}").timestamp() == 0
    except ValueError:
        return False


def unquoted(written: str) -> str:
    """Return the name in a header, which may be quoted."""
    quoted = _QUOTED.fullmatch(written)
    if quoted is None:
        return written
    raw = quoted[1].encode("utf-8", "surrogatepass")
    return _ESCAPE.sub(lambda found: _byte(found[1]), raw).decode("utf-8", "surrogateescape")


def _byte(escape: bytes) -> bytes:
    return bytes([int(escape, 8)]) if escape.isdigit() else _ESCAPED.get(escape, escape)


def _is_header(line: str) -> bool:
    return line.startswith(_GIT) or (line.startswith("=== ") and _BAZAAR.fullmatch(line.removesuffix("\r")) is not None)


def _asks_of_bazaar(line: str) -> bool:
    """Return whether a line is a header of Bazaar that means more than that there are hunks below it."""
    return _BAZAAR.fullmatch(line) is not None and (not line.startswith("=== modified ") or line.endswith(")"))


def _halves(written: str, separator: str = " ") -> tuple[str, str]:
    """Return the two names of a header, which may contain the separator if they differ only in their prefixes."""
    if len(written) > _LONGEST:
        return written, written
    cuts = [found.start() for found in re.finditer(re.escape(separator), written)]
    pairs = [(unquoted(written[:cut]), unquoted(written[cut + len(separator) :])) for cut in cuts]
    alike = [pair for pair in pairs if _without_prefix(pair[0]) == _without_prefix(pair[1])]
    nothing = [pair for pair in pairs if NOWHERE in pair]
    return next(iter([*alike, *nothing, *pairs]), (unquoted(written), unquoted(written)))


def _without_prefix(name: str) -> str:
    return name.partition("/")[2] or name
