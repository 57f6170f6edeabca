"""Fixtures for tests of the store: a sandbox of paths, a workspace, a scene."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from objstore import Workspace
from tests.support.crash_scenarios import write
from tests.support.faulty_disk import CountdownDisk
from tests.support.path_sandbox import PathSandbox
from tests.support.scene import Scene


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[PathSandbox]:
    sandbox = PathSandbox(tmp_path)
    yield sandbox
    sandbox.tree.close()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a workspace with one file, which one edit has made."""
    root = tmp_path / "workspace"
    root.mkdir()
    with Workspace.init(root, CountdownDisk(None)) as workspace:
        write(workspace, "a.txt", b"one\n")
    return root


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path / "workspace")
    yield made
    made.close()
