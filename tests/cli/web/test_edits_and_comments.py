"""Requests about single edits and their parts, comments and claims."""

from pathlib import Path

import pytest

from objstore import Status, TextForm, encoded
from tests.support.command_runner import CommandRunner
from tests.support.hooked_agents import ClaudeCode, recorded_project
from tests.support.review_server import ReviewServer, review_server

TEN = b"1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n"


def accepted(runner: CommandRunner, path: str, content: bytes) -> None:
    runner.done("accept", str(runner.write(path, content)))


@pytest.fixture
def edited(runner: CommandRunner) -> CommandRunner:
    """Return a workspace in which edit 2 replaced three lines, and edit 3 one of them."""
    accepted(runner, "a", TEN)
    runner.edit("a", b"2\n3\n4\n", b"two\n3\nfour\n")
    runner.edit("a", b"two\n", b"TWO\n")
    return runner


# ---- edits


def test_the_edits_behind_a_change_have_their_own_diffs(edited: CommandRunner, server: ReviewServer) -> None:
    units = ",".join(server.file("a")["all"][0]["hunks"])
    edits = server.get("/api/edits", units=units)["edits"]
    assert [(edit["seq"], edit["tool_name"], edit["status"], edit["name"]) for edit in edits] == [
        (2, "edit_file_diff", "pending", "a"),
        (3, "edit_file_diff", "pending", "a"),
    ]
    rows = [[row["k"] + row["t"] for hunk in edit["hunks"] for row in hunk["rows"]] for edit in edits]
    assert rows == [["-2", "+two"], ["-two", "+TWO"]]
    edited.done("accept", "3")
    (accepted_edit,) = server.get("/api/edits", units="3:1")["edits"]
    assert accepted_edit["hunks"][0]["status"] == "accepted"


def test_an_edit_that_creates_moves_or_deletes_says_so_in_words(runner: CommandRunner, server: ReviewServer) -> None:
    accepted(runner, "a", TEN)
    runner.move("a", "b")
    runner.delete("b")
    edits = server.get("/api/edits", units="1:0,2:0,3:0")["edits"]
    words = [hunk["words"] for edit in edits for hunk in edit["hunks"]]
    assert words == ["new file, mode 0644", "moved from a", "file deleted"]
    assert len(edits[0]["hunks"][0]["rows"]) == len(edits[2]["hunks"][0]["rows"]) == 10


def test_hunks_that_are_not_there(edited: CommandRunner, server: ReviewServer) -> None:
    assert edited.statuses()["2:1"] is Status.PENDING
    for units, status in (("", 400), ("1", 400), ("99:1", 404), ("1:7", 200)):
        assert server.client.get("/api/edits", params={"units": units}).status_code == status, units


# ---- splitting


def test_a_part_of_a_hunk_is_taken_out(runner: CommandRunner, server: ReviewServer) -> None:
    accepted(runner, "a", TEN)
    runner.edit("a", b"5\n", b"5\nfirst\n\nsecond\n")
    (edit,) = server.get("/api/edits", units="2:1")["edits"]
    splits = edit["hunks"][0]["splits"]
    assert ["".join(row["t"] for row in part) for part in splits] == ["first", "second"]
    outcome = server.post("/api/split", unit="2:1", rows=[2], status="pending")
    assert (outcome["outcome"], outcome["action"]) == ("decided", "split")
    assert "Recorded edit 3, which amends edit 2." in outcome["message"]
    assert runner.bytes("a") == TEN.replace(b"5\n", b"5\nfirst\n\n")
    assert runner.statuses()["2:1"] is Status.PENDING
    assert server.post("/api/undo", number=outcome["decision"])["outcome"] == "decided"
    assert b"second" in runner.bytes("a")


