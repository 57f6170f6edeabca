"""A server over a workspace with one pending change."""

from collections.abc import Iterator

import pytest

from tests.support.command_runner import CommandRunner
from tests.support.review_server import ReviewServer, review_server


@pytest.fixture
def server(runner: CommandRunner) -> Iterator[ReviewServer]:
    """Return a server that serves the runner's workspace."""
    with review_server(runner.folder) as server:
        yield server
