"""Calls over standard streams without waiting for answers: cancelled, with equal ids, or at the end of input."""

import json
import sys
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from objstore.fs.writer_lock import WriterLock
from tests.support.raw_client import NEWER_VERSION_META, Message, ping, started, tool_call

HELD: Final = """
import sys
from pathlib import Path
import anyio
from mcptools.server.command import main
from mcptools.server.mcp_server import EditServer
held, notice = Path(sys.argv.pop(1)), EditServer._notice

async def holding(server, ctx, call_next):
    while ctx.method == "tools/call" and held.exists():
        await anyio.sleep(0.01)
    return await notice(server, ctx, call_next)

EditServer._notice = holding
main()
"""
"""A server in which no call comes to its tool as long as a certain file exists."""


def cancelled(number: int) -> Message:
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}}


def newer(call: Message) -> Message:
    """Return a call as a client of the newer era makes it."""
    return {**call, "params": {**call.get("params", {}), "_meta": NEWER_VERSION_META}}


def wrote(number: int, name: str) -> Message:
    return tool_call(number, "write_file", path=name, content=f"{name}\n")


def test_a_call_may_be_cancelled_before_it_has_begun(tmp_path: Path) -> None:
    held, root = tmp_path / "held", tmp_path / "ws"
    root.mkdir()
    with started(root, command=(sys.executable, "-P", "-c", HELD, str(held))) as raw:
        held.touch()
        raw.send(wrote(1, "a"), cancelled(1), ping(2))
        assert raw.next_answer() == {"jsonrpc": "2.0", "id": 2, "result": {}}
        held.unlink()
        raw.send(ping(3))
        assert raw.next_answer()["id"] == 3
        raw.writing.close()
        assert raw.line() == b""
        assert raw.ended() == (0, b"")
    assert not (root / "a").exists()


def test_wrong_arguments_are_refused_each_time(tmp_path: Path) -> None:
    with started(tmp_path) as raw:
        said = []
        for number in range(1, 5):
            raw.send(
                tool_call(number, "read_file", path="none") if number == 3 else tool_call(number, "read_file", path=1)
            )
            said.append(raw.answer(number)["result"]["content"][0]["text"])
        assert said[0] == said[1] == said[3] == "Invalid arguments for read_file: path: Input should be a valid string"
        assert said[2].startswith("File not found")
        raw.writing.close()


@pytest.mark.parametrize("is_newer", [False, True], ids=["older era", "newer era"])
def test_a_call_that_has_begun_is_cancelled_though_the_sdk_has_not_come_to_its_tool(
    tmp_path: Path, *, is_newer: bool
) -> None:
    held, root = tmp_path / "held", tmp_path / "ws"
    root.mkdir()

    def sent(message: Message) -> Message:
        return newer(message) if is_newer else message

    with started(root, command=(sys.executable, "-P", "-c", HELD, str(held)), greets=not is_newer) as raw:
        raw.send(sent(wrote(1, "a")))
        raw.answer(1)
        held.touch()
        with WriterLock(str(root / ".cas" / "lock")).held():
            raw.send(sent(wrote(2, "b")), sent(cancelled(2)))
            for number in (3, 4):  # by then it has heard of that
                raw.send(sent(ping(number)))
                raw.answer(number)
        raw.writing.close()
        assert [line for line in iter(raw.line, b"") if b'"id"' in line] == []
        assert raw.ended() == (0, b"")
    assert not (root / "b").exists()


@pytest.mark.parametrize("is_newer", [False, True], ids=["older era", "newer era"])
def test_a_call_cancelled_while_it_waits_is_not_logged_as_an_error(tmp_path: Path, *, is_newer: bool) -> None:
    def sent(message: Message) -> Message:
        return newer(message) if is_newer else message

    with started(tmp_path, greets=not is_newer) as raw:
        for number in range(10, 1010, 10):
            raw.send(sent(wrote(number, "first")))  # the next are like this one again
            raw.answer(number)
            waited_for = {number + 1, number + 2, number + 3}
            calls = [sent(wrote(each, f"{each}")) for each in [*sorted(waited_for), number + 4]]
            raw.send(*calls, sent(cancelled(number + 4)))
            while waited_for:
                answer = raw.next_answer()
                assert not answer["result"]["isError"]
                waited_for.discard(answer["id"])
        raw.writing.close()
        assert not [line for line in iter(raw.line, b"") if b'"isError":true' in line]
        assert raw.ended() == (0, b"")


@pytest.mark.parametrize("said", [{}, {"requestId": 7}], ids=["no call", "the later of two"])
def test_what_cancels_no_call_of_the_sdks_leaves_its_work_alone(tmp_path: Path, said: Message) -> None:
    root = tmp_path / "ws"
    root.mkdir()
    number: Any = said.get("requestId", "None")
    with started(root) as raw:
        raw.send(wrote(1, "a"))
        raw.answer(1)
        with WriterLock(str(root / ".cas" / "lock")).held():
            others = [wrote(number, "c")] if said else []
            raw.send(wrote(number, "b"), *others, {**cancelled(0), "params": said}, ping(2))
            raw.answer(2)
        assert not raw.answer(number)["result"]["isError"]
        raw.writing.close()
        assert [line for line in iter(raw.line, b"") if b'"id"' in line] == []
        assert raw.ended() == (0, b"")
    assert (root / "b").exists()
    assert not (root / "c").exists()


