"""What was decided on another store is said wherever its changes are shown, until it is carried out and pulled."""

from pathlib import Path

import pytest

from cli.app.invocation import reviewer
from objstore import Action, Seq, Status, Unit, Workspace
from objstore.upkeep.remote.bucket import open_bucket
from objstore.upkeep.remote.decisions import RemoteDecision, append, new_nonce, settle
from tests.support.command_runner import CommandRunner, on_terminal
from tests.support.crash_scenarios import write
from tests.support.faulty_disk import UnsyncedDisk
from tests.support.shared_stores import carried, pull, pushed_desk


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    return pushed_desk(tmp_path, {"b.txt": b"new\n"})


@pytest.fixture
def lap(desk: Path, runner: CommandRunner) -> CommandRunner:
    """Return a workspace of ours that has pulled desk's changes, and asks for the rejection of one."""
    pull(runner.folder, desk)
    runner.done("reject", "desk/1:1", "-m", "Not in capitals.")
    return runner


AWAITED = "not carried out yet: Not in capitals."


@pytest.mark.parametrize(
    "words",
    [
        ("log", "desk/"),
        ("log", "desk/a.txt"),
        ("log", "-p", "desk/"),
        ("show", "desk/1"),
        ("show", "desk/1:1"),
        ("diff", "desk/"),
    ],
)
def test_decision_that_is_not_carried_out_is_said_with_the_change(lap: CommandRunner, words: tuple[str, ...]) -> None:
    said = lap.done(*words).text
    assert said.count(f"rejected by {reviewer()}, {AWAITED}") == 1
    assert "1:1" in said


def test_edit_that_is_decided_whole_is_said_to_be_without_names(lap: CommandRunner) -> None:
    lap.done("accept", "desk/2")
    (line,) = [line for line in lap.done("log", "desk/").text.splitlines() if "accepted by" in line]
    assert line.strip() == f"accepted by {reviewer()}, not carried out yet"


def test_answer_names_few_hunks_and_only_those_that_change_anything(desk: Path, runner: CommandRunner) -> None:
    with Workspace.open(desk, UnsyncedDisk()) as workspace:
        write(workspace, "c.txt", b"".join(b"%d\n\n\n\n\n" % number for number in range(20)))
        write(workspace, "c.txt", b"".join(b"%d.\n\n\n\n\n" % number for number in range(20)))
        workspace.remotes.push("team")
    pull(runner.folder, desk)
    said = runner.done("reject", "desk/4").text
    assert f"reject {', '.join(f'desk/4:{hunk}' for hunk in range(1, 9))} and 12 more hunks." in said
    again = runner.cas("accept", "desk/4")
    assert (again.status, "desk/4:1 is decided" in again.said) == (1, True)
    assert "reject of [4:0 4:1 4:2 4:3 4:4 4:5 4:6 4:7 and 13 more]" in CommandRunner(desk).done("pull").text


def test_sizes_say_how_many_changes_are_decided(lap: CommandRunner) -> None:
    assert "1 change decided, not carried out yet" in lap.done("diff", "--stat", "desk/").text


def test_json_has_the_decision(lap: CommandRunner) -> None:
    first, second = lap.done("log", "--json", "--reverse", "desk/").lines()
    (awaited,) = first["awaited"]
    assert (awaited["hunks"], awaited["action"], awaited["reason"]) == (["1:1"], "reject", "Not in capitals.")
    assert (awaited["result"], second["awaited"]) == ("open", [])
    (shown,) = lap.done("show", "--json", "desk/1").lines()
    assert shown["edits"][0]["awaited"] == [awaited]
    net = {each["file_path"].rpartition("/")[2]: each for each in lap.done("diff", "--json", "desk/").lines()}
    assert [change["awaited"] for change in net["a.txt"]["changes"]] == [[awaited], []]
    assert [change["awaited"] for change in net["b.txt"]["changes"]] == [[]]


def test_list_of_remotes_does_not_count_what_is_decided(lap: CommandRunner) -> None:
    assert "2 edits, 2 undecided" in lap.done("remote").text  # one hunk of the first is left
    lap.done("accept", "desk/1:2")
    assert "2 edits, 1 undecided" in lap.done("remote").text


def listed(lap: CommandRunner, *words: str) -> list[int]:
    return [edit["seq"] for edit in lap.done("log", "--json", "desk/", *words).lines()]


