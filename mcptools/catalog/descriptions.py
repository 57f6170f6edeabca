"""Read and encode the tools' descriptions and schemas, which are stored in `tools.json` and `review_tools.json`.

Generating them from the methods' signatures takes a fifth of a second, and every client asks for them when it starts.
A test compares the files with the signatures; `python -m mcptools.server.write_descriptions` regenerates them.
"""

import json
from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import Any, Final

__all__ = ["REVIEW_TOOLS_FILE", "TOOLS_FILE", "ToolDescription", "encode_descriptions", "load_descriptions"]

TOOLS_FILE: Final = "tools.json"
"""The file that describes every tool except those of the review in a window."""

REVIEW_TOOLS_FILE: Final = "review_tools.json"
"""The file that describes those: few clients show windows, and the others need not read it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDescription:
    """The description and schemas that a client gets of a tool, in addition to its traits."""

    description: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any]


def load_descriptions(file: str = TOOLS_FILE) -> dict[str, ToolDescription]:
    """Return the stored descriptions in a file, by the tools' names."""
    written: dict[str, dict[str, Any]] = json.loads(files("mcptools").joinpath(file).read_text("utf-8"))
    return {name: ToolDescription(**tool) for name, tool in written.items()}


def encode_descriptions(tools: dict[str, ToolDescription]) -> str:
    """Return the text of a file of descriptions."""
    return json.dumps({name: asdict(tool) for name, tool in tools.items()}, indent=1, ensure_ascii=False) + "\n"
