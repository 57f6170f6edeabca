"""The descriptions for installation: the registry's server.json, and the manifest of the bundle.

Their schemas belong to other projects and are not copied. The schemas below state what applies to this server: for
server.json the schema of 2025-12-11 and the registry's rules for a package, for the manifest version 0.4.
"""

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from mcptools.catalog.tool_list import TOOLS
from tests.support.mcp_agent import REPOSITORY, cold_starts, connected

PROJECT: Final = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
EXACT_VERSION: Final = r"^\d+\.\d+\.\d+([-+.][0-9A-Za-z.-]+)?$"
NON_EMPTY_TEXT: Final = {"type": "string", "minLength": 1}

ARGUMENT: Final = {
    "type": "object",
    "required": ["type"],
    "anyOf": [{"required": ["valueHint"]}, {"required": ["value"]}, {"required": ["name"]}],
    "properties": {
        "type": {"enum": ["positional", "named"]},
        "format": {"enum": ["string", "number", "boolean", "filepath"]},
        "description": NON_EMPTY_TEXT,
        "valueHint": NON_EMPTY_TEXT,
        "isRepeated": {"type": "boolean"},
        "isRequired": {"type": "boolean"},
    },
    "additionalProperties": False,
}
SERVER: Final = {
    "type": "object",
    "required": ["$schema", "name", "description", "version", "packages"],
    "properties": {
        "$schema": {"const": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"},
        "name": {"type": "string", "minLength": 3, "maxLength": 200, "pattern": "^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$"},
        "title": {"type": "string", "minLength": 1, "maxLength": 100},
        "description": {"type": "string", "minLength": 1, "maxLength": 100},
        "version": {"type": "string", "maxLength": 255, "pattern": EXACT_VERSION},
        "packages": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["registryType", "identifier", "version", "transport"],
                "properties": {
                    "registryType": {"const": "pypi"},
                    "identifier": NON_EMPTY_TEXT,
                    "version": {"type": "string", "pattern": EXACT_VERSION},
                    "runtimeHint": {"const": "uvx"},
                    "transport": {
                        "type": "object",
                        "required": ["type"],
                        "properties": {"type": {"const": "stdio"}},
                        "additionalProperties": False,
                    },
                    "packageArguments": {"type": "array", "items": ARGUMENT},
                },
                "additionalProperties": False,
            },
        },
    },
    "additionalProperties": False,
}
MANIFEST: Final = {
    "type": "object",
    "required": ["manifest_version", "name", "version", "description", "author", "server"],
    "properties": {
        "manifest_version": {"const": "0.4"},
        "name": NON_EMPTY_TEXT,
        "display_name": NON_EMPTY_TEXT,
        "version": {"type": "string", "pattern": EXACT_VERSION},
        "description": NON_EMPTY_TEXT,
        "long_description": NON_EMPTY_TEXT,
        "author": {
            "type": "object",
            "required": ["name"],
            "properties": {"name": NON_EMPTY_TEXT},
            "additionalProperties": False,
        },
        "license": NON_EMPTY_TEXT,
        "keywords": {"type": "array", "items": NON_EMPTY_TEXT},
        "server": {
            "type": "object",
            "required": ["type", "entry_point", "mcp_config"],
            "properties": {
                "type": {"enum": ["python", "node", "binary", "uv"]},
                "entry_point": NON_EMPTY_TEXT,
                "mcp_config": {
                    "type": "object",
                    "required": ["command"],
                    "properties": {"command": NON_EMPTY_TEXT, "args": {"type": "array", "items": NON_EMPTY_TEXT}},
                    "additionalProperties": False,
                },
            },
            "additionalProperties": False,
        },
        "user_config": {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "required": ["type", "title", "description"],
                "properties": {
                    "type": {"enum": ["string", "number", "boolean", "directory", "file"]},
                    "title": NON_EMPTY_TEXT,
                    "description": NON_EMPTY_TEXT,
                    "multiple": {"type": "boolean"},
                    "required": {"type": "boolean"},
                },
                "additionalProperties": False,
            },
        },
        "tools": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": NON_EMPTY_TEXT, "description": NON_EMPTY_TEXT},
                "additionalProperties": False,
            },
        },
        "tools_generated": {"type": "boolean"},
        "compatibility": {
            "type": "object",
            "properties": {
                "platforms": {"type": "array", "items": {"enum": ["darwin", "win32", "linux"]}},
                "runtimes": {"type": "object", "properties": {"python": NON_EMPTY_TEXT}, "additionalProperties": False},
            },
            "additionalProperties": False,
        },
    },
    "additionalProperties": False,
}


TYPES: Final = {"object": dict, "array": list, "string": str, "boolean": bool}


