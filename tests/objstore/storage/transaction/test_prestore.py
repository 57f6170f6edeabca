"""Test that large files are stored before any writer has to wait for them, and that nothing is lost if not needed."""

import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from objstore import CallInfo, Origin, Workspace, blob_id, check_store
from objstore.disk.fs.content_source import MemorySource
from objstore.disk.fs.disk import Disk
from objstore.storage.transaction.journal import Journal
from objstore.storage.transaction.prestore import prestore_blob, prestore_large_files
from objstore.upkeep.packing.repack import repack
from objstore.upkeep.retention.compaction import compact, plan_compaction
from tests.support.faulty_disk import WHOLE
from tests.support.lower_limit import LOWER_LIMIT, lowered_limit

NOISE: Final = os.urandom(6 << 20)
LARGE: Final = NOISE + bytes(LOWER_LIMIT - len(NOISE)) + b"the end\n"
OTHER: Final = NOISE[: 3 << 20] + b"put in" + LARGE[3 << 20 :]
SHELL: Final = CallInfo(tool="Bash", conversation="c")

SMALL: Final = 1 << 16
"""More bytes than records take, and fewer than a group of chunks."""

SOURCE: Final = str(Path(__file__).parents[4])
TIMEOUT: Final = 120
"""Seconds after which a process counts as hung."""

STORE_WHILE_DELETING_THE_INDEX: Final = """
import os, sys, threading, time
from pathlib import Path
from objstore import CallInfo, CasError, Workspace
from tests.support.lower_limit import LOWER_LIMIT, set_limit
set_limit(LOWER_LIMIT)
root, stop, others = Path(sys.argv[1]), threading.Event(), []
with Workspace.open(root) as workspace:
    def take():
        while not stop.is_set():
            with open(root / "big", "wb") as file:
                for _ in range(8):
                    file.write(os.urandom(1 << 18) + bytes((LOWER_LIMIT >> 3) - (1 << 18)))
                file.write(b"the end\\n")
            try:
                with workspace.call(CallInfo(tool="t"), ["big"]):
                    pass
            except CasError:
                pass  # a database may be deleted while it is made
            except Exception as error:
                others.append(repr(error))
    thread = threading.Thread(target=take)
    thread.start()
    until = time.monotonic() + float(sys.argv[2])
    while time.monotonic() < until:
        for suffix in ("", "-wal", "-shm"):
            (root / ".cas" / f"index.sqlite{suffix}").unlink(missing_ok=True)
        try:
            workspace.history.edits()
        except CasError:
            pass
        time.sleep(0.001)
    stop.set()
    thread.join()
print(others)
"""
"""A thread takes a large file in, another reads, and somebody deletes the index again and again."""


class _AppendRecorder(Disk):
    """A disk that records the size of each append to the log."""

    def __init__(self) -> None:
        self.appended: list[int] = []  # bytes of each append

    def append(self, fd: int, content: bytes, name: str) -> None:
        self.appended.append(len(content))
        super().append(fd, content, name)


@pytest.fixture(scope="module", autouse=True)
def lower_limit() -> Iterator[None]:
    with lowered_limit():
        yield


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "workspace"
    root.mkdir()
    Workspace.init(root).close()
    return root


def stored_only_records(disk: _AppendRecorder, since: int) -> bool:
    return sum(disk.appended[since:]) < SMALL


def test_a_call_that_names_its_paths_finds_large_files_stored(root: Path) -> None:
    (root / "big").write_bytes(LARGE)
    disk = _AppendRecorder()
    with Workspace.open(root, disk) as workspace:
        with workspace.call(SHELL, ["big"]) as call:
            before = len(disk.appended)
            assert sum(disk.appended) > len(NOISE)
            call.move("big", "moved")
            call.commit()
        assert stored_only_records(disk, before)
        assert b"".join(workspace.history.pieces(blob_id(LARGE))) == LARGE
    assert check_store(str(root)).faults == ()


