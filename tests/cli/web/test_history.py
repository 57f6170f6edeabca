"""Requests about the history: blame, timeline, states, moments, search, and restoring."""

import os
from pathlib import Path
from typing import Any
from urllib.parse import quote_from_bytes

from objstore import Action, Call, Seq, TurnInfo, Unit
from tests.support.command_runner import CommandRunner
from tests.support.review_server import ReviewServer

HOSTILE = "<img src=x onerror=alert(1)>&\"'\x1b[31m\u202e\udcff@2"


def key(path: str) -> str:
    return quote_from_bytes(os.fsencode(path), safe="/")


def in_turn(runner: CommandRunner, path: str, content: bytes, prompt: str, began: int) -> int:
    """Record a write in a turn of its own, and return the number of the edit."""

    def change(call: Call) -> None:
        call.write(path, content)

    turn = TurnInfo(session="s", began=began, prompt=prompt, client="claude-code")
    return runner.call(change, conversation="s", turn=turn).edits[0].seq


def signs(rows: list[dict[str, Any]]) -> list[str]:
    return [row["k"] + row["t"] for row in rows]


def refused(server: ReviewServer, path: str, /, **parameters: object) -> tuple[int, str]:
    answer = server.client.get(path, params={name: str(value) for name, value in parameters.items()})
    return answer.status_code, answer.json()["error"]


# ---- blame


def test_blame_names_the_edit_and_prompt_behind_each_line(runner: CommandRunner, server: ReviewServer) -> None:
    first = in_turn(runner, "a", b"1\n2\n3\n", "write <b>numbers</b>", 1)
    second = in_turn(runner, "a", b"1\n2!\n3\n", "shout", 2)
    found = server.get("/api/blame", path="a")
    assert [(line["n"], line["t"], line["unit"]) for line in found["lines"]] == [
        (1, "1", f"{first}:0"),
        (2, "2!", f"{second}:1"),
        (3, "3", f"{first}:0"),
    ]
    assert {seq: edit["prompt"] for seq, edit in found["edits"].items()} == {"1": "write <b>numbers</b>", "2": "shout"}
    assert found["total"] == 3


def test_blame_comes_in_pages_with_the_edits_of_the_page(runner: CommandRunner, server: ReviewServer) -> None:
    runner.write("a", b"".join(b"%d\n" % n for n in range(100)))
    runner.edit("a", b"\n50\n", b"\nfifty\n")
    page = server.get("/api/blame", path="a", first=52, count=10)
    assert [line["n"] for line in page["lines"]] == list(range(52, 62))
    assert list(page["edits"]) == ["1"]
    assert (page["first"], page["total"]) == (52, 100)
    assert server.get("/api/blame", path="a", first=200)["lines"] == []


def test_lines_from_before_the_first_edit_have_no_unit(runner: CommandRunner, server: ReviewServer) -> None:
    (runner.folder / "a").write_bytes(b"1\n2\n")
    runner.edit("a", b"2", b"3")
    assert [line["unit"] for line in server.get("/api/blame", path="a")["lines"]] == [None, "1:1"]


def test_blame_of_what_has_no_lines_is_refused(runner: CommandRunner, server: ReviewServer) -> None:
    runner.write("binary", b"\0\1\2")
    assert refused(server, "/api/blame", path="binary")[0] == 404
    assert refused(server, "/api/blame", path="nothing")[0] == 404
    assert refused(server, "/api/blame", path="../outside")[0] == 404
    assert refused(server, "/api/blame", path=".cas/log")[0] == 404
    assert refused(server, "/api/blame")[0] == 400
    assert refused(server, "/api/blame", path="a", count=10**6)[0] == 400


# ---- timeline


def test_a_timeline_has_pages_from_the_newest_back(runner: CommandRunner, server: ReviewServer) -> None:
    for number in range(1, 8):
        runner.write(f"f{number % 2}", b"%d\n" % number)
    newest = server.get("/api/timeline", count=3)
    assert [point["seq"] for point in newest["points"]] == [5, 6, 7]
    assert newest["more"]
    older = server.get("/api/timeline", count=4, before=5)
    assert [point["seq"] for point in older["points"]] == [1, 2, 3, 4]
    assert not older["more"]
    own = server.get("/api/timeline", path="f1")
    assert [point["seq"] for point in own["points"]] == [1, 3, 5, 7]
    assert own["name"] == "f1"


