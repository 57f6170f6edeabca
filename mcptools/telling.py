"""Telling: writes `tools.json` anew from the tools' signatures and words: `python -m mcptools.telling`."""

from importlib.resources import as_file, files

from mcptools.catalogue import TOOLS
from mcptools.directories import Directories
from mcptools.server import EditServer
from mcptools.told import ToolDescription, encode_descriptions

__all__ = ["describe_tools", "main"]


def describe_tools() -> dict[str, ToolDescription]:
    """Return what clients are to be told of every tool."""
    server = EditServer(Directories([]))
    return {name: server.described(name) for name in TOOLS}


def main() -> None:
    """Write the file."""
    with as_file(files("mcptools").joinpath("tools.json")) as path:
        path.write_text(encode_descriptions(describe_tools()), "utf-8")


if __name__ == "__main__":
    main()
