"""The tools' stored descriptions, and how the server handles arguments that do not fit."""

import json
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcptools.catalog.descriptions import encode_descriptions, load_descriptions
from mcptools.server.write_descriptions import describe_tools
from tests.support.mcp_agent import REPOSITORY, Agent, connected

NAMES = [
    "read_file",
    "read_text_file",
    "read_multiple_files",
    "read_file_by_line",
    "read_file_by_keyword",
    "list_directory",
    "directory_tree",
    "search_files",
    "grep_files",
    "get_file_info",
    "list_allowed_directories",
    "list_edits",
    "show_edit",
    "create_directory",
    "write_file",
    "edit_file_diff",
    "multi_edit_text_file",
    "edit_text_file",
    "move_file",
    "delete_file",
    "Undo",
]
READING = NAMES[: NAMES.index("create_directory")]
CHANGING = ["write_file", "edit_file_diff", "multi_edit_text_file", "edit_text_file", "move_file", "delete_file"]
NOT_IDEMPOTENT = ["edit_file_diff", "multi_edit_text_file", "edit_text_file", "move_file", "Undo"]
PATCHES = [
    "apply_patch",
    "validate_patch",
    "revert_patch",
    "generate_patch",
    "inspect_patch",
    "apply_patches",
    "backup_file",
    "restore_backup",
]
READING_PATCHES = ["validate_patch", "generate_patch", "inspect_patch"]
CHANGING_PATCHES = ["apply_patch", "revert_patch", "apply_patches", "backup_file", "restore_backup"]
OFFICIAL_TOKENS = 148.196
"""About how many tokens a tool of the official filesystem server (2026.8.31) costs a model, by the measure below."""

NO_STRINGS = ["edits", "operations", "patches", "dry_run", "rebase", "force", "keep_backup", "context_lines"]


def keys_in(schema: object) -> Iterator[str]:
    """Yield every key of a JSON value, at any depth."""
    match schema:
        case dict():
            for key, value in schema.items():
                yield key
                yield from keys_in(value)
        case list():
            for item in schema:
                yield from keys_in(item)


def schemas_of_objects(schema: object) -> Iterator[dict[str, Any]]:
    """Yield every schema of an object in `schema`."""
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            yield schema
        for value in schema.values():
            yield from schemas_of_objects(value)


def check(value: object, schema: dict[str, Any]) -> None:
    """Hold a value against the part of JSON Schema that the server's output schemas use."""
    kinds: dict[str, type] = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool}
    assert type(value) is kinds[schema["type"]], (value, schema)
    if isinstance(value, dict):
        assert value.keys() >= set(schema.get("required", []))
        for name in value.keys() & schema.get("properties", {}).keys():
            check(value[name], schema["properties"][name])


def test_every_tool_is_offered(agent: Agent) -> None:
    assert [tool.name for tool in agent.tools()] == NAMES + PATCHES


def test_stored_descriptions_match_the_signatures() -> None:
    """Run `python -m mcptools.server.write_descriptions` where this fails."""
    assert load_descriptions() == describe_tools()
    assert (REPOSITORY / "mcptools" / "tools.json").read_text() == encode_descriptions(describe_tools())


def test_input_schemas_are_flat(agent: Agent) -> None:
    for tool in agent.tools():
        assert not {"$ref", "$defs", "anyOf", "oneOf", "allOf"} & set(keys_in(tool.input_schema)), tool.name


def test_a_tool_costs_a_model_less_than_one_of_the_official_server(agent: Agent) -> None:
    tools = agent.tools()
    load_descriptions = [
        {"name": tool.name, "description": tool.description, "input_schema": tool.input_schema} for tool in tools
    ]
    assert len(json.dumps(load_descriptions, ensure_ascii=False)) / 4 / len(tools) < OFFICIAL_TOKENS


def test_every_argument_is_described_and_no_other_is_taken(agent: Agent) -> None:
    for tool in agent.tools():
        for schema in schemas_of_objects(tool.input_schema):
            assert schema["additionalProperties"] is False, tool.name
            for name, argument in schema["properties"].items():
                assert argument["description"], f"{tool.name}: {name}"


def test_file_content_and_ids_are_plain_strings(agent: Agent) -> None:
    for tool in agent.tools():
        for name, argument in tool.input_schema["properties"].items():
            if name not in NO_STRINGS and tool.name not in READING:
                assert argument["type"] == "string", f"{tool.name}: {name}"


