"""One server for each test module, because starting one costs most of a second; each test has its own folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.mcp_agent import Agent, connected


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    with connected(tmp_path_factory.mktemp("workspace").resolve()) as agent:
        yield agent


@pytest.fixture
def folder(agent: Agent) -> Path:
    """Return an empty folder in the server's directory that no other test uses."""
    used = len(list(agent.root.glob("test_*")))
    folder = agent.root / f"test_{used}"
    folder.mkdir()
    return folder
