"""Background gc keeps the stores of a server within their limits."""

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

TIMEOUT = 30.0
"""Seconds within which the server must have run gc."""


def create_workspace(root: Path, **limits: str) -> None:
    """Create a workspace with these limits, which the server checks every second."""
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


def make_edits(agent: Agent, count: int) -> None:
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
    end = time.monotonic() + TIMEOUT
    while not (expired_edits := expired(root)):
        assert time.monotonic() < end, "no edit expired"
        time.sleep(0.1)
    return expired_edits


def test_store_over_its_limit_expires_the_oldest_decided_edits_only(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    create_workspace(root, max_size="60kB")
    with connected(root) as agent:
        make_edits(agent, 20)
        accept_all(root)
        make_edits(agent, 3)
        expired_edits = wait_until_something_expired(root)
        make_edits(agent, 1)
    assert expired_edits == list(range(1, len(expired_edits) + 1))
    assert max(expired_edits) <= 20


def test_edits_older_than_the_limit_expire(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    create_workspace(root, older_than="0s")
    with connected(root) as agent:
        make_edits(agent, 2)
        accept_all(root)
        assert wait_until_something_expired(root) == [1, 2]


def test_store_moved_away_during_a_check_is_not_logged_as_a_fault(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcptools.server.background_gc._TICK", 0.001)
    root = tmp_path / "workspace"
    root.mkdir()
    create_workspace(root, max_size="60kB")
    with closing(Directories([str(root)])) as directories:
        workspace = directories.home(str(root))
        checked = Event()
        original = workspace.retention.close_superseded_files

        def move_store_and_close() -> None:
            (root / ".cas").rename(tmp_path / "aside")
            try:
                original()
            finally:
                checked.set()

        monkeypatch.setattr(workspace.retention, "close_superseded_files", move_store_and_close)
        with BackgroundGc(directories):
            assert checked.wait(TIMEOUT)
    assert caplog.records == []


def test_background_gc_can_be_turned_off(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    create_workspace(root, older_than="0s")
    Configuration(str(root)).set("gc.background", "off")
    with connected(root) as agent:
        make_edits(agent, 1)
        accept_all(root)
        time.sleep(2.5)  # long enough for two checks
        assert expired(root) == []


def test_invalid_settings_are_reported_once_and_do_not_stop_the_server(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    create_workspace(root, max_size="60kB")
    (root / ".cas" / "config.toml").write_text('[retention]\nmax_size = "lots"\n')

    def warnings() -> int:
        return (tmp_path / "workspace.log").read_text().count("WARNING")

    def work() -> None:
        with connected(root) as agent:
            make_edits(agent, 1)
            end = time.monotonic() + TIMEOUT
            while not warnings():
                assert time.monotonic() < end, "nothing was logged"
                time.sleep(0.1)
            make_edits(agent, 1)
            time.sleep(2.5)  # long enough for two checks

    # A server that logs anything fails its test; here it has to.
    with pytest.raises(AssertionError, match=r"WARNING +Can't check the limits of"):
        work()
    assert warnings() == 1
    with Workspace.open(root) as workspace:
        assert len(workspace.history.edits()) == 2


def test_weave_of_a_long_history_is_kept_by_the_running_server(tmp_path: Path) -> None:
    """The weave of a long history is kept, so that a review need not replay all of it."""
    root = tmp_path / "workspace"
    root.mkdir()
    with connected(root) as agent:
        agent.done("write_file", path="notes", content="0\n")  # the server checks a store after its first use
        time.sleep(1.5)
        make_edits(agent, 260)
        end = time.monotonic() + TIMEOUT
        while not (root / ".cas" / "cache" / "weave-1").exists():
            assert time.monotonic() < end, "no weave was kept"
            time.sleep(0.1)
