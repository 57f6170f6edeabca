"""The targets: each accepts any bytes, and raises only if the store would handle them wrongly."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Final, TypeAlias

from blake3 import blake3
from zstandard import ZstdCompressor

from mcptools.edit.anchored import AnchoredEdit, Op, Placed, apply_operations, parse_anchor, split_content_lines
from mcptools.edit.hashline import hashlines
from mcptools.edit.patch_parser import InvalidPatch, parse_patches
from mcptools.edit.unified_diff import (
    AmbiguousContext,
    Applied,
    ContextMismatch,
    FilePatch,
    HunksOverlap,
    apply_patch,
)
from objstore.disk.fs.disk import Disk
from objstore.disk.git.index_file import has_path, index_paths
from objstore.disk.ignore_rules.gitignore import Rules
from objstore.disk.ignore_rules.ignore_texts import IgnoreTexts
from objstore.history.documents.loader import loaded_from_cache
from objstore.model.ids import HASH_SIZE, BlobId, blob_id
from objstore.model.record_codec import decode_record, encode_record
from objstore.model.tree import decode_tree, encode_tree, named_blobs, names_of
from objstore.storage.log.blob_codec import decode_blob, parse_blob_header
from objstore.storage.log.frames import (
    SEGMENT_HEADER_SIZE,
    Frame,
    FrameKey,
    FrameKind,
    Gap,
    SegmentHeader,
    StoreId,
    committed,
    encode_frame,
    frame_key,
    scan_windows,
)
from objstore.text.lines import split_lines
from objstore.upkeep.transfer.bundle import unpack_bundle
from objstore.upkeep.transfer.mcpdiff_format import BadLine, candidate_results, entries
from objstore.values.errors import BlobDamaged, FormatTooNew, FormatTooOld, RecordInvalid, StoreDamaged, TreeInvalid
from objstore.values.request_errors import BundleRefused
from objstore.weave.document import Document
from objstore.worktree.stat_cache import StatCache

__all__ = ["STORE", "TARGETS"]

Target: TypeAlias = Callable[[bytes], None]

STORE: Final = StoreId(bytes(16))
"""The store id assumed for bytes without a segment header, and for the stat caches of the corpus."""

_MAGIC_SIZE: Final = 8


def record(data: bytes) -> None:
    """Check that bytes are no record, or its only encoding."""
    try:
        read, previous = decode_record(data)
    except RecordInvalid:
        return
    assert encode_record(read, previous) == data


def segment_scan(data: bytes) -> None:
    """Check that a scan covers everything once, and yields only frames, groups and blobs that were written so."""
    key, start = _opened(data)
    found = list(scan_windows(lambda at, size: data[at : at + size], key, start, len(data)))
    _assert_covered(found, start, len(data))
    for frame in (item for item in found if isinstance(item, Frame)):
        encoded = encode_frame(key, frame.kind, bytes(frame.payload), begins=frame.begins, commits=frame.commits)
        assert encoded == data[frame.offset : frame.end]
    groups = list(committed(iter(found)))
    flat: list[Frame | Gap] = []
    for item in groups:
        flat += [item] if isinstance(item, Gap) else item
    _assert_covered(flat, start, len(data))
    for group in (item for item in groups if not isinstance(item, Gap)):
        assert [frame.begins for frame in group] == [True] + [False] * (len(group) - 1)
        assert [frame.commits for frame in group] == [False] * (len(group) - 1) + [True]
    blobs: dict[BlobId, bytes] = {}
    for frame in (item for item in found if isinstance(item, Frame) and item.kind is FrameKind.BLOB):
        _take_blob(bytes(frame.payload), blobs)
    # No change to a frame gets past its checksum, so what is behind it is tried on the bytes themselves too.
    _take_blob(data, blobs)


def tree(data: bytes) -> None:
    """Check that bytes are no tree, or its only encoding, and that the quick reader agrees."""
    with suppress(TreeInvalid):
        names_of(data)
    try:
        found = decode_tree(data)
    except TreeInvalid:
        return
    assert encode_tree(found) == data
    assert names_of(data) == list(named_blobs(found))


def bundle(data: bytes) -> None:
    """Check that bytes are no bundle, or that it contains only its segments."""
    for each in (data, data + blake3(data).digest()):
        with tempfile.TemporaryDirectory() as scratch:
            (Path(scratch) / "bundle").write_bytes(each)
            folder = Path(scratch) / "segments"
            folder.mkdir()
            try:
                unpack_bundle(f"{scratch}/bundle", str(folder), Disk())
            except (BundleRefused, FormatTooNew, FormatTooOld):
                continue
            segments = b"".join(path.read_bytes() for path in sorted(folder.iterdir()))
            assert each[:-HASH_SIZE].endswith(segments)


def looks(data: bytes) -> None:
    """Check that a stat cache with a correct hash is refused, or can be read and is encoded identically."""
    begin = StatCache().encoded(STORE, 0)[:_MAGIC_SIZE]
    for each in (data, begin + blob_id(data) + data):
        found = StatCache.decoded(each, STORE, 0)
        again = StatCache.decoded(found.encoded(STORE, 0), STORE, 0)
        assert list(found) == list(again)
        assert found.files(b"") == sum(len(look.files()) for look in found)
        for path in found.paths(b""):
            found.mark_unrecorded(path + b"/name")
        found.folder_signatures(b"")
        found.not_fully_recorded(b"")
        found.without_tree(b"")
        found.encoded(STORE, 0)


def weave(data: bytes) -> None:
    """Check that a cached weave is consistent or refused."""
    for packed in (data, ZstdCompressor(level=1).compress(data)):
        found = loaded_from_cache(packed, lambda _, __: True)
        assert found is None or isinstance(found[0], Document)


def history(data: bytes) -> None:
    """Check that each line of mcpdiff's logs is an entry or reported, and that a diff that doesn't fit is refused."""
    numbers = [item.number for item in entries(data) if isinstance(item, BadLine)]
    assert numbers == sorted(set(numbers))
    before, _, diff = data.partition(b"\0")
    for outcome in candidate_results(before, diff):
        assert len(outcome) <= 2 * len(data) + 1


def ignores(data: bytes) -> None:
    """Check that any ignore file gives one answer for each name, and reports its unsupported lines."""
    rules = Rules(Rules(texts=IgnoreTexts(data[::-1], data)), b"folder", IgnoreTexts(data, b""))
    assert all(isinstance(line, str) for line in rules.refused)
    for name in (b"a", b".git", b"a.pyc", b"\xff\n", b"[", b"build " * 8):
        for is_folder in (False, True):
            assert rules.verdict(name, is_folder=is_folder) is rules.verdict(name, is_folder=is_folder)


def git_index(data: bytes) -> None:
    """Hold that bytes are no index of git, or have paths that are also found one by one."""
    for hash_size in (20, 32):
        try:
            paths, shared = index_paths(data, hash_size)
        except ValueError:
            paths, shared = [], b""
        assert len(shared) in {0, hash_size}
        for path in paths[:20]:
            has_path(data, path, hash_size, is_folder=True)
        for path in (b"a", data[70:80], data[-9:]):
            assert has_path(data, path, hash_size, is_folder=False) in {True, False, None}


def patch(data: bytes) -> None:
    """Check that a text is no patch, or has one part for each file, whose result can be reverted."""
    content, _, text = data.partition(b"\0")
    decoded = text.decode("utf-8", "replace")
    parts: list[FilePatch] = []
    for likely in (False, True):
        with suppress(InvalidPatch):
            parts += parse_patches(decoded, correct=not likely, likely=likely)
    for part in parts:
        if part.hunks:
            made = apply_patch(content, part)
            assert isinstance(made, Applied | ContextMismatch | AmbiguousContext | HunksOverlap)


def anchored(data: bytes) -> None:
    """Check that operations are refused, or leave all lines unchanged that they don't name."""
    content, _, encoded = data.partition(b"\0")
    operations = [found for line in encoded.split(b"\n") if (found := _operation(line)) is not None]
    lines = split_lines(content)
    assert b"".join(lines) == content
    assert hashlines(lines).count("\n") == len(lines)
    made = apply_operations(content, operations)
    if isinstance(made, Placed):
        assert (made.content == content) or made.spans