def faults(value: object, schema: dict[str, Any], where: str) -> Iterator[str]:
    """Yield the faults of a value according to a schema, for the keywords that the schemas above use."""
    kind = TYPES.get(schema.get("type", ""))
    if kind is not None and type(value) is not kind:
        yield f"{where} is no {schema['type']}"
        return
    if value not in schema.get("enum", [value]) or value != schema.get("const", value):
        yield f"{where} is {value!r}"
    match value:
        case str():
            yield from faults_of_text(value, schema, where)
        case list():
            if len(value) < schema.get("minItems", 0):
                yield f"{where} is empty"
            for index, item in enumerate(value):
                yield from faults(item, schema.get("items", {}), f"{where}.{index}")
        case dict():
            yield from faults_of_object(value, schema, where)


def faults_of_text(value: str, schema: dict[str, Any], where: str) -> Iterator[str]:
    if len(value) < schema.get("minLength", 0):
        yield f"{where} is too short"
    if len(value) > schema.get("maxLength", len(value)):
        yield f"{where} is too long"
    if re.search(schema.get("pattern", ""), value) is None:
        yield f"{where} does not fit"


def faults_of_object(value: dict[str, Any], schema: dict[str, Any], where: str) -> Iterator[str]:
    yield from (f"{where} has no {name}" for name in schema.get("required", ()) if name not in value)
    if "anyOf" in schema and not any(set(each["required"]) <= set(value) for each in schema["anyOf"]):
        yield f"{where} has none of what it needs"
    others = schema.get("additionalProperties", {})
    for name, part in value.items():
        expected = schema.get("properties", {}).get(name, others)
        if expected is False:
            yield f"{where} has {name}"
        else:
            yield from faults(part, expected, f"{where}.{name}")


def load_description(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((REPOSITORY / "docs" / "registry" / name).read_text())
    return found


@pytest.mark.parametrize(("name", "schema"), [("server.json", SERVER), ("manifest.json", MANIFEST)])
def test_description_fits_its_schema(name: str, schema: dict[str, Any]) -> None:
    assert list(faults(load_description(name), schema, name)) == []


@pytest.mark.parametrize(
    ("name", "change", "fault"),
    [
        ("server.json", {"description": "x" * 101}, "server.json.description is too long"),
        ("server.json", {"name": "editledger"}, "server.json.name does not fit"),
        ("server.json", {"version": "^1.0.0"}, "server.json.version does not fit"),
        ("server.json", {"packages": [{"registryType": "npm"}]}, "server.json.packages.0.registryType is 'npm'"),
        ("manifest.json", {"manifest_version": "0.3"}, "manifest.json.manifest_version is '0.3'"),
        ("manifest.json", {"tools": [{"title": "x"}]}, "manifest.json.tools.0 has no name"),
        ("manifest.json", {"unknown": 1}, "manifest.json has unknown"),
    ],
)
def test_schema_check_finds_each_fault(name: str, change: dict[str, Any], fault: str) -> None:
    schema = SERVER if name == "server.json" else MANIFEST
    assert fault in list(faults({**load_description(name), **change}, schema, name))


def test_both_descriptions_have_the_version_of_this_package() -> None:
    server, manifest = load_description("server.json"), load_description("manifest.json")
    (package,) = server["packages"]
    assert {server["version"], package["version"], manifest["version"]} == {PROJECT["version"]}
    assert {package["identifier"], manifest["name"]} == {PROJECT["name"]}
    assert manifest["license"] == PROJECT["license"]
    assert manifest["compatibility"]["runtimes"]["python"] == PROJECT["requires-python"]


def test_readme_has_the_registry_name_of_the_package() -> None:
    """Check the marker by which the registry verifies that package and entry have the same owner."""
    name = load_description("server.json")["name"]
    assert f"<!-- mcp-name: {name} -->" in (REPOSITORY / "README.md").read_text()


def test_manifest_lists_the_offered_tools() -> None:
    listed = [(tool["name"], tool["description"]) for tool in load_description("manifest.json")["tools"]]
    assert listed == [(name, traits.title) for name, traits in TOOLS.items()]


def test_command_of_the_manifest_starts_the_server(tmp_path: Path) -> None:
    server = load_description("manifest.json")["server"]
    config = server["mcp_config"]
    assert (REPOSITORY / server["entry_point"]).is_file()
    *_, command, directories = config["args"]
    assert command in PROJECT["scripts"]
    (named,) = re.findall(r"\$\{user_config\.(\w+)\}", directories)
    assert named in load_description("manifest.json")["user_config"]
    root = tmp_path / "workspace"
    root.mkdir()
    with cold_starts(), connected(root) as agent:  # its command line is the same: directories only
        assert len(agent.tools()) == len(TOOLS)
