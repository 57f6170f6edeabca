"""What a terminal shows while a command is busy with what any command may begin with."""

import sys

import pytest

from cli.screen import progress
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


def interrupted(reports: int) -> None:
    with progress.Progress({"edits": "expiring"}) as line:
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


@pytest.mark.parametrize("reports", [0, 1])
def test_ctrl_c_says_nothing_where_no_progress_was_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, reports: int
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with pytest.raises(KeyboardInterrupt):
        interrupted(reports)
    assert capsys.readouterr().err == ""
