"""`validate_patch` over the wire: every result, check and example of its contract."""

from pathlib import Path

import pytest

from tests.support.mcp_agent import Agent

SERVER = """import os


def start_server():
    config = load_config()
    port = config['port']
    app.run(port=port)
"""
SERVER_PATCH = """--- server.py
+++ server.py
@@ -4,4 +4,4 @@
 def start_server():
     config = load_config()
-    port = config['port']
+    port = config.get('port', 8080)
     app.run(port=port)
"""
PREVIEW = {
    "lines_to_add": 1,
    "lines_to_remove": 1,
    "hunks": 1,
    "affected_line_range": {"start": 4, "end": 7},
}


def test_applicable_patch_is_valid(agent: Agent, folder: Path) -> None:
    file = folder / "server.py"
    file.write_text(SERVER)
    result = agent.done("validate_patch", file_path=str(file), patch=SERVER_PATCH)
    assert result.structured == {
        "success": True,
        "file_path": str(file),
        "valid": True,
        "can_apply": True,
        "preview": PREVIEW,
        "message": "Patch is valid and can be applied cleanly",
    }


def test_patch_that_does_not_fit_is_valid_but_not_applicable(agent: Agent, folder: Path) -> None:
    file = folder / "server.py"
    file.write_text(SERVER.replace("config['port']", "config.get('port')"))
    result = agent.call("validate_patch", file_path=str(file), patch=SERVER_PATCH)
    reason = (
        "Context mismatch at line 6: expected '    port = config['port']' but found '    port = config.get('port')'"
    )
    assert result.refused
    assert (
        result.structured.items()
        >= {
            "success": False,
            "file_path": str(file),
            "valid": True,
            "can_apply": False,
            "preview": PREVIEW,
            "reason": reason,
            "error": reason,
            "error_type": "context_mismatch",
            "message": "Patch is valid but cannot be applied to this file",
        }.items()
    )


def test_malformed_patch_is_invalid(agent: Agent, folder: Path) -> None:
    file = folder / "server.py"
    file.write_text(SERVER)
    patch = SERVER_PATCH.replace("+++ server.py\n", "")
    result = agent.call("validate_patch", file_path=str(file), patch=patch)
    assert (
        result.structured.items()
        >= {
            "success": False,
            "file_path": str(file),
            "valid": False,
            "error": "Invalid patch format: missing +++ header",
            "error_type": "invalid_patch",
        }.items()
    )
    assert not {"can_apply", "preview", "reason"} & result.structured.keys()


def test_second_example_of_the_contract_as_printed_can_not_be_applied(agent: Agent, folder: Path) -> None:
    file = folder / "server.py"
    file.write_text("#\n" * 6 + SERVER.replace("config['port']", "config.get('port')"))
    result = agent.call("validate_patch", file_path=str(file), patch=SERVER_PATCH.replace("-4,4 +4,4", "-10,7 +10,7"))
    reason = (
        "Context mismatch at line 12: expected '    port = config['port']' but found '    port = config.get('port')'"
    )
    assert (
        result.structured.items()
        >= {
            "success": False,
            "valid": True,
            "can_apply": False,
            "reason": reason,
            "error_type": "context_mismatch",
            "message": "Patch is valid but cannot be applied to this file",
        }.items()
    )
    assert "apply_patch will want the right header." in result.structured["hint"]


def test_patch_for_a_missing_file_is_valid_but_not_applicable(agent: Agent, folder: Path) -> None:
    path = str(folder / "missing.py")
    result = agent.call("validate_patch", file_path=path, patch=SERVER_PATCH)
    assert (
        result.structured.items()
        >= {
            "valid": True,
            "can_apply": False,
            "preview": PREVIEW,
            "reason": f"File not found: {path}",
            "error_type": "file_not_found",
        }.items()
    )
    # If both are wrong, the file's error is reported, and that the patch is not valid.
    result = agent.call("validate_patch", file_path=path, patch="nothing of a patch")
    assert (result.structured["valid"], result.structured["error_type"]) == (False, "file_not_found")


@pytest.mark.parametrize("patch", ["", "--- f\n+++ f\n"])
def test_empty_patch_is_valid_and_affects_no_line(agent: Agent, folder: Path, patch: str) -> None:
    (folder / "f").write_text("a\n")
    result = agent.done("validate_patch", file_path=str(folder / "f"), patch=patch)
    assert result.structured["preview"] == {
        "lines_to_add": 0,
        "lines_to_remove": 0,
        "hunks": 0,
        "affected_line_range": None,
    }


def test_affected_lines_are_those_where_the_patch_fits(agent: Agent, folder: Path) -> None:
    file = folder / "server.py"
    file.write_text("# one\n# two\n" + SERVER)
    result = agent.done("validate_patch", file_path=str(file), patch=SERVER_PATCH)
    assert result.structured["preview"]["affected_line_range"] == {"start": 6, "end": 9}


def test_validation_changes_nothing_and_creates_no_store(agent: Agent, folder: Path) -> None:
    file = folder / "server.py"
    file.write_text(SERVER)
    stamp = file.stat().st_mtime_ns
    for patch in (SERVER_PATCH, "", "x", SERVER_PATCH.replace("config =", "c =")):
        agent.call("validate_patch", file_path=str(file), patch=patch)
    assert (file.read_text(), file.stat().st_mtime_ns) == (SERVER, stamp)
    assert not (agent.root / ".cas").exists()


def test_range_of_hunks_in_any_order_is_reported(agent: Agent, folder: Path) -> None:
    file = folder / "f"
    file.write_text("a\nb\nc\nd\n")
    patch = "--- f\n+++ f\n@@ -9 +9 @@\n-d\n+D\n@@ -1 +1 @@\n-b\n+B\n"
    result = agent.done("validate_patch", file_path=str(file), patch=patch)
    assert result.structured["preview"]["affected_line_range"] == {"start": 2, "end": 4}
    assert result.notes == "Hunk 1 fits -5 lines away.\nHunk 2 fits +1 lines away."


def test_hunks_at_the_same_line_are_named(agent: Agent, folder: Path) -> None:
    file = folder / "f"
    file.write_text("a\nb\nc\n")
    patch = "--- f\n+++ f\n@@ -1,2 +1,2 @@\n a\n-b\n+B\n@@ -2,2 +2,2 @@\n b\n-c\n+C\n"
    for tool in ("apply_patch", "validate_patch", "revert_patch"):
        refused = agent.call(tool, file_path=str(file), patch=patch).structured
        assert refused["error_type"] == "context_mismatch"
    refused = agent.call("apply_patch", file_path=str(file), patch=patch).structured
    assert refused["error"] == "Hunks 1 and 2 both fit at line 2, which only one of them can have"
    assert "Join them into one hunk" in refused["hint"]


def test_lines_added_below_the_last_context_are_refused_above_the_end(agent: Agent, folder: Path) -> None:
    file = folder / "f"
    file.write_text("a\nb\nc\n")
    patch = "--- f\n+++ f\n@@ -1,2 +1,3 @@\n a\n b\n+c\n"
    refused = agent.call("apply_patch", file_path=str(file), patch=patch).structured
    assert refused["error"] == "Context mismatch at line 3: expected the end of the file but found 'c'"
    assert "belongs at the end of the file" in refused["hint"]
    file.write_text("a\nb\n")
    agent.done("apply_patch", file_path=str(file), patch=patch)
    assert file.read_text() == "a\nb\nc\n"
