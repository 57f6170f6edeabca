"""The tools' stored descriptions, and how the server answers invalid arguments and command lines."""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from mcptools.catalog.descriptions import encode_descriptions, load_descriptions
from mcptools.catalog.tool_list import DEFAULT_SET, SETS, chosen, instructions
from mcptools.server.write_descriptions import describe_tools
from tests.support.fork_server import forked_program
from tests.support.mcp_agent import REPOSITORY, Agent, connected

TOOL_NAMES = [
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
    "answer_comment",
]
READ_ONLY_TOOLS = TOOL_NAMES[: TOOL_NAMES.index("create_directory")]
CHANGING_TOOLS = ["write_file", "edit_file_diff", "multi_edit_text_file", "edit_text_file", "move_file", "delete_file"]
NOT_IDEMPOTENT = ["edit_file_diff", "multi_edit_text_file", "edit_text_file", "move_file", "Undo", "answer_comment"]
PATCH_TOOLS = [
    "apply_patch",
    "validate_patch",
    "revert_patch",
    "generate_patch",
    "inspect_patch",
    "apply_patches",
    "backup_file",
    "restore_backup",
]
READ_ONLY_PATCH_TOOLS = ["validate_patch", "generate_patch", "inspect_patch"]
CHANGING_PATCH_TOOLS = ["apply_patch", "revert_patch", "apply_patches", "backup_file", "restore_backup"]
CHARACTERS_PER_TOKEN = 4

ARGUMENTS_OF_OTHER_TYPES = [
    "comment",
    "edits",
    "operations",
    "patches",
    "dry_run",
    "rebase",
    "force",
    "keep_backup",
    "context_lines",
]


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


def object_schemas_in(schema: object) -> Iterator[dict[str, Any]]:
    """Yield every schema of an object in `schema`."""
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            yield schema
        for value in schema.values():
            yield from object_schemas_in(value)


def check_schema(value: object, schema: dict[str, Any]) -> None:
    """Check a value against a schema, with the part of JSON Schema that the server's output schemas use."""
    kinds: dict[str, type] = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool}
    assert type(value) is kinds[schema["type"]], (value, schema)
    if isinstance(value, dict):
        assert value.keys() >= set(schema.get("required", []))
        for name in value.keys() & schema.get("properties", {}).keys():
            check_schema(value[name], schema["properties"][name])


def test_server_lists_every_tool(agent: Agent) -> None:
    assert [tool.name for tool in agent.tools()] == TOOL_NAMES + PATCH_TOOLS


def test_stored_descriptions_match_the_signatures() -> None:
    """Run `python -m mcptools.server.write_descriptions` where this fails."""
    assert load_descriptions() == describe_tools()
    assert (REPOSITORY / "mcptools" / "tools.json").read_text() == encode_descriptions(describe_tools())


def test_input_schemas_have_no_references_or_unions(agent: Agent) -> None:
    for tool in agent.tools():
        assert not {"$ref", "$defs", "anyOf", "oneOf", "allOf"} & set(keys_in(tool.input_schema)), tool.name


