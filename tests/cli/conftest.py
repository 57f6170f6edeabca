"""Fixtures that several modules of these tests use."""

from pathlib import Path

import pytest

from cli.setup.plans import HOMES
from tests.support.command_runner import CommandRunner


@pytest.fixture
def runner(tmp_path: Path) -> CommandRunner:
    """Return a runner with an empty workspace."""
    folder = tmp_path / "ws"
    folder.mkdir()
    return CommandRunner(folder)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty home folder for the settings of clients."""
    for variable, _ in HOMES.values():
        monkeypatch.delenv(variable, raising=False)
    home = tmp_path / "home"
    home.mkdir()
    return home


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a project folder that is not a workspace yet."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.txt").write_text("one\n")
    return project
