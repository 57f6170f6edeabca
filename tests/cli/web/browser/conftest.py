"""Fixtures: one browser for all modules, a project that is copied for each test, and pages of a server of it."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from tests.support.review_browser import ReviewPage, browser
from tests.support.review_project import agents_worked, new_project
from tests.support.review_server import ReviewServer, review_server

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

Opener: TypeAlias = Callable[..., ReviewPage]


@pytest.fixture(scope="package")  # not for the session: playwright runs a loop, with which other tests start none
def chromium() -> "Iterator[Browser]":
    """Return a browser."""
    with browser() as started:
        yield started


@pytest.fixture(scope="session")
def reviewed_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a project in which agents have worked; tests only copy it."""
    root = new_project(tmp_path_factory.mktemp("reviewed") / "shop")
    agents_worked(root)
    return root


@pytest.fixture
def project(reviewed_project: Path, tmp_path: Path) -> Path:
    """Return a project of the test's own in which agents have worked."""
    return Path(shutil.copytree(reviewed_project, tmp_path / "shop"))


@pytest.fixture
def serve() -> Iterator[Callable[..., ReviewServer]]:
    """Return a function that starts servers; each ends with the test, and must not have printed any error."""
    with ExitStack() as stack:
        servers: list[ReviewServer] = []

        def started(root: Path, *options: str, **how: Any) -> ReviewServer:  # noqa: ANN401 -- as review_server
            servers.append(stack.enter_context(review_server(root, *options, **how)))
            return servers[-1]

        yield started
        said = [server.end()[1] for server in servers if server.process.returncode is None]
        assert "".join(said) == ""


@pytest.fixture(scope="module")
def only_read(reviewed_project: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReviewServer]:
    """Return a server of a project in which agents have worked: for tests that decide on nothing."""
    root = Path(shutil.copytree(reviewed_project, tmp_path_factory.mktemp("read") / "shop"))
    with review_server(root) as server:
        yield server
        assert server.end()[1] == ""


@pytest.fixture(scope="module")
def serve_for_module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Path], ReviewServer]]:
    """Return a function that starts a server of a copy of a project, for tests that decide on nothing."""
    with ExitStack() as stack:

        def started(root: Path) -> ReviewServer:
            copy = Path(shutil.copytree(root, tmp_path_factory.mktemp("shared") / root.name))
            return stack.enter_context(review_server(copy))

        yield started


@pytest.fixture
def reading(only_read: ReviewServer, opened: Opener) -> Iterator[ReviewPage]:
    """Return a page of a server that other tests read from too; which changes were seen depends on these."""
    before = undecided(only_read)
    yield opened(only_read)
    assert undecided(only_read) == before


def undecided(server: ReviewServer) -> list[str]:
    """Return the keys of the pending changes."""
    files = server.queue()["files"]
    return [change["key"] for file in files for change in server.get("/api/file", document=file["document"])["all"]]


@pytest.fixture(scope="module")
def idle_pages() -> "Iterator[list[Page]]":
    """Return the pages that no test uses; a page that is used again shows a document in a third of the time.

    Those of another module are not used: scripts that its tests have added run in each document that a page shows.
    """
    pages: list[Page] = []
    yield pages
    for page in pages:
        page.context.close()


@pytest.fixture
def opened(chromium: "Browser", idle_pages: "list[Page]") -> Iterator[Opener]:
    """Return a function that opens pages of a server, each in a profile of its own; no script may fail on them."""
    pages: list[ReviewPage] = []

    def page(
        server: ReviewServer, screen: str = "", *, width: int = 1440, height: int = 900, scheme: str = "light"
    ) -> ReviewPage:
        used = idle_pages.pop() if idle_pages else chromium.new_context(reduced_motion="reduce").new_page()
        used.set_viewport_size({"width": width, "height": height})
        used.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        pages.append(ReviewPage(used, server))
        return pages[-1].open(screen)

    yield page
    wrong = [words for each in pages for words in each.wrong]
    for each in pages:
        each.leave()
        idle_pages.append(each.page)
    assert wrong == []
