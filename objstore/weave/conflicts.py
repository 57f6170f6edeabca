"""Find out why a live unit can't be live together with the other live units.

A conflict is a value, not an exception. Each names the unit that fails and the units it needs: a dead one that must be
live, or a live one that must be dead. These are the only rules:

missing target
    The unit deleted lines that a dead unit inserted. A pure deletion has nothing left to do and is excused,
    unless older text returns where the deletion was, because the dead unit had replaced it, itself or through
    other dead units, or had reinserted it (see `reinsertion`); or the same edit reinserted the deleted text
    elsewhere. Either would keep text that should be gone.
both changed
    The unit replaced a line that another live unit, which didn't know this one, deletes too. Or the unit is
    hidden for a line that it reinserted, and only older units that it didn't know delete that line: the line
    would be gone, although the newest unit concerned inserted it.
surroundings gone
    The unit only inserts, and both its neighbours are gone for a reason that it didn't know.
text returned inside
    Text shows inside the unit's region that was not shown when the unit was recorded, or that was inserted
    there by a unit which didn't know this one. The region of a file's deletion is everything that the file ever
    contained: the newest decision on whether there is a file holds.

A whole-file part that moves a file, or gives it a mode or a final newline, deletes no line. If there is no file, it is
held to the first two rules as if it had replaced the file's first bound: the unit that inserted the bound is needed,
and a unit that deletes it without having known this one is a rival.

A unit that only inserts between two lines is excused from all of them while later units have taken out all that it
inserted, and what they put in its place: it has nothing to show. Not if it reinserted text of a unit that is dead now:
what that had replaced may return, and the newest unit concerned took it out.

Binary content has no independent lines. So a caller that keeps binary states requires one thing more, which a weave of
lines does not: that the newest unit with lines in the text has seen all lines around them (`unseen`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from objstore.model.basic_types import ConflictKind
from objstore.values.fastclass import value
from objstore.weave.reinsertion import other_forms, overruled_deleters
from objstore.weave.runs import Needs, text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from objstore.weave.run_list import RunList
    from objstore.weave.runs import Run, UnitIndex, WeaveUnit

__all__ = [
    "ConflictFinding",
    "UnitChanges",
    "WeaveConflict",
    "behind",
    "described",
    "findings",
    "unseen",
]

_FEW_RUNS: Final = 8
"""Up to this many deleted runs, checking a unit again is faster than caching the result."""


@value
class WeaveConflict:
    """One rule that one live unit breaks."""

    kind: ConflictKind
    unit: UnitIndex
    needs: tuple[UnitIndex, ...]  # ascending; a dead unit is needed live, a live one dead
    line: int  # in the current text, from 1: where the unit is or would be; 0: it concerns the file as a whole
    removed: bytes  # the lines that the unit deleted, each with its newline
    inserted: bytes  # the lines that the unit inserted, each with its newline


ConflictFinding = tuple[ConflictKind, frozenset["WeaveUnit"]]
"""A broken rule and the units it names."""


class UnitChanges:
    """The changes around a unit since it was last checked."""

    __slots__ = ("authors", "deleters", "is_all", "runs")

    def __init__(self) -> None:
        self.authors: set[WeaveUnit] = set()  # authors of text that the unit deletes
        self.deleters: set[WeaveUnit] = set()  # units that delete the same text as the unit
        self.runs: set[Run] = set()  # runs that were shown or hidden, possibly in the unit's region
        self.is_all = False  # whether anything else may have changed


def findings(unit: WeaveUnit, order: RunList, changes: UnitChanges | None = None) -> list[ConflictFinding]:
    """Return the rules that `unit` breaks in the present state; none if it is dead.

    `changes`: what has changed since the last call; None: anything.
    """
    if unit.is_excused:
        unit.is_excused = False
    if not unit.live or unit.hidden:
        if unit.checked is not None:
            unit.checked = None
        live_deleters = overruled_deleters(unit) if unit.live else None
        return [(ConflictKind.BOTH_CHANGED, frozenset(live_deleters))] if live_deleters else []
    checked = unit.checked
    if checked is None or changes is None or changes.is_all or unit.deleted_copies:
        checked = _needs(unit, order)
        if unit.watches or len(unit.deleted) > _FEW_RUNS:
            unit.checked = checked
    else:
        _update(unit, checked, changes, order)
    missing, rivals = set(checked.missing.values()), set(checked.rivals)
    back = set().union(*checked.returned.values())
    if unit.file_bound is not None and not order.has_file():
        _require_file_bound(unit, unit.file_bound, missing, rivals)
    found = [
        (ConflictKind.MISSING_TARGET, missing),
        (ConflictKind.BOTH_CHANGED, rivals),
        (ConflictKind.SURROUNDINGS_GONE, _lost_surroundings(unit)),
        (ConflictKind.TEXT_RETURNED, back),
    ]
    broken = [(kind, frozenset(needs)) for kind, needs in found if needs]
    if broken and unit.is_between and _is_taken_out(unit):
        unit.is_excused = True
        return []
    return broken


def described(unit: WeaveUnit, finding: ConflictFinding, order: RunList) -> WeaveConflict:
    """Return `finding` of `unit` as a value that can leave the weave."""
    kind, needs = finding
    place = next(iter(unit.inserted or unit.deleted), None)
    return WeaveConflict(
        kind=kind,
        unit=unit.index,
        needs=tuple(sorted(needed.index for needed in needs)),
        line=0 if place is None else order.lines_above(place) + 1,
        removed=text_of(run for run in unit.deleted if unit.saw(run)),
        inserted=text_of(unit.inserted),
    )


def unseen(runs: Iterable[Run]) -> tuple[WeaveUnit, set[WeaveUnit]] | None:
    """Return the newest unit with lines in `runs` and the units that it needs, as in a finding.

    `runs`: all shown runs. The unit needs others if lines are shown that were not shown when it was recorded. None if
    all were: then the text, or one with more lines, was once the file.
    """
    written = [run for run in runs if run.lines]
    if not written:
        return None
    newest = max((run.inserter for run in written), key=lambda unit: unit.since)
    strange = [run for run in written if run.inserter.since < newest.since and not newest.saw(run)]
    return (newest, {unit for run in strange for unit in _returned(newest, run)}) if strange else None


def _needs(unit: WeaveUnit, order: RunList) -> Needs:
    """Return what `unit` needs in the present state."""
    authors = {run.inserter for run in unit.deleted}
    needs = Needs(
        missing={author: needed for author in authors if (needed := _missing_target(unit, author)) is not None},
        rivals=_competing_deleters(unit),
        returned={run: whom for run in _region(unit, order) if (whom := _returned(unit, run))},
    )
    if unit.deleted_copies:
        _count_forms(unit, needs)
    return needs


def _count_forms(unit: WeaveUnit, needs: Needs) -> None:
    """Account for the copies of what `unit` deleted: each line must exist once, in any form.

    If another form of a line exists, what `unit` inserted has its place only if it deleted everything that came with
    the form that it saw.
    """
    taken = {*unit.deleted, *unit.deleted_copies}
    are_all_present = True
    for run in unit.deleted:
        present = _older_copies_below(unit, run)
        has_place = _has_place(unit, run, present, taken)
        are_all_present = are_all_present and bool(present) and has_place
        if len(present) > 1:
            others = {form: whom for form in present if form is not run and (whom := _returned(unit, form))}
            needs.returned.update(others)
    if are_all_present:
        needs.missing.clear()


def _has_place(unit: WeaveUnit, run: Run, present: list[Run], taken: set[Run]) -> bool:
    """Return whether what `unit` made of `run` fits the place of a present form of it.

    No text returned in place of a form in between, and if `unit` inserted text, nothing else came with these forms.
    """
    form: Run | None = run
    while form is not None and form not in present:
        author = form.inserter
        if author.return_blocker is not None and (unit.inserted or author.deleted):
            return False
        if unit.inserted and not taken.issuperset(author.inserted):
            return False
        form = form.original
    return True


def _update(unit: WeaveUnit, needs: Needs, changes: UnitChanges, order: RunList) -> None:
    """Update what `unit` needs according to what has changed."""
    for author in changes.authors:
        needed = _missing_target(unit, author)
        if needed is None:
            needs.missing.pop(author, None)
        else:
            needs.missing[author] = needed
    for other in changes.deleters:
        needs.rivals.discard(other)
        if unit.inserted and other.live and not other.knew(unit) and _competes(unit, other):
            needs.rivals.add(other)
    for run in changes.runs:
        whom = _returned(unit, run) if run.shown and order.is_within(run, *unit.region) else None
        if whom:
            needs.returned[run] = whom
        else:
            needs.returned.pop(run, None)


def _older_copies_below(unit: WeaveUnit, run: Run) -> list[Run]:
    """Return the forms of a line deleted by `unit` that older units alone would show."""
    return [
        form
        for form in (run, *other_forms(run, unit.since))
        if form.inserter.live
        and not form.inserter.hidden
        and not any(taker.since < unit.since for taker in form.live_deleters)
    ]


def _missing_target(unit: WeaveUnit, author: WeaveUnit) -> WeaveUnit | None:
    """Return the unit that `unit` needs because it deleted text of `author`."""
    if not unit.inserted:
        is_moved = not author.live and any(target.live for target in unit.moved.get(author, ()))
        return author if is_moved else author.return_blocker
    if not author.live:
        return author
    return author.undoes if author.hidden else None


def _competing_deleters(unit: WeaveUnit) -> set[WeaveUnit]:
    if not unit.inserted:
        return set()
    return {
        other
        for run in unit.deleted
        if len(run.live_deleters) > 1
        for other in run.live_deleters
        if not other.knew(unit)
    }


def _competes(unit: WeaveUnit, other: WeaveUnit) -> bool:
    """Return whether live `other`, which deletes a run that `unit` deletes, deletes one that `unit` saw."""
    return not unit.deleted_copies or any(other in run.live_deleters for run in unit.deleted)


def _require_file_bound(unit: WeaveUnit, bound: Run, missing: set[WeaveUnit], rivals: set[WeaveUnit]) -> None:
    """Add the units because of which there is no file for what `unit` changes on it."""
    if bound.inserter.live:
        rivals.update(other for other in bound.live_deleters if not other.knew(unit))
    else:
        missing.add(bound.inserter)


def _lost_surroundings(unit: WeaveUnit) -> set[WeaveUnit]:
    if unit.above is None or unit.below is None:
        return set()
    above, below = set(_units_hiding(unit, unit.above)), set(_units_hiding(unit, unit.below))
    return above | below if above and below else set()


def _is_taken_out(unit: WeaveUnit) -> bool:
    """Return whether later live units deleted all that `unit` inserted, and all that they put in its place."""
    checked, waiting = {unit}, [unit]
    while waiting:
        for run in waiting.pop().inserted:
            if not run.live_deleters or (run.original is not None and not run.original.inserter.live):
                return False
            new = set(run.live_deleters) - checked
            checked |= new
            waiting += new
    return True


def behind(units: Iterable[WeaveUnit]) -> set[WeaveUnit]:
    """Return units of which one may be taken out, or no longer, because these were flipped.

    They are those whose text these deleted or that reinserted it, those whose text that had replaced, and so on back.
    """
    found = {copy.inserter for unit in units for run in unit.inserted for copy in run.descendants()}
    waiting = [*units, *found]
    while waiting:
        new = {run.inserter for run in waiting.pop().all_deleted} - found
        found |= new
        waiting += new
    return found


def _units_hiding(unit: WeaveUnit, neighbour: Run) -> Iterator[WeaveUnit]:
    """Yield the units responsible if `neighbour` is gone for a reason that `unit` didn't know."""
    author = neighbour.inserter
    if not author.live:
        yield author
    elif author.hidden and author.undoes is not None:
        yield author.undoes
    else:
        for other in neighbour.live_deleters:
            if not other.knew(unit) and (neighbour in other.deleted_copies or other.saw(neighbour)):
                yield other


def _region(unit: WeaveUnit, order: RunList) -> Iterable[Run]:
    return order.shown(*unit.region) if unit.watches else ()


def _returned(unit: WeaveUnit, run: Run) -> set[WeaveUnit]:
    """Return the units that `unit` needs because `run` shows in its region."""
    author = run.inserter
    if author is unit or author.knew(unit):
        return set()
    hid = {other for other in run.deleters if not other.live and other.since < unit.since and unit.knew(other)}
    return hid or {author}
