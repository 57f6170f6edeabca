"""Two agents that change one file each read of the other in the next answer of any tool, once."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from mcptools.files.workspaces import Directories
from mcptools.model.limits import ServerLimits
from mcptools.model.session import Session
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
