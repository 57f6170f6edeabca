"""Write `tools.json` from the tools' signatures and docstrings: `python -m mcptools.server.write_descriptions`."""

from importlib.resources import as_file, files

from mcptools.catalog.descriptions import ToolDescription, encode_descriptions
from mcptools.catalog.tool_list import TOOLS
from mcptools.files.workspaces import Directories
from mcptools.server.mcp_server import EditServer

__all__ = ["describe_tools", "main"]


def describe_tools() -> dict[str, ToolDescription]:
    """Return the description and schemas of every tool, generated from its method."""
    server = EditServer(Directories([]))
    return {name: server.described(name) for name in TOOLS}


def main() -> None:
    """Write `tools.json`."""
    with as_file(files("mcptools").joinpath("tools.json")) as path:
        path.write_text(encode_descriptions(describe_tools()), "utf-8")


if __name__ == "__main__":
    main()
