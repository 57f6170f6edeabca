"""Keep every line that a file ever had in one order, and show those of the live units.

A line is inserted by one unit and deleted by any number of units; it never moves. It shows if and only if the unit that
inserted it is live and none that deletes it is. So the text is a function of the set of live units, whatever the order
of the decisions, and any unit can be dropped and restored at the cost of its own lines. (Weaves: SCCS; showing a text
as an image of everything that ever was: the xi editor.)

The start and the end of the file are bounds, runs of no lines that creation inserts and deletion deletes: an empty file
still has them. Whether the last line lacks its newline is not part of the lines: the newest live unit that set the
final newline decides, whichever line is last now, unless lines that it didn't know follow those that it saw.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Self, cast

from objstore.model.basic_types import ConflictKind
from objstore.text.hunks import borders, inserted_texts
from objstore.text.lines import NOTHING_SHARED, closed, is_closed
from objstore.text.splice import inserted_by
from objstore.weave.conflict_markers import marked
from objstore.weave.conflicts import UnitChanges, WeaveConflict, behind, described, findings, unseen
from objstore.weave.placement import adjoining, insert, slot, watch_enclosing_regions
from objstore.weave.reinsertion import (
    link_moves,
    link_reinsertion,
    other_forms,
    recheck_copies,
    recount_exposed,
    restore_derived,
    track_returns,
    update_hidden_copies,
    update_returns,
)
from objstore.weave.run_list import RunList
from objstore.weave.runs import BASE, Run, UnitIndex, WeaveUnit
from objstore.weave.same_change import with_same_change
from objstore.weave.serialize import order_and_units, state_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from objstore.text.hunks import Hunk
    from objstore.text.lines import Affixes
    from objstore.text.splice import Splice
    from objstore.weave.conflict_markers import Labels, MarkedText
    from objstore.weave.conflicts import ConflictFinding
    from objstore.weave.serialize import WeaveState

__all__ = ["BASE", "UnitIndex", "Weave", "WeaveConflict"]

_FEW_HUNKS: Final = 4
"""Up to this many hunks, the order's own index finds their lines faster than one pass over the text."""


