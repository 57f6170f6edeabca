"""Conversations, refusal of writes to stale files, and concurrent calls."""

import re
from pathlib import Path

import pytest

from mcptools.model.limits import ServerLimits
from objstore import Origin, Status
from tests.support.mcp_agent import Agent, connected


def edit(old_string: str, new_string: str) -> dict[str, str]:
    return {"old_string": old_string, "new_string": new_string}


# ---- conversations


def test_first_change_starts_a_conversation_and_tells_how_to_continue_it(agent: Agent, folder: Path) -> None:
    result = agent.done("write_file", path=str(folder / "a"), content="a\n")
    conversation = result.structured["mcp_conversation_id"]
    assert re.fullmatch(r"conv_\d{13}_[0-9a-f]+", conversation)
    assert result.texts[-1].splitlines()[-1].count(conversation) == 1
    assert "mcp_conversation_id" in result.texts[-1]


def test_changes_with_a_conversation_id_are_recorded_in_that_conversation(agent: Agent, folder: Path) -> None:
    a, b = str(folder / "a"), str(folder / "b")
    first = agent.done("write_file", path=a, content="a\n")
    conversation = first.structured["mcp_conversation_id"]
    calls: list[tuple[str, dict[str, object]]] = [
        ("edit_file_diff", {"path": a, "diff": "--- a\n+++ a\n@@ -1 +1 @@\n-a\n+b\n"}),
        ("multi_edit_text_file", {"path": a, "edits": [edit("b", "c")]}),
        ("move_file", {"source": a, "destination": b}),
        ("delete_file", {"path": b}),
    ]
    for tool, arguments in calls:
        result = agent.done(tool, mcp_conversation_id=conversation, **arguments)
        assert result.structured["mcp_conversation_id"] == conversation
        assert not [text for text in result.texts if "New conversation" in text]
    recorded = [view for view in agent.history() if view.edit.conversation == conversation]
    assert [view.edit.tool for view in recorded] == ["write_file", *(tool for tool, _ in calls)]
    assert [view.edit.call for view in recorded] == [0, 1, 2, 3, 4]
    assert {view.status for view in recorded} == {Status.PENDING}
    assert {view.edit.origin for view in recorded} == {Origin.AGENT}
    assert {view.edit.notes["client"] for view in recorded} == {"test agent"}


def test_client_may_choose_the_conversation_id(agent: Agent, folder: Path) -> None:
    result = agent.done("write_file", path=str(folder / "a"), content="a\n", mcp_conversation_id="session-7:turn.2")
    assert result.structured["mcp_conversation_id"] == "session-7:turn.2"
    assert agent.history()[-1].edit.conversation == "session-7:turn.2"


@pytest.mark.parametrize("conversation", [" ", "a b", "a/b", "x" * 129, "é", "a\n", "\0", "external"])
def test_invalid_conversation_id_is_refused(agent: Agent, folder: Path, conversation: str) -> None:
    result = agent.call("write_file", path=str(folder / "a"), content="a\n", mcp_conversation_id=conversation)
    assert result.error["code"] == -32600
    assert not (folder / "a").exists()


def test_only_calls_that_change_a_file_are_recorded(agent: Agent, folder: Path) -> None:
    before = len(agent.history())
    file = str(folder / "a")
    agent.done("write_file", path=file, content="a\n")
    agent.done("read_file", path=file)
    agent.done("list_directory", path=str(folder))
    agent.done("create_directory", path=str(folder / "sub"))
    agent.call("edit_file_diff", path=file, diff="--- a\n+++ a\n@@ -1 +1 @@\n-x\n+b\n")
    agent.done("multi_edit_text_file", path=file, edits=[edit("a", "b")])
    assert [view.edit.tool for view in agent.history()[before:]] == ["write_file", "multi_edit_text_file"]


# ---- stale files


