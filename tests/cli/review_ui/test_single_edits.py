"""A review of single edits in a real terminal: press keys, then check the screen, the files and the journal."""

import signal
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from cli.render.zoom import height, screenful
from objstore import Call, Hunk, Operation, Status, TextForm, encoded
from tests.support.command_runner import CommandRunner
from tests.support.sampling import sampled_product
from tests.support.terminal_driver import TERMINALS, TerminalDriver, run_in_terminal

PROMPT = r"Decide on {} \[.*\] $"
AT_THE_END = r"Nothing (else|of these) is left.*\] $"
GROUP = r"Accept \[a\] or reject \[x\] all.*\] $"
PENDING, ACCEPTED, REJECTED = Status.PENDING, Status.ACCEPTED, Status.REJECTED

FIRST = b"one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n"

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
            request.param, "review", "--each", *words, folder=runner.folder, scratch=scratch, **(settings | more)
        )

    return begin


def record_history(runner: CommandRunner) -> None:
    runner.write("a", FIRST, conversation="conv_one")

    def two_hunks(call: Call) -> None:
        call.write("a", FIRST.replace(b"two", b"2").replace(b"eight", b"8"), operation=Operation.EDIT)

    runner.call(two_hunks, conversation="conv_one", tool="edit_file_diff")
    runner.write("b", b"other\n", conversation="conv_two")


@pytest.fixture
def history(runner: CommandRunner) -> CommandRunner:
    """Return a workspace where edit 1 created file a, edit 2 changed it in two places, and edit 3 created file b."""
    return runner.prepared(record_history)


def prompt_for(unit: str) -> str:
    return PROMPT.format(unit)


def press(terminal: TerminalDriver, keys: str, then: str) -> str:
    terminal.type(keys)
    return terminal.wait_for(then)


# ---- decisions


@pytest.mark.parametrize("review", TERMINALS, indirect=True)
def test_one_key_decides_a_hunk_and_shows_the_next(history: CommandRunner, review: Review) -> None:
    with review() as terminal:
        shown = terminal.wait_for(prompt_for("1:0"))
        assert "edit 1  create  a  (single edit 1 of 3)" in shown
        assert "+three" in shown
        shown = press(terminal, "a", prompt_for("2:1"))
        assert "Accepted edit 1." in shown
        assert "-two\n+2\n" in shown
        assert "Rewrote a" in press(terminal, "x", prompt_for("2:2"))
        assert history.bytes("a") == FIRST.replace(b"eight", b"8")
        press(terminal, "a", prompt_for("3:0"))
        terminal.type("x")
        assert (
            "0 changes accepted, 1 change rejected, 1 change decided in part, nothing is left pending."
            in terminal.wait_for("pending\\.")
        )
        assert terminal.wait_for_exit() == 0
    assert history.statuses() == {"1:0": ACCEPTED, "2:1": REJECTED, "2:2": ACCEPTED, "3:0": REJECTED}
    assert not (history.folder / "b").exists()


@pytest.mark.parametrize("review", TERMINALS, indirect=True)
def test_decisions_survive_a_kill_and_the_next_review_continues(history: CommandRunner, review: Review) -> None:
    with review() as terminal:
        terminal.wait_for(prompt_for("1:0"))
        press(terminal, "a", prompt_for("2:1"))
        press(terminal, "j", prompt_for("2:2"))
        press(terminal, "x", prompt_for("3:0"))
        terminal.kill()
    assert history.statuses() == {"1:0": ACCEPTED, "2:1": PENDING, "2:2": REJECTED, "3:0": PENDING}
    with review() as terminal:
        # The review begins with what was not seen as a change; 2:1 is shown when nothing else is left.
        terminal.wait_for(prompt_for("2:1"))
        press(terminal, "j", prompt_for("3:0"))
        press(terminal, "a", prompt_for("2:1"))
        press(terminal, "q", "1 change left pending")
        assert terminal.wait_for_exit() == 0


