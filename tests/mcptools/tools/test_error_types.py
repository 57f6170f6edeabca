"""The ten error types of the patch tools' document, and no other: every failure that the served tools can report."""

import json
from pathlib import Path
from typing import Any

import pytest

from mcptools.model.failures import FailureKind
from tests.support.mcp_agent import Agent, connected

ERROR_TYPES = {
    "file_not_found",
    "permission_denied",
    "invalid_patch",
    "context_mismatch",
    "encoding_error",
    "io_error",
    "symlink_error",
    "binary_file",
    "disk_space_error",
    "resource_limit",
}
PATCH = "--- f\n+++ f\n@@ -1 +1 @@\n-one\n+two\n"
FILE: dict[str, dict[str, Any]] = {
    "apply_patch": {"file_path": "f", "patch": PATCH},
    "validate_patch": {"file_path": "f", "patch": PATCH},
    "revert_patch": {"file_path": "f", "patch": PATCH},
    "generate_patch": {"original_file": "f", "modified_file": "f"},
    "inspect_patch": {"patch": PATCH},
    "backup_file": {"file_path": "f"},
    "restore_backup": {"backup_file": "f.backup.20250117_143052"},
    "apply_patches": {"strategy": "atomic", "patches": [{"file_path": "f", "patch": PATCH}]},
}
WRONG: list[dict[str, Any]] = [{"unknown": 1}, {"patch": 7}, {"file_path": []}, {"mcp_conversation_id": "no id"}]
UNUSABLE = [
    "",
    "a\0b",
    "f/",
    "none/",
    "~/f",
    "file:///f",
    "\N{LATIN SMALL LETTER E WITH ACUTE}" * 3000,
    "../f",
    ".git/f",
]


def check(result: Any) -> str:  # noqa: ANN401 - a Result
    assert result.refused, result.structured
    assert result.structured["success"] is False
    assert result.structured["error"]
    assert result.structured["error_type"] in ERROR_TYPES, result.structured
    # The text content is the result as JSON, on a failure too.
    assert [json.loads(text) for text in result.texts] == [result.structured]
    return str(result.structured["error_type"])


def test_every_kind_of_failure_has_one_of_the_ten_types() -> None:
    assert {kind.patch_type for kind in FailureKind} == ERROR_TYPES
    for kind in FailureKind:
        if kind.type in ERROR_TYPES:
            assert kind.patch_type == kind.type


@pytest.mark.parametrize("tool", FILE)
def test_wrong_arguments_are_reported_with_one_of_the_ten_types(agent: Agent, tool: str) -> None:
    check(agent.call(tool))
    for wrong in WRONG:
        check(agent.call(tool, **{**FILE[tool], **wrong, "unknown": 1}))


@pytest.mark.parametrize("tool", [name for name in FILE if name not in {"inspect_patch", "apply_patches"}])
def test_unusable_paths_are_reported_with_one_of_the_ten_types(agent: Agent, tool: str) -> None:
    for path in UNUSABLE:
        arguments = {
            name: path if name.endswith("_file") or name == "file_path" else value for name, value in FILE[tool].items()
        }
        check(agent.call(tool, **arguments))


def test_refusals_of_our_own_are_reported_with_one_of_the_ten_types_and_ours(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    (root / "f").write_text("one\n")
    with connected(root, options=["--require-read", "--approve=required,revert_patch"]) as agent:
        unread = agent.call("apply_patch", file_path="f", patch=PATCH)
        assert (check(unread), unread.structured["type"]) == ("context_mismatch", "stale_file")
        unasked = agent.call("revert_patch", file_path="f", patch=PATCH)
        assert (check(unasked), unasked.structured["type"]) == ("permission_denied", "not_approved")
        negative = agent.call("generate_patch", original_file="f", modified_file="f", context_lines=-1)
        assert (check(negative), negative.structured["type"]) == ("io_error", "invalid_request")
        missing = agent.call("backup_file", file_path="none")
        assert check(missing) == "file_not_found"
        assert "type" not in missing.structured


def test_text_content_is_the_result_as_json(agent: Agent, folder: Path) -> None:
    file = folder / "été.txt"
    file.write_text("one\n")
    done = [
        agent.done("inspect_patch", patch=PATCH),
        agent.done("validate_patch", file_path=str(file), patch=PATCH),
        backup := agent.done("backup_file", file_path=str(file)),
        agent.done("apply_patch", file_path=str(file), patch=PATCH),
        agent.done("generate_patch", original_file=backup.structured["backup_file"], modified_file=str(file)),
        agent.done("revert_patch", file_path=str(file), patch=PATCH),
        agent.done("restore_backup", backup_file=backup.structured["backup_file"]),
        agent.done("apply_patches", strategy="progressive", patches=[{"file_path": str(file), "patch": PATCH}]),
    ]
    for result in done:
        assert [json.loads(text) for text in result.texts] == [result.structured]
        assert result.structured["success"] is True
        assert "\\u" not in result.texts[0]
