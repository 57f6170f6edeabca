"""Test a full disk with an unfinished call: operations that free space work, and the call is completed later."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

import pytest

from objstore import (
    Action,
    CallInfo,
    CasError,
    CompactionSpaceNeeded,
    DiskFull,
    Seq,
    Status,
    Unit,
    Workspace,
    blob_id,
    check_store,
)
from objstore.disk.config.setting_sources import RetentionLimits
from objstore.storage.transaction.journal import Journal
from objstore.storage.transaction.space_reserve import MAX_RESERVE_BYTES, MIN_RESERVE_BYTES, RESERVE_NAME, reserve_space
from tests.support.crash_scenarios import write
from tests.support.faulty_disk import CountdownDisk, PowerCut, TooFullDisk, broken_disk, full_disk, power_cut
from tests.support.index_tables import rebuilt_tables, tables

EVERYTHING: Final = RetentionLimits(older_than=0, max_size=None)
VERSIONS: Final = 6


class PartlyFailing(CountdownDisk):
    """A disk on which some operations always fail, and all others work."""

    def __init__(self, failure: Callable[[str], BaseException], *operations: str) -> None:
        super().__init__(None)
        self._always: Final = failure
        self._operations: Final = operations
        self.tried = 0

    def _step(self, operation: str, name: str, tear: Callable[[float], None] | None = None) -> None:
        if operation in self._operations:
            self.tried += 1
            raise self._always(name)
        super()._step(operation, name, tear)


def disk_full_for_files() -> PartlyFailing:
    """Return a disk with space for the store's own files, and for none of the user's."""
    return PartlyFailing(full_disk, "stage")


def text(version: int) -> bytes:
    return os.urandom(2_000).hex().encode() + b"\nversion %d\n" % version


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return what each test gets a copy of: history that may expire, and a call whose file was not yet written."""
    root = tmp_path_factory.mktemp("start")
    with Workspace.init(root, CountdownDisk(None)) as workspace:
        write(workspace, "b.txt", b"first\n")
        for version in range(VERSIONS):
            write(workspace, "a.txt", text(version))
        accept_all(workspace)
        write_pending(workspace, b"second\n")
    die_in_a_call(root)
    return root


@pytest.fixture
def root(start: Path, tmp_path: Path) -> Path:
    """Return a workspace with history that may expire, and a call whose file was not yet written."""
    return shutil.copytree(start, tmp_path, dirs_exist_ok=True)


def write_pending(workspace: Workspace, content: bytes) -> None:
    """Record one call of a conversation whose edits stay pending."""
    with workspace.call(CallInfo(tool="t", conversation="pending")) as call:
        call.write("b.txt", content)
        call.commit()


def accept_all(workspace: Workspace) -> None:
    units = [Unit(view.seq, n) for view in workspace.history.edits() for n in range(len(view.units))]
    workspace.decide(Action.ACCEPT, units)


def die_in_a_call(root: Path) -> None:
    workspace = Workspace.open(root, PartlyFailing(power_cut, "exchange", "rewrite"))
    with suppress(PowerCut):
        write_pending(workspace, b"third\n")
    workspace.close()
    assert (root / "b.txt").read_bytes() == b"second\n"


