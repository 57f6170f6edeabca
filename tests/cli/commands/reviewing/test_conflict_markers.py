"""Conflict markers from the command line: written with `--markers`, shown by status and show, and removed again."""

import pytest

from tests.support.command_runner import CommandRunner


def conflicting_edits(runner: CommandRunner) -> None:
    runner.write("a", b"p\nx\nq\n")
    runner.edit("a", b"x", b"A")
    runner.edit("a", b"A", b"B", conversation="conv_two")


TEXT_WITH_MARKERS = b"""\
p
<<<<<<< without edit 2 (conv_one)
x
||||||| edit 2 (conv_one)
A
=======
B
>>>>>>> edit 3 (conv_two)
q
"""


@pytest.fixture
def runner_with_markers(runner: CommandRunner) -> CommandRunner:
    conflicting_edits(runner)
    runner.done("reject", "--markers", "2")
    return runner


def test_a_reject_with_markers_names_the_hunks_set_aside(runner: CommandRunner) -> None:
    conflicting_edits(runner)
    dry = runner.done("reject", "--markers", "2", "--dry-run").text
    assert "Would set aside edit 3: between conflict markers, at a place in a.\n" in dry
    assert "+<<<<<<< without edit 2 (conv_one)\n" in dry
    assert runner.done("reject", "--markers", "2").text == (
        "Rejected edit 2.\nSet aside edit 3: between conflict markers, at a place in a (edit 4).\nRewrote a\n"
    )
    assert runner.bytes("a") == TEXT_WITH_MARKERS


def test_what_was_set_aside_is_not_called_an_acceptance_that_goes(runner: CommandRunner) -> None:
    conflicting_edits(runner)
    runner.done("accept", "3")
    assert runner.done("reject", "--markers", "2").text == (
        "Rejected edit 2.\nSet aside edit 3: between conflict markers, at a place in a (edit 4).\nRewrote a\n"
    )


def test_status_log_and_show_report_conflict_markers(runner_with_markers: CommandRunner) -> None:
    assert (
        "\nconflict markers (resolve them in the file, or decide again):\n  a:2  edit 4: 2 against 3\n"
        in runner_with_markers.done("status").text
    )
    assert "(markers of decision 1)" in runner_with_markers.done("log", "-n", "1").text
    where = "conflict markers at a:2 (edit 4)\n"
    assert f"markers       of decision 1, which set aside 3:1: {where}" in runner_with_markers.done("show", "4").text
    for edit in ("2", "3"):
        assert f"between       {where}" in runner_with_markers.done("show", edit).text
    assert "between" not in runner_with_markers.done("show", "1").text
    (runner_with_markers.folder / "a").write_bytes(b"p\nC\nq\n")
    assert "conflict markers" not in runner_with_markers.done("status").text
    assert "which set aside 3:1: resolved\n" in runner_with_markers.done("show", "4").text


def test_json_of_markers(runner: CommandRunner) -> None:
    conflicting_edits(runner)
    path = str(runner.folder / "a")
    planned = runner.done("reject", "--markers", "2", "--json", "--dry-run").json()
    assert (planned["markers"][0]["edit"], planned["decision"]) == (None, None)  # the edit has no number yet
    document = runner.done("reject", "--markers", "2", "--json").json()
    assert document["markers"] == [{"edit": 4, "file_path": path, "regions": 1, "aside": ["3:1"]}]
    assert document["changed"] == [
        {"name": "2:1", "status": "rejected", "cascaded": False},
        {"name": "3:1", "status": "rejected", "cascaded": True},
    ]
    expected = {"file_path": path, "edit": 4, "decision": 1, "lines": [1], "decided": ["2:1"], "aside": ["3:1"]}
    assert runner.done("status", "--json").json()["markers"] == [expected]
    (shown,) = runner.done("show", "3", "--json").json()["edits"]
    assert shown["markers"] == [expected]
    (shown,) = runner.done("show", "4", "--json").json()["edits"]
    assert shown["marks"] == {"decision": 1, "against": ["2:1"], "aside": ["3:1"]}
    document = runner.done("accept", "2", "--json").json()
    assert (document["unmarked"], runner.bytes("a")) == ([4], b"p\nB\nq\n")


def test_another_decision_removes_the_markers_and_says_so(runner_with_markers: CommandRunner) -> None:
    assert runner_with_markers.done("accept", "2").text == (
        "Accepted edit 2.\n"
        "Removed the conflict markers of edit 4; what was set aside for them is restored.\n"
        "Rewrote a\n"
    )
    assert runner_with_markers.done("undo").text == "Undid the acceptance of edits 2 3 4.\nRewrote a\n"
    assert runner_with_markers.bytes("a") == TEXT_WITH_MARKERS
    assert "Removed the conflict markers of edit 4" in runner_with_markers.done("undo").text
    assert runner_with_markers.bytes("a") == b"p\nB\nq\n"


def test_undo_and_redo_name_edits_that_were_decided_again(runner_with_markers: CommandRunner) -> None:
    runner_with_markers.done("reject", "2", "3", "-m", "neither")
    assert runner_with_markers.done("undo").text == "Undid the rejection of edits 2 3 4.\nRewrote a\n"
    assert "neither" not in runner_with_markers.done("log").text
    assert runner_with_markers.done("redo").text == (
        "Redid the rejection of edits 2 3.\nRemoved the conflict markers of edit 4.\nRewrote a\n"
    )
    assert runner_with_markers.done("log").text.count("reason: neither") == len(["2", "3", "4"])


def test_rejecting_the_hunk_set_aside_resolves_the_conflict(runner_with_markers: CommandRunner) -> None:
    assert runner_with_markers.done("reject", "3:1").text == (
        "Rejected edit 3.\nRemoved the conflict markers of edit 4.\nRewrote a\n"
    )
    assert runner_with_markers.bytes("a") == b"p\nx\nq\n"


def test_accept_and_reset_take_the_option_markers(runner: CommandRunner) -> None:
    runner.write("a", b"p\nx\n")
    runner.edit("a", b"x", b"A")
    runner.done("reject", "2")
    runner.edit("a", b"x", b"B")
    for command in ("accept", "reset"):
        runner.done(command, "--markers", "2")
        assert runner.bytes("a").startswith(b"p\n<<<<<<< edit 2 (conv_one)\nA\n||||||| without both\nx\n")
        runner.done("undo")


def test_markers_are_refused_with_the_reason_where_they_cannot_help(runner: CommandRunner) -> None:
    conflicting_edits(runner)
    ran = runner.cas("reject", "--markers", "1")
    assert ran.status == 1
    assert "edit 2 hunk 1 needs edit 1 (a:2)" in ran.said
    assert "Conflict markers can't show this: they only work between live lines of a text file.\n" in ran.said
    assert runner.bytes("a") == b"p\nB\nq\n"


def test_cascade_and_markers_exclude_each_other(runner: CommandRunner) -> None:
    conflicting_edits(runner)
    assert runner.cas("reject", "--markers", "--cascade", "2").status == 2
