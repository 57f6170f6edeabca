"""Changes made to a version that was read, carried over to a file that another writer has changed since."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from objstore import Action, CallInfo, EditFilter, Origin, Unit, Workspace
from tests.support.mcp_agent import Agent, Result, connected

READ = "one\ntwo\nthree\nfour\nfive\n"
NOW = "somebody's\n" + READ
CHANGED = NOW.replace("four", "FOUR")


Change: TypeAlias = Callable[[Agent, Path, tuple[list[str], str]], Result]


def tags(agent: Agent, file: Path) -> tuple[list[str], str]:
    result = agent.done("read_text_file", path=str(file))
    return [line.split("|")[0] for line in result.text.splitlines()], result.structured["file_hash"]


def by_strings(agent: Agent, file: Path, _: tuple[list[str], str]) -> Result:
    edits = [{"old_string": "four", "new_string": "FOUR"}]
    return agent.call("multi_edit_text_file", path=str(file), edits=edits, rebase=True)


def by_diff(agent: Agent, file: Path, _: tuple[list[str], str]) -> Result:
    diff = "--- f\n+++ f\n@@ -3,3 +3,3 @@\n three\n-four\n+FOUR\n five\n"
    return agent.call("edit_file_diff", path=str(file), diff=diff, rebase=True)


def by_tags(agent: Agent, file: Path, read: tuple[list[str], str]) -> Result:
    operations = [{"op": "replace", "anchor": read[0][3], "content": "FOUR"}]
    return agent.call("edit_text_file", path=str(file), file_hash=read[1], operations=operations, rebase=True)


@pytest.mark.parametrize("change", [by_strings, by_diff, by_tags])
def test_a_change_is_carried_over_to_what_the_file_is_now(agent: Agent, folder: Path, change: Change) -> None:
    file = folder / "file.txt"
    file.write_text(READ)
    read = tags(agent, file)
    file.write_text(NOW)
    result = change(agent, file, read)
    assert not result.refused, result.structured
    assert result.structured["rebased"] is True
    assert "carried over" in result.texts[-1]
    assert file.read_text() == CHANGED
    edit = agent.history()[-1]
    assert [tuple(hunk) for hunk in edit.edit.hunks] == [(4, 1, 4, 1)]
    # The model has not seen what somebody else wrote, and must not bury it.
    assert agent.call("write_file", path=str(file), content="mine\n").error["type"] == "stale_file"


@pytest.mark.parametrize("change", [by_strings, by_diff, by_tags])
def test_without_a_change_in_between_nothing_is_carried(agent: Agent, folder: Path, change: Change) -> None:
    file = folder / "file.txt"
    file.write_text(READ)
    result = change(agent, file, tags(agent, file))
    assert result.structured["rebased"] is False
    assert file.read_text() == READ.replace("four", "FOUR")
    agent.done("write_file", path=str(file), content="the session knows the file\n")


@pytest.mark.parametrize("change", [by_strings, by_diff, by_tags])
def test_a_conflict_is_refused_with_its_lines_and_changes_nothing(agent: Agent, folder: Path, change: Change) -> None:
    file = folder / "file.txt"
    file.write_text(READ)
    read = tags(agent, file)
    file.write_text(now := NOW.replace("four", "vier"))
    result = change(agent, file, read)
    error = result.error
    assert (error["code"], error["type"]) == (-32035, "rebase_conflict")
    assert "line 4 as you read it (line 5 now)" in error["message"]
    assert [line.partition("|")[2] for line in error["content"].splitlines()] == [
        *("two", "three", "vier", "five"),
    ]
    assert file.read_text() == now


def test_the_lines_of_a_conflict_are_shown_beside_one_of_any_length(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text(long := READ.replace("two\n", "x" * 20_000 + "\n"))
    read = tags(agent, file)
    file.write_text(long.replace("four", "vier"))
    error = by_tags(agent, file, read).error
    assert [line.partition("|")[2] for line in error["content"].splitlines()] == [
        *("x" * 500 + "… (20000 characters in all)", "three", "vier", "five"),
    ]


def test_what_is_no_longer_there_is_a_conflict_too(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text(READ)
    read = tags(agent, file)
    file.write_text("one\ntwo\n")
    error = by_tags(agent, file, read).error
    assert "(they were deleted above line 3)" in error["message"]


def test_two_edits_from_one_reading_are_both_kept(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text(READ)
    anchors, file_hash = tags(agent, file)
    for line, new in ((1, "2\n2\n"), (4, "5"), (0, "1")):
        operations = [{"op": "replace", "anchor": anchors[line], "content": new}]
        agent.done("edit_text_file", path=str(file), file_hash=file_hash, operations=operations, rebase=True)
    assert file.read_text() == "1\n2\n2\nthree\nfour\n5\n"


def test_a_second_change_builds_on_the_first(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text(READ)
    tags(agent, file)
    file.write_text(NOW)

    def change(old: str, new: str) -> Result:
        edits = [{"old_string": old, "new_string": new}]
        return agent.call("multi_edit_text_file", path=str(file), edits=edits, rebase=True)

    assert change("four", "vier").structured["rebased"] is True
    assert change("vier", "quatre").structured["rebased"] is True
    assert file.read_text() == NOW.replace("four", "quatre")
    assert change("four", "FOUR").error["code"] == -32010  # it is gone, and by the model's own hand
    diff = "--- f\n+++ f\n@@ -3,3 +3,4 @@\n three\n quatre\n+and more\n five\n"
    agent.done("edit_file_diff", path=str(file), diff=diff, rebase=True)
    assert file.read_text() == NOW.replace("four", "quatre\nand more")
    assert agent.call("write_file", path=str(file), content="mine\n").error["type"] == "stale_file"


def test_a_change_to_an_older_reading_leaves_what_the_model_knows(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text(READ)
    first = tags(agent, file)
    file.write_text(newer := READ + "six\n")
    tags(agent, file)
    file.write_text("somebody's\n" + newer)
    assert by_tags(agent, file, first).structured["rebased"] is True
    edits = [{"old_string": "six", "new_string": "SIX"}]
    agent.done("multi_edit_text_file", path=str(file), edits=edits, rebase=True)
    assert file.read_text() == CHANGED + "SIX\n"


def test_recorded_steps_tell_equal_lines_apart(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text("same\n" * 4)
    anchors, file_hash = tags(agent, file)
    with connected(agent.root) as other:
        theirs, their_hash = tags(other, file)
        delete = [{"op": "delete", "anchor": theirs[3]}]
        other.done("edit_text_file", path=str(file), file_hash=their_hash, operations=delete)
    # A comparison of the two texts could not say which of the lines is gone.
    replace = [{"op": "replace", "anchor": anchors[2], "content": "mine"}]
    agent.done("edit_text_file", path=str(file), file_hash=file_hash, operations=replace, rebase=True)
    assert file.read_text() == "same\nsame\nmine\n"


@pytest.mark.parametrize("is_recorded", [False, True])
def test_of_equal_lines_the_one_that_both_removed_is_gone_once(
    agent: Agent, folder: Path, *, is_recorded: bool
) -> None:
    file = folder / "file.txt"
    agent.done("write_file", path=str(file), content="if a {\n  x\n}\n}\nend\n")
    anchors, file_hash = tags(agent, file)
    file.write_text(now := "if a {\n  x\n}\nend\n")  # which of them is gone, nobody knows
    if is_recorded:
        with Workspace.open(agent.root) as workspace:
            workspace.record_changes(CallInfo(tool="", origin=Origin.EXTERNAL))
    for line in (2, 3):
        operations = [{"op": "delete", "anchor": anchors[line]}]
        agent.done("edit_text_file", path=str(file), file_hash=file_hash, operations=operations, rebase=True)
        assert file.read_text() == now
    operations = [{"op": "replace", "anchor": anchors[2], "content": "};"}]
    result = agent.call("edit_text_file", path=str(file), file_hash=file_hash, operations=operations, rebase=True)
    assert result.error["type"] == "rebase_conflict"
    assert file.read_text() == now


def test_what_another_made_alike_and_took_back_is_not_told_as_made(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    agent.done("write_file", path=str(file), content="a\nm\nx\n")
    anchors, file_hash = tags(agent, file)
    with connected(agent.root) as other:
        for content in ("A\nm\nx\n", "a\nm\ny\n"):
            tags(other, file)
            other.done("write_file", path=str(file), content=content)
    operations = [
        {"op": "replace", "anchor": anchors[0], "content": "A"},
        {"op": "insert_after", "anchor": anchors[1], "content": "new"},
    ]
    result = agent.call("edit_text_file", path=str(file), file_hash=file_hash, operations=operations, rebase=True)
    assert result.error["type"] == "rebase_conflict"
    assert "line 1 as you read it (line 1 now)" in result.error["message"]
    assert file.read_text() == "a\nm\ny\n"


def test_a_change_is_carried_over_a_reviewers_decision(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    agent.done("write_file", path=str(file), content=READ)
    top = agent.done("multi_edit_text_file", path=str(file), edits=[{"old_string": "one\n", "new_string": "1\n1\n"}])
    read = tags(agent, file)
    with Workspace.open(agent.root) as workspace:
        workspace.decide(Action.REJECT, [Unit(workspace.history.edit(top.structured["edit"]).seq, 1)])
    operations = [{"op": "replace", "anchor": read[0][4], "content": "FOUR"}]
    agent.done("edit_text_file", path=str(file), file_hash=read[1], operations=operations, rebase=True)
    assert file.read_text() == READ.replace("four", "FOUR")


@pytest.mark.parametrize("change", [by_strings, by_diff, by_tags])
def test_a_change_is_carried_over_a_move(agent: Agent, folder: Path, change: Change) -> None:
    file, moved = folder / "file.txt", folder / "moved.txt"
    file.write_text(READ)
    read = tags(agent, file)
    agent.done("move_file", source=str(file), destination=str(moved))
    moved.write_text(NOW)
    result = change(agent, moved, read)
    assert not result.refused, result.structured
    assert moved.read_text() == CHANGED


@pytest.mark.parametrize("change", [by_strings, by_diff, by_tags])
def test_an_edit_in_one_directory_keeps_what_another_one_needs(tmp_path: Path, change: Change) -> None:
    one, other = tmp_path / "one", tmp_path / "other"  # as two checkouts of one project
    for root in (one, other):
        root.mkdir()
        (root / "file.txt").write_text(READ)
    with connected(one, other) as agent:
        tags(agent, one / "file.txt")
        read = tags(agent, other / "file.txt")
        edits = [{"old_string": "one", "new_string": "ONE"}]
        agent.done("multi_edit_text_file", path=str(one / "file.txt"), edits=edits)
        (other / "file.txt").write_text(NOW)
        assert change(agent, other / "file.txt", read).structured["rebased"] is True
        assert (other / "file.txt").read_text() == CHANGED


def test_a_dry_run_tells_whether_it_can_be_carried_over(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text(READ)
    tags(agent, file)
    file.write_text(NOW)
    diff = "--- f\n+++ f\n@@ -4 +4 @@\n-four\n+FOUR\n"
    result = agent.done("edit_file_diff", path=str(file), diff=diff, rebase=True, dry_run=True)
    assert (result.structured["rebased"], result.structured["edit"]) == (True, 0)
    assert file.read_text() == NOW


def test_what_somebody_changed_is_recorded_as_theirs_before_the_change(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    agent.done("write_file", path=str(file), content=READ)
    read = tags(agent, file)
    file.write_text(NOW)
    by_tags(agent, file, read)
    with Workspace.open(agent.root) as workspace:
        views = workspace.history.edits(EditFilter(path=str(file)))
    assert [view.edit.origin for view in views] == [Origin.AGENT, Origin.EXTERNAL, Origin.AGENT]


def test_a_version_that_nothing_keeps_has_to_be_read_again(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    half = 40 << 20
    with connected(root, options=["--max-file-size", str(half)]) as agent:
        file = root / "file.txt"
        file.write_text(READ)
        agent.done("read_file", path="file.txt")
        for name in ("a", "b"):  # together more than is kept in memory
            (root / name).write_bytes(name.encode() * (half - 1))
            agent.done("get_file_info", path=name)
            agent.call("read_file", path=name, limit=1)
        file.write_text(NOW)
        error = by_strings(agent, file, ([], "")).error
        assert (error["type"], error["hint"].startswith("The version that you read is no longer kept")) == (
            "stale_file",
            True,
        )
        assert file.read_text() == NOW