class Weave:
    """One file's text under every set of live units."""

    def __init__(self, base: bytes | None) -> None:
        """Start with the text before the first edit; None: the file did not exist."""
        self._order = RunList()
        self._findings: dict[WeaveUnit, list[ConflictFinding]] = {}  # by unit in conflict
        self._holders: list[WeaveUnit] = []  # units with a `file_bound`
        self._displaced: set[WeaveUnit] = set()  # insertions that break a rule, or are excused from it
        self._enders: list[WeaveUnit] = []  # units that set the final newline, in order
        self._text: bytes | None = None
        self._rendered = True  # whether `_text` is up to date
        first = WeaveUnit(BASE, BASE)
        self._units: list[WeaveUnit | None] = [first]  # None: an idle whole-file part, created on demand
        if base is not None:
            self._create(first, base)
            self._set_ending(BASE, missing=not is_closed(base))
            self._text = base

    # -- saving and loading

    @property
    def is_clean(self) -> bool:
        """Return whether there are no conflicts."""
        return not self._findings

    def state(self) -> WeaveState:
        """Return the complete state of the weave. Raises ValueError while there are conflicts."""
        if self._findings:
            raise ValueError("a weave is kept only when it is clean")
        return state_of(self._order, self._units, self._enders)

    @classmethod
    def from_state(cls, state: WeaveState) -> Self:
        """Return the weave that `state` was taken from."""
        weave = cls(None)
        weave._order, weave._units = order_and_units(state)
        derived = sorted({row[0] for row in (*state.flips, *state.undoes)})
        restore_derived(unit for index in derived if (unit := weave._units[index]) is not None)
        weave._holders = [unit for index, _ in state.holders if (unit := weave._units[index]) is not None]
        weave._enders = [unit for index, *_ in state.endings if (unit := weave._units[index]) is not None]
        weave._rendered = False
        anchored = [unit for index, *_ in state.anchors if (unit := weave._units[index]) is not None]
        weave._recheck(dict.fromkeys(unit for unit in anchored if not any(run.shown for run in unit.inserted)))
        return weave

    # -- reading

    def text(self) -> bytes | None:
        """Return the bytes that the live units show, or None when they show no file."""
        if not self._rendered:
            self._text = self._render()
            self._rendered = True
        return self._text

    def is_live(self, unit: UnitIndex) -> bool:
        """Return whether `unit` is live."""
        return self._unit(unit).live

    def first_ever_rejected(self) -> UnitIndex | None:
        """Return the first unit that is dead, or ever was; None if there is none."""
        return next((unit.index for unit in self._units if unit is not None and unit.flips), None)

    def has_no_effect(self, unit: UnitIndex) -> bool:
        """Return whether `unit` changes nothing, live or dead, as the whole-file part of most edits."""
        of = self._units[unit]
        return of is None or not (of.inserted or of.deleted or of.file_bound)

    def blame(self) -> list[tuple[UnitIndex, int]]:
        """Return the units that inserted the lines of the text: (unit, number of consecutive lines) from the top."""
        blamed: list[tuple[UnitIndex, int]] = []
        for run in self._order.shown():
            unit, lines = run.inserter.index, run.lines
            if blamed and blamed[-1][0] == unit:
                lines += blamed.pop()[1]
            if lines:
                blamed.append((unit, lines))
        return blamed

    def unit_lines(self, unit: UnitIndex) -> tuple[int, int] | None:
        """Return where the text shows `unit`: its first line, from 1, and the number of lines up to its last.

        For a pure deletion the count is 0, and the line is the one before which text is missing. None if the unit is
        dead, or none of what it inserted is shown.
        """
        of = self._unit(unit)
        if not of.live or of.hidden:
            return None
        shown = [run for run in of.inserted if run.shown and run.lines]
        if shown:
            first = self._order.lines_above(shown[0])
            return first + 1, self._order.lines_above(shown[-1]) + shown[-1].lines - first
        if of.inserted or not of.deleted:
            return None
        return self._order.lines_above(of.deleted[0]) + 1, 0

    def origin(self, line: int) -> tuple[UnitIndex, int]:
        """Return which unit inserted line `line` of the text, from 1, and which of its lines that is, from 0.

        Raises ValueError if the text has fewer lines.
        """
        run, above = self._order.run_at(line - 1)
        return run.inserter.index, run.start + above

    def line_of(self, unit: UnitIndex, offset: int) -> tuple[int, bool] | None:
        """Return where the text shows the `offset`-th line, from 0, that `unit` inserted: its number, from 1, and True.

        If the text does not show it: the number of the line that is in its place, and False. None: `unit` inserted
        fewer lines.
        """
        of = self._units[unit]
        run = None if of is None else next((run for run in of.inserted if run.start <= offset < run.end), None)
        if run is None:
            return None
        for form in (run, *run.descendants()):
            # A copy begins with the same line as its original, and either may have been cut since.
            if form.shown and offset - run.start < form.lines:
                return self._order.lines_above(form) + offset - run.start + 1, True
        place = slot(self._order, run, None) or run
        return self._order.lines_above(place) + 1, False

    def inserted_lines(self, unit: UnitIndex) -> int:
        """Return how many lines `unit` inserted, shown or not."""
        of = self._units[unit]
        return 0 if of is None else sum(run.lines for run in of.inserted)

    def line_at(self, unit: UnitIndex) -> int:
        """Return the line, from 1, at which the text shows `unit`, or would if it were live."""
        shown = self.unit_lines(unit)
        if shown is not None:
            return shown[0]
        of = self._unit(unit)
        place = slot(self._order, next(iter(of.deleted or of.inserted), None), None)
        return 1 if place is None else self._order.lines_above(place) + 1

    def neighbours(self, unit: UnitIndex) -> tuple[UnitIndex, ...]:
        """Return the hunks directly next to `unit`, ascending."""
        return tuple(sorted(other.index for other in adjoining(self._unit(unit), self._order)))

    def conflicts(self) -> tuple[WeaveConflict, ...]:
        """Return every conflict of the present state, by unit; none when it is clean."""
        return tuple(
            described(unit, finding, self._order)
            for unit in sorted(self._findings, key=lambda unit: unit.index)
            for finding in self._findings[unit]
        )

    def described(self, unit: UnitIndex, kind: ConflictKind) -> WeaveConflict:
        """Return a conflict of `unit` that the caller found, with its lines and its place."""
        return described(self._unit(unit), (kind, frozenset()), self._order)

    def unseen(self) -> WeaveConflict | None:
        """Return the conflict of the newest unit with lines in the text if lines that it never saw are shown.

        For lines that is not a conflict. It is one for content that has no independent lines, such as binary states.
        """
        found = unseen(self._order.shown())
        if found is None:
            return None
        unit, needs = found
        return described(unit, (ConflictKind.TEXT_RETURNED, frozenset(needs)), self._order)

    def with_same_change(self, unit: UnitIndex) -> UnitIndex | None:
        """Return the live unit that makes the same change as dead `unit`, if there is one and it can be rejected."""
        of = self._units[unit]
        if of is None or of.live:
            return None
        creators = (other for other in self._units if other is not None and _has_bounds(other))
        found = with_same_change(of, creators)
        return None if found is None or found.index == BASE else found.index

    def takers(self, unit: UnitIndex) -> list[list[UnitIndex]]:
        """Return, for each run that live `unit` inserted, the live units that delete it.

        For a pure deletion: one list, of the live units that reinserted its text.
        """
        of = self._units[unit]
        if of is None:
            return []
        if of.inserted:
            return [[other.index for other in run.live_deleters] for run in of.inserted]
        if of.deleted:
            return [[other.index for other in of.shadowed if other.undoes is of and other.live]]
        return []

    def byte_count(self) -> int:
        """Return how many bytes the text has."""
        return self._order.byte_count() - self._is_open()

    def passage(self, line: int, count: int) -> tuple[int, bytes]:
        """Return the byte at which line `line` of the text begins, and `count` lines from there. Raises ValueError."""
        return self._order.passage(line, count)

    def between(self, start: int, end: int) -> bytes:
        """Return the bytes of the text from `start` to `end`, which is not beyond its end."""
        return self._order.between(start, end)

    def has_file(self) -> bool:
        """Return whether the live units show a file, even an empty one."""
        return self._order.has_file()

    def visibility(self) -> bytes:
        """Return for each run, in text order, whether it is shown: 0 or 1. Decisions change nothing else."""
        return bytes([run.shown for run in self.runs()])

    def runs(self) -> list[Run]:
        """Return every run, shown or not, in text order."""
        return [run for block, _ in self._order.divided() for run in block]

    def units(self, indexes: Iterable[UnitIndex]) -> set[WeaveUnit]:
        """Return these units, with what each inserted and deleted."""
        return set(map(self._unit, indexes))

    def marked(self, base: bytes, theirs: bytes, labels: Callable[[set[UnitIndex]], Labels]) -> MarkedText | None:
        """Return the text with markers around differences of two other visibilities; see `conflict_markers`."""
        text = self.text()
        if text is None:
            return None
        shown = list(zip(self.visibility(), base, theirs, strict=True))
        return marked(self.runs(), shown, labels, is_open=not is_closed(text))

    @property
    def has_endings(self) -> bool:
        """Return whether the last line ever lacked its newline."""
        return bool(self._enders)

    def _is_open(self) -> bool:
        """Return whether there is a last line and it lacks its newline."""
        last = self._order.last_with_lines() if self._enders else None
        if last is None or last.text == b"\n" or last.text.endswith(b"\n\n"):
            return False  # an empty line consists of its newline alone
        first = slot(self._order, last, None) or last
        for unit in reversed(self._enders):
            run, missing = unit.ending
            if unit.live and (run is last or not self._order.precedes(run, first) or unit.knew(last.inserter)):
                return missing
        return False

    def _unit(self, index: UnitIndex) -> WeaveUnit:
        unit = self._units[index]
        if unit is None:
            unit = self._units[index] = WeaveUnit(index, index)
        return unit

    def _render(self) -> bytes | None:
        pieces = self._order.texts()
        last = self._order.last_with_lines()
        if last is None:
            return None if next(self._order.shown(), None) is None else b""
        if self._is_open():
            pieces[last.block.index] = pieces[last.block.index][:-1]
        return b"".join(pieces)

    # -- deciding

    def flip(self, changes: Mapping[UnitIndex, bool]) -> list[UnitIndex]:
        """Make units live or dead; return those that are in conflict after this, among the units it affects.

        Units that were in conflict before and are not affected are not among them. The state changes in either case: to
        refuse, flip the units back. Raises ValueError for the base.
        """
        if not changes.get(BASE, True):
            raise ValueError("the text before the first edit can't be rejected")
        units = {self._unit(index): live for index, live in changes.items()}
        flipped = [unit for unit, live in units.items() if unit.live is not live]
        if not flipped:
            return []
        had_file = not self._holders or self._order.has_file()
        for unit in flipped:
            unit.flip(len(self._units))
        concerned = dict[WeaveUnit, UnitChanges]()
        hidden_or_shown = update_hidden_copies(flipped)
        changed = [*flipped, *hidden_or_shown]
        moved = [run for unit in flipped for run in unit.all_deleted]
        moved += [run for unit in hidden_or_shown for run in unit.inserted]
        for unit in (*changed, *recheck_copies(moved)):
            _about(concerned, unit).is_all = True
        suspects = {*changed, *(other for unit in flipped for other in unit.shadowed)}
        for unit in changed:
            self._refresh(unit, concerned, suspects)
        for unit in flipped:
            recount_exposed(unit)
        for author in update_returns(suspects):
            for run in author.inserted:
                _recheck_deleters_of(concerned, run, author)
        # The file vanishes with its last shown run, which need not belong to the unit that inserted its bounds.
        if self._holders and (had_file is not self._order.has_file() or any(_has_bounds(unit) for unit in flipped)):
            for unit in self._holders:
                _about(concerned, unit).is_all = True
        # They are excused while their text is taken out, and what replaced it.
        for unit in self._displaced.intersection(behind(flipped)) if self._displaced else ():
            _about(concerned, unit).is_all = True
        self._recheck(concerned)
        self._rendered = False
        return [unit.index for unit in concerned if unit in self._findings]

    def has_conflict(self, unit: UnitIndex) -> bool:
        """Return whether `unit` is in conflict."""
        return self._unit(unit) in self._findings

    def conflicting_units(self) -> dict[UnitIndex, set[UnitIndex]]:
        """Return the units in conflict, each with those that it needs live (if dead) or dead (if live)."""
        return {
            unit.index: {needed.index for _, needs in found for needed in needs}
            for unit, found in self._findings.items()
        }

    def _refresh(self, unit: WeaveUnit, concerned: dict[WeaveUnit, UnitChanges], suspects: set[WeaveUnit]) -> None:
        """Show and hide runs after `unit` was flipped, or became hidden or shown.

        Add the units whose conflicts this can change to `concerned`, with the reason, and the units in whose place it
        can change what is shown to `suspects`.
        """
        for other in unit.readers:
            _about(concerned, other).is_all = True
        for run in unit.deleted:
            self._reshow(run, concerned, suspects)
            _recheck_rivals_of(concerned, run, unit)
        for run in unit.deleted_copies:
            self._reshow(run, concerned, suspects)
            _recheck_rivals_of(concerned, run, unit)
        for run in unit.inserted:
            self._reshow(run, concerned, suspects)
            _recheck_deleters_of(concerned, run, unit)

    def _reshow(self, run: Run, concerned: dict[WeaveUnit, UnitChanges], suspects: set[WeaveUnit]) -> None:
        for unit in run.anchored:
            _about(concerned, unit).is_all = True
        wanted = run.wanted
        if run.shown is not wanted:
            self._show(run, suspects, shown=wanted)
            for unit in run.block.watchers:
                _about(concerned, unit).runs.add(run)

    def _show(self, run: Run, suspects: set[WeaveUnit], *, shown: bool) -> None:
        """Show or hide `run`; add the dead units that deleted it and track returning text to `suspects`."""
        self._order.show(run, shown=shown)
        for unit in run.return_trackers:
            if not unit.live:
                unit.exposed += 1 if shown else -1
                suspects.add(unit)

    def _recheck(self, units: Mapping[WeaveUnit, UnitChanges | None]) -> None:
        for unit, about in units.items():
            found = findings(unit, self._order, about)
            if found:
                self._findings[unit] = found
            else:
                self._findings.pop(unit, None)
            if unit.is_excused or (found and unit.is_between):
                self._displaced.add(unit)
            else:
                self._displaced.discard(unit)

    # -- recording

    def record(
        self,
        after: bytes | None,
        hunks: Sequence[Hunk],
        *,
        needs_file: bool = False,
        shared: Affixes = NOTHING_SHARED,
    ) -> tuple[UnitIndex, ...]:
        """Record the edit that led from the present text to `after`, and return its units, all live.

        The first is the edit's whole-file part: creation, or deletion with all lines (`hunks` is empty then), and the
        final newline if no hunk wrote the last line. One unit for each hunk follows. `needs_file`: whether the
        whole-file part changes something about an existing file, such as its path. `shared`: how many bytes the two
        texts are known to share at their ends.

        Raises ValueError, and changes nothing, if `hunks` don't lead from the present text to `after`.
        """
        before = self.text()
        inserted = self._inserted(before, after, hunks, shared)
        ender = self._ender(before, after, hunks)
        units = self._new_units(hunks)
        if before is None and after is not None:
            self._create(self._unit(units[0]), after)
        elif before is not None and after is None:
            self._delete(self._unit(units[0]))
        else:
            self._apply_units(units, hunks, inserted, needs_file=needs_file)
        if after is not None and ender is not None:
            self._set_ending(units[ender], missing=not is_closed(after))
        self._text, self._rendered = after, True
        self._recheck_with(units)
        return units

    def record_splice(
        self, splice: Splice, hunks: Sequence[Hunk], *, needs_file: bool = False
    ) -> tuple[UnitIndex, ...]:
        """Record the edit that made `splice` of the present text, as `record` does but without building either text.

        Raises ValueError, and changes nothing, if there is no text or the hunks disagree with the splice.
        """
        inserted = inserted_by(splice, hunks, self._order) if hunks and not self.has_endings else None
        if inserted is None:
            before = self.text()
            if before is None:
                raise ValueError("there is no text to change")
            shared = splice.shared(len(before))
            return self.record(splice.over(before), hunks, needs_file=needs_file, shared=shared)
        units = self._new_units(hunks)
        self._apply_units(units, hunks, inserted, needs_file=needs_file)
        self._rendered = False
        self._recheck_with(units)
        return units

    def _inserted(
        self, before: bytes | None, after: bytes | None, hunks: Sequence[Hunk], shared: Affixes
    ) -> list[bytes]:
        if before is None or after is None:
            if hunks:
                raise ValueError("a creation or deletion has no hunks")
            return []
        offset = self._order.offset if len(hunks) <= _FEW_HUNKS else None
        return inserted_texts(before, after, hunks, offset, shared)

    def _ender(self, before: bytes | None, after: bytes | None, hunks: Sequence[Hunk]) -> int | None:
        """Return which unit of an edit sets the final newline, as an index into its units; None if none does.

        That is the hunk that wrote the last line; else the whole-file part, if the newline was added or removed.
        """
        if before is None or after is None:
            return None if after is None else 0
        if hunks and hunks[-1].new_count and hunks[-1].old_end >= self._order.line_count():
            return len(hunks)
        return None if is_closed(before) is is_closed(after) else 0

    def _new_units(self, hunks: Sequence[Hunk]) -> tuple[UnitIndex, ...]:
        """Return the units of an edit: one for its whole-file part, created on demand, and one for each hunk."""
        since = UnitIndex(len(self._units))
        indexes = cast("tuple[UnitIndex, ...]", tuple(range(since, since + len(hunks) + 1)))
        self._units.append(None)
        self._units += [WeaveUnit(index, since) for index in indexes[1:]]
        return indexes

    def _apply_units(
        self, units: Sequence[UnitIndex], hunks: Sequence[Hunk], inserted: Sequence[bytes], *, needs_file: bool
    ) -> None:
        if needs_file and (bound := next(self._order.shown(), None)) is not None:
            whole = self._unit(units[0])
            whole.file_bound = bound
            self._holders.append(whole)
        if len(hunks) > 1:
            for line in borders(hunks):
                self._order.gap_at(line)
        parts = [self._unit(index) for index in units[1:]]
        for at in range(len(parts) - 1, -1, -1):  # from the last to the first, so that line numbers hold
            hunk = hunks[at]
            if hunk.old_count:
                self._replace(parts[at], hunk, inserted[at])
            else:
                insert(self._order, parts[at], hunk.old_start, inserted[at])
        if len(parts) > 1:
            link_moves(parts)

    def _recheck_with(self, units: Sequence[UnitIndex]) -> None:
        """Check again whatever was in conflict, and `units`, after an edit changed the text."""
        if self._findings:
            self._recheck(dict.fromkeys([*self._findings, *map(self._unit, units)]))

    def _create(self, unit: WeaveUnit, content: bytes) -> None:
        first, last = self._order.first(), self._order.last()
        if first is not None and last is not None:
            unit.gap = first, last
            self._order.watch(unit)
        self._order.append(unit.new_run(b""))
        if content:
            self._order.append(unit.new_run(closed(content)))
        self._order.append(unit.new_run(b""))
        link_reinsertion(unit, self._order)

    def _delete(self, unit: WeaveUnit) -> None:
        """Delete the file with everything between its bounds, so that hidden text can't return either."""
        shown = list(self._order.shown())
        for holder in self._holders:
            # What a unit changed about a file that is gone now applies to the file in its place.
            if holder.live and holder.file_bound is not None and not holder.file_bound.shown:
                holder.file_bound = shown[0]
        first, last = self._order.first(), self._order.last()
        if first is not None and last is not None and (first is not shown[0] or last is not shown[-1]):
            unit.gap = first, last
        self._delete_runs(unit, list(self._order.runs(shown[0], shown[-1])))
        if unit.gap is not None:
            self._order.watch(unit)

    def _replace(self, unit: WeaveUnit, hunk: Hunk, text: bytes) -> None:
        """Delete lines and insert `text` directly after the last of them."""
        removed = self._order.runs_at(hunk.old_start, hunk.old_count)
        first, last = removed[0], removed[-1]
        if text:
            self._order.insert_after(last, unit.new_run(text))
        self._delete_runs(unit, removed)
        if first is not last and self._order.distance(first, last) >= len(removed):
            self._order.watch(unit)
        link_reinsertion(unit, self._order)
        watch_enclosing_regions(self._order, unit)

    def _delete_runs(self, unit: WeaveUnit, runs: list[Run]) -> None:
        """Make `unit` delete `runs`, and the hidden copies of the same lines: its decision applies to these too."""
        unit.deleted = runs
        suspects: set[WeaveUnit] = set()
        for run in runs:
            if not run.inserter.tracks_returns:
                track_returns(run.inserter)
            if run.shown:
                self._show(run, suspects, shown=False)
            run.deleters += (unit,)
            run.live_deleters += (unit,)
        forms = dict.fromkeys(form for run in runs for form in other_forms(run, unit.since))
        deleted_copies = [form for form in forms if not form.shown and unit not in form.deleters]
        for run in deleted_copies:
            if not run.inserter.tracks_returns:
                track_returns(run.inserter)
            run.deleters += (unit,)
            run.live_deleters += (unit,)
        if deleted_copies:
            unit.deleted_copies = tuple(deleted_copies)
        recheck_copies(unit.all_deleted)
        update_returns(suspects)

    def _set_ending(self, index: UnitIndex, *, missing: bool) -> None:
        """Record whether the last line lacks its newline; texts that always ended in a newline keep no such record."""
        last = self._order.last_with_lines() if missing or self._enders else None
        if last is not None:
            unit = self._unit(index)
            unit.ending = last, missing
            last.enders += (unit,)
            self._enders.append(unit)


def _about(concerned: dict[WeaveUnit, UnitChanges], unit: WeaveUnit) -> UnitChanges:
    about = concerned.get(unit)
    if about is None:
        about = concerned[unit] = UnitChanges()
    return about


def _recheck_deleters_of(concerned: dict[WeaveUnit, UnitChanges], run: Run, author: WeaveUnit) -> None:
    """Note that the text of `author` has changed for the units that delete its `run`."""
    for unit in run.live_deleters:
        _about(concerned, unit).authors.add(author)


def _recheck_rivals_of(concerned: dict[WeaveUnit, UnitChanges], run: Run, taker: WeaveUnit) -> None:
    """Note that the units that replace `run` may have gained or lost a rival in `taker`."""
    for unit in run.live_deleters:
        if unit.inserted or unit.deleted_copies:
            _about(concerned, unit).deleters.add(taker)


def _has_bounds(unit: WeaveUnit) -> bool:
    return any(not run.lines for runs in (unit.inserted, unit.deleted) for run in runs[:1])
