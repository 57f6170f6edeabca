"""`cas review` in a real terminal: keys are pressed, and the screen, the files and the journal are looked at."""

import signal
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from cli.render.zoom import height, screenful
from cli.review_ui.hunk_review import KEYS
from objstore import Call, Hunk, Operation, Status
from tests.support.command_runner import CommandRunner
from tests.support.terminal_driver import TERMINALS, TerminalDriver, run_in_terminal

PROMPT = r"Decide on {} \[.*\] $"
PENDING, ACCEPTED, REJECTED = Status.PENDING, Status.ACCEPTED, Status.REJECTED

FIRST = b"one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n"

Review = Callable[..., AbstractContextManager[TerminalDriver]]


@pytest.fixture(params=list(TERMINALS)[-1:])
def review(request: pytest.FixtureRequest, runner: CommandRunner, tmp_path: Path) -> Review:
    """Return what runs `cas review` in a terminal: in tmux where a machine has it."""
    settings = {"XDG_STATE_HOME": str(tmp_path / "state")}

    def begin(*words: str, **more: str) -> AbstractContextManager[TerminalDriver]:
        scratch = tmp_path / "stage"
        for left in scratch.glob("*") if scratch.exists() else ():
            left.unlink()
        return run_in_terminal(
            request.param, "review", *words, folder=runner.folder, scratch=scratch, **(settings | more)
        )

    return begin


@pytest.fixture
def history(runner: CommandRunner) -> CommandRunner:
    """Return a desk with a file of two agents: edit 1 made it, 2 changed it in two places, 3 is of another file."""
    runner.write("a", FIRST, conversation="conv_one")

    def two_hunks(call: Call) -> None:
        call.write("a", FIRST.replace(b"two", b"2").replace(b"eight", b"8"), operation=Operation.EDIT)

    runner.call(two_hunks, conversation="conv_one", tool="edit_file_diff")
    runner.write("b", b"other\n", conversation="conv_two")
    return runner


def at(unit: str) -> str:
    return PROMPT.format(unit)


def press(stage: TerminalDriver, keys: str, then: str) -> str:
    stage.type(keys)
    return stage.sees(then)


# ---- deciding


@pytest.mark.parametrize("review", TERMINALS, indirect=True)
def test_one_key_decides_and_goes_on_to_the_next_hunk(history: CommandRunner, review: Review) -> None:
    with review() as stage:
        shown = stage.sees(at("1:0"))
        assert "edit 1  create  a  (1 of 3 edits)" in shown
        assert "+three" in shown
        shown = press(stage, "a", at("2:1"))
        assert "Accepted edit 1." in shown
        assert "-two\n+2\n" in shown
        assert "Rewrote a" in press(stage, "r", at("2:2"))
        assert history.bytes("a") == FIRST.replace(b"eight", b"8")
        press(stage, "a", at("3:0"))
        stage.type("r")
        assert "2 hunks accepted, 2 hunks rejected, nothing is left pending." in stage.sees("pending\\.")
        assert stage.ends() == 0
    assert history.statuses() == {"1:0": ACCEPTED, "2:1": REJECTED, "2:2": ACCEPTED, "3:0": REJECTED}
    assert not (history.folder / "b").exists()


@pytest.mark.parametrize("review", TERMINALS, indirect=True)
def test_every_decision_outlives_a_kill_and_the_next_review_goes_on(history: CommandRunner, review: Review) -> None:
    with review() as stage:
        stage.sees(at("1:0"))
        press(stage, "a", at("2:1"))
        press(stage, "s", at("2:2"))
        press(stage, "r", at("3:0"))
        stage.kill()
    assert history.statuses() == {"1:0": ACCEPTED, "2:1": PENDING, "2:2": REJECTED, "3:0": PENDING}
    with review() as stage:
        # What was put off comes last.
        stage.sees(at("3:0"))
        press(stage, "a", at("2:1"))
        press(stage, "q", "1 edit left pending")
        assert stage.ends() == 0


def test_ctrl_c_is_an_interrupt_and_loses_nothing(history: CommandRunner, review: Review) -> None:
    with review() as stage:
        stage.sees(at("1:0"))
        press(stage, "a", at("2:1"))
        stage.type("\x03")
        assert stage.ends() == 130
    assert history.statuses()["1:0"] is ACCEPTED


