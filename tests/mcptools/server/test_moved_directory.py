"""A served directory is moved, replaced or temporarily missing: the server uses what is at its path now."""

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

OLD: Final = "old clone\n"
NEW: Final = "new clone\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path.resolve() / "ws"
    root.mkdir()
    (root / "a").write_text(OLD)
    return root


@pytest.fixture
def moved(root: Path) -> Iterator[Agent]:
    with connected(root) as agent:
        yield agent


def removed(root: Path) -> None:
    shutil.rmtree(root)


def moved_away(root: Path) -> None:
    root.rename(root.with_name("ws-old"))


def cloned(root: Path) -> None:
    root.mkdir()
    (root / "a").write_text(NEW)
    (root / "n").write_text("new file\n")


@pytest.mark.parametrize("has_written", [False, True], ids=["read", "written"])
@pytest.mark.parametrize("gone", [removed, moved_away])
def test_a_directory_that_was_replaced_is_read_and_changed_where_it_is_now(
    moved: Agent, root: Path, gone: Callable[[Path], None], *, has_written: bool
) -> None:
    a = str(root / "a")
    assert OLD.strip() in moved.done("read_file", path=a).texts[0]
    if has_written:
        moved.done("write_file", path=str(root / "w"), content="w\n")
        moved.done("list_edits")
    gone(root)
    cloned(root)
    assert NEW.strip() in moved.done("read_file", path=a).texts[0]
    assert moved.done("read_file", path=str(root / "n")).texts[0]
    listed = moved.done("list_directory", path=str(root)).texts[0]
    assert "a" in listed
    assert "n" in listed
    assert "w" not in listed.split()
    moved.done("list_edits")
    moved.done("multi_edit_text_file", path=a, edits=[{"old_string": "new", "new_string": "newer"}])
    moved.done("write_file", path=a, content="written\n")
    assert (root / "a").read_text() == "written\n"
    with Workspace.open(root) as workspace:
        assert [view.edit.tool for view in workspace.history.edits()] == ["multi_edit_text_file", "write_file"]
    if gone is moved_away:
        assert (root.with_name("ws-old") / "a").read_text() == OLD


def test_what_was_read_before_is_no_knowledge_of_what_is_there_now(moved: Agent, root: Path) -> None:
    a = str(root / "a")
    moved.done("read_file", path=a)
    moved_away(root)
    cloned(root)
    assert moved.call("write_file", path=a, content="blindly\n").error["type"] == "stale_file"
    moved.done("read_file", path=a)
    moved.done("write_file", path=a, content="knowingly\n")


def test_a_change_in_a_directory_that_has_gone_is_not_undone_in_the_one_in_its_place(moved: Agent, root: Path) -> None:
    moved.done("write_file", path=str(root / "a"), content=NEW)
    moved_away(root)
    cloned(root)
    assert moved.call("Undo").refused
    assert (root / "a").read_text() == NEW
    assert not (root / ".cas").exists(), "a refusal made a store"


@pytest.mark.parametrize("gone", ["root", "store", "older", "older and written to"])
def test_what_was_recorded_in_a_history_that_is_gone_is_not_undone(moved: Agent, root: Path, gone: str) -> None:
    store, kept = root / ".cas", root.with_name("kept")
    moved.done("write_file", path=str(root / "n"), content="1\n")
    shutil.copytree(store, kept)
    moved.done("write_file", path=str(root / "a"), content=NEW)
    shutil.rmtree(store)
    if gone == "root":
        removed(root)
        cloned(root)
    elif gone != "store":
        kept.rename(store)
        (root / "n").unlink()
    if gone == "older and written to":  # the same number, the same file, the same bytes, and another's
        (root / "a").write_text(OLD)
        with Workspace.open(root) as workspace, workspace.call(CallInfo(tool="other's")) as call:
            call.write("a", NEW.encode())
            call.commit()
    error = moved.call("Undo").error
    assert error["type"] == "expired"
    assert error["message"] == "Cannot undo: the history that recorded it is gone: a"
    assert "Nothing was reverted" in error["hint"]
    assert (root / "a").read_text() == NEW
    if gone == "older and written to":
        with Workspace.open(root) as workspace:
            assert Status.REJECTED not in {view.status for view in workspace.history.edits()}
    moved.done("read_file", path=str(root / "a"))
    moved.done("write_file", path=str(root / "a"), content="and on\n")
    moved.done("Undo")
    assert (root / "a").read_text() == NEW


