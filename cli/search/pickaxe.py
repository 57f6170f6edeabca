"""Find the edits that added or removed a text, by counting it in each state before and after."""

from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Final

from objstore import MAX_BLOB, UNREADABLE, shown_lines

if TYPE_CHECKING:
    from cli.render.unreadable import ReadErrors
    from cli.screen.progress import Progress
    from objstore import BlobId, EditView, Workspace

__all__ = ["Pickaxe", "count_text"]

COUNTS_KEPT: Final = 65_536
"""Number of states whose count is remembered: the state after an edit is usually the one before the next."""


class Pickaxe:
    """Search for one text. Every state is read once; only the one being read is in memory."""

    def __init__(self, workspace: "Workspace", text: bytes, progress: "Progress", read_errors: "ReadErrors") -> None:
        """Search for `text`, which is not empty; `progress` receives the edits done, from the first one checked back.

        `read_errors` collects states that can't be read.
        """

        @lru_cache(maxsize=COUNTS_KEPT)
        def count(blob: "BlobId") -> int:
            pieces = workspace.history.pieces(blob)
            first = next(pieces, b"")
            if first.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) and workspace.history.size(blob) <= MAX_BLOB:
                return count_text([shown_lines(workspace.history.text(blob))], text)
            return count_text(chain([first], pieces), text)

        self._count = count
        self._progress = progress
        self._losses = read_errors
        self._newest = 0  # the first edit that was checked
        self.expired = 0  # edits that could not be searched because their content has expired
        self.lost = 0  # edits that could not be searched because their content can't be read

    def changes_occurrences(self, view: "EditView") -> bool:
        """Return whether the text occurs more or less often after the edit than before; False if that is unknown."""
        self._newest = self._newest or view.seq
        self._progress.report("edits", self._newest - view.seq, self._newest)
        if view.expired is not None:
            self.expired += 1
            return False
        before, after = view.edit.before, view.edit.after
        if before is not None and after is not None and before.blob == after.blob:
            return False
        try:
            counts = [0 if state is None else self._count(state.blob) for state in (before, after)]
        except UNREADABLE as error:
            self._losses.note(error)
            self.lost += 1
            return False
        return counts[0] != counts[1]


def count_text(pieces: Iterable[bytes], text: bytes) -> int:
    """Return how often `text` occurs in the concatenated pieces, without overlaps, from the left."""
    found, rest = 0, b""
    for piece in pieces:
        held = rest + piece
        at = held.find(text)
        behind = 0
        while at >= 0:
            found += 1
            behind = at + len(text)
            at = held.find(text, behind)
        # The end of this piece may hold the beginning of an occurrence.
        rest = held[max(behind, len(held) - len(text) + 1) :]
    return found
