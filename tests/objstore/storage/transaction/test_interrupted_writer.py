"""Test that a writer can continue from the log after an exception at any line, such as MemoryError."""

import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any, TypeAlias

import pytest

from objstore import CasError, Workspace, check_store
from objstore.storage.index import database, log_index
from objstore.storage.store import object_store
from tests.support.crash_scenarios import write
from tests.support.faulty_disk import WHOLE, CountdownDisk

Act: TypeAlias = Callable[[Workspace], object]

WRITING = frozenset({object_store.__file__})
INDEXING = frozenset({log_index.__file__, database.__file__})


class Interruption:
    """Raises MemoryError once, after a number of executed lines in some files."""

    def __init__(self, files: frozenset[str], lines: int) -> None:
        self._files = files
        self._left = lines
        self.at = ""  # where it was raised; "": nowhere

    def __call__(self, frame: FrameType, event: str, _: object) -> Any:  # noqa: ANN401 - what sys.settrace asks for
        if frame.f_code.co_filename not in self._files:
            return None
        if event == "line" and not self.at:
            self._left -= 1
            if self._left < 0:
                self.at = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
                raise MemoryError
        return self

    @contextmanager
    def struck(self) -> Iterator[None]:
        """Run a block in which the exception is raised, and suppress it."""
        traced = sys.gettrace()
        sys.settrace(self)
        try:
            with suppress(MemoryError, CasError):
                yield
        finally:
            sys.settrace(traced)


def write_second(workspace: Workspace) -> None:
    write(workspace, "a.txt", b"two\n")


@pytest.mark.parametrize(
    ("files", "act"),
    [(WRITING, write_second), (INDEXING, lambda workspace: workspace.history.edits())],
    ids=["in a call", "in a question"],
)
def test_next_call_continues_from_the_log_after_an_exception_at_any_line(
    tmp_path: Path, files: frozenset[str], act: Act
) -> None:
    start = tmp_path / "start"
    start.mkdir()
    with Workspace.init(start, CountdownDisk(None)) as workspace:
        write(workspace, "a.txt", b"one\n")
    for lines in count(step=1 if WHOLE else 7):
        interruption = Interruption(files, lines)
        root = shutil.copytree(start, tmp_path / str(lines), symlinks=True)
        with Workspace.open(root, CountdownDisk(None)) as workspace:
            with interruption.struck():
                act(workspace)
            workspace.reopen()
            write(workspace, "a.txt", b"three\n")
            with Workspace.open(root, CountdownDisk(None)) as other:
                write(other, "b.txt", b"b\n")
                assert workspace.history.edits() == other.history.edits(), interruption.at
                assert other.review.external_changes() == (), interruption.at
        if lines % 2 == 0:
            assert check_store(str(root)).faults == (), interruption.at
        if not interruption.at:
            break
    assert lines > 10