def test_a_timeline_follows_a_file_through_a_move(runner: CommandRunner, server: ReviewServer) -> None:
    runner.write("a", b"1\n")
    runner.move("a", "b")
    points = server.get("/api/timeline", path="b")["points"]
    assert [(point["operation"], point["name"]) for point in points] == [("create", "a"), ("move", "b")]


def test_the_timeline_of_nothing_is_empty_or_refused(server: ReviewServer) -> None:
    assert server.get("/api/timeline")["points"] == []
    assert refused(server, "/api/timeline", path="a")[0] == 404
    assert refused(server, "/api/timeline", path="a", colour="red")[0] == 400


# ---- states


def test_a_state_shows_what_a_restore_would_change(runner: CommandRunner, server: ReviewServer) -> None:
    runner.write("a", b"1\n2\n")
    runner.write("a", b"1\n3\n")
    after = server.get("/api/state", path="a", seq=1, before=0)
    assert signs(after["rows"]) == [" 1", "-3", "+2"]
    assert (after["exists"], after["kept"], after["same"], after["size"]) == (True, True, False, 4)
    assert server.get("/api/state", path="a", seq=2, before=1)["rows"] == after["rows"]
    now = server.get("/api/state", path="a", seq=2)
    assert (now["same"], now["rows"]) == (True, [])
    before = server.get("/api/state", path="a", seq=1, before=1)
    assert (before["exists"], signs(before["rows"])) == (False, ["-1", "-3"])


def test_a_state_with_much_context_is_the_whole_file(runner: CommandRunner, server: ReviewServer) -> None:
    runner.write("a", b"".join(b"%d\n" % n for n in range(100)))
    runner.edit("a", b"\n50\n", b"\nfifty\n")
    few = server.get("/api/state", path="a", seq=1)
    assert few["total"] == 2 + 3 + 3 + 2
    whole = server.get("/api/state", path="a", seq=1, context=1000, first=90, count=5)
    assert whole["total"] == 101
    assert signs(whole["rows"]) == [" 89", " 90", " 91", " 92", " 93"]


def test_states_without_lines_say_why(runner: CommandRunner, server: ReviewServer) -> None:
    runner.write("a", b"\0\1")
    runner.write("a", b"\0\2")
    assert server.get("/api/state", path="a", seq=1)["binary"]
    runner.write("b", b"x" * 2_000_000)
    runner.write("b", b"y" * 2_500_000)
    large = server.get("/api/state", path="b", seq=3)
    assert (large["too_large"], large["binary"], large["rows"]) == (True, False, [])


def test_an_expired_state_is_not_kept(runner: CommandRunner, server: ReviewServer) -> None:
    runner.write("a", b"1\n")
    runner.write("a", b"2\n")
    runner.done("accept", "1", "2")
    runner.done("gc", "--older-than", "0s")
    gone = server.get("/api/state", path="a", seq=1)
    assert (gone["exists"], gone["kept"], gone["rows"], gone["blob"]) == (True, False, [], "")
    outcome = server.post("/api/restore", path="a", seq=1)
    assert outcome["outcome"] == "overtaken"
    assert "expired" in outcome["message"]


def test_a_state_of_another_file_is_refused(runner: CommandRunner, server: ReviewServer) -> None:
    runner.write("a", b"1\n")
    assert refused(server, "/api/state", path="b", seq=1) == (404, "Edit 1 did not change b.")
    assert refused(server, "/api/state", path="a", seq=2)[0] == 404
    assert refused(server, "/api/state", path="a", seq=0)[0] == 400
    assert refused(server, "/api/state", path="a", seq=1, before=2)[0] == 400


# ---- moments


def test_a_moment_names_what_differs_from_now(runner: CommandRunner, server: ReviewServer) -> None:
    runner.write("same", b"1\n")
    runner.write("gone", b"1\n")
    runner.write("moved", b"1\n")
    runner.write("changed", b"1\n")
    runner.delete("gone")
    runner.move("moved", "to")
    runner.write("changed", b"2\n")
    runner.write("new", b"1\n")
    found = server.get("/api/moment", seq=4)
    assert [(file["name"], file["what"]) for file in found["files"]] == [
        ("changed", "changed"),
        ("gone", "gone"),
        ("moved", "moved to to"),
        ("new", "new"),
    ]
    assert not found["more"]
    assert server.get("/api/moment", seq=8)["files"] == []
    assert refused(server, "/api/moment", seq=9)[0] == 404


