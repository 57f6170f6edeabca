"""Calls over standard streams that don't wait for answers: cancelled, with equal ids, or at the end of the input."""

import json
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from objstore.disk.fs.writer_lock import WriterLock
from tests.support.faulty_disk import WHOLE
from tests.support.raw_client import NEWER_VERSION_META, Message, ping, started, tool_call

ROUNDS: Final = 100 if WHOLE else 25
"""How many calls are cancelled while they wait: `make crash` takes the larger number."""

HELD_SERVER: Final = "tests.support.held_server"
"""A server in which no call reaches its tool while a certain file exists."""


def cancellation(number: int) -> Message:
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}}


def as_newer_version(call: Message) -> Message:
    """Return a call as a client of the newer protocol version sends it."""
    return {**call, "params": {**call.get("params", {}), "_meta": NEWER_VERSION_META}}


def write_call(number: int, name: str) -> Message:
    return tool_call(number, "write_file", path=name, content=f"{name}\n")


def test_call_can_be_cancelled_before_it_has_started(tmp_path: Path) -> None:
    hold_file, root = tmp_path / "held", tmp_path / "ws"
    root.mkdir()
    with started(root, program=(HELD_SERVER, str(hold_file))) as raw:
        hold_file.touch()
        raw.send(write_call(1, "a"), cancellation(1), ping(2))
        assert raw.next_answer() == {"jsonrpc": "2.0", "id": 2, "result": {}}
        hold_file.unlink()
        raw.send(ping(3))
        assert raw.next_answer()["id"] == 3
        raw.writing.close()
        assert raw.line() == b""
        assert raw.ended() == (0, b"")
    assert not (root / "a").exists()


def test_wrong_arguments_are_refused_every_time(tmp_path: Path) -> None:
    with started(tmp_path) as raw:
        texts = []
        for number in range(1, 5):
            raw.send(
                tool_call(number, "read_file", path="none") if number == 3 else tool_call(number, "read_file", path=1)
            )
            texts.append(raw.answer(number)["result"]["content"][0]["text"])
        assert (
            texts[0] == texts[1] == texts[3] == "Invalid arguments for read_file: path: Input should be a valid string"
        )
        assert texts[2].startswith("File not found")
        raw.writing.close()


@pytest.mark.parametrize("is_newer", [False, True], ids=["older version", "newer version"])
def test_started_call_is_cancelled_before_the_sdk_reaches_its_tool(tmp_path: Path, *, is_newer: bool) -> None:
    hold_file, root = tmp_path / "held", tmp_path / "ws"
    root.mkdir()

    def versioned(message: Message) -> Message:
        return as_newer_version(message) if is_newer else message

    with started(root, program=(HELD_SERVER, str(hold_file)), greets=not is_newer) as raw:
        raw.send(versioned(write_call(1, "a")))
        raw.answer(1)
        hold_file.touch()
        with WriterLock(str(root / ".cas" / "lock")).held():
            raw.send(versioned(write_call(2, "b")), versioned(cancellation(2)))
            for number in (3, 4):  # the cancellation was read before these
                raw.send(versioned(ping(number)))
                raw.answer(number)
        raw.writing.close()
        assert [line for line in iter(raw.line, b"") if b'"id"' in line] == []
        assert raw.ended() == (0, b"")
    assert not (root / "b").exists()


@pytest.mark.parametrize("is_newer", [False, True], ids=["older version", "newer version"])
def test_call_cancelled_while_it_waits_is_not_logged_as_an_error(tmp_path: Path, *, is_newer: bool) -> None:
    def versioned(message: Message) -> Message:
        return as_newer_version(message) if is_newer else message

    with started(tmp_path, greets=not is_newer) as raw:
        for number in range(10, 10 + 10 * ROUNDS, 10):
            raw.send(versioned(write_call(number, "first")))  # the next calls equal this one in all but the name
            raw.answer(number)
            expected_ids = {number + 1, number + 2, number + 3}
            calls = [versioned(write_call(each, f"{each}")) for each in [*sorted(expected_ids), number + 4]]
            raw.send(*calls, versioned(cancellation(number + 4)))
            while expected_ids:
                answer = raw.next_answer()
                assert not answer["result"]["isError"]
                expected_ids.discard(answer["id"])
        raw.writing.close()
        assert not [line for line in iter(raw.line, b"") if b'"isError":true' in line]
        assert raw.ended() == (0, b"")


