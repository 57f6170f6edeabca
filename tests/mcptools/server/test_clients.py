"""The clients that a server remembers; new client names never displace clients with state worth keeping."""

import time
from pathlib import Path
from typing import Final

import anyio

from mcptools.feeds.change_feed import ChangeFeed
from mcptools.files.workspaces import Directories
from mcptools.model.limits import ServerLimits
from mcptools.server.clients import Clients
from mcptools.server.mcp_server import EditServer
from mcptools.server.request_client import Identity
from mcptools.server.subscriptions import SubscriptionFeed
from tests.support.direct_tools import Tools
from tests.support.http_server import inside

MAX_CLIENTS: Final = 60
"""The limit of remembered clients in these tests; a server remembers a thousand."""


def test_new_clients_do_not_displace_clients_with_state(tmp_path: Path) -> None:
    clients, directories = Clients(require_read=False, most=MAX_CLIENTS), Directories([str(tmp_path)])
    (tmp_path / "file").write_text("text\n")

    def note_request(name: str) -> Tools:
        clients.note_request(Identity(key=name))
        return Tools(directories, clients.current().session, ServerLimits())

    note_request("writer").write_file("new", "text\n")
    note_request("undoer").write_file("file", "more\n")
    note_request("undoer").Undo()
    note_request("reader").read_file("file")
    clients.note_request(Identity(key="listener"))
    clients.current().subscribed.add("cas://edit/1")
    before = {}
    for name in ("writer", "undoer", "reader", "listener"):
        clients.note_request(Identity(key=name))
        before[name] = clients.current()
    for number in range(5 * MAX_CLIENTS):
        clients.note_request(Identity(key=f"invented {number}"))
        assert clients.current() is not None
    for name, client in before.items():
        clients.note_request(Identity(key=name))
        assert clients.current() is client, name
    for number in range(2 * MAX_CLIENTS):
        note_request(f"reads {number}").read_file("file")
    for name in ("writer", "undoer", "listener"):
        clients.note_request(Identity(key=name))
        assert clients.current() is before[name], name
    directories.close()


def test_new_client_is_remembered_even_if_all_others_have_state(tmp_path: Path) -> None:
    clients, directories = Clients(require_read=False, most=MAX_CLIENTS), Directories([str(tmp_path)])
    for number in range(MAX_CLIENTS):
        clients.note_request(Identity(key=f"writer {number}"))
        Tools(directories, clients.current().session, ServerLimits()).write_file("file", f"{number}\n")
    clients.note_request(Identity(key="new"))
    new = clients.current()
    clients.note_request(Identity(key=f"writer {MAX_CLIENTS - 1}"))
    clients.note_request(Identity(key="new"))
    assert clients.current() is new
    directories.close()


def test_inactive_clients_are_forgotten_before_active_ones(tmp_path: Path) -> None:
    now = 0.0
    clients, directories = (
        Clients(require_read=False, clock=lambda: now, most=MAX_CLIENTS),
        Directories([str(tmp_path)]),
    )
    (tmp_path / "file").write_text("text\n")

    def note_request(name: str) -> Tools:
        clients.note_request(Identity(key=name))
        return Tools(directories, clients.current().session, ServerLimits())

    clients.note_request(Identity(key="listener"))
    listener = clients.current()
    listener.subscribed.add("cas://edit/1")
    for number in range(MAX_CLIENTS - 2):
        note_request(f"wrote once {number}").write_file("new", f"{number}\n")
    now = 3600.0
    note_request("reader").read_file("file")
    reader = clients.current()
    for number in range(MAX_CLIENTS - 2):
        clients.note_request(Identity(key=f"new {number}"))
    for name, client in (("reader", reader), ("listener", listener)):
        clients.note_request(Identity(key=name))
        assert clients.current() is client, name
    directories.close()


async def fail_if_notified(_: str | None) -> None:
    raise AssertionError("nothing was recorded")


def test_client_that_listens_on_a_stream_is_not_forgotten(tmp_path: Path) -> None:
    now = 0.0
    clients, directories = (
        Clients(require_read=False, clock=lambda: now, most=MAX_CLIENTS),
        Directories([str(tmp_path)]),
    )
    feed = SubscriptionFeed(ChangeFeed(directories), clients, lambda _client, _roots: directories)
    clients.note_request(Identity(key="listener"))
    listener = clients.current()
    stop_listening = [feed.listen(fail_if_notified), feed.listen(fail_if_notified)]
    for moment in (0.0, 3600.0):
        now = moment
        for number in range(2 * MAX_CLIENTS):
            clients.note_request(Identity(key=f"invented {number}"))
        stop_listening.pop()()
    clients.note_request(Identity(key="listener"))
    assert clients.current() is listener
    for number in range(2 * MAX_CLIENTS):
        clients.note_request(Identity(key=f"invented {number}"))
    clients.note_request(Identity(key="listener"))
    assert clients.current() is not listener
    directories.close()


def test_feed_starts_once_for_two_listeners(tmp_path: Path) -> None:
    directories = Directories([str(tmp_path)])
    starts: list[float] = []

    class CountingFeed(ChangeFeed):
        def begin(self) -> None:
            starts.append(time.monotonic())
            super().begin()

    async def begin_twice() -> None:
        feed = SubscriptionFeed(
            CountingFeed(directories), Clients(require_read=False), lambda _client, _roots: directories
        )
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(feed.begin)
            tasks.start_soon(feed.begin)

    anyio.run(begin_twice)
    assert len(starts) == 1
    directories.close()


def test_client_is_forgotten_when_its_session_ends(tmp_path: Path) -> None:
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
