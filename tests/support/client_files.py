"""Settings files of agent programs in a project and a home folder."""

from pathlib import Path
from typing import Final

from tests.support.command_runner import CommandResult, cas

__all__ = ["SERVER_FILES", "files", "put", "run"]

SERVER_FILES: Final = {
    "claude-code": ".mcp.json",
    "codex": ".codex/config.toml",
    "gemini": ".gemini/settings.json",
    "cursor": ".cursor/mcp.json",
    "vscode": ".vscode/mcp.json",
    "opencode": "opencode.json",
}
"""The file that lists the MCP servers of a project, by client."""


def run(project: Path, home: Path, *words: str) -> CommandResult:
    """Run `cas` in the project as the user of that home folder.

    A `setup` also adds the server, so that the laws about settings files hold for its entry as well.
    """
    if words[0] == "setup" and "--remove" not in words:
        words = (*words, "--server")
    settings = {"HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config")}
    return cas(*words, folder=project, settings=settings)


def files(*folders: Path) -> dict[Path, bytes]:
    """Return content by path of every file below the folders, without stores."""
    found = [path for folder in folders for path in folder.rglob("*") if path.is_file() and ".cas" not in path.parts]
    return {path: path.read_bytes() for path in found}


def put(path: Path, content: bytes | str) -> Path:
    """Write a file, create its folders, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path
