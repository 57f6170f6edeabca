"""Agent Client Protocol notifications have exactly the contract's shape, or the protocol's own."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from mcptools.catalog.acp import FileChange, Json, Shape, ToolCall, ToolResult, call_began, call_ended
from mcptools.catalog.tool_list import TOOLS
from tests.support.mcp_agent import Agent

EDITS = [
    {"old_string": "port = 8080", "new_string": "port = 3000"},
    {"old_string": 'host = "localhost"', "new_string": 'host = "0.0.0.0"'},
    {"old_string": "debug = false", "new_string": "debug = true"},
]
ARGUMENTS = {"path": "/test/config.toml", "edits": EDITS}
CALL = ToolCall(session="<session-id>", id="<tool-call-id>", tool="multi_edit_text_file", arguments=ARGUMENTS)
OUTPUT = {
    "success": True,
    "diff": "--- config.toml\n+++ config.toml\n",
    "applied_count": 3,
    "line_ranges": [
        {"edit_index": 0, "start": 3, "end": 3},
        {"edit_index": 1, "start": 2, "end": 2},
        {"edit_index": 2, "start": 6, "end": 6},
    ],
}
CHANGE = FileChange(path="/test/config.toml", old="a\nb\n", new="a\nB\n")
DONE = ToolResult(failed=False, structured=OUTPUT, texts=["--- config.toml\n+++ config.toml\n"], changes=[CHANGE])


def update(notification: Json) -> Mapping[str, object]:
    """Return the part of a notification that describes the call."""
    params = notification["params"]
    assert isinstance(params, dict)
    reported = params["update"]
    assert isinstance(reported, dict)
    return reported


def test_start_of_a_call_has_the_contracts_shape() -> None:
    assert call_began(CALL, Shape.CONTRACT) == {
        "method": "session/update",
        "params": {
            "sessionId": "<session-id>",
            "update": {
                "type": "toolCall",
                "id": "<tool-call-id>",
                "kind": "edit",
                "status": "pending",
                "title": "multi_edit_text_file (3 edits)",
                "locations": [{"path": "/test/config.toml"}],
                "rawInput": {"path": "/test/config.toml", "edits": EDITS},
            },
        },
    }


def test_completion_of_a_call_has_the_contracts_shape() -> None:
    assert call_ended(CALL, DONE, Shape.CONTRACT) == {
        "method": "session/update",
        "params": {
            "sessionId": "<session-id>",
            "update": {
                "type": "toolCallUpdate",
                "id": "<tool-call-id>",
                "fields": {
                    "status": "completed",
                    "rawOutput": OUTPUT,
                    "content": [{"type": "text", "text": "--- config.toml\n+++ config.toml\n"}],
                },
            },
        },
    }


def test_start_of_a_call_has_the_protocols_shape() -> None:
    assert update(call_began(CALL, Shape.PROTOCOL)) == {
        "sessionUpdate": "tool_call",
        "toolCallId": "<tool-call-id>",
        "kind": "edit",
        "status": "pending",
        "title": "multi_edit_text_file (3 edits)",
        "locations": [{"path": "/test/config.toml"}],
        "rawInput": {"path": "/test/config.toml", "edits": EDITS},
    }


def test_completion_of_a_call_has_the_protocols_shape() -> None:
    assert update(call_ended(CALL, DONE, Shape.PROTOCOL)) == {
        "sessionUpdate": "tool_call_update",
        "toolCallId": "<tool-call-id>",
        "status": "completed",
        "content": [{"type": "diff", "path": "/test/config.toml", "oldText": "a\nb\n", "newText": "a\nB\n"}],
        "rawOutput": OUTPUT,
        "locations": [{"path": "/test/config.toml", "line": line} for line in (3, 2, 6)],
    }


@pytest.mark.parametrize("shape", Shape)
def test_failed_call_is_reported_as_failed(shape: Shape) -> None:
    error = {"error": {"code": -32010, "message": "Edit 1: String not found: x"}}
    failed = ToolResult(failed=True, structured=error, texts=["Edit 1: String not found: x"])
    reported = update(call_ended(CALL, failed, shape))
    fields = reported["fields"] if shape is Shape.CONTRACT else reported
    assert isinstance(fields, dict)
    assert (fields["status"], fields["rawOutput"]) == ("failed", error)
    assert "String not found: x" in str(fields["content"])


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        (None, "a\nb\n", 1),
        ("a\nb\n", None, 1),
        ("a\nb\n", "a\nB\n", 2),
        ("a\n", "a\nb\n", 2),
        ("a\nb\nc\n", "a\nb\n", 3),
    ],
)
def test_location_of_a_change_is_its_first_changed_line(old: str | None, new: str | None, line: int) -> None:
    call = ToolCall(session="s", id="1", tool="apply_patch", arguments={"file_path": "/f"})
    changed = ToolResult(failed=False, structured={}, texts=[""], changes=[FileChange(path="/f", old=old, new=new)])
    reported = update(call_ended(call, changed, Shape.PROTOCOL))
    assert reported["locations"] == [{"path": "/f", "line": line}]
    assert reported["content"] == [{"type": "diff", "path": "/f", "oldText": old, "newText": new or ""}]


@pytest.mark.parametrize("text", ["", "a\nb\n", "a\nb"])
def test_moved_file_is_reported_without_a_line(text: str) -> None:
    call = ToolCall(session="s", id="1", tool="move_file", arguments={"source": "/f", "destination": "/g"})
    changed = ToolResult(failed=False, structured={}, texts=[""], changes=[FileChange(path="/g", old=text, new=text)])
    assert update(call_ended(call, changed, Shape.PROTOCOL))["locations"] == [{"path": "/g"}]


@pytest.mark.parametrize(
    ("tool", "arguments", "kind", "title", "paths"),
    [
        ("read_file", {"path": "/f"}, "read", "read_file", ["/f"]),
        ("move_file", {"source": "/a", "destination": "/b"}, "move", "move_file", ["/a", "/b"]),
        ("delete_file", {"path": "/f"}, "delete", "delete_file", ["/f"]),
        ("multi_edit_text_file", {"path": "/f", "edits": EDITS[:1]}, "edit", "multi_edit_text_file (1 edit)", ["/f"]),
        (
            "apply_patches",
            {"strategy": "atomic", "patches": [{"file_path": "/a", "patch": ""}, {"file_path": "/b", "patch": ""}]},
            "edit",
            "apply_patches (2 patches)",
            ["/a", "/b"],
        ),
        (
            "restore_backup",
            {"backup_file": "/f.backup.x", "target_file": ""},
            "edit",
            "restore_backup",
            ["/f.backup.x"],
        ),
        ("Undo", {}, "edit", "Undo", []),
    ],
)
def test_each_tool_reports_its_kind_title_and_paths(
    tool: str, arguments: dict[str, object], kind: str, title: str, paths: list[str]
) -> None:
    reported = update(call_began(ToolCall(session="s", id="1", tool=tool, arguments=arguments), Shape.PROTOCOL))
    assert (reported["kind"], reported["title"]) == (kind, title)
    assert reported["locations"] == [{"path": path} for path in paths]


def test_only_read_only_tools_are_reported_as_read_or_search() -> None:
    for tool, traits in TOOLS.items():
        reported = update(call_began(ToolCall(session="s", id="1", tool=tool, arguments={}), Shape.PROTOCOL))
        assert (reported["kind"] in {"read", "search"}) is traits.read_only, tool


def test_result_of_a_real_call_is_reported_in_both_shapes(agent: Agent, folder: Path) -> None:
    file = folder / "config.toml"
    file.write_text('[server]\nhost = "localhost"\nport = 8080\n\n[app]\ndebug = false\n')
    before = file.read_text()
    result = agent.done("multi_edit_text_file", path=str(file), edits=EDITS)
    call = ToolCall(session="s", id="1", tool="multi_edit_text_file", arguments={"path": str(file), "edits": EDITS})
    change = FileChange(path=str(file), old=before, new=file.read_text())
    reported = ToolResult(failed=False, structured=result.structured, texts=result.texts[:1], changes=[change])
    contract = update(call_ended(call, reported, Shape.CONTRACT))
    assert isinstance(contract["fields"], dict)
    assert contract["fields"]["content"] == [{"type": "text", "text": result.structured["diff"]}]
    assert update(call_ended(call, reported, Shape.PROTOCOL))["locations"] == [
        {"path": str(file), "line": line} for line in (3, 2, 6)
    ]
