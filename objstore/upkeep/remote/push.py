"""Send what a bucket lacks of this store's log: pieces under their hashes first, then a head that names them.

Write order. Every piece *must* be in the bucket, and every frame of it verified, before the head that names it; a head
*must* be there before this store remembers it. So a push that breaks off leaves pieces that no head names, and the next
one need not send them again.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event
from typing import TYPE_CHECKING, Final

from blake3 import blake3

from objstore.model.ids import HASH_SIZE, RecordId, record_id
from objstore.storage.log.frames import FRAME_HEADER_SIZE, FrameKind
from objstore.storage.log.segment_files import GENERATION, Place
from objstore.upkeep.remote.bucket import claim
from objstore.upkeep.remote.heads import PIECE, Head, Piece, Seen, SegmentPieces, name_of, newest_head
from objstore.upkeep.remote.keys import (
    MAX_NUMBER,
    Lane,
    head_folder,
    numbered,
    object_folder,
    object_key,
    piece_in,
    store_of,
)
from objstore.upkeep.remote.waiting import in_parallel
from objstore.values.errors import StoreDamaged
from objstore.values.fastclass import value
from objstore.values.request_errors import NotBundled, RemoteDiverged, RemoteFailed, RemoteRefused

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from objstore.model.basic_types import Progress
    from objstore.storage.log.segments import Log
    from objstore.storage.store.object_store import Store
    from objstore.upkeep.remote.bucket import Bucket

__all__ = ["PushPlan", "Pushed", "plan_push", "push"]

_MANY: Final = 8
"""Pieces from which on a list of what is there may save sending some again."""

_RECORD: Final = int(FrameKind.RECORD)


@value
class Range:
    """Bytes of a segment's file that become one piece."""

    segment: int
    generation: int
    start: int
    size: int


@value
class PushPlan:
    """What a push sends."""

    kept: Mapping[int, SegmentPieces]  # by segment: the pieces that stay
    sent: tuple[Range, ...]  # ascending
    end: Place

    @property
    def size(self) -> int:
        """Return how many bytes are sent, without the head."""
        return sum(each.size for each in self.sent)


@value
class Pushed:
    """The result of a push."""

    head: Head
    name: bytes  # the hash of the head
    pieces: int  # sent now
    size: int  # of these, in bytes
    is_new: bool  # whether there was anything to push

    @property
    def seen(self) -> Seen:
        """Return the head as one that was seen."""
        return Seen(number=self.head.number, name=self.name, body=self.head.encode())


def plan_push(head: Head | None, generations: Mapping[int, int], sizes: Mapping[int, int], end: Place) -> PushPlan:
    """Return what has to be sent after `head` (None: nothing was) of a log whose segments have these sizes.

    New bytes take with them the pieces before them that are no larger, so a segment has a few dozen pieces at most,
    however often it was pushed, and each byte is sent again at most as often as it doubles.
    """
    pushed = {} if head is None else {each.number: each for each in head.segments}
    kept: dict[int, SegmentPieces] = {}
    sent: list[Range] = []
    for number, size in sizes.items():
        generation = generations.get(number, 0)
        before = pushed.get(number)
        pieces = list(before.pieces) if before is not None and before.generation == generation else []
        new = size - sum(piece.size for piece in pieces)
        if new < 0:
            raise StoreDamaged(number, size, "the segment is shorter than what was pushed of it")
        while new and pieces and pieces[-1].size <= new and pieces[-1].size < PIECE:
            new += pieces.pop().size
        kept[number] = SegmentPieces(number=number, generation=generation, pieces=tuple(pieces))
        starts = range(size - new, size, PIECE)
        sent += [Range(segment=number, generation=generation, start=at, size=min(PIECE, size - at)) for at in starts]
    return PushPlan(kept=kept, sent=tuple(sent), end=end)


