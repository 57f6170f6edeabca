"""The server over standard streams: lines, bytes, signals and the end of the input."""

import json
import os
import pty
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from tests.support.fork_server import forked_program
from tests.support.mcp_agent import SECONDS_TO_ANSWER
from tests.support.raw_client import INITIALIZE, Message, RawClient, ping, started, tool_call, with_progress

ABOVE_PIPE_CAPACITY: Final = 1 << 20
SERVER_WITH_SIGINT: Final = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from mcptools.server.command import main
main()
"""
"""A server that handles SIGINT even if tests run in a shell's background, where SIGINT is ignored."""

SERVER_WITH_BROKEN_ANSWER: Final = r"""
import functools
from mcptools.answers.edits import Answer
from mcptools.server.command import main
from mcptools.tools.reading import ReadingTools
tool = functools.wraps(ReadingTools.list_allowed_directories)
ReadingTools.list_allowed_directories = tool(lambda self: Answer(content={"half": "\ud83d"}, text=""))
main()
"""
"""A server with a tool whose answer contains half a surrogate pair."""

COLD_SERVER: Final = (sys.executable, "-P", "-c", SERVER_WITH_SIGINT)


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RawClient]:
    with started(tmp_path_factory.mktemp("stdio").resolve(), command=COLD_SERVER) as raw:
        yield raw
        raw.writing.close()
        while line := raw.line():  # a notification about the last change may follow its answer
            assert json.loads(line)["method"] == "notifications/resources/list_changed"
        assert raw.ended() == (0, b"")


def test_many_lines_sent_together_are_all_answered(raw: RawClient) -> None:
    raw.send(*map(ping, range(1000, 1300)))
    assert {json.loads(raw.line())["id"] for _ in range(300)} == set(range(1000, 1300))


def test_line_may_arrive_byte_by_byte(raw: RawClient) -> None:
    for byte in json.dumps(ping(1)).encode() + b"\n":
        raw.write(bytes([byte]))
    assert raw.answer(1)["result"] == {}


def test_cr_before_the_newline_and_blank_lines_are_ignored(raw: RawClient) -> None:
    raw.write(b"\r\n\n \n" + json.dumps(ping(2)).encode() + b"\r\n")
    assert raw.next_answer() == {"jsonrpc": "2.0", "id": 2, "result": {}}


@pytest.mark.parametrize(
    ("line", "signal_number", "code"),
    [
        pytest.param(b"no JSON", None, -32700, id="not JSON"),
        pytest.param(b'{"jsonrpc":"2.0","id":70,', None, -32700, id="cut off before its method"),
        pytest.param(b'{"jsonrpc":"2.0","id":70,"method":"ping","params":{"a', 70, -32700, id="cut off"),
        pytest.param(
            b'{"id":"70", "method":"ping", "params":{"a":"\\ud83d"}}', "70", -32700, id="half a surrogate pair"
        ),
        pytest.param(b'{"id":70,"method":"ping","params":{"a":"\xff"}}', 70, -32700, id="not UTF-8"),
        pytest.param(
            b'{"method":"ping","params":%s,"id":70}' % (b"[" * 300 + b"]" * 300), 70, -32700, id="nested deeply"
        ),
        pytest.param(b'{"id":70,"method":"ping","params":%s}' % (b"[" * 99_999), 70, -32700, id="nested without end"),
        pytest.param(b'{"id":"\\ud83d","method":"ping","params":{}}', None, -32700, id="half a surrogate pair as id"),
        pytest.param(b'{"id":%s,"method":"ping","params":{}}' % (b"7" * 9999), None, -32700, id="very long id"),
        pytest.param(b"{}", None, -32600, id="empty object"),
        pytest.param(b"[]", None, -32600, id="empty batch"),
        pytest.param(b'[{"jsonrpc":"2.0","id":70,"method":"ping"}]', 70, -32600, id="a batch"),
        pytest.param(b'{"jsonrpc":"2.0","id":70,"method":"ping","params":[]}', 70, -32600, id="parameters as a list"),
        pytest.param(b'{"jsonrpc":"2.0","id":null,"method":"ping"}', None, -32600, id="null as id"),
        pytest.param(b'{"jsonrpc":"2.0","id":70.5,"method":"ping"}', None, -32600, id="fraction as id"),
        pytest.param(b'{"jsonrpc":"2.0","method":"tools/list","id":true}', None, -32600, id="boolean as id"),
    ],
)
def test_line_that_is_no_message_is_answered_with_an_error(
    raw: RawClient, line: bytes, signal_number: object, code: int
) -> None:
    raw.write(line + b"\n")
    answer = raw.next_answer()
    assert (answer["id"], answer["error"]["code"]) == (signal_number, code)
    raw.send(ping(2))
    assert raw.answer(2)["result"] == {}


