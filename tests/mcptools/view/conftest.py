"""A browser for the tests of the window, where there is one."""

import os
import shutil
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

IS_REQUIRED: Final = "chromium" in os.environ.get("EDITLEDGER_REQUIRES", "")


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    """Start Chromium. Without it, or without playwright, the tests are skipped, unless EDITLEDGER_REQUIRES names it."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None and not IS_REQUIRED:
        pytest.skip("no Chromium on PATH")
    try:
        from playwright.sync_api import sync_playwright  # noqa: PLC0415 -- it need not be installed
    except ImportError:
        if IS_REQUIRED:
            raise
        pytest.skip("playwright is not installed")
    assert program is not None, "Chromium is required, and not on PATH"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()
