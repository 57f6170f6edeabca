"""The command `cas stats`: the store in numbers, with a small chart of activity over time; or plots as SVG files."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

import click

from cli.app.invocation import Invocation, command, json_option
from cli.screen.terminal import Screen, shown_name, write, write_json
from cli.search.candidates import named
from objstore import counted, date_of

if TYPE_CHECKING:
    from objstore import StoreStats

__all__ = ["chart", "stats"]

FILES_SHOWN: Final = 15
BAR: Final = 20
MAX_CHART_COLUMNS: Final = 60
MINUTES: Final = {"minute": 1, "10 minutes": 10, "hour": 60, "6 hours": 360, "day": 1_440, "week": 10_080}
"""Possible spans of a column in minutes; if none is large enough, a column is as many weeks as needed."""

HEIGHTS: Final = " ▁▂▃▄▅▆▇█"


@command("stats", takes_others=True)
@click.option("--svg", "folder", metavar="PATH", help="Write plots into the folder PATH, and create it if need be.")
@click.option("--file", "path", metavar="PATH", type=named("path"), help="With --svg: also plot this file.")
@click.option("--force", is_flag=True, help="With --svg: replace files that are not plots.")
@json_option
def stats(*, folder: str | None, path: str | None, force: bool, as_json: bool) -> None:
    """Show the store in numbers: edits, decisions, blobs, bytes, activity over time, and who changed what.

    With --svg, draw this instead: activity.svg has the lines added and removed by turn, store.svg the store over time
    and what `cas gc` would free, and file.svg the life of one file. Earlier plots are replaced; other files with these
    names are replaced only with --force.
    """
    invocation = Invocation.current()
    if folder is not None:
        if as_json:
            raise click.UsageError("--svg and --json exclude each other.")
        from cli.commands.plot_files import write_plots

        with invocation.workspace() as workspace:
            write(map(invocation.screen().line, write_plots(workspace, folder, path, force=force)))
        return
    if path is not None or force:
        raise click.UsageError(f"{'--force' if path is None else '--file'} needs --svg.")
    with invocation.workspace() as workspace:
        found = workspace.history.stats()
    if as_json:
        from cli.json_shapes.store import stats_shape

        write_json([stats_shape(found)])
    else:
        write(_stats_text(found, invocation.screen()), paged=True)


def _stats_text(found: "StoreStats", screen: Screen) -> Iterator[bytes]:
    edits = ", ".join(
        f"{number} {status.value}" for status, number in found.edits.items() if number or status.value != "away"
    )
    saved = found.blob_bytes / found.stored_blob_bytes if found.stored_blob_bytes else 1.0
    facts = {
        "edits": f"{found.edit_count} ({edits}) in {counted(found.conversations, 'conversation')}",
        "decisions": f"{found.decisions}",
        "rolled back": f"{found.voids}" if found.voids else "",
        "blobs": f"{found.blobs}, {found.blob_bytes} bytes, stored in {found.stored_blob_bytes} ({saved:.1f} to 1)",
        "records": f"{found.record_bytes} bytes",
        "segments": f"{found.segments}, {found.segment_bytes} bytes",
        "chain depths": " ".join(f"{depth}:{number}" for depth, number in found.depths.items()),
    }
    for name, fact in facts.items():
        if fact:
            yield screen.line(f"{name:12}  {fact}")
    if found.minutes:
        yield screen.line()
        yield from chart({at: activity.edits for at, activity in found.minutes.items()}, "edits", screen)
        yield from chart({at: activity.stored_bytes for at, activity in found.minutes.items()}, "bytes", screen)
    tools = {
        name or "(no tool: changes from outside)": (count.edits, count.added, count.removed)
        for name, count in found.tools.items()
    }
    files = {name: (count.edits, count.added, count.removed) for name, count in found.files.items()}
    for title, counts in (("by tool", tools), ("by file", files)):
        yield screen.line()
        yield screen.line(f"{title}:")
        yield from _table(counts, screen)


def _table(counts: Mapping[str, tuple[int, int, int]], screen: Screen) -> Iterator[bytes]:
    """Yield the rows with the most edits, each with a bar for its share."""
    ordered = sorted(counts.items(), key=lambda row: (-row[1][0], row[0]))
    most = max((edits for edits, _, _ in counts.values()), default=1)
    for name, (edits, added, removed) in ordered[:FILES_SHOWN]:
        bar = screen.paint(f"{'#' * max(1, edits * BAR // most):{BAR}}", "cyan")
        noun = "edit " if edits == 1 else "edits"
        yield screen.line(f"  {edits:7} {noun}  {f'+{added} -{removed}':>16}  {bar}  {shown_name(name)}")
    if len(ordered) > FILES_SHOWN:
        yield screen.line(f"  and {len(ordered) - FILES_SHOWN} more (--json has them all)")


def chart(amounts: Mapping[int, int], what: str, screen: Screen) -> Iterator[bytes]:
    """Yield a chart of amounts by minute (minutes since the epoch, in the person's time zone)."""
    first, last = min(amounts), max(amounts)
    unit, step = next(
        ((name, size) for name, size in MINUTES.items() if last // size - first // size < MAX_CHART_COLUMNS), ("", 0)
    )
    if not step:
        weeks = (last - first) // (MINUTES["week"] * MAX_CHART_COLUMNS) + 1
        unit, step = f"{weeks} weeks", MINUTES["week"] * weeks
    sums = [0] * (last // step - first // step + 1)
    for minute, amount in amounts.items():
        sums[minute // step - first // step] += amount
    most = max(*sums, 1)
    columns = "".join(HEIGHTS[-(-amount * (len(HEIGHTS) - 1) // most)] for amount in sums)
    yield screen.line(f"{f'{what} in time':14}{screen.paint(columns, 'cyan')}")
    yield screen.line(f"{'':14}{_minute(first)} to {_minute(last)}, a column a {unit}, {most} at most")


def _minute(minute: int) -> str:
    return date_of(minute * 60_000_000).astimezone().strftime("%Y-%m-%d %H:%M")
