"""Old stores: what an earlier version wrote is read, checked, and worked on."""

import json
import shutil
from pathlib import Path
from typing import Any, Final

import pytest

from objstore import Status, Workspace, check_store
from tests.store.golden import SEGMENTS, TOLD, told
from tests.store.scenes import rejected, write

STORES: Final = Path(__file__).with_name("stores")
MOST_BYTES: Final = 200_000


@pytest.fixture(params=sorted(path.name for path in STORES.iterdir()))
def golden(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    """Return a workspace whose store is a copy of a golden one's segments alone, and what the store has to tell."""
    kept = STORES / request.param
    (tmp_path / ".cas").mkdir(mode=0o700)
    shutil.copytree(kept / SEGMENTS, tmp_path / ".cas" / SEGMENTS)
    return tmp_path, json.loads((kept / TOLD).read_text())


def test_a_golden_store_is_small() -> None:
    for kept in STORES.iterdir():
        assert sum(path.stat().st_size for path in kept.rglob("*") if path.is_file()) < MOST_BYTES


def test_a_golden_store_tells_what_it_was_told_and_nothing_is_wrong_with_it(
    golden: tuple[Path, dict[str, Any]],
) -> None:
    root, expected = golden
    with Workspace.open(root) as workspace:
        assert json.loads(json.dumps(told(workspace))) == expected
    assert check_store(str(root)).faults == ()


def test_a_golden_store_is_worked_on(golden: tuple[Path, dict[str, Any]]) -> None:
    root, expected = golden
    with Workspace.open(root) as workspace:
        workspace.restore(workspace.find_state("deep.txt@20"))
        restored = (root / "deep.txt").read_bytes()
        assert b"as edit 39 left it" not in restored
        before = len(workspace.edits())
        write(workspace, "new.txt", b"new\n")
        assert len(workspace.edits()) == before + 1 > len(expected["edits"])
        rejected(workspace, workspace.edits()[-1].seq)
        assert not (root / "new.txt").exists()
        pending = [view.seq for view in workspace.edits() if view.status is Status.PENDING]
        assert pending
    assert check_store(str(root)).faults == ()
