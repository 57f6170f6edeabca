"""Turns and sessions: what an agent did for one prompt can be listed, shown and decided together."""

import re
from pathlib import Path

import pytest

from objstore import Status
from tests.cli.commands.reviewing.conftest import turn
from tests.support.command_runner import CommandRunner, cas
from tests.support.hooked_agents import Codex, recorded_project
from tests.support.sampling import sampled_product


def listed(runner: CommandRunner, *options: str) -> list[int]:
    return [found["seq"] for found in runner.done("log", "--json", *options).lines()]


def test_log_lists_turns_with_prompt_files_lines_and_decision(turns: CommandRunner) -> None:
    turns.done("reject", "3")
    rows = turns.done("log", "--turns").text.splitlines()
    assert [" ".join(row.split()) for row in rows] == [
        '4 1970-01-05 00:00:00 pending 1 file +1 -1 claude-code 1 "Spell three"',
        "3 1970-01-04 00:00:00 pending 1 file +1 -0 codex 2",
        '2 1970-01-03 00:00:00 1 pending, 1 rejected 2 files +2 -1 claude-code 1 "Spell two"',
        '1 1970-01-02 00:00:00 pending 1 file +3 -0 claude-code 1 "Write a"',
    ]


@pytest.mark.parametrize(
    ("words", "width"), sampled_product([("log", "--turns"), ("log", "--sessions"), ("rewind",)], [80, 100, 120])
)
def test_rows_of_turns_and_sessions_fit_the_terminal(turns: CommandRunner, words: tuple[str, ...], width: int) -> None:
    turns.done("reject", "3")
    _, shown = turns.typed(*words, COLUMNS=str(width), NO_COLOR="1")
    rows = shown.splitlines()
    assert [row for row in rows if len(row) > width] == []
    assert any('"Write a' in row for row in rows)


def test_a_narrow_terminal_says_partly_of_a_turn_that_is_decided_in_part(turns: CommandRunner) -> None:
    turns.done("reject", "3")
    _, shown = turns.typed("log", "--turns", COLUMNS="80", NO_COLOR="1")
    assert [row.split()[2] for row in shown.splitlines()] == ["pending", "pending", "partly", "pending"]


def test_log_lists_sessions_with_client_and_first_prompt(turns: CommandRunner) -> None:
    rows = [" ".join(row.split()) for row in turns.done("log", "--sessions").text.splitlines()]
    assert [(row.split()[0], row.split(" ", 5)[5]) for row in rows] == [
        ("2", "1 turn 1 edit codex"),
        ("1", '3 turns 4 edits claude-code "Write a"'),
    ]


def test_lists_of_turns_are_limited_and_filtered(turns: CommandRunner) -> None:
    def numbers(*options: str) -> list[int]:
        return [found["turn"] for found in turns.done("log", "--turns", "--json", *options).lines()]

    assert numbers("--session", "1") == [4, 2, 1]
    assert numbers("--session", "tw") == [3]
    assert numbers("-2") == [4, 3]
    assert numbers("--turn", "2", "--turn", "1", "--reverse") == [1, 2]
    assert numbers("--since", "1970-01-03", "--until", "1970-01-04") == [3, 2]
    refused = turns.cas("log", "--turns", "a")
    assert refused.status == 2
    assert "--turns can be combined with --turn, --session" in refused.said


def test_edits_are_listed_and_shown_by_turn_and_session(turns: CommandRunner) -> None:
    assert listed(turns, "--turn", "2") == [3, 2]
    assert listed(turns, "--turn", "2", "--turn", "4") == [5, 3, 2]
    assert listed(turns, "--session", "1") == [5, 3, 2, 1]
    assert listed(turns, "--session", "two") == [4]
    assert listed(turns, "--session", "2", "--turn", "1") == []
    assert [row["seq"] for row in turns.done("status", "--turn", "2", "--json").lines()] == [3, 2]
    shown = turns.done("show", "--turn", "2", "--json").json()["edits"]
    assert [edit["seq"] for edit in shown] == [2, 3]
    assert [edit["seq"] for edit in turns.done("show", "--session", "2", "1", "--json").json()["edits"]] == [1, 4]


