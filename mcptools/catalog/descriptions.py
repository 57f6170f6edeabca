"""Read and encode the tools' descriptions and schemas, which are stored in `tools.json`.

Generating them from the methods' signatures takes a fifth of a second, and every client asks for them when it starts.
A test compares the file with the signatures; `python -m mcptools.server.write_descriptions` regenerates it.
"""

import json
from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import Any

__all__ = ["ToolDescription", "encode_descriptions", "load_descriptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDescription:
    """The description and schemas that a client gets of a tool, in addition to its traits."""

    description: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any]


def load_descriptions() -> dict[str, ToolDescription]:
    """Return the stored description of every tool, by name."""
    written: dict[str, dict[str, Any]] = json.loads(files("mcptools").joinpath("tools.json").read_text("utf-8"))
    return {name: ToolDescription(**tool) for name, tool in written.items()}


def encode_descriptions(tools: dict[str, ToolDescription]) -> str:
    """Return the text of `tools.json`."""
    return json.dumps({name: asdict(tool) for name, tool in tools.items()}, indent=1, ensure_ascii=False) + "\n"
