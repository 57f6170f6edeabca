"""A rejection while an agent's call runs: the page asks, makes it at once, or keeps it until the end of the turn."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from objstore import Status, Workspace
from tests.support.command_runner import CommandRunner, cas
from tests.support.hooked_agents import ClaudeCode, recorded_project
from tests.support.review_server import ReviewServer, review_server


@pytest.fixture
def agent(tmp_path: Path) -> ClaudeCode:
    """Return an agent that has changed two files in its turn, and has a shell command running."""
    agent = ClaudeCode(recorded_project(tmp_path / "project", "a.txt", "b.txt"))
    agent.start()
    agent.ask("Spell them out.")
    agent.write("a.txt", "one\n2\n3\n")
    agent.write("b.txt", "1\ntwo\n3\n")
    begun, _ = agent.another_call(is_shell=True)
    agent.tell(begun)
    return agent


@pytest.fixture
def server(agent: ClaudeCode) -> Iterator[ReviewServer]:
    """Return a server over the agent's workspace."""
    with review_server(agent.folder) as server:
        yield server


def end_call(agent: ClaudeCode, content: str = "") -> None:
    """Let the running command end, after it has written the first file."""
    if content:
        (agent.folder / "a.txt").write_text(content)
    agent.tell(agent.shell_event("make", before=False))


def queue_once(server: ReviewServer, holds: Callable[[Any], bool]) -> Any:  # noqa: ANN401 -- as the document
    """Return the queue as soon as a condition holds."""
    with server.events() as events:
        for _ in events:
            queue = server.queue()
            if holds(queue):
                return queue
    raise AssertionError("the server has ended")


def nothing_waits(queue: Any) -> bool:  # noqa: ANN401 -- as above
    return not queue["waiting"]


def test_a_rejection_asks_while_the_agent_may_change_the_file(agent: ClaudeCode, server: ReviewServer) -> None:
    outcome = server.decide("reject", keys=server.keys("a.txt"))
    assert outcome["outcome"] == "running"
    assert [(call["tool"], call["client"], call["state"]) for call in outcome["calls"]] == [
        ("Bash", "claude-code", "running")
    ]
    queue = server.queue()
    assert [turn["running"] for turn in queue["turns"]] == [True]
    assert [call["tool"] for call in queue["running_calls"]] == ["Bash"]
    assert (agent.folder / "a.txt").read_text() == "one\n2\n3\n"


def test_an_accept_does_not_ask(server: ReviewServer) -> None:
    assert server.decide("accept", keys=server.keys("a.txt"))["outcome"] == "decided"


def test_a_call_that_names_another_file_does_not_ask(agent: ClaudeCode, server: ReviewServer) -> None:
    end_call(agent)
    agent.calls += 1
    agent.tell(agent.write_event("b.txt", "1\n2\n3\n", before=True))
    assert server.decide("reject", keys=server.keys("b.txt"))["outcome"] == "running"
    assert server.decide("reject", keys=server.keys("a.txt"))["outcome"] == "decided"


def test_a_rejection_is_made_now_if_the_reviewer_says_so(agent: ClaudeCode, server: ReviewServer) -> None:
    assert server.decide("reject", keys=server.keys("a.txt"), running="now")["outcome"] == "decided"
    assert (agent.folder / "a.txt").read_text() == "1\n2\n3\n"


def test_a_rejection_waits_for_the_end_of_the_turn(agent: ClaudeCode, server: ReviewServer) -> None:
    outcome = server.decide("reject", keys=server.keys("a.txt"), running="wait", reason="No.")
    assert outcome["outcome"] == "waiting"
    (waiting,) = server.queue()["waiting"]
    assert waiting == {"id": outcome["id"], "action": "reject", "hunks": ["1:1"], "names": ["a.txt"], "session": 1}
    end_call(agent)
    assert server.queue()["waiting"]  # the agent goes on with its turn
    assert (agent.folder / "a.txt").read_text() == "one\n2\n3\n"
    agent.stop()
    queue = queue_once(server, nothing_waits)
    assert queue["unreadable"] == []
    assert (agent.folder / "a.txt").read_text() == "1\n2\n3\n"
    with Workspace.open(agent.folder) as workspace:
        view = workspace.history.edit(1)
    assert (view.status, view.reason) == (Status.REJECTED, "No.")


