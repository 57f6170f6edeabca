"""The command `cas records`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, assert_never

from cli.app.invocation import Invocation, command, json_option
from cli.screen.terminal import Screen, shown_name, write, write_json

if TYPE_CHECKING:
    from objstore import Record, RecordView

__all__ = ["records"]

RANGES: Final = 12
"""Number of ranges that a line shows."""

PROMPT: Final = 60
"""Characters of a prompt's first line that a line shows."""


@command("records")
@json_option
def records(*, as_json: bool) -> None:
    """List every record of the journal, oldest first. With --json, one object a line, with all fields of the record."""
    invocation = Invocation.current()
    with invocation.workspace() as workspace:
        views = workspace.history.records()
    if as_json:
        from cli.json_shapes.store import record_view_shape

        write_json(record_view_shape(view) for view in views)
    else:
        screen = invocation.screen()
        write((_record_line(view, screen) for view in views), paged=True)


def _record_line(view: "RecordView", screen: Screen) -> bytes:
    return screen.line(f"{view.id.hex()[:16]}  {view.segment:8}:{view.offset:<10}  {_said(view.record)}")


def _said(record: "Record") -> str:
    import os

    from objstore import Comment, Decision, Edit, Expiry, Mark, Pin, SettingChange, Snapshot, Turn, Void

    match record:
        case Edit():
            said = f"edit {record.seq}  {record.operation.value}  {shown_name(os.fsdecode(record.path))}"
        case Decision():
            edits = sorted({unit.seq for unit, _ in record.verdicts})
            said = f"decision {record.number}  {record.action.value}  edits {' '.join(map(str, edits))}"
        case Snapshot():
            of = "" if record.path is None else f" of {shown_name(os.fsdecode(record.path))}"
            said = f"snapshot {record.number}{of}  {shown_name(record.title)}".rstrip()
        case Pin():
            held = [f"edits {' '.join(map(str, record.edits))}"] if record.edits else []
            held += [f"{len(record.blobs)} blobs"] if record.blobs else []
            said = f"pin {record.number}  {', '.join(held)}  {shown_name(record.title)}".rstrip()
        case Void():
            taken = f"edits {' '.join(map(str, record.edits))}" if record.edits else f"decision {record.decision}"
            said = f"void of {taken}"
        case Turn():
            said = f"turn {record.number}  {shown_name(record.prompt.partition(chr(10))[0][:PROMPT])}".rstrip()
        case Comment():
            lines = "-".join(map(str, dict.fromkeys(record.lines)))
            said = f"comment {record.number}  {shown_name(os.fsdecode(record.path))}:{lines}"
        case Mark():
            said = f"comments {' '.join(map(str, record.comments))}  {record.state.value}"
        case SettingChange():
            said = f"setting {shown_name(record.name)}  {shown_name(record.after)}".rstrip()
        case Expiry():
            gone = {
                "edits": _ranges(record.edits),
                "decisions": _ranges(record.decisions),
                "snapshots": " ".join(map(str, record.snapshots)),
                "pins": " ".join(map(str, record.pins)),
            }
            named = ", ".join(f"{kind} {numbers}" for kind, numbers in gone.items() if numbers)
            said = f"expiry of {named}  {shown_name(record.reason)}"
        case _:
            assert_never(record)
    return said


def _ranges(ranges: Sequence[tuple[int, int]]) -> str:
    """Return ranges of numbers as text, shortened if there are many."""
    from objstore import few

    return few([str(first) if first == last else f"{first}-{last}" for first, last in ranges], RANGES)
