"""Test that salvage reports all damage to segment files and saves everything that the damage did not touch."""

import os
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from itertools import count
from pathlib import Path
from typing import Final

import pytest

from objstore import (
    Action,
    BlobId,
    CallInfo,
    DiskFull,
    FileExists,
    FileMissing,
    Operation,
    RecordId,
    StoreDamaged,
    StoreUnknown,
    Unit,
    Workspace,
    blob_id,
    check_store,
    salvage_store,
)
from objstore.disk.fs.disk import Disk
from objstore.model.ids import HASH_SIZE, record_id
from objstore.model.record_codec import encode_record
from objstore.model.tree import TreeEntry, entry_at
from objstore.storage.log.blob_codec import BlobHeader, decode_blob, parse_blob_header
from objstore.storage.log.frames import (
    FRAME_HEADER_SIZE,
    SEGMENT_HEADER_SIZE,
    Frame,
    FrameKind,
    SegmentHeader,
    frame_key,
)
from objstore.storage.log.segment_files import Place
from objstore.storage.log.segments import Log
from objstore.storage.store.create import is_creation_folder
from objstore.storage.transaction.journal import Journal
from objstore.upkeep.integrity.salvage import Salvage, plan_salvage, rebuild
from objstore.upkeep.integrity.segment_scan import SegmentScan
from objstore.upkeep.transfer.bundle import bundle_pieces
from objstore.values.fastclass import replace
from tests.objstore.storage.index.test_log_index import Forger, create
from tests.support.crash_scenarios import TEXT, change, files, history, rejected, write
from tests.support.damaged_stores import lose
from tests.support.faulty_disk import WHOLE, CountdownDisk, PowerCut, UnsyncedDisk, full_disk
from tests.support.segment_scans import scan
from tests.support.unreadable_sectors import SECTOR, unreadable

SAMPLES: Final = 160 if WHOLE else 48
REBUILT: Final = 8
"""One in this number of samples is also rebuilt."""