def push(
    bucket: Bucket,
    lane: Lane,
    store: Store,
    *,
    label: str,
    seen: Seen | None = None,
    again: bool = False,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Pushed | PushPlan:
    """Send the log of a store that is held still, up to its last group; a dry run returns the plan.

    `seen`: the newest head that this store has pushed. `again`: the bucket was rolled back: send what it lacks.
    `progress` is called with the bytes sent. Raises NotBundled, StoreDamaged, RemoteDiverged, RemoteRolledBack,
    RemoteRefused and RemoteFailed.
    """
    if store_of(lane) != store.log.store:
        raise RemoteRefused(bucket.url, f"the lane {lane} is another store's")
    while not store.index.knows_generations:
        store.catch_up()
    if lost := store.index.blobs.lost():
        raise NotBundled(lost)
    found = newest_head(bucket, lane, None if again else seen)
    head, previous = (None, None) if found is None else found
    _require_own(bucket, store, head)
    plan = _plan(bucket, lane, store, head, again=again)
    if dry_run:
        return plan
    if head is not None and previous is not None and not plan.sent and head.end == plan.end:
        return Pushed(head=head, name=previous, pieces=0, size=0, is_new=False)
    number = max(0 if head is None else head.number, 0 if seen is None else seen.number) + 1
    if number > MAX_NUMBER:
        raise RemoteRefused(bucket.url, f"the lane {lane} has a head with the highest number there is")
    names = _verified_and_sent(bucket, lane, store.log, plan, head, progress)
    made = Head(
        lane=lane,
        number=number,
        previous=previous,
        label=label,
        segments=_segments(plan, names),
        last=store.last_record,
        edits=store.next_seq() - 1,
    )
    encoded = made.encode()
    if not claim(bucket, numbered(head_folder(lane), made.number), encoded):
        raise RemoteFailed(bucket.url, f"head {made.number} was created by another push. Push again")
    return Pushed(head=made, name=name_of(encoded), pieces=len(plan.sent), size=plan.size, is_new=True)


# ---- inside


def _plan(bucket: Bucket, lane: Lane, store: Store, head: Head | None, *, again: bool) -> PushPlan:
    log, end = store.log, store.end
    numbers = range(log.first.segment, end.segment + 1)
    sizes = {each: end.position if each == end.segment else log.files.size(each) for each in numbers}
    plan = plan_push(head, log.files.generations(), sizes, end)
    if not again or head is None:
        return plan
    there = _there(bucket, lane)
    if any(there.get(name) != size for name, size in head.pieces().items()):
        return plan_push(None, log.files.generations(), sizes, end)
    return plan


def _there(bucket: Bucket, lane: Lane) -> dict[bytes, int]:
    """Return the size of each piece in the bucket, by its name."""
    listed = ((piece_in(lane, each.key), each.size) for each in bucket.listed(object_folder(lane)))
    return {name: size for name, size in listed if name is not None}


def _require_own(bucket: Bucket, store: Store, head: Head | None) -> None:
    """Raise RemoteDiverged unless the history that a head names is the beginning of this store's.

    Raises StoreDamaged if this store's log is wrong there.
    """
    if head is None:
        return
    segment, log = head.segments[-1], store.log
    if segment.number > store.end.segment:
        raise RemoteDiverged(bucket.url, head.number)
    is_same_file = log.files.generation(segment.number) == segment.generation and segment.number >= log.first.segment
    if is_same_file:
        piece = segment.pieces[-1]
        begins = Place(segment.number, segment.generation * GENERATION + segment.size - piece.size)
        is_ours = segment.size <= log.files.size(segment.number) and _hash(log.piece(begins, piece.size)) == piece.name
    else:
        # It was rewritten since: only its records are still the same.
        is_ours = head.last is None or _has_record(log, head.last, store.end)
    if not is_ours:
        if is_same_file:  # or damaged
            end = store.end.position if segment.number == store.end.segment else log.files.size(segment.number)
            log.verify(Place(segment.number, segment.generation * GENERATION), end)
        raise RemoteDiverged(bucket.url, head.number)


def _has_record(log: Log, wanted: RecordId, end: Place) -> bool:
    return any(
        not_gap.kind == _RECORD and record_id(not_gap.whole[FRAME_HEADER_SIZE:]) == wanted
        for number in range(end.segment, log.first.segment - 1, -1)
        for not_gap in log.raw_frames(log.files.start(number), end.position if number == end.segment else None)
    )


def _verified_and_sent(
    bucket: Bucket, lane: Lane, log: Log, plan: PushPlan, head: Head | None, progress: Progress | None
) -> dict[tuple[int, int], Piece]:
    """Send the pieces of a plan while their frames are verified; return them by segment and start.

    Verifying takes longer than a fast network does. Raises StoreDamaged; what was sent by then is in no head.
    """
    stopped = Event()
    with ThreadPoolExecutor(1) as pool:
        verified = pool.submit(_verify, log, plan, head, stopped)
        try:
            names = _send(bucket, lane, log, plan, verified, progress)
            verified.result()
        except BaseException:
            stopped.set()
            raise
    return names


def _verify(log: Log, plan: PushPlan, head: Head | None, stopped: Event) -> None:
    """Verify what is sent, until stopped: the store may be gone when the damage is found.

    What was pushed before has the hash of its piece, and each frame after that has a checksum. That each record follows
    the one before was checked when the index took it. Raises StoreDamaged.
    """
    pushed = {} if head is None else {(each.number, each.generation): each for each in head.segments}
    for number, segment in plan.kept.items():
        start = segment.generation * GENERATION
        before = pushed.get((number, segment.generation), segment)
        at = start + segment.size
        for piece in before.pieces[len(segment.pieces) :]:
            if _hash(log.piece(Place(number, at), piece.size)) != piece.name:
                raise Place(number, at).damaged("the bytes are not those that were pushed")
            at += piece.size
        if stopped.is_set():
            return
        log.verify(Place(number, at), plan.end.position if number == plan.end.segment else log.files.size(number))


def _send(
    bucket: Bucket, lane: Lane, log: Log, plan: PushPlan, verified: Future[None], progress: Progress | None
) -> dict[tuple[int, int], Piece]:
    """Send the pieces of a plan, until `verified` fails; return them by segment and start. Raises RemoteFailed."""
    there = _there(bucket, lane) if len(plan.sent) >= _MANY else {}
    names: dict[tuple[int, int], Piece] = {}

    def send(wanted: Range) -> int:
        if verified.done():
            verified.result()
        content = log.piece(Place(wanted.segment, wanted.generation * GENERATION + wanted.start), wanted.size)
        if len(content) != wanted.size:
            raise StoreDamaged(wanted.segment, wanted.start, "the segment became shorter")
        name = _hash(content)
        names[wanted.segment, wanted.start] = Piece(name=name, size=wanted.size)
        if there.get(name) != wanted.size and not claim(bucket, object_key(lane, name), content):
            raise RemoteRefused(bucket.url, f"{object_key(lane, name)} has other bytes than its name says")
        return wanted.size

    in_parallel(send, plan.sent, progress, plan.size)
    return names


def _segments(plan: PushPlan, names: Mapping[tuple[int, int], Piece]) -> tuple[SegmentPieces, ...]:
    def pieces(kept: SegmentPieces) -> Iterator[Piece]:
        yield from kept.pieces
        yield from (names[each.segment, each.start] for each in plan.sent if each.segment == kept.number)

    return tuple(
        SegmentPieces(number=kept.number, generation=kept.generation, pieces=tuple(pieces(kept)))
        for kept in plan.kept.values()
    )


def _hash(content: bytes) -> bytes:
    return blake3(content).digest(HASH_SIZE)
