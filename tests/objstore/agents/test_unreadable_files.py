"""Test system errors: an unreadable file does not count as deleted, and any failure rolls a call back."""

import errno
import os
import resource
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from objstore import (
    Action,
    CallAborted,
    CallInfo,
    CasError,
    Decided,
    DiskFailed,
    EditView,
    FileState,
    OnExternal,
    Origin,
    PathOutside,
    Seq,
    Status,
    Unacknowledged,
    Unit,
    Workspace,
    blob_id,
)
from objstore.disk.fs.disk import Disk
from tests.support.command_runner import cas_unprivileged
from tests.support.scene import Scene, writes

DEEP = "a/b/c/d/e/f/g/h/file"


@contextmanager
def with_few_files(spare: int) -> Iterator[None]:
    """Let this process open no more than so many files."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(entry.name) for entry in Path("/dev/fd").iterdir())
    taken: list[int] = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + spare + 1, before[1]))
    try:
        try:
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        except OSError:
            for _ in range(spare):
                os.close(taken.pop())
        yield
    finally:
        for fd in taken:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.fixture
def deep(scene: Scene) -> Scene:
    """Return a scene with a recorded file that lies deeper than a process with few files can open."""
    scene.write(DEEP, b"1\n")
    scene.workspace.record_changes(CallInfo(tool="look"))
    (scene.root / DEEP).write_bytes(b"2\n")
    assert scene.workspace.review.status().external  # all that is needed for a look has been imported
    scene.workspace.decide(Action.ACCEPT, [Unit(Seq(1), 0)], on_external=OnExternal.KEEP, dry_run=True)
    return scene


def test_a_file_that_cannot_be_opened_for_lack_of_descriptors_does_not_count_as_deleted(deep: Scene) -> None:
    before = deep.workspace.history.edits()
    with with_few_files(6):
        report = deep.workspace.review.status()
        with pytest.raises(DiskFailed, match="Too many open files"):
            deep.workspace.record_changes(CallInfo(tool="look"), [DEEP])
        with pytest.raises(DiskFailed, match="Too many open files"):
            deep.workspace.decide(Action.ACCEPT, [Unit(Seq(1), 0)], on_external=OnExternal.KEEP)
    assert report.external == ()
    assert [said.partition(":")[0] for said in report.unreadable] == [DEEP]
    assert deep.workspace.history.edits() == before


def test_scan_that_can_open_nothing_keeps_the_known_states(deep: Scene) -> None:
    failed = 0
    for spare in range(9):
        (deep.root / DEEP).write_bytes(b"%d\n" % (spare + 3))
        found: tuple[EditView, ...] = ()
        with with_few_files(spare):
            try:
                found = deep.workspace.record_changes(CallInfo(tool="look")).edits
            except CasError:
                failed += 1
        found += deep.workspace.record_changes(CallInfo(tool="look")).edits
        after = [(os.fsdecode(view.edit.path), view.edit.after) for view in found]
        assert after == [(DEEP, FileState(blob=blob_id(b"%d\n" % (spare + 3)), mode=0o644))]
    assert failed < 9


def test_a_folder_that_may_be_listed_but_not_entered_does_not_stop_a_scan(scene: Scene) -> None:
    for name in ("locked/a", "open/b"):
        (scene.root / name).parent.mkdir()
        (scene.root / name).write_bytes(b"1\n")
    scene.workspace.record_changes(CallInfo(tool="look"))
    (scene.root / "locked/a").write_bytes(b"2\n")
    (scene.root / "open/b").write_bytes(b"2\n")
    (scene.root / "locked").chmod(0o444)
    try:
        looked = cas_unprivileged("record", folder=scene.root)
        taken = cas_unprivileged("snapshot", folder=scene.root)
    finally:
        (scene.root / "locked").chmod(0o755)
    assert (looked.status, taken.status) == (0, 0)
    assert looked.said == "cas: skipped: locked/a: Permission denied: locked/a\n"
    assert taken.said == "cas: not included: locked/a: Permission denied: locked/a\n"
    with Workspace.open(scene.root) as workspace:
        found = workspace.record_changes(CallInfo(tool="look"))
        assert [os.fsdecode(view.edit.path) for view in workspace.history.edits()] == ["open/b", "locked/a"]
        assert len(found.edits) == 1


def test_an_unreadable_folder_is_not_reported_as_missing(scene: Scene) -> None:
    (scene.root / "locked").mkdir(mode=0)
    try:
        ran = cas_unprivileged("snapshot", "create", "locked", folder=scene.root)
    finally:
        (scene.root / "locked").chmod(0o755)
    assert ran.status == 1
    assert ran.said.startswith("cas: Permission denied: locked\n")


@pytest.mark.parametrize("scope", ["../secret", "/etc", "inner/../../secret"])
def test_no_snapshot_is_taken_outside_the_workspace(scene: Scene, scope: str) -> None:
    (scene.root / "inner").mkdir()
    secret = scene.root.parent / "secret"
    secret.mkdir()
    (secret / "key").write_bytes(b"a secret\n")
    with pytest.raises(PathOutside):
        scene.workspace.snapshots.take(scope, who="me")
    assert blob_id(b"a secret\n") not in scene.workspace.history.blobs()


class FailingUnnamed(Disk):
    """A disk on which the second exchange fails with an unexpected error."""

    exchanges = 0

    def exchange(self, source_directory: int, source: str, directory: int, name: str) -> bool:
        self.exchanges += 1
        if self.exchanges == 2:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return super().exchange(source_directory, source, directory, name)


def test_an_unexpected_error_rolls_a_call_back_too(scene: Scene) -> None:
    for name in "ab":
        (scene.root / name).write_bytes(b"before\n")
    with Workspace.open(scene.root, FailingUnnamed()) as workspace:
        with workspace.call(CallInfo(tool="edit")) as call:
            for name in "ab":
                call.write(name, b"after\n")
            with pytest.raises(CallAborted, match="Input/output error"):
                call.commit()
        assert [(scene.root / name).read_bytes() for name in "ab"] == [b"before\n"] * 2
        assert workspace.history.edits() == []
        assert workspace.review.status().external == ()


@pytest.fixture
def damaged(scene: Scene) -> Scene:
    """Return a scene in which what the store has of some files' last states can't be read; the files are well."""
    for state in (b"a" * 99, b"b" * 99):
        scene.write("damaged", state)
        scene.write("dir/damaged", state[1:])
    scene.write("sound", b"1\n")
    (scene.root / "known").write_bytes(b"b" * 97)
    scene.workspace.record_changes(CallInfo(tool="look"))
    (segment,) = (scene.root / ".cas" / "segments").iterdir()
    content = bytearray(segment.read_bytes())
    for length in (97, 98, 99):
        content[content.index(blob_id(b"b" * length)) + 60] ^= 1
    segment.write_bytes(content)
    scene.reopen()
    return scene


def test_a_tool_can_write_a_file_whose_recorded_state_is_unreadable(damaged: Scene) -> None:
    damaged.write("damaged", b"c" * 99)
    damaged.write("damaged", b"c" * 99 + b"d")
    assert damaged.text("damaged") == b"c" * 99 + b"d"
    assert damaged.workspace.history.blob(blob_id(b"c" * 99)) == b"c" * 99


def test_a_scan_records_a_persons_change_of_a_file_whose_recorded_state_is_unreadable(damaged: Scene) -> None:
    (damaged.root / "damaged").write_bytes(b"by hand\n")
    (damaged.root / "dir" / "damaged").unlink()
    (damaged.root / "sound").write_bytes(b"2\n")
    (damaged.root / "new").write_bytes(b"3\n")
    found = damaged.workspace.record_changes(CallInfo(tool="look"))
    assert [(view.edit.operation, view.edit.path) for view in found.edits] == [
        ("delete", b"damaged"),
        ("create", b"damaged"),
        ("delete", b"dir/damaged"),
        ("create", b"new"),
        ("edit", b"sound"),
    ]
    assert not found.skipped
    (damaged.root / "damaged").write_bytes(b"by hand\nonce more\n")
    (edit,) = damaged.workspace.record_changes(CallInfo(tool="look"), ["damaged"]).edits
    assert edit.edit.operation == "edit"
    damaged.reject(edit.seq)
    assert damaged.text("damaged") == b"by hand\n"


def test_a_scan_records_the_other_files_if_one_known_state_is_unreadable(damaged: Scene) -> None:
    (damaged.root / "known").write_bytes(b"by hand\n")
    (damaged.root / "sound").write_bytes(b"2\n")
    found = damaged.workspace.record_changes(CallInfo(tool="look"))
    assert [view.edit.path for view in found.edits] == [b"sound"]
    for _ in range(2):  # as long as it is so
        assert [passed.path for passed in found.skipped] == ["known"]
        assert all("can't be read" in passed.reason for passed in found.skipped)
        found = damaged.workspace.record_changes(CallInfo(tool="look"))
        assert not found.edits
    (damaged.root / "known").write_bytes(b"a" * 99)
    found = damaged.workspace.record_changes(CallInfo(tool="look"), ["known"])
    assert [passed.path for passed in found.skipped] == ["known"]


class LosingIndex(Disk):
    """A disk on which the index, up to date, can't be asked of folders any more once a file was removed."""

    workspace: Workspace

    def __init__(self, index: Path) -> None:
        self._index = index

    def unlink(self, directory: int, name: str) -> None:
        super().unlink(directory, name)
        self.workspace.history.edit(1)
        with closing(sqlite3.connect(self._index)) as other:
            other.execute("DROP TABLE folders")


