"""Test that acknowledged groups are read back, a crashed write is cut off, and damage is never mistaken for a crash."""

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from objstore.disk.fs.disk import Disk
from objstore.storage.log.frames import FORMAT_VERSION, SEGMENT_HEADER_SIZE, FrameKind, SegmentHeader, StoreId
from objstore.storage.log.segment_files import Place, SegmentFiles
from objstore.storage.log.segments import Group, Log, create_log
from objstore.values.errors import (
    DiskFailed,
    DiskFull,
    FormatTooNew,
    NotAWorkspace,
    StoreDamaged,
    StoreRefuses,
    StoreReplaced,
    Unacknowledged,
)
from tests.support import strategies as draw
from tests.support.faulty_disk import CountdownDisk, PowerCut, broken_disk, full_disk, power_cut
from tests.support.interruption import InterruptionPoint, interrupted_at, interruption_points

Payload = tuple[FrameKind, bytes]
GROUPS: list[list[Payload]] = [
    [(FrameKind.BLOB, b"first blob"), (FrameKind.RECORD, b"first record")],
    [(FrameKind.RECORD, b"second")],
    [(FrameKind.BLOB, b"x" * 5000), (FrameKind.BLOB, b""), (FrameKind.RECORD, b"third")],
]
MANY: list[list[Payload]] = [*GROUPS, [(FrameKind.RECORD, b"4" * 300)], [(FrameKind.RECORD, b"fifth")]]

