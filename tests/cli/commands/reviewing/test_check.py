"""A decision with a check is made only if the command succeeds on a copy of what it would leave."""

import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.commands.reviewing.test_trial import copies, wait_until_gone
from tests.support.command_runner import PATIENCE, PROGRAM, CommandRunner, cas, environment, modules_loaded
from tests.support.hooked_agents import ClaudeCode, recorded_project

ALL = b"1\ntwo\nthree\n4\n"

CHECK = 'test -e "${CAS_TRY_OF%/*}/pass"'
"""A check that fails until there is a file next to the workspace."""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder in which copies are made."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


@pytest.mark.parametrize("words", [("reject", "2"), ("accept", "2"), ("rewind", "2", "--yes")])
def test_decision_is_made_only_if_the_command_succeeds(
    turns: CommandRunner, place: Path, words: tuple[str, ...]
) -> None:
    before = turns.statuses()
    refused = turns.cas(*words, "--check", "echo out; echo err >&2; exit 3")
    assert (refused.status, refused.out) == (1, b"")
    assert "failed with status 3 on a copy" in refused.said
    assert refused.said.endswith("\nout\nerr\n")
    assert (turns.statuses(), turns.bytes("a")) == (before, ALL)
    turns.done(*words, "--check", "true")
    assert turns.statuses() != before
    assert copies(place) == []


def test_decision_without_a_check_loads_nothing_that_runs_programs(turns: CommandRunner) -> None:
    loaded = modules_loaded("reject", "2", folder=turns.folder)
    assert "cli.commands.check" in loaded
    assert loaded.isdisjoint({"cli.commands.try_", "subprocess", "shutil", "pathlib"})


def test_command_sees_what_the_decision_leaves(turns: CommandRunner) -> None:
    assert turns.cas("reject", "2", "--check", "grep -q two a").status == 1
    turns.done("reject", "2", "--check", "test \"$(cat a)\" = '1\n2\nthree\n4'")
    assert turns.bytes("a") == b"1\n2\nthree\n4\n"


def test_output_s_end_is_kept_with_the_decision(turns: CommandRunner) -> None:
    turns.done("reject", "2", "-m", "not two", "--check", "seq 1000; printf '\\033[31mred\\033[0m\\n'")
    (row,) = [row for row in turns.done("log", "--json").lines() if row["seq"] == 2]
    assert row["reason"] == "not two"
    assert row["check"].splitlines()[0] == r"Checked with `seq 1000; printf '\033[31mred\033[0m\n'`, which succeeded:"
    assert row["check"].splitlines()[-2:] == ["1000", "red"]
    assert len(row["check"].splitlines()) == 21
    shown = turns.done("show", "2").text
    assert "reason          not two\n" in shown or "not two" in shown
    assert "Checked with" in shown
    assert "1000\n" in shown
    assert "Checked with" in turns.done("log").text
    turns.done("accept", "3", "--check", "true")
    assert "Checked with `true`, which succeeded" in turns.done("show", "3").text


def test_agent_reads_the_check_with_the_rejection(tmp_path: Path) -> None:
    folder = recorded_project(tmp_path / "ws", "a")
    agent = ClaudeCode(folder)
    agent.start()
    agent.ask("Write")
    agent.write("a", "1\ntwo\n3\n")
    done = cas("reject", "1", "-m", "keep 2", "--check", "echo 12 passed", folder=folder)
    assert done.status == 0, done
    said = agent.ask("Go on")
    assert "because: keep 2 (Checked with `echo 12 passed`, which succeeded)" in str(said)


@pytest.fixture
def agent(tmp_path: Path) -> ClaudeCode:
    """Return an agent that has written into two files, an edit each."""
    agent = ClaudeCode(recorded_project(tmp_path / "ws", "a", "b"))
    agent.start()
    agent.ask("Write")
    agent.write("a", "1\ntwo\n3\n")
    agent.write("b", "1\n2\nthree\n")
    return agent


def refused(agent: ClaudeCode, *words: str) -> None:
    assert cas(*words, folder=agent.folder).status == 1


def rejected(agent: ClaudeCode, *words: str) -> None:
    done = cas("reject", *words, folder=agent.folder)
    assert done.status == 0, done


