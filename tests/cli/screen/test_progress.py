"""What a terminal shows while a command is busy with what any command may begin with."""

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
