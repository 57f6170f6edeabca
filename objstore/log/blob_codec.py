"""How a blob's bytes are spelt in a frame: raw, compressed, or as what differs from another blob (a delta).

A delta names how many bytes at the start and at the end it shares with its base, and holds only the middle,
compressed with the base's neighbourhood of that middle as dictionary. So a one-line edit of a large file costs its
own size to write and a copy to read, whatever the file's size. The base is known from the edit: nothing is searched.
Sources: zstd's raw-content dictionaries (RFC 8878, section 5); trimming by prefix and suffix is xdelta's and diff's.

A blob that is not to be held in memory is spelt as the list of its chunks, each of which is a blob of its own.
"""

from collections.abc import Sequence
from enum import IntEnum
from functools import lru_cache
from struct import Struct
from typing import Final, NamedTuple, TypeAlias

import zstandard

from objstore.errors import BlobDamaged
from objstore.fastclass import value
from objstore.log.chunking import MAX_CHUNK, Chunk
from objstore.model.ids import HASH_SIZE, BlobId, blob_id
from objstore.model.large_file_placeholder import MAX_BLOB, MAX_CHUNKED
from objstore.text.lines import Affixes, common_affixes

__all__ = [
    "BASE_AT",
    "ENCODING_AT",
    "ID_AT",
    "LEVEL",
    "MAX_DEPTH",
    "WORTH_AT_ONCE",
    "Base",
    "BlobHeader",
    "Encoding",
    "at_depth",
    "decode_blob",
    "dictionary_span",
    "encode_blob",
    "encode_chunks",
    "expand_blob",
    "expand_middle",
    "expand_part",
    "parse_blob_header",
    "parse_chunks",
]

MAX_DEPTH: Final = 32
"""Deltas in a row before a keyframe (a blob that needs no other) is written."""

LEVEL: Final = 3
"""zstd's level where an edit waits for it."""

_LAZY_FROM: Final = 9
_BEST_FROM: Final = 16
"""Levels from which zstd's strategy is ours to say: its own choices cost more on inputs of some kB than they save."""

_NEIGHBOURHOOD: Final = 2048
"""Bytes of the base on each side of the middle that go into the dictionary."""

_MAX_DICTIONARY: Final = 8 << 20
_WORTH_COMPRESSING: Final = 48
"""Below so many bytes, zstd's own header eats what it saves."""

WORTH_AT_ONCE: Final = 512
"""The same where an edit waits: zstd takes a tenth of the time of a whole write to save some 100 bytes of those."""

_HEADER: Final = Struct(f"<{HASH_SIZE}sQBB6x")
_FIELDS: Final = Struct(f"<{HASH_SIZE}sQBB6s")
"""The header as it is read, where the reserved bytes count."""

_DELTA: Final = Struct(f"<{HASH_SIZE}sQQ")
_CHUNK: Final = Struct(f"<{HASH_SIZE}sQ")

ID_AT: Final = slice(0, HASH_SIZE)
ENCODING_AT: Final = HASH_SIZE + 8
BASE_AT: Final = slice(_HEADER.size, _HEADER.size + HASH_SIZE)
"""Where in a blob frame's payload stand its id, its encoding and, of a delta, its base's id: for who reads no more."""

_RESERVED: Final = b"\0" * 6

Buffer: TypeAlias = bytes | memoryview


class Encoding(IntEnum):
    """How the data of a blob frame are to be read."""

    RAW = 0
    ZSTD = 1
    DELTA_RAW = 2
    DELTA_ZSTD = 3
    CHUNKED = 4


_ENCODINGS: Final = {int(encoding): encoding for encoding in Encoding}
# Attributes of an enum take a call each, and a replay asks for them tens of thousands of times.
_CHUNKED, _DELTA_RAW, _DELTA_ZSTD = Encoding.CHUNKED, Encoding.DELTA_RAW, Encoding.DELTA_ZSTD


@value
class Base:
    """A stored blob that a new one may be spelt against."""

    id: BlobId
    content: bytes
    depth: int  # deltas between it and its keyframe


