"""A day's review in a real terminal, keys counted: each change takes one key, whichever file and turn it is of."""

from pathlib import Path
from typing import Final

import pytest

from objstore import Status
from tests.support.command_runner import CommandRunner
from tests.support.terminal_driver import run_in_terminal
from tests.support.worked_day import CHANGES, EDITS, PROMPTS, work_in

AHEAD: Final = 25
"""Keys that are typed before the first question, and decide."""


@pytest.fixture
def day(runner: CommandRunner) -> CommandRunner:
    """Return the workspace after the day."""
    return runner.prepared(worked)


def worked(runner: CommandRunner) -> None:
    """Let the agents of the day work in a new workspace."""
    work_in(runner.folder)


def test_the_day_is_what_it_says(day: CommandRunner) -> None:
    status = day.done("status", "--json").json()
    assert (status["edits"], status["pending"], status["sessions"]) == (EDITS, EDITS, 2)
    files = day.done("diff", "--json").lines()
    assert sum(len(file["changes"]) for file in files) == CHANGES
    assert len(day.done("log", "--turns", "--json").lines()) == len(PROMPTS)


def test_each_change_takes_one_key_across_files_and_turns(day: CommandRunner, tmp_path: Path) -> None:
    files = day.done("diff", "--json").lines()
    written = [text for file in files for change in file["changes"] for text in change["inserted"].splitlines()]
    shown = ""
    with run_in_terminal("plain", "review", folder=day.folder, scratch=tmp_path / "stage") as terminal:
        for number in range(1, CHANGES + 1):
            shown += terminal.wait_for(rf"\n{number} of {CHANGES}  Decide on .*\] $")
            terminal.type("a")
        terminal.wait_for(rf"{CHANGES} changes accepted, 0 changes rejected, nothing is left pending\.")
        assert terminal.wait_for_exit() == 0
    assert set(day.statuses().values()) == {Status.ACCEPTED}
    assert len(written) > CHANGES
    assert [line for line in written if f"+{line}\n" not in shown] == []


def test_keys_typed_ahead_are_kept(day: CommandRunner, tmp_path: Path) -> None:
    with run_in_terminal("plain", "review", folder=day.folder, scratch=tmp_path / "stage") as terminal:
        terminal.type("x" * AHEAD + "q")
        for number in range(5, AHEAD + 1, 5):
            terminal.wait_for(rf"{number} of {CHANGES}  Decide on ")
        terminal.wait_for(rf"0 changes accepted, {AHEAD} changes rejected, {CHANGES - AHEAD} changes left pending in ")
        assert terminal.wait_for_exit() == 0
    assert set(day.statuses().values()) == {Status.REJECTED, Status.PENDING}
