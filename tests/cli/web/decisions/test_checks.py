"""A decision on the page is made only if the check of the person's settings succeeds; meanwhile the page goes on."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from objstore import Status
from tests.cli.commands.reviewing.test_trial import noted_pid, wait_until_gone
from tests.support.command_runner import PATIENCE, CommandRunner
from tests.support.review_server import ReviewServer, review_server


@pytest.fixture
def own(tmp_path: Path) -> dict[str, str]:
    return {"XDG_CONFIG_HOME": str(tmp_path / "config")}


@pytest.fixture
def server(runner: CommandRunner, own: dict[str, str]) -> Iterator[ReviewServer]:
    runner.done("accept", str(runner.write("a", b"1\n2\n")))
    runner.edit("a", b"2\n", b"two\n")
    runner.write("b", b"b\n")
    with review_server(runner.folder, settings=own) as server:
        yield server


def rejection(server: ReviewServer) -> Any:  # noqa: ANN401 - whatever the outcome holds
    return server.decide("reject", units={"2:1": "pending"}, reason="no")


def test_failed_check_decides_nothing_and_its_output_is_sent(
    runner: CommandRunner, server: ReviewServer, own: dict[str, str]
) -> None:
    check = "yes flood | head -c 5000000; echo; cat a; exit 3"
    runner.done("config", "set", "review.check", check, **own)
    outcome = rejection(server)
    assert outcome["outcome"] == "unchecked"
    assert outcome["message"].endswith("failed with status 3 on a copy of what this would leave.")
    assert outcome["output"][0].startswith("... (the last")
    assert outcome["output"][-2:] == ["1", "2"]
    assert (runner.statuses()["2:1"], runner.bytes("a")) == (Status.PENDING, b"1\ntwo\n")


def test_check_does_not_run_before_what_goes_along_is_asked_about(
    runner: CommandRunner, server: ReviewServer, own: dict[str, str], tmp_path: Path
) -> None:
    new = tmp_path / "new"
    new.write_bytes(b"one\nzwei\n")
    runner.done("amend", "2", "--from", str(new))
    note = tmp_path / "ran"
    runner.done("config", "set", "review.check", f"touch {note}", **own)
    asked = rejection(server)
    assert (asked["outcome"], note.exists()) == ("confirm", False)
    done = server.decide("reject", units={"2:1": "pending"}, ticket=asked["ticket"])
    assert (done["outcome"], note.exists(), runner.bytes("a")) == ("decided", True, b"1\n2\n")


def test_passed_check_is_kept_with_the_decision_and_shown(
    runner: CommandRunner, server: ReviewServer, own: dict[str, str]
) -> None:
    runner.done("config", "set", "review.check", "echo 12 passed", **own)
    assert rejection(server)["outcome"] == "decided"
    (edit,) = server.get("/api/edits", units="2:1")["edits"]
    assert (edit["reason"], edit["check"]) == ("no", "Checked with `echo 12 passed`, which succeeded:\n12 passed")
    assert server.decide("reset", units={"2:1": "rejected"})["outcome"] == "decided"


def test_page_goes_on_during_a_check_and_can_stop_it(
    runner: CommandRunner, server: ReviewServer, own: dict[str, str], tmp_path: Path
) -> None:
    note = tmp_path / "pid"
    check = f"echo $$ > {note}; sleep 1000 & wait"
    runner.done("config", "set", "review.check", check, **own)
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(rejection, server)
        pid = noted_pid(note)
        assert server.queue()["checks"] == [check]
        assert len(server.file("b")["all"]) == 1
        assert runner.done("status").status == 0
        assert server.post("/api/stop_checks") == {}
        outcome = asked.result(PATIENCE)
    assert outcome["message"].endswith("was stopped on a copy of what this would leave.")
    wait_until_gone(pid)
    assert server.queue()["checks"] == []
    assert runner.statuses()["2:1"] is Status.PENDING


def test_check_that_hangs_is_ended_at_its_limit(
    runner: CommandRunner, server: ReviewServer, own: dict[str, str]
) -> None:
    runner.done("config", "set", "review.check", "echo waiting; sleep 1000", **own)
    runner.done("config", "set", "review.check_limit", "1s", **own)
    outcome = rejection(server)
    assert "took longer than 1 s" in outcome["message"]
    assert outcome["output"] == ["waiting"]


def test_check_that_writes_into_the_workspace_decides_nothing(
    runner: CommandRunner, server: ReviewServer, own: dict[str, str]
) -> None:
    runner.done("config", "set", "review.check", f"echo more >> {runner.folder}/b", **own)
    outcome = rejection(server)
    assert "Files changed while the check ran: b" in outcome["message"]
    assert runner.statuses()["2:1"] is Status.PENDING


def test_end_of_the_server_ends_a_check(
    runner: CommandRunner, server: ReviewServer, own: dict[str, str], tmp_path: Path
) -> None:
    note = tmp_path / "pid"
    runner.done("config", "set", "review.check", f"echo $$ > {note}; exec sleep 1000", **own)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(rejection, server)
        pid = noted_pid(note)
        server.process.terminate()
        server.process.wait(PATIENCE)
    wait_until_gone(pid)
    assert runner.statuses()["2:1"] is Status.PENDING