def test_scan_stores_large_files_before_it_records(root: Path) -> None:
    disk = _AppendRecorder()
    with Workspace.open(root, disk) as workspace:
        workspace.record_changes(CallInfo(tool="", origin=Origin.EXTERNAL))
        (root / "inner").mkdir()
        (root / "inner" / "big").write_bytes(LARGE)
        (root / ".casignore").write_text("passed\n")
        (root / "passed").mkdir()
        (root / "passed" / "big").write_bytes(b"other" + LARGE)
        assert [edit.edit.path for edit in workspace.record_changes(SHELL).edits] == [b".casignore", b"inner/big"]
        groups = [size for size in disk.appended if size > SMALL]
        assert len(groups) == 2
        assert disk.appended[-1] < SMALL
        assert sum(groups) < 1.1 * len(NOISE)
        assert b"".join(workspace.history.pieces(blob_id(LARGE))) == LARGE
    assert check_store(str(root)).faults == ()


class _Interrupted(NamedTuple):
    """A source of bytes that runs an action between two pieces."""

    content: bytes
    happens: Callable[[], object]
    at: int = 7  # the piece before which it does
    name: str = "big"

    @property
    def size(self) -> int:
        return len(self.content)

    def pieces(self) -> Iterator[bytes]:
        for number, piece in enumerate(MemorySource(b"big", self.content).pieces()):
            if number == self.at:
                self.happens()
            yield piece


def _sweep(root: Path) -> None:
    with closing(Journal(str(root), Disk())) as journal:
        assert compact(journal, plan_compaction(journal, all_segments=True)).is_done


def delete_and_check(root: Path, path: str, content: bytes) -> None:
    """Check that a call can delete the file, and that its bytes are kept."""
    with Workspace.open(root) as workspace:
        with workspace.call(SHELL) as call:
            call.delete(path)
            call.commit()
        assert b"".join(workspace.history.pieces(blob_id(content))) == content
    assert check_store(str(root)).faults == ()


def test_chunks_that_compaction_removes_before_they_are_named_are_stored_again(root: Path) -> None:
    (root / "big").write_bytes(LARGE)
    with closing(Journal(str(root), Disk())) as journal:
        prestore_large_files(journal, [b"missing", b"big"])
        with journal.reading() as store:
            assert store.has(blob_id(LARGE))
        _sweep(root)
        with journal.reading() as store:
            assert not store.has(blob_id(LARGE))
    delete_and_check(root, "big", LARGE)


def test_chunk_list_is_not_stored_without_its_chunks(root: Path) -> None:
    with closing(Journal(str(root), Disk())) as journal:
        prestore_blob(journal, blob_id(LARGE), _Interrupted(LARGE, partial(_sweep, root)), None)
        with journal.reading() as store:
            assert not store.has(blob_id(LARGE))
    assert check_store(str(root)).faults == ()
    (root / "big").write_bytes(LARGE)
    delete_and_check(root, "big", LARGE)


def test_compaction_keeps_chunks_of_a_list_stored_after_its_plan(root: Path) -> None:
    with closing(Journal(str(root), Disk())) as journal:
        prestore_blob(journal, blob_id(LARGE), MemorySource(b"big", LARGE), None)
        plan = plan_compaction(journal, all_segments=True)
        (root / "big").write_bytes(OTHER)
        prestore_large_files(journal, [b"big"])
        assert not compact(journal, plan).is_done
        with journal.reading() as store:
            assert store.has(blob_id(OTHER))
    delete_and_check(root, "big", OTHER)


@pytest.mark.parametrize("at", [4, 6])
def test_no_chunk_is_a_delta_to_a_removed_chunk(root: Path, at: int) -> None:
    with closing(Journal(str(root), Disk())) as journal:
        prestore_blob(journal, blob_id(LARGE), MemorySource(b"big", LARGE), None)
        prestore_blob(journal, blob_id(OTHER), _Interrupted(OTHER, partial(_sweep, root), at), blob_id(LARGE))
    assert check_store(str(root)).faults == ()
    (root / "big").write_bytes(OTHER)
    delete_and_check(root, "big", OTHER)


