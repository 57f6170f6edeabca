"""The server's answers about the queue and about files: counts, rows, words, hostile names."""

import os
import shutil
from typing import Any

from objstore import Call, Operation, Status, TurnInfo
from tests.support.command_runner import CommandRunner
from tests.support.damaged_stores import lose
from tests.support.review_server import WHOLE, ReviewServer

TEN = b"1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n"
HOSTILE = "<img src=x onerror=alert(1)>\x1b[31m\u202e\n.md"


def accepted(runner: CommandRunner, path: str, content: bytes) -> None:
    runner.done("accept", str(runner.write(path, content)))


def turn(session: str, number: int, prompt: str) -> TurnInfo:
    return TurnInfo(session=session, began=number * 1_000_000, prompt=prompt, client="claude-code", model="m")


def drawn(rows: list[dict[str, Any]]) -> str:
    """Return rows as a diff."""
    return "".join(f"{row['k']}{row.get('hidden', row['t'])}\n" for row in rows)


# ---- the queue


def test_the_queue_has_turns_with_their_prompts_and_files(runner: CommandRunner, server: ReviewServer) -> None:
    accepted(runner, "a", TEN)

    def write(path: str, content: bytes) -> Any:  # noqa: ANN401 -- a change
        return lambda call: call.write(path, content)

    one, two = turn("one", 1, "Spell two\nand <b>five</b>"), turn("two", 2, "Spell nine")
    runner.call(write("a", TEN.replace(b"2\n", b"two\n")), conversation="one", turn=one)
    runner.call(write("b", b"new\n"), conversation="one", turn=one)
    both = TEN.replace(b"2\n", b"two\n").replace(b"9\n", b"nine\n")
    runner.call(write("a", both), conversation="two", turn=two)
    runner.write("c", b"without a turn\n")
    queue = server.queue()
    assert (queue["changes"], queue["unseen"], queue["pending"], queue["accepted"]) == (4, 4, 4, 1)
    assert [(each["turn"], each["prompt"], each["timestamp"], each["running"]) for each in queue["turns"]] == [
        (1, "Spell two\nand <b>five</b>", "1970-01-01T00:00:01.000000Z", False),
        (2, "Spell nine", "1970-01-01T00:00:02.000000Z", False),
        (0, "", queue["turns"][2]["timestamp"], False),
    ]
    names = {file["document"]: file["name"] for file in queue["files"]}
    assert [
        [
            (names[file["document"]], file["lines_added"], file["lines_removed"], file["changes"])
            for file in each["files"]
        ]
        for each in queue["turns"]
    ] == [[("a", 1, 1, 1), ("b", 1, 0, 1)], [("a", 1, 1, 1)], [("c", 1, 0, 1)]]
    assert [(file["name"], file["operation"], file["turns"]) for file in queue["files"]] == [
        ("a", "edit", [1, 2]),
        ("b", "create", [1]),
        ("c", "create", []),
    ]
    assert [(each["name"], len(each["sessions"])) for each in queue["collisions"]] == [("a", 2)]
    assert {each["client"] for each in queue["sessions"]} == {"claude-code", ""}


def test_the_queue_leaves_out_what_cannot_be_read_and_says_so(runner: CommandRunner, server: ReviewServer) -> None:
    accepted(runner, "a", TEN)
    runner.write("a", b"\n".join(b"line %d of many" % number for number in range(900)))
    runner.write("b", b"fine\n")
    with runner.workspace() as workspace:
        edit = workspace.history.edit(2).edit
    assert edit.after is not None
    lose(runner.folder, edit.after.blob)
    queue = server.queue()
    assert [file["name"] for file in queue["files"]] == ["b"]
    assert len(queue["unreadable"]) >= 1
    answer = server.client.get("/api/file", params={"document": 1})
    assert answer.status_code == 503
    assert "Run `cas fsck`" in answer.json()["error"]