def test_rows_name_the_turn_of_an_edit_instead_of_its_conversation(turns: CommandRunner) -> None:
    turns.write("c", b"c\n", conversation="conv_without_turn")
    rows = turns.done("log").text.splitlines()
    assert rows[0].endswith("c  conv_without_turn")
    assert rows[1].endswith("a  turn 4")
    assert "one" not in "".join(rows[1:])


def test_show_names_the_turn_and_what_the_client_calls_it(tmp_path: Path) -> None:
    agent = Codex(recorded_project(tmp_path / "project", "a.txt"))
    agent.start()
    agent.ask("Add four")
    agent.run("echo 4 >> a.txt")
    rows = cas("show", "1", folder=agent.folder).text.splitlines()
    assert "turn          1, codex 1" in rows
    assert "note turn     turn-1" in rows


def test_reject_of_a_turn_keeps_later_edits(turns: CommandRunner) -> None:
    turns.done("reject", "--turn", "2", "--reason", "no")
    assert turns.bytes("a") == b"1\n2\nthree\n4\n"
    assert not (turns.folder / "b").exists()
    assert {name.partition(":")[0] for name, status in turns.statuses().items() if status is Status.REJECTED} == {
        "2",
        "3",
    }
    turns.done("undo")
    assert turns.bytes("a") == b"1\ntwo\nthree\n4\n"
    assert turns.bytes("b") == b"b\n"


def test_reject_of_a_turn_that_later_edits_need_names_the_conflict(turns: CommandRunner) -> None:
    turns.call(lambda call: call.write("a", b"1\nTWO\nthree\n4\n"), conversation="one", turn=turn("one", 5, "Shout"))
    refused = turns.cas("reject", "--turn", "2")
    assert refused.status == 1
    assert "cas reject --cascade --turn 2" in refused.said
    turns.done("reject", "--cascade", "--turn", "2")
    assert turns.bytes("a") == b"1\n2\nthree\n4\n"


def test_session_is_decided_as_a_whole_or_in_one_file(turns: CommandRunner) -> None:
    turns.done("accept", "--session", "1", "--file", "a")
    assert listed(turns, "--status", "accepted") == [5, 2, 1]
    turns.done("reset", "--session", "1")
    assert listed(turns, "--status", "pending") == [5, 4, 3, 2, 1]


@pytest.mark.parametrize(
    ("command", "kind"),
    sampled_product(["log", "log --turns", "show", "accept", "reject", "reset", "status"], ["turn", "session"]),
)
def test_unknown_turn_and_session_are_refused(turns: CommandRunner, command: str, kind: str) -> None:
    refused = turns.cas(*command.split(), f"--{kind}", "9")
    assert (refused.status, refused.out) == (1, b"")
    assert refused.said == f"cas: No {kind} is named '9' here.\n`cas log --{kind}s` lists them.\n"


def test_number_of_a_turn_must_be_positive(turns: CommandRunner) -> None:
    assert turns.cas("log", "--turn", "0").status == 2


def test_shell_completes_turns_and_sessions_with_their_prompts(turns: CommandRunner) -> None:
    def completed(*words: str) -> str:
        given = {
            "_CAS_COMPLETE": "zsh_complete",
            "COMP_WORDS": " ".join(["cas", *words]),
            "COMP_CWORD": f"{len(words)}",
        }
        return cas(folder=turns.folder, settings=given).text

    assert "Spell three" in completed("reject", "--turn", "")
    assert "codex" in completed("log", "--session", "2")


def test_patches_of_a_turn_are_exported(turns: CommandRunner) -> None:
    patches = turns.done("export", "--patch", "--turn", "2").text
    assert "+two\n" in patches
    assert "+three\n" not in patches
    refused = turns.cas("export", "--bundle", "out", "--session", "1")
    assert refused.status == 2


# ---- the net of a turn

NINE = b"1\n2\n3\n4\n5\n6\n7\n8\n9\n"
TWO, NINTH, NEW = "[2:1 5:1] turns 2 4", "[4:1] turn 3", "[3:0] turn 2"


