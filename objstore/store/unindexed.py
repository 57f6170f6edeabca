"""Keep the groups that this process appended and the index doesn't have yet, and answer a writer's queries on them.

A recorded write needs few answers from the index: the tip of its file, the next numbers, whether a blob is stored.
While one process makes plain edits, this module keeps those answers, and the index ingests many groups at once. The
index is derived from the log, so a process that dies before that costs the next one a moment of reading.
"""

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Final

from objstore.index.rows import BlobPlace, ChainedRecord, Tip
from objstore.log.frames import FrameKind
from objstore.log.segment_files import Place
from objstore.log.segments import Group
from objstore.model.basic_types import Operation, Seq

if TYPE_CHECKING:
    from objstore.log.blob_codec import BlobHeader
    from objstore.model.ids import BlobId, RecordId
    from objstore.model.records import Edit, Turn

__all__ = ["UnindexedGroups"]

_INDEX_AFTER_GROUPS: Final = 64
_MAX_GROUPS: Final = 1_024


@cache
def _edit_type() -> "type[Edit]":
    """Return `Edit`, imported only when a record is written, because a status needs no records."""
    from objstore.model.records import Edit

    return Edit


@cache
def _turn_type() -> "type[Turn]":
    """Return `Turn`, as `_edit_type`."""
    from objstore.model.records import Turn

    return Turn


class UnindexedGroups:
    """Groups after the end of the index, with the answers that the next write asks for."""

    def __init__(self) -> None:
        """Start with no group."""
        self.groups: list[tuple[Group, Sequence[ChainedRecord]]] = []
        self.end: Place | None = None  # end of the newest group; None: no group
        self.last_record: RecordId | None = None  # the newest record; None: no record
        self.blobs: dict[BlobId, BlobPlace] = {}
        self.tips: dict[bytes, Tip] = {}
        self.calls: dict[str, int] = {}  # the next call of each conversation
        self.seq: Seq | None = None  # number of the next edit; None: ask the index
        self.turns: dict[tuple[str, str], Turn] = {}  # the newest turn of each session and conversation
        self.turn: int | None = None  # number of the next turn; None: ask the index
        self.turns_of_edits: set[int] = set()  # the number of each edit's turn (0: an edit without a turn)
        self.is_plain = True  # whether all records in the groups are turns and edits that don't move their file

    @property
    def is_full(self) -> bool:
        """Return whether the index should ingest the groups now."""
        return not self.is_plain or len(self.groups) >= _INDEX_AFTER_GROUPS

    @property
    def may_defer_indexing(self) -> bool:
        """Return whether the index may ingest the groups after a later write, if another process is changing it now."""
        return self.is_plain and len(self.groups) < _MAX_GROUPS

    def note(self, group: Group, blobs: Sequence["BlobHeader"], records: Sequence[ChainedRecord]) -> None:
        """Add a group that was just appended, with its blobs and its records in order."""
        self.groups.append((group, records))
        if records:
            self.last_record = records[-1].id
        frames = [frame for frame in group.frames if frame.kind is FrameKind.BLOB]
        for header, frame in zip(blobs, frames, strict=True):
            place = BlobPlace(Place(group.segment, frame.offset), header.size, header.depth)
            self.blobs.setdefault(header.id, place)
        for chained in records:
            edit = chained.record
            if isinstance(edit, _turn_type()):
                self.turns[edit.session, edit.conversation] = edit
                self.turn = edit.number + 1
                continue
            if not isinstance(edit, _edit_type()) or edit.operation is Operation.MOVE:
                self.is_plain = False
                continue
            self.tips[edit.path] = Tip(edit.document, edit.path, edit.after)
            self.calls[edit.conversation] = edit.call + 1
            self.turns_of_edits.add(edit.turn)
            self.seq = Seq(edit.seq + 1)
        # Set the end last: after a failure above, the group is read from the log again.
        self.end = group.end
