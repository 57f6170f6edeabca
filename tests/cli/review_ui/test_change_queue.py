"""The queue of `cas review`: how often it compares files."""

from collections.abc import Collection

from cli.review_ui.change_queue import ChangeQueue
from objstore import NetFile, Workspace
from tests.support.command_runner import CommandRunner

LINES = b"1\n2\n3\n4\n5\n6\n7\n8\n9\n"


def test_files_are_compared_once_to_begin_and_once_after_an_undo(runner: CommandRunner) -> None:
    for name in ("a", "b"):
        runner.write(name, LINES)
    compared: list[Collection[str]] = []
    with Workspace.open(str(runner.folder)) as workspace:

        def select(at: Collection[str]) -> list[NetFile]:
            compared.append(at)
            return workspace.review.changes(at)

        queue = ChangeQueue(select)
        stop = queue.first()
        assert stop is not None
        assert (stop.file.path, compared) == ("a", [()])
        again = queue.go_after_undo(stop.units)
        assert again is not None
        assert (again.key, compared) == (stop.key, [(), ()])
