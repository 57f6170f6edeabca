"""An agent reads reviewers' comments with `list_edits` and answers them; only a person resolves them."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from mcp_types import TextResourceContents

from objstore import Workspace
from tests.support.command_runner import cas
from tests.support.mcp_agent import Agent, connected


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder of its own: numbers of comments begin at 1."""
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def agent(folder: Path) -> Iterator[Agent]:
    """Yield an agent whose server serves that folder."""
    with connected(folder) as agent:
        yield agent


def written(agent: Agent, folder: Path) -> str:
    """Let the agent write a file of three lines, and return the conversation."""
    done = agent.done("write_file", path=str(folder / "a.txt"), content="1\n2\n3\n").structured
    conversation = done["mcp_conversation_id"]
    assert isinstance(conversation, str)
    return conversation


def comment(folder: Path, *words: str) -> None:
    assert cas("comment", *words, folder=folder).status == 0


def resource(agent: Agent, state: str) -> list[dict[str, object]]:
    """Return the comments at the address of a state."""
    found = agent.resource(f"cas://comments/{state}")
    assert isinstance(found, TextResourceContents)
    comments = json.loads(found.text)["comments"]
    assert isinstance(comments, list)
    return comments


def test_list_edits_has_open_comments_until_they_are_answered(agent: Agent, folder: Path) -> None:
    conversation = written(agent, folder)
    assert agent.done("list_edits").structured["comments"] == []
    comment(folder, "a.txt:2-3", "-m", "Why three?")
    listed = agent.done("list_edits")
    expected = {
        "comment": 1,
        "state": "open",
        "path": str(folder / "a.txt"),
        "first_line": 2,
        "last_line": 3,
        "gone": False,
        "text": "Why three?",
        "answers": [],
    }
    assert listed.structured["comments"] == [expected]
    assert f"comment 1 {folder / 'a.txt'}:2-3: Why three?" in listed.text
    assert agent.done("list_edits", path=str(folder / "a.txt")).structured["comments"] == [expected | {"state": "sent"}]
    with Workspace.open(folder) as workspace:
        assert workspace.comments.get(1).sent_to == conversation

    answered = agent.done("answer_comment", comment=1, text="Two is too few.")
    assert answered.structured == {
        "success": True,
        "comment": 1,
        "answer": 2,
        "path": str(folder / "a.txt"),
        "mcp_conversation_id": conversation,
    }
    assert agent.done("list_edits").structured["comments"] == []
    shown = cas("comment", folder=folder).text
    assert shown.startswith("comment 1 answered  a.txt:2-3")
    assert "    Two is too few.\n" in shown
    assert "Two is too few." in cas("show", "1", folder=folder).text
    assert "comments: 1 answered" in cas("status", folder=folder).text


def test_a_persons_reply_is_listed_with_the_comment(agent: Agent, folder: Path) -> None:
    written(agent, folder)
    comment(folder, "1", "-m", "Why?")
    agent.done("answer_comment", comment=1, text="So.", mcp_conversation_id="mine")
    comment(folder, "--reply", "1", "-m", "Why so?")
    (listed,) = agent.done("list_edits").structured["comments"]
    assert listed["answers"] == [{"by": "agent", "text": "So."}, {"by": "person", "text": "Why so?"}]
    comment(folder, "--resolve", "1")
    assert agent.done("list_edits").structured["comments"] == []


def test_comments_are_a_resource(agent: Agent, folder: Path) -> None:
    written(agent, folder)
    comment(folder, "1", "-m", "Why?")
    assert [each["text"] for each in resource(agent, "open")] == ["Why?"]
    assert resource(agent, "resolved") == []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"comment": 7, "text": "x"}, "No comment has the number 7 here"),
        ({"comment": 1, "text": " "}, "text is empty"),
        ({"comment": 1, "text": "x", "mcp_conversation_id": "a b"}, "Not a conversation id"),
    ],
)
def test_an_answer_that_cannot_be_recorded_is_refused(
    agent: Agent, folder: Path, arguments: dict[str, object], says: str
) -> None:
    written(agent, folder)
    comment(folder, "1", "-m", "Why?")
    assert says in agent.call("answer_comment", **arguments).text
    assert agent.done("list_edits").structured["comments"][0]["answers"] == []


def test_a_server_that_may_only_read_marks_nothing_as_sent(folder: Path) -> None:
    with connected(folder) as agent:
        written(agent, folder)
    comment(folder, "1", "-m", "Why?")
    with connected(folder, options=["--read-only"]) as agent:
        assert [tool.name for tool in agent.tools() if tool.name == "answer_comment"] == []
        for _ in range(2):
            assert [each["state"] for each in agent.done("list_edits").structured["comments"]] == ["open"]


def test_comments_outside_the_roots_are_hidden(folder: Path) -> None:
    (folder / "inner").mkdir()
    with connected(folder) as agent:
        written(agent, folder)
    comment(folder, "1", "-m", "Why?")
    with connected(folder, client_roots=lambda: [(folder / "inner").as_uri()]) as agent:
        assert agent.done("list_edits").structured["comments"] == []
        assert "No comment has the number 1" in agent.call("answer_comment", comment=1, text="x").text