def test_a_part_is_not_taken_out_of_what_was_decided_or_changed(edited: CommandRunner, server: ReviewServer) -> None:
    refused = server.post("/api/split", unit="2:1", rows=[0], status="pending")
    assert refused["outcome"] in {"failed", "overtaken"}
    edited.done("accept", "3")
    assert server.post("/api/split", unit="3:1", rows=[0], status="pending")["outcome"] == "overtaken"
    assert server.post("/api/split", unit="3:1", rows=[9], status="accepted")["outcome"] in {"overtaken", "failed"}
    assert edited.bytes("a").startswith(b"1\nTWO\n3\nfour\n")


def test_chosen_lines_are_taken_out_and_the_rest_stays(runner: CommandRunner, server: ReviewServer) -> None:
    accepted(runner, "a", TEN)
    runner.edit("a", b"5\n6\n", b"five\nsix\nnew\n")
    (edit,) = server.get("/api/edits", units="2:1")["edits"]
    rows = [row["k"] + row["t"] for row in edit["hunks"][0]["rows"]]
    assert rows == ["-5", "-6", "+five", "+six", "+new"]
    outcome = server.post("/api/split", unit="2:1", rows=[1, 3], status="pending")
    assert outcome["outcome"] == "decided"
    assert runner.bytes("a") == TEN.replace(b"5\n6\n", b"five\n6\nnew\n")
    assert server.post("/api/undo", number=server.queue()["undo"])["outcome"] == "decided"
    assert runner.bytes("a") == TEN.replace(b"5\n6\n", b"five\nsix\nnew\n")


@pytest.mark.parametrize("form", [TextForm.CR, TextForm.UTF16_LE, TextForm.UTF16_BE_CR])
def test_chosen_lines_of_another_encoding_are_taken_out(
    runner: CommandRunner, server: ReviewServer, form: TextForm
) -> None:
    accepted(runner, "a", encoded(TEN, form))
    runner.write("a", encoded(TEN.replace(b"5\n6\n", b"five\nsix\nnew\n"), form))
    (edit,) = server.get("/api/edits", units="2:1")["edits"]
    rows = [row["k"] + row["t"] for row in edit["hunks"][0]["rows"]]
    assert rows == ["-5", "-6", "+five", "+six", "+new"]
    outcome = server.post("/api/split", unit="2:1", rows=[1, 3], status="pending")
    assert outcome["outcome"] == "decided", outcome
    assert runner.bytes("a") == encoded(TEN.replace(b"5\n6\n", b"five\n6\nnew\n"), form)


def test_rows_that_are_none_of_a_hunk_are_refused(runner: CommandRunner, server: ReviewServer) -> None:
    accepted(runner, "a", TEN)
    runner.edit("a", b"5\n", b"five\n")
    for rows in ([], [-1], ["0"], [True], 0):
        answer = server.client.post("/api/split", json={"unit": "2:1", "rows": rows, "status": "pending"})
        assert answer.status_code == 400, rows
    assert server.post("/api/split", unit="2:1", rows=[2], status="pending")["outcome"] == "overtaken"


# ---- comments


def test_a_comment_is_shown_at_its_change_and_answered_and_resolved(
    edited: CommandRunner, server: ReviewServer
) -> None:
    first, _ = server.file("a")["all"]
    made = server.post("/api/comment", keys=[first["key"]], text=" Why <b>shout</b>?\n")
    assert (made["text"], made["conversation_id"], made["state"], made["line"], made["line_count"]) == (
        "Why <b>shout</b>?",
        None,
        "open",
        1,
        1,
    )
    assert [comment["comment"] for comment in server.file("a")["all"][0]["comments"]] == [made["comment"]]
    answered = server.post("/api/comment", answers=made["comment"], text="Because.")
    assert [answer["text"] for answer in answered["answers"]] == ["Because."]
    assert server.post("/api/comment/resolve", number=made["comment"], resolved=True)["state"] == "resolved"
    assert server.queue()["comments"] == []
    assert server.post("/api/comment/resolve", number=made["comment"], resolved=False)["state"] == "open"
    assert [comment["comment"] for comment in server.queue()["comments"]] == [made["comment"]]
    with edited.workspace() as workspace:
        assert workspace.comments.get(made["comment"]).comment.text == "Why <b>shout</b>?"