def prepare_net(runner: CommandRunner) -> None:
    def write(number: int, path: str, content: bytes, session: str = "one") -> None:
        runner.call(lambda call: call.write(path, content), conversation=session, turn=turn(session, number))

    write(1, "a", NINE)
    runner.done("accept", "1")
    write(2, "a", NINE.replace(b"2", b"two"))
    write(2, "b", b"b\n")
    write(3, "a", NINE.replace(b"2", b"two").replace(b"9", b"nine"), "two")
    write(4, "a", NINE.replace(b"2", b"TWO").replace(b"9", b"nine"))


@pytest.fixture
def net(runner: CommandRunner) -> CommandRunner:
    """Return a workspace with an accepted file, of which turns 2 and 4 changed a line, and turn 3 another one."""
    return runner.prepared(prepare_net)


def labels(text: str) -> list[str]:
    """Return what the header of each change in a diff says of it."""
    return [line.split(" @@ ")[1] for line in text.splitlines() if line.startswith("@@ ")]


def test_each_change_names_the_turns_that_it_is_made_of(net: CommandRunner) -> None:
    net.write("c", b"c\n")
    assert labels(net.done("diff").text) == [TWO, NINTH, NEW, "[6:0]"]
    changes = [change for file in net.done("diff", "--json").lines() for change in file["changes"]]
    assert [change["turns"] for change in changes] == [[2, 4], [3], [2], []]


def test_a_change_of_many_turns_names_the_first_of_them(runner: CommandRunner) -> None:
    def write(number: int) -> None:
        runner.call(lambda call: call.write("x", b"%d\n" % number), conversation="one", turn=turn("one", number))

    for number in range(1, 8):
        write(number)
    assert labels(runner.done("diff").text)[0].endswith("] turns 1 2 3 4 and 3 more")


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ([], [TWO, NINTH, NEW]),
        (["--turn", "2"], [TWO, NEW]),
        (["--turn", "3"], [NINTH]),
        (["--turn", "4"], [TWO]),
        (["--turn", "3", "--turn", "4"], [TWO, NINTH]),
        (["--session", "2"], [NINTH]),
        (["--session", "1", "--turn", "3"], []),
        (["--turn", "2", "b"], [NEW]),
        (["--turn", "2", "."], [TWO, NEW]),
        (["--turn", "4", "b"], []),
        (["--turn", "2", "3"], [NEW]),
        (["--turn", "2", "a:2"], [TWO]),
        (["--turn", "2", "a:9"], []),
        (["--turn", "1"], []),
    ],
    ids=" ".join,
)
def test_a_turn_or_session_selects_the_changes_with_a_pending_hunk_of_it(
    net: CommandRunner, options: list[str], shown: list[str]
) -> None:
    diff = net.cas("diff", *options)
    assert (diff.status, labels(diff.text)) == (0, shown)
    assert diff.said == "" if shown else diff.said.startswith("Nothing of that is pending")
    found = net.done("diff", "--json", *options).lines()
    assert sum(len(file["changes"]) for file in found) == len(shown)
    assert net.cas("diff", "--stat", *options).text.splitlines()[-1].startswith(f" {len(found)} file")


def test_edits_of_a_turn_that_cancel_out_are_shown_with_it(net: CommandRunner) -> None:
    net.call(lambda call: call.write("b", b"2\n"), conversation="one", turn=turn("one", 5))
    net.call(lambda call: call.delete("b"), conversation="one", turn=turn("one", 6))
    assert "# b: 3 edits cancel out [3:0 6:1 7:0]\n" in net.done("diff").text
    assert net.done("diff", "--turn", "6").text == "# b: 1 edit cancels out [7:0]\n"


def test_a_decided_turn_has_no_net(net: CommandRunner) -> None:
    net.done("reject", "--turn", "4")
    assert labels(net.done("diff", "--turn", "2").text) == ["[2:1] turn 2", NEW]
    shown = net.cas("diff", "--turn", "4")
    assert (shown.text, shown.said) == ("", "Nothing of that is pending; `cas show` shows edits that are decided.\n")


@pytest.mark.parametrize("names", [["--unrecorded"], ["a@2", "a"], ["--unrecorded", "a"]], ids=" ".join)
def test_only_what_is_pending_can_be_selected_by_turn(net: CommandRunner, names: list[str]) -> None:
    refused = net.cas("diff", "--turn", "2", *names)
    assert refused.status == 2
    assert "--turn and --session select what is pending" in refused.said


