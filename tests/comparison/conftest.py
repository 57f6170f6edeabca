"""The same small project for every tool that is compared."""

from pathlib import Path
from typing import Final

import pytest

from tests.support.git_repository import git, new_repository

__all__ = ["BASE", "changed"]

BASE: Final = "".join(f"line {number}\n" for number in range(1, 21))
"""The text that the agents in most stories change."""


def changed(text: str, **lines: str) -> str:
    """Return the text with another content in some lines: `line_3="three"`."""
    for name, content in lines.items():
        was = f"{name.replace('_', ' ')}\n"
        assert text.count(was) == 1, (name, text)
        text = text.replace(was, f"{content}\n")
    return text


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a git repository with one commit, in which `.cas/` and `build/` are ignored."""
    folder = new_repository(tmp_path / "project")
    (folder / "app.txt").write_text(BASE)
    (folder / "notes.txt").write_text("notes\n")
    (folder / "logo.bin").write_bytes(b"\0\1\2")
    (folder / "run.sh").write_text("echo run\n")
    (folder / "run.sh").chmod(0o644)
    (folder / ".gitignore").write_text(".cas/\nbuild/\n")
    git(folder, "config", "user.name", "A")
    git(folder, "config", "user.email", "a@example.org")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "base")
    return folder