def test_a_reason_is_recorded(history: CommandRunner, review: Review) -> None:
    with review("3") as stage:
        stage.sees(at("3:0"))
        press(stage, "R", "Reason:")
        press(stage, "not asked for\n", "1 hunk rejected")
    assert history.cas("log", "--json", "-n", "1").json()["reason"] == "not asked for"


@pytest.mark.usefixtures("history")
def test_a_reason_is_shown_at_the_hunk_that_it_was_given_for(review: Review) -> None:
    with review("2") as stage:
        stage.sees(at("2:1"))
        press(stage, "R", "Reason:")
        shown = press(stage, "two was right\n", at("2:2"))
        assert "edit 2  edit  a" in shown
        assert "reason:" not in shown
        assert "reason: two was right\n" in press(stage, "b", at("2:1"))
        assert "reason:" not in press(stage, "a", at("2:2"))
        assert "reason:" not in press(stage, "b", at("2:1"))
        press(stage, "q", "left pending")


def test_a_reason_that_somebody_else_gave_is_shown_at_its_hunk(history: CommandRunner, review: Review) -> None:
    with review("2") as stage:
        stage.sees(at("2:1"))
        press(stage, "s", at("2:2"))
        history.done("reject", "2:1", "--reason", "two was right")
        assert "reason: two was right\n" in press(stage, "b", at("2:1"))
        press(stage, "q", "left pending")


def test_a_reason_not_given_rejects_nothing(history: CommandRunner, review: Review) -> None:
    with review("3") as stage:
        stage.sees(at("3:0"))
        press(stage, "R", "Reason:")
        press(stage, "\n", at("3:0"))
        press(stage, "q", "pending")
    assert history.statuses()["3:0"] is PENDING


def test_undo_takes_back_what_this_review_did_and_no_more(history: CommandRunner, review: Review) -> None:
    history.done("accept", "3")
    with review() as stage:
        stage.sees(at("1:0"))
        press(stage, "a", at("2:1"))
        press(stage, "r", at("2:2"))
        assert "+2" in press(stage, "u", at("2:1"))
        assert history.bytes("a") == FIRST.replace(b"two", b"2").replace(b"eight", b"8")
        press(stage, "u", at("1:0"))
        press(stage, "u", "Nothing was done in this review")
        press(stage, "q", "2 edits left pending")
    assert history.statuses() == {"1:0": PENDING, "2:1": PENDING, "2:2": PENDING, "3:0": ACCEPTED}


@pytest.mark.usefixtures("history")
def test_a_hunk_counts_once_as_it_was_decided_last(review: Review) -> None:
    with review("2", "3") as stage:
        stage.sees(at("2:1"))
        press(stage, "r", at("2:2"))
        press(stage, "b", at("2:1"))
        press(stage, "a", at("2:2"))
        press(stage, "r", at("3:0"))
        press(stage, "u", at("2:2"))
        stage.type("q")
        assert "1 hunk accepted, 0 hunks rejected, 2 edits of these left pending, 1 other edit is." in stage.sees(
            r"is\."
        )


def test_undo_leaves_what_somebody_else_decided_since(history: CommandRunner, review: Review) -> None:
    with review() as stage:
        stage.sees(at("1:0"))
        press(stage, "a", at("2:1"))
        history.done("reject", "3")
        press(stage, "u", "Something else was decided since")
    assert history.statuses()["3:0"] is REJECTED


def test_undo_leaves_what_somebody_else_decided_since_on_the_very_hunk(history: CommandRunner, review: Review) -> None:
    with review() as stage:
        stage.sees(at("1:0"))
        press(stage, "s", at("2:1"))
        press(stage, "a", at("2:2"))
        history.done("reject", "2:1", "--reason", "a secret in it")
        press(stage, "u", "Something else was decided since")
    assert history.statuses()["2:1"] is REJECTED


