"""Two agents that change one file each read of the other in the next answer of any tool, once.

Only an edit that came after the agent's last read or write of the file is news to it.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from mcptools.files.workspaces import Directories
from mcptools.model.limits import ServerLimits
from mcptools.model.session import Session
from tests.support.command_runner import cas
from tests.support.direct_tools import Tools
from tests.support.hooked_agents import ClaudeCode, recorded_project
from tests.support.mcp_agent import Agent, Result, connected

COLLIDED = "Another agent has changed files that you have changed too"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return recorded_project(tmp_path / "project", "a.txt")


@pytest.fixture
def agents(folder: Path) -> Iterator[tuple[Agent, Agent]]:
    """Yield two agents, each with a server process of its own."""
    with ExitStack() as stack:
        yield stack.enter_context(connected(folder)), stack.enter_context(connected(folder))


def edit(agent: Agent, old: str, new: str) -> Result:
    path = str(agent.root / "a.txt")
    return agent.done("multi_edit_text_file", path=path, edits=[{"old_string": old, "new_string": new}])


def colliding_files(result: Result) -> list[str]:
    """Return the lines of a result's notes from that on collisions on."""
    notes = result.texts[-1]
    return notes[notes.index(COLLIDED) :].splitlines()[1:] if COLLIDED in notes else []


def test_each_agent_gets_one_note_at_its_next_tool(folder: Path, agents: tuple[Agent, Agent]) -> None:
    one, other = agents
    assert colliding_files(edit(one, "1", "one")) == []
    second = edit(other, "3", "three")
    assert colliding_files(second) == [f"- {folder / 'a.txt'}"]
    assert second.structured["success"]
    assert second.structured.keys() == edit(other, "three", "3").structured.keys()
    assert colliding_files(one.done("list_directory", path=str(folder))) == [f"- {folder / 'a.txt'}"]  # any tool
    for agent in agents:
        assert colliding_files(agent.done("list_edits")) == []
        assert colliding_files(edit(agent, "2", "2")) == []


def test_a_hooked_agent_and_one_of_the_server_both_get_a_note(folder: Path, agents: tuple[Agent, Agent]) -> None:
    hooked, (served, _) = ClaudeCode(folder), agents
    assert hooked.run("echo 4 >> a.txt") == ""
    assert colliding_files(edit(served, "1", "one")) == [f"- {folder / 'a.txt'}"]
    assert COLLIDED in hooked.run("true")
    assert colliding_files(served.done("list_edits")) == []
    assert hooked.run("true") == ""


def test_an_agent_that_only_reads_or_works_elsewhere_gets_no_note(folder: Path, agents: tuple[Agent, Agent]) -> None:
    one, other = agents
    edit(one, "1", "one")
    ClaudeCode(folder).run("echo 4 >> a.txt")
    assert colliding_files(other.done("read_text_file", path=str(folder / "a.txt"))) == []
    assert colliding_files(other.done("write_file", path=str(folder / "b.txt"), content="x\n")) == []


def test_an_agent_gets_no_note_about_files_that_it_may_no_longer_see(folder: Path) -> None:
    (folder / "sub").mkdir()
    directories, session = Directories([str(folder)]), Session()
    wide = Tools(directories, session, ServerLimits())
    narrow = Tools(directories.within([str(folder / "sub")]), session, ServerLimits())
    wide.write_file(str(folder / "a.txt"), "one\n")
    ClaudeCode(folder).run("echo 4 >> a.txt")
    assert COLLIDED not in "\n".join(narrow.list_directory(str(folder / "sub")).notes)
    assert COLLIDED in "\n".join(wide.list_directory(str(folder / "sub")).notes)
    directories.close()


def test_a_collision_that_cannot_be_noted_fails_no_tool(folder: Path, agents: tuple[Agent, Agent]) -> None:
    one, other = agents
    edit(one, "1", "one")
    (folder / ".cas" / "agents").rename(folder / ".cas" / "moved")
    (folder / ".cas" / "agents").write_bytes(b"")
    assert edit(other, "3", "three").structured["success"]
    (folder / ".cas" / "agents").unlink()
    (folder / ".cas" / "moved").rename(folder / ".cas" / "agents")
    assert colliding_files(other.done("list_edits")) == [f"- {folder / 'a.txt'}"]


