"""Find keywords, strings, comments, numbers and names in the lines of a file, with Pygments.

Only positions are taken from Pygments: what is printed is the text that would be printed without it, with the same
escapes. Its lexers are regular expressions, which a hostile text can make slow, so a file that takes too long is
printed without.
"""

import os
import signal
import threading
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import Final, NamedTuple

from objstore import value

__all__ = ["PLAIN_SYNTAX", "Mark", "Syntax", "syntax_of"]

_MOST_CHARACTERS: Final = 100_000
_MOST_SECONDS: Final = 0.25


class Mark(NamedTuple):
    """Characters of a line, from `start` up to `end`, of one kind.

    The kinds are keyword, string, comment, number and name: that of a function, class or tag where it is defined.
    """

    start: int
    end: int
    kind: str


@value
class Syntax:
    """The marks of each line of both sides of a change; none where nothing is known."""

    old: Sequence[Sequence[Mark]]
    new: Sequence[Sequence[Mark]]


PLAIN_SYNTAX: Final = Syntax(old=(), new=())


def syntax_of(path_before: str, path: str, old: Sequence[str], new: Sequence[str]) -> Syntax:
    """Return the marks of the lines of both sides, given as they are shown."""
    return Syntax(old=_marks(path_before, old), new=_marks(path, new))


# ---- inside


class _TooSlow(BaseException):
    """Raised when a text takes too long.

    Not an Exception: Pygments, interrupted while it compiles a lexer, turns each of those into a ValueError.
    """


def _marks(path: str, lines: Sequence[str]) -> list[list[Mark]]:
    text = "\n".join(lines) + "\n"
    if not lines or len(text) > _MOST_CHARACTERS or threading.current_thread() is not threading.main_thread():
        return []
    # Imported here: a command that shows no code in colour must not wait for it.
    from pygments.lexers import get_lexer_for_filename  # type: ignore[import-untyped]  # it ships no types
    from pygments.token import Comment, Keyword, Name, Number, String  # type: ignore[import-untyped]  # as above
    from pygments.util import ClassNotFound  # type: ignore[import-untyped]  # as above

    kinds = (
        *((Keyword, "keyword"), (String, "string"), (Comment, "comment"), (Number, "number")),
        *((name, "name") for name in (Name.Function, Name.Class, Name.Tag)),
    )
    try:
        lexer = get_lexer_for_filename(os.path.basename(path))  # noqa: PTH119 -- a name, not a place
    except ClassNotFound:
        return []
    starts = [0, *accumulate(len(line) + 1 for line in lines)]
    found: list[list[Mark]] = [[] for _ in lines]
    try:
        with _limited():
            for at, token, words in lexer.get_tokens_unprocessed(text):
                kind = next((name for group, name in kinds if token in group), "")
                if kind:
                    _mark(found, starts, at, at + len(words), kind)
    except _TooSlow:
        return []
    return found


def _mark(found: list[list[Mark]], starts: Sequence[int], start: int, end: int, kind: str) -> None:
    """Mark the characters from `start` up to `end` of the whole text in each of their lines."""
    line = bisect_right(starts, start) - 1
    while start < end and line < len(found):
        stop = min(end, starts[line + 1] - 1)
        if stop > start:
            found[line].append(Mark(start - starts[line], stop - starts[line], kind))
        line += 1
        start = starts[line]


@contextmanager
def _limited() -> Iterator[None]:
    """Raise _TooSlow after some time, also in the middle of a regular expression."""

    def stop(*_: object) -> None:
        raise _TooSlow

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, _MOST_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
