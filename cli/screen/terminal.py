"""Standard output: colour, the pager, and escaping of text that could mislead or control a terminal."""

from __future__ import annotations

import os
import sys
from functools import cache
from typing import TYPE_CHECKING, Final

from objstore import value

if TYPE_CHECKING:
    import re
    from collections.abc import Iterable, Iterator, Mapping
    from typing import IO, BinaryIO

    from objstore import Json

__all__ = [
    "EXACT",
    "FOR_STDERR",
    "OutputFailed",
    "Screen",
    "beginning_of",
    "can_ask",
    "end_of",
    "flush",
    "guarded",
    "is_delta_pager",
    "listed",
    "padded",
    "screen_for",
    "shown_name",
    "shown_width",
    "visible",
    "width_of_terminal",
    "write",
    "write_json",
]


class OutputFailed(Exception):
    """Raised when standard output accepts no more: full disk, closed pipe, closed descriptor."""

    def __init__(self, cause: OSError) -> None:
        self.errno = cause.errno
        super().__init__(f"The output could not be written: {cause.strerror or cause}")


# ---- how hostile characters are shown

# Besides control characters: Unicode line separators, marks that turn the direction of text, with which one line can
# look like another, and invisible characters, with which a text can hide another one.
TURNING: Final = (0x2028, 0x2029, 0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
CONTROL: Final = (*range(0x20), *range(0x7F, 0xA0))
UNDECODED: Final = range(0xDC80, 0xDD00)  # how Python represents a byte that is not UTF-8
SHORT: Final = {0x07: r"\a", 0x08: r"\b", 0x09: r"\t", 0x0A: r"\n", 0x0B: r"\v", 0x0C: r"\f", 0x0D: r"\r"}


@cache
def _escapes() -> dict[int, str]:
    """Return the escape for each character that must not be sent to a terminal."""
    return (
        {code: f"\\x{code:02x}" for code in CONTROL}
        | {code: f"\\u{code:04x}" for code in TURNING}
        | {code: f"\\x{code - 0xDC00:02x}" for code in UNDECODED}
        | SHORT
    )


@cache
def _hidden() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return patterns for an invisible character, and for one of these or a visible one with those that belong to it.

    Joiners and variation selectors belong to a script or an emoji: each may follow a character of those once.
    """
    import re

    joiners, selectors = "\u200c\u200d", "\ufe00-\ufe0f\U000e0100-\U000e01ef"
    others = "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb"
    nothing = f"{joiners}{selectors}{others}\U000e0000-\U000e0fff"
    owned = f"[^\\x00-\\x7f{nothing}][{selectors}]?[{joiners}]?"
    return re.compile(f"[{nothing}]"), re.compile(f"({owned})|([{nothing}])")


def visible(text: str, *, keep: str = "") -> str:
    """Return `text` with control characters, invisible characters and undecoded bytes escaped.

    Characters in `keep` stay unchanged.
    """
    if text.isascii() and text.isprintable():
        return text
    if not text.isascii():
        any_hidden, with_owners = _hidden()
        if any_hidden.search(text):
            text = with_owners.sub(lambda found: found[1] or _numbered(found[2]), text)
    return text.translate({code: shown for code, shown in _escapes().items() if chr(code) not in keep})


def shown_name(path: str) -> str:
    r"""Return `path` unchanged, or in quotes with C escapes if it could mislead (as git does).

    The result is unambiguous also to the eye: a name with a quote or a backslash is quoted too, and within quotes
    everything invisible is escaped, even what has no effect on a terminal, such as a space of no width.
    """
    if path and path.isprintable() and path == path.strip() == visible(path) and not any(c in path for c in '"\\'):
        return path
    escaped = visible(path.replace("\\", r"\\").replace('"', r"\""))
    return f'"{"".join(c if c.isprintable() else _numbered(c) for c in escaped)}"'


def _numbered(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004 -- four digits end there


def shown_width(text: str) -> int:
    """Return the number of columns of a terminal that a text takes."""
    if text.isascii():
        return len(text)
    from unicodedata import category, east_asian_width

    return sum(
        0 if category(character) in {"Mn", "Me", "Cf"} else 1 + (east_asian_width(character) in {"W", "F"})
        for character in text
    )


def padded(text: str, width: int) -> str:
    """Return `text` padded with spaces to `width` columns of a terminal, if it is not wider."""
    return text + " " * (width - shown_width(text))


def end_of(text: str, width: int) -> str:
    """Return `text` in at most `width` columns: the end of a longer one, after an ellipsis.

    The end of a path says more than its beginning.
    """
    if shown_width(text) <= width:
        return text
    end = text[1 - width :]
    while shown_width(end) > width - 1:
        end = end[1:]
    return f"…{end}"


def beginning_of(text: str, width: int) -> str:
    """Return `text` in at most `width` columns: the beginning of a longer one, before an ellipsis."""
    if shown_width(text) <= width:
        return text
    beginning = text[: width - 1].rstrip()
    while shown_width(beginning) > width - 1:
        beginning = beginning[:-1]
    return f"{beginning}…"


def width_of_terminal() -> int:
    """Return the number of columns of the terminal on standard output (0: it is no terminal)."""
    if sys.stdout is None or not sys.stdout.isatty():
        return 0
    import shutil

    return shutil.get_terminal_size().columns


# ---- writing

FOR_SHELLS: Final = frozenset("|&;<>()$`\n")
"""Characters that make the value of PAGER a command line for a shell, as with other programs."""

REVERSE: Final = "\x1b[7m"
NOT_REVERSE: Final = "\x1b[27m"

IN_COLOR: Final = {"keyword": ("\x1b[1m", "\x1b[22m"), "comment": ("\x1b[3m", "\x1b[23m")}
"""How keywords and comments are shown in a coloured line: bold and slanted. The page shows more kinds."""

IN_PLAIN: Final = {
    "keyword": ("\x1b[34m", "\x1b[0m"),
    "string": ("\x1b[36m", "\x1b[0m"),
    "comment": ("\x1b[90m", "\x1b[0m"),
}
"""The same in a line without a colour of its own. They end with the code that also ends what a screen cuts off."""


@value
class Screen:
    """The properties of standard output: colour, escaping, width."""

    color: bool
    guarded: bool  # a person reads it: control characters in files are escaped
    columns: int = 0  # width for both sides of a change next to each other; 0: one below the other

    def paint(self, text: str, color: str | None = None, *, bold: bool = False) -> str:
        """Return `text`, coloured if colour is on."""
        if not self.color:
            return text
        import click

        return click.style(text, fg=color, bold=bold or None)

    def emphasize(self, text: str, spans: Iterable[tuple[int, int]], marks: Iterable[tuple[int, int, str]] = ()) -> str:
        """Return `text` with the given spans, from start up to end, in reverse video if colour is on.

        `marks`: keywords, strings and comments, which are shown so that the colour of the line stays.
        """
        return self._switched(text, [(*span, REVERSE, NOT_REVERSE) for span in spans], marks, IN_COLOR)

    def highlight(self, text: str, marks: Iterable[tuple[int, int, str]]) -> str:
        """Return `text` with its keywords, strings and comments in colours of their own if colour is on."""
        return self._switched(text, [], marks, IN_PLAIN)

    def _switched(
        self,
        text: str,
        spans: list[tuple[int, int, str, str]],
        marks: Iterable[tuple[int, int, str]],
        styles: Mapping[str, tuple[str, str]],
    ) -> str:
        """Return `text` with each span, and each mark that has a style, between the codes that begin and end it."""
        if not self.color:
            return text
        spans += [(start, end, *styles[kind]) for start, end, kind in marks if kind in styles]
        codes = sorted([(end, 0, off) for _, end, _, off in spans] + [(start, 1, on) for start, _, on, _ in spans])
        pieces, at = [], 0
        for place, _, code in codes:
            pieces += [text[at:place], code]
            at = place
        return "".join((*pieces, text[at:]))

    def line(self, text: str = "") -> bytes:
        """Return `text` and a line feed, as bytes to write."""
        return text.encode("utf-8", "backslashreplace") + b"\n"

    def content(self, line: bytes) -> bytes:
        """Return a line of a file, without its line feed, as bytes to write.

        The bytes are exact, unless a person reads them.
        """
        return listed(line) if self.guarded else line


def listed(line: bytes) -> bytes:
    """Return a line of a file for a view that only people read: control characters are escaped in a pipe, too."""
    return visible(line.decode("utf-8", "surrogateescape"), keep="\t").encode()


FOR_STDERR: Final = Screen(color=False, guarded=True)
"""Writes to standard error: for a person, without colour."""

EXACT: Final = Screen(color=False, guarded=False)
"""Writes for a program: without colour, and the exact bytes of files."""


def screen_for(color: str) -> Screen:
    """Return how to write to standard output, given --color (auto, always or never)."""
    terminal = sys.stdout is not None and sys.stdout.isatty()
    plain = bool(os.environ.get("NO_COLOR")) or _is_dumb()
    colored = color == "always" or (color == "auto" and terminal and not plain)
    return Screen(color=colored, guarded=terminal or colored)


def _is_dumb() -> bool:
    """Return whether the terminal only shows text; an unknown terminal may be one."""
    return os.environ.get("TERM", "") in {"", "dumb"}


def can_ask() -> bool:
    """Return whether a person can be asked: both stdin and stderr are terminals."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


def guarded(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the bytes of a file; for a terminal, with control characters and undecoded bytes escaped."""
    if not screen_for("never").guarded:
        yield from pieces
        return
    from codecs import getincrementaldecoder

    decoder = getincrementaldecoder("utf-8")("surrogateescape")
    for piece in pieces:
        yield visible(decoder.decode(piece), keep="\t\n").encode()
    yield visible(decoder.decode(b"", final=True)).encode()


def write(pieces: Iterable[bytes], *, paged: bool = False) -> None:
    """Write `pieces` to standard output; with `paged`, through the pager if that is a terminal.

    Raises OutputFailed.
    """
    on_terminal = sys.stdout is not None and sys.stdout.isatty() and not _is_dumb()
    if paged and on_terminal and _page(pieces):
        return
    out = _stdout()
    for piece in pieces:
        try:
            out.write(piece)
        except OSError as error:
            raise OutputFailed(error) from error


def write_json(shapes: Iterable[dict[str, Json]]) -> None:
    """Write JSON objects to standard output, one a line. Raises OutputFailed."""
    from objstore import json_line

    write(map(json_line, shapes))


def flush() -> None:
    """Flush standard output. Raises OutputFailed."""
    if sys.stdout is not None:
        try:
            sys.stdout.flush()
        except OSError as error:
            raise OutputFailed(error) from error


def _stdout() -> BinaryIO:
    if sys.stdout is None:
        raise OutputFailed(OSError("standard output is closed"))
    return sys.stdout.buffer


def is_delta_pager() -> bool:
    """Return whether the pager is `delta`, which colours diffs and shows them in columns by itself."""
    words = _pager()[1]
    return bool(words) and os.path.basename(words[0]) == "delta"  # noqa: PTH119 -- pathlib costs start-up


def _pager() -> tuple[str, list[str]]:
    """Return the command line of the pager, and its words; no words if its quotes don't match."""
    import shlex

    wanted = os.environ.get("CAS_PAGER", os.environ.get("PAGER", "less -FRX"))
    try:
        return wanted, shlex.split(wanted)
    except ValueError:  # an unclosed quote names no program
        return wanted, []


def _page(pieces: Iterable[bytes]) -> bool:
    """Show `pieces` in the pager; return False, and consume nothing, if there is no pager."""
    import shutil
    import signal
    import subprocess

    wanted, words = _pager()
    program = shutil.which(words[0]) if words else None
    if program is None or words == ["cat"]:
        return False
    if FOR_SHELLS & set(wanted):
        program, words = "/bin/sh", ["sh", "-c", wanted]
    # A plain `less` in PAGER must behave like our default; the user's own LESS wins.
    environment = {"LESS": "FRX"} | dict(os.environ)
    chosen = [program, *words[1:]]
    with subprocess.Popen(chosen, stdin=subprocess.PIPE, env=environment) as pager:  # noqa: S603 -- the person's own
        # Ctrl-C belongs to the pager while it runs.
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            _feed(pager.stdin, pieces)
            pager.wait()
        finally:
            signal.signal(signal.SIGINT, before)
    return True


def _feed(pager: IO[bytes] | None, pieces: Iterable[bytes]) -> None:
    if pager is None:
        raise TypeError("a pager without a pipe")
    try:
        with pager:
            for piece in pieces:
                pager.write(piece)
    except BrokenPipeError:
        # The user left the pager: that is no failure.
        return
