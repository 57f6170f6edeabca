"""Past edits and decisions: what a replay needs of them, out of records that were checked when they were taken in.

A replay reads every edit that a file ever had, and of each the smaller half: neither who made it nor when. A decision
may be on thousands of files, each of which is replayed with its own share.
"""

from typing import Any, Final, NamedTuple

from objstore.model.basic_types import DocumentId, FileState, Operation, Seq, Status, Unit
from objstore.model.ids import BlobId
from objstore.text.hunks import Hunk

__all__ = ["ReplayDecision", "ReplayEdit", "replay_decision", "replay_edit"]

_STATUSES: Final = {status.value: status for status in Status}


class ReplayEdit(NamedTuple):
    """An edit as a replay sees it; the fields are those of `records.Edit`."""

    seq: Seq
    document: DocumentId
    path: bytes
    source: bytes | None  # None: not a move
    before: FileState | None  # None: the file did not exist
    after: FileState | None  # None: the edit deleted it
    hunks: tuple[Hunk, ...]
    status: Status  # what it was recorded as
    amends: Seq | None  # None: it amends none
    changes_whole: bool  # whether unit 0 changes anything
    is_meant: bool  # whether a tool may have said which lines it changed


def replay_edit(fields: dict[str, Any], known: FileState | None) -> ReplayEdit:
    """Return the edit that a record's fields tell, which were found right before: they are not checked again.

    `known`: a state that is likely one of the edit's own, to be used again; None: there is none.
    """
    get = fields.get
    flat, source = get("hunks", ()), get("source")
    before, after = _state(get("before"), known), _state(get("after"), known)
    is_same = before is not None and after is not None and before.mode == after.mode and source is None
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
    )


class ReplayDecision(NamedTuple):
    """A decision as a replay sees it."""

    number: int
    size: int  # how many verdicts there are
    verdicts: dict[Seq, dict[Unit, Status]]  # by the edit
    written: dict[DocumentId, BlobId | None]  # what became of each file that changed; None: it was removed


def replay_decision(fields: dict[str, Any]) -> ReplayDecision:
    """Return the decision that a record's fields tell, which were found right before: they are not checked again."""
    verdicts: dict[Seq, dict[Unit, Status]] = {}
    for seq, hunk, status in fields["verdicts"]:
        verdicts.setdefault(seq, {})[Unit(seq, hunk)] = _STATUSES[status]
    written = {one["document"]: one["after"][0] if "after" in one else None for one in fields.get("written", ())}
    return ReplayDecision(fields["number"], len(fields["verdicts"]), verdicts, written)


def _state(spelt: list[Any] | None, known: FileState | None) -> FileState | None:
    if spelt is None:
        return None
    blob, mode = spelt
    if known is not None and known.blob == blob and known.mode == mode:
        return known
    return FileState(blob=blob, mode=mode)