def test_what_the_agent_changes_meanwhile_is_not_rejected_unseen(agent: ClaudeCode, server: ReviewServer) -> None:
    server.decide("reject", keys=server.keys("a.txt"), running="wait")
    end_call(agent, "ONE\n2\n3\n")
    agent.stop()
    queue = queue_once(server, nothing_waits)
    (note,) = queue["unreadable"]
    assert "a.txt, which waited, was not made" in note
    assert (agent.folder / "a.txt").read_text() == "ONE\n2\n3\n"


def test_what_goes_along_is_asked_about_before_a_rejection_waits(
    agent: ClaudeCode, server: ReviewServer, tmp_path: Path
) -> None:
    new = tmp_path / "new"
    new.write_text("eins\n2\ndrei\n")
    CommandRunner(agent.folder).done("amend", "1", "--from", str(new))
    asked = server.decide("reject", units={"1:1": "pending"}, running="wait")
    assert asked["outcome"] == "confirm"
    assert {each["status"] for each in asked["listed"]} == {"accepted"}
    waits = server.decide("reject", units={"1:1": "pending"}, running="wait", ticket=asked["ticket"])
    assert waits["outcome"] == "waiting"
    assert server.post("/api/waiting", id=waits["id"], do="now")["outcome"] == "decided"
    assert (agent.folder / "a.txt").read_text() == "1\n2\n3\n"


def test_what_goes_along_only_since_a_rejection_waits_is_not_rejected(
    agent: ClaudeCode, server: ReviewServer, tmp_path: Path
) -> None:
    waits = server.decide("reject", units={"1:1": "pending"}, running="wait")
    new = tmp_path / "new"
    new.write_text("eins\n2\ndrei\n")
    CommandRunner(agent.folder).done("amend", "1", "--from", str(new))
    refused = server.post("/api/waiting", id=waits["id"], do="now")
    assert refused["outcome"] == "overtaken"
    assert "1 of them accepted" in refused["message"]
    assert (agent.folder / "a.txt").read_text() == new.read_text()


def test_what_waits_can_be_made_now_or_cancelled(agent: ClaudeCode, server: ReviewServer) -> None:
    first = server.decide("reject", keys=server.keys("a.txt"), running="wait")["id"]
    second = server.decide("reject", keys=server.keys("b.txt"), running="wait")["id"]
    assert server.post("/api/waiting", id=first, do="cancel")["outcome"] == "nothing-to-do"
    assert server.post("/api/waiting", id=second, do="now")["outcome"] == "decided"
    assert server.post("/api/waiting", id=second, do="now")["outcome"] == "overtaken"
    assert server.queue()["waiting"] == []
    assert [(agent.folder / name).read_text() for name in ("a.txt", "b.txt")] == ["one\n2\n3\n", "1\n2\n3\n"]


@pytest.mark.parametrize(("value", "outcome"), [("now", "decided"), ("wait", "waiting"), ("ask", "running")])
def test_the_setting_answers_the_question(agent: ClaudeCode, server: ReviewServer, value: str, outcome: str) -> None:
    assert cas("config", "set", "review.running", value, folder=agent.folder).status == 0
    assert server.decide("reject", keys=server.keys("a.txt"))["outcome"] == outcome


def test_what_still_waits_is_named_when_the_server_ends(server: ReviewServer) -> None:
    server.decide("reject", keys=server.keys("a.txt"), running="wait")
    assert server.end() == (0, "cas: The rejection in a.txt was not made.\n")


def test_what_a_rejection_names_is_listed_before_it_waits_though_the_file_was_changed(
    agent: ClaudeCode, server: ReviewServer, tmp_path: Path
) -> None:
    new = tmp_path / "new"
    new.write_text("eins\n2\n3\n")
    CommandRunner(agent.folder).done("amend", "1", "--from", str(new))
    keys = server.keys("a.txt")
    (agent.folder / "a.txt").write_text("eins\n2\ndrei\n")
    asked = server.decide("reject", keys=keys, running="wait")
    assert (asked["outcome"], asked["listed"]) == ("confirm", [{"name": "3:1", "status": "accepted"}])
    assert server.decide("reject", keys=keys, running="wait", ticket=asked["ticket"])["outcome"] == "waiting"
