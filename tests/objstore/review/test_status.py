"""Test that a status reports what it can, whatever happened to a file or to the index."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

import pytest

from objstore import CallInfo, Origin, Workspace
from objstore.agents.unrecorded_files import UnrecordedFiles, unrecorded_files
from objstore.disk.fs.disk import Disk
from objstore.disk.fs.reserved_names import STAT_CACHE_NAME
from objstore.disk.fs.writer_lock import WriterLock
from objstore.storage.transaction.journal import Journal
from objstore.upkeep.integrity.inspection import stats
from objstore.worktree.walk import ScanLimits
from tests.support.scene import TEN, Scene

OVER_THE_LIMIT = (256 << 30) + 1

GRACE_SECONDS: Final = 2.05
"""Until a file's times are old enough to be believed."""

SOURCE: Final = str(Path(__file__).parents[3])

STOPPED: Final = """
import os, signal, sys
from objstore import CallInfo, Workspace
from objstore.disk.fs.disk import Disk
class Stopping(Disk):
    def exchange(self, *words):
        os.kill(os.getpid(), signal.SIGSTOP)
        return super().exchange(*words)
with Workspace.open(sys.argv[1], Stopping()) as workspace, workspace.call(CallInfo(tool="t")) as call:
    call.write("f", b"by the writer\\n")
    call.commit()
"""
"""A writer that is stopped between the log and its file, as by Ctrl-Z, with the lock."""


@contextmanager
def stopped_writer(root: Path) -> Iterator[None]:
    """Have a writer be stopped in the middle of a write; in the end it goes on, and finishes."""
    with subprocess.Popen([sys.executable, "-c", STOPPED, str(root)], cwd=SOURCE) as writer:
        os.waitid(os.P_PID, writer.pid, os.WSTOPPED | os.WNOWAIT)
        try:
            yield
        finally:
            writer.send_signal(signal.SIGCONT)
    assert writer.returncode == 0


def test_too_large_file_is_reported_with_the_others(scene: Scene) -> None:
    scene.write("large", TEN)
    scene.write("other", TEN)
    os.truncate(scene.root / "large", OVER_THE_LIMIT)
    (scene.root / "other").write_bytes(b"by hand\n")
    report = scene.workspace.review.status()
    assert [change.path for change in report.external] == ["other"]
    (sentence,) = report.unreadable
    assert sentence.startswith("large: ")
    assert str(OVER_THE_LIMIT) in sentence


def test_a_status_says_how_many_files_it_compared_if_not_all(scene: Scene) -> None:
    for number in range(20):
        (scene.root / f"{number}").mkdir()
        (scene.root / f"{number}" / "f").write_bytes(b"x\n")
    scene.workspace.record_changes(CallInfo(tool="", origin=Origin.EXTERNAL))
    (scene.root / ".cas" / STAT_CACHE_NAME).unlink()
    with closing(Journal(str(scene.root), Disk())) as journal:
        assert unrecorded_files(journal) == UnrecordedFiles()
        few = unrecorded_files(journal, ScanLimits(bytes=10))
    assert few.compared is not None
    assert few.compared < 20


@pytest.mark.parametrize("names", [["index.sqlite"], ["index.sqlite", "index.sqlite-wal", "index.sqlite-shm"]])
def test_index_may_be_deleted_while_a_process_uses_it(scene: Scene, names: list[str]) -> None:
    scene.write("f", TEN)
    for name in names:
        (scene.root / ".cas" / name).unlink(missing_ok=True)
    scene.write("f", TEN + b"more\n")
    assert len(scene.workspace.history.edits()) == 2
    with Workspace.open(scene.root) as other:
        assert [view.id for view in other.history.edits()] == [view.id for view in scene.workspace.history.edits()]


def test_a_call_is_committed_once(scene: Scene) -> None:
    with scene.workspace.call(CallInfo(tool="t")) as call:
        call.write("f", TEN)
        call.commit()
        with pytest.raises(RuntimeError, match="once"):
            call.commit()


def test_status_is_consistent_during_concurrent_writes(scene: Scene) -> None:
    scene.write("f", TEN)
    with closing(Journal(str(scene.root), Disk())) as journal:
        with journal.reading():
            scene.write("g", TEN)
            found = stats(journal)
        # The other process has indexed its group at once, so the log and the index are read as they are after it.
        assert (list(found.files), found.tools["test"].edits) == (["f", "g"], 2)
        with journal.reading():
            assert list(stats(journal).files) == ["f", "g"]


def test_files_of_a_suspended_writer_are_no_external_changes(scene: Scene) -> None:
    scene.write("f", TEN)
    scene.write("g", TEN)
    (scene.root / "g").write_bytes(b"by hand\n")
    with stopped_writer(scene.root):
        report = scene.workspace.review.status()
        assert [change.path for change in report.external] == ["g"]
        assert report.unreadable == ("f: its last recorded change may not be written yet",)
        assert [change.path for change in scene.workspace.review.external_changes()] == ["g"]
    report = scene.workspace.review.status()
    assert ([change.path for change in report.external], report.unreadable) == (["g"], ())


def test_files_of_an_unfinished_writer_are_no_external_changes(scene: Scene) -> None:
    scene.write("f", TEN)
    mark = scene.root / ".cas" / "applied"
    before = mark.read_bytes()
    scene.write("f", b"new\n")
    mark.write_bytes(before)  # as where the writer was killed before it came to the file
    (scene.root / "f").write_bytes(TEN)
    assert scene.workspace.review.status().unreadable == ("f: its last recorded change may not be written yet",)


def test_a_status_that_waited_for_a_writer_looks_at_all_files_once_more(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a/found", "b/changes", "c/new", *(f"{number}/same" for number in range(20))):
        scene.write(name, TEN)
        os.utime(scene.root / name, (0, 0))
    time.sleep(GRACE_SECONDS)
    assert scene.workspace.review.status().external == ()  # from here on, it only compares stat signatures
    (scene.root / "a" / "found").write_bytes(b"by hand\n")
    waits = iter([True])

    def await_writer(_: Journal, __: float) -> bool:
        if next(waits, False):
            scene.write("c/new", b"by a writer\n")
            (scene.root / "b" / "changes").write_bytes(b"by hand, meanwhile\n")
        return True

    monkeypatch.setattr(Journal, "await_writer", await_writer)
    assert [change.path for change in scene.workspace.review.status().external] == ["a/found", "b/changes"]


def test_a_status_that_waits_for_a_writer_keeps_no_other_thread_waiting(scene: Scene) -> None:
    scene.write("f", TEN)
    (scene.root / "f").write_bytes(b"by hand\n")
    with closing(WriterLock(str(scene.root / ".cas" / "lock"))) as lock, lock.held():
        found: list[str] = []
        asking = threading.Thread(target=lambda: found.extend(map(str, scene.workspace.review.status().external)))
        asking.start()
        reads = 0
        while asking.is_alive():
            scene.workspace.history.end()
            reads += 1
        assert len(found) == 1
        assert reads > 10  # else each would have waited for the status
