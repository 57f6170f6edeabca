"""FORMAT.md is true: a reader made from the page alone reads real stores, and its example is what is written today."""

import inspect
import re
import struct
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgpack
import pytest
import zstandard
from blake3 import blake3

from objstore import Action, Workspace
from objstore.disk.fs import confined_path
from objstore.model import basic_types, canonical_msgpack, large_file_placeholder, record_codec
from objstore.model.ids import BlobId
from objstore.storage.log import blob_codec, chunking, frames, segments
from objstore.storage.log.applied_marker import APPLIED_MARKER_SIZE
from objstore.storage.log.frames import FRAME_HEADER_SIZE, SEGMENT_HEADER_SIZE
from objstore.storage.log.segments import Log
from objstore.storage.store.object_store import Store
from tests.support.crash_scenarios import MANY_FILES, rejected, write
from tests.support.faulty_disk import CountdownDisk
from tests.support.format_example import AFTER, BEFORE, FORMAT, example_segment, with_example

PAGE: Final = FORMAT.read_text()


# ---- a reader of its own, which knows nothing but the page


class Frame(NamedTuple):
    kind: int
    begins: bool
    commits: bool
    payload: bytes


def frames_of(segment: bytes) -> Iterator[Frame]:
    """Yield the frames of an undamaged segment."""
    assert segment[:10] == b"\x89EDLOG\r\n\x01\x00"
    assert segment[48:64] == blake3(segment[:48]).digest()[:16]
    key = blake3(segment[16:32], derive_key_context="editledger 2026-11 segment frame checksum").digest()
    at = 64
    while at < len(segment):
        marker, kind, flags, reserved, length, checksum = struct.unpack("<4sBBHQ16s", segment[at : at + 32])
        payload = segment[at + 32 : at + 32 + length]
        assert (marker, reserved) == (b"\xf5\xca\x5e\xfa", 0)
        assert checksum == blake3(segment[at : at + 16] + payload, key=key).digest()[:16]
        yield Frame(kind, bool(flags & 2), bool(flags & 1), payload)
        at += 32 + length


