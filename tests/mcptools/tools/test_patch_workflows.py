"""The workflows of the contract of the patch tools, step by step."""

from pathlib import Path

from tests.support.mcp_agent import Agent

CONFIG = "DEBUG = False\nPORT = 8000\n"
PATCH = "--- config.py\n+++ config.py\n@@ -1,2 +1,2 @@\n-DEBUG = False\n+DEBUG = True\n PORT = 8000\n"
STALE = PATCH.replace("8000", "9000")


def test_full_workflow_safe_patch(agent: Agent, folder: Path) -> None:
    """Workflow 1: validate, back up, apply."""
    file = folder / "config.py"
    file.write_text(CONFIG)
    path = str(file)
    validation = agent.done("validate_patch", file_path=path, patch=PATCH).structured
    assert validation["can_apply"]
    backup = agent.done("backup_file", file_path=path).structured
    result = agent.done("apply_patch", file_path=path, patch=PATCH).structured
    assert result["changes"] == {"lines_added": 1, "lines_removed": 1, "hunks_applied": 1}
    assert file.read_text() == CONFIG.replace("False", "True")
    assert Path(backup["backup_file"]).read_text() == CONFIG


def test_full_workflow_with_recovery(agent: Agent, folder: Path) -> None:
    """Back up, fail to apply, restore; then apply, and restore again."""
    file = folder / "config.py"
    file.write_text(CONFIG)
    path = str(file)
    backup = agent.done("backup_file", file_path=path).structured["backup_file"]
    assert agent.call("apply_patch", file_path=path, patch=STALE).refused
    agent.done("restore_backup", backup_file=backup)
    assert file.read_text() == CONFIG
    agent.done("apply_patch", file_path=path, patch=PATCH)
    agent.done("restore_backup", backup_file=backup, force=True)
    assert file.read_text() == CONFIG


def test_workflow_dry_run_before_apply(agent: Agent, folder: Path) -> None:
    """Workflow 2: dry run, backup, apply."""
    file = folder / "app.py"
    file.write_text(CONFIG)
    path = str(file)
    dry = agent.done("apply_patch", file_path=path, patch=PATCH, dry_run=True).structured
    assert (dry["changes"]["lines_added"], file.read_text()) == (1, CONFIG)
    agent.done("backup_file", file_path=path)
    real = agent.done("apply_patch", file_path=path, patch=PATCH).structured
    assert real["changes"] == dry["changes"]
    assert agent.call("apply_patch", file_path=path, patch=PATCH, dry_run=True).structured["error"]


def test_batch_atomic_workflow(agent: Agent, folder: Path) -> None:
    """Workflow 3: a batch is applied completely or not at all."""
    names = ["file1.py", "file2.py", "file3.py"]
    for name in names:
        (folder / name).write_text(CONFIG)
    batch = [{"file_path": str(folder / name), "patch": PATCH} for name in names]
    broken = [*batch[:2], {**batch[2], "patch": STALE}]
    failed = agent.call("apply_patches", strategy="atomic", patches=broken).structured
    assert (failed["phase"], failed["failures"][0]["file"]) == ("validation", str(folder / "file3.py"))
    assert {(folder / name).read_text() for name in names} == {CONFIG}
    result = agent.done("apply_patches", strategy="atomic", patches=batch).structured
    assert result["applied"] == 3
    assert {(folder / name).read_text() for name in names} == {CONFIG.replace("False", "True")}


def test_workflow_inspect_and_apply_multi_file_patch(agent: Agent, folder: Path) -> None:
    """Workflow 4: inspect an unknown patch, then validate and apply it to each file that it names."""
    content = "".join(
        f"--- {folder.name}/{name}\n+++ {folder.name}/{name}\n@@ -1 +1 @@\n-old\n+new {name}\n" for name in ("a", "b")
    )
    for name in ("a", "b"):
        (folder / name).write_text("old\n")
    info = agent.done("inspect_patch", patch=content).structured
    assert info["summary"]["total_files"] == 2
    for part in info["files"]:
        assert agent.done("validate_patch", file_path=part["target"], patch=content).structured["can_apply"]
    for part in info["files"]:
        agent.done("backup_file", file_path=part["target"])
        agent.done("apply_patch", file_path=part["target"], patch=content)
    assert [(folder / name).read_text() for name in ("a", "b")] == ["new a\n", "new b\n"]


def test_workflow_generate_and_distribute_patch(agent: Agent, folder: Path) -> None:
    """Workflow 5: make a patch from two files, save it, and apply it to a third."""
    (folder / "config.py.old").write_text(CONFIG)
    (folder / "config.py.new").write_text(CONFIG.replace("False", "True"))
    (folder / "production_config.py").write_text(CONFIG)
    old, new, production, saved = (
        str(folder / name) for name in ("config.py.old", "config.py.new", "production_config.py", "config_update.patch")
    )
    patch = agent.done("generate_patch", original_file=old, modified_file=new).structured["patch"]
    agent.done("write_file", path=saved, content=patch)
    read = agent.done("read_file", path=saved).structured["content"]
    assert agent.done("validate_patch", file_path=production, patch=read).structured["can_apply"]
    agent.done("backup_file", file_path=production)
    agent.done("apply_patch", file_path=production, patch=read)
    assert (folder / "production_config.py").read_text() == CONFIG.replace("False", "True")


def test_several_patches_after_one_backup(agent: Agent, folder: Path) -> None:
    file = folder / "config.py"
    file.write_text(CONFIG)
    backup = agent.done("backup_file", file_path=str(file)).structured["backup_file"]
    second = "--- f\n+++ f\n@@ -2 +2 @@\n-PORT = 8000\n+PORT = 9000\n"
    for patch in (PATCH, second):
        agent.done("validate_patch", file_path=str(file), patch=patch)
        agent.done("apply_patch", file_path=str(file), patch=patch)
    assert file.read_text() == "DEBUG = True\nPORT = 9000\n"
    agent.done("restore_backup", backup_file=backup, force=True)
    assert file.read_text() == CONFIG


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