def test_ctrl_c_exits_with_130_and_keeps_decisions(history: CommandRunner, review: Review) -> None:
    with review() as terminal:
        terminal.wait_for(prompt_for("1:0"))
        press(terminal, "a", prompt_for("2:1"))
        terminal.type("\x03")
        assert terminal.wait_for_exit() == 130
    assert history.statuses()["1:0"] is ACCEPTED


def test_a_reason_is_recorded(history: CommandRunner, review: Review) -> None:
    with review("3") as terminal:
        terminal.wait_for(prompt_for("3:0"))
        press(terminal, "X", "Reason:")
        press(terminal, "not asked for\n", AT_THE_END)
    assert history.cas("log", "--json", "-n", "1").json()["reason"] == "not asked for"


def test_a_comment_is_recorded_and_shown_below_its_hunk(history: CommandRunner, review: Review) -> None:
    history.done("accept", "1")
    with review("2") as terminal:
        terminal.wait_for(prompt_for("2:1"))
        press(terminal, "c", "Comment:")
        shown = press(terminal, "why a digit?\n", prompt_for("2:1"))
        assert "Recorded comment 1." in shown
        assert "\n    why a digit?\n" in shown
        assert "why a digit?" not in press(terminal, "j", prompt_for("2:2"))
        press(terminal, "q", "left pending")
    assert [view["hunks"] for view in history.cas("comment", "--json").lines()] == [["2:1"]]


def test_an_empty_reason_rejects_nothing(history: CommandRunner, review: Review) -> None:
    with review("3") as terminal:
        terminal.wait_for(prompt_for("3:0"))
        press(terminal, "X", "Reason:")
        press(terminal, "\n", prompt_for("3:0"))
        press(terminal, "q", "pending")
    assert history.statuses()["3:0"] is PENDING


def test_undo_reverts_the_decisions_of_this_review_and_then_those_before_it(
    history: CommandRunner, review: Review
) -> None:
    history.done("accept", "3")
    with review() as terminal:
        terminal.wait_for(prompt_for("1:0"))
        press(terminal, "a", prompt_for("2:1"))
        press(terminal, "x", prompt_for("2:2"))
        assert "+2" in press(terminal, "u", prompt_for("2:1"))
        assert history.bytes("a") == FIRST.replace(b"two", b"2").replace(b"eight", b"8")
        press(terminal, "u", prompt_for("1:0"))
        press(terminal, "u", prompt_for("3:0"))
        press(terminal, "q", "2 changes left pending")
    assert set(history.statuses().values()) == {PENDING}


def test_undo_is_refused_after_a_decision_by_another_process(history: CommandRunner, review: Review) -> None:
    with review() as terminal:
        terminal.wait_for(prompt_for("1:0"))
        press(terminal, "a", prompt_for("2:1"))
        history.done("reject", "3")
        press(terminal, "u", "Something else was decided since")
    assert history.statuses()["3:0"] is REJECTED


def test_undo_is_refused_after_another_process_decided_the_same_hunk(history: CommandRunner, review: Review) -> None:
    with review() as terminal:
        terminal.wait_for(prompt_for("1:0"))
        press(terminal, "j", prompt_for("2:1"))
        press(terminal, "a", prompt_for("2:2"))
        history.done("reject", "2:1", "--reason", "a secret in it")
        press(terminal, "u", "Something else was decided since")
    assert history.statuses()["2:1"] is REJECTED


def test_undo_asks_about_an_external_change(history: CommandRunner, review: Review) -> None:
    history.done("accept", "1")
    with review("2") as terminal:
        terminal.wait_for(prompt_for("2:1"))
        press(terminal, "x", prompt_for("2:2"))
        (history.folder / "a").write_bytes(FIRST.replace(b"eight", b"8") + b"mine\n")
        press(terminal, "u", r"Keep .*, drop .*, or abort.*$")
        press(terminal, "a", "That can't be undone now")
        assert history.statuses()["2:1"] is REJECTED
        press(terminal, "u", r"Keep .*, drop .*, or abort.*$")
        press(terminal, "k", prompt_for("2:1"))
    assert history.bytes("a") == FIRST.replace(b"two", b"2").replace(b"eight", b"8") + b"mine\n"


