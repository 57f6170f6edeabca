"""Test that files of any size are processed in less memory than a tenth of a small machine's.

The file has 110 MB by default, which is more than the allowed memory; `make large` uses 2 GB.
"""

import os
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.support.peak_memory import MEASURED, measured

MEGABYTES: Final = int(os.environ.get("CAS_LARGE_MB", "110"))
MOST_MEMORY: Final = 100 << 20
PATIENCE: Final = 60 + MEGABYTES

TRACKED: Final = (
    MEASURED
    + """
from objstore import Action, CallInfo, Decided, OnExternal, Workspace, blob_id

def call(act):
    with workspace.call(CallInfo(tool="test", conversation="conv_one")) as made:
        act(made)
        return made.commit()

def size(path):
    return os.stat(os.path.join(workspace.root, path)).st_size

def units(seq):
    return workspace.find_units(str(seq))[1]

with Workspace.init(sys.argv[1]) as workspace:
    wanted = size("big")
    moved = call(lambda made: made.move("big", "folder/moved"))
    assert size("folder/moved") == wanted

    with open(os.path.join(workspace.root, "folder/moved"), "r+b") as file:
        file.seek(wanted // 2)
        file.write(b"written outside")
        file.seek(0, 2)
        file.write(b"and appended\\n")
    (change,) = workspace.review.external_changes()
    deleted = call(lambda made: made.delete("folder/moved"))
    assert [len(deleted.external), len(deleted.edits)] == [1, 1]

    assert isinstance(workspace.decide(Action.REJECT, units(deleted.edits[0].seq)), Decided)
    assert size("folder/moved") == wanted + 13
    assert isinstance(workspace.decide(Action.REJECT, units(deleted.external[0].seq)), Decided)
    assert size("folder/moved") == wanted
    assert isinstance(workspace.review.undo(), Decided)
    with open(os.path.join(workspace.root, "folder/moved"), "r+b") as file:
        file.write(b"outside again")
    outcome = workspace.decide(Action.REJECT, units(deleted.external[0].seq), on_external=OnExternal.DISCARD)
    assert isinstance(outcome, Decided), outcome
    assert size("folder/moved") == wanted
    assert workspace.review.external_changes() == ()
"""
)


def command(*words: str, folder: Path, output: int | None = subprocess.PIPE) -> tuple[bytes, int]:
    # Not through its entry point, which would end the process before the measurement.
    program = MEASURED + f"sys.argv[1:] = {list(words)!r}\nfrom cli.shell.main import main\nsys.exit(main())"
    return measured(program, folder=folder, output=output, patience=PATIENCE)


def made(path: Path, megabytes: int) -> None:
    """Write a sparse file, no two megabytes of which are alike."""
    with path.open("wb") as file:
        for number in range(megabytes):
            file.seek(number << 20)
            file.write(os.urandom(2000))
        file.truncate(megabytes << 20)


@pytest.fixture(scope="module")
def tracked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """Return a workspace in which a large file was used in every way, and the memory that this took."""
    root = tmp_path_factory.mktemp("large")
    made(root / "big", MEGABYTES)
    return root, measured(TRACKED, str(root), folder=root, patience=PATIENCE)[1]


def test_huge_file_is_recorded_moved_deleted_and_restored(tracked: tuple[Path, int]) -> None:
    assert tracked[1] < MOST_MEMORY


def test_huge_file_is_exported_and_verified(tracked: tuple[Path, int], tmp_path: Path) -> None:
    root, _ = tracked
    with (tmp_path / "out").open("wb") as out:
        _, peak = command("cat", "folder/moved", folder=root, output=out.fileno())
    assert peak < MOST_MEMORY
    with (tmp_path / "out").open("rb") as out, (root / "folder" / "moved").open("rb") as moved:
        while piece := out.read(1 << 20):
            assert piece == moved.read(1 << 20)
        assert not moved.read(1)
    (tmp_path / "out").unlink()
    command_output, peak = command("verify", "--all", folder=root)
    assert b"blobs match their hash" in command_output
    assert peak < MOST_MEMORY


def test_huge_file_is_restored_from_a_snapshot(tracked: tuple[Path, int]) -> None:
    root, _ = tracked
    _, peak = command("restore", "folder/moved@2", folder=root)
    assert peak < MOST_MEMORY
    assert (root / "folder" / "moved").stat().st_size == (MEGABYTES << 20) + 13


def test_store_of_a_huge_file_is_checked_and_salvaged(tracked: tuple[Path, int], tmp_path: Path) -> None:
    root, _ = tracked
    _, peak = command("fsck", folder=root)
    assert peak < MOST_MEMORY
    _, peak = command("salvage", ".", "--to", str(tmp_path / "saved"), folder=root)
    assert peak < MOST_MEMORY
    command_output, _ = command("verify", "--all", folder=tmp_path / "saved")
    assert b"blobs match their hash" in command_output
