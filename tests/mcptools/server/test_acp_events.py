"""A client gets the Agent Client Protocol notifications of its own calls over its connection, as document 001 asks."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from objstore import CallInfo, Workspace
from tests.support.acp_listener import Listener
from tests.support.fork_server import forked_program
from tests.support.http_server import serving
from tests.support.mcp_agent import connected
from tests.support.raw_client import NEWER_VERSION_META, Message, RawClient, started, tool_call

CONFIG: Final = '[server]\nhost = "localhost"\nport = 8080\n\n[app]\ndebug = false\n'
EDITS: Final = [
    {"old_string": "port = 8080", "new_string": "port = 3000"},
    {"old_string": 'host = "localhost"', "new_string": 'host = "0.0.0.0"'},
    {"old_string": "debug = false", "new_string": "debug = true"},
]
DIFF: Final = (
    "--- config.toml\n+++ config.toml\n@@ -1,6 +1,6 @@\n [server]\n"
    '-host = "localhost"\n-port = 8080\n+host = "0.0.0.0"\n+port = 3000\n'
    " \n [app]\n-debug = false\n+debug = true\n"
)
NAMES: Final = {"editledger/acp": {"sessionId": "<session-id>", "toolCallId": "<tool-call-id>"}}


@contextmanager
def reporting(root: Path, shape: str, **others: Any) -> Iterator[RawClient]:  # noqa: ANN401 - as for `started`
    """Start a server that sends notifications of calls in a shape."""
    command = [*forked_program("mcptools").command, "--acp-events", shape]
    with started(root, command=command, **others) as raw:
        yield raw


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Return the file of the document's first test case."""
    file = tmp_path.resolve() / "config.toml"
    file.write_text(CONFIG)
    return file


def named(call: Message, meta: Message = NAMES) -> Message:
    """Return a call with this `_meta`, for example with the client's own names of its session and the call."""
    return {**call, "params": {**call["params"], "_meta": meta}}


def messages(raw: RawClient, *calls: Message) -> list[Message]:
    """Make calls; return all messages up to the answer to the last, without those about resources."""
    raw.send(*calls)
    received: list[Message] = []
    while not received or received[-1].get("id") != calls[-1]["id"]:
        message = json.loads(raw.line())
        if not message.get("method", "").startswith("notifications/resources/"):
            received.append(message)
    return received


def updates(raw: RawClient, *calls: Message) -> list[Message]:
    """Make calls; return what is reported of them."""
    return [each["params"]["update"] for each in messages(raw, *calls) if each.get("method") == "session/update"]


def result_of(update: Message) -> Message:
    """Return the status, content and raw output of a call that has ended, in either shape."""
    fields: Message = update.get("fields", update)
    return fields


def test_call_of_the_document_is_reported_when_it_begins_and_when_it_is_completed(config: Path) -> None:
    with reporting(config.parent, "contract") as raw:
        call = named(tool_call(1, "multi_edit_text_file", path=str(config), edits=EDITS))
        began, ended, answered = messages(raw, call)
    assert began == {
        "jsonrpc": "2.0",
        "method": "session/update",
        "params": {
            "sessionId": "<session-id>",
            "update": {
                "type": "toolCall",
                "id": "<tool-call-id>",
                "kind": "edit",
                "status": "pending",
                "title": "multi_edit_text_file (3 edits)",
                "locations": [{"path": str(config)}],
                "rawInput": {"path": str(config), "edits": EDITS},
            },
        },
    }
    output = ended["params"]["update"]["fields"].pop("rawOutput")
    assert ended == {
        "jsonrpc": "2.0",
        "method": "session/update",
        "params": {
            "sessionId": "<session-id>",
            "update": {
                "type": "toolCallUpdate",
                "id": "<tool-call-id>",
                "fields": {"status": "completed", "content": [{"type": "text", "text": DIFF}]},
            },
        },
    }
    assert {name: output[name] for name in ("success", "diff", "applied_count", "line_ranges")} == {
        "success": True,
        "diff": DIFF,
        "applied_count": 3,
        "line_ranges": [
            {"edit_index": 0, "start": 3, "end": 3},
            {"edit_index": 1, "start": 2, "end": 2},
            {"edit_index": 2, "start": 6, "end": 6},
        ],
    }
    assert answered["result"]["structuredContent"] == output