def test_rejecting_a_hunk_asks_about_its_dependents(history: CommandRunner, review: Review) -> None:
    with review() as terminal:
        terminal.wait_for(prompt_for("1:0"))
        press(terminal, "x", r"leave it \[any other key\]")
        press(terminal, "s", prompt_for("1:0"))
        assert (history.folder / "a").exists()
        press(terminal, "x", r"leave it \[any other key\]")
        press(terminal, "y", prompt_for("3:0"))
    assert not (history.folder / "a").exists()
    assert history.statuses()["2:2"] is REJECTED


def test_a_decision_asks_about_an_external_change(history: CommandRunner, review: Review) -> None:
    (history.folder / "a").write_bytes(history.bytes("a") + b"mine\n")
    with review() as terminal:
        terminal.wait_for(prompt_for("1:0"))
        assert "+mine" in press(terminal, "a", r"\[K/d/a\] $")
        press(terminal, "a", prompt_for("1:0"))
        press(terminal, "a", r"\[K/d/a\] $")
        press(terminal, "y", prompt_for("2:1"))
        press(terminal, "x", prompt_for("2:2"))
    assert history.bytes("a") == FIRST.replace(b"eight", b"8") + b"mine\n"


# ---- groups


# ---- splitting and amending


def test_a_hunk_is_split_and_each_part_decided(runner: CommandRunner, review: Review) -> None:
    runner.write("a", b"top\nred = 1\ngreen = 2\nend\n")
    runner.done("accept", "1")
    runner.write("a", b"top\nred = 10\ngreen = 20\nblue = 30\nend\n")
    with review() as terminal:
        terminal.wait_for(prompt_for("2:1"))
        assert "-red = 1\n+red = 10\nPart of 2:1" in press(terminal, "s", r"Part of .*\] $")
        press(terminal, "a", r"-green = 2\n\+green = 20\nPart of .*\] $")
        press(terminal, "x", r"Recorded edit 3, which amends edit 2(?s:.*)Part of .*\] $")
        assert runner.bytes("a") == b"top\nred = 10\ngreen = 2\nblue = 30\nend\n"
        press(terminal, "a", "nothing is left pending")
    assert runner.bytes("a") == b"top\nred = 10\ngreen = 2\nblue = 30\nend\n"
    assert runner.statuses()["2:1"] is ACCEPTED
    runner.done("reject", "3")
    assert runner.bytes("a") == b"top\nred = 10\ngreen = 20\nblue = 30\nend\n"


@pytest.mark.parametrize("form", [TextForm.CR, TextForm.UTF16_LE, TextForm.UTF16_BE_CR])
def test_a_hunk_of_another_encoding_is_split(runner: CommandRunner, review: Review, form: TextForm) -> None:
    runner.write("a", encoded(b"top\nred = 1\ngreen = 2\nend\n", form))
    runner.done("accept", "1")
    runner.write("a", encoded(b"top\nred = 10\ngreen = 20\nend\n", form))
    with review() as terminal:
        terminal.wait_for(prompt_for("2:1"))
        press(terminal, "s", r"Part of .*\] $")
        press(terminal, "a", r"-green = 2\n\+green = 20\nPart of .*\] $")
        press(terminal, "x", "nothing is left pending")
    assert runner.bytes("a") == encoded(b"top\nred = 10\ngreen = 2\nend\n", form)


@pytest.mark.parametrize(
    ("inserted", "keys", "remaining"),
    [
        (b"a\nx\n", "ax", b"a\n"),
        (b"x\nx\n", "ax", b"x\n"),
        (b"x\nx\n", "xa", b"x\n"),
        (b"x\nx\n", "xx", b""),
    ],
)
def test_rejecting_a_part_removes_the_hunks_line_and_not_an_equal_line_below_it(
    runner: CommandRunner, review: Review, inserted: bytes, keys: str, remaining: bytes
) -> None:
    (runner.folder / "a").write_bytes(b"top\nx\n" + FIRST)
    rest = b"x\n" + FIRST.replace(b"eight", b"8")

    def change(call: Call) -> None:
        hunks = [Hunk(1, 0, 1, 2), Hunk(9, 1, 11, 1)]
        call.write("a", b"top\n" + inserted + rest, hunks=hunks, operation=Operation.EDIT)

    runner.call(change)
    with review() as terminal:
        terminal.wait_for(prompt_for("1:1"))
        press(terminal, "s", r"Part of .*\] $")
        press(terminal, keys[0], r"Part of .*\] $")
        press(terminal, keys[1], prompt_for("1:2"))
        press(terminal, "q", "left pending")
    assert runner.bytes("a") == b"top\n" + remaining + rest
    runner.done("reject", "1:1")
    assert runner.bytes("a") == b"top\n" + rest


