"""A browser for tests of the review page: the system's Chromium, driven by playwright."""

import os
import shutil
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

import pytest

from tests.support.review_server import ReviewServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, ConsoleMessage, Dialog, Error, FloatRect, Locator, Page, Request
    from playwright.sync_api._generated import LocatorAssertions

__all__ = ["CHROMIUM", "MILLISECONDS", "ReviewPage", "browser", "expect", "needs_browser"]

CHROMIUM: Final = os.environ.get("EDITLEDGER_CHROMIUM") or next(
    filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"))), None
)
IS_REQUIRED: Final = "chromium" in os.environ.get("EDITLEDGER_REQUIRES", "").split()
MILLISECONDS: Final = 15_000.0
"""Milliseconds for which a test waits for an element to appear."""

QUIET: Final = 5
"""How often, every 20 ms, nothing must be on its way until the page counts as settled; a refresh asks within one."""

LATE: Final = ("/api/file?", "/api/line?", "/api/lines?", "/api/syntax?", "/api/rejection?")
"""Requests that may come when what they are about is decided already."""

OPTIONS: Final = (
    "--headless",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--process-per-site",  # a page that shows one server after the other keeps its process
)

needs_browser = pytest.mark.skipif(
    not IS_REQUIRED and (CHROMIUM is None or find_spec("playwright") is None),
    reason="playwright (`make screenshots` installs it) or Chromium (on PATH or in EDITLEDGER_CHROMIUM) is missing",
)


@contextmanager
def browser() -> "Iterator[Browser]":
    """Start a browser; end it after use."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 -- tests are collected without it too

    root = ("--no-sandbox",) if hasattr(os, "geteuid") and os.geteuid() == 0 else ()
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=[*OPTIONS, *root])
        try:
            yield started
        finally:
            started.close()


def expect(what: "Locator") -> "LocatorAssertions":
    """Return playwright's assertions, which wait until they hold."""
    from playwright.sync_api import expect as expected  # noqa: PLC0415 -- as above

    expected.set_options(timeout=MILLISECONDS)
    return expected(what)


class ReviewPage:
    """The page as a person uses it. Errors of scripts are kept for the test to check."""

    def __init__(self, page: "Page", server: ReviewServer) -> None:
        self.page: Final = page
        self.server: Final = server
        self.wrong: Final[list[str]] = []
        page.set_default_timeout(MILLISECONDS)
        self._asked: Final[set[Request]] = set()
        page.on("request", self._note_request)
        page.on("requestfinished", self._note_answer)
        page.on("requestfailed", self._note_answer)
        page.on("pageerror", self._note_error)
        page.on("console", self._note)
        page.on("dialog", self._note_dialog)

    def _note_error(self, error: "Error") -> None:
        self.wrong.append(str(error))

    def _note_request(self, request: "Request") -> None:
        if "/api/events" not in request.url:
            self._asked.add(request)

    def _note_answer(self, request: "Request") -> None:
        self._asked.discard(request)

    def settle(self) -> None:
        """Wait until the page has had no request on its way for a moment."""
        quiet = 0
        while quiet < QUIET:
            self.page.wait_for_timeout(20)
            quiet = 0 if self._asked else quiet + 1

    def _note_dialog(self, dialog: "Dialog") -> None:
        self.wrong.append(f"dialog: {dialog.message}")

    def _note(self, said: "ConsoleMessage") -> None:
        # A decision between two requests may leave a file without changes: the page then goes on to the next one.
        if said.type == "error" and not any(each in said.location["url"] for each in LATE):
            self.wrong.append(f"{said.text} {said.location['url']}")

    def open(self, screen: str = "") -> "ReviewPage":
        """Open the page with its token, and a screen of it."""
        self.page.goto(f"{self.server.origin}/?token={self.server.token}")
        self.page.locator(".queue-list > :not([role=status]), .done-page h1").first.wait_for()
        if screen:
            self.go(screen)
        return self

    def leave(self) -> None:
        """Leave the page as a new one would be, but for its history: for another test."""
        page = self.page
        for other in page.context.pages:
            if other != page:
                other.close()
        page.unroute_all(behavior="ignoreErrors")
        page.evaluate("localStorage.clear(), sessionStorage.clear()")
        page.goto("about:blank")
        page.context.clear_cookies()
        page.remove_listener("request", self._note_request)
        page.remove_listener("requestfinished", self._note_answer)
        page.remove_listener("requestfailed", self._note_answer)
        page.remove_listener("pageerror", self._note_error)
        page.remove_listener("console", self._note)
        page.remove_listener("dialog", self._note_dialog)

    def go(self, screen: str) -> None:
        """Go to a screen by its address."""
        self.page.goto(f"{self.server.origin}/{screen}")

    def file(self, name: str, *, turn: int | None = None) -> None:
        """Open a file's changes by its link in the queue."""
        self.page.get_by_role("button", name="As folders" if turn is None else "By turn", exact=True).click()
        where = self.page.locator(".queue .tree" if turn is None else f"section.turn[aria-label='Turn {turn}']")
        where.get_by_title(name, exact=True).first.click()
        self.head_of(name).wait_for()
        self.current.wait_for()

    def head_of(self, name: str) -> "Locator":
        """Return the head of the file that is shown, if it is this one."""
        return self.page.locator(".file-head h1", has_text=name)

    def press(self, key: str) -> None:
        """Press a key."""
        self.page.keyboard.press(key)

    @property
    def heads(self) -> "Locator":
        """The changes of the file, each with its heading."""
        return self.page.locator(".change:not(.part)")

    @property
    def current(self) -> "Locator":
        """The current change."""
        return self.page.locator(".change.now:not(.part)")

    @property
    def said(self) -> "Locator":
        """What the message says."""
        return self.page.locator(".message .said:not(:empty)")

    @property
    def failure(self) -> "Locator":
        """What the message of a failure says."""
        return self.page.locator(".message .failure:not(:empty)")

    @property
    def progress(self) -> "Locator":
        """How many changes are decided, and of how many."""
        return self.page.locator(".progress:visible .of")

    @property
    def sheet(self) -> "Locator":
        """The dialog that is open."""
        return self.page.locator("dialog[open]")

    def box(self, what: "Locator") -> "FloatRect":
        """Return where on the screen an element is, in pixels; one that is redrawn has no place for a moment."""
        for _ in range(10):
            expect(what).to_be_visible()
            box = what.bounding_box()
            if box is not None:
                return box
        raise AssertionError("It is redrawn all the time.")

    def top(self, what: "Locator") -> float:
        """Return where on the screen an element begins, in pixels."""
        top: float = self.box(what)["y"]
        return top

    def overflow(self) -> int:
        """Return by how many pixels the page is wider than the screen."""
        wide: int = self.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        return wide
