"""What was decided stays in the queue as decided, whoever decided it, until the next review begins."""

from collections.abc import Callable
from typing import Any

import click
import pytest

from cli.web.server_state import ServerState
from cli.web.views.review_queue import queue_shape
from objstore import Call, Operation, TurnInfo
from objstore.review.net import net_summary
from tests.support.command_runner import CommandRunner
from tests.support.review_server import ReviewServer

TEN = b"1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n"


@pytest.fixture
def wrote(runner: CommandRunner) -> Callable[..., None]:
    """Return a function that lets a turn replace a line of a file. Files `a` and `b` are there, and accepted."""
    for name in "ab":
        runner.done("accept", str(runner.write(name, TEN)))

    def made(turn: int, path: str, old: bytes, new: bytes) -> None:
        def change(call: Call) -> None:
            call.write(path, call.read(path).bytes.replace(old, new), operation=Operation.EDIT)

        info = TurnInfo(session="s", began=turn * 1_000_000, prompt=f"prompt {turn}")
        runner.call(change, conversation="c", turn=info)

    return made


def counts(queue: Any) -> tuple[int, int, int]:  # noqa: ANN401 -- whatever the document holds
    return queue["decided"], queue["changes"], queue["total"]


def test_decided_changes_are_counted_and_listed_whoever_decided(
    runner: CommandRunner, server: ReviewServer, wrote: Callable[..., None]
) -> None:
    wrote(1, "a", b"2\n", b"two\n")
    wrote(1, "a", b"8\n", b"eight\n")
    wrote(2, "b", b"5\n", b"five\n")
    assert counts(server.queue()) == (0, 3, 3)
    first, second = server.keys("a")
    server.decide("accept", keys=[first])
    assert counts(server.queue()) == (1, 2, 3)
    runner.done("reject", "5")
    queue = server.queue()
    assert counts(queue) == (2, 1, 3)
    names = {file["document"]: file["name"] for file in (*queue["files"], *queue["done"])}
    files = [
        (turn["turn"], names[file["document"]], file["changes"], file["accepted"], file["rejected"])
        for turn in queue["turns"]
        for file in turn["files"]
    ]
    assert files == [(1, "a", 1, 1, 0), (2, "b", 0, 0, 1)]
    assert [(turn["turn"], turn["prompt"]) for turn in queue["turns"]] == [(1, "prompt 1"), (2, "prompt 2")]
    listed = [(file["name"], file["changes"], file["accepted"], file["rejected"]) for file in queue["files"]]
    assert listed == [("a", 1, 1, 0)]
    (decided,) = queue["done"]
    counts_of = ("name", "changes", "accepted", "rejected", "lines_added", "lines_removed")
    assert tuple(decided[each] for each in counts_of) == ("b", 0, 0, 1, 1, 1)
    runner.done("undo")
    assert counts(server.queue()) == (1, 2, 3)
    server.decide("reject", keys=[second])
    server.decide("accept", keys=server.keys("b"))
    assert [counts(server.queue()) for _ in range(2)] == [(3, 0, 3)] * 2
    runner.done("undo")
    assert counts(server.queue()) == (2, 1, 3)  # the same review goes on
    server.decide("accept", keys=server.keys("b"))
    assert [counts(server.queue()) for _ in range(2)] == [(3, 0, 3)] * 2
    wrote(3, "a", b"1\n", b"one\n")
    assert counts(server.queue()) == (0, 1, 1)  # the next review has begun


def test_every_change_has_its_number_in_the_order_of_turns_files_and_lines(
    server: ReviewServer, wrote: Callable[..., None]
) -> None:
    wrote(1, "b", b"5\n", b"five\n")
    wrote(1, "a", b"8\n", b"eight\n")
    wrote(2, "a", b"2\n", b"two\n")
    wrote(2, "b", b"five\n", b"FIVE\n")
    server.queue()
    assert [change["place"] for change in server.file("a")["all"]] == [3, 1]
    assert [change["place"] for change in server.file("b")["all"]] == [2]
    own = [[(file["document"], file["own"]) for file in turn["files"]] for turn in server.queue()["turns"]]
    assert own == [[(1, 1), (2, 1)], [(1, 1), (2, 0)]]  # the change of both turns is reached in the first
    server.decide("accept", keys=server.keys("b"))
    server.queue()
    assert [change["place"] for change in server.file("a")["all"]] == [3, 1]


def test_a_change_that_the_agent_alters_is_not_called_decided(server: ReviewServer, wrote: Callable[..., None]) -> None:
    wrote(1, "a", b"2\n", b"two\n")
    assert counts(server.queue()) == (0, 1, 1)
    wrote(1, "a", b"two\n", b"TWO\n")
    assert counts(server.queue()) == (0, 1, 1)


def test_while_files_are_read_again_no_count_goes_down(
    runner: CommandRunner, wrote: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(net_summary, "_MOST_SECONDS", -1.0)  # one file is read for each request
    state = ServerState(str(runner.folder), click.Context(click.Command("web")))

    def queue() -> Any:  # noqa: ANN401 -- whatever the document holds
        with state.workspace() as workspace:
            return queue_shape(state, workspace, "")

    for turn, name in enumerate("ab", 1):
        wrote(turn, name, b"2\n", b"two\n")
        wrote(turn, name, b"8\n", b"eight\n")
    first, second = queue(), queue()
    assert [(counts(each), each["reading"]) for each in (first, second)] == [((0, 2, 2), 1), ((0, 4, 4), 0)]
    for name in "ab":
        wrote(3, name, b"5\n", b"five\n")
    first, second = queue(), queue()
    assert [(counts(each), each["reading"]) for each in (first, second)] == [((0, 5, 5), 1), ((0, 6, 6), 0)]
    assert [file["changes"] for file in first["files"]] == [3, 2]
    assert [[file["changes"] for file in turn["files"]] for turn in first["turns"]] == [[2], [2], [1, 0]]
