"""What may be stored, as hypothesis draws it: every kind of record with every field, file contents, damage."""

from typing import Final

from hypothesis import strategies as st

from objstore.model.basic_types import (
    Action,
    CommentState,
    DocumentId,
    FileState,
    Operation,
    Origin,
    Seq,
    Status,
    Unit,
)
from objstore.model.ids import HASH_SIZE, BlobId, RecordId
from objstore.model.ranges import Range
from objstore.model.records import (
    Anchor,
    Comment,
    Decision,
    Edit,
    Expiry,
    Mark,
    Marks,
    Pin,
    Record,
    SettingChange,
    Snapshot,
    Turn,
    Void,
    WrittenFile,
)
from objstore.storage.log.frames import FrameKind
from objstore.text.forms import TextForm
from objstore.text.hunks import Hunk

__all__ = [
    "blob_ids",
    "comments",
    "contents",
    "decisions",
    "edits",
    "groups_of_payloads",
    "numbers",
    "paths",
    "record_ids",
    "records",
    "related_contents",
    "states",
    "texts",
    "voids",
]

MAX_INT: Final = 2**63 - 1

# Numbers on both sides of every length that msgpack spells them in.
numbers: Final = st.one_of(
    st.sampled_from([0, 1, 127, 128, 255, 256, 65535, 65536, 2**32 - 1, 2**32, MAX_INT]),
    st.integers(min_value=0, max_value=MAX_INT),
)
seqs: Final = numbers.map(lambda n: Seq(max(n, 1)))
texts: Final = st.text(max_size=40)
blob_ids: Final = st.binary(min_size=HASH_SIZE, max_size=HASH_SIZE).map(BlobId)
record_ids: Final = st.binary(min_size=HASH_SIZE, max_size=HASH_SIZE).map(RecordId)
states: Final = st.builds(FileState, blob=blob_ids, mode=st.integers(0, 0o7777))

_components: Final = (
    st.binary(min_size=1, max_size=12)
    .map(lambda name: name.replace(b"/", b"_").replace(b"\0", b"_"))
    .filter(lambda name: name not in {b".", b".."})
)
paths: Final = st.lists(_components, min_size=1, max_size=4).map(b"/".join)


@st.composite
def hunks(draw: st.DrawFn) -> tuple[Hunk, ...]:
    """Draw hunks that ascend and change something."""
    found = []
    old = new = 0
    for _ in range(draw(st.integers(0, 4))):
        old += draw(st.integers(0, 300))
        new += draw(st.integers(0, 300))
        old_count = draw(st.integers(0, 5))
        new_count = draw(st.integers(0 if old_count else 1, 5))
        found.append(Hunk(old, old_count, new, new_count))
        old, new = old + old_count, new + new_count
    return tuple(found)


units: Final = st.builds(Unit, seqs, numbers)
marks: Final = st.builds(
    Marks,
    decision=seqs.map(int),
    against=st.lists(units, max_size=3).map(tuple),
    aside=st.lists(st.tuples(units, st.sampled_from(list(Status))), max_size=3).map(tuple),
)


def _form(draw: st.DrawFn, state: FileState | None) -> TextForm:
    is_file = state is not None and not state.is_link
    return draw(st.sampled_from(TextForm)) if is_file else TextForm.PLAIN


@st.composite
def edits(draw: st.DrawFn) -> Edit:
    """Draw an edit of any operation, with any of its optional fields."""
    operation = draw(st.sampled_from(list(Operation)))
    before = None if operation is Operation.CREATE else draw(states)
    after = None if operation is Operation.DELETE else draw(states)
    seq, path = draw(seqs), draw(paths)
    origin = draw(st.sampled_from(list(Origin)))
    return Edit(
        seq=seq,
        document=DocumentId(draw(st.integers(1, seq))),
        time=draw(numbers),
        conversation=draw(texts),
        call=draw(numbers),
        ordinal=draw(numbers),
        operation=operation,
        path=path,
        source=draw(paths) if operation is Operation.MOVE else None,
        before=before,
        after=after,
        hunks=() if before is None or after is None else draw(hunks()),
        folders=draw(st.integers(0, path.count(b"/"))),
        newline=draw(st.booleans()),
        forms=(_form(draw, before), _form(draw, after)),
        added=draw(numbers),
        removed=draw(numbers),
        origin=origin,
        status=draw(st.sampled_from(list(Status))),
        amends=Seq(draw(st.integers(1, seq - 1))) if origin is not Origin.AGENT and seq > 1 else None,
        marks=draw(st.none() | marks) if origin is Origin.PERSON and operation is Operation.EDIT else None,
        turn=draw(numbers),
        tool=draw(texts),
        notes=draw(st.dictionaries(texts, texts, max_size=3)),
    )


