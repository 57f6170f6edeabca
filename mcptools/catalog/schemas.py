"""Build flat JSON Schemas of a tool's input and output: no references, and no alternative shapes."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final, get_args, get_type_hints

from pydantic import TypeAdapter

from mcptools.catalog.tool_list import Traits

__all__ = ["described", "flat", "output_schema", "parameters_of"]

_ERROR_SCHEMA: Final = {
    "type": "object",
    "description": "On failure: the error, and facts that help to correct the call",
    "properties": {
        "code": {"type": "integer"},
        "type": {"type": "string"},
        "message": {"type": "string"},
        "hint": {"type": "string"},
    },
    "required": ["code", "type", "message"],
}


def parameters_of(method: Callable[..., object]) -> list[inspect.Parameter]:
    """Return the parameters of an unbound method, without `self`, with their resolved types."""
    hints = get_type_hints(method, include_extras=True)
    _, *parameters = inspect.signature(method).parameters.values()
    return [parameter.replace(annotation=hints[parameter.name]) for parameter in parameters]


def described(schema: dict[str, Any], method: Callable[..., object]) -> dict[str, Any]:
    """Return an input schema with the descriptions that a method's signature annotates its types with."""
    for name, hint in get_type_hints(method, include_extras=True).items():
        words = [part for part in get_args(hint)[1:] if isinstance(part, str)]
        if name in schema["properties"] and words:
            schema["properties"][name]["description"] = words[0]
    return schema


def output_schema(method: Callable[..., object], traits: Traits) -> dict[str, Any]:
    """Return the schema of a tool's structured content, which covers its answers and its failures."""
    (structured,) = get_args(get_type_hints(method)["return"])
    schema = flat(TypeAdapter(structured).json_schema(mode="serialization"))
    if traits.json_text:
        notes = {"type": "array", "items": {"type": "string"}}
        schema["properties"] |= {"error": {"type": "string"}, "error_type": {"type": "string"}, "notes": notes}
    else:
        schema["properties"]["error"] = _ERROR_SCHEMA
    schema["required"] = ["success"]
    return schema


def flat(schema: Mapping[str, Any], definitions: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return `schema` with every reference replaced by its definition, and without titles, which only repeat names."""
    if definitions is None:
        definitions = schema.get("$defs", {})
    if {"type": "null"} in schema.get("anyOf", ()):
        (part,) = (flat(part, definitions) for part in schema["anyOf"] if part != {"type": "null"})
        return {**part, "type": [part["type"], "null"]}
    reference = schema.get("$ref")
    if reference is not None:
        # A definition's docstring is for readers of the code; every word of a schema costs a model tokens.
        definition = {**definitions[reference.removeprefix("#/$defs/")]}
        definition.pop("description", None)
        schema = {**definition, **schema}
    made = {key: value for key, value in schema.items() if key not in {"$defs", "$ref", "title"}}
    if "properties" in made:
        made["properties"] = {name: flat(part, definitions) for name, part in made["properties"].items()}
    if "items" in made:
        made["items"] = flat(made["items"], definitions)
    return made
