"""Listening clients are notified of recorded edits: by a subscription on a connection, or on a stream."""

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

Connecting: TypeAlias = Callable[..., AbstractContextManager[Agent]]


@contextmanager
def over_http(root: Path, *, mode: str, heard: MessageHandlerFnT | None = None) -> Iterator[Agent]:
    with serving(root) as served, served.agent(mode=mode, heard=heard) as agent:
        yield agent


@pytest.fixture(params=[connected, over_http], ids=["stdio", "HTTP"])
def connecting(request: pytest.FixtureRequest) -> Connecting:
    found: Connecting = request.param
    return found


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "workspace"
    root.mkdir()
    return root


def test_a_subscribed_connection_is_notified_of_new_edits_and_conversations(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    told: list[str] = []
    enough = anyio.Event()

    async def heard(message: object) -> None:
        if isinstance(message, ResourceListChangedNotification):
            told.append("list")
        if isinstance(message, ResourceUpdatedNotification):
            told.append(str(message.params.uri))
            enough.set()

    with connected(root, mode="legacy", heard=heard) as agent:
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
                await enough.wait()
                await client.unsubscribe_resource(conversation)
                await client.call_tool("write_file", {**arguments, "content": "3\n"})
                await client.call_tool("read_file", {"path": "file"})

        agent.run(work)
    assert told == ["list", "list", conversation, "list"]


async def _capabilities(client: Client) -> tuple[bool | None, bool | None]:
    resources = client.server_capabilities.resources
    assert resources is not None
    return resources.subscribe, resources.list_changed


def test_a_stream_is_notified_of_new_edits_and_conversations(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    with connected(root) as agent:
        assert agent.run(_capabilities) == (True, True)
        wrote = agent.done("write_file", path="file", content="1\n", mcp_conversation_id="mine").structured
        edit = f"cas://edit/{wrote['edit']}"
        addresses = [edit, "cas://conversation/mine"]

        async def work(client: Client) -> list[object]:
            told: list[object] = []
            async with client.listen(resources_list_changed=True, resource_subscriptions=addresses) as stream:
                await client.call_tool("read_file", {"path": "file"})
                await client.call_tool("Undo", {})
                async for event in stream:
                    told.append(event)
                    if len(told) == 3:
                        break
            return told

        told = agent.run(work)
    assert set(told) == {ResourcesListChanged(), *map(ResourceUpdated, addresses)}


def test_the_newest_edits_and_their_conversations_are_listed(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    with connected(root) as agent:

        async def listed(client: Client) -> list[str]:
            return [str(resource.uri) for resource in (await client.list_resources()).resources]

        assert agent.run(listed) == []
        for number in range(60):
            agent.done("write_file", path="file", content=f"{number}\n", mcp_conversation_id=f"turn{number // 10}")
        found = agent.run(listed)
        edits = [view.id.hex() for view in agent.history()]
        assert found[:50] == [f"cas://edit/{name}" for name in edits[:9:-1]]
        assert found[50:] == [f"cas://conversation/turn{number}" for number in (5, 4, 3, 2, 1)]
        for address in (found[0], found[-1]):
            agent.resource(address)


async def _reviewed(root: Path, *words: str) -> None:
    """Decide as a person does, in another process."""
    ran = await anyio.to_thread.run_sync(lambda: cas(*words, folder=root))
    assert ran.status == 0, ran


def test_a_subscribed_connection_is_notified_of_a_persons_decisions(root: Path, connecting: Connecting) -> None:
    telling, told = anyio.create_memory_object_stream[str](100)

    async def heard(message: object) -> None:
        if isinstance(message, ResourceUpdatedNotification):
            await telling.send(str(message.params.uri))

    with telling, told, connecting(root, mode="legacy", heard=heard) as agent:
        for conversation in ("mine", "other"):
            agent.done("write_file", path=conversation, content="1\n", mcp_conversation_id=conversation)

        async def work(client: Client) -> None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", MCPDeprecationWarning)
                await client.subscribe_resource("cas://edit/1")
                await _reviewed(root, "reject", "2")
                await _reviewed(root, "reject", "1")
                assert await told.receive() == "cas://edit/1"
                await client.subscribe_resource("cas://conversation/mine")
                await _reviewed(root, "undo")
                assert {await told.receive(), await told.receive()} == {"cas://edit/1", "cas://conversation/mine"}

        agent.run(work)


def test_a_stream_is_notified_of_a_persons_decisions(root: Path, connecting: Connecting) -> None:
    with connecting(root, mode="2026-07-28") as agent:
        for conversation in ("mine", "other"):
            agent.done("write_file", path=conversation, content="1\n", mcp_conversation_id=conversation)

        async def work(client: Client) -> list[object]:
            told: list[object] = []
            async with client.listen(resource_subscriptions=["cas://edit/1", "cas://conversation/mine"]) as stream:
                await _reviewed(root, "reject", "2")
                await _reviewed(root, "reject", "1", "--reason", "not so")
                async for event in stream:
                    told.append(event)
                    if len(told) == 2:
                        break
            return told

        told = agent.run(work)
        assert set(told) == {ResourceUpdated("cas://edit/1"), ResourceUpdated("cas://conversation/mine")}
        assert "not so" in agent.done("show_edit", edit="1").text


def test_edits_of_other_processes_are_notified(root: Path, connecting: Connecting) -> None:
    with connecting(root, mode="2026-07-28") as agent, connected(root) as other:

        async def work(client: Client) -> object:
            addresses = ["cas://conversation/theirs"]
            async with client.listen(resources_list_changed=True, resource_subscriptions=addresses) as stream:
                arguments = {"path": "file", "content": "1\n", "mcp_conversation_id": "theirs"}
                await anyio.to_thread.run_sync(lambda: other.done("write_file", **arguments))
                return {await anext(stream), await anext(stream)}

        assert agent.run(work) == {ResourcesListChanged(), ResourceUpdated("cas://conversation/theirs")}


def test_a_client_that_does_not_read_notifications_delays_no_other(root: Path) -> None:
    directories = Directories([str(root)])
    heard = anyio.Event()

    async def never(_: bytes) -> None:
        await anyio.sleep_forever()

    async def note(piece: bytes) -> None:
        if b"cas://conversation/two" in piece:
            heard.set()

    async def told_and_written() -> None:
        async with inside(EditServer(directories)) as served, anyio.create_task_group() as tasks:
            deaf, busy, attentive = [await served.session() for _ in range(3)]
            tasks.start_soon(served.listen, deaf, never)
            tasks.start_soon(served.listen, attentive, note)
            await anyio.wait_all_tasks_blocked()
            await served.ask(deaf, "resources/subscribe", uri="cas://conversation/one")
            await served.ask(attentive, "resources/subscribe", uri="cas://conversation/two")
            for conversation in [*["one"] * 20, "two"]:
                arguments = {"path": "file", "content": f"{uuid4()}\n", "mcp_conversation_id": conversation}
                assert not (await served.ask(busy, "tools/call", name="write_file", arguments=arguments))["isError"]
            with anyio.fail_after(SECONDS_TO_ANSWER):
                await heard.wait()
            tasks.cancel_scope.cancel()

    anyio.run(told_and_written)
    directories.close()
