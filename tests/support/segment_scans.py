"""Scans of a whole segment in memory."""

from collections.abc import Iterator

from objstore.storage.log.frames import Frame, FrameKey, Gap, scan_windows

__all__ = ["scan"]


def scan(content: bytes | memoryview, key: FrameKey, start: int, *, base: int = 0) -> Iterator[Frame | Gap]:
    """Yield the frames of `content`, which begins at `base` in its segment, from `start` on, and the gaps between."""
    return scan_windows(lambda at, size: content[at - base : at - base + size], key, base + start, base + len(content))