@pytest.mark.parametrize("options", [["--turn", "9"], ["--session", "9"], ["--turn", "2", "nowhere"]], ids=" ".join)
def test_diff_refuses_an_unknown_turn_session_or_path(net: CommandRunner, options: list[str]) -> None:
    refused = net.cas("diff", *options)
    assert (refused.status, refused.text) == (1, "")
    assert "is named" in refused.said


# ---- decisions on a path


@pytest.mark.parametrize(
    ("names", "decided"),
    [
        (["a"], [2, 4, 5]),
        (["b"], [3]),
        (["."], [2, 3, 4, 5]),
        (["./b"], [3]),
        (["a", "--turn", "3"], [4]),
        (["a", "--session", "1"], [2, 5]),
        (["a", "--turn", "2", "--turn", "4"], [2, 5]),
        ([".", "--conversation", "two"], [4]),
        (["b", "4"], [3, 4]),
        (["b", "a:9"], [3, 4]),
    ],
    ids=str,
)
def test_a_path_selects_what_is_pending_there_for_a_decision(
    net: CommandRunner, names: list[str], decided: list[int]
) -> None:
    net.done("accept", *names)
    accepted = {edit["seq"] for edit in net.done("log", "--json").lines() if edit["status"] == "accepted"}
    assert accepted == {1, *decided}
    net.done("undo")
    net.done("reject", *names)
    assert set(listed(net, "--status", "rejected")) == set(decided)


def test_a_path_leaves_what_is_accepted(net: CommandRunner) -> None:
    net.done("accept", "2", "5")
    net.done("reject", "a")
    assert net.bytes("a") == NINE.replace(b"2", b"TWO")
    net.done("reject", "--file", "a")
    assert not (net.folder / "a").exists()


def test_a_path_where_nothing_is_pending_is_refused(net: CommandRunner) -> None:
    net.done("accept", "b")
    refused = net.cas("reject", "b")
    assert refused.status == 1
    assert refused.said == ("cas: Nothing is pending at b. `cas reject --file b` takes accepted edits too.\n")
    refused = net.cas("reject", "a", "--turn", "1")
    assert "Nothing of --turn 1 is pending at a." in refused.said
    assert "already accepted" in net.cas("accept", "3").text


def test_reopening_a_path_takes_back_every_decision_on_it(net: CommandRunner) -> None:
    net.done("reject", "a")
    net.done("reopen", "a")
    assert {edit["seq"] for edit in net.done("log", "--json", "--status", "pending").lines()} == {1, 2, 3, 4, 5}


def test_a_number_names_an_edit_and_a_path_with_a_dot_the_file(net: CommandRunner) -> None:
    net.write("3", b"3\n")
    net.done("reject", "3")
    assert listed(net, "--status", "rejected") == [3]
    net.done("reject", "./3")
    assert listed(net, "--status", "rejected") == [6, 3]


def test_a_path_is_named_once(net: CommandRunner) -> None:
    refused = net.cas("reject", "a", "--file", "b")
    assert refused.status == 2
    assert "Name the file once" in refused.said


def test_files_that_always_need_a_look_are_accepted_by_their_own_path_only(net: CommandRunner) -> None:
    net.done("config", "set", "review.always", "b")
    accepted = net.cas("accept", ".")
    assert "not accepted, because review.always asks for a look: b." in accepted.said
    assert listed(net, "--status", "pending") == [3]
    net.done("accept", "b")
    assert listed(net, "--status", "pending") == []


# ---- whose it is, in words


def test_blame_names_the_turn_behind_each_line(net: CommandRunner) -> None:
    net.done("accept", "2", "5")
    net.call(lambda call: call.write("a", net.bytes("a") + b"10\n"), conversation="conv_short")
    shown = re.sub(r"  by [^(]+ \(script\) ", " ", net.done("blame", "a").text)
    rows = [row.split(maxsplit=3)[3] for row in shown.splitlines()]
    assert [row.split() for row in rows] == [
        ["turn", "1", "1", "1"],
        ["turn", "4", "2", "TWO"],
        *(["turn", "1", f"{line}", f"{line}"] for line in range(3, 9)),
        ["turn", "3", "9", "nine"],
        ["write_file", "conv_short", "10", "10"],
    ]


