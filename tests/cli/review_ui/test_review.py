"""`cas review` in a real terminal: changes, file by file. Press keys, then check the screen, the files, the journal."""

import os
import pty
import re
import sys
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from click import Command, Context

from cli.review_ui.keys import ASKED, KEYS, TERMINAL_KEYS
from cli.review_ui.review import Review as InProcess
from cli.screen.keyboard import Keyboard
from cli.screen.terminal import screen_for
from cli.selection.net_selection import net_selection
from objstore import Call, CallInfo, NetFile, Operation, Status, TurnInfo
from tests.cli.commands.reviewing.test_trial import noted_pid, wait_until_gone
from tests.support.command_runner import CommandRunner
from tests.support.hooked_agents import ClaudeCode
from tests.support.terminal_driver import TERMINALS, TerminalDriver, run_in_terminal

PENDING, ACCEPTED, REJECTED = Status.PENDING, Status.ACCEPTED, Status.REJECTED
FIRST = b"one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n"
AT_THE_END = r"Nothing (else|of these) is left.*\] $"
ONCE_BEGUN: Final = 1
"""How many times a review has compared all files when it shows the first change."""

GROUP = r"Accept \[a\] or reject \[x\] all.*\] $"

Review = Callable[..., AbstractContextManager[TerminalDriver]]


@pytest.fixture(params=["plain"])
def review(request: pytest.FixtureRequest, runner: CommandRunner, tmp_path: Path) -> Review:
    """Return a function that runs `cas review` in a terminal."""
    settings = {"XDG_STATE_HOME": str(tmp_path / "state")}

    def begin(*words: str, **more: str) -> AbstractContextManager[TerminalDriver]:
        scratch = tmp_path / "stage"
        for leftover in scratch.glob("*") if scratch.exists() else ():
            leftover.unlink()
        return run_in_terminal(
            request.param, "review", *words, folder=runner.folder, scratch=scratch, **(settings | more)
        )

    return begin


def prepare_history(runner: CommandRunner) -> None:
    runner.write("a", FIRST, conversation="conv_zero")
    runner.done("accept", "1")

    def two_hunks(call: Call) -> None:
        call.write("a", FIRST.replace(b"two", b"2").replace(b"eight", b"8"), operation=Operation.EDIT)

    def again(call: Call) -> None:
        call.write("a", FIRST.replace(b"two", b"zwei").replace(b"eight", b"8"), operation=Operation.EDIT)

    runner.call(two_hunks, conversation="conv_one", tool="edit_file_diff")
    runner.call(again, conversation="conv_two", tool="edit_file_diff")
    runner.write("b", b"other\n", conversation="conv_two")


@pytest.fixture
def history(runner: CommandRunner) -> CommandRunner:
    """Return a workspace where line 2 of file a was changed twice and line 8 once, and file b was created."""
    return runner.prepared(prepare_history)


@pytest.fixture
def with_cancelled(history: CommandRunner) -> CommandRunner:
    """Return the same workspace after edits 5 and 6 of file a, which cancel out."""
    now = history.bytes("a")
    history.write("a", now + b"ten\n", conversation="conv_two")
    history.write("a", now, conversation="conv_two")
    return history


def prompt(*units: str) -> str:
    return rf"Decide on \[{' '.join(units)}\] \[.*\] $"


def single(unit: str) -> str:
    return rf"Decide on {unit} \[.*\] $"


def press(terminal: TerminalDriver, keys: str, then: str) -> str:
    terminal.type(keys)
    return terminal.wait_for(then)


# ---- decisions


@pytest.mark.parametrize("review", TERMINALS, indirect=True)
def test_one_key_decides_on_all_hunks_of_a_change_and_shows_the_next(history: CommandRunner, review: Review) -> None:
    with review() as terminal:
        shown = terminal.wait_for(prompt("2:1", "3:1"))
        assert "a  +2 -2  (file 1 of 2, 2 changes left in it)" in shown
        assert "conv_one  edit 2\n" in shown
        assert "conv_two  edit 3\n" in shown
        assert "-two\n+zwei\n" in shown
        assert "eight" not in shown
        shown = press(terminal, "x", prompt("2:2"))
        assert "Rewrote a" in shown
        assert "-eight\n+8\n" in shown
        assert history.bytes("a") == FIRST.replace(b"eight", b"8")
        assert "file 2 of 2" in press(terminal, "a", prompt("4:0"))
        terminal.type("x")
        assert "1 change accepted, 2 changes rejected, nothing is left pending." in terminal.wait_for(r"pending\.")
        assert terminal.wait_for_exit() == 0
    assert not (history.folder / "b").exists()
    assert history.statuses() == {
        "1:0": ACCEPTED,
        "2:1": REJECTED,
        "2:2": ACCEPTED,
        "3:1": REJECTED,
        "4:0": REJECTED,
    }


def test_a_review_begins_at_the_first_change_not_seen_and_returns_to_the_others(
    history: CommandRunner, review: Review
) -> None:
    with review() as terminal:
        assert "\n1 of 3  Decide on" in terminal.wait_for(prompt("2:1", "3:1"))
        assert "\n2 of 3  Decide on" in press(terminal, "j", prompt("2:2"))
        press(terminal, "k", prompt("2:1", "3:1"))
        press(terminal, "q", "3 changes left pending in 2 files")
    with review() as terminal:
        assert "\n3 of 3  Decide on" in terminal.wait_for(prompt("4:0"))
        press(terminal, "j", "That was the last change; k goes back, q leaves")
        shown = press(terminal, "a", prompt("2:1", "3:1"))
        assert "That was the last one. 2 changes before it are undecided.\n" in shown
        assert "\n2 of 3  Decide on" in shown
        press(terminal, "a", prompt("2:2"))
        press(terminal, "a", r"nothing is left pending\.")
    assert PENDING not in history.statuses().values()


