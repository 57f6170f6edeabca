"""Make the records of format 1 from those of an earlier version, one after another, and nothing else from anything.

`Upgrade` states what earlier versions left out: the files that a decision didn't change, and the edit that introduces a
document again whose first edit was rolled back. `Insertion` adds edits where a decision of version 1 wrote another text
than its verdicts make of the edits; later edits began from that text. Their numbers move those of all later edits.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Final, Protocol, assert_never

from objstore.model.basic_types import DocumentId, FileState, Operation, Origin, Seq, Status, Unit
from objstore.model.ids import RecordId, record_id
from objstore.model.large_file_placeholder import is_placeholder
from objstore.model.ranges import Range, ranges_of
from objstore.model.record_codec import decode_record, encode_record
from objstore.model.records import (
    CONVERTED_NOTE,
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
from objstore.review.calls.edit_recorder import Version, edit_hunks, line_counts
from objstore.storage.log.blob_codec import encode_blob
from objstore.storage.log.frames import Frame, FrameKind
from objstore.text.forms import TextForm
from objstore.values.errors import ConversionRefused, RecordInvalid
from objstore.values.fastclass import replace, value

__all__ = ["Chain", "Correction", "Insertion", "Rewriting", "Upgrade", "mapped_units"]

_CONVERSATION: Final = "conversion"


class Rewriting(Protocol):
    """What becomes of each record of a journal, in order."""

    def begin_group(self) -> None:
        """Note that the next record begins a group."""

    def take(self, record: Record, *, earlier: int) -> Iterator[Record | bytes]:
        """Yield the records, and the payloads of new blobs, that take the place of a record.

        `earlier`: the version that wrote the record if that is one before format 1, or else 0.
        """


class Chain:
    """A journal being rewritten: each record names the one before it."""

    def __init__(self, rewriting: Rewriting, watched: Sequence[RecordId] = ()) -> None:
        """Begin with no record. `watched`: ids of records whose new ids are wanted."""
        self._rewriting: Final = rewriting
        self._watched: Final = frozenset(watched)
        self._read: RecordId | None = None  # the last record
        self._written: RecordId | None = None
        self.ids: Final[dict[RecordId, RecordId]] = {}  # of the watched records, by their former ids

    def group(self, frames: Sequence[Frame], *, earlier: int) -> list[tuple[FrameKind, bytes]]:
        """Return the payloads of a rewritten group. Raises ConversionRefused."""
        self._rewriting.begin_group()
        payloads: list[tuple[FrameKind, bytes]] = []
        for frame in frames:
            encoded = bytes(frame.payload)
            if frame.kind is FrameKind.BLOB:
                payloads.append((FrameKind.BLOB, encoded))
                continue
            try:
                record, previous = decode_record(encoded)
            except RecordInvalid as error:
                raise ConversionRefused(str(error)) from error
            if previous != self._read:
                raise ConversionRefused("a record does not follow the one before it")
            self._read = record_id(encoded)
            taken = self._rewriting.take(record, earlier=earlier)
            payloads += [(FrameKind.BLOB, made) if isinstance(made, bytes) else self._linked(made) for made in taken]
            if self._read in self._watched and self._written is not None:
                self.ids[self._read] = self._written
        return payloads

    def _linked(self, record: Record) -> tuple[FrameKind, bytes]:
        try:
            encoded = encode_record(record, self._written)
        except RecordInvalid as error:
            raise ConversionRefused(str(error)) from error
        self._written = record_id(encoded)
        return FrameKind.RECORD, encoded


class Upgrade:
    """What becomes of the records of an earlier version."""

    def __init__(self) -> None:
        """Begin before the first record."""
        self.tips: Final[dict[DocumentId, tuple[bytes, FileState | None]]] = {}  # path and state of each document
        self.decided_by_version_1 = False  # whether version 1 decided on anything
        self._documents: Final[dict[Seq, DocumentId]] = {}  # of each edit
        self._gone: Final[set[DocumentId]] = set()  # documents whose first edit was rolled back
        self._renamed: Final[dict[DocumentId, DocumentId]] = {}  # those of them that later edits continued
        self._group: list[Edit | Decision] = []
        self._group_before: list[Edit | Decision] = []

    def begin_group(self) -> None:
        """Note that the next record begins a group."""
        self._group_before, self._group = self._group, []

    def take(self, record: Record, *, earlier: int) -> Iterator[Record]:
        """Yield the record that takes the place of one."""
        match record:
            case Edit():
                yield self._edit(record)
            case Decision():
                yield self._decision(record, names_all=earlier != 1)
            case Void():
                self._roll_back(record)
                yield record
            case Comment():
                yield replace(record, document=self._renamed.get(record.document, record.document))
            case Snapshot() | Pin() | Expiry() | Turn() | Mark() | SettingChange():
                yield record
            case _:
                assert_never(record)

    def _edit(self, edit: Edit) -> Edit:
        document = self._renamed.get(edit.document, edit.document)
        if document in self._gone:
            self._renamed[edit.document] = document = DocumentId(edit.seq)
        made = edit if document == edit.document else replace(edit, document=document)
        self._documents[edit.seq] = document
        self.tips[document] = edit.path, edit.after
        self._group.append(made)
        return made

    def _decision(self, decision: Decision, *, names_all: bool) -> Decision:
        written = [replace(each, document=self._renamed.get(each.document, each.document)) for each in decision.written]
        if not names_all:
            self.decided_by_version_1 = True
            named = {each.document for each in written}
            decided = {self._documents[unit.seq] for unit, _ in decision.verdicts if unit.seq in self._documents}
            for document in sorted(decided - named):
                path, state = self.tips.get(document, (b"", None))
                if state is not None:
                    written.append(
                        WrittenFile(document=document, path_before=path, before=state, path_after=path, after=state)
                    )
        for each in written:
            if each.path:
                self.tips[each.document] = each.path, each.after
        made = replace(decision, written=tuple(written))
        self._group.append(made)
        return made

    def _roll_back(self, void: Void) -> None:
        voided = set(void.edits)
        for record in reversed(self._group_before + self._group):
            if isinstance(record, Decision):
                for each in record.written if record.number == void.decision else ():
                    if path := each.path_before or each.path_after:
                        self.tips[each.document] = path, each.before
            elif record.seq in voided:
                if record.document == DocumentId(record.seq):
                    del self.tips[record.document]
                    self._gone.add(record.document)
                else:
                    self.tips[record.document] = record.source or record.path, record.before


@value
class Correction:
    """A text that a decision of version 1 wrote although its verdicts make another one of the edits."""

    decision: int
    document: DocumentId
    path: bytes
    form: TextForm  # in whose lines the document counts then
    made: bytes | None  # the text under the verdicts, or a placeholder (None: no file)
    state_made: FileState | None  # of that text
    written: bytes | None  # what the decision wrote


class Insertion:
    """What becomes of records where the corrections are recorded as edits of their own, after their decisions."""

    def __init__(self, corrections: Sequence[Correction]) -> None:
        """Take the corrections, whose documents and decisions have the numbers of the journal that is rewritten."""
        self._corrections: Final[dict[int, list[Correction]]] = {}
        for each in corrections:
            self._corrections.setdefault(each.decision, []).append(each)
        self._after: Final[list[int]] = []  # for each new edit so far, the number of the edit before it
        self._newest = 0  # the number of the last edit
        self.made: Final[list[Seq]] = []  # the numbers of the new edits

    def begin_group(self) -> None:
        """Note that the next record begins a group: it makes no difference."""

    def seq(self, seq: int) -> Seq:
        """Return the number that an edit has now (0: 0)."""
        return Seq(seq + bisect_left(self._after, seq))

    def unit(self, unit: Unit) -> Unit:
        """Return the unit, by the number that its edit has now."""
        return Unit(self.seq(unit.seq), unit.hunk)

    def take(self, record: Record, *, earlier: int) -> Iterator[Record | bytes]:
        """Yield what takes the place of a record."""
        del earlier
        match record:
            case Edit():
                self._newest = record.seq
                yield replace(
                    record,
                    seq=self.seq(record.seq),
                    document=self._document(record.document),
                    amends=None if record.amends is None else self.seq(record.amends),
                    marks=None if record.marks is None else self._marks(record.marks),
                )
            case Decision():
                yield from self._decision(record)
            case Void():
                yield replace(record, edits=tuple(map(self.seq, record.edits)))
            case Pin():
                yield replace(record, edits=tuple(map(self.seq, record.edits)))
            case Expiry():
                yield replace(record, edits=self._ranges(record.edits))
            case Comment():
                yield replace(
                    record,
                    document=self._document(record.document),
                    first=self._anchor(record.first),
                    last=self._anchor(record.last),
                    units=tuple(map(self.unit, record.units)),
                )
            case Snapshot() | Turn() | Mark() | SettingChange():
                yield record
            case _:
                assert_never(record)

    # ---- inside

    def _document(self, document: DocumentId) -> DocumentId:
        return DocumentId(self.seq(document))

    def _anchor(self, anchor: Anchor) -> Anchor:
        return anchor._replace(seq=self.seq(anchor.seq))

    def _marks(self, marks: Marks) -> Marks:
        aside = tuple((self.unit(unit), status) for unit, status in marks.aside)
        return replace(marks, against=tuple(map(self.unit, marks.against)), aside=aside)

    def _ranges(self, ranges: Sequence[Range]) -> tuple[Range, ...]:
        return ranges_of(int(self.seq(seq)) for first, last in ranges for seq in range(first, last + 1))

    def _decision(self, decision: Decision) -> Iterator[Record | bytes]:
        corrections = {each.document: each for each in self._corrections.get(decision.number, ())}
        yield from (payload for each in corrections.values() for payload in _new_blob(each))
        yield replace(
            decision,
            verdicts=tuple((self.unit(unit), status) for unit, status in decision.verdicts),
            written=tuple(
                replace(each, document=self._document(each.document))
                for each in (_before_correction(each, corrections.get(each.document)) for each in decision.written)
                if each.path
            ),
        )
        edits = [(each, corrections[each.document]) for each in decision.written if each.document in corrections]
        for ordinal, (written, correction) in enumerate(edits):
            # Not `self.seq`: an edit that is inserted has the next number, whichever that is.
            seq = Seq(self._newest + len(self._after) + 1)
            document = self._document(written.document)
            self._after.append(self._newest)
            self.made.append(seq)
            yield _edit_of(decision, written, correction, seq, document, ordinal)


def _new_blob(correction: Correction) -> Iterator[bytes]:
    if correction.made is not None and not is_placeholder(correction.made):  # of a large file, the blob is stored
        yield encode_blob(correction.made)[1]


def _before_correction(written: WrittenFile, correction: Correction | None) -> WrittenFile:
    """Return what a decision wrote according to its verdicts."""
    if correction is None:
        return written
    is_gone = correction.state_made is None
    return replace(
        written, path_after=None if is_gone else correction.path, after=None if is_gone else correction.state_made
    )


def _edit_of(
    decision: Decision, written: WrittenFile, correction: Correction, seq: Seq, document: DocumentId, ordinal: int
) -> Edit:
    """Return the edit that leads from the text under the verdicts to the one that a decision wrote."""
    before = _version(correction.made, correction.state_made)
    after = _version(correction.written, written.after)
    forms = tuple(TextForm.PLAIN if each is None else correction.form for each in (before, after))
    hunks, newline = edit_hunks(before, after, None, None, (forms[0], forms[1]))
    added, removed = line_counts(before, after, hunks, (forms[0], forms[1]))
    operation = Operation.CREATE if before is None else Operation.DELETE if after is None else Operation.EDIT
    return Edit(
        seq=seq,
        document=document,
        time=decision.time,
        conversation=_CONVERSATION,
        call=decision.number,
        ordinal=ordinal,
        operation=operation,
        path=written.path_after if written.path_after is not None else correction.path,
        before=None if before is None else before.state,
        after=None if after is None else after.state,
        hunks=hunks,
        newline=newline,
        forms=(forms[0], forms[1]),
        added=added,
        removed=removed,
        origin=Origin.PERSON,
        status=Status.ACCEPTED,
        tool="convert",
        notes={CONVERTED_NOTE: str(decision.number)},
    )


def _version(content: bytes | None, state: FileState | None) -> Version | None:
    return None if content is None or state is None else Version(content=content, state=state)


def mapped_units(units: Sequence[str], insertion: Insertion) -> list[str]:
    """Return names of units, as `12:2`, by the numbers that their edits have now; other texts stay."""
    found = []
    for name in units:
        seq, _, hunk = name.partition(":")
        is_unit = seq.isdecimal() and hunk.isdecimal()
        found.append(f"{insertion.seq(int(seq))}:{hunk}" if is_unit else name)
    return found
