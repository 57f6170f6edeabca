"""Parse and write the edit history of mcpdiff: log entries, and the diffs from one file state to the next.

Pure functions between bytes and values. Nothing in a history that is read is trusted: an entry needs the fields of the
tool's own description, and a diff is applied only if every line that it keeps or removes is where it says. The caller
compares hashes.
"""

import json
import re
from collections.abc import Callable, Container, Iterable, Iterator
from datetime import UTC, datetime
from hashlib import sha256
from itertools import pairwise
from typing import Any, Final, NamedTuple

from objstore.model.basic_types import Operation, Status
from objstore.text.lines import split_lines
from objstore.values.dates import date_of
from objstore.values.fastclass import value

__all__ = [
    "BadLine",
    "DiffChains",
    "McpdiffEntry",
    "candidate_origins",
    "candidate_results",
    "entries",
    "log_line",
    "safe_file_name",
]

_LONGEST_LINE: Final = 1 << 20
_LONGEST_NAME: Final = 200
"""Characters of an id, a tool or a conversation."""

_LONGEST_STEM: Final = 160
"""Characters of a file's name before what makes it distinct; a file system takes at least 255 bytes in all."""

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]")
"""What a file name does not get: besides slashes, all that a shell, a terminal or another system may take amiss."""

_SHA256: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)
_HUNK: Final = re.compile(rb"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@[^\n]*(?:\n|\Z)")
_OTHER_END: Final = re.compile(rb"[\v\f\x1c-\x1e]|\r(?!\n)|\xc2\x85|\xe2\x80[\xa8\xa9]")
"""What ends a line for mcpdiff, which uses Python's `splitlines`, but not in this project: all but the newline."""

_END: Final = re.compile(rb"\n|" + _OTHER_END.pattern)
_FIRST_HUNK: Final = re.compile(rb"^" + _HUNK.pattern, re.MULTILINE)


class _DiffMismatch(ValueError):
    """A diff does not fit the text that it should apply to."""


@value
class McpdiffEntry:
    """One line of a log: one edit, as mcpdiff recorded it."""

    id: str
    conversation: str
    index: int  # of the call in its conversation
    time: int  # microseconds since 1970-01-01 UTC
    operation: Operation
    path: str  # absolute
    source: str | None  # absolute, of a move
    tool: str
    status: Status
    diff: str | None  # path of the diff in the history, if there is one
    checkpoint: str | None  # path of the file's earlier contents in the history, if they were kept
    before: str | None  # SHA-256 in hex; None: no file
    after: str | None


class BadLine(NamedTuple):
    """A line that is not an entry."""

    number: int  # from 1
    reason: str


