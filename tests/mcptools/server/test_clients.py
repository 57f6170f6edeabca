"""The clients that a server remembers: any number of new names displaces no client that has done something."""

import time
from pathlib import Path
from typing import Final

import anyio

from mcptools.feeds.change_feed import ChangeFeed
from mcptools.files.workspaces import Directories
from mcptools.model.limits import ServerLimits
from mcptools.server.clients import Clients
from mcptools.server.mcp_server import EditServer
from mcptools.server.subscriptions import SubscriptionFeed
from tests.support.direct_tools import Tools
from tests.support.http_server import inside

MOST: Final = 60
"""Clients that are remembered here: a server remembers a thousand."""


def test_clients_with_something_to_lose_are_not_forgotten_for_new_names(tmp_path: Path) -> None:
    clients, directories = Clients(require_read=False, most=MOST), Directories([str(tmp_path)])
    (tmp_path / "file").write_text("text\n")

    def note_request(name: str) -> Tools:
        clients.note_request(name)
        return Tools(directories, clients.current().session, ServerLimits())

    note_request("writer").write_file("new", "text\n")
    note_request("undoer").write_file("file", "more\n")
    note_request("undoer").Undo()
    note_request("reader").read_file("file")
    clients.note_request("listener")
    clients.current().subscribed.add("cas://edit/1")
    before = {}
    for name in ("writer", "undoer", "reader", "listener"):
        clients.note_request(name)
        before[name] = clients.current()
    for number in range(5 * MOST):
        clients.note_request(f"invented {number}")
        assert clients.current() is not None
    for name, client in before.items():
        clients.note_request(name)
        assert clients.current() is client, name
    for number in range(2 * MOST):
        note_request(f"reads {number}").read_file("file")
    for name in ("writer", "undoer", "listener"):
        clients.note_request(name)
        assert clients.current() is before[name], name
    directories.close()


def test_a_client_that_is_new_is_remembered_where_all_others_have_something_to_lose(tmp_path: Path) -> None:
    clients, directories = Clients(require_read=False, most=MOST), Directories([str(tmp_path)])
    for number in range(MOST):
        clients.note_request(f"writer {number}")
        Tools(directories, clients.current().session, ServerLimits()).write_file("file", f"{number}\n")
    clients.note_request("new")
    new = clients.current()
    clients.note_request(f"writer {MOST - 1}")
    clients.note_request("new")
    assert clients.current() is new
    directories.close()


def test_inactive_clients_are_forgotten_before_active_ones(tmp_path: Path) -> None:
    now = 0.0
    clients, directories = Clients(require_read=False, clock=lambda: now, most=MOST), Directories([str(tmp_path)])
    (tmp_path / "file").write_text("text\n")

    def note_request(name: str) -> Tools:
        clients.note_request(name)
        return Tools(directories, clients.current().session, ServerLimits())

    clients.note_request("listener")
    listener = clients.current()
    listener.subscribed.add("cas://edit/1")
    for number in range(MOST - 2):
        note_request(f"wrote once {number}").write_file("new", f"{number}\n")
    now = 3600.0
    note_request("reader").read_file("file")
    reader = clients.current()
    for number in range(MOST - 2):
        clients.note_request(f"new {number}")
    for name, client in (("reader", reader), ("listener", listener)):
        clients.note_request(name)
        assert clients.current() is client, name
    directories.close()


async def told_of_nothing(_: str | None) -> None:
    raise AssertionError("nothing was recorded")


def test_a_client_is_not_forgotten_while_it_listens_on_a_stream(tmp_path: Path) -> None:
    now = 0.0
    clients, directories = Clients(require_read=False, clock=lambda: now, most=MOST), Directories([str(tmp_path)])
    following = SubscriptionFeed(ChangeFeed(directories), clients, lambda _client, _roots: directories)
    clients.note_request("listener")
    listener = clients.current()
    ends = [following.listen(told_of_nothing), following.listen(told_of_nothing)]
    for moment in (0.0, 3600.0):
        now = moment
        for number in range(2 * MOST):
            clients.note_request(f"invented {number}")
        ends.pop()()
    clients.note_request("listener")
    assert clients.current() is listener
    for number in range(2 * MOST):
        clients.note_request(f"invented {number}")
    clients.note_request("listener")
    assert clients.current() is not listener
    directories.close()


def test_what_is_recorded_since_the_first_listener_came_is_news_also_if_another_comes(tmp_path: Path) -> None:
    directories = Directories([str(tmp_path)])
    begun: list[float] = []

    class Counted(ChangeFeed):
        def begin(self) -> None:
            begun.append(time.monotonic())
            super().begin()

    async def both() -> None:
        following = SubscriptionFeed(
            Counted(directories), Clients(require_read=False), lambda _client, _roots: directories
        )
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(following.begin)
            tasks.start_soon(following.begin)

    anyio.run(both)
    assert len(begun) == 1
    directories.close()


def test_a_client_whose_session_has_ended_is_forgotten(tmp_path: Path) -> None:
    directories = Directories([str(tmp_path)])
    server = EditServer(directories)

    async def subscribed_and_ended() -> tuple[bool, bool]:
        async with inside(server) as served:
            session = await served.session()
            await served.ask(session, "resources/subscribe", uri="cas://edit/1")
            before = server.subscription_feed.has_listeners()
            assert (await served.connection.delete("/mcp", headers=session)).is_success
            await anyio.wait_all_tasks_blocked()
            return before, server.subscription_feed.has_listeners()

    assert anyio.run(subscribed_and_ended) == (True, False)
    directories.close()