@st.composite
def writtens(draw: st.DrawFn) -> WrittenFile:
    """Draw what a decision made of one file."""
    before, after = draw(st.none() | states), draw(st.none() | states)
    return WrittenFile(
        document=DocumentId(draw(seqs)),
        path_before=None if before is None else draw(paths),
        before=before,
        path_after=None if after is None else draw(paths),
        after=after,
    )


decisions: Final = st.builds(
    Decision,
    number=seqs.map(int),
    time=numbers,
    action=st.sampled_from(list(Action)),
    verdicts=st.lists(st.tuples(units, st.sampled_from(list(Status))), max_size=4).map(tuple),
    written=st.lists(writtens(), max_size=3).map(tuple),
    who=texts,
    reason=texts,
    takes_back=numbers,
    commit=st.text("0123456789abcdef", max_size=64),
    conversation=texts,
)
voids: Final = st.builds(
    Void, time=numbers, edits=st.lists(seqs, max_size=4).map(tuple), decision=numbers, reason=texts
)
snapshots: Final = st.builds(
    Snapshot, number=seqs.map(int), time=numbers, root=blob_ids, path=st.none() | paths, who=texts, title=texts
)
_ascending: Final = st.sets(seqs, max_size=3).map(lambda found: tuple(sorted(found)))
pins: Final = st.builds(
    Pin,
    number=seqs.map(int),
    time=numbers,
    edits=_ascending,
    blobs=st.sets(blob_ids, min_size=1, max_size=3).map(lambda found: tuple(sorted(found))),
    who=texts,
    title=texts,
)


@st.composite
def ranges(draw: st.DrawFn) -> tuple[Range, ...]:
    """Draw ranges that ascend, with a number between any two."""
    found = []
    last = draw(st.integers(-1, 300))
    for _ in range(draw(st.integers(0, 3))):
        first = last + draw(st.integers(2, 300))
        last = first + draw(st.integers(0, 300))
        found.append(Range(first, last))
    return tuple(found)


expiries: Final = st.builds(
    Expiry,
    time=numbers,
    edits=ranges(),
    decisions=ranges(),
    snapshots=st.sets(seqs, min_size=1, max_size=3).map(lambda found: tuple(sorted(found))),
    pins=_ascending,
    reason=texts,
    who=texts,
)
turns: Final = st.builds(
    Turn,
    number=seqs.map(int),
    time=numbers,
    session=texts,
    conversation=texts,
    client=texts,
    model=texts,
    prompt=texts,
)
anchors: Final = st.builds(Anchor, numbers, numbers, numbers)


@st.composite
def comments(draw: st.DrawFn) -> Comment:
    """Draw a comment or an answer to an earlier one."""
    number = draw(seqs)
    first, last = sorted((draw(numbers), draw(numbers)))
    return Comment(
        number=number,
        time=draw(numbers),
        who=draw(texts),
        document=DocumentId(draw(seqs)),
        path=draw(paths),
        first=draw(anchors),
        last=draw(anchors),
        lines=(first, last),
        units=tuple(sorted(draw(st.sets(units, max_size=3)))),
        text=draw(texts),
        answers=draw(st.integers(0, number - 1)),
        conversation=draw(texts),
    )


comment_marks: Final = st.builds(
    Mark,
    time=numbers,
    who=texts,
    comments=st.sets(seqs.map(int), min_size=1, max_size=3).map(lambda found: tuple(sorted(found))),
    state=st.sampled_from(CommentState),
    conversation=texts,
)
setting_changes: Final = st.builds(SettingChange, time=numbers, who=texts, name=texts, before=texts, after=texts)
records: Final[st.SearchStrategy[Record]] = st.one_of(
    edits(), decisions, voids, snapshots, pins, expiries, turns, comments(), comment_marks, setting_changes
)

# File contents: text of few lines that repeat, bytes of any kind, and long ones made from short.
contents: Final = st.one_of(
    st.binary(max_size=200),
    st.lists(st.sampled_from([b"a\n", b"b\r\n", b"\n", b"\xff\0\n", b"}\n", b"last"]), max_size=60).map(b"".join),
    st.builds(lambda part, count: part * count, st.binary(min_size=1, max_size=40), st.integers(1, 400)),
)


@st.composite
def related_contents(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """Draw a content and one that came of it by replacing some bytes somewhere."""
    base = draw(contents)
    start = draw(st.integers(0, len(base)))
    end = draw(st.integers(start, len(base)))
    return base, base[:start] + draw(contents) + base[end:]


groups_of_payloads: Final = st.lists(
    st.lists(st.tuples(st.sampled_from(list(FrameKind)), st.binary(max_size=60)), min_size=1, max_size=4),
    min_size=1,
    max_size=5,
)