def test_a_file_whose_bytes_are_lost_meanwhile_is_refused_with_the_command_for_damage(
    runner: CommandRunner, server: ReviewServer
) -> None:
    accepted(runner, "a", TEN)
    runner.write("a", b"\n".join(b"line %d of many" % number for number in range(900)))
    assert server.keys("a")
    with runner.workspace() as workspace:
        edit = workspace.history.edit(2).edit
    assert edit.after is not None
    lose(runner.folder, edit.after.blob)
    answer = server.client.get("/api/file", params={"document": 1})
    assert answer.status_code == 503
    assert "Run `cas fsck`" in answer.json()["error"]


def test_changes_are_unseen_until_they_are_seen(runner: CommandRunner, server: ReviewServer) -> None:
    accepted(runner, "a", TEN)
    runner.edit("a", b"2\n", b"two\n")
    runner.edit("a", b"9\n", b"nine\n")
    seen, _ = server.keys("a")
    server.post("/api/seen", keys=[seen], on_screen={seen: WHOLE})
    assert server.queue()["unseen"] == 1
    assert [change["seen"] for change in server.file("a")["all"]] == [True, False]
    runner.edit("a", b"two\n", b"TWO\n")
    assert server.queue()["unseen"] == 2


# ---- rows


def test_rows_show_changes_with_context_and_gaps(runner: CommandRunner, server: ReviewServer) -> None:
    accepted(runner, "a", b"".join(b"%d\n" % number for number in range(1, 31)))
    runner.edit("a", b"\n2\n", b"\ntwo\n")
    runner.edit("a", b"\n20\n", b"\n")
    shown = server.file("a", context=2)
    assert drawn(shown["rows"]) == " 1\n-2\n+two\n 3\n 4\n~13\n 18\n 19\n-20\n 21\n 22\n~8\n"
    assert (shown["total"], shown["longest"]) == (12, 3)
    assert [(row.get("o"), row.get("n"), row.get("c")) for row in shown["rows"][:6]] == [
        (1, 1, None),
        (2, None, 0),
        (None, 2, 0),
        (3, 3, None),
        (4, 4, None),
        (5, 5, None),
    ]
    assert [(change["row"], change["rows"]) for change in shown["all"]] == [(1, 2), (8, 1)]
    assert server.file("a", context=2, first=5, count=3)["rows"] == shown["rows"][5:8]
    gap = server.get("/api/lines", document=shown["document"], first=5, count=13)["rows"]
    assert [(row["t"], row["o"], row["n"]) for row in gap] == [(str(at), at, at) for at in range(5, 18)]


def test_the_changes_of_one_turn_leave_those_of_others_in_the_gaps(runner: CommandRunner, server: ReviewServer) -> None:
    accepted(runner, "a", TEN)
    for number, (old, new) in enumerate([(b"2\n", b"two\nand\nmore\n"), (b"4\n", b"four\n"), (b"9\n", b"")], 1):

        def change(call: Call, old: bytes = old, new: bytes = new) -> None:
            call.write("a", call.read("a").bytes.replace(old, new))

        runner.call(change, conversation="one", turn=turn("one", number, "?"))
    shown = server.file("a", turn=2)
    assert drawn(shown["rows"]) == " 1\n~3\n 3\n-4\n+four\n 5\n 6\n 7\n~2\n".replace(" 1\n~3\n", "~4\n")
    assert [change["turns"] for change in shown["all"]] == [[2]]
    assert server.changed(server.decide("reject", keys=[shown["all"][0]["key"]])) == ["3:1"]


def test_words_that_differ_are_counted_as_a_browser_counts(runner: CommandRunner, server: ReviewServer) -> None:
    accepted(runner, "a", "\U0001f40d the snake sleeps here\n".encode())
    runner.write("a", "\U0001f40d the snake wakes here\n".encode())
    removed, inserted = server.file("a")["rows"]
    assert (removed["w"], inserted["w"]) == ([[13, 19]], [[13, 18]])


