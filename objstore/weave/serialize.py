"""Convert a weave to and from columns of numbers and one text, so that it can be cached.

Runs are numbered in text order and units as they are in the weave. What can be derived is not stored: which runs a unit
inserted and deleted follows from the runs, and which insertions are at a run follows from their units.
"""

from __future__ import annotations

from itertools import accumulate
from struct import calcsize, pack, unpack
from typing import TYPE_CHECKING, NamedTuple, cast

from objstore.weave.run_list import RunList
from objstore.weave.runs import Run, UnitIndex, WeaveUnit

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["WeaveState", "order_and_units", "state_of"]

Lists = list[list[int]]
"""Rows of numbers for the few items that have any; the first number identifies the item."""


class WeaveState(NamedTuple):
    """The columns. `bytes` are unsigned 32-bit little-endian numbers, unless a comment says otherwise."""

    since: bytes  # of each unit
    idle: bytes  # of each unit, one byte: 1 if it is live and has no other attributes
    flips: Lists  # unit, the number of units at each flip
    anchors: Lists  # unit, run above + 1, run below + 1; 0: none
    gaps: Lists  # unit, first run, last run
    holders: Lists  # unit, the file bound that it refers to
    undoes: Lists  # unit, the one that it undoes, those that had inserted the text
    shadowed: Lists  # unit, units
    readers: Lists  # unit, units
    moved: Lists  # unit, author, units that reinserted the author's text
    blocks: bytes  # runs in each block
    watchers: Lists  # block, units
    inserters: bytes  # of each run
    starts: bytes  # of each run
    lines: bytes  # of each run
    sizes: bytes  # bytes of each run
    shown: bytes  # of each run, one byte: 0 or 1
    deleters: bytes  # of each run: the first unit that deletes it, + 1; 0: none
    more_deleters: Lists  # run, the other units that delete it
    deleted_copies: Lists  # unit, the hidden copies of its deleted runs
    copies: Lists  # run, the runs that reinserted its lines
    endings: Lists  # unit, the last run when it was recorded, 1 if its newline is missing, else 0; in that order
    text: bytes  # of all runs, concatenated


def state_of(
    order: RunList,
    units: Sequence[WeaveUnit | None],
    enders: Sequence[WeaveUnit],
) -> WeaveState:
    """Return the state of the weave with this order and these units (None: an idle unit).

    `enders`: the units that set the final newline, in the order of recording.
    """
    blocks = order.divided()
    runs = [run for block, _ in blocks for run in block]
    # Few units have attributes other than their runs.
    detailed = [unit for unit in units if unit is not None and unit.__dict__]
    with_copies = [(number, run) for number, run in enumerate(runs) if run.copies]
    numbers = {run: number for number, run in enumerate(runs)} if detailed or with_copies else {}

    def number_of(run: Run | None) -> int:
        return 0 if run is None else numbers[run] + 1

    return WeaveState(
        since=_packed([index if unit is None else unit.since for index, unit in enumerate(units)]),
        idle=bytes([unit is None or _is_idle(unit) for unit in units]),
        flips=[[unit.index, *unit.flips] for unit in detailed if unit.flips],
        anchors=[
            [unit.index, number_of(unit.above), number_of(unit.below)]
            for unit in detailed
            if unit.above is not None or unit.below is not None
        ],
        gaps=[[unit.index, numbers[unit.gap[0]], numbers[unit.gap[1]]] for unit in detailed if unit.gap is not None],
        holders=[[unit.index, numbers[unit.file_bound]] for unit in detailed if unit.file_bound is not None],
        undoes=[
            [unit.index, unit.undoes.index, *_indexes(unit.restores)] for unit in detailed if unit.undoes is not None
        ],
        shadowed=[[unit.index, *_indexes(unit.shadowed)] for unit in detailed if unit.shadowed],
        readers=[[unit.index, *_indexes(unit.readers)] for unit in detailed if unit.readers],
        moved=[
            [unit.index, author.index, *sorted(_indexes(targets))]
            for unit in detailed
            for author, targets in unit.moved.items()
        ],
        blocks=_packed([len(block) for block, _ in blocks]),
        watchers=[[number, *sorted(_indexes(watchers))] for number, (_, watchers) in enumerate(blocks) if watchers],
        inserters=_packed([run.inserter.index for run in runs]),
        starts=_packed([run.start for run in runs]),
        lines=_packed([run.lines for run in runs]),
        sizes=_packed([len(run.text) for run in runs]),
        shown=bytes([run.shown for run in runs]),
        deleters=_packed([run.deleters[0].index + 1 if run.deleters else 0 for run in runs]),
        more_deleters=[[n, *_indexes(run.deleters[1:])] for n, run in enumerate(runs) if len(run.deleters) > 1],
        deleted_copies=[
            [unit.index, *(numbers[run] for run in unit.deleted_copies)] for unit in detailed if unit.deleted_copies
        ],
        copies=[[number, *(numbers[copy] for copy in run.copies)] for number, run in with_copies],
        endings=[[unit.index, numbers[unit.ending[0]], int(unit.ending[1])] for unit in enders],
        text=b"".join([run.text for run in runs]),
    )


