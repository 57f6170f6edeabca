"""Reading ahead: frames asked for in the order of the log, out of pieces that grow as long as that goes on."""

from typing import Final

from objstore.frames import FrameKind, payload_at
from objstore.generations import Place
from objstore.segments import Log

__all__ = ["ReadAhead"]

_LEAST: Final = 1 << 12
_MOST: Final = 1 << 20


class ReadAhead:
    """The log, for one who reads much of it from one end to the other."""

    def __init__(self, log: Log) -> None:
        """Begin anywhere."""
        self._log = log
        self._segment = self._offset = 0  # where the piece begins
        self._piece = b""

    def payload(self, place: Place, kind: FrameKind) -> bytes:
        """Return the payload of the frame at `place`, or where that is now. Raises StoreDamaged."""
        log = self._log
        if log.generations():
            place = log.newest(place) or place
        segment, offset = place
        at = offset - self._offset
        is_near = segment == self._segment and 0 <= at < len(self._piece)
        found = payload_at(self._piece, log.key, at, kind) if is_near else None
        if found is None:
            self._move_to(place)
            found = payload_at(self._piece, log.key, 0, kind)
        if found is None:
            # It is longer than the piece, or this says what is wrong with it.
            frame = log.read(place)
            if frame.kind is not kind:
                raise place.damaged(f"a {frame.kind.name.lower()} lies where the index says another kind does")
            found = bytes(frame.payload)
        return found

    def _move_to(self, place: Place) -> None:
        """Read a piece that begins at `place`: twice as much as the last where that is not far behind it."""
        behind = place.offset - self._offset - len(self._piece)
        goes_on = place.segment == self._segment and -len(self._piece) < behind <= len(self._piece)
        size = min(2 * max(_LEAST, len(self._piece)), _MOST) if goes_on else _LEAST
        self._segment, self._offset = place
        self._piece = self._log.piece(place, size)
