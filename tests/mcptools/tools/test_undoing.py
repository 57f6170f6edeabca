"""`Undo` reverts the session's last change completely or not at all. The names T-UNDO-… are those of its contract."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from mcptools.files.workspaces import Directories
from mcptools.model.failures import Failure, FailureKind
from mcptools.model.limits import ServerLimits
from mcptools.model.session import Session
from mcptools.tools.context import ApprovalContext
from mcptools.tools.editing import EditOp
from mcptools.tools.undoing import accepted_of
from objstore import Action, CallInfo, Decided, Status, Workspace
from objstore.disk.fs.disk import Disk
from objstore.disk.fs.stat_signature import read_signature_fields
from objstore.values.errors import DiskFailed
from tests.support.direct_tools import Tools
from tests.support.mcp_agent import Agent, Result, connected

NOTHING_TO_UNDO: Final = "No edits have been applied to any file with this session."


def edit(agent: Agent, file: Path, old: str, new: str) -> Result:
    return agent.done("multi_edit_text_file", path=str(file), edits=[{"old_string": old, "new_string": new}])


@pytest.fixture
def file(folder: Path) -> Path:
    return folder / "file.txt"


def relative_name(agent: Agent, file: Path) -> str:
    return str(file.relative_to(agent.root))


# ---- successful undo


def test_t_undo_01_undo_restores_the_bytes_of_an_emptied_file(agent: Agent, file: Path) -> None:
    content = b"caf\xe9\r\nno newline at the end"
    file.write_bytes(content)
    file.chmod(0o640)
    agent.done("write_file", path=str(file), content="")
    assert file.read_bytes() == b""
    undone = agent.done("Undo")
    assert file.read_bytes() == content
    assert file.stat().st_mode & 0o777 == 0o640
    assert undone.structured == {"success": True, "files_reverted": 1, "paths": [relative_name(agent, file)]}
    assert undone.texts == [
        f"Reverted 1 file:\n{relative_name(agent, file)}",
        "Read these files again before you change them.",
    ]


def test_t_undo_02_undo_deletes_a_created_file(agent: Agent, folder: Path) -> None:
    file = folder / "new" / "file.txt"
    agent.done("write_file", path=str(file), content="text\n")
    assert agent.done("Undo").structured["paths"] == [relative_name(agent, file)]
    assert not file.exists()


def test_t_undo_03_undo_without_an_edit_has_the_exact_message(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    with connected(root) as agent:
        result = agent.call("Undo")
        assert result.texts == [NOTHING_TO_UNDO]
        assert result.error["message"] == NOTHING_TO_UNDO
        agent.done("write_file", path="file", content="text\n")
        agent.done("Undo")
        # The entry is removed when it is used.
        assert agent.call("Undo").texts == [NOTHING_TO_UNDO]


def test_t_undo_04_undo_refuses_a_file_that_changed_since(agent: Agent, file: Path) -> None:
    file.write_text("one\n")
    edit(agent, file, "one", "two")
    file.write_text("two\nsomebody's work\n")
    before = read_signature_fields(os.lstat(file))
    result = agent.call("Undo")
    assert result.error["type"] == "stale_file"
    assert result.error["reason"] == "hash mismatch"
    assert result.error["path"] == relative_name(agent, file)
    assert file.read_text() == "two\nsomebody's work\n"
    assert read_signature_fields(os.lstat(file)) == before
    # The entry is kept: when the file is restored to the state after the edit, Undo works.
    file.write_text("two\n")
    agent.done("Undo")
    assert file.read_text() == "one\n"


class DiskFailingAtStep(Disk):
    """A disk on which the n-th change to a user's file fails."""

    def __init__(self) -> None:
        self.steps_left = -1  # changes until the failure; -1: none fails

    def step(self, relative_name: str) -> None:
        self.steps_left -= 1
        if self.steps_left == 0:
            raise DiskFailed(relative_name, "Input/output error")

    def exchange(self, source_directory: int, source: str, directory: int, relative_name: str) -> bool:
        self.step(relative_name)
        return super().exchange(source_directory, source, directory, relative_name)

    def rename_new(self, source_directory: int, source: str, directory: int, relative_name: str) -> None:
        self.step(relative_name)
        super().rename_new(source_directory, source, directory, relative_name)

    def unlink(self, directory: int, relative_name: str) -> None:
        self.step(relative_name)
        super().unlink(directory, relative_name)


