"""The desk at which these tests sit."""

from pathlib import Path

import pytest

from tests.cli.desk import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """Return a desk with an empty workspace."""
    folder = tmp_path / "ws"
    folder.mkdir()
    return Desk(folder)
