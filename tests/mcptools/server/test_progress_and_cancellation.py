"""Progress is reported, and a cancelled call is either complete or has changed nothing."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import anyio
import pytest
from mcp import Client

from mcptools.files.workspaces import Directories
from mcptools.model import cancellation
from mcptools.model.cancellation import Cancelled, Watch, checkpoint, progress
from mcptools.model.limits import ServerLimits
from mcptools.model.session import Session
from mcptools.tools.patch_strategies import PatchOp, Strategy
from objstore import CallInfo, Workspace
from tests.support.direct_tools import Tools
from tests.support.http_server import serving
from tests.support.mcp_agent import Agent, connected

PATIENCE = 30.0  # seconds


@pytest.fixture(scope="module", params=["legacy", "2026-07-28", "legacy over HTTP", "2026-07-28 over HTTP"])
def agent(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    root = tmp_path_factory.mktemp("workspace").resolve()
    mode, _, place = request.param.partition(" over ")
    if place:
        with serving(root) as served, served.agent(mode=mode) as agent:
            yield agent
    else:
        with connected(root, mode=mode) as agent:
            yield agent


def cancelled(agent: Agent, tool: str, /, **arguments: object) -> bool:
    """Make a call, cancel it as soon as it tells of progress, and wait until the server has heard of that.

    Return whether it was cancelled: it may have been quicker.
    """

    async def work(client: Client) -> bool:
        with anyio.CancelScope() as scope:

            async def stop(progress: float, total: float | None, message: str | None) -> None:
                del progress, total, message
                scope.cancel()

            await client.call_tool(tool, arguments, progress_callback=stop)
        await client.call_tool("list_allowed_directories", {})  # is answered after the cancellation was read
        return scope.cancelled_caught

    return agent.run(work)


@contextmanager
def writing_elsewhere(root: Path) -> Iterator[None]:
    """Hold the writer lock, so that every other writer waits."""
    with Workspace.init(root) as workspace, workspace.call(CallInfo(tool="test")):
        yield


def patch(folder: Path, count: int) -> list[dict[str, str]]:
    """Return a patch for each of some files, which are made."""
    patches = []
    for number in range(count):
        file = folder / f"{number:03}"
        file.write_text("old\n")
        patches.append({"file_path": str(file), "patch": "--- a\n+++ a\n@@ -1 +1 @@\n-old\n+new\n"})
    return patches


# ---- progress


def test_a_long_walk_tells_how_far_it_has_come(agent: Agent, folder: Path) -> None:
    for number in range(30):
        (folder / f"{number:02}.txt").write_text("text\n")
    told: list[tuple[float, float | None, str | None]] = []

    async def work(client: Client) -> None:
        async def note(progress: float, total: float | None, message: str | None) -> None:
            told.append((progress, total, message))

        arguments = {"path": str(folder), "pattern": "text"}
        await client.call_tool("grep_files", arguments, progress_callback=note)

    agent.run(work)
    assert [done for done, _, _ in told] == sorted({done for done, _, _ in told})
    assert told[0] == (1, None, "1 names visited")


def test_a_call_over_several_files_tells_which_of_how_many(agent: Agent, folder: Path) -> None:
    patches = patch(folder, 3)
    told: list[tuple[float, float | None, str | None]] = []

    async def work(client: Client) -> None:
        async def note(progress: float, total: float | None, message: str | None) -> None:
            told.append((progress, total, message))

        await client.call_tool(
            "read_multiple_files", {"paths": [op["file_path"] for op in patches]}, progress_callback=note
        )

    agent.run(work)
    assert told[0] == (1, 3, patches[0]["file_path"])


def test_progress_is_reported_sparingly_and_only_on_request() -> None:
    told: list[float] = []
    watch = Watch(lambda done, _total, _words: told.append(done))

    def work() -> None:
        for done in range(1000):
            progress(done, None, "")

    watch.run(work)
    assert told[0] == 0
    assert len(told) < 1000
    work()
    Watch().run(work)


def test_progress_only_goes_on_and_comes_to_its_total(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cancellation, "_INTERVAL", 0)
    told: list[tuple[float, float | None, str]] = []
    patches = [PatchOp(**op) for op in patch(tmp_path, 3)]
    files = [op.file_path for op in patches]
    again = [
        PatchOp(file_path=files[0], patch=f"--- a\n+++ a\n@@ -1 +1 @@\n-{before}\n+{after}\n")
        for before, after in (("new", "newer"), ("newer", "newest"))
    ]
    waiting = "Waiting for its turn to write"
    with closing(Directories([str(tmp_path)])) as directories:
        tools = Tools(directories, Session(), ServerLimits())
        calls: list[tuple[Callable[[], object], list[tuple[float, float | None, str]]]] = [
            (lambda: tools.read_multiple_files(files), [(n, 3, name) for n, name in enumerate(files, 1)]),
            (
                lambda: tools.apply_patches(Strategy.ATOMIC, patches),
                [(n, 7, said) for n, said in enumerate([*files, waiting, *files], 1)],
            ),
            (
                lambda: tools.apply_patches(Strategy.TRY_REVERT, again),
                [(0, None, waiting), (1, 2, files[0]), (2, 2, files[0])],
            ),
        ]
        for call, wanted in calls:
            Watch(lambda *report: told.append(report)).run(call)
            assert told == wanted
            told.clear()


# ---- cancellation


def test_a_call_that_was_cancelled_ends_where_it_next_asks() -> None:
    watch = Watch()
    done = []

    def work() -> None:
        checkpoint()
        done.append("before")
        watch.cancel()
        checkpoint()
        done.append("after")

    with pytest.raises(Cancelled):
        watch.run(work)
    assert done == ["before"]
    checkpoint()  # the thread's next call is another one


@pytest.mark.parametrize("tool", ["write_file", "multi_edit_text_file", "delete_file", "move_file", "edit_file_diff"])
def test_a_change_cancelled_before_its_turn_is_not_made(agent: Agent, folder: Path, tool: str) -> None:
    file = folder / "file.txt"
    file.write_text("old\n")
    recorded = len(agent.history())
    arguments: dict[str, dict[str, object]] = {
        "write_file": {"content": "new\n"},
        "multi_edit_text_file": {"edits": [{"old_string": "old", "new_string": "new"}]},
        "delete_file": {},
        "move_file": {"source": str(file), "destination": str(folder / "moved")},
        "edit_file_diff": {"diff": "--- a\n+++ a\n@@ -1 +1 @@\n-old\n+new\n"},
    }
    given = {"path": str(file)} | arguments[tool]
    if tool == "move_file":
        del given["path"]
    with writing_elsewhere(agent.root):
        assert cancelled(agent, tool, **given)
    # Whoever comes next waits for the thread of the call that was cancelled.
    agent.done("write_file", path=str(folder / "other"), content="next\n")
    assert sorted(path.name for path in folder.iterdir()) == ["file.txt", "other"]
    assert file.read_text() == "old\n"
    assert [view.edit.tool for view in agent.history()[recorded:]] == ["write_file"]
    agent.done("write_file", path=str(file), content="the session goes on\n")


def test_reading_waits_for_no_number_of_calls_that_wait_for_their_turn_to_write(agent: Agent, folder: Path) -> None:
    (folder / "file").write_text("text\n")
    with writing_elsewhere(agent.root):
        writes = [
            agent.start([("write_file", {"path": str(folder / f"{number}"), "content": "new\n"})])
            for number in range(60)
        ]
        agent.done("read_file", path=str(folder / "file"))
        assert not [write for write in writes if write.done()]
    assert not [write for write in writes if write.result()[0].refused]


def test_undo_cancelled_midway_is_made_on_all_files_or_on_none(agent: Agent, folder: Path) -> None:
    patches = patch(folder, 5)
    agent.done("apply_patches", strategy="atomic", patches=patches)
    with writing_elsewhere(agent.root):
        cancelled(agent, "Undo")
    agent.done("write_file", path=str(folder / "other"), content="next\n")
    assert len({(folder / f"{number:03}").read_text() for number in range(5)}) == 1


@pytest.mark.parametrize("count", [3, 60])
def test_patches_cancelled_midway_are_all_applied_or_none(agent: Agent, folder: Path, count: int) -> None:
    patches = patch(folder, count)
    recorded = len(agent.history())
    cancelled(agent, "apply_patches", strategy="atomic", patches=patches)
    agent.done("write_file", path=str(folder / "other"), content="next\n")
    files = {(folder / f"{number:03}").read_text() for number in range(count)}
    edits = [view for view in agent.history()[recorded:] if view.edit.tool == "apply_patches"]
    assert (files, len(edits)) in [({"old\n"}, 0), ({"new\n"}, count)]


def test_a_search_that_was_cancelled_leaves_no_process(agent: Agent, folder: Path) -> None:
    (folder / "evil.txt").write_text("a" * 40 + "b\n")
    assert cancelled(agent, "grep_files", path=str(folder), pattern="(a+)+$", use_regex=True)

    deadline = time.monotonic() + PATIENCE
    while _searches():
        assert time.monotonic() < deadline


def _searches() -> bool:
    """Return whether a server of ours tries an expression, as far as the system tells of processes."""
    proc = Path("/proc")
    return proc.is_dir() and any(_is_search(found) for found in proc.iterdir() if found.name.isdigit())


def _is_search(process: Path) -> bool:
    """Return whether a process is one of ours that tries an expression."""
    try:
        if b"given().decode" not in (process / "cmdline").read_bytes():
            return False
        while process.name not in {str(os.getpid()), "0"}:
            process = process.with_name((process / "stat").read_text().rpartition(")")[2].split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return False  # it has ended meanwhile
    return process.name != "0"
