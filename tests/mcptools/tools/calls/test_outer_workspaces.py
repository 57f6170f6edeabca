"""What our server's tools change, in a workspace around that of its root, with no hooks of the agent's program."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from mcptools.files.workspaces import Directories
from mcptools.model.limits import ServerLimits
from mcptools.model.session import Session
from objstore import CallInfo, Origin, Status, Workspace, hook_failures
from tests.support.direct_tools import Tools

PERSON = CallInfo(tool="", origin=Origin.EXTERNAL)


@pytest.fixture
def outer(tmp_path: Path) -> Iterator[Workspace]:
    """Return a workspace with another one inside, in the folder `inner`."""
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "known").write_text("a person's\n")
    with Workspace.init(tmp_path) as workspace, Workspace.init(inner):
        workspace.record_changes(PERSON)
        yield workspace


def edits_of(outer: Workspace) -> list[tuple[str, Status]]:
    """Return the edits of the outer workspace after another look."""
    outer.hooks.notice(PERSON)
    return [(view.edit.path.decode(), view.status) for view in outer.history.edits()]


def test_what_a_tool_changes_awaits_review_in_the_workspaces_around_too(outer: Workspace) -> None:
    inner, session = Path(outer.root, "inner"), Session()
    with closing(Directories([str(inner)])) as directories:
        tools = Tools(directories, session, ServerLimits())
        tools.write_file(str(inner / "new"), "text\n")
        tools.move_file(str(inner / "new"), str(inner / "moved"))
        assert edits_of(outer) == [("inner/new", Status.PENDING), ("inner/moved", Status.PENDING)]
        assert {view.edit.conversation for view in outer.history.edits()} == {session.name}
        tools.Undo()
        found = edits_of(outer)
        assert len(found) == 3
        assert {status for _, status in found} == {Status.PENDING}
        (inner / "known").write_text("a person's, and more\n")
        assert edits_of(outer)[-1] == ("inner/known", Status.ACCEPTED)


def test_a_store_around_that_cannot_be_read_stops_no_tool(outer: Workspace) -> None:
    inner = Path(outer.root, "inner")
    segment = next(Path(outer.root, ".cas", "segments").iterdir())
    content = segment.read_bytes()
    segment.write_bytes(b"nothing of ours")
    with closing(Directories([str(inner)])) as directories:
        Tools(directories, Session(), ServerLimits()).write_file(str(inner / "new"), "text\n")
    segment.write_bytes(content)
    assert (inner / "new").read_text() == "text\n"
    assert hook_failures(outer.root)
    with Workspace.open(outer.root) as reopened:
        assert edits_of(reopened)[-1] == ("inner/new", Status.PENDING)
