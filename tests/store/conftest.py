"""What tests of paths, and of what may go wrong with a store, stand on."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from objstore import Workspace
from tests.store.countdown import CountdownDisk
from tests.store.ground import PathSandbox
from tests.store.scenes import write


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
