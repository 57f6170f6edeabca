"""Find which edits a text that was found brings back.

Lines leave a file and come back: by a stash, a merge, a patch, a copy or an editor's undo. They are still the lines of
the edit that wrote them. So statuses are searched under which the document is as near as possible to the text that was
found: edits that were away have the status that they had before, and what took out lines of an edit under review is
away. Lines of such edits that no statuses can show where they are now are named, so that they are reviewed all the
same.
"""

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Final

from objstore.model.basic_types import Seq, Status, Unit
from objstore.model.large_file_placeholder import is_placeholder
from objstore.text.diff import diff_lines
from objstore.text.forms import expressed, form_of, is_either_binary, lines_of, shown_lines
from objstore.text.hunks import Hunk
from objstore.text.lines import split_lines, without_ending
from objstore.values.fastclass import value
from objstore.weave.document import Document
from objstore.weave.runs import BASE, WeaveUnit

__all__ = ["Returning", "idle_parts", "is_telling", "lacking", "partial_text", "returning", "undecided_lines"]

_MOST_TRIED: Final = 64
"""Edits of one document whose statuses are tried one by one; older ones follow the others."""

_MOST_TRIES: Final = 1024
"""Sets of statuses that are tried for one document, while an agent waits. What is not tried stays away."""

_SHORTEST: Final = 3
"""Bytes of the shortest line, without blanks, that shows that an edit's text is back: many have the same brackets."""


@value
class Returning:
    """What a text brings back into a document."""

    verdicts: Mapping[Unit, Status]  # the statuses under which the document is nearest to the text
    text: bytes | None  # that nearest text, with the other lines that are back (None: there are none)
    edits: tuple[Seq, ...]  # whose lines these are


def returning(
    document: Document, earlier: Mapping[Unit, Status], text: bytes, *, path: bytes, may_be_agents: bool
) -> Returning:
    """Return what `text` brings back. The document keeps the statuses under which it is nearest to it.

    `earlier`: the statuses that units which are away had before. `may_be_agents`: whether an agent may have changed the
    file; then nothing that is accepted comes back.
    """
    search = _Search(document, text, path)
    undecided = {unit: status for unit, status in earlier.items() if status is Status.PENDING}
    if document.text() is None and not may_be_agents:
        search.try_file()
    search.try_away(undecided if may_be_agents else earlier)
    if not may_be_agents:
        search.try_takers()
    lines, edits = (None, ()) if may_be_agents else _other_lines(document, undecided, text)
    return Returning(verdicts=search.verdicts, text=lines, edits=edits)


def undecided_lines(document: Document, earlier: Mapping[Unit, Status]) -> dict[bytes, Seq]:
    """Return the lines that edits under review wrote, shown or not, without endings, each with the newest such edit.

    `earlier`: the statuses that units which are away had before.
    """
    units = sorted({*_pending(document), *(unit for unit, status in earlier.items() if status is Status.PENDING)})
    return {
        without_ending(line): unit.seq
        for unit in units
        for run in _weave_unit(document, unit).inserted
        for line in filter(is_telling, split_lines(run.text))
    }


def partial_text(before: bytes, after: bytes, is_wanted: Callable[[bytes], bool]) -> bytes | None:
    """Return the earlier of two texts with those lines of the later one that are wanted; None if there are none.

    A hunk all of whose lines are wanted is taken as a whole.
    """
    form = form_of(before)
    earlier, later = lines_of(before, form), shown_lines(after)
    if before == after or _is_opaque(earlier, later):
        return None
    old, new = split_lines(earlier), split_lines(later)
    pieces: list[bytes] = []
    at = count = 0
    for hunk in diff_lines(earlier, later):
        pieces += old[at : hunk.old_start]
        taken = list(filter(is_wanted, new[hunk.new_start : hunk.new_end]))
        if len(taken) < hunk.new_count or not taken:  # the rest of the hunk is someone else's change
            pieces += old[hunk.old_start : hunk.old_end]
        pieces += taken
        count += len(taken)
        at = hunk.old_end
    return expressed(_joined([*pieces, *old[at:]]), form) if count else None