@pytest.mark.parametrize(
    ("tool", "arguments", "where"),
    [
        ("write_file", {"path": "half", "content": "\ud83d"}, "content"),
        (
            "multi_edit_text_file",
            {"path": "half", "edits": [{"old_string": "a", "new_string": "\ude00"}]},
            "edits.0.new_string",
        ),
        ("apply_patch", {"file_path": "\ud83d", "patch": ""}, "file_path"),
        ("read_file", {"path": "half", "\ud83d": 1}, "\\ud83d"),
    ],
)
def test_half_a_surrogate_pair_in_a_call_is_refused_by_the_tool(
    raw: RawClient, tool: str, arguments: Message, where: str
) -> None:
    raw.send(tool_call(8, tool, **arguments))
    result = raw.answer(8)["result"]
    assert result["isError"]
    error = result["structuredContent"]
    message = error["error"] if tool == "apply_patch" else result["content"][0]["text"]
    assert message == f"{where} contains half a surrogate pair, which UTF-8 can't encode"
    reported = error["error_type"] if tool == "apply_patch" else error["error"]["code"]
    assert reported == ("encoding_error" if tool == "apply_patch" else -32027)
    assert not (raw.root / "half").exists()


def test_half_a_surrogate_pair_in_the_clients_answer_refuses_the_call(tmp_path: Path) -> None:
    with started(tmp_path, capabilities={"roots": {}}) as raw:
        raw.send(tool_call(2, "list_allowed_directories"))
        request = raw.next_answer()
        assert request["method"] == "roots/list"
        raw.send({"jsonrpc": "2.0", "id": request["id"], "result": {"roots": [{"uri": "file:///\ud83d"}]}})
        answer = raw.next_answer()
        raw.writing.close()
        assert raw.ended() == (0, b"")
    assert (answer["id"], answer["result"]["structuredContent"]["error"]["type"]) == (2, "permission_denied")


def test_half_a_surrogate_pair_in_a_result_fails_only_its_call(tmp_path: Path) -> None:
    with started(tmp_path, command=(sys.executable, "-P", "-c", SERVER_WITH_BROKEN_ANSWER)) as raw:
        raw.send(tool_call(2, "list_allowed_directories"))
        assert raw.answer(2)["result"]["structuredContent"]["error"]["type"] == "internal_error"
        raw.send(ping(3))
        assert raw.answer(3)["result"] == {}
        raw.writing.close()
        status, errors = raw.ended()
    assert status == 0
    assert b"Tool 'list_allowed_directories' crashed" in errors


def test_lone_cr_does_not_end_a_line(raw: RawClient) -> None:
    raw.write(json.dumps(ping(3)).encode().replace(b" ", b"\r") + b"\n")
    assert raw.answer(3)["result"] == {}


def test_line_that_is_not_utf8_is_refused_and_writes_nothing(raw: RawClient) -> None:
    call = tool_call(4, "write_file", path=str(raw.root / "no UTF-8"), content="caf?")
    raw.write(json.dumps(call).encode().replace(b"?", b"\xe9") + b"\n")
    assert raw.answer(4)["error"]["code"] == -32700
    assert not (raw.root / "no UTF-8").exists()