@pytest.fixture(scope="module")
def intact_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a workspace of several segments with edits, delta chains, decisions and a move; tests may only copy it."""
    root = tmp_path_factory.mktemp("victim") / "ws"
    root.mkdir()
    with pytest.MonkeyPatch.context() as patch, Workspace.init(root) as workspace:
        patch.setattr("objstore.storage.log.segments.ROTATE_AT", 3000)
        for i in range(12):
            write(workspace, "a.txt", TEXT.replace(b"line 7\n", b"line 7 is now %d\n" % i))
            write(workspace, f"dir/b{i % 3}.txt", os.urandom(40).hex().encode() + b"\n")
        change(workspace, ("a.txt", TEXT), ("c", b"new\n"))
        rejected(workspace, 25)
        with workspace.call(CallInfo(tool="move_file", conversation="scene")) as call:
            call.move("c", "moved")
            call.commit()
        workspace.review.undo()
        write(workspace, "moved", b"new\nand more\n")
    return root


class IntactFrames:
    """The frames of an intact store, to compare with the salvage of a damaged one."""

    def __init__(self, root: Path) -> None:
        self.frames: dict[Path, list[Frame]] = {}
        for path in sorted((root / ".cas" / "segments").iterdir()):
            content = path.read_bytes()
            header = SegmentHeader.decode(content, segment=int(path.stem))
            found = list(scan(content, frame_key(header.store), SEGMENT_HEADER_SIZE))
            self.frames[path] = [frame for frame in found if isinstance(frame, Frame)]
            assert len(found) == len(self.frames[path])
            self.store = header.store
        with Workspace.open(root) as workspace:
            self.contents = {name: workspace.history.blob(name) for name in self.blobs(set())}

    def all(self) -> Iterator[tuple[Path, Frame]]:
        for path, frames in self.frames.items():
            for frame in frames:
                yield path, frame

    def blobs(self, gone: set[tuple[Path, int]]) -> set[BlobId]:
        """Return the blobs that can be read when some frames are gone."""
        bases: dict[BlobId, BlobId | None] = {}
        for path, frame in self.all():
            if frame.kind is FrameKind.BLOB and (path, frame.offset) not in gone:
                header = parse_blob_header(frame.payload)
                bases[header.id] = header.base

        def is_decodable(name: BlobId | None) -> bool:
            return name is None or (name in bases and is_decodable(bases[name]))

        return {name for name in bases if is_decodable(name)}

    def records(self, gone: set[tuple[Path, int]]) -> list[RecordId]:
        """Return the records that can be read when some frames are gone, in order."""
        return [
            record_id(bytes(frame.payload))
            for path, frame in self.all()
            if frame.kind is FrameKind.RECORD and (path, frame.offset) not in gone
        ]

    def check(self, salvage: Salvage, gone: set[tuple[Path, int]], saved: Path | None) -> None:
        """Assert that all but the lost frames are saved, and that the new store, if any, returns them."""
        whole, left = self.records(set()), self.records(gone)
        unbroken = next((i for i, name in enumerate(whole) if name not in left), len(whole))
        assert set(salvage.blobs) == self.blobs(gone)
        assert [found.id for found in salvage.journal] == whole[:unbroken]
        assert [found.id for found in salvage.unchained] == [name for name in left if name not in whole[:unbroken]]
        if saved is None:
            return
        with Workspace.open(saved) as workspace:
            assert {name: workspace.history.blob(name) for name in salvage.blobs} == {
                name: self.contents[name] for name in salvage.blobs
            }
            assert [view.id for view in workspace.history.edits()] == [
                name for name in whole[:unbroken] if self.is_edit(name)
            ]
        for file in salvage.recovered:
            assert blob_id((saved / "recovered" / file.name).read_bytes()) == file.state.blob

    def is_edit(self, name: RecordId) -> bool:
        return any(
            record_id(bytes(frame.payload)) == name and b"\xa4kind\xa4edit" in bytes(frame.payload)
            for _, frame in self.all()
        )


@pytest.fixture(scope="module")
def intact_frames(intact_root: Path) -> IntactFrames:
    return IntactFrames(intact_root)


def copy_segments(intact_root: Path, place: Path) -> Path:
    """Copy the segments alone; return their folder."""
    shutil.copytree(intact_root / ".cas" / "segments", place)
    return place


def flip(path: Path, offset: int) -> None:
    content = bytearray(path.read_bytes())
    content[offset] ^= 1 << (offset % 8)
    path.write_bytes(content)


def test_the_sample_has_everything_that_can_be_damaged(intact_frames: IntactFrames) -> None:
    assert len(intact_frames.frames) > 3
    depths = {parse_blob_header(f.payload).depth for _, f in intact_frames.all() if f.kind is FrameKind.BLOB}
    assert max(depths) > 5


def test_an_intact_store_is_saved_completely(intact_root: Path, intact_frames: IntactFrames, tmp_path: Path) -> None:
    salvage = salvage_store(str(intact_root), str(tmp_path / "new"))
    assert salvage.is_whole
    assert (salvage.lost_edits, salvage.lost_decisions, salvage.breaks) == ((), (), ())
    intact_frames.check(salvage, set(), tmp_path / "new")
    assert files(tmp_path / "new") == {}
    with Workspace.open(intact_root) as old, Workspace.open(tmp_path / "new") as new:
        assert history(new) == history(old)


@pytest.mark.parametrize("kind", [Path.mkdir, os.mkfifo, lambda mark: mark.symlink_to("nowhere")])
def test_a_salvage_ignores_an_applied_marker_that_is_not_a_file(
    intact_root: Path, intact_frames: IntactFrames, tmp_path: Path, kind: Callable[[Path], None]
) -> None:
    shutil.copytree(intact_root / ".cas", tmp_path / "damaged")
    (tmp_path / "damaged" / "applied").unlink()
    kind(tmp_path / "damaged" / "applied")
    salvage = salvage_store(str(tmp_path / "damaged"), str(tmp_path / "new"))
    assert salvage.is_whole
    intact_frames.check(salvage, set(), tmp_path / "new")


def test_salvaged_store_replaces_the_damaged_one(intact_root: Path, tmp_path: Path) -> None:
    root = tmp_path / "ws"
    shutil.copytree(intact_root, root)
    (root / ".cas").rename(tmp_path / "damaged")
    salvage_store(str(tmp_path / "damaged"), str(root))
    with Workspace.open(root) as workspace:
        assert workspace.review.external_changes() == ()
        rejected(workspace, 28)
        write(workspace, "a.txt", b"goes on\n")
        workspace.review.undo()


def test_any_flipped_byte_is_reported_and_loses_one_frame(
    intact_root: Path, intact_frames: IntactFrames, tmp_path: Path
) -> None:
    chance = random.Random(2)
    spots = [
        (path, frame, offset)
        for path, frame in intact_frames.all()
        for offset in {frame.offset, frame.end - 1, chance.randrange(frame.offset, frame.end)}
    ]
    for i, (path, frame, offset) in enumerate(chance.sample(spots, min(SAMPLES, len(spots)))):
        copy = copy_segments(intact_root, tmp_path / f"{i}")
        flip(copy / path.name, offset)
        new = None if i % REBUILT else tmp_path / f"{i}.new"
        salvage = salvage_store(str(copy), None if new is None else str(new))
        assert [damage.segment for damage in salvage.damage] == [path.name]
        assert not salvage.is_whole
        intact_frames.check(salvage, {(path, frame.offset)}, new)


def test_truncated_segment_is_salvaged_up_to_its_end(
    intact_root: Path, intact_frames: IntactFrames, tmp_path: Path
) -> None:
    chance = random.Random(3)
    cuts = [(path, at) for path, frames in intact_frames.frames.items() for at in range(len(frames))]
    for i, (path, at) in enumerate(chance.sample(cuts, min(SAMPLES // 4, len(cuts)))):
        copy = copy_segments(intact_root, tmp_path / f"{i}")
        frames = intact_frames.frames[path]
        os.truncate(copy / path.name, chance.randrange(frames[at].offset, frames[at].end))
        new = None if i % REBUILT else tmp_path / f"{i}.new"
        salvage = salvage_store(str(copy), None if new is None else str(new))
        intact_frames.check(salvage, {(path, frame.offset) for frame in frames[at:]}, new)


def test_missing_segment_is_reported_and_the_others_are_saved(
    intact_root: Path, intact_frames: IntactFrames, tmp_path: Path
) -> None:
    for path in intact_frames.frames:
        store = tmp_path / path.stem
        copy_segments(intact_root, store / "segments")
        shutil.copy(intact_root / ".cas" / "applied", store)
        (store / "segments" / path.name).unlink()
        salvage = salvage_store(str(store), str(tmp_path / f"{path.stem}.new"))
        assert not salvage.is_whole
        if path not in {min(intact_frames.frames), max(intact_frames.frames)}:
            assert salvage.missing_segments == (int(path.stem),)
        assert salvage.is_cut_off is (path == max(intact_frames.frames))
        intact_frames.check(
            salvage, {(path, frame.offset) for frame in intact_frames.frames[path]}, tmp_path / f"{path.stem}.new"
        )


def test_damaged_segment_header_loses_no_frame(intact_root: Path, intact_frames: IntactFrames, tmp_path: Path) -> None:
    path = next(iter(intact_frames.frames))
    for offset in range(0, SEGMENT_HEADER_SIZE, 1 if WHOLE else 5):
        copy = copy_segments(intact_root, tmp_path / f"{offset}")
        flip(copy / path.name, offset)
        salvage = salvage_store(str(copy), None)
        assert [(damage.segment, damage.offset) for damage in salvage.damage] == [(path.name, 0)]
        assert set(salvage.blobs) == intact_frames.blobs(set())
        assert not salvage.unchained


def test_the_only_header_with_one_wrong_byte_still_gives_the_store_id(tmp_path: Path) -> None:
    root = tmp_path / "ws"
    root.mkdir()
    with Workspace.init(root) as workspace:
        write(workspace, "a.txt", TEXT)
    (segment,) = (root / ".cas" / "segments").iterdir()
    store = SegmentHeader.decode(segment.read_bytes(), segment=1).store
    for offset in range(0, SEGMENT_HEADER_SIZE, 1 if WHOLE else 3):
        flip(segment, offset)
        salvage = salvage_store(str(root), None)
        assert (salvage.store, salvage.blobs) == (store, (blob_id(TEXT),))
        flip(segment, offset)


def test_store_id_must_be_given_if_every_header_is_lost(
    intact_root: Path, intact_frames: IntactFrames, tmp_path: Path
) -> None:
    copy = copy_segments(intact_root, tmp_path / "copy")
    for path in copy.iterdir():
        content = path.read_bytes()
        path.write_bytes(bytes(SEGMENT_HEADER_SIZE) + content[SEGMENT_HEADER_SIZE:])
    with pytest.raises(StoreUnknown):
        salvage_store(str(copy), None)
    salvage = salvage_store(str(copy), str(tmp_path / "new"), intact_frames.store)
    intact_frames.check(salvage, set(), tmp_path / "new")


def test_segments_with_any_name_are_read_in_any_order(
    intact_root: Path, intact_frames: IntactFrames, tmp_path: Path
) -> None:
    copy = copy_segments(intact_root, tmp_path / "copy")
    for i, path in enumerate(sorted(copy.iterdir(), reverse=True)):
        path.rename(copy / f"found{i}.seg")
    intact_frames.check(salvage_store(str(copy), str(tmp_path / "new")), set(), tmp_path / "new")


def test_lost_edits_and_blobs_are_named(tmp_path: Path) -> None:
    root = tmp_path / "ws"
    root.mkdir()
    with Workspace.init(root) as workspace:
        write(workspace, "a.txt", b"one\n")
        write(workspace, "a.txt", b"one\ntwo\n")
        write(workspace, "b.txt", b"b\n")
        write(workspace, "a.txt", b"one\ntwo\nthree\n")
    (segment,) = (root / ".cas" / "segments").iterdir()
    intact_frames = IntactFrames(root)
    second = [frame for _, frame in intact_frames.all() if frame.kind is FrameKind.RECORD][1]
    flip(segment, second.end - 1)
    salvage = salvage_store(str(root), str(tmp_path / "new"))
    assert salvage.lost_edits == (2,)
    ((path, document, after, before),) = salvage.breaks
    assert (path, document, after, before) == (b"a.txt", 1, "edit 1", "edit 4")
    assert sorted(file.name for file in salvage.recovered) == ["edit-3/b.txt", "edit-4/a.txt"]
    assert (tmp_path / "new/recovered/edit-4/a.txt").read_bytes() == b"one\ntwo\nthree\n"


@pytest.mark.parametrize("what", ["root", "folder", "file"])
def test_lost_parts_of_snapshots_are_named_with_their_snapshots(tmp_path: Path, what: str) -> None:
    root = tmp_path / "ws"
    (root / "folder").mkdir(parents=True)
    (root / "folder/file").write_bytes(b"never recorded\n")
    with Workspace.init(root) as workspace:
        for number in range(3):
            (root / "more").write_bytes(b"%d\n" % number)
            workspace.snapshots.take(who="me")
        tree = workspace.snapshots.get(3).root
        folder = entry_at(tree, b"folder", workspace.history.blob)
        assert isinstance(folder, TreeEntry)
        workspace.snapshots.delete([2], who="me")
    names = {"root": tree, "folder": folder.blob, "file": blob_id(b"never recorded\n")}
    salvage = lose(root, names[what])
    assert [(lost.id, lost.edits, lost.snapshots) for lost in salvage.lost_blobs] == [
        (names[what], (), (3,) if what == "root" else (1, 3))
    ]
    assert not salvage.is_whole


def test_lost_blob_of_the_last_call_loses_no_edit(tmp_path: Path) -> None:
    root = tmp_path / "ws"
    root.mkdir()
    with Workspace.init(root) as workspace:
        write(workspace, "a.txt", b"one\n")
        write(workspace, "b.txt", b"two\n")
    salvage = lose(root, blob_id(b"two\n"))
    assert [(lost.id, lost.edits) for lost in salvage.lost_blobs] == [(blob_id(b"two\n"), (2,))]
    assert len(salvage.journal) == 2
    assert not salvage.is_cut_off


def test_a_lost_last_record_is_reported_as_lost_newest_edits(tmp_path: Path) -> None:
    root = tmp_path / "ws"
    root.mkdir()
    with Workspace.init(root) as workspace:
        write(workspace, "a.txt", b"one\n")
        write(workspace, "b.txt", b"two\n")
    (segment,) = (root / ".cas" / "segments").iterdir()
    flip(segment, segment.stat().st_size - 1)
    salvage = salvage_store(str(root), None)
    assert len(salvage.journal) == 1
    assert salvage.is_cut_off


def test_lost_base_and_its_deltas_are_reported(tmp_path: Path) -> None:
    root = tmp_path / "ws"
    root.mkdir()
    with Workspace.init(root) as workspace:
        write(workspace, "a.txt", TEXT)
        write(workspace, "a.txt", TEXT + b"more\n")
        write(workspace, "b.txt", b"apart\n")
    (segment,) = (root / ".cas" / "segments").iterdir()
    base = next(frame for _, frame in IntactFrames(root).all() if frame.kind is FrameKind.BLOB)
    flip(segment, base.end - 1)
    salvage = salvage_store(str(root), None)
    assert salvage.blobs == (blob_id(b"apart\n"),)
    lost = {blob.id: blob for blob in salvage.lost_blobs}
    assert lost[blob_id(TEXT)].edits == (1, 2)
    assert lost[blob_id(TEXT + b"more\n")].reason == f"its base {blob_id(TEXT).hex()} is lost"
    assert len(salvage.journal) == 3


def test_a_chain_of_large_deltas_is_decoded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(5)
    content = chance.randbytes(5000)
    (tmp_path / "w").mkdir()
    with Workspace.init(tmp_path / "w", CountdownDisk(None)) as workspace:
        for version in range(20):
            content = content[:version] + b"*" + content[version + 1 :]
            write(workspace, "a", content)
    made: list[BlobId | None] = []

    def counted(header: BlobHeader, payload: bytes, base: bytes | None) -> bytes:
        made.append(header.base)
        return decode_blob(header, payload, base)

    monkeypatch.setattr("objstore.upkeep.integrity.segment_scan.decode_blob", counted)
    monkeypatch.setattr(
        "objstore.upkeep.integrity.segment_scan._CACHE_BYTES", 4 * 4096
    )  # none of them fits in the cache
    with SegmentScan(str(tmp_path / "w" / ".cas" / "segments")) as remains:
        blobs = [remains.blob(name) for name in remains.blobs]
    assert len(made) == len(blobs)
    assert sum(base is not None for base in made) > 15


def test_voided_records_are_not_reported_as_a_break(tmp_path: Path) -> None:
    root = tmp_path / "ws"
    root.mkdir()
    with Workspace.init(root) as workspace:
        for content in (b"1\n", b"1\n2\n", b"0\n1\n2\n"):
            with workspace.call(CallInfo(tool="edit", conversation="scene")) as call:
                call.write("a", content, operation=Operation.EDIT)
                call.commit()
        workspace.decide(Action.REJECT, [Unit(workspace.history.edit(2).seq, 1)])
        workspace.review.undo()
    assert salvage_store(str(root), None).breaks == ()


def test_salvage_never_overwrites_a_store(intact_root: Path, tmp_path: Path) -> None:
    with Workspace.init(tmp_path) as workspace:
        write(workspace, "mine", b"mine\n")
    before = files(tmp_path)
    with pytest.raises(FileExists):
        salvage_store(str(intact_root), str(tmp_path))
    assert files(tmp_path) == before


def test_salvage_refuses_an_existing_folder_of_recovered_files(intact_root: Path, tmp_path: Path) -> None:
    (tmp_path / "recovered").mkdir()
    with pytest.raises(FileExists):
        salvage_store(str(intact_root), str(tmp_path))


def test_a_folder_without_segments_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(FileMissing):
        salvage_store(str(tmp_path), None)


class SyncRecorder(Disk):
    """A disk that records which folders were synced."""

    def __init__(self) -> None:
        self.synced: set[int] = set()  # inodes: a folder may be moved later

    def sync_directory(self, path: str) -> None:
        super().sync_directory(path)
        self.synced.add(Path(path).stat().st_ino)


def test_folders_of_recovered_files_are_synced(intact_root: Path, tmp_path: Path) -> None:
    place = copy_segments(intact_root, tmp_path / "broken")
    next(iter(sorted(place.glob("*.seg")))).unlink()
    disk = SyncRecorder()
    with SegmentScan(str(place), None) as remains:
        salvage = plan_salvage(remains, None)
        rebuild(salvage, remains, str(tmp_path / "new"), disk)
    folders = [Path(folder) for folder, _, _ in os.walk(tmp_path / "new" / "recovered")]
    assert folders
    assert {folder.stat().st_ino for folder in (*folders, tmp_path / "new", tmp_path)} <= disk.synced


def copy_without_first_segment(intact_root: Path, folder: Path) -> Path:
    """Copy all segments except the first, so that many files have to be recovered."""
    place = copy_segments(intact_root, folder)
    next(iter(sorted(place.glob("*.seg")))).unlink()
    return place


def test_killed_salvage_can_be_repeated(intact_root: Path, tmp_path: Path) -> None:
    place = copy_without_first_segment(intact_root, tmp_path / "broken")
    for step in count(step=1 if WHOLE else 10):
        target = tmp_path / str(step)
        disk = CountdownDisk(step)
        with SegmentScan(str(place)) as remains:
            salvage = plan_salvage(remains, None)
            with suppress(PowerCut):
                rebuild(salvage, remains, str(target), disk)
            if disk.failed == "move_store_folder" and (target / "recovered").exists():
                continue  # it is complete, but the store is missing: a person has to decide whose it is
            if not (target / ".cas").exists():
                rebuild(salvage, remains, str(target), CountdownDisk(None))
        names = sorted(path.name for path in target.iterdir() if not is_creation_folder(path.name))
        assert names == [".cas", "recovered"], disk.failed
        assert check_store(str(target)).faults == ()
        shutil.rmtree(target)
        if disk.failed is None:
            break


def test_failed_salvage_leaves_nothing(intact_root: Path, tmp_path: Path) -> None:
    place = copy_without_first_segment(intact_root, tmp_path / "broken")
    for step in count(step=1 if WHOLE else 7):
        target = tmp_path / str(step)
        disk = CountdownDisk(step, full_disk, lasting=False)
        with SegmentScan(str(place)) as remains:
            try:
                rebuild(plan_salvage(remains, None), remains, str(target), disk)
            except DiskFull:
                # What can't be removed either is in no one's way.
                left = sorted(path.name for path in target.glob("*") if not is_creation_folder(path.name))
                assert left in ([], [".cas", "recovered"]), disk.failed
                assert target.exists() is any(target.glob("*"))
        if disk.failed is None:
            break


def test_recovered_state_with_a_too_long_path_is_named_and_the_rest_is_saved(tmp_path: Path) -> None:
    root = tmp_path / "ws"
    root.mkdir()
    # As long as a path may be, so that nothing is left for the names of the folders that it is recovered in.
    folders, rest = divmod(4084 - len(os.fsencode(tmp_path)), 201)
    long = ("x" * 200 + "/") * folders + "f" * (rest + 1)
    with Workspace.init(root, UnsyncedDisk()) as workspace:
        for path in ("lost", long, "last"):
            write(workspace, path, os.fsencode(path[-4:]) + b"\n")
    segment = root / ".cas" / "segments" / "00000001.seg"
    segment.write_bytes(segment.read_bytes().replace(b"ordinal", b"ordimal", 1))
    salvage = salvage_store(str(root), str(tmp_path / "new"))
    assert [file.name for file in salvage.unwritten] == [f"edit-2/{long}"]
    assert [file.name for file in salvage.recovered] == ["edit-3/last"]
    assert (tmp_path / "new" / "recovered" / "edit-3" / "last").read_bytes() == b"last\n"
    assert check_store(str(tmp_path / "new")).faults == ()


def test_the_longer_of_two_branches_becomes_the_journal(tmp_path: Path) -> None:
    """A writer that did not know of the last record would use its number again like this."""
    (tmp_path / "forked").mkdir()
    with closing(Forger(tmp_path / "forked")) as forger:
        forger.append_blob(b"")
        forger.append(encode_record(create(1), None))
        parting = forger.last
        forger.append(encode_record(create(2), parting))
        forger.append(encode_record(replace(create(2), time=2), parting))
        forger.append(encode_record(create(3), forger.last))
    found = salvage_store(str(tmp_path / "forked"), str(tmp_path / "saved"))
    assert len(found.unchained) == 1
    with Workspace.open(tmp_path / "saved") as workspace:
        assert [(view.seq, view.edit.time) for view in workspace.history.edits()] == [(1, 1), (2, 2), (3, 1)]
    assert check_store(str(tmp_path / "saved")).faults == ()


# ---- what the disk can't read


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """Return a workspace of three segments, of several sectors each."""
    root = tmp_path / "ws"
    root.mkdir()
    with pytest.MonkeyPatch.context() as patch, Workspace.init(root, CountdownDisk(None)) as workspace:
        patch.setattr("objstore.storage.log.segments.ROTATE_AT", 5 * SECTOR)
        draw = random.Random(7)
        while len(list((root / ".cas" / "segments").iterdir())) < 3:
            write(workspace, f"f{draw.randrange(9)}", draw.randbytes(900))
    return root


@pytest.mark.parametrize("sectors", [(0,), (2,), (1, 2, 4), range(9)], ids=["the header", "one", "three", "all"])
def test_the_readable_rest_of_a_segment_with_bad_sectors_is_saved(
    written: Path, tmp_path: Path, sectors: tuple[int, ...]
) -> None:
    segment = written / ".cas" / "segments" / "00000002.seg"
    with SegmentScan(str(segment.parent)) as whole:
        spots = {name: whole.span(name) for name in whole.blobs}
        sizes = {name: len(whole.payload(span)) for name, span in spots.items()}
    bad = {at * SECTOR + byte for at in sectors for byte in range(SECTOR)}
    frames = {name: range(span.offset, span.offset + FRAME_HEADER_SIZE + sizes[name]) for name, span in spots.items()}
    lost = {name for name, span in spots.items() if span.file == 1 and not bad.isdisjoint(frames[name])}
    with unreadable(segment, sectors):
        report = check_store(str(written))
        salvage = salvage_store(str(written), str(tmp_path / "saved"))
    assert set(spots) - set(salvage.blobs) <= lost
    assert len(salvage.blobs) > len(spots) // 3
    assert any("00000002.seg" in fault.what and "Input/output error" in fault.what for fault in report.faults)
    for damage in salvage.damage:
        assert damage.segment == segment.name
    with Workspace.open(tmp_path / "saved") as saved:
        for name in salvage.blobs:
            assert blob_id(saved.history.blob(name)) == name


def test_an_unreadable_sector_is_reported_with_its_place(written: Path, tmp_path: Path) -> None:
    segment = written / ".cas" / "segments" / "00000002.seg"
    with unreadable(segment, range(9)), Workspace.open(written) as workspace:
        edits = workspace.history.edits
        with pytest.raises(StoreDamaged, match=r"segment 2 at byte \d+: Input/output error"):
            edits()
        with pytest.raises(StoreDamaged, match=r"segment 2 at byte \d+: Input/output error"):
            workspace.transfer.export_bundle(str(tmp_path / "bundle"))
    assert not (tmp_path / "bundle").exists()
    assert check_store(str(written)).faults == ()


def test_a_log_that_lacks_a_group_is_not_bundled(written: Path, tmp_path: Path) -> None:
    segment = written / ".cas" / "segments" / "00000002.seg"
    content = segment.read_bytes()
    key = frame_key(SegmentHeader.decode(content, segment=2).store)
    *_, last, _ = [
        frame.end for frame in scan(content, key, SEGMENT_HEADER_SIZE) if isinstance(frame, Frame) and frame.commits
    ]
    for size, reason in (
        (last, "segment 3 at byte .*the record does not follow"),
        (last + 9, "segment 2 .*cut off in"),
    ):
        segment.write_bytes(content[:size])
        with Workspace.open(written) as workspace, pytest.raises(StoreDamaged, match=reason):
            workspace.transfer.export_bundle(str(tmp_path / "bundle"))
        assert not (tmp_path / "bundle").exists()
    segment.write_bytes(content)


def test_a_log_that_became_shorter_is_not_bundled(written: Path) -> None:
    with closing(Log(str(written / ".cas" / "segments"), Disk())) as log:
        size = log.files.size(3)
        whole = b"".join(bundle_pieces(log, Place(3, size)))
        assert whole[:-HASH_SIZE].endswith((written / ".cas" / "segments" / "00000003.seg").read_bytes())
        with pytest.raises(StoreDamaged, match="shorter") as caught:
            list(bundle_pieces(log, Place(3, size + 1)))
        assert (caught.value.segment, caught.value.offset) == (3, size)


def test_a_log_in_which_a_header_was_damaged_since_it_was_opened_is_not_bundled(written: Path) -> None:
    segment = written / ".cas" / "segments" / "00000002.seg"
    content = segment.read_bytes()
    with closing(Log(str(written / ".cas" / "segments"), Disk())) as log:
        end = Place(3, log.files.size(3))
        assert log.piece(Place(2, 0), SEGMENT_HEADER_SIZE) == content[:SEGMENT_HEADER_SIZE]
        segment.write_bytes(content[:20] + bytes([content[20] ^ 1]) + content[21:])
        with pytest.raises(StoreDamaged, match="segment 2 at byte 0"):
            list(bundle_pieces(log, end))


def test_log_with_an_invalid_record_is_not_bundled(written: Path) -> None:
    with closing(Journal(str(written), Disk())) as journal, journal.writing():
        log, begins = journal.store.log, journal.store.end
        end = log.append(begins, [(FrameKind.RECORD, b"no map")]).end
        with pytest.raises(StoreDamaged) as caught:
            list(bundle_pieces(log, end))
    assert (caught.value.segment, caught.value.offset) == begins[:2]
