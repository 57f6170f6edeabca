"""A project and a home with the settings files of agents' programs in them."""

import os
from pathlib import Path
from typing import Final

from tests.support.command_runner import SOURCE, CommandResult, cas
from tests.support.fork_server import forked_program

WARM_SCRIPTS: Final = Path(__file__).with_name("warm_scripts")

__all__ = ["files", "put", "run"]


def run(project: Path, home: Path, *words: str) -> CommandResult:
    """Run `cas` in the project as somebody who lives in that home. The programs that its doctor runs start warm."""
    settings = {"HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config")}
    if "doctor" in words:
        warm = {"cas": forked_program("cli").command, "editledger": forked_program("mcptools").command}
        settings["CAS_TEST_WARM"] = "\n\n".join("\n".join((name, *command)) for name, command in warm.items())
        settings["PYTHONPATH"] = os.pathsep.join((str(WARM_SCRIPTS), SOURCE))
    return cas(*words, folder=project, settings=settings)


def files(*folders: Path) -> dict[Path, bytes]:
    """Return every file below the folders but stores."""
    found = [path for folder in folders for path in folder.rglob("*") if path.is_file() and ".cas" not in path.parts]
    return {path: path.read_bytes() for path in found}


def put(path: Path, content: bytes | str) -> Path:
    """Put a file down, with the folders above it, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path
