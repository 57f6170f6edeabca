"""The rules of document 000 where a server edits, and `cas` reviews what it did, each as a process of its own."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_runner import CommandResult, cas
from tests.support.mcp_agent import Agent, connected
from tests.support.raw_client import started, tool_call

TEN = [f"line {number}\n" for number in range(1, 11)]


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    """Return an agent that works in a folder with a file of ten lines."""
    (tmp_path / "file.txt").write_text("".join(TEN))
    with connected(tmp_path.resolve()) as agent:
        yield agent


def edit(agent: Agent, old: str, new: str, name: str = "file.txt") -> int:
    """Replace a text in a file; return the number of the edit."""
    edits = [{"old_string": old, "new_string": new}]
    number: int = agent.done("multi_edit_text_file", path=str(agent.root / name), edits=edits).structured["edit"]
    return number


def reviewed(agent: Agent, *words: str) -> CommandResult:
    """Run `cas`, which has to succeed."""
    result = cas(*words, folder=agent.root)
    assert result.status == 0, result.said
    return result


def log(root: Path) -> list[dict[str, Any]]:
    """Return the edits as `cas log --json` prints them, oldest first."""
    return [json.loads(line) for line in cas("log", "--json", "--reverse", folder=root).out.splitlines()]


def test_rejecting_an_edit_takes_out_only_its_change_though_lines_have_shifted(agent: Agent) -> None:
    file = agent.root / "file.txt"
    above = edit(agent, "line 1\n", "new a\nnew b\nnew c\nline 1\n")
    middle = edit(agent, "line 8\n", "LINE 8\n")
    below = edit(agent, "line 10\n", "line 10\nline 11\n")
    shown = reviewed(agent, "show", str(middle)).text
    reviewed(agent, "accept", str(middle))
    reviewed(agent, "reject", str(above))
    assert file.read_text() == "".join([*TEN[:7], "LINE 8\n", *TEN[8:], "line 11\n"])
    reviewed(agent, "reject", str(below))
    assert file.read_text() == "".join([*TEN[:7], "LINE 8\n", *TEN[8:]])
    assert [each["status"] for each in log(agent.root)] == ["rejected", "accepted", "rejected"]
    again = reviewed(agent, "show", str(middle)).text
    assert again[again.index("@@") :] == shown[shown.index("@@") :].replace("pending", "accepted")


def test_state_before_and_after_each_call_is_kept(agent: Agent) -> None:
    states = [(agent.root / "file.txt").read_bytes()]
    numbers = [edit(agent, "line 1\n", "LINE 1\n"), edit(agent, "line 2\n", ""), edit(agent, "line 10\n", "line 10")]
    for number, changed in zip(numbers, (("line 1\n", "LINE 1\n"), ("line 2\n", ""), ("0\n", "0")), strict=True):
        states.append(states[-1].replace(changed[0].encode(), changed[1].encode(), 1))
        assert cas("cat", f"file.txt@{number}^", folder=agent.root).out == states[-2]
        assert cas("cat", f"file.txt@{number}", folder=agent.root).out == states[-1]
    assert (agent.root / "file.txt").read_bytes() == states[-1]


def test_edit_before_a_move_is_rejected_after_it(agent: Agent) -> None:
    first = edit(agent, "line 1\n", "LINE 1\n")
    moved = agent.done("move_file", source="file.txt", destination="other.txt").structured["edit"]
    edit(agent, "line 2\n", "LINE 2\n", "other.txt")
    reviewed(agent, "reject", str(first))
    expected = "".join([TEN[0], "LINE 2\n", *TEN[2:]])
    assert (agent.root / "other.txt").read_text() == expected
    reviewed(agent, "reject", str(moved))
    assert (agent.root / "file.txt").read_text() == expected
    assert not (agent.root / "other.txt").exists()
    reviewed(agent, "accept", str(first), str(moved))
    assert (agent.root / "other.txt").read_text() == expected.replace("line 1\n", "LINE 1\n", 1)


def test_rejection_that_a_later_edit_depends_on_is_a_conflict_and_changes_nothing(agent: Agent) -> None:
    first = edit(agent, "line 5\n", "five\n")
    second = edit(agent, "five\n", "FIVE\n")
    before = (agent.root / "file.txt").read_bytes()
    refused = cas("reject", str(first), folder=agent.root)
    assert refused.status == 1
    assert f"edit {second} hunk 1 needs edit {first} (file.txt:5)" in refused.said
    assert (agent.root / "file.txt").read_bytes() == before
    assert [each["status"] for each in log(agent.root)] == ["pending", "pending"]
    reviewed(agent, "reject", str(first), "--cascade")
    assert (agent.root / "file.txt").read_text() == "".join(TEN)


def test_rejecting_a_move_to_a_path_that_is_taken_is_a_conflict(agent: Agent) -> None:
    moved = agent.done("move_file", source="file.txt", destination="other.txt").structured["edit"]
    agent.done("write_file", path="file.txt", content="new\n")
    refused = cas("reject", str(moved), folder=agent.root)
    assert refused.status == 1
    assert "file.txt" in refused.said
    assert (agent.root / "file.txt").read_text() == "new\n"
    assert (agent.root / "other.txt").read_text() == "".join(TEN)


def test_change_from_outside_stops_a_decision_and_is_kept_on_request(agent: Agent) -> None:
    file = agent.root / "file.txt"
    number = edit(agent, "line 1\n", "LINE 1\n")
    by_hand = file.read_text().replace("line 9\n", "by hand\n")
    file.write_text(by_hand)
    refused = cas("reject", str(number), folder=agent.root)
    assert refused.status == 1
    assert "file.txt" in refused.said
    assert file.read_text() == by_hand
    reviewed(agent, "reject", str(number), "--on-external", "keep")
    assert file.read_text() == by_hand.replace("LINE 1\n", "line 1\n")


@pytest.mark.parametrize("damage", [b"", b"damaged"], ids=["deleted", "damaged"])
def test_states_are_found_again_without_what_is_cached(agent: Agent, damage: bytes) -> None:
    first = edit(agent, "line 1\n", "LINE 1\n")
    for number in range(100):
        edit(agent, "line 5" if not number else f"line 5.{number}", f"line 5.{number + 1}")
    reviewed(agent, "reject", str(first))
    reviewed(agent, "accept", str(first))
    cached = list((agent.root / ".cas" / "cache").glob("weave-*"))
    assert cached
    for file in cached:
        if damage:
            file.write_bytes(damage)
        else:
            file.unlink()
    reviewed(agent, "reject", str(first))
    assert (agent.root / "file.txt").read_text() == "".join([*TEN[:4], "line 5.100\n", *TEN[5:]])


def test_server_and_reviewer_take_turns_and_lose_nothing(agent: Agent) -> None:
    numbers = [edit(agent, f"line {number}\n", f"LINE {number}\n") for number in range(1, 5)]
    others = [
        (
            "multi_edit_text_file",
            {
                "path": str(agent.root / "file.txt"),
                "edits": [{"old_string": f"line {number}\n", "new_string": f"LINE {number}\n"}],
            },
        )
        for number in range(5, 11)
    ]
    made = agent.start(others)
    for number in numbers:
        reviewed(agent, "reject", str(number))
    assert [result.refused for result in made.result()] == [False] * len(others)
    assert (agent.root / "file.txt").read_text() == "".join([*TEN[:4], *(f"LINE {n}\n" for n in range(5, 11))])
    assert [each["status"] for each in log(agent.root)] == ["rejected"] * 4 + ["pending"] * 6
    assert reviewed(agent, "fsck").status == 0


@pytest.mark.parametrize("completed", [0, 1, 5])
def test_call_is_recorded_whole_or_not_at_all_when_the_server_is_killed(tmp_path: Path, completed: int) -> None:
    root, names = tmp_path.resolve(), ("a.txt", "b.txt", "c.txt")
    for name in names:
        (root / name).write_text("0\n")
    with started(root, command=[sys.executable, "-m", "mcptools"]) as raw:
        for number in range(completed + 1):
            change = f"@@ -1 +1 @@\n-{number}\n+{number + 1}\n"
            patches = [{"file_path": name, "patch": f"--- {name}\n+++ {name}\n{change}"} for name in names]
            raw.send(tool_call(number, "apply_patches", strategy="atomic", patches=patches))
            if number < completed:
                assert not raw.answer(number)["result"]["isError"]
        raw.process.kill()
        raw.process.wait()
    with connected(root) as agent:  # the killed server holds no lock, and what it began is finished or undone
        agent.done("write_file", path="d.txt", content="d\n")
    edits = [each for each in log(root) if each["tool_name"] == "apply_patches"]
    calls = {each["conversation_id"] for each in edits}
    assert len(edits) == len(names) * len(calls)
    assert len(calls) in {completed, completed + 1}
    assert {(root / name).read_text() for name in names} == {f"{len(calls)}\n"}
    assert cas("fsck", folder=root).status == 0
