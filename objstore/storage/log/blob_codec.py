"""Encode blobs in frames: raw, compressed with zstd, as a delta to another blob, or as a list of chunks.

A delta records how many bytes at the start and at the end it shares with its base, and holds only the middle,
compressed with the bytes around that middle in the base as dictionary. So a one-line edit of a large file takes its own
size to write and a copy to read, whatever the file's size. The base is known from the edit, so no search is needed.
Sources: zstd's raw-content dictionaries (RFC 8878, section 5); xdelta and diff trim by prefix and suffix.

A blob that is too large for memory is encoded as the list of its chunks, each of which is a blob of its own.
"""

from _thread import _local as thread_local  # `threading` takes 1 ms of a hook
from collections.abc import Sequence
from enum import IntEnum
from functools import lru_cache
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from objstore.model.ids import HASH_SIZE, BlobId, blob_id
from objstore.model.large_file_placeholder import MAX_BLOB, MAX_CHUNKED
from objstore.text.lines import Affixes, common_affixes
from objstore.values.errors import BlobDamaged
from objstore.values.fastclass import value

# zstandard is imported where it is used: it takes 3 ms, and most hooks neither compress nor decompress anything.
if TYPE_CHECKING:
    from zstandard import ZstdCompressionParameters, ZstdCompressor, ZstdDecompressor

    from objstore.storage.log.chunking import Chunk

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
"""Longest chain of deltas; the next blob is written as a keyframe (a blob without a base)."""

LEVEL: Final = 3
"""zstd's level for blobs that an edit waits for."""

_LAZY_FROM: Final = 9
_BEST_FROM: Final = 16
"""Levels from which we choose zstd's strategy: on inputs of a few kB, zstd's own choices cost more than they save."""

_NEIGHBOURHOOD: Final = 2048
"""Bytes of the base on each side of the middle that are part of the dictionary."""

_MAX_DICTIONARY: Final = 8 << 20
_WORTH_COMPRESSING: Final = 48
"""Smallest content to compress, in bytes: below it, zstd's own header takes what compression saves."""

WORTH_AT_ONCE: Final = 512
"""Smallest middle to compress while an edit waits: zstd takes a tenth of the time of a write to save some 100 bytes."""

_KEPT_SIZE: Final = 128 << 10
"""Bytes of content up to which a compressor is kept for the next one."""

_of_thread: Final = thread_local()

_HEADER: Final = Struct(f"<{HASH_SIZE}sQBB6x")
_FIELDS: Final = Struct(f"<{HASH_SIZE}sQBB6s")
"""The header with its reserved bytes, for reading."""

_DELTA: Final = Struct(f"<{HASH_SIZE}sQQ")
_CHUNK: Final = Struct(f"<{HASH_SIZE}sQ")

ID_AT: Final = slice(0, HASH_SIZE)
ENCODING_AT: Final = HASH_SIZE + 8
BASE_AT: Final = slice(_HEADER.size, _HEADER.size + HASH_SIZE)
"""Positions in a blob frame's payload of its id, its encoding and a delta's base, for readers that need no more."""

_RESERVED: Final = b"\0" * 6

Buffer: TypeAlias = bytes | memoryview


class Encoding(IntEnum):
    """The format of the data in a blob frame."""

    RAW = 0
    ZSTD = 1
    DELTA_RAW = 2
    DELTA_ZSTD = 3
    CHUNKED = 4


_ENCODINGS: Final = {int(encoding): encoding for encoding in Encoding}
# Reading an enum's attribute takes a call, and a replay would do so tens of thousands of times.
_CHUNKED, _DELTA_RAW, _DELTA_ZSTD = Encoding.CHUNKED, Encoding.DELTA_RAW, Encoding.DELTA_ZSTD


@value
class Base:
    """A stored blob that a new one may be encoded as a delta to."""

    id: BlobId
    content: bytes
    depth: int  # deltas between it and its keyframe


class BlobHeader(NamedTuple):
    """The fields of a blob frame before its data."""

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
    """Return the parsed header and the payload of a blob frame for `content`.

    The blob is encoded as a delta if `base` is given, isn't at the end of its chain, and the delta is the shorter
    encoding. `name` is the blob's id and `affixes` the lengths that it shares with the base, if the caller has them
    already; `level` is zstd's level; a middle of fewer than `worth` bytes is not compressed; `is_like` means that the
    base is known to help, so that encoding without it is not tried. Raises ValueError over MAX_BLOB.
    """
    if len(content) > MAX_BLOB:
        raise ValueError(f"blob of {len(content)} bytes is over {MAX_BLOB}")
    name = blob_id(content) if name is None else name
    if base is not None and base.depth < MAX_DEPTH:
        prefix, suffix = common_affixes(base.content, content) if affixes is None else affixes
        middle = content[prefix : len(content) - suffix]
        low, high = _dictionary_span(prefix, suffix, len(base.content))
        dictionary = base.content[low:high]
        if len(dictionary) <= _MAX_DICTIONARY:
            data = _compressed(middle, dictionary, level, worth)
            encoding = Encoding.DELTA_ZSTD if len(data) < len(middle) else Encoding.DELTA_RAW
            data = data if encoding is Encoding.DELTA_ZSTD else middle
            # A middle that is most of the file may compress better without the base, which also ends the chain.
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
    """Return a delta's payload with the depth in it set to `depth`.

    Raises ValueError for a blob that is no delta, or a depth that no delta can have.
    """
    if header.base is None or not 1 <= depth <= MAX_DEPTH:
        raise ValueError(f"a depth of {depth} does not fit")
    if depth == header.depth:
        return payload
    return _HEADER.pack(header.id, header.size, header.encoding, depth) + payload[_HEADER.size :]


