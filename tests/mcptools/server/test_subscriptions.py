"""Clients are notified of recorded edits by a subscription on a connection, or on a stream."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TypeAlias
from uuid import uuid4

import anyio
import anyio.to_thread
import pytest
from mcp import Client
from mcp.client.session import MessageHandlerFnT
from mcp.client.subscriptions import ResourcesListChanged, ResourceUpdated
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp.types import ResourceListChangedNotification, ResourceUpdatedNotification

from mcptools.files.workspaces import Directories
from mcptools.server.mcp_server import EditServer
from tests.support.command_runner import cas
from tests.support.http_server import inside, serving
from tests.support.mcp_agent import SECONDS_TO_ANSWER, Agent, connected

Connect: TypeAlias = Callable[..., AbstractContextManager[Agent]]


@contextmanager
def connected_over_http(root: Path, *, mode: str, on_message: MessageHandlerFnT | None = None) -> Iterator[Agent]:
    with serving(root) as served, served.agent(mode=mode, on_message=on_message) as agent:
        yield agent


@pytest.fixture(params=[connected, connected_over_http], ids=["stdio", "HTTP"])
def connect(request: pytest.FixtureRequest) -> Connect:
    found: Connect = request.param
    return found


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "workspace"
    root.mkdir()
    return root


def test_subscribed_connection_is_notified_of_new_edits_and_conversations(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    notifications: list[str] = []
    all_received = anyio.Event()

    async def on_message(message: object) -> None:
        if isinstance(message, ResourceListChangedNotification):
            notifications.append("list")
        if isinstance(message, ResourceUpdatedNotification):
            notifications.append(str(message.params.uri))
            all_received.set()

    with connected(root, mode="legacy", on_message=on_message) as agent:
        capabilities = agent.run(_capabilities)
        assert capabilities == (True, True)
        wrote = agent.done("write_file", path="file", content="1\n").structured
        conversation = f"cas://conversation/{wrote['mcp_conversation_id']}"

        async def work(client: Client) -> None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", MCPDeprecationWarning)
                await client.subscribe_resource(conversation)
                arguments = {"path": "file", "content": "2\n", "mcp_conversation_id": wrote["mcp_conversation_id"]}
                await client.call_tool("write_file", arguments)
                await all_received.wait()
                await client.unsubscribe_resource(conversation)
                await client.call_tool("write_file", {**arguments, "content": "3\n"})
                await client.call_tool("read_file", {"path": "file"})

        agent.run(work)
    assert notifications == ["list", "list", conversation, "list"]


async def _capabilities(client: Client) -> tuple[bool | None, bool | None]:
    resources = client.server_capabilities.resources
    assert resources is not None
    return resources.subscribe, resources.list_changed


def test_stream_is_notified_of_new_edits_and_conversations(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    with connected(root) as agent:
        assert agent.run(_capabilities) == (True, True)
        wrote = agent.done("write_file", path="file", content="1\n", mcp_conversation_id="mine").structured
        edit = f"cas://edit/{wrote['edit']}"
        addresses = [edit, "cas://conversation/mine"]

        async def work(client: Client) -> list[object]:
            notifications: list[object] = []
            async with client.listen(resources_list_changed=True, resource_subscriptions=addresses) as stream:
                await client.call_tool("read_file", {"path": "file"})
                await client.call_tool("Undo", {})
                async for event in stream:
                    notifications.append(event)
                    if len(notifications) == 3:
                        break
            return notifications

        notifications = agent.run(work)
    assert set(notifications) == {ResourcesListChanged(), *map(ResourceUpdated, addresses)}


def test_newest_edits_and_their_conversations_are_listed(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    with connected(root) as agent:

        async def resource_uris(client: Client) -> list[str]:
            return [str(resource.uri) for resource in (await client.list_resources()).resources]

        assert agent.run(resource_uris) == []
        for number in range(60):
            agent.done("write_file", path="file", content=f"{number}\n", mcp_conversation_id=f"turn{number // 10}")
        found = agent.run(resource_uris)
        edits = [view.id.hex() for view in agent.history()]
        assert found[:50] == [f"cas://edit/{name}" for name in edits[:9:-1]]
        assert found[50:] == [f"cas://conversation/turn{number}" for number in (5, 4, 3, 2, 1)]
        for address in (found[0], found[-1]):
            agent.resource(address)


async def _review(root: Path, *words: str) -> None:
    """Run a review command in another process, as a person does."""
    ran = await anyio.to_thread.run_sync(lambda: cas(*words, folder=root))
    assert ran.status == 0, ran


def test_subscribed_connection_is_notified_of_decisions_of_a_reviewer(root: Path, connect: Connect) -> None:
    sender, notifications = anyio.create_memory_object_stream[str](100)

    async def on_message(message: object) -> None:
        if isinstance(message, ResourceUpdatedNotification):
            await sender.send(str(message.params.uri))

    with sender, notifications, connect(root, mode="legacy", on_message=on_message) as agent:
        for conversation in ("mine", "other"):
            agent.done("write_file", path=conversation, content="1\n", mcp_conversation_id=conversation)

        async def work(client: Client) -> None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", MCPDeprecationWarning)
                await client.subscribe_resource("cas://edit/1")
                await _review(root, "reject", "2")
                await _review(root, "reject", "1")
                assert await notifications.receive() == "cas://edit/1"
                await client.subscribe_resource("cas://conversation/mine")
                await _review(root, "undo")
                assert {await notifications.receive(), await notifications.receive()} == {
                    "cas://edit/1",
                    "cas://conversation/mine",
                }

        agent.run(work)


def test_stream_is_notified_of_decisions_of_a_reviewer(root: Path, connect: Connect) -> None:
    with connect(root, mode="2026-07-28") as agent:
        for conversation in ("mine", "other"):
            agent.done("write_file", path=conversation, content="1\n", mcp_conversation_id=conversation)

        async def work(client: Client) -> list[object]:
            notifications: list[object] = []
            async with client.listen(resource_subscriptions=["cas://edit/1", "cas://conversation/mine"]) as stream:
                await _review(root, "reject", "2")
                await _review(root, "reject", "1", "--reason", "not so")
                async for event in stream:
                    notifications.append(event)
                    if len(notifications) == 2:
                        break
            return notifications

        notifications = agent.run(work)
        assert set(notifications) == {ResourceUpdated("cas://edit/1"), ResourceUpdated("cas://conversation/mine")}
        assert "not so" in agent.done("show_edit", edit="1").text


def test_clients_are_notified_of_edits_of_other_processes(root: Path, connect: Connect) -> None:
    with connect(root, mode="2026-07-28") as agent, connected(root) as other:

        async def work(client: Client) -> object:
            addresses = ["cas://conversation/theirs"]
            async with client.listen(resources_list_changed=True, resource_subscriptions=addresses) as stream:
                arguments = {"path": "file", "content": "1\n", "mcp_conversation_id": "theirs"}
                await anyio.to_thread.run_sync(lambda: other.done("write_file", **arguments))
                return {await anext(stream), await anext(stream)}

        assert agent.run(work) == {ResourcesListChanged(), ResourceUpdated("cas://conversation/theirs")}


def test_client_that_does_not_read_notifications_delays_no_other(root: Path) -> None:
    directories = Directories([str(root)])
    on_message = anyio.Event()

    async def never_read(_: bytes) -> None:
        await anyio.sleep_forever()

    async def read_and_check(piece: bytes) -> None:
        if b"cas://conversation/two" in piece:
            on_message.set()

    async def write_while_one_reads() -> None:
        async with inside(EditServer(directories)) as served, anyio.create_task_group() as tasks:
            unread, writer, reader = [await served.session() for _ in range(3)]
            tasks.start_soon(served.listen, unread, never_read)
            tasks.start_soon(served.listen, reader, read_and_check)
            await anyio.wait_all_tasks_blocked()
            await served.ask(unread, "resources/subscribe", uri="cas://conversation/one")
            await served.ask(reader, "resources/subscribe", uri="cas://conversation/two")
            for conversation in [*["one"] * 20, "two"]:
                arguments = {"path": "file", "content": f"{uuid4()}\n", "mcp_conversation_id": conversation}
                assert not (await served.ask(writer, "tools/call", name="write_file", arguments=arguments))["isError"]
            with anyio.fail_after(SECONDS_TO_ANSWER):
                await on_message.wait()
            tasks.cancel_scope.cancel()

    anyio.run(write_while_one_reads)
    directories.close()
