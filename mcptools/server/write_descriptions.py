"""Write `tools.json` and `review_tools.json` from the tools' signatures and docstrings.

Run it as `python -m mcptools.server.write_descriptions`.
"""

from collections.abc import Iterable
from importlib.resources import as_file, files

from mcptools.catalog.descriptions import REVIEW_TOOLS_FILE, TOOLS_FILE, ToolDescription, encode_descriptions
from mcptools.catalog.tool_list import REVIEW_TOOLS, TOOLS
from mcptools.files.workspaces import Directories
from mcptools.server.mcp_server import EditServer

__all__ = ["describe_tools", "main"]


def describe_tools(names: Iterable[str] = TOOLS) -> dict[str, ToolDescription]:
    """Return the description and schemas of each of these tools, generated from its method."""
    server = EditServer(Directories([]))
    return {name: server.described(name) for name in names}


def main() -> None:
    """Write both files."""
    for file, names in ((TOOLS_FILE, TOOLS), (REVIEW_TOOLS_FILE, REVIEW_TOOLS)):
        with as_file(files("mcptools").joinpath(file)) as path:
            path.write_text(encode_descriptions(describe_tools(names)), "utf-8")


if __name__ == "__main__":
    main()