def collect(root: Path, disk: CountdownDisk) -> None:
    with Workspace.open(root, disk) as workspace:
        collected = workspace.retention.collect(EVERYTHING, thorough=True)
        assert collected.is_done
        assert collected.bytes_after < collected.bytes_before / 2
        assert workspace.history.edit(2).expired is not None


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """Return a folder on a disk of a few megabytes; only root can create one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if not sys.platform.startswith("linux") or os.geteuid() or not mounted(folder):
        pytest.skip("no disk can be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def mounted(folder: Path) -> bool:
    return not subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "none", folder], check=False).returncode


def fill(path: Path) -> None:
    """Take all the remaining space."""
    with path.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))


@pytest.mark.parametrize("seconds", [0.0, 60.0], ids=["tried again", "not yet"])
def test_open_process_can_read_when_the_disk_is_full(
    small: Path, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    monkeypatch.setattr("objstore.storage.store.object_store._IN_MEMORY_SECONDS", seconds)
    root = small / "workspace"
    root.mkdir()
    with Workspace.init(root, CountdownDisk(None)) as workspace:
        for number in range(60):
            write(workspace, f"{number}.txt", b"%d\n" % number)
        workspace.history.edits()
        for number in range(10):  # recorded, and not in the index yet
            write(workspace, f"{number}.txt", b"again\n")
        fill(small / "ballast")
        assert len(workspace.history.edits()) == 70
        assert workspace.review.status().external == ()
        with pytest.raises(DiskFull):
            write(workspace, "a.txt", bytes(5000))
        assert len(workspace.history.edits()) == 70
        (small / "ballast").unlink()
        write(workspace, "a.txt", b"and on\n")
        assert len(workspace.history.edits()) == 71
    assert check_store(str(root)).faults == ()
    assert tables(root / ".cas" / "index.sqlite") == rebuilt_tables(root / ".cas")


def test_scan_on_a_full_disk_works_without_the_stat_cache(small: Path) -> None:
    root = small / "workspace"
    root.mkdir()
    with Workspace.init(root, CountdownDisk(None)) as workspace:
        write(workspace, "a.txt", b"0\n")
        write(workspace, "b.txt", b"0\n")
        workspace.history.edits()
        fill(small / "ballast")
        (root / "a.txt").unlink()
        assert [change.path for change in workspace.review.external_changes()] == ["a.txt"]
        assert workspace.review.status().edits == 2
        assert workspace.history.sha256(blob_id(b"0\n")) == sha256(b"0\n").hexdigest()
        (small / "ballast").unlink()


def test_operations_that_free_space_do_not_wait_for_a_call_that_lacks_it(root: Path) -> None:
    collect(root, disk_full_for_files())
    assert (root / "b.txt").read_bytes() == b"second\n"
    with Workspace.open(root, CountdownDisk(None)):
        assert (root / "b.txt").read_bytes() == b"third\n"
    assert check_store(str(root)).faults == ()


def test_edits_wait_until_there_is_room_for_the_unfinished_call(root: Path) -> None:
    collect(root, disk_full_for_files())
    with Workspace.open(root, disk_full_for_files()) as workspace, pytest.raises(DiskFull):
        workspace.decide(Action.REJECT, [Unit(workspace.history.edits()[-1].seq, 1)])
    with Workspace.open(root, CountdownDisk(None)) as workspace:
        write(workspace, "c.txt", b"and on\n")
    assert (root / "b.txt").read_bytes() == b"third\n"
    assert check_store(str(root)).faults == ()


def test_the_process_that_freed_space_waits_with_edits_like_any_other(root: Path) -> None:
    disk = disk_full_for_files()
    with Workspace.open(root, disk) as workspace:
        workspace.retention.collect(EVERYTHING, thorough=True)
        with pytest.raises(DiskFull):
            workspace.decide(Action.REJECT, [Unit(workspace.history.edits()[-1].seq, 1)])
        assert (root / "b.txt").read_bytes() == b"second\n"
    assert check_store(str(root)).faults == ()


def test_space_for_the_unfinished_call_is_requested_once(root: Path) -> None:
    disk = disk_full_for_files()
    collect(root, disk)
    assert disk.tried <= 2  # when the workspace is opened, and when the first of many writes begins


def test_a_file_that_a_person_restored_stays_even_if_the_segment_was_rewritten(root: Path) -> None:
    collect(root, disk_full_for_files())
    assert not (root / ".cas" / "segments" / "00000001.seg").exists()
    (root / "b.txt").write_bytes(b"first\n")
    os.utime(root / "b.txt", ns=(0, 0))  # as `cp -p` does: after a power cut alone that would say that it was lost
    with Workspace.open(root, CountdownDisk(None)) as workspace:
        assert (root / "b.txt").read_bytes() == b"first\n"
        assert [change.path for change in workspace.review.external_changes()] == ["b.txt"]


def test_unfinished_call_survives_the_removal_of_its_whole_segment(root: Path) -> None:
    """The call's own segment is rewritten too, and everything before its group in it is removed."""
    collect(root, disk_full_for_files())
    collected_again = disk_full_for_files()
    with Workspace.open(root, collected_again) as workspace:
        workspace.retention.repack()
        workspace.retention.collect(EVERYTHING, thorough=True)
        assert workspace.history.blob(blob_id(b"third\n")) == b"third\n"
    with Workspace.open(root, CountdownDisk(None)):
        assert (root / "b.txt").read_bytes() == b"third\n"
    assert check_store(str(root)).faults == ()