ROOT = Path(__file__).parents[4]
READING = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (256, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
from objstore.disk.fs.disk import Disk
from objstore.storage.log.segments import Log
log = Log(sys.argv[1], Disk())
print(len(list(log.groups(log.first))))
print(resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 512)  # there is room for other files
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    create_log(str(tmp_path), Disk())
    return tmp_path


def segment(folder: Path, number: int = 1) -> Path:
    return folder / f"{number:08d}.seg"


def of_version(version: int, path: Path) -> None:
    """Give the segment at `path` another format version; frames are the same in all of them."""
    content = path.read_bytes()
    header = replace(SegmentHeader.decode(content, segment=int(path.stem.partition(".")[0])), version=version)
    path.write_bytes(header.encode() + content[SEGMENT_HEADER_SIZE:])


def end_of(log: Log) -> Place:
    end = log.first
    for group in log.groups(log.first):
        end = group.end
    return end


def fill(folder: Path, groups: Sequence[Sequence[Payload]], disk: Disk | None = None) -> list[Group]:
    log = Log(str(folder), disk or Disk())
    try:
        end = end_of(log)
        log.repair_tail(end)
        written = []
        for group in groups:
            written.append(log.append(end, group))
            end = written[-1].end
        return written
    finally:
        log.close()


def payloads(group: Group) -> list[Payload]:
    return [(frame.kind, bytes(frame.payload)) for frame in group.frames]


def read(folder: Path) -> list[list[Payload]]:
    log = Log(str(folder), Disk())
    try:
        return [payloads(group) for group in log.groups(log.first)]
    finally:
        log.close()


@pytest.fixture
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("objstore.storage.log.segments.ROTATE_AT", 300)


# ---- whole


def test_append_returns_the_groups_that_a_reader_finds(folder: Path) -> None:
    written = fill(folder, GROUPS)
    log = Log(str(folder), Disk())
    assert list(log.groups(log.first)) == written
    for group in written:
        for frame in group.frames:
            assert log.read(Place(group.segment, frame.offset)) == frame
    log.close()


def test_reading_can_continue_from_any_group(folder: Path) -> None:
    written = fill(folder, GROUPS)
    log = Log(str(folder), Disk())
    for i, group in enumerate(written):
        assert list(log.groups(group.end)) == written[i + 1 :]
    log.close()


@pytest.mark.usefixtures("small_segments")
def test_log_with_more_segments_than_the_soft_limit_of_open_files_is_read(
    folder: Path,
) -> None:
    fill(folder, [[(FrameKind.RECORD, b"r" * 300)]] * 300, CountdownDisk(None))
    ran = subprocess.run([sys.executable, "-c", READING, folder], cwd=ROOT, capture_output=True, check=True)
    assert ran.stdout.split() == [b"300", b"True"]


@pytest.mark.usefixtures("small_segments")
def test_a_full_segment_is_followed_by_the_next(folder: Path) -> None:
    groups = [[(FrameKind.RECORD, b"r%d" % i * 20)] for i in range(30)]
    written = fill(folder, groups)
    assert [segment(folder, n).exists() for n in (1, 2, 3)] == [True] * 3
    assert read(folder) == groups
    log = Log(str(folder), Disk())
    assert list(log.groups(log.first)) == written
    assert log.files.total_bytes() == sum(path.stat().st_size for path in folder.iterdir())
    log.close()


@pytest.mark.usefixtures("small_segments")
def test_a_log_ends_where_nothing_follows_not_even_in_the_next_segment(folder: Path) -> None:
    log = Log(str(folder), Disk())
    group = log.append(log.first, GROUPS[2])
    assert (log.ends_at(group.end), log.is_as_appended(group.end)) == (True, True)
    assert not log.ends_at(log.first)
    (other,) = fill(folder, GROUPS[:1])
    assert other.segment == group.segment + 1
    assert (log.ends_at(group.end), log.is_as_appended(group.end)) == (False, False)
    assert (log.ends_at(other.end), log.is_as_appended(other.end)) == (True, False)
    log.close()


class Overtaken(SegmentFiles):
    """Segments in whose folder another process completes a compaction just after it was listed."""

    def _list(self) -> dict[int, int]:
        found = super()._list()
        newer = self.folder / "00000001.1.seg" if hasattr(self, "folder") else None
        if newer is not None and not newer.exists():
            segment(self.folder).rename(newer)
        return found

    folder: Path


def test_the_size_of_the_log_is_known_while_a_segment_is_rewritten(folder: Path) -> None:
    fill(folder, GROUPS)
    with closing(Overtaken(str(folder), Disk())) as files:
        files.folder = folder
        assert files.total_bytes() == files.total_bytes() == (folder / "00000001.1.seg").stat().st_size


def test_a_group_larger_than_one_read_is_whole(folder: Path) -> None:
    groups = [[(FrameKind.BLOB, os.urandom(3 << 20)), (FrameKind.RECORD, b"r")], [(FrameKind.RECORD, b"s")]]
    written = fill(folder, groups)
    assert read(folder) == groups
    log = Log(str(folder), Disk())
    assert bytes(log.read(Place(1, written[0].frames[0].offset)).payload) == groups[0][0][1]
    log.close()


def test_other_files_among_the_segments_are_ignored(folder: Path) -> None:
    fill(folder, GROUPS)
    (folder / "00000002.seg.0123456789abcdef").write_bytes(b"what a crash left of a new segment")
    (folder / "notes.txt").write_bytes(b"")
    assert read(folder) == GROUPS


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("pattern", ["{:09d}.seg", "{:012d}.1.seg", "{:08d}.01.seg", "{:08d}.0.seg"])
def test_noncanonical_segment_number_is_ignored(folder: Path, pattern: str, number: int) -> None:
    fill(folder, GROUPS)
    (folder / pattern.format(number)).write_bytes(b"")
    with closing(Log(str(folder), Disk())) as log:
        assert len(list(log.groups(log.first))) == len(GROUPS)
        assert log.files.numbers() == [1]
        assert log.files.superseded() == []


def test_all_but_the_newest_generation_of_a_segment_are_superseded(folder: Path) -> None:
    fill(folder, GROUPS)
    older = [segment(folder), folder / "00000001.1.seg"]
    for path in (older[1], folder / "00000001.2.seg"):
        path.write_bytes(older[0].read_bytes())
    with closing(Log(str(folder), Disk())) as log:
        assert sorted(log.files.superseded()) == sorted(map(str, older))


@pytest.mark.usefixtures("small_segments")
def test_a_segment_that_was_added_since_the_listing_is_not_superseded(folder: Path) -> None:
    fill(folder, GROUPS)
    with closing(Log(str(folder), Disk())) as log:
        assert log.files.numbers() == [1]
        fill(folder, GROUPS)
        assert segment(folder, 2).exists()
        (folder / "00000001.1.seg.new").write_bytes(b"what a sweep left that was killed")
        assert log.files.superseded() == [str(folder / "00000001.1.seg.new")]


def test_a_name_that_is_listed_and_can_not_be_found_is_reported(folder: Path) -> None:
    fill(folder, GROUPS)
    with closing(Log(str(folder), Disk())) as log, pytest.MonkeyPatch.context() as patch:
        # As a network's file system lists what another machine has removed.
        names = [*(path.name for path in folder.iterdir()), segment(folder, 2).name]
        patch.setattr("objstore.storage.log.segment_files.os.listdir", lambda _: names)
        with pytest.raises(StoreDamaged, match="segment 2"):
            log.files.refresh(force=True)


@pytest.mark.usefixtures("small_segments")
@pytest.mark.parametrize("left_out", [1, 2, 3])
@pytest.mark.parametrize("is_open", [False, True], ids=["opened", "open"])
def test_a_listing_that_lacks_a_segment_which_is_rewritten_meanwhile_is_repeated(
    folder: Path, left_out: int, *, is_open: bool
) -> None:
    for _ in range(3):
        fill(folder, GROUPS)
    segment(folder, left_out).rename(folder / f"{left_out:08d}.1.seg")
    listdir, hidden = os.listdir, [f"{left_out:08d}.1.seg"]

    def listed(of: str) -> list[str]:
        """Return the names as the system lists them: a rename meanwhile may hide a file from one listing."""
        hides = hidden.pop() if hidden and of == str(folder) else ""
        return [name for name in listdir(of) if name != hides]

    with pytest.MonkeyPatch.context() as patch:
        if not is_open:
            patch.setattr("objstore.storage.log.segment_files.os.listdir", listed)
        with closing(Log(str(folder), Disk())) as log:
            patch.setattr("objstore.storage.log.segment_files.os.listdir", listed)
            if is_open:
                log.files.refresh(force=True)
            assert (log.files.last, log.files.generation(left_out), log.files.numbers()) == (3, 1, [1, 2, 3])
            assert len(list(log.groups(log.first))) == 3 * len(GROUPS)


@pytest.mark.usefixtures("small_segments")
def test_log_without_its_last_segment_counts_as_another(folder: Path) -> None:
    fill(folder, GROUPS)
    fill(folder, GROUPS)
    with closing(Log(str(folder), Disk())) as log:
        assert log.files.numbers() == [1, 2]
        segment(folder, 2).unlink()
        with pytest.raises(StoreReplaced):
            log.files.refresh(force=True)


def test_one_call_is_one_append_and_one_sync(folder: Path) -> None:
    disk = CountdownDisk(None)
    fill(folder, GROUPS, disk)
    assert disk.done == ["append", "sync"] * len(GROUPS)


# ---- a crash


@pytest.mark.parametrize("size", range(1, 200, 7))
def test_unfinished_group_is_not_read_and_is_truncated(folder: Path, size: int) -> None:
    fill(folder, GROUPS[:2])
    before = segment(folder).stat().st_size
    fill(folder, [[(FrameKind.BLOB, b"y" * 100), (FrameKind.RECORD, b"z" * 60)]])
    os.truncate(segment(folder), before + size)
    assert read(folder) == GROUPS[:2]
    log = Log(str(folder), Disk())
    assert log.repair_tail(end_of(log)) == size
    log.close()
    assert segment(folder).stat().st_size == before
    fill(folder, GROUPS[2:])
    assert read(folder) == GROUPS


@given(rubbish=st.binary(min_size=1, max_size=300))
def test_garbage_at_the_end_is_truncated(tmp_path_factory: pytest.TempPathFactory, rubbish: bytes) -> None:
    folder = tmp_path_factory.mktemp("log")
    create_log(str(folder), CountdownDisk(None))
    fill(folder, GROUPS[:1], CountdownDisk(None))
    with segment(folder).open("ab") as file:
        file.write(rubbish)
    assert read(folder) == GROUPS[:1]
    fill(folder, GROUPS[1:], CountdownDisk(None))
    assert read(folder) == GROUPS


@pytest.mark.parametrize("lost", [0, 1])
def test_group_without_its_first_pages_is_truncated(folder: Path, lost: int) -> None:
    fill(folder, GROUPS[:2])
    (group,) = fill(folder, GROUPS[2:])
    content = bytearray(segment(folder).read_bytes())
    frame = group.frames[lost]
    content[frame.offset : frame.end] = bytes(frame.end - frame.offset)
    segment(folder).write_bytes(content)
    assert read(folder) == GROUPS[:2]
    fill(folder, GROUPS[2:])
    assert read(folder) == GROUPS


def appended_until_the_disk_fails(folder: Path, disk: CountdownDisk) -> int:
    """Append the groups one by one; return how many were acknowledged."""
    log = Log(str(folder), disk)
    acknowledged = 0
    try:
        end = end_of(log)
        log.repair_tail(end)
        for group in MANY:
            end = log.append(end, group).end
            acknowledged += 1
    except (PowerCut, DiskFull, DiskFailed):
        pass
    finally:
        log.close()
    return acknowledged


@pytest.mark.usefixtures("small_segments")
@pytest.mark.parametrize("lost", [False, True], ids=["kept", "unsynced is lost"])
@pytest.mark.parametrize("torn", [None, 0.01, 0.5, 0.99])
def test_acknowledged_groups_survive_a_power_cut_at_any_step(
    tmp_path: Path,
    torn: float | None,
    lost: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    steps = 0
    while True:
        folder = tmp_path / str(steps)
        folder.mkdir()
        create_log(str(folder), CountdownDisk(None))
        disk = CountdownDisk(steps, power_cut, torn=torn)
        acknowledged = appended_until_the_disk_fails(folder, disk)
        if disk.failed is None:
            break
        if lost:
            disk.lose_unsynced()
        found = read(folder)
        assert found == MANY[: len(found)], disk.done
        assert len(found) in {acknowledged, acknowledged + (disk.failed == "sync" and not lost)}, disk.done
        fill(folder, MANY[len(found) :], CountdownDisk(None))
        assert read(folder) == MANY, disk.done
        steps += 1
    assert segment(folder, 3).exists()
    assert steps > 2 * len(MANY)


@pytest.mark.parametrize("failure", [full_disk, broken_disk])
def test_failed_append_changes_nothing_and_the_log_stays_usable(folder: Path, failure: object) -> None:
    assert callable(failure)
    log = Log(str(folder), CountdownDisk(0, failure, lasting=False))
    with pytest.raises((DiskFull, DiskFailed)):
        log.append(log.first, GROUPS[0])
    assert read(folder) == []
    log.append(log.first, GROUPS[0])
    log.close()
    assert read(folder) == GROUPS[:1]


@pytest.mark.parametrize("failure", [full_disk, broken_disk])
def test_failed_sync_refuses_appends_until_the_log_is_reopened(folder: Path, failure: object) -> None:
    assert callable(failure)
    log = Log(str(folder), CountdownDisk(1, failure, lasting=False))
    with pytest.raises((DiskFull, DiskFailed)):
        log.append(log.first, GROUPS[0])
    assert segment(folder).stat().st_size == log.first.offset
    assert read(folder) == []
    with pytest.raises(StoreRefuses):
        log.append(log.first, GROUPS[0])
    with pytest.raises(StoreRefuses):
        log.repair_tail(log.first)
    log.close()
    fill(folder, GROUPS)
    assert read(folder) == GROUPS


@pytest.mark.parametrize("failure", [full_disk, broken_disk])
def test_a_group_that_can_be_neither_synced_nor_cut_off_is_not_reported_as_removed(
    folder: Path, failure: object
) -> None:
    assert callable(failure)
    log = Log(str(folder), CountdownDisk(1, failure))
    with pytest.raises(Unacknowledged):
        log.append(log.first, GROUPS[0])
    log.close()
    assert read(folder) == GROUPS[:1]


@pytest.mark.usefixtures("small_segments")
def test_a_segment_that_could_not_be_begun_leaves_the_log_as_usable_as_it_was(folder: Path) -> None:
    (group,) = fill(folder, [[(FrameKind.RECORD, b"x" * 300)]])
    disk = CountdownDisk(0, full_disk, lasting=False)
    log = Log(str(folder), disk)
    with pytest.raises(DiskFull):
        log.append(group.end, GROUPS[0])
    assert log.append(group.end, GROUPS[0]).segment == 2
    log.close()


@pytest.mark.usefixtures("small_segments")
def test_a_segment_begun_by_a_writer_that_died_is_made_durable_before_it_is_used(folder: Path) -> None:
    (group,) = fill(folder, [[(FrameKind.RECORD, b"x" * 300)]])
    disk = CountdownDisk(1)
    log = Log(str(folder), disk)
    with pytest.raises(PowerCut):
        log.append(group.end, GROUPS[0])
    log.close()
    assert (disk.done, disk.failed) == (["create"], "sync_directory")
    disk = CountdownDisk(None)
    fill(folder, GROUPS[:1], disk)
    assert disk.done == ["create", "sync_directory", "append", "sync"]


def test_the_log_continues_in_a_begun_segment_even_if_the_one_before_has_space(folder: Path) -> None:
    (group,) = fill(folder, GROUPS[:1])
    log = Log(str(folder), Disk())
    assert log.seal(group.end).segment == 2
    log.close()
    assert [each.segment for each in fill(folder, GROUPS[1:])] == [2, 2]
    assert read(folder) == GROUPS


# ---- damage


def damaged(folder: Path, offset: int, number: int = 1) -> None:
    content = bytearray(segment(folder, number).read_bytes())
    content[offset] ^= 1
    segment(folder, number).write_bytes(content)


def test_any_damaged_byte_before_a_good_group_is_reported(folder: Path) -> None:
    written = fill(folder, GROUPS)
    original = segment(folder).read_bytes()
    for offset in range(SEGMENT_HEADER_SIZE, written[1].end.offset):
        damaged(folder, offset)
        with pytest.raises(StoreDamaged) as caught:
            read(folder)
        hit = next(group for group in written if offset < group.end.offset)
        assert (caught.value.segment, caught.value.offset) == (1, hit.frames[0].offset)
        segment(folder).write_bytes(original)


def test_a_damaged_frame_is_refused_when_it_is_read_alone(folder: Path) -> None:
    written = fill(folder, GROUPS)
    original = segment(folder).read_bytes()
    frame = written[0].frames[0]
    for offset in range(frame.offset, frame.end):
        damaged(folder, offset)
        log = Log(str(folder), Disk())
        with pytest.raises(StoreDamaged) as caught:
            log.read(Place(1, frame.offset))
        assert (caught.value.segment, caught.value.offset) == (1, frame.offset)
        log.close()
        segment(folder).write_bytes(original)


@given(start=st.integers(0, 400), groups=draw.groups_of_payloads)
def test_only_the_place_of_a_frame_gives_a_frame(
    tmp_path_factory: pytest.TempPathFactory, start: int, groups: list[list[Payload]]
) -> None:
    folder = tmp_path_factory.mktemp("log")
    create_log(str(folder), CountdownDisk(None))
    offsets = {frame.offset for group in fill(folder, groups, CountdownDisk(None)) for frame in group.frames}
    log = Log(str(folder), Disk())
    try:
        assert log.read(Place(1, start)).offset in offsets
    except StoreDamaged:
        assert start not in offsets
    finally:
        log.close()


@pytest.mark.usefixtures("small_segments")
def test_an_unfinished_end_before_another_segment_is_damage(folder: Path) -> None:
    fill(folder, [[(FrameKind.RECORD, b"r" * 100)] for _ in range(6)])
    os.truncate(segment(folder, 1), segment(folder, 1).stat().st_size - 1)
    with pytest.raises(StoreDamaged):
        read(folder)


@pytest.mark.usefixtures("small_segments")
def test_a_segment_missing_between_others_is_reported(folder: Path) -> None:
    fill(folder, [[(FrameKind.RECORD, b"r" * 100)] for _ in range(12)])
    assert segment(folder, 3).exists()
    segment(folder, 2).unlink()
    with pytest.raises(StoreDamaged, match="missing") as caught:
        read(folder)
    assert caught.value.segment == 2


@pytest.mark.usefixtures("small_segments")
def test_a_segment_of_another_store_is_reported(folder: Path) -> None:
    fill(folder, [[(FrameKind.RECORD, b"r" * 100)] for _ in range(6)])
    foreign = SegmentHeader(store=StoreId(b"another store id"), number=2, created=1).encode()
    segment(folder, 2).write_bytes(foreign + segment(folder, 2).read_bytes()[SEGMENT_HEADER_SIZE:])
    with pytest.raises(StoreDamaged, match="another store"):
        read(folder)


def test_a_damaged_header_is_reported(folder: Path) -> None:
    fill(folder, GROUPS)
    for offset in range(SEGMENT_HEADER_SIZE):
        damaged(folder, offset)
        with pytest.raises(StoreDamaged):
            Log(str(folder), Disk())
        damaged(folder, offset)
    assert read(folder) == GROUPS


def test_a_log_of_a_newer_format_is_reported_as_such(folder: Path) -> None:
    of_version(FORMAT_VERSION + 1, segment(folder))
    with pytest.raises(FormatTooNew):
        Log(str(folder), Disk())


def test_a_log_without_segments_is_damaged_and_without_their_folder_there_is_none(tmp_path: Path) -> None:
    folder = tmp_path / ".cas" / "segments"
    with pytest.raises(NotAWorkspace, match=f"No workspace at {tmp_path} or above it"):
        Log(str(folder), Disk())
    folder.mkdir(parents=True)
    with pytest.raises(StoreDamaged, match="there is no segment"):
        Log(str(folder), Disk())


# ---- readers while a writer appends


def read_while(folder: Path, moment: InterruptionPoint, act: Callable[[], object]) -> list[list[Payload]]:
    """Return the groups of a reader during whose reading another process acts, at that moment or later."""
    log = Log(str(folder), Disk())
    try:
        with interrupted_at(moment, act):
            found = list(log.groups(log.first))
        if not moment.came:
            act()
        found += log.groups(found[-1].end)
        return [payloads(group) for group in found]
    finally:
        log.close()


@pytest.mark.parametrize("seen", [1, 30, 60, 200])
def test_partly_written_group_is_not_reported_as_damage(folder: Path, seen: int) -> None:
    fill(folder, GROUPS[:1])
    start = segment(folder).stat().st_size
    fill(folder, GROUPS[1:])
    whole = segment(folder).read_bytes()
    for moment in interruption_points():
        os.truncate(segment(folder), start + seen)
        assert read_while(folder, moment, lambda: segment(folder).write_bytes(whole)) == GROUPS


def test_reader_continues_after_a_partly_written_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the group that was met is finished, or cut off and the next segment begun where it was."""
    groups = [[(FrameKind.RECORD, b"%d" % i * 120)] for i in range(6)]
    for full in (200, 300):
        monkeypatch.setattr("objstore.storage.log.segments.ROTATE_AT", full)
        for moment in interruption_points():
            folder = tmp_path / f"{full}-{moment.step}"
            folder.mkdir()
            create_log(str(folder), Disk())
            fill(folder, groups[:1])
            whole = segment(folder).stat().st_size
            with segment(folder).open("ab") as file:
                file.write(bytes.fromhex("f5ca5efa") + b"half of a group")
            assert segment(folder).stat().st_size > whole
            assert read_while(folder, moment, partial(fill, folder, groups[1:])) == groups


def test_a_reader_never_misses_a_group_appended_before_the_next_segment_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("objstore.storage.log.segments.ROTATE_AT", 300)
    groups = [[(FrameKind.RECORD, b"%d" % i * 60)] for i in range(8)]
    for moment in interruption_points():
        folder = tmp_path / str(moment.step)
        folder.mkdir()
        create_log(str(folder), Disk())
        fill(folder, groups[:1])
        assert read_while(folder, moment, partial(fill, folder, groups[1:])) == groups
        assert segment(folder, 2).exists()


def test_log_continues_in_the_next_segment_only_after_the_end_of_this_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("objstore.storage.log.segments.ROTATE_AT", 300)
    groups = [[(FrameKind.RECORD, b"%d" % i * 60)] for i in range(8)]
    for moment in interruption_points():
        folder = tmp_path / str(moment.step)
        folder.mkdir()
        create_log(str(folder), Disk())
        end = fill(folder, groups[:1])[-1].end
        log = Log(str(folder), Disk())
        with interrupted_at(moment, partial(fill, folder, groups[1:])):
            assert log.next_start(end) is None
        log.close()


def test_reader_continues_after_a_writer_truncates_the_end(folder: Path) -> None:
    groups = [[(FrameKind.BLOB, bytes([i]) * (1 << 20))] for i in range(3)]
    fill(folder, groups)
    log = Log(str(folder), Disk())
    reading = log.groups(log.first)
    first = next(reading)
    os.truncate(segment(folder), first.end.offset)
    assert payloads(first) == groups[0]
    for later in reading:
        assert payloads(later) in groups
    log.close()
