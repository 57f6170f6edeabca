"""`backup_file` and `restore_backup` over the wire: every result, behaviour and example of their contract."""

import json
import os
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from objstore import Action, Operation, Workspace
from tests.support.mcp_agent import Agent, connected
from tests.support.raw_client import started, tool_call, unprivileged_server

PATCH = "--- f\n+++ f\n@@ -1 +1 @@\n-one\n+two\n"
MODIFIED_AT = 1_000_000_000_123_456_789  # nanoseconds
ACCESSED_AT = MODIFIED_AT - 3_000_000_000


def make_backup(agent: Agent, file: Path) -> str:
    name: str = agent.done("backup_file", file_path=str(file)).structured["backup_file"]
    return name


# ---- backup_file


def test_backup_create(agent: Agent, folder: Path) -> None:
    file = folder / "config.py"
    file.write_text("one\n")
    result = agent.done("backup_file", file_path=str(file))
    name = result.structured["backup_file"]
    assert re.fullmatch(re.escape(str(file)) + r"\.backup\.\d{8}_\d{6}", name)
    assert Path(name).read_text() == "one\n"
    assert (
        result.structured.items()
        >= {
            "success": True,
            "original_file": str(file),
            "backup_size": 4,
            "message": "Backup created successfully",
        }.items()
    )


def test_backup_path_has_the_form_of_the_given_path(agent: Agent, folder: Path) -> None:
    (folder / "database.py").write_text("one\n")
    path = f"{folder.name}/database.py"
    result = agent.done("backup_file", file_path=path)
    assert result.structured["original_file"] == path
    assert result.structured["backup_file"].startswith(f"{path}.backup.")
    assert (agent.root / result.structured["backup_file"]).exists()