def test_an_index_failure_while_folders_are_removed_rolls_the_decision_back(tmp_path: Path) -> None:
    with Workspace.init(tmp_path) as workspace:
        for number in range(300):
            with workspace.call(CallInfo(tool="edit")) as call:
                call.write(f"folder {number}/inner/file", b"%d\n" % number)
                call.commit()
    index = tmp_path / ".cas" / "index.sqlite"
    disk = LosingIndex(index)
    with Workspace.open(tmp_path, disk) as disk.workspace, pytest.raises(CallAborted):
        disk.workspace.decide(Action.REJECT, [Unit(Seq(300), 0)])
    with Workspace.open(tmp_path) as workspace:
        assert workspace.history.edit(300).status is Status.PENDING
        assert workspace.review.status().external == ()
    assert (tmp_path / "folder 299" / "inner" / "file").read_bytes() == b"299\n"


def test_an_index_lost_after_a_decision_is_recorded_is_rebuilt_to_remove_folders(tmp_path: Path) -> None:
    class Losing(Disk):
        """A disk on which the index can't be read any more once the decision was recorded."""

        def sync(self, fd: int, name: str) -> None:
            super().sync(fd, name)
            os.truncate(index, 0)

    index = tmp_path / ".cas" / "index.sqlite"
    with Workspace.init(tmp_path) as workspace:
        for number in range(300):
            with workspace.call(CallInfo(tool="edit")) as call:
                call.write(f"folder {number}/inner/file", b"%d\n" % number)
                call.commit()
        (tmp_path / "folder 299" / "inner" / "file").unlink()
        workspace.record_changes(CallInfo(tool="", origin=Origin.PERSON), ["folder 299/inner/file"])
    with Workspace.open(tmp_path, Losing()) as workspace:
        outcome = workspace.decide(Action.REJECT, [Unit(Seq(300), 0), Unit(Seq(301), 0)])
        assert isinstance(outcome, Decided)
    assert not (tmp_path / "folder 299").exists()
    with Workspace.open(tmp_path) as workspace:
        assert workspace.history.edit(300).status is Status.REJECTED
        assert workspace.review.status().external == ()


