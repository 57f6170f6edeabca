"""Chains: a blob's bytes, from its frame and those of the bases that it is told against; a large blob's chunks."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeAlias

from objstore.errors import BlobDamaged, BlobMissing
from objstore.log.blob_codec import MAX_DEPTH, BlobHeader, decode_blob, expand_blob, parse_blob_header, parse_chunks
from objstore.log.chunking import Chunk
from objstore.log.segment_files import Place
from objstore.log.segments import Log
from objstore.model.ids import BlobId, blob_id

__all__ = ["read_chain", "read_chunks"]

Buffer: TypeAlias = bytes | memoryview


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
    chain: list[tuple[BlobHeader, Buffer]] = []
    content: bytes | None = None
    wanted: BlobId | None = name
    while wanted is not None and content is None and len(chain) <= MAX_DEPTH:
        place = place_of(wanted)
        if place is None:
            raise BlobMissing(wanted)
        payload = log.read(place).payload
        header = parse_blob_header(payload)
        if header.id != wanted:
            raise place.damaged("another blob is where the index says")
        chain.append((header, payload))
        wanted = header.base
        content = None if wanted is None else cached(wanted)
    # If the last one is right, it does not matter what the others are: one hash instead of one a step.
    with suppress(BlobDamaged):
        found = _put_together(chain, content, expand_blob)
        if blob_id(found) == name:
            return found
    return _put_together(chain, content, decode_blob)  # this one says which of them is damaged


def _put_together(
    chain: Sequence[tuple[BlobHeader, Buffer]],
    base: bytes | None,
    expand: Callable[[BlobHeader, Buffer, bytes | None], bytes],
) -> bytes:
    """Return the bytes of the first blob of a chain, of which the last stands on `base` (None: on nothing)."""
    content = base
    for header, payload in reversed(chain):
        content = expand(header, payload, content)
    assert content is not None  # noqa: S101 - a chain is never empty
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
        raise place.damaged("another blob is where the index says")
    return parse_chunks(header, payload)
