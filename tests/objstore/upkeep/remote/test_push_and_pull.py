"""A store that was pushed is there as it was; whatever a bucket does, nothing of it is believed unchecked."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from datetime import timedelta
from pathlib import Path

import pytest
from blake3 import blake3
from hypothesis import given, strategies as st
from obstore import delete, put

from objstore import RemoteDiverged, RemoteFailed, RemoteRefused, RemoteRolledBack, Workspace
from objstore.model.ids import HASH_SIZE
from objstore.storage.log.segment_files import Place
from objstore.storage.transaction.journal import Journal
from objstore.upkeep.remote.bucket import Bucket, Listed, ObjectBucket, claim, open_bucket
from objstore.upkeep.remote.collect import collect
from objstore.upkeep.remote.heads import PIECE, Head, Piece, Seen, SegmentPieces, name_of, newest_head
from objstore.upkeep.remote.keys import Lane, head_folder, lane_of, new_lane, numbered, object_key, store_of
from objstore.upkeep.remote.probe import probe
from objstore.upkeep.remote.pull import clone, mirror
from objstore.upkeep.remote.push import Pushed, plan_push, push
from objstore.values.errors import StoreDamaged
from objstore.values.fastclass import replace
from tests.support.buckets import CutOff, FailingBucket, memory_bucket
from tests.support.crash_scenarios import rejected, write
from tests.support.earlier_stores import make_earlier
from tests.support.faulty_disk import UnsyncedDisk
from tests.support.scene import observe_tree


@pytest.fixture
def bucket() -> FailingBucket:
    return FailingBucket(memory_bucket())


def pushed(
    root: Path,
    bucket: Bucket,
    seen: Seen | None = None,
    *,
    lane: Lane | None = None,
    again: bool = False,
) -> Pushed:
    """Push the store in `root` and return the result."""
    with closing(Journal(str(root), UnsyncedDisk())) as journal, journal.reading() as store:
        own = lane or lane_of(store.log.store)
        done = push(bucket, own, store, label=root.name, seen=seen, again=again)
        assert isinstance(done, Pushed)
        return done


def edited(root: Path, content: bytes) -> None:
    """Record one more edit."""
    with Workspace.open(root, UnsyncedDisk()) as workspace:
        write(workspace, "a.txt", content)


def mirrored(bucket: Bucket, head: Head, folder: Path) -> None:
    """Bring the mirror in a folder to a head."""
    folder.mkdir(exist_ok=True)
    mirror(bucket, head, str(folder / "desk"), str(folder / "incoming"), UnsyncedDisk())


def newest(bucket: Bucket, lane: Lane, seen: Seen | None = None) -> Head:
    """Return the newest head of a lane, which exists."""
    found = newest_head(bucket, lane, seen)
    assert found is not None
    return found[0]


def segments(root: Path) -> dict[str, bytes]:
    """Return the segments of a store."""
    return {name: seen.content for name, seen in observe_tree(root, store=True).items()}


# ---- what is pushed is there


def test_clone_has_the_same_log_and_the_same_files(root: Path, tmp_path: Path, bucket: FailingBucket) -> None:
    edited(root, b"one\ntwo\n")
    with Workspace.open(root, UnsyncedDisk()) as workspace:
        rejected(workspace, 2)
    head = pushed(root, bucket).head
    made = clone(bucket, head, str(tmp_path / "clone"), str(tmp_path / "incoming"), UnsyncedDisk())
    assert segments(tmp_path / "clone") == segments(root)
    assert (tmp_path / "clone" / "a.txt").read_bytes() == b"one\n" == (root / "a.txt").read_bytes()
    assert made.files == 1
    assert not (tmp_path / "incoming").exists()


def test_push_pull_and_clone_say_how_far_they_are(root: Path, tmp_path: Path, bucket: FailingBucket) -> None:
    said: list[tuple[str, int, int]] = []

    def progress(what: str, done: int, total: int) -> None:
        said.append((what, done, total))

    with closing(Journal(str(root), UnsyncedDisk())) as journal, journal.reading() as store:
        done = push(bucket, lane_of(store.log.store), store, label="desk", progress=progress)
    assert isinstance(done, Pushed)
    assert said[-1] == ("bytes", done.size, done.size)
    for copy in (
        lambda: mirror(bucket, done.head, str(tmp_path / "desk"), str(tmp_path / "in"), UnsyncedDisk(), progress),
        lambda: clone(bucket, done.head, str(tmp_path / "clone"), str(tmp_path / "in"), UnsyncedDisk(), progress),
    ):
        said.clear()
        copy()
        assert ("bytes", done.size, done.size) in said
        assert {"blobs", "documents"} <= {what for what, _, _ in said}


def test_push_of_one_more_edit_takes_three_requests(root: Path, bucket: FailingBucket) -> None:
    first = pushed(root, bucket)
    edited(root, b"one\ntwo\n")
    bucket.requests.clear()
    done = pushed(root, bucket, first.seen)
    assert done.head.previous == first.name
    assert bucket.requests == {"list": 1, "put": 2}


def test_push_of_nothing_new_makes_no_head(root: Path, bucket: FailingBucket) -> None:
    first = pushed(root, bucket)
    again = pushed(root, bucket, first.seen)
    assert (again.is_new, again.seen) == (False, first.seen)


def test_store_of_an_early_version_is_not_taken_from_a_bucket(
    root: Path, tmp_path: Path, bucket: FailingBucket
) -> None:
    head = pushed(root, bucket).head
    make_earlier(root)
    content = (root / ".cas" / "segments" / "00000001.seg").read_bytes()
    piece = Piece(name=blake3(content).digest(HASH_SIZE), size=len(content))
    claim(bucket, object_key(head.lane, piece.name), content)
    early = replace(head, segments=(replace(head.segments[0], pieces=(piece,)),))
    with pytest.raises(RemoteRefused, match="before format 1"):
        mirrored(bucket, early, tmp_path / "members")
    assert not (tmp_path / "members" / "incoming").exists()


def test_mirror_follows_and_keeps_no_file(root: Path, tmp_path: Path, bucket: FailingBucket) -> None:
    for number in range(3):
        edited(root, b"line\n" * (number + 2))
        mirrored(bucket, pushed(root, bucket).head, tmp_path / "mirrors")
        assert segments(tmp_path / "mirrors" / "desk") == segments(root)
    assert [path.name for path in (tmp_path / "mirrors" / "desk").iterdir()] == [".cas"]


@given(pushes=st.lists(st.integers(1, 3 * PIECE), min_size=1, max_size=40))
def test_pieces_stay_few_and_cover_the_segment(pushes: list[int]) -> None:
    head, size, sent = None, 0, 0
    pieces: list[Piece] = []
    for grown in pushes:
        size += grown
        plan = plan_push(head, {}, {1: size + 64}, Place(1, size + 64))
        sent += plan.size
        pieces = [*plan.kept[1].pieces, *(Piece(name=bytes(HASH_SIZE), size=each.size) for each in plan.sent)]
        assert sum(piece.size for piece in pieces) == size + 64
        assert max(piece.size for piece in pieces) <= PIECE
        segment = SegmentPieces(number=1, generation=0, pieces=tuple(pieces))
        head = Head(lane=Lane(""), number=1, previous=None, label="", segments=(segment,), last=None, edits=0)
    small = [piece for piece in pieces if piece.size < PIECE]
    assert len(small) <= PIECE.bit_length() + len(pushes) // 2
    assert sent <= (size + 64) * PIECE.bit_length()


@pytest.mark.parametrize("at", [-1, 100], ids=["not pushed yet", "pushed before, and sent again"])
def test_log_that_is_damaged_is_not_pushed(root: Path, bucket: FailingBucket, at: int) -> None:
    first = pushed(root, bucket)
    edited(root, b"line\n" * 1_000)  # more than was pushed, which then is sent again with it
    (segment,) = (root / ".cas" / "segments").iterdir()
    content = bytearray(segment.read_bytes())
    content[at] ^= 1
    with closing(Journal(str(root), UnsyncedDisk())) as journal, journal.reading() as store:
        segment.write_bytes(content)  # while it is open: opening a store reads its end
        with pytest.raises(StoreDamaged):
            push(bucket, first.head.lane, store, label="desk", seen=first.seen)
    assert newest(bucket, first.head.lane) == first.head


# ---- what breaks off goes on


def test_push_that_dies_at_any_request_is_made_again(root: Path, tmp_path: Path) -> None:
    edited(root, b"x" * 100_000)
    whole = FailingBucket(memory_bucket())
    pushed(root, whole)
    for step in range(1, whole.count + 1):
        bucket = FailingBucket(memory_bucket())
        bucket.dies_at = step
        with suppress(CutOff):
            pushed(root, bucket)
        bucket.dies_at = 0
        head = pushed(root, bucket).head
        mirrored(bucket, head, tmp_path / f"mirrors-{step}")
        assert segments(tmp_path / f"mirrors-{step}" / "desk") == segments(root)


def test_pull_that_dies_at_any_request_fetches_only_what_is_left(
    root: Path, tmp_path: Path, bucket: FailingBucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("objstore.upkeep.remote.push.PIECE", 256)
    for number in range(1, 5):
        edited(root, b"line %d\n" % number * number)
    head = pushed(root, bucket).head
    total = len(head.pieces())
    assert total > 2
    for step in range(1, total + 1):
        bucket.requests.clear()
        bucket.dies_at = step
        with suppress(CutOff):
            mirrored(bucket, head, tmp_path / f"mirrors-{step}")
        bucket.dies_at = 0
        bucket.requests.clear()
        mirrored(bucket, head, tmp_path / f"mirrors-{step}")
        assert bucket.count <= total - step + 1
        assert segments(tmp_path / f"mirrors-{step}" / "desk") == segments(root)


@pytest.mark.parametrize("way", ["loses", "repeats"])
def test_own_put_that_was_answered_late_is_no_loss(root: Path, bucket: FailingBucket, way: str) -> None:
    setattr(bucket, way, lambda _: True)
    done = pushed(root, bucket)
    assert newest(bucket, done.head.lane) == done.head


def test_push_that_another_process_was_faster_with_finds_it_done(root: Path, bucket: FailingBucket) -> None:
    first = pushed(root, bucket)
    edited(root, b"one\ntwo\n")
    other = pushed(root, bucket, first.seen)
    # The second process still believes the first head to be the newest: it looks, and finds its own store's.
    assert pushed(root, bucket, first.seen).head == other.head


# ---- what a bucket may do


def _flip(bucket: ObjectBucket, key: str, size: int) -> None:
    content = bytearray(bucket.get(key, size))
    content[size // 2] ^= 1
    put(bucket._store, key, bytes(content))  # noqa: SLF001 - a member who lies has more than our interface


def _remove(bucket: ObjectBucket, key: str, _: int) -> None:
    delete(bucket._store, key)  # noqa: SLF001 - as above


def _grow(bucket: ObjectBucket, key: str, size: int) -> None:
    put(bucket._store, key, bucket.get(key, size) + bytes(1 << 20))  # noqa: SLF001 - as above


def _cut(bucket: ObjectBucket, key: str, size: int) -> None:
    put(bucket._store, key, bucket.get(key, size)[:-1])  # noqa: SLF001 - as above


@pytest.mark.parametrize("harm", [_flip, _remove, _grow, _cut])
def test_harmed_piece_is_refused_and_the_mirror_stays(
    root: Path, tmp_path: Path, bucket: FailingBucket, harm: Callable[[ObjectBucket, str, int], None]
) -> None:
    first = pushed(root, bucket)
    mirrored(bucket, first.head, tmp_path / "mirrors")
    before = segments(tmp_path / "mirrors" / "desk")
    edited(root, b"one\ntwo\n")
    head = pushed(root, bucket, first.seen).head
    piece = head.segments[-1].pieces[-1]
    harm(bucket.inner, object_key(head.lane, piece.name), piece.size)
    with pytest.raises((RemoteRefused, RemoteFailed)) as refusal:
        mirrored(bucket, head, tmp_path / "mirrors")
    assert piece.name.hex() in str(refusal.value)
    assert segments(tmp_path / "mirrors" / "desk") == before


TOO_LARGE = Piece(name=bytes(HASH_SIZE), size=PIECE + 1)


@pytest.mark.parametrize(
    "body",
    [
        lambda _: b"",
        lambda _: b"\x80",
        lambda head: head.encode(),  # of another number
        lambda head: replace(head, number=2, lane=Lane("0" * 32)).encode(),
        lambda head: replace(head, number=2, segments=()).encode(),
        lambda head: replace(head, number=2, segments=(replace(head.segments[0], number=2),)).encode(),
        lambda head: replace(head, number=2, segments=(replace(head.segments[0], generation=1),)).encode(),
        lambda head: replace(head, number=2, segments=(replace(head.segments[0], pieces=()),)).encode(),
        lambda head: replace(head, number=2, segments=(replace(head.segments[0], pieces=(TOO_LARGE,)),)).encode(),
        lambda head: replace(head, number=2, label="x" * 65).encode(),
    ],
)
def test_head_that_is_none_is_refused(root: Path, bucket: FailingBucket, body: Callable[[Head], bytes]) -> None:
    done = pushed(root, bucket)
    bucket.put_new(numbered(head_folder(done.head.lane), 2), body(done.head))
    with pytest.raises(RemoteRefused):
        newest(bucket, done.head.lane, done.seen)


def test_head_that_is_too_large_is_not_read(root: Path, bucket: FailingBucket, monkeypatch: pytest.MonkeyPatch) -> None:
    done = pushed(root, bucket)
    bucket.put_new(numbered(head_folder(done.head.lane), 2), bytes(1_001))
    monkeypatch.setattr("objstore.upkeep.remote.heads.MAX_HEAD", 1_000)
    with pytest.raises(RemoteFailed, match="1000"):
        newest(bucket, done.head.lane, done.seen)


def test_log_that_is_no_store_is_refused_and_leaves_nothing(root: Path, tmp_path: Path, bucket: FailingBucket) -> None:
    head = pushed(root, bucket).head
    # Of the member's own making, with right hashes: only the checks of an import find it.
    content = bytearray(b"".join(segments(root).values()))
    content[-3] ^= 1
    name = blake3(content).digest(HASH_SIZE)
    bucket.put_new(object_key(head.lane, name), bytes(content))
    segment = replace(head.segments[0], pieces=(Piece(name=name, size=len(content)),))
    with pytest.raises(RemoteRefused, match="is damaged"):
        mirrored(bucket, replace(head, segments=(segment,)), tmp_path / "mirrors")
    assert list((tmp_path / "mirrors").iterdir()) == []


def test_store_of_another_lane_is_refused(root: Path, tmp_path: Path, bucket: FailingBucket) -> None:
    head = pushed(root, bucket).head
    foreign = replace(head, lane=Lane("ab" * 16))
    piece = head.segments[0].pieces[0]
    bucket.put_new(object_key(foreign.lane, piece.name), bucket.get(object_key(head.lane, piece.name), piece.size))
    with pytest.raises(RemoteRefused, match="another store"):
        mirrored(bucket, foreign, tmp_path / "mirrors")


def test_names_that_are_not_ours_are_ignored(root: Path, bucket: FailingBucket) -> None:
    done = pushed(root, bucket)
    for name in ("../../escape", "00000000000a", "1", "0000000000002", "999999999999/x"):
        with suppress(RemoteFailed):
            bucket.put_new(f"{head_folder(done.head.lane)}/{name}", b"x")
    assert newest(bucket, done.head.lane, done.seen) == done.head


def test_store_larger_than_the_disk_is_not_fetched(root: Path, tmp_path: Path, bucket: FailingBucket) -> None:
    head = pushed(root, bucket).head
    piece = Piece(name=bytes(HASH_SIZE), size=PIECE)
    vast = tuple(replace(head.segments[0], number=number, pieces=(piece,) * 8_000) for number in range(1, 200))
    bucket.requests.clear()
    with pytest.raises(Exception, match="are free here"):
        mirrored(bucket, replace(head, segments=vast), tmp_path / "mirrors")
    assert bucket.count == 0


def test_bucket_that_went_back_is_noticed_and_nothing_is_taken(root: Path, bucket: FailingBucket) -> None:
    first = pushed(root, bucket)
    edited(root, b"one\ntwo\n")
    second = pushed(root, bucket, first.seen)
    bucket.delete([numbered(head_folder(second.head.lane), 2)])
    with pytest.raises(RemoteRolledBack):
        newest(bucket, second.head.lane, second.seen)
    with pytest.raises(RemoteRolledBack):
        pushed(root, bucket, second.seen)
    again = pushed(root, bucket, second.seen, again=True)
    assert again.head.number == 3
    assert again.head.segments == second.head.segments


def test_emptied_bucket_gets_everything_again(root: Path, tmp_path: Path, bucket: FailingBucket) -> None:
    first = pushed(root, bucket)
    bucket.delete([each.key for each in bucket.listed("") if "heads" not in each.key])
    again = pushed(root, bucket, first.seen, again=True).head
    mirrored(bucket, again, tmp_path / "mirrors")
    assert segments(tmp_path / "mirrors" / "desk") == segments(root)


def test_head_in_another_heads_place_is_noticed(root: Path, bucket: FailingBucket) -> None:
    done = pushed(root, bucket)
    bucket.delete([numbered(head_folder(done.head.lane), 1)])
    bucket.put_new(numbered(head_folder(done.head.lane), 1), replace(done.head, label="other").encode())
    with pytest.raises(RemoteRefused, match="was replaced"):
        newest(bucket, done.head.lane, replace(done.seen, body=b""))


# ---- copies


def _copied(root: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(root, tmp_path / "copy"))


def test_copy_that_went_another_way_is_refused_and_may_take_a_new_lane(
    root: Path, tmp_path: Path, bucket: FailingBucket
) -> None:
    first = pushed(root, bucket)
    copy = _copied(root, tmp_path)
    edited(root, b"one\ntwo\n")
    edited(copy, b"one\nzwei\n")
    second = pushed(root, bucket, first.seen)
    with pytest.raises(RemoteDiverged):
        pushed(copy, bucket, first.seen)
    with pytest.raises(RemoteDiverged):
        pushed(copy, bucket)
    assert newest(bucket, second.head.lane) == second.head
    lane = new_lane(store_of(first.head.lane), b"\0\0\0\1")
    other = pushed(copy, bucket, lane=lane).head
    assert newest(bucket, lane) == other
    assert pushed(root, bucket, second.seen).head == second.head


def test_store_restored_from_a_backup_does_not_push_over_what_is_newer(
    root: Path, tmp_path: Path, bucket: FailingBucket
) -> None:
    backup = _copied(root, tmp_path)
    edited(root, b"one\ntwo\n")
    pushed(root, bucket)
    with pytest.raises(RemoteDiverged):
        pushed(backup, bucket)


def test_clone_goes_on_in_the_lane_of_the_store_that_it_is_of(
    root: Path, tmp_path: Path, bucket: FailingBucket
) -> None:
    first = pushed(root, bucket)
    clone(bucket, first.head, str(tmp_path / "clone"), str(tmp_path / "incoming"), UnsyncedDisk())
    assert not pushed(tmp_path / "clone", bucket).is_new
    edited(tmp_path / "clone", b"one\ntwo\n")
    assert pushed(tmp_path / "clone", bucket).head.number == 2


# ---- collections


@pytest.fixture
def grown(root: Path, bucket: FailingBucket) -> Pushed:
    """Return what was pushed last of a store whose pieces were replaced by larger ones."""
    done = pushed(root, bucket)
    for number in range(2, 6):
        edited(root, b"line\n" * number * 50)
        done = pushed(root, bucket, done.seen)
    return done


def test_collection_removes_what_a_list_of_a_day_ago_names(
    grown: Pushed, tmp_path: Path, bucket: FailingBucket
) -> None:
    lane = grown.head.lane
    first = collect(bucket, lane, grown.seen)
    assert (first.removed, first.waiting > 0) == (0, True)
    bucket.age(timedelta(hours=23))
    assert collect(bucket, lane, grown.seen).removed == 0
    bucket.age(timedelta(hours=25))
    second = collect(bucket, lane, grown.seen)
    assert (second.removed, second.waiting) == (first.waiting, 0)
    mirrored(bucket, grown.head, tmp_path / "mirrors")
    assert collect(bucket, lane, grown.seen).waiting == 0
    assert {each.key for each in bucket.listed("")} == {
        numbered(head_folder(lane), grown.head.number),
        *(object_key(lane, name) for name in grown.head.pieces()),
    }


def test_purge_does_not_wait(grown: Pushed, bucket: FailingBucket) -> None:
    done = collect(bucket, grown.head.lane, grown.seen, purge=True)
    assert (done.removed > 0, done.waiting) == (True, 0)


def test_dry_collection_changes_nothing(grown: Pushed, bucket: FailingBucket) -> None:
    before = [each.key for each in bucket.listed("")]
    assert collect(bucket, grown.head.lane, grown.seen, dry_run=True).waiting > 0
    assert [each.key for each in bucket.listed("")] == before


def test_collection_that_dies_at_any_request_loses_nothing(
    root: Path, grown: Pushed, tmp_path: Path, bucket: FailingBucket
) -> None:
    for step in range(1, 9):
        bucket.requests.clear()
        bucket.dies_at = step
        with suppress(CutOff):
            collect(bucket, grown.head.lane, grown.seen, purge=step % 2 == 0)
        bucket.dies_at = 0
        mirrored(bucket, newest(bucket, grown.head.lane, grown.seen), tmp_path / f"mirrors-{step}")
        assert segments(tmp_path / f"mirrors-{step}" / "desk") == segments(root)


# ---- probes


def test_bucket_that_ignores_the_condition_is_refused() -> None:
    class Careless(FailingBucket):
        def put_new(self, key: str, content: bytes) -> bool:
            put(self.inner._store, key, content)  # noqa: SLF001 - as servers do that accept the header and ignore it
            return True

    bucket = Careless(memory_bucket())
    with pytest.raises(RemoteRefused, match="of 8 writers"):
        probe(bucket)
    assert list(bucket.listed("")) == []


def test_bucket_that_lists_only_what_was_there_before_is_refused() -> None:
    class Late(FailingBucket):
        def listed(self, prefix: str, after: str = "") -> Iterator[Listed]:
            yield from (each for each in super().listed(prefix, after) if each.key == "probe/of-another")

    bucket = Late(memory_bucket())
    assert bucket.put_new("probe/of-another", b"left by a probe that was killed")
    with pytest.raises(RemoteRefused, match="does not list"):
        probe(bucket)
    assert [each.key for each in bucket.inner.listed("")] == ["probe/of-another"]


def test_folder_keeps_the_condition(tmp_path: Path) -> None:
    bucket = open_bucket(f"file://{tmp_path}/bucket", makes_folder=True)
    assert probe(bucket).writers == 8
    assert list(bucket.listed("")) == []


def test_head_names_the_one_before(root: Path, bucket: FailingBucket) -> None:
    first = pushed(root, bucket)
    edited(root, b"one\ntwo\n")
    second = pushed(root, bucket, first.seen)
    assert second.head.previous == name_of(first.head.encode())
    assert Head.decode(second.head.encode(), second.head.lane, 2) == second.head
