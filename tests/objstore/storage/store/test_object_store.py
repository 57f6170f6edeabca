"""Test that blobs are read back by name through any chain, and that no frame, even a forged one, gives other bytes."""

import hashlib
import random
import sqlite3
import tracemalloc
from array import array
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from struct import Struct
from typing import Final

import pytest
import zstandard
from hypothesis import given, settings, strategies as st

from objstore import Action, CallInfo, RecordInvalid, Workspace
from objstore.model.ids import BlobId, RecordId, blob_id
from objstore.model.replay_records import ReplayDecision
from objstore.storage.log.blob_codec import MAX_DEPTH, Base, Encoding, encode_blob, parse_blob_header
from objstore.storage.log.frames import SEGMENT_HEADER_SIZE, FrameKind
from objstore.storage.log.segments import Group, Log
from objstore.storage.store.object_store import Store, create_store
from objstore.storage.store.write_batch import Batch
from objstore.values.errors import BlobDamaged, BlobMissing, NotAWorkspace, StoreDamaged
from tests.support import strategies as draw
from tests.support.crash_scenarios import history, write
from tests.support.faulty_disk import CountdownDisk

HEADER: Final = Struct("<32sQBB6x")
DELTA: Final = Struct("<32sQQ")


def new_store(folder: Path) -> Store:
    create_store(str(folder), CountdownDisk(None))
    return Store(str(folder), CountdownDisk(None))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(new_store(tmp_path)) as store:
        yield store


def stored(store: Store, content: bytes, base: BlobId | None = None) -> BlobId:
    batch = Batch(store)
    name = batch.blob(content, base)
    if batch:
        batch.commit()
    return name


def again(folder: Path) -> Store:
    """Return the store as a new process opens it, with empty caches."""
    return Store(str(folder), CountdownDisk(None))


# ---- whole


@settings(max_examples=25)
@given(contents=st.lists(draw.contents, min_size=1, max_size=12), chained=st.booleans())
def test_blobs_are_read_by_id(
    tmp_path_factory: pytest.TempPathFactory,
    contents: list[bytes],
    chained: bool,  # noqa: FBT001 - drawn
) -> None:
    folder = tmp_path_factory.mktemp("store")
    with closing(new_store(folder)) as store:
        names: list[BlobId] = []
        for content in contents:
            names.append(stored(store, content, names[-1] if chained and names else None))
        with closing(again(folder)) as fresh:
            assert [fresh.blob(name) for name in reversed(names)] == contents[::-1]


def test_blob_at_the_end_of_a_long_chain_is_read(store: Store, tmp_path: Path) -> None:
    lines = [b"line %d\n" % i for i in range(500)]
    names: list[BlobId] = []
    for i in range(3 * MAX_DEPTH):
        lines[i] = b"changed\n"
        names.append(stored(store, b"".join(lines), names[-1] if names else None))
    depths = [place.depth for name in names if (place := store.blob_place(name)) is not None]
    assert depths == [i % (MAX_DEPTH + 1) for i in range(3 * MAX_DEPTH)]
    with closing(again(tmp_path)) as fresh:
        assert fresh.blob(names[-1]) == b"".join(lines)


def test_reading_a_delta_reports_its_damaged_base(store: Store, tmp_path: Path) -> None:
    first, last = b"right\n" * 40, b"right\n" * 40 + b"and more\n"
    _, payload = encode_blob(first.replace(b"right", b"wrong"), name=blob_id(first))
    store.append([(FrameKind.BLOB, payload)])
    above, delta = encode_blob(last, Base(id=blob_id(first), content=first, depth=0))
    assert above.base == blob_id(first)
    store.append([(FrameKind.BLOB, delta)])
    with closing(again(tmp_path)) as fresh, pytest.raises(BlobDamaged) as raised:
        fresh.blob(above.id)
    assert raised.value.blob == blob_id(first)


def test_store_is_far_behind_only_after_many_appends(tmp_path: Path) -> None:
    noise = random.Random(4).randbytes
    is_behind = []
    with closing(new_store(tmp_path)) as store, closing(again(tmp_path)) as other:
        for change in (lambda: stored(store, noise(1_000)), lambda: stored(store, noise(100_000)), store.seal):
            change()
            is_behind.append(other.is_far_behind)
            other.catch_up()
            is_behind.append(other.is_far_behind)
    assert is_behind == [False, False, True, False, True, False]


