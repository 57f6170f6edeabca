r"""Represent a blob over the in-memory limit by a one-line placeholder wherever texts are compared.

A weave and a diff work on bytes in memory. A large state takes part as one line, its *placeholder*: a prefix that no
other text may begin with, followed by the blob's id. So a large state is replaced as a whole or not at all, and
everything that holds for one-line texts holds for it.

A small state whose content begins with the prefix is represented by its placeholder too. Therefore a text that begins
with the prefix is always a placeholder, whatever a file contains. The prefix contains a NUL, so that programs that show
texts treat it as binary.
"""

from typing import Final

from objstore.model.ids import HASH_SIZE, BlobId, blob_id

__all__ = [
    "MAX_BLOB",
    "MAX_CHUNKED",
    "PREFIX",
    "blob_of_placeholder",
    "blob_of_text",
    "is_placeholder",
    "mixes_placeholders",
    "placeholder",
    "text_of_state",
]

MAX_BLOB: Final = 1 << 26
"""Longest blob that is held in memory, in bytes: a longer one is stored as chunks, and its state is a *large* one."""

MAX_CHUNKED: Final = 1 << 38
"""Longest blob that can be stored, in bytes."""

PREFIX: Final = b"\0\xf5\xca\x5e\xfa large blob "
"""The start of every placeholder, and of no other text."""

_PREFIX_SIZE: Final = len(PREFIX)
_SIZE: Final = _PREFIX_SIZE + 2 * HASH_SIZE + 1


def placeholder(blob: BlobId) -> bytes:
    """Return the line that represents the state with these bytes."""
    return PREFIX + blob.hex().encode() + b"\n"


def is_placeholder(text: bytes) -> bool:
    """Return whether `text` is a placeholder, that is, the bytes are elsewhere."""
    return text[:_PREFIX_SIZE] == PREFIX


def text_of_state(content: bytes, blob: BlobId) -> bytes:
    """Return the text of a state that is in memory: its bytes, unless they would be taken for a placeholder."""
    return placeholder(blob) if content.startswith(PREFIX) else content


def blob_of_placeholder(text: bytes) -> BlobId:
    """Return the blob that a placeholder names. Raises ValueError for any other text, or one with more lines."""
    if not is_placeholder(text) or len(text) != _SIZE or not text.endswith(b"\n"):
        raise ValueError("this is not a placeholder")
    return BlobId(bytes.fromhex(text[len(PREFIX) : -1].decode("ascii")))


def blob_of_text(text: bytes) -> BlobId:
    """Return the blob of the state that has this text. Raises ValueError for a placeholder with further lines."""
    return blob_of_placeholder(text) if is_placeholder(text) else blob_id(text)


def mixes_placeholders(text: bytes) -> bool:
    """Return whether `text` contains a placeholder among other lines, so that it can't be the text of any file."""
    at = text.find(PREFIX)
    return at >= 0 and (at > 0 or len(text) != _SIZE)