def test_list_of_a_status_counts_what_is_decided_and_not_carried_out(lap: CommandRunner, desk: Path) -> None:
    assert listed(lap, "--status", "pending") == [2, 1]  # one hunk of the first is left
    lap.done("accept", "desk/1:2")
    lap.done("reject", "desk/2")
    by_status = {status: listed(lap, "--status", status) for status in ("pending", "accepted", "rejected")}
    assert by_status == {"pending": [], "accepted": [1], "rejected": [2]}
    assert listed(lap, "--status", "rejected", "-n", "1") == [2]
    carried(desk)
    lap.done("pull")
    assert {status: listed(lap, "--status", status) for status in by_status} == by_status


def test_decision_on_an_edit_that_does_not_exist_hides_nothing(lap: CommandRunner, desk: Path) -> None:
    lane = lap.done("remote", "--json").lines()[0]["stores"][0]["lane"]
    units = {Unit(Seq(seq), 1): Status.PENDING for seq in (3, 1 << 40, (1 << 64) - 1)}
    liars = RemoteDecision(lane=lane, action=Action.REJECT, units=units, who="liar", nonce=new_nonce())
    append(open_bucket(desk.with_name("bucket").as_uri()), liars, settle([]))
    lap.done("accept", "desk/2")  # reads the log
    assert "2 edits, 1 undecided" in lap.done("remote").text
    assert listed(lap, "--status", "pending") == [1]


def test_what_was_carried_out_is_said_until_it_is_pulled(lap: CommandRunner, desk: Path) -> None:
    assert carried(desk) == [("carried", "Not in capitals.")]
    lap.done("reject", "desk/2")  # reads the log, and fetches nothing
    assert "carried out since the last pull: Not in capitals." in lap.done("log", "desk/").text
    lap.done("pull")
    said = lap.done("log", "desk/").text
    assert "since the last pull" not in said
    assert "reason: Not in capitals." in said


def test_own_edits_have_none(lap: CommandRunner) -> None:
    lap.write("own.txt", b"own\n")
    (edit,) = lap.done("log", "--json").lines()
    assert edit["awaited"] == []


def test_decision_is_taken_back_until_it_is_carried_out(lap: CommandRunner, desk: Path) -> None:
    assert "Would take back decision 1." in lap.done("undo", "desk/", "--dry-run").text
    assert "Took back decision 1." in lap.done("undo", "desk/").text
    assert f"rejected by {reviewer()}, taken back by {reviewer()}, not answered yet" in lap.done("log", "desk/").text
    assert "No decision of yours waits to be carried out by desk." in lap.cas("undo", "desk/").said
    assert carried(desk) == [("refused", "Not in capitals.")]
    lap.done("pull")
    assert "Decision 1 does not wait" in lap.cas("undo", "desk/", "--decision", "1").said
    assert "asks desk to accept desk/1:1" in lap.done("accept", "desk/1:1").text
    assert lap.cas("undo", "stranger/").status == lap.cas("undo", "1").status == 2


def test_name_without_a_slash_takes_back_no_decision_on_another_store(lap: CommandRunner) -> None:
    ran = lap.cas("undo", "desk")
    assert (ran.status, "`cas undo desk/`, with a slash, takes back" in ran.said) == (2, True), ran.said
    assert "Would take back decision 1." in lap.done("undo", "desk/", "--dry-run").text


def test_decision_that_changes_nothing_there_is_an_answer_in_json_too(lap: CommandRunner) -> None:
    ran = lap.done("reopen", "desk/1", "--json")
    assert ran.json() == {"store": "desk", "action": "reset", "units": [], "entry": None, "dry_run": False}
    assert lap.done("reopen", "desk/1").text == "Nothing to do: already pending.\n"


def test_more_than_a_screenful_of_another_store_is_rejected_after_a_question(desk: Path, runner: CommandRunner) -> None:
    with Workspace.open(desk, UnsyncedDisk()) as workspace:
        for number in range(30):
            write(workspace, f"{number}.txt", b"new\n")
        workspace.remotes.push("team")
    pull(runner.folder, desk)
    status, said = runner.typed_at("[y/N]", lambda: "n\n", "reject", "desk/", "--all")
    assert (status, "Reject 33 changes in 32 files?" in said) == (130, True), said
    assert not runner.done("log", "desk/", "--json").lines()[0]["awaited"]
    status, said = runner.typed("reject", "desk/", "--all", "--yes")
    assert (status, "Decision 1 asks desk to reject" in said) == (0, True), said


