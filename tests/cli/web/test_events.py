"""Every open page gets an event when another process changes the store."""

import json
import signal
import socket
import struct
from collections.abc import Iterator
from contextlib import suppress

import pytest

from tests.support.command_runner import PATIENCE, CommandRunner
from tests.support.hooked_agents import ClaudeCode
from tests.support.review_server import SECRET, WHOLE, ReviewServer, cookie_of


def next_version(events: Iterator[tuple[str, str]]) -> str:
    name, data = next(events)
    assert name == "changed"
    version = json.loads(data)["version"]
    assert isinstance(version, str)
    return version


def test_a_stream_begins_with_the_version_of_the_queue(server: ReviewServer) -> None:
    with server.events() as events:
        assert next_version(events) == server.queue()["version"]


def test_an_edit_by_another_process_is_reported(runner: CommandRunner, server: ReviewServer) -> None:
    runner.done("record")  # the first scan takes a baseline
    with server.events() as events:
        first = next_version(events)
        (runner.folder / "a").write_bytes(b"1\n")
        runner.done("record", "--agent", "bot")
        assert next_version(events) != first
        while server.queue()["changes"] == 0:
            next_version(events)


def test_every_page_gets_an_event_for_a_decision_a_comment_and_what_was_seen(
    runner: CommandRunner, server: ReviewServer
) -> None:
    runner.write("a", b"1\n")
    with server.events() as one, server.events() as other:
        before = next_version(one), next_version(other)
        keys = server.keys("a")
        shown = dict.fromkeys(keys, WHOLE)
        for path, fields in (
            ("/api/seen", {"keys": keys, "on_screen": shown}),
            ("/api/comment", {"keys": keys, "text": "Why?"}),
            ("/api/decide", {"keys": keys, "on_screen": shown, "action": "accept"}),
        ):
            server.post(path, **fields)
            after = next_version(one), next_version(other)
            while after[0] != after[1]:
                after = after[0], next_version(other)
            assert after != before
            before = after


def test_the_beginning_and_the_end_of_an_agents_call_are_reported(runner: CommandRunner, server: ReviewServer) -> None:
    agent = ClaudeCode(runner.folder)
    agent.start()
    agent.ask("Work.")
    begin, end = agent.another_call(is_shell=True)
    with server.events() as events:
        next_version(events)
        for event, running in ((begin, 1), (end, 0)):
            agent.tell(event)
            while len(server.queue()["running_calls"]) != running:
                next_version(events)


@pytest.mark.parametrize("path", ["b", "new/c"])
def test_the_version_stays_while_nothing_is_recorded(runner: CommandRunner, server: ReviewServer, path: str) -> None:
    runner.write("a", b"1\n")
    before = server.queue()["version"]
    (runner.folder / path).parent.mkdir(exist_ok=True)
    (runner.folder / path).write_bytes(b"not recorded")
    server.file("a")
    assert server.queue()["version"] == before


@pytest.mark.parametrize("tabs", [1, 3, 20])
def test_pages_that_leave_while_the_store_changes_hold_up_nothing(
    runner: CommandRunner, server: ReviewServer, tabs: int
) -> None:
    """They close their connections at any moment, as a browser that is killed does."""
    runner.write("a", b"0\n")
    secret = server.client.headers[SECRET]
    request = f"GET /api/events?secret={secret} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
    request += f"Cookie: {cookie_of(server.client)}\r\n\r\n"
    for number in range(1, 8):
        streams = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(tabs)]
        for stream in streams:
            stream.sendall(request.encode())
        streams[0].recv(100)
        runner.write("a", b"%d\n" % number)
        for at, stream in enumerate(streams):
            if at % 2:  # the connection is reset
                stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            stream.close()
    with server.events() as events:
        first = next_version(events)
        runner.write("a", b"the last\n")
        assert next_version(events) != first
    assert server.end(signal.SIGINT) == (0, "")


def test_half_open_connections_of_strangers_keep_nobody_out(server: ReviewServer) -> None:
    strangers = []
    for at in range(300):
        stranger = socket.create_connection(("127.0.0.1", server.port))
        stranger.sendall(b"GET / HTTP/1.1\r\n" if at % 2 else b"")
        strangers.append(stranger)
    assert server.browser().get("/api/queue").status_code == 200
    with server.events() as events:
        next_version(events)
        for stranger in strangers:  # those that were not closed for a newer one are closed after a while
            stranger.settimeout(PATIENCE)
            with suppress(ConnectionResetError):
                assert stranger.recv(1) == b""
            stranger.close()
        assert server.queue()["version"]


def test_a_stream_ends_with_the_server(server: ReviewServer) -> None:
    with server.events() as events:
        next_version(events)
        assert server.end() == (0, "")
        assert [name for name, _ in events] == ["end"]
