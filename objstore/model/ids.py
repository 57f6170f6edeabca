"""Define the ids of stored things: one type for each, and the one place where each is computed."""

from typing import Final, NewType

from blake3 import blake3

__all__ = ["HASH_SIZE", "BlobHasher", "BlobId", "RecordId", "blob_id", "hex_prefix_bounds", "record_id"]

HASH_SIZE: Final = 32
"""Bytes in an id: BLAKE3 with its default output of 256 bits."""

BlobId = NewType("BlobId", bytes)
"""The plain BLAKE3-256 of a file's bytes, so that `b3sum FILE` prints it."""

RecordId = NewType("RecordId", bytes)
"""The plain BLAKE3-256 of a record's canonical bytes."""


def blob_id(content: bytes | memoryview) -> BlobId:
    """Return the name under which `content` is stored (32 bytes)."""
    return BlobId(blake3(content).digest())


class BlobHasher:
    """Compute a blob's id from consecutive pieces."""

    def __init__(self) -> None:
        """Start with no bytes."""
        self._hasher = blake3()
        self.size = 0  # bytes so far

    def update(self, piece: bytes) -> None:
        """Append the next piece."""
        self._hasher.update(piece)
        self.size += len(piece)

    def blob_id(self) -> BlobId:
        """Return the name under which the bytes so far are stored (32 bytes)."""
        return BlobId(self._hasher.digest())


def record_id(encoded: bytes) -> RecordId:
    """Return the name of a record, given its canonical bytes (32 bytes)."""
    return RecordId(blake3(encoded).digest())


def hex_prefix_bounds(prefix: str) -> tuple[bytes, bytes]:
    """Return the smallest and the largest id whose hexadecimal form begins with `prefix`.

    Raises ValueError unless `prefix` is 1 to 64 hexadecimal digits.
    """
    digits = HASH_SIZE * 2
    if not 1 <= len(prefix) <= digits or not all(c in "0123456789abcdefABCDEF" for c in prefix):
        raise ValueError(f"not a hexadecimal prefix of an id: {prefix!r}")
    return bytes.fromhex(prefix.ljust(digits, "0")), bytes.fromhex(prefix.ljust(digits, "f"))
