"""Test that frames with right checksums are not trusted, since anyone with the store's id can forge one."""

import os
import shutil
import socket
from collections.abc import Callable
from contextlib import chdir, closing
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest
from blake3 import blake3
from msgpack import packb

from objstore import (
    BlobDamaged,
    BlobMissing,
    BundleRefused,
    StoreDamaged,
    Workspace,
    blob_id,
    check_store,
    import_bundle,
    salvage_store,
)
from objstore.model.basic_types import Action, DocumentId, Seq
from objstore.model.canonical_msgpack import unpack
from objstore.model.ids import record_id
from objstore.model.large_file_placeholder import MAX_BLOB
from objstore.model.ranges import Range
from objstore.model.record_codec import encode_record
from objstore.model.records import Decision, Edit, Expiry, Pin, Record, Snapshot
from objstore.storage.log.blob_codec import MAX_DEPTH, Base, at_depth, encode_blob, encode_chunks
from objstore.storage.log.chunking import MAX_CHUNK, Chunk
from objstore.storage.log.frames import SEGMENT_HEADER_SIZE, FrameKind, SegmentHeader
from objstore.storage.log.segment_files import segment_name
from objstore.storage.transaction.journal import Journal
from objstore.upkeep.integrity.fsck import StorePart
from objstore.upkeep.transfer.bundle import bundle_pieces
from objstore.values.fastclass import replace
from tests.support.crash_scenarios import write
from tests.support.faulty_disk import CountdownDisk

CHUNK: Final = bytes(MAX_CHUNK)
CLAIMED: Final = blob_id(b"what it claims to be\n")
OTHER: Final = blob_id(b"another one\n")


def other_bytes() -> list[bytes]:
    """Return a blob that does not hash to its name."""
    return [encode_blob(b"other bytes\n", name=CLAIMED)[1]]


