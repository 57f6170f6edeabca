"""Losses: a store that is made of what is left where some blobs of another one were damaged."""

from pathlib import Path
from shutil import move, rmtree
from typing import Final

from objstore import BlobId, Salvage, salvage_store
from objstore.storage.log.blob_codec import parse_blob_header
from objstore.storage.log.frames import SEGMENT_HEADER_SIZE, Frame, FrameKind, SegmentHeader, frame_key
from tests.support.segment_scans import scan

__all__ = ["damage", "lose"]

ASIDE: Final = "damaged"
"""Name of the damaged store, next to the workspace, while another one is made of it."""


def damage(root: Path, *blobs: BlobId) -> None:
    """Flip a bit in every frame of some blobs."""
    for path in (root / ".cas" / "segments").iterdir():
        content = path.read_bytes()
        key = frame_key(SegmentHeader.decode(content, segment=int(path.stem.partition(".")[0])).store)
        damaged = bytearray(content)
        for frame in scan(content, key, SEGMENT_HEADER_SIZE):
            if (
                isinstance(frame, Frame)
                and frame.kind is FrameKind.BLOB
                and parse_blob_header(frame.payload).id in blobs
            ):
                damaged[frame.end - 1] ^= 1
        path.write_bytes(damaged)


def lose(root: Path, *blobs: BlobId) -> Salvage:
    """Damage some blobs, and put a store that is made of the rest in the place of the damaged one."""
    damage(root, *blobs)
    aside = root.parent / ASIDE
    move(root / ".cas", aside)
    salvage = salvage_store(str(aside), str(root))
    rmtree(aside)
    return salvage