def test_keys_for_files_lead_to_the_first_change_of_the_next_and_the_previous_file(
    history: CommandRunner, review: Review
) -> None:
    with review() as terminal:
        terminal.wait_for(prompt("2:1", "3:1"))
        press(terminal, "j", prompt("2:2"))
        assert "file 2 of 2" in press(terminal, "J", prompt("4:0"))
        press(terminal, "J", "This is the last file")
        press(terminal, "K", prompt("2:1", "3:1"))
        press(terminal, "K", "This is the first file")
        press(terminal, "q", "3 changes left")
    assert set(history.statuses().values()) == {ACCEPTED, PENDING}


def test_a_seen_change_stays_pending_and_the_review_goes_on(history: CommandRunner, review: Review) -> None:
    with review() as terminal:
        terminal.wait_for(prompt("2:1", "3:1"))
        press(terminal, ".", prompt("2:2"))
        press(terminal, "q", "3 changes left")
    assert [change["seen"] for change in history.done("diff", "--json", "a").json()["changes"]] == [True, True]


def test_a_reason_is_recorded(history: CommandRunner, review: Review) -> None:
    with review("b") as terminal:
        terminal.wait_for(prompt("4:0"))
        press(terminal, "X", "Reason:")
        press(terminal, "not asked for\n", AT_THE_END)
    assert history.cas("log", "--json", "-n", "1").json()["reason"] == "not asked for"


def test_a_comment_is_recorded_and_shown_below_its_change(history: CommandRunner, review: Review) -> None:
    with review() as terminal:
        terminal.wait_for(prompt("2:1", "3:1"))
        press(terminal, "c", "Comment:")
        press(terminal, "\n", prompt("2:1", "3:1"))
        press(terminal, "c", "Comment:")
        shown = press(terminal, "why German?\n", prompt("2:1", "3:1"))
        assert "Recorded comment 1." in shown
        assert re.search(r"\+zwei\n three\n.*comment 1 open  a:2  [^\n]*\n    why German\?\n", shown, re.DOTALL)
        assert "comment 1" not in press(terminal, "j", prompt("2:2"))
        press(terminal, "q", "0 changes accepted")
    [comment] = history.cas("comment", "--json").lines()
    assert (comment["text"], comment["line"], comment["hunks"]) == ("why German?", 1, ["2:1", "3:1"])


def test_a_change_is_seen_until_its_text_changes(history: CommandRunner, review: Review) -> None:
    assert "pending (`cas review` goes" in history.done("status").text
    with review() as terminal:
        assert "seen" not in terminal.wait_for(prompt("2:1", "3:1"))
        press(terminal, "j", prompt("2:2"))
        assert re.search(r"^@@ .* \[2:1 3:1\] seen$", press(terminal, "k", prompt("2:1", "3:1")), re.MULTILINE)
        press(terminal, "q", "3 changes left")
    assert "pending (3 changes, 1 not seen; `cas review` goes through it):" in history.done("status").text
    [a, b] = history.done("diff", "--json").lines()
    assert [change["seen"] for change in (*a["changes"], *b["changes"])] == [True, True, False]
    assert "[2:1 3:1] seen\n" in history.done("diff").text
    assert history.done("diff", "--unseen").text.startswith("diff --git a/b b/b\n")
    assert history.done("diff", "--unseen", "--stat").text.startswith(" b | 1 ")
    history.edit("b", b"other\n", b"another\nfile\n")
    history.write("c", b"third\n")
    with review("--unseen") as terminal:
        terminal.wait_for(prompt("4:0", "5:1"))
        press(terminal, "j", prompt("6:0"))
        assert "[4:0 5:1] seen" in press(terminal, "k", prompt("4:0", "5:1"))
        press(terminal, "j", prompt("6:0"))
        press(terminal, "q", "2 changes left pending in 2 files")
    status = history.done("status", "--json").json()
    assert (status["changes"], status["unseen"]) == (4, 0)
    assert history.cas("diff", "--unseen").said == "No such change is pending: every one was seen in a review.\n"
    history.edit("a", b"zwei\n", b"deux\n")  # the same place, another text
    history.write("a", b"above\n" + history.bytes("a"))  # the change of line 8 only moves
    assert "[2:1 3:1 7:1]" in history.done("diff", "--unseen").text
    assert "[2:2]" not in history.done("diff", "--unseen").text
    assert "5 changes, 2 not seen" in history.done("status").text


def test_a_change_longer_than_the_screen_is_shown_whole_and_decided_with_one_key(
    runner: CommandRunner, review: Review
) -> None:
    runner.write("a", b"".join(b"line %d\n" % number for number in range(200)))
    with review() as terminal:
        shown = terminal.wait_for(prompt("1:0"))
        assert all(f"+line {number}\n" in shown for number in range(200))
        press(terminal, "a", r"1 change accepted, 0 changes rejected, nothing is left pending\.")


