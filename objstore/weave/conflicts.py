"""Conflicts: why a live unit can't stand together with what else is live.

A conflict is a value, not an exception. Each names the unit that fails and the units it needs: a dead one
it needs live, a live one it needs dead. These are the only rules:

missing target
    The unit took out lines that a dead unit put in. A pure deletion has nothing left to do and is excused,
    unless older text returns where the deletion was, because the dead unit had replaced it, itself or through
    others that are dead as well, or had put it back (see `putback`); or the same edit put the deleted text
    back elsewhere. Either would keep text that should be gone.
both changed
    The unit replaced a line that another live unit, which didn't know this one, takes out too. Or it stands back
    for a line that it put back (it is hidden), and only units that are older and that it didn't know take that
    out: the line would be gone, though the last one to say so put it in.
surroundings gone
    The unit only inserts, and both its neighbours are gone for a reason that it didn't know.
text returned inside
    Text shows inside the unit's region that was not shown when the unit was recorded, or that was put
    there by a unit which didn't know this one. The region of a file's deletion is all that the file ever was
    before: the last word on whether there is a file holds.

What moves a file, or gives it a mode or a final newline, takes out no line. Where there is no file for it, it is held
to the first two rules as if it had replaced the file's first bound: whoever put that in is needed, and whoever takes
it out without having known of this is a rival.

What is no text has no lines that are independent. So whoever keeps binary states asks for one thing more, which a weave
of lines does not: that the newest unit with lines in the text has seen all that stand beside them (`unseen`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from objstore.fastclass import value
from objstore.model.basic_types import ConflictKind
from objstore.weave.reinsertion import other_forms, taken_out
from objstore.weave.runs import Needs, text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from objstore.weave.run_list import RunList
    from objstore.weave.runs import Run, UnitIndex, WeaveUnit

__all__ = ["ConflictFinding", "UnitChanges", "WeaveConflict", "described", "findings", "unseen"]

_FEW_RUNS: Final = 8
"""Runs that a unit takes out and that are quicker looked at again than remembered."""


@value
class WeaveConflict:
    """One rule that one live unit breaks."""

    kind: ConflictKind
    unit: UnitIndex
    needs: tuple[UnitIndex, ...]  # ascending; a dead unit is needed live, a live one dead
    line: int  # of the current text, from 1: where the unit stands or would stand; 0: it is about the file as a whole
    removed: bytes  # the lines that the unit took out, each ended
    inserted: bytes  # the lines that the unit put in, each ended


ConflictFinding = tuple[ConflictKind, frozenset["WeaveUnit"]]
"""A broken rule and the units it names."""


class UnitChanges:
    """What has changed for a unit since it was last checked."""

    __slots__ = ("authors", "deleters", "is_all", "runs")

    def __init__(self) -> None:
        self.authors: set[WeaveUnit] = set()  # of text that the unit takes out
        self.deleters: set[WeaveUnit] = set()  # of text that the unit takes out, too
        self.runs: set[Run] = set()  # shown or hidden, perhaps in the unit's region
        self.is_all = False  # whether anything may have changed


def findings(unit: WeaveUnit, order: RunList, about: UnitChanges | None = None) -> list[ConflictFinding]:
    """Return the rules that `unit` breaks in the present state; none when it is dead.

    `about`: what has changed since it was last asked for; None: anything.
    """
    if not unit.live or unit.hidden:
        if unit.checked is not None:
            unit.checked = None
        takers = taken_out(unit) if unit.live else None
        return [(ConflictKind.BOTH_CHANGED, frozenset(takers))] if takers else []
    checked = unit.checked
    if checked is None or about is None or about.is_all or unit.echoes:
        checked = _needs(unit, order)
        if unit.watches or len(unit.deleted) > _FEW_RUNS:
            unit.checked = checked
    else:
        _follow(unit, checked, about, order)
    missing, rivals = set(checked.missing.values()), set(checked.rivals)
    back = set().union(*checked.returned.values())
    if unit.hides_behind is not None and not order.has_file():
        _require_file_bound(unit, unit.hides_behind, missing, rivals)
    found = [
        (ConflictKind.MISSING_TARGET, missing),
        (ConflictKind.BOTH_CHANGED, rivals),
        (ConflictKind.SURROUNDINGS_GONE, _lost_surroundings(unit)),
        (ConflictKind.TEXT_RETURNED, back),
    ]
    return [(kind, frozenset(needs)) for kind, needs in found if needs]


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
    """Return the newest unit with lines in `runs`, which are all that is shown, and whom it needs, as in a finding.

    It needs somebody where lines are shown that were not when it was recorded. None where all were: then the text, or
    one with more in it, was once the file.
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
    if unit.echoes:
        _count_forms(unit, needs)
    return needs


