"""The command `cas fsck`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from cli.app.error_hints import fault_meaning, note_text
from cli.app.invocation import Invocation, command, json_option
from cli.screen.progress import CHECKING, Progress
from cli.screen.terminal import Screen, visible, write, write_json
from objstore import counted

if TYPE_CHECKING:
    from objstore import CheckReport


__all__ = ["fsck"]


@command("fsck")
@click.option(
    "--quick", is_flag=True, help="Check only frames, records and index; decode no blobs and replay no documents."
)
@click.option("--repair", is_flag=True, help="Rebuild the index from the log, and repair all other derived data.")
@json_option
def fsck(*, quick: bool, repair: bool, as_json: bool) -> None:
    """Check the store: every frame, blob and record, the index, each file's history, and the disk.

    Exits with 1 when anything is wrong. Changes from outside and an unfinished write are reported, but are not errors.
    """
    from objstore import check_store, repair_store

    invocation = Invocation.current()
    with Progress(CHECKING) as progress:
        report = check_store(invocation.start(), quick=quick, progress=progress.report)
        repaired = repair and (
            report.is_log_sound or report.leftovers > 0 or any(fault.repairable for fault in report.faults)
        )
        rebuilt = repaired and report.is_log_sound
        if repaired:
            report = repair_store(report)
    if as_json:
        from cli.json_shapes.store import check_shape

        write_json([check_shape(report, repaired=repaired)])
    else:
        write(_check_text(report, invocation.screen(), repaired=repaired, rebuilt=rebuilt))
    if report.faults:
        click.get_current_context().exit(1)


def _check_text(report: "CheckReport", screen: Screen, *, repaired: bool, rebuilt: bool) -> Iterator[bytes]:
    for fault in report.faults:
        yield screen.line(screen.paint(f"{fault.part.value}: {visible(fault.what)}", "red"))
        yield screen.line(f"  {visible(fault_meaning(fault))}")
    for note in report.notes:
        yield screen.line(f"Note: {visible(note_text(note))}")
    if repaired:
        done = "Rebuilt the index from the log, r" if rebuilt else "R"
        yield screen.line(f"{done}epaired the other derived data, and cleared .cas/tmp.")
    looked = ", ".join(
        (counted(report.segments, "segment"), counted(report.blobs, "blob"), counted(report.records, "record"))
    )
    replayed = f", {counted(report.documents, 'file')} replayed" if report.documents else ""
    verdict = counted(len(report.faults), "fault") if report.faults else "nothing is wrong"
    yield screen.line(f"{looked}{replayed}: {verdict}.")
