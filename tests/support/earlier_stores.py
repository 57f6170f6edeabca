"""Make stores as versions before format 1 wrote them: the same frames in segments with another header."""

import os
import shutil
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Final

from blake3 import blake3

from objstore.disk.fs.disk import Disk
from objstore.model.ids import record_id
from objstore.model.record_codec import encode_record
from objstore.model.records import Record
from objstore.storage.log.blob_codec import encode_blob
from objstore.storage.log.frames import SEGMENT_HEADER_SIZE, FrameKind
from objstore.storage.log.segments import Log, create_log

__all__ = ["EARLIER", "EARLIER_NAMES", "bytes_below", "forged", "golden_earlier", "make_earlier"]

EARLIER: Final = Path(__file__).parents[1] / "golden" / "earlier"
EARLIER_NAMES: Final = sorted(path.name for path in EARLIER.iterdir())


def golden_earlier(name: str, root: Path) -> Path:
    """Give the folder `root` the store of an earlier version with this name; return its folder of segments."""
    (root / ".cas").mkdir(mode=0o700, parents=True)
    return Path(shutil.copytree(EARLIER / name / "segments", root / ".cas" / "segments"))


def make_earlier(root: Path, version: int = 2) -> None:
    """Give every segment of a store the header of an earlier version."""
    for path in sorted((root / ".cas" / "segments").iterdir()):
        content = path.read_bytes()
        fields = b"\x89CASLOG\n" + version.to_bytes(2, "little") + content[10:48]
        path.write_bytes(fields + blake3(fields).digest(16) + content[SEGMENT_HEADER_SIZE:])


def forged(root: Path, *groups: Iterable[Record | bytes], version: int) -> None:
    """Make the store of an earlier version in `root` from groups of records and contents of blobs."""
    store = root / ".cas"
    (store / "segments").mkdir(parents=True)
    create_log(str(store / "segments"), Disk())
    last = None
    with closing(Log(str(store / "segments"), Disk())) as log:
        end = log.first
        for group in groups:
            payloads = []
            for each in group:
                if isinstance(each, bytes):
                    payloads.append((FrameKind.BLOB, encode_blob(each)[1]))
                    continue
                encoded = encode_record(each, last)
                payloads.append((FrameKind.RECORD, encoded))
                last = record_id(encoded)
            end = log.append(end, payloads).end
    make_earlier(root, version)


def bytes_below(folder: Path) -> dict[str, bytes]:
    """Return the content of every file below a folder, by its path there."""
    found = {}
    for place, _, names in os.walk(folder):
        for name in names:
            path = Path(place) / name
            found[str(path.relative_to(folder))] = path.read_bytes()
    return found
