"""What tests of paths stand on."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.store.ground import Ground


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[Ground]:
    ground = Ground(tmp_path)
    yield ground
    ground.tree.close()