@pytest.mark.parametrize("key", ["a", "x", "X", "s", "."])
def test_nothing_is_decided_or_seen_before_all_of_it_was_on_the_screen(
    runner: CommandRunner, review: Review, key: str
) -> None:
    runner.write("a", b"".join(b"line %d\n" % number for number in range(430)))
    with review() as terminal:
        shown = terminal.wait_for(prompt("1:0"))
        assert "more lines: Space shows more.\n" in shown
        assert "+line 429\n" not in shown
        assert "+line 429\n" not in press(terminal, key, r"\.\.\. \d+ more lines: .*\] $")
        press(terminal, "q", prompt("1:0"))
        press(terminal, "q", "1 change left pending")
    assert runner.done("status", "--json").json()["unseen"] is None
    with review() as terminal:
        terminal.wait_for(prompt("1:0"))
        press(terminal, key, r"\.\.\. \d+ more lines: .*\] $")
        assert "+line 429\n" in press(terminal, "G", prompt("1:0"))
        press(terminal, "q", "1 change left pending")
    assert runner.done("status", "--json").json()["unseen"] == 0
    assert runner.statuses()["1:0"] is PENDING


def test_a_long_line_counts_as_shown_only_at_its_end(runner: CommandRunner, review: Review) -> None:
    runner.write("a", b"x\n")
    runner.write("a", b"y" * 50_000 + b"END\n")
    runner.done("accept", "1")
    with review() as terminal:
        assert "END" not in terminal.wait_for(prompt("2:1"))
        press(terminal, "a", r"\.\.\. 1 more line: .*\] $")
        assert "yEND\n" in press(terminal, "G", prompt("2:1"))
        press(terminal, "a", r"1 change accepted")


@pytest.mark.parametrize("key", ["t", "f"])
def test_a_group_decision_shows_first_what_was_not_on_the_screen(
    runner: CommandRunner, review: Review, key: str
) -> None:
    runner.write("a", FIRST, conversation="conv_one")
    runner.done("accept", "1")
    runner.write("a", FIRST.replace(b"one\n", b"1\n").replace(b"nine\n", b"9\n"), conversation="conv_one")
    with review() as terminal:
        assert "+9\n" not in terminal.wait_for(prompt("2:1"))
        shown = press(terminal, key, GROUP)
        assert "1 change of these was not on the screen yet:\n" in shown
        assert "+9\n" in shown
        assert "2 changes in 1 file." in shown
        assert "not on the screen" not in press(terminal, "j", prompt("2:1")) + press(terminal, key, GROUP)
        press(terminal, "a", AT_THE_END)
        press(terminal, "q", "2 changes accepted")


def test_a_group_that_is_not_shown_to_its_end_is_not_decided(runner: CommandRunner, review: Review) -> None:
    runner.write("a", b"short\n")
    runner.write("b", b"line\n" * 500)
    with review() as terminal:
        terminal.wait_for(prompt("1:0"))
        press(terminal, "t", r"\.\.\. \d+ more lines: .*\] $")
        assert "Nothing was decided." in press(terminal, "q", prompt("1:0"))
        press(terminal, "q", "left pending")
    assert set(runner.statuses().values()) == {PENDING}
    assert runner.done("status", "--json").json()["unseen"] == 1


def test_undo_shows_the_change_again(history: CommandRunner, review: Review) -> None:
    with review() as terminal:
        terminal.wait_for(prompt("2:1", "3:1"))
        press(terminal, "x", prompt("2:2"))
        assert "+zwei" in press(terminal, "u", prompt("2:1", "3:1"))
        press(terminal, "q", "0 changes accepted, 0 changes rejected, 3 changes left pending in 2 files")
    assert history.bytes("a") == FIRST.replace(b"two", b"zwei").replace(b"eight", b"8")


def test_redo_makes_the_decision_again_and_goes_on(history: CommandRunner, review: Review) -> None:
    with review() as terminal:
        terminal.wait_for(prompt("2:1", "3:1"))
        press(terminal, "U", "there is nothing to redo")
        press(terminal, "x", prompt("2:2"))
        press(terminal, "u", prompt("2:1", "3:1"))
        assert "\n2 of 3  Decide on" in press(terminal, "U", prompt("2:2"))
        press(terminal, "u", prompt("2:1", "3:1"))
        press(terminal, "U", prompt("2:2"))
        press(terminal, "q", "0 changes accepted, 1 change rejected, 2 changes left")
    assert history.bytes("a") == FIRST.replace(b"eight", b"8")


def test_undo_takes_back_the_newest_decision_of_before_the_review(history: CommandRunner, review: Review) -> None:
    history.done("reject", "4")
    with review() as terminal:
        terminal.wait_for(prompt("2:1", "3:1"))
        shown = press(terminal, "u", prompt("4:0"))
        assert "Undid the rejection of edit 4.\nRestored b\n" in shown
        press(terminal, "q", "3 changes left")
    assert history.statuses()["4:0"] is PENDING


def test_y_rejects_what_depends_on_a_change_too(runner: CommandRunner, review: Review) -> None:
    runner.write("a", b"top\nend\n")
    runner.done("accept", "1")
    runner.write("a", b"top\nred\nend\n")
    runner.write("a", b"top\nRED\nend\n")
    runner.done("accept", "3")
    with review() as terminal:
        # The accepted edit needs the pending one, which therefore has no change of its own.
        assert "accepted edits need pending hunks" in terminal.wait_for(prompt("2:1"))
        press(terminal, "x", r"leave it \[any other key\]")
        press(terminal, "x", prompt("2:1"))
        press(terminal, "x", r"leave it \[any other key\]")
        press(terminal, "y", r"1 change rejected, nothing is left pending\.")
    assert runner.bytes("a") == b"top\nend\n"