def parse_blob_header(payload: Buffer) -> BlobHeader:
    """Return the header of a blob frame's payload, without reading the data.

    Raises BlobDamaged if the header can't be right, whatever the data.
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
        raise BlobDamaged(name, "its prefix and suffix are longer than the blob")
    return BlobHeader(name, size, encoding, depth, base, prefix, suffix, start)


def decode_blob(header: BlobHeader, payload: Buffer, base: bytes | None) -> bytes:
    """Return the blob's bytes, given its frame's payload and, for a delta, its base's bytes.

    Raises BlobDamaged unless they hash to the blob's id. Takes no more memory than the header's size declares.
    """
    content = expand_blob(header, payload, base)
    if blob_id(content) != header.id:
        raise BlobDamaged(header.id, "its bytes do not hash to its name")
    return content


def expand_blob(header: BlobHeader, payload: Buffer, base: bytes | None) -> bytes:
    """Return the same bytes as `decode_blob`, unhashed: for a chain of which only the last result is verified.

    Raises BlobDamaged if the frame can't be right, whatever the hash.
    """
    if header.encoding is Encoding.CHUNKED:
        raise BlobDamaged(header.id, "it is stored in chunks, where a whole blob is needed")
    data = payload[header.data :]
    if header.base is None:
        content = _decompressed(header, data, header.size, b"") if header.encoding is Encoding.ZSTD else bytes(data)
    else:
        if base is None or header.prefix + header.suffix > len(base):
            raise BlobDamaged(header.id, "its base does not fit")
        low, high = dictionary_span(header, len(base))
        middle = expand_middle(header, payload, base[low:high])
        content = b"".join((base[: header.prefix], middle, base[len(base) - header.suffix :]))
    if len(content) != header.size:
        raise BlobDamaged(header.id, "its size differs from the one in its header")
    return content


def dictionary_span(header: BlobHeader, base_size: int) -> tuple[int, int]:
    """Return the start and end of the part of a delta's base that is its dictionary; `base_size` in bytes."""
    return _dictionary_span(header.prefix, header.suffix, base_size)


def expand_middle(header: BlobHeader, payload: Buffer, dictionary: bytes) -> bytes:
    """Return a delta's bytes between prefix and suffix. `dictionary`: the bytes of its base in `dictionary_span`.

    Raises BlobDamaged if they can't be right, whatever the blob's hash.
    """
    data, size = payload[header.data :], header.size - header.prefix - header.suffix
    middle = _decompressed(header, data, size, dictionary) if header.encoding is Encoding.DELTA_ZSTD else bytes(data)
    if len(middle) != size:
        raise BlobDamaged(header.id, "its size differs from the one in its header")
    return middle


def expand_part(header: BlobHeader, payload: Buffer, start: int, end: int) -> bytes:
    """Return the bytes from `start` to `end` of a keyframe's blob, without expanding what follows them.

    Raises BlobDamaged if they can't be right, whatever the blob's hash.
    """
    data, part = payload[header.data :], b""
    if header.encoding is Encoding.RAW:
        part = bytes(data[start:end]) if len(data) == header.size else b""
    else:
        import zstandard

        try:
            if zstandard.frame_content_size(data) == header.size:
                with zstandard.ZstdDecompressor().stream_reader(data) as reader:
                    reader.seek(start)  # in small pieces: the bytes before are never in memory as a whole
                    part = reader.read(end - start)
        except zstandard.ZstdError as error:
            raise BlobDamaged(header.id, f"it can't be decompressed: {error}") from error
    if len(part) != end - start:
        raise BlobDamaged(header.id, "its size differs from the one in its header")
    return part


