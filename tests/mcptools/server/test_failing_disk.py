"""A call whose sync fails changes nothing, Undo included, and later calls succeed."""

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


def test_t_undo_05_undo_that_fails_leaves_every_file_and_works_later(tmp_path: Path) -> None:
    root, failing = tmp_path / "workspace", tmp_path / "failing"
    root.mkdir()
    names = ("a.txt", "b.txt")
    for name in names:
        (root / name).write_text("one\n")
    patches = [{"file_path": name, "patch": "--- a\n+++ b\n@@ -1 +1 @@\n-one\n+two\n"} for name in names]
    program = ("tests.support.failing_server", str(failing), "--tools", "all")
    with connected(root, program=program) as agent:
        agent.done("apply_patches", strategy="atomic", patches=patches)
        failing.touch()
        assert agent.call("Undo").error["type"] == "io_error"
        assert [(root / name).read_text() for name in names] == ["two\n", "two\n"]
        failing.unlink()
        assert agent.done("Undo").structured["files_reverted"] == 2
        assert [(root / name).read_text() for name in names] == ["one\n", "one\n"]