def test_backup_of_a_read_only_file_can_be_rejected(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("one\n")
    (tmp_path / "f").chmod(0o444)
    with started(tmp_path, command=unprivileged_server()) as raw:
        raw.send(tool_call(1, "backup_file", file_path="f"))
        name = raw.answer(1)["result"]["structuredContent"]["backup_file"]
    assert (tmp_path / name).stat().st_mode & 0o777 == 0o444
    with Workspace.open(tmp_path) as workspace:
        workspace.decide(Action.REJECT, workspace.find_units("1")[1])
    assert sorted(path.name for path in tmp_path.iterdir()) == [".cas", "f"]


def test_backup_is_no_edit_that_undo_takes_back(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    file = root / "config.py"
    file.write_text("one\n")
    with connected(root) as agent:
        first = Path(make_backup(agent, file))
        assert agent.call("Undo").text == "No edits have been applied to any file with this session."
        agent.done("apply_patch", file_path=str(file), patch=PATCH)
        second = Path(make_backup(agent, file))
        assert agent.done("Undo").structured["paths"] == ["config.py"]
        assert file.read_text() == "one\n"
        assert agent.call("Undo").text == "No edits have been applied to any file with this session."
    assert (first.read_text(), second.read_text()) == ("one\n", "two\n")


@pytest.mark.parametrize(("strategy", "options"), [("progressive", {}), ("backup_restore", {"keep_backup": True})])
def test_undo_of_a_patch_leaves_its_backup_alone(
    agent: Agent, folder: Path, strategy: str, options: dict[str, bool]
) -> None:
    file = folder / "f"
    file.write_text("one\n")
    patches = [{"file_path": str(file), "patch": PATCH}]
    backup = agent.done("apply_patches", strategy=strategy, patches=patches, **options).structured["backup_file"]
    assert agent.done("Undo").structured["paths"] == [os.path.relpath(file, agent.root)]
    assert (file.read_text(), Path(backup).read_text()) == ("one\n", "one\n")


def test_undo_takes_back_a_restore(agent: Agent, folder: Path) -> None:
    file = folder / "f"
    file.write_text("one\n")
    backup = make_backup(agent, file)
    agent.done("apply_patch", file_path=str(file), patch=PATCH)
    agent.done("restore_backup", backup_file=backup)
    agent.done("Undo")
    assert (file.read_text(), Path(backup).read_text()) == ("two\n", "one\n")


def test_backup_keeps_permissions_and_times(agent: Agent, folder: Path) -> None:
    file = folder / "script.sh"
    file.write_text("one\n")
    file.chmod(0o750)
    os.utime(file, ns=(ACCESSED_AT, MODIFIED_AT))
    stat = Path(make_backup(agent, file)).stat()
    assert (stat.st_mode & 0o7777, stat.st_atime_ns, stat.st_mtime_ns) == (0o750, ACCESSED_AT, MODIFIED_AT)
    assert file.stat().st_mtime_ns == MODIFIED_AT


def test_backup_is_recorded_as_a_creation(agent: Agent, folder: Path) -> None:
    file = folder / "f"
    file.write_text("one\n")
    result = agent.done("backup_file", file_path=str(file), mcp_conversation_id="backups")
    view = agent.history()[-1]
    assert (view.seq, view.edit.operation, view.edit.tool, view.edit.conversation) == (
        result.structured["edit"],
        Operation.CREATE,
        "backup_file",
        "backups",
    )
    assert result.structured["mcp_conversation_id"] == "backups"
    assert os.fsdecode(view.edit.path) == os.path.relpath(result.structured["backup_file"], agent.root)


def test_backups_of_one_second_get_distinct_names_and_none_is_dated_later(agent: Agent, folder: Path) -> None:
    file = folder / "f"
    began = datetime.now().astimezone().replace(microsecond=0)
    names = []
    for number in range(3):
        file.write_text(f"{number}\n")
        name = make_backup(agent, file)
        names.append(name)
        made = datetime.strptime(name[-15:], "%Y%m%d_%H%M%S").astimezone()
        assert began <= made <= datetime.now().astimezone()
    assert sorted(set(names)) == names
    assert [Path(name).read_text() for name in names] == ["0\n", "1\n", "2\n"]


def test_parallel_backups_of_a_file_get_distinct_names(agent: Agent, folder: Path) -> None:
    file = folder / "f"
    file.write_text("one\n")
    results = agent.call_concurrently([("backup_file", {"file_path": str(file)})] * 2)
    names = {result.structured["backup_file"] for result in results}
    assert [Path(name).read_text() for name in names] == ["one\n", "one\n"]


def test_backup_of_a_missing_file_is_refused(agent: Agent, folder: Path) -> None:
    path = str(folder / "config.py")
    result = agent.call("backup_file", file_path=path)
    assert result.refused
    assert (
        result.structured.items()
        >= {
            "success": False,
            "original_file": path,
            "error": f"File not found: {path}",
            "error_type": "file_not_found",
        }.items()
    )


# ---- restore_backup


def test_restore_success(agent: Agent, folder: Path) -> None:
    file = folder / "config.py"
    file.write_text("one\n")
    backup = make_backup(agent, file)
    agent.done("apply_patch", file_path=str(file), patch=PATCH)
    assert file.read_text() == "two\n"
    result = agent.done("restore_backup", backup_file=backup)
    assert file.read_text() == "one\n"
    assert (
        result.structured.items()
        >= {
            "success": True,
            "backup_file": backup,
            "restored_to": str(file),
            "restored_size": 4,
            "message": "Successfully restored from backup",
        }.items()
    )
    view = agent.history()[-1]
    assert (view.seq, view.edit.operation, view.edit.tool) == (
        result.structured["edit"],
        Operation.REPLACE,
        "restore_backup",
    )
    assert Path(backup).exists()


def test_restore_keeps_permissions_and_times_of_the_backup(agent: Agent, folder: Path) -> None:
    file = folder / "script.sh"
    file.write_text("one\n")
    file.chmod(0o750)
    os.utime(file, ns=(ACCESSED_AT, MODIFIED_AT))
    backup = make_backup(agent, file)
    agent.done("apply_patch", file_path=str(file), patch=PATCH)
    file.chmod(0o600)
    agent.done("restore_backup", backup_file=backup, force=True)
    stat = file.stat()
    assert (stat.st_mode & 0o7777, stat.st_atime_ns, stat.st_mtime_ns) == (0o750, ACCESSED_AT, MODIFIED_AT)
    assert file.read_text() == "one\n"


def test_restore_to_different_location(agent: Agent, folder: Path) -> None:
    file, target = folder / "app.py", folder / "new" / "folder" / "app_recovered.py"
    file.write_text("one\n")
    backup = make_backup(agent, file)
    result = agent.done("restore_backup", backup_file=backup, target_file=str(target))
    assert result.structured["restored_to"] == str(target)
    assert (target.read_text(), file.read_text()) == ("one\n", "one\n")


def test_restore_with_force(agent: Agent, folder: Path) -> None:
    file = folder / "data.json"
    file.write_text("one\n")
    backup = make_backup(agent, file)
    file.write_text("somebody's work\n")
    result = agent.call("restore_backup", backup_file=backup)
    assert (
        result.structured.items()
        >= {
            "success": False,
            "backup_file": backup,
            "error": f"Target has been modified since backup: {file}",
            "error_type": "context_mismatch",
        }.items()
    )
    assert file.read_text() == "somebody's work\n"
    forced = agent.done("restore_backup", backup_file=backup, force=True)
    assert file.read_text() == "one\n"
    assert "stays in the history" in forced.notes
    # The overwritten content is kept in the store.
    before = agent.history()[-1].edit.before
    assert before is not None
    with Workspace.open(agent.root) as workspace:
        assert workspace.history.blob(before.blob) == b"somebody's work\n"


@pytest.mark.parametrize("is_edited", [True, False])
def test_changed_permissions_are_restored_only_with_force(agent: Agent, folder: Path, *, is_edited: bool) -> None:
    file = folder / "run.sh"
    file.write_text("one\n")
    file.chmod(0o644)
    backup = make_backup(agent, file)
    if is_edited:
        agent.done("apply_patch", file_path=str(file), patch=PATCH)
    content = file.read_text()
    file.chmod(0o755)
    result = agent.call("restore_backup", backup_file=backup)
    assert result.structured["error"] == f"Target has been modified since backup: {file}"
    assert result.structured["error_type"] == "context_mismatch"
    assert is_edited or "Its permissions are 755, and the backup's 644." in result.structured["hint"]
    assert (file.read_text(), file.stat().st_mode & 0o777) == (content, 0o755)
    forced = agent.done("restore_backup", backup_file=backup, force=True)
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("one\n", 0o644)
    assert "Its permissions were 755 and are now the backup's, 644; the history has both." in forced.notes
    change = agent.history()[-1].edit
    assert change.before is not None
    assert (change.tool, change.before.mode) == ("restore_backup", 0o755)


def test_edit_after_an_external_change_does_not_allow_restoring_over_it(agent: Agent, folder: Path) -> None:
    file = folder / "f"
    file.write_text("one\ntwo\n")
    backup = make_backup(agent, file)
    file.write_text("one\ntwo\na person's\n")
    patch = "--- f\n+++ f\n@@ -1,2 +1,2 @@\n-one\n+ONE\n two\n"
    assert agent.done("apply_patch", file_path=str(file), patch=patch).structured["changed_since_read"] is True
    result = agent.call("restore_backup", backup_file=backup)
    assert result.structured["error_type"] == "context_mismatch"
    assert file.read_text() == "ONE\ntwo\na person's\n"


def test_backup_does_not_count_as_reading(folder: Path) -> None:
    file = folder / "f"
    file.write_text("one\n")
    with connected(folder, options=["--require-read"]) as agent:
        make_backup(agent, file)
        assert agent.call("write_file", path=str(file), content="mine\n").refused


def test_restore_backup_not_found(agent: Agent, folder: Path) -> None:
    path = str(folder / "config.py.backup.20250117_143052")
    result = agent.call("restore_backup", backup_file=path)
    assert result.refused
    assert (
        result.structured.items()
        >= {
            "success": False,
            "backup_file": path,
            "error": "Backup file not found",
            "error_type": "file_not_found",
        }.items()
    )


def test_deleted_file_is_restored_with_its_folder(agent: Agent, folder: Path) -> None:
    file = folder / "sub" / "f"
    file.parent.mkdir()
    file.write_text("one\n")
    backup = Path(make_backup(agent, file))
    moved_backup = folder / backup.name
    backup.rename(moved_backup)
    file.unlink()
    file.parent.rmdir()
    agent.done("restore_backup", backup_file=str(moved_backup), target_file=str(file))
    assert file.read_text() == "one\n"


def test_restore_of_the_current_content_records_nothing(agent: Agent, folder: Path) -> None:
    file = folder / "f"
    file.write_text("one\n")
    backup = make_backup(agent, file)
    before = len(agent.history())
    assert agent.done("restore_backup", backup_file=backup).structured["edit"] == 0
    assert len(agent.history()) == before


@pytest.mark.parametrize("name", ["f", "f.backup.123", "f.backup.20250117_143052.txt", ".backup.20250117_143052"])
def test_backup_without_the_original_in_its_name_needs_a_target(agent: Agent, folder: Path, name: str) -> None:
    (folder / name).write_text("one\n")
    result = agent.call("restore_backup", backup_file=str(folder / name))
    assert result.structured["error_type"] == "io_error"
    assert "Cannot derive the original location" in result.text
    agent.done("restore_backup", backup_file=str(folder / name), target_file=str(folder / "target"))
    assert (folder / "target").read_text() == "one\n"


def test_restore_over_another_sessions_change_needs_force(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    file = root / "f"
    file.write_text("one\n")
    with connected(root) as agent:
        backup = make_backup(agent, file)
        agent.done("apply_patch", file_path="f", patch=PATCH)
    with connected(root) as agent:
        assert agent.call("restore_backup", backup_file=backup).structured["error_type"] == "context_mismatch"
        agent.done("read_file", path="f")
        assert agent.call("restore_backup", backup_file=backup).structured["error_type"] == "context_mismatch"
        assert file.read_text() == "two\n"
        agent.done("restore_backup", backup_file=backup, force=True)
    assert file.read_text() == "one\n"


def test_external_change_since_the_backup_is_overwritten_only_with_force(agent: Agent, folder: Path) -> None:
    file = folder / "f"
    file.write_text("one\n")
    backup = make_backup(agent, file)
    file.write_text("a person's\n")
    agent.done("read_file", path=str(file))  # reading the file is not enough
    assert agent.call("restore_backup", backup_file=backup).structured["error_type"] == "context_mismatch"
    make_backup(agent, file)  # nor is a later backup of the changed file
    assert agent.call("restore_backup", backup_file=backup).structured["error_type"] == "context_mismatch"
    agent.done("write_file", path=str(file), content="a person's\nmine\n")  # nor is a later edit of the changed file
    assert agent.call("restore_backup", backup_file=backup).structured["error_type"] == "context_mismatch"
    assert file.read_text() == "a person's\nmine\n"
    agent.done("restore_backup", backup_file=backup, force=True)
    assert file.read_text() == "one\n"


OWN_CALLS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "write_file": [("write_file", {"path": "{f}", "content": "two\n"})],
    "apply_patch": [("apply_patch", {"file_path": "{f}", "patch": PATCH})],
    "multi_edit_text_file": [
        ("multi_edit_text_file", {"path": "{f}", "edits": [{"old_string": "one", "new_string": "two"}]})
    ],
    "several edits": [
        ("apply_patch", {"file_path": "{f}", "patch": PATCH}),
        ("write_file", {"path": "{f}", "content": "two\nthree\n"}),
        ("edit_file_diff", {"path": "{f}", "diff": "--- f\n+++ f\n@@ -1,2 +1 @@\n two\n-three\n"}),
    ],
    "an edit and back": [
        ("apply_patch", {"file_path": "{f}", "patch": PATCH}),
        ("revert_patch", {"file_path": "{f}", "patch": PATCH}),
        ("apply_patch", {"file_path": "{f}", "patch": PATCH}),
    ],
    "a later backup and an edit": [
        ("apply_patch", {"file_path": "{f}", "patch": PATCH}),
        ("backup_file", {"file_path": "{f}"}),
        ("write_file", {"path": "{f}", "content": "three\n"}),
    ],
    "a deletion and a creation": [
        ("delete_file", {"path": "{f}"}),
        ("write_file", {"path": "{f}", "content": "two\n"}),
    ],
    "a move, an edit, and back": [
        ("move_file", {"source": "{f}", "destination": "{f}.moved"}),
        ("write_file", {"path": "{f}.moved", "content": "two\n"}),
        ("move_file", {"source": "{f}.moved", "destination": "{f}"}),
    ],
    "an edit that was undone": [
        ("apply_patch", {"file_path": "{f}", "patch": PATCH}),
        ("write_file", {"path": "{f}", "content": "three\n"}),
        ("Undo", {}),
        ("read_file", {"path": "{f}"}),
    ],
    "a move that was undone": [
        ("apply_patch", {"file_path": "{f}", "patch": PATCH}),
        ("move_file", {"source": "{f}", "destination": "{f}.moved"}),
        ("Undo", {}),
        ("read_file", {"path": "{f}"}),
    ],
    "patches together": [
        ("apply_patches", {"strategy": "atomic", "patches": [{"file_path": "{f}", "patch": PATCH}]}),
    ],
}


def filled(arguments: dict[str, Any], file: Path) -> dict[str, Any]:
    """Return the arguments of a call on a file."""
    made: dict[str, Any] = json.loads(json.dumps(arguments).replace("{f}", str(file)))
    return made


@pytest.mark.parametrize("calls", OWN_CALLS.values(), ids=OWN_CALLS.keys())
def test_sessions_own_changes_since_the_backup_are_taken_back_without_force(
    agent: Agent, folder: Path, calls: list[tuple[str, dict[str, Any]]]
) -> None:
    file = folder / "f"
    file.write_text("one\n")
    backup = make_backup(agent, file)
    for tool, arguments in calls:
        agent.done(tool, **filled(arguments, file))
    assert file.read_text() != "one\n"
    agent.done("restore_backup", backup_file=backup)
    assert file.read_text() == "one\n"
    view = agent.history()[-1]
    assert view.edit.tool == "restore_backup"


@pytest.mark.parametrize("calls", OWN_CALLS.values(), ids=OWN_CALLS.keys())
@pytest.mark.parametrize("is_first", [True, False])
def test_change_by_somebody_else_before_or_after_the_sessions_own_is_overwritten_only_with_force(
    agent: Agent, folder: Path, calls: list[tuple[str, dict[str, Any]]], *, is_first: bool
) -> None:
    file = folder / "f"
    file.write_text("one\n")
    backup = make_backup(agent, file)

    def change() -> None:
        file.write_text(f"{file.read_text()}a person's\n")

    if is_first:
        change()
    for tool, arguments in calls:
        agent.call(tool, **filled(arguments, file))
    if not is_first:
        change()
    text = file.read_text()
    result = agent.call("restore_backup", backup_file=backup)
    # What the session itself deleted or overwrote as a whole is not in the file any more, and in the history.
    if "a person's" in text:
        assert result.text == f"Target has been modified since backup: {file}"
        assert result.structured["hint"].startswith("Pass force=true")
        assert file.read_text() == text
        agent.done("restore_backup", backup_file=backup, force=True)
        assert file.read_text() == "one\n"


@pytest.mark.parametrize(("strategy", "options"), [("progressive", {}), ("backup_restore", {"keep_backup": True})])
def test_backup_made_by_apply_patches_is_restored_like_any_other(
    agent: Agent, folder: Path, strategy: str, options: dict[str, bool]
) -> None:
    file = folder / "f"
    file.write_text("one\n")
    patches = [{"file_path": str(file), "patch": PATCH}]
    backup = agent.done("apply_patches", strategy=strategy, patches=patches, **options).structured["backup_file"]
    assert file.read_text() == "two\n"
    agent.done("restore_backup", backup_file=backup)
    assert file.read_text() == "one\n"


def test_change_that_a_person_decided_on_is_overwritten_only_with_force(agent: Agent, folder: Path) -> None:
    file = folder / "f"
    file.write_text("one\n")
    backup = make_backup(agent, file)
    agent.done("apply_patch", file_path=str(file), patch=PATCH)
    number = agent.done("write_file", path=str(file), content="two\nthree\n").structured["edit"]
    with Workspace.open(agent.root) as workspace:
        workspace.decide(Action.REJECT, workspace.find_units(str(number))[1])
    assert file.read_text() == "two\n"
    assert agent.call("restore_backup", backup_file=backup).structured["error_type"] == "context_mismatch"
    assert file.read_text() == "two\n"


def test_edit_of_another_session_between_own_edits_is_overwritten_only_with_force(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    file = root / "f"
    file.write_text("one\n")
    with connected(root) as agent, connected(root) as other:
        backup = make_backup(agent, file)
        agent.done("apply_patch", file_path="f", patch=PATCH)
        other.done("read_file", path="f")
        other.done("write_file", path="f", content="two\nthe other's\n")
        assert agent.call("restore_backup", backup_file=backup).structured["error_type"] == "context_mismatch"
        agent.done("apply_patch", file_path="f", patch="--- f\n+++ f\n@@ -1 +1 @@\n-two\n+2\n")
        assert agent.call("restore_backup", backup_file=backup).structured["error_type"] == "context_mismatch"
    assert file.read_text() == "2\nthe other's\n"


def test_file_that_the_session_created_is_replaced_by_a_backup_without_force(agent: Agent, folder: Path) -> None:
    file, target = folder / "f", folder / "recovered"
    file.write_text("one\n")
    backup = make_backup(agent, file)
    for _ in range(2):
        agent.done("restore_backup", backup_file=backup, target_file=str(target))
        agent.done("write_file", path=str(target), content="tried\n")
    (folder / "person's").write_text("theirs\n")
    agent.done("move_file", source=str(folder / "person's"), destination=str(folder / "moved"))
    refused = agent.call("restore_backup", backup_file=backup, target_file=str(folder / "moved"))
    assert refused.structured["error_type"] == "context_mismatch"
    assert (folder / "moved").read_text() == "theirs\n"


def test_unchanged_target_is_restored_though_it_may_not_be_written_or_was_never_read(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    file = root / "f"
    file.write_text("one\n")
    file.chmod(0o444)
    with connected(root, options=["--require-read"]) as agent:
        backup = make_backup(agent, file)
        assert agent.done("restore_backup", backup_file=backup).structured["edit"] == 0
        assert agent.call("write_file", path=str(file), content="mine\n").refused
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("one\n", 0o444)


def test_refused_restore_creates_no_store(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    for name, content in (("f", "one\n"), ("same size", "two\n"), ("longer", "another\n"), ("f.bak", "one\n")):
        (root / name).write_text(content)
    (root / "f").chmod(0o600)
    with connected(root) as agent:
        for target in ("same size", "longer", "f"):
            result = agent.call("restore_backup", backup_file="f.bak", target_file=target)
            assert result.text == f"Target has been modified since backup: {target}"
    assert not (root / ".cas").exists()


def test_deleted_target_is_restored_without_force(agent: Agent, folder: Path) -> None:
    file = folder / "f"
    file.write_text("one\n")
    backup = make_backup(agent, file)
    agent.done("delete_file", path=str(file))
    agent.done("restore_backup", backup_file=backup)
    assert file.read_text() == "one\n"
