"""Decode the part of edits and decisions that a replay needs, from records that were checked at ingest.

A replay reads every edit that a file ever had, and needs of each the smaller half: not who made it or when. A decision
may concern thousands of files, each of which is replayed with its own share.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from operator import gt
from typing import Any, Final, NamedTuple, Self

from objstore.model.basic_types import Action, DocumentId, FileState, Operation, Seq, Status, Unit
from objstore.model.canonical_msgpack import unpack_in_blocks
from objstore.model.ids import BlobId
from objstore.text.forms import NO_FORMS, TextForm
from objstore.text.hunks import Hunk

__all__ = ["ReplayDecision", "ReplayEdit", "replay_decision", "replay_edit", "replay_fields"]

_STATUSES: Final = {status.value: status for status in Status}
_IN_ORDER: Final = tuple(Status)
_CODES: Final = {status.value: code for code, status in enumerate(_IN_ORDER)}

_VERDICT_BYTES: Final = 17
_WRITTEN_BYTES: Final = 200


class ReplayEdit(NamedTuple):
    """The fields of an edit that a replay needs, named as in `records.Edit`."""

    seq: Seq
    document: DocumentId
    path: bytes
    source: bytes | None  # None: not a move
    before: FileState | None  # None: the file did not exist
    after: FileState | None  # None: the edit deleted it
    hunks: tuple[Hunk, ...]
    status: Status  # the status it was recorded with
    amends: Seq | None  # None: it is not an amendment
    changes_whole: bool  # whether unit 0 changes anything
    is_meant: bool  # whether a tool may have named the lines it changed
    forms: tuple[TextForm, TextForm] = NO_FORMS


def replay_fields(encoded: bytes) -> dict[str, Any]:
    """Return the fields of the record of an edit or a decision. They were checked at ingest and are not checked again.

    Verdicts are columns: a hundred thousand would take 15 MB as lists. Raises RecordInvalid.
    """
    verdicts = _Verdicts()
    fields: dict[str, Any] = unpack_in_blocks(encoded, "verdicts", verdicts.take)
    fields["verdicts"] = verdicts
    return fields


def replay_edit(fields: dict[str, Any], known: FileState | None) -> ReplayEdit:
    """Return the edit with the fields that `replay_fields` returns.

    `known`: a state that is probably one of the edit's, to be shared instead of copied; None: there is none.
    """
    get = fields.get
    flat, source = get("hunks", ()), get("source")
    before, after = _state(get("before"), known), _state(get("after"), known)
    is_same = before is not None and after is not None and before.mode == after.mode and source is None
    forms = NO_FORMS
    if "forms" in fields:
        of_before, of_after = fields["forms"]
        forms = TextForm(of_before), TextForm(of_after)
        is_same = is_same and of_before == of_after
    return ReplayEdit(
        fields["seq"],
        fields["document"],
        fields["path"],
        source,
        before,
        after,
        tuple([Hunk(*flat[i : i + 4]) for i in range(0, len(flat), 4)]),
        _STATUSES[fields["status"]] if "status" in fields else Status.PENDING,
        get("amends"),
        not is_same or not flat or "newline" in fields,
        "origin" not in fields and fields["operation"] != Operation.REPLACE,
        forms,
    )


class ReplayDecision(NamedTuple):
    """The fields of a decision that a replay needs, in 17 bytes a verdict: many files' replays share one decision."""

    number: int
    action: Action
    takes_back: int  # number of the decision that an undo or redo takes back; 0: it is neither, or does not say
    seqs: "array[int]"  # of the verdicts' edits, ascending; as long as the next two
    hunks: "array[int]"
    codes: bytes  # the place of each one's status in _IN_ORDER
    written: dict[DocumentId, BlobId | None]  # the blob of each changed file after it; None: it was removed

    @property
    def size(self) -> int:
        """Return the number of verdicts."""
        return len(self.seqs)

    @property
    def units(self) -> frozenset[Unit]:
        """Return the units that it decided on."""
        return frozenset([Unit(Seq(seq), hunk) for seq, hunk in zip(self.seqs, self.hunks, strict=True)])

    @property
    def bytes_kept(self) -> int:
        """Return about how many bytes of memory the decision takes."""
        return self.size * _VERDICT_BYTES + len(self.written) * _WRITTEN_BYTES

    def of_edits(self, seqs: Sequence[Seq]) -> dict[Unit, Status]:
        """Return the verdicts on units of edits, whose numbers are ascending."""
        if len(seqs) < self.size:
            spans = ((bisect_left(self.seqs, seq), bisect_right(self.seqs, seq)) for seq in seqs)
            places: Iterable[int] = (at for start, end in spans for at in range(start, end))
        else:
            known = set(seqs)
            places = (at for at, seq in enumerate(self.seqs) if seq in known)
        return {Unit(Seq(self.seqs[at]), self.hunks[at]): _IN_ORDER[self.codes[at]] for at in places}

    def with_verdicts(self, verdicts: Mapping[Unit, Status]) -> Self:
        """Return the decision with other verdicts."""
        found = _Verdicts()
        found.take([(*unit, status.value) for unit, status in verdicts.items()])
        return self._replace(**found.columns())


def replay_decision(fields: dict[str, Any]) -> ReplayDecision:
    """Return the decision with the fields that `replay_fields` returns."""
    written = {
        one["document"]: one["after"][0] if "after" in one else None
        for one in fields.get("written", ())
        if one.get("before") != one.get("after")
    }
    return ReplayDecision(
        number=fields["number"],
        action=Action(fields["action"]),
        takes_back=fields.get("takes_back", 0),
        written=written,
        **fields["verdicts"].columns(),
    )


class _Verdicts:
    """The verdicts of a decision in columns, as they are read."""

    def __init__(self) -> None:
        self._seqs = array("q")
        self._hunks = array("q")
        self._codes = bytearray()

    def take(self, verdicts: Sequence[Sequence[Any]]) -> None:
        """Add verdicts, each of which is an edit, a hunk and a status's name."""
        seqs, hunks, statuses = zip(*verdicts, strict=True) if verdicts else ((), (), ())
        self._seqs.extend(seqs)
        self._hunks.extend(hunks)
        self._codes.extend(map(_CODES.__getitem__, statuses))

    def columns(self) -> dict[str, Any]:
        """Return the fields that they are of a ReplayDecision, ascending by edit and hunk."""
        seqs, hunks, codes = self._seqs, self._hunks, bytes(self._codes)
        units, later = zip(seqs, hunks, strict=True), islice(zip(seqs, hunks, strict=True), 1, None)
        if any(map(gt, units, later)):
            order = sorted(range(len(seqs)), key=lambda at: (seqs[at], hunks[at]))
            seqs, hunks = (array("q", map(column.__getitem__, order)) for column in (seqs, hunks))
            codes = bytes(map(codes.__getitem__, order))
        return {"seqs": seqs, "hunks": hunks, "codes": codes}


def _state(value: list[Any] | None, known: FileState | None) -> FileState | None:
    if value is None:
        return None
    blob, mode = value
    if known is not None and known.blob == blob and known.mode == mode:
        return known
    return FileState(blob=blob, mode=mode)