def test_a_blob_is_stored_once(store: Store) -> None:
    stored(store, b"the same bytes")
    before = store.log.files.total_bytes()
    stored(store, b"the same bytes")
    batch = Batch(store)
    assert batch.blob(b"new bytes") == batch.blob(b"new bytes")
    batch.commit()
    assert store.log.files.total_bytes() - before < 200
    assert store.index.blobs.count() == 2


@pytest.mark.parametrize("damage", ["", "DELETE FROM blobs WHERE id = ?", "UPDATE blobs SET offset = 1 WHERE id = ?"])
def test_blobs_looked_up_together_are_found_as_each_alone(tmp_path: Path, damage: str) -> None:
    with closing(new_store(tmp_path)) as store:
        batch = Batch(store)
        names = [batch.blob(b"%d" % number) for number in range(1200)]
        batch.commit()
    with closing(sqlite3.connect(tmp_path / "index.sqlite")) as index, index:
        if damage:
            assert index.execute(damage, (names[700],)).rowcount == 1
            index.execute("INSERT OR IGNORE INTO blob_starts VALUES (?)", (names[700][:8],))  # as if the row was lost
    unknown = {blob_id(b"unknown %d" % number) for number in range(700)}
    with closing(again(tmp_path)) as store:
        assert store.lacking({*names, *unknown}) == unknown
        assert {name for name in (*names, *unknown) if not store.has(name)} == unknown
        batch = Batch(store)
        batch.look_up([*names, blob_id(b"new")])
        assert [batch.blob(b"%d" % number) for number in range(1200)] == names
        assert not batch
        assert batch.blob(b"new") == batch.blob(b"new")
        batch.commit()
        assert store.index.blobs.count() == 1201


