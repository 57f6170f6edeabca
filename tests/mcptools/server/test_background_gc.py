"""Background maintenance: a server keeps its stores within their limits without delaying or losing work."""

import os
import time
from contextlib import closing
from pathlib import Path
from threading import Event

import pytest

from mcptools.files.workspaces import Directories
from mcptools.server.background_gc import BackgroundGc
from objstore import Action, Configuration, Unit, Workspace
from tests.support.mcp_agent import Agent, connected

PATIENCE = 30.0
"""Seconds in which the server must have come round to it."""


def limited(root: Path, **limits: str) -> None:
    """Make a workspace with these limits, at which the server looks every second."""
    Workspace.init(root).close()
    settings = Configuration(str(root))
    settings.set("gc.every", "1s")
    for name, value in limits.items():
        settings.set(f"retention.{name}", value)


def expired(root: Path) -> list[int]:
    with Workspace.open(root) as workspace:
        return [view.seq for view in workspace.history.edits() if view.expired is not None]


def accept_all(root: Path) -> None:
    with Workspace.open(root) as workspace:
        units = [Unit(view.seq, hunk) for view in workspace.history.edits() for hunk in range(len(view.units))]
        workspace.decide(Action.ACCEPT, units)


def some_edits(agent: Agent, count: int) -> None:
    conversation = ""
    for number in range(count):
        result = agent.done(
            "write_file",
            path="notes",
            content=f"{number}: {os.urandom(4000).hex()}\n",
            mcp_conversation_id=conversation,
        )
        conversation = result.structured["mcp_conversation_id"]


def wait_until_something_expired(root: Path) -> list[int]:
    end = time.monotonic() + PATIENCE
    while not (gone := expired(root)):
        assert time.monotonic() < end, "nothing was let go"
        time.sleep(0.1)
    return gone


def test_a_store_that_is_too_large_lets_go_of_the_oldest_and_of_nothing_pending(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    limited(root, max_size="60kB")
    with connected(root) as agent:
        some_edits(agent, 20)
        accept_all(root)
        some_edits(agent, 3)
        gone = wait_until_something_expired(root)
        some_edits(agent, 1)
    assert gone == list(range(1, len(gone) + 1))
    assert max(gone) <= 20


def test_what_is_older_than_the_limit_goes(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    limited(root, older_than="0s")
    with connected(root) as agent:
        some_edits(agent, 2)
        accept_all(root)
        assert wait_until_something_expired(root) == [1, 2]


def test_a_store_that_is_put_aside_as_it_is_looked_at_is_no_fault(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcptools.server.background_gc._TICK", 0.001)
    root = tmp_path / "workspace"
    root.mkdir()
    limited(root, max_size="60kB")
    with closing(Directories([str(root)])) as directories:
        workspace = directories.home(str(root))
        looked = Event()
        follow = workspace.retention.close_superseded_files

        def put_aside() -> None:
            (root / ".cas").rename(tmp_path / "aside")
            try:
                follow()
            finally:
                looked.set()

        monkeypatch.setattr(workspace.retention, "close_superseded_files", put_aside)
        with BackgroundGc(directories):
            assert looked.wait(PATIENCE)
    assert caplog.records == []


def test_a_person_can_turn_it_off(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    limited(root, older_than="0s")
    Configuration(str(root)).set("gc.background", "off")
    with connected(root) as agent:
        some_edits(agent, 1)
        accept_all(root)
        time.sleep(2.5)  # as long as two looks would take to come
        assert expired(root) == []


def test_invalid_settings_are_reported_once_and_do_not_stop_the_server(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    limited(root, max_size="60kB")
    (root / ".cas" / "config.toml").write_text("[gc\n")

    def warnings() -> int:
        return (tmp_path / "workspace.log").read_text().count("WARNING")

    def work() -> None:
        with connected(root) as agent:
            some_edits(agent, 1)
            end = time.monotonic() + PATIENCE
            while not warnings():
                assert time.monotonic() < end, "nobody was told"
                time.sleep(0.1)
            some_edits(agent, 1)
            time.sleep(2.5)  # as long as two looks would take to come

    # A server that logs anything fails its test; here it has to.
    with pytest.raises(AssertionError, match=r"WARNING +Can't check the limits of"):
        work()
    assert warnings() == 1
    with Workspace.open(root) as workspace:
        assert len(workspace.history.edits()) == 2


def test_a_long_history_is_kept_while_the_server_runs(tmp_path: Path) -> None:
    """So that whoever reviews it need not wait until all of it is replayed."""
    root = tmp_path / "workspace"
    root.mkdir()
    with connected(root) as agent:
        agent.done("write_file", path="notes", content="0\n")  # the server looks at a store from its first use on
        time.sleep(1.5)
        some_edits(agent, 260)
        end = time.monotonic() + PATIENCE
        while not (root / ".cas" / "cache" / "weave-1").exists():
            assert time.monotonic() < end, "nothing was kept"
            time.sleep(0.1)