def test_agent_reads_which_check_of_an_acceptance_failed_before_the_rejection(agent: ClaudeCode) -> None:
    check = "printf '1 failed\\n\\033[31mtest_a\\033[0m\\n'; exit 3"
    refused(agent, "accept", "1", "--check", check)
    rejected(agent, "1", "-m", "keep 2")
    said = (
        "keep 2 (A check failed before this: `{}` failed with status 3, and printed in the end:\n  1 failed\n  test_a)"
    )
    assert f"- edit 1 of 'a': rejected, because: {said.format(check)}" in agent.ask("Go on")
    shown = cas("show", "1", folder=agent.folder).text
    assert "keep 2\n" in shown
    assert "A check failed before this" in shown
    assert "  test_a\n" in shown


def test_agent_reads_which_check_of_a_rejection_failed_if_it_is_made_all_the_same(agent: ClaudeCode) -> None:
    refused(agent, "reject", "1", "--check", "grep two a")
    refused(agent, "accept", "1", "--check", "seq 1000; false")
    rejected(agent, "1", "--check", "true")
    said = agent.ask("Go on")
    assert (
        "rejected (Checked with `true`, which succeeded. A check failed before this: `seq 1000; false` failed" in said
    )
    assert "\n  991\n" in said
    assert "\n  990\n" not in said
    assert "1000. A check failed with this: `grep two a` failed with status 1)" in said


def test_output_of_one_check_is_told_once_for_all_that_it_led_to(agent: ClaudeCode) -> None:
    refused(agent, "accept", "1", "2", "--check", "echo 1 failed; false")
    rejected(agent, "1", "2")
    said = agent.ask("Go on")
    assert said.count("A check failed before this") == 2
    assert said.count("\n  1 failed") == 1


@pytest.mark.parametrize(
    "since",
    [
        pytest.param(lambda agent: rejected(agent, "2"), id="a decision"),
        pytest.param(lambda agent: agent.write("b", "four\n"), id="an edit"),
        pytest.param(lambda agent: cas("accept", "2", "--check", CHECK, folder=agent.folder), id="a success"),
    ],
)
def test_check_that_failed_on_other_files_or_succeeds_now_is_not_told(
    agent: ClaudeCode, since: Callable[[ClaudeCode], object], tmp_path: Path
) -> None:
    refused(agent, "accept", "1", "--check", CHECK)
    (tmp_path / "pass").touch()
    since(agent)
    agent.ask("And?")
    rejected(agent, "1")
    said = agent.ask("Go on")
    assert "edit 1 of 'a': rejected" in said
    assert "A check failed" not in said


def test_check_that_a_person_stops_has_not_failed(agent: ClaudeCode, tmp_path: Path) -> None:
    words = [*PROGRAM, "accept", "1", "--check", f"touch {tmp_path}/begun; exec sleep 1000"]
    with subprocess.Popen(words, cwd=agent.folder, env=environment({}), stderr=subprocess.PIPE) as process:
        until = time.monotonic() + PATIENCE
        while not (tmp_path / "begun").exists() and time.monotonic() < until:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)
    rejected(agent, "1")
    assert "A check failed" not in agent.ask("Go on")


def test_notes_of_failed_checks_may_be_damaged_or_gone(agent: ClaudeCode) -> None:
    refused(agent, "accept", "1", "--check", "false")
    notes = agent.folder / ".cas" / "cache" / "checks"
    notes.write_bytes(notes.read_bytes()[:-3])
    rejected(agent, "1")
    notes.unlink()
    rejected(agent, "2")
    assert "A check failed" not in agent.ask("Go on")


def test_check_that_hangs_is_ended_with_what_it_started(turns: CommandRunner, place: Path, tmp_path: Path) -> None:
    turns.done("config", "set", "review.check_limit", "1s")
    note = tmp_path / "pid"
    refused = turns.cas("reject", "2", "--check", f"sleep 1000 & echo $! > {note}; echo waiting; wait")
    assert refused.status == 1
    assert "took longer than 1 s" in refused.said
    assert "waiting" in refused.said
    wait_until_gone(int(note.read_text()))
    assert turns.bytes("a") == ALL
    assert copies(place) == []