def test_every_changing_tool_takes_a_conversation_id_and_may_leave_it_out(agent: Agent) -> None:
    for tool in agent.tools():
        assert ("mcp_conversation_id" in tool.input_schema["properties"]) is (tool.name in CHANGING + CHANGING_PATCHES)
        assert "mcp_conversation_id" not in tool.input_schema.get("required", [])


def test_strategies_are_told(agent: Agent) -> None:
    schema = next(tool.input_schema for tool in agent.tools() if tool.name == "apply_patches")
    assert schema["properties"]["strategy"]["enum"] == ["try_revert", "backup_restore", "atomic", "progressive"]


def test_multi_edit_has_the_schema_of_its_document(agent: Agent) -> None:
    schema = next(tool.input_schema for tool in agent.tools() if tool.name == "multi_edit_text_file")
    assert schema["required"] == ["path", "edits"]
    assert schema["properties"]["path"]["description"] == "Absolute path to the file"
    items = schema["properties"]["edits"]["items"]
    assert {name: part["type"] for name, part in items["properties"].items()} == {
        "old_string": "string",
        "new_string": "string",
    }
    assert items["required"] == ["old_string", "new_string"]


def test_every_tool_is_annotated(agent: Agent) -> None:
    for tool in agent.tools():
        hints = tool.annotations
        assert hints is not None
        assert hints.title
        assert hints.read_only_hint is (tool.name in {*READING, *READING_PATCHES})
        assert hints.destructive_hint is (tool.name in {*CHANGING, "Undo", *CHANGING_PATCHES} - {"backup_file"})
        assert hints.idempotent_hint is (tool.name not in {*NOT_IDEMPOTENT, *CHANGING_PATCHES} - {"restore_backup"})
        assert hints.open_world_hint is False


def test_every_output_schema_admits_failures(agent: Agent, folder: Path) -> None:
    missing: dict[str, object] = {"path": str(folder / "none"), "edits": [{"old_string": "a", "new_string": "b"}]}
    missing |= {"source": missing["path"], "destination": str(folder / "there"), "diff": "", "content": "\0"}
    missing |= {"file_hash": "", "operations": [{"op": "delete", "anchor": "1:a8"}]}
    missing |= {"file_path": missing["path"], "patch": "no patch", "strategy": "atomic"}
    missing |= {"patches": [{"file_path": missing["path"], "patch": "no patch"}]}
    missing |= dict.fromkeys(["original_file", "modified_file", "backup_file"], missing["path"])
    (folder / "there").mkdir()
    missing |= {"paths": [], "ranges": ["0"], "keyword": "", "pattern": "", "edit": 0}
    needless: dict[str, dict[str, object]] = {"read_multiple_files": {"offset": -1}, "list_edits": {"offset": -1}}
    needless |= {"list_allowed_directories": {"unknown": ""}}
    for tool in agent.tools():
        arguments = {name: missing[name] for name in tool.input_schema.get("required", [])}
        arguments |= needless.get(tool.name, {})
        if tool.name in {"write_file", "create_directory"}:
            arguments["path"] = "/etc/none"
        result = agent.call(tool.name, **arguments)
        assert result.refused
        assert tool.output_schema is not None
        check(result.structured, tool.output_schema)
        if tool.name in PATCHES:
            assert result.text == result.structured["error"]
            assert result.structured["error_type"]
        else:
            assert result.error.keys() >= {"code", "type", "message"}
            assert result.text == result.error["message"]
        assert result.structured.get("success") is (None if tool.name == "multi_edit_text_file" else False)


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("delete_file", {"path": "x", "force": True}, "force: unknown argument"),
        ("read_file", {}, "path: Field required"),
        ("write_file", {"path": "x", "content": 7}, "content: Input should be a valid string"),
        (
            "multi_edit_text_file",
            {"path": "/x", "edits": [{"old_string": "a", "new_string": "b", "count": 2}]},
            "edits.0.count: unknown argument",
        ),
        (
            "multi_edit_text_file",
            {"path": "/x", "edits": [{"old_string": "a"}]},
            "edits.0.new_string: Field required",
        ),
    ],
)
def test_arguments_that_do_not_fit_are_refused(agent: Agent, tool: str, arguments: dict[str, Any], said: str) -> None:
    result = agent.call(tool, **arguments)
    assert result.error["code"] == -32600
    assert said in result.text


