"""Test decisions on thousands of files or hunks, as one edit or one shell command may make them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from objstore import Action, CallInfo, Decided, ExternalChange, Operation, Unit, Workspace, import_bundle
from tests.support.call_counts import count_calls
from tests.support.faulty_disk import UnsyncedDisk

if TYPE_CHECKING:
    from pathlib import Path

    from objstore import Verdict


def costs_by_files(root: Path, files: int) -> dict[str, int]:
    """Return the cost of each operation on a conversation that wrote this number of files."""
    root.mkdir()
    with Workspace.init(root, UnsyncedDisk()) as workspace:
        with workspace.call(CallInfo(tool="sed")) as call:
            for number in range(files):
                call.write(f"folder/{number}", b"1\n")
            views = call.commit().edits
        units = [Unit(view.seq, hunk) for view in views for hunk in range(len(view.units))]
        found = {
            "series": count_calls(lambda: list(workspace.history.series([view.seq for view in views]))),
            "reject": count_calls(partial(workspace.decide, Action.REJECT, units)),
            "verdicts": count_calls(partial(verdicts_of_all, workspace)),
            "undo": count_calls(workspace.review.undo),
        }
        assert isinstance(workspace.review.redo(), Decided)
        assert not list((root / "folder").glob("*"))
    return found


def verdicts_of_all(workspace: Workspace) -> list[tuple[Verdict, ...]]:
    """Return what a list of all edits says about who decided."""
    verdicts = workspace.history.verdicts()
    return [verdicts.of(view) for view in workspace.history.edits()]


def test_cost_is_linear_in_the_number_of_files(tmp_path: Path) -> None:
    few, many = (costs_by_files(tmp_path / str(files), files) for files in (60, 120))
    assert {act for act, work in many.items() if work > 2.3 * few[act]} == set()


def test_import_compares_no_file_with_all_others(tmp_path: Path) -> None:
    files, bundle = 200, tmp_path / "bundle"
    (tmp_path / "desk").mkdir()
    with Workspace.init(tmp_path / "desk", UnsyncedDisk()) as workspace:
        with workspace.call(CallInfo(tool="sed")) as call:
            for number in range(files):
                call.write(f"folder/{number}", b"1\n")
            call.commit()
        workspace.transfer.export_bundle(str(bundle))
    compared = count_calls(partial(import_bundle, str(bundle), str(tmp_path / "there")), ExternalChange.__eq__.__code__)
    assert compared < 10 * files


def costs_by_hunks(root: Path, hunks: int) -> dict[str, int]:
    """Return the cost of each operation on an edit with this number of hunks."""
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
            "nothing": count_calls(partial(workspace.decide, Action.RESET, units)),
            "accept": count_calls(partial(workspace.decide, Action.ACCEPT, units)),
            "reject": count_calls(partial(workspace.decide, Action.REJECT, units)),
            "undo": count_calls(workspace.review.undo),
            "redo": count_calls(workspace.review.redo),
        }


def test_cost_is_linear_in_the_number_of_hunks(tmp_path: Path) -> None:
    few, many = (costs_by_hunks(tmp_path / str(hunks), hunks) for hunks in (80, 160))
    assert {act: work / few[act] for act, work in many.items() if work > 2.3 * few[act]} == {}


def cost_of_changes_after_decisions(root: Path, files: int) -> int:
    """Return what the net changes of so many files cost, after ten decisions on all of them."""
    root.mkdir()
    with Workspace.init(root, UnsyncedDisk()) as workspace:
        for number in range(11):
            with workspace.call(CallInfo(tool="sed")) as call:
                for name in range(files):
                    call.write(f"folder/{name}", b"".join(b"%d\n" % line for line in range(number + 1)))
                views = call.commit().edits
            if number < 10:
                units = [Unit(view.seq, hunk) for view in views for hunk in range(len(view.units))]
                assert isinstance(workspace.decide(Action.ACCEPT, units), Decided)
    with Workspace.open(root) as workspace:
        return count_calls(workspace.review.changes)


def test_many_decisions_on_many_files_cost_each_file_its_own_part(tmp_path: Path) -> None:
    few, many = (cost_of_changes_after_decisions(tmp_path / str(files), files) for files in (50, 100))
    assert many < 2.3 * few


def cost_of_undo_after_decisions(root: Path, decisions: int) -> int:
    """Return what it costs to undo a decision on one edit, after so many decisions on a hundred files."""
    root.mkdir()
    with Workspace.init(root, UnsyncedDisk()) as workspace:
        with workspace.call(CallInfo(tool="sed")) as call:
            for name in range(100):
                call.write(f"folder/{name}", b"1\n")
            views = call.commit().edits
        units = [Unit(view.seq, hunk) for view in views for hunk in range(len(view.units))]
        for number in range(decisions):
            action = Action.RESET if number % 2 else Action.ACCEPT
            assert isinstance(workspace.decide(action, units), Decided)
        with workspace.call(CallInfo(tool="sed")) as call:
            call.write("other", b"1\n")
            (view,) = call.commit().edits
        assert isinstance(workspace.decide(Action.REJECT, [Unit(view.seq, 0)]), Decided)
    with Workspace.open(root, UnsyncedDisk()) as workspace:
        return count_calls(workspace.review.undo)


def test_an_undo_decodes_of_each_earlier_decision_little(tmp_path: Path) -> None:
    few, many = (cost_of_undo_after_decisions(tmp_path / str(number), number) for number in (2, 12))
    assert many < 2 * few


def test_series_of_many_edits_loads_a_file_once(tmp_path: Path) -> None:
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
            found.append(count_calls(partial(lambda chosen: list(workspace.history.series(chosen)), seqs)))
    assert found[1] < 2.3 * found[0]


def test_progress_counts_the_files_of_a_decision(tmp_path: Path) -> None:
    reports: list[tuple[str, int, int]] = []
    with Workspace.init(tmp_path, UnsyncedDisk()) as workspace:
        with workspace.call(CallInfo(tool="sed")) as call:
            for number in range(3):
                call.write(str(number), b"1\n")
            views = call.commit().edits
        units = [Unit(view.seq, hunk) for view in views for hunk in range(len(view.units))]
        with workspace.reporting_progress(lambda *what: reports.append(what)):
            workspace.decide(Action.REJECT, units)
        workspace.review.undo()
    assert [what for what in reports if what[0] == "documents"] == [("documents", done, 3) for done in range(3)]
    paths = [what for what in reports if what[0] == "paths"]
    assert paths == sorted(paths)
    assert paths[-1] == ("paths", 3, 3)
