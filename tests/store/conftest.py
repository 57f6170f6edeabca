"""What tests of paths, and of what may go wrong with a store, stand on."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from objstore import Workspace
from tests.store.countdown import CountdownDisk
from tests.store.ground import Ground
from tests.store.scenes import write


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[Ground]:
    ground = Ground(tmp_path)
    yield ground
    ground.tree.close()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a workspace with one file, which one edit has made."""
    root = tmp_path / "workspace"
    root.mkdir()
    with Workspace.init(root, CountdownDisk(None)) as workspace:
        write(workspace, "a.txt", b"one\n")
    return root