def test_where_the_client_has_changed_its_roots_it_is_asked_first(tmp_path: Path) -> None:
    root = tmp_path / "ws"
    for name in ("one", "two"):
        (root / name).mkdir(parents=True)
        (root / name / "f").write_text("x\n")
    with started(root, capabilities={"roots": {"listChanged": True}}) as raw:

        def refused(numbers: set[int], roots: str) -> set[int]:
            """Return which of some calls are refused, where the client has a root."""
            found = set()
            while numbers:
                message = json.loads(raw.line())
                if message.get("method") == "roots/list":
                    told = {"roots": [{"uri": (root / roots).as_uri()}]}
                    raw.send({"jsonrpc": "2.0", "id": message["id"], "result": told})
                elif "id" in message:
                    numbers.remove(message["id"])
                    found |= {message["id"]} if message["result"]["isError"] else set()
            return found

        read = partial(tool_call, tool="read_file", path=str(root / "one" / "f"))
        for number in (101, 102):
            raw.send(read(number))
            assert not refused({number}, "one")
        raw.send({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}, read(103), read(104))
        assert refused({103, 104}, "two") == {103, 104}
        raw.send(read(105))
        assert refused({105}, "two") == {105}
        raw.writing.close()


def test_a_call_that_is_cancelled_at_once_is_made_whole_or_not_at_all(tmp_path: Path) -> None:
    with started(tmp_path) as raw:
        raw.send(wrote(1, "first"))
        raw.answer(1)
        for number in range(10, 50, 2):
            raw.send(wrote(number, "first"))  # the next is like this one again
            raw.answer(number)
            raw.send(wrote(number + 1, f"{number}"), cancelled(number + 1), ping(number + 1000))
            assert raw.answer(number + 1000)["result"] == {}
        raw.send(tool_call(2, "list_edits"))
        edits = raw.answer(2)["result"]["structuredContent"]["edits"]
        made = {Path(edit["path"]).name for edit in edits}
        assert made == {path.name for path in tmp_path.iterdir() if path.is_file()}
        assert all((tmp_path / name).read_text() == f"{name}\n" for name in made)
        raw.writing.close()
        assert not [line for line in iter(raw.line, b"") if b'"id"' in line]
        assert raw.ended() == (0, b"")


@pytest.mark.parametrize("turn", range(4))
def test_a_call_at_the_end_of_the_input_is_answered_as_what_it_came_to(tmp_path: Path, turn: int) -> None:
    with started(tmp_path) as raw:
        raw.send(wrote(1, "first"))
        raw.answer(1)
        raw.send(*(wrote(number, f"{number}") for number in range(2, 3 + turn)))
        raw.writing.close()
        answers = [json.loads(line) for line in iter(raw.line, b"") if b'"id"' in line]
        assert raw.ended() == (0, b"")
    assert sorted(answer["id"] for answer in answers) == sorted({answer["id"] for answer in answers})
    made = {f"{answer['id']}" for answer in answers if "result" in answer}
    assert made == {path.name for path in tmp_path.iterdir() if path.is_file()} - {"first"}


def test_the_number_of_a_call_may_be_used_again_at_once(tmp_path: Path) -> None:
    with started(tmp_path) as raw:
        for number in range(20):
            raw.send(wrote(1, f"{number}"), wrote(1, f"{number} again"))
            assert [raw.next_answer()["id"] for _ in range(2)] == [1, 1]
        assert len([path for path in tmp_path.iterdir() if path.is_file()]) == 40
        raw.writing.close()
        assert not [line for line in iter(raw.line, b"") if b'"id"' in line]
        assert raw.ended() == (0, b"")


def test_the_number_of_a_call_may_be_used_again_at_once_by_what_is_refused(tmp_path: Path) -> None:
    with started(tmp_path) as raw:
        raw.send(wrote(1, "first"))
        raw.answer(1)
        for number in range(2, 42):
            raw.send(
                tool_call(number, "read_file", path="first"), {"jsonrpc": "2.0", "id": number, "method": "no/such"}
            )
            said = [raw.next_answer() for _ in range(2)]
            assert [answer["id"] for answer in said] == [number, number]
            assert sum("error" in answer for answer in said) == 1
        raw.writing.close()
        assert not [line for line in iter(raw.line, b"") if b'"id"' in line]
        assert raw.ended() == (0, b"")


@pytest.mark.parametrize(("first", "second"), [(1, 1), (1, "1"), ("1", 1)])
def test_two_calls_of_one_number_are_not_taken_for_each_other(
    tmp_path: Path, first: int | str, second: int | str
) -> None:
    for name in "abc":
        (tmp_path / name).write_text("x\n")
    with started(tmp_path) as raw:
        raw.send(tool_call(first, "delete_file", path="a"), tool_call(second, "read_file", path="b"))
        assert {str(raw.next_answer()["id"]) for _ in range(2)} == {"1"}
        for number in (3, 4):
            raw.send(tool_call(number, "read_file", path="c"))
            assert raw.answer(number)["result"]["content"][0]["text"] == "x\n"
        raw.writing.close()
    assert (tmp_path / "c").exists()
    assert not (tmp_path / "a").exists()
