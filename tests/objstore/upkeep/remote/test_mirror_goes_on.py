"""A pull of something new checks what is new, and nothing else: the result is as if all had been checked."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from blake3 import blake3

from objstore import Action, RemoteRefused, Unit, Workspace, check_store
from objstore.disk.fs.disk import Disk
from objstore.model.ids import HASH_SIZE
from objstore.storage.log.frames import (
    SEGMENT_HEADER_SIZE,
    Frame,
    SegmentHeader,
    encode_frame,
    frame_key,
)
from objstore.storage.transaction.journal import Journal
from objstore.upkeep.remote.bucket import Bucket
from objstore.upkeep.remote.heads import Head, Piece, SegmentPieces
from objstore.upkeep.remote.keys import lane_of, object_key
from objstore.upkeep.remote.pull import mirror
from objstore.values.errors import DiskFailed, IndexUnusable
from tests.support.buckets import FailingBucket, memory_bucket
from tests.support.crash_scenarios import change, rejected, write
from tests.support.faulty_disk import (
    WHOLE,
    CountdownDisk,
    PowerCut,
    UnsyncedDisk,
    broken_disk,
    full_disk,
    power_cut,
    sampled_steps,
)
from tests.support.segment_scans import scan

Files = dict[str, bytes]


@pytest.fixture
def bucket() -> FailingBucket:
    return FailingBucket(memory_bucket())


def segments(root: Path) -> Files:
    return {path.name: path.read_bytes() for path in sorted((root / ".cas" / "segments").iterdir())}


def published(bucket: Bucket, root: Path, files: Files | None = None, pieces: int = 1) -> Head:
    """Put a log into a bucket, each segment in so many pieces, and return a head that names it: anyone can."""
    with closing(Journal(str(root), UnsyncedDisk())) as journal, journal.reading() as store:
        lane, last, edits = lane_of(store.log.store), store.last_record, store.next_seq() - 1
    made = []
    for name, content in (files or segments(root)).items():
        number, _, generation = name.removesuffix(".seg").partition(".")
        size = -(-len(content) // pieces)
        parts = [content[at : at + size] for at in range(0, len(content), size)]
        for part in parts:
            with suppress(Exception):
                bucket.put_new(object_key(lane, _hash(part)), part)
        named = tuple(Piece(name=_hash(part), size=len(part)) for part in parts)
        made.append(SegmentPieces(number=int(number), generation=int(generation or 0), pieces=named))
    return Head(lane=lane, number=1, previous=None, label="desk", segments=tuple(made), last=last, edits=edits)


def _hash(content: bytes) -> bytes:
    return blake3(content).digest(HASH_SIZE)


class Mirror:
    """A mirror, which tells how many blobs were verified."""

    def __init__(self, folder: Path, bucket: Bucket) -> None:
        folder.mkdir()
        self.root, self.folder, self.bucket = folder / "desk", folder, bucket
        self.verified = 0

    def pull(self, head: Head, disk: Disk | None = None) -> None:
        self.verified = 0
        mirror(
            self.bucket,
            head,
            str(self.root),
            str(self.folder / "incoming"),
            disk or UnsyncedDisk(),
            progress=self._progress,
        )

    def _progress(self, what: str, _: int, total: int) -> None:
        self.verified = total if what == "blobs" else self.verified


def edit(root: Path, *names: str, lines: int = 2) -> None:
    """Record one edit of each of these files."""
    with Workspace.open(root, UnsyncedDisk()) as workspace:
        for name in names:
            path = root / name
            old = path.read_bytes() if path.exists() else b""
            write(workspace, name, old + b"".join(b"%s %d\n" % (name.encode(), len(old) + at) for at in range(lines)))


def _more_edits(root: Path) -> None:
    edit(root, "a.txt", "b.txt")


def _rejection(root: Path) -> None:
    edit(root, "a.txt")
    with Workspace.open(root, UnsyncedDisk()) as workspace:
        rejected(workspace, int(workspace.history.edits()[-1].seq))


def _acceptance_of_old(root: Path) -> None:
    with Workspace.open(root, UnsyncedDisk()) as workspace:
        edit = workspace.history.edits()[0]
        workspace.decide(Action.ACCEPT, [Unit(edit.seq, hunk) for hunk in range(len(edit.units))])


def _undo(root: Path) -> None:
    _rejection(root)
    with Workspace.open(root, UnsyncedDisk()) as workspace:
        workspace.review.undo()


def _void(root: Path) -> None:
    """Fail to apply a call, so that a record takes back the edit before it."""
    with suppress(Exception), Workspace.open(root, CountdownDisk(None)) as workspace:
        change(workspace, ("c.txt", b"c\n"), ("a.txt/d.txt", b"d\n"))


def _large_file(root: Path) -> None:
    with Workspace.open(root, UnsyncedDisk()) as workspace:
        write(workspace, "large.bin", b"".join(bytes([at % 251]) * 997 for at in range(9_000)))


def _snapshot(root: Path) -> None:
    with Workspace.open(root, UnsyncedDisk()) as workspace:
        workspace.snapshots.take(who="ann")


def _next_segment(root: Path) -> None:
    with Workspace.open(root, UnsyncedDisk()) as workspace, workspace._journal.writing():  # noqa: SLF001 -- else 16 MB
        workspace._journal.store.seal()  # noqa: SLF001 -- see above
    edit(root, "a.txt", "b.txt")


WAYS: list[Callable[[Path], None]] = [
    _more_edits,
    _rejection,
    _acceptance_of_old,
    _undo,
    _void,
    _large_file,
    _snapshot,
    _next_segment,
]


@pytest.mark.parametrize("grow", WAYS)
def test_mirror_that_goes_on_is_as_one_that_was_checked_whole(
    root: Path, tmp_path: Path, bucket: FailingBucket, grow: Callable[[Path], None]
) -> None:
    edit(root, *(f"{number}.txt" for number in range(12)))
    made = Mirror(tmp_path / "mirrors", bucket)
    made.pull(published(bucket, root))
    whole = made.verified
    for pieces in (1, 3):
        grow(root)
        made.pull(published(bucket, root, pieces=pieces))
        assert made.verified < whole
        assert segments(made.root) == segments(root)
        assert check_store(str(made.root)).faults == ()  # compares the index with one that is built from the log
        assert [path.name for path in made.folder.iterdir()] == ["desk"]


def test_mirror_that_somebody_reads_goes_on(root: Path, tmp_path: Path, bucket: FailingBucket) -> None:
    edit(root, *(f"{number}.txt" for number in range(12)))
    made = Mirror(tmp_path / "mirrors", bucket)
    made.pull(published(bucket, root))
    whole = made.verified
    with Workspace.open(made.root, UnsyncedDisk()) as reader:
        after = reader.history.edits()[-1].edit.after
        assert after is not None
        reader.history.sha256(after.blob)  # is remembered in the index, and not in its file yet
        edit(root, "a.txt")
        made.pull(published(bucket, root))
        assert made.verified < whole
    assert segments(made.root) == segments(root)
    assert check_store(str(made.root)).faults == ()


def test_log_that_was_compacted_is_checked_whole(root: Path, tmp_path: Path, bucket: FailingBucket) -> None:
    edit(root, "a.txt", "b.txt", lines=100)
    _next_segment(root)
    made = Mirror(tmp_path / "mirrors", bucket)
    made.pull(published(bucket, root))
    files = segments(root)
    first = files.pop("00000001.seg")
    head, afresh = published(bucket, root, {"00000001.1.seg": first, **files}), Mirror(tmp_path / "afresh", bucket)
    made.pull(head)
    afresh.pull(head)
    assert made.verified == afresh.verified
    assert segments(made.root) == segments(afresh.root)


def _frames(content: bytes) -> Iterator[Frame]:
    key = frame_key(SegmentHeader.decode(content[:SEGMENT_HEADER_SIZE], segment=None).store)
    return (each for each in scan(content, key, SEGMENT_HEADER_SIZE) if isinstance(each, Frame))


# ---- damage of the mirror is found


def _flip_in(name: str, at: float) -> Callable[[Path], None]:
    def harm(root: Path) -> None:
        path = root / ".cas" / name
        content = bytearray(path.read_bytes())
        content[int(at * len(content))] ^= 1
        path.write_bytes(content)

    return harm


def _cut_short(root: Path) -> None:
    path = root / ".cas" / "segments" / "00000002.seg"
    path.write_bytes(path.read_bytes()[:-1])


def _lengthened(root: Path) -> None:
    path = root / ".cas" / "segments" / "00000002.seg"
    path.write_bytes(path.read_bytes() + b"\0")


def _without(name: str) -> Callable[[Path], None]:
    return lambda root: (root / ".cas" / name).unlink()


def _emptied(name: str) -> Callable[[Path], None]:
    def harm(root: Path) -> None:
        (root / ".cas" / name).write_bytes(b"")

    return harm


@pytest.mark.parametrize(
    "harm",
    [
        *(_flip_in(f"segments/0000000{number}.seg", at) for number in (1, 2) for at in (0.001, 0.5, 0.999)),
        _flip_in("applied", 0),
        _flip_in("applied", 0.5),
        _cut_short,
        _lengthened,
        *(each(name) for each in (_without, _emptied) for name in ("applied", "index.sqlite", "segments/00000001.seg")),
    ],
)
def test_damage_of_a_mirror_is_mended_by_the_next_pull(
    root: Path, tmp_path: Path, bucket: FailingBucket, harm: Callable[[Path], None]
) -> None:
    edit(root, "a.txt", "b.txt")
    _next_segment(root)
    made = Mirror(tmp_path / "mirrors", bucket)
    made.pull(published(bucket, root))
    harm(made.root)
    edit(root, "c.txt")
    made.pull(published(bucket, root))
    assert segments(made.root) == segments(root)
    assert check_store(str(made.root)).faults == ()


@pytest.mark.parametrize("at", range(0, 100, 1 if WHOLE else 9))
def test_damaged_index_of_a_mirror_keeps_nothing_from_being_pulled(
    root: Path, tmp_path: Path, bucket: FailingBucket, at: int
) -> None:
    edit(root, *(f"{number}.txt" for number in range(9)))
    made = Mirror(tmp_path / "mirrors", bucket)
    made.pull(published(bucket, root))
    index = made.root / ".cas/index.sqlite"
    content = bytearray(index.read_bytes())
    begins = len(content) * at // 100
    content[begins : begins + 64] = bytes(byte ^ 0x55 for byte in content[begins : begins + 64])
    index.write_bytes(content)
    _rejection(root)
    edit(root, "0.txt")
    made.pull(published(bucket, root))
    assert segments(made.root) == segments(root)
    with Workspace.open(root, UnsyncedDisk()) as own, Workspace.open(made.root, UnsyncedDisk()) as mirrored:
        with suppress(IndexUnusable):  # no pull reads every row, so that the first reader may be who finds the damage
            mirrored.history.edits()
        assert [(each.seq, each.status) for each in mirrored.history.edits()] == [
            (each.seq, each.status) for each in own.history.edits()
        ]


# ---- what is new is checked as everything is


def _resealed(content: bytes, since: int) -> Iterator[bytes]:
    """Yield the log with one byte flipped in the payload of each frame from `since` on, its checksum right again."""
    key = frame_key(SegmentHeader.decode(content[:SEGMENT_HEADER_SIZE], segment=None).store)
    for frame in _frames(content):
        if frame.offset < since:
            continue
        for at in {0, len(frame.payload) // 3, len(frame.payload) // 2, len(frame.payload) - 1}:
            payload = bytearray(frame.payload)
            payload[at] ^= 1
            made = encode_frame(key, frame.kind, bytes(payload), begins=frame.begins, commits=frame.commits)
            yield content[: frame.offset] + made + content[frame.end :]


def test_what_is_new_is_refused_if_a_check_of_all_refuses_it(root: Path, tmp_path: Path, bucket: FailingBucket) -> None:
    edit(root, "b.txt", lines=30)
    before = segments(root)["00000001.seg"]
    made = Mirror(tmp_path / "mirrors", bucket)
    made.pull(published(bucket, root))
    kept = tmp_path / "kept"
    shutil.copytree(made.root, kept)
    _rejection(root)
    edit(root, "b.txt", lines=30)
    said = []
    harmed = list(_resealed(segments(root)["00000001.seg"], len(before)))
    for number, content in enumerate(harmed[:: 1 if WHOLE else 3]):
        head = published(bucket, root, {"00000001.seg": content})
        afresh = Mirror(tmp_path / f"mirrors-{number}", bucket)
        for each in (made, afresh):
            try:
                each.pull(head)
            except RemoteRefused:
                said.append("refused")
            else:
                said.append("taken")
        assert said[-1] == said[-2]
        if said[-1] == "taken":
            assert segments(made.root)["00000001.seg"] == content
            shutil.rmtree(made.root)
            shutil.copytree(kept, made.root)
        else:
            assert segments(made.root)["00000001.seg"] == before
    assert said.count("refused") > len(said) // 2


# ---- crashes


@pytest.mark.parametrize("failure", [power_cut, full_disk, broken_disk])
def test_pull_that_fails_at_any_step_leaves_a_mirror_that_was_checked(
    root: Path, tmp_path: Path, bucket: FailingBucket, failure: Callable[[str], BaseException]
) -> None:
    edit(root, "b.txt")
    before, old = published(bucket, root), segments(root)
    edit(root, "b.txt", "c.txt")
    after, new = published(bucket, root, pieces=3), segments(root)

    def fails(steps: int | None, name: str) -> CountdownDisk:
        made = Mirror(tmp_path / name, bucket)
        made.pull(before)
        disk = CountdownDisk(steps, failure)
        with suppress(PowerCut, DiskFailed):
            made.pull(after, disk)
        assert segments(made.root) in (old, new)
        made.pull(after)
        assert segments(made.root) == new
        assert check_store(str(made.root)).faults == ()
        assert [path.name for path in made.folder.iterdir()] == ["desk"]
        return disk

    way = [power_cut, full_disk, broken_disk].index(failure)
    for step in sampled_steps(len(fails(None, "all").done), way):
        fails(step, str(step))