def test_comment_waits_until_the_other_store_takes_it_over(lap: CommandRunner, desk: Path) -> None:
    there = CommandRunner(desk)
    assert "Comment 2 is for desk" in lap.done("comment", "desk/1:1", "-m", "Why?").text
    lap.done("comment", "desk/a.txt:21", "-m", "And here?")
    waits = f"comment not taken over yet  1:1  {reviewer()}\n    Why?\n"
    for words in (("comment", "desk/"), ("show", "desk/1"), ("show", "desk/1:1")):
        assert lap.done(*words).text.count(waits) == 1
    assert "#     Why?\n" in lap.done("diff", "desk/").text
    assert "Why?" not in lap.done("show", "desk/1:2").text
    (first, second) = lap.done("comment", "desk/", "--json").lines()
    assert (first["units"], second["units"], second["result"]) == (["1:1"], ["1:2"], "open")
    assert lap.done("show", "desk/1", "--json").json()["edits"][0]["awaited_comments"] == [first, second]
    assert lap.done("show", "desk/1:2", "--json").json()["edits"][0]["awaited_comments"] == [second]
    net = {file["file_path"].rpartition("/")[2]: file for file in lap.done("diff", "desk/", "--json").lines()}
    assert [change["awaited_comments"] for change in net["a.txt"]["changes"]] == [[first], [second]]
    there.done("pull")
    lap.done("reject", "desk/2")  # reads the log, and fetches nothing
    assert "comment taken over since the last pull  1:1" in lap.done("show", "desk/1").text
    assert [view["text"] for view in there.done("comment", "--json").lines()] == ["Why?", "And here?"]
    lap.done("pull")
    listed_now = lap.done("comment", "desk/", "--json").lines()
    assert [(view["text"], view["hunks"]) for view in listed_now] == [("Why?", ["1:1"]), ("And here?", ["1:2"])]
    for typed in ("desk/ --reply 1", "--reply desk/1", "--resolve desk/1", "--reopen desk/1"):
        refused = lap.cas("comment", *typed.split())
        assert refused.status == 2
        assert "Comments are answered and resolved by desk (team)" in refused.said
    assert lap.cas("comment", "desk/9", "-m", "No").status == 1


def test_pull_says_what_it_carried_out_before_a_push_failed(lap: CommandRunner, desk: Path) -> None:
    there = CommandRunner(desk)
    (objects,) = desk.with_name("bucket").glob("stores/*/objects")
    objects.rename(objects.with_name("away"))
    objects.touch()  # nothing can be put below it
    failed = there.cas("pull")
    assert failed.status == 1
    assert "Carried out: reject of [1:1]" in failed.text
    assert b"line 3\n" in there.bytes("a.txt")
    objects.unlink()
    objects.with_name("away").rename(objects)
    assert "Carried out: reject of [1:1]" in there.done("pull").text
    assert "Carried out" not in there.done("pull").text
    lap.done("pull")


def test_resolved_comments_of_another_store_are_listed_on_demand(lap: CommandRunner, desk: Path) -> None:
    there = CommandRunner(desk)
    there.done("comment", "1:1", "-m", "Done?")
    there.done("comment", "--resolve", "1")
    there.done("push")
    lap.done("pull")
    assert lap.done("comment", "desk/").text == ""
    assert "Done?" in lap.done("comment", "desk/", "--all").text


def test_comment_from_an_editor_that_cannot_be_sent_is_shown(lap: CommandRunner, desk: Path, tmp_path: Path) -> None:
    editor, bucket = tmp_path / "editor", desk.with_name("bucket")
    editor.write_text('#!/bin/sh\n{ printf "one\\n\\033two\\n"; cat "$1"; } > "$1.new" && mv "$1.new" "$1"\n')
    editor.chmod(0o755)
    bucket.rename(desk.with_name("away"))
    bucket.write_bytes(b"")
    status, said = on_terminal(["comment", "desk/1:1"], folder=lap.folder, settings={"VISUAL": str(editor)})
    assert status == 1
    assert "What you typed:\n    one\n    \\x1btwo\n" in said


def test_reason_for_what_is_already_rejected_elsewhere_is_said_to_be_lost(lap: CommandRunner, desk: Path) -> None:
    CommandRunner(desk).done("pull")
    lap.done("pull")
    said = lap.done("reject", "desk/1:1", "-m", "Too loud.").text
    assert said == (
        "Nothing to do: already rejected.\nThe reason was not recorded. "
        "To record it, `cas reopen` them first, then reject them with the reason.\n"
    )
