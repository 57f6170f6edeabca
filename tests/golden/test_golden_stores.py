"""Old stores: what an earlier version wrote is read, checked, and worked on."""

import json
import shutil
from pathlib import Path
from typing import Any, Final

import pytest

from objstore import (
    Action,
    Conflicted,
    ConflictKind,
    Seq,
    Status,
    Unit,
    Workspace,
    check_store,
    import_bundle,
    salvage_store,
)
from objstore.disk.config.setting_sources import RetentionLimits
from tests.golden.make_stores import CONTENTS_NAME, SEGMENTS, stored_contents
from tests.support.crash_scenarios import rejected, write
from tests.support.faulty_disk import WHOLE

STORES: Final = Path(__file__).with_name("stores")
NAMES: Final = sorted(path.name for path in STORES.iterdir())
MOST_BYTES: Final = 200_000


@pytest.fixture(params=NAMES)
def golden(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    """Return a workspace whose store is a copy of a golden one's segments alone, and what the store has to tell."""
    kept = STORES / request.param
    (tmp_path / ".cas").mkdir(mode=0o700)
    shutil.copytree(kept / SEGMENTS, tmp_path / ".cas" / SEGMENTS)
    return tmp_path, json.loads((kept / CONTENTS_NAME).read_text())


def test_a_golden_store_is_small() -> None:
    for kept in STORES.iterdir():
        assert sum(path.stat().st_size for path in kept.rglob("*") if path.is_file()) < MOST_BYTES


def test_golden_store_has_its_recorded_contents_and_no_fault(
    golden: tuple[Path, dict[str, Any]],
) -> None:
    root, expected = golden
    with Workspace.open(root) as workspace:
        assert json.loads(json.dumps(stored_contents(workspace))) == expected
    assert check_store(str(root)).faults == ()


def test_work_can_continue_in_a_golden_store(golden: tuple[Path, dict[str, Any]]) -> None:
    root, expected = golden
    with Workspace.open(root) as workspace:
        workspace.review.restore(workspace.history.find_state("deep.txt@20"))
        restored = (root / "deep.txt").read_bytes()
        assert b"as edit 39 left it" not in restored
        before = len(workspace.history.edits())
        write(workspace, "new.txt", b"new\n")
        assert len(workspace.history.edits()) == before + 1 > len(expected["edits"])
        rejected(workspace, workspace.history.edits()[-1].seq)
        assert not (root / "new.txt").exists()
        pending = [view.seq for view in workspace.history.edits() if view.status is Status.PENDING]
        assert pending
    assert check_store(str(root)).faults == ()


@pytest.mark.parametrize("golden", NAMES if WHOLE else ["1-decided", "2"], indirect=True)  # one of each version
def test_a_golden_store_that_was_worked_on_is_compacted_exported_and_salvaged(
    golden: tuple[Path, dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    root, _ = golden
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    with Workspace.open(root) as workspace:
        write(workspace, "new.txt", b"new\n")
        before = stored_contents(workspace)
        workspace.transfer.export_bundle(str(elsewhere / "bundle"))
        imported = import_bundle(str(elsewhere / "bundle"), str(elsewhere / "imported"))
        assert imported.records == len(before["records"])
        assert salvage_store(str(root), str(elsewhere / "salvaged")).is_whole
        workspace.retention.collect(RetentionLimits(), who="me")
    for name in (root, elsewhere / "imported", elsewhere / "salvaged"):
        with Workspace.open(name) as workspace:
            assert stored_contents(workspace)["edits"] == before["edits"]
            assert stored_contents(workspace)["records"][: len(before["records"])] == before["records"]
            write(workspace, "more.txt", b"more\n")
        assert check_store(str(name)).faults == ()


def test_decisions_that_an_older_version_made_differently_are_named(
    tmp_path: Path,
) -> None:
    """One rejection lost lines that no edit touched, another the change of a final newline."""
    (tmp_path / ".cas").mkdir(mode=0o700)
    shutil.copytree(STORES / "1-decided" / SEGMENTS, tmp_path / ".cas" / SEGMENTS)
    with Workspace.open(tmp_path) as workspace:
        written = {
            path: workspace.history.text(workspace.history.files_at()[path].blob) for path in ("alike.js", "end.txt")
        }
        for path, content in written.items():
            (tmp_path / path).write_bytes(content)
        assert written["alike.js"].endswith(b"function two() {\n")
        assert not written["end.txt"].endswith(b"\n")
    named = [note.what for note in check_store(str(tmp_path)).notes if "wrote a different text" in note.what]
    assert [note.split(":")[0] for note in named] == ["alike.js", "end.txt"]
    assert ["decision 2 (reject of edit 46)" in named[0], "decision 1 (reject of edit 42)" in named[1]] == [True, True]
    with Workspace.open(tmp_path) as workspace:
        for seq, path in ((51, "alike.js"), (44, "end.txt")):
            rejected(workspace, seq)
            assert (tmp_path / path).read_bytes() == written[path].split(b"\n", 1)[1]
            workspace.review.undo()
            assert (tmp_path / path).read_bytes() == written[path]


def test_rejection_that_would_lose_equal_lines_of_an_older_record_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".cas").mkdir(mode=0o700)
    shutil.copytree(STORES / "1-decided" / SEGMENTS, tmp_path / ".cas" / SEGMENTS)
    with Workspace.open(tmp_path) as workspace:
        (tmp_path / "open.js").write_bytes(workspace.history.text(workspace.history.files_at()["open.js"].blob))
        outcome = workspace.decide(Action.REJECT, [Unit(Seq(49), 0), Unit(Seq(49), 1)])
        assert isinstance(outcome, Conflicted)
        assert [(conflict.kind, conflict.unit.seq) for conflict in outcome.conflicts] == [(ConflictKind.IN_DOUBT, 50)]
        rejected(workspace, 49, 50)
        assert (tmp_path / "open.js").read_bytes().count(b"return 1;\n}") == 2
