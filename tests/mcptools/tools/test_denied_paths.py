"""Denied patterns: the setting `tools.denied` names files that no tool of the server may change."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from objstore import Action, Configuration, Workspace
from tests.support.mcp_agent import connected

PATCH = "--- f\n+++ f\n@@ -1 +1 @@\n-one\n+two\n"
CALLS: list[tuple[str, Mapping[str, object]]] = [
    ("write_file", {"path": "{}", "content": "two\n"}),
    ("edit_file_diff", {"path": "{}", "diff": PATCH}),
    ("edit_file_diff", {"path": "{}", "diff": PATCH, "dry_run": True}),
    ("multi_edit_text_file", {"path": "{root}/{}", "edits": [{"old_string": "one", "new_string": "two"}]}),
    ("edit_text_file", {"path": "{}", "file_hash": "", "operations": [{"op": "delete", "anchor": "1:00"}]}),
    ("move_file", {"source": "{}", "destination": "free"}),
    ("move_file", {"source": "open", "destination": "{} other.lock"}),
    ("delete_file", {"path": "{}"}),
    ("create_directory", {"path": "{} other.lock"}),
    ("apply_patch", {"file_path": "{}", "patch": PATCH}),
    ("apply_patch", {"file_path": "{}", "patch": PATCH, "dry_run": True}),
    ("validate_patch", {"file_path": "{}", "patch": PATCH}),
    ("revert_patch", {"file_path": "{}", "patch": PATCH.replace("-one\n+two", "-two\n+one")}),
    ("backup_file", {"file_path": "{}"}),
    ("restore_backup", {"backup_file": "open", "target_file": "{}", "force": True}),
    *(
        ("apply_patches", {"strategy": strategy, "patches": [{"file_path": "{}", "patch": PATCH}]})
        for strategy in ("try_revert", "backup_restore", "atomic", "progressive")
    ),
]


def filled(value: object, path: str, root: Path) -> object:
    match value:
        case str():
            return value.replace("{root}", str(root)).replace("{}", path)
        case list():
            return [filled(item, path, root) for item in value]
        case dict():
            return {name: filled(item, path, root) for name, item in value.items()}
    return value


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "workspace"
    (root / "denied").mkdir(parents=True)
    for name in ("f.lock", "open", "denied/f", "denied/open.txt"):
        (root / name).write_text("one\n")
    (root / "link").symlink_to("denied")
    return root


def test_no_tool_changes_a_denied_path_and_each_says_so(root: Path) -> None:
    before = sorted(root.rglob("*"))
    with connected(root, environment={"CAS_TOOLS_DENIED": "*.lock denied/ !open.txt"}) as agent:
        for path in ("f.lock", "denied/f", "link/f", "denied/../f.lock"):
            for tool, arguments in CALLS:
                given = {name: filled(value, path, root) for name, value in arguments.items()}
                result = agent.call(tool, **given)
                error = result.structured if result.is_json else {**result.error, "error_type": result.error["type"]}
                assert error["error_type"] == "permission_denied", (tool, path, error)
                assert "Permission denied: " in result.text, (tool, path)
                assert "by the setting tools.denied" in error["hint"], (tool, path)
        assert sorted(root.rglob("*")) == before, "a refusal made a store, or another file"
        assert agent.done("read_file", path="f.lock").structured["content"] == "one\n"
        agent.done("write_file", path="denied/open.txt", content="two\n")
    assert {path.read_text() for path in (root / "f.lock", root / "denied" / "f")} == {"one\n"}


def test_undo_validates_that_no_target_matches_a_denied_pattern(root: Path) -> None:
    Workspace.init(root).close()
    with connected(root) as agent:
        patches = [{"file_path": name, "patch": PATCH} for name in ("open", "f.lock")]
        agent.done("apply_patches", strategy="atomic", patches=patches)
        Configuration(str(root)).set("tools.denied", "*.lock")
        refused = agent.call("Undo")
        assert refused.error["type"] == "permission_denied"
        assert refused.text == "Cannot undo: permission denied: f.lock"
        assert "The setting tools.denied keeps tools from changing it." in refused.error["hint"]
        assert ((root / "open").read_text(), (root / "f.lock").read_text()) == ("two\n", "two\n")
        # A person still decides on it.
        with Workspace.open(root) as workspace:
            for edit in ("1", "2"):
                workspace.decide(Action.REJECT, workspace.find_units(edit)[1])
        Configuration(str(root)).set("tools.denied", "none")
        agent.done("read_file", path="f.lock")
        agent.done("apply_patch", file_path="f.lock", patch=PATCH)
    assert ((root / "open").read_text(), (root / "f.lock").read_text()) == ("one\n", "two\n")


def test_nothing_is_changed_while_the_setting_can_not_be_read(root: Path) -> None:
    with connected(root, environment={"CAS_TOOLS_DENIED": "//"}) as agent:
        result = agent.call("write_file", path="open", content="two\n")
        assert result.refused
        assert "tools.denied" in result.text
        assert agent.call("apply_patch", file_path="open", patch=PATCH).structured["error_type"] == "io_error"
        agent.done("read_file", path="open")
    assert (root / "open").read_text() == "one\n"