def test_chunk_is_deeper_than_a_base_that_a_repack_encoded_again(root: Path) -> None:
    draw = random.Random(1)
    words = [draw.randbytes(6).hex().encode() for _ in range(2_000)]
    lines = [b" ".join(draw.choices(words, k=12)) for _ in range(6_000)]
    blocks = [b"\n".join(b"%d " % number + line for line in lines) for number in range(6)]
    text = b"\n".join(blocks)
    large = text + bytes(LOWER_LIMIT - len(text)) + b"the end\n"
    other = large[: 4 << 20] + b"put in" + large[4 << 20 :]

    def repack_meanwhile() -> None:
        with closing(Journal(str(root), Disk())) as journal:
            assert repack(journal).segments == 1

    with closing(Journal(str(root), Disk())) as journal:
        prestore_blob(journal, blob_id(large), MemorySource(b"big", large), None)
        prestore_blob(journal, blob_id(other), _Interrupted(other, repack_meanwhile), blob_id(large))
    assert check_store(str(root)).faults == ()
    (root / "big").write_bytes(other)
    delete_and_check(root, "big", other)


class _WritingDisk(_AppendRecorder):
    """A disk on which someone writes to a file whenever a part of it is stored, as long as enabled."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self.is_restless = True

    def append(self, fd: int, content: bytes, name: str) -> None:
        super().append(fd, content, name)
        if self.is_restless and len(content) > SMALL:
            with self._path.open("r+b") as file:
                file.write(os.urandom(len(NOISE)))


@pytest.mark.parametrize("paths", [None, ["."], ["big", "small"]], ids=["all", "below", "named"])
def test_a_large_file_that_changes_while_it_is_stored_blocks_no_scan(root: Path, paths: list[str] | None) -> None:
    big, disk = root / "big", _WritingDisk(root / "big")
    with Workspace.open(root, disk) as workspace:
        (root / "small").write_bytes(b"1\n")
        workspace.record_changes(SHELL)
        (root / "small").write_bytes(b"2\n")
        big.write_bytes(LARGE)
        found = workspace.record_changes(SHELL, paths)
        assert [edit.edit.path for edit in found.edits] == [b"small"]
        assert [(skipped.path, "changed on disk" in skipped.reason) for skipped in found.skipped] == [("big", True)]
        disk.is_restless = False
        assert [edit.edit.path for edit in workspace.record_changes(SHELL, paths).edits] == [b"big"]
        assert b"".join(workspace.history.pieces(blob_id(big.read_bytes()))) == big.read_bytes()
    assert check_store(str(root)).faults == ()


def test_large_file_that_changes_while_it_is_stored_does_not_delay_a_snapshot(root: Path) -> None:
    big, disk = root / "big", _WritingDisk(root / "big")
    with Workspace.open(root, disk) as workspace:
        (root / "small").write_bytes(b"1\n")
        big.write_bytes(LARGE)
        taken = workspace.snapshots.take(who="me")
        assert [(skipped.path, "changed on disk" in skipped.reason) for skipped in taken.skipped] == [("big", True)]
        held = {path: state.kind for path, state in workspace.snapshots.files(taken.view.number)}
        assert held == {"big": "left-out", "small": "file"}
        disk.is_restless = False
        taken = workspace.snapshots.take(who="me")
        assert not taken.skipped
        held = {path: state.kind for path, state in workspace.snapshots.files(taken.view.number)}
        assert held == {"big": "file", "small": "file"}
    assert check_store(str(root)).faults == ()


def test_the_index_may_be_deleted_while_a_large_file_is_stored(root: Path) -> None:
    # In another process, because SQLite crashes if a database is closed during a query.
    child = subprocess.run(
        [sys.executable, "-c", STORE_WHILE_DELETING_THE_INDEX, str(root), "10" if WHOLE else "1.5"],
        cwd=SOURCE,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert (child.stdout, child.stderr, child.returncode) == ("[]\n", "", 0)
    delete_and_check(root, "big", (root / "big").read_bytes())


def test_large_file_is_stored_although_the_store_is_reopened_meanwhile(root: Path) -> None:
    with closing(Journal(str(root), Disk())) as journal:

        def opened_again() -> None:
            # As after a failed write, by another thread; then another process writes.
            with journal.mutex:
                journal._open_again()  # noqa: SLF001 - what fails a write once, and not those that follow, is no disk
            with Workspace.open(root) as other, other.call(SHELL) as call:
                call.write("small", b"1\n")
                call.commit()

        prestore_blob(journal, blob_id(LARGE), _Interrupted(LARGE, opened_again), None)
        with journal.reading() as store:
            assert store.has(blob_id(LARGE))
    (root / "big").write_bytes(LARGE)
    delete_and_check(root, "big", LARGE)
