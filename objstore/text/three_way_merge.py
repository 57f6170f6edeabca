"""Three-way merge: the change from one text to the next, applied to another text.

The rules are diff3's and git's: changes of both sides that are apart are both taken, those that touch or overlap are
taken only where both sides made the same. What is clean here is an answer that does not know who wrote a line, so it
serves as a second opinion on what the weave says (see `review`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from objstore.text.diff import diff_lines
from objstore.text.lines import closed, is_closed, split_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from objstore.text.hunks import Hunk

__all__ = ["merged"]


def merged(base: bytes, ours: bytes, theirs: bytes, hunks: Sequence[Hunk]) -> bytes | None:
    """Return `ours` with the change from `base` to `theirs`, whose hunks are given; None: both changed the same lines.

    Raises ValueError, or gives another text, where the hunks do not lead from `base` to `theirs`.
    """
    old, mine, new = split_lines(closed(base)), split_lines(closed(ours)), split_lines(closed(theirs))
    changes = [(hunk, mine[hunk.new_start : hunk.new_end]) for hunk in diff_lines(base, ours)]
    changes += [(hunk, new[hunk.new_start : hunk.new_end]) for hunk in hunks]
    made: list[bytes] = []
    at = -1  # the end of the last change
    last: tuple[int, int, list[bytes]] | None = None
    for hunk, lines in sorted(changes, key=lambda change: (change[0].old_start, change[0].old_end)):
        this = hunk.old_start, hunk.old_end, lines
        if this == last:
            continue  # both sides made it
        if hunk.old_start <= at:
            return None
        made += old[max(at, 0) : hunk.old_start]
        made += lines
        at, last = hunk.old_end, this
    content = b"".join([*made, *old[max(at, 0) :]])
    says = theirs if is_closed(base) is not is_closed(theirs) else ours
    return content if is_closed(says) else content.removesuffix(b"\n")
