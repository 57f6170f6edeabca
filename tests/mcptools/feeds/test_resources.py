"""Recorded edits, conversations and blobs, and nothing else, can be read by address."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import MCPError
from mcp.types import BlobResourceContents, TextResourceContents

from objstore import blob_id
from tests.support.damaged_stores import lose
from tests.support.mcp_agent import Agent, connected


@pytest.fixture(scope="module", params=["legacy", "2026-07-28"])
def agent(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    with connected(tmp_path_factory.mktemp("workspace").resolve(), mode=request.param) as agent:
        yield agent


def document(agent: Agent, address: str) -> dict[str, Any]:
    found = agent.resource(address)
    assert isinstance(found, TextResourceContents)
    assert found.mime_type == "application/json"
    loaded: dict[str, Any] = json.loads(found.text)
    return loaded


def test_edits_conversations_and_blobs_can_be_read_by_address(agent: Agent, folder: Path) -> None:
    file = folder / "file.bin"
    content = "text\r\nand no newline"
    wrote = agent.done("write_file", path=str(file), content=content).structured
    edit = document(agent, f"cas://edit/{wrote['edit']}")
    assert (edit["edit"], edit["path"], edit["operation"], edit["status"]) == (
        wrote["edit"],
        str(file),
        "create",
        "pending",
    )
    assert edit["diff"].endswith("+text\r\n+and no newline\n\\ No newline at end of file\n")
    assert document(agent, f"cas://edit/{edit['id']}") == edit
    conversation = document(agent, f"cas://conversation/{wrote['mcp_conversation_id']}")
    assert [each["edit"] for each in conversation["edits"]] == [wrote["edit"]]
    blob = agent.resource(f"cas://blob/{edit['blob_after']}")
    assert isinstance(blob, BlobResourceContents)
    assert base64.b64decode(blob.blob) == content.encode()


@pytest.mark.parametrize(
    "address",
    [
        "cas://edit/1000000",
        "cas://edit/deadbeef",
        "cas://edit/..",
        "cas://conversation/none",
        "cas://conversation/",
        "cas://edit/",
        "cas://blob/",
        "cas://blob/00",
        "cas://blob/" + "00" * 32,
        "cas://blob/etc",
        "cas://file/etc",
        "file:///etc/passwd",
    ],
)
def test_unknown_addresses_are_refused(agent: Agent, address: str) -> None:
    agent.done("write_file", path="anything", content="text\n")
    with pytest.raises(MCPError):
        agent.resource(address)


def test_fifty_newest_edits_are_listed_and_older_ones_can_be_read(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    with connected(root) as agent:
        for number in range(52):
            agent.done("write_file", path="file", content=f"{number}\n", mcp_conversation_id="one")
        listed = agent.run(lambda client: client.list_resources()).resources
        assert [entry.name for entry in listed] == [*(f"edit {seq} of {root}/file" for seq in range(52, 2, -1)), "one"]
        assert document(agent, "cas://edit/1")["edit"] == 1


def test_edit_whose_blob_is_lost_names_that_blob(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    with connected(root) as agent:
        agent.done("write_file", path="file", content="one\n", mcp_conversation_id="one")
        agent.done("write_file", path="file", content="two\n", mcp_conversation_id="one")
    lost = blob_id(b"two\n")
    lose(root, lost)
    with connected(root) as agent:
        assert [edit["edit"] for edit in document(agent, "cas://conversation/one")["edits"]] == [1, 2]
        assert document(agent, "cas://edit/1")["diff"]
        with pytest.raises(MCPError, match=f"^No blob {lost.hex()} in this store"):
            agent.resource("cas://edit/2")
        with pytest.raises(MCPError, match=f"^Not recorded here: blob {lost.hex()}"):
            agent.resource(f"cas://blob/{lost.hex()}")


def test_edit_number_in_several_directories_is_ambiguous(tmp_path: Path) -> None:
    roots = [tmp_path / "one", tmp_path / "two"]
    for root in roots:
        root.mkdir()
    with connected(*roots) as agent:
        for root in roots:
            agent.done("write_file", path=str(root / "file"), content="same\n", mcp_conversation_id="both")
        edits = document(agent, "cas://conversation/both")["edits"]
        assert [edit["path"] for edit in edits] == [str(root / "file") for root in sorted(roots)]
        with pytest.raises(MCPError, match="More than one directory has edit 1"):
            agent.resource("cas://edit/1")
