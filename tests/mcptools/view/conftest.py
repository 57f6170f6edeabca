"""A browser for the tests of the window, and a project with one file."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import review_browser
from tests.support.windowed_agent import LINES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    """Return a browser."""
    with review_browser.browser() as started:
        yield started


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a folder with a file of twenty lines."""
    root = tmp_path / "project"
    root.mkdir()
    (root / "a.txt").write_text(LINES)
    return root
