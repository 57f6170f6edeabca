"""The edit history of mcpdiff: what an entry of its logs says, and what its diffs make of a file.

Bytes in, values out; nothing is believed. An entry has exactly the fields of the tool's own description, and a diff is
taken only where every line that it keeps or takes away stands where it says. The caller compares hashes.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from hashlib import sha256
from itertools import pairwise
from typing import Any, Final, NamedTuple

from objstore.fastclass import value
from objstore.model.basic_types import Operation, Status
from objstore.text.lines import split_lines

__all__ = ["BadLine", "DiffChains", "McpdiffEntry", "candidate_origins", "candidate_results", "entries"]

_LONGEST_LINE: Final = 1 << 20
_LONGEST_NAME: Final = 200
"""Characters of an id, of a tool or of a conversation."""

_SHA256: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)
_HUNK: Final = re.compile(rb"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@[^\n]*(?:\n|\Z)")
_OTHER_END: Final = re.compile(rb"[\v\f\x1c-\x1e]|\r(?!\n)|\xc2\x85|\xe2\x80[\xa8\xa9]")
"""At what else than a newline a line is over to the tool, and is not here."""

_END: Final = re.compile(rb"\n|" + _OTHER_END.pattern)
_FIRST_HUNK: Final = re.compile(rb"^" + _HUNK.pattern, re.MULTILINE)


class _DiffMismatch(ValueError):
    """A diff that does not fit what it is said to be told against."""


@value
class McpdiffEntry:
    """One line of a log: one edit, as mcpdiff recorded it."""

    id: str
    conversation: str
    index: int  # of the call in its conversation
    time: int  # microseconds since 1970-01-01 UTC
    operation: Operation
    path: str  # absolute
    source: str | None  # absolute: a move's
    tool: str
    status: Status
    diff: str | None  # place of the diff in the history, if there is one
    checkpoint: str | None  # place of what the file held before, if it was kept
    before: str | None  # SHA-256 in hex; None: no file
    after: str | None


class BadLine(NamedTuple):
    """A line that is no entry."""

    number: int  # from 1
    reason: str


def entries(log: bytes) -> Iterator[McpdiffEntry | BadLine]:
    """Yield what each line of a log says, in order."""
    for number, line in enumerate(log.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            yield _entry(line)
        except (ValueError, RecursionError) as error:
            yield BadLine(number, str(error) or type(error).__name__)


def candidate_results(before: bytes, diff: bytes) -> Iterator[bytes]:
    """Yield what a diff may have led to from `before`, the likeliest first; its hash tells which it was, if any.

    The tool's diffs lose what a text has at its very end, and what its lines end with. To the tool, a line may be over
    before its newline, at a form feed say.
    """
    yield from _candidates_along(before, diff, _FORWARD)


def candidate_origins(after: bytes, diff: bytes) -> Iterator[bytes]:
    """Yield what a diff may have led from to `after`, the likeliest first; its hash tells which it was, if any."""
    yield from _candidates_along(after, diff, _BACK)
    yield from _candidates_along(after, diff, _BACK_RUN_ON)


def _candidates_along(known: bytes, diff: bytes, way: "_Direction") -> Iterator[bytes]:
    is_in_pieces = any(_OTHER_END.search(text) is not None for text in (known, diff))
    for text, ending in ((known, b"\n"), (known.replace(b"\r\n", b"\n"), b"\r\n")):
        if ending == b"\r\n" and b"\r\n" not in known:
            return
        for read in (way, way._replace(by_pieces=True)) if is_in_pieces else (way,):
            try:
                made = _applied(text, diff, read)
            except _DiffMismatch:
                continue
            for each in (made, made[:-1] if made.endswith(b"\n") else made + b"\n"):
                yield each if ending == b"\n" else each.replace(b"\n", ending)


# ---- an entry


def _entry(line: bytes) -> McpdiffEntry:
    if len(line) > _LONGEST_LINE:
        raise ValueError(f"longer than {_LONGEST_LINE} bytes")
    given = json.loads(line.decode())
    if not isinstance(given, dict):
        raise ValueError("no JSON object")  # noqa: TRY004 - one kind of error for whatever the line holds
    kind, status = Operation(_text(given, "operation")), Status(_text(given, "status"))
    source, before, after = (_text_or_none(given, name) for name in ("source_path", "hash_before", "hash_after"))
    if (source is not None) is not (kind is Operation.MOVE):
        raise ValueError(f"a {kind} {'without' if source is None else 'with'} a source")
    if (before is None) is not (kind is Operation.CREATE) or (after is None) is not (kind is Operation.DELETE):
        raise ValueError(f"the hashes are not those of a {kind}")
    if any(digest is not None and _SHA256.fullmatch(digest) is None for digest in (before, after)):
        raise ValueError("a hash is no SHA-256")
    if kind is Operation.MOVE and before != after:
        raise ValueError("a move that changes the file")
    path = _text(given, "file_path")
    if source == path:
        raise ValueError("a move to where the file is")
    index = given.get("tool_call_index")
    if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < 1 << 31:
        raise ValueError("tool_call_index is no number")
    return McpdiffEntry(
        id=_name(given, "edit_id"),
        conversation=_name(given, "conversation_id"),
        index=index,
        time=_time(_text(given, "timestamp")),
        operation=kind,
        path=path,
        source=source,
        tool=_name(given, "tool_name"),
        status=status,
        diff=_text_or_none(given, "diff_file"),
        checkpoint=_text_or_none(given, "checkpoint_file"),
        before=before,
        after=after,
    )


def _text(given: dict[Any, Any], name: str) -> str:
    held = given.get(name)
    if not isinstance(held, str):
        raise ValueError(f"{name} is no text")  # noqa: TRY004 - as above
    held.encode()  # half a character outside the BMP is no text: UnicodeEncodeError is a ValueError
    return held


def _text_or_none(given: dict[Any, Any], name: str) -> str | None:
    return None if given.get(name) is None else _text(given, name)


def _name(given: dict[Any, Any], name: str) -> str:
    held = _text(given, name)
    if not held.isprintable() or not 1 <= len(held) <= _LONGEST_NAME:
        raise ValueError(f"{name} is empty, too long, or holds what can't be printed")
    return held


def _time(spelt: str) -> int:
    moment = datetime.fromisoformat(spelt)
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    since = moment - datetime.fromtimestamp(0, UTC)
    microseconds = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    if microseconds < 0:
        raise ValueError(f"a time before 1970: {spelt}")
    return microseconds


# ---- a diff


class _Direction(NamedTuple):
    """In which direction a diff is read: along which of its two texts, which is known, to make the other."""

    known: bytes  # the sign of lines that are in the known text alone
    made: bytes
    # Whether the last line that is made has no newline, so that the next, a known one, stands on the same line.
    runs_on: bool
    by_pieces: bool = False  # whether a line is over where it is to Python's `splitlines`, also without a newline

    def lines(self, text: bytes) -> list[bytes]:
        """Return the lines of a text as the diff numbers them."""
        if not self.by_pieces:
            return split_lines(text)
        ends = [0, *(found.end() for found in _END.finditer(text)), len(text)]
        return [text[start:end] for start, end in pairwise(ends) if start < end]

    def end(self, diff: bytes, position: int) -> int:
        """Return where the line of a text is over that the diff has behind the sign at `position`."""
        if self.by_pieces:
            found = _END.search(diff, position + 1)
            return len(diff) if found is None else found.end()
        end = diff.find(b"\n", position)
        return len(diff) if end < 0 else end + 1


_FORWARD: Final = _Direction(b"-", b"+", runs_on=False)
_BACK: Final = _Direction(b"+", b"-", runs_on=False)
_BACK_RUN_ON: Final = _Direction(b"+", b"-", runs_on=True)


def _applied(text: bytes, diff: bytes, way: _Direction) -> bytes:
    """Return what the diff makes of `text`, the known one of its two. Raises _Unfit.

    It is read along the lines of that: where one has no newline, what comes next stands on the same line.
    """
    lines = way.lines(text)
    made: list[bytes] = []
    at = 0  # of the known lines
    found = _FIRST_HUNK.search(diff)
    while found is not None:
        start, counts = (
            (int(found[1]), (found[2], found[4])) if way.known == b"-" else (int(found[3]), (found[4], found[2]))
        )
        count, made_count = map(_count, counts)
        start = start - 1 if count else start
        if not at <= start <= len(lines):
            raise _DiffMismatch
        made += lines[at:start]
        at, position = _hunk(lines, start, diff, found.end(), count, made_count, made, way)
        found = _HUNK.match(diff, position)
        if found is None and diff[position:].strip():
            raise _DiffMismatch
    return b"".join(made + lines[at:])


def _hunk(
    lines: list[bytes],
    at: int,
    diff: bytes,
    position: int,
    count: int,
    made_count: int,
    made: list[bytes],
    way: _Direction,
) -> tuple[int, int]:
    """Add what a hunk makes to `made`; return where the known lines and the diff go on. Raises _Unfit."""
    sign = b""
    while count or made_count or diff.startswith(b"\\", position):
        before, sign = sign, diff[position : position + 1]
        if sign in {b" ", way.known} and count and (made_count or sign == way.known) and at < len(lines):
            position = _past(lines[at], diff, position + 1)
            if sign == b" ":
                made.append(lines[at])
                made_count -= 1
            at, count = at + 1, count - 1
        elif sign == way.made and made_count:
            end = way.end(diff, position)
            if way.runs_on and made_count == 1 and 0 < count == len(lines) - at:
                end = _before(lines[at], diff, position, end, way.known)
            made.append(diff[position + 1 : end])
            position, made_count = end, made_count - 1
        elif sign == b"\\":
            end = diff.find(b"\n", position)
            position = len(diff) if end < 0 else end + 1
            if before == way.made and made:
                made[-1] = made[-1].removesuffix(b"\n")
        else:
            raise _DiffMismatch
    return at, position


def _past(line: bytes, diff: bytes, position: int) -> int:
    """Return where the diff goes on behind a known line that stands at `position`. Raises _Unfit."""
    text = line.removesuffix(b"\n")
    end = position + len(text)
    if not diff.startswith(text, position):
        raise _DiffMismatch
    if diff[end : end + 1] == b"\n":
        return end + 1
    if line.endswith(b"\n") and end < len(diff):
        raise _DiffMismatch
    return end


def _before(line: bytes, diff: bytes, start: int, end: int, sign: bytes) -> int:
    """Return where a known line, with its sign, begins in the diff's line from `start` to `end`. Raises _Unfit."""
    written = diff[start:end].removesuffix(b"\n")
    text = sign + line.removesuffix(b"\n")
    if not written[1:].endswith(text):
        raise _DiffMismatch
    return start + len(written) - len(text)