def encode_chunks(name: BlobId, chunks: Sequence["Chunk"]) -> tuple[BlobHeader, bytes]:
    """Return the parsed header and the payload of a blob frame that lists the blob's chunks in order.

    Raises ValueError unless the blob is over MAX_BLOB and at most MAX_CHUNKED.
    """
    size = sum(chunk.size for chunk in chunks)
    if not MAX_BLOB < size <= MAX_CHUNKED:
        raise ValueError(f"a blob of {size} bytes is not encoded as chunks")
    fields = _HEADER.pack(name, size, Encoding.CHUNKED, 0)
    return _keyframe(name, size, Encoding.CHUNKED), fields + b"".join([_CHUNK.pack(*chunk) for chunk in chunks])


def parse_chunks(header: BlobHeader, payload: Buffer) -> tuple["Chunk", ...]:
    """Return the chunks of a chunked blob, in order.

    Raises BlobDamaged unless they have 1 to MAX_CHUNK bytes each and are together as long as the blob.
    """
    data = payload[header.data :]
    if header.encoding is not Encoding.CHUNKED or len(data) % _CHUNK.size:
        raise BlobDamaged(header.id, "it is not a list of chunks")
    from objstore.storage.log.chunking import MAX_CHUNK, Chunk  # only large files are stored in chunks

    chunks = tuple(Chunk(BlobId(name), size) for name, size in _CHUNK.iter_unpack(data))
    if not all(0 < chunk.size <= MAX_CHUNK for chunk in chunks):
        raise BlobDamaged(header.id, "the size of a chunk is out of range")
    if sum(chunk.size for chunk in chunks) != header.size:
        raise BlobDamaged(header.id, "its chunks have another total size")
    return chunks


def _keyframe(name: BlobId, size: int, encoding: Encoding) -> BlobHeader:
    return BlobHeader(id=name, size=size, encoding=encoding, depth=0, base=None, prefix=0, suffix=0, data=_HEADER.size)


def _dictionary_span(prefix: int, suffix: int, base_size: int) -> tuple[int, int]:
    low = max(0, prefix - _NEIGHBOURHOOD)
    return low, max(low, min(base_size, base_size - suffix + _NEIGHBOURHOOD))


@lru_cache
def _parameters(level: int, size_bits: int, dictionary_bits: int) -> "ZstdCompressionParameters":
    """Return zstd's parameters for sizes of so many bits; zstd itself rounds a window to a power of two."""
    import zstandard

    size, dictionary = (1 << bits if bits else 0 for bits in (size_bits, dictionary_bits))
    chosen: dict[str, int] = {}
    if level >= _BEST_FROM:
        # Stronger strategies take 50 % more time to save less than 1 %.
        chosen["strategy"] = zstandard.STRATEGY_BTOPT
    elif level >= _LAZY_FROM:
        # Binary trees take twice the time and save nothing.
        chosen["strategy"] = zstandard.STRATEGY_LAZY2
    return zstandard.ZstdCompressionParameters.from_level(
        level, source_size=size, dict_size=dictionary, write_content_size=True, write_dict_id=False, **chosen
    )


def _compressed(content: bytes, dictionary: bytes, level: int, worth: int = _WORTH_COMPRESSING) -> bytes:
    if len(content) < worth:
        return content
    import zstandard

    parameters = _parameters(level, len(content).bit_length(), len(dictionary).bit_length())
    if not dictionary:
        return _compressor(parameters, len(content)).compress(content)
    prepared = zstandard.ZstdCompressionDict(dictionary, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    return zstandard.ZstdCompressor(compression_params=parameters, dict_data=prepared).compress(content)


def _compressor(parameters: "ZstdCompressionParameters", size: int) -> "ZstdCompressor":
    """Return a compressor for contents without a dictionary: this thread's last one, if that has these parameters.

    To make one takes as long as to compress 2 kB. One for large contents is not kept: it would keep its memory.
    """
    kept: tuple[ZstdCompressionParameters, ZstdCompressor] | None = getattr(_of_thread, "compressor", None)
    if kept is not None and kept[0] is parameters:
        return kept[1]
    import zstandard

    made = zstandard.ZstdCompressor(compression_params=parameters)
    if size <= _KEPT_SIZE:
        _of_thread.compressor = parameters, made
    return made


def _decompressor() -> "ZstdDecompressor":
    """Return this thread's decompressor for contents without a dictionary."""
    kept: ZstdDecompressor | None = getattr(_of_thread, "decompressor", None)
    if kept is None:
        import zstandard

        kept = _of_thread.decompressor = zstandard.ZstdDecompressor()
    return kept


def _decompressed(header: BlobHeader, data: Buffer, size: int, dictionary: bytes) -> bytes:
    import zstandard

    try:
        if zstandard.frame_content_size(data) != size:
            raise BlobDamaged(header.id, "it declares two different sizes")
        if not dictionary:
            return _decompressor().decompress(data, allow_extra_data=False)
        prepared = zstandard.ZstdCompressionDict(dictionary, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
        return zstandard.ZstdDecompressor(dict_data=prepared).decompress(data, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise BlobDamaged(header.id, f"it can't be decompressed: {error}") from error
