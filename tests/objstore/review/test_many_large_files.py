"""Decisions on more text than is held in memory at once."""

from pathlib import Path
from typing import Final

import pytest

from objstore import Action, CallInfo, Conflicted, Decided, OnExternal, Seq, Unit, Workspace
from tests.support.command_runner import cas
from tests.support.peak_memory import MEASURED, measured

FILES: Final = 6
LINES: Final = 8_000
WIDTH: Final = 1_000
"""Bytes of a line: six such files have more text than a decision holds."""

FIRST: Final = "FIRST".ljust(WIDTH - 1, ".")
SECOND: Final = "SECOND".ljust(WIDTH - 1, ".")


def content(number: int, changed: dict[int, str] | None = None) -> bytes:
    """Return a text of eight megabytes. `changed`: lines by their number."""
    lines = [f"{number} {line} ".ljust(WIDTH - 1, "x") for line in range(LINES)]
    for line, text in (changed or {}).items():
        lines[line] = text
    return "".join(f"{line}\n" for line in lines).encode()


def written(workspace: Workspace, conversation: str, changed: dict[int, str]) -> list[Seq]:
    with workspace.call(CallInfo(tool="test", conversation=conversation)) as call:
        for number in range(FILES):
            call.write(f"f{number}", content(number, changed))
        return [view.seq for view in call.commit().edits]


def found(root: Path) -> list[bytes | None]:
    paths = [root / f"f{number}" for number in range(FILES)]
    return [path.read_bytes() if path.exists() else None for path in paths]


def texts(changed: dict[int, str]) -> list[bytes | None]:
    return [content(number, changed) for number in range(FILES)]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """Return a workspace in which two agents have changed the same line of each file, and one of them another line."""
    for number in range(FILES):
        (tmp_path / f"f{number}").write_bytes(content(number))
    return Workspace.init(tmp_path)


def test_decisions_on_many_large_files_are_those_on_each(workspace: Workspace, tmp_path: Path) -> None:
    with workspace:
        first = written(workspace, "conv_one", {5: FIRST, 900: FIRST})
        second = written(workspace, "conv_two", {5: SECOND, 900: FIRST})
        units = [unit for seq in first for unit in workspace.find_units(str(seq))[1]]
        refused = workspace.decide(Action.REJECT, units)
        assert isinstance(refused, Conflicted)
        assert {conflict.unit.seq for conflict in refused.conflicts} == set(second)
        assert {unit.seq for unit in refused.reject_first} <= set(second)
        assert found(tmp_path) == texts({5: SECOND, 900: FIRST})
        assert isinstance(workspace.decide(Action.REJECT, [Unit(seq, 2) for seq in first]), Decided)
        assert found(tmp_path) == texts({5: SECOND})
        both = workspace.decide(Action.REJECT, units, cascade=True)
        assert isinstance(both, Decided)
        assert {unit.seq for unit in both.cascaded} == set(second)
        assert found(tmp_path) == texts({})
        assert isinstance(workspace.review.undo(), Decided)
        assert found(tmp_path) == texts({5: SECOND})
        assert isinstance(workspace.review.undo(), Decided)
        assert found(tmp_path) == texts({5: SECOND, 900: FIRST})
        assert isinstance(workspace.decide(Action.ACCEPT, units), Decided)
        assert found(tmp_path) == texts({5: SECOND, 900: FIRST})


def test_a_change_from_outside_of_many_large_files_is_kept_by_a_decision(workspace: Workspace, tmp_path: Path) -> None:
    with workspace:
        edits = written(workspace, "conv_one", {5: FIRST})
        for number in range(FILES):
            (tmp_path / f"f{number}").write_bytes(content(number, {5: FIRST, 7_000: SECOND}))
        units = [Unit(seq, 1) for seq in edits]
        decided = workspace.decide(Action.REJECT, units, on_external=OnExternal.KEEP)
        assert isinstance(decided, Decided)
        assert len(decided.external) == FILES
        assert found(tmp_path) == texts({7_000: SECOND})
        assert isinstance(workspace.review.undo(), Decided)
        assert found(tmp_path) == texts({5: FIRST, 7_000: SECOND})


DECIDED: Final = (
    MEASURED
    + """
from objstore import Action, Decided, Workspace

with Workspace.open(sys.argv[1]) as workspace:
    units = [unit for seq in sys.argv[2].split() for unit in workspace.find_units(seq)[1]]
    assert isinstance(workspace.decide(Action.REJECT, units), Decided)
    assert isinstance(workspace.review.undo(), Decided)
    assert workspace.snapshots.restore(1).outcome is not None
"""
)


def test_a_decision_on_three_times_as_many_large_files_takes_no_more_memory(tmp_path: Path) -> None:
    """What was deleted comes back by a rejection, goes by its undo, and comes back by the baseline."""
    peaks = []
    for count in (FILES, 3 * FILES):
        root = tmp_path / str(count)
        root.mkdir()
        for number in range(count):
            (root / f"f{number}").write_bytes(content(number))
        assert cas("init", folder=root).status == 0
        assert cas("record", folder=root).status == 0
        info = CallInfo(tool="test", conversation="conv_one")
        with Workspace.open(root) as workspace, workspace.call(info) as call:
            for number in range(count):
                call.delete(f"f{number}")
            seqs = " ".join(str(view.seq) for view in call.commit().edits)
        peaks.append(measured(DECIDED, str(root), seqs, folder=root)[1])
        assert all((root / f"f{number}").read_bytes() == content(number) for number in range(count))
    assert peaks[1] < 1.2 * peaks[0]
