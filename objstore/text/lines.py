r"""Split bytes into lines at b"\n" alone; CR, NUL and every other byte are content.

Two texts that differ only in their final newline have the same lines here: the final newline is recorded apart from the
text. A text is *closed* when its last line ends in b"\n" or it has no line.
"""

from typing import Final

from objstore.values.fastclass import NamedTuple

__all__ = [
    "NOTHING_SHARED",
    "Affixes",
    "closed",
    "common_affixes",
    "is_closed",
    "lines_end",
    "same_bytes",
    "shared_ends",
    "shared_head",
    "shared_tail",
    "split_lines",
    "starts_line",
    "without_ending",
]

_STRIDE: Final = 1 << 16
"""Bytes compared or counted in one step: large enough for C to do the work, small enough to stay in cache."""

_PIECE: Final = 1 << 13
"""Bytes of two texts that are compared in one step until a difference shows."""

_NUMBER: Final = 1 << 6
"""Below this many bytes, XOR of two integers finds the first difference; longer integers cost more than comparing."""

_LINE: Final = 32
"""Bytes of a typical line of code: the first guess of how many bytes the wanted lines take."""

_FEW: Final = 16
"""Up to this many lines, finding each newline is cheaper than counting newlines stride by stride."""


def split_lines(content: bytes) -> list[bytes]:
    r"""Return the lines of `content` with their b"\n" kept; only the last may lack one."""
    lines = [line + b"\n" for line in content.split(b"\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def without_ending(line: bytes) -> bytes:
    """Return a line without its LF or CRLF, which git and editors convert into each other."""
    return line.removesuffix(b"\n").removesuffix(b"\r")


def is_closed(content: bytes) -> bool:
    r"""Return whether the last line of `content` ends in b"\n"; no lines at all count as closed."""
    return not content or content.endswith(b"\n")


def closed(content: bytes) -> bytes:
    """Return `content` with a newline after its last line if that has none."""
    return content if is_closed(content) else content + b"\n"


def lines_end(text: bytes, start: int, count: int) -> int:
    """Return the offset just after `count` lines of closed `text`, the first of which begins at offset `start`.

    Raises ValueError if the text has fewer lines.
    """
    length = _LINE
    while count > _FEW:
        stride = min(_STRIDE, count * length)
        found = text.count(b"\n", start, start + stride)
        if found > count:
            length //= 2
        elif found:
            start = text.rfind(b"\n", start, start + stride) + 1
            count -= found
        else:
            break  # a line longer than the stride, or no more lines
    for _ in range(count):
        start = text.find(b"\n", start) + 1
        if not start:
            raise ValueError("the text has fewer lines")
    return start


def same_bytes(old: bytes, old_at: int, new: bytes, new_at: int, size: int) -> bool:
    """Return whether two stretches of `size` bytes are equal, without copying either as a whole."""
    for done in range(0, size, _STRIDE):
        piece = new[new_at + done : new_at + min(done + _STRIDE, size)]
        if len(piece) != min(_STRIDE, size - done) or not old.startswith(piece, old_at + done):
            return False
    return True


class Affixes(NamedTuple):
    """The numbers of bytes that two texts share at the start (`prefix`) and, beyond those, at the end (`suffix`)."""

    prefix: int
    suffix: int


NOTHING_SHARED: Final = Affixes(0, 0)


def common_affixes(old: bytes, new: bytes) -> Affixes:
    """Return how many bytes two texts share at both ends. The two stretches never overlap in either text."""
    prefix = shared_head(old, new)
    return Affixes(prefix, shared_tail(old, new, min(len(old), len(new)) - prefix))


def shared_ends(old: bytes, new: bytes, affixes: Affixes) -> tuple[int, int]:
    """Return how many bytes of whole lines two closed texts share at the start, and then at the end.

    `affixes`: what the two texts share in bytes, as from `common_affixes`.
    """
    head = old.rfind(b"\n", 0, affixes.prefix) + 1
    tail = affixes.suffix
    limit = min(len(old), len(new)) - head
    if tail == limit - (affixes.prefix - head) < limit:
        tail = shared_tail(old, new, limit)  # the prefix took a part of a line that is shared as a whole at the end
    cut = len(old) - tail
    if not (starts_line(old, cut) and starts_line(new, len(new) - tail)):
        tail = len(old) - (old.find(b"\n", cut) + 1)
    return head, tail


def starts_line(text: bytes, offset: int) -> bool:
    """Return whether a line of `text` begins, or would begin, at byte `offset`."""
    return offset == 0 or text.startswith(b"\n", offset - 1)


def shared_head(old: bytes, new: bytes) -> int:
    """Return how many bytes two texts share at the start."""
    shared, limit = 0, min(len(old), len(new))
    while old.startswith(new[shared : shared + _PIECE], shared):
        shared += _PIECE
        if shared >= limit:
            return limit
    size = min(_PIECE, limit - shared)
    while size > _NUMBER:
        half = size // 2
        if old.startswith(new[shared : shared + half], shared):
            shared += half
            size -= half
        else:
            size = half
    end = shared + size
    # The highest bit in which two equally long numbers differ is in the first byte that differs.
    differing = int.from_bytes(old[shared:end], "big") ^ int.from_bytes(new[shared:end], "big")
    return end - (differing.bit_length() + 7) // 8


def shared_tail(old: bytes, new: bytes, limit: int) -> int:
    """Return how many bytes, at most `limit`, two texts share at the end."""
    old_end, new_end = len(old), len(new)
    stop = new_end - limit
    while old.endswith(new[max(stop, new_end - _PIECE) : new_end], 0, old_end):
        old_end -= _PIECE
        new_end -= _PIECE
        if new_end <= stop:
            return limit
    size = min(_PIECE, new_end - stop)
    while size > _NUMBER:
        half = size // 2
        if old.endswith(new[new_end - half : new_end], 0, old_end):
            old_end -= half
            new_end -= half
            size -= half
        else:
            size = half
    old_piece, piece = old[old_end - size : old_end], new[new_end - size : new_end]
    differing = int.from_bytes(old_piece, "big") ^ int.from_bytes(piece, "big")
    return len(new) - new_end + ((differing & -differing).bit_length() - 1) // 8