def test_a_write_between_two_parts_of_a_hunk_is_kept(runner: CommandRunner, review: Review) -> None:
    runner.write("a", b"top\nred = 1\ngreen = 2\nend\n")
    runner.done("accept", "1")
    runner.write("a", b"top\nred = 10\ngreen = 20\nend\n")
    later = b"top\nred = 10\ngreen = 20\nend\nlater\n"
    with review() as terminal:
        terminal.wait_for(prompt_for("2:1"))
        press(terminal, "s", r"Part of .*\] $")
        runner.write("a", later)
        press(terminal, "x", "File changed on disk since it was read")
        assert runner.bytes("a") == later
    assert runner.statuses() == {"1:0": ACCEPTED, "2:1": PENDING, "3:1": PENDING}


def test_a_hunk_is_split_in_a_file_with_an_external_change(runner: CommandRunner, review: Review) -> None:
    runner.write("a", b"top\nred = 1\ngreen = 2\nend\n" + FIRST)
    runner.done("accept", "1")
    runner.write("a", b"top\nred = 10\ngreen = 20\nend\n" + FIRST)
    mine = FIRST + b"mine\n"
    (runner.folder / "a").write_bytes(b"top\nred = 10\ngreen = 20\nend\n" + mine)
    with review() as terminal:
        terminal.wait_for(prompt_for("2:1"))
        press(terminal, "s", r"-red = 1\n\+red = 10\nPart of .*\] $")
        press(terminal, "a", r"-green = 2\n\+green = 20\nPart of .*\] $")
        press(terminal, "a", r"Keep .*, drop .*, or abort.*$")
        press(terminal, "a", "Left as it is")
        press(terminal, "s", r"-red = 1\n\+red = 10\nPart of .*\] $")
        press(terminal, "x", r"-green = 2\n\+green = 20\nPart of .*\] $")
        assert runner.bytes("a") == b"top\nred = 1\ngreen = 20\nend\n" + mine
        press(terminal, "a", "1 change accepted, 0 changes rejected, nothing is left pending")
    assert runner.statuses() == {"1:0": ACCEPTED, "2:1": ACCEPTED, "3:1": ACCEPTED, "4:1": ACCEPTED}


def test_a_hunk_whose_parts_are_all_rejected_is_rejected_without_a_question(
    runner: CommandRunner, review: Review
) -> None:
    before = b"top\nred = 1\ngreen = 2\nend\n" + FIRST
    runner.write("a", before)
    runner.done("accept", "1")
    after = before.replace(b"red = 1", b"red = 10").replace(b"green = 2", b"green = 20").replace(b"eight", b"8")
    runner.write("a", after)
    with review() as terminal:
        terminal.wait_for(prompt_for("2:1"))
        press(terminal, "s", r"-red = 1\n\+red = 10\nPart of .*\] $")
        press(terminal, "x", r"-green = 2\n\+green = 20\nPart of .*\] $")
        press(terminal, "x", prompt_for("2:2"))
    assert runner.bytes("a") == before.replace(b"eight", b"8")
    assert runner.statuses() == {"1:0": ACCEPTED, "2:1": REJECTED, "2:2": PENDING, "3:1": REJECTED, "4:1": REJECTED}


