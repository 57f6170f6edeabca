"""Edits of an older version are rebased onto a file that another writer has changed since."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from objstore import Action, CallInfo, EditFilter, Origin, Unit, Workspace
from tests.support.mcp_agent import Agent, Result, connected

READ_TEXT = "one\ntwo\nthree\nfour\nfive\n"
CURRENT_TEXT = "somebody's\n" + READ_TEXT
REBASED_TEXT = CURRENT_TEXT.replace("four", "FOUR")


Change: TypeAlias = Callable[[Agent, Path, tuple[list[str], str]], Result]


def read_anchors(agent: Agent, file: Path) -> tuple[list[str], str]:
    result = agent.done("read_text_file", path=str(file))
    return [line.split("|")[0] for line in result.text.splitlines()], result.structured["file_hash"]


def by_strings(agent: Agent, file: Path, _: tuple[list[str], str]) -> Result:
    edits = [{"old_string": "four", "new_string": "FOUR"}]
    return agent.call("multi_edit_text_file", path=str(file), edits=edits, rebase=True)


def by_diff(agent: Agent, file: Path, _: tuple[list[str], str]) -> Result:
    diff = "--- f\n+++ f\n@@ -3,3 +3,3 @@\n three\n-four\n+FOUR\n five\n"
    return agent.call("edit_file_diff", path=str(file), diff=diff, rebase=True)


def by_tags(agent: Agent, file: Path, version_read: tuple[list[str], str]) -> Result:
    operations = [{"op": "replace", "anchor": version_read[0][3], "content": "FOUR"}]
    return agent.call("edit_text_file", path=str(file), file_hash=version_read[1], operations=operations, rebase=True)


@pytest.mark.parametrize("change", [by_strings, by_diff, by_tags])
def test_edit_of_an_older_version_is_rebased(agent: Agent, folder: Path, change: Change) -> None:
    file = folder / "file.txt"
    file.write_text(READ_TEXT)
    version_read = read_anchors(agent, file)
    file.write_text(CURRENT_TEXT)
    result = change(agent, file, version_read)
    assert not result.refused, result.structured
    assert result.structured["rebased"] is True
    assert "carried over" in result.texts[-1]
    assert file.read_text() == REBASED_TEXT
    edit = agent.history()[-1]
    assert [tuple(hunk) for hunk in edit.edit.hunks] == [(4, 1, 4, 1)]
    # The model has not seen the other writer's lines, and must not overwrite them.
    assert agent.call("write_file", path=str(file), content="mine\n").error["type"] == "stale_file"


@pytest.mark.parametrize("change", [by_strings, by_diff, by_tags])
def test_edit_of_the_current_version_is_not_rebased(agent: Agent, folder: Path, change: Change) -> None:
    file = folder / "file.txt"
    file.write_text(READ_TEXT)
    result = change(agent, file, read_anchors(agent, file))
    assert result.structured["rebased"] is False
    assert file.read_text() == READ_TEXT.replace("four", "FOUR")
    agent.done("write_file", path=str(file), content="the session has read the file\n")


@pytest.mark.parametrize("change", [by_strings, by_diff, by_tags])
def test_rebase_conflict_is_refused_with_its_lines_and_changes_nothing(
    agent: Agent, folder: Path, change: Change
) -> None:
    file = folder / "file.txt"
    file.write_text(READ_TEXT)
    version_read = read_anchors(agent, file)
    file.write_text(current := CURRENT_TEXT.replace("four", "vier"))
    result = change(agent, file, version_read)
    error = result.error
    assert (error["code"], error["type"]) == (-32035, "rebase_conflict")
    assert "line 4 as you read it (line 5 now)" in error["message"]
    assert [line.partition("|")[2] for line in error["content"].splitlines()] == [
        *("two", "three", "vier", "five"),
    ]
    assert file.read_text() == current


def test_lines_of_a_rebase_conflict_are_shown_next_to_a_very_long_line(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text(long_text := READ_TEXT.replace("two\n", "x" * 20_000 + "\n"))
    version_read = read_anchors(agent, file)
    file.write_text(long_text.replace("four", "vier"))
    error = by_tags(agent, file, version_read).error
    assert [line.partition("|")[2] for line in error["content"].splitlines()] == [
        *("x" * 500 + "… (20000 characters in all)", "three", "vier", "five"),
    ]


def test_edit_of_deleted_lines_is_a_rebase_conflict(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text(READ_TEXT)
    version_read = read_anchors(agent, file)
    file.write_text("one\ntwo\n")
    error = by_tags(agent, file, version_read).error
    assert "(they were deleted above line 3)" in error["message"]


def test_edits_of_one_read_version_are_all_kept(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text(READ_TEXT)
    anchors, file_hash = read_anchors(agent, file)
    for line, new in ((1, "2\n2\n"), (4, "5"), (0, "1")):
        operations = [{"op": "replace", "anchor": anchors[line], "content": new}]
        agent.done("edit_text_file", path=str(file), file_hash=file_hash, operations=operations, rebase=True)
    assert file.read_text() == "1\n2\n2\nthree\nfour\n5\n"


def test_second_rebased_edit_builds_on_the_first(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text(READ_TEXT)
    read_anchors(agent, file)
    file.write_text(CURRENT_TEXT)

    def change(old: str, new: str) -> Result:
        edits = [{"old_string": old, "new_string": new}]
        return agent.call("multi_edit_text_file", path=str(file), edits=edits, rebase=True)

    assert change("four", "vier").structured["rebased"] is True
    assert change("vier", "quatre").structured["rebased"] is True
    assert file.read_text() == CURRENT_TEXT.replace("four", "quatre")
    assert change("four", "FOUR").error["code"] == -32010  # the model itself replaced it
    diff = "--- f\n+++ f\n@@ -3,3 +3,4 @@\n three\n quatre\n+and more\n five\n"
    agent.done("edit_file_diff", path=str(file), diff=diff, rebase=True)
    assert file.read_text() == CURRENT_TEXT.replace("four", "quatre\nand more")
    assert agent.call("write_file", path=str(file), content="mine\n").error["type"] == "stale_file"


def test_rebase_of_an_older_version_keeps_the_newer_read_version(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text(READ_TEXT)
    first = read_anchors(agent, file)
    file.write_text(newer := READ_TEXT + "six\n")
    read_anchors(agent, file)
    file.write_text("somebody's\n" + newer)
    assert by_tags(agent, file, first).structured["rebased"] is True
    edits = [{"old_string": "six", "new_string": "SIX"}]
    agent.done("multi_edit_text_file", path=str(file), edits=edits, rebase=True)
    assert file.read_text() == REBASED_TEXT + "SIX\n"


def test_recorded_edits_distinguish_equal_lines(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text("same\n" * 4)
    anchors, file_hash = read_anchors(agent, file)
    with connected(agent.root) as other:
        theirs, their_hash = read_anchors(other, file)
        delete = [{"op": "delete", "anchor": theirs[3]}]
        other.done("edit_text_file", path=str(file), file_hash=their_hash, operations=delete)
    # A comparison of the two texts could not tell which of the equal lines was deleted.
    replace = [{"op": "replace", "anchor": anchors[2], "content": "mine"}]
    agent.done("edit_text_file", path=str(file), file_hash=file_hash, operations=replace, rebase=True)
    assert file.read_text() == "same\nsame\nmine\n"


@pytest.mark.parametrize("is_recorded", [False, True])
def test_equal_line_deleted_by_both_writers_is_deleted_once(agent: Agent, folder: Path, *, is_recorded: bool) -> None:
    file = folder / "file.txt"
    agent.done("write_file", path=str(file), content="if a {\n  x\n}\n}\nend\n")
    anchors, file_hash = read_anchors(agent, file)
    file.write_text(current := "if a {\n  x\n}\nend\n")  # which of the two lines was deleted is unknown
    if is_recorded:
        with Workspace.open(agent.root) as workspace:
            workspace.record_changes(CallInfo(tool="", origin=Origin.EXTERNAL))
    for line in (2, 3):
        operations = [{"op": "delete", "anchor": anchors[line]}]
        agent.done("edit_text_file", path=str(file), file_hash=file_hash, operations=operations, rebase=True)
        assert file.read_text() == current
    operations = [{"op": "replace", "anchor": anchors[2], "content": "};"}]
    result = agent.call("edit_text_file", path=str(file), file_hash=file_hash, operations=operations, rebase=True)
    assert result.error["type"] == "rebase_conflict"
    assert file.read_text() == current


def test_change_that_another_writer_made_and_reverted_is_a_conflict(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    agent.done("write_file", path=str(file), content="a\nm\nx\n")
    anchors, file_hash = read_anchors(agent, file)
    with connected(agent.root) as other:
        for content in ("A\nm\nx\n", "a\nm\ny\n"):
            read_anchors(other, file)
            other.done("write_file", path=str(file), content=content)
    operations = [
        {"op": "replace", "anchor": anchors[0], "content": "A"},
        {"op": "insert_after", "anchor": anchors[1], "content": "new"},
    ]
    result = agent.call("edit_text_file", path=str(file), file_hash=file_hash, operations=operations, rebase=True)
    assert result.error["type"] == "rebase_conflict"
    assert "line 1 as you read it (line 1 now)" in result.error["message"]
    assert file.read_text() == "a\nm\ny\n"


def test_edit_is_rebased_over_a_decision(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    agent.done("write_file", path=str(file), content=READ_TEXT)
    first_edit = agent.done(
        "multi_edit_text_file", path=str(file), edits=[{"old_string": "one\n", "new_string": "1\n1\n"}]
    )
    version_read = read_anchors(agent, file)
    with Workspace.open(agent.root) as workspace:
        workspace.decide(Action.REJECT, [Unit(workspace.history.edit(first_edit.structured["edit"]).seq, 1)])
    operations = [{"op": "replace", "anchor": version_read[0][4], "content": "FOUR"}]
    agent.done("edit_text_file", path=str(file), file_hash=version_read[1], operations=operations, rebase=True)
    assert file.read_text() == READ_TEXT.replace("four", "FOUR")


@pytest.mark.parametrize("change", [by_strings, by_diff, by_tags])
def test_edit_is_rebased_over_a_move(agent: Agent, folder: Path, change: Change) -> None:
    file, moved = folder / "file.txt", folder / "moved.txt"
    file.write_text(READ_TEXT)
    version_read = read_anchors(agent, file)
    agent.done("move_file", source=str(file), destination=str(moved))
    moved.write_text(CURRENT_TEXT)
    result = change(agent, moved, version_read)
    assert not result.refused, result.structured
    assert moved.read_text() == REBASED_TEXT


@pytest.mark.parametrize("change", [by_strings, by_diff, by_tags])
def test_edit_in_one_directory_keeps_the_read_version_of_another(tmp_path: Path, change: Change) -> None:
    one, other = tmp_path / "one", tmp_path / "other"  # like two checkouts of one project
    for root in (one, other):
        root.mkdir()
        (root / "file.txt").write_text(READ_TEXT)
    with connected(one, other) as agent:
        read_anchors(agent, one / "file.txt")
        version_read = read_anchors(agent, other / "file.txt")
        edits = [{"old_string": "one", "new_string": "ONE"}]
        agent.done("multi_edit_text_file", path=str(one / "file.txt"), edits=edits)
        (other / "file.txt").write_text(CURRENT_TEXT)
        assert change(agent, other / "file.txt", version_read).structured["rebased"] is True
        assert (other / "file.txt").read_text() == REBASED_TEXT


def test_dry_run_reports_whether_a_diff_can_be_rebased(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text(READ_TEXT)
    read_anchors(agent, file)
    file.write_text(CURRENT_TEXT)
    diff = "--- f\n+++ f\n@@ -4 +4 @@\n-four\n+FOUR\n"
    result = agent.done("edit_file_diff", path=str(file), diff=diff, rebase=True, dry_run=True)
    assert (result.structured["rebased"], result.structured["edit"]) == (True, 0)
    assert file.read_text() == CURRENT_TEXT


def test_external_change_is_recorded_before_the_rebased_edit(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    agent.done("write_file", path=str(file), content=READ_TEXT)
    version_read = read_anchors(agent, file)
    file.write_text(CURRENT_TEXT)
    by_tags(agent, file, version_read)
    with Workspace.open(agent.root) as workspace:
        views = workspace.history.edits(EditFilter(path=str(file)))
    assert [view.edit.origin for view in views] == [Origin.AGENT, Origin.EXTERNAL, Origin.AGENT]


def test_read_version_that_is_no_longer_kept_must_be_read_again(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    size_limit = 40 << 20
    with connected(root, options=["--max-file-size", str(size_limit)]) as agent:
        file = root / "file.txt"
        file.write_text(READ_TEXT)
        agent.done("read_file", path="file.txt")
        for name in ("a", "b"):  # together more than the server keeps in memory
            (root / name).write_bytes(name.encode() * (size_limit - 1))
            agent.done("get_file_info", path=name)
            agent.call("read_file", path=name, limit=1)
        file.write_text(CURRENT_TEXT)
        error = by_strings(agent, file, ([], "")).error
        assert (error["type"], error["hint"].startswith("The version that you read is no longer kept")) == (
            "stale_file",
            True,
        )
        assert file.read_text() == CURRENT_TEXT
