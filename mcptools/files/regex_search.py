"""Find the lines of a text that match a pattern, within a time that even a malicious expression can't exceed.

Python's regular expressions can take exponential time, and only the end of their process interrupts them. So they run
in a child process, which is killed when the time is over; plain text is searched in this process.
"""

import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple, Self, TypeAlias

from mcptools.edit.display import shown
from mcptools.model.cancellation import checkpoint
from mcptools.model.failures import Failure, FailureKind
from objstore import split_lines

__all__ = ["Hit", "LinesOf", "TooSlow", "matching", "too_slow"]


class Hit(NamedTuple):
    """A line that matches the pattern."""

    line: int  # from 1
    at: int  # characters of the line before its first match


LinesOf: TypeAlias = Callable[[bytes], list[Hit]]
"""Returns the lines of a text that match the pattern."""

_PROGRAM: Final = r"""
import re, sys

def given():
    return sys.stdin.buffer.read(int.from_bytes(sys.stdin.buffer.read(8), "big"))

def lines(content):
    found = content.split(b"\n")
    return found if found[-1] else found[:-1]

try:
    pattern = re.compile(given().decode("utf-8", "surrogatepass"), int(sys.argv[1]))
except (re.error, RecursionError, OverflowError) as error:
    sys.exit(str(error).encode("ascii", "backslashreplace").decode())
print(flush=True)
while True:
    content = given()
    print(*(f"{number}:{found.start()}" for number, line in enumerate(lines(content), 1)
            if (found := pattern.search(line.removesuffix(b"\r").decode("utf-8", "backslashreplace")))), flush=True)
"""
_CHUNK: Final = 1 << 16
_MANY: Final = 1000
"""Lines that are searched in a few milliseconds; after so many, the call checks whether it was cancelled."""

_POLL: Final = 0.1
"""Seconds between two checks, while the child runs, whether the call was cancelled."""


class TooSlow(Exception):
    """The time was over before the search had ended."""


def too_slow(pattern: str, seconds: float) -> Failure:
    """Return the refusal of a pattern that exceeds the time limit in a single file, so that no narrower call helps."""
    message = f"Searching for {shown(pattern)!r} takes longer than {seconds:g} s"
    return Failure(FailureKind.RESOURCE_LIMIT, message, hint="Use a simpler expression.")


@contextmanager
def matching(pattern: str, *, use_regex: bool, ignore_case: bool, seconds: float) -> Iterator[LinesOf]:
    """Yield a function that returns a text's matching lines, and raises TooSlow once `seconds` have passed.

    Raises Failure for an empty pattern, and for an invalid regular expression.
    """
    if not pattern:
        raise Failure(FailureKind.INVALID_REQUEST, "The text to look for cannot be empty")
    flags = re.IGNORECASE if ignore_case else re.NOFLAG
    if not use_regex:
        yield _literal(re.compile(re.escape(pattern), flags))
        return
    with _Child(flags, seconds) as child:
        try:
            child.ask(pattern.encode("utf-8", "surrogatepass"))
        except TooSlow:
            reason = child.last_words()
            if not reason:
                raise
            message = f"Not a regular expression: {shown(pattern)!r}: {reason}"
            raise Failure(FailureKind.INVALID_REQUEST, message) from None
        yield lambda content: [Hit(*map(int, hit.split(b":"))) for hit in child.ask(content).split()]


def _literal(pattern: re.Pattern[str]) -> LinesOf:
    def lines(content: bytes) -> list[Hit]:
        hits: list[Hit] = []
        for number, line in enumerate(split_lines(content), 1):
            if not number % _MANY:
                checkpoint()
            text = line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8", "backslashreplace")
            if (found := pattern.search(text)) is not None:
                hits.append(Hit(number, found.start()))
        return hits

    return lines


class _Child:
    """A child process that searches with one regular expression."""

    def __init__(self, flags: re.RegexFlag, seconds: float) -> None:
        self._deadline = time.monotonic() + seconds
        self._process = subprocess.Popen(  # noqa: S603 - our own program; the pattern is data on its standard input
            [sys.executable, "-I", "-S", "-c", _PROGRAM, str(int(flags))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._process:
            self._process.kill()

    def ask(self, content: bytes) -> bytes:
        """Return the line with which the child answers `content`. Raises TooSlow, also if the child has ended."""
        pipe, answers = self._process.stdin, self._process.stdout
        if pipe is None or answers is None:
            raise TooSlow
        try:
            pipe.write(len(content).to_bytes(8, "big") + content)
            pipe.flush()
        except BrokenPipeError:
            raise TooSlow from None
        answer = b""
        while not answer.endswith(b"\n"):
            checkpoint()
            left = max(0.0, self._deadline - time.monotonic())
            ready, _, _ = select.select([answers], [], [], min(left, _POLL))
            if not ready and left > _POLL:
                continue
            part = os.read(answers.fileno(), _CHUNK) if ready else b""
            if not part:
                raise TooSlow
            answer += part
        return answer

    def last_words(self) -> str:
        """Kill the child, and return its error message; "": it had none."""
        self._process.kill()
        errors = self._process.stderr
        return "" if errors is None else errors.read().decode().strip()