def other_chunks() -> list[bytes]:
    """Return a large blob whose chunks are all right, and are not the blob."""
    chunks = [Chunk(blob_id(CHUNK), len(CHUNK))] * (MAX_BLOB // len(CHUNK) + 1)
    return [encode_blob(CHUNK)[1], encode_chunks(CLAIMED, chunks)[1]]


def lost_chunks() -> list[bytes]:
    """Return a large blob with missing chunks."""
    chunks = [Chunk(OTHER, len(CHUNK))] * (MAX_BLOB // len(CHUNK) + 1)
    return [encode_chunks(CLAIMED, chunks)[1]]


def a_circle() -> list[bytes]:
    """Return two deltas that are each other's base."""
    return [
        encode_blob(b"x" * 99, Base(id=base, content=b"x" * 98, depth=1), name=name)[1]
        for name, base in ((CLAIMED, OTHER), (OTHER, CLAIMED))
    ]


def a_circle_with_itself() -> list[bytes]:
    """Return a delta that is its own base."""
    return [encode_blob(b"x" * 99, Base(id=CLAIMED, content=b"x" * 98, depth=1), name=CLAIMED)[1]]


def a_large_base() -> list[bytes]:
    """Return a delta whose base is a large blob, which does not fit in memory."""
    large = lost_chunks()
    return [*large, encode_blob(b"x" * 99, Base(id=CLAIMED, content=b"x" * 98, depth=1), name=OTHER)[1]]


@pytest.mark.parametrize(
    "forged", [other_bytes, other_chunks, lost_chunks, a_circle, a_circle_with_itself, a_large_base]
)
def test_a_forged_blob_is_never_returned_and_is_reported_and_not_salvaged(
    root: Path, tmp_path: Path, forged: Callable[[], list[bytes]]
) -> None:
    with closing(Journal(str(root), CountdownDisk(None))) as journal, journal.writing():
        payloads = [(FrameKind.BLOB, payload) for payload in forged()]
        journal.store.log.append(journal.store.end, payloads)
    with Workspace.open(root, CountdownDisk(None)) as workspace:
        for name in (CLAIMED, OTHER):
            with pytest.raises((BlobDamaged, BlobMissing)):
                b"".join(workspace.history.pieces(name))
    report = check_store(str(root))
    assert {fault.part for fault in report.faults} == {StorePart.BLOBS}
    assert any(CLAIMED.hex() in fault.what for fault in report.faults)
    salvage = salvage_store(str(root), str(tmp_path / "new"))
    assert CLAIMED in {lost.id for lost in salvage.lost_blobs}
    assert not {CLAIMED, OTHER} & set(salvage.blobs)
    assert check_store(str(tmp_path / "new")).faults == ()


def forge(root: Path, *payloads: bytes) -> None:
    with closing(Journal(str(root), CountdownDisk(None))) as journal, journal.writing():
        journal.store.log.append(journal.store.end, [(FrameKind.BLOB, payload) for payload in payloads])


def blob_faults(root: Path, *, quick: bool = False) -> str:
    """Return the faults that fsck finds, and assert that all are in blobs."""
    report = check_store(str(root), quick=quick)
    assert {fault.part for fault in report.faults} <= {StorePart.BLOBS}
    return "\n".join(fault.what for fault in report.faults)


def assert_refused(root: Path, scratch: Path) -> None:
    """Assert that a bundle of the store is refused and leaves nothing."""
    with Workspace.open(root, CountdownDisk(None)) as workspace:
        workspace.transfer.export_bundle(str(scratch / "bundle"))
    for files in (False, True):
        with pytest.raises(BundleRefused):
            import_bundle(str(scratch / "bundle"), str(scratch / "there"), files=files)
    assert not (scratch / "there").exists()


def assert_saved(root: Path, scratch: Path, *contents: bytes) -> None:
    """Assert that salvage makes a sound store with the blobs."""
    salvage = salvage_store(str(root), str(scratch / "new"))
    assert salvage.lost_blobs == ()
    assert blob_faults(scratch / "new") == ""
    with Workspace.open(scratch / "new", CountdownDisk(None)) as workspace:
        for content in contents:
            assert workspace.history.blob(blob_id(content)) == content


@pytest.mark.parametrize("length", [MAX_DEPTH + 1, 2 * MAX_DEPTH + 2])
def test_a_chain_that_is_longer_than_its_depth_is_reported_and_encoded_again(
    root: Path, tmp_path: Path, length: int
) -> None:
    states = [b"".join(b"%d: line %d\n" % (line, line < number) for line in range(80)) for number in range(length)]
    payloads = [encode_blob(states[0])[1]]
    for before, state in pairwise(states):
        header, payload = encode_blob(state, Base(id=blob_id(before), content=before, depth=0), is_like=True)
        payloads.append(at_depth(header, payload, 1))
    forge(root, *payloads)
    for quick in (False, True):
        found = blob_faults(root, quick=quick)
        assert blob_id(states[1]).hex() not in found
        assert f"blob {blob_id(states[2]).hex()}: its depth is 1, but its base has depth 1" in found
    assert_refused(root, tmp_path)
    assert_saved(root, tmp_path, *states)


def test_chunks_of_other_sizes_than_listed_are_reported(root: Path, tmp_path: Path) -> None:
    contents = [bytes(MAX_CHUNK), bytes(MAX_CHUNK - 1)] * (MAX_BLOB // MAX_CHUNK)
    sizes = [len(content) for content in contents[::-1]]
    name = blob_id(b"".join(contents))
    chunks = [Chunk(blob_id(content), size) for content, size in zip(contents, sizes, strict=True)]
    forge(root, encode_blob(contents[0])[1], encode_blob(contents[1])[1], encode_chunks(name, chunks)[1])
    with Workspace.open(root, CountdownDisk(None)) as workspace, pytest.raises(BlobDamaged, match="size differs"):
        b"".join(workspace.history.pieces(name))
    assert f"blob {name.hex()}: a chunk's size differs from the one in the list" in blob_faults(root)
    assert_refused(root, tmp_path)
    assert [lost.id for lost in salvage_store(str(root), None).lost_blobs] == [name]


def test_first_frame_of_a_blob_counts_and_salvage_accepts_any(root: Path, tmp_path: Path) -> None:
    base, content = b"the base of it\n" * 9, b"the base of it\n" * 9 + b"a state\n"
    delta = encode_blob(content, Base(id=blob_id(base), content=base, depth=0), is_like=True)
    assert delta[0].base
    damaged = (encode_blob(b"other bytes\n", name=blob_id(each))[1] for each in (content, base))
    forge(root, *damaged, delta[1], encode_blob(base)[1])
    found = blob_faults(root)
    assert blob_id(base).hex() in found
    assert blob_id(content).hex() in found
    assert_refused(root, tmp_path)
    assert_saved(root, tmp_path, base, content)


def test_each_frame_is_tried_once_even_if_every_base_has_several(root: Path, tmp_path: Path) -> None:
    """Two frames for each of 40 blobs give 2^40 chains down to the last blob, which is missing."""
    names = [blob_id(b"forged %d" % number) for number in range(41)]
    for deepest in (1, MAX_DEPTH):
        forge(
            root,
            *(
                encode_blob(b"x" * size, Base(id=base, content=b"x" * 98, depth=max(0, deepest - at - 1)), name=name)[1]
                for at, (name, base) in enumerate(pairwise(names))
                for size in (99, 100)
            ),
        )
    assert all(name.hex() in blob_faults(root) for name in names[:-1])
    assert_refused(root, tmp_path)
    assert {lost.id for lost in salvage_store(str(root), None).lost_blobs} == set(names[:-1])


def newest(journal: Journal) -> Edit:
    (place,) = journal.store.index.history.newest(1)
    record, _ = journal.store.record(place)
    assert isinstance(record, Edit)
    return record


def test_a_record_with_a_field_name_of_bytes_is_damage_and_the_rest_is_salvaged(root: Path) -> None:
    with closing(Journal(str(root), CountdownDisk(None))) as journal, journal.writing():
        last = journal.store.last_record
        forged = unpack(encode_record(replace(newest(journal), seq=Seq(2), document=DocumentId(2)), last))
        payload = packb(forged | {"notes": {b"model": "m"}})
        journal.store.log.append(journal.store.end, [(FrameKind.RECORD, payload)])
    with pytest.raises(StoreDamaged, match="a field's name is not a string"):
        Workspace.open(root, CountdownDisk(None))
    (fault,) = check_store(str(root)).faults
    assert fault.part is StorePart.SEGMENTS
    assert "a field's name is not a string" in fault.what
    salvage = salvage_store(str(root), None)
    assert (len(salvage.blobs), len(salvage.journal), salvage.lost_blobs) == (1, 1, ())


MISNUMBERED: Final[dict[str, Callable[[Edit], Record]]] = {
    "edit": lambda edit: replace(edit, seq=Seq(1 << 40), document=DocumentId(1 << 40)),
    "decision": lambda _: Decision(number=2, time=1, action=Action.ACCEPT, verdicts=(), written=(), who=""),
    "snapshot": lambda _: Snapshot(number=1 << 40, time=1, root=blob_id(b"a tree"), path=None, who="me"),
    "pin": lambda _: Pin(number=2, time=1, edits=(Seq(1),), blobs=(), who="me"),
    "edits that go": lambda _: Expiry(time=1, edits=(Range(1, 1 << 62),), reason="older", who=""),
    "decisions that go": lambda _: Expiry(time=1, decisions=(Range(1, 1 << 62),), reason="older", who=""),
    "snapshots that go": lambda _: Expiry(time=1, snapshots=(1,), reason="older", who=""),
    "pins that go": lambda _: Expiry(time=1, pins=(1,), reason="older", who=""),
}
"""Records with numbers that are impossible in a journal of one edit."""


@pytest.mark.parametrize("kind", MISNUMBERED)
def test_a_record_number_beyond_the_next_is_damage_and_takes_no_memory(root: Path, tmp_path: Path, kind: str) -> None:
    with closing(Journal(str(root), CountdownDisk(None))) as journal, journal.writing():
        forged = encode_record(MISNUMBERED[kind](newest(journal)), journal.store.last_record)
        end = journal.store.log.append(journal.store.end, [(FrameKind.RECORD, forged)]).end
        (tmp_path / "bundle").write_bytes(b"".join(bundle_pieces(journal.store.log, end)))
    with pytest.raises(StoreDamaged, match="number"):
        Workspace.open(root, CountdownDisk(None))
    for quick in (False, True):
        (fault,) = (fault for fault in check_store(str(root), quick=quick).faults if fault.part is StorePart.RECORDS)
        assert "number" in fault.what
    with pytest.raises(BundleRefused, match="number"):
        import_bundle(str(tmp_path / "bundle"), str(tmp_path / "there"))
    salvage = salvage_store(str(root), str(tmp_path / "new"))
    assert (len(salvage.journal), len(salvage.unchained)) == (1, 1)
    assert [lost.snapshots for lost in salvage.lost_blobs] == ([(1 << 40,)] if kind == "snapshot" else [])
    assert check_store(str(tmp_path / "new")).faults == ()


def test_only_the_first_of_many_lost_edits_are_named(root: Path) -> None:
    with closing(Journal(str(root), CountdownDisk(None))) as journal, journal.writing():
        forged = encode_record(replace(newest(journal), seq=Seq(1 << 40)), record_id(b"a lost one"))
        journal.store.log.append(journal.store.end, [(FrameKind.RECORD, forged)])
    (fault,) = check_store(str(root)).faults
    lost = salvage_store(str(root), None).lost_edits
    assert lost[:3] == fault.edits[:3] == (2, 3, 4)


def test_a_file_with_another_header_is_not_a_segment_even_if_its_checksum_is_right(root: Path) -> None:
    path = root / ".cas" / "segments" / "00000001.seg"
    content = path.read_bytes()
    fields = b"\x89CASLOH\n" + content[8 : SEGMENT_HEADER_SIZE - 16]
    path.write_bytes(fields + blake3(fields).digest(16) + content[SEGMENT_HEADER_SIZE:])
    with pytest.raises(StoreDamaged, match="the file is not a segment"):
        Workspace.open(root, CountdownDisk(None))


def a_copy(path: Path) -> None:
    shutil.copy(path.parent / "00000001.seg", path)


def a_socket(path: Path) -> None:
    made = path.parents[2] / "s"  # a socket's own path has to be short
    with socket.socket(socket.AF_UNIX) as bound, chdir(made.parent):
        bound.bind(made.name)
    made.rename(path)


STRANGE: Final = [Path.mkdir, os.mkfifo, a_socket]


@pytest.mark.parametrize("make", [a_copy, *STRANGE])
@pytest.mark.parametrize("name", ["notes.seg", "1.seg", "00000001.01.seg", "00000009.0.seg", "00000001.seg.bak"])
def test_other_names_among_the_segments_are_ignored(root: Path, name: str, make: Callable[[Path], None]) -> None:
    path = root / ".cas" / "segments" / name
    make(path)
    with Workspace.open(root, CountdownDisk(None)) as workspace:
        write(workspace, "a.txt", b"two\n")
        workspace.retention.purge(workspace.retention.plan_purge(path="a.txt").blobs, force=True)
    assert path.exists()
    assert check_store(str(root)).faults == ()
    salvage = salvage_store(str(root), None)
    assert salvage.strays == ((name,) if make is a_copy and name.endswith(".seg") else ())
    assert salvage.is_whole


@pytest.mark.parametrize("make", STRANGE)
@pytest.mark.parametrize("name", ["00000002.seg", "00000001.7.seg"])
def test_a_segment_name_that_is_not_a_regular_file_is_damage(
    root: Path, name: str, make: Callable[[Path], None]
) -> None:
    make(root / ".cas" / "segments" / name)
    with pytest.raises(StoreDamaged, match="it is not a regular file"):
        Workspace.open(root, CountdownDisk(None))
    assert [fault.what for fault in check_store(str(root)).faults] == [
        f"{name}, bytes 0 to 0: it is not a regular file"
    ]
    salvage = salvage_store(str(root), None)
    assert [damage.segment for damage in salvage.damage] == [name]
    assert (len(salvage.blobs), len(salvage.journal), salvage.lost_blobs) == (1, 1, ())


def test_a_copy_of_an_older_state_among_the_segments_does_not_reduce_a_salvage(root: Path) -> None:
    a_copy(root / ".cas" / "segments" / "zz.seg")
    with Workspace.open(root, CountdownDisk(None)) as workspace:
        write(workspace, "a.txt", b"two\n")
    assert salvage_store(str(root), None).is_whole


@pytest.mark.parametrize("number", [2, 5, 1 << 40, (1 << 63) - 1])
def test_a_log_begins_with_its_first_segment(root: Path, number: int) -> None:
    folder = root / ".cas" / "segments"
    content = (folder / "00000001.seg").read_bytes()
    (folder / "00000001.seg").unlink()
    header = replace(SegmentHeader.decode(content, segment=1), number=number)
    (folder / segment_name(number, 0)).write_bytes(header.encode() + content[SEGMENT_HEADER_SIZE:])
    with pytest.raises(StoreDamaged, match="segment 1 at byte 0: the segment is missing"):
        Workspace.open(root, CountdownDisk(None))
    faults = check_store(str(root)).faults
    assert faults[0].what == "segment 1 is missing"
    assert len(faults) == min(number - 1, 1000)
    assert salvage_store(str(root), None).missing_segments[0] == 1
