"""A dry run has the same outcome as the command, also with hard links and occupied paths."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.command_runner import CommandRunner
from tests.support.sampling import sampled_product

Scene = Callable[[CommandRunner], None]


def edited_file(runner: CommandRunner) -> None:
    runner.write("f", b"one\ntwo\n")
    runner.write("f", b"ONE\ntwo\n")


def hard_link(runner: CommandRunner) -> None:
    edited_file(runner)
    (runner.folder / "g").hardlink_to(runner.folder / "f")


def recorded_hard_link(runner: CommandRunner) -> None:
    runner.write("f", b"one\ntwo\n")
    (runner.folder / "g").hardlink_to(runner.folder / "f")
    runner.done("record")
    runner.write("f", b"ONE\ntwo\n")


def hard_link_outside_the_workspace(runner: CommandRunner) -> None:
    edited_file(runner)
    (runner.folder.parent / "outside").hardlink_to(runner.folder / "f")


def file_replaced_by_a_folder(runner: CommandRunner) -> None:
    edited_file(runner)
    (runner.folder / "f").unlink()
    (runner.folder / "f").mkdir()
    (runner.folder / "f" / "mine").write_bytes(b"mine\n")


def file_replaced_by_a_symlink(runner: CommandRunner) -> None:
    edited_file(runner)
    (runner.folder / "f").rename(runner.folder / "h")
    (runner.folder / "f").symlink_to("h")


def moved_and_path_reused(runner: CommandRunner) -> None:
    runner.write("f", b"one\n")
    runner.move("f", "g")
    runner.write("f", b"another\n")


def moved_and_path_reused_by_hand(runner: CommandRunner) -> None:
    runner.write("f", b"one\n")
    runner.move("f", "g")
    (runner.folder / "f").write_bytes(b"mine\n")


def deleted_and_path_reused_by_a_folder(runner: CommandRunner) -> None:
    runner.write("f", b"one\n")
    runner.delete("f")
    (runner.folder / "f").mkdir()
    (runner.folder / "f" / "mine").write_bytes(b"mine\n")


def folder_replaced_by_a_file(runner: CommandRunner) -> None:
    runner.write("d/f", b"one\n")
    runner.delete("d/f")
    (runner.folder / "d").rmdir()
    (runner.folder / "d").write_bytes(b"mine\n")


SCENES: Final = (
    edited_file,
    hard_link,
    recorded_hard_link,
    hard_link_outside_the_workspace,
    file_replaced_by_a_folder,
    file_replaced_by_a_symlink,
    moved_and_path_reused,
    moved_and_path_reused_by_hand,
    deleted_and_path_reused_by_a_folder,
    folder_replaced_by_a_file,
)

COMMANDS: Final = (
    "reject 1",
    "reject 2",
    "reject --all",
    "reject 1 --cascade",
    "reject 1 --markers",
    "reject 2 --on-external keep",
    "reject 2 --on-external discard",
    "accept --all",
)


def tree(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Return inode, mode and content of each path of the workspace, without the store."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if not name.startswith(".cas"):
            state = path.lstat()
            content = path.read_bytes() if path.is_file() else b""
            found[name] = (state.st_ino, state.st_mode, content)
    return found


def comparable(answer: Any) -> Any:  # noqa: ANN401 - whatever the document holds
    """Return the fields that both runs share: without those of recorded decisions and the diffs of a dry run."""
    files = [{name: value for name, value in file.items() if name != "diff"} for file in answer["files"]]
    same = {name: value for name, value in answer.items() if name not in {"decision", "dry_run", "recorded"}}
    return same | {"files": files}


@pytest.mark.parametrize(("scene", "words"), sampled_product(SCENES, COMMANDS))
def test_a_decision_has_the_outcome_of_its_dry_run(runner: CommandRunner, scene: Scene, words: str) -> None:
    scene(runner)
    before, records = tree(runner.folder), runner.cas("records").out
    tried = runner.cas(*words.split(), "--dry-run", "--json")
    assert tree(runner.folder) == before
    assert runner.cas("records").out == records
    done = runner.cas(*words.split(), "--json")
    assert done.status == tried.status
    if tried.out and done.out:
        assert comparable(done.json()) == comparable(tried.json())
    else:
        assert (tried.out, tried.err) == (done.out, done.err)
    if done.status:
        assert tree(runner.folder) == before


@pytest.mark.parametrize(("scene", "state"), sampled_product(SCENES, ["f@1", "d/f@1"]))
def test_a_restore_has_the_outcome_of_its_dry_run(runner: CommandRunner, scene: Scene, state: str) -> None:
    scene(runner)
    before = tree(runner.folder)
    tried = runner.cas("restore", state, "--dry-run")
    assert tree(runner.folder) == before
    done = runner.cas("restore", state)
    assert done.status == tried.status
    if done.status:
        assert (done.err, tree(runner.folder)) == (tried.err, before)


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_a_restored_snapshot_has_the_outcome_of_its_dry_run(runner: CommandRunner, scene: Scene) -> None:
    (runner.folder / "f").write_bytes(b"at first\n")
    os.link(runner.folder / "f", runner.folder / "second name")
    runner.done("snapshot", "create")
    (runner.folder / "f").unlink()
    runner.done("record")
    scene(runner)
    before = tree(runner.folder)
    tried = runner.cas("snapshot", "restore", "1", "--dry-run")
    assert tree(runner.folder) == before
    done = runner.cas("snapshot", "restore", "1")
    assert done.status == tried.status
    if done.status:
        assert (done.err, tree(runner.folder)) == (tried.err, before)
