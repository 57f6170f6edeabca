"""Comments of a person reach the agent that they are for, once, in the message that has its rejections too."""

import re
from pathlib import Path

import pytest

from objstore import Workspace
from tests.support.command_runner import cas
from tests.support.hooked_agents import AGENTS, ClaudeCode, Session, recorded_project
from tests.support.mcp_agent import connected


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return recorded_project(tmp_path / "project", "a.txt")


def comment(folder: Path, *words: str) -> None:
    done = cas("comment", *words, folder=folder)
    assert (done.status, done.said) == (0, ""), done


def state(folder: Path) -> list[tuple[int, str, str]]:
    with Workspace.open(folder) as workspace:
        return [(view.number, view.word, view.sent_to) for view in workspace.comments.all()]


@pytest.mark.parametrize("agent", [ClaudeCode])
def test_a_comment_and_a_rejection_are_one_message_and_sent_once(agent: type[Session], folder: Path) -> None:
    session = agent(folder)
    session.ask("count on")
    session.run("printf '1\\n2\\n3\\n4\\n5\\n' > a.txt; echo x > b.txt")
    comment(folder, "a.txt:4-5", "-m", "Why so far?\nThree is enough.")
    assert cas("reject", "--file", "b.txt", "--reason", "no x", folder=folder).status == 0
    message = session.ask("go on")
    assert "because: no x" in message
    assert "- comment 1, on 'a.txt', lines 4 to 5: Why so far?\n  Three is enough." in message
    assert message.count("The person who reviews your edits") == 2
    assert state(folder) == [(1, "sent", session.name)]
    assert session.ask("and on") == ""
    assert session.run("true") == ""


def test_a_comment_goes_to_the_session_that_made_its_lines(folder: Path) -> None:
    one, other = ClaudeCode(folder, "one"), ClaudeCode(folder, "other")
    one.run("echo 4 >> a.txt")
    other.run("echo x > b.txt")
    comment(folder, "a.txt:4", "-m", "for one")
    assert other.ask("what?") == ""
    assert "for one" in one.ask("what?")


@pytest.mark.parametrize("has_edited", [False, True])
def test_a_comment_that_another_agent_lists_is_still_sent_to_the_session_that_made_its_lines(
    folder: Path, *, has_edited: bool
) -> None:
    one = ClaudeCode(folder, "one")
    one.run("echo 4 >> a.txt")
    comment(folder, "a.txt:4", "-m", "for one")
    comment(folder, "a.txt:1", "-m", "for any")
    with connected(folder) as other:
        if has_edited:
            other.done("write_file", path=str(folder / "b.txt"), content="x\n")
        assert len(other.done("list_edits").structured["comments"]) == 2
    message = one.ask("what?")
    assert "for one" in message
    assert "for any" not in message


def test_a_comment_on_a_persons_line_goes_to_the_agent_that_works_next(folder: Path) -> None:
    session = ClaudeCode(folder)
    session.run("echo 4 >> a.txt")
    comment(folder, "a.txt:1", "-m", "count from 0")
    assert "count from 0" in session.ask("go on")


def test_lines_are_named_where_they_are_when_the_comment_is_sent(folder: Path) -> None:
    session = ClaudeCode(folder)
    session.run("echo 4 >> a.txt")
    comment(folder, "a.txt:4", "-m", "here")
    session.run("true")  # sends it
    comment(folder, "1:1", "-m", "again")
    (folder / "a.txt").write_text("0\n1\n2\n3\n4\n")
    assert cas("record", folder=folder).status == 0
    assert "on 'a.txt', line 5: again" in session.ask("go on")


def test_an_open_comment_can_be_sent_again_and_to_another_session(folder: Path) -> None:
    one, other = ClaudeCode(folder, "one"), ClaudeCode(folder, "other")
    one.run("echo 4 >> a.txt")
    other.run("echo x > b.txt")
    comment(folder, "1:1", "-m", "hello")
    assert "hello" in one.ask("?")
    assert cas("send", "1", "--session", "other", folder=folder).status == 0
    assert one.ask("?") == ""
    assert "hello" in other.ask("?")
    assert cas("comment", "--reopen", "1", folder=folder).status == 0
    assert "hello" in one.ask("?")


def test_a_resolved_comment_is_not_sent(folder: Path) -> None:
    session = ClaudeCode(folder)
    session.run("echo 4 >> a.txt")
    comment(folder, "1:1", "-m", "hello")
    comment(folder, "--resolve", "1")
    assert session.ask("?") == ""


def test_a_reply_of_the_person_is_sent_too(folder: Path) -> None:
    session = ClaudeCode(folder)
    session.run("echo 4 >> a.txt")
    comment(folder, "1:1", "-m", "hello")
    session.ask("?")
    comment(folder, "--reply", "1", "-m", "are you there?")
    assert re.search(r"- comment 2, on comment 1, on 'a.txt', line 4: are you there\?", session.ask("?"))
    assert session.ask("?") == ""


def test_twenty_comments_are_sent_at_once_and_the_others_with_the_next_message(folder: Path) -> None:
    session = ClaudeCode(folder)
    session.run("echo 4 >> a.txt")
    with Workspace.open(folder) as workspace:
        for number in range(22):
            workspace.comments.add_to_lines("a.txt", (4, 4), text=f"no {number}!")
    message = session.ask("?")
    assert (message.count("- comment"), message.splitlines()[-1]) == (20, "- and 2 more, with your next tool")
    assert session.ask("?").count("- comment") == 2
    assert session.ask("?") == ""


@pytest.mark.parametrize("agent", AGENTS)
def test_every_client_is_sent_comments(agent: type[Session], folder: Path) -> None:
    session = agent(folder)
    session.start()
    session.ask("go")
    session.run("echo 4 >> a.txt")
    session.stop()
    comment(folder, "a.txt:4", "-m", "so not")
    message = session.ask("go on") + session.run("true")
    assert message.count("so not") == 1
    assert session.ask("go on") + session.run("true") == ""


def test_a_comment_on_a_turn_names_its_first_file_and_how_many_more(folder: Path) -> None:
    session = ClaudeCode(folder)
    session.ask("Change both")
    session.run("echo 4 >> a.txt; echo b > b.txt")
    assert cas("comment", "--turn", "1", "-m", "Too eager", folder=folder).status == 0
    message = session.ask("go on")
    assert "- comment 1, on 'a.txt' and 1 more of your files: Too eager" in message
    assert session.ask("and on") == ""
