"""`cas try` and `cas bisect` run on a temporary copy of what another store has, and change nothing here or there."""

from pathlib import Path

import pytest

from tests.support.command_runner import CommandRunner, unforked_cas
from tests.support.scene import observe_tree
from tests.support.shared_stores import AFTER, BEFORE, pull, pushed_desk


@pytest.fixture
def lap(tmp_path: Path, runner: CommandRunner) -> CommandRunner:
    """Return a workspace of ours that has pulled desk's changes, and has a file of the same name."""
    pull(runner.folder, pushed_desk(tmp_path, {"b.txt": b"new\n"}))
    runner.write("a.txt", b"ours\n")
    return runner


@pytest.mark.parametrize(
    ("words", "content"),
    [
        (("--store", "desk/"), AFTER),
        (("--reject", "desk/1"), BEFORE),
        (("--reject", "desk/1:1", "--reject", "desk/1:2"), BEFORE),
        (("--store", "desk", "--accepted"), BEFORE),
        (("--accept", "desk/1"), AFTER),
    ],
)
def test_command_runs_on_what_another_store_has_or_would_have(
    lap: CommandRunner, tmp_path: Path, words: tuple[str, ...], content: bytes
) -> None:
    stores = (lap.folder, tmp_path / "desk")
    before = [observe_tree(folder) for folder in stores]
    assert lap.done("try", *words, "cat", "a.txt").out == content
    assert lap.cas("try", *words, "false").status == 1
    assert [observe_tree(folder) for folder in stores] == before


def test_copy_is_removed_with_the_command(lap: CommandRunner, tmp_path: Path) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    words = ("try", "--store", "desk/", "ls", str(temporary))
    assert "cas-" in unforked_cas(*words, folder=lap.folder, settings={"TMPDIR": str(temporary)}).text
    assert [path for path in temporary.rglob("*") if path.is_file()] == []
    assert [*temporary.glob("cas-*")] == []


@pytest.mark.parametrize("words", [("--store", "desk/"), ("--good", "desk/1^")])
def test_edit_of_another_store_that_breaks_a_command_is_found_and_named(
    lap: CommandRunner, words: tuple[str, ...]
) -> None:
    said = lap.done("bisect", *words, "grep", "-q", "line 3$", "a.txt").text
    assert "fails with edit 1 (" in said
    assert "cas reject desk/1 -m" in said
    assert "--check" not in said


def test_store_that_was_not_pulled_and_names_in_two_stores_are_refused(lap: CommandRunner) -> None:
    assert "No store that was pulled is named 'stranger/' here." in lap.cas("try", "--store", "stranger/", "true").said
    assert lap.cas("try", "--reject", "desk/1", "--reject", "1", "true").status == 2