def test_default_set_has_at_most_14_tools_and_2500_tokens(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    with connected(root, options=["--tools", "default"]) as agent:
        tools = agent.tools()
    listed = [{"name": tool.name, "description": tool.description, "input_schema": tool.input_schema} for tool in tools]
    assert len(tools) <= 14
    assert len(json.dumps(listed, ensure_ascii=False)) / CHARACTERS_PER_TOKEN <= 2500


def test_server_without_the_option_offers_the_default_set(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    with connected(root, program=("mcptools.server.command",)) as agent:
        assert [tool.name for tool in agent.tools()] == list(chosen([DEFAULT_SET]))
        assert {tool.output_schema for tool in agent.tools()} == {None}


def test_arguments_of_one_name_mean_one_thing_in_the_default_set(agent: Agent) -> None:
    meanings: dict[str, set[str]] = {}
    for tool in agent.tools():
        if tool.name in SETS[DEFAULT_SET]:
            for name, argument in tool.input_schema["properties"].items():
                meanings.setdefault(name, set()).add(argument["type"])
    assert {name for name, kinds in meanings.items() if len(kinds) > 1} == set()
    assert meanings.keys().isdisjoint({"file_path", "conversation", "file", "filename", "include"})


def test_output_schemas_are_listed_on_request(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    with connected(root, options=["--output-schemas"]) as agent:
        assert {tool.name: tool.output_schema for tool in agent.tools()} == {
            name: description.output_schema for name, description in load_descriptions().items()
        }


def test_instructions_name_only_offered_tools() -> None:
    for names in SETS.values():
        assert set(re.findall(r"\b\w+_\w+\b|Undo", instructions(names))) - {"mcp_conversation_id"} <= set(names)
    assert "Change parts of a file: multi_edit_text_file.\n" in instructions(SETS[DEFAULT_SET])
    assert "Change parts of a file: edit_text_file.\n" in instructions(SETS["hashline"])


def test_instructions_name_the_other_sets_in_one_sentence() -> None:
    for name, tools in SETS.items():
        *_, last = instructions(tools).splitlines()
        named = re.findall(r"[a-z]+", last.partition(":")[2].removesuffix(" (--tools)."))
        assert set(named) == {each for each in SETS if not set(SETS[each]) <= set(tools)} or name == "all"
    assert "--tools" not in instructions(SETS["all"])


def test_the_readme_names_a_server_for_the_tools_of_each_document() -> None:
    rows = re.findall(
        r"^\| \[(00\d)\].*?\|(.*)\| `editledger (.*)DIR` \|$", (REPOSITORY / "README.md").read_text(), re.MULTILINE
    )
    assert [document for document, _, _ in rows] == ["000", "001", "002", "003", "004"]
    for document, words, options in rows:
        offered = chosen([options.removeprefix("--tools ").strip() or DEFAULT_SET])
        named = set(re.findall(r"`(\w+)`", words))
        assert named, document
        assert named <= offered.keys(), document


def test_every_argument_is_described_and_unknown_ones_are_excluded(agent: Agent) -> None:
    for tool in agent.tools():
        for schema in object_schemas_in(tool.input_schema):
            assert schema["additionalProperties"] is False, tool.name
            for name, argument in schema["properties"].items():
                assert argument["description"], f"{tool.name}: {name}"


def test_file_content_and_ids_are_plain_strings(agent: Agent) -> None:
    for tool in agent.tools():
        for name, argument in tool.input_schema["properties"].items():
            if name not in ARGUMENTS_OF_OTHER_TYPES and tool.name not in READ_ONLY_TOOLS:
                assert argument["type"] == "string", f"{tool.name}: {name}"


def test_conversation_id_is_an_optional_argument_of_every_changing_tool_and_of_list_edits(agent: Agent) -> None:
    for tool in agent.tools():
        assert ("mcp_conversation_id" in tool.input_schema["properties"]) is (
            tool.name in [*CHANGING_TOOLS, *CHANGING_PATCH_TOOLS, "answer_comment", "list_edits"]
        )
        assert "mcp_conversation_id" not in tool.input_schema.get("required", [])


def test_schema_of_apply_patches_lists_the_strategies(agent: Agent) -> None:
    schema = next(tool.input_schema for tool in agent.tools() if tool.name == "apply_patches")
    assert schema["properties"]["strategy"]["enum"] == ["try_revert", "backup_restore", "atomic", "progressive"]


CONTRACT_OF_MULTI_EDIT: Final[dict[str, Any]] = {
    "name": "multi_edit_text_file",
    "description": "Apply multiple string replacement edits to a file with cumulative diff",
    "inputSchema": {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Absolute path to the file"},
            "edits": {
                "type": "array",
                "description": "Array of edit operations to apply sequentially",
                "items": {
                    "type": "object",
                    "properties": {
                        "old_string": {"type": "string", "description": "Exact string to find and replace"},
                        "new_string": {"type": "string", "description": "Replacement string"},
                    },
                    "required": ["old_string", "new_string"],
                },
            },
        },
        "required": ["path", "edits"],
    },
}
"""The metadata of the tool as its document prints them."""


def includes(whole: object, part: object) -> bool:
    """Return whether a JSON value has all that another has, at every depth."""
    if isinstance(whole, dict) and isinstance(part, dict):
        return all(key in whole and includes(whole[key], value) for key, value in part.items())
    return whole == part


def test_multi_edit_text_file_has_the_name_description_and_schema_of_the_contract(agent: Agent) -> None:
    printed = CONTRACT_OF_MULTI_EDIT
    (tool,) = (tool for tool in agent.tools() if tool.name == printed["name"])
    assert str(tool.description).partition("\n")[0] == f"{printed['description']}."
    assert includes(tool.input_schema, printed["inputSchema"])
    assert not includes(tool.input_schema, {"required": ["path"]})
    # What our own arguments add can be left out.
    assert tool.input_schema["required"] == printed["inputSchema"]["required"]


def test_every_tool_has_the_right_annotations(agent: Agent) -> None:
    for tool in agent.tools():
        hints = tool.annotations
        assert hints is not None
        assert hints.title
        assert hints.read_only_hint is (tool.name in {*READ_ONLY_TOOLS, *READ_ONLY_PATCH_TOOLS})
        assert hints.destructive_hint is (
            tool.name in {*CHANGING_TOOLS, "Undo", *CHANGING_PATCH_TOOLS} - {"backup_file"}
        )
        assert hints.idempotent_hint is (tool.name not in {*NOT_IDEMPOTENT, *CHANGING_PATCH_TOOLS} - {"restore_backup"})
        assert hints.open_world_hint is False


def test_failed_call_of_every_tool_fits_its_output_schema(agent: Agent, folder: Path) -> None:
    failing_arguments: dict[str, object] = {
        "path": str(folder / "none"),
        "edits": [{"old_string": "a", "new_string": "b"}],
    }
    failing_arguments |= {
        "source": failing_arguments["path"],
        "destination": str(folder / "there"),
        "diff": "",
        "content": "\0",
    }
    failing_arguments |= {"file_hash": "", "operations": [{"op": "delete", "anchor": "1:a8"}]}
    failing_arguments |= {"file_path": failing_arguments["path"], "patch": "no patch", "strategy": "atomic"}
    failing_arguments |= {"patches": [{"file_path": failing_arguments["path"], "patch": "no patch"}]}
    failing_arguments |= dict.fromkeys(["original_file", "modified_file", "backup_file"], failing_arguments["path"])
    (folder / "there").mkdir()
    failing_arguments |= {
        "paths": [],
        "ranges": ["0"],
        "keyword": "",
        "pattern": "",
        "edit": 0,
        "comment": 0,
        "text": "x",
    }
    extra_arguments: dict[str, dict[str, object]] = {
        "read_multiple_files": {"offset": -1},
        "list_edits": {"offset": -1},
    }
    extra_arguments |= {"list_allowed_directories": {"unknown": ""}}
    for tool in agent.tools():
        arguments = {name: failing_arguments[name] for name in tool.input_schema.get("required", [])}
        arguments |= extra_arguments.get(tool.name, {})
        if tool.name in {"write_file", "create_directory"}:
            arguments["path"] = "/etc/none"
        result = agent.call(tool.name, **arguments)
        assert result.refused
        check_schema(result.structured, load_descriptions()[tool.name].output_schema)
        if tool.name in PATCH_TOOLS:
            assert result.text == result.structured["error"]
            assert result.structured["error_type"]
        else:
            assert result.error.keys() >= {"code", "type", "message"}
            assert result.text == result.error["message"]
        assert result.structured["success"] is False


@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
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
def test_invalid_arguments_are_refused(agent: Agent, tool: str, arguments: dict[str, Any], expected: str) -> None:
    result = agent.call(tool, **arguments)
    assert result.error["code"] == -32600
    assert expected in result.text


def test_null_counts_as_an_omitted_optional_argument(agent: Agent, folder: Path) -> None:
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


def test_edits_are_accepted_as_a_json_string(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text("a")
    agent.done("multi_edit_text_file", path=str(file), edits='[{"old_string": "a", "new_string": "b"}]')
    assert file.read_text() == "b"


@pytest.mark.parametrize("content", ["[1, 2]", '{"a": 1}', "true", '"quoted"', "null", "7"])
def test_content_that_looks_like_json_is_written_verbatim(agent: Agent, folder: Path, content: str) -> None:
    agent.done("write_file", path=str(folder / "file.json"), content=content)
    assert (folder / "file.json").read_text() == content


def test_an_unknown_tool_is_refused(agent: Agent) -> None:
    assert agent.call("format_disk").refused


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_clients_of_both_protocol_versions_are_served(tmp_path: Path, mode: str) -> None:
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
        [*forked_program("mcptools").command, *arguments],
        cwd=REPOSITORY,
        check=False,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )


@pytest.mark.parametrize("option", ["--tools", "--approve"])
def test_unknown_tool_name_in_an_option_is_refused(tmp_path: Path, option: str) -> None:
    done = editledger(option, "read_file,format_disk", str(tmp_path))
    assert done.returncode == 2
    sets = "default, all, classic, multi, hashline, patch, read, review"
    assert f"neither a tool nor a set of tools: format_disk (sets: {sets})" in done.stderr


@pytest.mark.parametrize("names", ["", " ", ","])
def test_tools_option_must_name_a_tool_and_approve_option_may_be_empty(tmp_path: Path, names: str) -> None:
    done = editledger("--tools", names, str(tmp_path))
    assert done.returncode == 2
    assert "argument --tools: no tool is named; leave the option out for the default set" in done.stderr
    assert editledger("--approve", names, str(tmp_path)).returncode == 0


@pytest.mark.parametrize("names", ["write_file", "write_file,Undo"])
def test_read_only_that_leaves_no_tool_is_refused(tmp_path: Path, names: str) -> None:
    done = editledger("--read-only", "--tools", names, str(tmp_path))
    assert done.returncode == 2
    assert "--read-only leaves no tool: each tool of --tools" in done.stderr


def test_argument_that_is_not_a_directory_is_refused(tmp_path: Path) -> None:
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
def test_closed_standard_stream_is_reported_in_one_line(tmp_path: Path, closed: str, options: str, named: str) -> None:
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


def test_server_exits_cleanly_at_the_end_of_its_input(tmp_path: Path) -> None:
    done = editledger(str(tmp_path))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_directory_that_is_missing_is_reported_and_the_others_are_served(tmp_path: Path) -> None:
    good, missing, file = tmp_path / "good", tmp_path / "missing", tmp_path / "file"
    good.mkdir()
    file.touch()
    (good / "f").write_text("a\n")
    said = "editledger: not a directory, so it is not served: "
    with connected(good, missing, file, expected=f"{said}{missing}, {file}\n") as agent:
        allowed = agent.done("list_allowed_directories")
        assert allowed.structured["directories"] == [str(good)]
        assert allowed.notes == f"Not served, because it is no directory: {missing}, {file}"
        assert agent.done("read_file", path=str(good / "f")).text == "a\n"
        missing.mkdir()
        for given in (missing, file):
            refused = agent.call("read_file", path=str(given / "f"))
            again = f"There was no directory {given} when the server started: start it again once there is one."
            assert refused.error["hint"] == f"It is outside the allowed directories: {good}. {again}"
        outside = agent.call("read_file", path=str(tmp_path / "other"))
        assert outside.error["hint"] == f"It is outside the allowed directories: {good}"
        missing.rmdir()
    done = editledger(str(good), str(missing))
    assert (done.returncode, done.stderr) == (0, f"{said}{missing}\n")
    assert editledger("--export-acp", "contract", str(good), str(missing)).returncode == 1
