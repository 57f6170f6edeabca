"""`cas bisect` names the edit, hunk or turn that makes a command fail, in few runs, and changes nothing."""

import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.support.command_runner import PATIENCE, PROGRAM, CommandRunner, environment

LINES = 40


def numbered(count: int) -> bytes:
    return b"".join(b"%d\n" % (number if number < count else -1) for number in range(LINES))


def forty_edits(runner: CommandRunner) -> None:
    """Record a file, and forty edits that each change one line of it."""
    runner.write("f", numbered(0))
    runner.done("accept", "1")
    for number in range(LINES):
        runner.write("f", numbered(number + 1))


@pytest.fixture
def forty(runner: CommandRunner) -> CommandRunner:
    return runner.prepared(forty_edits)


def counting(place: Path, condition: str) -> tuple[str, ...]:
    return ("sh", "-c", f"echo run >> {place}/runs; {condition}")


def runs(place: Path) -> int:
    return (place / "runs").read_text().count("run")


@pytest.mark.parametrize("line", [0, 17, 39])
def test_one_culprit_of_forty_is_named_in_six_runs_with_its_diff_and_the_way_out(
    forty: CommandRunner, tmp_path: Path, line: int
) -> None:
    before = forty.bytes("f")
    said = forty.done("bisect", "--good", "1", "--", *counting(tmp_path, f"! grep -qx {line} f")).text
    assert f"fails with edit {line + 2} (" in said
    assert f"+{line}\n" in said
    assert f"cas reject {line + 2} -m " in said
    assert runs(tmp_path) <= 6
    assert forty.bytes("f") == before
    forty.done("reject", str(line + 2), "--check", f"! grep -qx {line} f")


def test_nothing_runs_twice_and_a_broken_off_search_goes_on(forty: CommandRunner, tmp_path: Path) -> None:
    words = counting(tmp_path, f"test -e {tmp_path}/go || exec sleep 1000; ! grep -qx 17 f")
    note = tmp_path / "runs"
    program = [*PROGRAM, "bisect", "--good", "1", "--", *words]
    with subprocess.Popen(program, cwd=forty.folder, env=environment({}), stderr=subprocess.PIPE) as process:
        until = time.monotonic() + PATIENCE
        while not note.exists() and time.monotonic() < until:
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)
    assert process.returncode == 128 + signal.SIGTERM
    (tmp_path / "go").touch()
    note.write_text("")
    first = forty.done("bisect", "--good", "1", "--", *words).text
    made = runs(tmp_path)
    again = forty.done("bisect", "--good", "1", "--", *words).text
    assert runs(tmp_path) == made
    assert f"(0 runs, and {made} known from before)" in again
    assert again.splitlines()[1:] == first.splitlines()[1:]


def test_edits_that_fail_only_together_are_both_named(forty: CommandRunner, tmp_path: Path) -> None:
    condition = "! { grep -qx 7 f && grep -qx 31 f; }"
    said = forty.done("bisect", "--set", "--good", "1", "--", *counting(tmp_path, condition)).text
    assert "fails with edit 9 and edit 33 together" in said
    assert runs(tmp_path) <= 16


def test_rejected_edits_in_between_are_left_out(forty: CommandRunner) -> None:
    forty.done("reject", "10..20")
    said = forty.done("bisect", "--good", "1", "--", "sh", "-c", "! grep -qx 30 f").text
    assert "fails with edit 32 (" in said


def test_several_at_once_and_repeated_runs_find_the_same(forty: CommandRunner, tmp_path: Path) -> None:
    said = forty.done(
        "bisect", "--good", "1", "--jobs", "3", "--repeat", "2", "--", *counting(tmp_path, "! grep -qx 30 f")
    ).text
    assert "fails with edit 32 (" in said


def test_turn_and_its_prompt_are_named(turns: CommandRunner) -> None:
    said = turns.done("bisect", "--by", "turn", "--", "sh", "-c", "! test -e b").text
    assert "Spell two" in said
    assert "cas reject --turn 2 -m" in said


def test_hunk_is_named(runner: CommandRunner) -> None:
    runner.write("f", b"1\n2\n3\n4\n5\n6\n7\n8\n9\n")
    runner.write("f", b"one\n2\n3\n4\n5\n6\n7\n8\nnine\n")
    said = runner.done("bisect", "--by", "hunk", "--good", "1", "--", "sh", "-c", "! grep -q nine f").text
    assert "fails with hunk 2:2 (" in said
    assert "cas reject 2:2 -m" in said


@pytest.mark.parametrize(("command", "said"), [("true", "doesn't fail"), ("false", "fails without any")])
def test_command_that_always_or_never_fails_is_refused(turns: CommandRunner, command: str, said: str) -> None:
    refused = turns.cas("bisect", command)
    assert refused.status == 1
    assert said in refused.said


def test_command_that_is_not_there_is_no_failure_of_an_edit(turns: CommandRunner) -> None:
    refused = turns.cas("bisect", "nothing-of-this-name")
    assert refused.status == 1
    assert "could not be started" in refused.said


def test_folder_without_edits_is_said(runner: CommandRunner) -> None:
    assert "No edit is live" in runner.cas("bisect", "true").said


IS_LIVE = ["true", "test -e a", "grep -q two a", "test -e b", "grep -qx 4 a", "grep -q three a", "test -e c"]
"""Commands that succeed if an edit is live, by its number."""


@pytest.mark.parametrize(
    ("state", "newest"),
    [("3", 3), ("3^", 2), ("turn:2", 3), ("session:2", 4), ("snapshot:1", 5), ("2 hours ago", 0)],
)
def test_good_takes_any_state(turns: CommandRunner, state: str, newest: int) -> None:
    turns.done("snapshot", "create")
    turns.write("c", b"last\n")
    said = turns.done("bisect", "--good", state, "--", "sh", "-c", f"! {IS_LIVE[newest + 1]}").text
    assert f"fails with edit {newest + 1} (" in said
    refused = turns.cas("bisect", "--good", state, "--", "sh", "-c", f"! {IS_LIVE[newest]}")
    assert "it fails without any of these changes too" in refused.said


@pytest.mark.parametrize("state", ["99", "turn:99", "turn:x", "session:99", "snapshot:9", "soon"])
def test_good_that_names_no_state_is_refused(turns: CommandRunner, state: str) -> None:
    assert turns.cas("bisect", "--good", state, "--", "false").status == 1


@pytest.mark.parametrize("kind", ["", "turn:", "session:", "snapshot:"])
def test_good_with_more_digits_than_any_number_is_refused(turns: CommandRunner, kind: str) -> None:
    number = "9" * 5000
    for words in (["bisect", "--good", kind + number, "--", "false"], ["blame", f"a@{number}"]):
        refused = turns.cas(*words)
        assert refused.status in {1, 2}
        assert "internal error" not in refused.said