class BlobHeader(NamedTuple):
    """What a blob frame says before its data."""

    id: BlobId
    size: int  # bytes of the blob itself
    encoding: Encoding
    depth: int  # 0: a keyframe
    base: BlobId | None  # None: not a delta
    prefix: int  # bytes shared with the base's start
    suffix: int  # bytes shared with the base's end
    data: int  # offset of the data in the payload


def encode_blob(
    content: bytes,
    base: Base | None = None,
    *,
    name: BlobId | None = None,
    affixes: Affixes | None = None,
    level: int = LEVEL,
    worth: int = _WORTH_COMPRESSING,
    is_like: bool = False,
) -> tuple[BlobHeader, bytes]:
    """Return the payload of a blob frame for `content`, and its parsed header.

    It is a delta where `base` is given, is not at the end of its chain, and that is the shorter spelling.
    `name` is the blob's id and `affixes` what it shares with the base, where the caller has them already; `level` is
    zstd's; `worth`: a middle of fewer bytes is not compressed; `is_like`: that the base helps is known, and need not be
    tried. Raises ValueError over MAX_BLOB.
    """
    if len(content) > MAX_BLOB:
        raise ValueError(f"blob of {len(content)} bytes is over {MAX_BLOB}")
    name = blob_id(content) if name is None else name
    if base is not None and base.depth < MAX_DEPTH:
        prefix, suffix = common_affixes(base.content, content) if affixes is None else affixes
        middle = content[prefix : len(content) - suffix]
        low, high = _span_of_dictionary(prefix, suffix, len(base.content))
        dictionary = base.content[low:high]
        if len(dictionary) <= _MAX_DICTIONARY:
            data = _compressed(middle, dictionary, level, worth)
            encoding = Encoding.DELTA_ZSTD if len(data) < len(middle) else Encoding.DELTA_RAW
            data = data if encoding is Encoding.DELTA_ZSTD else middle
            # A middle that is most of the file may compress better on its own; then the chain is cut too.
            is_doubtful = not is_like and len(data) * 2 > len(content)
            alone = _compressed(content, b"", level) if is_doubtful else None
            if alone is None or len(data) + _DELTA.size <= len(alone):
                header = BlobHeader(
                    id=name,
                    size=len(content),
                    encoding=encoding,
                    depth=base.depth + 1,
                    base=base.id,
                    prefix=prefix,
                    suffix=suffix,
                    data=_HEADER.size + _DELTA.size,
                )
                fields = _HEADER.pack(name, header.size, encoding, header.depth)
                return header, b"".join((fields, _DELTA.pack(base.id, prefix, suffix), data))
    data = _compressed(content, b"", level)
    encoding = Encoding.ZSTD if len(data) < len(content) else Encoding.RAW
    header = _keyframe(name, len(content), encoding)
    fields = _HEADER.pack(name, header.size, encoding, header.depth)
    return header, fields + (data if encoding is Encoding.ZSTD else content)


def at_depth(header: BlobHeader, payload: bytes, depth: int) -> bytes:
    """Return a delta's payload as it is, but for the depth that it tells.

    Raises ValueError for none that a delta can have.
    """
    if header.base is None or not 1 <= depth <= MAX_DEPTH:
        raise ValueError(f"a depth of {depth} does not fit")
    if depth == header.depth:
        return payload
    return _HEADER.pack(header.id, header.size, header.encoding, depth) + payload[_HEADER.size :]