def test_groups_follow_one_another_while_the_index_is_busy(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("objstore.storage.index.database.BUSY_SECONDS", 0.1)
    with closing(sqlite3.connect(tmp_path / "index.sqlite", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        first = store.append([(FrameKind.BLOB, encode_blob(b"one")[1])])
        with pytest.raises(sqlite3.OperationalError):
            store.catch_up()
        with pytest.raises(sqlite3.OperationalError):
            store.has(blob_id(b"one"))
        second = store.append([(FrameKind.BLOB, encode_blob(b"two")[1])])
        assert second.frames[0].offset == first.end.offset
        other.execute("ROLLBACK")
    assert [store.blob(blob_id(each)) for each in (b"one", b"two")] == [b"one", b"two"]


def test_a_sha256_is_that_of_the_bytes(store: Store) -> None:
    name = stored(store, b"content")
    for _ in range(2):
        assert store.sha256(name) == hashlib.sha256(b"content").digest()


def test_a_blob_that_was_never_stored_is_missing(store: Store) -> None:
    with pytest.raises(BlobMissing):
        store.blob(blob_id(b"never"))


def test_a_folder_without_a_log_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(NotAWorkspace):
        Store(str(tmp_path), CountdownDisk(None))


# ---- frames that lie


def forged(store: Store, *payloads: bytes) -> Group:
    """Append arbitrary blob frames to the log."""
    return store.append([(FrameKind.BLOB, payload) for payload in payloads])


def delta(name: BlobId, base: BlobId, size: int, depth: int = 1) -> bytes:
    return HEADER.pack(name, size, Encoding.DELTA_RAW, depth) + DELTA.pack(base, size, 0)


def test_circular_bases_are_refused(store: Store) -> None:
    names = [BlobId(bytes([i]) * 32) for i in range(3)]
    forged(store, *(delta(names[i], names[(i + 1) % 3], 10) for i in range(3)))
    forged(store, delta(BlobId(b"\x09" * 32), BlobId(b"\x09" * 32), 10))
    for name in (*names, BlobId(b"\x09" * 32)):
        with pytest.raises(BlobDamaged):
            store.blob(name)


def test_a_chain_beyond_the_deepest_is_refused(store: Store) -> None:
    content = b"content"
    forged(store, HEADER.pack(blob_id(content), len(content), Encoding.RAW, 0) + content)
    names = [blob_id(content), *(BlobId(i.to_bytes(32, "big")) for i in range(MAX_DEPTH + 5))]
    # Each says that it is one delta from its keyframe.
    forged(store, *(delta(names[i + 1], names[i], len(content)) for i in range(len(names) - 1)))
    with pytest.raises(BlobDamaged):
        store.blob(names[-1])


def test_a_blob_without_its_base_reports_the_base_as_missing(store: Store) -> None:
    forged(store, delta(BlobId(b"\1" * 32), BlobId(b"\2" * 32), 10))
    with pytest.raises(BlobMissing):
        store.blob(BlobId(b"\1" * 32))


def test_blob_with_a_wrong_id_is_refused(store: Store) -> None:
    forged(store, HEADER.pack(blob_id(b"good"), 4, Encoding.RAW, 0) + b"evil")
    with pytest.raises(BlobDamaged):
        store.blob(blob_id(b"good"))


def test_decompression_bomb_takes_no_memory(store: Store) -> None:
    name = BlobId(b"\1" * 32)
    zeros = zstandard.ZstdCompressor(level=19).compress(bytes(256 << 20))
    forged(store, HEADER.pack(name, 100, Encoding.ZSTD, 0) + zeros)
    tracemalloc.start()
    try:
        with pytest.raises(BlobDamaged):
            store.blob(name)
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


def test_a_blob_frame_too_short_for_a_header_is_damage(store: Store, tmp_path: Path) -> None:
    with closing(Log(str(tmp_path / "segments"), CountdownDisk(None))) as log:
        log.append(log.first, [(FrameKind.BLOB, b"too short")])
    with pytest.raises(BlobDamaged):
        store.catch_up()


# ---- damage


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("whole")
    with Workspace.init(root, CountdownDisk(None)) as workspace:
        for i in range(4):
            write(workspace, "a.txt", b"".join(b"line %d of %d\n" % (j, i if j == 5 else 0) for j in range(40)))
    return root


def segment(root: Path) -> Path:
    return root / ".cas" / "segments" / "00000001.seg"


def frames(root: Path) -> list[tuple[int, int]]:
    with closing(Log(str(root / ".cas" / "segments"), CountdownDisk(None))) as log:
        return [(frame.offset, frame.end) for group in log.groups(log.first) for frame in group.frames]


def detected(root: Path) -> bool:
    """Return whether damage is reported to a process that opens the workspace, reads all of it and writes to it."""
    try:
        with Workspace.open(root, CountdownDisk(None)) as workspace:
            for edit in workspace.history.edits():
                for state in (edit.edit.before, edit.edit.after):
                    if state is not None:
                        workspace.history.blob(state.blob)
            write(workspace, "b.txt", b"more\n")
    except (StoreDamaged, BlobDamaged):
        return True
    return False


@pytest.mark.parametrize("frame", range(-3, 0))
@pytest.mark.parametrize("indexed", [True, False], ids=["indexed", "index deleted"])
def test_flipped_byte_of_acknowledged_data_is_reported_and_nothing_is_truncated(
    whole: Path,
    frame: int,
    indexed: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    original = segment(whole).read_bytes()
    kept = {path: path.read_bytes() for path in (whole / ".cas").glob("index*")}
    applied = (whole / ".cas" / "applied").read_bytes()
    start, end = frames(whole)[frame]
    try:
        for offset in (start, start + 5, start + 8, start + 20, start + 32, (start + end) // 2, end - 1):
            spoilt = bytearray(original)
            spoilt[offset] ^= 1
            segment(whole).write_bytes(spoilt)
            for path, content in kept.items():
                path.write_bytes(content)
                if not indexed:
                    path.unlink()
            assert detected(whole), f"byte {offset - start} of frame {frame}"
            assert segment(whole).read_bytes() == bytes(spoilt)
    finally:
        segment(whole).write_bytes(original)
        (whole / ".cas" / "applied").write_bytes(applied)
        (whole / "b.txt").unlink(missing_ok=True)
        for path in (whole / ".cas").glob("index*"):
            path.unlink()


def test_flipped_byte_before_the_last_group_is_reported_without_an_index(whole: Path) -> None:
    original = segment(whole).read_bytes()
    last = frames(whole)[-2][0]
    try:
        for offset in range(0, last, 97):
            spoilt = bytearray(original)
            spoilt[offset] ^= 1 << offset % 8
            segment(whole).write_bytes(spoilt)
            for path in (whole / ".cas").glob("index*"):
                path.unlink()
            assert detected(whole), f"byte {offset}"
    finally:
        segment(whole).write_bytes(original)
        for path in (whole / ".cas").glob("index*"):
            path.unlink()


# ---- what may be lost, and what can't be written


@pytest.mark.parametrize("offset", [0, SEGMENT_HEADER_SIZE, SEGMENT_HEADER_SIZE + 100])
def test_an_invalid_applied_marker_blocks_no_writer(tmp_path: Path, offset: int) -> None:
    with Workspace.init(tmp_path, CountdownDisk(None)) as workspace:
        for i in range(4):
            write(workspace, "a.txt", b"%d\n" % i)
    mark = tmp_path / ".cas" / "applied"
    mark.write_bytes(Struct("<QQ").pack(1, offset) + mark.read_bytes()[16:])
    with Workspace.open(tmp_path, CountdownDisk(None)) as workspace:
        write(workspace, "a.txt", b"more\n")
        assert workspace.review.status().external == ()


@pytest.mark.parametrize("notes", [{"prompt": "x" * 70_000}, {"prompt": "\ud800"}], ids=["too long", "surrogate"])
def test_a_call_that_could_not_be_read_back_is_refused_and_changes_nothing(
    tmp_path: Path, notes: dict[str, str]
) -> None:
    with Workspace.init(tmp_path, CountdownDisk(None)) as workspace:
        write(workspace, "a.txt", b"one\n")
        before = history(workspace)
        with workspace.call(CallInfo(tool="t", notes=notes)) as call:
            call.write("a.txt", b"two\n")
            with pytest.raises(RecordInvalid):
                call.commit()
        assert (tmp_path / "a.txt").read_bytes() == b"one\n"
        write(workspace, "a.txt", b"three\n")
    with Workspace.open(tmp_path, CountdownDisk(None)) as workspace:
        assert history(workspace)[0][: len(before[0])] == before[0]


def test_headers_of_blobs_of_real_calls_match_their_content(whole: Path) -> None:
    with closing(Log(str(whole / ".cas" / "segments"), CountdownDisk(None))) as log:
        headers = [
            parse_blob_header(frame.payload)
            for group in log.groups(log.first)
            for frame in group.frames
            if frame.kind is FrameKind.BLOB
        ]
    assert [header.depth for header in headers] == [0, 1, 2, 3]
    assert [header.base for header in headers[1:]] == [header.id for header in headers[:-1]]


# ---- kept decisions


def decision_of(verdicts: int) -> ReplayDecision:
    """Return a decision with so many verdicts."""
    zeros = array("q", bytes(8 * verdicts))
    return ReplayDecision(1, Action.ACCEPT, 0, seqs=zeros, hunks=zeros, codes=bytes(verdicts), written={})


@pytest.mark.parametrize("place", range(5))
def test_a_decision_too_large_to_be_kept_beside_others_is_kept_all_the_same(store: Store, place: int) -> None:
    names = [RecordId(bytes([number]) * 32) for number in range(5)]
    for number, name in enumerate(names):
        store.keep_decision(name, decision_of(3_000_000 if number == place else 1_000))
    assert [*store.large_decisions] == names


def test_of_kept_decisions_the_oldest_go_first_and_the_largest_stays(store: Store) -> None:
    names = [RecordId(bytes([number]) * 32) for number in range(40)]
    store.keep_decision(names[0], decision_of(200_001))
    for name in names[1:]:
        store.keep_decision(name, decision_of(200_000))
    kept = [*store.large_decisions]
    assert kept[0] == names[0]
    assert kept[1:] == names[-len(kept) + 1 :]
    assert 32 << 19 < sum(each.bytes_kept for each in store.large_decisions.values()) <= 40 << 20
