"""Who listens is told of what is recorded: on a connection in the older era, on a stream in the newer one."""

import warnings
from pathlib import Path

import anyio
from mcp import Client
from mcp.client.subscriptions import ResourcesListChanged, ResourceUpdated
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp.types import ResourceListChangedNotification, ResourceUpdatedNotification

from tests.mcp.agent import connected


def test_on_a_connection_new_edits_and_changed_conversations_are_told(tmp_path: Path) -> None:
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


def test_on_a_stream_new_edits_and_changed_conversations_are_told(tmp_path: Path) -> None:
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
