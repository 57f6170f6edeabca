"""Clients' answers to requests for roots and approval, and what the model reads about them."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.raw_client import Message, RawClient, started

METHOD_NOT_FOUND: Final[Message] = {"error": {"code": -32601, "message": "Method not found"}}
ANSWERS_WITHOUT_ROOTS: Final[list[Message]] = [METHOD_NOT_FOUND, {"result": {}}, {"result": {"roots": [{"uri": 7}]}}]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "workspace"
    root.mkdir()
    return root


def call(raw: RawClient, tool: str, answers: dict[str, Message], **arguments: object) -> Message:
    """Call a tool, answering the server's requests with the given answers; return the result."""
    raw.send({"jsonrpc": "2.0", "id": tool, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
    while (message := raw.next_answer()).get("id") != tool:
        if "id" in message:
            raw.send({"jsonrpc": "2.0", "id": message["id"], **answers[message["method"]]})
    result: Message = message["result"]
    return result


def close_and_check(raw: RawClient) -> None:
    raw.writing.close()
    assert raw.ended() == (0, b"")


@pytest.mark.parametrize("reply", ANSWERS_WITHOUT_ROOTS)
def test_client_without_valid_roots_gets_no_access_and_a_reason(root: Path, reply: Message) -> None:
    with started(root, capabilities={"roots": {}, "elicitation": {}}) as raw:
        answers = {"roots/list": reply, "elicitation/create": {"result": {"action": "accept", "content": {}}}}
        calls = {"write_file": {"path": "a", "content": ""}, "read_file": {"path": "a"}, "Undo": {}}
        for tool, arguments in calls.items():
            result = call(raw, tool, answers, **arguments)
            assert result["isError"]
            assert result["structuredContent"]["error"]["type"] == "permission_denied"
            assert result["content"][0]["text"].startswith("The client was asked for its roots, and ")
        raw.send({"jsonrpc": "2.0", "id": 5, "method": "resources/list"})
        while (message := raw.next_answer()).get("id") != 5:
            raw.send({"jsonrpc": "2.0", "id": message["id"], **reply})
        assert message["result"]["resources"] == []
        close_and_check(raw)
    assert not (root / "a").exists()


@pytest.mark.parametrize("other", ["vscode-vfs://github/x", "http://host/x", "no address", ""])
def test_root_that_is_not_a_local_directory_is_ignored(root: Path, other: str) -> None:
    (root / "one").mkdir()
    uris = [other, (root / "one").as_uri()]
    answers: dict[str, Message] = {"roots/list": {"result": {"roots": [{"uri": uri} for uri in uris]}}}
    with started(root, capabilities={"roots": {}}) as raw:
        allowed = call(raw, "list_allowed_directories", answers)["structuredContent"]
        assert allowed["directories"] == [str(root / "one")]
        answers = {"roots/list": {"result": {"roots": [{"uri": other}]}}}
        assert call(raw, "list_allowed_directories", answers)["structuredContent"]["directories"] == []
        close_and_check(raw)


@pytest.mark.parametrize(
    "reply",
    [METHOD_NOT_FOUND, {"error": {"code": -32800, "message": "cancelled"}}, {"result": {"x": 1}}, {"result": {}}],
)
def test_invalid_answer_does_not_approve_an_undo(root: Path, reply: Message) -> None:
    with started(root, capabilities={"elicitation": {}}) as raw:
        call(raw, "write_file", {}, path="a", content="text\n")
        result = call(raw, "Undo", {"elicitation/create": reply})
        assert result["isError"]
        assert result["structuredContent"]["error"]["type"] == "not_approved"
        close_and_check(raw)
    assert (root / "a").read_text() == "text\n"


# ---- the newer protocol version, in which answers come with the call


@pytest.fixture
def call_with_answer(root: Path) -> Iterator[Callable[[Message, str], Message]]:
    """Return a function that calls a tool without a handshake, with an answer about roots."""
    meta: dict[str, Any] = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "0"},
        "io.modelcontextprotocol/clientCapabilities": {"roots": {}, "elicitation": {"form": {}}},
    }
    with started(root, greets=False) as raw:

        def ask(reply: Message, tool: str) -> Message:
            params: Message = {"name": tool, "arguments": {}, "_meta": meta}
            raw.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
            requested = raw.answer(1)["result"]
            responses = dict.fromkeys(requested["inputRequests"], reply)
            params |= {"inputResponses": responses}
            if "requestState" in requested:
                params |= {"requestState": requested["requestState"]}
            raw.send({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params})
            return raw.answer(2)

        yield ask
        close_and_check(raw)


@pytest.mark.parametrize("other", ["vscode-vfs://github/x", "no address", ""])
def test_newer_protocol_version_also_ignores_roots_that_are_not_local(
    root: Path, call_with_answer: Callable[[Message, str], Message], other: str
) -> None:
    (root / "one").mkdir()
    for uris, allowed in [([other, (root / "one").as_uri()], [str(root / "one")]), ([other], [])]:
        result = call_with_answer({"roots": [{"uri": uri} for uri in uris]}, "list_allowed_directories")["result"]
        assert result["structuredContent"]["directories"] == allowed
    undone = call_with_answer({"roots": [{"uri": other}]}, "Undo")["result"]
    assert undone["content"][0]["text"] == "No edits have been applied to any file with this session."
