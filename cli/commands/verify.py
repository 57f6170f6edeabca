"""The command `cas verify`."""

from typing import TYPE_CHECKING

import click

from cli.app.invocation import Invocation, command, json_option
from cli.screen.progress import Progress
from cli.screen.terminal import shown_name, write, write_json
from cli.search.candidates import named

if TYPE_CHECKING:
    from collections.abc import Iterator

    from objstore import BlobId, CasError, Json, State, Workspace

__all__ = ["verify"]


@command("verify", takes_others=True)
@click.argument("names", metavar="[STATE...]", nargs=-1, type=named("path"))
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
        write_json([{"verified": sound, "damaged": damaged}])
    else:
        screen = invocation.screen()
        write(screen.line(str(error)) for _, error in faults)
        write([screen.line(f"{sound} of {len(blobs)} blobs match their hash.")])
    if faults:
        click.get_current_context().exit(1)


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
