"""What a server remembers between requests is bounded, and never prevents an answer."""

from pathlib import Path

import click
import pytest

from cli.web.server_state import ServerState, Ticket
from tests.support.command_runner import CommandRunner


@pytest.fixture
def server(runner: CommandRunner) -> ServerState:
    """Return the state of a server of the workspace."""
    return ServerState(str(runner.folder), click.Context(click.Command("web")))


def test_of_many_tickets_the_newest_hundred_are_known(server: ServerState) -> None:
    tickets = [server.ticket(Ticket()) for _ in range(150)]
    assert len(set(tickets)) == 150
    assert [server.shown(ticket) is not None for ticket in tickets] == [False] * 50 + [True] * 100


def test_files_are_put_off_only_as_long_as_each_look_gets_further(server: ServerState) -> None:
    assert server.may_put_off()
    for left in (5, 3):
        before = server.version()
        server.note_put_off(left)
        assert server.may_put_off()
        assert server.version() != before  # pages look again
    server.note_put_off(3)  # as where what was read can't be kept
    assert not server.may_put_off()
    before = server.version()
    server.note_put_off(0)
    assert server.may_put_off()
    assert server.version() == before


def test_a_folder_without_a_store_is_not_called_read_only(tmp_path: Path) -> None:
    assert ServerState(str(tmp_path), click.Context(click.Command("web"))).read_only() == ""
