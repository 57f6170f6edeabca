"""Told: what clients are told of each tool, written down in `tools.json`.

To make it from the methods' signatures takes a fifth of a second, and every client asks for it at its start. A test
holds the file against the signatures; `python -m mcptools.server.write_descriptions` writes it anew.
"""

import json
from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import Any

__all__ = ["ToolDescription", "encode_descriptions", "load_descriptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDescription:
    """What a client is told of a tool beside its traits."""

    description: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any]


def load_descriptions() -> dict[str, ToolDescription]:
    """Return what is written down of every tool."""
    written: dict[str, dict[str, Any]] = json.loads(files("mcptools").joinpath("tools.json").read_text("utf-8"))
    return {name: ToolDescription(**said) for name, said in written.items()}


def encode_descriptions(tools: dict[str, ToolDescription]) -> str:
    """Return the one spelling of the file."""
    return json.dumps({name: asdict(said) for name, said in tools.items()}, indent=1, ensure_ascii=False) + "\n"
