r"""Stand-ins: how a state that is too large to be held in memory takes part in texts.

A weave and a diff work on bytes in memory. In their place a large state has one line, its *stand-in*: a prefix that
no other text may begin with, and the blob's id. So a large state is replaced as a whole or not at all, and everything
that is true of one-line texts is true of it. A small state that happens to begin with the prefix is stood in for too;
therefore a text that begins with it is always a stand-in, whatever a file holds. The prefix holds a NUL, so that
whoever shows texts takes it for binary.
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
"""Longest blob that is held in memory, in bytes: a longer one is spelt as chunks, and its state is a *large* one."""

MAX_CHUNKED: Final = 1 << 38
"""Longest blob that there can be, in bytes."""

PREFIX: Final = b"\0\xf5\xca\x5e\xfa large blob "
"""Begins every stand-in, and no other text."""

_PREFIX_SIZE: Final = len(PREFIX)
_SIZE: Final = _PREFIX_SIZE + 2 * HASH_SIZE + 1


def placeholder(blob: BlobId) -> bytes:
    """Return the line that stands for the state with these bytes."""
    return PREFIX + blob.hex().encode() + b"\n"


def is_placeholder(text: bytes) -> bool:
    """Return whether `text` stands for a state whose bytes are elsewhere."""
    return text[:_PREFIX_SIZE] == PREFIX


def text_of_state(content: bytes, blob: BlobId) -> bytes:
    """Return the text of a state that is in memory: its bytes, unless they would be taken for a stand-in."""
    return placeholder(blob) if content.startswith(PREFIX) else content


def blob_of_placeholder(text: bytes) -> BlobId:
    """Return the blob that a stand-in names. Raises ValueError for a text that is none, or more than one line."""
    if not is_placeholder(text) or len(text) != _SIZE or not text.endswith(b"\n"):
        raise ValueError("this is no stand-in")
    return BlobId(bytes.fromhex(text[len(PREFIX) : -1].decode("ascii")))


def blob_of_text(text: bytes) -> BlobId:
    """Return the blob of the state that has this text. Raises ValueError for a stand-in with other lines."""
    return blob_of_placeholder(text) if is_placeholder(text) else blob_id(text)


def mixes_placeholders(text: bytes) -> bool:
    """Return whether a stand-in is among other lines: then no file can be what the text says."""
    at = text.find(PREFIX)
    return at >= 0 and (at > 0 or len(text) != _SIZE)