@pytest.mark.parametrize("tool", ["list_edits", "Undo", "write_file", "read_file", "list_directory"])
@pytest.mark.parametrize("part", ["", ".cas"])
def test_what_is_away_for_a_moment_is_used_again_when_it_is_back(
    moved: Agent, root: Path, tool: str, part: str
) -> None:
    moved.done("write_file", path=str(root / "a"), content="1\n")
    away, place = root.with_name("away"), root / part
    place.rename(away)
    arguments = {
        "write_file": {"path": str(root / "b"), "content": "x"},
        "read_file": {"path": str(root / "a")},
        "list_directory": {"path": str(root)},
    }
    result = moved.call(tool, **arguments.get(tool, {}))
    assert part or result.refused
    assert part or str(root) in result.texts[0]
    if place.exists():  # who changes something where no store is makes one
        shutil.rmtree(place)
    away.rename(place)
    for name in ("c", "d"):
        moved.done("write_file", path=str(root / name), content="x")
    assert "d" in moved.done("list_edits").texts[0]
    with Workspace.open(root) as workspace:
        assert [view.edit.path for view in workspace.history.edits()][:1] == [b"a"]


AWAY, HERE = b"away\n", b"here\n"


def listed(agent: Agent) -> list[str]:
    """Return the names in the list of resources."""
    return [entry.name for entry in agent.run(lambda client: client.list_resources()).resources]


def test_while_a_directory_is_away_what_is_recorded_in_the_others_can_be_read(tmp_path: Path) -> None:
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
        assert listed(agent) == [f"edit 1 of {here}/file", "here"]
        agent.resource("cas://conversation/here")
        agent.resource(f"cas://edit/{view.id.hex()}")
        agent.resource(f"cas://blob/{blob_id(HERE).hex()}")
        # What may be in the directory that is away is not said to be nowhere, nor something else taken for it.
        for address in ("edit/1", "conversation/away", f"blob/{blob_id(AWAY).hex()}"):
            with pytest.raises(MCPError, match=f"^File not found: {away}$"):
                agent.resource(f"cas://{address}")
        here.rename(tmp_path / "elsewhere too")
        with pytest.raises(MCPError, match=f"^File not found: {away}$") as refusal:
            listed(agent)
        assert refusal.value.code == INTERNAL_ERROR
        for root, name in ((away, "elsewhere"), (here, "elsewhere too")):
            (tmp_path / name).rename(root)
        assert listed(agent) == [f"edit 1 of {here}/file", f"edit 1 of {away}/file", "away", "here"]


def test_while_a_directory_is_away_news_of_the_others_are_heard(tmp_path: Path) -> None:
    roots = [tmp_path / name for name in ("away", "here")]
    for root in roots:
        root.mkdir()
    directories = Directories([str(root) for root in roots])
    with closing(directories), Workspace.init(roots[1]) as workspace:
        roots[0].rename(tmp_path / "elsewhere")
        news = ChangeFeed(directories)
        news.begin()
        with workspace.call(CallInfo(tool="test")) as call:
            call.write("file", b"new\n")
            call.commit()
        assert [view.edit.path for _, view in news.since()] == [b"file"]


@pytest.mark.parametrize("left", [[], [".gitignore"]], ids=["rm -rf .cas", "rm -rf .cas/*"])
def test_a_removed_store_is_created_again(moved: Agent, root: Path, left: list[str]) -> None:
    moved.done("write_file", path=str(root / "w"), content="1\n")
    for path in [path for path in (root / ".cas").iterdir() if path.name not in left]:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    if not left:
        (root / ".cas").rmdir()
    moved.done("list_edits")
    assert [path.name for path in root.glob(".cas/*")] == left
    moved.done("write_file", path=str(root / "v"), content="2\n")
    with Workspace.open(root) as workspace:
        assert [view.edit.path for view in workspace.history.edits()] == [b"v"]


def test_a_store_whose_segments_were_moved_away_is_named_and_used_again_when_they_are_back(
    moved: Agent, root: Path
) -> None:
    moved.done("write_file", path=str(root / "w"), content="1\n")
    (root / ".cas" / "segments").rename(root.with_name("segments"))
    error = moved.call("write_file", path=str(root / "v"), content="2\n").error
    assert error["type"] == "io_error"
    assert error["message"] == (
        f"No store was created: {root / '.cas'} exists and holds no store. "
        f"Put its segments back if they were moved away, or move {root / '.cas'} away (mv)."
    )
    root.with_name("segments").rename(root / ".cas" / "segments")
    moved.done("write_file", path=str(root / "v"), content="2\n")
    assert "w" in moved.done("list_edits").texts[0]