TARGETS: Final[Mapping[str, Target]] = MappingProxyType(
    {
        "anchored": anchored,
        "bundle": bundle,
        "git_index": git_index,
        "history": history,
        "ignores": ignores,
        "looks": looks,
        "patch": patch,
        "record": record,
        "segment": segment_scan,
        "tree": tree,
        "weave": weave,
    }
)
"""Each target by the name of its corpus."""


def _operation(line: bytes) -> AnchoredEdit | None:
    """Return the operation of a line: name, anchor, end of the range and new lines, separated by tabs."""
    name, start, end, content = [*line.decode("utf-8", "replace").split("\t", 3), "", "", ""][:4]
    anchor, last = parse_anchor(start), parse_anchor(end)
    if name not in set(Op) or anchor is None or (Op(name).has_end and last is None):
        return None
    op = Op(name)
    lines = split_content_lines(content.replace("\t", "\n").encode()) if op.has_content else ()
    return AnchoredEdit(op=op, anchor=anchor, end=last if op.has_end else None, lines=lines)


def _opened(data: bytes) -> tuple[FrameKey, int]:
    """Return the key and the offset of the first frame, according to the header if there is one."""
    try:
        header = SegmentHeader.decode(data[:SEGMENT_HEADER_SIZE], segment=1)
    except (StoreDamaged, FormatTooNew, FormatTooOld):
        return frame_key(STORE), 0
    return frame_key(header.store), SEGMENT_HEADER_SIZE


def _assert_covered(found: Sequence[Frame | Gap], start: int, end: int) -> None:
    ends = [start, *(item.end for item in found)]
    assert [item.offset for item in found] == ends[:-1]
    assert ends[-1] == max(start, end)
    assert all(earlier < later for earlier, later in pairwise(ends))


def _take_blob(payload: bytes, blobs: dict[BlobId, bytes]) -> None:
    try:
        header = parse_blob_header(payload)
        base = None if header.base is None else blobs.get(header.base, b"")
        content = decode_blob(header, payload, base)
    except BlobDamaged:
        return
    assert len(content) == header.size
    assert blob_id(content) == header.id
    blobs[header.id] = content