def test_all_processes_that_a_check_has_started_end_with_it(turns: CommandRunner, tmp_path: Path) -> None:
    """Each starts two, like a fork bomb, until there are 63 that sleep."""
    script, pids = tmp_path / "more", tmp_path / "pids"
    more = 'for i in 1 2; do sh "$0" $(($1 + 1)) & done'
    script.write_text(f'echo $$ >> {pids}; test "$1" -ge 5 || {{ {more}; }}; sleep 1000')
    check = f"touch {pids}; sh {script} 0 & until test $(wc -l < {pids}) = 63; do sleep 0.1; done; false"
    refused = turns.cas("reject", "2", "--check", check)
    assert "failed with status 1" in refused.said
    for pid in map(int, pids.read_text().split()):
        wait_until_gone(pid)


def test_what_a_check_leaves_behind_is_ended_and_holds_nothing_up(
    turns: CommandRunner, place: Path, tmp_path: Path
) -> None:
    turns.done("reject", "2", "--check", f"sleep 1000 & echo $! > {tmp_path}/pid")
    wait_until_gone(int((tmp_path / "pid").read_text()))
    assert copies(place) == []


def test_check_that_stops_itself_is_ended_at_its_limit(turns: CommandRunner, place: Path, tmp_path: Path) -> None:
    turns.done("config", "set", "review.check_limit", "3s")
    refused = turns.cas("reject", "2", "--check", f"echo $$ > {tmp_path}/pid; kill -STOP $$")
    assert "took longer than 3 s" in refused.said
    wait_until_gone(int((tmp_path / "pid").read_text()))
    assert copies(place) == []


@pytest.mark.parametrize("status", [0, 1])
def test_check_that_removes_its_copy_harms_nothing(turns: CommandRunner, place: Path, status: int) -> None:
    done = turns.cas("reject", "2", "--check", f'cd /; rm -rf "$OLDPWD" "$OLDPWD"/..; exit {status}')
    assert done.status == status
    assert (turns.bytes("a") == ALL) == bool(status)
    assert copies(place) == []


def test_flood_of_output_is_bounded_and_said_to_be_cut(turns: CommandRunner) -> None:
    refused = turns.cas("reject", "2", "--check", "yes flood | head -c 50000000; echo the end; false")
    assert refused.status == 1
    assert len(refused.err) < 20_000
    assert refused.said.endswith("the end\n")
    assert "... (the last" in refused.said


def test_check_that_a_signal_kills_has_failed(turns: CommandRunner) -> None:
    refused = turns.cas("reject", "2", "--check", "kill -9 $$")
    assert "failed with status 137" in refused.said
    assert turns.bytes("a") == ALL


def test_check_that_writes_into_the_workspace_decides_nothing(turns: CommandRunner) -> None:
    (turns.folder / "other").write_bytes(b"mine\n")
    refused = turns.cas("reject", "2", "--check", f"echo more >> {turns.folder}/other")
    assert refused.status == 1
    assert "Files changed while the check ran: other" in refused.said
    assert turns.bytes("a") == ALL
    refused = turns.cas("reject", "2", "--check", f"echo more >> {turns.folder}/a")
    assert "Files changed while the check ran: a" in refused.said
    refused = turns.cas("reject", "2", "--my-changes", "keep", "--check", f"touch {turns.folder}/new")
    assert "Files changed while the check ran: new" in refused.said
    assert turns.bytes("a") == ALL + b"more\n"


