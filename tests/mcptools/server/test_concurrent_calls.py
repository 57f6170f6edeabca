"""Concurrent calls, in one process and in several: each success is recorded and on disk, in one order."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

import pytest

from objstore import EditView, Origin, Workspace, blob_id
from tests.support.mcp_agent import Agent, Result, connected

SERVERS = 8
AT_ONCE = 50


def edit(line: int) -> dict[str, str]:
    return {"old_string": f"line {line:03}.", "new_string": f"LINE {line:03}!"}


def lines(count: int) -> str:
    return "".join(f"line {number:03}.\n" for number in range(count))


def one_order(views: list[EditView], file: Path, results: list[Result]) -> None:
    """Check that the successes, and nothing else, lead one from the other to what stands on disk."""
    told = [result.structured["edit"] for result in results if not result.refused]
    assert sorted(told) == [view.seq for view in views]
    for earlier, later in pairwise(views):
        assert earlier.edit.after == later.edit.before
    last = views[-1].edit.after
    assert last is not None
    assert last.blob == blob_id(file.read_bytes())


def test_fifty_edits_of_one_file_at_once(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text(lines(AT_ONCE))
    recorded = len(agent.history())
    calls = [("multi_edit_text_file", {"path": str(file), "edits": [edit(n)]}) for n in range(AT_ONCE)]
    results = agent.together(calls)
    assert not [result.structured for result in results if result.refused]
    assert file.read_text() == lines(AT_ONCE).upper().replace(".", "!")
    one_order(agent.history()[recorded:], file, results)


def test_fifty_calls_of_every_kind_on_one_file_at_once(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text(lines(AT_ONCE))
    recorded = len(agent.history())
    calls: list[tuple[str, dict[str, object]]] = []
    for number in range(0, AT_ONCE, 5):
        diff = f"--- f\n+++ f\n@@ -{number + 2} +{number + 2} @@\n-line {number + 1:03}.\n+diff\n"
        calls += [
            ("multi_edit_text_file", {"path": str(file), "edits": [edit(number)]}),
            ("edit_file_diff", {"path": str(file), "diff": diff}),
            ("write_file", {"path": str(file), "content": f"whole {number}\n"}),
            ("apply_patch", {"file_path": str(file), "patch": diff.replace("+diff", "+patch")}),
            ("read_text_file", {"path": str(file)}),
        ]
    results = agent.together(calls)
    changes = [result for result in results if result.refused or "edit" in result.structured]
    assert len(changes) == AT_ONCE * 4 // 5
    one_order(agent.history()[recorded:], file, changes)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Agent]]:
    root = tmp_path_factory.mktemp("shared").resolve()
    with ExitStack() as stack, ThreadPoolExecutor(SERVERS) as together:
        yield list(together.map(lambda _: stack.enter_context(connected(root)), range(SERVERS)))


def all_at_once(servers: list[Agent], calls: list[list[tuple[str, dict[str, object]]]]) -> list[Result]:
    """Make the calls of each server at once, with those of all others."""
    started = [agent.start(mine) for agent, mine in zip(servers, calls, strict=True)]
    return [result for waiting in started for result in waiting.result()]


def test_eight_servers_edit_one_file_at_once(servers: list[Agent]) -> None:
    root, each = servers[0].root, 12
    file = root / "file.txt"
    file.write_text(lines(SERVERS * each))
    calls: list[list[tuple[str, dict[str, object]]]] = [
        [("multi_edit_text_file", {"path": str(file), "edits": [edit(number)]}) for number in range(mine, 96, SERVERS)]
        for mine in range(SERVERS)
    ]
    results = all_at_once(servers, calls)
    assert not [result.structured for result in results if result.refused]
    assert file.read_text() == lines(SERVERS * each).upper().replace(".", "!")
    with Workspace.open(root) as workspace:
        views = [view for view in workspace.history.edits() if view.edit.path == b"file.txt"]
        assert {view.edit.origin for view in views} == {Origin.AGENT}
        one_order(views, file, results)


def test_of_eight_servers_that_want_one_thing_one_gets_it(servers: list[Agent]) -> None:
    root = servers[0].root
    (root / "only.txt").write_text("line 000.\n")
    calls: list[list[tuple[str, dict[str, object]]]] = [
        [
            ("move_file", {"source": str(root / "only.txt"), "destination": str(root / f"taken-{mine}.txt")}),
            ("multi_edit_text_file", {"path": str(root / "only.txt"), "edits": [edit(0)]}),
        ]
        for mine in range(SERVERS)
    ]
    moves = [result for result in all_at_once(servers, calls) if "destination" in result.structured]
    assert len(moves) == 1
    (taken,) = root.glob("taken-*.txt")
    assert moves[0].structured["destination"] == str(taken)
    assert taken.read_text() in {"line 000.\n", "LINE 000!\n"}


def test_eight_servers_give_each_file_one_history(servers: list[Agent]) -> None:
    root = servers[0].root
    names = [f"file-{number}.txt" for number in range(4)]
    calls: list[list[tuple[str, dict[str, object]]]] = [
        [("write_file", {"path": str(root / name), "content": f"{name} by {mine}\n"}) for name in names]
        for mine in range(SERVERS)
    ]
    results = all_at_once(servers, calls)
    with Workspace.open(root) as workspace:
        views = workspace.history.edits()
    for name in names:
        mine = [view for view in views if view.edit.path == name.encode()]
        told = [found for found in results if found.structured.get("path") == str(root / name) and not found.refused]
        one_order(mine, root / name, told)
