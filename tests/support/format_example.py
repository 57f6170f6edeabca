"""Write the example of FORMAT.md, a store of two edits, byte for byte: `python -m tests.support.format_example`."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgpack

from objstore.model.basic_types import DocumentId, FileState, Operation, Seq
from objstore.model.ids import blob_id, record_id
from objstore.model.record_codec import encode_record
from objstore.model.records import Edit
from objstore.storage.log.blob_codec import Base, encode_blob, parse_blob_header
from objstore.storage.log.frames import (
    FRAME_HEADER_SIZE,
    SEGMENT_HEADER_SIZE,
    Frame,
    FrameKind,
    SegmentHeader,
    StoreId,
    encode_frame,
    frame_key,
)
from objstore.text.hunks import Hunk
from tests.support.segment_scans import scan

__all__ = ["AFTER", "BEFORE", "FORMAT", "STORE", "dump", "example", "example_segment", "with_example"]

FORMAT: Final = Path(__file__).resolve().parents[2] / "objstore" / "FORMAT.md"
STORE: Final = StoreId(bytes(range(0xA0, 0xB0)))
BEFORE: Final = b"0123456789\nabcdefghijklmnopqrstuvwxyz\nABCDEFGHIJKLMNOPQRSTUVWXYZ\n"
AFTER: Final = BEFORE.replace(b"xyz\n", b"xyz!\n")
_BEGIN: Final = "<!-- example: python -m tests.support.format_example -->\n```\n"
_END: Final = "```\n<!-- end of example -->\n"
_ROW: Final = 16


def example_segment() -> bytes:
    """Return the segment: a create and an edit of one file, each a group of a blob and a record."""
    key = frame_key(STORE)
    first, second = (FileState(blob=blob_id(content), mode=0o644) for content in (BEFORE, AFTER))
    base = Base(id=first.blob, content=BEFORE, depth=0)
    create = encode_record(_edit(1, Operation.CREATE, None, first, added=3), None)
    edit = encode_record(
        _edit(2, Operation.EDIT, first, second, hunks=(Hunk(1, 1, 1, 1),), added=1, removed=1), record_id(create)
    )
    parts = [SegmentHeader(store=STORE, number=1, created=1_790_000_000_000_000).encode()]
    for blob, record in ((encode_blob(BEFORE)[1], create), (encode_blob(AFTER, base)[1], edit)):
        parts.append(encode_frame(key, FrameKind.BLOB, blob, begins=True, commits=False))
        parts.append(encode_frame(key, FrameKind.RECORD, record, begins=False, commits=True))
    return b"".join(parts)


def _edit(
    seq: int,
    operation: Operation,
    before: FileState | None,
    after: FileState,
    *,
    hunks: tuple[Hunk, ...] = (),
    added: int = 0,
    removed: int = 0,
) -> Edit:
    return Edit(
        seq=Seq(seq),
        document=DocumentId(1),
        time=1_790_000_000_000_000 + seq,
        conversation="c",
        call=seq - 1,
        ordinal=0,
        operation=operation,
        path=b"a.txt",
        before=before,
        after=after,
        hunks=hunks,
        added=added,
        removed=removed,
        tool="t",
    )


@dataclass(frozen=True, slots=True)
class Part:
    """Some bytes, and what they mean."""

    size: int
    meaning: str


def dump(segment: bytes) -> Iterator[str]:
    """Yield the lines of an annotated dump: offset, up to 16 bytes in hex, what they mean."""
    offset = 0
    for part in _parts(segment):
        if not part.size:
            yield f"      {part.meaning}"
            continue
        for start in range(offset, offset + part.size, _ROW):
            shown = segment[start : min(start + _ROW, offset + part.size)].hex(" ")
            yield f"{start:4}  {shown:<{3 * _ROW}} {part.meaning if start == offset else ''}".rstrip()
        offset += part.size
    assert offset == len(segment)


def _parts(segment: bytes) -> Iterator[Part]:
    header = SegmentHeader.decode(segment[:SEGMENT_HEADER_SIZE], segment=1)
    yield Part(0, "segment header")
    yield Part(8, "magic")
    yield Part(2, f"format version {header.version}")
    yield Part(6, "reserved")
    yield Part(16, "store id")
    yield Part(8, f"segment {header.number}")
    yield Part(8, f"created {header.created}")
    yield Part(16, "checksum of the header")
    for frame in scan(segment, frame_key(header.store), SEGMENT_HEADER_SIZE):
        assert isinstance(frame, Frame)
        yield from _frame(frame)


def _frame(frame: Frame) -> Iterator[Part]:
    flags = [name for name, holds in (("begins", frame.begins), ("commits", frame.commits)) if holds]
    yield Part(0, "")
    yield Part(0, f"frame: {frame.kind.name.lower()}")
    yield Part(4, "marker")
    yield Part(1, f"kind {frame.kind.value}: {frame.kind.name.lower()}")
    yield Part(1, f"flags: {' and '.join(flags)}")
    yield Part(2, "reserved")
    yield Part(8, f"length of the payload: {len(frame.payload)}")
    yield Part(FRAME_HEADER_SIZE - 16, "checksum of the frame")
    yield from _blob(bytes(frame.payload)) if frame.kind is FrameKind.BLOB else _record(bytes(frame.payload))


def _blob(payload: bytes) -> Iterator[Part]:
    header = parse_blob_header(payload)
    yield Part(32, "blob id")
    yield Part(8, f"size: {header.size}")
    yield Part(1, f"encoding {header.encoding.value}: {header.encoding.name.lower().replace('_', ' ')}")
    yield Part(1, f"depth {header.depth}")
    yield Part(6, "reserved")
    if header.base is not None:
        yield Part(32, "base")
        yield Part(8, f"prefix: {header.prefix} bytes of the base")
        yield Part(8, f"suffix: {header.suffix} bytes of the base")
    yield Part(len(payload) - header.data, f"data: {payload[header.data :]!r}"[:60])


def _record(payload: bytes) -> Iterator[Part]:
    fields = msgpack.unpackb(payload)
    yield Part(len(payload) - sum(_encoded_size(*item) for item in fields.items()), f"map of {len(fields)}")
    for name, value in fields.items():
        yield Part(_encoded_size(name, value), f"{name}: {_shown(value)}")


def _encoded_size(name: str, value: object) -> int:
    return len(msgpack.packb(name)) + len(msgpack.packb(value))


def _shown(value: object) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(_shown(item) for item in value) + "]"
    return f"{value.hex()[:8]}…" if isinstance(value, bytes) and len(value) == 32 else repr(value).removeprefix("b")


def example() -> str:
    """Return the dump as FORMAT.md has it."""
    return _BEGIN + "".join(f"{line}\n" for line in dump(example_segment())) + _END


def with_example(document: str) -> str:
    """Return the document with the dump as it is today."""
    start, end = document.index(_BEGIN), document.index(_END) + len(_END)
    return document[:start] + example() + document[end:]


if __name__ == "__main__":
    FORMAT.write_text(with_example(FORMAT.read_text()))
