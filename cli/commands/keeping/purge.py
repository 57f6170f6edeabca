"""The command `cas purge`: remove bytes from the history for good."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from cli.app.invocation import Invocation, command, json_option, reviewer
from cli.screen.progress import Progress
from cli.screen.terminal import Screen, shown_name, write
from cli.search.candidates import names
from cli.selection.selectors import from_here, looks_like_state, state_named, state_parts, was_recorded

if TYPE_CHECKING:
    from cli.render.json_edits import Json
    from objstore import PurgePlan, Workspace

__all__ = ["purge"]


@command("purge")
@click.argument("names", metavar="PATH|STATE...", nargs=-1, shell_complete=names("path"), required=True)
@click.option("-n", "--dry-run", is_flag=True, help="Show what would be purged; change nothing.")
@click.option("--force", is_flag=True, help="Also purge pending edits, snapshots and pins that hold the bytes.")
@json_option
def purge(*, names: tuple[str, ...], dry_run: bool, force: bool, as_json: bool) -> None:
    """Remove bytes from the history for good: every past state of the file at PATH, or a state (PATH@12, a hash).

    Edits that mention them, and earlier edits of the same files, can then be neither shown nor decided. Files are not
    changed; while a file still holds the bytes, nothing is purged. Copies elsewhere, such as a backup of .cas, are
    yours to find.
    """
    invocation = Invocation.current()
    with invocation.workspace() as workspace:
        blobs = [blob for name in names for blob in _plan(workspace, name).blobs]
        if dry_run:
            plan = workspace.retention.plan_purge(blobs=blobs)
        else:
            with Progress({"edits": "expiring", "segments": "sweeping"}) as progress:
                plan = workspace.retention.purge(blobs, force=force, who=reviewer(), progress=progress.report)
    if as_json:
        from cli.render.json_store import json_line

        write([json_line(_shape(plan, dry_run=dry_run))])
    else:
        write(_text(plan, invocation.screen(), dry_run=dry_run))


def _plan(workspace: "Workspace", name: str) -> "PurgePlan":
    """Return the plan for one name. Raises NoSuchName if it names nothing that is stored."""
    from objstore import NoSuchName

    if looks_like_state(workspace, name):
        _refuse_guess(workspace, name)
        state = state_named(workspace, name)
        found = workspace.retention.plan_purge(blobs=[] if state.blob is None else [state.blob])
    else:
        found = from_here(workspace, name, lambda path: workspace.retention.plan_purge(path=path))
        if not found.blobs and _exists(workspace, name):
            records = f"`{Invocation.current().program} record`"
            raise click.ClickException(
                f"{shown_name(name)} has no past state: what is recorded is its current content. "
                f"Change the file and run {records}; then the old content can be purged."
            )
    if not found.blobs:
        raise NoSuchName(name, "file with a past state, and no state with bytes,")
    return found


def _refuse_guess(workspace: "Workspace", name: str) -> None:
    """Raise click.ClickException if the name denotes a state and also once named a file: a purge can't be undone."""
    parts = state_parts(name)
    if parts is not None and was_recorded(workspace, name):
        from cli.screen.quoting import typed

        shown, lists = shown_name(name), f"`{Invocation.current().program} log {typed(name)}` lists its edits"
        raise click.ClickException(
            f"{shown} is ambiguous: it is a state of {shown_name(parts[0])}, and a file once had this name. "
            f"Name the state by its hash, or a state of the file as {shown_name(f'{name}@12')} ({lists})."
        )


def _exists(workspace: "Workspace", name: str) -> bool:
    from objstore import NoSuchName

    try:
        return state_named(workspace, name).blob is not None
    except NoSuchName:
        return False


def _text(plan: "PurgePlan", screen: Screen, *, dry_run: bool) -> Iterator[bytes]:
    from cli.render.status import counted

    if dry_run:
        yield screen.line("Dry run: nothing was changed.")
    yield screen.line(f"{'Would purge' if dry_run else 'Purged'} {counted(len(plan.blobs), 'blob')}.")
    can = "can" if dry_run else "can now"
    for kind, spans, lost in (
        ("Edit", plan.edits, "neither shown nor decided"),
        ("Decision", plan.decisions, "neither undone nor redone"),
    ):
        if spans:
            shown = " ".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)
            several = "" if shown.isdigit() else "s"
            yield screen.line(f"{kind}{several} {shown} {can} be {lost}.")
    for kind, numbers in (("Pending edit", plan.pending), ("Snapshot", plan.snapshots), ("Pin", plan.pins)):
        if numbers:
            several = "" if len(numbers) == 1 else "s"
            gone = "would be purged too (needs --force)" if dry_run else "purged too"
            yield screen.line(f"{kind}{several} {' '.join(map(str, numbers))} {gone}.")
    if plan.baseline is not None:
        kept = "would be kept" if dry_run else "is kept"
        yield screen.line(f"Snapshot {plan.baseline} is the baseline; the rest of what it holds {kept} in a new one.")
    if plan.files:
        yield screen.line(
            f"Change these files first, they still hold the bytes: {', '.join(map(shown_name, plan.files))}."
        )
    if plan.changed_outside:
        changed = ", ".join(map(shown_name, plan.changed_outside))
        records = f"`{Invocation.current().program} record`"
        yield screen.line(f"Run {records} first, these files changed outside: {changed}.")


def _shape(plan: "PurgePlan", *, dry_run: bool) -> "dict[str, Json]":
    from cli.render.json_store import text_shape

    return {
        "dry_run": dry_run,
        "blobs": [blob.hex() for blob in plan.blobs],
        "edits": [list(span) for span in plan.edits],
        "decisions": [list(span) for span in plan.decisions],
        "pending": list(plan.pending),
        "snapshots": list(plan.snapshots),
        "baseline": plan.baseline,
        "pins": list(plan.pins),
        "files": [text_shape(path) for path in plan.files],
        "changed_outside": [text_shape(path) for path in plan.changed_outside],
    }