# ---- restoring


def test_a_restore_is_tried_and_made_and_taken_back(runner: CommandRunner, server: ReviewServer) -> None:
    runner.write("a", b"1\n")
    runner.write("a", b"2\n")
    tried = server.post("/api/restore", path="a", seq=1, before=False, dry_run=True)
    assert (tried["outcome"], tried["action"], tried["decision"], tried["recorded"]) == ("decided", "restore", None, [])
    assert tried["message"] == "a would be restored."
    assert [file["name"] for file in tried["files"]] == ["a"]
    assert runner.bytes("a") == b"2\n"
    made = server.post("/api/restore", path="a", seq=1)
    assert made["message"] == "Restored a as edit 3."
    assert runner.bytes("a") == b"1\n"
    with runner.workspace() as workspace:
        assert workspace.history.edit(3).edit.origin.value == "person"
    again = server.post("/api/restore", path="a", seq=1)
    assert again["outcome"] == "nothing-to-do"
    assert server.post("/api/undo", number=made["decision"])["outcome"] == "decided"
    assert runner.bytes("a") == b"2\n"


def test_a_deleted_file_comes_back_and_a_new_one_goes(runner: CommandRunner, server: ReviewServer) -> None:
    runner.write("a", b"1\n")
    runner.delete("a")
    assert server.post("/api/restore", path="a", seq=2, before=True)["outcome"] == "decided"
    assert runner.bytes("a") == b"1\n"
    assert server.post("/api/restore", path="a", seq=1, before=True)["message"].startswith("Removed a as edit")
    assert not (runner.folder / "a").exists()


def test_a_change_from_outside_is_shown_before_a_restore(runner: CommandRunner, server: ReviewServer) -> None:
    runner.write("a", b"1\n")
    runner.write("a", b"2\n")
    (runner.folder / "a").write_bytes(b"mine\n")
    (runner.folder / "b").write_bytes(b"not about this\n")
    shown = server.post("/api/restore", path="a", seq=1)
    assert (shown["outcome"], [change["name"] for change in shown["external_changes"]]) == ("external-changes", ["a"])
    assert signs(shown["external_changes"][0]["rows"]) == ["-2", "+mine"]
    (runner.folder / "a").write_bytes(b"mine again\n")
    stale = server.post("/api/restore", path="a", seq=1, on_external="keep", ticket=shown["ticket"])
    assert stale["outcome"] == "external-changes"
    assert runner.bytes("a") == b"mine again\n"
    made = server.post("/api/restore", path="a", seq=1, on_external="keep", ticket=stale["ticket"])
    assert made["outcome"] == "decided"
    assert made["notes"] == ["The change from outside is recorded as edit 3."]
    assert runner.bytes("a") == b"1\n"
    with runner.workspace() as workspace:
        after = workspace.history.edit(3).edit.after
        assert after is not None
        assert workspace.history.blob(after.blob) == b"mine again\n"


def test_a_restore_needs_a_ticket_that_is_known(runner: CommandRunner, server: ReviewServer) -> None:
    runner.write("a", b"1\n")
    runner.write("a", b"2\n")
    answer = server.client.post("/api/restore", json={"path": "a", "seq": 1, "on_external": "keep"})
    assert answer.status_code == 400
    outcome = server.post("/api/restore", path="a", seq=1, on_external="keep", ticket="made-up")
    assert outcome["outcome"] == "overtaken"
    assert runner.bytes("a") == b"2\n"


def test_a_restore_that_is_not_well_formed_is_refused(runner: CommandRunner, server: ReviewServer) -> None:
    bodies: list[dict[str, object]] = [
        {},
        {"path": "a"},
        {"path": "a", "seq": "1"},
        {"path": "a", "seq": True},
        {"path": "a", "seq": 1, "before": 1},
        {"path": "a", "seq": 1, "dry_run": "no"},
        {"path": "a", "seq": 1, "more": 1},
        {"path": "a", "seq": 1, "on_external": "maybe"},
    ]
    runner.write("a", b"1\n")
    runner.write("a", b"2\n")
    for body in bodies:
        assert server.client.post("/api/restore", json=body).status_code == 400, body
        assert runner.bytes("a") == b"2\n"