def is_telling(line: bytes) -> bool:
    """Return whether a line is long enough to be recognized."""
    return len(line.strip()) >= _SHORTEST and any(chr(byte).isalnum() for byte in line)


def lacking(document: Document, units: Iterable[Unit], text: bytes | None, mode: int | None) -> set[Unit]:
    """Return those of some live units whose effect a file with this text and mode lacks (None: there is no file).

    That is a unit of which fewer than half of the lines are left. Of binary bytes that differ, nothing is left.
    """
    shown, lines = document.lines_text(), None if text is None else shown_lines(text)
    if shown is None or lines is None or _is_opaque(shown, lines):
        return set() if document.text() == text else set(units)
    inserted: Counter[Unit | None] = Counter()
    removed: Counter[Unit | None] = Counter()
    hunks = deque((hunk.old_start, hunk.old_end) for hunk in diff_lines(shown, lines))
    line = 0
    for unit, count in document.blame():
        inserted[unit] += count
        end = line + count
        while hunks and hunks[0][0] < end:
            removed[unit] += max(min(hunks[0][1], end) - max(hunks[0][0], line), 0)
            if hunks[0][1] > end:
                break
            hunks.popleft()
        line = end
    given = set(units)
    missing = {unit for unit in given if 2 * removed[unit] > inserted[unit]}
    if document.version().mode != mode:
        missing |= given.intersection(document.mode_writers())
    return missing


def idle_parts(document: Document, units: Collection[Unit]) -> set[Unit]:
    """Return the whole-file parts of the edits of which no other pending unit is left without these units."""
    left = {unit.seq for unit in document.pending() if unit.hunk and unit not in units}
    return {Unit(unit.seq, 0) for unit in units if unit.seq not in left}


# ---- inside