def parse_blob_header(payload: Buffer) -> BlobHeader:
    """Return what a blob frame's payload says of itself, without touching its data.

    Raises BlobDamaged when it can't be right, whatever the data are.
    """
    if len(payload) < _HEADER.size:
        raise BlobDamaged(bytes(payload[:HASH_SIZE]), "the frame is too short")
    name, size, number, depth, reserved = _FIELDS.unpack_from(payload)
    encoding = _ENCODINGS.get(number)
    fits = MAX_BLOB < size <= MAX_CHUNKED if encoding is _CHUNKED else size <= MAX_BLOB
    if encoding is None or not fits or reserved != _RESERVED:
        raise BlobDamaged(name, "the frame's fields are out of range")
    delta = encoding is _DELTA_RAW or encoding is _DELTA_ZSTD
    if delta is not (1 <= depth <= MAX_DEPTH):
        raise BlobDamaged(name, f"a depth of {depth} does not fit its encoding")
    if not delta:
        return _keyframe(name, size, encoding)
    start = _HEADER.size + _DELTA.size
    if len(payload) < start:
        raise BlobDamaged(name, "the frame is too short for a delta")
    base, prefix, suffix = _DELTA.unpack_from(payload, _HEADER.size)
    if prefix + suffix > size:
        raise BlobDamaged(name, "it shares more bytes with its base than it has")
    return BlobHeader(name, size, encoding, depth, base, prefix, suffix, start)


def decode_blob(header: BlobHeader, payload: Buffer, base: bytes | None) -> bytes:
    """Return the blob's bytes, given its frame's payload and, of a delta, its base's bytes.

    Raises BlobDamaged unless they hash to the blob's id. Takes no more memory than the header's size declares.
    """
    content = expand_blob(header, payload, base)
    if blob_id(content) != header.id:
        raise BlobDamaged(header.id, "its bytes do not hash to its name")
    return content


def expand_blob(header: BlobHeader, payload: Buffer, base: bytes | None) -> bytes:
    """Return what `decode_blob` returns, but don't hash it: for a chain of which the last is compared.

    Raises BlobDamaged where it can't be right, whatever its hash.
    """
    if header.encoding is Encoding.CHUNKED:
        raise BlobDamaged(header.id, "it is stored in chunks, but must be in one piece")
    data = payload[header.data :]
    if header.base is None:
        content = _expanded(header, data, header.size, b"") if header.encoding is Encoding.ZSTD else bytes(data)
    else:
        if base is None or header.prefix + header.suffix > len(base):
            raise BlobDamaged(header.id, "its base does not fit")
        low, high = dictionary_span(header, len(base))
        middle = expand_middle(header, payload, base[low:high])
        content = b"".join((base[: header.prefix], middle, base[len(base) - header.suffix :]))
    if len(content) != header.size:
        raise BlobDamaged(header.id, "its size differs from the size in its header")
    return content


def dictionary_span(header: BlobHeader, base_size: int) -> tuple[int, int]:
    """Return which bytes of a delta's base, which has so many, help to expand its middle: first, and the one behind."""
    return _span_of_dictionary(header.prefix, header.suffix, base_size)


def expand_middle(header: BlobHeader, payload: Buffer, dictionary: bytes) -> bytes:
    """Return what a delta puts between prefix and suffix. `dictionary`: the bytes of its base in `dictionary_span`.

    Raises BlobDamaged where it can't be right, whatever the blob's hash.
    """
    data, size = payload[header.data :], header.size - header.prefix - header.suffix
    middle = _expanded(header, data, size, dictionary) if header.encoding is Encoding.DELTA_ZSTD else bytes(data)
    if len(middle) != size:
        raise BlobDamaged(header.id, "its size differs from the size in its header")
    return middle


def expand_part(header: BlobHeader, payload: Buffer, start: int, end: int) -> bytes:
    """Return the bytes from `start` to `end` of a keyframe's blob; what stands behind them is not expanded.

    Raises BlobDamaged where it can't be right, whatever the blob's hash.
    """
    data, part = payload[header.data :], b""
    if header.encoding is Encoding.RAW:
        part = bytes(data[start:end]) if len(data) == header.size else b""
    else:
        try:
            if zstandard.frame_content_size(data) == header.size:
                with zstandard.ZstdDecompressor().stream_reader(data) as reader:
                    reader.seek(start)  # a piece at a time: what stands before is never in memory as a whole
                    part = reader.read(end - start)
        except zstandard.ZstdError as error:
            raise BlobDamaged(header.id, f"it can't be decompressed: {error}") from error
    if len(part) != end - start:
        raise BlobDamaged(header.id, "its size differs from the size in its header")
    return part


