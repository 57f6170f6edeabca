"""The command `cas pin`: keep edits and blobs whatever their age and however full the store is."""

from typing import TYPE_CHECKING

import click

from cli.app.invocation import Invocation, Number, command_group, json_option, recorded_text, reviewer
from cli.screen.terminal import Screen, shown_name, write
from cli.search.candidates import named, names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from objstore import BlobId, Json, PinView, Seq, Workspace

__all__ = ["pin"]


@command_group("pin", otherwise="list")
def pin() -> None:
    """Keep edits and blobs that `cas gc` would expire when they are old or the store is full."""


@pin.command("list")
@json_option
def listing(*, as_json: bool) -> None:
    """List the pins, oldest first. With --json, one object a line."""
    invocation = Invocation.current()
    with invocation.workspace() as workspace:
        views = workspace.retention.pins()
    if as_json:
        write(_json_line(view) for view in views)
    else:
        screen = invocation.screen()
        write(_row(view, screen) for view in views)
        if not views:
            click.echo(f"There are no pins. `{invocation.program} pin add EDIT` makes one.", err=True)


@pin.command("add")
@click.argument(
    "names",
    metavar="EDIT|CONVERSATION|STATE...",
    nargs=-1,
    type=named("edit", "conversation", "path"),
    required=True,
)
@click.option("--title", callback=recorded_text, metavar="TEXT", default="", help="Why it is kept.")
@json_option
def add(*, names: tuple[str, ...], title: str, as_json: bool) -> None:
    """Pin edits (12), conversations, or states (PATH@12, a hash).

    A pinned edit is kept together with all later edits of its file; of a state only the bytes are kept.
    """
    invocation = Invocation.current()
    with invocation.workspace() as workspace:
        edits: list[Seq] = []
        blobs: list[BlobId] = []
        for name in names:
            for seq, blob in _meant(workspace, name):
                edits += [] if seq is None else [seq]
                blobs += [] if blob is None else [blob]
        made = workspace.retention.pin(edits, blobs, title=title, who=reviewer())
    write([_json_line(made) if as_json else _row(made, invocation.screen())])


@pin.command("remove")
@click.argument(
    "numbers", metavar="NUMBER...", nargs=-1, required=True, type=Number(min=1), shell_complete=names("pin")
)
@json_option
def remove(*, numbers: tuple[int, ...], as_json: bool) -> None:
    """Remove pins: `cas gc` may then expire what they held."""
    invocation = Invocation.current()
    with invocation.workspace() as workspace:
        gone = workspace.retention.unpin(numbers, who=reviewer())
    screen = invocation.screen()
    write(_json_line(view) if as_json else _row(view, screen) for view in gone)


def _meant(workspace: "Workspace", name: str) -> "Iterator[tuple[Seq | None, BlobId | None]]":
    """Yield the edits or the blob that a name denotes. Raises NoSuchName or AmbiguousName."""
    from cli.selection.selectors import edits_named, looks_like_state, state_named
    from objstore import NoSuchName

    try:
        yield from ((view.seq, None) for view, _ in edits_named(workspace, name))
    except NoSuchName:
        if not looks_like_state(workspace, name):
            raise NoSuchName(name, "edit, conversation or state") from None
        state = state_named(workspace, name)
        if state.blob is None:
            raise NoSuchName(name, "state with bytes to keep") from None
        yield None, state.blob


def _row(view: "PinView", screen: Screen) -> bytes:
    from cli.render.edits import moment
    from objstore import shown_edits

    held = [f"edits {shown_edits(view.pin.edits)}"] if view.pin.edits else []
    held += [f"blob {blob.hex()[:16]}" for blob in view.pin.blobs]
    title = f"  {shown_name(view.pin.title)}" if view.pin.title else ""
    return screen.line(f"{view.pin.number:5}  {moment(view.pin.time)}  {', '.join(held)}{title}")


def _json_line(view: "PinView") -> bytes:
    from objstore import json_line, record_shape

    shape: dict[str, Json] = {"id": view.id.hex(), **record_shape(view.pin)}
    return json_line(shape)