def test_a_restore_through_a_symlink_changes_nothing(
    runner: CommandRunner, server: ReviewServer, tmp_path: Path
) -> None:
    runner.write("d/a", b"1\n")
    runner.write("d/a", b"2\n")
    (runner.folder / "d").rename(tmp_path / "elsewhere")
    (runner.folder / "d").symlink_to(tmp_path / "elsewhere")
    outcome = server.post("/api/restore", path="d/a", seq=1)
    assert outcome["outcome"] in {"external-changes", "overtaken", "failed"}
    if outcome["outcome"] == "external-changes":
        outcome = server.post("/api/restore", path="d/a", seq=1, on_external="keep", ticket=outcome["ticket"])
        assert outcome["outcome"] in {"overtaken", "failed"}
    assert (tmp_path / "elsewhere" / "a").read_bytes() == b"2\n"


def test_a_hostile_name_is_named_by_its_bytes_everywhere(runner: CommandRunner, server: ReviewServer) -> None:
    runner.write(HOSTILE, b"1\n")
    runner.write(HOSTILE, b"2\n")
    named = key(HOSTILE)
    answers = [
        server.get("/api/blame", path=named),
        server.get("/api/timeline", path=named),
        server.get("/api/state", path=named, seq=1),
        server.get("/api/moment", seq=1)["files"][0],
    ]
    assert {answer["path"] for answer in answers} == {named}
    assert all(answer["name"].isprintable() for answer in answers)
    made = server.post("/api/restore", path=named, seq=1)
    assert made["outcome"] == "decided"
    assert made["message"].isprintable()
    assert runner.bytes(HOSTILE) == b"1\n"


# ---- search


def test_a_text_is_found_where_it_came_and_went(runner: CommandRunner, server: ReviewServer) -> None:
    runner.write("a", b"x\nneedle <b>\ny\n")
    runner.write("b", b"nothing\n")
    runner.edit("a", b"x\n", b"z\n")
    runner.edit("a", b"needle <b>\n", b"")
    found = server.get("/api/search", q="needle <b>")
    assert [hit["edit"]["seq"] for hit in found["hits"]] == [4, 1]
    assert [signs(hit["rows"]) for hit in found["hits"]] == [["-needle <b>"], ["+needle <b>"]]
    assert found["hits"][0]["rows"][0]["w"] == [[0, 10]]
    assert not found["more"]
    spanning = server.get("/api/search", q="needle <b>\ny")
    assert [hit["edit"]["seq"] for hit in spanning["hits"]] == [4, 1]


def test_paths_and_prompts_are_found_whatever_their_case(runner: CommandRunner, server: ReviewServer) -> None:
    in_turn(runner, "src/Alpha.py", b"1\n", "Rename the Thing", 1)
    in_turn(runner, "src/beta.py", b"1\n", "tidy up", 2)
    found = server.get("/api/search", q="alpha", **{"in": "path"})
    assert [hit["edit"]["name"] for hit in found["hits"]] == ["src/Alpha.py"]
    found = server.get("/api/search", q="the thing", **{"in": "prompt"})
    assert [hit["edit"]["seq"] for hit in found["hits"]] == [1]
    assert server.get("/api/search", q="alpha", **{"in": "prompt"})["hits"] == []


def test_a_search_goes_on_where_the_last_one_ended(runner: CommandRunner, server: ReviewServer) -> None:
    def change(call: Call) -> None:
        for number in range(120):
            call.write(f"f{number}", b"needle\n")

    runner.call(change)
    found: list[int] = []
    before = 0
    pages = 0
    while True:
        page = server.get("/api/search", q="needle", before=before)
        assert len(page["hits"]) <= 50
        found += [hit["edit"]["seq"] for hit in page["hits"]]
        pages, before = pages + 1, page["before"]
        if not page["more"]:
            break
    assert found == list(range(120, 0, -1))
    assert pages >= 3


def test_a_search_for_nothing_is_refused(server: ReviewServer) -> None:
    assert refused(server, "/api/search", q="")[0] == 400
    assert refused(server, "/api/search", q="a", **{"in": "elsewhere"})[0] == 400
    assert refused(server, "/api/search", q="a" * 1001)[0] == 400


def test_what_was_decided_is_said_of_each_edit(runner: CommandRunner, server: ReviewServer) -> None:
    runner.write("a", b"1\n")
    with runner.workspace() as workspace:
        workspace.decide(Action.REJECT, [Unit(Seq(1), 0)], reason="not <needed>")
    (point,) = server.get("/api/timeline", path="a")["points"]
    assert (point["status"], point["reason"]) == ("rejected", "not <needed>")