def encode_chunks(name: BlobId, chunks: Sequence[Chunk]) -> tuple[BlobHeader, bytes]:
    """Return the payload of a blob frame that lists the blob's chunks, in order, and its parsed header.

    Raises ValueError unless the blob is over MAX_BLOB and at most MAX_CHUNKED.
    """
    size = sum(chunk.size for chunk in chunks)
    if not MAX_BLOB < size <= MAX_CHUNKED:
        raise ValueError(f"a blob of {size} bytes is not to be spelt as chunks")
    fields = _HEADER.pack(name, size, Encoding.CHUNKED, 0)
    return _keyframe(name, size, Encoding.CHUNKED), fields + b"".join([_CHUNK.pack(*chunk) for chunk in chunks])


def parse_chunks(header: BlobHeader, payload: Buffer) -> tuple[Chunk, ...]:
    """Return the chunks that a chunked blob consists of, in order.

    Raises BlobDamaged unless they are of 1 to MAX_CHUNK bytes and together as long as the blob.
    """
    data = payload[header.data :]
    if header.encoding is not Encoding.CHUNKED or len(data) % _CHUNK.size:
        raise BlobDamaged(header.id, "it is not a list of chunks")
    chunks = tuple(Chunk(BlobId(name), size) for name, size in _CHUNK.iter_unpack(data))
    if not all(0 < chunk.size <= MAX_CHUNK for chunk in chunks):
        raise BlobDamaged(header.id, "the size of a chunk is out of range")
    if sum(chunk.size for chunk in chunks) != header.size:
        raise BlobDamaged(header.id, "its chunks' sizes do not add up to its size")
    return chunks


def _keyframe(name: BlobId, size: int, encoding: Encoding) -> BlobHeader:
    return BlobHeader(id=name, size=size, encoding=encoding, depth=0, base=None, prefix=0, suffix=0, data=_HEADER.size)


def _span_of_dictionary(prefix: int, suffix: int, base_size: int) -> tuple[int, int]:
    low = max(0, prefix - _NEIGHBOURHOOD)
    return low, max(low, min(base_size, base_size - suffix + _NEIGHBOURHOOD))


@lru_cache
def _parameters(level: int, size_bits: int, dictionary_bits: int) -> zstandard.ZstdCompressionParameters:
    """Return the parameters for sizes of so many bits; zstd itself rounds a window to a power of two."""
    size, dictionary = (1 << bits if bits else 0 for bits in (size_bits, dictionary_bits))
    chosen: dict[str, int] = {}
    if level >= _BEST_FROM:
        # Those beyond it take half as long again for less than a hundredth.
        chosen["strategy"] = zstandard.STRATEGY_BTOPT
    elif level >= _LAZY_FROM:
        # Binary trees take twice as long for nothing.
        chosen["strategy"] = zstandard.STRATEGY_LAZY2
    return zstandard.ZstdCompressionParameters.from_level(
        level, source_size=size, dict_size=dictionary, write_content_size=True, write_dict_id=False, **chosen
    )


def _compressed(content: bytes, dictionary: bytes, level: int, worth: int = _WORTH_COMPRESSING) -> bytes:
    if len(content) < worth:
        return content
    parameters = _parameters(level, len(content).bit_length(), len(dictionary).bit_length())
    if not dictionary:
        return zstandard.ZstdCompressor(compression_params=parameters).compress(content)
    prepared = zstandard.ZstdCompressionDict(dictionary, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    return zstandard.ZstdCompressor(compression_params=parameters, dict_data=prepared).compress(content)


def _expanded(header: BlobHeader, data: Buffer, size: int, dictionary: bytes) -> bytes:
    try:
        if zstandard.frame_content_size(data) != size:
            raise BlobDamaged(header.id, "it declares two different sizes")
        prepared = None
        if dictionary:
            prepared = zstandard.ZstdCompressionDict(dictionary, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
        return zstandard.ZstdDecompressor(dict_data=prepared).decompress(data, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise BlobDamaged(header.id, f"it can't be decompressed: {error}") from error
