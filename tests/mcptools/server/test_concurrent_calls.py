"""Concurrent calls, in one process and in several, are recorded and applied in one order."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

import pytest

from objstore import EditView, Origin, Workspace, blob_id
from tests.support.mcp_agent import Agent, Result, connected

SERVER_COUNT = 8
CALL_COUNT = 50


def edit(line: int) -> dict[str, str]:
    return {"old_string": f"line {line:03}.", "new_string": f"LINE {line:03}!"}


def lines(count: int) -> str:
    return "".join(f"line {number:03}.\n" for number in range(count))


def check_single_order(views: list[EditView], file: Path, results: list[Result]) -> None:
    """Check that exactly the successful calls were recorded, each on top of the one before, up to the file on disk."""
    succeeded = [result.structured["edit"] for result in results if not result.refused]
    assert sorted(succeeded) == [view.seq for view in views]
    for earlier, later in pairwise(views):
        assert earlier.edit.after == later.edit.before
    last = views[-1].edit.after
    assert last is not None
    assert last.blob == blob_id(file.read_bytes())


def test_fifty_concurrent_edits_of_one_file_all_succeed(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text(lines(CALL_COUNT))
    recorded = len(agent.history())
    calls = [("multi_edit_text_file", {"path": str(file), "edits": [edit(n)]}) for n in range(CALL_COUNT)]
    results = agent.call_concurrently(calls)
    assert not [result.structured for result in results if result.refused]
    assert file.read_text() == lines(CALL_COUNT).upper().replace(".", "!")
    check_single_order(agent.history()[recorded:], file, results)


def test_fifty_mixed_concurrent_calls_on_one_file_are_recorded_in_one_order(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text(lines(CALL_COUNT))
    recorded = len(agent.history())
    calls: list[tuple[str, dict[str, object]]] = []
    for number in range(0, CALL_COUNT, 5):
        diff = f"--- f\n+++ f\n@@ -{number + 2} +{number + 2} @@\n-line {number + 1:03}.\n+diff\n"
        calls += [
            ("multi_edit_text_file", {"path": str(file), "edits": [edit(number)]}),
            ("edit_file_diff", {"path": str(file), "diff": diff}),
            ("write_file", {"path": str(file), "content": f"whole {number}\n"}),
            ("apply_patch", {"file_path": str(file), "patch": diff.replace("+diff", "+patch")}),
            ("read_text_file", {"path": str(file)}),
        ]
    results = agent.call_concurrently(calls)
    changes = [result for result in results if result.refused or "edit" in result.structured]
    assert len(changes) == CALL_COUNT * 4 // 5
    check_single_order(agent.history()[recorded:], file, changes)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Agent]]:
    root = tmp_path_factory.mktemp("shared").resolve()
    with ExitStack() as stack, ThreadPoolExecutor(SERVER_COUNT) as together:
        yield list(together.map(lambda _: stack.enter_context(connected(root)), range(SERVER_COUNT)))


def call_concurrently(servers: list[Agent], calls: list[list[tuple[str, dict[str, object]]]]) -> list[Result]:
    """Make the calls of all servers at the same time."""
    started = [agent.start(server_number) for agent, server_number in zip(servers, calls, strict=True)]
    return [result for waiting in started for result in waiting.result()]


def test_concurrent_edits_by_eight_servers_all_succeed(servers: list[Agent]) -> None:
    root, each = servers[0].root, 12
    file = root / "file.txt"
    file.write_text(lines(SERVER_COUNT * each))
    calls: list[list[tuple[str, dict[str, object]]]] = [
        [
            ("multi_edit_text_file", {"path": str(file), "edits": [edit(number)]})
            for number in range(server_number, 96, SERVER_COUNT)
        ]
        for server_number in range(SERVER_COUNT)
    ]
    results = call_concurrently(servers, calls)
    assert not [result.structured for result in results if result.refused]
    assert file.read_text() == lines(SERVER_COUNT * each).upper().replace(".", "!")
    with Workspace.open(root) as workspace:
        views = [view for view in workspace.history.edits() if view.edit.path == b"file.txt"]
        assert {view.edit.origin for view in views} == {Origin.AGENT}
        check_single_order(views, file, results)


def test_only_one_of_eight_servers_moves_a_file(servers: list[Agent]) -> None:
    root = servers[0].root
    (root / "only.txt").write_text("line 000.\n")
    calls: list[list[tuple[str, dict[str, object]]]] = [
        [
            ("move_file", {"source": str(root / "only.txt"), "destination": str(root / f"taken-{server_number}.txt")}),
            ("multi_edit_text_file", {"path": str(root / "only.txt"), "edits": [edit(0)]}),
        ]
        for server_number in range(SERVER_COUNT)
    ]
    moves = [result for result in call_concurrently(servers, calls) if "destination" in result.structured]
    assert len(moves) == 1
    (taken,) = root.glob("taken-*.txt")
    assert moves[0].structured["destination"] == str(taken)
    assert taken.read_text() in {"line 000.\n", "LINE 000!\n"}


def test_concurrent_writes_by_eight_servers_give_each_file_one_history(servers: list[Agent]) -> None:
    root = servers[0].root
    names = [f"file-{number}.txt" for number in range(4)]
    calls: list[list[tuple[str, dict[str, object]]]] = [
        [("write_file", {"path": str(root / name), "content": f"{name} by {server_number}\n"}) for name in names]
        for server_number in range(SERVER_COUNT)
    ]
    results = call_concurrently(servers, calls)
    with Workspace.open(root) as workspace:
        views = workspace.history.edits()
    for name in names:
        server_number = [view for view in views if view.edit.path == name.encode()]
        succeeded = [
            found for found in results if found.structured.get("path") == str(root / name) and not found.refused
        ]
        check_single_order(server_number, root / name, succeeded)