@pytest.mark.parametrize("shape", ["contract", "protocol"])
def test_failed_call_is_reported_as_failed_with_the_documents_error(config: Path, shape: str) -> None:
    config.write_text("line 1\nline 2\n")
    edits = [{"old_string": "line 1", "new_string": "LINE 1"}, {"old_string": "line 3", "new_string": "LINE 3"}]
    with reporting(config.parent, shape) as raw:
        call = tool_call(1, "multi_edit_text_file", path=str(config), edits=edits)
        began, ended, answered = messages(raw, call)
    update = began["params"]["update"]
    assert (update["title"], update["rawInput"]["edits"]) == ("multi_edit_text_file (2 edits)", edits)
    result = result_of(ended["params"]["update"])
    assert result["status"] == "failed"
    assert result["rawOutput"] == answered["result"]["structuredContent"]
    assert result["rawOutput"]["error"]["code"] == -32010
    assert result["rawOutput"]["error"]["message"] == "Edit 1: String not found: line 3"
    assert "Edit 1: String not found: line 3" in str(result["content"][0])
    assert config.read_text() == "line 1\nline 2\n"


@pytest.mark.parametrize(
    ("tool", "arguments", "title", "message"),
    [
        ("multi_edit_text_file", {"path": "/f", "edits": []}, "multi_edit_text_file (0 edits)", "cannot be empty"),
        ("multi_edit_text_file", {"path": 1, "edits": None}, "multi_edit_text_file", "Invalid arguments"),
        ("no_such_tool", {"x": None}, "no_such_tool", "Unknown tool: no_such_tool"),
    ],
)
def test_call_that_reaches_no_tool_is_reported_as_failed(
    tmp_path: Path, tool: str, arguments: Message, title: str, message: str
) -> None:
    with reporting(tmp_path, "contract") as raw:
        began, ended = updates(raw, tool_call(1, tool, **arguments))
    assert (began["title"], began["rawInput"]) == (title, arguments)
    assert ended["fields"]["status"] == "failed"
    assert message in ended["fields"]["content"][0]["text"]


def test_protocol_shape_has_the_old_and_new_text_of_each_file(config: Path) -> None:
    new, moved = config.with_name("new.txt"), config.with_name("moved.txt")
    patch = "--- {0}\n+++ {0}\n@@ -1 +1 @@\n-{1}\n+{2}\n"
    patches = [
        {"file_path": str(new), "patch": patch.format("new.txt", "a", "b")},
        {"file_path": str(config), "patch": patch.format("config.toml", "[server]", "[SERVER]")},
    ]
    with reporting(config.parent, "protocol") as raw:
        called = [
            tool_call(1, "multi_edit_text_file", path=str(config), edits=EDITS),
            tool_call(2, "write_file", path=str(new), content="a\n"),
            tool_call(3, "apply_patches", strategy="atomic", patches=patches),
            tool_call(4, "move_file", source=str(new), destination=str(moved)),
            tool_call(5, "delete_file", path=str(moved)),
            tool_call(6, "read_file", path=str(config)),
            tool_call(7, "Undo"),
        ]
        ended = [updates(raw, call)[1] for call in called]
    assert [(each["sessionUpdate"], each["toolCallId"], each["status"]) for each in ended] == [
        ("tool_call_update", str(call["id"]), "completed") for call in called
    ]
    changed = CONFIG
    for edit in EDITS:
        changed = changed.replace(edit["old_string"], edit["new_string"])
    assert [[(part["path"], part["oldText"], part["newText"]) for part in each["content"]] for each in ended[:5]] == [
        [(str(config), CONFIG, changed)],
        [(str(new), None, "a\n")],
        [(str(new), "a\n", "b\n"), (str(config), changed, changed.replace("[server]", "[SERVER]"))],
        [(str(moved), "b\n", "b\n")],
        [(str(moved), "b\n", "")],
    ]
    assert ended[0]["locations"] == [{"path": str(config), "line": line} for line in (3, 2, 6)]
    assert ended[5]["content"][0]["content"]["text"].startswith("[SERVER]")
    assert ended[6]["content"][0]["content"]["text"] == f"Reverted 1 file:\n{moved.name}"


def test_without_names_the_session_is_the_connections_and_the_call_is_the_request(config: Path) -> None:
    with reporting(config.parent, "contract") as raw:
        calls = [tool_call(name, "read_file", path=str(config)) for name in ("call 7", 8)]
        reported = [each["params"] for call in calls for each in messages(raw, call) if "params" in each]
    assert [each["update"]["id"] for each in reported] == ["call 7", "call 7", "8", "8"]
    (session,) = {each["sessionId"] for each in reported}
    assert session.startswith("mcp_")