class _Search:
    """A search for the statuses under which a document is nearest to a text."""

    def __init__(self, document: Document, text: bytes, path: bytes) -> None:
        self._document: Final = document
        self._text: Final = text
        self._lines: Final = shown_lines(text)
        self._path: Final = path
        self.verdicts: dict[Unit, Status] = {}
        self._distance = self._measured()
        self._tries_left = _MOST_TRIES

    def try_file(self) -> None:
        """Undo the deletion of the file, if it then has the text, or lines of an edit under review."""
        deleters = {
            other
            for run in self._document.weave.runs()
            if not run.lines
            for other in run.live_deleters
            if other.index != BASE
        }
        if not deleters:
            return
        (unit,) = self._document.units_at([max(other.index for other in deleters)])
        before = self._document.statuses()
        self._document.set_statuses({unit: Status.AWAY})
        distance = self._measured()
        shown = self._document.lines_text() or b""
        is_back = self._document.text() == self._text or (distance < self._distance and self._shows_undecided(shown))
        if self._document.conflicts() or self._document.version().path != self._path or not is_back:
            self._document.restore_statuses(before)
            return
        self.verdicts[unit] = Status.AWAY
        self._distance = distance

    def try_away(self, earlier: Mapping[Unit, Status]) -> None:
        """Give edits that are away their earlier status, as far as that leads nearer to the text."""
        groups: dict[Seq, dict[Unit, Status]] = {}
        for unit in sorted(earlier):
            if self._document.knows(unit):
                groups.setdefault(unit.seq, {})[unit] = earlier[unit]
        if not groups:
            return
        everything = {unit: status for group in groups.values() for unit, status in group.items()}
        if self._try(everything):
            for seq in sorted(groups, reverse=True)[:_MOST_TRIED]:
                self._leave_away(groups[seq])
            return
        for seq in sorted(groups, reverse=True)[:_MOST_TRIED]:
            if not self._may_be_shown(groups[seq]):
                continue  # it may be back only where a newer one needs it
            needed: dict[Unit, Status] = {}
            for older in sorted((each for each in groups if each <= seq), reverse=True)[:_MOST_TRIED]:
                # An edit may need earlier ones: those that wrote the lines that it changed.
                needed |= {unit: to for unit, to in groups[older].items() if unit not in self.verdicts}
                if self._try(needed):
                    break
            else:
                for unit, status in groups[seq].items():
                    self._try({unit: status} if unit not in self.verdicts else {})

    def try_takers(self) -> None:
        """Take back what took lines of edits under review out, as far as that leads nearer to the text."""
        tried: set[Unit] = set()
        self._tries_left = _MOST_TRIES
        for _ in range(_MOST_TRIED):
            takers = [unit for unit in self._takers() if unit not in tried]
            if not takers:
                return
            tried.add(takers[0])
            self._try({takers[0]: Status.AWAY})

    # ---- inside

    def _takers(self) -> list[Unit]:
        """Return the units that delete lines of live edits under review, the newest first."""
        found = {
            other.index
            for unit in _pending(self._document)
            for run in _weave_unit(self._document, unit).inserted
            for other in run.live_deleters
            if other.index != BASE
        }
        return sorted(self._document.units_at(found), reverse=True)

    def _may_be_shown(self, units: Iterable[Unit]) -> bool:
        """Return whether the text has a line of one of these units, or one of them wrote none that tells."""
        present = self._present_lines
        for unit in units:
            if not self._document.has_effect(unit):
                continue
            runs = _weave_unit(self._document, unit).inserted
            lines = [without_ending(line) for run in runs for line in split_lines(run.text) if is_telling(line)]
            if present is None or not lines or not present.isdisjoint(lines):
                return True
        return False

    @cached_property
    def _present_lines(self) -> set[bytes] | None:
        """The lines of the text, without endings (None: it is no text)."""
        if _is_opaque(b"", self._lines):
            return None
        return set(map(without_ending, split_lines(self._lines)))

    def _leave_away(self, group: Mapping[Unit, Status]) -> None:
        """Leave the units of an edit away without which the document is as near, and of which nothing is shown."""
        for units in (tuple(group), *((unit,) for unit in group)):
            given = [unit for unit in units if unit in self.verdicts]
            if not given:
                return
            before = self._document.statuses()
            is_shown = any(self._document.lines(unit) is not None for unit in given)
            self._document.set_statuses(dict.fromkeys(given, Status.AWAY))
            distance = self._measured()
            is_nearer = distance < self._distance or (distance == self._distance and not is_shown)
            if self._document.conflicts() or not is_nearer:
                self._document.restore_statuses(before)
                continue
            self._distance = distance
            for unit in given:
                del self.verdicts[unit]

    def _try(self, verdicts: Mapping[Unit, Status]) -> bool:
        """Set statuses if the document is nearer to the text then; return whether it is.

        Units that are live then, but whose lines the text lacks, are left out.
        """
        wanted = dict(verdicts)
        before = self._document.statuses()
        missing: Collection[Unit] = wanted
        while wanted and self._tries_left > 0:
            self._tries_left -= 1
            self._document.set_statuses(wanted)
            live = [unit for unit, status in wanted.items() if status.is_live]
            missing = lacking(self._document, live, self._text, self._document.version().mode)
            if not missing:
                break
            self._document.restore_statuses(before)
            wanted = {unit: status for unit, status in wanted.items() if unit not in missing}
        distance = self._measured()
        is_there = self._document.version().path == self._path
        if not wanted or missing or distance >= self._distance or self._document.conflicts() or not is_there:
            self._document.restore_statuses(before)
            return False
        self.verdicts |= wanted
        self._distance = distance
        return True

    def _measured(self) -> int:
        """Return how many lines the document has that the text lacks, and the reverse; without a file, one more."""
        shown = self._document.lines_text()
        if self._document.text() == self._text:
            return 0
        if shown is None:
            return self._lines.count(b"\n") + 2
        if _is_opaque(shown, self._lines):
            return self._lines.count(b"\n") + 1
        return sum(hunk.old_count + hunk.new_count for hunk in diff_lines(shown, self._lines)) or 1

    def _shows_undecided(self, shown: bytes) -> bool:
        if _is_opaque(shown, self._lines):
            return False
        removed = {line for hunk in diff_lines(shown, self._lines) for line in range(hunk.old_start, hunk.old_end)}
        pending = set(_pending(self._document))
        line = 0
        for unit, count in self._document.blame():
            if unit in pending and not removed.issuperset(range(line, line + count)):
                return True
            line += count
        return False