def test_lines_may_exceed_the_capacity_of_a_pipe(raw: RawClient) -> None:
    content = "x" * ABOVE_PIPE_CAPACITY
    raw.send(tool_call(5, "write_file", path=str(raw.root / "long"), content=content))
    assert not raw.answer(5)["result"].get("isError")
    raw.send(ping(6) | {"id": content})
    assert raw.answer(content)["result"] == {}


def test_client_that_does_not_read_delays_no_call_and_gets_whole_lines(raw: RawClient) -> None:
    names = ["x" * ABOVE_PIPE_CAPACITY + str(signal_number) for signal_number in range(3)]
    raw.send(*(ping(0) | {"id": name} for name in names))
    raw.send(tool_call(7, "write_file", path=str(raw.root / "made"), content="meanwhile"))
    raw.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": names[1]}})
    deadline = time.monotonic() + SECONDS_TO_ANSWER
    while not (raw.root / "made").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert {raw.next_answer()["id"] for _ in range(4)} == {7, *names}


def test_change_does_not_wait_until_its_progress_is_read(raw: RawClient) -> None:
    name = "x" * ABOVE_PIPE_CAPACITY
    made = raw.root / "patched"
    made.write_text("old\n")
    patches = [{"file_path": str(made), "patch": "--- a\n+++ a\n@@ -1 +1 @@\n-old\n+new\n"}]
    raw.send(ping(0) | {"id": name})
    raw.send(with_progress(8, tool_call(8, "apply_patches", strategy="atomic", patches=patches)))
    deadline = time.monotonic() + SECONDS_TO_ANSWER
    while made.read_text() != "new\n":
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert {raw.next_answer()["id"] for _ in range(2)} == {8, name}


def test_progress_is_reported_before_the_answer(raw: RawClient) -> None:
    (raw.root / "name").touch()
    for signal_number in range(100, 150):
        raw.send(
            with_progress(signal_number, tool_call(signal_number, "search_files", path=str(raw.root), pattern="none"))
        )
        reported = []
        while "id" not in (message := json.loads(raw.line())):
            if message["method"] == "notifications/progress":
                reported.append(message["params"]["progressToken"])
        assert (message["id"], set(reported)) == (signal_number, {signal_number})


def test_code_in_the_server_can_not_write_to_standard_output(raw: RawClient) -> None:
    files = Path(f"/proc/{raw.process.pid}/fd")
    assert (files / "0").readlink() == Path(os.devnull)
    assert (files / "1").readlink() == (files / "2").readlink()


def test_last_line_needs_no_newline_and_the_server_ends_with_its_input(tmp_path: Path) -> None:
    with started(tmp_path) as raw:
        raw.write(json.dumps(ping(1)).encode())
        raw.writing.close()
        assert raw.answer(1)["result"] == {}
        assert raw.line() == b""
        assert raw.ended() == (0, b"")


def test_request_id_of_a_cancelled_call_may_be_reused(tmp_path: Path) -> None:
    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    with started(tmp_path) as raw:
        for turn in range(20):  # cancelled before it has started, while it runs, and when it is answered
            raw.send(tool_call(1, "list_directory", path=str(tmp_path)))
            time.sleep(turn / 2000)
            raw.send(cancelled, tool_call(1, "read_file", path=f"{turn}"))
            while not (answer := raw.next_answer())["result"]["isError"]:
                pass  # the answer of the first call, which may have ended before it was cancelled
            assert answer["result"]["structuredContent"]["error"]["path"].endswith(f"{turn}")
        raw.writing.close()


def test_answer_does_not_wait_for_notifications(tmp_path: Path) -> None:
    with started(tmp_path) as raw:
        raw.send(tool_call(1, "write_file", path="a.txt", content="a\n"))
        assert json.loads(raw.line())["id"] == 1
        assert json.loads(raw.line())["method"] == "notifications/resources/list_changed"
        raw.writing.close()


def test_server_works_on_a_socket(tmp_path: Path) -> None:
    with started(tmp_path, sockets=True) as raw:
        name = "x" * ABOVE_PIPE_CAPACITY
        raw.send(ping(0) | {"id": name})
        assert raw.answer(name)["result"] == {}
        with socket.socket(fileno=os.dup(raw.writing.fileno())) as own_end:
            own_end.shutdown(socket.SHUT_WR)
        assert raw.line() == b""
        assert raw.ended() == (0, b"")


