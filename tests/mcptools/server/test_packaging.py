"""How the server is described to those who install it: the registry's server.json, and the manifest of the bundle.

Their schemas are other projects' files and not ours to carry. What they ask of a server like this one is said here
anew: of server.json the schema of 2025-12-11 and the registry's rules for a package, of the manifest version 0.4.
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
EXACT: Final = r"^\d+\.\d+\.\d+([-+.][0-9A-Za-z.-]+)?$"
TEXT: Final = {"type": "string", "minLength": 1}

ARGUMENT: Final = {
    "type": "object",
    "required": ["type"],
    "anyOf": [{"required": ["valueHint"]}, {"required": ["value"]}, {"required": ["name"]}],
    "properties": {
        "type": {"enum": ["positional", "named"]},
        "format": {"enum": ["string", "number", "boolean", "filepath"]},
        "description": TEXT,
        "valueHint": TEXT,
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
        "version": {"type": "string", "maxLength": 255, "pattern": EXACT},
        "packages": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["registryType", "identifier", "version", "transport"],
                "properties": {
                    "registryType": {"const": "pypi"},
                    "identifier": TEXT,
                    "version": {"type": "string", "pattern": EXACT},
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
        "name": TEXT,
        "display_name": TEXT,
        "version": {"type": "string", "pattern": EXACT},
        "description": TEXT,
        "long_description": TEXT,
        "author": {"type": "object", "required": ["name"], "properties": {"name": TEXT}, "additionalProperties": False},
        "license": TEXT,
        "keywords": {"type": "array", "items": TEXT},
        "server": {
            "type": "object",
            "required": ["type", "entry_point", "mcp_config"],
            "properties": {
                "type": {"enum": ["python", "node", "binary", "uv"]},
                "entry_point": TEXT,
                "mcp_config": {
                    "type": "object",
                    "required": ["command"],
                    "properties": {"command": TEXT, "args": {"type": "array", "items": TEXT}},
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
                    "title": TEXT,
                    "description": TEXT,
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
                "properties": {"name": TEXT, "description": TEXT},
                "additionalProperties": False,
            },
        },
        "tools_generated": {"type": "boolean"},
        "compatibility": {
            "type": "object",
            "properties": {
                "platforms": {"type": "array", "items": {"enum": ["darwin", "win32", "linux"]}},
                "runtimes": {"type": "object", "properties": {"python": TEXT}, "additionalProperties": False},
            },
            "additionalProperties": False,
        },
    },
    "additionalProperties": False,
}


KINDS: Final = {"object": dict, "array": list, "string": str, "boolean": bool}


def faults(value: object, schema: dict[str, Any], where: str) -> Iterator[str]:
    """Yield what keeps a value from fitting a schema, as far as the schemas above go."""
    kind = KINDS.get(schema.get("type", ""))
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


def described(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((REPOSITORY / "docs" / "registry" / name).read_text())
    return found


@pytest.mark.parametrize(("name", "schema"), [("server.json", SERVER), ("manifest.json", MANIFEST)])
def test_a_description_has_the_shape_that_is_asked_of_it(name: str, schema: dict[str, Any]) -> None:
    assert list(faults(described(name), schema, name)) == []


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
def test_what_does_not_fit_is_seen(name: str, change: dict[str, Any], fault: str) -> None:
    schema = SERVER if name == "server.json" else MANIFEST
    assert fault in list(faults({**described(name), **change}, schema, name))


def test_both_are_of_this_version() -> None:
    server, manifest = described("server.json"), described("manifest.json")
    (package,) = server["packages"]
    assert {server["version"], package["version"], manifest["version"]} == {PROJECT["version"]}
    assert {package["identifier"], manifest["name"]} == {PROJECT["name"]}
    assert manifest["license"] == PROJECT["license"]
    assert manifest["compatibility"]["runtimes"]["python"] == PROJECT["requires-python"]


def test_the_readme_names_the_package_of_the_registry() -> None:
    """Check for the mark by which the registry knows that the package and its entry have one owner."""
    name = described("server.json")["name"]
    assert f"<!-- mcp-name: {name} -->" in (REPOSITORY / "README.md").read_text()


def test_the_manifest_names_the_tools_that_are_offered() -> None:
    listed = [(tool["name"], tool["description"]) for tool in described("manifest.json")["tools"]]
    assert listed == [(name, traits.title) for name, traits in TOOLS.items()]


def test_what_the_manifest_starts_is_there(tmp_path: Path) -> None:
    server = described("manifest.json")["server"]
    config = server["mcp_config"]
    assert (REPOSITORY / server["entry_point"]).is_file()
    *_, command, directories = config["args"]
    assert command in PROJECT["scripts"]
    (named,) = re.findall(r"\$\{user_config\.(\w+)\}", directories)
    assert named in described("manifest.json")["user_config"]
    root = tmp_path / "workspace"
    root.mkdir()
    with cold_starts(), connected(root) as agent:  # its command line is the same: directories, and nothing else
        assert len(agent.tools()) == len(TOOLS)