def test_blame_shows_the_beginning_of_a_prompt(turns: CommandRunner) -> None:
    prompt = "Say \x1b[31mhello, as politely as you possibly can\nand so on"
    turns.call(lambda call: call.write("c", b"c\n"), conversation="one", turn=turn("one", 5, prompt))
    assert "  turn 1 · Write a  " in turns.done("blame", "a").text
    assert '  turn 5 · "Say \\x1b[31mhello, as politely…  ' in turns.done("blame", "c").text


@pytest.mark.parametrize(
    ("options", "lines"),
    [
        (["--turn", "3"], [9]),
        (["--turn", "3", "--turn", "4"], [2, 9]),
        (["--session", "2"], [9]),
        (["--turn", "2"], []),
    ],
    ids=str,
)
def test_blame_of_a_turn_shows_only_its_lines(net: CommandRunner, options: list[str], lines: list[int]) -> None:
    shown = net.cas("blame", "a", *options)
    assert [int(row.split()[-2]) for row in shown.text.splitlines()] == lines
    assert [part["start"] + 1 for part in net.cas("blame", "a", "--json", *options).lines()] == lines
    assert shown.said == ("" if lines else f"No line of a is of {' '.join(options)}.\n")


def test_json_of_blame_has_the_number_of_the_turn(net: CommandRunner) -> None:
    assert [part["turn"] for part in net.done("blame", "a", "--json").lines()] == [1, 4, 1, 3]


ID = "0d4b2f1e-33e9-4b6c-a1ab-93d2a7fc1d11"


def test_no_list_for_a_person_shows_the_id_of_a_session(runner: CommandRunner) -> None:
    prompt = 'Fix the parser of "empty" files, and of all the other files that it can not read'
    runner.call(lambda call: call.write("a", b"1\n2\n"), conversation=ID, turn=turn(ID, 1, prompt))
    runner.call(lambda call: call.write("b", b"1\n"), conversation=f"{ID}-2")  # as hooks of older versions recorded it
    for words in (["status"], ["log"], ["show", "1", "2"], ["blame", "a"], ["blame", "b"], ["rewind"], ["diff"]):
        assert ID not in runner.done(*words).text, words
    for words in (["log", "--turns"], ["log", "--sessions"], ["status", "--status", "pending"]):
        assert ID not in runner.done(*words).text, words
    status = runner.done("status").text
    assert (
        '\n  turn 1  claude-code 1  "Fix the parser of \\"empty\\" files, and of all the other files that it…\n'
        in status
    )
    assert "\n  session 2\n" in status
    assert "\nturn          1, claude-code 1\n" in runner.done("show", "1").text
    assert "\nsession       agent 2\n" in runner.done("show", "2").text
    assert runner.done("log", "-1").text.endswith("b  session 2\n")
    assert runner.done("blame", "b").text.endswith("write_file  agent 2      1  1\n")


def test_a_comment_on_a_turn_is_about_all_its_edits_and_goes_to_its_session(net: CommandRunner) -> None:
    said = net.done("comment", "--turn", "2", "-m", "Too eager").text
    assert said.startswith("comment 1 open  a and 1 more file  ")
    (shape,) = net.done("comment", "--json").lines()
    assert (shape["hunks"], shape["line"]) == (["2:1", "3:0"], None)
    assert net.done("comment", "--session", "2", "-m", "One file").text.startswith("comment 2 open  a:9  ")
    waiting = [line.split() for line in net.done("send").text.splitlines() if "goes to" in line]
    assert [(words[2], words[-1]) for words in waiting] == [("claude-code", "1"), ("claude-code", "2")]
    assert "Too eager" in net.done("show", "2").text


@pytest.mark.parametrize(
    ("words", "status", "refusal"),
    [
        (["--turn", "9"], 1, "No turn is named '9' here."),
        (["--turn", "2", "a"], 2, "Give one of these: a target, --turn or --session"),
        (["--turn", "2", "--session", "2"], 1, "No edit that is kept matches --turn 2 --session 2."),
    ],
    ids=str,
)
def test_a_comment_on_no_turn_is_refused(net: CommandRunner, words: list[str], status: int, refusal: str) -> None:
    refused = net.cas("comment", "-m", "x", *words)
    assert refused.status == status
    assert refusal in refused.said
    assert net.cas("comment", "--json").text == ""