def test_change_in_progress_at_the_end_of_the_input_is_completed_and_answered(tmp_path: Path) -> None:
    root, wait_file = tmp_path / "ws", tmp_path / "waits"
    root.mkdir()
    # Asking for approval of an Undo reads the store, which waits as well; for a deletion it does not.
    program = ["tests.support.waiting_server", str(wait_file), "--approve", "delete_file"]
    with started(root, program=program, capabilities={"elicitation": {}}) as raw:
        raw.send(tool_call(1001, "write_file", path="first", content="1\n"))
        raw.answer(1001)
        wait_file.touch()
        raw.send(tool_call(1002, "write_file", path="second", content="2\n"))
        while not wait_file.with_suffix(".reached").exists():
            time.sleep(0.01)
        raw.send(tool_call(1003, "write_file", path="third", content="3\n"))
        raw.send(tool_call(1004, "delete_file", path="first"))
        while b"elicitation/create" not in raw.line():
            pass
        raw.writing.close()
        assert (
            raw.answer(1004)["id"] == 1004
        )  # no approval is possible any more: the server has read the end of the input
        wait_file.unlink()
        answers = {answer["id"]: answer for answer in (raw.next_answer(), raw.next_answer())}
        while line := raw.line():
            assert "id" not in json.loads(line), "a call has two answers"
        assert raw.ended() == (0, b"")
    assert answers[1002]["result"]["structuredContent"]["edit"] == 2
    assert (root / "second").read_text() == "2\n"
    assert answers[1003]["error"]["message"] == "Connection closed"
    assert not (root / "third").exists()
    assert (root / "first").exists()


@pytest.mark.parametrize("line", [json.dumps(ping(1)).encode(), b"no JSON"])
def test_server_ends_quietly_if_its_output_is_closed(tmp_path: Path, line: bytes) -> None:
    with started(tmp_path) as raw:
        raw.reading.close()
        raw.write((line + b"\n") * 20)
        assert raw.ended() == (0, b"")


@pytest.mark.parametrize(("signal_number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)])
def test_signal_stops_the_server_at_once(tmp_path: Path, signal_number: signal.Signals, status: int) -> None:
    with started(tmp_path) as raw:
        raw.send(ping(1))
        assert raw.answer(1)["result"] == {}  # all messages have arrived
        raw.process.send_signal(signal_number)
        assert raw.ended() == (status, b"")


def test_input_and_output_can_be_files(tmp_path: Path) -> None:
    (tmp_path / "input").write_text(json.dumps(INITIALIZE))
    with (tmp_path / "input").open("rb") as stdin, (tmp_path / "output").open("wb") as stdout:
        command = [*forked_program("mcptools").command, str(tmp_path)]
        done = subprocess.run(command, stdin=stdin, stdout=stdout, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads((tmp_path / "output").read_text())["id"] == "begin"


def test_sigint_stops_a_server_with_terminal_input_and_file_output(tmp_path: Path) -> None:
    output = tmp_path / "output"
    with ExitStack() as opened:
        own_end, server_end = pty.openpty()
        opened.callback(os.close, own_end)
        stdout = opened.enter_context(output.open("wb"))
        command = [*COLD_SERVER, str(tmp_path)]
        process = subprocess.Popen(command, stdin=server_end, stdout=stdout, stderr=subprocess.PIPE)
        opened.callback(process.communicate)
        opened.callback(process.kill)
        os.close(server_end)
        os.write(own_end, json.dumps(INITIALIZE).encode() + b"\n")
        deadline = time.monotonic() + SECONDS_TO_ANSWER
        while not output.read_bytes().endswith(b"\n"):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=SECONDS_TO_ANSWER)
        assert (process.returncode, b"Traceback" in errors) == (130, False)
    assert json.loads(output.read_text())["id"] == "begin"
