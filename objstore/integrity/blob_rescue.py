"""Rescue: blobs that a store can't read as they lie, and whose bytes are there all the same.

A store reads a blob from its first frame, and believes what that says of its depth. Where the first is damaged a later
one may be sound, and a chain that is longer than it says can be read to its end, and spelt anew. Each frame is tried
once, when all that it needs can be read; so nothing goes in a circle, and the work grows with the frames.
"""

from collections.abc import Iterable, Iterator

from objstore.errors import BlobDamaged
from objstore.integrity.segment_scan import FrameSpan, SegmentScan
from objstore.log.blob_codec import MAX_DEPTH, at_depth, encode_blob, parse_blob_header, parse_chunks
from objstore.model.ids import BlobId

__all__ = ["BlobRescue"]


class BlobRescue:
    """What could be read after all, and from where."""

    def __init__(self, remains: SegmentScan, lost: Iterable[BlobId]) -> None:
        """Try the frames of what is `lost`: `remains` reads what is rescued from the frame that was sound."""
        self._remains = remains
        self._lost = dict.fromkeys(lost)
        self._depths: dict[BlobId, int] = {}  # at which the rescued are spelt anew
        self._waiting: dict[BlobId, list[_FrameAttempt]] = {}  # by what they need
        self.blobs: list[BlobId] = list(self._rescued())  # in an order in which each comes behind all that it needs

    def payload(self, name: BlobId) -> bytes:
        """Return the payload of a frame that a store can read, to be written behind those of what it needs."""
        payload = self._remains.payload(self._remains.span(name))
        header = parse_blob_header(payload)
        if name not in self._depths or header.base is None:
            return payload
        depth = self._depths[name]
        return at_depth(header, payload, depth) if depth else encode_blob(self._remains.blob(name), name=name)[1]

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
        for span in self._remains.blobs[name]:
            attempt = _FrameAttempt(name, span, self._lost.keys() & self._needed(span))
            for needed in attempt.needs:
                self._waiting.setdefault(needed, []).append(attempt)
            yield attempt

    def _needed(self, span: FrameSpan) -> set[BlobId]:
        payload = self._remains.payload(span)
        header = parse_blob_header(payload)
        if header.base is not None:
            return {header.base}
        try:
            return {chunk.id for chunk in parse_chunks(header, payload)}
        except BlobDamaged:  # it is no list of chunks
            return set()

    def _is_sound(self, attempt: "_FrameAttempt") -> bool:
        self._remains.use_frame(attempt.name, attempt.span)
        try:
            self._remains.verify(attempt.name)
        except BlobDamaged:
            self._remains.use_frame(attempt.name, None)
            return False
        return True

    def _depth(self, name: BlobId) -> int:
        """Return the depth at which a rescued blob is spelt anew; 0: as a keyframe."""
        base = self._remains.header(name).base
        if base is None:
            return 0
        below = self._depths[base] if base in self._depths else self._remains.header(base).depth
        return below + 1 if below < MAX_DEPTH else 0


class _FrameAttempt:
    """One frame of a lost blob."""

    __slots__ = ("name", "needs", "span")

    def __init__(self, name: BlobId, span: FrameSpan, needs: set[BlobId]) -> None:
        self.name = name
        self.span = span
        self.needs = needs  # of what it is told by, that which is lost so far