def contents(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and ".cas" not in path.parts
    }


@pytest.mark.parametrize("step", [1, 2, 3])
def test_t_undo_05_failed_undo_leaves_every_file_unchanged(tmp_path: Path, step: int) -> None:
    root, failing = tmp_path / "workspace", tmp_path / "failing"
    root.mkdir()
    names = ("a", "b", "c")
    for name in names:
        (root / name).write_text("one\n")
    with connected(root, program=("tests.support.failing_server", str(failing), "--tools", "all")) as agent:
        patches = [{"file_path": name, "patch": DIFF} for name in names]
        agent.done("apply_patches", strategy="atomic", patches=patches)
        after = contents(root)
        failing.write_text(str(step))
        refused = agent.call("Undo")
        assert refused.error["type"] == "io_error"
        assert "every file of the call is as it was before" in refused.text
        assert contents(root) == after
        failing.unlink()
        assert agent.done("Undo").structured["files_reverted"] == len(names)
    assert contents(root) == dict.fromkeys(names, b"one\n")


@pytest.mark.parametrize("step", [1, 2, 3])
def test_undo_that_fails_at_any_step_leaves_every_file_unchanged(tmp_path: Path, step: int) -> None:
    disk = DiskFailingAtStep()
    directories = Directories([str(tmp_path)], lambda root: Workspace.init(root, disk))
    session = Session()
    tools = Tools(directories, session, ServerLimits())
    (tmp_path / "changed").write_bytes(b"before\n")
    (tmp_path / "deleted").write_bytes(b"before\n")
    workspace, _ = directories.changing("file", lambda: None)
    with workspace.call(CallInfo(tool="many")) as call:
        call.write("changed", b"after\n")
        call.delete("deleted")
        call.write("created", b"after\n")
        session.changed(workspace.root, call.commit().edits)
    after = contents(tmp_path)
    disk.steps_left = step
    with pytest.raises(Failure, match="every file of the call is as it was before"):
        tools.Undo()
    assert contents(tmp_path) == after
    disk.steps_left = -1
    assert tools.Undo().content.files_reverted == 3
    assert contents(tmp_path) == {"changed": b"before\n", "deleted": b"before\n"}
    directories.close()