def _count_forms(unit: WeaveUnit, needs: Needs) -> None:
    """Take account of the other forms of what `unit` took out: each line has to be there once, in any of them.

    Where another form of a line is there, what `unit` put in has its place only if it took out all that came
    with the form that it saw.
    """
    taken = set(unit.deleted)
    is_all_there = True
    for run in unit.deleted:
        there = _older_copies_below(unit, run)
        has_place = run in there or not unit.inserted or taken.issuperset(run.inserter.inserted)
        is_all_there = is_all_there and bool(there) and has_place
        if len(there) > 1:
            others = {form: whom for form in there if form is not run and (whom := _returned(unit, form))}
            needs.returned.update(others)
    if is_all_there:
        needs.missing.clear()


def _follow(unit: WeaveUnit, needs: Needs, about: UnitChanges, order: RunList) -> None:
    """Bring what `unit` needs up to date with what has changed."""
    for author in about.authors:
        needed = _missing_target(unit, author)
        if needed is None:
            needs.missing.pop(author, None)
        else:
            needs.missing[author] = needed
    for other in about.deleters:
        needs.rivals.discard(other)
        if unit.inserted and other.live and not other.knew(unit) and _share(unit, other):
            needs.rivals.add(other)
    for run in about.runs:
        whom = _returned(unit, run) if run.shown and order.is_within(run, *unit.region) else None
        if whom:
            needs.returned[run] = whom
        else:
            needs.returned.pop(run, None)


def _older_copies_below(unit: WeaveUnit, run: Run) -> list[Run]:
    """Return the forms of a line that `unit` took out which older units alone would show."""
    return [
        form
        for form in (run, *other_forms(run, unit.since))
        if form.inserter.live
        and not form.inserter.hidden
        and not any(taker.since < unit.since for taker in form.takers)
    ]


def _missing_target(unit: WeaveUnit, author: WeaveUnit) -> WeaveUnit | None:
    """Return whom `unit` needs, which took out text of `author`."""
    if not unit.inserted:
        is_moved = not author.live and any(target.live for target in unit.moved.get(author, ()))
        return author if is_moved else author.returns
    if not author.live:
        return author
    return author.undoes if author.hidden else None


def _competing_deleters(unit: WeaveUnit) -> set[WeaveUnit]:
    if not unit.inserted:
        return set()
    return {other for run in unit.deleted if len(run.takers) > 1 for other in run.takers if not other.knew(unit)}


def _share(unit: WeaveUnit, other: WeaveUnit) -> bool:
    """Return whether `other`, which is live and takes out a run that `unit` does, does so of those that `unit` saw."""
    return not unit.echoes or any(other in run.takers for run in unit.deleted)


def _require_file_bound(unit: WeaveUnit, bound: Run, missing: set[WeaveUnit], rivals: set[WeaveUnit]) -> None:
    """Add who is to blame that there is no file for what `unit` says of one."""
    if bound.inserter.live:
        rivals.update(other for other in bound.takers if not other.knew(unit))
    else:
        missing.add(bound.inserter)


def _lost_surroundings(unit: WeaveUnit) -> set[WeaveUnit]:
    if unit.above is None or unit.below is None:
        return set()
    above, below = set(_units_hiding(unit, unit.above)), set(_units_hiding(unit, unit.below))
    return above | below if above and below else set()


def _units_hiding(unit: WeaveUnit, neighbour: Run) -> Iterator[WeaveUnit]:
    """Yield the units to blame when `neighbour` is gone for a reason that `unit` didn't know."""
    author = neighbour.inserter
    if not author.live:
        yield author
    elif author.hidden and author.undoes is not None:
        yield author.undoes
    else:
        for other in neighbour.takers:
            if not other.knew(unit) and (neighbour in other.echoes or other.saw(neighbour)):
                yield other


def _region(unit: WeaveUnit, order: RunList) -> Iterable[Run]:
    return order.shown(*unit.region) if unit.watches else ()


def _returned(unit: WeaveUnit, run: Run) -> set[WeaveUnit]:
    """Return whom `unit` needs, in whose region `run` is shown."""
    author = run.inserter
    if author is unit or author.knew(unit):
        return set()
    hid = {other for other in run.deleters if not other.live and other.since < unit.since and unit.knew(other)}
    return hid or {author}
