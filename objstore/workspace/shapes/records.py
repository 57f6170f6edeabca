"""JSON shapes of the records of the journal, with the fields that `FORMAT.md` gives to each kind."""

from typing import TYPE_CHECKING, Final

from objstore.model.records import (
    Comment,
    Decision,
    Edit,
    Expiry,
    Mark,
    Pin,
    SettingChange,
    Snapshot,
    Turn,
    Void,
)
from objstore.workspace.shapes.values import Json, fields_shape

if TYPE_CHECKING:
    from objstore.model.records import Record

__all__ = ["record_shape"]

_KINDS: Final[dict[type, str]] = {
    Edit: "edit",
    Decision: "decision",
    Snapshot: "snapshot",
    Pin: "pin",
    Expiry: "expiry",
    Turn: "turn",
    Comment: "comment",
    Mark: "mark",
    SettingChange: "setting",
    Void: "void",
}


def record_shape(record: "Record") -> dict[str, Json]:
    """Return all fields of a record, with their names in the format."""
    shape = {"kind": _KINDS[type(record)], **fields_shape(record)}
    match record:
        case Edit():
            shape["lines"] = [shape.pop("added"), shape.pop("removed")]
            if record.marks is not None:
                against = [str(unit) for unit in record.marks.against]
                aside: Json = {str(unit): status.value for unit, status in record.marks.aside}
                shape["marks"] = [record.marks.decision, against, aside]
        case Decision():
            shape["verdicts"] = [[unit.seq, unit.hunk, status.value] for unit, status in record.verdicts]
        case _:
            pass
    return shape
