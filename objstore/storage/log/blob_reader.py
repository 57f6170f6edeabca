"""Read a blob from the log: follow its chain of bases, or list and join a large blob's chunks."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias

from objstore.model.ids import BlobHasher, BlobId, blob_id
from objstore.storage.log.blob_codec import (
    MAX_DEPTH,
    BlobHeader,
    decode_blob,
    expand_blob,
    parse_blob_header,
    parse_chunks,
)
from objstore.storage.log.segment_files import Place
from objstore.storage.log.segments import Log
from objstore.values.errors import BlobDamaged, BlobMissing

if TYPE_CHECKING:
    from objstore.storage.log.chunking import Chunk

__all__ = ["joined_chunks", "read_chain", "read_chunks"]

Buffer: TypeAlias = bytes | memoryview


def read_chain(
    name: BlobId,
    log: Log,
    place_of: Callable[[BlobId], Place | None],
    cached: Callable[[BlobId], bytes | None] = lambda _: None,
) -> bytes:
    """Return a blob's bytes, verified.

    `place_of` returns a blob's place (None: the log doesn't have it), and `cached` its bytes if they are in memory.

    Raises BlobMissing, with the missing blob or base, BlobDamaged, StoreDamaged.
    """
    # Go from the blob down its chain of bases to the first one in memory, then back up.
    chain: list[tuple[BlobHeader, Buffer]] = []
    content: bytes | None = None
    wanted: BlobId | None = name
    while wanted is not None and content is None and len(chain) <= MAX_DEPTH:
        header, payload = _frame(wanted, log, place_of)
        chain.append((header, payload))
        wanted = header.base
        content = None if wanted is None else cached(wanted)
    # If the last result is right, the others need no check: one hash instead of one for each step.
    with suppress(BlobDamaged):
        found = _assemble(chain, content, expand_blob)
        if blob_id(found) == name:
            return found
    return _assemble(chain, content, decode_blob)  # raises for the one that is damaged


def _assemble(
    chain: Sequence[tuple[BlobHeader, Buffer]],
    base: bytes | None,
    expand: Callable[[BlobHeader, Buffer, bytes | None], bytes],
) -> bytes:
    """Return the bytes of a chain's first blob; `base`: the bytes that its last one is a delta to (None: no base)."""
    content = base
    for header, payload in reversed(chain):
        content = expand(header, payload, content)
    assert content is not None  # noqa: S101 - a chain is never empty
    return content


def read_chunks(name: BlobId, log: Log, place_of: Callable[[BlobId], Place | None]) -> tuple["Chunk", ...]:
    """Return the chunks of a large blob, in order. `place_of`: as for read_chain.

    Raises BlobMissing, BlobDamaged, StoreDamaged.
    """
    return parse_chunks(*_frame(name, log, place_of))


def joined_chunks(name: BlobId, chunks: Iterable["Chunk"], content_of: Callable[[BlobId], bytes]) -> Iterator[bytes]:
    """Yield the bytes of a large blob, chunk by chunk; `content_of` returns a chunk's verified bytes.

    Raises BlobDamaged; after the last chunk, if together they are not the blob.
    """
    hasher = BlobHasher()
    for chunk in chunks:
        content = content_of(chunk.id)
        if len(content) != chunk.size:
            raise BlobDamaged(name, "a chunk's size differs from the one in the list")
        hasher.update(content)
        yield content
    if hasher.blob_id() != name:
        raise BlobDamaged(name, "its bytes do not hash to its name")


def _frame(name: BlobId, log: Log, place_of: Callable[[BlobId], Place | None]) -> tuple[BlobHeader, Buffer]:
    """Return the header and the payload of a blob's frame. Raises BlobMissing, StoreDamaged."""
    place = place_of(name)
    if place is None:
        raise BlobMissing(name)
    payload = log.read(place).payload
    header = parse_blob_header(payload)
    if header.id != name:
        raise place.damaged("another blob is at the place in the index")
    return header, payload
