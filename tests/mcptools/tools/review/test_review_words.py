"""The question before a rejection that takes more along than the window shows."""

from pathlib import Path

import pytest

from mcptools.tools.review.review_words import question, undo_question
from objstore import Action, Decided, Selection, Seq, TurnInfo, Unit, Workspace
from objstore.model.results import EXTERNAL_CALL
from tests.cli.test_undo_everywhere import resolve
from tests.objstore.agents.test_formatting import FIRST, edits, look, units_of, write_and_format
from tests.support.command_runner import CommandRunner
from tests.support.faulty_disk import UnsyncedDisk


@pytest.mark.parametrize("is_accepted", [False, True], ids=["pending", "accepted"])
def test_formatting_that_goes_along_is_asked_about_and_its_accepted_edits_are_counted(
    tmp_path: Path, *, is_accepted: bool
) -> None:
    (tmp_path / "f.py").write_bytes(FIRST)
    with Workspace.init(tmp_path, UnsyncedDisk()) as workspace:
        workspace.record_changes(EXTERNAL_CALL)
        workspace.hooks.note_turn(TurnInfo(session="c", began=0, prompt="do it"), has_begun=True)
        write_and_format(workspace)
        look(workspace, "turn's end")
        if is_accepted:
            for view in edits(workspace):
                workspace.decide(Action.ACCEPT, units_of(view), who="me")
        found = workspace.review.select(Action.REJECT, Selection(units=(Unit(Seq(1), 1),)))
        stopped = workspace.decide(Action.REJECT, [*found.units], who="me", shown=found.units, stops_at_unshown=True)
        assert isinstance(stopped, Decided)
        assert (stopped.number, [unit for unit, _ in stopped.unshown]) == (0, [Unit(Seq(2), 1)])
        words = "This rejects 2 edits"
        words += ", 2 of them accepted: hunks 1:1 2:1." if is_accepted else "."
        assert question(Action.REJECT, found, dict(stopped.unshown), workspace.history.edit) == (
            f"{words} Would also reject 2:1, which depends on it."
            " Nothing was decided yet: reject it once more to go ahead."
        )


def test_what_goes_along_with_an_undo_is_asked_about(tmp_path: Path) -> None:
    resolve(CommandRunner(tmp_path))
    with Workspace.open(str(tmp_path)) as workspace:
        planned = workspace.review.undo(stops_at_unshown=True)
        assert isinstance(planned, Decided)
        assert (planned.number, str(planned.unshown[0][0])) == (0, "5:1")
        said = undo_question(planned, workspace.history.edit)
    assert said.startswith("Would undo the rejection of edits 2 3. Would also reject edit 5, which depends on them.")
    assert said.endswith("Nothing was undone yet: undo it once more to go ahead.")