def test_t_undo_06_file_must_be_read_again_after_undo(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text("one\n")
    read = agent.done("read_text_file", path=str(file))
    edit(agent, file, "one", "two")
    agent.done("Undo")
    changes: list[tuple[str, dict[str, object]]] = [
        ("write_file", {"path": str(file), "content": "three\n"}),
        ("edit_file_diff", {"path": str(file), "diff": "--- a\n+++ a\n@@ -1 +1 @@\n-one\n+three\n"}),
        ("multi_edit_text_file", {"path": str(file), "edits": [{"old_string": "one", "new_string": "three"}]}),
        (
            "edit_text_file",
            {
                "path": str(file),
                "file_hash": read.structured["file_hash"],
                "operations": [{"op": "delete", "anchor": read.text.split("|")[0]}],
            },
        ),
        ("move_file", {"source": str(file), "destination": str(folder / "moved.txt")}),
        ("delete_file", {"path": str(file)}),
    ]
    for tool, arguments in changes:
        error = agent.call(tool, **arguments).error
        assert (error["type"], error["message"]) == (
            "stale_file",
            f"File must be read before it is changed: {file}",
        ), tool
    assert file.read_text() == "one\n"
    assert agent.call("read_file", path=str(file), offset=-1).refused
    agent.done("read_file_by_keyword", path=str(file), keyword="nowhere")  # shows no line of it
    assert agent.call("delete_file", path=str(file)).error["type"] == "stale_file"
    agent.done("read_file", path=str(file))
    edit(agent, file, "one", "three")


def test_undo_restores_a_deleted_file(agent: Agent, file: Path) -> None:
    file.write_bytes(b"\0binary")
    file.chmod(0o750)
    agent.done("delete_file", path=str(file))
    agent.done("Undo")
    assert file.read_bytes() == b"\0binary"
    assert file.stat().st_mode & 0o777 == 0o750


def test_undo_moves_a_moved_file_back(agent: Agent, folder: Path) -> None:
    original, moved = folder / "here", folder / "sub" / "there"
    original.write_text("text\n")
    agent.done("move_file", source=str(original), destination=str(moved))
    assert agent.done("Undo").structured["paths"] == [relative_name(agent, original)]
    assert (original.read_text(), moved.exists()) == ("text\n", False)
    refused = agent.call("write_file", path=str(original), content="new\n")
    assert refused.error["message"] == f"File must be read before it is changed: {original}"


DIFF = "--- a\n+++ a\n@@ -1 +1 @@\n-one\n+two\n"
CALLS_WITH_CHANGES: list[tuple[str, dict[str, Any]]] = [
    ("write_file", {"path": "{}", "content": "two\n"}),
    ("edit_file_diff", {"path": "{}", "diff": DIFF}),
    ("multi_edit_text_file", {"path": "{}", "edits": [{"old_string": "one", "new_string": "two"}]}),
    ("edit_text_file", {"path": "{}", "file_hash": "", "operations": [{"op": "delete", "anchor": ""}]}),
    ("move_file", {"source": "{}", "destination": "{} moved"}),
    ("delete_file", {"path": "{}"}),
    ("apply_patch", {"file_path": "{}", "patch": DIFF}),
    ("revert_patch", {"file_path": "{}", "patch": DIFF.replace("-one\n+two", "-two\n+one")}),
    ("apply_patches", {"strategy": "atomic", "patches": [{"file_path": "{}", "patch": DIFF}]}),
]


@pytest.mark.parametrize(("tool", "arguments"), CALLS_WITH_CHANGES)
def test_undo_reverts_the_change_of_every_tool(
    agent: Agent, folder: Path, tool: str, arguments: dict[str, Any]
) -> None:
    file = folder / "file.txt"
    file.write_text("one\n")
    read = agent.done("read_text_file", path=str(file))
    arguments = json.loads(json.dumps(arguments).replace("{}", str(file)))
    if tool == "edit_text_file":
        arguments["file_hash"] = read.structured["file_hash"]
        arguments["operations"][0]["anchor"] = read.text.split("|")[0]
    before = contents(folder)
    agent.done(tool, **arguments)
    assert contents(folder) != before
    agent.done("Undo")
    assert contents(folder) == before


def test_undo_counts_and_names_the_files_of_a_change(agent: Agent, folder: Path) -> None:
    files = [folder / "one", folder / "two"]
    for file in files:
        file.write_text("one\n")
    patches = [{"file_path": str(file), "patch": DIFF} for file in files]
    agent.done("apply_patches", strategy="atomic", patches=patches)
    undone = agent.done("Undo")
    names = [relative_name(agent, file) for file in files]
    assert (undone.structured["files_reverted"], undone.structured["paths"]) == (2, names)
    assert undone.text == "\n".join(["Reverted 2 files:", *names])


def test_undo_names_absolute_paths_with_several_directories(tmp_path: Path) -> None:
    roots = [tmp_path / "one", tmp_path / "two"]
    for root in roots:
        root.mkdir()
    with connected(*roots) as agent:
        agent.done("write_file", path=str(roots[1] / "file"), content="text\n")
        assert agent.done("Undo").structured["paths"] == [str(roots[1] / "file")]


def test_undo_reverts_only_the_last_change(agent: Agent, folder: Path) -> None:
    first, last = folder / "first", folder / "last"
    agent.done("write_file", path=str(first), content="first\n")
    agent.done("write_file", path=str(last), content="last\n")
    # A call without changes is not undone.
    agent.done("write_file", path=str(first), content="first\n")
    agent.done("read_file", path=str(first))
    agent.call("edit_file_diff", path=str(first), diff="--- a\n+++ a\n@@ -1 +1 @@\n-x\n+y\n")
    agent.done("Undo")
    assert (first.exists(), last.exists()) == (True, False)
    assert agent.call("Undo").text == NOTHING_TO_UNDO


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_each_of_two_clients_undoes_only_its_own_last_change(tmp_path: Path, mode: str) -> None:
    """Both clients have the same name and version."""
    root = tmp_path / "workspace"
    root.mkdir()
    with connected(root, mode=mode) as first, connected(root, mode=mode) as second:
        first.done("write_file", path="a1", content="1\n")
        first.done("write_file", path="a2", content="2\n")
        assert second.call("Undo").text == NOTHING_TO_UNDO
        second.done("write_file", path="b1", content="1\n")
        first.done("write_file", path="a3", content="3\n")
        second.done("write_file", path="b2", content="2\n")
        assert first.done("Undo").structured["paths"] == ["a3"]
        assert second.done("Undo").structured["paths"] == ["b2"]
        for agent in (first, second):
            assert agent.call("Undo").text == NOTHING_TO_UNDO
    assert sorted(path.name for path in root.iterdir() if path.is_file()) == ["a1", "a2", "b1"]


DIFF_WITHOUT_CHANGES = DIFF.replace("+two", "+one")
CALLS_WITHOUT_CHANGES: list[tuple[str, dict[str, Any]]] = [
    ("write_file", {"path": "{}", "content": "one\n"}),
    ("edit_file_diff", {"path": "{}", "diff": DIFF_WITHOUT_CHANGES}),
    ("multi_edit_text_file", {"path": "{}", "edits": [{"old_string": "one", "new_string": "one"}]}),
    ("edit_text_file", {"path": "{}", "file_hash": "", "operations": [{"op": "replace", "content": "one"}]}),
    ("apply_patch", {"file_path": "{}", "patch": DIFF_WITHOUT_CHANGES}),
    ("apply_patch", {"file_path": "{}", "patch": ""}),
    ("revert_patch", {"file_path": "{}", "patch": DIFF_WITHOUT_CHANGES}),
    ("apply_patches", {"strategy": "try_revert", "patches": [{"file_path": "{}", "patch": DIFF_WITHOUT_CHANGES}]}),
    ("apply_patches", {"strategy": "backup_restore", "patches": [{"file_path": "{}", "patch": DIFF_WITHOUT_CHANGES}]}),
    ("apply_patches", {"strategy": "atomic", "patches": [{"file_path": "{}", "patch": DIFF_WITHOUT_CHANGES}]}),
    ("restore_backup", {"backup_file": "{} copy", "target_file": "{}"}),
]


@pytest.mark.parametrize(("tool", "arguments"), CALLS_WITHOUT_CHANGES)
def test_call_without_changes_is_reported_and_not_undone(
    agent: Agent, folder: Path, tool: str, arguments: dict[str, Any]
) -> None:
    file, other = folder / "file.txt", folder / "other.txt"
    file.write_text("one\n")
    shutil.copy2(file, folder / "file.txt copy")
    read = agent.done("read_text_file", path=str(file))
    agent.done("write_file", path=str(other), content="real work\n")
    recorded = len(agent.history())
    arguments = json.loads(json.dumps(arguments).replace("{}", str(file)))
    if tool == "edit_text_file":
        arguments["file_hash"] = read.structured["file_hash"]
        arguments["operations"][0]["anchor"] = read.text.split("|")[0]
    result = agent.done(tool, **arguments)
    assert result.is_json or result.text.startswith(f"Nothing to change in {file}")
    assert "The file already has this content: no edit was recorded, and there is nothing to undo." in result.notes
    assert len(agent.history()) == recorded
    assert agent.done("Undo").structured["paths"] == [relative_name(agent, other)]


@pytest.mark.parametrize(("tool", "arguments"), CALLS_WITHOUT_CHANGES[:2])
def test_call_without_changes_leaves_nothing_to_undo(tmp_path: Path, tool: str, arguments: dict[str, Any]) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    (root / "file").write_text("one\n")
    with connected(root) as agent:
        agent.done(tool, **{**arguments, "path": "file"})
        assert agent.call("Undo").texts == [NOTHING_TO_UNDO]


def test_undone_edit_is_recorded_as_rejected_with_a_reason(agent: Agent, file: Path) -> None:
    number = agent.done("write_file", path=str(file), content="text\n").structured["edit"]
    agent.done("Undo")
    with Workspace.open(agent.root) as workspace:
        view = workspace.history.edit(number)
        decision = workspace.history.decisions()[-1].decision
    assert view.status is Status.REJECTED
    assert view.reason == "Taken back by the agent with Undo"
    assert (decision.action, decision.who) == (Action.REJECT, "test agent")


@pytest.mark.parametrize("tool", ["move_file", "write_file"])
def test_required_read_of_a_path_does_not_apply_to_a_file_moved_there(agent: Agent, folder: Path, tool: str) -> None:
    original, moved = folder / "here", folder / "there"
    original.write_text("one\n")
    agent.done("read_file", path=str(original))
    if tool == "move_file":
        agent.done("move_file", source=str(original), destination=str(moved))
    else:
        agent.done("write_file", path=str(moved), content="two\n")
    agent.done("Undo")
    agent.done("read_file", path=str(original))
    agent.done("move_file", source=str(original), destination=str(moved))
    edit(agent, moved, "one", "1")
    assert moved.read_text() == "1\n"


# ---- refused undo


def make_missing(file: Path) -> None:
    file.unlink()


def make_directory(file: Path) -> None:
    file.unlink()
    file.mkdir()


def make_link(file: Path) -> None:
    file.rename(file.with_name("elsewhere"))
    file.symlink_to("elsewhere")


def make_executable(file: Path) -> None:
    file.chmod(0o755)


@pytest.mark.parametrize(
    ("change_file", "kind", "reason"),
    [
        (make_missing, "file_not_found", "file missing"),
        (make_directory, "io_error", "is a directory, not a file"),
        (make_link, "symlink_error", "symbolic link in its place"),
        (make_executable, "stale_file", "hash or permissions mismatch"),
    ],
)
def test_undo_refuses_a_file_that_is_not_as_the_change_left_it(
    agent: Agent, file: Path, change_file: Callable[[Path], None], kind: str, reason: str
) -> None:
    agent.done("write_file", path=str(file), content="text\n")
    change_file(file)
    before = read_signature_fields(os.lstat(file)) if file.is_symlink() or file.exists() else None
    error = agent.call("Undo").error
    assert error["type"] == kind
    assert error["path"] == relative_name(agent, file)
    assert (error["reason"], error["message"]) == (reason, f"Cannot undo: {reason}: {relative_name(agent, file)}")
    assert error["hint"].startswith("Nothing was reverted.")
    assert (read_signature_fields(os.lstat(file)) if before else before) == before


def make_file(folder: Path) -> None:
    folder.write_text("a file\n")


def make_link_outside(folder: Path) -> None:
    folder.symlink_to(folder.parents[1] / "outside")


@pytest.mark.parametrize(
    ("change_file", "kind", "reason"),
    [
        (make_file, "invalid_request", "not a usable path ('k' is not a directory)"),
        (make_link_outside, "permission_denied", "permission denied"),
    ],
)
def test_undo_refuses_files_of_a_replaced_folder(
    tmp_path: Path, change_file: Callable[[Path], None], kind: str, reason: str
) -> None:
    root, outside = tmp_path / "workspace", tmp_path / "outside"
    (root / "k").mkdir(parents=True)
    outside.mkdir()
    (root / "k" / "a").write_text("text\n")
    with connected(root) as agent:
        agent.done("delete_file", path="k/a")
        (root / "k").rmdir()
        change_file(root / "k")
        error = agent.call("Undo").error
    assert (error["type"], error["path"]) == (kind, "k/a")
    assert (error["reason"], error["message"]) == (reason, f"Cannot undo: {reason}: k/a")
    assert "Nothing was reverted." in error["hint"]
    assert list(outside.iterdir()) == []


def test_one_changed_file_refuses_the_undo_of_all(agent: Agent, folder: Path) -> None:
    files = [folder / name for name in ("a", "b", "c")]
    for file in files:
        file.write_text("one\n")
    agent.done("apply_patches", strategy="atomic", patches=[{"file_path": str(file), "patch": DIFF} for file in files])
    files[-1].write_text("somebody's work\n")
    before = contents(folder)
    refused = agent.call("Undo")
    assert refused.error["type"] == "stale_file"
    assert refused.text == f"Cannot undo: hash mismatch: {relative_name(agent, files[-1])}"
    assert contents(folder) == before


def test_undo_reads_only_the_files_of_its_change(agent: Agent, folder: Path) -> None:
    (folder / "file").write_text("one\n")
    with (folder / "enormous").open("wb") as other:
        other.truncate(1 << 40)  # to read it would take longer than a client waits
    agent.done("write_file", path=str(folder / "new"), content="text\n")
    agent.done("Undo")
    assert sorted(path.name for path in folder.iterdir()) == ["enormous", "file"]


def test_undo_skips_files_that_a_change_left_unchanged(tmp_path: Path) -> None:
    directories = Directories([str(tmp_path)])
    session = Session()
    workspace, _ = directories.changing("file", lambda: None)
    (tmp_path / "a").write_bytes(b"one\n")
    with workspace.call(CallInfo(tool="many")) as call:
        for path, states in (("a", [b"two\n", b"one\n"]), ("b", [b"text\n"]), ("c", [b"text\n", None])):
            for state in states:
                call.delete(path) if state is None else call.write(path, state)
        session.changed(workspace.root, call.commit().edits)
    Tools(directories, session, ServerLimits()).Undo()
    assert contents(tmp_path) == {"a": b"one\n"}
    directories.close()


def test_undo_of_a_deletion_does_not_overwrite_a_new_file(agent: Agent, file: Path) -> None:
    file.write_text("text\n")
    agent.done("delete_file", path=str(file))
    file.write_text("somebody's work\n")
    error = agent.call("Undo").error
    assert (error["type"], error["reason"]) == ("file_exists", "file exists")
    assert file.read_text() == "somebody's work\n"


def test_undo_of_a_move_does_not_overwrite_a_new_file(agent: Agent, folder: Path) -> None:
    original, moved = folder / "here", folder / "there"
    original.write_text("text\n")
    agent.done("move_file", source=str(original), destination=str(moved))
    original.write_text("somebody's work\n")
    error = agent.call("Undo").error
    assert (error["type"], error["reason"], error["path"]) == (
        "file_exists",
        "already exists",
        relative_name(agent, original),
    )
    assert error["hint"].startswith("Nothing was reverted.")
    assert (original.read_text(), moved.read_text()) == ("somebody's work\n", "text\n")


def test_undo_does_not_revert_later_decisions(agent: Agent, file: Path) -> None:
    lines = [f"line {number}\n" for number in range(20)]
    file.write_text("".join(lines))
    earlier = edit(agent, file, "line 0\n", "first\n").structured["edit"]
    edit(agent, file, "line 19\n", "last\n")
    with Workspace.open(agent.root) as workspace:
        workspace.decide(Action.REJECT, workspace.find_units(str(earlier))[1])
    decided = file.read_text()
    assert decided == "".join([*lines[:-1], "last\n"])
    assert agent.call("Undo").error["reason"] == "hash mismatch"
    assert file.read_text() == decided
    with Workspace.open(agent.root) as workspace:
        workspace.decide(Action.RESET, workspace.find_units(str(earlier))[1])
    agent.done("Undo")
    assert file.read_text() == "".join(["first\n", *lines[1:]])


@pytest.mark.parametrize("other_edits", [[], [{"old_string": "two", "new_string": "2"}]], ids=["all", "part"])
def test_undo_is_refused_after_an_earlier_edit_was_rejected(
    agent: Agent, file: Path, other_edits: list[dict[str, str]]
) -> None:
    file.write_text("one\ntwo\n")
    earlier = edit(agent, file, "one\n", "X\none\n").structured["edit"]
    agent.done("multi_edit_text_file", path=str(file), edits=[*other_edits, {"old_string": "X\n", "new_string": ""}])
    after = file.read_text()
    with Workspace.open(agent.root) as workspace:
        decided = workspace.decide(Action.REJECT, workspace.find_units(str(earlier))[1])
    assert isinstance(decided, Decided)
    assert file.read_text() == after  # the file is as the change left it, but Undo would not restore the removed line
    error = agent.call("Undo").error
    assert (error["type"], error["path"]) == ("review_conflict", relative_name(agent, file))
    assert error["reason"] == "earlier edits have been decided on since"
    assert file.read_text() == after
    with Workspace.open(agent.root) as workspace:
        workspace.decide(Action.RESET, workspace.find_units(str(earlier))[1])
    agent.done("Undo")
    assert file.read_text() == "X\none\ntwo\n"


def test_undo_is_refused_after_an_earlier_change_of_permissions_was_rejected(agent: Agent, file: Path) -> None:
    file.write_text("one\n")
    file.chmod(0o750)
    backup = agent.done("backup_file", file_path=str(file)).structured["backup_file"]
    file.chmod(0o600)
    earlier = agent.done("restore_backup", backup_file=backup, force=True).structured["edit"]
    edit(agent, file, "one", "two")
    with Workspace.open(agent.root) as workspace:
        assert isinstance(workspace.decide(Action.REJECT, workspace.find_units(str(earlier))[1]), Decided)
    state_after = "two\n", 0o600
    assert (file.read_text(), file.stat().st_mode & 0o777) == state_after
    error = agent.call("Undo").error  # it would restore the bytes, but not the permissions
    assert (error["type"], error["reason"]) == ("review_conflict", "earlier edits have been decided on since")
    assert (file.read_text(), file.stat().st_mode & 0o777) == state_after


def test_undo_refuses_a_change_that_was_rejected_already(agent: Agent, file: Path) -> None:
    file.write_text("one\n")
    edits = [edit(agent, file, "one\n", "X\none\n"), edit(agent, file, "X\n", "")]
    with Workspace.open(agent.root) as workspace:
        for each in edits:
            workspace.decide(Action.REJECT, workspace.find_units(str(each.structured["edit"]))[1])
    assert file.read_text() == "one\n"
    error = agent.call("Undo").error
    assert error["message"] == "Cannot undo: a reviewer has rejected the change already"
    assert error["type"] == "review_conflict"


@pytest.mark.parametrize("is_new", [True, False])
def test_undo_of_a_rejected_change_reports_the_rejection(agent: Agent, file: Path, *, is_new: bool) -> None:
    if not is_new:
        file.write_text("one\n")
    change = agent.done("write_file", path=str(file), content="two\n").structured["edit"]
    with Workspace.open(agent.root) as workspace:
        workspace.decide(Action.REJECT, workspace.find_units(str(change))[1])
    assert agent.call("Undo").error["message"] == "Cannot undo: a reviewer has rejected the change already"
    assert file.exists() is not is_new
    with Workspace.open(agent.root) as workspace:
        workspace.decide(Action.RESET, workspace.find_units(str(change))[1])
    agent.done("Undo")
    assert file.exists() is not is_new


@pytest.mark.parametrize("part", ["", ":1"], ids=["all", "hunk"])
def test_undo_of_an_accepted_change_needs_approval(tmp_path: Path, part: str) -> None:
    file = tmp_path / "file"
    file.write_text("1\n2\n3\n4\n5\n")
    directories, session = Directories([str(tmp_path)]), Session()
    Tools(directories, session, ServerLimits()).multi_edit_text_file(
        str(file), [EditOp(old_string="1\n", new_string="one\n"), EditOp(old_string="5\n", new_string="five\n")]
    )
    with Workspace.open(tmp_path) as workspace:
        workspace.decide(Action.ACCEPT, workspace.find_units(f"1{part}")[1])
    with pytest.raises(Failure, match=r"^Cannot undo: a reviewer has accepted it: file$") as refusal:
        Tools(directories, session, ServerLimits()).Undo()
    assert refusal.value.kind is FailureKind.REVIEW_CONFLICT
    assert file.read_text() == "one\n2\n3\n4\nfive\n"
    with Workspace.open(tmp_path) as workspace:
        assert Status.ACCEPTED in workspace.history.edit(1).units
    change = session.last_change()
    assert change is not None
    approved_change = ApprovalContext(change, accepted_of(directories, change))
    Tools(directories, session, ServerLimits(), approval=approved_change).Undo()
    assert file.read_text() == "1\n2\n3\n4\n5\n"
    directories.close()


def test_change_accepted_during_the_undo_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    directories, session = Directories([str(tmp_path)]), Session()
    Tools(directories, session, ServerLimits()).write_file(str(file), "text\n")

    def accept_during_undo() -> None:
        with Workspace.open(tmp_path) as workspace:
            workspace.decide(Action.ACCEPT, workspace.find_units("1")[1])

    monkeypatch.setattr("mcptools.tools.undoing.checkpoint", accept_during_undo)  # right before the undo is recorded
    with pytest.raises(Failure, match=r"^Cannot undo: a reviewer decided on it at the same moment: file$"):
        Tools(directories, session, ServerLimits()).Undo()
    assert file.read_text() == "text\n"
    with Workspace.open(tmp_path) as workspace:
        assert workspace.history.edit(1).status is Status.ACCEPTED
    directories.close()


def test_undo_refuses_a_change_that_later_edits_depend_on(agent: Agent, file: Path) -> None:
    file.write_text("one\n")
    edit(agent, file, "one", "two")
    with connected(agent.root) as other:
        edit(other, file, "two", "three")
        edit(other, file, "three", "two")
    # The bytes are those of the change, but a later edit wrote them.
    assert agent.call("Undo").error["type"] == "review_conflict"
    assert file.read_text() == "two\n"


def test_undo_takes_no_arguments(agent: Agent) -> None:
    tool = next(tool for tool in agent.tools() if tool.name == "Undo")
    assert tool.input_schema == {"type": "object", "properties": {}, "additionalProperties": False}
    assert agent.call("Undo", path="/etc/passwd").error["code"] == -32600


def test_two_concurrent_undos_revert_one_change_once(agent: Agent, file: Path) -> None:
    file.write_text("one\n")
    edit(agent, file, "one", "two")
    agent.done("read_file", path=str(file))
    results = agent.call_concurrently([("Undo", {}), ("Undo", {})])
    assert sorted(result.refused for result in results) == [False, True]
    assert file.read_text() == "one\n"


def test_undo_refuses_a_change_made_after_the_approval(tmp_path: Path) -> None:
    directories, session = Directories([str(tmp_path)]), Session()
    approved_change = ApprovalContext(session.last_change())  # the state at which approval would have been requested
    Tools(directories, session, ServerLimits()).write_file("file", "text\n")
    with pytest.raises(Failure, match="is no longer the one") as refusal:
        Tools(directories, session, ServerLimits(), approval=approved_change).Undo()
    assert refusal.value.kind is FailureKind.NOT_APPROVED
    assert (tmp_path / "file").read_text() == "text\n"
    Tools(directories, session, ServerLimits(), approval=ApprovalContext(session.last_change())).Undo()
    assert not (tmp_path / "file").exists()
    with pytest.raises(Failure, match=NOTHING_TO_UNDO):
        Tools(directories, session, ServerLimits(), approval=ApprovalContext(session.last_change())).Undo()
    directories.close()
