"""Settings files of agent programs in a project and a home folder."""

import os
from pathlib import Path
from typing import Final

from tests.support.command_runner import SOURCE, CommandResult, cas
from tests.support.fork_server import forked_program

WARM_SCRIPTS: Final = Path(__file__).with_name("warm_scripts")

__all__ = ["files", "put", "run"]


def run(project: Path, home: Path, *words: str) -> CommandResult:
    """Run `cas` in the project as the user of that home folder. The programs that its doctor runs start warm.

    A `setup` also adds the server, so that the laws about settings files hold for its entry as well.
    """
    if words[0] == "setup" and "--remove" not in words:
        words = (*words, "--server")
    settings = {"HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config")}
    if "doctor" in words:
        warm = {"cas": forked_program("cli").command, "editledger": forked_program("mcptools").command}
        settings["CAS_TEST_WARM"] = "\n\n".join("\n".join((name, *command)) for name, command in warm.items())
        settings["PYTHONPATH"] = os.pathsep.join((str(WARM_SCRIPTS), SOURCE))
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
