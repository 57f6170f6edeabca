"""List the paths in git's index file.

Source: git's `Documentation/gitformat-index`, versions 2 to 4.
"""

from typing import Final

__all__ = ["has_path", "index_paths", "may_be_split"]

_MOST_PLACES: Final = 64
"""Places in an index where a name may occur in other paths, until all paths are listed instead."""

_HEADER: Final = 12
_VERSIONS: Final = (2, 3, 4)
_STAT: Final = 40
"""Bytes of an entry before its hash."""

_MODE: Final = 26
"""Offset in an entry of the byte that has the kind of the file in its upper half."""

_KIND: Final = 0xF0
_KINDS: Final = {0x80, 0xA0, 0xE0}
"""Kinds of files, of symbolic links and of submodules."""

_ALIGNED: Final = 8
"""Bytes of which the length of an entry is a multiple."""

_FOLDER: Final = 0x40
"""Kind of a folder that a sparse checkout leaves out: nothing of it is on disk."""

_PLAIN_BEGINNINGS: Final = frozenset(b"DIRC" + version.to_bytes(4) for version in _VERSIONS[:-1])
_LENGTH: Final = 0x0FFF
_EXTENDED: Final = 0x4000
_SMALL: Final = 0x7F
"""Bits that each byte of a number in version 4 carries; the highest bit says that another byte follows."""


def index_paths(content: bytes, hash_size: int) -> tuple[list[bytes], bytes]:
    """Return the paths in an index, and the hash of the shared index that it continues (b"": none).

    `hash_size`: bytes of the repository's hashes. Raises ValueError if this is no index in a known format.
    """
    version, count = int.from_bytes(content[4:8]), int.from_bytes(content[8:_HEADER])
    if content[:4] != b"DIRC" or version not in _VERSIONS or len(content) < _HEADER:
        raise ValueError("it is no index in a known format")
    read = _compressed if version == max(_VERSIONS) else _plain
    try:
        found, end = read(content, count, hash_size)
    except IndexError:
        raise ValueError("the index ends too early") from None
    if end > len(content) - hash_size:
        raise ValueError("the index ends too early")
    return found, _shared(content, end, hash_size)


def has_path(content: bytes, path: bytes, hash_size: int, *, is_folder: bool) -> bool | None:
    """Return whether an index has a file, or (`is_folder`) a file or a file below a folder, without listing its paths.

    None: only a list shows it, because the index is compressed or is none. For a few paths this takes a hundredth of
    the time. `may_be_split` has to be asked first: the other part of a split index has further paths.
    """
    if content[:8] not in _PLAIN_BEGINNINGS:
        return None
    try:
        found = _has_entry(content, path + b"\0", hash_size)
        return _has_entry(content, path + b"/", hash_size) if found is False and is_folder else found
    except IndexError:
        return None  # the index ends too early


def may_be_split(content: bytes) -> bool:
    """Return whether an index may continue another: it then names the extension `link`."""
    return b"link\0" in content


def _has_entry(content: bytes, beginning: bytes, hash_size: int) -> bool | None:
    """Return whether a path of an uncompressed index begins so (None: unclear)."""
    at = -1
    for _ in range(_MOST_PLACES):
        at = content.find(beginning, at + 1)
        if at < 0:
            return False
        if any(_is_path_of_entry(content, at, at - flags - hash_size - _STAT, flags) for flags in (2, 4)):
            return True
    return None


def _is_path_of_entry(content: bytes, at: int, start: int, flags: int) -> bool:
    """Return whether the path of an entry begins at `at`, if the entry itself begins at `start`.

    `flags`: how many bytes of flags it has. The first two have the length of the path.
    """
    if start < _HEADER or (start - _HEADER) % _ALIGNED or content[start + _MODE] & _KIND not in _KINDS:
        return False
    said = content[at - flags] << 8 | content[at - flags + 1]
    length = min(_terminator(content, at) - at, _LENGTH)
    return said & _LENGTH == length and bool(said & _EXTENDED) is (flags > 2)  # noqa: PLR2004 - as above


def _plain(content: bytes, count: int, hash_size: int) -> tuple[list[bytes], int]:
    """Return the paths of versions 2 and 3, and where the entries end."""
    found = []
    at = _HEADER
    flags_at = _STAT + hash_size
    for _ in range(count):
        flags = content[at + flags_at] << 8 | content[at + flags_at + 1]
        begin = at + flags_at + (4 if flags & _EXTENDED else 2)
        length = flags & _LENGTH
        end = begin + length if length < _LENGTH else _terminator(content, begin)
        if content[at + _MODE] & _KIND != _FOLDER:
            found.append(content[begin:end])
        at += (end - at + _ALIGNED) // _ALIGNED * _ALIGNED  # at least one zero follows
    return found, at


def _compressed(content: bytes, count: int, hash_size: int) -> tuple[list[bytes], int]:
    """Return the paths of version 4, each of which begins as the one before it, and where the entries end."""
    found = []
    at = _HEADER
    path = b""
    for _ in range(count):
        flags_at = at + _STAT + hash_size
        begin = flags_at + (4 if content[flags_at] << 8 & _EXTENDED else 2)
        dropped, begin = _number(content, begin)
        end = _terminator(content, begin)
        path = path[: len(path) - dropped] + content[begin:end]
        if content[at + _MODE] & _KIND != _FOLDER:
            found.append(path)
        at = end + 1
    return found, at


def _number(content: bytes, at: int) -> tuple[int, int]:
    """Return the number at a position, and where it ends."""
    byte = content[at]
    number = byte & _SMALL
    while byte & ~_SMALL:
        at += 1
        byte = content[at]
        number = (number + 1) << 7 | byte & _SMALL
    return number, at + 1


def _terminator(content: bytes, at: int) -> int:
    end = content.find(b"\0", at)
    if end < 0:
        raise IndexError
    return end


def _shared(content: bytes, at: int, hash_size: int) -> bytes:
    """Return the hash in the extension that names a shared index (b"": there is none)."""
    while at + 8 <= len(content) - hash_size:
        kind, size = content[at : at + 4], int.from_bytes(content[at + 4 : at + 8])
        if kind == b"link":
            return content[at + 8 : at + 8 + hash_size].strip(b"\0") and content[at + 8 : at + 8 + hash_size]
        at += 8 + size
    return b""
