"""What a terminal shows while a command is busy with what any command may begin with."""

import sys

import pytest

from cli.screen import progress
from objstore import Action, Unit, Workspace
from tests.support.command_runner import CommandRunner, with_progress


def test_a_rebuild_of_the_index_shows_progress(runner: CommandRunner) -> None:
    for number in range(4):
        runner.write("f", b"%d\n" % number)
    (runner.folder / ".cas/index.sqlite").unlink()
    _, shown = with_progress("status", folder=runner.folder, patience=0)
    assert b"indexing [########################]" in shown
    assert shown.endswith(b"\r\x1b[K")


def test_an_index_that_is_whole_shows_none(runner: CommandRunner) -> None:
    runner.write("f", b"1\n")
    _, shown = with_progress("status", folder=runner.folder, patience=0)
    assert b"indexing" not in shown


def interrupted(reports: int, **options: str) -> None:
    with progress.Progress({"edits": "expiring"}, **options) as line:
        for _ in range(reports):
            line.report("edits", 1, 2)
        raise KeyboardInterrupt


def test_ctrl_c_leaves_a_sentence_where_progress_was_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with pytest.raises(KeyboardInterrupt):
        interrupted(1)
    said = capsys.readouterr().err.rpartition("\x1b[K")[2]
    assert said == "Interrupted: nothing is half done. Run the command again to finish.\n"
    with pytest.raises(KeyboardInterrupt):
        interrupted(1, interrupted="Interrupted: what has expired stays expired.")
    assert capsys.readouterr().err.endswith("\x1b[KInterrupted: what has expired stays expired.\n")


class InterruptedWriting(progress.Progress):
    """Ends as Ctrl-C would end it, once half of the files of a decision are written."""

    def report(self, what: str, done: int, total: int) -> None:
        super().report(what, done, total)
        if what == "paths" and done >= total / 2:
            raise KeyboardInterrupt


def rejected_with_progress(workspace: Workspace) -> None:
    units = [Unit(edit.seq, 0) for edit in workspace.history.edits()]
    with progress.showing_progress(workspace, progress.DECIDING):
        workspace.decide(Action.REJECT, units)


def test_ctrl_c_while_a_decision_is_written_says_that_the_next_command_goes_on(
    runner: CommandRunner, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"f{number}" for number in range(8)]
    for name in names:
        runner.write(name, b"1\n")
    monkeypatch.setattr(progress, "PATIENCE", 0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(progress, "Progress", InterruptedWriting)
    with Workspace.open(runner.folder) as workspace, pytest.raises(KeyboardInterrupt):
        rejected_with_progress(workspace)
    assert "the next command finishes its files" in capsys.readouterr().err.rpartition("\x1b[K")[2]
    assert any((runner.folder / name).exists() for name in names)
    runner.done("status")
    assert not any((runner.folder / name).exists() for name in names)


@pytest.mark.parametrize("reports", [0, 1])
def test_ctrl_c_says_nothing_where_no_progress_was_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, reports: int
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with pytest.raises(KeyboardInterrupt):
        interrupted(reports)
    assert capsys.readouterr().err == ""