def order_and_units(state: WeaveState) -> tuple[RunList, list[WeaveUnit | None]]:
    """Return the order and the units of the weave with this state, which must come from `state_of`.

    None represents an idle unit.
    """
    since = cast("tuple[UnitIndex, ...]", _unpacked(state.since))
    known = zip(state.idle, zip(cast("Sequence[UnitIndex]", range(len(since))), since, strict=True), strict=True)
    units = [None if idle else WeaveUnit(*both) for idle, both in known]
    # Only idle units are None, and no column names one of them.
    active = cast("Sequence[WeaveUnit]", units)
    for index, *flips in state.flips:
        active[index].flips = tuple(flips)
        active[index].live = len(flips) % 2 == 0
    runs = _runs(state, active)
    _restore_positions(state, runs, active)
    _restore_relations(state, active)
    for unit in units:
        if unit is not None and unit.tracks_returns:
            for run in unit.all_deleted:
                run.return_trackers += (unit,)
    return _order(state, runs, active), units


def _restore_positions(state: WeaveState, runs: Sequence[Run], units: Sequence[WeaveUnit]) -> None:
    for index, above, below in state.anchors:
        unit = units[index]
        unit.above = runs[above - 1] if above else None
        unit.below = runs[below - 1] if below else None
        for neighbour in (unit.above, unit.below):
            if neighbour is not None:
                neighbour.anchored += (unit,)
    for index, first, last in state.gaps:
        units[index].gap = runs[first], runs[last]
    for index, bound in state.holders:
        units[index].file_bound = runs[bound]
    for index, last, missing in state.endings:
        units[index].ending = runs[last], bool(missing)
        runs[last].enders += (units[index],)


def _restore_relations(state: WeaveState, units: Sequence[WeaveUnit]) -> None:
    for index, undone, *restored in state.undoes:
        units[index].undoes = units[undone]
        units[undone].tracks_returns = True
        units[index].restores = tuple(units[other] for other in restored)
    for index, *others in state.shadowed:
        units[index].shadowed = tuple(units[other] for other in others)
    for index, *others in state.readers:
        units[index].readers = tuple(units[other] for other in others)
    moved: dict[int, dict[WeaveUnit, set[WeaveUnit]]] = {}
    for index, author, *targets in state.moved:
        moved.setdefault(index, {})[units[author]] = {units[target] for target in targets}
    for index, by_author in moved.items():
        units[index].moved = by_author


def _runs(state: WeaveState, units: Sequence[WeaveUnit]) -> list[Run]:
    authors = [units[index] for index in _unpacked(state.inserters)]
    ends = list(accumulate(_unpacked(state.sizes)))
    texts = [state.text[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    runs = list(map(Run, authors, _unpacked(state.starts), texts, _unpacked(state.lines)))
    for run, author, deleter, shown in zip(runs, authors, _unpacked(state.deleters), state.shown, strict=True):
        author.inserted.append(run)
        if deleter:
            unit = units[deleter - 1]
            run.deleters = (unit,)
            run.live_deleters = run.deleters if unit.live else ()
            author.tracks_returns = True
            unit.deleted.append(run)
        if not shown:
            run.shown = False
    _delete_more(state, runs, units)
    for index, *deleted_copies in state.deleted_copies:
        units[index].deleted_copies = tuple(runs[echo] for echo in deleted_copies)
        units[index].deleted = [run for run in units[index].deleted if run not in units[index].deleted_copies]
    for number, *copies in state.copies:
        runs[number].copies = tuple(runs[copy] for copy in copies)
        for copy in runs[number].copies:
            copy.original = runs[number]
    return runs


def _delete_more(state: WeaveState, runs: Sequence[Run], units: Sequence[WeaveUnit]) -> None:
    """Add the deleters beyond the first, and restore the text order of what they delete."""
    if not state.more_deleters:
        return
    numbers = {run: number for number, run in enumerate(runs)}
    concerned: set[WeaveUnit] = set()
    for number, *others in state.more_deleters:
        deleters = tuple(units[other] for other in others)
        runs[number].deleters += deleters
        runs[number].live_deleters += tuple(unit for unit in deleters if unit.live)
        for unit in deleters:
            unit.deleted.append(runs[number])
        concerned.update(deleters)
    for unit in concerned:
        unit.deleted.sort(key=numbers.__getitem__)


def _order(state: WeaveState, runs: Sequence[Run], units: Sequence[WeaveUnit]) -> RunList:
    watchers: dict[int, set[WeaveUnit]] = {}
    for block, *others in state.watchers:
        watchers[block] = {units[other] for other in others}
        for unit in watchers[block]:
            unit.watches = True
    blocks = []
    at = 0
    for number, count in enumerate(_unpacked(state.blocks)):
        blocks.append((list(runs[at : at + count]), watchers.get(number, set())))
        at += count
    return RunList(blocks)


def _is_idle(unit: WeaveUnit) -> bool:
    if unit.since != unit.index or unit.flips or unit.inserted or unit.deleted:
        return False
    return unit.file_bound is None and not unit.sets_final_newline


def _indexes(units: Iterable[WeaveUnit]) -> list[int]:
    return [unit.index for unit in units]


def _packed(column: Sequence[int]) -> bytes:
    return pack(f"<{len(column)}I", *column)


def _unpacked(column: bytes) -> tuple[int, ...]:
    return unpack(f"<{len(column) // calcsize('<I')}I", column)
