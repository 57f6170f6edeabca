"""Settings files of agent programs in a project and a home folder."""

from pathlib import Path

from tests.support.command_runner import CommandResult, cas

__all__ = ["files", "put", "run"]


def run(project: Path, home: Path, *words: str) -> CommandResult:
    """Run `cas` in the project as the user of that home folder."""
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