@pytest.mark.parametrize("deleted", [b"A\nB\n", b"A\nB\nC\n"])
def test_a_deletion_whose_parts_are_all_rejected_restores_each_line_once(
    runner: CommandRunner, review: Review, deleted: bytes
) -> None:
    (runner.folder / "a").write_bytes(FIRST + deleted + b"end\n")
    after = FIRST.replace(b"two", b"2")
    runner.call(lambda call: call.write("a", after + b"end\n", operation=Operation.EDIT), tool="edit_file_diff")
    with review() as terminal:
        terminal.wait_for(prompt_for("1:1"))
        press(terminal, "a", prompt_for("1:2"))
        press(terminal, "s", r"Part of .*\] $")
        for _ in deleted.split()[1:]:
            press(terminal, "x", r"Part of .*\] $")
        press(terminal, "x", "nothing is left pending")
    assert runner.bytes("a") == after + deleted + b"end\n"
    amendments = [f"{seq}:1" for seq in range(2, 2 + len(deleted.split()))]
    assert runner.statuses() == {"1:1": ACCEPTED} | dict.fromkeys(["1:2", *amendments], REJECTED)


@pytest.mark.usefixtures("history")
def test_a_hunk_with_one_part_cannot_be_split(review: Review) -> None:
    with review() as terminal:
        terminal.wait_for(prompt_for("1:0"))
        press(terminal, "s", "Can't split 1:0: it is not a change of lines.")
        press(terminal, "a", prompt_for("2:1"))
        press(terminal, "s", "Can't split 2:1: it has only one part.")


def test_splitting_a_hunk_that_a_later_edit_changed_is_refused_with_that_edit(
    runner: CommandRunner, review: Review
) -> None:
    (runner.folder / "a").write_bytes(FIRST)
    runner.edit("a", b"two\n", b"2\n2b\n")
    runner.edit("a", b"2\n2b\n", b"II\nIIb\n")
    with review("1") as terminal:
        terminal.wait_for(prompt_for("1:1"))
        press(terminal, "s", r"Can't split 1:1: edit 2 changed these lines later\.")


