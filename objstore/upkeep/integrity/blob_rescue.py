"""Recover blobs that a store can't read although their bytes still exist.

A store reads a blob from its first frame, and trusts the depth that the frame states. If the first frame is damaged, a
later one may be intact; and a chain that is longer than it states can be read to its end and encoded again. Each frame
is tried once, when everything that it needs can be read, so there are no cycles and the work grows with the frames.
"""

from collections.abc import Iterable, Iterator

from objstore.model.ids import BlobId
from objstore.storage.log.blob_codec import MAX_DEPTH, at_depth, encode_blob, parse_blob_header, parse_chunks
from objstore.upkeep.integrity.segment_scan import FrameSpan, SegmentScan
from objstore.values.errors import BlobDamaged

__all__ = ["BlobRescue"]


class BlobRescue:
    """The recovered blobs, and the frames that they are read from."""

    def __init__(self, scan: SegmentScan, lost: Iterable[BlobId]) -> None:
        """Try the frames of the `lost` blobs; afterwards `scan` reads each recovered blob from its intact frame."""
        self._scan = scan
        self._lost = dict.fromkeys(lost)
        self._depths: dict[BlobId, int] = {}  # the depths of the recovered blobs when they are encoded again
        self._waiting: dict[BlobId, list[_FrameAttempt]] = {}  # by the blob that they need
        self.blobs: list[BlobId] = list(self._rescued())  # each comes after all blobs that it needs

    def payload(self, name: BlobId) -> bytes:
        """Return the payload of a frame that a store can read, to be written after those of the blobs that it needs."""
        payload = self._scan.payload(self._scan.span(name))
        header = parse_blob_header(payload)
        if name not in self._depths or header.base is None:
            return payload
        depth = self._depths[name]
        return at_depth(header, payload, depth) if depth else encode_blob(self._scan.blob(name), name=name)[1]

    # ---- inside

    def _rescued(self) -> Iterator[BlobId]:
        ready = [attempt for name in self._lost for attempt in self._tries(name) if not attempt.needs]
        ready.reverse()
        while ready:
            attempt = ready.pop()
            if attempt.name not in self._lost or not self._is_sound(attempt):
                continue
            del self._lost[attempt.name]
            self._depths[attempt.name] = self._depth(attempt.name)
            yield attempt.name
            for waiting in self._waiting.pop(attempt.name, ()):
                waiting.needs.discard(attempt.name)
                if not waiting.needs:
                    ready.append(waiting)

    def _tries(self, name: BlobId) -> Iterator["_FrameAttempt"]:
        for span in self._scan.blobs[name]:
            attempt = _FrameAttempt(name, span, self._lost.keys() & self._needed(span))
            for needed in attempt.needs:
                self._waiting.setdefault(needed, []).append(attempt)
            yield attempt

    def _needed(self, span: FrameSpan) -> set[BlobId]:
        payload = self._scan.payload(span)
        header = parse_blob_header(payload)
        if header.base is not None:
            return {header.base}
        try:
            return {chunk.id for chunk in parse_chunks(header, payload)}
        except BlobDamaged:  # it is not a chunk list
            return set()

    def _is_sound(self, attempt: "_FrameAttempt") -> bool:
        self._scan.use_frame(attempt.name, attempt.span)
        try:
            self._scan.verify(attempt.name)
        except BlobDamaged:
            self._scan.use_frame(attempt.name, None)
            return False
        return True

    def _depth(self, name: BlobId) -> int:
        """Return the depth with which a recovered blob is encoded; 0: as a keyframe."""
        base = self._scan.header(name).base
        if base is None:
            return 0
        below = self._depths[base] if base in self._depths else self._scan.header(base).depth
        return below + 1 if below < MAX_DEPTH else 0


class _FrameAttempt:
    """One frame of a lost blob."""

    __slots__ = ("name", "needs", "span")

    def __init__(self, name: BlobId, span: FrameSpan, needs: set[BlobId]) -> None:
        self.name = name
        self.span = span
        self.needs = needs  # the bases or chunks that are still lost