def test_undo_asks_about_a_change_from_outside(history: CommandRunner, review: Review) -> None:
    with review("2") as stage:
        stage.sees(at("2:1"))
        press(stage, "r", at("2:2"))
        (history.folder / "a").write_bytes(FIRST.replace(b"eight", b"8") + b"mine\n")
        press(stage, "u", r"Keep .*, discard .*, or abort.*$")
        press(stage, "a", "That can't be undone now")
        assert history.statuses()["2:1"] is REJECTED
        press(stage, "u", r"Keep .*, discard .*, or abort.*$")
        press(stage, "k", at("2:1"))
    assert history.bytes("a") == FIRST.replace(b"two", b"2").replace(b"eight", b"8") + b"mine\n"


def test_what_depends_on_a_rejected_hunk_is_asked_about(history: CommandRunner, review: Review) -> None:
    with review() as stage:
        stage.sees(at("1:0"))
        press(stage, "r", r"leave it \[any other key\]")
        press(stage, "x", at("1:0"))
        assert (history.folder / "a").exists()
        press(stage, "r", r"leave it \[any other key\]")
        press(stage, "c", at("3:0"))
    assert not (history.folder / "a").exists()
    assert history.statuses()["2:2"] is REJECTED


def test_a_change_from_outside_is_asked_about(history: CommandRunner, review: Review) -> None:
    (history.folder / "a").write_bytes(history.bytes("a") + b"mine\n")
    with review() as stage:
        stage.sees(at("1:0"))
        assert "+mine" in press(stage, "a", r"\[K/d/a\] $")
        press(stage, "a", at("1:0"))
        press(stage, "a", r"\[K/d/a\] $")
        press(stage, "k", at("2:1"))
        press(stage, "r", at("2:2"))
    assert history.bytes("a") == FIRST.replace(b"eight", b"8") + b"mine\n"


# ---- groups


def test_a_whole_file_and_a_whole_conversation(history: CommandRunner, review: Review) -> None:
    with review() as stage:
        stage.sees(at("1:0"))
        press(stage, "f", r"3 hunks of a: .*\] $")
        press(stage, "r", at("3:0"))
        assert not (history.folder / "a").exists()
        press(stage, "u", at("1:0"))
        press(stage, "c", r"3 hunks of conv_one: .*\] $")
        press(stage, "a", at("3:0"))
        press(stage, "c", r"1 hunk of conv_two: .*\] $")
        press(stage, "s", "1 edit left pending")
    assert history.statuses() == {"1:0": ACCEPTED, "2:1": ACCEPTED, "2:2": ACCEPTED, "3:0": PENDING}


# ---- splitting and amending


def test_a_hunk_is_split_and_its_parts_decided_on(runner: CommandRunner, review: Review) -> None:
    runner.write("a", b"top\nred = 1\ngreen = 2\nend\n")
    runner.done("accept", "1")
    runner.write("a", b"top\nred = 10\ngreen = 20\nblue = 30\nend\n")
    with review() as stage:
        stage.sees(at("2:1"))
        assert "-red = 1\n+red = 10\nPart of 2:1" in press(stage, "x", r"Part of .*\] $")
        press(stage, "a", r"-green = 2\n\+green = 20\nPart of .*\] $")
        press(stage, "r", r"Recorded edit 3, which amends edit 2(?s:.*)Part of .*\] $")
        assert runner.bytes("a") == b"top\nred = 10\ngreen = 2\nblue = 30\nend\n"
        press(stage, "a", "nothing is left pending")
    assert runner.bytes("a") == b"top\nred = 10\ngreen = 2\nblue = 30\nend\n"
    assert runner.statuses()["2:1"] is ACCEPTED
    runner.done("reject", "3")
    assert runner.bytes("a") == b"top\nred = 10\ngreen = 20\nblue = 30\nend\n"


