"""The command `cas salvage`."""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import click

from cli.app.invocation import Invocation, command, json_option
from cli.screen.progress import CHECKING, Progress
from cli.screen.terminal import Screen, shown_name, write, write_json
from objstore import counted

if TYPE_CHECKING:
    from objstore import Salvage


__all__ = ["salvage"]

STORE_ID_BYTES: Final = 16


@command("salvage")
@click.argument("store", metavar="STORE", type=click.Path(exists=True, file_okay=False))
@click.option("--to", "directory", metavar="DIR", type=click.Path(file_okay=False), help="Where the new store goes.")
@click.option("--store-id", metavar="HEX", default="", help="Id of the damaged store, if no segment's header has it.")
@click.option("-n", "--dry-run", is_flag=True, help="Show what can be saved; write nothing.")
@json_option
def salvage(*, store: str, directory: str | None, store_id: str, dry_run: bool, as_json: bool) -> None:
    """Make a working store in DIR/.cas from what is left of STORE: a .cas folder, a copy, or a folder of segments.

    Every blob that verifies is saved, and the journal up to the first lost record. Content recorded after it goes to
    DIR/recovered, and everything lost or saved is listed in DIR/salvage.json. STORE is not changed. Exits with 1 when
    anything is lost.
    """
    from cli.json_shapes.store import salvage_shape
    from objstore import FileExists, FileMissing, given_words, json_line, salvage_store

    if directory is None and not dry_run:
        raise click.UsageError("Pass --to DIR or --dry-run.")
    if dry_run:
        directory = None
    screen = Invocation.current().screen()
    try:
        with Progress(CHECKING) as progress:
            found = salvage_store(
                store,
                directory,
                _store_id(store_id),
                progress.report,
                report=lambda done: json_line(salvage_shape(done)),
            )
    except FileExists as error:
        taken = shown_name(error.path)
        raise click.ClickException(f"{taken} already exists. Move it away, or name another DIR.") from error
    except FileMissing as error:
        raise click.ClickException(
            f"No segment file (.seg) is in {shown_name(store)}. "
            "Name a .cas folder, a copy of one, or a folder of segment files."
        ) from error
    if as_json:
        write_json([salvage_shape(found)])
    else:
        write(_salvage_text(found, directory, screen))
        if found.owner is not None:
            write([screen.line(given_words("What was saved", [found.owner]))])
    if not found.is_whole:
        click.get_current_context().exit(1)


def _store_id(digits: str) -> bytes | None:
    if not digits:
        return None
    try:
        store = bytes.fromhex(digits)
    except ValueError:
        store = b""
    if len(store) != STORE_ID_BYTES:
        raise click.BadParameter(f"{STORE_ID_BYTES * 2} hexadecimal digits are needed.", param_hint="--store-id")
    return store


def _salvage_text(found: "Salvage", directory: str | None, screen: Screen) -> Iterator[bytes]:
    if found.strays:
        yield screen.line(f"Read files that don't have a segment's name: {', '.join(map(shown_name, found.strays))}.")
    for number in found.missing_segments:
        yield screen.line(f"Segment {number} is missing.")
    for damage in found.damage:
        yield screen.line(f"{shown_name(damage.segment)}, bytes {damage.offset} to {damage.end}: {damage.reason}.")
    for blob in found.lost_blobs:
        holders = (("edits", blob.edits), ("snapshots", blob.snapshots))
        named = "; ".join(f"{kind} {' '.join(map(str, numbers))}" for kind, numbers in holders if numbers)
        yield screen.line(f"Lost blob {blob.id.hex()}: {blob.reason}{f' ({named})' if named else ''}.")
    if found.is_cut_off:
        yield screen.line("The log ends before the last acknowledged write: the newest edits are lost.")
    if found.lost_edits:
        yield screen.line(f"Lost edits: {' '.join(map(str, found.lost_edits))}.")
    if found.lost_decisions:
        yield screen.line(f"Lost decisions: {' '.join(map(str, found.lost_decisions))}.")
    for broken in found.breaks:
        name = shown_name(os.fsdecode(broken.path))
        between = f"between {broken.after} and {broken.before}" if broken.after else f"before {broken.before}"
        yield screen.line(f"{name}: changes {between} are lost.")
    saved = f"{counted(len(found.blobs), 'blob')}, and {counted(len(found.journal), 'record')} in one unbroken journal"
    yield screen.line(f"{'Can be saved' if directory is None else 'Saved'}: {saved}.")
    if found.unchained:
        states = "" if directory is None else f"; their content is in {shown_name(directory)}/recovered"
        number = len(found.unchained)
        yield screen.line(f"{counted(number, 'record')} {'comes' if number == 1 else 'come'} after a lost one{states}.")
    for file in found.unwritten:
        state = f"`cas cat {file.state.blob.hex()}` prints its content"
        yield screen.line(f"recovered/{shown_name(file.name)} was not written, because its path is too long; {state}.")
    if found.is_whole:
        yield screen.line("Nothing is lost.")
