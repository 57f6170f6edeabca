"""A large folder, whose files are compared by columns, is scanned as any other."""

import os
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from objstore import CallInfo
from objstore.worktree.batch_stat import StatTable
from tests.support.scene import Scene

SHELL = CallInfo(tool="Bash", conversation="conv_shell", notes={"agent": "tester"})
NAMES = [f"f{number:03}" for number in range(300)]


def changed(folder: Path, seed: int) -> None:
    """Change some files of a folder, at random."""
    draw = random.Random(seed)
    for name in draw.sample(NAMES, draw.choice([1, 2, 40])):
        place = folder / name
        match draw.choice(["write", "delete", "mode", "touch", "link", "folder"]):
            case "write" if not place.is_dir():
                place.write_text(f"{name} {seed}")
            case "link" | "delete" | "folder" as kind:
                if place.is_dir() and not place.is_symlink():
                    place.rmdir()
                else:
                    place.unlink(missing_ok=True)
                if kind == "link":
                    place.symlink_to(f"to {seed}")
                elif kind == "folder":
                    place.mkdir()
            case "mode" if place.is_file():
                place.chmod(draw.choice([0o644, 0o755]))
            case _ if place.is_file():
                os.utime(place)


def recorded(scene: Scene, limit: int, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bytes]]:
    """Record what changed, where folders of `limit` files are large; return the operations and paths."""
    monkeypatch.setattr("objstore.worktree.walk._WORTH_TABLE", limit)
    found = scene.workspace.record_changes(SHELL)
    return sorted((view.edit.operation.value, view.edit.path) for view in found.edits)


def test_a_large_folder_is_recorded_as_small_ones_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    large, small = Scene(tmp_path / "large"), Scene(tmp_path / "small")
    both = (large, 0), (small, 1_000_000)
    for scene, limit in both:
        for name in NAMES[::2]:
            (scene.root / name).write_text(name)
        recorded(scene, limit, monkeypatch)
    for seed in range(30):
        for scene, _ in both:
            changed(scene.root, seed)
        found, expected = (recorded(scene, limit, monkeypatch) for scene, limit in both)
        assert found == expected
        assert recorded(large, 0, monkeypatch) == []
    assert len(large.workspace.history.edits()) > 100
    large.reopen()
    (large.root / ".cas/cache/looks").unlink()
    assert recorded(large, 1_000_000, monkeypatch) == []  # a scan that reads every file finds nothing else
    assert large.workspace.review.external_changes() == ()
    large.close()
    small.close()


def test_one_change_in_a_large_folder_reads_each_file_status_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene(tmp_path / "large")
    for name in NAMES:
        (scene.root / name).write_text(name)
    recorded(scene, 0, monkeypatch)
    recorded(scene, 0, monkeypatch)  # the first one may have been in the same tick of the clock as the files
    monkeypatch.setattr("objstore.worktree.changed_dirs._WORTH_TABLE", 0)
    looked: list[bytes] = []
    signatures = StatTable.signatures

    def counted(table: StatTable, folder: int, names: Sequence[bytes]) -> bytes:
        looked.extend(name for name in names if name != b".")
        return signatures(table, folder, names)

    monkeypatch.setattr(StatTable, "signatures", counted)
    (scene.root / NAMES[0]).write_text("changed")
    assert recorded(scene, 0, monkeypatch) == [("edit", NAMES[0].encode())]
    assert Counter(looked)[NAMES[1].encode()] == 1
    scene.close()