@pytest.mark.parametrize(
    ("put_in", "keys", "left"),
    [
        (b"a\nx\n", "ar", b"a\n"),
        (b"x\nx\n", "ar", b"x\n"),
        (b"x\nx\n", "ra", b"x\n"),
        (b"x\nx\n", "rr", b""),
    ],
)
def test_a_rejected_part_takes_out_the_hunks_line_and_not_an_equal_one_below_it(
    runner: CommandRunner, review: Review, put_in: bytes, keys: str, left: bytes
) -> None:
    (runner.folder / "a").write_bytes(b"top\nx\n" + FIRST)
    rest = b"x\n" + FIRST.replace(b"eight", b"8")

    def change(call: Call) -> None:
        hunks = [Hunk(1, 0, 1, 2), Hunk(9, 1, 11, 1)]
        call.write("a", b"top\n" + put_in + rest, hunks=hunks, operation=Operation.EDIT)

    runner.call(change)
    with review() as stage:
        stage.sees(at("1:1"))
        press(stage, "x", r"Part of .*\] $")
        press(stage, keys[0], r"Part of .*\] $")
        press(stage, keys[1], at("1:2"))
        press(stage, "q", "left pending")
    assert runner.bytes("a") == b"top\n" + left + rest
    runner.done("reject", "1:1")
    assert runner.bytes("a") == b"top\n" + rest


def test_what_is_written_between_two_parts_of_a_hunk_stays(runner: CommandRunner, review: Review) -> None:
    runner.write("a", b"top\nred = 1\ngreen = 2\nend\n")
    runner.done("accept", "1")
    runner.write("a", b"top\nred = 10\ngreen = 20\nend\n")
    later = b"top\nred = 10\ngreen = 20\nend\nlater\n"
    with review() as stage:
        stage.sees(at("2:1"))
        press(stage, "x", r"Part of .*\] $")
        runner.write("a", later)
        press(stage, "r", "File changed on disk since it was read")
        assert runner.bytes("a") == later
    assert runner.statuses() == {"1:0": ACCEPTED, "2:1": PENDING, "3:1": PENDING}


def test_a_hunk_is_split_in_a_file_that_was_changed_outside(runner: CommandRunner, review: Review) -> None:
    runner.write("a", b"top\nred = 1\ngreen = 2\nend\n" + FIRST)
    runner.done("accept", "1")
    runner.write("a", b"top\nred = 10\ngreen = 20\nend\n" + FIRST)
    mine = FIRST + b"mine\n"
    (runner.folder / "a").write_bytes(b"top\nred = 10\ngreen = 20\nend\n" + mine)
    with review() as stage:
        stage.sees(at("2:1"))
        press(stage, "x", r"-red = 1\n\+red = 10\nPart of .*\] $")
        press(stage, "a", r"-green = 2\n\+green = 20\nPart of .*\] $")
        press(stage, "a", r"Keep .*, discard .*, or abort.*$")
        press(stage, "a", "Left as it is")
        press(stage, "x", r"-red = 1\n\+red = 10\nPart of .*\] $")
        press(stage, "r", r"-green = 2\n\+green = 20\nPart of .*\] $")
        assert runner.bytes("a") == b"top\nred = 1\ngreen = 20\nend\n" + mine
        press(stage, "a", "1 hunk accepted, 0 hunks rejected, nothing is left pending")
    assert runner.statuses() == {"1:0": ACCEPTED, "2:1": ACCEPTED, "3:1": ACCEPTED, "4:1": ACCEPTED}


def test_a_hunk_of_which_all_parts_are_rejected_is_rejected_without_a_question(
    runner: CommandRunner, review: Review
) -> None:
    before = b"top\nred = 1\ngreen = 2\nend\n" + FIRST
    runner.write("a", before)
    runner.done("accept", "1")
    after = before.replace(b"red = 1", b"red = 10").replace(b"green = 2", b"green = 20").replace(b"eight", b"8")
    runner.write("a", after)
    with review() as stage:
        stage.sees(at("2:1"))
        press(stage, "x", r"-red = 1\n\+red = 10\nPart of .*\] $")
        press(stage, "r", r"-green = 2\n\+green = 20\nPart of .*\] $")
        press(stage, "r", at("2:2"))
    assert runner.bytes("a") == before.replace(b"eight", b"8")
    assert runner.statuses() == {"1:0": ACCEPTED, "2:1": REJECTED, "2:2": PENDING, "3:1": REJECTED, "4:1": REJECTED}