def test_a_comment_on_lines_follows_them_though_the_file_changed_since_they_were_shown(
    edited: CommandRunner, server: ReviewServer
) -> None:
    shown = server.file("a")
    about = {"path": shown["path"], "seen": shown["blob_after"]}
    edited.edit("a", b"7\n", b"6a\n6b\n7\n")
    made = server.post("/api/comment", **about, lines=[8, 9], text="Why?")
    assert (made["line"], made["line_count"]) == (9, 2)
    edited.edit("a", b"8\n", b"eight\n")
    refused = server.client.post("/api/comment", json={**about, "lines": [8, 9], "text": "Why?"})
    assert refused.status_code == 404
    assert "have changed since you chose them" in refused.json()["error"]
    assert server.post("/api/comment", **about, lines=[1, 1], text="And this?")["line"] == 0


def test_a_comment_on_nothing_is_refused(edited: CommandRunner, server: ReviewServer) -> None:
    wrong: list[tuple[dict[str, object], int]] = [
        ({"text": "x"}, 400),
        ({"text": "x", "keys": []}, 400),
        ({"text": "x", "units": []}, 400),
        ({"text": "", "units": ["2:1"]}, 400),
        ({"text": "x", "units": ["2:1"], "answers": 1}, 400),
        ({"text": "x", "units": ["99:1"]}, 404),
        ({"text": "x", "answers": 99}, 404),
        ({"text": "x", "keys": ["0" * 32]}, 404),
        ({"text": "x", "path": "a", "lines": [3, 2]}, 400),
        ({"text": "x", "path": "a", "lines": [1]}, 400),
        ({"text": "x", "path": "a", "lines": [True, True]}, 400),
        ({"text": "x", "path": "../a"}, 409),
        ({"text": "x", "path": "a%00"}, 400),
        ({"text": "x", "path": "a", "lines": [900, 901]}, 404),
    ]
    for fields, status in wrong:
        answer = server.client.post("/api/comment", json=fields)
        assert (answer.status_code, list(answer.json())) == (status, ["error"]), fields
    with edited.workspace() as workspace:
        assert workspace.comments.all() == []


def test_a_comment_on_lines_records_what_is_on_disk_first(edited: CommandRunner, server: ReviewServer) -> None:
    path = edited.folder / "a"
    path.write_bytes(b"0\n" + path.read_bytes())
    made = server.post("/api/comment", path="a", lines=[1, 2], text="Mine.")
    assert (made["line"], made["line_count"]) == (0, 2)


# ---- claims


def test_a_change_without_a_known_author_is_claimed(tmp_path: Path) -> None:
    agent = ClaudeCode(recorded_project(tmp_path / "project", "a.txt"))
    other = ClaudeCode(agent.folder, "session-2")
    begun = [each.another_call(is_shell=True) for each in (agent, other)]
    for each, (begin, _) in zip((agent, other), begun, strict=True):
        each.tell(begin)
    (agent.folder / "a.txt").write_text("1\nwho?\n3\n")
    for each, (_, end) in zip((agent, other), begun, strict=True):
        each.tell(end)
    with review_server(agent.folder) as server:
        queue = server.queue()
        names = {file["document"]: file["name"] for file in queue["files"]}
        assert [names[document] for document in queue["unattributed"]] == ["a.txt"]
        (change,) = server.file("a.txt")["all"]
        seq = int(change["hunks"][0].partition(":")[0])
        assert server.client.post("/api/claim", json={"edits": [seq]}).status_code == 400
        assert server.post("/api/claim", edits=[99], session=None)["outcome"] == "failed"
        outcome = server.post("/api/claim", edits=[seq], session=None)
        assert (outcome["outcome"], outcome["action"]) == ("decided", "claim")
        assert server.queue()["unattributed"] == []