def test_write_over_a_version_the_session_has_not_read_is_refused(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text("one\n")
    agent.done("read_file", path=str(file))
    file.write_text("somebody's work\n")
    for result in (
        agent.call("write_file", path=str(file), content="two\n"),
        agent.call("delete_file", path=str(file)),
    ):
        assert (result.error["code"], result.error["type"]) == (-32020, "stale_file")
    assert file.read_text() == "somebody's work\n"
    agent.done("read_text_file", path=str(file))
    agent.done("write_file", path=str(file), content="two\n")
    assert file.read_text() == "two\n"


def test_session_may_overwrite_what_it_wrote_itself(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    agent.done("write_file", path=str(file), content="one\n")
    agent.done("write_file", path=str(file), content="two\n")
    agent.done("multi_edit_text_file", path=str(file), edits=[edit("two", "three")])
    agent.done("move_file", source=str(file), destination=str(folder / "moved.txt"))
    agent.done("write_file", path=str(folder / "moved.txt"), content="four\n")


def test_read_versions_follow_a_moved_file(agent: Agent, folder: Path) -> None:
    file, moved = folder / "file.txt", folder / "moved.txt"
    file.write_text("one\n")
    agent.done("read_file", path=str(file))
    agent.done("move_file", source=str(file), destination=str(moved))
    moved.write_text("somebody's work\n")
    assert agent.call("write_file", path=str(moved), content="two\n").error["code"] == -32020
    file.write_text("somebody's work\n")
    assert agent.call("write_file", path=str(file), content="two\n").error["code"] == -32020


def test_file_moved_to_a_path_does_not_inherit_what_was_read_there(agent: Agent, folder: Path) -> None:
    source, destination = folder / "a", folder / "b"
    source.write_text("unread\n")
    destination.write_text("read\n")
    read = agent.done("read_text_file", path=str(destination)).structured["file_hash"]
    agent.done("delete_file", path=str(destination))
    agent.done("move_file", source=str(source), destination=str(destination))
    edited = agent.done("multi_edit_text_file", path=str(destination), edits=[edit("un", "not ")])
    assert edited.structured["changed_since_read"] is False
    operations = [{"op": "delete", "anchor": "1:00"}]
    arguments = {"path": str(destination), "file_hash": read, "operations": operations}
    assert "nor of a version" in agent.call("edit_text_file", **arguments).error["message"]
    agent.done("write_file", path=str(destination), content="as an unread file\n")


def test_file_that_was_never_read_may_be_overwritten(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text("never read\n")
    agent.done("write_file", path=str(file), content="written\n")
    assert file.read_text() == "written\n"


def test_file_recreated_after_the_session_deleted_it_is_not_overwritten(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    agent.done("write_file", path=str(file), content="one\n")
    agent.done("delete_file", path=str(file))
    file.write_text("somebody's work\n")
    assert agent.call("write_file", path=str(file), content="two\n").error["code"] == -32020


def test_file_deleted_by_another_writer_can_be_written_again(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    agent.done("write_file", path=str(file), content="one\n")
    file.unlink()
    agent.done("write_file", path=str(file), content="two\n")
    assert file.read_text() == "two\n"


def test_exact_edits_and_diffs_apply_to_a_changed_file_and_report_the_change(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text("one\ntwo\n")
    known = agent.done("multi_edit_text_file", path=str(file), edits=[edit("one", "1")])
    assert known.structured["changed_since_read"] is False
    file.write_text("1\ntwo\nsomebody's work\n")
    exact = agent.done("multi_edit_text_file", path=str(file), edits=[edit("two", "2")])
    diff = agent.done("edit_file_diff", path=str(file), diff="--- f\n+++ f\n@@ -1,2 +1,2 @@\n-1\n+I\n 2\n")
    for result in (exact, diff):
        assert result.structured["changed_since_read"] is True
        assert "had changed" in result.texts[-1]
    idle = agent.done("multi_edit_text_file", path=str(file), edits=[edit("2", "2")])
    assert "has changed since you last read all of it" in idle.texts[-1]
    assert "the change was made" not in idle.texts[-1]
    assert file.read_text() == "I\n2\nsomebody's work\n"
    # The model has still not seen the last line, so it must not overwrite it.
    assert agent.call("write_file", path=str(file), content="I\n2\n").error["code"] == -32020


@pytest.mark.parametrize(
    ("tool", "arguments", "is_refused"),
    [
        ("read_file_by_keyword", {"keyword": "(", "use_regex": True}, True),
        ("read_file_by_keyword", {"keyword": ""}, True),
        ("read_file_by_keyword", {"keyword": "one", "before": -1}, True),
        ("read_file_by_keyword", {"keyword": "nowhere"}, False),
        ("read_file_by_keyword", {"keyword": "one", "offset": 9}, False),
        ("read_file_by_line", {"ranges": ["x"]}, True),
        ("read_file_by_line", {"ranges": ["7"]}, False),
        ("read_file", {"offset": -1}, True),
        ("read_file", {"offset": 99}, False),
        ("read_text_file", {"limit": -1}, True),
        ("read_text_file", {"offset": 99}, False),
        ("read_multiple_files", {"offset": -1}, True),
    ],
)
def test_call_that_shows_nothing_of_a_file_does_not_count_as_reading(
    agent: Agent, folder: Path, tool: str, arguments: dict[str, object], *, is_refused: bool
) -> None:
    file = folder / "file.txt"
    file.write_text("one\n")
    agent.done("read_file", path=str(file))
    file.write_text("one\nsomebody's work\n")
    named: dict[str, object] = {"paths": [str(file)]} if tool == "read_multiple_files" else {"path": str(file)}
    assert agent.call(tool, **named, **arguments).refused is is_refused
    assert agent.call("write_file", path=str(file), content="two\n").error["type"] == "stale_file"


def test_changed_file_must_be_read_completely_before_it_is_replaced(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text("".join(f"{number}\n" for number in range(1, 10)))
    path = str(file)
    agent.done("read_file", path=path)
    file.write_text(file.read_text() + "somebody's work\n")
    parts: list[tuple[str, dict[str, object]]] = [
        ("read_file", {"limit": 2}),
        ("read_text_file", {"offset": 6, "limit": 3}),
        ("read_file_by_keyword", {"keyword": "4", "before": 1, "after": 2}),
    ]
    for tool, arguments in parts:
        agent.done(tool, path=path, **arguments)
        assert agent.call("write_file", path=path, content="mine\n").error["type"] == "stale_file", tool
    agent.done("read_file_by_line", path=path, ranges=["10"])
    file.write_text(file.read_text() + "and more\n")
    agent.done("read_file_by_line", path=path, ranges=["1-10"])
    assert agent.call("write_file", path=path, content="mine\n").error["type"] == "stale_file"
    file.write_text("and less\n" + file.read_text())
    agent.done("read_file", path=path, offset=10)
    assert agent.call("write_file", path=path, content="mine\n").error["type"] == "stale_file"
    agent.done("read_file", path=path, limit=10)
    agent.done("write_file", path=path, content="mine\n")


def test_partial_read_counts_only_for_the_version_that_was_read(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text("one\ntwo\n")
    agent.done("read_file", path=str(file), limit=1)
    edited = agent.done("multi_edit_text_file", path=str(file), edits=[edit("one", "1")])
    assert edited.structured["changed_since_read"] is False
    file.write_text("1\ntwo\nsomebody's work\n")
    assert agent.call("write_file", path=str(file), content="2\n").error["type"] == "stale_file"


def test_file_with_a_line_too_long_to_show_can_be_read_and_replaced(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text("one\n")
    agent.done("read_file", path=str(file))
    file.write_text("x" * (ServerLimits().max_answer + 500) + "\nlast\n")
    agent.done("read_text_file", path=str(file))
    agent.done("read_text_file", path=str(file), offset=1)
    agent.done("write_file", path=str(file), content="two\n")


def test_context_lines_that_do_not_fit_do_not_count_as_read(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text("one\n")
    agent.done("read_file", path=str(file))
    file.write_text("match\n" + "x" * ServerLimits().max_answer + "\nsomebody's work\n")
    found = agent.done("read_file_by_keyword", path=str(file), keyword="match", after=9)
    assert "only lines 1 to 1 fit" in found.texts[-1]
    assert agent.call("write_file", path=str(file), content="two\n").error["type"] == "stale_file"


def test_change_made_outside_the_session_is_recorded_as_external(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    agent.done("write_file", path=str(file), content="one\n")
    file.write_text("one\nsomebody's work\n")
    agent.done("multi_edit_text_file", path=str(file), edits=[edit("one", "1")])
    ours, theirs, last = agent.history()[-3:]
    assert [view.edit.origin for view in (ours, theirs, last)] == [Origin.AGENT, Origin.EXTERNAL, Origin.AGENT]


# ---- concurrent calls


def test_parallel_edits_of_different_lines_are_all_kept_and_recorded(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text("".join(f"line {number:02}\n" for number in range(20)))
    before = len(agent.history())
    results = agent.call_concurrently(
        [
            ("multi_edit_text_file", {"path": str(file), "edits": [edit(f"line {n:02}", f"LINE {n:02}")]})
            for n in range(20)
        ]
    )
    assert not [result.structured for result in results if result.refused]
    assert not [result.structured for result in results if result.structured["changed_since_read"]]
    assert file.read_text() == "".join(f"LINE {number:02}\n" for number in range(20))
    recorded = agent.history()[before:]
    assert sorted(view.seq for view in recorded) == sorted(result.structured["edit"] for result in results)
    assert {tuple(view.edit.hunks[0]) for view in recorded} == {(n, 1, n, 1) for n in range(20)}
    agent.done("write_file", path=str(file), content="the session knows the result of its own edits\n")


def test_parallel_calls_of_one_conversation_get_distinct_call_numbers(agent: Agent, folder: Path) -> None:
    results = agent.call_concurrently(
        [
            (
                "write_file",
                {"path": str(folder / f"{n}"), "content": f"{n}\n", "mcp_conversation_id": "parallel"},
            )
            for n in range(12)
        ]
    )
    assert not [result.structured for result in results if result.refused]
    call_numbers = [view.edit.call for view in agent.history() if view.edit.conversation == "parallel"]
    assert sorted(call_numbers) == list(range(12))


def test_two_servers_on_one_directory_keep_all_edits(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text("".join(f"line {number:02}\n" for number in range(20)))
    with connected(agent.root) as other:
        for first in range(0, 20, 4):
            for result in (
                *agent.call_concurrently(
                    [
                        ("multi_edit_text_file", {"path": str(file), "edits": [edit(f"line {n:02}", f"A {n:02}")]})
                        for n in (first, first + 1)
                    ]
                ),
                *other.call_concurrently(
                    [
                        ("multi_edit_text_file", {"path": str(file), "edits": [edit(f"line {n:02}", f"B {n:02}")]})
                        for n in (first + 2, first + 3)
                    ]
                ),
            ):
                assert not result.refused, result.structured
    lines = [f"{'AABB'[number % 4]} {number:02}\n" for number in range(20)]
    assert file.read_text() == "".join(lines)
