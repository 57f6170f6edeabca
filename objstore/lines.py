r"""Lines of a file's bytes: cut on b"\n" alone; CR, NUL and every other byte are content.

Two texts that differ only in whether their last line ends are the same lines here: the final newline
is kept apart from the text. A text is *closed* when its last line ends (or it has none).
"""

from typing import Final

__all__ = [
    "closed",
    "is_closed",
    "lines_end",
    "same_bytes",
    "shared_ends",
    "shared_head",
    "shared_tail",
    "split_lines",
    "starts_line",
]

_STRIDE: Final = 1 << 16
"""Bytes compared or counted in one step: large enough for C to do the work, small enough to stay in cache."""

_PIECE: Final = 1 << 14
"""Bytes in which the first difference of two texts is found at once, as numbers."""

_FEW: Final = 16
"""Up to so many lines, finding each newline is cheaper than counting ahead."""


def split_lines(content: bytes) -> list[bytes]:
    r"""Return the lines of `content` with their b"\n" kept; only the last may lack one."""
    lines = [line + b"\n" for line in content.split(b"\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def is_closed(content: bytes) -> bool:
    r"""Return whether the last line of `content` ends in b"\n"; no lines at all count as closed."""
    return not content or content.endswith(b"\n")


def closed(content: bytes) -> bytes:
    """Return `content` with its last line ended."""
    return content if is_closed(content) else content + b"\n"


def lines_end(text: bytes, start: int, count: int) -> int:
    """Return the offset just after `count` lines of closed `text`, the first of which begins at `start`.

    Raises ValueError when there are fewer.
    """
    while count > _FEW:
        stride_end = min(start + _STRIDE, len(text))
        found = text.count(b"\n", start, stride_end)
        while found > count:
            stride_end = start + (stride_end - start) // 2
            found = text.count(b"\n", start, stride_end)
        if not found:
            break
        start = text.rfind(b"\n", start, stride_end) + 1
        count -= found
    for _ in range(count):
        start = text.find(b"\n", start) + 1
        if not start:
            raise ValueError("the text has fewer lines")
    return start


def same_bytes(old: bytes, old_at: int, new: bytes, new_at: int, size: int) -> bool:
    """Return whether two stretches of `size` bytes are equal, without a copy of either."""
    for done in range(0, size, _STRIDE):
        piece = new[new_at + done : new_at + min(done + _STRIDE, size)]
        if len(piece) != min(_STRIDE, size - done) or not old.startswith(piece, old_at + done):
            return False
    return True


def shared_ends(old: bytes, new: bytes) -> tuple[int, int]:
    """Return how many bytes of whole lines two closed texts share at the start, and then at the end.

    The two stretches never overlap in either text.
    """
    head = shared_head(old, new)
    head = old.rfind(b"\n", 0, head) + 1
    tail = shared_tail(old, new, min(len(old), len(new)) - head)
    cut = len(old) - tail
    if not (starts_line(old, cut) and starts_line(new, len(new) - tail)):
        tail = len(old) - (old.find(b"\n", cut) + 1)
    return head, tail


def starts_line(text: bytes, offset: int) -> bool:
    """Return whether a line of `text` begins, or could begin, at byte `offset`."""
    return offset == 0 or text.startswith(b"\n", offset - 1)


def shared_head(old: bytes, new: bytes) -> int:
    """Return how many bytes two texts share at the start."""
    shared, limit = 0, min(len(old), len(new))
    while shared < limit:
        end = min(shared + _PIECE, limit)
        piece = new[shared:end]
        if not old.startswith(piece, shared):
            # The highest bit in which two equally long numbers differ lies in the first byte that differs.
            differing = int.from_bytes(old[shared:end], "big") ^ int.from_bytes(piece, "big")
            return end - (differing.bit_length() + 7) // 8
        shared = end
    return shared


def shared_tail(old: bytes, new: bytes, limit: int) -> int:
    """Return how many bytes, `limit` at most, two texts share at the end."""
    shared = 0
    while shared < limit:
        size = min(_PIECE, limit - shared)
        piece = new[len(new) - shared - size : len(new) - shared]
        if not old.endswith(piece, 0, len(old) - shared):
            old_piece = old[len(old) - shared - size : len(old) - shared]
            differing = int.from_bytes(old_piece, "big") ^ int.from_bytes(piece, "big")
            return shared + ((differing & -differing).bit_length() - 1) // 8
        shared += size
    return shared