def _other_lines(
    document: Document, undecided: Mapping[Unit, Status], text: bytes
) -> tuple[bytes | None, tuple[Seq, ...]]:
    """Return the document's text with the lines of edits under review that it doesn't show and `text` has.

    None: there are none. Also returns the edits whose lines they are.
    """
    shown, present, lines = document.lines_text(), document.text(), shown_lines(text)
    if shown is None or present is None or present == text or _is_opaque(shown, lines):
        return None, ()
    owners = undecided_lines(document, undecided)
    if not owners:
        return None, ()
    found: set[Seq] = set()
    old = _with_new_endings(document, shown, lines, found)
    before = expressed(b"".join(old), form_of(present)) if found else present
    if before is None:
        return None, ()
    hunks = diff_lines(b"".join(old), lines)
    left = Counter(_hidden_lines(document, undecided))
    left.update(_taken_lines(document, old, (line for hunk in hunks for line in range(hunk.old_start, hunk.old_end))))

    def is_back(line: bytes) -> bool:
        bare = without_ending(line)
        if left[bare] <= 0:
            return False
        left[bare] -= 1
        found.add(owners[bare])
        return True

    back = partial_text(before, text, is_back)
    return (before if back is None and found else back), tuple(sorted(found))


def _with_new_endings(document: Document, shown: bytes, text: bytes, found: set[Seq]) -> list[bytes]:
    """Return the document's lines, those of edits under review with the endings that a text has for them.

    The edits of which a line has another ending there are added to `found`.
    """
    lines, new = split_lines(shown), split_lines(text)
    if (b"\r\n" in shown) == (b"\r\n" in text):
        return lines
    pending = set(_pending(document))
    writers = [unit for unit, count in document.blame() for _ in range(count)]
    bare, bare_new = (b"\n".join([*map(without_ending, each), b""]) for each in (lines, new))
    at = at_new = 0
    for hunk in [*diff_lines(bare, bare_new), Hunk(len(lines), 0, len(new), 0)]:
        for line, other in zip(range(at, hunk.old_start), range(at_new, hunk.new_start), strict=True):
            writer, ending = writers[line], new[other]
            if writer in pending and lines[line] != ending and lines[line].endswith(b"\n") == ending.endswith(b"\n"):
                lines[line] = ending
                found.add(writer.seq)
        at, at_new = hunk.old_end, hunk.new_end
    return lines


def _hidden_lines(document: Document, undecided: Mapping[Unit, Status]) -> Iterator[bytes]:
    """Yield the lines of edits under review that the text does not show, without endings."""
    for unit in {*_pending(document), *undecided}:
        for run in _weave_unit(document, unit).inserted:
            if not run.shown and not any(form.shown for form in run.descendants()):
                yield from map(without_ending, filter(is_telling, split_lines(run.text)))


def _taken_lines(document: Document, shown: list[bytes], removed: Iterable[int]) -> Iterator[bytes]:
    """Yield those of the removed lines of the text that an edit under review wrote, without endings."""
    pending = set(_pending(document))
    gone: Collection[int] = set(removed)
    line = 0
    for unit, count in document.blame():
        if unit in pending:
            lines = (shown[at] for at in range(line, line + count) if at in gone)
            yield from map(without_ending, filter(is_telling, lines))
        line += count


def _pending(document: Document) -> list[Unit]:
    return document.pending()


def _weave_unit(document: Document, unit: Unit) -> WeaveUnit:
    (found,) = document.weave.units(document.indexes_of([unit]))
    return found


def _joined(lines: list[bytes]) -> bytes:
    """Return the lines as one text: a line that was the last one and lacks its newline may be another one now."""
    return b"".join([*(line if line.endswith(b"\n") else line + b"\n" for line in lines[:-1]), *lines[-1:]])


def _is_opaque(shown: bytes, text: bytes) -> bool:
    return is_placeholder(shown) or is_placeholder(text) or is_either_binary(shown, text)