def test_file_unwritable_for_another_reason_is_left_and_blocks_no_writer(root: Path) -> None:
    with Workspace.open(root, PartlyFailing(broken_disk, "exchange")) as workspace:
        write(workspace, "c.txt", b"and on\n")
        assert [change.path for change in workspace.review.external_changes()] == ["b.txt"]
    assert (root / "b.txt").read_bytes() == b"second\n"
    assert (root / "c.txt").read_bytes() == b"and on\n"
    assert check_store(str(root)).faults == ()


class FullExceptReserve(CountdownDisk):
    """A full disk, except for the space that the store reserves."""

    def __init__(self, root: Path) -> None:
        super().__init__(None)
        self._kept: Final = root / ".cas" / RESERVE_NAME

    def _step(self, operation: str, name: str, tear: Callable[[float], None] | None = None) -> None:
        if operation in {"append", "create"} and self._kept.exists():
            raise DiskFull(name)
        super()._step(operation, name, tear)


class FullDisk(PartlyFailing):
    """A disk on which no file can grow, whatever is removed."""

    def __init__(self) -> None:
        super().__init__(full_disk, "append", "create", "reserve")

    def free_bytes(self, _folder: str | int, _name: str) -> int:
        return 0


def test_collection_on_a_full_disk_uses_the_space_reserve(root: Path) -> None:
    assert (root / ".cas" / RESERVE_NAME).stat().st_blocks * 512 >= MIN_RESERVE_BYTES
    collect(root, FullExceptReserve(root))
    assert (root / ".cas" / RESERVE_NAME).stat().st_size == MIN_RESERVE_BYTES  # there is plenty again
    assert check_store(str(root)).faults == ()


def test_collection_on_a_full_disk_deletes_derived_data(root: Path) -> None:
    weave = root / ".cas" / "cache" / "weave-1"
    weave.parent.mkdir(exist_ok=True)
    weave.write_bytes(b"derived")
    with Workspace.open(root, CountdownDisk(None)) as workspace:
        workspace.retention.collect(RetentionLimits(older_than=None, max_size=None))
    assert weave.exists()
    collect(root, FullExceptReserve(root))
    assert not weave.exists()
    assert check_store(str(root)).faults == ()


def test_collection_without_space_says_how_much_to_free_and_loses_nothing(root: Path) -> None:
    segments = {path.name: path.read_bytes() for path in (root / ".cas" / "segments").iterdir()}
    with (
        Workspace.open(root, FullDisk()) as workspace,
        pytest.raises(CompactionSpaceNeeded, match=r"free about 0\.1 MB.* run the command again"),
    ):
        workspace.retention.collect(EVERYTHING, thorough=True)
    assert not (root / ".cas" / RESERVE_NAME).exists()
    assert {path.name: path.read_bytes() for path in (root / ".cas" / "segments").iterdir()} == segments
    collect(root, CountdownDisk(None))
    assert (root / ".cas" / RESERVE_NAME).exists()
    assert check_store(str(root)).faults == ()


@pytest.mark.parametrize(
    ("history", "free", "kept"),
    [
        (0, 1 << 30, MIN_RESERVE_BYTES),
        (4 << 20, 1 << 30, 512 << 10),
        (64 << 20, 1 << 30, MAX_RESERVE_BYTES),
        (64 << 20, 8 << 20, 512 << 10),
        (64 << 20, 1 << 20, MIN_RESERVE_BYTES),
    ],
)
def test_space_reserve_is_proportional_to_the_history_and_to_the_free_space(
    tmp_path: Path, history: int, free: int, kept: int
) -> None:
    class Small(CountdownDisk):
        def free_bytes(self, _folder: str | int, _name: str) -> int:
            return free

    with Workspace.init(tmp_path, Small(None)):
        pass
    room, segment = tmp_path / ".cas" / RESERVE_NAME, tmp_path / ".cas/segments/long"
    assert room.stat().st_size == MIN_RESERVE_BYTES
    for size, expected in ((history, kept), (0, MIN_RESERVE_BYTES)):
        segment.touch()
        os.truncate(segment, size)
        reserve_space(str(tmp_path), Small(None))
        assert room.stat().st_size == pytest.approx(expected, abs=1 << 13)  # it was reserved itself, too