def _count(spelt: bytes | None) -> int:
    return 1 if spelt is None else int(spelt)


class DiffChains:
    """The diffs of a history, by the states from which they lead, to find states that were not kept.

    Each diff is taken back in turn. A step back counts only if the SHA-256 of what it gives is the recorded one.
    """

    def __init__(
        self,
        entries: Iterable[McpdiffEntry],
        held: Callable[[str | None], bytes | None],
        diff: Callable[[McpdiffEntry], bytes | None],
    ) -> None:
        """`held`: the bytes that have a SHA-256, where they are kept; `diff`: the diff of an entry, where it is."""
        self._held: Final = held
        self._diff: Final = diff
        self._led_on: Final[dict[str | None, list[McpdiffEntry]]] = {}
        self._nowhere: Final[set[str | None]] = set()  # states since which none is held
        for entry in entries:
            if None not in {entry.before, entry.after}:
                self._led_on.setdefault(entry.before, []).append(entry)

    def content(self, digest: str) -> bytes | None:
        """Return the bytes that have a SHA-256, told by what was made of them; None: no diffs lead back to them."""
        while (way := self._nearest_held_state(digest)) is not None:
            held, steps = way
            for entry in steps:
                before = self._before(entry, held)
                if before is None:
                    self._led_on[entry.before].remove(entry)  # and there may be another way
                    break
                held = before
            else:
                return held
        return None

    def _nearest_held_state(self, digest: str) -> tuple[bytes, list[McpdiffEntry]] | None:
        """Return the nearest state that is held of those since, and the entries that led there, the last one first."""
        came: dict[str | None, McpdiffEntry] = {}  # by the state that it led to
        ahead: list[str | None] = [] if digest in self._nowhere else [digest]
        for state in ahead:  # which grows
            held = self._held(state)
            if held is not None:
                return held, _steps(digest, state, came)
            for entry in self._led_on.get(state, ()):
                if entry.after != digest and entry.after not in came and entry.after not in self._nowhere:
                    came[entry.after] = entry
                    ahead.append(entry.after)
        self._nowhere.update(ahead)
        return None

    def _before(self, entry: McpdiffEntry, after: bytes) -> bytes | None:
        """Return what a file held before an entry that made it `after`; None: its diff does not say."""
        diff = self._diff(entry)
        origins = () if diff is None else candidate_origins(after, diff)
        return next((made for made in origins if sha256(made).hexdigest() == entry.before), None)


def _steps(first: str, last: str | None, came: dict[str | None, McpdiffEntry]) -> list[McpdiffEntry]:
    """Return the entries that led from one state to another, the last one first."""
    steps: list[McpdiffEntry] = []
    while last != first:
        steps.append(came[last])
        last = came[last].before
    return steps
