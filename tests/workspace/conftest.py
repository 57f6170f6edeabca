"""A scene for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.workspace.scene import Scene


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path / "workspace")
    yield made
    made.close()
