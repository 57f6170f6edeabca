"""Patch faults: what is wrong with a patch that can't be read, in words that say what to mend, and where."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise, repeat
from typing import Final

__all__ = [
    "BETWEEN_FILES",
    "BEYOND",
    "HUNK_HEADER",
    "NO_MARK",
    "NO_NEWLINE",
    "SIGNED",
    "UNNUMBERED",
    "InvalidPatch",
    "misread",
    "of_another_format",
    "recounted",
]

HUNK_HEADER: Final = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@.*", re.DOTALL)
NO_MARK: Final = "a line that is neither context, removed nor added"
BEYOND: Final = "a line beyond the counts in its hunk's @@ header"
SIGNED: Final = "Where that begins the signature of a mail, leave it out, and what follows."
UNNUMBERED: Final = "a hunk header without line numbers"
NO_NEWLINE: Final = "\\ No newline at end of file"

BETWEEN_FILES: Final = ("--- ", "diff ", "index ", "Index: ", "=====")
"""Beginnings of lines that may stand between the last hunk of one file and the first of the next."""

_UNIFIED: Final = "Send a unified diff: --- FILE, +++ FILE, and above each hunk @@ -START,COUNT +START,COUNT @@."
_OTHERS: Final = (
    ("*** Begin Patch", "it is in the format of *** Begin Patch", _UNIFIED),
    ("<<<<<<< SEARCH", "it is in the format of <<<<<<< SEARCH", _UNIFIED),
    ("```", "it stands between fences", "Send the diff alone, without the lines of ```."),
    ("\ufeff", "it begins with a byte-order mark", "Send the diff without the mark."),
)
"""How what models write for other programs begins, what to say of it, and what to send instead."""


class InvalidPatch(Exception):
    """The text is not a unified diff that can be read in only one way."""

    def __init__(self, reason: str, line: int = 0, *, hint: str = "") -> None:
        self.line = line  # of the patch, from 1; 0: the patch as a whole
        self.hint = hint  # a sentence that helps to mend it; "": the reason says it all
        super().__init__(f"Invalid patch format: {reason}" + (f" at line {line}" if line else ""))


def of_another_format(patch: str) -> InvalidPatch | None:
    """Return the refusal of a text that is a patch for other programs; None where it is none that is known."""
    text = patch.lstrip()
    line = patch.count("\n", 0, len(patch) - len(text)) + 1
    found = (InvalidPatch(reason, line, hint=hint) for begins, reason, hint in _OTHERS if text.startswith(begins))
    return next(found, None)


def misread(reason: str, patch: str) -> InvalidPatch:
    """Return unidiff's refusal in words that say what to mend."""
    lines = patch.split("\n")
    if reason.startswith("Unexpected hunk found"):
        if any(above.startswith("--- ") and not line.startswith("+++ ") for above, line in pairwise(lines)):
            return InvalidPatch("missing +++ header")
        return _without_headers(lines)
    if reason.startswith("Target without source"):
        return InvalidPatch("missing --- header before the +++ header")
    if reason.startswith("Hunk is"):
        return InvalidPatch(f"a {reason[0].lower()}{reason[1:]} by the counts in its @@ header", hint=recounted(lines))
    if reason.startswith("Hunk diff line expected"):
        text = reason.partition(": ")[2].rstrip("\r\n")
        if text.startswith(("@@ ", *BETWEEN_FILES)):
            return InvalidPatch("a hunk is shorter than expected by the counts in its @@ header", hint=recounted(lines))
        number = next((number for number, line in enumerate(lines, 1) if line.rstrip("\r") == text), 0)
        return InvalidPatch(NO_MARK, number, hint="Each line of a hunk begins with -, +, or, as context, with a blank.")
    return InvalidPatch(reason.strip())


def _without_headers(lines: Sequence[str]) -> InvalidPatch:
    """Return the refusal of a hunk that stands below no headers, or below lines that part it from them."""
    number = _beyond(lines)
    if number and lines[number - 1][0] in " -+":
        return InvalidPatch(BEYOND, number, hint=recounted(lines, until=number))
    if number:
        return InvalidPatch("text between two hunks", number)
    number = next(number for number, line in enumerate(lines, 1) if line.startswith("@@"))
    return InvalidPatch("missing --- header", number, hint="Above a file's first hunk stand --- FILE and +++ FILE.")


def recounted(lines: Sequence[str], *, until: int | None = None) -> str:
    """Return what the first hunk header should be whose counts are wrong, as far as its lines tell ("": they don't).

    `until`: the line, from 1, that is one too many: the header above it is meant.
    """
    headers = [(at, found) for at, line in enumerate(lines) if (found := HUNK_HEADER.fullmatch(line.rstrip("\r")))]
    if until is not None:
        headers = [(at, found) for at, found in headers if at < until][-1:]
    for at, found in headers:
        body = list(_body(lines, at + 1))
        old, new = sum(line[:1] != "+" for line in body), sum(line[:1] != "-" for line in body)
        start, said_old, new_start, said_new = found.groups("1")
        if (old, new) != (int(said_old), int(said_new)):
            header = f"@@ -{start},{old} +{new_start},{new} @@"
            return f"By its lines, the header at line {at + 1} of the patch is {header}; context counts as old and new."
    return ""


def _beyond(lines: Sequence[str]) -> int:
    """Return the first line, from 1, below a hunk that is whole and above what can follow it; 0: there is none."""
    old = new = 0  # lines that the hunk has still to come
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
        elif line.startswith(BETWEEN_FILES):
            in_hunks = False
        elif in_hunks and line not in {"", NO_NEWLINE}:
            return number
    return 0


def _body(lines: Sequence[str], at: int) -> Iterator[str]:
    """Yield the lines of a hunk from there on, as far as marks go; an empty one is context whose blank was lost."""
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
