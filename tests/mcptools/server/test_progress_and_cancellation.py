"""Progress is reported, and a cancelled call either completes or changes nothing."""

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

TIMEOUT = 30.0  # seconds


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


def cancel_call(agent: Agent, tool: str, /, **arguments: object) -> bool:
    """Make a call, cancel it at its first progress report, and wait until the server has read the cancellation.

    Return whether it was cancelled; the call may have completed first.
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
def writer_lock_held(root: Path) -> Iterator[None]:
    """Hold the writer lock, so that every other writer waits."""
    with Workspace.init(root) as workspace, workspace.call(CallInfo(tool="test")):
        yield


def patches_for_new_files(folder: Path, count: int) -> list[dict[str, str]]:
    """Create some files; return a patch for each."""
    patches = []
    for number in range(count):
        file = folder / f"{number:03}"
        file.write_text("old\n")
        patches.append({"file_path": str(file), "patch": "--- a\n+++ a\n@@ -1 +1 @@\n-old\n+new\n"})
    return patches


# ---- progress


def test_long_walk_reports_progress(agent: Agent, folder: Path) -> None:
    for number in range(30):
        (folder / f"{number:02}.txt").write_text("text\n")
    reports: list[tuple[float, float | None, str | None]] = []

    async def work(client: Client) -> None:
        async def note(progress: float, total: float | None, message: str | None) -> None:
            reports.append((progress, total, message))

        arguments = {"path": str(folder), "keyword": "text"}
        await client.call_tool("grep_files", arguments, progress_callback=note)

    agent.run(work)
    assert [done for done, _, _ in reports] == sorted({done for done, _, _ in reports})
    assert reports[0] == (1, None, "1 names visited")


def test_call_over_several_files_reports_the_number_and_total(agent: Agent, folder: Path) -> None:
    patches = patches_for_new_files(folder, 3)
    reports: list[tuple[float, float | None, str | None]] = []

    async def work(client: Client) -> None:
        async def note(progress: float, total: float | None, message: str | None) -> None:
            reports.append((progress, total, message))

        await client.call_tool(
            "read_multiple_files", {"paths": [op["file_path"] for op in patches]}, progress_callback=note
        )

    agent.run(work)
    assert reports[0] == (1, 3, patches[0]["file_path"])


def test_progress_is_rate_limited_and_reported_only_on_request() -> None:
    reports: list[float] = []
    watch = Watch(lambda done, _total, _words: reports.append(done))

    def work() -> None:
        for done in range(1000):
            progress(done, None, "")

    watch.run(work)
    assert reports[0] == 0
    assert len(reports) < 1000
    work()
    Watch().run(work)


def test_progress_increases_up_to_its_total(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cancellation, "_INTERVAL", 0)
    reports: list[tuple[float, float | None, str]] = []
    patches = [PatchOp(**op) for op in patches_for_new_files(tmp_path, 3)]
    files = [op.file_path for op in patches]
    repeated = [
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
                [(n, 7, message) for n, message in enumerate([*files, waiting, *files], 1)],
            ),
            (
                lambda: tools.apply_patches(Strategy.TRY_REVERT, repeated),
                [(0, None, waiting), (1, 2, files[0]), (2, 2, files[0])],
            ),
        ]
        for call, expected in calls:
            Watch(lambda *report: reports.append(report)).run(call)
            assert reports == expected
            reports.clear()


# ---- cancellation


def test_cancelled_call_ends_at_its_next_checkpoint() -> None:
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
    checkpoint()  # the cancellation doesn't affect the thread's next call


@pytest.mark.parametrize("tool", ["write_file", "multi_edit_text_file", "delete_file", "move_file", "edit_file_diff"])
def test_change_cancelled_while_waiting_for_the_lock_is_not_made(agent: Agent, folder: Path, tool: str) -> None:
    file = folder / "file.txt"
    file.write_text("old\n")
    agent.done("read_file", path=str(file))
    recorded = len(agent.history())
    arguments: dict[str, dict[str, object]] = {
        "write_file": {"content": "new\n"},
        "multi_edit_text_file": {"edits": [{"old_string": "old", "new_string": "new"}]},
        "delete_file": {},
        "move_file": {"source": str(file), "destination": str(folder / "moved")},
        "edit_file_diff": {"diff": "--- a\n+++ a\n@@ -1 +1 @@\n-old\n+new\n"},
    }
    call_arguments = {"path": str(file)} | arguments[tool]
    if tool == "move_file":
        del call_arguments["path"]
    with writer_lock_held(agent.root):
        assert cancel_call(agent, tool, **call_arguments)
    # The next writer waits for the thread of the cancelled call.
    agent.done("write_file", path=str(folder / "other"), content="next\n")
    assert sorted(path.name for path in folder.iterdir()) == ["file.txt", "other"]
    assert file.read_text() == "old\n"
    assert [view.edit.tool for view in agent.history()[recorded:]] == ["write_file"]
    agent.done("write_file", path=str(file), content="a later write\n")


def test_waiting_writers_do_not_block_readers(agent: Agent, folder: Path) -> None:
    (folder / "file").write_text("text\n")
    with writer_lock_held(agent.root):
        writes = [
            agent.start([("write_file", {"path": str(folder / f"{number}"), "content": "new\n"})])
            for number in range(60)
        ]
        agent.done("read_file", path=str(folder / "file"))
        assert not [write for write in writes if write.done()]
    assert not [write for write in writes if write.result()[0].refused]


def test_cancelled_undo_reverts_all_files_or_none(agent: Agent, folder: Path) -> None:
    patches = patches_for_new_files(folder, 5)
    agent.done("apply_patches", strategy="atomic", patches=patches)
    with writer_lock_held(agent.root):
        cancel_call(agent, "Undo")
    agent.done("write_file", path=str(folder / "other"), content="next\n")
    assert len({(folder / f"{number:03}").read_text() for number in range(5)}) == 1


@pytest.mark.parametrize("count", [3, 60])
def test_cancelled_atomic_patches_are_all_applied_or_none(agent: Agent, folder: Path, count: int) -> None:
    patches = patches_for_new_files(folder, count)
    recorded = len(agent.history())
    cancel_call(agent, "apply_patches", strategy="atomic", patches=patches)
    agent.done("write_file", path=str(folder / "other"), content="next\n")
    files = {(folder / f"{number:03}").read_text() for number in range(count)}
    edits = [view for view in agent.history()[recorded:] if view.edit.tool == "apply_patches"]
    assert (files, len(edits)) in [({"old\n"}, 0), ({"new\n"}, count)]


def test_cancelled_search_leaves_no_process(agent: Agent, folder: Path) -> None:
    (folder / "evil.txt").write_text("a" * 40 + "b\n")
    assert cancel_call(agent, "grep_files", path=str(folder), keyword="(a+)+$", use_regex=True)

    deadline = time.monotonic() + TIMEOUT
    while _search_is_running():
        assert time.monotonic() < deadline


def _search_is_running() -> bool:
    """Return whether a server of this test run searches for an expression, where the system lists processes."""
    proc = Path("/proc")
    return proc.is_dir() and any(_is_search_process(found) for found in proc.iterdir() if found.name.isdigit())


def _is_search_process(process: Path) -> bool:
    """Return whether a process of this test run searches for an expression."""
    try:
        if b"given().decode" not in (process / "cmdline").read_bytes():
            return False
        while process.name not in {str(os.getpid()), "0"}:
            process = process.with_name((process / "stat").read_text().rpartition(")")[2].split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return False  # it has ended meanwhile
    return process.name != "0"
