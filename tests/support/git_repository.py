"""A real git repository for tests, with the real git and no settings of the machine."""

import os
import subprocess
from pathlib import Path

__all__ = ["git", "new_repository"]

_IDENTITY = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "protocol.file.allow=always")


def git(folder: Path, *arguments: str) -> str:
    """Run git in a folder and return what it prints. Raises CalledProcessError."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_EDITOR": "true"}
    command = ["git", *_IDENTITY, *arguments]
    return subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True, text=True).stdout


def new_repository(folder: Path) -> Path:
    """Create a repository with the branch `main` and no commit; return its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", "-b", "main")
    return folder
