"""Say with an outcome what it breaks in Python sources, and whose edits put the broken lines there.

It is a module of its own because it joins two packages, of decisions and of blame, which don't know each other.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from objstore.errors import CasError
from objstore.fastclass import replace
from objstore.integrity.inspection import blame
from objstore.model.large_file_placeholder import is_placeholder
from objstore.model.results import Broken, Decided, FileEffect
from objstore.review.broken import broken_by
from objstore.text.diff import diff_lines

if TYPE_CHECKING:
    from collections.abc import Callable

    from objstore.model.basic_types import Unit
    from objstore.needs.broken_names import BrokenName
    from objstore.transaction.journal import Journal

    Preview = Callable[[FileEffect], tuple[bytes | None, bytes | None]]

__all__ = ["with_broken"]


def with_broken(journal: Journal, outcome: Decided, preview: Preview, *, dry_run: bool) -> Decided:
    """Return the outcome with what it breaks. Raises what a walk raises, and what `preview` raises."""
    before: dict[str, bytes | None] = {}
    after: dict[str, bytes | None] = {}
    moved: dict[str, str] = {}
    marked = {markers.path for markers in outcome.markers}  # these are no programs until the markers are resolved
    for effect in outcome.files:
        if effect.path_after in marked:
            continue
        old, new = preview(effect)
        if any(text is not None and is_placeholder(text) for text in (old, new)):
            continue
        if effect.path_before is not None:
            before[effect.path_before] = old
            after.setdefault(effect.path_before, None)
        if effect.path_after is not None:
            after[effect.path_after] = new
            before.setdefault(effect.path_after, None)
            moved[effect.path_after] = effect.path_before or effect.path_after
    found = broken_by(journal, before, after, moved)
    if not found:
        return outcome
    decided = {unit for unit, _ in outcome.verdicts}
    lines = _Lines(journal, before if dry_run else {}, after, moved)
    broken = (_attributed(each, lines, decided) for each in found)
    return replace(outcome, broken=tuple(broken))


def _attributed(broken: BrokenName, lines: _Lines, decided: set[Unit]) -> Broken:
    user = lines.writer(broken.path, broken.line)
    return Broken(
        words=broken.words,
        path=broken.path,
        line=broken.line,
        user=None if user in decided else user,
    )


class _Lines:
    """Whose the lines of files are after a decision."""

    def __init__(
        self, journal: Journal, before: dict[str, bytes | None], after: dict[str, bytes | None], moved: dict[str, str]
    ) -> None:
        """`before`: the texts of changed files as they are on disk, in a dry run; {}: the decision is made."""
        self._journal = journal
        self._before = before
        self._after = after
        self._moved = moved

    def writer(self, path: str, line: int) -> Unit | None:
        """Return the unit that inserted a line (None: none did, or it is not known)."""
        now = self._moved.get(path, path) if self._before else path
        with suppress(CasError):
            with self._journal.reading():
                text, pieces = blame(self._journal, now)
            wanted = self._line_in(text, path, line - 1)
            for piece in pieces:
                if piece.start <= wanted < piece.start + piece.count:
                    return piece.unit
        return None

    def _line_in(self, text: bytes, path: str, line: int) -> int:
        """Return where a line of the file after the decision is in its recorded text (-1: nowhere), zero-based."""
        after = self._after.get(path) if self._before else None
        if after is None or after == text:
            return line
        shift = 0
        for hunk in diff_lines(text, after):
            if hunk.new_start <= line < hunk.new_end:
                return -1
            if hunk.new_end <= line:
                shift = hunk.old_end - hunk.new_end
        return line + shift
