"""If a served directory is moved, replaced or temporarily missing, the server uses what is now at its path."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest
from mcp import MCPError
from mcp.types import INTERNAL_ERROR

from mcptools.feeds.change_feed import ChangeFeed
from mcptools.files.workspaces import Directories
from objstore import CallInfo, Status, Workspace, blob_id
from tests.support.mcp_agent import Agent, connected
from tests.support.sampling import sampled_product

OLD: Final = "old clone\n"
NEW: Final = "new clone\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path.resolve() / "ws"
    root.mkdir()
    (root / "a").write_text(OLD)
    return root


@pytest.fixture
def server(root: Path) -> Iterator[Agent]:
    with connected(root) as agent:
        yield agent


def remove(root: Path) -> None:
    shutil.rmtree(root)


def move_away(root: Path) -> None:
    root.rename(root.with_name("ws-old"))


def clone_again(root: Path) -> None:
    root.mkdir()
    (root / "a").write_text(NEW)
    (root / "n").write_text("new file\n")


@pytest.mark.parametrize(("how", "has_written"), sampled_product([remove, move_away], [False, True]))
def test_replaced_directory_is_read_and_changed_at_its_path(
    server: Agent, root: Path, how: Callable[[Path], None], *, has_written: bool
) -> None:
    a = str(root / "a")
    assert OLD.strip() in server.done("read_file", path=a).texts[0]
    if has_written:
        server.done("write_file", path=str(root / "w"), content="w\n")
        server.done("list_edits")
    how(root)
    clone_again(root)
    assert NEW.strip() in server.done("read_file", path=a).texts[0]
    assert server.done("read_file", path=str(root / "n")).texts[0]
    resource_names = server.done("list_directory", path=str(root)).texts[0]
    assert "a" in resource_names
    assert "n" in resource_names
    assert "w" not in resource_names.split()
    server.done("list_edits")
    server.done("multi_edit_text_file", path=a, edits=[{"old_string": "new", "new_string": "newer"}])
    server.done("write_file", path=a, content="written\n")
    assert (root / "a").read_text() == "written\n"
    with Workspace.open(root) as workspace:
        assert [view.edit.tool for view in workspace.history.edits()] == ["multi_edit_text_file", "write_file"]
    if how is move_away:
        assert (root.with_name("ws-old") / "a").read_text() == OLD


def test_reads_of_a_replaced_directory_do_not_allow_overwriting_the_new_one(server: Agent, root: Path) -> None:
    a = str(root / "a")
    server.done("read_file", path=a)
    move_away(root)
    clone_again(root)
    assert server.call("write_file", path=a, content="blindly\n").error["type"] == "stale_file"
    server.done("read_file", path=a)
    server.done("write_file", path=a, content="knowingly\n")


def test_change_in_a_replaced_directory_is_not_undone_in_the_new_one(server: Agent, root: Path) -> None:
    server.done("write_file", path=str(root / "a"), content=NEW)
    move_away(root)
    clone_again(root)
    assert server.call("Undo").refused
    assert (root / "a").read_text() == NEW
    assert not (root / ".cas").exists(), "a refusal made a store"


@pytest.mark.parametrize("how", ["root", "store", "older", "older and written to"])
def test_undo_is_refused_if_the_history_that_recorded_the_change_is_gone(server: Agent, root: Path, how: str) -> None:
    store, earlier_copy = root / ".cas", root.with_name("kept")
    server.done("write_file", path=str(root / "n"), content="1\n")
    shutil.copytree(store, earlier_copy)
    server.done("write_file", path=str(root / "a"), content=NEW)
    shutil.rmtree(store)
    if how == "root":
        remove(root)
        clone_again(root)
    elif how != "store":
        earlier_copy.rename(store)
        (root / "n").unlink()
    if how == "older and written to":  # another edit, with the same number, file and bytes
        (root / "a").write_text(OLD)
        with Workspace.open(root) as workspace, workspace.call(CallInfo(tool="other's")) as call:
            call.write("a", NEW.encode())
            call.commit()
    error = server.call("Undo").error
    assert error["type"] == "expired"
    assert error["message"] == "Cannot undo: the history that recorded it is gone: a"
    assert "Nothing was reverted" in error["hint"]
    assert (root / "a").read_text() == NEW
    if how == "older and written to":
        with Workspace.open(root) as workspace:
            assert Status.REJECTED not in {view.status for view in workspace.history.edits()}
    server.done("read_file", path=str(root / "a"))
    server.done("write_file", path=str(root / "a"), content="and on\n")
    server.done("Undo")
    assert (root / "a").read_text() == NEW


@pytest.mark.parametrize(
    ("tool", "part"),
    sampled_product(["read_file", "write_file", "list_directory", "list_edits", "Undo"], ["", ".cas"]),
)
def test_temporarily_missing_directory_or_store_is_used_again_when_it_is_back(
    server: Agent, root: Path, tool: str, part: str
) -> None:
    server.done("write_file", path=str(root / "a"), content="1\n")
    away, store_or_root = root.with_name("away"), root / part
    store_or_root.rename(away)
    arguments = {
        "write_file": {"path": str(root / "b"), "content": "x"},
        "read_file": {"path": str(root / "a")},
        "list_directory": {"path": str(root)},
    }
    result = server.call(tool, **arguments.get(tool, {}))
    assert part or result.refused
    assert part or str(root) in result.texts[0]
    if store_or_root.exists():  # a change without a store created one
        shutil.rmtree(store_or_root)
    away.rename(store_or_root)
    for name in ("c", "d"):
        server.done("write_file", path=str(root / name), content="x")
    assert "d" in server.done("list_edits").texts[0]
    with Workspace.open(root) as workspace:
        assert [view.edit.path for view in workspace.history.edits()][:1] == [b"a"]


MISSING, HERE = b"away\n", b"here\n"


def resource_names(agent: Agent) -> list[str]:
    """Return the names in the list of resources."""
    return [entry.name for entry in agent.run(lambda client: client.list_resources()).resources]


def test_edits_of_other_directories_can_be_read_while_one_is_missing(tmp_path: Path) -> None:
    roots = [tmp_path.resolve() / name for name in ("away", "here")]
    for root in roots:
        root.mkdir()
    away, here = roots
    with connected(*roots) as agent:
        for root in roots:
            agent.done("write_file", path=str(root / "file"), content=f"{root.name}\n", mcp_conversation_id=root.name)
        with Workspace.open(here) as workspace:
            (view,) = workspace.history.edits()
        away.rename(tmp_path / "elsewhere")
        assert resource_names(agent) == [f"edit 1 of {here}/file", "here"]
        agent.resource("cas://conversation/here")
        agent.resource(f"cas://edit/{view.id.hex()}")
        agent.resource(f"cas://blob/{blob_id(HERE).hex()}")
        # Records that may be in the missing directory are not reported as unknown, nor confused with others.
        for address in ("edit/1", "conversation/away", f"blob/{blob_id(MISSING).hex()}"):
            with pytest.raises(MCPError, match=f"^File not found: {away}$"):
                agent.resource(f"cas://{address}")
        here.rename(tmp_path / "elsewhere too")
        with pytest.raises(MCPError, match=f"^File not found: {away}$") as refusal:
            resource_names(agent)
        assert refusal.value.code == INTERNAL_ERROR
        for root, name in ((away, "elsewhere"), (here, "elsewhere too")):
            (tmp_path / name).rename(root)
        assert resource_names(agent) == [f"edit 1 of {here}/file", f"edit 1 of {away}/file", "away", "here"]


def test_edits_of_other_directories_are_fed_while_one_is_missing(tmp_path: Path) -> None:
    roots = [tmp_path / name for name in ("away", "here")]
    for root in roots:
        root.mkdir()
    directories = Directories([str(root) for root in roots])
    with closing(directories), Workspace.init(roots[1]) as workspace:
        roots[0].rename(tmp_path / "elsewhere")
        feed = ChangeFeed(directories)
        feed.begin()
        with workspace.call(CallInfo(tool="test")) as call:
            call.write("file", b"new\n")
            call.commit()
        assert [view.edit.path for _, view in feed.since()] == [b"file"]


@pytest.mark.parametrize("left", [[], [".gitignore"]], ids=["rm -rf .cas", "rm -rf .cas/*"])
def test_removed_store_is_created_again(server: Agent, root: Path, left: list[str]) -> None:
    server.done("write_file", path=str(root / "w"), content="1\n")
    for path in [path for path in (root / ".cas").iterdir() if path.name not in left]:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    if not left:
        (root / ".cas").rmdir()
    server.done("list_edits")
    assert [path.name for path in root.glob(".cas/*")] == left
    server.done("write_file", path=str(root / "v"), content="2\n")
    with Workspace.open(root) as workspace:
        assert [view.edit.path for view in workspace.history.edits()] == [b"v"]


def test_store_without_its_segments_is_reported_and_used_again_when_they_are_back(server: Agent, root: Path) -> None:
    server.done("write_file", path=str(root / "w"), content="1\n")
    (root / ".cas" / "segments").rename(root.with_name("segments"))
    error = server.call("write_file", path=str(root / "v"), content="2\n").error
    assert error["type"] == "io_error"
    assert error["message"] == (
        f"No store was created: {root / '.cas'} exists and holds no store. "
        f"Put its segments back if they were moved away, or move {root / '.cas'} away (mv)."
    )
    root.with_name("segments").rename(root / ".cas" / "segments")
    server.done("write_file", path=str(root / "v"), content="2\n")
    assert "w" in server.done("list_edits").texts[0]
