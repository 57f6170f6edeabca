"""Test which decisions a list of edits names for each of its units."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from objstore import Action, CallInfo, Decided, Unit, Workspace
from tests.support.faulty_disk import UnsyncedDisk

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("seed", range(6))
def test_each_unit_has_the_newest_decision_on_it_in_whichever_order_edits_are_listed(tmp_path: Path, seed: int) -> None:
    chance = Random(seed)
    with Workspace.init(tmp_path, UnsyncedDisk()) as workspace:
        for number in range(15):
            lines = [b"line %d\n" % (place if place * 5 + 4 > number else -place - 1) for place in range(3)]
            with workspace.call(CallInfo(tool="sed")) as call:
                call.write(f"file {number % 5}", b"".join(lines))
                call.commit()
        newest: dict[Unit, int] = {}
        for _ in range(40):
            action = chance.choice((Action.ACCEPT, Action.REJECT, Action.RESET))
            units = [Unit(view.seq, 0) for view in chance.sample(workspace.history.edits(), chance.randrange(1, 6))]
            outcome = workspace.decide(action, units, cascade=True)
            if isinstance(outcome, Decided):
                newest.update((unit, outcome.number) for unit, _ in outcome.verdicts)
        views = workspace.history.edits()
        chance.shuffle(views)
        verdicts = workspace.history.verdicts()
        named = {unit: verdict.decision for view in views for verdict in verdicts.of(view) for unit in verdict.units}
    assert len(set(newest.values())) > 3
    assert named == newest