@pytest.mark.parametrize("deleted", [b"A\nB\n", b"A\nB\nC\n"])
def test_a_deletion_of_which_all_parts_are_rejected_puts_each_line_back_once(
    runner: CommandRunner, review: Review, deleted: bytes
) -> None:
    (runner.folder / "a").write_bytes(FIRST + deleted + b"end\n")
    after = FIRST.replace(b"two", b"2")
    runner.call(lambda call: call.write("a", after + b"end\n", operation=Operation.EDIT), tool="edit_file_diff")
    with review() as stage:
        stage.sees(at("1:1"))
        press(stage, "a", at("1:2"))
        press(stage, "x", r"Part of .*\] $")
        for _ in deleted.split()[1:]:
            press(stage, "r", r"Part of .*\] $")
        press(stage, "r", "nothing is left pending")
    assert runner.bytes("a") == after + deleted + b"end\n"
    amendments = [f"{seq}:1" for seq in range(2, 2 + len(deleted.split()))]
    assert runner.statuses() == {"1:1": ACCEPTED} | dict.fromkeys(["1:2", *amendments], REJECTED)


@pytest.mark.usefixtures("history")
def test_a_hunk_in_one_piece_says_so(review: Review) -> None:
    with review() as stage:
        stage.sees(at("1:0"))
        press(stage, "x", "Can't split 1:0: it is not a change of lines.")
        press(stage, "a", at("2:1"))
        press(stage, "x", "Can't split 2:1: it has only one part.")


def test_a_hunk_that_a_later_edit_changed_can_t_be_split_and_names_that_edit(
    runner: CommandRunner, review: Review
) -> None:
    (runner.folder / "a").write_bytes(FIRST)
    runner.edit("a", b"two\n", b"2\n2b\n")
    runner.edit("a", b"2\n2b\n", b"II\nIIb\n")
    with review("1") as stage:
        stage.sees(at("1:1"))
        press(stage, "x", r"Can't split 1:1: edit 2 changed these lines later\.")


