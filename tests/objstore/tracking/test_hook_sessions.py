"""Test what hooks keep for one another while other processes write or clean up the same files."""

import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from threading import Thread
from typing import Final

import pytest

from objstore import AgentCall, Origin, Workspace
from objstore.fs.disk import Pieces
from objstore.review.attribution import OpenCalls
from objstore.transaction.journal import Journal
from tests.support.crash_scenarios import write
from tests.support.faulty_disk import UnsyncedDisk

CALL: Final = AgentCall(conversation="c", id="1", tool="Bash", paths=None, notes={"command": "make"})
EARLIER: Final = AgentCall(conversation="c", id="0", tool="Bash", paths=None)


class Interrupted(UnsyncedDisk):
    """A disk on which something else happens once, behind a step of putting an agent's file in its place."""

    def __init__(self, behind: str, then: Callable[[], object]) -> None:
        super().__init__()
        self._behind = behind
        self._then = iter([then])

    def stage(self, directory: int, content: Pieces, like: os.stat_result | None, mode: int, name: str) -> str:
        staged = super().stage(directory, content, like, mode, name)
        self._done("stage", name)
        return staged

    def exchange(self, source_directory: int, source: str, directory: int, name: str) -> bool:
        done = super().exchange(source_directory, source, directory, name)
        self._done("exchange", name)
        return done

    def _done(self, what: str, name: str) -> None:
        if what == self._behind and name.startswith(("open-", "done-")):
            for then in self._then:
                then()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "workspace"
    root.mkdir()
    Workspace.init(root, UnsyncedDisk()).close()
    return root


@pytest.mark.parametrize("behind", ["stage", "exchange"])
def test_a_call_is_kept_while_another_process_writes_its_first_file(root: Path, behind: str) -> None:
    """Its first write clears away what writers left that died, and the file of a call has no writer's lock."""

    def write_first() -> None:
        with Workspace.open(root, UnsyncedDisk()) as other:
            write(other, "mine.txt", b"mine\n")

    with Workspace.open(root, UnsyncedDisk()) as workspace:
        workspace.hooks.begin(EARLIER)
        workspace.hooks.end(EARLIER)
    with Workspace.open(root, Interrupted(behind, write_first)) as workspace:
        workspace.hooks.begin(CALL)
        (root / "made.txt").write_bytes(b"made\n")
        made = workspace.hooks.end(CALL)
    assert [(view.edit.path, view.edit.origin) for view in made] == [(b"made.txt", Origin.AGENT)]
    assert not list((root / ".cas" / "tmp").iterdir())


@pytest.mark.parametrize("first", ["the end of a call", "another turn"])
def test_an_end_and_a_new_turn_noted_at_the_same_time_are_both_kept(root: Path, first: str) -> None:
    """A prompt comes while a subagent's call ends: each reads what is kept, and puts something else in its place."""
    other: list[Thread] = []

    def noted(disk: UnsyncedDisk, what: str) -> None:
        with closing(Journal(str(root), disk)) as journal:
            if what == "the end of a call":
                OpenCalls(journal).note_done("c", [CALL])
            else:
                OpenCalls(journal).begin_turn("c")

    def begin_other() -> None:
        what = "another turn" if first == "the end of a call" else "the end of a call"
        other.append(Thread(target=noted, args=(UnsyncedDisk(), what)))
        other[0].start()
        other[0].join(0.3)  # without a lock, it would be done by now

    with closing(Journal(str(root), UnsyncedDisk())) as journal:
        OpenCalls(journal).note_done("c", [EARLIER])
    noted(Interrupted("stage", begin_other), first)
    other[0].join()
    with closing(Journal(str(root), UnsyncedDisk())) as journal:
        calls = OpenCalls(journal)
        assert calls.is_done(CALL, before=True)
        assert not calls.is_done(EARLIER)
        assert calls.is_done(EARLIER, before=True)
