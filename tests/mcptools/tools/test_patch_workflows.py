"""The recovery patterns and workflows of the patch tools' document, as it prints them, over a server's tools."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.support.mcp_agent import Agent, connected
from tests.support.mounts import can_mount, small_disk
from tests.support.patch_document import DocumentsCode

CONFIG = "DEBUG = False\nPORT = 8000\n"
PATCH = "--- config.py\n+++ config.py\n@@ -1,2 +1,2 @@\n-DEBUG = False\n+DEBUG = True\n PORT = 8000\n"
STALE = PATCH.replace("8000", "9000")
PATCHED = CONFIG.replace("False", "True")
SECOND = "--- f\n+++ f\n@@ -2 +2 @@\n-PORT = 8000\n+PORT = 9000\n"

Hook: TypeAlias = Callable[[str, dict[str, object]], object]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "workspace"
    root.mkdir()
    monkeypatch.chdir(root)
    return root


@contextmanager
def document(root: Path, *, before: Hook = lambda _tool, _arguments: None) -> Iterator[tuple[Agent, DocumentsCode]]:
    with connected(root) as agent:
        yield agent, DocumentsCode(agent, before=before)


def states(root: Path) -> dict[str, tuple[str, int]]:
    """Return the content and mode of each file that is no backup and no part of the store."""
    return {
        path.name: (path.read_text(), path.stat().st_mode & 0o7777)
        for path in root.iterdir()
        if path.is_file() and ".backup." not in path.name
    }


# ---- recovery patterns


def test_pattern_1_as_printed_reverts_all_patches_after_the_first_failure(root: Path) -> None:
    (root / "f").write_text(CONFIG)
    with document(root) as (_, code):
        failed = code.pattern("apply_patches_with_revert")("f", [PATCH, SECOND, STALE])
        assert (failed["patches_applied"], failed["failed_at"], failed["reverted"]) == (2, 3, True)
        assert (root / "f").read_text() == CONFIG
        done = code.pattern("apply_patches_with_revert")("f", [PATCH, SECOND])
        assert (done["success"], done["message"]) == (True, "Successfully applied 2 patches")
    assert (root / "f").read_text() == "DEBUG = True\nPORT = 9000\n"


def test_pattern_2_as_printed_restores_after_a_failure(root: Path) -> None:
    (root / "f").write_text(CONFIG)
    with document(root) as (_, code):
        failed = code.pattern("apply_patch_with_backup")("f", STALE)
        assert (failed["success"], failed["phase"], failed["restored"]) == (False, "apply", True)
        assert states(root) == {"f": (CONFIG, (root / "f").stat().st_mode & 0o7777)}
        kept = code.pattern("apply_patch_with_backup")("f", PATCH, keep_backup=True)
        assert ((root / kept["backup_file"]).read_text(), (root / "f").read_text()) == (CONFIG, PATCHED)
        (root / "f").chmod(0o444)
        refused = code.pattern("apply_patch_with_backup")("f", PATCH)
        assert (refused["phase"], refused["restored"]) == ("apply", True)


BATCHES = {
    "the same file twice": [("x", PATCH), ("y", PATCH), ("x", PATCH.replace("True", "None"))],
    "the same file twice in a row": [("x", PATCH), ("x", PATCH), ("y", PATCH)],
    "a read-only file at the end": [("x", PATCH), ("y", PATCH), ("read only", PATCH)],
    "a read-only file first": [("read only", PATCH), ("x", PATCH)],
    "one file three times": [("x", PATCH), ("x", SECOND), ("x", PATCH)],
}


@pytest.mark.parametrize("batch", BATCHES.values(), ids=BATCHES.keys())
def test_pattern_3_as_printed_rolls_every_file_back(
    root: Path, batch: list[tuple[str, str]], caplog: pytest.LogCaptureFixture
) -> None:
    for name, mode in (("x", 0o644), ("y", 0o600), ("read only", 0o444)):
        (root / name).write_text(CONFIG)
        (root / name).chmod(mode)
    before = states(root)
    with document(root) as (agent, code):
        result = code.pattern("apply_patches_atomic")(batch)
        assert (result["success"], result["phase"], result["rolled_back"]) == (False, "apply", True), result
        recorded = {view.edit.tool for view in agent.history()}
    assert "CRITICAL" not in caplog.text
    assert states(root) == before
    assert recorded - {"backup_file"} in ({"apply_patch", "restore_backup"}, set())


def test_pattern_3_as_printed_applies_all_or_reports_what_does_not_fit(root: Path) -> None:
    for name in ("x", "y"):
        (root / name).write_text(CONFIG)
    with document(root) as (_, code):
        refused = code.pattern("apply_patches_atomic")([("x", PATCH), ("y", STALE)])
        assert (refused["phase"], refused["failed"]) == ("validation", 1)
        assert refused["failures"][0]["file"] == "y"
        assert states(root).keys() == {"x", "y"}
        done = code.pattern("apply_patches_atomic")([("x", PATCH), ("y", PATCH)])
        assert (done["success"], done["applied"]) == (True, 2)
    assert {content for content, _ in states(root).values()} == {PATCHED}
    assert list(root.glob("*.backup.*")) == []


def test_pattern_3_as_printed_rolls_back_without_what_somebody_else_changed(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("x", "y", "z"):
        (root / name).write_text(CONFIG)

    def change(tool: str, arguments: dict[str, object]) -> None:
        if tool == "apply_patch" and arguments["file_path"] == "z":
            (root / "y").write_text(f"{PATCHED}# a person's\n")
            (root / "z").write_text("# all a person's\n")

    with document(root, before=change) as (_, code):
        result = code.pattern("apply_patches_atomic")([("x", PATCH), ("y", PATCH), ("z", PATCH)])
    assert (result["phase"], result["failed_at"]) == ("apply", "z")
    assert (root / "x").read_text() == CONFIG
    assert (root / "y").read_text() == f"{PATCHED}# a person's\n"
    assert (root / "z").read_text() == "# all a person's\n"
    assert caplog.text.count("CRITICAL: Cannot restore") == 2


def test_pattern_3_as_printed_rolls_back_on_a_disk_below_its_reserve(
    root: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    reserve = 256 << 10

    def fill(tool: str, arguments: dict[str, object]) -> None:
        if tool == "apply_patch" and arguments["file_path"] == "y":
            disk = os.statvfs(root)
            (root / "full").write_bytes(bytes(disk.f_bavail * disk.f_frsize - reserve // 2))

    if can_mount(root):
        with small_disk(root):
            monkeypatch.chdir(root)
            for name in ("x", "y"):
                (root / name).write_text(CONFIG)
            with connected(root, options=["--min-free-space", str(reserve)]) as agent:
                code = DocumentsCode(agent, before=fill)
                result = code.pattern("apply_patches_atomic")([("x", PATCH), ("y", PATCH)])
            assert result["error"].startswith("Insufficient disk space"), result
            assert [(root / name).read_text() for name in ("x", "y")] == [CONFIG, CONFIG]
            monkeypatch.chdir(root.parent)
        assert "CRITICAL" not in caplog.text


def test_pattern_4_as_printed_reports_each_step(root: Path) -> None:
    (root / "f").write_text(CONFIG)
    with document(root) as (_, code):
        stale = code.pattern("apply_patch_progressive")("f", STALE)
        assert (stale["failed_at"], stale["error_type"]) == ("validation", "context_mismatch")
        assert list(stale["steps"]) == ["safety_check", "validation"]
        done = code.pattern("apply_patch_progressive")("f", PATCH)
        assert {step: report["passed"] for step, report in done["steps"].items()} == dict.fromkeys(
            ("safety_check", "validation", "backup", "apply"), True
        )
        assert (root / done["backup_file"]).read_text() == CONFIG
    assert (root / "f").read_text() == PATCHED


def test_pattern_4_as_printed_restores_a_file_that_can_not_be_written(root: Path) -> None:
    (root / "f").write_text(CONFIG)

    def protect(tool: str, _arguments: dict[str, object]) -> None:
        if tool == "backup_file":
            (root / "f").chmod(0o444)

    with document(root, before=protect) as (_, code):
        result = code.pattern("apply_patch_progressive")("f", PATCH)
    assert (result["failed_at"], result["error_type"]) == ("apply", "permission_denied")
    assert result["steps"]["restore"]["passed"] is True
    assert states(root) == {"f": (CONFIG, 0o444)}


# ---- workflows


def test_full_workflow_safe_patch(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Workflow 1: validate, back up, apply."""
    (root / "config.py").write_text(CONFIG)
    with document(root) as (_, code):
        done = code.workflow("workflow 1", tmp_path, patch=PATCH)
        assert done["result"]["changes"] == {"lines_added": 1, "lines_removed": 1, "hunks_applied": 1}
        assert (root / "config.py").read_text() == PATCHED
        assert (root / done["backup"]["backup_file"]).read_text() == CONFIG
        assert code.calls == ["validate_patch", "backup_file", "apply_patch"]
        with pytest.raises(SystemExit):
            code.workflow("workflow 1", tmp_path, patch=PATCH)
    assert "Cannot apply: Context mismatch at line 1" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["restore workflow 1", "complete workflow"])