def test_what_is_null_and_may_be_left_out_is_left_out(agent: Agent, folder: Path) -> None:
    file = str(folder / "file.txt")
    agent.done("write_file", path=file, content="a\n", mcp_conversation_id=None)
    read = agent.done("read_text_file", path=file, offset=None, limit=None).structured
    delete = {"op": "delete", "anchor": read["content"].partition("|")[0], "end_anchor": None, "content": None}
    agent.done("edit_text_file", path=file, file_hash=read["file_hash"], operations=[delete], rebase=None)
    assert (folder / "file.txt").read_text() == ""
    assert "content: Input should be a valid string" in agent.call("write_file", path=file, content=None).text
    assert "force: unknown argument" in agent.call("delete_file", path=file, force=None).text
    backup = agent.done("backup_file", file_path=file).structured["backup_file"]
    agent.done("restore_backup", backup_file=backup, target_file=None, force=None)


def test_edits_may_come_as_a_json_string(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text("a")
    agent.done("multi_edit_text_file", path=str(file), edits='[{"old_string": "a", "new_string": "b"}]')
    assert file.read_text() == "b"


@pytest.mark.parametrize("content", ["[1, 2]", '{"a": 1}', "true", '"quoted"', "null", "7"])
def test_content_that_looks_like_json_stays_text(agent: Agent, folder: Path, content: str) -> None:
    agent.done("write_file", path=str(folder / "file.json"), content=content)
    assert (folder / "file.json").read_text() == content


def test_an_unknown_tool_is_refused(agent: Agent) -> None:
    assert agent.call("format_disk").refused


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_both_eras_of_the_protocol_are_served(tmp_path: Path, mode: str) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    with connected(root, mode=mode) as agent:
        agent.done("write_file", path="file.txt", content="text\n")
        (view,) = agent.history()
    assert view.edit.notes["client"] == "test agent"
    assert view.edit.notes["client_version"] == "1.2.3"


# ---- the command


def editledger(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mcptools", *arguments],
        cwd=REPOSITORY,
        check=False,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )


@pytest.mark.parametrize("option", ["--tools", "--approve"])
def test_a_name_of_no_tool_is_refused(tmp_path: Path, option: str) -> None:
    done = editledger(option, "read_file,format_disk", str(tmp_path))
    assert done.returncode == 2
    assert "neither a tool nor a set of tools: format_disk (sets: read, classic, hashline, patch)" in done.stderr


@pytest.mark.parametrize("names", ["", " ", ","])
def test_a_choice_of_no_tools_is_refused_and_one_of_none_to_approve_is_taken(tmp_path: Path, names: str) -> None:
    done = editledger("--tools", names, str(tmp_path))
    assert done.returncode == 2
    assert "argument --tools: no tool is named; leave the option out to offer all" in done.stderr
    assert editledger("--approve", names, str(tmp_path)).returncode == 0


@pytest.mark.parametrize("names", ["write_file", "write_file,Undo"])
def test_a_choice_of_which_read_only_leaves_no_tool_is_refused(tmp_path: Path, names: str) -> None:
    done = editledger("--read-only", "--tools", names, str(tmp_path))
    assert done.returncode == 2
    assert "--read-only leaves no tool: each tool of --tools" in done.stderr


def test_what_is_no_directory_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    for name in (file, tmp_path / "missing"):
        done = editledger(str(name))
        assert done.returncode == 2
        assert f"not a directory: {name}" in done.stderr


@pytest.mark.parametrize(
    ("closed", "options", "named"),
    [("<&-", "", "input"), (">&-", "", "output"), ("<&- >&-", "", "input"), (">&-", "--export-acp contract", "output")],
)
def test_a_stream_that_is_closed_is_named_in_a_line(tmp_path: Path, closed: str, options: str, named: str) -> None:
    command = f"exec {shlex.join([sys.executable, '-m', 'mcptools', str(tmp_path)])} {options} {closed}"
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        cwd=REPOSITORY,
        check=False,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (1, f"editledger: standard {named} is closed\n")


def test_it_ends_in_order_when_its_input_does(tmp_path: Path) -> None:
    done = editledger(str(tmp_path))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
