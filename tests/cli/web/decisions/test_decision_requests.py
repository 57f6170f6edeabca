"""Every outcome that a decision in the browser can have, without any other effect."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import click
import pytest

from cli.web.decisions.outcomes import failure_shape
from cli.web.server_state import ServerState
from objstore import Call, Status, StoreLocked, TurnInfo, Workspace
from objstore.disk.fs.writer_lock import WriterLock
from tests.support.command_runner import AS_ANYBODY, CommandRunner
from tests.support.review_server import WHOLE, ReviewServer, review_server

TEN = b"1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n"


def accepted(runner: CommandRunner, path: str, content: bytes) -> None:
    runner.done("accept", str(runner.write(path, content)))


@pytest.fixture
def edited(runner: CommandRunner) -> CommandRunner:
    """Return a workspace with two changes of a file, by edits 2 and 3."""
    accepted(runner, "a", TEN)
    runner.edit("a", b"2\n", b"two\n")
    runner.edit("a", b"9\n", b"nine\n")
    return runner


@pytest.fixture
def stacked(runner: CommandRunner) -> CommandRunner:
    """Return a workspace in which edit 3 has changed the line that edit 2 had changed."""
    accepted(runner, "a", TEN)
    runner.edit("a", b"2\n", b"two\n")
    runner.edit("a", b"two\n", b"TWO\n", conversation="conv_two")
    return runner


# ---- decided


def test_what_is_pending_of_a_turn_is_decided_together_as_far_as_it_was_shown(
    runner: CommandRunner, server: ReviewServer
) -> None:
    accepted(runner, "a", TEN)

    def wrote(path: str, content: bytes, number: int) -> None:
        turn = TurnInfo(session="s", began=number * 1_000_000, prompt=f"prompt {number}")
        runner.call(lambda call: call.write(path, content), conversation="conv", turn=turn)

    wrote("a", TEN.replace(b"2\n", b"two\n"), 1)
    wrote("b", b"new\n", 1)
    wrote("b", b"newer\n", 1)
    wrote("a", TEN.replace(b"2\n", b"two\n").replace(b"9\n", b"nine\n"), 2)
    shown = server.of_turn(2)
    assert server.decide("reject", turn=1, on_screen=shown)["outcome"] == "unshown"
    wrote("c", b"of turn 2\n", 2)
    refused = server.decide("accept", turn=2, on_screen=shown)
    assert (refused["outcome"], refused["lines"], refused["changes"][0]["name"]) == ("unshown", 1, "c")
    assert (runner.bytes("a").count(b"two"), (runner.folder / "b").exists()) == (1, True)
    assert server.decide("reject", turn=1)["outcome"] == "decided"
    assert (runner.bytes("a"), (runner.folder / "b").exists()) == (TEN.replace(b"9\n", b"nine\n"), False)
    assert server.decide("accept", turn=2)["outcome"] == "decided"
    queue = server.queue()
    left = [file["changes"] for turn in queue["turns"] for file in turn["files"]]
    assert (set(left), queue["pending"]) == ({0}, 0)
    assert server.decide("accept", turn=99)["outcome"] == "overtaken"


@pytest.mark.parametrize(
    ("rows", "missing"),
    [
        (None, [[0, 4]]),
        ([], [[0, 4]]),
        ([[0, 3]], [[3, 4]]),
        ([[1, 2]], [[0, 1], [2, 4]]),
        ([[2, 4], [0, 1]], [[1, 2]]),
    ],
)
def test_rows_that_were_not_on_the_screen_are_neither_decided_nor_seen(
    runner: CommandRunner, server: ReviewServer, rows: list[list[int]] | None, missing: list[list[int]]
) -> None:
    accepted(runner, "a", TEN)
    runner.edit("a", b"2\n3\n", b"two\nthree\n")
    [key] = server.keys("a")
    screen = {} if rows is None else {key: rows}
    for action in ("accept", "reject"):
        refused = server.decide(action, keys=[key], on_screen=screen)
        assert (refused["outcome"], refused["lines"]) == ("unshown", sum(end - start for start, end in missing))
        assert (refused["changes"][0]["key"], refused["changes"][0]["rows"]) == (key, missing)
    assert server.post("/api/seen", keys=[key], on_screen=screen) == {"unshown": [key]}
    queue = server.queue()
    assert (queue["unseen"], queue["pending"], queue["undo"]) == (1, 1, 1)
    shown = {key: [*(rows or []), *missing]}
    assert server.post("/api/seen", keys=[key], on_screen=shown) == {"unshown": []}
    assert server.queue()["unseen"] == 0
    assert server.decide("accept", keys=[key], on_screen=shown)["outcome"] == "decided"


def test_a_change_that_words_show_is_decided_once_they_were_on_the_screen(
    runner: CommandRunner, server: ReviewServer
) -> None:
    runner.write("bin", b"\0\1")
    [key] = server.keys("bin")
    refused = server.decide("accept", keys=[key], on_screen={})
    assert refused["message"] == "1 change was not on the screen, so nothing was decided."
    runner.write("a", b"1\n")
    both = server.decide("accept", keys=[key, *server.keys("a")], on_screen={})["message"]
    assert both == "1 line and 1 change without lines were not on the screen, so nothing was decided."
    assert server.decide("accept", keys=[key], on_screen={key: []})["outcome"] == "decided"


def test_a_single_hunk_is_decided_once_its_own_rows_were_on_the_screen(
    edited: CommandRunner, server: ReviewServer
) -> None:
    [first, _] = server.keys("a")
    refused = server.decide("accept", units={"2:1": "pending"}, on_screen={first: WHOLE})
    assert (refused["outcome"], refused["lines"], refused["hunks"]) == ("unshown", 2, ["2:1"])
    [edit] = server.get("/api/edits", units="2:1")["edits"]
    rows = len(edit["hunks"][0]["rows"])
    assert server.decide("accept", units={"2:1": "pending"}, on_screen={"2:1": [[0, rows]]})["outcome"] == "decided"
    assert edited.statuses()["2:1"] is Status.ACCEPTED


def test_a_hunk_that_is_asked_for_alone_has_all_its_rows_uncut(runner: CommandRunner, server: ReviewServer) -> None:
    accepted(runner, "a", TEN)
    runner.write("a", b"x" * 5_000 + b"\n" + b"y\n" * 3_000)
    runner.write("b", b"new\n")
    [edit] = server.get("/api/edits", units="2:1")["edits"]
    [hunk] = edit["hunks"]
    assert (len(hunk["rows"]), max(len(row["t"]) for row in hunk["rows"])) == (10 + 3_001, 5_000)
    cut, _ = server.get("/api/edits", units="2:1,3:0")["edits"]
    assert len(cut["hunks"][0]["rows"]) == 2_000


def test_a_line_that_was_cut_is_only_completed_for_its_own_change(runner: CommandRunner, server: ReviewServer) -> None:
    accepted(runner, "a", TEN)
    runner.edit("a", b"5\n", b"x" * 3_000 + b"\n")
    shown = server.file("a")
    [change] = shown["all"]
    where = {"document": shown["document"], "row": 1, "first": 2_000}
    runner.edit("a", b"1\n", b"one\n")
    assert server.get("/api/line", key=change["key"], **where) == {"t": "x" * 1_000, "cut": 0}
    runner.edit("a", b"xx\n", b"xy\n")
    assert server.client.get("/api/line", params={**where, "key": change["key"]}).status_code == 404


def test_a_change_is_accepted_and_rejected_by_its_key(edited: CommandRunner, server: ReviewServer) -> None:
    first, second = server.keys("a")
    outcome = server.decide("reject", keys=[first], reason="Keep the digit.")
    assert (outcome["outcome"], outcome["action"], server.changed(outcome)) == ("decided", "reject", ["2:1"])
    assert (outcome["message"], outcome["subject"]) == ("Rejected 1 change in a.", "1 change in a")
    assert outcome["detail"] == "Rejected edit 2."
    assert [(each["name"], each["words"]) for each in outcome["files"]] == [("a", "Rewrote a")]
    assert edited.bytes("a") == TEN.replace(b"9\n", b"nine\n")
    assert server.decide("accept", keys=[second])["outcome"] == "decided"
    assert edited.statuses() == {
        "1:0": Status.ACCEPTED,
        "2:1": Status.REJECTED,
        "3:1": Status.ACCEPTED,
    }
    with edited.workspace() as workspace:
        assert workspace.history.edit(2).reason == "Keep the digit."
    queue = server.queue()
    assert (queue["files"], queue["changes"], queue["pending"]) == ([], 0, 0)


def test_undo_and_redo_take_the_newest_decision(edited: CommandRunner, server: ReviewServer) -> None:
    server.decide("reject", keys=server.keys("a"))
    number = server.queue()["undo"]
    undone = server.post("/api/undo", number=number)
    assert (undone["outcome"], undone["action"], server.changed(undone)) == ("decided", "undo", ["2:1", "3:1"])
    assert edited.bytes("a") == TEN.replace(b"2\n", b"two\n").replace(b"9\n", b"nine\n")
    assert server.post("/api/undo", number=number)["outcome"] == "overtaken"
    assert server.post("/api/redo")["outcome"] == "decided"
    assert edited.bytes("a") == TEN
    assert server.post("/api/redo")["outcome"] == "nothing-to-do"


def test_a_single_hunk_is_decided_with_the_status_that_was_shown(edited: CommandRunner, server: ReviewServer) -> None:
    assert server.changed(server.decide("reject", units={"2:1": "pending"})) == ["2:1"]
    assert server.changed(server.decide("reset", units={"2:1": "rejected"})) == ["2:1"]
    assert server.decide("accept", units={"2:1": "rejected"})["outcome"] == "overtaken"
    assert edited.statuses()["2:1"] is Status.PENDING


def test_a_decided_change_of_which_all_rows_were_shown_is_reopened(edited: CommandRunner, server: ReviewServer) -> None:
    key = next(change["key"] for change in server.file("a")["all"] if change["hunks"] == ["2:1"])
    server.decide("reject", keys=[key])
    units = {"2:1": "rejected"}
    for screen in ({}, {key: [[0, 1]]}):
        assert server.decide("reset", units=units, on_screen=screen)["outcome"] == "unshown"
    assert edited.statuses()["2:1"] is Status.REJECTED
    assert server.changed(server.decide("reset", units=units, on_screen={key: [[0, 2]]})) == ["2:1"]
    for action in ("accept", "reject"):  # these need the hunk's own rows
        assert server.decide(action, units={"2:1": "pending"}, on_screen={key: [[0, 2]]})["outcome"] == "unshown"


def test_changes_that_share_a_hunk_are_decided_together(runner: CommandRunner, server: ReviewServer) -> None:
    accepted(runner, "a", b"1\n2\n3\n")
    runner.edit("a", b"1\n2\n3\n", b"one\ntwo\nthree\n")
    runner.edit("a", b"two\n", b"2\n")
    shown = server.file("a")["all"]
    assert [change["shares_with"] for change in shown] == [[1], [0]]
    keys = [change["key"] for change in shown]
    refused = server.decide("reject", keys=keys[:1], on_screen={keys[0]: WHOLE})
    assert (refused["outcome"], refused["changes"][0]["key"]) == ("unshown", keys[1])
    outcome = server.decide("reject", keys=keys[:1], on_screen=dict.fromkeys(keys, WHOLE))
    assert (outcome["outcome"], server.changed(outcome)) == ("decided", ["2:1", "3:1"])
    assert runner.bytes("a") == b"1\n2\n3\n"


def test_a_change_is_not_decided_if_one_that_shares_its_hunk_reads_otherwise_by_now(
    runner: CommandRunner, server: ReviewServer
) -> None:
    accepted(runner, "a", b"1\n2\n3\n")
    runner.edit("a", b"1\n2\n3\n", b"one\ntwo\nthree\n")
    runner.edit("a", b"two\n", b"2\n")
    first, _ = server.keys("a")
    runner.edit("a", b"three\n", b"THREE\n")
    assert server.decide("reject", keys=[first])["outcome"] == "overtaken"
    assert runner.bytes("a") == b"one\n2\nTHREE\n"


def test_with_the_last_change_of_a_file_goes_what_has_no_effect(runner: CommandRunner, server: ReviewServer) -> None:
    accepted(runner, "a", TEN)
    runner.edit("a", b"2\n", b"two\n")
    runner.edit("a", b"two\n", b"2\n")
    runner.edit("a", b"9\n", b"nine\n")
    shown = server.file("a")
    assert shown["cancelled"] == ["2:1", "3:1"]
    outcome = server.decide("accept", keys=[change["key"] for change in shown["all"]])
    assert server.changed(outcome) == ["2:1", "3:1", "4:1"]
    assert server.queue()["files"] == []


def test_there_may_be_nothing_to_do(edited: CommandRunner, server: ReviewServer) -> None:
    edited.done("accept", "2")
    assert server.decide("accept", units={"2:1": "accepted"})["outcome"] == "nothing-to-do"


# ---- conflicted


def test_a_conflict_says_who_needs_whom_and_what_a_cascade_would_do(
    stacked: CommandRunner, server: ReviewServer
) -> None:
    refused = server.decide("reject", units={"2:1": "pending"})
    assert refused["outcome"] == "conflict"
    assert refused["message"] == "Refused, nothing was changed: 1 conflict."
    (conflict,) = refused["conflicts"]
    assert (conflict["unit"], conflict["needs"], conflict["name"], conflict["line"]) == ("3:1", ["2:1"], "a", 2)
    assert (conflict["removed"], conflict["inserted"]) == ("two\n", "TWO\n")
    assert [edit["seq"] for edit in conflict["edits"]] == [2, 3]
    assert (refused["accept_first"], refused["reject_first"]) == ([], ["3:1"])
    assert (refused["can_cascade"], refused["can_mark"]) == (True, True)
    assert [(each["name"], each["words"]) for each in refused["cascade"]] == [("a", "Would rewrite a")]
    assert stacked.bytes("a") == TEN.replace(b"2\n", b"TWO\n")


def test_a_conflict_is_answered_by_a_cascade(stacked: CommandRunner, server: ReviewServer) -> None:
    ticket = server.decide("reject", units={"2:1": "pending"})["ticket"]
    outcome = server.decide("reject", units={"2:1": "pending"}, cascade=True, ticket=ticket)
    assert (outcome["outcome"], server.changed(outcome, cascaded=True)) == ("decided", ["3:1"])
    assert stacked.bytes("a") == TEN


def test_a_rejection_of_a_single_accepted_hunk_counts_it_before_and_after_and_asks_once(
    stacked: CommandRunner, server: ReviewServer
) -> None:
    stacked.done("accept", "2")
    accepted_now = {"2:1": "accepted"}
    asked = server.decide("reject", units=accepted_now)
    assert (asked["outcome"], asked["hunks"], asked["accepted"]) == ("confirm", ["2:1"], ["2:1"])
    assert asked["message"] == "This rejects 1 edit, accepted: edit 2."
    assert stacked.statuses()["2:1"] is Status.ACCEPTED
    refused = server.decide("reject", units=accepted_now, ticket=asked["ticket"])
    assert refused["outcome"] == "conflict"
    done = server.decide("reject", units=accepted_now, cascade=True, ticket=refused["ticket"])
    assert (done["outcome"], server.changed(done, cascaded=True)) == ("decided", ["3:1"])
    assert "2 edits, 1 of them accepted: edit 2." in done["notes"]
    assert server.decide("accept", units={"2:1": "rejected"})["outcome"] == "decided"
    assert server.decide("reset", units={"2:1": "accepted"})["outcome"] == "decided"


@pytest.fixture
def amended(runner: CommandRunner, tmp_path: Path) -> CommandRunner:
    """Return a workspace in which an accepted amendment of pending edit 2 also changes line 9."""
    accepted(runner, "a", TEN)
    runner.edit("a", b"2\n", b"two\n")
    new = tmp_path / "new"
    new.write_bytes(TEN.replace(b"2\n", b"zwei\n").replace(b"9\n", b"neun\n"))
    runner.done("amend", "2", "--from", str(new))
    return runner


def _named(amended: CommandRunner, server: ReviewServer, by: str) -> dict[str, Any]:
    """Return how the page requests a decision on edit 2, with all rows on the screen."""
    names: dict[str, dict[str, Any]] = {
        "hunk": {"units": {"2:1": amended.statuses()["2:1"].value}},
        "key": {"keys": server.keys("a")[:1]},
        "file": {"path": "a"},
    }
    return {**names[by], "on_screen": dict.fromkeys([*server.keys("a"), "2:1"], WHOLE)}


@pytest.mark.parametrize("by", ["hunk", "key", "file"])
def test_accepted_hunks_that_a_rejection_takes_along_are_listed_before_and_counted_after(
    amended: CommandRunner, server: ReviewServer, by: str
) -> None:
    names = _named(amended, server, by)
    before = amended.bytes("a"), amended.statuses()
    asked = server.decide("reject", **names)
    assert asked["outcome"] == "confirm"
    assert asked["listed"] == [{"name": name, "status": "accepted"} for name in ("3:1", "3:2")]
    assert asked["message"].startswith("This rejects 2 edits, 1 of them accepted: edit 3. Would also reject ")
    assert (amended.bytes("a"), amended.statuses()) == before
    done = server.decide("reject", ticket=asked["ticket"], **names)
    assert (done["outcome"], done["taken_back"]) == ("decided", ["3:1", "3:2"])
    assert any("2 edits, 1 of them accepted" in said for said in done["notes"])
    assert amended.bytes("a") == TEN


@pytest.mark.parametrize("by", ["hunk", "key", "file"])
def test_a_change_from_outside_and_what_goes_along_are_each_asked_about_once(
    amended: CommandRunner, server: ReviewServer, by: str
) -> None:
    names = _named(amended, server, by)
    (amended.folder / "a").write_bytes(amended.bytes("a").replace(b"6\n", b"mine\n"))
    outside = server.decide("reject", **names)
    assert outside["outcome"] == "external-changes"
    asked = server.decide("reject", on_external="keep", ticket=outside["ticket"], **names)
    assert asked["outcome"] == "confirm"
    assert asked["listed"] == [{"name": name, "status": "accepted"} for name in ("3:1", "3:2")]
    done = server.decide("reject", on_external="keep", ticket=asked["ticket"], **names)
    assert (done["outcome"], amended.bytes("a")) == ("decided", TEN.replace(b"6\n", b"mine\n"))


def test_an_answer_holds_for_what_was_listed_as_it_was_then(amended: CommandRunner, server: ReviewServer) -> None:
    assert server.decide("reset", units={"3:2": "accepted"}, on_screen={"3:2": WHOLE})["outcome"] == "decided"
    names = _named(amended, server, "hunk")
    asked = server.decide("reject", **names)
    assert asked["listed"] == [{"name": "3:1", "status": "accepted"}, {"name": "3:2", "status": "pending"}]
    amended.done("accept", "3:2")
    assert server.decide("reject", ticket=asked["ticket"], **names)["outcome"] == "overtaken"
    assert amended.statuses()["3:2"] is Status.ACCEPTED


def test_an_accepted_dependent_that_a_conflict_named_goes_with_a_cascade_and_is_counted(
    stacked: CommandRunner, server: ReviewServer
) -> None:
    stacked.done("accept", "3")
    refused = server.decide("reject", units={"2:1": "pending"})
    assert refused["outcome"] == "conflict"
    assert refused["along"] == "2 edits, 1 of them accepted: edit 3. Would also reject edit 3, which depends on it."
    done = server.decide("reject", units={"2:1": "pending"}, cascade=True, ticket=refused["ticket"])
    assert (done["outcome"], done["accepted_edits"]) == ("decided", 1)


def test_a_rejection_that_breaks_names_is_asked_about_once(runner: CommandRunner, server: ReviewServer) -> None:
    accepted(runner, "a.py", b"x = 1\n")
    runner.edit("a.py", b"x = 1\n", b"x = 1\ny = 2\n")
    accepted(runner, "b.py", b"from a import y\n")
    asked = server.decide("reject", units={"2:1": "pending"})
    assert (asked["outcome"], asked["title"], asked["hunks"]) == ("confirm", "This breaks names", ["2:1"])
    assert asked["message"].endswith("takes `y` out of `a`, from which b.py:1 imports it, which 3:0 added.")
    assert runner.statuses()["2:1"] is Status.PENDING
    done = server.decide("reject", units={"2:1": "pending"}, ticket=asked["ticket"])
    assert done["outcome"] == "decided"
    assert any("takes `y` out of `a`" in said for said in done["notes"])


def test_a_conflict_is_answered_by_markers(stacked: CommandRunner, server: ReviewServer) -> None:
    ticket = server.decide("reject", units={"2:1": "pending"})["ticket"]
    outcome = server.decide("reject", units={"2:1": "pending"}, markers=True, ticket=ticket)
    assert outcome["outcome"] == "decided"
    assert b"<<<<<<<" in stacked.bytes("a")
    assert [(each["name"], each["aside"]) for each in server.queue()["markers"]] == [("a", ["3:1"])]


def test_a_cascade_takes_only_what_the_conflict_showed(stacked: CommandRunner, server: ReviewServer) -> None:
    ticket = server.decide("reject", units={"2:1": "pending"})["ticket"]
    stacked.edit("a", b"TWO\n", b"Two\n")
    again = server.decide("reject", units={"2:1": "pending"}, cascade=True, ticket=ticket)
    assert again["outcome"] == "conflict"
    assert again["reject_first"] == ["3:1", "4:1"]
    assert stacked.bytes("a") == TEN.replace(b"2\n", b"Two\n")


def test_an_accept_that_needs_others_offers_no_cascade(stacked: CommandRunner, server: ReviewServer) -> None:
    stacked.done("reject", "2", "3")
    refused = server.decide("accept", units={"3:1": "rejected"})
    assert refused["outcome"] == "conflict"
    assert (refused["accept_first"], refused["can_cascade"]) == (["2:1"], False)


def test_an_unknown_ticket_is_overtaken(stacked: CommandRunner, server: ReviewServer) -> None:
    outcome = server.decide("reject", units={"2:1": "pending"}, cascade=True, ticket="x" * 22)
    assert outcome["outcome"] == "overtaken"
    assert stacked.statuses()["2:1"] is Status.PENDING


# ---- external


@pytest.mark.parametrize(("answer", "left"), [("keep", b"mine\n" + TEN[2:]), ("discard", TEN)])
def test_a_change_from_outside_is_kept_or_discarded(
    edited: CommandRunner, server: ReviewServer, answer: str, left: bytes
) -> None:
    keys = server.keys("a")
    path = edited.folder / "a"
    path.write_bytes(path.read_bytes().replace(b"1\n", b"mine\n", 1))
    stopped = server.decide("reject", keys=keys)
    assert stopped["outcome"] == "external-changes"
    (change,) = stopped["external_changes"]
    assert (change["name"], change["change"]) == ("a", "modified")
    assert [(row["k"], row["t"]) for row in change["rows"]] == [("-", "1"), ("+", "mine")]
    assert [each["name"] for each in server.queue()["external_changes"]] == ["a"]
    outcome = server.decide("reject", keys=keys, on_external=answer, ticket=stopped["ticket"])
    assert outcome["outcome"] == "decided"
    assert edited.bytes("a") == left


def test_a_change_from_outside_that_was_not_shown_is_not_discarded(edited: CommandRunner, server: ReviewServer) -> None:
    keys, path = server.keys("a"), edited.folder / "a"
    path.write_bytes(b"mine\n" + path.read_bytes())
    ticket = server.decide("reject", keys=keys)["ticket"]
    path.write_bytes(b"mine too\n" + path.read_bytes())
    now = path.read_bytes()
    outcome = server.decide("reject", keys=keys, on_external="discard", ticket=ticket)
    assert outcome["outcome"] == "overtaken"
    assert path.read_bytes() == now


def test_an_answer_to_outside_changes_goes_on_to_the_cascade(stacked: CommandRunner, server: ReviewServer) -> None:
    path = stacked.folder / "a"
    path.write_bytes(path.read_bytes() + b"11\n")
    units = {"2:1": "pending"}
    stopped = server.decide("reject", units=units)
    refused = server.decide("reject", units=units, on_external="keep", ticket=stopped["ticket"])
    assert refused["outcome"] == "conflict"
    outcome = server.decide("reject", units=units, on_external="keep", cascade=True, ticket=refused["ticket"])
    assert (outcome["outcome"], server.changed(outcome, cascaded=True)) == ("decided", ["3:1"])
    assert path.read_bytes() == TEN + b"11\n"


# ---- overtaken


def test_a_change_that_the_agent_altered_is_not_decided(edited: CommandRunner, server: ReviewServer) -> None:
    first, second = server.keys("a")
    edited.edit("a", b"two\n", b"TWO\n")
    outcome = server.decide("accept", keys=[first, second])
    assert outcome["outcome"] == "overtaken"
    assert "the agent, or you, changed" in outcome["message"]
    assert set(edited.statuses().values()) == {Status.PENDING, Status.ACCEPTED}
    assert edited.statuses()["3:1"] is Status.PENDING


def test_a_change_that_was_decided_in_the_terminal_is_not_decided_again(
    edited: CommandRunner, server: ReviewServer
) -> None:
    first, _ = server.keys("a")
    edited.done("accept", "2")
    outcome = server.decide("reject", keys=[first])
    assert outcome == {
        "outcome": "overtaken",
        "message": "Decided elsewhere meanwhile: it is accepted now.",
    }
    assert edited.statuses()["2:1"] is Status.ACCEPTED


def test_a_key_of_before_the_server_was_started_again_counts_if_it_is_still_right(edited: CommandRunner) -> None:
    with review_server(edited.folder) as server:
        first, second = server.keys("a")
    with review_server(edited.folder) as server:
        assert server.decide("accept", keys=[first])["outcome"] == "decided"
        edited.edit("a", b"nine\n", b"NINE\n")
        assert server.decide("accept", keys=[second])["outcome"] == "overtaken"


def test_a_change_counts_as_itself_when_its_lines_or_its_file_have_moved(
    edited: CommandRunner, server: ReviewServer
) -> None:
    _, second = server.keys("a")
    edited.edit("a", b"5\n", b"5\n5a\n5b\n")
    edited.move("a", "b")
    outcome = server.decide("reject", keys=[second])
    assert (outcome["outcome"], server.changed(outcome)) == ("decided", ["3:1"])
    assert b"nine" not in edited.bytes("b")


def test_of_two_who_decide_at_once_one_is_overtaken(edited: CommandRunner, server: ReviewServer) -> None:
    keys = server.keys("a")
    browsers = [server.browser() for _ in range(4)]

    def decided(at: int) -> Any:  # noqa: ANN401 -- whatever the document holds
        asked = {"action": ("accept", "reject")[at % 2], "keys": keys, "on_screen": dict.fromkeys(keys, WHOLE)}
        return browsers[at].post("/api/decide", json=asked).json()

    with ThreadPoolExecutor(4) as threads:
        outcomes = list(threads.map(decided, range(4)))
    made = [each for each in outcomes if each["outcome"] == "decided"]
    assert len(made) == 1, outcomes
    # Who would reject what another has accepted meanwhile is asked first.
    assert {each["outcome"] for each in outcomes} <= {"decided", "overtaken", "nothing-to-do", "confirm"}
    assert {edited.statuses()[unit].value for unit in server.changed(made[0])} == {f"{made[0]['action']}ed"}


# ---- read-only and failed


@contextmanager
def writable_again(folder: Path) -> Iterator[None]:
    """Make the store read-only, and writable again after use."""
    paths = [folder / ".cas", *(folder / ".cas").rglob("*")]
    modes = {path: path.stat().st_mode & 0o7777 for path in paths}
    for path, mode in modes.items():
        path.chmod(mode & 0o555)
    try:
        yield
    finally:
        for path, mode in modes.items():
            path.chmod(mode)


def test_where_the_store_cannot_be_written_nothing_is_decided(edited: CommandRunner) -> None:
    with writable_again(edited.folder), review_server(edited.folder, begun_by=AS_ANYBODY) as server:
        queue = server.queue()
        assert "can't be written" in queue["read_only"]
        assert [file["name"] for file in queue["files"]] == ["a"]
        outcome = server.decide("reject", keys=server.keys("a"))
        assert (outcome["outcome"], outcome["message"]) == ("read_only", queue["read_only"])
        assert server.end() == (0, "")
    assert edited.statuses()["2:1"] is Status.PENDING


def test_a_file_that_may_not_be_written_fails_with_what_to_do(edited: CommandRunner) -> None:
    with review_server(edited.folder, begun_by=AS_ANYBODY) as server:
        keys = server.keys("a")
        (edited.folder / "a").chmod(0o444)
        edited.folder.chmod(0o555)
        outcome = server.decide("reject", keys=keys)
        edited.folder.chmod(0o755)
        assert outcome["outcome"] in {"failed", "external-changes"}
        assert server.queue()["read_only"] == ""
    assert edited.statuses()["2:1"] is Status.PENDING


def test_reads_go_on_while_another_process_writes_and_a_decision_waits_for_it(
    edited: CommandRunner, server: ReviewServer
) -> None:
    keys = server.keys("a")
    with closing(WriterLock(str(edited.folder / ".cas" / "lock"))) as lock, ThreadPoolExecutor(1) as thread:
        with lock.held():
            other = server.browser()
            asked = {"action": "reject", "keys": keys, "on_screen": dict.fromkeys(keys, WHOLE)}
            made = thread.submit(lambda: other.post("/api/decide", json=asked).json())
            assert server.queue()["pending"] == 2
            assert server.file("a")["changes"] == 2
            assert not made.done()
        assert made.result()["outcome"] == "decided"


def test_a_lock_that_stays_held_says_what_to_do(edited: CommandRunner) -> None:
    server = ServerState(str(edited.folder), click.Context(click.Command("web")))
    outcome = failure_shape(server, StoreLocked("/ws", 30))
    assert outcome["outcome"] == "failed"
    assert outcome["message"].endswith("Try again. Nothing was decided.")


def test_a_workspace_that_is_gone_says_so(edited: CommandRunner, server: ReviewServer) -> None:
    keys = server.keys("a")
    os.rename(edited.folder / ".cas", edited.folder / "away")  # noqa: PTH104 -- a folder's name
    answer = server.client.get("/api/queue")
    assert (answer.status_code, "No workspace" in answer.json()["error"]) == (410, True)
    assert server.decide("reject", keys=keys)["outcome"] == "failed"
    os.rename(edited.folder / "away", edited.folder / ".cas")  # noqa: PTH104 -- as above
    assert server.decide("reject", keys=keys)["outcome"] == "decided"
    with Workspace.open(edited.folder) as workspace:
        assert workspace.review.pending_counts() == (0, 0)


def test_a_rejected_creation_is_answered_by_keeping_the_lines_of_others(
    runner: CommandRunner, server: ReviewServer
) -> None:
    runner.write("new", TEN)
    (runner.folder / "new").write_bytes(b"mine\n" + TEN)
    runner.done("record")
    refused = server.decide("reject", units={"1:0": "pending"})
    assert (refused["can_keep_lines"], refused["can_cascade"]) == (True, True)
    assert [(each["name"], each["words"]) for each in refused["keep_lines"]] == [("new", "Would rewrite new")]
    assert [(each["name"], each["words"]) for each in refused["cascade"]] == [("new", "Would remove new")]
    answer = {"keep_lines": True, "ticket": refused["ticket"]}
    outcome = server.decide("reject", units={"1:0": "pending"}, **answer)
    assert outcome["outcome"] == "decided"
    assert "Kept new with 1 line of edit 2, as edit 3." in outcome["notes"]
    assert runner.bytes("new") == b"mine\n"


# ---- what the names mean is what they mean to `cas`


@pytest.fixture
def two_sessions(runner: CommandRunner) -> CommandRunner:
    """Return a workspace in which turns of two sessions changed adjacent lines, by edits 2 and 3."""
    accepted(runner, "a", TEN)
    for number, (old, new) in enumerate([(b"2\n", b"2\nheading\n"), (b"heading\n", b"heading\nparagraph\n")], 1):
        turn = TurnInfo(session=f"session {number}", began=number * 1_000_000, prompt=f"prompt {number}")

        def change(call: Call, old: bytes = old, new: bytes = new) -> None:
            call.write("a", call.read("a").bytes.replace(old, new))

        runner.call(change, conversation=f"conv_{number}", turn=turn)
    return runner


@pytest.mark.parametrize("action", ["accept", "reject"])
def test_a_turn_on_the_page_leaves_the_hunks_of_other_sessions(
    two_sessions: CommandRunner, server: ReviewServer, action: str
) -> None:
    preview = two_sessions.cas(action, "--turn", "1", "--dry-run", "--json").json()
    outcome = server.decide(action, turn=1)
    assert outcome["outcome"] == {"decided": "decided", "conflict": "conflict"}[str(preview["outcome"])]
    assert two_sessions.statuses()["3:1"] is Status.PENDING


def test_a_rejected_turn_names_its_accepted_edits_first(two_sessions: CommandRunner, server: ReviewServer) -> None:
    two_sessions.done("accept", "2")
    two_sessions.done("reject", "3")
    turn = TurnInfo(session="session 1", began=1_000_000)
    two_sessions.call(lambda call: call.write("b", b"new\n"), conversation="conv_1", turn=turn)
    asked = server.decide("reject", turn=1)
    assert (asked["outcome"], asked["hunks"], asked["accepted"]) == ("confirm", ["2:1", "4:0"], ["2:1"])
    assert asked["message"] == "This rejects 2 edits, 1 of them accepted: edit 2."
    assert two_sessions.statuses()["4:0"] is Status.PENDING
    done = server.decide("reject", turn=1, ticket=asked["ticket"])
    assert done["outcome"] == "decided"
    assert two_sessions.bytes("a") == TEN


def test_what_a_person_took_out_of_a_file_is_not_counted_as_accepted(
    two_sessions: CommandRunner, server: ReviewServer
) -> None:
    accepted(two_sessions, "b", TEN)
    turns = [TurnInfo(session=f"session {number}", began=number * 1_000_000) for number in (1, 2)]
    two_sessions.call(lambda call: call.write("b", TEN + b"end\n"), conversation="conv_1", turn=turns[0])
    (two_sessions.folder / "b").unlink()
    two_sessions.done("record")
    two_sessions.call(lambda call: call.write("b", b"again\n"), conversation="conv_2", turn=turns[1])
    outcome = server.decide("accept", turn=1)
    assert outcome["message"] == "Accepted 1 change of turn 1."
    assert "its change is not in the file any more" in outcome["notes"][0]


def test_a_session_and_everything_are_decided_once_they_were_shown(
    two_sessions: CommandRunner, server: ReviewServer
) -> None:
    assert server.decide("accept", session=3)["outcome"] == "unshown"
    assert server.decide("reject", all=True)["outcome"] == "unshown"
    shown = dict.fromkeys(server.keys("a"), WHOLE)
    assert server.decide("accept", session=3, on_screen=shown)["outcome"] == "decided"
    shown = dict.fromkeys(server.keys("a"), WHOLE)
    asked = server.decide("reject", all=True, on_screen=shown)
    assert asked["message"] == "This rejects 3 edits, 2 of them accepted: edits 1 3."
    assert server.decide("reject", all=True, on_screen=shown, ticket=asked["ticket"])["outcome"] == "decided"
    assert two_sessions.statuses()["3:1"] is Status.REJECTED
