"""Forged frames: a checksum that holds vouches for nothing, since whoever has a store's id can make one."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest
from blake3 import blake3

from objstore import BlobDamaged, BlobMissing, StoreDamaged, Workspace, blob_id, check_store, salvage_store
from objstore.check import Part
from objstore.chunking import MAX_CHUNK, Chunk
from objstore.codec import Base, encode_blob, encode_chunks
from objstore.frames import SEGMENT_HEADER_SIZE, FrameKind
from objstore.journal import Journal
from objstore.standins import MAX_BLOB
from tests.store.countdown import CountdownDisk

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
    """Return a large blob of chunks that are not there."""
    chunks = [Chunk(OTHER, len(CHUNK))] * (MAX_BLOB // len(CHUNK) + 1)
    return [encode_chunks(CLAIMED, chunks)[1]]


def a_circle() -> list[bytes]:
    """Return two blobs, each of which is told against the other."""
    return [
        encode_blob(b"x" * 99, Base(id=base, content=b"x" * 98, depth=1), name=name)[1]
        for name, base in ((CLAIMED, OTHER), (OTHER, CLAIMED))
    ]


def a_circle_with_itself() -> list[bytes]:
    """Return a blob that is told against itself."""
    return [encode_blob(b"x" * 99, Base(id=CLAIMED, content=b"x" * 98, depth=1), name=CLAIMED)[1]]


def a_large_base() -> list[bytes]:
    """Return a blob that is told against a large one, which can't be in memory as a whole."""
    large = lost_chunks()
    return [*large, encode_blob(b"x" * 99, Base(id=CLAIMED, content=b"x" * 98, depth=1), name=OTHER)[1]]


@pytest.mark.parametrize(
    "forged", [other_bytes, other_chunks, lost_chunks, a_circle, a_circle_with_itself, a_large_base]
)
def test_a_forged_blob_is_never_given_is_told_of_and_is_not_salvaged(
    root: Path, tmp_path: Path, forged: Callable[[], list[bytes]]
) -> None:
    with closing(Journal(str(root), CountdownDisk(None))) as journal, journal.writing():
        payloads = [(FrameKind.BLOB, payload) for payload in forged()]
        journal.store.log.append(journal.store.end, payloads)
    with Workspace.open(root, CountdownDisk(None)) as workspace:
        for name in (CLAIMED, OTHER):
            with pytest.raises((BlobDamaged, BlobMissing)):
                b"".join(workspace.pieces(name))
    report = check_store(str(root))
    assert {fault.part for fault in report.faults} == {Part.BLOBS}
    assert any(CLAIMED.hex() in fault.what for fault in report.faults)
    salvage = salvage_store(str(root), str(tmp_path / "new"))
    assert CLAIMED in {lost.id for lost in salvage.lost_blobs}
    assert not {CLAIMED, OTHER} & set(salvage.blobs)
    assert check_store(str(tmp_path / "new")).faults == ()


def test_a_file_that_is_no_segment_is_none_though_its_checksum_holds(root: Path) -> None:
    path = root / ".cas" / "segments" / "00000001.seg"
    content = path.read_bytes()
    fields = b"\x89CASLOH\n" + content[8 : SEGMENT_HEADER_SIZE - 16]
    path.write_bytes(fields + blake3(fields).digest(16) + content[SEGMENT_HEADER_SIZE:])
    with pytest.raises(StoreDamaged, match="this is no segment"):
        Workspace.open(root, CountdownDisk(None))
