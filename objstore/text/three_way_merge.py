"""Merge the change from one text to another into a third, by the rules of diff3 and git.

Changes on both sides that are apart are both applied; those that touch or overlap are applied only if both sides made
the same change. A clean merge does not depend on who wrote which line, so the review planner uses it as a second
opinion on the weave's answer.
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
    """Return `ours` with the change from `base` to `theirs` applied; None if both sides changed the same lines.

    `hunks`: those from `base` to `theirs`. If they do not lead from the one to the other, this raises ValueError or
    returns a wrong text.
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
            continue  # both sides made the same change
        if hunk.old_start <= at:
            return None
        made += old[max(at, 0) : hunk.old_start]
        made += lines
        at, last = hunk.old_end, this
    content = b"".join([*made, *old[max(at, 0) :]])
    closing = theirs if is_closed(base) is not is_closed(theirs) else ours
    return content if is_closed(closing) else content.removesuffix(b"\n")