class LosingStates(Disk):
    """A disk on which the third exchange fails, and what the store had of the states before is gone by then."""

    exchanges = 0

    def __init__(self, segment: Path, states: list[bytes]) -> None:
        self._segment = segment
        self._states = states

    def exchange(self, source_directory: int, source: str, directory: int, name: str) -> bool:
        self.exchanges += 1
        if self.exchanges < 3:
            return super().exchange(source_directory, source, directory, name)
        content = self._segment.read_bytes()
        for state in self._states:
            at = content.index(blob_id(state)) + 60
            with self._segment.open("r+b") as file:
                file.seek(at)
                file.write(bytes([content[at] ^ 1]))
        raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_a_file_that_cannot_be_rolled_back_is_reported_and_does_not_stop_the_others(scene: Scene) -> None:
    states = {name: name.encode() * 99 for name in "abc"}
    scene.call(*(writes(name, states[name] + b"old") for name in "abc"))
    number = scene.workspace.snapshots.take(who="me").view.number
    scene.call(*(writes(name, states[name] + b"new") for name in "abc"))
    (segment,) = (scene.root / ".cas" / "segments").iterdir()
    disk = LosingStates(segment, [states["b"] + b"new"])
    with (
        Workspace.open(scene.root, disk) as workspace,
        pytest.raises(Unacknowledged, match="b could not be restored"),
    ):
        workspace.snapshots.restore(number)  # which reads no state that it replaces
    assert [scene.text(name) for name in "abc"] == [
        states["a"] + b"new",
        states["b"] + b"old",
        states["c"] + b"new",
    ]
