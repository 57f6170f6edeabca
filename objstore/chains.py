"""Chains: a blob's bytes, from its frame and those of the bases that it is told against; a large blob's chunks."""

from collections.abc import Callable

from objstore.chunking import Chunk
from objstore.codec import MAX_DEPTH, BlobHeader, decode_blob, parse_blob_header, parse_chunks
from objstore.errors import BlobMissing, StoreDamaged
from objstore.ids import BlobId
from objstore.segments import Log, Place

__all__ = ["read_chain", "read_chunks"]


def read_chain(
    name: BlobId,
    log: Log,
    place_of: Callable[[BlobId], Place | None],
    cached: Callable[[BlobId], bytes | None] = lambda _: None,
) -> bytes:
    """Return a blob's bytes, verified. `place_of`: where a blob lies (None: it doesn't). `cached`: bytes at hand.

    Raises BlobMissing, with the blob or base that is not there, BlobDamaged, StoreDamaged.
    """
    # From the blob down its chain of bases to the first one at hand, then up again.
    chain: list[tuple[BlobHeader, bytes | memoryview]] = []
    content: bytes | None = None
    wanted: BlobId | None = name
    while wanted is not None and content is None and len(chain) <= MAX_DEPTH:
        place = place_of(wanted)
        if place is None:
            raise BlobMissing(wanted)
        payload = log.read(place).payload
        header = parse_blob_header(payload)
        if header.id != wanted:
            raise StoreDamaged(*place, "another blob lies where the index says")
        chain.append((header, payload))
        wanted = header.base
        content = None if wanted is None else cached(wanted)
    for header, payload in reversed(chain):
        content = decode_blob(header, payload, content)
    if content is None:
        raise BlobMissing(name)
    return content


def read_chunks(name: BlobId, log: Log, place_of: Callable[[BlobId], Place | None]) -> tuple[Chunk, ...]:
    """Return the chunks that a large blob consists of, in order. `place_of`: where it lies (None: it doesn't).

    Raises BlobMissing, BlobDamaged, StoreDamaged.
    """
    place = place_of(name)
    if place is None:
        raise BlobMissing(name)
    payload = log.read(place).payload
    header = parse_blob_header(payload)
    if header.id != name:
        raise StoreDamaged(*place, "another blob lies where the index says")
    return parse_chunks(header, payload)
