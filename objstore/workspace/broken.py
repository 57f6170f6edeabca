"""Say of a planned decision what it breaks in sources, and whose edits put the broken lines there.

It is a module of its own because it joins two packages, of decisions and of blame, which don't know each other.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING

from objstore.model.large_file_placeholder import is_placeholder
from objstore.model.results import Broken
from objstore.text.needs.source_kinds import concerns_sources
from objstore.values.errors import CasError, IndexUnusable

# Every decision makes one of these, and few are about sources.
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from objstore.history.blame import BlamedLines
    from objstore.model.basic_types import Unit
    from objstore.model.ids import BlobId
    from objstore.model.results import Decided
    from objstore.review.broken import Sources
    from objstore.review.source_names import SourceNames
    from objstore.storage.transaction.journal import Journal
    from objstore.text.hunks import Hunk
    from objstore.text.needs.broken_names import BrokenName

__all__ = ["Breakage"]


class Breakage:
    """What decisions break in a workspace's sources."""

    def __init__(self, journal: Journal) -> None:
        """Read nothing yet."""
        self._journal = journal

    @cached_property
    def names(self) -> SourceNames:
        """Return what is known of each source."""
        from objstore.review.source_names import SourceNames

        return SourceNames(self._journal)

    @cached_property
    def sources(self) -> Sources:
        """Return the sources, which may take long: look at this before the store is locked.

        Raises what a walk raises.
        """
        from objstore.review.broken import Sources

        return Sources(self._journal, self.names)

    def of(self, planned: Decided, text: Callable[[BlobId], bytes], *, attributed: int) -> tuple[Broken, ...]:
        """Return what a planned decision breaks; (): nothing, or sources can't be read. `text`: reads texts of it.

        `attributed`: of how many it is said who put the lines there: for each of their files, all edits are replayed.
        The decision is what matters. Raises IndexUnusable, so that the index is rebuilt before the decision.
        """
        if not concerns_sources(path for file in planned.files for path in (file.path_before, file.path_after) if path):
            return ()
        try:
            with self._journal.translating_index_errors():
                return tuple(self._of(planned, text, attributed))
        except IndexUnusable:
            raise
        except (CasError, OSError):
            return ()

    def _of(self, planned: Decided, text: Callable[[BlobId], bytes], attributed: int) -> list[Broken]:
        before: dict[str, bytes | None] = {}
        after: dict[str, bytes | None] = {}
        moved: dict[str, str] = {}
        marked = {markers.path for markers in planned.markers}  # these are no programs until the markers are resolved
        for effect in planned.files:
            if effect.path_after in marked:
                continue
            old, new = (None if blob is None else text(blob) for blob in (effect.before, effect.after))
            if any(each is not None and is_placeholder(each) for each in (old, new)):
                continue
            if effect.path_before is not None:
                before[effect.path_before] = old
                after.setdefault(effect.path_before, None)
            if effect.path_after is not None:
                after[effect.path_after] = new
                before.setdefault(effect.path_after, None)
                moved[effect.path_after] = effect.path_before or effect.path_after
        if self.names.are_same(before, after):
            return []
        found = self.sources.broken_by(before, after, moved)
        decided = {unit for unit, _ in planned.verdicts}
        lines = _Lines(self._journal, after, moved)
        return [_attributed(each, lines if at < attributed else None, decided) for at, each in enumerate(found)]


# ---- inside


def _attributed(broken: BrokenName, lines: _Lines | None, decided: set[Unit]) -> Broken:
    user = None if lines is None else lines.writer(broken.path, broken.line)
    return Broken(
        words=broken.words,
        path=broken.path,
        line=broken.line,
        user=None if user in decided else user,
    )


class _Lines:
    """Whose the lines of files would be after a decision. Each file is read once: a decision may break hundreds."""

    def __init__(self, journal: Journal, after: dict[str, bytes | None], moved: dict[str, str]) -> None:
        self._journal = journal
        self._after = after
        self._moved = moved
        self._read: dict[str, tuple[Sequence[BlamedLines], Sequence[Hunk]]] = {}

    def writer(self, path: str, line: int) -> Unit | None:
        """Return the unit that inserted a line (None: none did, or it is not known)."""
        if path not in self._read:
            self._read[path] = self._lines(path)
        pieces, hunks = self._read[path]
        wanted = _line_before(hunks, line - 1)
        return next((each.unit for each in pieces if each.start <= wanted < each.start + each.count), None)

    def _lines(self, path: str) -> tuple[Sequence[BlamedLines], Sequence[Hunk]]:
        """Return whose the recorded lines of a file are, and how they differ from those after the decision."""
        from objstore.history.blame import blame
        from objstore.text.diff import diff_lines

        after = self._after.get(path)
        with suppress(CasError):
            with self._journal.reading():
                text, pieces = blame(self._journal, self._moved.get(path, path))
            return pieces, () if after is None or after == text else diff_lines(text, after)
        return (), ()


def _line_before(hunks: Sequence[Hunk], line: int) -> int:
    """Return where a line of the text after some hunks is before them (-1: nowhere), zero-based."""
    shift = 0
    for hunk in hunks:
        if hunk.new_start <= line < hunk.new_end:
            return -1
        if hunk.new_end <= line:
            shift = hunk.old_end - hunk.new_end
    return line + shift