def test_no_space_is_reserved_on_a_nearly_full_disk(tmp_path: Path) -> None:
    class Nearly(CountdownDisk):
        def free_bytes(self, _folder: str | int, _name: str) -> int:
            return 1_000_000

    with Workspace.init(tmp_path, Nearly(None)) as workspace:
        write(workspace, "a.txt", b"a\n")
        workspace.retention.collect(EVERYTHING)
    assert not (tmp_path / ".cas" / RESERVE_NAME).exists()


class DiskWithoutMarker(CountdownDisk):
    """A disk on which only the applied marker can't be written."""

    marks = 0

    def overwrite(self, fd: int, content: bytes, offset: int, name: str) -> None:
        if name == "applied":
            self.marks += 1
            raise broken_disk(name)
        super().overwrite(fd, content, offset, name)


def test_unwritable_applied_marker_fails_no_call(root: Path) -> None:
    disk = DiskWithoutMarker(None)
    with Workspace.open(root, disk) as workspace:
        write(workspace, "c.txt", b"and on\n")
        write(workspace, "c.txt", b"and further\n")
    assert disk.marks >= 2
    with Workspace.open(root, CountdownDisk(None)) as workspace:
        assert workspace.review.status().external == ()


def test_an_unfinished_call_is_found_even_if_the_process_dies_once_its_segment_was_rewritten(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(_: Journal, path: str) -> None:
        raise PowerCut(path)

    with monkeypatch.context() as patched:
        patched.setattr(Journal, "remove_superseded", die)
        with pytest.raises(PowerCut):
            collect(root, PartlyFailing(full_disk, "stage"))
    assert (root / "b.txt").read_bytes() == b"second\n"
    with Workspace.open(root, CountdownDisk(None)) as workspace:
        assert (root / "b.txt").read_bytes() == b"third\n"
        assert workspace.review.status().external == ()


def test_file_with_two_names_is_completed_when_there_is_space_again(tmp_path: Path) -> None:
    with Workspace.init(tmp_path, CountdownDisk(None)) as workspace:
        write(workspace, "b.txt", b"second\n")
        os.link(tmp_path / "b.txt", tmp_path / "other")
    die_in_a_call(tmp_path)
    with Workspace.open(tmp_path, PartlyFailing(full_disk, "rewrite")) as workspace, pytest.raises(DiskFull):
        write(workspace, "c.txt", b"and on\n")
    with Workspace.open(tmp_path, CountdownDisk(None)):
        assert (tmp_path / "b.txt").read_bytes() == (tmp_path / "other").read_bytes() == b"third\n"


def repacked(root: Path, disk: CountdownDisk) -> None:
    with Workspace.open(root, disk) as workspace:
        assert workspace.retention.repack().is_done


def segment_bytes(root: Path) -> int:
    return sum(path.stat().st_size for path in (root / ".cas" / "segments").iterdir())


@pytest.mark.parametrize(("act", "stays"), [(collect, 0.5), (repacked, 1.0)])
def test_a_lack_of_space_for_a_segment_is_reported_with_the_size_needed(
    root: Path, act: Callable[[Path, CountdownDisk], None], stays: float
) -> None:
    Workspace.open(root, CountdownDisk(None)).close()
    before = segment_bytes(root)
    with pytest.raises(
        CompactionSpaceNeeded, match=r"free about 0\.[0-9] MB, or expire more history \(`--older-than`"
    ) as caught:
        act(root, TooFullDisk())
    Workspace.open(root, CountdownDisk(None)).close()  # the index may have given its room, and is made again
    index = (root / ".cas" / "index.sqlite").stat().st_size
    assert 0 < caught.value.needed - index <= before * stays + 1_000
    act(root, CountdownDisk(None))
    assert check_store(str(root)).faults == ()


def test_a_full_disk_with_everything_pending_has_a_way_out(small: Path) -> None:
    """Pending edits are not let go of, so they have to be decided first, and that takes a record."""
    root = small / "workspace"
    root.mkdir()
    with Workspace.init(root) as workspace:
        for version in range(40):
            write(workspace, "a.txt", os.urandom(200).hex().encode() + b"\nversion %d\n" % version)
        fill(small / "ballast")
        with pytest.raises(DiskFull):
            write(workspace, "a.txt", text(99))
        units = [Unit(view.seq, n) for view in workspace.history.edits() for n in range(len(view.units))]
        workspace.decide(Action.ACCEPT, units, reason="more than the last page of the segment has room for " * 100)
        assert not (root / ".cas" / RESERVE_NAME).exists()
        assert {view.status for view in workspace.history.edits()} == {Status.ACCEPTED}
        collected = workspace.retention.collect(EVERYTHING, thorough=True)
        assert collected.is_done
        assert collected.edits == 40
        assert collected.bytes_after < collected.bytes_before
        write(workspace, "a.txt", b"there is room again\n")
    assert check_store(str(root)).faults == ()


def test_a_rejection_that_writes_files_leaves_the_reserve_to_decisions_that_do_not(small: Path) -> None:
    root = small / "workspace"
    root.mkdir()
    with Workspace.init(root) as workspace:
        write(workspace, "a.txt", text(0))
        write(workspace, "a.txt", text(1))
        fill(small / "ballast")
        with pytest.raises(DiskFull):
            workspace.decide(Action.REJECT, [Unit(Seq(2), 1)])
        assert (root / ".cas" / RESERVE_NAME).exists()
        assert workspace.history.edit(2).status is Status.PENDING


Act = Callable[[Workspace], object]

ACTS: Final[dict[str, Act]] = {
    "write": lambda workspace: write(workspace, "b.txt", text(7)),
    "accept": accept_all,
    "reject": lambda workspace: workspace.decide(Action.REJECT, [Unit(Seq(VERSIONS + 1), 1)]),
    "undo": lambda workspace: workspace.review.undo(),
    "pin": lambda workspace: workspace.retention.pin([Seq(VERSIONS)], who="me"),
    "snapshot": lambda workspace: workspace.snapshots.take(who="me"),
    "record": lambda workspace: workspace.record_changes(CallInfo(tool="")),
    "gc": lambda workspace: workspace.retention.collect(EVERYTHING, thorough=True),
    "purge": lambda workspace: workspace.retention.purge([blob_id(b"second\n")], force=True, who="me"),
}


@pytest.mark.parametrize("failure", [full_disk, broken_disk], ids=["full", "broken"])
@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS.keys())
def test_an_error_reports_that_nothing_changed_only_if_nothing_did(
    tmp_path: Path, act: Act, failure: Callable[[str], BaseException]
) -> None:
    """Each operation of the disk fails in turn, and from then on all do."""
    start = tmp_path / "start"
    start.mkdir()
    with Workspace.init(start, CountdownDisk(None)) as workspace:
        write(workspace, "b.txt", b"first\n")
        for version in range(VERSIONS):
            write(workspace, "a.txt", text(version))
        write(workspace, "b.txt", b"second\n")
        write(workspace, "b.txt", b"third\n")
        if act in {ACTS["gc"], ACTS["undo"]}:
            accept_all(workspace)
    (start / "c.txt").write_bytes(b"a person's\n")
    seen = 0
    for step in (0, 1, 2, 3, 5, 8, 13, 21, 34, 55):
        root = shutil.copytree(start, tmp_path / str(step), symlinks=True)
        disk = CountdownDisk(step, failure)
        workspace = Workspace.open(root, disk)
        before = visible_state(root)
        message = ""
        try:
            act(workspace)
        except CasError as error:
            message = str(error)
        finally:
            workspace.close()
        claims = re.search(r"nothing (was|is) (changed|recorded)", message) is not None
        assert not claims or visible_state(root) == before, (step, disk.failed, message)
        if disk.failed is None:
            break
        seen += bool(message)
    assert seen


def visible_state(root: Path) -> tuple[dict[str, bytes], list[bytes]]:
    """Return what a person would call changed: their files, and the records of the log."""
    files = {path.name: path.read_bytes() for path in root.iterdir() if path.is_file()}
    with Workspace.open(root, CountdownDisk(None)) as workspace:
        return files, [view.id for view in workspace.history.records()]