def test_rows_say_how_lines_end_and_what_is_cut_off(runner: CommandRunner, server: ReviewServer) -> None:
    runner.write("a", b"dos\r\n\ttab\x1b[2J\xff\n" + b"x" * 2100 + b"\nlast")
    shown = server.file("a")
    assert [(row["t"][:20], row.get("end"), row.get("cut")) for row in shown["rows"]] == [
        ("dos", "CRLF", None),
        ("\ttab\\x1b[2J\\xff", None, None),
        ("x" * 20, None, 100),
        ("last", "no newline", None),
    ]
    assert shown["longest"] == 2000
    line = server.get("/api/line", document=shown["document"], row=2, first=2000, count=60)
    assert line == {"t": "x" * 60, "cut": 40}
    gone = server.client.get("/api/line", params={"document": shown["document"], "row": 4})
    assert gone.status_code == 404


def test_whitespace_alone_is_marked(runner: CommandRunner, server: ReviewServer) -> None:
    accepted(runner, "a", TEN)
    runner.edit("a", b"2\n", b"  2\n")
    runner.edit("a", b"9\n", b"nine\n")
    assert [change["whitespace_only"] for change in server.file("a")["all"]] == [True, False]


def test_facts_that_no_row_shows_are_in_words(runner: CommandRunner, server: ReviewServer) -> None:
    accepted(runner, "a", TEN)
    runner.move("a", "b")
    runner.call(lambda call: call.write("b", TEN, mode=0o755))
    accepted(runner, "bin.png", b"\0one")
    runner.write("bin.png", b"\0three")
    shown = server.file("b")
    assert [(change["kind"], change["words"]) for change in shown["all"]] == [
        ("move", "moved from a"),
        ("mode", "mode 0644 → 0755"),
    ]
    assert (shown["rows"], shown["total"], shown["name_before"]) == ([], 0, "a")
    binary = server.file("bin.png")
    assert (binary["kind"], binary["all"][0]["words"]) == ("image", "4 bytes → 6 bytes")
    assert len(binary["blob_after"]) == 64


def test_a_file_with_nothing_pending_is_not_there(runner: CommandRunner, server: ReviewServer) -> None:
    runner.write("a", TEN)
    document = server.file("a")["document"]
    runner.done("accept", "--all")
    answer = server.client.get("/api/file", params={"document": document})
    assert answer.status_code == 404
    assert answer.json() == {"error": "Nothing is pending in this file any more."}


def test_a_large_file_comes_in_pages(runner: CommandRunner, server: ReviewServer) -> None:
    runner.write("a", b"".join(b"line %d\n" % number for number in range(50_000)))
    shown = server.file("a")
    assert (shown["total"], len(shown["rows"])) == (50_000, 2_000)
    page = server.file("a", first=48_000)
    assert [page["rows"][0]["n"], page["rows"][-1]["n"], len(page["rows"])] == [48_001, 50_000, 2_000]
    assert server.file("a", first=60_000)["rows"] == []


def test_many_alike_lines_are_answered_without_comparing_all_words(runner: CommandRunner, server: ReviewServer) -> None:
    old = b"".join(b"ab" * 900 + b"%d\n" % number for number in range(49))
    accepted(runner, "a", old)
    runner.write("a", old.replace(b"ab", b"ba") + b"more\n")
    shown = server.file("a")
    assert shown["total"] == 99
    assert all("w" not in row for row in shown["rows"])


# ---- hostile names and texts


def test_a_hostile_name_is_shown_escaped_and_found_by_its_key(runner: CommandRunner, server: ReviewServer) -> None:
    for name in (HOSTILE, os.fsdecode(b"\xff\xfe name"), "a&b'\"", "%2e%2e", "quo\\te"):
        runner.write(name, b"1\n")
        (file,) = server.queue()["files"]
        assert file["path"].isascii()
        assert all(character.isprintable() for character in file["name"])
        shown = server.get("/api/file", document=file["document"])
        assert shown["name"] == file["name"]
        comment = server.post("/api/comment", path=shown["path"], lines=[1, 1], text="Here?")
        assert (comment["path"], comment["line"], comment["line_count"]) == (file["path"], 0, 1)
        assert server.decide("reject", keys=[shown["all"][0]["key"]])["outcome"] == "decided"
        assert not (runner.folder / name).exists()


