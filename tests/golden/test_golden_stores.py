"""Golden stores: what a released version wrote is read, checked, and worked on by every later one."""

import json
import shutil
from pathlib import Path
from typing import Any, Final, get_args

import pytest

from objstore import Decision, Edit, Status, Workspace, check_store, import_bundle, salvage_store
from objstore.disk.config.setting_sources import RetentionLimits
from objstore.model.basic_types import Action, Operation, Origin
from objstore.model.records import Record
from tests.golden.make_stores import CONTENTS_NAME, SEGMENTS, stored_contents
from tests.support.crash_scenarios import rejected, write

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
        records = [view.record for view in workspace.history.records()]
    assert check_store(str(root)).faults == ()
    assert {type(record) for record in records} == {*get_args(Record)}
    assert {record.action for record in records if isinstance(record, Decision)} == {*Action}
    assert {record.origin for record in records if isinstance(record, Edit)} == {*Origin}
    assert {record.operation for record in records if isinstance(record, Edit)} == {*Operation}


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