def test_two_sessions_of_one_process_get_a_note_before_the_index_has_their_edits(folder: Path) -> None:
    directories = Directories([str(folder)])
    one, other = (Tools(directories, Session(), ServerLimits()) for _ in range(2))
    path = str(folder / "a.txt")
    assert COLLIDED not in "\n".join(one.write_file(path, "one\n").notes)
    assert COLLIDED not in "\n".join(one.write_file(path, "one more\n").notes)
    assert COLLIDED in "\n".join(other.write_file(path, "two\n").notes)
    assert COLLIDED in "\n".join(one.list_directory(str(folder)).notes)
    assert COLLIDED not in "\n".join(other.list_directory(str(folder)).notes)


# ---- only what came after the session's last read or write


def read(agent: Agent) -> Result:
    return agent.done("read_file", path=str(agent.root / "a.txt"))


def test_edit_that_was_there_at_the_last_read_gets_no_note(folder: Path, agents: tuple[Agent, Agent]) -> None:
    one, other = agents
    edit(one, "1", "one")
    read(other)
    assert colliding_files(edit(other, "3", "three")) == []
    assert colliding_files(other.done("list_edits")) == []
    assert colliding_files(edit(one, "2", "two")) == [f"- {folder / 'a.txt'}"]  # three came after its last write
    assert colliding_files(edit(other, "three", "3")) == [f"- {folder / 'a.txt'}"]  # and two after this one's


def test_edit_between_a_read_and_a_write_gets_a_note(folder: Path, agents: tuple[Agent, Agent]) -> None:
    one, other = agents
    read(other)
    edit(one, "1", "one")
    assert colliding_files(edit(other, "3", "three")) == [f"- {folder / 'a.txt'}"]


def test_edit_that_a_file_was_overwritten_with_gets_a_note(folder: Path, agents: tuple[Agent, Agent]) -> None:
    one, other = agents
    edit(one, "1", "one")
    path = str(folder / "a.txt")
    assert colliding_files(other.done("write_file", path=path, content="other\n")) == [f"- {path}"]  # it never read it


def test_later_edit_gets_a_note_although_an_earlier_one_was_read(folder: Path, agents: tuple[Agent, Agent]) -> None:
    one, other = agents
    edit(other, "2", "two")
    edit(one, "1", "one")
    assert colliding_files(read(other)) == []
    edit(one, "one", "1")
    assert colliding_files(other.done("list_directory", path=str(folder))) == [f"- {folder / 'a.txt'}"]


def test_what_a_person_or_a_decision_does_is_no_other_agents_edit(folder: Path, agents: tuple[Agent, Agent]) -> None:
    one, other = agents
    edit(one, "1", "one")
    edit(one, "2", "two")
    assert cas("reject", "1", folder=folder).status == 0
    read(other)  # what the decision made of it, which no edit did
    edit(other, "3", "three")
    (folder / "a.txt").write_text("of the person\n" + (folder / "a.txt").read_text())
    assert colliding_files(other.done("list_directory", path=str(folder))) == []
    read(other)
    assert colliding_files(edit(other, "three", "3")) == []


def test_each_of_several_sessions_counts_by_itself(folder: Path, agents: tuple[Agent, Agent]) -> None:
    one, other = agents
    edit(one, "1", "one")
    read(other)
    edit(other, "2", "two")
    with connected(folder) as third:
        edit(third, "3", "three")
    assert colliding_files(other.done("list_edits")) == [f"- {folder / 'a.txt'}"]
    read(other)
    edit(one, "one", "1")  # it has not been named yet: its first edit was no news
    assert colliding_files(other.done("list_edits")) == [f"- {folder / 'a.txt'}"]


def test_edit_in_a_file_that_was_moved_gets_a_note_by_what_was_read(folder: Path, agents: tuple[Agent, Agent]) -> None:
    one, other = agents
    edit(one, "1", "one")
    read(other)
    moved = {"source": str(folder / "a.txt"), "destination": str(folder / "moved")}
    assert colliding_files(other.done("move_file", **moved)) == []
    (folder / "b").write_text("x\n")
    path = str(folder / "b")
    one.done("multi_edit_text_file", path=path, edits=[{"old_string": "x", "new_string": "y"}])
    moved = {"source": path, "destination": str(folder / "c")}
    assert colliding_files(other.done("move_file", **moved)) == [f"- {folder / 'c'}"]  # it never read it