def test_texts_full_of_markup_and_escapes_stay_text(runner: CommandRunner, server: ReviewServer) -> None:
    script = "<script>alert(1)</script>\x1b]0;x\x07\u202e"
    runner.call(
        lambda call: call.write("a.md", script.encode() + b"\n"),
        turn=turn("<b>s</b>", 1, script),
        tool="<i>tool\x1b</i>",
    )
    queue = server.queue()
    shown = server.file("a.md")
    (edit,) = server.get("/api/edits", units="1:0")["edits"]
    escaped = "<script>alert(1)</script>\\x1b]0;x\\a\\u202e"
    assert queue["turns"][0]["prompt"] == escaped
    assert shown["rows"][0]["t"] == escaped
    assert (edit["prompt"], edit["tool_name"]) == (escaped, "<i>tool\\x1b</i>")
    server.decide("reject", keys=[shown["all"][0]["key"]], reason=script)
    (edit,) = server.get("/api/edits", units="1:0")["edits"]
    assert edit["reason"] == escaped


def test_each_line_of_a_change_has_its_author_and_prompt(runner: CommandRunner, server: ReviewServer) -> None:
    accepted(runner, "a", TEN)

    def wrote(number: int, old: bytes, new: bytes) -> None:
        turn = TurnInfo(session=f"s{number}", began=number * 1_000_000, prompt=f"prompt {number}", model="m")

        def change(call: Call) -> None:
            call.write("a", call.read("a").bytes.replace(old, new), operation=Operation.EDIT)

        runner.call(change, conversation=f"c{number}", turn=turn)

    wrote(1, b"5\n", b"five\n5b\n")
    wrote(2, b"5b\n6\n", b"5B\n")
    shown = server.file("a")
    [change] = shown["all"]
    rows = [row["t"] for row in shown["rows"] if row.get("c") == 0]
    assert rows == ["5", "6", "five", "5B"]
    by_prompt = {shown["authors"][each["author"]]["prompt"]: each for each in change["writers"]}
    assert by_prompt["prompt 1"]["rows"] == [[0, 1], [2, 3]]
    assert by_prompt["prompt 2"]["rows"] == [[1, 2], [3, 4]]
    assert [each["edits"] for each in by_prompt.values()] == [[2], [3]]
    assert (change["before"], sorted(shown["edits"])) == ([3, 2, 1], ["1", "2", "3"])
    author = shown["authors"][0]
    assert (author["turn"], author["model"], author["origin"]) == (1, "m", "agent")


def test_what_a_rejection_takes_along_is_known_before(runner: CommandRunner, server: ReviewServer) -> None:
    accepted(runner, "a", TEN)
    accepted(runner, "b", TEN)
    runner.edit("b", b"5\n", b"five\n")
    runner.move("a", "c")
    runner.write("a", b"another\n")
    plain, moved = server.file("b"), server.file("c")
    found = server.get("/api/rejection", document=plain["document"], key=plain["all"][0]["key"])
    assert (found["words"], found["needed_by"]) == ("Nothing else goes along.", [])
    found = server.get("/api/rejection", document=moved["document"], key=moved["all"][0]["key"])
    assert (found["words"], found["needed_by"]) == ("1 edit would have to go too: built on this.", ["5:0"])
    assert [edit["seq"] for edit in found["edits"]] == [5]
    asked = {"document": plain["document"], "key": moved["all"][0]["key"]}
    assert server.client.get("/api/rejection", params=asked).status_code == 404
    assert set(runner.statuses().values()) == {Status.ACCEPTED, Status.PENDING}


def test_a_file_is_read_from_the_store_that_is_there_now(runner: CommandRunner, server: ReviewServer) -> None:
    """Requests that only read find the store open already, which may be another one's, or gone, by then."""
    runner.write("a", b"1\n")
    (file,) = server.queue()["files"]
    address = {"document": file["document"]}
    first = server.get("/api/file", **address)
    store, aside = runner.folder / ".cas", runner.folder / "aside"
    store.rename(aside)
    assert server.client.get("/api/file", params=address).status_code == 410
    runner.done("init")
    assert server.client.get("/api/file", params=address).status_code == 404
    shutil.rmtree(store)
    aside.rename(store)
    assert server.get("/api/file", **address)["rows"] == first["rows"]