def test_editing_is_an_amendment(history: CommandRunner, review: Review, tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i s/^2$/II/ "$1"\n')
    editor.chmod(0o755)
    with review("2", EDITOR=str(editor), VISUAL=str(editor)) as stage:
        stage.sees(at("2:1"))
        press(stage, "e", r"Recorded edit 4, which amends edit 2(?s:.*)" + at("2:1"))
        assert history.bytes("a").startswith(b"one\nII\n")
        press(stage, "u", at("2:1"))
        assert history.bytes("a").startswith(b"one\n2\n")


def test_undo_goes_on_to_what_was_done_before_an_amendment(
    history: CommandRunner, review: Review, tmp_path: Path
) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i -e s/^8$/VIII/ -e s/^2$/II/ "$1"\n')
    editor.chmod(0o755)
    with review("2", "3", EDITOR=str(editor), VISUAL=str(editor)) as stage:
        stage.sees(at("2:1"))
        press(stage, "r", at("2:2"))
        press(stage, "e", "Recorded edit 4")
        press(stage, "u", at("2:2"))
        press(stage, "u", at("2:1"))
        assert history.bytes("a") == FIRST.replace(b"two", b"2").replace(b"eight", b"8")
        press(stage, "a", at("2:2"))
        press(stage, "e", "Recorded edit 5")
        press(stage, "u", at("2:2"))
        history.done("reject", "3")
        press(stage, "u", "Something else was decided since")
        history.done("undo")
        press(stage, "u", at("2:1"))
        press(stage, "u", "Nothing was done in this review")
    assert history.statuses() == {
        "1:0": PENDING, "2:1": PENDING, "2:2": PENDING, "3:0": PENDING,
        "4:1": REJECTED, "5:1": REJECTED, "5:2": REJECTED,
    }  # fmt: skip


def test_undo_goes_on_past_an_amendment_that_somebody_else_has_rejected(
    history: CommandRunner, review: Review, tmp_path: Path
) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i s/^2$/II/ "$1"\n')
    editor.chmod(0o755)
    with review(EDITOR=str(editor), VISUAL=str(editor)) as stage:
        stage.sees(at("1:0"))
        press(stage, "a", at("2:1"))
        press(stage, "e", "Recorded edit 4")
        history.done("reject", "4")
        press(stage, "u", r"Nothing to do: that is already so\.(?s:.*)" + at("2:1"))
        press(stage, "u", "Something else was decided since")
        history.done("undo")
        press(stage, "u", at("1:0"))
    assert history.statuses()["1:0"] is PENDING


def test_what_was_typed_is_kept_where_the_file_has_changed_meanwhile(
    history: CommandRunner, review: Review, tmp_path: Path
) -> None:
    editor = tmp_path / "editor"
    editor.write_text(f'#!/bin/sh\nsed -i s/^2$/II/ "$1"\nsed -i s/^2$/zwei/ "{history.folder / "a"}"\n')
    editor.chmod(0o755)
    with review("2", EDITOR=str(editor), VISUAL=str(editor), TMPDIR=str(tmp_path)) as stage:
        stage.sees(at("2:1"))
        press(stage, "e", r"Your text is saved in (?s:.*)changed on disk since it was read(?s:.*)" + at("2:1"))
    (copy,) = tmp_path.glob("cas-amend-*/a")
    assert copy.read_bytes().startswith(b"one\nII\n")
    assert history.bytes("a").startswith(b"one\nzwei\n")


# ---- finding one's way


@pytest.mark.usefixtures("history")
def test_search_back_and_view(review: Review) -> None:
    with review() as stage:
        stage.sees(at("1:0"))
        press(stage, "/", "Search for:")
        press(stage, "OTHER\n", at("3:0"))
        press(stage, "b", at("1:0"))
        press(stage, "n", at("3:0"))
        press(stage, "n", r"It is in no other pending hunk\.\n(?s:.)*" + at("3:0"))
        press(stage, "/", "Search for:")
        press(stage, "nowhere\n", r"No pending hunk holds nowhere\.\n" + at("3:0"))
        press(stage, "/", "Search for:")
        press(stage, "three\n", r"Searched from the top again\.\n(?s:.)*" + at("1:0"))
        press(stage, "b", at("3:0"))
        assert "conversation  conv_two" in press(stage, "v", at("3:0"))
        press(stage, "q", "3 edits left pending")


def test_help_lists_every_key_and_an_unknown_key_does_nothing(history: CommandRunner, review: Review) -> None:
    with review() as stage:
        stage.sees(at("1:0"))
        shown = press(stage, "?", at("1:0"))
        assert all(f"\n  {key}  {meaning}" in shown for key, meaning in KEYS.items())
        press(stage, "Z", r"Press \? for what the keys do")
    assert set(history.statuses().values()) == {PENDING}


def test_a_long_hunk_leaves_room_and_says_how_much_more_there_is(runner: CommandRunner, review: Review) -> None:
    runner.write("a", b"line\n" * 500)
    with review() as stage:
        assert "more lines: v shows all." in stage.sees(at("1:0"))


def test_a_hunk_of_long_lines_leaves_room_for_what_it_is(runner: CommandRunner, review: Review) -> None:
    runner.write("a", b"x\n")
    runner.write("a", b"y" * 5_000 + b"\n\tend\n")
    runner.done("accept", "1")
    with review() as stage:
        shown = stage.sees(at("2:1"))
        assert "... and the rest of this line, and 1 more line: v shows all." in shown
        rows = sum(max(1, -(-len(line) // 100)) for line in shown.splitlines())
        assert 30 < rows <= 40
        assert "edit 2  replace  a" in shown


def test_a_screenful_is_measured_in_rows_as_a_terminal_folds_lines() -> None:
    assert screenful([b"12345\n", b"6\n", b"7\n"], 3, 4) == ([b"12345\n", b"6\n"], False, 1)
    assert screenful([b"1\n", b"2345678901\n"], 3, 4) == ([b"1\n", b"23456789\n"], True, 0)
    assert screenful(["日本語\n".encode()], 1, 5) == (["日本\n".encode()], True, 0)
    assert screenful([b"\t\t12\n"], 1, 17) == ([b"\t\t1\n"], True, 0)
    assert screenful([b"\x1b[32m+123\x1b[0m\n"], 1, 4) == ([b"\x1b[32m+123\x1b[0m\n"], False, 0)
    assert screenful([b"\x1b[32m+1234\x1b[0m\n"], 1, 4) == ([b"\x1b[32m+123\x1b[0m\n"], True, 0)
    assert [height("x" * length, 4) for length in (0, 4, 5, 8, 9)] == [1, 1, 2, 2, 3]


def test_what_others_have_pending_is_told_of_at_the_end(history: CommandRunner, review: Review) -> None:
    with review("--file", "b") as stage:
        stage.sees(at("3:0"))
        press(stage, "a", "1 hunk accepted, 0 hunks rejected, nothing of these is left pending, 2 other edits are.")
        assert stage.ends() == 0
    with review("--file", "b") as stage:
        stage.sees("Nothing of these is pending, 2 other edits are.")
        assert stage.ends() == 0
    history.write("sub/c", b"1\n")
    for file in ("sub", "sub/*"):
        with review("--file", file) as stage:
            stage.sees(at("4:0"))
            history.write(f"sub/{len(file)}", b"1\n")
            press(stage, "q", "of these left pending, 2 other edits are.")
            assert stage.ends() == 0
    with review("--file", "nosuch") as stage:
        stage.sees("No recorded file is named 'nosuch' here.")
        assert stage.ends() == 1
    assert history.statuses()["1:0"] is PENDING


def test_what_agents_do_meanwhile_is_come_to_and_what_others_decide_is_passed_over(
    history: CommandRunner, review: Review
) -> None:
    with review() as stage:
        stage.sees(at("1:0"))
        history.done("accept", "2")
        history.write("c", b"new\n", conversation="conv_three")
        press(stage, "a", at("3:0"))
        press(stage, "a", at("4:0"))


@pytest.mark.parametrize("key", ["a", "R"])
def test_what_others_decided_since_it_was_shown_is_shown_before_it_is_decided_anew(
    history: CommandRunner, review: Review, key: str
) -> None:
    with review("2") as stage:
        stage.sees(at("2:1"))
        history.done("reject", "2:1")
        press(stage, key, "2:1 was decided elsewhere meanwhile.(?s:.*)Hunk 2:1 is rejected already.(?s:.*)" + at("2:1"))
        assert history.statuses()["2:1"] is REJECTED
        press(stage, "a", at("2:2"))
    assert history.statuses()["2:1"] is ACCEPTED


def meanwhile(
    stage: TerminalDriver, keys: str, question: str, change: Callable[[], object], answer: str, then: str
) -> str:
    """Press keys that lead to a question, have something change while it stands, and answer it."""
    press(stage, keys, question)
    change()
    return press(stage, answer, then)


def test_what_others_decided_while_a_question_stood_stays(history: CommandRunner, review: Review) -> None:
    with review() as stage:
        stage.sees(at("1:0"))
        reject = lambda: history.done("reject", "2:1", "-m", "wrong")  # noqa: E731 - said where it is meant
        told = r"2:1 was decided elsewhere meanwhile \(rejected now\)(?s:.*)" + at("1:0")
        meanwhile(stage, "f", r"3 hunks of a: .*\] $", reject, "a", told)
        assert history.statuses() == {"1:0": PENDING, "2:1": REJECTED, "2:2": PENDING, "3:0": PENDING}
        press(stage, "f", r"2 hunks of a: .*\] $")
        press(stage, "a", at("3:0"))
        accept = lambda: history.done("accept", "3")  # noqa: E731 - said where it is meant
        meanwhile(stage, "R", "Reason:", accept, "no\n", "3:0 was decided elsewhere meanwhile")
    assert history.statuses() == {"1:0": ACCEPTED, "2:1": REJECTED, "2:2": ACCEPTED, "3:0": ACCEPTED}


def test_what_came_to_depend_on_a_hunk_while_a_question_stood_is_shown_before_it_goes(
    history: CommandRunner, review: Review
) -> None:
    with review() as stage:
        stage.sees(at("1:0"))
        question = r"what depends on it too \(hunks 2:1 2:2\) \[c\], or leave it \[any other key\]"
        edit = lambda: history.edit("a", b"five", b"5")  # noqa: E731 - said where it is meant
        assert "edit 4 hunk 1 needs edit 1" in meanwhile(stage, "r", question, edit, "c", at("1:0"))
        assert history.bytes("a") == FIRST.replace(b"two", b"2").replace(b"eight", b"8").replace(b"five", b"5")
        question = r"\(hunks 2:1 2:2 4:1\)"
        accept = lambda: history.done("accept", "2:1")  # noqa: E731 - said where it is meant
        meanwhile(stage, "r", question, accept, "c", r"2:1 was decided elsewhere meanwhile(?s:.*)" + at("1:0"))
        press(stage, "r", question)
        press(stage, "c", at("3:0"))
    assert not (history.folder / "a").exists()


# ---- where a review can't be


def test_without_a_terminal_a_review_says_what_to_do_instead(history: CommandRunner) -> None:
    ran = history.cas("review")
    assert ran.status == 2
    assert "needs a terminal" in ran.said


@pytest.mark.usefixtures("runner")
def test_nothing_pending_is_said(review: Review) -> None:
    with review() as stage:
        stage.sees("Nothing is pending.")
        assert stage.ends() == 0


@pytest.mark.usefixtures("history")
def test_a_review_goes_on_where_nothing_can_be_kept_for_the_next_one(review: Review) -> None:
    with review(XDG_STATE_HOME="/proc/nowhere") as stage:
        stage.sees(at("1:0"))
        assert "The next review will not know" in press(stage, "s", at("2:1"))
        assert "The next review" not in press(stage, "s", at("2:2"))
        press(stage, "b", at("2:1"))
        assert "Accepted hunk 2:1." in press(stage, "a", at("2:2"))


def test_names_and_bytes_cannot_forge_the_screen(runner: CommandRunner, review: Review) -> None:
    runner.write("esc\x1b[31m\nname", b"\x1b[2Jwiped\n", conversation="conv_\x1b[2J")
    with review() as stage:
        shown = stage.sees(at("1:0"))
    assert r"esc\x1b[31m\nname" in shown
    assert r"+\x1b[2Jwiped" in shown


@pytest.mark.parametrize("review", TERMINALS, indirect=True)
def test_an_editor_that_fails_leaves_the_review_where_it_is(
    history: CommandRunner, review: Review, tmp_path: Path
) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\necho lost > "$1"\nexit 3\n')
    editor.chmod(0o755)
    with review("1", EDITOR=str(editor), VISUAL=str(editor), TMPDIR=str(tmp_path)) as stage:
        stage.sees(at("1:0"))
        assert "Editing failed. Nothing was changed." in press(stage, "e", at("1:0"))
        stage.type("q")
        assert stage.ends() == 0
    assert history.bytes("a").startswith(b"one\n2\n")


def test_who_comes_back_to_a_suspended_review_is_asked_again(history: CommandRunner, tmp_path: Path) -> None:
    with run_in_terminal("plain", "review", folder=history.folder, scratch=tmp_path / "stage") as stage:
        stage.sees(at("1:0"))
        stage.signal(signal.SIGCONT)
        stage.sees(at("1:0"))
        stage.type("\x03")
        stage.sees("\n")
        assert stage.ends() == 130


@pytest.mark.usefixtures("history")
def test_who_comes_back_to_a_line_is_asked_for_it_again(review: Review) -> None:
    with review("3") as stage:
        stage.sees(at("3:0"))
        press(stage, "R", "Reason: ")
        stage.signal(signal.SIGCONT)
        stage.sees("Reason: ")
        press(stage, "not asked for\n", "1 hunk rejected")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
@pytest.mark.parametrize("review", TERMINALS, indirect=True)
def test_whatever_ends_a_review_it_gives_the_terminal_back(
    history: CommandRunner, review: Review, number: signal.Signals
) -> None:
    with review() as stage:
        stage.sees(at("1:0"))
        press(stage, "a", at("2:1"))
        assert not stage.takes_lines()
        stage.signal(number)
        assert stage.ends() in {-number, 128 + number}
        assert stage.takes_lines()
    assert history.statuses()["1:0"] is ACCEPTED


@pytest.mark.usefixtures("history")
def test_a_review_goes_on_where_a_terminal_that_hangs_up_is_to_be_ignored(
    runner: CommandRunner, tmp_path: Path
) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with run_in_terminal("plain", "review", folder=runner.folder, scratch=tmp_path / "stage") as stage:
            stage.sees(at("1:0"))
            stage.signal(signal.SIGHUP)
            press(stage, "a", at("2:1"))
    finally:
        signal.signal(signal.SIGHUP, before)