@pytest.mark.parametrize("params", [{}, {"requestId": 7}], ids=["unknown id", "later of two calls"])
def test_cancellation_of_an_unknown_call_affects_no_other_call(tmp_path: Path, params: Message) -> None:
    root = tmp_path / "ws"
    root.mkdir()
    number: Any = params.get("requestId", "None")
    with started(root) as raw:
        raw.send(write_call(1, "a"))
        raw.answer(1)
        with WriterLock(str(root / ".cas" / "lock")).held():
            others = [write_call(number, "c")] if params else []
            raw.send(write_call(number, "b"), *others, {**cancellation(0), "params": params}, ping(2))
            raw.answer(2)
        assert not raw.answer(number)["result"]["isError"]
        raw.writing.close()
        assert [line for line in iter(raw.line, b"") if b'"id"' in line] == []
        assert raw.ended() == (0, b"")
    assert (root / "b").exists()
    assert not (root / "c").exists()


def test_changed_roots_are_requested_before_the_next_call(tmp_path: Path) -> None:
    root = tmp_path / "ws"
    for name in ("one", "two"):
        (root / name).mkdir(parents=True)
        (root / name / "f").write_text("x\n")
    with started(root, capabilities={"roots": {"listChanged": True}}) as raw:

        def refused(numbers: set[int], roots: str) -> set[int]:
            """Return which of some calls are refused if the client has this root."""
            found = set()
            while numbers:
                message = json.loads(raw.line())
                if message.get("method") == "roots/list":
                    result = {"roots": [{"uri": (root / roots).as_uri()}]}
                    raw.send({"jsonrpc": "2.0", "id": message["id"], "result": result})
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


def test_call_cancelled_immediately_is_made_completely_or_not_at_all(tmp_path: Path) -> None:
    with started(tmp_path) as raw:
        raw.send(write_call(1, "first"))
        raw.answer(1)
        for number in range(10, 50, 2):
            raw.send(write_call(number, "first"))  # the next call equals this one in all but the name
            raw.answer(number)
            raw.send(write_call(number + 1, f"{number}"), cancellation(number + 1), ping(number + 1000))
            assert raw.answer(number + 1000)["result"] == {}
        raw.send(tool_call(2, "list_edits"))
        edits = raw.answer(2)["result"]["structuredContent"]["edits"]
        written = {Path(edit["path"]).name for edit in edits}
        assert written == {path.name for path in tmp_path.iterdir() if path.is_file()}
        assert all((tmp_path / name).read_text() == f"{name}\n" for name in written)
        raw.writing.close()
        assert not [line for line in iter(raw.line, b"") if b'"id"' in line]
        assert raw.ended() == (0, b"")


@pytest.mark.parametrize("extra_calls", range(4))
def test_answers_at_the_end_of_the_input_match_the_changes_made(tmp_path: Path, extra_calls: int) -> None:
    with started(tmp_path) as raw:
        raw.send(write_call(1, "first"))
        raw.answer(1)
        raw.send(*(write_call(number, f"{number}") for number in range(2, 3 + extra_calls)))
        raw.writing.close()
        answers = [json.loads(line) for line in iter(raw.line, b"") if b'"id"' in line]
        assert raw.ended() == (0, b"")
    assert sorted(answer["id"] for answer in answers) == sorted({answer["id"] for answer in answers})
    written = {f"{answer['id']}" for answer in answers if "result" in answer}
    assert written == {path.name for path in tmp_path.iterdir() if path.is_file()} - {"first"}


def test_request_id_may_be_reused_immediately(tmp_path: Path) -> None:
    with started(tmp_path) as raw:
        for number in range(20):
            raw.send(write_call(1, f"{number}"), write_call(1, f"{number} again"))
            assert [raw.next_answer()["id"] for _ in range(2)] == [1, 1]
        assert len([path for path in tmp_path.iterdir() if path.is_file()]) == 40
        raw.writing.close()
        assert not [line for line in iter(raw.line, b"") if b'"id"' in line]
        assert raw.ended() == (0, b"")


def test_request_id_may_be_reused_immediately_by_a_refused_request(tmp_path: Path) -> None:
    with started(tmp_path) as raw:
        raw.send(write_call(1, "first"))
        raw.answer(1)
        for number in range(2, 42):
            raw.send(
                tool_call(number, "read_file", path="first"), {"jsonrpc": "2.0", "id": number, "method": "no/such"}
            )
            answers = [raw.next_answer() for _ in range(2)]
            assert [answer["id"] for answer in answers] == [number, number]
            assert sum("error" in answer for answer in answers) == 1
        raw.writing.close()
        assert not [line for line in iter(raw.line, b"") if b'"id"' in line]
        assert raw.ended() == (0, b"")


@pytest.mark.parametrize(("first", "second"), [(1, 1), (1, "1"), ("1", 1)])
def test_two_calls_with_one_id_are_not_confused(tmp_path: Path, first: int | str, second: int | str) -> None:
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