def test_full_workflow_with_recovery(root: Path, tmp_path: Path, name: str) -> None:
    """Back up, fail to apply, restore."""
    for file in ("config.py", "important.py"):
        (root / file).write_text(CONFIG)
    with document(root) as (_, code):
        done = code.workflow(name, tmp_path, patch=STALE, experimental_patch=STALE)
        assert code.calls == ["backup_file", "apply_patch", "restore_backup"]
        assert name == "restore workflow 1" or done["restore_result"]["message"] == "Successfully restored from backup"
        assert {content for content, _ in states(root).values()} == {CONFIG}
        code.workflow(name, tmp_path, patch=PATCH, experimental_patch=PATCH)
        assert code.calls[3:] == ["backup_file", "apply_patch"]
    assert sorted(content for content, _ in states(root).values()) == [CONFIG, PATCHED]


def test_workflow_dry_run_before_apply(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Workflow 2: dry run, backup, apply."""
    (root / "app.py").write_text(CONFIG)
    with document(root) as (_, code):
        done = code.workflow("workflow 2", tmp_path, patch=PATCH)
        assert done["real_result"]["changes"] == done["dry_result"]["changes"]
        code.workflow("workflow 2", tmp_path, patch=PATCH)
    printed = capsys.readouterr().out
    assert printed.startswith("Dry run successful, would change 1 lines\nPatch applied successfully\n")
    assert "Dry run failed: Context mismatch at line 1" in printed


def test_batch_atomic_workflow(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Workflow 3: a batch is applied completely or not at all."""
    for name in ("file1.py", "file2.py", "file3.py"):
        (root / name).write_text(CONFIG)
    with document(root) as (_, code):
        code.workflow("workflow 3", tmp_path, patch1=PATCH, patch2=PATCH, patch3=STALE)
        assert {content for content, _ in states(root).values()} == {CONFIG}
        (root / "file3.py").chmod(0o444)
        code.workflow("workflow 3", tmp_path, patch1=PATCH, patch2=PATCH, patch3=PATCH)
        assert {content for content, _ in states(root).values()} == {CONFIG}
        (root / "file3.py").chmod(0o644)
        code.workflow("workflow 3", tmp_path, patch1=PATCH, patch2=PATCH, patch3=PATCH)
        assert {content for content, _ in states(root).values()} == {PATCHED}
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Failed at phase: validation"
    assert lines[1].startswith("  file3.py: Context mismatch at line 2")
    assert lines[2:] == ["Failed at phase: apply", "Applied 3 patches atomically"]


def test_workflow_inspect_and_apply_multi_file_patch(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Workflow 4: inspect an unknown patch, then validate and apply it to each file that it names."""
    (root / "changes.patch").write_text(
        "".join(f"--- {name}\n+++ {name}\n@@ -1 +1 @@\n-old\n+new {name}\n" for name in ("a", "b"))
    )
    for name in ("a", "b"):
        (root / name).write_text("old\n")
    with document(root) as (_, code):
        code.workflow("workflow 4", tmp_path)
    assert [(root / name).read_text() for name in ("a", "b")] == ["new a\n", "new b\n"]
    assert capsys.readouterr().out == (
        "Patch affects 2 files:\n  - a: +1 -1\n  - b: +1 -1\nAll patches applied successfully\n"
    )


def test_workflow_generate_and_distribute_patch(root: Path, tmp_path: Path) -> None:
    """Workflow 5: make a patch from two files, save it, and apply it to a third."""
    (root / "config.py.old").write_text(CONFIG)
    (root / "config.py.new").write_text(PATCHED)
    (root / "production_config.py").write_text(CONFIG)
    with document(root) as (_, code):
        assert code.workflow("workflow 5", tmp_path)["result"]["success"] is True
    assert (root / "production_config.py").read_text() == PATCHED


def test_restore_workflows(root: Path, tmp_path: Path) -> None:
    (root / "production.conf").write_text(CONFIG)
    (root / "data.json").write_text(CONFIG)

    def modify(tool: str, arguments: dict[str, object]) -> None:
        if (tool, arguments.get("force")) == ("restore_backup", True):
            (root / "data.json").write_text("somebody's\n")

    with document(root, before=modify) as (_, code):
        code.workflow("restore workflow 2", tmp_path)
        assert (root / "production.conf.recovered").read_text() == CONFIG
        code.workflow("restore workflow 3", tmp_path)
    assert (root / "data.json").read_text() == CONFIG


def test_backup_workflow_1_problem_after_a_patch(root: Path) -> None:
    (root / "important.py").write_text(CONFIG)
    with connected(root) as agent:
        backup_file = agent.done("backup_file", file_path="important.py").structured["backup_file"]
        agent.done("validate_patch", file_path="important.py", patch=PATCH)
        agent.done("apply_patch", file_path="important.py", patch=PATCH)
        agent.done("restore_backup", backup_file=backup_file)
    assert (root / "important.py").read_text() == CONFIG


def test_backup_workflow_2_several_patches(root: Path) -> None:
    (root / "file.py").write_text(CONFIG)
    with connected(root) as agent:
        backup_file = agent.done("backup_file", file_path="file.py").structured["backup_file"]
        for patch in (PATCH, SECOND):
            agent.done("validate_patch", file_path="file.py", patch=patch)
        for patch in (PATCH, SECOND):
            agent.done("apply_patch", file_path="file.py", patch=patch)
        assert (root / "file.py").read_text() == "DEBUG = True\nPORT = 9000\n"
        agent.done("restore_backup", backup_file=backup_file)
    assert (root / "file.py").read_text() == CONFIG


def test_backup_workflow_3_bad_experiment(root: Path) -> None:
    (root / "module.py").write_text(CONFIG)
    with connected(root) as agent:
        backup_file = agent.done("backup_file", file_path="module.py").structured["backup_file"]
        agent.done("apply_patch", file_path="module.py", patch=PATCH)
        agent.done("restore_backup", backup_file=backup_file)
    assert (root / "module.py").read_text() == CONFIG


def test_one_conversation_can_use_every_changing_tool(agent: Agent, folder: Path) -> None:
    file = folder / "config.py"
    file.write_text(CONFIG)
    first = agent.done("backup_file", file_path=str(file))
    conversation = first.structured["mcp_conversation_id"]
    assert conversation in first.notes
    rest: dict[str, dict[str, object]] = {
        "apply_patch": {"file_path": str(file), "patch": PATCH},
        "revert_patch": {"file_path": str(file), "patch": PATCH},
        "apply_patches": {"strategy": "try_revert", "patches": [{"file_path": str(file), "patch": PATCH}]},
        "restore_backup": {"backup_file": first.structured["backup_file"], "force": True},
    }
    for tool, arguments in rest.items():
        result = agent.done(tool, mcp_conversation_id=conversation, **arguments)
        assert result.structured["mcp_conversation_id"] == conversation
    recorded = [view.edit.tool for view in agent.history() if view.edit.conversation == conversation]
    assert recorded == ["backup_file", *rest]