@pytest.mark.parametrize("names", [1, [], {"sessionId": ""}, {"toolCallId": 1}, {"sessionId": "x" * 1001}])
def test_wrong_names_are_refused_before_the_call(config: Path, names: object) -> None:
    with reporting(config.parent, "contract") as raw:
        call = tool_call(1, "multi_edit_text_file", path=str(config), edits=EDITS)
        (answered,) = messages(raw, named(call, {"editledger/acp": names}))
    assert answered["error"]["code"] == -32602
    assert (
        "_meta editledger/acp has to be an object with the texts sessionId and toolCallId"
        in answered["error"]["message"]
    )
    assert config.read_text() == CONFIG


def test_calls_at_the_same_time_are_distinguished(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    calls = [tool_call(number, "write_file", path=f"{root}/{number}", content=f"{number}\n") for number in range(1, 9)]
    with reporting(root, "protocol") as raw:
        raw.send(*calls)
        found: dict[str, list[Message]] = {}
        answers = 0
        while answers < len(calls):
            message = json.loads(raw.line())
            answers += "id" in message
            if message.get("method") == "session/update":
                update = message["params"]["update"]
                found.setdefault(update["toolCallId"], []).append(update)
    assert len(found) == len(calls)
    for number, (began, ended) in found.items():
        assert began["rawInput"]["path"] == ended["content"][0]["path"] == f"{root}/{number}"


def test_cancelled_call_is_reported_as_failed(config: Path) -> None:
    with (
        Workspace.init(config.parent) as workspace,
        reporting(config.parent, "contract") as raw,
        workspace.call(CallInfo(tool="test")),  # so that the server's call waits for its turn to write
    ):
        raw.send(tool_call(1, "multi_edit_text_file", path=str(config), edits=EDITS))
        assert json.loads(raw.line())["params"]["update"]["status"] == "pending"
        raw.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
        ended = json.loads(raw.line())["params"]["update"]["fields"]
    assert (ended["status"], ended["content"]) == ("failed", [{"type": "text", "text": "The call was cancelled"}])
    assert config.read_text() == CONFIG


def test_call_made_again_with_an_answer_begins_once(config: Path) -> None:
    capabilities: Message = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}}
    meta = {**NEWER_VERSION_META, **capabilities}
    with reporting(config.parent, "contract", greets=False) as raw:
        edited = named(tool_call(1, "multi_edit_text_file", path=str(config), edits=EDITS), meta)
        assert [each.get("status") for each in updates(raw, edited)] == ["pending", None]
        undo = named(tool_call(2, "Undo"), {**meta, **NAMES})
        began, asked = messages(raw, undo)
        assert began["params"]["update"]["title"] == "Undo"
        requested = asked["result"]
        approved = {"action": "accept", "content": {"approve": True}}
        answer = {"inputResponses": dict.fromkeys(requested["inputRequests"], approved)}
        state = {"requestState": requested["requestState"]} if "requestState" in requested else {}
        (ended,) = updates(raw, {**undo, "id": 3, "params": {**undo["params"], **answer, **state}})
    assert (ended["id"], ended["fields"]["status"]) == ("<tool-call-id>", "completed")
    assert config.read_text() == CONFIG


def test_nothing_is_reported_without_the_option(config: Path) -> None:
    with started(config.parent) as raw:
        call = named(tool_call(1, "multi_edit_text_file", path=str(config), edits=EDITS))
        assert [each.get("id") for each in messages(raw, call)] == [1]


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_official_client_receives_them_if_it_knows_them_and_ignores_them_if_not(config: Path, mode: str) -> None:
    options = ("--acp-events", "protocol")
    listener = Listener()
    with connected(config.parent, mode=mode, options=options, extensions=[listener]) as agent:
        agent.done("multi_edit_text_file", path=str(config), edits=EDITS)
        agent.tools()  # is answered after the notifications were read
    assert [each.update["sessionUpdate"] for each in listener.updates] == ["tool_call", "tool_call_update"]
    with connected(config.parent, mode=mode, options=options) as agent:
        agent.done("read_file", path=str(config))


def test_notifications_over_http_come_with_the_answer(config: Path) -> None:
    with serving(config.parent, "--acp-events", "contract") as served, served.talk({}) as talk:
        answer = talk.post(tool_call(2, "multi_edit_text_file", path=str(config), edits=EDITS))
    lines = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: {")]
    assert [line.get("method", "answer") for line in lines] == ["session/update", "session/update", "answer"]
