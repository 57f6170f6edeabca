"""A call whose sync fails changes nothing, and later calls succeed."""

from pathlib import Path

from objstore import Workspace, check_store
from tests.support.mcp_agent import connected


def test_server_edits_again_after_a_failed_sync(tmp_path: Path) -> None:
    root, failing = tmp_path / "workspace", tmp_path / "failing"
    root.mkdir()
    with connected(root, program=("tests.support.failing_server", str(failing))) as agent:
        agent.done("write_file", path="a.txt", content="one\n")
        failing.touch()
        for _ in range(2):
            result = agent.call("write_file", path="a.txt", content="two\n")
            assert result.error["type"] == "io_error"
            assert (root / "a.txt").read_text() == "one\n"
        failing.unlink()
        agent.done("write_file", path="a.txt", content="three\n")
        assert len(agent.history()) == 2
    with Workspace.open(root) as workspace:
        last = workspace.history.edits()[-1].edit.after
        assert last is not None
        assert workspace.history.blob(last.blob) == b"three\n" == (root / "a.txt").read_bytes()
        assert workspace.review.status().external == ()
    assert check_store(str(root)).faults == ()