def test_y_goes_ahead_with_what_breaks_names(runner: CommandRunner, review: Review) -> None:
    runner.write("a.py", b"x = 1\n\n\nprint(x)\n")
    runner.write("b.py", b"")
    runner.edit("a.py", b"x = 1\n", b"x = 1\ny = 2\n")
    runner.edit("b.py", b"", b"from a import y\n")
    runner.done("accept", "1", "2", "4")
    with review() as terminal:
        terminal.wait_for(prompt("3:1"))
        said = press(terminal, "x", r"Go ahead \[y\], or leave it \[any other key\]")
        assert "takes `y` out of `a`, from which b.py:1 imports it, which 4:1 added." in said
        press(terminal, "n", prompt("3:1"))
        assert runner.statuses()["3:1"] is PENDING
        press(terminal, "x", r"Go ahead")
        press(terminal, "y", r"1 change rejected, nothing is left pending\.")
    assert runner.bytes("a.py") == b"x = 1\n\n\nprint(x)\n"


def test_the_check_of_the_settings_runs_before_a_decision(
    history: CommandRunner, review: Review, tmp_path: Path
) -> None:
    own = {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    history.done("config", "set", "review.check", "echo what it said; grep -q zwei a", **own)
    with review(**own) as terminal:
        terminal.wait_for(prompt("2:1", "3:1"))
        said = press(terminal, "x", prompt("2:1", "3:1"))
        assert "Checking with `echo what it said; grep -q zwei a`; Ctrl-C stops it" in said
        assert "what it said\n" in said
        assert "failed with status 1 on a copy" in said
        press(terminal, "a", prompt("2:2"))
        terminal.type("q")
        terminal.wait_for_exit()
    assert history.statuses()["2:1"] is ACCEPTED
    assert "which succeeded" in history.done("show", "3").text


def test_ctrl_c_ends_a_check_and_decides_nothing(history: CommandRunner, review: Review, tmp_path: Path) -> None:
    own, note = {"XDG_CONFIG_HOME": str(tmp_path / "config")}, tmp_path / "pid"
    history.done("config", "set", "review.check", f"echo $$ > {note}; exec sleep 1000", **own)
    with review(**own) as terminal:
        terminal.wait_for(prompt("2:1", "3:1"))
        press(terminal, "x", "Ctrl-C stops it")
        pid = noted_pid(note)
        terminal.type("\x03")
        terminal.wait_for_exit()
    wait_until_gone(pid)
    assert history.statuses()["2:1"] is PENDING


def test_k_keeps_a_created_file_with_the_lines_of_others(runner: CommandRunner, review: Review) -> None:
    runner.write("new", b"top\nend\n")
    (runner.folder / "new").write_bytes(b"top\nmine\nend\n")
    runner.done("record")
    with review() as terminal:
        terminal.wait_for(prompt("1:0"))
        press(terminal, "x", r"keep the file with the lines of others \[k\]")
        press(terminal, "k", r"nothing is left pending\.")
    assert runner.bytes("new") == b"mine\n"


def test_a_change_decided_elsewhere_meanwhile_is_not_decided_again(history: CommandRunner, review: Review) -> None:
    with review() as terminal:
        terminal.wait_for(prompt("2:1", "3:1"))
        history.done("reject", "2:1", "3:1")
        assert "were decided elsewhere meanwhile" in press(terminal, "a", prompt("2:2"))
        press(terminal, "q", "left pending")
    assert history.statuses()["2:1"] is REJECTED


def test_an_edit_decided_elsewhere_meanwhile_is_named_by_its_number(runner: CommandRunner, review: Review) -> None:
    runner.write("f", b"1\n2\n3\n4\n5\n")
    runner.done("accept", "1")
    runner.write("f", b"1\nII\n3\nIV\n5\n")
    runner.write("f", b"1\nB\nC\nD\n5\n")
    with review() as terminal:
        terminal.wait_for(prompt("2:1", "2:2", "3:1"))
        runner.done("accept", "2")
        assert "Edit 2 was decided elsewhere meanwhile." in press(terminal, "a", r"Decide on \[3:1\] \[.*\] $")
        press(terminal, "q", "left pending")


def test_what_an_agent_adds_to_a_change_is_shown_before_it_is_decided(history: CommandRunner, review: Review) -> None:
    with review("a:2") as terminal:
        terminal.wait_for(prompt("2:1", "3:1"))
        history.write("a", history.bytes("a").replace(b"zwei", b"deux"), conversation="conv_two")
        assert "3 other changes are pending" in press(terminal, "a", AT_THE_END)
        press(terminal, "q", r"nothing of these is left pending, 3 other changes are\.")
    assert history.statuses()["5:1"] is PENDING


def test_what_was_rejected_while_changes_were_compared_is_not_accepted_unseen(
    history: CommandRunner, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    compared = 0
    master, terminal = pty.openpty()
    with os.fdopen(terminal) as typed, history.workspace() as workspace, Context(Command("review")):
        everything = partial(net_selection(workspace, ()).files, workspace)

        def select(at: Collection[str]) -> list[NetFile]:
            nonlocal compared
            found, compared = everything(at), compared + 1
            if compared == ONCE_BEGUN:
                history.done("reject", "2:1", "3:1")
            return found

        monkeypatch.setattr(sys, "stdin", typed)
        os.write(master, b"aq")
        with Keyboard() as keyboard:
            InProcess(workspace, keyboard, screen_for("never"), select, select).run()
    os.close(master)
    assert compared > ONCE_BEGUN
    assert "Decide on [2:1 3:1]" not in capfd.readouterr().out
    assert (history.statuses()["2:1"], history.statuses()["2:2"]) == (REJECTED, ACCEPTED)


def test_a_decision_asks_about_an_external_change(history: CommandRunner, review: Review) -> None:
    (history.folder / "a").write_bytes(history.bytes("a") + b"mine\n")
    with review() as terminal:
        terminal.wait_for(prompt("2:1", "3:1"))
        assert "+mine" in press(terminal, "x", r"\[K/d/a\] $")
        press(terminal, "k", prompt("2:2"))
    assert history.bytes("a") == FIRST.replace(b"eight", b"8") + b"mine\n"


def test_an_external_change_is_asked_about_once_if_more_goes_along(
    history: CommandRunner, review: Review, tmp_path: Path
) -> None:
    new = tmp_path / "new"
    new.write_bytes(history.bytes("a").replace(b"zwei", b"deux"))
    history.done("amend", "3", "--from", str(new))
    (history.folder / "a").write_bytes(history.bytes("a") + b"mine\n")
    with review() as terminal:
        terminal.wait_for(prompt("2:1", "3:1", "5:1"))
        press(terminal, "x", r"\[K/d/a\] $")
        assert "This rejects 3 edits, 1 of them accepted" in press(terminal, "k", r"Reject all of it.*\] $")
        press(terminal, "y", prompt("2:2"))
    assert history.bytes("a") == FIRST.replace(b"eight", b"8") + b"mine\n"


def test_changes_that_share_a_hunk_are_shown_and_decided_together(runner: CommandRunner, review: Review) -> None:
    runner.write("a", FIRST)
    runner.done("accept", "1")
    runner.edit("a", b"three\nfour\nfive\n", b"3\n4\n5\n")
    runner.edit("a", b"4\n", b"four\n")
    runner.edit("a", b"nine\n", b"9\n")
    with review() as terminal:
        shown = terminal.wait_for(prompt("2:1", "3:1"))
        assert "These 2 changes share hunks and are decided together; e shows the hunks.\n" in shown
        assert "-three\n+3\n" in shown
        assert "-five\n+5\n" in shown
        assert "+9" not in shown
        press(terminal, "x", prompt("4:1"))
        assert runner.bytes("a") == FIRST.replace(b"nine", b"9")
        press(terminal, "a", r"1 change accepted, 2 changes rejected, nothing is left pending\.")


def test_rejecting_the_deletion_of_a_file_restores_it(history: CommandRunner, review: Review) -> None:
    history.done("accept", "--all")
    history.delete("a")
    with review() as terminal:
        assert "deleted file" in terminal.wait_for(prompt("5:0"))
        press(terminal, "x", r"Restored a\n(?s:.*)1 change rejected, nothing is left pending\.")
    assert history.bytes("a") == FIRST.replace(b"two", b"zwei").replace(b"eight", b"8")


# ---- what has no net effect


def test_edits_that_cancel_out_are_decided_with_the_last_change_of_their_file(
    with_cancelled: CommandRunner, review: Review
) -> None:
    with review("a") as terminal:
        assert "cancel out" not in terminal.wait_for(prompt("2:1", "3:1"))
        shown = press(terminal, "a", prompt("2:2"))
        assert "# a: 2 edits cancel out [5:1 6:1]\n" in shown
        press(terminal, "a", AT_THE_END)
        press(
            terminal,
            "q",
            r"2 changes accepted, 0 changes rejected, nothing of these is left pending, 1 other change is",
        )
    assert with_cancelled.statuses()["5:1"] is ACCEPTED
    assert with_cancelled.statuses()["6:1"] is ACCEPTED


def test_edits_that_cancel_out_are_shown_and_decided_with_the_line_of_the_last_change_of_their_file(
    with_cancelled: CommandRunner, review: Review
) -> None:
    with_cancelled.done("accept", "1", "2:2")
    named = {"5:1", "6:1"}
    assert "# a: 2 edits cancel out [5:1 6:1]\n" in with_cancelled.done("diff", "a:2").text
    changed = with_cancelled.done("accept", "a:2", "--dry-run", "--json").json()["changed"]
    assert named < {change["name"] for change in changed}
    with review("a:2") as terminal:
        assert "# a: 2 edits cancel out [5:1 6:1]\n" in terminal.wait_for(prompt("2:1", "3:1"))
        press(terminal, "a", AT_THE_END)
        press(terminal, "q", r"1 change accepted, 0 changes rejected")
    assert {with_cancelled.statuses()[name] for name in named} == {ACCEPTED}


def test_a_file_in_which_all_edits_cancel_out_is_one_question(runner: CommandRunner, review: Review) -> None:
    runner.write("a", FIRST)
    runner.done("accept", "1")
    runner.write("a", FIRST + b"ten\n")
    runner.write("a", FIRST)
    with review() as terminal:
        shown = terminal.wait_for(prompt("2:1", "3:1"))
        assert "# a: 2 edits cancel out [2:1 3:1]\n" in shown
        press(terminal, "a", r"nothing is left pending\.")
    assert PENDING not in runner.statuses().values()


def test_an_edit_that_a_person_took_out_can_only_be_rejected(runner: CommandRunner, review: Review) -> None:
    runner.write("a", FIRST)
    runner.done("accept", "1")
    runner.write("a", FIRST + b"ten\n")
    (runner.folder / "a").write_bytes(FIRST)
    runner.done("record")
    with review() as terminal:
        shown = terminal.wait_for(prompt("2:1"))
        assert "# a: 1 edit was taken out by later accepted changes [2:1]\n" in shown
        assert "because you took it out" in press(terminal, "a", prompt("2:1"))
        press(terminal, "x", r"nothing is left pending\.")
    assert runner.statuses()["2:1"] is Status.REJECTED


# ---- groups


def test_a_decision_on_the_last_file_can_be_undone(with_cancelled: CommandRunner, review: Review) -> None:
    now = with_cancelled.bytes("a")
    with review("a") as terminal:
        terminal.wait_for(prompt("2:1", "3:1"))
        assert "File a: 2 changes in 1 file. " in press(terminal, "f", GROUP)
        shown = press(terminal, "x", AT_THE_END)
        assert "Rejected 2 changes in a.\n" in shown
        assert "u undoes that.\n" in shown
        assert with_cancelled.bytes("a") == FIRST
        press(terminal, "u", prompt("2:1", "3:1"))
        assert with_cancelled.bytes("a") == now
        press(terminal, "f", GROUP)
        press(terminal, "a", AT_THE_END)
        press(terminal, "\n", r"2 changes accepted, 0 changes rejected, nothing of these is left pending")
        assert terminal.wait_for_exit() == 0
    assert with_cancelled.statuses()["6:1"] is ACCEPTED


def test_what_a_person_took_out_of_a_file_is_not_counted_as_accepted(runner: CommandRunner, review: Review) -> None:
    for name in "ab":
        runner.write(name, FIRST)
    runner.done("accept", "--all")
    one, two = (TurnInfo(session=f"session {number}", began=number * 1_000_000) for number in (1, 2))
    runner.call(lambda call: call.write("a", FIRST + b"ten\n"), conversation="conv_one", turn=one)
    runner.call(lambda call: call.write("b", FIRST + b"ten\n"), conversation="conv_one", turn=one)
    (runner.folder / "b").unlink()
    runner.done("record")
    runner.call(lambda call: call.write("b", b"again\n"), conversation="conv_two", turn=two)
    with review("--turn", "1") as terminal:
        terminal.wait_for(r"Decide on \[.*\] $")
        assert ": 2 changes in 2 files. " in press(terminal, "t", GROUP)
        shown = press(terminal, "a", r"Decide on \[.*\] $")
        assert "Accepted 1 change of turn 1.\n" in shown
        assert "stays pending: its change is not in the file any more" in shown


def test_the_turn_of_a_change_without_one_is_its_session_as_it_is_known_now(
    runner: CommandRunner, review: Review
) -> None:
    runner.done("record")
    one, two = ClaudeCode(runner.folder, "one"), ClaudeCode(runner.folder, "two")
    for agent in (one, two):
        agent.start()
    one.write("before", "no prompt yet\n")  # 1
    calls = [agent.another_call(is_shell=True) for agent in (one, two)]
    for agent, (begins, _) in zip((one, two), calls, strict=True):
        agent.tell(begins)
    for name in "ab":  # 2 and 3: of either agent
        (runner.folder / name).write_text("text\n")
    for agent, (_, ends) in zip((one, two), calls, strict=True):
        agent.tell(ends)
    with review("a") as terminal:
        terminal.wait_for(prompt("2:0"))
        shown = press(terminal, "t", prompt("2:0"))
        assert "No turn or session is known that made this change." in shown
    runner.done("claim", "2", "--session", "1")
    with review("a") as terminal:
        terminal.wait_for(prompt("2:0"))
        assert "Session claude-code 1: 2 changes in 2 files. " in press(terminal, "t", GROUP)
        press(terminal, "x", AT_THE_END)
    assert runner.statuses() == {"1:0": Status.REJECTED, "2:0": Status.REJECTED, "3:0": PENDING}


def test_a_group_decision_shows_what_is_left(history: CommandRunner, review: Review) -> None:
    with review() as terminal:
        terminal.wait_for(prompt("2:1", "3:1"))
        press(terminal, "J", prompt("4:0"))
        shown = press(terminal, "t", GROUP)
        assert "Session agent 3: 2 changes in 2 files. " in shown
        press(terminal, "q", prompt("4:0"))
        press(terminal, "f", GROUP)
        shown = press(terminal, "a", prompt("2:1", "3:1"))
        assert "Accepted 1 change in b.\nu undoes that.\n" in shown
        press(terminal, "q", "1 change accepted, 0 changes rejected, 2 changes left pending in 1 file")
    assert history.statuses()["2:1"] is PENDING


def prepare_two_turns(runner: CommandRunner) -> None:
    with runner.workspace() as workspace:
        for began, prompt_text, paths in ((1, "Write two files", "ab"), (2, "Write another", "c")):
            turn = TurnInfo(session="run", began=began, prompt=prompt_text, client="claude")
            for path in paths:
                with workspace.call(CallInfo(tool="write", conversation="run", turn=turn)) as call:
                    call.write(path, b"one\n")
                    call.commit()


@pytest.fixture
def two_turns(runner: CommandRunner) -> CommandRunner:
    """Return a workspace in which turn 1 wrote files a and b, and turn 2 wrote file c."""
    return runner.prepared(prepare_two_turns)


@pytest.mark.usefixtures("two_turns")
@pytest.mark.parametrize(
    ("options", "units"),
    [(["--turn", "2"], ["3:0"]), (["--turn", "1", "b"], ["2:0"]), (["--session", "1", "c:1"], ["3:0"])],
    ids=str,
)
def test_a_turn_or_session_narrows_the_review(review: Review, options: list[str], units: list[str]) -> None:
    with review(*options) as terminal:
        terminal.wait_for(prompt(*units))
        press(terminal, "a", AT_THE_END)
        press(
            terminal, "\n", "1 change accepted, 0 changes rejected, nothing of these is left pending, 2 other changes"
        )


def test_a_turn_is_named_by_its_prompt_and_decided_at_once(two_turns: CommandRunner, review: Review) -> None:
    with review() as terminal:
        assert 'turn 1  claude 1  "Write two files"  edit 1\n' in terminal.wait_for(prompt("1:0"))
        assert 'Turn 1  "Write two files": 2 changes in 2 files. ' in press(terminal, "t", GROUP)
        assert 'turn 2  claude 1  "Write another"  edit 3\n' in press(terminal, "x", prompt("3:0"))
        assert not (two_turns.folder / "b").exists()
        press(terminal, "u", prompt("1:0"))
        press(terminal, "q", "3 changes left pending in 3 files")
    assert (two_turns.folder / "b").exists()


def test_the_whole_turn_is_the_one_that_the_review_was_asked_for(two_turns: CommandRunner, review: Review) -> None:
    with two_turns.workspace() as workspace:
        turn = TurnInfo(session="run", began=2, prompt="Write another", client="claude")
        with workspace.call(CallInfo(tool="write", conversation="run", turn=turn)) as call:
            call.write("a", b"one\ntwo\n")
            call.commit()
    with review("--turn", "1") as terminal:
        terminal.wait_for(prompt("1:0", "4:1"))
        assert "Turn 1 " in press(terminal, "t", GROUP)
        press(terminal, "q", prompt("1:0", "4:1"))
        press(terminal, "q", "left pending")
    with review("a") as terminal:
        terminal.wait_for(prompt("1:0", "4:1"))
        assert "Turn 2 " in press(terminal, "t", GROUP)
        press(terminal, "a", prompt("1:0"))
        press(terminal, "q", "left pending")
    statuses = two_turns.statuses()
    assert {name for name, status in statuses.items() if status is ACCEPTED} == {"3:0", "4:1"}


def test_rejecting_a_turn_lists_its_accepted_edits_first(two_turns: CommandRunner, review: Review) -> None:
    two_turns.done("accept", "1")
    with review("--turn", "1") as terminal:
        terminal.wait_for(prompt("2:0"))
        shown = press(terminal, "t", GROUP)
        assert "1 change in 1 file. Accept [a] or reject [x] all and 1 accepted edit (edit 1)" in shown
        press(terminal, "x", AT_THE_END)
        press(terminal, "q", "1 change rejected")
    assert not (two_turns.folder / "a").exists()


def test_after_the_last_change_of_a_turn_the_review_goes_on_with_the_others(
    two_turns: CommandRunner, review: Review
) -> None:
    with review("--turn", "1") as terminal:
        terminal.wait_for(prompt("1:0"))
        press(terminal, "a", prompt("2:0"))
        shown = press(terminal, "a", AT_THE_END)
        assert "Nothing of these is left; 1 other change is pending: go on with them [j]" in shown
        assert "\n3 of 3  Decide on" in press(terminal, "j", prompt("3:0"))
        press(terminal, "a", r"3 changes accepted, 0 changes rejected, nothing is left pending\.")
    assert set(two_turns.statuses().values()) == {ACCEPTED}


# ---- other keys


def test_single_edits_of_a_change_are_shown_and_decided_one_by_one(history: CommandRunner, review: Review) -> None:
    with review() as terminal:
        terminal.wait_for(prompt("2:1", "3:1"))
        shown = press(terminal, "e", single("2:1"))
        assert "(single edit 1 of 2)" in shown
        assert "-two\n+2\n" in shown
        assert "-2\n+zwei\n" in press(terminal, "j", single("3:1"))
        assert "-two\n+zwei\n" in press(terminal, "e", prompt("2:1", "3:1"))
        press(terminal, "e", single("2:1"))
        press(terminal, "a", single("3:1"))
        assert "\n2 of 3  Decide on" in press(terminal, "x", prompt("2:2"))
        assert history.bytes("a") == FIRST.replace(b"two", b"2").replace(b"eight", b"8")
        press(terminal, "u", single("3:1"))
        press(terminal, "u", single("2:1"))
        press(terminal, "q", "3 changes left pending")


def test_a_change_of_which_edits_were_decided_differently_counts_as_decided_in_part(
    history: CommandRunner, review: Review
) -> None:
    with review("a") as terminal:
        terminal.wait_for(prompt("2:1", "3:1"))
        press(terminal, "e", single("2:1"))
        press(terminal, "a", single("3:1"))
        press(terminal, "x", prompt("2:2"))
        press(terminal, "q", "0 changes accepted, 0 changes rejected, 1 change decided in part, 1 change left pending")
    assert (history.statuses()["2:1"], history.statuses()["3:1"]) == (ACCEPTED, REJECTED)


def test_a_change_of_one_hunk_is_split(runner: CommandRunner, review: Review) -> None:
    runner.write("a", b"top\nred = 1\ngreen = 2\nend\n")
    runner.done("accept", "1")
    runner.write("a", b"top\nred = 10\ngreen = 20\nend\n")
    with review() as terminal:
        terminal.wait_for(prompt("2:1"))
        assert "-red = 1\n+red = 10\nPart of 2:1" in press(terminal, "s", r"Part of .*\] $")
        press(terminal, "a", r"-green = 2\n\+green = 20\nPart of .*\] $")
        press(terminal, "x", "Accepted edit 2")
    assert runner.bytes("a") == b"top\nred = 10\ngreen = 2\nend\n"


@pytest.mark.usefixtures("history")
def test_search_back_and_view_keys(review: Review) -> None:
    with review(PAGER="cat") as terminal:
        terminal.wait_for(prompt("2:1", "3:1"))
        press(terminal, "k", "No change before this one is pending")
        press(terminal, "/", "Search for:")
        press(terminal, "OTHER\n", prompt("4:0"))
        press(terminal, "n", "It is in no other pending change(?s:.*)" + prompt("4:0"))
        press(terminal, "k", prompt("2:2"))
        press(terminal, "k", prompt("2:1", "3:1"))
        shown = press(terminal, "v", prompt("2:1", "3:1"))
        assert "+8\n" in shown
        press(terminal, "/", "Search for:")
        press(terminal, "nowhere\n", "No pending change holds nowhere")


@pytest.mark.usefixtures("history")
def test_help_lists_every_key_and_escape_prints_nothing(review: Review) -> None:
    with review(COLUMNS="120") as terminal:
        terminal.wait_for(prompt("2:1", "3:1"))
        shown = press(terminal, "?", prompt("2:1", "3:1"))
        keys = {**KEYS, **TERMINAL_KEYS}
        assert all(
            re.search(rf"^  {re.escape(key if key.strip() else 'Space')} +{re.escape(keys[key])}$", shown, re.MULTILINE)
            for key in keys
        )
        assert set(ASKED.split(",")) < set(keys)
        assert "x1b" not in press(terminal, "\x1b", "Press \\? for")


@pytest.mark.usefixtures("history")
@pytest.mark.parametrize("columns", [40, 80])
def test_help_is_wrapped_between_words_on_a_narrow_terminal(review: Review, columns: int) -> None:
    with review(COLUMNS=str(columns)) as terminal:
        terminal.wait_for(prompt("2:1", "3:1"))
        shown = press(terminal, "?", prompt("2:1", "3:1"))
        rows = [row for row in shown.splitlines() if row.startswith("  ")]
        assert [row for row in rows if len(row) > columns] == []
        said = " ".join(" ".join(rows).split())
        assert all(meaning in said for meaning in {**KEYS, **TERMINAL_KEYS}.values())


@pytest.mark.usefixtures("history")
def test_an_edit_narrows_the_review_to_its_changes(review: Review) -> None:
    with review("3") as terminal:
        assert "file 1 of 1, 1 change left" in terminal.wait_for(prompt("2:1", "3:1"))
        press(terminal, "a", AT_THE_END)
        press(terminal, "q", r"nothing of these is left pending, 2 other changes are\.")


@pytest.mark.usefixtures("history")
def test_a_conversation_narrows_the_review_to_the_changes_that_it_is_part_of(review: Review) -> None:
    with review("--conversation", "conv_one") as terminal:
        terminal.wait_for(prompt("2:1", "3:1"))
        press(terminal, "a", prompt("2:2"))
        press(terminal, "a", AT_THE_END)
        press(terminal, "q", "nothing of these is left pending, 1 other change is")


@pytest.mark.usefixtures("history")
def test_both_sides_of_a_change_are_shown_in_columns(review: Review) -> None:
    with review("-y") as terminal:
        assert re.search(r"two +.*zwei\n", terminal.wait_for(prompt("2:1", "3:1")))


def test_a_question_names_few_of_many_hunks(runner: CommandRunner, review: Review) -> None:
    runner.write("a", FIRST)
    runner.done("accept", "1")
    for now, then in ((b"two", b"2"), (b"2", b"II"), (b"II", b"B"), (b"B", b"zwei")):
        runner.edit("a", now, then)
    with review() as terminal:
        terminal.wait_for(prompt("2:1", "3:1", "4:1", "and", "1", "more"))
        press(terminal, "x", r"1 change rejected, nothing is left pending\.")
    assert runner.bytes("a") == FIRST


def test_amending_shows_the_change_as_it_is_now(history: CommandRunner, review: Review, tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i s/zwei/deux/ "$1"\n')
    editor.chmod(0o755)
    with review(EDITOR=str(editor)) as terminal:
        terminal.wait_for(prompt("2:1", "3:1"))
        assert "+deux\n" in press(terminal, "E", prompt("2:1", "3:1", "5:1"))
        assert "+zwei\n" in press(terminal, "u", prompt("2:1", "3:1"))
        press(terminal, "q", "left pending")
    assert b"zwei" in history.bytes("a")


def test_a_binary_file_shows_its_sizes(runner: CommandRunner, review: Review) -> None:
    runner.write("a", b"\0\1\2")
    runner.done("accept", "1")
    runner.write("a", b"\0\1\2\3\4")
    with review() as terminal:
        assert "3 bytes -> 5 bytes" in terminal.wait_for(prompt("2:[01]"))
        press(terminal, "x", r"1 change rejected, nothing is left pending\.")
    assert runner.bytes("a") == b"\0\1\2"


@pytest.mark.usefixtures("runner")
def test_a_review_with_nothing_pending_says_so(review: Review) -> None:
    with review() as terminal:
        terminal.wait_for("Nothing is pending")
        assert terminal.wait_for_exit() == 0