def test_editing_a_hunk_records_an_amendment(history: CommandRunner, review: Review, tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i s/^2$/II/ "$1"\n')
    editor.chmod(0o755)
    history.done("accept", "1")
    with review("2", EDITOR=str(editor), VISUAL=str(editor)) as terminal:
        terminal.wait_for(prompt_for("2:1"))
        press(terminal, "E", r"Recorded edit 4, which amends edit 2(?s:.*)" + prompt_for("2:1"))
        assert history.bytes("a").startswith(b"one\nII\n")
        press(terminal, "u", prompt_for("2:1"))
        assert history.bytes("a").startswith(b"one\n2\n")


def test_undo_continues_to_decisions_before_an_amendment(
    history: CommandRunner, review: Review, tmp_path: Path
) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i -e s/^8$/VIII/ -e s/^2$/II/ "$1"\n')
    editor.chmod(0o755)
    history.done("accept", "1")
    with review("2", "3", EDITOR=str(editor), VISUAL=str(editor)) as terminal:
        terminal.wait_for(prompt_for("2:1"))
        press(terminal, "x", prompt_for("2:2"))
        press(terminal, "E", "Recorded edit 4(?s:.*)" + prompt_for("2:2"))
        press(terminal, "u", prompt_for("2:2"))
        press(terminal, "u", prompt_for("2:1"))
        assert history.bytes("a") == FIRST.replace(b"two", b"2").replace(b"eight", b"8")
        press(terminal, "a", prompt_for("2:2"))
        press(terminal, "E", "Recorded edit 5(?s:.*)" + prompt_for("2:2"))
        press(terminal, "u", prompt_for("2:2"))
        history.done("reject", "3")
        press(terminal, "u", "Something else was decided since")
        history.done("undo")
        press(terminal, "u", prompt_for("2:1"))
        press(terminal, "u", r"Undid the acceptance of edit 1\.(?s:.*)" + prompt_for("1:0"))
    assert history.statuses() == {
        "1:0": PENDING, "2:1": PENDING, "2:2": PENDING, "3:0": PENDING,
        "4:1": REJECTED, "5:1": REJECTED, "5:2": REJECTED,
    }  # fmt: skip


def test_undo_of_an_amendment_that_another_process_rejected_waits_for_the_undo_of_that(
    history: CommandRunner, review: Review, tmp_path: Path
) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i s/^2$/II/ "$1"\n')
    editor.chmod(0o755)
    with review(EDITOR=str(editor), VISUAL=str(editor)) as terminal:
        terminal.wait_for(prompt_for("1:0"))
        press(terminal, "a", prompt_for("2:1"))
        press(terminal, "E", "Recorded edit 4")
        history.done("reject", "4")
        press(terminal, "u", "Something else was decided since")
        history.done("undo")
        press(terminal, "u", "Undid the amendment(?s:.*)" + prompt_for("2:1"))
        press(terminal, "u", prompt_for("1:0"))
    assert history.statuses()["1:0"] is PENDING


def test_the_edited_text_is_saved_when_the_file_changed_meanwhile(
    history: CommandRunner, review: Review, tmp_path: Path
) -> None:
    editor = tmp_path / "editor"
    editor.write_text(f'#!/bin/sh\nsed -i s/^2$/II/ "$1"\nsed -i s/^2$/zwei/ "{history.folder / "a"}"\n')
    editor.chmod(0o755)
    history.done("accept", "1")
    with review("2", EDITOR=str(editor), VISUAL=str(editor), TMPDIR=str(tmp_path)) as terminal:
        terminal.wait_for(prompt_for("2:1"))
        press(
            terminal, "E", r"Your text is saved in (?s:.*)changed on disk since it was read(?s:.*)" + prompt_for("2:1")
        )
    (copy,) = tmp_path.glob("cas-amend-*/a")
    assert copy.read_bytes().startswith(b"one\nII\n")
    assert history.bytes("a").startswith(b"one\nzwei\n")


# ---- navigation


@pytest.mark.usefixtures("history")
def test_search_looks_at_single_edits_and_continues_from_the_top(review: Review) -> None:
    with review() as terminal:
        terminal.wait_for(prompt_for("1:0"))
        press(terminal, "/", "Search for:")
        press(terminal, "OTHER\n", prompt_for("3:0"))
        press(terminal, "n", r"It is in no other pending change\.\n(?s:.)*" + prompt_for("3:0"))
        press(terminal, "/", "Search for:")
        press(terminal, "nowhere\n", r"No pending change holds nowhere\.\n" + r"2 of 2  " + prompt_for("3:0"))
        press(terminal, "/", "Search for:")
        press(terminal, "-eight\n", r"Searched from the top again\.\n(?s:.)*" + prompt_for("2:2"))
        press(terminal, "q", "2 changes left pending")


def test_a_screenful_counts_the_rows_of_wrapped_lines() -> None:
    assert screenful([b"12345\n", b"6\n", b"7\n"], 3, 4) == ([b"12345\n", b"6\n"], [b"7\n"])
    assert screenful([b"1\n", b"2345678901\n"], 3, 4) == ([b"1\n", b"23456789\n"], [b"01\n"])
    assert screenful(["日本語\n".encode()], 1, 5) == (["日本\n".encode()], ["語\n".encode()])
    assert screenful([b"\t\t12\n"], 1, 17) == ([b"\t\t1\n"], [b"2\n"])
    assert screenful([b"\x1b[32m+123\x1b[0m\n"], 1, 4) == ([b"\x1b[32m+123\x1b[0m\n"], [])
    assert screenful([b"\x1b[32m+1234\x1b[0m\n"], 1, 4) == ([b"\x1b[32m+123\x1b[0m\n"], [b"4\x1b[0m\n"])
    assert [height("x" * length, 4) for length in (0, 4, 5, 8, 9)] == [1, 1, 2, 2, 3]


def test_other_pending_changes_are_counted_at_the_end(history: CommandRunner, review: Review) -> None:
    with review("--file", "b") as terminal:
        terminal.wait_for(prompt_for("3:0"))
        press(terminal, "a", AT_THE_END)
        press(terminal, "q", r"1 change accepted, .*, nothing of these is left pending, 1 other change is\.")
        assert terminal.wait_for_exit() == 0
    with review("--file", "b") as terminal:
        terminal.wait_for(r"Nothing of these is pending, 1 other change is\.")
        assert terminal.wait_for_exit() == 0
    history.write("sub/c", b"1\n")
    for file in ("sub", "sub/*"):
        with review("--file", file) as terminal:
            terminal.wait_for(r"Decide on \d:0 \[.*\] $")
            history.write(f"sub/{len(file)}", b"1\n")
            press(terminal, "q", r"\d changes left pending in \d files\.")
            assert terminal.wait_for_exit() == 0
    with review("--file", "nosuch") as terminal:
        terminal.wait_for("No recorded file is named 'nosuch' here.")
        assert terminal.wait_for_exit() == 1
    assert history.statuses()["1:0"] is PENDING


def test_new_edits_join_the_review_and_hunks_decided_elsewhere_are_skipped(
    history: CommandRunner, review: Review
) -> None:
    with review() as terminal:
        terminal.wait_for(prompt_for("1:0"))
        history.done("accept", "2")
        history.write("c", b"new\n", conversation="conv_three")
        press(terminal, "a", prompt_for("3:0"))
        press(terminal, "a", prompt_for("4:0"))


@pytest.mark.parametrize("key", ["a", "X"])
def test_a_hunk_decided_elsewhere_is_not_decided_again(history: CommandRunner, review: Review, key: str) -> None:
    history.done("accept", "1")
    with review("2") as terminal:
        terminal.wait_for(prompt_for("2:1"))
        history.done("reject", "2:1")
        press(terminal, key, r"2:1 was decided elsewhere meanwhile\.(?s:.*)" + prompt_for("2:2"))
        press(terminal, "q", "left pending")
    assert history.statuses() == {"1:0": ACCEPTED, "2:1": REJECTED, "2:2": PENDING, "3:0": PENDING}


def press_with_change_before_answer(
    terminal: TerminalDriver, keys: str, question: str, change: Callable[[], object], answer: str, then: str
) -> str:
    """Press keys that lead to a question, call `change` while the question is open, and answer it."""
    press(terminal, keys, question)
    change()
    return press(terminal, answer, then)


def test_a_decision_made_elsewhere_while_a_question_is_open_is_kept(history: CommandRunner, review: Review) -> None:
    with review() as terminal:
        terminal.wait_for(prompt_for("1:0"))
        reject = lambda: history.done("reject", "2:1", "-m", "wrong")  # noqa: E731 - a name for one call's argument
        expected = r"2:1 was decided elsewhere meanwhile \(rejected now\)(?s:.*)" + prompt_for("1:0")
        press_with_change_before_answer(terminal, "f", GROUP, reject, "a", expected)
        assert history.statuses() == {"1:0": PENDING, "2:1": REJECTED, "2:2": PENDING, "3:0": PENDING}
        press(terminal, "f", GROUP)
        press(terminal, "a", prompt_for("3:0"))
        accept = lambda: history.done("accept", "3")  # noqa: E731 - a name for one call's argument
        press_with_change_before_answer(terminal, "X", "Reason:", accept, "no\n", "3:0 was decided elsewhere meanwhile")
    assert history.statuses() == {"1:0": ACCEPTED, "2:1": REJECTED, "2:2": ACCEPTED, "3:0": ACCEPTED}


def test_a_dependent_that_appears_while_a_question_is_open_is_shown_before_it_is_rejected(
    history: CommandRunner, review: Review
) -> None:
    with review() as terminal:
        terminal.wait_for(prompt_for("1:0"))
        question = r"what depends on it too \(edit 2\) \[y\], or leave it \[any other key\]"
        edit = lambda: history.edit("a", b"five", b"5")  # noqa: E731 - a name for one call's argument
        assert "edit 4 hunk 1 needs edit 1" in press_with_change_before_answer(
            terminal, "x", question, edit, "y", prompt_for("1:0")
        )
        assert history.bytes("a") == FIRST.replace(b"two", b"2").replace(b"eight", b"8").replace(b"five", b"5")
        question = r"\(edits 2 4\)"
        accept = lambda: history.done("accept", "2:1")  # noqa: E731 - a name for one call's argument
        # Now that accepted edits need 1:0, it is no change of its own any more.
        press_with_change_before_answer(
            terminal, "x", question, accept, "y", r"2:1 was decided elsewhere meanwhile(?s:.*)" + prompt_for("4:1")
        )
        press(terminal, "q", "left pending")
    assert history.statuses()["1:0"] is PENDING
    assert (history.folder / "a").exists()


# ---- terminals, signals and failures


@pytest.mark.usefixtures("history")
def test_escape_prints_nothing(review: Review) -> None:
    with review() as terminal:
        terminal.wait_for(prompt_for("1:0"))
        assert "x1b" not in press(terminal, "\x1b", "Press \\? for")


def test_without_a_terminal_a_review_is_refused(history: CommandRunner) -> None:
    ran = history.cas("review")
    assert ran.status == 2
    assert "needs a terminal" in ran.said


@pytest.mark.usefixtures("runner")
def test_a_review_with_nothing_pending_says_so(review: Review) -> None:
    with review() as terminal:
        terminal.wait_for("Nothing is pending.")
        assert terminal.wait_for_exit() == 0


def test_control_characters_in_names_and_content_are_escaped(runner: CommandRunner, review: Review) -> None:
    runner.write("esc\x1b[31m\nname", b"\x1b[2Jwiped\n", conversation="conv_\x1b[2J")
    with review() as terminal:
        shown = terminal.wait_for(prompt_for("1:0"))
    assert r"esc\x1b[31m\nname" in shown
    assert r"+\x1b[2Jwiped" in shown


@pytest.mark.parametrize("review", TERMINALS, indirect=True)
def test_a_failed_editor_changes_nothing_and_the_review_continues(
    history: CommandRunner, review: Review, tmp_path: Path
) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\necho lost > "$1"\nexit 3\n')
    editor.chmod(0o755)
    with review("1", EDITOR=str(editor), VISUAL=str(editor), TMPDIR=str(tmp_path)) as terminal:
        terminal.wait_for(prompt_for("1:0"))
        assert "ended with an error. Nothing was changed." in press(terminal, "E", prompt_for("1:0"))
        terminal.type("q")
        assert terminal.wait_for_exit() == 0
    assert history.bytes("a").startswith(b"one\n2\n")


def test_a_resumed_review_shows_its_prompt_again(history: CommandRunner, tmp_path: Path) -> None:
    with run_in_terminal("plain", "review", "--each", folder=history.folder, scratch=tmp_path / "stage") as terminal:
        terminal.wait_for(prompt_for("1:0"))
        terminal.signal(signal.SIGCONT)
        terminal.wait_for(prompt_for("1:0"))
        terminal.type("\x03")
        terminal.wait_for("\n")
        assert terminal.wait_for_exit() == 130


@pytest.mark.usefixtures("history")
def test_a_resumed_review_shows_its_line_prompt_again(review: Review) -> None:
    with review("3") as terminal:
        terminal.wait_for(prompt_for("3:0"))
        press(terminal, "X", "Reason: ")
        terminal.signal(signal.SIGCONT)
        terminal.wait_for("Reason: ")
        press(terminal, "not asked for\n", AT_THE_END)


@pytest.mark.parametrize(
    ("number", "review"),
    sampled_product([signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT], list(TERMINALS)),
    indirect=["review"],
)
def test_a_review_ended_by_a_signal_restores_the_terminal(
    history: CommandRunner, review: Review, number: signal.Signals
) -> None:
    with review() as terminal:
        terminal.wait_for(prompt_for("1:0"))
        press(terminal, "a", prompt_for("2:1"))
        assert not terminal.is_in_line_mode()
        terminal.signal(number)
        assert terminal.wait_for_exit() in {-number, 128 + number}
        assert terminal.is_in_line_mode()
    assert history.statuses()["1:0"] is ACCEPTED


@pytest.mark.usefixtures("history")
def test_a_review_continues_after_an_ignored_hangup(runner: CommandRunner, tmp_path: Path) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with run_in_terminal("cold", "review", "--each", folder=runner.folder, scratch=tmp_path / "stage") as terminal:
            terminal.wait_for(prompt_for("1:0"))
            terminal.signal(signal.SIGHUP)
            press(terminal, "a", prompt_for("2:1"))
    finally:
        signal.signal(signal.SIGHUP, before)
