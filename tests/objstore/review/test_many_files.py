"""Test decisions on thousands of files or hunks, as one edit or one shell command may make them."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

from objstore import Action, CallInfo, Decided, Operation, Unit, Workspace
from tests.support.faulty_disk import UnsyncedDisk

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import FrameType


def operations(act: Callable[[], object]) -> int:
    """Return how many calls, of Python and of C, `act` makes."""
    count = 0

    def called(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    sys.setprofile(called)
    try:
        act()
    finally:
        sys.setprofile(None)
    return count


def works(root: Path, files: int) -> dict[str, int]:
    """Return what each way to deal with a conversation costs that wrote so many files."""
    root.mkdir()
    with Workspace.init(root, UnsyncedDisk()) as workspace:
        with workspace.call(CallInfo(tool="sed")) as call:
            for number in range(files):
                call.write(f"folder/{number}", b"1\n")
            views = call.commit().edits
        units = [Unit(view.seq, hunk) for view in views for hunk in range(len(view.units))]
        found = {
            "series": operations(lambda: workspace.history.series([view.seq for view in views])),
            "reject": operations(partial(workspace.decide, Action.REJECT, units)),
            "undo": operations(workspace.review.undo),
        }
        assert isinstance(workspace.review.redo(), Decided)
        assert not list((root / "folder").glob("*"))
    return found


def test_what_is_done_to_twice_as_many_files_takes_twice_the_work(tmp_path: Path) -> None:
    few, many = (works(tmp_path / str(files), files) for files in (150, 300))
    assert {act for act, work in many.items() if work > 2.3 * few[act]} == set()


def works_on_hunks(root: Path, hunks: int) -> dict[str, int]:
    """Return what each way to deal with an edit costs that has so many hunks."""
    root.mkdir()
    with Workspace.init(root, UnsyncedDisk()) as workspace:
        for ending in (b"", b"!"):
            with workspace.call(CallInfo(tool="sed")) as call:
                content = b"".join(b"line\n%d%s\n" % (number, ending) for number in range(hunks))
                call.write("file", content, operation=Operation.EDIT)
                call.commit()
        _, view = workspace.history.edits()
        assert len(view.units) == hunks + 1
        units = [Unit(view.seq, hunk) for hunk in range(len(view.units))]
        return {
            "nothing": operations(partial(workspace.decide, Action.RESET, units)),
            "accept": operations(partial(workspace.decide, Action.ACCEPT, units)),
            "reject": operations(partial(workspace.decide, Action.REJECT, units)),
            "undo": operations(workspace.review.undo),
            "redo": operations(workspace.review.redo),
        }


def test_what_is_done_to_twice_as_many_hunks_takes_twice_the_work(tmp_path: Path) -> None:
    few, many = (works_on_hunks(tmp_path / str(hunks), hunks) for hunks in (150, 300))
    assert {act: work / few[act] for act, work in many.items() if work > 2.3 * few[act]} == {}


def test_a_series_of_twice_as_many_edits_of_one_file_loads_it_once(tmp_path: Path) -> None:
    found = []
    for edits in (20, 40):
        root = tmp_path / str(edits)
        root.mkdir()
        with Workspace.init(root, UnsyncedDisk()) as workspace:
            for number in range(edits):
                with workspace.call(CallInfo(tool="t", conversation="c")) as call:
                    call.write("file", b"%d\n" % number)
                    call.commit()
            seqs = [view.seq for view in workspace.history.edits()]
            found.append(operations(partial(workspace.history.series, seqs)))
    assert found[1] < 2.3 * found[0]


def test_a_bar_counts_the_files_of_a_decision(tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    with Workspace.init(tmp_path, UnsyncedDisk()) as workspace:
        with workspace.call(CallInfo(tool="sed")) as call:
            for number in range(3):
                call.write(str(number), b"1\n")
            views = call.commit().edits
        units = [Unit(view.seq, hunk) for view in views for hunk in range(len(view.units))]
        with workspace.reporting_progress(lambda *what: told.append(what)):
            workspace.decide(Action.REJECT, units)
        workspace.review.undo()
    assert [what for what in told if what[0] == "documents"] == [("documents", done, 3) for done in range(3)]
    paths = [what for what in told if what[0] == "paths"]
    assert paths == sorted(paths)
    assert paths[-1] == ("paths", 3, 3)
