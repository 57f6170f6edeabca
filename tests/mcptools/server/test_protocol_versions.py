"""Every tool gives the same answer with each protocol version and over each transport."""

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from mcptools.catalog.tool_list import TOOLS
from mcptools.edit.hashline import line_tag
from objstore import Seq, Unit, Workspace
from tests.support.http_server import serving
from tests.support.mcp_agent import connected

MODES = ["legacy", "2026-07-28"]
DIFF = "--- a.txt\n+++ a.txt\n@@ -1 +1 @@\n-one\n+1\n"
PATCH = "--- a.txt\n+++ a.txt\n@@ -2 +2 @@\n-two\n+2\n"
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("list_allowed_directories", {}),
    ("create_directory", {"path": "sub"}),
    ("write_file", {"path": "a.txt", "content": "one\ntwo\nthree\n", "mcp_conversation_id": "turn"}),
    ("read_file", {"path": "a.txt"}),
    ("read_text_file", {"path": "a.txt"}),
    ("read_multiple_files", {"paths": ["a.txt", "missing"]}),
    ("read_file_by_line", {"path": "a.txt", "ranges": ["2"]}),
    ("read_file_by_keyword", {"path": "a.txt", "keyword": "two"}),
    ("edit_file_diff", {"path": "a.txt", "diff": DIFF, "mcp_conversation_id": "turn"}),
    (
        "multi_edit_text_file",
        {
            "path": "{root}/a.txt",
            "edits": [{"old_string": "three", "new_string": "3"}],
            "mcp_conversation_id": "turn",
        },
    ),
    ("validate_patch", {"file_path": "a.txt", "patch": PATCH}),
    ("inspect_patch", {"patch": PATCH}),
    ("apply_patch", {"file_path": "a.txt", "patch": PATCH, "mcp_conversation_id": "turn"}),
    ("revert_patch", {"file_path": "a.txt", "patch": PATCH, "mcp_conversation_id": "turn"}),
    (
        "apply_patches",
        {
            "strategy": "atomic",
            "patches": [{"file_path": "a.txt", "patch": PATCH}],
            "mcp_conversation_id": "turn",
        },
    ),
    (
        "edit_text_file",
        {
            "path": "a.txt",
            "file_hash": hashlib.sha256(b"1\n2\n3\n").hexdigest(),
            "operations": [{"op": "replace", "anchor": f"3:{line_tag(b'3')}", "content": "three"}],
            "mcp_conversation_id": "turn",
        },
    ),
    ("move_file", {"source": "a.txt", "destination": "sub/b.txt", "mcp_conversation_id": "turn"}),
    ("generate_patch", {"original_file": "sub/b.txt", "modified_file": "sub/b.txt"}),
    ("backup_file", {"file_path": "sub/b.txt", "mcp_conversation_id": "turn"}),
    ("restore_backup", {"backup_file": "missing", "target_file": "a.txt", "mcp_conversation_id": "turn"}),
    ("list_directory", {"path": "sub"}),
    ("directory_tree", {"path": "."}),
    ("search_files", {"path": ".", "pattern": "*.txt"}),
    ("grep_files", {"path": ".", "keyword": "2"}),
    ("get_file_info", {"path": "sub"}),
    ("list_edits", {}),
    ("show_edit", {"edit": 1}),
    ("answer_comment", {"comment": 1, "text": "So.", "mcp_conversation_id": "turn"}),
    ("delete_file", {"path": "sub/b.txt", "mcp_conversation_id": "turn"}),
    ("Undo", {}),
]
VOLATILE = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+\+00:00|\b[0-9a-f]{64}\b|\d{8}_\d{6}")


def without_variable_parts(value: object, root: Path) -> str:
    return VOLATILE.sub("…", str(value).replace(str(root), "ROOT"))


async def answers(client: Client, root: Path) -> list[tuple[str, bool, str]]:
    """Make every call; return each result, without parts that depend on the time or the folder."""
    found = []
    for tool, arguments in CALLS:
        given = {
            name: value.replace("{root}", str(root)) if isinstance(value, str) else value
            for name, value in arguments.items()
        }
        if tool == "answer_comment":
            with Workspace.open(root) as workspace:
                workspace.comments.add_to_units([Unit(Seq(1), 0)], "Why?")
        result = await client.call_tool(tool, given)
        texts = [getattr(part, "text", "") for part in result.content]
        text = without_variable_parts((result.structured_content, texts), root)
        found.append((tool, bool(result.is_error), text))
    return found


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[tuple[str, bool, str]]]:
    """Return the answers over standard streams with the newer protocol version."""
    root = tmp_path_factory.mktemp("expected").resolve()
    with connected(root, mode=MODES[-1]) as agent:
        yield agent.run(lambda client: answers(client, root))


def test_every_tool_is_called_and_all_but_one_succeed(expected: list[tuple[str, bool, str]]) -> None:
    assert sorted(tool for tool, _, _ in expected) == sorted(TOOLS)
    refused = [tool for tool, is_refused, _ in expected if is_refused]
    # The name of a backup contains its time of creation, so the call names a backup that doesn't exist.
    assert refused == ["restore_backup"]


def test_older_protocol_version_gives_the_same_answers_over_standard_streams(
    expected: list[tuple[str, bool, str]], tmp_path: Path
) -> None:
    root = tmp_path.resolve() / "workspace"
    root.mkdir()
    with connected(root, mode=MODES[0]) as agent:
        assert agent.run(lambda client: answers(client, root)) == expected


@pytest.mark.parametrize("mode", MODES)
def test_answers_over_http_are_the_same(expected: list[tuple[str, bool, str]], tmp_path: Path, mode: str) -> None:
    root = tmp_path.resolve()
    with serving(root) as served:
        assert served.with_client(lambda client: answers(client, root), mode=mode) == expected