def read_blob(payloads: dict[bytes, bytes], name: bytes) -> bytes:
    """Return a blob, given the payloads of all blob frames by blob id."""
    payload = payloads[name]
    size, encoding = struct.unpack("<QB", payload[32:41])
    if encoding in {0, 1}:
        content = payload[48:] if encoding == 0 else zstandard.ZstdDecompressor().decompress(payload[48:])
    else:
        base = read_blob(payloads, payload[48:80])
        prefix, suffix = struct.unpack("<QQ", payload[80:96])
        middle = payload[96:]
        if encoding == 3:
            known = base[max(0, prefix - 2048) : min(len(base), len(base) - suffix + 2048)]
            dictionary = zstandard.ZstdCompressionDict(known, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
            decompressor = zstandard.ZstdDecompressor(dict_data=dictionary) if known else zstandard.ZstdDecompressor()
            middle = decompressor.decompress(middle)
        content = base[:prefix] + middle + base[len(base) - suffix :]
    assert len(content) == size
    assert blake3(content).digest() == name
    return content


class Read(NamedTuple):
    records: list[dict[str, Any]]
    blobs: dict[bytes, bytes]
    encodings: set[int]


def read_as_documented(segment: bytes) -> Read:
    """Return everything that a segment holds, and check what the page promises of it."""
    found = list(frames_of(segment))
    payloads: dict[bytes, bytes] = {}
    chained: list[dict[str, Any]] = []
    previous = None
    open_group = False
    for frame in found:
        assert frame.begins is not open_group
        open_group = not frame.commits
        if frame.kind == 1:
            payloads.setdefault(frame.payload[:32], frame.payload)
            continue
        record = msgpack.unpackb(frame.payload)
        assert list(record) == sorted(record)
        assert record.get("previous") == previous
        previous = blake3(frame.payload).digest()
        chained.append(record)
    assert not open_group
    blobs = {name: read_blob(payloads, name) for name in payloads}
    return Read(chained, blobs, {payload[40] for payload in payloads.values()})


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("workspace")
    text = b"".join(b"line %d of a text that goes on for a while\n" % i for i in range(300))
    with Workspace.init(root, CountdownDisk(None)) as workspace:
        MANY_FILES.prepare(workspace)
        MANY_FILES.act(workspace)
        for i in range(40):
            for line in (i * 7, i * 7 + 5 + 20 * (i % 2)):  # near, and far enough apart to be compressed
                text = text.replace(b"line %d of a text" % line, b"%d is another line, with words: %d" % (i, i * i * i))
            write(workspace, "text.txt", text)
        rejected(workspace, workspace.history.edits()[-3].seq)
        workspace.review.undo()
        (root / "text.txt").write_bytes(text + b"by hand")
        write(workspace, "text.txt", text + b"by hand\n")
        assert workspace.history.decisions()[0].decision.action is Action.REJECT
    return root


def test_reader_written_from_the_document_reads_real_stores(root: Path) -> None:
    read = read_as_documented((root / ".cas" / "segments" / "00000001.seg").read_bytes())
    assert read.encodings == {0, 1, 2, 3}
    with closing(Store(str(root / ".cas"), CountdownDisk(None))) as store:
        assert {name: store.blob(BlobId(name)) for name in read.blobs} == read.blobs
    with Workspace.open(root) as workspace:
        seqs = [edit.seq for edit in workspace.history.edits()]
    assert [record["seq"] for record in read.records if record["kind"] == "edit"] == seqs


def test_records_of_real_stores_have_only_documented_fields(root: Path) -> None:
    read = read_as_documented((root / ".cas" / "segments" / "00000001.seg").read_bytes())
    for record in read.records:
        assert set(record) <= fields_of(record["kind"]) | fields_of("")
        for written in record.get("written", []):
            assert set(written) <= fields_of("decision")


# ---- the tables


def section(heading: str) -> str:
    """Return the text under a heading, up to the next one."""
    found = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None, heading
    return found[1]


def fields_of(kind: str) -> set[str]:
    """Return the names in the tables of a kind of record, or of all kinds ("")."""
    return set(re.findall(r"^\| `(\w+)` \|", section(kind or "Record payload"), re.MULTILINE))


def layout(heading: str) -> list[tuple[int, int]]:
    """Return offset and size of each field of fixed size in the tables under a heading."""
    rows = re.findall(r"^\| (\d+) \| (\d+) \|", section(heading), re.MULTILINE)
    return [(int(offset), int(size)) for offset, size in rows]


@pytest.mark.parametrize(
    ("heading", "size"),
    [
        ("Segment", SEGMENT_HEADER_SIZE),
        ("Frame", FRAME_HEADER_SIZE),
        ("Blob payload", blob_codec._HEADER.size + blob_codec._DELTA.size),  # noqa: SLF001 - the structure is what is compared
        ("Chunk entry", blob_codec._CHUNK.size),  # noqa: SLF001 - as above
        ("Derived files", APPLIED_MARKER_SIZE),
    ],
)
def test_documented_fields_of_a_structure_are_contiguous_and_fill_it(heading: str, size: int) -> None:
    at = 0
    for offset, length in layout(heading):
        assert offset == at
        at += length
    assert at == size


@pytest.mark.parametrize("kind", ["edit", "decision", "void", "turn", "comment", "mark", "setting"])
def test_every_field_of_a_record_is_documented(kind: str) -> None:
    # Their source is what names the fields.
    readers = {"decision": ["_decision", "_written"], "void": ["_read"]}.get(kind, [f"_{kind}"])
    source = "".join(inspect.getsource(getattr(record_codec, name)) for name in readers)
    named = set(re.findall(r'fields\.\w+\(\s*"(\w+)"', source)) - {"kind", "previous"}
    assert named == (fields_of(kind) | {"time"})


@pytest.mark.parametrize(
    ("what", "limit"),
    [
        ("payload of a frame | 2^32 bytes", frames.MAX_PAYLOAD == 2**32),
        ("blob in one frame | 2^26 bytes", large_file_placeholder.MAX_BLOB == 2**26),
        ("blob in chunks | 2^38 bytes", large_file_placeholder.MAX_CHUNKED == 2**38),
        ("chunk | 2^21 bytes", chunking.MAX_CHUNK == 2**21),
        ("depth of a delta | 32", blob_codec.MAX_DEPTH == 32),
        ("dictionary of a delta that is written | 8 MiB", blob_codec._MAX_DICTIONARY == 8 << 20),  # noqa: SLF001 - compared
        ("full segment | from 16 MiB", segments.ROTATE_AT == 16 << 20),
        ("text in a record | 65,536 code points", canonical_msgpack.MAX_TEXT == 65_536),
        ("file that is read whole | 256 MiB", confined_path.MAX_FILE == 256 << 20),
        ("numbers in a record | 2^63 \N{MINUS SIGN} 1", basic_types.MAX_INT == 2**63 - 1),
    ],
)
def test_documented_limits_match_the_code(what: str, limit: bool) -> None:  # noqa: FBT001 - whether it is so
    assert f"| {what}" in PAGE
    assert limit


# ---- the example


def test_example_equals_what_the_program_writes_today() -> None:
    assert with_example(PAGE) == PAGE, "python -m tests.support.format_example writes it again"


def test_program_reads_the_example_store(tmp_path: Path) -> None:
    (tmp_path / "segments").mkdir()
    (tmp_path / "segments" / "00000001.seg").write_bytes(example_segment())
    with closing(Store(str(tmp_path), CountdownDisk(None))) as store:
        tip = store.tip_at(b"a.txt")
        assert tip is not None
        assert tip.state is not None
        assert store.blob(tip.state.blob) == AFTER
    read = read_as_documented(example_segment())
    assert set(read.blobs.values()) == {BEFORE, AFTER}


def test_bytes_of_the_example_form_a_log(tmp_path: Path) -> None:
    rows = re.findall(r"^ *\d+  ((?:[0-9a-f]{2} )*[0-9a-f]{2})", section("Example"), re.MULTILINE)
    written = bytes.fromhex("".join(rows))
    (tmp_path / "00000001.seg").write_bytes(written)
    with closing(Log(str(tmp_path), CountdownDisk(None))) as log:
        assert [len(group.frames) for group in log.groups(log.first)] == [2, 2]
    assert written == example_segment()