def entries(log: bytes) -> Iterator[McpdiffEntry | BadLine]:
    """Yield the entry of each line of a log, in order, or why the line is none."""
    for number, line in enumerate(log.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            yield _entry(line)
        except (ValueError, RecursionError) as error:
            yield BadLine(number, str(error) or type(error).__name__)


def log_line(entry: McpdiffEntry) -> bytes:
    """Return the line of a log that `entries` reads as this entry: the fields of the description, in its order."""
    fields = {
        "edit_id": entry.id,
        "conversation_id": entry.conversation,
        "tool_call_index": entry.index,
        "timestamp": date_of(entry.time).isoformat(timespec="microseconds"),
        "operation": entry.operation.value,
        "file_path": entry.path,
        "source_path": entry.source,
        "tool_name": entry.tool,
        "status": entry.status.value,
        "diff_file": entry.diff,
        "checkpoint_file": entry.checkpoint,
        "hash_before": entry.before,
        "hash_after": entry.after,
    }
    return json.dumps(fields).encode() + b"\n"


def safe_file_name(text: str, taken: Container[str], distinct: str) -> str:
    """Return a file name for a path or a conversation: itself if it is safe, with `_` for other characters if not.

    The name can't be hidden, too long, or lead anywhere. If it was shortened, or is in `taken` in lower case, it ends
    with `distinct`.
    """
    safe = _UNSAFE.sub("_", text)
    if safe[:1] in {"", ".", "-"}:
        safe = f"_{safe[1:]}"
    name = safe[:_LONGEST_STEM]
    if name == safe and name.lower() not in taken:
        return name
    name = f"{name}-{distinct}"
    while name.lower() in taken:
        name += "_"
    return name


def candidate_results(before: bytes, diff: bytes) -> Iterator[bytes]:
    """Yield the texts that a diff may have made from `before`, the likeliest first; the hash shows which is right.

    The tool's diffs don't show whether the text ended with a newline, or which line endings it had. For the tool, a
    line may also end before its newline, such as at a form feed.
    """
    yield from _candidates_along(before, diff, _FORWARD)


def candidate_origins(after: bytes, diff: bytes) -> Iterator[bytes]:
    """Yield the texts from which a diff may have made `after`, the likeliest first; the hash shows which is right."""
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
        raise ValueError("not a JSON object")  # noqa: TRY004 - one kind of error for whatever the line holds
    kind, status = Operation(_text(given, "operation")), Status(_text(given, "status"))
    source, before, after = (_text_or_none(given, name) for name in ("source_path", "hash_before", "hash_after"))
    if (source is not None) is not (kind is Operation.MOVE):
        raise ValueError(f"a {kind} {'without' if source is None else 'with'} a source")
    if (before is None) is not (kind is Operation.CREATE) or (after is None) is not (kind is Operation.DELETE):
        raise ValueError(f"the hashes do not fit the operation {kind}")
    if any(digest is not None and _SHA256.fullmatch(digest) is None for digest in (before, after)):
        raise ValueError("a hash is not a SHA-256")
    if kind is Operation.MOVE and before != after:
        raise ValueError("a move that also changes the file")
    path = _text(given, "file_path")
    if source == path:
        raise ValueError("a move to the same path")
    index = given.get("tool_call_index")
    if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < 1 << 31:
        raise ValueError("tool_call_index is not a number from 0 to 2147483647")
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
        raise ValueError(f"{name} is not a string")  # noqa: TRY004 - as above
    held.encode()  # a lone surrogate is refused: UnicodeEncodeError is a ValueError
    return held


def _text_or_none(given: dict[Any, Any], name: str) -> str | None:
    return None if given.get(name) is None else _text(given, name)


def _name(given: dict[Any, Any], name: str) -> str:
    held = _text(given, name)
    if not held.isprintable() or not 1 <= len(held) <= _LONGEST_NAME:
        raise ValueError(f"{name} is empty, too long, or has unprintable characters")
    return held


def _time(text: str) -> int:
    moment = datetime.fromisoformat(text)
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    since = moment - datetime.fromtimestamp(0, UTC)
    microseconds = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    if microseconds < 0:
        raise ValueError(f"a time before 1970: {text}")
    return microseconds


# ---- a diff


class _Direction(NamedTuple):
    """The direction in which a diff is applied: from one of its texts, the known one, to the other."""

    known: bytes  # the sign of lines that only the known text has
    made: bytes
    # Whether the last line of the made text has no newline, so that the diff has the next known line on the same line.
    runs_on: bool
    by_pieces: bool = False  # whether lines end where Python's `splitlines` ends them, also without a newline

    def lines(self, text: bytes) -> list[bytes]:
        """Return the lines of a text as the diff counts them."""
        if not self.by_pieces:
            return split_lines(text)
        ends = [0, *(found.end() for found in _END.finditer(text)), len(text)]
        return [text[start:end] for start, end in pairwise(ends) if start < end]

    def end(self, diff: bytes, position: int) -> int:
        """Return where the line of text ends that follows the sign at `position` of the diff."""
        if self.by_pieces:
            found = _END.search(diff, position + 1)
            return len(diff) if found is None else found.end()
        end = diff.find(b"\n", position)
        return len(diff) if end < 0 else end + 1


_FORWARD: Final = _Direction(b"-", b"+", runs_on=False)
_BACK: Final = _Direction(b"+", b"-", runs_on=False)
_BACK_RUN_ON: Final = _Direction(b"+", b"-", runs_on=True)


def _applied(text: bytes, diff: bytes, way: _Direction) -> bytes:
    """Return the text that the diff makes from `text`, the known one of its two. Raises _DiffMismatch.

    The diff is read along the known lines: if one has no newline, the next part of the diff is on the same line.
    """
    lines = way.lines(text)
    made: list[bytes] = []
    at = 0  # index of the next known line
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
    """Add a hunk's lines to `made`; return where the known lines and the diff continue. Raises _DiffMismatch."""
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
    """Return where the diff continues after the known line at `position`. Raises _DiffMismatch."""
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
    """Return where a known line with its sign begins in the diff's line from `start` to `end`. Raises _DiffMismatch."""
    written = diff[start:end].removesuffix(b"\n")
    text = sign + line.removesuffix(b"\n")
    if not written[1:].endswith(text):
        raise _DiffMismatch
    return start + len(written) - len(text)


def _count(digits: bytes | None) -> int:
    return 1 if digits is None else int(digits)


class DiffChains:
    """The diffs of a history, to reconstruct states that were not kept from later ones.

    Diffs are reversed one after the other. A step counts only if its result has the recorded SHA-256.
    """

    def __init__(
        self,
        entries: Iterable[McpdiffEntry],
        held: Callable[[str | None], bytes | None],
        diff: Callable[[McpdiffEntry], bytes | None],
    ) -> None:
        """`held`: returns the bytes with a SHA-256 if they were kept; `diff`: returns an entry's diff if it exists."""
        self._held: Final = held
        self._diff: Final = diff
        self._led_on: Final[dict[str | None, list[McpdiffEntry]]] = {}
        self._nowhere: Final[set[str | None]] = set()  # states after which none is held
        for entry in entries:
            if None not in {entry.before, entry.after}:
                self._led_on.setdefault(entry.before, []).append(entry)

    def content(self, digest: str) -> bytes | None:
        """Return the bytes with a SHA-256, reconstructed from later states; None: no diffs lead back to them."""
        while (way := self._nearest_held_state(digest)) is not None:
            held, steps = way
            for entry in steps:
                before = self._before(entry, held)
                if before is None:
                    self._led_on[entry.before].remove(entry)  # another chain of diffs may exist
                    break
                held = before
            else:
                return held
        return None

    def _nearest_held_state(self, digest: str) -> tuple[bytes, list[McpdiffEntry]] | None:
        """Return the nearest later state that is held, and the entries that led to it, the last one first."""
        came: dict[str | None, McpdiffEntry] = {}  # the entry that led to each state
        ahead: list[str | None] = [] if digest in self._nowhere else [digest]
        for state in ahead:  # the list grows meanwhile
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
        """Return the file's contents before an entry that led to `after`; None: its diff does not give them."""
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
