"""Turns and sessions: what an agent did for one prompt can be listed, shown and decided together."""

import pytest

from objstore import Status
from tests.cli.commands.reviewing.conftest import turn
from tests.support.command_runner import CommandRunner, cas


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


@pytest.mark.parametrize("words", [("log", "--turns"), ("log", "--sessions"), ("rewind",)])
@pytest.mark.parametrize("width", [80, 100, 120])
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


@pytest.mark.parametrize("command", ["log", "log --turns", "show", "accept", "reject", "reset", "status"])
@pytest.mark.parametrize(("option", "kind"), [("--turn", "turn"), ("--session", "session")])
def test_unknown_turn_and_session_are_refused(turns: CommandRunner, command: str, option: str, kind: str) -> None:
    refused = turns.cas(*command.split(), option, "9")
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