def test_edit_recorded_during_the_check_decides_nothing_and_the_store_is_not_locked(
    turns: CommandRunner, tmp_path: Path
) -> None:
    go, begun = tmp_path / "go", tmp_path / "begun"
    check = f"touch {begun}; until test -e {go}; do sleep 0.01; done"
    words = [*PROGRAM, "reject", "2", "--check", check]
    with subprocess.Popen(words, cwd=turns.folder, env=environment({}), stderr=subprocess.PIPE) as process:
        until = time.monotonic() + PATIENCE
        while not begun.exists() and time.monotonic() < until:
            time.sleep(0.01)
        turns.edit("a", b"4\n", b"four\n")
        go.touch()
        _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert b"Files changed while the check ran: a" in said
    assert turns.bytes("a") == b"1\ntwo\nthree\nfour\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_during_a_check_ends_it_and_decides_nothing(
    turns: CommandRunner, place: Path, tmp_path: Path, number: signal.Signals
) -> None:
    note = tmp_path / "pid"
    words = [*PROGRAM, "reject", "2", "--check", f"echo $$ > {note}.new; mv {note}.new {note}; exec sleep 1000"]
    with subprocess.Popen(words, cwd=turns.folder, env=environment({}), stderr=subprocess.PIPE) as process:
        until = time.monotonic() + PATIENCE
        while not note.exists() and time.monotonic() < until:
            time.sleep(0.01)
        process.send_signal(number)
        process.communicate(timeout=PATIENCE)
    assert process.returncode == 128 + number
    wait_until_gone(int(note.read_text()))
    assert copies(place) == []
    assert turns.bytes("a") == ALL


def test_setting_is_the_person_s_own_and_a_repository_can_not_set_it(
    turns: CommandRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "config"
    ran = tmp_path / "ran"
    monkeypatch.setenv("CAS_REVIEW_CHECK", f"touch {ran}")
    (turns.folder / ".cas" / "config.toml").write_text(f'[review]\ncheck = "touch {ran}"\n')
    turns.done("reject", "2", XDG_CONFIG_HOME=str(home), CAS_REVIEW_CHECK=f"touch {ran}")
    assert not ran.exists()
    turns.done("undo")
    turns.done("config", "set", "review.check", f"touch {ran}; false", XDG_CONFIG_HOME=str(home))
    assert "[workspaces" in (home / "editledger" / "config.toml").read_text()
    assert turns.cas("reject", "2", XDG_CONFIG_HOME=str(home)).status == 1
    assert ran.exists()
    turns.done("reject", "2", "--check", "true", XDG_CONFIG_HOME=str(home))
    turns.done("undo", XDG_CONFIG_HOME=str(home))
    turns.done("config", "unset", "review.check", XDG_CONFIG_HOME=str(home))
    turns.done("config", "set", "--user", "review.check", "exit 4", XDG_CONFIG_HOME=str(home))
    assert turns.done("config", "get", "review.check", XDG_CONFIG_HOME=str(home)).text == "exit 4\n"
    assert "status 4" in turns.cas("accept", "2", XDG_CONFIG_HOME=str(home)).said
    assert "exit 4" in turns.done("config", "list", XDG_CONFIG_HOME=str(home)).text
    turns.done("config", "set", "review.check", "none", XDG_CONFIG_HOME=str(home))
    turns.done("accept", "2", XDG_CONFIG_HOME=str(home))


def test_conflict_is_reported_before_any_check_runs(turns: CommandRunner, tmp_path: Path) -> None:
    refused = turns.cas("reject", "1", "--check", f"touch {tmp_path}/ran")
    assert refused.status == 1
    assert "--cascade" in refused.said
    assert not (tmp_path / "ran").exists()
    turns.done("reject", "1", "--cascade", "--check", "test ! -e a")


def test_check_does_not_go_with_a_dry_run_or_markers(turns: CommandRunner) -> None:
    assert turns.cas("reject", "2", "--check", "true", "--dry-run").status == 2
    assert turns.cas("reject", "2", "--check", "true", "--markers").status == 2
    assert turns.cas("rewind", "2", "--exact", "--check", "true").status == 2


def test_check_starts_where_the_person_is(turns: CommandRunner) -> None:
    (turns.folder / "sub").mkdir()
    (turns.folder / "sub" / "f").write_bytes(b"f")
    turns.done("-C", "sub", "reject", "2", "--check", "test -e f && test -e ../a")


def test_undo_of_a_checked_decision_restores_the_text(turns: CommandRunner) -> None:
    turns.done("reject", "2", "-m", "no", "--check", "true")
    turns.done("undo")
    assert turns.bytes("a") == ALL
    turns.done("redo")
    assert "Checked with" in turns.done("show", "2").text
