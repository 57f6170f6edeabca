"""The commands `cas hash`, `verify`, `records`, `segments` and `ls`: print what is in the store."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, assert_never

import click

from cli.app.invocation import Invocation, command, json_option
from cli.screen.progress import Progress
from cli.screen.terminal import Screen, shown_name, shown_width, width_of_terminal, write
from cli.search.candidates import names
from cli.selection.selectors import covers, looks_like_state, paths_named, state_parts

if TYPE_CHECKING:
    from cli.json_shapes.values import Json
    from objstore import BlobId, CasError, FileState, Record, RecordView, State, Workspace

__all__ = ["hash_file", "listing", "records", "segments", "verify"]

RANGES: Final = 12
"""Number of ranges that a line shows."""

PROMPT: Final = 60
"""Characters of a prompt's first line that a line shows."""

LONGEST_NUMBER: Final = 18
"""Digits of an edit's number: more than any store has."""


@command("hash")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False))
@json_option
def hash_file(*, files: tuple[str, ...], as_json: bool) -> None:
    """Print the name under which each FILE's bytes are stored: their BLAKE3 hash, as printed by `b3sum`."""
    from blake3 import blake3

    screen = Invocation.current().screen()
    lines = []
    for name in files:
        # It may be of any size, so it is hashed in place.
        digest = blake3().update_mmap(name).hexdigest()
        lines.append(_json({"file": _text(name), "blob": digest}) if as_json else screen.line(_row(digest, name)))
    write(lines)


@command("verify")
@click.argument("names", metavar="[STATE...]", nargs=-1, shell_complete=names("path"))
@click.option("--all", "everything", is_flag=True, help="Verify every blob of the store.")
@json_option
def verify(*, names: tuple[str, ...], everything: bool, as_json: bool) -> None:
    """Read blobs back and compare their bytes with their hash. Name a blob by its hash or by a state (PATH@12).

    Exits with 1 when one is damaged or missing. Of intact blobs, only the number is printed.
    """
    from cli.selection.selectors import state_named

    if bool(names) is everything:
        raise click.UsageError("Name blobs, or pass --all.")
    invocation = Invocation.current()
    with invocation.workspace() as workspace:
        blobs = workspace.history.blobs() if everything else [_blob(state_named(workspace, name)) for name in names]
        with Progress({"blobs": "checking"}) as progress:
            faults = list(_faults(workspace, blobs, progress))
    sound = len(blobs) - len(faults)
    if as_json:
        damaged: list[Json] = [{"blob": blob.hex(), "reason": str(error)} for blob, error in faults]
        write([_json({"verified": sound, "damaged": damaged})])
    else:
        screen = invocation.screen()
        write(screen.line(str(error)) for _, error in faults)
        write([screen.line(f"{sound} of {len(blobs)} blobs match their hash.")])
    if faults:
        click.get_current_context().exit(1)


@command("records")
@json_option
def records(*, as_json: bool) -> None:
    """List every record of the journal, oldest first. With --json, one object a line, with all fields of the record."""
    invocation = Invocation.current()
    with invocation.workspace() as workspace:
        views = workspace.history.records()
    if as_json:
        from cli.json_shapes.store import record_view_shape

        write(_json(record_view_shape(view)) for view in views)
    else:
        screen = invocation.screen()
        write((_record_line(view, screen) for view in views), paged=True)


@command("segments")
@json_option
def segments(*, as_json: bool) -> None:
    """List the segments of the log. With --json, one object a line."""
    invocation = Invocation.current()
    with invocation.workspace() as workspace:
        views = workspace.history.segments()
    if as_json:
        from cli.json_shapes.store import segment_shape

        write(_json(segment_shape(view)) for view in views)
    else:
        screen = invocation.screen()
        write(
            screen.line(
                f"{view.number:8}  {view.size:12} bytes  {view.groups:8} groups  {view.blobs:8} blobs  "
                f"{view.records:8} records"
            )
            for view in views
        )


@command("ls")
@click.argument("name", metavar="[PATH][@EDIT|@TIME]", shell_complete=names("path"), default="")
@json_option
def listing(*, name: str, as_json: bool) -> None:
    """List the recorded files, or those at or below PATH.

    Current files, or those after an edit (PATH@12, or @12 for all files), before it (PATH@12^), or at a time (PATH@2h).
    """
    invocation = Invocation.current()
    with invocation.workspace() as workspace:
        files = _files(workspace, name)
        if name and not files:
            raise click.ClickException(f"No recorded file is at or below {shown_name(name)}.")
    if as_json:
        write(
            _json({"path": _text(path), "blob": state.blob.hex(), "mode": state.mode}) for path, state in files.items()
        )
    else:
        write(_ls_text(files, invocation.screen()))


def _ls_text(files: "dict[str, FileState]", screen: Screen) -> Iterator[bytes]:
    """Yield a row for each file; on a narrow terminal with shortened hashes."""
    from cli.render.edits import SHORT_HASH

    rows = [(f"{state.mode:04o}", state.blob.hex(), shown_name(path)) for path, state in files.items()]
    is_cut = 0 < width_of_terminal() < max((shown_width("  ".join(row)) for row in rows), default=0)
    for mode, digits, name in rows:
        yield screen.line(f"{mode}  {digits[:SHORT_HASH] if is_cut else digits}  {name}")


def _blob(state: "State") -> "BlobId":
    if state.blob is None:
        raise click.ClickException(f"There is no file {shown_name(state.path)} in this state.")
    return state.blob


def _faults(workspace: "Workspace", blobs: "list[BlobId]", progress: Progress) -> "Iterator[tuple[BlobId, CasError]]":
    from objstore import CasError

    for done, blob in enumerate(blobs):
        progress.report("blobs", done, len(blobs))
        try:
            for _ in workspace.history.pieces(blob):
                pass
        except CasError as error:
            yield blob, error


def _files(workspace: "Workspace", name: str) -> "dict[str, FileState]":
    if not name or (name.startswith("@") and state_parts(f".{name}") is not None):
        paths, version = ["."], name[1:]  # all files, whatever the current folder
    else:
        named, version = (looks_like_state(workspace, name) and state_parts(name)) or (name, "")
        paths = paths_named(workspace, named, unrecorded=True)
    found = _files_at(workspace, version)
    return {at: state for at, state in found.items() if any(covers(path, at) for path in paths)}


def _files_at(workspace: "Workspace", version: str) -> "dict[str, FileState]":
    """Return all files at a version in the form of `state_parts` ("": the current one). Raises NoSuchName."""
    from datetime import datetime

    from objstore import NoSuchName, moment_of

    edit = version.removesuffix("^")
    if len(edit) > LONGEST_NUMBER and edit.isdigit():
        raise NoSuchName(edit, "edit")
    if not edit or edit.isdigit():
        return workspace.history.files_at(int(edit) if edit else None, before=version.endswith("^"))
    moment = moment_of(version, datetime.now().astimezone())
    if moment is None:
        raise NoSuchName(version, "time")
    return workspace.history.files_at_moment(moment)


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
    shown = [str(first) if first == last else f"{first}-{last}" for first, last in ranges[:RANGES]]
    return " ".join(shown) + (f" and {len(ranges) - RANGES} more" if len(ranges) > RANGES else "")


def _row(digest: str, name: str) -> str:
    return f"{digest}  {shown_name(name)}"


def _json(shape: "dict[str, Json]") -> bytes:
    from cli.json_shapes.values import json_line

    return json_line(shape)


def _text(text: str) -> str:
    from cli.json_shapes.values import text_shape

    return text_shape(text)
